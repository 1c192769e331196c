"""Several queries of one relation that differ in WHERE, or in whether they are by groups, as one query: what WHERE says
of each becomes the condition of its aggregates, as FILTER has it, and groups and their total are two grouping sets.

The result is a query like any other, of which everything is derived anew. Its groups' exact values are those of the
queries themselves where all groups are public and no unit has a limit of rows: an aggregate leaves out rows whose
argument is NULL, and the argument is NULL but where the condition is TRUE, which is where WHERE lets a row pass. A
total is that of all groups, where each row is in one: what no list has is in one more group, which is not shown.
Whoever merges sees to groups and limits.
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
    """One query in the place of several. `slots`: of each of them those of this one that have its aggregates'
    values."""

    query: Query
    slots: tuple[tuple[Slot, ...], ...]
    levels: tuple[tuple[int, ...], ...] = ()
    """Of each of them its grouping set, where these differ."""
    added: tuple[bool, ...] = ()
    """Of each key whether it has a group that none of them has."""

    def places(self, member: int) -> list[int]:
        """Where the aggregates of a member stand among this one's."""
        return [slot.index - len(self.query.plan.keys) for slot in self.slots[member]]

    def finish(self, member: int, query: Query) -> Finish:
        """What a query with the plan of a member does with its values, of the values of this one."""
        own = query.slots[len(query.plan.keys) :]
        moved: dict[Expr, Slot] = dict(zip(own, self.slots[member], strict=True))
        finish = _moved(query.finish, moved)
        terms = [*self._of_level(member), *([] if finish.having is None else [finish.having])]
        return replace(finish, having=_all_of(terms)) if self.levels else finish

    def _of_level(self, member: int) -> list[Expr]:
        """Which rows are a member's own."""
        if not self.levels:
            return []
        level = self.levels[member]
        grouped = Slot(-1, "GROUPING", Type.INTEGER)  # of the first key
        terms = [_made("eq", grouped, Literal(int(not level), Type.INTEGER))]
        hidden = [self.query.slots[key] for key in level if self.added[key]]
        return [*terms, *(_made("not", _made("is_null", key)) for key in hidden)]


def merged(queries: Sequence[Query]) -> MergedQuery | None:
    """One query in the place of these; None where they are not of one relation and the same groups, or an aggregate is
    none that adds up over rows."""
    keyed = max(queries, key=lambda each: bool(each.plan.keys))  # the first that is by groups
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
    """The query with two grouping sets, where some are by groups and others of all rows."""
    plan = joint.query.plan
    levels = tuple(tuple(range(len(each.keys))) for each in plans)
    if all(len(level) == len(plan.keys) for level in levels):
        return joint
    keys = tuple(map(_with_the_rest, plan.keys))
    added = tuple(len(key.values or ()) > len(old.values or ()) for key, old in zip(keys, plan.keys, strict=True))
    plan = replace(plan, keys=keys, sets=(tuple(range(len(keys))), ()), apart=True)
    return replace(joint, query=replace(joint.query, plan=plan), levels=levels, added=added)


def _with_the_rest(key: GroupKey) -> GroupKey:
    """The key with a group for every row: those of no listed value are in that of NULL."""
    values = key.values or ()
    return replace(key, values=values if None in values else (*values, None), listed=True)


def _slots(
    queries: Sequence[Query], own: Sequence[Sequence[Expr]], keys: int
) -> tuple[dict[Aggregation, Slot], list[tuple[Slot, ...]]]:
    """The aggregates of all, each over the rows of its own terms alone, with their slots, behind those of the keys; and
    the slots of each query."""
    aggregates: dict[Aggregation, Slot] = {}
    members = []
    for query, terms in zip(queries, own, strict=True):
        made = [_where(each, terms) for each in query.plan.aggregations]
        for each, slot in zip(made, query.slots[len(query.plan.keys) :], strict=True):
            aggregates.setdefault(each, Slot(keys + len(aggregates), str(each), slot.type))
        members.append(tuple(aggregates[each] for each in made))
    return aggregates, members


def _groups_alike(query: Query, first: Aggregate) -> bool:
    """Whether it is of the same groups, of which there are some, or of all rows, and all that it asks adds up."""
    apart = all(key.values and key.shown is None and key.together is None for key in first.keys)
    total = not query.plan.keys and apart  # a total is one of two grouping sets, which are of all combinations
    plain = (total or query.plan.keys == first.keys) and not query.plan.sets and not query.stages
    return plain and all(map(_adds_up, query.plan.aggregations))


def _adds_up(each: Aggregation) -> bool:
    """Whether it is made of sums over rows of the argument, with no words of its own."""
    return bool(each.kind.moments) and each.epsilon is None and each.per_unit is None and not each.of_units


def _base(source: Source) -> tuple[Source, list[Expr]]:
    """A relation without the conditions on top, and these."""
    terms: list[Expr] = []
    while isinstance(source, Filter):
        terms = [*conjuncts(source.predicate), *terms]
        source = source.input
    return source, terms


def _all_of(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda one, other: _made("and", one, other), terms)


def _where(each: Aggregation, terms: Sequence[Expr]) -> Aggregation:
    """The aggregate over those rows alone for which all terms are TRUE."""
    if not terms:
        return each
    value = _ONE if each.argument is None else each.argument
    return replace(each, argument=_made("case", _all_of(terms), value, Literal(None, value.type)))


def _made(name: str, *args: Expr) -> Expr:
    found = call(FUNCTIONS[name], *args)
    assert found is not None  # conditions are boolean, and NULL is of any type
    return found


# What reads the values.


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
