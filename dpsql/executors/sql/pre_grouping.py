"""Rows that are grouped by stored cells first, and these groups by what their cells mean: facts are enforced on keys,
and keys looked up in public lists, once a group instead of once a row.

Integers that rows add up to are the same, for what a key is follows from its cell. There may be more groups of cells
than of keys; none leaves the engine. It is done where each row adds by itself: where units have no limits, and nothing
is counted that is different or of units.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.exact import CountDistinct, ExactPlan, of_units
from dpsql.executors.sql.rows import Names, Rows
from dpsql.plan.expressions import Column

GROUPED = "grouped"


def stored_keys(plan: ExactPlan, rows: Rows) -> dict[str, tuple[str, str]] | None:
    """For each column that is a key, the one to group by and what it is made of it; None where rows are not to be
    grouped by these first. A list that is not the owner's may leave most values out, which would be many groups. A text
    that has to be looked at is so once a group where it has public values."""
    if not plan.keys or plan.limits is not None or plan.groups is not None or plan.grids:
        return None
    if any(of_units(part) or isinstance(part, CountDistinct) for part in plan.parts):
        return None
    stored: dict[str, tuple[str, str]] = {}
    for key in plan.keys:
        if not isinstance(key.expr, Column) or (key.values is not None and not key.listed):
            return None
        name = rows.columns[key.expr.table, key.expr.name]
        stored[name] = _stored(name, rows, listed=key.values is not None)
    worth = any(key.values is not None for key in plan.keys) or any(name != raw for name, (raw, _) in stored.items())
    return stored if worth else None


def _stored(name: str, rows: Rows, *, listed: bool) -> tuple[str, str]:
    """The column to group by in place of another, and what that is made of it."""
    cell = rows.raw.get(name, (name, name))
    return rows.unread.get(name, cell) if listed else cell


def by_stored_keys(keys: dict[str, tuple[str, str]], rows: Rows, sums: Sequence[str]) -> str:
    """The SELECT of groups of cells, with a number for each sum."""
    cells = list(dict.fromkeys(raw for raw, _ in keys.values()))
    listed = [*cells, *(f"{text} AS n{place}" for place, text in enumerate(sums))]
    return f"SELECT {', '.join(listed)} FROM {rows.text} GROUP BY {', '.join(cells)}"


def of_stored_keys(keys: dict[str, tuple[str, str]], rows: Rows, names: Names) -> Rows:
    """Those groups as rows, with the columns that are keys."""
    made = ", ".join(["*", *(f"{text} AS {name}" for name, (raw, text) in keys.items() if raw != name)])
    return Rows(f"(SELECT {made} FROM {GROUPED}) AS {names.fresh('q')}", rows.columns)
