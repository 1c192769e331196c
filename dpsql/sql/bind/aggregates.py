"""Binding of a SELECT's aggregates: each call, with FILTER and named arguments, becomes a slot."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Column, Expr, Literal, Report, Slot, unfiltered
from dpsql.plan.options import AggregateOptions
from dpsql.plan.query import MOST_AGGREGATES
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.aggregate_calls import (
    INSIDE_A_PERSON,
    WrittenAggregate,
    is_aggregate,
    name_of,
    name_of_composed,
    written,
)
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.bind.wide_numbers import argument_of
from dpsql.sql.syntax.nodes import ANY_VALUE, NamedArguments
from dpsql.sql.syntax.options import read_aggregate_options
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import NAMED
from dpsql.sql.syntax.source_text import worded

REPORT_LEVEL = 0.95
PARTS = 10**6
"""Resolution of quantiles. With one denominator for all, the integers compared with ranks have one size, so that timing
does not reveal the number of rows."""
MOST_CHOSEN = 100
"""Maximum number of values from APPROX_TOP_K."""


class AggregateBinder:
    """Binder of aggregate calls. Subclasses define which aggregates and options exist."""

    exact = True
    """True if only aggregates with an exact implementation are allowed."""

    def __init__(self, sql: str, inner: ScalarBinder) -> None:
        self.sql = sql
        self.inner = inner
        """Binder of expressions below the aggregation."""
        self.keys: dict[Expr, Slot] = {}
        self.aggregations: dict[Aggregation, Slot] = {}

    def condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        if isinstance(expr, Literal) and expr.value is None:
            return Literal(None, Type.BOOLEAN)
        if expr.type is not Type.BOOLEAN:
            raise TypeMismatch(f"{clause} wants a condition, got {expr.type}.", span=span_of(self.sql, node))
        return expr

    def check_any_value(self, node: exp.Expr) -> None:
        """Refuse an ANY_VALUE, which is a marked MODE here, unless its columns are public. Raises UnsupportedSQL."""
        if node.meta.get(ANY_VALUE) and not self.reads_public_columns(node):
            raise UnsupportedSQL(NAMED[exp.AnyValue], span=span_of(self.sql, node))

    def reads_public_columns(self, node: exp.Expr) -> bool:  # noqa: ARG002 - subclasses read it
        """Return whether an aggregate over private rows reads columns of one public table only."""
        return False

    def aggregate(self, node: exp.Expr) -> Expr | None:
        """Return the slot of an aggregate with its FILTER and named arguments, or None for any other node."""
        inner, named = _without_options(node)
        self.check_any_value(inner)
        if type(inner) in INSIDE_A_PERSON:
            raise UnsupportedSQL(worded(NAMED[type(inner)], inner, self.sql), span=span_of(self.sql, inner))
        if not is_aggregate(inner):
            if isinstance(node, exp.Filter | NamedArguments):
                what = "FILTER" if isinstance(node, exp.Filter) else "a named argument"
                raise SQLSyntaxError(f"{what} belongs to an aggregate.", span=span_of(self.sql, node))
            return None
        if name_of_composed(inner) is not None:
            return self.composed(node)
        condition = self._filter(node) if isinstance(node, exp.Filter) else None
        call = written(inner, self.sql)
        kind = call.kind
        if self.exact and kind.of_cells is None:
            raise UnsupportedSQL(
                f"{name_of(node, self.sql)} is supported over people's rows, where the answer is made.",
                span=span_of(self.sql, node),
            )
        argument = self.argument(call, condition)
        second = None if call.second is None else self.second_argument(call)
        options = None if named is None else read_aggregate_options(named, self.sql)
        if options is not None:
            argument = self.bounded(kind, argument, options, inner)
        epsilon = None if options is None else options.epsilon
        per_unit = self.per_unit(kind, options)
        place = call.place(self.sql)
        reports = options is not None and self._reports(kind, options, inner)
        aggregation = Aggregation(kind, argument, place, epsilon, per_unit, second, self.which(call))
        slot = self.slot_of(aggregation, node)
        return Report(slot, REPORT_LEVEL) if reports else slot

    def composed(self, node: exp.Expr) -> Expr:
        """Bind a statistic composed of other aggregates."""
        raise UnsupportedSQL(
            f"{name_of(node, self.sql)} is supported over people's rows, where the answer is made.",
            span=span_of(self.sql, node),
        )

    def _filter(self, node: exp.Filter) -> Expr:
        where = node.expression.this
        return self.condition(self.inner.bind(where), where, "FILTER")

    def _reports(self, kind: AggregateFunction, options: AggregateOptions, node: exp.Expr) -> bool:
        """Return whether the query asks for the noise interval too. Raises UnsupportedSQL if there is none."""
        if options.report_format is not None and kind.without_interval:
            raise UnsupportedSQL(
                f"{name_of(node, self.sql)} has no noise interval to report.", span=options.places.get("report_format")
            )
        return options.report_format is not None

    def second_argument(self, call: WrittenAggregate) -> Expr:
        """Return the x of an aggregate of two arguments (y, x)."""
        assert call.second is not None
        if isinstance(call.operand, exp.Distinct):
            word = name_of(call.node, self.sql)
            raise UnsupportedSQL(f"DISTINCT inside {word} is not supported.", span=span_of(self.sql, call.node))
        expr = self.inner.bind(call.second)
        self.check_argument(call.kind, expr, call.second)
        return expr

    def which(self, call: WrittenAggregate) -> Fraction | None:
        """Return the requested quantile, from the bottom, or the number of values."""
        if call.at is None:
            return None
        literal = self.inner.bind(call.at)
        value = literal.value if isinstance(literal, Literal) and literal.type.numeric else None
        if value is None or isinstance(value, bool) or not isinstance(value, int | float):
            value = None
        if call.kind.several:
            if not isinstance(value, int) or not 1 <= value <= MOST_CHOSEN:
                raise SQLSyntaxError(
                    f"APPROX_TOP_K takes how many values, a whole number from 1 to {MOST_CHOSEN}.",
                    span=span_of(self.sql, call.at) or span_of(self.sql, call.node),
                )
            return Fraction(value)
        if value is None or not 0 <= value <= 1:
            raise SQLSyntaxError(
                "a quantile is a number from 0 to 1, such as 0.5.",
                span=span_of(self.sql, call.at) or span_of(self.sql, call.node),
                hint="Several quantiles are several calls: QUANTILE(x, 0.25), QUANTILE(x, 0.75).",
            )
        at = Fraction(round(Fraction(repr(value)) * PARTS), PARTS)
        return 1 - at if call.falling else at

    def bounded(
        self,
        kind: AggregateFunction,  # noqa: ARG002
        argument: Expr | None,  # noqa: ARG002
        options: AggregateOptions,  # noqa: ARG002
        node: exp.Expr,
    ) -> Expr | None:
        """Return the argument clipped to the aggregate's own contribution bounds."""
        raise UnsupportedSQL("named arguments belong to aggregates of people's rows.", span=span_of(self.sql, node))

    def per_unit(self, kind: AggregateFunction, options: AggregateOptions | None) -> Interval | None:  # noqa: ARG002
        """Return the bounds on one privacy unit's contribution to a group, if the text gives any."""
        return None

    def slot_of(self, aggregation: Aggregation, node: exp.Expr) -> Slot:
        if aggregation not in self.aggregations:
            if len(self.aggregations) == MOST_AGGREGATES:
                raise UnsupportedSQL(
                    f"more than {MOST_AGGREGATES} different aggregates share one epsilon.",
                    span=span_of(self.sql, node),
                    hint="Ask in several queries.",
                )
            place = len(self.keys) + len(self.aggregations)
            kind, argument = self.slot_type(aggregation), aggregation.argument
            wide = unfiltered(argument).wide if argument is not None and kind is Type.TEXT else 0
            self.aggregations[aggregation] = Slot(place, str(aggregation), kind, wide)
        return self.aggregations[aggregation]

    def slot_type(self, aggregation: Aggregation) -> Type:
        """Return the type of an exact aggregate."""
        return aggregation.exact_type

    def argument(self, call: WrittenAggregate, condition: Expr | None) -> Expr | None:
        """Return the aggregated value, which is NULL in rows where FILTER is not true. None: all rows are counted."""
        kind, node, inner, word = call.kind, call.node, call.operand, name_of(call.node, self.sql)
        if isinstance(inner, exp.Distinct):
            if kind.distinct and len(inner.expressions) != 1:
                raise SQLSyntaxError("COUNT(DISTINCT ...) takes one argument.", span=span_of(self.sql, node))
            if not kind.distinct:
                raise UnsupportedSQL(
                    f"DISTINCT inside {word} is not supported. COUNT(DISTINCT x) is.", span=span_of(self.sql, node)
                )
            inner = inner.expressions[0]
        if inner is None:
            raise SQLSyntaxError(f"{word} takes one argument.", span=span_of(self.sql, node))
        if call.condition:
            bound = self.condition(self.inner.bind(inner), inner, "COUNT_IF")
            condition = bound if condition is None else self.inner.apply("and", node, [condition, bound])
            expr: Expr = Literal(1, Type.INTEGER)
        elif isinstance(inner, exp.Star):
            if not kind.counts:
                star = "DISTINCT *" if kind.distinct and word == "COUNT" else "*"
                raise SQLSyntaxError(f"{word}({star}) is not a thing; only COUNT(*) is.", span=span_of(self.sql, node))
            expr = Literal(1, Type.INTEGER)
        else:
            expr = argument_of(self.inner, inner, kind, self.inner.bind(inner), exact=self.exact)
            self.check_argument(kind, expr, inner)
        if condition is not None:
            expr = self.inner.apply("case", node, [condition, expr, Literal(None, Type.INTEGER)])
        if kind.counts:
            return None if isinstance(expr, Literal) and expr.value is not None else expr
        return expr

    def check_argument(self, kind: AggregateFunction, expr: Expr, node: exp.Expr) -> None:
        accepts = kind.accepts_exact if self.exact else kind.accepts
        if accepts is not None and not accepts(expr.type):
            raise self.unfit(kind, expr, node, kind.hint)

    def unfit(self, kind: AggregateFunction, expr: Expr, node: exp.Expr, hint: str = "") -> TypeMismatch:
        """Return the error for an argument of the wrong type."""
        name = expr.name if isinstance(expr, Column) else str(expr)
        said, more = (text.format(kind=kind, expr=expr, name=name, type=expr.type) for text in (kind.refusal, hint))
        return TypeMismatch(said, span=span_of(self.sql, node), hint=more)


def _without_options(node: exp.Expr) -> tuple[exp.Expr, NamedArguments | None]:
    """Return a call without FILTER and named arguments, and the node of the named arguments."""
    inner = node.this if isinstance(node, exp.Filter) else node
    ordered = inner.this if isinstance(inner, exp.WithinGroup) else inner
    named = ordered if isinstance(ordered, NamedArguments) else None
    return inner.this if isinstance(inner, NamedArguments) else inner, named
