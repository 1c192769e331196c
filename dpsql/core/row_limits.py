"""Row limits below joins, which bound the rows of one privacy unit that a join multiplies.

A CROSS JOIN, or a join by < and the like, makes all pairs of a unit's rows with the rows of a public table. A join of
two private tables makes all pairs of a unit's own rows. Contribution bounds apply after all joins, so they bound the
noise and not the work. `RowLimit` nodes below such joins bound the work too.

A limit is never below the owner's declaration or the query's, so a unit within its declaration loses no row.
Conditions that read only the rows below a limit move below it, so that the kept rows are rows that count.

There are two kinds of limits. Above a CROSS JOIN that no aggregate by unit follows, contribution bounds drop rows
anyway: the limit is the declared number. Elsewhere a unit would lose more than the rows that do not count: 5 of 30 rows
on each side of a join by an equal value leave 1 pair of 30, and counts of a unit's own rows shrink. There the limit
allows at least SMALL_JOIN joined rows, which take too little time to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from dpsql.core.join_multiplicity import is_crossed, multiplies, paired_tables, public_fan_out
from dpsql.core.row_work import public_rows
from dpsql.core.sensitivity.stability import stability
from dpsql.plan.expressions import Column, Expr, call, columns, conjuncts
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import (
    Filter,
    Join,
    Mark,
    PerUnit,
    RowLimit,
    Scan,
    Source,
    Union,
    Windows,
    exprs_of,
    inputs_of,
    nodes_of,
    row_scans_of,
    scans_of,
)
from dpsql.plan.options import Options
from dpsql.plan.prior_releases import is_earlier
from dpsql.plan.query import Aggregate
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT

Terms = Sequence[Expr]


SMALL_JOIN = 1 << 16
"""Joined rows of one unit that take a few milliseconds. A unit that makes no more loses none."""


def limit_join_inputs(plan: Aggregate, options: Options | None) -> Aggregate:
    """Return the plan with a RowLimit below each join that multiplies the rows of units; the same plan if there is no
    such join, or if owners declare no row limits."""
    if not any(map(multiplies, nodes_of(plan.input))):
        return plan
    scans = list(scans_of(plan.input))
    declared = [_of_table(scan) for scan in scans]
    largest = max((each for each in declared if each is not None), default=None)
    if largest is None:
        return plan
    asked = options.max_rows_contributed if options is not None else None
    tables = {scan.name: scan.table.name for scan in scans}
    limiter = _Limiter(asked or 0, largest, _columns_read(plan), tables)
    return replace(plan, input=limiter.limited(plan.input, (), _Above(bounded=True)))


def without_row_limits(source: Source) -> Source:
    """Return the source without its RowLimit nodes."""
    if not any(isinstance(node, RowLimit) for node in nodes_of(source)):
        return source
    if isinstance(source, Join):
        return replace(source, left=without_row_limits(source.left), right=without_row_limits(source.right))
    if isinstance(source, Mark):
        return replace(source, input=without_row_limits(source.input), inner=without_row_limits(source.inner))
    if isinstance(source, Union):
        branches = tuple(replace(each, input=without_row_limits(each.input)) for each in source.branches)
        return replace(source, branches=branches)
    assert not isinstance(source, Scan)  # it has no nodes below
    below = without_row_limits(source.input)
    return below if isinstance(source, RowLimit) else replace(source, input=below)


def _columns_read(plan: Aggregate) -> list[Column]:
    """Return all columns that the plan reads, each once."""
    exprs = [key.expr for key in plan.keys] + [expr for each in plan.aggregations for expr in each.arguments]
    exprs += [expr for node in nodes_of(plan.input) for expr in exprs_of(node)]
    return list(dict.fromkeys(column for expr in exprs for column in columns(expr)))


@dataclass(frozen=True)
class _Above:
    """The use of rows above a node. `bounded`: contribution bounds drop rows before anything else reads a unit's rows
    together; `sides`: other tables whose rows of the unit are paired with each row; `times`: the public rows joined to
    each row."""

    bounded: bool = False
    sides: int = 0
    times: int = 1

    def paired(self, other: Source) -> _Above:
        """Return the use of rows that are paired with the same unit's rows on the other side."""
        return _Above(sides=self.sides + paired_tables(other), times=self.times * stability(other).fan_out)

    def joined(self, times: int) -> _Above:
        """Return the use of rows that are each joined with `times` public rows."""
        return replace(self, times=self.times * max(1, times))

    @property
    def least(self) -> int:
        """The rows of a unit that make no more than SMALL_JOIN joined rows."""
        return max(1, int((SMALL_JOIN / self.times) ** (1 / (1 + self.sides)) + 1e-9))


