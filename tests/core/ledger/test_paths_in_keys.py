"""Whose a row is follows from the tables on its unit's path: they are asked about, though no scan reads them."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.schema.columns import TableSchema
from dpsql.session.cache import canonical_forms

CUSTOMERS = pd.DataFrame({"customer": [1, 2, 3], "region": ["a", "b", "a"]})
ITEMS = pd.DataFrame({"of": range(100)})
OF_MANY = pd.DataFrame({"order": range(100), "by": [i % 50 for i in range(100)]})
OF_ONE = pd.DataFrame({"order": range(100), "by": [1] * 100})
COUNT = "SELECT COUNT(*) AS n FROM items"


def session(ledger: Path, orders: pd.DataFrame, **words: Any) -> dpsql.Session:
    said = {"unique": ["order"], "max_rows": 100, **words}
    return dpsql.Session(
        {
            "customers": dpsql.Table(CUSTOMERS, unit="customer", unique=["customer"]),
            "orders": dpsql.Table(orders, unit="by -> customers.customer", **said),
            "items": dpsql.Table(ITEMS, unit="of -> orders.order", max_rows=2, version="1"),
        },
        budget=dpsql.Budget(10_000),
        ledger=ledger,
    )


def test_a_table_on_the_way_that_has_another_version_is_another_question(tmp_path: Path):
    with session(tmp_path / "ledger", OF_MANY, version="1") as first:
        assert first.query(COUNT, epsilon=100).to_pandas().n[0] > 50
    with session(tmp_path / "ledger", OF_ONE, version="2") as second:
        result = second.query(COUNT, epsilon=100)
        assert not result.replayed
        assert result.to_pandas().n[0] < 50  # one person has all of them now, and two count
    with session(tmp_path / "ledger", OF_MANY, version="1") as third:
        assert third.query(COUNT, epsilon=100).replayed


@pytest.mark.parametrize("orders", [OF_MANY, OF_ONE], ids=["many", "one"])
def test_a_table_on_the_way_without_a_version_is_asked_for_one_session(tmp_path: Path, orders: pd.DataFrame):
    with session(tmp_path / "ledger", OF_MANY) as first:
        first.query(COUNT, epsilon=100)
        assert first.query(COUNT, epsilon=100).replayed
    with session(tmp_path / "ledger", orders) as second:
        assert not second.query(COUNT, epsilon=100).replayed


def test_what_is_declared_of_a_table_on_the_way_is_asked_about(tmp_path: Path):
    with session(tmp_path / "ledger", OF_MANY, version="1") as first:
        first.query(COUNT, epsilon=100)
    with session(tmp_path / "ledger", OF_MANY, version="1", bounds={"order": (0, 9)}) as second:
        assert not second.query(COUNT, epsilon=100).replayed


def test_a_table_whose_key_is_the_unit_itself_is_not_asked_about(tmp_path: Path):
    """`by` holds the unit: nothing is looked up among the customers, who have no version."""
    with session(tmp_path / "ledger", OF_MANY, version="1") as first:
        first.query("SELECT COUNT(*) AS n FROM orders", epsilon=100)
    with session(tmp_path / "ledger", OF_MANY, version="1") as second:
        assert second.query("SELECT COUNT(*) AS n FROM orders", epsilon=100).replayed


def test_tables_without_a_form_have_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Then nothing is replayed, and nothing fails."""
    with session(tmp_path / "ledger", OF_MANY, version="1") as first:
        monkeypatch.delitem(canonical_forms.FORMS, TableSchema)
        first.query(COUNT, epsilon=100)
        assert not first.query(COUNT, epsilon=100).replayed
