"""Answers over made-up rows: headed so in every form, at no cost, and without the data."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.owner import rehearse
from dpsql.owner.rehearsal import HEADING
from dpsql.shell.cli import main

ROOT = Path(__file__).parent.parent.parent
GROUPED = 'SELECT sex, COUNT(*) AS n, AVG("hours-per-week") AS hours FROM adult GROUP BY sex'
Runs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def alone(sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's file without its data."""
    (sample / "adult.csv").unlink()
    monkeypatch.chdir(sample)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return sample


@pytest.fixture
def run(alone: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    def command(*argv: str) -> tuple[int, str, str]:
        code = main(["rehearse", "adult.toml", "--epsilon", "1", *argv])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


@pytest.mark.parametrize("mode", ["box", "csv", "json", "jsonl", "line", "markdown", "tsv", "html"])
def test_every_mode_is_headed(mode: str, run: Runs, alone: Path):
    code, shown, told = run("--mode", mode, "-c", GROUPED)
    assert code == 0
    assert HEADING in shown
    assert f"{HEADING}: nothing was spent; over the data it is epsilon 1" in told
    assert [each.name for each in alone.iterdir() if each.suffix == ".ledger"] == []


def test_parquet_is_headed(run: Runs, alone: Path):
    pytest.importorskip("pyarrow")
    assert run("--mode", "parquet", "--output", "out.parquet", "-c", GROUPED)[0] == 0
    assert list(pd.read_parquet(alone / "out.parquet").columns)[:2] == [HEADING, "sex"]


def test_every_form_of_the_library_is_headed(alone: Path):
    result = rehearse("adult.toml").query(GROUPED, epsilon=1)
    forms = [str(result), repr(result), result.to_csv(), result.to_json(), result.to_markdown(), result.to_html()]
    forms += [result.to_json(lines=True), result._repr_html_(), result.to_csv(intervals=False), str(result.to_arrow())]
    assert all(HEADING in form for form in forms)
    assert list(result.df.columns) == ["sex", "n", "hours"]  # what a report computes with


def test_plots_are_headed(alone: Path):
    pytest.importorskip("matplotlib")
    from dpsql.answer.chart import chart

    result = rehearse("adult.toml").query(GROUPED, epsilon=1)
    figure = result.plot()
    assert figure._suptitle.get_text() == HEADING
    assert HEADING in chart(result).splitlines()[0]


def test_refusals_and_widths_are_those_of_the_data(run: Runs, adult: pd.DataFrame, sample: Path):
    code, _, told = run("-c", "SELECT age FROM adult")
    assert (code, "RawColumn" in told) == (1, True)
    people = dpsql.declare(adult, bounds={"age": (17, 90)}, keys={"sex": ["Female", "Male"]})
    session = dpsql.Session({"adult": people}, budget=dpsql.Budget(3))
    sql = "SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex"
    widths = []
    for each in (session, rehearse("adult.toml")):
        limits = each.query(sql, epsilon=0.1).intervals()
        widths.append((limits["n_high"] - limits["n_low"]).tolist())
    assert widths[0] == widths[1]


def test_no_budget_ends(run: Runs):
    batch = [word for age in range(20, 30) for word in ("-c", f"SELECT COUNT(*) FROM adult WHERE age > {age}")]
    assert run(*batch)[0] == 0


def test_rows_are_the_same_each_time_and_as_declared(alone: Path):
    exact = [_frame("adult.toml", "adult") for _ in range(2)]
    assert exact[0].equals(exact[1])
    assert exact[0]["age"].between(17, 90).all()
    assert set(exact[0]["sex"]) == {"Female", "Male"}


def _frame(file: str, table: str) -> pd.DataFrame:
    store = rehearse(file)._stores[table]
    return store.source  # type: ignore[attr-defined,no-any-return]


def test_units_lead_somewhere():
    session = rehearse(ROOT / "examples" / "shop" / "shop.toml")
    sql = "SELECT COUNT(*) AS n FROM orders JOIN customer ON o_custkey = c_custkey"
    assert session.query(sql, epsilon=1e5).item() > 500


def test_a_report_runs_on_both(sample: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(sample)

    def report(session: dpsql.Session) -> list[str]:
        result = session.query(GROUPED, epsilon=1)
        assert isinstance(result, dpsql.Result)
        return [f"{row.sex}: {row.n}" for row in result.df.itertuples()]

    with dpsql.Session(schema=dpsql.Schema.from_toml("adult.toml")) as session:
        assert len(report(rehearse("adult.toml"))) == len(report(session)) == 2


def test_one_file_is_rehearsed(alone: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["rehearse", "-c", "SELECT 1"]) == 2
    assert main(["rehearse", "a.toml", "b.toml", "-c", "SELECT 1"]) == 2
    (alone / "bare.toml").write_text('[tables.t]\npath = "t.csv"\n')
    assert main(["rehearse", "bare.toml", "-c", "SELECT COUNT(*) FROM t"]) == 2
    assert "declares no column" in capsys.readouterr().err
