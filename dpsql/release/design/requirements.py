"""Requirements of a design besides its aggregates."""

from __future__ import annotations

from dpsql.core.exact import ExactPlan
from dpsql.plan.query import Query
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class GroupRequirement:
    """`selects`: a count decides which groups are shown; with `of_units` it must count units. `levels`: sums of the
    coordinates over groups get noise too. `centre_all`: every sum with a separate count; `on_all`: sums without a
    separate count are centred by the count of all rows; `raw`: no sum is centred; `around`: counts of some rows less
    half the count of all. `divides`: answers may be divided by one another; `compares`: conditions on answers select
    rows; `public`: the exact plan without its parts, if all groups are public."""

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
        """Return the requirements of a query."""
        levels = bool(query.plan.sets)
        return cls(of_units=of_units, levels=levels, divides=query.divides, compares=query.compares, public=public)
