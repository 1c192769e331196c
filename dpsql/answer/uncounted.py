"""Rows that are in no group, because their key is none of the declared values. The note follows from the declaration,
which is public, whether or not there are such rows."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.sensitivity.stability import stability
from dpsql.plan.expressions import Column
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import scans_of
from dpsql.plan.query import GroupKey
from dpsql.release.release import Release


def uncounted_rows(release: Release) -> str:
    """Describe the rows that declared lists of keys leave out or count as NULL; "" if all rows are counted as they
    are."""
    if not stability(release.query.plan.input).by_unit:  # public rows
        return ""
    return "; ".join(
        part for key in release.query.plan.keys if _is_declared(release, key) for part in _of_key(release, key)
    )


def _is_declared(release: Release, key: GroupKey) -> bool:
    """Return whether the key's list of values is declared for a private column. Other lists follow from joins, which
    determine the rows that they keep."""
    if not key.listed or not isinstance(key.expr, Column):
        return False
    scans = (
        scan for scan in scans_of(release.query.plan.input) if scan.name == key.expr.table and not scan.table.public
    )
    columns = (scan.table.by_name.get(key.expr.name.casefold()) for scan in scans)
    return any(column is not None and column.keys is not None for column in columns)


def _of_key(release: Release, key: GroupKey) -> Iterator[str]:
    values = key.values or ()
    given = len(values) - (None in values)
    those = f"none of the {given:,} declared values" if given != 1 else "not the declared value"
    rows = f"rows whose {key.name} is {those}"
    if None in values:
        yield f"{rows} are counted as NULL"
    elif fact(key.expr, known_of(release.query.plan.input)).nullable:
        yield f"{rows}, or NULL, are not counted"
    else:
        yield f"{rows} are not counted"
