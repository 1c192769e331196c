"""Selection of the rows of each privacy unit that reach the aggregates, and counts of units per group.

Rows are parallel arrays: `units` and `groups` are int64 codes, shape (rows,), with units in 0..n_units-1 and groups
from 0. If `groups` is None, all rows are in one group. The callback `hashes(rows)` returns two uint64 hashes for the
given positions: one of the row (its unit, group and values) and one of its group (unit and group, the same for all rows
of both). It is called only for rows of units over a limit.

Why the bounds of a unit make answers stable: let K(u) be the kept rows of unit u. Each function here computes K(u) only
from the rows of u: which of them share a group, their hashes, and their order if hashes are equal. Codes are only
compared for equality, so K(u) stays the same when other units' rows are added, removed or changed, even if all codes
are renumbered. Two tables that differ in the rows of one unit u thus differ, after bounding, only in K(u), and K(u) is
within the ContributionBound: any count or sum of kept rows changes by at most the bound's norms.

Sequential steps preserve this: the second step's input is, for each unit, the first step's output, again a function of
that unit's rows.

Rows with equal hashes have equal values, so any of them may stay, except for collisions of probability 2^-64 per pair.
So the order of rows does not change the answer. In a collision the first row is kept, which still depends only on the
unit's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsql.core.unit import ContributionBound
from dpsql.executors.pandas.hashing import Hashes
from dpsql.plan.expressions import Bools

Codes = NDArray[np.int64]
AskHashes = Callable[[Codes], Sequence[Hashes]]
"""Row positions -> hashes of those rows, and of their groups."""

_SMALL_TABLE, _SMALL_BITMAP = 1 << 16, 1 << 22
"""Tables of this many numbers, or this many marks, are always allocated, even for few rows."""
_LARGEST = np.uint64(2**64 - 1)
_MOST_ROUNDS = 4
"""Up to this many rows of a bucket are found one after the other; more by sorting."""


def keep_rows(
    units: Codes, groups: Codes | None, bound: ContributionBound, hashes: AskHashes, n_units: int
) -> Bools | None:
    """Mark the rows of each unit to keep, shape (rows,); None if all are kept.

    In this order: at most bound.groups groups of each unit, those of the smallest group hashes; at most bound.per_group
    rows in each of them; then at most bound.rows rows of the unit, those of the smallest row hashes. Limits implied by
    a later one are skipped.
    """
    units, n_units = renumbered(units, n_units)
    last = (_keep_in_units, bound.rows if groups is not None else bound.linf)
    earlier = [] if groups is None else [(keep_groups, bound.groups), (_keep_in_groups, bound.per_group)]
    kept: Bools | None = None
    for step, most in [*(each for each in earlier if each[1] < bound.rows), last]:
        if kept is None:
            kept = step(units, groups, most, hashes, n_units)
            continue
        rows = np.flatnonzero(kept)
        left = step(units[rows], None if groups is None else groups[rows], most, _asked_of(hashes, rows), n_units)
        if left is not None:
            kept = _among(rows, left, len(units), others=False)
    return kept


def keep_groups(units: Codes, groups: Codes | None, most: int, hashes: AskHashes, n_units: int) -> Bools | None:
    """Mark the rows in at most `most` groups of each unit, those of the smallest group hashes, shape (rows,); None if
    all are.

    A unit's pairs (unit, group) are a function of its rows. Each pair is represented by its first row, and ties between
    hashes are broken by position. So the kept groups, and with them the rows, are a function of the unit's rows only.
    """
    if groups is None or _are_few(groups, most):
        return None
    units, n_units = renumbered(units, n_units)
    over = _may_be_in_more(units, groups, most, n_units)
    rows = np.flatnonzero(over[units])
    if not len(rows):
        return None
    ranks, left = _ranks(over)
    whose = ranks[units[rows]].astype(np.int64)
    pairs, size = pair_codes(whose, left, groups[rows])
    first = np.full(size, -1)
    first[pairs[::-1]] = np.arange(len(rows) - 1, -1, -1)  # of several assignments to one index the last wins
    standing = np.sort(first[first >= 0])
    kept = _keep_smallest(whose[standing], most, left, lambda places: hashes(rows[standing[places]])[1])
    if kept is None:
        return None
    kept_pairs = np.ones(size, dtype=bool)
    kept_pairs[pairs[standing]] = kept
    return _among(rows, kept_pairs[pairs], len(units), others=True)


def _are_few(groups: Codes, most: int) -> bool:
    """Return whether at most `most` groups have rows: then no unit is in more."""
    cells = int(groups.max(initial=0)) + 1
    return cells <= most or (cells <= _SMALL_TABLE and int(np.count_nonzero(np.bincount(groups))) <= most)


def _may_be_in_more(units: Codes, groups: Codes, most: int, n_units: int) -> Bools:
    """Mark all units in more than `most` groups, shape (n_units,). Other units are marked only if they have more than
    `most` rows, and never if a table of all pairs is not much larger than the rows."""
    pairs = _pairs(units, groups, n_units, int(groups.max(initial=-1)) + 1)
    numbers = np.bincount(units, minlength=n_units) if pairs is None else pairs.sum(axis=0, dtype=np.int32)
    return np.asarray(numbers > most)


def _pairs(units: Codes, groups: Codes, n_units: int, cells: int) -> Bools | None:
    """Mark the pairs that occur, shape (cells, n_units); None if the table would be much larger than the rows."""
    if n_units * cells > max(8 * _SMALL_BITMAP, 16 * len(units)):
        return None
    marks = np.zeros((cells, n_units), dtype=bool)
    marks.reshape(-1)[groups * n_units + units] = True
    return marks


def distinct_pairs(units: Codes, groups: Codes | None, cells: int) -> Codes:
    """Count the distinct units of each group, shape (cells,). 1-Lipschitz in each cell: a unit adds at most one."""
    n_units = int(units.max(initial=-1)) + 1
    if groups is None:
        groups = np.zeros(len(units), dtype=np.int64)
    marks = _pairs(units, groups, n_units, cells)
    if marks is not None:
        return np.asarray(marks.sum(axis=1, dtype=np.int64))
    units, n_units = renumbered(units, n_units)
    bits = n_units.bit_length()
    pairs = groups << bits | units
    pairs.sort()
    new = np.ones(len(pairs), dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
    return np.bincount(pairs[new] >> bits, minlength=cells)


def pair_codes(units: Codes, n_units: int, groups: Codes | None) -> tuple[Codes, int]:
    """Return a code for each row's (unit, group), and an upper limit of the codes that is small or at most a few times
    the number of rows. Equal codes are equal pairs."""
    if groups is None:
        return renumbered(units, n_units)
    cells = int(groups.max(initial=0)) + 1
    if n_units * cells >= 1 << 62:  # after renumbering both are below 2^31
        (units, n_units), (groups, cells) = _numbered(units), _numbered(groups)
    return renumbered(units * cells + groups, n_units * cells)


def renumbered(codes: Codes, size: int) -> tuple[Codes, int]:
    """Return codes whose table has a reasonable size, and that size: the same codes, or 0, 1, ... in their order."""
    if size <= max(_SMALL_TABLE, 2 * len(codes)):
        return codes, size
    if size > max(_SMALL_BITMAP, 8 * len(codes)):
        return _numbered(codes)
    occurs = np.zeros(size, dtype=bool)
    occurs[codes] = True
    numbers, marked = _ranks(occurs)
    return numbers[codes].astype(np.int64), marked


def _ranks(marks: Bools) -> tuple[NDArray[np.int32], int]:
    """Return 0, 1, ... at the marked places, fewer than 2^31, with arbitrary numbers elsewhere, and the number of
    marks. Several times faster than a cumulative sum."""
    places = np.flatnonzero(marks)
    ranks = np.zeros(len(marks), dtype=np.int32)
    ranks[places] = np.arange(len(places), dtype=np.int32)
    return ranks, len(places)


def _numbered(codes: Codes) -> tuple[Codes, int]:
    """Return 0, 1, ... for the distinct codes in their order, and their number (at least 1), by sorting."""
    rows = len(codes)
    row_bits = rows.bit_length()
    if int(codes.max(initial=0)).bit_length() + row_bits > 64:
        distinct, numbers = np.unique(codes, return_inverse=True)
        return numbers, max(1, len(distinct))
    packed = codes.astype(np.uint64)
    packed <<= row_bits
    packed |= np.arange(rows, dtype=np.uint64)
    packed.sort()  # sorting numbers is several times faster than sorting positions by their codes
    order = _low_bits(packed, row_bits)
    packed >>= row_bits
    sorted_numbers = np.zeros(rows, dtype=np.int64)
    np.cumsum(packed[1:] != packed[:-1], out=sorted_numbers[1:])
    numbers = np.empty(rows, dtype=np.int64)
    numbers[order] = sorted_numbers
    return numbers, int(sorted_numbers[-1]) + 1 if rows else 1


def _keep_in_groups(units: Codes, groups: Codes | None, most: int, hashes: AskHashes, n_units: int) -> Bools | None:
    """Mark at most `most` rows of each unit in each group, those of the smallest row hashes; None if all are."""
    rows = _rows_over(units, most, n_units)
    if not len(rows):
        return None
    pairs, size = pair_codes(units[rows], n_units, None if groups is None else groups[rows])
    kept = _keep_smallest(pairs, most, size, lambda places: hashes(rows[places])[0])
    return None if kept is None else _among(rows, kept, len(units), others=True)


def _keep_in_units(units: Codes, _groups: Codes | None, most: int, hashes: AskHashes, n_units: int) -> Bools | None:
    """Mark at most `most` rows of each unit, those of the smallest row hashes; None if all are."""
    return _keep_smallest(units, most, n_units, lambda rows: hashes(rows)[0])


def _asked_of(hashes: AskHashes, rows: Codes) -> AskHashes:
    """Return the hash callback of some of the rows, indexed by their positions among them."""
    return lambda places: hashes(rows[places])


def _among(rows: Codes, kept: Bools, size: int, *, others: bool) -> Bools:
    """Expand a mask over some rows to all rows; the other rows get the value `others`."""
    mask = np.full(size, others)
    mask[rows] = kept
    return mask


def _rows_over(buckets: Codes, most: int, size: int) -> Codes:
    """Return the positions of the rows in buckets of more than `most` rows."""
    over = np.bincount(buckets, minlength=size) > most
    return np.flatnonzero(over[buckets]) if over.any() else np.zeros(0, dtype=np.int64)


def _keep_smallest(buckets: Codes, most: int, size: int, hashes: Callable[[Codes], Hashes]) -> Bools | None:
    """Mark the `most` rows of the smallest hashes in each bucket, ties by position; None if all are marked.

    The marked rows of a bucket depend only on their hashes and their order.
    """
    counts = np.bincount(buckets, minlength=size)
    over = counts > most
    if not over.any():
        return None
    rows = np.flatnonzero(over[buckets])
    rank, _ = _ranks(over)
    choose = _smallest_in_rounds if most <= _MOST_ROUNDS else _smallest_by_sorting
    chosen = choose(rank[buckets[rows]].astype(np.int64), counts[over], hashes(rows), most)
    kept = np.ones(len(buckets), dtype=bool)
    kept[rows] = False
    kept[rows[chosen]] = True
    return kept


def _smallest_in_rounds(buckets: Codes, sizes: Codes, hashes: Hashes, most: int) -> Codes:
    """Return the positions of the `most` rows of the smallest hashes in each bucket, each of which has more: one row of
    each bucket per round.

    A row is represented by one number: the first bits of its hash, then its position. This orders rows by hash and then
    position, unless a row shares the first bits of the last chosen hash but has another hash. Then all rows are sorted.
    """
    positions = np.uint64((1 << len(buckets).bit_length()) - 1)  # so that no row has the largest number
    left = hashes & ~positions
    left |= np.arange(len(buckets), dtype=np.uint64)
    chosen = []
    for _ in range(most):
        smallest = np.full(len(sizes), _LARGEST)
        np.minimum.at(smallest, buckets, left)
        chosen.append((smallest & positions).view(np.int64))
        left[chosen[-1]] = _LARGEST
    last = hashes[chosen[-1]][buckets]
    if ((hashes ^ last <= positions) & (hashes != last)).any():
        return _smallest_by_sorting(buckets, sizes, hashes, most)
    return np.concatenate(chosen)


def _smallest_by_sorting(buckets: Codes, sizes: Codes, hashes: Hashes, most: int) -> Codes:
    """As `_smallest_in_rounds` for any `most`, in time independent of it."""
    first = np.cumsum(sizes) - sizes
    wanted: Codes = (first[:, None] + np.arange(most)).reshape(-1)
    return _ordered(buckets, len(sizes), hashes)[wanted]


def _ordered(buckets: Codes, size: int, hashes: Hashes) -> Codes:
    """Return the positions of the rows by bucket, then hash, then position.

    Bucket, first bits of the hash and position are packed into one number, since sorting numbers is several times
    faster than sorting positions. Rows with the same first bits but different hashes are sorted again by the following
    bits. Requires at most 2^31 rows, and two of each bucket: this leaves at least one bit for the hash, so each further
    sort has fewer bits to compare.
    """
    rows = len(buckets)
    row_bits = rows.bit_length()
    hash_bits = 64 - row_bits - (size - 1).bit_length()
    packed = buckets.astype(np.uint64)
    packed <<= hash_bits
    packed |= hashes >> (64 - hash_bits)
    packed <<= row_bits
    packed |= np.arange(rows, dtype=np.uint64)
    packed.sort()
    order = _low_bits(packed, row_bits)
    packed >>= row_bits
    tied = np.flatnonzero(packed[1:] == packed[:-1])
    wrong = tied[hashes[order[tied]] != hashes[order[tied + 1]]]
    if len(wrong):
        runs = np.unique(packed[wrong])
        first, last = np.searchsorted(packed, runs), np.searchsorted(packed, runs, side="right")
        lengths = last - first
        again = np.arange(lengths.sum()) + np.repeat(last - np.cumsum(lengths), lengths)
        rows_again = order[again]
        inner = _ordered(np.repeat(np.arange(len(runs)), lengths), len(runs), hashes[rows_again] << hash_bits)
        order[again] = rows_again[inner]
    return order


def _low_bits(packed: Hashes, bits: int) -> Codes:
    return (packed & ((1 << bits) - 1)).view(np.int64)
