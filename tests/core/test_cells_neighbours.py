"""What neighbours can differ in where a query is answered by cells: all small tables, and people with limits."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.errors import DPSQLError
from tests.core import cells_lies
from tests.core.checks import B, Shape, U, calibrated, distances
from tests.core.unit_checks import G2, G22, R1, R3, R4G3C2, Question, asking_of, check_question
from tests.lies import Check, Lie, assert_caught

SHAPE = Shape(
    {"p": "Int64", "q": "int64", "b": "boolean", "g": "str"},
    {"bounds": {"p": (0, 4), "q": (-1, 2)}, "keys": {"g": ["a", None]}, "nullable": {"q": False}},
)
ROWS: list[tuple[Any, ...]] = [
    (None, 0, None, "a"),
    (0, -1, True, "a"),
    (2, 2, False, None),
    (4, 5, True, None),
    (9, 1, None, "zz"),
    (3, 2, False, "a"),
]
QUERIES = (
    "SELECT COUNT_IF(q < 0) AS a, COUNT_IF(q >= 2) AS c, COUNT(*) AS n FROM t",
    "SELECT SUM(CASE WHEN p < 2 THEN 1 ELSE 0 END) AS a, SUM(CASE WHEN p >= 2 AND p < 4 THEN 1 ELSE 0 END) AS c FROM t",
    "SELECT AVG(q) FILTER (WHERE b) AS a, AVG(q) FILTER (WHERE NOT b) AS c FROM t",
    "SELECT AVG(p), COUNT(*) FROM t",
    "SELECT COUNT_IF(b), AVG(b), COUNT(*) FROM t",
    "SELECT g, COUNT_IF(p > 2) AS a, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT g, AVG(p) FILTER (WHERE q > 0) AS a, SUM(CASE WHEN q <= 0 THEN p END) AS c FROM t GROUP BY g",
    "SELECT g, COUNT_IF(q = 2) AS a, COUNT(*) FILTER (WHERE q IN (1, 2)) AS c FROM t WHERE p > 0 GROUP BY g",
)


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("relation", [U, B])
def test_no_neighbour_is_further_than_its_reach(sql: str, relation: str) -> None:
    made, met = distances(SHAPE, sql, ROWS, relation, most=2)
    if relation == U:
        assert isinstance(made.noise, ClassLaplace), "another design is thought better"
        assert met.steps == made.reach.cube_sensitivity


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("relation", [U, B])
def test_no_neighbour_is_further_for_gaussian_noise(sql: str, relation: str) -> None:
    distances(SHAPE, sql, ROWS, relation, most=2, options={"mechanism": "gaussian", "delta": 1e-6})


OF_PEOPLE = (
    "SELECT AVG(y) FILTER (WHERE y > 0) AS a, AVG(y) FILTER (WHERE y <= 0) AS c FROM e",
    "SELECT AVG(y), COUNT(*) FROM e",
)
EVERY_KEY = "FROM e JOIN pub ON e.k = pub.k"
QUESTIONS = [Question(sql, limits) for sql in OF_PEOPLE for limits in (R1, R3, G22, R4G3C2)]
QUESTIONS += [
    Question("SELECT COUNT_IF(y > 0) AS a, COUNT_IF(y < 0) AS c, COUNT(*) AS n FROM e", R1),
    Question("SELECT AVG(z) FILTER (WHERE z > 1) AS a, COUNT(z) FROM i", R3),
    Question("SELECT AVG(x) FILTER (WHERE g = 'x') AS a, COUNT(x) FROM t"),
    Question(f"SELECT AVG(y) FILTER (WHERE pub.w > 1) AS a, AVG(y) AS c {EVERY_KEY}", R3),
    Question(
        "SELECT AVG(y) AS a, COUNT_IF(y > 0) AS c FROM (SELECT pid, y FROM e UNION ALL SELECT pid, x AS y FROM p)", R3
    ),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_people_with_limits_are_no_further(asked: Question) -> None:
    """By rows that are kept: those of a unit are chosen before they have cells."""
    check_question(asked, 5, databases=6)


def test_people_are_asked_by_cells() -> None:
    """So the test above is about them."""
    found = [asking_of(asked, U).made.noise for asked in QUESTIONS]
    assert sum(isinstance(noise, ClassLaplace) for noise in found) >= 8
    assert isinstance(asking_of(Question("SELECT k, AVG(y), COUNT(*) FROM e GROUP BY k", G2), U).made.noise, object)


def test_groups_that_a_count_chooses_are_not_asked_by_cells() -> None:
    """The count that decides is one coordinate of its own."""
    shape = Shape({"q": "int64", "h": "str"}, {"nullable": {"q": False}})
    made = calibrated(shape.schema(), "SELECT h, COUNT_IF(q > 0), COUNT(*) FROM t GROUP BY h", U, delta=1e-6)
    assert made.hides
    assert not made.lattice.classes


def test_levels_are_not_asked_by_cells() -> None:
    made = calibrated(SHAPE.schema(), "SELECT g, COUNT_IF(q > 0), COUNT(*) FROM t GROUP BY ROLLUP (g)", U)
    assert not made.lattice.classes


@pytest.mark.parametrize(("lie", "check"), cells_lies.LIES, ids=lambda each: each.__name__)
def test_lies_about_cells_are_caught(lie: Lie, check: Check) -> None:
    assert_caught(lie, check)


def test_noise_that_is_too_small_is_refused() -> None:
    """Before anything is charged."""

    def asked() -> None:
        calibrated(SHAPE.schema(), QUERIES[0], U)

    assert_caught(cells_lies.halve_the_noise_of_classes, asked, by=(DPSQLError, ValueError))  # type: ignore[arg-type]


def test_a_cell_that_follows_from_a_public_number_moves_no_further() -> None:
    """Bounded neighbours: the number of rows has no noise, and the one count that has moves by 1."""
    shape = Shape({"b": "bool", "q": "int64"}, {"nullable": {"b": False, "q": False}, "bounds": {"q": (0, 3)}})
    rows = [(True, 0), (False, 3), (True, 5), (False, 1)]
    for asked in (
        "COUNT_IF(b), AVG(b)",
        "AVG(q) FILTER (WHERE b), COUNT_IF(NOT b), COUNT(*)",
        "COUNT_IF(q < 2), COUNT(*)",
    ):
        made, met = distances(shape, f"SELECT {asked} FROM t", rows, B, most=3)
        assert made.analysis.public_count
        assert met.steps == made.reach.cube_sensitivity
