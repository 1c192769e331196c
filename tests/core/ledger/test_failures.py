"""What goes wrong outside: each is a LedgerError that says what happened and what to do; no answer, no entry lost, and
the ledger works again when the cause is gone."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.accounting import read_ledger
from dpsql.core.ledger import clock as ledger_clock
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import FileStore, open_ledger
from dpsql.errors import DPSQLError, InvalidArgument, InvalidPrivacyParameter, LedgerError
from dpsql.executors.pandas import executor as pandas
from tests.core.ledger import checks
from tests.core.ledger.checks import COUNT, SECRET, edit, fork_to_say, needs_fork, rules, session


@contextmanager
def no_rows_are_read() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pandas.PandasExecutor, "execute", lambda *_, **__: pytest.fail("rows were read"))
        yield


def refused(run: Callable[[], object], *words: str) -> LedgerError:
    """The error, after a look at what it says."""
    with no_rows_are_read(), pytest.raises(LedgerError) as caught:
        run()
    said = str(caught.value)
    assert caught.value.hint, said
    assert SECRET not in said
    assert "123457" not in said
    for word in words:
        assert word in said, said
    return caught.value


def test_a_folder_that_is_not_there(tmp_path: Path):
    path = tmp_path / "no" / "a.ledger"
    refused(lambda: session(path), str(path))
    path.parent.mkdir()
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)


def test_a_folder_as_path(tmp_path: Path):
    refused(lambda: session(tmp_path), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/proc/a.ledger", "/dev/null", "/dev/full"])
def test_a_place_that_cannot_hold_a_file(path: str):
    if not Path(path).parent.exists():
        pytest.skip("no such place here")
    refused(lambda: session(Path(path)))


@pytest.mark.parametrize("path", ["", "a\0b", 5, b"x", ["x"], True])
def test_what_is_no_path(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DPSQLError):
        session(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["a b.ledger", "a%20b?mode=ro#x", "é\u0301'\".db", ":memory:", "-x", "\udcff", "a" * 200, "file:x"]
)
def test_odd_names(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / name, name):
        with session(path) as asked:  # type: ignore[arg-type]
            asked.query(COUNT, epsilon=1)
            assert asked.spent.epsilon == 1  # the second time it is a replay
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_link_to_a_ledger_is_that_ledger(tmp_path: Path):
    path, link = tmp_path / "a.ledger", tmp_path / "link"
    link.symlink_to(path)
    with session(link) as asked:
        asked.query(COUNT, epsilon=1)
        with session(path) as other:
            assert other.spent.epsilon == 1
    assert link.is_symlink()


def test_a_home_that_is_relative_stays_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with session(Path("a.ledger")) as asked:
        monkeypatch.chdir("/")
        asked.query(COUNT, epsilon=1)
    with session(tmp_path / "a.ledger") as asked:
        assert asked.spent.epsilon == 1


def _nobody(folder: Path, run: Callable[[], object]) -> Any:
    """What a process says that may not write where this one may."""

    def without_rights() -> object:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return run()

    return fork_to_say(without_rights).said()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can look into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def _try(run: Callable[[], object]) -> list[str]:
    try:
        run()
    except LedgerError as error:
        return ["refused", str(error), error.hint]
    except BaseException as error:  # noqa: BLE001 - told to the parent
        return [type(error).__name__, str(error), ""]
    return ["done", "", ""]


@needs_fork
@pytest.mark.parametrize("what", ["folder", "file", "new"])
def test_without_the_right_to_write(open_folder: Path, what: str):
    path = open_folder / "a.ledger"
    if what != "new":
        with session(path) as asked:
            asked.query(COUNT, epsilon=1)
    path.exists() and path.chmod(0o444 if what == "file" else 0o666)
    open_folder.chmod(0o777 if what == "file" else 0o555)

    def ask() -> list[str]:
        return _try(lambda: session(path).query(COUNT, epsilon=2))

    kind, said, hint = _nobody(open_folder, ask)
    assert kind == "refused", said
    assert hint
    assert str(path) in said
    assert _nobody(open_folder, lambda: _try(lambda: session(path)))[0] == "refused"  # at once, before a question
    if what != "new":
        assert _nobody(open_folder, lambda: _try(lambda: read_ledger(path)))[0] == "done"
    open_folder.chmod(0o777)
    if what != "new":
        path.chmod(0o666)
        assert len(checks.charges(path)) == 1
    assert _nobody(open_folder, ask)[0] == "done"
    assert len(checks.charges(path)) == (1 if what == "new" else 2)


@needs_fork
def test_without_the_right_to_read(open_folder: Path):
    path = open_folder / "a.ledger"
    session(path).close()
    path.chmod(stat.S_IWUSR)
    kind, said, hint = _nobody(open_folder, lambda: _try(lambda: session(path)))
    assert (kind, bool(hint)) == ("refused", True), said


def test_a_full_disk(tmp_path: Path):
    """As SQLite meets it: no page more. Nothing is charged, and with room again it goes on."""
    path = tmp_path / "a.ledger"
    with session(path, budget=Budget(10**6)) as asked:
        asked.query(COUNT, epsilon=1)
        connection = asked._ledger._store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        sql = "SELECT COUNT(*) FROM people WHERE city = '" + "x" * 9000 + "'"
        refused(lambda: asked.query(sql, epsilon=2), "full", str(path))
        assert asked.spent.epsilon == 1
        assert len(checks.charges(path)) == 1
        connection.execute("PRAGMA max_page_count = 100000")
        asked.query(sql, epsilon=2)
        assert checks.epsilon_on_disk(path) == 3


@needs_fork
def test_a_disk_that_fills_up(tmp_path: Path):
    """As the system tells it, at every size: what was admitted is in the file, what was not is not."""
    import resource

    path = tmp_path / "a.ledger"
    open_ledger(path, rules(10**6)).close()

    def fill(limit: int) -> list[Any]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        ledger = open_ledger(path)
        admitted, said = 0, []
        for number in range(400):
            found = _try(lambda n=number: ledger.charge(checks.TENTH, f"{n}" + "x" * 500))  # type: ignore[misc]
            admitted += found[0] == "done"
            if found[0] != "done":
                said.append(found)
                break
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = _try(lambda: ledger.charge(checks.TENTH, "there is room again"))
        return [admitted, said, again]

    whole = 0
    for limit in (20_000, 40_000, 60_001, 100_000):
        admitted, said, again = fork_to_say(lambda most=limit: fill(most)).said()  # type: ignore[misc]
        assert [each[0] for each in said] == ["refused"], said
        assert str(path) in said[0][1]
        assert said[0][2]
        assert again[0] == "done"
        whole += admitted + 1
        assert len(open_ledger(path).entries) == whole


@pytest.mark.parametrize("place", ["begin", "append", "commit"])
def test_a_store_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str):
    """At each step of a charge: no rows are read, nothing is entered, the next query works."""
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise LedgerError("the store failed.", hint="Mend it.")

            patch.setattr(FileStore, place, fail)
            refused(lambda: asked.query(COUNT, epsilon=2))
        assert len(checks.charges(path)) == 1
        asked.query(COUNT, epsilon=2)
        assert checks.epsilon_on_disk(path) == 3


def test_an_answer_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is paid for, so it is given, with a note; this session repeats it for nothing, a later one pays."""
    path = tmp_path / "a.ledger"
    with session(path) as asked:
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise LedgerError("the disk is full.")

            patch.setattr(FileStore, "keep", fail)
            told = asked.query(COUNT, epsilon=1)
            assert "could not keep this answer" in str(told)
            assert checks.values(asked.query(COUNT, epsilon=1)) == checks.values(told)
        assert checks.values(asked.query(COUNT, epsilon=1)) == checks.values(told)
        assert checks.epsilon_on_disk(path) == 1
        other = asked.query(COUNT, epsilon=1, fresh=True)
        assert checks.values(asked.query(COUNT, epsilon=1)) == checks.values(other)
    with session(path) as asked:
        assert checks.values(asked.query(COUNT, epsilon=1)) == checks.values(other)
        assert asked.spent.epsilon == 2


