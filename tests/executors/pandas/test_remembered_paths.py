"""Where a path to a unit leads is remembered with the table, for as long as the tables on it are the same objects."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.plan.nodes import Scan
from tests.lies import Patch, assert_caught

Stores = dict[str, ColumnStore]
ITEM_PATH = ("o", "orders", "o")


def tables(seed: int) -> dict[str, dict[str, list[Any]]]:
    """Customers of people, orders of customers and items of orders; some of nobody's, some keys not unique."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], rows: int) -> list[Any]:
        return [values[place] for place in rng.integers(0, len(values), rows)]

    return {
        "customers": {"c": [10, 20, 30, 40, None], "who": some([1, 2, 3, None], 5)},
        "orders": {"o": some([1, 2, 3, 4, 5, None], 12), "c": some([10, 20, 30, 40, 50, None], 12)},
        "items": {"o": some([1, 2, 3, 4, 5, 6, None], 40)},
    }


def stores_of(data: dict[str, dict[str, list[Any]]]) -> Stores:
    """The tables as an executor holds them."""
    said: dict[str, dict[str, Any]] = {
        "customers": {"unit": "who", "unique": ["c"], "max_rows": 9},
        "orders": {"unit": "c -> customers.c", "unique": ["o"], "max_rows": 9},
        "items": {"unit": "o -> orders.o", "max_rows": 9},
    }
    frames = {name: pd.DataFrame({key: pd.array(cells, dtype="Int64") for key, cells in each.items()})
              for name, each in data.items()}  # fmt: skip
    held = dpsql.Session(
        {name: dpsql.Table(frame, **said[name]) for name, frame in frames.items()}, budget=dpsql.Budget(1)
    )
    stores: Any = held._stores
    return {name.casefold(): store for name, store in stores.items()}


def led(stores: Stores) -> list[int | None]:
    """Whose each item is."""
    store = stores["items"]
    units = Database(stores)._units(Scan(store.schema), store)
    assert units.values is not None
    cells, valid = units.values.values, units.values.where_valid()
    return [None if code < 0 or not valid[code] else int(cells[code]) for code in units.numbers().tolist()]


def slow(data: dict[str, dict[str, list[Any]]]) -> list[int | None]:
    """The same, row by row: of several that have the key and are somebody's, the least person's."""
    customers = list(zip(data["customers"]["c"], data["customers"]["who"], strict=True))
    orders = list(zip(data["orders"]["o"], (_whose(each, customers) for each in data["orders"]["c"]), strict=True))
    return [_whose(each, orders) for each in data["items"]["o"]]


def _whose(key: int | None, rows: list[tuple[int | None, int | None]]) -> int | None:
    return min((who for other, who in rows if key is not None and other == key and who is not None), default=None)


@pytest.mark.parametrize("seed", range(6))
def test_against_plain_python(seed: int):
    data = tables(seed)
    stores = stores_of(data)
    assert led(stores) == led(stores) == slow(data)  # found, and remembered


def test_a_path_is_found_once():
    stores = stores_of(tables(0))
    led(stores)
    found = stores["items"].led[ITEM_PATH]
    led(stores)
    assert stores["items"].led[ITEM_PATH] is found


def _another_table_on_the_path(name: str) -> None:
    """The items stay the same object, and one table that their path leads through becomes another."""
    for seed in range(4):
        first, second = tables(seed), tables(seed + 100)
        second["customers"] = {"c": [20, 30, 50, 20, None], "who": [3, None, 2, 1, 1]}
        stores = stores_of(first)
        assert led(stores) == slow(first)
        stores[name] = stores_of(second)[name]
        changed = first | {name: second[name]}
        assert slow(changed) != slow(first)
        assert led(stores) == slow(changed)


@pytest.mark.parametrize("name", ["orders", "customers"])
def test_another_table_is_led_through_anew(name: str):
    _another_table_on_the_path(name)


def test_what_is_remembered_keeps_no_table():
    stores = stores_of(tables(0))
    led(stores)
    references, _ = stores["items"].led[ITEM_PATH]
    assert [each() for each in references] == [stores["orders"], stores["customers"]]
    del stores["orders"]
    gc.collect()
    assert references[0]() is None


def _never_anew(patch: Patch) -> None:
    patch.setattr(Database, "_along", lambda _self, _store: [])


def _first_table_alone(patch: Patch) -> None:
    patch.setattr(Database, "_along", lambda _self, store: [store])


@pytest.mark.parametrize(("lie", "name"), [(_never_anew, "orders"), (_first_table_alone, "customers")])
def test_lies_are_caught(lie: Any, name: str):
    assert_caught(lie, lambda: _another_table_on_the_path(name))
