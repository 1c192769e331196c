"""Problems of RFC 9457, the server's errors. Problems of a query use the library's messages; all others are fixed
texts in this module."""

from __future__ import annotations

from typing import Any

from dpsql.core.mechanisms.samplers import fresh_key

_TEXTS: dict[int, tuple[str, str, str]] = {  # status -> title, detail, hint
    400: ("BadRequest", "The request is not what this server reads.", "See /openapi.json."),
    401: ("Unauthorized", "A token is needed that has not ended.", "Send Authorization: Bearer TOKEN."),
    403: ("Forbidden", "This is not for whoever asks.", "Ask the data owner."),
    404: ("NotFound", "There is nothing here.", ""),
    405: ("MethodNotAllowed", "There is nothing here for this method.", "See /openapi.json."),
    406: (
        "NotAcceptable",
        "Answers are application/json, those of queries application/vnd.apache.arrow.stream too.",
        "Send such an Accept.",
    ),
    408: ("RequestTimeout", "The request took too long to arrive.", "Send it again."),
    409: ("Conflict", "Something else was asked under this idempotency key.", "Take another key."),
    413: ("ContentTooLarge", "The body is longer than 65,536 bytes.", "Ask with less."),
    414: ("URITooLong", "The path of the request is longer than 8,192 bytes.", "Send the query in the body of a POST."),
    415: ("UnsupportedMediaType", "Bodies are application/json.", "Send Content-Type: application/json."),
    421: ("MisdirectedRequest", "This server is not of that name.", "Its owner lists names: [server] hosts."),
    429: ("TooManyRequests", "Too many requests of one analyst wait.", "Wait for answers, then ask again."),
    431: ("RequestHeaderFieldsTooLarge", "The header is longer than 16,384 bytes.", "Send less."),
    500: ("InternalError", "The server failed.", "Tell the data owner this id."),
    503: (
        "ServerUnavailable",
        "The server cannot answer now, and nothing was charged.",
        "Ask again with the same key.",
    ),
}


class Problem(Exception):
    """A status with its fixed text. hint: replaces the usual one; headers: additional ones."""

    def __init__(self, status: int, *, detail: str = "", hint: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.detail, self.hint = detail, hint
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        return problem(self.status, detail=self.detail, hint=self.hint)


def problem(status: int, *, detail: str = "", hint: str = "", charged: bool = False) -> dict[str, Any]:
    """Return a body with a random id, by which the owner finds the problem in the log."""
    title, usual, remedy = _TEXTS[status]
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail or usual,
        "hint": hint or remedy,
        "charged": charged,
        "id": fresh_key().hex()[:32],
    }


CHARGED_FOR_GOOD = "The run came to no answer. What it cost stays spent; this is final."
CHARGED_SO_FAR = "The answer could not be kept. It is paid for, and the same key will have it."
CHARGE_UNREAD = "The ledger cannot be read now. If this question was charged, the same key will have its answer."
FILES_CHANGED = "The data files have changed, so that nothing is served until a restart."
STOPPED = "Too many runs came to no answer, so that nothing more is run."
STATUSES = tuple(_TEXTS)


def uncharged(*, failed: bool, changed: bool) -> tuple[int, dict[str, Any]]:
    """Return status and body of a query that failed before it was charged. failed: by a fault; changed: because the
    data files have changed since serving began."""
    if failed:
        return 500, problem(500, detail="The server failed. Nothing was charged.")
    return 503, problem(503, detail=f"{FILES_CHANGED} Nothing was charged." if changed else "")
