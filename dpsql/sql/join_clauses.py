"""JOIN ... ON and USING: how one more table comes to those of a FROM."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, Fact, conjuncts
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN
from dpsql.sql.parse import span_of
from dpsql.sql.same_unit import People, Step, beside_no_match
from dpsql.sql.scalars import ScalarBinder
from dpsql.sql.scopes import Statementwide, together
from dpsql.sql.select_list import aggregate_in
from dpsql.sql.selects import SelectBinder


def joined_by(join: exp.Join, left: People, right: People, whole: Statementwide, select: exp.Select) -> People:
    """The tables so far with one more. Raises UnsupportedSQL, SQLSyntaxError, or what binding ON raises."""
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    span = span_of(whole.sql, join.this)
    if join.args.get("method") or side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER", "CROSS"):
        known = [] if kind in ("", "OUTER") else [kind]
        what = str(join.args.get("method") or " ".join(known) or side).upper()
        raise UnsupportedSQL(f"{what} JOIN is not supported.", span=span, hint="INNER, LEFT, RIGHT and CROSS are.")
    on, merged = _conditions(join, left, right, whole, select)
    present = Column("present", Type.BOOLEAN, Fact(BOOLEAN, nullable=True, whole=True), whole.place("(match)"))
    step = Step(right.steps[0].rows, side.lower() or "inner", on, span, present if side else None)
    if side == "RIGHT" and len(left.steps) > 1:
        raise UnsupportedSQL("RIGHT JOIN after other joins is not supported.", span=span, hint="Write LEFT JOIN.")
    scopes = [left.scope, right.scope]
    if side:
        scopes[side == "LEFT"] = beside_no_match(right if side == "LEFT" else left, present)
    kept_side = scopes[side == "RIGHT"]  # a merged column is that of the table that keeps its rows
    return People(together(scopes, merged, kept_side), (*left.steps, step))


def _conditions(
    join: exp.Join, left: People, right: People, whole: Statementwide, select: exp.Select
) -> tuple[tuple[Expr, ...], frozenset[str]]:
    """The conjuncts of ON or USING, and the names that USING merges."""
    node, using = join.args.get("on"), join.args.get("using")
    span = span_of(whole.sql, join.this)
    if str(join.args.get("kind") or "").upper() == "CROSS" and (node is not None or using):
        raise SQLSyntaxError("a CROSS JOIN has no ON.", span=span)
    if using is not None and not using:
        raise SQLSyntaxError("USING names no column.", span=span)
    if using:
        pairs = []
        for name in using:
            column = exp.column(name.copy())
            column.this.meta.update(name.meta)
            sides = [left.scope.column(column, whole.sql), right.scope.column(column, whole.sql)]
            pairs.append(ScalarBinder(whole.sql, lambda _: None, (), set()).apply("eq", name, sides))
        return tuple(pairs), frozenset(name.name.casefold() for name in using)
    if node is None:
        if join.args.get("side"):
            raise SQLSyntaxError("an outer join wants ON a.key = b.key.", span=span)
        return (), frozenset()
    aggregate = aggregate_in(node)
    if aggregate is not None:
        raise SQLSyntaxError(
            "an aggregate cannot stand in ON, which is about single rows.", span=span_of(whole.sql, aggregate)
        )
    bound = SelectBinder(whole, select, together([left.scope, right.scope]))
    return tuple(conjuncts(bound.condition(bound.inner.bind(node), node, "ON"))), frozenset()
