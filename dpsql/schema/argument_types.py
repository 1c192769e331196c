"""Types of owners' declarations and of parameters, for type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Protocol

import numpy as np

from dpsql.schema.column_declarations import Word


class EarlierAnswer(Protocol):
    """An earlier answer: anything with a frame."""

    @property
    def df(self) -> Any:
        """Its frame."""


class ArrowExport(Protocol):
    """An object with an Arrow stream: a table of pyarrow or Polars, a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the capsule."""


Scalars = Mapping[str, Word | Decimal | np.generic]
"""Values for `:name` in a text."""
BoundWords = Mapping[str, Sequence[str | float | date | np.generic] | str] | str
"""column -> (lower, upper), "auto" or ("auto", lower, upper); or "auto" for all columns of numbers."""
NumberBounds = Mapping[str, Sequence[float | date | np.generic]]
"""column -> (lower, upper), without "auto": stored with a frame."""
KeyWords = Mapping[str, Iterable[Word | np.generic] | EarlierAnswer]
"""column -> its values, or an earlier answer with a column of that name."""
UniqueWords = Sequence[str | Sequence[str]]
"""Columns, and lists of columns."""
