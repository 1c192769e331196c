"""The reach of integer combinations of parts, beside all that a unit can do in small tables.

Rows are gone through one by one, every value of small ranges and NULL; so are the rows that a unit has in each group,
under its limits, before and after. What a row adds is computed here from the row itself.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from dpsql.core.exact import (
    SHARE_STEPS,
    CountDistinct,
    CountRows,
    CountUnits,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    Part,
    UnitMean,
    UnitTotal,
    of_units,
)
from dpsql.core.sensitivity import extreme_points as vertices
from dpsql.core.sensitivity import norms as reach
from dpsql.core.sensitivity.contribution_bounds import Bounds
from dpsql.core.sensitivity.norms import Change, change_of, merged, reach_of_level
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import ONE_ROW, ContributionBound, Neighbours
from dpsql.plan.expressions import Column, Expr, Fact, Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

SEED = 22_112_026
Steps = tuple[int, ...]
Row = dict[str, int | None]
U, B = Neighbours.UNBOUNDED, Neighbours.BOUNDED


def column(name: str, *, nullable: bool = True) -> Column:
    return Column(name, Type.INTEGER, Fact(Interval(0, 2), nullable, whole=True))


def guarded(value: Expr, other: Expr) -> Expr:
    """The value where the other one is not NULL, as pairs of values read it."""
    absent = call(FUNCTIONS["is_null"], other)
    assert absent is not None
    present = call(FUNCTIONS["not"], absent)
    assert present is not None
    made = call(FUNCTIONS["case"], present, value, Literal(None, value.type))
    assert made is not None
    return made


X, Y, SURE = column("x"), column("y"), column("s", nullable=False)
VALUES: dict[str, tuple[int | None, ...]] = {"x": (None, -1, 0, 1, 2), "y": (None, 0, 2), "s": (0, 2)}


def grid(expr: Expr, least: int, most: int) -> LatticeSum:
    """Values themselves, held in {least..most}."""
    return LatticeSum(expr, least, most, 0, 1.0, least, most, whole=True)


def share(first: Expr, second: Expr, degrees: tuple[int, int], index: tuple[int, int]) -> LatticeShare:
    sides = [LatticeSum(each, 0.0, 2.0, 0.0, SHARE_STEPS / 2, 0, SHARE_STEPS, whole=False) for each in (first, second)]
    return LatticeShare(sides[0], sides[1], degrees, index)


def value_of(expr: Expr, row: Row) -> int | None:
    if isinstance(expr, Column):
        return row[expr.name]
    condition, value = expr.args[0], expr.args[1]  # type: ignore[union-attr]
    other = condition.args[0].args[0]  # type: ignore[union-attr]
    return None if value_of(other, row) is None else value_of(value, row)


def held(part: LatticeSum, row: Row) -> int | None:
    value = value_of(part.value, row)
    return None if value is None else max(part.least, min(part.most, value))


def added(part: Part, row: Row, seen: frozenset[int]) -> int:
    """What the row adds to a part of rows, where other rows have the values `seen`."""
    if isinstance(part, CountRows):
        return int(part.present is None or value_of(part.present, row) is not None)
    if isinstance(part, CountDistinct):
        value = value_of(part.value, row)
        return int(value is not None and value not in seen)
    if isinstance(part, LatticeSum):
        return held(part, row) or 0
    assert isinstance(part, LatticeProduct | LatticeShare)
    first, second = held(part.first, row), held(part.second, row)
    if first is None or second is None:
        return 0
    if isinstance(part, LatticeProduct):
        return (2 * first - part.first.most) * (2 * second - part.second.most)
    shares = []
    for value, degree in ((first, part.degrees[0]), (second, part.degrees[1])):
        at = value * SHARE_STEPS // 2 if value else 0
        at = min(at, SHARE_STEPS)
        rest = SHARE_STEPS - at
        ends = [rest * rest // SHARE_STEPS, at * at // SHARE_STEPS]
        shares.append([[SHARE_STEPS], [rest, at], [ends[0], SHARE_STEPS - sum(ends), ends[1]]][degree])
    return shares[0][part.index[0]] * shares[1][part.index[1]] // SHARE_STEPS  # exact for these values


def added_by_unit(part: Part, rows: Sequence[Row]) -> int:
    """What a unit with these rows adds to a part of units."""
    if isinstance(part, CountUnits):
        return int(any(part.present is None or value_of(part.present, row) is not None for row in rows))
    assert isinstance(part, UnitTotal | UnitMean)
    if isinstance(part.of, CountRows):
        return max(part.least, min(part.most, sum(added(part.of, row, frozenset()) for row in rows)))
    values = [value for row in rows if (value := held(part.of, row)) is not None]
    if isinstance(part, UnitTotal):
        return max(part.least, min(part.most, sum(values)))
    return max(part.least, min(part.most, round(sum(values) / len(values)))) if values else 0


@dataclass(frozen=True)
class Case:
    """Parts, combinations of them, what can be read, and the limits of a unit. `tight`: the derived change is attained
    by some table, in every norm. `kept_apart`: parts of units see rows that parts of rows do not."""

    parts: tuple[Part, ...]
    coordinates: tuple[tuple[tuple[int, int], ...], ...]
    reads: str
    bound: ContributionBound = ONE_ROW
    tight: bool = True
    sure: bool = False

    def analysis(self, neighbours: Neighbours, *, grouped: bool) -> Analysis:
        rows = self.bound if grouped else ContributionBound(self.bound.linf, 1, self.bound.linf)
        units = ContributionBound(rows.most_groups, rows.most_groups, 1)
        public = self.sure and neighbours is B and not grouped
        return Analysis(neighbours, grouped, (), public, {}, Bounds(rows, units, enforced=True, declared=True))

    def rows(self) -> list[Row]:
        lists = [VALUES[name] for name in self.reads]
        return [dict(zip(self.reads, values, strict=True)) for values in itertools.product(*lists)]

    def contributions(self, most: int) -> set[tuple[int, Steps]]:
        """(rows kept, steps) of all that a unit can have in one group: any rows kept, and for parts of units one more
        row at least that is not, whose values are any. Values of DISTINCT are new or not, as it pleases others."""
        found: set[tuple[int, Steps]] = set()
        rows = self.rows()
        by_units = [rows_ for count in (1, 2) for rows_ in itertools.combinations_with_replacement(rows, count)]
        totals = {tuple(added_by_unit(part, some) for part in self.parts if of_units(part)) for some in by_units}
        for count in range(most + 1):
            sums: set[Steps] = set()
            for some in itertools.combinations_with_replacement(rows, count):
                for seen in (frozenset[int](), frozenset({0, 1, 2})):
                    sums.add(self._summed(some, seen))
            for by_rows in sums:
                for by_unit in totals:
                    ours, theirs = iter(by_rows), iter(by_unit)
                    steps = tuple(next(theirs) if of_units(part) else next(ours) for part in self.parts)
                    found.add((count, tuple(sum(f * steps[part] for part, f in terms) for terms in self.coordinates)))
        return found

    def _summed(self, rows: Sequence[Row], seen: frozenset[int]) -> Steps:
        total = []
        for part in self.parts:
            if of_units(part):
                continue
            if isinstance(part, CountDistinct):
                values = {value_of(part.value, row) for row in rows} - {None} - seen
                total.append(len(values))
            else:
                total.append(sum(added(part, row, seen) for row in rows))
        return tuple(total)


def l1(steps: Steps) -> int:
    return sum(map(abs, steps))


def cube(steps: Steps) -> int:
    return max(map(abs, steps))


def l2_squared(steps: Steps) -> int:
    return sum(step * step for step in steps)


NORMS: dict[str, Callable[[Steps], int]] = {"cube": cube, "l1": l1, "l2_squared": l2_squared}


def largest(case: Case, neighbours: Neighbours, norm: Callable[[Steps], int], *, grouped: bool) -> int:
    """The largest norm of any change, summed over groups, of all units before and after: an exhaustive search, group by
    group, with what is left of the limits."""
    analysis = case.analysis(neighbours, grouped=grouped)
    bound = analysis.bounds.rows
    here = case.contributions(bound.linf)
    if case.sure and neighbours is B and not grouped:
        here = {each for each in here if each[0] == 1}
        return max(norm(_less(one, other)) for (_, one), (_, other) in itertools.product(here, here))
    none: Steps = (0,) * len(case.coordinates)
    if neighbours is U or not grouped:
        sides = [(here, {(0, none)})]
    else:
        sides = [(here, here), (here, {(0, none)}), ({(0, none)}, here)]
    if neighbours is B and not grouped:
        everything = [*here, (0, none)]
        return max(norm(_less(one, other)) for (_, one), (_, other) in itertools.product(everything, everything))
    worth: dict[tuple[int, int, int, int], int] = {}
    for before, after in sides:
        for (kept, one), (new, other) in itertools.product(before, after):
            use = (int(before is here), kept, int(after is here), new)
            worth[use] = max(worth.get(use, 0), norm(_less(one, other)))

    @cache
    def most(left: tuple[int, int, int, int]) -> int:
        best = 0
        for use, value in worth.items():
            rest = tuple(have - need for have, need in zip(left, use, strict=True))
            if min(rest) >= 0 and any(use):
                best = max(best, value + most(rest))  # type: ignore[arg-type]
        return best

    return most((bound.most_groups, bound.rows, bound.most_groups, bound.rows))


def _less(one: Steps, other: Steps) -> Steps:
    return tuple(a - b for a, b in zip(one, other, strict=True))


COUNT, COUNT_X, SUM_X, SUM_Y = CountRows(None), CountRows(X), grid(X, 0, 2), grid(Y, 0, 2)
SQUARE = LatticeProduct(SUM_X, SUM_X, 4, whole=True)
XY, YX = guarded(X, Y), guarded(Y, X)
PRODUCT = LatticeProduct(grid(XY, 0, 2), grid(YX, 0, 2), 4, whole=True)
UNITS, UNITS_X = CountUnits(None), CountUnits(X)
TOTAL, MEAN = UnitTotal(grid(X, -3, 3), -1, 3), UnitMean(SUM_X, 0, 2)
SHARES = tuple(share(X, Y, (2, 1), (i, j)) for i in range(3) for j in range(2))
CENTRED = ((0, -2), (1, 2))
CASES = {
    "count": Case((COUNT,), (((0, 1),),), "x"),
    "count of some": Case((COUNT_X,), (((0, 3),),), "x"),
    "sum": Case((grid(X, -1, 2),), (((0, 1),),), "x"),
    "sum far from 0": Case((grid(X, 1, 2),), (((0, 1),),), "x"),
    "sum of sure values": Case((grid(SURE, 1, 2),), (((0, 1),),), "s", sure=True),
    "sum of perhaps NULL in sure rows": Case((grid(X, 1, 2),), (((0, 1),),), "x", sure=True),
    "count of sure rows": Case((COUNT,), (((0, 1),),), "s", sure=True),
    "average of sure values": Case((COUNT, grid(SURE, 0, 2)), (((0, 1),), CENTRED), "s", sure=True),
    "average": Case((COUNT_X, SUM_X), (((0, 2),), CENTRED), "x"),
    "average beside the count": Case((COUNT_X, SUM_X, COUNT), (((0, 2),), CENTRED, ((2, 2),)), "x"),
    "average, a wrong centre": Case((COUNT_X, SUM_X), (((0, 2),), ((0, -3), (1, 2))), "x"),
    "average, another's count": Case((CountRows(Y), SUM_X), (((0, 2),), CENTRED), "xy"),
    "around the count": Case((COUNT, COUNT_X), (((0, 1),), ((1, 2), (0, -1))), "x"),
    "around the count, wrongly": Case((COUNT, COUNT_X), (((0, 1),), ((1, 2), (0, 1))), "x"),
    "different values": Case((COUNT, CountDistinct(X)), (((0, 1),), ((1, 2), (0, -1))), "x"),
    "difference of sums": Case((SUM_X, SUM_Y), (((0, 1), (1, -1)), ((0, 1), (1, 1))), "xy"),
    "squares": Case((COUNT_X, SUM_X, SQUARE), (((0, 4),), ((1, 4), (0, -4)), ((2, 2), (0, -4))), "x", tight=False),
    "a pair": Case(
        (CountRows(XY), grid(XY, 0, 2), grid(YX, 0, 2), PRODUCT),
        (((0, 4),), ((1, 4), (0, -4)), ((2, 4), (0, -4)), ((3, 1),)),
        "xy",
        tight=False,
    ),
    "shares": Case(SHARES, tuple(((place, 1),) for place in range(6)), "xy"),
    "shares together": Case(SHARES, (((0, 1), (1, 1)), ((2, 1), (5, -1))), "xy", tight=False),
    "units": Case((UNITS, UNITS_X), (((0, 1),), ((1, 1),)), "x"),
    "total of units": Case((TOTAL,), (((0, 2),),), "x"),
    "mean of units": Case((UNITS_X, MEAN), (((0, 2),), CENTRED), "x"),
    "rows and units": Case((COUNT, UNITS), (((0, 1),), ((1, 2),)), "x"),
    "rows less units": Case((COUNT, UNITS), (((0, 1), (1, -2)),), "x"),
    "rows and totals": Case((COUNT_X, TOTAL), (((0, 3),), ((1, 1),)), "x", tight=False),
    "rows with totals": Case((COUNT_X, TOTAL), (((0, 3), (1, 1)),), "x", tight=False),
}  # fmt: skip
BOUNDS = [
    ContributionBound(1, 1, 1),
    ContributionBound(2, 1, 2),
    ContributionBound(2, 2, 1),
    ContributionBound(2, 2, 2),
    ContributionBound(3, 2, 2),
]


@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "one group"])
@pytest.mark.parametrize("neighbours", [U, B])
@pytest.mark.parametrize("name", CASES)
def test_the_reach_is_that_of_all_small_tables(name: str, neighbours: Neighbours, grouped: bool) -> None:
    """Never less; and no more, where parts are not tied by their values."""
    case = CASES[name]
    for bound in BOUNDS[:1] if case.sure else BOUNDS:
        asked = replace(case, bound=bound)
        found = change_of(asked.parts, asked.coordinates, asked.analysis(neighbours, grouped=grouped))
        for norm, size in NORMS.items():
            exhaustive = largest(asked, neighbours, size, grouped=grouped)
            assert getattr(found, norm) >= exhaustive, (norm, bound)
            if case.tight and (norm != "l2_squared" or neighbours is U or not grouped or bound.rows == 1):
                assert getattr(found, norm) == exhaustive, (norm, bound)
        for place in range(len(case.coordinates)):
            alone = replace(asked, coordinates=(asked.coordinates[place],))
            assert found.sensitivity_of_each[place] >= largest(alone, neighbours, l1, grouped=grouped), (place, bound)


PARTS: tuple[Part, ...] = (
    COUNT, COUNT_X, SUM_X, SUM_Y, SQUARE, PRODUCT, CountRows(XY), CountDistinct(X), grid(X, 1, 2), UNITS, UNITS_X,
    TOTAL, MEAN, SHARES[0], SHARES[3], UnitTotal(COUNT_X, 0, 2),
)  # fmt: skip


def random_cases(count: int) -> Iterator[Case]:
    rng = random.Random(SEED)
    for _ in range(count):
        parts = tuple(rng.sample(PARTS, rng.choice([1, 2, 2, 3])))
        shared = any(isinstance(part, LatticeShare) for part in parts)
        coordinates = tuple(
            tuple(
                (place, rng.choice([-3, -2, -1, 1, 2, 3]) * (SHARE_STEPS if shared and place == 0 else 1))
                for place in sorted(rng.sample(range(len(parts)), rng.randint(1, len(parts))))
            )
            for _ in range(rng.choice([1, 2, 3]))
        )
        yield Case(parts, coordinates, "xy", rng.choice(BOUNDS[:4]), tight=False)


@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "one group"])
@pytest.mark.parametrize("neighbours", [U, B])
def test_no_combination_moves_further_than_derived(neighbours: Neighbours, grouped: bool) -> None:
    for case in random_cases(60):
        found = change_of(case.parts, case.coordinates, case.analysis(neighbours, grouped=grouped))
        for norm, size in NORMS.items():
            assert getattr(found, norm) >= largest(case, neighbours, size, grouped=grouped), (norm, case)


def _forget() -> None:
    reach._across.cache_clear()
    reach._within.cache_clear()


def test_too_many_vertices_give_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of vertices each coordinate is taken by itself."""
    rougher = 0
    for case in random_cases(60):
        for neighbours, grouped in itertools.product((U, B), (True, False)):
            analysis = case.analysis(neighbours, grouped=grouped)
            exact = change_of(case.parts, case.coordinates, analysis)
            monkeypatch.setattr(vertices, "MOST_VERTICES", 1)
            _forget()
            rough = change_of(case.parts, case.coordinates, analysis)
            monkeypatch.undo()
            _forget()
            assert (rough.cube, rough.sensitivity_of_each) == (exact.cube, exact.sensitivity_of_each)
            assert rough.l1 >= exact.l1
            assert rough.l2_squared >= exact.l2_squared
            rougher += rough != exact
    assert rougher


