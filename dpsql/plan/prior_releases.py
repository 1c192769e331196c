"""Answers of prior releases of the same statement, in the plan of a later one.

A value is a column of no table (`EARLIER`) without facts but its type. A list is a public table without facts but its
maximum number of rows and the keys to which it is cut. Proof that their later contents narrow no fact: everything
derived for a column without facts holds for every possible value, and no value exists during planning. `filled` inserts
values into the engine's plan, and into nothing that losses, sensitivities, shares or designs are made of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Call, Column, Expr, Fact, Function, Literal, columns, rebuild
from dpsql.schema.columns import EARLIER, ColumnSchema, Key, TableSchema, Type, value_range
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING, Interval

VERSION = "\0earlier"
"""Version of a table with the rows of a prior release. No owner can write it."""
MOST_LISTED = 1_000_000
"""Maximum number of rows of a list in IN."""

Values = Mapping[Column, Literal]
Some = TypeVar("Some")


def value_column(name: str, kind: Type, written: str) -> Column:
    """Return a column for a value of a prior release: anything of its type, or NULL. written: its sub-query."""
    known = Fact(value_range(ColumnSchema(name, kind)), nullable=True, whole=kind.discrete)
    return Column(name, kind, known.meaning(EVERYTHING) if kind.temporal else known, EARLIER, written)


def is_earlier(expr: object) -> bool:
    """Return whether an expression is a value of a prior release."""
    return isinstance(expr, Column) and expr.table == EARLIER


def reads_earlier(expr: Expr) -> bool:
    """Return whether an expression reads a value of a prior release."""
    return any(map(is_earlier, columns(expr)))


def is_shown(table: TableSchema) -> bool:
    """Return whether a table's rows are those of a prior release."""
    return table.public and table.version == VERSION


def filled(thing: Some, values: Values) -> Some:
    """Return a plan, or a part of one, with values replacing their columns; the same object if it has none."""
    return thing if not values else _filled(thing, values)


_WHOLE = (TableSchema, ColumnSchema, Function, AggregateFunction, Interval, type)
_CELLS = frozenset({float, int, str, bool, type(None)})
"""Types in public lists and edges, which may be long."""


def _filled(thing: Any, values: Values) -> Any:
    if isinstance(thing, Call | Column):
        return rebuild(thing, values)  # type: ignore[arg-type]
    if isinstance(thing, tuple):
        parts = tuple(each if type(each) in _CELLS else _filled(each, values) for each in thing)
        return parts if any(one is not other for one, other in zip(parts, thing, strict=True)) else thing
    if not dataclasses.is_dataclass(thing) or isinstance(thing, _WHOLE):
        return thing
    names = [each.name for each in dataclasses.fields(thing) if each.init]
    before = {name: getattr(thing, name) for name in names}
    after = {name: _filled(value, values) for name, value in before.items()}
    changed = {name: value for name, value in after.items() if value is not before[name]}
    return dataclasses.replace(thing, **changed) if changed else thing


def values_in(thing: object) -> frozenset[Column]:
    """Return the values of prior releases that a plan, or a part of one, reads."""
    if isinstance(thing, Call | Column):
        return frozenset(filter(is_earlier, columns(thing)))
    if isinstance(thing, tuple):
        return frozenset[Column]().union(*(values_in(each) for each in thing if type(each) not in _CELLS))
    if not dataclasses.is_dataclass(thing) or isinstance(thing, _WHOLE):
        return frozenset()
    return frozenset[Column]().union(*(values_in(getattr(thing, each.name)) for each in dataclasses.fields(thing)))


def tried_with(thing: Some) -> Some:
    """Return a plan, or a part of one, with a value of its type for each missing value, for a dry run."""
    return filled(thing, {each: Literal(_TRIED[each.type], each.type) for each in values_in(thing)})


_TRIED: Mapping[Type, Key] = {
    Type.INTEGER: 1,
    Type.REAL: 1.0,
    Type.BOOLEAN: True,
    Type.TEXT: "a",
    Type.DATE: 1,
    Type.TIMESTAMP: 1,
}


@dataclass(frozen=True)
class Input:
    """Input of a later release from prior ones: `sql` over public tables and the relations that it `reads`. `written`:
    its text in the query.

    It is a value (`column`), or the rows of a public table (`table`).
    """

    name: str
    sql: str
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, Literal], ...] = ()
    column: Column | None = None
    table: TableSchema | None = None
    written: str = dataclasses.field(default="", compare=False)

    @property
    def what(self) -> Column | TableSchema:
        """The column or the table."""
        what = self.table if self.column is None else self.column
        assert what is not None  # one of the two is set
        return what
