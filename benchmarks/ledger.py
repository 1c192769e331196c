"""What a ledger costs: charging, checking and opening, beside a bare SQLite insert and commit.

python benchmarks/ledger.py [--entries 100 10000 100000] [--repeats 200] [--folder FOLDER] [--json FILE]

`charge` is a whole charge into the file: its lock, the entries of others read, the filter, the entry, its hash, the
commit. `without sync` is the same with PRAGMA synchronous = OFF on the store's connection, which nothing but this
script does: what the ledger itself takes, the disk aside. `bare` is one INSERT and COMMIT of the same text into a table
of SQLite under the same PRAGMAs, in a file of as many rows. Times are medians of interleaved runs; compare those of one
line.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median

from measure import Row, environment, seconds, show

from dpsql.core.cost import Cost
from dpsql.core.events import Pure
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import FileStore, open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules

RULES = Rules(Budget(10**6, Fraction(1, 10**6)))
COST = Cost.of(Fraction(1, 1000), Fraction(1, 10**15))
EVENTS = (Pure(epsilon=Fraction(1, 1000)),)
LABEL = "SELECT education, COUNT(*), AVG(age), SUM(income) FROM people WHERE hours > 40 GROUP BY education"


def charge(ledger: Ledger, parts: tuple[Part, ...] = ()) -> None:
    ledger.charge(COST, LABEL, events=EVENTS, parts=parts)


def connection_of(ledger: Ledger) -> sqlite3.Connection:
    store = ledger._store
    assert isinstance(store, FileStore)
    return store._connection


def sync(connection: sqlite3.Connection, *, on: bool) -> None:
    connection.execute(f"PRAGMA synchronous = {'EXTRA' if on else 'OFF'}")


def filled(path: Path, entries: int, parts: int = 0) -> Ledger:
    """A ledger of so many entries; with parts, each of them about one of so many parts."""
    ledger = open_ledger(path, RULES)
    sync(connection_of(ledger), on=False)
    for number in range(entries):
        charge(ledger, (part_of(number, parts),) if parts else ())
    sync(connection_of(ledger), on=True)
    return ledger


def part_of(number: int, parts: int) -> Part:
    return Part("people", "state#0123456789abcdef", f"text:{number % parts}")


def bare(path: Path, ledger: Ledger) -> tuple[sqlite3.Connection, str]:
    """A table of the same lines under the same PRAGMAs, and the text of one."""
    lines = connection_of(ledger).execute("SELECT number, text, hash FROM lines").fetchall()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO lines VALUES (?, ?, ?)", lines)
    connection.execute("COMMIT")
    return connection, lines[-1][1]


def insert(connection: sqlite3.Connection, text: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO lines (text, hash) VALUES (?, ?)", (text, "0" * 64))
    connection.execute("COMMIT")


def interleaved(repeats: int, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Medians in ms, without a collection of garbage before each: these are short."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for each in range(repeats):
        for name in list(runs) if each % 2 == 0 else reversed(runs):
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
    return {name: 1e3 * median(found) for name, found in times.items()}


def charging(folder: Path, entries: int, repeats: int, parts: int = 0) -> list[Row]:
    """Lines: with sync, without it."""
    ledger = filled(folder / f"{entries}_{parts}.ledger", entries, parts)
    simple, text = bare(folder / f"{entries}_{parts}.bare", ledger)
    asked = (part_of(7, parts),) if parts else ()
    what = f"{entries:,} entries{f' of {parts:,} parts' if parts else ''}"
    rows: list[Row] = []
    for on in (True, False):
        sync(connection_of(ledger), on=on)
        sync(simple, on=on)
        ms = interleaved(
            repeats if on else 5 * repeats,
            {
                "charge": lambda: charge(ledger, asked),
                "bare": lambda: insert(simple, text),
                "check": lambda: ledger.after(COST, asked),
            },
        )
        rows.append(
            {
                "ledger": what if on else f"{what}, without sync",
                "charge ms": ms["charge"],
                "bare insert ms": ms["bare"],
                "ratio": ms["charge"] / ms["bare"],
                "ask what would remain ms": ms["check"],
            }
        )
    simple.close()
    ledger.close()
    return rows


def opening(folder: Path, entries: int, repeats: int) -> Row:
    """Opening a ledger: every line read, every hash checked."""
    path = folder / f"opened_{entries}.ledger"
    filled(path, entries).close()

    def plain() -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA integrity_check(1)").fetchall()
        connection.execute("SELECT number, text, hash FROM lines ORDER BY number").fetchall()
        connection.close()

    times = {"open": [], "plain": [], "cpu": []}  # type: dict[str, list[float]]

    def opened_once() -> None:
        before = time.process_time()
        open_ledger(path).close()
        times["cpu"].append(time.process_time() - before)

    for _ in range(max(3, repeats // 40)):
        times["open"].append(seconds(opened_once))
        times["plain"].append(seconds(plain))
    opened, read = (1e3 * median(times[name]) for name in ("open", "plain"))
    return {
        "ledger": f"{entries:,} entries",
        "open ms": opened,
        "of CPU ms": 1e3 * median(times["cpu"]),
        "SQLite alone: check and read ms": read,
        "ratio": opened / read,
        "microseconds an entry": 1e3 * opened / entries,
        "MB": path.stat().st_size / 1e6,
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--entries", type=int, nargs="+", default=[100, 10_000])
    words.add_argument("--repeats", type=int, default=200)
    words.add_argument("--folder", type=Path, help="where the files are made: which disk is measured")
    words.add_argument("--json", type=Path)
    said = words.parse_args()
    with tempfile.TemporaryDirectory(dir=said.folder) as name:
        folder = Path(name)
        charged = [row for entries in said.entries for row in charging(folder, entries, said.repeats)]
        charged += charging(folder, max(said.entries), said.repeats, parts=1000)
        opened = [opening(folder, entries, said.repeats) for entries in said.entries]
    show("Charging", charged, "A charge into a file that holds so many entries already.")
    show("Opening", opened, "All lines read, all hashes checked.")
    if said.json:
        said.json.write_text(
            json.dumps({"environment": environment(), "charging": charged, "opening": opened}, indent=1)
        )


if __name__ == "__main__":
    main()
