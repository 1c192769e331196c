"""Facts observed in tables, which make statements shorter and change no integer.

If a join is on a key that leads to units, matching rows are of one unit, and only one side has to be led to its unit.
This requires that the key occurs in one row, or starts the same path on both sides, and that its cells equal its
identities (none is NULL, or beyond its bounds). If the most rows of any unit show that no unit can make too many pairs,
the check is omitted. All facts are observed in the rows, never taken from declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import singledispatch

from dpsql.plan.expressions import Column
from dpsql.plan.nodes import Filter, Join, Mark, Pair, PerUnit, RowLimit, Scan, Source, Union, Windows
from dpsql.schema.frozen import dataclass
from dpsql.schema.units import Lookup


@dataclass(frozen=True)
class ColumnFacts:
    """Columns as table.column, tables by their names, both folded. unique: no value other than NULL occurs twice;
    plain: each cell equals its identity; most: the most rows of one unit; alike: the most rows of a public table with
    the same cell."""

    unique: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    most: Mapping[str, int] = field(default_factory=dict)
    alike: Mapping[str, int] = field(default_factory=dict)

    def alone(self, table: str, column: str) -> bool:
        return f"{table}.{column}".casefold() in self.unique


NOTHING = ColumnFacts()
Path = tuple[Lookup, ...]


def scan_below(source: Source) -> Scan | None:
    """Return the scan of a source that only filters a table, or None."""
    while isinstance(source, Filter):
        source = source.input
    return source if isinstance(source, Scan) else None


def steps_of(source: Source) -> int:
    """Return the number of look-ups from the rows of a filtered table to their unit; 0 for other sources."""
    scan = scan_below(source)
    return 0 if scan is None or scan.table.unit is None else len(scan.table.unit.steps)


def is_lookup(node: Join) -> bool:
    """Return whether a join finds at most one match for each row."""
    return node.matches == 1 and bool(node.keys)


def one_unit(keys: Sequence[Pair], left: Source, right: Source, seen: ColumnFacts) -> bool:
    """Return whether private rows that are equal in these keys are of one unit, given that both sides have units."""
    sides = [{scan.name: scan for scan in _beside(source)} for source in (left, right)]
    for pair in keys:
        paths = [_paths(each, scans, seen) for each, scans in zip(pair, sides, strict=True)]
        if paths[0] & paths[1]:
            return True
    return False


def _paths(expr: object, scans: Mapping[str, Scan], seen: ColumnFacts) -> frozenset[Path]:
    """Return the paths from a column to its unit."""
    scan = scans.get(expr.table) if isinstance(expr, Column) else None
    if scan is None or not isinstance(expr, Column) or scan.table.unit is None:
        return frozenset()
    table, unit, own = scan.table.name.casefold(), scan.table.unit, expr.name.casefold()
    if f"{table}.{own}" not in seen.plain:
        return frozenset()
    paths = {unit.steps} if own == unit.column.casefold() else set()
    if seen.alone(table, own):
        paths.add((Lookup(table, own, unit.column.casefold()), *unit.steps))
    return frozenset(tuple(_folded(step) for step in path) for path in paths)


def _folded(step: Lookup) -> Lookup:
    return Lookup(step.table, step.key.casefold(), step.column.casefold())


def _beside(source: Source) -> Iterator[Scan]:
    """Yield the scans whose rows are joined in the rows of a source."""
    if isinstance(source, Scan):
        yield source
    elif isinstance(source, Filter | Mark | RowLimit):
        yield from _beside(source.input)
    elif isinstance(source, Join):
        yield from _beside(source.left)
        yield from _beside(source.right)


@singledispatch
def most_of_unit(source: Source, _seen: ColumnFacts) -> int | None:
    """Return the most rows of a source that one unit has; None if unknown."""
    raise TypeError(type(source).__name__)


@most_of_unit.register
def _(source: Scan, seen: ColumnFacts) -> int | None:
    return seen.most.get(source.table.name.casefold())


@most_of_unit.register
def _(source: Filter | Mark | PerUnit | Windows, seen: ColumnFacts) -> int | None:
    return most_of_unit(source.input, seen)


@most_of_unit.register
def _(source: RowLimit, seen: ColumnFacts) -> int | None:
    below = most_of_unit(source.input, seen)
    return source.most if below is None else min(below, source.most)


@most_of_unit.register
def _(source: Join, seen: ColumnFacts) -> int | None:
    """A row without a match stays as one row."""
    left, scan = most_of_unit(source.left, seen), scan_below(source.right)
    if left is None:
        return None
    if scan is not None and scan.table.public:
        named = [other for _, other in source.keys if isinstance(other, Column) and other.table == scan.name]
        counts = [seen.alike.get(f"{scan.table.name}.{each.name}".casefold()) for each in named]
        known = [each for each in counts if each is not None]
        return left * max(1, min(known)) if known else None
    right = most_of_unit(source.right, seen)
    return None if right is None else left * max(1, right)


@most_of_unit.register
def _(source: Union, seen: ColumnFacts) -> int | None:
    known = [most_of_unit(branch.input, seen) for branch in source.branches]
    return None if None in known else sum(each for each in known if each is not None)
