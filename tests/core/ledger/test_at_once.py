"""One question asked at once by many is drawn once and charged once; who dies or fails at it is taken over from."""

import os
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.ledger import claims
from dpsql.core.ledger import ledger as ledger_module
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import FileStore, open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Process
from dpsql.errors import BudgetExceeded, InternalError, LedgerError
from dpsql.session import session as session_module
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, needs_fork, session, values

Patch = pytest.MonkeyPatch
KEY = "2:key"


def slow(patch: Patch, seconds: float = 0.05) -> list[int]:
    """Runs that take their time, and how many there were."""
    runs: list[int] = []
    honest = session_module.run

    def run(*args: Any) -> Any:
        runs.append(threading.get_ident())
        time.sleep(seconds)
        return honest(*args)

    patch.setattr(session_module, "run", run)
    return runs


def together(count: int, ask: Callable[[int], Any]) -> list[Any]:
    """What so many threads get that ask at one moment: results, or what was raised."""
    found: list[Any] = [None] * count
    ready = threading.Barrier(count)

    def one(number: int) -> None:
        ready.wait()
        try:
            found[number] = ask(number)
        except BaseException as error:  # noqa: BLE001 - told to the test
            found[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive(), "a thread waits for ever"
    return found


def opened(path: Path | None, *, lasting: bool = True, **more: Any) -> dpsql.Session:
    if lasting:
        return session(path, **more)
    made = dpsql.Table(checks.people(), bounds={"age": (0, 100)}, keys={"city": ["a", "b"]})
    return dpsql.Session({"people": made}, **{"budget": Budget(10, 1e-6), "ledger": path, **more})


def check_threads(folder: Path) -> None:
    """Eight threads of one session, with and without a file, with and without a version."""
    for number, (file, lasting) in enumerate(((True, True), (True, False), (False, True), (False, False))):
        path = folder / f"threads{number}.ledger" if file else None
        with pytest.MonkeyPatch.context() as patch, opened(path, lasting=lasting) as asked:
            runs = slow(patch)
            found = together(8, lambda _: asked.query("SELECT city, COUNT(*) FROM people GROUP BY city", epsilon=1))
            assert len({repr(values(each)) for each in found}) == 1, "different answers"
            assert len(runs) == 1, f"drawn {len(runs)} times"
            assert len(asked.ledger()) == 1
            assert asked.spent.epsilon == 1
            assert sum(each.replayed for each in found) == 7


def test_eight_threads_of_a_session(tmp_path: Path):
    check_threads(tmp_path)


def check_sessions(folder: Path) -> None:
    """Sessions of one process over a file."""
    path = folder / "sessions.ledger"
    sessions = [opened(path) for _ in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        runs = slow(patch)
        found = together(6, lambda number: sessions[number].query(COUNT, epsilon=1))
    assert len({repr(values(each)) for each in found}) == 1, "different answers"
    assert len(runs) == len(checks.charges(path)) == 1
    for each in sessions:
        each.close()


def test_six_sessions_over_a_file(tmp_path: Path):
    check_sessions(tmp_path)


def check_processes(folder: Path, processes: int = 4) -> None:
    path = folder / "processes.ledger"
    opened(path).close()
    ready, go = os.pipe(), os.pipe()

    def ask() -> list[Any]:
        with pytest.MonkeyPatch.context() as patch, opened(path) as asked:
            slow(patch, 0.2)
            os.write(ready[1], b" ")
            os.read(go[0], 1)
            return [values(asked.query(COUNT, epsilon=1)), asked.query(COUNT, epsilon=1).replayed]

    children = [checks.fork_to_say(ask) for _ in range(processes)]
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b" " * processes)
    said = [child.said() for child in children]
    assert all(isinstance(each, list) for each in said), said
    assert len({repr(shown) for shown, _ in said}) == 1, f"different answers: {said}"
    assert len(checks.charges(path)) == 1
    assert [line["kind"] for line in checks.texts(path)] == ["unit", "claim", "charge", "answer"]


@needs_fork
def test_four_processes_over_a_file(tmp_path: Path):
    check_processes(tmp_path)


def _claimant(path: Path) -> checks.Child:
    """A process that has claimed and paid, and will not come to an end."""

    def ask(pipe: int) -> None:
        with pytest.MonkeyPatch.context() as patch, opened(path) as asked:

            def run(*_: Any) -> Any:
                os.write(pipe, b"!")
                time.sleep(600)

            patch.setattr(session_module, "run", run)
            asked.query(COUNT, epsilon=1)

    child = checks.fork(ask)
    assert os.read(child.pipe, 1) == b"!"
    return child


def check_killed(folder: Path) -> None:
    """Killed in the middle of its run: another takes over, with a charge of its own."""
    path = folder / "killed.ledger"
    opened(path).close()
    child = _claimant(path)
    try:
        waiting: list[Any] = []
        with opened(path) as asked:
            thread = threading.Thread(target=lambda: waiting.append(asked.query(COUNT, epsilon=1)))
            thread.start()
            time.sleep(0.3)
            assert thread.is_alive(), "did not wait for a process that is at work"
            assert len(checks.charges(path)) == 1
            os.kill(child.pid, signal.SIGKILL)  # and nobody has waited for it: it is a zombie
            thread.join(30)
            assert not thread.is_alive(), "waits for the dead"
            assert not waiting[0].replayed
            assert len(checks.charges(path)) == 2
            assert values(asked.query(COUNT, epsilon=1)) == values(waiting[0])
    finally:
        child.kill()
    with opened(path) as later:
        assert values(later.query(COUNT, epsilon=1)) == values(waiting[0])
        assert len(later.ledger()) == 2


@needs_fork
def test_a_claimant_that_is_killed_is_taken_over_from(tmp_path: Path):
    check_killed(tmp_path)


@needs_fork
def test_fresh_never_waits(tmp_path: Path):
    """Nor does explain, nor another question, while somebody is at work on this one."""
    path = tmp_path / "a.ledger"
    opened(path).close()
    child = _claimant(path)
    try:
        with opened(path) as asked:
            asked.explain(COUNT, epsilon=1)
            asked.query(f"EXPLAIN PRIVACY {COUNT}", epsilon=1)
            asked.remaining_queries(COUNT, epsilon=1)
            asked.query(COUNT, epsilon=0.5)
            told = asked.query(COUNT, epsilon=1, fresh=True)
            assert len(asked.ledger()) == 3
            assert values(asked.query(COUNT, epsilon=1)) == values(told)  # an answer is there: nothing to wait for
            assert len(asked.ledger()) == 3
    finally:
        child.kill()


def test_fresh_threads_pay_each(tmp_path: Path):
    for path in (None, tmp_path / "a.ledger"):
        with opened(path) as asked:
            together(4, lambda _: asked.query(COUNT, epsilon=1, fresh=True))
            assert len(asked.ledger()) == 4


@pytest.mark.parametrize("lasting", [True, False])
def test_different_questions_run_side_by_side(monkeypatch: Patch, tmp_path: Path, lasting: bool):
    """All of them are inside their runs at one moment."""
    inside = threading.Barrier(4)
    honest = session_module.run

    def run(*args: Any) -> Any:
        inside.wait(30)
        return honest(*args)

    monkeypatch.setattr(session_module, "run", run)
    with opened(tmp_path / "a.ledger", lasting=lasting) as asked:
        found = together(4, lambda k: asked.query(f"SELECT COUNT(*) FROM people WHERE age > {k}", epsilon=0.1))
        assert not [each for each in found if isinstance(each, BaseException)]
        assert len(asked.ledger()) == 4


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, InternalError, SystemExit])
@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("file", [True, False])
def test_a_failure_after_the_charge_lets_others_ask(
    monkeypatch: Patch, tmp_path: Path, failure: type[BaseException], lasting: bool, file: bool
):
    """The one that fails has paid; another pays, and the rest have its answer."""
    honest, runs = session_module.run, []

    def run(*args: Any) -> Any:
        runs.append(1)
        time.sleep(0.05)
        if len(runs) == 1:
            raise failure("it failed")
        return honest(*args)

    monkeypatch.setattr(session_module, "run", run)
    with opened(tmp_path / "a.ledger" if file else None, lasting=lasting) as asked:
        found = together(5, lambda _: asked.query(COUNT, epsilon=1))
        failed = [each for each in found if isinstance(each, BaseException)]
        answers = [each for each in found if not isinstance(each, BaseException)]
        assert [type(each) for each in failed] == [failure]
        assert len({repr(values(each)) for each in answers}) == 1
        assert len(asked.ledger()) == len(runs) == 2


