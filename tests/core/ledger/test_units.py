"""A ledger holds whose rows its tables hold: sessions that say otherwise are refused, whoever was first."""

import os
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.units import Place, TableUnit, UnitKind, check_units
from dpsql.errors import InvalidSchema, LedgerError
from tests.core.ledger import checks
from tests.core.ledger.checks import needs_fork

COUNT = "SELECT COUNT(*) FROM orders"
ORDERS = pd.DataFrame(
    {"Id": range(40), "customer": [k % 10 for k in range(40)], "name": [f"c{k % 10}" for k in range(40)]}
)
CUSTOMERS = pd.DataFrame({"id": range(10), "house": [k // 2 for k in range(10)], "code": [f"c{k}" for k in range(10)]})
ROW: dict[str, Any] = {}
UNIT = {"unit": "customer", "max_rows": 4}


def tables(orders: dict[str, Any], customers: dict[str, Any] | None = None, name: str = "orders") -> dict[str, Any]:
    made = {name: dpsql.Table(ORDERS, **orders)}
    return made if customers is None else {**made, "customers": dpsql.Table(CUSTOMERS, **customers)}


PEOPLE = {"unit": "id", "unique": ["id", "code"], "max_rows": 1}
BY_PATH = {"unit": "customer -> customers.id", "max_rows": 4}
HOUSES = {"unit": "house", "unique": ["id", "code"], "max_rows": 9}
DECLARED: dict[str, dict[str, Any]] = {
    "rows": tables(ROW),
    "a column": tables(UNIT),
    "another column": tables({"unit": "Id", "max_rows": 1}),
    "a column of another type": tables({**UNIT, "types": {"customer": "real"}}),
    "public": tables({"public": True}),
    "a path": tables(BY_PATH, PEOPLE),
    "a path to houses": tables(BY_PATH, HOUSES),
    "a path by another column": tables({"unit": "name -> customers.code", "max_rows": 4}, HOUSES),
    "a path by keys of another type": tables(
        {**BY_PATH, "types": {"customer": "real"}}, {**HOUSES, "types": {"id": "real"}}
    ),
    "a path to houses of another type": tables(BY_PATH, {**HOUSES, "types": {"house": "real"}}),
}


def opened(path: Path | None, made: dict[str, Any], **more: Any) -> dpsql.Session:
    return dpsql.Session(made, **{"budget": Budget(100, 1e-3), "ledger": path, **more})


def units(path: Path) -> list[tuple[str, str]]:
    return [(line["table"], line["unit"]) for line in checks.texts(path) if line["kind"] == "unit"]


@pytest.mark.parametrize("other", DECLARED)
@pytest.mark.parametrize("first", DECLARED)
def test_a_session_that_declares_another_unit_is_refused(tmp_path: Path, first: str, other: str):
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED[first]) as asked:
        asked.query(COUNT, epsilon=1)
    before = path.read_bytes()
    if first == other:
        with opened(path, DECLARED[other]) as asked:
            asked.query(COUNT, epsilon=2)
        return
    with pytest.raises(LedgerError, match="another privacy unit") as caught:
        opened(path, DECLARED[other])
    assert "orders" in str(caught.value) or "customers" in str(caught.value)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_rows_and_a_unit_of_one_row_each_are_different(tmp_path: Path):
    """Both ways round: that each unit has one row is a limit today, and may be another tomorrow."""
    pair = [tables(ROW), tables({"unit": "Id", "max_rows": 1, "unique": ["Id"]})]
    for number, (first, other) in enumerate([pair, pair[::-1]]):
        path = tmp_path / f"{number}.ledger"
        with opened(path, first) as asked:
            asked.query(COUNT, epsilon=1)
        with pytest.raises(LedgerError, match="another privacy unit"):
            opened(path, other)


READ = {  # each with a public table that stands beside people's rows
    "joined": "SELECT COUNT(*) FROM orders JOIN names ON name = code",
    "in": "SELECT COUNT(*) FROM orders WHERE name IN (SELECT code FROM names)",
    "not in": "SELECT COUNT(*) FROM orders WHERE name NOT IN (SELECT code FROM names WHERE house > 2)",
    "exists": "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM names WHERE house > 2)",
    "in an aggregate": "SELECT SUM(CASE WHEN name IN (SELECT code FROM names) THEN 1 ELSE 0 END) FROM orders",
    "a value": "SELECT COUNT(*) FROM orders WHERE customer > (SELECT MIN(house) FROM names)",
    "a value of a join": (
        "SELECT COUNT(*) FROM orders "
        "WHERE customer > (SELECT MIN(n.house) FROM names AS n JOIN names AS m ON n.id = m.id)"
    ),
    "a value in a value": (
        "SELECT COUNT(*) FROM orders "
        "WHERE customer > (SELECT MIN(k) FROM others WHERE k > (SELECT MIN(house) FROM names))"
    ),
    "a value that marks": (
        "SELECT COUNT(*) FROM orders WHERE customer > (SELECT MIN(k) FROM others WHERE k IN (SELECT house FROM names))"
    ),
    "a value in an aggregate": "SELECT SUM(CLAMP(customer, 0, (SELECT MAX(house) FROM names))) FROM orders",
    "a value in a CTE": (
        "WITH o AS (SELECT customer FROM orders WHERE customer > (SELECT MIN(house) FROM names)) SELECT COUNT(*) FROM o"
    ),
    "alone": "SELECT COUNT(*), MAX(house) FROM names",
}


def check_public_tables_are_held(folder: Path, *names: str) -> None:
    """In whatever way a query reads a public table, also where it leaves no more than a constant in the plan."""
    for name in names or READ:
        path = folder / f"{name}.ledger"
        others = dpsql.Table(pd.DataFrame({"k": [1, 2]}), public=True)
        public = {"names": dpsql.Table(CUSTOMERS, public=True, unique=["id", "code"]), "others": others}
        with opened(path, {**DECLARED["a column"], **public}) as asked:
            asked.query(READ[name], epsilon=1)
        assert ("names", "public") in units(path)
        with pytest.raises(LedgerError, match="another privacy unit"):
            opened(path, {"names": dpsql.Table(CUSTOMERS)})


@pytest.mark.parametrize("name", READ)
def test_a_public_table_that_is_read_is_held(tmp_path: Path, name: str):
    check_public_tables_are_held(tmp_path, name)


def test_a_public_table_that_is_not_read_is_not_held(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with opened(path, {**DECLARED["a column"], "names": dpsql.Table(CUSTOMERS, public=True)}) as asked:
        asked.query(COUNT, epsilon=1)
    opened(path, {"names": dpsql.Table(CUSTOMERS)})


@pytest.mark.parametrize("other", ["rows", "public", "another column", "a path to houses"])
def test_a_table_that_is_added(tmp_path: Path, other: str):
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED["a column"]) as asked:
        asked.query(COUNT, epsilon=1)
    made = dict(DECLARED[other])
    orders = made.pop("orders")
    with opened(path, made) as asked:
        with pytest.raises(LedgerError, match="another privacy unit"):
            asked.add("Orders", orders)
        assert "Orders" not in asked.tables
        asked.add("ORDERS", tables(UNIT)["orders"])
        asked.query(COUNT, epsilon=2)


@pytest.mark.parametrize("other", [name for name in DECLARED if name != "a column"])
@pytest.mark.parametrize("first", ["a column", "turned round"])
def test_sessions_that_are_open_both(tmp_path: Path, first: str, other: str):
    """The one that is charged first decides; the other is refused with its first charge, in the same transaction."""
    path = tmp_path / "a.ledger"
    pair = [DECLARED["a column"], DECLARED[other]]
    with opened(path, pair[0]) as one, opened(path, pair[1]) as two:
        quick, slow = (one, two) if first == "a column" else (two, one)
        quick.query(COUNT, epsilon=1)
        before = path.read_bytes()
        for _ in range(2):
            with pytest.raises(LedgerError, match="another privacy unit"):
                slow.query(COUNT, epsilon=1)
        assert path.read_bytes() == before
        assert len(quick.ledger()) == 1
        quick.query(COUNT, epsilon=2)


@needs_fork
def test_processes_that_race(tmp_path: Path):
    path = tmp_path / "a.ledger"
    names = ["rows", "a column", "public", "another column"] * 2
    opened(path, {}).close()

    def ask(name: str) -> list[Any]:
        with opened(path, DECLARED[name]) as asked:
            os.write(ready[1], b" ")
            os.read(go[0], 1)
            try:
                asked.query(COUNT, epsilon=1, fresh=True)
            except LedgerError:
                return [name, False]
            return [name, True]

    ready, go = os.pipe(), os.pipe()
    children = [checks.fork_to_say(lambda name=name: ask(name)) for name in names]
    for _ in names:
        os.read(ready[0], 1)  # all have opened the ledger, which held nothing
    os.write(go[1], b" " * len(names))
    said = [child.said() for child in children]
    assert len({name for name, answered in said if answered}) == 1, said
    assert len(checks.charges(path)) == sum(answered for _, answered in said) == 2
    assert len(units(path)) == 1


def test_threads_over_a_ledger_in_memory():
    """Without a file too: two declarations cannot both be charged."""
    ledger, found = Ledger(checks.rules()), []
    kinds = [TableUnit("t", UnitKind.ROW), TableUnit("t", UnitKind.PUBLIC)] * 8

    def charge(unit: TableUnit) -> None:
        try:
            ledger.charge(checks.TENTH, "q", units=[unit])
            found.append(unit)
        except LedgerError:
            pass

    threads = [threading.Thread(target=charge, args=(unit,)) for unit in kinds]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(found)) == 1
    assert len(found) == len(ledger.entries) == 8


def test_in_memory_a_table_that_is_added_keeps_its_unit():
    with opened(None, DECLARED["a path to houses"]) as asked:
        asked.query(COUNT, epsilon=1)
        asked.add("other", dpsql.Table(ORDERS, public=True))
        with pytest.raises(InvalidSchema):
            asked.add("orders", dpsql.Table(ORDERS, public=True))
        assert len(asked.ledger()) == 1


def test_limits_versions_and_all_else_may_differ(tmp_path: Path):
    path = tmp_path / "a.ledger"
    words = [
        UNIT,
        {**UNIT, "max_rows": 9, "version": "2"},
        {**UNIT, "unit": "CUSTOMER", "max_groups": 2, "bounds": {"Id": (0, 5)}, "keys": {"name": ["a"]}},
        {**UNIT, "types": {"Id": "real"}, "unique": ["Id"]},
    ]
    for number, each in enumerate(words, 1):
        with opened(path, tables(each, name="orders" if number % 2 else "ORDERS")) as asked:
            asked.query(COUNT, epsilon=1, fresh=True)
            assert len(asked.ledger()) == number
    assert units(path) == [("orders", "column")]


def test_what_is_written_is_what_a_query_reads(tmp_path: Path):
    """Tables that a query reads, with those on the way to a unit; not those that it leaves alone."""
    path = tmp_path / "a.ledger"
    made = {
        **DECLARED["a path to houses"],
        "lists": dpsql.Table(pd.DataFrame({"k": [1, 2]}), public=True),
        "other": dpsql.Table(CUSTOMERS),
    }
    with opened(path, made) as asked:
        assert units(path) == []
        asked.explain(COUNT, epsilon=1)
        assert units(path) == []
        asked.query("SELECT COUNT(*) FROM orders WHERE customer IN (SELECT k FROM lists)", epsilon=1)
        assert units(path) == [("customers", "column"), ("lists", "public"), ("orders", "path")]
        asked.query("SELECT COUNT(*) FROM other", epsilon=1)
        assert units(path)[3:] == [("other", "row")]
        asked.query("SELECT COUNT(*) FROM other", epsilon=2)
        assert len(units(path)) == 4
    line = next(line for line in checks.texts(path) if line.get("table") == "orders")
    assert line["path"] == [
        ["orders", "customer", "integer"],
        ["customers", "id", "integer"],
        ["customers", "house", "integer"],
    ]


def test_a_table_on_the_way_to_a_unit_is_held_too(tmp_path: Path):
    """Its rows tell whose the others are, so it cannot become public, nor have rows of its own."""
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED["a path to houses"]) as asked:
        asked.query(COUNT, epsilon=1)
    for words in ({"public": True}, {}, PEOPLE):
        with pytest.raises(LedgerError, match='"customers"'):
            opened(path, {"customers": dpsql.Table(CUSTOMERS, **words)})


