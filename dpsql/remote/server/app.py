"""The routes of the server, as records from which the OpenAPI description is also generated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.errors import InvalidArgument, LedgerError
from dpsql.owner.access import Grant
from dpsql.remote.server import requests
from dpsql.remote.server.guard import PROBLEM, body_of, in_json, response_of
from dpsql.remote.server.job import Job
from dpsql.remote.server.openapi import description
from dpsql.remote.server.pages.door import Pages
from dpsql.remote.server.pages.routes import routes_of
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.service import Service, seen_within
from dpsql.schema.frozen import dataclass

ANSWERS = (requests.JSON, requests.ARROW)
"""The formats of answers; everything else is JSON."""
Act = Callable[[Service, Request, Grant], Awaitable[Response]]


@dataclass(frozen=True)
class Operation:
    """One route: its function, the type of its body ("" for none), and its statuses beyond those of all routes."""

    method: str
    path: str
    act: Act
    purpose: str
    body: str = ""
    statuses: tuple[int, ...] = (200,)
    forms: tuple[str, ...] = (requests.JSON,)


async def ask(service: Service, request: Request, grant: Grant) -> Response:
    """Charge and answer a query, once for each key."""
    key = requests.key_of(request.headers.getlist("idempotency-key"))
    wait = requests.wait_of(request.headers.getlist("prefer"))
    terms = requests.terms_of(await body_of(request))
    job = await service.submit(grant, key, terms)
    await seen_within(job, wait)
    return await _shown(service, request, job)


async def look(service: Service, request: Request, grant: Grant) -> Response:
    """Return the answer of a query, when it may be seen."""
    job = await service.find(grant, request.path_params["id"])
    if job is None:
        raise Problem(404)
    return await _shown(service, request, job)


async def _shown(service: Service, request: Request, job: Job) -> Response:
    if not job.seen.is_set():
        headers = {"Location": f"/v1/queries/{job.id}", "Retry-After": "1"}
        return in_json({"id": job.id, "state": "accepted"}, 202, headers=headers)
    if job.status != 200:
        return Response(job.content, job.status, media_type=PROBLEM)
    return await _in_form(service, request, job.content)


async def _in_form(service: Service, request: Request, content: bytes) -> Response:
    """Return an answer as JSON, or as an Arrow stream if requested."""
    if requests.form_of(request.headers.getlist("accept"), ANSWERS) == requests.JSON:
        return Response(content, media_type=requests.JSON)
    try:
        stream = await service.drawing.written(content, "arrow")
    except InvalidArgument:
        raise Problem(406) from None
    return Response(stream, media_type=requests.ARROW)


def _free(operation: str, read: Callable[[bytes], Any] | None, word: str = "terms") -> Act:
    """Return the action of a route that the planner answers at once."""

    async def act(service: Service, request: Request, grant: Grant) -> Response:
        words: dict[str, Any] = {} if read is None else {word: read(await body_of(request))}
        if operation == "answers":
            words["page"] = requests.page_of(request.query_params.multi_items())
        status, body = await service.plan(grant, operation, **words)
        if operation == "rehearse" and status == 200:
            return await _in_form(service, request, bytes(in_json(body).body))
        return in_json(body, status, kind=requests.JSON if status == 200 else PROBLEM)

    return act


OPERATIONS = (
    Operation("POST", "/v1/queries", ask, "Ask a query, and pay for it once", "query", (200, 202, 409, 422), ANSWERS),
    Operation("GET", "/v1/queries/{id}", look, "The answer to a query of one's own", "", (200, 202, 404, 422), ANSWERS),
    Operation("POST", "/v1/explanations", _free("explain", requests.terms_of), "What a query would do; free", "query"),
    Operation("POST", "/v1/prices", _free("prices", requests.batch_of, "batch"), "What queries would cost", "batch"),
    Operation(
        "POST", "/v1/remaining", _free("remaining", requests.terms_of), "How many more of a query there may be", "query"
    ),
    Operation(
        "POST",
        "/v1/rehearsals",
        _free("rehearse", requests.terms_of),
        "An answer over made-up rows; free",
        "query",
        forms=ANSWERS,
    ),
    Operation("GET", "/v1/tables", _free("tables", None), "What is declared of one's tables"),
    Operation("GET", "/v1/budget", _free("budget", None), "One's share, what is spent of it and left"),
    Operation("GET", "/v1/answers", _free("answers", None), "What one has paid for"),
)


def application(service: Service) -> Starlette:
    """Return the application. Clients without token learn only that, the server's state, and its description."""
    document = description(
        [(each.method, each.path, each.purpose, each.body, each.statuses, each.forms) for each in OPERATIONS]
    )

    async def alive(_request: Request) -> Response:
        return in_json({"status": service.state})

    async def described(_request: Request) -> Response:
        return in_json(document)

    by_path: dict[str, dict[str, Operation]] = {}
    for each in OPERATIONS:
        by_path.setdefault(each.path, {})[each.method] = each
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"]
    routes = [Route("/healthz", alive, methods=["GET"]), Route("/openapi.json", described, methods=["GET"])]
    routes += [Route(path, _endpoint(service, acts), methods=methods) for path, acts in by_path.items()]

    pages = Pages(service)
    routes += routes_of(pages)

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, Problem):
            return response_of(error)
        status = error.status_code if isinstance(error, HTTPException) else 500
        if (
            status == 404
            and not request.url.path.startswith("/v1/")
            and "text/html" in request.headers.get("accept", "")
        ):
            return await pages.endpoint(_nothing)(request)
        if status in (404, 405) and request.url.path not in ("/healthz", "/openapi.json"):
            try:
                await service.door.opened(request)
            except Problem as refusal:
                return response_of(refusal)
        if status == 500:
            service.journal.event("error", error=type(error).__name__)
        return response_of(Problem(status if status in (404, 405) else 500))

    app = Starlette(routes=routes, exception_handlers=dict.fromkeys((Problem, HTTPException, Exception), refused))
    app.router.redirect_slashes = False  # redirects would reveal existing paths to clients without token
    return app


async def _nothing(_pages: Pages, _request: Request, _grant: Grant) -> Response:
    raise Problem(404)


def _endpoint(service: Service, acts: dict[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        grant, known = await service.door.opened(request, partial(service.watch.look, request))
        operation = acts.get(request.method)
        if operation is None:
            raise Problem(405, headers={"Allow": ", ".join(sorted(acts))})
        requests.form_of(request.headers.getlist("accept"), operation.forms)
        service.check_files()
        try:
            response = await operation.act(service, request, grant)
        except LedgerError as error:
            service.journal.event("unavailable", analyst=grant.analyst, error=type(error).__name__)
            raise Problem(503) from None
        response.headers.update(known)
        return response

    return endpoint
