"""SELECTs over the answer of one release, which dpsql computes itself, as SQL that DuckDB would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.errors import QueryRefused
from dpsql.release.release import Release
from dpsql.sql.compile import separate
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement

if TYPE_CHECKING:
    from dpsql.plan.query_plan import QueryPlan


def postprocess_of_stages(release: Release, statement: Statement, catalog: Catalog, given: Params) -> QueryPlan | None:
    """Return the SELECTs of a statement over its one release as post-processing SQL; None if it allows no simulated
    intervals."""
    try:
        plan = separate(statement, catalog, given)
    except QueryRefused:
        return None
    if plan is None or len(plan.releases) != 1 or plan.postprocess is None or plan.postprocess.redrawn is None:
        return None
    (step,) = plan.releases
    same = (step.query.plan, step.query.finish) == (release.query.plan, release.query.finish)
    return plan if same else None
