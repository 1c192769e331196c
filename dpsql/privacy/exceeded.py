"""The refusal of a query that costs more than is left: what it costs, what is left, and what would fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.errors import BudgetExceeded
from dpsql.privacy.conversion import rho_for
from dpsql.privacy.cost import Cost
from dpsql.privacy.filters import Filter
from dpsql.privacy.loss import show

_STEPS = 40
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Refusing:
    """A filter with what it has seen of the units concerned. `whose`: a phrase for the share of one analyst."""

    filter: Filter
    before: Cost
    queries: int
    whose: str = ""

    def admits(self, cost: Cost) -> bool:
        return self.filter.admits(self.before + cost)

    def admits_delta(self, cost: Cost) -> bool:
        """Whether its deltas alone would fit."""
        return self.admits(Cost(_ZERO, cost.delta, _ZERO, cost.hidden))


def exceeded(cost: Cost, watches: Sequence[Refusing]) -> BudgetExceeded:
    """The error for a cost that some of the filters refuse."""
    bare = replace(cost, delta=_ZERO, hidden=_ZERO)
    tight = next((each for each in watches if not each.admits_delta(cost)), None)
    if tight is None or not all(each.admits(bare) for each in watches):
        return _of_the_coin(cost, bare, watches, also_delta=tight)
    left, spent = _left_delta(tight, cost), tight.filter.spent(tight.before)
    price = cost.hidden if tight.filter.accountant == "zcdp" else cost.delta
    hint = _hint("delta", left)
    kept = tight.filter.conversion
    if kept:
        hint += (
            f"\nOf the budget's delta {show(kept)} is kept to convert rho to epsilon (accountant "
            f"{tight.filter.accountant!r});\nthe owner can set it, Budget(..., conversion_delta=...), or open with "
            "accountant='basic'."
        )
    return _refusal("delta", (price, left), (spent.delta, tight.filter.budget.delta), tight, hint)


def _of_the_coin(cost: Cost, bare: Cost, watches: Sequence[Refusing], *, also_delta: Refusing | None) -> BudgetExceeded:
    """Epsilon, or rho where the query has no epsilon, is too much."""
    tight = next((each for each in watches if not each.admits(bare)), watches[0])
    if cost.epsilon is None:
        left = _largest(cost.rho, lambda rho: Cost(None, rho=rho), watches)
        if not left:
            return _no_more_rho(cost, tight)
        numbers = (tight.before.rho, tight.filter.rho)
        return _refusal("rho", (cost.rho, left), numbers, tight, _hint("rho", left))
    gaussian = cost.delta - cost.hidden
    if gaussian and cost.rho:
        left = _largest(cost.epsilon, lambda epsilon: Cost(epsilon, rho=rho_for(epsilon, gaussian)), watches)
    else:
        left = _largest(cost.epsilon, Cost.of, watches)
    hint = _hint("epsilon", left)
    if also_delta is not None:
        rest = _left_delta(also_delta, cost)
        hint = f"Its delta is too much as well: {show(rest)} is left. " + hint
    numbers = (tight.filter.spent(tight.before).epsilon, tight.filter.budget.epsilon)
    return _refusal("epsilon", (cost.epsilon, left), numbers, tight, hint)


def _no_more_rho(cost: Cost, tight: Refusing) -> BudgetExceeded:
    if not tight.filter.conversion:
        why = "rhos are not added up here"
        hint = "Ask with epsilon (and delta). rho needs accountant 'zcdp' or 'auto', and a budget with delta > 0."
    else:
        before, most = show(tight.before.rho, up=True), show(tight.filter.rho)
        why = f"the answers so far come to rho {before} of the {most} up to which rhos are converted{tight.whose}"
        hint = "Ask with epsilon (and delta), reuse an earlier answer, or ask the data owner."
    return BudgetExceeded(
        f"this query costs rho {show(cost.rho)}, and {why}. Nothing was run, nothing was charged.", hint=hint
    )


def _refusal(
    word: str, numbers: tuple[Fraction, Fraction], whole: tuple[Fraction, Fraction], tight: Refusing, hint: str
) -> BudgetExceeded:
    price, rest = _apart(*numbers)
    spent, limit = (show(each) for each in whole)
    asked = f"{tight.queries} {'query' if tight.queries == 1 else 'queries'}"
    return BudgetExceeded(
        f"this query costs {word} {price} but {rest} is left{tight.whose} (spent {spent} of {limit} in {asked}). "
        "Nothing was run, nothing was charged.",
        hint=hint,
    )


def _hint(word: str, left: Fraction) -> str:
    if not left:
        return "Reuse an earlier answer, or ask the data owner."
    return f"Run it with {word}={show(left)}, reuse an earlier answer, or ask the data owner."


def _left_delta(tight: Refusing, cost: Cost) -> Fraction:
    """What the deltas of steps may still come to."""
    filter_ = tight.filter
    used = tight.before.hidden if filter_.accountant == "zcdp" else tight.before.delta
    return max(_ZERO, min(filter_.steps_delta - used, cost.delta))


def _largest(price: Fraction, cost_of: Callable[[Fraction], Cost], watches: Sequence[Refusing]) -> Fraction:
    """The largest number below the price, of six digits, whose cost all filters admit; 0 where there is none."""

    def fits(number: Fraction) -> bool:
        return number > 0 and all(each.admits(cost_of(number)) for each in watches)

    left = min((each.filter.remaining(each.before).epsilon for each in watches), default=_ZERO)
    if 0 < left < price and fits(left):  # the exact rest, for pure epsilons
        return left
    low, high = _ZERO, price
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    shown = Fraction(show(low)) if low else _ZERO
    return shown if fits(shown) else _ZERO


def _apart(price: Fraction, rest: Fraction) -> tuple[str, str]:
    """Both numbers with so many digits that they read differently."""
    digits = 6
    while digits < 15 and show(price, digits, up=True) == show(rest, digits):
        digits += 3
    return show(price, digits, up=True), show(rest, digits)
