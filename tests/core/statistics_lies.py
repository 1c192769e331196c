"""Lies planted in what answers statistics, draws and searches, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_planted_lies` runs them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpsql.core.cost import Cost
from dpsql.core.exact import SHARE_STEPS, CountDistinct, LatticeProduct, LatticeShare
from dpsql.core.mechanisms import grants, quantiles, samplers
from dpsql.core.mechanisms import noise as mechanisms
from dpsql.core.sensitivity import norms as reach
from dpsql.core.sensitivity import nulls
from dpsql.core.sensitivity import row_contributions as sensitivity
from dpsql.core.unit import ONE_ROW, Neighbours
from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.executors.pandas.sums import accumulators, moments, points
from dpsql.executors.pandas.units import kept_rows
from dpsql.plan.expressions import Vector
from dpsql.release import calibrate as release_calibrate
from dpsql.release import choices as release_draws
from dpsql.release import plan as release_planned
from dpsql.release.bounds.auto_bounds import Search
from dpsql.release.bounds.candidates import Intervals
from dpsql.release.choices import Draw
from dpsql.schema.intervals import Interval
from dpsql.session import prepare
from dpsql.session.cache.cached_answers import Replay
from tests.core import test_draws_neighbours as draws
from tests.core import test_statistics_neighbours as statistics
from tests.core.checks import B, U
from tests.core.unit_checks import G22, R2, R3
from tests.executors.pandas import test_moments as answers
from tests.lies import Check, Lie, Patch
from tests.release import test_auto_bounds as searches

# Sensitivities of squares, products, shares and different values


def _said_of(patch: Patch, kinds: tuple[type, ...], change: Callable[[Any, tuple[int, ...]], tuple[int, ...]]) -> None:
    """Change what rows are said to add to some kinds of parts."""
    honest = reach._adds

    def adds(part: Any) -> Any:
        values, read = honest(part)
        return (change(part, values) if isinstance(part, kinds) else values), read

    patch.setattr(reach, "_adds", adds)


def halve_the_sensitivity_of_squares(patch: Patch) -> None:
    """Of 2 u^2 - 1, whatever it is made of."""
    honest = reach._blocks

    def blocks(parts: Any, coordinates: Any, analysis: Any) -> Any:
        squares = {place for place, part in enumerate(parts) if getattr(part, "first", 0) == getattr(part, "second", 1)}
        halved = [
            [(part, factor // (2 if squares & {part for part, _ in terms} else 1)) for part, factor in terms]
            for terms in coordinates
        ]
        return honest(parts, halved, analysis)

    patch.setattr(reach, "_blocks", blocks)


def halve_the_sensitivity_of_products(patch: Patch) -> None:
    _said_of(
        patch,
        (LatticeProduct,),
        lambda part, ends: ends if part.first == part.second else tuple(each // 2 for each in ends),
    )


def take_products_for_positive(patch: Patch) -> None:
    """u v in [0, 1]: half the reach of a row that changes."""
    _said_of(patch, (LatticeProduct,), lambda part, _: (0, part.most))


def count_different_values_once_a_unit(patch: Patch) -> None:
    """As if a unit had one row."""
    _said_of(patch, (CountDistinct,), lambda *_: (0, 0))


def count_null_as_a_different_value(patch: Patch) -> None:
    def add(self: Any, start: int, stop: int, groups: Any) -> None:
        codes = self._read(start, stop)
        kept = (groups < self._cells) & (codes >= 0)
        self._found.append((codes[kept], groups[kept]))

    patch.setattr(points.DistinctPart, "add", add)


def round_shares_to_the_nearest(patch: Patch) -> None:
    """Each by itself: they add up to more than a row."""

    def shares(steps: Any, degree: int) -> Any:
        y = steps / SHARE_STEPS
        weights = {0: (1 + 0 * y,), 1: (1 - y, y), 2: ((1 - y) ** 2, 2 * y * (1 - y), y**2)}[degree]
        return [np.rint(each * SHARE_STEPS).astype(np.int64) for each in weights]

    patch.setattr(moments, "_shares", shares)


def round_shares_up(patch: Patch) -> None:
    """The shares of the second value, all but the last, which takes the rest of nothing."""
    honest = moments.share_steps

    def steps(part: Any, first: Vector, second: Vector) -> Any:
        return [each + 1 for each in honest(part, first, second)]

    patch.setattr(moments, "share_steps", steps)


def _shares_reach(patch: Patch, change: Callable[[Any, Any], Any]) -> None:
    """Change what is derived of shares."""
    honest = release_calibrate.reach_of

    def reach_of(parts: Any, terms: Any, analysis: Any, classes: tuple[int, ...] = ()) -> Any:
        found = honest(parts, terms, analysis, classes)
        return change(found, analysis) if any(isinstance(part, LatticeShare) for part in parts) else found

    patch.setattr(release_calibrate, "reach_of", reach_of)


def share_a_row_that_comes_twice_once(patch: Patch) -> None:
    """The vector of shares is said to move by one row, whatever a unit has."""
    _shares_reach(patch, lambda found, _: replace(found, l1=SHARE_STEPS))


def forget_that_a_changed_row_leaves_its_shares(patch: Patch) -> None:
    def change(found: Any, analysis: Any) -> Any:
        return replace(found, l1=found.l1 // 2) if analysis.neighbours is Neighbours.BOUNDED else found

    _shares_reach(patch, change)


def give_every_coordinate_the_whole_epsilon(patch: Patch) -> None:
    """As if any vector were one of shares."""

    def calibrate(reach: Any, epsilon: Fraction) -> mechanisms.CubeLaplace:
        scale = Fraction(reach.cube_sensitivity) / epsilon / reach.dimension
        return mechanisms.CubeLaplace(scale, reach.dimension)

    patch.setattr(mechanisms.CubeLaplace, "calibrate", staticmethod(calibrate))


def draw_five_percent_too_little(patch: Patch) -> None:
    for name in ("cube_laplace", "discrete_laplace"):
        honest = getattr(samplers, name)
        patch.setattr(samplers, name, lambda scale, *rest, honest=honest: honest(scale * Fraction(95, 100), *rest))


# Rows and NULL


def count_pairs_by_their_first(patch: Patch) -> None:
    """Rows with NULL in the second argument are counted."""
    patch.setattr(sensitivity, "_where", lambda value, _other: value)


def forget_that_the_second_may_be_null(patch: Patch) -> None:
    """The number of pairs is taken for public where the first argument is never NULL."""
    honest = nulls._guarded

    def guarded(expr: Any) -> Any:
        found = honest(expr)
        return None if found is None else (found[0], found[0])

    patch.setattr(nulls, "_guarded", guarded)


def leave_products_unclipped(patch: Patch) -> None:
    def steps(part: Any, *vectors: Vector) -> Any:
        sides = (part.first, part.second)
        left, right = (
            2 * ((vector.values.astype(float) - float(of.lower)) / (float(of.upper) - float(of.lower))) - 1
            for of, vector in zip(sides, vectors, strict=True)
        )
        return np.nan_to_num(np.rint(left * right * part.most), posinf=0, neginf=0).astype(np.int64)

    patch.setattr(accumulators, "moment_steps", steps)
    patch.setattr(columns, "_enforce", lambda vector, _column: vector)


def count_all_rows_of_a_unit(patch: Patch) -> None:
    """No unit is held to its limits."""

    def choose(_plan: Any, rows: Any, codes: Any, *_: Any) -> kept_rows.UnitRows:
        return kept_rows.UnitRows(rows.units.numbers(), codes, codes)

    patch.setattr(kept_rows, "choose_rows", choose)


def leave_out_rows_by_their_places(patch: Patch) -> None:
    honest = kept_rows.RowHashes.__call__

    def hashes(self: Any, asked: Any) -> Any:
        return asked.astype(np.uint64), honest(self, asked)[1]

    patch.setattr(kept_rows.RowHashes, "__call__", hashes)


# Draws


def double_the_rate_of_draws(patch: Patch) -> None:
    honest = Draw.rate.fget  # type: ignore[attr-defined]
    patch.setattr(Draw, "rate", property(lambda self: 2 * honest(self)))


def _drawn_as(patch: Patch, **lie: Any) -> None:
    honest = Draw.draw
    patch.setattr(Draw, "draw", lambda self, counts: honest(replace(self, **lie), counts))


def draw_as_if_each_unit_had_one_row(patch: Patch) -> None:
    _drawn_as(patch, rows=1)


def draw_as_if_rows_were_added_only(patch: Patch) -> None:
    _drawn_as(patch, bounded=False)


def count_values_as_if_rows_were_added_only(patch: Patch) -> None:
    _noise_for(patch, lambda analysis: replace(analysis, neighbours=Neighbours.UNBOUNDED))


def count_values_as_if_each_unit_had_one_row(patch: Patch) -> None:
    _noise_for(patch, lambda analysis: replace(analysis, bounds=replace(analysis.bounds, rows=ONE_ROW, units=ONE_ROW)))


def _noise_for(patch: Patch, change: Callable[[Any], Any]) -> None:
    honest = release_draws.reach_of_counts
    patch.setattr(release_draws, "reach_of_counts", lambda analysis: honest(change(analysis)))


def draw_as_if_no_row_changed_its_group(patch: Patch) -> None:
    _drawn_as(patch, one_group=True)


def give_every_value_of_the_top_the_whole_epsilon(patch: Patch) -> None:
    honest = Draw.rate.fget  # type: ignore[attr-defined]
    patch.setattr(Draw, "rate", property(lambda self: honest(self) * len(self.places)))


def give_every_level_the_whole_epsilon(patch: Patch) -> None:
    honest = quantiles.whole_tree
    patch.setattr(quantiles, "whole_tree", lambda qs, tree: _all_of_it(honest(qs, tree)))


def _all_of_it(tree: quantiles.Tree | None) -> quantiles.Tree | None:
    return tree and quantiles.Tree(tree.place, Fraction(1), _all_of_it(tree.below), _all_of_it(tree.above))


def score_ranks_by_the_number_of_rows(patch: Patch) -> None:
    """A quantile's target moves with n, and its spread is taken for that of a count."""
    patch.setattr(quantiles, "rank_spread", lambda *_: Fraction(1, 2))


