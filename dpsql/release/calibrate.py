"""Calibration of a plan and its analysis to a privacy loss. No row is read."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.cost import FREE, Cost
from dpsql.core.exact import ExactPlan
from dpsql.core.loss import Allowance
from dpsql.core.measurement import (
    ALL_SHOWN,
    Measurement,
    Share,
    costs_of,
)
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.grants import Laplace, grant
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace, reach_across
from dpsql.core.mechanisms.noise import CubeLaplace, Reach, SharedLaplace, SplitLaplace
from dpsql.core.mechanisms.staircase import Staircase, suits
from dpsql.core.sensitivity.norms import assert_limited, assert_unmoved, groups_of_a_unit, reach_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, UnknownGroups, UnsupportedSQL, as_written
from dpsql.plan.options import Options
from dpsql.plan.query import Query
from dpsql.release.choices import Family, draws_of
from dpsql.release.design.requirements import GroupRequirement
from dpsql.release.epsilon_shares import Batch, batches, joined, lattices, pairs_apart
from dpsql.release.exact_plans import exact_plan, of_public_groups
from dpsql.release.laws import Choice, crossover
from dpsql.release.levels.estimates import levels_of
from dpsql.release.parts import Estimate, Lattice
from dpsql.release.release import Release
from dpsql.release.selection.groups import GEOMETRIC, PUBLIC, Selection, selection_of, unknown_groups

STRATEGIES = ("auto", "split")
MECHANISMS = ("auto", "laplace", "gaussian")
_MUCH_LESS = 0.8
"""The ratio of variances below which a distribution that conditions (HAVING, thresholds) cannot use is worthwhile."""


def calibrate(
    query: Query,
    analysis: Analysis,
    allowed: Allowance,
    *,
    strategy: str = "auto",
    mechanism: str = "auto",
    options: Options | None = None,
) -> Release:
    """Choose lattice, noise and threshold for an allowance. Raises UnknownGroups, InvalidPrivacyParameter,
    InvalidArgument."""
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("mechanism", mechanism, MECHANISMS)
    if mechanism != "auto":
        return _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism=mechanism)
    plain = _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism=mechanism)
    noisy = plain.shares or query.plan.sets
    both = noisy and strategy == "auto" and (allowed.delta or allowed.rho is not None)
    if not both or plain.law == "gaussian":
        return plain
    if options is not None and options.group_selection_strategy not in (None, PUBLIC, GEOMETRIC):
        return plain  # the text asks for a threshold on Laplace noise
    try:
        gaussian = _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism="gaussian")
    except InvalidPrivacyParameter:  # such as noise beyond the samplers
        return plain
    at = crossover(allowed, allowed.delta / (1 + gaussian.hides))
    by_gaussian = compared(gaussian, plain, at)
    return replace(gaussian, choice=by_gaussian) if by_gaussian.better else replace(plain, choice=by_gaussian.reversed)


def compared(gaussian: Release, plain: Release, crossover: float) -> Choice:
    """Compare Gaussian with Laplace noise: the errors of the aggregates, and the groups that are hidden."""
    heights = [release.even_chance for release in (gaussian, plain)]
    hides = heights[1] / heights[0] if heights[0] and heights[1] else None
    outputs = sum(each.chosen is None for each in plain.estimates)
    return Choice("gaussian", math.exp(plain.log_error - gaussian.log_error), crossover, hides, outputs)


def _calibrate(
    query: Query, analysis: Analysis, allowed: Allowance, options: Options | None, *, strategy: str, mechanism: str
) -> Release:
    """Calibrate with one noise distribution; "auto" means Laplace."""
    chosen = selection_of(query, analysis, options, mechanism)
    gaussian = (chosen.mechanism or mechanism) == "gaussian"
    _check_asked(query, analysis, chosen, allowed, options)
    own = chosen.own_share(allowed.pure, len(analysis.measured))
    wanted = GroupRequirement.of(
        query, of_units=chosen.least is not None, public=of_public_groups(query, analysis, chosen)
    )
    parts, lattices, drawn = _dealt(analysis, chosen, allowed, own, wanted, law="gaussian" if gaussian else strategy)
    lattice = replace(joined(lattices, parts), groups_of_a_unit=groups_of_a_unit(analysis))
    assert_unmoved(lattice.parts, lattice.quiet, analysis)
    draws, grids, estimates = draws_of(analysis, query.plan, drawn, allowed, first=lattice.width)
    if draws:
        lattice = _with_chosen(lattice, parts, estimates)
    if query.plan.sets:
        return _of_levels(query, analysis, lattice, allowed, strategy=strategy, gaussian=gaussian)
    noisy = sum(map(_is_noisy, lattices))
    by_pair = gaussian and allowed.rho is None
    delta = allowed.delta / max(1, noisy * by_pair + chosen.hides)
    choosing = chosen.hides and not chosen.by_threshold
    groups = ALL_SHOWN
    if choosing:
        from dpsql.release.selection.hidden_groups import by_chance  # only hidden groups need this module

        lattice, groups = by_chance(lattice, analysis, chosen, allowed, own=own, delta=delta, mechanism=mechanism)
    exact = replace(exact_plan(query, analysis, chosen, lattice.parts), grids=grids)
    assert_limited(exact, analysis)
    if by_pair and noisy:
        _check_delta(allowed)
    dealt = tuple(zip(lattices, parts, strict=True))
    stairs = _stairs_suit(query, mechanism)
    shares = _shares(
        lattice, dealt, analysis, delta, allowed, exact=exact, strategy=strategy, gaussian=gaussian, stairs=stairs
    )
    if chosen.by_threshold:
        from dpsql.release.selection.hidden_groups import by_threshold  # imported late, as above

        lattice, groups = by_threshold(lattice, analysis, shares[0].noise, delta, chosen.least or 1)
    cost, events = costs_of((groups, *shares, *draws))  # the order of events in existing ledgers
    measurements: tuple[Measurement, ...] = (*shares, groups, *draws)
    cost = _as_asked(cost, allowed) if noisy or choosing or draws else FREE
    return Release(query, analysis, exact, lattice, measurements, strategy, cost, allowed, events)


def _check_asked(
    query: Query, analysis: Analysis, chosen: Selection, allowed: Allowance, options: Options | None
) -> None:
    """Refuse queries that the allowance's privacy measure cannot pay. Raises UnknownGroups, InvalidPrivacyParameter."""
    if chosen.hides and not allowed.delta:
        raise _delta_is_missing(query, chosen, options)
    if allowed.rho is not None and any(each.aggregation.epsilon is not None for each in analysis.measured):
        raise InvalidPrivacyParameter(
            "an aggregate has an epsilon of its own, and the query is paid by rho.",
            hint="Ask with epsilon= instead, or leave the aggregate's out.",
        )


