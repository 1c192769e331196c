"""Intervals of values of post-processing SQL, simulated from released values only.

Three kinds of runs execute the SQL again. First, the ends of the released values' intervals give the ends of monotone
functions of one value. Second, redrawn noise around the released values gives quantiles for smooth functions of several
(a parametric bootstrap: Efron, Tibshirani, "An Introduction to the Bootstrap", 1993, section 13.3). Third, wider noise
shows whether denominators stay away from 0. A cell without a value in some run has no interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.result import Result
from dpsql.plan.expressions import Vector
from dpsql.plan.query_plan import Postprocess, ReleasePlan
from dpsql.plan.redraws import Noise
from dpsql.postprocess.frames import Frame, Header
from dpsql.postprocess.redraws import InRun, in_runs
from dpsql.release.output.redraws import Uniforms, can_be_redrawn, ends, redrawn, seed_of
from dpsql.release.output.whole_numbers import around_shown
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.session.multi_step.release_frames import frame_and_groups

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

REDRAWS, MORE_REDRAWS = 400, 2_000
"""Number of redraws; more above 95 %."""
WIDE_REDRAWS, WIDE = 200, 2.5
"""Number of redraws with wider noise, and its factor: a denominator 7 standard deviations from 0 hardly ever changes
its sign, one at 5 nearly always does."""
_SHOWN, _LOW, _HIGH, _FIRST = 0, 1, 2, 3


@dataclass(frozen=True)
class ReleaseRows:
    """A release as read by post-processing SQL: its step, its own answer, and its rows."""

    step: ReleasePlan
    answer: Result
    frame: Frame

    def drawable(self) -> bool:
        """Return whether its noise can be redrawn."""
        return can_be_redrawn(self.answer._release, self.answer._released)

    def drawn_anew(self, factors: Floats) -> tuple[Frame, NDArray[np.int64]]:
        """Return its rows with redrawn noise, and the run of each row."""
        release, released = self.answer._release, self.answer._released
        if not self.drawable():  # values computed from it have no such intervals
            size, runs = len(self.frame), len(factors)
            return _at(self.frame, np.tile(np.arange(size), runs)), np.repeat(np.arange(runs), size)
        frame, groups = frame_and_groups(self.step, release, redrawn(release, released, factors))
        return frame, groups // released.groups

    def with_ends(self, names: Collection[str], level: float, *, upper: bool) -> Frame:
        """Return its rows with interval ends instead of values."""
        ends = self.answer._bounds(level)
        vectors = []
        for column, vector in zip(self.step.columns, self.frame.vectors, strict=True):
            bounds = ends.get(self.answer._answer.names[column.output])
            if column.name not in names:
                vectors.append(vector)
            elif bounds is None:
                vectors.append(Vector(np.zeros(len(self.frame)), np.zeros(len(self.frame), dtype=bool)))
            else:
                vectors.append(Vector(bounds[upper].astype(np.float64), vector.valid))
        return replace(self.frame, vectors=tuple(vectors))


@dataclass(frozen=True)
class PostprocessRows:
    """SQL over answers, and its inputs. `rows`: its answer."""

    postprocess: Postprocess
    drawn: tuple[ReleaseRows, ...]
    public: Mapping[str, Frame]
    values: Mapping[str, Any]
    rows: Frame

    def bounds(self, level: float) -> tuple[dict[str, Bounds], frozenset[str]]:
        """Return the intervals of its columns by name, and the columns with intervals from redrawn noise."""
        again = self.postprocess.redrawn
        if again is None:
            return {}, frozenset()
        drawable = {each.step.relation for each in self.drawn if each.drawable()}
        wanted = {place: noise for place, noise in enumerate(again.columns) if self._asked(place, noise, drawable)}
        smooth = any(not noise.single for noise in wanted.values())
        draws, wide = ((REDRAWS if level <= 0.95 else MORE_REDRAWS), WIDE_REDRAWS) if smooth else (0, 0)
        factors = np.concatenate([np.ones(draws), np.full(wide, WIDE)])
        noisy = [place for place, noise in enumerate(again.columns) if not noise.known]
        if not wanted:
            return {}, frozenset()
        frames = [self._in_runs(each, factors, level) for each in self.drawn]
        frames += [(_header(name, frame), frame, None) for name, frame in self.public.items()]
        runs = _FIRST + len(factors)
        numbers = in_runs(again.sql, frames, runs, self.rows, noisy, params=self.values)
        if numbers is None:
            return {}, frozenset()
        gone = self._without_value(frames, single=True), self._without_value(frames, single=False)
        told = [place for place, noise in wanted.items() if not noise.leaves & gone[not noise.single]]
        found = {place: self._ends(place, numbers[place], again.columns[place], draws, level) for place in told}
        names = self.rows.names
        bounds = {names[place]: ends for place, ends in found.items() if ends is not None}
        return bounds, frozenset(names[place] for place in wanted if not again.columns[place].single) & bounds.keys()

    def _asked(self, place: int, noise: Noise, drawable: set[str]) -> bool:
        """Return whether an output may have an interval."""
        name, kind = self.rows.names[place], self.rows.types[place]
        if noise.known or not kind.numeric or self.rows.names.count(name) > 1:
            return False
        return noise.single or (noise.smooth and {relation for relation, _ in noise.leaves} <= drawable)

    def _in_runs(self, each: ReleaseRows, factors: Floats, level: float) -> InRun:
        """Return the rows of a release in each run."""
        assert self.postprocess.redrawn is not None  # checked by the caller
        name = each.step.relation
        leaves = {leaf for noise in self.postprocess.redrawn.columns for of, leaf in noise.leaves if of == name}
        parts = [each.frame, *(each.with_ends(leaves, level, upper=upper) for upper in (False, True))]
        runs = [np.full(len(each.frame), run) for run in range(_FIRST)]
        if len(factors):
            anew, of_runs = each.drawn_anew(factors)
            parts.append(anew)
            runs.append(_FIRST + of_runs)
        frame = _joined([_as_numbers(part, leaves) for part in parts])
        return _header(name, frame), frame, np.concatenate(runs)

    def _without_value(self, frames: Sequence[InRun], *, single: bool) -> set[tuple[str, str]]:
        """Return the released columns with a NULL caused by noise, in the answer or in a run with redrawn noise: outer
        SQL may have replaced such a NULL."""
        gone = set()
        for header, frame, runs in frames:
            if runs is None:  # a public table
                continue
            read = (runs == _SHOWN) if single else (runs == _SHOWN) | (runs >= _FIRST)
            for name, vector in zip(frame.names, frame.vectors, strict=True):
                if not vector.where_valid()[read].all():
                    gone.add((header.name, name))
        return gone

    def _ends(self, place: int, numbers: Floats, noise: Noise, draws: int, level: float) -> Bounds | None:
        """Return the interval of each cell of a column, open if unknown; None if unknown for all cells."""
        vector = self.rows.vectors[place]
        shown = np.where(vector.where_valid(), vector.values.astype(np.float64), np.nan)
        known = np.isclose(numbers[_SHOWN], shown, rtol=1e-9, atol=1e-12)
        if noise.single:
            low, high = np.minimum(numbers[_LOW], numbers[_HIGH]), np.maximum(numbers[_LOW], numbers[_HIGH])
            known &= ~np.isnan(low)
        else:
            known &= np.isfinite(numbers[_FIRST:]).all(axis=0) & ((draws + 1) * (1 - level) >= 2)
            seed = seed_of(*(each.answer._released for each in self.drawn)) + place.to_bytes(4, "big")
            low, high = ends(np.where(known, numbers[_FIRST : _FIRST + draws], 0.0), level, Uniforms(seed))
        if not known.any():
            return None
        bounds = np.where(known, low, -np.inf), np.where(known, high, np.inf)
        return around_shown(bounds, vector) if self.rows.types[place] is Type.INTEGER else bounds


def _header(name: str, frame: Frame) -> Header:
    return Header(name, tuple(zip(frame.names, frame.types, strict=True)), len(frame))


def _as_numbers(frame: Frame, names: Collection[str]) -> Frame:
    """Return the rows with these columns as doubles; NaN is NULL."""
    types, vectors = list(frame.types), list(frame.vectors)
    for place, name in enumerate(frame.names):
        if name in names and types[place].numeric:
            values = vectors[place].values.astype(np.float64)
            types[place], vectors[place] = Type.REAL, Vector(values, vectors[place].where_valid() & ~np.isnan(values))
    return Frame(frame.names, tuple(types), tuple(vectors))


def _at(frame: Frame, places: NDArray[np.int64]) -> Frame:
    return replace(frame, vectors=tuple(vector.at(places) for vector in frame.vectors))


def _joined(frames: Sequence[Frame]) -> Frame:
    """Concatenate frames with the same columns."""
    first = frames[0]
    vectors = []
    for place in range(len(first.names)):
        each = [frame.vectors[place] for frame in frames]
        values = np.concatenate([vector.values for vector in each])
        vectors.append(Vector(values, np.concatenate([vector.where_valid() for vector in each])))
    return Frame(first.names, first.types, tuple(vectors))
