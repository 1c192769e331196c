"""Bounds that a query chooses, and quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from accuracy_choices import rank_errors_of
from errors import Floats, answers
from least_error_lines import Line, adult

import dpsql

SEED = 20_263
SETS = 10
ROWS = 1_000
FEW = 100
DATA: dict[str, tuple[Callable[[np.random.Generator], Floats], float]] = {
    "years 1990-2020": (lambda draw: draw.integers(1990, 2021, ROWS).astype(np.float64), 0.01),
    "kelvin, 293 and 8": (lambda draw: draw.normal(293, 8, ROWS), 0.02),
    "pay, 42,000 and 7,000": (lambda draw: draw.normal(42_000, 7_000, ROWS), 0.09),
    "uniform(0, 150)": (lambda draw: draw.uniform(0, 150, FEW), 3.1),
    "lognormal(0, 2)": (lambda draw: draw.lognormal(0, 2, FEW), 35.0),
    "Pareto(1.5)": (lambda draw: 1 + draw.pareto(1.5, FEW), 14.0),
}
"""What is measured, and the median relative error of AVG that is to be reached, in percent: of few rows what they had
by bounds from 0."""


def bounds(runs: int) -> list[Line]:
    """AVG with bounds "auto", which lie where the values are."""
    found = []
    for name, (make, reach) in DATA.items():
        draw, off = np.random.default_rng(SEED), []
        samples = [make(draw) for _ in range(SETS)]
        for values in samples:
            declared = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": "auto"})
            answer = answers(declared, "SELECT AVG(x) FROM t", max(20, runs // 50))[:, 0, 0].astype(np.float64)
            off.append(np.abs(answer / values.mean() - 1))
        setting = f"{len(samples[0]):,} rows, {name}, bounds auto; median error in %"
        found.append(Line("AVG", setting, 100 * float(np.median(off)), None, reach))
    return found


def capital_gain(runs: int) -> list[Line]:
    """SUM of a column that is mostly 0, by automatic bounds; declared ones are the least error there is."""
    frame = adult()[["capital-gain"]].rename(columns={"capital-gain": "gain"})
    total, found = float(frame["gain"].sum()), []
    for said in ((0, 99_999), ("auto", 0, 99_999), "auto"):
        declared = dpsql.Table(frame, bounds={"gain": said})
        answer = answers(declared, "SELECT SUM(gain) FROM t", runs, epsilon=0.1)[:, 0, 0].astype(np.float64)
        found.append(100 * np.abs(answer / total - 1))
    least, within, anywhere = found
    reached = ((within, "auto within 0..99,999", 3.4, 6.4), (anywhere, "auto", 5.6, None))
    lines = []
    for off, how, median, mean in reached:
        setting = f"Adult capital-gain, bounds {how}, epsilon .1; in %"
        lines.append(Line("SUM, median error", setting, float(np.median(off)), float(np.median(least)), median))
        if mean is not None:
            now, theory = (float(np.sqrt(np.mean(each**2))) for each in (off, least))
            lines.append(Line("SUM, RMSE", setting, now, theory, mean))
    return lines


def quantiles(runs: int) -> list[Line]:
    """Quantiles drawn together, in errors of as many apart, each at its share of epsilon: RMSE of all ranks."""
    values = np.random.default_rng(SEED).normal(400, 80, 2_000).round()
    declared = dpsql.Table(
        pd.DataFrame({"x": values.astype(np.int64)}), bounds={"x": (0, 1_000)}, nullable={"x": False}
    )
    few = max(100, runs // 10)
    found = []
    for name, asked in (
        ("three", (0.25, 0.5, 0.75)),
        ("five", (0.05, 0.25, 0.5, 0.75, 0.95)),
        ("four, evenly spaced", (0.2, 0.4, 0.6, 0.8)),
        ("four in the tail", (0.5, 0.9, 0.99, 0.999)),
    ):
        words = [f"QUANTILE(x, {q})" for q in asked]
        together = answers(declared, f"SELECT {', '.join(words)} FROM t", few)[:, :, 0].astype(np.float64)
        squares = np.zeros(2)
        for place, (q, word) in enumerate(zip(asked, words, strict=True)):
            apart = answers(declared, f"SELECT {word} FROM t", few, epsilon=1 / len(asked))[:, 0, 0].astype(np.float64)
            off = [rank_errors_of(values, answer, q) for answer in (together[:, place], apart)]
            squares += [float((each**2).mean()) for each in off]
        setting = f"2,000 rows, normal(400, 80) in 0..1,000, {', '.join(map(str, asked))}; in errors apart"
        found.append(Line(f"quantiles, {name}", setting, math.sqrt(squares[0] / squares[1]), None, 0.8))
    return found


def medians(runs: int) -> list[Line]:
    """MEDIAN over a range far wider than the rows lie: the mean error of its rank."""
    draw, rows, few = np.random.default_rng(SEED), 10_000, max(50, runs // 40)
    day = 24 * 3600
    found = []
    for name, values, most in (
        ("seconds of one day within 30 years", 5_000 * day + draw.integers(0, day, rows), 30 * 365 * day),
        ("normal(1e6, 10) in 0..1e9", draw.normal(1e6, 10, rows), 10**9),
    ):
        declared = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (0, most)}, nullable={"x": False})
        answer = answers(declared, "SELECT MEDIAN(x) FROM t", few)[:, 0, 0].astype(np.float64)
        now = float(rank_errors_of(np.asarray(values, dtype=np.float64), answer, 0.5).mean())
        found.append(Line("MEDIAN, ranks off", f"{rows:,} rows, {name}", now, None, 15))
    return found


def declared_sum(runs: int) -> list[Line]:
    """What no choice of bounds can be better than: SUM of 1,000 years with the noise of the largest year."""
    values = np.random.default_rng(SEED).integers(1990, 2021, ROWS)
    declared = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": "auto"})
    found = answers(declared, "SELECT SUM(x) FROM t", max(100, runs // 4))[:, 0, 0].astype(np.float64)
    off, least = np.median(np.abs(found / values.sum() - 1)), math.log(2) * 2020 / values.sum()
    setting = f"{ROWS:,} rows, years 1990-2020, bounds auto; median error in %"
    return [Line("SUM", setting, 100 * float(off), 100 * float(least), 0.1)]
