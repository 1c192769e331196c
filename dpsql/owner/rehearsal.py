"""Answers over made-up rows, at no cost and without the data: a report is written and tried before it is paid for.

Rows follow from the owner's file alone, always the same: the columns that it declares, with values between bounds and
among keys, spread evenly. Queries are bound, calibrated and drawn as over the data, so refusals and widths of intervals
are those to expect; the values say nothing about anybody.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.answer.explain import Explanation
from dpsql.answer.result import Result
from dpsql.core.ledger.budget import Budget
from dpsql.errors import InvalidSchema
from dpsql.schema.calendar import read_date, read_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration
from dpsql.session.owner_file import Schema
from dpsql.session.session import Session
from dpsql.session.table import Table

HEADING = "MADE-UP ROWS"
PEOPLE = 1_000
PUBLIC = 20
_STEP = 0.6180339887498949
"""Multiples of the golden ratio, without their whole part, lie evenly between 0 and 1."""


class Rehearsal(Session):
    """A session over made-up rows. Each answer is headed MADE-UP ROWS in every form that it is written or drawn in."""

    def query(self, sql: str, **how: Any) -> Result:
        """As `Session.query`, at no cost."""
        answer: Result | Explanation = super().query(sql, **how)
        if not isinstance(answer, Result):
            return cast("Result", answer)  # as Session.query says of EXPLAIN PRIVACY
        footer = f"{HEADING}: nothing was spent; over the data it is {answer.loss}"
        return replace(answer, heading=HEADING, footer=footer)


def rehearse(schema: str | os.PathLike[str] | Schema, **more: Any) -> Rehearsal:
    """A session over made-up rows of an owner's file: 1,000 a table, 20 where it is public. The data files are not
    read, and need not be there; the ledger is neither read nor written, and no budget ends.

    A column that the file does not declare is unknown here, though a data file may have it. more: `epsilon`, `delta`
    and `max_epsilon` of a Session. Raises InvalidSchema.
    """
    declared = schema if isinstance(schema, Schema) else Schema.from_toml(Path(schema))
    tables = {name: _table(name, entry.declaration, declared) for name, entry in declared.tables.items()}
    if not tables:
        raise InvalidSchema("there is no table to make up rows of.", hint="Add one: [tables.people].")
    bare = Schema(neighbours=declared.neighbours, accountant=declared.accountant)
    return Rehearsal(tables, schema=bare, budget=_budget(declared.budget), ledger=False, **more)


def _budget(declared: Budget | None) -> Budget:
    """One that does not end, with delta where the owner allows some."""
    return Budget(10**6, 0 if declared is not None and not declared.loss.delta else 0.5)


def _table(name: str, declared: Declaration, schema: Schema) -> Table:
    rows = PUBLIC if declared.table.public else PEOPLE
    columns = list(declared.named)
    if not columns:
        raise InvalidSchema(
            f"[tables.{name}] declares no column, so there is nothing to make up.",
            hint="dpsql init writes the columns of a file with their types.",
        )
    series = {column: _cells(column, declared, rows, schema) for column in columns}
    words = replace(declared.table, version=None)
    return Table.of(pd.DataFrame(series), replace(declared, table=words))


def _cells(column: str, declared: Declaration, rows: int, schema: Schema) -> pd.Series:
    word = declared.table.unit
    spread = np.arange(1, rows + 1) * _STEP * _pace(column) % 1
    if word is not None and word.table and column.casefold() == word.column.casefold():
        target = _declared(schema, word.table)
        there = PUBLIC if target.table.public else PEOPLE
        keys = _cells(_known(target, word.key), target, there, schema)
        return keys.iloc[(spread * there).astype(int)].reset_index(drop=True)
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
    """So that columns do not go up and down together."""
    return 1 + sum(ord(sign) * place for place, sign in enumerate(column, start=1)) % 97


def _fact(facts: Any, column: str) -> Any:
    return next((fact for name, fact in facts.items() if name.casefold() == column.casefold()), None)


def _known(declared: Declaration, column: str) -> str:
    return next((name for name in declared.named if name.casefold() == column.casefold()), column)


def _declared(schema: Schema, table: str) -> Declaration:
    for name, entry in schema.tables.items():
        if name.casefold() == table.casefold():
            return entry.declaration
    raise InvalidSchema(f'a unit leads to table "{table}", which the file does not have.')


def _type(declared: Declaration, column: str) -> Type:
    """As a text file would be read: the declared type, else that of bounds or keys, else text."""
    kind = _fact(declared.types, column)
    if kind is not None:
        return Type(kind)
    bounds, keys = _fact(declared.bounds, column), _fact(declared.keys, column)
    if bounds is not None:
        last = bounds if isinstance(bounds, str) else bounds[-1]
        return Type.DATE if isinstance(last, date) else Type.REAL
    first = next((key for key in keys or () if key is not None), "")
    if isinstance(first, bool):
        return Type.BOOLEAN
    return Type.INTEGER if isinstance(first, int) else Type.REAL if isinstance(first, float) else Type.TEXT


def _typed(kind: Type, values: Sequence[Any] | npt.NDArray[Any], bounds: Any) -> pd.Series:
    """Values as a column of a type: keys and numbers of rows as they are, shares between 0 and 1 stretched."""
    cells = np.asarray(values)
    if cells.dtype.kind == "f" and not isinstance(values, list):
        low, high = _ends(kind, bounds)
        cells = low + cells * (high - low)
    if kind is Type.TEXT:
        letters = cells.dtype.kind == "f"
        return pd.Series([chr(97 + int(each) % 10) if letters else str(each) for each in cells.tolist()], dtype="str")
    if kind is Type.BOOLEAN:
        return pd.Series([bool(each) if isinstance(each, bool) else bool(int(each) % 2) for each in cells.tolist()])
    if kind.temporal:
        if cells.dtype.kind not in "if":
            return pd.Series(pd.to_datetime(cells))
        unit = "D" if kind is Type.DATE else "us"
        return pd.Series(cells.astype("int64").astype(f"datetime64[{unit}]").astype("datetime64[us]"))
    return pd.Series(np.rint(cells.astype(float)).astype("int64") if kind is Type.INTEGER else cells.astype(float))


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
