"""Aggregates of public columns that the keys of a SELECT determine: look them up by the released key.

`sql.rewrite.determined_aggregates` adds such a column as a key. That requires an inner join and one grouping set: right
of an outer join a key may match no public row, and several grouping sets have all combinations of their keys. Here the
public table becomes a CASE over the released key instead.

Proof that the value is free: the CASE is computed from the text and public tables, and reads released keys only.

Proof that it is correct: each row of a group has the group's key, every term of ON follows from this key and one public
row, and the public table has one row with this key. So all rows of the group have the same public row, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Protocol

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Column, Expr, Literal, Slot, call, columns, conjuncts, rebuild, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Filter, Source
from dpsql.plan.prior_releases import is_shown
from dpsql.schema.columns import Key
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.aggregate_calls import is_aggregate, name_of_composed, written
from dpsql.sql.bind.correlated_keys import of_nulls, outer_tables
from dpsql.sql.bind.grouping_sets import GroupingSet
from dpsql.sql.bind.private_rows import PrivateRows, Rows, equality, nullable, places_of
from dpsql.sql.bind.public_keys import is_over, public_parts
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of

_MOST_ROWS = 1_000
"""Maximum number of public rows: each is an arm of a CASE."""


class GroupedSelect(Protocol):
    """A SELECT whose keys are bound."""

    sql: str
    whole: StatementState
    people: PrivateRows
    rows: Rows
    inner: ScalarBinder
    keys: dict[Expr, Slot]
    sets: tuple[GroupingSet, ...]

    def condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        """Return the expression, which must be a condition."""

    def aggregate(self, node: exp.Expr) -> Expr | None:
        """Return the slot of an aggregate."""


@dataclass(frozen=True)
class _PublicTable:
    """A public table of FROM. `on`: conditions on its rows and the other side's; `outer`: rows may have NULLs
    instead."""

    rows: Rows
    on: tuple[Expr, ...]
    outer: bool

    def is_over(self, expr: Expr) -> bool:
        return is_over(expr, self.rows.names)

    def keyed_by(self, keys: Mapping[Expr, Slot]) -> dict[Column, Expr] | None:
        """Return a unique key's columns with the expressions over released keys that they equal in every row of a
        group; None if GROUP BY has no such key."""
        for unique in self.rows.unique:
            found = [[*self._released(column, keys)] for column in unique]
            for chosen in product(*found):
                if self._follows(chosen):
                    return {column: released for column, released, _ in chosen}
        return None

    def _released(self, column: Column, keys: Mapping[Expr, Slot]) -> Iterator[tuple[Column, Expr, Expr | None]]:
        """Yield expressions over released keys that equal a column of the table, with the ON term that implies it."""
        terms = [(term, other) for term in self.on for other in _equal_to(column, term) if not self.is_over(other)]
        for key, slot in keys.items():
            if _is_same(key, column) and (terms or not column.fact.nullable) and column.type is slot.type:
                yield column, slot, None
        for term, other in terms:
            released = rebuild(other, keys)
            if not columns(released):
                yield column, released, term

    def _follows(self, chosen: Sequence[tuple[Column, Expr, Expr | None]]) -> bool:
        """Return whether the keys determine which rows match. A key of the table itself is NULL without a match."""
        used = [term for _, _, term in chosen]
        return not self.outer or None in used or all(term in used or self.is_over(term) for term in self.on)

    def unmatched(self, value: Expr, terms: Sequence[Expr]) -> Key:
        """Return the aggregate in a group without a match: the value of NULLs, if they satisfy the FILTER terms."""
        return of_nulls(value) if self.outer and all(map(of_nulls, terms)) else None

    @property
    def source(self) -> Source:
        """Return its rows, except those that ON always rejects."""
        source, own = self.rows.source, _stored(self.rows)
        for term in self.on if self.outer else ():
            source = Filter(source, rebuild(term, own)) if self.is_over(term) else source
        return source


@dataclass(frozen=True)
class _Call:
    """An aggregate of equal values: its node with FILTER, its kind, its operand inside DISTINCT, and whether DISTINCT
    is there."""

    node: exp.Expr
    kind: AggregateFunction
    operand: exp.Expr
    distinct: bool

    @classmethod
    def of(cls, node: exp.Expr, sql: str) -> _Call | None:
        """Return a call that, over equal operands, equals the operand or a multiple of it; None for others."""
        inner = node.this if isinstance(node, exp.Filter) else node
        if not is_aggregate(inner) or name_of_composed(inner) is not None or node.find(NamedArguments) is not None:
            return None
        found = written(inner, sql)
        kind, operand = found.kind, found.operand
        distinct = isinstance(operand, exp.Distinct)
        operand = operand.expressions[0] if isinstance(operand, exp.Distinct) else operand
        fits = kind.name in ("AVG", "SUM") or (kind.chosen and not kind.several)
        return cls(node, kind, operand, distinct) if fits and operand is not None else None

    @property
    def counts(self) -> bool:
        """Return whether the value is added once for each row."""
        return self.kind.name == "SUM" and not self.distinct

    def takes(self, value: Expr) -> bool:
        return not value.type.opaque and (self.kind.chosen or value.type.numeric)


def keyed_value(select: GroupedSelect, node: exp.Expr) -> Expr | None:
    """Return the value of an aggregate whose argument the keys determine, or None for any other node.

    A FILTER on private columns is ignored: NULL in a group without such rows would reveal that there are none. Raises
    UnsupportedSQL for a value that only some of the grouping sets determine.
    """
    asked = _Call.of(node, select.sql)
    value = None if asked is None else select.inner.bind(asked.operand)
    if asked is None or value is None or not asked.takes(value):
        return None
    table = _table_of(value, select.rows.source)
    keyed = None if table is None else table.keyed_by(select.keys)
    if table is None or keyed is None or not _in_all_sets(select, asked, value, keyed):
        return None
    found = _value_of(select, asked, value, table, keyed)
    if found is None or asked.kind.chosen or asked.distinct:
        return found
    return _times_rows(select, node, found) if asked.counts else call(FUNCTIONS["to_double"], found)


def is_over_public_table(value: Expr, source: Source) -> bool:
    """Return whether an expression reads columns of one public table of a source, and no others."""
    return _table_of(value, source) is not None


def _in_all_sets(select: GroupedSelect, asked: _Call, value: Expr, keyed: Mapping[Column, Expr]) -> bool:
    """Return whether no grouping set sums over a key. Raises UnsupportedSQL for a selected value that only some sets
    determine."""
    used = {slot.index for released in keyed.values() for slot in _slots(released)}
    missing = [each for each in select.sets if not used <= {*each}]
    if missing and len(missing) < len(select.sets) and asked.kind.chosen:
        key = next(iter(keyed)).name
        raise UnsupportedSQL(
            f"{value} has one value for each {key}, but some of the grouping sets sum over {key}.",
            span=span_of(select.sql, asked.node),
            hint=f"Write GROUPING SETS that all have {key}, or ask in a query of its own, with GROUP BY {key}.",
        )
    return not missing


def _value_of(
    select: GroupedSelect, asked: _Call, value: Expr, table: _PublicTable, keyed: Mapping[Column, Expr]
) -> Expr | None:
    """Return the value by released keys, or None for too many public rows or keys that share a group."""
    filtered = isinstance(asked.node, exp.Filter) and not asked.counts
    terms = _filter_terms(select, asked.node, table) if filtered else []
    rows = _rows(select, table, [*keyed, *terms, value])
    if rows is None or _has_others(select, [*keyed.values()], rows):
        return None
    return _looked_up([*keyed.values()], rows, Literal(table.unmatched(value, terms), value.type))


def _slots(expr: Expr) -> set[Slot]:
    return {part for part in walk(expr) if isinstance(part, Slot)}


def _times_rows(select: GroupedSelect, node: exp.Expr, value: Expr) -> Expr | None:
    """Return the SUM of equal values. If a group's value is NULL, so is the product."""
    rows: exp.Expr = exp.Count(this=exp.Star(), big_int=True)
    rows = exp.Filter(this=rows, expression=node.expression.copy()) if isinstance(node, exp.Filter) else rows
    count = select.aggregate(rows)
    return None if count is None else call(FUNCTIONS["multiply"], value, count)


