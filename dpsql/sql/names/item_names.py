"""Names of SELECT items: the item that a GROUP BY term names, and equivalence of expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.errors import QueryRefused
from dpsql.plan.expressions import Expr
from dpsql.sql.bind.grouping_sets import SEVERAL
from dpsql.sql.names.scopes import Scope
from dpsql.sql.names.select_list import Items, alias_index, place_of


def leaves(terms: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the terms of GROUP BY, including those inside ROLLUP, CUBE, GROUPING SETS and parentheses."""
    keys: list[exp.Expr] = []
    for term in terms:
        if isinstance(term, (*SEVERAL, exp.Tuple)):
            keys += leaves(term.expressions)
        elif isinstance(term, exp.Paren):
            keys += leaves([term.this])
        else:
            keys.append(term)
    return keys


class ItemNames:
    """Name resolution in one SELECT. `scope` binds FROM, which only some texts need."""

    def __init__(self, items: Items, scope: Callable[[], Scope]) -> None:
        self.items = items
        self._bind = scope
        self._scope: Scope | None = None
        self._columns: list[Expr] = []

    @property
    def scope(self) -> Scope:
        """Return the columns of FROM."""
        if self._scope is None:
            self._scope = self._bind()
        return self._scope

    def item_of_key(self, term: exp.Expr) -> int | None:
        """Return the index of the item that a GROUP BY term names. A column of FROM precedes an alias, as in DuckDB."""
        if not isinstance(term, exp.Column) or term.table:
            return place_of(term, self.items)
        return self.item_of_name(term)

    def item_of_name(self, name: exp.Column) -> int | None:
        """Return the index of the item whose alias a name means, if no column of FROM has the name."""
        at = None if name.table else alias_index(name.name, self.items)
        if at is None:
            return None
        item = self.items[at][0]
        if isinstance(item, exp.Column) and item.name.casefold() == name.name.casefold():
            return None
        return None if self.scope.has(name) else at

    def are_same(self, one: exp.Expr, other: exp.Expr) -> bool:
        """Return whether two expressions are equal except for case, quotes, parentheses and table qualifiers."""
        first, second = _folded(one), _folded(other)
        if first == second:
            return True
        if not any(each.table for node in (first, second) for each in node.find_all(exp.Column)):
            return False
        return self._resolved(first) == self._resolved(second)

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        """Replace each column with a number, so that its spelling does not matter."""
        for column in list(node.find_all(exp.Column)):
            try:
                expr = self.scope.column(column, "")
            except QueryRefused:
                continue
            if expr not in self._columns:
                self._columns.append(expr)
            number = exp.column(f"column {self._columns.index(expr)}")
            if column is node:
                return number
            column.replace(number)
        return node


def _folded(node: exp.Expr) -> exp.Expr:
    """Return an expression without parentheses and quotes, with names in lower case."""
    folded = node.copy()
    while isinstance(folded, exp.Paren):
        folded = folded.this
    for each in list(folded.find_all(exp.Paren)):  # the tree keeps the order of operations
        each.replace(each.this)
    for name in [folded] if isinstance(folded, exp.Identifier) else list(folded.find_all(exp.Identifier)):
        name.set("this", name.name.casefold())
        name.set("quoted", False)
    return folded
