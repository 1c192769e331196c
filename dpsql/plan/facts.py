"""Facts about expressions: their ranges, and what a filter implies for the rows that pass.

Proof of every narrowing rule: a row passes only if the predicate is TRUE (not NULL) for it, so everything that TRUE
implies for an expression holds for all rows above the filter. Facts are stored by expression, so `WHERE a * b < 9`
bounds `SUM(a * b)`. Inside CASE, an arm's value is used only if its condition is TRUE and no earlier one is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from dpsql.plan.digits import common_width, together
from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, between_integers, call, unfiltered
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Source, filters_of
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INFINITY, Interval, Number, as_floats, hull

Known = Mapping[Expr, Fact]


def known_of(source: Source) -> Known:
    """Return all facts that the filters of a source imply."""
    known: Known = {}
    for predicate in filters_of(source):
        known = narrow(predicate, known)
    return known


def fact(expr: Expr, known: Known | None = None) -> Fact:
    """Return range and nullability of an expression, from its parts and from the facts of filters in `known`."""
    known = known or {}
    if not isinstance(expr, Call):
        derived = unfiltered(expr)
    elif expr.function.name == "case":
        derived = _case_fact(expr.args, known)
    else:
        derived = expr.function.fact([fact(arg, known) for arg in expr.args])
    learned = known.get(expr) if known and not isinstance(expr, Literal) else None
    if learned is None and not isinstance(expr, Call):
        return derived
    return between_integers(derived if learned is None else _both(derived, learned), expr.type)


def _both(one: Fact, other: Fact) -> Fact:
    """Combine two facts of the same values. If they contradict each other, no row passes the filter: either fact then
    holds."""
    held = replace(one, range=one.range.intersect(other.range) or one.range, nullable=one.nullable and other.nullable)
    return held.meaning(one.said.intersect(other.said) or one.said)


def _case_fact(args: tuple[Expr, ...], known: Known) -> Fact:
    """Return the hull of a CASE's arms, each narrowed by its own condition and by earlier ones not being TRUE."""
    arms: list[Fact] = []
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        arms.append(fact(value, narrow(condition, known)))
        known = _not_true(condition, known)
    arms.append(fact(args[-1], known))
    values = [*args[1::2], args[-1]]
    real = [each for each, value in zip(arms, values, strict=True) if not _is_null(value)]
    nullable = any(each.nullable for each in arms)
    if not real:
        return Fact(Interval(0, 0), nullable)
    return Fact(as_floats(hull(each.range for each in real)), nullable, wide=common_width(real)).meaning(
        as_floats(hull(each.said for each in real))
    )


_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def _quick(expr: Expr, known: Known) -> Fact:
    """As `fact`, but a CASE has only its fact over all rows: otherwise, nested conditions would be evaluated again at
    every level."""
    if not isinstance(expr, Call) or not expr.branches:
        return fact(expr, known)
    said = known.get(expr)
    return expr.held if said is None else replace(_both(expr.held, said), nullable=said.nullable)


def narrow(predicate: Expr, known: Known) -> Known:
    """Return `known` with the facts implied by `predicate` being TRUE. A predicate without a rule adds nothing."""
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


def _not_true(condition: Expr, known: Known) -> Known:
    """Return `known` with the facts implied by a condition being FALSE or NULL, for values that are not NULL.

    Only used for comparisons with something that is never NULL: the condition is then NULL exactly where the other side
    is, which has no value to bound.
    """
    if isinstance(condition, Call) and condition.function.name in _OPPOSITE:
        left, right = condition.args
        opposite = _OPPOSITE[condition.function.name]
        for value, other, name in ((left, right, opposite), (right, left, _MIRRORED.get(opposite, "ne"))):
            beyond = _quick(other, known)
            if name != "ne" and value.type.ordered_number and other.type.ordered_number and not beyond.nullable:
                limit = _limit_of_fact(name, value.type, beyond, other.type)
                known = _learn(known, value, limit, nullable=_quick(value, known).nullable)
    return known


