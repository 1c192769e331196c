"""One reading of a text: a declared type, CAST, and what `init` recognises, on every engine and beside DuckDB's."""

from __future__ import annotations

import re
import time
from datetime import date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.cells import cell_text, identity_text
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.exact_values import canonical, cells_of
from dpsql.owner.recognition import proposal_of_cells
from dpsql.plan.expressions import Vector
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.calendar import date_of, timestamp_of
from dpsql.schema.cell_format import format_of
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.schema.formatted_values import text_reader
from dpsql.sources.frames import stored_columns

NUMBERS = [
    sign + digits + fraction + exponent
    for sign, digits, fraction, exponent in product(
        ("", "+", "-"), ("", "0", "22", "007", "1_000", "9" * 22, "\uff11"), ("", ".", ".0", ".5", ",5"),
        ("", "e3", "E-1"),
    )
]  # fmt: skip
MOMENTS = [
    day + clock + zone
    for day, clock, zone in product(
        ("2024-02-05", "2024/2/5", "2024-02-30", "0000-01-01", "12024-02-05", "9999-12-31", "20240205"),
        ("", " 00:00:00", "T10:11:12.1234567", " 24:00", " 1:2:3.", " 25:00", " 10:11:60"),
        ("", "Z", " UTC", "+02:00", "-0530", " +02", " CET", "+2"),
    )
]
WORDS = ["Yes", "NO", "t", "F", "1", "0", "on", "true", "False", "tr", "inf", "-Infinity", "nan", "epoch", "", " ", "x",
    "yeſ", "0x1F", "2024-02-05 (BC)", "2024 02 05", "2024\\2\\5", "2024-02/05", "it's", "{0}", "1e400", "1e-400",
    "9" * 50]  # fmt: skip
TEXTS = [*dict.fromkeys(blank + text + blank for text in (*NUMBERS, *MOMENTS, *WORDS) for blank in ("", " ", "\t"))]
CASTS = {
    Type.INTEGER: ("text_to_bigint", "BIGINT"),
    Type.REAL: ("text_to_double", "DOUBLE"),
    Type.BOOLEAN: ("text_to_boolean", "BOOLEAN"),
    Type.DATE: ("text_to_date", "DATE"),
    Type.TIMESTAMP: ("text_to_timestamp", "TIMESTAMP"),
}


def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    return opened


def in_duckdb(sql: str, texts: list[str]) -> list[Any]:
    found = connection().execute(f"SELECT {sql} FROM (SELECT unnest(?) AS x)", [texts]).fetchall()
    return [row[0] for row in found]


def as_python(value: Any, kind: Type) -> Any:
    """A value as DuckDB gives it."""
    show = {Type.DATE: date_of, Type.TIMESTAMP: timestamp_of}.get(kind)
    return value if value is None or show is None else show(value)


def declared(kind: Type, texts: list[str], **cells: Any) -> ColumnStore:
    frame = pd.DataFrame({"x": pd.Series(texts, dtype="str")})
    words = {word: {"x": value} for word, value in cells.items()}
    said = Declaration.of(types={"x": str(kind)}, cells=words)
    return ColumnStore(frame, resolve("t", stored_columns(frame), said))


def cells_read(store: ColumnStore, kind: Type) -> list[Any]:
    block = store.reader("x")(0, store.rows)
    cells = zip(block.values.tolist(), block.where_valid().tolist(), strict=True)
    return [as_python(value, kind) if present else None for value, present in cells]


def test_several_hundred_texts_are_read():
    assert len(TEXTS) > 1_000


@pytest.mark.parametrize("kind", CASTS)
def test_a_declared_type_and_cast_read_the_same(kind: Type):
    name, _ = CASTS[kind]
    expected = [as_python(text_reader(kind, None)(text), kind) for text in TEXTS]
    assert cells_read(declared(kind, TEXTS), kind) == expected
    vector = FUNCTIONS[name].kernel(kind, [Vector(np.array(TEXTS, dtype=object))])
    cells = zip(vector.values.tolist(), vector.where_valid().tolist(), strict=True)
    assert [as_python(value, kind) if present else None for value, present in cells] == expected
    assert in_duckdb(str(FUNCTIONS[name].sql).format("x"), TEXTS) == expected
    assert in_duckdb(str(cell_text("x", "VARCHAR", kind)), TEXTS) == expected
    assert 0 < sum(value is not None for value in expected) < len(TEXTS)


