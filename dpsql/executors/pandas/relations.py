"""The rows of a source: for each table of the query its columns, and the table's row in each row.

A join copies no column: a column of a looked-up table is read through the positions of its rows, block by block. The
position -1 is a missing row (in an outer join): all its columns are NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.blocks import Reader
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.encoding import EncodedColumn
from dpsql.executors.pandas.columns.gathering import Places, gathered, gathered_codes, some_of, with_null
from dpsql.plan.expressions import Bools, Column, Expr, Vector
from dpsql.plan.nodes import Scan, Source
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

if TYPE_CHECKING:
    from dpsql.executors.keyed_hash import HashKey
    from dpsql.executors.pandas.hashing import HashedRows
    from dpsql.executors.pandas.joins.joining import KeyColumn

_MOST_REMEMBERED = 1 << 16


class Columns(Protocol):
    """A table of columns, by name: a ColumnStore, or columns derived by a query."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def reader(self, name: str) -> Reader:
        """Return a function (start, stop) -> the block of those rows."""

    def encoded(self, name: str) -> EncodedColumn:
        """Return a column of texts by its distinct values."""

    def numbered(self, name: str) -> tuple[NDArray[np.int32], Vector]:
        """Return another column as codes into its distinct values, including NULL."""


@dataclass(frozen=True, repr=False)
class Units:
    """The privacy unit of each row: a code into `values`, -1 for no unit. Equal values are one unit, different ones are
    two: these are stored values (see `exact_values`), not those read by expressions. Without values the codes are the
    rows of tables, each its own unit, one table after the other: `tables` are their names and row counts. Without codes
    they are all rows in order. `kind` is the units' declared type.

    `handles`: (kind, place, column) of the columns that determine the unit, like the plan's handles."""

    codes: Places | None
    count: int
    values: Vector | None
    kind: Type = Type.INTEGER
    tables: tuple[tuple[str, int], ...] = ()
    handles: frozenset[tuple[str, str, str]] = frozenset()

    def at(self, places: Places) -> Units:
        if self.codes is None or len(self.codes) == 0:
            return replace(self, codes=places)
        return replace(self, codes=self.codes[places])

    def numbers(self) -> Places:
        """Return the codes of all rows."""
        return np.arange(self.count) if self.codes is None else self.codes

    def key(self) -> KeyColumn:
        """Return the units as one side of an equality."""
        from dpsql.executors.pandas.joins.joining import KeyColumn  # loaded with the first join

        assert self.values is not None  # rows as units are never compared
        return KeyColumn(self.values, self.numbers().astype(np.int32, copy=False))

    def hashes(self, key: HashKey, places: Places) -> HashedRows:
        """Return the polynomial of the unit of these rows, to be continued."""
        from dpsql.executors.keyed_hash import limbs_of
        from dpsql.executors.pandas.hashing import (  # loaded with the first contribution bounds
            combine,
            hash_coded,
            hash_units,
            started,
        )

        codes = self.numbers()[places]
        start = started(key, len(codes))
        if self.values is None:  # positions depend on other rows, so all of these units hash alike
            return start
        if self.kind is Type.TEXT:
            own = hash_coded(key, codes, with_null(self.values, self.kind), limbs_of(self.kind))
        else:
            own = hash_units(key, codes, self.values.values)
        return combine(key, [start, own])


@dataclass(frozen=True, repr=False)
class Part:
    """One table of the query: its columns, and its row for each row (None: the same one)."""

    columns: Columns
    places: Places | None = None

    def at(self, places: Places) -> Part:
        if self.places is None:
            return Part(self.columns, places)
        found = self.places[places] if len(self.places) else np.full(len(places), -1)
        return Part(self.columns, np.where(places < 0, -1, found) if places.min(initial=0) < 0 else found)


