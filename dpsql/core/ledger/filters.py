"""Privacy filters: which next step a budget still admits, however it was chosen.

Sound for steps chosen after seeing all earlier answers. The proof is written out in docs/accounting.md; in short, in
the words of `Cost`: along any path of answers the parts A of all steps multiply to a measure A* with mass(P - A*) <=
the sum of deltas.
  - basic: A* <= e^(sum of epsilons) Q.
  - zcdp: A* has Renyi moments of the sum of rhos, so the mass of A* above e^epsilon Q is at most the delta to which
    that rho converts (Canonne, Kamath, Steinke 2020, proposition 12, which holds for parts as well); with sums that
    depend on the path it is a supermartingale for each order (Feldman, Zrnic 2021, theorem 3.1; Whitehouse et al.
    2023).
  - auto: a step is admitted if either filter would admit the whole path with it. Sums only grow, so a path ends within
    one of the two. Where it ends within basic, no mass of A* is above e^epsilon Q. All mass above is on paths that end
    within zcdp, and the process that stops where zcdp would be left has the same mass on them: at most its delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property

from dpsql.core.conversion import epsilon_of, rho_for
from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Account, Part
from dpsql.core.loss import PrivacyLoss, root_below, show
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, as_written
from dpsql.schema.frozen import dataclass

ACCOUNTANTS = ("auto", "basic", "zcdp")


@dataclass(frozen=True, slots=True, repr=False)
class SpentBudget:
    """What has been spent, by the filter that gives the smaller epsilon of those that still hold; and the sum of
    rhos. Exact fractions, which print as short decimals, never as less than they are."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __str__(self) -> str:
        delta = f", delta {show(self.delta, up=True)}" if self.delta else ""
        return f"epsilon {show(self.epsilon, up=True)}{delta}"

    def __repr__(self) -> str:
        epsilon, delta, rho = (show(each, up=True) for each in (self.epsilon, self.delta, self.rho))
        return f"Spent(epsilon={epsilon}, delta={delta}, rho={rho})"


@dataclass(frozen=True, slots=True, repr=False)
class RemainingBudget:
    """What the next query may have: the largest pure epsilon, the delta of steps, and the largest rho (None where rhos
    are not added up). Exact fractions, which print as short decimals, never as more than they are."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def least(self, other: RemainingBudget) -> RemainingBudget:
        """What both leave."""
        rho = None if self.rho is None or other.rho is None else min(self.rho, other.rho)
        return RemainingBudget(min(self.epsilon, other.epsilon), min(self.delta, other.delta), rho)

    def __str__(self) -> str:
        return str(PrivacyLoss(self.epsilon, self.delta))

    def __repr__(self) -> str:
        rho = None if self.rho is None else show(self.rho)
        return f"Remaining(epsilon={show(self.epsilon)}, delta={show(self.delta)}, rho={rho})"


NOTHING = RemainingBudget(Fraction(0))


@dataclass(frozen=True)
class Filter:
    """A budget and the way to add up costs: "basic", "zcdp", or "auto", either of the two.

    conversion: the part of the budget's delta at which rhos are converted; steps have the rest. None: a half of it, or
    none of it for "basic". Raises InvalidPrivacyParameter, InvalidArgument.
    """

    budget: PrivacyLoss
    accountant: str = "auto"
    conversion: Fraction | None = None

    def __post_init__(self) -> None:
        if self.accountant not in ACCOUNTANTS:
            raise InvalidArgument(f"accountant must be 'auto', 'basic' or 'zcdp', got {as_written(self.accountant)}.")
        if self.accountant == "zcdp" and not self.budget.delta:
            raise InvalidPrivacyParameter(
                "accountant 'zcdp' needs a budget with delta > 0: rho is converted to epsilon at a delta.",
                hint="Write Budget(epsilon=3, delta=1e-6), or accountant='auto'.",
            )
        if self.conversion is None:
            half = Fraction(0) if self.accountant == "basic" else self.budget.delta / 2
            object.__setattr__(self, "conversion", half)
        elif self.accountant == "basic":
            if self.conversion:
                raise InvalidPrivacyParameter("conversion_delta is for accountants 'auto' and 'zcdp'.")
        elif not 0 < self.conversion <= self.budget.delta:
            raise InvalidPrivacyParameter(
                f"conversion_delta must be above 0 and at most the budget's delta {show(self.budget.delta)}."
            )

    @cached_property
    def rho(self) -> Fraction:
        """The largest sum of rhos, rounded down; 0 where rhos are not added up."""
        at = self.conversion
        return rho_for(self.budget.epsilon, at) if at else Fraction(0)

    @cached_property
    def steps_delta(self) -> Fraction:
        """What the deltas of steps may come to."""
        return self.budget.delta - (self.conversion or 0)

    def admits(self, total: Cost) -> bool:
        """Whether the sum of all costs, the next one's included, is within the budget."""
        return self._basic(total) or self._concentrated(total)

    def _basic(self, total: Cost) -> bool:
        if self.accountant == "zcdp" or total.epsilon is None:
            return False
        return total.epsilon <= self.budget.epsilon and total.delta <= self.steps_delta

    def _concentrated(self, total: Cost) -> bool:
        if not self.conversion:
            return False
        return total.rho <= self.rho and self._own_delta(total) <= self.steps_delta

    def _own_delta(self, total: Cost) -> Fraction:
        """Under zCDP alone Gaussian noise has no delta; beside basic both filters have to lose the same mass."""
        return total.hidden if self.accountant == "zcdp" else total.delta

    def spent(self, total: Cost) -> SpentBudget:
        """The total as an (epsilon, delta) pair; the whole budget where it is not admitted, since sessions of a larger
        one may spend meanwhile."""
        pairs = [] if self.admits(total) else [(self.budget.epsilon, self.budget.delta)]
        if self._basic(total) and total.epsilon is not None:
            pairs.append((total.epsilon, total.delta))
        if self._concentrated(total) and self.conversion:
            epsilon = min(epsilon_of(total.rho, self.conversion), self.budget.epsilon)  # which rounds up
            pairs.append((epsilon, self._own_delta(total) + (self.conversion if total.rho else 0)))
        return SpentBudget(*min(pairs), total.rho)

    def remaining(self, total: Cost) -> RemainingBudget:
        """What the next query may have after a total that is admitted."""
        pure = delta = Fraction(0)
        if self._basic(total) and total.epsilon is not None:
            pure, delta = self.budget.epsilon - total.epsilon, self.steps_delta - total.delta
        if not self._concentrated(total):
            return RemainingBudget(pure, delta)
        left = self.rho - total.rho
        return RemainingBudget(max(pure, root_below(2 * left)), self.steps_delta - self._own_delta(total), left)

    def most(self, total: Cost, cost: Cost) -> int | None:
        """How many steps of this cost are admitted after `total`; None for any number."""
        counts: list[int | None] = []
        if self._basic(total) and total.epsilon is not None and cost.epsilon is not None:
            left = (self.budget.epsilon - total.epsilon, self.steps_delta - total.delta)
            counts.append(_times(left, (cost.epsilon, cost.delta)))
        if self._concentrated(total):
            left = (self.rho - total.rho, self.steps_delta - self._own_delta(total))
            counts.append(_times(left, (cost.rho, self._own_delta(cost))))
        if None in counts:
            return None
        return max((count for count in counts if count is not None), default=0)


