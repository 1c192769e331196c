"""Windowed sums and averages of reals within a privacy unit, added in integer steps.

A sum of doubles depends on the order of addition, which differs between engines. So x is counted in steps of a power of
two, at most 2^40 of them to an end of its range. A double times a power of two is exact, all engines round it to the
same integer, and sums of integers are exact. Each value moves by at most half a step: less than 1e-12 of the larger
end.
"""

from __future__ import annotations

import math

from sqlglot import exp

from dpsql.errors import MissingBounds, Span
from dpsql.plan.expressions import Expr, Fact, Literal
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import ScalarBinder

_MOST_STEPS = 40
"""Bits: sums of 2^22 rows, more than a window may have, stay within 2^62."""
_LARGEST_POWER = 1000
"""Both the power and its inverse are doubles."""


def steps_in_one(word: str, argument: Expr, held: Fact, span: Span | None) -> Literal:
    """Return the number of steps in 1 for SUM or AVG OVER, a power of two. Raises MissingBounds."""
    end = max(abs(held.range.lower), abs(held.range.upper))
    if not math.isfinite(end):
        raise MissingBounds(
            f"{word} OVER (...) of reals needs bounds for {argument}: it is added in steps whose length they give.",
            span=span,
            hint=f"Declare bounds for the columns in it, or write {word}(CLAMP({argument}, low, high)) OVER (...) "
            "with two numbers in place of low and high.",
        )
    power = min(_MOST_STEPS - math.frexp(end)[1], _LARGEST_POWER)
    return Literal(math.ldexp(1.0, power), Type.REAL)


def in_steps(binder: ScalarBinder, argument: Expr, steps: Literal, node: exp.Expr) -> Expr:
    """Return a real as the nearest integer number of steps."""
    return binder.apply("to_bigint", node, [binder.apply("multiply", node, [argument, steps])])


def of_steps(binder: ScalarBinder, counted: Expr, steps: Literal, node: exp.Expr) -> Expr:
    """Return the real for a number of steps."""
    assert isinstance(steps.value, float)
    return binder.apply("of_steps", node, [counted, Literal(1 / steps.value, Type.REAL)])
