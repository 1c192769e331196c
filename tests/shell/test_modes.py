"""Answers in every mode, to the screen and to files."""

from __future__ import annotations

import csv
import io
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from dpsql.answer.result import Result
from dpsql.core.ledger.budget import Budget
from dpsql.errors import InvalidArgument, UnknownTable
from dpsql.session.parameter_values import parameter
from dpsql.session.session import Session
from dpsql.session.tables.table import Table
from dpsql.shell.cli import Exit, main
from dpsql.shell.output.listing import Listing, listing_of
from dpsql.shell.output.modes import MODES, PARQUET, as_text, written
from dpsql.shell.output.streams import FileFailed
from dpsql.shell.output.target import Target
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.command import ReadFile
from dpsql.shell.prompt.commands import COMMANDS, not_here, run_command
from dpsql.shell.shell import Shell

COUNT = "SELECT COUNT(*) AS n FROM people"
GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city"


@pytest.fixture
def session() -> Session:
    frame = pd.DataFrame({"age": [40] * 300, "city": ["Lyon"] * 300, "home town": ["x"] * 300})
    people = Table(frame, bounds={"age": (0, 100)}, keys={"city": ["Brest", "Lyon"]})
    return Session({"people": people}, budget=Budget(100, 1e-6))


@pytest.fixture
def shell(session: Session) -> Shell:
    return Shell(Asker(session, epsilon=1.0))


@pytest.fixture
def answer(session: Session) -> Result:
    result = session.query(GROUPED, epsilon=1)
    assert isinstance(result, Result)
    return result


def test_machine_modes_hold_values_in_full_with_their_intervals(answer: Result):
    heads = ["city", "n", "n_low", "n_high", "a", "a_low", "a_high"]
    for mode, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = list(csv.reader(io.StringIO(as_text(answer, mode)), delimiter=delimiter))
        assert rows[0] == heads
        assert [row[0] for row in rows[1:]] == ["Brest", "Lyon"]
        assert [float(row[4]) for row in rows[1:]] == answer["a"].tolist()
    listed = json.loads(as_text(answer, "json"))
    assert [list(row) for row in listed] == [heads, heads]
    assert [json.loads(line) for line in as_text(answer, "jsonl").splitlines()] == listed


def test_modes_for_people_have_digits_that_follow_the_noise(answer: Result):
    lines = as_text(answer, "line").split("\n")
    assert lines[0] == "city = Brest"
    assert lines[1].startswith("   n = ")
    assert "±" in lines[1]
    assert lines[3] == ""
    assert as_text(answer, "box").startswith("+---")
    assert as_text(answer, "markdown").startswith("| city | n | 95 % | a | 95 % |\n| :--- | ---: |")
    assert as_text(answer, "html").startswith("<table")


def test_only_the_first_rows_of_a_box_on_request(answer: Result):
    assert "(1 more rows; .maxrows 0 shows all)" in as_text(answer, "box", 1)
    assert "Lyon" not in as_text(answer, "line", 1)
    assert "Lyon" in as_text(answer, "csv", 1)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != PARQUET])
def test_listings_and_explanations_in_every_text_mode(mode: str, session: Session):
    listing = listing_of("describe PEOPLE;", session)
    assert listing is not None
    assert "home town" in as_text(listing, mode)
    explained = as_text(session.explain(COUNT, epsilon=1), mode)
    assert "laplace" in explained.lower()
    if mode in ("json", "jsonl"):
        assert json.loads(explained)["columns"][0]["name"] == "n"
        assert len(json.loads(as_text(listing, "json"))) == 3


def test_listings(session: Session):
    assert listing_of(COUNT, session) is None
    assert listing_of("SHOW TABLES", session) == Listing(
        ("name", "columns", "rows"), (("people", "3", "each row is one person's"),)
    )
    assert listing_of('DESC TABLE "people"', session) == listing_of("DESCRIBE people", session)
    with pytest.raises(UnknownTable, match='no table "peple". Did you mean "people"'):
        listing_of("DESCRIBE peple", session)


