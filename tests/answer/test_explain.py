"""What explain says: the same as what runs, from declared facts alone."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import dpsql

FULL = pd.DataFrame({"age": [20, 30] * 200, "sex": ["F", "M"] * 200, "city": ["x", "y"] * 200})
TABLE = {"bounds": {"age": (17, 90)}, "keys": {"sex": ["F", "M"]}}


def session(frame: pd.DataFrame = FULL, neighbours: str = "unbounded") -> dpsql.Session:
    return dpsql.Session({"t": dpsql.Table(frame, **TABLE)}, budget=dpsql.Budget(9, 1e-3), neighbours=neighbours)


def test_dictionary_of_a_count() -> None:
    told = session().explain("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=1).to_dict()
    assert told["unit"] == "row"
    assert told["neighbours"] == "unbounded"
    assert (told["epsilon"], told["delta"], told["rho"]) == (1.0, 0.0, None)
    assert told["groups"] == {"keys": ["sex"], "strategy": "PUBLIC_GROUPS", "threshold": None, "shown": None}
    assert told["releases"] == [
        {
            "name": "n",
            "parts": "count",
            "mechanism": "discrete_laplace",
            "scale": 1.0,
            "granularity": 1.0,
            "dimension": 1,
            "sensitivity": {"l1": 1.0, "l2": 1.0, "linf": 1.0},
        }
    ]
    assert told["columns"] == [
        {"name": "sex", "from": [], "interval_95": None},
        {"name": "n", "from": ["n"], "interval_95": 3.0},
    ]


def test_count_sum_and_average_share_one_spend() -> None:
    told = session().explain("SELECT COUNT(*) AS n, SUM(age), AVG(age) FROM t", epsilon=1).to_dict()
    assert told["epsilon"] == 1.0
    assert [each["parts"] for each in told["releases"]] == ["count", "sum(age - 53.5)"]
    assert {each["mechanism"] for each in told["releases"]} == {"discrete_k_norm"}
    assert [each["scale"] for each in told["releases"]] == pytest.approx([1.0, 36.5])
    assert [each["sensitivity"]["l1"] for each in told["releases"]] == pytest.approx([1.0, 36.5])


def test_explain_says_which_strategy() -> None:
    query = "SELECT AVG(age) FROM t"
    one = session().explain(query, epsilon=1)
    two = session().explain(query, epsilon=1, strategy="split")
    assert "(encoding)" in str(one)
    assert "(split)" in str(two)
    assert two.to_dict()["strategy"] == "split"
    assert [each["scale"] for each in two.to_dict()["releases"]] == pytest.approx([2.0, 73.0])


def test_bounded_neighbours_publish_the_count() -> None:
    told = session(neighbours="bounded").explain("SELECT COUNT(*) AS n, AVG(age) AS a FROM t", epsilon=1).to_dict()
    exact, total = told["releases"]
    assert (exact["name"], exact["mechanism"], exact["scale"]) == ("n", "exact", 0.0)
    assert (total["mechanism"], total["dimension"], total["scale"]) == ("discrete_laplace", 1, pytest.approx(73.0))
    free = session(neighbours="bounded").explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert free.to_dict()["epsilon"] == 0.0


def test_threshold_and_chance_to_be_shown() -> None:
    told = session().explain("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1, delta=1e-6).to_dict()
    groups = told["groups"]
    assert groups["strategy"] == "LAPLACE_THRESHOLD"
    a = np.exp(-1.0)
    least = next(t for t in range(1, 100) if a**t / (1 + a) <= 1e-6)
    assert groups["threshold"] == 1 + least
    below, one, other = groups["below"], *(a**t / (1 + a) for t in (1 + least - 10, least - 10))
    assert below["count"] == least
    assert below["chance"] == pytest.approx(
        (1e-6 - a**least / (1 + a)) / (a ** (least - 1) / (1 + a) - a**least / (1 + a))
    )
    assert groups["shown"][10] == pytest.approx((1 - below["chance"]) * one + below["chance"] * other)
    assert groups["shown"][100] == pytest.approx(1.0)
    assert told["delta"] == 1e-6


def test_same_words_on_an_empty_table_and_as_the_run() -> None:
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM t WHERE age > 20 GROUP BY sex"
    full, empty = session(), session(FULL.iloc[:0])
    assert str(full.explain(sql, epsilon=1)) == str(empty.explain(sql, epsilon=1))
    ran = full.query(sql, epsilon=1).explanation.to_dict()
    assert ran == empty.explain(sql, epsilon=1).to_dict()


def test_explain_costs_nothing_and_says_what_would_be_left() -> None:
    asker = session()
    text = str(asker.explain("SELECT COUNT(*) FROM t", epsilon=2))
    assert "Left after it: epsilon 7, delta 0.0005." in text
    assert asker.spent.epsilon == 0
    assert asker.ledger() == ()


def test_explain_privacy_in_the_text() -> None:
    told = session().query("  explain  PRIVACY SELECT COUNT(*) FROM t", epsilon=1)
    assert isinstance(told, dpsql.Explanation)
    assert "sensitivity 1" in str(told)


def test_dictionary_is_plain_json() -> None:
    told = session().explain("SELECT city, AVG(age) FROM t GROUP BY 1", epsilon=1, delta=1e-6).to_dict()
    assert json.loads(json.dumps(told))["groups"]["keys"] == ["city"]


def test_words_on_guessing() -> None:
    assert "to at most 73.1 %" in str(session().explain("SELECT COUNT(*) FROM t", epsilon=1))


def test_expected_noise_is_that_of_the_intervals() -> None:
    explained = session().explain("SELECT AVG(age) AS a FROM t", epsilon=1)
    frame = pd.DataFrame({"age": [53, 54] * 500, "sex": ["F"] * 1000})
    result = session(frame).query("SELECT AVG(age) AS a FROM t", epsilon=1)
    half = (result.intervals()["a_high"] - result.intervals()["a_low"]).iloc[0] / 2
    line = next(line for line in str(explained).splitlines() if line.startswith("  a "))
    assert float(line.split()[2].strip("±")) == pytest.approx(half, rel=0.02)


def steps(told: object) -> list[tuple[str, str]]:
    """The numbered steps of an explanation, joined with the lines below them, and their prices."""
    found: list[list[str]] = []
    for line in str(told).split("\nExpected noise")[0].splitlines():
        parts = re.split(r" {2,}", line.strip())
        if re.match(r" ?\d+ [a-z]", line):
            found.append([*parts, ""] if len(parts) < 3 else parts)
        elif line.startswith("      ") and found:
            found[-1][1] += " " + parts[0]
    return [(f"{name.split(' ', 1)[1]}: {text}", price) for name, text, price in found]


def test_a_long_step_goes_on_below_itself() -> None:
    told = session().explain("SELECT MEDIAN(age), QUANTILE(age, 0.9), QUANTILE(age, 0.99) FROM t", epsilon=1)
    words, price = next(each for each in steps(told) if each[0].startswith("choose"))
    assert re.search(r"rank error at most about \d+ rows \(95 %\)$", words)
    assert price == "epsilon 1"
    assert "..." not in str(told)
    assert max(map(len, str(told).splitlines())) < 140


def test_a_step_without_an_end_is_left_to_the_plan() -> None:
    where = " OR ".join(f"age = {age} + {age}" for age in range(300))
    told = session().explain(f"SELECT COUNT(*) FROM t WHERE {where}", epsilon=1)
    assert str(told).count("\n") < 25
    assert "age = 598" in told.plan


def test_every_level_has_its_price() -> None:
    sql = "SELECT sex, COUNT(*), SUM(age), AVG(age), VAR_POP(age) FROM t GROUP BY ROLLUP(sex)"
    prices = dict(steps(session().explain(sql, epsilon=2, strategy="split")))
    assert (prices["noise: Laplace for (sex)"], prices["noise: Laplace for ()"]) == ("epsilon 1", "epsilon 1")
    levels = "levels: every one estimated from all that have noise (least squares), so that they add up"
    assert prices[f"{levels}: count, sum(age - 53.5), sum of squares(age)"] == ""
    by_rho = [each for each in steps(session().explain(sql, rho=0.5)) if each[0].startswith("noise")]
    assert sum(float(price.removeprefix("rho ")) for _, price in by_rho) == pytest.approx(0.5)
    told = session().explain(sql, epsilon=2, delta=1e-6, mechanism="gaussian")
    both = [(words, price) for words, price in steps(told) if words.startswith(("levels", "noise"))]
    assert both[0][1] == "epsilon 2, delta 1e-06"
    assert {price.split(" ")[0] for _, price in both[1:]} == {"rho"}


def test_columns_stand_as_the_query_has_them() -> None:
    frame = pd.DataFrame({"capital-gain": np.arange(4_000) % 500, "x": np.linspace(-1, 1, 4_000)})
    table = dpsql.Table(frame, bounds={"capital-gain": "auto", "x": (-1, 1)})
    result = dpsql.query({"t": table}, 'SELECT SUM("capital-gain"), AVG(x), SUM(x) FROM t', epsilon=1)
    words = [words for words, _ in steps(result.explanation)]
    low, high = result.bounds["capital-gain"]
    assert f'clip: "capital-gain" to [{low}, {high}]' in words
    assert "CLAMP" not in str(result.explanation)


def test_nothing_is_added_for_a_centre_of_0() -> None:
    table = dpsql.Table(pd.DataFrame({"x": [-1.0, 1.0]}), bounds={"x": (-1, 1)})
    told = dpsql.query({"t": table}, "SELECT AVG(x) AS a, SUM(x) AS s, COUNT(*) FROM t", epsilon=1).explanation
    words = [words for words, _ in steps(told)]
    assert "a: sum(x) / count(x)" in words
    assert "s: sum(x)" in words
    assert "sum(x)  scale 1" in str(told)


def test_pairs_with_nulls_are_said_in_few_words() -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0] * 50, "x": [None, 2.0] * 50})
    table = dpsql.Table(frame, bounds={"y": (0, 10), "x": (-1, 1)})
    sql = "SELECT CORR(y, x), COVAR_POP(y, x), SUM(y) FROM t"
    told = dpsql.query({"t": table}, sql, epsilon=1).explanation
    assert "CASE" not in str(told)  # the pair has noise of its own, of shares of rows
    told = dpsql.query({"t": table}, sql, epsilon=1, strategy="split").explanation
    assert "CASE" not in str(told)
    assert "sum(y - 5, where x is not NULL)" in str(told)
    assert [words for words, _ in steps(told)][:2] == ["clip: y to [0.0, 10.0]", "clip: x to [-1.0, 1.0]"]
