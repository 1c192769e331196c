"""Releases of one statement that differ in WHERE alone are made as one: the same exact integers, no more error, one
charge that is theirs together, and neighbours that it is worth no more than that."""

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.accuracy import two_levels
from dpsql.accuracy.hierarchies import variances_of
from dpsql.accuracy.two_levels import share_of_groups
from dpsql.answer.multi_step import MultiStepExplanation, MultiStepResult
from dpsql.core.loss import Allowance
from dpsql.core.mechanisms.coordinate_classes import law_of
from dpsql.errors import DPSQLError, InternalError
from dpsql.executors.base import executor_of
from dpsql.plan import merged_queries as merging_of_plans
from dpsql.release import calibrate
from dpsql.release.dry_run import quiet
from dpsql.release.expected_error import error_variance
from dpsql.release.levels import estimates as levels
from dpsql.release.release import Release
from dpsql.session import prepare
from dpsql.session.multi_step import merging
from dpsql.session.prepared_query import PreparedQuery
from tests.core.brute_force import check_neighbours, check_total, integers
from tests.lies import Patch, assert_caught
from tests.session.earlier_worlds import KEY, World, frame, row
from tests.session.test_steps import PEOPLE, session

SHARE = "SELECT (SELECT COUNT(*) FROM people WHERE sex = 'F') / (SELECT COUNT(*) FROM people) AS share"
GAP = "SELECT (SELECT AVG(pay) FROM people WHERE sex = 'F') - (SELECT AVG(pay) FROM people WHERE sex = 'M') AS gap"
BY_CITY = (
    "SELECT a.city, a.n, b.n AS m FROM (SELECT city, COUNT(*) AS n FROM people WHERE age > 22 GROUP BY city) a "
    "JOIN (SELECT city, COUNT(*) AS n FROM people GROUP BY city) b USING (city)"
)


def explained(asked: dpsql.Session, sql: str, **how: Any) -> MultiStepExplanation:
    found = asked.explain(sql, **how)
    assert isinstance(found, MultiStepExplanation)
    return found


# One release, as if FILTER had been written.


def test_a_share_of_the_total_is_one_release_at_the_whole_epsilon():
    asked = session()
    for sql in (SHARE, GAP, BY_CITY):
        told = explained(asked, sql, epsilon=1)
        assert told._merges == (2,), sql
        assert [each.epsilon for each in [told._cost]] == [1]
        assert "Merged     2 releases that differ in WHERE alone" in str(told)
        assert told.to_dict()["steps"][0]["merged"] == 2
    assert asked.quote(SHARE, epsilon=1).cost.epsilon == 1
    by_rho = explained(asked, SHARE, rho=0.5)
    assert by_rho._merges == (2,)
    assert by_rho._cost.rho <= Fraction(1, 2)


def test_it_is_charged_once_and_given_again_for_nothing():
    asked = session()
    first = asked.query(SHARE, epsilon=1)
    assert isinstance(first, MultiStepResult)
    assert [each.loss.epsilon for each in first.answers] == [1, 1], "one vector of noise"
    (entry,) = asked.ledger()
    assert entry.cost.epsilon == 1
    again = asked.query(SHARE, epsilon=1)
    assert [*again] == [*first]
    assert again.replayed
    assert asked.spent.epsilon == 1
    ((low, high),) = first.intervals()[["share_low", "share_high"]].to_numpy()
    assert 0 < low < high < 1
    # The very question that FILTER asks, whose values are known by now.
    by_hand = asked.query("SELECT COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) AS n FROM people", epsilon=1)
    ((females, rows),) = by_hand
    assert asked.spent.epsilon == 1
    assert females / rows == first.item()


def test_what_a_step_does_with_its_values_is_its_own():
    asked = session()
    sql = (
        "SELECT a.city, a.n, b.avg FROM (SELECT city, COUNT(*) AS n FROM people WHERE sex = 'F' GROUP BY city "
        "HAVING COUNT(*) > 0 ORDER BY COUNT(*) DESC LIMIT 2) a JOIN (SELECT city, AVG(pay) AS avg, COUNT(*) AS n "
        "FROM people WHERE sex = 'M' GROUP BY city) b USING (city)"
    )
    assert explained(asked, sql, epsilon=4)._merges == (2,)
    result = asked.query(sql, epsilon=4)
    assert isinstance(result, MultiStepResult)
    assert [len([*each]) for each in result.answers] == [2, 3]
    sizes = PEOPLE[PEOPLE["sex"] == "F"]["city"].value_counts()
    assert {city for city, _, _ in result} <= set(sizes.index)
    means = PEOPLE[PEOPLE["sex"] == "M"].groupby("city")["pay"].mean()
    assert all(abs(mean - means[city]) < 9 and abs(n - sizes[city]) < 12 for city, n, mean in result)


