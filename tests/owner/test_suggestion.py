"""An owner's file begun: types by fixed rules, and nothing else of the data."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.owner import check, init, suggest_schema
from dpsql.owner.suggestion import type_of_cells
from dpsql.shell.cli import Exit, main


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", "+3", "0"], "integer"),
        (["1", "99999999999999999999999999"], "text"),
        (["1", "1234567890123456"], "text"),
        (["1", "123456789012345"], "integer"),
        (["1", "2.5"], "real"),
        (["1e5", ".5"], "real"),
        (["22.0", "5."], "real"),
        (["Yes", "no"], "boolean"),
        (["1", "0"], "integer"),
        (["1_000"], "text"),
        (["\uff11"], "text"),
        (["2024-01-05T10:11:12Z", "2024-01-05T10:11:12+02:00"], "timestamp"),
        (["5 5 5"], "text"),
        (["1e5", "3."], "real"),
        (["01234", "9"], "text"),
        (["true", "FALSE"], "boolean"),
        (["1", "true"], "text"),
        (["2020-02-29", None], "date"),
        (["2020-02-30"], "text"),
        (["2020-01-01 10:00", "2020-01-01T10:00:00.5"], "timestamp"),
        (["2020-01-01", "2020-01-01 10:00"], "timestamp"),
        (["1", "x"], "text"),
        (["nan", "inf"], "text"),
        ([" "], "text"),
        ([None], "text"),
        ([], "text"),
    ],
)
def test_a_type_is_the_first_that_all_cells_fit(cells: list[str | None], kind: str):
    assert type_of_cells(pd.Series(cells, dtype="str")) == kind


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).mkdir()
    (folder / name / "people.csv").write_text(text)
    return init([folder / name / "people.csv"]).read_text()


def test_files_of_the_same_types_give_the_same_file(tmp_path: Path):
    one = written(tmp_path, "a", "person_id,age,city\n1,30,x\n")
    other = written(tmp_path, "b", "person_id,age,city\n" + "77,-5000000,Zebulon\n" * 3000)
    assert one == other
    assert one != written(tmp_path, "c", "person_id,age,city\n1,30.5,x\n")


def test_a_first_line_that_is_a_row_is_no_header(tmp_path: Path):
    for number, line in enumerate(("1,2,3", "-4", "2020-01-01,true", "1.5,2020-01-01 10:00")):
        with pytest.raises(InvalidSchema, match="it is a row and no header") as refusal:
            written(tmp_path, str(number), f"{line}\n{line}\n")
        assert line.split(",", maxsplit=1)[0] not in str(refusal.value)
        assert not (tmp_path / str(number) / "people.toml").exists()
    assert "named like values" in written(tmp_path, "some", "country,2019,2020\nx,1,2\n")
    assert "named like values" not in written(tmp_path, "none", "country,a2019\nx,1\n")


def test_a_header_of_one_name_may_have_another_delimiter(tmp_path: Path):
    text = written(tmp_path, "a", "a;b\n1;2\n")
    assert 'delimiter = ";"' in text
    assert tomllib.loads(text)["tables"]["people"]["columns"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert "delimiter" not in written(tmp_path, "b", "a;b,c\n1,2\n")
    assert 'delimiter = "\\t"' in written(tmp_path, "c", "a\tb\n1\t2\n")


def test_nothing_of_the_rows_is_in_it(tmp_path: Path):
    text = written(tmp_path, "a", "person_id,age,city,born\n31337,4711,Zebulon,1999-12-31\n")
    assert not re.search("31337|4711|Zebulon|1999", text)
    declared = tomllib.loads(text)["tables"]["people"]
    assert set(declared) == {"path", "columns"}  # no bound, key, limit, unit or version is said
    assert all(set(facts) == {"type"} for facts in declared["columns"].values())
    assert text.count("check the type") == 4
    assert "TODO bounds" in text
    assert '# unit = "person_id"  # TODO' in text
    assert "*.ledger" in text


def test_it_is_an_owners_file(tmp_path: Path):
    (tmp_path / "odd.csv").write_text('"a b","x\ty",z"q,é,"in,it"\n1,2,3,4,5\n')
    target = init([tmp_path / "odd.csv"])
    assert check(target) == ()
    session = dpsql.Session(schema=dpsql.Schema.from_toml(target), budget=dpsql.Budget(1))
    session.query('SELECT COUNT("in,it") AS n FROM odd', epsilon=1)


@pytest.mark.parametrize(
    ("name", "guessed"),
    [
        *(("person_id", True), ("customerId", True), ("id", True), ("Patient", True), ("user-no", True)),
        *(("paid", False), ("age", False), ("idea", False), ("humid", False)),
    ],
)
def test_units_are_guessed_by_name_alone(name: str, guessed: bool):
    text = suggest_schema(pd.DataFrame({name: [1]}))
    assert (f'# unit = "{name}"' in text) is guessed


def test_frames_have_the_types_of_their_storage():
    frame = pd.DataFrame({"a": [1], "b": [1.5], "c": ["1"], "d": [True], "e": pd.to_datetime(["2020-01-01"])})
    columns = tomllib.loads(suggest_schema(frame, "t"))["tables"]["t"]["columns"]
    assert [facts["type"] for facts in columns.values()] == ["integer", "real", "text", "boolean", "timestamp"]
    assert dpsql.suggest_schema(frame, "t") == suggest_schema(frame, "t")


def test_parquet_files_have_theirs(tmp_path: Path):
    pd.DataFrame({"a": [1], "b": ["x"]}).to_parquet(tmp_path / "p.parquet")
    columns = tomllib.loads(init([tmp_path / "p.parquet"]).read_text())["tables"]["p"]["columns"]
    assert {name: facts["type"] for name, facts in columns.items()} == {"a": "integer", "b": "text"}


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.csv").write_text("a\n1\n")
    (tmp_path / "p.toml").write_text("mine")
    assert main(["init", str(tmp_path / "p.csv")]) == Exit.USAGE
    assert "it stays" in capsys.readouterr().err
    assert (tmp_path / "p.toml").read_text() == "mine"
    assert main(["init", str(tmp_path / "p.csv"), "--output", str(tmp_path / "q.toml")]) == 0
    assert "*.ledger in .gitignore" in capsys.readouterr().out
    assert tomllib.loads((tmp_path / "q.toml").read_text())["tables"]["p"]["path"] == "p.csv"


def test_several_files_are_several_tables(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    for name in ("a.csv", "sub/b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    target = init([tmp_path / "a.csv", tmp_path / "sub" / "b.csv"])
    assert target.name == "dpsql.toml"
    assert {name: table["path"] for name, table in tomllib.loads(target.read_text())["tables"].items()} == {
        "a": "a.csv",
        "b": "sub/b.csv",
    }
    with pytest.raises(InvalidArgument, match="two files give a table"):
        init([tmp_path / "a.csv", tmp_path / "sub" / "A.csv"])
    with pytest.raises(InvalidArgument):
        init([])
    with pytest.raises(InvalidSchema):
        init([tmp_path / "nowhere.csv"])
    assert not (tmp_path / "nowhere.toml").exists()


LINES = """{"person_id": 7, "age": 30, "city": "Lyon", "born": "1999-12-31", "tags": [1], "": 1, "nul\\u0000": 2}
{"age": -5000000, "ok": true}
no object
"""


def test_a_file_of_json_lines_is_begun_with_the_names_that_lines_have(tmp_path: Path):
    (tmp_path / "people.jsonl").write_text(LINES)
    target = init([tmp_path / "people.jsonl"])
    text = target.read_text()
    columns = tomllib.loads(text)["tables"]["people"]["columns"]
    kinds = {"age": "integer", "born": "date", "city": "text", "ok": "boolean", "person_id": "integer", "tags": "text"}
    assert {name: facts["type"] for name, facts in columns.items()} == kinds
    assert list(columns) == sorted(columns)
    assert "names of these columns were read from the lines" in text
    assert not re.search("5000000|Lyon|1999", text)
    assert check(target) == ()
    session = dpsql.Session(schema=dpsql.Schema.from_toml(target), budget=dpsql.Budget(1))
    session.query("SELECT COUNT(*) AS n FROM people WHERE city = 'x'", epsilon=1)
    again = tmp_path / "again"
    again.mkdir()
    (again / "people.jsonl").write_text("".join(reversed(LINES.splitlines(keepends=True))) * 3)
    assert init([again / "people.jsonl"]).read_text() == text


def test_files_without_names_or_lines_are_refused(tmp_path: Path):
    (tmp_path / "none.jsonl").write_text("[1]\n")
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no archive")
    for name in ("none.jsonl", "broken.jsonl.gz", "absent.jsonl", "absent.duckdb"):
        with pytest.raises(InvalidSchema) as raised:
            init([tmp_path / name])
        assert raised.value.__context__ is None
        assert not list(tmp_path.glob("*.toml"))


def test_a_database_is_begun_table_by_table(tmp_path: Path):
    with duckdb.connect(tmp_path / "shop.duckdb") as made:
        made.execute("CREATE TABLE orders AS SELECT 4711 AS order_id, 3.5 AS total")
        made.execute("CREATE SCHEMA old; CREATE TABLE old.customers AS SELECT 'Zebulon' AS name")
        made.execute("CREATE VIEW seen AS SELECT * FROM orders")
    target = init([tmp_path / "shop.duckdb"])
    text = target.read_text()
    tables = tomllib.loads(text)["tables"]
    assert {name: (each["path"], each["table"], list(each["columns"])) for name, each in tables.items()} == {
        "orders": ("shop.duckdb", "orders", ["order_id", "total"]),
        "customers": ("shop.duckdb", "old.customers", ["name"]),
    }
    assert not re.search("4711|Zebulon", text)
    assert check(target) == ()


def test_two_tables_of_one_name_are_refused(tmp_path: Path):
    with duckdb.connect(tmp_path / "shop.duckdb") as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE SCHEMA s; CREATE TABLE s.T AS SELECT 1 AS a")
    with pytest.raises(InvalidSchema, match='two tables "t"'):
        init([tmp_path / "shop.duckdb"])


def test_whole_numbers_of_more_than_64_bits_are_not_proposed_as_integers_alone():
    unsigned = pd.Series([2**64 - 1, 5], dtype="uint64")
    decimals = pd.Series([5, 6]).astype(pd.ArrowDtype(pa.decimal128(38, 0)))
    objects = pd.Series([2**63, 5], dtype=object)
    small = pd.Series([2**63 - 1, 5], dtype=object)
    text = suggest_schema(pd.DataFrame({"u": unsigned, "d": decimals, "o": objects, "s": small}))
    columns = tomllib.loads(text)["tables"]["data"]["columns"]
    assert {name: each["type"] for name, each in columns.items()} == {
        "u": "integer", "d": "integer", "o": "text", "s": "integer"
    }  # fmt: skip
    assert "without a type they are read exactly" in next(line for line in text.splitlines() if line.startswith("u ="))


@pytest.mark.parametrize("cell", ["1234567890123456", "-1234567890123456", "9223372036854775808", "00012345678901234"])
def test_long_digit_strings_of_a_file_are_proposed_as_text(cell: str, tmp_path: Path):
    assert 'code = { type = "text" }' in written(tmp_path, "a", f"code,n\n{cell},1\n7,2\n")
    assert 'code = { type = "integer" }' in written(tmp_path, "b", "code,n\n123456789012345,1\n-7,2\n")
