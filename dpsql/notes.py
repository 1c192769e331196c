"""Warnings that cost nothing: what a reader of an answer should be aware of, from public facts and released values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsql.noise_intervals import linear_half_widths
from dpsql.release import Release, Released
from dpsql.sql.plan import AggregateKind

LARGE_EPSILON = Fraction(10)
LARGE_DELTA = Fraction(1, 1000)
_MANY = 8


def warnings_of(release: Release, released: Released) -> tuple[str, ...]:
    """Short sentences, most important first; empty when there is nothing to say."""
    found = []
    if (release.cost.epsilon or release.allowed.pure) > LARGE_EPSILON:
        found.append("epsilon above 10 protects little: one person can change the odds of an answer e^10 times.")
    if release.cost.delta > LARGE_DELTA:
        found.append("delta above 1/1000: it should be far below 1 divided by the number of people.")
    if len(release.estimates) > _MANY:
        found.append(f"{len(release.estimates)} aggregates share one epsilon; fewer are more exact each.")
    if _drowned(release, released):
        found.append("the noise is larger than some counts; use larger groups or more epsilon.")
    return tuple(found)


def _drowned(release: Release, released: Released) -> bool:
    for estimate in release.estimates:
        if estimate.kind is AggregateKind.COUNT and estimate.count is not None and released.groups:
            widths = linear_half_widths(release, estimate, 0.95, released.groups)
            if bool((np.abs(released.values[estimate.count]) < widths).any()):
                return True
    return False
