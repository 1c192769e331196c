"""Answers in forms that travel: what is written is what was released, and can be read again."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.interchange import from_dataframe

import dpsql
from dpsql.answer.export_formats import Column, as_arrow, as_csv, as_interchange, as_json, as_latex
from dpsql.answer.number_format import printable
from dpsql.answer.render import Cells, names_of_ends
from dpsql.answer.spreadsheet import as_workbook
from dpsql.errors import InvalidArgument
from dpsql.schema.columns import Type

KEYS = ["a|b", "b\nc", "", " d ", 'say "x", y', None]
FRAME = pd.DataFrame(
    {
        "k": KEYS * 40,
        "x": [1.25, 2.5, 3.0, None, 0.0, 5.0] * 40,
        "d": pd.to_datetime(["2020-02-29", "2021-05-05", None] * 80),
        "t": pd.to_datetime(["2020-02-29 01:02:03.000004"] * 240),
    }
)
FACTS: dict[str, Any] = {
    "bounds": {"x": (0, 5), "d": ("2020-01-01", "2022-01-01"), "t": ("2020-01-01", "2022-01-01")},
    "keys": {"k": KEYS},
}
SQL = (
    "SELECT k, COUNT(*) AS n, AVG(x) AS a, COUNT(x) > 3 AS b, MEDIAN(t) AS t, CAST(MEDIAN(d) AS DATE) AS d "
    "FROM t GROUP BY k"
)


@pytest.fixture(scope="module")
def answer() -> dpsql.Result:
    return dpsql.query(FRAME, SQL, epsilon=1, **FACTS)


def test_csv_holds_each_value_and_its_interval(answer: dpsql.Result) -> None:
    rows = list(csv.DictReader(io.StringIO(answer.to_csv(), newline="")))
    held = answer.to_pandas(intervals=True)
    assert list(rows[0]) == list(held.columns)
    assert [row["k"] for row in rows] == [key or "" for key in held["k"].fillna("")]
    for name in ("n", "n_low", "n_high", "a", "a_low", "a_high"):
        assert [float(row[name]) for row in rows] == held[name].tolist()
    assert {row["b"] for row in rows} <= {"true", "false"}
    assert [pd.Timestamp(row["t"]) for row in rows] == held["t"].tolist()
    assert all("." not in row["n_low"] for row in rows), "ends of whole numbers are whole"


def test_csv_is_read_again_by_its_own_reader(answer: dpsql.Result, tmp_path: Path) -> None:
    text = answer.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes().decode() == text
    assert '\n"",' not in text.splitlines()[0]
    lines = {line.split(",")[0] for line in text.splitlines()}
    assert {'""', '" d "'} <= lines, "empty text and spaces stand in quotes, NULL does not"
    assert answer.to_csv(delimiter=";").splitlines()[0] == text.splitlines()[0].replace(",", ";")


def test_json_has_an_object_for_each_row(answer: dpsql.Result) -> None:
    rows = json.loads(answer.to_json())
    held = answer.to_pandas(intervals=True)
    assert [row["k"] for row in rows] == [None if pd.isna(key) else key for key in held["k"]]
    assert [row["n"] for row in rows] == held["n"].tolist()
    assert [row["a_high"] for row in rows] == held["a_high"].tolist()
    lines = answer.to_json(lines=True).splitlines()
    assert [json.loads(line) for line in lines] == rows
    bare = json.loads(answer.to_json(intervals=False))
    assert list(bare[0]) == list(answer.df.columns)


def test_ends_that_are_open_and_what_is_not_finite() -> None:
    columns = [Column("x", Type.REAL, [1.0, None]), Column("x_low", Type.REAL, [-math.inf, math.nan])]
    assert json.loads(as_json(columns)) == [{"x": 1.0, "x_low": None}, {"x": None, "x_low": None}]
    assert as_csv(columns) == "x,x_low\n1.0,-inf\n,nan\n"


def test_markdown_is_a_table_of_as_many_cells(answer: dpsql.Result) -> None:
    lines = answer.to_markdown().splitlines()
    assert len(lines) == len(answer) + 2
    assert {line.replace("\\|", "").count("|") for line in lines} == {lines[0].count("|")}
    assert "a\\|b" in answer.to_markdown()


def test_html_is_what_a_notebook_shows(answer: dpsql.Result, tmp_path: Path) -> None:
    assert answer.to_html(tmp_path / "t.html") == answer._repr_html_()


def test_arrow_polars_and_parquet_hold_the_same(answer: dpsql.Result, tmp_path: Path) -> None:
    table = answer.to_arrow(intervals=True)
    kinds = {"k": pa.string(), "n": pa.int64(), "n_low": pa.float64(), "b": pa.bool_(), "d": pa.date32()}
    assert {name: table.schema.field(name).type for name in kinds} == kinds
    assert table.schema.field("t").type == pa.timestamp("us")
    held = answer.to_pandas(intervals=True)
    assert table.column_names == list(held.columns)
    assert table["n_high"].to_pylist() == held["n_high"].tolist()
    assert table["k"].to_pylist() == [None if pd.isna(key) else key for key in held["k"]]
    assert answer.footer in table.schema.metadata[b"dpsql"].decode()
    answer.to_parquet(tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    assert answer.to_polars(intervals=True).equals(pl.from_arrow(table))
    assert pl.DataFrame(answer).columns == list(answer.df.columns), "by Arrow's stream interface"
    assert pa.table(answer).column_names == list(answer.df.columns)


def test_whole_numbers_beyond_64_bits_are_decimals() -> None:
    table = as_arrow([Column("n", Type.INTEGER, [2**70, None, -1])], {})
    assert table["n"].to_pylist() == [2**70, None, -1]


def test_a_column_by_its_name(answer: dpsql.Result) -> None:
    assert answer["n"].tolist() == answer.df["n"].tolist()
    with pytest.raises(InvalidArgument, match="no column .nn."):
        answer["nn"]
    with pytest.raises(InvalidArgument, match="no column 3"):
        answer[3]  # type: ignore[index]


def test_names_of_ends_never_take_another_columns() -> None:
    assert names_of_ends(["n", "n_low"], {"n": 1}) == {"n": ("n_low_", "n_high_")}
    assert names_of_ends(["n", "k"], {"n": 1}) == {"n": ("n_low", "n_high")}
    answer = dpsql.query(FRAME, "SELECT COUNT(*) AS n, SUM(x) AS n_low FROM t", epsilon=1, **FACTS)
    held = answer.to_pandas(intervals=True)
    assert held["n_low"].tolist() == answer.df["n_low"].tolist()
    assert (held["n_low_"] <= held["n"]).all()
    assert "n_low_" in answer.intervals()


def test_an_answer_without_rows_and_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    none = dpsql.query(FRAME, "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING COUNT(*) > 10000", epsilon=1, **FACTS)
    assert none.to_csv() == "k,n,n_low,n_high\n"
    assert json.loads(none.to_json()) == []
    assert none.to_arrow().num_rows == 0
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(InvalidArgument, match="needs polars"):
        none.to_polars()


@pytest.mark.parametrize(
    "made", ["CASE WHEN COUNT(*) > 8 THEN 'many' END", "COUNT(*) > 8.5", "COUNT(*) IS NULL", "CAST(COUNT(*) AS TEXT)"]
)
@pytest.mark.parametrize("by", ["", "k, ", "ROLLUP (k), "])
def test_a_text_or_a_truth_made_of_a_count_has_no_interval_in_any_form(made: str, by: str):
    """Noise makes it another, not one that lies further off."""
    frame = pd.DataFrame({"k": ["a", "b"] * 200})
    group = f" GROUP BY {by.rstrip(', ')}" if by else ""
    keys = "k, " if by else ""
    sql = f"SELECT {keys}{made} AS made, COUNT(*) AS n FROM t{group}"
    answer = dpsql.query(frame, sql, epsilon=1, keys={"k": ["a", "b"]})
    names = [*(["k"] if by else []), "made", "n_low", "n_high"]
    assert list(answer.intervals()) == list(answer.intervals(simultaneous=True)) == names
    assert list(answer.to_pandas(intervals=True)) == [*names[:-2], "n", *names[-2:]]
    assert answer.to_csv().split("\n")[0] == ",".join([*names[:-2], "n", *names[-2:]])
    assert answer.to_arrow(intervals=True).column_names == [*names[:-2], "n", *names[-2:]]
    assert "made_low" not in answer.to_json()
    for text in (str(answer), answer.to_html(), answer.to_markdown()):
        assert text.count("95 %") == 1
        assert "any" not in text.replace("many", "")


def cells_of_sheet(content: bytes, number: int) -> list[list[str | None]]:
    """The texts and numbers of a sheet's cells, read as XML."""
    name = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for part in file.namelist():
            ElementTree.fromstring(file.read(part))
        sheet = ElementTree.fromstring(file.read(f"xl/worksheets/sheet{number}.xml"))
    rows = sheet.iter(f"{name}row")
    return [["".join(cell.itertext()) if len(cell) else None for cell in row] for row in rows]


