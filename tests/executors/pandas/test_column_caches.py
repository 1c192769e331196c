"""What is remembered of a column goes by where its cells lie in memory, so that a cell changed in place is seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.executors.pandas.columns.declared_columns import ColumnStore, same_memory
from dpsql.schema.declaration import Declaration, resolve
from dpsql.session import dry_run as trial
from dpsql.session import prepare
from dpsql.session import run as answer
from dpsql.sources.frames import stored_columns
from tests.executors.pandas.arrow_columns import arrow, needs_arrow, wrapped

PRIVACY = {"epsilon": 1e8, "delta": 1e-9}
"""Next to no noise; groups of three rows are shown."""
COPIES = 4
MORNING, EVENING, NEXT_DAY = datetime(2020, 1, 1, 8), datetime(2020, 1, 1, 20, 30), datetime(2020, 1, 2)


def ask(data: Any, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    return list(dpsql.query(data, sql, **{**PRIVACY, **options}))


def store_of(data: pd.DataFrame, **said: Any) -> ColumnStore:
    return ColumnStore(data, resolve("t", stored_columns(data), Declaration.of(**said)))


def objects(cells: list[Any]) -> pd.Series:
    return pd.Series(cells, dtype=object)


def zoned(cells: list[Any]) -> pd.DatetimeIndex:
    return pd.to_datetime(cells).tz_localize("Asia/Tokyo")


def array_of(dtype: str) -> Callable[[list[Any]], Any]:
    return lambda cells: pd.array(cells, dtype=dtype)


# A column of some cells, two cells, and the type that it is declared with.

Case = tuple[Callable[[list[Any]], Any], list[Any], str | None]
PLAIN: dict[str, Case] = {
    "int64": (np.array, [1, 2], None),
    "float64": (np.array, [1.5, 2.5], None),
    "datetime64": (pd.to_datetime, [MORNING, EVENING], None),
    "datetime64 as date": (pd.to_datetime, [MORNING, NEXT_DAY], "date"),
    "zoned": (zoned, [MORNING, EVENING], None),
    "Int64": (array_of("Int64"), [1, 2], None),
    "Int64 with NULL": (array_of("Int64"), [None, 2], None),
    "Float64": (array_of("Float64"), [1.5, 2.5], None),
    "boolean": (array_of("boolean"), [True, None], None),
    "str": (array_of("str"), ["a", "b"], None),
    "str as integer": (array_of("str"), ["1", "2"], "integer"),
    "object as text": (objects, ["a", "b"], "text"),
    "object as date": (objects, [date(2020, 1, 1), date(2020, 1, 2)], "date"),
    "object as decimal": (objects, [Decimal(1), Decimal(2)], "decimal"),
    "category of text": (pd.Categorical, ["a", "b"], None),
    "category of integers": (pd.Categorical, [1, 2], None),
    "category of times": (pd.Categorical, [pd.Timestamp(MORNING), pd.Timestamp(EVENING)], None),
    "category as integer": (pd.Categorical, ["1", "2"], "integer"),
}
IN_ARROW: dict[str, Case] = {
    "string[pyarrow]": (array_of("string[pyarrow]"), ["a", "b"], None),
    "string": (lambda cells: arrow(cells, "string"), ["a", "b"], None),
    "int64": (lambda cells: arrow(cells, "int64"), [1, 2], None),
    "double": (lambda cells: arrow(cells, "float64"), [1.5, None], None),
    "bool": (lambda cells: arrow(cells, "bool_"), [True, False], None),
    "date32": (lambda cells: arrow(cells, "date32"), [date(2020, 1, 1), date(2020, 1, 2)], None),
    "timestamp": (lambda cells: arrow(cells, "timestamp", "us"), [MORNING, EVENING], None),
    "timestamp as date": (lambda cells: arrow(cells, "timestamp", "ns"), [MORNING, NEXT_DAY], "date"),
    "decimal": (lambda cells: arrow(cells, "decimal128", 5, 1), [Decimal(1), Decimal(2)], None),
    "dictionary": (lambda cells: arrow(cells, "string", coded=True), ["a", "b"], None),
}
CASES = [
    *(pytest.param(*case, id=name) for name, case in PLAIN.items()),
    *(pytest.param(*case, id=f"arrow {name}", marks=needs_arrow) for name, case in IN_ARROW.items()),
]


def _by_loc(data: pd.DataFrame, value: Any) -> None:
    data.loc[0, "x"] = value


def _by_iat(data: pd.DataFrame, value: Any) -> None:
    data.iat[0, 0] = value


def _by_mask(data: pd.DataFrame, value: Any) -> None:
    data.loc[data.index == 0, "x"] = value


@pytest.mark.parametrize("change", [_by_loc, _by_iat, _by_mask])
@pytest.mark.parametrize(("make", "two", "kind"), CASES)
def test_a_cell_changed_in_place_is_seen_by_query_and_not_by_a_session(
    make: Callable[[list[Any]], Any], two: list[Any], kind: str | None, change: Callable[[pd.DataFrame, Any], None]
):
    data = pd.DataFrame({"x": make(two * COPIES)})
    said = {} if kind is None else {"types": {"x": kind}}
    sql = "SELECT x, COUNT(*) FROM t GROUP BY x"
    session = dpsql.Session({"t": dpsql.Table(data, **said)}, budget=dpsql.Budget(1e9, 0.1))
    before = ask(data, sql, **said)
    assert [count for _key, count in before if count] == [COPIES, COPIES]
    assert ask(data, sql, **said) == list(session.query(sql, **PRIVACY)) == before

    change(data, make(two)[1])
    after = ask(data, sql, **said)
    assert sorted(count for _key, count in after if count) == [COPIES - 1, COPIES + 1]
    assert after == ask(data.copy(), sql, **said), "a frame that was never met"
    assert list(session.query(sql, **PRIVACY)) == before

    change(data, make(two)[0])
    assert ask(data, sql, **said) == before


@pytest.mark.thinned(3)
@pytest.mark.parametrize("change", [_by_loc, _by_iat, _by_mask])
@pytest.mark.parametrize(("make", "two", "kind"), CASES)
def test_a_session_answers_of_the_frame_that_it_was_given(
    make: Callable[[list[Any]], Any], two: list[Any], kind: str | None, change: Callable[[pd.DataFrame, Any], None]
):
    """Drawn anew and in other words too, whether it has read a column before the change or reads it first after it:
    values, groups and whose rows they are."""
    data = pd.DataFrame({"x": make(two * COPIES), "y": 1})
    table = dpsql.Table(data, types={} if kind is None else {"x": kind})
    by_unit = dpsql.Table(data, types=table.declaration.types, unit="x", max_rows=COPIES)
    asked, unread = (dpsql.Session({"t": table, "u": by_unit}, budget=dpsql.Budget(1e9, 0.1)) for _ in range(2))
    sqls = (
        "SELECT x, COUNT(*) FROM t GROUP BY x",
        "SELECT COUNT(x), COUNT(DISTINCT x) FROM t",
        "SELECT COUNT(*) FROM u",
    )
    before = [list(asked.query(sql, **PRIVACY)) for sql in sqls]
    nobody = COPIES * two.count(None)
    assert before[1:] == [[(2 * COPIES - nobody, 2 - two.count(None))], [(2 * COPIES - nobody,)]]

    change(data, make(two)[1])
    del data["y"]
    spent = asked.spent.epsilon
    assert [list(asked.query(sql, **PRIVACY)) for sql in sqls] == before
    assert asked.spent.epsilon == spent, "answers that are paid are given again"
    for session in (asked, unread):
        assert [list(session.query(sql, **PRIVACY, fresh=True)) for sql in sqls] == before
    assert asked.query("SELECT SUM(y) FROM t WHERE y BETWEEN 0 AND 1", epsilon=1e8).item() == 2 * COPIES


def test_a_paid_answer_is_given_again_whatever_becomes_of_the_memory():
    """Also where somebody writes to it round pandas, of which nothing is promised but this."""
    cells = np.array([1, 2, 3] * COPIES)
    data = pd.DataFrame({"x": pd.Series(cells, copy=False)}, copy=False)
    assert np.shares_memory(cells, data["x"].to_numpy()), "else the case says nothing"
    session = dpsql.Session({"t": dpsql.Table(data, bounds={"x": (1, 3)})}, budget=dpsql.Budget(1e9))
    sqls = ("SELECT x, COUNT(*) FROM t GROUP BY x", "SELECT SUM(x) FROM t")
    before = [list(session.query(sql, epsilon=1)) for sql in sqls]
    cells[:] = 99
    assert [list(session.query(sql, epsilon=1)) for sql in sqls] == before
    assert session.spent.epsilon == 2


@pytest.mark.parametrize(("make", "two", "kind"), CASES)
def test_a_column_is_known_by_its_memory(make: Callable[[list[Any]], Any], two: list[Any], kind: str | None):
    data = pd.DataFrame({"x": make(two), "y": make(two)})
    said = {} if kind is None else {"types": {"x": kind, "y": kind}}
    first = store_of(data, **said)
    first.numbered("x")
    first.encoded("y") if kind is None and first.column("y").type == "text" else first.numbered("y")
    again, other = store_of(data, **said), store_of(pd.DataFrame({"x": make(two), "y": make(two)}), **said)
    swapped = store_of(data.rename(columns={"x": "y", "y": "x"})[["x", "y"]], **said)
    for store in (again, other, swapped):
        store.share_caches(first)
    assert again._numbered["x"] is first._numbered["x"]
    assert (other._numbered, other._encoded, other._converted, other._inside) == ({}, {}, {}, {})
    assert (swapped._numbered, swapped._encoded, swapped._converted, swapped._inside) == ({}, {}, {}, {})


def test_a_column_declared_otherwise_is_another_column():
    data = pd.DataFrame({"x": pd.Categorical(["1", "2"])})
    first, other = store_of(data, types={"x": "integer"}), store_of(data, types={"x": "real"})
    first.numbered("x")
    other.share_caches(first)
    assert (other._numbered, other._encoded) == ({}, {})


def test_renamed_categories_of_the_same_codes_are_another_column():
    data = pd.DataFrame({"x": pd.Categorical([1, 2, 1])})
    sql = "SELECT COUNT(*) FROM t WHERE x = 1"
    assert ask(data, sql) == [(2,)]
    data["x"] = data["x"].cat.rename_categories({1: 2, 2: 1})
    assert ask(data, sql) == [(1,)]


def test_one_memory_under_other_categories_or_another_mask_is_another_column():
    numbers, none, first = np.array([0, 1, 0], dtype="int8"), np.zeros(3, dtype=bool), np.array([True, False, False])
    pairs = [
        [pd.Categorical.from_codes(numbers, categories=names) for names in (["a", "b"], ["b", "a"])],
        [pd.arrays.IntegerArray(numbers, mask) for mask in (none, first)],
    ]
    for one, other in pairs:
        columns_of = [pd.Series(each, copy=False) for each in (one, one, other)]
        assert same_memory(columns_of[0], columns_of[1])
        assert not same_memory(columns_of[0], columns_of[2])
        held = [getattr(each, "_codes", getattr(each, "_data", None)) for each in (one, other)]
        assert np.shares_memory(*held), "else the case says nothing"


@needs_arrow
def test_an_arrow_dictionary_of_the_same_codes_and_other_values_is_another_column():
    import pyarrow as pa

    held = pa.array(["a", "b", "a"]).dictionary_encode()
    renamed = pa.DictionaryArray.from_arrays(held.indices, pa.array(["b", "a"]))
    data = pd.DataFrame({"x": wrapped(held)})
    sql = "SELECT COUNT(*) FROM t WHERE x = 'a'"
    assert ask(data, sql) == [(2,)]
    data["x"] = wrapped(renamed)
    assert ask(data, sql) == [(1,)]


# That all cells lie inside the bounds.


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns of people's frames whose bounds were enforced, a name for each block. The trial of a plan looks at
    cells too, but at made-up ones, a row at most."""
    names: list[str] = []
    trials: list[str] = []
    honest_enforce, honest_trial = columns._enforce, trial.tried

    def enforce(vector: Any, column: Any) -> Any:
        if trials:
            assert len(vector.values) <= 1, "a trial has no frame of people's rows"
        else:
            names.append(column.name)
        return honest_enforce(vector, column)

    def tried(*given: Any) -> None:
        trials.append("one")
        try:
            honest_trial(*given)
        finally:
            trials.pop()

    monkeypatch.setattr(columns, "_enforce", enforce)
    for asks in (prepare, answer):
        monkeypatch.setattr(asks, "tried", tried)
    return names


