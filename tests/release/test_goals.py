"""An error in place of an epsilon: the least epsilon that keeps the promise is found, shown and charged; else nothing.

Random tests draw their noise from a fixed seed, and are held to five standard errors: a promise that is kept would be
called broken by one seed in a million at most.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql import accuracy
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, DPSQLError, InvalidPrivacyParameter, SQLSyntaxError, UnsupportedSQL
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.output.select import finish
from dpsql.release.release import ReleasedValues
from dpsql.session.prepare import Terms, prepare
from dpsql.shell.cli import main
from dpsql.shell.notebook.magic import Magic
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.prompt import Prompt
from dpsql.shell.shell import Shell
from dpsql.sql.names.catalog import Catalog
from tests.core.checks import B, Shape, U, run_exactly, stacked
from tests.seeding import seed

COUNT = "SELECT COUNT(*) AS n FROM t"
FOUND = Fraction("0.5382")  # for COUNT within 5 at 95 %: ln of it solves 2 a^6 / (1 + a) = 0.05
FRAME = pd.DataFrame({
    "x": [1.5, 2.0, 9.5, 4.0], "p": [20, 30, 25, 21], "g": ["a", "b", "a", "c"], "u": [1, 1, 2, 3],
})  # fmt: skip
FACTS: dict[str, Any] = {"bounds": {"x": (-1.0, 9.0), "p": (20, 30)}, "keys": {"g": ["a", "b", "c"]}}
UNIT = {"unit": "u", "max_rows": 3, "max_groups": 2}
GAUSSIAN = {"delta": 1e-6, "mechanism": "gaussian"}


def ask(sql: str, frame: pd.DataFrame = FRAME, **how: Any) -> dpsql.Result:
    found = dpsql.query({"t": dpsql.Table(frame, **FACTS, **how.pop("facts", {}))}, sql, **how)
    assert isinstance(found, dpsql.Result)
    return found


def session(epsilon: object = 10, delta: object = 1e-5, facts: dict[str, Any] | None = None, **more: Any) -> Any:
    tables = {"t": dpsql.Table(FRAME, **{**FACTS, **(facts or {})})}
    return dpsql.Session(tables, budget=dpsql.Budget(epsilon, delta), **more)


def shown(epsilon: Fraction) -> Fraction:
    """To four digits, rounded up."""
    context = Context(prec=4, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))


def widest(result: dpsql.Result, level: float) -> float:
    """The largest half-width of all cells' intervals."""
    ends = result.intervals(level)
    names = [name.removesuffix("_low") for name in ends if name.endswith("_low")]
    return max(float((ends[f"{name}_high"] - ends[f"{name}_low"]).max()) / 2 for name in names)


# The least epsilon


@pytest.mark.parametrize(
    ("sql", "sensitivity", "how"),
    [
        (COUNT, 1, {}),
        (f"{COUNT} WHERE p > 22", 1, {"neighbours": B}),
        ("SELECT g, COUNT(*) AS n FROM t GROUP BY g", 1, {}),
        ("SELECT COUNT(DISTINCT p) AS n FROM t", 1, {}),
        ("SELECT SUM(p) AS s FROM t", 30, {}),
        (COUNT, 3, {"facts": UNIT}),
        ("SELECT COUNT(DISTINCT u) AS n FROM t", 1, {"facts": UNIT}),
        ("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g", 2, {"facts": UNIT, "strategy": "split"}),
    ],
)
@pytest.mark.parametrize(("error", "confidence"), [(5, 0.95), (0.3, 0.9), (7.9, 0.5), (40, 0.999), (1000, 0.99)])
def test_whole_numbers_get_the_epsilon_that_the_exact_law_needs(
    sql: str, sensitivity: int, how: dict[str, Any], error: float, confidence: float
):
    least = accuracy.epsilon_for(error, confidence, sensitivity)
    assert ask(sql, error=error, confidence=confidence, **how).loss.epsilon == shown(least)


