"""A wrong design is a worse answer or a refusal, never a leak.

Designs say which integers are asked for, and nothing of what a person adds to them. Here each kind of design is made
wrong: other factors, other parts, coordinates called what neighbours have in common. What is released is then paid for
all the same, for all neighbours of small tables, or refused before anything is charged.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import CountRows
from dpsql.core.sensitivity.norms import sensitivity_of
from dpsql.errors import DPSQLError, InternalError
from dpsql.release import calibrate, exact_plans
from dpsql.release import epsilon_shares as split
from dpsql.release.design import choose, coordinates, encodings, grids, subcounts
from dpsql.release.levels import estimates as levels
from dpsql.release.parts import Coordinate
from dpsql.session import prepare
from tests.core import levels_lies, random_queries, statistics_lies
from tests.core.checks import B, U, calibrated
from tests.core.unit_checks import G22, R2, R3, Question, people_stay_apart
from tests.lies import Patch

ROOT = Path(__file__).parents[2]

# Wrong designs


def _terms(patch: Patch, change: Callable[[str, Any], Any]) -> None:
    """Other combinations of parts, by the names of what they are."""
    honest = coordinates.Builder._add

    def add(self: Any, called: Any, terms: Any, unit: float) -> int:
        return honest(self, called, change(str(called), terms), unit)

    patch.setattr(coordinates.Builder, "_add", add)


def centre_sums_far_off(patch: Patch) -> None:
    """2 q - 5 N in place of 2 q - N."""
    _terms(patch, lambda _, terms: terms if len(terms) == 1 else (terms[0], (terms[1][0], 5 * terms[1][1])))


def take_squares_as_they_are(patch: Patch) -> None:
    """2 u^2 in place of 2 u^2 - 1."""
    _terms(patch, lambda name, terms: terms[:1] if name.startswith("sum of squares") else terms)


def count_three_times(patch: Patch) -> None:
    _terms(patch, lambda _, terms: tuple((part, 3 * factor) for part, factor in terms))


def add_the_count_to_everything(patch: Patch) -> None:
    """Coordinates of rows and of units with both kinds of parts."""
    honest = coordinates.Builder._add

    def add(self: Any, called: Any, terms: Any, unit: float) -> int:
        return honest(self, called, (*terms, (self._part(CountRows(None)), 1)), unit)

    patch.setattr(coordinates.Builder, "_add", add)


def add_the_count_of_all_to_that_of_some(patch: Patch) -> None:
    """2 c + N in place of 2 c - N."""
    honest = subcounts._less_half

    def less_half(each: Any, count: Any) -> Coordinate:
        found = honest(each, count)
        return replace(found, terms=(found.terms[0], (found.terms[1][0], 1)))

    patch.setattr(subcounts, "_less_half", less_half)


def give_a_share_twice(patch: Patch) -> None:
    """The first share stands in for the second too, and with it in one coordinate."""
    honest = encodings._Design.lattice

    def lattice(self: Any) -> Any:
        found = honest(self)
        if found is None:
            return None
        first, second, *more = found.coordinates
        return replace(
            found, coordinates=(replace(first, terms=((0, 1), (1, 2))), replace(second, terms=((0, 3),)), *more)
        )

    patch.setattr(encodings._Design, "lattice", lattice)


def make_the_lattice_finer_than_is_said(patch: Patch) -> None:
    """Steps of noise are so many of what is summed."""
    honest = Coordinate.times

    def times(self: Any, factor: int) -> Coordinate:
        found = honest(self, factor)
        return replace(found, terms=tuple((part, 7 * each) for part, each in found.terms))

    patch.setattr(Coordinate, "times", times)


def exchange_parts_when_batches_are_joined(patch: Patch) -> None:
    honest = split.joined

    def joined(*args: Any) -> Any:
        found = honest(*args)
        last = len(found.parts) - 1
        swapped = [
            replace(each, terms=tuple((last - part, factor) for part, factor in each.terms))
            for each in found.coordinates
        ]
        return replace(found, coordinates=tuple(swapped))

    patch.setattr(calibrate, "joined", joined)


def hold_rows_further_out(patch: Patch) -> None:
    """Rows of a unit's total may add more than their share of its ends."""
    honest = grids.Fineness.of_totals

    def of_totals(self: Any, *args: Any) -> Any:
        found = honest(self, *args)
        if found is None:
            return None
        total, step = found
        return replace(total, of=replace(total.of, least=-7 * total.of.most, most=7 * total.of.most)), step

    patch.setattr(grids.Fineness, "of_totals", of_totals)


def prefer_the_worst_design(patch: Patch) -> None:
    honest = choose.error_of
    patch.setattr(choose, "error_of", lambda *args: -honest(*args))


