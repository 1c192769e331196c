"""A charge is durable before a row is read, fits into the budget to the last digit, and a refusal costs nothing."""

import json
import shutil
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.cost import Cost
from dpsql.core.events import Gaussian, Laplace
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import BudgetExceeded, InternalError, InvalidArgument, LedgerError
from dpsql.executors.pandas import executor as pandas
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, cost, needs_fork, raw, rules, session


@needs_fork
def test_the_charge_is_in_the_file_before_rows_are_read(tmp_path: Path):
    checks.check_charged_before_rows(tmp_path)


def test_commits_are_synced(tmp_path: Path):
    checks.check_durable(tmp_path)


_TRACED = """
import os, sys
from fractions import Fraction
from dpsql.core.ledger.budget import Budget
from dpsql.core.cost import Cost
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.text import Rules
ledger = open_ledger(sys.argv[1], Rules(Budget(10), "basic"))
os.write(1, b"BEFORE")
ledger.charge(Cost.of(Fraction(1)), "q")
os.write(1, b"CHARGED")
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs a program that shows system calls")
def test_the_disk_has_it_when_charge_returns(tmp_path: Path):
    calls, path = tmp_path / "calls", tmp_path / "traced.ledger"
    shown = "trace=fsync,fdatasync,unlink,unlinkat,write,pwrite64"
    command = ["strace", "-f", "-y", "-e", shown, "-o", str(calls), sys.executable, "-c", _TRACED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    if done.returncode:
        pytest.skip("system calls cannot be watched here")
    lines = calls.read_text().splitlines()
    places = [next(i for i, line in enumerate(lines) if word in line) for word in ("BEFORE", "CHARGED")]
    during = lines[places[0] : places[1]]

    def last(*words: str) -> int:
        found = [i for i, line in enumerate(during) if all(word in line for word in words)]
        assert found, f"{words} not among\n" + "\n".join(during)
        return found[-1]

    assert last("sync(", "-journal>") < last("pwrite64(", "traced.ledger>")
    assert last("pwrite64(", "traced.ledger>") < last("sync(", "traced.ledger>") < last("unlink(", "-journal")
    assert last("unlink(", "-journal") < last("sync(", f"{tmp_path}>")


def test_budgets_are_spent_to_the_last_digit(tmp_path: Path):
    checks.check_last_digit(tmp_path)


def test_a_refusal_costs_nothing(tmp_path: Path):
    checks.check_refusals_are_free(tmp_path)


def test_shares_of_analysts(tmp_path: Path):
    checks.check_shares(tmp_path)


def test_who_has_no_share_opens_nothing(tmp_path: Path):
    path = tmp_path / "a.ledger"
    budget = Budget(3, analysts={"ann": Budget(1)})
    for name in (None, "bob", "Ann", "ann ", ""):
        with pytest.raises(InvalidArgument):
            session(path, budget=budget, analyst=name)
    with session(path, budget=budget, analyst="ann") as asked:
        asked.query(COUNT, epsilon=1)
        with pytest.raises(BudgetExceeded, match="ann"):
            asked.query(COUNT, epsilon=0.1)
        assert asked.ledger()[0].analyst == "ann"


def test_what_one_analyst_was_told_is_new_to_another(tmp_path: Path):
    path, budget = tmp_path / "a.ledger", Budget(9, analysts=Budget(1))
    with session(path, budget=budget, analyst="ann") as ann, session(path, budget=budget, analyst="bob") as bob:
        told = ann.query(COUNT, epsilon=1)
        assert checks.values(ann.query(COUNT, epsilon=1)) == checks.values(told)
        bob.query(COUNT, epsilon=1)
        assert [line.analyst for line in bob.ledger()] == ["ann", "bob"]


def test_a_run_that_fails_stays_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.ledger"

    def fail(*_: object, **__: object) -> None:
        raise ValueError(checks.SECRET)

    with session(path) as asked:
        with monkeypatch.context() as patch:
            patch.setattr(pandas.PandasExecutor, "execute", fail)
            with pytest.raises(InternalError) as caught:
                asked.query(COUNT, epsilon=1)
        assert checks.SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        assert checks.epsilon_on_disk(path) == 1
        asked.query(COUNT, epsilon=1)  # nothing was kept, so it pays again
        assert checks.epsilon_on_disk(path) == 2


def test_interrupted_in_the_middle_of_a_run_it_stays_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with session(tmp_path / "a.ledger") as asked:
        with monkeypatch.context() as patch:
            patch.setattr(pandas.PandasExecutor, "execute", interrupt)
            with pytest.raises(KeyboardInterrupt):
                asked.query(COUNT, epsilon=1)
        assert asked.spent.epsilon == 1
        asked.query(COUNT, epsilon=1)
        assert asked.spent.epsilon == 2


@pytest.mark.parametrize("moment", ["append", "commit", "catch up"])
def test_interrupted_in_the_middle_of_a_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str):
    """Not admitted; at worst it is spent. The next charge works."""
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules())
    store = type(ledger._store)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    name = {"append": "append", "commit": "commit", "catch up": "since"}[moment]
    with monkeypatch.context() as patch:
        if moment == "catch up":
            honest = store.commit

            def commit(self: object) -> None:
                honest(self)  # type: ignore[arg-type]
                patch.setattr(store, name, interrupt)

            patch.setattr(store, "commit", commit)
        else:
            patch.setattr(store, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(cost(1), "q")
    expected = 1 if moment == "catch up" else 0
    assert checks.epsilon_on_disk(path) == ledger.spent.epsilon == expected
    ledger.charge(cost(1), "q")
    assert checks.epsilon_on_disk(path) == ledger.spent.epsilon == expected + 1


def test_entries_and_sums_come_back_exactly(tmp_path: Path):
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules(10**6, Fraction(1, 2), "auto"), analyst="Zoë \ud800 \0 '\"")
    wild = [
        (cost(Fraction(1, 3), Fraction(1, 10**100)), "SELECT 'é\n\t\0\ud800' \\ \" \U0001f600", ()),
        (Cost(None, Fraction(1, 10**7), Fraction(1, 3**40), Fraction(0)), "x" * 100_000, ()),
        (cost(10**9 * Fraction(1, 10**9)), "", (Part("t", "c#1", "text:\ud800"), Part("t", "c#1", 'text:,"]'))),
        (Cost.of(Fraction(10**30 + 1, 10**30)), "long", ()),
    ]
    events = (Laplace(scale=Fraction(1, 3)), Gaussian(sigma=Fraction(7, 3), count=9))
    for each, label, parts in wild:
        ledger.charge(each, label, events=events, parts=parts)
    entries, spent, text = ledger.entries, ledger.spent, ledger.to_json()
    ledger.close()
    again = open_ledger(path)
    assert (again.entries, again.spent, again.to_json()) == (entries, spent, text)
    assert [entry.cost for entry in again.entries] == [each for each, _, _ in wild]
    assert [entry.label for entry in again.entries] == [label for _, label, _ in wild]
    assert again.entries[0].events == events


def test_the_export_can_be_recomputed(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query(COUNT, epsilon=0.1)
        asked.query("SELECT city, AVG(age), SUM(income) FROM people GROUP BY city", epsilon=1 / 3)
        asked.query("SELECT COUNT(*) FROM people WHERE city = 'é\\\"'", epsilon=0.7)
        exported, anchor, spent = asked.export_ledger(), asked.ledger_anchor, asked.ledger()
    named, own = checks.hashes(exported)
    assert named == own
    assert anchor == f"{len(own)}:{own[-1]}"
    told = [line for line in json.loads(exported)["lines"] if "query" in line]
    assert sum(Fraction(line["epsilon"]) for line in told) == sum(entry.cost.epsilon or 0 for entry in spent)
    assert Fraction(told[1]["epsilon"]) == Fraction(repr(1 / 3))
    assert checks.SECRET not in exported
    assert named != checks.hashes(exported.replace('"1/10"', '"1/11"'))[1]


def test_the_export_can_be_written_to_a_file():
    ledger = Ledger(rules(1))
    ledger.charge(cost(Fraction(1)), "half a character: \ud800")
    assert "half a character" in ledger.to_json().encode().decode()


def test_a_ledger_in_memory_knows_the_same_rules():
    ledger = Ledger(rules(1))
    ledger.charge(cost(Fraction(9, 10)), "q")
    with pytest.raises(BudgetExceeded, match="left"):
        ledger.charge(cost(Fraction(1, 5)), "q")
    assert len(ledger.entries) == 1
    named, own = checks.hashes(ledger.to_json())
    assert named == own


def test_threads_share_one_budget(tmp_path: Path):
    for path in (None, tmp_path / "threads.ledger"):
        ledger = Ledger(rules(5)) if path is None else open_ledger(path, rules(5))
        admitted: list[int] = []
        failed: list[BaseException] = []

        def spend(of: Ledger = ledger, to: list[int] = admitted, wrong: list[BaseException] = failed) -> None:
            while True:
                try:
                    of.charge(checks.TENTH, "q")
                except BudgetExceeded:
                    return
                except BaseException as error:  # noqa: BLE001 - looked at below
                    wrong.append(error)
                    return
                to.append(1)

        running = [threading.Thread(target=spend) for _ in range(8)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        assert not failed
        assert len(admitted) == 50 == len(ledger.entries)
        assert ledger.remaining.epsilon == 0


def test_threads_of_one_session(tmp_path: Path):
    path = tmp_path / "threads.ledger"
    with session(path, budget=Budget(1)) as asked:
        told: list[object] = []

        def ask(number: int) -> None:
            for _ in range(5):
                try:
                    told.append(
                        asked.query(f"SELECT COUNT(*) FROM people WHERE age > {number}", epsilon=0.1, fresh=True)
                    )
                except BudgetExceeded:
                    return

        running = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        assert len(told) == 10
        assert checks.epsilon_on_disk(path) == 1


def test_nothing_is_given_back(tmp_path: Path):
    """No call of a ledger makes less of what is spent."""
    ledger = open_ledger(tmp_path / "a.ledger", rules())
    ledger.charge(cost(1), "q")
    for wrong in (cost(0),):
        ledger.charge(wrong, "free")
        assert ledger.spent.epsilon == 1
    for numbers in ((Fraction(-1),), (Fraction(1), Fraction(-1)), (Fraction(1), Fraction(0), Fraction(-1))):
        with pytest.raises(Exception, match="cost"):
            Cost(*numbers)
    with pytest.raises(TypeError):
        Cost(float("nan"))  # type: ignore[arg-type]
    assert ledger.spent.epsilon == 1


def test_answers_are_in_no_charge(tmp_path: Path):
    """The file of a session holds the text and the released numbers, none of the table's cells."""
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query("SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city", epsilon=1)
        with pytest.raises(LedgerError):
            asked.__reduce__()
    assert checks.SECRET.encode() not in path.read_bytes()
    assert b"98765.25" not in path.read_bytes()
    with raw(path) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (1,)