@pytest.mark.parametrize(("error", "confidence"), [(5, 0.95), (0.3, 0.9), (7.9, 0.5), (40, 0.999)])
def test_one_draw_for_all_groups_needs_no_more(error: float, confidence: float):
    """Of two groups, a person in both: a half of what noise for each group by itself needs, or as much."""
    least = accuracy.epsilon_for(error, confidence, 2)
    found = ask("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g", error=error, confidence=confidence, facts=UNIT)
    assert found.loss.epsilon <= shown(least)
    assert found.loss.epsilon < shown(least) or error < 1
    assert widest(found, confidence) <= error


def test_a_count_within_five_costs_what_the_manual_says():
    assert ask(COUNT, error=5).loss.epsilon == FOUND
    assert accuracy.laplace(epsilon=FOUND, discrete=True).exact == 5
    assert accuracy.laplace(epsilon=FOUND - Fraction("0.0001"), discrete=True).exact == 6


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_sum_of_reals_costs_hardly_more_than_continuous_noise(confidence: float):
    scale = 9 / float(ask("SELECT SUM(x) FROM t", error=2, confidence=confidence).loss.epsilon)
    assert 2 / 1.001 <= accuracy.laplace(scale, beta=Fraction(1) - Fraction(str(confidence))).exact <= 2


MANY = [
    "SELECT COUNT(*), SUM(x), SUM(p) FROM t",
    "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING n > -1e9 ORDER BY s LIMIT 3",
    "SELECT g, SUM(x) AS s, COUNT(x) AS n FROM t GROUP BY ROLLUP(g)",
    "SELECT 2 * COUNT(*) + SUM(x) AS a, SUM(x) - SUM(p) AS b, -SUM(p) / 4 + 1 AS c FROM t",
    "SELECT COUNT(*) FILTER (WHERE p > 22) AS a, COUNT(*) AS b, COUNT(DISTINCT p) AS c FROM t",
]


@pytest.mark.parametrize("sql", MANY)
@pytest.mark.parametrize(
    ("how", "error", "confidence"),
    [
        ({}, 3, 0.8), ({}, 1000, 0.999), ({"strategy": "split"}, 30, 0.95), ({"neighbours": B}, 2, 0.5),
        ({"facts": UNIT}, 500, 0.99), (GAUSSIAN, 30, 0.95), (GAUSSIAN, 1000, 0.999), ({"delta": 1e-6}, 30, 0.95),
    ],
)  # fmt: skip
def test_every_column_reaches_the_error_and_a_thousandth_less_does_not(
    sql: str, how: dict[str, Any], error: float, confidence: float
):
    """The error is promised before HAVING and LIMIT choose: intervals of the rows that these leave are wider."""
    found = ask(sql, error=error, confidence=confidence, **how)
    epsilon = found.explanation._release.allowed.epsilon
    assert epsilon is not None
    assert epsilon == shown(epsilon)
    whole, having, _ = sql.partition(" HAVING ")
    assert having or widest(found, confidence) <= error
    assert widest(ask(whole, epsilon=epsilon, **how), confidence) <= error
    assert widest(ask(whole, epsilon=epsilon * Fraction(999, 1000), **how), confidence) > error


def test_more_error_or_less_confidence_never_costs_more():
    sql = "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g"
    costs = [ask(sql, error=error).loss.epsilon for error in (1, 2, 5, 5.5, 30, 1e4)]
    assert costs == sorted(costs, reverse=True)
    sure = [ask(sql, error=5, confidence=each).loss.epsilon for each in (0.1, 0.5, 0.9, 0.99, 0.99999)]
    assert sure == sorted(sure)


def test_what_is_exact_costs_nothing():
    found = ask(COUNT, error=5, neighbours=B)
    assert (found.item(), found.loss.epsilon, found.loss.delta) == (4, 0, 0)


