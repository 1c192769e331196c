"""The interface of executors: a frozen plan in, exact integers out.

The same plan gives the same integers on every engine, bit for bit, in any order of rows, blocks or threads. An executor
raises no error that depends on rows.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.unit import ContributionBound
from dpsql.plan.aggregates import MOST_POINTS
from dpsql.plan.expressions import Expr, Vector
from dpsql.plan.nodes import Source
from dpsql.plan.query import GroupKey
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Number

NO_KEY = bytes(32)
LARGEST_STEP_COUNT = 2**45
"""|q| of one row's lattice value stays below this, so that a block's sum cannot wrap. Exception: whole numbers that are
summed unchanged, in two halves."""
LARGEST_WHOLE = 2**62
LARGEST_GRID = 2**53


@dataclass(frozen=True, slots=True)
class CountRows:
    """The number of rows of a group for which `present` is not NULL; of all rows if it is None."""

    present: Expr | None


@dataclass(frozen=True, slots=True)
class LatticeSum:
    """The sum over a group's rows of q = round((clip(value) - origin) * steps_per_unit), without rows with NULL.

    The value is clipped to [lower, upper], rounded half to even and then clamped to {least..most}: whatever an
    expression computes, one row adds an integer of that range. With `whole`, value and origin are integers and
    q = value - origin.
    """

    value: Expr
    lower: Number
    upper: Number
    origin: Number
    steps_per_unit: float
    least: int
    most: int
    whole: bool

    def __post_init__(self) -> None:
        if self.whole and not all(isinstance(each, int) for each in (self.lower, self.upper, self.origin)):
            raise ValueError("integers are summed between integers")
        largest = LARGEST_WHOLE + 1 if self.whole and self.origin == 0 else LARGEST_STEP_COUNT
        if not (self.least <= self.most and max(abs(self.least), abs(self.most)) < largest):
            raise ValueError("the lattice of a sum is too fine")


@dataclass(frozen=True, slots=True)
class LatticeProduct:
    """The sum over a group's rows of the product of two values u, v in [-1, 1], as an integer of {-most..most}; without
    rows with NULL in either.

    u is the position of a value on its own lattice {0..N}, scaled to -1..1. With `whole` the product is that of the
    integers 2 q - N of both, exact, and most = N N'; otherwise u v is computed in floats and rounded half to even to a
    multiple of 1 / most. The same lattice twice gives a square.
    """

    first: LatticeSum
    second: LatticeSum
    most: int
    whole: bool

    def __post_init__(self) -> None:
        if self.first.least or self.second.least or not 0 < self.most < LARGEST_STEP_COUNT:
            raise ValueError("products are of lattices that begin at 0, and not too fine")
        if self.whole and self.most != self.first.most * self.second.most:
            raise ValueError("the product of integers is as large as theirs")


SHARE_STEPS = 2**30
"""The number of equal pieces into which `LatticeShare` divides each row."""


@dataclass(frozen=True, slots=True)
class LatticeShare:
    """The sum over a group's rows of one of the shares into which each row is divided, without rows with NULL. A row's
    shares are non-negative and sum to SHARE_STEPS.

    A value at y in [0, 1] of its range gives the shares B_i(y), Bernstein's polynomials of `degree`; with two values,
    each share of the first is subdivided in proportion to the second's. Every share is rounded down except one, which
    takes the rest, so the sum is exact for every row. Both lattices are {0..SHARE_STEPS}.
    """

    first: LatticeSum
    second: LatticeSum
    degrees: tuple[int, int]
    index: tuple[int, int]

    def __post_init__(self) -> None:
        if any((each.least, each.most) != (0, SHARE_STEPS) for each in (self.first, self.second)):
            raise ValueError("shares are of lattices of SHARE_STEPS steps")
        if any(not 0 <= i <= d <= 2 for i, d in zip(self.index, self.degrees, strict=True)):
            raise ValueError("shares are of degree 2 at most")


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """The number of distinct values of `value` in a group, without NULL."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Edges:
    """Places between ascending edges: the place of a value is the number of edges less than it, in floats."""

    value: Expr
    edges: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class LeadingDigits:
    """Places by the sign of a value, its power of two and `digits` binary digits after the first, in floats, ascending
    and numbered from the least. So places are closer together near 0, and cover all floats. The places in the middle
    are 0 and values that round towards it."""

    value: Expr
    digits: int

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= 40:
            raise ValueError("a float has 52 digits, and places are counted in floats too")

    @property
    def middle(self) -> int:
        """The place of 0; those of negative values are before it."""
        return int(2 ** (11 + self.digits))

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the places of floats."""
        size = np.abs(values).view(np.int64) >> (52 - self.digits)
        return np.asarray(self.middle + np.where(values < 0, ~size, size))

    def sizes(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the least absolute value at each of some places."""
        away = places - self.middle
        return np.asarray(np.where(away < 0, ~away, away) << (52 - self.digits)).view(np.float64)


