"""FULL JOIN of people's rows: neighbours, whole people at a time, and lies about it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.sensitivity.stability import DECLARED, stability
from dpsql.plan.nodes import Branch, Source, Union
from dpsql.sql.rewrite import full_joins
from tests.core import unit_checks
from tests.core.test_stability_rules import PEOPLE, VISITS, per_unit
from tests.core.unit_checks import R1, R3, Question
from tests.lies import Patch, assert_caught
from tests.test_planted_lies import _say_of_rows

SEED = 20_261_127
SIDES = {
    "e": ("e", ("y", "k")),
    "p": ("p", ("x",)),
    "n": ("(SELECT pid, COUNT(*) AS n, MAX(y) AS m FROM e GROUP BY pid)", ("n", "m")),
    "f": ("(SELECT pid, y, k FROM e QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY y, k) = 1)", ("y", "k")),
    "j": ("(e JOIN i USING (eid))", ("y", "z")),
}


def statement(rng: random.Random) -> str:
    (one, ones), (other, others) = (SIDES[rng.choice(list(SIDES))] for _ in range(2))
    on = ["a.pid = b.pid"]
    on += rng.choice([[], [], [f"a.{rng.choice(ones)} = b.{rng.choice(others)}"]])
    on += rng.choice([[], [f"a.{rng.choice(ones)} > 0"], [f"b.{rng.choice(others)} <= 1"]])
    values = [f"CLAMP(a.{rng.choice(ones)}, -2, 3)", f"CLAMP(b.{rng.choice(others)}, 0, 4)"]
    source = f"{one} AS a FULL JOIN {other} AS b ON {' AND '.join(on)}"
    if len(on) == 1 and rng.random() < 0.5:
        source = f"{one} AS a FULL JOIN {other} AS b USING (pid)"
    if rng.random() < 0.3:
        person = rng.choice(["COALESCE(a.pid, b.pid)", "IFNULL(b.pid, a.pid)", "COALESCE(b.pid, a.pid, NULL)"])
        return f"SELECT AVG(CLAMP(n, 0, 3)) FROM (SELECT {person} AS u, COUNT(*) AS n FROM {source} GROUP BY u)"
    where = rng.choice(["", "", f" WHERE a.{rng.choice(ones)} IS NULL OR b.{rng.choice(others)} > 0"])
    key = rng.choice(["", "", f"CLAMP(b.{rng.choice(others)}, 0, 2) > 1"])
    listed = [*([key] if key else []), "COUNT(*)", f"COUNT({values[0]})", f"SUM({rng.choice(values)})"]
    return f"SELECT {', '.join(listed)} FROM {source}{where}{' GROUP BY ' if key else ''}{key}"


def test_full_joins_of_neighbours():
    unit_checks.check_statements(statement, SEED, 5, databases=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 11))
def test_full_joins_of_many_neighbours(part: int):
    unit_checks.check_statements(statement, SEED + part, 60, databases=4)


# Branches of which a unit has rows in one alone.


def _union(*branches: Source, alternatives: bool) -> Union:
    return Union(tuple(Branch(each, ()) for each in branches), (), alternatives)


def test_what_is_said_of_alternatives_is_not_relied_upon():
    """They add up all the same; the smaller number is what is enforced."""
    once = per_unit(VISITS, alone=True)
    for branches, most, expected in (
        ((PEOPLE, PEOPLE), None, (2, 1)),
        ((once, once), 2, (None, 1)),
        ((PEOPLE, once), None, (None, 1)),
        ((PEOPLE, VISITS), None, (None, None)),
    ):
        found = [stability(_union(*branches, alternatives=each)) for each in (False, True)]
        assert [dict(each.by_unit) for each in found] == [{DECLARED: most}] * 2
        assert tuple(each.expected for each in found) == expected


BESIDE = "SELECT COUNT(*) FROM (SELECT pid, MAX(y) AS m FROM e GROUP BY pid) AS a FULL JOIN (SELECT pid, MIN(y) AS m FROM e GROUP BY pid) AS b USING (pid, m)"  # fmt: skip # noqa: E501


def say_that_on_is_about_the_unit_alone(patch: Patch) -> None:
    patch.setattr(full_joins, "_says_the_unit", lambda _on, _sides: True)


def believe_in_alternatives(patch: Patch) -> None:
    """Of a unit's rows no more are said to be there than in one branch."""
    say_that_on_is_about_the_unit_alone(patch)

    def rule(node: Any, said: Any) -> Any:
        told = isinstance(node, Union) and node.alternatives
        return replace(said, by_unit=dict.fromkeys(said.by_unit, 1)) if told else said

    _say_of_rows(patch, rule)


def test_a_wrong_word_leaves_rows_out_and_tells_nothing(monkeypatch: pytest.MonkeyPatch):
    say_that_on_is_about_the_unit_alone(monkeypatch)
    unit_checks.people_stay_apart(Question(BESIDE, R3))()


def test_a_lie_about_them_is_caught():
    assert_caught(believe_in_alternatives, unit_checks.people_stay_apart(Question(BESIDE, R3), Question(BESIDE, R1)))
