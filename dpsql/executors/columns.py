"""DataFrame columns as blocks of typed arrays, with the declared facts enforced on every cell.

Nothing here fails on a value: a cell that does not fit its column's type is NULL, NaN is NULL, a value outside its
bounds is clipped, a NULL where the owner says there is none becomes the column's default.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from dpsql.intervals import Number
from dpsql.schema import ColumnSchema, Key, TableSchema, Type
from dpsql.sql.expressions import DTYPES, Array, Vector, blank

LARGEST_INTEGER = 2**62


@dataclass(frozen=True, repr=False)
class Encoded:
    """A text column as codes into its distinct values; -1 is NULL, and indexes the extra last slot of `dictionary`."""

    codes: np.ndarray[Any, np.dtype[np.int32]]
    dictionary: Vector
    nulls: bool
    """Whether any code is -1."""


class ColumnStore:
    """The columns of one frame under one schema. Holds a shallow copy: pandas writes to the frame move away from it."""

    def __init__(self, frame: pd.DataFrame, schema: TableSchema) -> None:
        self.frame = frame.copy(deep=False)
        self.schema = schema
        self.rows = len(frame)
        self._encoded: dict[str, Encoded] = {}
        self._converted: dict[str, Vector] = {}
        self._numbered: dict[str, tuple[np.ndarray[Any, np.dtype[np.int32]], Vector]] = {}

    def column(self, name: str) -> ColumnSchema:
        return self.schema.by_name[name.casefold()]

    def share_caches(self, other: ColumnStore) -> None:
        """Take over the codes of columns whose cells are, by identity of their memory, the same in both frames."""
        for name in other._encoded.keys() & set(self.frame.columns):
            if self.column(name) == other.column(name) and _same_memory(self.frame[name], other.frame[name]):
                self._encoded[name] = other._encoded[name]

    def reader(self, name: str) -> Callable[[int, int], Vector]:
        """A function (start, stop) -> the typed, enforced block of those rows."""
        column = self.column(name)
        series = self.frame[name]
        if column.type is Type.TEXT:
            encoded = self.encoded(name)
            return lambda start, stop: encoded.dictionary.at(encoded.codes[start:stop])
        if column.type is Type.OTHER:
            return lambda start, stop: _presence(series.iloc[start:stop])
        if _is_python(series):
            whole = self._converted_column(name)
            return lambda start, stop: _enforce(whole.at(slice(start, stop)), column)
        if isinstance(series.dtype, np.dtype):
            values = series.to_numpy()
            return lambda start, stop: _enforce(_typed(values[start:stop], None, column.type), column)
        return lambda start, stop: _enforce(_extension_block(series.iloc[start:stop], column.type), column)

    def numbered(self, name: str) -> tuple[np.ndarray[Any, np.dtype[np.int32]], Vector]:
        """A column of numbers as codes into its distinct values, NULL being one of them; computed once."""
        if name not in self._numbered:
            self._numbered[name] = _number(self.reader(name)(0, self.rows), self.column(name).type)
        return self._numbered[name]

    def _converted_column(self, name: str) -> Vector:
        """A column of Python objects declared as numbers or booleans: converted cell by cell, once."""
        if name not in self._converted:
            self._converted[name] = _from_objects(self.frame[name].to_numpy(dtype=object), self.column(name).type)
        return self._converted[name]

    def encoded(self, name: str) -> Encoded:
        """The text column as codes; computed once for the life of this store."""
        if name not in self._encoded:
            self._encoded[name] = _encode(self.frame[name], self.column(name))
        return self._encoded[name]


def default_value(column: ColumnSchema) -> Key:
    """What a NULL becomes where the owner declared that there is none: first key, lower bound, or the type's zero."""
    if column.keys and column.keys[0] is not None:
        return column.keys[0]
    if column.bounds is not None:
        return column.bounds.lower
    return blank(column.type)


def _same_memory(a: pd.Series, b: pd.Series) -> bool:
    """True when both are the same cells of the same memory. One of them is held by a shallow copy, and pandas copies
    before it writes to shared memory, so equal addresses mean equal contents."""
    return a.dtype == b.dtype and _address(a) == _address(b)


