"""The privacy unit of a table as a ledger records it: charges protect that unit and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from dpsql.errors import LedgerError
from dpsql.schema.frozen import dataclass


class UnitKind(StrEnum):
    """The kind of declaration of a table's privacy unit."""

    ROW = "row"
    COLUMN = "column"
    PATH = "path"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Place:
    """A column on the path to a unit, and the type in which its values are compared."""

    table: str
    column: str
    type: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column} ({self.type})"


@dataclass(frozen=True, slots=True)
class TableUnit:
    """The privacy unit of one table. Names are folded: they match without regard to case.

    path: empty if each row is a unit or the table is public; the unit's column; or, for a path, each column on the way
    with the key that it leads to, and the unit's column at the end.
    """

    table: str
    kind: UnitKind
    path: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        fits = {UnitKind.COLUMN: len(self.path) == 1, UnitKind.PATH: len(self.path) > 2}
        if not self.table or not fits.get(self.kind, not self.path):
            raise ValueError(f"no unit of a table: {self.table!r}, {self.kind}, {len(self.path)} columns")

    def __str__(self) -> str:
        if self.kind is UnitKind.ROW:
            return "each row is a unit of its own"
        if self.kind is UnitKind.PUBLIC:
            return "public"
        return f"the unit is {' -> '.join(map(str, self.path))}"


def check_units(known: Mapping[str, TableUnit], declared: Iterable[TableUnit]) -> None:
    """Raise LedgerError for a table whose unit differs from the one in the ledger.

    Costs add up for one neighbour relation: tables that differ by one unit. A step charged for rows may reveal many
    times more about a person with many rows, so the sum of both would bound neither. Rows as units also differ from a
    unit column that happens to have one row for each value, since nothing guarantees that it stays so.
    """
    for unit in declared:
        before = known.get(unit.table, unit)
        if before != unit:
            raise LedgerError(
                f'table "{unit.table}" has another privacy unit in this ledger.\nIt has:  {before}\nAsked for: {unit}',
                hint="What was charged protects that unit alone. Declare it as before, or, if the data are others, "
                "give\nthe table another name. Limits (max_rows, ...) may differ.",
            )
