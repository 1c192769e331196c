"""Values chosen at random: the exact output laws of every draw, on the exact counts of all neighbours.

The real `Draw.draw` is run with a chooser that takes every way through it at once and keeps the probability of each
choice by the mechanisms' laws, `exponential_law` and `permute_and_flip_law` (`test_choosing` holds the samplers to
them). So gaps, rates, the recursion of quantiles and the peeling of the top k are those of the engine. The largest log
ratio, summed over groups, is at most the epsilon that the draw is charged; by rho, the Renyi divergences are at most
alpha rho.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

from dpsql.accuracy.choices import exponential_law, permute_and_flip_law
from dpsql.core.exact import ExactTable
from dpsql.core.mechanisms import quantiles
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian
from dpsql.release import choices as release_draws
from dpsql.release.bounds.points import Points
from dpsql.release.choices import Draw
from dpsql.release.release import Release
from tests.core import checks, unit_checks
from tests.core.checks import INF, NAN, B, Group, Row, Shape, U
from tests.core.test_statistics_neighbours import calibrated_by, check_cost, executor_of, schema_of
from tests.core.unit_checks import CLAUSE, G1, G22, R1, R2, R3, R3G2, Data, World, people, planned
from tests.measured import by_chance, by_weights

SEED = 4_021_957
PIECES = 2
"""Of each place, in the recursion of quantiles: fewer than the engine's, so that all ways can be gone."""
LAWS = {"exponential": exponential_law, "permute_and_flip": permute_and_flip_law}
ORDERS = (1.25, 2.0, 4.0, 16.0, 64.0)
SLACK = 1 + 1e-9


# The law of a draw


@lru_cache(maxsize=100_000)
def _logs(name: str, gaps: tuple[int, ...], rate: Fraction) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(LAWS[name](np.array(gaps), rate))


@dataclass
class Paths:
    """A chooser that follows one path for each group of the counts: `digits` of shape (paths, choices), a place among
    the candidates that are allowed. `logs`: of the probability of each path; -inf where a digit has no candidate."""

    name: str
    digits: Any
    step: int = 0

    def __post_init__(self) -> None:
        self.logs = np.zeros(len(self.digits))

    def __call__(self, gaps: Any, rate: Fraction, allowed: Any = None) -> Any:
        digits = self.digits[:, self.step]
        self.step += 1
        usable = np.ones(gaps.shape, dtype=bool) if allowed is None else allowed
        chosen = np.zeros(len(gaps), dtype=np.int64)
        for path, (row, open_, digit) in enumerate(zip(gaps.tolist(), usable, digits.tolist(), strict=True)):
            places = np.flatnonzero(open_)
            if digit < len(places):
                chosen[path] = places[digit]
                self.logs[path] += _logs(self.name, tuple(row[place] for place in places), rate)[digit]
            else:
                chosen[path] = places[0]
                self.logs[path] = -np.inf
        return chosen


@lru_cache(maxsize=20_000)
def law_of(draw: Draw, counts: tuple[int, ...], pieces: int = PIECES) -> Any:
    """Logarithms of the probabilities of all paths of a draw from one group's counts."""
    if len(draw.places) == 1:
        return _law_of_one(draw, counts)
    ways = draw.points * (pieces if draw.kind.name == "QUANTILE" and len(draw.places) > 1 else 1)
    paths = np.array(list(itertools.product(range(ways), repeat=len(draw.places))))
    found = []
    with mock.patch.object(quantiles, "pieces_of", return_value=pieces):
        for start in range(0, len(paths), 500):  # in one batch of the recursion
            follow = Paths(draw.mechanism, paths[start : start + 500])
            with mock.patch.object(release_draws, draw.mechanism, follow):
                places = draw.draw(np.array([counts] * len(follow.digits), dtype=np.int64))
            assert places.shape == (len(draw.places), len(follow.digits))
            assert ((places >= 0) & (places < draw.points)).all()
            assert follow.step == len(draw.places), "a draw that was not looked at"
            found.append(follow.logs)
    logs = np.concatenate(found)
    assert abs(np.exp(logs).sum() - 1) < 1e-6, "the ways do not add up to 1"
    return logs


