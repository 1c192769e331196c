"""Casts of texts. `dpsql.schema.text_values` defines the accepted texts, for the kernel and for DuckDB.

DuckDB reads more texts: underscores in numbers, hexadecimal integers, an exponent in a DECIMAL (some of them wrongly),
names of time zones, years before 1 and after 9999, "epoch", "infinity". It ignores offsets of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Fact, Function, Vector, blank
from dpsql.plan.functions.casts import MOST_DIGITS, WIDTHS, decimal_digits, decimal_type, sql_integer, to_float
from dpsql.plan.functions.rules import Kernel, always, and_valid
from dpsql.plan.work import linear
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, Interval
from dpsql.schema.text_values import (
    BLANKS,
    FALSE_WORDS,
    FLOAT_FORM,
    INTEGER_FORM,
    MOMENT_FORM,
    MOST_READ,
    PLAIN_FORM,
    TRUE_WORDS,
    read_boolean,
    read_day,
    read_integer,
    read_moment,
    read_real,
)

_plain = re.compile(PLAIN_FORM)

_READING = linear(8_000)  # a pattern that fails late tries each of many zeros as a first digit


def _sql_form(pattern: str) -> str:
    """Return the part of {0} that matches, without surrounding space; for others an empty text, which no cast
    accepts."""
    bare = rf"[ \t\n\v\f\r]*({pattern})[ \t\n\v\f\r]*".replace("{", "{{").replace("}", "}}")
    return f"regexp_extract({{0}}, '^{bare}$', 1)"


def _reads(read: Callable[[str], Any]) -> Kernel:
    """Return a kernel that reads each distinct text once; NULL if that gives None."""

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        texts = vectors[0].values.tolist()
        known = {text: read(text) for text in set(texts)}
        cells = [known[text] for text in texts]
        present = np.array([cell is not None for cell in cells], dtype=bool)
        values: Array = np.array([blank(kind) if cell is None else cell for cell in cells], dtype=DTYPES[kind])
        return Vector(values, and_valid(present, vectors[0].valid))

    return kernel


def _to_integer(width: Interval) -> Kernel:
    return _reads(lambda text: read_integer(text, width))


_to_double = _reads(read_real)


def _to_float(kind: Type, vectors: Sequence[Vector]) -> Vector:
    return to_float(kind, [_to_double(kind, vectors)])


def _to_decimal(kind: Type, vectors: Sequence[Vector]) -> Vector:
    if not len(vectors[0]):
        return Vector(np.zeros(0))
    digits, scale = (int(each.values[0]) for each in vectors[1:])

    def read(text: str) -> float | None:
        if _plain.fullmatch(text := text.strip(BLANKS)) is None:
            return None
        context = Context(prec=len(text) + MOST_DIGITS, rounding=ROUND_HALF_UP)
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), context=context)
        return float(rounded) if abs(rounded) < 10 ** (digits - scale) else None

    return _reads(read)(kind, vectors[:1])


_SQL_OFFSET = f"regexp_replace({_sql_form(MOMENT_FORM)}, ' ([+Z-])', '\\1')"  # DuckDB accepts no space before an offset
_SQL_MOMENT = f"TRY_CAST(TRY_CAST({_SQL_OFFSET} AS TIMESTAMPTZ) AS TIMESTAMP)"
"""For an instance whose TimeZone is UTC. An offset can lead beyond the calendar."""
_BEFORE, _AFTER = "TIMESTAMP '0001-12-31 (BC) 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"
_SQL_TIMESTAMP = f"NULLIF(NULLIF(LEAST(GREATEST({_SQL_MOMENT}, {_BEFORE}), {_AFTER}), {_BEFORE}), {_AFTER})"
_WORDS = "|".join((*TRUE_WORDS, *FALSE_WORDS))


def _decimal_fact(facts: Sequence[Fact]) -> Fact:
    digits, scale = decimal_digits(facts[1:]) or (MOST_DIGITS, 0)
    return Fact(Interval(-(10 ** (digits - scale)), 10 ** (digits - scale)), meant=EVERYTHING)


def _from_text(word: str, result: Type, span: Interval, kernel: Kernel, sql: str) -> Function:
    return Function(
        f"text_to_{word.lower()}", (1, 1), always(result, lambda kinds: list(kinds) == [Type.TEXT]),
        lambda _facts: Fact(span).meaning(span if result is Type.BOOLEAN else EVERYTHING), kernel,
        f"CAST({{0}} AS {word})", "a text",
        work=_READING, reads=(MOST_READ,),
        sql=sql,
    )  # fmt: skip


FUNCTIONS = (
    # Via HUGEINT: some forms ('-0.4' as unsigned, many digits and an exponent) cannot be cast to smaller types
    # directly.
    *(_from_text(word, Type.INTEGER, width, _to_integer(width),
                 sql_integer(word, f"TRY_CAST({_sql_form(INTEGER_FORM)} AS HUGEINT)"))
      for word, width in WIDTHS.items()),
    _from_text("DOUBLE", Type.REAL, EVERYTHING, _to_double, f"TRY_CAST({_sql_form(FLOAT_FORM)} AS DOUBLE)"),
    _from_text("FLOAT", Type.REAL, EVERYTHING, _to_float,
               f"CAST(TRY_CAST(TRY_CAST({_sql_form(FLOAT_FORM)} AS DOUBLE) AS FLOAT) AS DOUBLE)"),
    Function("text_to_decimal", (3, 3), decimal_type(lambda kind: kind is Type.TEXT), _decimal_fact, _to_decimal,
             "CAST({0} AS DECIMAL({1}, {2}))", "a text",
             work=_READING, reads=(MOST_READ,),
             sql=f"CAST(TRY_CAST({_sql_form(PLAIN_FORM)} AS DECIMAL({{1}}, {{2}})) AS DOUBLE)"),
    _from_text("BOOLEAN", Type.BOOLEAN, BOOLEAN, _reads(read_boolean),
               f"TRY_CAST({_sql_form(f'(?i:{_WORDS})')} AS BOOLEAN)"),
    _from_text("DATE", Type.DATE, DAYS, _reads(read_day), f"TRY_CAST({_sql_form(MOMENT_FORM)} AS DATE)"),
    _from_text("TIMESTAMP", Type.TIMESTAMP, MICROSECONDS, _reads(read_moment), _SQL_TIMESTAMP),
)  # fmt: skip
