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
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.mechanisms.exponential import Chooser
from dpsql.errors import InternalError
from dpsql.schema.frozen import dataclass

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object where values reach 2^62

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
    edges = edges_of(counts, 1, q.denominator)
    return quantile_gaps(edges[:, :-1], edges[:, 1:], edges[:, -1:], q)


def rank_gaps_at(counts: IntArray, rank: int, from_top: bool) -> IntArray:
    """Scores for the fixed target `rank`, counted from the least row (from the greatest if `from_top`), as gaps of
    whole rows, shape (groups, g). With n < rank rows the best places are those beyond the last row, seen from where
    ranks are counted."""
    if rank < 0:
        raise ValueError("a rank is at least 0")
    edges = edges_of(counts[:, ::-1] if from_top else counts, 1)
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
    tree: Tree | None = None,
) -> IntArray:
    """Places of several quantiles, shape (groups, len(qs)), never decreasing within a group.

    counts: integers >= 0, shape (groups, g); qs: strictly ascending, in [0, 1]; epsilon: what all groups and quantiles
    together cost; rows: how many rows one unit has at most, over all groups; bounded: whether a neighbour has a unit's
    rows changed rather than added or removed; one_group: no row ever moves from one group to another; tree: which is
    drawn first and what each draw has, public. ValueError for others, InternalError for a tree that is worth more. A
    group without rows gives places uniform on the grid, or on what the quantiles drawn before leave of it.

    The recursion is that of Kaplan, Schnapp, Stemmer, "Differentially Private Approximate Quantiles" (ICML 2022): draw
    a quantile, then those on each side in the part of the grid and of the rows on that side. They give each level as
    much; here each draw has a part of epsilon of its own, and the parts of draws that follow each other add up to 1 at
    most. They suppose that no two rows are equal; on a grid many are, so here a place has pieces (`pieces_of`) of equal
    mass: the c rows at v stand for mass c spread evenly
    over [v, v + 1). The candidates are the pieces, and a part is cut in the middle of the piece drawn. A row is then
    partly in several parts, but its weights w there add up to 1.

    Privacy. In a part with the target q n a row of weight w moves below(v) and upto(v) by amounts from 0 to w and n by
    w. So below - q n moves by something in [-q w, (1 - q) w] and q n - upto by something in [-(1 - q) w, q w]: the
    spread is at most w 2 max(q, 1 - q), or w for q = 0 or 1, where below and n - upto alone matter. This is w times
    that of a whole row, and a draw has rate = part * epsilon / (rows * spread of a whole row). Let W be the weights of
    a unit's rows in a part, summed and divided by rows: the draw's log ratio is at most W part epsilon. What is drawn
    in the two parts that it leaves, of weights W' + W'' = W, costs W' epsilon times the most that parts add up to
    there, on any way down, and W'' times the like (induction): together at most W times the larger. So a part costs
    W epsilon times the most that parts add up to from its draw down, and all groups, in which W adds up to 1 at most,
    epsilon. A row changed is a row removed and one added, which doubles the spread below the first draw (`one_group`
    helps only there: a changed row keeps n in the whole group, but not in a part of it). With the exponential mechanism
    a draw is (W part epsilon)^2 / 8 as zero-concentrated privacy, and W'^2 + W''^2 <= W^2: the same with squares of
    parts in place of parts.
    """
    assert_asked(qs, epsilon, rows)
    if counts.ndim != 2 or not counts.shape[1]:
        raise ValueError("counts must have the shape (groups, places)")
    groups, grid = counts.shape
    pieces = pieces_of(grid) if len(qs) > 1 else 1
    tree = whole_tree(qs, tree)
    share = Fraction(epsilon) / rows
    # Mass in units of 1 / (2 pieces) rows: half a piece of c rows has mass c. The quantiles inside of parts are
    # quotients of differences of `qs`, so their denominators are at most the common one.
    denominator = math.lcm(*(q.denominator for q in qs))
    places = np.empty((groups, len(qs)), np.int64)
    step = max(_BATCH // (grid * pieces), 1)
    for start in range(0, groups, step):
        batch = slice(start, start + step)
        edges = edges_of(np.repeat(counts[batch], pieces, axis=1), 2, denominator)
        recursion = Recursion(edges, pieces, tuple(qs), share, bounded, chooser, places[batch])
        recursion.fill(tree, whole_part(len(edges), grid * pieces), one_group)
    return places


def assert_asked(qs: Sequence[Fraction], epsilon: Fraction, rows: int) -> None:
    """Raises ValueError where quantiles are not in order, or cost nothing."""
    if not qs or not all(0 <= q <= 1 for q in qs) or any(b <= a for a, b in pairwise(qs)):
        raise ValueError("quantiles must be strictly ascending and lie between 0 and 1")
    if epsilon <= 0 or rows < 1:
        raise ValueError("epsilon must be positive, and a unit has at least one row")


@dataclass(frozen=True, slots=True)
class Tree:
    """The quantile at a place is drawn at a part of epsilon, then those below and above it by their trees: public."""

    place: int
    part: Fraction
    below: Tree | None = None
    above: Tree | None = None

    def __post_init__(self) -> None:
        if self.part <= 0:
            raise ValueError("a draw needs a part of epsilon")

    @property
    def places(self) -> tuple[int, ...]:
        """From below to above."""
        below, above = ((each.places if each else ()) for each in (self.below, self.above))
        return (*below, self.place, *above)

    def along(self, power: int) -> Fraction:
        """The most that these powers of parts add up to along a way down."""
        following = (each.along(power) for each in (self.below, self.above) if each)
        return self.part**power + max(following, default=Fraction(0))


def whole_tree(qs: Sequence[Fraction], tree: Tree | None) -> Tree:
    """By default the middle one first, all levels as much. InternalError for others, or more than all of epsilon."""

    def middle(first: int, last: int) -> Tree | None:
        place = (first + last) // 2
        return None if first == last else Tree(place, each, middle(first, place), middle(place + 1, last))

    each = Fraction(1, len(qs).bit_length())
    whole = tree or middle(0, len(qs))
    if whole is None or whole.places != tuple(range(len(qs))) or whole.along(1) > 1:
        raise InternalError("quantiles would be drawn at more than is paid for")
    return whole


def whole_part(groups: int, pieces: int) -> Part:
    """All of so many groups."""
    first = np.zeros(groups, np.int64)
    return Part(first, first + 2 * pieces, Fraction(0), Fraction(1))


def rows_off(
    grid: int,
    qs: Sequence[Fraction],
    epsilon: Fraction,
    *,
    rows: int,
    bounded: bool,
    beta: Fraction,
    one_group: bool = False,
    tree: Tree | None = None,
) -> int:
    """How many rows the rank of any one of `quantiles` may be off, with probability 1 - beta and whatever the data are,
    but for half of the rows of the pieces where parts are cut. Arguments as there, on a grid of so many places.

    A draw is off by at most what `extreme_rank` says for its rate and all pieces as candidates. The rank that it aims
    at lies between those of its part's ends, as the ideal one does, at the same proportion: it is off by at most the
    worse of the two. So errors add up along the draws that lead to a quantile, which share beta (union bound)."""
    share = Fraction(epsilon) / rows
    candidates = grid * (pieces_of(grid) if len(qs) > 1 else 1)

    def worst(tree: Tree | None, low: Fraction, high: Fraction, before: tuple[Fraction, ...]) -> int:
        if tree is None:
            return 0
        q = qs[tree.place]
        rates = (*before, share * tree.part / rank_spread((q - low) / (high - low), bounded, one_group and not before))
        own = sum(extreme_rank(candidates, rate, beta / len(rates)) for rate in rates)
        return max(own, worst(tree.below, low, q, rates), worst(tree.above, q, high, rates))

    return worst(whole_tree(qs, tree), Fraction(0), Fraction(1), ())


def pieces_of(grid: int) -> int:
    """Pieces of a place, 16 to 64, fewer on larger grids: an upper quantile's rank can be off by half a piece of the
    rows at the place of a middle one."""
    return max(_FEWEST_PIECES, min(_MOST_PIECES, 2**20 // grid))


@dataclass(frozen=True, slots=True)
class Part:
    """An interval of each group's places in half pieces, low <= high of shape (groups,), and the quantiles that its
    ends stand for. Cuts are odd: in the middle of a piece."""

    low: IntArray
    high: IntArray
    q_low: Fraction
    q_high: Fraction


@dataclass(frozen=True, slots=True)
class Recursion:
    """The quantiles of one batch of groups, written to `places`; `edges` is the mass below each piece, `share` the
    epsilon of all draws for a unit of one row."""

    edges: IntArray
    pieces: int
    qs: tuple[Fraction, ...]
    share: Fraction
    bounded: bool
    chooser: Chooser
    places: IntArray

    def fill(self, tree: Tree | None, part: Part, one_group: bool = False) -> None:
        """Draw the quantiles of a tree, all of which lie in this part."""
        if tree is None:
            return
        q = self.qs[tree.place]
        inside = (q - part.q_low) / (part.q_high - part.q_low)
        piece = self._draw(part, inside, self.share * tree.part / rank_spread(inside, self.bounded, one_group))
        self.places[:, tree.place] = piece // self.pieces
        cut = 2 * piece + 1
        self.fill(tree.below, Part(part.low, cut, part.q_low, q))
        self.fill(tree.above, Part(cut, part.high, q, part.q_high))

    def _draw(self, part: Part, q: Fraction, rate: Fraction) -> IntArray:
        """A piece of each group's part, shape (groups,). Only pieces that lie in some group's part are looked at."""
        least, greatest = part.low // 2, (part.high - 1) // 2
        start, end = int(least.min()), int(greatest.max()) + 1
        low, high = self._mass_below(part.low), self._mass_below(part.high)
        edges = np.minimum(np.maximum(self.edges[:, start : end + 1], low), high) - low
        gaps = quantile_gaps(edges[:, :-1], edges[:, 1:], high - low, q)
        candidates = np.arange(start, end)
        allowed = (candidates >= least[:, np.newaxis]) & (candidates <= greatest[:, np.newaxis])
        return self.chooser(gaps, rate / (2 * self.pieces * q.denominator), allowed) + start

    def _mass_below(self, cut: IntArray) -> IntArray:
        """Shape (groups, 1): the mass below a cut, half of its piece's if it is odd."""
        ends = np.stack([cut // 2, (cut + 1) // 2], axis=1)
        return np.asarray(np.take_along_axis(self.edges, ends, axis=1).sum(axis=1, keepdims=True) // 2)


def edges_of(counts: IntArray, unit: int, factor: int = 1) -> IntArray:
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


def quantile_gaps(below: IntArray, upto: IntArray, total: IntArray, q: Fraction) -> IntArray:
    """denominator(q) * max(below - q total, q total - upto, 0)."""
    target = q.numerator * total
    return np.asarray(np.maximum(np.maximum(q.denominator * below - target, target - q.denominator * upto), 0))
