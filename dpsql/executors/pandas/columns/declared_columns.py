"""DataFrame columns as blocks of typed arrays, with the declarations enforced on every cell.

No value raises an error: a cell that does not fit its column's type is NULL, NaN is NULL, a value outside its bounds is
clipped, and a NULL in a column declared NOT NULL becomes the column's default.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.core.exact import LatticeSum
from dpsql.executors.pandas.columns.blocks import Reader, block_reader, read_objects
from dpsql.executors.pandas.columns.encoding import Codes, EncodedColumn, encode, is_coded
from dpsql.executors.pandas.columns.numbering import numbered_integers
from dpsql.plan.expressions import DTYPES, Array, Vector, blank
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type
from dpsql.schema.intervals import INT64, Number
from dpsql.schema.text_values import EXACT_READERS, READERS


class ColumnStore:
    """The columns of one frame under one schema. Holds a shallow copy, so later pandas writes to the frame do not
    affect it.

    Results about a column are cached for the life of the store: codes of texts, numbers read from objects, codes of
    numbers as keys, and whether all cells are within the bounds.
    """

    def __init__(self, frame: pd.DataFrame, schema: TableSchema) -> None:
        self.frame = frame.copy(deep=False)
        self.schema = schema
        self.rows = len(frame)
        self._series: dict[str, pd.Series] = {}
        self._encoded: dict[str, EncodedColumn] = {}
        self._converted: dict[str, Vector] = {}
        self._numbered: dict[str, tuple[Codes, Vector]] = {}
        self._inside: dict[str, bool] = {}
        self._identified: dict[str, tuple[Codes, Vector]] = {}
        self.led: dict[tuple[str, str, str], tuple[list[Callable[[], ColumnStore | None]], NDArray[Any]]] = {}
        """For a column, a table and its key: the row of that table that each row leads to (see `Database`)."""

    @property
    def source(self) -> pd.DataFrame:
        """The frame of the store."""
        return self.frame

    def stamps(self) -> object:
        """See `Store`: rows are in this process."""
        return ()

    def column(self, name: str) -> ColumnSchema:
        return self.schema.by_name[name.casefold()]

    def series(self, name: str) -> pd.Series:
        """Return a column as stored; cached, since pandas makes a new object on each access."""
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = self.frame[name]
        return found

    def share_caches(self, other: ColumnStore) -> None:
        """Take over cached results for columns whose cells occupy the same memory in both frames."""
        pairs = [(getattr(self, word), getattr(other, word)) for word in _CACHES]
        found = {name for _, theirs in pairs for name in theirs}
        for name in found & set(self.frame.columns):
            if self.column(name) == other.column(name) and same_memory(self.frame[name], other.frame[name]):
                for mine, theirs in pairs:
                    if name in theirs:
                        mine[name] = theirs[name]

    def reader(self, name: str) -> Reader:
        """Return a function (start, stop) -> the typed block of those rows with the declarations enforced."""
        column = self.column(name)
        if column.type is Type.TEXT or (column.type is not Type.OTHER and is_coded(self.series(name).dtype)):
            encoded = self.encoded(name)
            return lambda start, stop: encoded.dictionary.at(encoded.codes[start:stop])
        read = self._read_as(column)
        if read is not None:
            return self._enforced(column, read) if not column.type.opaque else read
        whole = self._read_once(name)
        return lambda start, stop: whole.at(slice(start, stop))

    def _read_as(self, column: ColumnSchema) -> Reader | None:
        series = self.series(column.name)
        if column.type.opaque:
            return lambda start, stop: _presence(series.iloc[start:stop])
        return block_reader(series, column.type, default_value(column), column.zone, clips=column.clips)

    def encoded(self, name: str) -> EncodedColumn:
        """Return a column of texts, or one stored as codes, by its distinct values."""
        if name not in self._encoded:
            column = self.column(name)
            texts = encode(
                self.series(name), column.type, default_value(column), _reader_of(column), column.zone,
                clips=column.clips,
            )  # fmt: skip
            self._encoded[name] = EncodedColumn(texts.codes, _declared(texts.dictionary, column), texts.nulls)
        return self._encoded[name]

    def numbered(self, name: str) -> tuple[Codes, Vector]:
        """Return a column of numbers as codes into its distinct values, including NULL."""
        if name not in self._numbered:
            kind, read = self.column(name).type, self.reader(name)
            close = numbered_integers(read, self.rows) if DTYPES[kind] == np.int64 else None
            self._numbered[name] = number(read(0, self.rows), kind) if close is None else close
        return self._numbered[name]

    def is_plain(self, name: str) -> bool:
        """Return whether expressions compare the cells of a column exactly as privacy unit keys, except integers beyond
        INTEGER's range: by schema and dtype, not by cells. Decimals are compared as doubles, and times as microseconds
        of a wall clock."""
        column, dtype = self.column(name), cast(Any, self.series(name).dtype)
        doubles = dtype.kind == "f" and dtype.itemsize <= _DOUBLE
        return self.is_bare(name) and (column.type in _TOLD_ALIKE or (column.type is Type.REAL and doubles))

    def is_bare(self, name: str) -> bool:
        """Return whether no declaration of a column could change a cell."""
        column, dtype = self.column(name), self.series(name).dtype
        whole = isinstance(dtype, np.dtype) and dtype.kind in "iub"
        if column.type.opaque or column.wide or column.cell_format is not None:
            return False
        return column.bounds is None and (column.nullable or whole)

    def identified(self, name: str) -> tuple[Codes, Vector]:
        """Return a column of privacy units, or of keys that lead to them, as codes into its distinct values; -1 or the
        code of a NULL is no unit. Uses the stored values (see `identity`), regardless of declared bounds and defaults
        and of the range of expressions."""
        if name not in self._identified:
            self._identified[name] = self._identify(name)
        return self._identified[name]

    def _identify(self, name: str) -> tuple[Codes, Vector]:
        column, series = self.column(name), self.series(name)
        if column.identity is Type.TEXT:
            texts = self.encoded(name) if column.nullable else encode(series, Type.TEXT, "", _reader_of(column))
            return _texts_apart(texts)
        from dpsql.executors.pandas.units.identity import identified  # only units and keys that lead to them need it

        codes, values = identified(series, column.identity, _reader_of(column, exact=True), column.zone)
        if codes.min(initial=0) >= 0:
            return codes, Vector(values)
        null: Array = np.zeros(1, dtype=values.dtype)
        present = np.append(np.ones(len(values), dtype=bool), False)
        return np.where(codes < 0, np.int32(len(values)), codes), Vector(np.append(values, null), present)

    def _read_once(self, name: str) -> Vector:
        """Read a column of Python objects declared as numbers, booleans or times, cell by cell, once."""
        if name not in self._converted:
            column = self.column(name)
            read = read_objects(
                self.series(name), column.type, default_value(column), _reader_of(column), column.zone,
                clips=column.clips,
            )  # fmt: skip
            self._converted[name] = _declared(read, column)
        return self._converted[name]

    def _enforced(self, column: ColumnSchema, read: Reader) -> Reader:
        """Return the reader with the declarations enforced; stops checking once all rows are known to be inside."""
        inside = _InBoundsRows(self.rows)

        def enforced(start: int, stop: int) -> Vector:
            block = read(start, stop)
            if column.name in self._inside:
                return _present(block, column)
            as_declared = _declared(block, column)
            if as_declared.values is block.values and inside.all_with(start, stop):
                self._inside[column.name] = True
            return as_declared

        return enforced


class _InBoundsRows:
    """The rows found to be within the bounds, block by block, in any order and from any thread."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._first_unknown = 0
        self._later: dict[int, int] = {}
        self._lock = Lock()

    def all_with(self, start: int, stop: int) -> bool:
        """Add these rows; return whether all rows are now known."""
        with self._lock:
            self._later[start] = stop
            while self._first_unknown in self._later:
                self._first_unknown = self._later.pop(self._first_unknown)
            return self._first_unknown == self._rows


