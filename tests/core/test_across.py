"""Noise for all public groups together: how far a unit moves all groups, beside all that it can do in small tables, the
law, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.core.exact import AllUnits, CountRows, CountUnits, ExactPlan, UnitTotal, of_units
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.group_vectors import (
    ALL,
    EACH,
    EITHER,
    GroupVectorLaplace,
    dimension_across,
    reach_across,
    sensitivity_across,
)
from dpsql.core.mechanisms.noise import CubeLaplace, GroupVectorSensitivity, Reach
from dpsql.core.sensitivity.norms import change_of, never_negative
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import ONE_ROW, ContributionBound, Neighbours
from dpsql.errors import InternalError
from dpsql.plan.expressions import Column, Expr, Fact
from dpsql.plan.nodes import Filter, Scan, Source
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.intervals import Interval
from tests.core import test_reach as small
from tests.core.test_reach import B, Case, Row, Steps, U, X, grid

F = Fraction
ONE = F(1)
K = Column("k", Type.INTEGER, Fact(Interval(0, 1), nullable=False, whole=True))
FLAG = Column("b", Type.BOOLEAN, Fact(Interval(0, 1), nullable=False))
PEOPLE = AllUnits()
ROWS = CountRows(None)
BOUNDS = [
    ContributionBound(2, 2, 1),
    ContributionBound(1, 1, 1),
    ContributionBound(3, 2, 2),
    ContributionBound(2, 1, 2),
]
CASES = {
    "a count": Case((ROWS,), (((0, 1),),), "x"),
    "around people": Case((ROWS, PEOPLE), (((0, 2), (1, -1)), ((1, 1),)), "x"),
    "around twice the people": Case((ROWS, PEOPLE), (((0, 2), (1, -2)), ((1, 2),)), "x"),
    "more than people": Case((ROWS, PEOPLE), (((0, 1), (1, 3)),), "x"),
    "some rows": Case((CountRows(X), PEOPLE), (((0, 2), (1, -1)), ((1, 1),)), "x"),
    "people of groups": Case((CountUnits(None), PEOPLE), (((0, 2), (1, -1)), ((1, 1),)), "x"),
    "some people": Case((CountUnits(X), ROWS, PEOPLE), (((0, 2), (2, -1)), ((1, 1), (2, -1))), "x"),
    "a sum": Case((grid(X, -1, 2), PEOPLE), (((0, 2), (1, -1)), ((1, 3),)), "x"),
    "a centred sum": Case((ROWS, grid(X, 0, 2), PEOPLE), (((0, 4), (2, -2)), ((1, 2), (0, -2)), ((2, 2),)), "x"),
    "totals": Case((UnitTotal(grid(X, -1, 2), -1, 3), PEOPLE), (((0, 1), (1, -1)), ((1, 2),)), "x"),
}


def scan(*columns: Column) -> Source:
    schema = TableSchema("t", tuple(ColumnSchema(each.name, each.type, nullable=False) for each in columns))
    return Scan(schema, "t")


def plan_of(case: Case, key: GroupKey | None = None, source: Source | None = None) -> ExactPlan:
    own = key or GroupKey(K, (0, 1))
    return ExactPlan(source or scan(K), (own,), every_cell=True, parts=case.parts)


@dataclass(frozen=True)
class Moved:
    """What a unit comes to in both groups, each coordinate."""

    groups: tuple[Steps, Steps]


def all_units(case: Case) -> Iterator[Moved]:
    """Every unit within the limits, in two groups; none is the first."""
    zero: Steps = (0,) * len(case.coordinates)
    yield Moved((zero, zero))
    bound = case.bound
    rows = case.rows()
    some = [list(each) for n in range(bound.linf + 1) for each in itertools.combinations_with_replacement(rows, n)]
    for first, second in itertools.product(some, some):
        if len(first) + len(second) > bound.rows or bool(first) + bool(second) > bound.most_groups:
            continue
        if first or second:
            yield Moved((_steps(case, first), _steps(case, second)))


def _steps(case: Case, rows: list[Row]) -> Steps:
    """Of a unit that has these rows in a group, and is somewhere."""
    parts = [_added(part, rows) for part in case.parts]
    return tuple(sum(factor * parts[part] for part, factor in terms) for terms in case.coordinates)


def _added(part: Any, rows: list[Row]) -> int:
    if isinstance(part, AllUnits):
        return 1
    if of_units(part):
        return small.added_by_unit(part, rows) if rows else 0
    return sum(small.added(part, row, frozenset()) for row in rows)


def farthest(case: Case, neighbours: Neighbours) -> int:
    """The largest change of any coordinate in any group, over all units that come, go or change."""
    units = list(dict.fromkeys(all_units(case)))
    pairs = itertools.product(units, units if neighbours is B else units[:1])
    return max(
        abs(x - y)
        for one, other in pairs
        for mine, theirs in zip(one.groups, other.groups, strict=True)
        for x, y in zip(mine, theirs, strict=True)
    )


def derived(case: Case, neighbours: Neighbours) -> GroupVectorSensitivity:
    found = reach_across(plan_of(case), case.coordinates, case.analysis(neighbours, grouped=True)).across
    assert found is not None
    return found


@pytest.mark.parametrize("neighbours", [U, B])
@pytest.mark.parametrize("name", CASES)
def test_no_unit_moves_any_group_further_and_some_do_as_far(name: str, neighbours: Neighbours) -> None:
    for bound in BOUNDS:
        case = replace(CASES[name], bound=bound)
        attained = farthest(case, neighbours)
        if name in ("some people", "totals"):  # a unit may have more rows than are kept, and ends that none attains
            assert derived(case, neighbours).largest >= attained
        else:
            assert derived(case, neighbours).largest == attained, (name, bound)


def test_other_norms_of_its_reach_are_bounds_too() -> None:
    """So that a law which is not for all groups would be paid for by more, not by less."""
    case = replace(CASES["around people"], bound=BOUNDS[0])
    reach = reach_across(plan_of(case), case.coordinates, case.analysis(U, grouped=True))
    for unit in all_units(case):
        assert sum(max(map(abs, each)) for each in unit.groups) <= reach.cube_sensitivity
        assert sum(abs(step) for each in unit.groups for step in each) <= (reach.l1 or 0)
        assert sum(step**2 for each in unit.groups for step in each) <= reach.l2_squared
    assert reach.groups == 2


def test_what_is_one_number_for_all_groups_has_one_draw() -> None:
    assert derived(CASES["around people"], U).kinds == (EACH, ALL)
    assert derived(CASES["a count"], U).kinds == (EACH,)


def test_a_number_of_all_groups_is_nothing_of_a_group() -> None:
    case = CASES["around people"]
    for terms in case.coordinates:
        with pytest.raises(InternalError):
            change_of(case.parts, (terms,), case.analysis(U, grouped=True))
        assert not never_negative(case.parts, terms, case.analysis(U, grouped=True))


def test_groups_that_nobody_knows_have_no_noise_together() -> None:
    case = CASES["a count"]
    analysis = case.analysis(U, grouped=True)
    plan = plan_of(case)
    for wrong in (replace(plan, every_cell=False), replace(plan, keys=())):
        with pytest.raises(InternalError):
            reach_across(wrong, case.coordinates, analysis)
    for other in (replace(analysis, grouped=False), replace(analysis, private=False)):
        with pytest.raises(InternalError):
            reach_across(plan, case.coordinates, other)


# Two groups of which one follows from the other


def rows_alone(neighbours: Neighbours = B) -> Analysis:
    return replace(CASES["a count"].analysis(neighbours, grouped=True), bounds=_row_bounds())


def _row_bounds() -> Any:
    bounds = CASES["a count"].analysis(B, grouped=True).bounds
    return replace(bounds, rows=ONE_ROW, units=ONE_ROW, enforced=False, declared=False)


def kinds(
    key: GroupKey, analysis: Analysis | None = None, case: Case = CASES["a count"], **plan: Any
) -> tuple[str, ...]:
    asked = replace(plan_of(case, key, scan(FLAG)), **plan)
    found = reach_across(asked, case.coordinates, analysis or rows_alone()).across
    assert found is not None
    return found.kinds


def nullable(expr: Column) -> Expr:
    return replace(expr, fact=replace(expr.fact, nullable=True))


BOTH = (False, True)
FOLLOWS = GroupKey(FLAG, BOTH)
LISTED = Column("h", Type.TEXT, Fact())


def test_one_group_follows_where_every_row_is_in_one_of_two() -> None:
    assert kinds(GroupKey(FLAG, BOTH)) == (EITHER,)
    assert kinds(GroupKey(LISTED, ("a", None), listed=True)) == (EITHER,)


UNSURE = [
    GroupKey(nullable(FLAG), BOTH),
    GroupKey(nullable(FLAG), (False, True, None)),
    GroupKey(FLAG, (True,)),
    GroupKey(LISTED, ("a", "b"), listed=True),
    GroupKey(LISTED, ("a", "b", None), listed=True),
    GroupKey(K, (0, 1)),
    GroupKey(LISTED, ("a", None)),
]


@pytest.mark.parametrize("key", UNSURE, ids=str)
def test_it_does_not_where_a_row_may_be_in_neither(key: GroupKey) -> None:
    assert kinds(key) == (EACH,)


def test_it_does_not_where_the_number_of_rows_is_private() -> None:
    key = GroupKey(FLAG, BOTH)
    assert kinds(key, rows_alone(U)) == (EACH,)
    assert kinds(key, case=replace(CASES["a sum"], parts=(grid(X, 0, 1),), coordinates=(((0, 1),),))) == (EACH,)
    assert kinds(key, source=Filter(scan(FLAG), FLAG)) == (EACH,)
    assert kinds(key, limits=ONE_ROW) == (EACH,)
    assert kinds(key, groups=1) == (EACH,)
    two = replace(rows_alone(), bounds=replace(_row_bounds(), rows=ContributionBound(2, 2, 1)))
    assert kinds(key, two) == (EACH,)
    assert kinds(key, keys=(GroupKey(FLAG, BOTH), GroupKey(K, (0,)))) == (EACH,)


def test_the_sensitivity_of_each_is_that_of_all_groups() -> None:
    case = CASES["around people"]
    analysis = case.analysis(U, grouped=True)
    each, everyone = (sensitivity_across(plan_of(case), terms, analysis) for terms in case.coordinates)
    assert (each.l1, each.linf) == (2, 1)
    assert each.l2 == pytest.approx(math.sqrt(2))
    assert (everyone.l1, everyone.linf) == (2, 1)  # the same number in both


# The law


def test_its_scale_is_one_for_all() -> None:
    test_its_scale_is_what_the_reach_asks_for((EACH, ALL))


def law(kinds: tuple[str, ...], cells: int, epsilon: F = ONE, largest: int = 1) -> tuple[GroupVectorLaplace, Reach]:
    reach = Reach(
        cells * largest, F(cells * largest**2), len(kinds), across=GroupVectorSensitivity(largest, cells, kinds)
    )
    return GroupVectorLaplace.calibrate(reach, epsilon), reach


@pytest.mark.parametrize("kinds", [(EACH,), (EACH, ALL), (EACH, EACH, ALL), (ALL, EACH)])
def test_its_scale_is_what_the_reach_asks_for(kinds: tuple[str, ...]) -> None:
    for epsilon, largest in ((F(1), 3), (F(1, 3), 8)):
        noise, reach = law(kinds, 4, epsilon, largest)
        assert noise.exact_scale == largest / epsilon
        assert noise.dimension == dimension_across(reach) == sum(4 if each == EACH else 1 for each in kinds)
        assert noise.loss(reach).epsilon == epsilon
        further = replace(reach, across=replace(reach.across, largest=largest + 1))  # type: ignore[type-var]
        assert noise.loss(further).epsilon > epsilon


def test_it_is_for_a_reach_of_its_own_coordinates() -> None:
    noise, reach = law((EACH, ALL), 3)
    for other in (replace(reach, across=None), law((ALL, ALL), 3)[1], law((EACH,), 3)[1]):
        with pytest.raises(ValueError, match="other coordinates"):
            noise.loss(other)
    with pytest.raises(ValueError, match="not known"):
        GroupVectorLaplace.calibrate(replace(reach, across=None), F(1))


def test_a_draw_is_one_point_of_the_cube_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[F, int, int]] = []

    def drawn(scale: F, dimension: int, size: int) -> Any:
        asked.append((scale, dimension, size))
        return np.arange(1, dimension + 1)[:, np.newaxis]

    monkeypatch.setattr(samplers, "cube_laplace", drawn)
    noise, _ = law((EACH, ALL, EACH), 3, F(1, 2))
    assert noise.draw(3).tolist() == [[1, 2, 3], [4, 4, 4], [5, 6, 7]]
    either, _ = law((EITHER, EACH), 2)
    assert either.draw(2).tolist() == [[1, -1], [2, 3]]
    assert asked == [(F(2), 7, 1), (F(1), 3, 1)]


def test_no_groups_have_no_noise() -> None:
    assert law((EACH, ALL), 3)[0].draw(0).shape == (2, 0)


def test_two_groups_are_two() -> None:
    noise, _ = law((EITHER,), 2)
    assert noise.dimension == 1
    with pytest.raises(ValueError, match="shape"):
        noise.draw(3)


def test_noise_is_for_as_many_groups_as_it_was_calibrated_for() -> None:
    for cells in (2, 4):
        with pytest.raises(ValueError, match="another number of groups"):
            law((EACH, ALL), 3)[0].draw(cells)


def test_one_number_has_the_law_of_one_count() -> None:
    noise, _ = law((EITHER,), 2)
    assert noise.spread == CubeLaplace(F(1), 1).spread
    assert noise.upper_tail(3) == CubeLaplace(F(1), 1).upper_tail(3)
    assert "two_groups" in noise.name


def test_each_group_has_a_draw_of_its_own() -> None:
    drawn = law((EACH, ALL), 3, F(1, 2**20))[0].draw(3)
    assert len(set(drawn[0].tolist())) == 3
    assert len(set(drawn[1].tolist())) == 1


def test_equal_chances_follow_the_largest_number() -> None:
    """Of (people, two counts): points with one largest coordinate are equally likely, and a step is worth epsilon."""
    noise, _ = law((EACH, ALL), 2, F(1))
    points = np.concatenate([noise.draw(2)[:, :, np.newaxis] for _ in range(20_000)], axis=2)
    numbers = np.stack([points[0, 0], points[0, 1], points[1, 0]])
    assert (points[1, 0] == points[1, 1]).all()
    largest = np.abs(numbers).max(axis=0)
    a = math.exp(-1)
    weights = np.array([(2 * r + 1) ** 3 - (2 * r - 1) ** 3 if r else 1 for r in range(40)]) * a ** np.arange(40)
    for r in range(6):
        assert np.mean(largest == r) == pytest.approx(weights[r] / weights.sum(), abs=0.012)
    assert np.var(numbers, axis=1) == pytest.approx([20 / 3] * 3, rel=0.1)
