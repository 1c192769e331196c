"""Aggregates of one person's rows that depend on an order: what they are by hand and in DuckDB, and equal integers."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import Expr
from dpsql.session.tables.public_tables import resolved
from dpsql.sql.bind.statement import bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parse import parse
from tests.executors.contract import difference, session
from tests.executors.test_windows import FACTS, as_number, frame

Row = dict[str, Any]
Rule = Callable[[list[Row]], Any]


def values_of(data: pd.DataFrame, call: str, key: str) -> dict[tuple[Any, Any], Any]:
    """The value of each group of a unit, by unit and key."""
    schemas = resolved({"o": dpsql.Table(data, **FACTS)})
    shown = f"SELECT COUNT(w), COUNT(pid), COUNT(k) FROM (SELECT pid, {key} AS k, {call} AS w FROM o GROUP BY pid, k)"
    query = bind(parse(shown), Catalog(schemas)).query
    value, unit, part = (each.argument for each in query.plan.aggregations)
    rows = Database({"o": ColumnStore(data, schemas["o"])}, query.plan.input).relation(query.plan.input)

    def cells(expr: Expr | None) -> list[Any]:
        assert expr is not None
        return cells_of(evaluated(expr, rows), expr.type)

    with np.errstate(all="ignore"):
        return dict(zip(zip(cells(unit), cells(part), strict=True), cells(value), strict=True))


def rows_by(data: pd.DataFrame, key: str) -> dict[tuple[Any, Any], list[Row]]:
    groups: dict[tuple[Any, Any], list[Row]] = defaultdict(list)
    for row in data.astype(object).to_dict("records"):
        cells = {name: None if pd.isna(value) else value for name, value in row.items()}
        if cells["day"] is not None:
            cells["day"] = cells["day"].date()
        if cells["pid"] is not None:
            groups[(cells["pid"], cells[key])].append({name: as_number(value) for name, value in cells.items()})
    return groups


# By hand.


def ranked(value: Any) -> tuple[bool, Any]:
    """NULL last."""
    return (value is None, 0 if value is None else value)


def least_by(x: str, y: str, *, falling: bool = False) -> Rule:
    def rule(rows: list[Row]) -> Any:
        both = [row for row in rows if row[x] is not None and row[y] is not None]
        end = (max if falling else min)((row[y] for row in both), default=None)
        return min((row[x] for row in both if row[y] == end), default=None)

    return rule


def in_order(x: str, y: str, *, falling: bool = False, nulls_first: bool = False, last: bool = False) -> Rule:
    """The first or last of the groups of rows that are equal in y, of these the least x, NULL last."""

    def rule(rows: list[Row]) -> Any:
        known = sorted({row[y] for row in rows if row[y] is not None}, reverse=falling)
        nothing = [None] if any(row[y] is None for row in rows) else []
        steps = [*nothing, *known] if nulls_first else [*known, *nothing]
        return min((row[x] for row in rows if row[y] == steps[-1 if last else 0]), key=ranked)

    return rule


def present(rows: list[Row], x: str) -> list[Any]:
    return sorted(row[x] for row in rows if row[x] is not None)


def between(x: str, at: float) -> Rule:
    def rule(rows: list[Row]) -> Any:
        values = present(rows, x)
        if not values:
            return None
        place = (len(values) - 1) * at
        low, high = values[floor(place)], values[ceil(place)]
        made = low * (1 - (place - floor(place))) + high * (place - floor(place))
        return made * 86_400_000_000 if x == "day" else made

    return rule


def one_of(x: str, at: str, *, falling: bool = False) -> Rule:
    def rule(rows: list[Row]) -> Any:
        values = sorted(present(rows, x), reverse=falling)
        return values[max(1, ceil(len(values) * Fraction(at))) - 1] if values else None

    return rule


def most_frequent(x: str) -> Rule:
    def rule(rows: list[Row]) -> Any:
        counts = Counter(present(rows, x))
        return min((value for value, n in counts.items() if n == max(counts.values())), default=None)

    return rule


def where(condition: Callable[[Row], bool], rule: Rule) -> Rule:
    return lambda rows: rule(kept) if (kept := [row for row in rows if condition(row)]) else None


def above(row: Row) -> bool:
    return row["x"] is not None and row["x"] > 1


def truth(end: Callable[[Any], Any]) -> Rule:
    return lambda rows: end(values) if (values := [value > 2 for value in present(rows, "x")]) else None


CALLS: dict[str, Rule] = {
    "ARG_MIN(x, r)": least_by("x", "r"),
    "ARG_MAX(s, day)": least_by("s", "day", falling=True),
    "MIN_BY(r, x) FILTER (WHERE x > 1)": where(above, least_by("r", "x")),
    "MAX_BY(t, s)": least_by("t", "s", falling=True),
    "FIRST(x ORDER BY t)": in_order("x", "t"),
    "FIRST(s ORDER BY x DESC)": in_order("s", "x", falling=True),
    "LAST(day ORDER BY x NULLS FIRST)": in_order("day", "x", nulls_first=True, last=True),
    "LAST(r ORDER BY s DESC)": in_order("r", "s", falling=True, last=True),
    "LAST(s ORDER BY r) FILTER (WHERE x > 1)": where(above, in_order("s", "r", last=True)),
    "MEDIAN(x)": between("x", 0.5),
    "MEDIAN(day)": between("day", 0.5),
    "QUANTILE_CONT(r, 0.9)": between("r", 0.9),
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x DESC)": between("x", 0.75),
    "MEDIAN(t) FILTER (WHERE x > 1)": where(above, between("t", 0.5)),
    "QUANTILE(x, 0.3)": one_of("x", "0.3"),
    "QUANTILE_DISC(s, 0.5)": one_of("s", "0.5"),
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY s DESC)": one_of("s", "0.5", falling=True),
    "MODE(x)": most_frequent("x"),
    "MODE(r)": most_frequent("r"),
    "MODE(s) FILTER (WHERE x > 1)": where(above, most_frequent("s")),
    "BOOL_OR(x > 2)": truth(any),
    "BOOL_AND(x > 2)": truth(all),
    "MIN(s)": lambda rows: min(present(rows, "s"), default=None),
    "MAX(s)": lambda rows: max(present(rows, "s"), default=None),
}


def close(one: Any, other: Any) -> bool:
    """Equal, timestamps to the microsecond that halves are rounded to."""
    if one is None or other is None or isinstance(one, str):
        return bool(one == other)
    return abs(one - other) <= max(1e-12 * abs(one), 1 if abs(one) > 1e14 else 0)


def test_they_are_what_they_are_by_hand():
    """And with the rows in another order, and of one person's rows alone."""
    rng = random.Random(3)
    data = frame(200)
    shuffled = data.iloc[rng.sample(range(len(data)), len(data))].reset_index(drop=True)
    alone = data[data["pid"] == 1].reset_index(drop=True)
    for call, rule in CALLS.items():
        key = rng.choice(["s", "x"])
        found = values_of(data, call, key)
        expected = {group: rule(rows) for group, rows in rows_by(data, key).items()}
        assert found.keys() == expected.keys()
        wrong = [(group, found[group], expected[group]) for group in found if not close(found[group], expected[group])]
        assert not wrong, (call, wrong[:3])
        assert values_of(shuffled, call, key) == found, call
        assert values_of(alone, call, key) == {group: value for group, value in found.items() if group[0] == 1}, call


