"""The privacy loss of a release: (epsilon, delta) as exact rationals.

Floats are read as the decimals that they print as, so that three times 0.1 is 0.3, and the same fraction calibrates
the noise and enters the ledger.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Rational, Real

from dpsql.errors import InvalidPrivacyParameter, as_written
from dpsql.schema.argument_names import checked_methods
from dpsql.schema.frozen import dataclass

SMALLEST_EPSILON = Fraction(1, 10**9)
"""Below this, noise would be a billion times one person's contribution; no lattice is provided for it."""
LARGEST_EPSILON = Fraction(10**9)
POSITIVE = "a finite number > 0"


def exact(value: object, name: str, wanted: str = "a finite number") -> Fraction:
    """Return `value` as a fraction. Raises InvalidPrivacyParameter for anything but a finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise InvalidPrivacyParameter(
            f"{name} must be a number, got {as_written(value)}.", hint=_number_hint(value, name)
        )
    finite = value.is_finite() if isinstance(value, Decimal) else isinstance(value, Rational) or math.isfinite(value)
    if not finite:
        raise InvalidPrivacyParameter(f"{name} must be {wanted}, got {value}.")
    if isinstance(value, Decimal) and abs(value.adjusted()) > 1_000:  # as a fraction it would fill the memory
        raise InvalidPrivacyParameter(f"{name} must be of a reasonable size, got {_brief(value)}.")
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(value) if isinstance(value, Decimal) else Fraction(repr(float(value)))


def _brief(value: object) -> str:
    """Return the number as it prints, unless it has thousands of digits (which Python refuses to write)."""
    try:
        text = str(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:20]}..."


def _number_hint(value: object, name: str) -> str:
    try:
        return f"Write {name}={float(value):g}, without quotes." if isinstance(value, str) else ""
    except ValueError:
        return ""


def as_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """Return a validated epsilon: finite, > 0, and in the range for which exact noise is provided."""
    if value is None:
        raise InvalidPrivacyParameter(
            f"{name} is missing: how much may this answer tell about one person?",
            hint=f"Add {name}=1, or less for stronger privacy.",
            about={"missing": name},
        )
    number = exact(value, name, POSITIVE)
    if number <= 0:
        raise InvalidPrivacyParameter(f"{name} must be {POSITIVE}, got {_brief(value)}.")
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise InvalidPrivacyParameter(f"{name} must lie between 1e-9 and 1e9, got {_brief(value)}.")
    return number


def as_delta(value: object, name: str = "delta") -> Fraction:
    """Return a validated delta: 0 <= delta < 1, and 0 or at least 1e-100."""
    number = exact(value, name)
    if not 0 <= number < 1:
        raise InvalidPrivacyParameter(f"{name} must be at least 0 and below 1, got {_brief(value)}.")
    if 0 < number < Fraction(1, 10**100):
        raise InvalidPrivacyParameter(f"{name} must be 0 or at least 1e-100, got {_brief(value)}.")
    return number


@checked_methods
@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """An (epsilon, delta) guarantee. Sums are basic composition (Dwork, Roth 2014, theorem 3.16).

    Parameters
    ----------
    epsilon, delta : Fraction
        epsilon >= 0 and 0 <= delta <= 1.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)):
            raise TypeError("a PrivacyLoss holds fractions; read numbers with as_epsilon and as_delta")
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise InvalidPrivacyParameter(f"not a privacy loss: epsilon {self.epsilon}, delta {self.delta}.")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon + other.epsilon, min(Fraction(1), self.delta + other.delta))

    def within(self, budget: PrivacyLoss) -> bool:
        """Return whether this loss is at most `budget` in both coordinates."""
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta

    def __str__(self) -> str:
        delta = f", delta {show(self.delta)}" if self.delta else ""
        return f"epsilon {show(self.epsilon)}{delta}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The maximum cost of one query: an epsilon or a rho, and a delta for mechanisms that need one."""

    epsilon: Fraction | None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    concentrated: bool = False
    """True if only rhos are added up, so that an (epsilon, delta) pair should cost as little rho as possible."""
    bounded_range: bool = False
    """All draws are by the exponential mechanism, which has the smaller rho."""

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidPrivacyParameter("a query is paid by epsilon or by rho: one of them.")

    @property
    def pure(self) -> Fraction:
        """The epsilon of pure noise: for rho, the largest epsilon with epsilon^2 / 2 <= rho (Bun, Steinke 2016,
        proposition 3.3)."""
        return self.epsilon if self.epsilon is not None else root_below(2 * (self.rho or Fraction(0)))

    def rest(self, own: Fraction) -> Fraction:
        """Return what a step of epsilon `own` leaves of `pure`. If paid by rho, rhos, and so squares, add up."""
        if not own or self.rho is None:
            return self.pure - own
        return root_below(max(Fraction(0), 2 * self.rho - own * own))

    def __str__(self) -> str:
        first = f"rho {show(self.rho)}" if self.rho is not None else f"epsilon {show(self.pure)}"
        return f"{first}, delta {show(self.delta)}" if self.delta else first


def root_below(square: Fraction) -> Fraction:
    """Return the square root of a number >= 0, rounded down by a relative error below 2^-60."""
    if not square:
        return Fraction(0)
    bits = 64 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return Fraction(math.isqrt(square.numerator * 4**bits // square.denominator), 2**bits)


def as_rho(value: object, name: str = "rho") -> Fraction:
    """Return a validated rho: finite, > 0, and in the range for which exact noise is provided."""
    number = exact(value, name, POSITIVE)
    if number <= 0:
        raise InvalidPrivacyParameter(f"{name} must be {POSITIVE}, got {_brief(value)}.")
    if not SMALLEST_EPSILON**2 <= number <= LARGEST_EPSILON:
        raise InvalidPrivacyParameter(f"{name} must lie between 1e-18 and 1e9, got {_brief(value)}.")
    return number


def show(number: Fraction, digits: int = 6, *, up: bool = False) -> str:
    """Return a fraction as a short decimal, rounded down, so that the amount left can be requested as shown; with `up`
    rounded up."""
    if number == 0:
        return "0"
    with localcontext() as context:
        context.prec = digits + 30
        value = Decimal(number.numerator) / Decimal(number.denominator)
        exponent = value.adjusted()
        short = value.quantize(
            Decimal(1).scaleb(exponent - digits + 1), rounding="ROUND_CEILING" if up else "ROUND_FLOOR"
        ).normalize()
        return f"{short:f}" if -4 <= exponent <= 7 else f"{short:e}" if digits > 15 else f"{float(short):.{digits}g}"
