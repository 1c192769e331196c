"""Name resolution in post-processing SQL, for noise analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Protocol

from sqlglot import exp

from dpsql.plan.redraws import ROUGH, Noise
from dpsql.schema.frozen import dataclass
from dpsql.sql.boundary.noise_of_values import merged


class UnknownNoise(Exception):
    """The noise of a statement is unknown."""


@dataclass(frozen=True)
class Rows:
    """A relation. `key`: columns that identify its rows; `hidden`: earlier noise decided which rows exist; `steady`:
    noise in this statement did not."""

    names: tuple[str, ...]
    columns: tuple[Noise, ...]
    key: frozenset[int] | None = None
    hidden: bool = False
    steady: bool = True

    def items(self) -> Iterator[tuple[str, Noise]]:
        return zip(self.names, self.columns, strict=True)


class Numbers:
    """Identifiers for columns."""

    def __init__(self) -> None:
        self._next = count()

    def anew(self, rows: Rows) -> Rows:
        """Return the relation with new column identifiers."""
        fresh = {old: next(self._next) for each in rows.columns for old in sorted(each.column)}
        columns = tuple(replace(each, column=frozenset(fresh[old] for old in each.column)) for each in rows.columns)
        key = None if rows.key is None or not rows.key <= fresh.keys() else frozenset(fresh[each] for each in rows.key)
        return replace(rows, columns=columns, key=key)

    def numbered(self, columns: Iterable[Noise]) -> tuple[Noise, ...]:
        return tuple(replace(each, column=frozenset([next(self._next)])) for each in columns)


class Queries(Protocol):
    """The analysis as scopes use it."""

    def rows(self, query: exp.Expr, outer: Scope | None) -> Rows:
        """Return the relation that a query produces. Raises UnknownNoise."""

    def positive(self, node: exp.Expr) -> None:
        """Note a part that must be above 0."""


class Scope:
    """The scope of one SELECT's expressions."""

    def __init__(self, analysis: Queries, outer: Scope | None) -> None:
        self.analysis = analysis
        self.outer = outer
        self.sources: list[tuple[str, Rows]] = []
        self.merged: set[str] = set()
        self.aliases: dict[str, Noise] = {}
        self.windows: dict[str, exp.Window] = {}
        self.key: frozenset[int] | None = frozenset()
        self.hidden = False
        self.steady = True

    def without_hidden(self) -> None:
        """Mark columns of relations with randomly selected rows as rough: an outer join shows which rows are
        missing."""
        for place, (alias, rows) in enumerate(self.sources):
            if rows.hidden:
                columns = tuple(replace(ROUGH, column=each.column) for each in rows.columns)
                self.sources[place] = alias, replace(rows, columns=columns)

    def add(self, alias: str, rows: Rows) -> None:
        self.sources.append((alias.casefold(), rows))
        self.key = None if self.key is None or rows.key is None else self.key | rows.key
        self.hidden |= rows.hidden
        self.steady &= rows.steady

    def column(self, node: exp.Column) -> Noise:
        name, table = node.name.casefold(), node.table.casefold()
        if isinstance(node.this, exp.Star):
            raise UnknownNoise
        met = [
            each
            for alias, rows in self.sources
            if table in ("", alias)
            for other, each in rows.items()
            if other == name
        ]
        alias = None if table else self.aliases.get(name)
        if alias is not None:
            met.append(alias)
        if not met:
            if self.outer is None:
                raise UnknownNoise
            return replace(self.outer.column(node), column=frozenset())
        noise = met[0]
        for each in met[1:]:
            noise = replace(merged(noise, each), column=noise.column | each.column)
        return noise

    def query(self, node: exp.Expr) -> tuple[Noise, bool]:
        rows = self.analysis.rows(node, self)
        known = rows.steady and not rows.hidden and all(each.known for each in rows.columns)
        if not rows.steady or rows.hidden:  # noise decides whether a row exists
            return ROUGH, known
        return rows.columns[0].computed(), known

    def total(self, columns: frozenset[int]) -> bool:
        return self.key is not None and self.key <= columns

    def window(self, node: exp.Window) -> list[exp.Expr]:
        named = node.args.get("alias") or node.args.get("first")
        parts = [] if not isinstance(named, exp.Identifier) else self._named(named)
        order = node.args.get("order")
        parts += [*(node.args.get("partition_by") or []), *([] if order is None else order.expressions)]
        return parts + ([node.args["spec"]] if node.args.get("spec") is not None else [])

    def _named(self, name: exp.Identifier) -> list[exp.Expr]:
        window = self.windows.get(name.name.casefold())
        if window is None:
            raise UnknownNoise
        return self.window(window)

    def positive(self, node: exp.Expr) -> None:
        self.analysis.positive(node)
