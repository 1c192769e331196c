"""Constant series: integers, dates and timestamps between two ends."""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.evaluation import folded
from dpsql.plan.expressions import Call, Expr, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.date_units import Unit
from dpsql.schema.calendar import MICROSECONDS_A_DAY
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.rewrite.time_spans import interval_of

LISTS = (exp.GenerateSeries, exp.GenerateDateArray)
_HINT = "Write generate_series(1, 12), or generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL 1 MONTH)."


def series(node: exp.Expr, binder: ScalarBinder, most: int) -> tuple[Type, Vector]:
    """Return the type and at most `most` values of GENERATE_SERIES, RANGE or GENERATE_DATE_ARRAY.

    A series of times holds timestamps, as in DuckDB, and one of GENERATE_DATE_ARRAY dates. Raises UnsupportedSQL,
    SQLSyntaxError.
    """
    ends = [_end(node.args[name], binder, node) for name in ("start", "end")]
    step = node.args.get("step")
    if all(each.type is Type.INTEGER for each in ends) and not isinstance(step, exp.Interval):
        by = 1 if step is None else _whole(binder.bind(step), binder, node)
        return Type.INTEGER, Vector(_Series(node, binder, most, _number(ends[0]), _number(ends[1])).numbers(by))
    if not all(each.type.temporal for each in ends) or not isinstance(step, exp.Interval | None):
        raise TypeMismatch(
            "a series is of whole numbers, or of times by an INTERVAL.", span=binder.span(node), hint=_HINT
        )
    return _of_times(node, ends, binder, most)


def _of_times(node: exp.Expr, ends: list[Literal], binder: ScalarBinder, most: int) -> tuple[Type, Vector]:
    step, days = node.args.get("step"), isinstance(node, exp.GenerateDateArray)
    if step is None and not days:
        raise SQLSyntaxError("a series of times goes by an INTERVAL.", span=binder.span(node), hint=_HINT)
    start, end = (_number(binder.as_time(node, each, Type.TIMESTAMP)) for each in ends)
    listed = _Series(node, binder, most, start, end)
    unit, count = (None, 1) if step is None else interval_of(binder, step)
    if unit is not None and unit.months:
        values = listed.months(unit, count)
    else:
        size = MICROSECONDS_A_DAY if unit is None else unit.microseconds
        values = listed.numbers(size * count)
    return (Type.DATE, Vector(values // MICROSECONDS_A_DAY)) if days else (Type.TIMESTAMP, Vector(values))


def _end(node: exp.Expr, binder: ScalarBinder, whole: exp.Expr) -> Literal:
    bound = binder.bind(node)
    if isinstance(whole, exp.GenerateDateArray) and isinstance(bound, Literal) and bound.type is Type.TEXT:
        made = binder.as_time(node, bound, Type.DATE)
        assert isinstance(made, Literal)  # a text is read at once
        bound = made
    if not isinstance(bound, Literal) or bound.value is None:
        raise UnsupportedSQL("the ends of a series are constants.", span=binder.span(node), hint=_HINT)
    return bound


def _number(bound: Expr) -> int:
    assert isinstance(bound, Literal)
    assert isinstance(bound.value, int)  # guaranteed by their types
    return bound.value


def _whole(bound: object, binder: ScalarBinder, node: exp.Expr) -> int:
    if not isinstance(bound, Literal) or bound.type is not Type.INTEGER or not isinstance(bound.value, int):
        raise SQLSyntaxError("a series of whole numbers goes by one.", span=binder.span(node), hint=_HINT)
    return bound.value


@dataclass(frozen=True)
class _Series:
    """One series: at most `most` values from `start` to `end`."""

    node: exp.Expr
    binder: ScalarBinder
    most: int
    start: int
    end: int

    def numbers(self, by: int) -> np.ndarray:
        """Return integers in steps of `by`."""
        self._check_step(by)
        reach = (self.end - self.start) // by if by > 0 else (self.start - self.end) // -by
        count = max(0, reach + 1)
        if self._is_open and count and self.start + reach * by == self.end:
            count -= 1
        self._check_count(count)
        return np.arange(count, dtype=np.int64) * by + self.start

    def months(self, unit: Unit, count: int) -> np.ndarray:
        """Return times in steps of `count` months, as in DuckDB: 31 January, 29 February, 29 March."""
        self._check_step(count)
        times: list[int] = []
        at: int | None = self.start
        while at is not None and self._is_before_the_end(at, count):
            times.append(at)
            self._check_count(len(times))
            after = call(FUNCTIONS[f"add_{unit.name}"], Literal(at, Type.TIMESTAMP), Literal(count, Type.INTEGER))
            assert isinstance(after, Call)  # valid for a time and an integer
            value = folded(after)
            at = value.value if isinstance(value, Literal) and isinstance(value.value, int) else None
        return np.array(times, dtype=np.int64)

    @property
    def _is_open(self) -> bool:
        """Return whether the end is excluded, as in RANGE."""
        return bool(self.node.args.get("is_end_exclusive"))

    def _is_before_the_end(self, at: int, count: int) -> bool:
        if at == self.end:
            return not self._is_open
        return at < self.end if count > 0 else at > self.end

    def _check_step(self, by: int) -> None:
        if by == 0:
            raise SQLSyntaxError("a series by 0 has no end.", span=self.binder.span(self.node))

    def _check_count(self, count: int) -> None:
        if count > self.most:
            raise UnsupportedSQL(f"a series has at most {self.most:,} values.", span=self.binder.span(self.node))
