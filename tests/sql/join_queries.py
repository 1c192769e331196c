"""Tables of people and public ones that are joined in every way, and queries over them that DuckDB reads alike.

People: customers, their orders, the items of those; visits, notes and letters say whose they are by the customer's
number, letters by a real one. Logins and profiles have a text for a unit. Rows of nobody (no key, or one that leads
nowhere) are left out by dpsql, so `duck` has them not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import duckdb
import pandas as pd

import dpsql

CITIES = ["Ada", "Bern", "Cork"]
PRIOS = ["high", "low"]
CODES = ["'a'", "'b'", "'q'", "'x'", "'low'", "'old'", "'day 1'", "'%a%'", "'name 3'"]
MOST = 2_000
"""Rows of one person that count: more than any query here makes, so nothing is cut."""

# Columns with DuckDB's types.
COLUMNS: dict[str, dict[str, str]] = {
    "customer": {
        "c_custkey": "BIGINT",
        "c_house": "VARCHAR",
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
    "letters": {"l_custkey": "DOUBLE", "l_code": "VARCHAR", "l_cost": "DOUBLE"},
    "visits": {"v_custkey": "BIGINT", "v_day": "DATE", "v_at": "TIMESTAMP", "v_spent": "DOUBLE", "v_code": "VARCHAR"},
    "notes": {"c_custkey": "BIGINT", "c_city": "VARCHAR", "stars": "BIGINT"},
    "cars": {"k_house": "VARCHAR", "k_seats": "BIGINT", "k_code": "VARCHAR"},
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
        "max_rows": MOST,
        "bounds": {"c_balance": (-50, 50), "c_nation": (0, 9)},
        "keys": {"c_city": CITIES},
    },
    "orders": {
        "unit": "o_custkey -> customer.c_custkey",
        "unique": ["o_orderkey"],
        "max_rows": MOST,
        "bounds": {"o_total": (0, 100), "o_year": (2019, 2022)},
        "keys": {"o_prio": PRIOS},
    },
    "items": {
        "unit": "i_orderkey -> orders.o_orderkey",
        "max_rows": MOST,
        "bounds": {"i_qty": (1, 9), "i_prod": (0, 12)},
    },
    "letters": {"unit": "l_custkey", "max_rows": MOST, "bounds": {"l_cost": (-5, 5)}},
    "visits": {"unit": "v_custkey", "max_rows": MOST, "bounds": {"v_spent": (0, 40)}},
    "notes": {"unit": "c_custkey", "max_rows": MOST, "bounds": {"stars": (0, 5)}, "keys": {"c_city": CITIES}},
    "cars": {"unit": "k_house", "max_rows": MOST, "bounds": {"k_seats": (1, 7)}},
    "logins": {"unit": "who", "max_rows": MOST, "bounds": {"seconds": (0, 60)}, "keys": {"site": ["s", "t"]}},
    "profiles": {"unit": "who", "unique": ["who"], "bounds": {"age": (0, 99)}},
    "nobody": {"unit": "x_custkey -> customer.c_custkey", "max_rows": MOST, "bounds": {"x_value": (0, 9)}},
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


def rows() -> dict[str, list[Row]]:
    """The rows of every table, with NULL wherever there may be some, and keys that lead nowhere."""
    rng = random.Random(3)

    def maybe(value: Any, share: float = 0.15) -> Any:
        return None if rng.random() < share else value

    def day(first: int = 1, last: int = 8) -> date:
        return date(2020, 3, rng.randint(first, last))

    customers: list[Row] = [
        (
            key,
            rng.choice([None, *"ABCDEFGH"]),
            maybe(f"name {key % 9}"),
            rng.choice(CITIES),
            maybe(rng.choice([1, 2, 3, 4, 8])),
            maybe(day()),
            maybe(rng.random() < 0.5),
            maybe(rng.randint(-200, 200) / 4),
        )
        for key in range(1, 41)
    ]
    customers.append((None, "A", "nobody", "Ada", 1, day(), True, 1.0))
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
            maybe(rng.choice([*range(3, 40), 70]), 0.05),
            maybe(day()),
            maybe(datetime(2020, 3, rng.randint(1, 4), rng.randint(0, 23), 30)),
            maybe(rng.randint(0, 160) / 4),
            maybe(rng.choice("abq")),
        )
        for _ in range(90)
    ]
    notes: list[Row] = [(rng.randint(1, 44), rng.choice(CITIES), maybe(rng.randint(0, 5))) for _ in range(70)]
    letters: list[Row] = [
        (
            maybe(rng.choice([*range(20), 20.5, 33]) * 1.0, 0.05),
            maybe(rng.choice("abq")),
            maybe(rng.randint(-20, 20) / 4),
        )
        for _ in range(50)
    ]
    users = [f"u{k}" for k in range(12)]
    logins: list[Row] = [
        (maybe(rng.choice([*users, "x", ""])), rng.choice("st"), rng.randint(0, 60)) for _ in range(60)
    ]
    return {
        "customer": customers,
        "orders": orders,
        "items": items,
        "letters": letters,
        "visits": visits,
        "notes": notes,
        "cars": [(maybe(rng.choice("ABCDEXY")), rng.randint(1, 7), maybe(rng.choice("ab"))) for _ in range(20)],
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


# Frames: whole numbers with NULL as Int64, text as str, dates as timestamps, and the whole numbers of visits as reals.

_DTYPES = {"BIGINT": "Int64", "DOUBLE": "float64", "VARCHAR": "str", "BOOLEAN": "boolean"}
_TYPES = {
    "BIGINT": "integer",
    "DOUBLE": "real",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
_DECLARED = {"v_custkey"}


def _stored(values: list[Any], kind: str) -> pd.Series[Any]:
    if kind in ("DATE", "TIMESTAMP"):
        return pd.Series(pd.to_datetime(pd.Series(values, dtype=object)), dtype="datetime64[us]")
    whole = kind in ("BIGINT", "BOOLEAN") and None not in values
    return pd.Series(values, dtype={"BIGINT": "int64", "BOOLEAN": "bool"}[kind] if whole else _DTYPES[kind])


def frame(name: str, listed: list[Row]) -> pd.DataFrame:
    """The rows of a table in NumPy's dtypes where those hold them."""
    kinds = {column: "DOUBLE" if column in _DECLARED else kind for column, kind in COLUMNS[name].items()}
    return pd.DataFrame(
        {column: _stored([row[at] for row in listed], kinds[column]) for at, column in enumerate(kinds)}
    )


def tables(
    stored: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    *,
    without: Collection[str] = (),
    by: str = "customer",
    as_files: bool = False,
) -> dict[str, dpsql.Table]:
    """Every table with what its owner declares, some without rows; stored in another way, with the types of all
    columns. by: whose customers' rows are, "customer", "house" or "row" (then no table declares a unit). as_files: any
    column may hold NULL and all have types, as of files, so that plans are those of files."""
    made = {}
    for name, listed in rows().items():
        held = frame(name, listed)
        held = held.iloc[:0] if name in without else held
        types = {
            column: _TYPES[kind]
            for column, kind in COLUMNS[name].items()
            if stored is not None or as_files or kind == "DATE" or column in _DECLARED
        }
        said = {**FACTS[name], "types": types, "public": True if name in PUBLIC else None}
        if by == "house" and name == "customer":
            said["unit"] = "c_house"
        if by == "row":
            said = {word: fact for word, fact in said.items() if word not in ("unit", "max_rows")}
        if as_files:
            said["nullable"] = dict.fromkeys(COLUMNS[name], True)
        made[name] = dpsql.Table(stored(held) if stored else held, **said)
    return made


def duck(*, without: Collection[str] = (), by: str = "customer") -> duckdb.DuckDBPyConnection:
    """The same tables in DuckDB, without the rows of nobody."""
    data = {name: [] if name in without else listed for name, listed in rows().items()}
    if by != "row":
        own = {name: 1 if (name, by) == ("customer", "house") else 0 for name in set(data) - set(PUBLIC)}
        data |= {name: [row for row in data[name] if row[at] is not None] for name, at in own.items()}
        whose = {row[0] for row in data["customer"]}
        led = [row for row in data["orders"] if row[1] is not None]
        data["orders"] = [row for row in led if by == "customer" or row[1] in whose]
        keys = {row[0] for row in data["orders"]}
        data["items"] = [row for row in data["items"] if row[0] in keys]
    connection = duckdb.connect(config={"threads": 1})
    for name, columns in COLUMNS.items():
        said = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({said})")
        if data[name]:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})", data[name])
    return connection


# Queries, each up to its ";". After "|" DuckDB's text, where it is not the same.

COMMAS = """
    SELECT COUNT(*), SUM(o_total) FROM customer, orders WHERE c_custkey = o_custkey;
    SELECT COUNT(*), SUM(o_total) FROM orders, customer WHERE o_custkey = c_custkey AND o_total > 30;
    SELECT COUNT(*) FROM nation, customer WHERE n_key = c_nation;
    SELECT COUNT(*), SUM(i_qty) FROM customer, orders, items, nation, prod WHERE c_custkey = o_custkey AND
        i_orderkey = o_orderkey AND c_nation = n_key AND i_prod = p_id;
    SELECT COUNT(*), SUM(i_qty) FROM prod, nation, items, orders, customer WHERE c_custkey = o_custkey AND
        i_orderkey = o_orderkey AND c_nation = n_key AND i_prod = p_id;
    SELECT COUNT(*), SUM(i_qty) FROM nation, items, customer, prod, orders WHERE n_region = 'S' AND o_custkey =
        c_custkey AND o_orderkey = i_orderkey AND n_key = c_nation AND p_id = i_prod AND p_kind <> 'x';
    SELECT SUM(i_qty * p_price * (1 + t_weight)) FROM items, prod, tags WHERE i_prod = p_id AND i_code = t_code;
    SELECT COUNT(*) FROM orders, tags WHERE o_code = t_code AND (t_kind = 'old' OR o_total > 50);
    SELECT COUNT(*) FROM orders, customer WHERE (o_custkey = c_custkey AND o_total > 50) OR (c_custkey = o_custkey
        AND c_vip);
    SELECT COUNT(*) FROM orders, customer WHERE (o_custkey = c_custkey AND o_total > 50) OR (o_custkey = c_custkey
        AND c_vip);
    SELECT SUM(i_qty) FROM items, prod WHERE (p_id = i_prod AND p_kind = 'x' AND i_qty < 5) OR (p_id = i_prod AND
        p_kind = 'y' AND i_qty > 5) OR (p_id = i_prod AND p_price > 3);
    SELECT COUNT(*) FROM customer, orders, nation WHERE (c_custkey = o_custkey AND n_key = c_nation AND c_vip) OR
        (c_custkey = o_custkey AND n_key = c_nation AND o_total < 20);
    SELECT COUNT(*) FROM customer c, orders o WHERE c.c_custkey = o.o_custkey AND NOT (o_prio = 'high' OR c_vip);
    SELECT COUNT(*) FROM customer, rates WHERE c_nation = r_nation AND r_year = 2020;
    SELECT COUNT(*), SUM(r_rate) FROM customer, orders, rates WHERE c_custkey = o_custkey AND c_nation = r_nation
        AND o_year = r_year;
    SELECT COUNT(*), SUM(r_rate) FROM rates, customer, orders WHERE o_year = r_year AND c_custkey = o_custkey AND
        c_nation = r_nation AND r_rate > 2;
    SELECT COUNT(*) FROM orders, words WHERE (o_total > 50) = w_flag;
    SELECT COUNT(*) FROM customer, words WHERE c_vip = w_flag AND w_word = 'yes';
    SELECT COUNT(*) FROM items, words WHERE i_back = w_flag AND w_word = 'no';
    SELECT COUNT(*) FROM orders, days WHERE o_date = d_day;
    SELECT COUNT(*) FROM customer, days WHERE c_since = d_day AND d_name <> 'day 1';
    SELECT COUNT(*) FROM visits, days WHERE CAST(v_at AS DATE) = d_day;
    SELECT COUNT(*) FROM visits, prod WHERE v_spent = p_id;
    SELECT COUNT(*) FROM visits, nation WHERE v_spent = n_key;
    SELECT COUNT(*) FROM orders, nothing WHERE o_year = z_key;
    SELECT COUNT(*) FROM customer, nobody WHERE c_custkey = x_custkey;
    SELECT COUNT(*), COALESCE(SUM(x_value), 0) FROM nobody, orders WHERE x_custkey = o_custkey;
    SELECT COUNT(*) FROM orders AS t (k, u) WHERE u > 10 AND t.k > 1100;
    SELECT COUNT(*) FROM (SELECT c_custkey, n_name FROM customer, nation WHERE c_nation = n_key) a, (SELECT
        o_custkey, o_total FROM orders) b WHERE a.c_custkey = b.o_custkey AND (n_name = 'Peru' AND o_total > 50 OR
        n_name = 'Chad' AND o_total < 50);
    SELECT COUNT(*) FROM customer, orders, nation n1, nation n2 WHERE c_custkey = o_custkey AND c_nation = n1.n_key
        AND o_year - 2018 = n2.n_key AND (n1.n_name = 'Peru' AND n2.n_name = 'Chad' OR n1.n_name = 'Chad' AND n2.n_name
        = 'Peru');
    SELECT 100 * SUM(CASE WHEN p_kind = 'x' THEN i_qty * p_price ELSE 0 END) / SUM(i_qty * p_price) FROM items,
        prod WHERE i_prod = p_id;
    SELECT COUNT(*) FROM orders, items WHERE o_orderkey = i_orderkey AND o_date <= DATE '2020-03-05' AND (i_code IS
        NULL OR i_code IN ('a', 'b'));
    SELECT SUM(o_total * (1 - r_rate / 100)) FROM customer, orders, rates WHERE c_custkey = o_custkey AND r_nation
        = c_nation AND r_year = o_year AND r_rate BETWEEN 1 AND 5;
    SELECT COUNT(*) FROM orders a, orders b WHERE a.o_custkey = b.o_custkey AND b.o_custkey = a.o_custkey;
    SELECT COUNT(*) FROM orders a, orders b, orders c WHERE a.o_custkey = b.o_custkey AND b.o_custkey = c.o_custkey;
    SELECT COUNT(*) FROM orders a, orders b, customer WHERE a.o_custkey = c_custkey AND b.o_custkey = c_custkey AND
        a.o_total = b.o_total;
    SELECT COUNT(*) FROM orders, customer WHERE o_custkey IN (c_custkey);
    SELECT COUNT(*) FROM orders, customer WHERE o_custkey = c_custkey AND o_custkey = c_nation;
    SELECT COUNT(*) FROM orders, customer, nation WHERE o_custkey = c_custkey AND o_year - 2018 = n_key AND
        c_nation = n_key;
    SELECT COUNT(*) FROM orders, customer, nation WHERE o_custkey = c_custkey AND n_key = 3;
    SELECT COUNT(*) FROM customer, nation WHERE c_nation = n_key AND c_nation = 3;
    SELECT COUNT(*) FROM orders, tags a, tags b WHERE o_code = a.t_code AND a.t_code = b.t_code;
    SELECT COUNT(*) FROM nation, prod;
"""

