"""How long the questions of TPC-H take where the data are: pandas, DuckDB and Spark beside plain queries.

python benchmarks/tpch_times.py --data DIR [--scale 1] [--runs 3] [--queries q01 q06] [--engines pandas duckdb spark]
    [--people-only] [--memory 6GB]

CPU seconds of this process and all its threads, and of Spark's, the least of some runs, each a whole warm
`query(..., fresh=True)`; the plain query is the text without its privacy clause, over the same Parquet files: in a
connection of DuckDB of as many threads and of the same memory, and with Spark in its local session of two. With
--runs 0 there is one run, which is warm in nothing but its files. With several engines their exact integers are
compared too, by ==, and a difference is printed. The tables are made by tpchgen-cli where DIR does not hold them.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import spark as on_spark
import sqlglot
import tpch
from measure import Row, show

import dpsql
from dpsql.testing import insecure_exact

KEY = bytes(range(32))


def sessions(
    folder: Path, engines: list[str], memory: str | None = None, *, public: bool = True
) -> dict[str, dpsql.Session]:
    """A session for each engine: of frames, or of the files where they lie. public: with the public tables too, which
    are held in memory."""
    schema, made = dpsql.Schema.from_toml(tpch.FOLDER / "tpch.toml"), {}
    for engine in engines:
        if engine == "pandas":
            made[engine] = tpch.session(tpch.database(folder))
        else:
            files = {name: dpsql.Table(folder / f"{name}.parquet") for name in tpch.TABLES if name not in PUBLIC}
            for name in PUBLIC if public else ():
                files[name] = dpsql.Table(folder / f"{name}.parquet", public=True)
            budget = dpsql.Budget(1e9, 0.999)
            made[engine] = dpsql.Session(files, schema=schema, budget=budget, memory=memory, engine=engine)
    return made


def plain_on_spark(spark: Any, folder: Path) -> Callable[[tpch.Query], object]:
    """What Spark's own SQL answers over the files."""
    for name in tpch.TABLES:
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)

    def rows(text: str) -> list[Any]:
        return list(spark.sql(sqlglot.transpile(text, read="duckdb", write="spark")[0]).collect())

    def answer(query: tpch.Query) -> list[Any]:
        if query.first is None:
            return rows(query.exact)
        return rows(query.exact.replace(f"${query.parameter}", repr(float(rows(query.first.exact)[0][0]))))

    return answer


PUBLIC = ("part", "supplier", "partsupp", "nation", "region")


def seconds(run: Callable[[], object], spark: Any = None) -> float:
    """CPU of one call, with that of Spark's process."""
    gc.collect()
    before = time.process_time() if spark is None else on_spark.cpu_seconds(spark)
    run()
    return (time.process_time() if spark is None else on_spark.cpu_seconds(spark)) - before


def measure(
    held: dict[str, dpsql.Session],
    plain: dict[str, Callable[[tpch.Query], object]],
    query: tpch.Query,
    runs: int,
    spark: Any,
) -> tuple[Row, float]:
    """One line, and the ratio of the last engine to its plain query."""
    asked: dict[str, Callable[[], object]] = {
        name: lambda answer=answer: answer(query)  # type: ignore[misc]
        for name, answer in plain.items()
    }
    for name, session in held.items():
        asked[name] = lambda session=session: tpch.private_answer(session, query, 1)  # type: ignore[misc]
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(runs + 1):  # the first warms up
        for name, run in asked.items():
            times[name].append(seconds(run, spark))
    least = {name: min(found[1:] or found) for name, found in times.items()}
    cells = {name: f"{each:.3f}" for name, each in least.items()}
    ratio = least[list(held)[-1]] / least[list(plain)[-1]]
    return {"query": query.title, **cells, "ratio": f"{ratio:.1f}", "same": same(held, query)}, ratio


def same(held: dict[str, dpsql.Session], query: tpch.Query) -> str:
    """Whether all engines give the same integers."""
    if len(held) < 2:
        return "-"
    values = {} if query.first is None else {query.parameter: 5.0}
    found = [insecure_exact(session, query.sql, KEY, epsilon=1, params=values) for session in held.values()]
    return "yes" if all(each == found[0] for each in found) else "NO"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="where the Parquet files are, or are to be made")
    parser.add_argument("--scale", type=float, default=1, help="the scale factor of data to be made")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", nargs="+", metavar="q01")
    parser.add_argument("--engines", nargs="+", default=["pandas", "duckdb"])
    parser.add_argument("--people-only", action="store_true", help="without public tables; for questions of no others")
    parser.add_argument("--memory", help="what DuckDB may use, here and for the plain query")
    arguments = parser.parse_args()
    names = sorted(path.stem for path in (tpch.FOLDER / "queries").glob("q??.sql"))
    tpch.make(arguments.data, arguments.scale)
    connection = tpch.database(arguments.data)
    if arguments.memory:
        connection.execute(f"SET memory_limit = '{arguments.memory}'")
    plain: dict[str, Callable[[tpch.Query], object]] = {"plain": partial(tpch.exact_answer, connection)}
    spark = on_spark.started() if "spark" in arguments.engines else None
    if spark is not None:
        plain["plain, Spark"] = plain_on_spark(spark, arguments.data)
    held = sessions(arguments.data, arguments.engines, arguments.memory, public=not arguments.people_only)
    lines, ratios = [], []
    for name in arguments.queries or names:
        line, ratio = measure(held, plain, tpch.read(name), arguments.runs, spark)
        lines.append(line)
        ratios.append(ratio)
        print(line, flush=True)
    last = arguments.engines[-1]
    show("CPU seconds", lines, f"{last} over its plain query: median {median(ratios):.1f}, most {max(ratios):.1f}.")


if __name__ == "__main__":
    main()
