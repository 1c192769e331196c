"""What Tab offers: names of the schema, SQL and commands, and never what is in a table."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dpsql.core.ledger.budget import Budget
from dpsql.session.session import Session
from dpsql.session.tables.table import Table
from dpsql.session.vocabulary import as_identifier
from dpsql.shell.output.describe import tables_of
from dpsql.shell.prompt.commands import COMMANDS
from dpsql.shell.prompt.completion import Completer
from dpsql.shell.prompt.history import MOST, History
from dpsql.shell.statements import names_asked_for, open_quote

SECRET = "Zebulon"


@pytest.fixture(scope="module")
def completer() -> Completer:
    people = pd.DataFrame({"age": [1], "hours-per-week": [1], "name": [SECRET], "order": [1]})
    shop = pd.DataFrame({"total": [1], "a b": [2]})
    session = Session({"people": Table(people, bounds={"age": (0, 9)}), "my shop": shop}, budget=Budget(1))
    return Completer(tables_of(session), COMMANDS)


def texts(completer: Completer, before: str, after: str = "") -> list[str]:
    """The whole texts that would stand there."""
    found = completer.candidates(before, after)
    return [before[: len(before) - each.length] + each.text for each in found]


@pytest.mark.parametrize(
    ("before", "after", "one"),
    [
        ("SELECT hou", "", 'SELECT "hours-per-week"'),
        ("SELECT hours-p", "", 'SELECT "hours-per-week"'),
        ('SELECT "hou', "", 'SELECT "hours-per-week"'),
        ("SELECT ord", "", 'SELECT "order"'),
        ("SELECT 1-ag", "", "SELECT 1-age"),
        ("SELECT age-na", "", "SELECT age-name"),
        ("sel", "", "select"),
        ("SEL", "", "SELECT"),
        ("SELECT AV", "", "SELECT AVG("),
        ("SELECT med", "", "SELECT median("),
        ("SELECT COUNT(*) FROM ", "", "SELECT COUNT(*) FROM people"),
        ("SELECT COUNT(*) FROM p", "", "SELECT COUNT(*) FROM people"),
        ("SELECT COUNT(*) FROM m", "", 'SELECT COUNT(*) FROM "my shop"'),
        ("SELECT a", ' FROM "my shop"', 'SELECT "a b"'),
        ("SELECT 1; SELECT p.a", " FROM people AS p", "SELECT 1; SELECT p.age"),
        ("DESCRIBE pe", "", "DESCRIBE people"),
        (".sch", "", ".schema"),
        (".schema pe", "", ".schema people"),
        (".mode js", "", ".mode json"),
        (".explain SELECT ag", "", ".explain SELECT age"),
        (".timer o", "", ".timer on"),
    ],
)
def test_what_is_offered(before: str, after: str, one: str, completer: Completer):
    assert one in texts(completer, before, after)


@pytest.mark.parametrize(
    "before", ["SELECT 'ag", "-- ag", "/* ag", "SELECT p.ag", ".budget ag", "SELECT 1 FROM people WHERE 'a"]
)
def test_nothing_is_offered_where_nothing_can_be_meant(before: str, completer: Completer):
    assert texts(completer, before) == []


def test_columns_of_other_tables_are_not_offered(completer: Completer):
    offered = texts(completer, "SELECT COUNT(*) FROM people WHERE ")
    assert "SELECT COUNT(*) FROM people WHERE age" in offered
    assert not any("total" in each for each in offered)


def test_no_cell_is_offered(completer: Completer):
    for before in ("SELECT Z", "SELECT 'Z", f"SELECT {SECRET[:4]}", "SELECT COUNT(*) FROM people WHERE name = 'Z"):
        assert not any(SECRET in each for each in texts(completer, before))


def test_files_are_offered(completer: Completer, tmp_path: Path):
    (tmp_path / "asked.sql").touch()
    (tmp_path / "folder").mkdir()
    assert texts(completer, f".read {tmp_path}/as") == [f".read {tmp_path}/asked.sql"]
    assert f".read {tmp_path}/folder/" in texts(completer, f".read {tmp_path}/")
    assert texts(completer, f".read {tmp_path}/no/where") == []


def test_completion_is_quick_over_a_thousand_columns():
    frame = pd.DataFrame({f"column-{number}": [1] for number in range(1000)})
    session = Session({f"t{number}": frame for number in range(3)}, budget=Budget(1))
    completer = Completer(tables_of(session), COMMANDS)
    text = "SELECT COUNT(*) FROM t1 WHERE age > 3 AND " * 20
    completer.candidates("SELECT ")
    spent = []
    for _ in range(5):
        start = time.process_time()
        assert completer.candidates(f"{text}column-9")
        spent.append(time.process_time() - start)
    assert min(spent) < 0.05


@pytest.mark.parametrize(
    ("name", "written"), [("age", "age"), ("a b", '"a b"'), ('a"b', '"a""b"'), ("select", '"select"'), ("1a", '"1a"')]
)
def test_names_are_quoted_where_sql_wants_it(name: str, written: str):
    assert as_identifier(name) == written


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("SELECT 'a", "'"),
        ("SELECT 'a''", "'"),
        ("SELECT 'a'", ""),
        ("SELECT ''''", ""),
        ("SELECT e'a\\'", "'"),
        ('SELECT "a', '"'),
        ("SELECT $$a", "$$"),
        ("SELECT $t$a$$", "$t$"),
        ("SELECT $$a$$", ""),
        ("SELECT /* a /* b */", "/*"),
        ("SELECT /* a */ 1", ""),
        ("SELECT 1 -- it's", ""),
        ("", ""),
    ],
)
def test_an_open_quote_is_known(text: str, opened: str):
    assert open_quote(text) == opened


def test_parameters_are_known_outside_quotes():
    text = "SELECT ':a', \":b\", x::int /* :c */ -- :d\n FROM t WHERE y > :e AND z = :f"
    assert names_asked_for(text) == {"e", "f"}


def test_a_history_is_for_its_users_eyes(tmp_path: Path):
    path = tmp_path / "deep" / "history"
    history = History(path)
    for text in ("SELECT 1;", "SELECT 1;", " ", "SELECT\n2;"):
        history.add(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert History(path).statements == ["SELECT 1;", "SELECT\n2;"]
    path.chmod(0o666)
    path.write_text(path.read_text() + "no json\n[1]\n")
    assert History(path).statements == ["SELECT 1;", "SELECT\n2;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_does_not_grow_without_end(tmp_path: Path):
    path = tmp_path / "history"
    path.write_text("".join(f'"{number}"\n' for number in range(2 * MOST + 5)))
    assert History(path).statements[0] == str(MOST + 5)
    assert path.read_text().count("\n") == MOST
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_told_and_none_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    assert "no history is kept" in History(tmp_path / "file" / "history").note
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert "no history is kept" in History(tmp_path / "link").note
    monkeypatch.setenv("DPSQL_HISTORY", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    History.of_user().add("SELECT 1;")
    assert not (tmp_path / "state").exists()
    monkeypatch.delenv("DPSQL_HISTORY")
    History.of_user().add("SELECT 1;")
    assert (tmp_path / "state" / "dpsql" / "history").read_text() == '"SELECT 1;"\n'


LOADED = """
import sys
import dpsql.shell.cli
print("sqlglot" in sys.modules, end=" ")
from dpsql.shell.prompt.commands import COMMANDS
from dpsql.shell.prompt.completion import Completer
words = Completer([], COMMANDS)
print("sqlglot" in sys.modules, end=" ")
words.get_ready()
before = set(sys.modules)
print("sqlglot" in before, [each.text for each in words.candidates("SELECT regr_sl")], set(sys.modules) - before)
"""


def test_a_prompt_comes_before_the_parser_and_what_completes_is_ready_with_it():
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "False False True ['regr_slope('] set()"
