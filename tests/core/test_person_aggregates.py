"""Aggregates of one person's rows that are made of windows: neighbours, whole people at a time, and lies about them."""

from __future__ import annotations

import random

import pytest

from tests.core import unit_checks
from tests.core.test_windows import window_over_everybody
from tests.core.unit_checks import R3, Question
from tests.lies import Lie, Patch, assert_caught

SEED = 20_261_124
CALLS = [
    "ARG_MIN(y, k)", "ARG_MAX(y, eid) FILTER (WHERE k > 0)", "FIRST(y ORDER BY k DESC, eid)", "LAST(k ORDER BY y)",
    "MEDIAN(y)", "QUANTILE_CONT(y, 0.9)", "QUANTILE_DISC(k, 0.3)", "MODE(y)", "MODE(k) FILTER (WHERE y > 0)",
    "BOOL_OR(y > 1)", "BOOL_AND(k > 0)",
]  # fmt: skip


def statement(rng: random.Random) -> str:
    call, key = rng.choice(CALLS), rng.choice(["", "", ", k"])
    value = "CASE WHEN w THEN 1 ELSE 0 END" if call.startswith("BOOL") else "CLAMP(w, -2, 3)"
    inner = f"SELECT pid{key}, {call} AS w, COUNT(*) AS n FROM e GROUP BY pid{key}"
    where = rng.choice(["", " WHERE w IS NOT NULL", " WHERE n > 1"])
    by = " GROUP BY k" if key else ""
    return f"SELECT {'k, ' if key else ''}COUNT(*), SUM({value}), COUNT(w) FROM ({inner}){where}{by}"


def test_aggregates_of_neighbours():
    unit_checks.check_statements(statement, SEED, 10, databases=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 11))
def test_aggregates_of_many_neighbours(part: int):
    unit_checks.check_statements(statement, SEED + part, 60, databases=4)


def forget_what_divides(patch: Patch) -> None:
    """A group of everybody's rows: the lie of the engine that forgets the unit, met through an aggregate."""
    window_over_everybody(patch)


def number_by_position(patch: Patch) -> None:
    """Of rows that are equal in the order, the one that stands first in the table."""
    from dpsql.executors.pandas.windows import window_functions as windows
    from dpsql.sql.bind.ordered_unit_aggregates import _ComposedCall

    honest = _ComposedCall._number
    patch.setattr(_ComposedCall, "_number", lambda made, order, level=0: honest(made, order[:-1], level))
    patch.setattr(windows._Work, "_by_ties", lambda _self, places, _by, _size: places)


LATEST = "SELECT SUM(CLAMP(w, -2, 3)) FROM (SELECT pid, ARG_MAX(y, k) AS w FROM e GROUP BY pid)"


@pytest.mark.parametrize("lie", [forget_what_divides, number_by_position], ids=lambda each: each.__name__)
def test_a_lie_about_them_is_caught(lie: Lie):
    assert_caught(lie, unit_checks.people_stay_apart(Question(LATEST, R3)))
