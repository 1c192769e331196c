"""A record of an aggregate that says something wrong of what is added up is a wrong answer or a refusal, and no leak:
how far a unit moves what is measured is derived from the parts that are measured."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dpsql.errors import DPSQLError
from dpsql.plan.aggregates import AGGREGATES
from dpsql.session import prepare
from dpsql.sql.syntax import spellings
from tests.core.checks import B, U
from tests.core.test_statistics_neighbours import check_query

LIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("COUNT", {"moments": "s"}),
    ("COUNT", {"moments": "", "distinct": True, "estimate": None}),
    ("COUNT(DISTINCT)", {"moments": "n", "distinct": False, "estimate": AGGREGATES["COUNT"].estimate}),
    ("COUNT(DISTINCT)", {"moments": "s", "distinct": False, "estimate": AGGREGATES["COUNT"].estimate}),
    ("SUM", {"moments": "n"}),
    ("SUM", {"moments": "ns"}),
    ("SUM", {"moments": "nsq", "without_interval": "a lie"}),
    ("AVG", {"moments": "s"}),
    ("AVG", {"moments": "nsq", "without_interval": "a lie"}),
    ("VAR_POP", {"moments": "n"}),
    ("VAR_POP", {"moments": "ns"}),
    ("COVAR_POP", {"moments": "nsqtrp"}),
    ("COVAR_POP", {"moments": "ns"}),
    ("CORR", {"moments": "nst"}),
    ("CORR", {"moments": "nsq"}),
    ("REGR_SLOPE", {"moments": "nstp"}),
)
GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-6}
QUERIES = (
    "SELECT COUNT(*), SUM(p), AVG(x) FROM t",
    "SELECT COUNT(y), SUM(y), VAR_POP(y) FROM t GROUP BY g",
    "SELECT COUNT(DISTINCT p), AVG(n) FROM t WHERE x > 0",
    "SELECT CORR(x, p), COVAR_POP(x, p), SUM(x) FROM t",
    "SELECT REGR_SLOPE(y, n), COUNT(DISTINCT n) FROM t GROUP BY b",
)


@pytest.fixture
def lie(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = request.param
    monkeypatch.setitem(AGGREGATES, name, replace(AGGREGATES[name], **wrong))
    for node, each in spellings._read_aggregates().items():
        monkeypatch.setitem(spellings.AGGREGATE_NODES, node, each)  # type: ignore[arg-type]
    prepare._cache.clear()


@pytest.mark.parametrize("lie", LIES, indirect=True, ids=[f"{name}-{place}" for place, (name, _) in enumerate(LIES)])
@pytest.mark.usefixtures("lie")
def test_nothing_moves_further_than_is_declared():
    checked = 0
    for place, sql in enumerate(QUERIES):
        for relation, how in (((U, B)[place % 2], {}), ((B, U)[place % 2], GAUSSIAN)):
            with suppress(DPSQLError):  # refused before any row is read
                check_query(sql, relation, **how)
                checked += 1
    prepare._cache.clear()
    assert checked >= 4
