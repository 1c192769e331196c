"""Functions of dates and times in Spark's SQL, over days and microseconds since 1970 as whole numbers.

They use arithmetic where possible. Months and years use Spark's DATE, which has the same calendar, never its
timestamps, which have time zones.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.executors.spark.number_functions import Template
from dpsql.plan.functions.date_units import ALL_UNITS, Unit
from dpsql.plan.functions.rules import sql_between
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND

_MOST_DAYS = int(DAYS.upper - DAYS.lower) + 1
_AWAY = 1_000_000
"""Days before 1970 that precede every date: counted from there, nothing is negative, and DIV rounds down."""
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def day_of(time: str) -> str:
    """Return the day of a time."""
    return f"(({time} + {_AWAY * MICROSECONDS_A_DAY}) DIV {MICROSECONDS_A_DAY} - {_AWAY})"


def date_of(day: str) -> str:
    """Return a day as Spark's DATE."""
    return f"date_from_unix_date(CAST({day} AS INT))"


def _days_within(text: str) -> str:
    return sql_between(text, int(DAYS.lower), int(DAYS.upper))


def _times_within(text: str) -> str:
    return sql_between(text, int(MICROSECONDS.lower), int(MICROSECONDS.upper))


def _month_number(day: str) -> str:
    """Return the month, counted from January of year 0."""
    return f"(year({date_of(day)}) * 12 + month({date_of(day)}) - 1)"


def _name(names: tuple[str, ...], place: str) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"element_at(array({listed}), CAST({place} AS INT))"


