"""The whole language, exhaustively on small tables: no exact answer moves further than its release declares, no row
changes what another one adds, and what is said of expressions is true at every row."""

from __future__ import annotations

import random
import warnings

import pytest

from dpsql.errors import DPSQLError
from tests.core import checks, language
from tests.core.checks import B, U, calibrated, distances, facts_hold, rows_add_up
from tests.core.language import PEOPLE, UNIVERSE, Asked
from tests.measured import height_of

SEED = 20_260_214


@pytest.mark.thinned(8)
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("asked", language.every_query(), ids=str)
def test_every_kind_of_query(asked: Asked, relation: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distances(PEOPLE, asked.sql, UNIVERSE, relation, most=1, options=asked.options, more=asked.more)
        schema = PEOPLE.schema(**asked.more)
        made = calibrated(schema, asked.sql, relation, **asked.options)
        facts_hold(made, schema, PEOPLE.frame(UNIVERSE))
        rows_add_up(made, schema, PEOPLE, list(UNIVERSE) * 9)


MECHANISMS = [{"strategy": "split"}, {"mechanism": "gaussian", "delta": 1e-6}, {"epsilon": 50, "delta": 1e-6}]


@pytest.mark.thinned(8)
@pytest.mark.parametrize("how", MECHANISMS, ids=str)
@pytest.mark.parametrize("asked", language.WHOLE, ids=str)
def test_both_strategies_and_mechanisms(asked: Asked, how: dict[str, object]):
    if "THRESHOLD" in asked.sql and "mechanism" in how:
        how = {"delta": 1e-6}
    options = {**asked.options, **how}
    for relation in (U, B):
        distances(PEOPLE, asked.sql, UNIVERSE[:4], relation, most=1, options=options, more=asked.more)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("asked", language.every_query(), ids=str)
def test_every_kind_of_query_on_larger_tables(asked: Asked, relation: str):
    distances(PEOPLE, asked.sql, UNIVERSE, relation, most=3, options=asked.options, more=asked.more)


def ask_at_random(seed: int, accepted: int, most: int = 1) -> None:
    """That many accepted queries: neighbours, facts, and additivity over random rows."""
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    expressions = language.Expressions(rng)
    done = refused = 0
    while done < accepted:
        asked, relation, universe = expressions.query(), rng.choice([U, B]), language.rows(rng, 6)
        schema = PEOPLE.schema(**asked.more)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                made = calibrated(schema, asked.sql, relation, **asked.options)
        except DPSQLError:
            refused += 1
            assert refused < 4 * accepted + 100, "the generator makes too few queries that are accepted"
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            distances(PEOPLE, asked.sql, universe, relation, most=most, options=asked.options, more=asked.more)
            facts_hold(made, schema, PEOPLE.frame(language.rows(rng, 40)))
            rows_add_up(made, schema, PEOPLE, language.rows(rng, 20))
        done += 1


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(8))
def test_random_queries_of_the_whole_language(part: int):
    ask_at_random(SEED + part, 20)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8, 48))
def test_many_random_queries_of_the_whole_language(part: int):
    ask_at_random(SEED + part, 100, most=2)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("part", range(7))
def test_random_expressions_keep_what_is_said_of_them(part: int):
    """Many expressions at little cost: no neighbours, only facts, with and without a filter."""
    rng = random.Random(SEED + part)
    expressions = language.Expressions(rng)
    schema, frame = PEOPLE.schema(), PEOPLE.frame(language.rows(rng, 60))
    done = 0
    for _ in range(100):
        where = f" WHERE {expressions.condition()}" if rng.random() < 0.5 else ""
        sql = f"SELECT COUNT({expressions.number()}), COUNT({expressions.date()}) FROM t{where}"
        try:
            made = calibrated(schema, sql, B)
        except DPSQLError:
            continue
        facts_hold(made, schema, frame)
        done += 1
    assert done > 35


def test_the_numbers_of_public_groups_are_the_declared_ones():
    """How many groups a key shows is known from the declarations alone."""
    expected = {
        "b": 3, "i": 8, "n": 5, "i > 2": 2, "n > 2": 3, "n % 2": 3, "n IS NULL": 2, "d": 34, "EXTRACT(month FROM d)": 4,
        "b, i": 24, "CASE WHEN i > 2 THEN 'high' WHEN n < 2 THEN 'odd' END": 3, "LEAST(n, 3)": 3,
    }  # fmt: skip
    for key, groups in expected.items():
        made = calibrated(PEOPLE.schema(), f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", U)
        assert made.query.plan.public_cells == groups, key


def test_a_lowered_share_adds_up():
    checks_of_shares = [language.check_shares, language.check_options]
    for check in checks_of_shares:
        check()


def test_min_privacy_units_raise_the_threshold_by_whole_units():
    schema = PEOPLE.schema()
    taus = []
    for least in (1, 2, 5):
        text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = {least}) g, COUNT(*), SUM(i)"
        made = calibrated(schema, f"{text} FROM t GROUP BY g", U, delta=1e-6)
        assert height_of(made)
        taus.append((height_of(made), made.lattice.most_of_a_unit))
    (one, unit), (two, _), (five, _) = taus
    assert (two - one, five - one) == (unit, 4 * unit)


def test_the_order_of_rows_changes_no_integer():
    checks.check_order_of_rows()


def test_threads_and_blocks_change_no_integer():
    language.check_rows_are_counted_alone()
