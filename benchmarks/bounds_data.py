"""Data sets whose bounds are to be chosen, and what a choice reads of them: rows beyond candidate bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SETS, SEED = 10, 20
DATA: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "lognormal(0, 1)": lambda draw, n: draw.lognormal(0, 1, n),
    "lognormal(0, 2)": lambda draw, n: draw.lognormal(0, 2, n),
    "uniform(0, 100)": lambda draw, n: draw.uniform(0, 100, n),
    "Pareto(1.5)": lambda draw, n: 1 + draw.pareto(1.5, n),
    "normal(1000, 10)": lambda draw, n: draw.normal(1000, 10, n),
    "normal(0, 1)": lambda draw, n: draw.normal(0, 1, n),
    "constant 7": lambda _, n: np.full(n, 7.0),
    "integers 0..9": lambda draw, n: draw.integers(0, 10, n).astype(np.float64),
    "all zeros": lambda _, n: np.zeros(n),
}


@dataclass(frozen=True)
class Grid:
    """Candidate bounds, ascending from 0, and the half octaves s up to each, as the rule counts them."""

    bounds: Floats
    steps: Ints

    @classmethod
    def of(cls, integer: bool) -> Grid:
        """2^k and 1.5 2^k up to 2^62, from 2^-4 on, of integers from 1. Below, 2^-32, 2^-28, ... count as an octave
        each: fewer rows then suffice to get past small values, of which few columns consist."""
        halves = np.arange(0 if integer else -8, 125)
        fine = np.where(halves % 2, 1.5, 1.0) * 2.0 ** (halves // 2)
        coarse = np.empty(0) if integer else 2.0 ** np.arange(-32, -4, 4)
        first = 4 if integer else 2 * len(coarse) + 2
        steps = np.concatenate([[0], 2 * np.arange(1, len(coarse) + 1), first + np.arange(len(fine))])
        bounds = np.concatenate([[0.0], coarse, fine])
        kept = (bounds % 1 == 0) | (not integer)
        return cls(bounds[kept], steps[kept].astype(np.int64))


GRIDS = {integer: Grid.of(integer) for integer in (False, True)}


@dataclass(frozen=True)
class Side:
    """One side of 0: for every bound of a grid the rows beyond it, and the sum of sizes clipped to it."""

    grid: Grid
    beyond: Ints
    clipped: Floats

    @classmethod
    def of(cls, sizes: Floats, grid: Grid) -> Side:
        ordered = np.sort(sizes)
        inside = np.searchsorted(ordered, grid.bounds, side="right")
        sums = np.concatenate([[0.0], np.cumsum(ordered)])[inside]
        beyond = len(ordered) - inside
        return cls(grid, beyond, sums + beyond * grid.bounds)


@dataclass(frozen=True)
class Sample:
    """A data set, its rows above 0, its rows below 0, and all its rows by size."""

    values: Floats | Ints
    rows: int
    total: float
    above: Side
    below: Side
    size: Side


@lru_cache(maxsize=64)
def samples(name: str, rows: int, sets: int) -> list[Sample]:
    """The same data sets for every way and every epsilon."""
    draw = np.random.default_rng([SEED, rows, *name.encode()])
    integer = name.startswith("integers")
    grid, found = GRIDS[integer], []
    for scale in np.ones(sets) if integer else 2.0 ** draw.random(sets):
        values = DATA[name](draw, rows) * scale
        sides = (Side.of(sizes, grid) for sizes in (values[values > 0], -values[values < 0], np.abs(values)))
        held = values.astype(np.int64) if integer else values
        found.append(Sample(held, rows, float(values.sum()), *sides))
    return found
