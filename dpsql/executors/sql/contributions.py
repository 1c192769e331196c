"""Contributions of each row to parts and grids, as columns: values, lattice steps, places, cell numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dpsql.core.exact import (
    CellPart,
    Edges,
    ExactPlan,
    GridCounts,
    LatticeSum,
    LeadingDigits,
    expressions_of,
    readings_of,
)
from dpsql.executors.keyed_hash import HashInput, contributed
from dpsql.executors.sql.groups import placed
from dpsql.executors.sql.limits import Hashed
from dpsql.executors.sql.row_values import Lists, bare_steps, big, rounded_text, steps_text, with_place
from dpsql.executors.sql.rows import Rows, Writer
from dpsql.plan.expressions import Expr
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, repr=False)
class Contributions:
    """The columns of rows: of expressions, lattice steps, places on grids, and cell numbers among alternatives. bare:
    the value column of lattices whose steps are values minus the origin; never_null: lattices to which every row adds.
    """

    values: Mapping[Expr, str]
    steps: Mapping[LatticeSum, str]
    bare: Mapping[LatticeSum, str]
    never_null: frozenset[LatticeSum]
    places: Mapping[GridCounts, str]
    cells: Mapping[tuple[Expr, ...], str]

    @property
    def names(self) -> list[str]:
        """All of these columns."""
        return [name for each in (self.values, self.steps, self.places, self.cells) for name in each.values()]

    def hashed(self, plan: ExactPlan) -> list[Hashed]:
        """Return the hashed columns of a row, without its group."""
        return [self._hashed(each) for each in contributed(plan)]

    def _hashed(self, reading: HashInput) -> Hashed:
        of = reading.of
        if isinstance(of, LatticeSum):
            return self.steps[of], Type.INTEGER, reading.limbs
        if isinstance(of, Edges | GroupKey | LeadingDigits):
            place = next(name for grid, name in self.places.items() if grid.of == of)
            return place, Type.INTEGER, reading.limbs
        return self.values[of], of.type, reading.limbs


def contributions(plan: ExactPlan, rows: Rows, writer: Writer, lists: Lists) -> tuple[Rows, Contributions]:
    """Return the rows with a column for each lattice, place, value or presence that is read."""
    exprs = list(dict.fromkeys(expr for part in (*plan.parts, *plan.grids) for expr in expressions_of(part)))
    rows, names = writer.with_values(rows, exprs)
    values = dict(zip(exprs, names, strict=True))
    readings = [each for part in (*plan.parts, *plan.grids) for each in readings_of(part)]
    lattices = [each for each in readings if isinstance(each, LatticeSum)]
    never_null = frozenset(each for each in lattices if values[each.value] in rows.defaults)
    rows, steps, bare = _stepped(dict.fromkeys(lattices), values, rows, writer)
    rows, places = _placed(plan, values, rows, writer, lists)
    rows, cells = _in_cells(plan, values, rows, writer)
    return rows, Contributions(values, steps, bare, never_null, places, cells)


def _stepped(
    lattices: Iterable[LatticeSum], values: Mapping[Expr, str], rows: Rows, writer: Writer
) -> tuple[Rows, dict[LatticeSum, str], dict[LatticeSum, str]]:
    """Return the rows with their steps, and the steps that are values minus the origin."""
    steps: dict[LatticeSum, str] = {}
    bare: dict[LatticeSum, str] = {}
    products: dict[LatticeSum, str] = {}
    for part in lattices:
        value = values[part.value]
        if part.value.type is Type.INTEGER and bare_steps(part, rows.bounded.get(value)):
            bare[part] = value
            text = f"{value} - {big(int(part.origin))}" if part.origin else value
            rows, steps[part] = writer.with_column(rows, text, "s")
            continue
        text = steps_text(part, value, writer.dialect, rows.clipped.get(value))
        if part.whole:
            rows, steps[part] = writer.with_column(rows, text, "s")
        else:
            rows, products[part] = writer.with_column(rows, text, "r")
    for part, product in products.items():
        rows, steps[part] = writer.with_column(rows, rounded_text(part, product, writer.dialect), "s")
    return rows, steps, bare


def _placed(
    plan: ExactPlan, values: Mapping[Expr, str], rows: Rows, writer: Writer, lists: Lists
) -> tuple[Rows, dict[GridCounts, str]]:
    """Return the rows with their places on grids other than lattices."""
    places: dict[GridCounts, str] = {}
    for grid in plan.grids:
        if isinstance(grid.of, GroupKey):
            rows, places[grid] = placed(grid.of, plan.source, rows, writer, lists)
        elif not isinstance(grid.of, LatticeSum):
            rows, places[grid] = with_place(grid.of, values[grid.of.value], rows, writer, lists)
    return rows, places


def _in_cells(
    plan: ExactPlan, values: Mapping[Expr, str], rows: Rows, writer: Writer
) -> tuple[Rows, dict[tuple[Expr, ...], str]]:
    """Return the rows with the number of the first alternative that is TRUE, from 1; 0 if there is none."""
    cells: dict[tuple[Expr, ...], str] = {}
    for alternatives in dict.fromkeys(part.alternatives for part in plan.parts if isinstance(part, CellPart)):
        rows, cells[alternatives] = writer.with_column(rows, _number_text(alternatives, values), "w")
    return rows, cells


def _number_text(alternatives: Sequence[Expr], values: Mapping[Expr, str]) -> str:
    whens = [f"WHEN {values[each]} THEN {number}" for number, each in enumerate(alternatives, 1)]
    return f"CASE {' '.join(whens)} ELSE 0 END"
