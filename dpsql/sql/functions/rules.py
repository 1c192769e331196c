"""Rules that many functions share: types, facts and NULL handling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsql.intervals import Interval
from dpsql.schema import Type
from dpsql.sql.expressions import DTYPES, Array, Bools, Fact, Vector

LARGEST_INTEGER = 2**62

TypeRule = Callable[[Sequence[Type], Sequence[Fact]], Type | None]


def all_numeric(kinds: Sequence[Type]) -> bool:
    return all(kind.numeric for kind in kinds)


def common(kinds: Sequence[Type]) -> Type | None:
    """The one type that all have, REAL for numbers of both kinds, None where they do not mix."""
    if len(set(kinds)) == 1:
        return kinds[0]
    return Type.REAL if all_numeric(kinds) else None


def comparable(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    kind = common(kinds)
    return None if kind is None or kind is Type.OTHER else Type.BOOLEAN


def always(kind: Type, takes: Callable[[Sequence[Type]], bool] = all_numeric) -> TypeRule:
    """Result of one type for all arguments that fit."""
    return lambda kinds, _facts: kind if takes(kinds) else None


def widest(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    """INTEGER for integers, else REAL: for results that are never larger than an argument."""
    return common(kinds) if all_numeric(kinds) else None


def unless_overflow(range_of: Callable[..., Interval]) -> TypeRule:
    """INTEGER where all are integers and the declared ranges keep the result within +/-2^62, else REAL.

    Overflow is thus decided before any row is read: a result that could leave 64 bits is computed in floats.
    """

    def rule(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
        if not all_numeric(kinds):
            return None
        whole = all(kind is Type.INTEGER for kind in kinds)
        return Type.INTEGER if whole and range_of(*[f.range for f in facts]).magnitude <= LARGEST_INTEGER else Type.REAL

    return rule


def any_nullable(facts: Sequence[Fact]) -> bool:
    return any(each.nullable for each in facts)


def boolean_fact(facts: Sequence[Fact]) -> Fact:
    return Fact(Interval(0, 1), any_nullable(facts))


def strict_fact(range_of: Callable[..., Interval]) -> Callable[[Sequence[Fact]], Fact]:
    """NULL in, NULL out; an infinite range can also make NaN, which is NULL (inf - inf, 0 * inf)."""

    def rule(facts: Sequence[Fact]) -> Fact:
        held = range_of(*[each.range for each in facts])
        unsafe = not all(each.range.bounded for each in facts) or not held.bounded
        return Fact(held, any_nullable(facts) or unsafe)

    return rule


def both_valid(vectors: Sequence[Vector]) -> Bools | None:
    """Where no argument is NULL; None when there is no NULL at all."""
    masks = [each.valid for each in vectors if each.valid is not None]
    if not masks:
        return None
    held = masks[0]
    for mask in masks[1:]:
        held = held & mask
    return held


def as_type(vector: Vector, kind: Type) -> Array:
    """The values in the array type of `kind` (integers become floats where floats are wanted)."""
    wanted = DTYPES[kind]
    return vector.values if vector.values.dtype == wanted else vector.values.astype(wanted)


def without_nan(values: Array, valid: Bools | None) -> Vector:
    """NaN is NULL after every node."""
    if values.dtype != np.float64:
        return Vector(values, valid)
    wrong = np.isnan(values)
    if not wrong.any():
        return Vector(values, valid)
    return Vector(np.where(wrong, 0.0, values), ~wrong if valid is None else valid & ~wrong)


def strict(operation: Callable[..., Array]) -> Callable[[Type, Sequence[Vector]], Vector]:
    """A kernel that works cell by cell on the result's type; NULL in any argument gives NULL."""

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        with np.errstate(all="ignore"):
            return without_nan(operation(*[as_type(each, kind) for each in vectors]), both_valid(vectors))

    return kernel
