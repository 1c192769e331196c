"""Releases of one statement that differ in WHERE alone are made as one: the same exact integers, no more error, one
charge that is theirs together, and neighbours that it is worth no more than that."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.answer.program import ProgramExplanation, ProgramResult
from dpsql.core.classes import law_of
from dpsql.core.loss import Allowance
from dpsql.errors import DPSQLError, InternalError
from dpsql.executors.base import executor_of
from dpsql.plan import merged as merging_of_plans
from dpsql.release.expected_error import error_variance
from dpsql.release.quiet import quiet
from dpsql.release.release import Release
from dpsql.session import merging, prepare
from dpsql.session.program import PreparedProgram
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


def explained(asked: dpsql.Session, sql: str, **how: Any) -> ProgramExplanation:
    found = asked.explain(sql, **how)
    assert isinstance(found, ProgramExplanation)
    return found


# One release, as if FILTER had been written.


def test_a_share_of_the_total_is_one_release_at_the_whole_epsilon():
    asked = session()
    for sql in (SHARE, GAP, BY_CITY):
        told = explained(asked, sql, epsilon=1)
        assert told.merged == (2,), sql
        assert [each.epsilon for each in [told.cost]] == [1]
        assert "Merged     2 releases that differ in WHERE alone" in str(told)
        assert told.to_dict()["steps"][0]["merged"] == 2
    assert asked.quote(SHARE, epsilon=1).cost.epsilon == 1
    by_rho = explained(asked, SHARE, rho=0.5)
    assert by_rho.merged == (2,)
    assert by_rho.cost.rho <= Fraction(1, 2)


def test_it_is_charged_once_and_given_again_for_nothing():
    asked = session()
    first = asked.query(SHARE, epsilon=1)
    assert isinstance(first, ProgramResult)
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
    assert explained(asked, sql, epsilon=4).merged == (2,)
    result = asked.query(sql, epsilon=4)
    assert isinstance(result, ProgramResult)
    assert [len([*each]) for each in result.answers] == [2, 3]
    sizes = PEOPLE[PEOPLE["sex"] == "F"]["city"].value_counts()
    assert {city for city, _, _ in result} <= set(sizes.index)
    means = PEOPLE[PEOPLE["sex"] == "M"].groupby("city")["pay"].mean()
    assert all(abs(mean - means[city]) < 9 and abs(n - sizes[city]) < 12 for city, n, mean in result)


def test_others_of_the_statement_keep_their_shares():
    asked = session()
    sql = f"SELECT q.share, (SELECT MEDIAN(pay) FROM people) AS m FROM ({SHARE}) q"
    told = explained(asked, sql, epsilon=Fraction(3, 4))
    assert sorted(told.merged) == [1, 2]
    shares = {each: release.cost.epsilon for each, release in zip(told.merged, told.releases, strict=True)}
    assert shares == {1: Fraction(1, 4), 2: Fraction(1, 2)}
    beside = "(SELECT COUNT(*) FROM orders WHERE month = 1) / (SELECT COUNT(*) FROM orders) AS k"
    both = explained(asked, f"SELECT {beside}, ({SHARE}) AS share", epsilon=1)
    assert sorted(both.merged) == [1, 1, 2], "of orders a person's rows are limited behind WHERE"


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
        assert explained(asked, sql, **(how or {"epsilon": 1})).merged == (1, 1), why
    hidden = dpsql.Session({"people": dpsql.Table(PEOPLE)}, budget=dpsql.Budget(9, 1e-3))
    assert explained(hidden, BY_CITY, epsilon=1, delta=1e-6).merged == (1, 1)
    parted = dpsql.Table(PEOPLE, keys={"sex": ["F", "M"]}, partition="sex")
    two = SHARE.replace("FROM people)", "FROM people WHERE sex = 'M')")
    told = dpsql.Session({"people": parted}, budget=dpsql.Budget(9))
    assert explained(told, two, epsilon=1).merged == (1, 1)


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
    parts = [f"SELECT {key} AS g, {rng.choice(AGGREGATES)} FROM t{where()} GROUP BY 1" for _ in range(many)]
    others = " ".join(f"JOIN ({each}) b{i} USING (g)" for i, each in enumerate(parts[1:]))
    return f"SELECT COUNT(*) FROM ({parts[0]}) a {others}"


def of_rows(rng: random.Random) -> World:
    world = World.random(rng)
    return World(
        False, False, world.relation, {"bounds": {"x": (0, 4), "y": (-2.0, 3.0)}, "keys": {"k": ["a", "b", "c"]}}
    )


def prepared(asked: dpsql.Session, sql: str) -> PreparedProgram | None:
    try:
        found = asked._prepare(sql, (1.0, None, None, None, None), params=None)
    except InternalError:
        raise
    except DPSQLError:
        return None
    return found if isinstance(found, PreparedProgram) else None


def exact(asked: dpsql.Session, made: PreparedProgram) -> list[list[tuple[Any, ...]]]:
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


def check_merged(seeds: range, pairs: int = 2) -> int:
    """Statements of random worlds: how many have merged releases. Exact answers are those of releases apart; no
    aggregate has more error; the charge is no more; neighbours are worth no more than that."""
    found = 0
    for seed in seeds:
        rng = random.Random(seed)
        world, sql = of_rows(rng), statement(rng)
        data = people(rng)
        asked = opened(world, data)
        made = prepared(asked, sql)
        if made is None or max(made.merged) == 1:
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
        for one, other in zip(made.finishes, plain.finishes, strict=True):
            check_no_worse(one, other, sql)
        for each in made.releases:
            check_total(each, sql)
            for one, other in world.pairs(rng, pairs):
                here, there = (integers(opened(world, side), each.exact, KEY) for side in (one, other))
                check_neighbours(each, here, there, f"{sql}\n{world}\n{one}\n{other}")
    return found


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
        place, plain = (getattr(each.expr, "index", -1) - len(one.query.plan.keys) for each in (output, before))
        if place >= 0:
            errors = [variance(made, at) for made, at in ((one, place), (other, plain))]
            assert errors[0] <= errors[1] * 1.01, f"{output.name} of {where}: {errors}"


def variance(made: Release, place: int) -> float:
    spread = {at: law_of(share.noise, share.places, at).spread for share in made.shares for at in share.places}
    return error_variance(made.estimates[place], made.lattice, spread)


def test_random_statements_are_merged_rightly():
    assert check_merged(range(24)) > 8


@pytest.mark.slow
def test_many_random_statements_are_merged_rightly():
    assert check_merged(range(1_000, 2_200), pairs=8) > 400


# Lies.


def _where_is_forgotten(patch: Patch) -> None:
    patch.setattr(merging_of_plans, "_where", lambda each, _terms: each)


def _twice_is_paid(patch: Patch) -> None:
    patch.setattr(merging, "_sum", lambda one, other: Allowance(2 * (one.pure + other.pure)))


def _worse_is_taken(patch: Patch) -> None:
    patch.setattr(merging, "_no_worse", lambda *_: True)
    patch.setattr(merging, "_sum", lambda one, _other: one)


def _limits_are_forgotten(patch: Patch) -> None:
    patch.setattr(merging, "_is_plain", lambda _release: True)


def check_random() -> None:
    assert check_merged(range(7), pairs=0) > 1


LIES: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (_where_is_forgotten, check_random),
    (_twice_is_paid, check_random),
    (_worse_is_taken, check_random),
    (_limits_are_forgotten, test_what_stays_apart),
]


def test_lies_are_seen():
    for lie, check in LIES:
        assert_caught(lie, check)
