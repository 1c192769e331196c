"""Ledgers, replay, rho and shares in the command line, at the prompt and in the magics."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidArgument
from dpsql.shell.cli import Exit, main
from dpsql.shell.notebook.magic import Magic
from dpsql.shell.notebook.magic_options import Options, read_options
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.commands import run_command
from dpsql.shell.shell import Shell

COUNT = "SELECT COUNT(*) AS n FROM people"
Runs = Callable[..., tuple[int, list[int], str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    """The command in a folder with people.csv of 400 rows: its code, its numbers, its standard error."""
    (tmp_path / "people.csv").write_text("\n".join(["city", *["Lyon"] * 400]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    def command(*argv: str) -> tuple[int, list[int], str]:
        code = main(["people.csv", *argv])
        said = capsys.readouterr()
        return code, [int(value) for value in re.findall(r"^(-?\d+),", said.out, re.MULTILINE)], said.err

    return command


def test_a_ledger_goes_on_where_the_last_run_ended(run: Runs):
    ledger = ("--ledger", "spent.db", "--epsilon", "1", "--yes")
    assert run("--budget", "2", *ledger, "-c", COUNT)[0] == Exit.OK
    code, numbers, told = run(*ledger, "-c", COUNT)  # the budget is the file's
    assert (code, len(numbers)) == (Exit.OK, 1)
    assert "left epsilon 0 of 2" in told
    code, numbers, told = run(*ledger, "-c", COUNT)
    assert (code, numbers) == (Exit.BUDGET, [])
    code, _, told = run("--budget", "5", *ledger, "-c", COUNT)
    assert code == Exit.USAGE
    assert "LedgerError" in told
    assert "other rules" in told
    assert [entry.label for entry in dpsql.accounting.read_ledger("spent.db")] == [COUNT, COUNT]


def test_a_statement_twice_is_paid_once_unless_fresh(run: Runs):
    _, numbers, told = run("--budget", "3", "--epsilon", "1", "-c", COUNT, "-c", COUNT)
    assert numbers[0] == numbers[1]
    assert "answered before: spent nothing · left epsilon 2 of 3" in told
    _, _, told = run("--budget", "3", "--epsilon", "1", "--fresh", "-c", COUNT, "-c", COUNT)
    assert "left epsilon 1 of 3" in told


def test_rho_accountants_analysts_and_anchors(run: Runs, tmp_path: Path):
    assert "spent rho 0.01" in run("--budget", "1", "--budget-delta", "1e-5", "--rho", "0.01", "-c", COUNT)[2]
    code, _, told = run("--budget", "1", "--rho", "0.01", "--accountant", "basic", "-c", COUNT)
    assert (code, "rhos are not added up here" in told) == (Exit.BUDGET, True)
    assert run("--budget", "1", "--accountant", "sum", "-c", COUNT)[0] == Exit.USAGE
    share = '[budget]\nepsilon = 2\n[budget.analysts.ann]\nepsilon = 0.5\n[tables.people]\npath = "people.csv"\n'
    (tmp_path / "people.toml").write_text(share)
    schema = ("--schema", "people.toml", "--yes", "-c", COUNT)
    assert run(*schema, "--epsilon", "0.5", "--analyst", "ann")[0] == Exit.OK
    code, _, told = run(*schema, "--epsilon", "0.6", "--analyst", "ann")
    assert code == Exit.BUDGET
    assert 'is left for analyst "ann"' in told
    assert run(*schema, "--epsilon", "0.1")[0] == Exit.USAGE
    run("--budget", "2", "--ledger", "a.db", "--epsilon", "1", "-c", COUNT)
    code, _, told = run("--ledger", "a.db", "--anchor", f"7:{'0' * 64}", "--epsilon", "1", "-c", COUNT)
    assert (code, "rolled back" in told) == (Exit.USAGE, True)


def asker() -> Asker:
    session = dpsql.Session({"people": pd.DataFrame({"x": [1] * 400})}, budget=dpsql.Budget(3, 1e-5))
    return Asker(session, epsilon=1.0)


def test_the_prompts_commands(capsys: pytest.CaptureFixture[str]):
    held = Shell(asker(), interactive=True)
    assert run_command(held, ".ledger", "") == "nothing has been spent"
    held.asker.ask(COUNT)
    run_command(held, ".fresh", f"{COUNT};")
    assert "spent epsilon 1 " in capsys.readouterr().out
    lines = run_command(held, ".ledger", "").split("\n")
    assert len(lines) == 2
    assert all(line.endswith(f"epsilon 1  {COUNT}") for line in lines)
    assert run_command(held, ".rho", "") == "no rho is set: .rho 0.1 sets what each query spends, in place of epsilon"
    assert run_command(held, ".rho", "0.001") == "each query spends rho 0.001"
    assert held.asker.epsilon is None
    assert run_command(held, ".epsilon", "0.5") == "each query spends epsilon 0.5"
    assert held.asker.rho is None
    with pytest.raises(InvalidArgument):
        run_command(held, ".fresh", "")
    assert "kept    delta 5e-06, which converts rho to epsilon (accountant auto)" in run_command(held, ".budget", "")


def test_options_of_the_magics():
    assert read_options("--fresh --rho 0.1 x <<") == Options(None, None, "x <<", 0.1, fresh=True)
    assert read_options("--epsilon=1 --fresh") == Options(1.0, None, "", fresh=True)
    with pytest.raises(InvalidArgument, match='Did you mean "--fresh"'):
        read_options("--fres")


def test_a_cell_run_again_is_free_and_fresh_pays(capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("IPython")
    held = asker().session
    magic = Magic({"held": held})
    magic.line("connect held")
    first, again = (magic.cell("--epsilon 1", COUNT) for _ in range(2))
    assert isinstance(first, dpsql.Result)
    assert isinstance(again, dpsql.Result)
    assert (again.replayed, list(again)) == (True, list(first))
    fresh = magic.cell("--epsilon 1 --fresh", COUNT)
    assert isinstance(fresh, dpsql.Result)
    assert not fresh.replayed
    capsys.readouterr()
    magic.line("ledger")
    assert capsys.readouterr().out.count(COUNT) == 2
    assert held.spent.epsilon == 2
