"""What monitoring reads, and workers that take more memory than they may have."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpsql.errors import DPSQLError, InvalidArgument, InvalidSchema
from dpsql.remote.server import workers as crew_module
from dpsql.remote.server.messages import OK, Config
from dpsql.remote.server.metrics import told_at
from dpsql.remote.server.workers import Files, Worker, WorkerEnded, WorkerTooLarge
from dpsql.session.server_settings import ServerWords
from tests.remote.serving import PLANTED, Server, serving, shop, token_for

pytestmark = [
    pytest.mark.xdist_group("server"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sockets of Unix, and /proc"),
]
MEGABYTE = 10**6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    schema = shop(tmp_path_factory.mktemp("shop"), server='grid = "off"\nmetrics = "m.sock"', rows=300)
    with serving(schema) as served:
        yield served


def asked(server: Server, path: str = "/metrics", method: str = "GET") -> httpx.Response:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(server.schema.parent / "m.sock"))) as client:
        return client.request(method, f"http://localhost{path}")


def test_metrics_are_counts_for_the_owner_alone(server: Server):
    token = token_for(server.schema, "zoe")
    for key in ("secret-key-1", "secret-key-2"):
        assert server.ask(token, key=key).status_code == 200
    assert server.ask(token, f"SELECT COUNT(*) AS n FROM customers WHERE city = '{PLANTED}' AND").status_code == 400
    path = server.schema.parent / "m.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = asked(server).text
    lines = text.splitlines()
    assert 'dpsql_queries_total{status="200",replayed="false"} 1' in lines
    assert 'dpsql_queries_total{status="200",replayed="true"} 1' in lines
    assert 'dpsql_queries_total{status="400",replayed="false"} 1' in lines
    assert "dpsql_up 1" in lines
    assert "dpsql_queries_open 0" in lines
    (memory,) = (line for line in lines if line.startswith('dpsql_worker_resident_bytes{worker="planner"}'))
    assert 20 * MEGABYTE < int(memory.split()[-1]) < 2000 * MEGABYTE
    for hidden in ("zoe", "secret-key", PLANTED, token, "customers", str(server.schema)):
        assert hidden not in text


def test_all_else_at_the_socket_is_nothing(server: Server):
    assert asked(server, "/v1/budget").status_code == 404
    assert asked(server, method="POST").status_code == 404
    with socket.socket(socket.AF_UNIX) as endless:
        endless.settimeout(20)
        endless.connect(str(server.schema.parent / "m.sock"))
        with contextlib.suppress(OSError):
            endless.sendall(b"a" * 100_000)
            assert endless.recv(100) == b""
    assert asked(server).status_code == 200


def test_the_socket_goes_with_the_server(tmp_path: Path):
    schema = shop(tmp_path, rows=50)
    with serving(schema, "--metrics", "m.sock") as server:
        server.kill()
    assert (tmp_path / "m.sock").exists()  # nobody was there to put it away
    with serving(schema, "--metrics", "m.sock") as server:
        assert asked(server).status_code == 200
        assert server.stop() == 0
    assert not (tmp_path / "m.sock").exists()


def test_no_other_file_is_put_away(tmp_path: Path):
    file = tmp_path / "precious"
    file.write_text("x")

    async def made(path: Path) -> None:
        async with told_at(path, str):
            pass

    for path in (file, tmp_path / "no" / "m", tmp_path / ("x" * 200)):
        with pytest.raises(InvalidArgument, match="no socket can be made"):
            asyncio.run(made(path))
    assert file.read_text() == "x"
    with socket.socket(socket.AF_UNIX) as used:
        used.bind(str(tmp_path / "used"))
        used.listen()
        with pytest.raises(InvalidArgument, match="no socket can be made"):
            asyncio.run(made(tmp_path / "used"))
    asyncio.run(made(tmp_path / "used"))  # nobody listens there any more


@pytest.mark.parametrize(("word", "text"), [("worker_memory", "1"), ("worker_memory", "50MB"), ("metrics", "")])
def test_words_are_read_strictly(word: str, text: str):
    with pytest.raises(DPSQLError):
        ServerWords.read(word, text)
    assert ServerWords.read("worker_memory", "4GB") == 4 * 10**9


def hungry(there: Any, _config: Config) -> None:
    """A worker that takes as many bytes as it is told."""
    there.send({"outcome": OK, "stamps": {}})
    with contextlib.suppress(EOFError):
        while True:
            taken = b"x" * there.recv()["bytes"]
            time.sleep(0.3)
            there.send({"outcome": OK, "bytes": len(taken)})


def too_hungry_to_start(_there: Any, _config: Config) -> None:
    taken = b"x" * 300 * MEGABYTE
    time.sleep(30 + len(taken) * 0)


def of(memory: int | None) -> Worker:
    return Worker(Config("shop.toml", "run", ServerWords(worker_memory=memory)), Files())


def test_a_worker_that_takes_too_much_memory_is_ended_and_begun_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crew_module, "work", hungry)
    worker = of(300 * MEGABYTE)
    most = 400 * MEGABYTE

    async def asked() -> None:
        await worker.start()
        assert (await worker.call({"bytes": MEGABYTE}, 20))["bytes"] == MEGABYTE
        before = worker.memory
        assert before is not None
        with pytest.raises(WorkerTooLarge) as ended:
            await worker.call({"bytes": most}, 20)
        assert isinstance(ended.value, WorkerEnded)
        assert ended.value.reason == "died"
        assert worker.ended == {"memory": 1}
        assert worker.memory is None
        assert (await worker.call({"bytes": MEGABYTE}, 20))["bytes"] == MEGABYTE  # by another process
        with pytest.raises(WorkerEnded, match="deadline"):
            await worker.call({"bytes": MEGABYTE}, 0.1)

    try:
        asyncio.run(asked())
    finally:
        worker.stop()


def test_without_a_limit_it_has_what_there_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crew_module, "work", hungry)
    worker = of(None)

    async def asked() -> None:
        await worker.start()
        assert (await worker.call({"bytes": 400 * MEGABYTE}, 20))["outcome"] == OK

    try:
        asyncio.run(asked())
    finally:
        worker.stop()


def test_tables_that_need_more_than_that_are_not_served(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crew_module, "work", too_hungry_to_start)
    worker = of(250 * MEGABYTE)
    try:
        with pytest.raises(InvalidSchema, match="more memory for the tables"):
            asyncio.run(worker.start())
    finally:
        worker.stop()
