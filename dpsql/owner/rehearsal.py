"""Dry runs on synthetic rows, free and without the data: to write and try reports before paying for them.

The rows depend only on the schema file, deterministically: its declared columns, with evenly spread values between
bounds and among keys. Queries are bound, calibrated and drawn as over the data, so refusals and interval widths are
realistic; the values describe nobody.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.answer.explain import Explanation
from dpsql.answer.result import Result
from dpsql.core.ledger.budget import Budget
from dpsql.errors import InvalidSchema
from dpsql.executors.resources import AUTO
from dpsql.owner.todos import check_finished
from dpsql.schema.calendar import read_date, read_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, StoredColumn, resolve
from dpsql.schema.text_format import LINES_ENDINGS, TEXT_ENDINGS
from dpsql.session.owner_file import Schema, TableEntry
from dpsql.session.session import Session
from dpsql.session.tables.table import Table
from dpsql.sources.files import kind_of
from dpsql.sources.frames import with_types_of_text
from dpsql.sources.stored import Origin, has_parts

HEADING = "MADE-UP ROWS"
_LINES = (*TEXT_ENDINGS, *LINES_ENDINGS)
PEOPLE = 1_000
PUBLIC = 20
_STEP = 0.6180339887498949
"""The fractional parts of the golden ratio's multiples are evenly spread between 0 and 1."""


class Rehearsal(Session):
    """A session over synthetic rows. Each answer has the heading MADE-UP ROWS in every text, export and plot."""

    def query(self, sql: str, **how: Any) -> Result:
        """As `Session.query`, for free."""
        answer: Result | Explanation = super().query(sql, **how)
        if not isinstance(answer, Result):
            return cast("Result", answer)  # an explanation, as for EXPLAIN PRIVACY in Session.query
        footer = f"{HEADING}: nothing was spent; over the data it is {answer.loss}"
        return replace(answer, _heading=HEADING, footer=footer)


def rehearse(schema: str | os.PathLike[str] | Schema, *, budget: Budget | None = None, **more: Any) -> Rehearsal:
    """Open a session over synthetic rows of a schema file: 1,000 for each table, 20 if it is public. Data files are not
    read and need not exist; the ledger is neither read nor written, and the budget is unlimited.

    Refuses what a session refuses: a file without a budget, unless one is given, a file with an undecided unit, and
    what the engine for its data does not support. Columns that the file does not declare are unknown, even if the data
    have them.

    Parameters
    ----------
    schema : str, Path or Schema
        The schema file.
    budget : Budget, optional
        In place of the file's.
    more
        `epsilon`, `delta` and `max_epsilon` of a Session.

    Raises
    ------
    InvalidSchema
    """
    declared = schema if isinstance(schema, Schema) else Schema.from_toml(Path(schema))
    tables = {name: _table(name, entry, declared) for name, entry in declared.tables.items()}
    if not tables:
        raise InvalidSchema("there is no table to make up rows of.", hint="Add one: [tables.people].")
    if not isinstance(schema, Schema):
        check_finished(schema)
    if declared.budget is None and budget is None:
        raise InvalidSchema(
            "the file has no budget: how much may all answers together tell about one person?",
            hint="Add it: [budget], and below it epsilon = 3.",
        )
    bare = Schema(neighbours=declared.neighbours, accountant=declared.accountant, engine=_engine(declared))
    return Rehearsal(tables, schema=bare, budget=_budget(budget or declared.budget), ledger=False, **more)


def _engine(declared: Schema) -> str:
    """Return the engine that would read the files, if it runs in this process."""
    stored = any(each.path is not None and kind_of(each.path) not in _LINES for each in declared.tables.values())
    return "duckdb" if declared.engine == "duckdb" or (declared.engine == AUTO and stored) else AUTO


def _budget(declared: Budget | None) -> Budget:
    """Return a practically unlimited budget, with delta if the owner allows some."""
    return Budget(10**6, 0 if declared is not None and not declared.loss.delta else 0.5)


def _table(name: str, entry: TableEntry, schema: Schema) -> Table:
    declared = _as_read(entry)
    rows = PUBLIC if declared.table.public else PEOPLE
    columns = list(declared.named)
    if not columns:
        raise InvalidSchema(
            f"[tables.{name}] declares no column, so there is nothing to make up.",
            hint="dpsql init writes the columns of a file with their types.",
        )
    stored = [StoredColumn(column, _type(declared, column), True, _type(declared, column)) for column in columns]
    resolve(name, stored, declared, rows=rows if declared.table.public else None)  # validates before rows are made
    series = {column: _cells(column, declared, rows, schema) for column in columns}
    words = replace(declared.table, version=None)
    drops = entry.text.multiline or (entry.path is not None and has_parts(entry.path))
    return Table.of(pd.DataFrame(series), replace(declared, table=words), Origin((), (), can_drop_rows=drops))


