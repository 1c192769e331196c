"""SELECTs over an answer: free post-processing, with any expression and exact aggregates of the released rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.plan.expressions import Column, Expr
from dpsql.plan.query import Output, Query, Stage
from dpsql.sql.scopes import Answered
from dpsql.sql.select_list import aggregate_in, fresh, is_star, items_of
from dpsql.sql.selects import SelectBinder
from dpsql.sql.statementwide import Statementwide


class ReleasedSelect(SelectBinder):
    """One SELECT over the rows of an answer."""

    def __init__(self, whole: Statementwide, select: exp.Select, answered: Answered) -> None:
        super().__init__(whole, select, answered.scope)
        self.answered = answered
        aggregating = any(aggregate_in(item) for item, _ in items_of(select))
        self.grouped = aggregating or bool(select.args.get("group") or select.args.get("having"))

    def query(self) -> Query:
        where = self.where()
        items = items_of(self.select)
        self.bind_keys(items)
        self.bind_outputs(items)
        finish = self.finish()
        stage = Stage(where, self.grouped, tuple(self.keys), tuple(self.aggregations), finish)
        return replace(self.answered.query, stages=(*self.answered.query.stages, stage))

    def bind_outputs(self, items: list[tuple[exp.Expr, str]]) -> None:
        taken: set[str] = set()
        for node, alias in items:
            if is_star(node):
                for name, column in self.scope.check_table(node, self.sql).starred:
                    expr = self.keys.get(column, column)
                    if self.grouped and isinstance(expr, Column):
                        raise self.raw_column(expr)
                    self.outputs.append(Output(fresh(name, taken), expr))
                continue
            self.outputs.append(Output(fresh(alias or self.text(node), taken), self.released(node)))

    def released(self, node: exp.Expr) -> Expr:
        return super().released(node) if self.grouped else self.outer.bind(node)
