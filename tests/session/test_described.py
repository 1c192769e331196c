"""A call's declarations are made out once for the same words about the same columns, and anew for any others."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, InvalidSchema
from dpsql.schema.columns import TableSchema
from dpsql.session.tables import call_tables as room


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    room._known.clear()


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [1, 2, 3], "t": ["x", "y", "x"]} | columns)


def schema(data: object, **words: Any) -> TableSchema:
    nothing = dict.fromkeys(("bounds", "keys", "types", "unit", "max_rows", "max_groups"))
    return next(iter(room.described(data, nothing | words)[1].values()))


def test_the_same_words_about_the_same_columns_are_made_out_once() -> None:
    first = schema(frame(), bounds={"a": (0, 9)}, keys={"t": ["x", "y"]})
    other_rows = frame(a=[7, 8, 9])
    assert schema(other_rows, bounds={"a": (0, 9)}, keys={"t": ["x", "y"]}) is first


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"bounds": {"a": (0, 9)}}, {"bounds": {"a": (0, 8)}}),
    ({"bounds": {"a": (0, 9)}}, {"bounds": {"a": (0.0, 9)}}),
    ({"bounds": {"a": (0, 9)}}, {}),
    ({"bounds": {"a": (0.0, 9)}, "types": {"a": "real"}}, {"bounds": {"a": (-0.0, 9)}, "types": {"a": "real"}}),
    ({"keys": {"t": ["x"]}}, {"keys": {"t": ["x", None]}}),
    ({"keys": {"t": ["x", "y"]}}, {"keys": {"t": ["y", "x"]}}),
    ({"unit": "t", "max_rows": 1}, {"unit": "t", "max_rows": 2}),
    ({"unit": "t", "max_rows": 1}, {"unit": "a", "max_rows": 1}),
    ({"bounds": "auto"}, {}),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_other_words_are_made_out_anew(first: dict[str, Any], second: dict[str, Any]) -> None:
    before = schema(frame(), **first)
    after = schema(frame(), **second)
    assert after is not before
    room._known.clear()
    assert schema(frame(), **second) == after
    assert schema(frame(), **first) == before


def test_one_and_true_are_two_words() -> None:
    schema(frame(), keys={"a": [1, 2]})
    with pytest.raises(InvalidSchema):
        schema(frame(), keys={"a": [True, 2]})


def test_a_word_that_is_refused_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidSchema):
            schema(frame(), bounds={"a": (9, 0)})
        with pytest.raises(InvalidSchema):
            schema(frame(), bounds={"nowhere": (0, 9)})


def test_other_columns_and_types_are_made_out_anew() -> None:
    words: dict[str, Any] = {"bounds": {"a": (0, 9)}}
    data = frame()
    before = schema(data, **words)
    data["new"] = 1
    assert [column.name for column in schema(data, **words).columns] == ["a", "t", "new"]
    assert schema(frame(a=[1.0, 2.0, 3.0]), **words) != before
    assert schema(frame(a=pd.array([1, None, 3], dtype="Int64")), **words).by_name["a"].nullable


def test_a_list_that_was_changed_is_read_again() -> None:
    keys = ["x"]
    assert schema(frame(), keys={"t": keys}).by_name["t"].keys == ("x",)
    keys.append("y")
    assert schema(frame(), keys={"t": keys}).by_name["t"].keys == ("x", "y")


def test_what_the_frame_itself_remembers_is_part_of_the_words() -> None:
    plain = frame()
    declared = dpsql.declare(plain, bounds={"a": (0, 9)})
    assert schema(plain).by_name["a"].bounds is None
    assert schema(declared).by_name["a"].bounds is not None
    assert schema(dpsql.declare(plain, bounds={"a": (0, 5)})) != schema(declared)


class Sly(str):
    """Equal to all, and hashed alike."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_words_that_are_not_plain_are_not_remembered() -> None:
    data = frame()
    for words in ({"bounds": {"a": (np.int64(0), 9)}}, {"keys": {"t": pd.Series(["x"])}}, {"keys": {"t": [Sly("x")]}}):
        assert room._key(data, words) is None
        schema(data, **words)
    assert not room._known
    held: list[object] = ["x"]
    held.append(held)
    assert room._key(data, {"keys": held}) is None
    with pytest.raises(DPSQLError):
        schema(data, keys={"t": held})


def test_moments_in_two_time_zones_are_two_words() -> None:
    assert room._plain(datetime(2020, 1, 1, tzinfo=UTC)) != room._plain(datetime(2020, 1, 1))
    assert room._plain(date(2020, 1, 1)) != room._plain(datetime(2020, 1, 1))


def test_no_more_than_some_are_remembered() -> None:
    for most in range(100):
        schema(frame(), bounds={"a": (0, most + 1)})
    assert len(room._known) == room._MOST_REMEMBERED


def test_an_answer_follows_the_words_of_its_own_call() -> None:
    data = pd.DataFrame({"a": [5] * 1000})
    asked = "SELECT SUM(a) AS s FROM t"
    for most, sum_of in ((9, 5000), (1, 1000), (9, 5000)):
        answer = dpsql.query(data, asked, epsilon=100, bounds={"a": (0, most)})
        assert abs(answer.df["s"][0] - sum_of) < 50  # type: ignore[union-attr]
