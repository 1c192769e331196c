"""The error for a query that costs more than is left: its cost, what is left, and what would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.conversion import rho_for
from dpsql.core.cost import Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.filters import Watch
from dpsql.core.loss import root_below, show
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.errors import BudgetExceeded
from dpsql.schema.frozen import dataclass

_STEPS = 40
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class RequestedTerms:
    """The form of a cost request: by rho, or otherwise by epsilon; `also`: arguments to repeat in a cheaper
    query, such as the chosen mechanism; `within`: by an error, which determines the epsilon."""

    by_rho: bool = False
    also: str = ""
    within: bool = False


ASKED = RequestedTerms()


@dataclass(frozen=True, slots=True)
class _RefusedCost:
    """A cost that some of the filters refuse, for the units of some parts."""

    cost: Cost
    watches: Sequence[Watch]
    parts: Sequence[Part]
    asked: RequestedTerms

    def fits(self, cost: Cost) -> bool:
        return all(each.admits(cost, self.parts) for each in self.watches)

    def tight(self, cost: Cost) -> Watch | None:
        """Return the first filter that refuses this cost."""
        return next((each for each in self.watches if not each.admits(cost, self.parts)), None)

    @property
    def word(self) -> str:
        return "rho" if self.asked.by_rho else "epsilon"

    @property
    def price(self) -> Fraction:
        return self.cost.rho if self.cost.epsilon is None or self.asked.by_rho else self.cost.epsilon

    def cost_at(self, price: Fraction) -> Cost:
        """Return what the query would cost without its deltas, at another epsilon or rho."""
        if self.asked.by_rho:
            scale = root_below(price / self.cost.rho) * (1 + Fraction(1, 10**9))
            return Cost(None if self.cost.epsilon is None else self.cost.epsilon * scale, rho=price)
        gaussian = self.cost.delta - self.cost.hidden
        if not gaussian or self.cost.epsilon is None:
            return Cost.of(price)
        by_tails = self.cost.rho > rho_for(self.cost.epsilon, gaussian)  # by the tails of rounded noise
        return Cost(price, rho=(gaussian_rho if by_tails else rho_for)(price, gaussian))


def exceeded(cost: Cost, watches: Sequence[Watch], parts: Sequence[Part], asked: RequestedTerms) -> BudgetExceeded:
    """Return the error for a cost that some of the filters refuse."""
    refused = _RefusedCost(cost, watches, parts, asked)
    of_delta = refused.tight(Cost(_ZERO, cost.delta, _ZERO, cost.hidden))
    of_coin = refused.tight(replace(cost, delta=_ZERO, hidden=_ZERO))
    if of_delta is None or of_coin is not None:
        return _of_the_coin(refused, of_coin or watches[0], of_delta)
    left = of_delta.remaining(parts=parts).delta
    price = cost.hidden if of_delta.filter.accountant == "zcdp" else cost.delta
    after, kept = "", of_delta.filter.conversion
    if kept:
        after = (
            f"\nOf the budget's delta {show(kept)} is kept to convert rho to epsilon (accountant "
            f"{of_delta.filter.accountant!r});\nthe owner can set it, Budget(..., conversion_delta=...), or open with "
            "accountant='basic'."
        )
    spent = of_delta.spent(parts)
    advice = _Advice("delta", left, asked, after=after)
    return _refusal("delta", (price, left), (spent.delta, of_delta.filter.budget.delta), of_delta, advice)


def _of_the_coin(refused: _RefusedCost, tight: Watch, of_delta: Watch | None) -> BudgetExceeded:
    """Return the error for too much epsilon, or rho if the query is paid by rho."""
    left = _left(refused)
    if refused.cost.epsilon is None and not left:
        return _no_more_rho(refused, tight)
    rest = None if of_delta is None else show(of_delta.remaining(parts=refused.parts).delta)
    before = "" if rest is None else f"Its delta is too much as well: {rest} is left. "
    spent, whole = tight.spent(refused.parts), tight.filter
    numbers = (spent.rho, whole.rho) if refused.word == "rho" else (spent.epsilon, whole.budget.epsilon)
    advice = _Advice(refused.word, left, refused.asked, before)
    return _refusal(refused.word, (refused.price, left), numbers, tight, advice)


def _no_more_rho(refused: _RefusedCost, tight: Watch) -> BudgetExceeded:
    if not tight.filter.conversion:
        why = f"rhos are not added up here{tight.whose}"
        hint = "Ask with epsilon (and delta). rho needs accountant 'zcdp' or 'auto', and a budget with delta > 0."
    else:
        before, most = show(tight.spent(refused.parts).rho, up=True), show(tight.filter.rho)
        why = f"the answers so far come to rho {before} of the {most} up to which rhos are converted{tight.whose}"
        hint = "Ask with epsilon (and delta), reuse an earlier answer, or ask the data owner."
    return BudgetExceeded(
        f"this query costs rho {show(refused.cost.rho)}, and {why}. Nothing was run, nothing was charged.", hint=hint
    )


def _refusal(
    word: str, numbers: tuple[Fraction, Fraction], whole: tuple[Fraction, Fraction], tight: Watch, advice: _Advice
) -> BudgetExceeded:
    price, rest = _apart(*numbers)
    spent, limit = (show(each) for each in whole)
    asked = f"{tight.queries} {'query' if tight.queries == 1 else 'queries'}"
    return BudgetExceeded(
        f"this query costs {word} {price} but {rest} is left{tight.whose} (spent {spent} of {limit} in {asked}). "
        "Nothing was run, nothing was charged.",
        hint=advice.said(advice.asked.also),
        about=advice.about,
    )


@dataclass(frozen=True, slots=True)
class _Advice:
    """Advice for a query for which too little of `word` is `left`."""

    word: str
    left: Fraction
    asked: RequestedTerms
    before: str = ""
    after: str = ""

    def said(self, also: str) -> str:
        """Return the advice as text; `also`: arguments to repeat, which only Python can express."""
        return self._less(also) + self._instead

    @property
    def about(self) -> dict[str, str]:
        """The hint for readers outside Python and, if a smaller epsilon would do, that epsilon with the text before and
        after it, so that a caller can extend it."""
        about = {"hint elsewhere": self.said("")}
        if self.left and self.word == "epsilon" and not self.asked.within:
            before = {"before left": self._less(self.asked.also), "before left elsewhere": self._less("")}
            about |= {"left": show(self.left), "after left": self._instead, **before}
        return about

    def _less(self, also: str) -> str:
        if not self.left:
            return self.before
        within = self.asked.within and self.word == "epsilon"
        less = "Ask for a larger error" if within else f"Run it with {self.word}={show(self.left)}{also}"
        return f"{self.before}{less}"

    @property
    def _instead(self) -> str:
        return f"{', reuse' if self.left else 'Reuse'} an earlier answer, or ask the data owner.{self.after}"


def _left(refused: _RefusedCost) -> Fraction:
    """Return the largest cost below the query's, of six digits, that all filters admit; 0 if there is none."""

    def fits(price: Fraction) -> bool:
        return price > 0 and refused.fits(refused.cost_at(price))

    rests = [each.remaining(parts=refused.parts) for each in refused.watches]
    left = min((each.rho or _ZERO) if refused.asked.by_rho else each.epsilon for each in rests)
    if 0 < left < refused.price and fits(left):  # the exact remainder, to the last digit
        return left
    low, high = _ZERO, refused.price
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    shown = Fraction(show(low)) if low else _ZERO
    return shown if fits(shown) else _ZERO


def _apart(price: Fraction, rest: Fraction) -> tuple[str, str]:
    """Return both numbers with enough digits to differ as text."""
    digits = 6
    while digits < 15 and show(price, digits, up=True) == show(rest, digits):
        digits += 3
    return show(price, digits, up=True), show(rest, digits)