def _texts_apart(encoded: EncodedColumn) -> tuple[Codes, Vector]:
    """Return texts as codes, one for each text, -1 for NULL; a dictionary may hold a text twice."""
    cells, valid = encoded.dictionary.values[:-1].tolist(), encoded.dictionary.where_valid()[:-1].tolist()
    seen: dict[object, int] = {}
    numbers = [seen.setdefault(cell, len(seen)) if present else -1 for cell, present in zip(cells, valid, strict=True)]
    table = np.array([*numbers, -1], dtype=np.int32)
    texts: Array = np.empty(len(seen), dtype=object)
    texts[:] = list(seen)
    return table[encoded.codes], Vector(texts)


_TOLD_ALIKE = (Type.INTEGER, Type.BOOLEAN, Type.TEXT)
_DOUBLE = 8
_CACHES = ("_encoded", "_converted", "_numbered", "_inside", "_identified")


def _reader_of(column: ColumnSchema, *, exact: bool = False) -> Callable[[str], Key]:
    """Return the parser of the column's texts. exact: for privacy unit keys."""
    clips = column.clips and column.type is Type.INTEGER and not exact
    if column.cell_format is None:
        read = (EXACT_READERS if exact or clips else READERS)[column.type]
    else:
        from dpsql.schema.formatted_values import text_reader  # few columns have a format of their own

        read = text_reader(column.type, column.cell_format, exact=exact or clips)
    return (lambda text: _nearest(read(text))) if clips else read