def _check_delta(allowed: Allowance) -> None:
    if not allowed.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )


def _with_chosen(lattice: Lattice, parts: tuple[Batch, ...], chosen: dict[int, Estimate]) -> Lattice:
    """Return the lattice with the selecting aggregations among its own, in the order of the plan."""
    places = sorted(place for batch in parts for place in batch.places)
    estimates = {**chosen, **dict(zip(places, lattice.estimates, strict=True))}
    return replace(lattice, estimates=tuple(estimates[place] for place in sorted(estimates)))


def _dealt(
    analysis: Analysis,
    chosen: Selection,
    allowed: Allowance,
    own: Fraction,
    wanted: GroupRequirement,
    *,
    law: str,
    quiet: bool = False,
) -> tuple[tuple[Batch, ...], tuple[Lattice, ...], list[Family]]:
    """Divide epsilon among batches of sums and counts, with their lattices, and families of draws. With `quiet`,
    noiseless batches leave their share to the others."""
    parts = batches(
        analysis,
        allowed.rest(own) or own,
        selects=chosen.by_threshold and not own,
        by_rho=allowed.rho is not None,
        quiet=quiet,
    )
    if own and chosen.by_threshold:
        parts = (Batch((), own, selects=True), *parts)
    drawn = [Family(batch.places, batch.epsilon) for batch in parts if batch.drawn]
    parts = pairs_apart(analysis, parts, law, wanted, by_rho=allowed.rho is not None)
    parts = tuple(batch for batch in parts if not batch.drawn) or (Batch((), Fraction(1), selects=False),)
    found = lattices(analysis, parts, law, wanted)
    if drawn and not quiet and not any(map(_is_noisy, found)):
        return _dealt(analysis, chosen, allowed, own, wanted, law=law, quiet=True)
    return parts, found, drawn