def draw_permute_and_flip_for_the_exponential(patch: Patch) -> None:
    """At a quarter of its rho."""
    honest = release_draws.draws_of

    def made(*args: Any, **more: Any) -> Any:
        found, *rest = honest(*args, **more)
        return tuple(replace(each, mechanism="permute_and_flip") for each in found), *rest

    for module in _holding("draws_of"):
        patch.setattr(module, "draws_of", made)


def _holding(name: str) -> list[Any]:
    """The modules of the release that have a name."""
    from dpsql.release import release

    found = [release]
    try:
        from dpsql.release import calibrate as release_calibrate  # type: ignore[attr-defined]
    except ImportError:
        pass
    else:
        found.append(release_calibrate)
    return [module for module in found if hasattr(module, name)]


def pay_draws_by_epsilon_squared_over_16(patch: Patch) -> None:
    """Half the rho of an exponential mechanism."""
    honest = grants.root_below
    patch.setattr(grants, "root_below", lambda square: honest(2 * square))


def draw_for_the_groups_as_they_came(patch: Patch) -> None:
    """Not for those that are shown: hidden ones push them aside."""
    honest = Draw.chosen
    patch.setattr(Draw, "chosen", lambda self, grid, shown: honest(self, grid, np.arange(len(shown))))


def count_the_rows_that_are_there(patch: Patch) -> None:
    """Only values that occur can be chosen."""
    honest = release_draws.gaps_of

    def gaps(counts: Any) -> Any:
        return np.where(counts > 0, honest(counts), 10**6)

    patch.setattr(release_draws, "gaps_of", gaps)


