"""Processes that race for one budget, make one file at once, or fork with an open session."""

import copy
import os
import pickle
import signal
import sqlite3
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.errors import BudgetExceeded, DPSQLError, LedgerError
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, TENTH, cost, fork, fork_to_say, needs_fork, rules, session

pytestmark = needs_fork


@pytest.mark.parametrize("processes", [2, 12])
def test_processes_race_for_one_budget(tmp_path: Path, processes: int):
    checks.check_race(tmp_path, processes=processes, most=100)


def test_sessions_race_for_one_budget(tmp_path: Path):
    """Whole queries, fresh and replayed: what was drawn anew is what was paid."""
    path = tmp_path / "a.ledger"

    def ask() -> list[int]:
        drawn = replayed = 0
        with session(path, budget=Budget(3)) as asked:
            for number in range(100):
                try:
                    told = asked.query(
                        f"SELECT COUNT(*) FROM people WHERE age > {number % 5}", epsilon=0.1, fresh=number % 2 == 0
                    )
                except BudgetExceeded:
                    continue
                drawn, replayed = (drawn, replayed + 1) if "spent nothing" in str(told) else (drawn + 1, replayed)
        return [drawn, replayed]

    told = [child.said() for child in [fork_to_say(ask) for _ in range(4)]]
    assert all(isinstance(each, list) for each in told), told
    assert sum(drawn for drawn, _ in told) == 30
    assert checks.epsilon_on_disk(path) == 3
    assert sum(replayed for _, replayed in told) > 0


def test_processes_make_one_file_at_once(tmp_path: Path):
    """Each of many processes opens a file that is not there yet, and charges once: one budget, no charge lost."""
    for number in range(10):
        path = tmp_path / f"new{number}.ledger"
        start = time.monotonic() + 0.03

        def make(path: Path = path, start: float = start) -> int:
            time.sleep(max(0, start - time.monotonic()))
            open_ledger(path, rules(1)).charge(TENTH, "q")
            return 1

        children = [fork_to_say(make) for _ in range(8)]
        assert [child.said() for child in children] == [1] * 8
        ledger = open_ledger(path, rules(1))
        assert (len(ledger.entries), ledger.spent.epsilon) == (8, Fraction(8, 10))
        ledger.close()
    assert len(list(tmp_path.iterdir())) == 10, "something was left behind"


def test_processes_that_make_one_file_under_different_rules(tmp_path: Path):
    for number in range(5):
        path = tmp_path / f"new{number}.ledger"
        start = time.monotonic() + 0.03

        def make(epsilon: int, path: Path = path, start: float = start) -> list[object]:
            time.sleep(max(0, start - time.monotonic()))
            try:
                open_ledger(path, rules(epsilon)).charge(TENTH, "q")
            except LedgerError as error:
                return [epsilon, "other rules" in str(error)]
            return [epsilon, None]

        told = [child.said() for child in [fork_to_say(lambda e=1 + i: make(e)) for i in range(5)]]  # type: ignore[misc]
        admitted = [epsilon for epsilon, said in told if said is None]
        assert len(admitted) == 1, told
        assert all(said in (None, True) for _, said in told)
        assert open_ledger(path).budget.epsilon == admitted[0]


def test_one_process_sees_what_another_has_spent(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with session(path) as one, session(path) as other:
        one.query(COUNT, epsilon=1)
        assert (other.spent.epsilon, other.remaining.epsilon) == (one.spent.epsilon, one.remaining.epsilon)
        fork_to_say(lambda: open_ledger(path).charge(cost(8), "q").label).said()
        assert one.remaining.epsilon == 1
        with pytest.raises(BudgetExceeded):
            other.query(COUNT, epsilon=1.5)
        assert one.ledger_anchor == other.ledger_anchor
        assert one.ledger() == other.ledger()


def test_a_forked_session_does_nothing(tmp_path: Path):
    checks.check_forks(tmp_path)


def test_children_born_while_another_thread_charges(tmp_path: Path):
    """The parent's transactions outlive children that close the session they were born with; and these end."""
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules(10**6))
    done = threading.Event()
    admitted, failed = [], []

    def spend() -> None:
        try:
            while not done.is_set():
                admitted.append(ledger.charge(TENTH, "q"))
        except BaseException as error:  # noqa: BLE001 - looked at below
            failed.append(error)

    def close() -> str:
        signal.alarm(1)  # one that hangs is ended
        ledger.close()
        return "closed"

    spending = threading.Thread(target=spend)
    spending.start()
    said = []
    for _ in range(8):
        time.sleep(0.002)
        said.append(fork_to_say(close).read())
    done.set()
    spending.join()
    assert not failed, f"the parent's charge failed: {failed}"
    assert said == [b'"closed"'] * 8, f"hangs: {said.count(b'')} of 8"
    assert len(admitted) == len(checks.charges(path)) == len(ledger.entries)


def test_copies_are_refused(tmp_path: Path):
    with session(tmp_path / "a.ledger") as asked:
        ledger = asked._ledger
        for each in (asked, ledger):
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(LedgerError, match="cop|pickle"):
                    make(each)


def test_a_busy_file_is_waited_for(tmp_path: Path):
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, rules())

    def hold(pipe: int) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        os.write(pipe, b"held")
        time.sleep(0.5)
        connection.execute("COMMIT")

    child = fork(hold)
    assert os.read(child.pipe, 4) == b"held"
    start = time.monotonic()
    ledger.charge(TENTH, "q")
    assert time.monotonic() - start > 0.3
    child.read()


def test_a_file_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.ledger"
    open_ledger(path, rules()).close()
    monkeypatch.setattr("dpsql.core.ledger.file.PATIENCE", 0.1)
    with session(path, budget=Budget(10), accountant="basic") as asked:
        holder = sqlite3.connect(path, isolation_level=None)
        for how in ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
            holder.execute(how)
            with pytest.raises(LedgerError, match="another process has held") as caught:
                asked.query(COUNT, epsilon=1)
            assert caught.value.hint
            holder.execute("ROLLBACK")
            asked.query(COUNT, epsilon=1, fresh=True)
        assert len(asked.ledger()) == 2


def test_interrupted_while_it_waits(tmp_path: Path):
    """Ctrl-C during the wait for another process: nothing is charged, nobody stays locked out."""
    path = tmp_path / "a.ledger"
    open_ledger(path, rules()).close()

    def hold(pipe: int) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        os.write(pipe, b"held")
        time.sleep(0.5)
        connection.execute("COMMIT")

    def wait() -> list[str]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ledger = open_ledger(path)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        said = []
        for _ in range(2):
            try:
                said.append(ledger.charge(TENTH, "q").label)
            except (KeyboardInterrupt, DPSQLError) as error:
                said.append(type(error).__name__)
        return said

    holder = fork(hold)
    assert os.read(holder.pipe, 4) == b"held"
    assert fork_to_say(wait).said() == ["KeyboardInterrupt", "q"]
    holder.read()
    assert len(checks.charges(path)) == 1
