"""The sensitivity of each single coordinate, by which designs scale coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dpsql.core.exact import Part, UnitTotal
from dpsql.core.sensitivity.norms import Terms, change_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.release.identity_key import IdentityKey


def moves_of(parts: tuple[Part, ...], coordinates: Sequence[Terms], analysis: Analysis) -> tuple[int, ...]:
    """Return the L1 sensitivity of each coordinate; designs of one query share most of their coordinates."""
    of, totals = IdentityKey(analysis), tuple(each for each in parts if isinstance(each, UnitTotal))
    return tuple(_move(of, tuple((parts[place], factor) for place, factor in terms), totals) for terms in coordinates)


@lru_cache(maxsize=8192)
def _move(of: IdentityKey[Analysis], terms: tuple[tuple[Part, int], ...], totals: tuple[UnitTotal, ...]) -> int:
    """Return the sensitivity of a combination of parts, given the clipped totals that it may be proportional to."""
    parts = tuple(dict.fromkeys((*(part for part, _ in terms), *totals)))
    places = tuple((parts.index(part), factor) for part, factor in terms)
    return change_of(parts, [places], of.value).sensitivity_of_each[0]
