"""What a user holds after a query: values, intervals, digits, text and HTML."""

import dataclasses
import pickle
import re

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidArgument
from dpsql.release.bounds import auto_bounds
from tests.seeding import seed

FRAME = pd.DataFrame(
    {
        "age": [20, 30, 40, 50] * 250,
        "pay": [1.5, 2.5, None, 4.0] * 250,
        "sex": ["F", "M", None, "M"] * 250,
        "ok": [True, False] * 500,
    }
)
FACTS = {"bounds": {"age": (0, 100), "pay": (0, 10)}, "keys": {"sex": ["F", "M", None]}}
HUGE = 1e7


def ask(sql: str, epsilon: float = HUGE, **more: object) -> dpsql.Result:
    return dpsql.query(FRAME, sql, epsilon=epsilon, **{**FACTS, **more})


def test_values_and_types() -> None:
    frame = ask("SELECT sex, COUNT(*) AS n, SUM(age) AS total, AVG(pay) AS pay FROM t GROUP BY sex").df
    assert frame["sex"].tolist()[:2] == ["F", "M"]
    assert frame["sex"].isna().tolist() == [False, False, True], "the NULL group comes last"
    assert frame["n"].tolist() == [250, 500, 250]
    assert frame["total"].tolist() == [5000, 20000, 10000]
    assert [str(kind) for kind in frame.dtypes] == ["str", "int64", "int64", "float64"]
    assert frame["pay"].tolist()[:2] == pytest.approx([1.5, 3.25], abs=1e-4)
    assert np.isnan(frame["pay"].tolist()[2]), "an average of no values is NULL"


def test_intervals_enclose_the_value_and_name_their_columns() -> None:
    result = ask("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM t GROUP BY sex", epsilon=1)
    bounds = result.intervals()
    assert list(bounds.columns) == ["sex", "n_low", "n_high", "age_low", "age_high"]
    both = result.to_pandas(intervals=True)
    assert list(both.columns) == ["sex", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    for name in ("n", "age"):
        assert (both[f"{name}_low"] <= both[name]).all()
        assert (both[name] <= both[f"{name}_high"]).all()


def test_wider_level_and_simultaneous_intervals_are_wider() -> None:
    result = ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=0.1)
    width = {name: (b["n_high"] - b["n_low"]).iloc[0] for name, b in _three_kinds(result).items()}
    assert width["95"] < width["99"]
    assert width["95"] < width["all"]


def _three_kinds(result: dpsql.Result) -> dict[str, pd.DataFrame]:
    return {"95": result.intervals(), "99": result.intervals(0.99), "all": result.intervals(simultaneous=True)}


def test_simultaneous_interval_of_a_count_is_the_exact_quantile_of_the_largest_noise() -> None:
    result = ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=0.1)
    half = (result.intervals(simultaneous=True)["n_high"] - result.df["n"]).iloc[0]
    a = np.exp(-0.1)
    inside = [1 - 2 * a ** (t + 1) / (1 + a) for t in (half, half - 1)]
    assert inside[0] ** 3 >= 0.95 > inside[1] ** 3


@pytest.mark.parametrize("level", [0, 1, -1, 2, "x", True, float("nan")])
def test_level_is_checked(level: object) -> None:
    with pytest.raises(InvalidArgument, match="level must lie between 0 and 1"):
        ask("SELECT COUNT(*) FROM t").intervals(level)


def test_item_len_iter() -> None:
    one = ask("SELECT COUNT(*) FROM t")
    assert one.item() == 1000
    assert len(one) == 1
    assert list(one) == [(1000,)]
    with pytest.raises(InvalidArgument, match="one row and one column"):
        ask("SELECT sex, COUNT(*) FROM t GROUP BY sex").item()


def test_null_average_is_none() -> None:
    assert ask("SELECT AVG(pay) FROM t WHERE age > 90").item() is None


def test_prints_table_intervals_and_cost() -> None:
    text = str(ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=1))
    assert re.search(r"\| F    \| +\d+ \| +±3 \|", text)
    assert "| NULL |" in text
    assert text.splitlines()[-1] == "spent epsilon 1 (calls add up; dpsql.Session keeps count)"


def test_long_answers_are_cut_on_screen_not_in_the_frame() -> None:
    result = ask("SELECT age, COUNT(*) AS n FROM t GROUP BY age", bounds={"age": (0, 99)})
    assert "(40 more rows in .df)" in str(result)
    assert len(result.df) == 100
    assert result.to_text().count("\n| ") == 101


