"""Questions about rows that are in one part each: filters that exclude each other, booleans, NULLs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from least_error_lines import Line, adult, cube, geometric, root_mean_squares
from people import BOUNDS, people, table

import dpsql

ROWS = 10_000
BANDS = [(20 + 5 * place, 25 + 5 * place) for place in range(12)]
FIVE = [(17, 25), (25, 35), (35, 50), (50, 65), (65, 91)]


def bands(runs: int) -> list[Line]:
    """Bands of age as a pivot: a row is in one of them, as it is in one group of GROUP BY."""
    frame = people(ROWS)
    found = []
    for name, parts, form, reach in (
        ("twelve bands by SUM(CASE)", BANDS, "SUM(CASE WHEN age >= {} AND age < {} THEN 1 ELSE 0 END)", 1.4),
        ("five bands by FILTER", FIVE, "COUNT(*) FILTER (WHERE age >= {} AND age < {})", 1.4),
    ):
        sql = f"SELECT {', '.join(form.format(*part) for part in parts)} FROM t"
        truth = [((frame["age"] >= low) & (frame["age"] < high)).sum() for low, high in parts]
        off = root_mean_squares(table(frame), sql, truth, runs, shown=True)
        now = math.sqrt(float(np.mean(np.square(off))))
        found.append(Line(name, f"{ROWS:,} people", now, geometric(), reach))
    return found


def sexes(runs: int) -> list[Line]:
    """AVG of each sex beside the other: two groups, each with noise of its own."""
    frame = adult()
    of = [frame.loc[frame["sex"] == sex, "age"].to_numpy(np.float64) for sex in ("Male", "Female")]
    sql = f"SELECT {', '.join(f'AVG(age) FILTER (WHERE sex = {sex!r})' for sex in ('Male', 'Female'))} FROM t"
    declared = dpsql.Table(frame, bounds={"age": (0, 100)}, nullable={"age": False, "sex": False})
    now = root_mean_squares(declared, sql, [each.mean() for each in of], runs)
    theory = [math.sqrt(cube(2) * (50**2 + (each.mean() - 50) ** 2)) / len(each) for each in of]
    names = ("AVG FILTER (men)", "AVG FILTER (women)")
    lines = zip(names, now, theory, (0.0047, 0.0100), strict=True)
    return [Line(name, "Adult, age 0..100", *figures) for name, *figures in lines]


def booleans(runs: int) -> list[Line]:
    """COUNT_IF(b), AVG(b) and COUNT(*) follow from two counts, of rows where b is true and of those where it is not."""
    held = np.arange(ROWS) % 10 < 3
    declared = dpsql.Table(pd.DataFrame({"b": held}), nullable={"b": False})
    truth = (held.sum(), held.mean(), ROWS)
    sql = "SELECT COUNT_IF(b), AVG(CAST(b AS INTEGER)), COUNT(*) FROM t"
    off = root_mean_squares(declared, sql, truth, runs)
    setting = f"{ROWS:,} rows, b of 3 in 10"
    return [
        Line("COUNT_IF(b) beside AVG(b), COUNT(*)", setting, off[0], geometric(), 1.4),
        Line("COUNT(*) beside COUNT_IF(b), AVG(b)", setting, off[2], math.sqrt(2) * geometric(), 1.95),
    ]


def public_number(runs: int) -> list[Line]:
    """Bounded neighbours: where the number of rows is public, one of two counts follows from the other."""
    held = np.arange(ROWS) % 10 < 3
    declared = dpsql.Table(pd.DataFrame({"b": held}), nullable={"b": False})
    of, setting = held.sum(), f"{ROWS:,} rows, b of 3 in 10, bounded neighbours, n public"
    by_group = "SELECT b, COUNT(*) FROM t GROUP BY b"
    beside = "SELECT COUNT_IF(b), AVG(b) FROM t"
    groups = root_mean_squares(declared, by_group, (np.array([ROWS - of, of]),), runs, neighbours="bounded")
    both = root_mean_squares(declared, beside, (of, held.mean()), runs, neighbours="bounded")
    return [
        Line("COUNT(*) GROUP BY b", setting, groups[0], geometric(), 1.4),
        Line("COUNT_IF(b) beside AVG(b)", setting, both[0], geometric(), 1.4),
    ]


def null_part(runs: int) -> list[Line]:
    """AVG beside COUNT(*) of a column with NULLs: three shares of each row, of which AVG reads two."""
    rows = 2_000
    frame = people(rows).astype({"age": float})
    frame.loc[np.arange(rows) % 5 == 0, "age"] = np.nan
    low, high = BOUNDS["age"]
    mean, many = float(frame["age"].mean()), int(frame["age"].notna().sum())
    declared = dpsql.Table(frame, bounds=BOUNDS)
    now = root_mean_squares(declared, "SELECT AVG(age), COUNT(*) FROM t", (mean, rows), runs)[0]
    away = ((high - low) / 2) ** 2 + (mean - (high + low) / 2) ** 2
    setting = f"{rows:,} people, a fifth of the ages NULL, 17..90"
    return [Line("AVG beside COUNT(*)", setting, now, math.sqrt(cube(2) * away) / many, 0.047)]
