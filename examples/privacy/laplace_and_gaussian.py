"""Laplace and Gaussian noise side by side, at equal epsilon: their densities, and as private answers of dpsql.

python examples/privacy/laplace_and_gaussian.py [--out DIR]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
from lesson import GAUSSIAN, LAPLACE, PLAIN, adult, crossing, label, panels, run, save, show

import dpsql
from dpsql.accounting import Gaussian, classic_gaussian_sigma, gaussian_delta, zcdp

EPSILON, DELTA = 0.5, 1e-5
QUESTION = "SELECT COUNT(*) AS n FROM adult WHERE age >= 40"
ANSWERS = 600


def tight_sigma(epsilon: float, delta: float) -> float:
    """The least noise of a continuous Gaussian at sensitivity 1: its exact delta at this epsilon is `delta`."""
    return crossing(lambda sigma: gaussian_delta(sigma, epsilon) - delta, 0.1, 1000)


def zcdp_sigma(epsilon: float, delta: float) -> float:
    """The least noise at sensitivity 1 by zCDP and its tight conversion."""
    return crossing(lambda sigma: zcdp([Gaussian(sigma)], delta) - epsilon, 0.1, 1000)


def engine_scale(people: pd.DataFrame, mechanism: str) -> float:
    """The scale that dpsql gives the noise, as it explains; no row is read."""
    told = dpsql.query(people, f"EXPLAIN PRIVACY {QUESTION}", epsilon=EPSILON, delta=DELTA, mechanism=mechanism)
    return told.to_dict()["releases"][0]["scale"]


def answers(people: pd.DataFrame, mechanism: str) -> np.ndarray:
    """The same question many times over. Nobody with a budget could ask so often: it shows what the noise is like."""
    asked = (dpsql.query(people, QUESTION, epsilon=EPSILON, delta=DELTA, mechanism=mechanism) for _ in range(ANSWERS))
    return np.array([answer.item() for answer in asked])


def laplace_density(x: np.ndarray, scale: float) -> np.ndarray:
    """The density of Laplace noise."""
    return np.exp(-np.abs(x) / scale) / (2 * scale)


def gaussian_density(x: np.ndarray, sigma: float) -> np.ndarray:
    """The density of Gaussian noise."""
    return np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))


def laplace_width(scale: float, miss: float) -> float:
    """t with P(|X| > t) = miss."""
    return scale * math.log(1 / miss)


def gaussian_width(sigma: float, miss: float) -> float:
    """t with P(|X| > t) = miss."""
    return sigma * NormalDist().inv_cdf(1 - miss / 2)


def main(out: Path) -> None:
    """One table of spreads, one of answers, one plot of both."""
    people = adult()
    scales = {name: engine_scale(people, name) for name in ("laplace", "gaussian")}
    classic, tight = classic_gaussian_sigma(EPSILON, DELTA), tight_sigma(EPSILON, DELTA)
    by_zcdp = zcdp_sigma(EPSILON, DELTA)

    laws: dict[str, tuple[float, float, Callable[[float, float], float]]] = {
        "Laplace": (1 / EPSILON, math.sqrt(2) / EPSILON, laplace_width),
        "Gaussian, classic": (classic, classic, gaussian_width),
        "Gaussian, zCDP": (by_zcdp, by_zcdp, gaussian_width),
        "Gaussian, tight (dpsql)": (scales["gaussian"], scales["gaussian"], gaussian_width),
    }
    show(
        f"Noise for a count at epsilon {EPSILON:g}; the Gaussians at delta {DELTA:g}",
        ["", "scale", "standard deviation", "19 of 20 within", "all but 1 in 10^9 within"],
        [
            [name, f"{scale:.3f}", f"{deviation:.3f}", f"{width(scale, 0.05):.2f}", f"{width(scale, 1e-9):.2f}"]
            for name, (scale, deviation, width) in laws.items()
        ],
    )

    exact = int((people["age"] >= 40).sum())
    noise = {name: answers(people, name) - exact for name in scales}
    show(
        f"{ANSWERS} private answers of dpsql each; exact: {exact} (random draws)",
        ["", "scale", "mean error", "root mean square error"],
        [
            [name, f"{scales[name]:.3f}", f"{each.mean():+.2f}", f"{math.sqrt((each**2).mean()):.2f}"]
            for name, each in noise.items()
        ],
    )

    figure, (left, right) = panels(2)
    x = np.linspace(-30, 30, 601)
    left.plot(x, laplace_density(x, 1 / EPSILON), color=LAPLACE, label="Laplace")
    left.plot(x, gaussian_density(x, tight), color=GAUSSIAN, label="Gaussian, tight")
    left.plot(x, gaussian_density(x, classic), color=PLAIN, linestyle="--", label="Gaussian, classic")
    label(left, f"Densities at epsilon {EPSILON:g}, delta {DELTA:g}", "noise (rows)", "density")
    for name, color in (("laplace", LAPLACE), ("gaussian", GAUSSIAN)):
        bins = np.arange(-30.5, 31, 1)
        right.hist(noise[name], bins, density=True, histtype="stepfilled", alpha=0.45, color=color, label=name)
    right.plot(x, laplace_density(x, scales["laplace"]), color=LAPLACE)
    right.plot(x, gaussian_density(x, scales["gaussian"]), color=GAUSSIAN)
    label(right, f"{ANSWERS} answers of dpsql each (random draws)", "answer minus exact count (rows)", "density")
    save(figure, out, "laplace_and_gaussian.png")


if __name__ == "__main__":
    run(main)
