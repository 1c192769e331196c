"""Table and declare: a DataFrame with its owner's declarations."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.executors.base import engine_of
from dpsql.schema.declaration import Declaration, resolve
from dpsql.schema.frozen import dataclass
from dpsql.schema.words import plain

REMEMBERED = "dpsql"
"""The key of a frame's `.attrs` under which `declare` writes."""
_WORDS = ("bounds", "keys", "types")


@dataclass(frozen=True, init=False, eq=False)
class Table:
    """A DataFrame and what its owner declares of it.

    bounds: column -> (lower, upper), values outside are clipped; keys: column -> list of group values, made public, or
    an earlier answer with a column of that name; types: column -> "integer", "real", "decimal" (read as real),
    "boolean", "text", "date" or "timestamp"; nullable: column -> False. Bounds and keys of dates are dates or ISO text.

    unit: the column that tells whose row it is, or a path "o_custkey -> customer.c_custkey" to the unit of another
    table (names with spaces, dots or arrows in double quotes); without it each row is one person's. max_rows,
    max_groups, max_rows_per_group: how much of one unit may count. public: True where no row is anybody's. unique:
    columns, and lists of columns, in which no two rows are alike. max_matches: column of a public table -> the most
    rows that have one value in it. partition: a column; queries with WHERE partition = 'a' and WHERE partition = 'b'
    cost each person only one of them. version: a name for the data as they are, under which a ledger's answers are
    given again at no cost. No row is read. Raises InvalidSchema.
    """

    frame: Any = field(repr=False)
    """A DataFrame, or a source that another engine reads."""
    declaration: Declaration

    def __init__(
        self,
        frame: Any,
        *,
        bounds: Any = None,
        keys: Any = None,
        types: Any = None,
        nullable: Any = None,
        unit: Any = None,
        max_rows: Any = None,
        max_groups: Any = None,
        max_rows_per_group: Any = None,
        public: Any = None,
        unique: Any = None,
        max_matches: Any = None,
        partition: Any = None,
        version: Any = None,
    ) -> None:
        engine = engine_of(frame)
        if engine is None:
            raise InvalidArgument(f"a table is made of a pandas DataFrame, got {type(frame).__name__}.")
        declared = Declaration.of(
            bounds,
            keys,
            types,
            nullable,
            unit=unit,
            max_rows=max_rows,
            max_groups=max_groups,
            max_rows_per_group=max_rows_per_group,
            public=public,
            unique=unique,
            max_matches=max_matches,
            partition=partition,
            version=version,
        )
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "declaration", declared.over(_remembered(frame)))
        resolve("the table", engine.columns(frame), self.declaration)

    @classmethod
    def of(cls, frame: Any, declaration: Declaration) -> Table:
        """A table from a declaration that is validated already."""
        table = cls.__new__(cls)
        object.__setattr__(table, "frame", frame)
        object.__setattr__(table, "declaration", declaration.over(_remembered(frame)))
        return table


def declare(
    frame: pd.DataFrame,
    *,
    bounds: Any = None,
    keys: Any = None,
    types: Any = None,
    nullable: Any = None,
    unit: Any = None,
    max_rows: Any = None,
    max_groups: Any = None,
    max_rows_per_group: Any = None,
    public: Any = None,
    unique: Any = None,
    max_matches: Any = None,
    partition: Any = None,
    version: Any = None,
) -> Any:
    """The frame with declarations remembered in `.attrs`, or a `Table` when any word but bounds, keys and types is
    given. The words are those of `Table`.

    `.attrs` survives merges and samples, where bounds, keys and types stay sound (each is enforced cell by cell); a
    fact like nullability or the unit belongs to this very table, so it is kept with a Table. Memory is shared with the
    frame. Raises InvalidSchema.
    """
    of_this_table = {
        "nullable": nullable,
        "unit": unit,
        "max_rows": max_rows,
        "max_groups": max_groups,
        "max_rows_per_group": max_rows_per_group,
        "public": public,
        "unique": unique,
        "max_matches": max_matches,
        "partition": partition,
        "version": version,
    }
    table = Table(frame, bounds=bounds, keys=keys, types=types, **of_this_table)
    bare = all(word is None for word in of_this_table.values()) and not table.declaration.auto
    if not bare or not isinstance(frame, pd.DataFrame):  # other sources have no `.attrs`
        return table
    copy = frame.copy(deep=False)
    declared = table.declaration
    copy.attrs[REMEMBERED] = {
        "bounds": {
            name: pair if isinstance(pair, str) else [plain(each) for each in pair]
            for name, pair in declared.bounds.items()
        },
        "keys": {name: [plain(each) for each in keys] for name, keys in declared.keys.items()},
        "types": {name: str(kind) for name, kind in declared.types.items()},
    }
    return copy


def as_table(source: object) -> Table:
    """A Table from a DataFrame or a Table. Raises InvalidArgument for anything else."""
    if isinstance(source, Table):
        return source
    if engine_of(source) is not None:
        return Table.of(source, Declaration())
    raise InvalidArgument(f"a table must be a pandas DataFrame or a dpsql.Table, got {type(source).__name__}.")


def _remembered(frame: object) -> Declaration:
    """What `declare` wrote into `.attrs`, for the columns that are still there."""
    words = frame.attrs.get(REMEMBERED) if isinstance(frame, pd.DataFrame) else None
    if words is None or not isinstance(frame, pd.DataFrame):
        return Declaration()
    if not isinstance(words, dict) or not all(isinstance(words.get(word) or {}, dict) for word in _WORDS):
        raise InvalidSchema('df.attrs["dpsql"] is not what dpsql.declare writes.')
    present = {name.casefold() for name in frame.columns if isinstance(name, str)}
    kept = {
        word: {name: fact for name, fact in (words.get(word) or {}).items() if str(name).casefold() in present}
        for word in _WORDS
    }
    return Declaration.of(kept["bounds"], kept["keys"], kept["types"])
