"""Private rows before aggregation: their source, and the columns that determine their privacy unit.

A *handle* is a column that determines the privacy unit of its row: ("", c) means that the value of c is the unit,
("orders.o_orderkey", c) that it leads to the unit as a key of orders. Two rows belong to the same unit if handles of
the same kind are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from dpsql.errors import Span
from dpsql.plan.digits import number_below
from dpsql.plan.expressions import (
    Call,
    Column,
    Expr,
    Fact,
    Literal,
    between_integers,
    call,
    columns,
    conjuncts,
    rebuild,
)
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Join, Mark, PerUnit, Scan, Source, Union, Windows, inputs_of, scan_of, scans_of
from dpsql.schema.columns import EARLIER, ColumnSchema, TableSchema, Type, value_range
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING
from dpsql.sql.names.scopes import Scope

Kind = tuple[str, str]
"""The table and key that a path leads to; OWN: the unit itself."""
OWN: Kind = ("", "")
Handle = tuple[Kind, Column]


@dataclass(frozen=True)
class Rows:
    """A source with its declarations. `unique`: column sets whose values identify a row; `matches`: the maximum number
    of rows with one value of a column; `names`: the places in the query whose columns it has."""

    source: Source
    names: frozenset[str]
    handles: frozenset[Handle] = frozenset()
    unique: tuple[frozenset[Column], ...] = ()
    matches: tuple[tuple[Column, int], ...] = ()
    public_rows: int | None = None
    """Maximum number of rows, if all of it is public."""
    loose: frozenset[Handle] = frozenset()
    """Handles right of an outer join, which may be NULL in a row with a unit; equality with one still identifies the
    unit."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return every column that expressions over the rows can read."""
        return columns_of(self.source)

    @property
    def public(self) -> bool:
        """Return whether no table of the source is private."""
        return all(scan.table.public for scan in scans_of(self.source))

    @property
    def table(self) -> TableSchema:
        """Return the table of these rows, for messages."""
        return scan_of(self.source).table

    @property
    def unit_is_row(self) -> bool:
        """Return whether no unit is declared: each row is one."""
        return not self.public and all(s.table.public or s.table.unit is None for s in scans_of(self.source))


@dataclass(frozen=True)
class Step:
    """One item of FROM: `how` it is joined to those before ("inner", "left", "right"), and the conjuncts of its ON."""

    rows: Rows
    how: str = "inner"
    on: tuple[Expr, ...] = ()
    span: Span | None = None
    present: Column | None = None
    """For an outer join: TRUE where the optional side has a row, otherwise NULL."""


@dataclass(frozen=True)
class PrivateRows:
    """Rows of a FROM, private or public, that are not joined yet, because WHERE may contain the join condition."""

    scope: Scope
    steps: tuple[Step, ...]

    @cached_property
    def schemas(self) -> Mapping[str, TableSchema]:
        """Return the tables by place in the query."""
        return {scan.name: scan.table for step in self.steps for scan in scans_of(step.rows.source)}

    @property
    def table(self) -> TableSchema:
        """Return the first private table, for messages."""
        private = [step.rows.table for step in self.steps if not step.rows.public]
        return private[0] if private else self.steps[0].rows.table

    def declared(self, column: Column) -> ColumnSchema | None:
        """Return the declaration of a column, or None for one that the query computes."""
        table = self.schemas.get(column.table)
        return None if table is None else table.by_name.get(column.name.casefold())


def column_of(column: ColumnSchema, scan: Scan) -> Column:
    """Return a table's column at a place in the query."""
    known = Fact(value_range(column), column.nullable)
    if column.type.temporal and column.bounds is None:  # the calendar's limits
        known = known.meaning(EVERYTHING)
    known = between_integers(known, column.type)
    if column.wide:
        known = replace(known, wide=column.wide)
    return Column(column.name, column.type, known, scan.name, scan.shown)


def rows_of(scan: Scan) -> Rows:
    """Return all rows of a table at a place in the query."""
    table = scan.table
    by_name = {column.name: column_of(column, scan) for column in table.columns}
    unique = tuple(frozenset(by_name[each] for each in key) for key in table.unique)
    matches = tuple((by_name[each], most) for each, most in table.max_matches)
    handles = {((table.name.casefold(), column.name), column) for key in unique for column in key if len(key) == 1}
    if table.unit is not None:
        held = by_name[table.unit.column]
        first = table.unit.steps[0] if table.unit.steps else None
        handles.add((OWN if first is None else (first.table, first.key), held))
    return Rows(
        scan,
        frozenset({scan.name}),
        frozenset(handles) if table.unit is not None else frozenset(),
        unique,
        matches,
        table.rows if table.public else None,
    )


def columns_of(source: Source) -> tuple[Column, ...]:
    """Return every column that expressions above a source can read."""
    if isinstance(source, Scan):
        return tuple(column_of(each, source) for each in source.table.columns)
    if isinstance(source, Union | PerUnit):
        return source.columns
    own: tuple[Column, ...] = (source.column,) if isinstance(source, Mark) else ()
    if isinstance(source, Windows):
        own = source.columns
    if isinstance(source, Join) and source.present is not None:
        own = (source.present,)
    read = inputs_of(source)[: 2 if isinstance(source, Join) else 1]
    return (*(column for each in read for column in columns_of(each)), *own)


