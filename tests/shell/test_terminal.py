"""The prompt in a pseudo-terminal, as a person meets it."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.accounting import read_ledger

pexpect = pytest.importorskip("pexpect")
pytest.importorskip("prompt_toolkit")

TOML = """
[budget]
epsilon = 30
delta = 1e-6
ledger = "spent.ledger"

[tables.people]
path = "people.csv"

[tables.people.columns]
age = { type = "integer", bounds = [0, 100] }
"hours-per-week" = { type = "integer", bounds = [0, 99] }
city = { type = "text", keys = ["Brest", "Lyon"] }
"""
_STYLE = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")
_WHERE_IS_THE_CURSOR = "\x1b[6n"


class Terminal:
    """A shell that somebody sits at."""

    def __init__(
        self, folder: Path, *options: str, program: tuple[str, ...] = ("-m", "dpsql"), **environment: str
    ) -> None:
        usual = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PAGER", "DPSQL_PAGER")}
        self.child = pexpect.spawn(
            sys.executable,
            [*program, "people.csv", "--budget", "30", "--epsilon", "1", "--schema", "people.toml", *options],
            cwd=str(folder),
            env={
                **usual,
                "PYTHONPATH": str(Path(dpsql.__file__).parents[1]),
                "TERM": "xterm",
                "DPSQL_HISTORY": str(folder / "history"),
                "XDG_STATE_HOME": str(folder / "state"),
                **environment,
            },
            encoding="utf-8",
            dimensions=(40, 120),
            timeout=60,
        )
        self.raw = ""

    @property
    def shown(self) -> str:
        """All that came, without what moves and colours."""
        return _STYLE.sub("", self.raw)

    def until(self, text: str, since: int = 0) -> str:
        """Wait until the text is shown, from a place on; what is shown from there."""
        limit = time.monotonic() + 30
        while text not in self.shown[since:]:
            assert time.monotonic() < limit, f"no {text!r} in {self.shown[since:]!r}"
            try:
                new = self.child.read_nonblocking(65536, timeout=0.2)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                assert text in self.shown[since:], f"ended without {text!r}: {self.shown[since:]!r}"
                break
            self.raw += new
            if _WHERE_IS_THE_CURSOR in new:
                self.child.send("\x1b[1;1R")
        return self.shown[since:]

    def type(self, keys: str, until: str) -> str:
        """Type, and wait for a text that comes of it."""
        since = len(self.shown)
        self.child.send(keys)
        return self.until(until, since)

    def end(self) -> int:
        """The exit code, once it has ended."""
        self.child.expect(pexpect.EOF)
        self.raw += self.child.before
        self.child.close()
        return int(self.child.exitstatus)


Terminals = Callable[..., Terminal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(["age,hours-per-week,city", *["40,38,Lyon"] * 300]))
    (tmp_path / "people.toml").write_text(TOML.replace('ledger = "spent.ledger"\n', ""))
    return tmp_path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminals]:
    opened: list[Terminal] = []

    def start(*options: str, **how: Any) -> Terminal:
        opened.append(Terminal(folder, *options, **how))
        return opened[-1]

    yield start
    for each in opened:
        each.child.close(force=True)


def test_a_session_at_a_terminal(terminal: Terminals, folder: Path):
    history = folder / "history"
    history.touch(mode=0o644)
    history.chmod(0o644)
    one = terminal()
    one.until("epsilon 30 left of 30")  # the toolbar
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    one.type("select hours-p\t", '"hours-per-week"')
    one.type("\x03", "dpsql>")
    one.type("SELECT city, COUNT(*) AS n\r", "...>")
    answer = one.type("FROM people GROUP BY city;\r", "epsilon 29 left of 30")
    assert re.search(r"\| Lyon +\| +\d+ \| +±\d+ \|", answer)
    assert "spent epsilon 1 · left epsilon 29 of 30" in answer
    one.type("SELECT 'open\r", "...'>")
    one.type("\x03", "dpsql>")
    assert "\x1b[" in one.raw.partition("dpsql")[2]
    error = one.type("SELECT SUM(agee) FROM people;\r", "^^^^")
    assert 'Did you mean "age"' in error
    one.type("\\d\r", "3 columns")
    one.type("SELECT 'never closed\r", "...'>")
    one.child.send(".quit\r")
    assert one.end() == 0
    two = terminal()
    two.until("epsilon 29 left of 30")
    two.type("\x1b[A" * 5, "AS n")  # the arrow gives whole statements of the time before
    two.type("\x03", "dpsql>")  # Ctrl-D ends the shell only at an empty prompt
    two.child.send("\x04")
    assert two.end() == 0
    assert '"SELECT city, COUNT(*) AS n\\nFROM people GROUP BY city;"\n' in history.read_text()


def test_without_the_toolkit_lines_are_read_and_without_a_history_none_is_kept(terminal: Terminals, folder: Path):
    plain = terminal("--ledger", "spent.ledger", TERM="dumb", DPSQL_HISTORY="", DPSQL_PAGER="")
    plain.until("dpsql>")
    assert not (folder / "history").exists()
    plain.type("SELECT COUNT(*) AS n\n", "...>")
    plain.type("FROM people;\n", "spent epsilon 1 ")
    plain.type("SELECT 'open\n", "...'>")
    plain.child.send(".exit\n")
    assert plain.end() == 0
    assert "\x1b[1" not in plain.raw
    assert "\x1b[2m" not in plain.raw
    assert [entry.label for entry in read_ledger(folder / "spent.ledger")] == ["SELECT COUNT(*) AS n\nFROM people"]
    assert not (folder / "state").exists()


def test_long_lines_are_broken_between_what_they_say(terminal: Terminals):
    one = terminal(COLUMNS="60")
    one.until("epsilon 30 left of 30")
    answer = one.type("SELECT city, COUNT(*) AS n FROM people GROUP BY city;\r", "epsilon 29 left of 30")
    lines = [line.rstrip() for line in answer.splitlines()]
    spent = next(place for place, line in enumerate(lines) if line.startswith("spent epsilon 1"))
    footer = lines[spent : spent + 3]
    assert "left epsilon 29 of 30, delta" in " ".join(map(str.strip, footer))
    assert "more queries like this" in " ".join(footer)
    assert max(map(len, footer)) <= 60


def test_no_color_means_none(terminal: Terminals):
    one = terminal(NO_COLOR="1")
    one.until("epsilon 30 left of 30")
    one.type("SELECT SUM(agee) FROM people;\r", "^^^^")
    colours = [code for code in re.findall(r"\x1b\[([\d;]*)m", one.raw) if re.search(r"\b(3[0-7]|38|9[0-7])\b", code)]
    assert colours == []
    one.child.send("\x04")
    assert one.end() == 0


_SLOW = """
import sys, time
from dpsql.session.session import Session
from dpsql.shell import batch, cli
load, ask = batch.open_session, Session.query
def slow_load(opening):
    time.sleep(1.6)
    return load(opening)
