"""Bounds proved in papers, next to the exact values; see dpsql.accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from dpsql.accuracy import choices as choice_laws
from dpsql.accuracy.pairs import solve
from dpsql.core.events import Number, positive, whole
from dpsql.core.loss import LARGEST_EPSILON, SMALLEST_EPSILON, as_epsilon, exact
from dpsql.core.mechanisms.tails import gaussian_tail
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, did_you_mean
from dpsql.schema.argument_names import checked_names
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """A distance that is exceeded with probability at most beta, in two versions.

    Attributes
    ----------
    paper : float
        The bound that the usual theorem proves.
    exact : float
        The least distance for which it is true, as the nearest float.
    """

    paper: float
    exact: float


@checked_names
def laplace(
    scale: Number | None = None,
    *,
    sensitivity: Number = 1,
    epsilon: Number | None = None,
    k: int = 1,
    beta: Number = 0.05,
    discrete: bool = False,
) -> Bound:
    """Return the distance that none of k independent Laplace noises exceeds, with probability 1 - beta.

    `paper`: b ln(k/beta) (Dwork, Roth 2014, theorem 3.8), by the union bound, so it holds for dependent noises too.
    `exact`: -b ln(1 - (1 - beta)^(1/k)), since the k sizes are independent and P(|X| > t) = exp(-t/b).

    Parameters
    ----------
    scale : number, optional
        The scale b. Either `scale` or `epsilon` is required.
    sensitivity, epsilon : number, optional
        The scale is sensitivity/epsilon, with the L1 norm as the sensitivity of a vector.
    k : int
        Number of noises.
    beta : number
        Error probability.
    discrete : bool
        The noise is on the integers, P(x) proportional to exp(-|x|/b). `exact` is then the least whole t, decided
        exactly. It is at most `paper`, the continuous law's bound, rounded up.

    Returns
    -------
    Bound

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    InvalidArgument
        Unless exactly one of scale and epsilon is given.
    """
    if (scale is None) == (epsilon is None):
        raise InvalidArgument("give the scale, or the epsilon (and sensitivity) that make it: one of the two.")
    b = positive(sensitivity, "sensitivity") / as_epsilon(epsilon) if scale is None else positive(scale, "scale")
    count, miss = whole(k, "k"), _share(beta, "beta")
    least = float(_least_whole(b, count, miss)) if discrete else -float(b) * math.log(_each(miss, count))
    return Bound(float(b) * math.log(count / miss), least)


@checked_names
def gaussian(sigma: Number, *, k: int = 1, beta: Number = 0.05) -> Bound:
    """Return the distance that none of k independent Gaussian noises exceeds, with probability 1 - beta.

    `paper`: sigma sqrt(2 ln(2k/beta)), from P(|X| > t) <= 2 exp(-t^2/(2 sigma^2)) and the union bound. `exact`: t with
    P(|X| > t) = 1 - (1 - beta)^(1/k). For the discrete Gaussian add one step: P(X >= t) is at most the continuous P(X
    >= t - 1) (Canonne, Kamath, Steinke 2020, proposition 25).

    Parameters
    ----------
    sigma : number
        Standard deviation.
    k : int
        Number of noises.
    beta : number
        Error probability.

    Returns
    -------
    Bound

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    """
    deviation, count, miss = float(positive(sigma, "sigma")), whole(k, "k"), _share(beta, "beta")
    quantile = solve(lambda z: 2 * gaussian_tail(z), _each(miss, count))
    return Bound(deviation * math.sqrt(2 * math.log(2 * count / miss)), deviation * quantile)


@checked_names
def exponential(
    candidates: int,
    epsilon: Number,
    sensitivity: Number = 1,
    beta: Number = 0.05,
    *,
    monotone: bool = False,
    counts: bool = False,
) -> Bound:
    """Return how far the utility selected by the exponential mechanism lies below the best, for any data.

    A candidate whose utility is g below the best has a probability proportional to exp(-r g), with r = epsilon/(2
    sensitivity), or epsilon/sensitivity if `monotone`. `paper`: (2 sensitivity/epsilon) ln(candidates/beta) (Dwork,
    Roth 2014, corollary 3.12), for either r; for the monotone rate its proof would give half of that. `exact`: the
    least t with P(gap > t) <= beta on any data. For arbitrary real utilities it is ln((c - 1)(1 - beta)/beta)/r for c
    candidates, or 0 (proof of the worst data: `choices.exponential_excess`).

    Parameters
    ----------
    candidates : int
        Number of candidates.
    epsilon, sensitivity, beta : number
        Parameters of the mechanism, and the error probability.
    monotone : bool
        One person moves all utilities in the same direction.
    counts : bool
        Utilities are integers, and so is t.

    Returns
    -------
    Bound

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    """
    terms = _Terms.of(candidates, epsilon, sensitivity, beta, monotone)
    return terms.worst(choice_laws.exponential_excess, counts)


@checked_names
def permute_and_flip(
    candidates: int,
    epsilon: Number,
    sensitivity: Number = 1,
    beta: Number = 0.05,
    *,
    monotone: bool = False,
    counts: bool = False,
) -> Bound:
    """Return the same as `exponential`, with the same parameters, for permute-and-flip (McKenna, Sheldon, NeurIPS
    2020).

    `paper`: the exponential mechanism's bound, which holds because permute-and-flip is never worse (shown there).
    `exact`: -ln(q)/r, where q solves 1 - (1 - (1 - q)^c)/(c q) = beta for c candidates (proof:
    `choices.permute_and_flip_excess`), to 12 digits.

    Returns
    -------
    Bound

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    """
    terms = _Terms.of(candidates, epsilon, sensitivity, beta, monotone)
    return terms.worst(choice_laws.permute_and_flip_excess, counts)


@dataclass(frozen=True, slots=True)
class Choice:
    """The law of a private selection from candidates with known utilities. It is as private as the utilities.

    Attributes
    ----------
    probabilities : tuple of float
        Probability of each candidate.
    success : float
        Probability of a best candidate.
    expected : float
        Mean of the gap, the distance of the selected utility from the best.
    error : Bound
        The gap that is exceeded with probability at most beta.
    """

    probabilities: tuple[float, ...]
    success: float
    expected: float
    error: Bound


@checked_names
def choice(
    utilities: Iterable[Number],
    epsilon: Number,
    sensitivity: Number = 1,
    beta: Number = 0.05,
    *,
    mechanism: str = "exponential",
    monotone: bool = False,
) -> Choice:
    """Return the exact law of a private selection from candidates with these utilities.

    The bound's `paper` is that of `exponential`, which holds on any data; `exact` is for these utilities.

    Parameters
    ----------
    utilities : iterable of number
        Utility of each candidate.
    epsilon, sensitivity, beta, monotone
        See `exponential`.
    mechanism : {"exponential", "permute_and_flip"}
        The mechanism.

    Returns
    -------
    Choice

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    InvalidArgument
        For an unknown mechanism, or no candidates.
    """
    values = [exact(each, "utility") for each in utilities]
    if not values:
        raise InvalidArgument("utilities are empty: there is nothing to choose from.")
    if mechanism not in _LAWS:
        hint = did_you_mean(str(mechanism), _LAWS) or " Write exponential or permute_and_flip."
        raise InvalidArgument(f'there is no mechanism "{mechanism}".{hint}')
    terms = _Terms.of(len(values), epsilon, sensitivity, beta, monotone)
    parts = math.lcm(*(each.denominator for each in values))
    best = max(values)
    gaps = np.array([int((best - each) * parts) for each in values])
    law = _LAWS[mechanism](gaps, terms.rate / parts)
    exceeded = choice_laws.gap_exceeded(gaps, law, float(terms.miss)) / parts
    mean = choice_laws.expected_gap(gaps, law) / parts
    return Choice(tuple(law.tolist()), choice_laws.success_probability(gaps, law), mean, Bound(terms.paper, exceeded))


_LAWS = {"exponential": choice_laws.exponential_law, "permute_and_flip": choice_laws.permute_and_flip_law}


@checked_names
def laplace_sum(a: Number, b: Number, t: Number) -> float:
    """Return P(|a X + b Y| > t) for independent Laplace X and Y of scale 1: two noises of scales |a| and |b| in one
    answer.

    It is (a^2 e^(-t/a) - b^2 e^(-t/b))/(a^2 - b^2), and (1 + t/(2a)) e^(-t/a) at a = b, by partial fractions of the
    characteristic function 1/((1 + a^2 s^2)(1 + b^2 s^2)). With d = t/b - t/a for a >= b it equals e^(-t/a) (1 + b t (1
    - e^-d)/(d a (a + b))), in which nothing cancels, however near a is to b.

    Parameters
    ----------
    a, b : number
        Factors, not both 0.
    t : number
        Distance, at least 0.

    Returns
    -------
    float

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range.
    """
    small, large = sorted(abs(exact(value, name)) for value, name in ((a, "a"), (b, "b")))
    distance = exact(t, "t")
    if not large or distance < 0:
        raise InvalidPrivacyParameter("one of a and b must not be 0, and t must be at least 0.")
    far = math.exp(-float(distance / large))
    if not small or not distance:
        return far
    drop = float(distance / small - distance / large)
    shape = -math.expm1(-drop) / drop if drop else 1.0
    return far * (1 + shape * float(small / large * distance / (large + small)))


@checked_names
def epsilon_for(error: Number, confidence: Number, sensitivity: Number = 1, k: int = 1) -> Fraction:
    """Return the least epsilon at which discrete Laplace noise on k integers keeps all of them within the error.

    The scale is sensitivity/epsilon. The result is decided exactly, and rounded up to 12 significant digits: one less
    in the last digit is not enough. It is at least 1e-9, the least epsilon with noise.

    Parameters
    ----------
    error : number
        Largest size of the noise.
    confidence : number
        Probability with which all k independent noises are within `error`.
    sensitivity : number
        Sensitivity of each integer.
    k : int
        Number of integers.

    Returns
    -------
    Fraction

    Raises
    ------
    InvalidPrivacyParameter
        For numbers out of range, or if more than 1e9 is needed.
    """
    reach, miss, count = exact(error, "error"), 1 - _share(confidence, "confidence"), whole(k, "k")
    step = positive(sensitivity, "sensitivity")
    if reach < 0:
        raise InvalidPrivacyParameter(f"error must be at least 0, got {error}.")

    def enough(epsilon: Fraction) -> bool:
        return _least_whole(step / epsilon, count, miss) <= reach

    decade = SMALLEST_EPSILON
    while not enough(decade):
        decade *= 10
        if decade > LARGEST_EPSILON:
            raise InvalidPrivacyParameter(f"no epsilon up to 1e9 keeps the noise within {error}.")
    if decade == SMALLEST_EPSILON:
        return decade
    low, high = _TWELVE_DIGITS // 10, _TWELVE_DIGITS  # in units of the last digit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle * decade / _TWELVE_DIGITS) else (middle, high)
    return high * decade / _TWELVE_DIGITS


_TWELVE_DIGITS = 10**12


def _share(value: object, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1. Raises InvalidPrivacyParameter, also within 1e-100 of either."""
    number = exact(value, name)
    if not _RAREST <= number <= 1 - _RAREST:
        raise InvalidPrivacyParameter(f"{name} must lie between 0 and 1, got {value}.")
    return number


