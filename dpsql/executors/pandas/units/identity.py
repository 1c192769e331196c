"""Codes of privacy units, and of the keys that lead to them, by their stored values.

A unit is the exact stored value: two different stored values are two units, and equal ones are one unit in any storage.
So no cell is converted as in expressions: no clipping to bounds or to the range of INTEGER, no default for NULL, no
rounding of nanoseconds or decimals, no wall clock for an instant. If two people became one unit, one of them could
change which rows of the other are kept, and together they could move a sum by twice its sensitivity. If the declared
type differs from the stored one, the unit is the cell read as the declared type.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpsql.executors.pandas.columns.blocks import Clock, block_reader, stored_words
from dpsql.executors.pandas.columns.encoding import Codes, codes_of, is_coded
from dpsql.executors.pandas.columns.exact_cells import exact_cell
from dpsql.executors.pandas.columns.exact_values import Instant, array_of
from dpsql.plan.expressions import Array, Bools
from dpsql.schema.calendar import DAYS
from dpsql.schema.columns import Type
from dpsql.schema.text_values import EXACT_READERS, ReadText

_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECONDS_A_DAY = 86_400_000
_OBJECTS_AT_ONCE = 65_536
_NAT = np.iinfo(np.int64).min
Found = tuple[Codes, Array]
"""A code for each cell, -1 for no unit, and the distinct values of the codes."""


def identified(series: pd.Series, kind: Type, read_text: ReadText | None = None, zone: str | None = None) -> Found:
    """Return the values of a column, distinguished by its type. read_text: the parser of texts, if declared; zone: the
    time zone that maps instants declared as dates to days."""
    read_text = read_text or EXACT_READERS[kind]
    if is_coded(series.dtype):
        codes, values = codes_of(series)
        if isinstance(values.dtype, np.dtype) and values.dtype == object:
            value_codes, distinct_values = _of_cells(values, kind, read_text, zone)
        else:
            value_codes, distinct_values = identified(values, kind, read_text, zone)
        return np.append(value_codes, np.int32(-1))[codes], distinct_values
    words = stored_words(series)
    if words is None:
        return _of_objects(series, kind, read_text, zone)
    cells, valid, clock = words
    if clock is not None and kind is Type.DATE and not clock.of_dates:
        return _of_days(series, zone)
    codes, distinct = _factorized(cells, valid)
    if clock is None:
        told, fits = _numbers(distinct, kind)
        return _fitting(codes, told, fits)
    codes, distinct = _fitting(codes, distinct, distinct != _NAT)
    told = _dates(distinct, clock.unit) if kind is Type.DATE else _moments(distinct, clock)
    return codes, told


def _factorized(cells: Array, valid: Bools | None) -> Found:
    found, distinct = pd.factorize(cells)
    codes = found.astype(np.int32)
    if valid is not None:
        codes[~valid] = -1
    return codes, np.asarray(distinct)


def _fitting(codes: Codes, values: Array, fits: Bools | None) -> Found:
    """Drop the values that do not fit."""
    if fits is None or fits.all():
        return codes, values
    numbers = np.where(fits, np.cumsum(fits) - 1, -1).astype(np.int32)
    return np.append(numbers, np.int32(-1))[codes], values[fits]


def _numbers(distinct: Array, kind: Type) -> tuple[Array, Bools | None]:
    """Return distinct numbers or booleans as the type, and a mask of those that fit it."""
    stored = distinct.dtype.kind
    if kind is Type.BOOLEAN:
        return (distinct, None) if stored == "b" else (distinct == 1, (distinct == 0) | (distinct == 1))
    if stored == "f":
        reals = distinct.astype(np.float64) + 0.0
        return reals, None if kind is Type.REAL else np.isfinite(reals) & (np.trunc(reals) == reals)
    large = stored == "u" and len(distinct) and distinct.max() >= 2**63
    return distinct.astype(np.uint64 if large else np.int64, copy=False), None


def _moments(ticks: Array, clock: Clock) -> Array:
    """Return nanoseconds since 1970: whole numbers for a wall clock, instants for a time zone."""
    factor, zoned = _NANOSECONDS[clock.unit], clock.of_instants
    room = (2**63 - 1) // factor
    if len(ticks) and (ticks.min() < -room or ticks.max() > room):
        moments = [tick * factor for tick in ticks.tolist()]
        return array_of([Instant(each) for each in moments] if zoned else moments)
    nanoseconds = ticks * factor
    return nanoseconds.view("datetime64[ns]") if zoned else nanoseconds


def _dates(ticks: Array, unit: str) -> Array:
    """Return days; stored milliseconds need not be whole days."""
    if unit == "D":
        return ticks
    if not (ticks % _MILLISECONDS_A_DAY).any():
        return ticks // _MILLISECONDS_A_DAY
    days = [Fraction(tick, _MILLISECONDS_A_DAY) for tick in ticks.tolist()]
    return array_of([day.numerator if day.denominator == 1 else day for day in days])


def _of_days(series: pd.Series, zone: str | None) -> Found:
    """Return timestamps declared as dates: the days on their clocks, within the calendar."""
    read = block_reader(series, Type.DATE, 0, zone)
    assert read is not None  # the column holds times
    days = read(0, len(series))
    return _factorized(days.values, days.where_valid() & (days.values >= DAYS.lower) & (days.values <= DAYS.upper))


def _of_objects(series: pd.Series, kind: Type, read_text: ReadText, zone: str | None) -> Found:
    """Return the codes of Python objects, wide floats and Arrow's decimals."""
    if not isinstance(series.dtype, pd.ArrowDtype):
        return _of_cells(series.to_numpy(), kind, read_text, zone)
    codes, distinct = _of_dictionary(series)
    told, values = _of_cells(distinct, kind, read_text, zone)
    return np.append(told, np.int32(-1))[codes], values


def _of_dictionary(series: pd.Series) -> tuple[Codes, Iterable[Any]]:
    """Return an Arrow column as codes and its distinct cells. Arrow cannot encode its narrowest decimals."""
    held: Any = series.array
    chunks = held.__arrow_array__()
    try:
        encoded = chunks.dictionary_encode()
    except NotImplementedError:
        return np.arange(len(series), dtype=np.int32), _a_part_at_a_time(chunks)
    codes, values = codes_of(pd.Series(pd.arrays.ArrowExtensionArray(encoded)))
    distinct: Any = values.array
    return codes, _a_part_at_a_time(distinct.__arrow_array__())


def _a_part_at_a_time(chunks: Any) -> Iterable[Any]:
    for start in range(0, len(chunks), _OBJECTS_AT_ONCE):
        yield from chunks.slice(start, _OBJECTS_AT_ONCE).to_pylist()


def _of_cells(cells: Iterable[Any], kind: Type, read_text: ReadText, zone: str | None) -> Found:
    seen: dict[object, int] = {}
    exact = (exact_cell(cell, kind, read_text, zone) for cell in cells)
    codes = [-1 if cell is None else seen.setdefault(cell, len(seen)) for cell in exact]
    return np.array(codes, dtype=np.int32), array_of(list(seen))
