"""AboveThreshold: which of a sequence of counts is the first at or below a threshold, at the cost of one question.

The sparse vector technique for one answer, as Lyu, Su, Li, "Understanding the Sparse Vector Technique for Differential
Privacy" (VLDB 2017), algorithm 1 with c = 1, for counts that fall (their comparison turned round) and whole noise.

Let f be the counts and T the threshold. Draw rho discrete Laplace of scale Delta / e1 once, and nu_i of scale s for
each query. The answer is the first i with f_i + nu_i <= T + rho; none, if there is no such i. Given rho = z,
    P(i) = prod_(j < i) P(nu_j > T + z - f_j) * P(nu_i <= T + z - f_i),
where the first factors grow with f and the last falls. Both laws satisfy P(x) <= exp(|m| / scale) P(x + m) for whole
m, and so do tails: P(nu <= t) <= exp(|m| / scale) P(nu <= t + m).

Privacy for monotone counts (f_j <= f'_j <= f_j + Delta for all j, or the same for f and f' exchanged; Delta is whole):
with s = Delta / e2 it is (e1 + e2)-DP. No order of the counts is needed.
  1. P(i; f) <= exp(e2) P(i; f'): at the same z the factors of j < i are no smaller for f', since f'_j >= f_j; in the
     last, T + z - f'_i is less than T + z - f_i by at most Delta, which costs exp(Delta / s) = exp(e2). And P(none; f)
     <= P(none; f').
  2. P(i; f') <= exp(e1 + e2) P(i; f): compare z + Delta for f' with z for f. P(rho = z + Delta) <= exp(e1) P(rho = z).
     The factors of j < i are no greater for f', since T + z + Delta - f'_j >= T + z - f_j. In the last, T + z + Delta -
     f'_i <= T + z - f_i + Delta since f'_i >= f_i, which costs exp(e2). The sum over z + Delta is the sum over all
     whole numbers. For none only exp(e1) is paid.
Otherwise (|f'_j - f_j| <= Delta, each either way, as when a unit's rows are changed) the last factor of step 2 moves by
up to 2 Delta, as f'_i may be f_i - Delta: s = 2 Delta / e2 makes that exp(e2) again; the rest holds as it stands, in
both directions, and (e1 + e2)-DP with it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.mechanisms.noise import CubeLaplace, Reach, drawable

IntArray: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]

MONOTONE_SPLIT = Fraction(1, 2)
GENERAL_SPLIT = Fraction(5, 13)
"""The share e1 / epsilon of the threshold's noise with the least variance of rho - nu: 2 (Delta / e1)^2 + 2 (k Delta /
e2)^2, k = 1 or 2, is least at e2 / e1 = k^(2/3) (Lyu, Su, Li 2017): 1 : 1, and 1 : 1.587, which 5 : 8 is near. A long
sequence, in which the lowest of many nu matters, gains a little from a smaller share."""


def first_below(
    counts: IntArray,
    threshold: int,
    epsilon: Fraction,
    *,
    sensitivity: int,
    monotone: bool,
    split: Fraction | None = None,
) -> int:
    """The index of the first query whose noisy count is at or below the noisy threshold; len(counts) if none is.

    counts: exact integers, shape (queries,), of use if they never rise; sensitivity: how far one unit moves each of
    them, a whole number; monotone: whether a neighbour moves all of them the same way (a unit added or removed, not
    changed); split: the part of epsilon that the threshold's noise gets, between 0 and 1. ValueError for others.
    Privacy: epsilon, proved above. All the noise is drawn at once: that of queries after the answer does not change it.
    """
    if counts.dtype.kind not in "iO" or counts.ndim != 1:
        raise ValueError("counts must be integers of shape (queries,)")
    of_threshold, of_query = threshold_noise(epsilon, sensitivity, monotone, split)
    bar = threshold + int(of_threshold.draw(1)[0, 0])
    # Python's integers: no sum can overflow, and the queries are few.
    noisy = counts.astype(object) + of_query.draw(len(counts))[0].astype(object)
    below = np.flatnonzero(noisy <= bar)
    return int(below[0]) if below.size else len(counts)


def threshold_noise(
    epsilon: Fraction, sensitivity: int, monotone: bool, split: Fraction | None = None
) -> tuple[CubeLaplace, CubeLaplace]:
    """The discrete Laplace laws of the threshold and of a query; arguments as for `first_below`."""
    share = split if split is not None else (MONOTONE_SPLIT if monotone else GENERAL_SPLIT)
    if epsilon <= 0 or sensitivity < 1 or not 0 < share < 1:
        raise ValueError("epsilon and sensitivity must be positive, and the split between 0 and 1")
    of_threshold = _law(sensitivity, epsilon * share)
    of_query = _law(sensitivity if monotone else 2 * sensitivity, epsilon * (1 - share))
    drawable(of_threshold)
    drawable(of_query)
    return of_threshold, of_query


def _law(steps: int, epsilon: Fraction) -> CubeLaplace:
    """Discrete Laplace noise of scale steps / epsilon; a scale rounded up only lessens the loss."""
    return CubeLaplace.calibrate(Reach(steps, Fraction(steps * steps), 1), epsilon)


def first_below_law(
    counts: IntArray,
    threshold: int,
    epsilon: Fraction,
    *,
    sensitivity: int,
    monotone: bool,
    split: Fraction | None = None,
) -> FloatArray:
    """The probabilities of the answers 0..queries of `first_below`, shape (queries + 1,); the sum over
    rho in the module's docstring, as far as 40 scales beyond all that the counts need."""
    of_threshold, of_query = threshold_noise(epsilon, sensitivity, monotone, split)
    distance = threshold - counts.astype(np.int64)
    reach = math.ceil(40 * max(of_threshold.scale, of_query.scale)) + int(np.abs(distance).max(initial=0)) + 1
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(z) / of_threshold.scale)
    margins = z[:, np.newaxis] + distance  # query i is below if nu_i is at most this
    above = np.cumprod(_upper_tail(margins + 1, of_query.scale), axis=1)
    reached = np.hstack([np.ones((len(z), 1)), above])  # all queries before are above
    stops = np.hstack([_upper_tail(-margins, of_query.scale), np.ones((len(z), 1))])
    return np.asarray(((weights / weights.sum())[:, np.newaxis] * reached * stops).sum(axis=0))


def _upper_tail(t: IntArray, scale: float) -> FloatArray:
    """P(nu >= t), and by symmetry P(nu <= -t), of the discrete Laplace law: a^t / (1 + a) for t >= 1, and else
    1 - P(nu >= 1 - t)."""
    a = math.exp(-1 / scale)
    right = np.exp(-np.maximum(t, 1) / scale) / (1 + a)
    left = 1 - np.exp(np.minimum(t - 1, 0) / scale) / (1 + a)
    return np.where(t >= 1, right, left)
