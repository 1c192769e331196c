"""Quantiles, minima and maxima on a public grid, scored by the distance of a place's ranks from the target rank.

A group is a row of counts: the number of rows at each of the places 0..g-1. For a place v, below(v) rows are less than
v and upto(v) are at most v. The rows at v have the ranks from below(v) to upto(v), and the score of v is
    u(v) = -min over r in [below(v), upto(v)] of |r - target| = -max(below(v) - target, target - upto(v), 0).
Some place has score 0 if 0 <= target <= n, as the intervals cover [0, n].

Sensitivity of a score to one row for the target q n, 0 <= q <= 1 (for the spread D and why epsilon = rate * D, see
`exponential`). Add a row at x. Then n grows by 1, and
    v < x: below and upto stay, so below - q n changes by -q and q n - upto by q;
    v = x: only upto grows, so they change by -q and by q - 1;
    v > x: both grow, so they change by 1 - q and by q - 1.
Each changes by at most max(q, 1 - q) either way, and so does their maximum with 0: the sensitivity is max(q, 1 - q),
and D <= 2 max(q, 1 - q). For q = 0 the score is -below(v), which one row changes by 0 or -1; for q = 1 it is upto(v) -
n, likewise: D <= 1.
    A row that changes from x to y, both in one group, keeps n and changes below(v) and upto(v) by -1, 0 or 1, so
scores by at most 1: D <= 2, and for q = 0 or 1, where all change in one direction, D <= 1. A row that leaves one group
for another changes each group like a row removed or added.
    For a fixed rank as target an added row changes each of below and upto by 0 or 1 and the target not at all:
sensitivity 1, D <= 2; the same for a changed row.
Several rows of a unit are added one after the other: spreads add up.
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
    """Return the largest spread of the scores for the target q n, summed over groups, by one row: a row added or
    removed; if `bounded`, a changed row, which may move to another group unless there is only `one_group`. Proof: the
    module's docstring."""
    one_way = q in {0, 1}
    if bounded and one_group:
        return Fraction(1 if one_way else 2)
    added = Fraction(1) if one_way else 2 * max(q, 1 - q)
    return 2 * added if bounded else added


def fixed_rank_spread(bounded: bool, one_group: bool = False) -> Fraction:
    """Return the same for a fixed rank as target."""
    return Fraction(4 if bounded and not one_group else 2)


def rank_gaps(counts: IntArray, q: Fraction) -> IntArray:
    """Return scores for the target q n as gaps, shape (groups, g), in units of 1 / denominator(q): divide a rate per
    row by it. A group without rows has all gaps 0, so that every place is equally likely.

    counts: integers >= 0, shape (groups, g); 0 <= q <= 1. Raises ValueError for others.
    """
    if not 0 <= q <= 1:
        raise ValueError("a quantile lies between 0 and 1")
    edges = edges_of(counts, 1, q.denominator)
    return quantile_gaps(edges[:, :-1], edges[:, 1:], edges[:, -1:], q)


def rank_gaps_at(counts: IntArray, rank: int, from_top: bool) -> IntArray:
    """Return scores for the fixed target `rank`, counted from the least row (from the greatest if `from_top`), as gaps
    of whole rows, shape (groups, g). With n < rank rows the best places are those beyond the last row, in the direction
    of counting."""
    if rank < 0:
        raise ValueError("a rank is at least 0")
    edges = edges_of(counts[:, ::-1] if from_top else counts, 1)
    distance = np.maximum(np.maximum(edges[:, :-1] - rank, rank - edges[:, 1:]), 0)
    gaps = distance - distance.min(axis=1, keepdims=True)
    return np.asarray(gaps[:, ::-1] if from_top else gaps)


