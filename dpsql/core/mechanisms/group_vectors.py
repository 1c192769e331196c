"""One noise vector for all public groups together, for people who are in many of few groups.

Noise for each group separately is paid for by the sum of a unit's changes in its groups: G groups of a unit make it G
times as wide. Here the vector of all coordinates of all groups has one draw on the cube. It is paid for by the largest
change of any coordinate, and is about D / sqrt(3) times as wide for a vector of D numbers.

Sensitivity (`reach_across`). In a group a unit adds to a coordinate i, a combination of parts of the group, an integer
of [a_i, b_i], which contains 0, since it may have no row there (`norms.ends_of`). To `AllUnits` it adds 1, if it has a
row in any group. That number is in every group, so with the factor f_i the coordinate changes by x + f_i in every
group, x of [a_i, b_i], or by nothing if the unit is in no group. For any number of groups:
  Unbounded neighbours: the largest of |a_i + f_i| and |b_i + f_i|.
  Bounded neighbours: if both of the unit's rows are in some group, x' - x, at most b_i - a_i; if those of one table are
in none, as above.
So a count c of at most p rows of a unit, measured as 2 c - p AllUnits, changes by at most p in every group, as c does.

Two groups, one of which surely holds each row (`_either`): if a row changes, with the number of rows public, one
group's count goes up by as much as the other's goes down. Both are one number, and so is their noise: x in one group
and -x in the other. Their sum has no noise, and needs none, since it is the same in all neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import Cost
from dpsql.core.exact import AllUnits, CountRows, ExactPlan, Part
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.noise import CubeLaplace, GroupVectorSensitivity, Reach
from dpsql.core.sensitivity.norms import Terms, ends_of, reach_of, sensitivity_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.sensitivity.stability import stability
from dpsql.core.unit import ONE_ROW, Neighbours, Sensitivity
from dpsql.errors import InternalError
from dpsql.plan.facts import fact
from dpsql.plan.query import GroupKey, number_of_cells
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

EACH, ALL, EITHER = "each", "all", "either"


def reach_across(plan: ExactPlan, coordinates: Sequence[Terms], analysis: Analysis) -> Reach:
    """Return the reach of coordinates of all groups as one vector; proof: the module's docstring. Raises InternalError
    for private groups, whose number would reveal information."""
    largest = max(moves_across(plan, coordinates, analysis), default=0)
    cells = number_of_cells(plan.keys)
    sure = _either(plan, analysis)
    kinds = tuple(_kind([plan.parts[part] for part, _ in terms], sure=sure) for terms in coordinates)
    across, many = GroupVectorSensitivity(largest, cells, kinds), len(coordinates)
    if not _of_all(plan.parts, coordinates):
        return replace(reach_of(plan.parts, coordinates, analysis), across=across)
    each = cells * largest  # the cost under other mechanisms: no less than their norms
    return Reach(each, Fraction(many * cells * largest**2), many, many * each, cells, across=across)


def moves_across(plan: ExactPlan, coordinates: Sequence[Terms], analysis: Analysis) -> tuple[int, ...]:
    """Return a unit's largest change of each coordinate in any group. Raises InternalError as `reach_across` does."""
    if not (plan.keys and plan.every_cell and analysis.grouped and analysis.private):
        raise InternalError("noise for all groups together is for public groups")
    known = {place for place, part in enumerate(plan.parts) if isinstance(part, AllUnits)}
    own = [[(part, factor) for part, factor in terms if part not in known] for terms in coordinates]
    of_all = (sum(factor for part, factor in terms if part in known) for terms in coordinates)
    bounded = analysis.neighbours is Neighbours.BOUNDED
    return tuple(
        max(abs(low + more), abs(high + more), (high - low) * bounded)
        for (low, high), more in zip(ends_of(plan.parts, own, analysis), of_all, strict=True)
    )


def sensitivity_across(plan: ExactPlan, terms: Terms, analysis: Analysis) -> Sensitivity:
    """Return the norms over all groups of one coordinate."""
    if not _of_all(plan.parts, [terms]):
        return sensitivity_of(plan.parts, terms, analysis)
    across = reach_across(plan, [terms], analysis).across
    assert across is not None  # as it has just been derived
    return Sensitivity(across.cells * across.largest, math.sqrt(across.cells) * across.largest, across.largest)