def test_a_workbook_holds_values_intervals_and_notes(answer: dpsql.Result, tmp_path: Path) -> None:
    answer.to_excel(tmp_path / "a.xlsx")
    content = (tmp_path / "a.xlsx").read_bytes()
    held = answer.to_pandas(intervals=True)
    head, *rows = cells_of_sheet(content, 1)
    assert head == list(held.columns)
    for name in ("n", "n_low", "a", "a_high"):
        assert [float(row[head.index(name)] or "") for row in rows] == held[name].tolist()
    assert [row[0] for row in rows] == [None if pd.isna(key) else printable(key) for key in held["k"]]
    days = [float(row[head.index("d")] or 0) for row in rows]
    assert [pd.Timestamp("1899-12-30") + pd.Timedelta(days=day) for day in days] == held["d"].tolist()
    assert [row[0] for row in cells_of_sheet(content, 2)] == list(answer.notes)
    stream = io.BytesIO()
    answer.to_excel(stream)
    assert stream.getvalue() == content, "equal answers are equal files"


def test_cells_of_a_workbook_are_no_formulas_and_break_no_xml() -> None:
    texts = ["=1+1", "<c>&", "\x00\x1b", "\ud800", "x" * 40_000, None]
    columns = [Column("k", Type.TEXT, texts), Column("x", Type.REAL, [1e300, -math.inf, math.nan, None, 2**70, True])]
    content = as_workbook([*columns, Column("d", Type.DATE, [date(1, 1, 1), date(9999, 12, 31)] + [None] * 4)], [])
    _, *rows = cells_of_sheet(content, 1)
    assert [row[0] for row in rows] == ["=1+1", "<c>&", "\\x00\\x1b", "\\ud800", "x" * 32_767, None]
    assert [row[1] for row in rows] == ["1e+300", "-inf", "nan", None, str(2**70), "1"]
    assert [row[2] for row in rows[:2]] == ["0001-01-01", "2958465.0"]
    assert b"<f>" not in content


