"""Rewrite WIDTH_BUCKET as a CASE."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.sql.syntax.parse import span_of

MOST_BUCKETS = 10_000
"""The limit of derived groups."""
_ONE = exp.Literal.number(1)


def bucket(sql: str, node: exp.Expr) -> exp.Expr:
    """Rewrite WIDTH_BUCKET(x, low, high, n): 0 below, n + 1 from high on, otherwise the bucket number from 1. Raises
    UnsupportedSQL."""
    written = [node.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    low, high, count = [None if each is None else _number(each) for each in written]
    if low is None or high is None or count is None or count < 1 or count > MOST_BUCKETS or low >= high or count % 1:
        raise UnsupportedSQL(
            "WIDTH_BUCKET takes a value, two constants of which the first is less, and a constant number of buckets.",
            span=span_of(sql, node) if sql else None,
            hint=f"Write WIDTH_BUCKET(x, 0, 100, 10), with at most {MOST_BUCKETS:,} buckets.",
        )
    value, (least, most, pieces) = node.this, [each.copy() for each in written if each is not None]
    part = exp.Div(
        this=exp.Mul(
            this=exp.Paren(this=exp.Sub(this=value.copy(), expression=least.copy())), expression=pieces.copy()
        ),
        expression=exp.Paren(this=exp.Sub(this=most.copy(), expression=least.copy())),
    )
    whole = exp.cast(exp.Floor(this=part), "BIGINT")
    within = exp.Anonymous(this="CLAMP", expressions=[whole, exp.Literal.number(0), exp.Literal.number(int(count) - 1)])
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=value.copy(), expression=least.copy()), true=exp.Literal.number(0)),
            exp.If(this=exp.GTE(this=value.copy(), expression=most.copy()), true=exp.Literal.number(int(count) + 1)),
        ],
        default=exp.Add(this=within, expression=_ONE.copy()),
    )


def _number(node: exp.Expr) -> float | None:
    sign = -1.0 if isinstance(node, exp.Neg) else 1.0
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.args.get("is_string"):
        return None
    try:
        return sign * float(str(inner.this))
    except ValueError:
        return None
