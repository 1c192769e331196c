"""Columns of NumPy, nullable and Arrow arrays as values of a declared type, block by block.

No value raises an error: NaN and NaT are NULL, and so is a number that does not fit the type. No column is copied as a
whole. Callers enforce the limits of time: a moment outside the calendar stays outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpsql.executors.pandas.columns.cells import read_cells
from dpsql.plan.expressions import DTYPES, Array, Bools, Vector
from dpsql.plan.row_local import laid_out
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INT64
from dpsql.schema.text_values import ReadText

Reader = Callable[[int, int], Vector]
"""(start, stop) -> the block of those rows."""


@dataclass(frozen=True)
class Clock:
    """The meaning of ticks since 1970: their unit, whether they are instants or wall clock times, and the zone in which
    instants are shown (None: UTC)."""

    unit: str
    of_instants: bool = False
    zone: str | None = None
    of_dates: bool = False
    """The column holds dates, not times."""


_WIDEST = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
_WIDEST_ARROW = {"b": "bool", "i": "int64", "u": "uint64", "f": "double"}
_TICKS_A_DAY = {"D": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_WORD = 8
_NAT = np.iinfo(np.int64).min
_OBJECTS_AT_ONCE = 65_536
_ABOVE = 2.0**63
"""The least float above all integers of 64 bits."""


def block_reader(
    series: pd.Series, kind: Type, fill: Key, zone: str | None = None, *, clips: bool = False
) -> Reader | None:
    """Return a reader of a column of numbers, booleans or times, with `fill` in NULL cells and instants on the clocks
    of a zone (None: UTC); None for a column of other cells. clips: see `read_cells`."""
    dtype: Any = series.dtype
    array: Any = series.array
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow_reader(dtype, array.__arrow_array__(), kind, fill, zone, clips=clips)
    if dtype.kind == "M":
        clock, ticks = _clock_of(dtype, zone), array.asi8
        return lambda start, stop: _times(ticks[start:stop], None, clock, kind, fill)
    if isinstance(dtype, np.dtype) and dtype.kind in _WIDEST:
        values = series.to_numpy()
        return lambda start, stop: numbers(values[start:stop], None, kind, fill, clips=clips)
    if isinstance(array, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        return lambda start, stop: numbers(*_nullable(array[start:stop]), kind, fill, clips=clips)
    return None


def read_objects(
    series: pd.Series, kind: Type, fill: Key, read_text: ReadText, zone: str | None = None, *, clips: bool = False
) -> Vector:
    """Read any other column cell by cell; also Arrow's decimals, which Arrow may not convert to the nearest float."""
    array: Any = series.array
    starts = range(0, max(1, len(series)), _OBJECTS_AT_ONCE)
    cells = (array[start : start + _OBJECTS_AT_ONCE].to_numpy(dtype=object) for start in starts)
    blocks = [read_cells(each, kind, fill, read_text, zone, clips=clips) for each in cells]
    values = np.concatenate([block.values for block in blocks])
    valid = np.concatenate([block.where_valid() for block in blocks])
    return Vector(values, None if valid.all() else valid)


def _nullable(block: Any) -> tuple[Array, Bools | None]:
    """Return the cells of a nullable array, widened, and a mask of the present ones."""
    missing = np.asarray(block.isna(), dtype=bool)
    kind = block.dtype.kind
    values = block.to_numpy(dtype=_WIDEST[kind], na_value=False if kind == "b" else 0)
    return values, ~missing if missing.any() else None


def _arrow_reader(dtype: Any, chunks: Any, kind: Type, fill: Key, zone: str | None, *, clips: bool) -> Reader | None:
    if dtype.kind in _WIDEST:
        wide = _WIDEST_ARROW[dtype.kind]
        return lambda start, stop: numbers(*_arrow(chunks, start, stop, wide), kind, fill, clips=clips)
    if dtype.kind != "M":
        return None
    clock = _clock_of(dtype, zone)
    wide = "int32" if clock.unit == "D" else "int64"
    return lambda start, stop: _times(*_arrow(chunks, start, stop, wide), clock, kind, fill)


def _clock_of(dtype: Any, zone: str | None = None) -> Clock:
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Clock(dtype.unit, of_instants=True, zone=zone)
    if not isinstance(dtype, pd.ArrowDtype):
        return Clock(np.datetime_data(dtype)[0])
    stored: Any = dtype.pyarrow_dtype
    if str(stored).startswith("date"):
        return Clock("D" if str(stored).startswith("date32") else "ms", of_dates=True)
    return Clock(stored.unit, bool(stored.tz), zone if stored.tz else None)


