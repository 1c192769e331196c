"""What an owner's file leaves open: units that nobody has decided, and comments that say TODO."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, InvalidSchema
from dpsql.owner import check, init, open_todos, rehearse
from dpsql.owner.todos import check_finished
from dpsql.remote.server.run import ServerSetup, serve
from dpsql.session.owner_file import Schema
from dpsql.shell.cli import main

ROOT = Path(__file__).parent.parent.parent
ROWS = "person_id,age,city,row\n" + "".join(f"{i // 3},{20 + i % 50},Bonn,{i}\n" for i in range(300))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.csv").write_text(ROWS)
    return tmp_path


def keys(file: Path) -> list[tuple[str, str]]:
    return [(each.table, each.key) for each in open_todos(file)]


def written(folder: Path, text: str) -> Path:
    (folder / "p.toml").write_text(text)
    return folder / "p.toml"


def test_what_init_writes_is_not_finished(folder: Path, capsys: pytest.CaptureFixture[str]):
    file = init([folder / "p.csv"])
    assert main(["check", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "table p, unit: TODO whose row is it?" in shown
    assert "budget.epsilon: TODO how much" in shown
    assert "open TODOs" in shown
    assert {("p", "unit"), ("", "budget.epsilon"), ("p", "age.bounds")} <= set(keys(file))
    text = file.read_text()
    decided = text.replace("# epsilon = ...", "epsilon = 1").replace('# unit = "person_id"', 'unit = "person_id"')
    for column in ("person_id", "row"):
        decided = decided.replace(
            f'{column} = {{ type = "integer" }}  # check the type; TODO bounds', f"{column} = {{}}"
        )
    assert keys(written(folder, decided)) == [("p", "age.bounds")]
    file = written(
        folder, decided.replace('age = { type = "integer" }', 'age = { type = "integer", bounds = [0, 99] }')
    )
    assert open_todos(file) == check(file) == ()
    assert main(["check", str(file)]) == 0


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        ("", True),
        ("public = false\n", True),
        ('# unit = "row"\n', True),
        ('unit = "row"\n', False),
        ('unit = "person_id"\n', False),
        ('unit = "age -> q.id"\n', False),
        ("public = true\n", False),
    ],
)
def test_every_private_table_has_a_unit(words: str, is_open: bool, folder: Path):
    file = written(folder, f'[tables.p]\npath = "p.csv"\n{words}[tables.q]\nunit = "id"\n')
    assert keys(file) == ([("p", "unit")] if is_open else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[budget]\n# epsilon = ...  # TODO how much\n", [(2, "", "budget.epsilon")]),
        ("[budget]\nepsilon = 1\n# epsilon = ...  # TODO how much\n", []),
        ("# TODO ask the board\n", [(1, "", "")]),
        ('[tables.p]\nunit = "a" # TODO: ask\n', []),
        ('[tables.p]\nunit = "a"\ncolumns.b = {} # TODO: ask\n', [(3, "p", "")]),
        (
            '[tables.p]\nunit = "a"\n[tables.p.columns]\na = { type = "integer" }  # TODO bounds\n',
            [(4, "p", "a.bounds")],
        ),
        ('[tables.p]\nunit = "a"\n[tables.p.columns]\na = { bounds = [0, 1] }  # TODO bounds\n', []),
        ('[tables.p]\nunit = "a"\n[tables.p.columns]\n"a # TODO" = { keys = ["# TODO"] }\n', []),
        ('[tables.p]\npublic = true\n# unit = "a"  # TODO whose row is it?\n', []),
        ("[tables.p]\n# unit = ...  # TODO whose row is it?\n", [(2, "p", "unit")]),
    ],
)
def test_a_comment_is_open_until_its_setting_is_there(text: str, found: list[tuple[int, str, str]], tmp_path: Path):
    todos = open_todos(written(tmp_path, text))
    assert [(each.line, each.table, each.key) for each in todos] == found


@pytest.mark.parametrize("file", ["adult_sample/adult.toml", "examples/shop/shop.toml", "examples/tpch/tpch.toml"])
def test_finished_files_leave_nothing_open(file: str):
    assert open_todos(ROOT / file) == ()
    assert main(["check", str(ROOT / file)]) == 0


def test_rows_as_units_are_declared_by_a_word(folder: Path):
    frame = pd.DataFrame({"person_id": [1, 1, 2], "age": [1, 2, 3]})
    session = dpsql.Session({"t": dpsql.Table(frame, unit="row")}, budget=dpsql.Budget(1e9))
    answer = session.query("SELECT COUNT(*) AS n FROM t", epsilon=1e8)
    assert (answer.item(), [note for note in answer.notes if "person_id" in note]) == (3, [])
    silent = dpsql.query({"t": frame}, "SELECT COUNT(*) AS n FROM t", epsilon=1e8)
    assert any("person_id" in note for note in silent.notes)
    for words, message in (
        ({"max_rows": 2}, r'max_rows is declared with unit = "row"'),
        ({"public": True}, "declared public, so it has no unit"),
    ):
        with pytest.raises(InvalidSchema, match=message):
            dpsql.Table(frame, unit="row", **words)
    dpsql.Table(frame, unit="row", partition="age")
    named = frame.rename(columns={"age": "Row"})
    with pytest.raises(InvalidSchema, match='column "Row"'):
        dpsql.Table(named, unit="row")
    assert dpsql.Table(named, unit='"row"', max_rows=1).declaration.table.unit is not None


def test_the_answer_to_a_question_is_the_same_with_and_without_the_word(tmp_path: Path):
    """What was paid for is given again once the owner has decided what held all along."""
    frame = pd.DataFrame({"age": [1, 2, 3]})
    answers = []
    for words in ({}, {"unit": "row"}):
        table = dpsql.Table(frame, version="1", **words)
        with dpsql.Session({"t": table}, budget=dpsql.Budget(1), ledger=tmp_path / "t.ledger") as session:
            answers.append(session.query("SELECT COUNT(*) AS n FROM t", epsilon=1).item())
    assert answers[0] == answers[1]


def test_unfinished_files_are_neither_served_nor_rehearsed(folder: Path, capsys: pytest.CaptureFixture[str]):
    file = init([folder / "p.csv"])
    file.write_text(file.read_text().replace("# epsilon = ...", "epsilon = 1"))
    for refused in (lambda: serve(ServerSetup(file)), lambda: rehearse(file), lambda: check_finished(file)):
        with pytest.raises(InvalidSchema, match="the unit of table p is not decided"):
            refused()
    assert main(["rehearse", str(file), "--epsilon", "1", "-c", "SELECT COUNT(*) FROM p"]) == 2
    assert main(["serve", str(file)]) == 2
    assert 'unit = "row"' in capsys.readouterr().err
    file.write_text(file.read_text().replace('# unit = "person_id"', 'unit = "person_id"\nmax_rows = 3'))
    check_finished(file)
    assert rehearse(file).query("SELECT COUNT(*) AS n FROM p", epsilon=1e5).item() > 500
    silent = written(folder, '[tables.p]\npath = "p.csv"\n[tables.q]\nunit = "row"\n')
    check_finished(silent)
    assert Schema.from_toml(silent).undecided_units == ("p",)


def test_a_file_without_a_budget_is_rehearsed_with_one_that_is_given(folder: Path):
    file = written(folder, '[tables.p]\npath = "p.csv"\nunit = "row"\n[tables.p.columns]\nage = { type = "integer" }\n')
    with pytest.raises(InvalidSchema, match="the file has no budget"):
        rehearse(file)
    asked = ["--epsilon", "1", "-c", "SELECT COUNT(age) FROM p"]
    assert main(["rehearse", str(file), *asked]) == 2
    assert main(["rehearse", str(file), "--budget", "3", *asked]) == 0
    assert rehearse(file, budget=dpsql.Budget(1)).query("SELECT COUNT(age) AS n FROM p", epsilon=1).item() > 0


QUERIES = (
    "SELECT COUNT(*) AS n FROM p",
    "SELECT SUM(age) AS s FROM p",
    "SELECT city, COUNT(*) AS n FROM p GROUP BY city",
    "SELECT SUM(zip) AS s FROM p",
    "SELECT COUNT(*) AS n FROM p WHERE zip > 3",
    "SELECT COUNT(*) AS n FROM p WHERE zip LIKE '1%'",
    "SELECT COUNT(*) AS n FROM q JOIN p ON q.id = p.person_id",
    "SELECT COALESCE(age, 0) AS a, COUNT(*) AS n FROM p GROUP BY a",
)
SETTINGS = {
    "person_id": ["{}", '{ type = "integer" }', '{ type = "text" }'],
    "age": ["{}", '{ type = "integer" }', "{ bounds = [0, 9] }", '{ type = "integer", bounds = [0, 9] }'],
    "city": ["{}", '{ keys = ["a"] }', "{ keys = [1, 2] }", '{ type = "integer", keys = ["a"] }'],
    "zip": ["{}", "{ keys = [1, 2] }", '{ type = "integer", keys = [1, 2] }', '{ type = "boolean" }'],
}


def test_a_rehearsal_refuses_what_a_session_refuses(tmp_path: Path):
    """Owner's files at random: what a session over the data refuses, a rehearsal refuses too, of the same kind."""
    chance = random.Random(5)
    frame = pd.DataFrame({"person_id": ["1", "2"], "age": ["3", "4"], "city": ["a", "b"], "zip": ["1", "2"]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "q.csv").write_text("id\n1\n")
    refused = 0
    for _ in range(25):
        unit = chance.choice(
            ['unit = "row"', 'unit = "person_id"\nmax_rows = 2', 'unit = "person_id -> q.id"\nmax_rows = 2']
        )
        columns = "\n".join(f"{name} = {chance.choice(words)}" for name, words in SETTINGS.items())
        file = written(
            tmp_path,
            f'[budget]\nepsilon = 1e6\n[tables.p]\npath = "p.csv"\n{unit}\n[tables.p.columns]\n{columns}\n'
            '[tables.q]\npath = "q.csv"\nunit = "id"\nmax_rows = 1\nunique = ["id"]\n'
            'columns.id = { type = "integer" }\n',
        )
        session = opened(dpsql.Session, schema=Schema.from_toml(file), ledger=False)
        rehearsal = opened(rehearse, file)
        if isinstance(session, str):
            assert isinstance(rehearsal, str), (file.read_text(), session)
            refused += 1
            continue
        assert not isinstance(rehearsal, str), file.read_text()
        for sql in QUERIES:
            outcomes = [opened(made.query, sql, epsilon=1) for made in (session, rehearsal)]
            if isinstance(outcomes[0], str):
                assert isinstance(outcomes[1], str), (sql, file.read_text(), outcomes[0])
                refused += 1
    assert refused > 20


def opened(make: Callable[..., Any], *arguments: Any, **words: Any) -> Any:
    """What is made, or the kind of the refusal."""
    try:
        return make(*arguments, **words)
    except DPSQLError as error:
        return type(error).__name__
