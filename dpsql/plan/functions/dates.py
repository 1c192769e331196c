"""Dates and timestamps: their words, casts between them, adding and counting days, MAKE_DATE, LAST_DAY and names.

If both exist, NAME_of_date takes a DATE and NAME a TIMESTAMP. Functions of only a TIMESTAMP also take a DATE, which is
cast first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsql.plan.expressions import Array, Fact, Function, Vector
from dpsql.plan.functions.date_rules import (
    between,
    day_of,
    each_cell,
    ends,
    fact_within,
    open_of_two,
    rising,
    sql_clipped,
    sql_within,
    takes,
    unsaid,
    vector_within,
    with_twin,
)
from dpsql.plan.functions.rules import any_nullable, both_valid, open_ends, strict
from dpsql.plan.work import CELLS, NUMBERS, fixed_length
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, Integers, civil, first_day, month_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval

UNITS: Mapping[str, str] = {
    **dict.fromkeys(("CENTURY", "CENTURIES", "CENT", "C"), "century"),
    **dict.fromkeys(("DECADE", "DECADES", "DEC", "DECS"), "decade"),
    **dict.fromkeys(("YEAR", "YEARS", "YR", "YRS", "Y"), "year"),
    **dict.fromkeys(("QUARTER", "QUARTERS"), "quarter"),
    **dict.fromkeys(("MONTH", "MONTHS", "MON", "MONS"), "month"),
    **dict.fromkeys(("WEEK", "WEEKS", "WEEKOFYEAR", "W"), "week"),
    **dict.fromkeys(("DAY", "DAYS", "DAYOFMONTH", "D"), "day"),
    **dict.fromkeys(("HOUR", "HOURS", "HR", "HRS", "H"), "hour"),
    **dict.fromkeys(("MINUTE", "MINUTES", "MIN", "MINS", "M"), "minute"),
    **dict.fromkeys(("SECOND", "SECONDS", "SEC", "SECS", "S"), "second"),
    **dict.fromkeys(("MILLISECOND", "MILLISECONDS", "MSEC", "MSECS", "MS"), "millisecond"),
    **dict.fromkeys(("MICROSECOND", "MICROSECONDS", "USECOND", "USECONDS", "USEC", "USECS", "US"), "microsecond"),
}
"""DuckDB's words for a unit, in upper case -> the unit."""

PARTS: Mapping[str, str] = {
    **UNITS,
    **dict.fromkeys(("DAYOFWEEK", "DOW", "WEEKDAY"), "dayofweek"),
    **dict.fromkeys(("DAYOFYEAR", "DOY"), "dayofyear"),
    "ISODOW": "isodow",
    "ISOYEAR": "isoyear",
    "EPOCH": "epoch",
}
"""DuckDB's words for a part in EXTRACT and DATE_PART, in upper case -> the part."""

NODES: Mapping[str, str] = {
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "Week": "week",
    "WeekOfYear": "week",
    "Day": "day",
    "DayOfMonth": "day",
    "DayOfWeek": "dayofweek",
    "DayOfWeekIso": "isodow",
    "DayOfYear": "dayofyear",
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
    "TimeToUnix": "epoch",
}
"""The parser's nodes for functions of one argument, `this` -> the part."""

_MOST = int(DAYS.upper - DAYS.lower) + 1
"""Number of days that leads from any date out of the years 1 to 9999."""
_STEPS = Interval(-_MOST, _MOST)
_PARTS = (Interval(1, 9_999), Interval(1, 12), Interval(1, 31))  # year, month, day

_DAY_NAMES: Array = np.array(
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"], dtype=object
)
_MONTH_NAMES: Array = np.array(
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
     "December"],
    dtype=object,
)  # fmt: skip


def _midnight(days: Integers) -> Integers:
    return days * MICROSECONDS_A_DAY


def _last_day(days: Integers) -> Integers:
    return first_day(month_number(days) + 1) - 1


def _day_name(days: Integers) -> Array:
    return _DAY_NAMES[(days + 4) % 7]


def _month_name(days: Integers) -> Array:
    return _MONTH_NAMES[civil(days)[1] - 1]


def _name(facts: Sequence[Fact]) -> Fact:
    return Fact(EVERYTHING, facts[0].nullable, most=max(map(len, (*_DAY_NAMES, *_MONTH_NAMES))))


def _add_days_fact(facts: Sequence[Fact]) -> Fact:
    return fact_within(ends(facts[0].range, DAYS) + ends(facts[1].range, _STEPS), DAYS, facts)


