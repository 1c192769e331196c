"""FROM clauses of other engines: SEMI and ANTI JOIN, a database before a table."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.errors import AmbiguousColumn, UnsupportedSQL
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.scopes import Scope
from dpsql.sql.syntax.parse import Statement, span_of

_OF_BOTH = "of both sides"
"""Metadata key for the SELECT of a SEMI or ANTI JOIN; its value is the join's keyword."""


def with_qualified_tables(statement: Statement, catalog: Catalog) -> Statement:
    """Replace s2.other with "s2.other" where a table of the session has that name."""
    if not any("." in name for name in catalog.tables):
        return statement
    select = statement.select.copy()
    for table in list(select.find_all(exp.Table)):
        name = f"{table.text('db')}.{table.name}"
        if table.args.get("db") is not None and name.casefold() in catalog.tables:
            alias = table.args.get("alias") or exp.TableAlias()
            if alias.args.get("this") is None:
                alias.set("this", table.this.copy())
            meta = table.this.meta
            table.set("alias", alias)
            table.set("db", None)
            table.set("this", exp.to_identifier(name, quoted=True))
            table.this.meta.update(meta)
    return replace(statement, select=select)


def check_names(statement: Statement) -> None:
    """Refuse a table with two databases, or with one and as a CTE, because the name is ambiguous. Raises
    UnsupportedSQL."""
    tables = list(statement.select.find_all(exp.Table))
    if not any(table.args.get("db") for table in tables):
        return
    common = {each.alias.casefold() for each in statement.select.find_all(exp.CTE)}
    seen: dict[str, str] = {}
    for table in tables:
        name = table.name.casefold()
        where = ".".join(each.name.casefold() for each in (table.args.get("catalog"), table.args.get("db")) if each)
        if seen.setdefault(name, where) != where or (where and name in common):
            raise UnsupportedSQL(
                f'two tables are named "{table.name}", in different databases.',
                span=span_of(statement.sql, table.this),
                hint="Tables are found by their last word alone: name them apart.",
            )


# SEMI and ANTI JOIN.


def semi_joins(statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite a SEMI JOIN b ON x: the rows of a with a match, WHERE EXISTS (SELECT 1 FROM b WHERE x). Raises
    UnsupportedSQL."""
    joins = node.args.get("joins") or []
    semi = [each for each in joins if _kind(each) in ("SEMI", "ANTI")]
    if not semi or any(str(each.args.get("side") or "").upper() == "RIGHT" for each in joins):
        return None
    kept = [node.args["from_"].this, *(each.this for each in joins if each not in semi)]
    conditions = [_asked(statement, each, kept) for each in semi]
    node.set("joins", [each for each in joins if each not in semi])
    where = node.args.get("where")
    before = [] if where is None else [where.this.copy()]
    node.set("where", exp.Where(this=exp.and_(*before, *conditions, copy=False)))
    return None


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").upper()


def _asked(statement: Statement, join: exp.Join, kept: list[exp.Expr]) -> exp.Expr:
    """Return the condition of a SEMI or ANTI JOIN.

    A bare name in ON may belong to either side, but inside EXISTS the inner table's would come first. So the SELECT
    there is marked, and binding refuses names known to both sides.
    """
    names = {each.alias_or_name.casefold() for each in kept}
    name, on = join.this.alias_or_name, _condition(join, kept)
    written = f"{_kind(join)} JOIN"
    if on is None or not name or name.casefold() in names or on.find(exp.Query) is not None:
        raise UnsupportedSQL(
            f"{written} wants an ON without sub-queries, and two tables of different names.",
            span=span_of(statement.sql, join.this),
            hint=f"Write a {written} b ON a.key = b.key, or {_exists(join)} (SELECT 1 FROM b WHERE ...) in WHERE.",
        )
    select = exp.Select(
        expressions=[exp.Literal.number(1)], from_=exp.From(this=join.this.copy()), where=exp.Where(this=on.copy())
    )
    select.meta[_OF_BOTH] = _kind(join)
    exists = exp.Exists(this=select)
    return exp.Not(this=exists) if _kind(join) == "ANTI" else exists


def is_outer(select: exp.Expr, node: exp.Column, scope: Scope, sql: str) -> bool:
    """Return whether a column known in the outer query is not one of the sub-query's. In the ON of a SEMI or ANTI JOIN,
    a bare name must belong to one side only. Raises AmbiguousColumn."""
    if not scope.knows(node):
        return True
    word = select.meta.get(_OF_BOTH)
    if word is not None and not node.table:
        raise AmbiguousColumn(
            f'both sides of {word} JOIN have a column "{node.name}".',
            span=span_of(sql, node),
            hint=f"Name it with its table: {(scope.parts or (scope,))[0].alias}.{node.name}.",
        )
    return False


def _exists(join: exp.Join) -> str:
    return "NOT EXISTS" if _kind(join) == "ANTI" else "EXISTS"


def _condition(join: exp.Join, kept: list[exp.Expr]) -> exp.Expr | None:
    """Return ON, or the equalities of USING after a single table, or None if neither is complete."""
    using = join.args.get("using") or []
    sides = [join.this.alias_or_name, kept[0].alias_or_name]
    if not using or len(kept) > 1 or not all(sides):
        on = join.args.get("on")
        return on if isinstance(on, exp.Expr) else None
    return exp.and_(*(_equal_in_both(each.name, *sides) for each in using), copy=False)


def _equal_in_both(name: str, one: str, other: str) -> exp.Expr:
    return exp.EQ(this=exp.column(name, one, quoted=True), expression=exp.column(name, other, quoted=True))