def _as_read(entry: TableEntry) -> Declaration:
    """Return the declaration of a table with the type of each column: of text as it would be read, of others as far as
    the declared facts determine it."""
    declared = with_types_of_text(entry.declaration)
    is_text = entry.path is not None and kind_of(entry.path) in _LINES
    inferred = {name: _inferred(None if is_text else _fact(declared.keys, name)) for name in declared.named}
    known = {name: _fact(declared.types, name) for name in declared.named}
    return replace(declared, types={name: known[name] or kind for name, kind in inferred.items()})


def _inferred(keys: Sequence[Any] | None) -> Type:
    """Return the type of keys; text if there are none."""
    first = next((key for key in keys or () if key is not None), "")
    if isinstance(first, bool):
        return Type.BOOLEAN
    return Type.INTEGER if isinstance(first, int) else Type.REAL if isinstance(first, float) else Type.TEXT


def _type(declared: Declaration, column: str) -> Type:
    return Type(_fact(declared.types, column))


def _cells(column: str, declared: Declaration, rows: int, schema: Schema) -> pd.Series:
    word = declared.table.unit
    spread = np.arange(1, rows + 1) * _STEP * _pace(column) % 1
    if word is not None and word.table and column.casefold() == word.column.casefold():
        target = _declared(schema, word.table)
        there = PUBLIC if target.table.public else PEOPLE
        keys = _cells(_known(target, word.key), target, there, schema)
        led_to = keys.iloc[(spread * there).astype(int)].reset_index(drop=True)
        own = _type(declared, column)
        return led_to if own is _type(target, _known(target, word.key)) else _typed(own, np.arange(rows), None)
    if any([column.casefold()] == [each.casefold() for each in key] for key in declared.table.unique):
        return _typed(_type(declared, column), np.arange(rows), None)
    keys_of_column = _fact(declared.keys, column)
    if keys_of_column is not None:
        listed = [key for key in keys_of_column if key is not None]
        return _typed(_type(declared, column), [listed[int(each * len(listed))] for each in spread], None)
    if word is not None and column.casefold() == word.column.casefold():
        people = max(1, rows // max(1, min(2, declared.table.limits.rows or 1)))
        return _typed(_type(declared, column), (np.arange(rows) % people), None)
    return _typed(_type(declared, column), spread, _fact(declared.bounds, column))


def _pace(column: str) -> int:
    """Return a multiplier that keeps columns from rising and falling together."""
    return 1 + sum(ord(sign) * place for place, sign in enumerate(column, start=1)) % 97


def _fact(facts: Any, column: str) -> Any:
    return next((fact for name, fact in facts.items() if name.casefold() == column.casefold()), None)


def _known(declared: Declaration, column: str) -> str:
    return next((name for name in declared.named if name.casefold() == column.casefold()), column)


def _declared(schema: Schema, table: str) -> Declaration:
    for name, entry in schema.tables.items():
        if name.casefold() == table.casefold():
            return _as_read(entry)
    raise InvalidSchema(f'a unit leads to table "{table}", which the file does not have.')


def _typed(kind: Type, values: Sequence[Any] | npt.NDArray[Any], bounds: Any) -> pd.Series:
    """Return values as a nullable column of a type, as in files: keys and row numbers unchanged, shares between 0 and 1
    scaled to the bounds."""
    cells = np.asarray(values)
    if cells.dtype.kind == "f" and not isinstance(values, list):
        low, high = _ends(kind, bounds)
        cells = low + cells * (high - low)
    if kind is Type.TEXT:
        letters = cells.dtype.kind == "f"
        return pd.Series([chr(97 + int(each) % 10) if letters else str(each) for each in cells.tolist()], dtype="str")
    if kind is Type.BOOLEAN:
        return pd.Series(
            [bool(each) if isinstance(each, bool) else bool(int(each) % 2) for each in cells.tolist()], dtype="boolean"
        )
    if kind.temporal:
        if cells.dtype.kind not in "if":
            return pd.Series(pd.to_datetime(cells))
        unit = "D" if kind is Type.DATE else "us"
        return pd.Series(cells.astype("int64").astype(f"datetime64[{unit}]").astype("datetime64[us]"))
    if kind is Type.INTEGER:
        return pd.Series(np.rint(cells.astype(float)).astype("int64"), dtype="Int64")
    return pd.Series(cells.astype(float))


_DEFAULTS = {Type.DATE: (10_957, 18_262), Type.TIMESTAMP: (946_684_800 * 10**6, 1_577_836_800 * 10**6)}
"""Years 2000 to 2020."""


def _ends(kind: Type, bounds: Any) -> tuple[float, float]:
    if bounds is None or isinstance(bounds, str):
        return _DEFAULTS.get(kind, (0, 100))
    low, high = bounds[-2:]
    if kind is Type.DATE:
        return read_date(str(low)[:10]) or 0, read_date(str(high)[:10]) or 0
    if kind is Type.TIMESTAMP:
        return read_timestamp(str(low)) or 0, read_timestamp(str(high)) or 0
    return float(low), float(high)
