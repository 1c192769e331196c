"""Row limits below joins: the rows of one privacy unit that reach a join which multiplies rows are bounded by the text.

A join of two private tables makes up to n^2 rows of a unit's n, and each public row that is joined multiplies them
again. Contribution bounds apply after all joins, so they bound the noise and not the work. `RowLimit` nodes below the
lowest such joins bound the work too: a unit with n rows costs what a unit with the declared number of rows costs, and
one linear pass over its n rows.

A limit is never below what the owner declares or the text asks for, so a unit that keeps to its declaration loses no
row. Conditions that read one side of a join move below the limit, so that the rows that are kept are rows that count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from dpsql.core.stability import stability
from dpsql.plan.earlier import is_earlier
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
from dpsql.plan.query import Aggregate
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT

Terms = Sequence[Expr]


def limit_join_inputs(plan: Aggregate, options: Options | None) -> Aggregate:
    """The plan with a RowLimit below each join that multiplies the rows of units; the same plan where there is none, or
    where neither an owner nor the text says how many rows count."""
    if not any(map(_multiplies, nodes_of(plan.input))):
        return plan
    asked = options.max_rows_contributed if options is not None else None
    declared = [_declared_rows(scan) for scan in scans_of(plan.input)]
    largest = max((each for each in declared if each is not None), default=None)
    tables = {scan.name: scan.table.name for scan in scans_of(plan.input)}
    source = _Limiter(asked or 0, largest, _columns_read(plan), tables).limited(plan.input, ())
    return replace(plan, input=source)


def without_row_limits(source: Source) -> Source:
    """The source without its RowLimit nodes."""
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


def _multiplies(node: Source) -> bool:
    """Whether a node may make several rows of one row of a unit, or compares a unit's rows in pairs."""
    if isinstance(node, Join):
        if not stability(node.left).declared:
            return False
        if stability(node.right).by_unit:
            return node.matches != 1 or not node.keys
        return node.matches is None or node.matches > 1
    return isinstance(node, Mark) and node.condition is not None and stability(node.input).declared


def _columns_read(plan: Aggregate) -> list[Column]:
    """All columns that the plan reads, each once."""
    exprs = [key.expr for key in plan.keys] + [expr for each in plan.aggregations for expr in each.arguments]
    exprs += [expr for node in nodes_of(plan.input) for expr in exprs_of(node)]
    return list(dict.fromkeys(column for expr in exprs for column in columns(expr)))


@dataclass(frozen=True, repr=False)
class _Limiter:
    """Inserts row limits. `asked`: the text's number of rows, 0 if there is none; `largest`: the largest number that a
    table declares; `read`: the columns that the plan reads; `tables`: the table of each scan, by the scan's name."""

    asked: int
    largest: int | None
    read: Sequence[Column]
    tables: Mapping[str, str]

    def limited(self, source: Source, terms: Terms) -> Source:
        """The rows of a source for which all terms are TRUE. The terms read no other rows."""
        if not any(map(_multiplies, nodes_of(source))):
            return _filtered(source, terms)
        if isinstance(source, Filter):
            return self.limited(source.input, (*conjuncts(source.predicate), *terms))
        if isinstance(source, Join):
            return self._join(source, terms)
        if isinstance(source, Mark):
            return self._mark(source, terms)
        if isinstance(source, Union):
            branches = tuple(replace(each, input=self.limited(each.input, ())) for each in source.branches)
            return _filtered(replace(source, branches=branches), terms)
        assert isinstance(source, PerUnit | Windows | RowLimit)  # a scan multiplies nothing
        return _filtered(replace(source, input=self.limited(source.input, ())), terms)

    def _join(self, node: Join, terms: Terms) -> Source:
        own, rest = _divided(terms, node.left)
        there: Terms = ()
        if not node.outer and stability(node.right).by_unit:
            there, rest = _divided(rest, node.right)
        left, right = self.limited(node.left, own), self.limited(node.right, there)
        if _multiplies(node):
            left, right = self._limit(left), self._limit(right)
        return _filtered(replace(node, left=left, right=right), rest)

    def _mark(self, node: Mark, terms: Terms) -> Source:
        own, rest = _divided(terms, node.input)
        outer, inner = self.limited(node.input, own), self.limited(node.inner, ())
        if _multiplies(node):
            outer, inner = self._limit(outer), self._limit(inner)
        return _filtered(replace(node, input=outer, inner=inner), rest)

    def _limit(self, side: Source) -> Source:
        """One side of a join with a limit, unless the plan itself bounds the rows of a unit there."""
        below = stability(side)
        if not below.declared:
            return side
        declared = _declared_rows(side)
        most = max(self.asked, (self.largest if declared is None else declared) or 0)
        multiplied = any(map(_multiplies, nodes_of(side)))
        if not most or (below.rows is not None and (multiplied or below.rows <= most)):
            return side
        return RowLimit(side, min(most, LARGEST_LIMIT), self._compared(side))

    def _compared(self, side: Source) -> tuple[Expr, ...]:
        """Everything that the query reads of the rows of one side. Where a table stands twice in the query, both sides
        compare the same columns, so that a self-join keeps the same rows on both sides."""
        names = _names_of(side)
        compared = [each for each in self.read if each.table in names]
        if not any(isinstance(node, Windows) for node in nodes_of(side)):
            # Rows that a window cannot tell apart differ in no column that the query reads of them; they may in others.
            scans = [scan for scan in row_scans_of(side) if scan.name in names]
            compared += [column for scan in scans for column in self._of_other_scans(scan)]
        return tuple(dict.fromkeys(_comparable(column) for column in sorted(compared, key=_place)))

    def _of_other_scans(self, scan: Scan) -> Iterator[Column]:
        """The columns that the query reads of the same table elsewhere, as columns of this scan."""
        for column in self.read:
            if column.table != scan.name and self.tables.get(column.table) == scan.table.name:
                yield replace(column, table=scan.name)


