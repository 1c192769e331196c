"""Declared lists of keys: what is said of rows that none of them holds, and the list of a dtype."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema, UnknownGroups

SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
LEFT_OUT = "rows whose sex is none of the 2 declared values"


def people(*cells: Any) -> pd.DataFrame:
    return pd.DataFrame({"sex": pd.Series([*cells] * 40, dtype=object), "x": "y"}, columns=["sex", "x"])


LINES = [
    (["F", "M"], None, f"{LEFT_OUT}, or NULL, are not counted"),
    (["F", "M"], {"sex": False}, f"{LEFT_OUT} are not counted"),
    (["F", "M", None], None, f"{LEFT_OUT} are counted as NULL"),
    (["F"], None, "rows whose sex is not the declared value, or NULL, are not counted"),
]


@pytest.mark.parametrize(("keys", "nullable", "line"), LINES)
@pytest.mark.parametrize("cells", [("F", "M"), ("F", "M", None, "X"), ()], ids=["none", "some", "empty"])
def test_one_line_says_which_rows_are_not_counted(
    keys: list[Any], nullable: Any, line: str, cells: tuple[Any, ...]
) -> None:
    how: dict[str, Any] = {"epsilon": 50, "keys": {"sex": keys}, "nullable": nullable, "types": {"sex": "text"}}
    result = dpsql.query(people(*cells), SQL, **how)
    assert result.notes[0] == line
    explained = " ".join(str(dpsql.query(people(*cells), f"EXPLAIN PRIVACY {SQL}", **how)).split())
    assert line.split(", or", maxsplit=1)[0] in explained.replace(" free", "")
    if cells == ("F", "M", None, "X") and nullable is None:
        assert result.df["n"].sum() == 40 * (4 if None in keys else len(keys))


def test_nothing_is_said_of_other_keys() -> None:
    for how in ({"delta": 1e-6}, {"nullable": None, "delta": 1e-3}):
        found = dpsql.query(people("F", "M"), SQL, epsilon=1, types={"sex": "text"}, **how)
        assert "declared value" not in str(found)
    public = dpsql.Table(people("F", "M"), public=True, keys={"sex": ["F", "M"]}, types={"sex": "text"})
    assert "declared value" not in str(dpsql.query({"people": public}, SQL, epsilon=1))


def test_nothing_is_said_of_values_that_a_public_table_lists() -> None:
    frame = people("F", "M", "X")
    tables = {
        "people": dpsql.Table(frame, types={"sex": "text"}),
        "codes": dpsql.Table(pd.DataFrame({"sex": ["F", "M"], "name": ["f", "m"]}), public=True, unique=["sex"]),
    }
    for sql in (
        "SELECT name, COUNT(*) AS n FROM people JOIN codes USING (sex) GROUP BY name",
        "SELECT codes.sex, COUNT(people.sex) AS n FROM codes LEFT JOIN people USING (sex) GROUP BY codes.sex",
        "SELECT sex, COUNT(*) AS n FROM people WHERE sex IN ('F', 'M') GROUP BY sex",
    ):
        result = dpsql.query(tables, sql, epsilon=50)
        assert len(result) == 2
        assert "declared value" not in str(result)


def categories(dtype: Any, cells: Any = ("F", "M")) -> pd.DataFrame:
    return pd.DataFrame({"sex": pd.Series([*cells] * 40).astype(dtype)})


def test_keys_may_be_the_categories_of_a_dtype() -> None:
    dtype = pd.CategoricalDtype(["M", "F", "X"])
    for frame in (categories(dtype), categories(dtype).iloc[:0]):
        result = dpsql.query(frame, SQL, epsilon=50, keys={"sex": "categories"})
        assert set(result.df["sex"]) == {"M", "F", "X"}
        assert result.notes[0] == "rows whose sex is none of the 3 declared values, or NULL, are not counted"
        for table in (dpsql.Table(frame, keys={"SEX": "categories"}), dpsql.declare(frame, keys={"sex": "categories"})):
            assert len(dpsql.query({"people": table}, SQL, epsilon=50)) == 3
        assert len(dpsql.query({"people": frame}, SQL, epsilon=50, keys={"sex": "categories"})) == 3
    numbers = categories(pd.CategoricalDtype([3, 1]), (1, 3))
    assert set(dpsql.query(numbers, SQL, epsilon=50, keys={"sex": "categories"}).df["sex"]) == {1, 3}
    more = pd.CategoricalDtype(["M", "F", "X", "U"])  # the same column with another list
    assert len(dpsql.query(categories(more), SQL, epsilon=50, keys={"sex": "categories"})) == 4


def test_without_the_word_a_dtype_declares_nothing() -> None:
    with pytest.raises(UnknownGroups):
        dpsql.query(categories(pd.CategoricalDtype(["M", "F"])), SQL, epsilon=1)


@pytest.mark.parametrize("frame", [people("F"), pd.DataFrame({"sex": pd.cut(np.arange(5), 2)}), people("F")[["x"]]])
def test_categories_of_other_columns_are_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(InvalidSchema, match="are those of a column whose dtype is category"):
        dpsql.query(frame, SQL, epsilon=1, keys={"sex": "categories"})