def test_the_kind_of_noise_is_the_one_that_reaches_the_error_with_less():
    facts = {"keys": {"g": list("abcdefghijklmnopqrst")}, "unit": "u", "max_rows": 200, "max_groups": 12}
    goal: dict[str, Any] = {"error": 8, "confidence": 0.999, "delta": 1e-6}
    asker = session(facts=facts)
    sql = "SELECT g, COUNT(DISTINCT u) FROM t GROUP BY g"
    gaussian = asker.explain(sql, mechanism="gaussian", **goal).to_dict()["epsilon"]
    assert gaussian < 7.3
    assert asker.explain(sql, **goal).to_dict()["epsilon"] <= gaussian  # 9.642 by Laplace noise


# Drawn answers


@pytest.mark.parametrize(
    ("sql", "how", "tight"),
    [
        (f"{COUNT} WHERE p > 22", {"error": 5}, "n"),
        ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g", {"error": 25, "confidence": 0.9}, "s"),
        ("SELECT 2 * COUNT(*) - SUM(p) AS a, SUM(x) AS s FROM t", {"error": 40, "delta": 1e-6}, "a"),
        ("SELECT COUNT(*) AS n, SUM(x) AS s FROM t", {"error": 60, "confidence": 0.8, **GAUSSIAN}, "s"),
        ("SELECT SUM(p) AS s FROM t", {"error": 5, "neighbours": B}, ""),
    ],
)
def test_drawn_answers_are_as_close_as_promised(
    monkeypatch: pytest.MonkeyPatch, sql: str, how: dict[str, Any], tight: str
):
    """Each of 40,000 answers is as near as its confidence says; the column that decides hardly more often."""
    seed(monkeypatch, 1)
    schema = Shape({"x": "float64", "p": "int64", "g": "str", "u": "int64"}, FACTS).schema()
    how, runs = dict(how), 40_000
    terms = Terms.of(None, how.pop("delta", None), None, how.pop("error"), how.pop("confidence", 0.95))
    made = prepare(sql, Catalog({"t": schema}), Neighbours.of(how.pop("neighbours", U)), terms, **how).releases[0]
    goal = made.goal
    assert goal is not None
    exact = run_exactly(made, schema, FRAME)
    steps = made.coordinate_steps(exact.parts).astype(np.float64)
    truth = finish(made, ReleasedValues(exact.keys, made.features_of(steps * _units(made))))
    drawn = made.privatise(stacked(exact, runs))
    answer = finish(made, ReleasedValues(drawn.keys[1:], drawn.values))
    groups = answer.vectors[0].values if made.query.plan.keys else np.zeros(runs)
    slack = 5 * math.sqrt(float(goal.confidence * (1 - goal.confidence)) / (runs * exact.groups))
    for name, vector, right in zip(answer.names, answer.vectors, truth.vectors, strict=True):
        if name == "g":
            continue
        of_group = right.values[np.searchsorted(np.sort(exact.keys[0].values), groups)] if exact.keys else right.values
        share = float(np.mean(np.abs(vector.values - of_group) <= float(goal.error)))
        assert share >= float(goal.confidence) - slack, name
        assert name != tight or share <= float(goal.confidence) + 0.005 + slack


def _units(made: Any) -> Any:
    return np.array([[each.unit] for each in made.coordinates])


# What is shown and charged