def difference(text: str, kind: Type, ours: Any, theirs: Any) -> str:
    """The difference from DuckDB that the manual names; "" for any other."""
    bare = text.strip(" \t\n\v\f\r")
    if kind in (Type.DATE, Type.TIMESTAMP):
        offset = re.search(r" ?([+-])([0-9]{2}):?([0-9]{2})?$", bare)
        if ours is not None and offset and kind is Type.TIMESTAMP and ":" in bare[:-6]:
            east = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)) * (-1 if offset[1] == "-" else 1)
            return "offsets" if theirs is None or theirs - east == ours else ""
        if ours is None and (re.match(r"0000|1[0-9]{4}-|.*\(BC\)|epoch|.*inf", bare, re.IGNORECASE) or "CET" in bare):
            return "calendar"
        if ours is None and theirs is not None and kind is Type.TIMESTAMP and theirs in (datetime.max, date.max):
            return "calendar"
        if ours is None and bare.startswith("9999-12-31"):  # midnight after it, or an offset beyond it
            return "calendar"
        return "blanks" if ours is not None and theirs is None and bare != text else ""
    if kind is Type.BOOLEAN:
        return "blanks" if bare != text and theirs is None else ""
    if ours is None and ("_" in bare or bare.startswith("0x")):
        return "underscores and hexadecimal"
    return "NaN" if ours is None and theirs is not None and theirs != theirs else ""  # noqa: PLR0124


@pytest.mark.parametrize("kind", CASTS)
def test_duckdb_reads_the_same_where_the_manual_names_no_difference(kind: Type):
    _, word = CASTS[kind]
    theirs = f"TRY_CAST(x AS {word})"
    shown = f"CASE WHEN isfinite({theirs}) THEN {theirs} END" if kind in (Type.DATE, Type.TIMESTAMP) else theirs
    if kind in (Type.DATE, Type.TIMESTAMP):
        shown = f"CASE WHEN year({shown}) BETWEEN 1 AND 9999 THEN {shown} END"
    read = text_reader(kind, None)
    found = zip(TEXTS, [as_python(read(text), kind) for text in TEXTS], in_duckdb(shown, TEXTS), strict=True)
    wrong = [each for each in found if each[1] != each[2] and not difference(each[0], kind, each[1], each[2])]
    assert wrong == []


