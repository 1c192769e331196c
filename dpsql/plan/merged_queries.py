"""Merging of queries over one relation that differ in WHERE, or in whether they are grouped. Each WHERE becomes the
condition of its aggregates, as with FILTER; groups and their total become two grouping sets.

The merged query is like any other: everything is derived for it from the start. Its groups' exact values are those of
the original queries if all groups are public and units have no contribution bounds on rows: an aggregate ignores rows
whose argument is NULL, and the argument is not NULL only where the condition is TRUE, which is where WHERE passes a
row. A total is the sum of all groups if each row is in one: unlisted values are in one more group, which is not shown.
The caller checks groups and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Expr, IntervalEnd, Literal, Report, Slot, call, conjuncts, rebuild, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Filter, Source
from dpsql.plan.query import MOST_AGGREGATES, Aggregate, Finish, GroupKey, Order, Output, Query
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

_ONE = Literal(1, Type.INTEGER)


@dataclass(frozen=True)
class MergedQuery:
    """One query replacing several. `slots`: for each of them, the slots of this query with its aggregates' values."""

    query: Query
    slots: tuple[tuple[Slot, ...], ...]
    levels: tuple[tuple[int, ...], ...] = ()
    """For each of them its grouping set, if these differ."""
    added: tuple[bool, ...] = ()
    """For each key, whether it has a group that none of them has."""

    def places(self, member: int) -> list[int]:
        """Return the positions of a member's aggregates among this query's."""
        return [slot.index - len(self.query.plan.keys) for slot in self.slots[member]]

    def finish(self, member: int, query: Query) -> Finish:
        """Return the finish of a query with a member's plan, over the values of this query."""
        own = query.slots[len(query.plan.keys) :]
        moved: dict[Expr, Slot] = dict(zip(own, self.slots[member], strict=True))
        finish = _moved(query.finish, moved)
        terms = [*self._of_level(member), *([] if finish.having is None else [finish.having])]
        return replace(finish, having=_all_of(terms)) if self.levels else finish

    def _of_level(self, member: int) -> list[Expr]:
        """Return the conditions of a member's own rows."""
        if not self.levels:
            return []
        level = self.levels[member]
        grouped = Slot(-1, "GROUPING", Type.INTEGER)  # of the first key
        terms = [_made("eq", grouped, Literal(int(not level), Type.INTEGER))]
        hidden = [self.query.slots[key] for key in level if self.added[key]]
        return [*terms, *(_made("not", _made("is_null", key)) for key in hidden)]


def merged(queries: Sequence[Query]) -> MergedQuery | None:
    """Return one query replacing these; None if their relations or groups differ, or an aggregate is not additive over
    rows."""
    keyed = max(queries, key=lambda each: bool(each.plan.keys))  # the first with groups
    first = keyed.plan
    bases = [_base(each.plan.input) for each in queries]
    if any(base != bases[0][0] for base, _ in bases) or not all(_groups_alike(each, first) for each in queries):
        return None
    common = [term for term in bases[0][1] if all(term in terms for _, terms in bases)]
    own = [[term for term in terms if term not in common] for _, terms in bases]
    aggregates, members = _slots(queries, own, len(first.keys))
    if len(aggregates) > MOST_AGGREGATES:
        return None
    source = bases[0][0] if not common else Filter(bases[0][0], _all_of(common))
    slots = (*keyed.slots[: len(first.keys)], *aggregates.values())
    finish = Finish(tuple(Output(str(slot), slot) for slot in slots))
    computed = frozenset[str]().union(*(each.computed_from for each in queries))
    joint = Query(Aggregate(source, first.keys, tuple(aggregates)), finish, slots, computed_from=computed)
    return _in_levels(MergedQuery(joint, tuple(members)), [each.plan for each in queries])