@pytest.mark.parametrize("accountant", ["auto", "basic", "zcdp"])
@pytest.mark.parametrize(
    ("sql", "how"),
    [
        (COUNT, {}),
        (COUNT, GAUSSIAN),
        ("SELECT g, COUNT(*) AS n, SUM(x) FROM t GROUP BY g", {}),
    ],
)
def test_what_is_found_is_shown_and_charged(accountant: str, sql: str, how: dict[str, Any]):
    asker = session(100, accountant=accountant)
    plan = asker.explain(sql, error=20, confidence=0.9, **how)
    more = asker.remaining_queries(sql, error=20, confidence=0.9, **how)
    assert not asker.ledger()
    found = asker.query(sql, error=20, confidence=0.9, **how)
    loss = found.loss
    assert loss.epsilon == shown(loss.epsilon) == plan._release.cost.epsilon
    assert plan.to_dict()["epsilon"] == float(loss.epsilon)
    assert plan.to_dict()["goal"] == {"error": 20.0, "confidence": 0.9}
    cost = f"epsilon {float(loss.epsilon):g}"
    assert f"Guarantee  {cost}" in str(plan)
    assert "The least epsilon for answers within 20 at 90 %." in str(plan)
    assert found.footer.startswith(f"spent {cost}")
    assert [entry.cost for entry in asker.ledger()] == [loss]
    assert asker.spent.rho == loss.rho
    if accountant == "basic":
        assert (asker.spent.epsilon, asker.spent.delta) == (loss.epsilon, loss.delta)
        assert asker.remaining.epsilon == 100 - loss.epsilon
    assert more == 1 + asker.remaining_queries(sql, error=20, confidence=0.9, **how)


def test_the_same_question_asked_any_way_is_answered_once():
    asker = session()
    first = asker.query(COUNT, error=5)
    for again in (
        asker.query(f"{COUNT} WITHIN 5 CONFIDENCE 95"),
        asker.query(f"{COUNT} WITHIN 5.0"),
        asker.query(COUNT, error=Fraction(11, 2)),
        asker.query(COUNT, epsilon=FOUND),
    ):
        assert (again.replayed, again.item(), again.loss) == (True, first.item(), first.loss)
    assert asker.spent.epsilon == FOUND
    assert not asker.query(COUNT, error=5, fresh=True).replayed
    assert not asker.query(COUNT, error=4).replayed
    assert asker.spent.epsilon == 2 * FOUND + asker.query(COUNT, error=4).loss.epsilon


def test_a_question_that_is_answered_again_shows_no_goal_but_its_own():
    asker = session()
    asker.query(COUNT, error=5)
    assert asker.query(COUNT, epsilon=FOUND).explanation.to_dict()["goal"] is None


def test_explaining_is_free(monkeypatch: pytest.MonkeyPatch):
    asker = session()
    monkeypatch.setattr(PandasExecutor, "execute", _not_to_be_read)
    found = asker.query(f"EXPLAIN PRIVACY {COUNT} WITHIN 5 CONFIDENCE 95")
    assert isinstance(found, dpsql.Explanation)
    assert found.to_dict() == asker.explain(COUNT, error=5).to_dict()
    assert (asker.spent.epsilon, asker.ledger()) == (0, ())


def _not_to_be_read(*_: object) -> None:
    pytest.fail("rows are read")


# What it may cost


@pytest.mark.parametrize(
    ("sql", "how", "limits"),
    [
        (COUNT, {"error": 5, "epsilon": 0.5}, {}),
        (f"{COUNT} WITHIN 5", {"epsilon": 0.5}, {}),
        (COUNT, {"error": 5}, {"max_epsilon": 0.5}),
        (COUNT, {"error": 5, "epsilon": 3}, {"max_epsilon": 0.5}),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5) COUNT(*) FROM t WITHIN 5", {"epsilon": 3}, {}),
    ],
)
def test_what_costs_more_than_is_allowed_is_refused(sql: str, how: dict[str, Any], limits: dict[str, Any]):
    asker = session(**limits)
    with pytest.raises(InvalidPrivacyParameter, match="an answer within 5 at 95 % costs epsilon 0.5382, and 0.5 is"):
        asker.query(sql, **how)
    assert (asker.spent.epsilon, asker.ledger()) == (0, ())
    enough = session(max_epsilon=FOUND)
    enough.query(sql.replace("epsilon = 0.5", "epsilon = 0.5382"), **{**how, "epsilon": FOUND})
    assert enough.spent.epsilon == FOUND


