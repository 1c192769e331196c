"""Noise intervals for the exact (clipped) answer, from the noisy answer and its noise distribution.

They cover the privacy noise, not clipping or sampling. They hold at the stated level for every data set, given that the
row is shown (`intervals.shown_conditions`). All computations use released values and public facts only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Call, Expr, IntervalEnd, Report, Slot, walk
from dpsql.release.intervals.averages import average_interval
from dpsql.release.intervals.propagation import points_of_keys, propagate
from dpsql.release.intervals.rounding import rounding
from dpsql.release.intervals.shown_conditions import (
    ShownCondition,
    Weights,
    WindowMultiple,
    along,
    coordinates_of,
    raised_levels,
    threshold_of,
    weights_of,
)
from dpsql.release.intervals.spreads import is_known, moments_interval
from dpsql.release.intervals.widths import half_widths, of_whole
from dpsql.release.output.integers import around, outward
from dpsql.release.output.noise_expressions import Linear, form_interval, form_of
from dpsql.release.output.whole_numbers import interval_around, rounding_error
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.intervals import EVERYTHING, Interval

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]


def interval(
    release: Release, released: ReleasedValues, expr: Expr, level: float, given: ShownCondition | None = None
) -> Bounds | None:
    """Return lower and upper ends of an output expression for every released group; None for one without aggregates.

    `given`: the condition that selected the shown rows; None: only the release's threshold.

    A single aggregate gets the interval of its distribution, and so do combinations and quotients of counts and sums.
    Any other expression over m of these gets interval arithmetic over their intervals at level 1 - (1 - level) / m,
    which hold together by the union bound."""
    if any(isinstance(part, IntervalEnd | Report) for part in walk(expr)):
        return None
    given = threshold_of(release) if given is None else given
    bounds = _of_all_rows(release, released, expr, level, given)
    if bounds is not None and reads_meaningless(release, expr):
        return np.full(released.groups, -np.inf), np.full(released.groups, np.inf)
    return None if bounds is None else interval_around(release, released, expr, bounds)


def reads_meaningless(release: Release, expr: Expr) -> bool:
    """Return whether an expression reads an aggregation that is NULL because no bounds were found for it."""
    first = len(release.query.plan.keys)
    return bool(release.meaningless) and any(
        isinstance(each, Slot) and each.index - first in release.meaningless for each in walk(expr)
    )


def _of_all_rows(
    release: Release, released: ReleasedValues, expr: Expr, level: float, given: ShownCondition
) -> Bounds | None:
    """Return the interval of the unrounded value, level after level."""
    if len(release.sections) == 1:
        return _of_rows(release.sections[0][0], released, expr, level, given)
    found = [_of_rows(one, released.at(rows), expr, level, given) for one, rows in release.sections]
    known = [bounds for bounds in found if bounds is not None]
    if len(known) < len(found):
        return None
    return np.concatenate([low for low, _ in known]), np.concatenate([high for _, high in known])


def _of_rows(
    release: Release, released: ReleasedValues, expr: Expr, level: float, given: ShownCondition
) -> Bounds | None:
    """Return the interval for rows with the same noise distribution."""
    atoms = list(dict.fromkeys(_atoms(release, expr)))
    share = 1 - (1 - level) / max(1, len(atoms))
    found = [(atom, _of_atom(release, released, atom, share, given)) for atom in atoms]
    known = {atom: bounds for atom, bounds in found if bounds is not None}
    if not known or len(known) < len(atoms):
        return None
    if expr in known:
        return known[expr]
    keys = points_of_keys(release, released, expr)
    ends = [
        propagate(expr, {**{s: Interval(*_ends(b, row)) for s, b in known.items()}, **keys[row]})
        for row in range(released.groups)
    ]
    return np.array([e.lower for e in ends], dtype=np.float64), np.array([e.upper for e in ends], dtype=np.float64)


def has_interval(release: Release, expr: Expr) -> bool:
    """Return whether an expression has an interval, for any released values. release: of one level."""
    if any(isinstance(part, IntervalEnd | Report) for part in walk(expr)):
        return False
    slots = [_estimate(release, atom) for atom in _atoms(release, expr)]
    return bool(slots) and all(each is None or _is_known(release, each) for each in slots)


def _estimate(release: Release, atom: Expr) -> Estimate | None:
    """Return the aggregate of an atom; None for a combination of several."""
    return release.estimates[atom.index - len(release.query.plan.keys)] if isinstance(atom, Slot) else None


def _is_known(release: Release, estimate: Estimate) -> bool:
    if estimate.chosen is not None:
        return False
    return estimate.moments is None or is_known(release, estimate)


def constant_half_width(release: Release, expr: Expr, level: float) -> float | None:
    """Return the half-width of an expression's interval if it is the same for any data, else None; the widest of
    several levels."""
    widths = [_constant(one, expr, level) for one, _ in release.sections]
    known = [width for width in widths if width is not None]
    if len(known) < len(widths):
        return None
    off = rounding_error(release, expr)
    return max(known) if off is None else float(np.floor(max(known) + off))


def _constant(release: Release, expr: Expr, level: float) -> float | None:
    if isinstance(expr, Slot):
        place = expr.index - len(release.query.plan.keys)
        each = release.estimates[place] if place >= 0 else None
        if each is not None and each.whole and each.kind.linear:
            return float(of_whole(linear_half_width(release, each, level)))
    form = form_of(release, expr)
    return form.half_width(release, level) if isinstance(form, Linear) else None


def _atoms(release: Release, expr: Expr) -> Iterator[Expr]:
    """Yield the largest parts of an expression that have an interval."""
    first = len(release.query.plan.keys)
    if isinstance(expr, Slot):
        if expr.index >= first:
            yield expr
    elif form_of(release, expr) is not None:
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _atoms(release, arg)


def _of_atom(
    release: Release, released: ReleasedValues, atom: Expr, level: float, given: ShownCondition
) -> Bounds | None:
    """Return the interval given that the rows are shown, widened by the rounding of doubles.

    Beyond the largest double, ends may be NaN (infinity less infinity); the interval is then unbounded."""
    with np.errstate(all="ignore"):
        bounds = _of_shown(release, released, atom, level, given)
        if bounds is None or any(each.dtype != np.float64 for each in bounds):
            return bounds
        rounded = rounding(release, released, atom)
        low, high = bounds if rounded is None else (bounds[0] - rounded, bounds[1] + rounded)
        known = low <= high
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)


def _of_shown(
    release: Release, released: ReleasedValues, atom: Expr, level: float, given: ShownCondition
) -> Bounds | None:
    """Return the interval given that the rows are shown."""
    if given.ways:
        return _in_ways(release, released, atom, level, given)
    if not given.windows and not given.ranked:
        return _plain(release, released, atom, level)
    weights, coordinates = _made_of(release, atom)
    level, windows = given.level(release, coordinates, level), given.about(release, coordinates)
    if not windows:
        return _plain(release, released, atom, level)
    if not released.groups:
        return np.empty(0), np.empty(0)
    noisy = windows[0].noisy(release, released) if len(windows) == 1 else None
    if weights is not None and noisy is not None and along(weights, windows[0]):
        return _truncated(release, released, atom, level, WindowMultiple(windows[0], weights, noisy))
    lower, upper = np.empty(released.groups), np.empty(released.groups)
    for rows, raised in raised_levels(release, released, windows, level):
        bounds = _anything(release, atom) if raised == 1 else _plain(release, released.at(rows), atom, raised)
        if bounds is None:
            return None
        lower[rows], upper[rows] = outward(*bounds)
    return lower, upper


def _in_ways(
    release: Release, released: ReleasedValues, atom: Expr, level: float, given: ShownCondition
) -> Bounds | None:
    """Return the interval given the case in which each row is shown."""
    lower, upper = np.empty(released.groups), np.empty(released.groups)
    for rows, one in given.of_rows(released):
        bounds = _of_shown(release, released.at(rows), atom, level, one)
        if bounds is None:
            return None
        lower[rows], upper[rows] = outward(*bounds)
    return lower, upper


def _made_of(release: Release, atom: Expr) -> tuple[Weights | None, frozenset[int]]:
    """Return the noisy coordinates of an atom, with weights if it is a sum of them."""
    if isinstance(atom, Slot):
        estimate = release.estimates[atom.index - len(release.query.plan.keys)]
        if estimate.chosen is not None:
            return None, frozenset()
        features = estimate.terms
        if features is None:
            return None, coordinates_of(release, estimate.places)
        weights = weights_of(release, features)
        return weights, frozenset(weights)
    form = form_of(release, atom)
    assert form is not None  # every atom that is no slot has a form
    if isinstance(form, Linear):
        weights = weights_of(release, form.weights)
        return weights, frozenset(weights)
    return None, coordinates_of(release, (*form.above.weights, *form.below.weights))


def _truncated(release: Release, released: ReleasedValues, atom: Expr, level: float, shown: WindowMultiple) -> Bounds:
    """Return the interval of a value that was itself compared with a threshold, or in HAVING."""
    if not isinstance(atom, Slot):
        form = form_of(release, atom)
        assert isinstance(form, Linear)  # a sum of coordinates that is no aggregate
        return shown.ends(form.value(released.values), level)
    estimate = release.estimates[atom.index - len(release.query.plan.keys)]
    value = _linear_value(estimate, released.values)
    low, high = shown.ends(value, level)
    if not estimate.whole:
        return low, high
    rounded = np.rint(value)
    return np.maximum(rounded - of_whole(value - low), shown.least(value)), rounded + of_whole(high - value)


def _anything(release: Release, atom: Expr) -> Bounds:
    """Return the range of all possible values."""
    values = EVERYTHING
    if isinstance(atom, Slot):
        estimate = release.estimates[atom.index - len(release.query.plan.keys)]
        values = estimate.range if estimate.kind.values is None else estimate.kind.values
    return np.array([float(values.lower)]), np.array([float(values.upper)])


def _plain(release: Release, released: ReleasedValues, atom: Expr, level: float) -> Bounds | None:
    """Return the interval over all draws of the noise, for any shown rows."""
    if isinstance(atom, Slot):
        return aggregate_interval(release, released, atom.index - len(release.query.plan.keys), level)
    form = form_of(release, atom)
    assert form is not None  # every atom that is no slot has a form
    return form_interval(form, release, released, level)


def _ends(bounds: Bounds, row: int) -> tuple[float, float]:
    low, high = outward(bounds[0][row : row + 1], bounds[1][row : row + 1])
    return float(low[0]), float(high[0])


def aggregate_interval(release: Release, released: ReleasedValues, index: int, level: float) -> Bounds | None:
    """Return the interval of one aggregation, for every released group; None for a selected value."""
    estimate = release.estimates[index]
    if not _is_known(release, estimate):
        return None
    if estimate.kind.averages:
        return average_interval(release, released, estimate, level)
    if estimate.moments is not None:
        return moments_interval(release, released, estimate, level)
    value = _linear_value(estimate, released.values)
    width = linear_half_width(release, estimate, level)
    if estimate.whole or index in released.integers:
        value, width = np.rint(value), float(of_whole(width))
    exactly = around(released.integers[index], width) if index in released.integers else None
    return (value - width, value + width) if exactly is None else exactly


def _linear_value(estimate: Estimate, values: Floats) -> Floats:
    total: Floats = np.zeros(values.shape[1]) if estimate.sum is None else values[estimate.sum]
    if estimate.count is None:
        return total
    scale = 1.0 if estimate.kind.counts else estimate.centre
    centred: Floats = total + values[estimate.count] * scale
    return centred


def linear_half_widths(release: Release, estimate: Estimate, level: float, groups: int) -> Floats:
    """Return the half-width of a COUNT or SUM in each of the released groups, shape (groups,)."""
    found = np.empty(groups)
    for one, rows in release.sections:
        found[rows] = linear_half_width(one, estimate, level)
    return found


def linear_half_width(release: Release, estimate: Estimate, level: float) -> float:
    """Return the half-width of a COUNT or SUM, the same for every group."""
    scale = 1.0 if estimate.kind.counts else estimate.centre
    weights = np.array([[1.0], [scale]])
    return float(half_widths(release, (estimate.sum, estimate.count), weights, level)[0])
