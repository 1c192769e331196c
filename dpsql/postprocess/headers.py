"""Relations that post-processing SQL may name, before there are rows: answers, and public tables."""

from __future__ import annotations

from dpsql.plan.query_plan import ReleasePlan
from dpsql.postprocess.frames import Header
from dpsql.schema.columns import TableSchema, Type

UNSAID_ROWS = 1_000
"""Assumed rows of an answer of unknown groups, before it exists."""


def header_of(step: ReleasePlan) -> Header:
    """Return the header of a release's answer."""
    columns = tuple((each.name, each.type) for each in step.columns)
    most = UNSAID_ROWS if step.most is None else step.most
    wide = frozenset(each.name for each in step.columns if each.wide)
    digits = frozenset(each.name for each in step.columns if each.digits)
    return Header(step.relation, columns, most, bool(step.query.finish.order), step.least, wide, digits)


def public_header(name: str, schema: TableSchema) -> Header:
    """Return the header of a public table, without columns of types that have no operations."""
    columns = tuple(
        (each.name, Type.INTEGER if each.wide else each.type) for each in schema.columns if each.type is not Type.OTHER
    )
    rows = schema.rows or 0
    wide = frozenset(each.name for each in schema.columns if each.wide)
    return Header(name, columns, rows, least=rows, wide=wide, digits=wide)


def value_name(relation: str, place: int) -> str:
    """Return the name of the parameter for a column of a one-row relation."""
    return f"{relation}_{place}"