def _address(series: pd.Series) -> object:
    held: Any = series.array
    if isinstance(held, pd.Categorical):
        return _address(pd.Series(held.codes, copy=False)), list(held.categories)
    if _is_arrow(series.dtype):
        chunks = held.__arrow_array__().chunks
        return [(c.offset, len(c), [b.address for b in c.buffers() if b is not None]) for c in chunks]
    cells = np.asarray(held)
    return cells.__array_interface__["data"][0], cells.shape, cells.strides


def _is_arrow(dtype: object) -> bool:
    return isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow")


def _is_python(series: pd.Series) -> bool:
    """Cells are Python objects (or text): a declared number has to be read out of each."""
    kinds = (pd.StringDtype, pd.CategoricalDtype)
    return series.dtype == object or isinstance(series.dtype, kinds) or pd.api.types.is_string_dtype(series.dtype)


def _encode(series: pd.Series, column: ColumnSchema) -> Encoded:
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = np.asarray(series.cat.codes, dtype=np.int32), list(series.cat.categories)
    else:
        if series.dtype == object:  # a cell that is not text is NULL; nothing of it is hashed or compared
            series = pd.Series([str.__str__(c) if issubclass(type(c), str) else None for c in series], dtype="str")
        found, uniques = pd.factorize(series)
        codes, values = found.astype(np.int32), list(uniques)
        if any(isinstance(value, str) and not _is_plain(value) for value in values):
            codes, values = _number_texts(series)
    texts = [value if isinstance(value, str) and _is_unicode(value) else None for value in values]
    return Encoded(codes, _dictionary(texts, column), bool((codes < 0).any()))


def _is_plain(text: str) -> bool:
    """Neither a lone surrogate nor the way it is written: pandas' hash table takes the one for the other."""
    return "\\u" not in text and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """No lone surrogates, which are no characters; a cell with one is NULL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number_texts(series: pd.Series) -> tuple[np.ndarray[Any, np.dtype[np.int32]], list[str]]:
    """Codes of texts by a dictionary of Python's: slower than pandas' table, and exact."""
    seen: dict[str, int] = {}
    codes = [seen.setdefault(c, len(seen)) if isinstance(c, str) and _is_unicode(c) else -1 for c in series]
    return np.array(codes, dtype=np.int32), list(seen)


def _number(whole: Vector, kind: Type) -> tuple[np.ndarray[Any, np.dtype[np.int32]], Vector]:
    values = whole.values + 0.0 if kind is Type.REAL else whole.values  # -0.0 and 0.0 are one key, shown as 0.0
    found, uniques = pd.factorize(values)
    codes = found.astype(np.int32)
    cells: Array = np.asarray(uniques, dtype=DTYPES[kind])
    if whole.valid is None:
        return codes, Vector(cells)
    valid = np.ones(len(cells) + 1, dtype=bool)
    valid[-1] = False
    blanks: Array = np.array([blank(kind)], dtype=DTYPES[kind])
    return np.where(whole.valid, codes, np.int32(len(cells))), Vector(np.concatenate([cells, blanks]), valid)


def _dictionary(texts: list[str | None], column: ColumnSchema) -> Vector:
    """The distinct values and one slot more for NULL, which is the default where NULL is declared away."""
    missing = None if column.nullable else default_value(column)
    filled = [missing if text is None else text for text in [*texts, None]]
    values = np.array([blank(Type.TEXT) if text is None else text for text in filled], dtype=object)
    valid = np.array([text is not None for text in filled], dtype=bool)
    return Vector(values, None if valid.all() else valid)


def _presence(series: pd.Series) -> Vector:
    valid = ~np.asarray(series.isna(), dtype=bool)
    return Vector(np.full(len(series), blank(Type.OTHER), dtype=object), valid)


def _extension_block(series: pd.Series, kind: Type) -> Vector:
    """A block of a nullable or Arrow column."""
    missing = np.asarray(series.isna(), dtype=bool)
    filled = series.to_numpy(dtype=_plain_dtype(series), na_value=0)
    return _typed(filled, ~missing if missing.any() else None, kind)


def _plain_dtype(series: pd.Series) -> Any:
    if pd.api.types.is_bool_dtype(series.dtype):
        return np.bool_
    if pd.api.types.is_unsigned_integer_dtype(series.dtype):
        return np.uint64
    return np.int64 if pd.api.types.is_signed_integer_dtype(series.dtype) else np.float64


def _typed(values: Array, valid: Any, kind: Type) -> Vector:
    """Numbers of any NumPy dtype as the column's type; a cell that does not fit is NULL."""
    if values.dtype.kind == "f":
        wrong = np.isnan(values)
        if wrong.any():
            valid = ~wrong if valid is None else valid & ~wrong
            values = np.where(wrong, 0, values)
        if kind is Type.INTEGER:
            return _whole(values, valid)
    if kind is Type.INTEGER and values.dtype.kind == "u" and values.dtype.itemsize == 8:
        values = np.minimum(values, np.uint64(LARGEST_INTEGER))
    if kind is Type.BOOLEAN and values.dtype != np.bool_:
        fits = (values == 0) | (values == 1)
        valid = fits if valid is None else valid & fits
    return Vector(values.astype(DTYPES[kind], copy=False), valid)


