"""The command line: answers on standard output, the rest on standard error, and an exit code that tells."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.shell import batch, cli
from dpsql.shell.cli import Exit, main

SECRET = "Zebulon"
COUNT = "SELECT COUNT(*) AS n FROM people"

TOML = """
[budget]
epsilon = 2
delta = 1e-6

[tables.People]
path = "elsewhere.csv"

[tables.People.columns]
age = { type = "integer", bounds = [0, 100] }
city = { type = "text", keys = ["Brest", "Lyon"] }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in: people.csv with 400 rows, of one name and age that must never show, and an owner's file."""
    rows = [f"{SECRET},{73},{'Lyon' if i % 2 else 'Brest'}" for i in range(400)]
    (tmp_path / "people.csv").write_text("\n".join(["name,age,city", *rows]))
    (tmp_path / "people.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


class Run:
    """A run of the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *argv: str) -> None:
        self.code = main(argv)
        self.out, self.err = capsys.readouterr()

    @property
    def numbers(self) -> list[int]:
        """The values of answers of one row and one aggregate."""
        return [int(value) for value in re.findall(r"^(-?\d+),", self.out, re.MULTILINE)]


Runs = Callable[..., Run]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runs:
    return lambda *argv: Run(capsys, *argv)


@pytest.fixture
def ask(run: Runs) -> Runs:
    """Run with the folder's table and schema; epsilon 0.5 makes a count miss by 100 once in 10^21 runs."""
    return lambda *argv: run("people.csv", "--schema", "people.toml", "--epsilon", "0.5", *argv)


def test_an_answer_and_what_it_cost(ask: Runs):
    done = ask("-c", COUNT, "--mode", "box")
    assert done.code == 0
    assert re.fullmatch(r"\+-+\+-+\+\n\| +n \| 95 % \|\n\+-+\+-+\+\n\| .* \|\n\+-+\+-+\+\n", done.out)
    assert done.err.startswith("spent epsilon 0.5 · left epsilon 1.5 of 2")


def test_the_sample(run: Runs, sample: Path):
    done = run(
        *(str(sample / "adult.csv"), "--schema", str(sample / "adult.toml"), "--epsilon", "1"),
        *("-c", "SELECT COUNT(*) AS n FROM adult WHERE age >= 40"),
        *("-c", 'SELECT sex, AVG("hours-per-week") FROM adult GROUP BY sex'),
    )
    assert done.code == 0
    assert abs(done.numbers[0] - 14_237) < 50
    assert re.search(r"^Female,36\.\d+,", done.out, re.MULTILINE)
    assert len(re.findall("^spent epsilon 1 ", done.err, re.MULTILINE)) == 2


@pytest.mark.parametrize("command", ["init", "check", "cost", "explain", "rehearse", "ledger", "serve", "access"])
def test_a_command_is_a_command_and_a_path_is_a_file(command: str, run: Runs):
    done = run(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: dpsql {command} ")
    done = run(f"./{command}", "--budget", "1", "-c", COUNT)
    assert done.code == Exit.USAGE
    assert done.err.startswith(f"InvalidSchema: {command}: only files named .csv")


def test_a_file_takes_the_place_of_the_schemas_path(ask: Runs, run: Runs):
    assert ask("-c", "SELECT COUNT(*) FROM people").code == 0  # elsewhere.csv, which does not exist, is not read
    done = run("--schema", "people.toml", "--epsilon", "1", "-c", COUNT)
    assert done.code == Exit.USAGE
    assert done.err.startswith("InvalidSchema: no file elsewhere.csv.")


def test_without_files_the_schemas_own_are_read(run: Runs, folder: Path):
    (folder / "people.csv").rename(folder / "elsewhere.csv")
    assert run("--schema", "people.toml", "--epsilon", "1", "-c", COUNT).code == 0


def test_several_files_are_several_tables(run: Runs, folder: Path):
    (folder / "cities.csv").write_text("city\nLyon\n")
    done = run("people.csv", "--budget", "3", "cities.csv", "--epsilon", "1", "-c", f"{COUNT}; {COUNT} WHERE 1 = 0")
    assert done.code == 0
    done = run("people.csv", "cities.csv", "--budget", "3", "--epsilon", "1", "-c", "SELECT COUNT(*) AS n FROM cities")
    assert abs(done.numbers[0] - 1) < 50


def test_statements_come_from_texts_and_files_in_the_order_of_the_command_line(ask: Runs, folder: Path):
    (folder / "b.sql").write_text("-- first; this\nSELECT COUNT(*) AS b FROM people; SELECT COUNT(*) AS c FROM people;")
    done = ask("-c", "SELECT COUNT(*) AS a FROM people;", "-f", "b.sql", "-c", "SELECT COUNT(*) AS d FROM people")
    assert done.code == 0
    assert re.findall(r"^([a-d]),", done.out, re.MULTILINE) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("argv", [[], ["-f", "-"]])
def test_statements_from_standard_input(argv: list[str], ask: Runs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"\ufeff{COUNT} WHERE city = 'a;b';\n{COUNT}\n;"))
    done = ask(*argv)
    assert (done.code, len(done.numbers)) == (0, 2)
    assert abs(done.numbers[0]) < 100
    assert abs(done.numbers[1] - 400) < 100


def test_explain_privacy_is_shown_and_free(ask: Runs):
    done = ask("-c", f"-- how?\nEXPLAIN PRIVACY {COUNT}", "-c", COUNT)
    assert done.code == 0
    assert done.out.startswith("Protects   one row of People")
    assert "left epsilon 1.5 of 2" in done.err


def test_a_refusal_goes_to_standard_error_with_its_place(ask: Runs):
    done = ask("-c", "SELECT SUM(agee) FROM people")
    assert (done.code, done.out) == (Exit.REFUSED, "")
    assert done.err == (
        'UnknownColumn: no column "agee" in People. Did you mean "age"?\n'
        "  LINE 1: SELECT SUM(agee) FROM people\n"
        "                     ^^^^\n"
    )


def test_the_first_error_ends_the_run(ask: Runs):
    done = ask("-c", f"{COUNT}; SELECT SUM(name) FROM people; {COUNT}")
    assert (done.code, len(done.numbers)) == (Exit.REFUSED, 1)
    assert "TypeMismatch: " in done.err
    assert done.err.endswith("Stopped at statement 2 of 3.\n")


def test_the_budget_ends_the_run_and_what_was_answered_stays(ask: Runs):
    done = ask("--yes", *[word for age in range(6) for word in ("-c", f"{COUNT} WHERE age <> {age}")])
    assert (done.code, len(done.numbers)) == (Exit.BUDGET, 4)
    assert "BudgetExceeded: this query costs epsilon 0.5 but 0 is left" in done.err
    assert done.err.endswith("Stopped at statement 5 of 6.\n")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM people",
        "SELECT *, COUNT(*) FROM people",
        "SELECT name, COUNT(*) FROM people GROUP BY name",
        "SELECT MAX(name) FROM people",
        "SELECT COUNT(*) FROM people WHERE name > 3",
        "SELECT SUM(name) FROM people",
        "DROP TABLE people",
        "SELECT COUNT(*) FROM people WHERE",
    ],
)
def test_a_refusal_says_nothing_of_the_rows(sql: str, ask: Runs):
    done = ask("-c", sql)
    assert (done.code, done.out) == (Exit.REFUSED, "")
    assert SECRET not in done.err
    assert "73" not in done.err
    assert "400" not in done.err


