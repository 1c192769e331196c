"""What a step is charged, beside what its output tells: whole laws enumerated on tiny tables; queries paid by rho."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpsql
from dpsql.core.conversion import epsilon_of, rho_for
from dpsql.core.cost import FREE, Cost
from dpsql.core.loss import Allowance, PrivacyLoss, as_delta, as_rho
from dpsql.core.measurement import Share
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace
from dpsql.core.mechanisms.noise import (
    CubeLaplace,
    DiscreteGaussian,
    GaussianNoise,
    Noise,
    Reach,
    RoundedGaussian,
    SplitLaplace,
)
from dpsql.core.selection.threshold import chance_below, threshold
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.core.selection.weighted import GroupsByWeights
from dpsql.core.sensitivity import norms as reach
from dpsql.core.unit import Neighbours
from dpsql.errors import DPSQLError, InternalError, InvalidPrivacyParameter
from dpsql.release.release import Release
from dpsql.release.selection import hidden_groups as hidden
from dpsql.session import prepare
from tests.core.checks import B, U
from tests.core.ledger.filter_laws import Group, Window, check_promise, chosen, group, reach_of, together, variance_of
from tests.core.unit_checks import CLAUSE, INTEGERS, Asking, Data, Exact, World, databases_of, people, people_rows
from tests.lies import Check, Lie, assert_caught
from tests.measured import by_chance, by_weights, height_of, norm_of

F = Fraction

# The promise, by the formulas of the laws

Pair = tuple[tuple[int, ...] | None, tuple[int, ...] | None]


def check_pairs(
    noise: Noise, cost: Cost, pairs: list[Pair], *, tau: int | None = None, below: float = 0.0, where: str = ""
) -> None:
    """All groups together, both ways."""
    dimension = next(len(x) for pair in pairs for x in pair if x is not None)
    most = max(abs(n) for pair in pairs for x in pair if x is not None for n in x)
    window = Window(noise, dimension, reach_of(noise, max(most, tau or 0)))
    for way in (pairs, [(other, one) for one, other in pairs]):
        check_promise(cost, together([group(window, one, other, tau=tau, below=below) for one, other in way]), where)


@pytest.mark.parametrize("epsilon", [F(1, 2), F(1), F(3)])
@pytest.mark.parametrize("steps", [1, 3])
def test_discrete_laplace_keeps_its_promise(epsilon: F, steps: int):
    reach = Reach(steps, F(steps * steps), 1)
    noise = CubeLaplace.calibrate(reach, epsilon)
    cost = noise.loss(reach)
    assert cost == Cost.of(epsilon)
    check_pairs(noise, cost, [((0,), (steps,))])
    if steps > 1:
        check_pairs(noise, cost, [((0,), (1,)), ((5,), (3,))])


@pytest.mark.parametrize("law", [CubeLaplace, SplitLaplace])
@pytest.mark.parametrize("epsilon", [F(1), F(2)])
def test_two_coordinates_keep_their_promise(law: type[CubeLaplace | SplitLaplace], epsilon: F):
    steps = 2
    reach = Reach(steps, F(2 * steps * steps), 2)
    noise = law.calibrate(reach, epsilon)
    cost = noise.loss(reach)
    assert cost == Cost.of(epsilon)
    for moved in itertools.product((-2, 0, 1, 2), repeat=2):
        check_pairs(noise, cost, [((0, 0), moved)], where=f"{law} {moved}")


@pytest.mark.parametrize("rho", [F(1, 20), F(1, 2), F(2)])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("law", [DiscreteGaussian, RoundedGaussian])
def test_gaussian_noise_keeps_its_promise(law: type[DiscreteGaussian | RoundedGaussian], rho: F, dimension: int):
    reach = Reach(2, F(4 * dimension), dimension)
    noise = law.of_rho(reach, rho)
    cost = noise.loss(reach)
    assert cost == Cost(None, rho=rho)
    for moved in itertools.product((-2, 1, 2), repeat=dimension):
        check_pairs(noise, cost, [((0,) * dimension, moved)])


@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), F(1, 100)), (F(1, 2), F(1, 1000)), (F(3), F(1, 10**5))])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("law", [DiscreteGaussian, RoundedGaussian])
def test_a_gaussian_pair_keeps_its_promise(
    law: type[DiscreteGaussian | RoundedGaussian], epsilon: F, delta: F, dimension: int
):
    reach = Reach(1, F(dimension), dimension)
    noise = law.calibrate(reach, PrivacyLoss(epsilon, delta))
    cost = noise.loss(reach)
    assert (cost.epsilon, cost.delta, cost.hidden) == (epsilon, delta, 0)
    for moved in itertools.product((-1, 0, 1), repeat=dimension):
        check_pairs(noise, cost, [((0,) * dimension, moved)])


@pytest.mark.parametrize(
    ("kind", "groups"),
    [(kind, groups) for kind in ("laplace", "gaussian", "rounded", "by_rho") for groups in (1, 2)]
    + [("cube", 1), ("split", 1)],
)
def test_thresholds_keep_their_promise(kind: str, groups: int):
    """A unit of its own groups, beside others; the first coordinate counts."""
    epsilon, delta = F(2), F(1, 50)
    dimension = 2 if kind in ("cube", "split") else 1
    reach = Reach(groups, F(groups * dimension), dimension)
    if kind == "gaussian":
        noise: Noise = DiscreteGaussian.calibrate(reach, PrivacyLoss(epsilon, delta))
    elif kind == "rounded":
        noise = RoundedGaussian.calibrate(reach, PrivacyLoss(epsilon, delta))
    elif kind == "by_rho":
        noise = DiscreteGaussian.of_rho(reach, F(1, 4))
    else:
        noise = (SplitLaplace if kind == "split" else CubeLaplace).calibrate(reach, epsilon)
    tau = threshold(noise, 1, delta / groups)
    below = float(chance_below(noise, 1, tau, delta / groups))
    assert 0 < below < 1
    cost = noise.loss(reach) + Cost.of(F(0), delta)
    none, one = None, (1,) * dimension
    if groups == 1:
        situations: list[list[Pair]] = [[(none, one)], [((2, *one[1:]), (3, *one[1:]))]]
    else:
        situations = [[(none, one), (none, one)], [(none, one), ((4,), (5,))], [(none, one), (one, none)]]
    for pairs in situations:
        check_pairs(noise, cost, pairs, tau=tau, below=below, where=f"{kind} {pairs}")


def test_coins_spend_all_of_delta():
    """A thousandth more, and the promise is broken."""
    epsilon, delta = F(2), F(1, 50)
    noise = CubeLaplace.calibrate(Reach(1, F(1), 1), epsilon)
    tau = threshold(noise, 1, delta)
    cost, below = Cost.of(epsilon) + Cost.of(F(0), delta), float(chance_below(noise, 1, tau, delta))
    check_pairs(noise, cost, [(None, (1,))], tau=tau, below=below)
    with pytest.raises(AssertionError):
        check_pairs(noise, cost, [(None, (1,))], tau=tau, below=below * 1.001)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), F(1, 100)), (F(1, 2), F(1, 20)), (F(3), F(1, 10**4))])
def test_the_choice_of_groups_keeps_its_promise(epsilon: F, delta: F, groups: int):
    """At every number of units; with two groups, one and two of them changed, either way."""
    law = TruncatedGeometric(epsilon, delta, groups)
    cost = Cost.of(epsilon, delta)
    most = law.certain + 1
    for n in range(most):
        for m in {n, *range(0, most, 3)} if groups == 2 else {0}:
            ends = [(n, n + 1)] if groups == 1 else [(n, n + 1), (m + 1, m)]
            for way in (ends, [(other, one) for one, other in ends]):
                check_promise(cost, together([chosen(law, *each) for each in way]), f"{law} {way}")


@pytest.mark.parametrize(
    "lie",
    [
        {"rho": F(9, 10)},
        {"epsilon": F(9, 10)},
        {"delta": F(3, 10), "hidden": F(3, 10)},
        {"hidden": F(0)},
    ],
    ids=str,
)
def test_a_cost_that_says_less_is_caught(lie: dict[str, F]):
    """The promise is one that can be broken: each coordinate made a little smaller, of a thresholded Laplace count."""
    delta = F(1, 50)
    noise = CubeLaplace.calibrate(Reach(1, F(1), 1), F(1))
    tau = threshold(noise, 1, delta)
    honest = Cost.of(F(1)) + Cost.of(F(0), delta)
    situations: list[list[Pair]] = [[(None, (1,))], [((tau + 9,), (tau + 10,))]]
    for pairs in situations:
        check_pairs(noise, honest, pairs, tau=tau)
    less = replace(honest, **{name: getattr(honest, name) * factor for name, factor in lie.items()})  # type: ignore[arg-type]
    if "rho" in lie:  # the square of epsilon / 2 is what randomised response needs: nearly reached at small epsilons
        noise, tau = CubeLaplace.calibrate(Reach(20, F(400), 1), F(1)), None
        less = Cost(F(1), rho=F(1, 2) * F(1, 4))
        situations = [[((0,), (20,))]]

    def check() -> None:
        for pairs in situations:
            check_pairs(noise, less, pairs, tau=tau)

    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("scale", [F(1), F(5, 2)])
@pytest.mark.parametrize("law", [CubeLaplace, SplitLaplace, DiscreteGaussian, RoundedGaussian])
def test_a_spread_is_the_variance_of_the_law(law: Any, scale: F):
    """By which laws are compared; of two coordinates with a common law that of the continuous one is near."""
    dimensions = (1,) if law is CubeLaplace else (1, 2)
    for d in dimensions:
        noise = law(scale**2 if issubclass(law, GaussianNoise) else scale, d)
        assert noise.spread == pytest.approx(variance_of(Window(noise, d, reach_of(noise, 0))), rel=1e-6)
    fine = CubeLaplace(F(20), 2)
    assert fine.spread == pytest.approx(variance_of(Window(fine, 2, 600)), rel=2e-3)


# Between rho and (epsilon, delta)


def delta_in_many_digits(rho: F, epsilon: F) -> Any:
    """The least over alpha of Canonne, Kamath, Steinke 2020, corollary 13, with 50 digits."""
    with mpmath.workdps(50):
        r, e = (mpmath.mpf(each.numerator) / each.denominator for each in (rho, epsilon))

        def log_delta(alpha: Any) -> Any:
            return (alpha - 1) * (alpha * r - e) + alpha * mpmath.log(1 - 1 / alpha) - mpmath.log(alpha - 1)

        low, high, golden = 1 + mpmath.mpf(10) ** -15, (e + 1) / (2 * r) + 2, (mpmath.sqrt(5) - 1) / 2
        for _ in range(300):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if log_delta(left) <= log_delta(right) else (left, high)
        return mpmath.exp(log_delta((low + high) / 2))


@pytest.mark.parametrize("epsilon", [F(1, 10**9), F(1, 100), F(1), F(20), F(10**6), F(10**9)])
@pytest.mark.parametrize("delta", [F(1, 10**100), F(1, 10**9), F(1, 100), F(1, 2)])
def test_floats_convert_to_the_safe_side(epsilon: F, delta: F):
    """The rho of a pair, and the epsilon of that rho: in many digits the delta is never above; and hardly below."""
    rho = rho_for(epsilon, delta)
    found = delta_in_many_digits(rho, epsilon)
    goal = mpmath.mpf(delta.numerator) / delta.denominator
    assert found <= goal
    assert found >= goal * (0.95 if epsilon < F(1, 10**8) else 1 - 1e-6)
    back = epsilon_of(rho, delta)
    assert delta_in_many_digits(rho, back) <= goal
    assert back <= epsilon * (1 + F(1, 10**9)) or epsilon < F(1, 10**8)


# The promise, of what the engine makes of tiny tables

ROWS = World({"t": {"k": "str"}}, {"t": {}}, {})
UNITS = World({"t": {"u": "int64", "k": "str"}}, {"t": {"unit": "u", "max_rows": 2, "max_rows_per_group": 1}}, {})
PUBLIC_ROWS = replace(ROWS, declared={"t": {"keys": {"k": ["a", "b"]}}})
COUNTS = "SELECT k, COUNT(*) FROM t GROUP BY k"
KEYS = "SELECT k FROM t GROUP BY k"
GEOMETRIC = f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC) k, COUNT(*) FROM t GROUP BY k"
ROW_TABLES = ["", "a", "b", "aa", "ab", "aab", "aaab", "aaaaaa", "aaaaaaa", "aaaaaab"]
UNIT_TABLES: list[dict[int, str]] = [
    {},
    {1: "a"}, {1: "ab"}, {1: "b"}, {1: "ab", 2: "ab"}, {1: "a", 2: "ab"}, {1: "a", 2: "b"},
    {1: "ab", 2: "ab", 3: "b"},
]  # fmt: skip


def _of_all_groups(share: Share, cells: list[Pair]) -> Group:
    """Of one count in each group, with noise for all of them together, on a lattice as coarse as a count."""
    assert share.reach.across is not None
    assert share.reach.across.kinds == ("each",)
    step = share.reach.across.largest
    noise = CubeLaplace(share.noise.exact_scale / step, len(cells))  # type: ignore[attr-defined]
    one, other = (tuple(vector[0] // step for vector in each if vector) for each in zip(*cells, strict=True))
    window = Window(noise, len(cells), reach_of(noise, max(*one, *other)))
    return together([group(window, one, other, tau=None)])


def enumerate_output(asking: Asking, one: Exact, other: Exact) -> Group:
    """The law of everything that is shown, on both databases."""
    made = asking.made
    groups = sorted(one.cells.keys() | other.cells.keys(), key=str)
    if any(share.reach.across for share in made.shares):
        return _of_all_groups(made.shares[0], [(one.cells[name], other.cells[name]) for name in groups])
    window = None
    if made.shares:
        (share,) = made.shares
        most = max(abs(n) for each in (one, other) for cell in each.cells.values() for n in cell)
        window = Window(share.noise, len(share.places), reach_of(share.noise, max(most, height_of(made))))
    found = []
    for name in groups:
        cells = one.cells.get(name), other.cells.get(name)
        if by_weights(made):
            found.append(weighed(by_weights(made)[0], one.units.get(name), other.units.get(name)))
            continue
        if not by_chance(made):
            assert window is not None
            below, place = float(made.selection.below), made.lattice.selection
            found.append(group(window, *cells, tau=height_of(made) or None, selection=place, below=below))
            continue
        units = one.units.get(name, 0), other.units.get(name, 0)
        noisy = None
        if window is not None:
            zero = (0,) * window.dimension
            noisy = group(window, *(zero if cell is None else cell for cell in cells), tau=None)
        found.append(chosen(by_chance(made)[0].law, *units, noisy))
    return together(found)


def weighed(groups: GroupsByWeights, one: int | None, other: int | None) -> Group:
    """A group shown where its noisy weight reaches the height."""
    sigma = groups.noise.scale
    p, q = (0.0 if each is None else norm.sf((groups.height - each - 0.5) / sigma) for each in (one, other))
    bits = np.array([1 - p, p]), np.array([1 - q, q])
    if one is not None and other is not None:
        return Group(*bits, bits[0])
    return Group(*bits, np.array([1 - (p if one is not None else q), 0.0]))


ASKED = [(ROWS, sql) for sql in (COUNTS, KEYS, GEOMETRIC)] + [(UNITS, sql) for sql in (COUNTS, KEYS, GEOMETRIC)]


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize(("world", "sql"), [*ASKED, (PUBLIC_ROWS, COUNTS)])
@pytest.mark.parametrize("paid", ["epsilon", "rho"])
def test_what_is_charged_covers_what_is_shown(world: World, sql: str, mechanism: str, relation: str, paid: str):
    check_covered(world, sql, mechanism, relation, paid)


def check_covered(world: World, sql: str, mechanism: str, relation: str, paid: str) -> None:
    """Every pair of neighbours among some tiny tables."""
    how = {"epsilon": 2, "delta": F(1, 20)} if paid == "epsilon" else {"rho": F(1, 2), "delta": F(1, 20)}
    asking = AskingOf(world, sql, relation, {**how, "mechanism": mechanism})
    if world is UNITS:
        databases = [data_of_units(each) for each in UNIT_TABLES]
        units = [{u: tuple(sorted(ks)) for u, ks in each.items()} for each in UNIT_TABLES]
        pairs = [
            (x, y)
            for x, y in itertools.permutations(range(len(databases)), 2)
            if len({u for u in units[x].keys() | units[y].keys() if units[x].get(u) != units[y].get(u)}) == 1
            and (relation == B or units[x].keys() != units[y].keys())
        ]
    else:
        databases = [{"t": tuple((k,) for k in each)} for each in ROW_TABLES]
        pairs = [
            (x, y)
            for x, y in itertools.permutations(range(len(databases)), 2)
            if are_neighbours(ROW_TABLES[x], ROW_TABLES[y], relation)
        ]
    assert len(pairs) > 5
    for x, y in pairs:
        one, other = asking.exact(databases[x]), asking.exact(databases[y])
        if one.cells or other.cells:
            whole = enumerate_output(asking, one, other)
            check_promise(asking.made.cost, whole, asking.where(databases[x], databases[y]))


def are_neighbours(one: str, other: str, relation: str) -> bool:
    gone, come = (sum(max(0, x.count(k) - y.count(k)) for k in "ab") for x, y in ((one, other), (other, one)))
    return (gone, come) == (1, 1) if relation == B else gone + come == 1


def data_of_units(units: dict[int, str]) -> Data:
    return {"t": tuple((u, k) for u, ks in units.items() for k in ks)}


# Queries paid by rho


@dataclass
class AskingOf(Asking):
    """A query paid by whatever is said."""

    def __post_init__(self) -> None:
        self.made = made_of(self.world, self.sql, self.relation, **self.how)


def made_of(
    world: World, sql: str, relation: str, *, epsilon: Any = None, rho: Any = None, delta: Any = 0, **how: Any
) -> Release:
    """The release of a query. Planned afresh, not cached."""
    prepare._cache.clear()
    terms = prepare.Terms.of(epsilon, delta, rho)
    return prepare.prepare(sql, world.catalog, Neighbours.of(relation), terms, **how).releases[0]


def worth(made: Release, one: Exact, other: Exact) -> F:
    """The rho of the noise that is drawn, by its scale and by how far these two databases are apart; without choosing
    groups."""
    zero = (0,) * len(made.coordinates)
    changes = [
        [abs(x - y) for x, y in zip(one.cells.get(name, zero), other.cells.get(name, zero), strict=True)]
        for name in one.cells.keys() | other.cells.keys()
    ]
    total = F(0)
    for share in made.shares:
        moved = [[change[i] for i in share.places] for change in changes]
        if isinstance(share.noise, GaussianNoise):
            total += F(sum(x * x for change in moved for x in change)) / (2 * share.noise.variance)
        elif isinstance(share.noise, GroupVectorLaplace):
            total += (F(max(map(max, moved), default=0)) / share.noise.exact_scale) ** 2 / 2
        else:
            assert isinstance(share.noise, CubeLaplace | SplitLaplace | ClassLaplace)
            apart = isinstance(share.noise, SplitLaplace)
            far = sum(map(sum, moved)) if apart else sum(norm_of(share, change) for change in changes)
            total += (far / share.noise.exact_scale) ** 2 / 2
    return total


CITIES = "city, COUNT(*), SUM(y) FROM p JOIN e USING (pid) GROUP BY city"
BY_RHO = [
    ("SELECT COUNT(*) FROM t", {}),
    ("SELECT SUM(x) FROM t", {}),
    ("SELECT AVG(x), COUNT(*) FROM t", {}),
    ("SELECT COUNT(*), SUM(x), AVG(k) FROM t WHERE x > 0", {}),
    ("SELECT g, COUNT(*) FROM t GROUP BY g", {}),
    ("SELECT g, AVG(x), COUNT(*) FROM t GROUP BY g", {}),
    ("SELECT g FROM t GROUP BY g", {}),
    ("SELECT COUNT(*) FROM e", {"max_rows": 3}),
    ("SELECT SUM(y), COUNT(*) FROM e", {"max_rows": 2}),
    ("SELECT k, COUNT(*), AVG(y) FROM e GROUP BY k", {"max_groups": 2, "max_rows_per_group": 2}),
    ("SELECT k, COUNT(DISTINCT pid) FROM e GROUP BY k", {"max_groups": 2}),
    ("SELECT k, COUNT(DISTINCT pid), SUM(y) FROM e GROUP BY k", {"max_rows": 3}),
    (f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC) {CITIES}", {"max_rows": 3}),
    (f"{CLAUSE} (group_selection_strategy = LAPLACE_THRESHOLD) {CITIES}", {"max_rows": 2}),
    (f"{CLAUSE} (group_selection_strategy = GAUSSIAN_THRESHOLD) {CITIES}", {"max_rows": 2}),
    (f"{CLAUSE} (group_selection_epsilon = 0.2) {CITIES}", {"max_rows": 2}),
    (f"{CLAUSE} (min_privacy_units_per_group = 3) {CITIES}", {"max_groups": 2, "max_rows_per_group": 2}),
    ("SELECT name, COUNT(*) FROM e JOIN pub ON e.k = pub.k GROUP BY name", {"max_rows": 3}),
]  # fmt: skip
HOWS: list[dict[str, Any]] = [
    {"mechanism": "auto"},
    {"mechanism": "laplace"},
    {"mechanism": "gaussian"},
    {"strategy": "split"},
    {"strategy": "split", "mechanism": "gaussian"},
    {"strategy": "split", "mechanism": "laplace"},
]


def by_rho_cases() -> list[Any]:
    """Every query in every way but those of which the text asks for the other law; a third of them by default."""
    found = []
    for (sql, limits), how, relation in itertools.product(BY_RHO, HOWS, (U, B)):
        word = how.get("mechanism", "auto")
        if word == "auto" or not any(
            f"{law.upper()}_THRESHOLD" in sql for law in ("laplace", "gaussian") if law != word
        ):
            marks = [] if len(found) % 3 == 0 else [pytest.mark.slow]
            found.append(pytest.param(sql, limits, how, relation, marks=marks))
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("sql", "limits", "how", "relation"), by_rho_cases())
def test_no_noise_is_worth_more_than_the_rho_it_is_charged(
    sql: str, limits: dict[str, int], how: dict[str, Any], relation: str
):
    check_by_rho(sql, limits, how, relation)


def check_by_rho(sql: str, limits: dict[str, int], how: dict[str, Any], relation: str) -> None:
    """For every neighbour of some databases, its exact distance beside the noise's exact scale."""
    rho = F(1, 7)
    asking = AskingOf(people().limited(**limits), sql, relation, {**how, "rho": rho, "delta": F(1, 10**6)}, {})
    made, cost = asking.made, asking.made.cost
    if not made.shares and not by_chance(made) and not by_weights(made):
        assert cost == FREE
        return
    assert cost.rho == rho
    assert cost.delta == cost.hidden == (F(1, 10**6) if made.hides else 0)
    gaussian = any(isinstance(share.noise, GaussianNoise) for share in made.shares)
    assert (cost.epsilon is None) == (gaussian or bool(by_weights(made)))
    if "mechanism" in how and how["mechanism"] != "auto" and made.shares:
        assert gaussian == (how["mechanism"] == "gaussian")
    elif how == {"mechanism": "auto"} and made.shares and "THRESHOLD" not in sql:
        together = any(share.reach.across for share in made.shares)
        assert gaussian or together, "by rho Gaussian noise is always narrower than that of each group by itself"
    choosing = sum((groups.law.epsilon**2 / 2 for groups in by_chance(made)), F(0))
    choosing += sum((groups.cost.rho for groups in by_weights(made)), F(0))
    declared = sum((share.noise.loss(share.reach).rho for share in made.shares), choosing)
    assert declared <= rho
    assert not made.shares or declared >= rho * F(9, 10) or by_chance(made) or "epsilon" in sql
    if cost.epsilon is not None:
        assert sum((event.epsilon for event in made.events), F(0)) <= cost.epsilon
    rng = random.Random(1)
    met = F(0)
    for data in databases_of(INTEGERS, 5, 6):
        for one, other in neighbours_of(asking, data, rng):
            met = max(met, worth(made, asking.exact(one), asking.exact(other)) + choosing)
    assert met <= rho
    if "WHERE" not in sql and "JOIN" not in sql and len(made.shares) == 1 and len(made.coordinates) == 1:
        assert met > 0


