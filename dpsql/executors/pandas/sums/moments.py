"""Products and shares of the values of a row, as integers: the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import LARGEST_STEP_COUNT, SHARE_STEPS, LatticeProduct, LatticeShare, LatticeSum
from dpsql.executors.pandas.columns.declared_columns import lattice_steps
from dpsql.plan.expressions import Vector

LARGEST_MOMENT = LARGEST_STEP_COUNT - 1
_BITS = SHARE_STEPS.bit_length() - 1
Steps = NDArray[np.int64]


def moment_steps(part: LatticeProduct, first: Vector, second: Vector) -> Steps:
    """Return the integers that the rows of a block add to a product; NULL cells hold some integer of the range.

    With `whole` both factors are in {-N..N} and the product is exact, so it needs no clipping."""
    if part.whole:
        left = 2 * lattice_steps(part.first, first) - part.first.most
        right = left if second is first else 2 * lattice_steps(part.second, second) - part.second.most
        return np.asarray(left * right, dtype=np.int64)
    left_part, right_part = _centred(part.first, first), _centred(part.second, second)
    steps = np.rint(left_part * right_part * part.most)
    return np.clip(np.where(np.isfinite(steps), steps, 0), -part.most, part.most).astype(np.int64)


def _centred(part: LatticeSum, vector: Vector) -> NDArray[np.float64]:
    """Return the positions of values between the ends of their lattice, from -1 to 1. Computed from steps, so that rows
    of equal steps add the same."""
    return np.asarray(lattice_steps(part, vector) * (2 / part.most) - 1, dtype=np.float64)


def share_steps(part: LatticeShare, first: Vector, second: Vector) -> list[Steps]:
    """Return the integers that the rows of a block add to all shares of the part's division, (i, j) with j running
    fastest.

    The shares of one value add up to SHARE_STEPS: all but one are rounded down, and that one is the remainder, which is
    at least its own share rounded down, hence not negative. The second value divides each share p of the first: floor(p
    w / SHARE_STEPS) for all but the last w, and the remainder of p. Factors are at most 2^30, products at most 2^60.
    """
    own = _shares(lattice_steps(part.first, first), part.degrees[0])
    if part.degrees[1] == 0:
        return own
    other = _shares(lattice_steps(part.second, second), part.degrees[1])[:-1]
    shares = []
    for each in own:
        rest = each.copy()
        for weight in other:
            share = (each * weight) >> _BITS
            rest -= share
            shares.append(share)
        shares.append(rest)
    return shares


class Division:
    """Shares of a block, cached for the parts of the same division of rows."""

    def __init__(self) -> None:
        self._found: dict[object, list[Steps]] = {}
        self._start = -1

    def steps(self, part: LatticeShare, first: Vector, second: Vector, start: int) -> Steps:
        """Return the integers that the rows of the block at `start` add to a share."""
        if start != self._start:
            self._found.clear()
            self._start = start
        key = (part.first, part.second, part.degrees)
        if key not in self._found:
            self._found[key] = share_steps(part, first, second)
        return self._found[key][part.index[0] * (part.degrees[1] + 1) + part.index[1]]


def _shares(steps: Steps, degree: int) -> list[Steps]:
    """Evaluate Bernstein polynomials of this degree at steps / SHARE_STEPS, in units of 1 / SHARE_STEPS."""
    left = SHARE_STEPS - steps
    if degree == 0:
        return [np.full(len(steps), SHARE_STEPS, dtype=np.int64)]
    if degree == 1:
        return [left, steps]
    least, most = (left * left) >> _BITS, (steps * steps) >> _BITS
    return [least, SHARE_STEPS - least - most, most]
