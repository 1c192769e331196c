"""The refusal of a query that costs more than is left."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.errors import BudgetExceeded
from dpsql.privacy.account import Account, Part
from dpsql.privacy.cost import Cost
from dpsql.privacy.filters import Filter
from dpsql.privacy.loss import show


def exceeded(
    cost: Cost, held: Filter, account: Account, parts: Sequence[Part], *, queries: int, whose: str
) -> BudgetExceeded:
    """Says what it costs, what is left, and what still fits. `whose`: a phrase for the share of one analyst."""
    before = account.total(parts=parts)
    left, spent = held.remaining(before), held.spent(before)
    whole = held.budget
    if cost.epsilon is None and left.rho is None:
        return BudgetExceeded(
            f"this query costs rho {show(cost.rho)}, and rhos are not added up any more here{whose}. Nothing was run, "
            "nothing was charged.",
            hint="Ask with epsilon (and delta). rho needs accountant 'zcdp' or 'auto', and a budget with delta > 0.",
        )
    own = cost.hidden if held.accountant == "zcdp" else cost.delta
    if own > left.delta:
        word, price, rest, used, limit = "delta", own, left.delta, spent.delta, whole.delta
    elif cost.epsilon is None:
        word, price, rest, used, limit = "rho", cost.rho, left.rho or Fraction(0), spent.rho, held.rho
    else:
        word, price, rest, used, limit = "epsilon", cost.epsilon, left.epsilon, spent.epsilon, whole.epsilon
    price_text, rest_text = _apart(price, rest)
    asked = f"{queries} {'query' if queries == 1 else 'queries'}"
    if rest:
        hint = f"Run it with {word}={rest_text}, reuse an earlier answer, or ask the data owner."
    else:
        hint = "Reuse an earlier answer, or ask the data owner."
    if word == "delta" and held.conversion:
        hint += (
            f"\nOf the budget's delta {show(held.conversion)} is kept to convert rho to epsilon (accountant "
            f"{held.accountant!r});\nthe owner can set it, Budget(..., conversion_delta=...), or open with "
            "accountant='basic'."
        )
    return BudgetExceeded(
        f"this query costs {word} {price_text} but {rest_text} is left{whose} (spent {show(used)} of {show(limit)} "
        f"in {asked}). Nothing was run, nothing was charged.",
        hint=hint,
    )


def _apart(price: Fraction, rest: Fraction) -> tuple[str, str]:
    """Both numbers with so many digits that they read differently."""
    digits = 6
    while digits < 15 and show(price, digits, up=True) == show(rest, digits):
        digits += 3
    return show(price, digits, up=True), show(rest, digits)
