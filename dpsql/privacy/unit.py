"""Whose presence is protected, and which tables count as neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpsql.errors import InvalidArgument


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
        """The relation named by `word`; InvalidArgument for any other word."""
        if isinstance(word, str) and word in list(cls):
            return cls(word)
        raise InvalidArgument(
            f"neighbours must be 'unbounded' or 'bounded', got {word!r}.",
            hint="'unbounded' protects the presence of a person, 'bounded' what a person's row says.",
        )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far apart the exact answers of neighbouring tables can be, in three norms over all cells."""

    l1: float
    l2: float
    linf: float

    def __post_init__(self) -> None:
        if not 0 <= self.linf <= self.l2 * (1 + 1e-12) or not self.l2 <= self.l1 * (1 + 1e-12):
            raise ValueError(f"not norms of one vector: {self}")
