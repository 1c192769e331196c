"""A mark looks at the rows that predicates above it let pass: the same integers as if it had looked at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core import row_limits
from dpsql.executors.pandas import database
from dpsql.executors.pandas.joins import pairing
from dpsql.session import prepare
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session

QUERIES = [
    f"SELECT COUNT(*), SUM(x) FROM a WHERE {condition} AND {asked}"
    for condition in ("x > 3", "x > 3 AND k = 'u'", "x > 99", "NOT (x = 2)", "x IS NULL")
    for asked in (
        "EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.x > a.x)",
        "NOT EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.k = a.k AND b.x <> a.x)",
        "who IN (SELECT who FROM b WHERE x > 2)",
        "who NOT IN (SELECT who FROM b WHERE x > 2)",
        "EXISTS (SELECT 1 FROM p WHERE p.k = a.k AND p.y > a.x)",
        "k NOT IN (SELECT k FROM p WHERE y > 2)",
        "(EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.x > a.x) OR x > 5)",
        "EXISTS (SELECT 1 FROM b WHERE b.who = a.who AND b.x > a.x) AND NOT EXISTS (SELECT 1 FROM p WHERE p.y = a.x)",
    )
]


def tables() -> dict[str, dpsql.Table]:
    rng = np.random.default_rng(4)
    made = {}
    for name, rows in (("a", 150), ("b", 120)):
        data = pd.DataFrame(
            {
                "who": pd.array(np.minimum(rng.geometric(0.2, rows), 15), "Int64"),
                "k": rng.choice(["u", "v", None], rows),
                "x": pd.array(rng.integers(0, 8, rows), "Int64"),
            }
        )
        data.loc[rng.choice(rows, 12), "x"] = pd.NA
        data.loc[rng.choice(rows, 12), "who"] = pd.NA
        made[name] = dpsql.Table(data, unit="who", max_rows=50, bounds={"x": (0, 9)}, keys={"k": ["u", "v"]})
    public = pd.DataFrame({"k": ["u", "v", "u"], "y": [1, 4, 6]})
    return made | {"p": dpsql.Table(public, public=True)}


def looks_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_rows(node: object, rows: object, inner: object, fan_out: int, only: object) -> object:
        return pairing.marked(node, rows, inner, fan_out)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "marked_among", all_rows)


@pytest.mark.parametrize("most", [1, 80, 1 << 22])
def test_the_same_integers(most: int, monkeypatch: pytest.MonkeyPatch):
    """Also where units make too many pairs, which all of their rows decide."""
    monkeypatch.setattr(pairing, "MOST_PAIRS", most)
    held = session(tables(), "pandas")
    answers = [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    looks_at_all(monkeypatch)
    assert answers == [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    assert len({str(each.parts) for each in answers}) > 10


def test_units_are_too_heavy_by_all_their_rows(monkeypatch: pytest.MonkeyPatch):
    """Rows that pass alone give other integers. Row limits move conditions below EXISTS, where these
    are all rows."""
    monkeypatch.setattr(row_limits, "limit_join_inputs", lambda plan, _options: plan)
    prepare._cache.clear()
    monkeypatch.setattr(pairing, "MOST_PAIRS", 80)
    held = session(tables(), "pandas")
    answers = [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    monkeypatch.setattr(pairing, "_all_light", lambda *_: True)
    assert answers != [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    prepare._cache.clear()