ON_THE_UNIT = """
    SELECT COUNT(*), SUM(l_cost) FROM letters;
    SELECT COUNT(*), SUM(l_cost) FROM customer, letters WHERE c_custkey = l_custkey;
    SELECT COUNT(*), SUM(l_cost) FROM letters JOIN orders ON o_custkey = l_custkey AND l_code = o_code;
    SELECT COUNT(*), COUNT(l_cost) FROM orders LEFT JOIN letters ON l_custkey = o_custkey AND l_cost > 0;
    SELECT COUNT(*), COUNT(c_vip) FROM letters LEFT JOIN customer ON c_custkey = l_custkey;
    SELECT COUNT(*), COUNT(DISTINCT l_custkey) FROM letters a JOIN visits b ON a.l_custkey = b.v_custkey;
    SELECT COUNT(*) FROM letters a JOIN letters b ON a.l_custkey = b.l_custkey AND a.l_cost < b.l_cost;
    SELECT COUNT(*) FROM letters WHERE l_custkey IN (SELECT c_custkey FROM customer WHERE c_vip);
    SELECT COUNT(*) FROM letters WHERE l_custkey NOT IN (SELECT o_custkey FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT l_custkey FROM letters WHERE l_code = 'a');
    SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM letters WHERE l_custkey = v_custkey AND l_code <> v_code);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT l_custkey AS k, COUNT(*) AS n FROM letters GROUP BY l_custkey)
        JOIN customer ON k = c_custkey;
    SELECT COUNT(*) FROM (SELECT l_custkey AS k, l_cost FROM letters UNION ALL SELECT l_custkey, 0 FROM letters)
        JOIN visits ON k = v_custkey;
    SELECT COUNT(*), SUM(v_spent) FROM customer, visits WHERE c_custkey = v_custkey;
    SELECT COUNT(*), SUM(v_spent * o_total) FROM orders, visits WHERE o_custkey = v_custkey;
    SELECT COUNT(*) FROM orders, visits, notes WHERE o_custkey = v_custkey AND notes.c_custkey = v_custkey;
    SELECT COUNT(*) FROM orders, visits, notes, customer WHERE o_custkey = v_custkey AND notes.c_custkey =
        v_custkey AND customer.c_custkey = o_custkey;
    SELECT COUNT(*) FROM orders, visits, customer WHERE o_custkey = c_custkey AND v_custkey = c_custkey AND o_date
        < v_day;
    SELECT COUNT(*) FROM orders JOIN visits ON o_custkey = v_custkey AND o_date = v_day;
    SELECT COUNT(*) FROM orders JOIN visits ON o_custkey = v_custkey AND o_code = v_code;
    SELECT COUNT(*) FROM orders JOIN visits ON o_custkey = v_custkey AND o_code = v_code AND o_total > v_spent;
    SELECT COUNT(*), SUM(seconds) FROM logins JOIN profiles ON logins.who = profiles.who;
    SELECT COUNT(*), SUM(age) FROM logins JOIN profiles USING (who);
    SELECT COUNT(*), SUM(age) FROM logins JOIN profiles USING (who, site);
    SELECT COUNT(*) FROM logins a JOIN logins b ON a.who = b.who AND a.seconds < b.seconds;
    SELECT COUNT(*) FROM logins a JOIN logins b ON a.who = b.who AND a.site <> b.site;
"""

EXPLICIT = """
    SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_city = 'Bern';
    SELECT COUNT(*) FROM orders o INNER JOIN customer c ON o.o_custkey = c.c_custkey INNER JOIN nation n ON n.n_key
        = c.c_nation WHERE n.n_name <> 'Chad';
    SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey AND o_total > c_balance;
    SELECT COUNT(*) FROM nation JOIN customer ON c_nation = n_key JOIN orders ON o_custkey = c_custkey;
    SELECT COUNT(*) FROM customer JOIN notes USING (c_custkey);
    SELECT COUNT(*) FROM customer JOIN notes USING (c_custkey) WHERE c_custkey > 10;
    SELECT COUNT(*) FROM customer JOIN notes USING (c_custkey, c_city);
    SELECT COUNT(*) FROM customer AS a JOIN notes AS b ON a.C_CUSTKEY = b.c_custkey AND A.c_city = B.C_CITY;
    SELECT COUNT(*) FROM CUSTOMER JOIN Notes USING (C_Custkey) WHERE Customer.c_city = 'Ada' AND "Notes"."STARS" >
        2;
    SELECT COUNT(*), COUNT(DISTINCT c_custkey) FROM customer JOIN notes USING (c_custkey);
    SELECT COUNT(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey;
    SELECT COUNT(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey AND a.o_orderkey <> b.o_orderkey;
    SELECT COUNT(*) FROM orders a JOIN orders b ON a.o_orderkey = b.o_orderkey;
    SELECT COUNT(*) FROM customer a JOIN customer b ON a.c_custkey = b.c_custkey AND a.c_name = b.c_name;
    SELECT COUNT(*) FROM items a JOIN items b ON a.i_orderkey = b.i_orderkey AND a.i_qty < b.i_qty;
    SELECT COUNT(*) FROM items a, items b, orders WHERE a.i_orderkey = o_orderkey AND b.i_orderkey = o_orderkey AND
        a.i_qty < b.i_qty;
    SELECT COUNT(*) FROM items a JOIN orders o1 ON a.i_orderkey = o1.o_orderkey JOIN orders o2 ON o1.o_custkey =
        o2.o_custkey JOIN items b ON b.i_orderkey = o2.o_orderkey;
    SELECT COUNT(*) FROM customer JOIN nation ON c_nation = n_key JOIN rates ON n_key = r_nation AND r_year = 2019;
    SELECT COUNT(*) FROM customer CROSS JOIN nation;
    SELECT COUNT(*) FROM customer CROSS JOIN nation WHERE c_nation < n_key;
    SELECT COUNT(*) FROM customer CROSS JOIN nothing;
    SELECT COUNT(*), SUM(t_weight) FROM customer CROSS JOIN tags WHERE c_name LIKE '%1%';
    SELECT COUNT(*) FROM customer, nation;
    SELECT COUNT(*) FROM customer, nation, days;
    SELECT COUNT(*) FROM customer, nation WHERE c_nation >= n_key;
    SELECT COUNT(*) FROM customer JOIN nation ON c_nation > n_key;
    SELECT COUNT(*) FROM nation CROSS JOIN customer;
    SELECT COUNT(*) FROM orders JOIN tags ON o_code = t_code JOIN customer ON c_custkey = o_custkey;
    SELECT COUNT(*) FROM orders JOIN tags a ON o_code = a.t_code JOIN tags b ON o_code = b.t_code;
    SELECT COUNT(*) FROM orders JOIN tags a ON o_code = a.t_code JOIN tags b ON a.t_code = b.t_code AND a.t_kind =
        b.t_kind;
    SELECT COUNT(*) FROM items JOIN prod ON i_prod = p_id AND i_qty > p_price;
    SELECT COUNT(*) FROM items JOIN prod ON i_prod + 1 = p_id;
    SELECT COUNT(*) FROM orders JOIN tags ON LOWER(UPPER(o_code)) = t_code;
    SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nation % 3 = n_key;
    SELECT COUNT(*) FROM items JOIN prod ON i_prod * 0.5 = p_id;
    SELECT COUNT(*) FROM orders, nation WHERE CAST(o_total AS BIGINT) % 6 = n_key;
    SELECT COUNT(*), SUM(b) FROM (SELECT o_custkey, o_total FROM orders) AS t (a, b) JOIN customer AS c (key) ON a
        = key;
    SELECT COUNT(*) FROM customer "c 1" JOIN orders AS "O" ON "c 1".c_custkey = o.o_custkey;
    SELECT count(*) from Customer join ORDERS on C_CustKey = O_CUSTKEY where o_PRIO = 'low';
    SELECT COUNT(*) FROM prod JOIN items ON p_id = i_prod JOIN orders ON o_orderkey = i_orderkey JOIN customer ON
        c_custkey = o_custkey JOIN nation ON n_key = c_nation WHERE p_kind IS NULL OR n_region IS NULL;
    SELECT COUNT(*) FROM items JOIN tags ON i_code = t_code JOIN orders ON o_orderkey = i_orderkey AND o_code =
        t_code;
    SELECT COUNT(*) FROM items JOIN tags ON i_code = t_code JOIN prod ON p_id = t_weight;
    SELECT COUNT(*) FROM items JOIN tags ON i_code = t_code JOIN prod ON p_id = t_weight AND p_id = i_prod;
    SELECT COUNT(*) FROM customer c JOIN nation n ON c.c_nation = n.n_key AND c.c_vip = n.n_big;
    SELECT COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey AND (o_custkey = 3 OR c_custkey = 5);
    SELECT COUNT(DISTINCT a.o_custkey) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey AND a.o_date <
        b.o_date;
    SELECT COUNT(*) FILTER (WHERE b.stars > 2), SUM(b.stars) FILTER (WHERE a.c_vip) FROM customer a JOIN notes b ON
        a.c_custkey = b.c_custkey AND a.c_city = b.c_city;
    SELECT COUNT(*) FROM logins WHERE who = '';
    SELECT COUNT(*) FROM logins a JOIN profiles b ON a.who = b.who WHERE a.who IN ('', 'u3', 'y');
    SELECT COUNT(*) FROM logins a JOIN profiles b ON a.who = b.who JOIN tags ON t_code = LEFT(a.who, 1);
    SELECT COUNT(*) FROM customer JOIN visits ON c_custkey = v_custkey AND v_custkey = 3.0;
    SELECT COUNT(*) FROM orders JOIN (SELECT t_code AS c, t_weight + 1 AS w FROM tags WHERE t_kind = 'new') t ON
        o_code = t.c WHERE w > 1;
    SELECT SUM(p_price) FROM prod;
"""

OUTER = """
    SELECT COUNT(*), COUNT(n_key), COUNT(n_region) FROM customer LEFT JOIN nation ON c_nation = n_key;
    SELECT COUNT(*), COUNT(n_key) FROM nation RIGHT JOIN customer ON c_nation = n_key;
    SELECT COUNT(*), COUNT(t_code), SUM(t_weight) FROM orders LEFT JOIN tags ON o_code = t_code;
    SELECT COUNT(*), COUNT(t_code), SUM(t_weight) FROM orders LEFT JOIN tags ON o_code = t_code AND t_kind = 'new';
    SELECT COUNT(*), COUNT(t_code), SUM(t_weight) FROM orders LEFT JOIN tags ON o_code = t_code AND o_total > 40;
    SELECT COUNT(*), COUNT(t_code), SUM(t_weight) FROM orders LEFT JOIN tags ON o_code = t_code AND o_total > 40
        AND t_weight < 3 WHERE o_prio = 'low';
    SELECT COUNT(*), COUNT(t_code) FROM orders LEFT JOIN tags ON o_code = t_code WHERE t_code IS NULL;
    SELECT COUNT(*), COUNT(t_code) FROM orders LEFT JOIN tags ON o_code = t_code WHERE t_kind = 'old' OR t_kind IS
        NULL;
    SELECT COUNT(*), COUNT(o_orderkey), SUM(o_total) FROM customer LEFT JOIN orders ON c_custkey = o_custkey;
    SELECT COUNT(*), COUNT(o_orderkey), SUM(o_total) FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey
        AND o_total > 50;
    SELECT COUNT(*), COUNT(o_orderkey), SUM(o_total) FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND
        c_vip;
    SELECT COUNT(*), COUNT(o_orderkey) FROM orders RIGHT JOIN customer ON c_custkey = o_custkey AND o_prio = 'high';
    SELECT COUNT(*), COUNT(c_custkey) FROM orders LEFT JOIN customer ON c_custkey = o_custkey;
    SELECT COUNT(*), COUNT(c_custkey) FROM customer RIGHT JOIN orders ON c_custkey = o_custkey;
    SELECT COUNT(*), COUNT(o_orderkey), COUNT(i_orderkey), SUM(i_qty) FROM customer LEFT JOIN orders ON c_custkey =
        o_custkey LEFT JOIN items ON o_orderkey = i_orderkey;
    SELECT COUNT(*), COUNT(o_orderkey), COUNT(i_orderkey), SUM(i_qty) FROM customer LEFT JOIN orders ON c_custkey =
        o_custkey LEFT JOIN items ON o_orderkey = i_orderkey AND o_total > 20 AND i_qty > 3;
    SELECT COUNT(*), COUNT(i_orderkey) FROM orders LEFT JOIN items ON i_orderkey = o_orderkey;
    SELECT COUNT(*), COUNT(o_orderkey) FROM items LEFT JOIN orders ON i_orderkey = o_orderkey AND o_prio = 'low';
    SELECT COUNT(*), COUNT(v_custkey), SUM(v_spent) FROM customer LEFT JOIN visits ON c_custkey = v_custkey;
    SELECT COUNT(*), COUNT(c_custkey) FROM visits LEFT JOIN customer ON c_custkey = v_custkey;
    SELECT COUNT(*), COUNT(o_orderkey) FROM visits LEFT JOIN orders ON o_custkey = v_custkey AND o_date = v_day;
    SELECT COUNT(*), COUNT(x_custkey) FROM customer LEFT JOIN nobody ON c_custkey = x_custkey;
    SELECT COUNT(*), COUNT(z_key) FROM customer LEFT JOIN nothing ON c_nation = z_key;
    SELECT COUNT(*), COUNT(b.stars) FROM customer a LEFT JOIN notes b USING (c_custkey);
    SELECT COUNT(*), COUNT(c_custkey) FROM customer a LEFT JOIN notes b USING (c_custkey) WHERE b.c_custkey IS NULL;
    SELECT COUNT(*), COUNT(c_custkey), COUNT(a.c_custkey) FROM notes a RIGHT JOIN customer b USING (c_custkey);
    SELECT COUNT(*), COUNT(c_custkey), COUNT(a.c_custkey) FROM customer a RIGHT JOIN notes b USING (c_custkey);
    SELECT COUNT(*), COUNT(r_rate) FROM customer JOIN orders ON c_custkey = o_custkey LEFT JOIN rates ON r_nation =
        c_nation AND r_year = o_year;
    SELECT COUNT(*), COUNT(n_key), COUNT(d_day) FROM customer LEFT JOIN nation ON c_nation = n_key LEFT JOIN days
        ON c_since = d_day;
    SELECT COUNT(*), COUNT(n_key), COUNT(r_rate) FROM customer LEFT JOIN nation ON c_nation = n_key LEFT JOIN rates
        ON r_nation = n_key AND r_year = 2020;
    SELECT COUNT(*), COUNT(n_key) FROM customer LEFT JOIN nation ON c_nation = n_key JOIN orders ON c_custkey =
        o_custkey;
    SELECT COUNT(*), COUNT(n_key) FROM customer LEFT JOIN nation ON c_nation = n_key, orders WHERE c_custkey =
        o_custkey AND o_total > 10;
    SELECT COUNT(*), COUNT(n_key) FROM customer LEFT JOIN nation ON c_nation = n_key JOIN rates ON n_key = r_nation
        AND r_year = 2019;
    SELECT COUNT(*), COUNT(p_id) FROM items LEFT JOIN prod ON i_prod = p_id;
    SELECT COUNT(*), COUNT(w_word) FROM customer LEFT JOIN words ON c_vip = w_flag;
    SELECT COUNT(*), COUNT(profiles.who) FROM logins LEFT JOIN profiles ON logins.who = profiles.who;
    SELECT COUNT(*), COUNT(logins.who), COUNT(DISTINCT profiles.who) FROM profiles LEFT JOIN logins ON logins.who =
        profiles.who;
    SELECT COUNT(*), COUNT(p.age), SUM(l.seconds) FROM profiles p LEFT JOIN logins l ON l.who = p.who AND l.site =
        p.site;
    SELECT COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key AND FALSE;
    SELECT COUNT(*), COUNT(n_key) FROM customer LEFT JOIN nation ON c_nation = n_key AND NULL;
    SELECT COUNT(*), COUNT(n_key) FROM customer LEFT JOIN nation ON c_nation = n_key AND TRUE;
    SELECT COUNT(*), COUNT(o_orderkey), COUNT(n_key) FROM customer LEFT JOIN (SELECT * FROM orders WHERE o_total >
        60) o ON c_custkey = o_custkey LEFT JOIN nation ON n_key = c_nation;
    SELECT SUM(COALESCE(o_total, 0)), SUM(CASE WHEN o_orderkey IS NULL THEN 1 ELSE 0 END) FROM customer LEFT JOIN
        orders ON c_custkey = o_custkey;
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE NOT (o_prio = 'high');
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_prio IS DISTINCT FROM 'high';
    SELECT COUNT(*) FROM customer LEFT JOIN notes USING (c_custkey) LEFT JOIN orders ON o_custkey =
        customer.c_custkey;
    SELECT COUNT(*), COUNT(stars) FROM customer LEFT JOIN notes USING (c_custkey) LEFT JOIN orders ON o_custkey =
        c_custkey;
    SELECT COUNT(*) FROM items LEFT JOIN tags ON i_code = t_code LEFT JOIN prod ON p_id = t_weight;
    SELECT COUNT(*) FROM customer c LEFT JOIN nation n ON c.c_nation = n.n_key AND c.c_vip = n.n_big;
    SELECT COUNT(n_name), COUNT(*) FROM customer c LEFT JOIN nation n ON c.c_nation = n.n_key AND c.c_vip = n.n_big
        AND n_region = 'S' AND c_balance > 0;
    SELECT COUNT(DISTINCT c_custkey) FROM customer LEFT JOIN notes USING (c_custkey) WHERE stars IS NULL;
    SELECT COUNT(*), COUNT(b.who) FROM logins a LEFT JOIN profiles b ON a.who = b.who AND b.site IS NOT NULL;
    SELECT COUNT(*) FROM orders LEFT JOIN (SELECT c_custkey AS k, c_city AS city, n_name AS m FROM customer JOIN
        nation ON c_nation = n_key) q ON q.k = o_custkey WHERE m IS NULL;
    SELECT COUNT(m) FROM orders LEFT JOIN (SELECT c_custkey AS k, c_city AS city, COALESCE(n_name,'?') AS m FROM
        customer LEFT JOIN nation ON c_nation = n_key) q ON q.k = o_custkey;
    SELECT COUNT(one), COUNT(k), COUNT(*) FROM (SELECT c_custkey FROM customer) c LEFT JOIN (SELECT k, 1 AS one
        FROM (SELECT o_custkey AS k FROM orders UNION ALL SELECT v_custkey FROM visits)) u ON c_custkey = k;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT x_custkey AS k, 1 AS one FROM nobody) u ON
        c_custkey = k;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT n_key + 1 AS k, 1 AS one FROM nation) u ON c_nation
        = k;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT n_key AS k, 1 AS one FROM nation) u ON c_nation + 1
        = k;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT n_key AS k, 1 AS one FROM nation) u ON c_vip AND
        c_nation = k;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT n_key AS k, 1 AS one FROM nation) u ON k = c_nation
        AND k > 2;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT n_key AS k, 1 AS one FROM nation) u ON k > 2 AND k
        = c_nation;
    SELECT COUNT(one), COUNT(*) FROM customer LEFT JOIN (SELECT COALESCE(n_key, 4) AS k, 1 AS one FROM nation WHERE
        n_key <> 4 OR n_key IS NULL) u ON k = c_nation;
    SELECT COUNT(one), COUNT(*) FROM customer RIGHT JOIN (SELECT o_custkey AS k, 1 AS one FROM orders) u ON k =
        c_custkey;
    SELECT COUNT(town), COUNT(*) FROM (SELECT c_custkey AS k, COALESCE(c_name, c_city) AS town FROM customer WHERE
        c_vip) c RIGHT JOIN orders ON k = o_custkey;
"""

