"""Errors of answers that are drawn from a public grid or counted once a value: quantiles, MIN, MAX, MODE, DISTINCT.

The error of a quantile is of its rank: how many rows lie between the place q n and the rows that have the answer.
`theory` is the law of the exponential mechanism at the same rate, exactly, on the same table: permute-and-flip is never
worse, and with many candidates beside each other the same. `naive` is the exponential mechanism with the sensitivity 1
and twice that in the rate, an equal share of epsilon for each quantile; exactly too.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
from auto_bounds import WAYS, Answer, engine
from auto_bounds import errors as bounds_errors
from bounds_data import Ints
from errors import EPSILON, Floats, answers, errors, mean, rmse
from measure import Row, stages

import dpsql
from dpsql.core.mechanisms.exponential import permute_and_flip, top_k

ROWS = 2_000
MOST = 1_000
SEED = 20_262
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GROUPS = 16
AHEAD = (1, 2, 4, 6)
NAMES = [f"name {number}" for number in range(10)]
SETS = 20


def _values() -> Ints:
    """Integers from 0 to MOST, none of them near the ends."""
    return np.random.default_rng(SEED).normal(400, 80, ROWS).round().astype(np.int64)


def _table(values: Ints) -> dpsql.Table:
    return dpsql.Table(pd.DataFrame({"x": values}), bounds={"x": (0, MOST)}, nullable={"x": False})


def rank_errors_of(values: Floats | Ints, found: Floats | Ints, q: float) -> Floats:
    """How many of these rows lie between the place of a quantile and each answer, for answers of any shape."""
    ordered, target = np.sort(values), q * len(values)
    below, upto = (np.searchsorted(ordered, found, side=side) for side in ("left", "right"))
    return np.asarray(np.maximum(np.maximum(below - target, target - upto), 0.0))


def rank_errors(found: Floats | Ints, q: float) -> Floats:
    """The same of the rows here."""
    return rank_errors_of(_values(), found, q)


def exponential_law(gaps: Floats, rate: float) -> Floats:
    """The probabilities of candidates with these gaps."""
    weights = np.exp(-rate * (gaps - gaps.min()))
    return np.asarray(weights / weights.sum())


def _of_law(q: float, rate: float) -> float:
    """Root mean square of the rank error by the exponential mechanism."""
    gaps = rank_errors(np.arange(MOST + 1), q)
    return math.sqrt(exponential_law(gaps, rate) @ gaps**2)


def quantiles(runs: int) -> list[Row]:
    """Each alone for the whole epsilon, and all together for the same."""
    table, words = _table(_values()), [f"QUANTILE(x, {q:g})" for q in QUANTILES]
    together = answers(table, f"SELECT {', '.join(words)} FROM t", runs)[:, :, 0].astype(np.float64)
    rows: list[Row] = []
    for place, (q, word) in enumerate(zip(QUANTILES, words, strict=True)):
        alone = answers(table, f"SELECT {word} FROM t", runs)[:, 0].astype(np.float64)
        row: dict[str, object] = {"of": word, "alone": rmse(rank_errors(alone, q))}
        row["theory alone"] = _of_law(q, EPSILON / (2 * max(q, 1 - q)))
        row["naive alone"] = _of_law(q, EPSILON / 2)
        row["together"] = rmse(rank_errors(together[:, [place]], q))
        rows.append(row | {"naive together": _of_law(q, EPSILON / (2 * len(QUANTILES)))})
    return rows


def extremes(runs: int) -> list[Row]:
    """MIN and MAX: rows beyond the answer, how often it is beyond all rows, and the error in units of the column.
    `naive` asks for rank 0, where all of the empty range beyond the rows is as good as the least value."""
    values = _values()
    table = _table(values)
    rows: list[Row] = []
    for word, end, sign in (("MIN", values.min(), 1), ("MAX", values.max(), -1)):
        release, _ = stages("t", table, f"SELECT {word}(x) FROM t", epsilon=EPSILON)
        found = answers(table, f"SELECT {word}(x) FROM t", runs)[:, 0, 0].astype(np.float64)
        places = np.arange(MOST + 1)
        passed = np.array([(sign * values < sign * place).sum() for place in places])
        naive = exponential_law(passed, EPSILON)
        row: dict[str, object] = {"of": word, "rank asked for": release.draws[0].rank}
        row["rows beyond"] = mean(passed[found.astype(np.int64)].astype(np.float64))
        row["beyond all"] = float((sign * found < sign * end).mean())
        row["error"] = mean(np.abs(found - end))
        outside = sign * places < sign * end
        row |= {"naive: beyond all": float(naive[outside].sum()), "naive: error": float(naive @ np.abs(places - end))}
        rows.append(row)
    return rows


def modes(runs: int) -> list[Row]:
    """How often MODE of ten names is right where the first has so many rows more than each of the others. 16 groups at
    once, each of them for the whole epsilon. `naive` is the exponential mechanism with a rate of epsilon / 2."""
    others = 30
    rows: list[Row] = []
    groups = [f"group {number:02}" for number in range(GROUPS)]
    for ahead in AHEAD:
        counts = [others + ahead] + [others] * (len(NAMES) - 1)
        one = [name for name, count in zip(NAMES, counts, strict=True) for _ in range(count)]
        frame = pd.DataFrame({"g": np.repeat(groups, len(one)), "x": one * GROUPS})
        table = dpsql.Table(frame, keys={"g": groups, "x": NAMES})
        found = answers(table, "SELECT g, MODE(x) FROM t GROUP BY g", runs)[:, 0]
        p = math.exp(-EPSILON * ahead)
        row: dict[str, object] = {"rows ahead": ahead, "right": mean((found == NAMES[0]).mean(axis=1))}
        row["theory"] = (1 - (1 - p) ** len(NAMES)) / (len(NAMES) * p)
        row["exponential"] = 1 / (1 + (len(NAMES) - 1) * p)
        rows.append(row | {"naive": 1 / (1 + (len(NAMES) - 1) * math.sqrt(p))})
    return rows


def counts(runs: int) -> list[Row]:
    """Counts of some rows or of different values. One row moves each by at most one: alone it has geometric noise;
    beside COUNT(*), half of that count's noise and half of its own (theory: sqrt 2). Five counts are worth a count of
    all: the noise of six coordinates, halved. `naive` shares epsilon."""
    values = _values()
    some = {f"COUNT_IF(x < {limit})": float((values < limit).sum()) for limit in (300, 350, 400, 450, 500)}
    word, different = "COUNT(DISTINCT x)", float(len(np.unique(values)))
    first = next(iter(some))
    a = math.exp(-EPSILON)
    asked: list[tuple[str, dict[str, float], float, int]] = [
        (word, {word: different}, math.sqrt(2 * a) / (1 - a), 1),
        (f"{word} beside COUNT(*)", {word: different, "COUNT(*)": ROWS}, math.sqrt(2), 2),
        (f"{first} beside COUNT(*)", {first: some[first], "COUNT(*)": ROWS}, math.sqrt(2), 2),
        (f"{first} beside four others", some, math.sqrt(7 * 8 / 6), 5),
    ]
    rows: list[Row] = []
    for name, truths, theory, shares in asked:
        truth = np.array([[each] for each in truths.values()])
        off = errors(_table(values), f"SELECT {', '.join(truths)} FROM t", truth, runs)
        rows.append({"of": name, "auto": rmse(off[:, 0]), "theory auto": theory, "naive": shares * math.sqrt(2)})
    return rows


def people_and_rows(runs: int) -> list[Row]:
    """COUNT(DISTINCT person) beside COUNT(*), of 2,000 people with so many rows each in so many groups: the geometric
    mean of both errors. Together they move further than each, so each has Laplace noise for half of epsilon: `theory`.
    """
    rows: list[Row] = []
    for many in (3, 50):
        person = np.repeat(np.arange(ROWS), many)
        group = np.random.default_rng(SEED).integers(0, many, len(person))
        frame = pd.DataFrame({"p": person, "g": group})
        table = dpsql.Table(frame, unit="p", max_rows=many, max_groups=many, keys={"g": list(range(many))})
        by = frame.groupby("g")["p"]
        truth = np.array([by.nunique(), by.size()], dtype=np.float64)
        off = errors(table, "SELECT g, COUNT(DISTINCT p), COUNT(*) FROM t GROUP BY g", truth, max(200, runs // 4))
        found = [rmse(off[:, place])[0] for place in (0, 1)]
        rows.append({"rows of each": many, "auto": math.sqrt(math.prod(found)), "theory auto": 2 * math.sqrt(2) * many})
    return rows


def most_frequent(runs: int) -> list[Row]:
    """How many rows the values of APPROX_TOP_K have fewer than the right ones, on average. `naive` draws one after the
    other, each for an equal share of epsilon, by permute-and-flip."""
    held = 400 - 3 * np.arange(100)
    names = [f"value {number:03}" for number in range(len(held))]
    table = dpsql.Table(pd.DataFrame({"x": np.repeat(names, held)}), keys={"x": names})
    rows: list[Row] = []
    for many in (2, 5, 20):
        found = answers(table, f"SELECT APPROX_TOP_K(x, {many}) FROM t", runs)[:, 0, 0]
        taken = np.array([sum(held[names.index(each)] for each in json.loads(text)) for text in found])
        peeled = top_k(np.tile(held, (runs, 1)), many, Fraction(EPSILON) / many, permute_and_flip)
        best = held[:many].sum()
        lost = {"auto": best - taken, "naive": best - held[peeled].sum(axis=1)}
        rows.append({"values": many} | {way: mean(off.astype(np.float64)) for way, off in lost.items()})
    return rows


def automatic_bounds(_runs: int) -> list[Row]:
    """SUM and AVG of 1,000 lognormal values with bounds "auto", in percent: medians, and means after them, over 20 data
    sets with 60 runs each. Other ways are simulated (`auto_bounds`); `best` and `loose` are fixed bounds, chosen with
    an eye on the data."""
    found = {way: bounds_errors("lognormal(0, 1)", 1_000, EPSILON, answer, SETS) for way, answer in _ways().items()}
    rows: list[Row] = []
    for place, word in enumerate(("SUM", "AVG")):
        row: dict[str, object] = {"of": word}
        for way, off in found.items():
            row[way] = _median_and_mean(100 * off[place])
        rows.append(row | {"median at most": "2"})
    return rows


def _ways() -> dict[str, Answer]:
    return {"dpsql": engine} | {way: WAYS[way] for way in ("up, Laplace", "histogram", "best", "loose")}


def _median_and_mean(values: Floats) -> str:
    return f"{np.median(values):.2f} ({values.mean():.3g})"
