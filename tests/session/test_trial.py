"""Plans are tried over made-up rows before they are charged: what the shape of a query alone can cause is found there.

A failure is planted in every stage, and every one is an InternalError with nothing charged; the stores of people's rows
are not within the trial's reach; the work of a trial does not follow the length of public lists; and three lies about
trials are caught.
"""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer import result, values
from dpsql.core.exact import ExactTable
from dpsql.errors import DPSQLError, InternalError, InvalidPrivacyParameter, QueryRefused, SQLSyntaxError
from dpsql.executors.pandas import executor as pandas
from dpsql.executors.pandas import synthetic_tables as made_up
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.joins import pairing
from dpsql.release import choices as release_draws
from dpsql.release.bounds.auto_bounds import Searches
from dpsql.release.intervals import intervals as noise_intervals
from dpsql.release.output import select as finish
from dpsql.release.output import stages
from dpsql.release.release import Release
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.session import dry_run as trial
from dpsql.session import prepare
from dpsql.session import query as api
from dpsql.session import run as answer
from dpsql.sources.frames import stored_columns
from tests.executors.pandas.test_column_types import STORED
from tests.lies import Check, Lie, Patch, assert_caught

SECRET = "Ermintrude"
FRAME = pd.DataFrame(
    {
        "who": [SECRET, "b", "c", "d"] * 10,
        "x": [1.0, 2.5, np.nan, 40.0] * 10,
        "n": [1, 2, 3, 4] * 10,
        "s": ["a", "b", "a", None] * 10,
        "k": [1, 2, 3, 4] * 10,
    }
)
PUBLIC = pd.DataFrame({"k": [1, 2, 3], "name": ["one", "two", "three"]})


def tables(**said: Any) -> dict[str, dpsql.Table]:
    facts: dict[str, Any] = {"bounds": {"x": (0, 50), "n": (0, 9)}, "keys": {"s": ["a", "b"]}}
    return {
        "t": dpsql.Table(FRAME, **{**facts, **said}),
        "p": dpsql.Table(PUBLIC, public=True, unique=["k"]),
    }


def session(**said: Any) -> dpsql.Session:
    return dpsql.Session(tables(**said), budget=dpsql.Budget(100, 0.01))


@pytest.fixture(autouse=True)
def _plans_are_forgotten():
    prepare._cache.clear()
    yield
    prepare._cache.clear()


STAGED = "SELECT MAX(m) FROM (SELECT s, COUNT(*) AS m FROM t GROUP BY s) q"
GROUPED = "SELECT s, COUNT(*), AVG(x) FROM t GROUP BY s HAVING COUNT(*) > -99 ORDER BY 2"
MEMBER = "SELECT COUNT(*) FROM t WHERE n IN (SELECT k FROM p)"
MEDIAN = "SELECT MEDIAN(x), APPROX_TOP_K(s, 2) FROM t"
LEVELS = "SELECT s, COUNT(*) FROM t GROUP BY ROLLUP (s)"
UNKNOWN = "SELECT who, COUNT(*), SUM(x) FROM t GROUP BY who"

STAGES: dict[str, tuple[Any, str, str]] = {
    "run": (trial, "executed", GROUPED),
    "membership": (pairing, "matched", MEMBER),
    "groups": (pandas, "group_rows", GROUPED),
    "evaluation": (pandas, "evaluators", GROUPED),
    "privatise": (Release, "privatise", GROUPED),
    "levels": (Release, "features_of", LEVELS),
    "draws": (release_draws, "rank_gaps_at", "SELECT MAX(x) FROM t"),
    "runs": (release_draws, "quantiles_among", MEDIAN),
    "top": (release_draws, "dense", MEDIAN),
    "kept": (trial, "to_bytes", GROUPED),
    "read again": (trial, "from_bytes", GROUPED),
    "estimate": (finish, "estimate", GROUPED),
    "having": (finish, "kept", GROUPED),
    "order": (finish, "order_of", GROUPED),
    "finish": (result, "finish", GROUPED),
    "stages": (stages, "run_stages", STAGED),
    "warnings": (result, "warnings_of", GROUPED),
    "intervals": (noise_intervals, "aggregate_interval", GROUPED),
    "text": (result, "text_table", GROUPED),
    "html": (result, "html_table", UNKNOWN),
    "frame": (result, "frame_column", UNKNOWN),
    "values": (values, "python_values", UNKNOWN),
}
ERRORS = [KeyError, ZeroDivisionError, MemoryError, ValueError, RecursionError, AssertionError]