def _table_of(value: Expr, source: Source) -> _PublicTable | None:
    """Return the public table whose columns an expression reads, if there is exactly one."""
    public, terms = public_parts(source)
    inner = (_PublicTable(each, tuple(terms), outer=False) for each in public.values())
    outer = (_PublicTable(each.rows, each.on, outer=True) for each in outer_tables(source))
    found = next((each for each in (*inner, *outer) if each.is_over(value)), None)
    return None if found is None or is_shown(found.rows.table) else found


def _filter_terms(select: GroupedSelect, node: exp.Expr, table: _PublicTable) -> list[Expr]:
    """Return the FILTER terms that read the public table only."""
    where = node.expression.this
    condition = select.condition(select.inner.bind(where), where, "FILTER")
    return [term for term in conjuncts(condition) if table.is_over(term)]


def _rows(select: GroupedSelect, table: _PublicTable, exprs: Sequence[Expr]) -> tuple[tuple[Key, ...], ...] | None:
    """Return the values of expressions in the rows of a public table, or None if too many."""
    own = _stored(table.rows)
    public = select.whole.public
    rows = None if public is None else public.together(table.source, [rebuild(each, own) for each in exprs])
    return None if rows is None or len(rows) > _MOST_ROWS else rows


def _has_others(select: GroupedSelect, keyed: Sequence[Expr], rows: Iterable[tuple[Key, ...]]) -> bool:
    """Return whether NULL among declared keys also stands for keys of public rows, which then share a group."""
    keys = {slot: key for key, slot in select.keys.items()}
    for place, released in enumerate(keyed):
        for slot in _slots(released):
            key = keys[slot]
            declared = select.people.declared(key) if isinstance(key, Column) else None
            listed = () if declared is None or declared.keys is None else declared.keys
            if None in listed and not (slot == released and {row[place] for row in rows} <= {*listed}):
                return True
    return False


