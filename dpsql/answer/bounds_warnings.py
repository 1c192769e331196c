"""Warnings about declared bounds that do not fit, derived from released averages at no cost.

The sum and the count are released, so their quotient and its noise interval are post-processing; ranges are declared.
Repeated answers repeat the warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.query_wording import value_where
from dpsql.plan.expressions import Call, Column, Expr
from dpsql.plan.nodes import scans_of
from dpsql.release.intervals.widths import half_widths
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

Floats = NDArray[np.float64]

NEAR = 0.03
"""Relative distance of an average from an end of its range below which many values may lie beyond that end."""
_KNOWN = 0.02
"""Largest noise of an average, as a share of its range, at which its position near an end is meaningful."""
_HIDDEN = 0.15
"""Noise of an average, as a share of its range, that hides where in the range the average lies."""
_SPREADS = 20
"""A range of more than this many standard deviations is far wider than the values."""
LEVEL = 0.95


def bounds_warnings(release: Release, released: ReleasedValues, shown: NDArray[np.int64]) -> Iterator[str]:
    """Yield warnings about averages near the ends of their bounds, bounds far wider than the values, and noise that
    hides an average, for the groups that are shown."""
    if len(release.sections) != 1 or not released.groups or not len(shown):
        return
    widths = release.once(_half_widths)
    for place, each in enumerate(release.estimates):
        argument = release.analysis.measured[place].aggregation.arguments[:1]
        name = _clipped(release, argument[0], each.range) if argument else None
        if (
            name is None
            or place in release.meaningless
            or place not in widths
            or each.sum is None
            or each.count is None
        ):
            continue
        values = released.values[:, shown]
        yield from _of_average(name, each, values[each.sum], values[each.count], widths[place])
        yield from _of_spread(name, each, values)


def _of_average(name: str, each: Estimate, total: Floats, rows: Floats, halves: tuple[float, float]) -> Iterator[str]:
    """Yield warnings on positions of averages in their range and on their noise, for groups that surely have rows."""
    lower, upper = float(each.range.lower), float(each.range.upper)
    whole = upper - lower
    some = rows > halves[1]
    if not some.any() or not whole > 0:
        return
    total, rows = total[some], rows[some]
    mean = total / rows
    unsure = (halves[0] + np.abs(mean) * halves[1]) / rows / whole
    at = (each.centre + mean - lower) / whole
    groups = "in some groups " if len(at) > 1 else ""
    sure = unsure <= _KNOWN
    if bool((sure & (at > 1 - NEAR)).any()):
        yield (
            f"{groups}values of {name} lie near {upper:.12g}, their upper bound: what is above it counts as the bound. "
            "If values can be larger, wider bounds would show it."
        )
    if bool((sure & (at < NEAR)).any()):
        yield (
            f"{groups}values of {name} lie near {lower:.12g}, their lower bound, beside an upper one of {upper:.12g}: "
            "if they cannot be so large, narrower bounds have less noise; what is below the lower one counts as it."
        )
    if bool((~(unsure <= _HIDDEN)).any()):
        yield (
            f"{groups}the noise hides where between its bounds the average of {name} lies; use larger groups, narrower "
            "bounds or more epsilon."
        )


def _of_spread(name: str, each: Estimate, values: Floats) -> Iterator[str]:
    """Yield a warning if a released standard deviation is small compared with the bounds."""
    if not each.kind.is_deviation:
        return
    from dpsql.release.output.estimate import estimate

    spread = estimate(each, values)
    whole = float(each.range.upper) - float(each.range.lower)
    shown = spread.values[spread.where_valid()]
    if len(shown) and 0 < float(np.max(shown)) * _SPREADS < whole:
        yield (
            f"the bounds of {name} are more than {_SPREADS} standard deviations apart: narrower ones, if you know "
            "some, have less noise."
        )


def _half_widths(release: Release) -> dict[int, tuple[float, float]]:
    """Return the noise half-widths of the sum and the count of each aggregation that has both, by its place."""
    halves = {}
    for place, each in enumerate(release.estimates):
        if each.sum is None or each.count is None or each.chosen is not None:
            continue
        of_one = release.sections[0][0]
        total, rows = (half_widths(of_one, [feature], np.ones((1, 1)), LEVEL) for feature in (each.sum, each.count))
        halves[place] = (float(total[0]), float(rows[0]))
    return halves


def _clipped(release: Release, argument: Expr, known: Interval) -> str | None:
    """Return the text of an argument that is clipped to chosen bounds: CLAMP, or a column whose `known` range is its
    declared bounds. None for other expressions, and for truth values and the like, which cannot lie beyond."""
    inner = (value_where(argument) or (argument,))[0]
    if isinstance(inner, Call):
        return str(inner) if inner.function.name == "clamp" else None
    if not isinstance(inner, Column) or inner.type is Type.BOOLEAN or not inner.type.numeric:
        return None
    for scan in scans_of(release.query.plan.input):
        column = scan.table.by_name.get(inner.name.casefold())
        if column is not None and column.bounds is not None and not column.auto and not scan.table.public:
            wide = float(column.bounds.upper) - float(column.bounds.lower) > 1
            return str(inner) if wide and known == column.bounds else None
    return None
