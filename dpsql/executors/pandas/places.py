"""Where values lie between ascending edges: what `np.searchsorted` says, in a fifth of its time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
Key: TypeAlias = Callable[[Floats], Numbers]
"""Buckets 0..n-1 of values, which never fall as values grow."""

_FEW_EDGES = 1_000
_FEW_VALUES = 1 << 14
"""To make the tables takes longer than to search for fewer."""
_BUCKETS = 4
"""Even buckets to an edge."""
_SHIFT = 41
"""Of the bits of a float: 2^11 buckets to an octave remain."""
_MOST = 1 << 20


class Places:
    """How many edges are less than each of some values. Tables over buckets say where to begin, and an answer whose own
    two edges the value does not lie between is looked for otherwise."""

    def __init__(self, edges: Floats) -> None:
        self._edges = edges
        self._above, self._below = np.append(edges, np.inf), np.append(-np.inf, edges)

    @cached_property
    def _tables(self) -> list[tuple[Key, Numbers]]:
        """Keys, and how many edges lie in earlier buckets: those are less than a value."""
        edges = self._edges
        if len(edges) < _FEW_EDGES or not -np.inf < edges[0] < edges[-1] < np.inf:
            return []
        made = filter(None, (_even(edges), _geometric(edges)))
        return [(key, np.searchsorted(key(edges), np.arange(size))) for key, size in made]

    def of(self, values: Floats) -> Numbers:
        """All edges are less than NaN."""
        found, left = np.zeros(len(values), dtype=np.int64), None
        for key, start in self._tables if len(values) >= _FEW_VALUES else ():
            some = values if left is None else values[left]
            at = start[key(some)]
            at += self._above[at] < some
            wrong = np.flatnonzero(~((self._below[at] < some) & (some <= self._above[at])))
            if left is None:
                found, left = at, wrong
            else:
                found[left] = at
                left = left[wrong]
        if left is None:
            return np.searchsorted(self._edges, values)
        found[left] = np.searchsorted(self._edges, values[left])
        return found


def _even(edges: Floats) -> tuple[Key, int] | None:
    """Of the same width."""
    first, size = edges[0], _BUCKETS * len(edges)
    with np.errstate(over="ignore", divide="ignore"):
        scale = size / (edges[-1] - first)
    if not 0 < scale < np.inf:
        return None

    def key(values: Floats) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore"):
            places: Any = (values - first) * scale
        np.minimum(np.fmax(places, 0, out=places), size - 1, out=places)
        return np.asarray(places.astype(np.int64))

    return key, size


def _geometric(edges: Floats) -> tuple[Key, int] | None:
    """By the leading bits of how far a value lies from where edges are closest together."""
    gaps = np.diff(edges)
    closest = np.flatnonzero(gaps == gaps.min())
    middle = edges[closest[len(closest) // 2]]
    with np.errstate(over="ignore"):
        away = np.abs(edges - middle)
    least, most = (int(each.view(np.int64)) >> _SHIFT for each in (away[away > 0].min(), away.max()))
    reach = most - least + 1
    if 2 * reach + 1 > _MOST:
        return None

    def key(values: Floats) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore"):
            away = values - middle
        bits = np.abs(away).view(np.int64) >> _SHIFT
        bits -= least - 1
        np.minimum(np.maximum(bits, 0, out=bits), reach, out=bits)
        return np.asarray(np.where(away < 0, reach - bits, reach + bits))

    return key, 2 * reach + 1
