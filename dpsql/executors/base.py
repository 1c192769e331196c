"""What an executor is given and what it must return: a frozen plan in, exact integers out.

The same plan gives the same integers on every engine, bit for bit, in whatever order rows, blocks or threads come.
An executor raises nothing that depends on rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from dpsql.intervals import Number
from dpsql.sql.expressions import Expr, Vector
from dpsql.sql.plan import GroupKey, Source

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


Part = CountRows | LatticeSum


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """Scan and filters, the group keys, and the integers wanted of each group.

    With `every_cell` the groups are all combinations of the keys' public values, in their order, present or not;
    otherwise those combinations (inside the public values, where a key has some) that occur.
    """

    source: Source
    keys: tuple[GroupKey, ...]
    every_cell: bool
    parts: tuple[Part, ...]


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

    def execute(self, plan: ExactPlan) -> ExactTable:
        """The exact integers of a plan."""