def test_others_of_the_statement_keep_their_shares():
    asked = session()
    sql = f"SELECT q.share, (SELECT MEDIAN(pay) FROM people) AS m FROM ({SHARE}) q"
    told = explained(asked, sql, epsilon=Fraction(3, 4))
    assert sorted(told._merges) == [1, 2]
    shares = {each: release.cost.epsilon for each, release in zip(told._merges, told._releases, strict=True)}
    assert shares == {1: Fraction(1, 4), 2: Fraction(1, 2)}
    beside = "(SELECT COUNT(*) FROM orders WHERE month = 1) / (SELECT COUNT(*) FROM orders) AS k"
    both = explained(asked, f"SELECT {beside}, ({SHARE}) AS share", epsilon=1)
    assert sorted(both._merges) == [1, 1, 2], "of orders a person's rows are limited behind WHERE"


APART = [
    ("limits of a unit", "SELECT (SELECT COUNT(*) FROM orders WHERE month = 1) / (SELECT COUNT(*) FROM orders)", {}),
    ("the old way", SHARE, {"epsilon": 1, "strategy": "split"}),
    ("groups of WHERE", BY_CITY.replace("age > 22", "city <> 'rome'"), {"epsilon": 1}),
    ("values that are drawn", GAP.replace("AVG", "MEDIAN"), {"epsilon": 1}),
    ("other tables", SHARE.replace("COUNT(*) FROM people)", "COUNT(*) FROM orders)"), {"epsilon": 1}),
    (
        "a clause of its own",
        SHARE.replace(
            "SELECT COUNT(*) FROM people)",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) COUNT(*) FROM people)",
        ),
        {"epsilon": 1},
    ),
    (
        "one that reads the other",
        "SELECT COUNT(*) FROM people WHERE pay > (SELECT AVG(pay) FROM people)",
        {"epsilon": 1},
    ),
]


def test_what_stays_apart():
    asked = session()
    for why, sql, how in APART:
        assert explained(asked, sql, **(how or {"epsilon": 1}))._merges == (1, 1), why
    hidden = dpsql.Session({"people": dpsql.Table(PEOPLE)}, budget=dpsql.Budget(9, 1e-3))
    assert explained(hidden, BY_CITY, epsilon=1, delta=1e-6)._merges == (1, 1)
    parted = dpsql.Table(PEOPLE, keys={"sex": ["F", "M"]}, partition="sex")
    two = SHARE.replace("FROM people)", "FROM people WHERE sex = 'M')")
    told = dpsql.Session({"people": parted}, budget=dpsql.Budget(9))
    assert explained(told, two, epsilon=1)._merges == (1, 1)


# The same integers, no more error, and neighbours.

AGGREGATES = [
    "COUNT(*)",
    "SUM(x)",
    "AVG(x)",
    "COUNT(x)",
    "AVG(x), COUNT(*)",
    "VAR_POP(x)",
    "COUNT(DISTINCT x)",
    "MAX(x)",
]
CONDITIONS = ["x > 1", "x <= 2 AND k <> 'b'", "k = 'a'", "k IN ('a', 'c')", "y < 0", "x IS NULL", "x > 1 OR k = 'a'"]
KEYS = ["k", "x", "x > 1"]


def statement(rng: random.Random) -> str:
    def where() -> str:
        some = rng.sample(CONDITIONS, rng.choice([0, 1, 1, 2]))
        return f" WHERE {' AND '.join(f'({each})' for each in some)}" if some else ""

    many = rng.choice([2, 2, 3])
    if rng.random() < 0.6:
        one = [each for each in AGGREGATES if "," not in each]
        return f"SELECT {', '.join(f'(SELECT {rng.choice(one)} FROM t{where()}) AS v{i}' for i in range(many))}"
    key = rng.choice(KEYS)
    if rng.random() < 0.5:
        one = rng.choice([each for each in AGGREGATES if "," not in each])
        groups, rows = rng.choice([(where(), ""), ("", where()), ("", ""), ("", ""), [where()] * 2])
        total = f"(SELECT {rng.choice([one, one, 'COUNT(*)'])} FROM t{rows})"
        return f"SELECT {key} AS g, {one} - {total} FROM t{groups} GROUP BY 1"
    parts = [f"SELECT {key} AS g, {rng.choice(AGGREGATES)} FROM t{where()} GROUP BY 1" for _ in range(many)]
    others = " ".join(f"JOIN ({each}) b{i} USING (g)" for i, each in enumerate(parts[1:]))
    return f"SELECT COUNT(*) FROM ({parts[0]}) a {others}"


