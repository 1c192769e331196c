"""Calls of aggregates as they are written, brought to one form: kind, arguments, and which quantile or how many."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.aggregates import PAIRS, AggregateKind
from dpsql.schema.frozen import dataclass
from dpsql.sql.dialect_nodes import Named
from dpsql.sql.parse import span_of

AGGREGATES: Mapping[type[exp.Expr], AggregateKind] = {
    exp.Count: AggregateKind.COUNT,
    exp.CountIf: AggregateKind.COUNT,
    exp.Sum: AggregateKind.SUM,
    exp.Avg: AggregateKind.AVG,
    exp.Min: AggregateKind.MIN,
    exp.Max: AggregateKind.MAX,
    exp.Variance: AggregateKind.VAR_SAMP,
    exp.VariancePop: AggregateKind.VAR_POP,
    exp.Stddev: AggregateKind.STDDEV_SAMP,
    exp.StddevSamp: AggregateKind.STDDEV_SAMP,
    exp.StddevPop: AggregateKind.STDDEV_POP,
    exp.CovarPop: AggregateKind.COVAR_POP,
    exp.CovarSamp: AggregateKind.COVAR_SAMP,
    exp.Corr: AggregateKind.CORR,
    exp.RegrSlope: AggregateKind.REGR_SLOPE,
    exp.RegrIntercept: AggregateKind.REGR_INTERCEPT,
    exp.RegrR2: AggregateKind.REGR_R2,
    exp.Median: AggregateKind.QUANTILE,
    exp.Quantile: AggregateKind.QUANTILE,
    exp.PercentileCont: AggregateKind.QUANTILE,
    exp.PercentileDisc: AggregateKind.QUANTILE,
    exp.Mode: AggregateKind.MODE,
    exp.ApproxTopK: AggregateKind.TOP_K,
    exp.ApproxDistinct: AggregateKind.DISTINCT,
}
HALF = exp.Literal.number("0.5")


@dataclass(frozen=True)
class Written:
    """One call: `operand` is what is aggregated, `second` the x of a pair (y, x), `at` the node of the quantile or of
    how many values; `falling`: the quantile counts from the top."""

    node: exp.Expr
    kind: AggregateKind
    operand: exp.Expr | None
    second: exp.Expr | None = None
    at: exp.Expr | None = None
    falling: bool = False

    def place(self, sql: str) -> Span | None:
        """Where its arguments stand, from the first to the last."""
        first = span_of(sql, self.operand or self.node) or span_of(sql, self.node)
        last = None if self.second is None else span_of(sql, self.second)
        return first if first is None or last is None else Span(sql, first.start, last.end)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate, its FILTER and named arguments apart."""
    return type(node) in AGGREGATES or isinstance(node, exp.WithinGroup)


def called(node: exp.Expr) -> exp.Expr:
    """A call without its FILTER, its WITHIN GROUP and its named arguments."""
    while isinstance(node, exp.Filter | exp.WithinGroup | Named):
        node = node.this
    return node


def name_of(node: exp.Expr, sql: str) -> str:
    """The name that the text calls an aggregate by."""
    node = called(node)
    start, end = (node.meta.get(place) for place in ("start", "end"))
    word = "" if start is None or end is None else sql[start : end + 1].upper()
    own = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()
    return word if word.isidentifier() else own


def written(node: exp.Expr, sql: str) -> Written:
    """The call of an aggregate. Raises SQLSyntaxError, UnsupportedSQL."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node, sql)
    kind = AGGREGATES[type(node)]
    operand = node.this
    if kind is AggregateKind.COUNT and isinstance(node, exp.Count) and isinstance(operand, exp.Distinct):
        kind = AggregateKind.DISTINCT
    if kind in PAIRS:
        if node.args.get("expression") is None:
            raise SQLSyntaxError(f"{name_of(node, sql)} takes two arguments (y, x).", span=span_of(sql, node))
        return Written(node, kind, operand, node.args.get("expression"))
    if isinstance(node, exp.Median):
        return Written(node, kind, operand, at=HALF)
    if kind is AggregateKind.QUANTILE:
        at = node.args.get("quantile") or node.args.get("expression")
        if at is None:
            word = name_of(node, sql)
            raise SQLSyntaxError(
                f"{word} of one argument says no quantile.",
                span=span_of(sql, node),
                hint=f"Write {word}(x, 0.5), or PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
            )
        return Written(node, kind, operand, at=at)
    if kind is AggregateKind.TOP_K:
        return Written(node, kind, operand, at=node.args.get("expression"))
    return Written(node, kind, operand)


def _within_group(node: exp.WithinGroup, sql: str) -> Written:
    """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x), MODE() WITHIN GROUP (ORDER BY x)."""
    inner, order = node.this, node.args.get("expression")
    inner = inner.this if isinstance(inner, Named) else inner
    kind = AGGREGATES.get(type(inner))
    if kind not in (AggregateKind.QUANTILE, AggregateKind.MODE) or isinstance(inner, exp.Median | exp.Quantile):
        raise UnsupportedSQL(
            "WITHIN GROUP (ORDER BY ...) belongs to PERCENTILE_CONT, PERCENTILE_DISC and MODE.", span=span_of(sql, node)
        )
    terms = order.expressions if isinstance(order, exp.Order) else []
    if len(terms) != 1 or (kind is AggregateKind.QUANTILE) != (inner.this is not None) or inner.args.get("expression"):
        raise SQLSyntaxError(
            "WITHIN GROUP orders by one expression.",
            span=span_of(sql, node),
            hint="Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    falling = bool(terms[0].args.get("desc"))
    at = inner.this if kind is AggregateKind.QUANTILE else None
    return Written(node, kind, terms[0].this, at=at, falling=falling)
