"""Sub-queries that keep people's rows: filters, computed columns, new names."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal
from dpsql.schema.columns import Type
from dpsql.sql.joins import assembled
from dpsql.sql.marks import with_marks
from dpsql.sql.parse import span_of
from dpsql.sql.same_unit import People, Step
from dpsql.sql.scopes import Scope, Statementwide
from dpsql.sql.select_list import is_star, items_of
from dpsql.sql.selects import SelectBinder
from dpsql.sql.subqueries import Membership


def refuse_cutting(sql: str, select: exp.Select) -> None:
    """LIMIT, OFFSET and ORDER BY below an aggregate. Raises UnsupportedSQL."""
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
    """A sub-query that keeps people's rows."""

    def __init__(self, whole: Statementwide, select: exp.Select, people: People, member: Membership) -> None:
        super().__init__(whole, select, people.scope, member)
        self.people = people

    def relation(self) -> People:
        refuse_cutting(self.sql, self.select)
        rows = assembled(self.people, self.where())
        outputs: list[tuple[str, Expr]] = []
        for node, alias in items_of(self.select):
            if is_star(node):
                outputs += self.scope.check_table(node, self.sql).starred
            else:
                outputs.append((alias or self.text(node), self._row_value(node)))
        rows = replace(rows, source=with_marks(rows, self.marks))
        scope = Scope(self.scope.written, self.scope.alias, tuple(outputs))
        return People(scope, (Step(rows),))

    def _row_value(self, node: exp.Expr) -> Expr:
        expr = self.inner.bind(node)
        return Literal(None, Type.INTEGER) if isinstance(expr, Literal) and expr.value is None else expr
