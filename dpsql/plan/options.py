"""Privacy options of a text: WITH DIFFERENTIAL_PRIVACY, and the named arguments of an aggregate, as data.
`dpsql.sql.syntax.options` reads and checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from fractions import Fraction

from dpsql.errors import Span
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval


class GroupSelection(StrEnum):
    """Method of partition selection."""

    PUBLIC_GROUPS = "PUBLIC_GROUPS"
    LAPLACE_THRESHOLD = "LAPLACE_THRESHOLD"
    GAUSSIAN_THRESHOLD = "GAUSSIAN_THRESHOLD"
    TRUNCATED_GEOMETRIC = "TRUNCATED_GEOMETRIC"


class ReportFormat(StrEnum):
    """Format of a cell with an aggregate and its noise interval."""

    JSON = "JSON"


@dataclass(frozen=True)
class Options:
    """Options of a WITH DIFFERENTIAL_PRIVACY clause; None if missing.

    `places` has the position of each value in the text, and does not take part in comparisons.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    privacy_unit_column: str | None = None
    max_groups_contributed: int | None = None
    max_rows_contributed: int | None = None
    group_selection_strategy: GroupSelection | None = None
    min_privacy_units_per_group: int | None = None
    group_selection_epsilon: Fraction | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def selects_groups(self) -> bool:
        """Return whether an option asks for a private selection of groups."""
        private = self.group_selection_strategy not in (None, GroupSelection.PUBLIC_GROUPS)
        return private or self.min_privacy_units_per_group is not None or self.group_selection_epsilon is not None


@dataclass(frozen=True)
class AggregateOptions:
    """Named arguments of one aggregate; None if missing."""

    contribution_bounds_per_row: Interval | None = None
    contribution_bounds_per_group: Interval | None = None
    epsilon: Fraction | None = None
    report_format: ReportFormat | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
