"""Comparisons of a column with a constant, over stored cells instead of clipped ones.

clip(v) > k is equivalent to v > k for every v if the constant divides the bounds: lower <= k < upper. In this form an
engine can skip whole blocks of a file without matching rows. A NULL in a NOT NULL column compares like the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt

from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.rows import Rows
from dpsql.plan.expressions import Call, Column, Expr, Literal
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval, Number

DAY = 86_400_000_000
"""Microseconds."""
_MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "eq": "eq"}
_SIGNS: Mapping[str, tuple[str, Callable[[Number, Number], bool]]] = {
    "gt": (">", gt),
    "ge": (">=", ge),
    "lt": ("<", lt),
    "le": ("<=", le),
    "eq": ("=", eq),
}
_ORDERED = (Type.INTEGER, Type.REAL, Type.DATE, Type.TIMESTAMP)
_DIVIDES: Mapping[str, Callable[[Interval, Number], bool]] = {
    "gt": lambda ends, k: ends.lower <= k < ends.upper,
    "le": lambda ends, k: ends.lower <= k < ends.upper,
    "ge": lambda ends, k: ends.lower < k <= ends.upper,
    "lt": lambda ends, k: ends.lower < k <= ends.upper,
    "eq": lambda ends, k: ends.lower < k < ends.upper,
}


MOST_PUSHED_CHARACTERS = 32_000
"""Longest text, times the number of conditions, of a WHERE that is not wrapped into one condition. DuckDB copies all
conditions of a WHERE for each that it pushes into a scan: 800 short ones took 6 GB to plan."""


def conjunction(conditions: Sequence[str]) -> str:
    """Return the condition that all of these are TRUE.

    An engine may push the terms of an AND into a scan one by one. No optimizer splits a CASE."""
    text = " AND ".join(f"({each})" for each in conditions)
    if len(conditions) * len(text) <= MOST_PUSHED_CHARACTERS:
        return text
    return f"CASE WHEN {text} THEN TRUE ELSE FALSE END"


def of_stored_cells(condition: Expr, rows: Rows, dialect: Dialect) -> str | None:
    """Return the text of a condition over the stored cell of a clipped column; None if it is no such comparison. It is
    TRUE for the same rows, and may be NULL for others."""
    compared = _compared(condition)
    if compared is None:
        return None
    name, column, value = compared
    cell = rows.columns[column.table, column.name]
    ends = rows.clipped.get(cell)
    if ends is None or not _DIVIDES[name](ends, value):
        return None
    stored = rows.raw[cell][0]
    sign, says = _SIGNS[name]
    text = f"{stored} {sign} {dialect.literal(value, column.type)}"
    default = rows.defaults.get(cell)
    return f"{text} OR {stored} IS NULL" if default is not None and says(default, value) else text


def _compared(condition: Expr) -> tuple[str, Column, Number] | None:
    """Return the comparison, its column, which comes first, and the constant as a value of the column's type."""
    if not (isinstance(condition, Call) and condition.function.name in _MIRRORED and len(condition.args) == 2):
        return None
    (one, other), name = condition.args, condition.function.name
    if isinstance(one, Literal):
        one, other, name = other, one, _MIRRORED[name]
    if not isinstance(other, Literal) or other.type not in _ORDERED or not isinstance(other.value, int | float):
        return None
    column: Expr = one
    value, kind = other.value, other.type
    if isinstance(one, Call) and one.function.name == "date_to_timestamp" and kind is Type.TIMESTAMP:
        day, rest = divmod(int(value), DAY)
        later = rest > 0 and name in ("lt", "ge")
        column, value, kind = one.args[0], day + later, Type.DATE
        if rest and name == "eq":
            return None
    return (name, column, value) if isinstance(column, Column) and column.type is kind else None
