"""Digits of whole numbers that may exceed 64 bits, as text expressions."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.plan.expressions import NOTHING, Call, Column, Expr, Fact, Literal
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64, hull


class WholeFloat(float):
    """The double of a constant whole number of more than 64 bits, with the exact number (`whole`)."""

    whole: int

    @classmethod
    def of(cls, whole: int) -> WholeFloat:
        made = cls(whole)
        made.whole = whole
        return made


def whole_number(value: int) -> Literal:
    """Return a constant: an INTEGER, or a REAL if it exceeds 64 bits."""
    return Literal(value, Type.INTEGER) if value in INT64 else Literal(WholeFloat.of(value), Type.REAL)


def together(facts: Sequence[Fact]) -> Fact:
    """Return the fact of values that each satisfy one of these facts."""
    said = hull(each.said for each in facts)
    wide = common_width(facts) if all(each.wide for each in facts) else 0
    return Fact(hull(each.range for each in facts), any(each.nullable for each in facts), wide=wide).meaning(said)


def common_width(facts: Sequence[Fact]) -> int:
    """Return the width of digits from one of several values; all are digits or NULL if any is. Digits of constants and
    of integers may have a sign."""
    widths = [each.wide for each in facts if not (each.nullable and each.range == NOTHING)]
    most = max(map(abs, widths), default=0)
    return most if min(widths, default=0) > 0 else -most


def number_below(expr: Expr) -> Expr:
    """Return the integer below a cast to digits, or the column of digits below a cast to a number; any other expression
    unchanged. Comparisons with digits of larger numbers make the former. Executors compare unit keys as numbers."""
    if not isinstance(expr, Call):
        return expr
    name, number = expr.function.name, expr.args[0]
    of_wide = name in ("text_to_bigint", "text_to_double") and isinstance(number, Column) and number.fact.wide
    return number if of_wide or name == "integer_to_text" else expr
