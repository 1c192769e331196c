"""CAST and TRY_CAST, which mean the same here: a cast that fails is NULL.

`to_X` casts a number or a boolean, `text_to_X` a text (text_casts.py), `X_to_text` to text. A DECIMAL is stored as
REAL, rounded to its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Bools, Fact, Function, Vector
from dpsql.plan.functions.rounding import EXACT_POWERS
from dpsql.plan.functions.rules import (
    FactRule,
    Kernel,
    TypeRule,
    always,
    and_valid,
    as_type,
    away_from_zero,
    open_ends,
)
from dpsql.plan.work import CELLS, NUMBERS, fixed_length
from dpsql.schema import intervals
from dpsql.schema.calendar import DAYS, MICROSECONDS, show_date, show_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, INT64, Interval

WIDTHS: Mapping[str, Interval] = {
    "TINYINT": Interval(-(2**7), 2**7 - 1),
    "SMALLINT": Interval(-(2**15), 2**15 - 1),
    "INTEGER": Interval(-(2**31), 2**31 - 1),
    "BIGINT": INT64,
    "UTINYINT": Interval(0, 2**8 - 1),
    "USMALLINT": Interval(0, 2**16 - 1),
    "UINTEGER": Interval(0, 2**32 - 1),
    "UBIGINT": Interval(0, INT64.upper),
}
"""DuckDB's integer types, within the integers of the language."""

_WORDS: Mapping[str, str] = {
    **{word: word.lower() for word in WIDTHS},
    "INT": "integer",
    "UINT": "uinteger",
    "INT128": "bigint",
    "UINT128": "ubigint",
    "DOUBLE": "double",
    "FLOAT": "float",
    "DECIMAL": "decimal",
    "BOOLEAN": "boolean",
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "text"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), "timestamp"),
}
"""The parser's word for a type -> the name in the records. HUGEINT (INT128) is equivalent to BIGINT here."""

