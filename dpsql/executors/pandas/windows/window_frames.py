"""Layouts of rows for window functions: partitions, peers and frames as runs of places."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dpsql.executors.pandas.sums.ranking import Numbers
from dpsql.plan.expressions import Array, Bools, Vector
from dpsql.plan.windows import Frame, WindowCall


class Layout:
    """`order`: the row at each place; `part`, `peers`: ascending numbers of runs."""

    def __init__(self, order: Numbers, part: Numbers, peers: Numbers) -> None:
        self.order = order
        self.peers = peers
        self.start, self.end = _runs(part)
        self.first_peer, self.after_peers = _runs(peers)

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def place(self) -> Numbers:
        return np.arange(len(self.order))


def _runs(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """For each place return the start and the end of its run of equal numbers."""
    heads = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=heads[1:])
    starts = np.flatnonzero(heads)
    run = np.cumsum(heads) - 1
    ends = np.append(starts[1:], len(numbers))
    return starts[run], ends[run] if len(starts) else np.zeros(0, dtype=np.int64)


class FrameBounds:
    """The frame of each place: from `low` to before `high`. numbers: ascending order values of a RANGE frame."""

    def __init__(self, layout: Layout, frame: Frame, numbers: Callable[[], Vector]) -> None:
        self.layout = layout
        low, high = self._by_rows(frame) if frame.kind == "rows" else self._by_range(frame, numbers)
        self.low: Numbers = low
        self.high: Numbers = np.maximum(low, high)

    def _by_rows(self, frame: Frame) -> tuple[Numbers, Numbers]:
        layout, place = self.layout, self.layout.place
        low = layout.start if frame.start is None else np.clip(place + int(frame.start), layout.start, layout.end)
        high = layout.end if frame.end is None else np.clip(place + int(frame.end) + 1, layout.start, layout.end)
        return low, high

    def _by_range(self, frame: Frame, numbers: Callable[[], Vector]) -> tuple[Numbers, Numbers]:
        layout = self.layout
        low, high = layout.start, layout.end
        if frame.start is not None:
            low = self._reach(frame.start, numbers, after=False) if frame.start else layout.first_peer
        if frame.end is not None:
            high = self._reach(frame.end, numbers, after=True) if frame.end else layout.after_peers
        return low, high

    def _reach(self, by: float, numbers: Callable[[], Vector], *, after: bool) -> Numbers:
        """Return the first place of the partition whose value is at least (`after`: above) the current one plus `by`. A
        NULL reaches only its peers, and a number reaches no NULL."""
        layout, cells = self.layout, numbers()
        valid = cells.where_valid()
        low, high = _without_nulls(layout, valid)
        values = cells.values
        target = values + by
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) >> 1
            found = values[np.minimum(middle, len(values) - 1)]
            before = (found <= target) if after else (found < target)
            low = np.where(open_ & before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        return np.where(valid, low, layout.after_peers if after else layout.first_peer)

    def first(self, argument: Vector, call: WindowCall) -> Numbers:
        """Return the place of each frame's first row (of those that are not NULL, if NULLs are ignored); -1: none."""
        if not call.ignore_nulls or argument.valid is None:
            return np.where(self.low < self.high, self.low, -1)
        some, before = present(argument.valid)
        at = np.append(some, -1)[np.minimum(before[self.low], len(some))]
        return np.where(before[self.low] < before[self.high], at, -1)

    def last(self, argument: Vector, call: WindowCall) -> Numbers:
        if not call.ignore_nulls or argument.valid is None:
            return np.where(self.low < self.high, self.high - 1, -1)
        some, before = present(argument.valid)
        at = np.append(some, -1)[before[self.high] - 1]
        return np.where(before[self.low] < before[self.high], at, -1)

    def between(self, sums: Numbers) -> Numbers:
        """Return the differences of running sums, which begin with 0."""
        return sums[self.high] - sums[self.low]

    def extreme(self, values: Array, choose: np.ufunc) -> Array:
        """Return the least or largest value of each non-empty frame; arbitrary in others. A frame of n places is
        covered by two runs of 2^k of them, k the largest with 2^k <= n; the extremes of runs are computed for each k in
        turn."""
        sizes = self.high - self.low
        if not len(values):
            return values
        extremes = values[np.minimum(self.low, len(values) - 1)]
        runs, width = values, 1
        while (sizes >= width).any():
            now = np.flatnonzero((sizes >= width) & (sizes < 2 * width))
            extremes[now] = choose(runs[self.low[now]], runs[self.high[now] - width])
            if len(runs) <= width:
                break
            runs, width = choose(runs[:-width], runs[width:]), 2 * width
        return extremes


def _without_nulls(layout: Layout, valid: Bools) -> tuple[Numbers, Numbers]:
    """Return the run of each partition's places that are not NULL, which are adjacent."""
    before = np.concatenate([[0], np.cumsum(valid)])
    nulls_first = np.append(~valid, False)[layout.start]
    count = before[layout.end] - before[layout.start]
    low = np.where(nulls_first, layout.end - count, layout.start)
    return low, low + count


def present(valid: Bools) -> tuple[Numbers, Numbers]:
    """Return the places that are not NULL, and their number before each place."""
    return np.flatnonzero(valid), np.concatenate([[0], np.cumsum(valid)])
