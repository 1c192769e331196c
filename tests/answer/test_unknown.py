"""Averages and medians that the noise leaves open print as `unknown`; their estimates stay in the frame."""

from typing import Any

import numpy as np
import pandas as pd

import dpsql

DAYS = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"] * 500)
FRAME = pd.DataFrame({"day": DAYS, "pay": np.arange(1_500) % 100 * 1_000.0})
HOW: dict[str, Any] = {"epsilon": 1, "bounds": {"pay": (0, 100_000), "day": ("2024-01-01", "2024-01-03")}}
SELECT = "SELECT CAST(day AS DATE) AS day, COUNT(*) AS n, AVG(pay) AS a, MEDIAN(pay) AS m FROM t{} GROUP BY 1"
SQL = SELECT.format("")
LINE = (
    "unknown: the noise leaves a, m open between its bounds (the estimate is in .df). To leave out the group of NULL, "
    'write WHERE day IS NOT NULL, or declare nullable={"day": False}.'
)


def cells(result: dpsql.Result, head: str) -> list[str]:
    words = result._text_cells()
    return [row[words.heads.index(head)] for row in words.rows]


def phantom(frame: pd.DataFrame = FRAME, sql: str = SQL) -> dpsql.Result:
    """An answer whose last group is unknown; its interval is the whole range in most draws."""
    for _ in range(40):
        result = dpsql.query(frame, sql, **HOW)
        ends = result.intervals()[["a_low", "a_high"]]
        whole = [(low, high) == (0, 100_000) for low, high in ends.itertuples(index=False)]
        assert [cell == "unknown" for cell in cells(result, "a")] == whole
        if whole and whole[-1]:
            return result
    raise AssertionError("no draw leaves the group of NULL open")


def test_a_phantom_group_is_unknown_and_the_line_names_both_ways_out() -> None:
    result = phantom()
    assert cells(result, "m")[-1] == "unknown"
    assert "unknown" not in cells(result, "m")[:-1]
    assert LINE in result.notes
    assert LINE in str(result)
    assert result.df["a"].notna().all()
    assert "unknown" not in result.to_pandas(intervals=True).astype(str).to_string()


def test_both_ways_out_leave_the_group_out() -> None:
    for sql, nullable in ((SELECT.format(" WHERE day IS NOT NULL"), None), (SQL, {"day": False})):
        result = dpsql.query(FRAME, sql, nullable=nullable, **HOW)
        assert len(result) == 3
        assert "unknown" not in str(result)


def test_answers_over_answers_say_it_too() -> None:
    result = phantom(sql=f"SELECT day, a FROM ({SQL}) WHERE n < 100")
    assert any(each.startswith("unknown: the noise leaves a open") for each in result.notes)
    counts = "SELECT CAST(day AS DATE) AS day, COUNT(*) AS n FROM t GROUP BY 1"
    both = "x.day IS NOT DISTINCT FROM y.day"
    phantom(
        sql=f"WITH x AS ({SQL}), y AS ({counts}) SELECT x.day, x.a, y.n FROM x JOIN y ON {both} ORDER BY 1 NULLS LAST"
    )


def test_any_rows_of_a_table_have_the_same_words_for_the_same_numbers() -> None:
    """The marks are made of released values: with NULL dates or without, a group of few rows looks alike."""
    for frame in (FRAME, FRAME.assign(day=FRAME["day"].where(np.arange(1_500) > 0))):
        assert cells(phantom(frame), "a")[-1] == "unknown"


def test_known_averages_stay_numbers() -> None:
    result = dpsql.query(FRAME, "SELECT AVG(pay) AS a FROM t", epsilon=1, bounds={"pay": (0, 100_000)})
    assert "unknown" not in str(result)
