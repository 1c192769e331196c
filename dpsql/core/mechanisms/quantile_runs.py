"""Quantiles among more candidates than can be enumerated: drawn by runs of candidates of equal score.

A column declared far wider than its data has millions of millions of candidates, each of them public. Between two
neighbouring values of rows no score changes. So the candidates of a group with rows at m different values lie in
2 m + 1 runs of equal score, and a run of L candidates weighs L exp(-rate gap). Drawing a run by its weight, and then
one of its candidates uniformly, is drawing a candidate by exp(-rate gap) among all of them, since
L exp(-rate gap) / Z * 1 / L = exp(-rate gap) / Z. The starts of runs are private, and affect only the distribution of
the candidate drawn. So all proofs for the exponential mechanism on a public grid (`exponential`, `quantiles`) hold
unchanged. The time and memory of a draw depend on the number of different values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.mechanisms.exponential import Chooser, exponential, exponents
from dpsql.core.mechanisms.quantiles import (
    Part,
    Recursion,
    Tree,
    assert_asked,
    edges_of,
    pieces_of,
    quantile_gaps,
    whole_part,
    whole_tree,
)
from dpsql.core.mechanisms.samplers import bernoulli_exp, uniform_below
from dpsql.schema.frozen import dataclass

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object where values reach 2^62

_LARGEST = 2**62
_MOST_DIGITS = 14
_FROM_TOP = (8, 3, 2)
"""The weights of the numbers with the most digits, and with one and two fewer, relative to all shorter ones."""
_BATCH = 2**17  # different values per pass, including the padding of shorter groups


@dataclass(frozen=True, slots=True)
class RoundNumbers:
    """The integers least..most as candidates of a draw, with multiplicities for round numbers: `stride` times for each
    of the strides (the least is 1) that divides the number. So the multiples of each stride have equal total weight,
    and rows at round values find them among as many other candidates between them.

    `decades`: in addition, a number with k digits fewer than the most has 10^k times that multiplicity, times 8, 3, 2,
    1, 1, ... for k = 0, 1, ...; 0 weighs as much as the multiples of one stride. So about half of all candidates are
    spread evenly, and few rows suffice in a range that is declared far too wide, if 0 is near. All of it is public."""

    least: int
    most: int
    strides: tuple[int, ...]
    decades: bool

    def __post_init__(self) -> None:
        largest = max(abs(self.least), abs(self.most)) + self.strides[-1]
        ordered = self.least <= self.most and self.strides[0] == 1 and list(self.strides) == sorted(set(self.strides))
        tens = not self.decades or (self.strides == _tens(self) and largest <= 2 * 10**_MOST_DIGITS)
        if not ordered or not tens or len(self.strides) * largest >= _LARGEST or 16 * self.total >= _LARGEST:
            raise ValueError("candidates are integers in order, and few enough to be counted")

    @property
    def total(self) -> int:
        """The number of candidates, with multiplicity."""
        ends = self.upto(np.array([self.least - 1, self.most]))
        return int(ends[1]) - int(ends[0])

    @property
    def odds(self) -> int:
        """An upper bound of the ratio of all candidates to the least multiplicity of a value."""
        return self.total // (_FROM_TOP[0] if self.decades else 1) + 1

    def upto(self, values: IntArray) -> IntArray:
        """Return how many candidates are at most each value, counted from an origin that is the same for all."""
        if not self.decades:
            return self._multiples(values)
        size = np.where(values < 0, -values - 1, values)
        digits = np.searchsorted(10 ** np.arange(1, len(self.strides)), size, side="right")
        before, times = _decades(len(self.strides))
        found = before[digits] + times[digits] * self._multiples(size)
        return np.asarray(np.where(values < 0, -found, found + 9 * 10 ** (len(self.strides) - 1)))

    def _multiples(self, values: IntArray) -> IntArray:
        """Return the number of multiples of all strides above 0 up to each value, with multiplicity."""
        return np.asarray(sum(values // stride * stride for stride in self.strides))

    def at(self, places: IntArray) -> IntArray:
        """Return the least value up to which there are more candidates than `places`, by bisection."""
        low, high = np.full(len(places), self.least), np.full(len(places), self.most)
        while (low < high).any():
            middle = low + (high - low) // 2
            above = self.upto(middle) > places
            low, high = np.where(above, low, middle + 1), np.where(above, middle, high)
        return low


def powers_of_ten(least: int, most: int) -> tuple[int, ...]:
    """Return the powers of ten below the larger absolute value of the two."""
    return tuple(10**k for k in range(len(str(max(abs(least), abs(most), 1) - 1))))


def _tens(of: RoundNumbers) -> tuple[int, ...]:
    return powers_of_ten(of.least, of.most)


@lru_cache(maxsize=32)
def _decades(many: int) -> tuple[IntArray, IntArray]:
    """Return, by the number of digits minus one: the amount to add to the multiples up to a number, times the second
    value, to get the candidates above 0 up to it; and that second value, the multiplicity."""
    before, times, count = [], [], 0
    for k in range(many):
        ends = [sum(end // 10**i * 10**i for i in range(many)) for end in (10**k - 1, 10 ** (k + 1) - 1)]
        shorter = many - 1 - k
        each = 10**shorter * (_FROM_TOP[shorter] if shorter < len(_FROM_TOP) else 1)
        before.append(count - each * ends[0])
        times.append(each)
        count += each * (ends[1] - ends[0])
    return np.array(before), np.array(times)


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows of groups 0, 1, ... at values: int64 arrays of equal length, ordered by group and value, counts above 0."""

    groups: IntArray
    values: IntArray
    counts: IntArray


