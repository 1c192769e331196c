"""Marks: which rows fulfil an IN (SELECT ...) or EXISTS (SELECT ...), as a column beside theirs.

Over public tables any condition will do. Over people's rows the two sides must be of the same privacy unit, by an
equality that says so: then a person's own rows alone decide what is marked of theirs.
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
    """A mark that is to be made; `span` is the place of its sub-query."""

    inner: Rows
    keys: tuple[Pair, ...]
    column: Column
    condition: Expr | None
    of_list: bool
    span: Span | None
    named: Column | None = None
    """A column of the rows that are asked, in the place of one of the sub-query's: of that only whether it has rows
    counts."""


def with_marks(rows: Rows, marks: Sequence[PendingMark]) -> Source:
    """The source with the marks below its filters, which may ask for them. Raises UnsupportedSQL."""
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
    """The table that a column is of; one that a sub-query makes is of none."""
    found = (scan.table.name for scan in scans_of(rows.source) if scan.name == column.table)
    return next(found, "the SELECT around it")


def _of_one_unit(rows: Rows, mark: PendingMark) -> bool:
    """Whether the equalities say that both sides are of the same privacy unit."""
    if rows.public or rows.unit_is_row or mark.inner.unit_is_row:
        return False
    same = UnitEqualities(list(mark.keys)).linked([rows, mark.inner])
    return same[0] == same[1]
