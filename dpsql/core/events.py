"""Privacy events: the noisy steps whose total cost an accountant computes.

An event names a family of mechanisms and how often it ran, independently of how costs are composed. Numbers are stored
as fractions, floats as the decimals that they print as, so that Laplace(20) and Pure(0.05) have the same epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from numbers import Integral

from dpsql.core.loss import exact
from dpsql.core.rounding import total
from dpsql.errors import InvalidPrivacyParameter, as_written
from dpsql.schema.argument_names import checked_methods
from dpsql.schema.frozen import dataclass

Number = float | Decimal | Fraction
MOST_STEPS = 10**9
_SMALLEST, _LARGEST = Fraction(1, 10**50), Fraction(10**50)


def positive(value: object, name: str) -> Fraction:
    """Return a number > 0 as a fraction. Raises InvalidPrivacyParameter, also beyond 1e-50 and 1e50."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidPrivacyParameter(f"{name} must be a finite number > 0, got {value}.")
    if not _SMALLEST <= number <= _LARGEST:
        raise InvalidPrivacyParameter(f"{name} must lie between 1e-50 and 1e50.")
    return number


def whole(value: object, name: str) -> int:
    """Return a whole number from 1 to a billion. Raises InvalidPrivacyParameter."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= MOST_STEPS:
        raise InvalidPrivacyParameter(f"{name} must be a whole number from 1 to 10^9, got {as_written(value)}.")
    return int(value)


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class Laplace:
    """Continuous Laplace noise of this scale on one number of this sensitivity (both in the number's unit).

    Discrete Laplace noise on a lattice as coarse as the sensitivity is the worst case of an epsilon-DP step: use
    `Pure`.
    """

    scale: Fraction
    sensitivity: Fraction
    count: int

    def __init__(self, scale: Number, sensitivity: Number = 1, count: int = 1) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "count", whole(count, "count"))

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of one step (Dwork, McSherry, Nissim, Smith 2006)."""
        return self.sensitivity / self.scale


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class Gaussian:
    """Continuous Gaussian noise of this standard deviation on a vector of this L2 sensitivity."""

    sigma: Fraction
    sensitivity: Fraction
    count: int

    def __init__(self, sigma: Number, sensitivity: Number = 1, count: int = 1) -> None:
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "count", whole(count, "count"))

    @property
    def rho(self) -> Fraction:
        """The zCDP of one step (Bun, Steinke 2016, proposition 1.6)."""
        return self.sensitivity**2 / (2 * self.sigma**2)


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class Pure:
    """Any epsilon-DP step."""

    epsilon: Fraction
    count: int

    def __init__(self, epsilon: Number, count: int = 1) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "count", whole(count, "count"))


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class ApproximateStep:
    """Any (epsilon, delta)-DP step, e.g. partition selection; with epsilon 0, the delta of a threshold on counts."""

    epsilon: Fraction
    delta: Fraction
    count: int

    def __init__(self, epsilon: Number, delta: Number, count: int = 1) -> None:
        object.__setattr__(self, "epsilon", Fraction(0) if epsilon == 0 else positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", positive(delta, "delta"))
        object.__setattr__(self, "count", whole(count, "count"))
        if self.delta >= 1:
            raise InvalidPrivacyParameter(f"delta must be below 1, got {delta}.")


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class Concentrated:
    """Any rho-zCDP step, e.g. the discrete Gaussian, by its variance (Canonne, Kamath, Steinke 2020, theorem 14)."""

    rho: Fraction
    count: int

    def __init__(self, rho: Number, count: int = 1) -> None:
        object.__setattr__(self, "rho", positive(rho, "rho"))
        object.__setattr__(self, "count", whole(count, "count"))


Event = Laplace | Gaussian | Pure | ApproximateStep | Concentrated

Tally = dict[Fraction, int]
"""The number of occurrences of each parameter."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Events grouped by what is known of them: epsilons of Laplace steps, epsilons of others (`response`: the worst
    case is randomised response), separate deltas, rhos of Gaussians and rhos of steps of which only rho is known."""

    laplace: Tally = field(default_factory=dict)
    response: Tally = field(default_factory=dict)
    own_deltas: Tally = field(default_factory=dict)
    gaussian: Tally = field(default_factory=dict)
    concentrated: Tally = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Steps:
        """Return the steps of the events. An (epsilon, delta)-DP step is an epsilon-DP step that reveals everything
        with probability delta (Kairouz, Oh, Viswanath 2015, theorem 3.3 and its proof), so its numbers are split."""
        steps = cls()
        for event in events:
            match event:
                case Laplace():
                    _add(steps.laplace, event.epsilon, event.count)
                case Pure():
                    _add(steps.response, event.epsilon, event.count)
                case ApproximateStep():
                    if event.epsilon:
                        _add(steps.response, event.epsilon, event.count)
                    _add(steps.own_deltas, event.delta, event.count)
                case Gaussian():
                    _add(steps.gaussian, event.rho, event.count)
                case Concentrated():
                    _add(steps.concentrated, event.rho, event.count)
        return steps

    @property
    def epsilons(self) -> Tally:
        """The steps of known epsilon, of any distribution."""
        both = dict(self.laplace)
        for epsilon, count in self.response.items():
            _add(both, epsilon, count)
        return both

    @property
    def rhos(self) -> Tally:
        """The steps without a known pure epsilon."""
        both = dict(self.gaussian)
        for rho, count in self.concentrated.items():
            _add(both, rho, count)
        return both

    @property
    def pure(self) -> Fraction:
        """The sum of the epsilons of `epsilons`."""
        return weighted(self.epsilons)

    @property
    def rho(self) -> Fraction:
        """The zCDP of all steps without their separate deltas; an epsilon-DP step is (epsilon^2/2)-zCDP (Bun, Steinke
        2016, proposition 1.4)."""
        halves = total(epsilon**2 * count for epsilon, count in self.epsilons.items()) / 2
        return halves + weighted(self.rhos)

    @property
    def own_delta(self) -> Fraction:
        """The sum of the steps' separate deltas."""
        return weighted(self.own_deltas)

    def __bool__(self) -> bool:
        """Return whether a step costs more than its separate delta."""
        return bool(self.laplace or self.response or self.gaussian or self.concentrated)


def _add(tally: Tally, key: Fraction, count: int) -> None:
    tally[key] = tally.get(key, 0) + count


def weighted(tally: Tally) -> Fraction:
    """Return the sum of the tally's parameters, each as often as it occurs."""
    return total(key * count for key, count in tally.items())
