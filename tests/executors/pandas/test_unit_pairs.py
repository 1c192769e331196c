"""Parts of units by pairs of unit and group: against plain Python, in blocks of any size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.core.exact import CountUnits, LatticeSum, UnitMean, UnitTotal
from dpsql.executors.pandas.sums.accumulators import Accumulator, Block
from dpsql.executors.pandas.units import unit_sums
from dpsql.executors.pandas.units.kept_rows import UnitRows
from dpsql.executors.pandas.units.unit_sums import PairCount, PairSum, UnitSum, unit_sum_of
from dpsql.executors.pandas.units.unit_totals import UnitPairs
from dpsql.plan.expressions import Column, Fact, Vector
from dpsql.schema.columns import Type
from tests.lies import Patch, assert_caught

CELLS = 3
VALUE = Column("x", Type.INTEGER, Fact())
ENDS = (-40, 60)


@dataclass
class Rows:
    """Rows of units; the group CELLS is of those that are left out. None is a NULL."""

    units: list[int]
    groups: list[int]
    values: list[int | None]

    def chosen(self) -> UnitRows:
        groups = np.array(self.groups, dtype=np.int64)
        return UnitRows(np.array(self.units, dtype=np.int64), groups, groups, by_pairs=True)

    def blocks(self, size: int) -> list[tuple[Block, dict[Any, Vector]]]:
        made = []
        for start in range(0, len(self.units), size):
            stop = min(start + size, len(self.units))
            cells = self.values[start:stop]
            valid = np.array([cell is not None for cell in cells])
            vector = Vector(np.array([cell or 0 for cell in cells], dtype=np.int64), None if valid.all() else valid)
            codes = np.array(self.groups[start:stop], dtype=np.int64)
            made.append((Block(start, stop, None, codes, CELLS), {VALUE: vector}))
        return made


def lattice(least: int, most: int, origin: int = 0) -> LatticeSum:
    return LatticeSum(VALUE, least + origin, most + origin, origin, 1.0, least, most, whole=True)


def draw(seed: int, rows: int = 200, largest: int = 50) -> Rows:
    rng = np.random.default_rng(seed)
    values = [None if rng.random() < 0.2 else int(each) for each in rng.integers(-largest, largest, rows)]
    return Rows(rng.integers(0, 12, rows).tolist(), rng.integers(0, CELLS + 1, rows).tolist(), values)


def slow(part: CountUnits | UnitTotal | UnitMean, rows: Rows) -> list[int]:
    """One number of each unit in each group, row by row."""
    pairs: dict[tuple[int, int], list[int | None]] = defaultdict(list)
    for unit, group, value in zip(rows.units, rows.groups, rows.values, strict=True):
        if group < CELLS:
            pairs[unit, group].append(value)
    totals = [0] * CELLS
    for (_, group), cells in pairs.items():
        if isinstance(part, CountUnits):
            totals[group] += 1
            continue
        assert isinstance(part.of, LatticeSum)
        held = [min(max(cell, int(part.of.lower)), int(part.of.upper)) for cell in cells if cell is not None]
        steps = [each - int(part.of.origin) for each in held]
        if steps:
            number = sum(steps) if isinstance(part, UnitTotal) else round(Fraction(sum(steps), len(steps)))
            totals[group] += min(max(number, part.least), part.most)
    return totals


def fast(part: CountUnits | UnitTotal | UnitMean, rows: Rows, size: int, by: type[Accumulator] | None) -> list[int]:
    """What an accumulator of that kind comes to over blocks of that size. None: of the kind that is chosen."""
    chosen = rows.chosen()
    if by is PairCount:
        held: Accumulator = PairCount(chosen, CELLS)
    elif by is PairSum:
        assert isinstance(part, UnitTotal | UnitMean)
        assert isinstance(part.of, LatticeSum)
        held = PairSum(part, part.of, chosen, CELLS)
    else:
        held = unit_sum_of(part, CELLS, None, chosen)  # type: ignore[arg-type]
    for block, read in rows.blocks(size):
        held.add(block, read, np.zeros(CELLS, dtype=np.int64))
    return [int(each) for each in held.values()]


PARTS: dict[str, Callable[[], CountUnits | UnitTotal | UnitMean]] = {
    "count": lambda: CountUnits(None),
    "total": lambda: UnitTotal(lattice(*ENDS), -100, 90),
    "wide total": lambda: UnitTotal(lattice(*ENDS), -(2**80), 2**80),
    "total of a centre": lambda: UnitTotal(lattice(0, 30, -10), 0, 64),
    "mean": lambda: UnitMean(lattice(*ENDS), -40, 60),
    "narrow mean": lambda: UnitMean(lattice(*ENDS), -3, 5),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_against_plain_python(name: str, size: int):
    part = PARTS[name]()
    by = PairCount if isinstance(part, CountUnits) else PairSum
    for seed in range(6):
        rows = draw(seed)
        assert fast(part, rows, size, by) == slow(part, rows)


def test_a_pair_of_nothing_but_null():
    rows = Rows([0, 0, 1], [0, 0, 0], [None, None, 5])
    assert fast(PARTS["mean"](), rows, 2, PairSum) == slow(PARTS["mean"](), rows) == [5, 0, 0]
    assert fast(PARTS["count"](), rows, 2, PairCount) == [2, 0, 0]


def test_all_parts_share_the_pairs():
    chosen = draw(1).chosen()
    held = [unit_sum_of(PARTS[name](), CELLS, None, chosen) for name in ("total", "mean", "count")]  # type: ignore[arg-type]
    assert [type(each) for each in held] == [PairSum, PairSum, PairCount]
    assert chosen.pairs() is chosen.pairs()


LARGE = 2**45 - 1


def of_large_steps() -> Rows:
    """One unit whose sum is more than 2^63, beside others."""
    rows = 2**18 + 8
    return Rows([0] * rows + [1, 2], [0] * rows + [0, 1], [LARGE] * rows + [3, None])


@pytest.mark.parametrize("made", [UnitTotal, UnitMean])
def test_sums_beyond_64_bits_are_gathered(made: type[UnitTotal | UnitMean]):
    rows, part = of_large_steps(), made(lattice(-LARGE, LARGE), -(2**62), 2**62)
    assert isinstance(unit_sum_of(part, CELLS, None, rows.chosen()), UnitSum)  # type: ignore[arg-type]
    assert fast(part, rows, 2**18, None) == slow(part, rows)


def _null_as_zero(patch: Patch) -> None:
    add = PairSum.add

    def lie(self: PairSum, block: Block, read: Any, seen: Any) -> None:
        add(self, block, read, seen)
        self.missing = None

    patch.setattr(PairSum, "add", lie)


def _pairs_of_units_alone(patch: Patch) -> None:
    of = UnitPairs.of
    patch.setattr(UnitPairs, "of", lambda units, groups: of(units, np.where(groups < CELLS, 0, groups)))


def _room_for_any_sum(patch: Patch) -> None:
    patch.setattr(unit_sums, "_LARGEST_SUM", 2**90)


def _agrees(name: str) -> Callable[[], None]:
    def check() -> None:
        for seed in range(6):
            rows, part = draw(seed), PARTS[name]()
            assert fast(part, rows, 7, None) == slow(part, rows)

    return check


def _agrees_on_large_sums() -> None:
    rows, part = of_large_steps(), UnitTotal(lattice(-LARGE, LARGE), -(2**62), 2**62)
    assert fast(part, rows, 2**18, None) == slow(part, rows)


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        (_null_as_zero, _agrees("mean")),
        (_pairs_of_units_alone, _agrees("count")),
        (_pairs_of_units_alone, _agrees("total")),
        (_room_for_any_sum, _agrees_on_large_sums),
    ],
)
def test_lies_are_caught(lie: Callable[[Patch], None], check: Callable[[], None]):
    assert_caught(lie, check)
