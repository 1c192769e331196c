"""What a step costs, in the coins of both filters: an (epsilon, delta) pair, and zero-concentrated privacy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dpsql.core.loss import PrivacyLoss, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass

_MOST_BITS = 512
"""A rho with a longer denominator is rounded up, by less than 2^-200, so that sums of many stay short."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one step, or a row of steps, costs.

    epsilon: None where a step has no finite one (noise asked for by rho); delta: its delta with that epsilon; rho: its
    zero-concentrated loss; hidden: the part of delta that stays under zCDP too (groups hidden by a threshold).

    The promise, for neighbours with outputs P and Q, either way round: there is a part A of P, 0 <= A <= P, with
    mass(P - A) <= delta and A <= e^epsilon Q; and one with mass(P - A') <= hidden, A <= A' and Renyi moments
    sum_y A'(y)^a Q(y)^(1 - a) <= exp(a (a - 1) rho) for all a > 1. `filters` proves what sums of it mean.
      - A step that is (epsilon, delta)-DP costs (epsilon, delta, epsilon^2 / 2, delta): it is (1 - delta) P' + delta
        P'' against (1 - delta) Q' + delta Q'' with P', Q' within e^+-epsilon of each other (Kairouz, Oh, Viswanath
        2015, theorem 3.3), and epsilon-DP is epsilon^2/2-zCDP (Bun, Steinke 2016, proposition 3.3); A = A' = (1 -
        delta) P'.
      - A step of Gaussian noise that is rho-zCDP, and so (epsilon, delta)-DP, costs (epsilon, delta, rho, 0): A' = P,
        A = min(P, e^epsilon Q).
      - Steps one after the other add up coordinate by coordinate: the parts multiply along each path.
    """

    epsilon: Fraction | None
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    hidden: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        least = 0
        for each in (self.delta, self.rho, self.hidden, self.delta if self.epsilon is None else self.epsilon):
            if not isinstance(each, Fraction):
                raise TypeError("a Cost holds fractions")
            least = min(least, each.numerator)  # denominators are positive, and ledgers add up thousands of costs
        if least < 0 or (self.hidden.numerator and self.hidden > self.delta):
            raise InvalidPrivacyParameter(f"not a cost: {self!r}.")
        if self.rho.denominator.bit_length() > _MOST_BITS:
            object.__setattr__(self, "rho", Fraction(math.ceil(self.rho * 2**200), 2**200))

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Cost:
        """The cost of an (epsilon, delta)-DP step, of whatever kind."""
        return cls(epsilon, delta, epsilon * epsilon / 2, delta)

    def __add__(self, other: Cost) -> Cost:
        if other is FREE:
            return self
        finite = self.epsilon is not None and other.epsilon is not None
        return Cost(
            self.epsilon + other.epsilon if finite else None,  # type: ignore[operator]
            self.delta + other.delta,
            self.rho + other.rho,
            self.hidden + other.hidden,
        )

    def times(self, count: int) -> Cost:
        """The cost of so many such steps."""
        epsilon = None if self.epsilon is None else self.epsilon * count
        return Cost(epsilon, self.delta * count, self.rho * count, self.hidden * count)

    def join(self, other: Cost) -> Cost:
        """The larger of each coordinate: what a unit costs that is in one of two parts, whichever it is."""
        finite = self.epsilon is not None and other.epsilon is not None
        return Cost(
            max(self.epsilon, other.epsilon) if finite else None,  # type: ignore[type-var]
            max(self.delta, other.delta),
            max(self.rho, other.rho),
            max(self.hidden, other.hidden),
        )

    @property
    def free(self) -> bool:
        return self == FREE

    @property
    def pair(self) -> PrivacyLoss | None:
        """The (epsilon, delta) pair; None where there is none."""
        return None if self.epsilon is None else PrivacyLoss(self.epsilon, min(Fraction(1), self.delta))

    def within(self, allowed: PrivacyLoss) -> bool:
        """Whether the (epsilon, delta) pair is at most that."""
        return self.pair is not None and self.pair.within(allowed)

    def __str__(self) -> str:
        first = f"rho {show(self.rho)}" if self.epsilon is None else f"epsilon {show(self.epsilon)}"
        return f"{first}, delta {show(self.delta)}" if self.delta else first


FREE = Cost(Fraction(0))


def total_of(start: Cost, costs: Sequence[Cost]) -> Cost:
    """`start` and the costs one after the other, as `+` adds them, to the last digit.

    Equal steps are many in a ledger, so each different one is multiplied. The order matters in one case alone: where a
    rho becomes so long that it is rounded. Each sum on the way has a denominator that divides the least common multiple
    of all; while that is short nothing is rounded on any way, and where it is not, the steps are added one by one.
    """
    if not costs:
        return start
    counts = Counter(map(id, costs))
    different = list({id(cost): cost for cost in costs}.values())
    if len(different) < 2 and sum(counts.values()) < 2:
        return start + different[0] if different else start
    rho = math.lcm(start.rho.denominator, *(cost.rho.denominator for cost in different))
    if rho.bit_length() > _MOST_BITS:
        return sum(costs, start)
    times = [counts[id(cost)] for cost in different]
    finite = [cost.epsilon for cost in different if cost.epsilon is not None]
    known = start.epsilon is not None and len(finite) == len(different)
    return Cost(
        _sum(start.epsilon or Fraction(0), finite, times) if known else None,
        _sum(start.delta, [cost.delta for cost in different], times),
        _sum(start.rho, [cost.rho for cost in different], times),
        _sum(start.hidden, [cost.hidden for cost in different], times),
    )


def _sum(start: Fraction, numbers: Sequence[Fraction], times: Sequence[int]) -> Fraction:
    """start + numbers, each so many times."""
    whole = math.lcm(start.denominator, *(each.denominator for each in numbers))
    steps = start.numerator * (whole // start.denominator)
    for each, count in zip(numbers, times, strict=True):
        steps += each.numerator * (whole // each.denominator) * count
    return Fraction(steps, whole)
