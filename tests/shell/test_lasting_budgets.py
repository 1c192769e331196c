"""A budget that outlives the process: the ledger beside an owner's file, and what may take its place."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidArgument, LedgerError
from dpsql.shell.cli import Exit, main

COUNT = "SELECT COUNT(*) AS n FROM people"
TOML = '[budget]\nepsilon = 3\ndelta = 1e-6\n\n[tables.people]\npath = "people.csv"\n'
Runs = Callable[..., tuple[int, list[int], str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """people.csv of 400 rows, and its owner's file."""
    (tmp_path / "people.csv").write_text("\n".join(["city", *["Lyon"] * 400]))
    (tmp_path / "people.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    """The command on that file: its code, its numbers, its standard error."""

    def command(*argv: str) -> tuple[int, list[int], str]:
        code = main(["--schema", "people.toml", "--epsilon", "0.5", *argv])
        shown = capsys.readouterr()
        return code, [int(value) for value in re.findall(r"^\|? *(-?\d+)\b", shown.out, re.MULTILINE)], shown.err

    return command


def with_version(folder: Path) -> None:
    (folder / "people.toml").write_text(f'{TOML}version = "1"\n')


def test_four_runs_over_a_version_spend_once_and_answer_the_same(run: Runs, folder: Path):
    with_version(folder)
    runs = [run("-c", COUNT) for _ in range(4)]
    assert [code for code, _, _ in runs] == [Exit.OK] * 4
    assert len({tuple(numbers[:1]) for _, numbers, _ in runs}) == 1
    assert ["answered before: spent nothing" in told for _, _, told in runs] == [False, True, True, True]
    assert len(dpsql.accounting.read_ledger(folder / "people.ledger")) == 1


def test_without_a_version_it_says_that_it_was_paid_again_and_how_to_change_that(run: Runs, folder: Path):
    _, _, first = run("-c", COUNT)
    assert "paid for again" not in first
    _, _, second = run("-c", COUNT)
    assert "this question was paid for again" in second
    assert 'version = "1" in [tables.people]' in second
    assert "left epsilon 2 of 3" in second
    assert "paid for again" not in run("--fresh", "-c", COUNT)[2]  # which was asked for
    assert "paid for again" not in run("-c", f"{COUNT} WHERE city = 'x'")[2]
    for value in ("x", "y"):  # another question each time, by the same text
        asked = run("--epsilon", "0.1", "--param", f"c={value}", "-c", f"{COUNT} WHERE city = :c")
        assert asked[0] == Exit.OK
        assert "paid for again" not in asked[2]
    assert len(dpsql.accounting.read_ledger(folder / "people.ledger")) == 6


def test_the_default_may_be_put_aside_and_every_line_says_so(run: Runs, folder: Path):
    _, _, told = run("--no-ledger", "-c", COUNT, "-c", f"{COUNT} WHERE city = 'x'", "-c", COUNT)
    lines = [line for line in told.splitlines() if "left epsilon" in line]
    assert len(lines) == 3
    assert all(line.endswith("counts in this process only") for line in lines)
    assert not (folder / "people.ledger").exists()
    _, _, told = run("--ledger", "other.ledger", "-c", COUNT)
    assert "counts in other.ledger only" in told
    _, _, told = run("--ledger", "people.ledger", "-c", COUNT)  # which is the default
    assert "counts in" not in told


@pytest.mark.parametrize("other", [("--no-ledger",), ("--ledger", "other.ledger")])
def test_a_ledger_that_the_file_names_is_the_only_one(other: tuple[str, ...], run: Runs, folder: Path):
    (folder / "people.toml").write_text(TOML.replace("delta", 'ledger = "kept.ledger"\ndelta'))
    code, numbers, told = run(*other, "-c", COUNT)
    assert (code, numbers) == (Exit.USAGE, [])
    assert "a second ledger would be a second budget" in told
    assert not (folder / "other.ledger").exists()
    assert run("--ledger", "kept.ledger", "-c", COUNT)[0] == Exit.OK
    assert (folder / "kept.ledger").exists()
    assert not (folder / "people.ledger").exists()


def test_where_no_ledger_can_be_made_nothing_is_answered(run: Runs, folder: Path):
    (folder / "people.ledger").mkdir()  # whoever asks, root too, can make no file of that name
    code, numbers, told = run("-c", COUNT)
    assert (code, numbers) == (Exit.USAGE, [])
    assert told.startswith("LedgerError: ")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_refused(run: Runs, folder: Path):
    folder.chmod(0o500)
    try:
        assert run("-c", COUNT)[0] == Exit.USAGE
    finally:
        folder.chmod(0o700)


def test_a_dry_run_makes_no_ledger_and_needs_none(run: Runs, folder: Path):
    assert run("--dry-run", "-c", COUNT)[0] == Exit.OK
    assert not list(folder.glob("*.ledger"))


def test_a_schema_of_a_dict_has_no_default(folder: Path):
    content = {"budget": {"epsilon": 3}, "tables": {"people": {"path": "people.csv"}}}
    with dpsql.Session(schema=dpsql.Schema.from_dict(content)) as session:
        session.query(COUNT, epsilon=1)
        assert session.ledger_path is None
    assert not list(folder.glob("*.ledger"))


def test_a_file_without_a_budget_has_none_either(folder: Path):
    (folder / "people.toml").write_text('[tables.people]\npath = "people.csv"\n')
    with dpsql.Session(schema=dpsql.Schema.from_toml("people.toml"), budget=dpsql.Budget(1)) as session:
        session.query(COUNT, epsilon=1)
    assert not list(folder.glob("*.ledger"))


@pytest.mark.parametrize(
    ("name", "ledger"),
    [
        ("people.toml", "people.ledger"),
        ("a.b.toml", "a.b.ledger"),
        ("plain", "plain.ledger"),
        ("x.ledger", "x.ledger.ledger"),
    ],
)
def test_its_name_follows_the_files(name: str, ledger: str, folder: Path):
    (folder / name).write_text(TOML)
    schema = dpsql.Schema.from_toml(name)
    assert schema.default_ledger is not None
    assert schema.default_ledger.name == ledger


def test_another_name_of_the_same_file_has_the_same_ledger(folder: Path):
    (folder / "sub").mkdir()
    (folder / "sub" / "link.toml").symlink_to(folder / "people.toml")
    with dpsql.Session(FRAMES, schema=dpsql.Schema.from_toml(folder / "sub" / "link.toml")) as session:
        assert session.ledger_path == Path(os.path.realpath(folder / "people.ledger"))


FRAMES = {"people": pd.DataFrame({"city": ["Lyon"] * 400})}


def test_a_tighter_budget_counts_beside_the_whole(folder: Path):
    schema = dpsql.Schema.from_toml("people.toml")
    with dpsql.Session(FRAMES, schema=schema) as session:
        session.query(COUNT, epsilon=1)
    with dpsql.Session(FRAMES, schema=schema, budget=dpsql.Budget(1.5)) as session:
        assert (session.budget.epsilon, session.remaining.epsilon) == (1.5, 0.5)
        with pytest.raises(dpsql.errors.BudgetExceeded, match="of this session's budget"):
            session.query(COUNT, epsilon=0.6)
        session.query(COUNT, epsilon=0.5)
        with dpsql.Session(FRAMES, schema=schema) as beside:
            beside.query(COUNT, epsilon=1)
        assert session.remaining.epsilon == 0  # more is spent than it may
        with pytest.raises(dpsql.errors.BudgetExceeded):
            session.query(f"{COUNT} WHERE city = 'x'", epsilon=0.1)
        assert session.quote(f"{COUNT} WHERE city = 'x'", epsilon=0.1).admitted is False
    with dpsql.Session(FRAMES, schema=schema) as session:  # the ledger keeps the owner's rules
        assert (session.budget.epsilon, session.remaining.epsilon) == (3, 0.5)
    with pytest.raises(dpsql.errors.InvalidPrivacyParameter):
        dpsql.Session(FRAMES, schema=schema, budget=dpsql.Budget(4))


def test_words_for_the_ledger_are_checked():
    with pytest.raises(InvalidArgument, match="ledger must be a path, or False"):
        dpsql.Session(FRAMES, budget=dpsql.Budget(1), ledger=True)  # type: ignore[arg-type]


def test_both_options_contradict_each_other(run: Runs):
    assert run("--ledger", "a.db", "--no-ledger", "-c", COUNT)[0] == Exit.USAGE


def test_a_kernel_that_starts_again_has_its_ledger(folder: Path):
    schema = dpsql.Schema.from_toml("people.toml")
    with dpsql.Session(FRAMES, schema=schema) as session:
        session.query(COUNT, epsilon=1)
    with dpsql.Session(FRAMES, schema=schema) as session:
        assert session.remaining.epsilon == 2


def test_a_ledger_that_was_cut_is_not_made_anew(folder: Path):
    (folder / "people.ledger").write_bytes(b"")
    with pytest.raises(LedgerError):
        dpsql.Session(FRAMES, schema=dpsql.Schema.from_toml("people.toml"))
