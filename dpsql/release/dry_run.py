"""A release without noise, for synthetic rows only: noise is zero, and every selection returns the first of the best.

On private rows it would return exact values. Therefore it is made only in `dpsql.session.dry_run`, which has only
synthetic and public rows.
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
    """Zeros instead of a distribution's draws, of the same shape and dtype. `lifted`: the places and heights of
    coordinates that must reach a threshold, so that their groups are shown."""

    law: Any
    lifted: tuple[tuple[int, int], ...] = ()

    def draw(self, *cells: Any) -> Any:
        """Return zeros in the shape of the distribution's draws."""
        none = self.law.draw(0)
        found = np.zeros((len(none), *cells), dtype=none.dtype)
        for place, height in self.lifted:
            found[place] = height
        return found

    @property
    def spread(self) -> float:
        """The variance by which levels are weighted."""
        return float(self.law.spread)


class _ShowAllGroups:
    """Replaces the group selection."""

    def draw(self, units: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(units), dtype=bool)


def _first(gaps: NDArray[Any], rate: Fraction, allowed: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Return the first of the best candidates of each group, at any rate."""
    assert rate > 0  # as for every chooser
    best = gaps == 0 if allowed is None else (gaps == 0) & (allowed > 0)
    return np.asarray(best.argmax(axis=1), dtype=np.int64)


def quiet(release: Release) -> Release:
    """Return the release with zeros for noise, the best values and bounds instead of random ones, and every group
    shown; noisy counts are raised to their threshold."""
    heights = dict(release.selection.conditions)

    def zeros(law: Any, places: tuple[int, ...]) -> _Zeros:
        lifted = [(row, heights[place]) for row, place in enumerate(places) if place in heights]
        return _Zeros(law, tuple(lifted))

    laws = Laws(zeros, _ShowAllGroups(), _first)
    return replace(release, measurements=tuple(each.with_laws(laws) for each in release.measurements))