def leave_the_cost_of_draws_out(patch: Patch) -> None:
    _planned(
        patch,
        lambda made: replace(
            made, cost=replace(made.cost, epsilon=_less(made.cost, [draw.cost for draw in made.draws]))
        ),
    )


# Searches


def _less(cost: Cost, parts: list[Cost]) -> Fraction | None:
    return None if cost.epsilon is None else cost.epsilon - sum((part.epsilon or 0 for part in parts), Fraction(0))


def _planned(patch: Patch, change: Callable[[Any], Any]) -> None:
    honest = prepare.planned
    patch.setattr(prepare, "planned", lambda *args, **more: change(honest(*args, **more)))


def leave_the_cost_of_the_search_out(patch: Patch) -> None:
    _planned(
        patch,
        lambda made: (
            made
            if not made.provisional
            else replace(made, cost=replace(made.cost, epsilon=_less(made.cost, [made.searches.cost])))
        ),
    )


def plan_with_all_that_was_asked_for_after_a_search(patch: Patch) -> None:
    """The rest of epsilon is not reduced by what the search costs, which is charged to nobody."""
    patch.setattr(release_planned, "_rest", lambda allowed: allowed)
    leave_the_cost_of_the_search_out(patch)


def _searching(patch: Patch, **lie: Any) -> None:
    honest = Search.rate.fget
    patch.setattr(Search, "rate", property(lambda self: honest(replace(self, **lie))))


