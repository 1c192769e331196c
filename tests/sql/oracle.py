"""How an answer of dpsql's is compared with DuckDB's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

Row = tuple[Any, ...]


def same(ours: Any, theirs: Any, tolerance: float = 1e-6) -> bool:
    """Equal, or numbers that agree to six digits; a date is the timestamp of its midnight."""
    if isinstance(ours, bool) or isinstance(theirs, bool) or ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, date) or isinstance(theirs, date):
        return bool(_moment(ours) == _moment(theirs))
    if isinstance(ours, str) or isinstance(theirs, str):
        return bool(ours == theirs)
    return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=tolerance)


def _moment(value: Any) -> Any:
    plain_date = isinstance(value, date) and not isinstance(value, datetime)
    return datetime(value.year, value.month, value.day) if plain_date else value


def same_rows(ours: Iterable[Row], theirs: Iterable[Row], tolerance: float = 1e-6) -> bool:
    """The same rows in the same order."""
    left, right = list(ours), list(theirs)
    return len(left) == len(right) and all(_same_row(a, b, tolerance) for a, b in zip(left, right, strict=True))


def matched(ours: Iterable[Row], theirs: Iterable[Row], tolerance: float = 1e-6) -> tuple[list[Row], list[Row]]:
    """The rows of ours that theirs lacks, and of theirs that ours lacks, in whatever order they come."""
    missing, unmet = list(theirs), []
    for row in ours:
        place = next((k for k, other in enumerate(missing) if _same_row(row, other, tolerance)), None)
        if place is None:
            unmet.append(row)
        else:
            missing.pop(place)
    return unmet, missing


def _same_row(ours: Row, theirs: Row, tolerance: float = 1e-6) -> bool:
    return len(ours) == len(theirs) and all(same(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
