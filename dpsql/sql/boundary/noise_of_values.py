"""Noise analysis of expressions in post-processing SQL.

An expression not named here is known if all its inputs are known, else rough: it gets no interval. Simulated noise fits
a quotient only while its denominator stays away from 0, and a product of two noisy values only while both do. Such
parts are noted, and become NaN in runs where they are not above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from sqlglot import exp

from dpsql.plan.redraws import KNOWN, ROUGH, Noise
from dpsql.sql.bind.aggregate_calls import is_aggregate


class Scope(Protocol):
    """The scope of an expression."""

    hidden: bool
    """True if noise decided which rows exist."""

    def column(self, node: exp.Column) -> Noise:
        """Return the noise of a column."""

    def query(self, node: exp.Expr) -> tuple[Noise, bool]:
        """Return the first column of a sub-query, and whether all of its values are known."""

    def total(self, columns: frozenset[int]) -> bool:
        """Return whether ordering by these columns leaves no ties."""

    def window(self, node: exp.Window) -> list[exp.Expr]:
        """Return the parts of a window, including those of the window it names."""

    def positive(self, node: exp.Expr) -> None:
        """Note a part that must be above 0."""


_UPWARD = (exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Exp, exp.Cbrt)
_STEPS = (exp.Round, exp.Floor, exp.Ceil)
_EXTREME = (exp.Greatest, exp.Least)
_BY_ORDER = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_PEERS_TOGETHER = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_NULLS = (exp.IgnoreNulls, exp.RespectNulls)


def noise_of(node: exp.Expr, scope: Scope) -> Noise:
    """Return the noise of an expression."""
    for kinds, rule in _RULES:
        if isinstance(node, kinds):
            return rule(node, scope)
    if is_aggregate(node) or isinstance(node, exp.AggFunc):
        return _of_rows(node, scope)
    return _otherwise(node, scope)


def all_known(nodes: Iterable[exp.Expr], scope: Scope) -> bool:
    """Return whether all of the nodes are free of noise."""
    return all(noise_of(each, scope).known for each in nodes)


def merged(first: Noise, second: Noise) -> Noise:
    """Combine two alternatives, where the choice itself has no noise."""
    return Noise(
        first.known and second.known,
        first.smooth and second.smooth,
        first.single and second.single,
        first.leaves | second.leaves,
    )


def _otherwise(node: exp.Expr, scope: Scope) -> Noise:
    parts = [noise_of(each, scope) for each in node.iter_expressions()]
    return KNOWN if all(each.known for each in parts) else ROUGH


def _of_rows(node: exp.Expr, scope: Scope) -> Noise:
    """Handle aggregates without a rule below."""
    return KNOWN if all_known(node.iter_expressions(), scope) and not scope.hidden else ROUGH


def _same(node: exp.Expr, scope: Scope) -> Noise:
    return noise_of(node.this, scope)


def _column(node: exp.Expr, scope: Scope) -> Noise:
    assert isinstance(node, exp.Column)
    return scope.column(node)


def _sum(node: exp.Expr, scope: Scope) -> Noise:
    first, second = noise_of(node.this, scope), noise_of(node.expression, scope)
    single = (first.known and second.single) or (second.known and first.single)
    return _with(first, second, smooth=first.smooth and second.smooth, single=single)


def _product(node: exp.Expr, scope: Scope) -> Noise:
    first, second = noise_of(node.this, scope), noise_of(node.expression, scope)
    single = (first.known and second.single) or (second.known and first.single)
    smooth = first.smooth and second.smooth
    if smooth and not first.known and not second.known:
        scope.positive(node.this)
        scope.positive(node.expression)
    return _with(first, second, smooth=smooth, single=single)


def _quotient(node: exp.Expr, scope: Scope) -> Noise:
    first, second = noise_of(node.this, scope), noise_of(node.expression, scope)
    smooth = first.smooth and second.smooth
    if smooth and not second.known:
        scope.positive(node.expression)
    return _with(first, second, smooth=smooth, single=second.known and first.single)


def _with(first: Noise, second: Noise, *, smooth: bool, single: bool) -> Noise:
    known = first.known and second.known
    return Noise(known, known or smooth, known or single, first.leaves | second.leaves)


def _negative(node: exp.Expr, scope: Scope) -> Noise:
    return noise_of(node.this, scope).computed()


def _nullif(node: exp.Expr, scope: Scope) -> Noise:
    """Handle NULLIF(x, 0), which guards a quotient."""
    first, second = noise_of(node.this, scope), node.expression
    zero = isinstance(second, exp.Literal) and not second.args.get("is_string") and float(second.this) == 0
    if first.known or not first.smooth or not zero:
        return _otherwise(node, scope)
    scope.positive(node.this)
    return first.computed(single=False)


def _upward(node: exp.Expr, scope: Scope) -> Noise:
    """Handle functions that increase in their first argument. Those close to the identity stay smooth."""
    others = [each for each in node.iter_expressions() if each is not node.this]
    first = noise_of(node.this, scope)
    return first.computed(smooth=isinstance(node, _STEPS)) if all_known(others, scope) else ROUGH


_NUMBERS = {
    *(exp.DataType.Type.BIGINT, exp.DataType.Type.INT, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT),
    *(exp.DataType.Type.DECIMAL, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT128),
}


def _cast(node: exp.Expr, scope: Scope) -> Noise:
    first, to = noise_of(node.this, scope), node.args.get("to")
    number = isinstance(to, exp.DataType) and to.this in _NUMBERS
    return first.computed() if first.known or number else ROUGH


def _extreme(node: exp.Expr, scope: Scope) -> Noise:
    """Handle GREATEST and LEAST of one noisy value and known ones: they increase in the noisy value."""
    parts = [noise_of(each, scope) for each in node.iter_expressions()]
    noisy = [each for each in parts if not each.known]
    return KNOWN if not noisy else noisy[0].computed(smooth=False) if len(noisy) == 1 else ROUGH


def _first_known(node: exp.Expr, scope: Scope) -> Noise:
    """Handle COALESCE: either the same argument is NULL in all runs, or the result gets no interval."""
    noise = KNOWN
    for each in node.iter_expressions():
        noise = merged(noise, noise_of(each, scope))
    return noise


def _case(node: exp.Expr, scope: Scope) -> Noise:
    assert isinstance(node, exp.Case)
    branches = node.args.get("ifs") or []
    asked = [*([node.this] if node.this else []), *(each.this for each in branches)]
    values = [*(each.args["true"] for each in branches), *([node.args["default"]] if node.args.get("default") else [])]
    return _chosen(asked, values, scope)


def _if(node: exp.Expr, scope: Scope) -> Noise:
    values = [node.args["true"], *([node.args["false"]] if node.args.get("false") else [])]
    return _chosen([node.this], values, scope)


def _chosen(asked: list[exp.Expr], values: list[exp.Expr], scope: Scope) -> Noise:
    if not all_known(asked, scope):
        return ROUGH
    noise = KNOWN
    for each in values:
        noise = merged(noise, noise_of(each, scope))
    return noise


def _subquery(node: exp.Expr, scope: Scope) -> Noise:
    return scope.query(node)[0]


def _asking(node: exp.Expr, scope: Scope) -> Noise:
    """Handle IN and EXISTS: known if everything they read is known."""
    queries = [each for each in node.iter_expressions() if isinstance(each, exp.Query)]
    if not queries:
        return _otherwise(node, scope)
    others = [each for each in node.iter_expressions() if not isinstance(each, exp.Query)]
    return KNOWN if all(scope.query(each)[1] for each in queries) and all_known(others, scope) else ROUGH


def _total(node: exp.Expr, scope: Scope) -> Noise:
    """Handle SUM and AVG over rows that are the same in all runs."""
    inner = noise_of(node.this, scope)
    if scope.hidden or not inner.smooth:
        return ROUGH
    return KNOWN if inner.known else Noise(smooth=True, leaves=inner.leaves)


def _filtered(node: exp.Expr, scope: Scope) -> Noise:
    return noise_of(node.this, scope) if all_known([node.expression.this], scope) else ROUGH


def _windowed(node: exp.Expr, scope: Scope) -> Noise:
    assert isinstance(node, exp.Window)
    parts = scope.window(node)
    called: exp.Expr = node.this
    filters = []
    while isinstance(called, (exp.Filter, *_NULLS)):
        filters += [called.expression.this] if isinstance(called, exp.Filter) else []
        called = called.this
    if scope.hidden or not all_known([*parts, *filters], scope):
        return ROUGH
    total = scope.total(_columns(parts, scope))
    if isinstance(called, _BY_ORDER):
        return _by_order(called, scope) if total else ROUGH
    together = isinstance(called, (exp.AggFunc, *_PEERS_TOGETHER)) and not _counts_rows(parts)
    if not together and not total:  # noise may decide the order of ties
        return ROUGH
    if isinstance(called, exp.Sum | exp.Avg) and not isinstance(called.this, exp.Distinct):
        return _total(called, scope)
    return KNOWN if all_known(called.iter_expressions(), scope) else ROUGH


def _counts_rows(parts: Iterable[exp.Expr]) -> bool:
    """Return whether a frame counts rows, and so separates ties."""
    specs = [each for each in parts if isinstance(each, exp.WindowSpec)]
    return any(str(each.args.get("kind") or "RANGE").upper() != "RANGE" for each in specs)


def _by_order(called: exp.Expr, scope: Scope) -> Noise:
    """Handle LAG and similar functions, which read another row: the same one in all runs."""
    others = [
        each for name, each in called.args.items() if name not in ("this", "default") and isinstance(each, exp.Expr)
    ]
    if not all_known(others, scope):
        return ROUGH
    noise = noise_of(called.this, scope)
    default = called.args.get("default")
    return merged(noise.computed(), noise_of(default, scope) if isinstance(default, exp.Expr) else KNOWN)


def _columns(parts: Iterable[exp.Expr], scope: Scope) -> frozenset[int]:
    """Return the columns that a window partitions and orders by."""
    values = [each.this if isinstance(each, exp.Ordered) else each for each in parts]
    return frozenset().union(*(noise_of(each, scope).column for each in values))


def _frame(node: exp.Expr, scope: Scope) -> Noise:
    return KNOWN if all_known(node.iter_expressions(), scope) else ROUGH


_Rule = Callable[[exp.Expr, Scope], Noise]
_RULES: tuple[tuple[type | tuple[type, ...], _Rule], ...] = (
    (exp.Column, _column),
    ((exp.Paren, exp.Alias, exp.Ordered), _same),
    ((exp.Add, exp.Sub), _sum),
    (exp.Mul, _product),
    (exp.Div, _quotient),
    (exp.Neg, _negative),
    (exp.Nullif, _nullif),
    (_UPWARD, _upward),
    ((exp.Cast, exp.TryCast), _cast),
    (_EXTREME, _extreme),
    (exp.Coalesce, _first_known),
    (exp.Case, _case),
    (exp.If, _if),
    ((exp.In, exp.Exists), _asking),
    (exp.Query, _subquery),
    (exp.Window, _windowed),
    (exp.Filter, _filtered),
    (exp.WindowSpec, _frame),
    (
        (exp.Sum, exp.Avg),
        lambda node, scope: _of_rows(node, scope) if isinstance(node.this, exp.Distinct) else _total(node, scope),
    ),
)