def test_what_is_allowed_is_not_what_is_spent():
    asker = session(epsilon=3, max_epsilon=2)
    assert asker.query(COUNT, error=5, epsilon=2).loss.epsilon == FOUND
    assert asker.query(f"{COUNT} WITHIN 5 CONFIDENCE 96").loss.epsilon < 2
    assert session(max_epsilon=2).query(COUNT, error=5).loss.epsilon == FOUND


def test_what_the_budget_does_not_hold_is_refused():
    asker = session(0.5)
    with pytest.raises(BudgetExceeded, match="costs epsilon 0.5382 but 0.5 is left") as refusal:
        asker.query(COUNT, error=5)
    assert "Ask for a larger error" in str(refusal.value)
    assert (asker.spent.epsilon, asker.ledger()) == (0, ())
    asker.query(COUNT, error=5.9, confidence=0.9)


def test_options_cannot_raise_what_a_call_allows():
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta = 1e-3) COUNT(*) FROM t"
    with pytest.raises(InvalidPrivacyParameter, match="above the 1e-09 that the call allows"):
        ask(sql, error=5, delta=1e-9, mechanism="gaussian")


# What cannot be promised

ONLY = "only sums and differences of COUNT and SUM have noise of a public size"


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("AVG(x) AS v", "error of v: it depends on private counts"),
        ("COUNT(*), AVG(x) AS v", "error of v: it depends on private counts"),
        ("VAR_POP(x)", "depends on private counts"),
        ("CORR(x, p)", "depends on private counts"),
        ("SUM(x) / COUNT(*)", "depends on private counts"),
        ("1 / COUNT(*)", "depends on private counts"),
        ("COUNT(*) * COUNT(*)", "depends on private counts"),
        ("ROUND(SUM(x) / COUNT(*))", "depends on private counts"),
        ("ABS(SUM(x))", ONLY),
        ("ROUND(SUM(x) / 2)", ONLY),
        ("GREATEST(COUNT(*), 0)", ONLY),
        ("COUNT(*) > 3", ONLY),
        ("MEDIAN(x)", "how far off a value is that is chosen depends on the rows"),
        ("MAX(x)", "how far off a value is that is chosen depends on the rows"),
        ("MODE(g)", "how far off a value is that is chosen depends on the rows"),
        ("COUNT(*, epsilon => 1), SUM(p)", "WITHIN finds the epsilon of all aggregates, and COUNT has its own"),
    ],
)
def test_errors_of_private_size_are_refused_with_the_reason(select: str, words: str):
    asker = session()
    for sql, error in ((f"SELECT {select} FROM t", 5), (f"SELECT {select} FROM t WITHIN 5 CONFIDENCE 90", None)):
        for way in (asker.query, asker.explain, asker.remaining_queries):
            with pytest.raises((UnsupportedSQL, InvalidPrivacyParameter), match=words):
                way(sql, error=error)
    assert (asker.spent.epsilon, asker.ledger()) == (0, ())


@pytest.mark.parametrize(
    ("select", "place", "hint"),
    [
        ("AVG(x)", "x", "divide them"),
        ("COUNT(*) + AVG(p)", "p", "divide them"),
        ("STDDEV(x)", "x", "^Give an epsilon"),
        ("CORR(x, p)", "x, p", "^Give an epsilon"),
        ("ABS(SUM(x))", "x", "compute the rest from the answers"),
        ("MEDIAN(x)", "x", "^Give an epsilon"),
    ],
)
def test_a_refusal_says_what_can_be_asked(select: str, place: str, hint: str):
    with pytest.raises(UnsupportedSQL) as refusal:
        ask(f"SELECT {select} FROM t WITHIN 5")
    span = refusal.value.span
    assert span is not None
    assert span.sql[span.start : span.end + 1] == place
    assert re.search(hint, refusal.value.hint)


def test_answers_that_another_select_reads_are_refused():
    inner = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    for sql in (
        f"SELECT g, n FROM ({inner}) s",
        f"SELECT MAX(n) FROM ({inner}) s",
        f"WITH s AS ({inner}) SELECT n FROM s",
    ):
        with pytest.raises(UnsupportedSQL, match="another one reads these"):
            ask(f"{sql} WITHIN 5")


