"""Speed with people of many rows and several tables, beside the same work in plain pandas.

python benchmarks/units.py [--rows 1000000] [--repeats 5]

Q5 of the speed list: units of 4 rows on average, of which at most 4 count. Pandas does the same truncation: rows in
random order, the first four of each unit (`shuffled`), and for comparison those that come first, which is no fair
choice but less work. Joins: so many rows with a tenth as many, against merge + groupby, which leaves out nobody.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd
from measure import Row, environment, extra_memory, show, side_by_side
from people import BOUNDS, KEYS, SEED, people

import dpsql

MOST = 4
Q5 = "SELECT education, COUNT(DISTINCT pid), SUM(income) FROM people GROUP BY education"
ALONG = "SELECT segment, COUNT(*), SUM(total) FROM orders JOIN customers ON customer = id GROUP BY segment"
PUBLIC = "SELECT segment, COUNT(*), SUM(total) FROM orders JOIN shops ON customer = id GROUP BY segment"
SEGMENTS = [f"segment {number}" for number in range(10)]


def _people(rows: int, distinct: int) -> pd.DataFrame:
    """People of many rows: the table of the other benchmarks with so many different pids."""
    frame = people(rows)
    frame["pid"] = np.random.default_rng(SEED).integers(0, distinct, rows)
    return frame


def _in_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    kept = frame[frame.groupby("pid").cumcount() < MOST]
    return kept.groupby("education").agg(people=("pid", "nunique"), income=("income", "sum"))


def _session(frame: pd.DataFrame) -> dpsql.Session:
    table = dpsql.Table(frame, unit="pid", max_rows=MOST, bounds=BOUNDS, keys=KEYS)
    return dpsql.Session({"people": table}, budget=dpsql.Budget(10**6))


def q5(rows: int, repeats: int) -> list[Row]:
    """Q5 where most units are over the limit, and where few are."""
    found = []
    for what, distinct in (("half of the units over the limit", rows // 4), ("few over it", rows // 2)):
        frame = _people(rows, distinct)
        warm = _session(frame)
        warm.query(Q5, epsilon=1, fresh=True)
        cold = iter([_session(frame) for _ in range(repeats)])
        ms = side_by_side(
            repeats,
            shuffled=lambda frame=frame: _in_pandas(frame.sample(frac=1)),  # type: ignore[misc]
            first=lambda frame=frame: _in_pandas(frame),  # type: ignore[misc]
            cold=lambda cold=cold: next(cold).query(Q5, epsilon=1, fresh=True),  # type: ignore[misc]
            warm=lambda warm=warm: warm.query(Q5, epsilon=1, fresh=True),  # type: ignore[misc]
        )
        found.append(_row(what, rows, ms, ms["first"], {"pandas shuffled ms": ms["shuffled"]}))
    return found


def joins(rows: int, repeats: int) -> list[Row]:
    """A join of so many rows with a tenth as many."""
    draw = np.random.default_rng(SEED)
    other = pd.DataFrame({"id": np.arange(rows // 10), "segment": draw.choice(SEGMENTS, rows // 10)})
    orders = pd.DataFrame({"customer": draw.integers(0, rows // 10, rows), "total": draw.integers(0, 1000, rows)})

    def plain() -> object:
        together = orders.merge(other, left_on="customer", right_on="id")
        return together.groupby("segment").agg(count=("total", "size"), total=("total", "sum"))

    bounds, keys = {"total": (0, 1000)}, {"segment": SEGMENTS}
    cases: tuple[tuple[str, str, Callable[[], dict[str, dpsql.Table]]], ...] = (
        (
            "with a public table",
            PUBLIC,
            lambda: {
                "orders": dpsql.Table(orders, bounds=bounds),
                "shops": dpsql.Table(other, public=True, unique=["id"]),
            },
        ),
        (
            "along a foreign key, nobody over the limit",
            ALONG,
            lambda: {
                "customers": dpsql.Table(other, unit="id", unique=["id"], keys=keys),
                "orders": dpsql.Table(orders, unit="customer -> customers.id", max_rows=1000, bounds=bounds),
            },
        ),
        (
            "along a foreign key, at most 12 orders a customer",
            ALONG,
            lambda: {
                "customers": dpsql.Table(other, unit="id", unique=["id"], keys=keys),
                "orders": dpsql.Table(orders, unit="customer -> customers.id", max_rows=12, bounds=bounds),
            },
        ),
    )
    found = []
    for what, sql, tables in cases:
        warm = dpsql.Session(tables(), budget=dpsql.Budget(10**6))
        warm.query(sql, epsilon=1, fresh=True)
        cold = iter([dpsql.Session(tables(), budget=dpsql.Budget(10**6)) for _ in range(repeats)])
        ms = side_by_side(
            repeats,
            plain=plain,
            cold=lambda cold=cold, sql=sql: next(cold).query(sql, epsilon=1, fresh=True),  # type: ignore[misc]
            warm=lambda warm=warm, sql=sql: warm.query(sql, epsilon=1, fresh=True),  # type: ignore[misc]
        )
        memory = extra_memory(lambda warm=warm, sql=sql: warm.query(sql, epsilon=1, fresh=True))  # type: ignore[misc]
        found.append(_row(what, rows, ms, ms["plain"], {"pandas MB": extra_memory(plain), "dpsql MB": memory}))
    return found


def _row(what: str, rows: int, ms: dict[str, float], plain: float, more: Row) -> Row:
    return {
        "what": what,
        "rows": rows,
        "pandas ms": plain,
        "dpsql cold ms": ms["cold"],
        "dpsql warm ms": ms["warm"],
        "ratio warm": ms["warm"] / plain,
        "ratio cold": ms["cold"] / plain,
        **more,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    print(environment())
    note = "The ratio is to pandas with the first four rows of each unit, the quicker of both ways."
    show(f"Q5, at most {MOST} rows a unit", q5(asked.rows, asked.repeats), note)
    show("Joins", joins(asked.rows, asked.repeats), "Pandas leaves out nobody.")


if __name__ == "__main__":
    main()
