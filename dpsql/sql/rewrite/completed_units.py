"""DATE_SUB and AGE: completed units between two times, composed of existing functions.

DATE_SUB('year', a, b) counts the years completed at b, where DATE_DIFF counts year boundaries: a birthday that is still
to come in b's year is not counted. A month too short for a's day is completed on its last day. AGE(b, a) splits the
same time into months, days and a time of day; there such a month is not completed. Both follow DuckDB, and are negative
if b comes before a.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal
from dpsql.plan.functions.date_units import ALL_UNITS
from dpsql.plan.functions.dates import UNITS
from dpsql.schema.calendar import MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import Bind, ScalarBinder
from dpsql.sql.rewrite.time_spans import beside_interval

_UNITS = {unit.name: unit for unit in ALL_UNITS}
_MONTHS = {"century": 1_200, "decade": 120, "year": 12}
_TIME_OF_DAY = {
    "hour": (3_600 * MICROSECONDS_A_SECOND, 24),
    "minute": (60 * MICROSECONDS_A_SECOND, 60),
    "second": (MICROSECONDS_A_SECOND, 60),
    "millisecond": (1_000, 60_000),
    "microsecond": (1, 60_000_000),
}
"""The length of a part of an interval's time, and the number of parts before it wraps around."""
_AGE_HINT = (
    "Write EXTRACT(year FROM AGE(b, a)), or DATE_SUB('year', a, b): both count completed years. "
    "DATE_DIFF counts borders."
)


class _Builder:
    """Builder of function calls at one node of the text."""

    def __init__(self, binder: ScalarBinder, node: exp.Expr) -> None:
        self.binder = binder
        self.node = node

    def __call__(self, name: str, *args: Expr | int) -> Expr:
        bound = [Literal(arg, Type.INTEGER) if isinstance(arg, int) else arg for arg in args]
        return self.binder.apply(name, self.node, bound)

    def time(self, value: Expr) -> Expr:
        if isinstance(value, Literal) and value.value is None:
            return Literal(None, Type.TIMESTAMP)
        return self.binder.as_time(self.node, value, Type.TIMESTAMP)

    def signed(self, start: Expr, end: Expr, forward: Expr, backward: Expr) -> Expr:
        """Return `forward`, or the negative of `backward` if the end comes first."""
        return self("case", self("ge", end, start), forward, self("negate", backward))


def date_sub(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind DATE_SUB('year', a, b): the units completed at b."""
    word = node.expressions[0] if len(node.expressions) == 3 else None
    unit = UNITS.get(str(word.this).upper()) if isinstance(word, exp.Literal) and word.is_string else None
    if unit is None:
        raise SQLSyntaxError(
            "DATE_SUB takes a unit in quotes and two times.",
            span=binder.span(node),
            hint="Write DATE_SUB('year', a, b) for completed years, or d - INTERVAL 30 DAY for an earlier day.",
        )
    build = _Builder(binder, node)
    start, end = (build.time(bind(each)) for each in node.expressions[1:])
    months, size = _UNITS[unit].months, _UNITS[unit].microseconds
    if not months:
        return build("int_divide", build("microseconds_between", end, start), size)
    whole = build.signed(start, end, _completed_months(build, start, end), _completed_months(build, end, start))
    return whole if months == 1 else build("int_divide", whole, months)


def _completed_months(build: _Builder, first: Expr, second: Expr) -> Expr:
    """Return the completed months from a first time that is not later."""
    borders = build("diff_month", first, second)
    early = build("gt", build("add_month", first, borders), second)
    return build("subtract", borders, build("to_integer", early))


def part_of_age(binder: ScalarBinder, part: str, age: exp.Expr, bind: Bind) -> Expr:
    """Bind EXTRACT(part FROM AGE(b, a))."""
    build = _Builder(binder, age)
    start, end = _times_of_age(build, age, bind)
    months, rest = _age(build, start, end)
    if part in _MONTHS:
        return build("int_divide", months, _MONTHS[part])
    if part == "month":
        return build("modulo", months, 12)
    if part == "quarter":
        return build("add", build("int_divide", build("modulo", months, 12), 3), 1)
    if part == "day":
        return build("int_divide", rest, MICROSECONDS_A_DAY)
    if part in _TIME_OF_DAY:
        size, count = _TIME_OF_DAY[part]
        within = MICROSECONDS_A_DAY if part == "hour" else size * count
        return build("int_divide", build("modulo", rest, within), size)
    raise UnsupportedSQL(
        f"{part.upper()} of AGE is not supported.",
        span=binder.span(age),
        hint="Write EXTRACT(epoch FROM b - a) for seconds between two timestamps, or DATE_SUB('day', a, b) for "
        "whole days.",
    )


def compared_age(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind AGE(b, a) compared with an INTERVAL, in microseconds with 30-day months, as DuckDB compares intervals.

    Raises UnsupportedSQL elsewhere: its months, days and time would have to become one number.
    """
    build = _Builder(binder, node)
    times = _times_of_age(build, node, bind)
    if not beside_interval(node):
        raise UnsupportedSQL(
            "AGE stands inside EXTRACT or DATE_PART, or is compared with an INTERVAL.",
            span=binder.span(node),
            hint=_AGE_HINT,
        )
    months, rest = _age(build, *times)
    return build("add", build("multiply", months, 30 * MICROSECONDS_A_DAY), rest)


def _times_of_age(build: _Builder, node: exp.Expr, bind: Bind) -> tuple[Expr, Expr]:
    if len(node.expressions) != 2:
        raise UnsupportedSQL(
            "AGE of one time counts up to today, and an answer does not depend on the day it is asked.",
            span=build.binder.span(node),
            hint="Write AGE(DATE '2025-01-01', a), or AGE(:today, a) with a parameter.",
        )
    end, start = (build.time(bind(each)) for each in node.expressions)
    return start, end


def _age(build: _Builder, start: Expr, end: Expr) -> tuple[Expr, Expr]:
    """Return the months between two times, and the remaining days and time in microseconds."""
    forward, backward = _months_and_rest(build, start, end), _months_and_rest(build, end, start)
    months, rest = (build.signed(start, end, *both) for both in zip(forward, backward, strict=True))
    return months, rest


def _months_and_rest(build: _Builder, first: Expr, second: Expr) -> tuple[Expr, Expr]:
    """Return both for a first time that is not later. If the second is earlier in its month, the rest counts from the
    first one's day to the end of its month, and on."""
    month = build("trunc_month", first)
    later = build("microseconds_between", second, build("trunc_month", second))
    apart = build("subtract", later, build("microseconds_between", first, month))
    early = build("lt", apart, 0)
    length = build("microseconds_between", build("add_month", month, 1), month)
    months = build("subtract", build("diff_month", first, second), build("to_integer", early))
    return months, build("case", early, build("add", apart, length), apart)
