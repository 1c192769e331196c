"""Sequential composition is tight for Laplace noise: k queries cost what one vector query of k answers costs.

python examples/privacy/composition_is_tight.py [--out DIR]
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from lesson import BETTER, LAPLACE, WORSE, adult, label, panels, run, save, show

import dpsql

EPSILON = 1.0
SIZES = [1, 2, 4, 8, 16]
DRAWN = 320


def counts(k: int) -> list[str]:
    """k nested counts. Someone of 36 or older is in all of them, so one person moves the vector by k in L1."""
    return [f"COUNT(*) FILTER (WHERE age >= {20 + i})" for i in range(k)]


def one_by_one(people: pd.DataFrame, k: int) -> list[float]:
    """k questions, each with epsilon / k."""
    asked = [f"SELECT {count} AS n FROM adult" for count in counts(k)]
    return [dpsql.query(people, sql, epsilon=EPSILON / k, mechanism="laplace").item() for sql in asked]


def vector_query(k: int) -> str:
    """The k counts in one question."""
    return "SELECT " + ", ".join(f"{count} AS n{i}" for i, count in enumerate(counts(k))) + " FROM adult"


def at_once(people: pd.DataFrame, k: int, strategy: str) -> list[float]:
    """One question for the vector, with the whole epsilon. "split": Laplace noise by the L1 norm; "auto": dpsql's."""
    answer = dpsql.query(people, vector_query(k), epsilon=EPSILON, mechanism="laplace", strategy=strategy)
    return [float(value) for value in answer.df.iloc[0]]


def stated_scales(people: pd.DataFrame, k: int) -> tuple[float, float]:
    """The Laplace scale of each count when asked one by one, and at once: what dpsql itself states, without drawing."""
    single, vector = f"EXPLAIN PRIVACY SELECT {counts(k)[0]} FROM adult", f"EXPLAIN PRIVACY {vector_query(k)}"
    told = [
        dpsql.query(people, single, epsilon=EPSILON / k, mechanism="laplace"),
        dpsql.query(people, vector, epsilon=EPSILON, mechanism="laplace", strategy="split"),
    ]
    one, all_ = (each.to_dict()["releases"][0]["scale"] for each in told)
    return one, all_


def k_norm_deviation(k: int) -> float:
    """The standard deviation of one coordinate of the K-norm law for a vector whose k coordinates each move by 1."""
    return math.sqrt((k + 1) * (k + 2) / 3) / EPSILON


def own_deviation(k: int) -> float:
    """That of dpsql's counts: a count c of some rows is half the sum of the count n of all and of 2 c - n, two of k + 1
    coordinates of that law."""
    return k_norm_deviation(k) if k == 1 else k_norm_deviation(k + 1) / math.sqrt(2)


def main(out: Path) -> None:
    """Stated scales, measured errors, and the two lines that coincide."""
    people = adult()
    stated = {k: stated_scales(people, k) for k in SIZES}
    show(
        f"Laplace noise of each of k counts at total epsilon {EPSILON:g}",
        ["k", "scale, k queries", "scale, one vector query", "deviation of both", "dpsql's own deviation"],
        [
            [f"{k}", f"{one:.2f}", f"{all_:.2f}", f"{math.sqrt(2) * one:.3f}", f"{own_deviation(k):.3f}"]
            for k, (one, all_) in stated.items()
        ],
    )

    exact = np.array([(people["age"] >= 20 + i).sum() for i in range(max(SIZES))])
    measured: dict[str, list[float]] = {"k queries": [], "one vector query": [], "dpsql": []}
    for k in SIZES:
        rounds = range(DRAWN // k)
        drawn = {
            "k queries": [one_by_one(people, k) for _ in rounds],
            "one vector query": [at_once(people, k, "split") for _ in rounds],
            "dpsql": [at_once(people, k, "auto") for _ in rounds],
        }
        for name, answers in drawn.items():
            measured[name].append(float(np.sqrt(((np.array(answers) - exact[:k]) ** 2).mean())))
    show(
        f"Root mean square error of {DRAWN} private counts each (random draws)",
        ["k", *measured],
        [[f"{k}", *(f"{errors[i]:.1f}" for errors in measured.values())] for i, k in enumerate(SIZES)],
    )

    figure, (axes,) = panels()
    lines = np.array([[math.sqrt(2) * scale for scale in stated[k]] for k in SIZES])
    axes.plot(SIZES, lines[:, 0], color=LAPLACE, linewidth=5, alpha=0.4, label="k Laplace queries")
    axes.plot(SIZES, lines[:, 1], color=WORSE, linestyle="--", label="one vector query, Laplace by L1")
    axes.plot(SIZES, [own_deviation(k) for k in SIZES], color=BETTER, label="one vector query, dpsql's own")
    for (name, errors), color, mark in zip(measured.items(), (LAPLACE, WORSE, BETTER), "oxs", strict=True):
        axes.plot(SIZES, errors, mark, color=color, markersize=5, label=f"{name}, measured (random draws)")
    axes.set_ylim(bottom=0)
    label(axes, f"Error of each of k counts, total epsilon {EPSILON:g}", "k (counts)", "root mean square error (rows)")
    save(figure, out, "composition_is_tight.png")


if __name__ == "__main__":
    run(main)
