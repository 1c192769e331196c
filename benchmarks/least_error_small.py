"""Groups of few rows, and intervals of second moments."""

from __future__ import annotations

import accuracy_moments as moments
import numpy as np
import pandas as pd
from least_error_lines import Line
from measure import exact, stages

import dpsql
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.select import slot_vectors

GROUPS, ROWS_OF_ONE = 100, 5
ROWS = 2_000
EPSILON = 0.1


def small_groups(runs: int) -> list[Line]:
    """How often AVG of a public group is NULL, in percent."""
    values = np.random.default_rng(moments.SEED).uniform(0, 100, GROUPS * ROWS_OF_ONE)
    frame = pd.DataFrame({"g": np.repeat(np.arange(GROUPS), ROWS_OF_ONE), "x": values})
    declared = dpsql.Table(frame, bounds={"x": (0, 100)}, keys={"g": list(range(GROUPS))}, nullable={"x": False})
    release, store = stages("t", declared, "SELECT g, AVG(x) FROM t GROUP BY g", epsilon=EPSILON)
    integers = exact(release, store)
    shown = [slot_vectors(release, release.privatise(integers))[1].where_valid() for _ in range(max(100, runs // 20))]
    setting = f"{GROUPS} public groups of {ROWS_OF_ONE} rows, epsilon {EPSILON}; in %"
    return [Line("AVG is NULL", setting, 100 * (1 - float(np.mean(shown))), 0.0, 0.0)]


def moment_intervals(runs: int) -> list[Line]:
    """The median width of a 95 % interval, in spans that hold 95 % of the answers."""
    draw = np.random.default_rng(moments.SEED)
    x, z = draw.normal(0, 15, (2, ROWS))
    frame = pd.DataFrame({"y": 0.8 * x + 0.6 * z + 50, "x": x + 50}).clip(0, 100)
    bounded = dpsql.Table(frame, bounds={"y": (0, 100), "x": (0, 100)}, nullable={"y": False, "x": False})
    found = []
    for word in ("VAR_POP(x)", "CORR(y, x)"):
        release, store = stages("t", bounded, f"SELECT {word} FROM t", epsilon=EPSILON)
        integers, output = exact(release, store), release.query.finish.outputs[0].expr
        answers, widths = [], []
        for run in range(runs):
            released = release.privatise(integers)
            vector = slot_vectors(release, released)[0]
            answers += vector.values[vector.where_valid()].tolist()
            if run < max(200, runs // 10):
                ends = interval(release, released, output, 0.95)
                assert ends is not None  # both have one
                widths.append(float(ends[1][0] - ends[0][0]))
        low, high = np.quantile(answers, (0.025, 0.975))
        setting = f"{ROWS:,} rows, normal(50, 15) in 0..100, correlation .8, epsilon {EPSILON}; in spans of 95 %"
        found.append(Line(f"interval of {word}", setting, float(np.median(widths) / (high - low)), 1.0, 1.1))
    return found
