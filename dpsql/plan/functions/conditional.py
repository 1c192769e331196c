"""Functions that return one of their arguments: CASE, COALESCE, NULLIF, LEAST, GREATEST, CLAMP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql.plan.digits import common_width
from dpsql.plan.expressions import Array, Bools, Fact, Function, Vector
from dpsql.plan.functions.rules import Kernel, SqlRule, any_nullable, as_type, both_valid, in_result_type, of_one_type
from dpsql.plan.row_local import one_zero
from dpsql.plan.work import NUMBER, Size, compared, longest_length
from dpsql.schema import intervals
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval, hull


def _in_result_type(template: str) -> SqlRule:
    """Cast results of constants, which DuckDB may type as narrower integers, to BIGINT."""
    real, whole = in_result_type(template), in_result_type(f"CAST({template} AS BIGINT)")
    return lambda kinds, result: (whole if result is Type.INTEGER else real)(kinds, result)


def _hull(facts: Sequence[Fact]) -> Interval:
    """Return the hull of the ranges; integers become floats if there are floats."""
    return intervals.as_floats(hull(each.range for each in facts))


def _extreme_fact(choose: Callable[[Interval, Interval], Interval]) -> Callable[[Sequence[Fact]], Fact]:
    """Return the fact of LEAST or GREATEST. NULL arguments are skipped, as in DuckDB: the result is the extreme of the
    others."""

    def rule(facts: Sequence[Fact]) -> Fact:
        ranges = [(intervals.as_floats(each.range), each.nullable) for each in facts]
        sure = [span for span, nullable in ranges if not nullable]
        maybe = [span for span, nullable in ranges if nullable]
        if not sure:
            return Fact(hull(maybe), nullable=True)
        span = sure[0]
        for each in sure[1:]:
            span = choose(span, each)
        # An argument that may be NULL can only make the result more extreme.
        reached = [span, *(choose(span, each) for each in maybe)]
        return Fact(hull(reached), nullable=False)

    return rule


def _extreme(operation: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        extreme = Vector(as_type(vectors[0], kind), vectors[0].valid)
        for vector in vectors[1:]:
            extreme = _merge(extreme, Vector(as_type(vector, kind), vector.valid), operation)
        return Vector(extreme.values + 0.0 if kind is Type.REAL else extreme.values, extreme.valid)

    return kernel


def _merge(a: Vector, b: Vector, operation: Callable[[Any, Any], Any]) -> Vector:
    both = operation(a.values, b.values)
    if a.valid is None and b.valid is None:
        return Vector(both)
    has_a, has_b = a.where_valid(), b.where_valid()
    values = np.where(has_a & has_b, both, np.where(has_a, a.values, b.values))
    return Vector(values, has_a | has_b)


def _clamp_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of CLAMP(x, lo, hi) = min(max(x, lo), hi); NULL in any argument gives NULL."""
    value, low, high = (intervals.as_floats(each.range) for each in facts)
    return Fact(intervals.least(intervals.greatest(value, low), high), any_nullable(facts))


def _clamp(kind: Type, vectors: Sequence[Vector]) -> Vector:
    value, low, high = (as_type(each, kind) for each in vectors)
    return Vector(one_zero(np.minimum(np.maximum(value, low), high)), both_valid(vectors))


def _sql_one_zero(template: str) -> SqlRule:
    """Replace -0.0 by 0.0, like `one_zero`."""
    rule = _in_result_type(template)
    return lambda kinds, result: f"({rule(kinds, result)}) + 0e0" if result is Type.REAL else rule(kinds, result)


_SQL_CLAMP = _sql_one_zero(
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN LEAST(GREATEST({0}, {1}), {2}) END"
)


def _coalesce_fact(facts: Sequence[Fact]) -> Fact:
    return Fact(_hull(facts), all(each.nullable for each in facts), wide=common_width(facts))


def _coalesce(kind: Type, vectors: Sequence[Vector]) -> Vector:
    merged = Vector(as_type(vectors[0], kind), vectors[0].valid)
    for vector in vectors[1:]:
        if merged.valid is None:
            break
        values = np.where(merged.valid, merged.values, as_type(vector, kind))
        merged = Vector(values, None if vector.valid is None else merged.valid | vector.valid)
    return merged


