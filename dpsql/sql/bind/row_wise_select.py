"""Sub-queries that keep private rows: filters, computed columns, new names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal
from dpsql.plan.nodes import Filter
from dpsql.schema.columns import Type
from dpsql.sql.bind.aggregate_calls import text_of_item
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.mark_columns import with_marks
from dpsql.sql.bind.private_rows import PrivateRows, Step
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.bind.subqueries import Membership
from dpsql.sql.names.scopes import Scope, StatementState
from dpsql.sql.names.select_list import changes_star, is_star, items_of
from dpsql.sql.syntax.parse import span_of

if TYPE_CHECKING:
    from dpsql.sql.bind.windows import WindowBinder


def refuse_cutting(sql: str, select: exp.Select) -> None:
    """Refuse LIMIT, OFFSET and ORDER BY below an aggregate. Raises UnsupportedSQL."""
    for clause, name in (("limit", "LIMIT"), ("offset", "OFFSET")):
        node = select.args.get(clause)
        if node is not None:
            raise UnsupportedSQL(
                f"{name} below an aggregate is not stable: one person could decide whose rows are left.",
                span=span_of(sql, node),
            )
    if select.args.get("order") is not None:
        raise UnsupportedSQL(
            "ORDER BY in a sub-query of people's rows changes nothing.",
            span=span_of(sql, select.args["order"]),
            hint="Leave it out, or order the answer.",
        )


class RowWise(SelectBinder):
    """A sub-query that keeps private rows, and may have windows within each unit."""

    def __init__(self, whole: StatementState, select: exp.Select, people: PrivateRows, member: Membership) -> None:
        super().__init__(whole, select, people.scope, member)
        self.people = people
        self.windows: WindowBinder | None = None
        self.aliases: list[tuple[str, Expr]] = []

    def relation(self) -> PrivateRows:
        refuse_cutting(self.sql, self.select)
        rows = assembled(self.people, self.where())
        if next(self.select.find_all(exp.Window, exp.Qualify), None) is not None:
            from dpsql.sql.bind.windows import WindowBinder  # imported with the first window

            self.windows = WindowBinder(self.whole, self.select, self.people, rows, self)
        outputs: list[tuple[str, Expr]] = []
        for node, alias in items_of(self.select):
            if is_star(node):
                outputs += self._starred(node)
            else:
                value = self._row_value(node, alias)
                outputs.append((alias or text_of_item(node, self.sql, self.scope.columns), value))
                self.aliases += [(alias, value)] if alias else []
        qualified = self._qualify()
        rows = replace(rows, source=with_marks(rows, self.marks))
        if self.windows is not None:
            source = self.windows.over(rows.source)
            source = source if qualified is None else Filter(source, qualified)
            rows = replace(rows, source=source, names=rows.names | self.windows.names)
            self.whole.windowed.add(id(self.select))
        scope = Scope(self.scope.written, self.scope.alias, tuple(outputs))
        return PrivateRows(scope, (Step(rows),))

    def _starred(self, node: exp.Expr) -> list[tuple[str, Expr]]:
        """Return the columns of `*` after EXCLUDE, REPLACE and RENAME."""
        columns = list(self.scope.check_table(node, self.sql).starred)
        if not changes_star(node):
            return columns
        from dpsql.sql.names.star_modifiers import changed  # imported only when needed

        return changed(columns, node, self.sql, self._row_value)

    def _qualify(self) -> Expr | None:
        """Return the condition of QUALIFY."""
        clause = self.select.args.get("qualify")
        if clause is None:
            return None
        condition = self.condition(self.inner.bind(clause.this), clause.this, "QUALIFY")
        assert self.windows is not None  # QUALIFY creates them
        if not self.windows.calls:
            raise SQLSyntaxError(
                "QUALIFY is about windows, and there is none.",
                span=span_of(self.sql, clause.this),
                hint="Conditions on single rows stand in WHERE.",
            )
        return condition

    def column(self, node: exp.Column) -> Expr:
        """Resolve a name to a column or an earlier item; in QUALIFY, to any item."""
        if self.aliases and not node.table and not self.scope.has(node):
            named = [expr for alias, expr in self.aliases if alias.casefold() == node.name.casefold()]
            if named:
                return named[0]
        return super().column(node)

    def window(self, node: exp.Window) -> Expr:
        if self.windows is None:
            raise SQLSyntaxError(
                "a window function cannot stand in WHERE.",
                span=span_of(self.sql, node),
                hint="Write QUALIFY in its place, or WHERE around a sub-query.",
            )
        return self.windows.value(node)

    def _row_value(self, node: exp.Expr, alias: str) -> Expr:
        if isinstance(node, exp.Window) and self.windows is not None:
            return self.windows.value(node, alias)
        expr = self.inner.bind(node)
        return Literal(None, Type.INTEGER) if isinstance(expr, Literal) and expr.value is None else expr
