"""Window functions inside a privacy unit, as text: the same values on every engine.

Uses the engine's own windows, partitioned by the unit and then the written partition. Functions of single rows use the
written order and then the tie-breakers, which only leaves interchangeable rows tied; peers and RANGE frames use the
written order. FIRST_VALUE and LAST_VALUE of a RANGE frame take the row with the least or largest number in the frame,
since engines return any of its peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.plan.expressions import Expr
from dpsql.plan.nodes import Windows
from dpsql.plan.windows import MOST_ROWS, WHOLE, Frame, WindowCall, WindowOrder
from dpsql.schema.columns import Type

_LARGEST = 2**62


def windowed(node: Windows, rows: Rows, writer: Writer) -> Rows:
    """Return the rows with a column for each call. Units with too many rows are dropped."""
    exprs = [expr for call in node.calls for expr in call.exprs()]
    rows, _ = writer.with_values(rows, [*exprs, *node.ties])
    rows, size = writer.with_column(rows, f"COUNT(*) OVER (PARTITION BY {rows.unit})", "w")
    rows = replace(rows, text=writer.select("*", rows.text, f" WHERE {size} <= {MOST_ROWS}"))
    ties = [term for expr in node.ties for term in _tie(expr, rows, writer)]
    if sum(map(_orders, node.calls)) > 1:
        by = ", ".join(ties) or str(rows.unit)
        rows, place = writer.with_column(rows, f"ROW_NUMBER() OVER (PARTITION BY {rows.unit} ORDER BY {by})", "w")
        ties = [place]
    columns = dict(rows.columns)
    for call, column in zip(node.calls, node.columns, strict=True):
        made = _Call(call, ties, rows, writer)
        text = made.text()
        rows, columns[column.table, column.name] = writer.with_column(made.rows, text, "w")
    return replace(rows, columns=columns)


def _orders(call: WindowCall) -> int:
    """Return how many windows of a call number single rows. Engines order ties arbitrarily, and differently in each
    window. With several windows, rows are numbered once for all, so that a row has the same place in each."""
    if call.function.family == "place":
        return int(not call.function.peers)
    if call.frame is None or (call.function.family == "row" and call.frame.kind == "range"):
        return 1
    several = call.function.name in ("SUM", "AVG")
    return (1 + several) if call.frame.kind == "rows" and call.frame != WHOLE else 0


def _term(term: WindowOrder, rows: Rows, writer: Writer) -> str:
    text = writer.text(term.expr, rows)
    text = f"({text} + 0.0e0)" if term.expr.type is Type.REAL else text
    return f"{text} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"


def _tie(expr: Expr, rows: Rows, writer: Writer) -> list[str]:
    """Return the order terms of a tie-breaker. Of reals, -0.0 comes before 0.0, since their texts differ."""
    terms = [_term(WindowOrder(expr, nulls_first=True), rows, writer)]
    if expr.type is Type.REAL:
        text = writer.text(expr, rows)
        zero = f"{text} = 0.0e0 AND CAST({text} AS {writer.dialect.type_name(Type.TEXT)}) LIKE '-%'"
        terms.append(f"CASE WHEN {zero} THEN 0 ELSE 1 END")
    return terms


class _Call:
    """Writer of one call over rows; adds the columns that it needs to `rows`."""

    def __init__(self, call: WindowCall, ties: Sequence[str], rows: Rows, writer: Writer) -> None:
        self.call = call
        self.rows = rows
        self.writer = writer
        self.dialect: Dialect = writer.dialect
        self.parts = ", ".join([str(rows.unit), *(writer.key_text(each, rows) for each in call.partition)])
        self.order = [_term(each, rows, writer) for each in call.order]
        self.ties = ties

    def text(self) -> str:
        call, name = self.call, self.call.function.name
        if call.function.family == "place":
            number = str(call.number) if name == "NTILE" else ""
            return self._whole(f"{name}({number}) {self._over(by_row=not call.function.peers)}")
        if call.frame is None:
            return self._other_row()
        if call.function.family == "row":
            return self._end_of_frame(call.frame)
        over = self._over(call.frame)
        if call.argument is None:
            return f"COUNT(*) {over}"
        return self._framed(name, self._argument(call.argument), call.argument.type, over)

    def _whole(self, text: str) -> str:
        return f"CAST({text} AS {self.dialect.type_name(self.call.type)})"

    def _argument(self, expr: Expr) -> str:
        return self.writer.text(expr, self.rows)

    # Windows.

    def _over(self, frame: Frame | None = None, *, by_row: bool = False) -> str:
        """Return OVER (...). ROWS frames and functions of single rows include the tie-breakers in the order."""
        order = self.order
        if by_row or (frame is not None and frame.kind == "rows" and frame != WHOLE):
            order = [*self.order, *self.ties]
        elif frame is not None and frame.kind == "range" and (frame.start or frame.end):
            order = [self._by_number(self.call.order[0])]
        if frame == WHOLE:
            order = []
        elif not order:
            order = [str(self.rows.unit)]  # all rows of a partition are equal; an engine may require some order
        by = f" ORDER BY {', '.join(order)}" if order else ""
        reach = f" {_frame(frame)}" if frame is not None and by else ""
        return f"OVER (PARTITION BY {self.parts}{by}{reach})"

    def _by_number(self, term: WindowOrder) -> str:
        """Return the order value of a RANGE frame: dates as days, timestamps as microseconds."""
        text = self.writer.text(term.expr, self.rows)
        text = f"({text} + 0.0e0)" if term.expr.type is Type.REAL else self.dialect.whole(text, term.expr.type)
        return f"{text} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"

    # Results of calls.

    def _other_row(self) -> str:
        call = self.call
        assert call.argument is not None  # LAG and LEAD have an argument
        over, number = self._over(by_row=True), str(call.number)
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        value = f"{self.dialect.windowed(call.function.name, [self._argument(call.argument), number], nulls)} {over}"
        if call.default is None:
            return value
        # An existing row may hold NULL, unless NULLs are ignored.
        there = value if nulls else f"{self.dialect.windowed(call.function.name, ['1', number], '')} {over}"
        return f"CASE WHEN {there} IS NULL THEN {self._argument(call.default)} ELSE {value} END"

    def _end_of_frame(self, frame: Frame) -> str:
        call = self.call
        assert call.argument is not None  # both functions have an argument
        first = call.function.name == "FIRST_VALUE"
        argument = self._argument(call.argument)
        if frame.kind == "rows":
            nulls = " IGNORE NULLS" if call.ignore_nulls else ""
            order = [*self.order, *self.ties]
            by = f" ORDER BY {', '.join(order)}" if order else ""
            over = f"OVER (PARTITION BY {self.parts}{by} {_frame(frame)})"
            return f"{self.dialect.windowed(call.function.name, [argument], nulls)} {over}"
        self.rows, number = self.writer.with_column(self.rows, f"ROW_NUMBER() {self._over(by_row=True)}", "w")
        pair = self.dialect.pair(number, argument)
        if call.ignore_nulls:
            pair = f"CASE WHEN {argument} IS NOT NULL THEN {pair} END"
        return self.dialect.second_of(f"{'MIN' if first else 'MAX'}({pair}) {self._over(frame)}")

    def _framed(self, name: str, argument: str, kind: Type, over: str) -> str:
        if name == "COUNT":
            return f"COUNT({argument}) {over}"
        if name in ("MIN", "MAX"):
            return f"{name}({argument} + 0.0e0) {over}" if kind is Type.REAL else f"{name}({argument}) {over}"
        whole = f"CAST({argument} AS BIGINT)"
        self.rows, count = self.writer.with_column(self.rows, f"COUNT({argument}) {over}", "w")
        self.rows, total = self.writer.with_column(self.rows, self.dialect.total(whole, _LARGEST, f" {over}"), "w")
        if name == "SUM":
            return f"CASE WHEN {count} > 0 THEN CAST(LEAST(GREATEST({total}, {-_LARGEST}), {_LARGEST}) AS BIGINT) END"
        high, low = self.dialect.halves(total)
        return f"CASE WHEN {count} > 0 THEN ({high} + {low}) / {count} END"


def _frame(frame: Frame) -> str:
    return f"{frame.kind.upper()} BETWEEN {_end(frame.start, 'PRECEDING')} AND {_end(frame.end, 'FOLLOWING')}"


def _end(steps: float | None, beyond: str) -> str:
    if steps is None:
        return f"UNBOUNDED {beyond}"
    if steps == 0:
        return "CURRENT ROW"
    size = f"'{abs(steps)!r}'" if isinstance(steps, float) else str(abs(steps))
    size = f"CAST({size} AS DOUBLE)" if isinstance(steps, float) else size
    return f"{size} {'PRECEDING' if steps < 0 else 'FOLLOWING'}"
