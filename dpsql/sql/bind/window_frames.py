"""Window frames as written: ROWS and RANGE, by rows, distances and lengths of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.rules import LARGEST_INTEGER
from dpsql.plan.windows import MOST_RANGE, MOST_STEPS, WHOLE, Facts, Frame, WindowOrder
from dpsql.schema.calendar import MICROSECONDS_A_DAY
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.rewrite.time_spans import interval_of
from dpsql.sql.syntax.parse import span_of

_MOST_DAYS = 10_000_000


def frame_of(sql: str, node: exp.Window, order: Sequence[WindowOrder], binder: ScalarBinder) -> Frame:
    """Return the frame of a window. By default it runs from the first row to the current row's last peer, or over the
    whole partition without an order. Raises a QueryRefused."""
    spec = node.args.get("spec")
    if spec is None:
        return Frame("range", None, 0) if order else WHOLE
    kind, span = str(spec.args.get("kind")).upper(), span_of(sql, spec) or span_of(sql, node)
    if kind not in ("ROWS", "RANGE"):
        raise UnsupportedSQL(f"{kind} is not supported in a frame: ROWS and RANGE are.", span=span)
    reader = _Ends(sql, order, binder, by_rows=kind == "ROWS")
    start = reader.steps(spec.args.get("start"), spec.args.get("start_side"), first=True)
    end = reader.steps(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), first=False)
    if start is not None and end is not None and start > end:
        raise SQLSyntaxError("the frame ends before it begins.", span=span)
    if start is end is None or (kind == "RANGE" and not order):
        return WHOLE
    return Frame("rows" if kind == "ROWS" else "range", start, end)


def within_reach(order: tuple[WindowOrder, ...], frame: Frame, fact_of: Facts) -> tuple[WindowOrder, ...]:
    """Return the order of a frame, with integers clamped to +/- 2^62 if RANGE reaches further.

    An engine that adds the distance to a larger one would fail, depending on one row.
    """
    if frame.kind != "range" or not (frame.start or frame.end):
        return order
    (term,) = order
    if term.expr.type is not Type.INTEGER or fact_of(term.expr).range.magnitude <= LARGEST_INTEGER:
        return order
    ends = (Literal(-LARGEST_INTEGER, Type.INTEGER), Literal(LARGEST_INTEGER, Type.INTEGER))
    held = call(FUNCTIONS["clamp"], term.expr, *ends)
    assert held is not None  # integers always have limits
    return (replace(term, expr=held),)


class _Ends:
    """Reader of the two ends of a frame."""

    def __init__(self, sql: str, order: Sequence[WindowOrder], binder: ScalarBinder, *, by_rows: bool) -> None:
        self.sql = sql
        self.order = order
        self.binder = binder
        self.by_rows = by_rows

    def steps(self, value: object, side: object, *, first: bool) -> int | float | None:
        """Return the end of a frame, as in `Frame`."""
        if value == "CURRENT ROW":
            return 0
        before = str(side).upper() == "PRECEDING"
        if value == "UNBOUNDED":
            if before is not first:
                raise SQLSyntaxError(f"a frame does not {'begin' if first else 'end'} with UNBOUNDED {side}.")
            return None
        assert isinstance(value, exp.Expr)  # the parser knows no others
        steps = self._rows(value) if self.by_rows else self._distance(value)
        return -steps if before else steps

    def _rows(self, node: exp.Expr) -> int:
        literal = None if isinstance(node, exp.Interval) else self.binder.bind(node)
        value = literal.value if isinstance(literal, Literal) and literal.type is Type.INTEGER else None
        if not isinstance(value, int) or not 0 <= value <= MOST_STEPS:
            raise SQLSyntaxError(
                f"a frame of ROWS goes a whole number of rows, at most {MOST_STEPS:,}.", span=span_of(self.sql, node)
            )
        return value

    def _distance(self, node: exp.Expr) -> int | float:
        span = span_of(self.sql, node)
        if len(self.order) != 1:
            raise SQLSyntaxError("a frame by RANGE with a distance wants one term in ORDER BY.", span=span)
        kind = self.order[0].expr.type
        if isinstance(node, exp.Interval):
            return self._time(node, kind)
        literal = self.binder.bind(node)
        value = literal.value if isinstance(literal, Literal) and literal.type.numeric else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise SQLSyntaxError("a frame by RANGE goes a constant distance, 0 or more.", span=span)
        if kind is Type.REAL:
            return float(value)
        if kind in (Type.INTEGER, Type.DATE) and isinstance(value, int):
            return self._within(value, MOST_RANGE if kind is Type.INTEGER else _MOST_DAYS, node)
        raise self._unfit(kind, node)

    def _time(self, node: exp.Interval, kind: Type) -> int:
        unit, count = interval_of(self.binder, node)
        if unit.months or count < 0:
            raise SQLSyntaxError(
                "a frame by RANGE goes weeks, days, hours, minutes or seconds.", span=span_of(self.sql, node)
            )
        length = unit.microseconds * count
        if kind is Type.TIMESTAMP:
            return self._within(length, _MOST_DAYS * MICROSECONDS_A_DAY, node)
        if kind is Type.DATE and length % MICROSECONDS_A_DAY == 0:
            return self._within(length // MICROSECONDS_A_DAY, _MOST_DAYS, node)
        raise self._unfit(kind, node)

    def _within(self, value: int, most: int, node: exp.Expr) -> int:
        if value > most:
            raise SQLSyntaxError("the frame reaches too far.", span=span_of(self.sql, node))
        return value

    def _unfit(self, kind: Type, node: exp.Expr) -> TypeMismatch:
        return TypeMismatch(
            f"a frame by RANGE of that distance does not fit ORDER BY {self.order[0].expr}, which is {kind}.",
            span=span_of(self.sql, node),
            hint="Numbers go by numbers, dates by whole days, timestamps by INTERVAL '30 minutes'.",
        )
