"""What the lines of `least_error` are made of: a figure in a named setting, and how figures are measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from errors import EPSILON, Floats, answers
from measure import Row, exact, stages

import dpsql
from dpsql.release.intervals.intervals import constant_half_width, interval

LEVEL = 0.95
ADULT = Path(__file__).parent.parent / "adult_sample" / "adult.csv"


@dataclass(frozen=True)
class Line:
    """One figure: its question, the setting that it is measured in, what it is now, what theory says of the better way
    (None where it is a rule and no formula), and what is to be reached."""

    question: str
    setting: str
    now: float
    theory: float | None
    reach: float

    @property
    def row(self) -> Row:
        """As a table shows it; the last cell is 1 where the figure is reached."""
        return {
            "question": self.question,
            "setting": self.setting,
            "now": f"{self.now:.4g}",
            "theory": "-" if self.theory is None else f"{self.theory:.4g}",
            "to reach": f"{self.reach:.4g}",
            "now / to reach": f"{self.now / self.reach if self.reach else math.inf if self.now else 1:.2f}",
        }


Measure = Callable[[int], list[Line]]
"""The lines of one name, by so many runs."""


def root_mean_squares(
    table: dpsql.Table, sql: str, truth: Sequence[Any], runs: int, *, shown: bool = False, **how: Any
) -> list[float]:
    """The RMSE of each aggregate, over groups and runs. truth: a number, or an array over groups, for each of them.
    `shown`: of whole numbers as they are shown, rounded."""
    found = answers(table, sql, runs, **how).astype(np.float64)
    off: Floats = (np.rint(found) if shown else found) - np.array([np.atleast_1d(each) for each in truth])
    return [float(each) for each in np.sqrt((off**2).mean(axis=(0, 2)))]


def half_widths(table: dpsql.Table, sql: str, runs: int, *, epsilon: float = EPSILON, **how: Any) -> list[float]:
    """The mean half-width of each output's noise interval, over groups and runs."""
    release, store = stages("t", table, sql, epsilon=epsilon, **how)
    outputs = [each.expr for each in release.query.finish.outputs]
    constant = [constant_half_width(release, each, LEVEL) for each in outputs]
    known = [each for each in constant if each is not None]
    if len(known) == len(outputs):
        return known
    integers = exact(release, store)
    found = []
    for _ in range(runs):
        released = release.privatise(integers)
        ends = [interval(release, released, each, LEVEL) for each in outputs]
        found.append([float(np.mean(high - low)) / 2 for low, high in (each for each in ends if each is not None)])
    return [float(each) for each in np.mean(found, axis=0)]


def geometric(epsilon: float = EPSILON) -> float:
    """The standard deviation of geometric noise for one step."""
    a = math.exp(-epsilon)
    return math.sqrt(2 * a) / (1 - a)


def cube(dimension: int, epsilon: float = EPSILON) -> float:
    """The variance of one of so many coordinates with noise on the cube, each of which one row moves by 1."""
    return (dimension + 1) * (dimension + 2) / (3 * epsilon**2)


@lru_cache(maxsize=1)
def adult() -> pd.DataFrame:
    """The sample table of the project: 32,561 people of a census."""
    return pd.read_csv(ADULT)
