"""calibrate: a plan, its analysis and a privacy loss -> a Release, everything about an answer but the data.

A release lowers the aggregations to integer *parts* (what the executor sums) and to *coordinates* (integer combinations
of parts that noise is added to), so that one privacy unit moves every coordinate by at most the same number of lattice
steps. COUNT, SUM and AVG of the same columns share their coordinates, and so one spend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsql.analysis.sensitivity import Analysis
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, UnknownGroups, UnsupportedSQL
from dpsql.executors.base import CountRows, CountUnits, ExactPlan, ExactTable, Part
from dpsql.intervals import Interval
from dpsql.privacy.cost import FREE, Cost
from dpsql.privacy.events import Approx, Concentrated, Event, Pure
from dpsql.privacy.geometric import TruncatedGeometric
from dpsql.privacy.goal import Goal
from dpsql.privacy.loss import Allowance, PrivacyLoss
from dpsql.privacy.mechanisms import CubeLaplace, DiscreteGaussian, Noise, Reach, SharedLaplace, SplitLaplace, drawable
from dpsql.privacy.partitions import show_probability, threshold
from dpsql.release_bounds import Bounded, Searches
from dpsql.release_choice import Choice, crossover, log_error
from dpsql.release_draws import Draw, Family, draws_of
from dpsql.release_levels import Levels, levels_of
from dpsql.release_order import order_of
from dpsql.release_parts import Coordinate, Estimate, Lattice
from dpsql.release_selection import GEOMETRIC, PUBLIC, Selection, selection_of, unknown_groups
from dpsql.release_shares import Batch, Share, batches, joined, lattices
from dpsql.sql.expressions import Vector
from dpsql.sql.plan import Query

if TYPE_CHECKING:
    from dpsql.sql.options import Options

STRATEGIES = ("auto", "split")
MECHANISMS = ("auto", "laplace", "gaussian")


@dataclass(frozen=True)
class Released:
    """Noisy values, safe to show: a vector for each key, and the features in the answer's units, (n, groups)."""

    keys: tuple[Vector, ...]
    values: NDArray[np.float64]
    bounds: tuple[Interval, ...] = ()
    """Those that the query has chosen, of each column that it searched bounds for."""

    @property
    def groups(self) -> int:
        return int(self.values.shape[1])


@dataclass(frozen=True)
class Selector:
    """Chooses groups by their exact number of privacy units, which is the `part`, at a cost of its own."""

    law: TruncatedGeometric
    part: int


