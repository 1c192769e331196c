"""The sections of a statement: parts of rows by group, parts of units by group, each grid by group and point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from dpsql.core.exact import AllUnits, ExactPlan, GridCounts, LatticeSum, of_units
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.executors.sql.row_values import big
from dpsql.executors.sql.statement import Section
from dpsql.executors.sql.sums import Sums
from dpsql.executors.sql.unit_numbers import most_of_unit, number_of
from dpsql.schema.frozen import dataclass


def sections_of(plan: ExactPlan) -> tuple[Section, ...]:
    """Return the sections, parts of rows before parts of units. The first section has each group once, since every unit
    with a row in a group counts in both. Each part that is the same in all groups has its own section."""
    of_rows = tuple(place for place, part in enumerate(plan.parts) if not of_units(part))
    of_all = tuple(place for place, part in enumerate(plan.parts) if isinstance(part, AllUnits))
    of_unit = tuple(place for place, part in enumerate(plan.parts) if of_units(part) and place not in of_all)
    sections = [Section(of_rows)] if of_rows or not of_unit else []
    sections += [Section(of_unit)] if of_unit else []
    sections += [Section((place,), of_all=True) for place in of_all]
    return (*sections, *(Section(grid=number) for number in range(len(plan.grids))))


@dataclass(frozen=True, repr=False)
class SectionWriter:
    """Writer of sections over a table of rows, with the names of their keys and of their unit; conditions: those of
    rows that count in parts of rows."""

    plan: ExactPlan
    sums: Sums
    source: str
    keys: Sequence[str]
    unit: str | None
    conditions: Sequence[str]

    def text(self, section: Section) -> tuple[str, int]:
        """Return the SELECT of a section, and the number of its numeric columns."""
        if section.of_all:
            return self._of_all_units()
        if section.grid is not None:
            return self._of_grid(self.plan.grids[section.grid])
        if section.parts and of_units(self.plan.parts[section.parts[0]]):
            return self._of_units(section.parts)
        return self._of_rows(section.parts)

    def _of_rows(self, parts: Sequence[int]) -> tuple[str, int]:
        sums = [self.sums.text(self.plan.parts[part], self.conditions) for part in parts]
        listed = [*self.keys, *(f"{text} AS n{place}" for place, text in enumerate(sums))]
        return f"SELECT {', '.join(listed) or 'COUNT(*) AS n0'} FROM {self.source}{self._by(self.keys)}", len(sums)

    def _of_units(self, parts: Sequence[int]) -> tuple[str, int]:
        """Compute one number of each unit in each group, and their sums."""
        unit, dialect = self._some_unit(), self.sums.dialect
        numbers = [
            number_of(self.plan.parts[part], f"y{place}", self.sums.columns, unit, dialect)
            for place, part in enumerate(parts)
        ]
        layers = [
            [f"{text} AS {name}" for each in layer for name, text in each.items()]
            for layer in zip_longest(*numbers, fillvalue={})
        ]
        inner = f"SELECT {', '.join([*self.keys, *layers[0]])} FROM {self.source}{self._by([*self.keys, unit])}"
        for depth, layer in enumerate(layers[1:]):
            inner = f"SELECT *, {', '.join(layer)} FROM ({inner}) AS of_units{depth}"
        sums = [dialect.total(f"y{place}", most_of_unit(self.plan.parts[part])) for place, part in enumerate(parts)]
        outer = ", ".join([*self.keys, *(f"COALESCE({text}, 0) AS n{place}" for place, text in enumerate(sums))])
        return f"SELECT {outer} FROM ({inner}) AS of_units{self._by(self.keys)}", len(numbers)

    def _of_all_units(self) -> tuple[str, int]:
        """Count the units in any group."""
        nulls = "".join(f"NULL AS {name}, " for name in self.keys)
        return f"SELECT {nulls}COUNT(DISTINCT {self._some_unit()}) AS n0 FROM {self.source}", 1

    def _of_grid(self, grid: GridCounts) -> tuple[str, int]:
        columns = self.sums.columns
        if isinstance(grid.of, LatticeSum):
            point = f"({columns.steps[grid.of]} - {big(grid.of.least)})"
        else:
            point = columns.places[grid]
        where = " AND ".join([f"{point} IS NOT NULL", *self.conditions])
        listed = ", ".join([*self.keys, f"{point} AS n0", "COUNT(*) AS n1"])
        return f"SELECT {listed} FROM {self.source} WHERE {where}{self._by([*self.keys, point])}", 2

    def _by(self, names: Sequence[str]) -> str:
        return f" GROUP BY {', '.join(names)}" if names else ""

    def _some_unit(self) -> str:
        if self.unit is None:
            raise MissingFeature("units of public rows")
        return self.unit
