"""The SQL statement of a plan, and the layout of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.executors.sql.dialect import Dialect
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class Section:
    """Rows of an answer with one number: those of some parts of the plan, or of one grid. `of_all`: one row, without
    keys, for a part that is the same in all groups."""

    parts: tuple[int, ...] = ()
    grid: int | None = None
    of_all: bool = False


@dataclass(frozen=True, repr=False)
class Statement:
    """A statement, whose rows have a section number, a cell for each key (the place in its public list, if any; dates
    and times as numbers), and whole numbers. lists: the public lists that it joins, by name: their type, and their
    values without NULL, for columns v and p (the place). named: SELECTs that it reads by name, each over those before
    it (`Dialect.head`)."""

    text: str
    sections: tuple[Section, ...]
    lists: Mapping[str, tuple[Type, tuple[Key, ...]]]
    named: Mapping[str, str]


def below_one_another(texts: Sequence[tuple[str, int]], keys: Sequence[str], dialect: Dialect) -> str:
    """Combine sections, each with its number of numeric columns, into one SELECT."""
    width = max(size for _, size in texts)
    selects = []
    for number, (text, size) in enumerate(texts):
        numbers = [f"CAST(n{place} AS {dialect.wide})" if place < size else "NULL" for place in range(width)]
        heads = [f"{number} AS section", *keys, *(f"{each} AS n{place}" for place, each in enumerate(numbers))]
        selects.append(f"SELECT {', '.join(heads)} FROM ({text}) AS section{number}")
    return " UNION ALL ".join(selects)