@pytest.mark.parametrize("stage", STAGES)
def test_a_failure_of_any_stage_is_found_before_the_charge(stage: str, monkeypatch: Patch):
    where, name, sql = STAGES[stage]
    held = session()
    for error in ERRORS:

        def fail(*_: Any, _error: type[Exception] = error, **__: Any) -> None:
            raise _error(SECRET)

        with monkeypatch.context() as patch:
            patch.setattr(where, name, fail)
            for ask in (held.query, held.explain, held.remaining_queries):
                with pytest.raises(InternalError) as found:
                    ask(sql, epsilon=1, delta=1e-6)
                assert error.__name__ in found.value.message
                assert SECRET not in str(found.value)
                assert found.value.__cause__ is None
                assert found.value.__context__ is None
            with pytest.raises(InternalError):
                dpsql.query(tables(), sql, epsilon=1, delta=1e-6)
    assert not held.ledger()
    assert held.spent.epsilon == 0
    assert isinstance(held.query(sql, epsilon=1, delta=1e-6), dpsql.Result)  # and no failure was kept
    assert len(held.ledger()) == 1


@pytest.mark.parametrize("name", ["compile_query", "planned"])
@pytest.mark.parametrize("error", ERRORS)
def test_whatever_planning_raises_is_an_internal_error(name: str, error: type[Exception], monkeypatch: Patch):
    def fail(*_: Any, **__: Any) -> None:
        raise error(SECRET)

    held = session()
    with monkeypatch.context() as patch:
        patch.setattr(prepare, name, fail)
        for ask in (held.query, held.explain, held.remaining_queries):
            with pytest.raises(DPSQLError) as found:
                ask(GROUPED, epsilon=1)
            assert type(found.value) is (SQLSyntaxError if error is RecursionError else InternalError)
            assert SECRET not in str(found.value)
            assert found.value.__cause__ is None
            assert found.value.__context__ is None or error is RecursionError
    assert not held.ledger()


def test_refusals_are_as_they_were():
    held = session()
    with pytest.raises(InvalidPrivacyParameter):
        held.query(GROUPED, epsilon=-1)
    with pytest.raises(QueryRefused):
        held.query("SELECT x FROM t", epsilon=1)


# What a trial reads, and when it is made.

QUERIES = (
    GROUPED,
    STAGED,
    MEMBER,
    MEDIAN,
    LEVELS,
    UNKNOWN,
    "SELECT COUNT(*), SUM(n), VAR_SAMP(x), CORR(x, n) FROM t WHERE s = 'a'",
    "SELECT name, COUNT(*) FROM t JOIN p ON t.n = p.k GROUP BY name",
    "SELECT MODE(s), MIN(x), MAX(n) FROM t",
    "SELECT UPPER(who), COUNT(DISTINCT n) FROM t GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT s FROM t UNION ALL SELECT s FROM t) u",
)


class _Untouchable:
    """A store that fails at whatever is asked of it, but what was declared."""

    def __init__(self, store: ColumnStore) -> None:
        self.__dict__["schema"] = store.schema

    def __getattribute__(self, name: str) -> Any:
        if name in ("schema", "__dict__", "__class__"):
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} of people's rows was asked for")


