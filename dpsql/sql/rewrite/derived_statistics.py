"""Statistics composed of other aggregates: SKEWNESS and KURTOSIS of power sums, GEOMEAN of an average of logarithms,
HISTOGRAM of counts, APPROX_QUANTILES of quantiles.

Each is an expression over ordinarily released aggregates: power sums are coordinates of the query's single noise
vector, and counts of values are disjoint. So they need no privacy rules of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from dpsql.errors import MissingBounds, SQLSyntaxError, TypeMismatch, UnknownGroups, UnsupportedSQL
from dpsql.plan.aggregates import AGGREGATES, Aggregation
from dpsql.plan.domains import Domain
from dpsql.plan.expressions import Expr, Fact, Literal, Slot
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.aggregate_calls import QUANTILE_LIST, listed, name_of, name_of_composed
from dpsql.sql.bind.aggregates import PARTS
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import NO_FUNCTIONS

MOST_VALUES = 99
"""Maximum number of HISTOGRAM counts: a query's limit, with one to spare."""
MOST_PIECES = 50
"""Maximum for APPROX_QUANTILES."""


class Composer(Protocol):
    """The binder of the SELECT that contains such a statistic."""

    sql: str
    inner: ScalarBinder
    outer: ScalarBinder

    def condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        """Return the expression, which must be a condition."""

    def slot_of(self, aggregation: Aggregation, node: exp.Expr) -> Slot:
        """Return the slot of an aggregate."""

    def known(self, expr: Expr) -> Fact:
        """Return the facts about an expression over rows, from declarations and conditions."""

    def public_values_of(self, expr: Expr) -> Domain | None:
        """Return the public list of its values, if there is one."""


@dataclass(frozen=True)
class _Call:
    """One call: its node, name, arguments, and FILTER condition."""

    node: exp.Expr
    name: str
    args: tuple[exp.Expr, ...]
    where: exp.Expr | None


def composed(binder: Composer, node: exp.Expr) -> Expr:
    """Return a statistic as an expression. Raises a QueryRefused."""
    inner = node.this if isinstance(node, exp.Filter) else node
    named = isinstance(inner, NamedArguments)
    inner = inner.this if named else inner
    name = name_of_composed(inner)
    assert name is not None  # guaranteed by the caller
    if named:
        raise UnsupportedSQL(
            f"{name_of(inner, binder.sql)} has no named arguments here.",
            span=span_of(binder.sql, node),
            hint="Clip its argument: CLAMP(x, low, high).",
        )
    where = node.expression.this if isinstance(node, exp.Filter) else None
    if name == QUANTILE_LIST:
        return _quantile_list(binder, _Call(inner, name_of(inner, binder.sql), (inner.this,), where))
    given = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this, inner.args.get("expression")]
    args = tuple(each for each in given if each is not None)
    wanted = 2 if name == "APPROX_QUANTILES" else 1
    if len(args) != wanted or isinstance(args[0], exp.Distinct | exp.Star):
        raise SQLSyntaxError(
            f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}.", span=span_of(binder.sql, node)
        )
    return _RULES[name](binder, _Call(inner, name, args, where))


def _value(binder: Composer, call: _Call) -> Expr:
    """Return the argument, NULL where FILTER is not true."""
    value = binder.inner.bind(call.args[0])
    if call.where is None:
        return value
    condition = binder.condition(binder.inner.bind(call.where), call.where, "FILTER")
    return binder.inner.apply("case", call.node, [condition, value, Literal(None, Type.INTEGER)])


def _aggregate(binder: Composer, call: _Call, kind: str, argument: Expr, which: Fraction | None = None) -> Slot:
    place = span_of(binder.sql, call.args[0]) or span_of(binder.sql, call.node)
    return binder.slot_of(Aggregation(AGGREGATES[kind], argument, place, None, None, None, which), call.node)


# Moments.


@dataclass(frozen=True)
class _Formula:
    """Arithmetic over released values."""

    binder: ScalarBinder
    node: exp.Expr

    def of(self, name: str, *args: Expr | float) -> Expr:
        return self.binder.apply(name, self.node, [_constant(each) for each in args])

    def sum(self, *terms: Expr | float) -> Expr:
        found = _constant(terms[0])
        for term in terms[1:]:
            found = self.of("add", found, term)
        return found

    def product(self, *factors: Expr | float) -> Expr:
        found = _constant(factors[0])
        for factor in factors[1:]:
            found = self.of("multiply", found, factor)
        return found


def _constant(value: Expr | float) -> Expr:
    if isinstance(value, int | float):
        return Literal(value, Type.INTEGER if isinstance(value, int) else Type.REAL)
    return value


