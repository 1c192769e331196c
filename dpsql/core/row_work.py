"""The time that one row, or one privacy unit, can take in a plan: bounded by the query's text and declared facts.

Each function's record has its work (`plan.work`), and each expression a maximum length of its texts. A row is read once
by every expression of a plan, and once more for each row that public tables below make of it. Work adds up over all of
these, independently of the row's values: a CASE works on all of its arms.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.sensitivity.stability import stability
from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import Call, Column, Expr, walk
from dpsql.plan.nodes import Join, Mark, Source, Union, exprs_of, inputs_of, nodes_of, scans_of
from dpsql.plan.query import Aggregate
from dpsql.plan.text_lengths import longest, made_length, read_sizes, size_of
from dpsql.plan.work import LONGEST_TEXT, NUMBER
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

MOST_CALL_WORK = 16_000_000
"""Nanoseconds that one call may take for a row: with and without the row, runs differ by less than 20 milliseconds."""
MOST_ROW_WORK = 8 * MOST_CALL_WORK
"""Nanoseconds that all calls of a query together may take for a row."""
USUAL_TEXT = 256
"""Characters of a stored text that is not the longest of its unit."""
MOST_PAIRS = 1 << 22
"""The maximum number of pairs of one unit's rows that an engine makes."""
PASSES = 2
"""The number of times rows are read: twice if bounds are chosen."""
_SHORTER = (4_096, 2_048, 1_024, 512, 256, 128, 64, 32)


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression that is computed for every row at a place in a plan; `times`: the number of rows there for one row
    of a private table."""

    expr: Expr
    times: int


def check_row_work(plan: Aggregate) -> None:
    """Raise UnsupportedSQL if one row can take more than MOST_ROW_WORK, or one call more than MOST_CALL_WORK."""
    readings = list(readings_of(plan))
    work = Measure(LONGEST_TEXT)
    total = sum(each.times * work.of(each.expr) for each in readings)
    if total <= MOST_CALL_WORK:
        return
    parts = dict.fromkeys((each.times, part) for each in readings for part in walk(each.expr) if isinstance(part, Call))
    most, call = max(((times * work.own(part), part) for times, part in parts), key=lambda pair: pair[0])
    if most > MOST_CALL_WORK:
        raise _refused(f"{_name(call)} could take {_milliseconds(most)} ms", MOST_CALL_WORK, _hint(call, work, most))
    if total > MOST_ROW_WORK:
        hint = "Ask for less in one query, or read shorter texts: LEFT(x, 1000) in place of x."
        raise _refused(f"this query could take {_milliseconds(total)} ms", MOST_ROW_WORK, hint)


def _refused(what: str, most: float, hint: str) -> UnsupportedSQL:
    text = f"{what} for one row, which the response time would show; at most {_milliseconds(most)} ms are allowed."
    return UnsupportedSQL(text, hint=hint)


def unit_work(plan: Aggregate, rows: int) -> float:
    """Return the nanoseconds that a privacy unit can take: each row has texts of USUAL_TEXT characters, and one row has
    texts of the maximum length. rows: those that count; a unit may store more, as many as its tables declare."""
    rows = max(rows, stored_rows(plan))
    readings = list(readings_of(plan))
    longest_texts, usual_texts = Measure(LONGEST_TEXT), Measure(USUAL_TEXT)
    peak = sum(each.times * longest_texts.of(each.expr) for each in readings)
    usual = sum(each.times * usual_texts.of(each.expr) for each in readings)
    pairs = min(MOST_PAIRS, int(rows ** (1 + _joins_of_people(plan.input))))
    return PASSES * (peak + pairs * (usual + NUMBER * sum(each.times for each in readings)))


def stored_rows(plan: Aggregate) -> int:
    """Return the declared maximum of rows of one unit in one table. A query may count fewer, but all are read."""
    return max((scan.table.limits.rows or 1 for scan in scans_of(plan.input)), default=1)


def _joins_of_people(source: Source) -> int:
    """Return how many joins make all pairs of rows of one unit."""
    joins = (node for node in nodes_of(source) if isinstance(node, Join | Mark))
    return sum(all(stability(each).by_unit for each in inputs_of(node)) for node in joins)


def readings_of(plan: Aggregate) -> Iterator[RowExpression]:
    """Yield all that a plan computes from rows of private tables."""
    top = stability(plan.input)
    if top.by_unit:
        above = [key.expr for key in plan.keys] + [expr for each in plan.aggregations for expr in each.arguments]
        yield from (RowExpression(expr, top.fan_out) for expr in above)
    for node in nodes_of(plan.input):
        yield from _readings_at(node)


def _readings_at(node: Source) -> Iterator[RowExpression]:
    below = [stability(each) for each in inputs_of(node)]
    if not any(each.by_unit for each in below):
        return
    if isinstance(node, Union):
        for branch, each in zip(node.branches, below, strict=True):
            yield from (RowExpression(expr, each.fan_out) for expr in branch.outputs if each.by_unit)
        return
    times = max(each.fan_out for each in below if each.by_unit)
    if isinstance(node, Join | Mark):  # work on public rows only is the same without the unit
        for left, right in node.keys:
            yield RowExpression(left, below[0].fan_out)
            if below[1].by_unit:
                yield RowExpression(right, below[1].fan_out)
        if isinstance(node, Mark) and node.condition is not None:
            yield RowExpression(node.condition, times * public_rows(node.inner))
        return
    yield from (RowExpression(expr, times) for expr in exprs_of(node))


def public_rows(source: Source) -> int:
    """Return how many rows of a public source are compared with each row."""
    below = stability(source)
    if below.by_unit:
        return 1
    rows = 1
    for node in nodes_of(source):
        rows = max(rows, getattr(getattr(node, "table", None), "rows", None) or 1)
    return rows * below.fan_out


class Measure:
    """The work of expressions, for stored texts of at most `stored` characters unless declared otherwise."""

    def __init__(self, stored: int) -> None:
        self._stored = stored
        self._known: dict[Expr, tuple[int, float]] = {}

    def of(self, expr: Expr) -> float:
        """Return the nanoseconds for one row."""
        return self._measured(expr)[1]

    def own(self, call: Call) -> float:
        """Return the nanoseconds of a call without its arguments."""
        return call.function.work(read_sizes(call.function, call.args, [self.length(arg) for arg in call.args]))

    def length(self, expr: Expr) -> int:
        """Return the maximum number of characters of a text; 0 for other types."""
        return self._measured(expr)[0]

    def _measured(self, expr: Expr) -> tuple[int, float]:
        if not isinstance(expr, Call):
            return longest(expr, self._stored), 0.0
        known = self._known.get(expr)
        if known is None:
            below = sum(self._measured(arg)[1] for arg in expr.args)
            sizes = read_sizes(expr.function, expr.args, [self._measured(arg)[0] for arg in expr.args])
            length = made_length(expr.function, sizes, expr.held) if expr.type is Type.TEXT else 0
            known = self._known[expr] = (length, below + expr.function.work(sizes))
        return known


def _hint(call: Call, work: Measure, most: float) -> str:
    """Return what to write instead of a text, if a shorter one is enough."""
    text = next((arg for arg in call.args if isinstance(arg, Column | Call) and arg.type is Type.TEXT), None)
    if text is None:
        return "Join a smaller public table."
    for characters in _SHORTER:
        sizes = [size_of(arg, min(characters, work.length(arg))) for arg in call.args]
        if most / work.own(call) * call.function.work(sizes) <= MOST_CALL_WORK:
            if isinstance(text, Column):
                return f"Write LEFT({text}, {characters}) in place of {text}."
            return f"Write LEFT(..., {characters}) around the text that {_name(call)} reads."
    return f"Shorten the texts and the pattern of {_name(call)}."


def _name(call: Call) -> str:
    return call.function.name.upper()


def _milliseconds(work: float) -> str:
    return f"{work / 1_000_000:,.0f}"
