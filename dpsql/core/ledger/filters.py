"""Privacy filters: which next step a budget still admits, however it was chosen.

Sound for steps chosen after seeing all earlier answers. The proof is in docs/proofs/14-filters.md; in short, in the
notation of `Cost`: along any path of answers the parts A of all steps multiply to a measure A* with mass(P - A*) <=
the sum of deltas.
  - basic: A* <= e^(sum of epsilons) Q.
  - zcdp: A* has Renyi moments of the sum of rhos, so the mass of A* above e^epsilon Q is at most the delta to which
    that rho converts (Canonne, Kamath, Steinke 2020, proposition 12, which holds for parts as well); with sums that
    depend on the path it is a supermartingale for each order (Feldman, Zrnic 2021, theorem 3.1; Whitehouse et al.
    2023).
  - auto: a step is admitted if either filter would admit the whole path with it. Sums only grow, so a path ends within
    one of the two. If it ends within basic, no mass of A* is above e^epsilon Q. All mass above is on paths that end
    within zcdp. A process that stops before leaving zcdp has the same mass on them: at most its delta.
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
    """The spent budget, by the filter with the smaller epsilon of those that still admit it; and the sum of rhos. Exact
    fractions, which print as short decimals, rounded up."""

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
    """The most that the next query may cost: the largest pure epsilon, the delta of steps, and the largest rho (None if
    rhos are not added up). Exact fractions, which print as short decimals, rounded down."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def least(self, other: RemainingBudget) -> RemainingBudget:
        """Return what remains in both."""
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
    """A budget and the rule for adding up costs: "basic", "zcdp", or "auto", either of the two.

    conversion: the part of the budget's delta at which rhos are converted; steps have the rest. None: a half of it, or
    nothing for "basic". Raises InvalidPrivacyParameter, InvalidArgument.
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
        """The largest sum of rhos, rounded down; 0 if rhos are not added up."""
        at = self.conversion
        return rho_for(self.budget.epsilon, at) if at else Fraction(0)

    @cached_property
    def steps_delta(self) -> Fraction:
        """The largest sum of the steps' deltas."""
        return self.budget.delta - (self.conversion or 0)

    def admits(self, total: Cost) -> bool:
        """Return whether the sum of all costs, the next one's included, is within the budget."""
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
        """Return the delta of steps: under "zcdp" Gaussian noise has none; under "auto" both filters lose equal
        mass."""
        return total.hidden if self.accountant == "zcdp" else total.delta

    def spent(self, total: Cost) -> SpentBudget:
        """Return the total as an (epsilon, delta) pair; the whole budget if the total is not admitted, since sessions
        with a larger budget may spend meanwhile."""
        pairs = [] if self.admits(total) else [(self.budget.epsilon, self.budget.delta)]
        if self._basic(total) and total.epsilon is not None:
            pairs.append((total.epsilon, total.delta))
        if self._concentrated(total) and self.conversion:
            epsilon = min(epsilon_of(total.rho, self.conversion), self.budget.epsilon)  # epsilon_of rounds up
            pairs.append((epsilon, self._own_delta(total) + (self.conversion if total.rho else 0)))
        return SpentBudget(*min(pairs), total.rho)

    def remaining(self, total: Cost) -> RemainingBudget:
        """Return the most that the next query may cost after a total that is admitted."""
        pure = delta = Fraction(0)
        if self._basic(total) and total.epsilon is not None:
            pure, delta = self.budget.epsilon - total.epsilon, self.steps_delta - total.delta
        if not self._concentrated(total):
            return RemainingBudget(pure, delta)
        left = self.rho - total.rho
        return RemainingBudget(max(pure, root_below(2 * left)), self.steps_delta - self._own_delta(total), left)

    def most(self, total: Cost, cost: Cost) -> int | None:
        """Return how many steps of this cost are admitted after `total`; None if unlimited."""
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
    """Return how often all prices can be paid; None if all are 0."""
    return min((rest // one for rest, one in zip(left, price, strict=True) if one), default=None)


# A filter over the running sums of a ledger: for the whole, or for one analyst's share.


class Watch:
    """Admits a step if its filter does so for every unit. `whose`: a phrase for a share, in messages; `analyst`: the
    analyst whose steps count (None: all)."""

    def __init__(self, held: Filter, *, moves: bool, whose: str = "", analyst: str | None = None) -> None:
        self.filter = held
        self.whose = whose
        self.analyst = analyst
        self.queries = 0
        self._account = Account(moves=moves)

    def add(self, cost: Cost, parts: Sequence[Part]) -> None:
        """Add a step that was admitted."""
        self.add_all([(cost, parts)])

    def add_all(self, steps: Sequence[tuple[Cost, Sequence[Part]]]) -> None:
        """Add steps that were admitted: costs, and the parts that each reads."""
        self._account.add_all(steps)
        self.queries += len(steps)

    def admits(self, cost: Cost, parts: Sequence[Part] = ()) -> bool:
        """Return whether one more step is admitted.

        A filter holds for a pair of neighbours, so different units may be admitted by different rules. One cost that
        bounds those of all units is tried first, since they can be many. If units are not distinguished one by one
        (several partitions, or moves between parts), that one cost has to be admitted, so that it always exists.
        """
        concerned = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return self.filter.admits(concerned.join(self._account.at_most()))
        if self.filter.admits(concerned):
            return True
        return all(self.filter.admits(total) for total in self._account.concerned(cost, parts))

    @property
    def plain(self) -> bool:
        """True if every step so far has read everything."""
        return self._account.plain

    @property
    def total(self) -> Cost:
        """A cost that is at least the sum for every unit."""
        return self._account.at_most()

    def fits(self, other: Filter) -> bool:
        """Return whether another filter would also admit the entered steps."""
        under = copy(self)
        under.filter = other
        return under.admits(FREE)

    def spent(self, parts: Sequence[Part] = ()) -> SpentBudget:
        """Return the largest amount spent by the units of these parts, or by any unit."""
        return max(map(self.filter.spent, self._totals(FREE, parts)), key=lambda spent: (spent.epsilon, spent.delta))

    def remaining(self, cost: Cost = FREE, parts: Sequence[Part] = ()) -> RemainingBudget:
        """Return the most that the next query about these parts may cost, after a step that is admitted."""
        first, *others = map(self.filter.remaining, self._totals(cost, parts))
        for each in others:
            first = first.least(each)
        return first

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """Return how many steps of this cost are admitted; None if unlimited."""
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
        """Return the admitted sums, of which the largest decides, as in `admits`."""
        at_most = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return [at_most.join(self._account.at_most())]
        return [at_most] if self.filter.admits(at_most) else list(self._account.concerned(cost, parts))