def test_nobodys_rows_move_nothing() -> None:
    analysis = replace(CASES["average"].analysis(U, grouped=True), private=False)
    assert change_of((COUNT,), (((0, 1),),), analysis) == Change(0, 0, 0, (0,), (0,))
    assert reach_of_level((COUNT,), (((0, 1),),), analysis, 1, 4).l2_squared == 0


def test_contributions_that_come_together_count_together() -> None:
    """Of two cells in one: a unit's rows in both, and what it adds to both by being there."""
    assert merged(ContributionBound(3, 3, 1), 2, 2) == ContributionBound(3, 2, 2)
    case = replace(CASES["rows and units"], bound=ContributionBound(2, 2, 1))
    analysis = case.analysis(U, grouped=True)

    def level(coordinates: Any, cells: int, finest: int) -> Fraction:
        return reach_of_level(case.parts, coordinates, analysis, cells, finest).l2_squared

    assert level(case.coordinates, cells=1, finest=2) == 2**2 + (2 * 2) ** 2
    assert level(case.coordinates, cells=2, finest=1) == 2 * (1 + 2**2)
    assert level((((0, 1), (1, 2)),), cells=1, finest=2) >= (2 + 2 * 2) ** 2


def test_many_ordinary_aggregates_take_no_time() -> None:
    """Coordinates of different parts are gone through one by one."""
    columns = [column(f"c{number}") for number in range(200)]
    parts: list[Part] = []
    coordinates = []
    for each in columns:
        parts += [CountRows(each), grid(each, 0, 2), LatticeProduct(grid(each, 0, 2), grid(each, 0, 2), 4, whole=True)]
        first = len(parts) - 3
        coordinates += [((first, 4),), ((first + 1, 4), (first, -4)), ((first + 2, 2), (first, -4))]
    case = Case(tuple(parts), tuple(coordinates), "x")
    found = change_of(case.parts, case.coordinates, case.analysis(U, grouped=True))
    assert (found.cube, found.l1, found.l2_squared) == (4, 4 * 600, 16 * 600)
