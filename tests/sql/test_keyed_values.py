"""Public values by released keys, right of an outer join and over grouping sets; and the candidates of a selection."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.sql.bind import looked_up_aggregates as keyed_values
from tests.lies import Patch, assert_caught

POPULATION = {"a": 1_000, "b": 2_000, "c": 41_201, "d": 700}
DISTRICTS = ["a", "b", "c", "d", "z", None]
"""Nobody's public row has z."""


def people(rows: int = 3_000) -> pd.DataFrame:
    frame = {"pid": range(3_000), "district": ["a", "a", "b", "z", None] * 600, "sick": [0, 1, 1] * 1_000,
             "sex": ["f", "m"] * 1_500, "age": [20, 30, 40] * 1_000}  # fmt: skip
    return pd.DataFrame(frame).iloc[:rows]


def tables(rows: int = 3_000, **declared: Any) -> dict[str, dpsql.Table]:
    pop = pd.DataFrame({"district": list(POPULATION), "population": POPULATION.values(), "region": list("nnss")})
    facts = {"keys": {"district": DISTRICTS, "sex": ["f", "m"]}, "bounds": {"sick": (0, 1), "age": (0, 100)}}
    return {
        "v": dpsql.Table(people(rows), unit="pid", max_rows=1, unique=["pid"], **{**facts, **declared}),
        "pop": dpsql.Table(pop, public=True, unique=["district"]),
    }


def asked(sql: str, rows: int = 3_000, epsilon: float = 1, **more: Any) -> Any:
    session = dpsql.Session(tables(rows), budget=dpsql.Budget(10**9, 0.1), engine=more.pop("engine", "pandas"))
    return session.query(sql, epsilon=epsilon, **more)


def steps(sql: str, **declared: Any) -> str:
    return str(dpsql.Session(tables(**declared), budget=dpsql.Budget(10)).explain(sql, epsilon=1))


JOINS = {
    "using": ("v LEFT JOIN pop USING (district)", "district"),
    "on": ("v LEFT JOIN pop ON v.district = pop.district", "v.district"),
    "turned": ("pop RIGHT JOIN v ON pop.district = v.district", "v.district"),
    "all": ("(SELECT * FROM v LEFT JOIN pop USING (district)) AS q", "district"),
    "sub-query": ("v LEFT JOIN (SELECT district, population, region FROM pop) AS p USING (district)", "district"),
}
CALLS = ["MAX(population)", "MIN(population)", "AVG(population)", "ANY_VALUE(population)", "MODE(population)",
         "MEDIAN(population)", "SUM(DISTINCT population)", "MAX(population + 1) - 1", "QUANTILE(population, 0.9)",
         "MAX(population) FILTER (WHERE sick = 1)", "MIN(population) FILTER (WHERE age > 1000)"]  # fmt: skip


@pytest.mark.parametrize("join", JOINS)
def test_a_key_without_a_public_row_has_null_and_every_other_its_value(join: str):
    source, key = JOINS[join]
    listed = ", ".join(f"{call} AS c{place}" for place, call in enumerate(CALLS))
    sql = f"SELECT {key} AS k, {listed}, COUNT(*) AS n FROM {source} GROUP BY {key} ORDER BY k"
    for rows in (3_000, 1, 0):
        found = asked(sql, rows).df
        assert [None if pd.isna(each) else each for each in found.k] == DISTRICTS
        for place, call in enumerate(CALLS):
            values = found[f"c{place}"]
            assert values[:4].tolist() == list(POPULATION.values()), call
            assert values[4:].isna().all(), call