def extreme_rank(grid: int, rate: Fraction, beta: Fraction = Fraction(1, 20)) -> int:
    """Return the least target rank for a minimum or maximum such that the answer lies beyond all rows with probability
    at most beta, for any data of at least that many rows; 0 < beta < 1.

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
    """Return the places of several quantiles, shape (groups, len(qs)), never decreasing within a group.

    counts: integers >= 0, shape (groups, g); qs: strictly ascending, in [0, 1]; epsilon: the cost of all groups and
    quantiles together; rows: the maximum number of rows of one unit, over all groups; bounded: whether neighbours have
    a unit's rows changed rather than added or removed; one_group: no row ever moves from one group to another; tree:
    the order and the parts of the draws, public. Raises ValueError for others, InternalError for a tree that costs
    more. A group without rows gives places uniform on the grid, or on what earlier draws leave of it.

    The recursion is that of Kaplan, Schnapp, Stemmer, "Differentially Private Approximate Quantiles" (ICML 2022): draw
    a quantile, then those on each side in the part of the grid and of the rows on that side. They give each level an
    equal part of epsilon. Here each draw has its own part, and the parts of consecutive draws add up to at most 1. They
    assume that no two rows are equal. On a grid many are, so here a place has pieces (`pieces_of`) of equal mass: the c
    rows at v stand for mass c spread evenly over [v, v + 1). The candidates are the pieces, and a part is cut in the
    middle of the piece drawn. A row is then partly in several parts, but its weights w there add up to 1.

    Privacy. In a part with the target q n a row of weight w changes below(v) and upto(v) by amounts from 0 to w and n
    by w. So below - q n changes by an amount in [-q w, (1 - q) w] and q n - upto by one in [-(1 - q) w, q w]: the
    spread is at most w 2 max(q, 1 - q), or w for q = 0 or 1, where only below or n - upto matters. This is w times that
    of a whole row, and a draw has rate = part * epsilon / (rows * spread of a whole row). Let W be the weights of a
    unit's rows in a part, summed and divided by rows: the draw's log ratio is at most W part epsilon. By induction, the
    draws in the two parts that it leaves, of weights W' + W'' = W, cost W' epsilon times the largest sum of parts along
    any way down there, and W'' epsilon times the like: together at most W times the larger. So a part costs W epsilon
    times the largest sum of parts from its draw down, and all groups, in which W adds up to at most 1, epsilon. A
    changed row is a row removed and one added, which doubles the spread below the first draw (`one_group` helps only
    in the first draw: a changed row keeps n in the whole group, but not in a part of it). With the exponential
    mechanism a draw is (W part epsilon)^2 / 8 as zCDP, and W'^2 + W''^2 <= W^2: the same with squares of parts instead
    of parts.
    """
    assert_asked(qs, epsilon, rows)
    if counts.ndim != 2 or not counts.shape[1]:
        raise ValueError("counts must have the shape (groups, places)")
    groups, grid = counts.shape
    pieces = pieces_of(grid) if len(qs) > 1 else 1
    tree = whole_tree(qs, tree)
    share = Fraction(epsilon) / rows
    # Mass in units of 1 / (2 pieces) rows: half a piece of c rows has mass c. The quantiles inside parts are quotients
    # of differences of `qs`, so their denominators are at most the common one.
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
    """Raise ValueError if quantiles are not in order, or if epsilon or rows are not positive."""
    if not qs or not all(0 <= q <= 1 for q in qs) or any(b <= a for a, b in pairwise(qs)):
        raise ValueError("quantiles must be strictly ascending and lie between 0 and 1")
    if epsilon <= 0 or rows < 1:
        raise ValueError("epsilon must be positive, and a unit has at least one row")


@dataclass(frozen=True, slots=True)
class Tree:
    """A public tree of draws: the quantile at `place` is drawn with `part` of epsilon, then those on either side."""

    place: int
    part: Fraction
    below: Tree | None = None
    above: Tree | None = None

    def __post_init__(self) -> None:
        if self.part <= 0:
            raise ValueError("a draw needs a part of epsilon")

    @property
    def places(self) -> tuple[int, ...]:
        """All places of the tree, in ascending order."""
        below, above = ((each.places if each else ()) for each in (self.below, self.above))
        return (*below, self.place, *above)

    def along(self, power: int) -> Fraction:
        """Return the largest sum of these powers of parts along any way down."""
        following = (each.along(power) for each in (self.below, self.above) if each)
        return self.part**power + max(following, default=Fraction(0))


def whole_tree(qs: Sequence[Fraction], tree: Tree | None) -> Tree:
    """Return the tree; by default the middle first, equal levels. Raises InternalError if invalid or too costly."""

    def middle(first: int, last: int) -> Tree | None:
        place = (first + last) // 2
        return None if first == last else Tree(place, each, middle(first, place), middle(place + 1, last))

    each = Fraction(1, len(qs).bit_length())
    whole = tree or middle(0, len(qs))
    if whole is None or whole.places != tuple(range(len(qs))) or whole.along(1) > 1:
        raise InternalError("quantiles would be drawn at more than is paid for")
    return whole


def whole_part(groups: int, pieces: int) -> Part:
    """Return the part that is all of each group."""
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
    """Return the maximum rank error of any one of `quantiles`, with probability 1 - beta and for any data, except for
    half of the rows of the pieces where parts are cut. Arguments as there, on a grid of `grid` places.

    The error of a draw is at most `extreme_rank` for its rate with all pieces as candidates. The target rank of a draw
    lies between those of its part's ends, as the ideal one does, at the same proportion: its error is at most the
    larger of the ends' errors. So errors add up along the draws that lead to a quantile, which share beta (union
    bound)."""
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
    """Return the number of pieces of a place, 16 to 64, fewer on larger grids: an upper quantile's rank error can be
    half a piece of the rows at the place of a middle one."""
    return max(_FEWEST_PIECES, min(_MOST_PIECES, 2**20 // grid))


@dataclass(frozen=True, slots=True)
class Part:
    """An interval of each group's places in half pieces, low <= high of shape (groups,), and the quantiles at its ends.
    Cuts are odd: in the middle of a piece."""

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
        """Return a piece of each group's part, shape (groups,). Considers only pieces in some group's part."""
        least, greatest = part.low // 2, (part.high - 1) // 2
        start, end = int(least.min()), int(greatest.max()) + 1
        low, high = self._mass_below(part.low), self._mass_below(part.high)
        edges = np.minimum(np.maximum(self.edges[:, start : end + 1], low), high) - low
        gaps = quantile_gaps(edges[:, :-1], edges[:, 1:], high - low, q)
        candidates = np.arange(start, end)
        allowed = (candidates >= least[:, np.newaxis]) & (candidates <= greatest[:, np.newaxis])
        return self.chooser(gaps, rate / (2 * self.pieces * q.denominator), allowed) + start

    def _mass_below(self, cut: IntArray) -> IntArray:
        """Return the mass below a cut, shape (groups, 1); half of its piece's mass if the cut is odd."""
        ends = np.stack([cut // 2, (cut + 1) // 2], axis=1)
        return np.asarray(np.take_along_axis(self.edges, ends, axis=1).sum(axis=1, keepdims=True) // 2)


def edges_of(counts: IntArray, unit: int, factor: int = 1) -> IntArray:
    """Return unit * below(v), with unit * n last, shape (groups, g + 1). The type is int64 if all values times
    `factor`, and sums of two such, stay below 2^62; otherwise Python integers."""
    if counts.dtype.kind not in "iO" or counts.ndim != 2 or not counts.shape[1] or (counts < 0).any():
        raise ValueError("counts must be integers of at least 0, shape (groups, places)")
    rows = int(counts.max(initial=0)) * counts.shape[1]
    if rows < 2 * _LARGEST:  # so the sum is exact
        rows = int(counts.sum(axis=1).max(initial=0))
    highest = rows * unit * factor * 2
    exact = counts.astype(object if highest >= _LARGEST else np.int64)
    edges = np.zeros((len(counts), counts.shape[1] + 1), dtype=exact.dtype)
    np.cumsum(exact * unit, axis=1, out=edges[:, 1:])
    return edges


def quantile_gaps(below: IntArray, upto: IntArray, total: IntArray, q: Fraction) -> IntArray:
    """Return denominator(q) * max(below - q total, q total - upto, 0)."""
    target = q.numerator * total
    return np.asarray(np.maximum(np.maximum(q.denominator * below - target, target - q.denominator * upto), 0))
