"""Whole numbers are shown as such, add up, and lie beside their estimates; intervals are of what is shown."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.release.levels.estimates import Levels
from dpsql.release.output.whole_numbers import rounded_levels

SETS = {
    "rollup": [(0, 1, 2), (0, 1), (0,), ()],
    "cube": [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()],
    "a later key": [(0, 1), (1,), ()],
    "apart": [(0,), (1,), ()],
    "two of two": [(0, 1), (1, 2), (1,), ()],
}
SIZES = (3, 4, 5)


def levels_of(sets: list[tuple[int, ...]]) -> Levels:
    return Levels(SIZES, tuple(sets), (), ())


def table(values: np.ndarray, keys: tuple[int, ...]) -> np.ndarray:
    return values.sum(axis=tuple(axis for axis in range(3) if axis not in keys)).reshape(-1)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(5))
def test_levels_are_whole_and_add_up(name: str, seed: int):
    sets = SETS[name]
    finest = np.random.default_rng(seed).normal(20, 30, SIZES)
    if seed == 4:
        finest = np.round(finest * 2) / 2  # halves
    estimates = np.concatenate([table(finest, keys) for keys in sets])
    found = rounded_levels(levels_of(sets), np.tile(estimates, 2))
    assert (found[: len(estimates)] == found[len(estimates) :]).all()
    assert (found == np.rint(found)).all()
    ends = np.cumsum([int(np.prod([SIZES[key] for key in keys], initial=1)) for keys in sets])
    rows = dict(zip(sets, np.split(found[: len(estimates)], ends[:-1]), strict=True))
    for keys, coarse in itertools.permutations(sets, 2):
        if set(coarse) < set(keys):
            cells = rows[keys].reshape([SIZES[key] for key in keys])
            others = tuple(place for place, key in enumerate(keys) if key not in coarse)
            assert (cells.sum(axis=others).reshape(-1) == rows[coarse]).all(), (keys, coarse)
    largest = np.abs(found[: len(estimates)] - estimates).max()
    assert largest < (1 + 1e-6 if name != "cube" else 6)


def people(rows: int = 2_000) -> dpsql.Table:
    frame = pd.DataFrame({"g": ["a", "b"] * (rows // 2), "h": ["u", "u", "v", "v", "w", "w", "x", "x"] * (rows // 8)})
    frame["x"] = pd.array([1, 2, None, 4] * (rows // 4), dtype="Int64")
    return dpsql.Table(frame, keys={"g": ["a", "b"], "h": ["u", "v", "w", "x"]}, bounds={"x": (0, 5)})


EXPRESSIONS = {
    "COUNT(*) - COUNT(x)": "n - c",
    "2 * COUNT(*)": "2 * n",
    "COUNT(*) + SUM(x) - 7": "n + s - 7",
    "-SUM(x)": "-s",
    "COUNT_IF(x > 1) + COUNT(DISTINCT x)": "i + d",
    "COUNT(*) // 3": "n // 3",
    "CASE WHEN COUNT(*) > 0 THEN COUNT(*) ELSE 0 END": "n",
    "COALESCE(COUNT(x), 0)": "c",
}


@pytest.mark.parametrize("by", ["", "GROUP BY g", "GROUP BY ROLLUP (g, h)", "GROUP BY CUBE (g, h)"])
def test_expressions_are_whole_and_computed_of_what_is_shown(by: str):
    parts = "COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, COUNT_IF(x > 1) AS i"
    asked = {text: mine for text, mine in EXPRESSIONS.items() if "DISTINCT" not in text or "(" not in by}
    parts += "" if "(" in by else ", COUNT(DISTINCT x) AS d"
    listed = ", ".join(f"{text} AS e{place}" for place, text in enumerate(asked))
    found = dpsql.query({"t": people()}, f"SELECT {parts}, {listed} FROM t {by}", epsilon=3).df
    assert all(kind == np.int64 for kind in found.dtypes if kind.kind in "if")
    for place, mine in enumerate(asked.values()):
        assert (found[f"e{place}"] == found.eval(mine)).all(), mine


def test_levels_of_an_answer_add_up():
    found = dpsql.query(
        {"t": people()}, "SELECT g, h, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE (g, h)", epsilon=1
    ).df
    for column in ("n", "s"):
        cells = found[found.g.notna() & found.h.notna()]
        by_g = found[found.g.notna() & found.h.isna()].set_index("g")[column]
        by_h = found[found.g.isna() & found.h.notna()].set_index("h")[column]
        total = found[found.g.isna() & found.h.isna()][column].item()
        assert cells.groupby("g")[column].sum().to_dict() == by_g.to_dict()
        assert cells.groupby("h")[column].sum().to_dict() == by_h.to_dict()
        assert by_g.sum() == by_h.sum() == total


def test_quotients_stay_as_they_are():
    found = dpsql.query(
        {"t": people()}, "SELECT COUNT(*) / 2 AS q, 1.5 * COUNT(*) AS r, AVG(x) AS a FROM t", epsilon=1
    ).df
    assert all(kind == np.float64 for kind in found.dtypes)


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) - COUNT(x) AS r FROM t",
    "SELECT g, h, COUNT(*) AS r FROM t GROUP BY ROLLUP (g, h)",
])  # fmt: skip
def test_intervals_of_rounded_numbers_are_whole_and_cover(sql: str):
    truth = dpsql.query({"t": people()}, sql, epsilon=10**7).df.r.to_numpy()
    inside, cells = 0, 0
    held = dpsql.Session({"t": people()}, budget=dpsql.Budget(10**9))
    random.seed(1)
    for _ in range(60):
        result = held.query(sql, epsilon=0.5, fresh=True)
        ends = result.intervals()
        low, high = ends.r_low.to_numpy(float), ends.r_high.to_numpy(float)
        shown = result.df.r.to_numpy()
        assert (low == np.rint(low)).all()
        assert ((low <= shown) & (shown <= high)).all()
        inside += int(((low <= truth) & (truth <= high)).sum())
        cells += len(truth)
    assert inside / cells > 0.92  # of 95 %