@dataclass(frozen=True, repr=False)
class _Limiter:
    """Inserts row limits. `asked`: the query's number of rows, 0 if there is none; `largest`: the largest number that a
    table declares, used for tables that declare none; `read`: the columns that the plan reads; `tables`: the table of
    each scan, by the scan's name."""

    asked: int
    largest: int
    read: Sequence[Column]
    tables: Mapping[str, str]

    def limited(self, source: Source, terms: Terms, above: _Above) -> Source:
        """Return the rows of a source for which all terms are TRUE. The terms read no other rows."""
        if not any(map(multiplies, nodes_of(source))):
            return _filtered(source, terms)
        if isinstance(source, Filter):
            return self.limited(source.input, (*conjuncts(source.predicate), *terms), above)
        if isinstance(source, Join):
            return self._join(source, terms, above)
        if isinstance(source, Mark):
            return self._mark(source, terms, above)
        if isinstance(source, Union):
            branches = tuple(replace(each, input=self.limited(each.input, (), above)) for each in source.branches)
            return _filtered(replace(source, branches=branches), terms)
        assert isinstance(source, PerUnit | Windows)  # a scan multiplies nothing
        alone = isinstance(source, PerUnit) and source.alone
        within = _Above() if alone else replace(above, bounded=False)
        return _filtered(replace(source, input=self.limited(source.input, (), within)), terms)

    def _join(self, node: Join, terms: Terms, above: _Above) -> Source:
        own, rest = _divided(terms, node.left)
        if stability(node.right).by_unit:
            return self._join_of_people(node, own, rest, above)
        crossed = above.bounded and is_crossed(node)
        below = _Above() if crossed else above.joined(public_fan_out(node))
        left = self.limited(node.left, own, replace(below, bounded=above.bounded))
        if crossed:
            left = self._limit(left, 0)
        elif multiplies(node):
            left = self._limit_lowest(left, below)
        return _filtered(replace(node, left=left), rest)

    def _join_of_people(self, node: Join, own: Terms, rest: Terms, above: _Above) -> Source:
        there: Terms = ()
        if not node.outer:
            there, rest = _divided(rest, node.right)
        pairs = multiplies(node)
        for_left = above.paired(node.right) if pairs else replace(above, bounded=False)
        for_right = above.paired(node.left) if pairs else replace(above, bounded=False)
        left, right = self.limited(node.left, own, for_left), self.limited(node.right, there, for_right)
        if pairs:
            left, right = self._limit_lowest(left, for_left), self._limit_lowest(right, for_right)
        return _filtered(replace(node, left=left, right=right), rest)

    def _mark(self, node: Mark, terms: Terms, above: _Above) -> Source:
        own, rest = _divided(terms, node.input)
        if not multiplies(node):
            outer = self.limited(node.input, own, above)
            return _filtered(replace(node, input=outer, inner=self.limited(node.inner, (), _Above())), rest)
        people = bool(stability(node.inner).by_unit)
        asking = _Above().paired(node.inner) if people else _Above(times=public_rows(node.inner))
        # The mark adds no row: the limit serves the pairs of the mark or the joins above, whichever are more.
        stricter = min(asking, above, key=lambda each: each.least)
        outer = self.limited(node.input, own, replace(stricter, bounded=above.bounded))
        inner = self.limited(node.inner, (), _Above().paired(node.input)) if people else node.inner
        outer = self._limit_lowest(outer, stricter)
        if people:
            inner = self._limit_lowest(inner, _Above().paired(node.input))
        return _filtered(replace(node, input=outer, inner=inner), rest)

    def _limit(self, rows: Source, least: int) -> Source:
        """Return the rows that a join multiplies, with a limit unless the plan itself bounds the rows of a unit."""
        most = min(max(self.asked, self._declared(rows), least), LARGEST_LIMIT)
        certain = stability(rows).rows
        return rows if certain is not None and certain <= most else RowLimit(rows, most, self._compared(rows))

    def _limit_lowest(self, rows: Source, above: _Above) -> Source:
        """Return the rows with a limit, unless joins below have limits already."""
        limited = any(isinstance(node, RowLimit) for node in nodes_of(rows)) and stability(rows).rows is not None
        return rows if limited else self._limit(rows, above.least)

    def _declared(self, source: Source) -> int:
        """Return the number of rows that one unit may have in a source, by the owners' declarations."""
        if isinstance(source, RowLimit):
            return min(source.most, self._declared(source.input))
        if isinstance(source, Scan):
            return _of_table(source) or self.largest
        if isinstance(source, Union):
            return sum(self._declared(each.input) for each in source.branches if stability(each.input).by_unit)
        if isinstance(source, PerUnit) and source.alone:
            return 1
        rows = self._declared(inputs_of(source)[0])
        if not isinstance(source, Join):
            return rows
        others = self._declared(source.right) if stability(source.right).by_unit else LARGEST_LIMIT
        return min(LARGEST_LIMIT, rows * max(1, others if source.matches is None else min(others, source.matches)))

    def _compared(self, rows: Source) -> tuple[Expr, ...]:
        """Return all that the query reads of the rows. For a table that occurs twice in the query, columns read of
        either are compared, so that a self-join keeps the same rows on both sides."""
        names = _names_of(rows)
        read = [each for each in self.read if each.table in names]
        if not any(isinstance(node, Windows) for node in nodes_of(rows)):
            # Rows that are equal for a window may differ in columns that are read elsewhere.
            scans = [scan for scan in row_scans_of(rows) if scan.name in names]
            read += [column for scan in scans for column in self._read_elsewhere(scan)]
        read.sort(key=lambda each: (each.name, each.table))
        return tuple(dict.fromkeys(map(_comparable, read)))

    def _read_elsewhere(self, scan: Scan) -> Iterator[Column]:
        """Yield the columns that the query reads of other scans of the same table, as columns of this scan."""
        for column in self.read:
            if column.table != scan.name and self.tables.get(column.table) == scan.table.name:
                yield replace(column, table=scan.name)


