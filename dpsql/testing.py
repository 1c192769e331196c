"""For audits and contract tests ALONE: what a private query hides, and draws that nobody pays for. Also the stages of
the compiler, which read no row of people.

    from dpsql.testing import insecure_draws, insecure_exact

NOTHING THAT THE `insecure_` FUNCTIONS RETURN IS PRIVATE. `insecure_exact` gives exact answers about people; the mean of
many `insecure_draws` is all but exact. They charge no budget, write no ledger and keep no answer for a replay. They are
for owners, who can read the rows anyway, to see that what dpsql shows to others is as noisy as it says, and for tests
that two engines give the same integers. Never give their results, or anything made of them, to somebody who may ask the
session's queries only.

An owner's session is one that speaks for no analyst (`Session(..., analyst=...)` left out). `import dpsql` does not
import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsql.answer.program import ProgramExplanation
from dpsql.core.exact import ExactPlan, ExactTable
from dpsql.core.ledger.budget import Budget
from dpsql.errors import InternalError, InvalidArgument, InvalidSchema, as_written
from dpsql.executors.base import executor_of
from dpsql.plan.domains import cells_of
from dpsql.release.release import Release
from dpsql.schema.argument_names import checked_names
from dpsql.schema.columns import Key
from dpsql.schema.frozen import dataclass
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.run import open_tables, run
from dpsql.session.session import Session
from dpsql.session.tables.constant_tables import constant_tables
from dpsql.sql.syntax.parameters import params_of
from dpsql.sql.trace import CompileTrace, traced

__all__ = ["CompileTrace", "Integers", "compile_trace", "insecure_draws", "insecure_exact"]

_KEY_BYTES = 32


@dataclass(frozen=True, repr=False)
class Integers:
    """Exact integers by group, as an engine gives them: PRIVATE. Equal where all integers are, in whatever order groups
    come. A group is the tuple of its keys' cells: None for NULL, dates and times as days and microseconds since 1970;
    a query without GROUP BY has the group ().

    parts: group -> one integer for each part of the plan (a number of rows, a sum in steps of its lattice); grids:
    group -> for each grid how many rows lie at which of its points, points without rows left out. All groups that a run
    knows are there, also those that the answer would hide.
    """

    parts: Mapping[tuple[Key, ...], tuple[int, ...]]
    grids: Mapping[tuple[Key, ...], tuple[Mapping[int, int], ...]]


@checked_names
def compile_trace(sql: str, tables: Mapping[str, Any], *, params: Any = None) -> CompileTrace:
    """The stages of a statement on its way through the compiler, from its syntax to its plan. Reads no row of people.

    Parameters
    ----------
    sql : str
        The statement.
    tables : mapping of str to DataFrame or Table
        The tables that it may name, as `Session` takes them.
    params : mapping or sequence, optional
        Values for parameters of the text.

    Returns
    -------
    CompileTrace
        Its attributes are the stages; `print` shows them.

    Raises
    ------
    QueryRefused
        For a statement that dpsql does not answer.

    Examples
    --------
    >>> trace = compile_trace("SELECT sex, COUNT(*) FROM people GROUP BY ALL", {"people": table})
    >>> trace.rewrite
    'SELECT sex, COUNT(*) FROM people GROUP BY 1'
    """
    session = Session(tables, budget=Budget(epsilon=1))
    return traced(sql, session._catalog, () if params is None else params_of(params))


def insecure_exact(session: Session, sql: str, key: bytes, **terms: Any) -> Integers:
    """INSECURE: the exact integers of a query, before any noise. For an owner's audits and for tests of engines alone.

    key: 32 bytes that decide which rows of a unit beyond its limits are left out; the same key, plan and rows give the
    same integers on every engine. terms: epsilon=, params= and all else that `Session.explain` takes. Of a query that
    chooses its bounds, the integers of that choice: all others depend on what it draws.

    Charges nothing, writes nothing, keeps nothing. Raises InvalidArgument (no session of an owner, no such key), what
    `Session.explain` raises, and InternalError.
    """
    _check_owner(session, "insecure_exact")
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InvalidArgument(f"key must be {_KEY_BYTES} bytes, got {got}.", hint="bytes(32) is one.")
    release = _one_release(session, sql, terms)
    plan = release.plans[0]
    return _integers(plan, _executed(session, plan, key))


def insecure_draws(session: Session, sql: str, runs: int, **terms: Any) -> pd.DataFrame:
    """INSECURE: `runs` answers to one query, each drawn anew and none paid for; together they tell what each one hides.
    For an owner's audits alone.

    Each run is a whole one: rows beyond limits, bounds and groups are chosen anew, noise is fresh from the operating
    system. terms: epsilon=, params= and all else that `Session.explain` takes. Returns the rows of all answers, one
    below the other, with the columns of the answer; the index has the levels "run" (0 to runs - 1) and "row". A run in
    which every group is hidden has no row.

    Charges nothing, writes nothing, keeps nothing. Raises InvalidArgument (no session of an owner, no such number),
    what `Session.explain` raises, and InternalError.
    """
    _check_owner(session, "insecure_draws")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InvalidArgument(f"runs must be a whole number from 1 on, got {as_written(runs)}.")
    release = _one_release(session, sql, terms)
    one = PreparedQuery((release,), explain_only=False)
    with open_tables((release,), session._stores, session._engine) as tables:
        answers = [one.result([run(release, tables, paid=False)], "").df for _ in range(runs)]
    return pd.concat(answers, keys=range(runs), names=["run", "row"])


def _one_release(session: Session, sql: str, terms: dict[str, Any]) -> Release:
    """The release of a query of one step. Raises InvalidArgument."""
    explanation = session.explain(sql, **terms)
    if isinstance(explanation, ProgramExplanation):
        raise InvalidArgument("this query is of several steps, and an audit is of one release.", hint="Audit each.")
    return explanation._release


def _check_owner(session: object, name: str) -> None:
    """Raises InvalidArgument for all but a session that speaks for no analyst."""
    if not isinstance(session, Session):
        raise InvalidArgument(f"{name} needs a dpsql.Session, got {type(session).__name__}.")
    if session._ledger.analyst is not None:
        raise InvalidArgument(
            f'{name} is for the owner of the data alone, and this session speaks for analyst "'
            f'{session._ledger.analyst}".',
            hint="What it returns is not private. An owner opens a session of his own, without analyst=.",
        )


def _executed(session: Session, plan: ExactPlan, key: bytes) -> ExactTable:
    table: ExactTable | None = None
    failed = ""
    try:
        stores = {**session._stores, **constant_tables([plan.source], session._stores)}
        table = executor_of(stores, session._engine).execute(plan, key)
    except InvalidSchema:  # of files that are not those of the tables any more
        raise
    except Exception as error:  # noqa: BLE001 - its words could quote a row
        failed = type(error).__name__
    if table is None:
        raise InternalError(
            f"the run failed ({failed}). Nothing was charged.",
            hint="This is a fault of dpsql or of the machine. Please report it.",
        )
    return table


def _integers(plan: ExactPlan, table: ExactTable) -> Integers:
    columns = [cells_of(vector, key.expr.type) for vector, key in zip(table.keys, plan.keys, strict=True)]
    groups = list(zip(*columns, strict=True)) if columns else [()] * table.groups
    parts = {group: tuple(map(int, table.parts[:, place])) for place, group in enumerate(groups)}
    points: list[tuple[dict[int, int], ...]] = [tuple({} for _ in table.grids) for _ in groups]
    for number, grid in enumerate(table.grids):
        cells = (each.tolist() for each in (grid.groups, grid.points, grid.counts))
        for group, point, count in zip(*cells, strict=True):
            points[group][number][point] = count
    return Integers(parts, dict(zip(groups, points, strict=True)))