def _times(left: tuple[Fraction, ...], price: tuple[Fraction, ...]) -> int | None:
    """How often all prices can be paid; None where nothing has a price."""
    return min((rest // one for rest, one in zip(left, price, strict=True) if one), default=None)


# A filter over the running sums of a ledger: the whole's, or that of one analyst's share.


class Watch:
    """Admits a step if its filter does so for every unit. `whose`: a phrase for a share, in messages; `analyst`: whose
    steps count (None: all)."""

    def __init__(self, held: Filter, *, moves: bool, whose: str = "", analyst: str | None = None) -> None:
        self.filter = held
        self.whose = whose
        self.analyst = analyst
        self.queries = 0
        self._account = Account(moves=moves)

    def add(self, cost: Cost, parts: Sequence[Part]) -> None:
        """Enter a step that was admitted."""
        self.add_all([(cost, parts)])

    def add_all(self, steps: Sequence[tuple[Cost, Sequence[Part]]]) -> None:
        """Enter steps that were admitted: costs, and the parts that each reads."""
        self._account.add_all(steps)
        self.queries += len(steps)

    def admits(self, cost: Cost, parts: Sequence[Part] = ()) -> bool:
        """Whether one more step is admitted.

        A filter is about a pair of neighbours, so each unit may be within it in a way of its own; one cost that is at
        least all of theirs is tried first, since they can be many. Where units are not told apart one by one (several
        partitions, or moves between parts), one cost for all units has to be admitted, so that there is always one.
        """
        concerned = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return self.filter.admits(concerned.join(self._account.at_most()))
        if self.filter.admits(concerned):
            return True
        return all(self.filter.admits(total) for total in self._account.concerned(cost, parts))

    @property
    def plain(self) -> bool:
        """Whether every step so far has read everything."""
        return self._account.plain

    @property
    def total(self) -> Cost:
        """One cost that is at least the sum for every unit."""
        return self._account.at_most()

    def fits(self, other: Filter) -> bool:
        """Whether what was entered would be admitted by another filter too."""
        under = copy(self)
        under.filter = other
        return under.admits(FREE)

    def spent(self, parts: Sequence[Part] = ()) -> SpentBudget:
        """What the units of these parts have spent, or all units: those that have spent most."""
        return max(map(self.filter.spent, self._totals(FREE, parts)), key=lambda spent: (spent.epsilon, spent.delta))

    def remaining(self, cost: Cost = FREE, parts: Sequence[Part] = ()) -> RemainingBudget:
        """What the next query about these parts may have, after a step that is admitted."""
        first, *others = map(self.filter.remaining, self._totals(cost, parts))
        for each in others:
            first = first.least(each)
        return first

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """How many steps of this cost are admitted; None for any number."""
        if cost == FREE:
            return None
        at_most = self._account.at_most(parts=parts)
        if not parts and self._account.plain:
            return self.filter.most(at_most, cost)
        low, high = 0, 1
        while self.admits(cost.times(high), parts):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.admits(cost.times(middle), parts) else (low, middle)
        return low

    def _totals(self, cost: Cost, parts: Sequence[Part]) -> list[Cost]:
        """Sums that are admitted, of which the largest tells: as `admits` looks at them."""
        at_most = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return [at_most.join(self._account.at_most())]
        return [at_most] if self.filter.admits(at_most) else list(self._account.concerned(cost, parts))