def _law_of_one(draw: Draw, counts: tuple[int, ...]) -> Any:
    """The law of a single choice."""
    seen = []

    def choose(gaps: Any, rate: Fraction, allowed: Any = None) -> Any:
        assert allowed is None or allowed.all()
        seen.extend(_logs(draw.mechanism, tuple(row), rate) for row in gaps.tolist())
        return np.zeros(len(gaps), dtype=np.int64)

    with mock.patch.object(release_draws, draw.mechanism, choose):
        draw.draw(np.array([counts], dtype=np.int64))
    (logs,) = seen
    assert len(logs) == draw.points
    assert abs(np.exp(logs).sum() - 1) < 1e-6, "the ways do not add up to 1"
    return logs


def log_ratio(one: Any, other: Any) -> float:
    """The largest log ratio of two laws."""
    same = np.isneginf(one) & np.isneginf(other)
    return float(np.abs(np.where(same, 0.0, one) - np.where(same, 0.0, other)).max())


def renyi(one: Any, other: Any, order: float) -> float:
    """The Renyi divergence of two laws that are positive in the same places."""
    known = ~np.isneginf(one)
    terms = order * one[known] + (1 - order) * other[known]
    most = float(terms.max())
    return (most + math.log(np.exp(terms - most).sum())) / (order - 1)


@cache
def renyis(draw: Draw, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[float, ...]:
    laws = laws_of(draw, one, other)
    return tuple(max(renyi(*laws, order), renyi(*laws[::-1], order)) for order in ORDERS)


Counts = dict[Group, tuple[tuple[int, ...], ...]]


def counts_of(made: Release, exact: ExactTable) -> Counts:
    """By group, the counts that each draw is made from; of one among runs, its points and how many rows each has."""
    dense = [
        release_draws.dense(exact.grids[draw.grid], np.arange(exact.groups), draw.points).tolist()
        if draw.among is None
        else occupied(exact.grids[draw.grid], exact.groups)
        for draw in made.draws
    ]
    keys = [checks._python(key) for key in exact.keys]
    names: Sequence[Group] = list(zip(*keys, strict=True)) if keys else [()] * exact.groups
    return {name: tuple(tuple(rows[place]) for rows in dense) for place, name in enumerate(names)}


def occupied(grid: Any, groups: int) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in range(groups)]
    for group, point, count in zip(grid.groups.tolist(), grid.points.tolist(), grid.counts.tolist(), strict=True):
        found[group].append((point, count))
    return found


def laws_of(draw: Draw, one: Any, other: Any) -> tuple[Any, Any]:
    """Of a draw from two tables, over the same ways. Among runs: over the stretches of points between those with rows
    in either, and these, by the mechanism's definition point by point; all points of a stretch are as likely."""
    if draw.among is None:
        return law_of(draw, one), law_of(draw, other)
    (q,), of = draw.wanted, draw.among
    cuts = sorted({0, draw.points, *(point + by for point, _ in (*one, *other) for by in (0, 1))})
    upto = of.upto(np.array(cuts) + of.least - 1).tolist()
    lengths = [b - a for a, b in itertools.pairwise(upto)]
    rate = draw.epsilon / draw.rows / quantiles.rank_spread(q, draw.bounded, draw.one_group)
    found = []
    for table in (one, other):
        total, logs = sum(count for _, count in table), []
        for start, length in zip(cuts, lengths, strict=False):
            below = sum(count for point, count in table if point < start)
            here = dict(table).get(start, 0)
            logs.append(math.log(length) - float(rate * max(below - q * total, q * total - below - here, 0)))
        most = max(logs)
        found.append(np.array(logs) - most - math.log(sum(math.exp(each - most) for each in logs)))
    return found[0], found[1]


def compare(made: Release, one: Counts, other: Counts, where: str) -> float:
    """What telling two neighbours apart costs by each draw, beside what it is charged; the largest part of it that was
    attained. Groups that only one of them has are hidden by the choice of groups, at its own cost."""
    attained = 0.0
    for place, draw in enumerate(made.draws):
        pairs = [(one[group][place], other[group][place]) for group in one.keys() & other.keys()]
        pairs = [pair for pair in pairs if pair[0] != pair[1]]
        if not pairs:
            continue
        if draw.noise is not None:
            spent, charged = cost_of_noisy_counts(draw, pairs)
            assert spent <= charged, f"{draw.kind.name}: {spent} spent, {charged} charged: {where}"
            attained = max(attained, float(spent / charged))
            continue
        if draw.cost.epsilon is not None:
            charged = float(draw.cost.epsilon)
            spent = sum(log_ratio(*laws_of(draw, a, b)) for a, b in pairs)
            assert spent <= charged * SLACK, f"{draw.kind.name}: {spent} spent, {charged} charged: {where}"
            attained = max(attained, spent / charged)
            continue
        rho = float(draw.cost.rho)
        for order, spents in zip(ORDERS, zip(*(renyis(draw, a, b) for a, b in pairs), strict=True), strict=True):
            spent = sum(spents)
            assert spent <= order * rho * SLACK, f"{draw.kind.name}: order {order}, {spent} of {order * rho}: {where}"
            attained = max(attained, spent / (order * rho))
    return attained


