"""How far apart the public points are that a value is drawn from: what a grid that is too coarse hides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.release.choices import Draw
from dpsql.release.parts import Chosen
from dpsql.release.release import Release, Released
from dpsql.schema.columns import Type

_UNITS = ((86_400e6, "days"), (3_600e6, "h"), (60e6, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def points_apart(release: Release, draw: Draw, released: Released | None = None) -> str | None:
    """How far apart points are, next to the drawn ones where those are given; None where every value of the range is a
    point. The right value may lie anywhere up to the next point, whatever rows say."""
    chosen = (each.chosen for each in release.estimates)
    partial = [each for each in chosen if each is not None and each.place in draw.places and each.partial]
    if not partial:
        return None
    gaps = [_gaps(each, released) for each in partial]
    least, most = (pick(float(end(gap)) for gap in gaps) for pick, end in ((min, np.min), (max, np.max)))
    kind = partial[0].kind
    if kind is Type.INTEGER and most <= 1:  # each whole number is one
        return None
    if least == most or released is not None:
        here = "" if released is None or partial[0].points is None else " here"
        return f"points {here and 'up to '}{_shown(most, kind)} apart{here}"
    return f"points {_shown(least, kind)} to {_shown(most, kind)} apart"


def _gaps(chosen: Chosen, released: Released | None) -> NDArray[np.float64]:
    """Distances to the next points, of those that were drawn or else of all."""
    if chosen.points is None:
        return np.array([float(chosen.step)])
    gaps = np.diff(chosen.points.values.astype(np.float64))
    if released is None or not released.groups:
        return gaps
    drawn = released.values[chosen.place].astype(np.int64)
    before, behind = np.clip(drawn - 1, 0, len(gaps) - 1), np.clip(drawn, 0, len(gaps) - 1)
    near: NDArray[np.float64] = np.maximum(gaps[before], gaps[behind])
    return near


def _shown(distance: float, kind: Type) -> str:
    """A distance with three digits, of times with a unit."""
    if kind is Type.DATE:
        return f"{distance:.3g} day{'s' if distance != 1 else ''}"
    if kind is Type.TIMESTAMP:
        size, unit = next(each for each in _UNITS if distance >= each[0] or each[0] == 1)
        return f"{distance / size:.3g} {unit}"
    return f"{distance:,.0f}" if distance >= 1000 else f"{distance:.3g}"
