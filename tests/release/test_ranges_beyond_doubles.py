"""Ranges of whole numbers whose ends are one double: grids of one value, and no division by their width."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest

import dpsql

FAR = 2**62
BOUNDS = f"({FAR - 3}, {FAR})"
FRAME = pd.DataFrame({"u": [1, 1, 2], "x": [FAR - 1, FAR, FAR - 3], "y": [0.0, 1.0, 2.0], "w": [999_983, 5, 7]})
DECLARED: dict[str, Any] = {"bounds": {"x": (FAR - 3, FAR), "y": (0, 2), "w": (0, 999_983)}}
AGGREGATES = [
    "AVG(x)", "SUM(x)", "VAR_POP(x)", "CORR(y, x)", "REGR_SLOPE(x, y)", "REGR_R2(x, w)", "MEDIAN(x)", "AVG(w)",
    f"SUM(x, contribution_bounds_per_group => {BOUNDS})", f"AVG(x, contribution_bounds_per_group => {BOUNDS})",
]  # fmt: skip


@pytest.mark.parametrize("unit", [{}, {"unit": "u", "max_rows": 2}], ids=["rows", "people"])
@pytest.mark.parametrize("terms", [{"epsilon": 1}, {"rho": 0.1}, {"epsilon": 1, "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("clause", ["", "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) "])
def test_such_ranges_are_planned(unit: dict[str, Any], terms: dict[str, Any], clause: str) -> None:
    session = dpsql.Session({"t": dpsql.Table(FRAME, **DECLARED, **unit)}, budget=dpsql.Budget(10, 0.1))
    refused = 0
    for asked in itertools.combinations(AGGREGATES, 2):
        try:
            session.explain(f"SELECT {clause}{', '.join(asked)} FROM t", **terms)
        except dpsql.QueryRefused:  # what single rows cannot be asked, or people
            refused += 1
    assert refused < 40


@pytest.mark.parametrize("word", ["AVG", "MEDIAN", "MIN", "MAX"])
def test_such_values_are_answered(word: str) -> None:
    found = dpsql.query({"t": dpsql.Table(FRAME, **DECLARED)}, f"SELECT {word}(x) AS a FROM t", epsilon=100).df["a"][0]
    assert FAR - 3 <= found <= FAR
