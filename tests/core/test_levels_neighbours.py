"""ROLLUP, CUBE and GROUPING SETS: no neighbour moves the sums of all levels further than their noise was paid for.

What is released is caught where it is made: samplers that give 0 show the laws of the noise, and least squares gets the
exact tables of all measured levels. For all neighbours of small tables the change of these, weighed by the laws that
were drawn from, is beside what the ledger is charged.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsql.accuracy.hierarchies import GroupingSet
from dpsql.core.events import Concentrated
from dpsql.core.exact import ExactTable
from dpsql.core.mechanisms import noise as mechanisms
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.errors import InternalError
from dpsql.release.levels import estimates as release_levels
from dpsql.release.release import Release
from tests.core import checks, levels_lies, unit_checks
from tests.core.checks import INF, NAN, B, Cells, Row, Shape, U, cells_of
from tests.core.test_statistics_neighbours import calibrated_by, executor_of, schema_of
from tests.core.unit_checks import G1, G2, G22, INTEGERS, R1, R2, R3, R3G2, Asking, Data, Exact, people
from tests.lies import Check, Lie, assert_caught

SEED = 16_112_026

# What is released


@dataclass(frozen=True)
class Law:
    """What a sampler was asked for: "cube" and "laplace" with a scale, "gaussian" with a variance."""

    name: str
    size: Fraction
    numbers: int
    dimension: int = 1

    def cost(self, change: Cells) -> Fraction:
        """Of telling two tables apart that differ by so much in each cell: epsilon, or rho of a Gaussian."""
        if self.name == "cube":
            return Fraction(sum(max(map(abs, each)) for each in change.values())) / self.size
        if self.name == "laplace":
            return Fraction(sum(abs(x) for each in change.values() for x in each)) / self.size
        return Fraction(sum(x * x for each in change.values() for x in each)) / (2 * self.size)

    @property
    def variance(self) -> float:
        """Of each number; that of the law on the line."""
        size, d = float(self.size), self.dimension
        return size if self.name == "gaussian" else (d + 1) * (d + 2) / 3 * size**2


@dataclass
class Seen:
    """The laws in the order of their draws, and the tables that least squares had, as often as it was asked."""

    laws: list[Law] = field(default_factory=list)
    tables: list[dict[GroupingSet, NDArray[Any]]] = field(default_factory=list)


@contextmanager
def watched(drawn: Callable[[int], NDArray[Any]] = lambda size: np.zeros(size, dtype=np.int64)) -> Iterator[Seen]:
    """Samplers that note what they are asked for, and give `drawn` numbers."""
    seen, honest = Seen(), release_levels.consistent

    def asked(name: str, size: Fraction, cells: int, dimension: int = 1) -> NDArray[Any]:
        seen.laws.append(Law(name, size, cells * dimension, dimension))
        return drawn(cells * dimension)

    def consistent(noisy: Any, *rest: Any, **more: Any) -> Any:
        seen.tables.append({each: np.asarray(table) for each, table in noisy.items()})
        return honest(noisy, *rest, **more)

    def cube(scale: Fraction, d: int, cells: int) -> NDArray[Any]:
        return asked("cube", scale, cells, d).reshape(d, cells)

    with (
        mock.patch.object(samplers, "cube_laplace", cube),
        mock.patch.object(samplers, "discrete_laplace", lambda scale, count: asked("laplace", scale, count)),
        mock.patch.object(samplers, "discrete_gaussian", lambda size, count: asked("gaussian", size, count)),
        mock.patch.object(mechanisms, "rounded_gaussian", lambda size, count: asked("gaussian", size, count)),
        mock.patch.object(release_levels, "consistent", consistent),
    ):
        yield seen


def summed(cells: Cells, keys: GroupingSet) -> Cells:
    """The sums of the finest cells over all keys but these."""
    found: Cells = {}
    for group, values in cells.items():
        place = tuple(group[key] for key in keys)
        held = found.get(place, (0,) * len(values))
        found[place] = tuple(x + y for x, y in zip(held, values, strict=True))
    return found


def noisy(made: Release) -> list[int]:
    """The coordinates that have noise."""
    return [place for place, each in enumerate(made.coordinates) if each.noisy]


def laws_of(made: Release, exact: ExactTable) -> dict[GroupingSet, Law]:
    """The law of each measured level, by a release of these rows: one draw for each number of each level, and the
    tables are the sums of the finest cells, whatever the rows."""
    with watched() as seen:
        made.privatise(exact)
    places, cells = noisy(made), cells_of(made, exact)
    axes = [list(dict.fromkeys(group[key] for group in cells)) for key in range(len(exact.keys))]
    assert list(cells) == list(itertools.product(*axes)), "groups are not in the order of their keys"
    assert len(seen.tables) == (1 if places else 0), f"least squares had {len(seen.tables)} sets of tables"
    tables = {keys: table for each in seen.tables for keys, table in each.items()}
    assert len(seen.laws) == len(tables), f"{len(seen.laws)} draws for {len(tables)} levels"
    assert set(tables) == {level.keys for level in made.levels.measured}, "other levels than are charged"
    for (keys, table), law in zip(tables.items(), seen.laws, strict=True):
        assert law.numbers == table.size, f"{law.numbers} draws for {table.size} numbers of {keys}"
        sums = summed(cells, keys)
        held = [sums[group] for group in itertools.product(*(axes[key] for key in keys))]
        expected = [[each[place] for each in held] for place in places]
        assert table.reshape(len(table), -1).tolist() == expected, f"not the sums of {keys}"
    return dict(zip(tables, seen.laws, strict=True))


# What it costs


def check_charge(made: Release) -> None:
    """All measured levels together are the whole, and cost no more than is charged, which is no more than asked for."""
    levels, cost = made.levels.measured, made.cost
    assert sum(level.share for level in levels) == bool(levels), "shares of more, or of less, than all"
    assert len({level.keys for level in levels}) == len(levels), "a level is measured twice"
    assert sum(level.cost.rho for level in levels) <= cost.rho, f"rho of levels above {cost}"
    if cost.epsilon is not None:
        assert sum(level.cost.epsilon or 0 for level in levels) <= cost.epsilon, f"epsilons of levels above {cost}"
        assert made.allowed.rho is not None or cost.epsilon <= made.allowed.pure
    told = [event.rho if isinstance(event, Concentrated) else event.epsilon for event in made.events]  # type: ignore[union-attr]
    paid = [each.cost.rho if isinstance(each.event, Concentrated) else each.cost.epsilon for each in levels]
    assert told == paid, f"the ledger is told of {told}, not of {paid}"
    assert made.allowed.rho is None or cost.rho <= made.allowed.rho, f"{cost} charged of {made.allowed}"


def spent(made: Release, laws: Mapping[GroupingSet, Law], one: Cells, other: Cells, where: str) -> float:
    """The part of what is charged that telling two answers apart costs: of all levels together at most 1."""
    assert one.keys() == other.keys(), f"public groups come or go: {where}"
    change = {group: tuple(x - y for x, y in zip(one[group], other[group], strict=True)) for group in one}
    places = noisy(made)
    shown = {group: tuple(x for place, x in enumerate(each) if place not in places) for group, each in change.items()}
    assert not any(map(any, shown.values())), f"what has no noise changes: {where}"
    moved = {group: tuple(each[place] for place in places) for group, each in change.items()}
    costs = [law.cost(summed(moved, keys)) for keys, law in laws.items()]
    total = sum(costs, Fraction(0))
    if any(law.name == "gaussian" for law in laws.values()):
        assert all(law.name == "gaussian" for law in laws.values()), "two kinds of noise"
        charged: Fraction | None = made.cost.rho
        assert made.cost.epsilon is None or made.cost.rho <= gaussian_rho(made.cost.epsilon, made.cost.delta)
    else:
        charged = made.cost.epsilon
        assert sum(cost * cost for cost in costs) / 2 <= made.cost.rho, f"rho above {made.cost}: {where}"
    assert charged is not None
    assert total <= charged, f"a change that costs {float(total)}, charged {float(charged)}: {where}"
    return float(total / charged) if charged else 0.0


def check_query(
    sql: str, relation: str, *, shape_of: Callable[[], Shape], universe: tuple[Row, ...], most: int = 2, **how: Any
) -> tuple[Release, float, dict[GroupingSet, NDArray[Any]]]:
    """Every neighbour among the tables of a few rows. How much of the charge was reached, and the largest L1 distance
    of each coordinate in each measured level."""
    made = calibrated_by(schema_of(shape_of), sql, relation, **how)
    check_charge(made)
    tables = checks.every_table(universe, most)
    exact = {table: executor_of(shape_of, universe, table).execute(made.exact) for table in tables}
    laws = laws_of(made, exact[tables[-1]])
    for table in tables:
        assert laws_of(made, exact[table]) == laws, f"other noise for other rows: {sql} | {table} of {universe}"
    cells = {table: cells_of(made, held) for table, held in exact.items()}
    reached, moved = 0.0, {keys: np.zeros(len(made.coordinates)) for keys in laws}
    for one, other in checks.neighbouring_pairs(tables, len(universe), relation):
        where = f"{sql} | {relation} | {how} | {one} {other} of {list(universe)}"
        reached = max(reached, spent(made, laws, cells[one], cells[other], where))
        for keys, held in moved.items():
            a, b = (np.array(list(summed(cells[table], keys).values()), dtype=float) for table in (one, other))
            np.maximum(held, np.abs(a - b).sum(axis=0), out=held)
    return made, reached, moved


def shape() -> Shape:
    return Shape(
        {"x": "float64", "y": "float64", "p": "int64", "n": "Int64", "b": bool, "k": "Int64", "g": "str", "h": "str"},
        {
            "bounds": {"x": (-1, 3), "y": (-1, 3), "p": (20, 30), "n": (-4, 5), "k": (0, 1)},
            "nullable": {"x": False}, "keys": {"g": ["a", None], "h": ["u", "v"]},
        },
    )  # fmt: skip


UNIVERSE: tuple[Row, ...] = (
    (-1.0, 3.0, 20, -4, True, 0, "a", "u"),
    (3.0, -1.0, 30, 5, False, 1, "zz", "v"),
    (3.0, NAN, 30, None, True, None, None, "u"),
    (INF, 1.0, 99, -99, False, 9, "a", "w"),
    (NAN, -INF, -7, 0, True, 1, "b", None),
)
TWICE = "(SELECT * FROM t UNION ALL SELECT * FROM t)"


def check_rows(sql: str, relation: str = U, **how: Any) -> tuple[Release, float, dict[GroupingSet, NDArray[Any]]]:
    return check_query(sql, relation, shape_of=shape, universe=UNIVERSE, **how)


# The rules, each with rows in which it is tight; derived by hand, in rows and in units of the columns

SPLIT: dict[str, Any] = {"strategy": "split"}
GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-6}


@dataclass(frozen=True)
class Rule:
    """`moves`: by how much one row can change each coordinate, over all groups, in each level. `reached`: the part of
    the charge that some neighbours cost."""

    sql: str
    relation: str
    moves: dict[GroupingSet, tuple[float, ...]]
    reached: float = 1.0
    how: dict[str, Any] = field(default_factory=lambda: SPLIT)

    def __str__(self) -> str:
        return f"{self.sql}, {self.relation}, {self.how}"


RULES = (
    Rule("SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b)", U, {(0,): (1,), (): (1,)}),
    Rule("SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b)", B, {(0,): (2,), (): (0,)}, 1 / 2),
    Rule("SELECT b, COUNT(*) FROM t WHERE p > 22 GROUP BY ROLLUP (b)", B, {(0,): (2,), (): (1,)}, 1 / 2),
    Rule("SELECT b, SUM(x) FROM t GROUP BY ROLLUP (b)", U, {(0,): (3,), (): (3,)}),
    Rule("SELECT b, SUM(x) FROM t GROUP BY ROLLUP (b)", B, {(0,): (6,), (): (4,)}, 2 / 3),
    Rule("SELECT b, AVG(x) FROM t GROUP BY GROUPING SETS ((b), ())", U, {(0,): (1, 2), (): (1, 2)}),
    Rule("SELECT b, g, COUNT(*) FROM t GROUP BY CUBE (b, g)", U, {(0, 1): (1,), (0,): (1,), (1,): (1,), (): (1,)}),
    Rule("SELECT b, g, COUNT(*) FROM t GROUP BY GROUPING SETS ((b), (g))", B, {(0,): (2,), (1,): (2,)}),
    Rule(f"SELECT b, COUNT(*) FROM {TWICE} GROUP BY ROLLUP (b)", U, {(0,): (2,), (): (2,)}),
    Rule("SELECT b, k, COUNT(*) FROM t GROUP BY ROLLUP (b, k)", U, {(0, 1): (1,), (0,): (1,), (): (1,)}, 1, GAUSSIAN),
    Rule(f"SELECT b, COUNT(*) FROM {TWICE} GROUP BY ROLLUP (b)", U, {(0,): (2,), (): (2,)}, 1, GAUSSIAN),
    Rule("SELECT b, AVG(x) FROM t GROUP BY ROLLUP (b)", U, {(0,): (1, 2), (): (1, 2)}, 1, GAUSSIAN),
    Rule("SELECT b, AVG(x) FROM t GROUP BY ROLLUP (b)", U, {(0,): (1, 2)}, 1, {}),
)  # fmt: skip


def check_rule(rule: Rule) -> None:
    """The distances of a rule are attained in every level, and are those derived by hand."""
    made, reached, moved = check_rows(rule.sql, rule.relation, **rule.how)
    units = [each.unit for each in made.coordinates]
    found = {keys: tuple(held * units) for keys, held in moved.items()}
    assert found.keys() == rule.moves.keys(), f"{rule}: levels {list(found)} are measured"
    for keys, derived in rule.moves.items():
        assert np.allclose(found[keys], derived, rtol=1e-6), f"{rule}: {found[keys]} attained in {keys}, not {derived}"
    assert math.isclose(reached, rule.reached, rel_tol=1e-5), f"{rule}: {reached} of the charge reached"


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_is_sound_and_tight(rule: Rule):
    check_rule(rule)


# Random grouping sets

KEYS = ("b", "k", "g", "h", "(p > 25)", "(n > 0)", "(x > 0)")
ASKED = (
    "COUNT(*)", "COUNT(n)", "SUM(x)", "SUM(p)", "AVG(n)", "AVG(x), COUNT(*)", "VAR_POP(x)", "SUM(x), AVG(p), SUM(n)",
    "COUNT(*) FILTER (WHERE p > 22), COUNT(*)", "SUM(CASE WHEN b THEN y ELSE -x END)", "COVAR_POP(x, n)", "AVG(b)",
    "STDDEV(p), SUM(y)", "SUM(COALESCE(n, 2)) FILTER (WHERE b)", "CORR(x, p)",
)  # fmt: skip
TAILS = ("FROM t", "FROM t WHERE x > 0", "FROM t WHERE p <= 25 AND n IS NOT NULL", f"FROM {TWICE}",
    "FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE b)")  # fmt: skip
HOWS: tuple[dict[str, Any], ...] = (
    {}, {"strategy": "split"}, {"delta": 1e-6, "mechanism": "gaussian"}, {"epsilon": 20}, {"epsilon": Fraction(1, 3)},
    {"rho": 0.02}, {"delta": 1e-6}, {"rho": 0.02, "mechanism": "laplace"}, {"rho": 0.3, "mechanism": "gaussian"},
)  # fmt: skip


def grouping(rng: random.Random, keys: tuple[str, ...]) -> str:
    """A GROUP BY of several grouping sets of up to three keys."""
    some = rng.sample(keys, rng.randint(1, min(3, len(keys))))
    listed, form = ", ".join(some), rng.randrange(5)
    if form == 0:
        return f"ROLLUP ({listed})"
    if form == 1:
        return f"CUBE ({listed})"
    if form == 2:
        return f"{some[0]}, ROLLUP ({', '.join(some[1:])})" if some[1:] else f"ROLLUP ({listed})"
    if form == 3:
        return f"ROLLUP ({some[0]}), CUBE ({', '.join(some[1:])})" if some[1:] else f"CUBE ({listed})"
    subsets = [each for size in range(len(some) + 1) for each in itertools.combinations(some, size)]
    chosen = rng.sample(subsets[1:], rng.randint(1, len(subsets) - 1)) + rng.choice([[], [()]])
    return f"GROUPING SETS ({', '.join('(' + ', '.join(each) + ')' for each in chosen)})"


def ask_at_random(seed: int, queries: int, most: int = 2) -> None:
    rng = random.Random(seed)
    for turn in range(queries):
        group = grouping(rng, KEYS)
        sql = f"SELECT {rng.choice(ASKED)} {rng.choice(TAILS)} GROUP BY {group}"
        check_query(sql, rng.choice([U, B]), shape_of=shape, universe=UNIVERSE, most=most, **HOWS[turn % len(HOWS)])


@pytest.mark.parametrize("part", range(4))
def test_no_neighbour_of_random_grouping_sets_costs_more_than_is_charged(part: int):
    ask_at_random(SEED + part, 14)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4, 24))
def test_no_neighbour_of_many_random_grouping_sets_costs_more_than_is_charged(part: int):
    ask_at_random(SEED + part, 60, most=3)


# People: units of several rows


@dataclass
class Levelled(Asking):
    """An Asking about all levels of a query."""

    reached: float = 0.0
    laws: dict[GroupingSet, Law] = field(default_factory=dict)

    def compare(self, one: Exact, other: Exact, where: str) -> None:
        self.laws = self.laws or laws_of(self.made, next(iter(self.tables.values())))
        self.reached = max(self.reached, spent(self.made, self.laws, one.cells, other.cells, where))


def check_people(
    sql: str, limits: dict[str, int], databases: list[Data], seed: int = SEED, flavour: Any = INTEGERS, **how: Any
) -> float:
    """Every neighbour of some databases, and any order of their rows; how much of the charge was reached."""
    rng = random.Random(seed)
    world = people(flavour).limited(**limits)
    kept = KEPT.setdefault((flavour, tuple(limits.items())), {})
    both = [Levelled(world, sql, relation, dict(how), kept) for relation in (U, B)]
    for asking in both:
        check_charge(asking.made)
        for data in databases:
            unit_checks.check_neighbours(asking, data, rng, 1)
    unit_checks.check_order(both[0], databases[0], rng)
    unit_checks.check_apart(both[0], databases[0])
    return max(asking.reached for asking in both)


KEPT: dict[Any, dict[Any, Any]] = {}
PEOPLE_KEYS = ("k", "(y > 0)", "(k > 1)", "(y = k)")
OF_PEOPLE = (
    "COUNT(*)", "AVG(y), COUNT(*)", "SUM(y)", "VAR_POP(y), SUM(k)", "COUNT(y) FILTER (WHERE k > 0), SUM(y)",
    "COUNT(*), SUM(y, contribution_bounds_per_group => (-1, 2))", "AVG(y), SUM(y), COUNT(y)", "COVAR_POP(y, k)",
)  # fmt: skip
PEOPLE_FROM = (
    "e",
    "e WHERE y <> 1",
    "(SELECT z AS y, k FROM i JOIN e ON i.eid = e.eid)",
    "(SELECT y, e.k AS k FROM e JOIN pub ON e.k = pub.k)",
    "(SELECT pid, y, k FROM e UNION ALL SELECT pid, k, y FROM e)",
    "(SELECT pid, k, CLAMP(SUM(y), -2, 3) AS y FROM e GROUP BY pid, k)",
)
PEOPLE_LIMITS = (R1, R2, R3, G1, G2, G22, R3G2)
PEOPLE_HOWS: tuple[dict[str, Any], ...] = ({"mechanism": "gaussian"}, {}, SPLIT, {"mechanism": "laplace", "delta": 0})


def ask_people_at_random(seed: int, queries: int, databases: int, flavour: Any = INTEGERS) -> None:
    rng = random.Random(seed)
    held = unit_checks.databases_of(flavour, seed, databases)
    for turn in range(queries):
        sql = f"SELECT {rng.choice(OF_PEOPLE)} FROM {rng.choice(PEOPLE_FROM)} GROUP BY {grouping(rng, PEOPLE_KEYS)}"
        how, limits = PEOPLE_HOWS[turn % len(PEOPLE_HOWS)], PEOPLE_LIMITS[(seed + turn) % len(PEOPLE_LIMITS)]
        check_people(sql, limits, held, seed, flavour, **how)


@pytest.mark.parametrize("part", range(4))
def test_no_person_costs_more_over_random_levels_than_is_charged(part: int):
    ask_people_at_random(SEED + part, 6, 2)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4, 24))
def test_no_person_costs_more_over_many_random_levels_than_is_charged(part: int):
    ask_people_at_random(SEED + part, 40, 3)


IN_ONE, IN_TWO, FULL = ((3, 0), (3, 0)), ((3, 0), (3, 1)), ((3, 0), (3, 0), (3, 1), (3, 1))
WORST = (
    ("AVG(y)", R2, IN_ONE, GAUSSIAN),
    ("COUNT(*), SUM(y)", R3, (*IN_ONE, (3, 0)), GAUSSIAN),
    ("COUNT(*)", G1, IN_ONE, GAUSSIAN),
    ("COUNT(*)", G2, IN_TWO, GAUSSIAN),
    ("AVG(y)", G2, IN_TWO, GAUSSIAN),
    ("COUNT(*)", G22, FULL, GAUSSIAN),
    ("AVG(y)", G22, FULL, GAUSSIAN),
    ("COUNT(*)", G22, FULL, SPLIT),
    ("AVG(y), COUNT(*)", R3, (*IN_ONE, (3, 2)), {"mechanism": "laplace"}),
)


@pytest.mark.parametrize(("asked", "limits", "rows", "how"), WORST, ids=str)
def test_the_worst_person_costs_what_is_charged(asked: str, limits: dict[str, int], rows: Any, how: dict[str, Any]):
    """The squared L2 distance of c rows in each of g groups is g c^2 there and (g c)^2 in their total."""
    world = people().limited(**limits)
    asking = Levelled(world, f"SELECT {asked} FROM e GROUP BY ROLLUP (k)", U, dict(how))
    data = world.data(e=tuple((place, 1, y, k) for place, (y, k) in enumerate(rows)))
    asking.compare(asking.exact(data), asking.exact(world.data()), f"{asked} {limits}")
    assert math.isclose(asking.reached, 1, rel_tol=1e-5)


# Estimates


def check_least_squares(sql: str, **how: Any) -> None:
    """What is released of all levels are the least-squares estimates from all draws, and as far off as is said."""
    made = calibrated_by(schema_of(shape), sql, U, **how)
    exact = executor_of(shape, UNIVERSE, (0, 1, 2, 3, 4)).execute(made.exact)
    rng = np.random.default_rng(SEED)
    with watched(lambda size: rng.integers(-(2**30), 2**30, size)) as seen:
        found = made.levels.estimates(made.levels.privatise(made.coordinate_steps(exact.parts)))
    cells = list(cells_of(made, exact))

    def design(keys: GroupingSet) -> NDArray[Any]:
        places = [tuple(group[key] for key in keys) for group in cells]
        return np.array([[each == other for other in places] for each in dict.fromkeys(places)], dtype=float)

    variances = dict(zip(seen.tables[0], (law.variance for law in seen.laws), strict=True))
    rows = np.vstack([design(keys) / math.sqrt(v) for keys, v in variances.items()])
    numbers = [seen.tables[0][keys].reshape(len(found), -1) / math.sqrt(v) for keys, v in variances.items()]
    finest = np.linalg.lstsq(rows, np.hstack(numbers).astype(float).T, rcond=None)[0]
    covariance = np.linalg.pinv(rows.T @ rows)
    for keys, place in made.levels.rows():
        expected = (design(keys) @ finest).T
        assert np.allclose(found[:, place], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()), f"{sql}: {keys}"
        spread = np.diag(design(keys) @ covariance @ design(keys).T)
        assert np.allclose(made.levels.noise_of(keys).scale ** 2, spread, rtol=1e-4), f"{sql}: {keys} is off otherwise"


ESTIMATED = (
    "SELECT k, COUNT(*) FROM t GROUP BY ROLLUP (k)",
    "SELECT k, AVG(x), COUNT(*) FROM t GROUP BY CUBE (k, (n > 0))",
    "SELECT b, n, SUM(x) FROM t GROUP BY ROLLUP (n, b)",
    "SELECT b, VAR_POP(p) FROM t GROUP BY GROUPING SETS ((n), (k, b), ())",
    "SELECT b, n, COUNT(*) FROM t GROUP BY b, CUBE (n)",
)


@pytest.mark.parametrize("how", [{}, SPLIT, GAUSSIAN], ids=str)
@pytest.mark.parametrize("sql", ESTIMATED)
def test_answers_are_the_least_squares_estimates_of_what_was_drawn(sql: str, how: dict[str, Any]):
    check_least_squares(sql, **how)


@pytest.mark.parametrize(("lie", "check"), levels_lies.LIES, ids=lambda each: each.__name__)
def test_a_lie_about_levels_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check, by=InternalError if lie in levels_lies.REFUSED else AssertionError)
