"""Parameters of a query, `:name`: typed scalars that are bound as constants and never pasted into the text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from dpsql.calendar import day_number, microsecond_number
from dpsql.errors import InvalidParameter, did_you_mean
from dpsql.schema import Type
from dpsql.sql.expressions import Literal

MOST_CHARACTERS = 64 * 1024
_LARGEST_INTEGER = 2**62

Params = tuple[tuple[str, Literal], ...]
"""Names and values, in order of names: hashable, for the plan cache."""


def params_of(given: object) -> Params:
    """The parameters that a caller passes as a mapping. Raises InvalidParameter."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            f"params must map names to values, got {type(given).__name__}.", hint='Write params={"low": 20}.'
        )
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidParameter(f"a parameter's name must be an identifier, got {str(name)[:40]!r}.")
    return tuple(sorted(((str(name), _literal(name, value)) for name, value in given.items()), key=lambda p: p[0]))


def check_all_used(params: Params, used: frozenset[str]) -> None:
    """Refuse a value that no `:name` of the text asks for: it was probably meant. Raises InvalidParameter."""
    spare = [name for name, _ in params if name not in used]
    if spare:
        near = did_you_mean(spare[0], used)
        raise InvalidParameter(f"the query has no :{spare[0]}.{near}", hint="Leave the parameter out, or use it.")


def _literal(name: str, value: object) -> Literal:
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None:
        return Literal(None, Type.INTEGER)
    if isinstance(value, bool):
        return Literal(value, Type.BOOLEAN)
    if isinstance(value, int):
        if abs(value) > _LARGEST_INTEGER:
            raise InvalidParameter(f":{name} must lie within +/-2^62.")
        return Literal(int(value), Type.INTEGER)
    if isinstance(value, float | Decimal):
        number = float(value) if not (isinstance(value, Decimal) and value.is_nan()) else math.nan
        if not math.isfinite(number):
            raise InvalidParameter(f":{name} must be a finite number.", hint="For NULL pass None.")
        return Literal(number, Type.REAL)
    if isinstance(value, str):
        return _text(name, str.__str__(value))
    if isinstance(value, datetime):
        return _timestamp(name, value)
    if isinstance(value, date):
        return Literal(day_number(value), Type.DATE)
    raise InvalidParameter(
        f":{name} cannot be a {type(value).__name__}.",
        hint="A parameter is a number, a text, a boolean, a date, a datetime or None.",
    )


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
        found = microsecond_number(value)
    except (AttributeError, TypeError, ValueError, OverflowError):
        found = None
    if not isinstance(found, int):  # pandas' NaT is a datetime
        raise InvalidParameter(f":{name} is no point in time.", hint="For NULL pass None.")
    return Literal(found, Type.TIMESTAMP)