def neighbours_of(asking: Asking, data: Data, rng: random.Random) -> list[tuple[Data, Data]]:
    """One unit less; bounded: its rows changed."""
    found: list[tuple[Data, Data]] = []
    if asking.by_row:
        for place, row in enumerate(data["t"]):
            rest = (*data["t"][:place], *data["t"][place + 1 :])
            if asking.relation == U:
                found.append((data, {**data, "t": rest}))
            else:
                found += [(data, {**data, "t": (*rest, (k, x, g))}) for k, x, g in [(0, 3.0, "a"), (3, -1.0, "b"), row]]
        return found
    for unit in asking.world.units(data):
        rest = asking.world.without(data, unit)
        others = [rest]
        if asking.relation == B:
            drawn = [asking.world.with_rows(rest, unit, people_rows(rng, asking.world, unit, 4)) for _ in range(3)]
            others = [each for each in (rest, *drawn) if each is not None]
        found += [(data, other) for other in others]
    return found


# Lies


def charge_half_of_the_rho(patch: pytest.MonkeyPatch) -> None:
    honest = DiscreteGaussian.of_rho
    patch.setattr(DiscreteGaussian, "of_rho", classmethod(lambda _cls, reach, rho: honest(reach, 2 * rho)))


def take_rho_for_epsilon(patch: pytest.MonkeyPatch) -> None:
    """Pure noise of epsilon^2 = 4 rho."""
    honest = Allowance.pure
    patch.setattr(Allowance, "pure", property(lambda self: honest.__get__(self) * 2))


