"""A plan that one process of a server made and another runs: the same question of the same price, made of values that
have checked themselves once more, with nothing that was derived from them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import QueryRefused
from dpsql.schema.intervals import Interval
from dpsql.session import serialized_plan as handed_on
from dpsql.session.cache.question_key import canonical, digest_of
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.serialized_plan import from_bytes, in_bytes
from tests.executors.contract import TERMS, of_several_tables, several_tables_queries
from tests.executors.duckdb.test_same_integers import GOLDEN, golden_people
from tests.lies import assert_caught

SQL = "SELECT sex, AVG(hours) AS h, MEDIAN(age) FROM people WHERE CAST(age AS TEXT) LIKE '4%' GROUP BY sex"


def planned(session: dpsql.Session, texts: list[str]) -> Iterator[tuple[str, PreparedQuery]]:
    """Those that are accepted."""
    asked = (float(TERMS["epsilon"]), float(TERMS["delta"]), None, None, None)
    for sql in texts:
        with suppress(QueryRefused):
            yield sql, session._prepare(sql, asked)


@pytest.fixture(scope="module")
def people() -> dpsql.Session:
    return dpsql.Session({"people": golden_people(5)}, budget=dpsql.Budget(1e9, 1e-3))


def keys_of(prepared: PreparedQuery) -> list[str | None]:
    return [canonical(each) for each in prepared.releases]


def check_what_arrives(session: dpsql.Session, texts: list[str], least: int) -> None:
    made = list(planned(session, texts))
    assert len(made) >= least
    for sql, prepared in made:
        content = in_bytes(prepared, session.catalog)
        there: Any = from_bytes(content, session.catalog)
        assert there is not None, sql
        for each in there.releases:
            digest = each.__dict__.pop("_canonical")
            assert digest == digest_of(each), sql
        assert keys_of(there) == keys_of(prepared), sql
        assert str(session._explanation(there)) == str(session._explanation(prepared)), sql
        for one, other in zip(there.releases, prepared.releases, strict=True):
            assert (one.cost, one.events, one.allowed) == (other.cost, other.events, other.allowed), sql


def test_every_golden_plan_arrives(people: dpsql.Session):
    check_what_arrives(people, [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.sql"))[::3]], 25)


def test_plans_of_several_tables_and_of_several_steps_arrive():
    texts = several_tables_queries()[::4]
    names = ("SELECT (SELECT COUNT(*) FROM customers) AS n", "SELECT COUNT(*) AS n FROM customers")
    check_what_arrives(of_several_tables("pandas"), [*texts, *names], 20)


def test_a_plan_that_arrives_in_another_process_is_the_same_question(people: dpsql.Session):
    """Whose hashes of texts are others."""
    ((_, prepared),) = planned(people, [SQL])
    program = "import pickle, sys\nfrom dpsql.session.cache.question_key import canonical\n"
    program += "print(*map(canonical, pickle.loads(sys.stdin.buffer.read())[1].releases))"  # none has come along
    sent = in_bytes(prepared, people.catalog)
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    assert done.stdout.decode().split() == keys_of(prepared)


def test_an_answer_is_drawn_by_what_arrived(people: dpsql.Session, monkeypatch: pytest.MonkeyPatch):
    ((sql, prepared),) = planned(people, [SQL])
    there = from_bytes(in_bytes(prepared, people.catalog), people.catalog)
    monkeypatch.setattr(type(people), "_prepare", lambda *_, **__: there)
    assert len(people.query(sql, epsilon=1, delta=1e-6)) == 2


def test_nothing_derived_comes_along(people: dpsql.Session):
    """That a release is paid for is seen again by whoever runs it."""
    ((_, prepared),) = planned(people, [SQL])
    (release,) = prepared.releases
    release.assert_paid()
    assert release.__dict__["_derived"]
    there = from_bytes(in_bytes(prepared, people.catalog), people.catalog)
    assert there is not None
    assert not {"_derived", "told", "shares"} & there.releases[0].__dict__.keys()


def check_values_check_themselves(people: dpsql.Session) -> None:
    ((_, prepared),) = planned(people, [SQL])
    assert prepared.postprocess is None
    bent = Interval(0, 1)
    object.__setattr__(bent, "upper", -1)
    broken = replace(prepared, releases=(replace(prepared.releases[0], strategy=bent),))
    with pytest.raises(ValueError):
        from_bytes(in_bytes(broken, people.catalog), people.catalog)


def test_values_check_themselves_where_they_arrive(people: dpsql.Session):
    check_values_check_themselves(people)


def test_values_that_are_copied_are_caught(people: dpsql.Session):
    def copied(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(handed_on, "_Pickler", pickle.Pickler)

    def check() -> None:
        try:
            check_values_check_themselves(people)
        except pytest.fail.Exception:
            raise AssertionError from None

    assert_caught(copied, check, honest=False)


def test_tables_that_are_declared_otherwise_are_planned_anew(people: dpsql.Session):
    ((_, prepared),) = planned(people, [SQL])
    other = dpsql.Session({"people": pd.DataFrame({"age": [1]})}, budget=dpsql.Budget(1))
    assert from_bytes(in_bytes(prepared, people.catalog), other.catalog) is None
    assert from_bytes(b"", people.catalog) is None


def test_large_plans_are_not_handed_on(tmp_path: Path):
    keys = [f"key {number:020}" for number in range(20_000)]
    table = dpsql.Table(pd.DataFrame({"k": keys[:5], "x": np.arange(5)}), keys={"k": keys})
    with dpsql.Session({"t": table}, budget=dpsql.Budget(1)) as session:
        sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
        ((_, prepared),) = planned(session, [sql])
        assert in_bytes(prepared, session.catalog) == b""
