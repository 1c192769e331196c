"""Place 0 of a list or of a text's parts is refused: other engines begin there, and DuckDB finds nothing at it."""

from __future__ import annotations

import pandas as pd
import pytest

import dpsql

FRAME = pd.DataFrame({"city": ["a-b", "c-d"] * 40})
TABLE = dpsql.Table(FRAME, keys={"city": ["a-b", "c-d"]})
ANSWER = "(SELECT city, COUNT(*) AS n FROM p GROUP BY city) AS q"


def ask(sql: str, **more: object) -> dpsql.Result:
    return dpsql.query({"p": TABLE}, sql, epsilon=50, **more)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM p WHERE SPLIT_PART(city, '-', 0) = 'a'",
        "SELECT COUNT(*) AS n FROM p WHERE SPLIT_PART(city, '-', 1 - 1) = 'a'",
        f"SELECT SPLIT_PART(city, '-', 0) AS x, n FROM {ANSWER}",
        f"SELECT SPLIT(city, '-')[0] AS x, n FROM {ANSWER}",
        f"SELECT STRING_SPLIT(city, '-')[0] AS x, n FROM {ANSWER}",
        f"SELECT (SPLIT(city, '-'))[0] AS x, n FROM {ANSWER}",
        f"SELECT LIST_EXTRACT(SPLIT(city, '-'), 0) AS x, n FROM {ANSWER}",
        f"SELECT ARRAY_EXTRACT(SPLIT(city, '-'), 0) AS x, n FROM {ANSWER}",
        f"SELECT LIST(n)[0] AS x FROM {ANSWER}",
        f"SELECT [n, n + 1][0] AS x FROM {ANSWER}",
    ],
)
def test_place_zero_is_refused(sql: str) -> None:
    with pytest.raises(dpsql.errors.UnsupportedSQL, match="numbered from 1") as refusal:
        ask(sql)
    assert "^" in str(refusal.value)
    assert "Write 1 for the first one." in str(refusal.value)


def test_place_zero_in_a_parameter_is_refused() -> None:
    with pytest.raises(dpsql.errors.UnsupportedSQL, match="numbered from 1"):
        ask("SELECT COUNT(*) AS n FROM p WHERE SPLIT_PART(city, '-', :i) = 'a'", params={"i": 0})


def test_other_places_are_read() -> None:
    assert ask("SELECT COUNT(*) AS n FROM p WHERE SPLIT_PART(city, '-', 1) = 'a'").df["n"][0] == pytest.approx(
        40, abs=5
    )
    rows = ask(f"SELECT SPLIT(city, '-')[1] AS first, SPLIT(city, '-')[-1] AS last FROM {ANSWER} ORDER BY 1").df
    assert rows.to_dict("list") == {"first": ["a", "c"], "last": ["b", "d"]}
    googles = ask(f"SELECT SPLIT(city, '-')[OFFSET(0)] AS first FROM {ANSWER} ORDER BY 1").df
    assert googles["first"].tolist() == ["a", "c"]


def test_a_key_of_a_map_may_be_zero() -> None:
    assert len(ask(f"SELECT HISTOGRAM(n * 0)[0] AS x FROM {ANSWER}").df) == 1
