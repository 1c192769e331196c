"""Privacy loss distributions: composition of known distributions by Fourier transform, always an upper bound.

The worst pair of a composition is the product of the worst pairs (Zhu, Dong, Wang 2022, theorem 10), so losses add up
as independent variables, and delta(e) = E[(1 - e^(e - L))+]. The distributions are put on one grid, which only makes
the pair worse (`loss_laws`). All other approximation errors are added to delta:

    tilting  each distribution is multiplied by e^(s x) and normalized, with s such that the sum's mean is near the
             epsilon sought; the transform's errors, of the size of the largest term, are then small against the tail
    floats   every term of the sum is raised by (k + 1) 4u log2(N), u = 2^-53: a transform errs by at most that per
             factor in the mean over frequencies, no factor is above 1, and a term is such a mean
    wrapping the circular sum adds to a term the terms a whole window away: an error upward for all losses inside the
             window; losses above it count as infinite, their mass by Chernoff's bound
    tails    the truncated tails of a Gaussian count as infinite losses
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsql.accounting import gaussian_curve as gaussian
from dpsql.accounting import loss_laws, renyi
from dpsql.accounting.accountants import finite_part, mu_of, rdp
from dpsql.accounting.loss_laws import FloatArray, LossLaw
from dpsql.accounting.responses import Responses
from dpsql.core.events import Steps, Tally, weighted
from dpsql.core.rounding import above, at_least, below, raised
from dpsql.schema.frozen import dataclass

_FINEST = 2**14
"""Least number of grid steps in a window: then the grid adds less than a thousandth to epsilon."""
_MOST_POINTS = 2**22
"""A larger grid would need seconds. A coarser one, or a window that is too small, is still safe."""
_MOST_WORK = 2**26
"""Most grid points of all distributions together, for the same reason."""
_SPREAD = 30.0
"""The window holds all of the tilted sum except a part of about e^-30 at either end."""
_LARGEST = 1e9
_MOST_STEPS = 10**7
"""Beyond this epsilon, rho or number of steps the grid cannot hold all losses; the Renyi bound is used."""


def epsilon_of(steps: Steps, delta: Fraction) -> float:
    """Return the least epsilon at delta, rounded up; NaN if a step is known only by its zCDP, or if the steps' own
    deltas use up delta and not all steps are pure. Never above `rdp` at the same finite part of delta."""
    slack = finite_part(steps, delta)
    if not steps:
        return slack * 0
    if steps.concentrated or math.isnan(slack) or (steps.gaussian and slack == 0):
        return math.nan
    most = math.inf if steps.gaussian else at_least(steps.pure)
    if slack == 0:
        return most
    if not steps.epsilons:
        return gaussian.epsilon_of(_mu(steps), slack)
    if not steps.gaussian and len(steps.epsilons) == 1:
        [(epsilon, count)] = steps.epsilons.items()
        most = min(most, Responses(epsilon, count).epsilon_at(slack))
        if not steps.laplace:
            return most
    most = min(most, rdp(_finite(steps), Fraction(slack)))
    sums = _Sums(steps, most)
    if not 1e-12 < most < _LARGEST or sums.scale > _LARGEST or sums.count > _MOST_STEPS:
        return most
    first = sums.tilted(sums.tilt_for(most), math.log(slack))
    least, sharp = first.epsilon_at(slack)
    if not sharp:  # the tilt was too far from the answer
        again, _ = sums.tilted(sums.tilt_for(min(least, most)), math.log(slack)).epsilon_at(slack)
        least = min(least, again)
    return min(most, raised(least))


def delta_of(steps: Steps, epsilon: Fraction) -> float:
    """Return the least delta at epsilon >= 0, rounded up; NaN if a step is known only by its zCDP."""
    if steps.concentrated:
        return math.nan
    log_kept = math.fsum(n * math.log1p(-above(own)) for own, n in steps.own_deltas.items())
    kept, lost = math.exp(log_kept), -math.expm1(log_kept)
    return min(1.0, raised(lost + kept * _finite_delta(steps, epsilon)))


def _finite_delta(steps: Steps, epsilon: Fraction) -> float:
    if not steps.gaussian and epsilon >= steps.pure:
        return 0.0
    goal = below(epsilon)
    if not steps.epsilons:
        return gaussian.delta_of(_mu(steps), goal)
    if not steps.gaussian and not steps.laplace and len(steps.response) == 1:
        [(each, count)] = steps.response.items()
        return Responses(each, count).delta_at(goal)
    sums = _Sums(steps, goal)
    s = sums.tilt_for(goal)
    moment = float(sums.log_mgf(np.array([s]))[0])
    log_bound = min(0.0, moment - s * goal + 1e-14 * (1 + abs(moment) + s * goal))  # E[e^(s (L - e))], Chernoff
    bound = math.nextafter(math.exp(log_bound), 1.0)
    if not 1e-12 < max(goal, sums.scale) < _LARGEST or sums.count > _MOST_STEPS:
        return bound
    found = sums.tilted(s, log_bound - 7).delta_at(goal * (1 - 1e-12))
    return min(bound, math.nextafter(found, 1.0))  # in this order `min` ignores a NaN


def _finite(steps: Steps) -> Steps:
    """Return the steps conditional on none of their own deltas' events."""
    return Steps(laplace=steps.laplace, response=steps.response, gaussian=steps.gaussian)