FULL = """
    SELECT COUNT(*), COUNT(c_custkey), COUNT(o_orderkey), SUM(o_total) FROM customer FULL JOIN orders ON c_custkey =
        o_custkey;
    SELECT COUNT(*), COUNT(stars), COUNT(c_balance) FROM customer FULL OUTER JOIN notes USING (c_custkey);
    SELECT COUNT(*), COUNT(stars), COUNT(c_balance) FROM customer FULL JOIN notes USING (c_custkey, c_city);
    SELECT COUNT(*), COUNT(v_day), COUNT(o_date), SUM(v_spent) FROM orders FULL JOIN visits ON v_custkey = o_custkey AND
        o_code = v_code;
    SELECT COUNT(*), COUNT(v_at), SUM(o_total) FROM orders FULL JOIN visits ON o_custkey = v_custkey AND o_prio =
        'low' AND v_spent > 10 WHERE o_total > 20 OR v_spent > 5;
    SELECT COUNT(*), COUNT(l_cost), COUNT(c_name) FROM letters FULL JOIN customer ON c_custkey = l_custkey;
    SELECT COUNT(*), SUM(age), SUM(seconds) FROM logins FULL JOIN profiles USING (who);
    SELECT COUNT(*), SUM(age), SUM(seconds), COUNT(logins.who), COUNT(who) FROM logins FULL JOIN profiles USING (who,
        site);
    SELECT COUNT(*), COUNT(i_qty), COUNT(v_day) FROM items JOIN orders ON i_orderkey = o_orderkey FULL JOIN visits ON
        o_custkey = v_custkey;
    SELECT COUNT(*), COUNT(n), COUNT(m), SUM(LEAST(n, 9)), SUM(LEAST(m, 9)) FROM (SELECT o_custkey AS k, COUNT(*) AS n
        FROM orders GROUP BY k) AS a FULL JOIN (SELECT v_custkey AS k, COUNT(*) AS m FROM visits GROUP BY k) AS b
        USING (k);
    SELECT COUNT(*), COUNT(n), COUNT(m), COUNT(l) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY k)
        AS a
        FULL JOIN (SELECT v_custkey AS k, COUNT(*) AS m FROM visits GROUP BY k) AS b USING (k) FULL JOIN (SELECT
        c_custkey AS k, COUNT(*) AS l FROM notes GROUP BY k) AS c USING (k);
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT c_custkey AS k, COUNT(*) AS n FROM customer FULL JOIN notes USING
        (c_custkey) GROUP BY c_custkey);
    SELECT COUNT(*), COUNT(stars), COUNT(o_total) FROM customer FULL JOIN notes USING (c_custkey) JOIN orders ON
        c_custkey = o_custkey;
    SELECT COUNT(*) FROM customer FULL JOIN notes USING (c_custkey) WHERE c_custkey IN (SELECT v_custkey FROM visits);
    SELECT COUNT(*), SUM(x_value) FROM nobody FULL JOIN visits ON x_custkey = v_custkey | SELECT COUNT(*), 0 FROM
        visits;
    SELECT COUNT(*), COUNT(t_weight), COUNT(stars) FROM customer JOIN tags ON c_name = 'name 3' AND t_code = 'a' FULL
        JOIN
        notes ON customer.c_custkey = notes.c_custkey | SELECT COUNT(*), COUNT(t_weight), COUNT(stars) FROM (SELECT *
        FROM
        customer JOIN tags ON c_name = 'name 3' AND t_code = 'a') AS q FULL JOIN notes ON q.c_custkey = notes.c_custkey;
    SELECT COUNT(*), SUM(r), COUNT(r) FROM customer JOIN (SELECT k, MAX(r) AS r FROM (SELECT n_key AS k FROM nation)
        AS a
        FULL JOIN (SELECT r_nation AS k, MAX(r_rate) AS r FROM rates GROUP BY k) AS b USING (k) GROUP BY k) AS q ON
        c_nation = k;
    SELECT COUNT(*), COUNT(n_key), COUNT(r_rate) FROM nation FULL JOIN rates ON n_key = r_nation AND r_year = 2020;
    SELECT COUNT(*), COUNT(n), SUM(r) FROM customer JOIN (SELECT k, n, r FROM (SELECT n_key AS k, n_name AS n FROM
        nation) AS a FULL JOIN (SELECT r_nation AS k, MAX(r_rate) AS r FROM rates GROUP BY k) AS b USING (k)) AS q ON
        c_nation = k;
    SELECT COUNT(*), COUNT(n_name), SUM(r) FROM customer LEFT JOIN (nation FULL JOIN (SELECT r_nation AS k, MAX(r_rate)
        AS r FROM rates GROUP BY k) AS b ON n_key = k AND n_big) ON c_nation = k;
    SELECT COUNT(*), COUNT(n_name), SUM(r) FROM customer JOIN (nation FULL JOIN (SELECT r_nation AS k, MAX(r_rate)
        AS r FROM rates GROUP BY k) AS b ON n_key = k) ON c_nation = n_key;
    SELECT COUNT(*), COUNT(n_name), SUM(r) FROM customer JOIN (SELECT COALESCE(n_key, k) AS u, n_name, r FROM nation
        FULL JOIN (SELECT r_nation AS k, MAX(r_rate) AS r FROM rates GROUP BY k) AS b ON n_key = k) AS q ON
        c_nation = u;
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT COALESCE(c.c_custkey, notes.c_custkey) AS k, COUNT(*) AS n FROM
        customer AS c FULL JOIN notes ON c.c_custkey = notes.c_custkey GROUP BY k);
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT IFNULL(v_custkey, o_custkey) AS k, COUNT(*) AS n FROM orders FULL
        JOIN visits ON v_custkey = o_custkey AND v_code = o_code GROUP BY k);
    SELECT COUNT(*), COUNT(stars), COUNT(o_total) FROM customer AS c FULL JOIN notes AS n ON c.c_custkey = n.c_custkey
        JOIN orders ON COALESCE(n.c_custkey, c.c_custkey) = o_custkey;
    SELECT COUNT(*), COUNT(DISTINCT COALESCE(a.k, b.k, c.k)), COUNT(n), COUNT(m), COUNT(l) FROM (SELECT o_custkey AS k,
        COUNT(*) AS n FROM orders GROUP BY k) AS a FULL JOIN (SELECT v_custkey AS k, COUNT(*) AS m FROM visits GROUP BY
        k) AS b ON a.k = b.k FULL JOIN (SELECT c_custkey AS k, COUNT(*) AS l FROM notes GROUP BY k) AS c ON c.k =
        COALESCE(a.k, b.k);
"""

PARENTHESES = """
    SELECT COUNT(*), SUM(q.o_total) FROM (orders JOIN customer ON o_custkey = c_custkey) AS q WHERE q.c_vip;
    SELECT COUNT(*), SUM(o_total) FROM ((orders JOIN customer ON o_custkey = c_custkey) JOIN nation ON c_nation =
        n_key);
    SELECT COUNT(*), COUNT(n_name) FROM orders LEFT JOIN (customer JOIN nation ON c_nation = n_key) ON o_custkey =
        c_custkey;
    SELECT COUNT(*), COUNT(n_name), COUNT(c_vip) FROM orders LEFT JOIN (customer LEFT JOIN nation ON c_nation = n_key)
        ON
        o_custkey = c_custkey AND n_big;
    SELECT COUNT(*), COUNT(q.n_name) FROM orders LEFT JOIN (customer JOIN nation ON c_nation = n_key) AS q ON
        o_custkey =
        q.c_custkey;
    SELECT COUNT(*), COUNT(c_vip), COUNT(o_total) FROM visits FULL JOIN (customer LEFT JOIN orders ON c_custkey =
        o_custkey) ON v_custkey = c_custkey;
    SELECT COUNT(*), COUNT(n_name) FROM customer JOIN nation ON c_nation = n_key RIGHT JOIN orders ON c_custkey =
        o_custkey;
    SELECT COUNT(*), COUNT(n_name), COUNT(i_qty) FROM items JOIN orders ON i_orderkey = o_orderkey RIGHT JOIN
        (customer JOIN
        nation ON c_nation = n_key) AS q ON o_custkey = q.c_custkey;
    SELECT COUNT(*), SUM(q.stars) FROM (customer JOIN notes USING (c_custkey)) AS q;
"""

SUBQUERIES = """
    SELECT COUNT(*), SUM(t) FROM (SELECT o_custkey AS k, o_total AS t FROM orders WHERE o_prio = 'low') AS o JOIN
        customer ON k = c_custkey;
    SELECT COUNT(*), SUM(t) FROM (SELECT o_custkey AS k, o_total * 2 AS t FROM orders) o JOIN (SELECT c_custkey AS
        u FROM customer WHERE c_vip) c ON o.k = c.u;
    SELECT COUNT(*) FROM (SELECT * FROM orders JOIN customer ON o_custkey = c_custkey) AS j JOIN nation ON
        j.c_nation = n_key;
    SELECT COUNT(*), SUM(i_qty) FROM (SELECT * FROM orders JOIN customer ON o_custkey = c_custkey) AS j JOIN items
        ON i_orderkey = j.o_orderkey;
    WITH big AS (SELECT o_orderkey, o_custkey FROM orders WHERE o_total > 50) SELECT COUNT(*) FROM big JOIN items
        ON i_orderkey = o_orderkey;
    WITH o AS (SELECT * FROM orders) SELECT COUNT(*) FROM o AS a JOIN o AS b ON a.o_custkey = b.o_custkey AND
        a.o_total < b.o_total;
    WITH o AS (SELECT * FROM orders WHERE o_total > 20), c AS (SELECT * FROM customer WHERE c_vip) SELECT COUNT(*),
        SUM(o_total) FROM o, c WHERE o.o_custkey = c.c_custkey;
    WITH j AS (SELECT c_custkey AS k, o_total, n_region FROM customer JOIN orders ON c_custkey = o_custkey LEFT
        JOIN nation ON c_nation = n_key) SELECT COUNT(*), SUM(o_total), COUNT(n_region) FROM j;
    WITH j AS (SELECT c_custkey AS k, o_total FROM customer JOIN orders ON c_custkey = o_custkey) SELECT COUNT(*)
        FROM j AS a JOIN j AS b ON a.k = b.k WHERE a.o_total < b.o_total;
    WITH t (k, n) AS (SELECT o_custkey, COUNT(*) FROM orders GROUP BY o_custkey) SELECT SUM(LEAST(n, 50)), COUNT(*)
        FROM t;
    WITH t AS (SELECT n_key AS k, n_name AS m FROM nation WHERE n_big) SELECT COUNT(*) FROM customer, t WHERE
        c_nation = k;
    SELECT COUNT(*) FROM customer JOIN (SELECT n_key, UPPER(n_name) AS m FROM nation) AS n ON c_nation = n.n_key
        WHERE m LIKE '%A%';
    SELECT COUNT(*), COUNT(m) FROM customer LEFT JOIN (SELECT n_key, COALESCE(n_region, 'none') AS m FROM nation
        WHERE n_key > 1) AS n ON c_nation = n.n_key;
    SELECT COUNT(*), COUNT(m), SUM(one) FROM customer LEFT JOIN (SELECT n_key AS k, n_name AS m, 1 AS one FROM
        nation WHERE n_big) AS n ON c_nation = k;
    SELECT COUNT(*), SUM(one), COUNT(twice) FROM customer LEFT JOIN (SELECT o_custkey AS k, 1 AS one, o_total * 2
        AS twice FROM orders WHERE o_total > 50) AS o ON c_custkey = k;
    SELECT COUNT(*) FROM (SELECT c_custkey AS k FROM customer CROSS JOIN nation) a JOIN orders ON k = o_custkey;
    SELECT COUNT(*) FROM (SELECT a.c_custkey AS k, b.c_city AS town FROM customer a JOIN notes b USING (c_custkey))
        q JOIN orders ON q.k = o_custkey WHERE town = 'Cork';
    SELECT COUNT(*) FROM (SELECT * FROM customer JOIN notes USING (c_custkey)) AS q WHERE c_custkey > 20;
    SELECT COUNT(*) FROM (SELECT c_custkey + 0 AS k, c_city FROM customer) WHERE k > 5;
    SELECT COUNT(*) FROM (SELECT a.*, n_name FROM customer a LEFT JOIN nation ON c_nation = n_key) AS q WHERE
        n_name IS NULL OR c_vip;
    WITH orders AS (SELECT * FROM orders WHERE o_total > 40) SELECT COUNT(*) FROM orders;
    WITH o AS (WITH p AS (SELECT * FROM orders WHERE o_total > 40) SELECT * FROM p WHERE o_prio = 'low') SELECT
        COUNT(*) FROM o JOIN customer ON o_custkey = c_custkey;
    SELECT COUNT(*) FROM (WITH p AS (SELECT * FROM orders) SELECT * FROM p) AS q;
    WITH p AS (SELECT n_key AS k FROM nation WHERE n_big) SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT k
        FROM p) AND NOT EXISTS (SELECT 1 FROM p WHERE k > 3 AND k = c_nation);
    WITH unread AS (SELECT COUNT(*) AS n FROM customer), o AS (SELECT * FROM orders) SELECT COUNT(*) FROM o;
"""