OF_DUCKDB = [
    "ARG_MIN(x, n)", "ARG_MAX(s, n)", "FIRST(x ORDER BY n)", "LAST(s ORDER BY n)", "FIRST(x ORDER BY r, n)",
    "LAST(day ORDER BY s DESC NULLS FIRST, n)", "MEDIAN(x)", "MEDIAN(day)", "QUANTILE_CONT(x, 0.9)", "MEDIAN(t)",
    "QUANTILE(x, 0.3)", "QUANTILE_DISC(s, 0.5)", "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x DESC)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY r DESC)", "BOOL_OR(x > 2)", "BOOL_AND(x > 2)", "MIN(s)", "MAX(s)",
    "FIRST(x ORDER BY n) FILTER (WHERE x > 1)", "MEDIAN(r) FILTER (WHERE x > 1)",
]  # fmt: skip


def test_they_are_those_of_duckdb():
    """Where no two rows are equal in the order."""
    data = frame(200, seed=4)
    with duckdb.connect() as connection:
        connection.register("raw", data)
        connection.execute(
            "CREATE TABLE o AS SELECT * REPLACE (CAST(day AS DATE) AS day, CAST(t AS TIMESTAMP) AS t, "
            "CASE WHEN isnan(r) THEN NULL ELSE r END AS r) FROM raw WHERE pid IS NOT NULL"
        )
        for call in OF_DUCKDB:
            rows = connection.execute(f"SELECT pid, x, {call} FROM o GROUP BY pid, x").fetchall()
            found = values_of(data, call, "x")
            assert len(found) == len(rows)
            wrong = [row for row in rows if not close(as_number(row[2]), found[(row[0], row[1])])]
            assert not wrong, (call, wrong[:3])


def compared(engine: str, count: int, seed: int = 5) -> None:
    rng = random.Random(seed)
    ours, other = (session({"o": dpsql.Table(frame(), **FACTS)}, each) for each in ("pandas", engine))
    for number in range(0, count, 5):
        calls = [f"{call} AS w{place}" for place, call in enumerate([*CALLS][number : number + 5])]
        key = rng.choice(["", ", s", ", x"])
        inner = f"SELECT pid{key}, {', '.join(calls)}, COUNT(*) AS c FROM o GROUP BY pid{key}"
        counts = ", ".join(f"COUNT(DISTINCT w{place})" for place in range(len(calls)))
        sql = f"SELECT COUNT(w0), {counts}, SUM(CLAMP(c, 0, 9)) FROM ({inner})"
        assert not difference(ours, other, sql), sql


def test_duckdb_has_the_same_integers():
    compared("duckdb", len(CALLS))


@pytest.mark.slow
def test_spark_has_the_same_integers():
    compared("spark", len(CALLS))


def test_groups_by_them_are_public_and_their_ranges_known():
    """The first of declared keys is one of them, and what lies between values lies in their bounds."""
    tables = {"o": dpsql.Table(frame(), **FACTS)}
    own = session(tables, "pandas")
    first = "SELECT w, COUNT(*) AS n FROM (SELECT pid, FIRST(s ORDER BY t) AS w FROM o GROUP BY pid) GROUP BY w"
    assert [row[0] for row in own.query(first, epsilon=1)] == ["a", "b", "zz", "é", None]
    middle = "SELECT AVG(w) AS m FROM (SELECT pid, MEDIAN(x) AS w FROM o GROUP BY pid)"
    assert -9 <= next(iter(own.query(middle, epsilon=10**6)))[0] <= 20
    days = "SELECT MAX(w) AS d FROM (SELECT pid, QUANTILE_CONT(day, 0.9) AS w FROM o GROUP BY pid)"
    assert next(iter(own.query(days, epsilon=1)))[0] <= dt.datetime(2024, 3, 1)