def test_they_cost_nothing():
    assert "choose" not in steps(
        "SELECT district, MAX(population), COUNT(*) FROM v LEFT JOIN pop USING (district) GROUP BY 1"
    )


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_exact_answers_are_those_of_duckdb(engine: str):
    connection = duckdb.connect()
    connection.register("v", people())
    connection.register("pop", tables()["pop"].frame)
    sql = """SELECT district, MAX(population) AS p, AVG(population) AS a, SUM(population) AS s,
        MAX(region) AS r, SUM(population) FILTER (WHERE sick = 1) AS t, 1000.0 * COUNT(*) / MIN(population) AS q
        FROM v LEFT JOIN pop USING (district) GROUP BY district ORDER BY district"""
    truth = connection.sql(sql).df()
    found = asked(sql, epsilon=10**6, engine=engine).df
    found = found[~found.district.isin(["c", "d"])].reset_index(drop=True)
    assert found.r.fillna("").tolist() == truth.r.fillna("").tolist()
    for column in "pastq":
        assert np.allclose(found[column].astype(float), truth[column].astype(float), equal_nan=True), column


def test_on_may_say_more_about_the_public_table_but_not_about_people():
    on = "v.district = pop.district AND pop.region = 'n'"
    found = asked(f"SELECT v.district AS k, MAX(population) AS p FROM v LEFT JOIN pop ON {on} GROUP BY 1 ORDER BY 1").df
    assert found.p.fillna(-1).tolist() == [1_000, 2_000, -1, -1, -1, -1]
    sql = "SELECT v.district AS k, MAX(population), COUNT(*) FROM v LEFT JOIN pop ON {} GROUP BY 1"
    assert "MAX(pop.population): one of 4 values" in steps(sql.format("v.district = pop.district AND v.age > 20"))
    assert "MAX(pop.population): one of 4 values" in steps(
        sql.format("v.district = pop.district AND v.sex = pop.region")
    )


def test_a_value_that_is_not_null_beside_no_match():
    calls = {
        "MAX(COALESCE(population, 5))": [1_000, 2_000, 41_201, 700, 5, 5],
        "AVG(COALESCE(population, 0)) FILTER (WHERE region IS NULL OR region = 'n')": [1_000, 2_000, -1, -1, 0, 0],
        "MODE(region IS NULL)": [0, 0, 0, 0, 1, 1],
        "MAX(COALESCE(NULLIF(population, 700), 5))": [1_000, 2_000, 41_201, 5, 5, 5],
        "MIN(CASE WHEN population <> 700 THEN population WHEN population IS NULL THEN 5 END)":
            [1_000, 2_000, 41_201, -1, 5, 5],
    }  # fmt: skip
    for call, truth in calls.items():
        sql = f"SELECT district AS k, {call} AS x FROM v LEFT JOIN pop USING (district) GROUP BY 1 ORDER BY 1"
        for rows in (3_000, 0):
            assert asked(sql, rows).df.x.astype(float).fillna(-1).tolist() == truth, call


def test_on_may_compute_with_keys():
    pop = pd.DataFrame({"code": [1, 3], "population": [10, 30]})
    held = {**tables(bounds={"age": (20, 40)}), "pop": dpsql.Table(pop, public=True, unique=["code"])}
    sql = "SELECT age AS k, MAX(population) AS p FROM v LEFT JOIN pop ON v.age // 10 - 1 = code GROUP BY age ORDER BY 1"
    found = dpsql.query(held, sql, epsilon=1).df
    assert found.p.fillna(-1).tolist() == [
        10.0 if age < 30 else 30.0 if age == 40 else -1.0 for age in found.k.fillna(30)
    ]


def test_null_that_stands_for_other_keys_has_no_value_of_its_own():
    sql = "SELECT district, MAX(population), COUNT(*) FROM v LEFT JOIN pop USING (district) GROUP BY district"
    assert "choose" in steps(sql, keys={"district": ["a", None]})
    assert "choose" not in steps(sql, keys={"district": ["a"]})


def test_unknown_keys_have_theirs():
    free = tables(keys={})
    sql = "SELECT district AS k, MAX(population) AS p FROM v LEFT JOIN pop USING (district) GROUP BY 1 ORDER BY 1"
    found = dpsql.query(free, sql, epsilon=2, delta=1e-6).df
    assert found.k.fillna("").tolist() == ["a", "b", "z", ""]
    assert found.p.fillna(-1).tolist() == [1_000, 2_000, -1, -1]