def _moments(binder: Composer, call: _Call) -> Expr:
    """Bind SKEWNESS, KURTOSIS and KURTOSIS_POP as in DuckDB, from sums of the first three or four powers of u, the
    value scaled from its range to -1..1.

    NULL if the noisy row count is below 3 (KURTOSIS: 4, KURTOSIS_POP: 1), or the noisy variance is not above 0. Clipped
    to the possible values: with n rows the population's squared skewness is below n, and its kurtosis from 1 to n
    (Pearson 1916; Wilkins 1944).
    """
    value = _value(binder, call)
    if not value.type.numeric and value.type is not Type.BOOLEAN:
        raise TypeMismatch(f"{call.name} wants numbers, got {value.type}.", span=span_of(binder.sql, call.args[0]))
    if value.type is Type.BOOLEAN:
        value = binder.inner.apply("case", call.node, [value, *(Literal(each, Type.INTEGER) for each in (1, 0))])
    unit = _scaled(binder, call, value)
    powers = [unit]
    for _ in range(2 if call.name == "SKEWNESS" else 3):
        powers.append(binder.inner.apply("multiply", call.node, [powers[-1], unit]))
    powers[1::2] = [binder.inner.apply("abs", call.node, [each]) for each in powers[1::2]]  # so that none is negative
    count = _aggregate(binder, call, "COUNT", value)
    of = _Formula(binder.outer, call.node)
    a, b, c, *d = [of.of("divide", _aggregate(binder, call, "SUM", each), count) for each in powers]
    variance = of.of("subtract", b, of.product(a, a))
    if call.name == "SKEWNESS":
        third = of.sum(c, of.product(-3, a, b), of.product(2, a, a, a))
        root = of.of("sqrt", count)
        plain = of.of("divide", third, of.product(variance, of.of("sqrt", variance)))
        inside = of.of("clamp", plain, of.of("negate", root), root)
        factor = of.of("divide", of.of("sqrt", of.product(count, of.sum(count, -1))), of.sum(count, -2))
        return _where(of, count, variance, 3, of.product(inside, factor))
    fourth = of.sum(d[0], of.product(-4, a, c), of.product(6, a, a, b), of.product(-3, a, a, a, a))
    plain = of.of("divide", fourth, of.product(variance, variance))
    inside = of.of("clamp", plain, 1, of.of("greatest", count, 1))
    if call.name == "KURTOSIS_POP":
        return _where(of, count, variance, 1, of.sum(inside, -3))
    above = of.of("subtract", of.product(of.sum(count, 1), inside), of.product(3, of.sum(count, -1)))
    factor = of.of("divide", of.sum(count, -1), of.product(of.sum(count, -2), of.sum(count, -3)))
    return _where(of, count, variance, 4, of.product(factor, above))


def _where(of: _Formula, count: Expr, variance: Expr, least: int, value: Expr) -> Expr:
    some = of.of("and", of.of("ge", count, least), of.of("gt", variance, 0))
    return of.of("case", some, value, Literal(None, Type.REAL))


def _scaled(binder: Composer, call: _Call, value: Expr) -> Expr:
    """Scale the value from its range to -1..1. Raises MissingBounds."""
    known = binder.known(value)
    if not known.limited:
        raise MissingBounds(
            f"{call.name}({value}) needs bounds.", span=span_of(binder.sql, call.args[0]), hint=MissingBounds.remedy
        )
    ends = Interval(known.range.lower, known.range.upper)
    middle, half = (ends.lower + ends.upper) / 2, (ends.upper - ends.lower) / 2
    shifted = binder.inner.apply("subtract", call.node, [value, Literal(float(middle), Type.REAL)])
    return binder.inner.apply("divide", call.node, [shifted, Literal(float(half) or 1.0, Type.REAL)])


# Others.


def _geometric_mean(binder: Composer, call: _Call) -> Expr:
    """Bind GEOMEAN(x) as EXP(AVG(LN(x)))."""
    value = binder.inner.apply("ln", call.node, [binder.inner.bind(call.args[0])])
    if call.where is not None:
        condition = binder.condition(binder.inner.bind(call.where), call.where, "FILTER")
        value = binder.inner.apply("case", call.node, [condition, value, Literal(None, Type.REAL)])
    return binder.outer.apply("exp", call.node, [_aggregate(binder, call, "AVG", value)])


