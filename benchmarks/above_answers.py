"""What SQL over answers adds to the releases below it, in ms: python benchmarks/above_answers.py [--repeats 25]

A table of 10^5 rows with 1,000 public groups, and one of 50. *Above*: a statement whose releases were answered before,
against its release by itself, both answered again: plan and connection are kept, so the rest is what stands above.
*Two releases*: a statement of two releases, drawn anew, against the two by themselves. *Intervals*: those by noise
drawn anew for an answer of 50 rows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from measure import environment, show, side_by_side

import dpsql

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
ABOVE = {
    "share of the total": "SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY city",
    "rank": f"SELECT city, n, RANK() OVER (ORDER BY n DESC) AS r FROM ({BY_CITY})",
    "running total": f"SELECT city, SUM(n) OVER (ORDER BY city) AS total FROM ({BY_CITY})",
    "join with itself": f"WITH a AS ({BY_CITY}) SELECT a.city, a.n - b.n AS d FROM a JOIN a b ON a.city = b.city + 1",
}
FIRST = "SELECT AVG(pay) AS x FROM people WHERE city < 500"
SECOND = "SELECT AVG(pay) AS x FROM people WHERE city >= 500"
TWO = f"SELECT ({FIRST}) - ({SECOND}) AS d"
SHARES_OF_STATES = "SELECT state, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY state"


def session() -> dpsql.Session:
    shapes = np.random.default_rng(1)
    rows = 100_000
    people = pd.DataFrame({"city": shapes.integers(0, 1_000, rows), "pay": shapes.uniform(0, 100, rows)})
    people["state"] = people.city % 50
    keys = {"city": list(range(1_000)), "state": list(range(50))}
    table = dpsql.Table(people, bounds={"pay": (0, 100)}, keys=keys)
    return dpsql.Session({"people": table}, budget=dpsql.Budget(epsilon=10_000))


def above(asked: dpsql.Session, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for name, sql in {**ABOVE, "nothing (1,000 groups)": BY_CITY}.items():
        asked.query(sql, epsilon=1)
        medians = side_by_side(
            repeats, whole=lambda sql=sql: asked.query(sql, epsilon=1), plain=lambda: asked.query(BY_CITY, epsilon=1)
        )
        rows.append({"above": name, **medians, "added": medians["whole"] - medians["plain"]})
    return rows


def two_releases(asked: dpsql.Session, repeats: int) -> list[dict[str, Any]]:
    def fresh(*texts: str) -> None:
        for sql in texts:
            asked.query(sql, epsilon=0.1, fresh=True)

    fresh(TWO, FIRST, SECOND)
    medians = side_by_side(repeats, together=lambda: fresh(TWO), parts=lambda: fresh(FIRST, SECOND))
    return [{"statement": "difference of two averages", **medians}]


def intervals(asked: dpsql.Session, repeats: int) -> list[dict[str, Any]]:
    sql = SHARES_OF_STATES
    asked.query(sql, epsilon=1)
    rows = []
    for level in (0.95, 0.99):
        medians = side_by_side(
            repeats,
            shown=lambda level=level: asked.query(SHARES_OF_STATES, epsilon=1).to_pandas(intervals=True, level=level),
        )
        rows.append({"level": str(level), **medians})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25)
    repeats = parser.parse_args().repeats
    asked = session()
    show("Environment", [environment()])
    show("Above an answer of 1,000 rows, ms", above(asked, repeats))
    show("Two releases, ms", two_releases(asked, repeats))
    show("Intervals by noise drawn anew, 50 rows, ms", intervals(asked, repeats))


if __name__ == "__main__":
    main()
