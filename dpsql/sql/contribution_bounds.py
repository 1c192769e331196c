"""Contribution bounds of an aggregate, as the text gives them: what values are clipped to, and what a unit may add."""

from __future__ import annotations

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.aggregates import PAIRS, AggregateKind
from dpsql.plan.options import AggregateOptions
from dpsql.schema.intervals import Interval
from dpsql.sql.same_unit import Rows


def clip_of(kind: AggregateKind, options: AggregateOptions, *, unit_is_row: bool) -> Interval | None:
    """What each value is clipped to; bounds per group are those per row where each row is one unit. None where nothing
    is to be clipped. Raises UnsupportedSQL."""
    per_row, per_group = options.contribution_bounds_per_row, options.contribution_bounds_per_group
    if kind is AggregateKind.DISTINCT and (per_row or per_group):
        raise UnsupportedSQL(
            "COUNT(DISTINCT ...) has no contribution bounds: a value counts once.", span=_first_place(options)
        )
    if kind in PAIRS and (per_row or per_group):
        raise UnsupportedSQL(
            f"{kind} has two arguments, and contribution bounds are for one.",
            span=_first_place(options),
            hint=f"Write {kind}(CLAMP(y, 0, 100), CLAMP(x, 0, 100)).",
        )
    if per_group is not None and not unit_is_row:
        return None
    bounds = per_row or per_group
    if kind is not AggregateKind.COUNT or bounds is None:
        return bounds
    if per_row is not None or 1 not in bounds:
        raise UnsupportedSQL(
            "COUNT takes contribution_bounds_per_group that hold 1, what each row counts.", span=_first_place(options)
        )
    return None


def bounds_of_a_unit(kind: AggregateKind, options: AggregateOptions, rows: Rows) -> Interval | None:
    """What one privacy unit adds to a group at least and at most; only where a unit may have several rows. Raises
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
    if kind not in (AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.AVG):
        raise UnsupportedSQL(
            f"{kind} is of single rows: it has contribution_bounds_per_row.", span=_first_place(options)
        )
    return bounds


def _first_place(options: AggregateOptions) -> Span | None:
    return next(iter(options.places.values()), None)
