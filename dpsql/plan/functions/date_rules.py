"""Shared rules of date and timestamp functions: types, limits, facts and NULL outside the years 1 to 9999."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpsql.plan.expressions import Array, Fact, Function, Vector
from dpsql.plan.functions.rules import TypeRule, always, any_nullable, both_valid, open_ends
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, Integers
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

Operation = Callable[[Integers], Integers]
FactRule = Callable[[Sequence[Fact]], Fact]
Kernel = Callable[[Type, Sequence[Vector]], Vector]

LIMITS: Mapping[Type, Interval] = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}
"""Range of all values of a type."""

# NULL for a value outside the limits, written only once: otherwise, the text of nested calls would grow
# exponentially. GREATEST skips NULL, so a NULL becomes the value before the limits, and therefore NULL again.
_WITHIN = "NULLIF(NULLIF(LEAST(GREATEST({0}, {1}), {2}), {1}), {2})"
_OUTSIDE: Mapping[Type, tuple[str, str]] = {  # the last value before the limits and the first one after them
    Type.DATE: ("DATE '0001-12-31 (BC)'", "DATE '10000-01-01'"),
    Type.TIMESTAMP: ("TIMESTAMP '0001-12-31 (BC) 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"),
}


def takes(result: Type, *wanted: Type) -> TypeRule:
    """Return a type rule for exactly these arguments."""
    return always(result, lambda kinds: tuple(kinds) == wanted)


def ends(held: Interval, limit: Interval) -> Integers:
    """Return the first and last value of a range, clipped to a limit; rounded outward if a bound is not an integer."""
    lower, upper = (min(max(end, limit.lower), limit.upper) for end in (held.lower, held.upper))
    return np.array([math.floor(lower), math.ceil(upper)], dtype=np.int64)


def between(both: Integers) -> Interval:
    """Return the range with these ends."""
    return Interval(int(both[0]), int(both[1]))


def unsaid(held: Interval) -> tuple[bool, bool]:
    """Return which ends are undeclared: there, the calendar's limits only bound arithmetic."""
    return math.isinf(held.lower), math.isinf(held.upper)


def rising(kind: Type, operation: Operation) -> FactRule:
    """Return the fact rule of a monotone operation on values of `kind`, which maps ends to ends."""

    def rule(facts: Sequence[Fact]) -> Fact:
        held = between(operation(ends(facts[0].range, LIMITS[kind])))
        return Fact(held, any_nullable(facts)).meaning(open_ends(held, *unsaid(facts[0].range)))

    return rule


def each_cell(operation: Callable[[Integers], Array]) -> Kernel:
    """Return the kernel of an operation on the cells of one argument."""
    return lambda _kind, vectors: Vector(operation(vectors[0].values), vectors[0].valid)


def day_of(microseconds: Integers) -> Integers:
    return microseconds // MICROSECONDS_A_DAY


_day_fact = rising(Type.TIMESTAMP, day_of)


def with_twin(of_date: Function) -> tuple[Function, Function]:
    """Return NAME for the day of a TIMESTAMP, and NAME_of_date for a DATE.

    NAME has the syntax of both.
    """
    of_timestamp = replace(
        of_date,
        name=of_date.name.removesuffix("_of_date"),
        type_of=lambda kinds, facts: of_date.type_of([Type.DATE], facts) if list(kinds) == [Type.TIMESTAMP] else None,
        fact_of=lambda facts: of_date.fact([_day_fact(facts)]),
        kernel=lambda kind, vectors: of_date.kernel(kind, [Vector(day_of(vectors[0].values), vectors[0].valid)]),
    )
    return of_timestamp, replace(of_date, syntax=())


def fact_within(both: Integers, limit: Interval, facts: Sequence[Fact], *, falls: bool = False) -> Fact:
    """Return the fact of values between two ends that are NULL outside the limit. They increase with the first fact,
    and increase or fall with the second."""
    held = between(both)
    leaves = held.lower < limit.lower or held.upper > limit.upper
    found = Fact(held.intersect(limit) or limit, leaves or any_nullable(facts))
    return found.meaning(open_ends(found.range, *open_of_two(facts, falls=falls)))


def open_of_two(facts: Sequence[Fact], *, falls: bool) -> tuple[bool, bool]:
    """Return which ends are undeclared, for a value that increases with the first of one or two values, and increases
    or falls with the second."""
    pairs = [unsaid(each.range) for each in facts]
    second = [(upper, lower) if falls else (lower, upper) for lower, upper in pairs[1:]]
    lowers, uppers = zip(pairs[0], *second, strict=True)
    return any(lowers), any(uppers)


def vector_within(values: Integers, limit: Interval, vectors: Sequence[Vector]) -> Vector:
    """Return a block of values that are NULL outside the limit and where an argument is NULL."""
    valid = both_valid(vectors)
    inside = (values >= limit.lower) & (values <= limit.upper)
    if not inside.all():
        valid = inside if valid is None else valid & inside
    return Vector(values, valid)


def sql_within(kind: Type, template: str) -> str:
    return _WITHIN.format(template, *_OUTSIDE[kind])


def sql_clipped(template: str, most: int) -> str:
    """Return a BIGINT from -most to most. NULL becomes -most, which the caller must make NULL again."""
    return f"CAST(LEAST(GREATEST({template}, {-most}), {most}) AS BIGINT)"
