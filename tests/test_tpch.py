"""The TPC-H questions of examples/tpch over a made-up database of a few thousand rows, beside DuckDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import tpch  # noqa: E402 - of the benchmarks
import tpch_times  # noqa: E402 - of the benchmarks

NAMES = sorted(path.stem for path in (tpch.FOLDER / "queries").glob("q??.sql"))
EPSILON = 1e7
CUSTOMERS, PARTS, SUPPLIERS = 1500, 40, 30
NATIONS = ["BRAZIL", "CANADA", "FRANCE", "GERMANY", "SAUDI ARABIA", "CHINA", "INDIA", "JAPAN"]


def made_up() -> dict[str, pd.DataFrame]:
    """All tables: each customer has one order of one to three items, so that hardly any limit leaves something out."""
    draw = np.random.default_rng(7)
    keys = {name: np.arange(1, size + 1) for name, size in (("c", CUSTOMERS), ("p", PARTS), ("s", SUPPLIERS))}
    day = np.datetime64("1992-01-01")
    ordered = day + draw.integers(0, 2400, CUSTOMERS)
    lines = np.repeat(np.arange(CUSTOMERS), draw.integers(1, 4, CUSTOMERS))
    shipped = ordered[lines] + draw.integers(1, 120, len(lines))
    quantity = draw.integers(1, 51, len(lines)).astype(float)
    pairs = pd.MultiIndex.from_product([keys["p"], keys["s"]]).to_frame(index=False)
    text = np.array(["x"])

    def one_of(*words: str, size: int) -> Any:
        return draw.choice(np.array(words, dtype=object), size)

    return {
        "region": pd.DataFrame({"r_regionkey": [0, 1, 2], "r_name": ["AMERICA", "ASIA", "EUROPE"], "r_comment": "x"}),
        "nation": pd.DataFrame(
            {
                "n_nationkey": range(len(NATIONS)),
                "n_name": NATIONS,
                "n_regionkey": [0, 0, 2, 2, 1, 1, 1, 1],
                "n_comment": "x",
            }
        ),
        "supplier": pd.DataFrame(
            {
                "s_suppkey": keys["s"],
                "s_name": [f"Supplier#{key:09}" for key in keys["s"]],
                "s_address": "x",
                "s_nationkey": draw.integers(0, len(NATIONS), SUPPLIERS),
                "s_phone": "x",
                "s_acctbal": draw.uniform(-999, 9999, SUPPLIERS).round(2),
                "s_comment": "x",
            }
        ),
        "part": pd.DataFrame(
            {
                "p_partkey": keys["p"],
                "p_name": one_of("forest green", "green blue", "blue red", size=PARTS),
                "p_mfgr": "Manufacturer#1",
                "p_brand": one_of("Brand#12", "Brand#23", "Brand#34", size=PARTS),
                "p_type": one_of("PROMO BRUSHED STEEL", "ECONOMY ANODIZED STEEL", size=PARTS),
                "p_size": draw.integers(1, 16, PARTS),
                "p_container": one_of("MED BOX", "SM BOX", "LG BOX", size=PARTS),
                "p_retailprice": draw.uniform(901, 2098, PARTS).round(2),
                "p_comment": "x",
            }
        ),
        "partsupp": pd.DataFrame(
            {
                "ps_partkey": pairs[0],
                "ps_suppkey": pairs[1],
                "ps_availqty": draw.integers(1, 10_000, len(pairs)),
                "ps_supplycost": draw.uniform(1, 1000, len(pairs)).round(2),
                "ps_comment": "x",
            }
        ),
        "customer": pd.DataFrame(
            {
                "c_custkey": keys["c"],
                "c_name": "x",
                "c_address": "x",
                "c_nationkey": draw.integers(0, len(NATIONS), CUSTOMERS),
                "c_phone": [f"{code}-000-000-0000" for code in draw.integers(10, 35, CUSTOMERS)],
                "c_acctbal": draw.uniform(-999, 9999, CUSTOMERS).round(2),
                "c_mktsegment": one_of("BUILDING", "MACHINERY", size=CUSTOMERS),
                "c_comment": "x",
            }
        ),
        "orders": pd.DataFrame(
            {
                "o_orderkey": np.arange(CUSTOMERS) * 4 + 1,
                "o_custkey": keys["c"],
                "o_orderstatus": one_of("F", "O", "P", size=CUSTOMERS),
                "o_totalprice": draw.uniform(1_000, 700_000, CUSTOMERS).round(2),
                "o_orderdate": ordered,
                "o_orderpriority": one_of("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW", size=CUSTOMERS),
                "o_clerk": "x",
                "o_shippriority": 0,
                "o_comment": "x",
            }
        ),
        "lineitem": pd.DataFrame(
            {
                "l_orderkey": lines * 4 + 1,
                "l_partkey": draw.integers(1, PARTS + 1, len(lines)),
                "l_suppkey": draw.integers(1, SUPPLIERS + 1, len(lines)),
                "l_linenumber": pd.Series(lines).groupby(lines).cumcount() + 1,
                "l_quantity": quantity,
                "l_extendedprice": (quantity * draw.uniform(901, 2098, len(lines))).round(2),
                "l_discount": draw.integers(0, 11, len(lines)) / 100,
                "l_tax": draw.integers(0, 9, len(lines)) / 100,
                "l_returnflag": one_of("A", "N", "R", size=len(lines)),
                "l_linestatus": one_of("F", "O", size=len(lines)),
                "l_shipdate": shipped,
                "l_commitdate": shipped + draw.integers(-30, 30, len(lines)),
                "l_receiptdate": shipped + draw.integers(1, 30, len(lines)),
                "l_shipinstruct": one_of("DELIVER IN PERSON", "NONE", size=len(lines)),
                "l_shipmode": one_of("MAIL", "SHIP", "AIR", size=len(lines)),
                "l_comment": text[0],
            }
        ),
    }


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[dpsql.Session, duckdb.DuckDBPyConnection]]:
    connection = duckdb.connect()
    for name, frame in made_up().items():
        connection.register(f"{name}_frame", frame)
        dates = [each for each in frame.columns if each.endswith("date")]
        cast = f" REPLACE ({', '.join(f'{each}::DATE AS {each}' for each in dates)})" if dates else ""
        connection.execute(f"CREATE TABLE {name} AS SELECT *{cast} FROM {name}_frame")
    yield tpch.session(connection), connection
    connection.close()


def test_the_nineteen_questions_that_read_peoples_tables_are_there() -> None:
    others = {"q02", "q11", "q16"}  # of public tables only
    assert set(NAMES) == {f"q{number:02}" for number in range(1, 23)} - others


@pytest.mark.parametrize("name", NAMES)
def test_a_question_is_answered_as_duckdb_answers_it(name: str, shop: tuple[dpsql.Session, Any]) -> None:
    """With hardly any noise; every group of the exact answer is there, with its values where no limit is met."""
    held, connection = shop
    query = tpch.read(name)
    truth = tpch.exact_answer(connection, query, tpch.LIMIT.sub("", query.exact))
    noisy = tpch.private_answer(held, query, EPSILON)
    assert list(noisy.columns) == list(tpch.exact_answer(connection, query).columns)
    if name == "q15":  # cut to the largest
        assert len(noisy) <= len(truth)
        return
    if name == "q22":  # groups by constants of IN, shown without customers too
        counts = dict(zip(truth["cntrycode"], truth["numcust"], strict=True))
        assert [counts.get(code, 0) for code in noisy["cntrycode"]] == noisy["numcust"].tolist()
        assert len(noisy) == 7
        return
    assert tpch.named(noisy, truth, query.keys) == 1
    if "max_rows_contributed = 1)" in query.sql:
        return
    errors = tpch.relative_errors(noisy, truth, query.keys).fillna(0)
    assert (errors.to_numpy() < 0.05).all(), errors.describe()


@pytest.fixture(scope="module")
def stored(
    shop: tuple[dpsql.Session, duckdb.DuckDBPyConnection], tmp_path_factory: pytest.TempPathFactory
) -> dpsql.Session:
    """The same tables as Parquet files, asked where they lie."""
    folder = tmp_path_factory.mktemp("shop")
    for name in tpch.TABLES:
        shop[1].execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return tpch_times.sessions(folder, ["duckdb"])["duckdb"]


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_gives_the_same_integers(
    name: str, shop: tuple[dpsql.Session, duckdb.DuckDBPyConnection], stored: dpsql.Session
) -> None:
    query = tpch.read(name)
    assert stored._engine.name == "duckdb"
    assert tpch_times.same({"pandas": shop[0], "duckdb": stored}, query) == "yes"


def test_other_integers_are_noticed(shop: tuple[dpsql.Session, duckdb.DuckDBPyConnection], tmp_path: Path) -> None:
    for name in tpch.TABLES:
        shop[1].execute(f"COPY (FROM {name} LIMIT 1000) TO '{tmp_path}/{name}.parquet' (FORMAT parquet)")
    fewer = tpch_times.sessions(tmp_path, ["duckdb"])["duckdb"]
    assert tpch_times.same({"pandas": shop[0], "duckdb": fewer}, tpch.read("q01")) == "NO"


def test_the_limits_decide_how_much_noise_there_is(shop: tuple[dpsql.Session, Any]) -> None:
    held, _ = shop
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {}) COUNT(*) AS n FROM lineitem"
    widths = [held.explain(sql.format(rows), epsilon=1).to_dict()["columns"][0]["interval_95"] for rows in (1, 4, 16)]
    assert widths[0] < widths[1] < widths[2]
    assert 3.5 < widths[1] / widths[0] < 4.5
