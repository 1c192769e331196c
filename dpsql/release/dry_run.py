"""A release without its noise, for made-up rows alone: every law of it gives zeros, every choice the first of the best.

What it makes of people's rows would be their exact values. So it is made in `dpsql.trial` and nowhere else, which has
made-up and public rows only.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.measurement import Laws
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class _Zeros:
    """Zeros in the place of a law's draws: of the same shape and dtype. `lifted`: the places and the heights of
    coordinates that have to reach some, so that values are such as are shown."""

    law: Any
    lifted: tuple[tuple[int, int], ...] = ()

    def draw(self, *cells: Any) -> Any:
        """As a law of noise draws them."""
        none = self.law.draw(0)
        found = np.zeros((len(none), *cells), dtype=none.dtype)
        for place, height in self.lifted:
            found[place] = height
        return found

    @property
    def spread(self) -> float:
        """The variance that levels are weighed by."""
        return float(self.law.spread)


class _ShowAllGroups:
    """In the place of the law that chooses groups."""

    def draw(self, units: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(units), dtype=bool)


def _first(gaps: NDArray[Any], rate: Fraction, allowed: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """The first of the best candidates of each group, at whatever rate."""
    assert rate > 0  # as for every chooser
    best = gaps == 0 if allowed is None else (gaps == 0) & (allowed > 0)
    return np.asarray(best.argmax(axis=1), dtype=np.int64)


def quiet(release: Release) -> Release:
    """The release with zeros for noise, the best values and bounds in place of drawn ones, and every group shown; a
    noisy count is lifted to what it has to reach."""
    heights = dict(release.selection.conditions)

    def zeros(law: Any, places: tuple[int, ...]) -> _Zeros:
        lifted = [(row, heights[place]) for row, place in enumerate(places) if place in heights]
        return _Zeros(law, tuple(lifted))

    laws = Laws(zeros, _ShowAllGroups(), _first)
    return replace(release, measurements=tuple(each.with_laws(laws) for each in release.measurements))
