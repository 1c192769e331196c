"""Predicates that are applied below look-ups: the same integers as if all rows had been looked up for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.gathering import some_of
from dpsql.executors.pandas.joins import early_filters as early
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.nodes import Source
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session

ITEMS = (
    "SELECT {} FROM items i JOIN orders o ON i.oid = o.oid JOIN people c ON o.who = c.who {} JOIN pub p ON i.k = p.k"
)
CONDITIONS = (
    "i.x > 6",
    "p.y > 4 AND i.x < 3",
    "c.age > 80 AND o.day < 5",
    "i.x IS NULL",
    "o.day + i.x > 99",
    "(i.x > 6 OR c.age > 70) AND p.name LIKE '%v%'",
)
WANTED = (
    "COUNT(*), SUM(i.x + o.day)",
    "p.name, COUNT(*), AVG(i.x), COUNT(DISTINCT o.day)",
    "i.k, COUNT(DISTINCT c.who), QUANTILE(i.x, 0.5)",
)
QUERIES = [
    ITEMS.format(wanted, kind)
    + f" WHERE {condition}"
    + ("" if wanted[1] == "O" else f" GROUP BY {wanted.split(',')[0]}")
    for kind in ("", "LEFT")
    for place, condition in enumerate(CONDITIONS)
    for wanted in (WANTED[place % 3], WANTED[(place + 1) % 3])
]


def tables(*, unique: bool = True) -> dict[str, dpsql.Table]:
    """People, orders and items. Without `unique` some orders have the number of another of the same person."""
    rng = np.random.default_rng(8)
    people = pd.DataFrame({"who": np.arange(40), "age": rng.integers(0, 99, 40)})
    orders = pd.DataFrame({"oid": np.arange(90), "who": rng.integers(0, 44, 90), "day": rng.integers(0, 9, 90)})
    if not unique:
        orders.loc[:40, ["oid", "who"]] = np.repeat(rng.integers(0, 5, 41)[:, None], 2, axis=1)
    items = pd.DataFrame({"oid": rng.integers(0, 95, 400), "k": rng.choice(["u", "v", "w", None], 400)})
    items["x"] = pd.array(rng.integers(0, 8, 400), "Int64")
    items.loc[rng.choice(400, 30), "x"] = pd.NA
    public = pd.DataFrame({"k": ["u", "v", "z"], "name": ["uv", "vw", "z"], "y": [1, 6, 7]})
    limits = {"max_rows": 6, "max_groups": 2}
    return {
        "people": dpsql.Table(people, unit="who", unique=["who"], bounds={"age": (0, 99)}, max_rows=1),
        "orders": dpsql.Table(orders, unit="who -> people.who", unique=["oid"], bounds={"day": (0, 9)}, **limits),
        "items": dpsql.Table(
            items, unit="oid -> orders.oid", bounds={"x": (0, 9)}, keys={"k": ["u", "v", "w", None]}, **limits
        ),
        "pub": dpsql.Table(public, public=True, unique=["k"], bounds={"y": (0, 9)}),
    }


def after_all(self: early.EarlyFilters, node: Source, rows: Relation) -> Relation:
    return rows


def test_the_same_integers_on_both_engines_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    honest = Relation.at
    with monkeypatch.context() as patch:
        patch.setattr(early.Relation, "at", lambda self, places: kept.append(len(places)) or honest(self, places))
        found = [insecure_exact(session(tables(), "pandas"), sql, KEY, **TERMS) for sql in QUERIES]
    assert len(kept) >= 2 * len(QUERIES)  # rows were left out
    assert differences(session(tables(), "duckdb"), session(tables(), "pandas"), QUERIES[::4]) == []
    monkeypatch.setattr(early.EarlyFilters, "after", after_all)
    assert [insecure_exact(session(tables(), "pandas"), sql, KEY, **TERMS) for sql in QUERIES] == found


@pytest.mark.parametrize("most", [1, 60, 1 << 22])
def test_pairs_of_keys_that_are_not_unique_are_counted_of_all_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a unit makes too many is decided by its rows that fail a predicate too."""
    monkeypatch.setattr(pairing, "MOST_PAIRS", most)
    held = session(tables(unique=False), "pandas")
    found = [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    monkeypatch.setattr(early.EarlyFilters, "after", after_all)
    assert [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES] == found


def test_to_count_them_of_the_rows_that_pass_gives_other_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "MOST_PAIRS", 60)
    held = session(tables(unique=False), "pandas")
    found = [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    monkeypatch.setattr(early.EarlyFilters, "give_up", lambda _: False)
    assert [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES] != found


def test_some_rows_of_a_column_are_read_in_windows() -> None:
    rng = np.random.default_rng(2)
    cells = pd.array(rng.integers(0, 99, 200_000), "Int64")
    cells[rng.choice(200_000, 50)] = pd.NA
    store = ColumnStore(pd.DataFrame({"v": cells}), TableSchema("t", (ColumnSchema("v", Type.INTEGER),)))
    whole = store.reader("v")(0, 200_000)
    for places in (
        np.array([7]),
        np.sort(rng.choice(200_000, 900)),
        np.arange(65_530, 131_080),
        np.array([0, 199_999]),
    ):
        read = some_of(store.reader("v"), places)
        for start, stop in ((0, len(places)), (0, 0), (len(places) // 3, len(places))):
            found, expected = read(start, stop), whole.at(places[start:stop])
            assert found.values.tolist() == expected.values.tolist()
            assert found.where_valid().tolist() == expected.where_valid().tolist()
