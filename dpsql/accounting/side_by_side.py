"""All accountants. The one that uses the privacy loss distribution is loaded when needed: it takes longer to import
than the others together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpsql.accounting import accountants
from dpsql.accounting.accountants import Accountant
from dpsql.core.events import Steps


def pld(steps: Steps, delta: Fraction) -> float:
    """Compose privacy loss distributions by FFT with pessimistic rounding. NaN if a step is known only by its zCDP (no
    worst pair is known), or if no delta is left and not all steps are pure."""
    from dpsql.accounting import loss_distribution as distributions

    return distributions.epsilon_of(steps, delta)


def delta_of(steps: Steps, epsilon: Fraction) -> float:
    """Return the least delta at epsilon that `pld` proves. NaN if a step is known only by its zCDP."""
    from dpsql.accounting import loss_distribution as distributions

    return distributions.delta_of(steps, epsilon)


ACCOUNTANTS: Mapping[str, Accountant] = {
    "basic": accountants.basic,
    "advanced": accountants.advanced,
    "kov": accountants.kov,
    "zcdp_classic": accountants.zcdp_classic,
    "zcdp": accountants.zcdp,
    "rdp": accountants.rdp,
    "pld": pld,
}