def test_a_clock_that_goes_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.ledger"
    true = datetime.now(UTC)
    clock = [true]
    monkeypatch.setattr(ledger_clock, "now", lambda: clock[0])
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)
        clock[0] = true - timedelta(seconds=0.9)  # two processors' clocks differ a little
        asked.query(COUNT, epsilon=1, fresh=True)
        assert sorted(line.time for line in asked.ledger()) == [line.time for line in asked.ledger()]
        clock[0] = true - timedelta(hours=1)
        refused(lambda: asked.query(COUNT, epsilon=2), "clock")
        told = asked.query(COUNT, epsilon=1)  # a replay costs nothing, and needs no clock
        assert told is not None
        assert len(checks.charges(path)) == 2
    with session(path) as asked:
        refused(lambda: asked.query(COUNT, epsilon=2), "clock")
        clock[0] = true + timedelta(seconds=1)
        asked.query(COUNT, epsilon=2)
        assert len(asked.ledger()) == 3


def test_a_clock_that_was_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An entry of next year: said once, the ledger goes on."""
    path = tmp_path / "a.ledger"
    true = datetime.now(UTC)
    clock = [true + timedelta(days=400)]
    monkeypatch.setattr(ledger_clock, "now", lambda: clock[0])
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)
        clock[0] = true
        refused(lambda: asked.query(COUNT, epsilon=2), "accept_clock")
        from dpsql import accounting

        accounting.accept_clock(path)
        asked.query(COUNT, epsilon=2)
        assert checks.epsilon_on_disk(path) == 3
        named, own = checks.hashes(asked.export_ledger())
        assert named == own


def test_a_closed_session(tmp_path: Path):
    asked = session(tmp_path / "a.ledger")
    asked.query(COUNT, epsilon=1)
    asked.close()
    asked.close()
    for run in (lambda: asked.query(COUNT, epsilon=1), lambda: asked.spent, asked.ledger, asked.export_ledger):
        assert "closed" in str(refused(run))


def test_no_budget_and_no_file(tmp_path: Path):
    path = tmp_path / "a.ledger"
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Session({"people": checks.table()}, ledger=path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgument):
        dpsql.Session({"people": checks.table()}, budget=Budget(1), anchor="0:" + "a" * 64)
    session(path).close()
    with dpsql.Session({"people": checks.table()}, ledger=path) as asked:
        assert asked.budget == Budget(10, 1e-6)


def test_a_bad_table_makes_no_ledger_unusable(tmp_path: Path):
    path = tmp_path / "a.ledger"
    for _ in range(3):
        with pytest.raises(DPSQLError):
            session(path, budget=Budget(10, 1e-6), epsilon=-1)
        with pytest.raises(DPSQLError):
            dpsql.Session({"": checks.table()}, budget=Budget(10, 1e-6), ledger=path)
    with session(path) as asked:
        asked.query(COUNT, epsilon=1)


def test_messages_hold_no_cells(tmp_path: Path):
    """Not even where the text and the ledger hold a lot."""
    path = tmp_path / "a.ledger"
    with session(path, budget=Budget(1)) as asked:
        asked.query("SELECT city, COUNT(*), SUM(age) FROM people GROUP BY city", epsilon=1)
        edit(path, "UPDATE lines SET text = replace(text, 'people', 'folk')")
        refused(lambda: session(path))
