"""What a lowered query is made of: coordinates that noise is added to, and what they mean for the answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.analysis.sensitivity import Analysis, Contribution
from dpsql.executors.base import Part
from dpsql.intervals import Interval
from dpsql.privacy.unit import ONE_ROW, ContributionBound, Neighbours
from dpsql.sql.plan import AggregateKind


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One integer per group, a combination of parts: sum of factor * part over `terms`; `unit` is a step's worth.

    `row`: what one contribution can add, in steps, and `bound`: how many of them a unit makes; `by_unit`: they are one
    for each group, not one for each row. `l2_squared`: the squared L2 sensitivity over groups, in steps. `noisy` is
    False for what neighbours have in common (the number of rows, under bounded neighbours).
    """

    name: str
    terms: tuple[tuple[int, int], ...]
    unit: float
    row: Contribution
    sensitivity: int
    l2_squared: Fraction
    noisy: bool
    bound: ContributionBound = ONE_ROW
    by_unit: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregation from coordinates: COUNT = count, SUM = sum + centre * count, AVG = centre + sum / count.

    `sum` and `count` are places among the coordinates; None where the term is absent (a sum that is not centred, or a
    centred sum that is always 0). `range` holds the average.
    """

    kind: AggregateKind
    sum: int | None
    count: int | None
    centre: float
    range: Interval
    whole: bool
    """The exact answer is an integer."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The lowered query. `steps`: the sensitivity of all noisy coordinates together, the sum over groups of the largest
    change there; `selection`: the coordinate that decides which groups are shown, in which a unit counts at least
    `one_row` steps and at most `one_unit`; `groups_of_a_unit`: how many groups can appear or vanish with one unit
    (under bounded neighbours twice those that it can be in: it can leave some and open others)."""

    parts: tuple[Part, ...]
    coordinates: tuple[Coordinate, ...]
    estimates: tuple[Estimate, ...]
    steps: int
    selection: int
    one_unit: int
    groups_of_a_unit: int
    one_row: int = 1


def together(noisy: list[Coordinate], analysis: Analysis, steps: int) -> int:
    """The most that one unit can move all coordinates together: the sum over groups of the largest change there.

    Contributions of one kind move every coordinate by at most its own part of the common sensitivity, so their sum is
    `steps`. Where some count once for each row (a steps each) and others once for each group (b steps), a group of the
    unit in which c of its rows are kept (perhaps none) moves by at most max(a c, b). That is convex in c, so the sum is
    largest with as many groups as possible, some filled one after the other by the rows there are."""
    rows = [each for each in noisy if not each.by_unit]
    units = [each for each in noisy if each.by_unit]
    if not rows or not units or not analysis.grouped:
        return steps
    a = max(int(max(abs(each.row.least), abs(each.row.most))) for each in rows)
    b = max(int(max(abs(each.row.least), abs(each.row.most))) for each in units)
    bound = rows[0].bound
    groups, full = bound.most_groups, bound.linf
    filled = min(groups, bound.rows // full)
    rest = bound.rows - filled * full if filled < groups else 0
    total = groups * b + filled * max(0, a * full - b) + max(0, a * rest - b)
    return total * (2 if analysis.neighbours is Neighbours.BOUNDED else 1)
