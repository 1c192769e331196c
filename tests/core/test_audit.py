"""A black-box audit: many releases of one query about two neighbouring tables, and what they tell apart.

An event is chosen on one half of the draws and its probabilities are certified on the other by Clopper-Pearson, so the
lower bound of epsilon holds whatever the mechanism is (Jagielski, Ullman, Oprea, NeurIPS 2020). It must not exceed the
claim, and it must come near it: an audit without power finds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import dpsql
from dpsql.core.selection.weighted import GroupsByWeights
from dpsql.release.release import Release
from tests.core.checks import B, Row, Shape, U, calibrated, releases, run_exactly
from tests.seeding import seed

DRAWS = 100_000
CONFIDENCE = 1 - 1e-6
"""Of one certificate. Above the customary 99.99 %: of all audits none is to be wrong at any seed."""


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


def clopper_pearson(hits: Any, draws: int, confidence: float) -> tuple[Any, Any]:
    """Lower and upper limits of probabilities, each one-sided at (1 - confidence) / 2."""
    alpha = (1 - confidence) / 2
    hits = np.asarray(hits)
    lower = np.where(hits == 0, 0.0, beta.ppf(alpha, np.maximum(hits, 1), draws - hits + 1))
    upper = np.where(hits == draws, 1.0, beta.ppf(1 - alpha, hits + 1, np.maximum(draws - hits, 1)))
    return lower, upper


def certified_epsilon(one: Any, other: Any, confidence: float = CONFIDENCE, delta: float = 0.0) -> float:
    """A lower bound of epsilon from a statistic's values under two neighbours, shape (statistics, draws) each.

    Events are {statistic >= t} and {statistic <= t}, told in both directions. (epsilon, delta): log((p - delta) / q).
    """
    half = one.shape[1] // 2
    best: tuple[float, Callable[[], tuple[Any, Any]]] = (-math.inf, lambda: (0, 0))
    for a, b in ((one, other), (other, one)):
        for sign in (1, -1):
            for row in range(len(a)):
                x, y = sign * a[row], sign * b[row]
                cuts = np.unique(np.quantile(np.concatenate([x[:half], y[:half]]), np.linspace(0.001, 0.999, 200)))
                low, _ = clopper_pearson((x[:half, None] >= cuts).sum(axis=0), half, confidence)
                _, high = clopper_pearson((y[:half, None] >= cuts).sum(axis=0), half, confidence)
                gain = np.log(np.maximum(low - delta, 1e-300) / high)
                place = int(np.argmax(gain))
                if gain[place] > best[0]:

                    def event(x: Any = x, y: Any = y, cut: float = float(cuts[place])) -> tuple[Any, Any]:
                        return (x[half:] >= cut).sum(), (y[half:] >= cut).sum()

                    best = (float(gain[place]), event)
    hits, misses = best[1]()
    rest = one.shape[1] - half
    low, _ = clopper_pearson(hits, rest, confidence)
    _, high = clopper_pearson(misses, rest, confidence)
    return math.log(max(float(low) - delta, 1e-300) / float(high))


def statistics(draws: Any, first: Any, second: Any, units: Any, classes: Any, *, across: bool = False) -> Any:
    """What a reader of a release may look at, shape (statistics, draws): how much nearer it lies to the second table's
    exact answer than to the first's, by three norms, and each of its numbers. `classes`: of each coordinate; the first
    norm is the largest of each class, added up, over groups too save where noise is `across` them."""
    x, v, w = (each / units for each in (draws, first, second))
    toward, away = np.abs(x - v), np.abs(x - w)
    nearer = [
        toward[..., classes == each].max(axis=2) - away[..., classes == each].max(axis=2) for each in set(classes)
    ]
    cube = toward.max(axis=(1, 2)) - away.max(axis=(1, 2)) if across else sum(nearer).sum(axis=1)
    plain = (toward - away).sum(axis=(1, 2))
    square = (toward**2 - away**2).sum(axis=(1, 2))
    return np.stack([cube, plain, square, *x.reshape(len(x), -1).T])


SHAPE = Shape(
    {"x": "float64", "p": "int64", "n": "Int64", "g": "str"},
    {"bounds": {"x": (-1, 3), "p": (20, 30), "n": (0, 5)}, "keys": {"g": ["a", "b"]}},
)
LOW, HIGH = (-1.0, 20, 0, "a"), (3.0, 30, 5, "a")
EMPTY: list[Row] = []

AUDITS = [
    ("count", "SELECT COUNT(*) FROM t", U, EMPTY, [HIGH], {}),
    ("count, bounded", "SELECT COUNT(*) FROM t WHERE x > 0", B, [LOW], [HIGH], {}),
    ("nullable count, bounded", "SELECT COUNT(n) FROM t", B, [(0.0, 25, None, "a")], [LOW], {}),
    ("sum", "SELECT SUM(x) FROM t", U, EMPTY, [HIGH], {}),
    ("sum far from 0", "SELECT SUM(p) FROM t", U, EMPTY, [HIGH], {}),
    ("sum, bounded", "SELECT SUM(p) FROM t", B, [LOW], [HIGH], {}),
    ("filtered sum, bounded", "SELECT SUM(p) FROM t WHERE x > 0", B, [LOW], [HIGH], {}),
    ("average", "SELECT AVG(x) FROM t", U, EMPTY, [HIGH], {}),
    ("average of the least", "SELECT AVG(x) FROM t", U, EMPTY, [LOW], {}),
    ("average, split", "SELECT AVG(x) FROM t", U, EMPTY, [HIGH], {"strategy": "split"}),
    ("average, bounded", "SELECT AVG(p) FROM t", B, [LOW], [HIGH], {}),
    ("average of a nullable column, bounded", "SELECT AVG(n) FROM t", B, [LOW], [HIGH], {}),
    ("three columns", "SELECT COUNT(*), AVG(x), SUM(p) FROM t", U, [LOW], [LOW, HIGH], {}),
    ("three columns, split", "SELECT COUNT(*), AVG(x), SUM(p) FROM t", U, [LOW], [LOW, HIGH], {"strategy": "split"}),
    ("counts by group", "SELECT g, COUNT(*) FROM t GROUP BY g", U, EMPTY, [LOW], {}),
    ("counts by group, bounded", "SELECT g, COUNT(*) FROM t GROUP BY g", B, [LOW], [(*LOW[:3], "b")], {}),
    ("averages by group, bounded", "SELECT g, AVG(x) FROM t GROUP BY g", B, [HIGH], [(*HIGH[:3], "b")], {}),
    ("averages inside a group, bounded", "SELECT g, AVG(x) FROM t GROUP BY g", B, [LOW], [HIGH], {}),
    ("sums by group, split, bounded", "SELECT g, SUM(p), AVG(x) FROM t GROUP BY g", B, [HIGH], [(*HIGH[:3], "b")],
     {"strategy": "split"}),
]  # fmt: skip


def audited(
    made: Release, schema: Any, first: list[Row], second: list[Row], *, delta: float = 0.0, shape: Shape = SHAPE
) -> float:
    exact = [run_exactly(made, schema, shape.frame(rows)) for rows in (first, second)]
    units = np.array([each.unit for each in made.coordinates])
    answers = [(made.coordinate_steps(each.parts).astype(float) * units[:, None]).T for each in exact]
    drawn = [releases(made, each, DRAWS) for each in exact]
    classes = np.zeros(len(units), dtype=np.int64)
    for share in made.shares:
        classes[list(share.places)] = share.reach.classes or 0
    across = any(share.reach.across for share in made.shares)
    looked_at = [statistics(each, *answers, units, classes, across=across) for each in drawn]
    return certified_epsilon(*looked_at, delta=delta)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("sql", "relation", "first", "second", "options"), [each[1:] for each in AUDITS], ids=[each[0] for each in AUDITS]
)
@pytest.mark.parametrize(
    "epsilon", [1, pytest.param(0.5, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_neighbours_cannot_be_told_apart_better_than_claimed(
    sql: str, relation: str, first: list[Row], second: list[Row], options: dict[str, Any], epsilon: float
):
    schema = SHAPE.schema()
    made = calibrated(schema, sql, relation, epsilon=epsilon, **options)
    found = audited(made, schema, first, second)
    assert made.cost.epsilon == pytest.approx(epsilon)
    assert made.cost.delta == 0
    assert found <= epsilon
    power = 0.3 if epsilon != 1 or options else 0.8  # where epsilon is split, the best event is a rare one
    assert found >= power * epsilon, "the audit has no power"


PEOPLE = Shape(
    {"u": "int64", "g": "str"},
    {"unit": "u", "max_groups": 4, "max_rows_per_group": 1, "keys": {"g": list("abcd")}},
)


def test_a_person_of_many_groups_is_in_one_draw_for_all():
    """A person in every group, or in none that others see, beside nobody."""
    made = calibrated(PEOPLE.schema(), "SELECT g, COUNT(*) FROM t GROUP BY g", U)
    assert made.shares[0].reach.across is not None
    for groups in ("abcd", "a"):
        found = audited(made, PEOPLE.schema(), [], [(1, each) for each in groups], shape=PEOPLE)
        assert 0.8 < found <= 1


def test_one_of_two_groups_tells_no_more_than_one_count():
    shape = Shape({"b": "bool"}, {"nullable": {"b": False}})
    made = calibrated(shape.schema(), "SELECT b, COUNT(*) FROM t GROUP BY b", B)
    assert made.shares[0].noise.dimension == 1
    assert 0.6 < audited(made, shape.schema(), [(True,), (True,)], [(True,), (False,)], shape=shape) <= 1


def test_gaussian_noise_keeps_epsilon_and_delta():
    schema = SHAPE.schema()
    for sql in ("SELECT COUNT(*) FROM t", "SELECT COUNT(*), AVG(x), SUM(p) FROM t"):
        made = calibrated(schema, sql, U, epsilon=1, delta=0.01, mechanism="gaussian")
        found = audited(made, schema, [], [HIGH], delta=0.01)
        assert 0 < found <= 1


@pytest.mark.parametrize("options", [{"mechanism": "laplace"}, {"mechanism": "gaussian"}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("epsilon", [0.5, 2])
@pytest.mark.parametrize("outputs", ["COUNT(*)", "AVG(x)", "COUNT(*), SUM(p), COUNT(n)"])
def test_a_group_of_one_is_shown_with_probability_delta_at_most(
    outputs: str, epsilon: float, relation: str, options: dict[str, Any]
):
    shape = Shape(SHAPE.dtypes, {"bounds": SHAPE.declared["bounds"]})
    schema = shape.schema()
    delta = 0.02
    made = calibrated(
        schema, f"SELECT g, {outputs} FROM t GROUP BY g", relation, epsilon=epsilon, delta=delta, **options
    )
    exact = run_exactly(made, schema, shape.frame([HIGH]))
    shown = int((~np.isnan(releases(made, exact, DRAWS)[:, 0, 0])).sum())
    shares = (2 if relation == B else 1) * (2 if options["mechanism"] == "gaussian" else 1)
    low, high = clopper_pearson(shown, DRAWS, CONFIDENCE)
    assert low <= delta / shares
    assert made.cost.delta == pytest.approx(delta)
    if outputs != "COUNT(*)":  # a fine lattice: the threshold gives away next to nothing
        assert high >= (0.5 if options["mechanism"] == "gaussian" else 0.9) * delta / shares


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("groups", ["a", "ab", "abcd"])
def test_groups_of_one_person_are_shown_by_weights_with_probability_delta_at_most(groups: str, relation: str):
    """Any of all groups of a person: one in few weighs more in each."""
    shape = Shape(PEOPLE.dtypes, {key: said for key, said in PEOPLE.declared.items() if key != "keys"})
    delta = 0.02
    made = calibrated(shape.schema(), "SELECT g FROM t GROUP BY g", relation, epsilon=1, delta=delta)
    selection = made.selection
    assert isinstance(selection, GroupsByWeights)
    exact = run_exactly(made, shape.schema(), shape.frame([(1, each) for each in groups]))
    weights = exact.parts[selection.part][:, None]
    noise = selection.noise.draw(DRAWS * len(groups)).reshape(len(groups), DRAWS)
    shown = int((weights + noise >= selection.height).any(axis=0).sum())
    own = made.cost.delta - selection.noise.loss(selection.reach).delta
    low, _ = clopper_pearson(shown, DRAWS, CONFIDENCE)
    assert low <= selection.delta / selection.sides <= own


@pytest.mark.parametrize("relation", [U, B])
def test_weights_of_a_person_in_groups_of_others_tell_no_more_than_is_claimed(relation: str):
    """The noisy sums of groups that others are in too: of a person in one, in two or in all, in the first or the last
    of them."""
    shape = Shape(PEOPLE.dtypes, {key: said for key, said in PEOPLE.declared.items() if key != "keys"})
    schema, others = shape.schema(), [(n, each) for n in range(2, 9) for each in "abcd"]
    made = calibrated(schema, "SELECT g FROM t GROUP BY g", relation, epsilon=1, delta=0.02)
    selection = made.selection
    assert isinstance(selection, GroupsByWeights)
    loss = selection.noise.loss(selection.reach)
    for groups in ("a", "ab", "abcd"):
        second = "d" if relation == B else ""
        sums = [
            run_exactly(made, schema, shape.frame([*others, *((1, each) for each in own)])).parts[selection.part]
            for own in (groups, second)
        ]
        drawn = [each[:, None] + selection.noise.draw(4 * DRAWS).reshape(4, DRAWS) for each in sums]
        nearer = [(sums[0] - sums[1]).astype(float) @ each.astype(float) for each in drawn]
        found = certified_epsilon(nearer[0][None], nearer[1][None], delta=float(loss.delta))
        assert found <= 1


def test_counts_as_a_caller_sees_them():
    """Through `dpsql.query` alone: 10,000 public groups of one row, or of none, are as many releases of one count."""
    one = pd.DataFrame({"k": np.arange(10_000)})
    sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    draws = []
    for frame in (one.iloc[:0], one):
        runs = [dpsql.query(frame, sql, epsilon=1, bounds={"k": (0, 9_999)}).df for _ in range(10)]
        assert all((run["k"] == one["k"]).all() for run in runs)
        draws.append(np.concatenate([run["n"].to_numpy(dtype=float) for run in runs])[None])
    found = certified_epsilon(*draws)
    assert 0.8 <= found <= 1


def test_averages_and_counts_as_a_caller_sees_them():
    one = pd.DataFrame({"k": np.arange(10_000), "x": 3.0})
    sql = "SELECT k, AVG(x) AS m, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"
    for options in ({}, {"strategy": "split"}):
        draws = []
        for frame in (one.iloc[:0], one):
            facts: dict[str, Any] = {"bounds": {"k": (0, 9_999), "x": (-1, 3)}}
            runs = [dpsql.query(frame, sql, epsilon=1, **facts, **options).df for _ in range(5)]
            joined = pd.concat(runs)
            n, s = joined["n"].to_numpy(dtype=float), joined["s"].to_numpy(dtype=float)
            centred = (s - n) / 2  # of (1, 1) for the row, (0, 0) without it
            nearer = np.maximum(abs(n), abs(centred)) - np.maximum(abs(n - 1), abs(centred - 1))
            taxi = abs(n) + abs(centred) - abs(n - 1) - abs(centred - 1)
            draws.append(np.stack([n, s, nearer, taxi, joined["m"].fillna(9).to_numpy(dtype=float)]))
        assert 0.45 <= certified_epsilon(*draws) <= 1  # found over 24 runs: .83 to .87, and .53 to .59 for shares apart


def test_the_certificate_finds_noise_that_is_too_small():
    """Laplace noise of scale 0.75 where 1 is claimed: epsilon is 1.33."""
    rng = np.random.default_rng(1)
    one, other = rng.laplace(1, 0.75, (1, DRAWS)), rng.laplace(0, 0.75, (1, DRAWS))
    assert certified_epsilon(one, other) > 1.2