UNIONS = """
    SELECT COUNT(*), SUM(LEAST(y, 9)), SUM(LEAST(x, 9)) FROM (SELECT c_nation, c_nation FROM customer UNION ALL
        SELECT o_year, 3 FROM orders) AS u (x, y);
    SELECT COUNT(*), SUM(LEAST(y, 9)), COUNT(DISTINCT x) FROM (SELECT c_custkey AS a, c_nation AS A FROM customer UNION
        ALL SELECT o_custkey, 3 FROM orders) AS u (x, y) JOIN customer ON x = c_custkey;
    SELECT COUNT(*), SUM(LEAST(y, 99)), SUM(LEAST(x, 99)) FROM (SELECT a.o_custkey, SUM(a.o_total) AS a,
        MAX(b.o_total) AS a FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey GROUP BY a.o_custkey)
        AS u (k, x, y);
    SELECT COUNT(*) FROM (SELECT DISTINCT a.o_custkey, a.o_prio, b.o_prio FROM orders a JOIN orders b ON
        a.o_custkey = b.o_custkey) AS u (k, x, y) WHERE x <> y;
    SELECT COUNT(*), SUM(t) FROM (SELECT o_custkey AS k, o_total AS t FROM orders UNION ALL SELECT v_custkey,
        v_spent FROM visits);
    SELECT COUNT(*), SUM(t), COUNT(t) FROM (SELECT c_custkey AS k, NULL AS t FROM customer UNION ALL SELECT
        v_custkey, v_spent FROM visits);
    SELECT COUNT(*), SUM(t) FROM (SELECT o_custkey AS k, o_total AS t FROM orders UNION ALL SELECT c_custkey, 1
        FROM customer UNION ALL SELECT c_custkey, stars FROM notes) WHERE t > 2;
    SELECT COUNT(*), SUM(t) FROM (SELECT o_custkey AS k, o_total AS t FROM orders UNION ALL (SELECT c_custkey, 1
        FROM customer UNION ALL SELECT c_custkey, stars FROM notes)) AS u;
    SELECT COUNT(*) FROM (SELECT c_custkey AS k FROM customer UNION ALL SELECT v_custkey FROM visits) AS u WHERE k IN
        (SELECT o_custkey FROM orders);
    SELECT COUNT(*) FROM ((SELECT o_custkey AS k FROM orders UNION ALL SELECT c_custkey FROM customer) UNION ALL
        SELECT c_custkey FROM notes) AS u;
    WITH u AS (SELECT o_custkey AS k, o_code AS code FROM orders UNION ALL SELECT v_custkey, v_code FROM visits)
        SELECT COUNT(*), COUNT(code) FROM u;
    WITH u AS (SELECT o_custkey AS k, o_code AS code FROM orders UNION ALL SELECT v_custkey, v_code FROM visits)
        SELECT COUNT(*), COUNT(DISTINCT c_custkey) FROM u JOIN customer ON k = c_custkey WHERE code IN ('a', 'q');
    WITH u AS (SELECT o_custkey AS k, o_code AS code FROM orders UNION ALL SELECT c_custkey, c_name FROM customer)
        SELECT COUNT(*), COUNT(DISTINCT k), COUNT(t_weight) FROM u LEFT JOIN tags ON code = t_code;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, o_code FROM orders UNION ALL SELECT o_custkey, o_code FROM orders)
        AS u JOIN tags ON u.o_code = t_code;
    SELECT COUNT(*), SUM(v) FROM (SELECT c_custkey AS k, o_total AS v FROM orders JOIN customer ON o_custkey =
        c_custkey UNION ALL SELECT o_custkey, i_qty FROM items JOIN orders ON i_orderkey = o_orderkey);
    SELECT COUNT(*), SUM(v) FROM (SELECT c_custkey AS k, o_total AS v FROM customer LEFT JOIN orders ON o_custkey =
        c_custkey UNION ALL SELECT c_custkey, 5 FROM customer WHERE c_vip) WHERE v > 3;
    SELECT COUNT(*), SUM(n) FROM (SELECT k, LEAST(COUNT(*), 50) AS n FROM (SELECT o_custkey AS k FROM orders UNION
        ALL SELECT v_custkey FROM visits) GROUP BY k);
    SELECT COUNT(*), SUM(n) FROM (SELECT o_custkey AS k, LEAST(COUNT(*), 50) AS n FROM orders GROUP BY o_custkey
        UNION ALL SELECT c_custkey, 0 FROM customer);
    SELECT COUNT(*) FROM (SELECT who, seconds FROM logins UNION ALL SELECT who, age FROM profiles) WHERE seconds >
        10;
    SELECT COUNT(*), COUNT(DISTINCT who) FROM (SELECT who, site FROM logins UNION ALL SELECT who, site FROM
        profiles) WHERE site = 's';
    SELECT COUNT(*) FROM (SELECT c_custkey AS k, c_since AS d FROM customer UNION ALL SELECT o_custkey, o_date FROM
        orders) JOIN days ON d = d_day;
    SELECT COUNT(*) FROM (SELECT o_orderkey AS key, o_custkey AS k FROM orders WHERE o_prio = 'low' UNION ALL
        SELECT o_orderkey, o_custkey FROM orders WHERE o_prio = 'high') u JOIN items ON u.key = i_orderkey;
    SELECT COUNT(*) FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders);
    SELECT COUNT(*) FROM (SELECT c_custkey, c_vip FROM customer UNION ALL SELECT c_custkey, stars > 2 FROM notes)
        WHERE c_vip;
    SELECT COUNT(*) FROM (SELECT x_custkey AS k, x_value AS v FROM nobody UNION ALL SELECT c_custkey, stars FROM
        notes) WHERE v > 1;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k FROM orders WHERE o_prio = 'low' UNION ALL SELECT o_custkey FROM
        orders WHERE o_total > 50) a JOIN (SELECT c_custkey AS k FROM customer UNION ALL SELECT c_custkey FROM notes) b
        ON a.k = b.k;
    SELECT COUNT(*) FROM (SELECT * FROM (SELECT o_custkey AS k, o_total FROM orders) UNION ALL SELECT * FROM
        (SELECT c_custkey, c_balance FROM customer)) u LEFT JOIN customer ON k = c_custkey WHERE o_total > c_balance;
"""

IN_PUBLIC = """
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation WHERE n_region = 'S');
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation NOT IN (SELECT n_key FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation NOT IN (SELECT n_key FROM nation WHERE n_key IS NOT NULL);
    SELECT COUNT(*) FROM customer WHERE NOT c_nation IN (SELECT n_key FROM nation WHERE n_big);
    SELECT COUNT(*) FROM customer WHERE (c_nation IN (SELECT g_key FROM gaps)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT g_key FROM gaps) IS NOT TRUE;
    SELECT COUNT(*) FROM customer WHERE (c_nation NOT IN (SELECT g_key FROM gaps)) IS NULL OR c_vip;
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT g_key FROM gaps) OR c_vip;
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT g_key FROM gaps WHERE g_code = 'b') AND NOT c_vip;
    SELECT COUNT(*) FROM customer WHERE c_nation NOT IN (SELECT z_key FROM nothing);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT z_key FROM nothing);
    SELECT COUNT(*) FROM customer WHERE (c_nation IN (SELECT z_key FROM nothing)) IS NULL;
    SELECT COUNT(*) FROM orders WHERE o_code IN (SELECT g_code FROM gaps);
    SELECT COUNT(*) FROM orders WHERE o_code NOT IN (SELECT g_code FROM gaps);
    SELECT COUNT(*) FROM orders WHERE o_code NOT IN (SELECT g_code FROM gaps WHERE g_code IS NOT NULL);
    SELECT COUNT(*) FROM orders WHERE (o_code NOT IN (SELECT g_code FROM gaps WHERE g_code <> 'q')) IS NULL;
    SELECT COUNT(*) FROM orders WHERE o_code NOT IN (SELECT t_code FROM tags WHERE t_weight > 100);
    SELECT COUNT(*) FROM items WHERE i_prod IN (SELECT p_id FROM prod WHERE p_kind = 'x');
    SELECT COUNT(*) FROM items WHERE i_prod * 0.5 IN (SELECT p_id FROM prod);
    SELECT COUNT(*) FROM items WHERE i_prod NOT IN (SELECT p_id * 2 FROM prod WHERE p_price > 2);
    SELECT COUNT(*) FROM customer WHERE c_since IN (SELECT d_day FROM days WHERE d_name = 'day 1');
    SELECT COUNT(*) FROM customer WHERE c_vip IN (SELECT w_flag FROM words WHERE w_word = 'yes');
    SELECT COUNT(*) FROM customer WHERE c_nation + 1 IN (SELECT n_key FROM nation WHERE n_big OR n_region IS NULL);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation, rates WHERE n_key = r_nation AND
        r_year = 2020);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation JOIN rates ON n_key = r_nation WHERE
        r_year = 2020);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation CROSS JOIN rates WHERE r_rate < n_key
        + 0.005);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT DISTINCT r_nation FROM rates);
    SELECT SUM(CASE WHEN c_nation IN (SELECT n_key FROM nation WHERE n_big) THEN 2 ELSE 1 END) FROM customer;
    SELECT SUM(CASE WHEN c_nation NOT IN (SELECT g_key FROM gaps) THEN 2 ELSE 1 END), COUNT(*) FILTER (WHERE
        c_nation IN (SELECT g_key FROM gaps)) FROM customer;
    SELECT COUNT(CASE WHEN c_nation IN (SELECT g_key FROM gaps) THEN 1 END), COUNT(c_nation IN (SELECT g_key FROM
        gaps)) FROM customer;
    SELECT COUNT_IF(o_code IN (SELECT t_code FROM tags)), COUNT_IF(o_code NOT IN (SELECT t_code FROM tags WHERE
        t_code IS NOT NULL)) FROM orders;
    SELECT COUNT(*) FROM (SELECT c_custkey, c_nation IN (SELECT n_key FROM nation WHERE n_big) AS big FROM
        customer) AS q WHERE big;
    SELECT COUNT(*) FROM (SELECT * FROM customer WHERE c_nation IN (SELECT n_key FROM nation WHERE n_big)) AS q
        JOIN orders ON c_custkey = o_custkey;
    SELECT COUNT(*) FROM orders, customer WHERE o_custkey = c_custkey AND (c_nation IN (SELECT n_key FROM nation
        WHERE n_big) OR o_code IN (SELECT t_code FROM tags));
    SELECT COUNT(*) FROM notes WHERE c_custkey IN (SELECT c_custkey FROM customer WHERE c_vip);
    SELECT COUNT(*) FROM customer WHERE c_nation + 0.5 IN (SELECT p_price FROM prod);
    SELECT COUNT(*) FROM items WHERE i_qty IN (SELECT r_nation FROM rates WHERE r_year = 2020);
    SELECT COUNT(*) FROM items WHERE i_qty NOT IN (SELECT r_nation FROM rates WHERE r_nation IS NOT NULL);
    SELECT COUNT(*) FROM customer WHERE COALESCE(c_nation, 0) NOT IN (SELECT COALESCE(g_key, 2) FROM gaps);
    SELECT COUNT(*) FROM customer WHERE 3 IN (SELECT g_key FROM gaps);
    SELECT COUNT(*) FROM customer WHERE 4 NOT IN (SELECT g_key FROM gaps);
    SELECT COUNT(*) FROM customer WHERE NULL IN (SELECT g_key FROM gaps);
    SELECT COUNT(*) FROM customer WHERE (NULL IN (SELECT z_key FROM nothing)) IS FALSE;
    SELECT COUNT(*) FROM customer WHERE (c_nation IN (SELECT n_key FROM nation)) = (c_nation IN (SELECT r_nation
        FROM rates));
"""

EXISTS_PUBLIC = """
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT * FROM nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT * FROM nothing);
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM nothing);
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM nation WHERE n_name = 'Peru');
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE n_key = c_nation);
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM nation WHERE n_key = c_nation AND n_big);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE n_key > c_nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE n_key > c_nation AND n_region = 'A');
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM nation WHERE n_key <> c_nation AND n_big = c_vip);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM rates WHERE r_nation = c_nation AND r_rate >
        c_balance);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM rates, nation WHERE r_nation = n_key AND n_key =
        c_nation AND r_year = 2021);
    SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM nation WHERE n_key = c.c_nation AND EXISTS (SELECT
        1 FROM rates WHERE r_nation = n_key AND r_year = 2019));
    SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM nation WHERE n_key = c.c_nation AND n_key IN
        (SELECT r_nation FROM rates));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM rates WHERE r_nation = c_nation) OR EXISTS (SELECT 1
        FROM nation WHERE n_key = c_nation AND n_region = 'A');
    SELECT COUNT(*), COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM nation WHERE n_key = c_nation)) FROM customer;
    SELECT COUNT(*) FROM customer WHERE c_vip AND EXISTS (SELECT 1 FROM nation WHERE n_key = c_nation AND c_vip);
    SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM tags WHERE t_code = o_code AND (t_weight > 2 OR o_total
        < 20));
"""