_RAREST = Fraction(1, 10**100)


def _each(miss: Fraction, k: int) -> float:
    """Return 1 - (1 - miss)^(1/k): the error probability of each of k independent noises if that of all is `miss`."""
    if k == 1:
        return float(miss)
    stays = math.log1p(-float(miss)) if miss < Fraction(1, 2) else math.log(1 - miss)
    return -math.expm1(stays / k)


def _least_whole(scale: Fraction, k: int, miss: Fraction) -> int:
    """Return the least whole t >= 0 with (1 - P(|X| > t))^k >= 1 - miss for discrete Laplace X.

    P(|X| > t) = 2 a^(t + 1)/(1 + a), a = exp(-1/scale), so t + 1 must reach v = scale ln(2/(s (1 + a))) with s = 1 - (1
    - miss)^(1/k). By Lindemann's theorem v is no positive integer, since no power of e with a rational exponent other
    than 0 solves an equation with algebraic coefficients; so enough digits decide. Decimal's exp and ln err by half a
    unit in the last place, and no step enlarges that to more than 10^(-digits/2)."""
    digits = 2 * len(str(math.ceil(max(scale, Fraction(1)) * k / miss))) + 40
    while True:
        with localcontext() as context:
            context.prec = digits
            b = _decimal(scale)
            share = 1 - (_decimal(1 - miss).ln() / k).exp()
            value, margin = b * (2 / (share * (1 + (-1 / b).exp()))).ln(), Decimal(10) ** -(digits // 2)
            least, most = math.ceil(value - margin), math.ceil(value + margin)
        if least == most:
            return max(0, most - 1)
        digits *= 2


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The number of candidates, the rate at which probabilities fall with the gap, beta, and the theorem's bound."""

    count: int
    rate: Fraction
    miss: Fraction
    paper: float

    @classmethod
    def of(cls, candidates: int, epsilon: Number, sensitivity: Number, beta: Number, monotone: bool) -> _Terms:
        """Create the terms. Raises InvalidPrivacyParameter."""
        count, miss = whole(candidates, "candidates"), _share(beta, "beta")
        rate = as_epsilon(epsilon) / (2 * positive(sensitivity, "sensitivity"))
        paper = choice_laws.textbook_gap(count, rate, float(miss))
        return cls(count, 2 * rate if monotone else rate, miss, paper)

    def worst(self, excess: Callable[[int, Fraction, int], float], counts: bool) -> Bound:
        """Return the bounds over all data of a mechanism with this `excess`, the largest P(gap >= t + 1)."""
        if self.miss >= 1 - Fraction(1, self.count):  # even where all candidates are equally likely
            return Bound(self.paper, 0.0)
        if counts:
            return Bound(self.paper, float(choice_laws.worst_gap(excess, self.count, self.rate, float(self.miss))))
        steps = (
            choice_laws.worst_gap(excess, self.count, _FINE, float(self.miss)) + 1
        )  # one step more or less is negligible
        return Bound(self.paper, steps * float(_FINE / self.rate))


_FINE = Fraction(1, 2**40)
