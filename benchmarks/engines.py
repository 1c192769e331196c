"""What a private answer over Parquet files costs, beside DuckDB's plain answer over the same files.

python benchmarks/engines.py [--rows 1e6 1e7] [--queries Q2 Q5] [--repeats 5] [--data DIR] [--memory 4GB] [--threads 2]

Both sides are warm, read the same files with the same threads and memory, and take turns. Figures are CPU seconds of
this process, all threads, and what is compared are the two of one line: the plain side clips nothing and leaves out
no rows of anybody. `exact` is the executor alone, what is left is planning, noise and the answer as a DataFrame. Q5:
people of 4 rows on average, of which at most 4 count. Memory is the peak of resident memory in a fresh process.
The files are made in a temporary folder, or stay in DIR.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Row, environment, extra_memory, fresh_process, show
from people import BOUNDS, EDUCATION, KEYS, SEED, SEXES, STATES, ZIPS

import dpsql
from dpsql.executors.base import executor_of

DELTA = 1e-6
MOST = 4
PART = 10**7  # rows of one file
GROUP = 10**6  # rows that are drawn at once
QUESTIONS = {
    "Q1": "SELECT COUNT(*) FROM people",
    "Q2": "SELECT COUNT(*), SUM(income), AVG(age) FROM people WHERE hours > 40",
    "Q3": "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY education",
    "Q4": "SELECT state, education, sex, COUNT(*), AVG(income) FROM people GROUP BY state, education, sex",
    "Q5": "SELECT education, COUNT(DISTINCT pid), SUM(income) FROM people GROUP BY education",
    "Q6": "SELECT zip, COUNT(*) FROM people GROUP BY zip",
}
OF_PEOPLE = ("Q5",)


@dataclass(frozen=True)
class Means:
    """What both sides may use."""

    memory: str
    threads: int


def files_of(rows: int, folder: Path) -> list[Path]:
    """The files of a table of so many rows, which are made where they are not there."""
    home = folder / f"people-{rows}"
    if not home.exists():
        made = folder / f"people-{rows}.new"
        made.mkdir(parents=True, exist_ok=True)
        for number in range(-(-rows // PART)):
            _write(made / f"part-{number}.parquet", number, min(PART, rows - number * PART), rows)
        made.rename(home)
    return sorted(home.glob("*.parquet"))


def _write(path: Path, number: int, rows: int, of: int) -> None:
    writer = None
    for start in range(0, rows, GROUP):
        piece = _people(np.random.default_rng([SEED, number, start]), min(GROUP, rows - start), of)
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece, row_group_size=122_880)
    assert writer is not None
    writer.close()


def _people(draw: np.random.Generator, rows: int, of: int) -> pa.Table:
    """As `people.people`, of which a person has four rows on average."""
    weights = 1 / np.arange(1, len(EDUCATION) + 1)
    places = {
        "education": (EDUCATION, draw.choice(len(EDUCATION), rows, p=weights / weights.sum())),
        "state": (STATES, draw.integers(0, len(STATES), rows)),
        "sex": (SEXES, draw.integers(0, 2, rows)),
    }
    columns: dict[str, Any] = {
        "pid": draw.integers(0, max(1, of // 4), rows),
        "age": np.clip(draw.normal(42, 16, rows).round(), 17, 90).astype(np.int64),
        "income": np.clip(draw.gamma(2, 25_000, rows).round(), 0, 200_000).astype(np.int64),
        "hours": np.clip(draw.normal(40, 11, rows).round(), 1, 99).astype(np.int64),
        **{name: pa.array(values).take(pa.array(at)) for name, (values, at) in places.items()},
        "zip": draw.integers(0, ZIPS, rows),
    }
    return pa.table(columns)


def session(files: list[Path], question: str, means: Means) -> dpsql.Session:
    """A session over the files whose budget no benchmark can use up."""
    units: dict[str, Any] = {"unit": "pid", "max_rows": MOST} if question in OF_PEOPLE else {}
    table = dpsql.Table(str(files[0].parent / "*.parquet"), bounds=BOUNDS, keys=KEYS, **units)
    budget = dpsql.Budget(1e9, 0.999)
    return dpsql.Session({"people": table}, budget=budget, memory=means.memory, threads=means.threads)


def answer(held: dpsql.Session, question: str) -> object:
    result = held.query(QUESTIONS[question], epsilon=1, delta=DELTA, fresh=True)
    assert isinstance(result, dpsql.Result)
    return result.df


@contextmanager
def plain(files: list[Path], means: Means) -> Iterator[Callable[[str], object]]:
    """DuckDB's own answers over the files."""
    connection = duckdb.connect(config={"memory_limit": means.memory, "threads": str(means.threads)})
    try:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet({[str(file) for file in files]})")
        yield lambda question: connection.execute(QUESTIONS[question]).fetchall()
    finally:
        connection.close()


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU seconds of all threads of this process."""
    before = time.process_time()
    run()
    return time.process_time() - before


def line(question: str, rows: int, files: list[Path], repeats: int, means: Means, *, memory: bool) -> Row:
    """One question on both sides."""
    held = session(files, question, means)
    with plain(files, means) as of_duckdb:
        runs: dict[str, Callable[[], object]] = {
            "plain": lambda: of_duckdb(question),
            "dpsql": lambda: answer(held, question),
            "exact": _exact(held, question),
        }
        times: dict[str, list[float]] = {name: [] for name in runs}
        for each in range(-1, repeats):  # the first round warms up
            for name in list(runs) if each % 2 == 0 else reversed(runs):
                seconds = cpu_seconds(runs[name])
                if each >= 0 or repeats == 0:
                    times[name].append(seconds)
    found = {name: median(each) for name, each in times.items()}
    peaks = {who: _peak(question, rows, files, who, means) if memory else math.nan for who in ("plain", "dpsql")}
    return {
        "query": question,
        "rows": rows,
        "plain s": found["plain"],
        "dpsql s": found["dpsql"],
        "exact s": found["exact"],
        "ratio": found["dpsql"] / found["plain"],
        "plain MB": peaks["plain"],
        "dpsql MB": peaks["dpsql"],
    }


def _exact(held: dpsql.Session, question: str) -> Callable[[], object]:
    """The exact integers alone: one plan of the question, again and again."""
    plans: list[Any] = []
    executor = executor_of(held._stores, held._engine)
    execute = type(executor).execute
    try:
        type(executor).execute = lambda self, plan, *rest: plans.append(plan) or execute(self, plan, *rest)  # type: ignore[method-assign]
        answer(held, question)
    finally:
        type(executor).execute = execute  # type: ignore[method-assign]
    return lambda: [executor.execute(plan) for plan in plans]


def _peak(question: str, rows: int, files: list[Path], who: str, means: Means) -> float:
    folder = str(files[0].parent.parent)
    shared = ["--memory", means.memory, "--threads", str(means.threads), "--data", folder]
    return float(fresh_process(__file__, "--rows", str(rows), "--peak", question, who, *shared))


def peak(question: str, who: str, rows: int, folder: Path, means: Means) -> float:
    """For a fresh process: the extra memory of one run, in MB."""
    files = files_of(rows, folder)
    if who == "plain":
        with plain(files, means) as of_duckdb:
            of_duckdb("Q1")
            return extra_memory(lambda: of_duckdb(question))
    held = session(files, question, means)
    answer(held, "Q1")
    return extra_memory(lambda: answer(held, question))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=[10**6, 10**7])
    parser.add_argument("--queries", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, help="where the files are, and stay")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-memory", action="store_true", help="leave out the fresh processes that measure memory")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)  # what a fresh process is started for
    asked = parser.parse_args()
    means = Means(asked.memory, asked.threads)
    if asked.peak:
        print(peak(*asked.peak, asked.rows[0], asked.data, means))
        return
    print(environment() | {"duckdb": duckdb.__version__, "memory": means.memory, "threads": means.threads})
    with tempfile.TemporaryDirectory() as folder:
        for rows in asked.rows:
            files = files_of(rows, asked.data or Path(folder))
            lines = [
                line(each, rows, files, asked.repeats, means, memory=not asked.no_memory) for each in asked.queries
            ]
            show(f"{rows:,} rows of Parquet", lines, "CPU seconds; MB above what the process held before.")


if __name__ == "__main__":
    main()
