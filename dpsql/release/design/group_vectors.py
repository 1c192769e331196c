"""One noise vector across all public groups, for people who are in many of few groups.

Noise per group scales with all that a person adds to the groups, or with the number of groups that a person may be in.
Noise for all groups as one vector scales with the number of groups (`core.mechanisms.group_vectors`), and its variance
is a third of that number's square for coordinates that move equally far up and down. A count c of at most p rows of a
person only goes up. So 2 c - p people is measured, which goes up and down by p, and the number of people, once for all
groups. Then c = (p people + (2 c - p people)) / 2 has half the sum of two uncorrelated noises: a variance of (G + 2) (G
+ 3) / 6 for G groups and p = 1. Sums are treated the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import AllUnits, ExactPlan
from dpsql.core.mechanisms.group_vectors import dimension_across, moves_across, reach_across
from dpsql.core.sensitivity.norms import ends_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import Neighbours
from dpsql.plan.query import number_of_cells
from dpsql.release.output.labels import Label
from dpsql.release.parts import Coordinate, Feature, Lattice

MOST_NUMBERS = 150
"""The most numbers in one vector, up to which interval distributions are known to the digit."""
_FINENESS = 2**20
_MOST_STEPS = 2**40


def across(plain: Lattice, public: ExactPlan, analysis: Analysis, epsilon: Fraction) -> Iterator[Lattice]:
    """Yield the same sums with noise for all public groups together, unchanged and centred on the number of people."""
    cells = number_of_cells(public.keys)
    if not plain.noisy or plain.features is not None or not 2 <= cells * len(plain.noisy) < MOST_NUMBERS + cells:
        return
    if analysis.neighbours is Neighbours.UNBOUNDED and analysis.bounds.units.groups == 1:
        return  # one group's cost pays for separate noise in each group
    designs = [plain]
    if analysis.neighbours is Neighbours.UNBOUNDED and analysis.bounds.declared:
        designs += _around_people(plain, analysis)
    for each in designs:
        yield from _scaled(each, public, analysis, epsilon)


def _around_people(plain: Lattice, analysis: Analysis) -> list[Lattice]:
    """Return the lattice with coordinates that are centred by subtracting a multiple of the number of people if a
    person moves them further in one direction than in the other; none if there are no such coordinates."""
    ends = iter(ends_of(plain.parts, plain.noisy, analysis))
    people, last = len(plain.parts), len(plain.coordinates)
    coordinates: list[Coordinate] = []
    features: list[Feature] = []
    for place, each in enumerate(plain.coordinates):
        twice = sum(next(ends)) if each.noisy else 0
        features.append(((place, 1.0), (last, twice / 2 * each.unit)) if twice else ((place, 1.0),))
        coordinates.append(_less(each, people, twice) if twice else each)
    if coordinates == list(plain.coordinates):
        return []
    coordinates.append(Coordinate(Label("people"), ((people, 1),), 1.0))
    parts = (*plain.parts, AllUnits())
    return [replace(plain, parts=parts, coordinates=tuple(coordinates), features=tuple(features))]


def _less(each: Coordinate, people: int, twice: int) -> Coordinate:
    """Return twice the coordinate less `twice` times the number of people."""
    doubled = each.times(2)
    name = replace(each.name, around=Label("people"))
    return replace(doubled, name=name, terms=(*doubled.terms, (people, -twice)))


def _scaled(lattice: Lattice, public: ExactPlan, analysis: Analysis, epsilon: Fraction) -> Iterator[Lattice]:
    """Yield the lattice, unless it has too many numbers, with coordinates scaled to a common sensitivity. A single
    number for all groups stays on the integers; otherwise the lattice is so fine that its distribution is practically
    continuous."""
    plan = replace(public, parts=lattice.parts)
    moves = moves_across(plan, lattice.noisy, analysis)
    steps = math.lcm(*moves)
    if steps > _MOST_STEPS:
        steps = max(moves)
    numbers = dimension_across(reach_across(plan, lattice.noisy, analysis))
    if numbers > MOST_NUMBERS:
        return
    if numbers > 1:
        steps <<= max(0, math.ceil(_FINENESS * epsilon / steps) - 1).bit_length()
    finer = iter([steps // moved for moved in moves])
    coordinates = tuple(each.times(next(finer)) if each.noisy else each for each in lattice.coordinates)
    yield replace(lattice, coordinates=coordinates, across=public)