@dataclass(frozen=True, slots=True)
class GridCounts:
    """The number of rows of a group at each of `points` public places, without rows with NULL or outside the places.

    `of`: a lattice {least..most}, edges, or a key whose public values are the places. A lattice may have, and leading
    digits have, more places than can be counted one by one.
    """

    of: LatticeSum | GroupKey | Edges | LeadingDigits
    points: int

    def __post_init__(self) -> None:
        if isinstance(self.of, LatticeSum):
            known, most = self.of.most - self.of.least + 1, LARGEST_GRID
        elif isinstance(self.of, LeadingDigits):
            known, most = 2 * self.of.middle, LARGEST_GRID
        else:
            known = len(self.of.edges) + 1 if isinstance(self.of, Edges) else len(self.of.values or ())
            most = MOST_POINTS
        if not 1 <= self.points == known <= most:
            raise ValueError("a grid has the points of its lattice, or of its list")


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of privacy units that have a row in a group (one for which `present` is not NULL)."""

    present: Expr | None


@dataclass(frozen=True, slots=True)
class UnitWeights:
    """The sum over privacy units that have a row in a group of `weight_of` the number of the unit's groups, after
    contribution bounding."""

    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.scale <= 2**25:
            raise ValueError("weights are of 1 to 2^25 steps")

    @property
    def least(self) -> int:
        """The minimum that a unit adds to a group, as of other parts."""
        return 0

    @property
    def most(self) -> int:
        """The maximum weight of a unit in one group."""
        return self.scale


def weight_of(scale: int, groups: int) -> int:
    """Return floor(scale / sqrt(groups)): the squares of `groups` such weights sum to at most scale^2."""
    return math.isqrt(scale * scale // groups)


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The sum over privacy units of each unit's total in a group, clamped to {least..most}."""

    of: CountRows | LatticeSum
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class UnitMean:
    """The sum over privacy units of each unit's average in a group, rounded half to even and clamped to {least..most};
    units without a value there add nothing."""

    of: LatticeSum
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class CellPart:
    """A part over the rows of one cell: rows for which alternative `number`, counted from 1, is the first TRUE one of
    `alternatives`. Each row has one number (0 if none is TRUE), so it adds to the parts of at most one cell.
    Exclusivity of the alternatives is enforced instead of trusted."""

    of: CountRows | LatticeSum | LatticeProduct | LatticeShare
    alternatives: tuple[Expr, ...]
    number: int

    def __post_init__(self) -> None:
        by_row = isinstance(self.of, CountRows | LatticeSum | LatticeProduct | LatticeShare)
        if not (by_row and 1 <= self.number <= len(self.alternatives)):
            raise ValueError("a cell is of rows, each of which adds by itself, and has the number of an alternative")


@dataclass(frozen=True, slots=True)
class AllUnits:
    """The number of privacy units that have a row in any group, the same integer in each group."""


Part = (
    CountRows
    | LatticeSum
    | LatticeProduct
    | LatticeShare
    | CountDistinct
    | CountUnits
    | UnitWeights
    | UnitTotal
    | UnitMean
    | CellPart
    | AllUnits
)


def of_units(part: Part) -> bool:
    """Return whether each unit adds one number to a group, or to all groups, independent of its number of rows."""
    return isinstance(part, CountUnits | UnitWeights | UnitTotal | UnitMean | AllUnits)


def readings_of(part: Part | GridCounts) -> tuple[LatticeSum | Expr, ...]:
    """Return what a part reads of each row: lattices, or expressions of which only NULL or distinctness matters."""
    if isinstance(part, AllUnits):
        return ()
    if isinstance(part, CellPart):
        return (*readings_of(part.of), *part.alternatives)
    if isinstance(part, UnitTotal | UnitMean | GridCounts):
        if isinstance(part.of, GroupKey | Edges | LeadingDigits):
            return (part.of.expr if isinstance(part.of, GroupKey) else part.of.value,)
        part = part.of
    if isinstance(part, LatticeProduct | LatticeShare):
        return (part.first, part.second)
    if isinstance(part, LatticeSum):
        return (part,)
    if isinstance(part, CountDistinct):
        return (part.value,)
    return () if isinstance(part, UnitWeights) or part.present is None else (part.present,)


def expressions_of(part: Part | GridCounts) -> tuple[Expr, ...]:
    """Return the expressions that a part reads of each row."""
    return tuple(each.value if isinstance(each, LatticeSum) else each for each in readings_of(part))


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """The source, the group keys, and the integers requested for each group.

    `limits` is the bound of a unit's rows; parts of units take all rows of a unit in at most `groups` groups. None: no
    row has to be dropped. The key of `execute` decides which rows and groups of a unit are dropped.

    With `every_cell` the groups are all combinations of the keys' public values, or of the rows that list correlated
    keys, in the order of `axes_of`, present or not; otherwise those of them that occur. A row with other values is in
    no group.
    """

    source: Source
    keys: tuple[GroupKey, ...]
    every_cell: bool
    parts: tuple[Part, ...]
    limits: ContributionBound | None = None
    groups: int | None = None
    grids: tuple[GridCounts, ...] = ()


@dataclass(frozen=True, repr=False)
class Grid:
    """The non-zero exact counts by group and point: three int64 arrays of equal length, ordered by group and point."""

    groups: NDArray[np.int64]
    points: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class ExactTable:
    """Exact integers, private: they exist only between `execute` and `privatise`.

    keys: one vector for each key, a cell for each group; parts: shape (parts, groups), int64, or Python integers where
    64 bits could be too few; grids: one for each of the plan's.
    """

    keys: tuple[Vector, ...]
    parts: NDArray[Any]
    groups: int
    grids: tuple[Grid, ...] = ()

    def __repr__(self) -> str:
        return "ExactTable(private)"
