"""Declared lists of keys: what is said of rows that none of them holds."""

from typing import Any

import pandas as pd
import pytest

import dpsql

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
