"""Aggregates of public columns that the keys determine: exact, free, the same whoever is there."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.sql.bind import looked_up_aggregates as keyed_values
from dpsql.sql.rewrite import determined_aggregates as fixed_values
from tests.lies import Patch, assert_caught

POPULATION = {"a": 1_000, "b": 2_000, "c": 41_201, "d": 700}


def tables(rows: int = 3_000) -> dict[str, dpsql.Table]:
    pop = pd.DataFrame({"district": list(POPULATION), "population": POPULATION.values(), "region": list("nnss")})
    visits = pd.DataFrame(
        {"pid": range(3_000), "district": list("aab") * 1_000, "sick": [0, 1] * 1_500, "age": [20, 30, 40] * 1_000}
    ).iloc[:rows]
    bounds = {"sick": (0, 1), "age": (0, 100)}
    return {
        "v": dpsql.Table(visits, unit="pid", max_rows=1, unique=["pid"], bounds=bounds),
        "pop": dpsql.Table(pop, public=True, unique=["district"]),
    }


JOINS = {
    "using": ("v JOIN pop USING (district)", "district"),
    "on": ("v JOIN pop ON v.district = pop.district", "v.district"),
    "public first": ("pop JOIN v USING (district)", "pop.district"),
    "every public row": ("pop LEFT JOIN v USING (district)", "pop.district"),
}
CALLS = ["MAX(population)", "MIN(population)", "AVG(population)", "ANY_VALUE(population)", "MODE(population)",
         "MEDIAN(population)", "SUM(DISTINCT population)", "MAX(population + 1) - 1",
         "MAX(population) FILTER (WHERE sick = 1)", "MIN(population) FILTER (WHERE age > 1000)"]  # fmt: skip


def answer(sql: str, rows: int = 3_000, engine: str = "pandas", **more: Any) -> pd.DataFrame:
    held = dpsql.Session(tables(rows), budget=dpsql.Budget(10**9), engine=engine)
    return held.query(sql, epsilon=1, **more).df


@pytest.mark.parametrize("join", JOINS)
def test_they_are_the_public_values_whoever_is_there(join: str):
    source, key = JOINS[join]
    listed = ", ".join(f"{call} AS c{place}" for place, call in enumerate(CALLS))
    sql = f"SELECT {key} AS k, {listed}, COUNT(*) AS n FROM {source} GROUP BY {key} ORDER BY k"
    for rows in (3_000, 1, 0):
        found = answer(sql, rows)
        assert found.k.tolist() == list(POPULATION)
        for place in range(len(CALLS)):
            assert found[f"c{place}"].tolist() == list(POPULATION.values()), CALLS[place]


def test_a_filter_that_the_keys_determine_is_a_condition_of_the_value():
    """As in DuckDB. Rows of people are still not asked whether there are any."""
    calls = ("MAX(population) FILTER (WHERE population > 1500)",
             "MIN(population + 1) FILTER (WHERE NOT population > 1500 AND region = 'n' AND age > 1000)",
             "AVG(population) FILTER (WHERE region = 's' AND sick = 1)")  # fmt: skip
    listed = ", ".join(f"{call} AS c{place}" for place, call in enumerate(calls))
    for rows in (3_000, 0):
        found = answer(f"SELECT district AS k, {listed} FROM v JOIN pop USING (district) GROUP BY 1 ORDER BY 1", rows)
        assert found.c0.fillna(-1).tolist() == [-1, 2_000, 41_201, -1]
        assert found.c1.fillna(-1).tolist() == [1_001, -1, -1, -1]
        assert found.c2.fillna(-1).tolist() == [-1, -1, 41_201, 700]


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_rates_have_the_interval_of_their_count(engine: str):
    sql = """SELECT district, 1000.0 * COUNT(*) / MAX(population) AS r, COUNT(*) AS n
        FROM v JOIN pop USING (district) GROUP BY district ORDER BY district"""
    held = dpsql.Session(tables(), budget=dpsql.Budget(100), engine=engine).query(sql, epsilon=1)
    intervals = held.intervals()
    for place, (_, rate, count) in enumerate(held):
        people = [*POPULATION.values()][place]
        assert rate == pytest.approx(1_000 * count / people)
        ends = intervals.iloc[place]
        assert ends.r_high - rate == pytest.approx(1_000 * (ends.n_high - count) / people)
    grouped = """SELECT district, population, 1000.0 * COUNT(*) / population AS r
        FROM v JOIN pop USING (district) GROUP BY 1, 2"""
    assert np.isfinite(dpsql.query(tables(), grouped, epsilon=1).intervals()[["r_low", "r_high"]].to_numpy()).all()


def test_a_sum_is_the_value_times_the_noisy_count():
    sql = """SELECT district, SUM(population) AS s, COUNT(*) AS n, SUM(population) FILTER (WHERE sick = 1) AS t,
        COUNT(*) FILTER (WHERE sick = 1) AS m FROM v JOIN pop USING (district) GROUP BY district ORDER BY district"""
    found = answer(sql)
    people = list(POPULATION.values())
    assert found.s.tolist() == [each * rows for each, rows in zip(people, found.n, strict=True)]
    assert found.t.tolist() == [each * rows for each, rows in zip(people, found.m, strict=True)]


def test_exact_answers_are_those_of_duckdb():
    held = tables()
    connection = duckdb.connect()
    connection.register("v", held["v"].frame)
    connection.register("pop", held["pop"].frame)
    sql = """SELECT district, MAX(population) AS p, AVG(population) AS a, SUM(population) AS s,
        1000.0 * COUNT(*) / MIN(population) AS r FROM v JOIN pop USING (district) GROUP BY district ORDER BY district"""
    truth = connection.sql(sql).df()
    found = dpsql.Session(held, budget=dpsql.Budget(10**9)).query(sql, epsilon=10**6).df.iloc[: len(truth)]
    assert np.allclose(found[["p", "a", "s", "r"]].to_numpy(float), truth[["p", "a", "s", "r"]].to_numpy(float))


def test_a_table_without_a_unique_key_is_named():
    held = tables() | {"pop": dpsql.Table(tables()["pop"].frame, public=True)}
    for join, key in (JOINS["using"], JOINS["on"]):
        with pytest.raises(dpsql.errors.UnsupportedSQL, match=r'declare unique=\["district"\] on it'):
            dpsql.query(held, f"SELECT {key}, ANY_VALUE(population) FROM {join} GROUP BY {key}", epsilon=1)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT district, MAX(population) FILTER (WHERE no = 1) FROM v JOIN pop USING (district) GROUP BY district",
         dpsql.errors.UnknownColumn),
        ("SELECT district, MAX(population) FILTER (WHERE sick) FROM v JOIN pop USING (district) GROUP BY district",
         dpsql.errors.TypeMismatch),
        ("SELECT district, ANY_VALUE(age) FROM v JOIN pop USING (district) GROUP BY district",
         dpsql.errors.UnsupportedSQL),
        ("SELECT region, ANY_VALUE(population + age) FROM v JOIN pop USING (district) GROUP BY region",
         dpsql.errors.UnsupportedSQL),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_still(sql: str, error: type[Exception]):
    with pytest.raises(error):
        answer(sql)


def check_people_pay() -> None:
    """An aggregate of people's own values has noise, whatever is unique in their table."""
    held = dpsql.Session(tables(), budget=dpsql.Budget(10))
    sql = "SELECT v.pid % 2 AS k, MAX(age) AS a FROM v JOIN pop USING (district) GROUP BY k"
    assert "draw" in str(held.explain(sql, epsilon=1)).lower() or held.query(sql, epsilon=1).df.a.nunique() >= 1
    by_unit = "SELECT sick, MAX(v.age) AS a FROM v JOIN pop USING (district) GROUP BY sick, v.pid"
    with pytest.raises(dpsql.DPSQLError):
        held.query(by_unit, epsilon=1)
    rows = dpsql.Session({**tables(), "v": _unique_by_district()}, budget=dpsql.Budget(10))
    sql = "SELECT v.district, MAX(age) AS a FROM v JOIN pop USING (district) GROUP BY v.district"
    assert len(rows.query(sql, epsilon=1)) == len(POPULATION)  # no key more