def _of_table(scan: Scan) -> int | None:
    """Return the declared number of rows of one unit in a table; None if nothing is declared."""
    limits = scan.table.limits
    if scan.table.public:
        return None
    if limits.rows is not None:
        return max(1, limits.rows)
    if limits.groups is not None and limits.per_group is not None:
        return max(1, limits.groups * limits.per_group)
    return stability(scan).expected


def _divided(terms: Terms, rows: Source) -> tuple[Terms, Terms]:
    """Return the terms that read only these rows, and the rest."""
    names = _names_of(rows)
    own = [term for term in terms if _reads_only(term, names)]
    return own, [term for term in terms if term not in own]


def _reads_only(term: Expr, names: frozenset[str]) -> bool:
    read = [column.table for column in columns(term) if not is_earlier(column)]
    return bool(read) and names.issuperset(read)


def _names_of(source: Source) -> frozenset[str]:
    """Return the names under which expressions above a source read its columns."""
    if isinstance(source, Scan):
        return frozenset((source.name,))
    if isinstance(source, Union | PerUnit):
        return frozenset(column.table for column in source.columns)
    new_columns: list[Column] = []
    if isinstance(source, Join) and source.present is not None:
        new_columns.append(source.present)
    elif isinstance(source, Mark):
        new_columns.append(source.column)
    elif isinstance(source, Windows):
        new_columns.extend(source.columns)
    below = inputs_of(source)[: 1 if isinstance(source, Mark) else None]
    return frozenset(column.table for column in new_columns).union(*map(_names_of, below))


def _filtered(source: Source, terms: Terms) -> Source:
    return reduce(Filter, terms, source)


def _comparable(column: Column) -> Expr:
    """Return the expression that distinguishes rows by a column; for an opaque value, whether it is NULL."""
    if not column.type.opaque:
        return column
    made = call(FUNCTIONS["is_null"], column)
    assert made is not None  # anything may be NULL
    return made