def calibrate_to_half_of_the_reach(patch: pytest.MonkeyPatch) -> None:
    """The law's loss for the whole reach is then more than it was calibrated to."""
    honest = CubeLaplace.calibrate.__func__  # type: ignore[attr-defined]

    def halved(cls: type[CubeLaplace], reach: Reach, epsilon: F) -> CubeLaplace:
        made: CubeLaplace = honest(cls, replace(reach, cube_sensitivity=reach.cube_sensitivity // 2), epsilon)
        return made

    patch.setattr(CubeLaplace, "calibrate", classmethod(halved))


def say_what_was_asked_for_whatever_the_reach(patch: pytest.MonkeyPatch) -> None:
    """The same, of a law that hides it."""
    calibrate_to_half_of_the_reach(patch)
    patch.setattr(CubeLaplace, "loss", lambda self, _reach: Cost.of(self.epsilon))


def choose_groups_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Allowance, "rest", lambda self, _own: self.pure)


def hide_groups_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """The delta of a threshold is not charged."""
    honest = Cost.of
    patch.setattr(Cost, "of", classmethod(lambda _cls, epsilon, _delta=None: honest(epsilon)))


def give_the_noise_the_whole_delta(patch: pytest.MonkeyPatch) -> None:
    """That of the threshold is on top of it."""
    honest = hidden.threshold
    patch.setattr(hidden, "threshold", lambda noise, most_of_a_unit, delta: honest(noise, most_of_a_unit, 2 * delta))


def forget_the_l2_norm_of_several_groups(patch: pytest.MonkeyPatch) -> None:
    honest = reach._groups
    patch.setattr(reach, "_across", reach._across.__wrapped__)
    patch.setattr(reach, "_groups", lambda bound, present: honest(replace(bound, groups=1), present))


COUNTED = "SELECT COUNT(*) FROM e"
FOUR_ROWS = {"max_rows": 4}
LAPLACE = {"mechanism": "laplace"}
TWO_GROUPS = {"max_groups": 2, "max_rows_per_group": 1}
BY_K = "SELECT k, COUNT(*) FROM e GROUP BY k"
CHOSEN = f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC) {CITIES}"


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        (charge_half_of_the_rho, lambda: check_by_rho("SELECT COUNT(*) FROM e", {"max_rows": 3}, {}, U)),
        (
            take_rho_for_epsilon,
            lambda: check_by_rho("SELECT COUNT(*) FROM e", {"max_rows": 3}, {"strategy": "split"}, U),
        ),
        (calibrate_to_half_of_the_reach, lambda: check_by_rho(COUNTED, FOUR_ROWS, LAPLACE, U)),
        (say_what_was_asked_for_whatever_the_reach, lambda: check_by_rho(COUNTED, FOUR_ROWS, LAPLACE, U)),
        (choose_groups_for_nothing, lambda: check_by_rho(CHOSEN, {"max_rows": 3}, {"mechanism": "gaussian"}, U)),
        (hide_groups_for_nothing, lambda: check_covered(ROWS, COUNTS, "laplace", U, "epsilon")),
        (hide_groups_for_nothing, lambda: check_covered(UNITS, KEYS, "laplace", U, "rho")),
        (give_the_noise_the_whole_delta, lambda: check_covered(ROWS, COUNTS, "laplace", B, "epsilon")),
        (give_the_noise_the_whole_delta, lambda: check_covered(UNITS, COUNTS, "laplace", U, "rho")),
        (forget_the_l2_norm_of_several_groups, lambda: check_by_rho(BY_K, TWO_GROUPS, {"mechanism": "gaussian"}, U)),
    ],
    ids=lambda each: each.__name__,
)
def test_a_lie_about_charges_is_caught(lie: Lie, check: Check):
    refused = (  # the law is worth more than it is granted
        charge_half_of_the_rho,
        calibrate_to_half_of_the_reach,
        give_the_noise_the_whole_delta,
    )
    by = InternalError if lie in refused else AssertionError
    assert_caught(lie, check, by=by)


