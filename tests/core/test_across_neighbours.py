"""What neighbours can differ in where noise is for all groups together."""

from __future__ import annotations

import pytest

from dpsql.core.mechanisms.group_vectors import ALL, EACH, EITHER
from tests.core import across_lies
from tests.core.across_questions import (
    AROUND,
    FOLLOWING,
    IN_NEITHER,
    ROWS_OF_TWO,
    SOMETIMES,
    check_around,
    check_blocks,
    check_following,
    check_rows_of_two,
    kinds_of,
    two_groups,
)
from tests.core.checks import B, U, calibrated
from tests.core.unit_checks import Question, asking_of
from tests.lies import Check, Lie, assert_caught


@pytest.mark.parametrize("asked", AROUND, ids=str)
def test_people_in_many_groups_are_no_further(asked: Question) -> None:
    check_around(asked)


def test_they_are_counted_around_the_number_of_people() -> None:
    """So the tests above are about it."""
    found = [kinds_of(asking_of(asked, U).made) for asked in AROUND]
    assert sum(ALL in kinds for kinds in found) >= 6
    assert all(ALL not in kinds_of(asking_of(asked, B).made) for asked in AROUND)
    assert any(kinds_of(asking_of(asked, B).made) for asked in AROUND)


def test_people_are_counted_once_for_all_groups_however_many_rows_are_held() -> None:
    check_blocks()


@pytest.mark.parametrize("sql", FOLLOWING)
def test_one_of_two_groups_follows_from_the_other(sql: str) -> None:
    check_following(sql)


def test_rows_that_may_be_in_neither_group_have_noise_in_each() -> None:
    check_rows_of_two()
    made = [calibrated(IN_NEITHER.schema(), sql, B) for sql in SOMETIMES]
    assert all(EITHER not in kinds_of(each) for each in made)


def test_only_where_rows_change() -> None:
    assert kinds_of(two_groups()) == (EITHER,)
    assert kinds_of(two_groups(U)) == ()
    assert EITHER not in kinds_of(two_groups(nullable={"q": False}))
    assert EITHER not in kinds_of(calibrated(ROWS_OF_TWO.schema(), "SELECT b, SUM(q) FROM t GROUP BY b", B))


def test_sums_beside_have_numbers_of_their_own() -> None:
    made = calibrated(ROWS_OF_TWO.schema(), FOLLOWING[3], B)
    assert kinds_of(made) == (EITHER, EACH)


@pytest.mark.parametrize(("lie", "check"), across_lies.LIES, ids=lambda each: each.__name__)
def test_lies_about_all_groups_are_caught(lie: Lie, check: Check) -> None:
    assert_caught(lie, check)
