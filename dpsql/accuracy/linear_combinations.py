"""Half-widths of linear combinations of noisy coordinates: the t with P(|sum of w_i X_i| <= t) >= level, for many
weight vectors w at once.

The laws are the continuous ones at scale 1 (standard deviation 1 for the Gaussian); a caller with noise on a lattice
adds a step for each coordinate, as for pairs (`mechanisms`). All three are symmetric and log-concave, which is used
three times:

* The half-width at a fixed level is a norm of w: it is the support function of the law's convex floating body (Meyer,
  Reisner, "A geometric property of the boundary of symmetric convex bodies and convexity of flotation surfaces", 1991,
  for uniform laws; Bobkov, "Convex bodies and norms associated to convex measures", 2010, for log-concave ones). So
  linear interpolation between weight vectors errs to the safe side, and max w_i q <= t <= sum w_i q with q the
  half-width of one coordinate (the lower end: each symmetric unimodal summand makes the sum more spread out).
* log T is concave for the tail T(t) = P(|sum| > t) (Prekopa 1973), so Newton's method on it converges fast.
* T(0) = 1 and concavity give log T(t) <= (t / t') log T(t') for t >= t'. With p = 1 - level and the exact t' this
  implies t / t' <= log T(t) / log p: the distance of log T from log p bounds that of t from exact, both ways.

The relevant computed tails are off by less than 5e-6 p log(1/p), for levels from 0.05. A t is accepted if its computed
log T / log p is between 1 - 4e-6 and 1 + 1e-4, which makes the exact one at least 1 - 9.1e-6; 1e-5 more width makes up
for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.pairs import cube_quantile, solve
from dpsql.core.mechanisms.tails import gaussian_tail
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

Floats = NDArray[np.float64]

EXACT_LEVELS = (0.05, 1 - 1e-9)
"""Widths at these levels are at most 0.1 % wider than exact."""
_LEAST_RATIO, _MOST_RATIO = 1 - 4e-6, 1 + 1e-4
_INFLATION = 1 + 1e-5
_ROUNDS = 100  # Newton needs about five; bisection, its reserve, fifty
_CHUNK = 1_024  # weight vectors at a time
_MOST_CUBE_WEIGHTS = 6
_LEAST_WEIGHT = 1 / 256
_FARTHEST = 700.0  # exp(-700) is still a number
_UNIT = 256


def half_widths(law: str, dimension: int, weights: Floats, level: float) -> Floats:
    """Return the t, shape (m,), with P(|sum over i of w_i X_i| <= t) >= level for each column w of `weights`, shape (k,
    m).

    law: "cube" (density proportional to exp(-max |x_i|) in `dimension` coordinates, k of them used), "laplace" or
    "gaussian" (k independent coordinates). Never narrower than exact, and at most 0.1 % wider, for dimensions up to 20
    and levels from 0.05 to 1 - 1e-9, and for "cube" up to 6 non-zero weights: with more, the smallest are merged
    (`fewer`). Weights of 0 drop out. Raises ValueError for an unknown law, a level outside (0, 1), weights that are not
    finite, and for "cube" more than `dimension` of them."""
    size = np.abs(np.asarray(weights, dtype=np.float64))
    if size.ndim != 2 or not np.isfinite(size).all():
        raise ValueError("weights must be finite, of shape (k, m)")
    if not 0 < level < 1:
        raise ValueError("level must be between 0 and 1")
    if law == "gaussian":
        # The sum is normal; 1e-12 covers the rounding of the norm and of erfc.
        return np.asarray(np.sqrt((size**2).sum(axis=0)) * _normal_width(level) * (1 + 1e-12), dtype=np.float64)
    if law not in {"cube", "laplace"}:
        raise ValueError(f"unknown law {law!r}")
    widths = np.zeros(size.shape[1])
    present = (size > 0).sum(axis=0)
    for count in np.unique(present[present > 0]).tolist():
        columns = np.flatnonzero(present == count)
        for chunk in np.split(columns, range(_CHUNK, len(columns), _CHUNK)):
            ordered = -np.sort(-size[:, chunk], axis=0)[:count]
            if law == "cube":
                ordered = fewer(ordered, dimension, _MOST_CUBE_WEIGHTS)
            widths[chunk] = ordered[0] * _relative_widths(law, dimension, ordered / ordered[0], level)
    return widths


@remembered(1024)
def _normal_width(level: float) -> float:
    """Return the half-width of the normal law of variance 1."""
    return solve(lambda x: 2 * gaussian_tail(x), 1 - level)


def fewer(weights: Floats, dimension: int, most: int) -> Floats:
    """Return at most `most` weights of the law on the cube whose sum is at least as spread out, in decreasing order
    like the given ones. Raises ValueError for more weights than coordinates.

    X is R U with U uniform on the cube, and given R the sum has independent symmetric unimodal terms. The sum of two
    lies in [-r, r], with r the sum of their weights times R. Any symmetric unimodal law there has at least t / r of its
    probability within t, so it is more peaked than the one term r U. The same holds for the sum with all others
    (Birnbaum, "On random variables with comparable peakedness", 1948, lemma). So the smallest two are merged while
    there are too many."""
    if len(weights) > dimension:
        raise ValueError("more weights than the law on the cube has coordinates")
    while len(weights) > most:
        weights = -np.sort(-np.concatenate([weights[:-2], weights[-2:].sum(axis=0, keepdims=True)]), axis=0)
    return weights


def _relative_widths(law: str, dimension: int, weights: Floats, level: float) -> Floats:
    """Return half-widths for non-zero weights in decreasing order, the first of which is 1."""
    if law == "laplace":
        return _solve(_LaplaceSum.of(weights, level), -math.log1p(-level), weights, level)
    weights = np.maximum(weights, _LEAST_WEIGHT)
    return _solve(_CubeSum.of(dimension, weights), cube_quantile(dimension, level), weights, level)


def both_tails(dimension: int, weights: Floats, t: Floats) -> Floats:
    """Return P(|sum of w_i X_i| > t) for the law on the cube at scale 1, and each of many t; the largest weight is
    1."""
    ordered = fewer(-np.sort(-weights), dimension, _MOST_CUBE_WEIGHTS)
    largest = float(ordered[0])
    sums = _CubeSum.of(dimension, np.maximum(ordered / largest, _LEAST_WEIGHT)[:, None])
    above, _ = sums(t / largest, np.zeros(len(t), dtype=np.intp))
    return np.clip(above, 0, 1)


Tail = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]]
"""(t, columns) -> P(|sum| > t) and the density of |sum| at t, for the weight vectors of these columns."""


def _solve(tail: Tail, one: float, weights: Floats, level: float) -> Floats:
    """Return the t at which the tail is 1 - level, by Newton's method on its logarithm between max w_i q and sum w_i q,
    where q = `one` is the half-width of a single coordinate; by bisection if Newton leaves the bracket."""
    goal = math.log1p(-level)
    left, right = np.full(weights.shape[1], one * (1 - 1e-9)), weights.sum(axis=0) * one * (1 + 1e-9)
    t: Floats = np.clip(one * np.sqrt((weights**2).sum(axis=0)), left, right)
    active = np.arange(len(t))
    for _ in range(_ROUNDS):
        above, density = tail(t[active], active)
        # Near the accuracy of the computed tail its logarithm is unreliable: such a t is only known to be too far.
        far = above <= -2e-5 * goal * math.exp(goal)
        log = np.log(np.where(far, 1.0, above))
        short = ~far & (log > goal)
        left[active] = np.where(short, t[active], left[active])
        right[active] = np.where(short, right[active], t[active])
        going = far | (log < goal * _MOST_RATIO) | (log > goal * _LEAST_RATIO)
        if not going.any():
            return t * _INFLATION
        active, log = active[going], log[going]
        # Aimed a little beyond the goal, so that rounding does not leave it just short.
        with np.errstate(divide="ignore", invalid="ignore"):
            step = (log - goal * (1 + 1e-6)) * above[going] / density[going]
        newton = t[active] + step
        inside = (newton > left[active]) & (newton < right[active]) & ~far[going]
        t[active] = np.where(inside, newton, (left[active] + right[active]) / 2)
    t[active] = right[active]  # a bracket that no longer shrinks: its upper end is safe
    return t * _INFLATION


@remembered(128)
def _polynomial(dimension: int, power: int) -> tuple[float, ...]:
    """Return coefficients, highest first, of G(x) = exp(x) E[max(0, 1 - x / R)^power] for R Gamma(dimension + 1), in
    powers of x / 256: those of x are as small as 1 / d!, below the range of doubles.

    With r = x + y under the integral, E[...] = exp(-x) / d! * integral of y^k (x + y)^(d - k) exp(-y) dy, so that the
    coefficient of x^i is C(d - k, i) (d - i)! / d!, all positive: nothing cancels."""
    d, k = dimension, power
    powers = range(d - k, -1, -1)
    return tuple(math.comb(d - k, i) * math.factorial(d - i) * _UNIT**i / math.factorial(d) for i in powers)


def _evaluate(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """Evaluate a polynomial by Horner's rule."""
    total, units = np.full_like(x, coefficients[0]), x / _UNIT
    for coefficient in coefficients[1:]:
        total *= units
        total += coefficient
    return total