IN_PRIVATE = """
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_custkey NOT IN (SELECT v_custkey
        FROM visits);
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE (o_custkey IN (SELECT v_custkey FROM
        visits)) IS NULL;
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_orderkey NOT IN (SELECT i_orderkey
        FROM items);
    SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_custkey AS k FROM orders WHERE o_total > 50) AS o ON
        c_custkey = k WHERE k NOT IN (SELECT v_custkey FROM visits) OR c_vip;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k FROM customer LEFT JOIN orders ON c_custkey = o_custkey) AS q
        WHERE k NOT IN (SELECT v_custkey FROM visits);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_total >
        70);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders WHERE o_prio = 'high');
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_prio = 'high');
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT v_custkey FROM visits);
    SELECT COUNT(*) FROM visits WHERE v_custkey IN (SELECT c_custkey FROM customer WHERE c_vip);
    SELECT COUNT(*) FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_vip);
    SELECT COUNT(*) FROM orders WHERE o_custkey NOT IN (SELECT c_custkey FROM customer);
    SELECT COUNT(*) FROM orders WHERE o_orderkey IN (SELECT i_orderkey FROM items WHERE i_qty > 7);
    SELECT COUNT(*) FROM orders WHERE o_orderkey NOT IN (SELECT i_orderkey FROM items);
    SELECT COUNT(*) FROM items WHERE i_orderkey IN (SELECT o_orderkey FROM orders WHERE o_total > 50);
    SELECT COUNT(*) FROM items a WHERE EXISTS (SELECT * FROM items b WHERE b.i_orderkey = a.i_orderkey AND b.i_prod
        <> a.i_prod);
    SELECT COUNT(*) FROM items a WHERE NOT EXISTS (SELECT * FROM items b WHERE b.i_orderkey = a.i_orderkey AND
        b.i_qty > a.i_qty);
    SELECT COUNT(*) FROM orders a WHERE NOT EXISTS (SELECT 1 FROM orders b WHERE a.o_custkey = b.o_custkey AND
        b.o_date < a.o_date);
    SELECT COUNT(*) FROM orders a WHERE EXISTS (SELECT 1 FROM orders b, items WHERE a.o_custkey = b.o_custkey AND
        i_orderkey = b.o_orderkey AND i_qty = 9);
    SELECT COUNT(*) FROM orders a WHERE EXISTS (SELECT 1 FROM visits WHERE v_custkey = o_custkey AND v_day =
        o_date);
    SELECT COUNT(*) FROM orders a WHERE EXISTS (SELECT 1 FROM visits WHERE v_custkey = o_custkey AND v_spent >
        o_total) OR o_total > 90;
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders, items WHERE o_custkey = c_custkey AND
        i_orderkey = o_orderkey AND i_back);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND EXISTS (SELECT
        1 FROM items WHERE i_orderkey = o_orderkey AND i_qty > 8));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_orderkey IN
        (SELECT i_orderkey FROM items WHERE i_qty > 8));
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders JOIN items ON i_orderkey =
        o_orderkey WHERE i_back);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders, items, prod WHERE i_orderkey =
        o_orderkey AND i_prod = p_id AND p_kind = 'y');
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING
        COUNT(*) > 3);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING
        SUM(o_total) > 150);
    SELECT COUNT(*) FROM orders WHERE o_orderkey IN (SELECT i_orderkey FROM items GROUP BY i_orderkey HAVING
        SUM(i_qty) > 15);
    SELECT COUNT(*) FROM orders WHERE o_orderkey NOT IN (SELECT i_orderkey FROM items GROUP BY i_orderkey HAVING
        SUM(i_qty) > 15);
    SELECT COUNT(*) FROM items WHERE i_orderkey IN (SELECT i_orderkey FROM items GROUP BY i_orderkey HAVING
        COUNT(DISTINCT i_prod) > 2);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT DISTINCT o_custkey FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_custkey > 10);
    SELECT COUNT(*) FROM customer WHERE (c_custkey IN (SELECT o_custkey FROM orders WHERE o_custkey > 10)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders) AND c_custkey NOT IN (SELECT
        v_custkey FROM visits);
    SELECT COUNT(*) FROM customer WHERE c_vip OR NOT (c_custkey IN (SELECT o_custkey FROM orders WHERE o_total >
        60) AND c_nation > 2);
    SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey) THEN c_balance ELSE 1 END) FROM
        customer;
    SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_date > c_since)),
        COUNT(*) FROM customer;
    SELECT COUNT(*), SUM(o_total) FROM orders, customer WHERE o_custkey = c_custkey AND EXISTS (SELECT 1 FROM items
        WHERE i_orderkey = o_orderkey AND i_qty > 5) AND NOT EXISTS (SELECT 1 FROM visits WHERE v_custkey = c_custkey);
    SELECT COUNT(*) FROM notes a WHERE EXISTS (SELECT 1 FROM customer b WHERE a.c_custkey = b.c_custkey AND
        a.c_city = b.c_city);
    SELECT COUNT(*) FROM notes WHERE EXISTS (SELECT 1 FROM customer WHERE customer.c_custkey = notes.c_custkey AND
        customer.c_city <> notes.c_city);
    SELECT COUNT(*) FROM logins WHERE who IN (SELECT who FROM profiles WHERE age > 30);
    SELECT COUNT(*) FROM logins WHERE who NOT IN (SELECT who FROM profiles);
    SELECT COUNT(*) FROM profiles p WHERE EXISTS (SELECT 1 FROM logins l WHERE l.who = p.who AND l.site = p.site
        AND l.seconds > p.age);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nobody WHERE x_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT x_custkey FROM nobody);
    SELECT COUNT(*) FROM nobody WHERE x_custkey IN (SELECT o_custkey FROM orders);
    SELECT COUNT(*) FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_nation IN (SELECT n_key
        FROM nation WHERE n_big));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders LEFT JOIN tags ON o_code = t_code WHERE
        o_custkey = c_custkey AND t_code IS NULL);
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON o_custkey = c_custkey WHERE NOT EXISTS (SELECT 1 FROM items
        WHERE i_orderkey = o_orderkey);
    SELECT COUNT(*) FROM customer LEFT JOIN orders ON o_custkey = c_custkey WHERE c_custkey IN (SELECT v_custkey
        FROM visits WHERE v_day > DATE '2020-03-03');
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM (SELECT o_custkey AS k, o_total AS t FROM orders
        UNION ALL SELECT v_custkey, v_spent FROM visits) AS u WHERE u.k = c_custkey AND t > 60);
    WITH o AS (SELECT * FROM orders WHERE o_total > 30) SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT
        o_custkey FROM o) AND NOT EXISTS (SELECT 1 FROM o WHERE o_custkey = c_custkey AND o_prio = 'low');
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (WITH p AS (SELECT * FROM orders) SELECT o_custkey FROM p
        WHERE o_total > 30);
    SELECT COUNT(*) FROM customer c, orders o, items i WHERE c.c_custkey = o.o_custkey AND o.o_orderkey =
        i.i_orderkey AND EXISTS (SELECT 1 FROM items i WHERE i.i_orderkey = o.o_orderkey AND i.i_qty = 9);
    SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders c WHERE c.o_custkey = c_custkey);
    SELECT COUNT(*) FROM notes WHERE EXISTS (SELECT 1 FROM customer WHERE c_custkey = notes.c_custkey AND c_city =
        'Ada');
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND (o_total > 90
        OR o_total > c_balance * 3));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM visits WHERE c_custkey = v_custkey AND NOT EXISTS
        (SELECT 1 FROM orders WHERE o_custkey = v_custkey AND o_date = v_day));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT DISTINCT o_custkey FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT NULL FROM orders WHERE o_custkey = c_custkey AND NULL);
    SELECT COUNT(*) FROM customer WHERE c_vip = EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*), SUM(LEAST(s, 100)) FROM (SELECT o_custkey, COUNT(*) AS s FROM orders o, items i WHERE
        o.o_orderkey = i.i_orderkey AND EXISTS (SELECT 1 FROM prod WHERE p_id = i.i_prod AND p_price > i_qty / 2) GROUP
        BY o_custkey);
"""

PER_UNIT = """
    SELECT AVG(n), COUNT(*) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) WHERE n < 90;
    SELECT SUM(n), COUNT(*), COUNT(m), COUNT(*) FILTER (WHERE n = 0) FROM (SELECT c_custkey, COUNT(o_orderkey) AS
        n, CLAMP(MIN(o_total), 0, 100) AS m FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey)
        WHERE n < 90
      | SELECT SUM(n), COUNT(*), COUNT(m), COUNT(*) FILTER (WHERE n = 0) FROM (SELECT c_custkey, COUNT(o_orderkey)
          AS n, MIN(o_total) AS m FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey) WHERE n <
          90;
    SELECT SUM(a), SUM(b), SUM(c), SUM(d), COUNT(s), SUM(LEAST(s, 1000)) FROM (SELECT o_custkey AS k, AVG(o_total)
        AS a, MIN(o_total) AS b, MAX(o_total) AS c, LEAST(COUNT(DISTINCT o_code), 9) AS d, SUM(o_total) AS s FROM
        orders GROUP BY o_custkey);
    SELECT SUM(LEAST(n, 50)), SUM(LEAST(x, 50)), SUM(LEAST(u, 50)) FROM (SELECT o_custkey AS k, COUNT(*) AS n,
        COUNT(o_total) AS x, COUNT(DISTINCT o_total) AS u FROM orders GROUP BY o_custkey);
    SELECT SUM(LEAST(s, 500)), COUNT(s) FROM (SELECT i_orderkey, SUM(i_qty) AS s FROM items GROUP BY i_orderkey)
        WHERE s > 5;
    SELECT SUM(LEAST(s, 500)), COUNT(s) FROM (SELECT o_custkey, SUM(i_qty) AS s FROM items, orders WHERE i_orderkey
        = o_orderkey GROUP BY o_custkey);
    SELECT SUM(LEAST(s, 500)), COUNT(s) FROM (SELECT o_custkey, SUM(i_qty * p_price) AS s FROM items, orders, prod
        WHERE i_orderkey = o_orderkey AND i_prod = p_id GROUP BY o_custkey);
    SELECT SUM(n) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey HAVING COUNT(*) > 2 AND
        MAX(o_total) > 60) WHERE n < 90;
    SELECT COUNT(*) FROM (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING SUM(o_total) > 150 OR
        COUNT(o_code) < 2);
    SELECT COUNT(*) FROM (SELECT o_custkey FROM orders GROUP BY 1 HAVING AVG(o_total) > 50);
    SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey FROM orders);
    SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey, o_code FROM orders);
    SELECT COUNT(*), COUNT(code) FROM (SELECT DISTINCT o_custkey AS k, o_code AS code FROM orders WHERE o_total >
        10);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, o_prio, COUNT(*) AS n FROM orders GROUP BY
        o_custkey, o_prio);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, o_prio, COUNT(*) AS n FROM orders GROUP BY
        o_custkey, o_prio) WHERE o_prio = 'low' AND n > 1;
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, EXTRACT(day FROM o_date) AS d, COUNT(*) AS n FROM
        orders GROUP BY o_custkey, d) WHERE d > 3;
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, o_date, o_code, COUNT(*) AS n FROM orders GROUP BY
        o_custkey, o_date, o_code) WHERE o_code IS NULL OR o_date IS NULL;
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey AS k, LOWER(o_code) AS c, o_total > 50 AS big,
        COUNT(*) AS n FROM orders GROUP BY k, c, big);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_orderkey, COUNT(*) AS n FROM orders GROUP BY o_orderkey);
    SELECT COUNT(*), COUNT(m) FROM (SELECT i_orderkey, MAX(i_prod) AS m, COUNT(*) AS n FROM items GROUP BY
        i_orderkey) WHERE n > 1;
    SELECT SUM(m), COUNT(m) FROM (SELECT o_custkey, o_orderkey, MAX(i_qty) AS m FROM orders LEFT JOIN items ON
        o_orderkey = i_orderkey GROUP BY o_custkey, o_orderkey);
    SELECT COUNT(*) FROM (SELECT o_custkey, MIN(o_date) AS first, MAX(o_date) AS last FROM orders GROUP BY
        o_custkey) WHERE last > first;
    SELECT COUNT(*) FROM (SELECT o_custkey, MIN(o_date) AS first FROM orders GROUP BY o_custkey) JOIN days ON first
        = d_day;
    SELECT COUNT(*) FROM (SELECT v_custkey, MIN(v_at) AS first, MAX(v_at) AS last FROM visits GROUP BY v_custkey)
        WHERE last > first + INTERVAL 5 HOUR;
    SELECT COUNT(*) FROM (SELECT i_orderkey, MAX(i_back) AS b, MIN(i_back) AS a FROM items GROUP BY i_orderkey)
        WHERE b AND NOT a;
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT i_orderkey, SUM(i_back) AS n FROM items GROUP BY i_orderkey)
        WHERE n > 0;
    SELECT SUM(LEAST(a, 50)) FROM (SELECT o_custkey, COUNT(*) FILTER (WHERE o_prio = 'low') AS a FROM orders GROUP
        BY o_custkey);
    SELECT SUM(LEAST(a, 500)), COUNT(a) FROM (SELECT o_custkey, SUM(o_total) FILTER (WHERE o_prio = 'low') AS a
        FROM orders GROUP BY o_custkey);
    SELECT SUM(LEAST(a, 500)), COUNT(a) FROM (SELECT o_custkey, SUM(CASE WHEN o_prio = 'low' THEN o_total ELSE 0
        END) AS a FROM orders GROUP BY o_custkey);
    SELECT SUM(CLAMP(a, 0, 100)), COUNT(a) FROM (SELECT o_custkey, SUM(o_total) / COUNT(*) AS a FROM orders GROUP
        BY o_custkey)
      | SELECT SUM(a), COUNT(a) FROM (SELECT o_custkey, SUM(o_total) / COUNT(*) AS a FROM orders GROUP
          BY o_custkey);
    SELECT SUM(CLAMP(a, -100, 100)) FROM (SELECT o_custkey, MAX(o_total) - MIN(o_total) AS a FROM orders GROUP BY
        o_custkey)
      | SELECT SUM(a) FROM (SELECT o_custkey, MAX(o_total) - MIN(o_total) AS a FROM orders GROUP BY o_custkey);
    SELECT COUNT(*), SUM(LEAST(n, 20)) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY o_custkey)
        JOIN customer ON k = c_custkey WHERE c_vip;
    SELECT COUNT(*), SUM(LEAST(n, 20)), COUNT(n) FROM customer LEFT JOIN (SELECT o_custkey AS k, COUNT(*) AS n FROM
        orders GROUP BY o_custkey) AS q ON k = c_custkey;
    SELECT COUNT(*), SUM(LEAST(n * m, 500)) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY
        o_custkey) a JOIN (SELECT v_custkey AS k, COUNT(*) AS m FROM visits GROUP BY v_custkey) b ON a.k = b.k;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, MAX(o_total) AS top FROM orders GROUP BY o_custkey) AS q JOIN
        orders ON o_custkey = k AND o_total = top;
    SELECT COUNT(*), SUM(o_total) FROM orders, (SELECT o_custkey AS k, AVG(o_total) AS mean FROM orders GROUP BY
        o_custkey) AS q WHERE o_custkey = k AND o_total > mean;
    WITH q AS (SELECT i_orderkey AS k, SUM(i_qty) AS s FROM items GROUP BY i_orderkey) SELECT COUNT(*),
        SUM(o_total) FROM orders JOIN q ON o_orderkey = k WHERE s > 10;
    WITH q AS (SELECT i_orderkey AS k, SUM(i_qty) AS s FROM items GROUP BY i_orderkey) SELECT COUNT(*) FROM orders
        LEFT JOIN q ON o_orderkey = k WHERE s IS NULL OR s > 10;
    WITH n AS (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY o_custkey) SELECT COUNT(*) FROM n AS a
        JOIN n AS b ON a.k = b.k AND a.n = b.n;
    SELECT COUNT(*), SUM(LEAST(t, 50)) FROM (SELECT k, SUM(n) AS t FROM (SELECT o_custkey AS k, o_prio, COUNT(*) AS
        n FROM orders GROUP BY o_custkey, o_prio) WHERE n > 1 GROUP BY k);
    SELECT COUNT(*), SUM(LEAST(most, 50)) FROM (SELECT k, MAX(n) AS most FROM (SELECT o_custkey AS k, o_orderkey AS
        o, COUNT(*) AS n FROM orders JOIN items ON i_orderkey = o_orderkey GROUP BY o_custkey, o_orderkey) GROUP BY k);
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT who, COUNT(DISTINCT site) AS n FROM logins GROUP BY who);
    SELECT COUNT(*), SUM(LEAST(n, 100)) FROM (SELECT logins.who, SUM(seconds) AS n, MAX(age) AS a FROM logins JOIN
        profiles USING (who) GROUP BY logins.who) WHERE a > 20;
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT c_custkey, COUNT(*) AS n FROM customer a JOIN notes b USING
        (c_custkey) GROUP BY c_custkey);
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT c_custkey, COUNT(DISTINCT t_kind) AS n FROM customer LEFT JOIN
        orders ON c_custkey = o_custkey LEFT JOIN tags ON o_code = t_code GROUP BY c_custkey);
    SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT x_custkey, COUNT(*) AS n FROM nobody GROUP BY x_custkey)
      | SELECT 0, 0;
    SELECT COUNT(*), SUM(n) FROM (SELECT c_custkey, COUNT(*) AS n, c_city FROM customer GROUP BY c_custkey, c_city)
        WHERE n = 1;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders WHERE o_code IN (SELECT t_code FROM
        tags) GROUP BY o_custkey) WHERE n >= 2;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE
        i_orderkey = o_orderkey) GROUP BY o_custkey) WHERE n >= 2;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, COUNT(*) FILTER (WHERE o_orderkey IN (SELECT i_orderkey FROM items
        WHERE i_back)) AS n FROM orders GROUP BY o_custkey) WHERE n >= 1;
    SELECT COUNT(*) FROM customer JOIN (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) o ON
        o_custkey = c_custkey JOIN (SELECT c_custkey AS nk, SUM(stars) AS s FROM notes GROUP BY c_custkey) m ON nk =
        customer.c_custkey WHERE n > 1 AND s > 2;
    SELECT SUM(q) FROM (SELECT o_custkey, CASE WHEN COUNT(*) > 3 THEN 1 ELSE 0 END AS q FROM orders GROUP BY
        o_custkey);
    SELECT COUNT(*) FROM (SELECT o_custkey, COUNT(*) > 3 AS q FROM orders GROUP BY o_custkey) WHERE q;
    SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY o_custkey) WHERE n > 3;
    SELECT COUNT(*) FROM (SELECT o_custkey + 1 AS k, COUNT(*) AS n FROM orders GROUP BY o_custkey) WHERE n > 3 AND
        k > 10;
    SELECT COUNT(*) FROM (SELECT c_custkey AS k, COUNT(*) AS n FROM orders JOIN customer ON o_custkey = c_custkey
        GROUP BY c_custkey) WHERE n > 3;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k, c_name, COUNT(*) AS n FROM orders JOIN customer ON o_custkey =
        c_custkey GROUP BY o_custkey, c_name) WHERE n > 3 AND c_name <> 'name 1';
    SELECT COUNT(*) FROM (SELECT c_custkey, n_name, COUNT(*) AS n FROM customer JOIN nation ON c_nation = n_key
        GROUP BY c_custkey, n_name) WHERE n_name LIKE '%i';
    SELECT COUNT(*), COUNT(o_total) FROM orders a LEFT JOIN (SELECT o_custkey AS k, MAX(o_total) AS top FROM orders
        GROUP BY o_custkey) b ON a.o_custkey = b.k AND a.o_total = b.top;
    SELECT COUNT(*), COUNT(k) FROM orders a LEFT JOIN (SELECT o_custkey AS k, MAX(o_total) AS top FROM orders GROUP
        BY o_custkey) b ON a.o_custkey = b.k AND a.o_total = b.top;
    SELECT AVG(LEAST(n, 20)) FROM (SELECT c_custkey, COUNT(o_orderkey) AS n FROM customer LEFT JOIN orders ON
        c_custkey = o_custkey AND o_prio = 'low' GROUP BY c_custkey);
    SELECT COUNT(*) FROM (SELECT k, MAX(w) AS w FROM (SELECT o_custkey AS k, o_total AS w FROM orders UNION ALL
        SELECT v_custkey, v_spent FROM visits) GROUP BY k HAVING COUNT(*) > 2) JOIN customer ON k = c_custkey WHERE w >
        c_balance;
    SELECT COUNT(*), SUM(x.n + y.n) FROM (SELECT o_custkey, LEAST(COUNT(*), 9) AS n FROM orders GROUP BY 1) x JOIN
        (SELECT v_custkey, LEAST(COUNT(*), 9) AS n FROM visits GROUP BY 1) y ON x.o_custkey = y.v_custkey;
    SELECT COUNT(*) FROM (SELECT o_custkey, AVG(o_total) AS a FROM orders GROUP BY o_custkey) JOIN customer ON
        c_custkey = o_custkey WHERE a > c_balance * 2;
"""