def test_a_failure_lets_other_sessions_ask(monkeypatch: Patch, tmp_path: Path):
    path = tmp_path / "a.ledger"
    with opened(path) as one, opened(path) as other:
        monkeypatch.setattr(session_module, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            one.query(COUNT, epsilon=1)
        monkeypatch.undo()
        kinds = [line["kind"] for line in checks.texts(path)]
        assert kinds == ["unit", "claim", "charge", "dropped"]
        assert not other.query(COUNT, epsilon=1).replayed
        assert one.query(COUNT, epsilon=1).replayed
        assert len(one.ledger()) == 2


def check_interrupted_charges(folder: Path) -> None:
    """Ctrl-C while the charge is written to the disk: it may be there, and nobody waits for its answer."""
    for when in ("before", "after"):
        path = folder / f"interrupted_{when}.ledger"
        honest = FileStore.commit

        def commit(self: FileStore, when: str = when) -> None:
            if when == "after":
                honest(self)  # noqa: B023
            raise KeyboardInterrupt

        with opened(path) as one, opened(path) as other:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(FileStore, "commit", commit)
                with pytest.raises(KeyboardInterrupt):
                    one.query(COUNT, epsilon=1)
            charged = len(checks.charges(path))
            assert charged == (when == "after")
            found = together(2, lambda k, pair=(one, other): pair[k].query(COUNT, epsilon=1))
            assert values(found[0]) == values(found[1])
            assert len(one.ledger()) == charged + 1
            kinds = [line["kind"] for line in checks.texts(path)]
            assert kinds == (["unit", "claim", "charge", "dropped"] if charged else ["unit"]) + [
                "claim",
                "charge",
                "answer",
            ]


def test_a_charge_that_is_interrupted(tmp_path: Path):
    check_interrupted_charges(tmp_path)


def test_a_refusal_lets_others_ask(tmp_path: Path):
    """Nothing is claimed without a charge."""
    with opened(tmp_path / "a.ledger", budget=Budget(1)) as asked:
        found = together(4, lambda _: asked.query(COUNT, epsilon=2))
        assert all(isinstance(each, BudgetExceeded) for each in found)
        assert checks.texts(tmp_path / "a.ledger") == []


def test_an_answer_that_cannot_be_kept_is_given_and_others_ask(monkeypatch: Patch, tmp_path: Path):
    """A disk that becomes full after the charge: who has paid is told, and nobody waits for what will not come."""
    path = tmp_path / "a.ledger"
    full = [False]
    honest = FileStore.begin

    def begin(self: FileStore) -> None:
        if full[0]:
            raise LedgerError("the disk is full.")
        honest(self)

    monkeypatch.setattr(FileStore, "begin", begin)
    with opened(path) as one, opened(path) as other:
        run = session_module.run

        def fills(*args: Any) -> Any:
            full[0] = True
            return run(*args)

        monkeypatch.setattr(session_module, "run", fills)
        told = one.query(COUNT, epsilon=1)
        assert "could not keep" in str(told.warnings)
        full[0] = False
        monkeypatch.setattr(session_module, "run", run)
        assert not other.query(COUNT, epsilon=1).replayed
        assert len(other.ledger()) == 2


# The ledger alone


def _ledgers(folder: Path) -> list[tuple[Ledger, Ledger]]:
    path = folder / "pair.ledger"
    memory = Ledger(checks.rules())
    return [(open_ledger(path, checks.rules()), open_ledger(path)), (memory, memory)]


def check_taken_over_from_the_living(folder: Path) -> None:
    """A claim that is taken over from somebody who is still at work: two charges, and one answer for both."""
    for one, other in _ledgers(folder):
        first = one.claim(KEY, checks.TENTH, "q")
        assert first is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(claims, "gone", lambda *_: True)
            second = other.claim(KEY, checks.TENTH, "q")
        assert second is not None
        assert other.keep(KEY, b"second", second, claimed=True)
        assert not one.keep(KEY, b"first", first, claimed=True), "two answers are shown for one question"
        assert one.recall(KEY) == other.recall(KEY) == b"second"
        assert one.spent.epsilon == Fraction(2, 10)


def test_taken_over_from_the_living(tmp_path: Path):
    check_taken_over_from_the_living(tmp_path)


def test_taken_over_and_the_first_is_faster_all_the_same(tmp_path: Path, monkeypatch: Patch):
    for one, other in _ledgers(tmp_path):
        first = one.claim(KEY, checks.TENTH, "q")
        with monkeypatch.context() as patch:
            patch.setattr(claims, "gone", lambda *_: True)
            second = other.claim(KEY, checks.TENTH, "q")
        assert one.keep(KEY, b"first", first, claimed=True)
        assert not other.keep(KEY, b"second", second, claimed=True)
        assert other.recall(KEY) == b"first"


def test_one_charge_has_one_answer(tmp_path: Path):
    for one, other in _ledgers(tmp_path):
        paid = one.charge(checks.TENTH, "q")
        assert one.keep(KEY, b"one", paid)
        assert not other.keep(KEY, b"two", paid)
        assert not one.keep("2:another", b"two", paid)
        assert other.recall(KEY) == b"one"


def test_a_claim_of_what_is_answered_is_none(tmp_path: Path):
    for one, other in _ledgers(tmp_path):
        one.keep(KEY, b"answer")
        assert other.claim(KEY, checks.TENTH, "q") is None
        assert one.entries == ()


def test_a_claim_that_is_dropped_twice_or_was_none(tmp_path: Path):
    for one, _ in _ledgers(tmp_path):
        paid = one.claim(KEY, checks.TENTH, "q")
        assert paid is not None
        one.drop(paid)
        one.drop(paid)
        one.drop(one.charge(checks.TENTH, "q"))
        again = one.claim(KEY, checks.TENTH, "q")
        assert again is not None
        one.drop(paid)  # the one before: the new claim stays
        assert one._claimed(KEY)


def test_a_drop_that_cannot_be_written_is_known_in_this_process(tmp_path: Path, monkeypatch: Patch):
    one, other = _ledgers(tmp_path)[0]
    paid = one.claim(KEY, checks.TENTH, "q")
    assert paid is not None
    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "begin", lambda *_: (_ for _ in ()).throw(LedgerError("full")))
        one.drop(paid)
    assert other.claim(KEY, checks.TENTH, "q") is not None


