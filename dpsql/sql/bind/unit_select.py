"""Sub-queries that aggregate within each privacy unit: SELECT pid, COUNT(*) AS n FROM t GROUP BY pid.

They are exact, because nothing is released: the result is private rows of the same units, fewer of them. The same holds
for public rows that are joined with others: the result of SELECT DISTINCT region FROM states is public.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.domains import Domains
from dpsql.plan.expressions import Column, Expr, Fact, between_integers, rebuild
from dpsql.plan.facts import Known, fact, known_of
from dpsql.plan.nodes import Filter, PerUnit, Source
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.key_ranges import within_keys
from dpsql.sql.bind.mark_columns import with_marks
from dpsql.sql.bind.private_rows import OWN, Handle, Kind, PrivateRows, Rows, Step, origins
from dpsql.sql.bind.row_wise_select import refuse_cutting
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.bind.subqueries import Membership
from dpsql.sql.names.scopes import Scope, StatementState
from dpsql.sql.names.select_list import aggregate_in, fresh, is_star, items_of
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of

if TYPE_CHECKING:
    from dpsql.sql.bind.ordered_unit_aggregates import NumberedRows

_CALLS = (exp.AggFunc, exp.Filter, exp.WithinGroup, NamedArguments)


class UnitSelect(SelectBinder):
    """An aggregating sub-query over private rows with a key that determines the unit or, if `joined`, over public
    rows."""

    def __init__(
        self,
        whole: StatementState,
        select: exp.Select,
        people: PrivateRows,
        member: Membership,
        *,
        joined: bool = False,
    ) -> None:
        super().__init__(whole, select, people.scope, member)
        self.people = people
        self.public = joined and all(step.rows.public for step in people.steps)
        self.rows = assembled(people, self.where()) if self._may_apply() else None
        if self.rows is not None:
            items = items_of(select)
            self.bind_keys(items)
            if select.args.get("distinct") and not self.keys:
                for node, _ in items:
                    self.add_key(node, node)

    def _may_apply(self) -> bool:
        grouped = self.select.args.get("group") is not None
        distinct = self.select.args.get("distinct") is not None
        stars = any(is_star(item) for item, _ in items_of(self.select))
        aggregates = any(aggregate_in(item) for item, _ in items_of(self.select))
        kept_apart = self.public or any(step.rows.handles for step in self.people.steps)
        return kept_apart and (grouped or (distinct and not stars and not aggregates))

    def applies(self) -> bool:
        """Return whether a key determines the unit, if there are units."""
        if self.rows is None:
            return False
        return self.public or any(column in self.keys for _, column in self.rows.handles)

    @property
    def alone(self) -> bool:
        """Return whether the unit is the only key."""
        assert self.rows is not None  # as in `relation`
        handles = self.rows.handles
        return list(self.keys) == [column for kind, column in handles if kind == OWN and column in self.keys][:1]

    @cached_property
    def numbered(self) -> NumberedRows:
        """Return the windows for its aggregates; usually none."""
        from dpsql.sql.bind.ordered_unit_aggregates import NumberedRows  # as below

        return NumberedRows(self)

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Return the expressions that divide a unit's rows into groups."""
        return () if self.alone else tuple(self.keys)

    def aggregate(self, node: exp.Expr) -> Expr | None:
        if not isinstance(node, _CALLS):  # most nodes are none
            return super().aggregate(node)
        from dpsql.sql.bind.ordered_unit_aggregates import (
            person_aggregate,  # imported with the first such sub-query
        )

        self.check_any_value(node.this if isinstance(node, exp.Filter) else node)
        made = person_aggregate(self, node)
        return super().aggregate(node) if made is None else made

    def relation(self) -> PrivateRows:
        rows = self.rows
        assert rows is not None  # `applies` checked this
        refuse_cutting(self.sql, self.select)
        self.bind_outputs(items_of(self.select))
        having = self.select.args.get("having")
        condition = None if having is None else self.condition(self.released(having.this), having.this, "HAVING")
        place = self.whole.place("(per unit)")
        self._check_distinct()
        source = with_marks(rows, self.marks)
        if "numbered" in self.__dict__:
            source = self.numbered.over(source)
        domains = Domains(self.people.declared, known_of(source), origins(source))
        aggregations = tuple(within_keys(each, domains) for each in self.aggregations)
        columns = self._columns(aggregations, domains.known, place)
        slots: dict[Expr, Expr] = dict(zip([*self.keys.values(), *self.aggregations.values()], columns, strict=True))
        of_unit = frozenset((kind, slots[self.keys[column]]) for kind, column in rows.handles if column in self.keys)
        groups: Source = PerUnit(source, tuple(self.keys), aggregations, tuple(columns), self.alone)
        if condition is not None:
            groups = Filter(groups, rebuild(condition, slots))
        unique = (frozenset(columns[: len(self.keys)]),) if self.keys else ()
        outputs = tuple((output.name, rebuild(output.expr, slots)) for output in self.outputs)
        scope = Scope(self.scope.written, self.scope.alias, outputs)
        most = self._most(source) if self.public else None
        return PrivateRows(
            scope, (Step(Rows(groups, frozenset({place}), _handles(of_unit), unique, public_rows=most)),)
        )

    def _check_distinct(self) -> None:
        """Check DISTINCT: it removes nothing if all keys are selected, because rows then differ. Otherwise it would
        merge several groups."""
        shown = {output.expr for output in self.outputs}
        if self.select.args.get("distinct") and not shown.issuperset(self.keys.values()):
            raise UnsupportedSQL(
                "DISTINCT beside GROUP BY is not supported in a sub-query that does not show all its keys.",
                span=span_of(self.sql, self.select.args["group"]),
                hint="Leave GROUP BY out where nothing is aggregated, or write SELECT DISTINCT ... FROM (SELECT ... "
                "GROUP BY ...).",
            )

    def _most(self, source: Source) -> int | None:
        """Return the maximum number of groups of public rows: the lesser of key combinations and rows."""
        assert self.rows is not None  # as above
        public, most = self.whole.public, self.rows.public_rows
        values = [None if public is None else public.of(source, key) for key in self.keys]
        sets = [len(each) for each in values if each is not None]
        if len(sets) < len(values):
            return most
        combined = math.prod(sets)
        return combined if most is None else min(most, combined)

    def _columns(self, aggregations: tuple[Aggregation, ...], known: Known, place: str) -> list[Column]:
        taken: set[str] = set()
        named: dict[Expr, str] = {}
        for output in self.outputs:
            named.setdefault(output.expr, output.name)
        columns = []
        for expr, slot in self.keys.items():
            name = named.get(slot) or (expr.name if isinstance(expr, Column) else str(expr))
            columns.append(Column(fresh(name, taken), expr.type, fact(expr, known), place))
        for each, (written, slot) in zip(aggregations, self.aggregations.items(), strict=True):
            held = between_integers(_fact_of(each, known), slot.type)
            columns.append(Column(fresh(named.get(slot) or str(written), taken), slot.type, held, place))
        return columns

    def check_argument(self, kind: AggregateFunction, expr: Expr, node: exp.Expr) -> None:
        if kind.ranked and expr.type.opaque:
            raise self.unfit(kind, expr, node)
        super().check_argument(kind, expr, node)


def _handles(pairs: frozenset[tuple[Kind, Expr]]) -> frozenset[Handle]:
    return frozenset((kind, column) for kind, column in pairs if isinstance(column, Column))


def _fact_of(each: Aggregation, known: Known) -> Fact:
    """Return the facts about an aggregate of one group within a unit, which has at least one row."""
    return each.kind.fact_of(Fact(nullable=False) if each.argument is None else fact(each.argument, known))
