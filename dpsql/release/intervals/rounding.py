"""Rounding errors of released doubles: intervals describe the shown values, so they cover these errors.

A value is computed from noisy sums in a few steps, each of which rounds by at most 2^-53 of its result. Up to 2^53 that
is at most 1, and where noise is that small answers are integers; beyond, noise may be smaller than the rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Expr, Slot
from dpsql.release.output.noise_expressions import Linear, form_of
from dpsql.release.release import Release, ReleasedValues

Floats = NDArray[np.float64]

_LARGEST = 2.0**53
_ROUNDED = 2.0**-49
"""The relative error of the sum of all terms: sixteen roundings."""


def rounding(release: Release, released: ReleasedValues, atom: Expr) -> Floats | None:
    """Return the rounding error of each group's value, 0 below 2^53; None if it is 0 in all groups."""
    terms = _terms(release, released, atom) if released.groups else None
    if terms is None or not bool((terms >= _LARGEST).any()):
        return None
    return np.where(terms >= _LARGEST, terms * _ROUNDED, 0.0)


def _terms(release: Release, released: ReleasedValues, atom: Expr) -> Floats | None:
    """Return the sum of the sizes of the terms of COUNT, SUM, AVG, and combinations and quotients of these."""
    if isinstance(atom, Slot):
        estimate = release.estimates[atom.index - len(release.query.plan.keys)]
        if estimate.kind.averages:
            return np.full(released.groups, abs(estimate.centre) + float(estimate.range.magnitude))
    form = form_of(release, atom)
    if form is None:
        return None
    if isinstance(form, Linear):
        return _size(form, released)
    below = np.abs(form.below.value(released.values))
    quotients = _size(form.above, released) / np.where(below == 0, 1.0, below)
    return quotients * (1 + _size(form.below, released) / np.where(below == 0, 1.0, below))


def _size(form: Linear, released: ReleasedValues) -> Floats:
    total = np.full(released.groups, abs(form.constant))
    for place, weight in form.weights.items():
        total += np.abs(weight * released.values[place])
    return total
