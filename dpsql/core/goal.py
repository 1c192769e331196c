"""The accuracy goal of a query, which can replace an epsilon."""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.loss import exact, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass

_LARGEST = 10**300
_USUAL = Fraction(95, 100)
_SUREST = 1 - Fraction(1, 10**9)
"""Half-widths are exact up to this level."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Every answer within `error` of the exact one, each with probability `confidence`: error in the answer's units,
    confidence strictly between 0 and 1, None if not given."""

    error: Fraction
    confidence: Fraction | None = None

    @classmethod
    def of(cls, error: object, confidence: object = None) -> Goal:
        """Return a goal from a caller's values. Raises InvalidPrivacyParameter."""
        wanted = exact(error, "error")
        if not 0 < wanted <= _LARGEST:
            raise InvalidPrivacyParameter(f"error must be a number > 0 and at most 1e300, got {show(wanted)}.")
        return cls(wanted, None if confidence is None else confidence_of(confidence))

    @property
    def sure(self) -> Fraction:
        """The confidence, 95 % if not given."""
        return _USUAL if self.confidence is None else self.confidence

    def __str__(self) -> str:
        return f"within {show(self.error)} at {show(100 * self.sure)} %"


def confidence_of(value: object) -> Fraction:
    """Return a confidence from a caller's value. Raises InvalidPrivacyParameter."""
    sure = exact(value, "confidence")
    if 0 < sure <= _SUREST:
        return sure
    hint = f"Write confidence={show(sure / 100)}." if 1 < sure < 100 else ""
    if _SUREST < sure < 1:
        raise InvalidPrivacyParameter("confidence goes up to 0.999999999.")
    raise InvalidPrivacyParameter(f"confidence must lie between 0 and 1, got {show(sure)}.", hint=hint)