def test_parquet_holds_the_answer_and_what_was_spent(answer: Result, tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.parquet").write_bytes(written(answer, PARQUET))
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["city", "n", "n_low", "n_high", "a", "a_low", "a_high"]
    assert b"spent epsilon 1" in table.schema.metadata[b"dpsql"]


def test_answers_stand_apart_where_a_mode_needs_it(answer: Result):
    assert written(answer, "csv", first=False) == b"\n" + written(answer, "csv")
    assert written(answer, "json", first=False) == written(answer, "json")


def test_what_cannot_be_written_is_refused_before_it_is_paid_for(shell: Shell, tmp_path: Path):
    for path in (tmp_path, tmp_path / "nowhere" / "a.csv", f"{tmp_path}/nowhere/"):
        with pytest.raises(InvalidArgument, match="cannot be written"):
            shell.write_to(path)
        with pytest.raises(InvalidArgument, match="cannot be written"):
            shell.write_once_to(path)
    shell.set_mode(PARQUET)
    shell.interactive = True
    with pytest.raises(InvalidArgument, match="no text for a screen"):
        shell.answer(COUNT)
    shell.write_to(tmp_path / "a.parquet")
    shell.answer(COUNT)
    with pytest.raises(InvalidArgument, match="holds one answer"):
        shell.answer(GROUPED)
    assert [entry.label for entry in shell.asker.session.ledger()] == [COUNT]


def test_an_explanation_is_no_parquet_file(shell: Shell, tmp_path: Path):
    shell.set_mode(PARQUET)
    shell.write_to(tmp_path / "a.parquet")
    with pytest.raises(InvalidArgument, match="no table"):
        shell.answer(f"EXPLAIN PRIVACY {COUNT}")
    shell.close()
    assert not (tmp_path / "a.parquet").exists()


def test_an_unknown_mode(shell: Shell):
    with pytest.raises(InvalidArgument, match='no mode "jsn". Did you mean "json"'):
        shell.set_mode("jsn")


def test_a_file_keeps_what_it_held_until_there_is_an_answer(tmp_path: Path):
    old = tmp_path / "old.txt"
    old.write_text("before, and much longer\n")
    target = Target(old)
    target.close()
    assert old.read_text() == "before, and much longer\n"
    target = Target(old)
    target.write(b"a\n")
    target.write(b"b\n")
    target.close()
    assert old.read_text() == "a\nb\n"
    unused = Target(tmp_path / "new.txt")
    unused.close()
    assert not (tmp_path / "new.txt").exists()


def test_once_is_for_one_answer_and_output_for_all(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shell.set_mode("csv")
    shell.write_to(tmp_path / "all.csv")
    shell.write_once_to(tmp_path / "one.csv")
    shell.answer(COUNT)
    shell.answer(GROUPED)
    shell.answer("SHOW TABLES")
    shell.write_to(None)
    shell.answer(COUNT)
    out, err = capsys.readouterr()
    assert (tmp_path / "one.csv").read_text().startswith("n,n_low,n_high\n")
    assert (tmp_path / "all.csv").read_text().split("\n\n")[1].startswith("name,columns,rows\n")
    assert out == (tmp_path / "one.csv").read_text()
    assert err.count("spent epsilon 1 ") == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_paid_answer_that_a_full_disk_does_not_take_is_on_the_screen(
    shell: Shell, capsys: pytest.CaptureFixture[str]
):
    shell.write_once_to("/dev/full")
    with pytest.raises(FileFailed, match="No space left"):
        shell.answer(COUNT)
    assert capsys.readouterr().out.startswith("+---")


def test_a_dry_run_spends_nothing(shell: Shell, capsys: pytest.CaptureFixture[str]):
    assert "explained" in run_command(shell, ".dryrun", "on")
    shell.answer(COUNT)
    assert capsys.readouterr().out.startswith("Protects")
    assert shell.asker.session.ledger() == ()


def test_the_time_of_a_private_answer_is_not_told(shell: Shell, capsys: pytest.CaptureFixture[str]):
    shell.loading = 0.25
    assert run_command(shell, ".timer", "on").endswith("the tables were loaded in 0.25 s")
    shell.answer(COUNT)
    err = capsys.readouterr().err
    assert err.startswith("planned in 0.")
    assert "how long an answer takes may depend on the rows, so it is not told" in err
    assert err.count(" s ") == 1


def test_the_last_answer_again_and_drawn_is_free(shell: Shell, capsys: pytest.CaptureFixture[str]):
    for word in (".last", ".plot"):
        with pytest.raises(InvalidArgument, match="no answer"):
            run_command(shell, word, "")
    shell.answer(GROUPED)
    shell.set_mode("json")
    capsys.readouterr()
    run_command(shell, ".last", "")
    assert len(json.loads(capsys.readouterr().out)) == 2
    drawn = run_command(shell, ".plot", "")
    assert drawn.startswith("n\nBrest │")
    assert drawn.endswith("95 % intervals, epsilon 1")
    assert len(shell.asker.session.ledger()) == 1


@pytest.mark.parametrize(
    ("word", "argument", "text"),
    [
        (".maxrows", "5", "the first 5 rows are shown"),
        (".maxrows", "0", "all rows are shown"),
        (".bounds", "", "people.age        integer  from 0 to 100\n"),
        (".keys", "people", "people.city  'Brest', 'Lyon'"),
        (".param", "low=20", ":low = 20"),
        (".mechanism", "laplace", "mechanism laplace"),
        (".dialect", "", "dialect duckdb"),
        (".dialect", "postgresql", "dialect postgres"),
        (".error", "50", "each query spends the least epsilon that keeps answers within 50"),
        (".pager", "off", "pager off"),
        (".confirm", "off", "nothing is asked about before it is spent"),
        (".confirm", "on", "large spends are asked about first"),
    ],
)
def test_commands_that_set_and_tell(word: str, argument: str, text: str, shell: Shell):
    assert " ".join(run_command(shell, word, argument).split()).startswith(" ".join(text.split()))


@pytest.mark.parametrize(
    ("word", "argument"),
    [
        (".maxrows", "-1"),
        (".timer", "maybe"),
        (".mode", "x"),
        (".mechanism", "x"),
        (".dialect", "x"),
        (".param", "x"),
        (".once", ""),
        (".read", ""),
        (".schema", "nowhere"),
    ],
)
def test_commands_gone_wrong(word: str, argument: str, shell: Shell):
    with pytest.raises(InvalidArgument):
        run_command(shell, word, argument)


def test_read_asks_for_a_file(shell: Shell):
    with pytest.raises(ReadFile) as raised:
        run_command(shell, ".read", "'a b.sql'")
    assert raised.value.path == Path("a b.sql")


def test_parameters_have_types():
    typed = {text: parameter(f"p={text}")[1] for text in ("3", "0.5", "true", "null", "2024-01-31", "'3'", "x=y", "")}
    assert typed["3"] == 3
    assert (typed["0.5"], typed["true"], typed["null"], typed["'3'"], typed["x=y"]) == (0.5, True, None, "3", "x=y")
    assert typed["2024-01-31"].isoformat() == "2024-01-31"
    assert typed[""] == ""


def test_the_prompts_commands_are_answered_elsewhere_with_what_does_the_same():
    refusal = not_here(".mode json")
    assert refusal is not None
    assert str(refusal) == '".mode" is a command of the prompt, and no SQL.\n  Here: --mode MODE.'
    assert str(not_here("\\d")) == '"\\d" is a command of the prompt, and no SQL.\n  Here: SHOW TABLES.'
    assert "Start dpsql without -c and -f." in str(not_here(".plot"))
    assert not_here(COUNT) is None
    assert len({each.name for each in COMMANDS}) == len(COMMANDS)


Runs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    (tmp_path / "people.csv").write_text("\n".join(["city,age", *["Lyon,40"] * 400]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    def command(*argv: str) -> tuple[int, str, str]:
        code = main(["people.csv", "--budget", "100", "--epsilon", "1", *argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_the_command_line_takes_modes_files_and_parameters(run: Runs, tmp_path: Path):
    asked = f"{COUNT} WHERE city = :city"
    code, out, _ = run("-c", asked, "--param", "city=Lyon", "--mode", "jsonl", "--output", "a.jsonl")
    assert (code, out) == (0, "")
    assert abs(json.loads((tmp_path / "a.jsonl").read_text())["n"] - 400) < 100
    code, out, err = run("-c", asked, "--param", "city=Lyon", "--param", "cty=1")
    assert (code, out) == (Exit.USAGE, "")
    assert 'no statement has :cty. Did you mean "city"?' in err
    code, out, err = run("-c", asked)
    assert code == Exit.REFUSED
    assert "Pass --param city=VALUE." in err


def test_the_command_line_refuses_what_it_cannot_write_before_it_asks(run: Runs):
    for argv, message in (
        (("--output", "no/where.csv"), "cannot be written"),
        (("--output", "nowhere/"), "it names a folder"),
        (("--mode", "xml"), 'no mode "xml"'),
        (("--mode", "parquet", "-c", COUNT), "a Parquet file holds one answer, and there are 2 statements"),
        (("--mechanism", "x"), 'no mechanism "x"'),
        (("--error", "-1"), "--error must be a finite number > 0"),
        (("--param", "x"), "a parameter is written name=value"),
        (("-c", ".tables"), '".tables" is a command of the prompt'),
    ):
        code, out, err = run("-c", COUNT, *argv)
        assert (code, out) == (Exit.USAGE, ""), argv
        assert message in err
        assert "spent" not in err


def test_a_dry_run_and_an_error_on_the_command_line(run: Runs):
    code, out, err = run("-c", COUNT, "--dry-run")
    assert (code, err.count("spent")) == (0, 0)
    assert out.startswith("Protects")
    code = main(["people.csv", "--budget", "9", "--error", "50", "--mechanism", "laplace", "-c", COUNT])
    assert code == 0
    ours = "SELECT COUNT(*) AS n FROM `people` WHERE age LIKE '3%'"
    assert main(["people.csv", "--budget", "9", "--epsilon", "1", "--dialect", "mysql", "-c", ours]) == 0


def test_files_are_private_to_nobody_but_keep_their_rights(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.touch(mode=0o640)
    kept.chmod(0o640)
    target = Target(kept)
    target.write(b"x")
    target.close()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
