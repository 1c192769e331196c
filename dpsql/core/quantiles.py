"""Quantiles, minima and maxima on a public grid, chosen by how far a place's ranks are from the rank asked for.

A group is a row of counts: how many rows lie at each of the places 0..g-1. Of a place v, below(v) rows are less than v
and upto(v) are at most v. The rows at v have the ranks from below(v) to upto(v), and the score of v is
    u(v) = -min over r in [below(v), upto(v)] of |r - target| = -max(below(v) - target, target - upto(v), 0).
Some place has score 0 if 0 <= target <= n, as the intervals cover [0, n].

How far one row moves a score for the target q n, 0 <= q <= 1 (the spread D and why epsilon = rate * D: `exponential`).
Add a row at x. Then n grows by 1, and
    v < x: below and upto stay, so below - q n moves by -q and q n - upto by q;
    v = x: only upto grows, so they move by -q and by q - 1;
    v > x: both grow, so they move by 1 - q and by q - 1.
Each moves by at most max(q, 1 - q) either way, and so does their maximum with 0: the sensitivity is max(q, 1 - q), and
D <= 2 max(q, 1 - q). For q = 0 the score is -below(v), which one row moves by 0 or -1; for q = 1 it is upto(v) - n,
likewise: D <= 1.
    A row that changes from x to y, both in one group, leaves n alone and moves below(v) and upto(v) by -1, 0 or 1, so
scores by at most 1: D <= 2, and for q = 0 or 1, where all move the same way, D <= 1. A row that leaves one group for
another moves each as a row removed or added does.
    For a fixed rank as target a row added moves each of below and upto by 0 or 1 and the target not at all:
sensitivity 1, D <= 2; a row changed the same.
Several rows of a unit come one after the other: spreads add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.exponential import Chooser
from dpsql.errors import InternalError
from dpsql.schema.frozen import dataclass

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object where values reach 2^62
Order: TypeAlias = Mapping[tuple[int, int], int]
"""Which of the quantiles first..last-1 is drawn first in their part: a public tree; the middle one where it is silent.
No more levels are drawn than are paid for, whatever it says."""

_LARGEST = 2**62
_BATCH = 2**17  # pieces of places per pass
_MOST_PIECES = 64
_FEWEST_PIECES = 16


def rank_spread(q: Fraction, bounded: bool, one_group: bool = False) -> Fraction:
    """The largest spread of the scores for the target q n, summed over groups, that one row causes: a row added or
    removed; if `bounded`, a row changed, which may take it from one group to another unless there is `one_group` only.
    Proof: the module's docstring."""
    one_way = q in {0, 1}
    if bounded and one_group:
        return Fraction(1 if one_way else 2)
    added = Fraction(1) if one_way else 2 * max(q, 1 - q)
    return 2 * added if bounded else added


def fixed_rank_spread(bounded: bool, one_group: bool = False) -> Fraction:
    """The same for a fixed rank as target."""
    return Fraction(4 if bounded and not one_group else 2)


def rank_gaps(counts: IntArray, q: Fraction) -> IntArray:
    """Scores for the target q n as gaps, shape (groups, g), in units of 1 / denominator(q): a rate per row is to be
    divided by it. A group without rows has all gaps 0, so that every place is equally likely.

    counts: integers >= 0, shape (groups, g); 0 <= q <= 1. ValueError for others.
    """
    if not 0 <= q <= 1:
        raise ValueError("a quantile lies between 0 and 1")
    edges = _edges(counts, 1, q.denominator)
    return _quantile_gaps(edges[:, :-1], edges[:, 1:], edges[:, -1:], q)


def rank_gaps_at(counts: IntArray, rank: int, from_top: bool) -> IntArray:
    """Scores for the fixed target `rank`, counted from the least row (from the greatest if `from_top`), as gaps of
    whole rows, shape (groups, g). With n < rank rows the best places are those beyond the last row, seen from where
    ranks are counted."""
    if rank < 0:
        raise ValueError("a rank is at least 0")
    edges = _edges(counts[:, ::-1] if from_top else counts, 1)
    distance = np.maximum(np.maximum(edges[:, :-1] - rank, rank - edges[:, 1:]), 0)
    gaps = distance - distance.min(axis=1, keepdims=True)
    return np.asarray(gaps[:, ::-1] if from_top else gaps)


def extreme_rank(grid: int, rate: Fraction, beta: Fraction = Fraction(1, 20)) -> int:
    """The least rank, by which a minimum or maximum is to be asked for, such that the answer lies beyond all rows with
    probability at most beta, whatever the data of at least so many rows; 0 < beta < 1.

    At most grid - 1 places are beyond all rows, each with a gap of `rank`, and some place has gap 0. So by the
    exponential mechanism their probability is at most w / (1 + w), w = (grid - 1) exp(-rate * rank): at most beta for
    rank >= ln((grid - 1)(1 - beta) / beta) / rate. Permute-and-flip exceeds no gap with a larger probability than the
    exponential mechanism (McKenna, Sheldon, NeurIPS 2020). The rank is public: it depends on no data.
    """
    odds = (grid - 1) * (1 - beta) / beta
    return max(0, math.ceil(math.log(odds) / rate)) if odds > 0 else 0