# Through sessions


def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2, 3, 4] * 10, "k": ["a", "b"] * 20})


def session(epsilon: Any = 1, delta: Any = 1e-6, **options: Any) -> dpsql.Session:
    table = dpsql.Table(frame(), bounds={"x": (0, 10)})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(epsilon, delta), **options)


BAD = [
    0, -1, -0.0, -1e-9, float("nan"), float("inf"), np.float64("nan"), Decimal("NaN"), Decimal("sNaN"), "1", b"1", True,
    np.bool_(True), 1j, [1], np.array(1.0), pd.NA, pd.NaT, object(), 10**10, F(1, 10**19), Decimal("1e-400"), F(-1, 3),
]  # fmt: skip


@pytest.mark.parametrize("rho", BAD, ids=lambda each: f"{type(each).__name__} {each!s:.12}")
def test_what_is_no_rho_is_refused_and_costs_nothing(rho: Any):
    held = session()
    for ask in (held.query, held.explain, held.remaining_queries):
        with pytest.raises(InvalidPrivacyParameter):
            ask("SELECT COUNT(*) FROM t", rho=rho)
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.query(frame(), "SELECT COUNT(*) FROM df", rho=rho)
    assert held.ledger() == ()


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SELECT COUNT(*) FROM t", {}),
        ("SELECT COUNT(*) FROM t", {"rho": None, "epsilon": None}),
        ("SELECT COUNT(*) FROM t", {"rho": 0.01, "epsilon": 0.1}),
        ("SELECT COUNT(*) FROM t", {"rho": 0.01, "delta": None, "epsilon": 1}),
        (f"{CLAUSE} (epsilon = 0.1) COUNT(*) FROM t", {"rho": 0.01}),
        ("SELECT COUNT(*, epsilon => 0.1) FROM t", {"rho": 0.01}),
        ("SELECT k, COUNT(*) FROM t GROUP BY k", {"rho": 0.01}),
        (f"{CLAUSE} (delta = 1e-7) COUNT(*) FROM t", {"rho": 0.01, "delta": 1e-8}),
        (f"{CLAUSE} (group_selection_epsilon = 0.5) k, COUNT(*) FROM t GROUP BY k", {"rho": 0.01, "delta": 1e-7}),
        ("SELECT COUNT(*) FROM t", {"rho": 0.01, "mechanism": "exponential"}),
        ("SELECT COUNT(*) FROM t", {"rho": 0.01, "strategy": "best"}),
        ("SELECT COUNT(*) FROM t", {"rho": 1}),
    ],
    ids=str,
)
def test_a_refusal_of_a_rho_costs_nothing(sql: str, options: dict[str, Any]):
    held = session()
    with pytest.raises(DPSQLError):
        held.query(sql, **options)
    assert held.ledger() == ()
    assert held.remaining.epsilon == 1