def _either(left: Known, right: Known) -> Known:
    """Return the widest facts that hold if either set of facts does."""
    both = [expr for expr in left if expr in right]
    return {expr: together([left[expr], right[expr]]) for expr in both}


def _narrow_not(inner: Expr, known: Known) -> Known:
    """Narrow by NOT p, which is TRUE where p is FALSE."""
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
    """Narrow by x IN (list), which is TRUE only for an x that equals a listed value."""
    numbers = [each.value for each in listed if isinstance(each, Literal) and each.value is not None]
    if value.type.ordered_number and numbers and len(numbers) == sum(not _is_null(each) for each in listed):
        ends = [each for each in numbers if isinstance(each, int | float)]
        return _learn(known, value, Fact(Interval(min(ends), max(ends))))
    return _narrow_digits(value, listed, _learn(known, value, None))


MOST_EXACT = 2**53
"""Every whole number of smaller magnitude is a double, and shares it with no other whole number."""


def double_of(expr: Expr) -> Call | None:
    """Return the double of a column that is read as digits of whole numbers; None for other expressions."""
    if not isinstance(expr, Column) or not expr.fact.wide:
        return None
    return call(FUNCTIONS["text_to_double"], expr)


def _narrow_digits(value: Expr, listed: tuple[Expr, ...], known: Known) -> Known:
    """Narrow the double of digits that equal one of these constants to the constants' range. Adds nothing for other
    expressions, or if another number has the same double as a constant."""
    double = double_of(value)
    if double is None:
        return known
    numbers = [_digits_value(each) for each in listed if not _is_null(each)]
    if not numbers or max(map(abs, numbers)) >= MOST_EXACT:
        return known
    return _learn(known, double, Fact(Interval(float(min(numbers)), float(max(numbers)))))


def _digits_value(expr: Expr) -> int:
    """Return the number of constant digits; for other expressions, one that is too large to be exact."""
    digits = expr.value if isinstance(expr, Literal) and isinstance(expr.value, str) else ""
    return int(digits) if digits.removeprefix("-").isdecimal() else MOST_EXACT


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _narrow_comparison(name: str, left: Expr, right: Expr, known: Known) -> Known:
    """Narrow by a comparison, TRUE only if neither side is NULL and each lies on its side of the other's range."""
    if name == "ne" or not (left.type.ordered_number and right.type.ordered_number):
        known = _learn(_learn(known, left, None), right, None)
        return known if name == "ne" else _narrow_digits(right, (left,), _narrow_digits(left, (right,), known))
    left_fact, right_fact = _quick(left, known), _quick(right, known)
    known = _learn(known, left, _limit_of_fact(name, left.type, right_fact, right.type))
    return _learn(known, right, _limit_of_fact(_MIRRORED[name], right.type, left_fact, left.type))


def _limit_of_fact(name: str, kind: Type, other: Fact, other_kind: Type) -> Fact:
    """Return the fact of a value that compares this way with some value of the fact `other`."""
    held = Fact(_limit(name, kind, other.range, other_kind))
    return held if other.meant is None else held.meaning(_limit(name, kind, other.meant, other_kind))


def _limit(name: str, kind: Type, other: Interval, other_kind: Type) -> Interval:
    """Return the range of a value that compares this way with some value of `other`."""
    whole = kind.discrete
    step = 1 if whole and other_kind.discrete else 0  # x < 5 is x <= 4 between integers
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
    """Return the value as a float, or the float just below it."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -INFINITY)


def _float_above(value: Number) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, INFINITY)


def _learn(known: Known, expr: Expr, limit: Fact | None, *, nullable: bool = False) -> Known:
    """Add that the expression is not NULL and, unless None, lies in `limit`. Literals have no facts to add."""
    if isinstance(expr, Literal):
        return known
    before = known.get(expr, Fact())
    held = before if limit is None else _both(before, limit)
    return {**known, expr: replace(held, nullable=nullable and before.nullable)}
