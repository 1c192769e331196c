"""Comparisons of a column with a constant, over stored cells instead of cells that are held to their bounds.

clip(v) > k says the same as v > k, wherever v lies, where the constant divides the bounds: lower <= k < upper. Written
so, an engine can skip whole blocks of a file that no row of can meet it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpsql.executors.sql.rows import Rows
from dpsql.plan.expressions import Call, Column, Expr, Literal
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval, Number

_MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "eq": "eq"}
_ORDERED = (Type.INTEGER, Type.DATE, Type.TIMESTAMP)
_DIVIDES: Mapping[str, Callable[[Interval, Number], bool]] = {
    "gt": lambda ends, k: ends.lower <= k < ends.upper,
    "le": lambda ends, k: ends.lower <= k < ends.upper,
    "ge": lambda ends, k: ends.lower < k <= ends.upper,
    "lt": lambda ends, k: ends.lower < k <= ends.upper,
    "eq": lambda ends, k: ends.lower < k < ends.upper,
}


def of_stored_cells(condition: Expr, rows: Rows) -> Rows:
    """The rows as a condition may read them: the stored column in place of one that is held to its bounds, if it is
    such a comparison."""
    if not (isinstance(condition, Call) and condition.function.name in _MIRRORED and len(condition.args) == 2):
        return rows
    (one, other), name = condition.args, condition.function.name
    if isinstance(one, Literal):
        one, other, name = other, one, _MIRRORED[name]
    if not (isinstance(one, Column) and isinstance(other, Literal) and one.type is other.type and one.type in _ORDERED):
        return rows
    column = rows.columns[one.table, one.name]
    ends = rows.clipped.get(column)
    if ends is None or not isinstance(other.value, int) or not _DIVIDES[name](ends, other.value):
        return rows
    return Rows(rows.text, {**rows.columns, (one.table, one.name): rows.raw[column][0]})
