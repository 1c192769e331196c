"""JOIN ... ON and USING: joining one more table in a FROM."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, Fact, conjuncts
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.private_rows import PrivateRows, Step, beside_no_match, places_of
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.names.scopes import StatementState, together
from dpsql.sql.names.select_list import aggregate_in
from dpsql.sql.syntax.parse import span_of


def is_full(join: exp.Join) -> bool:
    """Return whether unmatched rows of both sides are kept."""
    plain = not join.args.get("method") and str(join.args.get("kind") or "").upper() in ("", "OUTER")
    return plain and str(join.args.get("side") or "").upper() == "FULL"


def joined_by(
    join: exp.Join, left: PrivateRows, right: PrivateRows, whole: StatementState, select: exp.Select
) -> PrivateRows:
    """Join one more table to those so far. Raises UnsupportedSQL, SQLSyntaxError, or what binding ON raises."""
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    span = span_of(whole.sql, join.this)
    if join.args.get("method") or side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER", "CROSS"):
        known = [] if kind in ("", "OUTER") else [kind]
        what = str(join.args.get("method") or " ".join(known) or side).upper()
        raise UnsupportedSQL(
            f"{what} JOIN is not supported.", span=span, hint="INNER, LEFT, RIGHT, FULL and CROSS are."
        )
    on, merged = conditions_of(join, left, right, whole, select)
    present = Column("present", Type.BOOLEAN, Fact(BOOLEAN, nullable=True, whole=True), whole.place("(match)"))
    if _keeps_public_rows(side, left, right):
        return _with_public_rows(join, left, right, (on, merged), whole)
    step = Step(right.steps[0].rows, side.lower() or "inner", on, span, present if side else None)
    if side == "RIGHT" and len(left.steps) > 1:
        left = PrivateRows(left.scope, (Step(assembled(left, None)),))
    scopes = [left.scope, right.scope]
    if side:
        scopes[side == "LEFT"] = beside_no_match(right if side == "LEFT" else left, present)
    kept_side = scopes[side == "RIGHT"]  # a merged column belongs to the table that keeps its rows
    return PrivateRows(together(scopes, merged, kept_side), (*left.steps, step))


def _with_public_rows(
    join: exp.Join,
    left: PrivateRows,
    right: PrivateRows,
    conditions: tuple[tuple[Expr, ...], frozenset[str]],
    whole: StatementState,
) -> PrivateRows:
    """Return the rows of the inner join; columns merged by USING are the public side's."""
    on, merged = conditions
    mirrored = str(join.args["side"]).upper() == "RIGHT"
    kept, others = (right, left) if mirrored else (left, right)
    _check_kept(join, kept, others, on, whole)
    step = Step(right.steps[0].rows, "inner", on, span_of(whole.sql, join.this), None)
    return PrivateRows(together([left.scope, right.scope], merged, kept.scope), (*left.steps, step))


def _keeps_public_rows(side: str, left: PrivateRows, right: PrivateRows) -> bool:
    """Return whether the join is public LEFT JOIN private, or its mirror.

    An unmatched public row has no privacy unit. It is dropped, like rows with a NULL unit, but its group is still
    shown, because the group is public. So the rows and their sensitivity are those of the inner join. COUNT(*) of such
    a group is 0 where SQL returns 1.
    """
    kept, others = (left, right) if side == "LEFT" else (right, left)
    return (
        side != ""
        and all(step.rows.public for step in kept.steps)
        and not all(step.rows.public for step in others.steps)
    )


def _check_kept(
    join: exp.Join, kept: PrivateRows, others: PrivateRows, on: tuple[Expr, ...], whole: StatementState
) -> None:
    """Refuse an ON condition on the public side only, which would remove groups that SQL shows, and a test for public
    rows without a match."""
    where = join.parent.args.get("where") if isinstance(join.parent, exp.Select) else None
    for node in where.find_all(exp.Is) if where is not None else ():
        asked = isinstance(node.expression, exp.Null) and not isinstance(node.parent, exp.Not)
        if asked and isinstance(node.this, exp.Column) and others.scope.knows(node.this):
            raise UnsupportedSQL(
                "which public rows have no match depends on all people, and is not asked by IS NULL.",
                span=span_of(whole.sql, node),
                hint="Count by public groups: those without a match are shown with a count near 0.",
            )
    names = frozenset[str]().union(*(step.rows.names for step in kept.steps))
    if not on or any(places_of(term) <= names for term in on):
        raise UnsupportedSQL(
            "the ON of an outer join that keeps public rows holds conditions that read people's rows.",
            span=span_of(whole.sql, join.this),
            hint="Write ON people.key = public.key, and conditions on the public table alone in WHERE.",
        )


def conditions_of(
    join: exp.Join, left: PrivateRows, right: PrivateRows, whole: StatementState, select: exp.Select
) -> tuple[tuple[Expr, ...], frozenset[str]]:
    """Return the conjuncts of ON or USING, and the names that USING merges."""
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