UNITS = """
    SELECT COUNT(DISTINCT o_custkey), COUNT(*) FROM orders;
    SELECT COUNT(DISTINCT o_custkey) FILTER (WHERE o_total > 60), COUNT(DISTINCT o_custkey) FROM orders WHERE
        o_prio = 'low';
    SELECT COUNT(DISTINCT c_custkey), COUNT(DISTINCT o_custkey) FROM orders JOIN customer ON o_custkey = c_custkey;
    SELECT COUNT(DISTINCT o_custkey) FROM items JOIN orders ON i_orderkey = o_orderkey WHERE i_qty = 9;
    SELECT COUNT(DISTINCT c_custkey) FROM customer LEFT JOIN orders ON o_custkey = c_custkey WHERE o_orderkey IS
        NULL;
    SELECT COUNT(DISTINCT v_custkey) FROM visits;
    SELECT COUNT(DISTINCT who) FROM logins;
    SELECT COUNT(DISTINCT l.who) FROM logins AS l JOIN profiles AS p ON l.who = p.who;
    SELECT COUNT(DISTINCT c_custkey) FROM customer JOIN visits ON c_custkey = v_custkey JOIN tags ON v_code =
        t_code;
    SELECT COUNT(DISTINCT k) FROM (SELECT o_custkey AS k FROM orders UNION ALL SELECT v_custkey FROM visits);
    SELECT COUNT(DISTINCT k) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY o_custkey) WHERE n > 2;
    SELECT COUNT(DISTINCT x_custkey) FROM nobody;
"""

BY_HOUSE = """
    SELECT COUNT(*), COUNT(DISTINCT c_house) FROM customer;
    SELECT COUNT(*), SUM(o_total) FROM orders;
    SELECT COUNT(*), SUM(i_qty) FROM items;
    SELECT COUNT(*), COUNT(DISTINCT c_house), SUM(o_total) FROM orders JOIN customer ON o_custkey = c_custkey;
    SELECT COUNT(*), COUNT(DISTINCT c_house) FROM items, orders, customer WHERE i_orderkey = o_orderkey AND
        c_custkey = o_custkey AND c_vip;
    SELECT COUNT(*), COUNT(DISTINCT k_house) FROM customer JOIN cars ON c_house = k_house;
    SELECT COUNT(*), SUM(k_seats) FROM orders, customer, cars WHERE o_custkey = c_custkey AND c_house = k_house;
    SELECT COUNT(*), SUM(k_seats) FROM cars, items, customer, orders WHERE i_orderkey = o_orderkey AND k_house = c_house
        AND o_custkey = c_custkey AND k_code = i_code;
    SELECT COUNT(*) FROM customer a JOIN customer b ON a.c_house = b.c_house AND a.c_custkey < b.c_custkey;
    SELECT COUNT(*) FROM customer a JOIN customer b ON a.c_house = b.c_house AND a.c_city = b.c_city;
    SELECT COUNT(*) FROM customer a JOIN customer b ON a.c_custkey = b.c_custkey;
    SELECT COUNT(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey AND a.o_total < b.o_total;
    SELECT COUNT(*) FROM orders a, customer b, customer c, orders d WHERE a.o_custkey = b.c_custkey AND
        b.c_house = c.c_house AND c.c_custkey = d.o_custkey AND a.o_date = d.o_date;
    SELECT COUNT(*), COUNT(o_orderkey) FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_total > 40;
    SELECT COUNT(*), COUNT(i_qty), COUNT(DISTINCT c_house) FROM customer LEFT JOIN orders ON c_custkey = o_custkey
        LEFT JOIN items ON i_orderkey = o_orderkey;
    SELECT COUNT(*), COUNT(k_seats) FROM customer LEFT JOIN cars ON k_house = c_house AND k_seats > 2;
    SELECT COUNT(*), COUNT(c_custkey) FROM cars LEFT JOIN customer ON k_house = c_house;
    SELECT COUNT(*), COUNT(c_vip) FROM customer RIGHT JOIN orders ON c_custkey = o_custkey;
    SELECT COUNT(*) FROM customer WHERE c_house IN (SELECT k_house FROM cars WHERE k_seats > 3);
    SELECT COUNT(*) FROM customer WHERE c_house NOT IN (SELECT k_house FROM cars);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_total > 50);
    SELECT COUNT(*) FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_vip);
    SELECT COUNT(*) FROM customer a WHERE EXISTS (SELECT 1 FROM customer b WHERE a.c_house = b.c_house AND
        a.c_custkey <> b.c_custkey AND b.c_balance > a.c_balance);
    SELECT COUNT(*) FROM customer a WHERE NOT EXISTS (SELECT 1 FROM customer b, orders WHERE a.c_house = b.c_house AND
        b.c_custkey = o_custkey AND o_prio = 'high');
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT c_house, COUNT(*) AS n FROM customer GROUP BY c_house);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey);
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT c_house, COUNT(*) AS n FROM customer, orders WHERE
        c_custkey = o_custkey GROUP BY c_house) WHERE n > 2;
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT c_house, c_city, COUNT(o_total) AS n FROM customer LEFT JOIN orders
        ON c_custkey = o_custkey GROUP BY c_house, c_city) AS q JOIN cars ON c_house = k_house WHERE c_city <> 'Ada';
    SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT i_orderkey AS k, COUNT(*) AS n FROM items GROUP BY i_orderkey) AS q
        JOIN orders ON k = o_orderkey JOIN customer ON o_custkey = c_custkey WHERE c_house > 'B';
    SELECT COUNT(*), COUNT(DISTINCT h) FROM (SELECT c_house AS h, c_city AS w FROM customer UNION ALL
        SELECT k_house, k_code FROM cars) AS u JOIN customer ON h = c_house;
    SELECT COUNT(*) FROM (SELECT o_custkey AS k FROM orders UNION ALL SELECT o_custkey FROM orders JOIN items ON
        i_orderkey = o_orderkey) AS u JOIN customer ON k = c_custkey;
    SELECT COUNT(*), COUNT(DISTINCT k_house) FROM customer JOIN cars ON c_house = k_house JOIN nation ON
        n_key = c_nation LEFT JOIN tags ON k_code = t_code;
    SELECT COUNT(*), COUNT(c_house) FROM nobody LEFT JOIN customer ON x_custkey = c_custkey;
"""

VALUES = """
    SELECT COUNT(*) FROM orders WHERE o_year = (SELECT MAX(r_year) FROM rates);
    SELECT COUNT(*), (SELECT COUNT(*) FROM nation) FROM customer;
    SELECT SUM(o_total * (SELECT AVG(r_rate) FROM rates)) FROM orders;
    SELECT COUNT(*) FROM orders WHERE o_total > (SELECT MIN(p_price) FROM prod WHERE p_kind = 'x') * 20;
    SELECT COUNT(*) FROM orders, customer WHERE o_date > (SELECT MIN(d_day) FROM days) AND o_custkey = c_custkey;
    SELECT COUNT(*) FROM orders WHERE o_code = (SELECT MAX(z_code) FROM nothing);
    SELECT COUNT(*) FROM orders WHERE o_code <= (SELECT MAX(t_code) FROM tags WHERE t_kind = 'old');
    SELECT COUNT(*) FROM customer WHERE c_nation > (SELECT AVG(r_nation) FROM rates);
    SELECT COUNT(*) FROM customer WHERE c_nation > (SELECT COUNT(DISTINCT n_region) FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation WHERE n_key > (SELECT MIN(n_key) FROM
        nation));
    SELECT COUNT(*) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey HAVING COUNT(*) >
        (SELECT MIN(n_key) FROM nation)) WHERE n < 50;
"""

ONE_ROW = (
    COMMAS,
    ON_THE_UNIT,
    EXPLICIT,
    OUTER,
    FULL,
    PARENTHESES,
    SUBQUERIES,
    UNIONS,
    IN_PUBLIC,
    EXISTS_PUBLIC,
    IN_PRIVATE,
    PER_UNIT,
    UNITS,
    VALUES,
)

