"""Exact aggregates of small groups, each inside one privacy unit: the values that an outer query then bounds.

The value of a group is a function of the multiset of its own cells: neither the order of rows nor the rows of another
unit can change a bit. Otherwise one unit could move the values of others, and no sensitivity would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpsql.executors.pandas.columns.cells import LARGEST_INTEGER
from dpsql.executors.pandas.sums.ranking import Numbers, combine, dense_ranks, shifted, stable_order, whole_numbers
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import DTYPES, Array, Bools, Vector, blank
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64, Interval

_LIMB = 32
_LOW = 2**_LIMB - 1


def renumber(parts: Sequence[Numbers], sizes: Sequence[int]) -> tuple[Numbers, Numbers, int]:
    """Group rows by one or more columns of codes, each in 0 .. size - 1, or -1 for a dropped row.

    Return the code of each row's group, 0 .. n - 1 in ascending order of the combinations and -1 for dropped rows; the
    position of the first row of each group; and n, the number of combinations that occur.
    """
    complete = all(part.min(initial=0) >= 0 for part in parts)
    kept = None if complete else np.flatnonzero(np.logical_and.reduce([part >= 0 for part in parts]))
    chosen = [part if kept is None else part[kept] for part in parts]
    combined, size = chosen[0], sizes[0]
    for part, width in zip(chosen[1:], sizes[1:], strict=True):
        combined, size = combine(combined, size, part, width)
    ranks, firsts = dense_ranks(combined)
    if kept is None:
        return ranks, firsts, len(firsts)
    codes = np.full(len(parts[0]), -1, dtype=np.int64)
    codes[kept] = ranks
    return codes, kept[firsts], len(firsts)


def aggregate(kind: str, groups: Numbers, n: int, vector: Vector | None, result: Type) -> Vector:
    """Return one cell for each of n groups. `groups` holds the group of each row, -1 for none.

    COUNT without a vector counts rows. All aggregates ignore NULL cells; a group without other cells has COUNT 0 and
    otherwise NULL. COUNT_DISTINCT takes texts as codes, one per text, with NULL marked in `valid`.
    """
    groups, values = _present(groups, vector)
    counts: Numbers = np.bincount(groups, minlength=n)
    if kind == "COUNT":
        return Vector(counts)
    if kind == "COUNT_DISTINCT":
        return Vector(_distinct(groups, n, values))
    cells = KERNELS[kind](groups, counts, values)
    present = (counts > 0) & ~np.isnan(cells) if cells.dtype.kind == "f" else counts > 0
    nothing: Any = blank(result)
    typed: Array = np.where(present, cells, nothing).astype(DTYPES[result], copy=False)
    return Vector(typed, None if present.all() else present)


def aggregate_cells(kind: AggregateFunction, groups: Numbers, n: int, vector: Vector, result: Type) -> Vector:
    """Compute aggregates without a kernel: the function's value of each group's cells, numbers in ascending order."""
    assert kind.of_cells is not None  # other functions are rejected earlier
    groups, values = _present(groups, vector)
    values = _comparable(values)
    cells: list[list[Any]] = [[] for _ in range(n)]
    for place in np.lexsort((values, groups)).tolist():
        cells[groups[place]].append(values[place].item())
    answers = [kind.of_cells(each, result) if each else kind.of_nothing for each in cells]
    if result is Type.INTEGER:
        ends = INT64 if kind.name != "SUM" else Interval(-LARGEST_INTEGER, LARGEST_INTEGER)
        answers = [each and int(max(ends.lower, min(ends.upper, each))) for each in answers]
    valid = np.array([each is not None and each == each for each in answers], dtype=bool)  # noqa: PLR0124 - NaN is not
    nothing: Any = blank(result)
    typed: Array = np.array([nothing if each is None else each for each in answers], dtype=DTYPES[result])
    return Vector(typed, None if valid.all() else valid)


def _present(groups: Numbers, vector: Vector | None) -> tuple[Numbers, Array]:
    """Return the groups and cells of the rows that have both."""
    values: Array = groups if vector is None else vector.values
    keep: Bools | None = None if vector is None else vector.valid
    if groups.min(initial=0) < 0:
        keep = groups >= 0 if keep is None else keep & (groups >= 0)
    return (groups, values) if keep is None else (groups[keep], values[keep])


def _distinct(groups: Numbers, n: int, values: Array) -> Numbers:
    codes, size = shifted(Vector(whole_numbers(values)))
    _, first_rows, _ = renumber([groups, codes], [n, size])
    return np.bincount(groups[first_rows], minlength=n)


def _sum(groups: Numbers, counts: Numbers, values: Array) -> Array:
    """Integers: the exact sum, clipped to +/- LARGEST_INTEGER."""
    if values.dtype.kind == "f":
        return _sums_of_reals(groups, counts, values)
    high, low = _sums_of_integers(groups, counts, values.astype(np.int64, copy=False))
    most = LARGEST_INTEGER >> _LIMB
    held = (np.clip(high, -most, most) << _LIMB) + low
    return np.where(high >= most, LARGEST_INTEGER, np.where(high < -most, -LARGEST_INTEGER, held))


def _average(groups: Numbers, counts: Numbers, values: Array) -> Array:
    """Divide the sum once; for integers the sum is not clipped, and is the nearest double while below 2**85."""
    if values.dtype.kind == "f":
        sums = _sums_of_reals(groups, counts, values)
    else:
        high, low = _sums_of_integers(groups, counts, values.astype(np.int64, copy=False))
        sums = np.ldexp(high.astype(np.float64), _LIMB) + low
    return sums / np.maximum(counts, 1)


def _sums_of_reals(groups: Numbers, counts: Numbers, values: Array) -> Array:
    """Add the cells of each group one by one in ascending order, from 0.0.

    Each addition of doubles rounds, so the sum depends on the order. An order fixed by the values makes the sum a
    function of the multiset. Equal values are interchangeable, and so are 0.0 and -0.0: neither changes a sum that
    started at 0.0. Adding row by row, not in pairs or lanes, gives the same result on every machine.

    Groups of one size are the rows of a matrix, sorted together: there are at most sqrt(2 rows) sizes. The sum of two
    cells does not depend on their order, nor does any sum without rounding.
    """
    if _sums_are_exact(values):
        return np.bincount(groups, weights=values, minlength=len(counts))
    ordered = values[stable_order(groups, len(counts))]
    starts = np.cumsum(counts) - counts
    large = np.flatnonzero(counts > 2)
    by_size = large[stable_order(counts[large], len(values) + 1)]
    sizes, edges = np.unique(counts[by_size], return_index=True)
    for size, same_size in zip(sizes, np.split(by_size, edges[1:]), strict=False):
        cells = starts[same_size, None] + np.arange(size)
        ordered[cells] = np.sort(ordered[cells], axis=1)
    return np.bincount(np.repeat(np.arange(len(counts)), counts), weights=ordered, minlength=len(counts))


def _sums_are_exact(values: Array) -> bool:
    """Return whether every sum of some of the cells is exact as a double: whole numbers whose sizes add up to less than
    2**53. The result never changes a bit of the sums, whichever cells determine it."""
    most = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))  # NaN compares false
    return most * len(values) < 2.0**53 and bool((np.rint(values) == values).all())


def _sums_of_integers(groups: Numbers, counts: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    """Return exact sums as high * 2**32 + low with 0 <= low < 2**32; the order of addition does not matter.

    If the largest value times the rows may exceed 2**62, both halves of the values are summed. Each half lies in -2**31
    .. 2**32, so no sum of fewer than 2**31 rows overflows.
    """
    most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if most * len(values) <= LARGEST_INTEGER:
        sums = np.zeros(len(counts), dtype=np.int64)
        np.add.at(sums, groups, values)
        return sums >> _LIMB, sums & _LOW
    high, low = np.zeros(len(counts), dtype=np.int64), np.zeros(len(counts), dtype=np.int64)
    np.add.at(high, groups, values >> _LIMB)
    np.add.at(low, groups, values & _LOW)
    return high + (low >> _LIMB), low & _LOW


def _least(groups: Numbers, counts: Numbers, values: Array) -> Array:
    values = _comparable(values)
    cells: Array = np.full(len(counts), np.inf if values.dtype.kind == "f" else 2**63 - 1, dtype=values.dtype)
    np.minimum.at(cells, groups, values)
    return cells


def _largest(groups: Numbers, counts: Numbers, values: Array) -> Array:
    values = _comparable(values)
    cells: Array = np.full(len(counts), -np.inf if values.dtype.kind == "f" else -(2**63), dtype=values.dtype)
    np.maximum.at(cells, groups, values)
    return cells


def _comparable(values: Array) -> Array:
    """Return reals with one zero, since the order of rows decides between equal cells; booleans as integers."""
    return values + 0.0 if values.dtype.kind == "f" else values.astype(np.int64, copy=False)


KERNELS: Mapping[str, Callable[[Numbers, Numbers, Array], Array]] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": _least,
    "MAX": _largest,
}
