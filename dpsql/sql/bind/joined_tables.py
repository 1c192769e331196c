"""FROM with joins: tables from left to right, parenthesized joins first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.join_clauses import is_full, joined_by
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.private_rows import PrivateRows, Step
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.rewrite.parentheses import is_joined
from dpsql.sql.syntax.parse import span_of

MOST_FULL_JOINS = 3
"""Maximum for one FROM: each reads the tables before it twice."""


@dataclass(frozen=True)
class JoinedTables:
    """The joins of a SELECT. `table`: binds an item of FROM, with new columns each time."""

    whole: StatementState
    select: exp.Select
    table: Callable[[exp.Expr], PrivateRows]

    def joined(self, first: PrivateRows, node: exp.Expr, joins: Sequence[exp.Join]) -> PrivateRows:
        """Return the bound first table with the others joined to it. Raises a QueryRefused."""
        people = first
        joins = self._with_needed_matches(joins)
        for number, join in enumerate(joins):
            right = self._item(join.this)
            if is_full(join):
                people = self._full(join, people, right, (node, joins[:number]))
            else:
                people = joined_by(join, people, right, self.whole, self.select)
        return people

    def _with_needed_matches(self, joins: Sequence[exp.Join]) -> Sequence[exp.Join]:
        """Turn LEFT JOIN of a public table into an inner one if a later inner join compares its columns, which drops
        unmatched rows anyway."""
        if len(joins) < 2 or any(is_full(each) or _side(each) == "RIGHT" for each in joins):
            return joins
        needed_joins = list(joins)
        for place, join in enumerate(joins):
            table = self.whole.tables.get(join.this.name.casefold()) if isinstance(join.this, exp.Table) else None
            needed = any(_compares(later, join.this.alias_or_name) for later in joins[place + 1 :])
            if _side(join) == "LEFT" and table is not None and table.public and needed:
                needed_joins[place] = join.copy()
                needed_joins[place].set("side", None)
                needed_joins[place].set("kind", None)
        return needed_joins

    def _item(self, node: exp.Expr) -> PrivateRows:
        """Bind a table, or parenthesized joins right of another table, under their tables' own names."""
        if not is_joined(node):
            return self.table(node)
        table = node.this.copy()
        table.set("joins", None)
        people = self.joined(self._item(table), table, node.this.args.get("joins") or [])
        return PrivateRows(people.scope, (Step(assembled(people, None), span=span_of(self.whole.sql, node.this)),))

    def _full(
        self, join: exp.Join, left: PrivateRows, right: PrivateRows, before: tuple[exp.Expr, Sequence[exp.Join]]
    ) -> PrivateRows:
        from dpsql.sql.rewrite.full_joins import Sides, full_join  # imported only when needed

        node, joins = before
        if sum(map(is_full, joins)) >= MOST_FULL_JOINS:
            raise UnsupportedSQL(
                f"more than {MOST_FULL_JOINS} FULL JOINs in one FROM: each reads the tables before it twice.",
                span=span_of(self.whole.sql, join.this),
                hint="Write UNION ALL of the tables' rows, and GROUP BY the privacy unit.",
            )
        again = Sides(self.joined(self._item(node), node, joins), self._item(join.this))
        return full_join(join, Sides(left, right), again, self.whole, self.select)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _compares(join: exp.Join, name: str) -> bool:
    """Return whether an inner join equates a column of the named table with one of its own."""
    on = join.args.get("on")
    if _side(join) or on is None or str(join.args.get("kind") or "").upper() not in ("", "INNER"):
        return False
    sides = {name.casefold(), join.this.alias_or_name.casefold()}
    terms = list(on.flatten()) if isinstance(on, exp.And) else [on]
    return any(
        isinstance(term, exp.EQ)
        and isinstance(term.this, exp.Column)
        and isinstance(term.expression, exp.Column)
        and {term.this.table.casefold(), term.expression.table.casefold()} == sides
        for term in terms
    )
