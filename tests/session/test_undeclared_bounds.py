"""Bounds that nobody declared: queries choose them privately, unless the owner or the caller turns that off."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import BudgetExceeded, InvalidArgument, InvalidSchema, MissingBounds
from dpsql.session import session as sessions

SQL = "SELECT AVG(age) FROM people"
LINE = re.compile(
    r"Bounds of age chosen privately: (\S+) to (\S+) \(30 % of epsilon\)\. "
    r'Declaring bounds=\{"age": \((\S+), (\S+)\)\} '
    r"would cut the error from ±(\S+) to ±(\S+)\."
)


def people(rows: int = 1_000) -> pd.DataFrame:
    drawn = np.random.default_rng(5)
    ages, pays = drawn.integers(18, 91, rows), drawn.lognormal(10, 1, rows)
    return pd.DataFrame({"age": ages, "pay": pays, "sex": np.where(ages % 2 == 0, "F", "M"), "city": "x"})


def opened(**words: Any) -> dpsql.Session:
    return dpsql.Session({"people": people()}, budget=dpsql.Budget(2), **words)


def line_of(result: dpsql.Result) -> str:
    (line,) = [each for each in result.notes if "chosen privately" in each]
    return line


def test_the_first_query_is_answered_and_says_which_bounds_it_chose() -> None:
    result = dpsql.query(people(), SQL, epsilon=1)
    assert result.item() == pytest.approx(people()["age"].mean(), rel=0.2)
    found = LINE.fullmatch(line_of(result))
    assert found is not None, line_of(result)
    assert tuple(map(float, found.groups()[2:4])) == result.bounds["age"]
    low, high = result.intervals().iloc[0]
    half, less = (float(each) for each in found.groups()[4:])
    assert half == pytest.approx((high - low) / 2, rel=0.01)
    assert less / half == pytest.approx(0.7, abs=0.03)


def test_declaring_what_the_line_says_has_the_error_that_it_says() -> None:
    result = dpsql.query(people(), SQL, epsilon=1)
    found = LINE.fullmatch(line_of(result))
    assert found is not None
    again = dpsql.query(people(), SQL, epsilon=1, bounds={"age": (float(found[3]), float(found[4]))})
    low, high = again.intervals().iloc[0]
    assert (high - low) / 2 == pytest.approx(float(found[6]), rel=0.1)


def test_several_columns_and_groups_share_one_line() -> None:
    sql = "SELECT sex, AVG(age), SUM(pay) FROM people GROUP BY sex"
    result = dpsql.query(people(8_000), sql, epsilon=1, keys={"sex": ["F", "M"]})
    line = line_of(result)
    assert set(result.bounds) == {"age", "pay"}
    assert line.count("30 % of epsilon") == 1
    assert line.endswith("would cut the errors by 30 %.")
    by_rho = dpsql.query(people(), SQL, rho=0.5, delta=1e-6)
    assert "(30 % of rho)" in line_of(by_rho)
    assert line_of(dpsql.query(people(), "SELECT MEDIAN(pay) FROM people", epsilon=5)).endswith("save that share.")


def test_explain_says_it_before_anything_is_spent() -> None:
    session = opened()
    text = str(session.explain(SQL, epsilon=1))
    assert "of age: chosen privately for 30 % of epsilon, as none are declared" in text
    assert session.spent.epsilon == 0


@pytest.mark.parametrize("bounds", [{"age": (0, 100)}, None], ids=["declared", "in the text"])
def test_declared_bounds_win(bounds: dict[str, Any] | None) -> None:
    sql = SQL if bounds else "SELECT AVG(CLAMP(age, 0, 100)) FROM people"
    result = dpsql.query(people(), sql, epsilon=1, bounds=bounds)
    assert result.bounds == {}
    assert "chosen privately" not in str(result)
    within = "SELECT AVG(age) FROM people WHERE age BETWEEN 20 AND 60"
    assert dpsql.query(people(), within, epsilon=1).bounds == {}
    mixed = dpsql.query(people(), "SELECT SUM(age), SUM(pay) FROM people", epsilon=1, bounds={"age": (0, 100)})
    assert set(mixed.bounds) == {"pay"}


def test_turned_off_the_query_is_refused(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    text = (
        '{}[budget]\nepsilon = 2\n[tables.people]\npath = "people.csv"\n'
        '[tables.people.columns]\nage = {{ type = "integer" }}\n'
    )
    (tmp_path / "off.toml").write_text(text.format("auto_bounds = false\n"))
    (tmp_path / "on.toml").write_text(text.format(""))
    off, on = (dpsql.Schema.from_toml(tmp_path / f"{name}.toml") for name in ("off", "on"))
    assert (off.auto_bounds, on.auto_bounds) == (False, True)
    for asked in (
        lambda: dpsql.query(people(), SQL, epsilon=1, auto_bounds=False),
        lambda: opened(auto_bounds=False).query(SQL, epsilon=1),
        lambda: dpsql.Session(schema=off, ledger=False).query(SQL, epsilon=1),
        lambda: dpsql.Session(schema=off, ledger=False, auto_bounds=True).query(SQL, epsilon=1),
        lambda: dpsql.Session(schema=on, ledger=False, auto_bounds=False).query(SQL, epsilon=1),
    ):
        with pytest.raises(MissingBounds, match='AVG\\(age\\) needs bounds for column "age"'):
            asked()
    assert dpsql.Session(schema=on, ledger=False).query(SQL, epsilon=1).bounds
    table = dpsql.Table(people(), bounds="auto")  # what an owner declares is no default
    assert dpsql.query({"people": table}, SQL, epsilon=1, auto_bounds=False).bounds


def test_tables_that_come_later_are_treated_alike() -> None:
    for word in (True, False):
        session = opened(auto_bounds=word)
        session.add("more", people())
        if word:
            assert session.query("SELECT SUM(age) FROM more", epsilon=1).bounds
        else:
            with pytest.raises(MissingBounds):
                session.query("SELECT SUM(age) FROM more", epsilon=1)


def test_other_words_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="auto_bounds must be True or False"):
        dpsql.query(people(), SQL, epsilon=1, auto_bounds="no")  # type: ignore[arg-type]
    with pytest.raises(InvalidSchema, match="auto_bounds must be true or false"):
        dpsql.Schema.from_dict({"auto_bounds": "off"})


def test_the_choice_is_charged_with_the_query_before_any_row_is_read() -> None:
    session = opened()
    first = session.query(SQL, epsilon=1)
    assert [entry.cost.epsilon for entry in session.ledger()] == [1]
    assert session.ledger()[0].cost.delta == 0
    again = session.query(SQL, epsilon=1)
    assert again.replayed
    assert (again.bounds, list(again)) == (first.bounds, list(first))
    assert session.spent.epsilon == 1
    with mock.patch.object(sessions, "run") as run, pytest.raises(BudgetExceeded):
        session.query("SELECT SUM(age) FROM people", epsilon=1.2)  # 0.7 of it would have room
    run.assert_not_called()
    assert session.spent.epsilon == Fraction(1)


def test_refusals_do_not_depend_on_rows() -> None:
    """The plan is that of the widest bounds; a quotient that has none by any bounds is refused as it was."""
    for frame in (people(), people().iloc[:0]):
        assert len(dpsql.query(frame, SQL, epsilon=1)) == 1
        with pytest.raises(MissingBounds, match="age / pay"):
            dpsql.query(frame, "SELECT AVG(age / pay) FROM people", epsilon=1)
        with pytest.raises(MissingBounds, match='needs bounds for column "age"'):
            dpsql.query(frame, "SELECT SUM(age) FROM people", epsilon=1, error=100)


def test_public_tables_have_nothing_chosen() -> None:
    tables = {
        "people": people(),
        "rates": dpsql.Table(pd.DataFrame({"city": ["x"], "rate": [2]}), public=True, unique=["city"]),
    }
    result = dpsql.query(tables, "SELECT SUM(rate) FROM people JOIN rates USING (city)", epsilon=1)
    assert result.bounds == {}


@pytest.mark.parametrize("value", [-665_300_000_000_000_000, 3 * 10**18, 2**53 + 1])
def test_bounds_around_large_numbers_are_shown(value: int) -> None:
    """Ends of intervals beyond 2^53 are Python integers."""
    frame = pd.DataFrame({"x": [value] * 20_000, "k": ["a", "b"] * 10_000})
    for sql in (
        "SELECT SUM(x), VAR_POP(x) FROM t",
        "SELECT k, SUM(x), AVG(x) FROM t GROUP BY k",
        "SELECT MAX(x) FROM t",
    ):
        found = dpsql.query(frame, sql, epsilon=1, keys={"k": ["a", "b"]})
        assert "chosen privately" in str(found)
        assert found._repr_html_()