def slow_answer(*words, **more):
    time.sleep(1.6)
    return ask(*words, **more)
batch.open_session, Session.query = slow_load, slow_answer
sys.exit(cli.main())
"""


def test_seconds_are_counted_while_tables_are_loaded_and_never_while_an_answer_is_made(terminal: Terminals):
    one = terminal(program=("-c", _SLOW))
    one.until("epsilon 30 left of 30")
    loading = one.shown.partition("dpsql>")[0]
    assert re.search(r"loading the tables \.\.\. 1 s", loading)
    assert "\r\x1b[K" in one.raw  # and wiped off
    answer = one.type("SELECT COUNT(*) AS n FROM people;\r", "epsilon 29 left of 30")
    assert not re.search(r"\.\.\. \d+ s|loading", answer)
    assert not re.search(r"\d\.\d+ s\b", answer)  # nor is it told afterwards how long it took


def test_a_long_answer_goes_through_the_pager_and_a_short_one_does_not(terminal: Terminals, folder: Path):
    pager = folder / "pager"
    pager.write_text(f"#!{sys.executable}\nimport sys\nprint('PAGED', sys.stdin.read().count('|'), 'END')\n")
    pager.chmod(0o755)
    one = terminal(PAGER=str(pager))
    one.until("epsilon 30 left of 30")
    shown = one.type("SELECT city, COUNT(*) AS n FROM people GROUP BY city;\r", "epsilon 29 left of 30")
    assert "PAGED" not in shown
    shown = one.type("SELECT age, COUNT(*) AS n FROM people GROUP BY age;\r", "epsilon 28 left of 30")
    assert f"PAGED {4 * (60 + 1)} END" in shown  # 60 rows and the head, each with four signs
    one.type(".maxrows 3\r", "the first 3 rows are shown")
    shown = one.type(".last\r", "99 more rows")
    assert "PAGED" not in shown
    one.type(".maxrows 0\r", "all rows are shown")
    one.type(".pager off\r", "pager off")
    shown = one.type(".last\r", "100 |")
    assert "PAGED" not in shown


def test_a_rehearsal_at_a_terminal_tells_no_budget(terminal: Terminals, folder: Path):
    one = terminal(program=("-m", "dpsql", "rehearse"))
    assert "| MADE-UP ROWS: nothing is spent" in one.until("dpsql>")
    one.type("SELECT city, COUNT(*) AS n FROM people GROUP BY city;\r", "MADE-UP ROWS: nothing was spent")
    one.type(".plot\r", "95 % intervals, MADE-UP ROWS")
    one.type(".budget\r", "MADE-UP ROWS: nothing is spent\r\n")
    one.type(".quit\r", ".quit")
    assert one.end() == 0
    assert "left of" not in one.shown
    assert not list(folder.glob("*.ledger"))
