"""Relational operators below an aggregation: the source of private rows. Frozen; run by executors.

Every column of a plan is a `Column` that names its table's place in the query (`table`), so that an expression means
the same everywhere above the node that makes the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.windows import WindowCall
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass

Pair = tuple[Expr, Expr]
"""Expressions over the left and the right side that must be equal."""


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a table, with every cell clipped to declared bounds; without rows that the source drops because of
    their cells, if it can drop any. `name` is its place in the query."""

    table: TableSchema
    name: str = ""
    shown: str = field(default="", compare=False)
    """Its name next to other tables, for messages."""

    def __str__(self) -> str:
        public = "public " if self.table.public else ""
        other = f" as {self.shown}" if self.shown not in ("", self.table.name) else ""
        drops = ", which can drop rows" if self.table.can_drop_rows else ""
        return f"scan {public}{self.table.name}{other}{drops}"


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true (not false, not NULL)."""

    input: Source
    predicate: Expr

    def __str__(self) -> str:
        return f"filter {self.predicate}"


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of left and right rows that are equal in every pair of `keys` (none: all).

    If both sides are private, only rows of the same privacy unit match, whatever the keys are. `outer`: left rows
    without a match stay, with NULLs on the right. `matches`: maximum number of right rows that match a left row; 1
    makes the join a lookup; None: no such limit is declared.
    """

    left: Source
    right: Source
    keys: tuple[Pair, ...]
    outer: bool = False
    matches: int | None = None
    present: Column | None = None
    """A column that the join adds: TRUE for a match, otherwise NULL."""

    def __str__(self) -> str:
        kind = "left join" if self.outer else "join" if self.keys else "cross join"
        on = " and ".join(f"{left} = {right}" for left, right in self.keys)
        limit = "" if self.matches is None else f" (at most {self.matches} each)"
        return f"{kind}{f' on {on}' if on else ''}{limit}"


@dataclass(frozen=True, slots=True)
class Mark:
    """The rows of `input` with a boolean `column` (semi-join): whether some row of `inner` is equal in every pair of
    `keys` and meets the `condition` over both. If both are private, only rows of the same privacy unit count.

    `of_list`: as x IN (...), which is NULL for an x that is NULL, or unmatched if the list contains a NULL.
    """

    input: Source
    inner: Source
    keys: tuple[Pair, ...]
    column: Column
    condition: Expr | None = None
    of_list: bool = False

    def __str__(self) -> str:
        on = [f"{left} = {right}" for left, right in self.keys]
        on += [str(self.condition)] if self.condition is not None else []
        return f"mark {self.column} where {' and '.join(on) or 'any row is'} in"


@dataclass(frozen=True, slots=True)
class Branch:
    """One input of a union, with the expression of each column of the union over it."""

    input: Source
    outputs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL: the rows of every branch, one after the other. `alternatives`: by declaration, each unit has rows in
    only one branch; nothing relies on it."""

    branches: tuple[Branch, ...]
    columns: tuple[Column, ...]
    alternatives: bool = False

    def __str__(self) -> str:
        return f"union all of {len(self.branches)} ({', '.join(column.name for column in self.columns)})"


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each combination of `keys` within each privacy unit, with exact aggregates of its rows. Public rows,
    which have no unit, are aggregated together.

    `columns` are those of the result: keys first. `alone`: the unit is the only key, so it has at most one row.
    """

    input: Source
    keys: tuple[Expr, ...]
    aggregations: tuple[Aggregation, ...]
    columns: tuple[Column, ...]
    alone: bool = field(default=False)

    def __str__(self) -> str:
        made = ", ".join(str(each) for each in self.aggregations)
        whose = "of public rows" if all(scan.table.public for scan in scans_of(self)) else "of each privacy unit"
        return f"{whose} {made or 'one row'} by {', '.join(str(key) for key in self.keys)}"


@dataclass(frozen=True, slots=True)
class Windows:
    """The rows of `input` with an added column for each of `calls`: window functions over the rows of the row's own
    privacy unit. Rows of units with more than `windows.MOST_ROWS` rows are dropped.

    `ties`: tie-breakers of rows that are equal in the order of a window, ascending, NULL first: all their values that
    the query reads. So rows that remain equal are interchangeable, and no position in a table matters.
    """

    input: Source
    calls: tuple[WindowCall, ...]
    columns: tuple[Column, ...]
    ties: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        made = "; ".join(str(each) for each in self.calls)
        ties = f"; ties by {', '.join(str(each) for each in self.ties)}" if self.ties else ""
        return f"windows inside each privacy unit: {made}{ties}"


@dataclass(frozen=True, slots=True)
class RowLimit:
    """At most `most` rows of each privacy unit: those with the least keyed hash of `compared`.

    `compared`: every value of the rows that the query reads, so that rows which are equal in all of them are
    interchangeable, and no position in a table matters.
    """

    input: Source
    most: int
    compared: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"at most {self.most:,} row{'' if self.most == 1 else 's'} of each privacy unit"


Source = Scan | Filter | Join | Mark | Union | PerUnit | Windows | RowLimit


def inputs_of(source: Source) -> tuple[Source, ...]:
    """Return the sources that a node reads, its main input first."""
    if isinstance(source, Scan):
        return ()
    if isinstance(source, Join):
        return (source.left, source.right)
    if isinstance(source, Mark):
        return (source.input, source.inner)
    if isinstance(source, Union):
        return tuple(branch.input for branch in source.branches)
    return (source.input,)


def nodes_of(source: Source) -> Iterator[Source]:
    """Yield a source and every one below it."""
    yield source
    for each in inputs_of(source):
        yield from nodes_of(each)


def exprs_of(node: Source) -> Iterator[Expr]:
    """Yield all expressions that a node reads from the rows below it."""
    if isinstance(node, Filter):
        yield node.predicate
    elif isinstance(node, Join | Mark):
        yield from (each for pair in node.keys for each in pair)
        if isinstance(node, Mark) and node.condition is not None:
            yield node.condition
    elif isinstance(node, Union):
        yield from (expr for branch in node.branches for expr in branch.outputs)
    elif isinstance(node, PerUnit):
        yield from (*node.keys, *(expr for each in node.aggregations for expr in each.arguments))
    elif isinstance(node, Windows):
        yield from (*(expr for call in node.calls for expr in call.exprs()), *node.ties)
    else:
        yield from getattr(node, "compared", ())  # of a row limit


def scans_of(source: Source) -> Iterator[Scan]:
    """Yield every table scan of a source, from left to right."""
    if isinstance(source, Scan):
        yield source
    for each in inputs_of(source):
        yield from scans_of(each)


def row_scans_of(source: Source) -> Iterator[Scan]:
    """Yield the scans whose rows a source contains, without the inner ones of semi-joins."""
    if isinstance(source, Scan):
        yield source
    for each in inputs_of(source)[: 1 if isinstance(source, Mark) else None]:
        yield from row_scans_of(each)


def scan_of(source: Source) -> Scan:
    """Return the first private scan, or the first scan."""
    scans = list(scans_of(source))
    return next((scan for scan in scans if not scan.table.public), scans[0])


def filters_of(source: Source) -> tuple[Expr, ...]:
    """Return the predicates that hold for every row of a source, innermost first."""
    if isinstance(source, Filter):
        return (*filters_of(source.input), source.predicate)
    if isinstance(source, Join):
        return filters_of(source.left) + (() if source.outer else filters_of(source.right))
    return filters_of(source.input) if isinstance(source, Mark | Windows | RowLimit) else ()