INSIDE: dict[str, tuple[Any, tuple[Any, Any], str, Any, Any]] = {
    "int64": (np.array([3, 4, 5]), (3, 5), "5", 9, 4),
    "float64 with NaN": (np.array([3.5, np.nan, 5]), (3, 5), "5", 9.5, 4),
    "Int64 with NULL": (pd.array([3, None, 5], dtype="Int64"), (3, 5), "5", 9, 4),
    "datetime64 with NaT": (
        pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
        ("2020-01-01", "2020-01-03"),
        "'2020-01-03'",
        pd.Timestamp("2020-02-01"),
        "2020-01-02",
    ),
}


@pytest.mark.parametrize(("values", "bounds", "upper", "outside", "lower_upper"), INSIDE.values(), ids=list(INSIDE))
def test_bounds_that_every_cell_keeps_are_enforced_once_until_a_cell_changes(
    values: Any, bounds: tuple[Any, Any], upper: str, outside: Any, lower_upper: Any, looked_at: list[str]
):
    data = pd.DataFrame({"x": values})
    sql, facts = f"SELECT COUNT(*) FROM t WHERE x >= {upper}", {"bounds": {"x": bounds}}
    assert ask(data, sql, **facts) == [(1,)]
    assert looked_at, "the first query looks at every cell"
    del looked_at[:]
    assert ask(data, sql, **facts) == [(1,)]
    assert looked_at == []
    assert ask(data, sql, bounds={"x": (bounds[0], lower_upper)}) == [(0,)]
    assert looked_at, "other bounds are another matter"
    ask(data, sql, **facts)

    data.loc[0, "x"] = outside
    del looked_at[:]
    for _each in range(2):
        assert ask(data, sql, **facts) == [(2,)]
        assert looked_at, "a cell outside is held every time"
        del looked_at[:]


