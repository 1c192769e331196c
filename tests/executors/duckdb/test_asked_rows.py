"""Rows that are kept by whether others are there for them are the same as joins as by marks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.sql import semi_joins as asked_rows
from dpsql.executors.sql import sources
from tests.executors.contract import differences, session

HAS = "EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.k = a.k AND b.x > a.x)"
ANY = "EXISTS (SELECT 1 FROM b WHERE b.who = a.who)"
LISTED = "a.k IN (SELECT k FROM p)"
KEPT = [
    HAS,
    f"NOT {HAS}",
    f"{HAS} AND a.x > 2 AND NOT {ANY}",
    f"NOT {ANY} AND a.k = 'u'",
    f"{ANY} AND NOT {HAS}",
    LISTED,
    f"{LISTED} AND {HAS}",
    "EXISTS (SELECT 1 FROM p WHERE p.k = a.k AND p.n > 2)",
    "a.who IN (SELECT who FROM b WHERE b.x > 3) AND a.x < 5",
    "NOT EXISTS (SELECT 1 FROM p WHERE p.n > 99)",
]
MARKED = [
    "a.k NOT IN (SELECT k FROM p)",
    "a.k NOT IN (SELECT k FROM p WHERE k IS NOT NULL)",
    "a.who NOT IN (SELECT who FROM b WHERE b.x > 3)",
    f"({HAS} OR a.x > 4)",
    f"{HAS} = FALSE",
]


@cache
def both() -> tuple[dpsql.Session, dpsql.Session]:
    rng = np.random.default_rng(8)
    made: dict[str, dpsql.Table] = {}
    for name, rows in (("a", 150), ("b", 60)):
        who = [None if each == 0 else int(each) for each in rng.integers(0, 40, rows)]
        data = {"who": pd.array(who, dtype="Int64"), "k": rng.choice(np.array(["u", "v", "w", None]), rows)}
        data["x"] = pd.array([None if each == 6 else int(each) for each in rng.integers(0, 7, rows)], dtype="Int64")
        words: dict[str, Any] = {"unit": "who", "max_rows": 3, "bounds": {"x": (0, 6), "who": (0, 99)}}
        made[name] = dpsql.Table(pd.DataFrame(data), **words, keys={"k": ["u", "v", "w"]})
    made["p"] = dpsql.Table(pd.DataFrame({"k": ["u", "v", None], "n": [1, 3, 5]}), public=True)
    return session(made, "duckdb"), session(made, "pandas")


def queries(conditions: list[str]) -> list[str]:
    of_rows = [f"SELECT COUNT(*), SUM(a.x), COUNT(DISTINCT a.who) FROM a WHERE {each}" for each in conditions]
    return of_rows + [f"SELECT a.k, COUNT(*) FROM a WHERE {each} GROUP BY a.k" for each in conditions]


def test_the_same_integers():
    assert differences(*both(), queries([*KEPT, *MARKED])) == []


@pytest.mark.parametrize(("conditions", "joined"), [(KEPT, True), (MARKED, False)], ids=["joins", "marks"])
def test_which_are_joins(conditions: list[str], joined: bool, monkeypatch: pytest.MonkeyPatch):
    for each in queries(conditions)[: len(conditions)]:
        asked: list[bool] = []
        honest = asked_rows.asked
        monkeypatch.setattr(sources, "asked", lambda node: asked.append(honest(node) is not None) or honest(node))  # noqa: B023
        assert differences(*both(), [each]) == []
        assert any(asked) is joined, each


def forget_null_in_lists(patch: pytest.MonkeyPatch) -> None:
    honest = asked_rows._kept

    def kept(mark: Any, terms: Any) -> bool | None:
        return honest(_Listless(mark), terms)

    patch.setattr(asked_rows, "_kept", kept)


class _Listless:
    of_list = False

    def __init__(self, mark: Any) -> None:
        self.column = mark.column


def keep_the_others(patch: pytest.MonkeyPatch) -> None:
    honest = asked_rows._kept
    patch.setattr(asked_rows, "_kept", lambda *given: None if (kept := honest(*given)) is None else not kept)


def forget_other_predicates(patch: pytest.MonkeyPatch) -> None:
    honest = sources.asked

    def asked(node: Any) -> Any:
        parts = honest(node)
        return parts and asked_rows.SemiJoin(parts.source, parts.marks, ())

    patch.setattr(sources, "asked", asked)


@pytest.mark.parametrize(
    "lie", [forget_null_in_lists, keep_the_others, forget_other_predicates], ids=lambda lie: lie.__name__
)
def test_a_broken_rule_is_seen(lie: Any, monkeypatch: pytest.MonkeyPatch):
    lie(monkeypatch)
    assert differences(*both(), queries([*KEPT, *MARKED])) != []
