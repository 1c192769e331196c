"""What names mean: the columns of a FROM clause, whether they are people's rows or an answer's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from dpsql.errors import AmbiguousColumn, RawColumn, SQLSyntaxError, UnknownColumn, UnknownTable, did_you_mean
from dpsql.schema import ColumnSchema, TableSchema, value_range
from dpsql.sql.expressions import Column, Expr, Fact, between_integers
from dpsql.sql.parse import span_of
from dpsql.sql.plan import Query, Scan, Source


@dataclass(frozen=True)
class Scope:
    """The columns that a SELECT may name. `written` is the source's name in messages, `alias` what qualifies columns.

    `listed`: names and expressions in order; two columns may have one name, which can then not be used.
    """

    written: str
    alias: str
    listed: tuple[tuple[str, Expr], ...]

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, Expr]]:
        """Columns by folded name, the first of each."""
        found: dict[str, tuple[str, Expr]] = {}
        for name, expr in self.listed:
            found.setdefault(name.casefold(), (name, expr))
        return found

    @cached_property
    def twice(self) -> frozenset[str]:
        """Folded names that two columns have."""
        if len(self.columns) == len(self.listed):
            return frozenset()
        names = Counter(name.casefold() for name, _ in self.listed)
        return frozenset(name for name, times in names.items() if times > 1)

    def column(self, node: exp.Column, sql: str) -> Expr:
        """The expression behind a column's name. Raises UnknownColumn, UnknownTable, AmbiguousColumn."""
        folded = node.name.casefold()
        found = self.columns.get(folded)
        if found is not None and not node.table and folded not in self.twice:
            return found[1]
        span = span_of(sql, node)
        self.check_table(node, sql)
        if isinstance(node.this, exp.Star):
            raise RawColumn("SELECT * would return people's own values.", span=span)
        if folded in self.twice:
            raise AmbiguousColumn(
                f'two columns of {self.written} are named "{node.name}".', span=span, hint="Name them apart with AS."
            )
        if found is None:
            known = [name for name, _ in self.columns.values()]
            raise UnknownColumn(
                f'no column "{node.name}" in {self.written}.{did_you_mean(node.name, known)}',
                span=span,
                hint="Text is written in 'single quotes'." if node.this.args.get("quoted") else "",
            )
        return found[1]

    def check_table(self, node: exp.Expr, sql: str) -> None:
        """Refuse `x.name` and `x.*` where x is another table. Raises UnknownTable."""
        table = node.text("table")
        if table and table.casefold() != self.alias.casefold():
            span = span_of(sql, node.args["table"])
            raise UnknownTable(f'no table "{table}" in this query, which reads {self.alias}.', span=span)

    def has(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.casefold() in self.columns


@dataclass(frozen=True)
class People:
    """Rows that are people's own: a table, or a row-wise sub-query over it."""

    scope: Scope
    source: Source
    table: TableSchema

    @property
    def declared(self) -> Mapping[str, ColumnSchema]:
        return self.table.by_name


@dataclass(frozen=True)
class Answered:
    """Rows that are released already: a private sub-query's answer."""

    scope: Scope
    query: Query


Relation = People | Answered


def table_relation(table: TableSchema, written: str, alias: str) -> People:
    """All rows and columns of a table."""
    listed = tuple((column.name, Column(column.name, column.type, _fact(column))) for column in table.columns)
    return People(Scope(written, alias, listed), Scan(table), table)


def _fact(column: ColumnSchema) -> Fact:
    return between_integers(Fact(value_range(column), column.nullable), column.type)


def renamed(relation: Relation, alias: exp.TableAlias | None, fallback: str, sql: str) -> Relation:
    """The relation under its alias, with new names for its first columns where the alias lists some."""
    name = alias.name if alias is not None and alias.name else fallback
    scope = replace(relation.scope, alias=name, written=name)
    names = [each.name for each in alias.args.get("columns") or []] if alias is not None else []
    if names:
        old = relation.scope.listed
        if len(names) > len(old):
            raise SQLSyntaxError(
                f"{name} has {len(old)} columns, but {len(names)} names.", span=span_of(sql, alias) if alias else None
            )
        new = [*names, *(each for each, _ in old[len(names) :])]
        scope = replace(scope, listed=tuple((each, expr) for each, (_, expr) in zip(new, old, strict=True)))
    return replace(relation, scope=scope)
