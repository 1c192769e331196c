"""How accurate private answers are at equal total epsilon: measured over many runs, beside theory and a naive split.

python benchmarks/accuracy.py [--runs 4000] [--json FILE]

Each run draws the noise of a prepared query afresh (`errors`). Root mean square errors over runs (and groups) have
their standard errors after the sign; a run is one draw for all groups. `auto` is dpsql as it comes, `split` it with
strategy="split". `naive` is simulated: continuous Laplace noise, an equal share of epsilon for each sum and count, sums
not centred, AVG their quotient (of COUNT and SUM themselves where both are asked of one column, else of two of its
own). `at most` is what the project asks of itself.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import accuracy_choices as choices
import accuracy_moments as moments
import numpy as np
import pandas as pd
from accuracy_levels import levels
from errors import EPSILON, Floats, errors, rmse
from measure import Row, environment, show
from people import BOUNDS, EDUCATION, SEED, people, table

import dpsql

ROWS = 2_000
GROUPED_ROWS = 100_000
LOWER, UPPER = 0.0, 100.0
MEANS = (0.05, 0.3, 0.5, 0.9)


def cube(dimension: int) -> float:
    """The variance of one coordinate of `auto`, K-norm noise on the cube (docs: (d + 1)(d + 2) / (3 epsilon^2))."""
    return (dimension + 1) * (dimension + 2) / (3 * EPSILON**2)


def split(dimension: int) -> float:
    """The variance of one coordinate of `split`: Laplace noise with a share of epsilon each."""
    return 2 * (dimension / EPSILON) ** 2


def theory(variance: float, lower: float, upper: float, mean: Any, count: Any) -> dict[str, Floats]:
    """RMSE of COUNT, SUM and AVG when count and centred sum / ((upper - lower) / 2) both have noise of `variance`."""
    half, centre = (upper - lower) / 2, (upper + lower) / 2
    return {
        "COUNT": np.full(np.shape(mean), math.sqrt(variance)),
        "SUM": np.full(np.shape(mean), math.sqrt(variance * (half**2 + centre**2))),
        "AVG": np.sqrt(variance * (half**2 + (np.asarray(mean) - centre) ** 2)) / count,
    }


def naive(kinds: Sequence[tuple[str, float, Floats]], counts: Floats, shares: int, runs: int) -> Floats:
    """Errors (runs, aggregates, groups) of a plain split of epsilon into equal shares. `kinds` gives for each aggregate
    its kind, the larger end of the range and the exact sums."""
    draw = np.random.default_rng(SEED)

    def noise(size: float) -> Floats:
        return draw.laplace(0, size * shares / EPSILON, (runs, len(counts)))

    found = []
    for kind, most, sums in kinds:
        if kind == "COUNT":
            found.append(noise(1))
        elif kind == "SUM":
            found.append(noise(most))
        else:
            found.append((sums + noise(most)) / np.maximum(1, counts + noise(1)) - sums / counts)
    return np.stack(found, axis=1)


def one_column(runs: int) -> list[Row]:
    """COUNT, SUM and AVG of one column at several means, in units that do not depend on range, rows or epsilon."""
    width = UPPER - LOWER
    units = {"COUNT": 1 / EPSILON, "SUM": width / EPSILON, "AVG": width / (ROWS * EPSILON)}
    rows: list[Row] = []
    for mean in MEANS:
        values = LOWER + width * np.linspace(max(0, 2 * mean - 1), min(1, 2 * mean), ROWS)
        people_ = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (LOWER, UPPER)}, nullable={"x": False})
        sql = "SELECT COUNT(*), SUM(x), AVG(x) FROM t"
        truth = np.array([[ROWS], [values.sum()], [values.mean()]])
        off = {way: errors(people_, sql, truth, runs, strategy=way) for way in ("auto", "split")}
        kinds = [(kind, UPPER, truth[1]) for kind in units]
        off["naive"] = naive(kinds, np.array([float(ROWS)]), 2, runs)
        expected = {
            "auto": theory(cube(2), LOWER, UPPER, values.mean(), ROWS),
            "split": theory(split(2), LOWER, UPPER, values.mean(), ROWS),
        }
        rows += [
            {"mean": f"{mean:g}", "of": kind} | _ways(off, expected, kind, place, units[kind])
            for place, kind in enumerate(units)
        ]
    return rows


def _ways(
    off: dict[str, Floats], expected: dict[str, dict[str, Floats]], kind: str, place: int, unit: float
) -> dict[str, object]:
    row: dict[str, object] = {}
    for way, found in off.items():
        root, error = rmse(found[:, place] / unit)
        row[way] = root, error
        if way in expected:
            row[f"theory {way}"] = math.sqrt(float(np.mean(expected[way][kind] ** 2))) / unit
    return row


def by_education(runs: int) -> list[Row]:
    """Q3: COUNT(*), AVG(age) and SUM(income) by education. Two columns share one count; over all 16 groups."""
    frame = people(GROUPED_ROWS)
    groups = frame.groupby("education").agg(n=("age", "size"), age=("age", "sum"), income=("income", "sum"))
    n, age, income = (groups.loc[EDUCATION, name].to_numpy(np.float64) for name in ("n", "age", "income"))
    sql = "SELECT education, COUNT(*), AVG(age), SUM(income) FROM t GROUP BY education"
    truth = np.array([n, age / n, income])
    off = {way: errors(table(frame), sql, truth, runs, strategy=way) for way in ("auto", "split")}
    kinds = [("COUNT", 1, n), ("AVG", BOUNDS["age"][1], age), ("SUM", BOUNDS["income"][1], income)]
    off["naive"] = naive(kinds, n, 4, runs)
    rows: list[Row] = []
    targets = {"COUNT": "2.6", "AVG": "0.040", "SUM": "380,000"}
    for place, (kind, name, mean) in enumerate(
        (("COUNT", "age", age / n), ("AVG", "age", age / n), ("SUM", "income", 0))
    ):
        expected = {way: theory(v(3), *BOUNDS[name], mean, n) for way, v in (("auto", cube), ("split", split))}
        label = {"COUNT": "COUNT(*)", "AVG": "AVG(age)", "SUM": "SUM(income)"}[kind]
        rows.append({"of": label} | _ways(off, expected, kind, place, 1) | {"at most": targets[kind]})
    return rows


def bounded(runs: int) -> list[Row]:
    """AVG where the number of rows is public: only the sum has noise, for the full epsilon."""
    width = UPPER - LOWER
    values = LOWER + width * np.linspace(0, 1, ROWS)
    people_ = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (LOWER, UPPER)}, nullable={"x": False})
    truth = np.array([[values.mean()]])
    off = errors(people_, "SELECT AVG(x) FROM t", truth, runs, neighbours="bounded")
    root, error = rmse(off[:, 0] * ROWS * EPSILON / width)
    return [{"of": "AVG, n public", "auto": (root, error), "theory auto": math.sqrt(2)}]


SECTIONS: dict[str, Callable[[int], list[Row]]] = {
    f"One column, {ROWS:,} rows: COUNT in 1/epsilon, SUM in D/epsilon, AVG in D/(n epsilon)": one_column,
    f"Q3 over 16 groups of {GROUPED_ROWS:,} people": by_education,
    f"Bounded neighbours, {ROWS:,} rows, in D/(n epsilon)": bounded,
    f"Variance of one column, {moments.ROWS:,} rows, in % of the truth": moments.one_column,
    f"VAR_POP of one column, {moments.ROWS:,} rows, in D^2/(n epsilon)": moments.by_mean,
    f"Two columns, {moments.ROWS:,} rows, in % of the truth": moments.two_columns,
    f"Quantiles of {choices.ROWS:,} rows: the error of their rank, in rows": choices.quantiles,
    f"Least and greatest of {choices.ROWS:,} rows": choices.extremes,
    f"MODE of {len(choices.NAMES)} names: how often it is right": choices.modes,
    "Counts of some rows": choices.counts,
    "People beside their rows": choices.people_and_rows,
    "The most frequent of 100 values: rows lost": choices.most_frequent,
    "Bounds that the query chooses, 1,000 lognormal rows, in %: median (mean)": choices.automatic_bounds,
    f"Levels of GROUP BY over {GROUPED_ROWS:,} people: COUNT(*)": levels,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of private answers")
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--json", type=Path, help="write all numbers to this file too")
    said = parser.parse_args()
    print(f"# Accuracy\n\nRMSE over {said.runs} runs ± its standard error, total epsilon {EPSILON:g}.")
    sections: dict[str, list[Row]] = {}
    for title, section in SECTIONS.items():
        sections[title] = section(said.runs)
        show(title, sections[title])
    if said.json:
        found = {"environment": environment(), "runs": said.runs, **sections}
        said.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