_OF_DAY: Mapping[str, str] = {
    "century": f"(year({date_of('{0}')}) + 99) DIV 100",
    "decade": f"year({date_of('{0}')}) DIV 10",
    "year": f"year({date_of('{0}')})",
    "isoyear": f"EXTRACT(YEAROFWEEK FROM {date_of('{0}')})",
    "quarter": f"quarter({date_of('{0}')})",
    "month": f"month({date_of('{0}')})",
    "week": f"weekofyear({date_of('{0}')})",
    "day": f"day({date_of('{0}')})",
    "dayofyear": f"dayofyear({date_of('{0}')})",
    "dayofweek": "pmod({0} + 4, 7)",
    "isodow": "pmod({0} + 3, 7) + 1",
}
_OF_TIME: Mapping[str, tuple[int, int]] = {
    "hour": (3_600 * MICROSECONDS_A_SECOND, 24),
    "minute": (60 * MICROSECONDS_A_SECOND, 60),
    "second": (MICROSECONDS_A_SECOND, 60),
    "millisecond": (MICROSECONDS_A_SECOND // 1_000, 60_000),
    "microsecond": (1, 60_000_000),
}
"""The length of a part of the time of day, and its number before it restarts."""
_OTHERS_OF_DAY: Mapping[str, str] = {
    "last_day": f"unix_date(last_day({date_of('{0}')}))",
    "dayname": _name(DAY_NAMES, "pmod({0} + 4, 7) + 1"),
    "monthname": _name(MONTH_NAMES, f"month({date_of('{0}')})"),
}


def _parts() -> dict[str, Template]:
    parts: dict[str, Template] = {}
    named = {f"extract_{part}": text for part, text in _OF_DAY.items()} | dict(_OTHERS_OF_DAY)
    for name, text in named.items():
        parts[f"{name}_of_date"] = text
        parts[name] = text.replace("{0}", day_of("{0}"))
    for part, (size, count) in _OF_TIME.items():
        parts[f"extract_{part}"] = f"pmod({{0}}, {size * count}) DIV {size}"
        parts[f"extract_{part}_of_date"] = "{0} * 0"
    return parts


# Units of time.


def _start(months: int) -> str:
    """Return the first day of a time's period of `months` months; NULL before year 1."""
    number = f"({_month_number(day_of('{0}'))} DIV {months} * {months})"
    year = f"NULLIF(CAST({number} DIV 12 AS INT), 0)"
    return f"unix_date(make_date({year}, CAST({number} % 12 AS INT) + 1, 1))"


def _floored(unit: Unit) -> str:
    """Return the number of a time's period, counted from long ago."""
    away = -(-_AWAY * MICROSECONDS_A_DAY // unit.microseconds)
    return f"(({{0}} + {away * unit.microseconds - unit.start}) DIV {unit.microseconds} - {away})"


def _trunc(unit: Unit) -> str:
    if unit.months:
        return f"{_start(unit.months)} * {MICROSECONDS_A_DAY}"
    return f"{_floored(unit)} * {unit.microseconds} + {unit.start}"


def _add(unit: Unit) -> str:
    """Add units. A count is clipped to one that leaves the calendar from any time, as is NULL, which GREATEST skips."""
    count = f"LEAST(GREATEST({{1}}, {-unit.most}), {unit.most})"
    if not unit.months:
        return _times_within(f"{{0}} + {count} * {unit.microseconds}")
    months = f"CAST({count} * {unit.months} AS INT)"
    reached = f"unix_date(add_months({date_of(day_of('{0}'))}, {months}))"
    return _times_within(f"{reached} * {MICROSECONDS_A_DAY} + pmod({{0}}, {MICROSECONDS_A_DAY})")


def _diff(unit: Unit) -> str:
    if unit.name == "week":  # multiples of seven days, whenever weeks begin
        return f"({day_of('{1}')} - {day_of('{0}')}) DIV 7"
    if unit.months:
        first, second = (f"{_month_number(day_of(f'{{{place}}}'))} DIV {unit.months}" for place in range(2))
    else:
        first, second = _floored(unit), _floored(unit).replace("{0}", "{1}")
    return f"{second} - {first}"


_STEP = f"LEAST(GREATEST({{1}}, {-_MOST_DAYS}), {_MOST_DAYS})"


def made_date(year: str, month: str, day: str) -> str:
    """Return the day of a year, a month and a day as whole numbers; NULL if there is none."""
    first = f"make_date(CAST({year} AS INT), CAST({month} AS INT), 1)"
    exists = f"{year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
    return (
        f"CASE WHEN {exists} THEN CASE WHEN {day} <= day(last_day({first})) "
        f"THEN unix_date({first}) + CAST({day} AS BIGINT) - 1 END END"
    )


def date_text(day: str) -> str:
    return f"CAST({date_of(day)} AS STRING)"


def _time_text() -> str:
    """Return a timestamp's text, with a non-zero fraction of a second, without trailing zeros."""
    parts = [
        f"LPAD(CAST(pmod({{0}}, {size * count}) DIV {size} AS STRING), {width}, '0')"
        for size, count, width in (
            (3_600 * MICROSECONDS_A_SECOND, 24, 2),
            (60 * MICROSECONDS_A_SECOND, 60, 2),
            (MICROSECONDS_A_SECOND, 60, 2),
            (1, MICROSECONDS_A_SECOND, 6),
        )
    ]
    fraction = f"CASE WHEN pmod({{0}}, {MICROSECONDS_A_SECOND}) = 0 THEN '' ELSE "
    fraction += f"CONCAT('.', TRIM(TRAILING '0' FROM {parts[3]})) END"
    clock = f"{parts[0]}, ':', {parts[1]}, ':', {parts[2]}"
    return f"CONCAT({date_text(day_of('{0}'))}, ' ', {clock}, {fraction})"


DATES: Mapping[str, Template] = {
    **_parts(),
    **{f"trunc_{unit.name}": _trunc(unit) for unit in ALL_UNITS},
    **{f"add_{unit.name}": _add(unit) for unit in ALL_UNITS},
    **{f"diff_{unit.name}": _diff(unit) for unit in ALL_UNITS},
    "extract_epoch": f"CAST({{0}} AS DOUBLE) / {float(MICROSECONDS_A_SECOND)!r}D",
    "extract_epoch_of_date": "CAST({0} * 86400 AS DOUBLE)",
    "date_to_timestamp": f"{{0}} * {MICROSECONDS_A_DAY}",
    "timestamp_to_date": day_of("{0}"),
    "add_days": _days_within(f"{{0}} + {_STEP}"),
    "subtract_days": _days_within(f"{{0}} - {_STEP}"),
    "days_between": "{0} - {1}",
    "microseconds_between": "{0} - {1}",
    "make_date": made_date("{0}", "{1}", "{2}"),
    "date_to_text": date_text("{0}"),
    "timestamp_to_text": _time_text(),
}
