"""The table `people`: made-up rows for the benchmarks, and what their owner declares of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import dpsql

SEED = 20_260  # test data: the same rows in every run

EDUCATION = [
    "HS-grad",
    "Some-college",
    "Bachelors",
    "Masters",
    "Assoc-voc",
    "11th",
    "Assoc-acdm",
    "10th",
    "7th-8th",
    "Prof-school",
    "9th",
    "12th",
    "Doctorate",
    "5th-6th",
    "1st-4th",
    "Preschool",
]
STATES = [f"state {number:02}" for number in range(1, 52)]
SEXES = ["Female", "Male"]
ZIPS = 100_000

BOUNDS = {"age": (17, 90), "income": (0, 200_000), "hours": (1, 99)}
KEYS = {"education": EDUCATION, "state": STATES, "sex": SEXES}


def people(rows: int) -> pd.DataFrame:
    """So many people. Education is uneven (the 16th value is a sixteenth as frequent as the first), the rest mild."""
    draw = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, len(EDUCATION) + 1)
    columns: dict[str, Any] = {
        "pid": np.arange(rows),
        "age": np.clip(draw.normal(42, 16, rows).round(), 17, 90).astype(np.int64),
        "income": np.clip(draw.gamma(2, 25_000, rows).round(), 0, 200_000).astype(np.int64),
        "hours": np.clip(draw.normal(40, 11, rows).round(), 1, 99).astype(np.int64),
        "education": _texts(EDUCATION, draw.choice(len(EDUCATION), rows, p=weights / weights.sum())),
        "state": _texts(STATES, draw.integers(0, len(STATES), rows)),
        "sex": _texts(SEXES, draw.integers(0, 2, rows)),
        "zip": draw.integers(0, ZIPS, rows),
    }
    return pd.DataFrame(columns, copy=False)


def table(frame: pd.DataFrame) -> dpsql.Table:
    """The frame with its declarations; nothing is declared of zip."""
    return dpsql.Table(frame, bounds=BOUNDS, keys=KEYS)


def session(frame: pd.DataFrame) -> dpsql.Session:
    """A session whose budget no benchmark can use up."""
    return dpsql.Session({"people": table(frame)}, budget=dpsql.Budget(1e9, 0.999))


def _texts(values: list[str], places: Any) -> pd.Series:
    return pd.Series(np.array(values, dtype=object)[places], dtype="str")
