"""Columns of frames by their dtypes, and of files by what is declared of them."""

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration
from dpsql.sources.frames import read_table, stored_columns
from tests.executors.pandas.arrow_columns import arrow, needs_arrow


@pytest.mark.parametrize(
    ("values", "kind", "nullable"),
    [
        (np.array([1], dtype="int8"), Type.INTEGER, False),
        (np.array([1], dtype="uint64"), Type.INTEGER, False),
        (np.array([1.0], dtype="float32"), Type.REAL, True),
        (np.array([True]), Type.BOOLEAN, False),
        (pd.array(["a"], dtype="str"), Type.TEXT, True),
        (pd.array([1], dtype="Int64"), Type.INTEGER, True),
        (pd.array([True], dtype="boolean"), Type.BOOLEAN, True),
        (pd.array([1.5], dtype="Float64"), Type.REAL, True),
        (pd.Categorical(["a"]), Type.TEXT, True),
        (pd.Categorical([3]), Type.INTEGER, True),
        (np.array(["x", 1], dtype=object), Type.OBJECT, True),
        (np.array([1.0], dtype="float16"), Type.REAL, True),
        (np.array(["2020"], dtype="datetime64[s]"), Type.TIMESTAMP, True),
        (pd.DatetimeIndex(["2020"], tz="Europe/Paris"), Type.TIMESTAMP, True),
        (pd.Categorical([True]), Type.BOOLEAN, True),
        (pd.Categorical([1.5]), Type.REAL, True),
        (pd.Categorical(pd.DatetimeIndex(["2020"])), Type.TIMESTAMP, True),
        (pd.Categorical(pd.period_range("2020", periods=1)), Type.TEXT, True),
        (np.array([1j]), Type.OTHER, True),
        (np.array([1], dtype="timedelta64[s]"), Type.OTHER, True),
        (pd.period_range("2020", periods=1), Type.OTHER, True),
        (pd.arrays.SparseArray([1]), Type.OTHER, True),
        (pd.interval_range(0, 1), Type.OTHER, True),
    ],
)
def test_types_follow_the_dtype_alone(values: object, kind: Type, nullable: bool) -> None:
    (stored,) = stored_columns(pd.DataFrame({"x": values}))
    assert (stored.type, stored.nullable) == (kind, nullable)


@needs_arrow
@pytest.mark.parametrize(
    ("name", "sizes", "kind"),
    [
        ("null", (), Type.TEXT),
        ("string", (), Type.TEXT),
        ("string_view", (), Type.TEXT),
        ("binary", (), Type.OTHER),
        ("uint16", (), Type.INTEGER),
        ("float16", (), Type.REAL),
        ("decimal128", (5, 2), Type.REAL),
        ("date64", (), Type.DATE),
        ("timestamp", ("ns", "+02:00"), Type.TIMESTAMP),
        ("timestamp", ("ns", "No/Where"), Type.OTHER),
        ("duration", ("s",), Type.OTHER),
        ("time64", ("us",), Type.OTHER),
        ("month_day_nano_interval", (), Type.OTHER),
    ],
)
def test_types_of_arrow_follow_the_dtype_alone(name: str, sizes: tuple[object, ...], kind: Type) -> None:
    data = pd.DataFrame({"x": arrow([None, None], name, *sizes)})
    for each in (data, data.iloc[:0]):
        (stored,) = stored_columns(each)
        assert (stored.type, stored.nullable) == (kind, True)
    (counted,) = dpsql.query(data, "SELECT COUNT(x), COUNT(*) FROM t", epsilon=1e9)
    assert counted == (0, 2)


@pytest.mark.parametrize(
    ("bounds", "kind"),
    [
        ((0, 1), Type.REAL),
        (("1990-01-01", date(2020, 12, 31)), Type.DATE),
        (("1990-01-01", "2020-12-31 10:00"), Type.TIMESTAMP),
        ((datetime(1990, 1, 1), datetime(2020, 12, 31)), Type.TIMESTAMP),
    ],
)
def test_an_undeclared_column_of_a_file_is_what_its_bounds_are(tmp_path: Path, bounds: object, kind: Type) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    assert read_table(file, Declaration.of(bounds={"a": bounds}))[1].types == {"a": kind}
    assert read_table(file, Declaration.of(bounds={"a": bounds}, types={"a": "text"}))[1].types == {"a": Type.TEXT}


def test_column_names_must_be_text() -> None:
    with pytest.raises(InvalidSchema, match="column names must be text, got 0"):
        stored_columns(pd.DataFrame([[1]]))
