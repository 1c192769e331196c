"""Releases of a group given that it is shown, however unlikely: exact chances, and weighted draws of its noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, GaussianNoise, RoundedGaussian
from dpsql.release.intervals.intervals import interval
from dpsql.release.release import Release, ReleasedValues
from tests.measured import height_of

DRAWS = 4_000


def released_of(made: Release, steps: Any) -> ReleasedValues:
    """What is released for noisy coordinates, shape (coordinates, groups)."""
    units = np.array([each.unit for each in made.coordinates])
    return ReleasedValues((), made.features_of(np.asarray(steps, dtype=np.float64) * units[:, None]))


def probabilities(noise: Any, reach: int) -> tuple[Any, Any]:
    """Whole numbers and the chance of each as noise of one coordinate, up to a factor; written out by hand."""
    x = np.arange(-reach, reach + 1)
    if isinstance(noise, RoundedGaussian):
        tails = norm.sf((np.abs(x) - 0.5) / noise.scale) - norm.sf((np.abs(x) + 0.5) / noise.scale)
        return x, np.where(x == 0, 1 - 2 * norm.sf(0.5 / noise.scale), tails)
    if isinstance(noise, DiscreteGaussian):
        return x, np.exp(-x * x / (2 * float(noise.variance)))
    assert not isinstance(noise, CubeLaplace) or noise.dimension == 1
    return x, np.exp(-np.abs(x) / noise.scale)


def shown_with(made: Release, counts: Any) -> Any:
    """With what chance noisy counts are shown, by hand: from the height on, and by a coin a step below it."""
    at, below = height_of(made), float(made.selection.below)
    return np.where(counts >= at, 1.0, np.where(counts == at - 1, below, 0.0))


def exact_coverage(made: Release, n: int, level: float) -> float:
    """The chance that the interval of the count that is held against the threshold holds n, given that it is shown."""
    noise = made.shares[0].noise
    tau, one = height_of(made), made.lattice.one_row
    assert tau is not None
    x, chance = probabilities(noise, int(40 * noise.scale) + tau + 2)
    chance = chance * shown_with(made, x + n * one)
    shown = chance > 0
    values = (x + n * one)[shown][None]
    low, high = interval(made, released_of(made, values), made.query.finish.outputs[1].expr, level)  # type: ignore[misc]
    held = (low <= n) & (n <= high)
    return float(chance[shown][held].sum() / chance[shown].sum())


def conditional_steps(made: Release, least: float, words: np.random.Generator, draws: int = DRAWS) -> tuple[Any, Any]:
    """Noise of all coordinates, shape (coordinates, draws), given that that of the selecting one is at least `least`,
    and weights. Lattices are fine here: the laws on the line, rounded.

    On the cube the radius r has the density r^d exp(-r) and the coordinates are uniform within it, so that given the
    condition r has exp(-r) (r - least) (2 r)^(d - 1) and the selecting coordinate is uniform from `least` to r."""
    share = made.shares[0]
    noise, d = share.noise, len(share.places)
    place = share.places.index(made.lattice.selection)
    t = least / noise.scale
    weights = np.ones(draws)
    if isinstance(noise, CubeLaplace):
        r = t + words.gamma(2.0, size=draws) if t > 0 else words.gamma(d + 1.0, size=draws)
        steps = r * words.uniform(-1, 1, (d, draws))
        if t > 0:
            weights = (r / (t + 2)) ** (d - 1)
            steps[place] = t + (r - t) * words.uniform(0, 1, draws)
    else:
        gaussian = isinstance(noise, GaussianNoise)
        steps = words.normal(size=(d, draws)) if gaussian else words.laplace(size=(d, draws))
        if t > 0:
            ahead = words.exponential(size=draws) / (max(t, 1.0) if gaussian else 1.0)
            steps[place] = t + ahead
            weights = np.exp(-(ahead**2) / 2 - ahead * t + ahead * max(t, 1.0)) if gaussian else weights
    keep = steps[place] >= t
    found = np.zeros((len(made.coordinates), int(keep.sum())))
    found[list(share.places)] = np.rint(steps[:, keep] * noise.scale)
    found[share.places[place]] = np.maximum(found[share.places[place]], least)
    return found, weights[keep]