def cost_of_noisy_counts(draw: Draw, pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[Any, Any]:
    """What telling two neighbours apart costs by noisy counts of all groups, and what is charged: epsilon, or rho."""
    changes = [abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]
    if isinstance(draw.noise, CubeLaplace):
        return sum(changes) / draw.noise.exact_scale, draw.cost.epsilon
    assert isinstance(draw.noise, DiscreteGaussian)
    return sum(each * each for each in changes) / (2 * draw.noise.variance), draw.cost.rho


# Tables of a few rows

SHAPE = Shape(
    {"i": "Int64", "r": "float64", "b": "bool", "k": "str", "s": "str"},
    {"bounds": {"i": (0, 2), "r": (-1, 3)}, "keys": {"k": ["a", None, "c"]}},
)
UNIVERSE: tuple[Row, ...] = (
    (0, 2.5, True, "a", "u"),
    (2, -1.0, False, None, "u"),
    (1, NAN, False, "zz", "v"),
    (None, INF, True, "c", None),
    (99, 0.5, True, "a", 7),
)
ASKED = (
    "MEDIAN(i)", "QUANTILE_CONT(i, 0.25)", "QUANTILE_CONT(i, 0)", "QUANTILE_DISC(i, 1)",
    "QUANTILE_CONT(i, 0.2), MEDIAN(i), QUANTILE_CONT(i, 0.9)", "MEDIAN(i), QUANTILE_CONT(i, 1)",
    "QUANTILE_CONT(i, 0), QUANTILE_CONT(i, 1)", "MIN(i)", "MAX(i)", "MIN(i), MAX(i), MEDIAN(i), COUNT(*)", "MODE(k)",
    "MODE(i)", "MODE(b)", "APPROX_TOP_K(k, 2)", "APPROX_TOP_K(k, 9)", "MODE(i), APPROX_TOP_K(k, 2), SUM(i)",
    "MEDIAN(i) FILTER (WHERE r > 0), MODE(i) FILTER (WHERE r > 0)", "MEDIAN(CASE WHEN b THEN i END)",
    "MEDIAN(i, epsilon => 0.25), SUM(i), MODE(k, epsilon => 0.25)", "MEDIAN(i), MEDIAN(2 - i), VAR_POP(r)",
)  # fmt: skip
TAILS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("FROM t", {}),
    ("FROM t WHERE r > 0", {}),
    ("FROM t GROUP BY k", {}),
    ("FROM t GROUP BY s", {"delta": 1e-6}),
    ("FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE b)", {}),
    ("FROM (SELECT * FROM t UNION ALL SELECT i, r, b, NULL, s FROM t) GROUP BY b", {}),
)
HOWS: tuple[dict[str, Any], ...] = ({}, {"rho": 0.5}, {"epsilon": 8}, {"delta": 1e-6, "mechanism": "gaussian"},
                                    {"rho": 0.02, "mechanism": "laplace"})  # fmt: skip


def plain() -> Shape:
    return SHAPE


def check_draws(sql: str, relation: str, most: int = 3, universe: tuple[Row, ...] = UNIVERSE, **how: Any) -> float:
    """Every neighbour among the tables of a few rows; how much of the charge was attained."""
    made = calibrated_by(schema_of(plain), sql, relation, **how)
    assert made.draws
    check_cost(made)
    tables = checks.every_table(universe, most)
    counts = {table: counts_of(made, executor_of(plain, universe, table).execute(made.exact)) for table in tables}
    pairs = checks.neighbouring_pairs(tables, len(universe), relation)
    return max(compare(made, counts[a], counts[b], f"{sql} | {relation} | {how} | {a} {b}") for a, b in pairs)


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("tail", "more"), TAILS, ids=[tail for tail, _ in TAILS])
def test_every_draw_in_every_place(tail: str, more: dict[str, Any]):
    turn = [each for each, _ in TAILS].index(tail)
    attained = []
    for place, asked in enumerate(ASKED):
        how = HOWS[(place + turn) % len(HOWS)] if "=>" not in asked else {}
        attained += [check_draws(f"SELECT {asked} {tail}", relation, **{**more, **how}) for relation in (U, B)]
    assert np.mean(attained) > 0.25, "no neighbour comes near what is charged"


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize(("tail", "more"), TAILS, ids=[tail for tail, _ in TAILS])
def test_every_draw_in_every_way(tail: str, more: dict[str, Any], how: dict[str, Any]):
    for asked in ASKED:
        for relation in (U, B):
            if "=>" not in asked or "rho" not in how:
                check_draws(f"SELECT {asked} {tail}", relation, 4, UNIVERSE, **{**more, **how})


