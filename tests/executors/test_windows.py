"""Windows inside a person: equal integers on every engine, DuckDB's own values where the order leaves nothing open, and
values that follow from the person's own rows alone."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import MissingBounds
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.plan import windows
from dpsql.plan.domains import cells_of
from dpsql.plan.nodes import Filter
from dpsql.session.tables.public_tables import resolved
from dpsql.sql.bind.statement import bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parse import parse
from dpsql.testing import insecure_exact
from tests.executors.contract import difference, session

FACTS: dict[str, Any] = {
    "bounds": {"x": (-9, 20), "day": (dt.date(2024, 1, 1), dt.date(2024, 3, 1)), "r": (-5.0, 5.0)},
    "types": {"day": "date"},
    "keys": {"s": ["a", "b", "é", "zz"]},
    "unit": "pid",
    "max_rows": 5,
}
PLACES = ["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)", "PERCENT_RANK()", "CUME_DIST()"]
ROWS = [
    "LAG({0})",
    "LEAD({0}, 2)",
    "LEAD({0}, -1)",
    "LAG({0}, 3 IGNORE NULLS)",
    "LEAD({0} IGNORE NULLS)",
    "LAG({0}, 1, {1})",
]
ENDS = ["FIRST_VALUE({0})", "LAST_VALUE({0})", "FIRST_VALUE({0} IGNORE NULLS)", "LAST_VALUE({0} IGNORE NULLS)"]
FRAMED = [
    "COUNT(*)",
    "COUNT({0})",
    "MIN({0})",
    "MAX({0})",
    "SUM(x)",
    "AVG(x)",
    "SUM(r)",
    "AVG(r)",
    "SUM(x) FILTER (WHERE x > 2)",
]
DEFAULTS = {"x": "7", "r": "0.5", "s": "'a'", "day": "DATE '2024-01-02'", "t": "TIMESTAMP '2024-01-01 00:00:00'"}
RANGES = {
    "x": ["3 PRECEDING", "CURRENT ROW", "2 FOLLOWING"],
    "r": ["0.5 PRECEDING", "CURRENT ROW", "1 FOLLOWING"],
    "day": ["INTERVAL 6 DAYS PRECEDING", "CURRENT ROW", "INTERVAL 1 WEEK FOLLOWING"],
    "t": ["INTERVAL 30 MINUTES PRECEDING", "CURRENT ROW", "INTERVAL 2 HOURS FOLLOWING"],
}


@cache
def frame(rows: int = 300, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [values[place] for place in rng.integers(0, len(values), rows)]

    return pd.DataFrame(
        {
            "pid": pd.array(some([1, 1, 1, 2, 2, 3, 4, 5, 6, 7, None]), dtype="Int64"),
            "x": pd.array(some([-3, 0, 1, 2, 5, 5, 20, None]), dtype="Int64"),
            "r": some([-1.5, -0.0, 0.0, 0.25, 2.0, 4.5, float("nan")]),
            "s": some(["a", "b", "é", "zz", None]),
            "day": pd.to_datetime(some([f"2024-01-{day:02}" for day in range(1, 29)] + [None])),
            "t": pd.to_datetime(some([f"2024-01-01 {hour:02}:{hour * 2:02}:00" for hour in range(24)] + [None])),
            "n": np.arange(rows),
        }
    )


def statement(rng: random.Random, *, whole_order: bool = False) -> str:
    """One window; `whole_order`: no two rows are equal in its order."""
    column = rng.choice(["x", "r", "s", "day", "t"])
    call = rng.choice(rng.choice([PLACES, ROWS, ENDS, FRAMED]))
    if column == "s" and call.startswith(("MIN", "MAX")):
        column = "x"
    part = rng.choice(["pid", "pid", "pid, s", "x, pid"])
    terms = rng.sample(["x", "r", "s", "day", "t"], rng.randint(0, 2))
    frame_text = ""
    if call in (*ENDS, *FRAMED) and rng.random() < 0.7:
        if rng.random() < 0.5:
            terms = [rng.choice(list(RANGES))]
            frame_text = reach("RANGE", RANGES[terms[0]], rng)
        else:
            frame_text = reach("ROWS", ["2 PRECEDING", "CURRENT ROW", "1 FOLLOWING"], rng)
    order = [f"{term}{rng.choice(['', ' DESC'])}{rng.choice(['', ' NULLS FIRST'])}" for term in terms]
    if whole_order and "RANGE" not in frame_text:
        order.append("n")
    by = f" ORDER BY {', '.join(order)}" if order else ""
    return f"{call.format(column, DEFAULTS[column])} OVER (PARTITION BY {part}{by}{frame_text})"


def reach(kind: str, ends: list[str], rng: random.Random) -> str:
    first, last = sorted(rng.choices(range(5), k=2))
    words = ["UNBOUNDED PRECEDING", *ends, "UNBOUNDED FOLLOWING"]
    return f" {kind} BETWEEN {words[min(first, 3)]} AND {words[max(last, 1)]}"


def compared(engine: str, seed: int, count: int) -> None:
    rng = random.Random(seed)
    ours, other = (session({"o": dpsql.Table(frame(), **FACTS)}, each) for each in ("pandas", engine))
    for _ in range(count):
        window = statement(rng)
        shown = rng.choice(["COUNT(w), COUNT(DISTINCT w)", "COUNT(w), SUM(CAST(w AS BIGINT) % 7)"])
        key = rng.choice(["", ", x", ", s"])
        sql = f"SELECT {shown}{', COUNT(r)' if key else ''} FROM (SELECT *, {window} AS w FROM o)"
        found = difference(
            ours, other, sql if "SUM" not in shown else sql.replace("SUM(CAST(w AS BIGINT) % 7)", "COUNT(r)")
        )
        assert not found, f"seed {seed}: {found}"


def test_duckdb_gives_the_same_integers():
    compared("duckdb", 11, 25)


TO_HERE, BEYOND = "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
ALIKE = [
    f"SELECT COUNT(w), COUNT(DISTINCT w), SUM(w) FROM (SELECT AVG(x) OVER (PARTITION BY pid, s {TO_HERE}) AS w FROM o)",
    f"SELECT COUNT(w), SUM(w) FROM (SELECT AVG(x) OVER (PARTITION BY pid, s ORDER BY x {BEYOND}) AS w FROM o)",
    f"SELECT COUNT(w), SUM(CLAMP(w, -99, 9)) FROM (SELECT SUM(x) OVER (PARTITION BY pid {BEYOND}) AS w FROM o)",
    (
        "SELECT COUNT_IF(a <> b OR a <> c) FROM ("
        "SELECT ROW_NUMBER() OVER w AS a, COUNT(*) OVER (w ROWS UNBOUNDED PRECEDING) AS b, NTILE(900) OVER w AS c "
        "FROM o WINDOW w AS (PARTITION BY pid ORDER BY x))"
    ),
]


def test_what_windows_give_a_row_is_of_one_place():
    """Of rows that are alike an engine puts any first, in each window another: their numbers are of one order."""
    facts = {**FACTS, "max_rows": 300}
    ours, other = (session({"o": dpsql.Table(frame(), **facts)}, each) for each in ("pandas", "duckdb"))
    for sql in ALIKE:
        assert not difference(ours, other, sql)
    for each in (ours, other):
        assert insecure_exact(each, ALIKE[-1], bytes(32), epsilon=1).parts[()][0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 20))
def test_duckdb_gives_the_same_integers_often(seed: int):
    compared("duckdb", seed, 120)


# Row by row.


def values_of(data: pd.DataFrame, window: str, read: str = "") -> list[tuple[Any, ...]]:
    """For each row of somebody its number, its unit, its value, and what is `read` beside it."""
    schemas = resolved({"o": dpsql.Table(data, **FACTS)})
    shown = [each for each in read.split(", ") if each]
    terms = "".join(f", COUNT({each})" for each in ("pid", *shown))
    sql = f"SELECT COUNT(w){terms} FROM (SELECT *, {window} AS w FROM o)"
    plan = bind(parse(sql), Catalog(schemas)).query.plan
    source, counted = plan.input, plan.aggregations[0].argument
    while isinstance(source, Filter):
        source = source.input
    assert isinstance(source, windows_node())
    with np.errstate(all="ignore"):
        rows = Database({"o": ColumnStore(data, schemas["o"])}, source).relation(source)
        columns = {column.name: column for column in (*source.columns, *source.ties)}
        cells = [cells_of(evaluated(columns[name], rows), columns[name].type) for name in ("pid", *shown)]
        value = source.columns[0] if counted is None else counted
        own = cells_of(evaluated(value, rows), value.type)
    return list(zip(*cells, own, strict=True))


def windows_node() -> type:
    from dpsql.plan.nodes import Windows

    return Windows


def as_number(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return None if value is None or value != value else value  # noqa: PLR0124 - NaN


def check_beside_duckdb(seed: int, count: int) -> None:
    rng = random.Random(seed)
    data = frame()
    with duckdb.connect() as connection:
        connection.register("raw", data)
        connection.execute(
            "CREATE TABLE o AS SELECT * REPLACE (CAST(day AS DATE) AS day, CAST(t AS TIMESTAMP) AS t, "
            "CASE WHEN isnan(r) THEN NULL ELSE r END AS r) FROM raw"
        )
        for _ in range(count):
            window = statement(rng, whole_order=True)
            if "RANGE" in window and window.startswith(("FIRST", "LAST")):
                continue  # of peers DuckDB may take any
            theirs = connection.execute(f"SELECT pid, n, {window} FROM o WHERE pid IS NOT NULL").fetchall()
            expected = {row[1]: as_number(row[2]) for row in theirs}
            found = {row[1]: row[2] for row in values_of(data, window, "n")}
            wrong = [n for n in expected if not same(expected[n], found[n])]
            assert len(found) == len(expected)
            assert not wrong, f"{window}: {[(n, expected[n], found[n]) for n in wrong[:4]]}"


def same(one: Any, other: Any) -> bool:
    return one == other or (isinstance(one, float) and other is not None and abs(one - other) <= 1e-12 * abs(one))


def test_windows_are_those_of_duckdb():
    check_beside_duckdb(5, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 16))
def test_windows_are_often_those_of_duckdb(seed: int):
    check_beside_duckdb(seed, 300)


def check_own_rows_alone(seed: int, count: int) -> None:
    """Neither other people's rows nor the order of rows change what a person's rows are given, as a multiset."""
    rng = random.Random(seed)
    data = frame()
    for _ in range(count):
        window, read = statement(rng), rng.choice(["", "x", "s", "r, day"])
        whole = values_of(data, window, read)
        order = rng.sample(range(len(data)), len(data))
        shuffled = values_of(data.iloc[order].reset_index(drop=True), window, read)
        assert Counter(map(repr, whole)) == Counter(map(repr, shuffled)), window
        unit = rng.choice([1, 3, 5])
        alone = values_of(data[data["pid"] == unit].reset_index(drop=True), window, read)
        assert Counter(map(repr, alone)) == Counter(repr(row) for row in whole if row[0] == unit), window


def test_a_row_is_given_what_its_own_persons_rows_say():
    check_own_rows_alone(21, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(22, 30))
def test_a_row_is_often_given_what_its_own_persons_rows_say(seed: int):
    check_own_rows_alone(seed, 200)


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_who_has_too_many_rows_has_none(engine: str, monkeypatch: pytest.MonkeyPatch):
    """Above the limit a person has no rows there, on every engine; at it all of them."""
    from dpsql.executors.pandas.windows import window_functions as of_pandas
    from dpsql.executors.sql import windows as of_sql

    rows = pd.DataFrame({"pid": [1] * 5 + [2] * 4, "x": range(9)})
    held = session({"o": dpsql.Table(rows, unit="pid", max_rows=9, bounds={"x": (0, 9)})}, engine)
    for module in (of_pandas, of_sql):
        monkeypatch.setattr(module, "MOST_ROWS", 4)
    sql = "SELECT COUNT(*), COUNT(w) FROM (SELECT x, SUM(x) OVER (PARTITION BY pid ORDER BY x) AS w FROM o)"
    from dpsql.testing import insecure_exact

    assert 4 in insecure_exact(held, sql, bytes(32), epsilon=1).parts[()]
    assert windows.MOST_ROWS == 4_194_304


def test_sums_are_exact_and_held():
    """Integers near the ends of 64 bits, which no running sum of doubles would hold."""
    large = 2**62
    data = pd.DataFrame({"pid": [1] * 4, "x": [large, large, -large, 3], "n": range(4)})
    schemas = resolved({"o": dpsql.Table(data, unit="pid", max_rows=4)})
    sql = "SELECT COUNT(w), COUNT(n) FROM (SELECT *, SUM(x) OVER (PARTITION BY pid ORDER BY n) AS w FROM o)"
    source = bind(parse(sql), Catalog(schemas)).query.plan.input
    assert isinstance(source, windows_node())
    rows = Database({"o": ColumnStore(data, schemas["o"])}, source).relation(source)
    assert evaluated(source.columns[0], rows).values.tolist() == [large, large, large, large]
    held = session({"o": dpsql.Table(data, unit="pid", max_rows=4)}, "pandas")
    other = session({"o": dpsql.Table(data, unit="pid", max_rows=4)}, "duckdb")
    assert not difference(held, other, sql.replace("COUNT(w)", "COUNT(DISTINCT w)"))


def test_a_default_stands_where_no_value_is_found():
    """Past the NULLs that are ignored too, and as a group of its own beside those of the column."""
    rows = [(1, None, 1), (1, 5, 2), (1, None, 3), (1, 5, 4), (2, None, 1), (2, None, 2), (3, 4, 1)]
    data = pd.DataFrame(rows, columns=["pid", "x", "n"]).astype("Int64")
    said: dict[str, Any] = {
        "unit": "pid",
        "max_rows": 4,
        "bounds": {"x": (4, 5), "n": (1, 4)},
        "nullable": {"n": False},
    }
    held, other = (session({"o": dpsql.Table(data, **said)}, each) for each in ("pandas", "duckdb"))
    for call in ("LAG(x, 1, 9 IGNORE NULLS)", "LEAD(x, 2, 9 IGNORE NULLS)", "LAG(x, 1, 9)", "LEAD(n, 1, 9)"):
        window = f"{call} OVER (PARTITION BY pid ORDER BY n)"
        sql = f"SELECT w, COUNT(*) AS c FROM (SELECT *, {window} AS w FROM o) GROUP BY w"
        assert not difference(held, other, sql)
        expected = Counter(row[-1] for row in values_of_duckdb(data, window))
        found = {row[0]: row[1] for row in held.query(sql, epsilon=10**6) if row[1]}
        assert {key if key == key else None: count for key, count in found.items()} == expected  # noqa: PLR0124 - NaN


def values_of_duckdb(data: pd.DataFrame, window: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("o", data)
        return connection.execute(f"SELECT {window} FROM o").fetchall()


def test_sums_of_reals_are_those_of_whole_steps_on_every_engine():
    """In whatever order: 1e-12 of the larger end, times the rows, is the most by which a sum moves."""
    rng = np.random.default_rng(4)
    data = frame().assign(pid=rng.integers(0, 40, 300), r=rng.normal(0, 3, 300))
    exact = data.assign(r=data.r.clip(-5, 5)).groupby("pid").r.agg(["sum", "mean"])
    for window, column in (("SUM(r)", "sum"), ("AVG(r)", "mean")):
        found = values_of(data, f"{window} OVER (PARTITION BY pid)", "n")
        shuffled = values_of(data.sample(frac=1, random_state=1), f"{window} OVER (PARTITION BY pid)", "n")
        assert {row[1]: row[2] for row in found} == {row[1]: row[2] for row in shuffled}
        assert max(abs(row[2] - exact[column][row[0]]) for row in found) < 1e-9
    sql = "SELECT SUM(CLAMP(w, -90, 90)), COUNT(DISTINCT w) FROM (SELECT SUM(r) OVER (PARTITION BY pid) AS w FROM o)"
    ours, other = (session({"o": dpsql.Table(data, **FACTS)}, each) for each in ("pandas", "duckdb"))
    assert not difference(ours, other, sql)


@pytest.mark.parametrize("ends", [(0.0, 0.0), (-1e-280, 0.0), (0.1, 1e300), (-1.7e308, 1.7e308), (5e-324, 1e-320)])
def test_steps_of_any_range_are_near(ends: tuple[float, float]):
    low, high = ends
    data = frame(3).assign(pid=[1, 1, 2], r=[low, high, low])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FACTS, "bounds", {})
        found = values_of(data, f"AVG(CLAMP(r, {low}, {high})) OVER (PARTITION BY n, pid)", "n")
    width = max(abs(low), abs(high), 1e-285)
    assert all(abs(row[2] - data.r[row[1]]) <= width * 1e-12 for row in found)


def test_sums_of_reals_without_bounds_are_refused_with_what_to_write():
    table = dpsql.Table(frame(), unit="pid", max_rows=5)
    with dpsql.Session({"o": table}, budget=dpsql.Budget(epsilon=1)) as asked:
        sql = "SELECT COUNT(w) FROM (SELECT SUM({}) OVER (PARTITION BY pid) AS w FROM o)"
        with pytest.raises(MissingBounds, match="needs bounds for r") as refused:
            asked.quote(sql.format("r"), epsilon=1)
        assert "SUM(CLAMP(r, low, high)) OVER (...)" in str(refused.value)
        asked.quote(sql.format("CLAMP(r, 0, 9)"), epsilon=1)
        with pytest.raises(MissingBounds, match=r"^SUM\(w\) needs bounds") as refused:
            asked.quote(sql.format("CLAMP(r, 0, 9)").replace("COUNT", "SUM"), epsilon=1)
        assert "Write SUM(CLAMP(w, 0, 100))" in str(refused.value)
        written = sql.format("CLAMP(r, 0, 9)").replace("COUNT(w)", "SUM(CLAMP(w, 0, 100))")
        assert asked.quote(written, epsilon=1).cost.epsilon == 1