def _whole(values: Array, valid: Any) -> Vector:
    """Floats as integers: a fraction or an infinity does not fit."""
    fits = np.isfinite(values) & (np.trunc(values) == values)
    valid = fits if valid is None else valid & fits
    inside = np.clip(np.where(fits, values, 0), -LARGEST_INTEGER, LARGEST_INTEGER)
    return Vector(inside.astype(np.int64), valid)


def _enforce(vector: Vector, column: ColumnSchema) -> Vector:
    """Bounds and declared nullability, on every cell."""
    values, valid = vector.values, vector.valid
    if not column.nullable and valid is not None:
        values, valid = np.where(valid, values, np.array(default_value(column), values.dtype)), None
    if column.bounds is not None:
        values = clip(values, column.bounds.lower, column.bounds.upper)
    elif column.type is Type.INTEGER:
        values = clip(values, -LARGEST_INTEGER, LARGEST_INTEGER)
    return Vector(values, valid)


def clip(values: Array, lower: Number, upper: Number) -> Array:
    """The values held between two limits; the same array when all are inside, which is quicker to see than to write."""
    if not len(values) or (values.min() >= lower and values.max() <= upper):
        return values
    return np.clip(values, lower, upper)


def _from_objects(cells: Array, kind: Type) -> Vector:
    read = [_read_safely(cell, kind) for cell in cells]
    valid = np.array([cell is not None for cell in read], dtype=bool)
    values: Array = np.array([blank(kind) if cell is None else cell for cell in read], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)


_TRUTHS = {"true": True, "t": True, "false": False, "f": False}


def _read_safely(cell: object, kind: Type) -> Key:
    """`_read_cell`, whatever the cell's class does when it is looked at."""
    try:
        return _read_cell(cell, kind)
    except Exception:  # noqa: BLE001 - a cell that cannot be read does not fit
        return None


def _read_cell(cell: object, kind: Type) -> Key:
    """One Python object as a value of the type, None where it does not fit. Text is read as in a CSV file."""
    if kind is Type.BOOLEAN:
        if isinstance(cell, str):
            return _TRUTHS.get(cell.strip().casefold())
        return bool(cell) if isinstance(cell, bool | np.bool_) else None
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, str | int | float | np.number | Decimal):
        return None
    if isinstance(cell, np.timedelta64 | np.complexfloating):
        return None
    if kind is Type.INTEGER and isinstance(cell, str | int | np.integer):
        return _limited(int(cell)) if not isinstance(cell, str) or len(cell) <= _LONGEST_NUMBER else None
    number = float(cell)
    if math.isnan(number):
        return None
    if kind is Type.INTEGER:
        return _limited(int(number)) if math.isfinite(number) and number == int(number) else None
    return number


_LONGEST_NUMBER = 40


def _limited(value: int) -> int:
    return max(-LARGEST_INTEGER, min(LARGEST_INTEGER, value))
