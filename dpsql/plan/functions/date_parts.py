"""EXTRACT and YEAR(), MONTH(), ...: the parts of dates and timestamps.

Each part has two functions: extract_year of a TIMESTAMP and extract_year_of_date of a DATE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsql.plan.expressions import Fact, Function
from dpsql.plan.functions.date_rules import (
    LIMITS,
    FactRule,
    Operation,
    between,
    each_cell,
    ends,
    rising,
    takes,
    unsaid,
    with_twin,
)
from dpsql.plan.functions.rules import open_ends
from dpsql.plan.work import NUMBERS
from dpsql.schema import intervals
from dpsql.schema.calendar import MICROSECONDS_A_SECOND, Integers, civil, first_day, month_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval, point


def _year(days: Integers) -> Integers:
    return civil(days)[0]


def _day_of_year(days: Integers) -> Integers:
    return days - first_day(12 * _year(days)) + 1


def _thursday(days: Integers) -> Integers:
    """Return the Thursday of the week, Monday to Sunday: it lies in the week's ISO 8601 year."""
    return days - (days + 3) % 7 + 3  # day 0 is a Thursday


def _iso_year(days: Integers) -> Integers:
    return _year(_thursday(days))


def _fact(operation: Operation, kind: Type, cycle: Operation, most: Interval) -> FactRule:
    """Return the fact of a part that increases in each cycle and restarts in the next; cycle numbers are monotone."""

    def rule(facts: Sequence[Fact]) -> Fact:
        both = ends(facts[0].range, LIMITS[kind])
        first, last = cycle(both)
        return Fact(between(operation(both)) if first == last else most, facts[0].nullable)

    return rule


# Parts without a parser node for their functions, such as ISOYEAR(x).
_NAMES = {
    "dayofweek": "WEEKDAY",
    **{part: part.upper() for part in ("century", "decade", "isoyear", "millisecond", "microsecond")},
}


def _part(part: str, kind: Type, operation: Operation, fact: FactRule) -> Function:
    return Function(
        f"extract_{part}_of_date" if kind is Type.DATE else f"extract_{part}",
        (1, 1),
        takes(Type.INTEGER, kind),
        fact,
        each_cell(operation),
        f"{part.upper()}({{args}})",
        "a date or a timestamp",
        work=NUMBERS,
        sql=f"EXTRACT({part} FROM {{0}})",
        syntax=(_NAMES[part],) if part in _NAMES else (),
    )


def _of_day(
    part: str, operation: Operation, cycle: Operation | None = None, least: int = 0, most: int = 0
) -> tuple[Function, Function]:
    """Return a part of a date, and of a timestamp's date: from `least` to `most` in each cycle, or without end."""
    held = Interval(least, most)
    fact = rising(Type.DATE, operation) if cycle is None else _fact(operation, Type.DATE, cycle, held)
    return with_twin(_part(part, Type.DATE, operation, fact))


def _of_time(part: str, size: int, count: int) -> tuple[Function, Function]:
    """Return a part of the time of day: `size` microseconds long, and restarting at 0 after `count` of them."""

    def operation(microseconds: Integers) -> Integers:
        return microseconds // size % count

    def cycle(microseconds: Integers) -> Integers:
        return microseconds // (size * count)

    fact = _fact(operation, Type.TIMESTAMP, cycle, Interval(0, count - 1))
    midnight: Operation = np.zeros_like  # the time of day of a date
    of_date = _part(part, Type.DATE, midnight, lambda facts: Fact(point(0), facts[0].nullable))
    return _part(part, Type.TIMESTAMP, operation, fact), replace(of_date, syntax=())


def _epoch(name: str, kind: Type, top: int, bottom: int) -> Function:
    """Return seconds since 1970 of a number in units of top / bottom seconds."""

    def fact(facts: Sequence[Fact]) -> Fact:  # rounded outward, so that it holds for any engine's computation
        scaled = intervals.multiply(between(ends(facts[0].range, LIMITS[kind])), point(top))
        held = intervals.divide(scaled, point(bottom))
        return Fact(held, facts[0].nullable).meaning(open_ends(held, *unsaid(facts[0].range)))

    return Function(
        name,
        (1, 1),
        takes(Type.REAL, kind),
        fact,
        each_cell(lambda values: values * top / bottom),
        "EPOCH({args})",
        "a date or a timestamp",
        work=NUMBERS,
        sql="EXTRACT(epoch FROM {0})",
    )


FUNCTIONS = (
    *_of_day("century", lambda days: (_year(days) + 99) // 100),
    *_of_day("decade", lambda days: _year(days) // 10),
    *_of_day("year", _year),
    *_of_day("isoyear", _iso_year),
    *_of_day("quarter", lambda days: (civil(days)[1] + 2) // 3, _year, 1, 4),
    *_of_day("month", lambda days: civil(days)[1], _year, 1, 12),
    *_of_day("week", lambda days: (_day_of_year(_thursday(days)) + 6) // 7, _iso_year, 1, 53),
    *_of_day("day", lambda days: civil(days)[2], month_number, 1, 31),
    *_of_day("dayofyear", _day_of_year, _year, 1, 366),
    *_of_day("dayofweek", lambda days: (days + 4) % 7, lambda days: (days + 4) // 7, 0, 6),
    *_of_day("isodow", lambda days: (days + 3) % 7 + 1, lambda days: (days + 3) // 7, 1, 7),
    *_of_time("hour", 3_600 * MICROSECONDS_A_SECOND, 24),
    *_of_time("minute", 60 * MICROSECONDS_A_SECOND, 60),
    *_of_time("second", MICROSECONDS_A_SECOND, 60),
    *_of_time("millisecond", MICROSECONDS_A_SECOND // 1_000, 60_000),
    *_of_time("microsecond", 1, 60_000_000),
    _epoch("extract_epoch", Type.TIMESTAMP, 1, MICROSECONDS_A_SECOND),
    _epoch("extract_epoch_of_date", Type.DATE, 86_400, 1),
)