def search_as_if_each_unit_had_one_row(patch: Patch) -> None:
    _searching(patch, rows=1)


def search_as_if_rows_were_added_only(patch: Patch) -> None:
    _searching(patch, bounded=False)


def give_every_column_the_whole_of_the_search(patch: Patch) -> None:
    honest = Search.rate.fget
    patch.setattr(Search, "rate", property(lambda self: 2 * honest(self)))


def count_both_sides_at_once(patch: Patch) -> None:
    """Rows below and rows above are scores one after the other, where a row may lie on either side."""
    honest = Intervals.runs

    def runs(self: Any, placed: Any, length: int) -> Any:
        found = honest(self, placed, length)
        return None if found is None else replace(found, scores=2 * found.scores)

    patch.setattr(Intervals, "runs", runs)


def _weighing(patch: Patch, change: Callable[[Any, int], Any]) -> None:
    """What is weighed, changed by how many rows there are."""
    honest = Search.weighed
    patch.setattr(Search, "weighed", lambda self, grid: change(honest(self, grid), int(grid.counts.sum())))


def choose_among_what_is_there(patch: Patch) -> None:
    """No free interval without rows: the list is read from the data."""

    def change(found: Any, rows: int) -> Any:
        named = len(found.gaps) - found.kinds.shape[1]
        apart = np.append(np.zeros(named, dtype=bool), found.kinds[3] == rows)
        return replace(found, gaps=found.gaps + 10**9 * apart)

    _weighing(patch, change)


def search_at_zero_twice(patch: Patch) -> None:
    """Penalties that depend on the number of rows."""
    _weighing(patch, lambda found, rows: replace(found, gaps=found.gaps * (1 + rows)))


def forget_what_was_answered(patch: Patch) -> None:
    patch.setattr(Replay, "recall", lambda *_: None)


def search_anew_for_an_answer_that_is_kept(patch: Patch) -> None:
    """The bounds of a replayed answer are not those that it was made with."""
    honest = Replay.recall

    def recall(self: Any, question: Any, release: Any) -> Any:
        found = honest(self, question, release)
        return found if found is None else replace(found, bounds=tuple(Interval(0, 1) for _ in found.bounds))

    patch.setattr(Replay, "recall", recall)