def test_bounds_that_are_chosen_are_refused():
    for sql in ("SELECT SUM(x) FROM t", "SELECT COUNT(*), SUM(x) FROM t"):
        with pytest.raises(UnsupportedSQL, match="WITHIN needs bounds that are declared"):
            dpsql.query({"t": dpsql.Table(FRAME, bounds={"x": "auto"})}, sql, error=5)


def test_an_error_that_no_epsilon_reaches_is_refused():
    with pytest.raises(InvalidPrivacyParameter, match="no epsilon up to"):
        ask("SELECT SUM(x) FROM t", error=1e-9)


def test_no_row_is_read_for_a_goal_or_its_refusal(monkeypatch: pytest.MonkeyPatch):
    """The same words, and the same epsilon, for an empty table."""
    empty, full = session(), session()
    empty = dpsql.Session({"t": dpsql.Table(FRAME[:0], **FACTS)}, budget=full.budget)
    monkeypatch.setattr(PandasExecutor, "execute", _not_to_be_read)
    for sql, how in (
        (COUNT, {"error": 5}),
        (COUNT, {"error": 5, "epsilon": 0.5}),
        ("SELECT SUM(x) FROM t", {"error": 1e-9}),
        ("SELECT AVG(x) FROM t", {"error": 5}),
        ("SELECT g, SUM(x), COUNT(*) FROM t GROUP BY g WITHIN 7 CONFIDENCE 80", {}),
    ):
        assert _said(empty, sql, **how) == _said(full, sql, **how)


def _said(asker: Any, sql: str, **how: Any) -> object:
    try:
        return str(asker.explain(sql, **how))
    except DPSQLError as error:
        return type(error), str(error)


def test_groups_that_their_own_noise_decides_on_are_refused():
    """A group of two shows if its noise is beyond 20: nobody would ever see it within 5."""
    sql = "SELECT {} g, COUNT(*) AS n FROM t GROUP BY g"
    for options in ("", "WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = LAPLACE_THRESHOLD)"):
        with pytest.raises(UnsupportedSQL, match="small ones that are shown have large noise"):
            dpsql.query({"t": FRAME}, sql.format(options), error=5, delta=1e-6)
    geometric = sql.format("WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = TRUNCATED_GEOMETRIC)")
    found = dpsql.query({"t": FRAME}, geometric, error=5, delta=1e-6)  # by the exact counts, with an epsilon of its own
    assert found.loss.epsilon > FOUND


# Words and numbers


@pytest.mark.parametrize(
    "error", [0, -5, math.nan, math.inf, -math.inf, "5", True, [5], b"5", 5 + 0j, np.float64("nan")]
)
def test_an_error_is_a_number_above_zero(error: object):
    with pytest.raises(InvalidPrivacyParameter, match="error must be"):
        session().query(COUNT, error=error)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, 100, math.nan, math.inf, "0.95", True, [0.5], 1 - 1e-12])
def test_a_confidence_lies_between_zero_and_one(confidence: object):
    with pytest.raises(InvalidPrivacyParameter, match="^confidence (must|goes)"):
        session().query(COUNT, error=5, confidence=confidence)


def test_a_confidence_in_percent_is_told_how_to_write_it():
    with pytest.raises(InvalidPrivacyParameter, match="Write confidence=0.95."):
        ask(COUNT, error=5, confidence=95)


@pytest.mark.parametrize("number", [5, 5.0, Fraction(5), Decimal(5), np.int64(5), np.float32(5)], ids=repr)
def test_numbers_of_any_kind_mean_the_same(number: Any):
    assert ask(COUNT, error=number).loss.epsilon == FOUND