@dataclass(frozen=True, slots=True)
class _CubeSum:
    """The tail of sum w_i X_i for coordinates of the law on the cube: X = R U with R Gamma(d + 1) and U uniform on [-1,
    1]^d (Hardt, Talwar 2010, section 4).

    Given R, the sum is one of k independent uniforms, and P(sum w_i U_i > s) is the sum over signs e of (product of
    e_i) max(0, e.w - s)^k, divided by 2^k k! (product of w_i): the k-fold repeated difference of the k-fold integral of
    a step. Over R each term is (e.w)^k E[max(0, 1 - x / R)^k] at x = t / e.w, see `_polynomial`; exactly one of e and
    -e counts, with the same coefficient (product of e_i) (e.w)^k.

    The terms cancel if some weight is small. Weights are therefore rounded up to 1/256 of the largest, which is safe:
    given R, a sum of symmetric unimodal variables is the more spread out the larger their weights (Birnbaum, "On random
    variables with comparable peakedness", 1948), and so is the mixture over R. The rounding error of the tail is then
    below 3e-7 for six weights, and the half-width grows by less than 6e-4 (tests compare it with sums in 60 digits).
    `sums`: |e.w|, shape (2^(k - 1), m); `factors`: the factors of E[...]."""

    dimension: int
    power: int
    sums: Floats
    factors: Floats

    @classmethod
    def of(cls, dimension: int, weights: Floats) -> _CubeSum:
        k = len(weights)
        signs = np.array([(1, *rest) for rest in product((1, -1), repeat=k - 1)], dtype=np.float64)
        sums = signs @ weights
        scale = 2 ** (k - 1) * math.factorial(k) * weights.prod(axis=0)
        factors = signs.prod(axis=1)[:, None] / scale
        for _ in range(k):
            factors *= sums
        return cls(dimension, k, np.maximum(np.abs(sums), 1e-300), factors)

    def __call__(self, t: Floats, columns: NDArray[np.intp]) -> tuple[Floats, Floats]:
        d, k = self.dimension, self.power
        sums = self.sums[:, columns]
        x = np.minimum(t / sums, _FARTHEST)
        share = self.factors[:, columns] * np.exp(-x)
        above = (share * _evaluate(_polynomial(d, k), x)).sum(axis=0)
        # d/dx E[max(0, 1 - x / R)^k] = -k E[max(0, 1 - x / R)^(k - 1) / R], and 1 / R turns Gamma(d + 1) to Gamma(d).
        slope = share * _evaluate(_polynomial(d - 1, k - 1), x) / sums
        return above, slope.sum(axis=0) * (k / d)


