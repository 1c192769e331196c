"""Counts of some of the rows beside the count of all: measured as twice themselves less the count of all.

A row adds 1 to COUNT(*) = N and 0 or 1 to a count c of some rows (COUNT(x), COUNT_IF, COUNT ... FILTER) or of different
values. It moves 2 c - N by -1 or 1, as far as it moves c itself, so the noise is the same; and c = (N + (2 c - N)) / 2
has half the sum of two uncorrelated noises: half the variance, for nothing. (A SUM of booleans centred beside their
count is the same thing.) Two such counts are even worth a count of all that nobody asks for: d + 1 coordinates of the
law on the cube have a variance of (d + 2)(d + 3) / 3, and half of that is less than (d + 1)(d + 2) / 3 for d >= 2.

What it costs follows from both parts (`core.sensitivity.norms`). Under bounded neighbours 2 c - N can move further than
c (a row that is counted and then is not), so that the designs have to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.exact import CountDistinct, CountRows, Part
from dpsql.release.parts import Coordinate, Feature


def worth_a_count(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> bool:
    """Whether counts of some rows might be better measured around that of all."""
    return len(_of_some(parts, coordinates)) > (_of_all(parts, coordinates) is None)


def around_the_count(
    parts: Sequence[Part], coordinates: Sequence[Coordinate]
) -> tuple[list[Coordinate], tuple[Feature, ...]]:
    """The coordinates with such counts taken less half the count of all, if that is noisy; and what aggregates speak
    of then."""
    less = list(coordinates)
    features: list[Feature] = [((place, 1.0),) for place in range(len(coordinates))]
    every = _of_all(parts, coordinates)
    if every is not None:
        for place in _of_some(parts, coordinates):
            less[place] = _less_half(coordinates[place], coordinates[every])
            features[place] = ((place, 1.0), (every, 0.5))
    return less, tuple(features)


def _of_some(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> list[int]:
    """The places of noisy counts of some of the rows."""
    counted = [(place, part) for place, part in _counts(parts, coordinates) if part != CountRows(None)]
    return [place for place, part in counted if isinstance(part, CountDistinct | CountRows)]


def _of_all(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> int | None:
    """The place of the noisy count of all rows."""
    return next((place for place, part in _counts(parts, coordinates) if part == CountRows(None)), None)


def _counts(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> list[tuple[int, Part]]:
    """Coordinates that are one part each, with noise."""
    plain = [(place, each) for place, each in enumerate(coordinates) if each.noisy]
    return [(place, parts[each.terms[0][0]]) for place, each in plain if len(each.terms) == 1]


def _less_half(each: Coordinate, count: Coordinate) -> Coordinate:
    ((part, _),), ((every, _),) = each.terms, count.terms
    name = replace(each.name, around=count.name)
    return replace(each, name=name, terms=((part, 2), (every, -1)), unit=0.5)