@pytest.mark.parametrize(
    "end",
    [
        "WITHIN 5", "within 5 confidence 95", "WITHIN 5 CONFIDENCE 95;", "WITHIN 5. CONFIDENCE 95.0", "WITHIN .5e1",
        "WITHIN /* rows */ 5 -- at most", "LIMIT 1 WITHIN 5",
    ],
)  # fmt: skip
def test_the_text_can_say_it(end: str):
    assert ask(f"{COUNT} {end}").loss.epsilon == FOUND


@pytest.mark.parametrize(
    "end",
    [
        "0", "-5", "+5", "(5)", "0x5", "5%", "5 PERCENT", "5 6", "1/2", "5 CONFIDENCE", "5 CONFIDENCE 0",
        "5 CONFIDENCE 100", "5 CONFIDENCE -3", "5 CONFIDENCE 101", "5 CONFIDENCE '95'", "5 CONFIDENCE x",
        "5 CONFIDENCE 95 WITHIN 5", "5 CONFIDENCE 95 LIMIT 3", "'5'", "x", "nan", ":e", "TRUE", "",
    ],
)  # fmt: skip
def test_a_text_that_says_it_badly_is_refused(end: str):
    asker = session()
    with pytest.raises((SQLSyntaxError, UnsupportedSQL, InvalidPrivacyParameter)):
        asker.query(f"{COUNT} WITHIN {end}")
    assert not asker.ledger()


@pytest.mark.parametrize("percent", ["0.95", ".95", "1", "1.0", "1e-9"])
def test_a_share_is_no_percentage(percent: str):
    with pytest.raises(SQLSyntaxError, match="CONFIDENCE is a percentage") as refusal:
        ask(f"{COUNT} WITHIN 5 CONFIDENCE {percent}")
    assert str(refusal.value).endswith(f"{'^' * len(percent)}\n  Write CONFIDENCE 95.")
    assert ask(f"{COUNT} WITHIN 5 CONFIDENCE 1.01").loss.epsilon > 0


@pytest.mark.parametrize("end", [":e", "?", ":e CONFIDENCE 95", "? CONFIDENCE 95", "5 CONFIDENCE :e", "@e"])
def test_parameters_are_no_errors(end: str):
    with pytest.raises(SQLSyntaxError, match="WITHIN takes an error above 0") as refusal:
        ask(f"{COUNT} WITHIN {end}", params={"e": 5})
    assert refusal.value.hint == "Write WITHIN 5 CONFIDENCE 95, with numbers for parameters."


def test_it_is_said_once_and_at_the_end():
    for sql, how, words in (
        (f"{COUNT} WITHIN 5", {"error": 5}, "both the text and the call say an error"),
        (f"{COUNT} WITHIN 5", {"rho": 1}, "by rho, or by what its error needs"),
        (COUNT, {"rho": 1, "error": 5}, "by rho, or by what its error needs"),
        (f"SELECT n FROM ({COUNT} WITHIN 5)", {"epsilon": 1}, "at the end of the query"),
        (COUNT, {}, "epsilon is missing"),
        (COUNT, {"confidence": 0.9}, "confidence is that of an error, and none is asked for"),
        (COUNT, {"confidence": 0.9, "epsilon": 1}, "confidence is that of an error, and none is asked for"),
        (f"{COUNT} WITHIN 5 CONFIDENCE 90", {"confidence": 0.9}, "both the text and the call say a confidence"),
    ):
        with pytest.raises(DPSQLError, match=words):
            session().query(sql, **how)


def test_within_is_still_a_name():
    assert ask("SELECT COUNT(*) AS within FROM t", epsilon=1).df.columns.tolist() == ["within"]
    assert ask("SELECT COUNT(*) FROM t within", epsilon=1).loss.epsilon == 1


def test_a_text_takes_the_confidence_of_its_call():
    costs = ask(f"{COUNT} WITHIN 5", confidence=0.99).loss.epsilon
    assert FOUND < costs == ask(COUNT, error=5, confidence=0.99).loss.epsilon


