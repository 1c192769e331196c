"""Cells of rows that a query's aggregates tell apart, and what each aggregate's arguments come to in each.

Filters that exclude each other or nest (CASE, FILTER, COUNT_IF, bands), booleans and NULLs tell cells of rows apart.
Which cells there are follows from the query alone; which rows are in them is up to the executor (`exact.InCell`).
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
"""Cells under bounded neighbours, where a row can leave any for any other."""
_MOST_WORK = 4_096
_LARGEST = 2.0**40
"""Beyond it middles of ranges, which are factors here, are left to designs that keep them as fractions."""
ONE = Literal(1, Type.INTEGER)

Value = tuple[Expr | None, Expr | None]
"""What the arguments of an aggregate come to: None for NULL, and for a second one that there is not. Of counts, which
ask for no more than that it is there, the first is 1."""
NOTHING: Value = (None, None)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's alternative, None of rows that nobody asks for and of all rows; and what each aggregate's arguments come
    to there."""

    condition: Expr | None
    values: tuple[Value, ...]


def cells_of(analysis: Analysis) -> tuple[Cell, ...]:
    """The cells that a query's aggregates tell apart; none where there is one only, or too many."""
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
    """Whether an aggregate adds up rows, of values in bounds that factors of doubles are good for."""
    held = [each.range for each in (m.argument, m.other) if each is not None and m.sum is not None]
    small = all(each.bounded and each.magnitude < _LARGEST for each in held)
    return m.of == "rows" and bool(m.aggregation.kind.moments) and small


def _told_apart(
    analysis: Analysis, conditions: list[Expr]
) -> tuple[list[State], dict[tuple[Value, ...], list[int]]] | None:
    """The states of the conditions, and of whether values are NULL that aggregates come to in some of them; and where
    the aggregates come to the same."""
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
    """What arguments come to in each state; None where that would be too much work."""
    if states is None or len(states) * len(analysis.measured) > _MOST_WORK:
        return None
    return [tuple(_value(m, state, analysis) for m in analysis.measured) for state in states]


def _value(m: MeasuredAggregation, state: State, analysis: Analysis) -> Value:
    """What an aggregate's arguments come to; one of two counts where the other is there."""
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
    """Whether any aggregate asks for rows of a cell. Others need no alternative: they are the rest."""
    return any(counts(m, value) or is_summed(value) for m, value in zip(measured, values, strict=True))


def counts(m: MeasuredAggregation, value: Value) -> bool:
    """Whether an aggregate asks for the number of rows where its arguments come to a value."""
    first, _ = value
    if first is None:
        return False
    return "n" in m.aggregation.kind.moments or (isinstance(first, Literal) and bool(first.value))


def is_summed(value: Value) -> bool:
    """Whether it is of values that differ from row to row."""
    return value[0] is not None and not isinstance(value[0], Literal)


def counts_all(at: int, cells: Sequence[Cell]) -> bool:
    """Whether the aggregate at a place counts the rows of every cell."""
    return all(cell.values[at][0] is not None for cell in cells)