def _mu(steps: Steps) -> float:
    """Return mu of all Gaussians combined: the losses are normal, and their rhos add."""
    return float(mu_of(np.array([above(weighted(steps.gaussian))]))[0])


def _measures(epsilons: Tally) -> list[float]:
    """Return the greatest common divisor of the epsilons, if they are few, and the most frequent epsilon."""
    measures = [float(max(epsilons, key=lambda epsilon: epsilons[epsilon]))]
    if len(epsilons) <= 8:
        denominator = math.lcm(*(epsilon.denominator for epsilon in epsilons))
        measures.insert(0, float(Fraction(math.gcd(*(int(each * denominator) for each in epsilons)), denominator)))
    return measures


class _Sums:
    """The sum of the losses of all steps: its exact moments, and its distribution under a tilt."""

    def __init__(self, steps: Steps, epsilon: float) -> None:
        self.epsilon = epsilon
        self.rho = above(weighted(steps.gaussian)) if steps.gaussian else 0.0
        self.laplace, self.laplace_counts = renyi.arrays(steps.laplace)
        self.response, self.response_counts = renyi.arrays(steps.response)
        self.count = sum(steps.epsilons.values()) + bool(steps.gaussian)
        self.most = math.inf if steps.gaussian else above(steps.pure)
        self.scale = above(steps.rho)
        self.measures = _measures(steps.epsilons)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Return log E[e^(s L)] of the sum, at each s."""
        logs = s * (s + 1) * self.rho
        if len(self.laplace):
            logs = logs + self.laplace_counts @ loss_laws.log_mgf_laplace(self.laplace[:, None], s[None, :])
        if len(self.response):
            logs = logs + self.response_counts @ loss_laws.log_mgf_response(self.response[:, None], s[None, :])
        return np.asarray(logs)

    def tilt_for(self, epsilon: float) -> float:
        """Return the smallest s at which E[e^(s (L - epsilon))] is nearly minimal: there the tilted sum has mean about
        epsilon, or is close to its largest value."""
        s = np.exp(math.log(max(1.0, 1 / self.scale)) / 2 + np.arange(-12, 12, 0.1))
        few = s[s * max(epsilon, self.scale) < 1e8]  # beyond this, floats cannot distinguish s L from s epsilon
        s = few if len(few) else s[:1]
        bound = self.log_mgf(s) - s * epsilon
        return float(s[np.argmax(bound <= bound.min() + 0.01)])

    def tilted(self, s: float, log_delta: float) -> _TiltedDistribution:
        """Return the sum's distribution under the tilt e^(s L), on a grid and window for a tail of about delta."""
        t = np.exp(math.log(max(1.0, 1 / self.scale)) / 2 + np.arange(-12, 12, 0.25))
        here, near = self.log_mgf(np.array([s, s * (1 + 1e-4)]))
        mean = (near - here) / (s * 1e-4)
        tops = (self.log_mgf(s + t) - here + _SPREAD) / t
        top = min(float(tops.min()), self.most)
        bottom = max(float(-((self.log_mgf(s - t) - here + _SPREAD) / t).min()), -self.most)
        width = max(top - bottom, 1e-9 * self.epsilon)
        widest = max(width, 20 * math.sqrt(2 * self.rho), min(160.0, 2 * float(self.laplace.max(initial=0))))
        most = min(_MOST_POINTS, max(_FINEST, _MOST_WORK // max(1, len(self.laplace) + len(self.response))))
        coarse = max(1e-4 * self.epsilon / self.count, widest / most)
        h = max(min(width / 250 / math.sqrt(self.count), width / _FINEST), coarse)
        fitting = [measure for measure in self.measures if measure >= h]
        if fitting:  # put the end points of the distributions on the grid, since they have large masses
            h = fitting[0] / math.ceil(fitting[0] / h)
        points = width / h + 64 + (self.count if h == coarse else 0)
        size = min(2 * most, _MOST_POINTS, 2 ** math.ceil(math.log2(points)))
        return self._sum(s, h, size, ((top + bottom) / 2 - mean, float(t[int(np.argmin(tops))])), log_delta)

    def _sum(self, s: float, h: float, size: int, aim: tuple[float, float], log_delta: float) -> _TiltedDistribution:
        offset, t = aim
        product = np.ones(size // 2 + 1, dtype=np.complex128)
        log_mgf, log_more, mean, lost, highest = 0.0, 0.0, 0.0, 0.0, 0
        for law, count in self._laws(log_delta - 20):
            places, masses = law.on_grid(h)
            last = int(places.max())
            x = places * h
            weights = masses * np.exp(s * (x - last * h))
            norm = float(weights.sum())
            more = float((masses * np.exp((s + t) * (x - last * h))).sum())
            log_mgf += count * (math.log(norm) + s * last * h)
            log_more += count * (math.log(more) + (s + t) * last * h)
            weights /= norm
            mean += count * float((weights * x).sum())
            lost += count * law.lost
            highest += count * last
            transform = np.fft.rfft(np.bincount(places % size, weights, size))
            product *= transform if count == 1 else transform**count
        start = round((mean + offset) / h) - size // 2
        circular = np.fft.irfft(product, size)
        terms = np.roll(circular, -(start % size))
        top = (start + size) * h
        if highest >= start + size:
            lost += math.exp(min(0.0, log_more - (s + t) * top))
        error = (self.count + 1) * 4 * 2.0**-53 * math.log2(size)
        x = np.arange(start, start + size) * h
        log_scale = log_mgf - s * x
        # Masses err by a part in 10^13 each, exponents by a few units of their last place.
        slip = 1e-13 * self.count + 1e-15 * (abs(log_mgf) + abs(s) * float(np.abs(x).max()))
        return _TiltedDistribution(
            np.asarray(x), np.asarray(np.maximum(terms, 0)), np.asarray(log_scale), error, slip, lost
        )

    def _laws(self, log_lost: float) -> list[tuple[LossLaw, int]]:
        laws = [(loss_laws.laplace(float(e)), int(n)) for e, n in zip(self.laplace, self.laplace_counts, strict=True)]
        laws += [
            (loss_laws.response(float(e)), int(n)) for e, n in zip(self.response, self.response_counts, strict=True)
        ]
        if self.rho:
            laws.append((loss_laws.gaussian(self.rho, log_lost), 1))
        return laws


@dataclass(frozen=True, slots=True)
class _TiltedDistribution:
    """The distribution of a sum of losses x, ascending: terms times exp(log_scale), each term at most `error` too
    small; relative error `slip`; `lost` is the mass above the last x."""

    x: FloatArray
    terms: FloatArray
    log_scale: FloatArray
    error: float
    slip: float
    lost: float

    def delta_at(self, epsilon: float) -> float:
        """Return delta, for an epsilon at or above the window's lower end; 1 below it."""
        return self._parts(epsilon)[0] if epsilon >= self.x[0] else 1.0

    def _parts(self, epsilon: float) -> tuple[float, float]:
        """Return delta, and the part of it that is a margin for errors."""
        first = int(np.searchsorted(self.x, epsilon, side="right"))
        gain = -np.expm1(epsilon - self.x[first:])
        with np.errstate(over="ignore", invalid="ignore"):  # infinite or NaN far below the tilt
            scale = np.exp(self.log_scale[first:])
            masses, errors = self.terms[first:] * scale, self.error * scale
            margin = float((errors * gain).sum()) + self.slip * float(masses.sum()) + self.lost
            return float((masses * gain).sum()) + margin, margin

    def epsilon_at(self, delta: float) -> tuple[float, bool]:
        """Return the least epsilon >= 0 in the window with delta_at(epsilon) <= delta, and whether the window was
        suitable: infinity and False if there is none."""
        low, high = max(0.0, float(self.x[0])), float(self.x[-1])
        if high <= low or not self._parts(high)[0] <= delta:
            return math.inf, False
        if self._parts(low)[0] <= delta:
            return low, low == 0.0
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (low, middle) if self._parts(middle)[0] <= delta else (middle, high)
        return high, self._parts(high)[1] <= 1e-4 * delta
