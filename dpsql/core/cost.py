"""The privacy cost of a step, in the units of both filters: an (epsilon, delta) pair, and zCDP."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dpsql.core.loss import PrivacyLoss, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass

_MOST_BITS = 512
"""A rho with a longer denominator is rounded up, by less than 2^-200, so that sums of many rhos stay short."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The privacy cost of one step, or of a sequence of steps.

    epsilon: None if the step has no finite epsilon (noise requested by rho); delta: the delta for that epsilon; rho:
    the zCDP loss; hidden: the part of delta that remains under zCDP (groups hidden by a threshold).

    The guarantee, for neighbours with outputs P and Q, in either order: there is a part A of P, 0 <= A <= P, with
    mass(P - A) <= delta and A <= e^epsilon Q; and a part A' with mass(P - A') <= hidden, A <= A' and Renyi moments
    sum_y A'(y)^a Q(y)^(1 - a) <= exp(a (a - 1) rho) for all a > 1. `filters` proves what sums of costs guarantee.
      - A step that is (epsilon, delta)-DP costs (epsilon, delta, epsilon^2 / 2, delta): it is (1 - delta) P' + delta
        P'' against (1 - delta) Q' + delta Q'' with P', Q' within e^+-epsilon of each other (Kairouz, Oh, Viswanath
        2015, theorem 3.3), and epsilon-DP is epsilon^2/2-zCDP (Bun, Steinke 2016, proposition 3.3); A = A' = (1 -
        delta) P'.
      - A step of Gaussian noise that is rho-zCDP, and so (epsilon, delta)-DP, costs (epsilon, delta, rho, 0): A' = P,
        A = min(P, e^epsilon Q).
      - The costs of consecutive steps add up coordinate by coordinate: the parts multiply along each path.
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
        """Return the cost of any (epsilon, delta)-DP step."""
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
        """Return the cost of `count` such steps."""
        epsilon = None if self.epsilon is None else self.epsilon * count
        return Cost(epsilon, self.delta * count, self.rho * count, self.hidden * count)

    def join(self, other: Cost) -> Cost:
        """Return the maximum of each coordinate: the cost for a unit that is in either of two parts."""
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
        """The (epsilon, delta) pair; None if epsilon is not finite."""
        return None if self.epsilon is None else PrivacyLoss(self.epsilon, min(Fraction(1), self.delta))

    def within(self, allowed: PrivacyLoss) -> bool:
        """Return whether the (epsilon, delta) pair is at most `allowed`."""
        return self.pair is not None and self.pair.within(allowed)

    def __str__(self) -> str:
        first = f"rho {show(self.rho)}" if self.epsilon is None else f"epsilon {show(self.epsilon)}"
        return f"{first}, delta {show(self.delta)}" if self.delta else first


FREE = Cost(Fraction(0))


def total_of(start: Cost, costs: Sequence[Cost]) -> Cost:
    """Return `start` plus the costs in order, exactly as `+` adds them.

    A ledger has many equal steps, so each distinct cost is multiplied by its count. The order matters only if a rho
    becomes so long that it is rounded. Every partial sum has a denominator that divides the least common multiple of
    all denominators. While that is short, no order rounds; otherwise the steps are added one by one.
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
    """Return start plus the sum of numbers[i] * times[i]."""
    whole = math.lcm(start.denominator, *(each.denominator for each in numbers))
    steps = start.numerator * (whole // start.denominator)
    for each, count in zip(numbers, times, strict=True):
        steps += each.numerator * (whole // each.denominator) * count
    return Fraction(steps, whole)