def _declared_rows(source: Source) -> int | None:
    """The rows of one unit in a source, as owners declare them; None where nothing is declared, or all is public."""
    if isinstance(source, Scan):
        return _of_table(source)
    if isinstance(source, Union):
        private = [each.input for each in source.branches if stability(each.input).by_unit]
        numbers = [each for each in map(_declared_rows, private) if each is not None]
        return sum(numbers) if numbers and len(numbers) == len(private) else None
    if isinstance(source, PerUnit) and source.alone:
        return 1
    left = _declared_rows(inputs_of(source)[0])
    if not isinstance(source, Join) or not _multiplies(source):
        return left
    times = _declared_rows(source.right) if stability(source.right).by_unit else source.matches
    return None if left is None or times is None else left * max(1, times)


def _of_table(scan: Scan) -> int | None:
    limits = scan.table.limits
    if scan.table.public:
        return None
    if limits.rows is not None:
        return max(1, limits.rows)
    if limits.groups is not None and limits.per_group is not None:
        return max(1, limits.groups * limits.per_group)
    return stability(scan).expected


def _divided(terms: Terms, side: Source) -> tuple[Terms, Terms]:
    """The terms that read one side and no other rows, and the rest."""
    names = _names_of(side)
    own = [term for term in terms if _reads_only(term, names)]
    return own, [term for term in terms if term not in own]


def _reads_only(term: Expr, names: frozenset[str]) -> bool:
    read = [column.table for column in columns(term) if not is_earlier(column)]
    return bool(read) and names.issuperset(read)


def _names_of(source: Source) -> frozenset[str]:
    """The names under which expressions above a source read its columns."""
    if isinstance(source, Scan):
        return frozenset((source.name,))
    if isinstance(source, Union | PerUnit):
        return frozenset(column.table for column in source.columns)
    if isinstance(source, Join):
        made = () if source.present is None else (source.present.table,)
        return _names_of(source.left) | _names_of(source.right) | frozenset(made)
    if isinstance(source, Mark):
        return _names_of(source.input) | {source.column.table}
    if isinstance(source, Windows):
        return _names_of(source.input) | {column.table for column in source.columns}
    return _names_of(source.input)


def _filtered(source: Source, terms: Terms) -> Source:
    return reduce(Filter, terms, source)


def _place(column: Column) -> tuple[str, str]:
    return column.name, column.table


def _comparable(column: Column) -> Expr:
    """A column as rows are told apart by it; of a value that is only there or not, whether it is there."""
    if not column.type.opaque:
        return column
    made = call(FUNCTIONS["is_null"], column)
    assert made is not None  # anything may be NULL
    return made
