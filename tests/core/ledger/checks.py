"""Checks of the ledger that the honest tests and the planted lies share: each raises AssertionError where it fails.

They look from outside: at the file through SQLite alone, at other processes, at exact answers beside what was charged.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.ledger.account import Account
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, DPSQLError, LedgerError
from dpsql.executors.pandas import executor as pandas

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that begin as copies of this one")
TENTH = Cost.of(Fraction(1, 10))


def rules(epsilon: object = 10, delta: object = 0, accountant: str = "basic", **more: Any) -> Rules:
    return Rules(Budget(epsilon, delta, **more), accountant)


def cost(epsilon: object, delta: object = 0) -> Cost:
    return Cost.of(Fraction(epsilon), Fraction(delta))  # type: ignore[arg-type]


# The file, seen by SQLite alone


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's connection; what it does is committed at the end."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def edit(path: Path, *statements: str) -> None:
    with raw(path) as connection:
        for each in statements:
            connection.execute(each)


def texts(path: Path) -> list[dict[str, Any]]:
    """The lines of the file, as JSON."""
    with raw(path) as connection:
        return [json.loads(text) for (text,) in connection.execute("SELECT text FROM lines ORDER BY number")]


def charges(path: Path) -> list[dict[str, Any]]:
    return [line for line in texts(path) if "query" in line]


def epsilon_on_disk(path: Path) -> Fraction:
    return sum((Fraction(line["epsilon"]) for line in charges(path)), Fraction(0))


def hashes(exported: str) -> tuple[list[str], list[str]]:
    """Of an exported ledger: the hashes it names, and the same made here, from the words of the manual alone."""

    def compact(said: object) -> str:
        return json.dumps(said, ensure_ascii=True, separators=(",", ":"))

    said = json.loads(exported)
    made, named = hashlib.sha256(("dpsql ledger\n" + compact(said["rules"])).encode()).hexdigest(), []
    own = []
    for line in said["lines"]:
        number = line.pop("number")
        named.append(line.pop("hash"))
        made = hashlib.sha256(f"{made}\n{number}\n{compact(line)}".encode()).hexdigest()
        own.append(made)
    return named, own


def rehash(path: Path) -> None:
    """What someone does who edits a file and knows how its hashes are made."""
    with raw(path) as connection:
        (text,) = connection.execute("SELECT text FROM rules").fetchone()
        before = hashlib.sha256(f"dpsql ledger\n{text}".encode()).hexdigest()
        for number, line in connection.execute("SELECT number, text FROM lines ORDER BY number").fetchall():
            before = hashlib.sha256(f"{before}\n{number}\n{line}".encode()).hexdigest()
            connection.execute("UPDATE lines SET hash = ? WHERE number = ?", (before, number))


# Other processes


@dataclass
class Child:
    """A process that began as a copy of this one, and what it wrote to its pipe."""

    pid: int
    pipe: int

    def read(self) -> bytes:
        """All that it writes until it ends."""
        found = b""
        while chunk := os.read(self.pipe, 65536):
            found += chunk
        os.close(self.pipe)
        os.waitpid(self.pid, 0)
        return found

    def said(self) -> Any:
        found = self.read()
        assert found, "the child ended without a word"
        return json.loads(found)

    def kill(self) -> bytes:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.read()


def fork(run: Callable[[int], object]) -> Child:
    """A child that runs a function of its pipe's end, and nothing else."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    try:
        os.close(reading)
        run(writing)
    except BaseException as error:  # noqa: BLE001 - told to the parent
        with suppress(OSError):
            os.write(writing, json.dumps(f"{type(error).__name__}: {error}").encode())
    finally:
        os._exit(0)


def fork_to_say(run: Callable[[], object]) -> Child:
    """A child that says what a function returns, as JSON."""
    return fork(lambda pipe: os.write(pipe, json.dumps(run()).encode()))


# Tables and sessions

SECRET = "Melchisedek"
"""A cell that no message may hold."""


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "city": ["a", "b", "a", SECRET, "c"] * 8,
            "age": np.array([20, 30, 40, 123457, 25] * 8),
            "income": np.array([1.5, 2.5, 0.0, 98765.25, 3.0] * 8),
        }
    )