def test_rates_have_the_interval_of_their_count_or_none():
    sql = """SELECT district, 1000.0 * COUNT(*) / MAX(population) AS r, COUNT(*) AS n
        FROM v LEFT JOIN pop USING (district) GROUP BY district ORDER BY district"""
    ends = asked(sql).intervals()
    people_of = np.array([*POPULATION.values()])
    assert np.allclose(ends.r_high[:4], 1_000 * ends.n_high[:4] / people_of)
    assert np.allclose(ends.r_low[:4], 1_000 * ends.n_low[:4] / people_of)
    assert np.isinf(ends[["r_low", "r_high"]][4:]).all(axis=None)


def test_a_public_key_of_two_columns():
    pop = pd.DataFrame({"district": ["a", "a", "b"], "sex": ["f", "m", "f"], "population": [1, 2, 3]})
    held = {**tables(), "pop": dpsql.Table(pop, public=True, unique=[("district", "sex")])}
    source = "v LEFT JOIN pop USING (district, sex)"
    sql = f"SELECT {{0}}, MAX(population) AS p, COUNT(*) AS n FROM {source} GROUP BY {{0}} ORDER BY {{0}}"
    found = dpsql.query(held, sql.format("district, sex"), epsilon=1).df
    assert found.p.fillna(-1).tolist() == [1, 2, 3, *[-1] * 9]
    assert "choose" in str(dpsql.Session(held, budget=dpsql.Budget(1)).explain(sql.format("district"), epsilon=1))


SETS = {
    "GROUP BY district, ROLLUP (sex)": 18,
    "GROUP BY GROUPING SETS ((sex, district), (district))": 18,
    "GROUP BY GROUPING SETS ((district))": 6,
}


@pytest.mark.parametrize("kind", ["", "LEFT"])
@pytest.mark.parametrize("group", SETS)
def test_grouping_sets_that_all_have_the_key_have_the_value(group: str, kind: str):
    sql = f"""SELECT district AS k, MAX(population) AS p, ANY_VALUE(region) AS r, AVG(population) AS a,
        1000.0 * COUNT(*) / MIN(population) AS q, COUNT(*) AS n FROM v {kind} JOIN pop USING (district) {group}"""
    for rows in (3_000, 0):
        found = asked(sql, rows)
        assert len(found) == SETS[group]
        truth = found.df.k.map(POPULATION)
        assert (found.df.p.astype(float).fillna(-1) == truth.fillna(-1)).all()
        assert (found.df.a.fillna(-1) == truth.fillna(-1)).all()
        assert found.df.r.isna().equals(truth.isna())
        ends = found.intervals()[["q_low", "q_high"]]
        assert np.isfinite(ends[truth.notna()]).all(axis=None)


@pytest.mark.parametrize("group", ["ROLLUP (district)", "CUBE (district, sex)", "GROUPING SETS ((district), (sex))"])
@pytest.mark.parametrize("call", ["MAX", "ANY_VALUE", "MODE", "MEDIAN"])
def test_grouping_sets_without_the_key_are_refused_with_the_cause(group: str, call: str):
    said = r"pop\.population has one value for each district, but some of the grouping sets sum over district"
    for kind in ("", "LEFT"):
        with pytest.raises(dpsql.errors.UnsupportedSQL, match=said):
            asked(f"SELECT {call}(population), COUNT(*) FROM v {kind} JOIN pop USING (district) GROUP BY {group}")


def test_windows_and_conditions_read_them():
    sql = """SELECT district, MAX(population) AS p, RANK() OVER (ORDER BY MAX(population) DESC) AS r
        FROM v LEFT JOIN pop USING (district) GROUP BY district HAVING MAX(population) < 40000 ORDER BY r"""
    found = asked(sql).df
    assert found.p.tolist() == [2_000, 1_000, 700]
    assert found.r.tolist() == [1, 2, 3]