def test_options_may_give_the_delta_of_a_rho_query():
    held = session()
    result = held.query(f"{CLAUSE} (delta = 1e-7) k, COUNT(*) FROM t GROUP BY k", rho=0.01, delta=1e-6)
    assert result.loss.delta == F(1, 10**7)
    assert result.loss.rho == F(1, 100)


def test_a_default_epsilon_gives_way_to_a_rho():
    table = dpsql.Table(frame(), bounds={"x": (0, 10)})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(1, 1e-6), epsilon=0.1)
    assert held.query("SELECT COUNT(*) FROM t", rho=0.01).loss.rho == F(1, 100)
    assert held.query("SELECT COUNT(*) FROM t").loss.epsilon == F(1, 10)


def test_the_owners_limit_holds_for_rho():
    """As much as converts to that epsilon, at the delta at which the budget converts rho."""
    table = dpsql.Table(frame(), bounds={"x": (0, 10)})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(5, 1e-6), max_epsilon=0.1)
    most = rho_for(F(1, 10), F(5, 10**7))
    held.query("SELECT COUNT(*) FROM t", rho=most)
    assert held.spent.epsilon <= F(1, 10) + F(1, 10**9)
    with pytest.raises(InvalidPrivacyParameter, match="more than one query may spend here: epsilon 0.1, rho 0.00029"):
        held.query("SELECT COUNT(*) FROM t", rho=most * F(1001, 1000))
    assert len(held.ledger()) == 1
    without = dpsql.Session({"t": table}, budget=dpsql.Budget(5), max_epsilon=0.1)
    with pytest.raises(InvalidPrivacyParameter, match="epsilon 0.1, no rho"):
        without.query("SELECT COUNT(*) FROM t", rho=F(1, 10**6))