@dataclass(frozen=True, slots=True)
class _LaplaceSum:
    """The tail of sum w_i X_i for independent Laplace coordinates, max w_i = 1, by the inverse Laplace transform

        P(|sum| > t) = 1/(pi i) * integral of exp(-s t) F(s) / s ds,    F(s) = product of 1 / (1 - w_i^2 s^2),

    along s(x) = (1 + sin(pi/6 + i x)) / 2, a branch of the hyperbola with foci 0 and 1. It passes between the pole at 0
    and those at 1 / w_i >= 1, equal or not, and turns to where exp(-s t) vanishes. The trapezoidal rule with step h
    converges geometrically (Weideman, Trefethen, "Parabolic and hyperbolic contours for computing the Bromwich
    integral", 2007). Both of its errors are bounded as follows.

    Write c for the angle instead of pi/6, 0 <= c <= pi/3, and v = (1 + sin c) / 2 for the vertex. On the branch |s| = v
    + sinh(x/2)^2, |1 - s| = 1 - v + sinh(x/2)^2, |ds/s| = sqrt(|1 - s| / |s|) dx <= dx and Re s >= v.
    * |1 - w^2 s^2| >= 1 - v^2 for 0 <= w <= 1. For z = w s has |z| - |1 - z| <= sin c, since that grows with w; with
      |z| >= 1 - |1 - z| this gives r = |1 - z| >= 1 - v. And |1 + z| >= max(1, 2 - r), and r (2 - r) grows up to r = 1.
    * So the integral of the absolute integrand over the branch is at most 2 g(v), g(v) = exp(-t v) (1 - v^2)^(1 - k)
      (1 - v)^(-1/2) / (1 + v): one factor, that of w = 1, is kept as 1 / (|1 - s| |1 + s|), whose integral over x is at
      most 2 pi / (sqrt(1 - v) (1 + v)). log g is convex in v: the largest is at an end, c = 0 or pi/3.
    * The integrand is analytic in the strip |Im x| < pi/6, on which c takes those values, so the rule is off by at most
      4 g / (exp(pi^2 / (3 h)) - 1) (Trefethen, Weideman, "The exponentially convergent trapezoidal rule", 2014, theorem
      5.1).
    * If cosh x >= 4 the angle of s is beyond 45 degrees, so that |1 - w^2 s^2| >= max(1, w^2 |s|^2), |s| >= cosh x /
      2 and Re s = 1/2 + cosh x / 4. The part beyond X is at most 16/pi exp(-t/2 - t cosh(X) / 4 - 2 X).

    Both are below 1e-6 p log(1/p) for t >= log(1/p), where p = 1 - level: the half-width is at least that, since the
    sum is more spread out than its largest term. Rounding adds less than 1e-12 of the tail. `nodes`: s, complex, shape
    (n, 1); `shares`: the factor of exp(-s t), shape (n, m); nodes of x and -x are conjugate and counted together."""

    nodes: NDArray[np.complex128]
    shares: NDArray[np.complex128]

    @classmethod
    def of(cls, weights: Floats, level: float) -> _LaplaceSum:
        step, count = _rule(len(weights), level)
        x = step * np.arange(count)
        angle = math.pi / 6 + 1j * x[:, None]
        nodes = (1 + np.sin(angle)) / 2
        rule = np.cos(angle) / (2 * nodes) * np.where(x == 0, 1, 2)[:, None] * (step / math.pi)
        poles = 1 - weights[0] ** 2 * nodes**2
        for weight in weights[1:]:
            poles *= 1 - weight**2 * nodes**2
        return cls(nodes, rule / poles)

    def __call__(self, t: Floats, columns: NDArray[np.intp]) -> tuple[Floats, Floats]:
        terms = self.shares[:, columns] * np.exp(-self.nodes * t)
        above: Floats = terms.real.sum(axis=0)
        density: Floats = (terms * self.nodes).real.sum(axis=0)
        return above, density


@remembered(1024)
def _rule(k: int, level: float) -> tuple[float, int]:
    """Return the step h and the number of nodes x = 0, h, 2h, ... for which `_LaplaceSum` keeps its error bounds."""
    least = -math.log1p(-level)
    allowed = math.log(1e-6 * least) - least
    ends = ((1 + math.sin(angle)) / 2 for angle in (0, math.pi / 3))
    g = max(-least * v + (1 - k) * math.log1p(-v * v) - math.log1p(-v) / 2 - math.log1p(v) for v in ends)
    step = math.pi**2 / (3 * math.log1p(math.exp(math.log(4) + g - allowed)))
    count = math.ceil(math.acosh(4) / step)
    while math.log(16 / math.pi) - least / 2 - least * math.cosh(step * count) / 4 - 2 * step * count > allowed:
        count += 1
    return step, count + 1
