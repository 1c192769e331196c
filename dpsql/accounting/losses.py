"""Privacy losses as values: guarantees under four definitions, and the proved conversions between them.

A loss is frozen and validated. `+` is composition with a loss of the same kind, `group(k)` the loss towards k people
together (k neighbouring steps apart), `to_approx(delta)` the implied (epsilon, delta) guarantee, epsilon rounded up.
`<=` means that a guarantee is at least as strong, where one number or pair decides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpsql.accounting import renyi
from dpsql.accounting.accountants import zcdp_epsilon
from dpsql.core.events import Number, whole
from dpsql.core.loss import as_delta, exact
from dpsql.core.rounding import above, below, raised
from dpsql.errors import InvalidPrivacyParameter, as_written
from dpsql.schema.argument_names import checked_methods
from dpsql.schema.frozen import dataclass


def _not_negative(value: object, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise InvalidPrivacyParameter(f"{name} must be at least 0, got {value}.")
    return number


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """(epsilon, delta)-DP (Dwork, Roth 2014, definition 2.4); a delta of 1 or more guarantees nothing and becomes 1."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _not_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", min(Fraction(1), _not_negative(delta, "delta")))

    def __add__(self, other: ApproxDP) -> ApproxDP:
        """Add both numbers (Dwork, Roth 2014, theorem 3.16)."""
        if not isinstance(other, ApproxDP):
            return NotImplemented
        return ApproxDP(self.epsilon + other.epsilon, self.delta + other.delta)

    def __le__(self, other: ApproxDP) -> bool:
        """Return whether both numbers are at most the other's; two losses may be incomparable."""
        if not isinstance(other, ApproxDP):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def group(self, size: int) -> ApproxDP:
        """Return (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)) (Vadhan 2017, lemma 2.2): the i-th of the k
        steps adds delta e^(i epsilon). delta is rounded up."""
        k = whole(size, "size")
        times = growth(above(self.epsilon), k)
        grown = self.delta * times if times is not None else Fraction(self.delta > 0)
        return ApproxDP(self.epsilon * k, grown)

    def to_approx(self, delta: Number) -> ApproxDP:
        """Return the same epsilon with a larger delta. Raises InvalidPrivacyParameter for a smaller one."""
        wanted = as_delta(delta)
        if wanted < self.delta:
            raise InvalidPrivacyParameter(f"delta must be at least {float(self.delta):g}, got {delta}.")
        return ApproxDP(self.epsilon, wanted)


