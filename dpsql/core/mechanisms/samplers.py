"""Exact samplers of discrete noise, vectorised with NumPy.

If the bits of ``os.urandom`` are uniform and independent, every output has exactly the stated distribution:
nothing is rounded or truncated. The samplers follow Canonne, Kamath, Steinke, "The Discrete Gaussian
for Differential Privacy" (2020), CKS, and Hardt, Talwar, "On the Geometry of Differential Privacy" (2010).

Floats decide a comparison only when it is not close. A uniform real u of [0, 1) is known by its first
64 bits, the word w <= u * 2^64 < w + 1. The error of the floats, with NumPy's ``exp`` and ``log``
good to 4 units in the last place (its vector kernels promise that, the tests probe it):
* u against exp(-x): rounding w to 53 bits 2^-53, its truncation 2^-64, ``exp`` 2^-51; an error dx of x
  costs exp(-x) dx, which the callers keep to 2^-49. In all less than 2^-48.
* -log(u) for w >= 2^44, hence below 13.9: truncation 1/w <= 2^-44, rounding w 2^-53, ``log`` 2^-47, its
  product with a rounded scale 2^-47. In all less than 2^-43. Floats never decide for smaller words.
``_MARGIN`` is at least eight times these bounds. Inside the margin ``LazyUniform`` decides by integer
arithmetic: exp(-p/q) is bracketed ever more closely, and u refined by further words.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[Any]  # int64, or object where values reach 2^62
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]

_MARGIN = 2.0**-40
_SMALL_WORD = 2**44  # one word in 2^20 is smaller
_INT_BITS = 62
_SCALE_BITS = 17  # inversion serves scales below 2^17, where a draw is close once in 2^22
_BATCH = 2**15  # elements per pass, so that its arrays stay in the cache


def random_words(n: int) -> npt.NDArray[np.uint64]:
    """Return uniform 64-bit words, shape (n,), the only randomness here; unbuffered, so safe across forks."""
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def fresh_key() -> bytes:
    """Return 32 random bytes, which decide which rows of a unit contribution bounding drops."""
    return os.urandom(32)


def exp_bracket(x: Fraction, precision: int) -> tuple[int, int]:
    """Return integers (low, high) with low <= exp(-x) * 2^precision <= high, for x >= 0.

    x is halved until below 1, the alternating Taylor series summed in fixed point, the sum squared back,
    all rounded outwards. A squaring doubles the relative width, hence the guard bits.
    """
    if x >= precision:
        return 0, 1  # exp(-x) < 2^-x
    halvings = math.floor(x).bit_length()
    guard = 2 * halvings + 8
    one = 1 << (precision + guard)
    p, q, n = x.numerator, x.denominator << halvings, 0
    low = high = term_low = term_high = one
    while term_high > 1:
        n += 1
        term_low, term_high = term_low * p // (q * n), -(-term_high * p // (q * n))
        low, high = (low - term_high, high - term_low) if n % 2 else (low + term_low, high + term_high)
    low, high = max(low - term_high, 0), min(high + term_high, one)  # the rest is below the last term
    for _ in range(halvings):
        low, high = low * low // one, -(-high * high // one)
    return low >> guard, -(-high >> guard)


class LazyUniform:
    """A uniform real of [0, 1) whose first 64 bits are drawn already; later bits on demand."""

    def __init__(self, word: int) -> None:
        self._prefix, self._bits = word, 64

    @property
    def known(self) -> tuple[int, int]:
        """The number of drawn bits, and these bits as an integer."""
        return self._bits, self._prefix

    def refine(self) -> None:
        """Draw 64 more bits."""
        self._prefix = (self._prefix << 64) | int(random_words(1)[0])
        self._bits += 64

    def below(self, bracket: Callable[[int], tuple[int, int]]) -> bool:
        """Return whether the number is less than c, where bracket(p) encloses c * 2^p by integers."""
        while True:
            low, high = bracket(self._bits + 8)
            if (self._prefix + 1) << 8 <= low:
                return True
            if self._prefix << 8 >= high:
                return False
            self.refine()


def uniform_below(bounds: IntArray | int, size: int | None = None) -> IntArray:
    """Draw uniformly from {0, ..., bounds[i] - 1}, in the shape of bounds; integers, 1 <= bounds <= 2^62.

    A scalar bound takes a size. The words 0..2^64-1 are cut into blocks of bounds[i]; the place in the
    block is uniform once the words of the incomplete last block are rejected. Only those are redrawn.
    """
    wide = np.asarray(bounds) if size is None else np.full(size, bounds)
    if wide.dtype.kind not in "iu" or (wide.size and not 1 <= wide.min() <= wide.max() <= 2**_INT_BITS):
        raise ValueError("bounds must be integers from 1 to 2^62")
    bound = wide.reshape(-1).astype(np.uint64)
    out, todo = np.empty_like(bound), np.arange(bound.size)
    while todo.size:
        words = random_words(todo.size)
        out[todo] = place = words % bound
        # A block starts at word - place, and is complete up to 2^64 - bound (unsigned: 0 - bound).
        rejected = np.flatnonzero(words - place > np.negative(bound))
        todo, bound = todo[rejected], bound[rejected]
    return out.view(np.int64).reshape(wide.shape)


def _uniform_below_python(bound: int) -> int:
    """Draw uniformly from {0, ..., bound - 1}, for a bound of any size."""
    bits, value = bound.bit_length(), bound
    while value >= bound:
        value = int.from_bytes(random_words(bits // 64 + 1).tobytes(), "little") % (1 << bits)
    return value


def bernoulli_dyadic(firsts: npt.NDArray[np.uint64], numerator: Callable[[int], int], bits: int) -> BoolArray:
    """Draw True with probability numerator(i) / 2^bits; shape (n,), that of firsts.

    For c = numerator(i), 0 <= c <= 2^bits and bits >= 64, firsts[i] is the first 64 bits of c / 2^bits, all ones for
    c = 2^bits: a word below it gives u < c / 2^bits, a word above it u >= c / 2^bits. Only if the word equals firsts[i]
    is ``numerator`` called, and more of u drawn.
    """
    words = random_words(firsts.size)
    result: BoolArray = words < firsts
    for i in np.flatnonzero(words == firsts).tolist():
        result[i] = LazyUniform(int(words[i])).below(partial(_dyadic_bracket, numerator(i), bits))
    return result


def _dyadic_bracket(numerator: int, bits: int, precision: int) -> tuple[int, int]:
    """Return integers enclosing numerator / 2^bits * 2^precision; equal once precision reaches bits."""
    if precision >= bits:
        return (exact := numerator << (precision - bits)), exact
    return numerator >> (bits - precision), -(-numerator >> (bits - precision))


def bernoulli_exp(x: FloatArray, exact: Callable[[int], Fraction]) -> BoolArray:
    """Draw True with probability exp(-exact(i)); shape (n,), that of x >= 0.

    x[i] is a float near the rational exact(i): exp(-x) * |x - exact(i)| <= 2^-49. ``exact`` is called
    only when the uniform falls within the margin of exp(-x[i]).
    """
    return bernoulli_near(x, lambda i: partial(exp_bracket, exact(i)))


def bernoulli_near(x: FloatArray, bracket_of: Callable[[int], Callable[[int], tuple[int, int]]]) -> BoolArray:
    """Draw the same, with exp(-exact(i)) by brackets: bracket_of(i)(p) encloses exp(-exact(i)) * 2^p by integers."""
    if not (x >= 0).all():
        raise ValueError("exponents must be non-negative")
    words = random_words(x.size)
    difference = words * 2.0**-64 - np.exp(-x)
    result: BoolArray = difference < 0
    for i in np.flatnonzero(np.abs(difference) < _MARGIN).tolist():
        result[i] = LazyUniform(int(words[i])).below(bracket_of(i))
    return result


def collect(size: int, draw: Callable[[int], IntArray], share: float = 1.0, width: int = 1) -> IntArray:
    """Return the first ``size`` of independent accepted draws, shape (..., size), batch by batch.

    draw(n) makes n proposals of ``width`` elements, and returns those accepted, about a ``share``, in order.
    """
    if size < 0:
        raise ValueError("size must not be negative")
    parts: list[IntArray] = []
    while size or not parts:
        wanted = math.ceil((size + 8 * (1 - share) * math.sqrt(size)) / share)
        parts.append(draw(min(wanted, max(_BATCH // width, 1)))[..., :size])
        size -= parts[-1].shape[-1]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def geometric(scale: Fraction, size: int) -> IntArray:
    """Draw, shape (size,): P(k) = (1 - a) a^k for k >= 0, a = exp(-1/scale); numerator at most 2^62.

    k = B j + r, as in CKS Algorithm 2: by a^k = (a^B)^j a^r, j is geometric of scale / B, and r independently
    proportional to a^r on 0..B-1. B is 1, or so small (2^-16 scale) that r is nearly uniform.
    """
    _check(scale)
    shift = max(math.floor(scale).bit_length() - _SCALE_BITS, 0)
    j = collect(size, partial(_geometric_inversion, Fraction(scale, 1 << shift)))
    if not shift:
        return j
    r = collect(size, partial(_block_offset, Fraction(scale), shift))
    wide = int(j.max(initial=0)).bit_length() + shift > _INT_BITS
    return np.asarray(((j.astype(object) if wide else j) << shift) + r)


def _check(scale: Fraction) -> None:
    if not 0 < scale.numerator <= 2**_INT_BITS:
        raise ValueError("scale must be positive, with a numerator of at most 2^62")


def _block_offset(scale: Fraction, shift: int, n: int) -> IntArray:
    """Return about n draws of r in 0..2^shift-1, proportional to exp(-r / scale), by rejection."""
    r = (random_words(n) & ((1 << shift) - 1)).view(np.int64)
    return r[bernoulli_exp(r / float(scale), lambda i: int(r[i]) / scale)]


def _geometric_inversion(scale: Fraction, n: int) -> IntArray:
    """Draw a geometric of a scale below 2^17, shape (n,), as floor(-scale * log(u)).

    P(k >= j) = exp(-j / scale) = P(u < exp(-j / scale)), so k is the greatest j that u passes.
    """
    words = random_words(n)
    exponent = -np.log(np.maximum(words, _SMALL_WORD) * 2.0**-64)
    k = np.maximum(np.floor((exponent - _MARGIN) * float(scale)), 0)
    close = (k != np.floor((exponent + _MARGIN) * float(scale))) | (words < _SMALL_WORD)
    out: IntArray = k.astype(np.int64)
    for i in np.flatnonzero(close):
        out[i] = _geometric_exact(LazyUniform(int(words[i])), scale)
    return out


def _geometric_exact(u: LazyUniform, scale: Fraction) -> int:
    """Return the greatest k with u < exp(-k / scale), by doubling and bisection."""
    k, step = 0, 1
    while u.below(partial(exp_bracket, step / scale)):
        step *= 2
    while step := step // 2:
        k += step * u.below(partial(exp_bracket, (k + step) / scale))
    return k


def discrete_laplace(scale: Fraction, size: int) -> IntArray:
    """Draw, shape (size,): P(x) proportional to exp(-|x| / scale), CKS Algorithm 2; scale as for `geometric`."""
    _check(scale)
    if not size:
        return np.zeros(0, dtype=np.int64)
    share = (1 + math.exp(-1 / max(scale, Fraction(1, 512)))) / 2
    return collect(size, partial(_laplace, scale), share)


def _laplace(scale: Fraction, n: int) -> IntArray:
    """Return n proposals of sign and magnitude, without the negative zeros."""
    return _signed(geometric(scale, n))


def _signed(magnitude: IntArray) -> IntArray:
    """Return magnitudes with random signs, without the negative zeros."""
    negative = fair_bits(len(magnitude))
    return np.where(negative, -magnitude, magnitude)[(magnitude > 0) | ~negative]


def fair_bits(n: int) -> BoolArray:
    return np.unpackbits(random_words((n + 63) // 64).view(np.uint8), count=n).view(np.bool_)


def staircase(scale: Fraction, width: int, inner: int, size: int) -> IntArray:
    """Draw, shape (size,): P(x) proportional to exp(-floor((|x| + width - inner) / width) / scale); scale as for
    `geometric`, 1 <= inner <= width <= 2^61.

    |x| = k width + u, 0 <= u < width, has the weight a^k, a = exp(-1/scale), times 1 if u < inner and a otherwise: k is
    geometric, and u uniform on one of two parts, both independent.
    """
    _check(scale)
    if not size:
        return np.zeros(0, dtype=np.int64)
    a = math.exp(-1 / max(scale, Fraction(1, 512)))
    zero = (1 - a) / (inner + a * (width - inner))  # among all non-negative values
    return collect(size, partial(_stairs, Fraction(scale), width, inner), 1 - zero / 2)


def _stairs(scale: Fraction, width: int, inner: int, n: int) -> IntArray:
    """Return n proposals of stairs and signs, without the negative zeros."""
    stair, on_inner = geometric(scale, n), _on_inner(scale, width, inner, n)
    place = uniform_below(np.where(on_inner, inner, max(1, width - inner))) + np.where(on_inner, 0, inner)
    wide = int(stair.max(initial=0)).bit_length() + width.bit_length() > _INT_BITS - 1
    return _signed((stair.astype(object) if wide else stair) * width + place)


def _on_inner(scale: Fraction, width: int, inner: int, n: int) -> BoolArray:
    """Draw True with probability c = inner / (inner + a (width - inner)), shape (n,)."""

    def bracket(precision: int) -> tuple[int, int]:
        low, high = exp_bracket(1 / scale, precision + 64)
        whole = inner << (precision + 64)
        bottoms = (whole + high * (width - inner), whole + low * (width - inner))
        return (whole << precision) // bottoms[0], -(-(whole << precision) // bottoms[1])

    low, high = bracket(64)
    words = random_words(n)
    result: BoolArray = words < np.uint64(min(low, 2**64 - 1))
    for i in np.flatnonzero(~result & (words <= np.uint64(high - 1))).tolist():  # two words at most
        result[i] = LazyUniform(int(words[i])).below(bracket)
    return result


def discrete_gaussian(variance: Fraction, size: int) -> IntArray:
    """Draw, shape (size,): P(x) proportional to exp(-x^2 / (2 variance)), CKS Algorithm 3.

    A discrete Laplace y of scale t = floor(sigma) + 1, at most 2^62, is accepted with probability
    exp(-(|y| - variance/t)^2 / (2 variance)): a share tanh(1/2t) exp(-v/2t^2) sum_y exp(-y^2/2v).
    """
    if not 0 < variance < 2 ** (2 * _INT_BITS):
        raise ValueError("variance must be positive and below 2^124")
    if not size:
        return np.zeros(0, dtype=np.int64)
    t = math.isqrt(math.floor(variance)) + 1
    share = math.tanh(0.5 / t) * math.exp(-variance / (2 * t * t)) * max(1, math.sqrt(2 * math.pi * variance))
    return collect(size, partial(_gaussian, Fraction(variance), Fraction(t)), share)


def _gaussian(variance: Fraction, t: Fraction, n: int) -> IntArray:
    """Return the accepted ones of n discrete Laplace proposals of scale t.

    The float exponent is z^2 / 2, z = (|y| - variance/t) / sigma. The roundings give dz <= 2^-53 (5|z| + 2)
    as variance/t < sigma, so that the error costs exp(-z^2/2) (|z| dz + 2^-54 z^2) < 2^-50. A sigma below
    2^-50 may be replaced by 2^-50: acceptance is 0 at |y| >= 1 and 1 at y = 0 up to 2^-100 either way.
    """
    y = discrete_laplace(t, n)
    shift = variance / t
    z = (np.abs(y).astype(np.float64) - float(shift)) / max(math.sqrt(variance), 2.0**-50)
    return y[bernoulli_exp(z * z / 2, lambda i: (abs(int(y[i])) - shift) ** 2 / (2 * variance))]


def cube_laplace(scale: Fraction, dimension: int, size: int) -> IntArray:
    """Draw, shape (dimension, size): P(x) proportional to a^max_i |x_i| on Z^d, a = exp(-1/scale).

    The K-norm distribution of Hardt, Talwar (2010) for the L-infinity ball: a bound r of weight (2r+1)^d a^r,
    then a uniform point of {-r..r}^d. The sum of a^r over r >= m is proportional to a^m, as required.
    """
    if dimension < 1:
        raise ValueError("dimension must be positive")
    if dimension == 1:
        return discrete_laplace(scale, size)[np.newaxis]
    _check(scale)
    if not size:
        return np.zeros((dimension, 0), dtype=np.int64)
    return collect(size, partial(_cube_points, Fraction(scale), dimension), width=dimension + 1)


def _cube_points(scale: Fraction, dimension: int, n: int) -> IntArray:
    """Draw one batch, shape (dimension, n), with the bound r as a sum of independent variables.

    sum_r (2r+1)^d z^r = B_d(z) / (1-z)^(d+1) with the Eulerian polynomial of type B, B_d(z) =
    b_0 + ... + b_d z^d, b_j > 0 (Brenti, "q-Eulerian polynomials arising from Coxeter groups", 1994).
    At a z for z this factors the generating function of r: d+1 geometrics of ratio a, and one j in 0..d
    of weight b_j a^j. Nothing is rejected, for any dimension and scale.
    """
    k = geometric(scale, (dimension + 1) * n).reshape(dimension + 1, n)
    wide = int(k.max(initial=0)).bit_length() + dimension.bit_length() > _INT_BITS - 3  # 2r+1 < 2^62
    r = (k.astype(object) if wide else k).sum(axis=0) + _eulerian_index(scale, dimension, n)
    bounds = np.broadcast_to(2 * r + 1, (dimension, n))
    point = np.frompyfunc(_uniform_below_python, 1, 1)(bounds) if wide else uniform_below(bounds)
    return np.asarray(point - r)


def _eulerian_index(scale: Fraction, dimension: int, n: int) -> IntArray:
    """Draw j in 0..d of weight b_j a^j, shape (n,), by inversion: the number of c_m = P(j <= m) <= u."""
    words = random_words(n)
    lows, highs = zip(*_eulerian_brackets(scale, dimension, 64), strict=True)
    # w < lows[m] gives u < c_m, and w >= highs[m] gives u >= c_m; no word reaches a bound of 2^64.
    j = np.searchsorted(np.array([c for c in highs if c < 2**64], np.uint64), words, side="right")
    greatest = np.searchsorted(np.array(lows, np.uint64), words, side="right")
    thresholds = [partial(lambda m, p: _eulerian_brackets(scale, dimension, p)[m], m) for m in range(dimension)]
    for i in np.flatnonzero(j != greatest).tolist():
        j[i] = dimension - sum(map(LazyUniform(int(words[i])).below, thresholds))
    return j


@lru_cache(maxsize=64)
def _eulerian_brackets(scale: Fraction, dimension: int, precision: int) -> list[tuple[int, int]]:
    """Return integers enclosing c_m * 2^precision, for m = 0..d-1.

    b(d, j) = (2j+1) b(d-1, j) + (2d-2j+1) b(d-1, j-1): this is 1 + 2z d/dz on B_{d-1}(z) / (1-z)^d,
    which takes the series of (2r+1)^(d-1) z^r to that of (2r+1)^d z^r. c_m = head / (head + tail) is
    least at the least head and greatest tail. As b_0 = 1, the guard bits absorb the factors b_j.
    """
    b = [1]
    for d in range(1, dimension + 1):
        pairs = enumerate(zip([*b, 0], [0, *b], strict=True))
        b = [(2 * j + 1) * same + (2 * (d - j) + 1) * before for j, (same, before) in pairs]
    work = precision + sum(b).bit_length() + 8
    powers = [exp_bracket(j / scale, work) for j in range(dimension + 1)]
    low, high = np.array(powers, dtype=object).T * np.array(b, dtype=object)
    least, greatest = np.cumsum(low)[:-1], np.cumsum(high)[:-1]
    bottoms = (least << precision) // (least + high.sum() - greatest)
    return list(zip(bottoms, -((-greatest << precision) // (greatest + low.sum() - least)), strict=True))
