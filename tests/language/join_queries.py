"""Tables of people and public ones that are joined in every way, and queries over them that DuckDB reads alike.

People: customers, their orders, the items of those; visits, notes and letters say whose they are by the customer's
number, in three numeric types. Logins and profiles have a text for a unit. Rows of nobody (no key, or one that leads
nowhere) are left out by dpsql, so `duck` has them not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import duckdb
import pandas as pd

import dpsql

CITIES = ["Ada", "Bern", "Cork"]
PRIOS = ["high", "low"]

# Columns with DuckDB's types.
COLUMNS: dict[str, dict[str, str]] = {
    "customer": {
        "c_custkey": "BIGINT",
        "c_name": "VARCHAR",
        "c_city": "VARCHAR",
        "c_nation": "BIGINT",
        "c_since": "DATE",
        "c_vip": "BOOLEAN",
        "c_balance": "DOUBLE",
    },
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_total": "DOUBLE",
        "o_prio": "VARCHAR",
        "o_date": "DATE",
        "o_code": "VARCHAR",
        "o_year": "BIGINT",
    },
    "items": {"i_orderkey": "BIGINT", "i_qty": "BIGINT", "i_prod": "BIGINT", "i_code": "VARCHAR", "i_back": "BOOLEAN"},
    "visits": {"v_custkey": "DOUBLE", "v_day": "DATE", "v_at": "TIMESTAMP", "v_spent": "DOUBLE", "v_code": "VARCHAR"},
    "notes": {"c_custkey": "BIGINT", "c_city": "VARCHAR", "stars": "BIGINT"},
    "logins": {"who": "VARCHAR", "site": "VARCHAR", "seconds": "BIGINT"},
    "profiles": {"who": "VARCHAR", "age": "BIGINT", "site": "VARCHAR"},
    "nobody": {"x_custkey": "BIGINT", "x_value": "BIGINT"},
    "nation": {"n_key": "BIGINT", "n_name": "VARCHAR", "n_region": "VARCHAR", "n_big": "BOOLEAN"},
    "prod": {"p_id": "DOUBLE", "p_kind": "VARCHAR", "p_price": "DOUBLE"},
    "tags": {"t_code": "VARCHAR", "t_kind": "VARCHAR", "t_weight": "BIGINT"},
    "rates": {"r_nation": "BIGINT", "r_year": "BIGINT", "r_rate": "DOUBLE"},
    "days": {"d_day": "DATE", "d_name": "VARCHAR"},
    "words": {"w_flag": "BOOLEAN", "w_word": "VARCHAR"},
    "gaps": {"g_key": "BIGINT", "g_code": "VARCHAR"},
    "nothing": {"z_key": "BIGINT", "z_code": "VARCHAR"},
}
PUBLIC = ("nation", "prod", "tags", "rates", "days", "words", "gaps", "nothing")

FACTS: dict[str, dict[str, Any]] = {
    "customer": {
        "unit": "c_custkey",
        "unique": ["c_custkey"],
        "max_rows": 1,
        "bounds": {"c_balance": (-50, 50), "c_nation": (0, 9), "c_custkey": (1, 60)},
        "keys": {"c_city": CITIES},
    },
    "orders": {
        "unit": "o_custkey -> customer.c_custkey",
        "unique": ["o_orderkey"],
        "max_rows": 100,
        "bounds": {"o_total": (0, 100), "o_year": (2019, 2022)},
        "keys": {"o_prio": PRIOS},
    },
    "items": {
        "unit": "i_orderkey -> orders.o_orderkey",
        "max_rows": 1000,
        "bounds": {"i_qty": (1, 9), "i_prod": (0, 12)},
    },
    "visits": {"unit": "v_custkey", "max_rows": 100, "bounds": {"v_spent": (0, 40)}},
    "notes": {"unit": "c_custkey", "max_rows": 100, "bounds": {"stars": (0, 5)}, "keys": {"c_city": CITIES}},
    "logins": {"unit": "who", "max_rows": 100, "bounds": {"seconds": (0, 60)}, "keys": {"site": ["s", "t"]}},
    "profiles": {"unit": "who", "unique": ["who"], "bounds": {"age": (0, 99)}},
    "nobody": {"unit": "x_custkey -> customer.c_custkey", "max_rows": 5, "bounds": {"x_value": (0, 9)}},
    "nation": {"unique": ["n_key"]},
    "prod": {"unique": ["p_id"]},
    "tags": {"max_matches": {"t_code": 3}},
    "rates": {"unique": [["r_nation", "r_year"]]},
    "days": {"unique": ["d_day"]},
    "words": {"unique": ["w_flag"]},
    "gaps": {},
    "nothing": {"unique": ["z_key"]},
}

Row = tuple[Any, ...]


def rows(seed: int = 3) -> dict[str, list[Row]]:
    """The rows of every table, with NULL wherever there may be some, and keys that lead nowhere."""
    rng = random.Random(seed)

    def maybe(value: Any, share: float = 0.15) -> Any:
        return None if rng.random() < share else value

    def day(first: int = 1, last: int = 8) -> date:
        return date(2020, 3, rng.randint(first, last))

    customers: list[Row] = [
        (
            key,
            maybe(f"name {key % 9}"),
            rng.choice(CITIES),
            maybe(rng.choice([1, 2, 3, 4, 8])),
            maybe(day()),
            maybe(rng.random() < 0.5),
            maybe(rng.randint(-200, 200) / 4),
        )
        for key in range(1, 41)
    ]
    customers.append((None, "nobody", "Ada", 1, day(), True, 1.0))
    orders: list[Row] = [
        (
            1000 + 7 * k,
            maybe(rng.choice([*range(1, 36), 55, 56]), 0.05),
            maybe(rng.randint(0, 400) / 4),
            rng.choice(PRIOS),
            maybe(day(1, 12)),
            maybe(rng.choice("abcdq")),
            maybe(rng.randint(2019, 2022)),
        )
        for k in range(120)
    ]
    items: list[Row] = [
        (
            maybe(rng.choice([*(order[0] for order in orders[:100]), 5]), 0.03),
            rng.randint(1, 9),
            maybe(rng.randint(0, 12)),
            maybe(rng.choice("abcz")),
            rng.random() < 0.3,
        )
        for _ in range(260)
    ]
    visits: list[Row] = [
        (
            maybe(float(rng.choice([*range(3, 40), 70])), 0.05),
            maybe(day()),
            maybe(datetime(2020, 3, rng.randint(1, 4), rng.randint(0, 23), 30)),
            maybe(rng.randint(0, 160) / 4),
            maybe(rng.choice("abq")),
        )
        for _ in range(90)
    ]
    notes: list[Row] = [(rng.randint(1, 44), rng.choice(CITIES), maybe(rng.randint(0, 5))) for _ in range(70)]
    users = [f"u{k}" for k in range(12)]
    logins: list[Row] = [(maybe(rng.choice([*users, "x", ""])), rng.choice("st"), rng.randint(0, 60)) for _ in range(60)]
    return {
        "customer": customers,
        "orders": orders,
        "items": items,
        "visits": visits,
        "notes": notes,
        "logins": logins,
        "profiles": [(user, maybe(rng.randint(0, 99)), maybe(rng.choice("st"))) for user in [*users[3:], "", "y"]],
        "nobody": [],
        "nation": [
            (1, "Peru", "S", False),
            (2, "Chad", "A", True),
            (3, "Oman", None, None),
            (4, "Fiji", "S", True),
            (5, "Mali", "A", False),
            (None, "Limbo", None, None),
        ],
        "prod": [(float(k), "xyz"[k % 3] if k % 5 else None, k / 2) for k in range(10)] + [(2.5, "half", 9.0)],
        "tags": [
            ("a", "old", 1),
            ("a", "new", 2),
            ("a", "new", None),
            ("b", "old", 3),
            ("c", None, 4),
            ("z", "new", 5),
            (None, "old", 6),
        ],
        "rates": [(n, y, n + y / 1000) for n in (1, 2, 3, 9) for y in (2019, 2020, 2021)] + [(1, None, 7.0)],
        "days": [(date(2020, 3, k), f"day {k % 3}") for k in range(1, 7)],
        "words": [(True, "yes"), (False, "no")],
        "gaps": [(1, "a"), (3, "b"), (None, "q"), (8, None), (3, "b")],
        "nothing": [],
    }


# Frames: whole numbers with NULL as Int64, text as str, dates as timestamps with a declared type.

_DTYPES = {"BIGINT": "Int64", "DOUBLE": "float64", "VARCHAR": "str", "BOOLEAN": "boolean"}


def _stored(values: list[Any], kind: str) -> pd.Series[Any]:
    if kind in ("DATE", "TIMESTAMP"):
        return pd.Series(pd.to_datetime(pd.Series(values, dtype=object)), dtype="datetime64[us]")
    whole = kind in ("BIGINT", "BOOLEAN") and None not in values
    return pd.Series(values, dtype={"BIGINT": "int64", "BOOLEAN": "bool"}[kind] if whole else _DTYPES[kind])


def frame(name: str, listed: list[Row]) -> pd.DataFrame:
    """The rows of a table in NumPy's dtypes where those hold them."""
    columns = COLUMNS[name]
    return pd.DataFrame(
        {column: _stored([row[at] for row in listed], kind) for at, (column, kind) in enumerate(columns.items())}
    )


def tables(
    data: dict[str, list[Row]], stored: Callable[[pd.DataFrame], pd.DataFrame] = lambda data: data
) -> dict[str, dpsql.Table]:
    """Every table with what its owner declares."""
    made = {}
    for name, listed in data.items():
        types = {column: "date" for column, kind in COLUMNS[name].items() if kind == "DATE"}
        public = True if name in PUBLIC else None
        made[name] = dpsql.Table(stored(frame(name, listed)), types=types, public=public, **FACTS[name])
    return made


def duck(data: dict[str, list[Row]]) -> duckdb.DuckDBPyConnection:
    """The same tables in DuckDB, without the rows of nobody."""
    led = {row[0] for row in data["orders"] if row[1] is not None}
    whose = {"items": lambda row: row[0] in led, "orders": lambda row: row[1] is not None}
    connection = duckdb.connect(config={"threads": 1})
    for name, columns in COLUMNS.items():
        said = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({said})")
        kept = [row for row in data[name] if name in PUBLIC or whose.get(name, lambda row: row[0] is not None)(row)]
        if kept:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})", kept)
    return connection
