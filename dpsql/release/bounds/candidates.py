"""The intervals that bounds are chosen from, how likely each is, and one draw among all of them.

A candidate I is scored by the rows that it would clip on the side where these are more, max(below I, above I), and has
a penalty: the wider it is, the more rows it must spare. All candidates and penalties are public.
  - Named ones: [0, B], [-B, B] and [-B, 0] for B two to an octave, so that few rows suffice where values begin at 0; of
    a column with a range of its owner's, their parts in it, and all of it.
  - Free ones: [j u, (j + L) u] for u = 2^k, L = 6 or 8 and whole j of either sign, as far out as `digits` binary digits
    can tell j. There are 2^digits times as many. So they are dealt out into classes, by k, L and how far out their
    middle lies; each class weighs, all of it together, no more than a small part of what the named ones weigh, and
    wide ones much less: where there are few rows, the free ones are hardly ever drawn (`_FREE`).

A draw. Between two values of rows no score changes: for one k and L, candidates lie in runs of equal score, at most
two for each place where rows are. Runs of a class with one score are put together. One of these is drawn by its
weight, length times exp(-rate gap), and one of its candidates uniformly: as in `core.mechanisms.quantile_runs`, that is
the exponential mechanism among all candidates, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import Grid, LeadingDigits
from dpsql.core.mechanisms.samplers import uniform_below
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number
from dpsql.schema.memoization import remembered

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DIGITS = 20
FARTHEST = 62
"""No bound is beyond 2^62."""
LENGTHS = (6, 8)
_FINE = 1_000
"""Scores and penalties are in so many parts of a row at least, and of what is worth an epsilon of 1."""
_LARGEST = 2**61
_SMALLEST = -34
"""Of the logarithm of u, for reals: bounds of 2^-32 and more."""
_MIRRORED = 2
"""Half octaves more for [-B, B], which is twice as wide, and for values that are all negative, which are rare."""
_OWNERS = 5
"""Half octaves less for the range that an owner gave: it is likely."""
_STEEPER = 4.8
"""Of free intervals, half an octave narrower is worth so many times as much as of bounds from 0: rows that are clipped
on both sides make up for each other."""
_FREE = 0.1
"""The weight of all free intervals together, of which the likeliest named one has 1."""
_DEEP = 4
"""Up to so many octaves, an interval is the likelier the narrower it is beside how far out it lies."""
_LEAST_DEEP = 2
"""What is less narrow than by so many octaves is no less likely for that: there the named ones are better, and cost
less."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Free intervals [j u, (j + L) u] for one u and L: runs of j of equal score, in one class each. `starts`: the first
    j of each; `many`: how many there are; `scores`: rows clipped; `far`: classes."""

    starts: Ints
    many: Ints
    scores: Ints
    far: Ints

    def put_together(self) -> tuple[Ints, Ints, Ints]:
        """Classes, scores and how many intervals, for each class and score."""
        key = self.far * (int(self.scores.max(initial=0)) + 1) + self.scores
        order = np.argsort(key, kind="stable")
        alike = key[order]
        first = np.flatnonzero(np.append(True, alike[1:] != alike[:-1]))
        each = order[first]
        return self.far[each], self.scores[each], np.add.reduceat(self.many[order], first)

    def drawn(self, far: int, score: int, chance: bool) -> int:
        """The j of one of a class and score, each as likely; without chance the first."""
        alike = np.flatnonzero((self.far == far) & (self.scores == score))
        ends = np.cumsum(self.many[alike])
        place = int(uniform_below(int(ends[-1]), 1)[0]) if chance else 0
        run = int(np.searchsorted(ends, place, side="right"))
        return int(self.starts[alike[run]]) + place - int(ends[run] - self.many[alike[run]])


@dataclass(frozen=True, slots=True)
class Intervals:
    """The candidates for a column of integers (`whole`) or reals. `outer`: its owner's range, if there is one, in which
    values are held before; `digits`: how fine places are that rows are counted at."""

    whole: bool
    outer: Interval | None = None
    digits: int = DIGITS

    @property
    def widest(self) -> Interval:
        """The widest bounds that can be chosen."""
        most: Number = 2**FARTHEST if self.whole else 2.0**FARTHEST
        return self.outer or Interval(-most, most)

    @property
    def named(self) -> tuple[tuple[Interval, ...], tuple[float, ...]]:
        """Candidates near 0, the least bounds first and the widest last, and how many half octaves each stands up."""
        return _named(self)

    @property
    def scales(self) -> range:
        """The logarithms of u."""
        highest = FARTHEST - 2
        if self.outer is not None:  # at most twice as wide as that
            highest = min(highest, math.frexp(float(self.outer.upper) - float(self.outer.lower))[1] - 2)
        return range(0 if self.whole else _SMALLEST, highest + 1)

    def steps(self, octave: float) -> float:
        """How many half octaves 2^octave stands above the least bounds; below 1/16 reals have nine in all."""
        if self.whole:
            return 4 + 2 * octave
        return 17 + 2 * octave if octave >= -4 else 9 * (octave + 32) / 28

    def ends(self, scale: int, length: int) -> tuple[int, int]:
        """The least and the greatest j of free intervals."""
        most = 2 ** min(self.digits + 1, FARTHEST - scale)
        if self.outer is None:
            return -most, most - length
        low, high = (math.ldexp(float(end), -scale) for end in (self.outer.lower, self.outer.upper))
        return max(-most, math.floor(low) - length + 1), min(most - length, math.ceil(high) - 1)

    def free(self, scale: int, j: int, length: int) -> Interval:
        """The interval from j 2^scale of so many 2^scale, in the owner's range."""
        ends = (j, j + length)
        low, high = (each * 2**scale if self.whole else math.ldexp(each, scale) for each in ends)
        held = Interval(low, high)
        return held if self.outer is None else held.intersect(self.outer) or self.outer

    def far(self, j: Ints, length: int) -> Ints:
        """The class of free intervals: the octave of u that the middle is in, or half the length if that is farther."""
        return np.asarray(np.frexp(np.maximum(np.abs(2 * j + length), length) - 0.5)[1] - 1)

    def runs(self, placed: PlacedRows, length: int) -> Runs | None:
        """Free intervals of one length, by what rows there are at one scale; None where there are none."""
        least, greatest = self.ends(placed.scale, length)
        if greatest < least:
            return None
        turns = _turns(self.digits, length)
        edges = np.sort(np.concatenate([placed.cells - length + 1, placed.cells + 1, turns, [least, greatest + 1]]))
        edges = edges[np.searchsorted(edges, least) : np.searchsorted(edges, greatest + 1, side="right")]
        edges = edges[np.append(True, edges[1:] != edges[:-1])]
        starts = edges[:-1]
        below = placed.below[np.searchsorted(placed.cells, starts)]
        above = placed.rows - placed.below[np.searchsorted(placed.cells, starts + length)]
        return Runs(starts, np.diff(edges), np.maximum(below, above), self.far(starts, length))

    def penalties(self, worth: float) -> tuple[Floats, dict[tuple[int, int], Floats]]:
        """The logarithms of what candidates weigh less than the least bounds where there are no rows: of the named
        ones, and of the free ones by scale and length, for each class; `worth`: of half an octave."""
        return _penalties(self, worth)

    def penalty(self, held: Interval, worth: float) -> float:
        """How much less one candidate weighs than the least bounds, as in `penalties`; 0 of any other interval."""
        named, free = self.penalties(worth)
        if held in self.named[0]:
            return float(named[self.named[0].index(held)])
        width, fitting = float(held.upper) - float(held.lower), []
        for scale, length in free:
            j = float(held.lower) / math.ldexp(1.0, scale)
            if width == math.ldexp(length, scale) and j.is_integer():
                fitting.append(float(free[scale, length][self.far(np.array([int(j)]), length)[0]]))
        return min(fitting, default=0.0)

    def weight(self, worth: float) -> float:
        """What all candidates weigh together, at most."""
        return float(np.exp(-self.penalties(worth)[0]).sum()) + _FREE