def test_recursion_with_as_many_pieces_as_it_has():
    """Two quantiles of two places, 64 pieces each: all ways through."""
    made = calibrated_by(schema_of(plain), "SELECT QUANTILE_CONT(b, 0.3), QUANTILE_CONT(b, 0.6) FROM t", B)
    (draw,) = made.draws
    assert draw.points == 2
    for one, other in (((1, 0), (0, 1)), ((2, 1), (1, 2))):
        laws = [law_of(draw, counts, quantiles.pieces_of(draw.points)) for counts in (one, other)]
        assert 0.15 < log_ratio(*laws) / float(draw.epsilon) <= SLACK


@pytest.mark.parametrize(("relation", "how"), [(U, {"rho": 0.1}), (B, {"rho": 0.1}), (U, {}), (B, {})], ids=str)
def test_grids_of_reals_are_as_private(relation: str, how: dict[str, Any]):
    """Tens of thousands of points; every neighbour of tables of one row. Quantiles: millions of millions, and all
    neighbours of tables of three."""
    for asked in ("MIN(r), MODE(i)", "MAX(r)"):
        made = calibrated_by(schema_of(plain), f"SELECT {asked} FROM t", relation, **how)
        assert 60_000 < made.draws[0].points <= 65_536
        check_draws(f"SELECT {asked} FROM t", relation, most=1, universe=UNIVERSE[:3], **how)
    attained: list[float] = []
    for asked in ("MEDIAN(r)", "QUANTILE(r, 0)", "QUANTILE(r, 0.9)"):
        made = calibrated_by(schema_of(plain), f"SELECT {asked} FROM t", relation, **how)
        assert made.draws[0].points > 10**13
        assert made.draws[0].mechanism == "exponential"
        attained += [check_draws(f"SELECT {asked} FROM t{tail}", relation, **how) for tail in ("", " GROUP BY k")]
    assert max(attained) > 0.3, "no neighbour comes near what is charged"


# People: rows of one unit in one group and in several

OF_PEOPLE = (
    "SELECT MEDIAN(k) FROM e",
    "SELECT QUANTILE_CONT(k, 0.25), QUANTILE_CONT(k, 0.75), COUNT(*) FROM e",
    "SELECT MIN(k), MAX(k), COUNT(DISTINCT pid) FROM e",
    "SELECT MODE(k) FROM e WHERE y > 0",
    "SELECT APPROX_TOP_K(k, 2) FROM e",
    "SELECT y, MEDIAN(k) FROM e GROUP BY y",
    "SELECT y, MODE(k), SUM(k), COUNT(DISTINCT pid) FROM e GROUP BY y",
    "SELECT y, QUANTILE_CONT(k, 0), QUANTILE_CONT(k, 0.6) FROM e GROUP BY y",
    "SELECT city, MAX(k), COUNT(*) FROM e JOIN p ON e.pid = p.pid GROUP BY city",
    "SELECT tag, MEDIAN(e.k) FROM e JOIN tags ON e.k = tags.k GROUP BY tag",
    "SELECT MODE(n) FROM (SELECT pid, CLAMP(COUNT(*), 0, 3) AS n FROM e GROUP BY pid)",
    "SELECT MEDIAN(v) FROM (SELECT k AS v FROM e UNION ALL SELECT k FROM e WHERE y > 0)",
    f"{CLAUSE} (max_groups_contributed = 1, max_rows_contributed = 2) y, MODE(k), AVG(k) FROM e GROUP BY y",
    f"{CLAUSE} (max_rows_contributed = 3, max_groups_contributed = 2) y, MEDIAN(k), SUM(k) FROM e GROUP BY y",
)
OF_ROWS = (
    "SELECT tag, MEDIAN(t.k), MODE(t.k) FROM t JOIN tags ON t.k = tags.k GROUP BY tag",
    "SELECT MIN(k), APPROX_TOP_K(k, 2) FROM (SELECT k FROM t UNION ALL SELECT k FROM t UNION ALL SELECT k FROM v)",
)
LIMITS = (R1, R2, R3, G1, G22, R3G2)
PEOPLE_HOWS: tuple[dict[str, Any], ...] = ({}, {"mechanism": "gaussian"}, {"epsilon": 20})


