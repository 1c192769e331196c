"""Choice between Laplace and Gaussian noise: the smaller error of the requested outputs, by public facts."""

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
    """A comparison of two possible distributions. `wider`: the standard deviation of the other's noise over that of the
    chosen one, as a geometric mean over the `outputs`; `crossover`: for a single count, Gaussian noise is narrower from
    this many cells of one unit on (each moved by one). `hides`: the number of people for which a group is shown as
    likely as not, of the other over the chosen one; None if no threshold hides any. It weighs as much as an output."""

    chosen: str
    wider: float
    crossover: float
    hides: float | None = None
    outputs: int = 1

    @property
    def better(self) -> bool:
        """True if the chosen distribution is better, by the geometric mean of all."""
        return self.outputs * math.log(self.wider) + math.log(self.hides or 1.0) > 0

    @property
    def reversed(self) -> Choice:
        """The comparison from the other distribution's side."""
        hides = None if self.hides is None else 1 / self.hides
        return replace(self, chosen=self.other, wider=1 / self.wider, hides=hides)

    @property
    def other(self) -> str:
        return "laplace" if self.chosen == "gaussian" else "gaussian"


def crossover(allowed: Allowance, delta: Fraction) -> float:
    """Return the number k of cells at which both distributions have the same variance: (k / epsilon)^2 2 = k / (2 rho).

    rho is the Gaussian's at (epsilon, delta) by its exact tails, or by the tight conversion if only rhos are added up.
    If the budget is in rho, k is 1/2, so that Gaussian noise always wins."""
    if allowed.rho is not None:
        return 0.5
    within = rho_for if allowed.concentrated else gaussian_rho
    return float(allowed.pure**2 / (4 * within(allowed.pure, delta)))


def log_error(lattice: Lattice, shares: Sequence[Share]) -> float:
    """Return the mean over the aggregations of the logarithm of their standard error."""
    return mean_log_error(
        lattice, {place: law_of(share.noise, share.places, place).spread for share in shares for place in share.places}
    )
