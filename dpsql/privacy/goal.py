"""How close answers are to be, which a query may ask for in place of an epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.errors import InvalidPrivacyParameter
from dpsql.privacy.loss import exact, show


@dataclass(frozen=True, slots=True)
class Goal:
    """Every answer within `error` of the exact one, each with probability `confidence`: error in the answer's own
    units, confidence strictly between 0 and 1."""

    error: Fraction
    confidence: Fraction

    @classmethod
    def of(cls, error: object, confidence: object = 0.95) -> Goal:
        """A goal from what a caller wrote. Raises InvalidPrivacyParameter."""
        wanted, sure = exact(error, "error"), exact(confidence, "confidence")
        if wanted <= 0:
            raise InvalidPrivacyParameter(f"error must be a finite number > 0, got {show(wanted)}.")
        if not 0 < sure < 1:
            hint = f"Write confidence={show(sure / 100)}." if 1 < sure < 100 else ""
            raise InvalidPrivacyParameter(f"confidence must lie between 0 and 1, got {show(sure)}.", hint=hint)
        return cls(wanted, sure)

    def __str__(self) -> str:
        return f"within {show(self.error)} at {show(100 * self.confidence)} %"
