"""Public grids of candidate points for selected values."""

from __future__ import annotations

from dpsql.core.exact import Edges, GridCounts, LatticeSum
from dpsql.core.sensitivity.row_contributions import MeasuredAggregation
from dpsql.plan.aggregates import MOST_POINTS
from dpsql.plan.query import Aggregate, GroupKey
from dpsql.release.bounds.points import Points, round_points
from dpsql.release.parts import ChosenPoint
from dpsql.release.values import argument_of

_MOST_CELLS = 1 << 22
"""The most points of all public groups together, to limit the running time."""
_FEWEST_POINTS = 256
_POINTS_OF_UNKNOWN = 4_096
_FEWER = 16


def grid_of(m: MeasuredAggregation, plan: Aggregate, *, several: bool) -> tuple[GridCounts, ChosenPoint]:
    """Return the public points of an aggregation, and how to decode a chosen point."""
    expr, kind = argument_of(m), argument_of(m).type
    values, many = m.aggregation.values, m.aggregation.kind.several
    cells = plan.public_cells
    most = _POINTS_OF_UNKNOWN if cells is None else max(_FEWEST_POINTS, min(MOST_POINTS, _MOST_CELLS // max(1, cells)))
    if values is not None and (len(values) <= most or not m.aggregation.kind.ranked):
        key = GroupKey(expr, values, listed=True)
        return GridCounts(key, len(values)), ChosenPoint(0, kind=kind, values=values, listed=many)
    limits = m.argument.range
    if several and plan.keys:  # several quantiles split the points of each group
        most = max(_FEWEST_POINTS, most // _FEWER)
    wide = not kind.discrete or int(limits.upper) - int(limits.lower) >= most
    among = round_points(limits, kind) if wide and m.aggregation.kind.quantile else None
    if among is not None:
        of = among.numbers
        return GridCounts(among.lattice(expr), of.most - of.least + 1), ChosenPoint(0, kind=kind, among=among)
    if not kind.discrete or (wide and not kind.temporal):
        points = Points(limits.lower, limits.upper, most, kind.discrete)
        return GridCounts(Edges(expr, points.edges), len(points.values)), ChosenPoint(0, kind=kind, points=points)
    lower, width = int(limits.lower), int(limits.upper) - int(limits.lower)
    step = -(-width // (most - 1)) or 1
    size = -(-width // step)
    lattice = LatticeSum(expr, lower, int(limits.upper), lower, 1 / step, 0, size, whole=step == 1)
    return GridCounts(lattice, size + 1), ChosenPoint(0, kind=kind, origin=lower, step=step, most=int(limits.upper))