@remembered(16)
def _turns(digits: int, length: int) -> Ints:
    """Where one class of free intervals ends and another begins."""
    powers = 2 ** np.arange(1, digits + 3)
    return np.concatenate([(powers - length) // 2 + 1, (-powers - length) // 2])


@remembered(16)
def _named(of: Intervals) -> tuple[tuple[Interval, ...], tuple[float, ...]]:
    octaves = [k / 2 for k in range(2 * FARTHEST + 1)]
    bounds: dict[Number, float] = {}
    if of.whole:
        for k, octave in enumerate(octaves):
            bounds.setdefault(math.isqrt(2**k), of.steps(octave) if k else 0)
    else:
        small = [*range(-32, -4, 4), *(k / 2 for k in range(-8, 0))]
        bounds = {2.0**octave: of.steps(octave) for octave in (*small, *octaves)}
    steps_of: dict[Interval, float] = {}
    for bound, steps in bounds.items():
        for low, high, more in ((0, bound, 0), (-bound, bound, _MIRRORED), (-bound, 0, _MIRRORED)):
            part = Interval(low, high) if of.outer is None else Interval(low, high).intersect(of.outer)
            if part is not None and part.lower < part.upper:
                steps_of.setdefault(part, steps + more)
    if of.outer is not None:
        width = float(of.outer.upper) - float(of.outer.lower)
        steps_of[of.outer] = max(0, of.steps(math.log2(width)) - _OWNERS)
    wide = steps_of.pop(of.widest)
    return (*steps_of, of.widest), (*steps_of.values(), wide)


@remembered(16)
def _penalties(of: Intervals, worth: float) -> tuple[Floats, dict[tuple[int, int], Floats]]:
    steeper = 2 * _STEEPER * worth  # for an octave
    free = {}
    classes = np.arange(of.digits + 3)
    share = _FREE / max(1, 2 * len(of.scales) * (of.digits + 4))
    for scale in of.scales:
        size = np.array([of.steps(scale + octave) for octave in classes.tolist()])
        for length in LENGTHS:
            deep = classes - math.log2(length)
            log_many = np.log(np.maximum(_many(of, scale, length), 1))
            likely = (
                log_many - math.log(share) + (math.log(2) + steeper) * np.clip(_DEEP - deep, 0, _DEEP - _LEAST_DEEP)
            )
            free[scale, length] = np.maximum(worth * size - steeper * deep, likely)
    return worth * np.array(of.named[1]), free


def _many(of: Intervals, scale: int, length: int) -> Ints:
    """How many free intervals there are of each class."""
    found = of.runs(PlacedRows(scale, np.zeros(0, np.int64), np.zeros(1, np.int64), 0), length)
    many = np.zeros(of.digits + 3, dtype=np.int64)
    if found is not None:
        np.add.at(many, found.far, found.many)
    return many


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows in cells [c u, (c + 1) u) for u = 2^scale, ascending: `below` those before each cell, and before the end of
    what can be told at this scale; `rows`: all of them."""

    scale: int
    cells: Ints
    below: Ints
    rows: int


def placed(of: Intervals, lead: LeadingDigits, grid: Grid) -> Iterator[PlacedRows]:
    """Rows at some places of a grid, at each scale. Of a negative value the cell is the one that it closes."""
    sizes, below = lead.sizes(grid.points), np.append(0, np.cumsum(grid.counts))
    values = np.where(grid.points < lead.middle, -sizes, sizes)
    first = last = int(np.searchsorted(grid.points, lead.middle))
    cells, ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for scale in of.scales:
        reach = math.ldexp(1.0, of.digits + 1 + scale)
        start, stop = int(np.searchsorted(values, -reach, side="right")), int(np.searchsorted(values, reach))
        low, high = (
            np.floor(np.ldexp(sizes[each], -scale)).astype(np.int64)
            for each in (slice(start, first), slice(last, stop))
        )
        cells = np.concatenate([~low, cells >> 1, high])
        ends = np.concatenate([below[start + 1 : first + 1], ends, below[last + 1 : stop + 1]])
        kept = np.append(cells[1:] != cells[:-1], np.ones(min(1, len(cells)), bool))  # the last of each
        cells, ends = cells[kept], ends[kept]
        first, last = start, stop
        yield PlacedRows(scale, cells, np.append(below[start], ends), int(below[-1]))


def pieces(of: Intervals, lead: LeadingDigits, grid: Grid) -> Iterator[tuple[int, int, Runs]]:
    """Free intervals in runs of one score, by scale and length."""
    for each in placed(of, lead, grid):
        for length in LENGTHS:
            runs = of.runs(each, length)
            if runs is not None:
                yield each.scale, length, runs


def clipped(of: Intervals, lead: LeadingDigits, grid: Grid) -> Ints:
    """Scores of the named intervals."""
    named = of.named[0]
    lows, highs = (
        np.array([float(end) for end in ends]) for ends in zip(*((i.lower, i.upper) for i in named), strict=True)
    )
    before = np.append(0, np.cumsum(grid.counts))
    below = before[np.searchsorted(grid.points, lead.places(lows))]
    upto = before[np.searchsorted(grid.points, lead.places(highs), side="right")]
    return np.asarray(np.maximum(below, before[-1] - upto))


@dataclass(frozen=True, slots=True)
class WeightedCandidates:
    """All candidates for some rows, those that are alike together: `gaps` in parts of a row, the `rate` of the exponent
    for one, and how `many` there are. First the named ones, one by one; then free ones of each of `kinds`: scale,
    length, class and score."""

    of: Intervals
    lead: LeadingDigits
    grid: Grid
    rate: Fraction
    gaps: NDArray[Any]
    many: Ints
    kinds: Ints

    @classmethod
    def all(cls, of: Intervals, lead: LeadingDigits, grid: Grid, worth: float, rate: Fraction) -> WeightedCandidates:
        """`worth`: of half an octave; `rate`: of the exponent, for a row."""
        fine = _FINE * max(1, math.ceil(rate))
        first, free = _in_parts(of, worth, rate / fine)
        scores = clipped(of, lead, grid)
        kind = np.int64 if fine * max(1, int(grid.counts.sum())) < _LARGEST else object
        gaps, many, kinds = [scores.astype(kind) * fine + first], [np.ones(len(scores), dtype=np.int64)], []
        for scale, length, runs in pieces(of, lead, grid):
            far, score, alike = runs.put_together()
            gaps.append(score.astype(kind) * fine + free[scale, length][far])
            many.append(alike)
            same = np.ones(len(far), dtype=np.int64)
            kinds.append(np.stack([scale * same, length * same, far, score]))
        together = np.concatenate(gaps)
        found = np.concatenate([np.zeros((4, 0), dtype=np.int64), *kinds], axis=1)
        return cls(of, lead, grid, rate / fine, together - together.min(), np.concatenate(many), found)

    def drawn(self, place: int, *, chance: bool) -> Interval:
        """The candidate, or one of those alike, at a place; without chance the first of them."""
        named = self.of.named[0]
        if place < len(named):
            return named[place]
        scale, length, far, score = self.kinds[:, place - len(named)].tolist()
        every = pieces(self.of, self.lead, self.grid)
        runs = next(each for *at, each in every if at == [scale, length])
        return self.of.free(scale, runs.drawn(far, score, chance), length)


@remembered(16)
def _in_parts(of: Intervals, worth: float, rate: Fraction) -> tuple[NDArray[Any], dict[tuple[int, int], NDArray[Any]]]:
    """Penalties in parts of a row."""
    named, free = of.penalties(worth)

    def parts(penalties: Floats) -> NDArray[Any]:
        found = [round(Fraction(each) / rate) for each in penalties.tolist()]
        return np.array(found, dtype=object if max(found) >= _LARGEST else np.int64)

    return parts(named), {key: parts(each) for key, each in free.items()}
