"""dpsql ledger: show, verify, export, renew; and that file and ledger have to agree."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.owner import show_ledger
from dpsql.shell.cli import Exit, main

COUNT = "SELECT COUNT(*) AS n FROM people"
TOML = '[budget]\nepsilon = 1.0\ndelta = 1e-6\n\n[tables.people]\npath = "people.csv"\nversion = "1"\n'
Runs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(["city", *["Lyon"] * 400]))
    (tmp_path / "people.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    def command(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def ask(run: Runs, epsilon: str, sql: str = COUNT) -> tuple[int, str, str]:
    return run("--schema", "people.toml", "--epsilon", epsilon, "--yes", "-c", sql)


def test_what_is_shown(run: Runs, folder: Path):
    code, _, told = run("ledger", "show", "people.toml")
    assert (code, "nothing has been spent" in told) == (Exit.USAGE, True)
    assert not (folder / "people.ledger").exists()  # to look makes none
    ask(run, "0.5")
    for name in ("people.toml", "people.ledger"):
        code, shown, _ = run("ledger", "show", name)
        assert code == 0
        assert "spent       epsilon 0.5 in 1 query" in shown
        assert "kept        delta 5e-07, which converts rho to epsilon" in shown
        assert shown.rstrip().endswith(f"epsilon 0.5  {COUNT}")
    code, shown, _ = run("ledger", "export", "people.toml")
    assert [line["kind"] for line in json.loads(shown)["lines"]] == ["unit", "claim", "charge", "answer"]


def test_verify_tells_whether_it_is_whole(run: Runs, folder: Path):
    ask(run, "0.25")
    code, shown, _ = run("ledger", "verify", "people.toml")
    anchor = shown.split()[-1]
    assert (code, shown.startswith("whole; anchor 4:")) == (0, True)
    ask(run, "0.5", f"{COUNT} WHERE city = 'x'")
    assert run("ledger", "verify", "people.toml", "--anchor", anchor)[0] == 0
    assert run("ledger", "verify", "people.toml", "--anchor", f"4:{'0' * 64}")[0] == 1
    assert run("ledger", "verify", "people.toml", "--anchor", "nonsense")[0] == Exit.USAGE
    with sqlite3.connect(folder / "people.ledger") as file:
        file.execute("UPDATE lines SET text = replace(text, '1/4', '1/8')")
    code, _, told = run("ledger", "verify", "people.toml")
    assert (code, "is not what was written" in told) == (1, True)


def test_a_new_total_and_the_line_to_change(run: Runs, folder: Path):
    ask(run, "1")
    assert ask(run, "1", f"{COUNT} WHERE city = 'x'")[0] == Exit.BUDGET
    code, shown, _ = run("ledger", "renew", "people.toml", "--epsilon", "5", "--reason", "a second year")
    assert code == 0
    assert "the total is now epsilon 5, delta 1e-06; spent epsilon 1, left epsilon 4" in shown
    assert "Now write in [budget] of people.toml: epsilon = 5.0" in shown
    code, _, told = ask(run, "1", f"{COUNT} WHERE city = 'x'")
    assert code == Exit.USAGE
    assert "people.toml says budget epsilon 1, delta 1e-06, and its ledger epsilon 5, delta 1e-06" in told
    assert "write in [budget] of people.toml: epsilon = 5.0" in told
    (folder / "people.toml").write_text(TOML.replace("1.0", "5.0"))
    code, _, told = ask(run, "1", f"{COUNT} WHERE city = 'x'")
    assert (code, "left epsilon 3 of 5" in told) == (0, True)
    (renewal,) = show_ledger("people.toml").renewals
    assert (renewal.epsilon, renewal.reason) == ("5", "a second year")
    assert ask(run, "1")[2].startswith("answered before")  # what was kept is given again


def test_a_file_that_was_changed_alone_is_refused(run: Runs, folder: Path):
    ask(run, "0.5")
    (folder / "people.toml").write_text(TOML.replace("1.0", "5.0").replace("1e-6", "1e-5"))
    code, _, told = ask(run, "0.5")
    assert code == Exit.USAGE
    assert "dpsql ledger renew people.toml --epsilon 5.0 --delta 1e-05 --reason TEXT" in told
    renewed = ("ledger", "renew", "people.toml", "--epsilon", "5.0", "--delta", "1e-05", "--reason", "as the file says")
    code, shown, _ = run(*renewed)
    assert (code, "Now write" in shown) == (0, False)
    assert ask(run, "0.5")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("melt", "people.toml"),
        ("show",),
        ("show", "people.toml", "--all"),
        ("renew", "people.toml", "--epsilon", "5"),
        ("renew", "people.toml", "--reason", "x"),
        ("renew", "people.toml", "--epsilon", "5", "--reason", " "),
        ("renew", "people.toml", "--epsilon", "0.1", "--reason", "less than is spent"),
        ("renew", "people.toml", "--epsilon", "nan", "--reason", "x"),
        ("show", "nowhere.toml"),
    ],
)
def test_what_is_refused_changes_nothing(words: tuple[str, ...], run: Runs, folder: Path):
    ask(run, "0.5")
    before = (folder / "people.ledger").read_bytes()
    code, shown, told = run("ledger", *words)
    assert (code, shown) == (Exit.USAGE, "")
    assert told
    assert (folder / "people.ledger").read_bytes() == before


def test_a_file_without_a_budget_has_no_ledger(run: Runs, folder: Path):
    (folder / "people.toml").write_text('[tables.people]\npath = "people.csv"\n')
    code, _, told = run("ledger", "show", "people.toml")
    assert (code, "it has no ledger" in told) == (Exit.USAGE, True)


def test_a_file_of_the_commands_name_is_written_with_its_folder(run: Runs):
    code, _, told = run("./ledger", "--budget", "3", "--epsilon", "1", "-c", COUNT)
    assert (code, "InvalidSchema: " in told, "usage" in told) == (Exit.USAGE, True, False)


def test_help(run: Runs):
    code, shown, _ = run("ledger", "--help")
    assert (code, shown.startswith("usage: dpsql ledger")) == (0, True)
    assert run("ledger", "renew", "--help")[0] == 0
