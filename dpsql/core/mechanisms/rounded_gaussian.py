"""An exact sampler of the normal distribution rounded to integers, vectorised with NumPy.

Y = s N for a standard normal N and s^2 = variance; the sample is the integer nearest to Y. Y is sampled as in Karney,
"Sampling Exactly from the Normal Distribution" (ACM TOMS 2016), algorithm N: |N| = k + x, with a whole k of weight
exp(-k^2 / 2) and x uniform on [0, 1), accepted with probability exp(-x (2k + x) / 2), since k^2 + x (2k + x) =
(k + x)^2. x is a real number: its first 64 bits are drawn, and more if they do not decide (`samplers.LazyUniform`).

Three decisions, each as exact as in `samplers`:
* k by inversion: u against the sums c_m of the first m + 1 weights, enclosed by integers.
* the acceptance by floats outside the margin of `samplers`. With t = x (2k + x) / 2 the roundings and the unknown bits
  of x change t by at most 2^-51 t + 2^-63 (k + 1), which costs exp(-t) times that: below 2^-50, as exp(-t) t <= 1/2 and
  k < 2^10 (a larger one has a probability of 2^-700000). Inside the margin u and x are both refined.
* floor(s (k + x) + 1/2) by integers of 64 bits that enclose s and x; if they leave two values, by more bits of x.
The sign is a fair bit; that of 0 does not matter. A value on a boundary has probability 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.samplers import IntArray

Words: TypeAlias = npt.NDArray[np.uint64]

_ACCEPTED = 0.71
"""Slightly less than sqrt(pi / 2) / (the sum of exp(-k^2 / 2)), the share of accepted proposals."""
_BITS = (32, 59)
"""Bits of the integer that stands for s; the shorter one is used if it is enough."""
_POINT = (16, 6)
"""The minimum number of those bits after the point; with fewer each draw is decided separately."""
_MOST = 14
"""Larger k, one in 10^48, are handled with longer integers."""
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def rounded_gaussian(variance: Fraction, size: int) -> IntArray:
    """Draw, shape (size,): P(x) = P(x - 1/2 <= Y < x + 1/2) for a normal Y of mean 0 and this variance."""
    if not 0 < variance < 2**124:
        raise ValueError("variance must be positive and below 2^124")
    if not size:
        return np.zeros(0, dtype=np.int64)
    return samplers.collect(size, partial(_proposals, Fraction(variance)), _ACCEPTED)


def _proposals(variance: Fraction, n: int) -> IntArray:
    """Return the accepted ones of n proposals of |N|, with signs, scaled and rounded."""
    k, words = _whole_parts(n), samplers.random_words(n)
    opened: dict[int, samplers.LazyUniform] = {}

    def fraction(i: int) -> samplers.LazyUniform:
        """Return x of a proposal, which keeps the bits drawn so far."""
        return opened.setdefault(i, samplers.LazyUniform(int(words[i])))

    x = words * 2.0**-64
    accepted = samplers.bernoulli_near(x * (k + x / 2), lambda i: partial(_acceptance, int(k[i]), fraction(i)))
    kept = np.flatnonzero(accepted)
    size = _magnitudes(variance, k[kept], words[kept], lambda i: fraction(int(kept[i])))
    return np.where(samplers.fair_bits(len(size)), -size, size)


def _whole_parts(n: int) -> npt.NDArray[np.int64]:
    """Draw k >= 0 of weight exp(-k^2 / 2), shape (n,): the number of c_m <= u."""
    words = samplers.random_words(n)
    lows, highs = _table()
    k = np.searchsorted(highs, words, side="right").astype(np.int64)  # surely c_m <= u
    for i in np.flatnonzero(lows[k] <= words).tolist():
        u, m = samplers.LazyUniform(int(words[i])), 0
        while not u.below(partial(_sum_bracket, m)):
            m += 1
        k[i] = m
    return k


@cache
def _table() -> tuple[Words, Words]:
    """Return brackets of c_m * 2^64: the lower ends for each m, and the upper ends that a word can reach. The last
    lower end is the largest word, like all that would follow."""
    lows: list[int] = []
    highs: list[int] = []
    while not lows or lows[-1] < 2**64 - 1:
        low, high = _sum_bracket(len(lows), 64)
        lows.append(low)
        highs.append(high)
    return np.array(lows, np.uint64), np.array([high for high in highs if high < 2**64], np.uint64)


@cache
def _sum_bracket(m: int, precision: int) -> tuple[int, int]:
    """Return integers enclosing c_m * 2^precision, c_m = P(k <= m). The weights from K on, with K^2 / 2 >= work, sum to
    less than 2 exp(-K^2 / 2) < 2 * 2^-work."""
    work = precision + 16
    most = max(m + 1, math.isqrt(2 * work) + 1)
    weights = [samplers.exp_bracket(Fraction(k * k, 2), work) for k in range(most)]
    head = [sum(each[end] for each in weights[: m + 1]) for end in (0, 1)]
    tail = [sum(each[end] for each in weights[m + 1 :]) for end in (0, 1)]
    low, high = head[0], head[1]
    least = (low << precision) // (low + tail[1] + 2)
    return least, min(1 << precision, -(-(high << precision) // (high + tail[0])))


def _acceptance(k: int, x: samplers.LazyUniform, precision: int) -> tuple[int, int]:
    """Return integers enclosing exp(-x (2k + x) / 2) * 2^precision, from as many bits of x."""
    while x.known[0] < precision:
        x.refine()
    bits, prefix = x.known
    ends = (Fraction(each, 1 << bits) for each in (prefix + 1, prefix))
    high, low = (samplers.exp_bracket(end * (2 * k + end) / 2, precision) for end in ends)
    return high[0], low[1]


def _magnitudes(
    variance: Fraction, k: npt.NDArray[np.int64], words: Words, fraction: Callable[[int], samplers.LazyUniform]
) -> IntArray:
    """Return floor(s (k + x) + 1/2), x known by its words.

    With root <= s 2^p < root + 1 and high <= root x < high + 2, s (k + x) 2^p is in [v, v + k + 4), v = root k + high.
    """
    whole = math.isqrt(math.floor(variance)).bit_length()
    p = next((bits - whole for bits, least in zip(_BITS, _POINT, strict=True) if bits - whole >= least), None)
    if p is None:
        far = [_exactly(variance, int(each), fraction(i)) for i, each in enumerate(k.tolist())]
        wide = max(far, default=0).bit_length() > 62
        return np.array(far, dtype=object if wide else np.int64)
    root = math.isqrt(math.floor(variance * 4**p))
    least = root * np.minimum(k, _MOST) + _high(root, words).view(np.int64) + (1 << (p - 1))
    size = least >> p
    for i in np.flatnonzero((size != (least + (k + 4)) >> p) | (k > _MOST)).tolist():
        size[i] = _exactly(variance, int(k[i]), fraction(i))
    return np.asarray(size)


def _high(root: int, words: Words) -> Words:
    """Return h with h <= root u < h + 2 for a root below 2^59 and all u of [word, word + 1) / 2^64, by halves."""
    high = words >> _HALF
    if root < 2**32:
        return np.asarray(np.uint64(root) * high >> _HALF)
    first, second, low = np.uint64(root >> 32), np.uint64(root & (2**32 - 1)), words & _LOW
    middle = first * low + (second * low >> _HALF)
    return np.asarray(first * high + (middle >> _HALF) + (second * high + (middle & _LOW) >> _HALF))


def _exactly(variance: Fraction, k: int, x: samplers.LazyUniform) -> int:
    """Return floor(s (k + x) + 1/2) = floor((sqrt(4 variance (k + x)^2) + 1) / 2), for a real x."""
    while True:
        bits, prefix = x.known
        above, below = 4 * variance.numerator, variance.denominator << (2 * bits)
        ends = ((k << bits) + prefix, (k << bits) + prefix + 1)
        first, last = ((math.isqrt(above * end * end // below) + 1) // 2 for end in ends)
        if first == last:
            return first
        x.refine()
