"""The sensitivity of integer combinations of exact parts: derived from the parts, never declared.

A *coordinate* is a combination A_i of parts, one integer for each group; A has a row for each coordinate. The designer
of coordinates does not state their sensitivity: a poor design is a worse answer, never a leak.

The contribution of one row. A row of a group adds a vector v of a set V to the parts of rows (proofs in `_adds`):
  CountRows           1, or 0 if its expression is NULL
  LatticeSum          an integer of {least..most} (the executor clamps it), 0 if its value is NULL
  LatticeProduct      an integer of {-most..most}, of {0..most} for a square; 0 if either value is NULL
  LatticeShare        SHARE_STEPS distributed among the shares of one division, none negative; 0 if a value is NULL
  CountDistinct       given the other rows: 1 for a new value, 0 for others and for NULL
  CellPart            the contribution to its part, if the row has that cell; a row has one cell of the same
                      alternatives
Rows are added one after the other, so c rows of a unit add a vector of the c-fold sum of V with itself.
A unit also adds a vector u of a set U to each group in which it has a row:
  CountUnits          1, or 0 if its expression is NULL in all of the unit's rows
  UnitWeights         an integer of {0..scale}, if measured as a coordinate; `core.selection.weighted` has its norm
  UnitTotal           an integer of {least..most}, or 0
  UnitMean            an integer of {least..most}, 0 if its value is NULL in all of the unit's rows
These are integers between ends and shares of a whole: points of the convex hull of finitely many *vertices*. Parts
whose values are NULL in the same rows are tied in one *block*, which adds nothing or a vertex of each part. Blocks are
treated as independent, which can only enlarge V. The cells of the same alternatives are one block: a row adds to the
parts of one of them, its patterns, or of none. So it changes the shares of only one of several cells.

Norms are convex, and a convex function is largest at a vertex. So for c rows in a group and W(c) = {u + c v}
  f(c) = max |A w| over w in W(c) = max |A (u + c v)| over vertices u, v,
with all c rows alike: |A (u + v_1 + ... + v_c)| is convex in each v_j, and so in their sum, which ranges over c times
the hull of V. As a row may be dropped 0 belongs to V; so f is a convex function of c >= 0, and does not decrease.

Unbounded neighbours. A unit is in at most G groups, with c_i rows in group i, 0 <= c_i <= p and sum c_i <= r
(`ContributionBound`; if parts of units count all of its rows, c_i are the kept ones, perhaps none). A group that the
unit is in changes by A w, w in W(c_i). The sum of f(c_i) over groups is convex in (c_i), hence largest at a vertex of
that polytope: k groups are full, c_i = p, and either all others are empty, or k = floor(r / p) and one has the rest. As
f does not decrease, the latter is the maximum: floor(r / p) f(p) + f(rest) + f(0) for each remaining group. It is
attained if the vertices are: take such rows. For f the largest change of a coordinate this is the norm of the cube
distribution, for f the L1 norm it is the L1 norm, for f the squared L2 norm its square, which is convex as well.

Bounded neighbours, many groups. The unit's rows leave, with c_i rows in group i, and others enter, with c'_i: group i
changes by A (w' - w), w in W(c_i), w' in W(c'_i), or by one of them only.
  Cube norm and L1: |A (w' - w)| <= |A w'| + |A w|, which leaving some groups and entering others attains: twice the
maximum for unbounded neighbours.
  L2: g(c, c') = max |A (w' - w)|^2 over vertices is convex in both, so again all groups are full, empty or the one with
the rest, on either side. They meet in an assignment of groups left to groups entered, or to none. For any numbers b_c
with b_c >= 2 g(c, none) and b_c + b_c' >= 2 g(c, c') a pair of groups changes by at most (b_c + b_c') / 2, and an
unpaired group by b_c / 2. So all of them change by at most the sum of b_c over the groups of one side: the dual of the
assignment. `_changed` takes the least numbers one after the other, those of the largest groups first. For one row in
one group of each side it is max(2 max |A v|^2, max |A (v' - v)|^2), which is tight.

Bounded neighbours, one group. Two vertices differ: |A (w' - w)| for w, w' of W(p), W(0) or 0, if the unit has no row.
If every unit surely has its one row there (`Analysis.public_count`) both are of W(1), without 0 in V.

`core.sensitivity.extreme_points` computes the largest norms over vertices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, product

from dpsql.core.exact import (
    SHARE_STEPS,
    AllUnits,
    CellPart,
    CountDistinct,
    CountRows,
    CountUnits,
    ExactPlan,
    LatticeProduct,
    LatticeShare,
    Part,
    UnitMean,
    UnitTotal,
    UnitWeights,
    of_units,
)
from dpsql.core.mechanisms.noise import Reach
from dpsql.core.sensitivity.extreme_points import ABSENT, Block, Cells, Element, joined, multiple, spans_in, tied_blocks
from dpsql.core.sensitivity.nulls import nulls
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import ContributionBound, Neighbours, Sensitivity
from dpsql.errors import InternalError
from dpsql.plan.expressions import Expr
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

Terms = Sequence[tuple[int, int]]
"""A coordinate: (place among the parts, factor) pairs."""

_ONE = (1,)
MOST_PATTERNS = 1_024


@dataclass(frozen=True, slots=True)
class Change:
    """The largest change that one privacy unit can cause in a vector of coordinates over all groups, in their own
    steps.

    cube: the largest sum over groups (and classes of coordinates) of the largest coordinate change of a group; l1,
    l2_squared: of the whole vector;
    sensitivity_of_each: the largest L1 change of each coordinate; in_a_group: the largest change of each in one group
    by the presence of one unit.
    """

    cube: int
    l1: int
    l2_squared: int
    sensitivity_of_each: tuple[int, ...]
    in_a_group: tuple[int, ...]


def change_of(
    parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis, classes: tuple[int, ...] = ()
) -> Change:
    """Return the change of some coordinates under an analysis' neighbours and bounds; proof: the module's docstring."""
    nothing = (0,) * len(coordinates)
    if not analysis.private or not coordinates:
        return Change(0, 0, 0, nothing, nothing)
    cells = Cells(*_blocks(parts, coordinates, analysis), len(coordinates), classes)
    bounded = analysis.neighbours is Neighbours.BOUNDED
    if bounded and not analysis.grouped:
        return _within(cells, analysis.bounds.rows, analysis.public_count)
    return _across(cells, analysis.bounds.rows, analysis.bounds.units.groups if cells.units else 0, bounded)


@remembered(1024)
def _across(cells: Cells, bound: ContributionBound, present: int, bounded: bool) -> Change:
    """Return the change over many groups."""
    groups = _groups(bound, present)
    there = [(times, joined(cells.norms(state) for state in cells.states(kept))) for times, kept in groups]
    alone = tuple(sum(times * most.each[place] for times, most in there) for place in range(cells.dimension))
    cube = sum(times * most.cube for times, most in there)
    l1 = sum(times * most.l1 for times, most in there)
    if not bounded:
        l2_squared = sum(times * most.l2_squared for times, most in there)
        return Change(cube, l1, l2_squared, alone, there[0][1].each)
    return Change(2 * cube, 2 * l1, _changed(cells, groups), tuple(2 * each for each in alone), there[0][1].each)


@remembered(1024)
def _within(cells: Cells, bound: ContributionBound, sure: bool) -> Change:
    """Return the change by a unit's rows if there is only one group."""
    states = [(1, 1)] if sure else [*cells.states(bound.linf), ABSENT]
    pairs = ((one, other) for place, one in enumerate(states) for other in states[place:])
    most = joined(cells.norms(one, other) for one, other in pairs)
    return Change(most.cube, most.l1, most.l2_squared, most.each, most.each)