def test_a_process_that_opens_later_knows_of_a_claim(tmp_path: Path):
    one, _ = _ledgers(tmp_path)[0]
    one.claim(KEY, checks.TENTH, "q")
    assert open_ledger(tmp_path / "pair.ledger")._claimed(KEY)


# Whether a process is gone


def test_this_process_is_not_gone():
    mine = claims.this_process()
    assert not claims.gone(mine, 0)
    assert not claims.gone(mine, claims.LEASE + 1)
    assert claims.gone(mine, claims.LONGEST + 1)


def test_a_number_that_was_given_again_is_another_process():
    mine = claims.this_process()
    if mine.started:
        assert claims.gone(Process(mine.machine, mine.number, "0"), 0)
        parent = Process(mine.machine, os.getppid(), "0")
        assert claims.gone(parent, 0)


@needs_fork
def test_a_process_that_ended_is_gone():
    child = checks.fork_to_say(lambda: claims.this_process().started)
    started = child.said()
    assert claims.gone(Process(claims.this_process().machine, child.pid, started), 0)


def test_a_process_of_another_machine_has_a_lease():
    there = Process("elsewhere", os.getpid(), "1")
    assert not claims.gone(there, claims.LEASE - 1)
    assert claims.gone(there, claims.LEASE + 1)


