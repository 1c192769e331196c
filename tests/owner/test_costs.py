"""What a batch would cost, and explanations: nothing is charged, and no ledger is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.owner import cost
from dpsql.shell.cli import Exit, main

COUNT = "SELECT COUNT(*) AS n FROM adult"
AVERAGE = "SELECT AVG(age) AS a FROM adult"
Runs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(sample: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    monkeypatch.chdir(sample)

    def command(*argv: str) -> tuple[int, str, str]:
        code = main([*argv, "--schema", "adult.toml"])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def test_repeats_and_replays_are_free(run: Runs, sample: Path):
    (sample / "r.sql").write_text(f"{COUNT}; {AVERAGE}; {COUNT};\nEXPLAIN PRIVACY {COUNT};")
    code, shown, _ = run("cost", "r.sql", "--epsilon", "1")
    assert code == 0
    assert [line.split()[1] for line in shown.splitlines()[:4]] == ["epsilon", "epsilon", "free,", "free"]
    assert "together epsilon 2; left now epsilon 3" in shown
    assert not (sample / "adult.ledger").exists()
    assert run("--epsilon", "1", "-c", AVERAGE)[0] == 0
    before = (sample / "adult.ledger").read_bytes()
    assert "together epsilon 1; left now epsilon 2" in run("cost", "r.sql", "--epsilon", "1")[1]
    assert (sample / "adult.ledger").read_bytes() == before


def test_more_than_is_left(run: Runs, sample: Path):
    (sample / "r.sql").write_text(f"{COUNT}; {AVERAGE}; {COUNT} WHERE age > 30; {COUNT} WHERE age > 40")
    code, shown, _ = run("cost", "r.sql", "--epsilon", "1.4")
    assert code == Exit.BUDGET
    assert shown.splitlines()[-1].startswith("  3  epsilon 1.4")
    assert "MORE THAN IS LEFT (epsilon 0.2" in shown
    assert run("cost", "r.sql", "--epsilon", "0.75")[0] == 0


def test_a_refused_statement_has_its_caret(run: Runs):
    code, shown, told = run("cost", "--epsilon", "1", "-c", f"{COUNT}; SELECT age FROM adult; {AVERAGE}")
    assert code == Exit.REFUSED
    assert shown.startswith("  1  epsilon 1")
    assert "RawColumn" in told
    assert "^^^" in told
    assert "statement 2 of 3" in told
    assert run("cost", "nowhere.sql", "--epsilon", "1")[0] == Exit.USAGE


def test_the_bill_as_a_function():
    frame = pd.DataFrame({"x": range(100)})
    session = dpsql.Session({"t": frame}, budget=dpsql.Budget(1))
    bill = cost(session, ["SELECT COUNT(*) FROM t", "SELECT COUNT(x) FROM t"], epsilon=0.5)
    assert (bill.admitted, bill.total.epsilon, session.ledger()) == (True, 1, ())
    session.query("SELECT COUNT(*) FROM t", epsilon=0.75)
    assert not cost(session, ["SELECT COUNT(x) FROM t"], epsilon=0.5).admitted
    with pytest.raises(dpsql.errors.InvalidPrivacyParameter):
        cost(session, ["SELECT COUNT(x) FROM t"], epsilon=-1)


def test_queries_about_parts_cost_each_person_one_of_them():
    frame = pd.DataFrame({"day": ["a", "b"] * 50})
    session = dpsql.Session({"t": dpsql.Table(frame, partition="day")}, budget=dpsql.Budget(1))
    queries = [f"SELECT COUNT(*) FROM t WHERE day = '{day}'" for day in "ab"]
    assert cost(session, queries, epsilon=1).admitted
    assert not cost(session, [*queries, "SELECT COUNT(*) FROM t"], epsilon=1).admitted


def test_explain_makes_no_ledger(run: Runs, sample: Path):
    code, shown, _ = run("explain", "--epsilon", "1", "-c", AVERAGE)
    assert (code, "Guarantee  epsilon 1" in shown) == (0, True)
    assert run("explain", "--epsilon", "1", "-c", "SELECT age FROM adult")[0] == Exit.REFUSED
    assert not (sample / "adult.ledger").exists()


@pytest.mark.parametrize("word", ["init", "check", "explain", "cost", "rehearse", "ledger", "demo"])
def test_every_command_has_help_of_its_own(word: str, capsys: pytest.CaptureFixture[str]):
    assert main([word, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: dpsql {word}")
