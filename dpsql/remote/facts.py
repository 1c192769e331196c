"""Tables, budgets and costs received from a server, as local objects."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpsql.core.cost import Cost
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval
from dpsql.schema.units import Limits, Unit, WrittenUnit
from dpsql.session.costs import Quote


@dataclass(frozen=True)
class DeclaredTables:
    """The tables that may be read, by folded names, as far as the server discloses them."""

    tables: Mapping[str, TableSchema]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> DeclaredTables:
        tables = [_table(each) for each in said["tables"]]
        return cls({each.name.casefold(): each for each in tables})


def _table(said: Mapping[str, Any]) -> TableSchema:
    word = (
        None if said["unit"] is None else WrittenUnit(*(str(said["unit"][part]) for part in ("column", "table", "key")))
    )
    return TableSchema(
        str(said["name"]),
        tuple(map(_column, said["columns"])),
        unit_word=word,
        unit=None if word is None else Unit(word.column),
        limits=Limits(**said["limits"]),
        public=bool(said["public"]),
    )


def _column(said: Mapping[str, Any]) -> ColumnSchema:
    kind, bounds, keys = Type(said["type"]), said["bounds"], said["keys"]
    return ColumnSchema(
        str(said["name"]),
        kind,
        nullable=bool(said["nullable"]),
        bounds=None if bounds is None else Interval(*(number_of(each) for each in bounds)),
        keys=None if keys is None else tuple(each if kind is Type.TEXT else number_of(each) for each in keys),
        auto=bool(said["auto"]),
    )


def number_of(cell: Any) -> Any:
    """Return a number; numbers that JSON cannot represent are sent as text."""
    if not isinstance(cell, str):
        return cell
    return float(cell) if cell in ("inf", "-inf", "nan") else int(cell)


def quote_of(said: Mapping[str, Any]) -> Quote:
    """Return a quoted cost."""
    return Quote(
        cost_of(said["cost"]),
        remaining_of(said["left"]),
        bool(said["admitted"]),
        said["most"],
        said["most_whole"],
        conversion=None if said["conversion"] is None else Fraction(said["conversion"]),
        replayed=bool(said["replayed"]),
    )


def cost_of(said: Mapping[str, Any]) -> Cost:
    """Return a cost with exact fractions."""
    epsilon = None if said["epsilon"] is None else Fraction(said["epsilon"])
    return Cost(epsilon, Fraction(said["delta"]), Fraction(said["rho"]), Fraction(said["hidden"]))


def remaining_of(said: Mapping[str, Any]) -> RemainingBudget:
    """Return the budget left for the next query."""
    rho = None if said["rho"] is None else Fraction(said["rho"])
    return RemainingBudget(Fraction(said["epsilon"]), Fraction(said["delta"]), rho)
