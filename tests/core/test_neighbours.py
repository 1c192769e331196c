"""Neighbouring tables, exhaustively: no exact answer moves further than its release declares.

No statistics: for tables of a few rows, every neighbour under both relations is run through the exact plan, and the
distances are compared in integers with what the noise is calibrated to.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.errors import DPSQLError, UnknownGroups
from tests.core import checks, random_queries
from tests.core.checks import B, Row, Rule, Shape, U, check_rule, distances

SEED = 7_031_998


@pytest.mark.parametrize("rule", checks.RULES, ids=str)
def test_every_rule_is_sound_and_tight(rule: Rule):
    check_rule(rule)


def test_extremes_of_integers():
    checks.check_extremes()


@pytest.mark.slow
@pytest.mark.parametrize("rule", checks.RULES, ids=str)
def test_every_rule_on_larger_tables(rule: Rule):
    check_rule(rule, most=4)


def ask_at_random(seed: int, accepted: int, *, most: int = 2) -> None:
    """That many accepted queries, each with every neighbour among all tables over five random rows."""
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    queries = random_queries.Queries(rng)
    done = refused = 0
    while done < accepted:
        asked, relation, universe = queries.query(), rng.choice([U, B]), random_queries.rows(rng, 5)
        options: dict[str, Any] = {
            "most": most,
            "seed": rng.randrange(2**32),
            "options": asked.options,
            "more": asked.more,
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                distances(random_queries.SHAPE, asked.sql, universe, relation, **options)
        except DPSQLError:
            refused += 1
            assert refused < 2 * accepted + 100, "the generator makes too few queries that are accepted"
        else:
            done += 1


@pytest.mark.thinned(3)
@pytest.mark.parametrize("part", range(6))
def test_random_queries(part: int):
    ask_at_random(SEED + part, 70)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6, 46))
def test_many_random_queries(part: int):
    ask_at_random(SEED + part, 100, most=3)


# What random queries found, and what the reading of the code found, each as small as it gets

INTEGERS = Shape({"x": "int64"}, {"bounds": {"x": (0, 100)}})
ONE_OR_TWO = Shape({"x": "Int64"}, {"bounds": {"x": (1, 2)}})


@pytest.mark.parametrize("relation", [U, B])
def test_a_list_with_a_fraction_does_not_widen_an_integer_column(relation: str):
    """x IN (1.9, 3) is the range [2, 3] of integers. With [1.9, 3] one step was declared, and a row with 3 moved 3."""
    distances(INTEGERS, "SELECT AVG(x) FROM t WHERE x IN (1.9, 3)", [(3,), (2,), (1,)], relation, most=2)


@pytest.mark.parametrize("relation", [U, B])
def test_rounding_integers_to_digits_does_not_widen_them(relation: str):
    """ROUND(x, 1) of {1, 2} is in [1, 2]. With [0.9, 2.1] one step was declared, and a row with 2 moved 3."""
    distances(ONE_OR_TWO, "SELECT AVG(ROUND(x, 1)) FROM t", [(1,), (2,), (None,)], relation, most=2)


def test_integer_expressions_of_every_small_range():
    """Sums and averages of integers between -3 and 4, rounded to digits or picked by lists, over all ranges."""
    shape = Shape({"x": "int64"})
    for lower in range(-3, 4):
        for upper in range(lower + 1, 5):
            universe = [(value,) for value in range(lower, upper + 1)]
            for argument in ("ROUND(x, 1)", "ROUND(x, 0)", "ROUND(x * 10, -1)", "x"):
                for where in ("", " WHERE x IN (-1.9, 1.9, 3)", " WHERE x IN (0.5, 2, 4)", f" WHERE {argument} <= 2"):
                    sql = f"SELECT AVG({argument}) FROM t{where}"
                    distances(shape, sql, universe, U, most=1, more={"bounds": {"x": (lower, upper)}})


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("strategy", ["auto", "split"])
@pytest.mark.parametrize("by", ["", " WHERE a > 5", " GROUP BY g"])
def test_ranges_without_a_small_common_multiple(relation: str, strategy: str, by: str):
    """Four prime ranges: a lattice of 2^80 steps is too fine, so coarser grids share one that is nearly common."""
    shape = Shape(
        {"a": "int64", "b": "int64", "c": "int64", "d": "Int64", "g": "bool"},
        {"bounds": {"a": (0, 999_983), "b": (-7, 999_979), "c": (11, 999_961), "d": (-999_959, 3)}},
    )
    universe = [
        (999_983, 999_979, 999_961, -999_959, True), (0, -7, 11, 3, False), (999_983, -(10**9), 10**9, None, False),
        (5, 5, 500_000, -1, True), (999_983, 999_979, 999_961, -999_959, False),
    ]  # fmt: skip
    sql = f"SELECT SUM(a), SUM(b), SUM(c), SUM(d) FROM t{by}"
    made, met = distances(shape, sql, universe, relation, most=2, options={"strategy": strategy})
    assert met.steps >= made.reach.cube_sensitivity * (1 - 2**-11)
    assert made.reach.cube_sensitivity < 2**60


@pytest.mark.parametrize("dtype", [object, pd.StringDtype("python", na_value=np.nan)], ids=["object", "str"])
def test_one_row_does_not_rename_the_texts_of_others(dtype: Any):
    """Rows with the text '\\ud800' (quotes and backslash) beside one row with the lone surrogate U+D800: pandas' hash
    table takes the one for the other."""
    shape = Shape({"s": dtype}, {"types": {"s": "text"}} if dtype is object else {})
    universe: list[Row] = [("'\\ud800'",), ("\ud800",)]
    for sql in ("SELECT COUNT(*) FROM t WHERE s = '\\ud800'", "SELECT COUNT(*) FROM t WHERE s < 'a'"):
        distances(shape, sql.replace("= '", "= '''").replace("0'", "0'''"), universe, U, most=3)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_texts_that_look_alike_stay_apart(dtype: Any):
    texts = ["a", "a\0", "a\0b", "A", "a ", "é", "e\u0301", "", "\0"]
    shape = Shape({"s": dtype})
    categories = {"keys": {"s": texts}}
    schema = Shape({"s": "str"}).schema(**categories)
    made = checks.calibrated(schema, "SELECT s, COUNT(*) FROM t GROUP BY s", U)
    for order in (texts, texts[::-1]):
        exact = checks.run_exactly(made, schema, shape.frame([(text,) for text in order]))
        assert set(checks.cells_of(made, exact).values()) == {(1,)}


def test_the_worked_table_of_the_design():
    """COUNT 1 and 0, SUM M and D, AVG D: the first rows of the sensitivity table, in their own units."""
    real = {(rule.name, rule.relation): rule.real[0] for rule in checks.RULES}
    assert real["count", U] == 1
    assert real["count", B] == 0
    assert real["sum far from 0", U] == 30
    assert real["sum far from 0", B] == 10
    assert real["filtered sum far from 0", B] == 30
    assert real["counts by listed group", B] == 2


def test_unknown_groups_need_delta():
    with pytest.raises(UnknownGroups):
        checks.calibrated(checks.ROWS.schema(), "SELECT g, COUNT(*) FROM t GROUP BY g", U)
