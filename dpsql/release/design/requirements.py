"""What is wanted of a design, beside its aggregates."""

from __future__ import annotations

from dpsql.core.exact import ExactPlan
from dpsql.plan.query import Query
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class GroupRequirement:
    """`selects`: a count is needed to decide which groups are shown, and with `of_units` it has to be one of units.
    `levels`: sums of the coordinates over groups get noise too. `centre_all`: every sum beside a count of its own;
    `on_all`: sums that have no count of their own beside the count of all rows; `raw`: no sum beside any; `around`:
    counts of some rows less half the count of all. `divides`: answers may be divided by one another; `compares`:
    conditions on answers choose rows; `public`: what is asked of an executor, but for its parts, where there are
    groups, all public, and no others."""

    selects: bool = False
    of_units: bool = False
    levels: bool = False
    centre_all: bool = False
    on_all: bool = False
    raw: bool = False
    around: bool = False
    divides: bool = False
    compares: bool = False
    public: ExactPlan | None = None

    @classmethod
    def of(cls, query: Query, *, of_units: bool, public: ExactPlan | None = None) -> GroupRequirement:
        """What a query wants of it."""
        levels = bool(query.plan.sets)
        return cls(of_units=of_units, levels=levels, divides=query.divides, compares=query.compares, public=public)
