"""Group keys whose values a prior release of the statement shows.

Such a key reads columns of a prior answer, equals one by an inner join or a condition, or stands before IN (...) of
one. Every row that reaches the aggregate then has one of the answer's values, which are public by that time. Their
maximum number is known in advance, and planning uses only that.
"""

from __future__ import annotations

import math

from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.nodes import Mark, Scan, Source, scans_of
from dpsql.plan.prior_releases import is_shown
from dpsql.plan.query import MOST_DERIVED_CELLS, ReleasedKey
from dpsql.schema.columns import Key, Type
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.private_rows import PrivateRows, Rows, Step, all_of, equality, places_of
from dpsql.sql.bind.public_keys import fulfilled_marks, public_parts, weakened
from dpsql.sql.names.scopes import Scope


def shown_key(expr: Expr, source: Source) -> tuple[ReleasedKey, tuple[Key, ...]] | None:
    """Return the source of a key's values and distinct placeholder values, as many as there can be.

    None if no prior release decides the key, or if it has more values than are shown at once.
    """
    if not any(is_shown(scan.table) for scan in scans_of(source)):
        return None
    public, terms = public_parts(source)
    shown = {place: rows for place, rows in public.items() if is_shown(rows.table)}
    asked = places_of(expr)
    if asked and asked <= shown.keys():
        return _planned(_over(expr, shown, terms, present=False), expr)
    for term in terms:
        column = _equal_to(expr, term, shown)
        if column is not None:
            return _planned(_over(column, shown, terms, present=True), expr)
    for mark in fulfilled_marks(source):
        if mark.condition is None and len(mark.keys) == 1 and mark.keys[0][0] == expr:
            listed = _listed_in(mark, expr)
            return None if listed is None else _planned(listed, expr)
    return None


def _equal_to(expr: Expr, term: Expr, shown: dict[str, Rows]) -> Expr | None:
    """Return the answer's column, of the same type, that a condition equates with a key."""
    pair = equality(term)
    for one, other in (pair, pair[::-1]) if pair is not None else ():
        if one == expr and _is_column_of(other, shown) and other.type is expr.type:
            return other
    return None


def _listed_in(mark: Mark, expr: Expr) -> tuple[ReleasedKey, int] | None:
    """Return the list that contains a key, if an answer shows it."""
    listed, scans = mark.keys[0][1], list(scans_of(mark.inner))
    if (
        len(scans) != 1
        or not is_shown(scans[0].table)
        or not isinstance(listed, Column)
        or listed.type is not expr.type
    ):
        return None
    return ReleasedKey(mark.inner, listed, present=True), _rows_of(scans)


def _is_column_of(expr: Expr, shown: dict[str, Rows]) -> bool:
    return isinstance(expr, Column) and expr.table in shown


def _over(expr: Expr, shown: dict[str, Rows], terms: list[Expr], *, present: bool) -> tuple[ReleasedKey, int]:
    """Return the values of an expression over answers, in the rows that satisfy the conditions on answers only."""
    places = places_of(expr)
    scans = [scan for place in sorted(places) for scan in scans_of(shown[place].source)]
    steps = tuple(Step(shown[place]) for place in sorted(places))
    conditions = [weaker for term in terms if (weaker := weakened(term, places, places_of)) is not None]
    try:
        rows = assembled(PrivateRows(Scope("", "", ()), steps), all_of(conditions))
    except UnsupportedSQL:  # cannot be joined on their own
        return ReleasedKey(shown[min(places)].source, expr, present), MOST_DERIVED_CELLS + 1
    return ReleasedKey(rows.source, expr, present), _rows_of(scans)


def _rows_of(scans: list[Scan]) -> int:
    return math.prod(scan.table.rows or 0 for scan in scans)


def _planned(found: tuple[ReleasedKey, int], expr: Expr) -> tuple[ReleasedKey, tuple[Key, ...]] | None:
    shown, most = found
    return None if most > MOST_DERIVED_CELLS else (shown, _standing_for(max(1, most), expr.type, shown))


def _standing_for(most: int, kind: Type, shown: ReleasedKey) -> tuple[Key, ...]:
    """Return this many distinct values of a type, at most two for booleans."""
    if kind is Type.BOOLEAN:
        truths: tuple[Key, ...] = (False, True) if shown.present else (False, True, None)
        return truths[:most]
    if kind is Type.TEXT:
        return tuple(f"value {number}" for number in range(most))
    return tuple(float(number) if kind is Type.REAL else number for number in range(most))
