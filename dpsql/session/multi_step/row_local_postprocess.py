"""SELECTs over the answer of one release, which run here, as the program that they would be for DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.errors import QueryRefused
from dpsql.release.release import Release
from dpsql.sql import program_of
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params

if TYPE_CHECKING:
    from dpsql.plan.program import Program


def program_above(release: Release, sql: str, catalog: Catalog, given: Params) -> Program | None:
    """The text as SQL over the answer of a release; None where there is no such SELECT in it, or nothing is told so."""
    try:
        taken_apart = program_of(sql, catalog, given)
    except QueryRefused:
        return None
    if taken_apart is None or taken_apart[0].redrawn is None or len(taken_apart[0].steps) != 1:
        return None
    (step,) = taken_apart[0].steps
    same = (step.query.plan, step.query.finish) == (release.query.plan, release.query.finish)
    return taken_apart[0] if same else None
