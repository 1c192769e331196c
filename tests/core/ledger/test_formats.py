"""Ledgers that people have: files of every format are read, their hashes checked, and gone on with.

The files in `golden` were written by the version that had that format, with `people()` below.
"""

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.accounting import accept_clock, export_ledger, read_ledger
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.units import TableUnit, UnitKind
from dpsql.errors import BudgetExceeded, LedgerError
from tests.core.ledger import checks

GOLDEN = Path(__file__).parent / "golden"
OLD = ["format1_plain", "format1_full"]
ALL = [*OLD, "format2_full"]
COUNT = "SELECT COUNT(*) FROM people"


def people() -> pd.DataFrame:
    ages = np.array([20, 30, 40, 55, 25] * 40)
    return pd.DataFrame({"city": ["a", "b", "a", "c", "c"] * 40, "age": ages, "state": ["WA", "OR"] * 100})


def table(**more: Any) -> dpsql.Table:
    return dpsql.Table(people(), **{"bounds": {"age": (0, 100)}, "keys": {"city": ["a", "b"]}, **more})


def taken(folder: Path, name: str) -> Path:
    """A copy of a golden file, which stays as it is."""
    return Path(shutil.copy(GOLDEN / f"{name}.ledger", folder))


def expected(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def opened(path: Path, name: str, **more: Any) -> dpsql.Session:
    words = {"version": "2026-10", "partition": "state"} if name.endswith("full") else {}
    who = {"analyst": "ann"} if name.endswith("full") else {}
    return dpsql.Session({"people": table(**words)}, **{"ledger": path, **who, **more})


@pytest.mark.parametrize("name", ALL)
def test_a_file_is_read(tmp_path: Path, name: str):
    """Every charge, sum and hash is what the version that wrote it said."""
    path, said = taken(tmp_path, name), expected(name)
    before = path.read_bytes()
    ledger = open_ledger(path, owner=True)
    assert str(ledger.rules) == said["rules"]
    assert [str(each) for each in (ledger.spent.epsilon, ledger.spent.delta, ledger.spent.rho)] == said["spent"]
    left = ledger.remaining
    assert [str(each) for each in (left.epsilon, left.delta, left.rho)] == said["remaining"]
    assert ledger.anchor == said["anchor"]
    assert [entry.to_dict() for entry in ledger.entries] == said["entries"]
    ledger.close()
    assert len(read_ledger(path, anchor=said["anchor"])) == len(said["entries"])
    named, made = checks.hashes(export_ledger(path))
    assert named == made
    assert path.read_bytes() == before, "looking at a file changed it"


@pytest.mark.parametrize("name", OLD)
def test_a_file_of_format_1_goes_on(tmp_path: Path, name: str):
    """The first session writes that format 2 begins, and its units; the lines before stay as they are."""
    path, said = taken(tmp_path, name), expected(name)
    lines = checks.texts(path)
    with opened(path, name, anchor=said["anchor"]) as asked:
        (note,) = asked.notes
        assert "format 1" in note
        assert "each row is a unit of its own" in note
        told = asked.query(COUNT, epsilon=0.0625)
        assert note in told.warnings
        later = asked.query("SELECT AVG(age) FROM people", epsilon=0.0625)
        assert [
            each for each in later.warnings if not each.startswith("the noise hides where")
        ] == []  # which is this answer's own
    after = checks.texts(path)
    assert after[: len(lines)] == lines
    assert [line["kind"] for line in after[len(lines) :]][:2] == ["format", "unit"]
    assert after[len(lines)]["format"] == 2
    assert all(len(line["salt"]) == 64 for line in after[len(lines) :])
    with opened(path, name, anchor=said["anchor"]) as asked:
        assert asked.notes == ()
        assert len(asked.ledger()) == len(said["entries"]) + 2
        spent = asked.query(COUNT, epsilon=0.0625)
        assert spent.warnings == () or "format" not in str(spent.warnings)
    named, made = checks.hashes(export_ledger(path))
    assert named == made


def test_a_file_of_format_2_goes_on(tmp_path: Path):
    """Its units are held, its answers are given again at no cost, and it says nothing at opening."""
    path, said = taken(tmp_path, "format2_full"), expected("format2_full")
    assert set(said["kinds"]) == {"unit", "claim", "charge", "answer", "dropped", "note"}
    with opened(path, "format2_full", anchor=said["anchor"]) as asked:
        assert asked.notes == ()
        again = asked.query(COUNT, epsilon=0.25)
        assert again.replayed
        assert again.item() == said["count of ann"]
        assert len(asked.ledger()) == len(said["entries"])
        assert not asked.query("SELECT COUNT(age) FROM people", epsilon=0.0625).replayed  # its run had failed
    with pytest.raises(LedgerError, match="another privacy unit"):
        dpsql.Session({"people": table(public=True)}, ledger=path, analyst="ann")


@pytest.mark.parametrize("name", OLD)
def test_later_sessions_must_declare_the_same_units(tmp_path: Path, name: str):
    path = taken(tmp_path, name)
    opened(path, name).close()  # looked at once is enough
    more = {"analyst": "ann"} if name == "format1_full" else {}
    for words in ({"unit": "age", "max_rows": 9}, {"public": True}):
        with pytest.raises(LedgerError, match="another privacy unit"):
            dpsql.Session({"PEOPLE": table(**words)}, ledger=path, **more)


def test_two_sessions_that_open_a_file_of_format_1_at_once(tmp_path: Path):
    path = taken(tmp_path, "format1_plain")
    one, other = (open_ledger(path) for _ in range(2))
    rows, public = ([TableUnit("people", kind)] for kind in (UnitKind.ROW, UnitKind.PUBLIC))
    assert one.take_units(rows)
    with pytest.raises(LedgerError, match="another privacy unit"):
        other.take_units(public)
    assert other.take_units(rows) == ()
    assert [line["kind"] for line in checks.texts(path)[4:]] == ["format", "unit"]


def test_answers_of_format_1_are_kept_and_listed_and_not_given_again(tmp_path: Path):
    path = taken(tmp_path, "format1_full")
    with opened(path, "format1_full") as asked:
        assert "8 kept answers are listed, and not given again" in asked.notes[0]
        charges = len(asked.ledger())
        assert not asked.query(COUNT, epsilon=0.25).replayed  # it was asked before, in format 1
        assert len(asked.ledger()) == charges + 1
        assert asked.query(COUNT, epsilon=0.25).replayed
        lines = json.loads(asked.export_ledger())["lines"]
    assert sum("answer" in line for line in lines) == 8
    with checks.raw(path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM answers").fetchone() == (9,)


def test_an_older_version_reads_no_further(tmp_path: Path):
    """What reads format 1 alone takes a line without "answer" and "note" for a charge, and finds no cost in it."""
    path = taken(tmp_path, "format1_plain")
    opened(path, "format1_plain").close()
    line = checks.texts(path)[4]
    assert not {"answer", "note", "epsilon", "query", "delta", "rho", "events", "parts"} & set(line)


def test_an_empty_file_of_format_1(tmp_path: Path):
    path = taken(tmp_path, "format1_empty")
    with dpsql.Session({"people": table()}, ledger=path, budget=Budget(1)) as asked:
        assert len(asked.notes) == 1
        assert "kept answers" not in asked.notes[0]
        asked.query(COUNT, epsilon=1)
    assert [line["kind"] for line in checks.texts(path)] == ["format", "unit", "charge"]


def test_a_clock_put_right_in_format_1(tmp_path: Path):
    """The owner's tools leave a file in its format."""
    path = taken(tmp_path, "format1_plain")
    accept_clock(path)
    accept_clock(path)
    assert [line.get("note") for line in checks.texts(path)[4:]] == ["the clock is right"] * 2
    assert len(read_ledger(path)) == 4
    with opened(path, "format1_plain") as asked:
        assert len(asked.notes) == 1


def test_a_charge_without_a_session(tmp_path: Path):
    path = taken(tmp_path, "format1_plain")
    ledger = open_ledger(path)
    ledger.charge(checks.TENTH, "q")
    ledger.charge(checks.TENTH, "q")
    ledger.accept_clock()
    assert [line["kind"] for line in checks.texts(path)[4:]] == ["format", "charge", "charge", "note"]
    assert len(open_ledger(path).entries) == 6


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("place", [0, 2, -1])
def test_edits_are_noticed(tmp_path: Path, name: str, place: int):
    for go_on in (False, True):
        path = taken(tmp_path, name)
        if go_on:
            opened(path, name).close()
        number = [k for k, line in enumerate(checks.texts(path), 1) if "query" in line][place]
        checks.edit(path, f"UPDATE lines SET text = replace(text, 'SELECT', 'select') WHERE number = {number}")
        with pytest.raises(LedgerError):
            open_ledger(path, owner=True)
        path.unlink()


def test_a_line_of_format_1_after_format_2_began_is_refused(tmp_path: Path):
    path = taken(tmp_path, "format1_plain")
    opened(path, "format1_plain").close()
    checks.edit(path, "INSERT INTO lines SELECT 7, text, hash FROM lines WHERE number = 1")
    checks.rehash(path)
    with pytest.raises(LedgerError, match="line 7"):
        open_ledger(path)


def test_a_line_of_format_2_before_it_began_is_refused(tmp_path: Path):
    path = taken(tmp_path, "format1_plain")
    opened(path, "format1_plain").close()
    checks.edit(path, "DELETE FROM lines WHERE number = 5", "UPDATE lines SET number = 5 WHERE number = 6")
    checks.rehash(path)
    with pytest.raises(LedgerError, match="line 5"):
        open_ledger(path)


def test_a_line_of_a_later_version_is_refused_as_that(tmp_path: Path):
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, checks.rules())
    for _ in range(3):
        ledger.charge(checks.TENTH, "q")
    ledger.close()
    checks.edit(path, "UPDATE lines SET text = replace(text, '\"charge\"', '\"lease\"') WHERE number = 2")
    checks.rehash(path)
    with pytest.raises(LedgerError, match='line 2 of the ledger is of kind "lease", which this version') as caught:
        open_ledger(path)
    assert "later version" in caught.value.hint


def test_hashes_of_lines_cannot_be_guessed(tmp_path: Path):
    """The same charge at the same moment has another hash in each ledger."""
    ledgers = [open_ledger(tmp_path / f"{k}.ledger", checks.rules()) for k in range(3)]
    for ledger in ledgers:
        ledger.charge(checks.TENTH, "q")
        ledger.charge(checks.TENTH, "q")
        ledger.keep("2:k", b"payload")
        ledger.accept_clock()
    salts = [line["salt"] for k in range(3) for line in checks.texts(tmp_path / f"{k}.ledger")]
    assert len(set(salts)) == len(salts) == 12
    assert all(len(bytes.fromhex(salt)) == 32 for salt in salts)


def test_the_budget_of_a_file_of_format_1_is_kept_to_the_last_digit(tmp_path: Path):
    path = taken(tmp_path, "format1_full")
    with opened(path, "format1_full") as asked:
        left = asked.remaining.epsilon
        with pytest.raises(BudgetExceeded):
            asked.query(COUNT, epsilon=left + Fraction(1, 10**12))
