"""Laplace or Gaussian noise: whichever gives the requested outputs less error, by public facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.conversion import rho_for
from dpsql.core.loss import Allowance
from dpsql.core.measurement import Share
from dpsql.core.mechanisms.coordinate_classes import law_of
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.release.expected_error import mean_log_error
from dpsql.release.parts import Lattice
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """Both laws were possible. `wider`: the standard deviation of the other's noise over that of the chosen, as a
    geometric mean over the `outputs`; `crossover`: where one count is asked for, Gaussian noise is the narrower
    from so many cells of one unit on (each moved by one). `hides`: of how many people a group is shown as likely as not
    with the other, over how many with the chosen; None where no threshold hides any. It weighs as much as an output."""

    chosen: str
    wider: float
    crossover: float
    hides: float | None = None
    outputs: int = 1

    @property
    def better(self) -> bool:
        """Whether the chosen one is, by the geometric mean of all."""
        return self.outputs * math.log(self.wider) + math.log(self.hides or 1.0) > 0

    @property
    def reversed(self) -> Choice:
        """As the other one has it."""
        hides = None if self.hides is None else 1 / self.hides
        return replace(self, chosen=self.other, wider=1 / self.wider, hides=hides)

    @property
    def other(self) -> str:
        return "laplace" if self.chosen == "gaussian" else "gaussian"


def crossover(allowed: Allowance, delta: Fraction) -> float:
    """The number k of cells at which both laws have one variance: (k / epsilon)^2 2 = k / (2 rho).

    rho is what (epsilon, delta) allows a Gaussian by its exact tails, or by the tight conversion where rhos alone are
    added up; paid by rho it is 1/2, so that Gaussian
    noise always wins.
    """
    if allowed.rho is not None:
        return 0.5
    within = rho_for if allowed.concentrated else gaussian_rho
    return float(allowed.pure**2 / (4 * within(allowed.pure, delta)))


def log_error(lattice: Lattice, shares: Sequence[Share]) -> float:
    """The mean over the aggregations of the logarithm of their standard error."""
    return mean_log_error(
        lattice, {place: law_of(share.noise, share.places, place).spread for share in shares for place in share.places}
    )
