"""Functions that choose among their arguments: LEAST, GREATEST, CLAMP, COALESCE, NULLIF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql import intervals
from dpsql.intervals import Interval, hull
from dpsql.schema import Type
from dpsql.sql.expressions import Array, Fact, Function, Vector
from dpsql.sql.functions.rules import all_numeric, any_nullable, as_type, both_valid, common, widest


def _extreme_fact(choose: Callable[[Interval, Interval], Interval]) -> Callable[[Sequence[Fact]], Fact]:
    """NULL arguments are skipped, as in DuckDB: whichever of them remain, the result is their extreme."""

    def rule(facts: Sequence[Fact]) -> Fact:
        sure = [each.range for each in facts if not each.nullable]
        maybe = [each.range for each in facts if each.nullable]
        if not sure:
            return Fact(hull(maybe), nullable=True)
        held = sure[0]
        for each in sure[1:]:
            held = choose(held, each)
        # An argument that may be NULL can only pull the result further the same way.
        reached = [held, *(choose(held, each) for each in maybe)]
        return Fact(hull(reached), nullable=False)

    return rule


def _extreme(operation: Callable[[Any, Any], Any]) -> Callable[[Type, Sequence[Vector]], Vector]:
    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        held = Vector(as_type(vectors[0], kind), vectors[0].valid)
        for vector in vectors[1:]:
            held = _merge(held, Vector(as_type(vector, kind), vector.valid), operation)
        return held

    return kernel


def _merge(a: Vector, b: Vector, operation: Callable[[Any, Any], Any]) -> Vector:
    both = operation(a.values, b.values)
    if a.valid is None and b.valid is None:
        return Vector(both)
    has_a, has_b = a.where_valid(), b.where_valid()
    values = np.where(has_a & has_b, both, np.where(has_a, a.values, b.values))
    return Vector(values, has_a | has_b)


def _clamp_fact(facts: Sequence[Fact]) -> Fact:
    """CLAMP(x, lo, hi) = min(max(x, lo), hi); NULL in any argument gives NULL."""
    low = intervals.greatest(facts[0].range, facts[1].range)
    return Fact(intervals.least(low, facts[2].range), any_nullable(facts))


def _clamp(kind: Type, vectors: Sequence[Vector]) -> Vector:
    value, low, high = (as_type(each, kind) for each in vectors)
    clipped: Array = np.minimum(np.maximum(value, low), high)
    return Vector(clipped, both_valid(vectors))


def _same(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    kind = common(kinds)
    return None if kind is Type.OTHER else kind


def _coalesce_fact(facts: Sequence[Fact]) -> Fact:
    return Fact(hull(each.range for each in facts), all(each.nullable for each in facts))


def _coalesce(kind: Type, vectors: Sequence[Vector]) -> Vector:
    held = Vector(as_type(vectors[0], kind), vectors[0].valid)
    for vector in vectors[1:]:
        if held.valid is None:
            break
        values = np.where(held.valid, held.values, as_type(vector, kind))
        held = Vector(values, None if vector.valid is None else held.valid | vector.valid)
    return held


def _nullif(kind: Type, vectors: Sequence[Vector]) -> Vector:
    first, second = (as_type(each, kind) for each in vectors)
    equal = np.asarray(first == second, dtype=bool) & vectors[1].where_valid()
    return Vector(first, vectors[0].where_valid() & ~equal)


FUNCTIONS = (
    Function("least", (1, None), widest, _extreme_fact(intervals.least), _extreme(np.minimum),
             "LEAST({args})", "numbers",
             syntax=("Least(this, *expressions)",)),
    Function("greatest", (1, None), widest, _extreme_fact(intervals.greatest), _extreme(np.maximum),
             "GREATEST({args})", "numbers",
             syntax=("Greatest(this, *expressions)",)),
    Function("clamp", (3, 3), lambda k, _f: common(k) if all_numeric(k) else None, _clamp_fact, _clamp,
             "CLAMP({args})", "a number and its two limits",
             syntax=("CLAMP",)),
    Function("coalesce", (1, None), _same, _coalesce_fact, _coalesce, "COALESCE({args})", "values of one type",
             syntax=("Coalesce(this, *expressions)",)),
    Function("nullif", (2, 2), _same, lambda f: Fact(f[0].range, nullable=True), _nullif, "NULLIF({args})",
             "values of one type",
             syntax=("Nullif(this, expression)",)),
)  # fmt: skip