def reach_of(
    parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis, classes: tuple[int, ...] = ()
) -> Reach:
    """Return the change as mechanisms need it for calibration; `classes`: those of the coordinates, by default one."""
    change = change_of(parts, coordinates, analysis, classes)
    groups = max(groups_of_a_unit(analysis), analysis.bounds.rows.most_groups) if analysis.grouped else 1
    return Reach(change.cube, Fraction(change.l2_squared), len(coordinates), change.l1, groups, classes)


def reach_of_level(
    parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis, cells: int, finest: int
) -> Reach:
    """Return the sensitivity at a level of `cells` groups, each the sum of `finest` of the analysis' groups. In the
    cube norm and in L1, a sum of cells changes no more than the cells do; in L2, a unit's contributions to the same
    cell are added: `merged`."""
    if not analysis.private or not coordinates:
        return reach_of(parts, coordinates, analysis)
    reach = reach_of(parts, coordinates, analysis)
    return replace(reach, l2_squared=Fraction(_at_level(parts, coordinates, analysis, cells, finest)[0]), groups=None)


def sensitivity_of(
    parts: Sequence[Part], terms: Terms, analysis: Analysis, level: tuple[int, int] | None = None
) -> Sensitivity:
    """Return the norms over all groups of one coordinate; or of its sums at a `level`: (cells, groups in each cell)."""
    if not analysis.private:
        return Sensitivity(0, 0, 0)
    one = change_of(parts, [terms], analysis)
    if level is not None:
        l2_squared, largest = _at_level(parts, [terms], analysis, *level)
    else:
        within = analysis.neighbours is Neighbours.BOUNDED and analysis.grouped
        alone = change_of(parts, [terms], replace(analysis, grouped=False)) if within else one
        l2_squared, largest = one.l2_squared, alone.in_a_group[0]
    l2 = min(one.l1, math.sqrt(l2_squared))
    return Sensitivity(one.l1, l2, min(l2, largest))