def stores_of_people_are_not_touched() -> None:
    held = session(unit="k", max_rows=20, max_groups=3)
    held._stores = {
        name: store if store.schema.public else _Untouchable(store)  # type: ignore[misc]
        for name, store in held._stores.items()
    }
    for sql in QUERIES:
        held.explain(sql, epsilon=1, delta=1e-6)
        before = len(held.ledger())
        with pytest.raises(InternalError, match="What it cost stays spent"):  # but by the run
            held.query(sql, epsilon=1, delta=1e-6)
        assert len(held.ledger()) == before + 1, sql


def test_stores_of_people_are_not_touched():
    stores_of_people_are_not_touched()


def test_a_trial_sees_made_up_rows_alone(monkeypatch: Patch):
    """None or one, whose cells follow from the declarations."""
    seen: list[int] = []
    cells: list[str] = []
    honest = trial.executed

    def spy(plan: Any, stores: Any, *more: Any) -> ExactTable:
        for store in stores.values():
            if not store.schema.public:
                seen.append(store.rows)
                cells.extend(str(cell) for column in store.schema.columns for cell in store.frame[column.name])
        return honest(plan, stores, *more)

    monkeypatch.setattr(trial, "executed", spy)
    for sql in QUERIES:
        with suppress(InternalError):
            session().explain(sql, epsilon=1, delta=1e-6)
    assert set(seen) == {0, 1}
    assert SECRET not in cells
    assert set(cells) == {"1.0", "1", "a"}


def test_a_plan_is_tried_once(monkeypatch: Patch):
    times = []
    monkeypatch.setattr(prepare, "tried", lambda *_: times.append(1))
    held = session()
    for _ in range(3):
        held.query(GROUPED, epsilon=1, fresh=True)
        held.explain(GROUPED, epsilon=1)
    assert len(times) == 1


def test_nothing_is_drawn_in_a_trial(monkeypatch: Patch):
    """Beside empty draws, which tell the shape of others."""
    from dpsql.core.mechanisms import samplers

    honest = samplers.random_words

    def words(n: int) -> Any:
        assert n == 0
        return honest(n)

    monkeypatch.setattr(samplers, "random_words", words)
    for sql in (*QUERIES, "SELECT SUM(x), MEDIAN(x) FROM t"):
        session(bounds={"n": (0, 9), "x": "auto"}).explain(sql, epsilon=1, delta=1e-6)


AUTO = {"bounds": {"x": "auto"}}


def settled_plans_are_tried_again() -> None:
    """A plan with bounds that were chosen is tried before it is run; what fails then stays charged."""
    held = session(**AUTO)
    with pytest.MonkeyPatch.context() as patch:
        honest = answer.tried
        times: list[Release] = []

        def spy(release: Release, *more: Any) -> None:
            times.append(release)
            honest(release, *more)

        patch.setattr(answer, "tried", spy)
        held.query("SELECT SUM(x) FROM t", epsilon=1)
        assert len(times) == 1
        assert times[0].bounds
        assert not times[0].provisional

        def fail(*_: Any) -> None:
            raise InternalError("planted")

        patch.setattr(answer, "tried", fail)
        with pytest.raises(InternalError, match="What it cost stays spent"):
            held.query("SELECT SUM(x) FROM t", epsilon=1, fresh=True)
    assert len(held.ledger()) == 2


def test_settled_plans_are_tried_again():
    settled_plans_are_tried_again()


def test_a_search_for_bounds_is_tried(monkeypatch: Patch):
    def fail(*_: Any) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr(Searches, "choose", fail)
    held = session(**AUTO)
    with pytest.raises(InternalError):
        held.query("SELECT SUM(x) FROM t", epsilon=1)
    assert not held.ledger()


# Its work is bounded.


