"""Units of time: DATE_TRUNC, DATE_DIFF and adding an INTERVAL. All on timestamps; a DATE is cast to one first.

Each unit divides time into numbered pieces: of whole months, or of a fixed number of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsql.plan.expressions import Fact, Function, Vector
from dpsql.plan.functions.date_rules import (
    between,
    day_of,
    ends,
    fact_within,
    open_of_two,
    sql_clipped,
    sql_within,
    takes,
    vector_within,
)
from dpsql.plan.functions.rules import any_nullable, both_valid, open_ends
from dpsql.plan.work import NUMBERS
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND, Integers, civil, first_day
from dpsql.schema.calendar import month_number as month_of
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

_WIDTH = int(MICROSECONDS.upper - MICROSECONDS.lower)
_MONTHS = 12 * 9_999


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of some months, or of some microseconds counted from `start`."""

    name: str
    months: int = 0
    microseconds: int = 0
    start: int = 0

    def piece(self, values: Integers) -> Integers:
        """Return the number of a timestamp's piece; monotone."""
        if self.months:
            return month_of(day_of(values)) // self.months
        return (values - self.start) // self.microseconds

    def beginning(self, values: Integers) -> Integers:
        """Return the beginning of a timestamp's piece."""
        if self.months:
            return first_day(self.piece(values) * self.months) * MICROSECONDS_A_DAY
        return self.piece(values) * self.microseconds + self.start

    def starts(self, first: int, last: int) -> Integers:
        """Return the instants after `first`, up to `last`, at which a piece begins."""
        ends = self.piece(np.array([first, last], dtype=np.int64))
        pieces = np.arange(ends[0] + 1, ends[1] + 1, dtype=np.int64)
        if self.months:
            return first_day(pieces * self.months) * MICROSECONDS_A_DAY
        return pieces * self.microseconds + self.start

    @property
    def most(self) -> int:
        """Number of units that leads from any timestamp out of the years 1 to 9999."""
        return _MONTHS // self.months + 1 if self.months else _WIDTH // self.microseconds + 1

    def later(self, values: Integers, count: Integers) -> Integers:
        """Return the timestamps `count` units later; days beyond the end of a month become its last day."""
        steps: Integers = np.clip(count, -self.most, self.most)
        if self.months:
            return _months_later(values, steps * self.months)
        return values + steps * self.microseconds

    def apart(self, first: Integers, second: Integers) -> Integers:
        """Return the number of pieces from first to second. Weeks are seven days apart, wherever they begin, as in
        DuckDB."""
        if self.name == "week":
            days = day_of(second) - day_of(first)
            weeks: Integers = (days - np.fmod(days, 7)) // 7
            return weeks
        return self.piece(second) - self.piece(first)


