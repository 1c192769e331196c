"""A release with noise for all groups together that is put together wrongly is refused before it is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import AllUnits, CountRows
from dpsql.core.mechanisms.group_vectors import ALL, EACH, EITHER, GroupVectorLaplace
from dpsql.core.mechanisms.noise import CubeLaplace
from dpsql.core.unit import ContributionBound
from dpsql.errors import InternalError
from dpsql.release import calibrate
from dpsql.release.release import Release
from tests.core.test_paid import released, told
from tests.lies import Patch

GROUPS = 6
PERSON, GROUP = np.nonzero(np.random.default_rng(1).random((30, GROUPS)) < 0.5)
FRAME = pd.DataFrame({"pid": PERSON, "g": GROUP, "x": PERSON % 10, "b": PERSON % 2 == 0})
PEOPLE: dict[str, Any] = {"unit": "pid", "max_groups": GROUPS, "max_rows_per_group": 1}
FACTS: dict[str, Any] = {"keys": {"g": list(range(GROUPS))}, "bounds": {"x": (0, 9)}, "nullable": {"b": False}}
ASKED: dict[str, tuple[str, dict[str, Any], str]] = {
    "counts": ("SELECT g, COUNT(*) FROM t GROUP BY g", PEOPLE, "unbounded"),
    "sums": ("SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g", PEOPLE, "unbounded"),
    "changed people": ("SELECT g, COUNT(*) FROM t GROUP BY g", PEOPLE, "bounded"),
    "two groups": ("SELECT b, COUNT(*) FROM t GROUP BY b", {}, "bounded"),
}
AROUND = ("counts", "sums")


def assert_refused(lie: Callable[[Patch], None], name: str) -> None:
    sql, declared, neighbours = ASKED[name]
    table = {"t": dpsql.Table(FRAME, **FACTS, **declared)}
    honest, asked = (dpsql.Session(table, budget=dpsql.Budget(10), neighbours=neighbours) for _ in range(2))
    honest.query(sql, epsilon=1)
    with told(lie), pytest.raises(InternalError):
        asked.query(sql, epsilon=1)
    assert asked.spent.epsilon == 0


def shares(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Of the share, something else than was calibrated."""

    def lie(patch: Patch) -> None:
        honest = calibrate.Share
        patch.setattr(calibrate, "Share", lambda *args, **more: change(honest(*args, **more)))

    return lie


@pytest.mark.parametrize("name", ASKED)
def test_noise_is_paid_by_what_the_plan_says(name: str) -> None:
    def halved(each: Any) -> Any:
        return replace(each, noise=replace(each.noise, exact_scale=each.noise.exact_scale / 2))

    assert_refused(shares(halved), name)


@pytest.mark.parametrize("name", ["counts", "sums", "changed people"])
def test_a_reach_that_is_stated_is_derived_anew(name: str) -> None:
    def lie(patch: Patch) -> None:
        honest = calibrate.reach_across

        def less(*args: Any) -> Any:
            found = honest(*args)
            assert found.across is not None
            return replace(found, across=replace(found.across, largest=max(1, found.across.largest // 2)))

        patch.setattr(calibrate, "reach_across", less)

    assert_refused(lie, name)


@pytest.mark.parametrize("name", ASKED)
def test_what_is_measured_is_what_was_priced(name: str) -> None:
    def finer(release: Release) -> dict[str, Any]:
        return {"lattice": replace(release.lattice, coordinates=tuple(each.times(2) for each in release.coordinates))}

    assert_refused(released(finer), name)


@pytest.mark.parametrize("name", AROUND)
def test_people_are_one_number_and_groups_are_not(name: str) -> None:
    """A group's own count would have the noise of all, or people's number several."""
    for kinds in ((ALL, ALL), (EACH, EACH), (ALL, EACH), (EITHER, ALL)):
        filled = kinds if name == "counts" else (EACH, *kinds)
        assert_refused(shares(lambda each, kinds=filled: replace(each, noise=replace(each.noise, kinds=kinds))), name)


def test_groups_that_do_not_add_up_do_not_follow() -> None:
    either = shares(lambda each: replace(each, noise=replace(each.noise, kinds=(EITHER,))))
    assert_refused(either, "changed people")


@pytest.mark.parametrize("name", ["counts", "sums", "changed people"])
def test_rows_beyond_the_limits_are_left_out(name: str) -> None:
    wide = ContributionBound(99, GROUPS, 99)
    assert_refused(released(lambda found: {"exact": replace(found.exact, limits=wide)}), name)
    assert_refused(released(lambda found: {"exact": replace(found.exact, limits=None, groups=None)}), name)


@pytest.mark.parametrize("name", ASKED)
def test_groups_are_public(name: str) -> None:
    assert_refused(released(lambda found: {"exact": replace(found.exact, every_cell=False)}), name)


def test_rows_that_are_left_out_are_in_neither_group() -> None:
    assert_refused(released(lambda found: {"exact": replace(found.exact, groups=1)}), "two groups")


@pytest.mark.parametrize("name", AROUND)
def test_people_are_not_measured_by_group(name: str) -> None:
    """Their number is in every group: noise that is for one does not do."""

    def by_group(each: Any) -> Any:
        return replace(each, noise=CubeLaplace(each.noise.exact_scale, len(each.places)))

    assert_refused(shares(by_group), name)


@pytest.mark.parametrize("name", AROUND)
def test_people_are_not_released_as_they_are(name: str) -> None:
    def quiet(each: Any) -> Any:
        kinds = each.noise.kinds[:-1]
        return replace(each, places=each.places[:-1], noise=replace(each.noise, kinds=kinds))

    assert_refused(shares(quiet), name)


@pytest.mark.parametrize("name", AROUND)
def test_rows_are_no_people(name: str) -> None:
    def rows(found: Release) -> dict[str, Any]:
        parts = tuple(CountRows(None) if isinstance(each, AllUnits) else each for each in found.exact.parts)
        return {"exact": replace(found.exact, parts=parts)}

    assert_refused(released(rows), name)


def test_a_law_for_all_groups_is_for_all() -> None:
    """Where a release has noise by group the law of all does not take its place."""
    sql = "SELECT g, COUNT(*) FROM t GROUP BY g"
    few = {"unit": "pid", "max_groups": 1, "max_rows_per_group": 1}
    session = dpsql.Session({"t": dpsql.Table(FRAME, **FACTS, **few)}, budget=dpsql.Budget(10))
    wrong = shares(lambda each: replace(each, noise=GroupVectorLaplace(each.noise.exact_scale, 1, kinds=(EITHER,))))
    with told(wrong), pytest.raises(InternalError):
        session.query(sql, epsilon=1)
    assert session.spent.epsilon == 0