def _of_levels(
    query: Query, analysis: Analysis, lattice: Lattice, allowed: Allowance, *, strategy: str, gaussian: bool
) -> Release:
    """Return a release with grouping sets: every level has separate noise."""
    if gaussian and allowed.rho is None:
        _check_delta(allowed)
    exact = ExactPlan(query.plan.input, query.plan.keys, every_cell=True, parts=lattice.parts)
    bounds = analysis.bounds
    if bounds.enforced:
        exact = replace(exact, limits=bounds.rows, groups=bounds.units.groups)
    assert_limited(exact, analysis)
    if not analysis.private or not lattice.coordinates:
        raise UnsupportedSQL("ROLLUP, CUBE and GROUPING SETS are of aggregates of people's rows.")
    # Integers rounded one by one would not add up.
    estimates = tuple(replace(each, whole=False, unrounded=each.whole) for each in lattice.estimates)
    lattice = replace(lattice, estimates=estimates)
    law = "gaussian" if gaussian else "split" if strategy == "split" else "laplace"
    levels = levels_of(query.plan, analysis, lattice, allowed, law=law, delta=allowed.delta)
    cost, events = costs_of((levels,))
    return Release(query, analysis, exact, lattice, (levels,), strategy, _as_asked(cost, allowed), allowed, events)


def _as_asked(cost: Cost, allowed: Allowance) -> Cost:
    """Charge a requested rho in full, although pure noise for it is rounded down."""
    return cost if allowed.rho is None else replace(cost, rho=max(cost.rho, allowed.rho))


def _is_noisy(lattice: Lattice) -> bool:
    return any(each.noisy for each in lattice.coordinates)


def _shares(
    whole: Lattice,
    dealt: tuple[tuple[Lattice, Batch], ...],
    analysis: Analysis,
    delta: Fraction,
    allowed: Allowance,
    *,
    exact: ExactPlan,
    strategy: str,
    gaussian: bool,
    stairs: bool,
) -> tuple[Share, ...]:
    """Return the noise of each lattice that has any. The lattices' coordinates are those of `whole`, in order. The
    sensitivity is derived from `whole`, because its coordinates are released. `stairs`: whether a single coordinate may
    have the staircase distribution."""
    shares, first = [], 0
    for lattice, part in dealt:
        places = tuple(first + place for place, each in enumerate(lattice.coordinates) if each.noisy)
        first += len(lattice.coordinates)
        if not places:
            continue
        terms = [whole.coordinates[place].terms for place in places]
        if lattice.across is not None:
            reach = reach_across(exact, terms, analysis)
        else:
            reach = reach_of(whole.parts, terms, analysis, () if gaussian else lattice.noisy_classes)
        granted = grant(allowed, None if part.epsilon == allowed.pure else part.epsilon, delta)
        if gaussian:
            paid = granted.gaussian(reach)
        elif stairs and not part.selects and lattice.across is None and _by_stairs(reach, granted.epsilon):
            paid = granted.pure(Staircase, reach)
        else:
            paid = granted.pure(_laplace(lattice, reach, strategy), reach)
        shares.append(Share(reach, paid.law, places, part.epsilon, paid.event))
    return tuple(shares)


def _stairs_suit(query: Query, mechanism: str) -> bool:
    """Return whether no distribution was requested and answers are not compared: conditional intervals of shown rows do
    not support the staircase distribution."""
    return mechanism == "auto" and not query.stages and query.finish.having is None


def _by_stairs(reach: Reach, epsilon: Fraction) -> bool:
    """Return whether the staircase distribution is available and has much less noise than Laplace: from an epsilon of
    2.4 on, except for counts of single rows, for which both distributions are equal."""
    if not suits(reach):
        return False
    stairs, slope = (law.calibrate(reach, epsilon).spread for law in (Staircase, CubeLaplace))
    return stairs < _MUCH_LESS * slope


def _laplace(lattice: Lattice, reach: Reach, strategy: str) -> type[Laplace]:
    """Return the noise class: one draw for all groups, for all coordinates, for each class, or for each coordinate."""
    if lattice.across is not None:
        return GroupVectorLaplace
    if lattice.classes:
        return ClassLaplace
    if lattice.better_apart(reach) or (strategy == "split" and reach.dimension > 1):
        return SplitLaplace
    return SharedLaplace if lattice.divided else CubeLaplace


def _one_of(name: str, word: object, words: tuple[str, ...]) -> None:
    if word not in words:
        raise InvalidArgument(
            f"{name} must be {', '.join(map(repr, words[:-1]))} or {words[-1]!r}, got {as_written(word)}."
        )


def _delta_is_missing(query: Query, chosen: Selection, options: Options | None) -> UnknownGroups:
    if query.plan.public_cells is None:
        return unknown_groups(query)
    return UnknownGroups(
        f"{chosen.strategy} hides groups of few people, which needs delta > 0.",
        span=options.places.get("group_selection_strategy") if options is not None else None,
        hint="Add delta=1e-6, or leave it out.",
    )