def table(**more: Any) -> dpsql.Table:
    words: dict[str, Any] = {
        "version": "1",
        "bounds": {"age": (0, 100), "income": (0, 10)},
        "keys": {"city": ["a", "b"]},
    }
    return dpsql.Table(people(), **{**words, **more})


def session(path: Path | None = None, *, budget: Budget | None = None, **more: Any) -> dpsql.Session:
    words: dict[str, Any] = {"budget": budget or Budget(10, 1e-6), "ledger": path}
    return dpsql.Session({"people": table()}, **{**words, **more})


COUNT = "SELECT COUNT(*) FROM people"


def values(result: Any) -> list[Any]:
    """Every cell, told apart to the last bit."""
    frame = result.to_pandas()
    return [[type(cell).__name__ + repr(cell) for cell in frame[name].tolist()] for name in frame.columns]


# Checks


def check_charged_before_rows(folder: Path) -> None:
    """While rows are read, the charge is in the file already, for everybody to see."""
    path = folder / "before.ledger"
    seen: list[int] = []
    honest = pandas.PandasExecutor.execute

    def execute(self: Any, *args: Any, **more: Any) -> Any:
        seen.append(fork_to_say(lambda: len(charges(path))).said())
        return honest(self, *args, **more)

    with pytest.MonkeyPatch.context() as patch, session(path) as asked:
        patch.setattr(pandas.PandasExecutor, "execute", execute)
        for _ in range(3):
            asked.query(COUNT, epsilon=1, fresh=True)
    assert seen == [1, 2, 3], f"charges in the file while queries ran: {seen}"


def check_durable(folder: Path) -> None:
    """Each commit is synced: the file's pages, its journal and the journal's removal."""
    ledger = open_ledger(folder / "durable.ledger", rules())
    connection = ledger._store._connection  # type: ignore[attr-defined]
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,), "not synchronous=EXTRA"
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",), "not a rollback journal"
    ledger.charge(TENTH, "q")
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,), "not synchronous=EXTRA after a charge"
    assert not connection.in_transaction, "a charge that is not committed"
    ledger.close()
    assert [each.name for each in folder.glob("durable*")] == ["durable.ledger"], "more than one file"


def check_last_digit(folder: Path) -> None:
    """Budgets are spent to the last digit, and not one digit further."""
    for number, path in enumerate((None, folder / "digit.ledger")):
        ledger = Ledger(rules(Fraction(1, 3))) if path is None else open_ledger(path, rules(Fraction(1, 3)))
        for _ in range(3):
            ledger.charge(cost(Fraction(1, 9)), "a ninth")
        before = len(ledger.entries)
        assert ledger.remaining.epsilon == 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(cost(Fraction(1, 10**30)), "a little more")
        assert len(ledger.entries) == before == 3, f"store {number}"
        assert ledger.spent.epsilon == Fraction(1, 3)
    ledger = Ledger(rules(Fraction(3, 10)))
    for _ in range(2):
        ledger.charge(TENTH, "q")
    with pytest.raises(BudgetExceeded):
        ledger.charge(cost(Fraction(1, 10) + Fraction(1, 10**40)), "too much by 1e-40")
    ledger.charge(TENTH, "three times 0.1 is 0.3")
    deltas = Ledger(rules(5, Fraction(1, 10**6)))
    deltas.charge(cost(1, Fraction(1, 10**6)), "all of delta")
    with pytest.raises(BudgetExceeded):
        deltas.charge(cost(1, Fraction(1, 10**90)), "more delta")


