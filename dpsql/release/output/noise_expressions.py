"""Expressions over aggregates as combinations of noisy features: sums and differences of COUNT and SUM with numbers,
and quotients of two of these. The distribution of their noise is known, so that their intervals need no interval
arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Call, Expr, Literal, Slot
from dpsql.release.intervals.widths import Chords, edge, half_widths, shares_of
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

_CHUNK = 4_096


@dataclass(frozen=True)
class Linear:
    """The constant plus the sum of weight * feature; features by place."""

    weights: dict[int, float]
    constant: float = 0.0

    def plus(self, other: Linear, factor: float = 1.0) -> Linear:
        weights = {place: self.weights.get(place, 0.0) for place in (*self.weights, *other.weights)}
        for place, weight in other.weights.items():
            weights[place] += factor * weight
        return Linear(weights, self.constant + factor * other.constant)

    def times(self, factor: float) -> Linear:
        return Linear({place: factor * weight for place, weight in self.weights.items()}, factor * self.constant)

    def value(self, values: Floats) -> Floats:
        """Return the noisy value of each group, from features of shape (features, groups)."""
        total = np.full(values.shape[1], self.constant)
        for place, weight in self.weights.items():
            total = total + weight * values[place]
        return total

    def half_width(self, release: Release, level: float) -> float:
        """Return the half-width of the noise, the same for every group."""
        weights = np.array([[weight] for weight in self.weights.values()])
        with np.errstate(over="ignore"):  # beyond the largest double it is infinite
            return float(half_widths(release, tuple(self.weights), weights, level)[0])


@dataclass(frozen=True)
class Ratio:
    """A quotient of two linear forms."""

    above: Linear
    below: Linear


def form_of(release: Release, expr: Expr) -> Linear | Ratio | None:
    """Return an expression as `Linear` or `Ratio`, if possible and all its noise is from one vector."""
    form: Linear | Ratio | None = _linear(release, expr)
    if form is None and isinstance(expr, Call) and expr.function.name == "divide":
        above, below = (_linear(release, arg) for arg in expr.args)
        form = None if above is None or below is None else Ratio(above, below)
    if form is None:
        return None
    parts = (form,) if isinstance(form, Linear) else (form.above, form.below)
    places = [place for part in parts for place in part.weights]
    if not all(math.isfinite(each) for part in parts for each in (part.constant, *part.weights.values())):
        return None
    return form if places and len(shares_of(release, places)) <= 1 else None


def _linear(release: Release, expr: Expr) -> Linear | None:
    if isinstance(expr, Literal):
        number = isinstance(expr.value, int | float) and not isinstance(expr.value, bool)
        return Linear({}, float(expr.value)) if number else None  # type: ignore[arg-type]
    if isinstance(expr, Slot):
        return _of_slot(release, expr)
    if not isinstance(expr, Call) or expr.function.name not in _LINEAR:
        return None
    args = [_linear(release, arg) for arg in expr.args]
    known = [arg for arg in args if arg is not None]
    return _LINEAR[expr.function.name](*known) if len(known) == len(args) else None


def _product(first: Linear, second: Linear) -> Linear | None:
    if first.weights and second.weights:
        return None
    return first.times(second.constant) if first.weights else second.times(first.constant)


def _quotient(above: Linear, below: Linear) -> Linear | None:
    return None if below.weights or not below.constant else above.times(1 / below.constant)


_LINEAR: dict[str, Callable[..., Linear | None]] = {
    "add": lambda first, second: first.plus(second),
    "subtract": lambda first, second: first.plus(second, -1.0),
    "negate": lambda only: only.times(-1.0),
    "multiply": _product,
    "divide": _quotient,
}
"""Functions that can map linear forms to a linear form."""


def _of_slot(release: Release, slot: Slot) -> Linear | None:
    """Return the form of a COUNT or SUM; no other slot is linear."""
    place = slot.index - len(release.query.plan.keys)
    if place < 0:
        return None
    terms = release.estimates[place].terms
    return None if terms is None else Linear(terms)


def form_interval(form: Linear | Ratio, release: Release, released: ReleasedValues, level: float) -> Bounds:
    """Return lower and upper ends for every released group."""
    if isinstance(form, Linear):
        value, width = form.value(released.values), form.half_width(release, level)
        return value - width, value + width
    above, below = form.above.value(released.values), form.below.value(released.values)
    scale = _scale(form, release, level)
    places, above_weights, below_weights = _both(form)
    chords = Chords.of(release, places, above_weights / scale, below_weights, level)
    ends = list(_chunks(above / scale, below, chords))
    if not ends:
        return np.zeros(0), np.zeros(0)
    return scale * np.concatenate([low for low, _ in ends]), scale * np.concatenate([high for _, high in ends])


def _scale(form: Ratio, release: Release, level: float) -> float:
    """Return the factor that makes numerator and denominator noise equally wide, so that quotients of both signs and
    all sizes lie between the angles with known widths."""
    above, below = (part.half_width(release, level) if part.weights else 0.0 for part in (form.above, form.below))
    scale = above / below if above and below else 1.0
    return scale if 0 < scale < math.inf else 1.0


def _both(form: Ratio) -> tuple[tuple[int, ...], Floats, Floats]:
    """Return the features of both sides, and the weights of each."""
    places = tuple(dict.fromkeys((*form.above.weights, *form.below.weights)))
    above, below = ([part.weights.get(place, 0.0) for place in places] for part in (form.above, form.below))
    return places, np.array(above), np.array(below)


def _chunks(above: Floats, below: Floats, chords: Chords) -> Iterator[Bounds]:
    for start in range(0, len(above), _CHUNK):
        yield _quotients(above[start : start + _CHUNK], below[start : start + _CHUNK], chords)


def _quotients(above: Floats, below: Floats, chords: Chords) -> Bounds:
    """Return the hull of the quotients x = tan(a) with |above cos(a) - below sin(a)| <= the half-width of that
    combination's noise (Fieller's method with the exact law: for the true x the left side is only noise). Ends are
    infinite where the set reaches -90 or 90 degrees."""
    angles = chords.angles

    def inside(angle: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.abs(above * np.cos(angle) - below * np.sin(angle)) <= chords.at(angle))

    fits = np.abs(above[:, None] * np.cos(angles) - below[:, None] * np.sin(angles)) <= chords.widths
    guess = np.arctan2(above * np.sign(below + (below == 0)), np.abs(below))
    fitting = inside(guess)
    last = np.where(fits.any(axis=1), len(angles) - 1 - np.argmax(fits[:, ::-1], axis=1), -1)
    first = np.where(fits.any(axis=1), np.argmax(fits, axis=1), len(angles))
    low = np.minimum(np.append(angles, np.inf)[first], np.where(fitting, guess, np.inf))
    high = np.maximum(np.append(angles, -np.inf)[last], np.where(fitting, guess, -np.inf))
    step = angles[1] - angles[0]
    none = ~np.isfinite(low)
    low = edge(np.where(none, angles[0], low), np.maximum(angles[0], low - step), inside)
    high = edge(np.where(none, angles[-1], high), np.minimum(angles[-1], high + step), inside)
    open_ = none | fits[:, 0] | fits[:, -1]
    return np.where(open_, -np.inf, np.tan(low)), np.where(open_, np.inf, np.tan(high))