def reach_of_counts(analysis: Analysis) -> Reach:
    """Return the sensitivity of counts of all values of a column, in all groups, one coordinate for each. Values act on
    the rows of a unit like groups: each row counts for one, and a changed row leaves one for another."""
    return replace(reach_of((CountRows(None),), (((0, 1),),), replace(analysis, grouped=True)), groups=None)


def groups_of_a_unit(analysis: Analysis) -> int:
    """Return how many groups one unit can show or hide: each that it is in or, if its rows change, those that it leaves
    and those that it enters."""
    return analysis.bounds.units.groups * (2 if analysis.neighbours is Neighbours.BOUNDED else 1)


def never_negative(parts: Sequence[Part], terms: Terms, analysis: Analysis) -> bool:
    """Return whether no row and no unit can decrease a coordinate."""
    return (
        not any(isinstance(parts[part], AllUnits) for part, _ in terms) and not ends_of(parts, [terms], analysis)[0][0]
    )


def ends_of(parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis) -> list[tuple[int, int]]:
    """Return the minimum and the maximum that a unit adds to each coordinate in a group, or 0 without a row."""
    rows, units = (spans_in(blocks, len(coordinates)) for blocks in _blocks(parts, coordinates, analysis))
    kept = analysis.bounds.rows.linf
    return [
        (min(0, own[0] + kept * min(0, one[0])), max(0, own[1] + kept * max(0, one[1])))
        for one, own in zip(rows, units, strict=True)
    ]


def assert_unmoved(parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis) -> None:
    """Raise InternalError if a coordinate to be released without noise differs between neighbours: of private rows only
    what all neighbours have in common needs no noise."""
    if coordinates and change_of(parts, coordinates, analysis).l1:
        raise InternalError("a sum that a person moves would be released without noise")


def of_one_group(analysis: Analysis) -> Analysis:
    """Return the analysis for counts of all groups together, where a unit has all of its rows in one."""
    bounds, rows = analysis.bounds, analysis.bounds.rows.l1
    return replace(analysis, grouped=False, bounds=replace(bounds, rows=ContributionBound(rows, 1, rows)))


def assert_limited(plan: ExactPlan, analysis: Analysis) -> None:
    """Raise InternalError if a plan lacks the contribution bounds from which its sensitivity is derived."""
    bounds = analysis.bounds
    groups = bounds.units.groups if plan.keys else plan.groups
    if analysis.private and bounds.enforced and (plan.limits, plan.groups) != (bounds.rows, groups):
        raise InternalError("rows beyond a person's limits would be counted")


