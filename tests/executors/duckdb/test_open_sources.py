"""Sources are opened before a question is charged, and held: what can fail without a row being read costs nothing, and
files that are not those that were checked are not read by a plan that was made for others."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidSchema
from dpsql.executors.duckdb import executor, open_sources
from dpsql.executors.duckdb.files import FileStore
from dpsql.session import query
from dpsql.session import session as sessions
from dpsql.session.multi_step import queries as program_questions
from tests.lies import Patch, assert_caught

COUNT = "SELECT COUNT(*) AS n FROM t"
TWO_STEPS = "SELECT COUNT(*) AS n FROM t WHERE x > (SELECT AVG(x) FROM t)"
UNITS = "SELECT range::BIGINT AS u, range AS x FROM range(5)"
FRACTIONS = "SELECT 0.6 + .8 * (range % 2) AS u, range AS x FROM range(5)"
"""Units 0.6 and 1.4, which are one person as whole numbers and two as they are."""
NOT_READ = "no row was read"


def parquet(file: Path, rows: str = UNITS) -> Path:
    duckdb.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")
    return file


def database(file: Path, rows: str = UNITS) -> Path:
    """Another file in its place: one that is attached in this process cannot be written to."""
    new = file.with_name("new.duckdb")
    with duckdb.connect(str(new)) as base:
        base.execute(f"CREATE TABLE t AS {rows}")
    return new.rename(file)


KINDS: dict[str, tuple[str, Callable[..., Path], dict[str, str]]] = {
    "Parquet": ("t.parquet", parquet, {}),
    "a database": ("t.duckdb", database, {"table": "t"}),
}


def table(folder: Path, kind: str) -> dpsql.Table:
    name, write, words = KINDS[kind]
    return dpsql.Table(write(folder / name), unit="u", max_rows=1, bounds={"x": (0, 9)}, **words)


def session(folder: Path, kind: str = "Parquet", **words: Any) -> dpsql.Session:
    return dpsql.Session({"t": table(folder, kind)}, budget=dpsql.Budget(9), **words)


def before(patch: pytest.MonkeyPatch, where: Any, name: str, do: Callable[[], object]) -> None:
    """Have something happen just before a function is called, once."""
    honest, done = getattr(where, name), list[bool]()

    def called(*args: Any, **more: Any) -> Any:
        if not done:
            done.append(True)
            do()
        return honest(*args, **more)

    patch.setattr(where, name, called)


# Files that are replaced.


@pytest.mark.parametrize("sql", [COUNT, TWO_STEPS])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_replaced_before_the_charge_costs_nothing(tmp_path: Path, kind: str, sql: str):
    """Also where its columns are the same: the question was looked up as one of other rows."""
    name, write, _ = KINDS[kind]
    for rows, words in ((FRACTIONS, "other columns"), (f"{UNITS} LIMIT 3", "changed while it was opened")):
        held = session(tmp_path, kind)
        rooms = (sessions, program_questions)
        with pytest.MonkeyPatch.context() as patch:
            for room in rooms:
                before(patch, room, "open_tables", lambda rows=rows: write(tmp_path / name, rows))
            with pytest.raises(InvalidSchema, match=f"{words}(?s:.*)Nothing was charged"):
                held.query(sql, epsilon=1)
        assert held.ledger() == ()


@pytest.mark.parametrize("sql", [COUNT, TWO_STEPS])
@pytest.mark.parametrize("rows", [FRACTIONS, f"{UNITS} LIMIT 3", f"{UNITS} WHERE range < 0"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_replaced_after_the_charge_is_not_read(tmp_path: Path, kind: str, rows: str, sql: str):
    name, write, _ = KINDS[kind]
    held = session(tmp_path, kind)
    with pytest.MonkeyPatch.context() as patch:
        for room in (sessions, program_questions):
            before(patch, room, "run", lambda: write(tmp_path / name, rows))
        with pytest.raises(InternalError, match=f"changed between the charge and the run(?s:.*){NOT_READ}") as caught:
            held.query(sql, epsilon=1)
    assert caught.value.__context__ is None
    assert float(held.spent.epsilon) == 1
    assert [each.label for each in held.ledger()] == [sql]


def test_a_file_that_is_replaced_while_it_is_read_is_said_to_have_been_read(tmp_path: Path):
    held = session(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        before(patch, executor, "_answer", lambda: parquet(tmp_path / "t.parquet", FRACTIONS))
        with pytest.raises(InternalError, match=r"changed while it was read(?s:.*)since rows had been read"):
            held.query(COUNT, epsilon=1)
    assert float(held.spent.epsilon) == 1


def test_a_single_query_reads_what_it_checked(tmp_path: Path):
    held = table(tmp_path, "Parquet")
    with pytest.MonkeyPatch.context() as patch:
        before(patch, query, "run", lambda: parquet(tmp_path / "t.parquet", FRACTIONS))
        with pytest.raises(InternalError, match="changed between"):
            dpsql.query({"t": held}, COUNT, epsilon=1)


def test_columns_are_checked_of_the_files_that_are_read(tmp_path: Path):
    """A file that is replaced while a session is being made was described before, and not looked at since."""
    file = tmp_path / "t.parquet"
    with pytest.MonkeyPatch.context() as patch:
        before(patch, FileStore, "__init__", lambda: parquet(file, FRACTIONS))
        held = session(tmp_path)
    with pytest.raises(InvalidSchema, match="other columns(?s:.*)Nothing was charged"):
        held.query(COUNT, epsilon=1)
    parquet(file)
    assert held.query(COUNT, epsilon=1)


def test_a_table_that_became_a_view_is_refused(tmp_path: Path):
    file = database(tmp_path / "t.duckdb")
    held = session(tmp_path, "a database")
    with duckdb.connect(str(file)) as base:
        base.execute("ALTER TABLE t RENAME TO s; CREATE VIEW t AS SELECT * FROM s WHERE x < 2")
    with pytest.raises(InvalidSchema, match="is a view(?s:.*)Nothing was charged"):
        held.query(COUNT, epsilon=1)
    assert held.ledger() == ()


# What fails without a row being read.


def assert_free(held: dpsql.Session, words: str) -> None:
    for sql in (COUNT, TWO_STEPS):
        with pytest.raises(InvalidSchema, match=f"{words}(?s:.*)Nothing was charged") as caught:
            held.query(sql, epsilon=1)
        assert caught.value.__context__ is None
    assert held.ledger() == ()
    assert held.spent.epsilon == 0


@pytest.mark.parametrize("harm", ["gone", "a file", "no descriptors"])
@pytest.mark.parametrize("kind", [*KINDS, "a frame"])
def test_a_spill_folder_that_cannot_be_used(tmp_path: Path, kind: str, harm: str):
    spill = tmp_path / "room"
    spill.mkdir()
    source = table(tmp_path, kind) if kind != "a frame" else dpsql.Table(duckdb.sql(UNITS).df(), bounds={"x": (0, 9)})
    held = dpsql.Session({"t": source}, budget=dpsql.Budget(9), engine="duckdb", spill=spill)
    assert held.query("SELECT COUNT(*) AS n FROM t WHERE x < 3", epsilon=1)
    held = dpsql.Session({"t": source}, budget=dpsql.Budget(9), engine="duckdb", spill=spill)
    shutil.rmtree(spill)
    if harm == "a file":
        spill.write_text("")
    with pytest.MonkeyPatch.context() as patch:
        if harm == "no descriptors":
            spill.mkdir()
            patch.setattr("tempfile.mkdtemp", refuse(OSError(24, "too many")))
        assert_free(held, "no folder can be made in .*room")
    if harm == "gone":
        spill.mkdir()
        assert held.query(COUNT, epsilon=1)
        assert list(spill.iterdir()) == []


def refuse(error: Exception) -> Callable[..., Any]:
    def raising(*_: Any, **__: Any) -> Any:
        raise error

    return raising


def test_a_file_that_this_user_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    held = session(tmp_path)
    file = tmp_path / "t.parquet"
    if os.getuid():
        file.chmod(0)
    else:  # who may read everything
        monkeypatch.setattr(open_sources.os, "open", refuse(PermissionError(13, "no")))
    assert_free(held, r"t\.parquet cannot be read: this user may not")


@pytest.mark.parametrize("kind", [*KINDS, "a frame"])
def test_a_process_without_descriptors(tmp_path: Path, kind: str):
    """All are taken, as of a server with many connections: `open` has none left."""
    source = table(tmp_path, kind) if kind != "a frame" else dpsql.Table(duckdb.sql(UNITS).df(), bounds={"x": (0, 9)})
    held = dpsql.Session({"t": source}, budget=dpsql.Budget(9), engine="duckdb")
    held.explain(TWO_STEPS, epsilon=1)
    held.explain(COUNT, epsilon=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        found = []
        for sql in (COUNT, TWO_STEPS):
            try:
                held.query(sql, epsilon=1)
            except InvalidSchema as error:
                found.append(str(error))
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(found) == 2, found
    assert all("Nothing was charged" in each for each in found)
    assert held.ledger() == ()
    assert held.query(COUNT, epsilon=1)


@pytest.mark.parametrize("failing", ["opened", "reach", "lock"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_that_does_not_start(tmp_path: Path, kind: str, failing: str, monkeypatch: pytest.MonkeyPatch):
    held = session(tmp_path, kind)
    monkeypatch.setattr(open_sources, failing, refuse(duckdb.IOException("of a cell: secret")))
    assert_free(held, r"DuckDB cannot open the tables of this question \(IOException\)")
    monkeypatch.undo()
    assert held.query(COUNT, epsilon=1)


def test_rows_that_were_read_are_said_to_have_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    held = session(tmp_path)
    monkeypatch.setattr(executor, "_answer", refuse(duckdb.IOException("of a cell: secret")))
    with pytest.raises(InternalError, match=r"the run failed \(IOException\)(?s:.*)since rows had been read") as caught:
        held.query(COUNT, epsilon=1)
    assert "secret" not in str(caught.value)
    assert float(held.spent.epsilon) == 1


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_is_held_is_let_go_of(tmp_path: Path):
    """Descriptors, and the database, which others can write to between two questions."""
    for kind in KINDS:
        held = session(tmp_path, kind)
        held.query(COUNT, epsilon=1)
        before_it = descriptors()
        for place in range(3):
            held.query(COUNT, epsilon=0.1 + place / 10)
        assert descriptors() == before_it
    database(tmp_path / "t.duckdb")


# Lies.


def never_look_at_files_again(patch: Patch) -> None:
    patch.setattr(open_sources.OpenSources, "is_same", lambda *_: True)


def check_nothing_of_the_columns(patch: Patch) -> None:
    patch.setattr(FileStore, "check_columns", lambda *_: None)


def one_person_of_two(folder: Path, where: str) -> Callable[[], None]:
    """The count of people whose unit is 0.6 or 1.4 now, in place of whole numbers: whoever reads it by the old plan
    releases something."""

    def check() -> None:
        held = session(folder)
        with pytest.MonkeyPatch.context() as patch:
            before(patch, sessions, where, lambda: parquet(folder / "t.parquet", FRACTIONS))
            try:
                held.query(COUNT, epsilon=1)
            except (InternalError, InvalidSchema) as error:
                assert "other columns" in str(error) or "changed" in str(error)  # noqa: PT017
            else:
                raise AssertionError("read by a plan for other columns")

    return check


@pytest.mark.parametrize(("lie", "where"), [(never_look_at_files_again, "run")])
def test_a_lie_is_caught(tmp_path: Path, lie: Callable[[Patch], None], where: str):
    assert_caught(lie, one_person_of_two(tmp_path, where))


def test_a_lie_about_columns_is_caught(tmp_path: Path):
    """As of a file that has other columns between two questions."""

    def check() -> None:
        held = session(tmp_path)
        held.query(COUNT, epsilon=1)
        parquet(tmp_path / "t.parquet", FRACTIONS)
        try:
            held.query("SELECT COUNT(*) AS n FROM t WHERE x < 4", epsilon=1)
        except InvalidSchema:
            return
        raise AssertionError("read by a plan for other columns")

    assert_caught(check_nothing_of_the_columns, check)


def open_sources_after_the_charge(patch: Patch) -> None:
    """As it was: each run opens its own."""
    patch.setattr("dpsql.executors.duckdb.engine.DuckDBEngine.open", lambda *_: open_sources.ExitStack())
    honest = executor.DuckDBExecutor.__init__

    def init(self: Any, stores: Any, resources: Any, sources: Any = None) -> None:
        assert not isinstance(sources, open_sources.OpenSources)
        honest(self, stores, resources)

    patch.setattr(executor.DuckDBExecutor, "__init__", init)
    patch.setattr("dpsql.session.run.OpenTables.stamps", property(lambda _: {}))


def test_a_lie_about_what_is_opened_before_the_charge_is_caught(tmp_path: Path):
    def check() -> None:
        spill = tmp_path / "room"
        spill.mkdir()
        held = session(tmp_path, spill=spill)
        spill.rmdir()
        with pytest.raises((InvalidSchema, InternalError)):
            held.query(COUNT, epsilon=1)
        assert held.ledger() == ()

    assert_caught(open_sources_after_the_charge, check)
