"""Answers that are vectors: L1 and L2 sensitivity, and which noise each of the two asks for.

python examples/privacy/vector_norms.py [--out DIR]
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from lesson import BETTER, GAUSSIAN, LAPLACE, PLAIN, crossing, label, panels, run, save, show

import dpsql
from dpsql.accounting import Gaussian, gaussian_delta, zcdp

EPSILON, DELTA = 1, 1e-5
VISITS = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"


def l1(vector: np.ndarray) -> float:
    """The sum of the coordinates' sizes."""
    return float(np.abs(vector).sum())


def l2(vector: np.ndarray) -> float:
    """The length in a straight line."""
    return float(np.sqrt((vector**2).sum()))


def laplace_deviation(k: float, epsilon: float = EPSILON) -> float:
    """The standard deviation in each coordinate when one person moves k of them by 1: scale k / epsilon."""
    return math.sqrt(2) * k / epsilon


def tight_sigma(delta: float, epsilon: float = EPSILON) -> float:
    """The least Gaussian noise at sensitivity 1."""
    return crossing(lambda sigma: gaussian_delta(sigma, epsilon) - delta, 0.1, 1000)


def zcdp_sigma(delta: float, epsilon: float = EPSILON) -> float:
    """The same by zCDP and its tight conversion."""
    return crossing(lambda sigma: zcdp([Gaussian(sigma)], delta) - epsilon, 0.1, 1000)


def engine_scale(k: int, mechanism: str, delta: float = DELTA) -> tuple[str, float]:
    """Which noise dpsql takes where one person is in at most k groups, one row in each, and its scale.

    The question counts visits by month. Explaining reads no row, so the table may be empty."""
    visits = dpsql.Table(
        pd.DataFrame({"person": pd.Series(dtype="int64"), "month": pd.Series(dtype="int64")}),
        unit="person",
        max_groups=k,
        max_rows_per_group=1,
        keys={"month": list(range(1, 241))},
    )
    told = dpsql.query(visits, f"EXPLAIN PRIVACY {VISITS}", epsilon=EPSILON, delta=delta, mechanism=mechanism)
    release = told.to_dict()["releases"][0]
    return release["mechanism"], release["scale"]


def main(out: Path) -> None:
    """A table of norms and noise, a table of crossovers, and a plot of both."""
    sizes = [1, 2, 4, 8, 16, 32]
    rows = []
    for k in sizes:
        ones = np.ones(k)
        scales = [engine_scale(k, mechanism)[1] for mechanism in ("laplace", "gaussian")]
        rows.append([f"{k}", f"{l1(ones):g}", f"{l2(ones):.3f}", f"{scales[0]:.2f}", f"{math.sqrt(2) * scales[0]:.2f}"])
        rows[-1] += [f"{scales[1]:.2f}", engine_scale(k, "auto")[0]]
    head = ["k", "L1 of k ones", "L2", "Laplace scale", "Laplace deviation", "Gaussian deviation", "dpsql takes"]
    show(f"One person in k groups, epsilon {EPSILON}, delta {DELTA:g}", head, rows)

    rows = []
    for delta in (1e-5, 1e-6, 1e-9):
        engine, by_zcdp = engine_scale(1, "gaussian", delta)[1], zcdp_sigma(delta)
        # sqrt(2) k / epsilon = sqrt(k) sigma at k = (sigma epsilon)^2 / 2
        rows.append([f"{delta:g}", f"{engine:.3f}", f"{engine**2 / 2:.1f}", f"{by_zcdp:.3f}", f"{by_zcdp**2 / 2:.1f}"])
    head = ["delta", "sigma, tight (dpsql)", "crossover k", "sigma, zCDP", "crossover k"]
    show(f"From which k on Gaussian noise is less than Laplace noise, epsilon {EPSILON}", head, rows)

    sigma, by_zcdp = engine_scale(1, "gaussian")[1], zcdp_sigma(DELTA)
    figure, (left, right) = panels(2)
    k = np.linspace(1, 32, 200)
    left.plot(k, k, color=LAPLACE, label="L1 norm: k")
    left.plot(k, np.sqrt(k), color=GAUSSIAN, label="L2 norm: √k")
    label(left, "The vector of k ones", "k (coordinates)", "norm")
    right.plot(k, laplace_deviation(k), color=LAPLACE, label="Laplace, by L1")
    right.plot(k, sigma * np.sqrt(k), color=GAUSSIAN, label="Gaussian, by L2, tight (dpsql)")
    right.plot(k, by_zcdp * np.sqrt(k), color=BETTER, linestyle="--", label="Gaussian, by L2, zCDP")
    right.plot(k, sigma * k, color=PLAIN, linestyle=":", label="Gaussian, by L1 (allowed, wasteful)")
    right.axvline(sigma**2 / 2, color=PLAIN, linewidth=0.8)
    right.annotate(
        f"k = {sigma**2 / 2:.1f}", (sigma**2 / 2, 47), xytext=(-46, 0), textcoords="offset points", fontsize=9
    )
    right.set_ylim(0, 50)
    label(
        right,
        f"Noise at epsilon {EPSILON}, delta {DELTA:g}",
        "k (counts that one person moves)",
        "standard deviation (rows)",
    )
    save(figure, out, "vector_norms.png")


if __name__ == "__main__":
    run(main)
