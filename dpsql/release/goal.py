"""The least epsilon for a requested accuracy of answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from dpsql.core.goal import Goal
from dpsql.core.loss import LARGEST_EPSILON, SMALLEST_EPSILON, show
from dpsql.errors import DPSQLError, InvalidArgument, InvalidPrivacyParameter, QueryRefused, UnsupportedSQL
from dpsql.plan.expressions import Call, Expr, Report, Slot, walk
from dpsql.plan.query import Query
from dpsql.release.intervals.intervals import constant_half_width
from dpsql.release.release import Release

LAWS = ("laplace", "gaussian")
_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
"""The number of digits of a derived epsilon, the last one rounded up."""
_STEPS = 40
_CLOSE = 1 + 1e-5
_PRODUCTS = ("multiply", "divide", "int_divide", "modulo")
_LEAST, _MOST = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)


def reached(query: Query, make: Callable[[Fraction, str], Release], goal: Goal, laws: Sequence[str]) -> Release:
    """Return the release with the least epsilon for which every output's noise is within the goal, with the
    distribution that needs less epsilon. If all distributions are refused, raises the error of the first."""
    _check_own(query)

    def made_with(law: str) -> Callable[[Fraction], Release]:
        return lambda epsilon: make(epsilon, law)

    releases: list[Release] = []
    refused: list[DPSQLError] = []
    for law in laws:
        try:
            releases.append(_reached(made_with(law), goal))
        except (QueryRefused, InvalidArgument, InvalidPrivacyParameter) as error:
            refused.append(error)
    if not releases:
        raise refused[0]
    return min(releases, key=lambda release: release.allowed.pure)


def _reached(make: Callable[[Fraction], Release], goal: Goal) -> Release:
    """Return the release with the least epsilon, to four digits, for which every output's noise is within the goal.

    The half-width of noise falls as epsilon grows, and depends only on public facts; otherwise the query is refused.
    Raises UnsupportedSQL, InvalidPrivacyParameter."""
    first = make(Fraction(1))
    outputs = _noisy(first)
    _check(first, outputs)
    level = float(goal.sure)

    def wide(epsilon: float) -> bool:
        try:
            release = make(Fraction(Decimal(repr(epsilon))))
        except InvalidPrivacyParameter:  # noise beyond the samplers
            return True
        widths = (constant_half_width(release, expr, level) for _, expr in outputs)
        return not all(width is not None and width <= goal.error for width in widths)

    low = high = 1.0
    while wide(high):
        if high >= _MOST:
            raise InvalidPrivacyParameter(f"no epsilon up to {show(LARGEST_EPSILON)} brings these answers {goal}.")
        low, high = high, min(4 * high, _MOST)
    while low == high or not wide(low):
        if low <= _LEAST:
            return make(SMALLEST_EPSILON)
        low, high = max(low / 4, _LEAST), low
    for _ in range(_STEPS):
        if high <= low * _CLOSE:
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wide(middle) else (low, middle)
    return make(Fraction(_DIGITS.create_decimal(Decimal(repr(high)))))


def _check_own(query: Query) -> None:
    """Refuse aggregates with a separate epsilon, and SELECTs over noisy answers. Raises InvalidPrivacyParameter,
    UnsupportedSQL."""
    if query.stages:
        raise UnsupportedSQL(
            "WITHIN is of the answers to one SELECT, and here another one reads these.",
            span=next((each.span for each in query.plan.aggregations), None),
            hint="Ask for the inner answers within an error, or give an epsilon.",
        )
    own = [each for each in query.plan.aggregations if each.epsilon is not None]
    if own:
        raise InvalidPrivacyParameter(
            f"WITHIN finds the epsilon of all aggregates, and {own[0].word} has its own.", span=own[0].span
        )


def _noisy(release: Release) -> list[tuple[str, Expr]]:
    """Return the outputs that depend on aggregates, with their names."""
    first = len(release.query.plan.keys)
    outputs: list[tuple[str, Expr]] = []
    for output in release.query.finish.outputs:
        expr = output.expr.expr if isinstance(output.expr, Report) else output.expr
        if any(isinstance(part, Slot) and part.index >= first for part in walk(expr)):
            outputs.append((output.name, expr))
    return outputs


def _check(release: Release, outputs: list[tuple[str, Expr]]) -> None:
    """Refuse outputs other than COUNT, SUM, and their sums and differences: only these have noise of a public size."""
    if release.selection.conditions:
        raise UnsupportedSQL(
            "WITHIN cannot promise the error of groups that are shown for their own noisy counts: small ones that are "
            "shown have large noise.",
            hint='List the groups: keys={"name": [...]}, or write\n'
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) ...",
        )
    if release.provisional:
        raise UnsupportedSQL(
            "WITHIN needs bounds that are declared: those that are chosen decide how large the noise is.",
            hint="Declare bounds for the columns, or give an epsilon.",
        )
    for name, expr in outputs:
        if constant_half_width(release, expr, 0.5) is None:
            raise _refusal(release, name, expr)
    if not outputs:
        raise UnsupportedSQL("WITHIN is about noisy answers, and there is none.", hint="Leave it out.")


def _refusal(release: Release, name: str, expr: Expr) -> UnsupportedSQL:
    """Return the refusal that explains why the error of an output cannot be promised, and what can."""
    keys = len(release.query.plan.keys)
    slots = [part.index - keys for part in walk(expr) if isinstance(part, Slot) and part.index >= keys]
    kinds = {slot: release.estimates[slot].kind for slot in slots}
    blamed = next((slot for slot in slots if not kinds[slot].linear), slots[0])
    why, hint = (
        "it depends on private counts",
        "Ask for COUNT and SUM within an error and divide them, or give an epsilon.",
    )
    if any(release.estimates[slot].chosen is not None for slot in slots):
        why, hint = "how far off a value is that is chosen depends on the rows", "Give an epsilon."
    elif not all(kind.linear or kind.averages for kind in kinds.values()):
        hint = "Give an epsilon."
    elif kinds[blamed].linear and not any(_of_private_size(part, keys) for part in walk(expr)):
        why = "only sums and differences of COUNT and SUM have noise of a public size"
        hint = "Ask for these within an error and compute the rest from the answers, or give an epsilon."
    return UnsupportedSQL(
        f"WITHIN cannot promise the error of {name}: {why}.",
        span=release.query.plan.aggregations[blamed].span,
        hint=hint,
    )


def _of_private_size(expr: Expr, keys: int) -> bool:
    """Return whether an expression is a product of two noisy values, or a quotient by one."""
    if not isinstance(expr, Call) or expr.function.name not in _PRODUCTS:
        return False
    noisy = [any(isinstance(part, Slot) and part.index >= keys for part in walk(arg)) for arg in expr.args]
    return noisy[1] and (noisy[0] or expr.function.name != "multiply")
