"""Simulated intervals: noise redrawn around released values, by public distributions.

These draws are not part of any mechanism. They are post-processing: they read only released values and public
distributions, and replace exact distributions where none are known. They are seeded by the released values, so that a
repeated answer has the same intervals. Therefore doubles suffice, and uniforms come from a hash (SHAKE-256).
"""

from __future__ import annotations

import hashlib
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.noise import CubeLaplace, GaussianNoise, SplitLaplace
from dpsql.release.levels.estimates import Levels
from dpsql.release.release import Release, ReleasedValues

Floats = NDArray[np.float64]

_LAPLACE = (CubeLaplace, ClassLaplace, SplitLaplace)
"""Distributions with separate noise for each group."""


class Uniforms:
    """Doubles between 0 and 1, the same for the same seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._drawn = seed, 0

    def draw(self, *shape: int) -> Floats:
        size = int(np.prod(shape))
        self._drawn += 1
        digest = hashlib.shake_256(self._seed + self._drawn.to_bytes(8, "big")).digest(8 * size)
        words = np.frombuffer(digest, dtype=np.uint64)
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5).reshape(shape) / 2.0**53


def seed_of(*released: ReleasedValues) -> bytes:
    """Return a seed from the released values."""
    state = hashlib.sha256()
    for each in released:
        state.update(np.ascontiguousarray(each.values).tobytes())
        state.update(repr(each.values.shape).encode())
    return state.digest()


def can_be_redrawn(release: Release, released: ReleasedValues) -> bool:
    """Return whether the release's distributions are known here and all groups are shown. With GROUPING SETS in the
    text, rows of one key can repeat, and post-processing SQL may not distinguish them."""
    laws = [*(share.noise for share in release.shares), *(level.noise for level in release.levels.measured)]
    known = all(isinstance(noise, GaussianNoise) or type(noise) in _LAPLACE for noise in laws)
    told_apart = release.query.plan.apart or not release.levels.wanted
    return known and told_apart and not (release.hides or release.provisional or released.integers)


def redrawn(release: Release, released: ReleasedValues, factors: Floats) -> ReleasedValues:
    """Return one run per factor, in order, each with all groups: released values plus noise of the release's
    distributions times the factor. Selected points stay unchanged."""
    runs, groups, uniforms = len(factors), released.groups, Uniforms(seed_of(released))
    steps = np.zeros((len(release.coordinates), runs * groups))
    scaled = np.repeat(factors, groups)
    for share in release.shares:
        steps[list(share.places)] = _noise(share.noise, len(share.places), runs * groups, uniforms) * scaled
    for levels in release.told.levels:
        if levels.measured:
            steps[list(levels.noisy)] = _of_levels(levels, runs, uniforms) * scaled
    units = np.array([each.unit for each in release.coordinates], dtype=np.float64)
    moved = release.features_of(steps * units[:, None])
    values = np.tile(released.values, runs)
    values[: len(moved)] += moved
    places = np.tile(np.arange(groups), runs)
    return ReleasedValues(tuple(key.at(places) for key in released.keys), values, released.bounds)


def _of_levels(levels: Levels, runs: int, uniforms: Uniforms) -> Floats:
    """Return the noise of all rows of the answer, (noisy coordinates, runs * rows). Estimates are linear in the
    measurements, so their noise is the estimate of the measured noise."""
    many = len(levels.noisy)
    noisy = {}
    for level in levels.measured:
        sizes = [levels.sizes[key] for key in level.keys]
        noisy[level.keys] = _noise(level.noise, many, runs * prod(sizes), uniforms).reshape(many, runs, *sizes)
    found = levels.of_noise(noisy)
    return np.concatenate([each.reshape(many, runs, -1) for each in found], axis=2).reshape(many, -1)


def ends(numbers: Floats, level: float, uniforms: Uniforms) -> tuple[Floats, Floats]:
    """Return the ends of intervals of this level, one for each column of `numbers`, which holds its draws.

    For integers no two ends may have exactly this probability: differences of two counts lie within 4 with .94, and
    within 5 with .98. So if several draws are equal to an end, a uniform decides whether they are included (W. L.
    Stevens, "Fuzzy Distributions", Biometrika 37, 1950): the mean of the probabilities is `level`. The end among
    distinct draws lies between two of them, and one of these is taken by the same rule."""
    ordered = np.sort(numbers, axis=0)
    low, high = (_end(each, level, uniforms) for each in (ordered, -ordered[::-1]))
    crossed = low > -high  # nearly all draws are equal
    return np.where(crossed, ordered[len(ordered) // 2], low), np.where(crossed, ordered[len(ordered) // 2], -high)


def _end(ordered: Floats, level: float, uniforms: Uniforms) -> Floats:
    """Return the lower end of sorted draws: if the true value is one of them, it is below with probability (1 - level)
    / 2."""
    draws, cells = ordered.shape
    rank = (draws + 1) * (1 - level) / 2 + uniforms.draw(cells)
    below = np.clip(rank.astype(np.int64), 1, draws)  # number of excluded draws, including the end
    end = ordered[below - 1, np.arange(cells)]
    alike = np.isclose(ordered, end, rtol=1e-9, atol=0)
    fewer = (~alike & (ordered < end)).sum(axis=0)
    many = alike.sum(axis=0)
    left_out = (many > 1) & (uniforms.draw(cells) * (many + 1) < below - fewer) & (fewer + many < draws)
    return np.asarray(np.where(left_out, ordered[np.minimum(fewer + many, draws - 1), np.arange(cells)], end))


def _noise(noise: Any, many: int, cells: int, uniforms: Uniforms) -> Floats:
    """Return noise of a share in steps, shape (coordinates, cells)."""
    if isinstance(noise, GaussianNoise):
        angle, length = 2 * np.pi * uniforms.draw(many, cells), np.sqrt(-2 * np.log(uniforms.draw(many, cells)))
        return np.asarray(np.rint(np.sqrt(float(noise.variance)) * length * np.cos(angle)))
    if isinstance(noise, SplitLaplace) or many == 1:
        sizes = (np.floor(-noise.scale * np.log(uniforms.draw(many, cells))) for _ in range(2))
        return np.asarray(np.subtract(*sizes))  # the difference of two geometric variables is discrete Laplace
    steps = np.zeros((many, cells))
    classes = np.array(noise.classes if isinstance(noise, ClassLaplace) else [0] * many)
    for each in np.unique(classes):
        places = np.flatnonzero(classes == each)
        steps[places] = _in_cube(noise.scale, len(places), cells, uniforms)
    return steps


def _in_cube(scale: float, many: int, cells: int, uniforms: Uniforms) -> Floats:
    """Return points uniform in a cube with Gamma distributed size (Hardt, Talwar, STOC 2010, section 4)."""
    size = -scale * np.log(uniforms.draw(many + 1, cells)).sum(axis=0)
    return np.asarray(np.rint((2 * uniforms.draw(many, cells) - 1) * size))
