"""Interval arithmetic over an output expression, group by group. Parts that read only keys are computed exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Expr, Fact, Literal, Slot, walk
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval, hull, point


def points_of_keys(release: Release, released: ReleasedValues, expr: Expr) -> list[dict[Expr, Interval]]:
    """Return the numbers and conditions that an expression computes from keys only, in each group: they have no noise.

    A NULL number is EVERYTHING; a NULL condition is left out."""
    points: list[dict[Expr, Interval]] = [{} for _ in range(released.groups)]
    for part in set(_parts_over_keys(expr, len(release.query.plan.keys))):
        vector = evaluate(part, lambda slot: released.keys[slot.index], released.groups)
        for row, (value, there) in enumerate(zip(vector.values.tolist(), vector.where_valid().tolist(), strict=True)):
            known = there and not math.isnan(value)
            if known or part.type is not Type.BOOLEAN:
                points[row][part] = point(value) if known else EVERYTHING
    return points


def _parts_over_keys(expr: Expr, keys: int) -> Iterator[Expr]:
    """Yield the largest parts that are numbers or conditions and read only keys."""
    leaves = [part for part in walk(expr) if not isinstance(part, Call | Literal)]
    plain = expr.type.numeric or expr.type is Type.BOOLEAN
    if leaves and plain and all(isinstance(each, Slot) and 0 <= each.index < keys for each in leaves):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _parts_over_keys(arg, keys)


def propagate(expr: Expr, known: Mapping[Expr, Interval]) -> Interval:
    """Return the interval of an expression from those of its parts; EVERYTHING if the value is NULL."""
    if expr in known or isinstance(expr, Slot):
        return known.get(expr, EVERYTHING)
    if isinstance(expr, Literal):
        return EVERYTHING if expr.value is None else expr.fact.range
    assert isinstance(expr, Call)
    args = expr.args
    if expr.function.name == "case":
        args = tuple(_arms(expr, known))
        values = [arg for arg in args if not _is_null(arg)]
        return hull(propagate(arg, known) for arg in values) if values else EVERYTHING
    if expr.function.name == "coalesce":
        args = tuple(arg for arg in args if not _is_null(arg))
        if not args:
            return EVERYTHING
    return expr.function.fact_of([Fact(propagate(arg, known), nullable=False) for arg in args]).range


def _arms(case: Call, known: Mapping[Expr, Interval]) -> Iterator[Expr]:
    """Yield the values that a CASE may take, given its conditions over keys."""
    for condition, value in zip(case.args[:-1:2], case.args[1::2], strict=True):
        truth = known.get(condition)
        if truth != point(0):
            yield value
        if truth == point(1):
            return
    yield case.args[-1]


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None
