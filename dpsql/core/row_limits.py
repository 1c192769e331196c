"""Row limits below joins without keys: the text bounds the rows of one privacy unit that such a join multiplies.

A CROSS JOIN, or a join by < and the like, makes all pairs of a unit's rows with the rows of a public table.
Contribution bounds apply after all joins, so they bound the noise and not the work. A `RowLimit` node below the lowest
such join bounds the work too: a unit with n rows costs what a unit with the declared number of rows costs, and one pass
over its n rows.

A limit is never below what owners declare or the text asks for, so a unit that keeps to its declaration loses no row.
Conditions that read only the rows below a limit move there, so that the rows that are kept are rows that count.

Nothing is limited below a join of two private tables, a sub-query by person or a window. There a unit beyond its
declaration would lose more than the rows that do not count: 5 of 30 rows on each side of a join by an equal value leave
1 pair of 30.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

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
    scans_of,
)
from dpsql.plan.options import Options
from dpsql.plan.prior_releases import is_earlier
from dpsql.plan.query import Aggregate
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT

Terms = Sequence[Expr]


def limit_join_inputs(plan: Aggregate, options: Options | None) -> Aggregate:
    """The plan with a RowLimit below each join without keys that multiplies the rows of units; the same plan where
    there is none, or where owners declare no limit of rows."""
    if not any(_multiplied(plan.input)):
        return plan
    declared = [_of_table(scan) for scan in scans_of(plan.input)]
    largest = max((each for each in declared if each is not None), default=None)
    if largest is None:
        return plan
    asked = options.max_rows_contributed if options is not None else None
    return replace(plan, input=_Limiter(asked or 0, largest, _columns_read(plan)).limited(plan.input, ()))


def without_row_limits(source: Source) -> Source:
    """The source without its RowLimit nodes."""
    if isinstance(source, RowLimit):
        return without_row_limits(source.input)
    if isinstance(source, Join):
        return replace(source, left=without_row_limits(source.left))
    if isinstance(source, Union):
        branches = tuple(replace(each, input=without_row_limits(each.input)) for each in source.branches)
        return replace(source, branches=branches)
    if isinstance(source, Filter | Mark):
        return replace(source, input=without_row_limits(source.input))
    return source


def _multiplied(source: Source) -> Iterator[Join]:
    """The joins of a source that multiply a unit's rows without a key, where a limit can stand."""
    if isinstance(source, Join):
        if stability(source.right).by_unit:
            return
        if stability(source.left).declared and source.matches != 1 and not _has_key(source):
            yield source
        yield from _multiplied(source.left)
    elif isinstance(source, Filter | Mark):
        yield from _multiplied(source.input)
    elif isinstance(source, Union):
        for branch in source.branches:
            yield from _multiplied(branch.input)


def _has_key(join: Join) -> bool:
    """A join has a key if an equality reads its right rows. ON TRUE of an outer join is TRUE = TRUE: it reads none."""
    return any(True for _, right in join.keys for _ in columns(right))


def _columns_read(plan: Aggregate) -> list[Column]:
    """All columns that the plan reads, each once."""
    exprs = [key.expr for key in plan.keys] + [expr for each in plan.aggregations for expr in each.arguments]
    exprs += [expr for node in nodes_of(plan.input) for expr in exprs_of(node)]
    return list(dict.fromkeys(column for expr in exprs for column in columns(expr)))


@dataclass(frozen=True, repr=False)
class _Limiter:
    """Inserts row limits. `asked`: the text's number of rows, 0 if there is none; `largest`: the largest number that a
    table declares, which holds for tables that declare none; `read`: the columns that the plan reads."""

    asked: int
    largest: int
    read: Sequence[Column]

    def limited(self, source: Source, terms: Terms) -> Source:
        """The rows of a source for which all terms are TRUE. The terms read no other rows."""
        if not any(_multiplied(source)):
            return _filtered(source, terms)
        if isinstance(source, Filter):
            return self.limited(source.input, (*conjuncts(source.predicate), *terms))
        if isinstance(source, Union):
            branches = tuple(replace(each, input=self.limited(each.input, ())) for each in source.branches)
            return _filtered(replace(source, branches=branches), terms)
        assert isinstance(source, Join | Mark)  # nothing else multiplies rows, or has such a join below
        below = source.left if isinstance(source, Join) else source.input
        own, rest = _divided(terms, below)
        rows = self.limited(below, own)
        if isinstance(source, Mark):
            return _filtered(replace(source, input=rows), rest)
        multiplies = next(_multiplied(source)) is source
        return _filtered(replace(source, left=self._limit(rows) if multiplies else rows), rest)

    def _limit(self, rows: Source) -> Source:
        """The rows that a join multiplies, with a limit unless the plan itself bounds the rows of a unit."""
        most = min(max(self.asked, self._declared(rows)), LARGEST_LIMIT)
        certain = stability(rows).rows
        return rows if certain is not None and certain <= most else RowLimit(rows, most, self._compared(rows))

    def _declared(self, source: Source) -> int:
        """The rows that one unit may have in a source, by what owners declare."""
        if isinstance(source, RowLimit):
            return source.most
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
        return rows * max(1, others if source.matches is None else min(others, source.matches))

    def _compared(self, rows: Source) -> tuple[Expr, ...]:
        """All that the query reads of the rows."""
        names = _names_of(rows)
        own = sorted((each for each in self.read if each.table in names), key=lambda each: (each.name, each.table))
        return tuple(dict.fromkeys(map(_comparable, own)))


def _of_table(scan: Scan) -> int | None:
    """The rows of one unit in a table, as its owner declares them; None where nothing is declared."""
    limits = scan.table.limits
    if scan.table.public:
        return None
    if limits.rows is not None:
        return max(1, limits.rows)
    if limits.groups is not None and limits.per_group is not None:
        return max(1, limits.groups * limits.per_group)
    return stability(scan).expected


def _divided(terms: Terms, rows: Source) -> tuple[Terms, Terms]:
    """The terms that read these rows and no others, and the rest."""
    names = _names_of(rows)
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
    """A column as rows are told apart by it; of a value that is only there or not, whether it is there."""
    if not column.type.opaque:
        return column
    made = call(FUNCTIONS["is_null"], column)
    assert made is not None  # anything may be NULL
    return made
