"""Candidate intervals for clip bounds, their weights, and one draw from all of them.

The score of a candidate I is the number of rows clipped on the side where more are clipped, max(below I, above I). Its
penalty grows with its width: the wider it is, the more rows it must save. All candidates and penalties are public.
  - Named candidates: [0, B], [-B, B] and [-B, 0] with two B per octave, so that few rows suffice if values begin at 0.
    For a column with a declared range: the parts of these inside the range, and the whole range.
  - Free candidates: [j u, (j + L) u] for u = 2^k, L = 6 or 8 and integers j, as far out as `digits` binary digits can
    represent j. They are 2^digits times as many, and are therefore grouped into classes by k, L and the distance of
    their middle from 0. The total weight of each class is at most a small part of the weight of the named candidates,
    and much less for wide ones: if there are few rows, free candidates are hardly ever drawn (`_FREE`).

The draw. No score changes between two values of rows: for one k and L, candidates form runs of equal score, at most two
for each place with rows. Runs of a class with one score are merged. One of the merged runs is drawn by its weight,
length times exp(-rate gap), and one of its candidates uniformly. As in `core.mechanisms.quantile_runs`, this is the
exponential mechanism over all single candidates.
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
"""The largest bound is 2^62."""
LENGTHS = (6, 8)
_FINE = 1_000
"""Scores and penalties split a row, and the rows that are worth an epsilon of 1, into at least this many parts."""
_LARGEST = 2**61
_SMALLEST = -34
"""The least log2 of u for reals: bounds of 2^-32 and more."""
_MIRRORED = 2
"""Extra half octaves for [-B, B], which is twice as wide, and for ranges of negative values only, which are rare."""
_OWNERS = 5
"""Half octaves deducted for the declared range, because it is likely."""
_STEEPER = 4.8
"""Narrowing a free interval by half an octave is worth this many times as much as for bounds from 0: rows clipped on
both sides offset each other."""
_FREE = 0.1
"""The total weight of all free intervals; the likeliest named interval has weight 1."""
_DEEP = 4
"""Up to this many octaves, an interval is likelier the narrower it is relative to its distance from 0."""
_LEAST_DEEP = 2
"""An interval less narrow than this many octaves is not penalised further: there the named intervals are better, and
cost less."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Free intervals [j u, (j + L) u] for one u and L: runs of j with equal score and class. `starts`: the first j of
    each run; `many`: the length of each run; `scores`: rows clipped; `far`: classes."""

    starts: Ints
    many: Ints
    scores: Ints
    far: Ints

    def put_together(self) -> tuple[Ints, Ints, Ints]:
        """Return class, score and number of intervals for each pair of class and score."""
        key = self.far * (int(self.scores.max(initial=0)) + 1) + self.scores
        order = np.argsort(key, kind="stable")
        alike = key[order]
        first = np.flatnonzero(np.append(True, alike[1:] != alike[:-1]))
        each = order[first]
        return self.far[each], self.scores[each], np.add.reduceat(self.many[order], first)

    def drawn(self, far: int, score: int, chance: bool) -> int:
        """Draw one j of a class and score uniformly; without chance return the first."""
        alike = np.flatnonzero((self.far == far) & (self.scores == score))
        ends = np.cumsum(self.many[alike])
        place = int(uniform_below(int(ends[-1]), 1)[0]) if chance else 0
        run = int(np.searchsorted(ends, place, side="right"))
        return int(self.starts[alike[run]]) + place - int(ends[run] - self.many[alike[run]])


@dataclass(frozen=True, slots=True)
class Intervals:
    """The candidates for a column of integers (`whole`) or reals. `outer`: the declared range, if there is one, to
    which values are clamped first; `digits`: the precision, in binary digits, of the places at which rows are counted.
    """

    whole: bool
    outer: Interval | None = None
    digits: int = DIGITS

    @property
    def widest(self) -> Interval:
        """The widest candidate."""
        most: Number = 2**FARTHEST if self.whole else 2.0**FARTHEST
        return self.outer or Interval(-most, most)

    @property
    def named(self) -> tuple[tuple[Interval, ...], tuple[float, ...]]:
        """The named candidates, smallest bounds first and the widest last, and the height of each in half octaves."""
        return _named(self)

    @property
    def scales(self) -> range:
        """The values of log2 u."""
        highest = FARTHEST - 2
        if self.outer is not None:  # at most twice as wide as the declared range
            highest = min(highest, math.frexp(float(self.outer.upper) - float(self.outer.lower))[1] - 2)
        return range(0 if self.whole else _SMALLEST, highest + 1)

    def steps(self, octave: float) -> float:
        """Return the half octaves from the least bounds up to 2^octave; below 1/16 reals have nine in total."""
        if self.whole:
            return 4 + 2 * octave
        return 17 + 2 * octave if octave >= -4 else 9 * (octave + 32) / 28

    def ends(self, scale: int, length: int) -> tuple[int, int]:
        """Return the least and the greatest j of free intervals."""
        most = 2 ** min(self.digits + 1, FARTHEST - scale)
        if self.outer is None:
            return -most, most - length
        low, high = (math.ldexp(float(end), -scale) for end in (self.outer.lower, self.outer.upper))
        return max(-most, math.floor(low) - length + 1), min(most - length, math.ceil(high) - 1)

    def free(self, scale: int, j: int, length: int) -> Interval:
        """Return the interval [j 2^scale, (j + length) 2^scale], cut to the declared range."""
        ends = (j, j + length)
        low, high = (each * 2**scale if self.whole else math.ldexp(each, scale) for each in ends)
        held = Interval(low, high)
        return held if self.outer is None else held.intersect(self.outer) or self.outer

    def far(self, j: Ints, length: int) -> Ints:
        """Return the class of free intervals: the octave of the middle in units of u, or of half the length if that is
        larger."""
        return np.asarray(np.frexp(np.maximum(np.abs(2 * j + length), length) - 0.5)[1] - 1)

    def runs(self, placed: PlacedRows, length: int) -> Runs | None:
        """Return the runs of free intervals of one length for the rows at one scale; None if there are none."""
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
        """Return the penalties of the named candidates, and of the free ones by scale and length for each class. A
        penalty is the log weight of the least bounds minus that of the candidate if there are no rows. `worth`: of half
        an octave."""
        return _penalties(self, worth)

    def penalty(self, held: Interval, worth: float) -> float:
        """Return the penalty of one candidate, as in `penalties`; 0 for any other interval."""
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
        """Return an upper bound on the total weight of all candidates."""
        return float(np.exp(-self.penalties(worth)[0]).sum()) + _FREE


@remembered(16)
def _turns(digits: int, length: int) -> Ints:
    """Return the values of j at which a new class of free intervals begins."""
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
    """Return the number of free intervals of each class."""
    found = of.runs(PlacedRows(scale, np.zeros(0, np.int64), np.zeros(1, np.int64), 0), length)
    many = np.zeros(of.digits + 3, dtype=np.int64)
    if found is not None:
        np.add.at(many, found.far, found.many)
    return many


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows in cells [c u, (c + 1) u) for u = 2^scale, ascending. `below`: the rows before each cell, and before the end
    of the range covered at this scale; `rows`: all rows."""

    scale: int
    cells: Ints
    below: Ints
    rows: int