def _add_days(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return vector_within(vectors[0].values + np.clip(vectors[1].values, -_MOST, _MOST), DAYS, vectors)


def _subtract_days_fact(facts: Sequence[Fact]) -> Fact:
    return fact_within(ends(facts[0].range, DAYS) - ends(facts[1].range, _STEPS)[::-1], DAYS, facts, falls=True)


def _subtract_days(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return vector_within(vectors[0].values - np.clip(vectors[1].values, -_MOST, _MOST), DAYS, vectors)


def _days_between_fact(facts: Sequence[Fact]) -> Fact:
    first, second = (ends(each.range, DAYS) for each in facts)
    held = between(first - second[::-1])
    return Fact(held, any_nullable(facts)).meaning(open_ends(held, *open_of_two(facts, falls=True)))


def _microseconds_between_fact(facts: Sequence[Fact]) -> Fact:
    first, second = (ends(each.range, MICROSECONDS) for each in facts)
    held = between(first - second[::-1])
    return Fact(held, any_nullable(facts)).meaning(open_ends(held, *open_of_two(facts, falls=True)))


def _make_date_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact from the first day of the first month to the last of the last, within the calendar."""
    parts = [each.range.intersect(limit) for each, limit in zip(facts, _PARTS, strict=True)]
    years, months, days = (ends(part or limit, limit) for part, limit in zip(parts, _PARTS, strict=True))
    month = 12 * years + months - 1
    start = first_day(month)
    lower, upper = int((start + days)[0]) - 1, int(np.minimum(start + days, first_day(month + 1))[1]) - 1
    if None in parts or lower > upper:
        return Fact(DAYS, nullable=True).meaning(EVERYTHING)  # no such date: always NULL
    exists = all(each.range == part for each, part in zip(facts, parts, strict=True)) and days[1] <= 28
    held = Fact(Interval(lower, upper), not exists or any_nullable(facts))
    return held.meaning(open_ends(held.range, *unsaid(facts[0].range)))  # months and days of a year have known ranges


def _make_date(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    year, month, day = (each.values for each in vectors)
    number = 12 * year + month - 1
    start, after = first_day(number), first_day(number + 1)
    exists = start + day <= after
    for part, limit in zip((year, month, day), _PARTS, strict=True):
        exists &= (part >= limit.lower) & (part <= limit.upper)
    valid = both_valid(vectors)
    return Vector(start + day - 1, exists if valid is None else exists & valid)


_EITHER = "a date or a timestamp"
_DATE_AND_COUNT = "a date and a whole number of days"
_COUNT = sql_clipped("{1}", _MOST)

FUNCTIONS = (
    Function("date_to_timestamp", (1, 1), takes(Type.TIMESTAMP, Type.DATE), rising(Type.DATE, _midnight),
             each_cell(_midnight), "CAST({0} AS TIMESTAMP)", "a date",
             work=NUMBERS,
             sql="TRY_CAST({0} AS TIMESTAMP)"),
    Function("timestamp_to_date", (1, 1), takes(Type.DATE, Type.TIMESTAMP), rising(Type.TIMESTAMP, day_of),
             each_cell(day_of), "CAST({0} AS DATE)", "a timestamp",
             work=NUMBERS,
             sql="CAST({0} AS DATE)"),
    Function("add_days", (2, 2), takes(Type.DATE, Type.DATE, Type.INTEGER), _add_days_fact, _add_days,
             "{0} + {1}", _DATE_AND_COUNT,
             work=NUMBERS,
             sql=sql_within(Type.DATE, f"{{0}} + CAST({_COUNT} AS INTEGER)")),
    Function("subtract_days", (2, 2), takes(Type.DATE, Type.DATE, Type.INTEGER), _subtract_days_fact, _subtract_days,
             "{0} - {1}", _DATE_AND_COUNT,
             work=NUMBERS,
             sql=sql_within(Type.DATE, f"{{0}} - CAST({_COUNT} AS INTEGER)")),
    Function("days_between", (2, 2), takes(Type.INTEGER, Type.DATE, Type.DATE), _days_between_fact,
             strict(np.subtract), "{0} - {1}", "two dates",
             work=NUMBERS,
             sql="{0} - {1}"),
    Function("microseconds_between", (2, 2), takes(Type.INTEGER, Type.TIMESTAMP, Type.TIMESTAMP),
             _microseconds_between_fact, strict(np.subtract), "{0} - {1}", "two timestamps",
             work=NUMBERS,
             sql="epoch_us({0}) - epoch_us({1})"),
    # Written as text, since MAKE_DATE fails on a day that does not exist.
    Function("make_date", (3, 3), takes(Type.DATE, Type.INTEGER, Type.INTEGER, Type.INTEGER), _make_date_fact,
             _make_date, "MAKE_DATE({args})", "whole numbers: year, month and day",
             work=CELLS,
             sql=sql_within(Type.DATE, "TRY_CAST({0} || '-' || {1} || '-' || {2} AS DATE)"),
             syntax=("DateFromParts(year, month, day)",)),
    *with_twin(Function("last_day_of_date", (1, 1), takes(Type.DATE, Type.DATE), rising(Type.DATE, _last_day),
                        each_cell(_last_day), "LAST_DAY({args})", _EITHER,
                        work=NUMBERS,
                        sql="LAST_DAY({0})",
                        syntax=("LastDay(this)",))),
    *with_twin(Function("dayname_of_date", (1, 1), takes(Type.TEXT, Type.DATE), _name,
                        each_cell(_day_name), "DAYNAME({args})", _EITHER,
                        work=NUMBERS, length=fixed_length(9),
                        sql="DAYNAME({0})",
                        syntax=("Dayname(this)",),
                        values=tuple(_DAY_NAMES))),
    *with_twin(Function("monthname_of_date", (1, 1), takes(Type.TEXT, Type.DATE), _name,
                        each_cell(_month_name), "MONTHNAME({args})", _EITHER,
                        work=NUMBERS, length=fixed_length(9),
                        sql="MONTHNAME({0})",
                        syntax=("Monthname(this)",),
                        values=tuple(_MONTH_NAMES))),
)  # fmt: skip
