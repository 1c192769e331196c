"""Half-widths of combinations of coordinates in classes, whose noise is independent from class to class.

Within a class the law on the cube is known (`widths`). A sum over classes is a convolution. For counts on the integers
it is exact. Otherwise each class's part is rounded to a grid, which moves it by at most half a step. The exact
convolution of the rounded parts thus gives the half-width up to half a step per class, which is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy import widths
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.noise import SplitLaplace

Floats = NDArray[np.float64]

_LARGEST_SCALE = 300.0
"""The largest scale of integer noise whose law is summed; beyond it, half a step is negligible."""
_FARTHEST = 34.0
"""The tail of a coordinate is cut off after this many scales, below 1e-14,"""
_DEVIATIONS = 10.0
"""plus this many standard deviations of the sum."""
_SPARE = 1e-12
"""An upper bound on the cut-off tails and the rounding of transforms."""
_POINTS_OF_ONE, _POINTS = 2**15, 2**13
_LEAST_WEIGHT = 1 / 256


def half_widths(noise: ClassLaplace, rows: Sequence[int], weights: Floats, level: float) -> Floats:
    """Return t with P(|sum of weights times coordinates| <= t) >= level, in lattice steps, for each of m combinations
    of the coordinates at these rows; weights have shape (len(rows), m)."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(noise.classes[row], []).append(place)
    laws = {own: noise.of(rows[among[0]]) for own, among in places.items()}
    if len(places) == 1:
        ((own, among),) = places.items()
        if len(among) == 1:
            return np.asarray(np.abs(weights[0]) * widths.half_width(laws[own], level))
        return widths.half_widths(laws[own], weights, level)
    if all(law.dimension == 1 for law in laws.values()):
        return _of_counts(noise.scale, weights, level)
    parts = [(laws[own].dimension, np.abs(weights[among])) for own, among in places.items()]
    found = [
        _of_column([(d, part[:, at]) for d, part in parts], level, weights.shape[1]) for at in range(weights.shape[1])
    ]
    return np.asarray(np.array(found) * noise.scale + np.abs(weights).sum(axis=0), dtype=np.float64)


def _of_counts(scale: float, weights: Floats, level: float) -> Floats:
    """Return half-widths of independent discrete Laplace noise: exact for equal weights, else by the law on the line.

    With a = exp(-1 / s) the discrete law has P(|X| >= k) = 2 a^k / (1 + a) = exp(-(k - d) / s) for d = s log(2 / (1 +
    a)), 0 < d <= 1/2: |X| = k where the size of a Laplace value is in [k - d, k + 1 - d). So both, with the same sign,
    differ by at most 1 - d."""
    sizes = np.abs(weights)
    if scale <= _LARGEST_SCALE and (sizes == sizes[0]).all():
        return np.asarray(sizes[0] * _of_equal_counts(scale, len(sizes), level))
    line = widths.half_widths(SplitLaplace(Fraction(scale), len(sizes)), sizes, level)
    spare = scale * math.log(2 / (1 + math.exp(-1 / scale)))
    return np.asarray(line - spare * sizes.sum(axis=0))  # the line's widths include one step each


def _of_equal_counts(scale: float, many: int, level: float) -> float:
    """Return the least integer half-width of the sum of so many counts."""
    a = math.exp(-1 / scale)
    most = math.ceil(_FARTHEST * scale) + 1
    chances = (1 - a) / (1 + a) * np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    half = math.ceil(_reach(scale, many * scale**2 * 2)) + 1
    return float(_quantile(_cyclic([(chances, many)], 1 << (2 * half).bit_length()), level))


def _reach(scale: float, variance: float) -> float:
    """Return the distance up to which the sum's law is computed; mass beyond, below 1e-13, wraps around to nearer
    values."""
    return _FARTHEST * scale + _DEVIATIONS * math.sqrt(variance)


def _cyclic(laws: Sequence[tuple[Floats, int]], size: int) -> Floats:
    """Return probabilities of 0, 1, ..., size - 1 for the sum of independent integers, modulo the size. Each law is
    over -k..k, with its number of copies."""
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for chances, times in laws:
        k = len(chances) // 2
        held = np.zeros(size)
        np.add.at(held, np.arange(-k, k + 1) % size, chances)
        product *= np.fft.rfft(held) ** times
    return np.fft.irfft(product, size)


def _quantile(chances: Floats, level: float) -> int:
    """Return the least t with P(|sum| <= t) >= level."""
    half = len(chances) // 2
    both = np.concatenate([chances[:1], chances[1:half] + chances[:half:-1]])
    inside = np.cumsum(both)
    return int(np.searchsorted(inside, level + _SPARE))


def _of_column(parts: Sequence[tuple[int, Floats]], level: float, columns: int) -> float:
    """Return the half-width of one combination, by the laws on the line at scale 1: (dimension, weights) of each
    class."""
    parts = [(d, sizes[sizes > 0]) for d, sizes in parts if (sizes > 0).any()]
    if not parts:
        return 0.0
    largest = max(float(sizes.sum()) for _, sizes in parts)
    variance = sum((d + 1) * (d + 2) / 3 * float((sizes**2).sum()) for d, sizes in parts)
    points = _POINTS_OF_ONE if columns == 1 else _POINTS
    step = 2 * _reach(largest, variance) / points
    found = _cyclic([(_rounded(d, sizes, step, points // 2 - 1), 1) for d, sizes in parts], points)
    return (_quantile(found, level) + len(parts) / 2) * step


def _rounded(dimension: int, sizes: Floats, step: float, most: int) -> Floats:
    """Return probabilities of -most..most for a combination in one class, rounded to steps."""
    from dpsql.accuracy.linear_combinations import both_tails

    widest = float(sizes.max())
    ratios = np.maximum(sizes / widest, _LEAST_WEIGHT)
    t = np.asarray((np.arange(most + 1) + 0.5) * (step / widest), dtype=np.float64)
    above = both_tails(dimension, ratios, t)
    side = np.maximum(above[:-1] - above[1:], 0) / 2
    return np.concatenate([side[::-1], [1 - above[0]], side])
