"""The columns of a release as post-processing SQL reads them."""

from __future__ import annotations

from dpsql.plan.expressions import Expr, Slot, unfiltered, walk
from dpsql.plan.query import Query
from dpsql.plan.query_plan import ReleaseColumn
from dpsql.schema.columns import Type
from dpsql.sql.bind.released_select import shown_type
from dpsql.sql.boundary.separation import SeparatedSelect


def release_columns(query: Query, split: SeparatedSelect | None) -> tuple[ReleaseColumn, ...]:
    """Return the columns that post-processing SQL reads: the shown ones or, for a split SELECT, those under generated
    names."""
    columns = []
    for place, output in enumerate(query.finish.outputs):
        kind = shown_type(query, output.expr)
        digits = unfiltered(output.expr).wide != 0
        if split is None:
            columns.append(ReleaseColumn(output.name, kind, place, digits, digits))
            continue
        wide = digits or (place >= split.shown and kind is Type.INTEGER and _sums(query, output.expr))
        columns.append(ReleaseColumn(split.column(place), kind, place, wide, digits))
    return tuple(columns)


def _sums(query: Query, expr: Expr) -> bool:
    """Return whether an expression reads a sum of numbers, rather than keys and counts only."""
    keys, aggregations = len(query.plan.keys), query.plan.aggregations
    places = [part.index - keys for part in walk(expr) if isinstance(part, Slot)]
    return any(place >= 0 and not aggregations[place].kind.counts for place in places)
