"""Several quantiles in one call, QUANTILE_CONT(x, [0.25, 0.5]), as a JSON list (`derived_statistics`); and one by
index, as APPROX_QUANTILES(x, 100)[OFFSET(50)] or HISTOGRAM(x)['a'], as a single aggregate.

An index after PERCENTILE(x, array(...)) is not read: Spark counts from 0.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.sql.bind.aggregate_calls import QUANTILES, listed

if TYPE_CHECKING:
    from dpsql.sql.syntax.parse import Statement

_FOREIGN = ("PERCENTILE", "PERCENTILE_APPROX", "APPROX_PERCENTILE")
_PLACES = {"OFFSET": 0, "SAFE_OFFSET": 0, "ORDINAL": 1, "SAFE_ORDINAL": 1}
"""GoogleSQL's index functions, and the number they start from."""
_PARTS = 10**6


def is_list_of_quantiles(node: exp.Expr) -> bool:
    """Return whether a node is such a list, or takes an element of a call's list."""
    if isinstance(node, exp.Bracket):
        return _part_of(node) is not None
    call = node.parent
    if not isinstance(node, exp.Array) or call is None or not all(map(_is_number, node.expressions)):
        return False
    if isinstance(call, exp.Anonymous):
        return str(call.this).upper() in _FOREIGN and call.expressions[1:2] == [node]
    return call.args.get(QUANTILES.get(type(call), "")) is node or isinstance(call.parent, exp.WithinGroup)


def _is_number(node: exp.Expr) -> bool:
    """Return whether a node is a number, or a parameter, which `parameter_constants` replaces with one."""
    return isinstance(node, exp.Placeholder) or (isinstance(node, exp.Literal) and not node.args.get("is_string"))


def _part_of(node: exp.Bracket) -> exp.Expr | None:
    """Return the call whose element a subscript takes, or None for other subscripts."""
    call = node.this
    while isinstance(call, exp.Paren):
        call = call.this
    if len(node.expressions) != 1:
        return None
    within = isinstance(call, exp.WithinGroup) and isinstance(call.this.this, exp.Array)
    counts = isinstance(call, exp.Anonymous) and str(call.this).upper() == "HISTOGRAM"
    return call if listed(call) or within or counts or isinstance(call, exp.ApproxQuantiles) else None


def is_shifted(node: exp.Bracket) -> bool:
    """Return whether the parser decremented an index of the text to count from 0."""
    kind = node.this.type
    return kind is None or kind.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.ARRAY)


def count_from_1(node: exp.Bracket, words: Counter[str]) -> None:
    """Correct the word counts to the indices as written."""
    for place in node.expressions if is_shifted(node) else ():
        number = _whole(place)
        if number is not None:
            words[str(abs(number))] -= 1
            words[str(abs(number + 1))] += 1


def _whole(node: exp.Expr) -> int | None:
    """Return an integer constant of the text."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.args.get("is_string") or not str(inner.this).isdecimal():
        return None
    return -int(str(inner.this)) if inner is not node else int(str(inner.this))


# Rewrites.


def ordered_list(_statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite PERCENTILE_CONT(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY x), from the top with DESC."""
    call, order = node.this, node.args.get("expression")
    if type(call) not in QUANTILES or not isinstance(call.this, exp.Array) or not isinstance(order, exp.Order):
        return None
    if len(order.expressions) != 1 or not all(map(_is_number, call.this.expressions)):
        return None
    (term,) = order.expressions
    quantiles = [each.copy() for each in call.this.expressions]
    if term.args.get("desc"):
        quantiles = [exp.Literal.number(str(1 - Decimal(str(each.this)))) for each in quantiles]
    made: exp.Expr = type(call)(this=term.this.copy(), **{QUANTILES[type(call)]: exp.Array(expressions=quantiles)})
    made.meta.update(call.meta)
    return made


def part(statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite one element of a list of quantiles or of HISTOGRAM's counts. Raises UnsupportedSQL."""
    assert isinstance(node, exp.Bracket)  # called for brackets only
    call = _part_of(node)
    if call is None:
        return None
    (place,) = node.expressions
    if isinstance(call, exp.Anonymous):
        if len(call.expressions) != 1 or not isinstance(place, exp.Literal):
            return None
        condition = exp.EQ(this=call.expressions[0].copy(), expression=place.copy())
        return _placed(exp.CountIf(this=condition), call)
    quantiles, several = _quantiles(call), listed(call)
    at = _place(place, shifted=is_shifted(node))
    if quantiles is None or at is None or not -len(quantiles) <= at < len(quantiles):
        from dpsql.sql.syntax.parse import span_of  # imported only when needed

        most = "" if quantiles is None else f" from 1 to {len(quantiles)}"
        raise UnsupportedSQL(
            f"the place in a list of quantiles is a whole number{most}, or OFFSET of one less.",
            span=span_of(statement.sql, node),
            hint="Write QUANTILE(x, 0.5).",
        )
    kind = exp.Quantile if several is None else type(call)
    return _placed(kind(this=call.this.copy(), **{QUANTILES[kind]: exp.Literal.number(quantiles[at])}), call)


def _placed(made: exp.Expr, call: exp.Expr) -> exp.Expr:
    made.meta.update(call.meta)
    return made


def _quantiles(call: exp.Expr) -> list[str] | None:
    """Return the quantiles of a call, as decimals."""
    several = listed(call)
    if several is not None:
        return [str(each.this) for each in several]
    pieces = call.args.get("expression")
    if (
        pieces is None
        or not _is_number(pieces)
        or not str(pieces.this).isdecimal()
        or not 1 <= int(pieces.this) <= _PARTS
    ):
        return None
    count = int(str(pieces.this))
    return [str(Decimal(round(Fraction(place * _PARTS, count))) / _PARTS) for place in range(count + 1)]


def _place(node: exp.Expr, *, shifted: bool) -> int | None:
    """Return an index in a list, from 0."""
    if isinstance(node, exp.Anonymous):
        return named_place(node)
    if not _is_number(node) or not str(node.this).isdecimal():
        return None
    return _from_0(int(str(node.this)) - (0 if shifted else 1))


def named_place(node: exp.Expr) -> int | None:
    """Return OFFSET(i) and ORDINAL(i) as an index from 0."""
    first = _PLACES.get(str(node.this).upper()) if isinstance(node, exp.Anonymous) else None
    inside = node.expressions[0] if first is not None and len(node.expressions) == 1 else None
    if inside is None or first is None or not _is_number(inside) or not str(inside.this).isdecimal():
        return None
    return _from_0(int(str(inside.this)) - first)


def _from_0(place: int) -> int | None:
    return place if place >= 0 else None
