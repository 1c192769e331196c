"""Tables of one statement: Spark frames, Parquet files, and DataFrames transferred to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.tables import FrameStore
from dpsql.executors.spark.cells import (
    brought_identity_text,
    brought_number,
    cell_text,
    identity_text,
    is_whole_identity,
)
from dpsql.executors.spark.session import borrowed, opened, some_session
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.sources.arrow import needs_arrow
from dpsql.sources.stored import ParquetFiles, stamps_of

_HIDDEN = ("_", ".")
_PATTERN = frozenset("*?[]{}\\,:%#")


class SparkStore:
    """A Spark frame, or Parquet files read by Spark, under a schema. Raises InvalidSchema if a column cannot be read as
    its declared type, if Spark would skip a file, or if a frame cannot be shared between sessions."""

    def __init__(self, source: Any, schema: TableSchema) -> None:
        self.source = source
        self.schema = schema
        self.files = source if isinstance(source, ParquetFiles) else None
        self.session = opened(some_session() if self.files is not None else source.sparkSession)
        self.stamped = self.stamps()
        self.fields: Any = None
        with borrowed(self.session) as session:
            self.fields = self._frame(session).schema
            self._try(session)
        self.stored = {field.name.casefold(): field.dataType.simpleString() for field in self.fields.fields}
        self.places = {field.name.casefold(): f"c{place}" for place, field in enumerate(self.fields.fields)}
        for column in schema.columns:
            stored = self.stored.get(column.name.casefold())
            if column.cell_format is not None:
                raise InvalidSchema(
                    f'"{column.name}": Spark does not read {next(iter(column.cell_format.words))}.',
                    hint='Leave the word out, or read the files with engine="duckdb".',
                )
            if stored is None or cell_text(column.name, stored, column.type) is None:
                raise InvalidSchema(
                    f'"{column.name}" is stored as {stored or "nothing that Spark reads"}, and cannot be read as '
                    f"{column.type}.",
                    hint="Leave the type out, or write the table with that type.",
                )

    def stamps(self) -> object:
        """See `Store`; None for a frame, which runs again each time."""
        return stamps_of(self.files.files) if self.files is not None else None

    def check(self) -> None:
        """Raise InvalidSchema if files changed since they were opened; frames are not checked."""
        if self.stamps() != self.stamped:
            raise InvalidSchema(f"{self.files} has changed since it was opened.", hint="Open it again: a new session.")

    @contextmanager
    def handed(self, session: Any) -> Iterator[str]:
        """Yield the name by which a separate session reads the rows. Columns are named by their places: to Spark, the
        owner's names may be equal, or patterns."""
        frame = self._frame(session).toDF(*(f"c{place}" for place in range(len(self.fields.fields))))
        name = f"dpsql_{uuid4().hex}"
        if self.files is not None:
            frame.createTempView(name)
            try:
                yield name
            finally:
                session.catalog.dropTempView(name)
            return
        frame.createGlobalTempView(name)
        try:
            yield f"{session.conf.get('spark.sql.globalTempDatabase', 'global_temp')}.{name}"
        finally:
            frame.sparkSession.catalog.dropGlobalTempView(name)

    def _frame(self, session: Any) -> Any:
        """Return the rows, as a frame of the owner's session or, for files, of the separate one."""
        if self.files is None:
            return self.source
        names = [_seen(file) for file in self.files.files]
        reader = session.read.option("recursiveFileLookup", "true")
        if self.fields is not None:
            reader = reader.schema(self.fields)
        failed = ""
        try:
            return reader.parquet(*names)
        except Exception as error:  # noqa: BLE001 - whatever Spark says of a file
            failed = type(error).__name__
        raise InvalidSchema(f"{self.files} cannot be read by Spark ({failed}).", hint='engine="duckdb" reads it.')

    def _try(self, session: Any) -> None:
        """Share the rows once, without reading one."""
        failed = ""
        try:
            with self.handed(session) as name:
                assert session.table(name).columns
        except Exception as error:  # noqa: BLE001 - whatever Spark says of a frame
            failed = type(error).__name__
        if failed:
            raise InvalidSchema(
                f"a table of Spark cannot be handed over to a session of dpsql's own ({failed}).",
                hint="See that frame.limit(1).collect() and frame.createGlobalTempView(...) work in its session.",
            )


def _seen(file: Path) -> str:
    """Return a file's name for Spark. Raises InvalidSchema for names that Spark reads as patterns or skips."""
    if file.name.startswith(_HIDDEN) or set(str(file)) & _PATTERN:
        raise InvalidSchema(
            f"Spark does not read a file that is named {file.name}.",
            hint=f"Names, and folders', begin with no _ or . and have none of {' '.join(sorted(_PATTERN))}.",
        )
    return f"file://{file}"