def of_rows(rng: random.Random) -> World:
    world = World.random(rng)
    return World(
        False, False, world.relation, {"bounds": {"x": (0, 4), "y": (-2.0, 3.0)}, "keys": {"k": ["a", "b", "c"]}}
    )


def prepared(asked: dpsql.Session, sql: str) -> PreparedQuery | None:
    try:
        found = asked._prepare(sql, (1.0, None, None, None, None), params=None)
    except InternalError:
        raise
    except DPSQLError:
        return None
    return None if found.postprocess is None else found


def exact(asked: dpsql.Session, made: PreparedQuery) -> list[list[tuple[Any, ...]]]:
    """The answers of a statement's steps without noise."""
    executor = executor_of(asked._stores, asked._engine)
    released = {
        place: quiet(each).privatise(executor.execute(each.exact, KEY)) for place, each in enumerate(made.releases)
    }
    return [[*each] for each in made.answers(released)]


def people(rng: random.Random) -> pd.DataFrame:
    return frame([row(rng, who) for who in range(rng.choice([0, 1, 9, 40]))])


def opened(world: World, data: pd.DataFrame) -> dpsql.Session:
    return dpsql.Session(
        {"t": dpsql.Table(data, **world.facts)}, budget=dpsql.Budget(10**6, 1e-3), neighbours=world.relation
    )


def check_merged(seeds: range, pairs: int = 2) -> tuple[int, int]:
    """Statements of random worlds: how many have merged releases, and how many releases of theirs are levels. Exact
    answers are those of releases apart; no aggregate has more error; the charge is no more; neighbours are worth no
    more than that."""
    found = levels = 0
    for seed in seeds:
        rng = random.Random(seed)
        world, sql = of_rows(rng), statement(rng)
        data = people(rng)
        asked = opened(world, data)
        made = prepared(asked, sql)
        if made is None or max(made.postprocess.merged) == 1:
            continue
        found += 1
        prepare._cache.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merging, "_fit", lambda *_: False)
            plain = prepared(asked, sql)
        prepare._cache.clear()
        assert plain is not None, sql
        assert (made.cost.epsilon or 0) <= (plain.cost.epsilon or 0), sql
        assert close(exact(asked, made), exact(asked, plain)), f"{sql}\n{world}\n{data}"
        for one, other in zip(made.postprocess.finishes, plain.postprocess.finishes, strict=True):
            check_no_worse(one, other, sql)
            levels += one.query.plan.apart
        for each in made.releases:
            check_total(each, sql)
            for one, other in world.pairs(rng, pairs):
                here, there = (integers(opened(world, side), each.exact, KEY) for side in (one, other))
                check_neighbours(each, here, there, f"{sql}\n{world}\n{one}\n{other}")
    return found, levels


def close(one: list[list[tuple[Any, ...]]], other: list[list[tuple[Any, ...]]]) -> bool:
    """Whole numbers are the same; averages are of integers on a lattice each."""
    cells = [[cell for rows in each for cells in rows for cell in cells] for each in (one, other)]
    return len(cells[0]) == len(cells[1]) and all(
        abs(a - b) < 1e-6 if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(*cells, strict=True)
    )


def check_no_worse(one: Release, other: Release, where: str) -> None:
    """Of each aggregate that a step reads; from the laws and the estimates of both."""
    for output, before in zip(one.query.finish.outputs, other.query.finish.outputs, strict=True):
        place = getattr(output.expr, "index", -1) - len(one.query.plan.keys)
        plain = getattr(before.expr, "index", -1) - len(other.query.plan.keys)
        if place >= 0:
            level = tuple(range(len(other.query.plan.keys))) if one.query.plan.apart else None
            errors = [variance(one, place, level), variance(other, plain)]
            assert errors[0] <= errors[1] * 1.01, f"{output.name} of {where}: {errors}"


def variance(made: Release, place: int, level: tuple[int, ...] | None = None) -> float:
    made = made if level is None else made.at_level(level)
    spread = {at: law_of(share.noise, share.places, at).spread for share in made.shares for at in share.places}
    return error_variance(made.estimates[place], made.lattice, spread)


def test_random_statements_are_merged_rightly():
    found, of_levels = check_merged(range(36))
    assert found > 9
    assert of_levels > 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_200, 60))
def test_many_random_statements_are_merged_rightly(first: int):
    assert check_merged(range(first, first + 60), pairs=8)[0] > 12


# Groups and their total.

PART = "SELECT sex, COUNT(*) / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY sex"
BESIDE = "SELECT city, AVG(pay) - (SELECT AVG(pay) FROM people) AS gap FROM people WHERE age > 22 GROUP BY city"