def check_refusals_are_free(folder: Path) -> None:
    """A charge that is refused writes nothing, and runs nothing."""
    path = folder / "refused.ledger"
    with pytest.MonkeyPatch.context() as patch, session(path, budget=Budget(1)) as asked:
        asked.query(COUNT, epsilon=0.75)
        before, held, anchor = path.read_bytes(), asked.spent, asked.ledger_anchor
        patch.setattr(pandas.PandasExecutor, "execute", lambda *_: pytest.fail("rows were read"))
        for sql, more in (
            (COUNT, {"epsilon": 0.3, "fresh": True}),
            ("SELECT COUNT(*) FROM people WHERE age > 3", {"epsilon": 0.25000001}),
            ("SELECT age FROM people", {"epsilon": 0.1}),
            ("SELECT COUNT(*) FROM nobody", {"epsilon": 0.1}),
            ("SELECT COUNT(*) FROM people", {"epsilon": -1}),
            ("SELECT COUNT(*) FROM people", {"epsilon": float("nan")}),
            ("SELECT city, COUNT(*) FROM people", {"epsilon": 0.1}),
        ):
            with pytest.raises(DPSQLError):
                asked.query(sql, **more)
        assert path.read_bytes() == before, "a refusal changed the file"
        assert (asked.spent, asked.ledger_anchor, len(asked.ledger())) == (held, anchor, 1)


def check_shares(folder: Path) -> None:
    """Each analyst within his own share, all together within the whole."""
    path = folder / "shares.ledger"
    held = rules(3, analysts={"ann": Budget(1), "bob": Budget(Fraction(3, 2)), "*": Budget(Fraction(1, 2))})
    who = {name: open_ledger(path, held, analyst=name) for name in ("ann", "bob", "cyd", "dan")}
    who["ann"].charge(cost(1), "q")
    for name, much in (
        ("ann", Fraction(1, 10**9)),
        ("bob", Fraction(3, 2) + Fraction(1, 10**9)),
        ("cyd", Fraction(51, 100)),
    ):
        with pytest.raises(BudgetExceeded, match=name):
            who[name].charge(cost(much), "more than the share")
    who["cyd"].charge(cost(Fraction(1, 2)), "q")
    who["dan"].charge(cost(Fraction(1, 2)), "q")
    assert who["bob"].remaining.epsilon == 1
    with pytest.raises(BudgetExceeded):
        who["bob"].charge(cost(Fraction(101, 100)), "within bob's share, more than is left")
    who["bob"].charge(cost(1), "q")
    again = open_ledger(path, analyst="bob")
    assert (again.spent.epsilon, again.remaining.epsilon) == (3, 0)
    assert [line.analyst for line in again.entries] == ["ann", "cyd", "dan", "bob"]


def check_race(folder: Path, *, processes: int = 6, most: int = 40) -> None:
    """Processes that race for one budget: the budget is spent to the last digit, and is what the file says."""
    path = folder / f"race{processes}.ledger"
    held = rules(Fraction(most, 10))

    def spend() -> int:
        admitted = 0
        ledger = open_ledger(path, held)
        while True:
            try:
                ledger.charge(TENTH, f"of {os.getpid()}")
            except BudgetExceeded:
                return admitted
            admitted += 1

    admitted = [child.said() for child in [fork_to_say(spend) for _ in range(processes)]]
    assert all(isinstance(each, int) for each in admitted), f"a process failed: {admitted}"
    assert sum(admitted) == most, f"admitted {sum(admitted)} of {most}"
    assert epsilon_on_disk(path) == Fraction(most, 10)
    assert open_ledger(path, held).remaining.epsilon == 0


