"""Which files a path names, and packed ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.declaration import Declaration
from dpsql.session.owner_file import Schema
from dpsql.sources.files import files_of, kind_of, stem_of
from dpsql.sources.frames import read_table

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}
LINES = b'name,age\nAnn,30\n"B\n,40\n'


def cells(frame: pd.DataFrame) -> list[list[object]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(dtype=object).tolist()]


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["t.csv", "T.CSV", "t.tsv", "t.jsonl"])
def test_packed_files_are_the_files(tmp_path: Path, ending: str, name: str) -> None:
    content = LINES.replace(b",", b"\t") if "tsv" in name else LINES
    content = b'{"name": "Ann", "age": 3}\n' if "json" in name else content
    declared = Declaration.of(types={"name": "text", "age": "integer"})
    (tmp_path / name).write_bytes(content)
    (tmp_path / (name + ending)).write_bytes(PACKERS[ending](content))
    plain, _ = read_table(tmp_path / name, declared)
    packed, _ = read_table(tmp_path / (name + ending), declared)
    pd.testing.assert_frame_equal(plain, packed)
    assert len(plain)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize(
    "harm", [lambda packed: packed[:-9], lambda _: b"not packed", lambda packed: packed[:20] + b"\0" * 30]
)
def test_damaged_files_are_errors_that_quote_nothing(
    tmp_path: Path, ending: str, harm: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / f"t.csv{ending}"
    file.write_bytes(harm(PACKERS[ending](LINES * 1_000)))
    with pytest.raises(InvalidSchema, match=rf"t\.csv\{ending} cannot be read") as found:
        read_table(file, Declaration())
    assert found.value.__cause__ is None
    assert found.value.__context__ is None
    assert "Ann" not in str(found.value)


def test_a_pattern_names_files_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, row in (("b.csv", "2"), ("a.csv", "1"), ("c.txt", "3"), (".hidden.csv", "4"), ("sub/d.csv", "5")):
        (tmp_path / name).write_text(f"x\n{row}\n", encoding="utf-8")
    assert [each.name for each in files_of(tmp_path / "*.csv")] == ["a.csv", "b.csv"]
    assert [each.name for each in files_of(tmp_path / "**" / "*.csv")] == ["a.csv", "b.csv", "d.csv"]
    assert [each.name for each in files_of(tmp_path / "[bc].*")] == ["b.csv", "c.txt"]
    frame, _ = read_table(tmp_path / "*.csv", Declaration())
    assert cells(frame) == [["1"], ["2"]]
    assert list(frame.index) == [0, 1]
    with pytest.raises(InvalidSchema, match="none of them fits"):
        files_of(tmp_path / "*.parquet")


def test_a_file_of_that_very_name_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a*.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "ab.csv").write_text("x\n2\n", encoding="utf-8")
    assert files_of(tmp_path / "a*.csv") == (tmp_path / "a*.csv",)
    assert files_of(tmp_path / "none.csv") == (tmp_path / "none.csv",)  # whoever reads it says so


def test_files_of_one_table_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("y,x\n1,2\n", encoding="utf-8")
    with pytest.raises(InvalidSchema, match=r"b\.csv has other columns than a\.csv"):
        read_table(tmp_path / "*.csv", Declaration())


def test_a_pattern_in_the_owners_file(tmp_path: Path) -> None:
    for number in range(3):
        packed = gzip.compress(b"x\n" + b"1\n" * 10)
        (tmp_path / f"day{number}.csv.gz").write_bytes(packed)
    (tmp_path / "s.toml").write_text(
        '[budget]\nepsilon = 1e9\n[tables.days]\npath = "day*.csv.gz"\ncolumns = { x = { bounds = [0, 9] } }\n',
        encoding="utf-8",
    )
    session = dpsql.Session({}, schema=Schema.from_toml(tmp_path / "s.toml"))
    assert session.query("SELECT COUNT(*) AS n FROM days", epsilon=1e8).item() == 30


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", ".csv"), ("a.b.CSV.GZ", ".csv"), ("a.gz", ""), ("a", ""), ("x.parquet", ".parquet")]
)
def test_the_ending_that_says_what_a_file_holds(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind


@pytest.mark.parametrize(("name", "stem"), [("a.csv", "a"), ("a.csv.gz", "a"), ("a.b.csv", "a.b"), ("a.gz", "a")])
def test_the_name_of_a_table_in_a_file(name: str, stem: str) -> None:
    assert stem_of(Path(name)) == stem
