"""A statement of SQL that a plan becomes, and what its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.executors.sql.dialect import Dialect
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class Section:
    """Rows of an answer with one number: those of some parts of the plan, or of one grid. `of_all`: one row, without
    keys, of parts that are the same in all groups."""

    parts: tuple[int, ...] = ()
    grid: int | None = None
    of_all: bool = False


@dataclass(frozen=True, repr=False)
class Statement:
    """A statement, and what its rows are: the number of a section, a cell for each key (of a public list the place in
    it; dates and times as numbers), and whole numbers. lists: what public lists it joins, by name: their type, and
    their values without NULL, to stand in columns v and p, p their places. named: SELECTs that it reads by name, each
    over those before it (`Dialect.head`)."""

    text: str
    sections: tuple[Section, ...]
    lists: Mapping[str, tuple[Type, tuple[Key, ...]]]
    named: Mapping[str, str]


def below_one_another(texts: Sequence[tuple[str, int]], keys: Sequence[str], dialect: Dialect) -> str:
    """Sections, each with how many numbers it has, as one SELECT."""
    width = max(size for _, size in texts)
    selects = []
    for number, (text, size) in enumerate(texts):
        numbers = [f"CAST(n{place} AS {dialect.wide})" if place < size else "NULL" for place in range(width)]
        heads = [f"{number} AS section", *keys, *(f"{each} AS n{place}" for place, each in enumerate(numbers))]
        selects.append(f"SELECT {', '.join(heads)} FROM ({text}) AS section{number}")
    return " UNION ALL ".join(selects)
