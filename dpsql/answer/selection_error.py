"""Errors of selected values: in rows, and by the spacing of a coarse grid of candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.explanation_tree import FREE, Gaps, Price, PrivateSelection, SelectionError
from dpsql.answer.query_wording import QueryWording
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Slot
from dpsql.release.choices import EXACT, Draw
from dpsql.release.output.select import Answer
from dpsql.release.parts import ChosenPoint
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type

_LEVEL = 0.95
_FINE = 1e-5
"""Candidates closer together than this share of their range cause no error that a reader could act on."""
_SHARE = 0.01
"""The rank error as a share of the rows, if no count of the rows is available."""


def asked_of(release: Release, draw: Draw) -> tuple[Aggregation, ...]:
    """Return the aggregations that use the values of a draw."""
    pairs = zip(release.query.plan.aggregations, release.estimates, strict=True)
    return tuple(each for each, estimate in pairs if estimate.chosen and estimate.chosen.place in draw.places)


def drawn(release: Release, draw: Draw, price: Price, plain: QueryWording) -> PrivateSelection:
    """Describe a draw."""
    of = asked_of(release, draw)
    asked = tuple(plain.aggregation(each) for each in of)
    off, rows = far_off(release, draw), draw.rows_off(_LEVEL)
    return PrivateSelection(
        of, asked, draw.mechanism, draw.epsilon, draw.points, rows, off, FREE if off is None else price
    )


def far_off(release: Release, draw: Draw, released: ReleasedValues | None = None) -> SelectionError | None:
    """Return the error bound of a selected value, which holds for any data, with the spacing of the candidates (near
    the `released` ones) if not all values are candidates; None if the value is exact."""
    if draw.mechanism == EXACT:
        return None
    chosen = (each.chosen for each in release.estimates)
    partial = [each for each in chosen if each is not None and each.place in draw.places and each.partial]
    gaps = _gaps(partial, released) if partial else None
    return SelectionError(
        draw.rows_off(_LEVEL),
        draw.kind,
        None if draw.kind.end is None else draw.rank,
        len(draw.wanted) > 1,
        bool(partial),
        gaps,
    )


def is_meaningless(release: Release, draw: Draw) -> bool:
    """Return whether all values of a draw are NULL because no bounds were found for them."""
    places = {place for place, each in enumerate(release.estimates) if each.chosen and each.chosen.place in draw.places}
    return places <= release.meaningless


def _gaps(partial: list[ChosenPoint], released: ReleasedValues | None) -> Gaps | None:
    """Return the spacing of candidates, near the released ones if given; None if every value of the range is a
    candidate. The right value may lie anywhere up to the next candidate, whatever the rank error is."""
    found = [_distances(each, released) for each in partial]
    least, most = min(float(each.min()) for each in found), max(float(each.max()) for each in found)
    kind = partial[0].kind
    if not most or (kind is Type.INTEGER and most <= 1):  # one value, or all whole numbers are candidates
        return None
    if all(each.among is not None and most < _FINE * _range_width(each) for each in partial):
        return None
    given = released is not None
    return Gaps(most if given else least, most, kind, near=given and partial[0].points is not None)


def _distances(chosen: ChosenPoint, released: ReleasedValues | None) -> NDArray[np.float64]:
    """Return the distances to the next candidates, from the selected ones or else from all."""
    if chosen.among is not None:
        return np.array([chosen.among.apart])
    if chosen.points is None:
        return np.array([float(chosen.step)])
    gaps = np.diff(chosen.points.values.astype(np.float64))
    if not len(gaps):  # a range of one value
        return np.zeros(1)
    if released is None or not released.groups:
        return gaps
    drawn = released.values[chosen.place].astype(np.int64)
    before, behind = np.clip(drawn - 1, 0, len(gaps) - 1), np.clip(drawn, 0, len(gaps) - 1)
    near: NDArray[np.float64] = np.maximum(gaps[before], gaps[behind])
    return near


def selection_units(release: Release, released: ReleasedValues, answer: Answer) -> dict[str, float]:
    """Return, for each output that is a selected number, the difference in values that its rank error may hide: its
    share of the rows, times the values or their range, whichever is smaller. Used only to choose the digits shown."""
    units = {}
    for name, kind, expr, vector in zip(answer.names, answer.types, answer.exprs, answer.vectors, strict=True):
        place = expr.index - len(release.query.plan.keys) if isinstance(expr, Slot) else -1
        chosen = release.estimates[place].chosen if place >= 0 else None
        if chosen is None or kind not in (Type.REAL, Type.TIMESTAMP):
            continue
        draw = next(each for each in release.draws if chosen.place in each.places)
        sizes = np.abs(vector.values[vector.where_valid()].astype(np.float64))
        sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
        scale = min(_range_width(chosen), float(np.median(sizes)) if len(sizes) and kind is Type.REAL else np.inf)
        if draw.mechanism != EXACT and 0 < scale < np.inf:
            units[name] = scale * _rank_share(release, released, draw)
    return units


def _range_width(chosen: ChosenPoint) -> float:
    """Return the distance between the lowest and the highest candidate."""
    points = chosen.points or chosen.among
    return float(chosen.step * chosen.most) if points is None else float(points.upper) - float(points.lower)


def _rank_share(release: Release, released: ReleasedValues, draw: Draw) -> float:
    """Return the rank error as a share of the rows of a typical group, by a noisy count of all rows if there is one."""
    for aggregation, each in zip(release.query.plan.aggregations, release.estimates, strict=True):
        if each.kind.counts and aggregation.argument is None and each.count is not None and released.groups:
            rows = max(1, draw.rows_off(_LEVEL))
            return rows / max(rows, float(np.median(released.values[each.count])))
    return _SHARE
