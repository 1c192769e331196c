"""Windows and QUALIFY over the groups of a sub-query per privacy unit.

    SELECT customer, channel FROM orders GROUP BY customer, channel
    QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY COUNT(*) DESC) = 1

is the same as windows over a grouping sub-query. Both parts have their own rules, and nothing else is bound here.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.sql.bind.private_rows import PrivateRows
from dpsql.sql.bind.row_wise_select import RowWise
from dpsql.sql.bind.subqueries import Membership
from dpsql.sql.bind.unit_select import UnitSelect
from dpsql.sql.bind.window_refusals import refuse_windows
from dpsql.sql.boundary.separation import SeparatedSelect, has_window
from dpsql.sql.names.scopes import ReleasedRows, StatementState, renamed_scope
from dpsql.sql.names.select_list import is_aggregating, is_star, items_of


def windows_over_unit(
    whole: StatementState,
    select: exp.Select,
    source: PrivateRows | ReleasedRows,
    people: PrivateRows | None,
    member: Membership,
    *,
    joined: bool,
) -> PrivateRows | None:
    """Return the private rows of a SELECT that groups by the unit and has windows over its groups; None if its windows,
    if any, are over single rows.

    people: the source, if the SELECT may keep private rows. Raises a QueryRefused.
    """
    over = None if people is None else _over_unit(whole, select, people, member, joined=joined)
    if over is None and (people is None or is_aggregating(select)):
        refuse_windows(select, whole.sql, source if isinstance(source, PrivateRows) else None)
    return over


def _over_unit(
    whole: StatementState, select: exp.Select, source: PrivateRows, member: Membership, *, joined: bool
) -> PrivateRows | None:
    windowed = select.args.get("qualify") is not None or any(map(has_window, select.expressions))
    if not windowed or select.args.get("group") is None or select.args.get("distinct"):
        return None
    if any(is_star(item) for item, _ in items_of(select)):
        return None
    split = SeparatedSelect(whole.sql, select, lambda _query: False, lambda: source.scope)
    groups = UnitSelect(whole, split.release, source, member, joined=joined)
    if not groups.applies():
        return None
    above = split.above("groups")
    relation = groups.relation()
    names = [exp.to_identifier(split.column(place)) for place in range(len(split.release.expressions))]
    alias = exp.TableAlias(this=exp.to_identifier(source.scope.alias or "groups"), columns=names)
    relation = replace(relation, scope=renamed_scope(relation.scope, alias, source.scope.written, whole.sql))
    whole.windowed.add(id(select))
    return RowWise(whole, above, relation, member).relation()
