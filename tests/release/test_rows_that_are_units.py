"""Where a person has one row in a group rows are people, and one count serves both."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import AllUnits, CountRows, CountUnits
from dpsql.release.release import Release
from tests.core.checks import B, Shape, U, calibrated
from tests.core.unit_checks import G1, R1, Question, people_stay_apart

ONE_EACH = {"max_groups": 3, "max_rows_per_group": 1}
SQL = "SELECT g, COUNT(DISTINCT pid), COUNT(*) FROM t GROUP BY g"


def planned(limits: dict[str, int], relation: str, **more: Any) -> Release:
    shape = Shape({"pid": "int64", "g": "str"}, {"unit": "pid", **limits, **more})
    return calibrated(shape.schema(), SQL, relation, delta=1e-6)


@pytest.mark.parametrize("limits", [ONE_EACH, {"max_rows": 3, "max_rows_per_group": 1}, R1], ids=str)
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("more", [{}, {"keys": {"g": ["a", "b"]}}], ids=str)
def test_one_count_serves_both(limits: dict[str, int], relation: str, more: dict[str, Any]) -> None:
    made = planned(limits, relation, **more)
    assert [part for part in made.exact.parts if part != AllUnits()] == [CountRows(None)]
    assert made.estimates[0].count == made.estimates[1].count


def test_people_of_several_rows_in_a_group_are_counted_apart() -> None:
    assert CountUnits(None) in planned({"max_rows": 3}, U).exact.parts


@pytest.mark.parametrize("limits", [ONE_EACH, G1 | {"max_rows_per_group": 1}, R1], ids=str)
def test_neighbours_stay_apart(limits: dict[str, int]) -> None:
    """By both relations."""
    many = "SELECT k, COUNT(DISTINCT pid), SUM(y) FROM e WHERE pid IS NOT NULL GROUP BY k"
    people_stay_apart(Question("SELECT COUNT(DISTINCT pid) FROM e WHERE pid > 0", limits), Question(many, limits))()


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_number_of_people(seed: int, nullable: bool) -> None:
    """People of several rows in a group, of which one is kept, and rows of nobody, which count for nothing."""
    draw = random.Random(seed)
    rows: list[tuple[Any, Any, Any]] = [
        (draw.choice([1, 2, 3, 4, 5] + [None] * nullable), draw.choice("abc"), draw.choice([1.0, None]))
        for _ in range(40)
    ]
    frame = pd.DataFrame(rows, columns=["pid", "g", "x"]).astype({"pid": "Int64"})
    table = dpsql.Table(frame, unit="pid", max_rows_per_group=1, max_groups=3, keys={"g": ["a", "b", "c"]})
    for tail, truth in (
        (" GROUP BY g", frame.groupby("g")["pid"].nunique()),
        (" WHERE x IS NOT NULL GROUP BY g", frame[frame["x"].notna()].groupby("g")["pid"].nunique()),
    ):
        answer = dpsql.query(table, f"SELECT g, COUNT(DISTINCT pid) AS n FROM t{tail}", epsilon=10**5).to_pandas()
        assert dict(zip(answer["g"], answer["n"], strict=True)) == {g: int(truth.get(g, 0)) for g in "abc"}
