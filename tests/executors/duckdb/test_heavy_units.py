"""A unit whose rows would make too many pairs in a join makes none, on either engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.sql import sources
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session

QUERIES = [
    "SELECT COUNT(*), SUM(a.x) FROM a JOIN b ON a.who = b.who",
    "SELECT COUNT(*), SUM(a.x) FROM a JOIN b ON a.who = b.who AND a.k = b.k",
    "SELECT COUNT(*), COUNT(b.x) FROM a LEFT JOIN b ON a.who = b.who AND a.k = b.k",
    "SELECT a.k, COUNT(*) FROM a JOIN b ON a.who = b.who WHERE b.x > 2 GROUP BY a.k",
    "SELECT COUNT(*) FROM a JOIN a AS c ON a.who = c.who AND a.k = c.k JOIN b ON b.who = a.who",
    "SELECT COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.x > a.x)",
    "SELECT COUNT(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.k = a.k AND b.x > a.x)",
    "SELECT COUNT(*), SUM(n) FROM (SELECT a.who, COUNT(*) AS n FROM a JOIN b ON a.who = b.who GROUP BY a.who) AS q",
    "SELECT COUNT(*) FROM a JOIN b ON a.who = b.who JOIN p ON a.k = p.k",
]


def tables() -> dict[str, dpsql.Table]:
    """People with few and with many rows."""
    rng = np.random.default_rng(6)
    made = {}
    for name, rows in (("a", 120), ("b", 150)):
        who = np.minimum(rng.geometric(0.25, rows), 12)
        data = pd.DataFrame({"who": who, "k": rng.choice(["u", "v"], rows), "x": rng.integers(0, 6, rows)})
        made[name] = dpsql.Table(
            data, unit="who", max_rows=2_000, bounds={"x": (0, 6), "who": (0, 99)}, keys={"k": ["u", "v"]}
        )
    public = pd.DataFrame({"k": ["u", "u", "v"]})
    return made | {"p": dpsql.Table(public, public=True, max_matches={"k": 2})}


@pytest.mark.parametrize("most", [1, 20, 150, 600, 1 << 22])
def test_the_same_units_are_left_out(most: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pairing, "MOST_PAIRS", most)
    monkeypatch.setattr(pairing, "MOST_FANNED_OUT", 2 * most)
    assert differences(session(tables(), "duckdb"), session(tables(), "pandas"), QUERIES) == []


def test_some_are(monkeypatch: pytest.MonkeyPatch):
    held = session(tables(), "duckdb")
    whole = insecure_exact(held, QUERIES[0], KEY, **TERMS).parts[()][0]
    monkeypatch.setattr(pairing, "MOST_PAIRS", 20)
    assert insecure_exact(held, QUERIES[0], KEY, **TERMS).parts[()][0] < whole


def test_to_let_all_in_is_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pairing, "MOST_PAIRS", 20)
    monkeypatch.setattr(sources, "most_pairs", lambda _fan_out: 1 << 40)
    assert differences(session(tables(), "duckdb"), session(tables(), "pandas"), QUERIES) != []