SAMPLES = {
    Type.BOOLEAN: {"Yes": True, "No": False, "t": True, "f": False, "1": True, "0": False, "N": False},
    Type.INTEGER: {"22.0": 22, "1e3": 1000, "5.": 5, "1_000": None, "\uff11\uff12": None, "99999999999999999999": None},
    Type.DATE: dict.fromkeys(("2024-02-05 00:00:00", "2024-02-05T00:00:00.000", "2024-02-05"), date(2024, 2, 5)),
    Type.TIMESTAMP: {
        "2024-01-05T10:11:12Z": datetime(2024, 1, 5, 10, 11, 12),
        "2024-01-05T10:11:12+02:00": datetime(2024, 1, 5, 8, 11, 12),
        "0001-01-01 00:00:00+02:00": None,
    },
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_values_as_worked_out(kind: Type):
    read = text_reader(kind, None)
    assert {text: as_python(read(text), kind) for text in SAMPLES[kind]} == SAMPLES[kind]


@pytest.mark.parametrize("kind", CASTS)
def test_what_init_recognises_is_read(kind: Type):
    """One text alone, and beside a plain one."""
    for text in (each for each in TEXTS[::9] if each.strip()):
        found = proposal_of_cells(pd.Series([text], dtype="str"))
        if found.type is kind:
            form = format_of("x", found.words)
            assert text_reader(kind, form)(text) is not None or text.strip() in form.null, text


# Declared formats.

DAYS = [
    f"{day}{sign}{month}{sign}{year}{clock}"
    for day, month, sign, year, clock in product(
        ("5", "05", "31", "29"),
        ("2", "02", "13", "0"),
        "/.",
        ("2024", "24", "0000", "1969"),
        ("", " 10:11", " 1:02 pM"),
    )
]
OTHERS = ["20240205", "240205", "5 feb 2024", "05 FEBRUARY 2024", "5 Sept 2024", "12/02/2024 12:59 AM",
    "2/2/2024 00:01 AM", "1.234,5", "1,234.5", "12.34", "1.234.567,8", "1234,5", ",5", "-1.234", "1 234,5", "1'234.5",
    "1,5e3", "inf", "NA", " - ", "Ja", "ja", "Nein", " Ja ", "yes", "No", "it's", "", "2024-02-05", "7",
    "9" * 22]  # fmt: skip
FORMATTED: list[tuple[Type, dict[str, Any]]] = [
    *(
        (kind, {"format": form})
        for kind in (Type.DATE, Type.TIMESTAMP)
        for form in ("%d/%m/%Y", ["%d/%m/%Y", "%m/%d/%Y"], "%d.%m.%y", "%Y%m%d", "%y%m%d", "%d %b %Y", "%d %B %Y",
            "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y-%m-%d")
    ),
    *(
        (kind, words)
        for kind in (Type.INTEGER, Type.REAL)
        for words in ({"decimal": ","}, {"decimal": ",", "thousands": "."}, {"thousands": "'"},
            {"decimal": ",", "thousands": " ", "null": ["NA", "7"]})
    ),
    (Type.BOOLEAN, {"true": ["Ja"]}),
    (Type.BOOLEAN, {"true": ["Ja", "it's"], "false": "Nein", "null": ["NA", "-"]}),
    (Type.TEXT, {"null": ["NA", "-", ""]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), FORMATTED, ids=str)
def test_declared_formats_are_read_alike_on_both_engines(kind: Type, words: dict[str, Any]):
    texts = [*DAYS, *OTHERS]
    form = format_of("x", words)
    expected = [as_python(text_reader(kind, form)(text), kind) for text in texts]
    assert in_duckdb(str(cell_text("x", "VARCHAR", kind, form)), texts) == expected
    assert cells_read(declared(kind, texts, **words), kind) == expected
    assert any(value is not None for value in expected)
    assert None in expected


@pytest.mark.parametrize(("kind", "words"), [*((kind, {}) for kind in CASTS), *FORMATTED], ids=str)
def test_privacy_unit_keys_of_texts_are_alike_on_both_engines(kind: Type, words: dict[str, Any]):
    texts = [*DAYS, *OTHERS, *WORDS, *NUMBERS[:120], *MOMENTS[:120]]
    form = format_of("x", words) if words else None
    codes, values = declared(kind, texts, **words).identified("x")
    keys = [*(canonical(cell) for cell in cells_of(values.values)), None]
    present = [*values.where_valid().tolist(), False]
    ours = [keys[code] if present[code] else None for code in codes.tolist()]
    theirs = in_duckdb(f"CAST({identity_text('x', 'VARCHAR', kind, form)} AS VARCHAR)", texts)
    assert theirs == [str(key) if key is not None else None for key in ours]


def test_examples_of_formats():
    day = text_reader(Type.DATE, format_of("x", {"format": ["%d/%m/%Y", "%d.%m.%y"]}))
    texts = ("05/02/2024", "5.2.69", "5.2.68", "31/02/2024", "2024-02-05")
    assert [as_python(day(text), Type.DATE) for text in texts] == [
        *(date(2024, 2, 5), date(1969, 2, 5), date(2068, 2, 5), None, None)
    ]
    real = text_reader(Type.REAL, format_of("x", {"decimal": ",", "thousands": "."}))
    assert [real(text) for text in ("1.234,5", "1234,5", "1.23", "1,234.5", "-0,25")] == [
        1234.5,
        1234.5,
        None,
        None,
        -0.25,
    ]
    truth = text_reader(Type.BOOLEAN, format_of("x", {"true": "Ja"}))
    assert [truth(text) for text in ("Ja", "ja", "yes", "No", "0")] == [True, None, None, False, False]


QUERY = """SELECT COUNT(born) AS born, COUNT(fee) AS fee, COUNT(ok) AS ok, COUNT(name) AS name, SUM(fee) AS total,
    SUM(CASE WHEN born >= DATE '2024-03-01' THEN 1 ELSE 0 END) AS late FROM t"""
TOML = """
[budget]
epsilon = 1e9
[tables.t]
path = "{path}"
unit = "row"
[tables.t.columns]
born = {{ type = "date", format = "%d/%m/%Y" }}
fee = {{ type = "real", bounds = [0, 5000], decimal = ",", thousands = ".", null = "NA" }}
ok = {{ type = "boolean", true = ["Ja"], false = ["Nein"] }}
name = {{ type = "text", null = ["-"] }}
"""


@pytest.mark.parametrize("source", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("engine", ["auto", "duckdb"])
def test_an_owners_file_declares_formats(tmp_path: Path, source: str, engine: str):
    frame = pd.DataFrame(
        {
            "born": ["05/02/2024", "01/03/2024", "31/02/2024", "2024-02-05"] * 5,
            "fee": ["1.234,5", "NA", "2,5", "1,234.5"] * 5,
            "ok": ["Ja", "Nein", "ja", "yes"] * 5,
            "name": ["a", "-", "b", " - "] * 5,
        }
    )
    if source.endswith("csv"):
        frame.to_csv(tmp_path / source, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / source)
    text = TOML.format(path=source).replace('unit = "row"\n', "")
    (tmp_path / "o.toml").write_text(f'engine = "{engine}"\n{text}' if engine != "auto" else text)
    (row,) = dpsql.Session(schema=dpsql.Schema.from_toml(tmp_path / "o.toml")).query(QUERY, epsilon=1e8)
    assert row == pytest.approx((10, 10, 10, 10, 5 * 1237, 5), abs=1e-3)


def test_a_line_changes_only_its_own_row():
    texts = ["05/02/2024", "x", "1_000", "31/12/9999"]
    alone = [cells_read(declared(Type.DATE, [text], format="%d/%m/%Y"), Type.DATE)[0] for text in texts]
    assert cells_read(declared(Type.DATE, texts, format="%d/%m/%Y"), Type.DATE) == alone


def test_a_format_belongs_to_the_question(tmp_path: Path):
    frame = pd.DataFrame({"d": ["05/02/2024", "13/02/2024"] * 10})

    def ask(**words: Any) -> Any:
        table = dpsql.Table(frame, types={"d": "date"}, version="1", **words)
        session = dpsql.Session({"t": table}, budget=dpsql.Budget(1e9), ledger=tmp_path / "l.ledger")
        answer = session.query("SELECT COUNT(d) FROM t", epsilon=1e6)
        return answer.item(), answer.replayed

    assert ask(format={"d": "%d/%m/%Y"}) == (20, False)
    assert ask(format={"d": "%d/%m/%Y"}) == (20, True)
    assert ask(format={"d": "%m/%d/%Y"}) == (10, False)
    assert ask() == (0, False)


def test_declare_remembers_formats():
    frame = dpsql.declare(pd.DataFrame({"d": ["05/02/2024"]}), types={"d": "date"}, format={"d": "%d/%m/%Y"})
    assert frame.attrs["dpsql"]["cells"] == {"d": {"format": ["%d/%m/%Y"]}}
    assert dpsql.query({"t": frame}, "SELECT COUNT(d) FROM t", epsilon=1e6).item() == 1


# Long texts.


LONG = ("0" * 256, "0" * 257, " " * 256 + "1", "0" * 16_000 + "x", "1")


@pytest.mark.parametrize("kind", ["integer", "real", "boolean"])
@pytest.mark.parametrize("source", ["pandas", "duckdb", "parquet", "unit"])
def test_texts_of_more_than_256_characters_have_no_value_of_another_type(tmp_path: Path, kind: str, source: str):
    """As for CAST: it takes long to see what a long text is, and a response time would show it."""
    frame = pd.DataFrame({"c": pd.Series(LONG, dtype="string")})
    words: dict[str, Any] = {"types": {"c": kind}}
    if source == "unit":
        words |= {"unit": "c", "max_rows": 1}
    if source == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
    table = dpsql.Table(tmp_path / "t.parquet" if source == "parquet" else frame, **words)
    how = {"engine": source} if source in ("pandas", "duckdb") else {}
    counted = "COUNT(DISTINCT c)" if source == "unit" else "COUNT(c)"
    expected = 1 if kind == "boolean" else 2  # "0" * 256 is no word for false
    assert dpsql.query({"t": table}, f"SELECT {counted} FROM t", epsilon=1e8, **how).item() == expected


@pytest.mark.parametrize("kind", [each for each in Type if each not in (Type.TEXT, Type.OTHER, Type.OBJECT)])
def test_reading_a_text_takes_little_time_whatever_it_is(kind: Type):
    for words in ({}, {"null": "?"}, *([{"thousands": "'"}] if kind is Type.REAL else [])):
        read = text_reader(kind, format_of("", words))
        for text in ("0" * 320_000 + "x", " " * 320_000 + "x", "1" * 320_000 + "e", "2020-01-01" + " " * 320_000):
            begin = time.thread_time()
            assert read(text) is None
            assert time.thread_time() - begin < 0.005


# The encoding of a column.


def test_a_column_of_a_text_file_has_its_own_encoding(tmp_path: Path):
    line = "Zürich,".encode("latin-1") + "Genève\n".encode()
    (tmp_path / "p.csv").write_bytes(b"name,city\n" + line * 10 + b"\xff\xfe,\xff\n" + b"Bern,Uri\n")
    table = dpsql.Table(tmp_path / "p.csv", encoding={"NAME": "ISO-8859-1"})
    sql = "SELECT COUNT_IF(name = 'Zürich'), COUNT_IF(city = 'Genève'), COUNT(name), COUNT(city) FROM t"
    assert next(iter(dpsql.query({"t": table}, sql, epsilon=1e6))) == (10, 10, 12, 11)
    (tmp_path / "o.toml").write_text(
        '[budget]\nepsilon = 1e9\n[tables.t]\npath = "p.csv"\n[tables.t.columns]\nname = { encoding = "latin-1" }\n'
    )
    session = dpsql.Session(schema=dpsql.Schema.from_toml(tmp_path / "o.toml"))
    assert next(iter(session.query(sql, epsilon=1e6))) == (10, 10, 12, 11)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"encoding": {"a": "latin-1"}}, "encoding is of text files"),
        ({"encoding": {"a": "utf-16"}}, "a byte is a character"),
        ({"format": {"a": "%d/%m"}, "types": {"a": "date"}}, "does not say the year"),
        ({"format": {"a": "%d/%m/%Y"}}, 'types={"a": "date"}'),
        ({"format": {"a": "%q"}, "types": {"a": "date"}}, 'the unknown directive "%q"'),
        ({"format": {"a": "%d/%m/%Y %M"}, "types": {"a": "date"}}, "does not say the hour"),
        ({"format": {"a": "%d1%m/%Y"}, "types": {"a": "date"}}, "a digit"),
        ({"thousands": {"a": "."}, "types": {"a": "real"}}, 'decimal = "," and thousands = "."'),
        ({"decimal": {"a": "e"}, "types": {"a": "real"}}, "one character"),
        ({"decimal": {"a": ","}, "types": {"a": "text"}}, "decimal is for columns of the type"),
        ({"true": {"a": "0"}, "types": {"a": "boolean"}}, "a word for both true and false"),
        ({"true": {"a": []}, "types": {"a": "boolean"}}, "true is a text or a list"),
        ({"null": {"a": ["x", " x"]}}, "lists a text twice"),
        ({"null": ["x"]}, "null must map columns"),
        ({"null": {"n": "x"}}, "null is for text"),
        ({"null": {"b": "x"}}, 'no column "b"'),
    ],
)
def test_words_are_checked_when_they_are_declared(words: dict[str, Any], said: str):
    frame = pd.DataFrame({"a": ["x"], "n": [1]})
    with pytest.raises(InvalidSchema) as refused:
        dpsql.Table(frame, **words)
    assert said in str(refused.value) or said.startswith("no column")
