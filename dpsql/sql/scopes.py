"""What names mean: the columns of a FROM clause, whether they are people's rows or an answer's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.errors import AmbiguousColumn, RawColumn, SQLSyntaxError, UnknownColumn, UnknownTable, did_you_mean
from dpsql.schema import ColumnSchema, TableSchema, value_range
from dpsql.sql.expressions import Column, Expr, Fact, between_integers
from dpsql.sql.parse import span_of
from dpsql.sql.plan import Query, Scan, Source


@dataclass(frozen=True)
class Scope:
    """The columns that a SELECT may name. `written` is the source's name in messages, `alias` what qualifies columns.

    `columns`: folded name -> (name, expression); `twice` holds folded names that two columns have.
    """

    written: str
    alias: str
    columns: Mapping[str, tuple[str, Expr]]
    twice: frozenset[str] = frozenset()

    def column(self, node: exp.Column, sql: str) -> Expr:
        """The expression behind a column's name. Raises UnknownColumn, UnknownTable, AmbiguousColumn."""
        folded = node.name.casefold()
        found = self.columns.get(folded)
        if found is not None and not node.table and folded not in self.twice:
            return found[1]
        span = span_of(sql, node)
        if isinstance(node.this, exp.Star):
            raise RawColumn("SELECT * would return people's own values.", span=span)
        if node.table and node.table.casefold() != self.alias.casefold():
            raise UnknownTable(f'no table "{node.table}" in this query, which reads {self.alias}.', span=span)
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
    columns = {
        folded: (column.name, Column(column.name, column.type, _fact(column)))
        for folded, column in table.by_name.items()
    }
    return People(Scope(written, alias, columns), Scan(table), table)


def _fact(column: ColumnSchema) -> Fact:
    return between_integers(Fact(value_range(column), column.nullable), column.type)


def named_columns(outputs: list[tuple[str, Expr]]) -> tuple[dict[str, tuple[str, Expr]], frozenset[str]]:
    """Columns of a sub-query by folded name, and the names that stand twice."""
    columns: dict[str, tuple[str, Expr]] = {}
    twice = set()
    for name, expr in outputs:
        if name.casefold() in columns:
            twice.add(name.casefold())
        columns.setdefault(name.casefold(), (name, expr))
    return columns, frozenset(twice)


def renamed(relation: Relation, alias: exp.TableAlias | None, fallback: str, sql: str) -> Relation:
    """The relation under its alias, with new names for its first columns where the alias lists some."""
    name = alias.name if alias is not None and alias.name else fallback
    scope = replace(relation.scope, alias=name, written=name)
    listed = [each.name for each in alias.args.get("columns") or []] if alias is not None else []
    if listed:
        old = list(relation.scope.columns.values())
        if len(listed) > len(old) or relation.scope.twice:
            raise SQLSyntaxError(
                f"{name} has {len(old)} columns, but {len(listed)} names.", span=span_of(sql, alias) if alias else None
            )
        named = [*listed, *(each for each, _ in old[len(listed) :])]
        columns, twice = named_columns([(new, expr) for new, (_, expr) in zip(named, old, strict=True)])
        scope = replace(scope, columns=columns, twice=twice)
    return replace(relation, scope=scope)
