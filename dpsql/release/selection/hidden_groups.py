"""Measurements that select the shown groups of private keys."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import CountRows, CountUnits, Part, UnitWeights
from dpsql.core.loss import Allowance
from dpsql.core.measurement import GroupsByChance, GroupsByThreshold, ShownGroups
from dpsql.core.mechanisms.grants import grant
from dpsql.core.mechanisms.noise import Noise
from dpsql.core.selection.threshold import chance_below, threshold
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.core.selection.weighted import MOST_GROUPS, SCALE, GroupsByWeights
from dpsql.core.sensitivity.norms import change_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.errors import InvalidPrivacyParameter
from dpsql.release.parts import Lattice
from dpsql.release.release import Release
from dpsql.release.selection.groups import Selection

_SHARES = (Fraction(1, 2), Fraction(3, 5), Fraction(7, 10), Fraction(4, 5))


def by_chance(
    lattice: Lattice,
    analysis: Analysis,
    chosen: Selection,
    allowed: Allowance,
    *,
    own: Fraction,
    delta: Fraction,
    mechanism: str,
) -> tuple[Lattice, ShownGroups]:
    """Return a selection of groups by exact counts, and the lattice with a part for them. Where the text leaves it open
    and units may be in several groups, groups are selected by weights if, for people in the maximum number of groups,
    these show smaller groups as likely as not."""
    by_pair, least = allowed.rho is None, chosen.least or 1
    share = grant(allowed, None if own == allowed.pure else own, delta / 2 if by_pair else delta)
    counted, place = _with_count_of_units(lattice, analysis)
    groups = GroupsByChance(TruncatedGeometric(share.epsilon, delta, lattice.groups_of_a_unit, least), place)
    each = analysis.bounds.units.groups
    if chosen.asked or mechanism != "auto" or not 1 < each <= MOST_GROUPS:
        return counted, groups
    sides = lattice.groups_of_a_unit // each
    by_weight = GroupsByWeights.calibrate(len(lattice.parts), (each, sides), share, share.delta, least)
    if by_weight.half >= groups.half:
        return counted, groups
    return replace(lattice, parts=(*lattice.parts, UnitWeights(SCALE))), by_weight


def by_threshold(
    lattice: Lattice, analysis: Analysis, noise: Noise, delta: Fraction, least: int
) -> tuple[Lattice, ShownGroups]:
    """Return the selection of groups whose noisy count reaches a threshold, and the lattice with a unit's sensitivity
    in this count."""
    one = change_of(lattice.parts, [lattice.coordinates[lattice.selection].terms], analysis).in_a_group[0]
    lattice, groups = replace(lattice, most_of_a_unit=one), lattice.groups_of_a_unit
    height = threshold(noise, one, delta / groups)
    below, higher = chance_below(noise, one, height, delta / groups), (least - 1) * one
    place = lattice.selection
    return lattice, GroupsByThreshold(height + higher, place, lattice.one_row, one, groups, noise, delta, below)


def _with_count_of_units(lattice: Lattice, analysis: Analysis) -> tuple[Lattice, int]:
    """Return the lattice with a part that counts units, and the part's place."""
    one_row = analysis.bounds.rows.l1 == 1
    part: Part = CountRows(None) if one_row else CountUnits(None)
    if part in lattice.parts:
        return lattice, lattice.parts.index(part)
    return replace(lattice, parts=(*lattice.parts, part)), len(lattice.parts)


def chosen_apart(release: Release) -> tuple[Fraction, int] | None:
    """Return the best alternative to a threshold on a count that is measured anyway: the share of epsilon for a
    separate selection, and the group size that it would show as likely as not. Shares are compared by how much they
    widen all errors and by this size. Only for explanations: the threshold is free, and wins (`docs/decisions/0016`).
    """
    selection, allowed = release.selection, release.allowed
    outputs = sum(each.chosen is None for each in release.estimates)
    if allowed.rho is not None or not selection.conditions or not outputs or len(release.shares) != 1:
        return None
    least = 1 if release.selection.least is None else release.selection.least
    groups, delta = release.lattice.groups_of_a_unit, allowed.delta
    candidates = []
    for share in _SHARES:
        try:
            half = GroupsByChance(TruncatedGeometric(allowed.pure * share, delta, groups, least), 0).half
        except InvalidPrivacyParameter:  # such as groups of millions
            continue
        candidates.append((outputs * -math.log(1 - share) + math.log(half), share, half))
    return min(candidates)[1:] if candidates else None
