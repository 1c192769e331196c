"""The law of a whole output (which groups are shown, and their noisy numbers) on tiny tables, and the parts of it that
the promise of a Cost speaks of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dpsql.core.cost import Cost
from dpsql.core.mechanisms.noise import (
    CubeLaplace,
    DiscreteGaussian,
    GaussianNoise,
    Noise,
    RoundedGaussian,
    SplitLaplace,
)
from dpsql.core.selection.truncated_geometric import TruncatedGeometric

Floats = NDArray[np.float64]
ALPHAS = (1.01, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
CUT = 1e-11
"""What float sums and the ends of the windows may make of 0."""


@dataclass(frozen=True)
class Window:
    """The vectors that are looked at: each coordinate from -reach to reach; noise is further out with chance < CUT."""

    noise: Noise
    dimension: int
    reach: int

    @property
    def points(self) -> NDArray[np.int64]:
        """All of them, shape (points, dimension)."""
        line = np.arange(-self.reach, self.reach + 1)
        grid = np.meshgrid(*[line] * self.dimension, indexing="ij")
        return np.stack([each.ravel() for each in grid], axis=1)

    def law(self, centre: tuple[int, ...]) -> Floats:
        """The chance of each point around this exact vector, by the formula of the law."""
        x = np.abs(self.points - np.array(centre))
        noise = self.noise
        if isinstance(noise, DiscreteGaussian):
            line = np.arange(-self.reach * 4, self.reach * 4 + 1)
            total = math.fsum(np.exp(-(line**2) / (2 * float(noise.variance))))
            found = np.exp(-(x**2).sum(axis=1) / (2 * float(noise.variance))) / total**self.dimension
        elif isinstance(noise, RoundedGaussian):
            one = norm.sf((x - 0.5) / noise.scale) - norm.sf((x + 0.5) / noise.scale)
            found = np.where(x == 0, 1 - 2 * norm.sf(0.5 / noise.scale), one).prod(axis=1)
        elif isinstance(noise, SplitLaplace) or self.dimension == 1:
            assert isinstance(noise, SplitLaplace | CubeLaplace)
            a = math.exp(-1 / noise.exact_scale)
            found = ((1 - a) / (1 + a)) ** self.dimension * a ** x.sum(axis=1)
        else:
            assert isinstance(noise, CubeLaplace)
            assert self.dimension == 2
            a = math.exp(-1 / noise.exact_scale)
            found = a ** x.max(axis=1) / (1 + 8 * a / (1 - a) ** 2)
        assert abs(1 - found.sum()) < CUT, "the window is too small"
        return np.asarray(found)


@dataclass(frozen=True)
class Group:
    """One group's output: its law on both tables, the first place for "not shown"; and A' for the first table.

    Where a threshold hides: one that only the first table has keeps of its law what is not shown; one that only the
    other has, is made as much smaller as the other may show it.
    """

    one: Floats
    other: Floats
    kept: Floats


def group(
    window: Window,
    one: tuple[int, ...] | None,
    other: tuple[int, ...] | None,
    *,
    tau: int | None,
    selection: int = 0,
    below: float = 0.0,
) -> Group:
    """A group with these exact vectors; None: there is none. tau: the threshold of a coordinate, and `below` with what
    chance a coin shows what is a step short of it."""
    shown = np.ones(len(window.points))
    if tau is not None:
        count = window.points[:, selection]
        shown = np.where(count >= tau, 1.0, np.where(count == tau - 1, below, 0.0))
    p, q = (_hidden(window, each, shown) for each in (one, other))
    if one is not None and other is not None:
        return Group(p, q, p)
    kept = np.zeros_like(p)
    kept[0] = p[0] if one is not None else q[0]
    return Group(p, q, kept)


def _hidden(window: Window, centre: tuple[int, ...] | None, shown: Floats) -> Floats:
    if centre is None:
        return np.array([1.0, *np.zeros(len(shown))])
    law = shown * window.law(centre)
    return np.array([1 - law.sum() if not shown.all() else 0.0, *law])


def chosen(law: TruncatedGeometric, one: int, other: int, noisy: Group | None = None) -> Group:
    """A group shown with the chance of its number of units, with a noisy vector beside it if it is shown."""
    delta = float(law.delta) / law.groups
    p, q = float(law.probability(one)), float(law.probability(other))
    pure = _pure_part(p, q, delta)
    delta = 0.0 if one == other else delta  # nothing is given away of a group that nobody joins or leaves
    pure = p if one == other else pure
    bits = [np.array([1 - p, p]), np.array([1 - q, q]), (1 - delta) * np.array([1 - pure, pure])]
    if noisy is None:
        return Group(*bits)
    laws = (noisy.one, noisy.other, noisy.kept)
    return Group(*(np.array([bit[0], *(bit[1] * each[1:])]) for bit, each in zip(bits, laws, strict=True)))


def _pure_part(p: float, q: float, delta: float) -> float:
    """x of P' = (1 - x, x) with P = (1 - delta) P' + delta P'' for P = (1 - p, p), as near as can be to what q allows
    (Kairouz, Oh, Viswanath 2015, theorem 3.3)."""
    low, high = (max(0.0, (p - delta) / (1 - delta)), min(1.0, p / (1 - delta)))
    other_low, other_high = (max(0.0, (q - delta) / (1 - delta)), min(1.0, q / (1 - delta)))
    if low > other_high:
        return low
    return high if high < other_low else max(low, other_low)


def together(groups: list[Group]) -> Group:
    """The whole output, groups being independent."""

    def product(laws: list[Floats]) -> Floats:
        return reduce(lambda a, b: np.outer(a, b).ravel(), laws)

    return Group(
        product([g.one for g in groups]), product([g.other for g in groups]), product([g.kept for g in groups])
    )


def hockey(one: Floats, other: Floats, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def check_promise(cost: Cost, whole: Group, where: str) -> None:
    """What the docstring of Cost says, for one of two directions."""
    p, q, wide = whole.one, whole.other, whole.kept
    assert (wide >= 0).all(), where
    assert (wide <= p + CUT).all(), f"A' is no part: {where}"
    lost = float((p - wide).sum())
    assert lost <= float(cost.hidden) * (1 + 1e-9) + CUT, f"A' loses {lost}, hidden {float(cost.hidden)}: {where}"
    part = wide
    if cost.epsilon is not None:
        assert hockey(p, q, float(cost.epsilon)) <= float(cost.delta) * (1 + 1e-9) + CUT, f"delta: {where}"
        if cost.delta != cost.hidden:  # Gaussian noise
            part = np.minimum(wide, math.exp(cost.epsilon) * q)
        lost = float((p - part).sum())
        assert lost <= float(cost.delta) * (1 + 1e-9) + CUT, f"A loses {lost}, delta {float(cost.delta)}: {where}"
        assert (part <= math.exp(cost.epsilon) * q * (1 + 1e-9) + CUT * q + 1e-300).all(), f"A is too large: {where}"
    positive = wide > 0
    assert (q[positive] > 0).all(), f"A' has what Q never shows: {where}"
    logs = np.log(wide[positive]), np.log(q[positive])
    for alpha in ALPHAS:
        exponents = alpha * logs[0] + (1 - alpha) * logs[1]
        moment = exponents.max() + np.log(np.exp(exponents - exponents.max()).sum())
        allowed = alpha * (alpha - 1) * float(cost.rho)
        assert moment <= allowed + 1e-9, f"moment {alpha}: {moment} of {allowed}: {where}"


def reach_of(noise: Noise, most: int) -> int:
    """A window that noise of this law leaves with chance below 1e-12."""
    if isinstance(noise, GaussianNoise):
        return most + math.ceil(8 * noise.scale) + 2
    return most + math.ceil(38 * noise.scale) + 2


def variance_of(window: Window) -> float:
    """Of the first coordinate, by the enumerated law."""
    law = window.law((0,) * window.dimension)
    return float((law * window.points[:, 0] ** 2).sum())
