"""Whether the moment at which an answer is seen tells of one person's rows (`timing`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.remote.serving import serving, token_for
from tests.remote.timing import (
    ALLOWED,
    HOSTILE,
    LONG,
    Observers,
    Points,
    bound,
    differs,
    of_equal_tables,
    seen_beside,
    seen_of,
    tables,
)

pytestmark = pytest.mark.xdist_group("server")
NEIGHBOURS, EQUAL, APART = ("base", "more"), ("base", "same"), ("base", "large")

HIDDEN = 1e-9
"""The delta of a question about groups that are not declared."""


@pytest.fixture(scope="module")
def observers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observers]:
    schema = tables(tmp_path_factory.mktemp("times"), many=150_000)
    token = token_for(schema, "ann", epsilon=900_000, delta=1e-4, tables="base,same,more,large")
    with serving(schema) as server:
        one = Observers(server, token)
        for pair in (NEIGHBOURS, APART):  # each table once, since the first question about it loads more
            seen_of(one, HOSTILE[0], pair, 2)
        yield one


def terms_of(question: str) -> dict[str, float]:
    return {"delta": HIDDEN} if "GROUP BY city" in question else {}


def test_neighbours_are_seen_at_the_same_points_and_tables_a_slot_apart_are_not(observers: Observers):
    """Up to three times: of a busy machine one run in 2,000 is above its bound, and a difference is there each time."""
    assert any(not differs(seen_of(observers, HOSTILE[0], NEIGHBOURS, 100)) for _ in range(3))
    assert any(differs(seen_of(observers, LONG, APART, 20)) for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("question", HOSTILE)
def test_no_hostile_question_tells_neighbours_apart_by_time(observers: Observers, question: str):
    """500 pairs; and as many of two equal tables, whose bound is no lower but for .02."""
    points, equal = seen_beside(observers, question, (*NEIGHBOURS, EQUAL[1]), 500, **terms_of(question))
    assert bound(points) < max(bound(equal), of_equal_tables(points)) + ALLOWED
    assert not differs(equal)


@pytest.mark.slow
def test_tables_a_slot_apart_are_seen_in_many_pairs_too(observers: Observers):
    assert differs(seen_of(observers, LONG, APART, 500))


def made_up(count: int, late: float, more: float, seed: int) -> Points:
    """Pairs of which either table's answer comes a point later with the chance of `late`, the first's with `more`
    besides. All observers see the same."""
    chance = np.random.default_rng((seed, 1))
    first, second = chance.random(count) < late + more, chance.random(count) < late
    return [((int(one),) * 3, (int(other),) * 3) for one, other in zip(first, second, strict=True)]


def test_what_the_statistic_sees():
    """Of pairs with a known law: the bound is above the difference; equal tables are not told apart, however much load
    there is; what is as often a point later as its load allows is."""
    quiet = made_up(100, 0, 0, 1)
    assert bound(quiet) < 0.07
    assert not differs(quiet)
    assert differs(made_up(100, 0, 1, 1))
    for seed in range(4):
        assert not differs(made_up(500, (0, 0.01, 0.3, 0.9)[seed], 0, seed))
        for late, more in ((0, 0.15), (0.1, 0.25)):
            leak = made_up(500, late, more, seed)
            assert bound(leak) > more
            assert differs(leak)