def _histogram(binder: Composer, call: _Call) -> Expr:
    """Bind HISTOGRAM: every public value with its count, as a JSON object."""
    value = _value(binder, call)
    listed = binder.public_values_of(binder.inner.bind(call.args[0]))
    values = [each for each in listed or () if each is not None]
    where = span_of(binder.sql, call.node)
    if not values or value.type not in (Type.TEXT, Type.BOOLEAN, Type.INTEGER):
        raise UnknownGroups(
            "HISTOGRAM counts each of the values of a text, a boolean or a whole number with a public list.",
            span=where,
            hint="Write GROUP BY, or a CASE of ranges; lists are declared with keys={...}.",
        )
    if len(values) > MOST_VALUES:
        raise UnsupportedSQL(
            f"HISTOGRAM counts at most {MOST_VALUES} values.", span=where, hint="Write GROUP BY x, or GROUP BY x // 10."
        )
    parts: list[Expr] = []
    for place, each in enumerate(values):
        same = binder.inner.apply("eq", call.node, [value, Literal(each, value.type)])
        one = binder.inner.apply("case", call.node, [same, Literal(1, Type.INTEGER), Literal(None, Type.INTEGER)])
        key = json.dumps(each if isinstance(each, str) else json.dumps(each), ensure_ascii=False)
        parts.append(Literal(("{" if not place else ", ") + f"{key}: ", Type.TEXT))
        parts.append(binder.outer.apply("to_bigint", call.node, [_aggregate(binder, call, "COUNT", one)]))
    return binder.outer.apply("concat", call.node, [*parts, Literal("}", Type.TEXT)])


def _quantiles(binder: Composer, call: _Call) -> Expr:
    """Bind APPROX_QUANTILES: minimum, the quantiles that divide the rows into equal parts, and maximum, as a JSON
    list."""
    value, written = _value(binder, call), binder.inner.bind(call.args[1])
    pieces = written.value if isinstance(written, Literal) and written.type is Type.INTEGER else None
    if not isinstance(pieces, int) or not 1 <= pieces <= MOST_PIECES:
        raise SQLSyntaxError(
            f"APPROX_QUANTILES takes a value, and into how many pieces: from 1 to {MOST_PIECES}.",
            span=span_of(binder.sql, call.node),
        )
    return _listed_quantiles(
        binder, call, value, [Fraction(round(Fraction(place * PARTS, pieces)), PARTS) for place in range(pieces + 1)]
    )


def _quantile_list(binder: Composer, call: _Call) -> Expr:
    """Bind QUANTILE_CONT(x, [0.25, 0.5]) as a JSON list."""
    written = listed(call.node) or []
    wanted = [Fraction(str(each.this)) for each in written if isinstance(each, exp.Literal) and each.is_number]
    if len(wanted) < len(written) or not 1 <= len(wanted) <= MOST_PIECES or not all(0 <= each <= 1 for each in wanted):
        raise SQLSyntaxError(
            f"{call.name} of a list takes from 1 to {MOST_PIECES} numbers between 0 and 1.",
            span=span_of(binder.sql, call.node),
        )
    value = _value(binder, call)
    return _listed_quantiles(binder, call, value, [Fraction(round(each * PARTS), PARTS) for each in wanted])


def _listed_quantiles(binder: Composer, call: _Call, value: Expr, wanted: Sequence[Fraction]) -> Expr:
    if not value.type.ordered_number:
        raise TypeMismatch(
            f"{call.name} wants numbers or times, got {value.type}.", span=span_of(binder.sql, call.args[0])
        )
    quote = '"' if value.type.temporal else ""
    parts: list[Expr] = [Literal(f"[{quote}", Type.TEXT)]
    for place, which in enumerate(wanted):
        parts += [Literal(f"{quote}, {quote}", Type.TEXT)] if place else []
        parts.append(_aggregate(binder, call, "QUANTILE", value, which))
    return binder.outer.apply("concat", call.node, [*parts, Literal(f"{quote}]", Type.TEXT)])


def _mad(binder: Composer, call: _Call) -> Expr:
    """Refuse MAD, which takes two releases (`median_absolute_deviation`), where it is not supported."""
    raise UnsupportedSQL(NO_FUNCTIONS["MAD"], span=span_of(binder.sql, call.node))


_RULES: Mapping[str, Callable[[Composer, _Call], Expr]] = {
    "SKEWNESS": _moments,
    "KURTOSIS": _moments,
    "KURTOSIS_POP": _moments,
    "GEOMEAN": _geometric_mean,
    "GEOMETRIC_MEAN": _geometric_mean,
    "HISTOGRAM": _histogram,
    "APPROX_QUANTILES": _quantiles,
    "MAD": _mad,
}