def test_a_file_named_sql_is_run(ask: Runs, run: Runs, folder: Path):
    batch = [f"{COUNT} WHERE age = 1", f"{COUNT} WHERE age = 2"]
    (folder / "report.SQL").write_text(";\n".join(batch))
    done = ask("report.SQL", "-c", f"{COUNT} WHERE age = 3", "--epsilon", "0.1")
    assert (done.code, len(done.numbers)) == (0, 3)
    told = [entry.label for entry in dpsql.accounting.read_ledger(folder / "people.ledger")]
    assert told == [*batch, f"{COUNT} WHERE age = 3"]
    for command in ("explain", "cost", "rehearse"):
        files = [] if command == "rehearse" else ["people.csv"]
        done = run(command, *files, "report.SQL", "--schema", "people.toml", "--epsilon", "0.1")
        assert done.code == 0, done.err
    assert len(dpsql.accounting.read_ledger(folder / "people.ledger")) == 3


def test_a_delta_lets_groups_be_hidden(ask: Runs):
    done = ask("--delta", "2e-7", "-c", "SELECT name, COUNT(*) AS n FROM people GROUP BY name")
    assert done.code == 0
    assert f"\n{SECRET}," in done.out  # all 400 have the name, so that it may show
    assert "hidden" in done.err
    assert "hidden" not in done.out


