"""SELECTs that aggregate private rows and are released with noise."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from dpsql.errors import RawColumn, Span, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.domains import Domain, Domains
from dpsql.plan.expressions import Column, Expr, Fact, IntervalEnd, Literal, Report, Slot, rebuild, walk
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import Source
from dpsql.plan.options import AggregateOptions
from dpsql.plan.query import Aggregate, GroupKey, Query
from dpsql.schema.columns import ColumnSchema, Type
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.aggregate_calls import called, text_of_item
from dpsql.sql.bind.contribution_bounds import bounds_of_a_unit, clip_of
from dpsql.sql.bind.grouping_sets import check_sets
from dpsql.sql.bind.inexact_keys import inexact_in, made_of
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.key_ranges import within_keys
from dpsql.sql.bind.mark_columns import with_marks
from dpsql.sql.bind.private_rows import OWN, PrivateRows, origins
from dpsql.sql.bind.public_keys import possible, public_values, values_by_equality, values_in_conditions
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.bind.subqueries import Membership
from dpsql.sql.boundary.released_keys import shown_key
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.names.select_list import aggregate_in, items_of
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import as_text

_ZERO = Literal(0, Type.INTEGER)
_LEVEL = 0.95
_EXAMPLE = "20 is an example: choose a limit that most people stay below."
INTERVAL_ENDS = {"DP_INTERVAL_LOW": False, "DP_INTERVAL_HIGH": True}


class PrivateSelect(SelectBinder):
    """An aggregating SELECT over private rows."""

    exact = False
    levels = True

    def __init__(self, whole: StatementState, select: exp.Select, people: PrivateRows, member: Membership) -> None:
        super().__init__(whole, select, people.scope, member)
        self.people = people

    def query(self) -> Query:
        self.rows = assembled(self.people, self.where())
        items = items_of(self.select)
        self.bind_keys(items)
        if self.select.args.get("distinct") and not self.keys and not any(aggregate_in(node) for node, _ in items):
            for node, _ in items:
                self.add_key(node, node)
        for node, _ in items:
            if isinstance(node, exp.Star):
                refuse_star(self.sql, node, public=self.rows.public)
        self.bind_outputs(items)
        finish = self.finish()
        if not self.aggregations and not self.keys:
            raise SQLSyntaxError(
                "nothing is counted, summed or averaged.", hint=f"Write SELECT COUNT(*) FROM {self.people.table.name}."
            )
        source = with_marks(self.rows, self.marks)
        domains = Domains(self.people.declared, known_of(source), origins(source))
        aggregations = tuple(
            self._with_candidates(each, domains, source) if each.kind.chosen_by else within_keys(each, domains)
            for each in self.aggregations
        )
        plan = Aggregate(source, self._group_keys(source, domains), aggregations, self.sets)
        if len(plan.keys) > 1 and not plan.sets:
            plan = replace(plan, keys=self._together(plan.keys, source, domains))
        if plan.sets:
            check_sets(plan, self.select.args["group"], self.sql, public=self.rows.public)
        return Query(plan, finish, (*self.keys.values(), *self.aggregations.values()))

    def composed(self, node: exp.Expr) -> Expr:
        from dpsql.sql.rewrite.derived_statistics import composed  # imported only when needed

        return composed(self, node)

    def aggregate(self, node: exp.Expr) -> Expr | None:
        if self.whole.several and self.keys and not self.rows.public:
            from dpsql.sql.bind.looked_up_aggregates import keyed_value  # imported only when needed

            found = keyed_value(self, node)
            if found is not None:
                return found
        return super().aggregate(node)

    def reads_public_columns(self, node: exp.Expr) -> bool:
        from dpsql.sql.bind.looked_up_aggregates import is_over_public_table

        return self.rows.public or is_over_public_table(self.inner.bind(node.this), self.rows.source)

    def known(self, expr: Expr) -> Fact:
        """Return the facts about an expression over rows, from declarations and conditions."""
        return fact(expr, known_of(self.rows.source))

    def public_values_of(self, expr: Expr) -> Domain | None:
        """Return the public values of an expression over rows, if they are listed."""
        source = with_marks(self.rows, self.marks)
        listed = public_values(expr, source, self.whole.public)
        if listed is not None:
            return listed
        values = Domains(self.people.declared, known_of(source), origins(source)).of(expr)
        return possible(expr, values, source) if values is not None and isinstance(expr, Column) else values

    def _grouping(self, node: exp.Expr) -> Expr:
        """Bind GROUPING(a): 1 in rows that sum over a, otherwise 0; with several keys, one binary digit each."""
        bits = []
        for item in node.expressions:
            key = rebuild(self.inner.bind(item), self.keys)
            if not isinstance(key, Slot):
                raise SQLSyntaxError(
                    f"GROUPING({text_of_item(item, self.sql, self.scope.columns)}): that is no key of GROUP BY.",
                    span=span_of(self.sql, item),
                )
            bits.append(Slot(-1 - key.index, f"GROUPING({key.name})", Type.INTEGER) if self.sets else _ZERO)
        digits: Expr = _ZERO
        for bit in bits:
            doubled = self.outer.apply("multiply", node, [digits, Literal(2, Type.INTEGER)])
            digits = bit if digits is _ZERO else self.outer.apply("add", node, [doubled, bit])
        return digits if len(bits) == 1 else self.outer.apply("to_bigint", node, [digits])

    def _with_candidates(self, each: Aggregation, domains: Domains, source: Source) -> Aggregation:
        from dpsql.sql.bind.candidates import with_candidates  # imported only when needed

        return with_candidates(each, domains, source, self.whole.public)

    def _group_keys(self, source: Source, domains: Domains) -> tuple[GroupKey, ...]:
        if not self.keys:
            return ()
        keys = []
        for expr, span in zip(self.keys, self.key_spans, strict=True):
            declared = self.people.declared(expr) if isinstance(expr, Column) else None
            if expr.type.opaque:
                stored = "" if declared is None else f" of type {declared.storage}"
                raise UnsupportedSQL(
                    f"GROUP BY {expr}: columns{stored} cannot be grouped by.",
                    span=span,
                    hint=f'Declare a type: types={{"{expr}": "text"}}.' if expr.type is Type.OBJECT else as_text(expr),
                )
            shown = shown_key(expr, source)
            if shown is not None:
                keys.append(GroupKey(expr, shown[1], span=span, shown=shown[0]))
                continue
            values, listed = self._values_of_key(expr, source, domains, declared)
            if values is None:
                self._refuse_unit(expr, span)
                self._refuse_last_bits(expr, span, source)
            keys.append(GroupKey(expr, values, listed, span))
        return tuple(keys)

    def _values_of_key(
        self, expr: Expr, source: Source, domains: Domains, declared: ColumnSchema | None
    ) -> tuple[Domain | None, bool]:
        """Return the public values of a key, and whether they are listed; None if its values are private."""
        values: Domain | None = public_values(expr, source, self.whole.public)
        listed = values is not None or (declared is not None and declared.keys is not None)
        if values is None:
            values = domains.of(expr)
            if values is not None and listed and isinstance(expr, Column):
                values = possible(expr, values, source)
        if values is None:
            values = values_by_equality(expr, source, self.whole.public)
            listed = values is not None
        options = self.whole.options
        if values is None and (options is None or not options.selects_groups):
            values = values_in_conditions(expr, source)
        return values, listed

    def _together(self, keys: tuple[GroupKey, ...], source: Source, domains: Domains) -> tuple[GroupKey, ...]:
        """Return the keys; those over the same public rows or the same column get the combinations that occur there."""
        from dpsql.sql.bind.correlated_column_keys import keys_of_columns  # imported only when needed
        from dpsql.sql.bind.correlated_keys import keys_together

        return keys_of_columns(keys_together(keys, source, self.whole.public), domains, source)

    def _refuse_last_bits(self, expr: Expr, span: Span | None, source: Source) -> None:
        function = None if self.rows.public else inexact_in(expr, made_of(source))
        if function is not None:
            raise UnsupportedSQL(
                f"groups by {expr} are one for each value of {function}, to the last bit: hardly two rows share one.",
                span=span,
                hint=f"ROUND it: ROUND({expr if expr.type is Type.REAL else function}, 2).",
            )

    def _refuse_unit(self, expr: Expr, span: Span | None) -> None:
        if any(expr == column for _, column in self.rows.handles):
            of_each = f"SELECT {expr}, COUNT(*) AS n FROM {self.people.table.name} GROUP BY {expr}"
            why = f"GROUP BY {expr} makes groups of one person each, and none of them could be shown."
            hint = f"Aggregate each person first: SELECT AVG(CLAMP(n, 0, 20)) FROM ({of_each}).\n{_EXAMPLE}"
            raise UnsupportedSQL(why, span=span, hint=hint)

    def outer_leaf(self, node: exp.Expr) -> Expr | None:
        if _is_interval_end(node):
            return self._interval_end(node)
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        return super().outer_leaf(node)

    def _interval_end(self, node: exp.Expr) -> IntervalEnd:
        """Bind DP_INTERVAL_LOW(alias[, level]) and DP_INTERVAL_HIGH: the ends of an output's noise interval."""
        name, args = str(node.this).upper(), node.expressions
        if len(args) not in (1, 2):
            raise SQLSyntaxError(f"{name} takes an alias and a level.", span=span_of(self.sql, node))
        expr = self.by_alias(args[0]) or self._item_named(args[0]) or self.released(args[0])
        if not any(isinstance(part, Slot) and part.index >= len(self.keys) for part in walk(expr)):
            raise SQLSyntaxError(
                f"{name} is about an aggregate, and there is none in {expr}.",
                span=span_of(self.sql, node),
                hint=f"Name an output: SELECT COUNT(*) AS n, {name}(n) ...",
            )
        for each, slot in self.aggregations.items():
            why = each.kind.without_interval
            if why and slot in walk(expr):
                raise UnsupportedSQL(f"{each} has no noise interval: {why}.", span=span_of(self.sql, node))
        if any(isinstance(part, IntervalEnd | Report) for part in walk(expr)):
            raise SQLSyntaxError(f"{name} is about an aggregate itself, not an interval.", span=span_of(self.sql, node))
        level = self._level(name, args[1]) if len(args) == 2 else _LEVEL
        return IntervalEnd(expr, level, upper=INTERVAL_ENDS[name])

    def _level(self, name: str, node: exp.Expr) -> float:
        level = self.outer.bind(node)
        if not isinstance(level, Literal) or not isinstance(level.value, float) or not 0 < level.value < 1:
            raise SQLSyntaxError(f"{name} takes a level between 0 and 1, such as 0.95.", span=span_of(self.sql, node))
        return level.value

    def _item_named(self, node: exp.Expr) -> Expr | None:
        """Return a later output of the SELECT list, by its alias."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        named = [item for item, alias in items_of(self.select) if alias and alias.casefold() == node.name.casefold()]
        if named and any(_is_interval_end(each) for each in named[0].walk()):
            raise SQLSyntaxError(f"{node.name} is itself about an interval.", span=span_of(self.sql, node))
        return self.released(named[0]) if named else None

    def bounded(
        self, kind: AggregateFunction, argument: Expr | None, options: AggregateOptions, node: exp.Expr
    ) -> Expr | None:
        """Return the argument clipped to its contribution bounds; bounds per unit are in `per_unit`."""
        bounds = clip_of(kind, options, unit_is_row=self.rows.unit_is_row)
        if bounds is None:
            return argument
        assert argument is not None  # only COUNT(*) has none
        if not argument.type.numeric:
            raise TypeMismatch(
                f"{argument} is {argument.type}, and bounds are for numbers.",
                span=span_of(self.sql, called(node).this or node) or span_of(self.sql, node),
            )
        ends: list[Expr] = [
            Literal(end, Type.INTEGER if isinstance(end, int) else Type.REAL) for end in (bounds.lower, bounds.upper)
        ]
        return self.inner.apply("clamp", node, [argument, *ends])

    def per_unit(self, kind: AggregateFunction, options: AggregateOptions | None) -> Interval | None:
        return None if options is None else bounds_of_a_unit(kind, options, self.rows)

    def slot_type(self, aggregation: Aggregation) -> Type:
        """Return the type: noisy values are rounded only for display, selected values keep their column's type."""
        return super().slot_type(aggregation) if aggregation.kind.chosen else Type.REAL

    def slot_of(self, aggregation: Aggregation, node: exp.Expr) -> Slot:
        if aggregation.kind.distinct:
            units = (column for how, column in self.rows.handles if how == OWN)
            aggregation = replace(aggregation, of_units=any(aggregation.argument == column for column in units))
        return super().slot_of(aggregation, node)

    def raw_column(self, column: Column) -> Exception:
        if any(mark.column == column for mark in self.marks):
            return UnsupportedSQL(
                "a sub-query in an expression stands in WHERE, GROUP BY or an aggregate's argument.",
                span=next((span_of(self.sql, node) for node, made in self.memberships.items() if made == column), None),
            )
        node = self.named.get(column)
        name, span = (column.name, None) if node is None else (node.name, span_of(self.sql, node))
        written = str(replace(column, name=name))
        average = f"AVG({written}), or " if column.type.numeric else f"COUNT({written}), or "
        if any(column == handle for _, handle in self.rows.handles):
            return RawColumn(
                f'"{name}" is outside an aggregate, so the query would return who is in the table.',
                span=span,
                hint=f"Leave it out, or count people: COUNT(DISTINCT {written}).",
            )
        own = "the values of a public table, which is read without dpsql" if self.rows.public else "people's own values"
        return RawColumn(
            f'"{name}" is outside an aggregate, so the query would return {own}.',
            span=span,
            hint=f"Use {average}GROUP BY {written} if you want one row per {written}.",
        )


def _is_interval_end(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in INTERVAL_ENDS


def refuse_star(sql: str, node: exp.Expr, *, public: bool = False) -> NoReturn:
    """Refuse SELECT * in the outermost query."""
    raise RawColumn(
        "SELECT * is not answered: public tables are read without dpsql."
        if public
        else "SELECT * would return people's own values.",
        span=span_of(sql, node),
        hint="Name aggregates, for example COUNT(*), or columns of GROUP BY.",
    )
