"""Exact samplers of two mechanisms that choose one candidate by exact integer scores.

Scores reach these samplers as gaps: the best score of the group minus the candidate's own, whole numbers with minimum 0
in each group. Both mechanisms weigh a candidate by exp(-rate * gap) relative to the best one.

Privacy cost of a draw. For neighbouring tables with scores u and u' let d_i = u'_i - u_i, and let the *spread* D be the
largest max_i d_i - min_i d_i over all neighbours. Each draw is epsilon-DP with epsilon = rate * D.
  - If no score changes by more than Delta then D <= 2 Delta: rate = epsilon / (2 Delta).
  - If moreover all scores change in the same direction when a unit is added (monotone scores, such as counts of rows)
    then every d_i lies in [0, Delta], or every one in [-Delta, 0], so D <= Delta: rate = epsilon / Delta.
Groups are drawn independently. The log ratios of their draws add up, so a unit that changes scores in several groups
costs rate times the sum of the spreads that it causes there.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.cost import Cost
from dpsql.core.mechanisms.samplers import LazyUniform, bernoulli_exp, exp_bracket, random_words, uniform_below
from dpsql.schema.frozen import dataclass

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object where values reach 2^62
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]

_BATCH = 2**16  # candidates per pass, so that its arrays stay in the cache
_LARGEST = 2**62
_FAR = 2**60  # floats need no exponent beyond it: exp is 0 long before
_MARGIN = 2.0**-47


def spread_of_counts(rows: int, bounded: bool) -> int:
    """Return the largest spread of scores that count rows, summed over groups, by a unit of `rows` rows. Each row adds
    0 or 1 to every score, all in one direction; a changed row is one that leaves and one that enters."""
    return rows * (2 if bounded else 1)


class Chooser(Protocol):
    """A mechanism of this module."""

    def __call__(self, gaps: IntArray, rate: Fraction, allowed: Any = None, /) -> IntArray:
        """Return the chosen places, shape (groups,), from gaps of shape (groups, candidates)."""


def gaps_of(counts: IntArray) -> IntArray:
    """Return each group's largest count minus each count, shape (groups, candidates); exact for any integers."""
    _check_shape(counts)
    wide = counts.dtype.kind == "O" or bool((counts >= _LARGEST // 2).any() or (counts <= -_LARGEST // 2).any())
    exact = counts.astype(object) if wide else counts
    return np.asarray(exact.max(axis=1, keepdims=True) - exact)


def permute_and_flip(gaps: IntArray, rate: Fraction, allowed: BoolArray | None = None) -> IntArray:
    """Choose one place of each group, shape (groups,), by permute-and-flip (McKenna, Sheldon, NeurIPS 2020).

    gaps: integers >= 0, shape (groups, candidates), with a 0 in each group; rate > 0; allowed: the candidates that may
    be chosen, all if None (a 0 must be among them). Raises ValueError for other arguments.

    The mechanism goes through the candidates in a uniformly random order, flips a coin of probability p_i =
    exp(-rate * gap_i) for each and stops at the first success. Coins that are never used change nothing, so all may be
    flipped beforehand. They are independent of the order. Given the coins, the winner is the first success in a
    uniformly random order: a uniformly random success, which is drawn here. A candidate at gap 0 always succeeds, so
    there is a winner.

    Privacy: rate * D, D the spread. The winner is the largest of u_i + X_i for independent exponential X_i of that rate
    (Ding, Kifer and others, 2021, arXiv 2105.07260), since with s = exp(-rate (x - max u)) and x the winning sum
        P(i) = integral rate exp(-rate (x - u_i)) prod_(j != i) (1 - exp(-rate (x - u_j)))_+ dx
             = p_i integral_0^1 prod_(j != i) (1 - p_j s) ds = p_i E[1 / (1 + successes other than i)].
    Fix the X_j of the others. Then i wins if X_i > t = max_(j != i) (u_j + X_j) - u_i. The maximum changes by an amount
    between min d and max d, as u_i does, so t changes by at most D; and P(X_i > t + D) >= exp(-rate D) P(X_i > t).
    Hence P'(i) >= exp(-rate D) P(i). As zCDP no more than epsilon^2 / 2 is claimed: its log ratios need not lie in an
    interval of length epsilon, as those of `exponential` do.
    """
    _check(gaps, rate, allowed)
    chosen = np.empty(len(gaps), np.int64)
    for rows in _batches(gaps):
        flips = _flips(gaps[rows], rate)
        if allowed is not None:
            flips &= allowed[rows]
        successes = flips.sum(axis=1)
        places = np.flatnonzero(flips)  # group after group
        first = np.cumsum(successes) - successes
        chosen[rows] = places[first + uniform_below(successes)] % gaps.shape[1]
    return chosen


def _flips(gaps: IntArray, rate: Fraction) -> BoolArray:
    """Flip coins of probability exp(-rate * gap), in the shape of gaps. The exponent x of `exponents` is right to
    3 * 2^-53 x, and exp(-x) x <= 1 / e: within the error that `bernoulli_exp` allows."""
    flat = gaps.reshape(-1)
    coins = bernoulli_exp(exponents(flat, rate), lambda i: int(flat[i]) * rate)
    return coins.reshape(gaps.shape)


def exponential(gaps: IntArray, rate: Fraction, lengths: IntArray | BoolArray | None = None) -> IntArray:
    """Choose one place of each group, shape (groups,): P(i) proportional to length_i exp(-rate * gap_i), the
    exponential mechanism (McSherry, Talwar, FOCS 2007). Arguments as for `permute_and_flip`; lengths: the number of
    candidates of that gap that each place stands for, 0 for a forbidden place (integers or booleans, with a sum below
    2^62); 1 each if None.

    Drawn by inversion: with cumulative weights c_0 < c_1 < ... and total c the place is the number of c_m <= u c, u
    uniform. The floats are right to within (n + 63) 2^-50 c for n places. In units of 2^-53 c: an exponent x that is
    wrong by 3 * 2^-53 x (see `_flips`) costs 3 times its mean over the drawn distribution, which is at most log of the
    number of candidates, below 43 (their uniform distribution has a divergence of log(number / c) minus that mean from
    the drawn one, which is not below 0, and c >= 1); lengths and their product 2, cumulative sums 1 for each place,
    `exp` 8; all this twice, for c_m and for c; u and its product 3. `_MARGIN` is eight times that; within it integers
    decide.

    Privacy: the log ratio of P'(i) to P(i) is rate d_i - log(Z' / Z), with Z the sums of weights. Z' / Z lies between
    exp(rate min d) and exp(rate max d), so no ratio exceeds epsilon = rate * D. As zCDP it is epsilon^2 / 8 (Cesar,
    Rogers, ALT 2021): the log ratios L lie in an interval of length epsilon, so psi(a) = log E_P[exp(a L)] has a second
    derivative, a variance on that interval, of at most epsilon^2 / 4; and psi(0) = psi(1) = 0. So psi(a) <=
    a (a - 1) epsilon^2 / 8 for a > 1: the Renyi divergence of order a is at most a epsilon^2 / 8. The lengths of these
    intervals add up over a unit's groups, as its epsilons do.
    """
    _check(gaps, rate, None if lengths is None else lengths > 0)
    chosen = np.empty(len(gaps), np.int64)
    for rows in _batches(gaps):
        chosen[rows] = _invert(gaps[rows], rate, None if lengths is None else lengths[rows])
    return chosen


def _invert(gaps: IntArray, rate: Fraction, lengths: IntArray | BoolArray | None) -> IntArray:
    """Return the places of one batch of groups."""
    groups, candidates = gaps.shape
    words = random_words(groups)
    weights = np.exp(-exponents(gaps, rate))
    if lengths is not None:
        weights *= lengths
    sums = np.cumsum(weights, axis=1)
    target = words * 2.0**-64 * sums[:, -1]
    margin = (candidates + 63) * _MARGIN * sums[:, -1]
    places = (sums <= target[:, np.newaxis]).sum(axis=1)
    every = np.arange(groups)
    before = np.where(places > 0, sums[every, places - 1], -np.inf)
    after = np.where(places < candidates, sums[every, np.minimum(places, candidates - 1)], -np.inf)
    for i in np.flatnonzero((target - before < margin) | (after - target < margin)).tolist():
        usable = range(candidates) if lengths is None else np.flatnonzero(lengths[i]).tolist()
        many = [1 if lengths is None else int(lengths[i, j]) for j in usable]
        law = _ExactLaw([int(gaps[i, j]) for j in usable], rate, many)
        places[i] = usable[law.place(LazyUniform(int(words[i])))]
    return np.asarray(places)


class _ExactLaw:
    """Integer brackets of the cumulative probabilities of length exp(-rate * gap), of any requested precision."""

    def __init__(self, gaps: list[int], rate: Fraction, lengths: list[int] | None = None) -> None:
        self._gaps, self._rate, self._lengths = gaps, rate, lengths or [1] * len(gaps)
        self._precision, self._sums = -1, ([0], [0])

    def place(self, u: LazyUniform) -> int:
        """Return the first place whose cumulative probability is above u, by bisection; that of the last place is 1."""
        low, high = 0, len(self._gaps) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if u.below(partial(self.bracket, middle)) else (middle + 1, high)
        return low

    def bracket(self, place: int, precision: int) -> tuple[int, int]:
        """Return integers enclosing c_place / c * 2^precision. The quotient head / (head + tail) is least at the least
        head and the greatest tail; the guard bits absorb the number of candidates."""
        if precision != self._precision:
            self._precision, self._sums = precision, self._brackets(precision + sum(self._lengths).bit_length() + 8)
        lows, highs = self._sums
        least, greatest = lows[place], highs[place]
        bottom = (least << precision) // (least + highs[-1] - greatest)
        return bottom, -((-greatest << precision) // (greatest + lows[-1] - least))

    def _brackets(self, work: int) -> tuple[list[int], list[int]]:
        weights = {gap: exp_bracket(gap * self._rate, work) for gap in set(self._gaps)}
        lows = accumulate(weights[gap][0] * many for gap, many in zip(self._gaps, self._lengths, strict=True))
        highs = accumulate(weights[gap][1] * many for gap, many in zip(self._gaps, self._lengths, strict=True))
        return list(lows), list(highs)


@dataclass(frozen=True, slots=True)
class ChoiceSequence:
    """The mechanism of consecutive choices, with `epsilon` (rate times spread) for all together. `draws`: their number,
    if all have equal parts; otherwise 1 divided by the sum of the squares of their parts. `rho`: the rho for which
    `epsilon` was found, rounded down. `pure`: they are paid by epsilon, whatever the mechanism."""

    mechanism: str
    epsilon: Fraction
    draws: Fraction = Fraction(1)
    rho: Fraction = Fraction(0)
    pure: bool = False

    @property
    def loss(self) -> Cost:
        """The cost of the choices: epsilons add up, and so do rhos, which `exponential` has less of than its epsilon
        implies. (It is epsilon-DP and rho-zCDP at once: `Cost`, with all of the output for either part.)"""
        if self.mechanism != "exponential":
            return Cost.of(self.epsilon)
        return Cost(self.epsilon if self.pure else None, rho=max(self.rho, self.epsilon**2 / (8 * self.draws)))


def top_k(counts: IntArray, k: int, rate: Fraction, chooser: Chooser) -> IntArray:
    """Choose k different candidates of each group, shape (groups, k) in the order chosen, by peeling: each draw is made
    among those not yet chosen.

    counts: the scores, integers of shape (groups, candidates); 1 <= k <= candidates. Raises ValueError otherwise.

    Privacy: the changes of the remaining candidates' scores are some of the d_i, so each draw costs at most rate * D
    given those before it, and k draws k rate D (adaptive composition); with `exponential`, k (rate D)^2 / 8 as zCDP.
    (Peeling by `exponential` is one draw of Gumbel noise for all: Durfee, Rogers, NeurIPS 2019.)
    """
    _check_shape(counts)
    if not 1 <= k <= counts.shape[1]:
        raise ValueError("k must lie between 1 and the number of candidates")
    chosen = np.empty((len(counts), k), np.int64)
    for rows in _batches(counts):
        left = counts[rows].copy()
        names = np.tile(np.arange(counts.shape[1]), (len(left), 1))
        every = np.arange(len(left))
        for draw in range(k):
            places = chooser(gaps_of(left), rate)
            chosen[rows, draw] = names[every, places]
            for array in (left, names):  # the last candidate replaces the chosen one
                array[every, places] = array[:, -1]
            left, names = left[:, :-1], names[:, :-1]
    return chosen


def exponents(gaps: IntArray, rate: Fraction) -> FloatArray:
    """Return rate * gap in floats, in the shape of gaps: right to 3 * 2^-53 of it or to 2^-60; capped if exp is 0."""
    if gaps.dtype.kind == "O":
        exact = np.frompyfunc(lambda gap: float(min(gap * rate, Fraction(_FAR))), 1, 1)
        return np.asarray(exact(gaps), dtype=np.float64)
    if gaps.size and int(gaps.max()) * rate < Fraction(1, _FAR):
        return np.zeros(gaps.shape)  # a rate too small for floats
    return np.asarray(gaps * float(min(rate, Fraction(_FAR))))


def _batches(array: IntArray) -> Iterator[slice]:
    """Return slices of about `_BATCH` candidates of the groups."""
    groups, candidates = array.shape
    step = max(_BATCH // candidates, 1)
    return (slice(start, start + step) for start in range(0, groups, step))


def _check_shape(array: IntArray) -> None:
    if array.dtype.kind not in "iO" or array.ndim != 2 or not array.shape[1]:
        raise ValueError("scores must be integers of shape (groups, candidates), with at least one candidate")


def _check(gaps: IntArray, rate: Fraction, allowed: BoolArray | None) -> None:
    """Raise ValueError, which no data can cause: gaps are made to have minimum 0."""
    _check_shape(gaps)
    if rate <= 0:
        raise ValueError("the rate must be positive")
    zero = gaps == 0 if allowed is None else (gaps == 0) & allowed
    if (gaps < 0).any() or not zero.any(axis=1).all():
        raise ValueError("gaps must be at least 0, with a 0 among the candidates allowed in each group")
