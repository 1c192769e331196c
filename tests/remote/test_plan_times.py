"""How soon a question is planned tells nobody what others have asked: the work for it is counted, call by call."""

from __future__ import annotations

import functools
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsql.executors.duckdb import binding
from dpsql.executors.sql.statement import Statement
from dpsql.remote.server import worker
from dpsql.remote.server.messages import Config
from dpsql.schema import memoization as remembered
from tests.lies import assert_caught
from tests.remote.serving import shop, token_for
from tests.test_architecture import modules

ANALYSTS = ("ann", "bob", "eve")
ASKED: dict[str, dict[str, Any]] = {
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM customers WHERE age > 30 GROUP BY city": {"delta": 1e-8},
    "SELECT country, COUNT(*) AS n, SUM(age) AS s FROM customers GROUP BY country": {
        "delta": 1e-8,
        "mechanism": "gaussian",
    },
    "SELECT COUNT(*) AS n FROM customers WHERE REGEXP_MATCHES(city, '(a|b)+c{7}')": {},
    "SELECT COUNT(*) AS n FROM customers WHERE age > (SELECT MEDIAN(age) FROM customers)": {},
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[worker.Work]:
    schema = shop(tmp_path_factory.mktemp("shop"), rows=20)
    for name in ANALYSTS:
        token_for(schema, name, epsilon=20, delta=1e-6)
    work = worker.Work(Config(str(schema), "run"))
    yield work
    for each in work._sessions.values():
        each.close()


def calls(work: worker.Work, analyst: str, sql: str, epsilon: float, **terms: Any) -> int:
    """How many functions are called to plan and explain a question, before anybody pays for it."""
    message = {"analyst": analyst, "tables": ["customers", "orders"], "hidden": [], "request": ("k", "b", "run")}
    message["terms"] = {"sql": sql, "epsilon": epsilon, **terms}
    count = 0

    def note(_frame: object, event: str, _said: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        replies = [worker.answered(work, {**message, "operation": each}) for each in ("plan", "explain")]
    finally:
        sys.setprofile(None)
    assert [each["outcome"] for each in replies] == ["hidden", "ok"], replies
    return count


def forgotten() -> None:
    """What functions remember, of whatever module."""
    for each in gc.get_objects():
        if issubclass(
            type(each), remembered.MemoizedFunction | functools._lru_cache_wrapper
        ):  # what it says of itself may fail
            each.cache_clear()


def difference(work: worker.Work, sql: str, terms: dict[str, Any], epsilon: float, askers: tuple[str, str]) -> float:
    """The share of the work for a question that is saved because ann has asked it."""
    sides = []
    for asker, anns in zip(askers, (epsilon, epsilon * 2), strict=True):
        for name in ("ann", asker):  # what a session has is there, and what is loaded once
            calls(work, name, sql, epsilon * 3, **terms)
        forgotten()
        calls(work, "ann", sql, epsilon * 4, **terms)  # and what is the same for whatever is asked
        calls(work, "ann", sql, anns, **terms)
        sides.append(calls(work, asker, sql, epsilon, **terms))
    return (sides[1] - sides[0]) / sides[1]


def test_what_another_has_asked_is_planned_no_sooner(work: worker.Work):
    for place, (sql, terms) in enumerate(ASKED.items()):
        found = 1.0
        for attempt in range(3):  # what the garbage of earlier tests calls is counted once; a memory is there each time
            gc.collect()
            epsilon = 0.1 + place / 1000 + attempt / 50
            found = min(found, abs(difference(work, sql, terms, epsilon, ("bob", "eve"))))
        assert found < 0.002, (sql, found)


def test_memories_that_all_share_are_seen(work: worker.Work, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker, "remembered_for", lambda _: remembered.remembered_for(""))
    sql, terms = next(iter(ASKED.items()))
    assert difference(work, sql, terms, 0.2, ("bob", "eve")) > 0.01


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The owner's file of tables that DuckDB reads."""
    schema = shop(tmp_path, rows=20)
    for file in tmp_path.glob("*.csv"):
        pd.read_csv(file).to_parquet(file.with_suffix(".parquet"))
    schema.write_text(schema.read_text().replace(".csv", ".parquet").replace('type = "date"', 'type = "text"'))
    token_for(schema, "ann", epsilon=20, delta=1e-6)
    return schema


def check_no_instance_is_opened_for_a_plan(schema: Path, patch: pytest.MonkeyPatch) -> None:
    """Whoever is the first to ask finds one, and so does whoever comes after a plan that the engine did not take."""
    binding._INSTANCES.close()
    forgotten()
    work, opened = worker.Work(Config(str(schema), "run")), []
    new = binding._new
    patch.setattr(binding, "_new", lambda: (opened.append(1), new())[1])
    first, second, *_ = ASKED.items()
    try:
        calls(work, "ann", first[0], 0.3, **first[1])
        assert opened == []
        assert not binding._binds(Statement("SELECT nothing FROM nowhere", (), {}, {}), {})
        assert opened == [1], "by whoever asked that"
        calls(work, "ann", second[0], 0.4, **second[1])
        assert opened == [1]
    finally:
        for each in work._sessions.values():
            each.close()


def test_no_instance_of_duckdb_is_opened_for_a_plan(stored: Path, monkeypatch: pytest.MonkeyPatch):
    check_no_instance_is_opened_for_a_plan(stored, monkeypatch)


def test_instances_that_the_first_one_opens_are_caught(stored: Path):
    def none_waits(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(binding, "ready", lambda: None)

    def check() -> None:
        with pytest.MonkeyPatch.context() as patch:
            check_no_instance_is_opened_for_a_plan(stored, patch)

    assert_caught(none_waits, check, honest=False)


FOR_ALL = {
    "by identity of what was planned, which nobody shares": (
        "release.design.distinguished_cells", "release.design.moves", "release.design.choose", "release.expected_error",
        "release.epsilon_shares",
    ),
    "the same for whatever is asked": (
        "plan.functions.letters", "executors.spark.text_functions", "accuracy.choices", "accuracy.normal",
        "accuracy.pairs", "core.mechanisms.rounded_gaussian",
    ),
    "a look-up as quick as the work": ("plan.expressions",),
    "of rows and of noise, after the charge": (
        "executors.pandas.hashing", "core.mechanisms.samplers",
    ),
    "of lines of the ledger, which every session reads": (
        "core.ledger.lines", "core.ledger.claims", "core.ledger.reading",
    ),
    "it is what is used instead": ("schema.memoization",),
    "memories of one plan, or of one run": ("release.design.ranks", "plan.functions.patterns"),
    "of how many digits a number has, of which there are few": ("core.mechanisms.quantile_runs",),
    "of public names of encodings and time zones": ("schema.encodings", "schema.zones"),
}  # fmt: skip
"""Modules that may remember for all at once, and why."""


def test_nothing_else_is_remembered_for_all():
    using = {name for name, path in modules().items() if re.search(r"\b(lru_cache|cache)\b", _imported(path))}
    assert using == {f"dpsql.{name}" for names in FOR_ALL.values() for name in names}


def _imported(path: Path) -> str:
    """What a module takes from functools."""
    return "\n".join(re.findall(r"^ *from functools import .*$", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_what_is_remembered_for_one_is_so_for_no_other():
    made: list[int] = []

    @remembered.remembered(2)
    def twice(number: int) -> int:
        made.append(number)
        return 2 * number

    assert (twice(1), twice(1), made) == (2, 2, [1])
    with remembered.remembered_for("ann"):
        assert (twice(1), twice(1), made) == (2, 2, [1, 1])
        assert twice.cache_info().hits == 1
    for number in range(remembered.MOST):
        with remembered.remembered_for(str(number)):
            twice(1)
    assert len(twice._memories) == remembered.MOST
    twice.cache_clear()
    assert twice(1) == 2
    assert twice.__name__ == "twice"
    assert len(made) == 3 + remembered.MOST
