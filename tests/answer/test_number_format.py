"""One format for each column: digits by its noise, ends rounded outward, dates for midnights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsql
from dpsql.answer.number_format import interval_texts, plain_texts, value_texts
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type

HOUR = 3_600_000_000


def reals(*values: float) -> Vector:
    return Vector(np.array(values, dtype=float))


def limits(*ends: tuple[float, float]) -> tuple[Any, Any]:
    low, high = zip(*ends, strict=True)
    return np.array(low, dtype=float), np.array(high, dtype=float)


def around(vector: Vector, *halves: float) -> tuple[Any, Any]:
    return vector.values - np.array(halves), vector.values + np.array(halves)


def test_a_column_has_two_digits_of_its_median_half_width() -> None:
    vector = reals(53.1119, 55.618, 50.0)
    ends = around(vector, 0.23, 4.2, 50)
    assert value_texts(vector, Type.REAL, ends) == ["53.1", "55.6", "50.0"]
    assert interval_texts(vector, Type.REAL, ends) == ["±0.3", "±4.2", "±50.0"]


def test_the_smallest_half_width_keeps_a_digit() -> None:
    vector = reals(53.11191, 55.618, 50.0)
    ends = around(vector, 0.0023, 4.2, 50)
    assert value_texts(vector, Type.REAL, ends) == ["53.112", "55.618", "50.000"]
    assert interval_texts(vector, Type.REAL, ends)[0] == "±0.003"


def test_what_is_rounded_to_nothing_has_no_sign() -> None:
    vector = reals(-0.3, -0.0, -2.0)
    assert value_texts(vector, Type.REAL, around(vector, 5, 5, 5)) == ["-0.3", "0.0", "-2.0"]
    assert value_texts(vector, Type.REAL, limits(*[(-50, 49)] * 3)) == ["0", "0", "-2"]
    assert interval_texts(vector, Type.REAL, limits((-0.4, 90), (-0.0, 90), (-0.2, 90))) == [
        "-1 … 90",
        "0 … 90",
        "-1 … 90",
    ]
    assert plain_texts(vector, Type.REAL) == ["-0.3", "0.0", "-2.0"]


def test_open_ends_and_null() -> None:
    vector = Vector(np.array([1.0, 2.0, 3.0, 0.0]), np.array([True, True, True, False]))
    ends = limits((0.26, math.inf), (-math.inf, 2.5), (-math.inf, math.inf), (1.2, 3.4))
    assert interval_texts(vector, Type.REAL, ends) == ["≥ 0.26", "≤ 2.50", "any", "1.20 … 3.40"]
    assert value_texts(vector, Type.REAL, ends) == ["1.00", "2.00", "3.00", "NULL"]


ENDS = st.floats(-1e9, 1e9)


@given(st.lists(st.tuples(ENDS, ENDS, ENDS).map(sorted), min_size=1, max_size=6))
def test_shown_ends_hold_the_interval(rows: list[list[float]]) -> None:
    """But for what doubles lose."""
    vector = reals(*(value for _, value, _ in rows))
    ends = limits(*((low, high) for low, _, high in rows))
    shown = zip(value_texts(vector, Type.REAL, ends), interval_texts(vector, Type.REAL, ends), rows, strict=True)
    for text, interval, (low, value, high) in shown:
        slack = 1e-6 * (high - low) + 1e-12 * max(abs(low), abs(high)) + 1e-6 * (low == high) + 1e-12
        assert float(text) == pytest.approx(value, abs=max(high - low, 1e-6))
        if interval.startswith("±"):
            assert float(interval[1:]) >= (high - low) / 2 - slack
        else:
            first, last = map(float, interval.split(" … "))
            assert first <= low + slack
            assert last >= high - slack


def test_numbers_without_noise_have_the_decimals_that_they_need() -> None:
    assert plain_texts(reals(0.5, 1, 1.25), Type.REAL) == ["0.50", "1.00", "1.25"]
    assert plain_texts(reals(1, 2), Type.REAL) == ["1", "2"]
    assert plain_texts(reals(1 / 3, 1e-20, math.inf), Type.REAL) == ["0.333333333333", "1e-20", "inf"]


def test_noisy_numbers_without_intervals_have_six_digits_at_most() -> None:
    shares = plain_texts(reals(0.01000200040, 34.9469893979, 50), Type.REAL, noisy=True)
    assert shares == ["0.010", "34.947", "50.000"]
    assert plain_texts(reals(1234567.891, 2), Type.REAL, noisy=True) == ["1234568", "2"]
    assert plain_texts(reals(1e-9, 123456.789), Type.REAL, noisy=True) == ["1e-09", "123457"]
    assert plain_texts(reals(0, 0), Type.REAL, noisy=True) == ["0", "0"]


def test_selected_numbers_have_the_digits_of_their_unit() -> None:
    assert plain_texts(reals(53.1245221, 59.0512), Type.REAL, unit=0.4) == ["53.1", "59.1"]
    assert plain_texts(reals(26973.63355, 3.2), Type.REAL, unit=120.0) == ["26974", "3"]


def moments(*hours: int) -> Vector:
    return Vector(np.array([hour * HOUR for hour in hours]))


def test_timestamps_at_midnight_are_dates() -> None:
    assert plain_texts(moments(0, 48), Type.TIMESTAMP) == ["1970-01-01", "1970-01-03"]
    assert plain_texts(moments(0, 49), Type.TIMESTAMP) == ["1970-01-01 00:00:00", "1970-01-03 01:00:00"]
    null = Vector(np.array([0, 7]), np.array([True, False]))
    assert plain_texts(null, Type.TIMESTAMP) == ["1970-01-01", "NULL"]


def test_noise_hides_the_time_of_day() -> None:
    vector = moments(1_000)
    ends = limits((500.5 * HOUR, 1_500.25 * HOUR))
    assert value_texts(vector, Type.TIMESTAMP, ends) == ["1970-02-11"]
    assert interval_texts(vector, Type.TIMESTAMP, ends) == ["1970-01-21 … 1970-03-05"]
    ends = limits((1_000 * HOUR - 1.5e7, 1_000 * HOUR + 1.5e7))
    assert interval_texts(vector, Type.TIMESTAMP, ends) == ["1970-02-11 15:59:45 … 1970-02-11 16:00:15"]
    assert plain_texts(vector, Type.TIMESTAMP, unit=24.0 * HOUR) == ["1970-02-11"]


def test_dates_keep_their_ends() -> None:
    ends = limits((0.5, 3.5))
    assert interval_texts(Vector(np.array([2])), Type.DATE, ends) == ["1970-01-01 … 1970-01-05"]


FRAME = pd.DataFrame(
    {
        "k": ["a"] * 3000 + ["b"] * 300,
        "x": np.random.default_rng(0).uniform(0, 100, 3300),
        "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(3300) % 60, unit="D"),
    }
)
FACTS: dict[str, Any] = {"bounds": {"x": (0, 100), "t": ("2024-01-01", "2024-12-31")}, "keys": {"k": ["a", "b"]}}


def test_answers_have_one_format_for_each_column() -> None:
    sql = "SELECT k, AVG(x) AS a, MEDIAN(x) AS m, COUNT(*) AS n FROM t GROUP BY k"
    answer = dpsql.query(FRAME, sql, epsilon=1, **FACTS)
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in str(answer).splitlines() if line[0] == "|"][
        1:
    ]
    columns = list(zip(*table, strict=True))
    assert len({len(cell.partition(".")[2]) for cell in columns[1]}) == 1
    assert len({len(cell.partition(".")[2]) for cell in columns[3]}) == 1
    assert all(len(cell.replace(".", "")) <= 3 for cell in columns[3]), "selected numbers have few digits"
    assert float(answer.df["m"].iloc[0]) != 0


def test_months_and_medians_of_times_print_as_dates() -> None:
    sql = "SELECT DATE_TRUNC('month', t) AS month, COUNT(*) AS n FROM t WHERE t IS NOT NULL GROUP BY 1"
    assert "00:00:00" not in str(dpsql.query(FRAME, sql, epsilon=1, **FACTS))
    assert ":" not in str(dpsql.query(FRAME, "SELECT MEDIAN(t) FROM t", epsilon=1, **FACTS)).split("+\n")[2]


def test_computed_numbers_of_unknown_error_have_few_digits() -> None:
    frame = pd.DataFrame({"g": ["a", "b", "c", "d"] * 250, "x": range(1000)})
    sql = "SELECT g, AVG(x) AS a, NTILE(2) OVER (ORDER BY AVG(x)) AS half FROM t GROUP BY g ORDER BY a LIMIT 3"
    answer = dpsql.query({"t": frame}, sql, epsilon=1, bounds={"x": (0, 1000)}, keys={"g": ["a", "b", "c", "d"]})
    cells = answer._text_cells()
    assert cells.heads == ["g", "a", "half"]
    assert all(len(row[1].replace(".", "")) <= 6 for row in cells.rows), cells.rows
    assert all(row[2] in {"1", "2"} for row in cells.rows)