@needs_fork
def test_a_process_that_cannot_be_looked_into_is_asked_for(monkeypatch: Patch, tmp_path: Path):
    """Where the system hides other users' processes, that one is there can still be told."""
    monkeypatch.setattr(claims, "Path", lambda *_: tmp_path / "nothing")
    machine = claims.this_process().machine
    assert not claims.gone(Process(machine, os.getppid(), "77"), claims.LEASE + 1)
    child = checks.fork_to_say(lambda: True)
    child.said()
    assert claims.gone(Process(machine, child.pid, "77"), 0)


def test_where_the_system_tells_nothing(monkeypatch: Patch):
    """Then a lease has to do, and nothing is sent to the process."""
    monkeypatch.setattr(claims, "_started", lambda _: "")
    monkeypatch.setattr(claims, "_can_ask", lambda: False)
    other = Process(claims.this_process().machine, os.getppid(), "")
    assert not claims.gone(other, claims.LEASE - 1)
    assert claims.gone(other, claims.LEASE + 1)


def test_a_claim_of_another_machine_is_taken_over_in_the_end(tmp_path: Path, monkeypatch: Patch):
    one, other = _ledgers(tmp_path)[0]
    with monkeypatch.context() as patch:
        patch.setattr(claims, "this_process", lambda: Process("elsewhere", 1, ""))
        one.claim(KEY, checks.TENTH, "q")
    monkeypatch.setattr(ledger_module, "_LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(claims, "LEASE", 0.3)
    start = time.monotonic()
    assert other.claim(KEY, checks.TENTH, "q") is not None
    assert time.monotonic() - start > 0.1