class Relation:
    """Rows over parts. `kept` marks the rows that an inner join keeps (None: all)."""

    def __init__(
        self, rows: int, parts: Mapping[str, Part], units: Units | None = None, kept: Bools | None = None
    ) -> None:
        self.rows = rows
        self.parts = dict(parts)
        self.units = units
        self.kept = kept
        self._whole: dict[Column, Vector] = {}
        self._encoded: dict[Column, EncodedColumn] = {}
        self._readers: dict[Column, Reader] = {}

    @classmethod
    def of(cls, columns: Columns | Relation) -> Relation:
        """Return all rows of one table, under an empty name."""
        return columns if isinstance(columns, Relation) else cls(columns.rows, {"": Part(columns)})

    def at(self, places: Places) -> Relation:
        """Return the rows at these places; -1 is a missing row."""
        units = None if self.units is None else self.units.at(places)
        return Relation(len(places), {name: part.at(places) for name, part in self.parts.items()}, units)

    def settled(self) -> Relation:
        """Return the rows that are kept and, if units are known, have one."""
        kept = self.present()
        return self if kept is None else self.at(np.flatnonzero(kept))

    def present(self) -> Bools | None:
        """Mark the rows that are kept and have a unit; None: all."""
        codes = None if self.units is None else self.units.codes
        if codes is None or codes.min(initial=0) >= 0:
            return self.kept
        somebody = codes >= 0
        return somebody if self.kept is None else self.kept & somebody

    def reader(self, column: Column) -> Reader:
        """Return a function (start, stop) -> the block of those rows, read once for all expressions of a block."""
        found = self._readers.get(column)
        if found is None:
            found = self._readers[column] = _remembering(self._reader(column))
        return found

    def _reader(self, column: Column) -> Reader:
        part = self.parts[column.table]
        if part.places is None:
            return part.columns.reader(column.name)
        if column.type is Type.TEXT:
            encoded = self.encoded(column)
            return lambda start, stop: encoded.dictionary.at(encoded.codes[start:stop])
        places = part.places
        if len(places) and places[0] >= 0 and 2 * self.rows <= part.columns.rows and (places[1:] >= places[:-1]).all():
            return some_of(part.columns.reader(column.name), places)
        whole = self._all_of(column)
        missing = places.min(initial=0) < 0
        return lambda start, stop: gathered(whole, places[start:stop], missing=missing)

    def encoded(self, column: Column) -> EncodedColumn:
        """Return a column of texts as codes, for each row of the relation."""
        part = self.parts[column.table]
        if part.places is None:
            return part.columns.encoded(column.name)
        if column not in self._encoded:
            self._encoded[column] = gathered_codes(part.columns.encoded(column.name), part.places)
        return self._encoded[column]

    def numbered(self, column: Column) -> tuple[NDArray[np.int32], Vector]:
        """Return another column as codes into its distinct values."""
        part = self.parts[column.table]
        codes, values = part.columns.numbered(column.name)
        if part.places is None:
            return codes, values
        if part.places.min(initial=0) >= 0:
            return codes[part.places], values
        if values.valid is None or values.valid[-1]:
            values = with_null(values, column.type)
        return np.append(codes, np.int32(len(values) - 1))[part.places], values

    def is_unit(self, expr: Expr) -> bool:
        """Return whether an expression is the unit column of its table."""
        return self.units is not None and isinstance(expr, Column) and ("", expr.table, expr.name) in self.units.handles

    def is_bare(self, column: Column) -> bool:
        """Return whether a column is a table's own and no declaration could change a cell."""
        columns = self.parts[column.table].columns
        return isinstance(columns, ColumnStore) and columns.is_bare(column.name)

    def is_plain(self, column: Column) -> bool:
        """Return whether the column is also compared as a unit key: then a path and an equality join the same rows."""
        columns = self.parts[column.table].columns
        return isinstance(columns, ColumnStore) and columns.is_plain(column.name)

    def key(self, column: Column, *, exactly: bool) -> KeyColumn:
        """Return a column as one side of an equality: a bare one as stored, or any as expressions read it."""
        from dpsql.executors.pandas.joins.joining import KeyColumn, key_of  # as above

        part = self.parts[column.table]
        if exactly and isinstance(part.columns, ColumnStore):
            codes, values = part.columns.identified(column.name)
            return KeyColumn(values, codes if part.places is None else np.append(codes, np.int32(-1))[part.places])
        if column.type is Type.TEXT:
            return key_of(self.encoded(column))
        return KeyColumn(self.reader(column)(0, self.rows))

    def _all_of(self, column: Column) -> Vector:
        """Return the whole column of its table."""
        if column not in self._whole:
            columns = self.parts[column.table].columns
            self._whole[column] = columns.reader(column.name)(0, columns.rows)
        return self._whole[column]


def _remembering(read: Reader) -> Reader:
    """Return the reader with a cache of the last block."""
    last: dict[tuple[int, int], Vector] = {}

    def remembering(start: int, stop: int) -> Vector:
        block = last.get((start, stop))
        if block is None:
            block = read(start, stop)
            if stop - start <= _MOST_REMEMBERED:
                last.clear()
                last[start, stop] = block
        return block

    return remembering


def rows_alone(source: Source, stores: Mapping[str, ColumnStore]) -> Relation | None:
    """Return the rows of one table, as units of their own or public; None for other sources. stores: by folded name."""
    if not isinstance(source, Scan) or (source.table.unit is not None and not source.table.public):
        return None
    name = source.table.name.casefold()
    store = stores[name]
    units = None if source.table.public else units_of_rows(name, store.rows)
    return Relation(store.rows, {source.name: Part(store)}, units)


def units_of_rows(table: str, rows: int) -> Units:
    """Make each row of a table a unit; `table` is its folded name."""
    return Units(None, rows, None, tables=((table, rows),))


def units_of_codes(codes: Places, values: Vector, kind: Type) -> Units:
    """Return units by the codes of a column; the value NULL is no unit."""
    if values.valid is not None:
        codes = np.where(np.append(values.valid, False)[codes], codes, -1)
    return Units(codes, len(values), values, kind)


def merged_units(parts: list[Units]) -> Units:
    """Concatenate the units of several lists of rows: equal values are one unit, as is the same row of one table."""
    from dpsql.executors.pandas.columns.exact_values import joined, numbered  # loaded if several tables meet
    from dpsql.executors.pandas.sums.ranking import dense_ranks

    if all(part.values is None for part in parts):
        counts = {name: count for part in parts for name, count in part.tables}  # the same for one table in all parts
        first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        codes = np.concatenate([_renumbered(part, first) for part in parts])
        return Units(codes, sum(counts.values()), None, tables=tuple(counts.items()))
    values = [part.values.values for part in parts if part.values is not None]
    ranks, firsts = dense_ranks(np.concatenate(numbered(values)))
    distinct = joined(values, firsts)
    own_codes, start = [], 0
    for part, own in zip(parts, values, strict=True):
        numbers = np.append(ranks[start : start + len(own)], -1)
        own_codes.append(numbers[part.numbers()])
        start += len(own)
    return Units(np.concatenate(own_codes), len(distinct), Vector(distinct), parts[0].kind)


def _renumbered(part: Units, first: Mapping[str, int]) -> Places:
    """Return the codes of rows as units, with each table's starting at its first code."""
    begins = np.cumsum([0, *(count for _, count in part.tables)])[:-1]
    moved_by = np.array([first[name] for name, _ in part.tables], dtype=np.int64) - begins
    codes = part.numbers()
    return np.where(codes < 0, -1, codes + moved_by[np.searchsorted(begins, codes, side="right") - 1])
