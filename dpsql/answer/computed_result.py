"""Answers whose rows post-processing SQL computed from released values, with their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

from dpsql.answer.result import Result, checked_level
from dpsql.answer.warnings import without_interval
from dpsql.release.intervals.intervals import Bounds

SIMULATED = "~ marks simulated intervals"


class Intervals(Protocol):
    """Provider of intervals of values that post-processing SQL computed."""

    def bounds(self, level: float) -> tuple[dict[str, Bounds], frozenset[str]]:
        """Return the intervals by column, and which columns have simulated ones."""


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ComputedResult(Result):
    """An answer with a provider of intervals for its computed columns."""

    _computed: Intervals | None = None

    @cached_property
    def _kept(self) -> dict[float, tuple[dict[str, Bounds], frozenset[str]]]:
        return {}

    def _intervals(self, level: float) -> tuple[dict[str, Bounds], frozenset[str]]:
        """Return the intervals at a level, computed at first access."""
        if self._computed is None:
            return {}, frozenset()
        if level not in self._kept:
            self._kept[level] = self._computed.bounds(level)
        return self._kept[level]

    def _simulated(self, level: float) -> frozenset[str]:
        """Return the columns whose intervals are simulated."""
        return self._intervals(level)[1]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class StagedResult(ComputedResult):
    """The answer of SELECTs over the answer of one release, which ran here. A column that passes on a released value
    has that value's own interval, given that its row was chosen; `_computed` provides the intervals of the others."""

    def _bounds(self, level: float, *, simultaneous: bool = False, first: int | None = None) -> dict[str, Bounds]:
        own = super()._bounds(level, simultaneous=simultaneous, first=first)
        more = {} if simultaneous else self._intervals(checked_level(level))[0]
        return own | {name: (low[:first], high[:first]) for name, (low, high) in more.items() if name not in own}

    def _simulated(self, level: float) -> frozenset[str]:
        """Return the columns whose intervals are simulated."""
        return super()._simulated(level) - super()._bounds(level).keys()

    def _silent(self) -> Iterator[str]:
        if self._simulated(0.95):
            yield SIMULATED
        bounds = self._bounds(0.95)
        names = [name for name in without_interval(self._release, self._answer) if name not in bounds]
        if names:
            yield f"{', '.join(names)}: no interval"