def quantiles(
    counts: IntArray,
    qs: Sequence[Fraction],
    epsilon: Fraction,
    *,
    rows: int,
    bounded: bool,
    chooser: Chooser,
    one_group: bool = False,
    order: Order | None = None,
) -> IntArray:
    """Places of several quantiles, shape (groups, len(qs)), never decreasing within a group.

    counts: integers >= 0, shape (groups, g); qs: strictly ascending, in [0, 1]; epsilon: what all groups and quantiles
    together cost; rows: how many rows one unit has at most, over all groups; bounded: whether a neighbour has a unit's
    rows changed rather than added or removed; one_group: no row ever moves from one group to another; order: which is
    drawn first, public. ValueError for others. A group without rows gives places uniform on the grid, or on what the
    quantiles drawn before leave of it.

    The recursion is that of Kaplan, Schnapp, Stemmer, "Differentially Private Approximate Quantiles" (ICML 2022): draw
    a quantile, then those on each side in the part of the grid and of the rows on that side, each level with
    epsilon / levels, levels = floor(log2(m)) + 1 for m quantiles. They suppose that no two rows are equal; on a grid
    many are, so here a place has pieces (`_pieces`) of equal mass: the c rows at v stand for mass c spread evenly over
    [v, v + 1). The candidates are the pieces, and a part is cut in the middle of the piece drawn. A row is then
    partly in several parts, but its weights w there add up to 1.

    Privacy. In a part with the target q n a row of weight w moves below(v) and upto(v) by amounts from 0 to w and n by
    w. So below - q n moves by something in [-q w, (1 - q) w] and q n - upto by something in [-(1 - q) w, q w]: the
    spread is at most w 2 max(q, 1 - q), or w for q = 0 or 1, where below and n - upto alone matter. This is w times
    that of a whole row, and each draw has rate = epsilon / levels / (rows * spread of a whole row). The log ratios of
    the draws of a level, given those before, add up over parts and groups to at most epsilon / levels times the sum
    of w / rows over the unit's rows, which is at most 1. Levels add up to epsilon. A row changed is a row removed and
    one added, which doubles the spread below the first level (`one_group` helps only there: a changed row keeps n in
    the whole group, but not in a part of it). With the exponential mechanism the lengths of intervals add up in the
    same way: a level is (epsilon / levels)^2 / 8 as zero-concentrated privacy.
    """
    _checked(qs, epsilon, rows)
    if counts.ndim != 2 or not counts.shape[1]:
        raise ValueError("counts must have the shape (groups, places)")
    groups, grid = counts.shape
    pieces = _pieces(grid) if len(qs) > 1 else 1
    share = Fraction(epsilon) / len(qs).bit_length() / rows
    # Mass in units of 1 / (2 pieces) rows: half a piece of c rows has mass c. The quantiles inside of parts are
    # quotients of differences of `qs`, so their denominators are at most the common one.
    denominator = math.lcm(*(q.denominator for q in qs))
    places = np.empty((groups, len(qs)), np.int64)
    step = max(_BATCH // (grid * pieces), 1)
    for start in range(0, groups, step):
        batch = slice(start, start + step)
        edges = _edges(np.repeat(counts[batch], pieces, axis=1), 2, denominator)
        recursion = _Recursion(edges, pieces, tuple(qs), share, bounded, one_group, chooser, places[batch], order or {})
        recursion.fill(0, len(qs), _whole(len(edges), grid * pieces), len(qs).bit_length())
    return places


def _checked(qs: Sequence[Fraction], epsilon: Fraction, rows: int) -> None:
    """Raises ValueError where quantiles are not in order, or cost nothing."""
    if not qs or not all(0 <= q <= 1 for q in qs) or any(b <= a for a, b in pairwise(qs)):
        raise ValueError("quantiles must be strictly ascending and lie between 0 and 1")
    if epsilon <= 0 or rows < 1:
        raise ValueError("epsilon must be positive, and a unit has at least one row")


def _whole(groups: int, pieces: int) -> _Part:
    """All of so many groups."""
    first = np.zeros(groups, np.int64)
    return _Part(first, first + 2 * pieces, Fraction(0), Fraction(1))


def rows_off(
    grid: int,
    qs: Sequence[Fraction],
    epsilon: Fraction,
    *,
    rows: int,
    bounded: bool,
    beta: Fraction,
    one_group: bool = False,
    order: Order | None = None,
) -> int:
    """How many rows the rank of any one of `quantiles` may be off, with probability 1 - beta and whatever the data are,
    but for half of the rows of the pieces where parts are cut. Arguments as there, on a grid of so many places.

    A draw is off by at most what `extreme_rank` says for its rate and all pieces as candidates. The rank that it aims
    at lies between those of its part's ends, as the ideal one does, at the same proportion: it is off by at most the
    worse of the two. So errors add up along the draws that lead to a quantile, which share beta (union bound)."""
    share = Fraction(epsilon) / len(qs).bit_length() / rows
    candidates = grid * (_pieces(grid) if len(qs) > 1 else 1)

    def worst(first: int, last: int, low: Fraction, high: Fraction, before: tuple[Fraction, ...]) -> int:
        if first == last:
            return 0
        middle = (order or {}).get((first, last), (first + last) // 2)
        q = qs[middle]
        inside = (q - low) / (high - low)
        whole = last - first == len(qs)
        rates = (*before, share / rank_spread(inside, bounded, whole and one_group))
        own = sum(extreme_rank(candidates, rate, beta / len(rates)) for rate in rates)
        return max(own, worst(first, middle, low, q, rates), worst(middle + 1, last, q, high, rates))

    return worst(0, len(qs), Fraction(0), Fraction(1), ())


def _pieces(grid: int) -> int:
    """Pieces of a place, 16 to 64, fewer on larger grids: an upper quantile's rank can be off by half a piece of the
    rows at the place of a middle one."""
    return max(_FEWEST_PIECES, min(_MOST_PIECES, 2**20 // grid))


@dataclass(frozen=True, slots=True)
class _Part:
    """An interval of each group's places in half pieces, low <= high of shape (groups,), and the quantiles that its
    ends stand for. Cuts are odd: in the middle of a piece."""

    low: IntArray
    high: IntArray
    q_low: Fraction
    q_high: Fraction


@dataclass(frozen=True, slots=True)
class _Recursion:
    """The quantiles of one batch of groups, written to `places`; `edges` is the mass below each piece, `share` the
    epsilon of a draw for a unit of one row."""

    edges: IntArray
    pieces: int
    qs: tuple[Fraction, ...]
    share: Fraction
    bounded: bool
    one_group: bool
    chooser: Chooser
    places: IntArray
    order: Order

    def fill(self, first: int, last: int, part: _Part, levels: int) -> None:
        """Draw the quantiles first..last-1, all of which lie in this part, in so many levels. Raises InternalError
        where the order takes more."""
        if first == last:
            return
        middle = self.order.get((first, last), (first + last) // 2)
        if not levels or not first <= middle < last:
            raise InternalError("quantiles would be drawn in more levels than are paid for")
        q = self.qs[middle]
        whole = last - first == len(self.qs)
        inside = (q - part.q_low) / (part.q_high - part.q_low)
        piece = self._draw(part, inside, whole and self.one_group)
        self.places[:, middle] = piece // self.pieces
        cut = 2 * piece + 1
        self.fill(first, middle, _Part(part.low, cut, part.q_low, q), levels - 1)
        self.fill(middle + 1, last, _Part(cut, part.high, q, part.q_high), levels - 1)

    def _draw(self, part: _Part, q: Fraction, one_group: bool) -> IntArray:
        """A piece of each group's part, shape (groups,). Only pieces that lie in some group's part are looked at."""
        least, greatest = part.low // 2, (part.high - 1) // 2
        start, end = int(least.min()), int(greatest.max()) + 1
        low, high = self._mass_below(part.low), self._mass_below(part.high)
        edges = np.minimum(np.maximum(self.edges[:, start : end + 1], low), high) - low
        gaps = _quantile_gaps(edges[:, :-1], edges[:, 1:], high - low, q)
        candidates = np.arange(start, end)
        allowed = (candidates >= least[:, np.newaxis]) & (candidates <= greatest[:, np.newaxis])
        rate = self.share / rank_spread(q, self.bounded, one_group)
        return self.chooser(gaps, rate / (2 * self.pieces * q.denominator), allowed) + start

    def _mass_below(self, cut: IntArray) -> IntArray:
        """Shape (groups, 1): the mass below a cut, half of its piece's if it is odd."""
        ends = np.stack([cut // 2, (cut + 1) // 2], axis=1)
        return np.asarray(np.take_along_axis(self.edges, ends, axis=1).sum(axis=1, keepdims=True) // 2)


def _edges(counts: IntArray, unit: int, factor: int = 1) -> IntArray:
    """Shape (groups, g + 1): unit * below(v), and unit * n last. Of int64 if all of it times `factor`, and sums of two
    such, stay below 2^62; else of Python's integers."""
    if counts.dtype.kind not in "iO" or counts.ndim != 2 or not counts.shape[1] or (counts < 0).any():
        raise ValueError("counts must be integers of at least 0, shape (groups, places)")
    rows = int(counts.max(initial=0)) * counts.shape[1]
    if rows < 2 * _LARGEST:  # so that the sum is exact
        rows = int(counts.sum(axis=1).max(initial=0))
    highest = rows * unit * factor * 2
    exact = counts.astype(object if highest >= _LARGEST else np.int64)
    edges = np.zeros((len(counts), counts.shape[1] + 1), dtype=exact.dtype)
    np.cumsum(exact * unit, axis=1, out=edges[:, 1:])
    return edges


def _quantile_gaps(below: IntArray, upto: IntArray, total: IntArray, q: Fraction) -> IntArray:
    """denominator(q) * max(below - q total, q total - upto, 0)."""
    target = q.numerator * total
    return np.asarray(np.maximum(np.maximum(q.denominator * below - target, target - q.denominator * upto), 0))
