"""Exact plans: a query's requests to an executor."""

from __future__ import annotations

from dpsql.core.exact import ExactPlan, Part
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.plan.query import Query
from dpsql.release.selection.groups import Selection


def exact_plan(query: Query, analysis: Analysis, chosen: Selection, parts: tuple[Part, ...]) -> ExactPlan:
    """Return the exact plan, with limits only if contribution bounding must drop rows."""
    bounds = analysis.bounds
    limits = bounds.rows if bounds.enforced else None
    groups = bounds.units.groups if bounds.enforced and query.plan.keys else None
    return ExactPlan(query.plan.input, query.plan.keys, chosen.every_cell, parts, limits, groups)


def of_public_groups(query: Query, analysis: Analysis, chosen: Selection) -> ExactPlan | None:
    """Return the exact plan without parts if private rows are in groups, all of them public, and there are no
    levels."""
    grouped = analysis.private and query.plan.keys and chosen.every_cell and not query.plan.sets
    return exact_plan(query, analysis, chosen, ()) if grouped else None
