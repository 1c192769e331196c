"""Sub-queries that name columns of the outer rows, and groups of public rows beside people's: random neighbours of
small databases, and two lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dpsql.errors import UnsupportedSQL
from dpsql.plan.nodes import Source
from dpsql.sql.bind import mark_columns as marks
from dpsql.sql.bind import unit_select
from tests.core.unit_checks import R1, R2, Question, people_stay_apart
from tests.lies import Lie, Patch, assert_caught

ASKED = (
    Question("SELECT COUNT(*) FROM p WHERE pid IN (SELECT p.pid FROM e WHERE e.pid = p.pid)", R2),
    Question("SELECT COUNT(*) FROM p WHERE city NOT IN (SELECT p.city FROM e WHERE e.pid = p.pid)", R2),
    Question("SELECT COUNT(*) FROM e WHERE k IN (SELECT e.k FROM p WHERE p.pid = e.pid)", R1),
    Question("SELECT COUNT(*) FROM e WHERE k IN (SELECT e.k FROM pub)", R2),
    Question("SELECT COUNT(*) FROM e WHERE k IN (SELECT e.eid FROM tags WHERE tags.k = e.k)", R2),
    Question("SELECT COUNT(*) FILTER (WHERE k NOT IN (SELECT e.k FROM i WHERE i.eid = e.eid)) FROM e", R2),
    Question("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM pub WHERE p.city IN (SELECT tag FROM tags))", R2),
    Question("SELECT COUNT(*) FROM e CROSS JOIN (SELECT DISTINCT tag FROM tags) q", R2),
    Question("SELECT COUNT(*) FROM t CROSS JOIN (SELECT DISTINCT tag FROM tags) q"),
    Question("SELECT q.tag, COUNT(*) FROM e CROSS JOIN (SELECT tag FROM tags GROUP BY tag) q GROUP BY q.tag", R1),
    Question("SELECT COUNT(*), SUM(y) FROM e JOIN (SELECT DISTINCT k AS c FROM tags) q ON e.k = c", R2),
)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_people_stay_apart(asked: Question):
    people_stay_apart(asked)()


def refused_by_name() -> None:
    with pytest.raises(UnsupportedSQL, match="one person's to decide"):
        people_stay_apart(Question("SELECT COUNT(*) FROM p WHERE city IN (SELECT p.city FROM e)", R2))()


def test_whether_others_have_rows_is_not_asked():
    refused_by_name()


# Lies.


def ask_whether_others_have_rows(patch: Patch) -> None:
    """A column of the outer rows is looked for on both sides, as if it said whose rows the sub-query's are."""
    patch.setattr(marks, "_of_one_unit", lambda *_: True)


def count_public_groups_once(patch: Patch) -> None:
    def most(_self: object, _source: Source) -> int:
        return 1

    patch.setattr(unit_select.UnitSelect, "_most", most)


LIES: Mapping[Lie, Callable[[], None]] = {
    count_public_groups_once: people_stay_apart(ASKED[8]),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda each: each.__name__)
def test_a_lie_is_caught(lie: Lie):
    check = LIES[lie]
    assert_caught(lie, check)


def test_a_lie_about_whose_rows_are_asked_is_caught(monkeypatch: Patch):
    ask_whether_others_have_rows(monkeypatch)
    with pytest.raises(pytest.fail.Exception):  # it is answered
        refused_by_name()
