"""Marks: columns that state which rows satisfy an IN (SELECT ...) or EXISTS (SELECT ...).

Over public tables any condition is allowed. Over private rows an equality must put both sides in the same privacy unit:
then only a unit's own rows decide the marks of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.nodes import Filter, Mark, Pair, Source, scans_of
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.joins import not_on_the_unit
from dpsql.sql.bind.private_rows import Rows, UnitEqualities


@dataclass(frozen=True)
class PendingMark:
    """A mark to be made; `span` is the place of its sub-query."""

    inner: Rows
    keys: tuple[Pair, ...]
    column: Column
    condition: Expr | None
    of_list: bool
    span: Span | None
    named: Column | None = None
    """An outer column that stands in for one of the sub-query's, whose rows are only tested for existence."""


def with_marks(rows: Rows, marks: Sequence[PendingMark]) -> Source:
    """Return the source with the marks below the filters that may read them. Raises UnsupportedSQL."""
    filters: list[Expr] = []
    source = rows.source
    while marks and isinstance(source, Filter):
        filters.append(source.predicate)
        source = source.input
    for each in marks:
        _check_unit(rows, each)
        source = Mark(source, each.inner.source, each.keys, each.column, each.condition, each.of_list)
    return reduce(Filter, reversed(filters), source)


def _check_unit(rows: Rows, mark: PendingMark) -> None:
    if mark.inner.public:
        return
    if mark.named is not None and not _of_one_unit(rows, mark):
        inner = mark.inner.table.name
        raise UnsupportedSQL(
            f"{mark.named} is a column of {_owner(mark.named, rows)}, not of {inner}: all that is asked of {inner} is "
            "whether it has any rows, which is one person's to decide.",
            span=mark.span,
            hint=f"Name a column of {inner}, or compare with {mark.named} outside of a sub-query.",
            about={"people's rows": inner},
        )
    if rows.public or rows.unit_is_row or mark.inner.unit_is_row:
        raise UnsupportedSQL(
            f"the sub-query reads people's rows, and nothing says which of them belong to a row of {rows.table.name}.",
            span=mark.span,
            hint=_of_public(mark) if rows.public else 'Declare unit="person_id" on both tables.',
            about={"people's rows": mark.inner.table.name},
        )
    if not _of_one_unit(rows, mark):
        raise not_on_the_unit(rows, mark.inner, mark.span)


def _of_public(mark: PendingMark) -> str:
    name = mark.inner.table.name
    return f"A public row is nobody's. Ask {name} for an answer first, with GROUP BY, and read that."


def _owner(column: Column, rows: Rows) -> str:
    """Return the table of a column; columns of sub-queries have none."""
    found = (scan.table.name for scan in scans_of(rows.source) if scan.name == column.table)
    return next(found, "the SELECT around it")


def _of_one_unit(rows: Rows, mark: PendingMark) -> bool:
    """Return whether the equalities put both sides in the same privacy unit."""
    if rows.public or rows.unit_is_row or mark.inner.unit_is_row:
        return False
    same = UnitEqualities(list(mark.keys)).linked([rows, mark.inner])
    return same[0] == same[1]
