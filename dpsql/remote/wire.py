"""HTTP connection to a server: allowed addresses, tokens, retries, and translation of errors."""

from __future__ import annotations

import contextlib
import getpass
import ipaddress
import json
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpsql import errors
from dpsql.errors import (
    AccessDenied,
    DPSQLError,
    InternalError,
    InvalidArgument,
    LedgerError,
    ServerUnavailable,
    Span,
    as_written,
)

TOKEN = "DPSQL_TOKEN"
ANCHOR, UNKNOWN, MISSED = "Ledger-Anchor", "unknown", "missed"
"""The header that carries a ledger checkpoint, and the server's replies in it: a checkpoint that it did not make, and
one that its ledger no longer contains."""
_OWN_WORDS = (
    errors.QueryRefused,
    errors.BudgetExceeded,
    errors.InvalidPrivacyParameter,
    errors.InvalidArgument,
    errors.PostprocessFailed,
)
"""Errors whose messages the server passes on unchanged."""
_TRIES = 6
_LONGEST_PAUSE = 10.0


def address_of(url: object) -> str:
    """Return a server's address: https, or http on this machine only. Raises InvalidArgument."""
    if not isinstance(url, str):
        raise InvalidArgument("a server's address is a text.", hint='Write "https://data.example:8443".')
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidArgument("this is no address of a server.", hint='Write "https://data.example:8443".') from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidArgument(
            "an address has no name, token or query in it.", hint=f"The token comes from {TOKEN}, a file or a prompt."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise InvalidArgument("this is no address of a server.", hint='Write "https://data.example:8443".')
    if parts.scheme == "http" and not _local(parts.hostname):
        raise InvalidArgument("http is for a server on this machine; others are asked by https.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")


def _local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_from(file: str | os.PathLike[str] | None) -> str:
    """Return the token from a file that other users cannot read, else from DPSQL_TOKEN, else from a prompt. Raises
    InvalidArgument."""
    if file is not None:
        path = Path(file)
        try:
            if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise InvalidArgument(f"{path.name} can be read by others.", hint=f"chmod 600 {path.name}")
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidArgument(f"no file of a token {path.name} that can be read.") from None
    else:
        token = os.environ.get(TOKEN, "").strip()
        if not token and _can_be_asked():
            with contextlib.suppress(EOFError, NotImplementedError):  # an unattended notebook
                token = getpass.getpass("token: ").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidArgument(
            "there is no token.", hint=f"Put it into {TOKEN}, or into a file that others cannot read: token_file=..."
        )
    return token


def _can_be_asked() -> bool:
    """Return whether somebody can answer a prompt: at a terminal, or in a notebook, whose kernel has its own prompt."""
    if "ipykernel" in sys.modules:
        return True
    return sys.stdin is not None and sys.stdin.isatty()


class Wire:
    """An authenticated connection. Follows no redirect, and contacts only the server."""

    def __init__(self, url: object, token_file: str | os.PathLike[str] | None, anchor: str = "") -> None:
        self.anchor = anchor
        """Checkpoint of the last paid answer: sent along, so that a rollback of the ledger is noticed."""
        try:
            import httpx  # optional dependency
        except ImportError:
            raise InvalidArgument("a connection needs httpx.", hint='pip install "dpsql[client]"') from None
        self.address = address_of(url)
        headers = {"Authorization": f"Bearer {token_from(token_file)}", "Accept": "application/json"}
        timeout = httpx.Timeout(30.0, read=90.0)
        self._failed: tuple[type[Exception], ...] = (httpx.HTTPError,)
        self._client = httpx.Client(
            base_url=self.address, headers=headers, timeout=timeout, follow_redirects=False, trust_env=False
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> Any:
        """Return the resource at a path. Raises a DPSQLError."""
        return self._said("GET", path, (), {}, None)[1]

    def post(self, path: str, body: Mapping[str, Any], *texts: str) -> Any:
        """Return the reply to a free request. texts: the queries that errors may refer to. Raises a DPSQLError."""
        return self._said("POST", path, texts, {}, body)[1]

    def ask(self, body: Mapping[str, Any], key: str) -> Any:
        """Return the answer of a query, paid for once, however often the connection fails. Raises a DPSQLError."""
        headers = {"Idempotency-Key": key, "Prefer": "wait=30"}
        texts = (str(body.get("sql", "")),)
        while True:
            status, said = self._said("POST", "/v1/queries", texts, headers, body)
            if status == 200:
                return said

    def _said(
        self,
        method: str,
        path: str,
        texts: Sequence[str],
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None,
    ) -> tuple[int, Any]:
        """Return status and content of a successful reply, with retries if there is none or the server is busy."""
        pause = 0.25
        # ASCII: a text may contain lone surrogates, which the server refuses as a local session does
        content = None if body is None else json.dumps(body).encode("ascii")
        sent = {**headers, **({} if body is None else {"Content-Type": "application/json"})}
        sent |= {ANCHOR: self.anchor} if self.anchor else {}
        for left in reversed(range(_TRIES)):
            try:
                response = self._client.request(method, path, headers=sent, content=content)
            except self._failed as error:
                if not left:
                    raise ServerUnavailable(
                        f"the server {self.address} cannot be reached ({type(error).__name__}).",
                        hint="A query that was paid for is not paid again: ask the same again when it is up.",
                    ) from None
            else:
                self._hold(response)
                if response.status_code in (200, 202):
                    return response.status_code, self._parsed(response)
                if response.status_code not in (429, 503) or not left:
                    raise self._error(response, texts)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError  # the last attempt has returned or raised

    def _hold(self, response: Any) -> None:
        """Store the newest checkpoint, and warn if the server does not know the one that was sent. Raises LedgerError
        if its ledger no longer contains that checkpoint."""
        verdict = response.headers.get(ANCHOR, "")
        if verdict == MISSED:
            raise LedgerError(
                f"the ledger of {self.address} went back or was rewritten: it does not hold an answer that was given.",
                hint="Nothing more is answered until its owner has looked. Tell the data owner.",
            )
        if verdict == UNKNOWN and self.anchor:
            self.anchor = ""
            warnings.warn(
                f"the server {self.address} does not know the last answer that it gave here: its ledger was put back "
                "from a copy, or is another.",
                stacklevel=2,
            )
        try:
            body = response.json() if b'"anchor"' in response.content else {}
        except ValueError:
            return
        anchor = body.get("anchor") if isinstance(body, dict) else None
        if isinstance(anchor, str) and _place_of(anchor) > _place_of(self.anchor):
            self.anchor = anchor

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Raise ServerUnavailable if content read in this context is not from a dpsql server."""
        try:
            yield
        except DPSQLError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            raise ServerUnavailable(f"{self.address} does not speak as a server of dpsql does.") from None

    def _parsed(self, response: Any) -> Any:
        try:
            return response.json()
        except ValueError:
            raise ServerUnavailable(f"{self.address} does not speak as a server of dpsql does.") from None

    def _error(self, response: Any, texts: Sequence[str]) -> DPSQLError:
        """Return the error that a problem describes, as an error of this library if it is one."""
        problem = self._parsed(response)
        if not isinstance(problem, dict):
            return ServerUnavailable(f"{self.address} does not speak as a server of dpsql does.")
        title, detail, hint = (str(problem.get(word, "")) for word in ("title", "detail", "hint"))
        kind = getattr(errors, title, None)
        if isinstance(kind, type) and issubclass(kind, _OWN_WORDS):
            said = problem.get("about")
            about = {str(name): str(each) for name, each in said.items()} if isinstance(said, dict) else {}
            place = about.pop("place", "0")
            sql = texts[int(place)] if place.isdecimal() and int(place) < len(texts) else ""
            error = kind(detail, span=_span(sql, problem.get("span")), hint=hint, about=about)
            if isinstance(error, errors.PostprocessFailed):
                from dpsql.remote.answers import answers_of  # loads pandas, which the server loads elsewhere

                with self.reading():
                    error.answers = answers_of(problem)
            return error
        name = f" (id {problem['id']})" if problem.get("id") else ""
        if response.status_code in (401, 403):
            if response.status_code == 401:
                hint = "The token is mistyped, or has ended: the data owner gives another."
            return AccessDenied(detail, hint=hint)
        if response.status_code in (429, 503):
            return ServerUnavailable(f"{detail}{name}", hint=hint)
        if response.status_code == 500:
            return InternalError(f"{detail}{name}", hint=hint)
        return InvalidArgument(detail, hint=hint)


def checked_anchor(anchor: object) -> str:
    """Return an anchor, "" for None. Raises InvalidArgument for an invalid one."""
    if anchor is None or anchor == "":
        return ""
    if not isinstance(anchor, str) or _place_of(anchor) < 0:
        raise InvalidArgument(
            f"an anchor of a server is two hashes behind a number, got {as_written(anchor)[:80]}.",
            hint="session.ledger_anchor gives one.",
        )
    return str.__str__(anchor)


def _place_of(anchor: str) -> int:
    """Return the number of the analyst's charge that an anchor belongs to; -1 for an invalid anchor."""
    parts = re.fullmatch("([1-9][0-9]{0,14}):[0-9a-f]{64}:[0-9a-f]{64}", anchor)
    return int(parts[1]) if parts else -1


def _span(sql: str, said: Any) -> Span | None:
    if not isinstance(said, list) or len(said) != 2 or not all(isinstance(each, int) for each in said):
        return None
    start, end = said
    return Span(sql, start, end) if 0 <= start <= end < max(1, len(sql)) else None
