"""A server in a process of its own, for tests that look at it from outside."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

import dpsql
from dpsql.owner import access
from dpsql.session.owner_file import Schema

TOML = """
[budget]
epsilon = {epsilon}
delta = 1e-5

[server]
{server}

[tables.customers]
path = "customers.csv"
version = "1"
unit = "id"
unique = ["id"]
max_rows = 1

[tables.customers.columns]
id = {{ type = "integer" }}
country = {{ keys = ["DE", "FR", "NO"] }}
age = {{ bounds = [18, 90] }}
city = {{ type = "text" }}

[tables.orders]
path = "orders.csv"
version = "1"
unit = "customer -> customers.id"
max_rows = 5

[tables.orders.columns]
customer = {{ type = "integer" }}
total = {{ bounds = [0, 80] }}
day = {{ type = "date" }}

[tables.visits]
path = "visits.csv"
version = "1"
unit = "row"

[tables.visits.columns]
seconds = {{ bounds = [0, 100] }}
"""
COUNT = "SELECT COUNT(*) AS n FROM customers"
BY_COUNTRY = "SELECT country, COUNT(*) AS n, AVG(age) AS age FROM customers GROUP BY country"
PLANTED = "Zyzzyxburg"
"""A value of one person's row."""
_numbers = itertools.count()


def shop(folder: Path, *, server: str = 'grid = "off"', epsilon: float = 100.0, rows: int = 2000) -> Path:
    """An owner's file with its data."""
    chance = np.random.default_rng(1)
    customers = {"id": range(rows), "country": chance.choice(["DE", "FR", "NO"], rows)}
    customers |= {"age": chance.integers(18, 90, rows), "city": [PLANTED, *["Lyon"] * (rows - 1)]}
    days = [f"2026-01-{1 + n % 28:02}" for n in range(3 * rows)]
    orders = {"customer": chance.integers(0, rows, 3 * rows), "total": chance.integers(0, 80, 3 * rows), "day": days}
    pd.DataFrame(customers).to_csv(folder / "customers.csv", index=False)
    pd.DataFrame(orders).to_csv(folder / "orders.csv", index=False)
    pd.DataFrame({"seconds": chance.integers(0, 100, rows)}).to_csv(folder / "visits.csv", index=False)
    schema = folder / "shop.toml"
    schema.write_text(TOML.format(server=server, epsilon=epsilon))
    return schema


def token_for(schema: Path, name: str, *, epsilon: float = 10.0, tables: str = "customers,orders", **more: Any) -> str:
    words = {"delta": 1e-6, "days": 1.0, **more}
    return access.add(Schema.from_toml(schema), name, epsilon=epsilon, tables=tables.split(","), **words)


@dataclass
class Server:
    """One that runs: its address, its process, and what it has written to standard error."""

    schema: Path
    address: str
    process: subprocess.Popen[str]
    log: list[str] = field(default_factory=list)

    def ask(self, token: str, sql: str = COUNT, key: str | None = None, wait: int = 30, **terms: Any) -> httpx.Response:
        """POST /v1/queries."""
        headers = {"Idempotency-Key": key or f"key-{next(_numbers)}", "Prefer": f"wait={wait}"}
        return self.send("POST", "/v1/queries", token, headers=headers, json={"sql": sql, "epsilon": 0.01, **terms})

    def send(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
        return httpx.request(method, f"{self.address}{path}", headers=headers, timeout=60, **more)

    @property
    def host(self) -> tuple[str, int]:
        name, _, port = self.address.partition("://")[2].rpartition(":")
        return name, int(port)

    def workers(self) -> list[int]:
        """The processes that hold tables; and that which they come from, first."""
        first = sorted(pid for pid in _children(self.process.pid) if b"forkserver" in _command(pid))
        return [*first, *sorted(child for pid in first for child in _children(pid))]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in (json.loads(line) for line in [*self.log] if line[:1] == "{") if each["event"] == kind]


def _children(pid: int) -> set[int]:
    with suppress(FileNotFoundError):  # it has ended
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return {int(each) for task in tasks for each in (task / "children").read_text().split()}
    return set()


def _command(pid: int) -> bytes:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def serving(schema: Path, *options: str) -> Iterator[Server]:
    """A server on a free port, until the block ends."""
    command = [sys.executable, "-m", "dpsql", "serve", str(schema), "--port", "0", *options]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(dpsql.__file__).parent.parent), *sys.path]),
    }
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr is not None
    log: list[str] = []
    first = process.stderr.readline()
    try:
        log.append(first)
        try:
            address = json.loads(first)["address"]
        except ValueError:
            raise AssertionError(first + process.stderr.read()) from None
        reading = threading.Thread(target=lambda: log.extend(process.stderr), daemon=True)  # type: ignore[arg-type]
        reading.start()
        server = Server(schema, address, process, log)
        until(lambda: process.poll() is not None or server.events("ready"), 120)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close() if process.poll() is None else None


def until(what: Any, seconds: float = 20.0) -> None:
    """Wait until it is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
