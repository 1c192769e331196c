"""What planning derives once: designs and their reach for any law of noise; and nothing at all for a known text."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.sensitivity import extreme_points as vertices
from dpsql.core.sensitivity import norms as reach
from dpsql.core.unit import Neighbours
from dpsql.release import epsilon_shares as split
from dpsql.release.design import choose, coordinates, moves
from dpsql.release.design import distinguished_cells as told_apart
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema
from dpsql.session import prepare
from dpsql.sql.names.catalog import Catalog
from tests.core.checks import B, Shape, U

POOL = (
    "COUNT(*)", "COUNT(x)", "SUM(x)", "AVG(x)", "SUM(y)", "VAR_POP(x)", "COUNT_IF(x > 3)", "COUNT(DISTINCT d)",
    "CORR(y, x)", "SUM(x) FILTER (WHERE y > 1)", "SUM(CASE WHEN d = 1 THEN y END)", "COUNT(DISTINCT u)",
)  # fmt: skip
LIMITS: tuple[dict[str, Any], ...] = ({}, {"unit": "u", "max_rows": 4}, {"unit": "u", "max_groups": 2, "max_rows": 3})
SETTINGS = [
    (limits, relation, grouped) for limits, relation, grouped in itertools.product(LIMITS, (U, B), (False, True))
]


def schema(limits: dict[str, Any]) -> TableSchema:
    declared = {"bounds": {"x": (0, 10), "y": (-3, 10)}, "keys": {"k": [1, 2]}, **limits}
    return Shape(dict.fromkeys(("k", "d", "u"), "int64") | {"x": "float64", "y": "Float64"}, declared).schema()


def planned(limits: dict[str, Any], relation: str, sql: str, mechanism: str = "auto") -> Release:
    prepare._cache.clear()
    terms = prepare.Terms.of(1, 1e-6, None)
    catalog = Catalog({"t": schema(limits)})
    return prepare.prepare(sql, catalog, Neighbours.of(relation), terms, mechanism=mechanism).releases[0]


def questions(limits: dict[str, Any], *, grouped: bool, many: int = 6) -> list[str]:
    draw = random.Random(str((limits, grouped)))
    pool = [each for each in POOL if limits or each != "COUNT(DISTINCT u)"]
    found = []
    for _ in range(many):
        asked = draw.sample(pool, draw.randint(1, 4))
        found.append(f"SELECT {', '.join(['k'] * grouped + asked)} FROM t" + " GROUP BY k" * grouped)
    return found


@pytest.mark.parametrize(("limits", "relation", "grouped"), SETTINGS)
def test_a_coordinate_moves_as_far_by_itself_as_beside_others(
    limits: dict[str, Any], relation: str, grouped: bool
) -> None:
    for sql in questions(limits, grouped=grouped):
        made = planned(limits, relation, sql)
        if made.lattice.across is not None:  # moved by units, for all groups together
            continue
        terms = [each.terms for each in made.coordinates]
        change = reach.change_of(made.exact.parts, terms, made.analysis)
        alone = [reach.change_of(made.exact.parts, [each], made.analysis) for each in terms]
        assert tuple(each.sensitivity_of_each[0] for each in alone) == change.sensitivity_of_each, sql


@pytest.mark.parametrize(("limits", "relation", "grouped"), SETTINGS)
def test_what_is_remembered_changes_no_choice(
    limits: dict[str, Any], relation: str, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside planning in which nothing is kept from one law, or one design, to the next."""
    asked = questions(limits, grouped=grouped, many=4)
    made = [planned(limits, relation, sql) for sql in asked]
    for module in (choose, told_apart, moves, split):
        for name, held in vars(module).copy().items():
            if hasattr(held, "cache_info"):
                monkeypatch.setattr(module, name, held.__wrapped__)
    for sql, before in zip(asked, made, strict=True):
        after = planned(limits, relation, sql)
        assert (after.lattice, after.exact, after.law, after.shares) == (
            before.lattice,
            before.exact,
            before.law,
            before.shares,
        ), sql


def test_designs_are_made_once_for_both_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    honest = coordinates.Builder.build

    def build(self: Any) -> Any:
        built.append(self)
        return honest(self)

    monkeypatch.setattr(coordinates.Builder, "build", build)
    sql = "SELECT COUNT(*), AVG(x), SUM(y), COUNT_IF(x > 3) FROM t"
    planned({}, U, sql, "laplace")
    of_one = len(built)
    built.clear()
    assert planned({}, U, sql).choice is not None  # both laws were compared
    assert len(built) == of_one > 1


def test_a_known_text_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": np.arange(10), "s": ["a", "b"] * 5})
    table = dpsql.Table(frame, bounds={"x": (0, 10)}, keys={"s": ["a", "b"]})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(99))
    sql = "SELECT s, AVG(x), SUM(CASE WHEN x > 3 THEN x END) FROM t GROUP BY s"
    held.query(sql, epsilon=1)

    def planned_again(*_: Any, **__: Any) -> None:
        raise AssertionError("a known text is planned again")

    for module, name in ((choose, "lower"), (choose, "error_of"), (reach, "change_of"), (moves, "change_of")):
        monkeypatch.setattr(module, name, planned_again)
    monkeypatch.setattr(prepare, "_prepared", planned_again)
    held.query(sql, epsilon=1, fresh=True)


def test_sets_that_overlap_are_joined() -> None:
    """Beside joining two that overlap for as long as there are any."""
    draw = random.Random(39)
    for _ in range(300):
        sets = [set(draw.sample(range(12), draw.randint(1, 3))) for _ in range(draw.randint(1, 8))]
        expected = [(frozenset(each), frozenset({place})) for place, each in enumerate(sets)]
        while True:
            pairs = itertools.combinations(range(len(expected)), 2)
            overlap = next(((a, b) for a, b in pairs if expected[a][0] & expected[b][0]), None)
            if overlap is None:
                break
            a, b = overlap
            expected[a] = (expected[a][0] | expected[b][0], expected[a][1] | expected[b][1])
            del expected[b]
        found = [(frozenset(places), frozenset(members)) for places, members in vertices._linked(sets)]
        assert set(found) == set(expected)