def test_latex_keeps_intervals_and_escapes_signs(answer: dpsql.Result) -> None:
    lines = answer.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrrlll}"
    assert {line.count("&") for line in lines if line.endswith(r"\\")} == {7}
    assert r"95 \%" in lines[2]
    assert r"$\pm$" in answer.to_latex()
    signs = as_latex(Cells(["a_b"], [["{$#~^\\<>%&"]], [False], 0)).splitlines()
    assert signs[2] == r"a\_b \\"
    assert signs[4] == (r"\{\$\#\textasciitilde{}\textasciicircum{}\textbackslash{}\textless{}\textgreater{}\%\& \\")


def test_markdown_keeps_intervals(answer: dpsql.Result) -> None:
    assert answer.to_markdown().splitlines()[0] == "| k | n | 95 % | a | 95 % | b | t | d |"


def test_plotting_libraries_read_the_interchange_protocol(answer: dpsql.Result) -> None:
    """seaborn asks for `__dataframe__`, altair and plotly for `__narwhals_dataframe__`, others for Arrow's stream."""
    frame = from_dataframe(answer)
    assert frame.column_names == list(answer.df.columns)
    assert frame["n"].to_pylist() == answer.df["n"].tolist()
    assert answer.__dataframe__().num_rows() == len(answer)
    many = as_interchange([Column("n", Type.INTEGER, [2**70]), Column("d", Type.DATE, [date(2020, 1, 2)])])
    assert from_dataframe(many.__dataframe__()).to_pydict() == {"n": [2.0**70], "d": [datetime(2020, 1, 2)]}


def test_altair_and_plotly_get_a_frame_by_narwhals(answer: dpsql.Result) -> None:
    narwhals = pytest.importorskip("narwhals")
    frame = narwhals.from_native(answer, eager_only=True)
    assert frame.columns == list(answer.df.columns)
    assert frame.to_native().equals(answer.df)
