"""Contribution bounds of an aggregate in the text: clip bounds, and bounds on a unit's contribution."""

from __future__ import annotations

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.options import AggregateOptions
from dpsql.schema.intervals import Interval
from dpsql.sql.bind.private_rows import Rows


def clip_of(kind: AggregateFunction, options: AggregateOptions, *, unit_is_row: bool) -> Interval | None:
    """Return the clip bounds of each value, or None without clipping.

    Bounds per group equal bounds per row if each row is one unit. Raises UnsupportedSQL.
    """
    per_row, per_group = options.contribution_bounds_per_row, options.contribution_bounds_per_group
    if kind.unclipped is not None and (per_row or per_group):
        why, hint = kind.unclipped
        raise UnsupportedSQL(why, span=_first_place(options), hint=hint)
    if per_group is not None and not unit_is_row:
        return None
    bounds = per_row or per_group
    if not kind.counts or bounds is None:
        return bounds
    if per_row is not None or 1 not in bounds:
        raise UnsupportedSQL(
            "COUNT takes contribution_bounds_per_group that hold 1, what each row counts.", span=_first_place(options)
        )
    return None


def bounds_of_a_unit(kind: AggregateFunction, options: AggregateOptions, rows: Rows) -> Interval | None:
    """Return the least and greatest contribution of one privacy unit to a group, if units may have several rows. Raises
    UnsupportedSQL."""
    bounds = options.contribution_bounds_per_group
    if bounds is not None and rows.public:
        raise UnsupportedSQL(
            f"contribution_bounds_per_group is of what a person adds, and {rows.table.name} is about nobody.",
            span=_first_place(options),
            hint="Leave it out.",
        )
    if bounds is None or rows.unit_is_row:
        return None
    if not (kind.linear or kind.averages):
        raise UnsupportedSQL(
            f"{kind} is of single rows: it has contribution_bounds_per_row.", span=_first_place(options)
        )
    return bounds


def _first_place(options: AggregateOptions) -> Span | None:
    return next(iter(options.places.values()), None)
