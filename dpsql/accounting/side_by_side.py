"""All accountants, among them the one that computes with the whole distribution of the loss, which is loaded when it is
asked: it takes longer to import than the others together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpsql.accounting import accountants
from dpsql.accounting.accountants import Accountant
from dpsql.core.events import Steps


def pld(steps: Steps, delta: Fraction) -> float:
    """The whole distribution of the loss, by FFT with pessimistic rounding. NaN if a step is known by its zCDP alone
    (no worst pair is known), or where delta leaves nothing and not all steps are pure."""
    from dpsql.accounting import loss_distribution as distributions

    return distributions.epsilon_of(steps, delta)


def delta_of(steps: Steps, epsilon: Fraction) -> float:
    """The least delta at epsilon that `pld` proves. NaN if a step is known by its zCDP alone."""
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
