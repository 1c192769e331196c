"""Questions that ask for several quantities at once: the plain ways, and the hull of what one row can add."""

from __future__ import annotations

import math
from functools import lru_cache

import accuracy_moments as moments
import numpy as np
import pandas as pd
from errors import Floats
from least_error_lines import Line, cube, geometric, half_widths, root_mean_squares
from measure import stages
from people import BOUNDS, EDUCATION, KEYS, people

import dpsql
from dpsql.release.expected_error import error_variance

GROUPED_ROWS = 100_000
ROWS = 2_000
ROWS_OF_ONE = 4
INCOME = BOUNDS["income"][1]
Q3 = "SELECT education, COUNT(*), AVG(age), SUM(income) FROM t GROUP BY education"
DIRECTIONS = 360
POINTS = 400_000


def _of_four() -> dpsql.Table:
    frame = people(GROUPED_ROWS)
    frame["pid"] = np.arange(GROUPED_ROWS) // ROWS_OF_ONE
    return dpsql.Table(frame, unit="pid", max_rows=ROWS_OF_ONE, bounds=BOUNDS, keys=KEYS)


def people_of_rows(runs: int) -> list[Line]:
    """SUM beside COUNT(*): on the square both together cost what SUM alone does, for their sum is one Laplace."""
    table, most = _of_four(), ROWS_OF_ONE * INCOME
    setting = (
        f"{GROUPED_ROWS // ROWS_OF_ONE:,} people of {ROWS_OF_ONE} rows, max_rows={ROWS_OF_ONE}, income 0..{INCOME:,}"
    )
    total = float(people(GROUPED_ROWS)["income"].sum())
    asked = "SELECT COUNT(*), SUM(income) FROM t"
    alone = half_widths(table, "SELECT SUM(income) FROM t", 1)[0]
    bounded = f"SUM(income, contribution_bounds_per_group => (0, {most}))"
    private = f"SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*), {bounded} FROM t"
    return [
        Line("±95 % of SUM beside COUNT(*)", setting, half_widths(table, asked, 1)[1], math.log(20) * most, alone),
        Line(
            "SUM of clipped totals beside COUNT(*)",
            setting,
            root_mean_squares(table, private, (GROUPED_ROWS, total), runs)[1],
            math.sqrt(2) * most,
            1.14e6,
        ),
    ]


def nulls(runs: int) -> list[Line]:
    """A NULL adds 0 to a sum, so a range that holds 0 can be centred on COUNT(*). With a column that has NULLs a row is
    dealt out among three shares: NULL, and the two ends of the range."""
    frame = people(GROUPED_ROWS).astype({"age": float, "income": float})
    groups = frame.groupby("education").agg(n=("age", "size"), age=("age", "mean"), income=("income", "sum"))
    truth = [groups.loc[EDUCATION, name].to_numpy(np.float64) for name in ("n", "age", "income")]
    some = dpsql.Table(frame, bounds=BOUNDS, keys=KEYS, nullable={"age": False})
    every = dpsql.Table(frame, bounds=BOUNDS, keys=KEYS)
    setting = f"Q3, {GROUPED_ROWS:,} people, 16 groups, reals; "
    half = INCOME / 2
    one = people(ROWS).astype({"age": float})
    beside = "SELECT COUNT(*), AVG(age) FROM t"
    return [
        Line(
            "SUM(income) in Q3",
            setting + "income may be NULL",
            root_mean_squares(some, Q3, truth, runs)[2],
            half * math.sqrt(2 * cube(3)),
            3.7e5,
        ),
        Line(
            "SUM(income) in Q3",
            setting + "age and income may be NULL",
            root_mean_squares(every, Q3, truth, runs)[2],
            half * math.sqrt(cube(4) + 30 * 3 * 0.1),  # income on a line, COUNT(*) on the octahedron of three shares
            4.4e5,
        ),
        Line(
            "COUNT(*) beside AVG",
            f"{ROWS:,} people, age 17..90 may be NULL",
            root_mean_squares(dpsql.Table(one, bounds=BOUNDS), beside, (ROWS, one["age"].mean()), runs)[0],
            math.sqrt(6),
            2.45,
        ),
    ]


def people_of_groups(_runs: int) -> list[Line]:
    """Where a person has one row in a group, rows are people: one count serves both."""
    table = dpsql.Table(people(GROUPED_ROWS), unit="pid", max_groups=1, max_rows_per_group=1)
    release, _ = stages("t", table, "SELECT zip, COUNT(DISTINCT pid) FROM t GROUP BY zip", epsilon=1, delta=1e-6)
    spread = {place: share.noise.spread for share in release.shares for place in share.places}
    now = math.sqrt(error_variance(release.estimates[0], release.lattice, spread))
    setting = "unknown zips, a person in one group with one row, delta 1e-6"
    return [Line("COUNT(DISTINCT pid)", setting, now, geometric(), 1.4)]


