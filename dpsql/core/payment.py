"""Check that a release is paid for: from the plan as it will be run, before it is charged.

Planners combine parts, coordinates, mechanisms and charges. This module derives the privacy cost of each measurement
from the combined result, however it was built. So a plan that is put together wrongly is rejected.
  - The executor's `plan` has the contribution bounds and the kind of units of the analysis.
  - Each noise vector: the sensitivity of its coordinates is derived again from the plan's own parts, and the noise's
    loss for that sensitivity is at most its charge. It has one draw for each coordinate, never one draw for two.
  - Coordinates without noise are the same for all neighbours.
  - Groups whose keys are not public are selected, by a count that bounds what a unit adds, for all of a unit's groups.
  - Choices among exact counts have rates for all rows of a unit, and for the right neighbours.
  - All charges together are at most what the ledger records (sequential composition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.conversion import rho_for
from dpsql.core.cost import FREE, Cost
from dpsql.core.exact import CountRows, CountUnits, ExactPlan, ExactTable, UnitWeights
from dpsql.core.measurement import (
    Exact,
    GroupsByChance,
    GroupsByThreshold,
    MeasuredValues,
    Measurement,
    Share,
    ShownGroups,
    measured,
)
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.exponential import ChoiceSequence
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace, reach_across
from dpsql.core.mechanisms.noise import Noise, Reach, RoundedGaussian
from dpsql.core.sensitivity.norms import (
    Terms,
    assert_limited,
    assert_unmoved,
    change_of,
    groups_of_a_unit,
    of_one_group,
    reach_of,
    reach_of_counts,
    reach_of_level,
)
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.sensitivity.stability import Stability, stability
from dpsql.core.unit import ONE_ROW, Neighbours
from dpsql.errors import InternalError
from dpsql.plan.facts import known_of
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class NoisyVector:
    """Noise on the coordinates at some places, and its charge: for all groups, or for their sums by some keys (`level`:
    the keys' places in the plan)."""

    places: tuple[int, ...]
    noise: Noise
    cost: Cost
    level: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """Choices among exact counts: their mechanism (None: the best candidate, allowed for public rows only), or the
    noise of each count; the rows of a unit, the neighbours, and whether a row stays in one group; and the charge."""

    law: ChoiceSequence | None
    noise: Noise | None
    rows: int
    bounded: bool
    one_group: bool
    cost: Cost


@dataclass(frozen=True, slots=True)
class PaidRequest:
    """The plan for an executor, what is known of its rows, and which combinations of its parts are measured."""

    plan: ExactPlan
    analysis: Analysis
    coordinates: tuple[Terms, ...]

    def measured(
        self, measurements: Sequence[Measurement], table: ExactTable, noisy: Iterable[int] = ()
    ) -> MeasuredValues:
        """Return the results of measurements of the plan's exact integers."""
        return measured(measurements, Exact(table, self.steps(table.parts), self.plan.keys), tuple(noisy))

    def steps(self, parts: NDArray[Any]) -> NDArray[Any]:
        """Return the exact coordinates, (coordinates, groups), from the exact parts; integers in lattice steps.

        Python integers replace 64-bit ones that could overflow. This depends on the number of rows but changes no
        result.
        """
        groups = parts.shape[1]
        largest = max((int(abs(part).max()) for part in parts), default=0) if groups else 0
        weight = max((sum(abs(factor) for _, factor in terms) for terms in self.coordinates), default=0)
        wide = parts.dtype == object or max(1, largest) * weight >= 2**61
        exact = parts.astype(object) if wide else parts
        steps = np.zeros((len(self.coordinates), groups), dtype=exact.dtype)
        for row, terms in enumerate(self.coordinates):
            for part, factor in terms:
                steps[row] += exact[part] * factor
        return steps

    def terms(self, places: Iterable[int]) -> list[Terms]:
        return [self.coordinates[place] for place in places]


def assert_paid(
    asked: PaidRequest, measurements: Sequence[Measurement], cost: Cost, before: Iterable[Cost] = ()
) -> None:
    """Raise InternalError if the release costs more than `cost`, including the costs spent `before`."""
    _assert_analysed(asked)
    vectors = [one for each in measurements for one in _drawn_by(each) if isinstance(one, NoisyVector)]
    for vector in vectors:
        _assert_noise(asked, vector)
    covered = {place for vector in vectors for place in vector.places}
    quiet = [place for place in range(len(asked.coordinates)) if place not in covered]
    assert_unmoved(asked.plan.parts, asked.terms(quiet), asked.analysis)
    _assert_chosen(asked, measurements, vectors)
    for each in measurements:
        drawn = _drawn_by(each)
        for drawing in drawn:
            if isinstance(drawing, SelectionStep):
                _assert_drawn(asked, drawing)
        normal = all(isinstance(one.noise, RoundedGaussian) for one in drawn)
        _assert_charged(each.cost, [one.cost for one in drawn], gaussian_rho if normal else rho_for)
        for plan in each.told.plans:  # of its own integers
            _assert_analysed(PaidRequest(plan, of_one_group(asked.analysis), ()))
    together = sum((*before, *(each.cost for each in measurements)), FREE)
    if together.join(cost) != cost:
        raise InternalError("a release would be charged less than its measurements cost")


def _drawn_by(measurement: Measurement) -> tuple[NoisyVector | SelectionStep, ...]:
    if isinstance(measurement, Share):
        return (NoisyVector(measurement.places, measurement.noise, measurement.cost),)
    return measurement.drawn


def _assert_charged(cost: Cost, parts: Sequence[Cost], most: Callable[[Fraction, Fraction], Fraction]) -> None:
    """Check that the parts of a measurement cost no more than the measurement: coordinate by coordinate. For Gaussian
    noise with a joint (epsilon, delta), compare rhos with the largest rho (`most`) for that pair: by the exact tails
    for rounded noise only, whose parts are one vector."""
    worth = sum(parts, FREE)
    if worth.epsilon is None and cost.epsilon is not None:
        paid = worth.rho <= min(cost.rho, most(cost.epsilon, cost.delta)) and not worth.delta
    else:
        paid = worth.join(cost) == cost
    if not paid:
        raise InternalError("a measurement would be charged less than its parts cost")


def _assert_analysed(asked: PaidRequest) -> None:
    """Check that the analysis is of the plan's own source: its units, contribution bounds and known facts."""
    plan, analysis = asked.plan, asked.analysis
    below = stability(plan.source)
    if analysis.private != bool(below.by_unit) or (plan.keys and not analysis.grouped):
        raise InternalError("the rows of a plan are not those that were analysed")
    if analysis.private and not (analysis.bounds.enforced or _bounds_itself(below, analysis)):
        raise InternalError("nothing bounds the rows of a person")
    one_row = below.every_row and analysis.bounds.rows == ONE_ROW
    if analysis.public_count and (analysis.grouped or not one_row or analysis.neighbours is not Neighbours.BOUNDED):
        raise InternalError("a number of rows that is private would be public")
    if analysis.known != known_of(plan.source):
        raise InternalError("more is held for known than the filters say")
    assert_limited(plan, analysis)


def _bounds_itself(below: Stability, analysis: Analysis) -> bool:
    """Return whether the source itself bounds a unit's rows and groups by the contribution bounds."""
    most, rows = below.rows, analysis.bounds.rows
    return most is not None and most <= min(rows.rows, rows.per_group, rows.groups if analysis.grouped else rows.rows)


def _assert_noise(asked: PaidRequest, vector: NoisyVector) -> None:
    reach = _reach(asked, vector)
    try:
        worth = vector.noise.loss(reach)
    except ValueError:
        worth = None
    shape = vector.noise.draw(0).shape
    if worth is None or worth.join(vector.cost) != vector.cost or shape != (len(set(vector.places)), 0):
        raise InternalError("noise would be smaller than its charge")


def _reach(asked: PaidRequest, vector: NoisyVector) -> Reach:
    terms = asked.terms(vector.places)
    if isinstance(vector.noise, GroupVectorLaplace) and vector.level is None:
        return reach_across(asked.plan, terms, asked.analysis)
    if vector.level is None:
        classes = vector.noise.classes if isinstance(vector.noise, ClassLaplace) else ()
        return reach_of(asked.plan.parts, terms, asked.analysis, classes)
    sizes = [max(1, len(key.values or ())) for key in asked.plan.keys]
    cells = math.prod(sizes[key] for key in vector.level)
    return reach_of_level(asked.plan.parts, terms, asked.analysis, cells, math.prod(sizes) // cells)


def _assert_chosen(asked: PaidRequest, measurements: Sequence[Measurement], vectors: Sequence[NoisyVector]) -> None:
    """Check that all groups are public, or that at least one measurement selects the groups to show."""
    plan, analysis = asked.plan, asked.analysis
    found = [one for each in measurements for one in each.told.selections if one.hides]
    if analysis.private and plan.keys and not plan.every_cell and not found:
        raise InternalError("groups would show whose rows there are")
    if not all(_is_sound(asked, each, vectors) for each in found):
        raise InternalError("groups of one person would be shown more often than is charged")


def _is_sound(asked: PaidRequest, each: ShownGroups, vectors: Sequence[NoisyVector]) -> bool:
    """Return whether a selection measures what it declares, for all groups that can appear or disappear with a unit."""
    plan, analysis = asked.plan, asked.analysis
    if isinstance(each, GroupsByChance):
        counts = (CountRows(None), CountUnits(None)) if analysis.bounds.rows.l1 == 1 else (CountUnits(None),)
        return plan.parts[each.part] in counts and each.law.groups >= groups_of_a_unit(analysis)
    if isinstance(each, GroupsByThreshold):
        one = change_of(plan.parts, asked.terms([each.place]), analysis).in_a_group[0]
        noisy = any(each.place in vector.places and vector.noise == each.noise for vector in vectors)
        return noisy and one <= each.most_of_a_unit and each.groups >= groups_of_a_unit(analysis)
    from dpsql.core.selection.weighted import GroupsByWeights  # few queries need it

    if not isinstance(each, GroupsByWeights) or each.groups < groups_of_a_unit(analysis):
        return False
    both = analysis.neighbours is Neighbours.BOUNDED
    return plan.parts[each.part] == UnitWeights(each.scale) and each.sides >= 1 + both


def _assert_drawn(asked: PaidRequest, drawing: SelectionStep) -> None:
    analysis = asked.analysis
    if not analysis.private:
        return
    sound = drawing.rows >= analysis.bounds.rows.l1 and not (drawing.one_group and asked.plan.keys)
    if drawing.bounded != (analysis.neighbours is Neighbours.BOUNDED) or not sound:
        raise InternalError("a choice would be paid for by fewer rows than a person has")
    if drawing.noise is not None:
        worth = drawing.noise.loss(reach_of_counts(analysis))
    elif drawing.law is not None:
        worth = drawing.law.loss
    else:
        raise InternalError("a choice among people's rows would be free")
    if worth.join(drawing.cost) != drawing.cost:
        raise InternalError("a choice would be worth more than its charge")