class SparkTable:
    """The columns of a `SparkStore` that one statement reads, by names of their own (see `StoredTable`)."""

    enforced = False

    def __init__(self, store: SparkStore, number: int) -> None:
        self.store = store
        self.number = number
        self.name = f"stored{number}"
        self._prefix = f"f{number}_"
        self._columns: dict[str, str] = {}
        self._whole: list[bool] = []
        self.numbered = False
        """True if rows are numbered: by position, which holds only within one run."""

    @property
    def may_differ(self) -> bool:
        """Return whether reading the table twice could return other rows."""
        return self.numbered or self.store.files is None

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        name = column.name.casefold()
        text = cell_text(self.store.places[name], self.store.stored[name], column.type, column.zone, clips=column.clips)
        assert text is not None  # checked by the store
        return self._named(text)

    def identity(self, name: str) -> str:
        column = self.store.schema.by_name[name.casefold()]
        stored = self.store.stored[name.casefold()]
        text = identity_text(self.store.places[name.casefold()], stored, column.identity, column.zone)
        if f"{text} u" not in self._columns:
            self._whole.append(is_whole_identity(stored, column.identity))
        return self._named(f"{text} u", "u")

    def kind(self, name: str) -> Type:
        return self.store.schema.by_name[name.casefold()].identity

    def row(self) -> str:
        self.numbered = True
        return self._named(f"(monotonically_increasing_id() * 512 + {self.number})", "row")

    def _named(self, text: str, mark: str = "") -> str:
        return self._columns.setdefault(text, f"{self._prefix}{len(self._columns)}{mark}")

    def whole_identities(self) -> bool:
        """Return whether its unit identities are whole numbers of 64 bits."""
        return all(self._whole)

    def view(self, source: str, *, as_texts: bool) -> str:
        """Return the SELECT of the rows, over a table of that name."""
        listed = []
        for text, name in self._columns.items():
            is_unit = name.endswith("u")
            bare = text.removesuffix(" u") if is_unit else text
            listed.append(f"CAST({bare} AS STRING) AS {name}" if is_unit and as_texts else f"{bare} AS {name}")
        return f"SELECT {', '.join(listed) or '1 AS nothing'} FROM {source}"


class TransferredStore(FrameStore):
    """A DataFrame of this process under a schema, to be transferred to Spark."""

    def __init__(self, frame: pd.DataFrame, schema: TableSchema) -> None:
        needs_arrow("a DataFrame on Spark")
        super().__init__(frame, schema)
        self.session = opened(some_session())

    def identity(self, name: str) -> tuple[dict[str, Any], bool]:
        arrays, whole = super().identity(name)
        return (arrays if whole else self._as_stored(name, arrays)), whole

    def identity_texts(self, name: str) -> dict[str, Any]:
        return self._as_stored(name, super().identity_texts(name))

    def holds_numbers(self, name: str) -> bool:
        """Return whether the unit identities of a column are numbers."""
        return self.schema.by_name[name.casefold()].identity in (Type.INTEGER, Type.REAL)

    def _as_stored(self, name: str, texts: dict[str, Any]) -> dict[str, Any]:
        if not self.holds_numbers(name):
            return texts
        cells = texts["cells"]
        return {**texts, "cells": cells.rename_categories([brought_number(text) for text in cells.categories])}


class TransferredTable:
    """The columns of a DataFrame that one statement reads, by names of their own (see `StoredTable`): whole numbers,
    doubles, booleans and texts, with declarations enforced."""

    enforced = True
    may_differ = False

    def __init__(self, store: TransferredStore, number: int) -> None:
        self.store = store
        self.number = number
        self.name = f"brought{number}"
        self._prefix = f"f{number}_"
        self._cells: dict[str, tuple[ColumnSchema, str]] = {}
        self._identities: dict[str, str] = {}
        self._row = False

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        name = self._cells.setdefault(column.name, (column, f"{self._prefix}{len(self._cells)}"))[1]
        return f"CASE WHEN {name} THEN TRUE END" if column.type.opaque else name

    def identity(self, name: str) -> str:
        return self._identities.setdefault(name, f"{self._prefix}i{len(self._identities)}u")

    def kind(self, name: str) -> Type:
        return self.store.schema.by_name[name.casefold()].identity

    def row(self) -> str:
        self._row = True
        return f"({self._prefix}row * 512 + {self.number})"

    def whole_identities(self) -> bool:
        return all(self.store.identity(name)[1] for name in self._identities)

    def view(self, source: str, *, as_texts: bool) -> str:
        """Return the SELECT of the rows, over a table of `columns`."""
        texts = {
            ident: brought_identity_text(ident)
            for name, ident in self._identities.items()
            if (as_texts or not self.store.identity(name)[1]) and self.store.holds_numbers(name)
        }
        if not texts:
            return f"SELECT * FROM {source}"
        return (
            f"SELECT * EXCEPT ({', '.join(texts)}), {', '.join(f'{e} AS {n}' for n, e in texts.items())} FROM {source}"
        )

    def columns(self, *, as_texts: bool) -> dict[str, Any]:
        """Return the columns as Arrow arrays."""
        listed = {name: _array(self.store.typed(column)) for column, name in self._cells.values()}
        for column_name, ident in self._identities.items():
            held = self.store.identity_texts(column_name) if as_texts else self.store.identity(column_name)[0]
            listed[ident] = _array(held)
        if self._row or not listed:
            listed[f"{self._prefix}row"] = _array({"cells": np.arange(self.store.columns.rows, dtype=np.int64)})
        return listed


def _array(held: Mapping[str, Any]) -> Any:
    """Return an Arrow column: texts by their codes, others with a validity mask."""
    import pyarrow as pa  # type: ignore[import-untyped]

    cells, valid = held["cells"], held.get("valid")
    if isinstance(cells, pd.Categorical):
        texts = pa.array([str(text) for text in cells.categories], pa.string())
        codes = pa.array(cells.codes, mask=np.asarray(cells.codes) < 0)
        return pa.DictionaryArray.from_arrays(codes, texts).dictionary_decode()
    return pa.array(cells, mask=None if valid is None else ~np.asarray(valid, dtype=bool))
