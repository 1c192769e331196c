"""What neighbouring tables are worth under the laws that were drawn: worked out from exact integers and laws alone.

Nothing here asks the engine for a reach. A release says which combinations of parts it measures, with which law; what
neighbours differ by in these, divided by the law's own scale, is what the measurement costs, and is compared with what
the ledger is charged. Queries, tables, facts and neighbours are random.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas as pd

import dpsql
from dpsql.core.exact import ExactPlan
from dpsql.core.measurement import GroupsByChance, GroupsByThreshold, Share
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import ALL, EITHER, GroupVectorLaplace
from dpsql.core.mechanisms.noise import CubeLaplace, GaussianNoise, SplitLaplace
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.core.selection.weighted import GroupsByWeights
from dpsql.errors import InternalError
from dpsql.executors.base import executor_of
from dpsql.plan.domains import cells_of
from dpsql.release.bounds.auto_bounds import Searches
from dpsql.release.choices import Draw
from dpsql.release.levels.estimates import Levels
from dpsql.release.release import Release
from dpsql.schema.intervals import Interval
from dpsql.session.session import Session

F = Fraction
Group = tuple[Any, ...]
Vectors = dict[Group, tuple[int, ...]]
KEYS = (bytes(32), bytes(range(32)), bytes([7]) * 32)


@dataclass(frozen=True)
class Integers:
    """Parts by group, and how many rows lie at each point of each grid."""

    parts: Vectors
    grids: dict[Group, tuple[dict[int, int], ...]]


def integers(session: Session, plan: ExactPlan, key: bytes) -> Integers:
    table = executor_of(session._stores, session._engine).execute(plan, key)
    columns = [cells_of(vector, each.expr.type) for vector, each in zip(table.keys, plan.keys, strict=True)]
    groups: list[Group] = list(zip(*columns, strict=True)) if columns else [()] * table.groups
    assert len(set(groups)) == len(groups), "one group twice"
    parts = {group: tuple(int(each) for each in table.parts[:, at]) for at, group in enumerate(groups)}
    points: list[tuple[dict[int, int], ...]] = [tuple({} for _ in table.grids) for _ in groups]
    for number, grid in enumerate(table.grids):
        for at, point, count in zip(grid.groups.tolist(), grid.points.tolist(), grid.counts.tolist(), strict=True):
            points[at][number][point] = count
    return Integers(parts, dict(zip(groups, points, strict=True)))


def changes(one: Vectors, other: Vectors, width: int) -> list[tuple[int, ...]]:
    """By how much each group's vector differs; one that is not there is 0."""
    zero = (0,) * width
    groups = one.keys() | other.keys()
    return [tuple(b - a for a, b in zip(one.get(g, zero), other.get(g, zero), strict=True)) for g in groups]


def combined(parts: Vectors, terms: Sequence[Sequence[tuple[int, int]]]) -> Vectors:
    return {
        group: tuple(sum(factor * steps[part] for part, factor in each) for each in terms)
        for group, steps in parts.items()
    }


