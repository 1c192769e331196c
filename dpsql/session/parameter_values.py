"""Values of query parameters typed by people."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from dpsql.errors import InvalidArgument

_WORDS = {"null": None, "true": True, "false": False}


def parameter(text: str) -> tuple[str, Any]:
    """Return name and value of a typed `name=value`: a number, true, false, null, an ISO date or timestamp, or text. A
    value in single quotes is always text. Raises InvalidArgument."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not name.isidentifier():
        raise InvalidArgument(f"a parameter is written name=value, got {text!r}.")
    return name, typed(value)


def typed(value: str) -> Any:
    """Return the value of typed text."""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    for read in (int, float, date.fromisoformat, datetime.fromisoformat):
        try:
            return read(value)
        except ValueError:
            continue
    return value