def quotient(runs: int) -> list[Line]:
    """The same number by two texts: its interval should not be much wider in one of them."""
    frame = people(10_000).astype({"income": float})
    table = dpsql.Table(frame, bounds=BOUNDS)
    few = max(20, runs // 100)
    average = half_widths(table, "SELECT AVG(income) FROM t", few)[0]
    ratio = half_widths(table, "SELECT SUM(income) / COUNT(*) FROM t", few)[0]
    setting = f"10,000 people, income 0..{INCOME:,} may be NULL; in widths of AVG's interval"
    return [Line("interval of SUM(x) / COUNT(*)", setting, ratio / average, None, 1.3)]


def correlation(runs: int) -> list[Line]:
    """What CORR needs holds the averages and variances of both columns: they should cost it next to nothing."""
    draw = np.random.default_rng(moments.SEED)
    x = draw.uniform(0, 100, ROWS)
    y = (x + draw.uniform(0, 100, ROWS)) / 2
    table = dpsql.Table(pd.DataFrame({"y": y, "x": x}), bounds={"y": (0, 100), "x": (0, 100)})
    truth = float(np.corrcoef(y, x)[0, 1])
    alone = root_mean_squares(table, "SELECT CORR(y, x) FROM t", (truth,), runs)[0]
    found = []
    for word, value in (("VAR_POP(x)", x.var()), ("AVG(x)", x.mean()), ("COUNT(*)", ROWS)):
        sql = f"SELECT CORR(y, x), {word} FROM t"
        now = root_mean_squares(table, sql, (truth, value), runs)[0]
        setting = f"{ROWS:,} rows, y = (x + z) / 2, 0..100, reals that may be NULL"
        found.append(Line(f"CORR beside {word}", setting, now, alone, 1.05 * alone))
    return found


def spread(runs: int) -> list[Line]:
    """VAR alone: (1, u, u^2) fills .78 of the cube, and the hull is better where the mean is far from mid-range."""
    small = np.clip(np.random.default_rng(1).exponential(10, ROWS), 0, 100)
    even = 100 * np.linspace(0, 1, ROWS)
    found = []
    for name, values, reach in (("exponential, mean 10", small, 6.1), ("uniform", even, 0.207)):
        table, truth = _table(values), float(values.var())
        now = root_mean_squares(table, "SELECT VAR_POP(x) FROM t", (truth,), runs)[0]
        exact = moments.features(2 * values / 100 - 1, np.zeros(ROWS))
        slopes = moments.VARIANCE.slopes(exact)[[0, 1, 3]]
        theory = moments.SQUARED * math.sqrt(slopes @ hull_covariance() @ slopes)
        setting = f"{ROWS:,} rows in 0..100, {name}; in % of the truth"
        found.append(Line("VAR_POP", setting, 100 * now / truth, 100 * theory / truth, reach))
    return found


def average_and_spread(runs: int) -> list[Line]:
    """AVG beside VAR on the same hull."""
    values = 100 * np.linspace(0, 1, ROWS)
    sql = "SELECT AVG(x), VAR_POP(x) FROM t"
    now = root_mean_squares(_table(values), sql, (values.mean(), values.var()), runs)[0]
    theory = 50 * math.sqrt(hull_covariance()[1, 1]) / ROWS
    return [Line("AVG beside VAR_POP", f"{ROWS:,} rows, uniform in 0..100", now, theory, 0.0542)]


def _table(values: Floats) -> dpsql.Table:
    return dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (0, 100)}, nullable={"x": False})


@lru_cache(maxsize=1)
def hull_covariance() -> Floats:
    """The covariance of noise on the hull of all (1, u, 2 u^2 - 1) and their negatives, at epsilon 1.

    The hull is {(n, x): x in l P - (1 - l) P, l = (1 + n) / 2}, P the hull of the parabola: a point is in it where no
    direction separates it. Noise of density exp(-norm) is a gamma radius of order 4 times a uniform point of it."""
    draw = np.random.default_rng(moments.SEED)
    n, u, w = draw.uniform(-1, 1, (3, POINTS))
    line = np.linspace(-1, 1, 1_001)
    inside = np.ones(POINTS, dtype=bool)
    for angle in np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False):
        along, across = math.cos(angle), math.sin(angle)
        heights = along * line + across * (2 * line**2 - 1)
        share = (1 + n) / 2
        inside &= along * u + across * w <= share * heights.max() - (1 - share) * heights.min()
    kept = np.stack([n, u, w])[:, inside]
    return np.asarray(20 * (kept @ kept.T) / kept.shape[1])
