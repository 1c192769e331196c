"""What each privacy unit comes to in each group, as an exact integer, clipped and added up.

A unit adds to a group's result one number of {least..most}, made of its own rows in that group alone: so a unit more or
less moves the result of a group by at most max(|least|, |most|), however many rows it has there and whatever they hold,
and moves only groups that it has rows in. Sums of integers know no order: the results are the same for any order of
rows, bit for bit.

Rows are arrays in step: `units` and `groups` int64 codes from 0, shape (rows,), all in group 0 where `groups` is None;
`steps` int64 below 2^45 in size, or sums of all rows of a unit in a group, one for both, up to 2^62; at most 2^30 rows.
Results have shape (cells,), int64 or, where 64 bits could be too few, Python integers. A group without rows has 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import weight_of
from dpsql.executors.pandas.units.bounding import Codes, pair_codes
from dpsql.schema.frozen import dataclass

_ROOM = 2**62
_LIMB = 32
_LOW = 2**_LIMB - 1


def unit_totals(
    units: Codes, groups: Codes | None, cells: int, steps: NDArray[np.int64], *, least: int, most: int
) -> NDArray[Any]:
    """The sum over units of clip(sum of the unit's steps in the group, least, most)."""
    high, low, _, places = _pairs(units, groups, steps)
    if not -_ROOM <= least <= most <= _ROOM:
        return _by_group(_clipped(high.astype(object) * 2**_LIMB + low, least, most), places, cells)
    # A sum beyond 2^62 in size is clipped to that first, which no limit is beyond.
    held = np.clip(high, -(2**30), 2**30 - 1)
    sums = np.where(high == held, held * 2**_LIMB + low, np.where(high < 0, -_ROOM, _ROOM))
    return _by_group(_clipped(sums, least, most), places, cells)


def unit_means(
    units: Codes,
    groups: Codes | None,
    cells: int,
    steps: NDArray[np.int64],
    *,
    least: int,
    most: int,
    counts: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    """The sum over units of clip(mean, least, most), the mean of the unit's steps in the group rounded to the nearest
    integer, halves to the even one. `counts`: how many rows each stands for, whose sum its steps are; None: itself.

    Long division: high = a n + r, and (r 2^32 + low) = b n + s with r 2^32 + low < 2^62, so the sum is
    (a 2^32 + b) n + s with 0 <= s < n, for negative sums as well.
    """
    high, low, rows, places = _pairs(units, groups, steps, counts)
    upper, left = np.divmod(high, rows)
    lower, left = np.divmod(left * 2**_LIMB + low, rows)
    means = upper * 2**_LIMB + lower
    means += (2 * left > rows) | ((2 * left == rows) & (means & 1 == 1))
    return _by_group(_clipped(means, least, most), places, cells)


def unit_weights(units: Codes, groups: Codes | None, cells: int, scale: int) -> NDArray[Any]:
    """The sum over units that have rows in the group of the weight of one in so many groups."""
    size = int(units.max(initial=-1)) + 1
    codes, pairs = pair_codes(units, size, groups)
    of_unit, places = np.full(pairs, -1, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
    of_unit[codes] = units  # of the rows of a pair all say the same
    if groups is not None:
        places[codes] = groups
    present = np.flatnonzero(of_unit >= 0)
    many = np.bincount(of_unit[present], minlength=size)
    weights = np.array([weight_of(scale, k) for k in range(1, int(many.max(initial=0)) + 1)], dtype=np.int64)
    return _by_group(weights[many[of_unit[present]] - 1], places[present], cells)


def _pairs(
    units: Codes, groups: Codes | None, steps: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Codes]:
    """For each (unit, group) that has rows: the sum of its steps as high 2^32 + low with 0 <= low < 2^32, how many rows
    it has, and its group.

    Halves of the steps are added apart, below 2^32 in size: of 2^30 rows their sums are below 2^62.
    """
    codes, size = pair_codes(units, int(units.max(initial=-1)) + 1, groups)
    rows = np.bincount(codes, minlength=size) if counts is None else _added(codes, counts, size)
    places = np.zeros(size, dtype=np.int64)
    if groups is not None:
        places[codes] = groups  # of the rows of a pair all say the same
    high, low = _added(codes, steps >> _LIMB, size), _added(codes, steps & _LOW, size)
    high += low >> _LIMB
    low &= _LOW
    present = np.flatnonzero(rows)
    return high[present], low[present], rows[present], places[present]


@dataclass(frozen=True, repr=False)
class UnitPairs:
    """Which pair of a unit and a group each row is of: `codes` of all rows, and each pair's unit, group and number of
    rows. Rows that are left out have the group `cells`, and so have their pairs."""

    codes: Codes
    units: Codes
    groups: Codes
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, units: NDArray[Any], groups: Codes) -> UnitPairs:
        """`units` of all rows: -1, nobody's, are left out."""
        whose = np.maximum(units, 0).astype(np.int64, copy=False)
        codes, size = pair_codes(whose, int(whose.max(initial=0)) + 1, groups)
        of_unit, of_group = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        of_unit[codes], of_group[codes] = whose, groups  # of the rows of a pair all say the same
        return cls(codes, of_unit, of_group, np.bincount(codes, minlength=size))


def _clipped(values: NDArray[Any], least: int, most: int) -> NDArray[Any]:
    """The values held in {least..most}: in Python integers where the limits need them."""
    if not -_ROOM <= least <= most <= _ROOM:
        values = values.astype(object)
    return np.asarray(np.clip(values, least, most))


def _by_group(values: NDArray[Any], places: Codes, cells: int) -> NDArray[Any]:
    """The exact sums of values by place, shape (cells,)."""
    if values.dtype == object:
        return _added(places, values, cells)
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if largest * len(values) <= _ROOM:
        return _added(places, values, cells)
    high, low = _added(places, values >> _LIMB, cells), _added(places, values & _LOW, cells)
    total: NDArray[Any] = high.astype(object) * 2**_LIMB + low
    return total


def _added(places: Codes, values: NDArray[Any], size: int) -> NDArray[Any]:
    """Sums by place in the values' own arithmetic; of int64 the caller shows that none passes 2^63."""
    total = np.zeros(size, dtype=values.dtype)
    np.add.at(total, places, values)
    return total
