"""The key of a question does not depend on the aliases of its text, and answers under older keys are still given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.session.cache import cached_answers as replay

TERMS = (1, 1e-9, None, None, None)


def tables() -> dict[str, dpsql.Table]:
    people = pd.DataFrame({"id": range(60), "age": [20 + k for k in range(60)], "town": ["a", "b", "c"] * 20})
    visits = pd.DataFrame(
        {"who": [k % 60 for k in range(180)], "day": range(180), "cost": [k % 50 for k in range(180)]}
    )
    towns = pd.DataFrame({"code": ["a", "b", "c"], "region": ["n", "n", "s"]})
    return {
        "people": dpsql.Table(people, unit="id", unique=["id"], version="1", keys={"town": ["a", "b", "c"]}),
        "visits": dpsql.Table(visits, unit="who", max_rows=3, version="1", bounds={"cost": (0, 50), "day": (0, 400)}),
        "towns": dpsql.Table(towns, public=True, unique=["code"], version="1"),
    }


def session(ledger: Path | None = None, **more: Any) -> dpsql.Session:
    return dpsql.Session(tables(), budget=dpsql.Budget(100, 1e-3), ledger=ledger, **more)


def keys_of(asked: dpsql.Session, sql: str) -> list[str]:
    found = asked._questions(asked._prepare(sql, TERMS))
    return [each.key for each in found if each is not None]


SAME = {
    "aliases of joined tables": (
        "SELECT region, COUNT(*) FROM people JOIN towns ON town = code GROUP BY region",
        "SELECT t.region, COUNT(*) FROM people AS P JOIN towns t ON P.town = t.code GROUP BY t.region",
        'SELECT "T u".REGION, COUNT(*) FROM people JOIN towns AS "T u" ON town = "T u".code GROUP BY 1',
    ),
    "columns of a derived table": (
        "SELECT AVG(CLAMP(n, 0, 5)) FROM (SELECT who, COUNT(*) AS n FROM visits GROUP BY who)",
        "SELECT AVG(CLAMP(Many, 0, 5)) FROM (SELECT who AS w, COUNT(*) AS Many FROM visits AS v GROUP BY w) AS q",
        "WITH q(a, b) AS (SELECT who, COUNT(*) FROM visits GROUP BY who) SELECT AVG(CLAMP(b, 0, 5)) FROM q",
    ),
    "columns of a union": (
        "SELECT COUNT(DISTINCT p) FROM (SELECT who AS p, cost FROM visits UNION ALL SELECT id, NULL FROM people)",
        (
            "SELECT COUNT(DISTINCT u.X) FROM (SELECT v.who AS X, v.cost FROM visits v "
            "UNION ALL SELECT id, NULL FROM people) u"
        ),
    ),
    "a table of constants": (
        (
            "WITH b(band, low, high) AS (VALUES (1, 0, 29), (2, 30, 90)) "
            "SELECT band, COUNT(*) FROM visits JOIN b ON cost BETWEEN low AND high GROUP BY band"
        ),
        (
            "SELECT c.N, COUNT(*) FROM visits AS v JOIN (VALUES (1, 0, 29), (2, 30, 90)) AS c(N, l, h) "
            "ON v.cost BETWEEN c.l AND c.h GROUP BY c.N"
        ),
    ),
    "a list of a prior release": (
        (
            "SELECT COUNT(*) FROM people WHERE town IN "
            "(SELECT town FROM people GROUP BY town ORDER BY COUNT(*) DESC LIMIT 2)"
        ),
        (
            "SELECT COUNT(*) FROM people p WHERE p.town IN "
            "(SELECT x.town AS Z FROM people AS x GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 2)"
        ),
    ),
    "a window": (
        (
            "SELECT AVG(CLAMP(gap, 0, 99)) FROM "
            "(SELECT day - LAG(day) OVER (PARTITION BY who ORDER BY day) AS gap FROM visits)"
        ),
        (
            "WITH g AS (SELECT v.day - LAG(v.day) OVER (PARTITION BY v.who ORDER BY v.day) AS G FROM visits v) "
            "SELECT AVG(CLAMP(G, 0, 99)) FROM g"
        ),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_aliases_do_not_change_the_key(name: str):
    asked = session()
    first, *others = (keys_of(asked, sql) for sql in SAME[name])
    assert first
    assert all(each == first for each in others)


DIFFERENT = (
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.cost",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.day",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.cost WHERE a.cost > 5",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.cost WHERE b.cost > 5",
    "SELECT SUM(a.cost) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.cost",
    "SELECT SUM(b.cost) FROM visits a JOIN visits b ON a.who = b.who AND a.day = b.cost",
    "SELECT AVG(CLAMP(n, 0, 5)) FROM (SELECT who, COUNT(*) AS n, MAX(cost) AS m FROM visits GROUP BY who)",
    "SELECT AVG(CLAMP(m, 0, 5)) FROM (SELECT who, COUNT(*) AS n, MAX(cost) AS m FROM visits GROUP BY who)",
    "SELECT COUNT(*) FROM visits JOIN (VALUES (1, 2), (3, 4)) AS c(x, y) ON cost BETWEEN x AND y",
    "SELECT COUNT(*) FROM visits JOIN (VALUES (1, 2), (3, 4)) AS c(x, y) ON cost BETWEEN y AND x",
)


def test_other_questions_keep_other_keys():
    asked = session()
    found = [tuple(keys_of(asked, sql)) for sql in DIFFERENT]
    assert all(found)
    assert len(set(found)) == len(DIFFERENT)


@pytest.mark.parametrize("name", SAME)
def test_answers_under_older_keys_are_still_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.ledger"
    with monkeypatch.context() as older:
        older.setattr(replay, "canonical", lambda *args: replay.canonical_by_aliases(*args) or dpsql_canonical(*args))
        with session(path) as asked:
            told = asked.query(SAME[name][0], epsilon=1, delta=1e-9)
            charges = len(asked.ledger())
    with session(path) as asked:
        again = asked.query(SAME[name][0], epsilon=1, delta=1e-9)
        assert len(asked.ledger()) == charges
    assert again.df.equals(told.df)


dpsql_canonical = replay.canonical
