"""docs/units.md, the owner's page on privacy units, says what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema, MissingBounds
from dpsql.schema.table_declarations import TABLE_WORDS, TableWords
from dpsql.schema.units import WrittenUnit, unit_word_of


def shop(customers: int = 200) -> dict[str, pd.DataFrame]:
    """The tables of the shop that the manuals are about: customers, orders and items; products, labels and countries.

    Nobody has more than 20 orders or 60 items; product 20 has no label, and nobody lives in Sweden."""
    draw = np.random.default_rng(3)
    orders, items = 4 * customers, 8 * customers

    def text(words: list[str], size: int) -> pd.Series:
        return pd.Series(draw.choice(words, size), dtype="str")

    return {
        "customers": pd.DataFrame(
            {
                "id": np.arange(customers) + 1000,
                "country": text(["DE", "FR", "NO"], customers),
                "city": text(["Bremen", "Lyon", "Oslo"], customers),
                "age": draw.integers(17, 91, customers),
            }
        ),
        "orders": pd.DataFrame(
            {
                "id": np.arange(orders) * 3,
                "customer": draw.integers(1000, 1000 + customers, orders),
                "state": text(["open", "paid", "sent"], orders),
                "total": draw.integers(0, 2001, orders) / 4,
                "placed": pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 365, orders), unit="D"),
            }
        ),
        "items": pd.DataFrame(
            {
                "order_id": draw.integers(0, orders, items) * 3,
                "product": draw.integers(1, 21, items),
                "quantity": draw.integers(1, 10, items),
            }
        ),
        "products": pd.DataFrame(
            {
                "id": range(1, 21),
                "kind": pd.Series(["book", "toy", "food", "tool"] * 5, dtype="str"),
                "price": draw.integers(4, 200, 20) / 4,
            }
        ),
        "labels": pd.DataFrame({"product": [*range(1, 20), *range(1, 10)], "label": text(["new", "sale"], 28)}),
        "countries": pd.DataFrame(
            {
                "code": pd.Series(["DE", "FR", "NO", "SE"], dtype="str"),
                "name": pd.Series(["Germany", "France", "Norway", "Sweden"], dtype="str"),
                "nordic": [False, False, True, True],
            }
        ),
    }


ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "units.md").read_text(encoding="utf-8")
LARGE = 1e6
"""With this epsilon an answer is all but exact."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def table_of(heading: str) -> list[dict[str, str]]:
    """The rows of the table under a heading, cells by their columns."""
    section = re.split(r"\n#", PAGE.split(f"# {heading}\n")[1])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    titles, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    assert all(len(row) == len(titles) for row in rows)
    return [dict(zip(titles, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page's Python has made of the shop, when all of it has run."""
    held: dict[str, Any] = {"dpsql": dpsql, **shop()}
    for block in blocks("python"):
        exec(compile(block, "units.md", "exec"), held)
    return held


def test_every_block_is_run_and_every_link_leads_somewhere(names: dict[str, Any]) -> None:
    infos = re.findall(r"^```(.+)$", PAGE, flags=re.MULTILINE)
    assert set(infos) == {"python", "toml"}
    assert PAGE.count("```") == 2 * len(infos)
    assert names["session"].spent.epsilon == 1
    headings = re.findall(r"^#+ (.+)$", PAGE, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
    for file in re.findall(r"\]\(([^#)]+)\)", PAGE):
        assert (ROOT / "docs" / file).exists()


# Declarations.


def test_the_file_says_what_python_says(names: dict[str, Any]) -> None:
    (text,) = blocks("toml")
    schema = dpsql.Schema.from_dict(tomllib.loads(text))
    session = dpsql.Session(shop(), schema=schema)
    assert session.budget == names["session"].budget
    said, written = ({t.name: t for t in each.catalog.tables.values()} for each in (names["session"], session))
    assert said == written


def test_a_path_in_the_file_is_read(tmp_path: Path) -> None:
    shop()["orders"].to_csv(tmp_path / "orders.csv", index=False)
    file = tmp_path / "shop.toml"
    file.write_text('[tables.orders]\npath = "orders.csv"\nunit = "customer"\nmax_rows = 4\n', encoding="utf-8")
    session = dpsql.Session(schema=dpsql.Schema.from_toml(file), budget=dpsql.Budget(1))
    assert str(session.catalog.tables["orders"].by_name["customer"].type) == "text"


WORDS = table_of("Declaring it")


def test_every_word_has_a_row() -> None:
    assert [row["Word"].strip("`") for row in WORDS] == [*TABLE_WORDS]


@pytest.mark.parametrize("row", WORDS, ids=[row["Word"] for row in WORDS])
def test_a_word_is_written_so(row: dict[str, str]) -> None:
    made = eval(f"dict({row['Python'].strip('`')})")
    read = tomllib.loads(f"t = {{ {row['TOML'].strip('`')} }}")["t"]
    assert made == read
    unit = {} if "public" in made or "partition" in made else {"unit": "customer"}
    frame = shop()["orders"].assign(product=1, day=1)
    assert dpsql.Table(frame, **{**unit, **made}).declaration.table == TableWords.of(**{**unit, **made})


@pytest.mark.parametrize("declared", [row["Declare"] for row in table_of("Whose row is it")][1:])
def test_what_to_declare_is_taken(declared: str) -> None:
    said = eval(f"dict({declared.strip('`')})")
    frame = shop()["orders"].assign(person_id=1)
    assert dpsql.Table(frame, **said).declaration.table == TableWords.of(**said)


def test_names_with_signs_in_them() -> None:
    (written,) = re.findall(r"`(unit='.*?')`", PAGE)
    assert unit_word_of(eval(f"dict({written})")["unit"]) == WrittenUnit("my key", "my table", "id")


def test_tables_that_lead_elsewhere_come_together_or_later() -> None:
    tables = {
        "customers": dpsql.Table(shop()["customers"], unit="id", unique=["id"]),
        "orders": dpsql.Table(shop()["orders"], unit="customer -> customers.id", max_rows=4),
    }
    later = dpsql.Session({}, budget=dpsql.Budget(1))
    with pytest.raises(InvalidSchema, match="Add that table before this one"):
        later.add("orders", tables["orders"])
    for name, table in tables.items():
        later.add(name, table)
    assert later.tables == ("customers", "orders")


# Limits.


def explained(sql: str, strategy: str = "auto", **said: Any) -> dict[str, Any]:
    """What is told of a query over orders with these limits."""
    orders = dpsql.Table(shop()["orders"], unit="customer", bounds={"total": (0, 500)}, **said)
    asked = f"EXPLAIN PRIVACY {sql}"
    found: dict[str, Any] = dpsql.query({"orders": orders}, asked, epsilon=1, delta=1e-6, strategy=strategy).to_dict()
    return found


def limits_of(row: dict[str, str]) -> dict[str, int]:
    limits = {name: row[f"`{name}`"] for name in ("max_rows", "max_groups", "max_rows_per_group")}
    return {name: int(most) for name, most in limits.items() if most}


NORMS = table_of("Limits")


@pytest.mark.parametrize("row", NORMS, ids=str)
def test_norms_of_a_count_by_groups(row: dict[str, str]) -> None:
    said = limits_of(row)
    by_groups = explained("SELECT placed, COUNT(*) AS n FROM orders GROUP BY placed", **said)["releases"][0]
    norms = [by_groups["sensitivity"][name] for name in ("l1", "l2", "linf")]
    assert [f"{norm:.3g}" for norm in norms] == [row["L1"], row["L2"], row["L∞"]]
    laplace = by_groups["mechanism"] == "discrete_laplace"
    assert laplace == (float(row["L1"]) ** 2 < 10.3 * float(row["L2"]) ** 2), "10.3: the crossover at (1, 1e-6)"
    if laplace:
        assert by_groups["scale"] == pytest.approx(float(row["L1"]))
    grouped = explained("SELECT placed, SUM(total), COUNT(DISTINCT customer) FROM orders GROUP BY placed", **said)
    assert max(each["sensitivity"]["l1"] for each in grouped["releases"]) <= 500 * float(row["L1"])
    people = explained("SELECT placed, COUNT(DISTINCT customer) AS n FROM orders GROUP BY placed", **said)
    groups = said.get("max_groups", said.get("max_rows", 1))
    assert people["releases"][0]["sensitivity"]["l1"] == min(groups, said.get("max_rows", groups))
    alone = explained("SELECT COUNT(*) FROM orders", **said)["releases"][0]["sensitivity"]
    assert alone["l1"] == alone["linf"] == float(row["L∞"])


def test_few_public_groups_are_a_limit() -> None:
    keys = {"state": ["open", "paid", "sent"]}
    sql = "SELECT state, COUNT(DISTINCT customer) FROM orders GROUP BY state"
    assert explained(sql, "split", max_rows=20, keys=keys)["releases"][0]["sensitivity"]["l1"] == 3
    assert explained(sql, max_rows=20, keys=keys)["releases"][0]["sensitivity"]["linf"] == 0.5  # around the people


def test_bounded_neighbours_take_twice_the_noise() -> None:
    orders = dpsql.Table(shop()["orders"], unit="customer", max_rows=20)
    sql = "EXPLAIN PRIVACY SELECT placed, COUNT(*) FROM orders GROUP BY placed"
    found = dpsql.query({"orders": orders}, sql, epsilon=1, delta=1e-6, neighbours="bounded").to_dict()
    assert found["releases"][0]["scale"] == pytest.approx(40)


@pytest.mark.parametrize("said", [{}, {"max_groups": 4}, {"max_rows_per_group": 4}])
def test_a_unit_needs_limits(said: dict[str, int]) -> None:
    with pytest.raises(MissingBounds, match="any number of rows"):
        explained("SELECT placed, COUNT(*) FROM orders GROUP BY placed", **said)


CHOICES = table_of("How to choose max_rows")


@pytest.mark.parametrize("row", CHOICES, ids=str)
def test_what_a_limit_costs(row: dict[str, str]) -> None:
    orders, most = shop()["orders"], int(row["`max_rows`"])
    assert f"the shop's {len(orders)} orders at epsilon 1" in PAGE
    table = dpsql.Table(orders, unit="customer", max_rows=most)
    count = dpsql.query({"orders": table}, "SELECT COUNT(*) FROM orders", epsilon=LARGE).item()
    assert count == int(row["Orders that count"])
    width = explained("SELECT COUNT(*) FROM orders", max_rows=most)["columns"][0]["interval_95"]
    assert f"±{width:.0f}" == row["Noise, 95 %"]


def test_asking_how_many_rows_people_have_takes_no_limit(names: dict[str, Any]) -> None:
    asked = next(block for block in blocks("python") if "session.query" in block and "AS n FROM orders" in block)
    sql = asked.split('"""')[1]
    assert [each["sensitivity"]["l1"] for each in explained(sql)["releases"]] == [1]


# What is left out.


def of_one_person(rows: int, **said: Any) -> dpsql.Table:
    frame = pd.DataFrame({"who": [1] * rows, "amount": [1] * rows, "kind": ["a", "b"] * (rows // 2)})
    return dpsql.Table(frame, unit="who", bounds={"amount": (0, 100)}, keys={"kind": ["a", "b"]}, **said)


def answer(table: dpsql.Table | dict[str, dpsql.Table], sql: str) -> list[Any]:
    tables = table if isinstance(table, dict) else {"t": table}
    (row,) = dpsql.query(tables, sql, epsilon=LARGE)
    return [round(cell) for cell in row]


def test_totals_are_clipped_where_it_costs_nothing() -> None:
    table = of_one_person(50, max_rows=4)
    assert answer(table, "SELECT COUNT(*), SUM(amount) FROM t") == [4, 50]
    assert answer(table, "SELECT COUNT(*), SUM(amount), AVG(amount) FROM t") == [4, 4, 1], "not beside an AVG"
    said = str(dpsql.query({"t": table}, "EXPLAIN PRIVACY SELECT SUM(amount) FROM t", epsilon=1))
    assert "all rows of each who, of which one number counts" in said
    assert "total of each who in SUM(amount) to [0, 400]" in said


@pytest.mark.parametrize(("said", "total"), [({"max_groups": 2, "max_rows_per_group": 2}, 50), ({"max_rows": 4}, 4)])
def test_totals_are_clipped_by_groups_where_limits_allow(said: dict[str, int], total: int) -> None:
    sql = "SELECT SUM(total) FROM (SELECT kind, SUM(amount) AS total FROM t GROUP BY kind)"
    assert answer(of_one_person(50, **said), sql) == [total]


def test_two_queries_leave_out_different_rows() -> None:
    frame = pd.DataFrame({"who": [1] * 40, "amount": range(40)})
    table = dpsql.Table(frame, unit="who", max_rows=1, bounds={"amount": (0, 100)})
    found = {answer(table, "SELECT SUM(amount) FROM t")[0] for _ in range(20)}
    assert len(found) > 3, "one of forty rows, by a key of each query's own"
    assert found <= set(range(40))


def private(customers: pd.DataFrame, orders: pd.DataFrame, items: pd.DataFrame) -> dict[str, dpsql.Table]:
    return {
        "customers": dpsql.Table(customers, unit="id", unique=["id"]),
        "orders": dpsql.Table(orders, unit="customer -> customers.id", unique=["id"], max_rows=3),
        "items": dpsql.Table(items, unit="order_id -> orders.id", max_rows=10),
    }


def whole(*numbers: int | None) -> pd.Series:
    return pd.Series(numbers, dtype="Int64")


CUSTOMERS = pd.DataFrame({"id": whole(1, 2, 2, None)})
ORDERS = pd.DataFrame({"id": whole(10, 20, 20, 30, 40), "customer": whole(1, 2, 1, 9, None)})
ITEMS = pd.DataFrame({"order_id": whole(20, 20, 77, 40, None)})
ODD: dict[str, tuple[str, list[int]]] = {
    "a row whose unit is NULL": ("SELECT COUNT(*) FROM customers", [2]),
    "an order of a customer who is not in `customers`": ("SELECT COUNT(*) FROM orders WHERE customer = 9", [1]),
    "an item of an order that is not in `orders`": ("SELECT COUNT(*) FROM items", [2]),
    "an item of an order without a customer": (
        "SELECT COUNT(DISTINCT customer) FROM items JOIN orders ON order_id = orders.id",
        [1],
    ),
    "two orders with one `id`, though it is declared unique": (
        "SELECT SUM(CLAMP(customer, 0, 9)), COUNT(*) FROM items JOIN orders ON order_id = orders.id",
        [2, 2],
    ),
    "two customers with one `id`, though it is declared unique": ("SELECT COUNT(*) FROM customers WHERE id = 2", [1]),
    "a person with more rows than the limit": (
        "SELECT COUNT(*) FROM orders AS a JOIN orders AS b ON a.customer = b.customer WHERE a.customer = 1",
        [3],
    ),
}
NOBODY = table_of("Rows of nobody, and doubles")


@pytest.mark.parametrize("row", NOBODY, ids=[row["In the data"] for row in NOBODY])
def test_rows_that_do_not_fit(row: dict[str, str]) -> None:
    sql, expected = ODD[row["In the data"]]
    assert answer(private(CUSTOMERS, ORDERS, ITEMS), sql) == expected


def test_a_join_leaves_out_orders_of_unknown_customers() -> None:
    tables = private(CUSTOMERS, ORDERS, ITEMS)
    assert answer(tables, "SELECT COUNT(DISTINCT customer) FROM orders") == [3]
    assert answer(tables, "SELECT COUNT(DISTINCT customer) FROM orders JOIN customers ON customer = customers.id") == [
        2
    ]


# Public tables and groups.


@pytest.mark.parametrize("said", [{"unique": ["product"]}, {"max_matches": {"product": 1}}])
def test_public_tables_are_checked_when_they_are_added(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match=next(iter(said))):
        dpsql.Session({"labels": dpsql.Table(shop()["labels"], public=True, **said)}, budget=dpsql.Budget(1))


GROUPS = table_of("Groups that nobody has listed")


@pytest.mark.parametrize("row", GROUPS, ids=str)
def test_chances_to_be_shown(row: dict[str, str]) -> None:
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {row['`max_groups`']})"
    for items, column, strategy in (
        (
            "placed",
            "Shown, by keys alone",
            "TRUNCATED_GEOMETRIC" if row["`max_groups`"] == "1" else "WEIGHTED_GAUSSIAN",
        ),
        ("placed, COUNT(DISTINCT customer)", "Shown, beside a count", "LAPLACE_THRESHOLD"),
    ):
        groups = explained(f"SELECT {clause} {items} FROM orders GROUP BY placed", max_rows=20)["groups"]
        assert groups["strategy"] == strategy
        chance = 100 * groups["shown"][int(row["People in the group"])]
        assert row[column] == ("100 %" if chance > 99.95 else f"{chance:.1f} %")


# The promise.


def test_equal_values_are_one_unit_in_all_tables() -> None:
    tables = private(pd.DataFrame({"id": whole(7)}), pd.DataFrame({"id": whole(1), "customer": whole(7)}), ITEMS)
    both = "SELECT id AS who FROM customers UNION ALL SELECT customer FROM orders"
    assert answer(tables, f"SELECT COUNT(*), COUNT(DISTINCT who) FROM ({both})") == [2, 1]


# The README's section on the same.


def test_the_readme_shows_what_its_shop_answers() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## People with many rows")[1].split("\n## ")[0]
    code, text = re.findall(r"^```(?:python|text)\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)
    held: dict[str, Any] = {"dpsql": dpsql, "pd": pd}
    exec(compile(code, "README.md", "exec"), held)
    printed, shown = (
        [line.split("|")[1] for line in each.splitlines() if "|" in line] for each in (str(held["revenue"]), text)
    )
    assert printed == shown
    assert all(width in str(held["revenue"]) for width in re.findall(r"±\d+", text)), (
        "intervals follow from declarations"
    )
    orders = held["orders"].merge(held["customers"], left_on="customer", right_on="id")
    people = orders.groupby("country")["customer"].nunique()
    assert held["revenue"].df["people"].tolist() == pytest.approx([people["FR"], people["DE"], 0], abs=100)