def test_long_tables_are_left_to_the_selection_and_plans_stay_short():
    def plan(size: int) -> str:
        pop = pd.DataFrame({"code": range(size), "population": range(size)})
        v = pd.DataFrame({"pid": range(9), "code": range(9)})
        held = {
            "v": dpsql.Table(v, unit="pid", max_rows=1, unique=["pid"], bounds={"code": (0, 99)}),
            "pop": dpsql.Table(pop, public=True, unique=["code"]),
        }
        sql = "SELECT code, MAX(population), COUNT(*) FROM v LEFT JOIN pop USING (code) GROUP BY code"
        return str(dpsql.Session(held, budget=dpsql.Budget(1)).explain(sql, epsilon=1))

    assert "(997 more)" in plan(1_000)
    assert len(plan(1_000)) < 3_000
    assert "one of 1,001 values" in plan(1_001)


CANDIDATES = {
    "MAX(population)": "MAX(pop.population): one of 4 values",
    "MIN(population + 1)": "MIN(pop.population + 1): one of 4 values",
    "MAX(population) FILTER (WHERE sick = 1)": "one of 4 values",
    "MODE(region)": "MODE(pop.region): one of 2 values",
    "ANY_VALUE(population)": "MODE(pop.population): one of 4 values",
    "MAX(age)": "MAX(v.age): one of 101 values",
}


@pytest.mark.parametrize("call", CANDIDATES)
def test_what_keys_leave_open_is_one_of_the_public_values(call: str):
    for kind in ("", "LEFT"):
        sql = f"SELECT sex, {call} AS x, COUNT(*) FROM v {kind} JOIN pop USING (district) GROUP BY sex"
        assert CANDIDATES[call] in " ".join(steps(sql).split())
        if call not in ("MAX(age)", "MIN(population + 1)"):
            assert set(asked(sql).df.x) <= {*POPULATION.values(), "n", "s"}


def test_conditions_on_the_public_table_leave_candidates_out():
    sql = "SELECT sex, MAX(population), COUNT(*) FROM v JOIN pop USING (district) WHERE region = 'n' GROUP BY sex"
    assert "one of 2 values" in steps(sql)


def check_conditions_on_people() -> None:
    sql = """SELECT v.district AS k, MAX(population), COUNT(*) FROM v LEFT JOIN pop
        ON v.district = pop.district AND v.age > 20 GROUP BY 1"""
    assert "choose" in steps(sql)


def _whatever_on_says(patch: Patch) -> None:
    patch.setattr(keyed_values._PublicTable, "_follows", lambda _table, _chosen: True)


def test_a_value_that_rows_of_people_decide_is_caught():
    """Whether such a group has the value depends on people: a constant in its place would be a wrong answer."""
    assert_caught(_whatever_on_says, check_conditions_on_people)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT district, ANY_VALUE(age) AS v FROM (SELECT * FROM v) AS q GROUP BY district",
        "SELECT district, ANY_VALUE(age + population) AS v FROM (SELECT * FROM v JOIN pop USING (district)) GROUP BY 1",
        "WITH q AS (SELECT * FROM v JOIN pop USING (district)) SELECT district, ANY_VALUE(sex) AS v FROM q GROUP BY 1",
        "SELECT district, COUNT(*) / ANY_VALUE(age) AS v FROM (SELECT * FROM v) AS q GROUP BY district",
        "SELECT district, ANY_VALUE(age) FILTER (WHERE sick = 1) AS v FROM (SELECT * FROM v) AS q GROUP BY district",
        "SELECT AVG(a) AS v FROM (SELECT pid, ANY_VALUE(age) AS a FROM (SELECT * FROM v) AS q GROUP BY pid)",
    ],
)
def test_any_value_of_a_column_of_people_is_refused_behind_a_subquery_too(sql: str):
    with pytest.raises(dpsql.errors.UnsupportedSQL, match="one person's own value"):
        asked(sql)
