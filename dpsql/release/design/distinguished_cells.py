"""Cells of rows that a query's aggregates distinguish, and the value of each aggregate's arguments in each.

Filters that exclude each other or nest (CASE, FILTER, COUNT_IF, bands), booleans and NULLs divide rows into cells. The
cells follow from the query only; the executor assigns rows to them (`exact.CellPart`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.core.unit import Neighbours
from dpsql.plan.expressions import Expr, Literal
from dpsql.plan.facts import fact
from dpsql.release.design.alternatives import (
    KnownConditions,
    State,
    UndecidedCondition,
    conditions_of,
    made,
    states_of,
    value_in,
)
from dpsql.release.identity_key import IdentityKey
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

MOST_CELLS = 64
_MOST_CHANGED = 16
"""The most cells under bounded neighbours, where a row can move from any cell to any other."""
_MOST_WORK = 4_096
_LARGEST = 2.0**40
"""Beyond this limit, midpoints of ranges, which are float factors here, are left to designs that keep them as
fractions."""
ONE = Literal(1, Type.INTEGER)

Value = tuple[Expr | None, Expr | None]
"""The values of an aggregate's arguments: None for NULL, or for a missing second argument. For counts, which only need
a non-NULL value, the first is 1."""
NOTHING: Value = (None, None)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: the condition of its rows, None if no aggregate needs them or the cell has all rows; and the values of
    each aggregate's arguments."""

    condition: Expr | None
    values: tuple[Value, ...]


def cells_of(analysis: Analysis) -> tuple[Cell, ...]:
    """Return the cells that a query's aggregates distinguish; none if there is only one, or too many."""
    return _cells_of(IdentityKey(analysis))


@lru_cache(maxsize=64)
def _cells_of(of: IdentityKey[Analysis]) -> tuple[Cell, ...]:
    analysis = of.value
    measured = analysis.measured
    if not analysis.private or not all(map(_of_rows, measured)):
        return ()
    read = [each for m in measured for each in m.aggregation.arguments]
    try:
        apart = _told_apart(analysis, [condition for each in read for condition in conditions_of(each)])
    except UndecidedCondition:
        return ()
    if apart is None:
        return ()
    states, rows = apart
    most = _MOST_CHANGED if analysis.neighbours is Neighbours.BOUNDED else MOST_CELLS
    if not 2 <= len(rows) <= min(most, 4 * len(measured) + 4):
        return ()
    told = KnownConditions(states)
    asked = {values: _is_asked(measured, values) for values in rows}
    return tuple(Cell(told.of(own) if asked[values] else None, values) for values, own in rows.items())


def _of_rows(m: MeasuredAggregation) -> bool:
    """Return whether an aggregate sums over rows, with bounds for which float factors are accurate."""
    held = [each.range for each in (m.argument, m.other) if each is not None and m.sum is not None]
    small = all(each.bounded and each.magnitude < _LARGEST for each in held)
    return m.of == "rows" and bool(m.aggregation.kind.moments) and small


def _told_apart(
    analysis: Analysis, conditions: list[Expr]
) -> tuple[list[State], dict[tuple[Value, ...], list[int]]] | None:
    """Return the states of the conditions and of NULL tests on argument values; and the states, by row number, with
    equal values of all aggregates."""
    values_of = _values(analysis, states := states_of(conditions, analysis.known))
    if states is None or values_of is None:
        return None
    each_of = (each for values in values_of for value in values for each in value)
    values = dict.fromkeys(each for each in each_of if each is not None)
    told = states[0].nulls
    nullable = [each for each in values if each not in told and fact(each, analysis.known).nullable]
    if nullable:
        states = states_of([*conditions, *(made("is_null", each) for each in nullable)], analysis.known)
        values_of = _values(analysis, states)
        if states is None or values_of is None:
            return None
    rows: dict[tuple[Value, ...], list[int]] = {}
    for row, each in enumerate(values_of):
        rows.setdefault(each, []).append(row)
    return states, rows


def _values(analysis: Analysis, states: list[State] | None) -> list[tuple[Value, ...]] | None:
    """Return the arguments' values in each state; None if that is too much work."""
    if states is None or len(states) * len(analysis.measured) > _MOST_WORK:
        return None
    return [tuple(_value(m, state, analysis) for m in analysis.measured) for state in states]


def _value(m: MeasuredAggregation, state: State, analysis: Analysis) -> Value:
    """Return the values of an aggregate's arguments; nothing if either of two is NULL."""
    if m.aggregation.argument is None:
        return ONE, None
    first = _one(m, m.aggregation.argument, state, analysis)
    if m.aggregation.second is None:
        return first, None
    other = _one(m, m.aggregation.second, state, analysis)
    return NOTHING if first is None or other is None else (first, other)


def _one(m: MeasuredAggregation, argument: Expr, state: State, analysis: Analysis) -> Expr | None:
    value = value_in(argument, state)
    if isinstance(value, Literal):
        return None if value.value is None else ONE if m.sum is None else value
    sure = state.nulls.get(value) is False or not fact(value, analysis.known).nullable
    return ONE if m.sum is None and sure else value


def _is_asked(measured: Sequence[MeasuredAggregation], values: Sequence[Value]) -> bool:
    """Return whether any aggregate needs the rows of a cell. Other cells need no condition: they are the rest."""
    return any(counts(m, value) or is_summed(value) for m, value in zip(measured, values, strict=True))


def counts(m: MeasuredAggregation, value: Value) -> bool:
    """Return whether an aggregate needs the number of rows with this value of its arguments."""
    first, _ = value
    if first is None:
        return False
    return "n" in m.aggregation.kind.moments or (isinstance(first, Literal) and bool(first.value))


def is_summed(value: Value) -> bool:
    """Return whether the value differs from row to row."""
    return value[0] is not None and not isinstance(value[0], Literal)


def counts_all(at: int, cells: Sequence[Cell]) -> bool:
    """Return whether the aggregate at a place counts the rows of every cell."""
    return all(cell.values[at][0] is not None for cell in cells)
