"""Each privacy unit's value in each group, as an exact integer, clipped and summed.

A unit adds one number of {least..most} to a group's result, computed only from its own rows in that group. So adding or
removing a unit changes the result of a group by at most max(|least|, |most|), whatever the number and content of its
rows, and changes only groups with rows of the unit. Integer sums do not depend on the order: the results are the same
for any order of rows, bit for bit.

Rows are parallel arrays: `units` and `groups` int64 codes from 0, shape (rows,), all in group 0 if `groups` is None;
`steps` int64 below 2^45 in size, or up to 2^62 if each is the sum of all rows of a unit in a group; at most 2^30 rows.
Results have shape (cells,), int64 or, if 64 bits could be too few, Python integers. A group without rows has 0.
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
    """Sum clip(sum of the unit's steps in the group, least, most) over units."""
    high, low, _, places = _pairs(units, groups, steps)
    if not -_ROOM <= least <= most <= _ROOM:
        return _by_group(_clipped(high.astype(object) * 2**_LIMB + low, least, most), places, cells)
    # A sum beyond 2^62 in size is first clipped to 2^62, which no limit exceeds.
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
    """Sum clip(mean, least, most) over units, with the mean of the unit's steps in the group rounded half to even.
    `counts`: the number of rows that each entry stands for, whose sum its steps are; None: one.

    Long division: high = a n + r, and (r 2^32 + low) = b n + s with r 2^32 + low < 2^62, so the sum is (a 2^32 + b) n +
    s with 0 <= s < n, for negative sums as well.
    """
    high, low, rows, places = _pairs(units, groups, steps, counts)
    upper, left = np.divmod(high, rows)
    lower, left = np.divmod(left * 2**_LIMB + low, rows)
    means = upper * 2**_LIMB + lower
    means += (2 * left > rows) | ((2 * left == rows) & (means & 1 == 1))
    return _by_group(_clipped(means, least, most), places, cells)


def unit_weights(units: Codes, groups: Codes | None, cells: int, scale: int) -> NDArray[Any]:
    """Sum, over units with rows in the group, the weight of a unit in that many groups."""
    size = int(units.max(initial=-1)) + 1
    codes, pairs = pair_codes(units, size, groups)
    of_unit, places = np.full(pairs, -1, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
    of_unit[codes] = units  # all rows of a pair assign the same value
    if groups is not None:
        places[codes] = groups
    present = np.flatnonzero(of_unit >= 0)
    many = np.bincount(of_unit[present], minlength=size)
    weights = np.array([weight_of(scale, k) for k in range(1, int(many.max(initial=0)) + 1)], dtype=np.int64)
    return _by_group(weights[many[of_unit[present]] - 1], places[present], cells)


def _pairs(
    units: Codes, groups: Codes | None, steps: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Codes]:
    """For each (unit, group) with rows, return the sum of its steps as high 2^32 + low with 0 <= low < 2^32, its number
    of rows, and its group.

    The halves of the steps are added separately. They are below 2^32 in size, so their sums over 2^30 rows are below
    2^62.
    """
    codes, size = pair_codes(units, int(units.max(initial=-1)) + 1, groups)
    rows = np.bincount(codes, minlength=size) if counts is None else _added(codes, counts, size)
    places = np.zeros(size, dtype=np.int64)
    if groups is not None:
        places[codes] = groups  # all rows of a pair assign the same value
    high, low = _added(codes, steps >> _LIMB, size), _added(codes, steps & _LOW, size)
    high += low >> _LIMB
    low &= _LOW
    present = np.flatnonzero(rows)
    return high[present], low[present], rows[present], places[present]


@dataclass(frozen=True, repr=False)
class UnitPairs:
    """The pair of unit and group of each row: `codes` of all rows, and each pair's unit, group and number of rows.
    Dropped rows, and hence their pairs, have the group `cells`."""

    codes: Codes
    units: Codes
    groups: Codes
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, units: NDArray[Any], groups: Codes) -> UnitPairs:
        """Number the pairs. `units` of all rows: -1 for dropped rows without a unit."""
        whose = np.maximum(units, 0).astype(np.int64, copy=False)
        codes, size = pair_codes(whose, int(whose.max(initial=0)) + 1, groups)
        of_unit, of_group = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        of_unit[codes], of_group[codes] = whose, groups  # all rows of a pair assign the same value
        return cls(codes, of_unit, of_group, np.bincount(codes, minlength=size))


def _clipped(values: NDArray[Any], least: int, most: int) -> NDArray[Any]:
    """Clip values to {least..most}, in Python integers if the limits need them."""
    if not -_ROOM <= least <= most <= _ROOM:
        values = values.astype(object)
    return np.asarray(np.clip(values, least, most))


def _by_group(values: NDArray[Any], places: Codes, cells: int) -> NDArray[Any]:
    """Return the exact sums of values by group, shape (cells,)."""
    if values.dtype == object:
        return _added(places, values, cells)
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if largest * len(values) <= _ROOM:
        return _added(places, values, cells)
    high, low = _added(places, values >> _LIMB, cells), _added(places, values & _LOW, cells)
    total: NDArray[Any] = high.astype(object) * 2**_LIMB + low
    return total


def _added(places: Codes, values: NDArray[Any], size: int) -> NDArray[Any]:
    """Sum by index in the values' own arithmetic; for int64 the caller ensures that no sum exceeds 2^63."""
    total = np.zeros(size, dtype=values.dtype)
    np.add.at(total, places, values)
    return total
