"""Noise intervals of variances, covariances, slopes and correlations, by `accuracy.statistics`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsql.release.intervals.widths import half_widths
from dpsql.release.parts import Estimate, Moments
from dpsql.release.release import Release, ReleasedValues

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]


def is_known(release: Release, estimate: Estimate) -> bool:
    """Return whether an aggregation of second moments has an interval; answers over public tables are exact."""
    moments, kind = estimate.moments, estimate.kind
    assert moments is not None  # these kinds have them
    divides = not kind.is_ratio or bool(moments.other_half or not moments.half)
    return release.noise is not None and kind.interval is not None and divides


def moments_interval(release: Release, released: ReleasedValues, estimate: Estimate, level: float) -> Bounds | None:
    """Return the interval of an aggregation of second moments, for every released group; None if none is known."""
    moments, interval = estimate.moments, estimate.kind.interval
    if moments is None or interval is None or not is_known(release, estimate):
        return None
    if estimate.kind.is_ratio and not moments.half:  # the slope of a constant is 0
        return np.zeros(released.groups), np.zeros(released.groups)
    read = _Reader(release, released, estimate, moments)

    def solve(equation: str, letters: str, *sample: bool) -> Bounds:
        from dpsql.accuracy import statistics  # only these aggregates need it

        return read.run(getattr(statistics, f"{equation}_interval"), letters, level, *sample)

    return interval(solve, moments.half, moments.other_half)


class _Reader:
    """Moments of u and v in [-1, 1] by letter: n rows, s = sum u, q = sum u^2, t = sum v, r = sum v^2, p = sum u v."""

    def __init__(self, release: Release, released: ReleasedValues, estimate: Estimate, moments: Moments) -> None:
        self.release, self.values = release, released.values
        count = (estimate.count, 1.0)
        self.terms: dict[str, list[tuple[int | None, float]]] = {
            "n": [count],
            "s": [(estimate.sum, 1 / (moments.half or 1.0))],
            "q": [(moments.square, 0.5), (count[0] if moments.square is not None else None, 0.5)],
            "t": [(moments.sum, 1 / (moments.other_half or 1.0))],
            "r": [(moments.other_square, 0.5), (count[0] if moments.other_square is not None else None, 0.5)],
            "p": [(moments.product, 1.0)],
        }

    def moments(self, letters: str) -> list[Floats]:
        """Return the noisy moments, shape (groups,) each."""
        return [
            sum((self.values[place] * scale for place, scale in self.terms[letter] if place is not None), self._zero())
            for letter in letters
        ]

    def run(self, interval: Callable[..., Bounds], letters: str, *more: float) -> Bounds:
        """Return an interval of `accuracy.statistics` for the moments of these letters."""
        return interval(*self.moments(letters), self.width(letters), *more)

    def width(self, letters: str) -> Callable[[Floats, float], Floats]:
        """Return a function from weights of the moments, shape (len(letters), m), to half-widths of their
        combinations."""
        places = list(dict.fromkeys(place for letter in letters for place, _ in self.terms[letter]))

        def width(weights: Floats, level: float) -> Floats:
            by_feature = np.zeros((len(places), weights.shape[1]))
            for letter, row in zip(letters, weights, strict=True):
                for place, scale in self.terms[letter]:
                    by_feature[places.index(place)] += row * scale
            return half_widths(self.release, places, by_feature, level)

        return width

    def _zero(self) -> Floats:
        return np.zeros(self.values.shape[1])
