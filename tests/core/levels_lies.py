"""Lies planted in ROLLUP, CUBE and GROUPING SETS, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_levels_neighbours` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from dpsql.core.cost import Cost
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, RoundedGaussian, SplitLaplace
from dpsql.core.sensitivity import norms as reach
from dpsql.core.unit import ContributionBound
from dpsql.release import calibrate
from dpsql.release.levels import estimates as release_levels
from dpsql.release.levels import shares as level_shares
from dpsql.release.levels.estimates import Level, LevelNoise, Levels
from dpsql.session import prepare
from tests.core.checks import B, U
from tests.core.unit_checks import G2, INTEGERS, R2, databases_of
from tests.lies import Check, Lie, Patch

# What is charged


def forget_what_a_level_costs(patch: Patch) -> None:
    """All but the last level are charged."""
    patch.setattr(Levels, "cost", property(lambda self: sum((each.cost for each in self.measured[1:]), Cost.of(_NONE))))


def charge_for_the_dearest_level(patch: Patch) -> None:
    """As if levels were about different people (parallel composition), each with the whole epsilon."""

    def dearest(self: Any) -> Cost:
        found = self.measured[0].cost
        for each in self.measured[1:]:
            found = found.join(each.cost)
        return found

    patch.setattr(Levels, "cost", property(dearest))
    _sharing(patch, lambda shares: dict.fromkeys(shares, Fraction(1)))


def give_every_level_all_of_rho(patch: Patch) -> None:
    """Noise for all of it, though the shares that are charged are right."""
    for law in (DiscreteGaussian, RoundedGaussian):
        honest = law.of_rho
        patch.setattr(law, "of_rho", staticmethod(lambda reach, rho, honest=honest: honest(reach, 2 * rho)))


_NONE = Fraction(0)


def _sharing(patch: Patch, change: Callable[[Any], Any]) -> None:
    honest = level_shares.allocation
    patch.setattr(level_shares, "allocation", lambda *args, **more: change(honest(*args, **more)))


# What noise is for


def halve_the_noise_of_coarser_levels(patch: Patch) -> None:
    """They are sums of more rows, so that they need less."""

    def made(level: Level, most: int) -> Level:
        noise: Any = level.noise
        if len(level.keys) == most or not isinstance(noise, CubeLaplace):
            return level
        return replace(level, noise=replace(noise, exact_scale=noise.exact_scale / 2))

    _levels(
        patch,
        lambda found: replace(found, measured=tuple(made(level, len(found.sizes)) for level in found.measured)),
    )


def _levels(patch: Patch, change: Callable[[Levels], Levels]) -> None:
    honest = calibrate.levels_of
    patch.setattr(calibrate, "levels_of", lambda *args, **more: change(honest(*args, **more)))


def forget_that_rows_come_together(patch: Patch) -> None:
    """One person's rows in several cells are taken to be in as many cells of each level."""

    def merged(bound: ContributionBound, cells: int, *_: int) -> ContributionBound:
        return ContributionBound(bound.rows, min(bound.groups, cells), min(bound.rows, bound.per_group))

    patch.setattr(reach, "merged", merged)


def count_one_row_of_each_person(patch: Patch) -> None:
    patch.setattr(reach, "merged", lambda *_: ContributionBound(1, 1, 1))