def test_a_session_remembers_too(looked_at: list[str]):
    inside, outside = pd.DataFrame({"x": [3, 4, 5]}), pd.DataFrame({"y": [3, 4, 50]})
    tables = {"a": dpsql.Table(inside, bounds={"x": (0, 9)}), "b": dpsql.Table(outside, bounds={"y": (0, 9)})}
    session = dpsql.Session(tables, budget=dpsql.Budget(1e9))
    for _each in range(3):
        assert list(session.query("SELECT SUM(x) FROM a", epsilon=1e8, fresh=True)) == [(12,)]
        assert list(session.query("SELECT SUM(y) FROM b", epsilon=1e8, fresh=True)) == [(16,)]
    assert looked_at == ["x", "y", "y", "y"]


@pytest.mark.parametrize(
    ("blocks", "proven"),
    [
        ([(0, 3)], True),
        ([(0, 1), (1, 2), (2, 3)], True),
        ([(2, 3), (0, 1), (1, 2)], True),
        ([(0, 0), (0, 3)], True),
        ([(0, 1), (2, 3)], False),
        ([(2, 3)], False),
        ([(0, 1), (0, 1), (0, 1)], False),
        ([(1, 3)], False),
        ([], False),
    ],
)
def test_only_all_rows_prove_that_all_cells_lie_inside(blocks: list[tuple[int, int]], proven: bool):
    store = store_of(pd.DataFrame({"x": [3, 5, 4]}), bounds={"x": (0, 9)})
    read = store.reader("x")
    for start, stop in blocks:
        read(start, stop)
    assert store._inside == ({"x": True} if proven else {})


def test_readers_of_a_part_each_prove_nothing_together():
    store = store_of(pd.DataFrame({"x": [3, 5, 4]}), bounds={"x": (0, 9)})
    store.reader("x")(0, 2)
    store.reader("x")(2, 3)
    assert store._inside == {}


def test_threads_that_share_a_reader_prove_it_together():
    rows = 200
    store = store_of(pd.DataFrame({"x": np.arange(rows)}), bounds={"x": (0, rows)})
    read = store.reader("x")
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda start: read(start, start + 1).values[0], random.Random(5).sample(range(rows), rows))
    assert sorted(found) == list(range(rows))
    assert store._inside == {"x": True}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_cell_outside_is_enough(place: int):
    cells = [3, 5, 4]
    cells[place] = 50
    store = store_of(pd.DataFrame({"x": cells}), bounds={"x": (0, 9)})
    for size in (1, 2, 3, 1):
        read = store.reader("x")
        found = [value for start in range(0, 3, size) for value in read(start, min(start + size, 3)).values.tolist()]
        assert found == [min(cell, 9) for cell in cells]
    assert store._inside == {}
