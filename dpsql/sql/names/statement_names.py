"""Names of a statement of several steps: one for each CTE, and ours, which no text of it holds."""

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
    """A CTE, and those in sight of its own query, nearest first."""

    node: exp.CTE
    before: Scope | None

    def find(self, folded: str) -> Scope | None:
        """What a name means where this is the nearest CTE."""
        scope: Scope | None = self
        while scope is not None and scope.node.alias.casefold() != folded:
            scope = scope.before
        return scope


def unshared(statement: Statement) -> exp.Query:
    """The statement with another name for each CTE whose name means something else as well: another CTE, or a table.

    Then a name means the same wherever it stands, and a SELECT can be taken out of its place. Raises SQLSyntaxError for
    two CTEs of one name in one WITH.
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
    """Each table that is named, with the CTE that it means where it stands."""
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
    """Columns keep the table's own name before them."""
    alias = table.args.get("alias") or exp.TableAlias()
    if alias.args.get("this") is None:
        alias.set("this", table.this.copy())
    table.set("alias", alias)
    known = table.this.meta
    table.set("this", exp.to_identifier(name, quoted=True))
    table.this.meta.update(known)


def unwritten(sql: str, prefix: str) -> str:
    """The beginning of names of ours: with a number after it, it is no word of the text."""
    words = {word.casefold() for word in re.findall(r"\w+", sql)}
    while any(re.fullmatch(rf"{re.escape(prefix)}\d*", word) for word in words):
        prefix += "_"
    return prefix
