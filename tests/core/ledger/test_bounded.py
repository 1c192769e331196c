"""What a session remembers of questions that are over is bounded, and nobody waits by a clock that went backwards."""

import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from dpsql.core.ledger import claims, clock
from dpsql.core.ledger import ledger as ledger_module
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import FileStore, open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Process
from dpsql.errors import BudgetExceeded, LedgerError
from dpsql.session import session as session_module
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, session

Patch = pytest.MonkeyPatch
KEY = "2:key"


@pytest.mark.parametrize("file", [True, False])
def test_turns_and_claims_of_what_is_over_are_forgotten(tmp_path: Path, monkeypatch: Patch, file: bool):
    """Answered, replayed, refused, failed."""
    with session(tmp_path / "a.ledger" if file else None, budget=Budget(1)) as asked:
        for number in range(20):
            asked.query(f"SELECT COUNT(*) FROM people WHERE age > {number}", epsilon=0.01)
            asked.query(f"SELECT COUNT(*) FROM people WHERE age > {number}", epsilon=0.01)
            with pytest.raises(BudgetExceeded):
                asked.query(f"SELECT COUNT(*) FROM people WHERE age > {number}", epsilon=2)
        monkeypatch.setattr(session_module, "run", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            asked.query(COUNT, epsilon=0.1)
        assert len(asked._replay._turns) == 0
        assert asked._ledger._made == {}


def test_a_claim_that_another_was_faster_with_is_forgotten(tmp_path: Path, monkeypatch: Patch):
    one = open_ledger(tmp_path / "a.ledger", checks.rules())
    other = open_ledger(tmp_path / "a.ledger")
    first = one.claim(KEY, checks.TENTH, "q")
    with monkeypatch.context() as patch:
        patch.setattr(claims, "gone", lambda *_: True)
        second = other.claim(KEY, checks.TENTH, "q")
    assert other.keep(KEY, b"second", second, claimed=True)
    assert not one.keep(KEY, b"first", first, claimed=True)
    assert one._made == other._made == {}


def test_an_answer_that_cannot_be_kept_leaves_no_claim(tmp_path: Path, monkeypatch: Patch):
    one = open_ledger(tmp_path / "a.ledger", checks.rules())
    paid = one.claim(KEY, checks.TENTH, "q")
    assert paid is not None
    monkeypatch.setattr(FileStore, "begin", lambda *_: (_ for _ in ()).throw(LedgerError("full")))
    one.drop(paid)
    assert one._made == {}


def test_claims_that_were_given_up_are_remembered_so_far(monkeypatch: Patch):
    monkeypatch.setattr(claims, "_ended", type(claims._ended)())
    monkeypatch.setattr(claims, "_REMEMBERED", 3)
    for digest in "abcde":
        claims.end(digest)
    assert [digest for digest in "abcde" if claims.ended(digest)] == ["c", "d", "e"]


def test_one_lock_for_threads_that_ask_at_once(tmp_path: Path):
    """While somebody has a turn, the next one waits for it; when nobody has, a new one is made."""
    with session(tmp_path / "a.ledger") as asked:
        replay = asked._replay
        question = session_module.Question("2:k", lasting=False)
        with replay.turn(question) as held:
            assert held
            found: list[bool] = []
            other = threading.Thread(target=lambda: found.append(replay.turn(question).acquire(blocking=False)))  # type: ignore[attr-defined]
            other.start()
            other.join()
            assert found == [False]
        with replay.turn(question):
            pass


def test_claims_are_dropped_while_others_claim():
    """Threads write into the table of claims while one looks through it."""
    ledger = Ledger(checks.rules())
    paid = ledger.charge(checks.TENTH, "q")
    held = {str(number): number for number in range(20_000)}
    stop = threading.Event()

    class Held:
        number = -1

    ledger._state.claims = {key: Held() for key in held}  # type: ignore[misc]

    def write() -> None:
        number = 0
        while not stop.is_set():
            with ledger._lock:  # as lines are read
                for _ in range(100):
                    number += 1
                    ledger._state.claims[f"new{number % 50_000}"] = Held()  # type: ignore[assignment]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            ledger.drop(paid)
    finally:
        stop.set()
        writer.join()
        sys.setswitchinterval(before)


def test_nobody_waits_by_a_clock_that_went_backwards(tmp_path: Path, monkeypatch: Patch):
    """By it a claim of another machine would not grow old for as long."""
    one = open_ledger(tmp_path / "a.ledger", checks.rules())
    other = open_ledger(tmp_path / "a.ledger")
    with monkeypatch.context() as patch:
        patch.setattr(claims, "this_process", lambda: Process("elsewhere", 1, ""))
        one.claim(KEY, checks.TENTH, "q")
    honest, looks = clock.now, []

    def sleep(_: float) -> None:
        looks.append(1)
        assert len(looks) < 10, "waits by a clock that went backwards"

    monkeypatch.setattr(ledger_module.time, "sleep", sleep)
    monkeypatch.setattr(clock, "now", lambda: honest() - timedelta(days=1))
    with pytest.raises(LedgerError, match="clock went backwards"):
        other.claim(KEY, checks.TENTH, "q")
    assert len(other.entries) == 1


def test_a_time_that_no_version_wrote_is_long_ago():
    for text in ("", "yesterday", "2026-01-01", "2026-13-01T00:00:00.000000Z", "9" * 50):
        assert clock.age(text) > claims.LONGEST


def test_a_number_that_no_process_has_is_gone():
    machine = claims.this_process().machine
    assert claims.gone(Process(machine, 10**15 - 1, "1"), 0)