_OWN_WORD: Mapping[Type, str] = {
    Type.INTEGER: "bigint",
    Type.REAL: "double",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


def cast_name(source: Type, target: str) -> str | None:
    """Return the record that casts `source` to a type, by the parser's word for it ("INT", "DECIMAL").

    "" if no cast is needed, None if there is none. DECIMAL takes two more constant arguments: its total number of
    digits, and those after the point.
    """
    word = _WORDS.get(target)
    if word is None or source.opaque:
        return None
    if word == _OWN_WORD[source]:
        return ""
    if source is Type.TEXT:
        return f"text_to_{word}"
    if word == "text" or (source.temporal and word in ("date", "timestamp")):
        return f"{source}_to_{word}"
    return None if source.temporal or word in ("date", "timestamp") else f"to_{word}"


def _nearest(end: float) -> float:
    """Round halves to the even integer, like the kernel; infinity is unchanged."""
    return end if abs(end) == intervals.INFINITY else round(end)


def _integer_fact(width: Interval) -> FactRule:
    def rule(facts: Sequence[Fact]) -> Fact:
        held = Interval(_nearest(facts[0].range.lower), _nearest(facts[0].range.upper))
        inside = held.intersect(width)
        return Fact(inside or width, facts[0].nullable or inside != held).meaning(held)

    return rule


def _to_integer(width: Interval) -> Kernel:
    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        values = vectors[0].values
        if values.dtype == np.bool_:
            return Vector(values.astype(np.int64), vectors[0].valid)
        whole = np.rint(values) if values.dtype == np.float64 else values
        fits = (whole >= width.lower) & (whole <= width.upper)
        if values.dtype == np.float64:
            fits &= whole < -float(INT64.lower)  # as a double, the largest integer is rounded up
        return Vector(np.where(fits, whole, 0).astype(np.int64), and_valid(fits, vectors[0].valid))

    return kernel


def sql_integer(word: str, value: str) -> str:
    """Return a cast to one of DuckDB's integer types, as BIGINT."""
    width = WIDTHS[word]
    if width.upper < INT64.upper:
        return f"CAST(TRY_CAST({value} AS {word}) AS BIGINT)"
    whole = f"TRY_CAST({value} AS BIGINT)"
    return whole if width == INT64 else f"NULLIF(GREATEST({whole}, -1), -1)"


def _float_fact(facts: Sequence[Fact]) -> Fact:
    """Return the ends as floats of 32 bits, rounded outward. Larger finite values are NULL."""
    ends = []
    with np.errstate(over="ignore"):
        for end, away in ((facts[0].range.lower, -np.inf), (facts[0].range.upper, np.inf)):
            near = np.float32(intervals.float_of(end))
            ends.append(float(near if float(near) == end else np.nextafter(near, np.float32(away))))
    held = Interval(*ends)
    return Fact(held, facts[0].nullable or not held.bounded)


def to_float(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    """Round to 32 bits. Infinity is unchanged, but no finite value becomes infinite."""
    values = vectors[0].values
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    fits = np.isfinite(narrow)
    if values.dtype == np.float64:
        fits |= np.isinf(values)
    return Vector(narrow.astype(np.float64), and_valid(fits, vectors[0].valid))


MOST_DIGITS = 38
MOST_WRITTEN = 32
"""Maximum length of a number, date or timestamp as text."""


def decimal_digits(facts: Sequence[Fact]) -> tuple[int, int] | None:
    """Return a DECIMAL's total digits and digits after the point, from the facts of two constants; None if invalid."""
    if any(each.nullable or each.range.lower != each.range.upper for each in facts):
        return None
    digits, scale = (int(each.range.lower) if each.range.bounded else -1 for each in facts)
    return (digits, scale) if 0 <= scale <= digits and 1 <= digits <= MOST_DIGITS else None


def decimal_type(takes: Callable[[Type], bool]) -> TypeRule:
    def rule(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
        fits = takes(kinds[0]) and list(kinds[1:]) == [Type.INTEGER, Type.INTEGER]
        return Type.REAL if fits and decimal_digits(facts[1:]) else None

    return rule


def whole_decimals(digits: int, scale: int) -> Interval:
    """Return the range of a DECIMAL's scaled integers."""
    most = 10 ** (digits - scale) - 1
    return Interval(max(-most, INT64.lower), min(most, INT64.upper))


def _decimal(values: Array, digits: int, scale: int) -> tuple[Array, Bools]:
    """Return the values rounded to `scale` digits, and which of them have at most `digits` digits."""
    if values.dtype != np.float64:
        whole = values.astype(np.int64)
        ends = whole_decimals(digits, scale)
        return whole.astype(np.float64), (whole >= ends.lower) & (whole <= ends.upper)
    power = float(f"1e{scale}")
    with np.errstate(all="ignore"):
        scaled = away_from_zero(values * power) + 0.0  # a DECIMAL has only one zero
        fits = np.abs(scaled) < float(f"1e{digits}")
        whole = np.where(fits, scaled, 0.0)
        return (whole / power if scale <= EXACT_POWERS else _nearest_decimals(whole, scale)), fits


def _nearest_decimals(whole: Array, scale: int) -> Array:
    """Return the float nearest to each whole / 10^scale, where 10^scale is not a float."""
    return np.array([int(each) / 10**scale for each in whole.tolist()])


def _to_decimal(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    if not len(vectors[0]):
        return Vector(np.zeros(0))
    values, fits = _decimal(vectors[0].values, int(vectors[1].values[0]), int(vectors[2].values[0]))
    return Vector(values, and_valid(fits, vectors[0].valid))


def _decimal_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact from the range's ends: the kernel is monotone. All values fit into the digits."""
    digits, scale = decimal_digits(facts[1:]) or (MOST_DIGITS, 0)
    before = facts[0].range.intersect(INT64) or INT64 if facts[0].whole else facts[0].range
    limit = Interval(-(10 ** (digits - scale)), 10 ** (digits - scale))
    inside = before.intersect(limit)
    if inside is None:
        return Fact(limit, nullable=True).meaning(facts[0].range)
    given = np.array([inside.lower, inside.upper], dtype=np.int64 if facts[0].whole else np.float64)
    rounded, fits = _decimal(given, digits, scale)
    ends = np.where(fits, rounded, given.astype(np.float64))
    result = intervals.as_floats(inside) if facts[0].whole else Interval(float(ends[0]), float(ends[1]))
    return Fact(result, facts[0].nullable or inside != before or not fits.all()).meaning(
        open_ends(result, math.isinf(facts[0].range.lower), math.isinf(facts[0].range.upper))
    )


def _sql_decimal(kinds: Sequence[Type], _result: Type) -> str:
    """Return the SQL of a DECIMAL cast. The digits are part of a type, so they must be bare numbers."""
    value = "CAST({0} AS BIGINT)" if kinds[0] is Type.BOOLEAN else "{0}"
    return f"CAST(TRY_CAST({value} AS DECIMAL({{1}}, {{2}})) AS DOUBLE)"


def _writes(kind: Type, write: Callable[[Any], str], limit: Interval = EVERYTHING) -> Kernel:
    """Return a cell-by-cell kernel; cell values of NULLs are first clipped to the limit."""

    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        values = as_type(vectors[0], kind)
        if limit.bounded:
            values = np.clip(values, limit.lower, limit.upper)
        return Vector(np.array([write(value) for value in values.tolist()], dtype=object), vectors[0].valid)

    return kernel


def _number_or_boolean(kind: Type) -> bool:
    return kind.numeric or kind is Type.BOOLEAN


def _from_number(result: Type) -> TypeRule:
    return always(result, lambda kinds: all(map(_number_or_boolean, kinds)))


def _text_fact(source: Type) -> FactRule:
    """Return the maximum text length of a whole number between bounds, of a boolean or of a date."""
    lengths = {Type.BOOLEAN: len("false"), Type.DATE: len("2024-12-31")}

    def rule(facts: Sequence[Fact]) -> Fact:
        most, held = lengths.get(source), facts[0].range
        if source is Type.INTEGER and facts[0].limited:
            most = max(len(str(int(held.lower))), len(str(int(held.upper))))
        return Fact(EVERYTHING, facts[0].nullable, most=most)

    return rule


def _to_text(source: Type, write: Callable[[Any], str], limit: Interval = EVERYTHING) -> Function:
    return Function(
        f"{source}_to_text", (1, 1), always(Type.TEXT, lambda kinds: list(kinds) == [source]),
        _text_fact(source), _writes(source, write, limit),
        "CAST({0} AS TEXT)", f"a value of type {source}",
        work=CELLS, length=fixed_length(MOST_WRITTEN),
        sql="CAST({0} AS VARCHAR)",
    )  # fmt: skip


_WANTS = "a number or a boolean"

FUNCTIONS = (
    *(Function(f"to_{word.lower()}", (1, 1), _from_number(Type.INTEGER), _integer_fact(width), _to_integer(width),
               f"CAST({{0}} AS {word})", _WANTS,
               work=NUMBERS,
               sql=sql_integer(word, "{0}")) for word, width in WIDTHS.items()),
    Function("to_double", (1, 1), _from_number(Type.REAL),
             lambda facts: Fact(intervals.as_floats(facts[0].range), facts[0].nullable),
             lambda _kind, vectors: Vector(as_type(vectors[0], Type.REAL), vectors[0].valid),
             "CAST({0} AS DOUBLE)", _WANTS,
             work=NUMBERS,
             sql="CAST({0} AS DOUBLE)"),
    Function("to_float", (1, 1), _from_number(Type.REAL), _float_fact, to_float, "CAST({0} AS FLOAT)", _WANTS,
             work=NUMBERS,
             sql="CAST(TRY_CAST({0} AS FLOAT) AS DOUBLE)"),
    Function("to_decimal", (3, 3), decimal_type(_number_or_boolean), _decimal_fact, _to_decimal,
             "CAST({0} AS DECIMAL({1}, {2}))", _WANTS,
             work=NUMBERS,
             sql=_sql_decimal),
    Function("to_boolean", (1, 1), _from_number(Type.BOOLEAN), lambda facts: Fact(BOOLEAN, facts[0].nullable),
             lambda _kind, vectors: Vector(vectors[0].values != 0, vectors[0].valid),
             "CAST({0} AS BOOLEAN)", _WANTS,
             work=NUMBERS,
             sql="CAST({0} AS BOOLEAN)"),
    _to_text(Type.INTEGER, str),
    _to_text(Type.REAL, repr),
    _to_text(Type.BOOLEAN, lambda value: "true" if value else "false"),
    _to_text(Type.DATE, show_date, DAYS),
    _to_text(Type.TIMESTAMP, show_timestamp, MICROSECONDS),
)  # fmt: skip