@dataclass
class Drawing:
    """One query about people, and the counts of its draws over many databases, by hash key."""

    world: World
    sql: str
    relation: str
    how: dict[str, Any] = field(default_factory=dict)
    kept: dict[Any, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.made = planned(self.world, self.sql, self.relation, **self.how)
        assert self.made.draws
        check_cost(self.made)

    def counts(self, data: Data, key: bytes) -> Counts:
        place = (repr(data), key)
        if place not in self.kept:
            self.kept[place] = counts_of(self.made, self.world.executor(data).execute(self.made.exact, key))
        return self.kept[place]

    def neighbours(self, data: Data, rng: random.Random) -> Iterator[Data]:
        """With one unit less, or with other rows of it; with a row of t or v less, or another one."""
        world = self.world
        if not self.made.analysis.bounds.declared:
            for name in ("t", "v"):
                for place in range(len(data[name])):
                    rest = (*data[name][:place], *data[name][place + 1 :])
                    more = unit_checks.table_of_rows(rng, 1, least=1) if self.relation == B else ()
                    yield {**data, name: (*rest, *more)}
            return
        for unit in world.units(data):
            rest = world.without(data, unit)
            if self.relation == U:
                yield rest
                continue
            for _ in range(2):
                other = world.with_rows(rest, unit, unit_checks.people_rows(rng, world, unit, 4))
                yield from () if other is None else (other,)


def check_people(sql: str, limits: dict[str, int], how: dict[str, Any], seed: int = SEED, databases: int = 2) -> float:
    """Neighbours of some databases under each hash key; how much of the charge was attained."""
    rng, attained = random.Random(seed), 0.0
    world = people().limited(**limits)
    for relation in (U, B):
        asking = Drawing(world, sql, relation, dict(how))
        for data in unit_checks.databases_of(unit_checks.INTEGERS, seed, databases):
            for other in asking.neighbours(data, rng):
                for key in unit_checks.KEYS:
                    where = f"{sql} | {relation} {limits} {how}\n{data}\n{other}"
                    one = asking.counts(data, key), asking.counts(other, key)
                    attained = max(attained, compare(asking.made, *one, where))
    return attained


@pytest.mark.thinned(6)
@pytest.mark.parametrize("sql", OF_PEOPLE)
def test_draws_from_the_rows_of_people(sql: str):
    place = OF_PEOPLE.index(sql)
    attained = []
    for turn in range(3):
        limits = LIMITS[(place + 2 * turn + place // 3) % len(LIMITS)]
        attained.append(check_people(sql, limits, PEOPLE_HOWS[(place + turn) % len(PEOPLE_HOWS)]))
    assert max(attained) > 0.1, "no neighbour comes near what is charged"


@pytest.mark.thinned(4)
@pytest.mark.parametrize("sql", OF_ROWS)
def test_draws_from_rows_that_are_joined(sql: str):
    for how in PEOPLE_HOWS:
        check_people(sql, {}, how)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("sql", OF_PEOPLE + OF_ROWS)
def test_draws_from_many_people(sql: str, part: int):
    for limits in LIMITS:
        check_people(sql, limits, PEOPLE_HOWS[part % len(PEOPLE_HOWS)], SEED + part, databases=6)


def check_unit_of_many_rows() -> None:
    """A unit that has all its rows in one place, against one that has them in another: where rates are tight."""
    for sql, limits in (
        ("SELECT MODE(k) FROM e", R3),
        ("SELECT MEDIAN(k) FROM e", R2),
        ("SELECT MAX(k) FROM e", R3),
        ("SELECT y, MODE(k) FROM e GROUP BY y", G22),
        ("SELECT QUANTILE_CONT(k, 0), QUANTILE_CONT(k, 0.5) FROM e", R2),
    ):
        world = people().limited(**limits)
        others = tuple((50 + n, 2, 1, n % 4) for n in range(8))
        attained = dict.fromkeys((U, B), 0.0)
        for relation in (U, B):
            asking = Drawing(world, sql, relation, {"epsilon": 2})
            one, other = ([(10 + n, 1, 1 + 2 * (n % 2), at) for n in range(4)] for at in (3, 0))
            databases = [world.data(e=(*others, *rows)) for rows in (one, other, ())]
            pairs = itertools.combinations(databases, 2) if relation == B else [databases[::2], databases[1:]]
            for a, b in pairs:
                for key in unit_checks.KEYS:
                    found = compare(asking.made, asking.counts(a, key), asking.counts(b, key), f"{sql} {relation}")
                    attained[relation] = max(attained[relation], found)
        assert min(attained.values()) > 0.2, f"{sql}: {attained} of what is charged"


def test_a_unit_of_many_rows():
    check_unit_of_many_rows()


# The cost of a whole release

COSTS = (
    ("SELECT MEDIAN(i), COUNT(*), MODE(k), VAR_POP(r) FROM t", {}, 3),
    ("SELECT MEDIAN(i), QUANTILE_CONT(i, 0.25), MIN(i), MAX(i) FROM t", {}, 3),
    ("SELECT s, MEDIAN(i) FROM t GROUP BY s", {"delta": 1e-6}, 2),
    ("SELECT s, MEDIAN(i), MODE(i), SUM(i) FROM t GROUP BY s", {"delta": 1e-6}, 3),
    ("SELECT MEDIAN(i, epsilon => 0.25), MODE(i), COUNT(i) FROM t", {}, 3),
)


def check_costs_of_releases() -> None:
    """Draws, noise and the choice of groups have equal parts, which add up to what was asked for, to the last digit;
    and no more is charged."""
    for (sql, more, parts), relation in itertools.product(COSTS, (U, B)):
        made = calibrated_by(schema_of(plain), sql, relation, **more)
        check_cost(made)
        assert made.cost.epsilon == 1, f"{sql}: {made.cost}"
        spent = [*(share.cost.epsilon for share in made.shares), *(draw.cost.epsilon for draw in made.draws)]
        spent += [groups.law.loss.epsilon for groups in by_chance(made)]
        spent += [groups.cost.epsilon for groups in by_weights(made)]
        assert sum(each or Fraction(0) for each in spent) == 1, f"{sql}: {spent}"
        assert all(draw.cost.epsilon == draw.epsilon for draw in made.draws)
        if "=>" not in sql:
            assert set(spent) == {Fraction(1, parts)}, f"{sql}: {spent}"
            by_rho = calibrated_by(schema_of(plain), sql, relation, **more, rho=0.125)
            check_cost(by_rho)
            assert by_rho.cost.rho == Fraction(1, 8)
            if by_chance(by_rho):  # whose part is one of epsilon
                spent_of_rho = by_chance(by_rho)[0].law.loss.epsilon ** 2 / 2 + sum(
                    draw.cost.rho for draw in by_rho.draws
                )
                assert Fraction(1, 8) * (1 - Fraction(1, 10**9)) < spent_of_rho <= Fraction(1, 8)
                continue
            for draw in by_rho.draws:
                assert Fraction(1, 8 * parts) * (1 - Fraction(1, 10**9)) < draw.cost.rho <= Fraction(1, 8 * parts)


@pytest.mark.parametrize(
    ("asked", "relation", "price"),
    [
        ("MEDIAN(i, epsilon => 0.25), COUNT(*)", B, Fraction(1, 4)),
        ("MEDIAN(i, epsilon => 0.25), MODE(k, epsilon => 0.25), SUM(CLAMP(i, 0, 0))", U, Fraction(1, 2)),
        ("MEDIAN(i, epsilon => 0.25), COUNT(*), MAX(i)", B, Fraction(1)),
    ],
)
def test_what_needs_no_noise_costs_nothing_beside_draws_with_their_own_epsilon(asked: str, relation: str, price: Any):
    made = calibrated_by(schema_of(plain), f"SELECT {asked} FROM t", relation)
    assert made.cost.epsilon == price
    assert not made.shares


def test_what_a_release_costs():
    check_costs_of_releases()


# Traces


def _likeliest(gaps: Any, _rate: Fraction, allowed: Any = None) -> Any:
    """In place of a draw."""
    held = gaps if allowed is None else np.where(allowed, gaps, gaps.max() + 1)
    return np.asarray(held.argmin(axis=1))


def silent(made: Release, exact: ExactTable) -> Any:
    """What is released with all noise 0 and every draw the likeliest."""
    with (
        mock.patch.object(release_draws, "permute_and_flip", _likeliest),
        mock.patch.object(release_draws, "exponential", _likeliest),
    ):
        return checks.silenced(made).privatise(exact)


HIDDEN: tuple[tuple[Row, ...], ...] = (
    (),
    ((0, 1.0, True, "a", "0"),),
    ((2, NAN, False, None, None), (2, 3.0, False, "c", "zz")),
    ((None, INF, True, 5, "zz"),) * 3,
    tuple((n % 3, 0.0, False, "c", str(n)) for n in range(40)),
)


def check_hidden_groups() -> None:
    """Tables that differ in hidden groups alone release the same, draws and all, in the same arrays."""
    shown = tuple((n % 3, n / 50, n % 2 == 0, "a", "vw"[n % 3 == 0]) for n in range(900))
    for asked in ("MEDIAN(i), COUNT(*)", "MODE(i), APPROX_TOP_K(k, 2), MAX(r)", "CORR(i, r), COUNT(DISTINCT k), MIN(i)",
                  "QUANTILE_CONT(i, 0.1), MEDIAN(i)"):  # fmt: skip
        for how in ({}, {"mechanism": "gaussian"}, {"rho": 0.5}):
            made = calibrated_by(schema_of(plain), f"SELECT s, {asked} FROM t GROUP BY s", U, delta=1e-6, **how)
            found = set()
            for place, hidden in enumerate(HIDDEN):
                at = 10 * place * (place % 2)  # hidden groups come first, or among the others
                rows = [*shown[:at], *hidden, *shown[at:]]
                exact = checks.run_exactly(made, schema_of(plain), SHAPE.frame(rows))
                released = silent(made, exact)
                (key,) = released.keys
                values = released.values.tobytes()
                found.add((tuple(key.values.tolist()), str(key.values.dtype), key.valid is None, values))
                assert released.groups == 2, f"{asked}: {released.groups} groups"
                assert released.values.shape == (made.width, 2)
            assert len(found) == 1, f"{asked}: hidden groups can be seen"


def test_hidden_groups_leave_no_trace():
    check_hidden_groups()


def test_values_are_taken_by_counts_with_fresh_noise_of_each():
    made = calibrated_by(schema_of(plain), "SELECT APPROX_TOP_K(k, 2) FROM t", U)
    (draw,) = made.draws
    counts = np.array([[5, 7], [7, 5], [3, 3]])
    drawn = []

    def noise(cells: int) -> Any:
        drawn.append(cells)
        return np.array([[3, 0, 0, 0, 0, 1]])

    with mock.patch.object(CubeLaplace, "draw", side_effect=noise):
        assert draw.draw(counts).T.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert drawn == [6]
    assert draw.noise == CubeLaplace(Fraction(1) / draw.cost.epsilon, 1)


def test_grids_are_public():
    """Points, ranks and candidates are the same whatever the rows."""
    schema = schema_of(plain)
    made = calibrated_by(schema, "SELECT MEDIAN(i), MIN(r), MODE(k), APPROX_TOP_K(k, 2) FROM t", U)
    assert [draw.points for draw in made.draws] == [3, len(Points(-1, 3, 65_536, False).values), 2, 2]
    for table in ((), (0,), (2, 2, 4), (1, 3, 4)):
        exact = executor_of(plain, UNIVERSE, table).execute(made.exact)
        assert exact.groups == 1
        for draw in made.draws:
            held = exact.grids[draw.grid]
            assert held.counts.sum() <= len(table)
            assert ((held.points >= 0) & (held.points < draw.points)).all()
            assert held.groups.tolist() == [0] * len(held.groups)


def test_order_of_rows_does_not_matter():
    rng = random.Random(SEED)
    for sql in OF_PEOPLE:
        for limits in (R2, G22):
            asking = Drawing(people().limited(**limits), sql, U)
            for data in unit_checks.databases_of(unit_checks.INTEGERS, SEED, 2):
                shuffled = {name: tuple(rng.sample(rows, len(rows))) for name, rows in data.items()}
                for key in unit_checks.KEYS:
                    assert asking.counts(data, key) == asking.counts(shuffled, key), f"{sql}\n{data}\n{shuffled}"
