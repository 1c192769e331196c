"""What a filter says about the rows it lets through: narrower ranges, fewer NULLs.

Proof of every rule: a row passes only if the predicate is TRUE (not NULL) for it, so whatever TRUE implies of an
expression holds for all rows above the filter. Facts are kept by expression, so `WHERE a * b < 9` bounds `SUM(a * b)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpsql.intervals import INFINITY, Interval, Number, hull
from dpsql.schema import Type
from dpsql.sql.expressions import Call, Expr, Fact, Literal, fact
from dpsql.sql.plan import Source, filters_of

Known = Mapping[Expr, Fact]

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def known_of(source: Source) -> Known:
    """All that the filters of a source imply for the rows above them."""
    known: Known = {}
    for predicate in filters_of(source):
        known = narrow(predicate, known)
    return known


def narrow(predicate: Expr, known: Known) -> Known:
    """`known` and what follows from `predicate` being TRUE. A predicate that no rule knows adds nothing."""
    if not isinstance(predicate, Call):
        return known
    name, args = predicate.function.name, predicate.args
    if name == "and":
        return narrow(args[1], narrow(args[0], known))
    if name == "or":
        return _either(narrow(args[0], known), narrow(args[1], known))
    if name == "not":
        return _narrow_not(args[0], known)
    if name == "is_true":
        return narrow(args[0], known)
    if name == "in":
        return _narrow_in(args[0], args[1:], known)
    if name in _OPPOSITE:
        return _narrow_comparison(name, args[0], args[1], known)
    return known


def _either(left: Known, right: Known) -> Known:
    """One of two holds: what both say, at its widest."""
    both = [expr for expr in left if expr in right]
    return {
        expr: Fact(hull([left[expr].range, right[expr].range]), left[expr].nullable or right[expr].nullable)
        for expr in both
    }


def _narrow_not(inner: Expr, known: Known) -> Known:
    """NOT p is TRUE where p is FALSE."""
    if not isinstance(inner, Call):
        return known
    name, args = inner.function.name, inner.args
    if name == "not":
        return narrow(args[0], known)
    if name == "is_null":
        return _learn(known, args[0], None)
    if name == "or":  # NOT (p OR q) = NOT p AND NOT q
        return _narrow_not(args[1], _narrow_not(args[0], known))
    if name == "and":
        return _either(_narrow_not(args[0], known), _narrow_not(args[1], known))
    if name == "in":  # x NOT IN (...) is TRUE only for an x that is not NULL
        return _learn(known, args[0], None)
    if name in _OPPOSITE:
        return _narrow_comparison(_OPPOSITE[name], args[0], args[1], known)
    return known


def _narrow_in(value: Expr, listed: tuple[Expr, ...], known: Known) -> Known:
    """x IN (list) is TRUE only for an x that equals one of the list's values."""
    numbers = [each.value for each in listed if isinstance(each, Literal) and each.value is not None]
    if value.type.numeric and numbers and len(numbers) == sum(not _is_null(each) for each in listed):
        ends = [each for each in numbers if isinstance(each, int | float)]
        return _learn(known, value, Interval(min(ends), max(ends)))
    return _learn(known, value, None)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _narrow_comparison(name: str, left: Expr, right: Expr, known: Known) -> Known:
    """A comparison is TRUE only where neither side is NULL and each lies on its side of the other's range."""
    if name == "ne" or not (left.type.numeric and right.type.numeric):
        return _learn(_learn(known, left, None), right, None)
    left_range, right_range = fact(left, known).range, fact(right, known).range
    known = _learn(known, left, _limit(name, left.type, right_range, right.type))
    return _learn(known, right, _limit(_MIRRORED[name], right.type, left_range, left.type))


def _limit(name: str, kind: Type, other: Interval, other_kind: Type) -> Interval:
    """Where a value lies that compares so with some value of `other`."""
    whole = kind is Type.INTEGER
    step = 1 if whole and other_kind is Type.INTEGER else 0  # x < 5 is x <= 4 between integers
    upper: Number = INFINITY
    lower: Number = -INFINITY
    if name in ("lt", "le", "eq"):
        upper = other.upper - (step if name == "lt" else 0)
    if name in ("gt", "ge", "eq"):
        lower = other.lower + (step if name == "gt" else 0)
    if whole:
        lower = math.ceil(lower) if math.isfinite(lower) else lower
        upper = math.floor(upper) if math.isfinite(upper) else upper
    elif kind is Type.REAL:
        lower, upper = _float_below(lower), _float_above(upper)
    return Interval(lower, upper) if lower <= upper else Interval(-INFINITY, INFINITY)


def _float_below(value: Number) -> float:
    """The value as a float, or the float just below it."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -INFINITY)


def _float_above(value: Number) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, INFINITY)


def _learn(known: Known, expr: Expr, limit: Interval | None) -> Known:
    """The expression is not NULL and, unless None, lies in `limit`. Literals have nothing to be learned of."""
    if isinstance(expr, Literal):
        return known
    before = known.get(expr, Fact())
    held = before.range if limit is None else before.range.intersect(limit) or before.range
    return {**known, expr: Fact(held, nullable=False)}
