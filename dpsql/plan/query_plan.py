"""The logical plan of a statement: releases of private tables, and post-processing SQL over released values."""

from __future__ import annotations

from typing import Any

from dpsql.plan.expressions import Literal
from dpsql.plan.options import Options
from dpsql.plan.prior_releases import Input
from dpsql.plan.query import Query
from dpsql.plan.redraws import RedrawStatement
from dpsql.schema.calendar import date_of, timestamp_of
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class ReleaseColumn:
    """A column of a release in post-processing SQL: a shown output of its query. `wide`: a sum of whole numbers inside
    an expression, which DuckDB computes in 128 bits."""

    name: str
    type: Type
    output: int
    wide: bool = False
    digits: bool = False
    """True if its numbers come from a column that is read as digits."""


@dataclass(frozen=True)
class ReleasePlan:
    """One release of a statement.

    Attributes
    ----------
    query : Query
        The plan of its private SELECT.
    options : Options or None
        Its DIFFERENTIAL_PRIVACY clause.
    relation : str
        The name that post-processing SQL has for its answer; empty without post-processing.
    columns : tuple of ReleaseColumn
        The columns of that relation.
    inputs : tuple of Input
        The values of prior releases that it reads.
    """

    query: Query
    options: Options | None
    relation: str = ""
    columns: tuple[ReleaseColumn, ...] = ()
    inputs: tuple[Input, ...] = ()

    @property
    def most(self) -> int | None:
        """Maximum number of rows of its answer, by its text; None for private groups without LIMIT."""
        cells, limit = self.query.plan.public_cells, self.query.finish.limit
        known = [each for each in (cells, limit) if each is not None]
        return min(known) if known else None

    @property
    def least(self) -> int:
        """Minimum number of rows of its answer, by its text."""
        finish = self.query.finish
        cuts = finish.having is not None or finish.limit is not None or finish.offset or finish.distinct
        if cuts or self.query.stages or self.query.plan.sets:
            return 0
        return self.query.plan.public_cells or 0


def handed(parameters: tuple[tuple[str, Literal], ...]) -> dict[str, Any]:
    """Return parameters as passed to post-processing SQL."""
    shown = {Type.DATE: date_of, Type.TIMESTAMP: timestamp_of}
    return {
        name: literal.value
        if literal.value is None or literal.type not in shown
        else shown[literal.type](literal.value)  # type: ignore[arg-type]
        for name, literal in parameters
    }


@dataclass(frozen=True)
class Postprocess:
    """Post-processing SQL over released values and public tables, as DuckDB runs it.

    Attributes
    ----------
    public : tuple of (str, TableSchema)
        The public tables that the SQL reads, by the names of their relations in it.
    sql : str
        One statement. It names the relations of releases and public tables, and no private table.
    parameters : tuple of (str, Literal)
        The values that the SQL reads, by name.
    redrawn : RedrawStatement or None
        The SQL over redrawn noise, from which intervals are simulated. None where none can be simulated.
    """

    public: tuple[tuple[str, TableSchema], ...]
    sql: str
    parameters: tuple[tuple[str, Literal], ...] = ()
    redrawn: RedrawStatement | None = None


@dataclass(frozen=True)
class QueryPlan:
    """The logical plan of a statement: its releases, and the post-processing over them.

    One release without post-processing is the smallest plan.

    Attributes
    ----------
    releases : tuple of ReleasePlan
        At least one, each after those that it reads.
    postprocess : Postprocess or None
        None where the answer is that of the one release.
    """

    releases: tuple[ReleasePlan, ...]
    postprocess: Postprocess | None = None