def quantiles_among(
    of: RoundNumbers,
    counted: CountedRows,
    groups: int,
    qs: Sequence[Fraction],
    epsilon: Fraction,
    *,
    rows: int,
    bounded: bool,
    one_group: bool = False,
    tree: Tree | None = None,
    trial: Chooser | None = None,
) -> IntArray:
    """Return `quantiles` by the exponential mechanism, with these candidates as the places of its grid: values, of
    shape (groups, len(qs)). Arguments and privacy as there; rows lie at values among them. `trial`: chooses runs
    instead of a random draw.

    A value with several candidates has its rows equally at all of its places: they have one score, and count as one
    candidate that many times as likely, for all tables. This is the exponential mechanism with a public prior, with the
    same privacy proof: the spread is that of the scores, whatever the multiplicities."""
    assert_asked(qs, epsilon, rows)
    pieces = pieces_of(of.total) if len(qs) > 1 else 1
    tree, share = whole_tree(qs, tree), Fraction(epsilon) / rows
    values = np.empty((groups, len(qs)), np.int64)
    for batch, runs in _batches(of, counted, groups, pieces, qs):
        places = np.empty((len(batch), len(qs)), np.int64)
        how = (tuple(qs), share, bounded, exponential, places)
        part = whole_part(len(batch), (of.most - of.least + 1) * pieces)
        _RunRecursion(runs.edges, pieces, *how, runs, trial).fill(tree, part, one_group)
        values[batch] = places
    return values + of.least


def best_among(of: RoundNumbers, counted: CountedRows, groups: int, qs: Sequence[Fraction]) -> IntArray:
    """Return the first value of the best score for each quantile, shape (groups, len(qs)); for public rows only."""
    values = np.empty((groups, len(qs)), np.int64)
    for batch, runs in _batches(of, counted, groups, 1, qs):
        for place, q in enumerate(qs):
            gaps = quantile_gaps(runs.edges[:, :-1], runs.edges[:, 1:], runs.edges[:, -1:], q)
            first = ((gaps == 0) & (np.diff(runs.starts, axis=1) > 0)).argmax(axis=1)
            values[batch, place] = runs.piece(runs.starts[np.arange(len(batch)), first])
    return values + of.least


