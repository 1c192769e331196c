"""Rules that the functions of dates and timestamps share: types, limits, facts and NULL outside the years 1 to 9999."""

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
"""Every value that there is of a type."""

# NULL for a value outside the limits, naming it once only: the text of nested calls would else grow exponentially.
# GREATEST skips NULL, so that a NULL becomes the value before the limits, and so NULL again.
_WITHIN = "NULLIF(NULLIF(LEAST(GREATEST({0}, {1}), {2}), {1}), {2})"
_OUTSIDE: Mapping[Type, tuple[str, str]] = {  # the last value before the limits and the first one after them
    Type.DATE: ("DATE '0001-12-31 (BC)'", "DATE '10000-01-01'"),
    Type.TIMESTAMP: ("TIMESTAMP '0001-12-31 (BC) 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"),
}


def takes(result: Type, *wanted: Type) -> TypeRule:
    """Exactly these arguments."""
    return always(result, lambda kinds: tuple(kinds) == wanted)


def ends(held: Interval, limit: Interval) -> Integers:
    """The first and last value of a range, cut to a limit; outward where a bound is no integer."""
    lower, upper = (min(max(end, limit.lower), limit.upper) for end in (held.lower, held.upper))
    return np.array([math.floor(lower), math.ceil(upper)], dtype=np.int64)


def between(both: Integers) -> Interval:
    """The range with these ends."""
    return Interval(int(both[0]), int(both[1]))


def unsaid(held: Interval) -> tuple[bool, bool]:
    """Which ends nobody has said: there the calendar's own stand in, as bounds of arithmetic only."""
    return math.isinf(held.lower), math.isinf(held.upper)


def rising(kind: Type, operation: Operation) -> FactRule:
    """The fact of an operation on values of `kind` that never falls: it goes from end to end."""

    def rule(facts: Sequence[Fact]) -> Fact:
        held = between(operation(ends(facts[0].range, LIMITS[kind])))
        return Fact(held, any_nullable(facts)).meaning(open_ends(held, *unsaid(facts[0].range)))

    return rule


def each_cell(operation: Callable[[Integers], Array]) -> Kernel:
    """The kernel of an operation on the cells of one argument."""
    return lambda _kind, vectors: Vector(operation(vectors[0].values), vectors[0].valid)


def day_of(microseconds: Integers) -> Integers:
    return microseconds // MICROSECONDS_A_DAY


_day_fact = rising(Type.TIMESTAMP, day_of)


def with_twin(of_date: Function) -> tuple[Function, Function]:
    """A function NAME_of_date of a DATE, and NAME, the same of the day that a TIMESTAMP lies in.

    What is written for both stands with NAME.
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
    """The fact of values between two ends that are NULL outside the limit; of two facts, they rise with the first and
    with the second, or fall with that."""
    held = between(both)
    leaves = held.lower < limit.lower or held.upper > limit.upper
    found = Fact(held.intersect(limit) or limit, leaves or any_nullable(facts))
    return found.meaning(open_ends(found.range, *open_of_two(facts, falls=falls)))


def open_of_two(facts: Sequence[Fact], *, falls: bool) -> tuple[bool, bool]:
    """Which ends nobody has said, of what rises with the first of two values (or of one) and falls with the second."""
    pairs = [unsaid(each.range) for each in facts]
    second = [(upper, lower) if falls else (lower, upper) for lower, upper in pairs[1:]]
    lowers, uppers = zip(pairs[0], *second, strict=True)
    return any(lowers), any(uppers)


def vector_within(values: Integers, limit: Interval, vectors: Sequence[Vector]) -> Vector:
    """A block of values that are NULL outside the limit and where an argument is NULL."""
    valid = both_valid(vectors)
    inside = (values >= limit.lower) & (values <= limit.upper)
    if not inside.all():
        valid = inside if valid is None else valid & inside
    return Vector(values, valid)


def sql_within(kind: Type, template: str) -> str:
    return _WITHIN.format(template, *_OUTSIDE[kind])


def sql_clipped(template: str, most: int) -> str:
    """A BIGINT from -most to most. NULL becomes -most, which the caller must make NULL again."""
    return f"CAST(LEAST(GREATEST({template}, {-most}), {most}) AS BIGINT)"
