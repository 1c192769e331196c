"""Integers in answers: counts, sums of integers, and sums and differences of these.

Every aggregate is rounded once, and expressions over it are computed from the rounded values, so that the shown values
add up. The levels of ROLLUP, CUBE and GROUPING SETS are rounded along their cells: the number of a cell is the rounded
sum up to it, less the rounded sum before it. So the sum of consecutive cells is less than 1 from its estimate, and a
level of such sums consists of integers that add up. A level whose cells are not consecutive is summed from a finer one.
All of it is post-processing of noisy values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Array, Call, Expr, Literal, Slot, Vector, walk
from dpsql.plan.whole_outputs import whole_type
from dpsql.release.levels.estimates import Levels
from dpsql.release.output.estimate import estimate
from dpsql.release.output.integers import is_integer
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type

Floats = NDArray[np.float64]
Read = Callable[[Any], Vector]
GroupingSet = tuple[int, ...]

_UP = 0.5 + 2.0**-20
"""Rounds halves up, with tolerance for double rounding: one sum, computed in two ways, is rounded alike."""
_LARGEST = 2.0**52
_SLACK = 2.0**-20
"""Keeps integer ends unchanged despite double rounding."""


def whole_slots(release: Release) -> frozenset[Slot]:
    """Return the aggregates that are shown as integers."""
    slots = release.query.slots[len(release.query.plan.keys) :]
    pairs = zip(slots, release.estimates, strict=True)
    return frozenset(slot for slot, each in pairs if each.whole or (each.unrounded and is_integer(each)))


def _adds_up(each: Estimate) -> bool:
    """Return whether the levels of an aggregate add up."""
    return each.unrounded and not each.whole


def rounded_slot(release: Release, released: ReleasedValues, slot: Slot) -> Floats:
    """Return the integers of an aggregate, for all released groups."""
    place = slot.index - len(release.query.plan.keys)
    each = release.estimates[place]
    values = estimate(each, released.values).values
    levels = release.told.levels
    return rounded_levels(levels[0], values) if _adds_up(each) and levels else np.rint(values)


def rounded_vector(release: Release, released: ReleasedValues, expr: Expr, read: Read) -> Vector:
    """Return an integer expression, computed from rounded aggregates: integer-valued doubles, NULL if there is no
    number."""
    whole = whole_slots(release)
    rounded: dict[Slot, Vector] = {}
    for part in walk(expr):
        if isinstance(part, Slot) and part in whole and part not in rounded:
            rounded[part] = Vector(rounded_slot(release, released, part))
    with np.errstate(all="ignore"):
        vector = evaluate(expr, lambda leaf: rounded[leaf] if leaf in rounded else read(leaf), released.groups)
    return whole_vector(vector)


def whole_vector(vector: Vector) -> Vector:
    """Round an expression that was computed in doubles; NULL if there is no number."""
    values = np.rint(vector.values.astype(np.float64))
    known = vector.where_valid() & np.isfinite(values)
    return Vector(np.where(known, values, 0.0), None if known.all() else known)


def as_type(vector: Vector, kind: Type) -> Vector:
    """Convert integer-valued doubles to the type that they are shown as."""
    return Vector(as_integers(vector.values), vector.valid) if kind is Type.INTEGER else vector


def rounding_error(release: Release, expr: Expr) -> float | None:
    """Return the largest distance between the number shown and its estimate; None for an expression that is not
    rounded."""
    whole = whole_slots(release)
    if _has_own_law(release, expr, whole) or whole_type(expr, whole) is None:
        return None
    levels = release.told.levels

    def of(part: Expr) -> float:
        if isinstance(part, Slot) and part in whole:
            place = part.index - len(release.query.plan.keys)
            return _largest_error(levels[0]) if _adds_up(release.estimates[place]) and levels else 0.5
        if not isinstance(part, Call):
            return 0.0
        factors = [each.value for each in part.args if isinstance(each, Literal)]
        multiple = part.function.name == "multiply" and factors and isinstance(factors[0], int | float)
        return (abs(float(factors[0])) if multiple else 1.0) * sum(of(each) for each in part.args)  # type: ignore[arg-type]

    return of(expr)


def _has_own_law(release: Release, expr: Expr, whole: AbstractSet[Slot]) -> bool:
    """Return whether an expression is one aggregate with an interval for its rounded number."""
    place = expr.index - len(release.query.plan.keys) if isinstance(expr, Slot) else None
    return place is not None and not (expr in whole and _adds_up(release.estimates[place]))


def interval_around(
    release: Release, released: ReleasedValues, expr: Expr, bounds: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return the interval around the shown value, if that is a rounded integer."""
    whole = whole_slots(release)
    first = len(release.query.plan.keys)
    if (
        _has_own_law(release, expr, whole)
        or whole_type(expr, whole) is None
        or any(each.dtype != np.float64 for each in bounds)
    ):
        return bounds
    slots = [part for part in walk(expr) if isinstance(part, Slot) and part not in whole]
    if any(part.index >= first for part in slots):
        return bounds  # selected values

    def read(leaf: Slot) -> Vector:
        if leaf.index >= 0:
            return released.keys[leaf.index]
        bits: list[Vector] = [*release.told.levels[0].groupings(released.groups)]
        return bits[leaf.index]

    shown = rounded_vector(release, released, expr, read)
    return around_shown(bounds, shown, even=True)