def _looked_up(keyed: Sequence[Expr], rows: Iterable[tuple[Key, ...]], nothing: Literal) -> Expr | None:
    """Return a CASE over released keys. Rows hold these keys, then conditions, then the value. nothing: the value if no
    row has the key."""
    args: list[Expr] = []
    many = len(keyed)
    for row in rows:
        value = row[-1] if all(row[many:-1]) else None
        if None in row[:many] or value == nothing.value:
            continue
        cells = zip(keyed, row, strict=False)
        equal = [call(FUNCTIONS["eq"], released, Literal(cell, released.type)) for released, cell in cells]
        terms = [each for each in equal if each is not None]
        condition = terms[0] if len(terms) == 1 else call(FUNCTIONS["and"], *terms)
        if condition is None or len(terms) < many:
            return None
        args += [condition, Literal(value, nothing.type)]
    return call(FUNCTIONS["case"], *args, nothing) if args else nothing


def _stored(rows: Rows) -> dict[Expr, Expr]:
    """Map the columns in unmatched rows to the stored columns."""
    return {missing: column for column, missing in nullable(rows.source).items()}


def _equal_to(column: Column, term: Expr) -> Iterator[Expr]:
    """Yield the expressions, of the same type, that a term equates with a column."""
    sides = equality(term)
    for one, other in () if sides is None else (sides, sides[::-1]):
        if _is_same(one, column) and one.type is other.type and len(columns(other)) >= 1 and places_of(other):
            yield other


def _is_same(one: Expr, other: Expr) -> bool:
    """Return whether two expressions are equal, or one column that may be NULL without a match."""
    if isinstance(one, Column) and isinstance(other, Column):
        return (one.table, one.name) == (other.table, other.name)
    return one == other