def _nearest(number: Key) -> Key:
    return number and max(int(INT64.lower), min(int(INT64.upper), int(number)))


def default_value(column: ColumnSchema) -> Key:
    """Return the replacement for NULL in a NOT NULL column: first key, lower bound, or the type's zero."""
    if column.keys and column.keys[0] is not None:
        return column.keys[0]
    if column.bounds is not None:
        return column.bounds.lower
    return "0" if column.wide else blank(column.type)


def number(whole: Vector, kind: Type) -> tuple[Codes, Vector]:
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


def _presence(series: pd.Series) -> Vector:
    valid = ~np.asarray(series.isna(), dtype=bool)
    return Vector(np.full(len(series), blank(Type.OTHER), dtype=object), valid)


def _declared(vector: Vector, column: ColumnSchema) -> Vector:
    """Apply bounds and declared nullability to every cell; NULL cells hold the column's default."""
    return _present(_enforce(vector, column), column)


def _present(vector: Vector, column: ColumnSchema) -> Vector:
    return vector if column.nullable else Vector(vector.values)


def _enforce(vector: Vector, column: ColumnSchema) -> Vector:
    """Apply the declared bounds, or those of the type, to every cell."""
    limits = column.bounds or _LIMITS.get(column.type)
    return vector if limits is None else Vector(clip(vector.values, limits.lower, limits.upper), vector.valid)


_LIMITS = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}


def clip(values: Array, lower: Number, upper: Number) -> Array:
    """Clip the values to two limits; return the same array if all are inside, since checking is faster than writing.

    A cell inside keeps its bits either way, also -0.0 at the limit 0.0, so that another row outside does not change it.
    """
    if not len(values) or (values.min() >= lower and values.max() <= upper):
        return values
    clipped = np.clip(values, lower, upper)
    if values.dtype.kind == "f" and 0 in (lower, upper):
        np.copyto(clipped, values, where=values == clipped)
    return clipped


def lattice_steps(part: LatticeSum, vector: Vector) -> NDArray[np.int64]:
    """Return the integers that the rows of a block add; NULL cells hold some integer of the range."""
    values: Any = vector.values
    if part.whole:
        clipped = clip(values.astype(np.int64, copy=False), int(part.lower), int(part.upper))
        steps = clipped - int(part.origin)
        held = part.least <= part.lower - part.origin and part.upper - part.origin <= part.most
        return np.asarray(steps if held else clip(steps, part.least, part.most), dtype=np.int64)
    clipped = clip(values.astype(np.float64, copy=False), part.lower, part.upper)
    steps = clipped - part.origin
    steps *= part.steps_per_unit
    np.rint(steps, out=steps)
    if not (len(steps) and steps.min() >= part.least and steps.max() <= part.most):  # NaN fails both
        steps = np.clip(np.where(np.isfinite(steps), steps, 0), part.least, part.most)
    return steps.astype(np.int64)


# Whether two columns share their cells: by memory address, without reading them.


def same_memory(a: pd.Series, b: pd.Series) -> bool:
    """Return whether both series are the same cells in the same memory. One of them is held by a shallow copy, and
    pandas copies before it writes to shared memory, so equal addresses mean equal contents."""
    here = _identity(a)
    return here is not None and here == _identity(b)


def _identity(series: pd.Series) -> object:
    """Return the memory addresses of a column's cells, or None if they are unknown. Both columns must be alive:
    otherwise one could reuse the other's memory."""
    array: Any = series.array
    kind, dtype = type(array), series.dtype
    if issubclass(kind, pd.Categorical):  # an Index is immutable: renamed categories are another one
        return "category", _place(array.codes), id(array.categories)
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        return dtype, [_chunk(chunk) for chunk in array.__arrow_array__().chunks]
    if issubclass(kind, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        return dtype, _place(array._data), _place(array._mask)
    if issubclass(kind, pd.arrays.DatetimeArray):
        return dtype, _place(array.asi8)
    if issubclass(kind, pd.arrays.NumpyExtensionArray):
        return dtype, _place(np.asarray(array))
    return None


def _place(cells: Any) -> object:
    interface = cells.__array_interface__
    return interface["data"][0], cells.shape, cells.strides


def _chunk(chunk: Any) -> object:
    buffers = [None if buffer is None else buffer.address for buffer in chunk.buffers()]
    values = getattr(chunk, "dictionary", None)
    return chunk.offset, len(chunk), buffers, None if values is None else _chunk(values)