@pytest.mark.parametrize(
    "end",
    ["WITHIN 1e999", "WITHIN 5 CONFIDENCE 99.99999999999999999999", "WITHIN 1e-999", "WITHIN 5 CONFIDENCE 1e-999"],
)
def test_numbers_beyond_floats_are_answered_or_refused(end: str):
    for sql in (COUNT, "SELECT COUNT(*) * 1e308 * 10 FROM t", "SELECT SUM(x) FROM t"):
        with suppress(DPSQLError):
            assert session().explain(f"{sql} {end}").to_dict()["epsilon"] > 0


@pytest.mark.parametrize("how", [{"error": 1e12}, {"error": 5, "confidence": 1e-12}], ids=str)
def test_no_epsilon_is_less_than_the_least(how: dict[str, Any]):
    assert ask(COUNT, **how).loss.epsilon == Fraction(1, 10**9)


def test_the_largest_epsilons_are_found():
    facts = {"bounds": {"x": (0, 1e9)}}
    found = dpsql.query({"t": dpsql.Table(FRAME, **facts)}, "SELECT SUM(x) FROM t", error=10)
    assert 2.99e8 < found.loss.epsilon < 3.01e8


# Where else it can be asked


def test_the_command_line_takes_it_in_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert (
        main(
            [
                str(tmp_path / "t.csv"),
                "--budget",
                "1",
                "--yes",
                "--mode",
                "box",
                "-c",
                f"{COUNT} WITHIN 5 CONFIDENCE 95",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert "±5" in out
    assert "spent epsilon 0.5382 · left epsilon 0.4618 of 1" in err
    assert main([str(tmp_path / "t.csv"), "--budget", "1", "-c", f"EXPLAIN PRIVACY {COUNT} WITHIN 5"]) == 0
    assert "The least epsilon for answers within 5 at 95 %." in capsys.readouterr().out
    assert main([str(tmp_path / "t.csv"), "--budget", "0.5", "-c", f"{COUNT} WITHIN 5"]) == 3
    assert main([str(tmp_path / "t.csv"), "--budget", "1", "-c", f"{COUNT} WITHIN -5"]) == 1


def test_the_command_lines_epsilon_is_a_limit(tmp_path: Path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert main([str(tmp_path / "t.csv"), "--budget", "1", "--epsilon", "0.1", "-c", f"{COUNT} WITHIN 5"]) == 1


class Typed:
    """A reader that was fed lines."""

    def __init__(self, *lines: str) -> None:
        self._lines = iter(lines)

    def read(self, _sign: str) -> str:
        return next(self._lines)

    def remember(self, statement: str) -> None: ...


def test_the_prompt_takes_it_in_the_text(capsys: pytest.CaptureFixture[str]):
    asker, typed = session(1), Typed(f"{COUNT} WITHIN 5;", ".epsilon 0.1", f"{COUNT} WITHIN 3;", ".quit")
    Prompt(Shell(Asker(asker), interactive=False), "1", typed).run()
    assert "an answer within 3 at 95 % costs epsilon 0.8319, and 0.1 is allowed" in capsys.readouterr().err
    assert [entry.cost.epsilon for entry in asker.ledger()] == [FOUND]


def test_a_notebook_takes_it_in_the_text(capsys: pytest.CaptureFixture[str]):
    asker = session(1)
    magic = Magic({"mine": asker})
    magic.line("connect mine")
    plan = magic.line(f"explain {COUNT} WITHIN 5")
    assert plan is not None
    assert plan.to_dict()["epsilon"] == float(FOUND)
    answer = magic.cell("--yes --epsilon 1", f"{COUNT}\nWITHIN 5 CONFIDENCE 95;")
    assert isinstance(answer, dpsql.Result)
    assert answer.loss.epsilon == FOUND
    with pytest.raises(InvalidPrivacyParameter, match="0.1 is allowed"):
        magic.cell("--epsilon 0.1", f"{COUNT} WITHIN 3")
    assert asker.spent.epsilon == FOUND
