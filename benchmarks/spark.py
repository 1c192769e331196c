"""What a private answer on Spark costs, beside Spark's plain answer over the same files.

python benchmarks/spark.py [--rows 1e6 1e7] [--repeats 3] [--data DIR]

Both sides are warm, read the same Parquet files by one local session of two threads, and take turns. Figures are CPU
seconds of Spark's process and of this one, the least of some runs; what is compared are the two of one line. The plain
side clips nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from people import BOUNDS, EDUCATION, KEYS, SEED, SEXES, STATES

import dpsql

GROUP = 10**6  # rows that are drawn at once
QUESTIONS = {
    "Q2": "SELECT COUNT(*), SUM(income), AVG(age) FROM people WHERE hours > 40",
    "Q3": "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY education",
    "Q4": "SELECT state, education, sex, COUNT(*), AVG(income) FROM people GROUP BY state, education, sex",
}
TICKS = os.sysconf("SC_CLK_TCK")


def file_of(rows: int, folder: Path) -> Path:
    """A file of so many people, which is made where it is not there."""
    path = folder / f"people-{rows}.parquet"
    if path.exists():
        return path
    writer = None
    for start in range(0, rows, GROUP):
        piece = people(np.random.default_rng([SEED, start]), min(GROUP, rows - start))
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    assert writer is not None
    writer.close()
    return path


def people(draw: np.random.Generator, rows: int) -> pa.Table:
    weights = 1 / np.arange(1, len(EDUCATION) + 1)
    places = {
        "education": (EDUCATION, draw.choice(len(EDUCATION), rows, p=weights / weights.sum())),
        "state": (STATES, draw.integers(0, len(STATES), rows)),
        "sex": (SEXES, draw.integers(0, 2, rows)),
    }
    columns: dict[str, Any] = {
        "age": np.clip(draw.normal(42, 16, rows).round(), 17, 90).astype(np.int64),
        "income": np.clip(draw.gamma(2, 25_000, rows).round(), 0, 200_000).astype(np.int64),
        "hours": np.clip(draw.normal(40, 11, rows).round(), 1, 99).astype(np.int64),
        **{name: pa.array(values).take(pa.array(at)) for name, (values, at) in places.items()},
    }
    return pa.table(columns)


def started() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    held = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "4g").getOrCreate()
    held.sparkContext.setLogLevel("OFF")
    return held


def cpu_seconds(spark: Any) -> float:
    """Of Spark's process, all threads, and of this one."""
    stat = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat").read_text(encoding="ascii")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS + time.process_time()


def line(spark: Any, question: str, path: Path, repeats: int) -> tuple[float, float]:
    """The least CPU seconds of the plain answer and of the private one."""
    text = QUESTIONS[question]
    table = dpsql.Table(path, bounds=BOUNDS, keys=KEYS)
    held = dpsql.Session({"people": table}, budget=dpsql.Budget(1e9, 0.999), engine="spark")
    spark.read.parquet(str(path)).createOrReplaceTempView("people")
    runs: list[Callable[[], object]] = [
        lambda: spark.sql(text).collect(),
        lambda: held.query(text, epsilon=1, delta=1e-6, fresh=True),
    ]
    for run in runs * 2:
        run()
    least = [float("inf")] * 2
    for _ in range(repeats):
        for place, run in enumerate(runs):
            before = cpu_seconds(spark)
            run()
            least[place] = min(least[place], cpu_seconds(spark) - before)
    return least[0], least[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = wanted.data or Path(made)
        spark = started()
        print("| rows | question | plain, s CPU | dpsql, s CPU | ratio |\n|-|-|-|-|-|")
        for rows in map(int, wanted.rows):
            path = file_of(rows, folder)
            for question in QUESTIONS:
                plain, private = line(spark, question, path, wanted.repeats)
                print(f"| {rows:,} | {question} | {plain:.2f} | {private:.2f} | {private / plain:.2f} |", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