def test_a_query_without_epsilon_is_told_of_the_flag(run: Runs):
    done = run("people.csv", "--budget", "3", "-c", COUNT)
    assert done.code == Exit.REFUSED
    assert "InvalidPrivacyParameter: epsilon is missing" in done.err
    assert done.err.endswith("  Add --epsilon 1, or less for stronger privacy.\n")


def test_a_budget_on_the_command_line(run: Runs):
    asked = ["--epsilon", "1", "--yes", "-c", f"{COUNT}; {COUNT} WHERE name <> ''"]
    alone = run("people.csv", "--budget", "1.5", *asked)
    assert (alone.code, len(alone.numbers)) == (Exit.BUDGET, 1)
    tighter = run("people.csv", "--schema", "people.toml", "--budget", "1", *asked)
    assert (tighter.code, len(tighter.numbers)) == (Exit.BUDGET, 1)
    assert "spent 1 of 1" in tighter.err
    grouped = "SELECT name, COUNT(*) FROM people GROUP BY name"  # the schema's word on delta holds
    alone = ("--schema", "people.toml", "--budget", "1", "--no-ledger", "--delta", "5e-7", *asked[:3])
    assert run("people.csv", *alone, "-c", grouped).code == 0
    wider = run("people.csv", "--schema", "people.toml", "--budget-delta", "0.1", *asked)
    assert (wider.code, wider.out) == (Exit.USAGE, "")
    assert "is more than the schema's" in wider.err


def test_an_undeclared_table_is_noted(run: Runs, folder: Path):
    done = run("people.csv", "--budget", "1", "--epsilon", "1", "-c", COUNT)
    assert done.err.startswith("note: no schema: every column of people is text")
    (folder / "peple.csv").write_text("a\n1\n")
    done = run("people.csv", "peple.csv", "--schema", "people.toml", "--epsilon", "1", "-c", COUNT)
    assert done.err.startswith("note: people.toml has no [tables.peple]: ")
    assert 'Did you mean "People"?' in done.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no table to ask about."),
        (["-c", COUNT], "no table to ask about."),
        (["people.csv", "-c", COUNT], "no budget: how much may all answers together tell about one person? (there is"),
        (["people.csv", "--schema", "bare.toml", "-c", COUNT], "no budget: how much may all answers together tell"),
        (["--schema", "people.toml", "--budget", "1", "-c", COUNT], "no file elsewhere.csv."),
        (["--schema", "bare.toml", "--budget", "1", "-c", COUNT], "bare.toml has no table with a path."),
        (["people.csv", "--budget", "3"], "there is no statement to run."),
        (["people.csv", "--budget", "3", "-c", " ;-- "], "there is no statement to run."),
        (["nowhere.csv", "--budget", "3", "-c", COUNT], "no file nowhere.csv."),
        (["people.parquet", "--budget", "3", "-c", COUNT], "people.parquet cannot be read."),
        (["nowhere.parquet", "--budget", "3", "-c", COUNT], "no file nowhere.parquet."),
        (["people.xlsx", "--budget", "3", "-c", COUNT], "people.xlsx: only files named .csv, .tsv"),
        ([".", "--budget", "3", "-c", COUNT], ". is a folder."),
        (["folder.csv", "--budget", "3", "-c", COUNT], "no file "),
        (["empty.csv", "--budget", "3", "-c", COUNT], "empty.csv is empty"),
        (["bytes.csv", "--budget", "3", "-c", COUNT], "bytes.csv has bytes 0x00: its first line"),
        (["people.csv", "./PEOPLE.csv", "--schema", "people.toml", "-c", COUNT], 'two files give a table "People".'),
        (["--schema", "nowhere.toml", "-c", COUNT], "no schema file nowhere.toml"),
        (["--schema", "people.csv", "-c", COUNT], "people.csv is not TOML"),
        (["--schema", "typo.toml", "-c", COUNT], 'the file has an unknown setting "bugdet". Did you mean "budget"?'),
        (["people.csv", "--schema", "column.toml", "-c", COUNT], 'declared column "agee" is not in people. Did you'),
        (["people.csv", "--budget", "3", "-f", "nowhere.sql"], "nowhere.sql cannot be read: No such file"),
        (["people.csv", "--budget", "3", "-f", "."], ". cannot be read: Is a directory."),
        (["people.csv", "--budget", "3", "-f", "bytes.csv"], "bytes.csv is not text in UTF-8."),
        (["people.csv", "--budget", "3", "-c", "SELECT \udcff"], "-c is not text in UTF-8."),
        (["people.csv", "--budget", "nan", "-c", COUNT], "--budget must be a finite number > 0, got nan."),
        (["people.csv", "--budget", "0", "-c", COUNT], "--budget must be a finite number > 0"),
        (["people.csv", "--budget", "1", "--epsilon", "-1", "-c", COUNT], "--epsilon must be a finite number > 0"),
        (["people.csv", "--budget", "1", "--delta", "1", "-c", COUNT], "--delta must be at least 0 and below 1"),
        (["people.csv", "--budget", "much", "-c", COUNT], "argument --budget: 'much' is not a number."),
        (["people.csv", "--epsilo", "1", "-c", COUNT], 'no option "--epsilo". Did you mean "--epsilon"?'),
        (["people.csv", "-x"], 'no option "-x".'),
        (["people.csv", "--budget", "3", COUNT], "a statement stands behind -c; what stands by itself is a file."),
        (["people.csv", "-c"], "argument -c: expected one argument."),
    ],
)
def test_what_the_command_line_lacks_is_told(argv: list[str], message: str, run: Runs, folder: Path):
    (folder / "folder.csv").mkdir()
    (folder / "empty.csv").touch()
    (folder / "people.parquet").write_bytes(b"name,age\n")
    (folder / "bytes.csv").write_bytes(bytes(range(256)) * 4)
    (folder / "PEOPLE.csv").write_text("name,age,city\n")
    (folder / "bare.toml").write_text("[tables.people]\n")
    (folder / "typo.toml").write_text("[bugdet]\nepsilon = 1\n")
    (folder / "column.toml").write_text("[budget]\nepsilon = 1\n[tables.people.columns]\nagee = { bounds = [0, 9] }\n")
    done = run(*argv)
    assert (done.code, done.out) == (Exit.USAGE, "")
    assert re.match(r"Invalid(Argument|Schema|PrivacyParameter): ", done.err)
    assert message in done.err


