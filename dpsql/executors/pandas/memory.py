"""Whether two columns are the same cells: by where they lie in memory, without a look at them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def same_memory(a: pd.Series, b: pd.Series) -> bool:
    """True when both are the same cells of the same memory. One of them is held by a shallow copy, and pandas copies
    before it writes to shared memory, so equal addresses mean equal contents."""
    here = _identity(a)
    return here is not None and here == _identity(b)


def _identity(series: pd.Series) -> object:
    """Everything that says where a column's cells lie; None where it cannot be said. Both columns must be alive, or one
    could lie where the other has been."""
    held: Any = series.array
    kind, dtype = type(held), series.dtype
    if issubclass(kind, pd.Categorical):  # an Index cannot be changed: renamed categories are another one
        return "category", _place(held.codes), id(held.categories)
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        return dtype, [_chunk(chunk) for chunk in held.__arrow_array__().chunks]
    if issubclass(kind, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        return dtype, _place(held._data), _place(held._mask)
    if issubclass(kind, pd.arrays.DatetimeArray):
        return dtype, _place(held.asi8)
    if issubclass(kind, pd.arrays.NumpyExtensionArray):
        return dtype, _place(np.asarray(held))
    return None


def _place(cells: Any) -> object:
    interface = cells.__array_interface__
    return interface["data"][0], cells.shape, cells.strides


def _chunk(chunk: Any) -> object:
    buffers = [None if buffer is None else buffer.address for buffer in chunk.buffers()]
    values = getattr(chunk, "dictionary", None)
    return chunk.offset, len(chunk), buffers, None if values is None else _chunk(values)
