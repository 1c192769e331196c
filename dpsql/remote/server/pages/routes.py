"""Where each page is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.remote.server.pages import views
from dpsql.remote.server.pages.door import HERE, Pages, sign_in, sign_out

_STATIC = {"dpsql.css": "text/css", "dpsql.js": "text/javascript", "dpsql.svg": "image/svg+xml"}


def routes_of(pages: Pages) -> list[Route]:
    """Without a token there are the form for one, and files that say nothing of this server."""
    acts = {
        ("GET", "/"): views.ask_page,
        ("POST", "/price"): views.price_page,
        ("POST", "/ask"): views.ask,
        ("POST", "/rehearse"): views.rehearse,
        ("GET", "/answers"): views.history,
        ("GET", "/answers/{id:str}"): views.answer,
        ("GET", "/answers/{id:str}/answer.{form:str}"): views.file_of,
        ("GET", "/tables"): views.tables,
        ("GET", "/budget"): views.budget,
        ("GET", "/words"): views.words,
    }
    routes = [Route(path, pages.endpoint(act), methods=[method]) for (method, path), act in acts.items()]
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