ALL_UNITS = (
    Unit("century", months=1_200),
    Unit("decade", months=120),
    Unit("year", months=12),
    Unit("quarter", months=3),
    Unit("month", months=1),
    Unit("week", microseconds=7 * MICROSECONDS_A_DAY, start=-3 * MICROSECONDS_A_DAY),  # a Monday
    Unit("day", microseconds=MICROSECONDS_A_DAY),
    Unit("hour", microseconds=3_600 * MICROSECONDS_A_SECOND),
    Unit("minute", microseconds=60 * MICROSECONDS_A_SECOND),
    Unit("second", microseconds=MICROSECONDS_A_SECOND),
    Unit("millisecond", microseconds=MICROSECONDS_A_SECOND // 1_000),
    Unit("microsecond", microseconds=1),
)


def _months_later(values: Integers, months: Integers) -> Integers:
    days = day_of(values)
    year, month, day = civil(days)
    reached = 12 * year + month - 1 + months
    start = first_day(reached)
    clamped: Integers = np.minimum(start + day, first_day(reached + 1)) - 1
    return values + (clamped - days) * MICROSECONDS_A_DAY


def _months_later_ends(unit: Unit, held: Integers, count: Integers) -> Integers:
    """Return the least and the greatest timestamp that `later` gives.

    Days are monotone, but if several days become the last of a month, any time of day is possible.
    """
    day = civil(day_of(held))[2]
    both = unit.later(held, count)
    midnight = day_of(both)
    lower, upper = (int(end) for end in both)
    reached = civil(midnight)[2]
    last = civil(midnight + 1)[2] == 1
    if last[0]:  # a later day of the same month is clamped to this one, and may have an earlier time
        lower = int(midnight[0]) * MICROSECONDS_A_DAY
    if reached[1] < day[1]:  # an earlier day of the same month is clamped to this one too, or is it
        upper = (int(midnight[1]) + 1) * MICROSECONDS_A_DAY - 1
    return np.array([lower, upper], dtype=np.int64)


def _trunc(unit: Unit) -> Function:
    def fact(facts: Sequence[Fact]) -> Fact:
        return fact_within(unit.beginning(ends(facts[0].range, MICROSECONDS)), MICROSECONDS, facts)

    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        return vector_within(unit.beginning(vectors[0].values), MICROSECONDS, vectors)

    sql = f"DATE_TRUNC('{unit.name}', {{0}})"
    return Function(
        f"trunc_{unit.name}",
        (1, 1),
        takes(Type.TIMESTAMP, Type.TIMESTAMP),
        fact,
        kernel,
        f"DATE_TRUNC('{unit.name}', {{0}})",
        "a date or a timestamp",
        work=NUMBERS,
        sql=sql_within(Type.TIMESTAMP, sql) if unit.months > 12 else sql,  # the first century begins in year 0
    )


def _add(unit: Unit) -> Function:
    steps = Interval(-unit.most, unit.most)

    def fact(facts: Sequence[Fact]) -> Fact:
        held, count = ends(facts[0].range, MICROSECONDS), ends(facts[1].range, steps)
        reached = _months_later_ends(unit, held, count) if unit.months else unit.later(held, count)
        return fact_within(reached, MICROSECONDS, facts)

    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        return vector_within(unit.later(vectors[0].values, vectors[1].values), MICROSECONDS, vectors)

    clipped = sql_clipped("{1}", unit.most)
    step = (
        f"TO_MONTHS(CAST({clipped} * {unit.months} AS INTEGER))"
        if unit.months
        else f"TO_MICROSECONDS({clipped} * {unit.microseconds})"
    )
    return Function(
        f"add_{unit.name}",
        (2, 2),
        takes(Type.TIMESTAMP, Type.TIMESTAMP, Type.INTEGER),
        fact,
        kernel,
        f"{{0}} + INTERVAL {{1}} {unit.name.upper()}",
        "a date or a timestamp, and a whole number of units",
        work=NUMBERS,
        sql=sql_within(Type.TIMESTAMP, f"{{0}} + {step}"),
    )


def _diff(unit: Unit) -> Function:
    def fact(facts: Sequence[Fact]) -> Fact:
        first, second = (ends(each.range, MICROSECONDS) for each in facts)
        held = between(unit.apart(first[::-1], second))
        return Fact(held, any_nullable(facts)).meaning(open_ends(held, *open_of_two(facts[::-1], falls=True)))

    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        return Vector(unit.apart(vectors[0].values, vectors[1].values), both_valid(vectors))

    return Function(
        f"diff_{unit.name}",
        (2, 2),
        takes(Type.INTEGER, Type.TIMESTAMP, Type.TIMESTAMP),
        fact,
        kernel,
        f"DATE_DIFF('{unit.name}', {{0}}, {{1}})",
        "two dates or timestamps",
        work=NUMBERS,
        sql=f"DATE_DIFF('{unit.name}', {{0}}, {{1}})",
    )


_MAKERS: tuple[Callable[[Unit], Function], ...] = (_trunc, _add, _diff)

FUNCTIONS = tuple(make(unit) for make in _MAKERS for unit in ALL_UNITS)
