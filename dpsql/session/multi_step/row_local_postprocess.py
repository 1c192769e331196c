"""SELECTs over the answer of one release, which run here, as the program that they would be for DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.errors import QueryRefused
from dpsql.release.release import Release
from dpsql.sql.compile import separate
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params

if TYPE_CHECKING:
    from dpsql.plan.query_plan import QueryPlan


def program_above(release: Release, sql: str, catalog: Catalog, given: Params) -> QueryPlan | None:
    """The text as SQL over the answer of a release; None where there is no such SELECT in it, or nothing is told so."""
    try:
        separated = separate(sql, catalog, given)
    except QueryRefused:
        return None
    if separated is None:
        return None
    plan, _ = separated
    if len(plan.releases) != 1 or plan.postprocess is None or plan.postprocess.redrawn is None:
        return None
    (step,) = plan.releases
    same = (step.query.plan, step.query.finish) == (release.query.plan, release.query.finish)
    return plan if same else None
