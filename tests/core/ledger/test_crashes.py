"""Crash = spent: processes killed at random moments lose no charge that they waited for."""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dpsql.core.ledger.file import open_ledger
from dpsql.errors import LedgerError
from tests.core.ledger import checks
from tests.core.ledger.checks import TENTH, needs_fork, rules, session

pytestmark = needs_fork


@pytest.fixture
def fast_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing that the system has, disk or not."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def _kill_chargers(path: Path, kills: int) -> None:
    seed = random.SystemRandom().randrange(10**9)
    open_ledger(path, rules(10**6)).close()
    reported = checks.check_kills(path, kills, seed, checks.charging(path))
    assert reported > kills / 2
    ledger = open_ledger(path, rules(10**6))
    ledger.charge(TENTH, "and it works")
    named, own = checks.hashes(ledger.to_json())
    assert named == own


def test_killed_while_charging(fast_path: Path):
    for number in range(5):
        _kill_chargers(fast_path / f"{number}.ledger", 20)


@pytest.mark.slow
def test_killed_while_charging_many_times(fast_path: Path):
    for number in range(250):
        _kill_chargers(fast_path / f"{number}.ledger", 20)


def test_killed_while_asking(fast_path: Path):
    """Whole queries: what was answered is in the file, and the file's answers are whole."""
    path = fast_path / "a.ledger"

    def run(pipe: int) -> None:
        number = 0
        with session(path, budget=checks.Budget(10**6)) as asked:
            asked.query("SELECT COUNT(*) FROM people", epsilon=0.1)  # paid once, then replayed
            os.write(pipe, b".")
            while True:
                sql = f"SELECT COUNT(*) FROM people WHERE age > {number % 4}"
                before = len(asked.ledger())
                asked.query(sql, epsilon=0.1, fresh=True)
                assert len(asked.ledger()) > before
                os.write(pipe, b".")
                number += 1

    with session(path, budget=checks.Budget(10**6)):
        pass
    answered = 0
    chance = random.Random(random.SystemRandom().randrange(10**9))
    kills, longest = 40, 0.06
    for _ in range(kills):
        child = checks.fork(run)
        assert os.read(child.pipe, 1) == b"."
        time.sleep(chance.uniform(0, longest))
        said = child.kill()
        if not said:
            longest *= 1.2  # the machine is busy
        assert set(said) <= set(b"."), said
        answered += len(said)
    entries = len(checks.charges(path))
    assert answered < entries <= answered + kills + 1
    assert answered > kills / 4
    with session(path, budget=checks.Budget(10**6)) as asked:
        for number in range(4):
            asked.query(f"SELECT COUNT(*) FROM people WHERE age > {number}", epsilon=0.1)
        assert len(asked.ledger()) - entries <= 4
        assert asked.spent.epsilon * 10 == len(asked.ledger())


def test_killed_while_the_file_is_made(fast_path: Path):
    """There is a whole ledger or none."""
    chance = random.Random(3)
    for number in range(60):
        path = fast_path / f"new{number}.ledger"

        def make(pipe: int, path: Path = path) -> None:
            open_ledger(path, rules()).charge(TENTH, "q")
            os.write(pipe, b".")

        child = checks.fork(make)
        time.sleep(chance.uniform(0, 0.02))
        reported = len(child.kill())
        ledger = open_ledger(path, rules())
        assert reported <= len(ledger.entries) <= 1
        ledger.charge(TENTH, "q")
        ledger.close()


@pytest.mark.parametrize("moment", ["before the journal is gone", "before anything was written"])
def test_a_journal_that_was_left_behind(fast_path: Path, moment: str):
    """A crash in the middle of a commit: the next opening takes the transaction back, all of it."""
    path = fast_path / "a.ledger"
    ledger = open_ledger(path, rules())
    ledger.charge(TENTH, "first")
    connection = ledger._store._connection
    connection.execute("PRAGMA cache_spill = ON")
    connection.execute("PRAGMA cache_size = 1")
    ledger._store.begin()
    for number in range(2, 200 if moment.startswith("before the journal") else 3):  # written out before the commit
        ledger._store.append(number, "x" * 3000, "y")
    crashed = fast_path / "crashed.ledger"
    shutil.copy(path, crashed)
    shutil.copy(f"{path}-journal", f"{crashed}-journal")
    ledger._store.abandon()
    again = open_ledger(crashed, rules())
    assert [entry.label for entry in again.entries] == ["first"]
    again.charge(TENTH, "second")
    assert len(checks.charges(crashed)) == 2
    assert not Path(f"{crashed}-journal").exists()


def test_a_journal_of_another_file(fast_path: Path):
    """What a crash left beside a ledger that is no more is not played into a new one unnoticed."""
    old, new = fast_path / "old.ledger", fast_path / "new.ledger"
    ledger = open_ledger(old, rules(99))
    for number in range(30):
        ledger.charge(TENTH, f"old {number}" + "x" * 3000)
    connection = ledger._store._connection
    connection.execute("PRAGMA cache_size = 1")
    ledger._store.begin()
    for number in range(31, 100):
        ledger._store.append(number, "x" * 3000, "y")
    left = Path(f"{old}-journal").read_bytes()
    ledger._store.abandon()
    Path(f"{new}-journal").write_bytes(left)
    with suppress(LedgerError):
        made = open_ledger(new, rules(1))
        made.charge(TENTH, "q")
        assert [entry.label for entry in open_ledger(new, rules(1)).entries] == ["q"]