@pytest.mark.parametrize("sets", ["k", "ROLLUP (k)", "k, s", "CUBE (k, s)"])
@pytest.mark.parametrize("null", [False, True])
def test_long_public_lists_are_cut(sets: str, null: bool, monkeypatch: Patch):
    listed = [*range(5_000), None] if null else list(range(5_000))
    data = dpsql.Table(FRAME, bounds={"x": (0, 50)}, keys={"k": listed, "s": ["a", "b", None]})
    groups, honest = [], trial.executed

    def spy(*given: Any) -> ExactTable:
        found = honest(*given)
        groups.append((found.groups, found.keys[0].valid is not None))
        return found

    monkeypatch.setattr(trial, "executed", spy)
    found = dpsql.query({"t": data}, f"SELECT {sets if '(' not in sets else 'k'}, COUNT(*) FROM t GROUP BY {sets}",
                        epsilon=1)  # fmt: skip
    assert len(list(found)) >= 5_000
    assert groups
    assert all(1 < each <= 6 and nulls == null for each, nulls in groups)


def test_a_million_public_groups_take_no_memory_in_a_trial(monkeypatch: Patch):
    data = dpsql.Table(FRAME, bounds={"x": (0, 50)}, keys={"k": range(1_000_000)})
    peaks, honest = [], prepare.tried

    def spy(*given: Any) -> None:
        tracemalloc.start()
        honest(*given)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    monkeypatch.setattr(prepare, "tried", spy)
    dpsql.query({"t": data}, "EXPLAIN PRIVACY SELECT k, COUNT(*), AVG(x) FROM t GROUP BY k", epsilon=1)
    assert len(peaks) == 1
    assert peaks[0] < 4_000_000


# Made-up rows are stored as the others are.


@pytest.mark.parametrize("kind", [name for name in STORED if not name.startswith("object")])
def test_made_up_columns_have_the_stored_type(kind: str):
    frame = pd.DataFrame({"x": STORED[kind][0]()})
    (column,) = stored_columns(frame)
    schema = resolve("t", [column], Declaration())
    dtype = frame["x"].dtype
    for rows in (0, 1):
        made = made_up.made_up(schema.columns[0], rows)
        assert len(made) == rows
        if column.type is Type.OTHER or str(dtype) == "longdouble":
            continue
        assert str(made.dtype) == str(dtype)
        store = made_up.SyntheticStore(schema, rows)
        assert len(store.reader("x")(0, rows)) == rows
        assert rows == 0 or store.reader("x")(0, 1).where_valid().all()


@pytest.mark.parametrize("kind", sorted(STORED))
def test_columns_of_every_stored_type_are_asked_about(kind: str):
    frame = pd.DataFrame({"x": STORED[kind][0]()})
    held = dpsql.Session({"t": frame}, budget=dpsql.Budget(100, 0.01))
    for sql in ("SELECT COUNT(x) FROM t", "SELECT x, COUNT(*) FROM t GROUP BY x", "SELECT COUNT(DISTINCT x) FROM t"):
        try:
            found = held.query(sql, epsilon=1, delta=1e-6)
        except QueryRefused:
            continue
        list(found), repr(found), found._repr_html_()


def test_made_up_rows_of_several_tables_meet():
    """So that a trial runs through joins along a path, and memberships of the same unit."""
    orders = dpsql.Table(pd.DataFrame({"o": [1, 2], "c": [1, 1], "z": [0.5, 2.0]}), unit="c -> customer.c",
                         bounds={"z": (0, 9)}, unique=["o"], max_rows=3)  # fmt: skip
    customer = dpsql.Table(pd.DataFrame({"c": [1, 2]}), unit="c", unique=["c"])
    found, honest = [], trial.executed

    def spy(*given: Any) -> ExactTable:
        found.append(honest(*given))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "executed", spy)
        sql = "SELECT COUNT(*), SUM(z) FROM orders JOIN customer USING (c)"
        dpsql.query({"orders": orders, "customer": customer}, sql, epsilon=1)
    assert {int(np.abs(each.parts.astype(np.int64)).sum()) > 0 for each in found} == {True, False}


