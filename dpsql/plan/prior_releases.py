"""What earlier releases of the same statement will have shown, in the plan of a later one.

A value stands in a plan as a column of no table (`EARLIER`), of which nothing is known but its type, and a list as a
public table of which nothing is known but how many rows it has at most, and which keys it is cut to. Proof that no fact
is narrowed by what they come to be: whatever is derived of a column without facts holds for every value that it can
have, and while a plan is made there is no value. `filled` puts values into what an engine is asked to run, and into
nothing that losses, reaches, shares or designs are made of.
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
"""The version of a table of which an earlier release shows the rows. No owner can write it."""
MOST_LISTED = 1_000_000
"""Rows of a list that IN looks in."""

Values = Mapping[Column, Literal]
Some = TypeVar("Some")


def value_column(name: str, kind: Type, written: str) -> Column:
    """A value that an earlier release will show: anything of its type, or NULL. written: its sub-query."""
    known = Fact(value_range(ColumnSchema(name, kind)), nullable=True, whole=kind.discrete)
    return Column(name, kind, known.meaning(EVERYTHING) if kind.temporal else known, EARLIER, written)


def is_earlier(expr: object) -> bool:
    """Whether an expression is a value of an earlier release."""
    return isinstance(expr, Column) and expr.table == EARLIER


def reads_earlier(expr: Expr) -> bool:
    """Whether an expression reads a value of an earlier release."""
    return any(map(is_earlier, columns(expr)))


def is_shown(table: TableSchema) -> bool:
    """Whether a table's rows are those that an earlier release shows."""
    return table.public and table.version == VERSION


def filled(thing: Some, values: Values) -> Some:
    """A plan, or a part of one, with values in the place of columns that stand for them: the same object where it has
    none."""
    return thing if not values else _filled(thing, values)


_WHOLE = (TableSchema, ColumnSchema, Function, AggregateFunction, Interval, type)
_CELLS = frozenset({float, int, str, bool, type(None)})
"""What public lists and edges are made of, which may be many."""


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
    """The values of earlier releases that a plan, or a part of one, reads."""
    if isinstance(thing, Call | Column):
        return frozenset(filter(is_earlier, columns(thing)))
    if isinstance(thing, tuple):
        return frozenset[Column]().union(*(values_in(each) for each in thing if type(each) not in _CELLS))
    if not dataclasses.is_dataclass(thing) or isinstance(thing, _WHOLE):
        return frozenset()
    return frozenset[Column]().union(*(values_in(getattr(thing, each.name)) for each in dataclasses.fields(thing)))


def tried_with(thing: Some) -> Some:
    """A plan, or a part of one, with a value of its type in the place of each that is still to come, to be tried."""
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
    """What a later release reads of earlier ones: `sql` over their relations, those that it `reads`, and public tables.
    `written`: its words in the text.

    It is a value (`column`), or the rows of a public table (`table`)."""

    name: str
    sql: str
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, Literal], ...] = ()
    column: Column | None = None
    table: TableSchema | None = None
    written: str = dataclasses.field(default="", compare=False)

    @property
    def what(self) -> Column | TableSchema:
        """That which it is."""
        what = self.table if self.column is None else self.column
        assert what is not None  # it is one of the two
        return what