def _of_all(parts: Sequence[Part], coordinates: Sequence[Terms]) -> bool:
    """Return whether the coordinates include a number over all groups."""
    return any(isinstance(parts[part], AllUnits) for terms in coordinates for part, _ in terms)


def _either(plan: ExactPlan, analysis: Analysis) -> bool:
    """Return whether there are two groups, one of which holds each of a public number of rows: no row is dropped, each
    is a unit that changes and stays, and every value of the key is one of the two."""
    below, all_rows = stability(plan.source), (plan.limits, plan.groups) == (None, None)
    public = (
        all_rows and below.every_row and analysis.bounds.rows == ONE_ROW and analysis.neighbours is Neighbours.BOUNDED
    )
    return public and len(plan.keys) == 1 and len(plan.keys[0].values or ()) == 2 and _holds_all(plan.keys[0], analysis)


def _holds_all(key: GroupKey, analysis: Analysis) -> bool:
    """Return whether every value of a key is among its public ones: both truth values, and never NULL; or, with an
    owner's list that has NULL, values outside the list count as NULL."""
    if key.listed and None in (key.values or ()):
        return True
    both = key.expr.type is Type.BOOLEAN and set(key.values or ()) == {False, True}
    return both and not fact(key.expr, analysis.known).nullable


def _kind(parts: Sequence[Part], *, sure: bool) -> str:
    """Return the kind of a coordinate of these parts; `sure`: there are two groups, and every row is in one of them."""
    if all(isinstance(part, AllUnits) for part in parts):
        return ALL
    return EITHER if sure and all(part == CountRows(None) for part in parts) else EACH


@dataclass(frozen=True, slots=True)
class GroupVectorLaplace(CubeLaplace):
    """P(x) proportional to exp(-max |x_i| / scale), where x are the `dimension` coordinates of all groups together;
    `kinds` has the kind of each of a group's coordinates (see `GroupVectorSensitivity`).

    Privacy: by the triangle inequality of the max norm, the ratio of the probabilities of any outcome is at most
    exp(largest / scale), for any number of coordinates (Hardt, Talwar, STOC 2010, theorem 4.2). A coordinate that is
    the same in all groups is measured once and repeated. Of two groups that determine each other, one is measured, and
    the other is the rest of their sum, which all neighbours have in common.
    """

    kinds: tuple[str, ...] = ()

    @classmethod
    def calibrate(cls, reach: Reach, epsilon: Fraction) -> GroupVectorLaplace:
        if reach.across is None:
            raise ValueError("it is not known how far a unit moves all groups together")
        across = reach.across
        scale = CubeLaplace.calibrate(Reach(across.largest, Fraction(0), 1), epsilon).exact_scale
        return cls(scale, max(1, sum(_numbers(across.kinds, across.cells))), epsilon, across.kinds)

    @property
    def name(self) -> str:
        return "discrete_k_norm_of_groups" if self.dimension > 1 else "discrete_laplace_of_two_groups"

    def draw(self, cells: int) -> NDArray[Any]:
        numbers = _numbers(self.kinds, cells) if cells else []
        if cells and sum(numbers) != self.dimension:
            raise ValueError("the noise is for another number of groups")
        flat = samplers.cube_laplace(self.exact_scale, sum(numbers), 1)[:, 0] if cells else np.zeros(0, dtype=np.int64)
        drawn = np.zeros((len(self.kinds), cells), dtype=flat.dtype)
        ends = np.cumsum(numbers)
        for row, (kind, end, number) in enumerate(zip(self.kinds, ends.tolist(), numbers, strict=False)):
            drawn[row] = flat[end - number : end] * (np.array([1, -1]) if kind == EITHER else 1)
        return drawn

    def loss(self, reach: Reach) -> Cost:
        if reach.across is None or reach.across.kinds != self.kinds:
            raise ValueError("the reach is of other coordinates than the noise")
        return Cost.of(max(self.epsilon, Fraction(reach.across.largest) / self.exact_scale))


def _numbers(kinds: Sequence[str], cells: int) -> list[int]:
    """Return how many numbers each coordinate has in all groups."""
    return [cells if kind == EACH else 1 for kind in kinds]


def dimension_across(reach: Reach) -> int:
    """Return the length of the vector of all groups."""
    return 0 if reach.across is None else sum(_numbers(reach.across.kinds, reach.across.cells))