rule, of_people = statistics_lies.rule, statistics_lies.of_people
BY_ROWS_AND_UNITS = "SELECT k, COUNT(*), SUM(y), COUNT(DISTINCT pid) FROM e GROUP BY k"
OWN_EPSILONS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) "
    "COUNT(*, epsilon => 0.25), SUM(y, epsilon => 0.5), AVG(y) FROM e"
)


def asks(sql: str, limits: Any = None, **more: Any) -> Callable[[], None]:
    return people_stay_apart(Question(sql, limits or {}, **more))


WRONG: list[tuple[Callable[[Patch], None], Callable[[], Any]]] = [
    (centre_sums_far_off, rule("SELECT AVG(x), COUNT(*) FROM t")),
    (centre_sums_far_off, rule("SELECT b, AVG(x) FROM t GROUP BY b", B)),
    (centre_sums_far_off, asks("SELECT COUNT(*), AVG(y) FROM e", R2)),
    (centre_sums_far_off, rule("SELECT COUNT(*), SUM(y) FROM t")),
    (centre_sums_far_off, asks("SELECT COUNT(*), SUM(y), AVG(y + 1) FROM e", R2)),
    (centre_sums_far_off, asks("SELECT COUNT(*), SUM(ABS(y)) FROM e", R2)),
    (hold_rows_further_out, asks("SELECT COUNT(*), SUM(ABS(y)) FROM e", R2)),
    (hold_rows_further_out, asks("SELECT k, COUNT(*), SUM(ABS(y)) FROM e GROUP BY k", G22)),
    (count_three_times, rule("SELECT VAR_POP(x), COUNT(*) FROM t")),
    (count_three_times, asks(BY_ROWS_AND_UNITS, R3)),
    (take_squares_as_they_are, rule("SELECT VAR_POP(x) FROM t")),
    (take_squares_as_they_are, rule("SELECT VAR_POP(x) FROM t", B)),
    (add_the_count_to_everything, asks(BY_ROWS_AND_UNITS, R3)),
    (add_the_count_of_all_to_that_of_some, rule("SELECT COUNT(*), COUNT(y), COUNT_IF(x > 0) FROM t")),
    (add_the_count_of_all_to_that_of_some, asks("SELECT COUNT(*), COUNT_IF(y > 1), AVG(y) FROM e", R2)),
    (give_a_share_twice, rule("SELECT CORR(x, p) FROM t")),
    (give_a_share_twice, rule("SELECT CORR(x, p) FROM t", B)),
    (make_the_lattice_finer_than_is_said, asks(BY_ROWS_AND_UNITS, R3)),
    (make_the_lattice_finer_than_is_said, rule("SELECT AVG(x), SUM(p), COUNT(*) FROM t")),
    (make_the_lattice_finer_than_is_said, levels_lies.of_rows("b, COUNT(*), SUM(p) FROM t GROUP BY ROLLUP (b)")),
    (prefer_the_worst_design, rule("SELECT COUNT(*), COUNT(y), COUNT_IF(x > 0) FROM t")),
    (exchange_parts_when_batches_are_joined, asks(OWN_EPSILONS)),
]


def _released(check: Callable[[], Any], wrong: Callable[[Patch], None] = lambda _: None) -> set[Any]:
    """The combinations of parts that get noise while a check runs."""
    found = set()

    def seen(honest: Any) -> Any:
        def reach(parts: Any, terms: Any, *rest: Any) -> Any:
            found.add((tuple(parts), tuple(terms)))
            return honest(parts, terms, *rest)

        return reach

    prepare._cache.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            wrong(patch)
            patch.setattr(calibrate, "reach_of", seen(calibrate.reach_of))
            patch.setattr(levels, "reach_of_level", seen(levels.reach_of_level))
            check()
    finally:
        prepare._cache.clear()
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("wrong", "check"), WRONG, ids=lambda each: getattr(each, "__name__", ""))
def test_a_wrong_design_is_paid_for(wrong: Callable[[Patch], None], check: Callable[[], Any]) -> None:
    """The check of all neighbours holds, of other combinations than the honest ones."""
    assert _released(check, wrong) != _released(check)


# Refusals


FRAME = pd.DataFrame({"x": [1, 2, 3, 4], "k": ["a", "b", "a", "b"], "pid": [1, 1, 2, 2]})
FACTS: dict[str, Any] = {"bounds": {"x": (0, 9)}, "keys": {"k": ["a", "b"]}}
ASKED = {
    "a count": "SELECT COUNT(*) FROM t",
    "an average": "SELECT AVG(x) FROM t",
    "some beside all": "SELECT COUNT(*), COUNT_IF(x > 2), COUNT_IF(x > 3) FROM t",
    "spreads": "SELECT VAR_POP(x) FROM t",
    "a level": "SELECT COUNT(*), SUM(x) FROM t GROUP BY ROLLUP(k)",
    "people": "SELECT COUNT(DISTINCT pid), SUM(x) FROM t GROUP BY k",
}


