"""What a server costs beside a library's session over the same rows, on this machine, by loopback, grid and limits off.

python benchmarks/server.py [ROWS]            # 100,000 rows if left out
python benchmarks/server.py [ROWS] --whole    # and then 5,000 new questions and 100,000 replays by four analysts

Ratios and milliseconds of one run, by the clock and of the processor; nothing is asserted. The table has a version, so
that the library keeps its answers in its ledger as a server does. Replays are of 50 questions an analyst.
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

import httpx
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
version = "1"

[tables.people.columns]
age = { bounds = [0, 100] }
state = { keys = ["WA", "OR", "ID"] }
"""
DPSQL = [sys.executable, "-m", "dpsql"]
ANALYSTS = 4
KNOWN = 50
"""Questions of each analyst that are asked again and again."""
NEW, REPLAYS, LOOKS = 5_000, 100_000, 10


def sql_of(number: int) -> str:
    """One question after another, none the same."""
    return f"SELECT state, COUNT(*) AS n, AVG(age) AS age FROM people WHERE age > {number / 1000} GROUP BY state"


@contextmanager
def served(schema: Path) -> Iterator[tuple[str, int]]:
    """The address of a server over it, and its process."""
    command = [*DPSQL, "serve", str(schema), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = json.loads(process.stderr.readline())["address"]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            while httpx.get(f"{address}/healthz").json()["status"] != "ok":
                time.sleep(0.1)
            yield address, process.pid
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


def workers_of(server: int) -> list[int]:
    """The processes that come from it, at any distance: the one that plans is the first of those that hold tables."""
    found = [server]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [pid for pid in found[1:] if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def used(pid: int) -> float:
    """Milliseconds of the processor so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes that are resident."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def milliseconds(act: Callable[[int], object], start: int, count: int) -> list[float]:
    """How long each of so many calls took, ascending."""
    taken = []
    for number in range(start, start + count):
        begin = time.perf_counter()
        act(number)
        taken.append(1000 * (time.perf_counter() - begin))
    return sorted(taken)


def a_second(acts: list[Callable[[int], object]], count: int, start: int, server: int) -> str:
    """Calls a second of several threads, each so many; and what each takes of the processor, here and there."""
    threads = [
        threading.Thread(target=milliseconds, args=(act, 10**6 * place + start, count))
        for place, act in enumerate(acts, 1)
    ]
    pids = {"server": [server], "workers": workers_of(server)}
    begin, own = time.perf_counter(), time.process_time()
    before = {pid: used(pid) for each in pids.values() for pid in each}
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    calls = len(acts) * count
    took = {"clients": 1000 * (time.process_time() - own)}
    there = {server, *workers_of(server)}  # one that ended meanwhile, by its deadline on a busy machine, is left out
    took |= {name: sum(used(pid) - before[pid] for pid in there & {*each}) for name, each in pids.items()}
    processor = ", ".join(f"{name} {each / calls:.2f}" for name, each in took.items())
    return f"{calls / (time.perf_counter() - begin):.0f} a second; ms of the processor each: {processor}"


def compared(local: Callable[[int], object], remote: Callable[[int], object]) -> None:
    """One analyst and a library's session, by turns, so that a busy machine is as busy for both."""
    for act in (local, remote):
        milliseconds(act, 0, 20)
    found: dict[str, tuple[list[float], list[float]]] = {"new": ([], []), "replayed": ([], [])}
    for start in range(100, 300, 20):
        for each in found.values():
            for one, act in zip(each, (local, remote), strict=True):
                one.extend(milliseconds(act, start, 20))
    for what, both in found.items():
        middle = [statistics.median(each) for each in both]
        late = [sorted(each)[int(0.99 * len(each))] for each in both]
        print(
            f"{what:<10} library {middle[0]:6.1f} {late[0]:6.1f}   server {middle[1]:6.1f} {late[1]:6.1f}"
            f"   +{middle[1] - middle[0]:.1f}, {middle[1] / middle[0]:.2f} times"
        )


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    rows = numbers[0] if numbers else 100_000
    chance = np.random.default_rng(1)
    frame = pd.DataFrame({"age": chance.integers(0, 100, rows), "state": chance.choice(["WA", "OR", "ID"], rows)})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.to_csv(folder / "people.csv", index=False)
        schema, alone = folder / "people.toml", folder / "alone.toml"
        schema.write_text(TOML)
        alone.write_text(TOML)
        with served(schema) as (address, pid), dpsql.Session(schema=dpsql.Schema.from_toml(alone)) as session:
            clients = [connected(address, schema, f"analyst{each}") for each in range(ANALYSTS)]

            def local(number: int) -> object:
                return session.query(sql_of(number), epsilon=0.01)

            def remote(number: int) -> object:
                return clients[0].query(sql_of(number), epsilon=0.01)

            print(f"{rows:,} rows, one analyst; milliseconds: median, 99th of 100")
            compared(local, remote)
            acts = [lambda number, each=each: each.query(sql_of(number), epsilon=0.01) for each in clients]
            known = [lambda number, act=act: act(number - number % 10**6 + number % KNOWN) for act in acts]
            print(f"{ANALYSTS} analysts, new: {a_second(acts, KNOWN, 0, pid)}")
            a_second(known, KNOWN, 0, pid)
            print(f"{ANALYSTS} analysts, replays: {a_second(known, 200, 0, pid)}")
            if "--whole" in sys.argv:
                whole(acts, known, pid)


def whole(acts: list[Callable[[int], object]], known: list[Callable[[int], object]], pid: int) -> None:
    """Many of both, with what memory the server and its workers have in between."""
    for what, which, count in (("new", acts, NEW), ("replays", known, REPLAYS)):
        for look in range(LOOKS):
            told = a_second(which, count // ANALYSTS // LOOKS, KNOWN + look * count, pid)
            sizes = ", ".join(f"{memory(each):.0f}" for each in [pid, *workers_of(pid)])
            print(f"{(look + 1) * count // LOOKS:>7,} {what}: {told}; MB: {sizes}", flush=True)


if __name__ == "__main__":
    main()
