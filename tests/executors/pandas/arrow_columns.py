"""Columns in Arrow's memory, where pyarrow is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pandas as pd
import pytest

ARROW = find_spec("pyarrow") is not None
needs_arrow = pytest.mark.skipif(not ARROW, reason="pyarrow is not installed")


def arrow(cells: list[Any], kind: str, *sizes: Any, coded: bool = False) -> pd.Series:
    """A column of the type pyarrow.<kind>(*sizes), in two chunks; as a dictionary if `coded`."""
    import pyarrow as pa

    made = pa.array(cells, getattr(pa, kind)(*sizes))
    return wrapped(made.dictionary_encode() if coded else made)


def wrapped(*chunks: Any) -> pd.Series:
    """Arrow arrays as one column; a single one in two chunks."""
    import pyarrow as pa

    if len(chunks) == 1:
        chunks = (chunks[0][:1], chunks[0][1:])
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks)))
