"""Answers by cells are those without: of every kind of condition, over values at, beside and between its constants."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import Any

import numpy as np
import pytest

from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.release.design import choose
from dpsql.release.design.distinguished_cells import cells_of
from dpsql.release.release import Release
from tests.core.checks import B, Shape, U, calibrated, run_exactly

SHAPE = Shape(
    {"p": "Int64", "q": "int64", "x": "float64", "b": "boolean", "s": "str", "d": "datetime64[us]", "g": "str"},
    {
        "bounds": {"p": (0, 9), "q": (-2, 6), "x": (-1, 1)},
        "keys": {"g": ["a", "c"]},
        "nullable": {"q": False, "g": False},
    },
)
LISTS: tuple[list[Any], ...] = (
    [None, 0, 2, 3, 4, 5, 9, 12],
    [-2, 0, 1, 2, 3, 6, 7],
    [float("nan"), -1.0, -0.25, 0.0, -0.0, 0.25, 0.5, 1.0, 3.0, float("inf")],
    [None, True, False],
    [None, "m", "f", "", "M"],
    [None, dt.datetime(2020, 1, 1), dt.datetime(2020, 6, 1, 12), dt.datetime(2021, 1, 1)],
    ["a", "c"],
)


def rows(count: int = 400) -> list[tuple[Any, ...]]:
    rng = random.Random(7)
    return [tuple(rng.choice(each) for each in LISTS) for _ in range(count)]


QUERIES = (
    "COUNT_IF(q < 2), COUNT_IF(q >= 2 AND q < 4), COUNT_IF(q >= 4), COUNT(*)",
    "COUNT_IF(q < 2), COUNT_IF(q < 4), COUNT_IF(q <= 4), COUNT(*)",
    "COUNT_IF(p = 3), COUNT_IF(p IN (3, 4)), COUNT_IF(p <> 3), COUNT(p)",
    "COUNT_IF(p IN (3, NULL)), COUNT_IF(NOT p IN (3, NULL)), COUNT(*)",
    "COUNT_IF(x > 0.25), COUNT_IF(x <= 0.25), COUNT_IF(x = 0), COUNT(x)",
    "COUNT_IF(p > 2.5), COUNT_IF(p > 3), COUNT(*)",
    "COUNT_IF(3 < p), COUNT_IF(3 >= p)",
    "COUNT_IF(s = 'm'), COUNT_IF(s <> 'm'), COUNT_IF(s IN ('m', 'f')), COUNT(s)",
    "COUNT_IF(s < 'm'), COUNT_IF(s >= 'm')",
    "COUNT_IF(s LIKE 'm%'), COUNT_IF(NOT s LIKE 'm%'), COUNT(*)",
    "COUNT_IF(d < TIMESTAMP '2020-06-01'), COUNT_IF(d >= TIMESTAMP '2020-06-01'), COUNT(d)",
    "COUNT_IF(b), AVG(b), COUNT(*)",
    "COUNT_IF(b), COUNT_IF(NOT b), COUNT_IF(b IS NULL), COUNT_IF(b IS TRUE), COUNT_IF(b IS NOT TRUE)",
    "COUNT_IF(b AND q > 2), COUNT_IF(b OR q > 2), COUNT_IF(NOT (b AND q > 2)), COUNT(*)",
    "AVG(x), COUNT(*), COUNT(x), SUM(x)",
    "AVG(CAST(b AS INTEGER)), COUNT(*)",
    "SUM(CASE WHEN q < 2 THEN p ELSE 0 END), SUM(CASE WHEN q >= 2 THEN p ELSE 0 END), SUM(p)",
    "SUM(CASE WHEN q < 2 THEN q WHEN q < 4 THEN 1 ELSE -1 END), COUNT_IF(q < 2), COUNT_IF(q >= 4)",
    "AVG(CASE WHEN b THEN q END), AVG(CASE WHEN NOT b THEN q END), AVG(CASE WHEN b THEN q ELSE 0 END)",
    "SUM(CASE WHEN b THEN x ELSE q END), COUNT_IF(b), COUNT(*)",
    "SUM(CASE WHEN b THEN 2 ELSE 0.5 END), COUNT_IF(b), COUNT(*)",
    "AVG(x) FILTER (WHERE q > 2), AVG(x) FILTER (WHERE q <= 2), COUNT(*) FILTER (WHERE x IS NULL)",
    "SUM(CASE q WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 0 END), COUNT_IF(q = 1), COUNT_IF(q = 2)",
    "SUM(NULLIF(p, 3)), COUNT(NULLIF(p, 3)), COUNT(*)",
    "SUM(COALESCE(p, 1)), COUNT(p), COUNT(*)",
    "COUNT_IF(p / q > 1), COUNT_IF(NOT p / q > 1), COUNT(*)",
    "SUM(q) FILTER (WHERE p * 2 > 5), SUM(q) FILTER (WHERE p * 2 <= 5)",
    "COUNT(CASE WHEN p > 2 THEN CASE WHEN x > 0 THEN s END END), COUNT_IF(p > 2), COUNT(*)",
)


def answers(made: Release) -> np.ndarray[Any, Any]:
    schema = SHAPE.schema()
    released = made.privatise(run_exactly(made, schema, SHAPE.frame(rows())))
    from dpsql.release.output.estimate import estimate

    found = [estimate(each, released.values) for each in made.estimates]
    return np.array([np.where(each.where_valid(), each.values, np.nan) for each in found], dtype=float)


@pytest.mark.parametrize(("asked", "by"), list(itertools.product(QUERIES, ["", "g"])))
def test_the_answer_is_the_same(asked: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = f"SELECT {by}{', ' * bool(by)}{asked} FROM t" + f" GROUP BY {by}" * bool(by)
    made = calibrated(SHAPE.schema(), sql, U, epsilon=10**6)
    monkeypatch.setattr(choose, "_WORTH", -100.0)  # whether it is better or not
    forced = calibrated(SHAPE.schema(), sql, U, epsilon=10**6)
    monkeypatch.setattr(choose, "CANDIDATES", [])
    plain = calibrated(SHAPE.schema(), sql, U, epsilon=10**6)
    assert isinstance(forced.noise, ClassLaplace) <= bool(cells_of(forced.analysis))
    for each in (made, forced):
        assert np.allclose(answers(each), answers(plain), rtol=1e-4, atol=2e-3)


def test_most_of_these_are_asked_by_cells() -> None:
    made = [calibrated(SHAPE.schema(), f"SELECT {asked} FROM t", U) for asked in QUERIES]
    assert sum(bool(cells_of(each.analysis)) for each in made) >= len(QUERIES) - 4


def test_cells_that_nobody_asks_for_are_the_rest() -> None:
    made = calibrated(SHAPE.schema(), "SELECT COUNT_IF(q < 2), COUNT_IF(q >= 4) FROM t", U)
    cells = cells_of(made.analysis)
    assert [cell.condition is None for cell in cells].count(True) == 1
    assert len(made.coordinates) == 2


def test_too_many_alternatives_are_left_to_other_designs() -> None:
    asked = ", ".join(f"COUNT_IF({column} > {place})" for column in ("p", "q", "x") for place in range(6))
    made = calibrated(SHAPE.schema(), f"SELECT {asked} FROM t", U)
    assert not cells_of(made.analysis)


def test_where_the_number_of_rows_is_public_one_cell_follows_from_the_other() -> None:
    shape = Shape({"b": "bool", "q": "int64"}, {"nullable": {"b": False, "q": False}, "bounds": {"q": (0, 9)}})
    for asked in ("COUNT_IF(b), AVG(b)", "AVG(q) FILTER (WHERE b), COUNT_IF(NOT b), COUNT(*)"):
        made = calibrated(shape.schema(), f"SELECT {asked} FROM t", B)
        assert isinstance(made.noise, ClassLaplace)
        assert sum(not each.noisy for each in made.coordinates) == 1
        frame = shape.frame([(True, 3), (False, 5), (True, 4), (False, 9)])
        exact = run_exactly(made, shape.schema(), frame)
        assert exact.parts[:, 0].max() >= 4
    alone = calibrated(shape.schema(), "SELECT COUNT_IF(b), AVG(b) FROM t", B)
    assert len(alone.shares[0].places) == 1