@pytest.mark.parametrize("accountant", ["zcdp", "auto"])
@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian"])
@pytest.mark.parametrize("parts", [1, 3, 7, 10])
def test_rho_is_spent_to_the_last_digit(accountant: str, mechanism: str, parts: int):
    held = session(accountant=accountant)
    whole = held.remaining.rho
    assert whole is not None
    for n in range(parts):
        more = held.remaining_queries("SELECT SUM(x) FROM t", rho=whole / parts, mechanism=mechanism)
        if accountant == "zcdp" or mechanism != "laplace":
            assert more == parts - n
        assert more >= parts - n  # pure noise has an epsilon too, which basic may add up further
        held.query("SELECT SUM(x) FROM t", rho=whole / parts, mechanism=mechanism, fresh=True)
    if mechanism == "gaussian":
        assert held.remaining.epsilon == 0
        assert held.remaining.rho == 0
    with pytest.raises(DPSQLError):
        held.query("SELECT SUM(x) FROM t", rho=F(1, 10**18), mechanism="gaussian")
    assert held.spent.rho == whole
    assert held.spent.epsilon <= 1


def test_what_was_spent_is_never_more_than_the_budget():
    held = session()
    held.query("SELECT SUM(x) FROM t", rho=held.remaining.rho, mechanism="gaussian")
    assert held.spent.epsilon <= 1


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("options", [{"rho": 0.01}, {"epsilon": 0.2, "delta": 1e-7}], ids=str)
def test_the_noise_drawn_is_worth_the_charge(options: dict[str, Any], mechanism: str):
    """By the variance of released values: not smaller than what is charged allows."""
    result = dpsql.query(
        pd.DataFrame({"k": np.arange(3000) % 1000}), "SELECT k, COUNT(*) FROM df GROUP BY k", mechanism=mechanism,
        keys={"k": list(range(1000))}, **options,
    )  # fmt: skip
    assert isinstance(result, dpsql.Result)
    variance = float(((result.df.iloc[:, 1] - 3) ** 2).mean())
    rho = float(result.loss.rho)
    least = 1 / (2 * rho) if mechanism == "gaussian" else 2 / (2 * rho)
    assert variance == pytest.approx(least, rel=0.35)


