"""Answers beyond the largest double, and at its edges, are shown like any others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import MissingBounds

ANY = (-np.inf, np.inf)
EXPRESSIONS = (
    "LN(SUM(w))",
    "LN(SUM(w) - SUM(w))",
    "EXP(SUM(w) * 1000)",
    "-EXP(SUM(w) * 1000)",
    "EXP(SUM(w) * 1000) / EXP(COUNT(*) * 1000)",
    "SUM(w) * 1e308 * 10",
    "1e308 * SUM(w) - COUNT(*) * 1e308 * 5",
    "SUM(w) * 1e308 * 10 / (COUNT(*) * 1e308 * 10)",
    "SUM(w) / (COUNT(*) * 1e-320 * 1e-300)",
    "ROUND(SUM(w) * 1e300 * 1e10, 2)",
    "POWER(SUM(w), 1000) - POWER(SUM(w), 1000)",
    "SUM(w) * 1e-320",
    "AVG(w) * 1e308",
    "COUNT(*) * 1e308",
)


def shown(expression: str, rows: int, epsilon: float) -> dpsql.Result:
    frame = pd.DataFrame({"w": np.arange(rows) % 3})
    found = dpsql.query(frame, f"SELECT {expression} AS a FROM t", epsilon=epsilon, bounds={"w": (0, 3)})
    assert len(list(found)) == len(found.to_pandas(intervals=True)) == len(found.intervals()) == 1
    assert str(found)
    assert found._repr_html_()
    assert str(found.explanation)
    assert found.explanation.to_dict()
    return found


@pytest.mark.parametrize("rows", [0, 3, 1000])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_whatever_an_expression_comes_to_is_shown(expression: str, rows: int):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epsilon in (0.01, 1, 100):
            low, high = shown(expression, rows, epsilon).intervals().iloc[0]
            assert low <= high


def test_of_sums_that_overflow_nothing_is_said():
    """Infinity less infinity is no end of an interval."""
    assert tuple(shown("1e308 * SUM(w) - COUNT(*) * 1e308 * 5", 1000, 100).intervals().iloc[0]) == ANY


@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV"])
@pytest.mark.parametrize(("end", "answered"), [("1e100", True), ("1e101", False), ("1e155", False), ("1e289", False)])
def test_bounds_whose_squares_no_double_holds_count_as_none(aggregate: str, end: str, answered: bool):
    frame = pd.DataFrame({"w": [1.0, 2.0, 3.0]})
    sql = f"SELECT {aggregate}(CLAMP(w, 0, {end})) AS a FROM t"
    if answered:
        assert str(dpsql.query(frame, sql, epsilon=1e-3))
    else:
        with pytest.raises(MissingBounds):
            dpsql.query(frame, sql, epsilon=1e-3, auto_bounds=False)
