"""What an executor is given and what it must return: a frozen plan in, exact integers out.

The same plan gives the same integers on every engine, bit for bit, in whatever order rows, blocks or threads come.
An executor raises nothing that depends on rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from dpsql.intervals import Number
from dpsql.privacy.unit import ContributionBound
from dpsql.sql.expressions import Expr, Vector
from dpsql.sql.plan import GroupKey, Source

NO_KEY = bytes(32)
LARGEST_STEP_COUNT = 2**45
"""|q| of one row's lattice value stays below this, so that a block's sum cannot wrap."""


@dataclass(frozen=True, slots=True)
class CountRows:
    """The number of rows of a group for which `present` is not NULL; of all rows when it is None."""

    present: Expr | None


@dataclass(frozen=True, slots=True)
class LatticeSum:
    """The sum over a group's rows of q = round((clip(value) - origin) * steps_per_unit), rows with NULL left out.

    The value is clipped to [lower, upper], rounded half to even and then held in {least..most}: whatever an expression
    computes, one row adds an integer of that range. With `whole`, value and origin are integers and q = value - origin.
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
        if not (self.least <= self.most and max(abs(self.least), abs(self.most)) < LARGEST_STEP_COUNT):
            raise ValueError("the lattice of a sum is too fine")


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of privacy units that have a row in a group (one for which `present` is not NULL)."""

    present: Expr | None


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The sum over privacy units of what each adds to a group in all, held in {least..most}."""

    of: CountRows | LatticeSum
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class UnitMean:
    """The sum over privacy units of each one's average in a group, rounded half to even and held in {least..most};
    units without a value there add nothing."""

    of: LatticeSum
    least: int
    most: int


Part = CountRows | LatticeSum | CountUnits | UnitTotal | UnitMean


def of_units(part: Part) -> bool:
    """Whether each unit adds one number to a group, whatever its rows."""
    return isinstance(part, CountUnits | UnitTotal | UnitMean)


def expression_of(part: Part) -> Expr | None:
    """The expression that a part reads of each row, if any."""
    if isinstance(part, UnitTotal | UnitMean):
        part = part.of
    return part.value if isinstance(part, LatticeSum) else part.present


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """Scan and filters, the group keys, and the integers wanted of each group.

    `limits` is the bound of a unit's rows, for CountRows and LatticeSum; the other parts take all rows of a unit in
    `groups` groups at most. None: no row has to be left out. Which rows and groups of a unit are left out is up to the
    key of `execute`.

    With `every_cell` the groups are all combinations of the keys' public values, in their order, present or not;
    otherwise those combinations (inside the public values, where a key has some) that occur.
    """

    source: Source
    keys: tuple[GroupKey, ...]
    every_cell: bool
    parts: tuple[Part, ...]
    limits: ContributionBound | None = None
    groups: int | None = None


@dataclass(frozen=True)
class ExactTable:
    """Exact integers, private: they live from `execute` to `privatise` and nowhere else.

    keys: one vector for each key, a cell for each group; parts: shape (parts, groups), int64, or Python integers where
    64 bits could be too few.
    """

    keys: tuple[Vector, ...]
    parts: NDArray[Any]
    groups: int

    def __repr__(self) -> str:
        return "ExactTable(private)"


class Executor(Protocol):
    """Runs exact plans over the tables that it was made for."""

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """The exact integers of a plan. `key`: 32 fresh bytes that decide which rows of a unit beyond its limits are
        left out; any key is as private, a fresh one favours no row."""
