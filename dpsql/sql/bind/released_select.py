"""SELECTs over an answer: free post-processing, with any expression and exact aggregates of released rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.plan.expressions import Column, Expr, Fact, Slot, between_integers, unfiltered
from dpsql.plan.query import Output, Query, Stage
from dpsql.plan.whole_outputs import whole_type
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval
from dpsql.sql.bind.aggregate_calls import text_of_item
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.names.scopes import ReleasedRows, Scope, StatementState
from dpsql.sql.names.select_list import aggregate_in, fresh, is_star, items_of
from dpsql.sql.names.star_modifiers import refuse_changes


def unread(query: Query) -> ReleasedRows:
    """Return the outermost answer, whose columns no SELECT reads."""
    return ReleasedRows(Scope("", "", ()), query)


def answered(query: Query, name: str) -> ReleasedRows:
    """Return the answer of a query as rows for another SELECT."""
    finish = query.stages[-1].finish if query.stages else query.finish
    outputs = tuple(
        (output.name, Column(output.name, kind, shown_fact(kind)))
        for output in finish.outputs
        for kind in [shown_type(query, output.expr)]
    )
    return ReleasedRows(Scope(name, name, outputs), query)


LARGEST_SHOWN = 2**60


def shown_fact(kind: Type) -> Fact:
    """Return the facts about an answer's column. Integers lie within +/-2^60, so that sums of two still fit."""
    ranges = {Type.INTEGER: Interval(-LARGEST_SHOWN, LARGEST_SHOWN), Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}
    return between_integers(Fact(ranges.get(kind, EVERYTHING)), kind)


def shown_type(query: Query, expr: Expr) -> Type:
    """Return the displayed type of an output: COUNT and sums of integers are integers again, and so are digits."""
    if unfiltered(expr).wide:
        return Type.INTEGER
    if query.stages:
        return whole_type(expr) or expr.type
    slots = query.slots[len(query.plan.keys) :]
    kinds = {slot: each.exact_type for slot, each in zip(slots, query.plan.aggregations, strict=True)}
    if isinstance(expr, Slot):
        return kinds.get(expr, expr.type)
    whole = {slot for slot, kind in kinds.items() if kind is Type.INTEGER}
    return whole_type(expr, whole) or expr.type


class ReleasedSelect(SelectBinder):
    """A SELECT over the rows of an answer."""

    def __init__(self, whole: StatementState, select: exp.Select, answered: ReleasedRows) -> None:
        super().__init__(whole, select, answered.scope)
        self.answered = answered
        order = select.args.get("order")
        read = [*(item for item, _ in items_of(select)), *([] if order is None else [order])]
        aggregating = any(aggregate_in(each) for each in read)
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
                refuse_changes(node, self.sql)
                for name, column in self.scope.check_table(node, self.sql).starred:
                    expr = self.keys.get(column, column)
                    if self.grouped and isinstance(expr, Column):
                        raise self.raw_column(expr)
                    self.outputs.append(Output(fresh(name, taken), expr))
                continue
            self.outputs.append(
                Output(fresh(alias or text_of_item(node, self.sql, self.scope.columns), taken), self.released(node))
            )

    def released(self, node: exp.Expr) -> Expr:
        return super().released(node) if self.grouped else self.outer.bind(node)