GROUPED = """
    1 | 4 | SELECT c_city, COUNT(*), COUNT(stars), SUM(o_total) FROM notes FULL JOIN orders ON c_custkey = o_custkey
        GROUP BY
        c_city;
    1 | 3 | SELECT c_city, COUNT(*), COUNT(stars), COUNT(c_vip) FROM notes FULL JOIN customer USING (c_custkey,
        c_city) GROUP
        BY c_city;
    1 | 2 | SELECT a.c_city = b.c_city AS k, COUNT(*) FROM customer a JOIN notes b ON a.c_custkey = b.c_custkey
        GROUP BY k;
    1 | 8 | SELECT a.o_year - b.o_year AS k, COUNT(*) FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey
        GROUP BY k;
    1 | 37 | SELECT a.n_name || b.n_name AS k, COUNT(*) FROM orders LEFT JOIN nation a ON o_year - 2018 = a.n_key LEFT
        JOIN nation b ON o_year - 2017 = b.n_key GROUP BY k;
    1 | 3 | SELECT a.n_key < b.n_key AS k, COUNT(*) FROM orders JOIN nation a ON o_year - 2018 = a.n_key LEFT JOIN
        nation b ON o_year - 2017 = b.n_key GROUP BY k;
    1 | 3 | SELECT n_name = 'Peru' AS k, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY k;
    1 | 7 | SELECT UPPER(n_name) AS k, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY k;
    1 | 7 | SELECT COALESCE(n_name, 'none') AS k, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key AND
        n_key > 1 GROUP BY k;
    2 | 9 | SELECT c_vip, NOT d_name <> 'day 1' AS k, COUNT(*) FROM customer LEFT JOIN days ON c_since = d_day GROUP BY
        c_vip, k;
    1 | 3 | SELECT CASE WHEN n_name IS NULL THEN 'none' WHEN n_key > 3 THEN 'high' ELSE 'low' END AS k, COUNT(*) FROM
        customer LEFT JOIN nation ON c_nation = n_key GROUP BY k;
    1 | 2 | SELECT n_key IS NULL AS k, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY k;
    1 | 2 | SELECT o_orderkey IS NULL AS k, COUNT(*), COUNT(DISTINCT c_custkey) FROM customer LEFT JOIN orders ON
        c_custkey = o_custkey GROUP BY k;
    1 | 6 | SELECT n_name, COUNT(*), SUM(c_balance) FROM customer JOIN nation ON c_nation = n_key GROUP BY
        n_name;
    1 | 6 | SELECT n_name, COUNT(*), SUM(o_total) FROM orders, customer, nation WHERE o_custkey = c_custkey
        AND c_nation = n_key GROUP BY n_name;
    1 | 3 | SELECT n_region, COUNT(*), SUM(o_total), COUNT(DISTINCT o_custkey) FROM orders, customer, nation
        WHERE o_custkey = c_custkey AND c_nation = n_key GROUP BY n_region;
    1 | 7 | SELECT n_name, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY n_name;
    1 | 3 | SELECT n_region AS r, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY r;
    1 | 6 | SELECT n_key, COUNT(*) FROM customer JOIN nation ON c_nation = n_key GROUP BY n_key;
    1 | 3 | SELECT n_big, COUNT(*), AVG(o_total) FROM orders JOIN customer ON o_custkey = c_custkey LEFT JOIN
        nation ON c_nation = n_key GROUP BY n_big;
    2 | 12 | SELECT n_name, o_prio, COUNT(*), SUM(o_total) FROM orders, customer, nation WHERE o_custkey =
        c_custkey AND c_nation = n_key GROUP BY n_name, o_prio;
    2 | 18 | SELECT n_name, t_kind, COUNT(*) FROM orders, customer, nation, tags WHERE o_custkey = c_custkey
        AND c_nation = n_key AND t_code = o_code GROUP BY n_name, t_kind;
    1 | 5 | SELECT p_kind, COUNT(*), SUM(i_qty), AVG(i_qty * p_price) FROM items JOIN prod ON i_prod = p_id
        GROUP BY p_kind;
    1 | 11 | SELECT p_price, COUNT(*) FROM items JOIN prod ON i_prod = p_id GROUP BY p_price;
    1 | 5 | SELECT t_code, COUNT(*) FROM orders JOIN tags ON o_code = t_code GROUP BY t_code;
    1 | 7 | SELECT t_weight, COUNT(*) FROM orders JOIN tags ON o_code = t_code GROUP BY t_weight;
    1 | 7 | SELECT t_weight, COUNT(*) FROM orders LEFT JOIN tags ON o_code = t_code AND t_kind = 'new' GROUP
        BY t_weight;
    1 | 4 | SELECT r_year, COUNT(*) FROM customer, orders, rates WHERE o_custkey = c_custkey AND r_nation =
        c_nation AND o_year = r_year GROUP BY r_year;
    1 | 6 | SELECT d_day, COUNT(*) FROM orders JOIN days ON o_date = d_day GROUP BY d_day;
    1 | 4 | SELECT d_name, COUNT(*) FROM orders LEFT JOIN days ON o_date = d_day GROUP BY d_name;
    1 | 3 | SELECT w_word, COUNT(*) FROM customer LEFT JOIN words ON w_flag = c_vip GROUP BY w_word;
    1 | 3 | SELECT UPPER(n_region) AS u, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY
        u;
    1 | 3 | SELECT COALESCE(n_region, 'none') AS u, COUNT(*) FROM customer LEFT JOIN nation ON c_nation =
        n_key GROUP BY 1;
    1 | 3 | SELECT n_key > 2 AS u, COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key GROUP BY u;
    1 | 3 | SELECT c_city, COUNT(*), COUNT(DISTINCT c_custkey) FROM customer GROUP BY c_city;
    1 | 3 | SELECT c_city, COUNT(*), SUM(o_total), COUNT(DISTINCT o_custkey), COUNT(DISTINCT o_custkey) FILTER
        (WHERE o_total > 50) FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_city;
    2 | 6 | SELECT c_city, o_prio, COUNT(*), AVG(o_total) FROM customer JOIN orders ON c_custkey = o_custkey
        GROUP BY c_city, o_prio;
    2 | 6 | SELECT c_city, o_prio, COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey JOIN items ON
        i_orderkey = o_orderkey GROUP BY c_city, o_prio;
    2 | 9 | SELECT a.c_city, b.c_city AS other, COUNT(*) FROM customer a JOIN notes b ON a.c_custkey =
        b.c_custkey GROUP BY a.c_city, b.c_city;
    1 | 3 | SELECT c_city, COUNT(*) FROM customer a JOIN notes b USING (c_custkey, c_city) GROUP BY c_city;
    1 | 3 | SELECT a.c_city, COUNT(*) FROM customer a JOIN notes b USING (c_custkey) GROUP BY a.c_city;
    1 | 3 | SELECT c_vip, COUNT(*), SUM(o_total) FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY
        c_vip;
    1 | 2 | SELECT i_back, COUNT(*), COUNT(DISTINCT o_custkey) FROM items JOIN orders ON i_orderkey =
        o_orderkey GROUP BY i_back;
    1 | 5 | SELECT o_year, COUNT(*) FROM orders JOIN customer ON c_custkey = o_custkey GROUP BY o_year;
    1 | 2 | SELECT CASE WHEN o_total > 50 THEN 'big' ELSE 'small' END AS k, COUNT(*) FROM orders JOIN customer
        ON c_custkey = o_custkey GROUP BY k;
    1 | 3 | SELECT CASE WHEN o_orderkey IS NULL THEN 'none' WHEN o_total > 50 THEN 'big' END AS k, COUNT(*)
        FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY k;
    1 | 6 | SELECT FLOOR(o_total / 25) AS k, COUNT(*) FROM orders JOIN customer ON c_custkey = o_custkey GROUP
        BY k;
    1 | 31 | SELECT n, COUNT(*) FROM (SELECT c_custkey, COUNT(o_orderkey) AS n FROM customer LEFT JOIN orders
        ON c_custkey = o_custkey GROUP BY c_custkey) WHERE n BETWEEN 0 AND 30 GROUP BY n;
    1 | 41 | SELECT n, COUNT(*) FROM (SELECT c_custkey, LEAST(COUNT(o_orderkey), 40) AS n FROM customer LEFT
        JOIN orders ON c_custkey = o_custkey AND o_total > 30 GROUP BY c_custkey) GROUP BY n;
    1 | 2 | SELECT o_prio, COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey, o_prio, COUNT(*) AS n FROM
        orders GROUP BY o_custkey, o_prio) GROUP BY o_prio;
    1 | 3 | SELECT c_city, COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders
        GROUP BY o_custkey) JOIN customer ON k = c_custkey GROUP BY c_city;
    1 | 2 | SELECT q, COUNT(*) FROM (SELECT o_custkey, COUNT(*) > 3 AS q FROM orders GROUP BY o_custkey) GROUP
        BY q;
    1 | 2 | SELECT o_prio, COUNT(*) FROM (SELECT o_prio, o_custkey FROM orders UNION ALL SELECT o_prio,
        o_custkey FROM orders) GROUP BY o_prio;
    1 | 3 | SELECT c_vip, COUNT(*) FROM (SELECT c_vip, c_custkey FROM customer UNION ALL SELECT i_back,
        o_custkey FROM items JOIN orders ON i_orderkey = o_orderkey) GROUP BY c_vip;
    1 | 3 | SELECT o_custkey IN (SELECT c_custkey FROM customer WHERE c_vip) AS vip, COUNT(*), SUM(o_total)
        FROM orders GROUP BY vip;
    1 | 3 | SELECT c_nation IN (SELECT g_key FROM gaps) AS k, COUNT(*) FROM customer GROUP BY k;
    1 | 2 | SELECT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey) AS k, COUNT(*) FROM customer
        GROUP BY k;
    1 | 2 | SELECT CASE WHEN EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_total > 50) THEN
        'y' ELSE 'n' END AS k, COUNT(*) FROM customer GROUP BY k;
    1 | 2 | SELECT n_name, COUNT(*) FROM customer JOIN (SELECT n_key AS k, n_name FROM nation WHERE n_big) AS
        n ON c_nation = k GROUP BY n_name;
    1 | 6 | SELECT n_name, COUNT(*) FROM (SELECT c_custkey AS k, n_name FROM customer JOIN nation ON c_nation
        = n_key) AS q JOIN orders ON k = o_custkey GROUP BY n_name;
    1 | 6 | SELECT a.n_name, COUNT(*) FROM customer JOIN nation a ON c_nation = a.n_key CROSS JOIN nation b
        WHERE b.n_key > 2 GROUP BY a.n_name;
    2 | 18 | SELECT a.n_name, b.n_name AS m, COUNT(*) FROM customer JOIN nation a ON c_nation = a.n_key CROSS
        JOIN nation b WHERE b.n_key > 2 GROUP BY a.n_name, b.n_name;
    1 | 6 | SELECT n_name, COUNT(*) FROM nation GROUP BY n_name;
    1 | 2 | SELECT site, COUNT(*), COUNT(DISTINCT who) FROM logins GROUP BY site;
    1 | 2 | SELECT logins.site, COUNT(*), COUNT(DISTINCT logins.who) FROM logins JOIN profiles ON logins.who =
        profiles.who GROUP BY logins.site;
    1 | 6 | SELECT DISTINCT n_name, COUNT(*) FROM customer JOIN nation ON c_nation = n_key GROUP BY n_name;
    1 | 2 | SELECT w_word, COUNT(*) FROM nobody, customer, words WHERE x_custkey = c_custkey AND c_vip =
        w_flag GROUP BY w_word;
    1 | 4 | SELECT n_name AS Name, COUNT(*) AS n FROM customer JOIN nation ON c_nation = n_key GROUP BY n_name
        HAVING COUNT(*) > 3.5;
"""

UNKNOWN = """
    1 | SELECT o_code, COUNT(DISTINCT o_custkey) FROM orders GROUP BY o_code;
    1 | SELECT c_name, COUNT(DISTINCT o_custkey) FROM orders JOIN customer ON c_custkey = o_custkey GROUP BY
        c_name;
    2 | SELECT c_name, n_name, COUNT(DISTINCT c_custkey) FROM customer JOIN nation ON c_nation = n_key GROUP BY
        c_name, n_name;
    1 | SELECT o_date, COUNT(DISTINCT o_custkey) FROM orders JOIN customer ON c_custkey = o_custkey WHERE o_total
        > 20 GROUP BY o_date;
    1 | SELECT v_at, COUNT(DISTINCT v_custkey) FROM visits GROUP BY v_at;
    1 | SELECT code, COUNT(DISTINCT k) FROM (SELECT o_custkey AS k, o_code AS code FROM orders UNION ALL SELECT
        v_custkey, v_code FROM visits) GROUP BY code;
    1 | SELECT n, COUNT(DISTINCT k) FROM (SELECT o_custkey AS k, COUNT(*) AS n FROM orders GROUP BY o_custkey)
        GROUP BY n;
"""


def queries(text: str) -> list[list[str]]:
    """The queries of a text, each in its parts."""
    return [[" ".join(part.split()) for part in each.split(" | ")] for each in text.split(";") if each.strip()]


def one_row() -> list[tuple[str, str]]:
    """Queries of one row, each with DuckDB's text."""
    listed = [each for text in ONE_ROW for each in queries(text)]
    return [(each[0], each[-1]) for each in listed]


# Random queries.


@dataclass(frozen=True)
class Item:
    """One table of FROM: its text, its columns by kind (as they are named in the query), the column that is the unit
    and the key of an order that leads to it."""

    text: str
    columns: Mapping[str, Sequence[str]]
    unit: str = ""
    order: str = ""


PEOPLE: dict[str, tuple[str, dict[str, list[str]]]] = {
    "customer": (
        "c_custkey",
        {
            "number": ["c_nation", "c_balance"],
            "nation": ["c_nation"],
            "day": ["c_since"],
            "flag": ["c_vip"],
            "text": ["c_name"],
            "key": ["c_vip"],
            "listed": ["c_city"],
        },
    ),
    "orders": (
        "o_custkey",
        {
            "number": ["o_total", "o_year"],
            "year": ["o_year"],
            "day": ["o_date"],
            "code": ["o_code"],
            "text": ["o_code", "o_prio"],
            "key": ["o_year"],
            "listed": ["o_prio"],
        },
    ),
    "visits": ("v_custkey", {"number": ["v_spent"], "day": ["v_day"], "code": ["v_code"], "text": ["v_code"]}),
    "letters": ("l_custkey", {"number": ["l_cost"], "code": ["l_code"], "text": ["l_code"]}),
    "notes": ("c_custkey", {"number": ["stars"], "key": ["stars"], "listed": ["c_city"]}),
    "items": (
        "",
        {
            "number": ["i_qty", "i_prod"],
            "prod": ["i_prod"],
            "code": ["i_code"],
            "flag": ["i_back"],
            "text": ["i_code"],
            "key": ["i_back"],
        },
    ),
}
PLACES: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "nation": ("nation", "n_key", {"text": ["n_name", "n_region"], "flag": ["n_big"], "key": ["n_name", "n_region"]}),
    "code": ("tags", "t_code", {"text": ["t_kind"], "number": ["t_weight"], "key": ["t_kind", "t_weight"]}),
    "prod": ("prod", "p_id", {"number": ["p_price"], "text": ["p_kind"], "key": ["p_kind"]}),
    "day": ("days", "d_day", {"text": ["d_name"], "key": ["d_name"]}),
    "flag": ("words", "w_flag", {"text": ["w_word"], "key": ["w_word"]}),
}
"""For each kind of column the public table that it leads to, its key, and columns by kind."""


LISTS = {
    "nation": [
        "SELECT n_key FROM nation",
        "SELECT n_key FROM nation WHERE n_big",
        "SELECT g_key FROM gaps",
        "SELECT g_key FROM gaps WHERE g_key > 2",
        "SELECT z_key FROM nothing",
        "SELECT r_nation FROM rates WHERE r_rate > 2",
        "1, 3, NULL",
    ],
    "code": [
        "SELECT t_code FROM tags",
        "SELECT t_code FROM tags WHERE t_weight > 2",
        "SELECT g_code FROM gaps",
        "SELECT z_code FROM nothing",
        "'a', 'q'",
    ],
    "day": ["SELECT d_day FROM days WHERE d_name <> 'day 1'", "SELECT d_day FROM days"],
    "flag": ["SELECT w_flag FROM words WHERE w_word = 'yes'", "SELECT n_big FROM nation"],
}
"""What stands in IN (...), by kind of column."""