def _at_level(
    parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis, cells: int, finest: int
) -> tuple[int, int]:
    """Return the squared L2 norm of the coordinates at a level, and the largest change of any in one of its cells.

    Rows and units have different contribution bounds, so each kind is computed separately. Their squares add up if no
    coordinate has both kinds; otherwise |x + y|^2 <= 2 |x|^2 + 2 |y|^2."""
    l2_squared = largest = 0
    bounded = analysis.neighbours is Neighbours.BOUNDED
    kinds = zip(_blocks(parts, coordinates, analysis), (analysis.bounds.rows, analysis.bounds.units), strict=True)
    for blocks, bound in kinds:
        alone, held = Cells(blocks, (), len(coordinates)), merged(bound, cells, finest)
        most = _across(alone, held, 0, bounded)
        l2_squared += most.l2_squared
        largest += max(_within(alone, held, False).in_a_group if bounded else most.in_a_group)
    both = any(len({of_units(parts[part]) for part, _ in terms}) > 1 for terms in coordinates)
    return (l2_squared * 2 if both else l2_squared), largest


def merged(bound: ContributionBound, cells: int, finest: int) -> ContributionBound:
    """Return the bound of a unit at a level of `cells` cells, each the sum of `finest` of the finest: contributions to
    the same cell are added."""
    together = bound.per_group * min(bound.groups, finest)
    return ContributionBound(bound.rows, min(bound.groups, cells), min(bound.rows, together))