def test_help_and_version(run: Runs):
    assert run("--version").out == "dpsql 0.1.0\n"
    done = run("--help")
    assert (done.code, done.err) == (0, "")
    assert re.search("--schema.*--budget.*exit codes", done.out, re.DOTALL)


def test_a_person_at_a_terminal_gets_a_prompt(
    ask: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{COUNT};\n.quit\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("DPSQL_PAGER", "")
    done = ask()
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("dpsql 0.1.0 | table People | protects one row")
    assert "spent epsilon 0.5" in done.out


def test_ctrl_c(ask: Runs, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "run_batch", interrupted)
    done = ask("-c", COUNT)
    assert (done.code, done.err) == (Exit.INTERRUPTED, "\nInterrupted.\n")


def command(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    """`python -m dpsql` as a process of its own, in the current folder."""
    root = str(Path(cli.__file__).parents[2])
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-m", "dpsql", "people.csv", "--budget", "100", "--epsilon", "1", *argv],
        env={**usual, "PYTHONPATH": root, "PYTHONIOENCODING": "ascii"},
        encoding="ascii",
        timeout=60,
        check=False,
        stderr=subprocess.PIPE,
        **options,
    )


def test_as_a_process_of_its_own_with_an_output_that_lacks_signs():
    done = command("--mode", "box", input=COUNT, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert re.search(r"\| +\d+ \| +\\xb13 \|", done.stdout)
    assert "spent epsilon 1 " in done.stderr


def test_a_reader_who_is_gone_ends_the_run_and_the_spending():
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = command("-c", f"{COUNT};" * 5, stdout=writes)
    finally:
        os.close(writes)
    assert done.returncode == Exit.PIPE_CLOSED
    assert "spent" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_told_once():
    with Path("/dev/full").open("w") as full:
        done = command("-c", COUNT, stdout=full)
    assert done.returncode == Exit.USAGE
    assert done.stderr.splitlines()[-1] == "The output cannot be written: No space left on device."
    assert "Traceback" not in done.stderr


def test_a_file_with_types_keeps_them_undeclared(run: Runs, folder: Path):
    pd.DataFrame({"age": [20, 30] * 50}).to_parquet(folder / "ages.parquet")
    done = run("ages.parquet", "--budget", "3", "--epsilon", "1", "-c", "SELECT AVG(CLAMP(age, 0, 100)) FROM ages")
    assert done.code == 0
    assert done.err.startswith("note: no schema: every column of ages is without bounds or keys.")