def check_kills(path: Path, kills: int, seed: int, run: Callable[[int, str], object], longest: float = 0.008) -> int:
    """Processes killed at random moments: the file opens, holds all that was reported, and at most one more for each.

    run(pipe, name): writes a blank when it has opened the file, charges in a loop, labels "name number", and writes the
    number after each charge. Returns how many charges were reported.
    """
    chance = random.Random(seed)
    reported: set[str] = set()
    unreported = 0
    for kill in range(kills):
        child = fork(lambda pipe, name=f"k{kill}": run(pipe, name))  # type: ignore[misc]
        if kill % 8:  # the eighth is killed while it opens
            assert os.read(child.pipe, 1) == b" ", "the child could not open the file"
        time.sleep(chance.uniform(0, longest))
        new = {f"k{kill} {number}" for number in child.kill().decode().split()}
        if kill % 8 and not new:
            longest *= 1.5  # the machine is busy
        assert not any('"' in each for each in new), f"a process failed: {sorted(new)[:9]}"
        reported |= new
        if kill % 10 == 9 or kill == kills - 1:
            ledger = open_ledger(path)
            found = [entry.label for entry in ledger.entries]
            assert len(set(found)) == len(found)
            missing = reported - set(found)
            assert not missing, f"reported, and not in the file: {sorted(missing)[:5]} (seed {seed}, kill {kill})"
            by_kill: dict[str, int] = {}
            for label in set(found) - reported:
                by_kill[label.split()[0]] = by_kill.get(label.split()[0], 0) + 1
            assert max(by_kill.values(), default=0) <= 1, f"several unreported charges of one process: {by_kill}"
            unreported = sum(by_kill.values())
            assert ledger.spent.epsilon == Fraction(len(found), 10) == epsilon_on_disk(path)
            ledger.close()
    assert unreported <= kills
    return len(reported)


def charging(path: Path) -> Callable[[int, str], object]:
    """What a process does until it is killed."""

    def run(pipe: int, name: str) -> None:
        ledger = open_ledger(path, rules(10**6))
        os.write(pipe, b" ")
        number = 0
        while True:
            ledger.charge(TENTH, f"{name} {number}")
            os.write(pipe, f"{number} ".encode())
            number += 1

    return run


def check_kills_of_chargers(folder: Path, kills: int = 40, seed: int = 5) -> None:
    for longest in (0.008, 0.03, 0.1):  # a busy machine needs more time for as many charges
        path = folder / f"killed{longest}.ledger"
        open_ledger(path, rules(10**6)).close()
        if check_kills(path, kills, seed, charging(path), longest) > kills / 4:
            return
    raise AssertionError("too few charges were made before the kills")


def written(path: Path) -> Path:
    """A ledger with some lines of each kind."""
    ledger = open_ledger(path, rules(10, 1e-6, "auto"), analyst="ann")
    for number in range(1, 5):
        ledger.charge(cost(Fraction(number, 10), Fraction(number, 10**9)), f"SELECT {number}")
    ledger.keep("k" * 64, b'{"one": 1}')
    ledger.charge(cost(1), "SELECT 5")
    ledger.accept_clock()
    ledger.charge(cost(Fraction(1, 7)), "SELECT 6")
    ledger.close()
    return path


EDITS = {
    "text of the first line": ["UPDATE lines SET text = replace(text, '1/10', '1/90') WHERE number = 1"],
    "text of a middle line": ["UPDATE lines SET text = replace(text, 'SELECT', 'select') WHERE number = 3"],
    "text of the last line": ["UPDATE lines SET text = replace(text, '1/7', '1/8') WHERE number = 8"],
    "text as bytes": ["UPDATE lines SET text = CAST(text AS BLOB) WHERE number = 2"],
    "hash of a line": ["UPDATE lines SET hash = replace(hash, 'a', 'b') || 'b' WHERE number = 3"],
    "hash of the last line": ["UPDATE lines SET hash = upper(hash) || '0' WHERE number = 8"],
    "hash as bytes": ["UPDATE lines SET hash = CAST(hash AS BLOB) WHERE number = 8"],
    "number of a line": ["UPDATE lines SET number = 20 WHERE number = 2"],
    "number of the last line": ["UPDATE lines SET number = 9 WHERE number = 8"],
    "two lines swapped": [
        "UPDATE lines SET number = 99 WHERE number = 2",
        "UPDATE lines SET number = 2 WHERE number = 3",
        "UPDATE lines SET number = 3 WHERE number = 99",
    ],
    "the first line deleted": ["DELETE FROM lines WHERE number = 1"],
    "a middle line deleted": ["DELETE FROM lines WHERE number = 4"],
    "a middle line deleted, the rest moved up": [
        "DELETE FROM lines WHERE number = 4",
        "UPDATE lines SET number = number - 1 WHERE number > 4",
    ],
    "a line of zero inserted": ["INSERT INTO lines SELECT 0, text, hash FROM lines WHERE number = 1"],
    "a line inserted at the end": ["INSERT INTO lines SELECT 9, text, hash FROM lines WHERE number = 8"],
    "a line far away": ["INSERT INTO lines SELECT 900, text, hash FROM lines WHERE number = 8"],
    "budget enlarged": ["UPDATE rules SET text = replace(text, '\"10\"', '\"99\"')"],
    "accountant changed": ["UPDATE rules SET text = replace(text, 'auto', 'zcdp')"],
    "neighbours changed": ["UPDATE rules SET text = replace(text, 'unbounded', 'bounded')"],
    "rules with a space": ["UPDATE rules SET text = replace(text, ',', ', ')"],
    "rules of a later format": ["UPDATE rules SET text = replace(text, '\"format\":2', '\"format\":3')"],
    "rules empty": ["UPDATE rules SET text = ''"],
    "rules deleted": ["DELETE FROM rules"],
    "a table more": ["CREATE TABLE more (x)"],
    "an index more": ["CREATE INDEX more ON lines (hash)"],
    "a view more": ["CREATE VIEW more AS SELECT * FROM lines"],
    "a trigger that eats lines": ["CREATE TRIGGER more BEFORE INSERT ON lines BEGIN SELECT RAISE(IGNORE); END"],
    "a trigger that deletes lines": ["CREATE TRIGGER more AFTER INSERT ON lines BEGIN DELETE FROM lines; END"],
    "a table replaced by a view": ["ALTER TABLE lines RENAME TO other", "CREATE VIEW lines AS SELECT * FROM other"],
    "a column more": ["ALTER TABLE lines ADD COLUMN more"],
    "a table dropped": ["DROP TABLE answers"],
}
"""Edits that no opening may pass over, whoever made them."""