def _in_levels(joint: MergedQuery, plans: Sequence[Aggregate]) -> MergedQuery:
    """Return the query with two grouping sets if some queries are grouped and others are totals."""
    plan = joint.query.plan
    levels = tuple(tuple(range(len(each.keys))) for each in plans)
    if all(len(level) == len(plan.keys) for level in levels):
        return joint
    keys = tuple(map(_with_the_rest, plan.keys))
    added = tuple(len(key.values or ()) > len(old.values or ()) for key, old in zip(keys, plan.keys, strict=True))
    plan = replace(plan, keys=keys, sets=(tuple(range(len(keys))), ()), apart=True)
    return replace(joint, query=replace(joint.query, plan=plan), levels=levels, added=added)


def _with_the_rest(key: GroupKey) -> GroupKey:
    """Return the key with a group for every row: unlisted values are in the group of NULL."""
    values = key.values or ()
    return replace(key, values=values if None in values else (*values, None), listed=True)


def _slots(
    queries: Sequence[Query], own: Sequence[Sequence[Expr]], keys: int
) -> tuple[dict[Aggregation, Slot], list[tuple[Slot, ...]]]:
    """Return all aggregates, each restricted to rows that satisfy its own query's terms, with their slots after those
    of the keys; and the slots of each query."""
    aggregates: dict[Aggregation, Slot] = {}
    members = []
    for query, terms in zip(queries, own, strict=True):
        made = [_where(each, terms) for each in query.plan.aggregations]
        for each, slot in zip(made, query.slots[len(query.plan.keys) :], strict=True):
            aggregates.setdefault(each, Slot(keys + len(aggregates), str(each), slot.type))
        members.append(tuple(aggregates[each] for each in made))
    return aggregates, members


def _groups_alike(query: Query, first: Aggregate) -> bool:
    """Return whether the query has the same nonempty groups, or is a total, and all its aggregates are additive."""
    apart = all(key.values and key.shown is None and key.together is None for key in first.keys)
    total = not query.plan.keys and apart  # a total is one of two grouping sets, which have all combinations
    plain = (total or query.plan.keys == first.keys) and not query.plan.sets and not query.stages
    return plain and all(map(_adds_up, query.plan.aggregations))


def _adds_up(each: Aggregation) -> bool:
    """Return whether it is made of sums over rows of the argument, without options of its own."""
    return bool(each.kind.moments) and each.epsilon is None and each.per_unit is None and not each.of_units


def _base(source: Source) -> tuple[Source, list[Expr]]:
    """Return a relation without its top conditions, and these conditions."""
    terms: list[Expr] = []
    while isinstance(source, Filter):
        terms = [*conjuncts(source.predicate), *terms]
        source = source.input
    return source, terms


def _all_of(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda one, other: _made("and", one, other), terms)


def _where(each: Aggregation, terms: Sequence[Expr]) -> Aggregation:
    """Restrict the aggregate to rows for which all terms are TRUE."""
    if not terms:
        return each
    value = _ONE if each.argument is None else each.argument
    return replace(each, argument=_made("case", _all_of(terms), value, Literal(None, value.type)))


def _made(name: str, *args: Expr) -> Expr:
    found = call(FUNCTIONS[name], *args)
    assert found is not None  # conditions are boolean, and NULL has any type
    return found


# Expressions over the values.


def _moved(finish: Finish, moved: Mapping[Expr, Slot]) -> Finish:
    def at(expr: Expr) -> Expr:
        leaves: dict[Expr, Expr] = {**moved}
        for part in walk(expr):
            if isinstance(part, IntervalEnd):
                leaves[part] = replace(part, expr=at(part.expr))
            elif isinstance(part, Report):
                leaves[part] = replace(part, expr=moved[part.expr])
        return rebuild(expr, leaves)

    return replace(
        finish,
        outputs=tuple(Output(each.name, at(each.expr)) for each in finish.outputs),
        having=None if finish.having is None else at(finish.having),
        order=tuple(Order(at(each.expr), each.descending, each.nulls_first) for each in finish.order),
    )
