"""The columns that a source and its consumers read, and whether a source is public."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.executors.sql.rows import Name
from dpsql.plan.expressions import Expr, columns
from dpsql.plan.nodes import Source, exprs_of, nodes_of, scans_of


def read_columns(source: Source, exprs: Sequence[Expr]) -> frozenset[Name]:
    """Return the columns read by a source's nodes and by expressions above."""
    read = [*exprs, *(expr for node in nodes_of(source) for expr in exprs_of(node))]
    return frozenset((column.table, column.name) for expr in read for column in columns(expr))


def is_public(source: Source) -> bool:
    return all(scan.table.public for scan in scans_of(source))
