"""Scopes: the columns of a FROM clause, of private rows or an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import (
    AmbiguousColumn,
    RawColumn,
    Span,
    SQLSyntaxError,
    TypeMismatch,
    UnknownColumn,
    UnknownTable,
    UnsupportedSQL,
    did_you_mean,
)
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.options import Options
from dpsql.plan.query import Query
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import NO_COLUMNS, quotes_hint

if TYPE_CHECKING:
    from dpsql.sql.names.catalog import PublicValues


@dataclass(frozen=True)
class Scope:
    """The columns available to a SELECT. `written`: the source's name in messages; `alias`: the qualifier of columns.

    `listed`: names and expressions in order; a duplicate name cannot be used.
    """

    written: str
    alias: str
    listed: tuple[tuple[str, Expr], ...]
    parts: tuple[Scope, ...] = ()
    """The scopes of a join's tables."""
    merged: frozenset[str] = frozenset()
    """Folded names that USING merges into the first table's column."""
    either: tuple[tuple[Expr, Expr, Expr], ...] = ()
    """The columns that a FULL JOIN equates: the left one, the right one, and the merged one."""

    @property
    def starred(self) -> tuple[tuple[str, Expr], ...]:
        """Return the columns of `*`."""
        seen: set[str] = set()
        kept = []
        for name, expr in self.listed:
            if name.casefold() not in seen or name.casefold() not in self.merged:
                kept.append((name, expr))
            seen.add(name.casefold())
        return tuple(kept)

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, Expr]]:
        """Return the columns by folded name, the first of each."""
        by_name: dict[str, tuple[str, Expr]] = {}
        for name, expr in self.listed:
            by_name.setdefault(name.casefold(), (name, expr))
        return by_name

    @cached_property
    def twice(self) -> frozenset[str]:
        """Return folded names of more than one column."""
        if len(self.columns) == len(self.listed):
            return frozenset()
        names = Counter(name.casefold() for name, _ in self.listed)
        return frozenset(name for name, times in names.items() if times > 1) - self.merged

    def column(self, node: exp.Column, sql: str) -> Expr:
        """Return the expression of a column name. Raises UnknownColumn, UnknownTable, AmbiguousColumn."""
        folded = node.name.casefold()
        entry = self.columns.get(folded)
        if entry is not None and not node.table and folded not in self.twice:
            if entry[1].type is Type.OBJECT:
                raise _undeclared(node, sql)
            return entry[1]
        span = span_of(sql, node)
        part = self.check_table(node, sql)
        if part is not self:
            return part.column(node, sql)
        if isinstance(node.this, exp.Star):
            raise RawColumn("SELECT * would return people's own values.", span=span)
        if folded in self.twice:
            raise AmbiguousColumn(
                f'two columns of {self.written} are named "{node.name}".',
                span=span,
                hint=self._apart(node.name) if self.parts else "Name them apart with AS.",
            )
        if entry is None:
            known = [name for name, _ in self.columns.values()]
            raise UnknownColumn(
                f'no column "{node.name}" in {self.written}.{_unquoted(span, known) or did_you_mean(node.name, known)}',
                span=span,
                hint=quotes_hint(node.name)
                or (
                    "Text is written in 'single quotes'."
                    if node.this.args.get("quoted")
                    else NO_COLUMNS.get(node.name.upper(), "")
                ),
            )
        if entry[1].type is Type.OBJECT:
            raise _undeclared(node, sql)
        return entry[1]

    def check_table(self, node: exp.Expr, sql: str) -> Scope:
        """Return the scope of the table in `x.name` or `x.*`. Raises UnknownTable, AmbiguousColumn."""
        table = node.text("table").casefold()
        if not table:
            return self
        tables = [part for part in self.parts or (self,) if part.alias.casefold() == table]
        if len(tables) == 1:
            return tables[0]
        span = span_of(sql, node.args["table"])
        if tables:
            raise AmbiguousColumn(f'two tables are named "{table}".', span=span, hint="Give one of them an alias.")
        read = " and ".join(part.alias for part in self.parts or (self,))
        if any(table in part.columns for part in self.parts or (self,)):
            column, field = node.text("table"), node.name
            raise UnsupportedSQL(
                f'"{column}" is a column, and its fields ({column}.{field}) are not read.',
                span=span,
                hint=f'Store the field as a column of the data, under a name of its own such as "{column}_{field}".',
            )
        raise UnknownTable(f'no table "{node.text("table")}" in this query, which reads {read}.', span=span)

    def _apart(self, name: str) -> str:
        tables = [part.alias for part in self.parts if name.casefold() in part.columns]
        return f"Write {' or '.join(f'{table}.{name}' for table in tables)}."

    def has(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.casefold() in self.columns

    def knows(self, node: exp.Column) -> bool:
        """Return whether a column name, with its table if given, is known here."""
        table = node.text("table").casefold()
        held = [part for part in self.parts or (self,) if not table or part.alias.casefold() == table]
        return any(part.has(node) for part in held)

    def either_side(
        self, node: exp.Coalesce, bind: Callable[[exp.Expr], Expr], apply: Callable[[str, exp.Expr, list[Expr]], Expr]
    ) -> Expr:
        """Bind COALESCE, with both sides of a FULL JOIN replaced by the merged column.

        One side is NULL in a row without a match; in others both are equal. Reals may differ in the sign of 0, so there
        the left one must come first.
        """
        sides = {(one, other): expr for one, other, expr in self.either}
        sides |= {(other, one): expr for one, other, expr in self.either if expr.type is not Type.REAL}
        args = [bind(each) for each in (node.this, *node.expressions)]
        while len(args) > 1 and (args[0], args[1]) in sides:
            args = [sides[args[0], args[1]], *args[2:]]
        return args[0] if len(args) == 1 else apply("coalesce", node, args)

    def over(self, replace_: Callable[[Expr], Expr]) -> Scope:
        """Return the scope with a function applied to every column's expression."""
        listed = tuple((name, replace_(expr)) for name, expr in self.listed)
        either = tuple((replace_(one), replace_(other), replace_(expr)) for one, other, expr in self.either)
        return replace(self, listed=listed, parts=tuple(part.over(replace_) for part in self.parts), either=either)


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of a private sub-query's answer, already released."""

    scope: Scope
    query: Query


def _undeclared(node: exp.Column, sql: str) -> TypeMismatch:
    """Return the refusal of a Python object column without a declared type."""
    from dpsql.schema.object_columns import undeclared_hint  # imported only when needed

    return TypeMismatch(
        f'"{node.name}" is stored as Python objects, which a query reads by a declared type only.',
        span=span_of(sql, node),
        hint=undeclared_hint(node.name),
    )


def renamed_scope(scope: Scope, alias: exp.TableAlias | None, fallback: str, sql: str) -> Scope:
    """Return the scope under its alias, which may rename the first columns."""
    name = alias.name if alias is not None and alias.name else fallback
    names = [each.name for each in alias.args.get("columns") or []] if alias is not None else []
    old = scope.starred
    scope = Scope(name, name, old)
    if names:
        if len(names) > len(old):
            raise SQLSyntaxError(
                f"{name} has {len(old)} columns, but {len(names)} names.", span=span_of(sql, alias) if alias else None
            )
        new = [*names, *(each for each, _ in old[len(names) :])]
        scope = replace(scope, listed=tuple((each, expr) for each, (_, expr) in zip(new, old, strict=True)))
    return scope


def together(scopes: Sequence[Scope], merged: frozenset[str] = frozenset(), kept: Scope | None = None) -> Scope:
    """Return the columns of several tables; `merged`: folded names of USING, which mean the column of `kept`."""
    if len(scopes) == 1:
        return scopes[0]
    parts = tuple(part for scope in scopes for part in (scope.parts or (scope,)))
    all_merged = frozenset(name for scope in scopes for name in scope.merged) | merged
    listed = tuple(
        (name, kept.columns[name.casefold()][1] if kept is not None and name.casefold() in merged else expr)
        for part in parts
        for name, expr in part.listed
    )
    either = tuple(each for scope in scopes for each in scope.either)
    return Scope(", ".join(part.written for part in parts), "", listed, parts, all_merged, either)


# The state shared by a whole text.


@dataclass
class StatementState:
    """The state shared by a whole text: the text, its parameters, those used, its options, and the places with
    columns."""

    sql: str
    params: Params
    used: set[str] = field(default_factory=set)
    options: Options | None = None
    several: bool = False
    """True if the text reads tables at several places, so that their columns are qualified."""
    places: set[str] = field(default_factory=set)
    public: PublicValues | None = None
    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    computed_from: set[str] = field(default_factory=set)
    """Public tables, by folded name, from which constants were computed."""
    windowed: set[int] = field(default_factory=set)
    """The SELECTs, by identity, whose QUALIFY and WINDOW are read."""
    values: Mapping[str, Column] = field(default_factory=dict)
    """Results of the statement's earlier releases."""

    def unit_column(self, table: TableSchema) -> ColumnSchema:
        """Return the column at the end of the path to a table's units."""
        assert table.unit is not None  # the caller checks for units
        end = table.unit.steps[-1] if table.unit.steps else None
        column = table.by_name[table.unit.column.casefold()]
        if end is not None and end.table in self.tables:
            column = self.tables[end.table].by_name[end.column.casefold()]
        return column

    def place(self, name: str) -> str:
        """Return a new name for a place in the query with columns; empty for a single table."""
        if not self.several and not self.places:
            self.places.add("")
            return ""
        return fresh(name, self.places)


def _unquoted(span: Span | None, known: Iterable[str]) -> str:
    """Return ' Did you mean "native-country", in double quotes?' if the text has such a name without them, otherwise
    ''."""
    text = "" if span is None else span.sql[span.start :].casefold()
    near = [name for name in known if not name.isidentifier() and text.startswith(name.casefold())]
    return f' Did you mean "{max(near, key=len)}", in double quotes?' if near else ""
