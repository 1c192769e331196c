"""Shared rules of many functions: types, facts and NULL handling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Bools, Fact, Vector
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INFINITY, INT64, Interval

LARGEST_INTEGER = 2**62
"""Results of +, - and * are INTEGER if they cannot be larger; bounds and sums are limited to it. A cell can be any
number of 64 bits (`INT64`)."""
LEAST_INTEGER = int(INT64.lower)
"""It has no positive counterpart: -x, ABS(x) and x // -1 are NULL for it."""
INTEGERS = Interval(-LARGEST_INTEGER, LARGEST_INTEGER)
"""Range of whole numbers in answers."""

TypeRule = Callable[[Sequence[Type], Sequence[Fact]], Type | None]
FactRule = Callable[[Sequence[Fact]], Fact]
Kernel = Callable[[Type, Sequence[Vector]], Vector]
SqlRule = Callable[[Sequence[Type], Type], str]


def all_numeric(kinds: Sequence[Type]) -> bool:
    return all(kind.numeric for kind in kinds)


def common(kinds: Sequence[Type]) -> Type | None:
    """Return the common type of all, REAL for mixed numbers, None if they do not mix."""
    if len(set(kinds)) == 1:
        return kinds[0]
    return Type.REAL if all_numeric(kinds) else None


def of_one_type(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    """Return the common type of all arguments, for functions that return one of them."""
    kind = common(kinds)
    return None if kind is None or kind.opaque else kind


def comparable(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
    return None if of_one_type(kinds, facts) is None else Type.BOOLEAN


def always(kind: Type, takes: Callable[[Sequence[Type]], bool] = all_numeric) -> TypeRule:
    """Return the type rule of a fixed result type for all arguments that fit."""
    return lambda kinds, _facts: kind if takes(kinds) else None


def widest(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    """Return INTEGER for integers, otherwise REAL: for results that are never larger than an argument."""
    return common(kinds) if all_numeric(kinds) else None


def unless_overflow(range_of: Callable[..., Interval]) -> TypeRule:
    """Return a type rule: INTEGER if all are integers and the declared ranges keep the result within +/-2^62, otherwise
    REAL.

    Overflow is thus decided before any row is read: a result that could exceed 64 bits is computed in floats.
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


def maybe_infinite(known: Fact) -> bool:
    """Return whether values may be infinite. Integers are not, even without a known range."""
    return not known.whole and not known.range.bounded


def open_ends(span: Interval, lower: bool, upper: bool) -> Interval:
    """Return the range without those ends that are undeclared, and only the type's."""
    return Interval(-INFINITY if lower else span.lower, INFINITY if upper else span.upper)


def strict_fact(range_of: Callable[..., Interval], makes_nan: Callable[..., bool] = lambda *_facts: False) -> FactRule:
    """Return a fact rule: NULL in, NULL out; and NULL if the result is NaN, if infinite arguments allow it (inf -
    inf)."""
    return lambda facts: Fact(range_of(*[each.range for each in facts]), any_nullable(facts) or makes_nan(*facts))


def both_valid(vectors: Sequence[Vector]) -> Bools | None:
    """Return where no argument is NULL; None if there is no NULL."""
    masks = [each.valid for each in vectors if each.valid is not None]
    if not masks:
        return None
    valid = masks[0]
    for mask in masks[1:]:
        valid = valid & mask
    return valid


def and_valid(fits: Bools, valid: Bools | None) -> Bools | None:
    """Return where a result is not NULL: the argument is not, and it fits."""
    if fits.all():
        return valid
    return fits if valid is None else fits & valid


def as_type(vector: Vector, kind: Type) -> Array:
    """Return the values in the array type of `kind`, with integers converted to floats if needed.

    Released counts are floats although they are INTEGER (the noise is not rounded); those are rounded here.
    """
    values, wanted = vector.values, DTYPES[kind]
    if values.dtype == wanted:
        return values
    if kind is Type.INTEGER and values.dtype == np.float64:
        values = np.clip(np.rint(values), -LARGEST_INTEGER, LARGEST_INTEGER)
    return values.astype(wanted)


def without_nan(values: Array, valid: Bools | None) -> Vector:
    """Return a vector with NULL for NaN, as after every node."""
    if values.dtype != np.float64:
        return Vector(values, valid)
    wrong = np.isnan(values)
    if not wrong.any():
        return Vector(values, valid)
    return Vector(np.where(wrong, 0.0, values), and_valid(~wrong, valid))


def away_from_zero(values: Array) -> Array:
    """Round to the nearest whole number, halves away from zero, as in SQL. Zeros keep their sign."""
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):  # inf - inf
        return np.asarray(np.copysign(whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0), values))


def strict(operation: Callable[..., Array]) -> Kernel:
    """Return a cell-by-cell kernel on the result's type; NULL in any argument gives NULL."""

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        with np.errstate(all="ignore"):
            return without_nan(operation(*[as_type(each, kind) for each in vectors]), both_valid(vectors))

    return kernel


def in_result_type(template: str) -> SqlRule:
    """Return the SQL of an operation on the result's type: integers are cast to DOUBLE first if that is REAL."""

    def sql(kinds: Sequence[Type], result: Type) -> str:
        cast = result is Type.REAL
        args = [
            f"CAST({{{place}}} AS DOUBLE)" if cast and kind is Type.INTEGER else f"{{{place}}}"
            for place, kind in enumerate(kinds)
        ]
        return template.format(*args, args=", ".join(args))

    return sql


def sql_between(value: str, least: int, most: int) -> str:
    """Return an integer in DuckDB's SQL, NULL unless least <= value <= most.

    The value is written only once; otherwise, the text of nested calls would grow exponentially. GREATEST and LEAST
    skip NULL, so a NULL becomes a value outside, and so NULL again.
    """
    below, above = least - 1, most + 1
    return f"NULLIF(NULLIF(LEAST(GREATEST({value}, {below}), {above}), {below}), {above})"
