"""Units with too many rows to be held at once where all rows of a unit are needed: they are dropped.

This applies right of a join, in semi-joins, groups, and windows, on every engine: a unit whose rows make more than
`MOST_WHOLE` pairs in a join there is dropped from the answer. This depends only on its own rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpsql.executors.pandas.units import large_units
from dpsql.executors.sql.column_facts import is_lookup
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, RowLimit, Source, Union, Windows, nodes_of


def joins_of_whole_units(source: Source) -> Iterator[Join]:
    """Yield the joins that may multiply rows below a point where all rows of a unit are needed at once."""
    for whole in _whole(source):
        for node in nodes_of(whole):
            if isinstance(node, Join) and not is_lookup(node):
                yield node


def _whole(source: Source) -> Iterator[Source]:
    """Yield the outermost sources that need all rows of a unit at once."""
    if isinstance(source, Join):
        yield source.right
        yield from _whole(source.left)
    elif isinstance(source, Mark):
        yield source.inner
        yield from _whole(source.input)
    elif isinstance(source, Filter):
        yield from _whole(source.input)
    elif isinstance(source, Union):
        for branch in source.branches:
            yield from _whole(branch.input)
    elif isinstance(source, PerUnit | Windows | RowLimit):
        yield source


class WholeRows:
    """Finder of such units in a statement. `named`: its table expressions by name, each over those before it."""

    def __init__(self, writer: Writer, named: dict[str, str]) -> None:
        self.writer = writer
        self.named = named
        self.joins: frozenset[int] = frozenset()
        """Joins to count, by identity."""
        self._left_out: list[str] = []
        self._crowds: dict[tuple[str, ...], str] = {}
        """Units that may make many pairs, by the names of both sides and the limit."""

    def as_name(self, rows: Rows) -> str:
        """Name the rows in the statement, since they are read twice."""
        if rows.text in self.named:
            return rows.text
        side = self.writer.names.fresh("side")
        self.named[side] = f"SELECT * FROM {rows.text}"
        return side

    def counted(self, left: Rows, right: Rows, pairs: Sequence[tuple[str, str]]) -> tuple[Rows, Rows]:
        """Count the pairs of a join for each unit; return its sides as names, since they are read twice."""
        sides, counts = [], []
        for rows, place in ((left, 0), (right, 1)):
            side = self.as_name(rows)
            sides.append(replace(rows, text=side))
            letter = "nm"[place]
            cells = [f"{rows.unit} AS {letter}u"] if rows.unit is not None else []
            cells += [f"{pair[place]} AS {letter}k{number}" for number, pair in enumerate(pairs)]
            by = f" GROUP BY {', '.join(str(number + 1) for number in range(len(cells)))}" if cells else ""
            counts.append(self.writer.select(", ".join([*cells, f"COUNT(*) AS {letter}"]), side, by))
        alike = [f"nk{number} = mk{number}" for number in range(len(pairs))]
        alike += ["nu = mu"] if right.unit is not None else []
        total = f"SUM(CAST(n AS {self.writer.dialect.wide}) * m)"
        heavy = self.writer.names.fresh("heavy")
        self.named[heavy] = (
            f"SELECT nu AS unit_of_{heavy} FROM {counts[0]} JOIN {counts[1]} ON {' AND '.join(alike) or 'TRUE'} "
            f"GROUP BY nu HAVING {total} > {large_units.MOST_WHOLE}"
        )
        self._left_out.append(heavy)
        return sides[0], sides[1]

    def crowded(self, rows: Rows, sides: Sequence[Rows], most: int) -> str:
        """Return the rows of units that may make more than `most` pairs: n rows and m rows make at most n m. Usually
        there are none, so nothing is counted by key."""
        if not self.writer.dialect.counts_first:
            return rows.text
        pair = (*(each.text for each in sides), str(most))
        if pair not in self._crowds:
            n, m = (self.writer.names.fresh(letter) for letter in "nm")
            counts = [
                self.writer.select(f"{each.unit} AS {name}u, COUNT(*) AS {name}", each.text, " GROUP BY 1")
                for each, name in zip(sides, (n, m), strict=True)
            ]
            crowd = self.writer.names.fresh("crowd")
            self.named[crowd] = (
                f"SELECT {n}u AS of_{crowd} FROM {counts[0]} JOIN {counts[1]} ON {n}u = {m}u "
                f"WHERE CAST({n} AS {self.writer.dialect.wide}) * {m} > {most}"
            )
            self._crowds[pair] = crowd
        crowd = self._crowds[pair]
        return f"{rows.text} SEMI JOIN {crowd} ON {rows.unit} = of_{crowd}"

    def without(self, rows: Rows) -> Rows:
        """Return the rows of a whole source without those of such units."""
        for heavy in self._left_out:
            text = self.writer.select("*", f"{rows.text} ANTI JOIN {heavy} ON {rows.unit} = unit_of_{heavy}")
            rows = replace(rows, text=text)
        return rows