def placed(of: Intervals, lead: LeadingDigits, grid: Grid) -> Iterator[PlacedRows]:
    """Yield the rows of a grid at each scale. A negative value belongs to the cell that it closes."""
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
    """Yield the runs of free intervals of one score, with scale and length."""
    for each in placed(of, lead, grid):
        for length in LENGTHS:
            runs = of.runs(each, length)
            if runs is not None:
                yield each.scale, length, runs


def clipped(of: Intervals, lead: LeadingDigits, grid: Grid) -> Ints:
    """Return the scores of the named intervals."""
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
    """All candidates for some rows, with equal ones grouped. `gaps`: in fractions of a row; `rate`: of the exponent,
    per such fraction; `many`: the size of each group. The named candidates come first, one by one, then the free ones
    of each of `kinds`: scale, length, class and score."""

    of: Intervals
    lead: LeadingDigits
    grid: Grid
    rate: Fraction
    gaps: NDArray[Any]
    many: Ints
    kinds: Ints

    @classmethod
    def all(cls, of: Intervals, lead: LeadingDigits, grid: Grid, worth: float, rate: Fraction) -> WeightedCandidates:
        """Weigh all candidates. `worth`: of half an octave; `rate`: of the exponent, per row."""
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
        """Return the candidate at a place, or a random one of its group; without chance the first of the group."""
        named = self.of.named[0]
        if place < len(named):
            return named[place]
        scale, length, far, score = self.kinds[:, place - len(named)].tolist()
        every = pieces(self.of, self.lead, self.grid)
        runs = next(each for *at, each in every if at == [scale, length])
        return self.of.free(scale, runs.drawn(far, score, chance), length)


@remembered(16)
def _in_parts(of: Intervals, worth: float, rate: Fraction) -> tuple[NDArray[Any], dict[tuple[int, int], NDArray[Any]]]:
    """Return the penalties in fractions of a row."""
    named, free = of.penalties(worth)

    def parts(penalties: Floats) -> NDArray[Any]:
        found = [round(Fraction(each) / rate) for each in penalties.tolist()]
        return np.array(found, dtype=object if max(found) >= _LARGEST else np.int64)

    return parts(named), {key: parts(each) for key, each in free.items()}
