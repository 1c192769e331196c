"""Query parameters, `:name`: typed scalars bound as constants, never pasted into the text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from dpsql.errors import InvalidParameter, did_you_mean
from dpsql.plan.digits import whole_number
from dpsql.plan.expressions import Literal
from dpsql.schema.calendar import day_number, microsecond_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT128

MOST_CHARACTERS = 64 * 1024

Params = tuple[tuple[str, Literal], ...]
"""Names and values, sorted by name: hashable, for the plan cache."""


def params_of(given: object) -> Params:
    """Return the parameters that a caller passes as a mapping. Raises InvalidParameter."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            f"params must map names to values, got {type(given).__name__}.", hint='Write params={"low": 20}.'
        )
    try:
        pairs = [(_name(name), value) for name, value in given.items()]
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - a mapping of another's making may do anything
        raise InvalidParameter("params cannot be read as a mapping.", hint='Write params={"low": 20}.') from None
    return tuple(sorted(((name, _literal(name, value)) for name, value in pairs), key=lambda p: p[0]))


def _name(name: object) -> str:
    text = str.__str__(name) if issubclass(type(name), str) else None
    if text is None or not text.isidentifier():
        got = type(name).__name__ if text is None else repr(text[:40])
        raise InvalidParameter(
            f"a parameter's name must be an identifier, got {got}.",
            hint='Write :low or $low in the text, and params={"low": 20}.',
        )
    return text


def check_all_used(params: Params, used: frozenset[str]) -> None:
    """Refuse a value without a `:name` in the text, which is probably a mistake. Raises InvalidParameter."""
    spare = [name for name, _ in params if name not in used]
    if spare:
        near = did_you_mean(spare[0], used)
        raise InvalidParameter(f"the query has no :{spare[0]}.{near}", hint="Leave the parameter out, or use it.")


def _literal(name: str, value: object) -> Literal:
    try:
        return _read(name, value)
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - a value of another's class may do anything when it is looked at
        raise InvalidParameter(f":{name} cannot be read.", hint=_SCALARS) from None


_SCALARS = "A parameter is a number, a text, a boolean, a date, a datetime or None."


def _read(name: str, value: object) -> Literal:
    """Return the value as Python's base type, ignoring overrides of a subclass."""
    kind = type(value)
    if issubclass(kind, np.generic) and not issubclass(kind, np.datetime64 | np.timedelta64):
        value = value.item()  # type: ignore[attr-defined]
        kind = type(value)
    if value is None:
        return Literal(None, Type.INTEGER)
    if kind is bool:
        return Literal(bool(value), Type.BOOLEAN)
    if issubclass(kind, int):
        return _whole(name, int.__index__(value))  # type: ignore[arg-type]
    if issubclass(kind, float):
        return _real(name, float.__float__(value))  # type: ignore[arg-type]
    if issubclass(kind, Decimal):
        return _real(name, math.nan if Decimal.is_nan(value) else Decimal.__float__(value))  # type: ignore[arg-type]
    if issubclass(kind, str):
        return _text(name, str.__str__(value))
    if issubclass(kind, datetime):
        return _timestamp(name, value)  # type: ignore[arg-type]
    if issubclass(kind, date):
        return Literal(day_number(date.fromordinal(date.toordinal(value))), Type.DATE)  # type: ignore[arg-type]
    if issubclass(kind, list | tuple | set | frozenset | np.ndarray):
        raise InvalidParameter(
            f":{name} cannot be a {kind.__name__}.",
            hint=f"Write one parameter for each value: x IN (:{name}1, :{name}2), with "
            f'params={{"{name}1": ..., "{name}2": ...}}.',
        )
    raise InvalidParameter(f":{name} cannot be a {kind.__name__}.", hint=_SCALARS)


def _whole(name: str, value: int) -> Literal:
    if value not in INT128:
        raise InvalidParameter(f":{name} must lie between -2^127 and 2^128 - 1.")
    return whole_number(value)


def _real(name: str, value: float) -> Literal:
    if not math.isfinite(value):
        raise InvalidParameter(f":{name} must be a finite number.", hint="For NULL pass None.")
    return Literal(value, Type.REAL)


def _text(name: str, value: str) -> Literal:
    if len(value) > MOST_CHARACTERS:
        raise InvalidParameter(f":{name} is longer than {MOST_CHARACTERS:,} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidParameter(f":{name} holds half of a character (a lone surrogate).") from None
    return Literal(value, Type.TEXT)


def _timestamp(name: str, value: datetime) -> Literal:
    try:
        microseconds = microsecond_number(value)
    except (AttributeError, TypeError, ValueError, OverflowError):
        microseconds = None
    if not isinstance(microseconds, int):  # pandas' NaT is a datetime
        raise InvalidParameter(f":{name} is no point in time.", hint="For NULL pass None.")
    if value.utcoffset() is not None:
        raise InvalidParameter(
            f":{name} has a time zone.",
            hint="Pass what clocks of the session's timezone show then (UTC where none is named), without a zone.",
        )
    return Literal(microseconds, Type.TIMESTAMP)