def call_all_quiet(patch: Patch) -> None:
    """Coordinates are said to be what neighbours have in common."""
    honest = coordinates.Builder.build

    def build(self: Any) -> Any:
        found = honest(self)
        return replace(found, coordinates=tuple(replace(each, noisy=False) for each in found.coordinates))

    patch.setattr(coordinates.Builder, "build", build)


def forget_the_limits(patch: Patch) -> None:
    honest = calibrate.ExactPlan
    for room in (calibrate, exact_plans):
        patch.setattr(room, "ExactPlan", lambda *args, **more: replace(honest(*args, **more), limits=None))
    patch.setattr(
        calibrate, "replace", lambda each, **more: replace(each, **{k: v for k, v in more.items() if k != "limits"})
    )


@pytest.mark.parametrize("lie", [call_all_quiet, forget_the_limits], ids=lambda each: each.__name__)
@pytest.mark.parametrize("sql", ASKED.values(), ids=ASKED)
def test_what_a_person_moves_is_not_released_as_it_is(sql: str, lie: Callable[[Patch], None]) -> None:
    """Neither without noise nor without the limits; nothing is charged."""
    limits: dict[str, Any] = {"unit": "pid", "max_rows": 3, "max_groups": 1}
    session = dpsql.Session({"t": dpsql.Table(FRAME, **FACTS, **limits)}, budget=dpsql.Budget(1))
    prepare._cache.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            lie(patch)
            with pytest.raises(InternalError):
                session.query(sql, epsilon=0.5)
    finally:
        prepare._cache.clear()
    assert session.spent.epsilon == 0
    session.query(sql, epsilon=0.5)


# What is paid for


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(6))
def test_a_vector_is_paid_by_no_more_than_its_coordinates(part: int) -> None:
    """Together they move no further than each by itself, one after the other; in the cube norm no further than the one
    that moves furthest, where all are of rows, or all of people."""
    asked = random_queries.Queries(random.Random(23_112_026 + part))
    met = 0
    for _ in range(50):
        query = asked.query()
        for relation in (U, B):
            try:
                made = calibrated(random_queries.SHAPE.schema(**query.more), query.sql, relation, **query.options)
            except DPSQLError:
                continue
            for share in made.shares:
                if share.reach.across is not None and "all" in share.reach.across.kinds:
                    continue  # what is in all groups has no sensitivity of its own in each
                terms = [made.coordinates[place].terms for place in share.places]
                alone = [sensitivity_of(made.lattice.parts, each, made.analysis) for each in terms]
                assert (share.reach.l1 or 0) <= sum(each.l1 for each in alone)
                assert share.reach.l2_squared <= sum(each.l2**2 for each in alone) * (1 + 1e-9)
                assert share.reach.cube_sensitivity == max(each.l1 for each in alone)
                met += 1
    assert met > 30


# What release/ may make

MADE = {"Contribution", "Sensitivity", "Reach", "Change", "Cost", "ContributionBound"}
DERIVED = {
    "cube_sensitivity", "l1", "l2_squared", "cube", "of_each", "in_a_group", "rho", "hidden", "exact_scale", "variance",
    "enforced", "private", "public_count", "known", "neighbours", "sensitivity_of_each",
}  # fmt: skip
ALLOWED = {  # where, what, and why it decides nothing of a reach or a cost
    ("calibrate.py", "rho="): "a rho that was asked for is charged whole, where less would do",
    ("plan.py", "rho="): "what a search for bounds leaves of what may be spent",
    (
        "levels.py",
        "Cost",
    ): "written into the keys of questions, as they have always had it; what is charged is summed up",
}


def _made_in(path: Path) -> set[tuple[str, str]]:
    """Calls that make such a thing: by its class, by a constructor of the class, or of another one by `replace`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name.split(".")[0] in MADE:
            found.add((path.name, name))
        if name.rpartition(".")[2] == "replace":
            found |= {(path.name, f"{each.arg}=") for each in node.keywords if each.arg in DERIVED}
    return found


def test_release_makes_no_sensitivity_by_itself() -> None:
    found = set().union(*(_made_in(path) for path in (ROOT / "dpsql" / "release").rglob("*.py")))
    assert found == set(ALLOWED)


def test_a_design_that_states_a_sensitivity_is_seen(tmp_path: Path) -> None:
    lies = tmp_path / "lies.py"
    lies.write_text("a = Reach(1, 2, 3)\nb = replace(a, l1=1)\nc = Cost.of(1)\nd = x.replace('l1', '')\n")
    assert _made_in(lies) == {("lies.py", "Reach"), ("lies.py", "l1="), ("lies.py", "Cost.of")}