def check_edits(folder: Path, *names: str) -> None:
    """Edits are noticed at the next opening."""
    for name in names or EDITS:
        path = written(folder / f"{name.replace(' ', '_')}.ledger")
        honest = open_ledger(path)
        anchor = honest.anchor
        honest.close()
        edit(path, *EDITS[name])
        for words in ({}, {"anchor": anchor}):
            with pytest.raises(LedgerError, match="ledger") as caught:
                open_ledger(path, **words).close()
            assert caught.value.hint, f"{name}: nothing is said of what to do"


def check_lines_of_another(folder: Path) -> None:
    """A line of another ledger under the same rules, with its right hash, does not fit in."""
    path, other = folder / "mine.ledger", folder / "other.ledger"
    for file, much in ((path, 2), (other, 1)):
        ledger = open_ledger(file, rules())
        for number in range(3):
            ledger.charge(cost(much), f"{number}")
        ledger.close()
    with raw(path) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        connection.execute("DELETE FROM lines WHERE number = 2")
        connection.execute("INSERT INTO lines SELECT * FROM other.lines WHERE number = 2")
    with pytest.raises(LedgerError):
        open_ledger(path)


def check_edits_while_open(folder: Path, *names: str) -> None:
    """Edits while a session is open: nothing is admitted that is not in the file afterwards."""
    for name in names or EDITS:
        path = written(folder / f"open_{name.replace(' ', '_')}.ledger")
        ledger = open_ledger(path, analyst="ann")
        before = ledger.spent, ledger.remaining, len(ledger.entries)
        edit(path, *EDITS[name])
        with suppress(LedgerError):
            ledger.charge(cost(1), "after the edit")
            assert len(ledger.entries) == before[2] + 1, f"{name}: admitted, not entered"
            assert ledger.remaining.epsilon < before[1].epsilon, f"{name}: admitted, not counted"
            with raw(path) as connection:
                (last,) = connection.execute("SELECT text FROM lines ORDER BY number DESC LIMIT 1").fetchone()
            assert "after the edit" in last, f"{name}: admitted, not in the file"
        ledger.close()
        with pytest.raises(LedgerError):  # and the next opening notices in any case
            open_ledger(path)


