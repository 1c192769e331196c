"""Routes of the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.owner.access import Grant
from dpsql.remote.server.pages.door import HERE, VIEWS, Act, Pages, sign_in, sign_out

_STATIC = {"dpsql.css": "text/css", "dpsql.js": "text/javascript", "dpsql.svg": "image/svg+xml"}


def _view(name: str) -> Act:
    """Return a page for signed-in users. The module of views is loaded when first needed."""

    async def act(pages: Pages, request: Request, grant: Grant) -> Response:
        shown: Act = getattr(await asyncio.to_thread(import_module, VIEWS), name)
        return await shown(pages, request, grant)

    return act


def routes_of(pages: Pages) -> list[Route]:
    """Return the routes. Without token only the sign-in form and static files are available."""
    acts = {
        ("GET", "/"): "ask_page",
        ("POST", "/price"): "price_page",
        ("POST", "/ask"): "ask",
        ("POST", "/rehearse"): "rehearse",
        ("GET", "/answers"): "history",
        ("GET", "/answers/{id:str}"): "answer",
        ("GET", "/answers/{id:str}/answer.{form:str}"): "file_of",
        ("GET", "/tables"): "tables",
        ("GET", "/budget"): "budget",
        ("GET", "/words"): "words",
    }
    routes = [Route(path, pages.endpoint(_view(act)), methods=[method]) for (method, path), act in acts.items()]
    files = {name: (HERE / "static" / name).read_bytes() for name in _STATIC}

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        return Response(files[name], media_type=_STATIC[name]) if name in files else Response(status_code=404)

    def open_to_all(act: Callable[[Pages, Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await act(pages, request)

        return endpoint

    return [
        *routes,
        Route("/sign-in", open_to_all(sign_in), methods=["GET", "POST"]),
        Route("/sign-out", open_to_all(sign_out), methods=["POST"]),
        Route("/static/{name:str}", static, methods=["GET"]),
    ]
