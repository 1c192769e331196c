"""A statement of several steps: releases, in order of need, and SQL over what they showed."""

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
class StepColumn:
    """A column of a release as SQL above reads it: an output of its query, as it is shown. `wide`: a sum of whole
    numbers that stands inside an expression, which DuckDB computes in 128 bits."""

    name: str
    type: Type
    output: int
    wide: bool = False


@dataclass(frozen=True)
class Step:
    """One release: its query, what its clause says, and the relation that SQL above knows it by. `inputs`: what it
    reads of releases before it."""

    query: Query
    options: Options | None
    relation: str
    columns: tuple[StepColumn, ...]
    inputs: tuple[Input, ...] = ()

    @property
    def most(self) -> int | None:
        """How many rows it shows at most, by its text; None where its groups are private, and no LIMIT says it."""
        cells, limit = self.query.plan.public_cells, self.query.finish.limit
        known = [each for each in (cells, limit) if each is not None]
        return min(known) if known else None

    @property
    def least(self) -> int:
        """How many rows it shows at least, by its text."""
        finish = self.query.finish
        cuts = finish.having is not None or finish.limit is not None or finish.offset or finish.distinct
        if cuts or self.query.stages or self.query.plan.sets:
            return 0
        return self.query.plan.public_cells or 0


def handed(parameters: tuple[tuple[str, Literal], ...]) -> dict[str, Any]:
    """Parameters as SQL over answers is handed them."""
    shown = {Type.DATE: date_of, Type.TIMESTAMP: timestamp_of}
    return {
        name: literal.value
        if literal.value is None or literal.type not in shown
        else shown[literal.type](literal.value)  # type: ignore[arg-type]
        for name, literal in parameters
    }


@dataclass(frozen=True)
class Program:
    """Releases and the SQL over them. public: relations of the text that are public tables, by the names that the SQL
    has for them; parameters: values that it reads, by name."""

    steps: tuple[Step, ...]
    public: tuple[tuple[str, TableSchema], ...]
    sql: str
    parameters: tuple[tuple[str, Literal], ...] = ()
    redrawn: RedrawStatement | None = None
    """The SQL for noise that is drawn anew, which intervals come from; None where nothing can be told that way."""