def test_a_public_table_that_is_free_is_held_too(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED["public"]) as asked:
        asked.query("SELECT COUNT(*) FROM orders", epsilon=1)
    with pytest.raises(LedgerError, match="It has:  public"):
        opened(path, DECLARED["rows"])


def test_a_session_that_is_refused_lets_go_of_the_file(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED["rows"]) as asked:
        asked.query(COUNT, epsilon=1)
    for _ in range(3):
        with pytest.raises(LedgerError):
            opened(path, DECLARED["public"])
    path.unlink()  # on some systems an open file cannot be


def test_the_message_says_both(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with opened(path, DECLARED["a path to houses"]) as asked:
        asked.query(COUNT, epsilon=1)
    with pytest.raises(LedgerError) as caught:
        opened(path, DECLARED["rows"])
    assert str(caught.value).splitlines()[:3] == [
        'table "orders" has another privacy unit in this ledger.',
        "It has:  the unit is orders.customer (integer) -> customers.id (integer) -> customers.house (integer)",
        "Asked for: each row is a unit of its own",
    ]


def test_a_chain_with_two_units_of_a_table_is_refused(tmp_path: Path):
    """Nothing writes it, whoever made its hashes."""
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, checks.rules())
    ledger.charge(checks.TENTH, "q", units=[TableUnit("t", UnitKind.ROW)])
    ledger.charge(checks.TENTH, "q", units=[TableUnit("u", UnitKind.PUBLIC)])
    ledger.close()
    checks.edit(path, 'UPDATE lines SET text = replace(text, \'"table":"u"\', \'"table":"t"\')')
    checks.rehash(path)
    with pytest.raises(LedgerError):
        open_ledger(path)


@pytest.mark.parametrize(
    ("kind", "columns"), [("row", 1), ("public", 1), ("column", 0), ("column", 2), ("path", 1), ("path", 2)]
)
def test_units_that_are_none(kind: str, columns: int):
    with pytest.raises(ValueError, match="no unit"):
        TableUnit("t", UnitKind(kind), (Place("t", "a", "text"),) * columns)
    with pytest.raises(ValueError, match="no unit"):
        TableUnit("", UnitKind.ROW)


def test_units_that_agree_are_taken():
    held = {"t": TableUnit("t", UnitKind.ROW)}
    check_units(held, [TableUnit("t", UnitKind.ROW), TableUnit("u", UnitKind.PUBLIC)])
