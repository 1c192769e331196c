"""What expressions cost beside DuckDB on the same frame, and what planning costs beside parsing.

python benchmarks/language.py [--rows 1e7] [--repeats 7]

Both engines read the same DataFrame in the same run, with as many threads as the machine has; times are medians of
interleaved runs. dpsql is warm: its text columns are encoded by the first query of a session. Planning is timed in
tight loops, on texts of the other benchmarks and a longer one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
from measure import Row, show, side_by_side
from people import people, session, table
from sqlglot.dialects.duckdb import DuckDB

from dpsql.core.loss import as_epsilon
from dpsql.core.sensitivity.row_contributions import analyse
from dpsql.core.unit import Neighbours
from dpsql.schema.declaration import resolve
from dpsql.session.prepare import Terms, prepare
from dpsql.sources.frames import stored_columns
from dpsql.sql.bind.statement import bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parse import parse

EXPRESSIONS = {
    "CASE of whole numbers": "SELECT SUM(CASE WHEN age < 30 THEN income WHEN age < 60 THEN income * 2 ELSE 0 END) AS s "
    "FROM people",
    "CASE of real numbers": "SELECT SUM(CASE WHEN hours > 40 THEN income * 1.5 ELSE income END) AS s FROM people "
    "WHERE age BETWEEN 20 AND 60",
    "CASE as a key": "SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS g, "
    "COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY g",
    "AVG with FILTER": "SELECT AVG(income) FILTER (WHERE hours > 40) AS a FROM people",
    "LIKE": "SELECT COUNT(*) AS n FROM people WHERE education LIKE '%th%'",
    "text functions": "SELECT COUNT(*) AS n FROM people WHERE UPPER(SUBSTRING(state, 1, 5)) = 'STATE'",
    "text as a key": "SELECT UPPER(sex) AS s, COUNT(*) AS n FROM people GROUP BY s",
    "// as a key": "SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade",
}
TEXTS = {
    "Q1": "SELECT COUNT(*) FROM people",
    "Q2": "SELECT COUNT(*), SUM(income), AVG(age) FROM people WHERE hours > 40",
    "Q3": "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY education",
    "Q4": "SELECT state, education, sex, COUNT(*), AVG(income) FROM people GROUP BY state, education, sex",
    "CASE": EXPRESSIONS["CASE of whole numbers"],
    "CTE": "WITH a AS (SELECT age // 10 AS decade, income FROM people WHERE hours > 20) "
    "SELECT decade, AVG(income) AS m, COUNT(*) FROM a GROUP BY decade HAVING COUNT(*) > 10 ORDER BY m DESC LIMIT 3",
}


def expressions(rows: int, repeats: int) -> list[Row]:
    """Each expression in both engines."""
    frame = people(rows)
    ours, theirs = session(frame), duckdb.connect()
    theirs.register("people", frame)
    found = []
    for name, sql in EXPRESSIONS.items():

        def private(sql: str = sql) -> Any:
            return ours.query(sql, epsilon=1, fresh=True)

        def exact(sql: str = sql) -> Any:
            return theirs.execute(sql).fetchall()

        private()
        exact()
        times = side_by_side(repeats, dpsql=private, duckdb=exact)
        found.append({"question": name, **times, "ratio": times["dpsql"] / times["duckdb"]})
    return found


def planning() -> list[Row]:
    """Milliseconds of each step, per text."""
    owned = table(people(10))
    catalog = Catalog({"people": resolve("people", stored_columns(owned.frame), owned.declaration)})
    dialect, terms, found = DuckDB(), Terms(as_epsilon(1), None), []
    for name, sql in TEXTS.items():
        statement = parse(sql)
        plan = bind(statement, catalog).query.plan
        steps: dict[str, Callable[[], object]] = {
            "parse": lambda sql=sql: dialect.parse(sql),
            "bind": lambda statement=statement: bind(statement, catalog),
            "analyse": lambda plan=plan: analyse(plan, Neighbours.UNBOUNDED),
            "cached": lambda sql=sql: prepare(sql, catalog, Neighbours.UNBOUNDED, terms),
        }
        times = {step: _loop(run) for step, run in steps.items()}
        ratio = (times["bind"] + times["analyse"]) / times["parse"]
        found.append({"text": name, **times, "bind + analyse / parse": ratio})
    return found


def _loop(run: Callable[[], object], times: int = 200) -> float:
    run()
    taken = []
    for _ in range(times):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return 1e3 * median(taken)


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    show("Planning", planning(), "Milliseconds a text; `cached` is the whole of planning for a repeated text.")
    rows = int(chosen.rows)
    show(f"Expressions, {rows:,} rows", expressions(rows, chosen.repeats), "Milliseconds; below 1 dpsql is quicker.")


if __name__ == "__main__":
    main()
