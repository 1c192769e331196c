"""Values of answers and ends of their intervals, as columns of pandas frames and as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsql.answer.number_format import whole_limits
from dpsql.plan.expressions import Array, Vector
from dpsql.release.intervals.intervals import Bounds
from dpsql.schema.calendar import date_of, timestamp_of
from dpsql.schema.columns import Type

_TEXT: Any = pd.api.types.pandas_dtype("str")


def frame_column(kind: Type, vector: Vector) -> Any:
    """Return an array for a frame, of NumPy or of pandas."""
    values, valid = vector.values, vector.valid
    missing = valid is not None and not valid.all()
    if kind is Type.TEXT:
        return pd.array(python_values(kind, vector), dtype=_TEXT)
    if kind.temporal:
        return np.where(vector.where_valid(), _moments(kind, values), np.datetime64("NaT"))
    if not missing or valid is None:
        return values
    if kind is Type.REAL:
        return np.where(valid, values, np.nan)
    return pd.array(python_values(kind, vector), dtype="boolean" if kind is Type.BOOLEAN else "Int64")


def _moments(kind: Type, values: Array) -> Array:
    """Return dates as datetime64[s], since pandas has no dtype for days, and timestamps as datetime64[us]."""
    if kind is Type.DATE:
        return values.astype("datetime64[D]").astype("datetime64[s]")
    return values.astype("datetime64[us]")


def frame_limits(kind: Type, bounds: Bounds) -> tuple[Array, Array]:
    """Return the ends of intervals in the dtype of their values, rounded outward, and clamped to the calendar."""
    if not kind.temporal:
        return bounds
    low, high = whole_limits(kind, bounds)
    return _moments(kind, low), _moments(kind, high)


def python_limits(kind: Type, bounds: Bounds) -> tuple[list[Any], list[Any]]:
    """Return the ends of intervals as Python values; whole ends of counts as integers."""
    if kind.temporal:
        show = date_of if kind is Type.DATE else timestamp_of
        low, high = whole_limits(kind, bounds)
        return [show(each) for each in low.tolist()], [show(each) for each in high.tolist()]
    ends: tuple[list[Any], list[Any]] = bounds[0].tolist(), bounds[1].tolist()
    if kind is not Type.INTEGER:
        return ends
    whole = [[int(end) if float(end).is_integer() else end for end in each] for each in ends]
    return whole[0], whole[1]


def python_values(kind: Type, vector: Vector) -> list[Any]:
    cells: list[Any] = vector.values.tolist()
    if vector.valid is not None:  # the values under NULL are arbitrary
        cells = [cell if present else None for cell, present in zip(cells, vector.valid, strict=True)]
    if not kind.temporal:
        return cells
    show = date_of if kind is Type.DATE else timestamp_of
    return [None if cell is None else show(cell) for cell in cells]
