"""The line below an answer on privately chosen bounds: their values, their cost, and what declaring them would save.

Post-processing: it uses the released bounds, the noisy counts, and the noise distributions.
"""

from __future__ import annotations

import numpy as np

from dpsql.answer.explanation_builder import LEVEL, of_one_level
from dpsql.answer.explanation_text import percent
from dpsql.answer.query_wording import plus_minus, share_in_words
from dpsql.release.bounds.auto_bounds import clamped
from dpsql.release.expected_error import reference
from dpsql.release.found_bounds import of_columns, unfound
from dpsql.release.intervals.intervals import aggregate_interval
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.intervals import Interval

_ROWS = 1_000
"""Rows of the reference table if no noisy count is available."""


def bounds_lines(release: Release, released: ReleasedValues) -> tuple[str, ...]:
    """Return the lines on bounds that the query chose, and on bounds that it did not find."""
    lines = chosen_bounds_line(release, released), unfound_bounds_line(release)
    return tuple(line for line in lines if line)


def chosen_bounds_line(release: Release, released: ReleasedValues) -> str:
    """Return the chosen bounds, their share of the cost, and how much declaring them would reduce the errors; "" if the
    query chose none."""
    lost = unfound(release)
    chosen = [each for each in release.bounds if each not in lost]
    if not chosen:
        return ""
    first, *others = chosen
    ranges = [f"of {first.column.name} chosen privately: {_ends(first.held)}"]
    ranges += [f"of {each.column.name}: {_ends(each.held)}" for each in others]
    share = share_in_words([each.cost for each in chosen], release.cost)
    pairs = ((each.column.name, *map(_bound, (each.held.lower, each.held.upper))) for each in chosen)
    declared = ", ".join(f'"{name}": ({lower}, {upper})' for name, lower, upper in pairs)
    saved = _saving(release, released) or "save that share"
    return f"Bounds {', '.join(ranges)} ({share}). Declaring bounds={{{declared}}} would {saved}."


def unfound_bounds_line(release: Release) -> str:
    """Return which aggregations are NULL because the search found no bounds, and the remedies; "" if there are
    none."""
    lost = unfound(release)
    if not lost:
        return ""
    places = sorted(of_columns(release, {each.column for each in lost}))
    written = {clamped(each.column, each.held): each.column for each in release.bounds}
    names = dict.fromkeys(str(release.query.plan.aggregations[place].rebuilt(written)) for place in places)
    columns = [each.column.name for each in lost]
    declared = ", ".join(f'"{name}": (lower, upper)' for name in columns)
    return (
        f"{', '.join(names)}: NULL, since there are too few rows to choose bounds of {', '.join(columns)} privately at "
        f"this epsilon. Declare bounds={{{declared}}}, or use more rows or a larger epsilon."
    )


def _ends(held: Interval) -> str:
    return " to ".join(
        f"{float(end):,.6g}" if abs(end) < 1e6 else f"{float(end):,.0f}" for end in (held.lower, held.upper)
    )


def _bound(end: float) -> str:
    """Format a bound as in a declaration."""
    return f"{end}" if isinstance(end, int) else f"{end:.12g}"


def _saving(release: Release, released: ReleasedValues) -> str:
    """Say how much declared bounds would reduce the errors of the first aggregation; "" if it has no interval."""
    if release.as_declared is None or not released.groups:
        return ""
    places = sorted(of_columns(release, {each.column for each in release.bounds}) - release.meaningless)
    one, place = of_one_level(release), next(iter(places), None)
    if place is None:
        return ""
    rows = release.sections[0][1]
    bounds = aggregate_interval(one, released.at(rows), place, LEVEL)
    if bounds is None:
        return ""
    halves = ((bounds[1] - bounds[0]) / 2).astype(np.float64)  # ends beyond 2^53 are Python integers
    halves = halves[np.isfinite(halves)]
    each = one.estimates[place]
    size = _ROWS if each.count is None else max(1.0, float(np.median(released.values[each.count][rows])))
    now, then = (_half_width(other, place, size) for other in (one, of_one_level(release.as_declared())))
    if now is None or then is None or not len(halves) or not 0 < then < now:
        return ""
    half = float(np.median(halves))
    if released.groups > 1:
        return f"cut the errors by {percent(1 - then / now)}"
    return f"cut the error from {plus_minus(half)} to {plus_minus(half * then / now)}"


def _half_width(one: Release, place: int, rows: float) -> float | None:
    """Return the half-width of an aggregation's interval at the reference table with this many rows."""
    values = np.zeros((one.width, 1))
    for feature, value in reference(one.estimates[place], rows).items():
        values[feature] = value
    bounds = aggregate_interval(one, ReleasedValues((), values), place, LEVEL)
    if bounds is None:
        return None
    half = float(bounds[1][0] - bounds[0][0]) / 2
    return half if np.isfinite(half) else None
