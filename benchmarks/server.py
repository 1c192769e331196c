"""What a server costs beside a library's session over the same rows, on this machine, by loopback, grid and limits off.

python benchmarks/server.py [ROWS]     # 100,000 rows if left out

Ratios and milliseconds of one run; nothing is asserted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import dpsql

TOML = """
[budget]
epsilon = 100000.0

[server]
grid = "off"
limits = "off"
max_runs = 1000000

[tables.people]
path = "people.csv"

[tables.people.columns]
age = { bounds = [0, 100] }
state = { keys = ["WA", "OR", "ID"] }
"""
DPSQL = [sys.executable, "-m", "dpsql"]
ANALYSTS = 4


def sql_of(number: int) -> str:
    """One question after another, none the same."""
    return f"SELECT state, COUNT(*) AS n, AVG(age) AS age FROM people WHERE age > {number / 1000} GROUP BY state"


@contextmanager
def served(schema: Path) -> Iterator[str]:
    """The address of a server over it."""
    command = [*DPSQL, "serve", str(schema), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = json.loads(process.stderr.readline())["address"]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            yield address
        finally:
            process.terminate()


def connected(address: str, schema: Path, name: str) -> dpsql.remote.client.RemoteSession:  # type: ignore[name-defined]
    """A connection of an analyst who was given a share."""
    words = ["--epsilon", "20000", "--tables", "people"]
    told = subprocess.run(
        [*DPSQL, "access", "add", name, "--schema", str(schema), *words], check=True, capture_output=True, text=True
    )
    os.environ["DPSQL_TOKEN"] = told.stdout.splitlines()[0]
    return dpsql.connect(address)


def milliseconds(act: Callable[[int], object], start: int, count: int) -> list[float]:
    """How long each of so many calls took, ascending."""
    taken = []
    for number in range(start, start + count):
        begin = time.perf_counter()
        act(number)
        taken.append(1000 * (time.perf_counter() - begin))
    return sorted(taken)


def a_second(acts: list[Callable[[int], object]], count: int) -> float:
    """Calls a second of several threads, each so many."""
    threads = [
        threading.Thread(target=milliseconds, args=(act, 10**6 * place, count)) for place, act in enumerate(acts, 1)
    ]
    begin = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return len(acts) * count / (time.perf_counter() - begin)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chance = np.random.default_rng(1)
    frame = pd.DataFrame({"age": chance.integers(0, 100, rows), "state": chance.choice(["WA", "OR", "ID"], rows)})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.to_csv(folder / "people.csv", index=False)
        schema, alone = folder / "people.toml", folder / "alone.toml"
        schema.write_text(TOML)
        alone.write_text(TOML)
        with served(schema) as address, dpsql.Session(schema=dpsql.Schema.from_toml(alone)) as session:
            clients = [connected(address, schema, f"analyst{each}") for each in range(ANALYSTS)]

            def local(number: int) -> object:
                return session.query(sql_of(number), epsilon=0.01)

            def remote(number: int) -> object:
                return clients[0].query(sql_of(number), epsilon=0.01)

            for act in (local, remote):
                milliseconds(act, 0, 20)
            here, there = milliseconds(local, 100, 200), milliseconds(remote, 100, 200)
            again_here, again_there = milliseconds(local, 100, 200), milliseconds(remote, 100, 200)
            print(f"{rows:,} rows, one analyst; milliseconds: median, 99th of 100")
            for what, one, other in (("new", here, there), ("replayed", again_here, again_there)):
                middle = [statistics.median(each) for each in (one, other)]
                late = [each[int(0.99 * len(each))] for each in (one, other)]
                print(
                    f"{what:<10} library {middle[0]:6.1f} {late[0]:6.1f}   server {middle[1]:6.1f} {late[1]:6.1f}"
                    f"   +{middle[1] - middle[0]:.1f}, {middle[1] / middle[0]:.2f} times"
                )
            acts = [lambda number, each=each: each.query(sql_of(number), epsilon=0.01) for each in clients]
            print(f"{ANALYSTS} analysts: {a_second(acts, 50):.0f} new questions a second")
            known = [lambda _, each=each, place=place: each.query(sql_of(10**6 * place), epsilon=0.01)
                     for place, each in enumerate(clients, 1)]  # fmt: skip
            print(f"{ANALYSTS} analysts: {a_second(known, 100):.0f} replays a second")


if __name__ == "__main__":
    main()
