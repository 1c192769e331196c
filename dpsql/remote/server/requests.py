"""Strict parsing of requests: JSON bodies with known fields of known types, and headers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NoReturn

from dpsql.remote.server.messages import MOST_LISTED, MOST_PRICES
from dpsql.remote.server.problems import Problem

_NUMBER, _TEXT, _FLAG = (int, float), (str,), (bool,)
TERMS: dict[str, tuple[type, ...]] = {
    "sql": _TEXT,
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "rho": _NUMBER,
    "error": _NUMBER,
    "confidence": _NUMBER,
    "mechanism": _TEXT,
    "strategy": _TEXT,
    "dialect": _TEXT,
    "fresh": _FLAG,
}
"""The fields of a query except params, and their types."""
JSON, PROBLEM = "application/json", "application/problem+json"
ARROW = "application/vnd.apache.arrow.stream"
LONGEST_KEY = 64
LONGEST_WAIT, USUAL_WAIT = 60.0, 10.0


def terms_of(body: bytes) -> dict[str, Any]:
    """Return a query with its terms, as arguments of `Session.query`. Raises Problem."""
    return _terms(_object(_parsed(body), {*TERMS, "params"}))


def batch_of(body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the queries of a request for costs, and whether each follows those before it. Raises Problem."""
    asked = _object(_parsed(body), {"queries", "in_turn"})
    queries, in_turn = asked.get("queries"), asked.get("in_turn", False)
    if not isinstance(queries, list) or not 0 < len(queries) <= MOST_PRICES:
        _bad(f"queries is a list of 1 to {MOST_PRICES} queries.")
    if not isinstance(in_turn, bool):
        _bad("in_turn is true or false.")
    return [_terms(_object(each, {*TERMS, "params"})) for each in queries], in_turn


def _terms(said: Mapping[str, Any]) -> dict[str, Any]:
    terms: dict[str, Any] = {}
    for name, kinds in TERMS.items():
        value = said.get(name)
        if value is None:
            continue
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not _FLAG):
            _bad(f"{name} is of another type.")
        terms[name] = value
    if "sql" not in terms:
        _bad("sql is missing.")
    params = said.get("params")
    if params is not None:
        if not isinstance(params, dict):
            _bad("params is an object of names and values.")
        terms["params"] = {name: _parameter(value) for name, value in params.items()}
    return terms


def _parameter(value: Any) -> Any:
    """Return a number, text, truth value, null, or {"date": ISO text} or {"timestamp": ISO text}."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind in ("date", "timestamp") and isinstance(text, str):
            try:
                return date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)
            except ValueError:
                pass
    return _bad('A parameter is a number, a text, true, false, null, {"date": "2026-01-31"} or {"timestamp": ...}.')


def written(value: date) -> dict[str, str]:
    """Return a date parameter in the form in which it was sent."""
    return {"timestamp" if isinstance(value, datetime) else "date": value.isoformat()}


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return _bad("The body is not JSON.")


def _no_constant(_word: str) -> NoReturn:
    raise ValueError("no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name twice")
    return names


def _object(said: Any, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        _bad("The body is not an object.")
    if set(said) - known:
        _bad(f"There is a field that is not known. Known: {', '.join(sorted(known))}.")
    return said


def _bad(detail: str) -> NoReturn:
    raise Problem(400, detail=detail)


def key_of(values: list[str]) -> str:
    """Return the idempotency key from the values of its header. Raises Problem."""
    if len(values) != 1 or not re.fullmatch(rf"[!-~]{{1,{LONGEST_KEY}}}", values[0]):
        raise Problem(
            400,
            detail=f"One Idempotency-Key of 1 to {LONGEST_KEY} printable characters is needed.",
            hint="Take a new random one for each question, and the same again to ask for its answer.",
        )
    return values[0]


def page_of(said: list[tuple[str, str]]) -> tuple[int, int]:
    """Return the requested page of a list: the number of entries before it, and its length at most. Raises Problem."""
    words = dict(said)
    if len(words) < len(said) or not words.keys() <= {"after", "limit"}:
        _bad("A list is asked for by after and limit, each once.")
    after, limit = words.get("after", "0"), words.get("limit", str(MOST_LISTED))
    if (
        not (re.fullmatch("[0-9]{1,9}", after) and re.fullmatch("[0-9]{1,4}", limit))
        or not 1 <= int(limit) <= MOST_LISTED
    ):
        _bad(f"after is a whole number from 0, limit one from 1 to {MOST_LISTED}.")
    return int(after), int(limit)


def wait_of(values: list[str]) -> float:
    """Return the seconds to wait for an answer, by the Prefer header."""
    found = re.search(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,6})(?:$|[,;\s])", ", ".join(values))
    return min(float(found[1]), LONGEST_WAIT) if found else USUAL_WAIT


def token_of(values: list[str]) -> str:
    """Return the token of an Authorization header. Raises Problem."""
    if len(values) == 1:
        scheme, _, token = values[0].partition(" ")
        if scheme.lower() == "bearer" and re.fullmatch("[!-~]{1,128}", token):
            return token
    raise Problem(401, headers={"WWW-Authenticate": "Bearer"})


def form_of(accept: list[str], forms: tuple[str, ...] = (JSON,)) -> str:
    """Return the preferred media type of an Accept header among `forms`, the first of equal ones; exact types take
    precedence over ranges. Raises Problem if none is acceptable."""
    ranges = [_liked(each) for each in ",".join(accept or ["*/*"]).split(",")]
    weights = {}
    for form in forms:
        names = {"*/*": 0, "application/*": 1, form: 2, **({PROBLEM: 2} if form == JSON else {})}
        fitting = [(names[kind], weight) for kind, weight in ranges if kind in names]
        weights[form] = max(fitting, default=(0, 0.0))[1]
    best = max(forms, key=lambda form: weights[form])
    if not weights[best]:
        raise Problem(406)
    return best


def _liked(said: str) -> tuple[str, float]:
    """Return a media range, and its weight."""
    kind, *more = (part.strip().lower() for part in said.split(";"))
    for part in more:
        weight = re.fullmatch(r"q\s*=\s*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", part)
        if weight:
            return kind, float(weight[1])
    return kind, 1.0
