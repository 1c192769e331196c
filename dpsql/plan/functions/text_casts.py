"""Casts of texts. What a text may look like is said by one pattern, for the kernel and for DuckDB.

DuckDB by itself reads more than these: underscores in numbers, hexadecimal integers, an exponent in a DECIMAL (some of
them wrongly), time zones, years before 1 and after 9999, "epoch", "infinity".
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
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, read_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, Interval

PLAIN_FORM = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,3})?"
FLOAT_FORM = PLAIN_FORM + _EXPONENT + r"|[+-]?(?i:inf|infinity)"
INTEGER_FORM = r"[+-]?(?:0*[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})" + _EXPONENT  # DuckDB reads no longer ones
_YEAR = r"(?:[0-9]{0,3}[1-9]|[0-9]{0,2}[1-9]0|[0-9]?[1-9]00|[1-9]000)"  # 1 to 9999
_DAY = _YEAR + r"(?:-[0-9]{1,2}-|/[0-9]{1,2}/)[0-9]{1,2}"
_TIME = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::[0-5]?[0-9](?:\.[0-9]+)?)?"
_MOMENT = rf"{_DAY}(?:(?: +|T){_TIME})?"
_TRUTHS = {
    **dict.fromkeys(("true", "t", "1", "yes", "y"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n"), False),
}


def _form(pattern: str) -> str:
    return rf"[ \t\n\v\f\r]*({pattern})[ \t\n\v\f\r]*"


def _sql_form(pattern: str) -> str:
    """The part of {0} that matches, without the space around it; an empty text, which no cast takes, for others."""
    bare = _form(pattern).replace("{", "{{").replace("}", "}}")
    return f"regexp_extract({{0}}, '^{bare}$', 1)"


def _in_form(pattern: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """`read` for the part of a text that matches, None for texts that do not."""
    form = re.compile(_form(pattern))

    def try_read(text: str) -> Any:
        found = form.fullmatch(text)
        return None if found is None else read(found[1])

    return try_read


def _reads(read: Callable[[str], Any]) -> Kernel:
    """Each distinct text is read once; NULL where that gives None."""

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        texts = vectors[0].values.tolist()
        known = {text: read(text) for text in set(texts)}
        cells = [known[text] for text in texts]
        present = np.array([cell is not None for cell in cells], dtype=bool)
        values: Array = np.array([blank(kind) if cell is None else cell for cell in cells], dtype=DTYPES[kind])
        return Vector(values, and_valid(present, vectors[0].valid))

    return kernel


def _read_integer(width: Interval) -> Callable[[str], int | None]:
    """Halves away from zero, as DuckDB reads texts (and no floats)."""

    def read(text: str) -> int | None:
        whole = Decimal(text).to_integral_value(ROUND_HALF_UP)
        return int(whole) if width.lower <= whole <= width.upper else None

    return read


_to_double = _reads(_in_form(FLOAT_FORM, float))


def _to_float(kind: Type, vectors: Sequence[Vector]) -> Vector:
    return to_float(kind, [_to_double(kind, vectors)])


def _to_decimal(kind: Type, vectors: Sequence[Vector]) -> Vector:
    if not len(vectors[0]):
        return Vector(np.zeros(0))
    digits, scale = (int(each.values[0]) for each in vectors[1:])

    def read(text: str) -> float | None:
        context = Context(prec=len(text) + MOST_DIGITS, rounding=ROUND_HALF_UP)
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), context=context)
        return float(rounded) if abs(rounded) < 10 ** (digits - scale) else None

    return _reads(_in_form(PLAIN_FORM, read))(kind, vectors[:1])


def _read_day(text: str) -> int | None:
    moment = read_timestamp(text)
    return None if moment is None else moment // MICROSECONDS_A_DAY


def _decimal_fact(facts: Sequence[Fact]) -> Fact:
    digits, scale = decimal_digits(facts[1:]) or (MOST_DIGITS, 0)
    return Fact(Interval(-(10 ** (digits - scale)), 10 ** (digits - scale)), meant=EVERYTHING)


def _from_text(word: str, result: Type, span: Interval, kernel: Kernel, sql: str) -> Function:
    return Function(
        f"text_to_{word.lower()}", (1, 1), always(result, lambda kinds: list(kinds) == [Type.TEXT]),
        lambda _facts: Fact(span).meaning(span if result is Type.BOOLEAN else EVERYTHING), kernel,
        f"CAST({{0}} AS {word})", "a text",
        sql=sql,
    )  # fmt: skip


FUNCTIONS = (
    # By way of HUGEINT: some forms ('-0.4' as unsigned, many digits and an exponent) fail to be read as smaller types.
    *(_from_text(word, Type.INTEGER, width, _reads(_in_form(INTEGER_FORM, _read_integer(width))),
                 sql_integer(word, f"TRY_CAST({_sql_form(INTEGER_FORM)} AS HUGEINT)"))
      for word, width in WIDTHS.items()),
    _from_text("DOUBLE", Type.REAL, EVERYTHING, _to_double, f"TRY_CAST({_sql_form(FLOAT_FORM)} AS DOUBLE)"),
    _from_text("FLOAT", Type.REAL, EVERYTHING, _to_float,
               f"CAST(TRY_CAST(TRY_CAST({_sql_form(FLOAT_FORM)} AS DOUBLE) AS FLOAT) AS DOUBLE)"),
    Function("text_to_decimal", (3, 3), decimal_type(lambda kind: kind is Type.TEXT), _decimal_fact, _to_decimal,
             "CAST({0} AS DECIMAL({1}, {2}))", "a text",
             sql=f"CAST(TRY_CAST({_sql_form(PLAIN_FORM)} AS DECIMAL({{1}}, {{2}})) AS DOUBLE)"),
    _from_text("BOOLEAN", Type.BOOLEAN, BOOLEAN, _reads(lambda text: _TRUTHS.get(text.lower())),
               "TRY_CAST({0} AS BOOLEAN)"),
    _from_text("DATE", Type.DATE, DAYS, _reads(_in_form(_MOMENT, _read_day)),
               f"TRY_CAST({_sql_form(_MOMENT)} AS DATE)"),
    _from_text("TIMESTAMP", Type.TIMESTAMP, MICROSECONDS, _reads(_in_form(_MOMENT, read_timestamp)),
               f"TRY_CAST({_sql_form(_MOMENT)} AS TIMESTAMP)"),
)  # fmt: skip
