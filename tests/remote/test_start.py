"""From the owner's file to a page: what is loaded by whom, and what is asked before there are tables."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpsql.errors import DPSQLError, InvalidSchema
from dpsql.remote.server import workers as crew_module
from dpsql.remote.server.messages import Config
from dpsql.remote.server.workers import Crew, Worker, WorkerEnded
from tests.remote.serving import COUNT, _children, _command, serving, shop, token_for, until
from tests.test_architecture import modules

pytestmark = pytest.mark.xdist_group("server")
HEAVY = ("pandas", "pyarrow", "duckdb", "sqlglot", "dpsql.executors.base", "dpsql.release.release")
_IMPORTS = "dpsql.shell.cli, dpsql.shell.owner.serve, dpsql.remote.server.app, dpsql.remote.server.protocol"


def test_the_process_that_speaks_http_loads_no_table_and_no_parser():
    code = f"import sys, {_IMPORTS}; print(*(each for each in {HEAVY!r} if each in sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_workers_have_loaded_all_that_a_question_may_need():
    """A first question of some kind takes no longer than a second one."""
    code = "import sys; from dpsql.remote.server import loaded; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = tuple(
        f"dpsql.{room}."
        for room in ("plan", "core", "postprocess", "sql", "accuracy", "release", "answer", "session", "executors")
    )
    needed = {each for each in modules() if each.startswith(rooms) and not each.startswith("dpsql.executors.spark")}
    assert len(needed) > 200
    assert needed <= set(told.stdout.split())


class Slow:
    """Stands for a worker that loads its tables when it is told to."""

    def __init__(self, _config: Config, _files: object) -> None:
        self.asked: list[Any] = []

    async def start(self) -> None:
        await gate.wait()
        if broken:
            raise InvalidSchema("the tables cannot be loaded.")

    async def call(self, message: Any, _deadline: float) -> dict[str, Any]:
        return {"outcome": "ok", "of": message}


gate, broken = asyncio.Event(), False


def crew_of(monkeypatch: pytest.MonkeyPatch, *, breaks: bool) -> Crew:
    monkeypatch.setattr(sys.modules[__name__], "gate", asyncio.Event())
    monkeypatch.setattr(sys.modules[__name__], "broken", breaks)
    monkeypatch.setattr(crew_module, "Worker", Slow)
    return Crew(Config("shop.toml", "run"), runners=1, deadline=1)


def test_what_is_asked_before_the_tables_are_there_waits(monkeypatch: pytest.MonkeyPatch):
    async def look() -> None:
        crew = crew_of(monkeypatch, breaks=False)
        starting = asyncio.create_task(crew.start())
        waiting = [asyncio.create_task(act({"analyst": "ann"})) for act in (crew.plan, crew.run)]
        await asyncio.sleep(0.01)
        assert not crew.ready
        assert not any(each.done() for each in waiting)
        gate.set()
        await starting
        assert crew.ready
        assert [reply["outcome"] for reply in await asyncio.gather(*waiting)] == ["ok", "ok"]

    asyncio.run(look())


def test_where_the_tables_cannot_be_read_nothing_was_charged(monkeypatch: pytest.MonkeyPatch):
    async def look() -> None:
        crew = crew_of(monkeypatch, breaks=True)
        waiting = asyncio.create_task(crew.plan({"analyst": "ann"}))
        gate.set()
        with pytest.raises(DPSQLError, match="cannot be loaded"):
            await crew.start()
        with pytest.raises(WorkerEnded, match="unsent"):
            await waiting
        monkeypatch.setattr(crew_module, "_PATIENCE", 0.01)
        late = crew_of(monkeypatch, breaks=False)
        with pytest.raises(WorkerEnded, match="unsent"):
            await late.plan({"analyst": "ann"})

    asyncio.run(look())


def test_a_worker_that_cannot_be_begun_never_had_the_message(monkeypatch: pytest.MonkeyPatch):
    """What workers come from may be killed at any moment."""

    class Unborn:
        def Pipe(self) -> Any:  # noqa: N802 - as multiprocessing writes it
            return multiprocessing.Pipe()

        def Process(self, **_: Any) -> Any:  # noqa: N802
            class Process:
                def start(self) -> None:
                    raise EOFError

            return Process()

    async def look() -> None:
        worker = Worker(Config("shop.toml", "run"), crew_module.Files())
        with monkeypatch.context() as patch:
            patch.setattr(crew_module, "context", Unborn)
            with pytest.raises(WorkerEnded, match="unsent"):
                await worker.call({}, 1)
        worker.stop()

    asyncio.run(look())


def test_workers_are_begun_one_at_a_time(monkeypatch: pytest.MonkeyPatch):
    """Where the process that they come from was killed, Python begins it anew in steps, and a second start in between
    failed with a TypeError: a server's fault told to whoever had asked."""
    starting, most = 0, 0

    class Process:
        def start(self) -> None:
            nonlocal starting, most
            starting += 1
            most = max(most, starting)
            time.sleep(0.05)
            starting -= 1
            raise EOFError

    class Unborn:
        def Pipe(self) -> Any:  # noqa: N802 - as multiprocessing writes it
            return multiprocessing.Pipe()

        def Process(self, **_: Any) -> Any:  # noqa: N802
            return Process()

    async def look() -> None:
        workers = [Worker(Config("shop.toml", "run"), crew_module.Files()) for _ in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(crew_module, "context", Unborn)
            told = await asyncio.gather(*(each.call({}, 1) for each in workers), return_exceptions=True)
        assert [type(each) for each in told] == [WorkerEnded] * 3
        for each in workers:
            each.stop()

    asyncio.run(look())
    assert most == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is loaded")
def test_a_server_that_is_killed_while_it_loads_leaves_nothing(tmp_path: Path):
    schema = shop(tmp_path, rows=20)
    command = [sys.executable, "-m", "dpsql", "serve", str(schema), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: any(loads(pid) for pid in _children(process.pid)), 60)
        (pid,) = filter(loads, _children(process.pid))
        until(lambda: "numpy" in Path(f"/proc/{pid}/maps").read_text(), 60)  # it is about to load the rest
        process.kill()
        process.wait()
        start = time.monotonic()
        until(lambda: not loads(pid), 60)
        assert time.monotonic() - start < 0.5, "to load takes longer"


def loads(pid: int) -> bool:
    return b"forkserver" in _command(pid)


def test_tables_that_cannot_be_read_end_the_server(tmp_path: Path):
    """With its error and exit code 2, whatever was asked meanwhile."""
    schema = shop(tmp_path, rows=20)
    token = token_for(schema, "ann")
    (tmp_path / "visits.csv").unlink()
    with serving(schema) as server:
        with pytest.raises((httpx.HTTPError, AssertionError)):
            assert server.ask(token, COUNT).status_code == 200
        assert server.process.wait(60) == 2
        assert any("visits" in line for line in server.log)