def _nullable(column: Column) -> Column:
    return replace(column, fact=replace(column.fact, nullable=True))


def nullable(source: Source) -> dict[Column, Column]:
    """Map the columns of a source to their nullable form in unmatched rows."""
    return {column: _nullable(column) for column in columns_of(source)}


def origins(source: Source) -> dict[Column, tuple[Expr, ...]]:
    """Map the columns that a source computes to the expressions they copy: one, or one for each branch of a union."""
    copies: dict[Column, tuple[Expr, ...]] = {}
    if isinstance(source, PerUnit):
        copies.update({column: (key,) for column, key in zip(source.columns, source.keys, strict=False)})
        copies.update(_of_ends(source))
    if isinstance(source, Union):
        lists = [branch.outputs for branch in source.branches]
        copies.update(dict(zip(source.columns, zip(*lists, strict=True), strict=True)))
    if isinstance(source, Windows):
        made = zip(source.calls, source.columns, strict=True)
        copies.update({column: call.copies for call, column in made if call.copies})
    for each in inputs_of(source):
        copies.update(origins(each))
    return copies


def _of_ends(source: PerUnit) -> dict[Column, tuple[Expr, ...]]:
    """Return the MIN and MAX columns that copy a row's value: those of texts, and of times truncated to a unit."""
    made = zip(source.columns[len(source.keys) :], source.aggregations, strict=True)
    return {
        column: (each.argument,)
        for column, each in made
        if each.kind.ranked
        and each.argument is not None
        and (column.type is Type.TEXT or (column.type.temporal and isinstance(each.argument, Call)))
    }


def beside_no_match(people: PrivateRows, present: Column) -> Scope:
    """Return the scope of the optional side of an outer join.

    Each column may be NULL, and a computed value is NULL where `present`, which the join sets, is not TRUE.
    """
    own = [column for step in people.steps for column in columns_of(step.rows.source)]
    missing: dict[Expr, Expr] = {column: _nullable(column) for column in own}

    def beside(expr: Expr) -> Expr:
        value = rebuild(expr, missing)
        if isinstance(value, Column):
            return value
        where_present = call(FUNCTIONS["case"], present, value, Literal(None, value.type))
        return value if where_present is None else where_present

    return people.scope.over(beside)


def all_of(terms: list[Expr]) -> Expr | None:
    """Join the terms with AND, as a balanced tree."""
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [_and(pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0] if terms else None


def _and(one: Expr, other: Expr) -> Expr:
    made = call(FUNCTIONS["and"], one, other)
    assert isinstance(made, Call)  # two conditions
    return made


def implied(expr: Expr) -> list[Expr]:
    """Return conditions that an AND implies: its terms, and those common to every arm of an OR among them."""
    conditions = []
    for term in conjuncts(expr):
        conditions.append(term)
        if isinstance(term, Call) and term.function.name == "or":
            arms = [{_unordered(each): each for each in implied(arm)} for arm in _arms(term)]
            conditions += [each for same, each in arms[0].items() if all(same in arm for arm in arms[1:])]
    return conditions


def _unordered(expr: Expr) -> object:
    """Return a comparison key of a condition, independent of the order of an equality's sides."""
    pair = equality(expr)
    return expr if pair is None else frozenset(pair)


def _arms(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call) and expr.function.name == "or":
        return [part for arg in expr.args for part in _arms(arg)]
    return [expr]


def places_of(expr: Expr) -> frozenset[str]:
    """Return the places in the query whose columns an expression reads; values of earlier releases have none."""
    return frozenset(column.table for column in columns(expr) if column.table != EARLIER)


def equality(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return the two sides of an equality, or None."""
    if isinstance(expr, Call) and expr.function.name == "eq":
        return expr.args[0], expr.args[1]
    return None


class UnitEqualities:
    """Groups of rows known to belong to the same unit, from handles and equalities."""

    def __init__(self, equalities: list[tuple[Expr, Expr]]) -> None:
        self._root: dict[object, object] = {}
        for pair in equalities:
            left, right = map(number_below, pair)
            if isinstance(left, Column) and isinstance(right, Column):
                self._join(left, right)

    def _find(self, one: object) -> object:
        while one in self._root:
            one = self._root[one]
        return one

    def _join(self, one: object, other: object) -> None:
        one, other = self._find(one), self._find(other)
        if one != other:
            self._root[one] = other

    def linked(self, rows: list[Rows]) -> list[int]:
        """Return a number for each, equal where the equalities put rows in the same unit."""
        number = list(range(len(rows)))
        seen: dict[tuple[Kind, object], int] = {}
        for place, each in enumerate(rows):
            for kind, column in each.handles | each.loose:
                first = seen.setdefault((kind, self._find(column)), place)
                old, new = number[place], number[first]
                number = [new if one == old else one for one in number]
        return number

    def closure(self, handles: frozenset[Handle], candidates: list[Column]) -> frozenset[Handle]:
        """Return the handles, and columns equal to one of them."""
        roots = {(kind, self._find(column)) for kind, column in handles}
        more = {(kind, column) for column in candidates for kind, root in roots if self._find(column) == root}
        return handles | more