def _batches(
    of: RoundNumbers, counted: CountedRows, groups: int, pieces: int, qs: Sequence[Fraction]
) -> Iterator[tuple[IntArray, Runs]]:
    """Yield groups with similar numbers of different values together, and their runs."""
    many = np.bincount(counted.groups, minlength=groups)
    column = np.arange(len(counted.groups)) - (np.cumsum(many) - many)[counted.groups]
    width = 2 ** np.ceil(np.log2(many + 1)).astype(np.int64)  # at least one column more than there are values
    denominator = int(np.lcm.reduce([q.denominator for q in qs], dtype=object))
    for each in np.unique(width).tolist():
        alike = np.flatnonzero(width == each)
        for start in range(0, len(alike), max(1, _BATCH // each)):
            batch = alike[start : start + max(1, _BATCH // each)]
            number = np.full(groups, -1)
            number[batch] = np.arange(len(batch))
            rows = number[counted.groups]
            kept = rows >= 0
            shape = len(batch), int(many[batch].max()) + 1
            values, counts = np.full(shape, of.most + 1), np.zeros(shape, np.int64)
            values[rows[kept], column[kept]] = counted.values[kept]
            counts[rows[kept], column[kept]] = counted.counts[kept]
            yield batch, Runs.of(of, values, counts, pieces, denominator)


@dataclass(frozen=True, slots=True)
class Runs:
    """The candidates of a batch of groups. A value has `pieces` pieces, each with the value's multiplicity and an equal
    part of its rows' mass. Pieces are numbered from those of the least value. `values`: those with rows, followed by
    one beyond the greatest, shape (groups, m); `mass`: the mass below each, and the total last; `starts`, `edges`: the
    number of candidates, and the mass, before each run, and the totals last. Runs between values and runs of one value
    alternate, and may have no candidates."""

    numbers: RoundNumbers
    values: IntArray
    mass: IntArray
    pieces: int
    starts: IntArray
    edges: IntArray

    @classmethod
    def of(cls, of: RoundNumbers, values: IntArray, counts: IntArray, pieces: int, denominator: int) -> Runs:
        mass = edges_of(counts, 2 * pieces, denominator)
        before = pieces * int(of.upto(np.array([of.least - 1]))[0])
        ends = np.stack([of.upto(values - 1), of.upto(values)], axis=2).reshape(len(values), -1) * pieces - before
        every = pieces * of.total
        starts = np.pad(np.minimum(ends, every), ((0, 0), (1, 1)))
        starts[:, -1] = every
        return cls(of, values, mass, pieces, starts, np.repeat(mass, 2, axis=1))

    def draw(self, low: IntArray, high: IntArray, q: Fraction, rate: Fraction, trial: Chooser | None) -> IntArray:
        """Draw a piece of each group's part, which lies between two half pieces, by the exponential mechanism.

        A run of a value with rows has the score of its best piece. A run is drawn with that score, then one of its
        pieces uniformly, which is kept with probability exp(-rate (its own gap minus that of the run)); otherwise both
        are drawn again. So each piece is drawn in proportion to exp(-rate gap). At least one of a run's pieces has its
        score, so at least one draw in `pieces` is kept."""
        first, last = (self._candidates_below(end)[:, np.newaxis] for end in (low // 2, (high + 1) // 2))
        starts = np.minimum(np.maximum(self.starts, first), last)
        lengths = np.diff(starts, axis=1)
        every = np.arange(len(low))
        least, greatest = self._mass_below(every, low), self._mass_below(every, high)
        gaps = _gaps_inside(self.edges[:, :-1], self.edges[:, 1:], least[:, np.newaxis], greatest[:, np.newaxis], q)
        pieces, left = np.empty(len(low), np.int64), every
        while left.size:
            run = (trial or exponential)(gaps[left], rate, lengths[left])
            inside = 0 if trial else uniform_below(lengths[left, run])
            piece = self.piece(starts[left, run] + inside)
            ends = self._mass_below(left, 2 * piece), self._mass_below(left, 2 * piece + 2)
            more = _gaps_inside(*ends, least[left], greatest[left], q) - gaps[left, run]
            kept = more >= 0 if trial else _coins(more, rate)
            pieces[left[kept]] = piece[kept]
            left = left[~kept]
        return pieces

    def piece(self, places: IntArray) -> IntArray:
        """Return the pieces of candidates given by number, shape (groups,)."""
        places = places + self.pieces * self.numbers.upto(np.array([self.numbers.least - 1]))
        value = self.numbers.at(places // self.pieces)
        before = self.numbers.upto(value - 1)
        inside = (places - self.pieces * before) // (self.numbers.upto(value) - before)
        return np.asarray((value - self.numbers.least) * self.pieces + inside)

    def _candidates_below(self, piece: IntArray) -> IntArray:
        """Return how many candidates lie before a piece, by group."""
        value = self.numbers.least + piece // self.pieces
        before, origin = self.numbers.upto(value - 1), self.numbers.upto(np.array([self.numbers.least - 1]))
        inside = piece % self.pieces * (self.numbers.upto(value) - before)
        return np.asarray(self.pieces * (before - origin) + inside)

    def _mass_below(self, groups: IntArray, cut: IntArray) -> IntArray:
        """Return the mass below a half piece of each of these groups."""
        value, half = self.numbers.least + cut // (2 * self.pieces), cut % (2 * self.pieces)
        place = (self.values[groups] < value[:, np.newaxis]).sum(axis=1)
        below = self.mass[groups, place]
        here = np.where(self.values[groups, place] == value, self.mass[groups, place + 1] - below, 0)
        return np.asarray(below + here // (2 * self.pieces) * half)


@dataclass(frozen=True, slots=True)
class _RunRecursion(Recursion):
    """The recursion of quantiles with runs instead of single pieces."""

    runs: Runs
    trial: Chooser | None

    def _draw(self, part: Part, q: Fraction, rate: Fraction) -> IntArray:
        return self.runs.draw(part.low, part.high, q, rate / (2 * self.pieces * q.denominator), self.trial)


def _gaps_inside(below: IntArray, upto: IntArray, least: IntArray, greatest: IntArray, q: Fraction) -> IntArray:
    """Return gaps of what lies between these masses, within a part between two others."""
    held = [np.minimum(np.maximum(each, least), greatest) - least for each in (below, upto)]
    return quantile_gaps(held[0], held[1], greatest - least, q)


def _coins(gaps: IntArray, rate: Fraction) -> npt.NDArray[np.bool_]:
    """Flip coins of probability exp(-rate gap), as permute-and-flip does."""
    return bernoulli_exp(exponents(gaps, rate), lambda i: int(gaps[i]) * rate)
