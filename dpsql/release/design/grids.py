"""Grids of values: their fineness, and which arguments keep the grid of the integers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import LARGEST_STEP_COUNT, LatticeSum, UnitTotal
from dpsql.core.sensitivity.row_contributions import MeasuredAggregation
from dpsql.plan.expressions import Expr, Fact
from dpsql.release.values import GridKey, grid_key, is_whole
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

_FINEST = 44
"""Lattices have at most 2^44 steps over the range of a value."""
FURTHER_OUT = 14
MOST_OF_UNITS = LARGEST_STEP_COUNT >> FURTHER_OUT
"""The most steps over the range of a unit's contribution, so that its rows may lie further out."""


@dataclass(frozen=True, slots=True)
class Grid:
    """One sum on its grid: part, value of q = 0, and value of a step."""

    part: LatticeSum
    origin: float
    step: float


@dataclass(frozen=True)
class Fineness:
    """The fineness of a query's grids, which increases with epsilon (per contribution). On `coarse` grids integers do
    not keep their own grids."""

    epsilon: Fraction
    coarse: bool

    def of(self, summed: list[MeasuredAggregation]) -> dict[GridKey, Grid]:
        """Return a grid for each summed argument, and a separate one if it is averaged unit by unit. Integers get the
        exact grid of all integers as long as the common multiple of the grids' sizes stays small; other values get 2^k
        steps."""
        facts: dict[GridKey, Fact] = {}
        powers: dict[GridKey, int] = {}
        for m in summed:
            for second, each in ((False, m.argument), (True, m.other)):
                if each is not None:
                    key = grid_key(m, second=second)
                    facts[key] = each
                    power = 2 if m.aggregation.kind.second_moments else 1
                    powers[key] = max(power, powers.get(key, 1))
        sizes: dict[GridKey, int] = {}
        common = 1
        for key, each in facts.items():
            width = max(1, int(each.range.upper - each.range.lower))
            exact = (
                key[1] == "rows" and is_whole(key[0]) and math.lcm(common, width ** powers[key]) <= self.most_exact()
            )
            sizes[key] = int(each.range.upper - each.range.lower) if exact else 0
            common = math.lcm(common, max(1, sizes[key]) ** powers[key])
        return {key: self.grid(key[0], each, sizes[key], fewer=key[2] is not None) for key, each in facts.items()}

    def grid(self, expr: Expr, argument: Fact, exact_size: int, *, fewer: bool = False) -> Grid:
        """Return the grid of one argument: integers with `exact_size` steps, or the grid of real values; `fewer` steps
        for the values of units."""
        limits = argument.range
        if exact_size or limits.lower == limits.upper:
            whole = is_whole(expr)
            part = LatticeSum(expr, limits.lower, limits.upper, limits.lower, 1.0, 0, exact_size, whole=whole)
            return Grid(part, float(limits.lower), 1.0)
        size = min(self.real_steps(), MOST_OF_UNITS) if fewer else self.real_steps()
        lower_end, upper_end = float(limits.lower), float(limits.upper)
        if lower_end == upper_end:  # doubles do not distinguish the ends: treat as one value
            return Grid(LatticeSum(expr, lower_end, upper_end, lower_end, 1.0, 0, 0, whole=False), lower_end, 1.0)
        scale = size / (upper_end - lower_end)
        part = LatticeSum(expr, lower_end, upper_end, lower_end, scale, 0, size, whole=False)
        return Grid(part, lower_end, (upper_end - lower_end) / size)

    def of_totals(self, expr: Expr, row: Interval, clip: Interval, rows: int) -> tuple[UnitTotal, float] | None:
        """Return a unit's clipped total on a lattice that contains 0 and has room for `rows` rows of the unit, and the
        value of a step. None if the clip is narrower than these rows, or symmetric."""
        if not row.bounded or not clip.magnitude:
            return None
        low, high = min(0, row.lower), max(0, row.upper)
        if rows * low < clip.lower or clip.upper < rows * high or clip.lower == -clip.upper:
            return None
        whole = is_whole(expr) and clip.magnitude <= self.most_exact()
        size = int(clip.magnitude) if whole else rows * (min(self.real_steps(), MOST_OF_UNITS) // rows)
        if size < rows:
            return None
        scale = 1.0 if whole else size / float(clip.magnitude)
        least, most = max(-size, math.floor(clip.lower * scale)), min(size, math.ceil(clip.upper * scale))
        ends = max(math.floor(low * scale), -(-least // rows)), min(math.ceil(high * scale), most // rows)
        of = LatticeSum(expr, row.lower, row.upper, 0 if whole else 0.0, scale, *ends, whole=whole)
        return UnitTotal(of, least, most), 1 / scale

    def real_steps(self) -> int:
        """Return the steps over the range of a real value: 2^30 at epsilon 1, more for larger epsilon."""
        return 1 << max(10, min(_FINEST, 30 + _log2(self.epsilon)))

    def most_steps(self) -> int:
        return 1 << max(10, min(_FINEST, 40 + _log2(self.epsilon)))

    def most_exact(self) -> int:
        """Return the widest range of integers that keeps its own grid; booleans always do."""
        return 1 if self.coarse else self.most_steps()


def far(grid: Grid) -> LatticeSum:
    """Return a grid that extends so far that averages of units are clipped, not the values of their rows."""
    far = min(grid.part.most << FURTHER_OUT, LARGEST_STEP_COUNT - 1)
    reach = far * grid.step
    return replace(grid.part, lower=grid.origin - reach, upper=grid.origin + reach, least=-far, most=far)


def _log2(number: Fraction) -> int:
    return math.floor(math.log2(number))
