"""What type checkers are told of the words that an owner writes, and of parameters."""

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
        """The frame."""


class ArrowExport(Protocol):
    """A table of pyarrow or Polars, a relation of DuckDB: what gives Arrow's stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The capsule."""


Scalars = Mapping[str, Word | Decimal | np.generic]
"""Values for `:name` in a text."""
BoundWords = Mapping[str, Sequence[str | float | date | np.generic] | str] | str
"""column -> (lower, upper), "auto" or ("auto", lower, upper); or "auto" for all columns of numbers."""
NumberBounds = Mapping[str, Sequence[float | date | np.generic]]
"""column -> (lower, upper), none of them "auto": what a frame remembers."""
KeyWords = Mapping[str, Iterable[Word | np.generic] | EarlierAnswer]
"""column -> its values, or an earlier answer with a column of that name."""
UniqueWords = Sequence[str | Sequence[str]]
"""Columns, and lists of columns."""