def _unique_by_district() -> dpsql.Table:
    visits = pd.DataFrame({"pid": range(4), "district": list(POPULATION), "age": [20, 30, 40, 50]})
    return dpsql.Table(visits, unit="pid", max_rows=1, unique=["district"], bounds={"age": (0, 100)})


def _whatever_is_unique(patch: Patch) -> None:
    """People's columns are taken for public ones."""

    def is_fixed(self: Any, place: Any, keys: Any) -> bool:
        unique = self.tables[place[0]].unique
        return any(all((place[0], name) in keys for name in each) for each in unique)

    patch.setattr(fixed_values._GroupedSelect, "_is_fixed", is_fixed)


def test_values_of_people_that_are_taken_for_public_ones_are_caught():
    assert_caught(_whatever_is_unique, check_people_pay)


def _with_the_rows(patch: Patch) -> None:
    """The constant is there only where the noisy count says that rows are."""
    patch.setattr(fixed_values, "_may_be_fixed", lambda _node: False)
    patch.setattr(keyed_values._Call, "takes", lambda _call, _value: False)


def test_a_constant_that_depends_on_rows_is_caught():
    assert_caught(_with_the_rows, lambda: test_they_are_the_public_values_whoever_is_there("using"), honest=False,
                  by=(AssertionError, dpsql.DPSQLError))  # type: ignore[arg-type]  # fmt: skip