@dataclass(frozen=True)
class Release:
    """A calibrated query. `draws` are the values that it chooses; `shares` are its noise vectors, none where nothing
    private is measured, the one that chooses groups first; `cost` is what the ledger is charged, `events` are the steps
    that it is made of, `allowed` what was asked for; `choice`: how Laplace and Gaussian noise compare, where both were
    possible."""

    query: Query
    analysis: Analysis
    exact: ExactPlan
    lattice: Lattice
    shares: tuple[Share, ...]
    threshold: int | None
    strategy: str
    cost: Cost
    allowed: Allowance
    selector: Selector | None = None
    events: tuple[Event, ...] = ()
    choice: Choice | None = None
    draws: tuple[Draw, ...] = ()
    searches: Searches | None = None
    """Bounds that are still to be chosen: all else then stands for the widest ones."""
    bounds: tuple[Bounded, ...] = ()
    """Bounds that were chosen."""
    levels: Levels | None = None
    """The levels of a query with grouping sets, which have noise of their own in place of `shares`."""
    goal: Goal | None = None
    """The error that was asked for, where epsilon was found for it."""

    def settled(self, bounds: tuple[Interval, ...]) -> Release:
        """The release with bounds for its columns; itself where none are to be chosen. Costs what this one does."""
        if self.searches is None:
            return self
        made: Release = self.searches.settle(bounds)
        searches = zip(self.searches.searches, bounds, strict=True)
        found = tuple(Bounded(search.column, held, search.cost) for search, held in searches)
        return replace(made, cost=self.cost, allowed=self.allowed, events=self.events, bounds=found)

    @property
    def price(self) -> str:
        """The cost in words, in the coin that was asked for."""
        if self.allowed.rho is None or not self.cost.rho:
            return str(self.cost)
        return str(Allowance(None, self.cost.delta, self.cost.rho))

    @property
    def hides(self) -> bool:
        """Whether groups of few units are hidden."""
        return self.threshold is not None or self.selector is not None

    @property
    def width(self) -> int:
        """How many values of a group are released."""
        return self.lattice.width + sum(len(draw.places) for draw in self.draws)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.lattice.coordinates

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """How each aggregation follows from the coordinates, in the order of the plan's aggregations."""
        return self.lattice.estimates

    @property
    def noise(self) -> Noise | None:
        """The law of the first share."""
        return self.shares[0].noise if self.shares else None

    @property
    def reach(self) -> Reach:
        """What the first share protects."""
        return self.shares[0].reach if self.shares else Reach(0, Fraction(0), 0)

    def for_all(self, level: float, groups: int) -> float:
        """The level of each group's interval at which all hold at once with probability `level`. Noise of different
        groups is independent; that of levels is not, and there the union bound serves."""
        return level ** (1 / max(1, groups)) if self.levels is None else 1 - (1 - level) / max(1, groups)

    @property
    def log_error(self) -> float:
        """The mean over the aggregations (and levels) of the logarithm of their standard error."""
        if self.levels is None:
            return log_error(self.lattice, self.shares)
        of_levels = [self.at_level(keys).shares for keys in self.levels.wanted]
        return sum(log_error(self.lattice, shares) for shares in of_levels) / len(of_levels)

    def at_level(self, keys: tuple[int, ...]) -> Release:
        """The release as one level of it sees it, for its noise; it is not to be run."""
        assert self.levels is not None
        noise: Any = self.levels.noise_of(keys)
        places = tuple(range(len(self.coordinates)))
        share = Share(
            Reach(self.lattice.steps, Fraction(0), len(places)), noise, places, Fraction(0), FREE, Pure(Fraction(0))
        )
        return replace(self, levels=None, shares=(share,))

    def share_of(self, place: int | None) -> Share | None:
        """The noise that a coordinate has; None for one that has none."""
        return next((share for share in self.shares if place in share.places), None)

    def noise_of(self, estimate: Estimate) -> Noise | None:
        """The noise of an aggregation."""
        used = [place for feature in (estimate.sum, estimate.count) for place, _ in self.lattice.weights(feature)]
        return next((share.noise for place in used if (share := self.share_of(place)) is not None), None)

    def privatise(self, exact: ExactTable) -> Released:
        """Add noise to the exact integers, hide the groups below the threshold, and decode. The one way out."""
        steps = self.coordinate_steps(exact.parts)
        units = np.array([each.unit for each in self.coordinates], dtype=np.float64)
        if self.levels is not None:
            found = self.levels.privatise(steps)
            return Released(self.levels.keys_of(exact.keys), self._features(found * units[:, None]))
        for share in self.shares:
            drawn = share.noise.draw(exact.groups)
            steps = steps.astype(object) if drawn.dtype == object else steps
            steps[list(share.places)] += drawn
        keys, shown = exact.keys, np.arange(exact.groups)
        if self.hides:
            if self.selector is not None:
                shown = np.flatnonzero(self.selector.law.draw(_within_64_bits(exact.parts[self.selector.part])))
            else:
                shown = np.flatnonzero(steps[self.lattice.selection] >= self.threshold)
            shown = shown[order_of((), [key.at(shown) for key in keys], len(shown))]  # not as they came
            steps, keys = steps[:, shown], tuple(_without_trace(key.at(shown)) for key in keys)
        values = self._features(steps.astype(np.float64) * units[:, None])
        drawn_values = [draw.run(exact.grids[draw.grid], shown) for draw in self.draws]
        return Released(keys, np.concatenate([values, *drawn_values]))

    def _features(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates, in the answer's units, to what estimates speak of."""
        features = self.lattice.features
        if features is None:
            return values
        sums = [sum((values[place] * factor for place, factor in each), np.zeros(values.shape[1])) for each in features]
        return np.stack(sums)

    def coordinate_steps(self, parts: NDArray[Any]) -> NDArray[Any]:
        """The exact coordinates, (coordinates, groups), from the exact parts; integers in lattice steps.

        Python integers take over where 64 bits could be too few, which follows the number of rows but changes nothing.
        """
        groups = parts.shape[1]
        largest = max((int(abs(part).max()) for part in parts), default=0) if groups else 0
        weight = max((sum(abs(f) for _, f in each.terms) for each in self.coordinates), default=0)
        wide = parts.dtype == object or max(1, largest) * weight >= 2**61
        held = parts.astype(object) if wide else parts
        steps = np.zeros((len(self.coordinates), groups), dtype=held.dtype)
        for row, coordinate in enumerate(self.coordinates):
            for part, factor in coordinate.terms:
                steps[row] += held[part] * factor
        return steps

    def chance_shown(self, units: int) -> float | None:
        """The chance that a group of so many privacy units is shown; None when all groups are."""
        if self.selector is not None:
            return float(self.selector.law.probability(units))
        if self.threshold is None or self.noise is None:
            return None
        return show_probability(self.noise, units * self.lattice.one_row, self.threshold)


def _within_64_bits(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.minimum(counts, 2**62), dtype=np.int64)


def _without_trace(key: Vector) -> Vector:
    """The shown cells alone: that some other row had NULL there must not show in how they are held."""
    if key.valid is None or key.valid.all():
        return Vector(key.values)
    return key


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
    rest = allowed.rest(own)
    if allowed.rho is not None and any(each.aggregation.epsilon is not None for each in analysis.measured):
        raise InvalidPrivacyParameter(
            "an aggregate has an epsilon of its own, and the query is paid by rho.",
            hint="Ask with epsilon= instead, or leave the aggregate's out.",
        )
    parts = batches(analysis, rest or own, selects=chosen.by_threshold and not own, by_rho=allowed.rho is not None)
    if own and chosen.by_threshold:
        parts = (Batch((), own, selects=True), *parts)
    drawn = [Family(batch.places, batch.epsilon) for batch in parts if batch.drawn]
    parts = tuple(batch for batch in parts if not batch.drawn) or (Batch((), Fraction(1), selects=False),)
    found = lattices(analysis, parts, strategy, of_units=chosen.least is not None, gaussian=gaussian)
    lattice = joined(found, parts)
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
        law = TruncatedGeometric(own, delta, lattice.groups_of_a_unit, chosen.least or 1)
        selector = Selector(law, place)
    exact = replace(_exact_plan(query, analysis, chosen, lattice), grids=grids)
    if not noisy and selector is None and not draws:
        return Release(query, analysis, exact, lattice, (), None, strategy, FREE, allowed)
    if by_pair and noisy and not allowed.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )
    shares = _shares(found, parts, delta, strategy, allowed, gaussian=gaussian)
    tau = None
    if chosen.hides and chosen.by_threshold:
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
        (*events, *(each.event for each in spends_of)),
        draws=draws,
    )


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
    lattice = replace(lattice, estimates=tuple(replace(each, whole=False) for each in lattice.estimates))
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
    found: tuple[Lattice, ...],
    parts: tuple[Batch, ...],
    delta: Fraction,
    strategy: str,
    allowed: Allowance,
    *,
    gaussian: bool,
) -> tuple[Share, ...]:
    """The noise of each lattice that has any, for the coordinates of all of them in a row."""
    shares, first = [], 0
    for lattice, part in zip(found, parts, strict=True):
        places = tuple(first + place for place, each in enumerate(lattice.coordinates) if each.noisy)
        first += len(lattice.coordinates)
        if not places:
            continue
        l2_squared = sum((each.l2_squared for each in lattice.coordinates if each.noisy), Fraction(0))
        reach = Reach(lattice.steps, l2_squared, len(places), lattice.l1)
        if not gaussian:
            noise, cost = _laplace(reach, part.epsilon, strategy), Cost.of(part.epsilon)
        elif allowed.rho is None:
            noise = DiscreteGaussian.calibrate(reach, PrivacyLoss(part.epsilon, delta))
            cost = noise.loss(reach)
        else:
            rho = allowed.rho if part.epsilon == allowed.pure else part.epsilon**2 / 2
            noise, cost = DiscreteGaussian.of_rho(reach, rho), Cost(None, rho=rho)
        event = Concentrated(cost.rho) if gaussian else Pure(part.epsilon)
        shares.append(Share(reach, drawable(noise), places, part.epsilon, cost, event))
    return tuple(shares)


def _laplace(reach: Reach, epsilon: Fraction, strategy: str) -> Noise:
    if reach.l1 is not None:
        return SharedLaplace.calibrate(reach, epsilon)
    if strategy == "split" and reach.dimension > 1:
        return SplitLaplace.calibrate(reach, epsilon)
    return CubeLaplace.calibrate(reach, epsilon)


def _one_of(name: str, word: object, words: tuple[str, ...]) -> None:
    if word not in words:
        raise InvalidArgument(f"{name} must be {', '.join(map(repr, words[:-1]))} or {words[-1]!r}, got {word!r}.")


def _delta_is_missing(query: Query, chosen: Selection, options: Options | None) -> UnknownGroups:
    if query.plan.public_cells is None:
        return unknown_groups(query)
    return UnknownGroups(
        f"{chosen.strategy} hides groups of few people, which needs delta > 0.",
        span=options.places.get("group_selection_strategy") if options is not None else None,
        hint="Add delta=1e-6, or leave it out.",
    )
