"""Names in a multi-step statement: unique CTE names, and generated names that do not occur in its text."""

from __future__ import annotations

import re
from collections import Counter

from sqlglot import exp

from dpsql.errors import SQLSyntaxError
from dpsql.schema.frozen import dataclass
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.parse import Statement, span_of


@dataclass(frozen=True)
class Scope:
    """A CTE and those visible to its query, nearest first."""

    node: exp.CTE
    before: Scope | None

    def find(self, folded: str) -> Scope | None:
        """Resolve a name from this CTE outward."""
        scope: Scope | None = self
        while scope is not None and scope.node.alias.casefold() != folded:
            scope = scope.before
        return scope


def unshared(statement: Statement) -> exp.Query:
    """Rename each CTE whose name has another meaning too: another CTE, or a table.

    Each name then has one meaning everywhere, and a SELECT can be moved. Raises SQLSyntaxError for two CTEs of one name
    in one WITH.
    """
    if statement.select.find(exp.CTE) is None:
        return statement.select
    tree: exp.Query = statement.select.copy()
    read = resolved(tree, statement.sql)
    ctes = list(tree.find_all(exp.CTE))
    meanings = Counter(each.alias.casefold() for each in ctes)
    meanings.update({each.name.casefold() for each, cte in read if cte is None})
    taken = {each.name.casefold() for each in tree.find_all(exp.Identifier)}
    names = {id(each): fresh(each.alias, taken) for each in ctes if meanings[each.alias.casefold()] > 1}
    for table, cte in read:
        if cte is not None and id(cte) in names:
            _rename(table, names[id(cte)])
    for cte in ctes:
        if id(cte) in names:
            cte.args["alias"].set("this", exp.to_identifier(names[id(cte)], quoted=True))
    return tree


def resolved(tree: exp.Expr, sql: str) -> list[tuple[exp.Table, exp.CTE | None]]:
    """Return each named table with the CTE that it means, or None."""
    read: list[tuple[exp.Table, exp.CTE | None]] = []
    waiting: list[tuple[exp.Expr, Scope | None]] = [(tree, None)]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            bare = node.args.get("db") is None
            scope = names.find(node.name.casefold()) if bare and names is not None else None
            read.append((node, None if scope is None else scope.node))
        clause = node.args.get("with_")
        own: set[str] = set()
        for each in clause.expressions if clause is not None else []:
            if each.alias.casefold() in own:
                raise SQLSyntaxError(f'two CTEs are named "{each.alias}".', span=span_of(sql, each))
            own.add(each.alias.casefold())
            waiting.append((each.this, names))
            names = Scope(each, names)
        waiting.extend((each, names) for each in node.iter_expressions() if each is not clause)
    return read


def _rename(table: exp.Table, name: str) -> None:
    """Rename a table, and keep its old name as the qualifier of columns."""
    alias = table.args.get("alias") or exp.TableAlias()
    if alias.args.get("this") is None:
        alias.set("this", table.this.copy())
    table.set("alias", alias)
    known = table.this.meta
    table.set("this", exp.to_identifier(name, quoted=True))
    table.this.meta.update(known)


def unwritten(sql: str, prefix: str) -> str:
    """Return a prefix for generated names: with a number appended, it does not occur in the text."""
    words = {word.casefold() for word in re.findall(r"\w+", sql)}
    while any(re.fullmatch(rf"{re.escape(prefix)}\d*", word) for word in words):
        prefix += "_"
    return prefix
