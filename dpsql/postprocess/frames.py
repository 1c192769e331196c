"""Released rows as columns: input and output of post-processing SQL."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import DTYPES, Vector, blank
from dpsql.schema.calendar import day_number, microsecond_number
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

LARGEST = 2**63 - 1

SQL_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


@dataclass(frozen=True)
class Header:
    """The columns of a relation, before there are rows: names and types in order. `most` and `least`: bounds on the
    number of rows; `ordered`: its rows keep their given order, unless they are sorted; `wide`: its 128-bit integer
    columns; `digits`: those of them that other releases read as their digits."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    most: int
    ordered: bool = False
    least: int = 0
    wide: frozenset[str] = frozenset()
    digits: frozenset[str] = frozenset()

    def sql_type(self, name: str, kind: Type) -> str:
        """Return DuckDB's type of a column."""
        return "HUGEINT" if name in self.wide else SQL_TYPES[kind]

    def array(self, name: str, kind: Type, vector: Vector) -> Any:
        """Return a column as DuckDB reads it; numbers beyond 64 bits are text. Raises OverflowError, as `array_of`."""
        large = name in self.wide and vector.values.dtype == object
        return array_of(Type.TEXT if large else kind, vector)

    def cells(self, name: str, kind: Type, vector: Vector) -> list[Any]:
        """Return a column's cells as Python values. Raises OverflowError, as `array_of`."""
        found: list[Any] = self.array(name, kind, vector).tolist()
        return [int(each) if name in self.wide and each is not None else each for each in found]


@dataclass(frozen=True)
class Frame:
    """Released rows: a name, type and vector for each column, all of one length."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    vectors: tuple[Vector, ...]

    def __len__(self) -> int:
        return len(self.vectors[0]) if self.vectors else 0

    def widest(self) -> int:
        """Return the number of characters of the longest text."""
        texts = [vector for kind, vector in zip(self.types, self.vectors, strict=True) if kind is Type.TEXT]
        return max((len(str(cell)) for vector in texts for cell in vector.values.tolist()), default=0)


def no_rows(header: Header) -> Frame:
    """Return an empty relation."""
    kinds = tuple(kind for _, kind in header.columns)
    vectors = tuple(Vector(np.zeros(0, dtype=DTYPES[kind])) for kind in kinds)
    return Frame(tuple(name for name, _ in header.columns), kinds, vectors)


def array_of(kind: Type, vector: Vector) -> Any:
    """Return a column as DuckDB reads it: a NumPy array, masked where NULL; days and microseconds as integers. Raises
    OverflowError for an integer beyond 64 bits."""
    values, gone = vector.values, ~vector.where_valid()
    if kind is Type.TEXT:
        cells = [None if lost else str(cell) for cell, lost in zip(values.tolist(), gone.tolist(), strict=True)]
        texts: Any = np.empty(len(cells), dtype=object)
        texts[:] = cells
        return texts
    if kind is Type.REAL:
        reals = values.astype(np.float64)
        return _masked(reals, gone | np.isnan(reals))
    if kind is Type.BOOLEAN:
        return _masked(values.astype(np.bool_), gone)
    if values.dtype == object:
        numbers = [0 if lost else int(cell) for cell, lost in zip(values.tolist(), gone.tolist(), strict=True)]
        values = np.array(numbers, dtype=np.int64)  # raises OverflowError
    return _masked(values.astype(np.int64), gone)


def _masked(values: Any, gone: Any) -> Any:
    return np.ma.masked_array(values, mask=gone) if gone.any() else values


def in_order(frame: Frame) -> bool:
    """Return whether the first column, of numbers, is strictly increasing: then the rows are sorted by all columns."""
    kind, first = frame.types[0], frame.vectors[0]
    if kind is Type.TEXT or first.values.dtype == object or not first.where_valid().all():
        return False
    return bool((first.values[1:] > first.values[:-1]).all())


_WHOLE = tuple(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)
_KINDS: dict[str, Type] = {
    "BOOLEAN": Type.BOOLEAN,
    "VARCHAR": Type.TEXT,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMP_S": Type.TIMESTAMP,
    "TIMESTAMP_MS": Type.TIMESTAMP,
    "DOUBLE": Type.REAL,
    "FLOAT": Type.REAL,
    '"NULL"': Type.INTEGER,
    **dict.fromkeys(_WHOLE, Type.INTEGER),
}


def type_of(name: str, sql_type: str) -> Type:
    """Return the type of an output column. Raises UnsupportedSQL for types that dpsql does not have."""
    kind = Type.REAL if sql_type.startswith("DECIMAL(") else _KINDS.get(sql_type)
    kind = Type.TEXT if kind is None and _NESTED.search(sql_type) else kind
    if kind is None:
        raise UnsupportedSQL(
            f'the column "{name}" of the answer would be of the type {sql_type[:40]}, which no column here has.',
            hint="Times and intervals stand inside: take a part, or CAST it AS TEXT.",
        )
    return kind


_NESTED = re.compile(r"^(?:STRUCT|MAP)\(|\[[0-9]*\]$")
"""Lists, structures and maps, which are shown as JSON."""


def _json(cell: Any) -> str:
    """Return a list, structure or map as JSON, in the form of HISTOGRAM."""
    return json.dumps(_plain_parts(cell), ensure_ascii=False, allow_nan=False)


def _plain_parts(cell: Any) -> Any:
    """Return a cell as JSON values: numbers, truth values and text as they are, NaN and infinities as NULL, other types
    as their text."""
    if isinstance(cell, dict):
        return {str(name): _plain_parts(part) for name, part in cell.items()}
    if isinstance(cell, list | tuple):
        return [_plain_parts(part) for part in cell]
    if isinstance(cell, Decimal | float):
        return float(cell) if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, bool | int) else str(cell)


def vector_of_cells(kind: Type, cells: Sequence[Any]) -> Vector:
    """Return cells from DuckDB as a column of this type; NaN is NULL."""
    at_once = _at_once(kind, cells)
    if at_once is not None:
        return at_once
    values = [None if cell is None or cell != cell else _plain(kind, cell) for cell in cells]  # noqa: PLR0124 - NaN
    valid = np.array([value is not None for value in values], dtype=bool)
    filled: list[Any] = [blank(kind) if value is None else value for value in values]
    whole = kind is Type.INTEGER and any(abs(value) > LARGEST for value in filled)
    column: Any = np.empty(len(filled), dtype=object if whole else DTYPES[kind])
    column[:] = filled
    return Vector(column, None if valid.all() else valid)


def _at_once(kind: Type, cells: Sequence[Any]) -> Vector | None:
    """Return numbers that NumPy reads directly; None for other cells."""
    if kind is Type.REAL:
        reals = np.array(cells, dtype=np.float64)  # None is NaN
        valid = ~np.isnan(reals)
        return Vector(reals, None) if valid.all() else Vector(np.where(valid, reals, 0.0), valid)
    if kind is Type.INTEGER and len(cells) and None not in cells:
        numbers = np.array(cells)
        if numbers.dtype == np.int64 and numbers.min() > -LARGEST - 1:
            return Vector(numbers)
    return None


def _plain(kind: Type, cell: Any) -> Any:
    if kind is Type.DATE:
        return day_number(cell if type(cell) is date else date.fromisoformat(str(cell)[:10]))
    if kind is Type.TIMESTAMP:
        return microsecond_number(cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell)))
    if kind is Type.REAL:
        return float(cell) if isinstance(cell, Decimal) else cell
    if kind is Type.TEXT and isinstance(cell, list | tuple | dict):
        return _json(cell)
    return cell
