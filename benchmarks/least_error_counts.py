"""Counts and sums at a large epsilon, thresholds to the last of delta, and Gaussian noise to its exact tails."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pandas as pd
from least_error_lines import Line, adult, geometric, root_mean_squares
from measure import stages
from people import people, table

import dpsql
from dpsql.core.conversion import rho_for
from dpsql.core.mechanisms.noise import CubeLaplace
from dpsql.core.selection.threshold import show_probability
from dpsql.core.selection.truncated_geometric import TruncatedGeometric

ROWS = 10_000
DELTA = Fraction(1, 10**6)
SIGMA = 50
"""Of the counts that a session is asked for."""


def large_epsilon(runs: int) -> list[Line]:
    """Counts beside the count of all, as they are shown: a row is in one cell, and each cell has geometric noise."""
    frame = people(ROWS)
    some = [int((frame["age"] < 30).sum()), int((frame["age"] >= 60).sum())]
    reached = {(2, 3): (0.34, 0.48), (2, 10): (0.01, 0.015), (3, 3): (0.34, 0.58), (3, 10): (0.01, 0.017)}
    found = []
    for (cells, epsilon), figures in reached.items():
        words = ["COUNT_IF(age < 30)", "COUNT_IF(age >= 60)"][: cells - 1]
        truth = (*some[: cells - 1], ROWS)
        sql = f"SELECT {', '.join(words)}, COUNT(*) FROM t"
        off = root_mean_squares(table(frame), sql, truth, runs, shown=True, epsilon=epsilon)
        setting = f"{ROWS:,} people, {' and '.join(words)} beside COUNT(*), epsilon {epsilon}"
        one = geometric(epsilon)
        found.append(Line("COUNT_IF", setting, off[0], one, figures[0]))
        found.append(Line("COUNT(*)", setting, off[-1], math.sqrt(cells) * one, figures[1]))
    return found


def staircase(_runs: int) -> list[Line]:
    """A sum alone, at epsilon 10, by the exact law, as rare draws decide it: the least variance that there is (Geng,
    Viswanath, IEEE Trans. Inform. Theory 2016, theorem 7)."""
    values, b = np.linspace(0, 100, ROWS), math.exp(-10)
    declared = dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (0, 100)})
    release, _ = stages("t", declared, "SELECT SUM(x) FROM t", epsilon=10)
    now = math.sqrt(release.shares[0].noise.spread) * release.coordinates[0].unit
    least = (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2
    return [Line("SUM alone", f"{ROWS:,} rows in 0..100, epsilon 10", now, 100 * math.sqrt(least), 2.9)]


def thresholds(_runs: int) -> list[Line]:
    """Groups shown beside their counts: one at tau - 1 may be shown with what is left of delta. Theory is the optimal
    choice of groups, which has epsilon for itself."""
    sizes = adult().groupby(["age", "education"]).size().tolist()
    sql = "SELECT age, education, COUNT(*) FROM t GROUP BY age, education"
    release, _ = stages("t", dpsql.Table(adult()), sql, epsilon=1, delta=float(DELTA))
    now = sum(release.chance_shown(size) or 0.0 for size in sizes)
    noise, ((_, tau),) = CubeLaplace(Fraction(1), 1), release.selection.conditions
    low, high = (np.array([show_probability(noise, n, at) for n in (1, *sizes)]) for at in (tau, tau - 1))
    share = (float(DELTA) - low[0]) / (high[0] - low[0])
    spent = float((low + share * (high - low))[1:].sum())
    optimal = TruncatedGeometric(Fraction(1), DELTA)
    best = sum(float(optimal.probability(n)) for n in sizes)
    setting = f"Adult, {len(sizes)} groups of age and education, unknown, delta 1e-6"
    return [Line("groups shown beside COUNT(*)", setting, now, best, spent)]


def gaussian_scale(epsilon: float, delta: float, l2: float = 1.0) -> float:
    """The least standard deviation of Gaussian noise (Balle, Wang, ICML 2018, theorem 8), by bisection."""
    below, (low, high) = NormalDist().cdf, (1e-3, 1e6)
    for _ in range(200):
        middle = math.sqrt(low * high)
        one, other = l2 / (2 * middle), epsilon * middle / l2
        enough = below(one - other) - math.exp(epsilon) * below(-one - other) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def gaussian(_runs: int) -> list[Line]:
    """Counts of many groups by Gaussian noise, beside the exact curve."""
    groups, most = 128, 32
    frame = pd.DataFrame({"p": np.arange(groups), "g": np.arange(groups)})
    declared = dpsql.Table(
        frame, unit="p", max_groups=most, max_rows_per_group=1, keys={"g": list(range(groups))}, nullable={"g": False}
    )
    sql = "SELECT g, COUNT(*) FROM t GROUP BY g"
    release, _ = stages("t", declared, sql, epsilon=1, delta=float(DELTA))
    now = math.sqrt(release.shares[0].noise.spread) * release.coordinates[0].unit
    theory = gaussian_scale(1, float(DELTA), math.sqrt(most))
    setting = f"{groups} public groups, a person in {most}, delta 1e-6"
    return [Line("COUNT(*) by Gaussian noise", setting, now, theory, 24.3)]


def session(_runs: int) -> list[Line]:
    """How many Gaussian counts a session holds: by default half of delta is for thresholds; an owner may give all of it
    to the conversion of rho."""
    frame = pd.DataFrame({"b": [True, False]})
    each, found = Fraction(1, 2 * SIGMA**2), []
    for name, kept, reach in (("by default", DELTA / 2, 114), ("all of delta for the conversion", DELTA, 121)):
        budget = dpsql.Budget(1, float(DELTA), conversion_delta=float(kept))
        held = dpsql.Session({"t": dpsql.Table(frame)}, budget=budget, accountant="zcdp")
        now = held.remaining_queries("SELECT COUNT(*) FROM t", rho=float(each))
        theory = math.floor(rho_for(Fraction(1), kept) / each)
        found.append(
            Line("Gaussian counts a session holds", f"{name}, budget (1, 1e-6), sigma {SIGMA}", now, theory, reach)
        )
    return found
