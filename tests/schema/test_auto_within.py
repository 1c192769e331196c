"""Bounds that are chosen within a range of the owner's: how they are said, and what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.intervals import Interval


def frame(rows: int = 3_000) -> pd.DataFrame:
    gain = np.where(np.arange(rows) % 10 == 0, 5_000, 0)
    return pd.DataFrame(
        {"gain": gain, "other": gain / 7, "day": pd.Timestamp("2020-01-01"), "k": ["a", "b"] * (rows // 2)}
    )


SAID: dict[str, Any] = {"gain": ("auto", 0, 99_999)}


def session(bounds: Any = None, data: Any = None, **more: Any) -> dpsql.Session:
    table = dpsql.Table(frame() if data is None else data, bounds=bounds or SAID, **more)
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1_000))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("auto", 5), "gain: a bound must be a number or a date, got"),
        (("auto", 1, 2, 3), 'gain: bounds are a pair (lower, upper) or "auto", got'),
        (("auto", 9, 0), "gain: lower bound 9 is above upper bound 0."),
        (("auto", 3, 3), "gain: lower and upper bound are both 3"),
        (("auto", 0, float("inf")), "gain: a bound must be a finite number"),
        (("auto", "2020-01-01", "2021-01-01"), "gain: bounds are chosen between numbers"),
        (("auto", "auto", 5), "gain: a bound must be a number or a date"),
        (("Auto", 0, 5), 'gain: bounds are a pair (lower, upper) or "auto", got'),
    ],
)
def test_what_is_no_range_is_refused(bounds: Any, message: str):
    with pytest.raises(InvalidSchema) as refused:
        dpsql.Table(frame(), bounds={"gain": bounds})
    assert message in str(refused.value)


def test_only_numbers_have_bounds_that_are_chosen():
    with pytest.raises(InvalidSchema, match="bounds are chosen for numbers"):
        session({"k": ("auto", 0, 5)})
    with pytest.raises(InvalidSchema, match="bounds are chosen for numbers"):
        session({"day": ("auto", 0, 5)})


def test_bounds_are_chosen_within_it():
    for sql in (
        "SELECT SUM(gain) FROM t",
        "SELECT AVG(gain), COUNT(*) FROM t",
        "SELECT k, AVG(gain) FROM t GROUP BY k",
    ):
        found = session(keys={"k": ["a", "b"]}).query(sql, epsilon=1)
        low, high = found.bounds["gain"]
        assert 0 <= low < high <= 99_999


def test_values_beyond_it_are_held_in_it():
    data = frame()
    data.loc[:100, "gain"] = 10**9
    data.loc[100:200, "gain"] = -(10**9)
    found = session(data=data).query("SELECT AVG(gain) FROM t", epsilon=1)
    low, high = found.bounds["gain"]
    assert 0 <= low < high <= 99_999
    ((average,),) = list(found)
    assert 0 <= average <= 99_999


def test_what_needs_no_more_than_a_range_has_no_search():
    asked = session()
    for sql in (
        "SELECT MEDIAN(gain), MIN(gain) FROM t",
        "SELECT SUM(CLAMP(gain, 0, 10)) FROM t",
        "SELECT SUM(gain) FROM t WHERE gain BETWEEN 5 AND 100",
        "SELECT COUNT(*) FROM t WHERE gain > 7",
        "SELECT SUM(CASE WHEN gain > 5 THEN 1 ELSE 0 END) FROM t",
    ):
        assert asked.explain(sql, epsilon=1).to_dict()["bounds"] == [], sql
    for sql in (
        "SELECT SUM(gain) FROM t WHERE gain > 5",
        "SELECT SUM(gain), MEDIAN(gain) FROM t",
        "SELECT VAR_POP(gain) FROM t",
    ):
        assert len(asked.explain(sql, epsilon=1).to_dict()["bounds"]) == 1, sql


def test_explain_says_within_what():
    text = str(session().explain("SELECT SUM(gain) FROM t", epsilon=1))
    assert "of gain: chosen privately between 0 and 99999 for 30 % of epsilon; noise follows them" in text


def test_a_file_says_it_as_a_list(tmp_path: Path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "owner.toml").write_text(
        '[budget]\nepsilon = 9\n[tables.t]\npath = "t.csv"\n[tables.t.columns]\n'
        'gain = { type = "integer", bounds = ["auto", 0, 99999] }\n'
    )
    schema = dpsql.Schema.from_toml(tmp_path / "owner.toml")
    column = schema.tables["t"].declaration.bounds["gain"]
    assert column == ("auto", 0, 99_999)


def test_a_declared_frame_remembers_it():
    declared = dpsql.declare(frame(), bounds=SAID)
    explained = dpsql.Session({"t": declared}, budget=dpsql.Budget(9)).explain("SELECT SUM(gain) FROM t", epsilon=1)
    (search,) = explained._release.searches.searches
    assert search.intervals.outer == Interval(0, 99_999)


@pytest.mark.parametrize("rows", [[], [None, None], [7] * 50, [10**18, -(10**18)], [0] * 50])
@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
def test_whatever_rows_there_are(rows: list[Any], neighbours: str):
    data = pd.DataFrame({"gain": pd.Series(rows, dtype="Int64")})
    table = dpsql.Table(data, bounds=SAID)
    opened = dpsql.Session({"t": table}, budget=dpsql.Budget(9), neighbours=neighbours)
    low, high = opened.query("SELECT SUM(gain), AVG(gain) FROM t", epsilon=1).bounds["gain"]
    assert 0 <= low < high <= 99_999