# What catches them


def forgetting(run: Callable[[], Any]) -> Check:
    """A check out of nothing that is remembered."""

    def check() -> None:
        _forget()
        try:
            run()
        finally:
            _forget()

    return check


def _forget() -> None:
    for held in (
        draws.law_of,
        draws.renyis,
        searches.laws_of,
        searches.law_of,
        searches.executor_of,
        statistics.executor_of,
    ):
        held.cache_clear()
    prepare._cache.clear()
    statistics.KEPT.clear()


def rule(sql: str, relation: str = U, **how: Any) -> Check:
    return forgetting(lambda: statistics.check_query(sql, relation, universe=statistics.TIGHT, **how))


def of_people(sql: str, limits: dict[str, int]) -> Check:
    from tests.core import unit_checks

    def run() -> None:
        statistics.check_people(sql, limits, {}, unit_checks.databases_of(unit_checks.INTEGERS, 1, 3))

    return forgetting(run)


def drawing(sql: str, relation: str = U, **how: Any) -> Check:
    return forgetting(lambda: draws.check_draws(sql, relation, **how))


def searching(sql: str, relation: str = U, **how: Any) -> Check:
    return forgetting(lambda: searches.check_search(sql, relation, **how))


def replaying() -> None:
    with tempfile.TemporaryDirectory() as folder:
        searches.check_replay(Path(folder))