def test_many_threads_try_at_once():
    held, failed = session(), []

    def ask(number: int) -> None:
        try:
            for sql in QUERIES:
                held.explain(sql + " " * number, epsilon=1, delta=1e-6)
        except BaseException as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed


def test_nothing_else_can_take_noise_away():
    """A release without noise is for made-up rows: one module makes it."""
    folder = Path(dpsql.__file__).parent
    using = [path.name for path in folder.rglob("*.py") if "release.dry_run import" in path.read_text(encoding="utf-8")]
    assert using == ["dry_run.py"]


# Lies.


def plans_are_tried_before_the_charge() -> None:
    prepare._cache.clear()
    held = session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "finish", lambda *_: {}["planted"])
        with pytest.raises(Exception):  # noqa: B017 - a lie lets it through as it is
            held.query(GROUPED, epsilon=1)
    assert not held.ledger()


def made_up_rows_have_declared_cells() -> None:
    """The made-up row reaches what is computed of bounds and keys: a group and a value that are declared."""
    prepare._cache.clear()
    found: list[ExactTable] = []
    honest = trial.executed

    def spy(*given: Any) -> ExactTable:
        found.append(honest(*given))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "executed", spy)
        session(bounds={"x": (20, 50)}).explain("SELECT s, COUNT(x) FROM t WHERE x >= 20 GROUP BY s", epsilon=1)
    assert sorted(int(each.parts.sum()) for each in found) == [0, 1]


def try_nothing(patch: Patch) -> None:
    patch.setattr(prepare, "tried", lambda *_: None)


def try_after_the_charge(patch: Patch) -> None:
    patch.setattr(prepare, "tried", lambda *_: None)
    honest = answer.run

    def run(release: Release, tables: Any) -> Any:
        stores = tables.stores
        trial.tried(release, {name.casefold(): store.schema for name, store in stores.items()}, stores)
        return honest(release, tables)

    from dpsql.session import session as sessions

    patch.setattr(sessions, "run", run)
    patch.setattr(api, "run", run)


def try_over_peoples_rows(patch: Patch) -> None:
    """With the stores that the run will have, in place of made-up ones."""
    held: dict[int, ColumnStore] = {}
    honest = ColumnStore.__init__

    def init(self: ColumnStore, frame: Any, schema: Any) -> None:
        honest(self, frame, schema)
        if not isinstance(self, made_up.SyntheticStore):
            held[len(schema.columns)] = self

    patch.setattr(ColumnStore, "__init__", init)
    made: dict[int, Any] = {}

    def stores(schema: Any) -> Any:
        store = held[len(schema.columns)]
        return made.setdefault(id(store), (store, store))

    patch.setattr(trial, "made_up_stores", stores)


def try_without_the_row(patch: Patch) -> None:
    honest = trial.made_up_stores
    patch.setattr(trial, "made_up_stores", lambda schema: (honest(schema)[0],) * 2)


def forget_the_second_trial(patch: Patch) -> None:
    def run(release: Release, tables: Any) -> Any:
        executor = pandas.PandasExecutor(tables.stores)
        settled = release.settled(bounds := release.choose_bounds(executor.execute))
        return replace(settled.privatise(executor.execute(settled.exact)), bounds=bounds)

    from dpsql.session import session as sessions

    patch.setattr(sessions, "run", run)


def _reads_no_private_row() -> None:
    prepare._cache.clear()
    with pytest.MonkeyPatch.context() as patch:
        test_a_trial_sees_made_up_rows_alone(patch)


LIES: list[tuple[Lie, Callable[[], None]]] = [
    (try_nothing, plans_are_tried_before_the_charge),
    (try_after_the_charge, plans_are_tried_before_the_charge),
    (try_over_peoples_rows, _reads_no_private_row),
    (try_without_the_row, made_up_rows_have_declared_cells),
    (forget_the_second_trial, settled_plans_are_tried_again),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_about_trials_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
