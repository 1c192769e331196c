"""Units with more rows, or in more groups, than their limits. Only their rows are hashed and sorted; all rows of others
are kept. This depends only on a unit's own rows, so it changes no answer."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.exact import ExactPlan, of_units
from dpsql.executors.sql.rows import Names
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class Limits:
    """The contribution bounds of a unit: its groups for parts of units; its groups, rows per group and rows for parts
    of rows. None: unlimited."""

    of_units: int | None
    groups: int | None
    per_group: int | None
    rows: int | None

    @classmethod
    def of(cls, plan: ExactPlan) -> Limits:
        """Return the bounds of a plan, without those that others imply."""
        keyed = bool(plan.keys)
        of_groups = plan.groups if any(map(of_units, plan.parts)) and keyed else None
        limits = plan.limits if plan.grids or not all(map(of_units, plan.parts)) else None
        if limits is None:
            return cls(of_groups, None, None, None)
        most = limits.rows if keyed else limits.linf
        groups = limits.groups if keyed and limits.groups < limits.rows else None
        if groups is not None and of_groups is not None and of_groups <= groups:
            groups = None
        return cls(of_groups, groups, limits.per_group if keyed and limits.per_group < limits.rows else None, most)

    @property
    def any(self) -> bool:
        return self.of_units is not None or self.rows is not None

    def above(self, source: str, unit: str, keys: Sequence[str], names: Names) -> str:
        """Return the units beyond the bounds, as a SELECT of one column over a table of rows."""
        of_groups = [each for each in (self.of_units, self.groups) if each is not None]
        most = min(of_groups, default=None)
        if self.rows is not None and self.per_group is None and (most is None or most >= self.rows):
            return f"SELECT {unit} FROM {source} GROUP BY {unit} HAVING COUNT(*) > {self.rows}"
        number, by = names.fresh("n"), ", ".join([unit, *keys])
        more = [] if most is None else [f"COUNT(*) > {most}"]
        more += [] if self.per_group is None else [f"MAX({number}) > {self.per_group}"]
        more += [] if self.rows is None else [f"SUM({number}) > {self.rows}"]
        grouped = f"SELECT {unit}, COUNT(*) AS {number} FROM {source} GROUP BY {by}"
        return f"SELECT {unit} FROM ({grouped}) AS {names.fresh('q')} GROUP BY {unit} HAVING {' OR '.join(more)}"
