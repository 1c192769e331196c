"""Counts of some rows, measured as twice the count less the count of all rows.

A row adds 1 to COUNT(*) = N and 0 or 1 to a count c of some rows (COUNT(x), COUNT_IF, COUNT ... FILTER) or of distinct
values. It moves 2 c - N by -1 or 1, as far as c, so the noise is the same. And c = (N + (2 c - N)) / 2 has half the sum
of two uncorrelated noises: half the variance, at no cost. (A SUM of booleans centred with their count is equivalent.)
Two such counts even justify an unrequested count of all: d + 1 coordinates of the distribution on the cube have a
variance of (d + 2)(d + 3) / 3, and half of that is less than (d + 1)(d + 2) / 3 for d >= 2.

The cost follows from both parts (`core.sensitivity.norms`). Under bounded neighbours 2 c - N can move further than c
(if a counted row becomes an uncounted one), so the designs have to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.exact import CountDistinct, CountRows, Part
from dpsql.release.parts import Coordinate, Feature


def worth_a_count(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> bool:
    """Return whether measuring counts of some rows less half the count of all may be better."""
    return len(_of_some(parts, coordinates)) > (_of_all(parts, coordinates) is None)


def around_the_count(
    parts: Sequence[Part], coordinates: Sequence[Coordinate]
) -> tuple[list[Coordinate], tuple[Feature, ...]]:
    """Return the coordinates with these counts less half the count of all, if that is noisy; and the features of the
    aggregates."""
    less = list(coordinates)
    features: list[Feature] = [((place, 1.0),) for place in range(len(coordinates))]
    every = _of_all(parts, coordinates)
    if every is not None:
        for place in _of_some(parts, coordinates):
            less[place] = _less_half(coordinates[place], coordinates[every])
            features[place] = ((place, 1.0), (every, 0.5))
    return less, tuple(features)


def _of_some(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> list[int]:
    """Return the places of noisy counts of some of the rows."""
    counted = [(place, part) for place, part in _counts(parts, coordinates) if part != CountRows(None)]
    return [place for place, part in counted if isinstance(part, CountDistinct | CountRows)]


def _of_all(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> int | None:
    """Return the place of the noisy count of all rows."""
    return next((place for place, part in _counts(parts, coordinates) if part == CountRows(None)), None)


def _counts(parts: Sequence[Part], coordinates: Sequence[Coordinate]) -> list[tuple[int, Part]]:
    """Return the noisy coordinates that consist of one part."""
    plain = [(place, each) for place, each in enumerate(coordinates) if each.noisy]
    return [(place, parts[each.terms[0][0]]) for place, each in plain if len(each.terms) == 1]


def _less_half(each: Coordinate, count: Coordinate) -> Coordinate:
    ((part, _),), ((every, _),) = each.terms, count.terms
    name = replace(each.name, around=count.name)
    return replace(each, name=name, terms=((part, 2), (every, -1)), unit=0.5)
