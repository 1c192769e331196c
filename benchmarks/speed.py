"""How fast a private answer is, beside the same exact question in plain pandas in the same run.

python benchmarks/speed.py [--rows 1e5 1e6 1e7] [--repeats 7] [--json FILE]

Times are medians of interleaved runs; compare the two of one line, not lines of different runs. `cold` is the first
query of a session (text columns are turned into codes), `warm` a later one; both include the answer as a DataFrame.
Memory is the peak of resident memory above what the process held before, each in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from measure import Row, environment, exact, extra_memory, fresh_process, seconds, show, side_by_side, stages
from people import KEYS, SEED, ZIPS, people, session, table

import dpsql
from dpsql.answer.warnings import warnings_of
from dpsql.core.mechanisms import samplers as sampling
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.release.output.select import finish

DELTA = 1e-6


@dataclass(frozen=True)
class Question:
    """One question twice: for dpsql, and in idiomatic pandas."""

    name: str
    sql: str
    plain: Callable[[pd.DataFrame], object]
    texts: tuple[str, ...] = ()
    """The text columns that it groups by."""


def _q2(df: pd.DataFrame) -> object:
    kept = df.loc[df["hours"] > 40, ["income", "age"]]
    return len(kept), kept["income"].sum(), kept["age"].mean()


def _q3(df: pd.DataFrame) -> object:
    groups = df.groupby("education", observed=False)
    return groups.agg(count=("age", "size"), age=("age", "mean"), income=("income", "sum"))


def _q4(df: pd.DataFrame) -> object:
    groups = df.groupby(["state", "education", "sex"], observed=False)
    return groups.agg(count=("income", "size"), income=("income", "mean"))


QUESTIONS = (
    Question("Q1", "SELECT COUNT(*) FROM people", len),
    Question("Q2", "SELECT COUNT(*), SUM(income), AVG(age) FROM people WHERE hours > 40", _q2),
    Question(
        "Q3",
        "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY education",
        _q3,
        ("education",),
    ),
    Question(
        "Q4",
        "SELECT state, education, sex, COUNT(*), AVG(income) FROM people GROUP BY state, education, sex",
        _q4,
        ("state", "education", "sex"),
    ),
    Question("Q6", "SELECT zip, COUNT(*) FROM people GROUP BY zip", lambda df: df.groupby("zip").size()),
)
BY_NAME = {question.name: question for question in QUESTIONS}
NOT_LOADED = ("scipy", "matplotlib", "IPython", "prompt_toolkit", "duckdb", "pyspark", "sqlglot")


def answer(held: dpsql.Session, sql: str, epsilon: float = 1) -> pd.DataFrame:
    """A private answer as a DataFrame."""
    result = held.query(sql, epsilon=epsilon, delta=DELTA, fresh=True)
    assert isinstance(result, dpsql.Result)
    return result.df


def against_pandas(frame: pd.DataFrame, repeats: int, memory: bool) -> list[Row]:
    """Every question, cold and warm, beside pandas on text and on categories."""
    categories = frame.astype(dict.fromkeys(KEYS, "category"))
    return [_against_pandas(question, frame, categories, repeats, memory) for question in QUESTIONS]


def _against_pandas(
    question: Question, frame: pd.DataFrame, categories: pd.DataFrame, repeats: int, memory: bool
) -> Row:
    warm = session(frame)
    answer(warm, question.sql)
    cold = iter([session(frame) for _ in range(repeats)])
    runs: dict[str, Callable[[], object]] = {
        "pandas": lambda: question.plain(frame),
        "cold": lambda: answer(next(cold), question.sql),
        "warm": lambda: answer(warm, question.sql),
    }
    if question.texts:
        runs["category"] = lambda: question.plain(categories)
    ms = side_by_side(repeats, **runs)
    peaks = {who: _peak(question, len(frame), who) if memory else math.nan for who in ("pandas", "cold", "warm")}
    return {
        "query": question.name,
        "rows": len(frame),
        "pandas ms": ms["pandas"],
        "dpsql cold ms": ms["cold"],
        "dpsql warm ms": ms["warm"],
        "ratio warm": ms["warm"] / ms["pandas"],
        "ratio cold": ms["cold"] / ms["pandas"],
        "pandas on categories ms": ms.get("category"),
        "pandas MB": peaks["pandas"],
        "cold MB": peaks["cold"],
        "warm MB": peaks["warm"],
    }


def _peak(question: Question, rows: int, who: str) -> float:
    return float(fresh_process(__file__, "--peak", question.name, who, "--rows", str(rows)))


def peak(question: Question, who: str, rows: int) -> float:
    """For a fresh process: the extra memory of one run, in MB."""
    small, frame = people(1_000), people(rows)
    held = session(frame)
    question.plain(small), answer(session(small), question.sql)  # what is loaded on first use is not the run's
    if who == "warm":
        answer(held, question.sql)
    return extra_memory(lambda: question.plain(frame) if who == "pandas" else answer(held, question.sql))


def one_shot(frame: pd.DataFrame, repeats: int) -> list[Row]:
    """dpsql.query, which holds no session: on a frame that it meets for the first time, and again."""
    question, again = BY_NAME["Q3"], table(frame)
    new = iter([table(frame.copy(deep=False)) for _ in range(repeats)])

    def ask(source: dpsql.Table) -> object:
        result = dpsql.query(source, question.sql, epsilon=1)
        return result.df if isinstance(result, dpsql.Result) else None

    ask(again)
    ms = side_by_side(
        repeats, pandas=lambda: question.plain(frame), new=lambda: ask(next(new)), again=lambda: ask(again)
    )
    return [
        {
            "query": "Q3 by dpsql.query",
            "rows": len(frame),
            "pandas ms": ms["pandas"],
            "new frame ms": ms["new"],
            "same frame ms": ms["again"],
            "ratio again": ms["again"] / ms["pandas"],
            "ratio new": ms["new"] / ms["pandas"],
        }
    ]


def encoding(frame: pd.DataFrame, repeats: int) -> list[Row]:
    """What turning a text column into codes takes, once in the life of a session."""
    rows: list[Row] = []
    for name in KEYS:
        sql = f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}"
        stores = iter([stages("people", table(frame), sql, epsilon=1)[1] for _ in range(repeats)])
        ms = side_by_side(
            repeats,
            codes=partial(_encode, stores, name),
            category=partial(frame[name].astype, "category"),
        )
        rows.append(
            {
                "column": name,
                "rows": len(frame),
                "values": len(KEYS[name]),
                "dpsql encode ms": ms["codes"],
                "pandas astype category ms": ms["category"],
            }
        )
    return rows


def _encode(stores: Iterator[ColumnStore], name: str) -> object:
    return next(stores).encoded(name)


def without_rows(repeats: int) -> list[Row]:
    """Everything that does not depend on rows, on a frame of 10."""
    held, numbers = session(people(10)), count(1)
    return [_without_rows(question, held, numbers, repeats) for question in QUESTIONS]


def _without_rows(question: Question, held: dpsql.Session, numbers: Any, repeats: int) -> Row:
    def first() -> object:  # neither this text nor this epsilon was met before: nothing is in any cache
        number = next(numbers)
        return answer(held, question.sql + " " * number, 1 + number / 1000)

    ms = side_by_side(3 * repeats, first=first, again=lambda: answer(held, question.sql))
    release, store = stages("people", table(people(10)), question.sql, epsilon=1, delta=DELTA)
    found = exact(release, store)
    released = release.privatise(found)
    result = held.query(question.sql, epsilon=1, delta=DELTA, fresh=True)
    steps = side_by_side(
        3 * repeats,
        execute=lambda: exact(release, store),
        privatise=lambda: release.privatise(found),
        finish=lambda: (finish(release, released), warnings_of(release, released)),
        frame=lambda: result.df,
        printed=lambda: repr(result),
    )
    return {
        "query": question.name,
        "cells": found.groups,
        "first ms": ms["first"],
        "again ms": ms["again"],
        "prepare ms": ms["first"] - ms["again"],
        "execute ms": steps["execute"],
        "noise ms": steps["privatise"],
        "finish ms": steps["finish"],
        "DataFrame ms": steps["frame"],
        "print ms": steps["printed"],
    }


def cells(repeats: int) -> list[Row]:
    """What a cell costs: from few to many cells, on as few rows as can be."""
    few = session(people(10))
    by_sex = "SELECT sex, COUNT(*), AVG(income) FROM people GROUP BY sex"
    q4, q6 = BY_NAME["Q4"], BY_NAME["Q6"]
    ms = side_by_side(3 * repeats, few=lambda: answer(few, by_sex), many=lambda: answer(few, q4.sql))
    rows: list[Row] = [_cell_cost("Q4, 10 rows: all", 1_632, ms["many"], (ms["many"] - ms["few"]) / 1_630)]
    frame = people(ZIPS)
    frame["zip"] = np.random.default_rng(SEED).permutation(ZIPS)
    release, store = stages("people", table(frame), q6.sql, epsilon=1, delta=DELTA)
    found = exact(release, store)
    shown = replace(found, parts=found.parts * 100)  # groups of 100 people, none of them hidden
    released = release.privatise(shown)
    result = _result(release, released)
    steps = side_by_side(
        repeats,
        execute=lambda: exact(release, store),
        noise=lambda: release.privatise(shown),
        finish=lambda: (finish(release, released), warnings_of(release, released)),
        frame=lambda: result.df,
    )
    names = {
        "execute": "Q6, one row a cell: executor, warm, rows included",
        "noise": "Q6: noise and threshold",
        "finish": "Q6: finish",
        "frame": "Q6: DataFrame",
    }
    rows += [_cell_cost(label, ZIPS, steps[name], steps[name] / ZIPS) for name, label in names.items()]
    after = sum(steps.values()) - steps["execute"]
    return [*rows, _cell_cost("Q6: all after the executor", ZIPS, after, after / ZIPS)]


def _result(release: Any, released: Any) -> dpsql.Result:
    return dpsql.Result(finish(release, released), release, released, "", ())


def _cell_cost(what: str, number: int, ms: float, ms_a_cell: float) -> Row:
    return {"what": what, "cells": number, "ms": ms, "microseconds a cell": 1e3 * ms_a_cell}


def start_up(repeats: int) -> list[Row]:
    """`dpsql.query` beside `import pandas`, and the first three queries of a process, in fresh processes. (`import
    dpsql` alone loads nothing of it.)"""
    clocks = "time.perf_counter(), time.process_time()"
    timed = f"import time; a, b = {clocks}; {{0}}; c, d = {clocks}; print(1e3 * (c - a), 1e3 * (d - b))"
    times: dict[str, list[list[float]]] = {"import pandas": [], "from dpsql import query": []}
    for each in range(max(10, repeats)):
        for name in list(times) if each % 2 == 0 else reversed(times):
            times[name].append([float(word) for word in fresh_process("-c", timed.format(name)).split()])
    loaded = f"print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    firsts = [fresh_process(__file__, "--first").split() for _ in range(max(5, repeats))]
    (pandas_ms, pandas_cpu), (dpsql_ms, dpsql_cpu) = (np.median(times[name], axis=0).tolist() for name in times)

    def line(what: str, ms: float, cpu: float, names: str = "") -> Row:
        return {"what": what, "ms": ms, "processor ms": cpu, "of them loaded": names}

    return [
        line("import pandas", pandas_ms, pandas_cpu),
        line(
            "from dpsql import query (pandas included)",
            dpsql_ms,
            dpsql_cpu,
            fresh_process("-c", f"import sys; from dpsql import query; {loaded}") or "none",
        ),
        line("difference", dpsql_ms - pandas_ms, dpsql_cpu - pandas_cpu),
        *(
            line(what, median(float(each[place]) for each in firsts), math.nan, names)
            for place, (what, names) in enumerate(
                [
                    ("first query of the process (Q3, 10 rows)", " ".join(firsts[0][3:]) or "none"),
                    ("then Q2", ""),
                    ("then Q4 (the first with two coordinates)", ""),
                ]
            )
        ),
    ]


def first() -> None:
    """For a fresh process: ms of its first three queries, and what they loaded."""
    held = session(people(10))
    times = [1e3 * seconds(partial(answer, held, BY_NAME[name].sql)) for name in ("Q3", "Q2", "Q4")]
    print(*times, *(name for name in NOT_LOADED if name in sys.modules))


def samplers(repeats: int) -> list[Row]:
    """Samples a second of the exact samplers; a point of the cube law in d dimensions is d samples."""
    size = 1_000_000
    laws: dict[str, tuple[int, Callable[[], object]]] = {}
    for scale in (Fraction(1), Fraction(2**20)):
        laws[f"discrete_laplace, scale {scale}"] = size, partial(sampling.discrete_laplace, scale, size)
        laws[f"discrete_gaussian, sigma {scale}"] = size, partial(sampling.discrete_gaussian, scale**2, size)
    for dimension in (2, 3, 8):
        points, name = size // dimension, f"cube_laplace, {dimension} dimensions, scale {2**20}"
        laws[name] = dimension * points, partial(sampling.cube_laplace, Fraction(2**20), dimension, points)
    ms = side_by_side(repeats, **{name: run for name, (_, run) in laws.items()})
    return [
        {"sampler": name, "samples": number, "ms": ms[name], "million a second": number / ms[name] / 1e3}
        for name, (number, _) in laws.items()
    ]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def main() -> None:
    parser = argparse.ArgumentParser(description="dpsql beside plain pandas")
    parser.add_argument("--rows", nargs="+", type=lambda text: int(float(text)), default=[100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write all numbers to this file too")
    parser.add_argument("--no-memory", action="store_true", help="leave out the fresh processes that measure memory")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)  # the two that a fresh process is started for
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.peak:
        print(peak(BY_NAME[said.peak[0]], said.peak[1], said.rows[0]))
        return
    if said.first:
        first()
        return
    found: dict[str, Any] = {"environment": environment(), "repeats": said.repeats}
    print("# Speed\n")
    print(", ".join(f"{name} {value}" for name, value in environment().items()))

    def section(title: str, rows: list[Row], note: str = "") -> None:
        show(title, rows, note)
        found[title] = [{name: None if _is_nan(value) else value for name, value in row.items()} for row in rows]

    section("Start", start_up(said.repeats), f"Of {', '.join(NOT_LOADED)}: which are loaded.")
    section("What does not depend on rows", without_rows(said.repeats), "A table of 10 rows; `again`: the same text.")
    section("Cells", cells(said.repeats))
    section("Samplers", samplers(said.repeats))
    for rows in said.rows:
        frame = people(rows)
        section(f"Encoding text, {rows:,} rows", encoding(frame, said.repeats))
        section(f"One-shot, {rows:,} rows", one_shot(frame, said.repeats))
        note = "Ratios are dpsql / pandas on text; Q1 in pandas is len(). MB: VmHWM above VmRSS, a fresh process each."
        section(f"Beside pandas, {rows:,} rows", against_pandas(frame, said.repeats, not said.no_memory), note)
        del frame
    if said.json:
        said.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
