"""For audits and contract tests ALONE: exact results behind private queries, and draws without charge. Also the stages
of the compiler, which read no private row.

    from dpsql.testing import insecure_draws, insecure_exact

NOTHING THAT THE `insecure_` FUNCTIONS RETURN IS PRIVATE. `insecure_exact` returns exact answers about people; the mean
of many `insecure_draws` is all but exact. They charge no budget, write no ledger and cache no answer. Owners, who can
read the rows anyway, use them to check that released answers are as noisy as claimed, and tests to check that two
engines compute the same integers. Never give their results, or anything derived from them, to somebody who may only run
the session's queries.

A session of an owner is one without analyst (`Session(..., analyst=...)` left out). `import dpsql` does not
import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsql.answer.multi_step import MultiStepExplanation
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
    """Exact integers by group, as computed by an engine: PRIVATE. Equal if all integers are, regardless of the order of
    groups. A group is the tuple of its keys' cells: None for NULL, dates and times as days and microseconds since 1970;
    a query without GROUP BY has the group ().

    parts: group -> one integer for each part of the plan (a number of rows, a sum in steps of its lattice); grids:
    group -> for each grid, the number of rows by point, without empty points. All groups of a run are included, also
    those that the answer would hide.
    """

    parts: Mapping[tuple[Key, ...], tuple[int, ...]]
    grids: Mapping[tuple[Key, ...], tuple[Mapping[int, int], ...]]


@checked_names
def compile_trace(sql: str, tables: Mapping[str, Any], *, params: Any = None) -> CompileTrace:
    """Return the stages of a statement in the compiler, from its syntax to its plan. Reads no private row.

    Parameters
    ----------
    sql : str
        The statement.
    tables : mapping of str to DataFrame or Table
        The tables that it may name, as for `Session`.
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

    Charges nothing, writes nothing, keeps nothing.

    Parameters
    ----------
    session : Session
        A session of an owner.
    sql : str
        The query.
    key : bytes
        32 bytes that determine which rows of a unit contribution bounding drops; the same key, plan and rows give the
        same integers on every engine.
    terms
        epsilon=, params= and other arguments of `Session.explain`.

    Returns
    -------
    Integers
        For a query that chooses its bounds, the integers of that choice: all others depend on the bounds drawn.

    Raises
    ------
    InvalidArgument
        If the session is no session of an owner, or the key is invalid.
    InternalError
        If the run fails. Other errors as `Session.explain`.
    """
    _check_owner(session, "insecure_exact")
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InvalidArgument(f"key must be {_KEY_BYTES} bytes, got {got}.", hint="bytes(32) is one.")
    release = _one_release(session, sql, terms)
    plan = release.plans[0]
    return _integers(plan, _executed(session, plan, key))


def insecure_draws(session: Session, sql: str, runs: int, **terms: Any) -> pd.DataFrame:
    """INSECURE: `runs` independent answers to one query, none of them paid for; together they reveal what each hides.
    For an owner's audits alone.

    Each run is complete: contribution bounding, clip bounds and partition selection are repeated, with fresh noise from
    the operating system. Charges nothing, writes nothing, keeps nothing.

    Parameters
    ----------
    session : Session
        A session of an owner.
    sql : str
        The query.
    runs : int
        The number of answers.
    terms
        epsilon=, params= and other arguments of `Session.explain`.

    Returns
    -------
    DataFrame
        The rows of all answers, concatenated, with the columns of the answer; the index has the levels "run" (0 to
        runs - 1) and "row". A run in which every group is hidden has no row.

    Raises
    ------
    InvalidArgument
        If the session is no session of an owner, or `runs` is invalid.
    InternalError
        If a run fails. Other errors as `Session.explain`.
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
    """Return the release of a single-step query. Raises InvalidArgument."""
    explanation = session.explain(sql, **terms)
    if isinstance(explanation, MultiStepExplanation):
        raise InvalidArgument("this query is of several steps, and an audit is of one release.", hint="Audit each.")
    return explanation._release


def _check_owner(session: object, name: str) -> None:
    """Raise InvalidArgument for all but a session without analyst."""
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
    except InvalidSchema:  # files that have changed since the tables were opened
        raise
    except Exception as error:  # noqa: BLE001 - its message could quote a row
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
