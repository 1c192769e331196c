"""Keys that stand together in public rows: neighbours, whole people at a time, and a lie about them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsql.core.exact import ExactPlan
from dpsql.executors.correlated_keys import PublicKeyRows
from dpsql.executors.pandas import executor as pandas
from dpsql.plan.expressions import Column, Fact
from dpsql.plan.query import CorrelatedKey, GroupKey, axes_of, number_of_cells
from dpsql.schema.columns import Type
from tests.core import unit_checks
from tests.core.unit_checks import G2, G22, R2, R3G2, Question
from tests.lies import Patch, assert_caught

PUB, TAGS = "FROM e JOIN pub ON e.k = pub.k", "FROM e JOIN tags ON e.k = tags.k"
BOTH = f"{PUB} JOIN tags ON pub.k = tags.k"
QUESTIONS = (
    Question(f"SELECT name, w, COUNT(*), SUM(y) {PUB} GROUP BY name, w", R2),
    Question(f"SELECT tags.k, tag, COUNT(DISTINCT pid) {TAGS} GROUP BY tags.k, tag", G22),
    Question(f"SELECT name, y > 0, w, AVG(y) {PUB} WHERE w < 2 OR y > 1 GROUP BY name, y > 0, w", R3G2),
    Question(f"SELECT name, tag, w, COUNT(*) {BOTH} GROUP BY name, tag, w", R2),
    Question(f"SELECT e.k, tag, COUNT(*) FILTER (WHERE y > 0), SUM(y) {TAGS} GROUP BY e.k, tag", G2),
    Question("SELECT name, w, COUNT(*) FROM e LEFT JOIN pub ON e.k = pub.k GROUP BY name, w", R3G2),
    Question(
        f"SELECT name, w, COUNT(*), SUM(CLAMP(s, 0, 4)) FROM (SELECT pid, name, w, SUM(y) AS s {PUB} GROUP BY pid, "
        "name, w) GROUP BY name, w",
        G22,
    ),
)
SEED = 20_261_127


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_neighbours(asked: Question):
    unit_checks.check_question(asked, SEED, databases=2)


FROMS = {  # and which keys there are
    "e JOIN pub AS a ON e.k = a.k": ("name", "a.k", "w", "e.k"),
    "e LEFT JOIN pub AS a ON e.k = a.k": ("name", "a.k", "w"),
    "e JOIN tags AS a ON e.k = a.k": ("tag", "a.k", "e.k"),
    "e JOIN pub AS a ON e.k = a.k LEFT JOIN tags AS b ON a.k = b.k": ("name", "tag", "w", "b.k"),
    "e LEFT JOIN pub AS a ON e.k = a.k LEFT JOIN tags AS b ON a.k = b.k": ("name", "tag", "w"),
    "e LEFT JOIN tags AS a ON e.k = a.k LEFT JOIN pub AS b ON e.y = b.k": ("name", "tag", "w", "b.k"),
    "e JOIN (SELECT k % 3 AS m, MAX(name) AS n, COUNT(*) AS c FROM pub GROUP BY m) AS a ON e.k = a.m": ("n", "m", "c"),
    (
        "e JOIN (SELECT k, name, c FROM pub FULL JOIN (SELECT k, COUNT(*) AS c FROM tags GROUP BY k) AS b USING (k)) "
        "AS a ON e.k = a.k"
    ): ("name", "c", "a.k"),
    "e SEMI JOIN tags AS a ON a.k = e.k AND e.y = a.k": ("e.k", "e.y"),
    "(SELECT pid, name, w, SUM(y) AS y FROM e JOIN pub ON e.k = pub.k GROUP BY pid, name, w) AS e": ("name", "w"),
}
CONDITIONS = ("TRUE", "y > 0", "name = 'n1'", "w < 2 OR y > 1", "tag IS NULL", "a.k > 0", "w IS NOT NULL", "e.k < 2")


def statement(rng: random.Random) -> str:
    source, names = rng.choice([*FROMS.items()])
    chosen = rng.sample(names, rng.randint(2, len(names)))
    keys = [f"COALESCE({each}, {each})" if rng.random() < 0.1 else each for each in chosen]
    keys += ["y > 0"] if rng.random() < 0.3 else []
    known = [
        each
        for each in CONDITIONS
        if all(word not in each or word in names for word in ("name", "w ", "tag", "a.k", "e.k"))
    ]
    where = rng.choice(known) if "w" in names else rng.choice(["TRUE", "y > 0"])
    asked = rng.choice(["COUNT(*)", "COUNT(*), SUM(CLAMP(y, 0, 3))", "COUNT(DISTINCT pid)", "AVG(CLAMP(y, -1, 2))"])
    return f"SELECT {', '.join(keys)}, {asked} FROM {source} WHERE {where} GROUP BY {', '.join(keys)}"


def test_neighbours_of_random_statements():
    unit_checks.check_statements(statement, SEED, 5, databases=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 11))
def test_neighbours_of_many_random_statements(part: int):
    unit_checks.check_statements(statement, SEED + part, 60, databases=3)


def test_there_are_no_more_groups_of_a_person_than_rows():
    """A person is in as many groups as there are public rows at most, whatever its limit is."""
    asked = Question(f"SELECT name, w, COUNT(*) {PUB} GROUP BY name, w", {"max_groups": 9, "max_rows_per_group": 1})
    asking = unit_checks.Asking(asked.world, asked.sql, unit_checks.U, {})
    assert asking.made.query.plan.public_cells == 4
    assert asking.made.analysis.bounds.rows.groups == 4


# How rows are found.


def keys(rows: list[tuple[int, ...]], sizes: list[int]) -> tuple[GroupKey, ...]:
    """Keys with so many values each, in these rows."""
    columns = [Column(f"c{place}", Type.INTEGER, Fact()) for place in range(len(sizes))]
    places = zip(*rows, strict=True)
    return tuple(
        GroupKey(column, tuple(range(size)), together=CorrelatedKey(0, own))
        for column, size, own in zip(columns, sizes, places, strict=True)
    )


@pytest.mark.parametrize("sizes", [[2, 3], [5, 1, 4], [70_000, 70_000], [10**5] * 5, [3000] * 12], ids=str)
def test_each_row_is_found_and_no_other(sizes: list[int]):
    """However many numbers there would be of all combinations."""
    rng = random.Random(SEED)
    rows = sorted({tuple(rng.randrange(min(size, 40)) for size in sizes) for _ in range(50)} | {(0,) * len(sizes)})
    made = keys(rows, sizes)
    (axis,) = axes_of(made)
    assert (axis.keys, axis.cells, number_of_cells(made)) == (tuple(range(len(sizes))), len(rows), len(rows))
    found = PublicKeyRows(axis, made)
    assert (len(found.steps) > 1) == (np.prod([float(size) for size in sizes]) >= 2.0**62)
    asked = [*rows, *(tuple(rng.randrange(-1, min(size, 40)) for size in sizes) for _ in range(2_000))]
    expected = [rows.index(each) if each in set(rows) else -1 for each in asked]
    assert found([np.array(column) for column in zip(*asked, strict=True)]).tolist() == expected


# A lie.


def show_those_that_occur(patch: Patch) -> None:
    """The rows are people's."""
    honest = pandas.PandasExecutor.execute

    def execute(self: Any, exact: ExactPlan, *key: Any) -> Any:
        return honest(self, replace(exact, every_cell=all(each.together is None for each in exact.keys)), *key)

    patch.setattr(pandas.PandasExecutor, "execute", execute)


def test_a_lie_is_caught():
    assert_caught(show_those_that_occur, unit_checks.people_stay_apart(QUESTIONS[0]))
