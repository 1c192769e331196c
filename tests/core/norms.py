"""The sensitivity of one sum by formulas, beside which stands what `dpsql.core.sensitivity.norms` derives from
parts."""

from __future__ import annotations

import math

from dpsql.core.sensitivity.row_contributions import Analysis, Contribution
from dpsql.core.unit import ONE_ROW, ContributionBound, Neighbours, Sensitivity


def norms(analysis: Analysis, row: Contribution, bound: ContributionBound = ONE_ROW) -> Sensitivity:
    """The sensitivity of one sum per group over all groups, where a unit adds at most `bound` contributions.

    With M the largest |value|, W the width of the interval (0 included where nothing may be added), and c_i the
    contributions of a unit to group i, whose largest norms are those of `bound`:

    UNBOUNDED: what the unit adds to group i is at most c_i M: the norms of (c_i) times M.
    BOUNDED, one group: the difference of two such sums, each between c times the ends of the interval: c W.
    BOUNDED, many groups: the unit's contributions c_i leave and others c'_i enter. L1: at most 2 |c|_1 M. Linf: in one
    group the difference is at most max(c_i, c'_i) W, or M where only one of both is there: c W suffices, as W >= M.
    L2: with P the largest positive value and N the largest negative one (P + N = W) the difference in a group is at
    most max(c P + c' N, c N + c' P); the sum of its squares, with the squares of c and of c' adding up to at most Q
    each, is at most 2 (P^2 + N^2) Q (its quadratic form in (c, c') has that largest value). For one row in one group
    of each it is max(2 M^2, W^2): the row leaves one group and enters another, or changes inside one.
    """
    if not analysis.private:
        return Sensitivity(0, 0, 0)
    largest, width = max(abs(row.least), abs(row.most)), row.most - row.least
    if analysis.neighbours is Neighbours.UNBOUNDED:
        return Sensitivity(largest * bound.l1, largest * math.sqrt(bound.l2_squared), largest * bound.linf)
    if not analysis.grouped:
        return Sensitivity(width * bound.linf, width * bound.linf, width * bound.linf)
    l1 = 2 * largest * bound.l1
    most, least = max(0, row.most), min(0, row.least)
    squared = 2 * (most * most + least * least) * bound.l2_squared
    if bound.rows == 1:
        squared = max(2 * max(most, -least) ** 2, width * width)
    l2 = min(l1, math.sqrt(squared))
    return Sensitivity(l1, l2, min(l2, max(largest, width) * bound.linf))
