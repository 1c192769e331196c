"""Access to all pages: sign-in, origin of forms, and headers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dpsql.errors import LedgerError
from dpsql.owner.access import Grant, token_hash
from dpsql.remote.server.guard import body_of, response_of
from dpsql.remote.server.pages.ask_form import fields_of
from dpsql.remote.server.pages.visits import LIFE, Visits
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.service import Service

FORM = "application/x-www-form-urlencoded"
HERE = Path(__file__).parent
VIEWS = "dpsql.remote.server.pages.views"
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
Act = Callable[["Pages", Request, Grant], Awaitable[Response]]


def _templates() -> Environment:
    loader = FileSystemLoader(HERE / "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@dataclass(frozen=True)
class Pages:
    """The pages of a server: its service, and who is signed in. elsewhere: a proxy has authenticated the user, who
    therefore cannot sign out here."""

    service: Service
    visits: Visits = field(default_factory=Visits)
    templates: Environment = field(default_factory=_templates)
    elsewhere: bool = False

    def page(self, template: str, status: int = 200, **words: Any) -> Response:
        """Render a template."""
        known = {"analyst": "", "here": "", "elsewhere": self.elsewhere, **words}
        text = self.templates.get_template(f"{template}.html").render(known)
        # lone surrogates, which UTF-8 cannot encode, were written as escapes; a name may still contain some
        content = text.encode("utf-8", "replace")
        headers = {"Content-Security-Policy": POLICY}
        return Response(content, status, media_type="text/html; charset=utf-8", headers=headers)

    def trouble(self, problem: Problem, analyst: str = "") -> Response:
        """Return the page for a problem."""
        word = HTTPStatus(problem.status).phrase
        response = self.page("trouble", problem.status, analyst=analyst, word=word, said=problem.body)
        response.headers.update(problem.headers)
        return response

    def endpoint(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        """Return a route that requires sign-in."""

        async def endpoint(request: Request) -> Response:
            pages, grant, cookie = self, None, ""
            try:
                if request.method == "POST":
                    check_origin(request)
                grant = await self.service.door.named(request)
                if grant is not None:
                    pages = replace(self, elsewhere=True)
                else:
                    grant, cookie = await self._who(request)
                if grant is None:
                    return self._nobody(request)
                self.service.check_files()
                response = await act(pages, request, grant)
            except Problem as problem:
                response = pages.trouble(problem, grant.analyst if grant is not None else "")
            except LedgerError as error:
                self.service.journal.event("unavailable", error=type(error).__name__)
                response = pages.trouble(Problem(503))
            if cookie:
                _give(response, request, cookie)
            return response

        return endpoint

    async def _who(self, request: Request) -> tuple[Grant | None, str]:
        """Return the signed-in user, and the cookie that replaces the sent one, if any. Raises Problem."""
        visit, cookie = self.visits.find(request.cookies.get(cookie_name(request), ""))
        if visit is None:
            return None, ""
        try:
            return await self.service.door.admitted(visit.token), cookie
        except Problem as refusal:
            if refusal.status != 401:
                raise
            return None, ""

    def _nobody(self, request: Request) -> Response:
        """Return the sign-in form for browsers; the usual problem for programs."""
        known = cookie_name(request) in request.cookies
        if request.method == "GET" and not known and "text/html" not in request.headers.get("accept", ""):
            return response_of(Problem(401, headers={"WWW-Authenticate": "Bearer"}))
        return self.sign_in_page(request, 401 if known or request.url.path != "/" else 200)

    def sign_in_page(self, request: Request, status: int = 200, wrong: str = "") -> Response:
        """Return the sign-in form, which leads on to the requested page."""
        there = request.url.path if request.method == "GET" and request.url.path != "/sign-in" else "/"
        ended = cookie_name(request) in request.cookies and not wrong
        asyncio.get_running_loop().run_in_executor(None, import_module, VIEWS)  # preload for the page after sign-in
        response = self.page("sign_in", status, there=there, wrong=wrong, ended=ended)
        if status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response


async def sign_in(pages: Pages, request: Request) -> Response:
    """Exchange a token for a cookie; redirect users whom a proxy has authenticated."""
    try:
        if await pages.service.door.named(request) is not None:
            return RedirectResponse("/", 303)
        if request.method == "GET":
            return pages.sign_in_page(request)
        check_origin(request)
        fields = fields_of(await body_of(request, FORM))
        token = fields.get("token", "").strip()
        try:
            grant = await pages.service.door.admitted(token_hash(token))
        except Problem as refusal:
            if refusal.status != 401:
                raise
            return pages.sign_in_page(request, 401, wrong="This token does not hold: it is mistyped, or it has ended.")
    except Problem as problem:
        return pages.trouble(problem)
    pages.service.journal.event("sign-in", analyst=grant.analyst)
    pages.visits.end(request.cookies.get(cookie_name(request), ""))
    there = fields.get("there", "/")
    response = RedirectResponse(there if _is_page(there) else "/", 303)
    _give(response, request, pages.visits.begin(grant.token, grant.analyst))
    return response


async def sign_out(pages: Pages, request: Request) -> Response:
    """End a visit."""
    try:
        check_origin(request)
    except Problem as problem:
        return pages.trouble(problem)
    pages.visits.end(request.cookies.get(cookie_name(request), ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(cookie_name(request), path="/", secure=_secure(request), httponly=True, samesite="lax")
    return response


def check_origin(request: Request) -> None:
    """Check that a form was sent from a page of this server. Raises Problem."""
    sent, host = request.headers.getlist("origin"), request.headers.get("host", "")
    if [each.lower() for each in sent] != [f"{request.scope['dpsql.scheme']}://{host}".lower()]:
        raise Problem(403, detail="A page of another server asks.")


def _is_page(path: str) -> bool:
    """Return whether a form may redirect to this path of this server."""
    return (
        path.startswith("/")
        and not path.startswith("//")
        and path.isascii()
        and all(c.isalnum() or c in "/-_." for c in path)
    )


def cookie_name(request: Request) -> str:
    port = request.headers.get("host", "").rpartition(":")[2]
    name = f"dpsql-{port}" if port.isdecimal() else "dpsql"
    return f"__Host-{name}" if _secure(request) else name


def _secure(request: Request) -> bool:
    return str(request.scope["dpsql.scheme"]) == "https"


def _give(response: Response, request: Request, value: str) -> None:
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=int(LIFE),
        path="/",
        secure=_secure(request),
        httponly=True,
        samesite="lax",
    )
