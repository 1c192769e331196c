"""Spark gives pandas' integers, by ==: chosen plans by default, and all of them with `make spark`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.joins import pairing
from tests.executors.contract import (
    differences,
    function_queries,
    of_one_table,
    of_several_tables,
    one_table_queries,
    session,
    several_tables_queries,
)
from tests.executors.duckdb import test_all_units as all_units
from tests.executors.duckdb import test_heavy_units as heavy_units
from tests.executors.duckdb import test_leading_digits as leading_digits
from tests.executors.duckdb import test_limits as limits
from tests.executors.duckdb.test_same_integers import GOLDEN, ODD, ODD_QUERIES, ODD_TYPES, golden_people
from tests.sql import test_keys_together as together

PER_TEST = 10


def chosen(queries: list[str], count: int) -> list[list[str]]:
    """Some of them, the same ones always, in tests of a few."""
    picked = random.Random(17).sample(queries, count)
    return [picked[start : start + PER_TEST] for start in range(0, len(picked), PER_TEST)]


def parts(queries: list[str]) -> list[list[str]]:
    return [queries[start : start + 40] for start in range(0, len(queries), 40)]


REFUSED = ("regular expressions", "CAST of a REAL to text", "LIKE with a pattern that is no constant")
"""What Spark lacks, by the words of the refusal; the manual says why."""


def unlike(one: dpsql.Session, other: dpsql.Session, queries: list[str]) -> list[str]:
    """As `differences`, but for what is refused on Spark before anything is charged, by name."""
    found = differences(one, other, queries)
    return [each for each in found if not any(f"has no {words}" in each.replace("\n", " ") for words in REFUSED)]


def named(queries: list[str]) -> str:
    return queries[0][:60]


def golden() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.sql"))]


def golden_sessions() -> list[dpsql.Session]:
    return [session({"people": golden_people()}, engine) for engine in ("spark", "pandas")]


@pytest.mark.parametrize("queries", chosen(one_table_queries(), 30), ids=named)
def test_one_table(queries: list[str]):
    assert differences(of_one_table("spark"), of_one_table("pandas"), queries) == []


def test_keys_that_stand_together():
    """In public rows: with a limit of groups, and beside NULLs."""
    held = together.tables(together.orders(100), max_groups=2, max_rows_per_group=2)
    ours, other = session(held, "spark"), session(held, "pandas")
    assert not unlike(ours, other, [together.COUNTED[3], together.COUNTED[20]])


@pytest.mark.parametrize("queries", chosen(several_tables_queries(), 40), ids=named)
def test_several_tables(queries: list[str]):
    assert differences(of_several_tables("spark"), of_several_tables("pandas"), queries) == []


@pytest.mark.parametrize("queries", chosen(golden(), 20), ids=named)
def test_golden_plans(queries: list[str]):
    assert differences(*golden_sessions(), queries) == []


@pytest.mark.parametrize("place", [1, 2])
def test_limits(place: int):
    queries = random.Random(place).sample(several_tables_queries(), 6)
    assert differences(limits.limited(place, "spark"), limits.limited(place, "pandas"), queries) == []


@pytest.mark.parametrize("kind", ["texts", "decimals"])
def test_whatever_tells_units_apart(kind: str):
    one, other = limits.of_units(kind, "spark"), limits.of_units(kind, "pandas")
    assert differences(one, other, random.Random(kind).sample(limits.QUERIES, 6)) == []


def odd_sessions(**facts: Any) -> list[dpsql.Session]:
    rng = np.random.default_rng(5)
    data = pd.DataFrame(
        {
            name: pd.Series([cells[k] for k in rng.integers(0, len(cells), 200)], dtype=object)
            for name, cells in ODD.items()
        }
    )
    return [session({"t": dpsql.Table(data, types=ODD_TYPES, **facts)}, engine) for engine in ("spark", "pandas")]


@pytest.mark.parametrize("queries", chosen(ODD_QUERIES, 12), ids=named)
def test_odd_cells(queries: list[str]):
    assert differences(*odd_sessions(), queries) == []


# All of them.


@pytest.mark.spark
@pytest.mark.parametrize("queries", parts(one_table_queries()), ids=named)
def test_all_of_one_table(queries: list[str]):
    assert differences(of_one_table("spark"), of_one_table("pandas"), queries) == []


@pytest.mark.spark
@pytest.mark.parametrize("queries", parts(function_queries()), ids=named)
def test_all_functions(queries: list[str]):
    assert unlike(of_one_table("spark"), of_one_table("pandas"), queries) == []


@pytest.mark.spark
@pytest.mark.parametrize("queries", parts(several_tables_queries()), ids=named)
def test_all_of_several_tables(queries: list[str]):
    assert differences(of_several_tables("spark"), of_several_tables("pandas"), queries) == []


@pytest.mark.spark
def test_all_golden_plans():
    assert differences(*golden_sessions(), golden()) == []


@pytest.mark.spark
@pytest.mark.parametrize("place", range(len(limits.LIMITS)))
def test_all_joins_with_limits(place: int):
    queries = random.Random(place).sample(several_tables_queries(), limits.SAMPLE)
    assert differences(limits.limited(place, "spark"), limits.limited(place, "pandas"), queries) == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", limits.UNITS)
def test_all_that_tells_units_apart(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Of reals those whose digits Java writes as Python does: of others Spark may leave out other rows."""
    monkeypatch.setitem(limits.UNITS, "reals", ([0.5, 8.25, -0.0, 2.0], {}))
    one, other = limits.of_units(kind, "spark"), limits.of_units(kind, "pandas")
    assert differences(one, other, limits.QUERIES) == []


@pytest.mark.spark
@pytest.mark.parametrize("facts", [{}, {"unit": "wholes", "max_rows": 200}], ids=str)
def test_all_odd_cells(facts: dict[str, Any]):
    assert differences(*odd_sessions(**facts), ODD_QUERIES) == []


@pytest.mark.spark
@pytest.mark.parametrize("most", [1, 20, 600])
def test_the_same_heavy_units_are_left_out(most: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pairing, "MOST_PAIRS", most)
    monkeypatch.setattr(pairing, "MOST_FANNED_OUT", 2 * most)
    engines = [session(heavy_units.tables(), engine) for engine in ("spark", "pandas")]
    assert differences(*engines, heavy_units.QUERIES) == []


@pytest.mark.spark
@pytest.mark.parametrize("bounds", all_units.LIMITS, ids=str)
def test_people_of_all_groups(bounds: dict[str, int]):
    engines = [session({"t": all_units.table(bounds)}, engine) for engine in ("spark", "pandas")]
    queries = [sql for sql in all_units.QUERIES if "SUM" not in sql or bounds["max_rows_per_group"] > 1]
    assert differences(*engines, queries) == []


@pytest.mark.spark
@pytest.mark.parametrize("facts", [{}, {"unit": "who", "max_rows": 2}], ids=str)
def test_places_by_leading_digits(facts: dict[str, Any]):
    for values in (pd.Series(leading_digits.REALS), pd.Series(leading_digits.INTEGERS, dtype="Int64")):
        frame = pd.DataFrame({"x": values, "who": np.arange(len(values)) % 40})
        said = {"bounds": {"x": "auto"}, **facts}
        (one,), (other,) = (
            leading_digits.searched(each, "SELECT SUM(x) FROM t", frame, **said) for each in ("pandas", "spark")
        )
        assert one.points.tolist() == other.points.tolist()
        assert one.counts.tolist() == other.counts.tolist()