def forget_that_a_changed_row_leaves_its_cells(patch: Patch) -> None:
    """Half the reach of a row that goes from one cell to another."""
    honest = release_levels.reach_of_level

    def found(*args: Any) -> Any:
        whole = honest(*args)
        return replace(whole, cube_sensitivity=whole.cube_sensitivity // 2)

    patch.setattr(release_levels, "reach_of_level", found)


# What is drawn


def measure_each_level_twice(patch: Patch) -> None:
    """And take the mean: the noise of two for the price of one."""
    honest = Levels._measure
    patch.setattr(Levels, "_measure", lambda *args: (honest(*args) + honest(*args)) / 2)


def show_the_total_as_it_is(patch: Patch) -> None:
    honest = Levels._measure

    def measure(self: Any, steps: Any, level: Level) -> Any:
        if level.keys:
            return honest(self, steps, level)
        return np.asarray(honest(self, steps, replace(level, noise=_Silent(level.noise))))

    patch.setattr(Levels, "_measure", measure)


class _Silent:
    """No noise, of as many coordinates."""

    def __init__(self, noise: Any) -> None:
        self.dimension = getattr(noise, "law", noise).dimension  # in the trial of a plan zeros stand for a law

    def draw(self, cells: int) -> Any:
        return np.zeros((self.dimension, cells), dtype=np.int64)


def draw_once_for_all_cells_of_a_level(patch: Patch) -> None:
    for law in (CubeLaplace, SplitLaplace, DiscreteGaussian, RoundedGaussian):
        honest = law.draw
        patch.setattr(law, "draw", lambda self, cells, honest=honest: np.repeat(honest(self, 1), cells, axis=1))


def leave_levels_without_rows_out(patch: Patch) -> None:
    """Which levels are measured tells whether there is anybody."""
    honest = Levels.privatise

    def privatise(self: Any, steps: Any) -> Any:
        if np.any(steps):
            return honest(self, steps)
        return honest(replace(self, measured=self.measured[:1]), steps)

    patch.setattr(Levels, "privatise", privatise)


# What is made of it


def weigh_all_levels_alike(patch: Patch) -> None:
    """However many noisy cells they sum up."""
    honest = release_levels.consistent

    def consistent(noisy: Any, variances: Any, wanted: Any, **more: Any) -> Any:
        cells = {keys: float(np.prod(table.shape[1:])) for keys, table in noisy.items()}
        return honest(noisy, {keys: variance / cells[keys] for keys, variance in variances.items()}, wanted, **more)

    patch.setattr(release_levels, "consistent", consistent)


def say_that_each_level_has_the_noise_of_the_finest(patch: Patch) -> None:
    """Of the finest cells, and not of their sums."""
    honest = Levels.noise_of

    def noise_of(self: Any, keys: Any) -> LevelNoise:
        return replace(honest(self, keys), spread=honest(self, max(self.wanted, key=len)).spread)

    patch.setattr(Levels, "noise_of", noise_of)


# What catches them


def _levels_module() -> ModuleType:
    from tests.core import test_levels_neighbours  # it imports this one

    return test_levels_neighbours


def _planned_afresh(run: Callable[[ModuleType], Any]) -> Check:
    def check() -> None:
        prepare._cache.clear()
        try:
            run(_levels_module())
        finally:
            prepare._cache.clear()

    return check


def of_rows(sql: str, relation: str = U, **how: Any) -> Check:
    return _planned_afresh(lambda levels: levels.check_rows(f"SELECT {sql}", relation, **how))


def of_people(sql: str, limits: dict[str, int], **how: Any) -> Check:
    return _planned_afresh(
        lambda levels: levels.check_people(f"SELECT {sql}", limits, databases_of(INTEGERS, 3, 3), **how)
    )


def estimates(sql: str, **how: Any) -> Check:
    return _planned_afresh(lambda levels: levels.check_least_squares(f"SELECT {sql}", **how))


ROLLUP = "b, COUNT(*) FROM t GROUP BY ROLLUP (b)"
WIDE = "n, COUNT(*) FROM t GROUP BY ROLLUP (n)"
PEOPLE = "k, AVG(y) FROM e GROUP BY ROLLUP (k)"
SPLIT: dict[str, Any] = {"strategy": "split"}
GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-6}
REFUSED: tuple[Lie, ...] = (give_every_level_all_of_rho,)
"""When the noise is made: it is worth more than it is granted."""
LIES: list[tuple[Lie, Check]] = [
    (forget_what_a_level_costs, of_rows(WIDE)),
    (forget_what_a_level_costs, of_rows(ROLLUP, **SPLIT)),
    (charge_for_the_dearest_level, of_rows(WIDE)),
    (charge_for_the_dearest_level, of_rows(ROLLUP, **GAUSSIAN)),
    (give_every_level_all_of_rho, of_rows(ROLLUP, rho=0.1, mechanism="gaussian")),
    (halve_the_noise_of_coarser_levels, of_rows(WIDE)),
    (halve_the_noise_of_coarser_levels, of_rows("AVG(x) FROM t WHERE p > 22 GROUP BY CUBE (n, b)", B)),
    (forget_that_rows_come_together, of_people(PEOPLE, G2, **GAUSSIAN)),
    (count_one_row_of_each_person, of_people(PEOPLE, R2, **GAUSSIAN)),
    (count_one_row_of_each_person, of_rows("COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) GROUP BY "
        "ROLLUP (b)", **GAUSSIAN)),
    (forget_that_a_changed_row_leaves_its_cells, of_rows("b, g, COUNT(*) FROM t GROUP BY GROUPING SETS ((b), (g))", B)),
    (measure_each_level_twice, of_rows(ROLLUP, **GAUSSIAN)),
    (show_the_total_as_it_is, of_rows(WIDE)),
    (draw_once_for_all_cells_of_a_level, of_rows(ROLLUP)),
    (leave_levels_without_rows_out, of_rows(WIDE)),
    (weigh_all_levels_alike, estimates(WIDE)),
    (say_that_each_level_has_the_noise_of_the_finest, estimates(ROLLUP)),
]  # fmt: skip