def _nullif_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of NULLIF: NULL if the first is, or if both are equal, which disjoint ranges exclude."""
    first, second = (intervals.as_floats(each.range) for each in facts)
    return Fact(first, facts[0].nullable or first.intersect(second) is not None, wide=facts[0].wide)


def _nullif(kind: Type, vectors: Sequence[Vector]) -> Vector:
    first, second = (as_type(each, kind) for each in vectors)
    equal = np.asarray(first == second, dtype=bool) & vectors[1].where_valid()
    return Vector(first, vectors[0].where_valid() & ~equal)


# CASE: condition, value, condition, value, ..., value of ELSE.


def _case_type(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
    conditions, values = kinds[:-1:2], [*kinds[1::2], kinds[-1]]
    if len(kinds) % 2 == 0 or any(kind is not Type.BOOLEAN for kind in conditions):
        return None
    return of_one_type(values, facts)


def _case_fact(facts: Sequence[Fact]) -> Fact:
    values = [*facts[1::2], facts[-1]]
    return Fact(_hull(values), any_nullable(values), wide=common_width(values))


def _case(kind: Type, vectors: Sequence[Vector]) -> Vector:
    conditions, arms = vectors[:-1:2], [*vectors[1::2], vectors[-1]]
    first = _first_true(conditions)
    values = _pick(first, [as_type(arm, kind) for arm in arms])
    if all(arm.valid is None for arm in arms):
        return Vector(values)
    everywhere = np.broadcast_to(np.ones(1, dtype=bool), len(first))
    return Vector(values, _pick(first, [everywhere if arm.valid is None else arm.valid for arm in arms]))


def _first_true(conditions: Sequence[Vector]) -> Array:
    """Return the index of the first condition that is TRUE, for each cell; the number of conditions if none is.

    Uses arithmetic on the smallest integers: branches on random masks are unpredictable for a processor.
    """
    count = len(conditions)
    kind = np.uint8 if count < 256 else np.uint16 if count < 65_536 else np.uint32
    places: Array = np.full(len(conditions[0]), count, dtype=kind)
    for place in reversed(range(count)):
        condition = conditions[place]
        true = condition.values if condition.valid is None else condition.values & condition.valid
        places += (place - places) * true  # wraps around, and back
    return places


def _pick(first: Array, arms: Sequence[Array | Bools]) -> Array:
    """Return for each cell the value of the arm with that number."""
    if len(first) and all(arm.strides == (0,) for arm in arms):  # constants
        table: Array = np.array([arm[0] for arm in arms], dtype=arms[0].dtype)
        return table[first]
    picked = np.array(arms[-1])
    words = _WORDS.get(picked.dtype.itemsize) if picked.dtype != object else None
    for place, arm in enumerate(arms[:-1]):
        if words is None:
            cells = np.flatnonzero(first == place)
            picked[cells] = arm[cells]
            continue
        # Branch-free on bits: where the mask is all ones, copy the bits that differ from the arm.
        mask = (first == place).astype(words)
        np.negative(mask, out=mask)
        bits = picked.view(words)
        mask &= arm.view(words) ^ bits
        bits ^= mask
    return picked


_WORDS = {1: np.int8, 8: np.int64}
"""Integer types by the size of an array's cells."""


def _when_then(args: Sequence[str]) -> str:
    arms = " ".join(f"WHEN {test} THEN {value}" for test, value in zip(args[:-1:2], args[1::2], strict=True))
    return f"CASE {arms} ELSE {args[-1]} END"


def _show_case(args: Sequence[str]) -> str:
    """Return a CASE for plans: only the first arms if there are many."""
    if len(args) <= 2 * _MOST_SHOWN + 1:
        return _when_then(args)
    shown = _when_then([*args[: 2 * _SHOWN], args[-1]]).removesuffix(f" ELSE {args[-1]} END")
    return f"{shown} ... ({len(args) // 2 - _SHOWN:,} more) ELSE {args[-1]} END"


def _sql_case(kinds: Sequence[Type], result: Type) -> str:
    return _in_result_type(_when_then([f"{{{place}}}" for place in range(len(kinds))]))(kinds, result)


def _chosen(sizes: Sequence[Size]) -> float:
    return compared(sizes) + NUMBER * len(sizes)


_ONE_TYPE = "values of one type"
_MOST_SHOWN, _SHOWN = 32, 3
"""Plans show all arms of a CASE up to the first number; otherwise, only as many as the second."""

FUNCTIONS = (
    Function("case", (3, None), _case_type, _case_fact, _case, _show_case, "conditions, and values of one type",
             work=_chosen, length=longest_length, reads=None,
             sql=_sql_case),
    Function("coalesce", (1, None), of_one_type, _coalesce_fact, _coalesce, "COALESCE({args})", _ONE_TYPE,
             work=_chosen, length=longest_length, reads=None,
             sql=_in_result_type("COALESCE({args})"),
             syntax=("Coalesce(this, *expressions)",)),
    Function("nullif", (2, 2), of_one_type, _nullif_fact, _nullif, "NULLIF({args})", _ONE_TYPE,
             work=_chosen, length=longest_length, reads=None,
             sql=_in_result_type("NULLIF({args})"),
             syntax=("Nullif(this, expression)",)),
    Function("least", (1, None), of_one_type, _extreme_fact(intervals.least), _extreme(np.minimum),
             "LEAST({args})", _ONE_TYPE,
             work=_chosen, length=longest_length, reads=None,
             sql=_sql_one_zero("LEAST({args})"),
             syntax=("Least(this, *expressions)",)),
    Function("greatest", (1, None), of_one_type, _extreme_fact(intervals.greatest), _extreme(np.maximum),
             "GREATEST({args})", _ONE_TYPE,
             work=_chosen, length=longest_length, reads=None,
             sql=_sql_one_zero("GREATEST({args})"),
             syntax=("Greatest(this, *expressions)",)),
    Function("clamp", (3, 3), of_one_type, _clamp_fact, _clamp, "CLAMP({args})", "a value and its two limits",
             work=_chosen, length=longest_length, reads=None,
             sql=_SQL_CLAMP,
             syntax=("CLAMP",)),
)  # fmt: skip
