"""docs/accounting.md: its code runs, its numbers are those of the engine, its words are those of the errors."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.core.loss import Allowance
from dpsql.release.laws import crossover

PAGE = (Path(__file__).parent.parent.parent / "docs" / "accounting.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_code_runs_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "accounting.md", "exec"), names)
    printed = capsys.readouterr().out
    spent = re.findall(r"^epsilon ([0-9.]+)", printed, flags=re.MULTILINE)
    assert spent[0] == "0.2", "two of three answers are paid"
    assert "epsilon 1\n" in printed, "three parts cost as one"
    assert "True epsilon 0.5" in printed, "the ledger's answer is given again"


def test_how_many_queries_each_accountant_admits() -> None:
    stated = dict(re.findall(r"^\| (basic|zcdp|auto) \| (\d+) \|$", PAGE, flags=re.MULTILINE))
    assert set(stated) == {"basic", "zcdp", "auto"}
    frame = pd.DataFrame({"x": [1, 2]})
    for accountant, count in stated.items():
        session = dpsql.Session({"t": frame}, budget=dpsql.Budget(1, 1e-5), accountant=accountant)
        assert session.remaining_queries("SELECT COUNT(*) FROM t", epsilon=0.01) == int(count)


def test_all_of_delta_for_the_conversion() -> None:
    text = " ".join(PAGE.split())
    code, most, sigma, least = re.findall(
        r"`(Budget\([^`]+)` has room for (\d+) counts .* deviation (\d+), where the default has room for (\d+)",
        text,
    )[0]
    rho = float(Fraction(1, 2 * int(sigma) ** 2))
    for budget, count in ((eval(code, {"Budget": dpsql.Budget}), int(most)), (dpsql.Budget(1, 1e-6), int(least))):
        session = dpsql.Session({"t": pd.DataFrame({"b": ["x", "y"]})}, budget=budget, accountant="zcdp")
        assert session.remaining_queries("SELECT COUNT(*) FROM t", rho=rho) == count
        hidden = "SELECT b, COUNT(*) FROM t GROUP BY b"
        if count == int(most):
            with pytest.raises(dpsql.errors.BudgetExceeded, match="conversion_delta"):
                session.query(hidden, rho=rho, delta=1e-9)
        else:
            session.query(hidden, rho=rho, delta=1e-9)


def test_crossovers() -> None:
    deltas = re.findall(r"1e-\d", next(line for line in PAGE.splitlines() if line.startswith("| epsilon 1 and delta")))
    stated = next(line for line in PAGE.splitlines() if line.startswith("| Gaussian is less")).split("|")[2:-1]
    for delta, count in zip(deltas, stated, strict=True):
        found = crossover(Allowance(Fraction(1)), Fraction(delta))
        assert f"{found:.1f}" == count.strip()


def test_the_owners_file() -> None:
    schema = dpsql.Schema.from_dict(tomllib.loads(blocks("toml")[0]))
    assert schema.budget == dpsql.Budget(3, 1e-6, analysts={"ann": dpsql.Budget(1)})
    assert (schema.accountant, schema.ledger) == ("auto", Path("ledger.db"))
