"""Contribution bounds: how many rows and groups of one privacy unit count, from declarations and from the plan."""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.core.sensitivity.stability import Stability, stability
from dpsql.core.unit import ContributionBound
from dpsql.errors import InternalError, InvalidPrivacyParameter, MissingBounds, UnsupportedSQL
from dpsql.plan.nodes import RowLimit, Source, nodes_of, row_scans_of, scan_of, scans_of
from dpsql.plan.options import Options
from dpsql.plan.query import Aggregate
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT
from dpsql.schema.units import Limits

MOST_FAN_OUT = 10_000
"""The maximum number of rows that public tables may make of each row, anywhere in a query. More is rejected, since the
result would depend on the data."""

MOST_PUBLIC_ROWS = 10_000_000
"""The maximum number of rows of a join of public tables only, which are in memory together."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Contribution bounds. `rows`: of a unit's rows; `units`: of contributions that count once for each unit and group;
    `enforced`: rows beyond the bound have to be dropped, because the plan does not exclude them; `declared`: units are
    declared."""

    rows: ContributionBound
    units: ContributionBound
    enforced: bool
    declared: bool


def bounds_of(plan: Aggregate, options: Options | None) -> Bounds:
    """Return the bounds of a plan. Raises MissingBounds if one unit could have any number of rows and nothing is
    declared, InvalidPrivacyParameter for excessive limits."""
    source = plan.input
    if RowLimit in map(type, nodes_of(source)):
        from dpsql.core.row_limits import without_row_limits  # loaded with the first join

        # Row limits bound the work of joins. They do not change how many rows count, which owners and the query decide.
        source = without_row_limits(source)
    below = stability(source)
    grouped = bool(plan.keys)
    check_fan_outs(plan.input)
    if not below.declared:
        if below.rows is None:
            raise InternalError("nothing bounds the rows of a unit")
        most = max(1, below.rows)  # public rows get a bound too, which nothing uses
        rows = ContributionBound(most, most if grouped else 1, most)
        return Bounds(rows, ContributionBound(rows.groups, rows.groups, 1), enforced=False, declared=False)
    rows = _declared(plan, below, options, grouped=grouped)
    enforced = below.rows is None or below.rows > rows.l1 or rows.groups < rows.rows or rows.per_group < rows.rows
    return Bounds(rows, ContributionBound(rows.most_groups, rows.most_groups, 1), enforced, declared=True)


def check_fan_outs(source: Source) -> None:
    """Raise UnsupportedSQL if public tables make too many rows, by what is declared."""
    for node in nodes_of(source):
        fan_out = stability(node).fan_out
        if fan_out > MOST_FAN_OUT:
            raise UnsupportedSQL(
                f"joins with public tables make {fan_out:,} rows of each; at most {MOST_FAN_OUT:,} are supported."
            )
        scans = list(scans_of(node))
        if len(scans) > 1 and all(scan.table.public for scan in scans):
            first = next(row_scans_of(node)).table.rows or 1
            if first * fan_out > MOST_PUBLIC_ROWS:
                raise UnsupportedSQL(
                    f"a join of public tables makes up to {first * fan_out:,} rows; at most {MOST_PUBLIC_ROWS:,} are "
                    "supported."
                )


def _declared(plan: Aggregate, below: Stability, options: Options | None, *, grouped: bool) -> ContributionBound:
    limits = _said(plan.input, options, below.expected)
    rows = _most_rows(plan, limits, below.rows, grouped=grouped)
    if rows is None:
        raise _missing(plan)
    groups = min(rows, limits.groups or rows, plan.public_cells or rows) if grouped else 1
    per_group = min(rows, limits.per_group or rows)
    return ContributionBound(rows if grouped else per_group, groups, per_group)


def _most_rows(plan: Aggregate, limits: Limits, certain: int | None, *, grouped: bool) -> int | None:
    """Return how many rows of a unit count in all groups together; `certain`: the maximum by the plan itself. None if
    nothing bounds them."""
    rows = None if limits.rows is None else max(1, limits.rows)
    if rows is None and limits.groups is not None and limits.per_group is not None:
        rows = min(LARGEST_LIMIT, limits.groups * limits.per_group)
    if certain is not None:
        rows = max(1, certain if rows is None else min(rows, certain))
    if rows is None and _counts_units_alone(plan) and (limits.groups is not None or not grouped):
        rows = limits.groups or 1
    return rows


def _said(source: Source, options: Options | None, expected: int | None) -> Limits:
    """Return the query's limits; by default those promised by declared keys, otherwise the largest of the tables'."""
    tables = [scan.table.limits for scan in row_scans_of(source) if not scan.table.public]
    rows, groups = (options.max_rows_contributed, options.max_groups_contributed) if options else (None, None)
    for name, limit in (("max_rows_contributed", rows), ("max_groups_contributed", groups)):
        if limit is not None and limit > LARGEST_LIMIT:
            place = options.places.get(name) if options else None
            raise InvalidPrivacyParameter(f"{name} must be at most 10^9.", span=place)
    return Limits(
        rows if rows is not None else max(1, expected) if expected is not None else _largest(t.rows for t in tables),
        groups if groups is not None else _largest(each.groups for each in tables),
        _largest(each.per_group for each in tables),
    )


def _largest(limits: Iterable[int | None]) -> int | None:
    return max((limit for limit in limits if limit is not None), default=None)


def _counts_units_alone(plan: Aggregate) -> bool:
    """Return whether every aggregate counts a unit's contribution to a group as one number, independent of its rows."""
    once = [each.of_units or each.per_unit is not None for each in plan.aggregations]
    return all(once)


def _missing(plan: Aggregate) -> MissingBounds:
    table = scan_of(plan.input).table
    spans = [each.span for each in plan.aggregations if each.span is not None]
    return MissingBounds(
        f"one person may have any number of rows in {table.name}: how many of them are to be counted?",
        span=spans[0] if spans else None,
        hint="Choose a limit that most people stay below, from what you know and not from the data.\n"
        "For a limit of 20, declare max_rows=20 on the table, or write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS "
        "(max_rows_contributed = 20).\n"
        "Of a person with more rows, dpsql drops some at random. Noise grows with the limit.",
    )
