"""calibrate: a plan, its analysis and a privacy loss -> a Release. No row is read."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Approx, Event
from dpsql.core.exact import CountRows, CountUnits, ExactPlan, Part
from dpsql.core.loss import Allowance
from dpsql.core.measurement import grant
from dpsql.core.mechanisms import CubeLaplace, DiscreteGaussian, Reach, SharedLaplace, SplitLaplace
from dpsql.core.reach import assert_unmoved, change_of, groups_of_a_unit, reach_of
from dpsql.core.selection import threshold
from dpsql.core.sensitivity import Analysis
from dpsql.core.truncated_geometric import TruncatedGeometric
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, UnknownGroups, UnsupportedSQL, as_written
from dpsql.plan.options import Options
from dpsql.plan.query import Query
from dpsql.release.choices import Draw, Family, draws_of
from dpsql.release.design.coordinates import Wanted
from dpsql.release.groups import GEOMETRIC, PUBLIC, Selection, selection_of, unknown_groups
from dpsql.release.laws import Choice, crossover
from dpsql.release.levels import levels_of
from dpsql.release.parts import Lattice
from dpsql.release.release import Release, Selector
from dpsql.release.split import Batch, Share, batches, joined, lattices

STRATEGIES = ("auto", "split")
MECHANISMS = ("auto", "laplace", "gaussian")


def calibrate(
    query: Query,
    analysis: Analysis,
    allowed: Allowance,
    *,
    strategy: str = "auto",
    mechanism: str = "auto",
    options: Options | None = None,
) -> Release:
    """Choose lattice, noise and threshold for what is allowed. Raises UnknownGroups, InvalidPrivacyParameter,
    InvalidArgument."""
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("mechanism", mechanism, MECHANISMS)
    if mechanism != "auto":
        return _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism=mechanism)
    plain = _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism=mechanism)
    both = (plain.shares or plain.levels) and strategy == "auto" and (allowed.delta or allowed.rho is not None)
    if not both or any(isinstance(share.noise, DiscreteGaussian) for share in plain.shares):
        return plain
    if options is not None and options.group_selection_strategy not in (None, PUBLIC, GEOMETRIC):
        return plain  # the text asks for a threshold on Laplace noise
    try:
        gaussian = _calibrate(query, analysis, allowed, options, strategy=strategy, mechanism="gaussian")
    except InvalidPrivacyParameter:  # such as noise beyond the samplers
        return plain
    wider = math.exp(gaussian.log_error - plain.log_error)
    at = crossover(allowed, allowed.delta / (1 + gaussian.hides))
    if wider < 1:
        return replace(gaussian, choice=Choice("gaussian", 1 / wider, at))
    return replace(plain, choice=Choice("laplace", wider, at))


def _calibrate(
    query: Query, analysis: Analysis, allowed: Allowance, options: Options | None, *, strategy: str, mechanism: str
) -> Release:
    """With one law of noise; "auto" stands for Laplace."""
    chosen = selection_of(query, analysis, options, mechanism)
    gaussian = (mechanism if chosen.mechanism is None else chosen.mechanism) == "gaussian"
    if chosen.hides and not allowed.delta:
        raise _delta_is_missing(query, chosen, options)
    own = chosen.own_share(allowed.pure, len(analysis.measured))
    if allowed.rho is not None and any(each.aggregation.epsilon is not None for each in analysis.measured):
        raise InvalidPrivacyParameter(
            "an aggregate has an epsilon of its own, and the query is paid by rho.",
            hint="Ask with epsilon= instead, or leave the aggregate's out.",
        )
    law = "gaussian" if gaussian else strategy
    wanted = Wanted(of_units=chosen.least is not None, levels=bool(query.plan.sets))
    parts, found, drawn = _dealt(analysis, chosen, allowed, own, wanted, law=law)
    if drawn and not any(map(_is_noisy, found)):  # what needs no noise leaves its part to what does
        parts, found, drawn = _dealt(analysis, chosen, allowed, own, wanted, law=law, quiet=True)
    lattice = joined(found, parts)
    lattice = replace(lattice, groups_of_a_unit=groups_of_a_unit(analysis))
    assert_unmoved(lattice.parts, lattice.quiet, analysis)
    draws, grids, estimates = draws_of(analysis, query.plan, drawn, allowed, first=lattice.width)
    if draws:
        own_places = (place for batch in parts for place in batch.places)
        estimates |= dict(zip(sorted(own_places), lattice.estimates, strict=True))
        lattice = replace(lattice, estimates=tuple(estimates[place] for place in sorted(estimates)))
    noisy = sum(_is_noisy(one) for one in found)
    if query.plan.sets:
        return _of_levels(query, analysis, lattice, allowed, strategy=strategy, gaussian=gaussian)
    by_pair = gaussian and allowed.rho is None
    spends = (noisy if by_pair else 0) + chosen.hides
    delta = allowed.delta / spends if spends else Fraction(0)
    selector = None
    if chosen.hides and not chosen.by_threshold:
        lattice, place = _with_count_of_units(lattice, analysis)
        selector = Selector(TruncatedGeometric(own, delta, lattice.groups_of_a_unit, chosen.least or 1), place)
    exact = replace(_exact_plan(query, analysis, chosen, lattice), grids=grids)
    if not noisy and selector is None and not draws:
        return Release(query, analysis, exact, lattice, (), None, strategy, FREE, allowed)
    if by_pair and noisy and not allowed.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )
    shares = _shares(tuple(zip(found, parts, strict=True)), analysis, delta, strategy, allowed, gaussian=gaussian)
    tau = None
    if chosen.hides and chosen.by_threshold:
        counted = change_of(lattice.parts, [lattice.coordinates[lattice.selection].terms], analysis)
        lattice = replace(lattice, one_unit=counted.in_a_group[0])
        tau = threshold(shares[0].noise, lattice.one_unit, delta / lattice.groups_of_a_unit)
        tau += ((chosen.least or 1) - 1) * lattice.one_unit
    spends_of: tuple[Share | Draw, ...] = (*shares, *draws)
    hidden = delta if chosen.hides else Fraction(0)
    choosing = Cost.of(Fraction(0) if selector is None else own, hidden)
    events: tuple[Event, ...] = (Approx(choosing.epsilon or Fraction(0), hidden),) if hidden else ()
    return Release(
        query,
        analysis,
        exact,
        lattice,
        shares,
        tau,
        strategy,
        _as_asked(sum((each.cost for each in spends_of), choosing), allowed),
        allowed,
        selector,
        (*events, *(each.event for each in spends_of if not each.cost.free)),
        draws=draws,
    )


def _dealt(
    analysis: Analysis,
    chosen: Selection,
    allowed: Allowance,
    own: Fraction,
    wanted: Wanted,
    *,
    law: str,
    quiet: bool = False,
) -> tuple[tuple[Batch, ...], tuple[Lattice, ...], list[Family]]:
    """Epsilon dealt out: batches of sums and counts with their lattices, and families of draws."""
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
    parts = tuple(batch for batch in parts if not batch.drawn) or (Batch((), Fraction(1), selects=False),)
    found = lattices(analysis, parts, law, wanted)
    return parts, found, drawn


def _of_levels(
    query: Query, analysis: Analysis, lattice: Lattice, allowed: Allowance, *, strategy: str, gaussian: bool
) -> Release:
    """A release with grouping sets: every level has noise of its own."""
    if gaussian and allowed.rho is None and not allowed.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )
    exact = ExactPlan(query.plan.input, query.plan.keys, every_cell=True, parts=lattice.parts)
    bounds = analysis.bounds
    if bounds.enforced:
        exact = replace(exact, limits=bounds.rows, groups=bounds.units.groups)
    if not analysis.private or not lattice.coordinates:
        raise UnsupportedSQL("ROLLUP, CUBE and GROUPING SETS are of aggregates of people's rows.")
    # Whole numbers rounded one by one would not add up.
    estimates = tuple(replace(each, whole=False, unrounded=each.whole) for each in lattice.estimates)
    lattice = replace(lattice, estimates=estimates)
    law = "gaussian" if gaussian else "split" if strategy == "split" else "laplace"
    levels = levels_of(query.plan, analysis, lattice, allowed, law=law, delta=allowed.delta)
    cost, events = _as_asked(levels.cost, allowed), tuple(level.event for level in levels.measured)
    return Release(query, analysis, exact, lattice, (), None, strategy, cost, allowed, events=events, levels=levels)


def _as_asked(cost: Cost, allowed: Allowance) -> Cost:
    """A rho that was asked for is charged to the last digit, though pure noise for it is rounded down."""
    return cost if allowed.rho is None else replace(cost, rho=max(cost.rho, allowed.rho))


def _exact_plan(query: Query, analysis: Analysis, chosen: Selection, lattice: Lattice) -> ExactPlan:
    """What is asked of an executor: limits only where rows have to be left out."""
    bounds = analysis.bounds
    limits = bounds.rows if bounds.enforced else None
    groups = bounds.units.groups if bounds.enforced and query.plan.keys else None
    return ExactPlan(query.plan.input, query.plan.keys, chosen.every_cell, lattice.parts, limits, groups)


def _with_count_of_units(lattice: Lattice, analysis: Analysis) -> tuple[Lattice, int]:
    """The lattice with a part that counts units, and its place."""
    one_row = analysis.bounds.rows.l1 == 1
    part: Part = CountRows(None) if one_row else CountUnits(None)
    if part in lattice.parts:
        return lattice, lattice.parts.index(part)
    return replace(lattice, parts=(*lattice.parts, part)), len(lattice.parts)


def _is_noisy(lattice: Lattice) -> bool:
    return any(each.noisy for each in lattice.coordinates)


def _shares(
    dealt: tuple[tuple[Lattice, Batch], ...],
    analysis: Analysis,
    delta: Fraction,
    strategy: str,
    allowed: Allowance,
    *,
    gaussian: bool,
) -> tuple[Share, ...]:
    """The noise of each lattice that has any, for the coordinates of all of them in a row."""
    shares, first = [], 0
    for lattice, part in dealt:
        places = tuple(first + place for place, each in enumerate(lattice.coordinates) if each.noisy)
        first += len(lattice.coordinates)
        if not places:
            continue
        reach = reach_of(lattice.parts, lattice.noisy, analysis)
        granted = grant(allowed, None if part.epsilon == allowed.pure else part.epsilon, delta)
        paid = granted.gaussian(reach) if gaussian else granted.pure(_laplace(lattice, reach, strategy), reach)
        shares.append(Share(reach, paid.law, places, part.epsilon, paid.cost, paid.event))
    return tuple(shares)


def _laplace(lattice: Lattice, reach: Reach, strategy: str) -> type[CubeLaplace | SplitLaplace]:
    """One draw for all coordinates, or one for each."""
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