@dataclass(frozen=True)
class RandomJoin:
    """A query: its text, how many keys it groups by, and a text that counts the rows that it aggregates."""

    sql: str
    keys: int
    size: str


class Joins:
    """Random queries over the tables above, in words that DuckDB takes too."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.places = 0
        self.depth = 0
        self.common: list[str] = []

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def some(self, columns: Iterable[str], most: int) -> list[str]:
        listed = sorted(columns)
        return self.rng.sample(listed, min(len(listed), self.rng.randint(0, most)))

    def alias(self) -> str:
        self.places += 1
        return f"t{self.places}"

    # What stands in FROM.

    def table(self, name: str) -> Item:
        alias = self.alias()
        unit, columns = PEOPLE[name]
        named = {kind: [f"{alias}.{each}" for each in listed] for kind, listed in columns.items()}
        key = {"orders": f"{alias}.o_orderkey", "items": f"{alias}.i_orderkey"}.get(name, "")
        return Item(f"{name} AS {alias}", named, f"{alias}.{unit}" if unit else "", key)

    def base(self, *others: str) -> Item:
        return self.table(self.rng.choice([name for name in PEOPLE if name not in ("items", *others)]))

    def people(self) -> Item:
        """A table of people's rows, or a sub-query over some."""
        made = [self.base, self.base, self.filtered, self.per_unit, self.union]
        if self.depth == 0:
            made.append(self.joined)
        return self.rng.choice(made)()

    def placed(self, sql: str, columns: Mapping[str, Sequence[str]], order: str = "") -> Item:
        """A sub-query in FROM or as a CTE, whose unit is its column u."""
        alias = self.alias()
        text = f"({sql})"
        if self.maybe(0.3):
            text = f"cte{len(self.common)}"
            self.common.append(f"{text} AS ({sql})")
        named = {kind: [f"{alias}.{each}" for each in listed] for kind, listed in columns.items()}
        return Item(f"{text} AS {alias}", named, f"{alias}.u", order and f"{alias}.{order}")

    def filtered(self) -> Item:
        base = self.base()
        columns: dict[str, list[str]] = {}
        listed = [f"{base.unit} AS u"]
        for kind in ("number", "text", "day", "flag", "code", "nation", "year"):
            for column in self.some(base.columns.get(kind, []), 1):
                columns.setdefault(kind, []).append(f"c{len(listed)}")
                listed.append(f"{column} AS c{len(listed)}")
        order = ""
        if base.order:
            order = "ok"
            listed.append(f"{base.order} AS ok")
        return self.placed(f"SELECT {', '.join(listed)} FROM {base.text}{self.where([base], 0.8)}", columns, order)

    def joined(self) -> Item:
        """A sub-query over a join, one row for each."""
        self.depth += 1
        tables, conditions, items = self.source()
        self.depth -= 1
        columns: dict[str, list[str]] = {}
        listed = [f"{items[0].unit} AS u"]
        for item in items:
            for kind in self.some(set(item.columns) - {"listed"}, 2):
                if item.columns[kind]:
                    columns.setdefault(kind, []).append(f"c{len(listed)}")
                    listed.append(f"{self.rng.choice(item.columns[kind])} AS c{len(listed)}")
        where = self.where(items, 0.4, conditions)
        return self.placed(f"SELECT {', '.join(listed)} FROM {tables}{where}", columns)

    def per_unit(self) -> Item:
        base = self.base()
        items, conditions = [base], []
        unit = base.unit
        if self.maybe(0.3):
            other = self.base()
            items.append(other)
            conditions.append(f"{base.unit} = {other.unit}")
        numbers = [column for item in items for column in item.columns.get("number", [])]
        listed = [f"{unit} AS u", "COUNT(*) AS n"]
        columns = {"number": ["n"]}
        keys = [unit]
        for function in self.some(["MIN", "MAX", "SUM", "AVG", "COUNT", "COUNT(DISTINCT"], 2):
            inner = "(DISTINCT " if "DISTINCT" in function else "("
            chosen = f" FILTER (WHERE {self.condition(items, 0)})" if self.maybe(0.2) else ""
            name = f"a{len(listed)}"
            listed.append(f"{function.split('(')[0]}{inner}{self.rng.choice(numbers)}){chosen} AS {name}")
            columns["number"].append(name)
        if self.maybe(0.3):
            key = self.rng.choice([*items[0].columns.get("text", []), *items[0].columns.get("key", []), numbers[0]])
            keys.append(key)
            listed.append(f"{key} AS k")
        having = self.rng.choice(["", " HAVING COUNT(*) > 1", f" HAVING MAX({numbers[0]}) > 3", " HAVING COUNT(*) < 5"])
        tables = ", ".join(item.text for item in items)
        where = self.where(items, 0.5, conditions)
        return self.placed(
            f"SELECT {', '.join(listed)} FROM {tables}{where} GROUP BY {', '.join(keys)}{having}", columns
        )

    def union(self) -> Item:
        parts = []
        for _ in range(self.rng.randint(2, 3)):
            base = self.base("letters")  # the parts have units of one type
            number = self.rng.choice([*base.columns["number"], "NULL", "7"])
            text = self.rng.choice([*base.columns.get("code", []), "'a'", "NULL"])
            names = ("u", "v", "w") if not parts else ("", "", "")
            listed = [f"{e} AS {n}" if n else e for e, n in zip((base.unit, number, text), names, strict=True)]
            parts.append(f"SELECT {', '.join(listed)} FROM {base.text}{self.where([base], 0.5)}")
        # A column of NULLs alone is an integer, which no part of text may follow.
        parts[0] = parts[0].replace("NULL AS v", "0.5 AS v").replace("NULL AS w", "'b' AS w")
        return self.placed(" UNION ALL ".join(parts), {"number": ["v"], "text": ["w"], "code": ["w"]})

    # Conditions.

    def where(self, items: Sequence[Item], share: float, conditions: Sequence[str] = ()) -> str:
        held = list(conditions)
        if self.maybe(share):
            held.append(self.condition(items, 2))
        self.rng.shuffle(held)
        return f" WHERE {' AND '.join(held)}" if held else ""

    def condition(self, items: Sequence[Item], depth: int) -> str:
        """A condition over columns of the items; with depth, of several terms and with sub-queries."""
        if depth and self.maybe(0.35):
            parts = [self.condition(items, depth - 1) for _ in range(2)]
            return f"({self.rng.choice([' AND ', ' OR ']).join(parts)})"
        if depth and self.maybe(0.15):
            return f"NOT {self.condition(items, depth - 1)}"
        with_units = [item for item in items if item.unit and " AS cte" not in item.text]
        if depth and with_units and self.maybe(0.3):
            return self.membership(self.rng.choice(with_units))
        kinds = [(item, kind) for item in items for kind in item.columns if kind not in ("key", "listed")]
        if not kinds:
            return "TRUE"
        item, kind = self.rng.choice(kinds)
        column = self.rng.choice(item.columns[kind])
        if self.maybe(0.12):
            return f"{column} IS {self.rng.choice(['', 'NOT '])}NULL"
        if kind in LISTS and depth and self.maybe(0.5):
            return f"{column} {self.rng.choice(['', 'NOT '])}IN ({self.rng.choice(LISTS[kind])})"
        return self.simple(kind, column, items)

    def simple(self, kind: str, column: str, items: Sequence[Item]) -> str:
        rng = self.rng
        if kind in ("number", "year", "nation", "prod"):
            others = [each for item in items for each in item.columns.get("number", []) if each != column]
            if others and self.maybe(0.3):
                return f"{column} {rng.choice(['<', '>=', '<>'])} {rng.choice(others)}"
            return f"{column} {rng.choice(['<', '>', '<=', '>=', '=', '<>'])} {rng.choice([0, 1, 2, 3, 5, 10, 25, 50])}"
        if kind in ("text", "code"):
            return f"{column} {rng.choice(['=', '<>', '>', 'LIKE'])} {rng.choice(CODES)}"
        if kind == "day":
            return f"{column} {rng.choice(['<', '>', '<>'])} DATE '2020-03-0{rng.randint(1, 9)}'"
        return rng.choice([column, f"NOT {column}", f"{column} IS TRUE"])

    def membership(self, item: Item) -> str:
        """IN or EXISTS over other rows of the same people."""
        word = self.rng.choice(["", "NOT "])
        if item.order and self.maybe(0.4):
            inner = self.table("items")
            if self.maybe(0.5):
                return f"{item.order} {word}IN (SELECT {inner.order} FROM {inner.text}{self.where([inner], 0.7)})"
            where = self.where([inner], 0.7, [f"{inner.order} = {item.order}"])
            return f"{word}EXISTS (SELECT 1 FROM {inner.text}{where})"
        inner = self.base()
        if self.maybe(0.3):
            having = self.rng.choice(["COUNT(*) > 1", f"SUM({inner.columns['number'][0]}) > 40"])
            grouped = f"GROUP BY {inner.unit} HAVING {having}"
            return f"{item.unit} {word}IN (SELECT {inner.unit} FROM {inner.text}{self.where([inner], 0.4)} {grouped})"
        if self.maybe(0.5):
            return f"{item.unit} {word}IN (SELECT {inner.unit} FROM {inner.text}{self.where([inner], 0.7)})"
        conditions = [f"{inner.unit} = {item.unit}"]
        if self.maybe(0.5):
            mine = self.rng.choice(item.columns.get("number", ["3"]))
            theirs = self.rng.choice(inner.columns["number"])
            conditions.append(f"{mine} {self.rng.choice(['<', '<>', '>'])} {theirs}")
        return f"{word}EXISTS (SELECT 1 FROM {inner.text}{self.where([inner], 0.4, conditions)})"

    # Joins.

    def more(self, items: Sequence[Item]) -> tuple[Item, list[str]] | None:
        """One more table, and the equalities by which it comes to those that are there."""
        leads = [(kind, column) for item in items for kind in PLACES for column in item.columns.get(kind, [])]
        orders = [item.order for item in items if item.order]
        way = self.rng.choice(["place", "place", "unit", "order", "rates"])
        if way == "place" and leads:
            kind, column = self.rng.choice(leads)
            name, key, columns = PLACES[kind]
            alias = self.alias()
            named = {each: [f"{alias}.{one}" for one in listed] for each, listed in columns.items()}
            sides = [column, f"{alias}.{key}"]
            self.rng.shuffle(sides)
            return Item(f"{name} AS {alias}", named), [" = ".join(sides)]
        if way == "rates":
            nations = [column for item in items for column in item.columns.get("nation", [])]
            years = [column for item in items for column in item.columns.get("year", [])]
            alias = self.alias()
            if nations and years:
                on = [f"{alias}.r_nation = {self.rng.choice(nations)}", f"{self.rng.choice(years)} = {alias}.r_year"]
                return Item(f"rates AS {alias}", {"number": [f"{alias}.r_rate"], "key": [f"{alias}.r_year"]}), on
        if way == "order" and orders:
            inner = self.table("items")
            return inner, [f"{inner.order} = {self.rng.choice(orders)}"]
        units = [item.unit for item in items if item.unit]
        if way == "unit" and units:
            other = self.people()
            return other, [f"{other.unit} = {self.rng.choice(units)}"]
        return None

    def source(self) -> tuple[str, list[str], list[Item]]:
        """FROM, the conditions that WHERE must hold for it, and its items."""
        return self.comma() if self.maybe(0.4) else self.explicit()

    def comma(self) -> tuple[str, list[str], list[Item]]:
        """Tables in any order, and their equalities, maybe in every arm of an OR."""
        items = [self.people()]
        conditions: list[str] = []
        for _ in range(self.rng.randint(0, 3)):
            found = self.more(items)
            if found is not None:
                items.append(found[0])
                conditions += found[1]
        listed = [item.text for item in items]
        self.rng.shuffle(listed)
        if len(items) > 1 and self.maybe(0.3):
            arms = [[*self.rng.sample(conditions, len(conditions)), self.condition(items, 0)] for _ in range(2)]
            conditions = [f"(({' AND '.join(arms[0])}) OR ({' AND '.join(arms[1])}))"]
        return ", ".join(listed), conditions, items

    def explicit(self) -> tuple[str, list[str], list[Item]]:
        """Joins one after the other."""
        items = [self.people()]
        text = items[0].text
        for step in range(self.rng.randint(0, 3)):
            if self.maybe(0.08):
                alias = self.alias()
                text = f"{text} CROSS JOIN words AS {alias}"
                items.append(Item("", {"text": [f"{alias}.w_word"], "key": [f"{alias}.w_word"]}))
                continue
            found = self.more(items)
            if found is None:
                continue
            other, on = found
            how = self.rng.choice(
                ["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN" if step else "RIGHT JOIN"]
            )
            if self.maybe(0.4):
                on.append(self.condition([self.rng.choice([*items, other])], 0))
            self.rng.shuffle(on)
            clause = f"ON {' AND '.join(on)}"
            parts = (other.text, how, text) if how == "RIGHT JOIN" else (text, how, other.text)
            text = f"{' '.join(parts)} {clause}"
            if how[0] in "LR":  # a list of keys without NULL does not have the rows without a match
                other = replace(other, columns={**other.columns, "listed": []})
            items.append(other)
        return text, [], items

    def query(self) -> RandomJoin:
        """A query that dpsql takes."""
        tables, conditions, items = self.source()
        where = self.where(items, 0.6, conditions)
        numbers = [column for item in items for column in item.columns.get("number", [])] or ["1"]
        outputs = ["COUNT(*)", *(self.output(items, numbers) for _ in range(self.rng.randint(0, 3)))]
        keys = [column for item in items for kind in ("key", "listed") for column in item.columns.get(kind, [])]
        chosen = self.some(keys, 2) if self.maybe(0.4) else []
        if self.maybe(0.15) and numbers != ["1"]:
            chosen.append(f"({self.condition(items, 1)})")
        listed = [f"{key} AS k{at}" for at, key in enumerate(chosen)]
        grouped = f" GROUP BY {', '.join(chosen)}" if chosen else ""
        common = f"WITH {', '.join(self.common)} " if self.common else ""
        body = f"FROM {tables}{where}"
        return RandomJoin(
            f"{common}SELECT {', '.join([*listed, *outputs])} {body}{grouped}",
            len(chosen),
            f"{common}SELECT COUNT(*) {body}",
        )

    def output(self, items: Sequence[Item], numbers: Sequence[str]) -> str:
        number = self.rng.choice(numbers)
        chosen = f" FILTER (WHERE {self.condition(items, 1)})" if self.maybe(0.3) else ""
        if self.maybe(0.25) and items[0].unit:
            return f"COUNT(DISTINCT {items[0].unit}){chosen}"
        if self.maybe(0.3):
            return f"COUNT({number}){chosen}"
        if self.maybe(0.3):
            return f"COALESCE(SUM(CASE WHEN {self.condition(items, 1)} THEN 2 ELSE 0 END){chosen}, 0)"
        return f"COALESCE(SUM(LEAST(GREATEST({number}, -60), 120)){chosen}, 0)"
