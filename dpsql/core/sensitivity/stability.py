"""The stability of each node of a plan: how neighbouring databases differ after it.

A transformation is c-stable if it maps neighbours to tables at distance at most c (McSherry, "Privacy Integrated
Queries", SIGMOD 2009, section 3). Here neighbours differ in all rows of one privacy unit, in all tables. The rules
propagate upwards how many rows of a node's output one unit can have: `rows`. Every rule below also shows that each
row of the output belongs to exactly one unit and depends only on the rows of that unit and on public tables. So a row
does not change if another unit adds, removes or changes rows.

Under bounded neighbours a second fact matters: whether every unit's row still reaches the aggregate. Only then is the
number of rows public, and the changed row in both tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import singledispatch

from dpsql.errors import InternalError
from dpsql.plan.expressions import Call, Column, Expr, Literal, conjuncts
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, RowLimit, Scan, Source, Union, Windows, scans_of
from dpsql.plan.prior_releases import is_shown
from dpsql.schema.frozen import dataclass

DECLARED = ""
"""Stands for the declared units of all tables together: equal values are one unit, in any table."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Stability. `by_unit`: for each kind of unit (declared ones, or the rows of a table that declares none) the
    maximum number of rows of one unit, None if unlimited; empty if all is public. `every_row`: no row of the table has
    been dropped. `expected`: the rows of a unit as declared keys promise, which is enforced instead of trusted.
    `fan_out`: the number of rows that public tables make of one private row, or of one public row if all are public."""

    by_unit: Mapping[str, int | None]
    every_row: bool
    expected: int | None = None
    fan_out: int = 1

    @property
    def rows(self) -> int | None:
        """The maximum number of rows of one unit; None if unlimited."""
        found = list(self.by_unit.values())
        numbers = [each for each in found if each is not None]
        return None if len(numbers) < len(found) else max(numbers, default=0)

    @property
    def declared(self) -> bool:
        """True if units are declared; otherwise each row of a table is a unit."""
        return DECLARED in self.by_unit


@singledispatch
def stability(node: object) -> Stability:
    """Return the stability of a source node. Raises InternalError if there is no rule for it."""
    raise InternalError(f"no stability rule for {type(node).__name__}")


@stability.register
def _(scan: Scan) -> Stability:
    """Without a declared unit each row is a unit: adding, removing or changing a unit adds, removes or changes one row
    of the scan. If the source can drop a row because of its cells, a changed row can also enter or leave, as at a
    filter, so the number of rows is not public. With a declared unit, rows belong to the value at the end of its path
    (rows without one are dropped): neighbours differ in all rows of one value. A path may lead through tables whose
    rows have units too. Its last step takes the row of the smallest unit, so a row's unit follows from the unit of the
    row that it leads to. A public table is the same in all neighbours."""
    table = scan.table
    if table.public:
        return Stability({}, every_row=True)
    if table.unit is None:
        return Stability({table.name.casefold(): 1}, every_row=not table.can_drop_rows)
    one = not table.unit.steps and (table.unit.column,) in table.unique
    return Stability({DECLARED: None}, every_row=False, expected=1 if one else None)


@stability.register
def _(node: Filter) -> Stability:
    """A row passes depending only on its own values, so one changed row below is at most one changed row above: it
    stays, leaves or enters. Rows may be dropped, so the count above is no longer public. If the rows of each unit have
    distinct numbers and only k numbers pass, at most k rows of a unit pass."""
    below = replace(stability(node.input), every_row=False)
    most = _most_numbers(node)
    if most is None:
        return below
    expected = None if below.expected is None else min(below.expected, most)
    rows = below.by_unit[DECLARED]
    return replace(below, by_unit={DECLARED: most if rows is None else min(rows, most)}, expected=expected)


@stability.register
def _(node: Join) -> Stability:
    """Public right side: a left row becomes at most `matches` rows (at least one in an outer join), which belong to its
    unit, so a unit of k rows has at most k times as many. Private right side: rows are joined only within one unit, so
    its joined rows are a function of its own rows on both sides. They number at most the product of both, whatever keys
    the right side declares. A left row kept without a match depends on its unit's rows on the right, none of which
    matches. Rows may be dropped or multiplied. Private rows never stand right of public ones, whose number would not
    bound theirs. A table whose rows come from a prior release is cut to `matches` when it is joined. That depends only
    on that table, which may be below filters but not joined with another."""
    left, right = stability(node.left), stability(node.right)
    if not left.by_unit and right.by_unit:
        raise InternalError("people's rows right of public ones")
    if right.by_unit and left.by_unit.keys() | right.by_unit.keys() != {DECLARED}:
        raise InternalError("rows of different units would be joined")
    if not right.by_unit and not _can_be_cut(node.right):
        raise InternalError("rows that are still to come would be joined in a way in which nothing cuts them")
    least = 1 if node.outer else 0
    matches = None if node.matches is None else max(least, node.matches)
    times = (None if right.rows is None else max(least, right.rows)) if right.by_unit else matches
    by_unit = {unit: _product(rows, times) for unit, rows in left.by_unit.items()}
    fan_out = left.fan_out * (right.fan_out if right.by_unit else max(1, matches or 1))
    return Stability(by_unit, every_row=False, expected=_product(left.expected, matches), fan_out=fan_out)


def _can_be_cut(right: Source) -> bool:
    """Return whether the rows of a public right side are known already, or are those of one table below filters."""
    if not any(is_shown(scan.table) for scan in scans_of(right)):
        return True
    while isinstance(right, Filter):
        right = right.input
    return isinstance(right, Scan)


@stability.register
def _(node: Mark) -> Stability:
    """The mark of a row depends on that row and on public rows, or on the rows of its own unit: as if the unit had
    written the mark into its rows. No row is added or dropped. Private rows do not mark public ones, because queries of
    public rows are free."""
    inner = stability(node.inner)
    outer = stability(node.input)
    if inner.by_unit and not inner.by_unit.keys() == outer.by_unit.keys() == {DECLARED}:
        raise InternalError("rows would be marked by those of other units")
    return outer


@stability.register
def _(node: Union) -> Stability:
    """A unit's rows in the union are its rows in all branches. The numbers add up over branches that can hold the same
    unit; two tables of row units cannot. Declared units and row units are not mixed, since contribution bounds are for
    one kind of unit. That branches are alternatives is enforced instead of trusted."""
    by_unit: dict[str, int | None] = {}
    below = [stability(branch.input) for branch in node.branches]
    if len({each.declared for each in below if each.by_unit}) > 1:
        raise InternalError("rows of declared units would stand among rows that are units")
    for each in below:
        for unit, rows in each.by_unit.items():
            before = by_unit.get(unit, 0)
            by_unit[unit] = None if rows is None or before is None else rows + before
    numbers = [each.expected if each.expected is not None or not node.alternatives else each.rows for each in below]
    promised = [each for each in numbers if each is not None]
    together = max(promised, default=None) if node.alternatives else sum(promised)
    expected = together if len(promised) == len(below) else None
    return Stability(by_unit, every_row=False, expected=expected, fan_out=sum(each.fan_out for each in below))


@stability.register
def _(node: PerUnit) -> Stability:
    """Every group is formed from the rows of one unit, so units stay apart. If the unit is the only key, it has at most
    one group, otherwise at most as many as it has rows. Groups of public rows are public."""
    below = stability(node.input)
    if not below.by_unit:
        return Stability({}, every_row=False)
    if not below.declared:
        raise InternalError("only a declared unit has groups of its own")
    rows, fan_out = (1, 1) if node.alone else (below.rows, below.fan_out)
    return Stability({DECLARED: rows}, every_row=False, expected=below.expected, fan_out=fan_out)


@stability.register
def _(node: Windows) -> Stability:
    """A row's window values depend only on the rows of its own unit, in an order that their values decide. Rows with
    equal values are interchangeable, so the unit's rows with their window values are a function of the multiset of its
    rows. A unit keeps its number of rows or, if it exceeds the maximum for windows, has none."""
    below = stability(node.input)
    if below.by_unit.keys() != {DECLARED}:
        raise InternalError("a window over rows that are not of a declared unit")
    return replace(below, every_row=False)


@stability.register
def _(node: RowLimit) -> Stability:
    """A row limit keeps at most `most` rows of a unit, those with the smallest hashes. A hash is a function of the row
    and of a key drawn independently of the rows. So for each key the kept rows of a unit are a function of that unit's
    rows, and no other unit changes them."""
    below = stability(node.input)
    if below.by_unit.keys() != {DECLARED}:
        raise InternalError("a limit of rows that are not of a declared unit")
    rows = below.by_unit[DECLARED]
    most = node.most if rows is None else min(rows, node.most)
    expected = None if below.expected is None else min(below.expected, node.most)
    return replace(below, by_unit={DECLARED: most}, every_row=False, expected=expected)


def _most_numbers(node: Filter) -> int | None:
    """Return how many row numbers of a unit pass a predicate on a ROW_NUMBER over the unit only; None if the predicate
    is different, or if a node in between can have several rows for one number."""
    numbers: set[Column] = set()
    source: Source = node
    while isinstance(source, Filter | Mark | Windows):
        if isinstance(source, Windows):
            named = zip(source.calls, source.columns, strict=True)
            numbers |= {column for call, column in named if call.numbers_rows}
        source = source.input
    found = [_most_passing(term, numbers) for term in conjuncts(node.predicate)] if numbers else []
    return min((each for each in found if each is not None), default=None)


_MIRRORED = {"gt": "lt", "ge": "le", "eq": "eq"}
_PASSING: Mapping[str, Callable[[float], int]] = {
    "lt": lambda most: max(0, math.ceil(most) - 1),
    "le": lambda most: max(0, math.floor(most)),
    "eq": lambda _one: 1,
}


def _most_passing(term: Expr, numbers: set[Column]) -> int | None:
    """Return the maximum count of 1, 2, 3 ... for which a comparison of a row number with a constant is TRUE."""
    if not isinstance(term, Call):
        return None
    name, args = term.function.name, term.args
    if name == "in" and args[0] in numbers and all(isinstance(each, Literal) for each in args[1:]):
        return len(args) - 1
    if len(args) == 2 and args[1] in numbers:
        name, args = _MIRRORED.get(name, ""), args[::-1]
    if name not in _PASSING or args[0] not in numbers or not isinstance(args[1], Literal):
        return None
    most = args[1].value
    return _PASSING[name](most) if isinstance(most, int | float) and math.isfinite(most) else None


def _product(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other