def worth(noise: Any, differences: Sequence[tuple[int, ...]], *, most: int) -> tuple[Fraction, Fraction]:
    """(epsilon, rho) of a law whose vectors differ so, group by group. `most`: how many coordinates there are."""
    if isinstance(noise, GroupVectorLaplace):
        return _worth_across(noise, differences, most=most), F(0)
    assert isinstance(noise, Staircase) or noise.dimension == most, "noise of another dimension"
    if isinstance(noise, GaussianNoise):
        return F(0), F(sum(step * step for each in differences for step in each)) / (2 * noise.variance)
    if isinstance(noise, SplitLaplace):
        return F(sum(abs(step) for each in differences for step in each)) / noise.exact_scale, F(0)
    if isinstance(noise, Staircase):  # one integer, which goes down each stair that its change begins
        assert most == 1, "stairs for several numbers"
        steps = [abs(step) for each in differences for step in each if step]
        assert len(steps) <= 1, "stairs for several changes at once"
        return F(sum(-(-step // noise.width) for step in steps)) / noise.exact_scale, F(0)
    classes = noise.classes if isinstance(noise, ClassLaplace) else (0,) * most
    assert isinstance(noise, CubeLaplace | ClassLaplace)
    largest = sum(norm_by_class(each, classes) for each in differences)
    return F(largest) / noise.exact_scale, F(0)


def norm_by_class(change: Sequence[int], classes: Sequence[int]) -> int:
    """The largest step of each class, summed over classes."""
    largest: dict[int, int] = {}
    for step, of in zip(change, classes, strict=True):
        largest[of] = max(largest.get(of, 0), abs(step))
    return sum(largest.values())


def _worth_across(noise: GroupVectorLaplace, differences: Sequence[tuple[int, ...]], *, most: int) -> Fraction:
    """Of noise for all groups together: the largest number, if those that have one draw together move together."""
    assert len(noise.kinds) == most, "noise of other coordinates"
    for place, kind in enumerate(noise.kinds):
        moves = [each[place] for each in differences]
        assert kind != ALL or len(set(moves)) <= 1, f"one draw for several numbers: {moves}"
        assert kind != EITHER or (len(moves) == 2 and sum(moves) == 0), f"one draw for two numbers: {moves}"
    return F(max((abs(step) for each in differences for step in each), default=0)) / noise.exact_scale


def pays(cost: Any, epsilon: Fraction, rho: Fraction, where: str) -> None:
    assert epsilon <= (epsilon if cost.epsilon is None else cost.epsilon), (
        f"worth {float(epsilon)}, charged {cost}: {where}"
    )
    assert epsilon**2 / 2 + rho <= cost.rho, f"worth {float(epsilon)}, {float(rho)}, charged {cost!r}: {where}"


# What each measurement is worth


def check_share(share: Share, made: Release, one: Integers, other: Integers, where: str) -> None:
    terms = [made.coordinates[place].terms for place in share.places]
    differences = changes(combined(one.parts, terms), combined(other.parts, terms), len(terms))
    pays(share.cost, *worth(share.noise, differences, most=len(terms)), where)


def check_levels(levels: Levels, made: Release, one: Integers, other: Integers, where: str) -> None:
    terms = [made.coordinates[place].terms for place in levels.noisy]
    for level in levels.measured:
        sums: list[Vectors] = []
        for each in (one, other):
            found: dict[Group, list[int]] = {}
            for group, steps in combined(each.parts, terms).items():
                cell = found.setdefault(tuple(group[key] for key in level.keys), [0] * len(terms))
                cell[:] = [a + b for a, b in zip(cell, steps, strict=True)]
            sums.append({group: tuple(steps) for group, steps in found.items()})
        epsilon, rho = worth(level.noise, changes(sums[0], sums[1], len(terms)), most=len(terms))
        cost = replace(level.cost, epsilon=None) if rho else level.cost
        pays(cost, epsilon, rho, f"level {level.keys} of {where}")


def shown_with(groups: GroupsByThreshold, steps: int) -> Fraction:
    """At most the chance of a group whose count has so many steps: at the height, or a step short of it by a coin."""
    if steps >= groups.height:
        return F(1)
    reached = F(groups.noise.upper_tail(groups.height - steps))
    nearly = F(groups.noise.upper_tail(groups.height - 1 - steps)) if steps < groups.height - 1 else F(1)
    return reached * (1 - groups.below) + nearly * groups.below


def check_threshold(groups: GroupsByThreshold, made: Release, one: Integers, other: Integers, where: str) -> None:
    terms = [made.coordinates[groups.place].terms]
    share = made.share_of(groups.place)
    assert getattr(share, "noise", None) == groups.noise, f"a threshold on other noise: {where}"
    for here, there in ((one, other), (other, one)):
        chance = F(0)
        for group, (steps,) in combined(here.parts, terms).items():
            if group not in there.parts:
                chance += shown_with(groups, steps)
        assert chance <= groups.cost.delta, f"shown with {float(chance)}, charged {groups.cost}: {where}"


def check_chance(groups: GroupsByChance, one: Integers, other: Integers, where: str) -> None:
    counts = [{group: (steps[groups.part],) for group, steps in each.parts.items()} for each in (one, other)]
    moved = [abs(step) for (step,) in changes(counts[0], counts[1], 1)]
    assert max(moved, default=0) <= 1, f"a unit counts {moved}: {where}"
    assert sum(moved) <= groups.law.groups, f"a unit is in {sum(moved)} groups: {where}"
    assert all(steps > 0 for each in counts for (steps,) in each.values()), f"a group of nobody: {where}"


def check_weights(groups: GroupsByWeights, one: Integers, other: Integers, where: str) -> None:
    """Squares of what common groups move by against the noise, and the chance of groups that one table alone has."""
    weights = [{group: steps[groups.part] for group, steps in each.parts.items()} for each in (one, other)]
    common = weights[0].keys() & weights[1].keys()
    squares = sum((weights[0][group] - weights[1][group]) ** 2 for group in common)
    noise = groups.noise.loss(replace(groups.reach, l2_squared=F(squares)))
    assert noise.join(groups.cost) == groups.cost, f"weights move by {squares}: {where}"
    assert squares <= groups.reach.l2_squared, f"weights move by {squares}: {where}"
    chance = F(0)
    for held in weights:
        for group in held.keys() - common:
            above = groups.height - held[group]
            chance += F(groups.noise.upper_tail(above)) if above > 0 else 1
    assert chance <= groups.delta, f"shown with {float(chance)}, charged {groups.cost}: {where}"


def scores_of(draw: Draw, q: Fraction, grid: Mapping[int, int], at: Sequence[int]) -> list[Fraction]:
    """Of these points, by the documented rule; of a quantile for q."""
    total, found = sum(grid.values()), []
    for place in at:
        count, below = grid.get(place, 0), sum(each for point, each in grid.items() if point < place)
        low, high = (total - below - count, total - below) if draw.kind.end == "largest" else (below, below + count)
        if not (draw.kind.quantile or draw.kind.ranked):
            found.append(F(count))
        else:
            target = q * total if draw.kind.quantile else F(draw.rank)
            found.append(-max(low - target, target - high, F(0)))
    return found


def check_draw(draw: Draw, plan: ExactPlan, one: Integers, other: Integers, where: str) -> None:
    """Of a quantile among several the first draw alone, and what follows by its parts."""
    q, spread, vectors = draw.wanted[draw.tree.place if draw.tree else 0], F(0), []
    for group in one.grids.keys() | other.grids.keys():
        grids = [each.grids[group][draw.grid] if group in each.grids else {} for each in (one, other)]
        vectors += [(grids[1].get(point, 0) - grids[0].get(point, 0),) for point in grids[0].keys() | grids[1].keys()]
        if draw.noise is None:
            near = {point + by for grid in grids for point in grid for by in (-1, 0, 1)} | {0, draw.points - 1}
            at = sorted(point for point in near if 0 <= point < draw.points)  # scores change at points with rows alone
            moved = [b - a for a, b in zip(*(scores_of(draw, q, grid, at) for grid in grids), strict=True)]
            spread += max(moved) - min(moved)
    if draw.noise is not None:
        return pays(draw.cost, *worth(draw.noise, vectors, most=1), where)
    if draw.kind.quantile:
        one_way, both = q in (0, 1), draw.bounded
        step = F(1) if one_way else 2 * max(q, 1 - q)
        each = (F(1) if one_way else F(2)) if both and not plan.keys else step * (2 if both else 1)
        draws, squares, part = F(1), F(1), F(1)
        if draw.tree is not None:
            assert draw.tree.along(1) <= 1, where
            part = draw.tree.part
            draws, squares = draw.tree.along(1) / part, draw.tree.along(2) / part**2
        epsilon = draw.epsilon * part / (draw.rows * each) * spread
    else:
        draws = squares = F(len(draw.places))
        epsilon = draw.rate * spread
    if draw.mechanism == "exponential":  # log ratios lie in an interval of length epsilon
        assert squares * epsilon**2 / 8 <= draw.cost.rho, (
            f"worth {float(epsilon)} {squares} times: {draw.cost}: {where}"
        )
        assert draw.cost.epsilon is None or draws * epsilon <= draw.cost.epsilon, f"worth {draws * epsilon}: {where}"
    else:
        pays(draw.cost, draws * epsilon, F(0), where)
    return None


def check_searches(searches: Searches, one: Integers, other: Integers, where: str) -> None:
    """Rows that candidates clip, one by one, at both ends of every place where rows are and far from all."""
    for number, search in enumerate(searches.searches):
        grids = [each.grids.get((), ({},) * len(searches.searches))[number] for each in (one, other)]
        near = sorted({place + by for grid in grids for place in grid for by in (0, 1)} | {0, search.grid.points})
        moved = []
        for first in near:
            for last in near:
                clipped = [
                    max(sum(c for p, c in grid.items() if p < first), sum(c for p, c in grid.items() if p >= last))
                    for grid in grids
                ]
                moved.append(clipped[1] - clipped[0])
        spread = max(moved) - min(moved)
        epsilon = search.epsilon / search.spread * spread
        assert search.mechanism == "exponential"
        assert epsilon**2 / 8 <= search.cost.rho, f"a search is worth {float(epsilon)}: {where}"
        if search.cost.epsilon is not None:
            assert epsilon <= search.cost.epsilon, f"a search is worth {float(epsilon)}: {where}"


def check_neighbours(made: Release, one: Integers, other: Integers, where: str) -> None:
    """Every measurement against its charge; what has no measurement is the same."""
    noisy = {place for share in made.shares for place in share.places}
    for measurement in made.measurements:
        if isinstance(measurement, Share):
            check_share(measurement, made, one, other, where)
        elif isinstance(measurement, Levels):
            noisy |= set(measurement.noisy)
            check_levels(measurement, made, one, other, where)
        elif isinstance(measurement, GroupsByThreshold):
            check_threshold(measurement, made, one, other, where)
        elif isinstance(measurement, GroupsByChance):
            check_chance(measurement, one, other, where)
        elif isinstance(measurement, GroupsByWeights):
            check_weights(measurement, one, other, where)
        elif isinstance(measurement, Draw):
            check_draw(measurement, made.exact, one, other, where)
    quiet = [each.terms for place, each in enumerate(made.coordinates) if place not in noisy]
    a, b = combined(one.parts, quiet), combined(other.parts, quiet)
    assert all(a[group] == b[group] for group in a.keys() & b.keys()), f"moved, and without noise: {where}"
    if made.exact.every_cell or not made.exact.keys or not made.selection.hides:
        assert a == b, f"groups come or go: {where}"


def check_total(made: Release, sql: str) -> None:
    """All measurements together cost what is charged, and that is what was allowed."""
    each = made.measurements
    finite = [one.cost.epsilon for one in each]
    delta, rho = sum(one.cost.delta for one in each), sum(one.cost.rho for one in each)
    if made.cost.epsilon is not None:
        assert None not in finite, f"{sql}: {finite} of {made.cost}"
        assert sum(finite) <= made.cost.epsilon, f"{sql}: {finite} of {made.cost}"  # type: ignore[arg-type]
    assert delta <= made.cost.delta, f"{sql}: {float(delta)} of {made.cost!r}"
    assert rho <= made.cost.rho, f"{sql}: {float(rho)} of {made.cost!r}"
    allowed = made.allowed
    assert made.cost.delta <= allowed.delta
    if allowed.rho is None:
        assert made.cost.epsilon is not None
        assert made.cost.epsilon <= allowed.pure
    else:
        assert made.cost.rho <= allowed.rho


# Random worlds

NAN, INF = float("nan"), float("inf")
Column = tuple[str, Sequence[Any], Mapping[str, Any]]
"""dtype, cells, and what is declared."""
NUMBERS: list[Column] = [
    ("int64", [0, 1, 2, 3, -1, 9, 2**62, -(2**63)], {"bounds": (0, 3)}),
    ("Int64", [None, -5, -4, 0, 5, 2**63 - 1], {"bounds": (-5, 5)}),
    ("Int64", [None, 2**53 - 2, 2**53, 2**53 + 1, 2**53 + 3, 0], {"bounds": (2**53 - 2, 2**53 + 3)}),
    ("int64", [2**62 - 3, 2**62 - 1, 2**62, 2**63 - 1, 0], {"bounds": (2**62 - 3, 2**62)}),
    ("int64", [-(2**62), 2**62, 5, 0, 2**53 + 1], {"bounds": (-(2**62), 2**62)}),
    ("uint64", [0, 7, 2**63, 2**64 - 1], {"bounds": (0, 2**62)}),
    ("float64", [NAN, INF, -INF, 0.0, -0.0, 5e-324, 1.5, -1.0, 2.0, 1e308], {"bounds": (-1, 2)}),
    ("float64", [0.0, 5e-324, 1e-300, 1e-299, NAN], {"bounds": (0, 1e-300)}),
    ("float64", [1e100, -1e100, 0.1, INF, NAN], {"bounds": (-1e18, 1e18)}),
    ("Float64", [None, 0.1, 0.2, 0.3, 0.7], {"bounds": (0.1, 0.3)}),
    ("boolean", [True, False, None], {}),
    ("bool", [True, False], {}),
    ("object", [Decimal("0.10"), Decimal("1.00"), Decimal("1e30"), None, "x", Decimal("-2.5")],
     {"types": "decimal", "bounds": (-2, 1)}),
    ("object", [1, 2, 2.5, "3", None, [1], True, 10**30], {"types": "integer", "bounds": (1, 4)}),
    ("int64", [0, 1, 50, -7, 10**6, 2**60], {"bounds": "auto"}),
    ("float64", [0.0, -0.25, 3.5, 1e18, -1e30, NAN, INF], {"bounds": "auto"}),
]  # fmt: skip
TEXTS: list[Column] = [
    ("str", ["a", "b", "c", None], {"keys": ["a", "b"]}),
    ("object", ["a", "a ", "A", "é", "e\u0301", "", None, 5], {"types": "text", "keys": ["a", "é", "", None]}),
    ("str", ["a", "b", "c", "d", None], {}),
    ("category", ["a", "b", "c", None], {"keys": ["c", "a"]}),
    ("Int64", [0, 1, 2, None, 7], {"bounds": (0, 2)}),
    ("boolean", [True, False, None], {}),
    ("datetime64[s]", [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3), None, dt.datetime(1960, 2, 29)],
     {"types": "date", "bounds": ("2024-01-01", "2024-01-03")}),
    ("float64", [0.0, -0.0, 1.5, NAN, INF], {"keys": [0, 1.5]}),
]  # fmt: skip


@dataclass(frozen=True)
class Spelled:
    """One person, whose cells are different objects."""

    cells: tuple[Any, ...]


UNITS: list[Column] = [
    ("int64", [1, 2, 3, -(2**63), 2**63 - 1], {}),
    ("str", ["a", "a ", "A", "", "\u00e9"], {}),
    ("float64", [1.0, 1.5, INF, -INF, 2.0**60], {}),
    ("boolean", [True, False], {}),
    ("uint64", [1, 2**63, 2**64 - 1, 5], {}),
    ("object", [Spelled((1, "1")), 2.5, Decimal("1e40"), True], {"types": "text"}),
    ("datetime64[ns]", [pd.Timestamp(1), pd.Timestamp(2), pd.Timestamp("2024-01-01")], {}),
    ("Int64", [1, 2, 3, 4], {}),
]
NULLS = {"str", "object", "category", "boolean", "Int64", "datetime64[ns]", "float64"}


def series(cells: Sequence[Any], dtype: str) -> pd.Series:
    held = pd.Series([None] * len(cells), dtype=object)
    for at, cell in enumerate(cells):
        held[at] = cell
    if dtype == "category":
        return held.astype(pd.CategoricalDtype(["a", "b", "c"]))
    if dtype == "float64":
        held = held.map(lambda cell: NAN if cell is None else cell)
    return held if dtype == "object" else held.astype(dtype)


Row = tuple[Any, ...]
Data = dict[str, list[Row]]


@dataclass(frozen=True)
class World:
    """t(u, x, y, k, g) and, where units are declared, o(u, z, k) are people's; p(k, w) is public."""

    columns: Mapping[str, Column]
    unit: Column | None
    limits: Mapping[str, int]
    public: list[Row]
    nullable: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def random(cls, rng: random.Random) -> World:
        columns = {"x": rng.choice(NUMBERS), "y": rng.choice(NUMBERS), "z": rng.choice(NUMBERS)}
        columns |= {"k": rng.choice(TEXTS), "g": rng.choice(TEXTS)}
        unit, limits = None, {}
        if rng.random() < 0.65:
            unit = rng.choice(UNITS)
            limits = {"max_rows": rng.choice([1, 2, 3, 5])} if rng.random() < 0.8 else {}
            if not limits or rng.random() < 0.5:
                limits |= {"max_groups": rng.choice([1, 2, 3])}
            if "max_rows" not in limits or rng.random() < 0.4:
                limits |= {"max_rows_per_group": rng.choice([1, 2, 3])}
        keys = [each for each in columns["k"][1] if each is not None]
        public = [(rng.choice(keys), rng.choice([1, 2, 3])) for _ in range(rng.choice([0, 2, 4]))]
        public = [row for at, row in enumerate(public) if sum(row[0] == other[0] for other in public[:at]) < 2]
        nullable = {name: False for name in "xykg" if rng.random() < 0.15}
        return cls(columns, unit, limits, public, nullable)

    def dtypes(self, table: str) -> dict[str, str]:
        names = {"t": "xykg", "o": "zk", "p": "k"}[table]
        found = {name: self.columns[name][0] for name in names}
        if table == "p":
            return {**found, "w": "int64"}
        return {"u": self.unit[0], **found} if self.unit is not None else found

    def table(self, name: str, rows: Sequence[Row]) -> dpsql.Table:
        dtypes = self.dtypes(name)
        cells = list(zip(*rows, strict=True)) or [()] * len(dtypes)
        frame = pd.DataFrame(
            {column: series(each, dtype) for (column, dtype), each in zip(dtypes.items(), cells, strict=True)}
        )
        said: dict[str, Any] = {}
        for column in dtypes:
            of = self.unit if column == "u" and self.unit is not None else self.columns.get(column)
            for word, value in (of[2] if of is not None else {}).items():
                said.setdefault(word, {})[column] = value
        if name == "p":
            return dpsql.Table(frame, public=True, types=said.get("types"), max_matches={"k": 2})
        nullable = {column: False for column in dtypes if column in self.nullable}
        if self.unit is None:
            return dpsql.Table(frame, **said, nullable=nullable)
        return dpsql.Table(frame, **said, nullable=nullable, unit="u", **self.limits)

    def session(self, data: Data, relation: str) -> Session:
        tables = {name: self.table(name, data[name]) for name in data}
        return Session(tables, budget=dpsql.Budget(10**9, 0.5), neighbours=relation)

    @property
    def tables(self) -> tuple[str, ...]:
        return ("t", "o", "p") if self.unit is not None else ("t", "p")

    def row(self, rng: random.Random, table: str, unit: Any) -> Row:
        names = {"t": "xykg", "o": "zk"}[table]
        cells = tuple(rng.choice(self.columns[name][1]) for name in names)
        if self.unit is None:
            return cells
        return (rng.choice(unit.cells) if isinstance(unit, Spelled) else unit, *cells)

    def rows(self, rng: random.Random, unit: Any, most: int) -> Data:
        """Some rows of one unit."""
        found = {name: [self.row(rng, name, unit) for _ in range(rng.randint(0, most))] for name in self.tables[:-1]}
        if self.unit is None:
            found = {"t": [self.row(rng, "t", None)]}
        return found

    def together(self, parts: Sequence[Data]) -> Data:
        data: Data = {name: [row for part in parts for row in part.get(name, [])] for name in self.tables}
        return {**data, "p": self.public}


@dataclass
class Queries:
    """Random texts; many are refused."""

    rng: random.Random
    world: World

    def number(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 1 or rng.random() < 0.6:
            return rng.choice(["x", "x", "y", "y", "1", "2.5"])
        a, b = self.number(depth + 1), self.number(depth + 1)
        return rng.choice([
            f"({a} + {b})", f"({a} * {b})", f"({a} - {b})", f"({a} / {b})", f"({a} % {b})", f"CLAMP({a}, -1, 2)",
            f"NULLIF({a}, {b})", f"COALESCE({a}, {b})", f"SQRT({a})", f"LN({a})", f"ABS({a})", f"ROUND({a}, 1)",
            f"CASE WHEN {self.condition()} THEN {a} END", f"CASE WHEN {b} IS NOT NULL THEN {a} END", f"EXP({a})",
            f"CAST({a} AS INTEGER)", f"POWER({a}, 2)", f"GREATEST({a}, {b})", f"({a} // {b})", f"SIGN({a})",
        ])  # fmt: skip

    def condition(self) -> str:
        rng = self.rng
        a, b = self.number(2), self.number(2)
        return rng.choice([
            f"{a} > {b}", f"{a} = {b}", f"{a} IS NULL", f"{a} IS NOT NULL", "k IS NOT NULL", "g = k",
            f"{a} IN (0, 1, 2)",
            f"{a} BETWEEN 0 AND 2", f"NOT {a} < {b}", f"{a} <> {b} OR k IS NULL", "TRUE", f"{a} + {b} <= 1.5",
        ])  # fmt: skip

    def aggregate(self) -> str:
        rng, a, b = self.rng, self.number(), self.number()
        plain = rng.choice([
            "COUNT(*)", f"COUNT({a})", f"SUM({a})", f"SUM({a})", f"AVG({a})", f"AVG({a})", f"VAR_POP({a})",
            f"STDDEV({a})", f"COVAR_POP({a}, {b})", f"CORR({a}, {b})", f"REGR_SLOPE({a}, {b})", "COUNT(DISTINCT k)",
            f"COUNT(DISTINCT {a})",
            "COUNT(DISTINCT u)" if self.world.unit is not None else "COUNT(*)",
            f"COUNT_IF({self.condition()})", f"MEDIAN({a})", f"REGR_R2({a}, {b})",
            f"QUANTILE({a}, 0.9)", f"QUANTILE({a}, 0)", f"MIN({a})", f"MAX({a})", "MODE(k)", "APPROX_TOP_K(k, 2)",
            "APPROX_TOP_K(k, 3)", "MODE(g)",
        ])  # fmt: skip
        if rng.random() < 0.15 and plain.endswith(")"):
            own = rng.choice([", epsilon => 0.1)", f", contribution_bounds_per_group => (0, {rng.choice([1, 3])}))"])
            return plain[:-1] + own
        return plain + (f" FILTER (WHERE {self.condition()})" if rng.random() < 0.2 else "")

    def source(self) -> str:
        rng, units = self.rng, self.world.unit is not None
        forms = ["t"] * 5 + [
            "t JOIN p USING (k)", "t LEFT JOIN p USING (k)", "(SELECT * FROM t UNION ALL SELECT * FROM t) AS t",
            "(SELECT x, y, k, g FROM t WHERE x IS NOT NULL) AS t", "(SELECT y AS x, x AS y, k, g FROM t) AS t",
            "(SELECT x, y, g, k FROM t UNION ALL SELECT y AS x, x AS y, g, k FROM t WHERE k IS NOT NULL) AS t",
        ]  # fmt: skip
        if units:
            forms += [
                "t JOIN (SELECT u, z FROM o) AS o USING (u)", "t LEFT JOIN (SELECT u, z FROM o) AS o USING (u)",
                "(SELECT u, k, SUM(x) AS x, COUNT(*) AS y, k AS g FROM t GROUP BY u, k) AS t",
                "(SELECT u, SUM(x) AS x, AVG(y) AS y, COUNT(DISTINCT k) AS k, MAX(x) AS g FROM t GROUP BY u) AS t",
                "(SELECT t.u, x, y, t.k, g FROM t JOIN o ON t.u = o.u AND t.k = o.k) AS t",
                "(SELECT u, x, y, k, g FROM t UNION ALL SELECT u, z AS x, z AS y, k, k AS g FROM o) AS t",
            ]  # fmt: skip
        return rng.choice(forms)

    def sql(self) -> str:
        rng = self.rng
        source, listed = self.source(), [self.aggregate() for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
        if rng.random() < 0.1:
            x, y = rng.sample(["x", "y"], 2)
            listed = [f"CORR({x}, {y})", "COUNT(*)", f"AVG({x})", f"VAR_POP({y})"][: rng.randint(1, 4)]
        where = []
        if rng.random() < 0.35:
            where.append(self.condition())
        if self.world.unit is not None and rng.random() < 0.1:
            where.append(rng.choice(["u IN (SELECT u FROM o)", "u NOT IN (SELECT u FROM o)"]))
        if rng.random() < 0.1:
            where.append("k IN (SELECT k FROM p)")
        by = rng.choice(
            ["", "", "", "k", "k", "g", "k, g", "ROLLUP (k)", "CUBE (k, g)", "x > 1", "w" if " p " in source else "g"]
        )
        options = ""
        if rng.random() < 0.15:
            said = rng.choice([
                "max_rows_contributed = 2", "max_groups_contributed = 1",
                "max_groups_contributed = 2, max_rows_contributed = 3",
                "group_selection_strategy = LAPLACE_THRESHOLD", "group_selection_strategy = TRUNCATED_GEOMETRIC",
                "min_privacy_units_per_group = 2", "group_selection_strategy = GAUSSIAN_THRESHOLD",
            ])  # fmt: skip
            options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({said}) "
        text = f"SELECT {options}{', '.join(listed)} FROM {source}"
        return text + (f" WHERE {' AND '.join(where)}" if where else "") + (f" GROUP BY {by}" if by else "")

    def terms(self) -> dict[str, Any]:
        rng = self.rng
        terms: dict[str, Any] = rng.choice([{"epsilon": 1}, {"epsilon": 0.01}, {"epsilon": 30}, {"rho": 0.1}])
        terms = dict(terms)
        if rng.random() < 0.8:
            terms["delta"] = rng.choice([1e-6, 0.01])
        return terms | {
            "strategy": rng.choice(["auto", "auto", "split"]),
            "mechanism": rng.choice(["auto", "auto", "gaussian"]),
        }


# The check


@dataclass
class Met:
    asked: int = 0
    refused: int = 0
    pairs: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    def note(self, made: Release) -> None:
        for one in made.measurements:
            name = type(one).__name__ + (f" {one.noise.name}" if isinstance(one, Share) else "")
            self.kinds[name] = self.kinds.get(name, 0) + 1


def neighbours_of(
    world: World, rng: random.Random, relation: str, *, people: int, rows: int
) -> Iterator[tuple[Data, Data]]:
    """A few random neighbours: of few people, so that answers are soon at their extremes; with rows of nobody."""
    values = world.unit[1] if world.unit is not None else list(range(people))
    chosen = rng.sample(list(values), min(people, len(values)))
    parts = [world.rows(rng, unit, rows) for unit in chosen]
    nobody = (
        [world.rows(rng, None, 1)] if world.unit is not None and world.unit[0] in NULLS and rng.random() < 0.3 else []
    )
    at = rng.randrange(len(parts))
    rest = [*parts[:at], *parts[at + 1 :], *nobody]
    whole = world.together([*rest, parts[at]])
    if relation == "unbounded":
        yield whole, world.together(rest)
        return
    for _ in range(3):
        yield whole, world.together([*rest, world.rows(rng, chosen[at], rows)])
    if world.unit is not None:
        yield whole, world.together(rest)


def run(session: Session, made: Release, key: bytes, bounds: tuple[Interval, ...]) -> tuple[Integers | None, Integers]:
    searched = integers(session, made.told.plans[0], key) if made.provisional else None
    return searched, integers(session, made.settled(bounds).exact, key)


def ask(rng: random.Random, met: Met, *, texts: int = 8, tables: int = 2) -> None:
    """Some queries of one random world, each over some neighbours."""
    world, relation = World.random(rng), rng.choice(["unbounded", "bounded"])
    pairs = [
        (world.session(a, relation), world.session(b, relation), key, a, b)
        for key in KEYS[:tables]
        for a, b in neighbours_of(world, rng, relation, people=rng.choice([1, 1, 2, 3]), rows=rng.choice([1, 2, 4, 7]))
    ]
    queries = Queries(rng, world)
    for _ in range(texts):
        sql, terms = queries.sql(), queries.terms()
        met.asked += 1
        whole = rng.random() < 0.2
        told = {_told(session, sql, terms, whole=whole) for session in pairs[-1][:2]}
        assert len(told) == 1, f"what is told of a plan differs: {sql}\n{told}"
        try:
            made = pairs[0][0].explain(sql, **terms)._release
        except dpsql.DPSQLError:
            met.refused += 1
            continue
        met.note(made)
        check_total(made, sql)
        bounds = _some_bounds(made, rng)
        settled = made.settled(bounds)
        for one, other, key, a, b in pairs:
            where = f"{sql} | {relation} {terms} {world.limits} {world.columns} {world.unit}\n{a}\n{b}"
            (found, here), (searched, there) = run(one, made, key, bounds), run(other, made, key, bounds)
            if found is not None and searched is not None:
                check_searches(made.searches, found, searched, where)
            check_neighbours(settled, here, there, where)
            met.pairs += 1


def _some_bounds(made: Release, rng: random.Random) -> tuple[Interval, ...]:
    if not made.provisional:
        return ()
    ends: Callable[[], int] = lambda: rng.choice([0, 1, 2, 4, 2**20, 2**62])  # noqa: E731
    return tuple(Interval(-ends(), max(1, ends())) for _ in made.searches.searches)


def _told(session: Session, sql: str, terms: Mapping[str, Any], *, whole: bool) -> str:
    """An explanation (or what it costs) or a refusal; an InternalError is neither."""
    try:
        explained = session.explain(sql, **terms)
        return str(explained) if whole else str(explained._release.cost)
    except InternalError:
        raise
    except dpsql.DPSQLError as error:
        return f"{type(error).__name__}: {error}"