def around_shown(bounds: tuple[Floats, Floats], shown: Vector, *, even: bool = False) -> tuple[Floats, Floats]:
    """Return intervals of exact integers, around the shown integers.

    Proof that the level is kept: an integer t in low..high has shown - t <= shown - low, and so at most its integer
    part, as shown and t are integers; likewise above. So the new ends contain every integer that the old ones contain,
    whatever their origin. even: the new ends are symmetric where the old ones nearly are."""
    low, high = bounds
    values = shown.values.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite ends
        below = np.maximum(np.floor(values - low + _SLACK), 0)
        above = np.maximum(np.floor(high - values + _SLACK), 0)
        symmetric = even & (np.abs((low + high) / 2 - values) <= 1)
    most = np.maximum(below, above)
    small = shown.where_valid() & (np.abs(values) < _LARGEST)
    return (
        np.where(small, values - np.where(symmetric, most, below), low),
        np.where(small, values + np.where(symmetric, most, above), high),
    )


def rounded_levels(levels: Levels, values: Floats) -> Floats:
    """Return integers for the rows of all levels, one level after the other; the rows may be repeated."""
    rows = [*levels.rows()]
    size = rows[-1][1].stop if rows else 0
    if not size or len(values) % size or float(np.abs(values).sum()) >= _LARGEST:
        return np.rint(values)
    tables = {keys: values.reshape(-1, size)[:, place] for keys, place in rows}
    numbers: dict[GroupingSet, Floats] = {}
    for keys, finer, order in _ways(tables):
        if order is not None:
            numbers[keys] = _along(levels, tables[keys], keys, order)
        elif finer is not None:
            numbers[keys] = _added_up(levels, numbers[finer], finer, keys)
    out = np.empty((len(values) // size, size))
    for keys, place in rows:
        out[:, place] = numbers[keys]
    return out.reshape(-1)


def _largest_error(levels: Levels) -> float:
    """Return the largest distance between a rounded number of any level and its estimate."""
    errors: dict[GroupingSet, float] = {}
    for keys, finer, order in _ways({keys for keys, _ in levels.rows()}):
        apart = math.prod(levels.sizes[key] for key in finer or () if key not in keys)
        errors[keys] = 1.0 if order is not None or finer is None else apart * errors[finer]
    return max(errors.values(), default=1.0)


def _ways(sets: Collection[GroupingSet]) -> Iterator[tuple[GroupingSet, GroupingSet | None, GroupingSet | None]]:
    """Yield each grouping set, finer ones first, with a finer set, and the order of keys along which its cells are
    rounded. The order is None if the set is summed from the finer one."""
    before: list[GroupingSet] = []
    for keys in sorted(sorted(sets), key=len, reverse=True):
        finer = next((other for other in before if set(keys) < set(other)), None)
        order = _order(keys if finer is None else finer, sets)
        runs = finer is None or set(order[: len(keys)]) == set(keys)
        yield keys, finer, tuple(key for key in order if key in keys) if runs else None
        before.append(keys)


def _order(keys: GroupingSet, levels: Collection[GroupingSet]) -> GroupingSet:
    """Return the keys, those of most coarser levels first: the cells of these levels are then consecutive."""
    within = [each for each in levels if set(each) <= set(keys)]
    return tuple(sorted(keys, key=lambda key: (-sum(key in each for each in within), key)))


def _along(levels: Levels, table: Floats, keys: GroupingSet, order: GroupingSet) -> Floats:
    """Round the cells of a level along this order of its keys."""
    shape = [levels.sizes[key] for key in keys]
    axes = [1 + keys.index(key) for key in order]
    turned = table.reshape(-1, *shape).transpose(0, *axes)
    sums = np.floor(np.cumsum(turned.reshape(len(table), -1), axis=1) + _UP)
    whole = np.diff(sums, axis=1, prepend=0.0).reshape(turned.shape)
    back = np.argsort([0, *axes])
    return np.ascontiguousarray(whole.transpose(*back)).reshape(len(table), -1)


def _added_up(levels: Levels, table: Floats, finer: GroupingSet, keys: GroupingSet) -> Floats:
    """Return a level from the numbers of a finer one."""
    cells = table.reshape(-1, *(levels.sizes[key] for key in finer))
    others = tuple(1 + place for place, key in enumerate(finer) if key not in keys)
    summed: Floats = cells.sum(axis=others)
    return summed.reshape(len(table), math.prod(levels.sizes[key] for key in keys))


def as_integers(values: Array) -> Array:
    """Return integer-valued doubles as 64-bit integers, or Python's."""
    rounded = np.rint(values)
    if len(rounded) and float(np.abs(rounded).max()) >= 2.0**63:
        return np.array([int(value) for value in rounded], dtype=object)
    return np.asarray(rounded.astype(np.int64))