SPLIT: dict[str, Any] = {"strategy": "split"}
REFUSED: tuple[Lie, ...] = (give_every_coordinate_the_whole_epsilon, pay_draws_by_epsilon_squared_over_16)
"""When the law is made: it is worth more than it is granted."""
TWICE = "(SELECT * FROM t UNION ALL SELECT * FROM t)"
LIES: list[tuple[Lie, Check]] = [
    (halve_the_sensitivity_of_squares, rule("SELECT VAR_POP(x) FROM t")),
    (halve_the_sensitivity_of_squares, rule("SELECT b, STDDEV(p) FROM t GROUP BY b", B)),
    (halve_the_sensitivity_of_products, rule("SELECT COVAR_POP(x, p) FROM t", **SPLIT)),
    (take_products_for_positive, rule("SELECT COVAR_POP(x, p) FROM t", B, **SPLIT)),
    (count_different_values_once_a_unit, rule(
        "SELECT COUNT(DISTINCT s) FROM (SELECT s FROM t UNION ALL SELECT g FROM t)")),
    (count_different_values_once_a_unit, of_people("SELECT COUNT(DISTINCT y) FROM e", R3)),
    (count_null_as_a_different_value, forgetting(lambda: [
        answers.check_integers(sql, answers.rows_at_random(40)) for sql in answers.QUERIES if "DISTINCT" in sql])),
    (round_shares_to_the_nearest, forgetting(lambda: answers.test_every_row_is_divided_to_the_last_step(
        "SELECT CORR(x, p) FROM t", 9))),
    (round_shares_up, rule("SELECT CORR(x, p) FROM t")),
    (share_a_row_that_comes_twice_once, rule(f"SELECT CORR(x, p) FROM {TWICE}")),
    (forget_that_a_changed_row_leaves_its_shares, rule("SELECT CORR(x, p) FROM t", B)),
    (give_every_coordinate_the_whole_epsilon, rule("SELECT VAR_POP(x) FROM t")),
    (draw_five_percent_too_little, forgetting(statistics.check_noise_of_statistics)),
    (count_pairs_by_their_first, forgetting(answers.check_answers_of_statistics)),
    (forget_that_the_second_may_be_null, forgetting(lambda: statistics.check_query(
        "SELECT COVAR_POP(x, n) FROM t", B, **SPLIT))),
    (leave_products_unclipped, forgetting(lambda: statistics.check_query("SELECT COVAR_POP(x, p) FROM t", U, **SPLIT))),
    (count_all_rows_of_a_unit, of_people("SELECT VAR_POP(y), STDDEV(k) FROM e", R2)),
    (count_all_rows_of_a_unit, forgetting(draws.check_unit_of_many_rows)),
    (count_all_rows_of_a_unit, forgetting(searches.check_a_unit_of_many_rows)),
    (leave_out_rows_by_their_places, of_people("SELECT CORR(y, k) FROM e", R2)),
    (leave_out_rows_by_their_places, forgetting(draws.test_order_of_rows_does_not_matter)),
    (double_the_rate_of_draws, drawing("SELECT MODE(k) FROM t")),
    (double_the_rate_of_draws, drawing("SELECT MIN(i) FROM t", rho=0.5)),
    (draw_as_if_each_unit_had_one_row, forgetting(draws.check_unit_of_many_rows)),
    (draw_as_if_each_unit_had_one_row, forgetting(lambda: draws.check_people(
        "SELECT y, MODE(k) FROM e GROUP BY y", G22, {}))),
    (draw_as_if_rows_were_added_only, drawing("SELECT MODE(i) FROM t", B)),
    (draw_as_if_rows_were_added_only, drawing("SELECT b, MEDIAN(i) FROM t GROUP BY b", B)),
    (draw_as_if_no_row_changed_its_group, drawing("SELECT b, QUANTILE_CONT(i, 0) FROM t GROUP BY b", B, epsilon=8)),
    (give_every_value_of_the_top_the_whole_epsilon, drawing("SELECT APPROX_TOP_K(i, 2) FROM t", most=3, rho=0.5)),
    (count_values_as_if_rows_were_added_only, drawing("SELECT APPROX_TOP_K(i, 2) FROM t", B)),
    (count_values_as_if_rows_were_added_only, drawing("SELECT APPROX_TOP_K(i, 3) FROM t", B, rho=0.5)),
    (count_values_as_if_each_unit_had_one_row, forgetting(lambda: draws.check_people(
        "SELECT APPROX_TOP_K(k, 2) FROM e", R3, {}))),
    (give_every_level_the_whole_epsilon, drawing("SELECT QUANTILE_CONT(i, 0), QUANTILE_CONT(i, 1) FROM t", B)),
    (score_ranks_by_the_number_of_rows, drawing("SELECT QUANTILE_CONT(i, 0) FROM t")),
    (draw_permute_and_flip_for_the_exponential, drawing("SELECT MODE(k) FROM t", rho=0.5)),
    (pay_draws_by_epsilon_squared_over_16, drawing("SELECT MODE(k) FROM t", rho=0.02)),
    (draw_for_the_groups_as_they_came, forgetting(draws.check_hidden_groups)),
    (count_the_rows_that_are_there, drawing("SELECT MODE(k) FROM t")),
    (leave_the_cost_of_draws_out, forgetting(draws.check_costs_of_releases)),
    (leave_the_cost_of_the_search_out, searching("SELECT SUM(x) FROM t")),
    (plan_with_all_that_was_asked_for_after_a_search, searching("SELECT SUM(x) FROM t")),
    (search_as_if_each_unit_had_one_row, forgetting(searches.check_a_unit_of_many_rows)),
    (search_as_if_rows_were_added_only, searching("SELECT SUM(x) FROM t", B)),
    (give_every_column_the_whole_of_the_search, searching("SELECT SUM(x), SUM(n) FROM t")),
    (count_both_sides_at_once, searching("SELECT SUM(x) FROM t")),
    (choose_among_what_is_there, searching("SELECT SUM(x) FROM t")),
    (search_at_zero_twice, searching("SELECT SUM(n) FROM t")),
    (forget_what_was_answered, forgetting(replaying)),
    (search_anew_for_an_answer_that_is_kept, forgetting(replaying)),
]  # fmt: skip