def growth(epsilon: float, size: int) -> Fraction | None:
    """Return (e^(k epsilon) - 1)/(e^epsilon - 1), the growth of delta for k people, rounded up; None above e^13,000,
    where any positive float delta grows beyond 1."""
    if epsilon == 0:
        return Fraction(size)
    log = size * epsilon + math.log(-math.expm1(-size * epsilon)) - epsilon - math.log(-math.expm1(-epsilon))
    log += 1e-12 + 1e-14 * log
    if log > 13_000:
        return None
    doublings = math.floor(log / math.log(2))
    rest = Fraction(raised(math.exp(log - doublings * math.log(2) + 1e-10)))
    return rest * Fraction(2) ** doublings if doublings < 0 else rest * (1 << doublings)


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class PureDP:
    """epsilon-DP (Dwork, McSherry, Nissim, Smith 2006)."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _not_negative(epsilon, "epsilon"))

    def __add__(self, other: PureDP) -> PureDP:
        """Add the epsilons (Dwork, Roth 2014, theorem 3.14)."""
        return PureDP(self.epsilon + other.epsilon) if isinstance(other, PureDP) else NotImplemented

    def __le__(self, other: PureDP) -> bool:
        return self.epsilon <= other.epsilon if isinstance(other, PureDP) else NotImplemented

    def group(self, size: int) -> PureDP:
        """Return k epsilon (Dwork, Roth 2014, theorem 2.2): the ratios of k steps multiply."""
        return PureDP(self.epsilon * whole(size, "size"))

    def to_approx(self, delta: Number) -> ApproxDP:
        """Return the same epsilon, which holds at every delta."""
        return ApproxDP(self.epsilon, as_delta(delta))

    def to_zcdp(self) -> ZCDP:
        """Return rho = epsilon^2/2 (Bun, Steinke 2016, proposition 1.4)."""
        return ZCDP(self.epsilon**2 / 2)

    def to_rdp(self) -> RDP:
        """Return the curve of randomised response, the worst epsilon-DP step (see `renyi.response`)."""
        epsilon = np.array([above(self.epsilon)])
        return RDP(lambda alpha: float(renyi.response(epsilon, np.array([alpha - 1]))[0]))


@checked_methods
@dataclass(frozen=True, slots=True, init=False)
class ZCDP:
    """rho-zCDP: divergence of every order alpha at most alpha rho (Bun, Steinke 2016, definition 1.1)."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _not_negative(rho, "rho"))

    def __add__(self, other: ZCDP) -> ZCDP:
        """Add the rhos (Bun, Steinke 2016, lemma 1.7)."""
        return ZCDP(self.rho + other.rho) if isinstance(other, ZCDP) else NotImplemented

    def __le__(self, other: ZCDP) -> bool:
        return self.rho <= other.rho if isinstance(other, ZCDP) else NotImplemented

    def group(self, size: int) -> ZCDP:
        """Return k^2 rho (Bun, Steinke 2016, proposition 1.9)."""
        return ZCDP(self.rho * whole(size, "size") ** 2)

    def to_approx(self, delta: Number) -> ApproxDP:
        """Apply the tight conversion (Canonne, Kamath, Steinke 2020, proposition 12). Raises InvalidPrivacyParameter
        for delta 0."""
        slack = _some(delta)
        return ApproxDP(Fraction(zcdp_epsilon(above(self.rho), below(slack))) if self.rho else Fraction(0), slack)

    def to_rdp(self) -> RDP:
        """Return alpha rho at every order alpha."""
        rho = above(self.rho)
        return RDP(lambda alpha: alpha * rho)


@checked_methods
@dataclass(frozen=True, slots=True)
class RDP:
    """Renyi DP as a whole curve: `curve(alpha)` bounds the divergence of order alpha > 1 (Mironov 2017, definition 4);
    infinity without a bound."""

    curve: Callable[[float], float]

    def __add__(self, other: RDP) -> RDP:
        """Add the curves, order by order (Mironov 2017, proposition 1)."""
        if not isinstance(other, RDP):
            return NotImplemented
        return RDP(lambda alpha: raised(self.curve(alpha) + other.curve(alpha)))

    def at(self, alpha: float) -> float:
        """Return the divergence at an order alpha > 1. Raises InvalidPrivacyParameter for another order."""
        if isinstance(alpha, bool) or not 1 < alpha < math.inf:
            raise InvalidPrivacyParameter(f"alpha must be a finite number > 1, got {as_written(alpha)}.")
        return raised(self.curve(alpha))

    def stable(self, c: int) -> RDP:
        """Return the curve after a transformation that takes neighbours at most 2^c steps apart: at orders alpha/2^c,
        where alpha >= 2^(c + 1), 3^c times the curve at alpha (Mironov 2017, proposition 2); infinity below order 2."""
        if c == 0:
            return self
        whole(c, "c")
        return RDP(lambda alpha: 3**c * self.curve(2**c * alpha) if alpha >= 2 else math.inf)

    def group(self, size: int) -> RDP:
        """Return `stable` for the least c with 2^c >= size. For a known distribution, its own curve with `size` times
        the sensitivity is far better; see `dpsql.accounting.group_privacy`."""
        return self.stable((whole(size, "size") - 1).bit_length())

    def to_approx(self, delta: Number) -> ApproxDP:
        """Apply the tight conversion at the best order (`renyi.best`). Raises InvalidPrivacyParameter for delta 0."""
        slack = _some(delta)

        def curve(s: renyi.FloatArray) -> renyi.FloatArray:
            return np.array([self.curve(1 + float(each)) for each in s])

        unit = self.curve(2.0) / 2
        scale = unit if 1e-100 < unit < 1e100 else 1.0
        return ApproxDP(Fraction(renyi.best(curve, below(slack), scale)), slack)


def _some(delta: object) -> Fraction:
    slack = as_delta(delta)
    if not slack:
        raise InvalidPrivacyParameter("delta must be above 0: this kind of loss has no pure epsilon.")
    return slack