def stored_words(series: pd.Series) -> tuple[Array, Bools | None, Clock | None] | None:
    """Return a whole column of numbers, booleans or times as stored: the cells, a mask of the present ones (None: all
    that are not NaN), and the meaning of ticks. None for any other column, and for floats above 64 bits."""
    dtype: Any = series.dtype
    array: Any = series.array
    clock = _clock_of(dtype) if dtype.kind == "M" else None
    if isinstance(dtype, pd.ArrowDtype):
        wide = _WIDEST_ARROW.get(dtype.kind, "int64" if clock else None)
        if wide is None:
            return None
        chunks = array.__arrow_array__()
        days = clock is not None and clock.unit == "D"
        cells, valid = _arrow(chunks.cast("int32") if days else chunks, 0, len(series), wide)
    elif clock is not None:
        cells, valid = array.asi8, None
    elif isinstance(array, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        cells, valid = _nullable(array)
    elif isinstance(dtype, np.dtype) and dtype.kind in _WIDEST and dtype.itemsize <= _WORD:
        return laid_out(series.to_numpy()), None, None
    else:
        return None
    return cells, _without(valid, cells == _NAT) if clock else valid, clock


def _arrow(chunks: Any, start: int, stop: int, wide: str) -> tuple[Array, Bools | None]:
    """Return the cells of an Arrow column, cast to a type, and a mask of the present ones."""
    block = chunks.slice(start, stop - start).cast(wide)
    if block.null_count == 0:
        return block.to_numpy(), None
    present = block.is_valid().to_numpy()
    return block.fill_null(False if wide == "bool" else 0).to_numpy(), present


def numbers(values: Array, valid: Bools | None, kind: Type, fill: Key, *, clips: bool = False) -> Vector:
    """Convert NumPy numbers and booleans to the type; a cell that does not fit is NULL. clips: see `read_cells`."""
    values = laid_out(values)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        wrong = np.isnan(values)
        if kind is Type.INTEGER:
            wrong |= np.isinf(values) | (np.trunc(values) != values)
            if not clips:
                wrong |= (values < -_ABOVE) | (values >= _ABOVE)
        valid = _without(valid, wrong)
        if kind is Type.INTEGER:
            values = _whole(values if valid is None else np.where(valid, values, 0))
    elif kind is Type.INTEGER and values.dtype == np.uint64:
        if not clips:
            valid = _without(valid, values > np.uint64(INT64.upper))
        values = np.minimum(values, np.uint64(INT64.upper))
    if kind is Type.BOOLEAN and values.dtype.kind != "b":
        valid = _without(valid, (values != 0) & (values != 1))
    return _filled(values.astype(DTYPES[kind], copy=False), valid, fill)


def _whole(values: Array) -> Array:
    """Return whole floats as the nearest integers of 64 bits."""
    above = values >= _ABOVE
    return np.where(above, np.int64(INT64.upper), np.where(above, 0.0, np.maximum(values, -_ABOVE)).astype(np.int64))


def _times(ticks: Array, valid: Bools | None, clock: Clock, kind: Type, fill: Key) -> Vector:
    """Convert ticks to days or microseconds, rounded down."""
    ticks = laid_out(ticks).astype(np.int64, copy=False)
    valid = _without(valid, ticks == _NAT)
    a_day = _TICKS_A_DAY[clock.unit]
    if kind is Type.DATE and clock.zone is None:
        return _filled(ticks // a_day, valid, fill)
    moments = _microseconds(ticks, a_day)
    if clock.zone is not None:
        moments = wall_clock(moments, clock.zone)
    return _filled(moments // MICROSECONDS_A_DAY if kind is Type.DATE else moments, valid, fill)


def _microseconds(ticks: Array, a_day: int) -> Array:
    if a_day == MICROSECONDS_A_DAY:
        return ticks
    if a_day > MICROSECONDS_A_DAY:
        return ticks // (a_day // MICROSECONDS_A_DAY)
    factor = MICROSECONDS_A_DAY // a_day
    # No product exceeds 64 bits, and moments outside the calendar stay outside, on the clock of any zone too.
    lowest, highest = int(MICROSECONDS.lower) // factor - 2 * a_day, int(MICROSECONDS.upper) // factor + 2 * a_day
    return np.clip(ticks, lowest, highest) * factor


def wall_clock(moments: Array, zone: str) -> Array:
    """Return the wall clock times of a zone at moments of UTC; moments far outside the calendar are clipped first."""
    from dpsql.schema.zones import offsets_of  # most columns hold no instants

    table = offsets_of(zone)
    held = np.clip(moments, int(MICROSECONDS.lower) - MICROSECONDS_A_DAY, int(MICROSECONDS.upper) + MICROSECONDS_A_DAY)
    places = np.searchsorted(np.array(table.instants, dtype=np.int64), held, side="right")
    return np.asarray(held + np.array(table.offsets, dtype=np.int64)[places])


def _without(valid: Bools | None, wrong: Bools) -> Bools | None:
    """Return the mask of cells that are present and not wrong; None if that is all."""
    if not wrong.any():
        return valid
    return ~wrong if valid is None else valid & ~wrong


def _filled(values: Array, valid: Bools | None, fill: Key) -> Vector:
    return Vector(values if valid is None else np.where(valid, values, np.array(fill, values.dtype)), valid)
