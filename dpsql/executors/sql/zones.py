"""Clock times of a zone at instants, in SQL: the offset by a tree of comparisons with constants."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.schema.zones import offsets_of


def offset_text(instant: str, zone: str, constant: Callable[[int], str], offset: Callable[[int], str]) -> str:
    """Return the offset of a zone's clocks at an instant. constant, offset: write instants and offsets in
    microseconds."""
    table = offsets_of(zone)

    def tree(low: int, high: int) -> str:
        """Return the offset, known to be at one of the places low .. high."""
        if low == high:
            return offset(table.offsets[low])
        middle = (low + high) // 2
        before = f"{instant} < {constant(table.instants[middle])}"
        return f"CASE WHEN {before} THEN {tree(low, middle)} ELSE {tree(middle + 1, high)} END"

    return tree(0, len(table.offsets) - 1)
