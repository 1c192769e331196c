"""Which groups are shown where they are unknown, and counts where a person is in many of few public groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import pandas as pd
from errors import Floats
from least_error_counts import DELTA, gaussian_scale
from least_error_lines import Line, adult, root_mean_squares
from measure import stages
from people import SEED

import dpsql
from dpsql.core.exact import weight_of
from dpsql.core.selection.threshold import show_probability
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.core.selection.weighted import GroupsByWeights

PEOPLE, KEYS, MOST = 10_000, 1_000, 8


@lru_cache(maxsize=2)
def _visits(least: int) -> pd.DataFrame:
    """People who are in `least` to MOST groups each, of which the k-th is 1/k as likely; one row in each."""
    draw = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, KEYS + 1)
    weights /= weights.sum()
    many = draw.integers(least, MOST + 1, PEOPLE)
    keys = [draw.choice(KEYS, each, replace=False, p=weights) for each in many.tolist()]
    return pd.DataFrame({"pid": np.repeat(np.arange(PEOPLE), many), "key": np.concatenate(keys)})


def _shown(frame: pd.DataFrame, sql: str, mechanism: str = "auto") -> float:
    """How many groups are shown, by their exact chances."""
    declared = dpsql.Table(frame, unit="pid", max_groups=MOST, max_rows_per_group=1)
    release, _ = stages("t", declared, sql, epsilon=1, delta=float(DELTA), mechanism=mechanism)
    chosen = release.selection
    if isinstance(chosen, GroupsByWeights):  # people in fewer groups than may count weigh more
        many = frame.groupby("pid")["key"].transform("nunique").to_numpy()
        weights = pd.Series([weight_of(chosen.scale, k) for k in many.tolist()]).groupby(frame["key"].to_numpy()).sum()
        return sum(show_probability(chosen.noise, int(each), chosen.height) for each in weights.tolist())
    return sum(release.chance_shown(n) or 0.0 for n in frame.groupby("key")["pid"].nunique().tolist())


def by_gaussian(sums: Floats, own: Sequence[tuple[float, int]]) -> float:
    """How many groups of such weights are shown by Gaussian noise, where nobody's weights have an L2 norm above 1.

    own: what groups can be one person's alone, (weight of each, how many). Half of delta is for the noise, and half for
    the threshold that they are below (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, ICML 2020)."""
    normal, half = NormalDist(), float(DELTA) / 2
    scale = gaussian_scale(1, half)
    tau = max(one + scale * normal.inv_cdf((1 - half) ** (1 / many)) for one, many in own)
    return float(sum(1 - normal.cdf((tau - each) / scale) for each in sums.tolist()))


def unknown(_runs: int) -> list[Line]:
    """Groups shown beside counts, by the law that shows more of them, and alone, by weights: a person in k groups adds
    1 / sqrt(k) to each."""
    found = []
    for least in (MOST, 1):
        frame = _visits(least)
        each = frame.groupby("pid")["key"].transform("size")
        weights = (1 / np.sqrt(each)).groupby(frame["key"]).sum().to_numpy(np.float64)
        sizes = frame.groupby("key").size().to_numpy(np.float64)
        even = by_gaussian(sizes / math.sqrt(MOST), [(1 / math.sqrt(MOST), MOST)])
        weighted = by_gaussian(weights, [(1 / math.sqrt(k), k) for k in range(1, MOST + 1)])
        setting = f"{PEOPLE:,} people in {f'{least} to {MOST}' if least < MOST else MOST} of {KEYS:,} keys, delta 1e-6"
        reach = _shown(frame, "SELECT key, COUNT(*) FROM t GROUP BY key", "gaussian")
        for word in ("COUNT(DISTINCT pid)", "COUNT(*)"):  # which are the same, with one row of a person in a group
            now = _shown(frame, f"SELECT key, {word} FROM t GROUP BY key")
            found.append(Line(f"groups shown beside {word}", setting, now, even, reach))
        now = _shown(frame, "SELECT key FROM t GROUP BY key")
        found.append(Line("groups shown alone", setting, now, weighted, weighted))
    return found


def hidden_averages(_runs: int) -> list[Line]:
    """Groups shown beside AVG at a small epsilon: optimal selection at .8 of it, of all that could be shown with it."""
    sizes = adult().groupby("native-country").size().tolist()
    sql = 'SELECT "native-country", AVG(age) FROM t GROUP BY "native-country"'
    declared = dpsql.Table(adult(), bounds={"age": (17, 90)}, nullable={"age": False})
    release, _ = stages("t", declared, sql, epsilon=0.1, delta=float(DELTA))
    now = sum(release.chance_shown(n) or 0.0 for n in sizes)
    law = TruncatedGeometric(Fraction(8, 100), DELTA)
    theory = sum(float(law.probability(n)) for n in sizes)
    return [Line("groups shown beside AVG(age)", "Adult by native country, unknown, epsilon .1", now, theory, 4.1)]


def many_of_few(runs: int) -> list[Line]:
    """32 public groups, a person in any of them with one row: the cube of (people, 2 count_g - people for each g) has
    G + 1 coordinates, and a person moves each by 1 at most."""
    groups = 32
    draw = np.random.default_rng(SEED)
    there = draw.random((2_000, groups)) < 0.5
    person, key = np.nonzero(there)
    frame = pd.DataFrame({"pid": person, "g": key})
    declared = dpsql.Table(frame, unit="pid", max_groups=groups, max_rows_per_group=1, keys={"g": list(range(groups))})
    sql, truth = "SELECT g, COUNT(*) FROM t GROUP BY g", there.sum(axis=0)
    theory = math.sqrt((groups + 2) * (groups + 3) / 6)
    found = []
    for name, delta in (("no delta", 0.0), ("delta 1e-6", float(DELTA))):
        now = root_mean_squares(declared, sql, (truth,), max(200, runs // 4), delta=delta)[0]
        found.append(
            Line("COUNT(*) by group", f"{groups} public groups, a person in any of them, {name}", now, theory, 14.2)
        )
    return found