def test_steps_of_the_ledger_come_to_what_was_charged():
    """The events that accountants read afterwards are no less than the cost."""
    held = session(20, 1e-5)
    for sql, options in [
        ("SELECT COUNT(*) FROM t", {"rho": 0.01}),
        ("SELECT k, COUNT(*), AVG(x) FROM t GROUP BY k", {"epsilon": 0.5, "delta": 1e-6}),
        ("SELECT k FROM t GROUP BY k", {"epsilon": 0.5, "delta": 1e-6}),
        ("SELECT k, SUM(x) FROM t GROUP BY k", {"rho": 0.005, "delta": 1e-6}),
    ]:
        held.query(sql, **options)
    for entry in held.ledger():
        rho = sum(e.rho if hasattr(e, "rho") else e.epsilon**2 / 2 for e in entry.events)
        delta = sum((getattr(e, "delta", F(0)) for e in entry.events), F(0))
        assert rho <= entry.cost.rho <= rho * F(1001, 1000) + F(1, 10**12)
        assert delta == entry.cost.hidden
    assert sum((entry.cost for entry in held.ledger()), FREE).rho == held.spent.rho


def test_numbers_are_read_as_they_print():
    assert as_rho(0.1) == F(1, 10)
    assert as_rho(Decimal("1e-18")) == F(1, 10**18)
    assert as_delta(1e-6) == F(1, 10**6)
    assert math.isclose(float(as_rho(np.float64(0.02))), 0.02)