def test_groups_and_their_total_are_two_levels():
    asked = session()
    for sql in (PART, BESIDE.replace("FROM people) AS", "FROM people WHERE age > 22) AS")):
        told = explained(asked, sql, epsilon=1)
        assert told._merges == (2,), sql
        assert told._cost.epsilon == 1
        assert "2 releases of groups and of all rows: none has more error so" in str(told)
        answer = asked.query(sql, epsilon=1)
        assert isinstance(answer, MultiStepResult)
        assert np.isfinite(answer.intervals().iloc[:, 1:].to_numpy(dtype=float)).all()
        for each in answer.answers:
            assert np.isfinite(each.intervals().filter(regex="_(low|high)$").to_numpy(dtype=float)).all()
    groups, total = asked.query(PART, epsilon=1).answers
    assert [kind.kind for kind in (*groups.df.dtypes[1:], *total.df.dtypes)] == ["i", "i"], "counts are whole numbers"


def test_rows_that_no_list_has_are_in_the_total_and_in_no_group():
    data = pd.DataFrame({"k": ["a"] * 40 + ["b"] * 30 + ["zz"] * 20 + [None] * 10, "sex": ["F", "M"] * 50})
    table = dpsql.Table(data, keys={"k": ["a", "b"]}, nullable={"k": False})
    asked = dpsql.Session({"t": table}, budget=dpsql.Budget(10**6))
    sql = "SELECT k, COUNT(*) AS n, (SELECT COUNT(*) FROM t) AS every FROM t GROUP BY k"
    made = prepared(asked, sql)
    assert made is not None
    assert made.postprocess.merged == (2,)
    groups, total = exact(asked, made)
    assert total == [(100,)]
    assert sorted(groups) == [("a", 50), ("b", 30)], "NULL is the first listed key where there is none"


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_neither_level_has_more_noise_than_at_a_half(power: int, ratio: float):
    """Of the shares that are taken and of least squares by itself, over tables of a few cells."""
    for groups in (*range(1, 30), 100, 5_000):
        part = share_of_groups(groups, ratio, power)
        assert Fraction(1, 2) <= part <= 1
        by_formula = two_levels.variances(groups, ratio, power, float(part))
        assert max(by_formula) <= 1 + 1e-9
        cell = ratio / float(part) ** power
        measured = {(0,): cell} if part == 1 else {(0,): cell, (): 1 / (1 - float(part)) ** power}
        by_squares = variances_of(measured, [groups], [(0,), ()])
        found = by_squares[0,] / ratio / 2**power, by_squares[()] / 2**power
        assert found == pytest.approx(by_formula)


# Lies.


def _where_is_forgotten(patch: Patch) -> None:
    patch.setattr(merging_of_plans, "_where", lambda each, _terms: each)


def _twice_is_paid(patch: Patch) -> None:
    patch.setattr(merging, "_sum", lambda one, other: Allowance(2 * (one.pure + other.pure)))


def _worse_is_taken(patch: Patch) -> None:
    patch.setattr(merging, "_no_worse", lambda *_: True)
    patch.setattr(merging, "_sum", lambda one, _other: one)


def _limits_are_forgotten(patch: Patch) -> None:
    patch.setattr(merging, "_is_plain", lambda _release, **_words: True)


def check_random() -> None:
    assert check_merged(range(7), pairs=0)[0] > 1


def _the_rest_is_in_no_total(patch: Patch) -> None:
    patch.setattr(merging_of_plans, "_with_the_rest", lambda key: key)


def _each_level_has_it_all(patch: Patch) -> None:
    """Both levels are measured as if there were no other."""
    honest = levels.levels_of

    def levels_of(plan: Any, *args: Any, **more: Any) -> Any:
        made = honest(plan, *args, **more)
        first = made.measured[0]
        return replace(made, measured=(first, replace(first, keys=(), reach=first.reach))) if plan.apart else made

    patch.setattr(calibrate, "levels_of", levels_of)


def check_levels() -> None:
    """What two levels are worth together, beside what is charged."""
    prepare._cache.clear()
    made = prepared(session(), PART)
    assert made is not None
    (release,) = made.releases
    worth = sum((each.noise.loss(each.reach).epsilon or 0) for each in release.levels.measured)
    assert worth <= (release.cost.epsilon or 0) <= 1


LIES: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (_where_is_forgotten, check_random),
    (_twice_is_paid, check_random),
    (_worse_is_taken, check_random),
    (_limits_are_forgotten, test_what_stays_apart),
    (_the_rest_is_in_no_total, test_rows_that_no_list_has_are_in_the_total_and_in_no_group),
    (_each_level_has_it_all, check_levels),
]


def test_lies_are_seen():
    for lie, check in LIES:
        assert_caught(lie, check)
