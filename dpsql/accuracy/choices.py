"""Selection probabilities of the mechanisms in `exponential`, and the gaps of their selections.

Floats, for explanations and tests; the draws themselves use none of this. Gaps are integers >= 0 with minimum 0, shape
(candidates,); laws are probabilities of that shape. Results from the gaps of private data are private: only functions
of the number of candidates (`worst_gap`, `textbook_gap`) may be shown to an analyst.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.mechanisms.exponential import exponents

IntArray: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Law: TypeAlias = Callable[[IntArray, Fraction], FloatArray]

_PANELS = 8
_NODES = 32
_NEGLIGIBLE = 60.0  # exp(-60) of an integral is left out
_SMALL = 0.02
_BATCH = 2**20


# Choices


def exponential_law(gaps: IntArray, rate: Fraction) -> FloatArray:
    """Return P(i) = exp(-rate gap_i) / sum_j exp(-rate gap_j)."""
    weights = _acceptances(gaps, rate)
    return np.asarray(weights / weights.sum())


def permute_and_flip_law(gaps: IntArray, rate: Fraction) -> FloatArray:
    """Return P(i) = p_i integral_0^1 prod_(j != i) (1 - p_j s) ds, p_j = exp(-rate gap_j) (proof: `permute_and_flip`).

    Every factor is positive, so nothing cancels, unlike in sums over subsets. Gauss's rule of 32 nodes on 8 panels is
    exact for the polynomial of at most 64 candidates. For more, the integrand is below exp(-S s), S the sum of the
    other p_j, and the panels end where that is exp(-60)."""
    p = _acceptances(gaps, rate)
    end = min(1.0, _NEGLIGIBLE / max(float(p.sum()) - 1, 1e-9))
    places, shares = _rule()
    points, weights = places * end, shares * end
    step = max(_BATCH // len(points), 1)
    batches = [slice(start, start + step) for start in range(0, len(p), step)]
    logs = sum(np.log1p(-np.outer(p[batch], points)).sum(axis=0) for batch in batches)
    values = weights * np.exp(logs)
    others = [(values / (1 - np.outer(p[batch], points))).sum(axis=1) for batch in batches]
    return np.asarray(p * np.concatenate(others))


@lru_cache(maxsize=1)
def _rule() -> tuple[FloatArray, FloatArray]:
    """Return points of (0, 1) and their weights: Gauss's rule on each panel."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    points = (np.arange(_PANELS)[:, np.newaxis] + (nodes + 1) / 2) / _PANELS
    return points.reshape(-1), np.tile(weights / 2 / _PANELS, _PANELS)


def _acceptances(gaps: IntArray, rate: Fraction) -> FloatArray:
    if rate <= 0 or gaps.ndim != 1 or not gaps.size or gaps.min() != 0:
        raise ValueError("gaps must be integers of shape (candidates,) with minimum 0, and the rate positive")
    return np.exp(-exponents(gaps, rate))


# Gaps for given data


def success_probability(gaps: IntArray, law: FloatArray) -> float:
    """Return the probability that a best candidate is selected."""
    return float(law[gaps == 0].sum())


def expected_gap(gaps: IntArray, law: FloatArray) -> float:
    """Return the mean gap of the selected candidate."""
    return float((law * np.asarray(gaps, dtype=np.float64)).sum())


def gap_exceeded(gaps: IntArray, law: FloatArray, beta: float) -> int:
    """Return the least t with P(gap > t) <= beta."""
    order = np.argsort(gaps, kind="stable")[::-1]
    beyond = np.cumsum(law[order])  # summed from the small ends
    within = np.flatnonzero(beyond > beta)
    return int(gaps[order[within[0]]]) if within.size else 0


# Gaps on the worst data


def textbook_gap(candidates: int, rate: Fraction, beta: float) -> float:
    """Return a gap that is exceeded with probability at most beta: ln(candidates / beta) / rate, which is (2 Delta /
    epsilon) ln(k / beta) for rate = epsilon / (2 Delta) (Dwork, Roth 2014, corollary 3.12). The exact one is
    `worst_gap`."""
    return math.log(candidates / beta) / float(rate)


def exponential_excess(candidates: int, rate: Fraction, t: int) -> float:
    """Return the largest P(gap > t) of the exponential mechanism on any data.

    Candidates beyond t have weights of at most exp(-rate (t + 1)), one with gap 0 has weight 1. So with b of them the
    probability is at most b w / (b w + 1), which is largest for all but one: one candidate at gap 0, all others at t +
    1."""
    others = (candidates - 1) * math.exp(-float(rate) * (t + 1))
    return others / (1 + others)


def permute_and_flip_excess(candidates: int, rate: Fraction, t: int) -> float:
    """Return the largest P(gap > t) of permute-and-flip on any data: again with one candidate at gap 0, all others at t
    + 1.

    The winner has the largest score with exponential noise added (`permute_and_flip`). Take the same noise for two data
    sets. Raise a candidate beyond t to t + 1, or lower one within t (other than a best one) to t + 1. If a candidate
    beyond t won before, one still wins: the largest noisy score beyond t is no smaller, and that of the others no
    greater. Then, with k candidates and p = exp(-rate (t + 1)), the best one wins with probability integral_0^1 (1 - p
    s)^(k - 1) ds = (1 - (1 - p)^k) / (k p)."""
    k, p = candidates, math.exp(-float(rate) * (t + 1))
    if k * p > _SMALL:
        return max(0.0, 1 + math.expm1(k * math.log1p(-p)) / (k * p))
    # 1 minus the binomial series, whose first term is 1: (k-1) p / 2 - (k-1)(k-2) p^2 / 6 + ...
    term, terms = 1.0, []
    for j in range(1, min(k, 12)):
        term *= -(k - j) * p / (j + 1)
        terms.append(-term)
    return math.fsum(terms)


def worst_gap(excess: Callable[[int, Fraction, int], float], candidates: int, rate: Fraction, beta: float) -> int:
    """Return the least t with P(gap > t) <= beta on any data with so many candidates, by `exponential_excess` or
    `permute_and_flip_excess`, which decrease with t."""
    if candidates < 1 or rate <= 0 or not beta > 0:
        raise ValueError("there must be a candidate, and rate and beta positive")
    low, high = -1, 0  # the excess at low is above beta, at high not
    while excess(candidates, rate, high) > beta:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(candidates, rate, middle) > beta else (low, middle)
    return high
