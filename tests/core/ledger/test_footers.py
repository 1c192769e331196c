"""What is said to be left: the line below an answer, and how a session prints it."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import RemainingBudget, SpentBudget
from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import BudgetExceeded
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT

GROUPS = "SELECT city, COUNT(*) FROM people GROUP BY city"


def opened(budget: Budget, **more: Any) -> dpsql.Session:
    frame = pd.DataFrame({"city": ["a"] * 90, "age": range(90)})
    return dpsql.Session({"people": frame}, budget=budget, **more)


def footer(asked: dpsql.Session, sql: str = COUNT, **more: Any) -> str:
    result = asked.query(sql, **more)
    assert isinstance(result, dpsql.Result)
    return result.footer


def test_delta_is_in_the_footer_of_a_budget_with_delta():
    asked = opened(Budget(3, 1e-6))
    assert footer(asked, epsilon=1) == (
        "spent epsilon 1 · left epsilon 2 of 3, delta 5e-07 of 5e-07 · 2 more queries like this"
    )
    assert footer(asked, epsilon=1).startswith("answered before: spent nothing · left epsilon 2 of 3, delta 5e-07 of")
    assert "delta" not in footer(opened(Budget(3)), epsilon=1)


def test_it_says_where_delta_is_what_is_short():
    asked = opened(Budget(3, 1e-6), accountant="basic")
    assert footer(asked, GROUPS, epsilon=0.5, delta=7e-7) == (
        "spent epsilon 0.5, delta 7e-07 · left epsilon 2.5 of 3, delta 3e-07 of 1e-06 "
        "· no more queries like this: too little delta"
    )
    with pytest.raises(BudgetExceeded, match="costs delta 7e-07 but 3e-07 is left"):
        asked.query(GROUPS, epsilon=0.5, delta=7e-7, fresh=True)
    assert footer(asked, epsilon=2).endswith("no more queries like this")
    assert footer(asked, GROUPS, epsilon=0.5, delta=2e-7).endswith(": too little epsilon and delta")


def test_it_counts_the_delta_that_queries_may_spend():
    asked = opened(Budget(3, 1e-6))
    line = footer(asked, GROUPS, epsilon=0.5, delta=5e-7)
    assert line.endswith("delta 0 of 5e-07 · no more queries like this: too little delta")
    assert asked.budget.conversion_delta is None


def test_delta_of_a_share():
    shares = Budget(3, 1e-5, analysts={"ann": Budget(1, 1e-7), "*": Budget(1)})
    assert "delta 5e-08 of 5e-08" in footer(opened(shares, analyst="ann"), epsilon=0.5)
    assert "delta" not in footer(opened(shares, analyst="bob"), epsilon=0.5)


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "auto"])
def test_what_the_footer_says_is_left_can_be_spent(accountant: str):
    asked = opened(Budget(2, 3e-6), accountant=accountant)
    line = footer(asked, GROUPS, epsilon=0.3, delta=1e-7)
    found = re.search(r"left epsilon (\S+) of 2, delta (\S+) of (?:3e-06|1.5e-06)", line)
    assert found is not None
    epsilon, delta = (Fraction(each) for each in found.groups())
    ledger = asked._ledger
    assert ledger.after(Cost(Fraction(0), delta, hidden=delta)) is not None
    assert ledger.after(Cost.of(epsilon)) is not None


def test_which_is_short_in_words():
    ledger = Ledger(checks.rules(1, 1e-6))
    few, small = Fraction(1, 2), Fraction(1, 10**7)
    assert ledger.short_of(Cost.of(Fraction(2))) == ""
    assert ledger.short_of(Cost.of(few, 20 * small)) == "delta"
    assert ledger.short_of(Cost.of(Fraction(2), 20 * small)) == "epsilon and delta"
    assert ledger.short_of(Cost(None, 20 * small, Fraction(9), 20 * small)) == "rho and delta"
    assert ledger.short_of(Cost(None, rho=Fraction(9))) == ""


def test_sessions_print_plain_numbers():
    asked = opened(Budget(1, 1e-6))
    asked.query(COUNT, epsilon=Fraction(1, 3))
    for text in map(repr, (asked.spent, asked.remaining)):
        assert "Fraction" not in text
    assert repr(asked.spent).startswith("Spent(epsilon=0.333334, ")
    assert repr(asked.remaining).startswith("Remaining(epsilon=0.666666, delta=5e-07, rho=")
    assert str(asked.spent) == "epsilon 0.333334"
    assert (asked.spent.epsilon, asked.remaining.epsilon) == (Fraction(1, 3), Fraction(2, 3))


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(2, 3), Fraction(10**9 - 1, 10**9), Fraction(1, 7 * 10**8)])
def test_what_is_printed_is_on_the_safe_side(number: Fraction):
    spent, left = SpentBudget(number, number, number), RemainingBudget(number, number, number)
    for text, safe in ((repr(spent), 1), (str(spent), 1), (repr(left), -1), (str(left), -1)):
        for shown in re.findall(r"[0-9][0-9.e+-]*[0-9]|[0-9]", text):
            assert (Fraction(shown) - number) * safe >= 0, text


def test_the_footer_of_a_file_is_that_of_memory(tmp_path: Path):
    lines = [footer(opened(Budget(3, 1e-6), ledger=path), epsilon=1) for path in (None, tmp_path / "a.ledger")]
    assert lines[0] == lines[1]
