"""Build the explanation tree of a release, from public facts only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.answer.clip_ranges import clips_of
from dpsql.answer.explanation_tree import (
    Bounds,
    ContributionLimit,
    Formula,
    Groups,
    JoinInput,
    Level,
    Levels,
    Noise,
    OutputColumn,
    Price,
    ProtectedUnit,
    ReleaseExplanation,
    Sum,
)
from dpsql.answer.query_wording import QueryWording
from dpsql.answer.selection_error import drawn
from dpsql.answer.uncounted import uncounted_rows
from dpsql.core.conversion import epsilon_of
from dpsql.core.cost import Cost
from dpsql.core.exact import of_units
from dpsql.core.measurement import Share
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import dimension_across
from dpsql.core.mechanisms.noise import Noise as Law
from dpsql.core.unit import Sensitivity
from dpsql.plan.expressions import Expr, Slot, walk
from dpsql.plan.nodes import RowLimit, filters_of, nodes_of, row_scans_of, scan_of, scans_of
from dpsql.plan.query import Output
from dpsql.release.intervals.intervals import constant_half_width
from dpsql.release.levels import estimates as measured_levels
from dpsql.release.output.labels import Label
from dpsql.release.parts import Estimate
from dpsql.release.release import Release

LEVEL = 0.95
"""Level of the intervals in explanations."""
GAUSSIAN = ("discrete_gaussian", "rounded_gaussian")
_SIZES = (10, 20, 50, 100)


def explained(release: Release) -> ReleaseExplanation:
    """Return the explanation tree of a release."""
    plain = QueryWording.of(release)
    sums = tuple(_sums(release, plain))
    return ReleaseExplanation(
        protected=protected(release),
        cost=release.cost,
        price=release.price,
        rho=release.cost.rho if _in_rho(release) else None,
        guess=_guess(release.cost),
        goal=release.goal,
        strategy=release.strategy,
        law=release.choice,
        filters=filters_of(release.query.plan.input),
        join_inputs=tuple(_join_inputs(release)),
        kept=_kept(release),
        bounds=tuple(_bounds(release)),
        clips=clips_of(release, plain),
        groups=_groups(release),
        sums=sums,
        noise=_noise(release, sums),
        levels=_levels(release, plain),
        draws=tuple(drawn(release, draw, price_of(release, draw.cost), plain) for draw in release.draws),
        shown=tuple(_shown(release, each, plain) for each in release.query.finish.outputs),
        stages=release.query.stages,
    )


def unit_of(release: Release) -> str | None:
    """Return the column that holds the declared unit; None where each row is a unit."""
    if not release.analysis.bounds.declared:
        return None
    tables = [scan.table for scan in scans_of(release.query.plan.input)]
    return next(table.unit.owner for table in tables if table.unit is not None)


def protected(release: Release) -> ProtectedUnit:
    """Return the privacy unit that a release protects."""
    analysis = release.analysis
    table = scan_of(release.query.plan.input).table.name
    return ProtectedUnit(analysis.private, unit_of(release), table, analysis.bounds.rows, analysis.neighbours)


def estimate_of(release: Release, output: Output) -> Estimate | None:
    """Return the aggregate that an output is, or None for other expressions."""
    first = len(release.query.plan.keys)
    if isinstance(output.expr, Slot) and output.expr.index >= first:
        return release.estimates[output.expr.index - first]
    return None


def of_one_level(release: Release) -> Release:
    """Return the release as the first of its levels sees it, or the release itself if it has no levels."""
    return release.sections[0][0]


def _in_rho(release: Release) -> bool:
    """Return whether the query is paid in rho, or its noise is measured in rho."""
    return release.allowed.rho is not None or any(share.noise.name in GAUSSIAN for share in release.shares)


def _guess(cost: Cost) -> float:
    """Return the best probability of telling two neighbouring tables apart that were equally likely before."""
    if cost.epsilon is None:  # any delta will do for an upper bound
        epsilon, delta = float(epsilon_of(cost.rho, Fraction(1, 10**6))), float(cost.delta) + 1e-6
    else:
        epsilon, delta = float(cost.epsilon), float(cost.delta)
    odds = 1 / (1 + math.exp(-epsilon)) if epsilon < 700 else 1.0
    return min(1.0, odds + delta)


def price_of(release: Release, cost: Cost) -> Price:
    """Express a part of the cost in the privacy measure in which the query is paid."""
    if release.allowed.rho is not None or cost.epsilon is None:
        return Price(rho=cost.rho)
    return Price(cost.epsilon or Fraction(0))


# Contribution bounds and clip bounds.


def _join_inputs(release: Release) -> Iterator[JoinInput]:
    for node in nodes_of(release.query.plan.input):
        if isinstance(node, RowLimit):
            scans = [scan for scan in row_scans_of(node) if not scan.table.public]
            yield JoinInput(tuple(scan.shown or scan.table.name for scan in scans), node.most)


def _kept(release: Release) -> ContributionLimit | None:
    exact = release.exact
    if exact.limits is None and exact.groups is None:
        return None
    by_unit = all(of_units(part) for part in exact.parts) and not exact.grids
    if by_unit or exact.limits is None:
        return ContributionLimit(None, exact.groups, by_unit)
    return ContributionLimit(
        exact.limits.rows, exact.groups if exact.limits.groups < exact.limits.rows else None, by_unit
    )


def _bounds(release: Release) -> Iterator[Bounds]:
    """Yield the bounds that the query is to choose itself, and those that it has chosen."""
    for search in release.searches.searches:
        yield Bounds(search.column, search.cost, price_of(release, search.cost))
    for each in () if release.provisional else release.bounds:
        yield Bounds(each.column, each.cost, price_of(release, each.cost), each)


# Groups.


def _groups(release: Release) -> Groups:
    plan, groups = release.query.plan, release.selection
    keys, public = tuple(key.name for key in plan.keys), plan.public_cells if release.exact.every_cell else None
    if not groups.hides:
        to_come = any(key.shown is not None for key in plan.keys)
        return Groups(keys, public, groups.word, to_come=to_come, uncounted=uncounted_rows(release))
    price = Price() if not groups.cost.rho else price_of(release, groups.cost)
    shown = {size: release.chance_shown(size) for size in _SIZES}
    one = release.lattice.one_row  # heights are in multiples of a row
    height = min((steps for _, steps in groups.conditions), default=None)
    at = None if height is None else height / one
    below = ((height - 1) / one, float(groups.below)) if height is not None and groups.below else None
    price = replace(price, delta=release.cost.delta)
    from dpsql.release.selection.hidden_groups import chosen_apart  # only hidden groups need it

    apart = chosen_apart(release)
    rather = None if apart is None else (float(apart[0]), apart[1])
    left_out = uncounted_rows(release)
    return Groups(keys, public, groups.word, at, below, groups.least, shown, price, rather, uncounted=left_out)


# Sums with noise, and selections.


def _sums(release: Release, plain: QueryWording) -> Iterator[Sum]:
    """Yield the sums. With grouping sets, a coordinate has its own noise at each measured level."""
    for place in range(len(release.coordinates)):
        of_levels = release.levels.measured if place in release.levels.noisy else ()
        for level in of_levels:
            cells = release.levels.cells_of(level.keys)
            one = _sum(release, place, plain, law=level.noise, dimension=level.reach.dimension, cells=cells)
            yield replace(one, level=_level(release, level))
        if not of_levels:
            share = release.share_of(place)
            law, dimension = (None, 0) if share is None else _law_in(share, place)
            yield _sum(release, place, plain, law=law, dimension=dimension)


def _law_in(share: Share, place: int) -> tuple[Law, int]:
    """Return the noise distribution of a coordinate, and the number of coordinates that share it."""
    if isinstance(share.noise, ClassLaplace):
        law = share.noise.of(share.places.index(place))
        return law, law.dimension
    return share.noise, dimension_across(share.reach) or share.reach.dimension


def _sum(
    release: Release,
    place: int,
    plain: QueryWording,
    *,
    law: Law | None,
    dimension: int,
    cells: tuple[int, int] | None = None,
) -> Sum:
    each, known = release.coordinates[place], not release.provisional
    norms = release.sensitivity(place, cells)
    worth = Sensitivity(norms.l1 * each.unit, norms.l2 * each.unit, norms.linf * each.unit)
    return Sum(
        name=_name(release, place),
        of=each.name,
        said=plain.label(each.name),
        noisy=each.noisy,
        law="exact" if law is None else law.name,
        dimension=dimension,
        scale=None if not known else 0.0 if law is None else law.scale * each.unit,
        step=each.unit if known else None,
        sensitivity=worth if known else None,
    )


def _name(release: Release, place: int) -> str:
    """Return the output that shows this coordinate itself, or else the label of the coordinate."""
    for output in release.query.finish.outputs:
        estimate = estimate_of(release, output)
        if estimate and _places(release, estimate) == [place]:
            return output.name
    return str(release.coordinates[place].name)


def _places(release: Release, estimate: Estimate) -> list[int]:
    """Return the coordinates of an aggregate; none if it is selected by a draw."""
    if estimate.chosen is not None:
        return []
    features = [estimate.sum, estimate.count]
    moments = estimate.moments
    if moments is not None:
        features += [moments.square, moments.product, moments.sum, moments.other_square]
    return list(dict.fromkeys(place for feature in features for place, _ in release.lattice.weights(feature)))


def _noise(release: Release, sums: tuple[Sum, ...]) -> tuple[Noise, ...]:
    alone = len(release.shares) + len(release.draws) == 1
    noises = []
    for share in release.shares:
        price = Price(share.epsilon)
        if release.allowed.rho is not None:
            price = Price(rho=release.allowed.rho if alone else share.cost.rho)
        noises.append(Noise(share.noise.name, tuple(sums[place] for place in share.places), price))
    return tuple(noises)


def _levels(release: Release, plain: QueryWording) -> tuple[Levels, ...]:
    """Return the levels that have their own noise, and what follows from them; empty if there are none."""
    levels = release.levels
    if not levels.measured:
        return ()
    price = replace(price_of(release, levels.cost), delta=release.cost.delta) if _whole(release) else None
    measured = tuple(_level(release, level) for level in levels.measured)
    return (Levels(tuple(plain.label(each.name) for each in release.coordinates), measured, price),)


def _whole(release: Release) -> bool:
    """Return whether one epsilon holds for all levels together, each of which has a part of a rho."""
    return release.allowed.rho is None and any(level.noise.name in GAUSSIAN for level in release.levels.measured)


def _level(release: Release, level: measured_levels.Level) -> Level:
    keys = tuple(release.query.plan.keys[place].name for place in level.keys)
    price = Price(rho=level.cost.rho) if _whole(release) else price_of(release, level.cost)
    alone = level.noise.name not in GAUSSIAN and level.cost.epsilon is not None
    return Level(keys, level.noise.name, level.cost, alone, price)


# Outputs.


def _shown(release: Release, output: Output, plain: QueryWording) -> OutputColumn:
    first = len(release.query.plan.keys)
    used = [part.index - first for part in walk(output.expr) if isinstance(part, Slot) and part.index >= first]
    places = [place for index in used for place in _places(release, release.estimates[index])]
    sources = tuple(dict.fromkeys(_name(release, place) for place in places))
    half = None if release.provisional else constant_half_width(release, output.expr, LEVEL)
    return OutputColumn(output.name, _formula(release, output, plain), sources, half)


def _formula(release: Release, output: Output, plain: QueryWording) -> Formula | Expr:
    estimate = estimate_of(release, output)
    if estimate is None:
        return output.expr
    if estimate.chosen is not None or estimate.moments is not None:
        return Formula(estimate.kind, "moments" if estimate.chosen is None else "draw")
    total, count = (_feature(release, place, plain) for place in (estimate.sum, estimate.count))
    return Formula(estimate.kind, "sums", estimate.centre, total, count)


def _feature(release: Release, place: int | None, plain: QueryWording) -> tuple[Label, ...]:
    """Return the labels of a feature: its coordinate (centred or not), shares of it, or cells."""
    weights = release.lattice.weights(place)
    labels = tuple(plain.label(release.coordinates[coordinate].name) for coordinate, _ in weights)
    if release.lattice.classes and len(weights) > 1:
        return (Label(f"({len(weights)} of these together)"),)
    if not release.lattice.divided and len(weights) == 2:
        return (replace(labels[0], around=None),)
    return labels