def test_html_is_escaped() -> None:
    frame = pd.DataFrame({"k": ["<b>x</b>"] * 50})
    html = dpsql.query(frame, "SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, keys={"k": ["<b>x</b>"]})._repr_html_()
    assert "&lt;b&gt;x" in html
    assert "<b>x" not in html
    assert "<script" not in html


def test_control_characters_in_keys_do_not_reach_the_terminal() -> None:
    frame = pd.DataFrame({"k": ["\x1b[31mred\nline"] * 50})
    text = str(dpsql.query(frame, "SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, keys={"k": ["\x1b[31mred\nline"]}))
    assert "\x1b" not in text
    assert "\\x1b[31mred\\nline" in text


def test_result_is_immutable_and_pickles_without_the_table() -> None:
    frame = pd.DataFrame({"secret": ["needle-in-the-haystack"] * 1000, "x": range(1000)})
    result = dpsql.query(frame, "SELECT COUNT(*) AS n FROM t WHERE secret = 'a'", epsilon=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.footer = "free"
    for private in (pickle.dumps(result), repr(vars(result)).encode()):
        assert b"needle" not in private


def test_changing_the_frame_of_a_result_changes_nothing() -> None:
    result = ask("SELECT COUNT(*) AS n FROM t")
    frame = result.df
    frame.loc[0, "n"] = -5
    assert result.item() == 1000


def test_warnings_speak_of_public_facts() -> None:
    assert any("epsilon above 10" in note for note in ask("SELECT COUNT(*) FROM t", epsilon=11).warnings)
    many = ask("SELECT age, COUNT(*) FROM t GROUP BY age", epsilon=1e-4)  # 101 counts: one of them is small for sure
    assert any("larger than some counts" in note for note in many.warnings)
    assert ask("SELECT COUNT(*) FROM t", epsilon=1).warnings == ()


# Bounds that a query has chosen


def orders(rows: int = 4_000) -> dpsql.Table:
    return dpsql.Table(
        pd.DataFrame({"total-paid": np.arange(rows) % 97 + 0.5, "n": np.arange(rows) % 7}), bounds="auto"
    )


def test_chosen_bounds_are_found_by_the_columns_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 1)  # all bounds that clip nobody are nearly as good at such an epsilon
    result = dpsql.query({"t": orders()}, 'SELECT SUM("total-paid"), SUM(n) FROM t', epsilon=1e6)
    assert set(result.bounds) == {"total-paid", "n"}
    low, high = result.bounds["total-paid"]
    assert low <= 0
    assert 90 < high < 2_000
    assert "Bounds of total-paid chosen privately: " in str(result)


def test_columns_of_one_name_are_told_apart_by_their_tables() -> None:
    frame = pd.DataFrame({"u": np.arange(500), "x": np.full(500, 3.0)})
    tables = {name: dpsql.Table(frame, unit="u", max_rows=1, bounds={"x": "auto"}) for name in ("a", "b")}
    result = dpsql.query(tables, "SELECT SUM(a.x), SUM(b.x) FROM a JOIN b USING (u)", epsilon=1e6)
    assert set(result.bounds) == {"a.x", "b.x"}


@pytest.mark.parametrize("column", ["total-paid", "n"])
@pytest.mark.parametrize("few", [True, False])
def test_bounds_that_too_few_rows_chose_are_noted(column: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_bounds, "exponential", lambda gaps, *_: gaps.argmin(axis=1))
    result = dpsql.query({"t": orders(3 if few else 4_000)}, f'SELECT SUM("{column}") FROM t', epsilon=1)
    lowest = max(map(abs, result.bounds[column])) <= (2 if column == "n" else 1 / 16)
    assert lowest == few
    note = f"NULL, since there are too few rows to choose bounds of {column} privately at this epsilon."
    assert any(note in each for each in result.notes) == few
    assert (result.item() is None) == few


def test_declared_bounds_may_be_small() -> None:
    assert ask("SELECT SUM(pay) FROM t", epsilon=1, bounds={"pay": (0, 0.01)}).warnings == ()


def test_what_stands_below_null_is_not_shown():
    frame = pd.DataFrame({"k": ["a", "b"] * 20})
    counts = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    for made in ("MAKE_DATE(n, n, n)", "DATE '2020-01-01' + 3000000", "TIMESTAMP '9999-12-31' + INTERVAL 3 DAY"):
        answer = dpsql.query(frame, f"SELECT {made} AS d FROM ({counts})", epsilon=1, keys={"k": ["a", "b"]})
        assert [row[0] for row in answer] == [None, None]


def test_nothing_stands_beside_a_table() -> None:
    frame = pd.DataFrame({"k": ["few"] * 8 + ["many"] * 4000})
    result = dpsql.query(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, keys={"k": ["few", "many"]})
    table = result.to_text().split("\n")[: 4 + len(result) + 1]
    table = [line for line in table if line.startswith(("|", "+"))]
    assert len({len(line) for line in table}) == 1
    assert "wide" not in str(result) + result._repr_html_()
