"""Cells that cannot be read and lines that break their format: counted with the first places, and refused where nothing
can be read."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsql.errors import InvalidSchema
from dpsql.owner import check, check_data, init
from dpsql.owner.data_checks import Repeats, report_data
from dpsql.shell.cli import main
from dpsql.sources import text_files

HEAD = "[budget]\nepsilon = 1\n"


def written(folder: Path, text: str) -> Path:
    (folder / "t.toml").write_text(HEAD + text, encoding="utf-8")
    return folder / "t.toml"


def told(file: Path) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {each.what: (each.rows, each.lines) for each in check_data(file)}


AGES = (
    '[tables.p]\npath = "p.csv"\nunit = "row"\n{}[tables.p.columns]\nage = {{ type = "integer", bounds = [0, 110] }}\n'
)


def test_lines_of_each_kind_are_counted_with_their_numbers(tmp_path: Path) -> None:
    lines = ["id,age", "1,20", "", "2", '3,"x', "4,30,", '"5"6,7', "8,9", "\t,x", "9, 30"]
    (tmp_path / "p.csv").write_text("\r\n".join(lines) + "\r\n")
    assert told(written(tmp_path, AGES.format(""))) == {
        "empty lines": (1, ("3",)),
        "lines of too few fields": (1, ("4",)),
        "lines in which a quoted field does not end (multiline is not declared)": (1, ("5",)),
        "lines of too many fields": (1, ("6",)),
        "lines whose quotes break the rule": (1, ("7",)),
        "age cannot be read as integer": (1, ("9",)),
    }


def test_numbers_of_lines_count_headers_skipped_lines_and_files(tmp_path: Path) -> None:
    for name in ("p1.csv", "p2.csv"):
        (tmp_path / name).write_text('title\n\n"i\nd",age\n"a\nb",1\n"c\nd\ne",x\n\n5,y\n')
    words = "skip = 2\nmultiline = true\n"
    found = told(written(tmp_path, AGES.format(words).replace("p.csv", "p?.csv")))
    assert found["age cannot be read as integer"] == (4, ("p1.csv:7", "p1.csv:11", "p2.csv:7", "p2.csv:11"))
    assert found["empty lines"] == (2, ("p1.csv:10", "p2.csv:10"))
    many = "id,age\n" + "1,x\n" * 200
    (tmp_path / "p.csv").write_text(many)
    none = told(written(tmp_path, AGES.format("")))
    assert none == {"no cell of age can be read as integer": (200, ("2", "3", "4", "5", "6"))}


def test_numbers_of_lines_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.csv").write_text("id,age\n" + "1,2\n\n3,x\n4\n" * 20)
    file = written(tmp_path, AGES.format(""))
    whole = told(file)
    monkeypatch.setattr(text_files, "_BLOCK", 7)
    assert told(file) == whole
    assert whole["empty lines"] == (20, ("3", "7", "11", "15", "19"))


def test_cells_in_another_encoding_are_counted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes("id,age,city\n1,2,Köln\n2,3,Bonn\n3,4,Würzburg\n".encode("latin-1"))
    file = written(tmp_path, AGES.format(""))
    assert told(file) == {"city is not in UTF-8": (2, ("2", "4"))}
    assert told(written(tmp_path, AGES.format('encoding = "latin-1"\n'))) == {}


def test_json_lines(tmp_path: Path) -> None:
    lines = [{"age": 1}, {"age": [1]}, {"age": "x"}, {"age": None}, {}, {"age": 2, "Age": 3}]
    text = "\n".join([*map(json.dumps, lines), "", "no object", "[1]"]) + "\n"
    (tmp_path / "p.jsonl").write_text(text)
    toml = AGES.format("").replace("p.csv", "p.jsonl") + 'city = { type = "text" }\n'
    assert told(written(tmp_path, toml)) == {
        "age is an object, an array or no Unicode": (1, ("2",)),
        "age cannot be read as integer": (1, ("3",)),
        "empty lines": (1, ("7",)),
        "lines that are no JSON object": (2, ("8", "9")),
        "city is in no line": (9, ()),
    }


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_stored_files(kind: str, tmp_path: Path) -> None:
    day = "CASE WHEN i = 3 THEN TIMESTAMP '290000-01-01 00:00:00' ELSE TIMESTAMP '2020-01-01 00:00:00' END AS day"
    sql = f"SELECT i AS id, {day}, CASE WHEN i = 1 THEN NULL ELSE i * 1.5 END AS x FROM range(5) t(i)"
    with duckdb.connect(tmp_path / "p.duckdb" if kind == "duckdb" else ":memory:") as made:
        made.execute(f"CREATE TABLE p AS {sql}")
        made.execute("COPY p TO '%s' (FORMAT parquet)" % (tmp_path / "p.parquet"))
    table = 'table = "p"\n' if kind == "duckdb" else ""
    file = written(
        tmp_path, f'[tables.p]\npath = "p.{kind}"\n{table}unit = "row"\n[tables.p.columns]\nx = {{ bounds = [0, 9] }}\n'
    )
    assert check(file) == ()
    assert told(file) in ({}, {"day cannot be read as timestamp": (1, ("row 4",))})


def test_the_command_fails_with_the_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.csv").write_text("id,age\n1,20\n2,x\n")
    assert main(["check", str(written(tmp_path, AGES.format(""))), "--data"]) == 1
    assert "p: age cannot be read as integer: 1 row, NULL (first: 3)" in capsys.readouterr().out
    (tmp_path / "p.csv").write_text("id,age\n1,20\n")
    assert main(["check", str(written(tmp_path, AGES.format(""))), "--data"]) == 0


@pytest.mark.parametrize("of", ["check", "init"])
@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b'id,age,note\n0,20,"two\nlines"\n1,21,"two\nlines"\n', "", "no line of p.csv can be read as its header says"),
        (b"Report of 2026\nid,age\n1,20\n2,30\n", "", "no line of p.csv can be read as its header says"),
        (b"id,age\n1,20,\n2,30,\n", "", "lines of too many fields"),
        ("id,age,city\n1,20,Köln\n2,30,Köln\n".encode("latin-1"), "", 'no cell of "city" is text in UTF-8'),
        (
            "id,age,city\n1,20,é\n2,30,é\n".encode("latin-1"),
            'encoding = "euc_kr"\n',
            'no cell of "city" is text in EUC_KR',
        ),
    ],
)
def test_a_column_of_which_no_cell_can_be_read_is_an_error(
    of: str, content: bytes, words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    if of == "init":
        with pytest.raises(InvalidSchema) as refused:
            init([tmp_path / "p.csv"], **({"encoding": "euc_kr"} if words else {}))
        assert message in str(refused.value)
        assert not (tmp_path / "p.toml").exists()
        return
    toml = f'[tables.p]\npath = "p.csv"\nunit = "row"\n{words}'
    assert any(message in each.message for each in check(written(tmp_path, toml)))
    assert main(["check", str(tmp_path / "t.toml")]) == 2
    assert check_data(tmp_path / "t.toml")


def test_types_that_no_cell_has_are_mistakes_of_their_column(tmp_path: Path) -> None:
    rows = "".join(f"{i};17/0{i % 9 + 1}/19{50 + i % 40};{2000 + i},50;;x\n" for i in range(300))
    (tmp_path / "p.csv").write_text("id;born;pay;empty;city\n" + rows)
    toml = '[tables.p]\npath = "p.csv"\nunit = "row"\ndelimiter = ";"\n[tables.p.columns]\n'
    toml += (
        'id = { type = "integer" }\nborn = { type = "date" }\nempty = { type = "date" }\ncity = { type = "boolean" }\n'
    )
    places = [(each.line, each.key) for each in check(written(tmp_path, toml + "pay = { bounds = [0, 10_000] }\n"))]
    assert places == [(9, "born"), (11, "city"), (12, "pay")]


def test_check_reads_until_each_column_has_a_cell_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = []
    honest = text_files._rows
    monkeypatch.setattr(text_files, "_rows", lambda *rest: (blocks.append(1), honest(*rest))[1])
    monkeypatch.setattr(text_files, "_BLOCK", 64)
    (tmp_path / "p.csv").write_text("id,age\n" + "1,x\n" * 40 + "1,2\n" * 400)
    assert check(written(tmp_path, AGES.format(""))) == ()
    assert 2 < len(blocks) < 8


def test_stored_types_that_an_engine_cannot_read_are_mistakes(tmp_path: Path) -> None:
    pd.DataFrame({"a": ["1"]}).to_parquet(tmp_path / "p.parquet")
    toml = '[tables.p]\npath = "p.parquet"\nunit = "row"\n[tables.p.columns]\na = {{ type = "{}" }}\n'
    assert check(written(tmp_path, toml.format("text"))) == ()


def test_rows_of_one_person_are_told_to_the_owner_and_are_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("person_id,age,visitNo\n1,2,1\n1,3,2\n1,4,3\n2,5,4\n,6,5\n")
    file = written(tmp_path, AGES.format(""))
    assert report_data(file).repeats == (Repeats("p", "person_id", 3, True), Repeats("p", "visitNo", 1, True))
    assert main(["check", str(file), "--data"]) == 0
    shown = capsys.readouterr().out
    assert "p: person_id: one value has up to 3 rows." in shown
    assert "must not become max_rows" in shown
    assert "protected separately" in shown
    file = written(tmp_path, AGES.format("").replace('unit = "row"', 'unit = "person_id"\nmax_rows = 9'))
    assert [(each.column, each.rows) for each in report_data(file).repeats] == [("person_id", 3), ("visitNo", 1)]
    assert main(["check", str(file)]) == 0
    assert "rows." not in capsys.readouterr().out
    assert "3" not in init([tmp_path / "p.csv"]).read_text()


CELLS = pd.DataFrame(
    {
        "day": ["2024-01-01", "soon", "2024-02-30", None],
        "n": ["1", "x", "3", "4"],
        "r": ["1.5", "abc", None, ""],
        "b": ["true", "maybe", "0", "1"],
        "x": [1.0, 2.0, float("nan"), 3.0],
        "at": ["2024-01-01 10:00:00", "no", None, "2024-01-01"],
    }
)
TYPES = {"day": "date", "n": "integer", "r": "real", "b": "boolean", "x": "real", "at": "timestamp"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_cells_of_stored_files_are_checked_as_those_of_text_are(kind: str, tmp_path: Path) -> None:
    if kind == "csv":
        CELLS.to_csv(tmp_path / "p.csv", index=False)
    elif kind == "parquet":
        CELLS.to_parquet(tmp_path / "p.parquet")
    else:
        with duckdb.connect(tmp_path / "p.duckdb") as made:
            made.register("cells", CELLS)
            made.execute("CREATE TABLE p AS SELECT * FROM cells")
    table = 'table = "p"\n' if kind == "duckdb" else ""
    columns = "".join(f'{name} = {{ type = "{each}" }}\n' for name, each in TYPES.items())
    file = written(tmp_path, f'[tables.p]\npath = "p.{kind}"\n{table}unit = "row"\n[tables.p.columns]\n{columns}')
    wrong = {name: (2 if name == "day" else 1) for name in TYPES}
    wrong |= {"x": 0, "r": 1 + (kind != "csv")}  # an empty text is NULL in a file of text only
    assert {what: rows for what, (rows, _) in told(file).items()} == {
        f"{name} cannot be read as {each}": wrong[name] for name, each in TYPES.items() if wrong[name]
    }


def test_cells_of_parquet_files_that_no_query_reads_are_told(tmp_path: Path) -> None:
    good = pa.array([b"ok", b"\xff\xfe", b"x?"])
    texts = pa.StringArray.from_buffers(3, good.buffers()[1], good.buffers()[2])
    moments = pa.array([0, 2**62, 1], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"s": texts, "at": moments, "x": [1.0, 2.0, 3.0]}), tmp_path / "p.parquet")
    toml = '[tables.p]\npath = "p.parquet"\nunit = "row"\n[tables.p.columns]\nx = { bounds = [0, 9] }\n'
    assert told(written(tmp_path, toml)) == {"s is not UTF-8": (1, ("row 2",))}
    found = told(written(tmp_path, toml + 'at = { type = "timestamp" }\n'))
    assert [rows for what, (rows, _) in found.items() if what.startswith("at is stored as TIMESTAMP")] == [3]
