"""A release without its noise, for made-up rows alone: every law of it gives zeros, every choice the first of the best.

What it makes of people's rows would be their exact values. So it is made in `dpsql.trial` and nowhere else, which has
made-up and public rows only.
"""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exponential import Chooser
from dpsql.core.measurement import GroupsByChance, Share
from dpsql.release.auto_bounds import Search, Searches
from dpsql.release.choices import EXACT, Draw
from dpsql.release.levels import Levels
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True)
class _Zeros:
    """Zeros in the place of a law's draws: of the same shape and dtype. `lifted`: the place and the height of a
    coordinate that has to reach a threshold, so that values are such as are shown."""

    law: Any
    lifted: tuple[int, int] | None = None

    def draw(self, *cells: Any) -> Any:
        """As a law of noise draws them."""
        none = self.law.draw(0)
        found = np.zeros((len(none), *cells), dtype=none.dtype)
        if self.lifted is not None:
            found[self.lifted[0]] = self.lifted[1]
        return found

    @property
    def spread(self) -> float:
        """The variance that levels are weighed by."""
        return float(self.law.spread)


class _AllShown:
    """In the place of the law that chooses groups."""

    def draw(self, units: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(units), dtype=bool)


def _first(gaps: NDArray[Any], rate: Fraction, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """The first of the best candidates of each group, at whatever rate."""
    assert rate > 0  # as for every chooser
    best = gaps == 0 if allowed is None else (gaps == 0) & allowed
    return np.asarray(best.argmax(axis=1), dtype=np.int64)


class _QuietDraw(Draw):
    @property
    def chooser(self) -> Chooser:
        return _first


class _QuietSearch(Search):
    @property
    def chooser(self) -> Chooser:
        return _first


def quiet(release: Release) -> Release:
    """The release with zeros for noise and every group shown; it has its bounds."""
    groups = release.selection
    lifted = (release.lattice.selection, groups.threshold) if groups.threshold is not None else None
    return replace(release, measurements=tuple(_quiet(each, lifted) for each in release.measurements))


def quiet_searches(searches: Searches) -> Searches:
    """The searches with the best bounds in place of drawn ones."""
    return replace(searches, searches=tuple(_QuietSearch(**_fields(each)) for each in searches.searches))


@singledispatch
def _quiet(measurement: Any, _lifted: tuple[int, int] | None) -> Any:
    """A measurement without chance; a noisy count is lifted to the threshold that it has to reach."""
    return measurement


@_quiet.register
def _(share: Share, lifted: tuple[int, int] | None) -> Any:
    if lifted is None or lifted[0] not in share.places:
        return _without_noise(share)
    noise: Any = _Zeros(share.noise, (share.places.index(lifted[0]), lifted[1]))
    return replace(share, noise=noise)


@_quiet.register
def _(levels: Levels, _lifted: tuple[int, int] | None) -> Any:
    return replace(levels, measured=tuple(_without_noise(level) for level in levels.measured))


@_quiet.register
def _(groups: GroupsByChance, _lifted: tuple[int, int] | None) -> Any:
    law: Any = _AllShown()
    return replace(groups, law=law)


@_quiet.register
def _(draw: Draw, _lifted: tuple[int, int] | None) -> Any:
    if draw.mechanism == EXACT:
        return draw
    noise: Any = None if draw.noise is None else _Zeros(draw.noise)
    return _QuietDraw(**{**_fields(draw), "noise": noise})


def _without_noise(measured: Any) -> Any:
    return replace(measured, noise=_Zeros(measured.noise))


def _fields(one: Any) -> dict[str, Any]:
    return {each.name: getattr(one, each.name) for each in fields(one)}
