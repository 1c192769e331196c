"""Privacy units, contribution bounds, and the neighbour relation of tables."""

from __future__ import annotations

from enum import StrEnum

from dpsql.errors import InvalidArgument, as_written
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT


class Neighbours(StrEnum):
    """The relation between two tables that must be hard to tell apart.

    UNBOUNDED: one privacy unit added or removed (the number of units is itself private).
    BOUNDED: one privacy unit's values changed (the number of units is public).
    Source: Kifer, Machanavajjhala, "No Free Lunch in Data Privacy", SIGMOD 2011, section 2.
    """

    UNBOUNDED = "unbounded"
    BOUNDED = "bounded"

    @classmethod
    def of(cls, word: object) -> Neighbours:
        """Return the relation named by `word`. Raises InvalidArgument for any other word."""
        if isinstance(word, str) and word in list(cls):
            return cls(word)
        raise InvalidArgument(
            f"neighbours must be 'unbounded' or 'bounded', got {as_written(word)}.",
            hint="'unbounded' protects the presence of a person, 'bounded' what a person's row says.",
        )


@dataclass(frozen=True, slots=True)
class ContributionBound:
    """The contribution bounds of one privacy unit to an aggregate: at most `rows` rows, in at most `groups` groups, at
    most `per_group` rows in any one group.

    With c_i rows in group i the properties are the largest L1 norm, squared L2 norm and L-infinity norm of (c_i). The
    sum of c_i^2 is convex, so it is largest if as many groups as possible are full and one takes the rest.
    """

    rows: int
    groups: int
    per_group: int

    def __post_init__(self) -> None:
        if not all(1 <= each <= LARGEST_LIMIT for each in (self.rows, self.groups, self.per_group)):
            raise ValueError(f"limits must be whole numbers from 1 to {LARGEST_LIMIT}: {self}")

    @property
    def l1(self) -> int:
        return min(self.rows, self.groups * self.per_group)

    @property
    def linf(self) -> int:
        return min(self.rows, self.per_group)

    @property
    def l2_squared(self) -> int:
        full = min(self.groups, self.rows // self.linf)
        rest = min(self.rows - full * self.linf, self.linf) if full < self.groups else 0
        return full * self.linf**2 + rest**2

    @property
    def most_groups(self) -> int:
        """The maximum number of groups of one unit."""
        return min(self.rows, self.groups)


ONE_ROW = ContributionBound(1, 1, 1)
"""Each row is a privacy unit, in one group."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest distance between exact answers of neighbouring tables, in three norms over all cells."""

    l1: float
    l2: float
    linf: float

    def __post_init__(self) -> None:
        if not 0 <= self.linf <= self.l2 * (1 + 1e-12) or not self.l2 <= self.l1 * (1 + 1e-12):
            raise ValueError(f"not norms of one vector: {self}")
