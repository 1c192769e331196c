"""Aggregates of people who are in many of few public groups: one vector of noise for all groups together.

By groups, noise is as wide as all that a person adds to them, or goes by the number of groups that a person may be in.
For all groups as one vector it goes by the number of groups there are (`core.mechanisms.group_vectors`), with a third
of its square as variance for what goes up and down alike. A count c of at most p rows of a person only goes up: so 2 c
- p people is measured, which goes up and down by p, and the number of people, once for all groups. Then c = (p people +
(2 c - p people)) / 2 has half the sum of two uncorrelated noises: a variance of (G + 2) (G + 3) / 6 for G groups and p
= 1. Sums are the same.
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
"""In one vector, up to where the laws of intervals are known to the digit."""
_FINENESS = 2**20
_MOST_STEPS = 2**40


def across(plain: Lattice, public: ExactPlan, analysis: Analysis, epsilon: Fraction) -> Iterator[Lattice]:
    """The same sums with noise for all public groups together, as they are, and around the number of people."""
    cells = number_of_cells(public.keys)
    if not plain.noisy or plain.features is not None or not 2 <= cells * len(plain.noisy) < MOST_NUMBERS + cells:
        return
    if analysis.neighbours is Neighbours.UNBOUNDED and analysis.bounds.units.groups == 1:
        return  # noise for each group by itself is paid for by one
    designs = [plain]
    if analysis.neighbours is Neighbours.UNBOUNDED and analysis.bounds.declared:
        designs += _around_people(plain, analysis)
    for each in designs:
        yield from _scaled(each, public, analysis, epsilon)


def _around_people(plain: Lattice, analysis: Analysis) -> list[Lattice]:
    """Coordinates that a person moves further up than down, or the other way, less the middle of that times the number
    of people; none where no coordinate is one."""
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
    """Twice the coordinate less so many times the number of people."""
    doubled = each.times(2)
    name = replace(each.name, around=Label("people"))
    return replace(doubled, name=name, terms=(*doubled.terms, (people, -twice)))


def _scaled(lattice: Lattice, public: ExactPlan, analysis: Analysis, epsilon: Fraction) -> Iterator[Lattice]:
    """The lattice, where it has no more numbers than may be, with coordinates that move alike, on the integers where
    there is one number for all groups, and else so fine that their law is as good as continuous."""
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
