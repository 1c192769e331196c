"""Cells: rows that exclude each other, by one number a row. Their reach beside all small tables, their law, their sums.

Alternatives are made to overlap and to be NULL, since nothing may be believed of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.exact import SHARE_STEPS, CellPart, CountRows, LatticeProduct, LatticeShare, LatticeSum, Part
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.noise import CubeLaplace, Reach
from dpsql.core.sensitivity.norms import change_of, reach_of
from dpsql.core.unit import ContributionBound, Neighbours
from dpsql.plan.expressions import Column, Expr
from tests.core import test_reach as small
from tests.core.test_reach import B, Case, Row, Steps, U, X, Y, column, grid, largest, share

P, Q, R = (column(name) for name in "pqr")
VALUES: dict[str, tuple[int | None, ...]] = {"p": (None, 0, 1), "q": (0, 1), "r": (0, 1)}
BOUNDS = [
    ContributionBound(1, 1, 1),
    ContributionBound(2, 2, 1),
    ContributionBound(2, 1, 2),
    ContributionBound(3, 2, 2),
]


@dataclass(frozen=True)
class OfCells(Case):
    """Cells beside other parts; `classes` of the coordinates."""

    classes: tuple[int, ...] = ()

    def rows(self) -> list[Row]:
        lists = [{**small.VALUES, **VALUES}[name] for name in self.reads]
        return [dict(zip(self.reads, values, strict=True)) for values in itertools.product(*lists)]

    def _summed(self, rows: Sequence[Row], seen: frozenset[int]) -> Steps:
        return tuple(sum(added(part, row, seen) for row in rows) for part in self.parts)

    def norm(self, steps: Steps) -> int:
        """The sum over classes of the largest coordinate."""
        of = self.classes or (0,) * len(steps)
        return sum(max(abs(step) for step, at in zip(steps, of, strict=True) if at == each) for each in set(of))


def cell_of(alternatives: tuple[Expr, ...], row: Row) -> int:
    """The number of the first alternative that is TRUE, 0 where none is."""
    true = [number for number, each in enumerate(alternatives, start=1) if row[each.name] == 1]  # type: ignore[union-attr]
    return min(true, default=0)


def added(part: Part, row: Row, seen: frozenset[int]) -> int:
    if isinstance(part, CellPart):
        return small.added(part.of, row, seen) if cell_of(part.alternatives, row) == part.number else 0
    return small.added(part, row, seen)


def inside(number: int, of: CountRows | LatticeSum | LatticeProduct | LatticeShare, *alternatives: Column) -> CellPart:
    return CellPart(of, alternatives or (P, Q), number)


ALL = CountRows(None)
HIGH, SIGNED = grid(X, 1, 2), grid(X, -1, 2)
PAIRED = tuple(share(X, Y, (1, 1), index) for index in itertools.product(range(2), repeat=2))
ALONE = tuple(share(X, X, (2, 0), (index, 0)) for index in range(3))
CASES = {
    "two counts": OfCells((inside(1, ALL), inside(2, ALL)), (((0, 1),), ((1, 1),)), "pq", classes=(0, 1)),
    "two counts, one class": OfCells((inside(1, ALL), inside(2, ALL)), (((0, 1),), ((1, 1),)), "pq"),
    "their difference": OfCells((inside(1, ALL), inside(2, ALL)), (((0, 1), (1, -1)), ((0, 1),)), "pq", classes=(0, 1)),
    "unlike worths": OfCells((inside(1, ALL), inside(2, ALL)), (((0, 3),), ((1, 2),)), "pq", classes=(0, 1)),
    "three": OfCells(
        tuple(inside(number, ALL, P, Q, R) for number in (1, 2, 3)),
        (((0, 1),), ((1, 1),), ((2, 1),)),
        "pqr",
        classes=(0, 1, 2),
    ),
    "an average each": OfCells(
        (inside(1, ALL), inside(1, grid(X, 0, 2)), inside(2, ALL), inside(2, grid(X, 0, 2))),
        (((0, 2),), ((1, 2), (0, -2)), ((2, 2),), ((3, 2), (2, -2))),
        "pqx",
        classes=(0, 0, 1, 1),
    ),
    "beside all": OfCells(
        (inside(1, ALL), inside(2, ALL), ALL), (((0, 1),), ((1, 1),), ((2, 1),)), "pq", classes=(0, 1, 2)
    ),
    "other alternatives": OfCells(
        (inside(1, ALL), inside(2, ALL), inside(1, ALL, R)), (((0, 1),), ((1, 1),), ((2, 1),)), "pqr", classes=(0, 1, 2)
    ),
    "a value that may be NULL": OfCells(
        (inside(1, CountRows(X)), inside(1, HIGH), inside(2, SIGNED)),
        (((0, 1),), ((1, 1),), ((2, 2),)),
        "pqx",
        classes=(0, 0, 1),
    ),
    "shares, and a count": OfCells(
        (*(inside(1, each) for each in ALONE), inside(2, ALL)),
        (((0, 1),), ((1, 1),), ((2, 1),), ((3, SHARE_STEPS),)),
        "pqx",
    ),
    "shares of two values, and of one": OfCells(
        (*(inside(1, each, P) for each in PAIRED), *(share(X, X, (1, 0), (index, 0)) for index in range(2))),
        tuple(((place, 1),) for place in range(6)),
        "pxy",
    ),
    "shares of a cell together": OfCells(
        (inside(1, ALONE[0]), inside(1, ALONE[2]), inside(2, ALONE[2])), (((0, 1), (1, -1)), ((2, 1), (1, 1))), "pqx"
    ),
}  # fmt: skip


def assert_no_further(case: OfCells, bound: ContributionBound, neighbours: Neighbours, *, grouped: bool) -> None:
    asked = OfCells(case.parts, case.coordinates, case.reads, bound, classes=case.classes)
    analysis = asked.analysis(neighbours, grouped=grouped)
    found = change_of(asked.parts, asked.coordinates, analysis, asked.classes)
    norms: dict[str, Callable[[Steps], int]] = {**small.NORMS, "cube": asked.norm}
    for name, norm in norms.items():
        exhaustive = largest(asked, neighbours, norm, grouped=grouped)
        assert getattr(found, name) >= exhaustive, (name, bound)
        if neighbours is U and name == "cube" and case in CASES.values():
            assert getattr(found, name) == exhaustive, bound


@pytest.mark.thinned(3)
@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "one group"])
@pytest.mark.parametrize("neighbours", [U, B])
@pytest.mark.parametrize("name", CASES)
def test_the_reach_of_cells_is_that_of_all_small_tables(name: str, neighbours: Neighbours, grouped: bool) -> None:
    """Never less, and no more where a unit comes or goes."""
    for bound in BOUNDS:
        assert_no_further(CASES[name], bound, neighbours, grouped=grouped)


def random_cases(count: int) -> Iterator[OfCells]:
    rng = random.Random(small.SEED)
    sums: tuple[Part, ...] = (ALL, CountRows(X), HIGH, SIGNED, grid(X, 0, 2), small.SQUARE)
    for turn in range(count):
        of = sums if turn % 3 else ALONE
        parts: tuple[Part, ...] = tuple(
            dict.fromkeys(
                CellPart(rng.choice(of), (P, Q), rng.choice([1, 2])) if rng.random() < 0.8 else rng.choice(of)  # type: ignore[arg-type]
                for _ in range(rng.choice([2, 3, 4]))
            )
        )
        coordinates = tuple(
            tuple(
                (place, rng.choice([-3, -2, -1, 1, 2, 3]))
                for place in sorted(rng.sample(range(len(parts)), rng.randint(1, min(2, len(parts)))))
            )
            for _ in range(rng.choice([1, 2, 3]))
        )
        classes = tuple(rng.randrange(2) for _ in coordinates)
        yield OfCells(parts, coordinates, "pqx", rng.choice(BOUNDS[:3]), tight=False, classes=classes)


@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "one group"])
@pytest.mark.parametrize("neighbours", [U, B])
def test_no_combination_of_cells_moves_further_than_derived(neighbours: Neighbours, grouped: bool) -> None:
    for case in random_cases(40):
        assert_no_further(case, case.bound, neighbours, grouped=grouped)


@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "one group"])
@pytest.mark.parametrize("neighbours", [U, B])
@pytest.mark.parametrize("limit", ["vertices.MOST_VERTICES", "reach.MOST_PATTERNS"])
def test_too_many_cells_give_no_less(
    monkeypatch: pytest.MonkeyPatch, limit: str, neighbours: Neighbours, grouped: bool
) -> None:
    monkeypatch.setattr(f"dpsql.core.{limit}", 1)
    small._forget()
    try:
        for case in random_cases(25):
            assert_no_further(case, case.bound, neighbours, grouped=grouped)
    finally:
        small._forget()


def test_a_cell_is_of_rows_and_one_of_the_alternatives() -> None:
    with pytest.raises(ValueError, match="cell"):
        CellPart(ALL, (P,), 2)
    with pytest.raises(ValueError, match="cell"):
        CellPart(small.UNITS, (P,), 1)  # type: ignore[arg-type]


# The law


@pytest.mark.parametrize("classes", [(0, 1), (0, 0, 1), (1, 0, 1)])
def test_the_law_of_classes_is_private_for_every_shift_and_outcome(classes: tuple[int, ...]) -> None:
    """The probability of every outcome, from those of its cubes, moves by no more than the norm says."""
    law = ClassLaplace(Fraction(3, 2), classes)
    box = list(itertools.product(range(-3, 4), repeat=len(classes)))

    def log_chance(x: Sequence[int]) -> float:
        own = {each: [x[row] for row, at in enumerate(classes) if at == each] for each in classes}
        return -sum(max(map(abs, steps)) for steps in own.values()) / law.scale

    for shift in itertools.product((-1, 0, 2), repeat=len(classes)):
        norm = sum(max(abs(shift[row]) for row, at in enumerate(classes) if at == each) for each in set(classes))
        worst = max(log_chance(x) - log_chance([a - b for a, b in zip(x, shift, strict=True)]) for x in box)
        assert worst <= norm / law.scale + 1e-12


def test_what_is_drawn_is_a_cube_for_each_class() -> None:
    law = ClassLaplace(Fraction(5), (0, 1, 0, 2))
    drawn = law.draw(40_000).astype(float)
    assert drawn.shape == (4, 40_000)
    spreads = [CubeLaplace(Fraction(5), size).spread for size in (2, 1, 2, 1)]
    assert np.allclose(drawn.var(axis=1), spreads, rtol=0.06)
    sizes = np.abs(drawn)
    together = np.corrcoef(sizes)  # sizes go together within a class alone
    assert together[0, 2] > 0.1
    assert max(abs(together[row, at]) for row, at in [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]) < 0.03


def test_its_scale_is_what_the_reach_asks_for() -> None:
    case = CASES["an average each"]
    analysis = OfCells(case.parts, case.coordinates, case.reads, BOUNDS[0]).analysis(U, grouped=False)
    reach = reach_of(case.parts, case.coordinates, analysis, case.classes)
    law = ClassLaplace.calibrate(reach, Fraction(1, 2))
    assert (law.exact_scale, law.loss(reach).epsilon) == (Fraction(4), Fraction(1, 2))
    assert [law.of(row).dimension for row in range(4)] == [2, 2, 2, 2]


def test_noise_of_classes_is_for_a_reach_of_these_classes() -> None:
    law = ClassLaplace(Fraction(5), (0, 1))
    for classes in ((), (0, 0), (1, 0)):
        with pytest.raises(ValueError, match="classes"):
            law.loss(Reach(1, Fraction(1), 2, 2, classes))
    with pytest.raises(ValueError, match="class"):
        ClassLaplace.calibrate(Reach(1, Fraction(1), 2), Fraction(1))


@pytest.mark.parametrize("t", [1, 2, 7, 40])
def test_its_tail_is_that_of_the_widest_class(t: int) -> None:
    law = ClassLaplace(Fraction(5), (0, 1, 0))
    assert law.upper_tail(t) == CubeLaplace(Fraction(5), 2).upper_tail(t)
    assert math.isclose(law.spread, law.of(0).spread)
