"""The number of rows that joins make of one row of a privacy unit."""

from __future__ import annotations

from dpsql.core.row_work import public_rows
from dpsql.core.sensitivity.stability import stability
from dpsql.plan.expressions import columns
from dpsql.plan.nodes import Join, Mark, Scan, Source, Union, inputs_of

_FEW = 16
"""Joins that find at most this many public rows for each row take little longer than reading the rows."""


def multiplies(node: Source) -> bool:
    """Return whether a node makes many rows of one row of a unit, or compares its rows with many rows."""
    if isinstance(node, Join):
        return stability(node.left).declared and (pairs_people(node) or public_fan_out(node) > _FEW or is_crossed(node))
    return isinstance(node, Mark) and node.condition is not None and stability(node.input).declared


def pairs_people(node: Join) -> bool:
    """Return whether a join makes pairs of a unit's own rows."""
    return bool(stability(node.right).by_unit) and not (node.matches == 1 and node.keys)


def is_crossed(node: Join) -> bool:
    """Return whether a join multiplies rows by public ones without a key."""
    return not stability(node.right).by_unit and node.matches != 1 and not _has_key(node)


def _has_key(join: Join) -> bool:
    """Return whether an equality of a join reads its right rows. ON TRUE of an outer join, TRUE = TRUE, does not."""
    return any(True for _, right in join.keys for _ in columns(right))


def public_fan_out(node: Join) -> int:
    """Return the maximum number of public rows that a join finds for a row."""
    if stability(node.right).by_unit:
        return 1
    return public_rows(node.right) if node.matches is None else max(1, node.matches)


def paired_tables(source: Source) -> int:
    """Return the number of tables whose rows are paired in the rows of one unit; 0 if a unit has one row."""
    if stability(source).rows == 1:
        return 0
    if isinstance(source, Union):
        return max(paired_tables(each.input) for each in source.branches)
    if isinstance(source, Join):
        return paired_tables(source.left) + (paired_tables(source.right) if pairs_people(source) else 0)
    return 1 if isinstance(source, Scan) else paired_tables(inputs_of(source)[0])
