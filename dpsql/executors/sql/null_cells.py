"""Cells of rows whose value is NULL or not NULL, without a condition for each row: aggregates skip NULL anyway."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.exact import CellPart, CountRows, LatticeSum
from dpsql.plan.expressions import Call, Expr


def of_values(part: CellPart, values: Mapping[Expr, str]) -> CountRows | LatticeSum | str | None:
    """Return a part of a cell as one over all rows, or its text; None for other cells. values: available columns."""
    value = _value(part.alternatives)
    if value is None or value not in values:
        return None
    if part.number == 1 and isinstance(part.of, LatticeSum) and part.of.value == value:
        return part.of
    if isinstance(part.of, CountRows) and part.of.present is None:
        return CountRows(value) if part.number == 1 else f"(COUNT(*) - COUNT({values[value]}))"
    return None


def _value(alternatives: tuple[Expr, ...]) -> Expr | None:
    """Return the value that the first alternative requires to be present, and the second to be NULL."""
    if len(alternatives) != 2:
        return None
    one, other = alternatives
    none = isinstance(other, Call) and other.function.name == "is_null"
    some = isinstance(one, Call) and one.function.name == "not" and one.args == (other,)
    return other.args[0] if none and some and isinstance(other, Call) else None