def _groups(bound: ContributionBound, present: int) -> list[tuple[int, int]]:
    """Return (number of groups, rows of the unit in each) where a convex function of these is largest: full groups, the
    one with the rest, and those where only parts of units count the unit, in at most `present` groups altogether."""
    full = min(bound.groups, bound.rows // bound.linf)
    rest = bound.rows - full * bound.linf if full < bound.groups else 0
    empty = max(0, present - full - (rest > 0))
    return [each for each in ((full, bound.linf), (int(rest > 0), rest), (empty, 0)) if each[0]]


def _changed(cells: Cells, groups: Sequence[tuple[int, int]]) -> int:
    """Return the squared L2 change of a unit that leaves and enters such groups (proof: the module's docstring)."""
    worth: list[tuple[int, int]] = []
    total = 0
    for times, kept in sorted(groups, reverse=True):
        alone = max(cells.norms(state).l2_squared for state in cells.states(kept))
        least = max(2 * alone, cells.apart(kept, kept))
        for other, before in worth:
            least = max(least, 2 * cells.apart(kept, other) - before)
        worth.append((kept, least))
        total += times * least
    return total


# The contributions of one row and of one unit.


def _blocks(
    parts: Sequence[Part], coordinates: Sequence[Terms], analysis: Analysis
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return the blocks of rows and those of units, as changes of the coordinates."""
    columns: dict[int, dict[int, int]] = {}
    for place, terms in enumerate(coordinates):
        for number, factor in terms:
            column = columns.setdefault(number, {})
            column[place] = column.get(place, 0) + factor
    cells: dict[tuple[Expr, ...], dict[int, _Tied]] = {}
    divisions: dict[object, tuple[_Tied, dict[tuple[int, int], dict[int, int]]]] = {}
    for part, column in ((parts[number], columns[number]) for number in sorted(columns)):
        alternatives, number, of = _cell_of(part)
        tied = cells.setdefault(alternatives, {}).setdefault(number, {})
        if isinstance(of, LatticeShare):
            _, division = divisions.setdefault((of.first, of.second, of.degrees, alternatives, number), (tied, {}))
            share = division.setdefault(of.index, {})
            share.update((place, share.get(place, 0) + factor) for place, factor in column.items())
            continue
        values, absent = _together(of, parts, analysis)
        steps = tuple(multiple(column.items(), value) for value in values)
        tied.setdefault((of_units(of), absent), []).append(steps)
    for tied, division in divisions.values():  # () stands for shares that are not requested, and for NULL
        shares = (multiple(share.items(), SHARE_STEPS) for share in division.values())
        tied.setdefault((False, frozenset()), []).append(((), *shares))
    blocks: tuple[list[Block], list[Block]] = ([], [])
    for by_unit, block in tied_blocks(cells.pop((), {}).get(0, {})):  # of all rows
        blocks[by_unit].append(block)
    for numbered in cells.values():
        blocks[False].extend(_alternatives([[block for _, block in tied_blocks(each)] for each in numbered.values()]))
    return tuple(blocks[False]), tuple(blocks[True])


def _together(part: Part, parts: Sequence[Part], analysis: Analysis) -> tuple[tuple[int, ...], frozenset[Expr | Part]]:
    """Return the contributions to a part if not NULL, and the key of the parts that add nothing together."""
    values, read = _adds(part)
    count = _counted_with(part, parts)
    if count is not None:
        return (count.most,) if part == count else values, frozenset((count,))
    return values, frozenset().union(*(nulls(each, analysis) for each in read))


def _counted_with(part: Part, parts: Sequence[Part]) -> UnitTotal | None:
    """Return the clipped number c of a unit's rows, at most R, such that its total T is in [c a / R, c b / R] for the
    total's ends a, b. A count is its own c.

    Let n rows be counted, each clamped to [l, u], which contains 0, since a NULL adds 0, with a <= R l and R u <= b. If
    n <= R: c = n, and T is in [n l, n u], hence in [n a / R, n b / R]. If n > R: c = R, and T is clamped to [a, b]. All
    this is the hull of 0 and of R with a or b, independently for several totals."""
    totals = [each for each in parts if isinstance(each, UnitTotal)] if isinstance(part, UnitTotal) else []
    counts = (each for each in totals if isinstance(each.of, CountRows) and each.least == 0 < each.most)
    return next((each for each in counts if part in (each, _held_by(part, each))), None)


def _held_by(total: Part, count: UnitTotal) -> Part | None:
    """Return the total if `count.most` of its rows stay within its ends, otherwise None."""
    assert isinstance(total, UnitTotal)
    row = total.of
    if isinstance(row, CountRows) or getattr(count.of, "present", None) not in (None, row.value):
        return None
    least, most = count.most * min(0, row.least), count.most * max(0, row.most)
    return total if total.least <= least and most <= total.most else None


def _cell_of(part: Part) -> tuple[tuple[Expr, ...], int, Part]:
    """Return the alternatives and the number of a part's cell (none for a part over all rows), and its inner part."""
    return (part.alternatives, part.number, part.of) if isinstance(part, CellPart) else ((), 0, part)


_Tied = dict[tuple[bool, frozenset[Expr | Part]], list[Element]]
"""Elements by (of units, expressions that are not NULL)."""


def _alternatives(cells: Sequence[Sequence[Block]]) -> Iterator[Block]:
    """Yield the contributions of rows to cells, of which each row has at most one: one block, whose patterns are those
    of each cell and the empty one for rows in none. With too many patterns, cells are treated as independent."""
    if sum(math.prod(map(len, blocks)) for blocks in cells) > MOST_PATTERNS:
        yield from (tuple(dict.fromkeys((*block, ()))) for block in chain(*cells))
        return
    chosen = chain.from_iterable(product(*blocks) for blocks in cells)
    yield tuple(dict.fromkeys((*(tuple(chain(*patterns)) for patterns in chosen), ())))


def _adds(part: Part) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
    """Return the minimum and the maximum that a row (or a unit) adds to a part if nothing that the part reads is NULL,
    and what it reads: if any of that is NULL (for a unit: in all of its rows) it adds 0.

    CountDistinct: let other rows of the group have the values D. A set of rows adds its values that are not in D: one
    after the other each adds 0 or 1. A square has two equal factors, so it is at least 0. UnitTotal: a unit without
    values has the total 0, clipped like any other."""
    if isinstance(part, CountRows | CountUnits):
        return _ONE, () if part.present is None else (part.present,)
    if isinstance(part, CountDistinct):
        return (0, 1), (part.value,)
    if isinstance(part, LatticeProduct):
        return (0 if part.first == part.second else -part.most, part.most), (part.first.value, part.second.value)
    assert not isinstance(part, LatticeShare | CellPart)  # shares are handled together, and cells by their parts
    if isinstance(part, AllUnits):
        raise InternalError("a number of all groups together is in each of them: its noise is for all groups")
    ends = (min(part.least, part.most), max(part.least, part.most))
    if isinstance(part, UnitTotal | UnitWeights):
        return (min(0, ends[0]), max(0, ends[1])), ()
    return ends, ((part.of if isinstance(part, UnitMean) else part).value,)
