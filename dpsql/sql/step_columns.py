"""The columns of a release as SQL above it knows them."""

from __future__ import annotations

from dpsql.plan.program import StepColumn
from dpsql.plan.query import Query
from dpsql.schema.columns import Type
from dpsql.sql.released import shown_type
from dpsql.sql.split import Split


def step_columns(query: Query, split: Split | None) -> tuple[StepColumn, ...]:
    """What SQL above reads of a release: what it shows; of a SELECT that is split, under names of ours and unrounded
    where something above reads it."""
    columns = []
    for place, output in enumerate(query.finish.outputs):
        kind = shown_type(query, output.expr)
        if split is None:
            columns.append(StepColumn(output.name, kind, place))
            continue
        unrounded = place >= split.shown and kind is Type.INTEGER and kind is not output.expr.type
        columns.append(StepColumn(split.column(place), Type.REAL if unrounded else kind, place, unrounded))
    return tuple(columns)
