"""Results of window functions, by place of a layout."""

from __future__ import annotations

import numpy as np

from dpsql.executors.pandas.columns.cells import LARGEST_INTEGER
from dpsql.executors.pandas.sums.ranking import Numbers
from dpsql.executors.pandas.windows.window_frames import FrameBounds, Layout, present
from dpsql.plan.expressions import Array, Vector
from dpsql.plan.windows import WindowCall
from dpsql.schema.columns import Type

_LIMB = 32
_LOW = 2**_LIMB - 1


def place_of(call: WindowCall, layout: Layout) -> Array:
    """Return the position of each row in its partition."""
    size, name = layout.end - layout.start, call.function.name
    if name == "ROW_NUMBER":
        return layout.place - layout.start + 1
    if name == "RANK":
        return layout.first_peer - layout.start + 1
    if name == "DENSE_RANK":
        return layout.peers - layout.peers[layout.start] + 1
    if name == "PERCENT_RANK":
        return np.asarray((layout.first_peer - layout.start) / np.maximum(1, size - 1))
    if name == "CUME_DIST":
        return (layout.after_peers - layout.start) / size
    assert name == "NTILE"  # the only other function
    before = layout.place - layout.start
    each, more = size // call.number, size % call.number
    of_larger = more * (each + 1)
    smaller = more + (before - of_larger) // np.maximum(1, each)
    return 1 + np.where(before < of_larger, before // (each + 1), smaller)


def other_row(call: WindowCall, layout: Layout, argument: Vector, default: Vector | None) -> Vector:
    """LAG and LEAD: return the value of the row at this distance, or the default if there is none."""
    ahead = call.function.name == "LEAD"
    if call.ignore_nulls and argument.valid is not None:
        some, before = present(argument.valid)
        at = before[layout.place + 1] + call.number - 1 if ahead else before[layout.place] - call.number
        inside = (at >= before[layout.start]) & (at < before[layout.end])
        places = np.append(some, -1)[np.where(inside, at, len(some))]
    else:
        at = layout.place + (call.number if ahead else -call.number)
        inside = (at >= layout.start) & (at < layout.end)
        places = np.where(inside, at, -1)
    cells = gathered(argument, places)
    if default is None or inside.all():
        return cells
    valid = np.where(inside, cells.where_valid(), default.where_valid())
    dtype = np.result_type(cells.values, default.values)
    values: Array = np.where(inside, cells.values.astype(dtype), default.values.astype(dtype))
    return Vector(values, None if valid.all() else valid)


def gathered(argument: Vector, places: Numbers) -> Vector:
    """Return the cells at these places; -1 gives NULL."""
    if not len(argument):
        return argument
    inside = places >= 0
    cells = argument.at(np.maximum(places, 0))
    valid = inside if cells.valid is None else cells.valid & inside
    return Vector(cells.values, None if valid.all() else valid)


def framed_value(call: WindowCall, frame: FrameBounds, argument: Vector | None) -> Vector:
    """Return COUNT, SUM, AVG, MIN or MAX of the frame of each place."""
    if argument is None:
        return Vector(frame.high - frame.low)
    valid = argument.where_valid()
    counts = frame.between(_running(valid.astype(np.int64)))
    name = call.function.name
    if name == "COUNT":
        return Vector(counts)
    some = counts > 0
    if name in ("MIN", "MAX"):
        values = _extreme(name, frame, argument)
    else:
        values = _of_sums(name, frame, np.where(valid, argument.values, 0).astype(np.int64), counts)
    if call.type is Type.BOOLEAN:
        values = values.astype(bool)
    return Vector(values, None if some.all() else some)


def _extreme(name: str, frame: FrameBounds, argument: Vector) -> Array:
    values = argument.values
    values = values + 0.0 if values.dtype.kind == "f" else values.astype(np.int64)
    worst = (np.inf if values.dtype.kind == "f" else 2**63 - 1) * (1 if name == "MIN" else -1)
    held = values if argument.valid is None else np.where(argument.valid, values, values.dtype.type(worst))
    return frame.extreme(held, np.minimum if name == "MIN" else np.maximum)


def _of_sums(name: str, frame: FrameBounds, values: Numbers, counts: Numbers) -> Array:
    """Sum whole numbers exactly in halves, as high * 2^32 + low. Sums of fewer than 2^31 rows overflow neither half."""
    high, low = frame.between(_running(values >> _LIMB)), frame.between(_running(values & _LOW))
    high, low = high + (low >> _LIMB), low & _LOW
    if name == "AVG":
        return np.asarray((np.ldexp(high.astype(np.float64), _LIMB) + low) / np.maximum(counts, 1))
    most = LARGEST_INTEGER >> _LIMB
    held = (np.clip(high, -most, most) << _LIMB) + low
    return np.where(high >= most, LARGEST_INTEGER, np.where(high < -most, -LARGEST_INTEGER, held))


def _running(values: Numbers) -> Numbers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values, dtype=np.int64)])
