"""Grouping of rows by stored cells first, then of these groups by key: declarations are enforced, and public lists
searched, once per group instead of once per row.

The sums are the same, since a key depends only on its cell. There may be more groups of cells than of keys; none leaves
the engine. This applies if each row adds on its own: without contribution bounds, and without counts of distinct values
or units.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.exact import CountDistinct, ExactPlan, of_units
from dpsql.executors.sql.rows import Names, Rows
from dpsql.plan.expressions import Column

GROUPED = "grouped"


def stored_keys(plan: ExactPlan, rows: Rows) -> dict[str, tuple[str, str]] | None:
    """Return for each key column the column to group by and the text of the key over it; None if rows are not to be
    grouped first. A list that is not the owner's may omit most values, which would make many groups. A text that has to
    be validated is validated once per group if the key has public values."""
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
    """Return the column to group by instead of another, and the text of the latter over it."""
    cell = rows.raw.get(name, (name, name))
    return rows.unread.get(name, cell) if listed else cell


def by_stored_keys(keys: dict[str, tuple[str, str]], rows: Rows, sums: Sequence[str]) -> str:
    """Return the SELECT of groups of cells, with a number for each sum."""
    cells = list(dict.fromkeys(raw for raw, _ in keys.values()))
    listed = [*cells, *(f"{text} AS n{place}" for place, text in enumerate(sums))]
    return f"SELECT {', '.join(listed)} FROM {rows.text} GROUP BY {', '.join(cells)}"


def of_stored_keys(keys: dict[str, tuple[str, str]], rows: Rows, names: Names) -> Rows:
    """Return those groups as rows, with the key columns."""
    made = ", ".join(["*", *(f"{text} AS {name}" for name, (raw, text) in keys.items() if raw != name)])
    return Rows(f"(SELECT {made} FROM {GROUPED}) AS {names.fresh('q')}", rows.columns)
