"""Normal form of aggregate calls: kind, arguments, and the quantile or number of values."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import ErrorLevel, exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Expr
from dpsql.schema.frozen import dataclass
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.spellings import AGGREGATE_NODES

COMPOSED_NODES: Mapping[type[exp.Expr], str] = {
    exp.Skewness: "SKEWNESS",
    exp.Kurtosis: "KURTOSIS",
    exp.ApproxQuantiles: "APPROX_QUANTILES",
}
COMPOSED = frozenset({*COMPOSED_NODES.values(), "KURTOSIS_POP", "GEOMEAN", "GEOMETRIC_MEAN", "HISTOGRAM", "MAD"})
"""Statistics composed of other aggregates (`derived_statistics`)."""
QUANTILE_LIST = "a list of quantiles"
QUANTILES: Mapping[type[exp.Expr], str] = {
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "quantile",
    exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
}
"""Quantile calls, and the argument that gives the quantile."""
BY_ANOTHER: Mapping[type[exp.Expr], bool] = {exp.ArgMin: False, exp.ArgMax: True}
"""ARG_MIN and ARG_MAX, and whether the largest value decides."""
BY_ORDER: Mapping[type[exp.Expr], bool] = {exp.First: False, exp.Last: True}
"""FIRST and LAST, and whether the order is reversed."""
CONDITIONS: Mapping[type[exp.Expr], str] = {exp.LogicalOr: "MAX", exp.LogicalAnd: "MIN"}
"""BOOL_OR and BOOL_AND, and the aggregate of conditions they stand for."""
INSIDE_A_PERSON = (*BY_ANOTHER, *BY_ORDER, *CONDITIONS)
"""Aggregates allowed only in sub-queries per privacy unit (`ordered_unit_aggregates`)."""
HALF = exp.Literal.number("0.5")


@dataclass(frozen=True)
class WrittenAggregate:
    """One call. `operand`: the aggregated value; `second`: the x of a pair (y, x); `at`: the node of the quantile or
    number of values; `falling`: the quantile counts from the top; `condition`: rows count where the operand is true."""

    node: exp.Expr
    kind: AggregateFunction
    operand: exp.Expr | None
    second: exp.Expr | None = None
    at: exp.Expr | None = None
    falling: bool = False
    condition: bool = False

    def place(self, sql: str) -> Span | None:
        """Return the span of its arguments."""
        first = span_of(sql, self.operand or self.node) or span_of(sql, self.node)
        last = None if self.second is None else span_of(sql, self.second)
        return first if first is None or last is None else Span(sql, first.start, last.end)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate call, without FILTER and named arguments."""
    return type(node) in AGGREGATE_NODES or isinstance(node, exp.WithinGroup) or name_of_composed(node) is not None


def name_of_composed(node: exp.Expr) -> str | None:
    """Return the name of the composed statistic that a node calls, or None."""
    if listed(node) is not None:
        return QUANTILE_LIST
    name = str(node.this).upper() if type(node) is exp.Anonymous else COMPOSED_NODES.get(type(node), "")
    return name if name in COMPOSED else None


def listed(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the quantiles of a call with a list of them."""
    found = node.args.get(QUANTILES.get(type(node), ""))
    return list(found.expressions) if isinstance(found, exp.Array) and found.expressions else None


def called(node: exp.Expr) -> exp.Expr:
    """Return a call without its FILTER, WITHIN GROUP and named arguments."""
    while isinstance(node, exp.Filter | exp.WithinGroup | NamedArguments):
        node = node.this
    return node


def name_of(node: exp.Expr, sql: str) -> str:
    """Return the name of an aggregate as written."""
    node = called(node)
    start, end = (node.meta.get(place) for place in ("start", "end"))
    word = "" if start is None or end is None else sql[start : end + 1].upper()
    own = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()
    return word if word.isidentifier() else own


def written(node: exp.Expr, sql: str) -> WrittenAggregate:
    """Return the normal form of an aggregate call. Raises SQLSyntaxError, UnsupportedSQL."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node, sql)
    spellings, operand = AGGREGATE_NODES[type(node)], node.this
    of_distinct = isinstance(operand, exp.Distinct) and spellings[-1].mark == "DISTINCT"
    spelling = spellings[-1 if of_distinct else 0]
    kind, second = spelling.aggregate, None if len(spelling.args) == 1 else node.args.get(spelling.args[1])
    if kind.pairs:
        if second is None:
            raise SQLSyntaxError(f"{name_of(node, sql)} takes two arguments (y, x).", span=span_of(sql, node))
        return WrittenAggregate(node, kind, operand, second)
    if kind.quantile and len(spelling.args) == 1:
        return WrittenAggregate(node, kind, operand, at=HALF)
    if kind.quantile and second is None:
        word = name_of(node, sql)
        raise SQLSyntaxError(
            f"{word} of one argument says no quantile.",
            span=span_of(sql, node),
            hint=f"Write {word}(x, 0.5), or PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    at = second if kind.quantile or kind.several else None
    return WrittenAggregate(node, kind, operand, at=at, condition=spelling.mark == "IF")


def _within_group(node: exp.WithinGroup, sql: str) -> WrittenAggregate:
    """Read PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) and MODE() WITHIN GROUP (ORDER BY x)."""
    inner, order = node.this, node.args.get("expression")
    inner = inner.this if isinstance(inner, NamedArguments) else inner
    spelling = next((each for each in AGGREGATE_NODES.get(type(inner), ()) if each.ordered), None)
    if spelling is None:
        raise UnsupportedSQL(
            "WITHIN GROUP (ORDER BY ...) belongs to PERCENTILE_CONT, PERCENTILE_DISC and MODE.", span=span_of(sql, node)
        )
    kind = spelling.aggregate
    terms = order.expressions if isinstance(order, exp.Order) else []
    if len(terms) != 1 or kind.quantile != (inner.this is not None) or inner.args.get("expression"):
        raise SQLSyntaxError(
            "WITHIN GROUP orders by one expression.",
            span=span_of(sql, node),
            hint="Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    falling = bool(terms[0].args.get("desc"))
    at = inner.this if kind.quantile else None
    return WrittenAggregate(node, kind, terms[0].this, at=at, falling=falling)


_DIALECT = PrivacyDialect()
_PLAINLY_NAMED: Mapping[type[exp.Expr], str] = {
    exp.Count: "COUNT", exp.CountIf: "COUNT_IF", exp.Sum: "SUM", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX"
}  # fmt: skip


def text_of_item(node: exp.Expr, sql: str, columns: Mapping[str, tuple[str, Expr]]) -> str:
    """Return a SELECT item as written, the default name of its column. columns: by folded names."""
    if isinstance(node, exp.Column):
        entry = columns.get(node.name.casefold())
        return entry[0] if entry else str(node.name)
    inner = node.this if type(node) in _PLAINLY_NAMED else None
    if isinstance(inner, exp.Star):
        return "COUNT(*)"
    if type(inner) is exp.Column and not inner.table and type(inner.this) is exp.Identifier and not inner.this.quoted:
        return f"{_PLAINLY_NAMED[type(node)]}({inner.name})"
    written: str = node.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)
    call = type(called(node))
    if call not in AGGREGATE_NODES or call in _PLAINLY_NAMED:
        return written
    return name_of(node, sql) + written[written.index("(") :]  # one node may have several names