def check_changed_answers(folder: Path) -> None:
    """An answer that was changed, exchanged or taken away is not given."""
    for number, change in enumerate(
        (
            "UPDATE answers SET payload = CAST(replace(CAST(payload AS TEXT), '1', '2') AS BLOB)",
            "UPDATE answers SET payload = CAST(payload AS TEXT)",
            "UPDATE answers SET number = number + 1",
            "DELETE FROM answers",
        )
    ):
        path = written(folder / f"answer{number}.ledger")
        edit(path, change)
        ledger = open_ledger(path)
        assert ledger.recall("x" * 64) is None
        with pytest.raises(LedgerError, match="answer"):
            ledger.recall("k" * 64)
        ledger.charge(cost(1), "the rest of it works")


def check_forks(folder: Path) -> None:
    """A forked session answers nothing, charges nothing, replays nothing."""
    for path in (None, folder / "fork.ledger"):
        with session(path) as asked:
            asked.query(COUNT, epsilon=1)

            def refused(use: dpsql.Session = asked) -> list[bool]:
                found = []
                for run in (
                    lambda: use.query(COUNT, epsilon=1),  # a replay
                    lambda: use.query(COUNT, epsilon=1, fresh=True),
                    lambda: use.query(COUNT, epsilon=0.5),
                    lambda: use.spent,
                    lambda: use.remaining,
                    use.ledger,
                    use.export_ledger,
                ):
                    try:
                        run()
                        found.append(False)
                    except LedgerError as error:
                        found.append("forked" in str(error))
                return found

            assert fork_to_say(refused).said() == [True] * 7
            assert len(asked.ledger()) == 1
            asked.query(COUNT, epsilon=0.5)


# Parts of a declared partition, beside the exact answers


@dataclass(frozen=True)
class Asked:
    """Questions about one table `t`, each with its own cost, and parameters."""

    sql: str
    epsilon: Fraction
    params: dict[str, Any] | None = None


def check_parts(
    make: Callable[[Sequence[Any]], dict[str, Any]],
    rows: Sequence[Any],
    asked: Sequence[Asked],
    *,
    others: Sequence[Any] = (),
    moves: bool = False,
) -> int:
    """The parts that are charged cover every row: of whatever queries somebody asks, those whose exact answers one row
    changes cost no more together than the account says of them. `others`: what a row may be changed to (bounded
    neighbours). Returns how many queries were confined to parts."""
    from dpsql.core.parallel import parts_of
    from dpsql.executors.pandas.executor import PandasExecutor
    from dpsql.session.prepare import Terms, prepare
    from tests.core.checks import cells_of

    relation = Neighbours.BOUNDED if others else Neighbours.UNBOUNDED
    planned, confined = [], 0
    opened = dpsql.Session(make(rows), budget=Budget(10**6))
    for each in asked:
        try:
            terms = Terms(Fraction(1), Fraction(1, 10**6))
            made = prepare(each.sql, opened.catalog, relation, terms, params=each.params).releases[0]
        except DPSQLError:
            continue
        parts = parts_of(made.query.plan.input, lambda _: "session")
        confined += bool(parts)
        planned.append((each, made, parts))

    def answers(kept: Sequence[Any]) -> list[Any]:
        stores = dpsql.Session(make(kept), budget=Budget(1))._stores
        found = []
        for _, made, _ in planned:
            found.append(cells_of(made, PandasExecutor(stores).execute(made.exact, bytes(32))))
        return found

    before = answers(rows)
    for place in range(len(rows)):
        without = [*rows[:place], *rows[place + 1 :]]
        for kept in [[*rows[:place], other, *rows[place + 1 :]] for other in others] or [without]:
            moved = [
                (each, parts)
                for (each, _, parts), one, other in zip(planned, before, answers(kept), strict=True)
                if one != other
            ]
            account = Account(moves=moves)
            for each, parts in moved:
                account.add(cost(each.epsilon), parts)
            needed, total = sum((each.epsilon for each, _ in moved), Fraction(0)), account.at_most().epsilon
            told = "\n".join(
                f"  {each.sql} {each.params or ''} {[part.value for part in parts]}" for each, parts in moved
            )
            assert total is not None
            assert needed <= total, f"row {rows[place]!r} is told {needed}, charged {total}:\n{told}"
    return confined
