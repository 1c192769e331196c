"""Aggregates with separate epsilons: which are released together, and one lattice of all of them.

Sequential composition: the shares' losses add up (Dwork, Roth 2014, theorem 3.16), so the query costs their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from dpsql.core.exact import Part
from dpsql.core.loss import root_below, show
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.errors import InvalidPrivacyParameter
from dpsql.plan.expressions import Expr, columns
from dpsql.release.choices import families
from dpsql.release.design.choose import error_of, lower
from dpsql.release.design.requirements import GroupRequirement
from dpsql.release.identity_key import IdentityKey
from dpsql.release.parts import Coordinate, Estimate, Feature, Lattice, moved
from dpsql.schema.frozen import dataclass

_MOST_PAIRS = 4
"""The most pairs of columns that are tried separately, to save time."""


@dataclass(frozen=True)
class Batch:
    """Aggregations (places in the plan) that share one epsilon; `selects`: their count decides which groups are shown;
    `drawn`: they are private selections of values."""

    places: tuple[int, ...]
    epsilon: Fraction
    selects: bool
    drawn: bool = False


def batches(
    analysis: Analysis, epsilon: Fraction, *, selects: bool, by_rho: bool, quiet: bool = False
) -> tuple[Batch, ...]:
    """Return the batches of a query, the one that selects groups first. Aggregations without a separate epsilon share
    what the others leave: one part for all sums and counts, and one for each set of values drawn together. `by_rho`:
    rho, half the square of epsilon, is divided. Raises InvalidPrivacyParameter if separate epsilons leave nothing or
    exceed the total."""
    measured = analysis.measured
    owns = _own_epsilons(measured, epsilon)
    rest = tuple(place for place, each in enumerate(measured) if place not in owns and each.of != "choice")
    chosen = families(measured)
    taken = sum(owns.values(), Fraction(0))
    alone = [Batch((at,), own, selects=False, drawn=measured[at].of == "choice") for at, own in owns.items()]
    summed = bool(rest) or selects
    if alone and not summed and not chosen:
        return tuple(alone)
    if taken == epsilon:
        what = "the other aggregates" if rest or chosen else "choosing the groups that are shown"
        raise InvalidPrivacyParameter(
            f"the aggregates' own epsilons leave nothing of {show(epsilon)} for {what}.",
            span=measured[next(iter(owns))].aggregation.span,
            hint="Give them less.",
        )
    summed = summed or not chosen
    parts = max(1, (summed and not quiet) + len(chosen))
    share = epsilon * root_below(Fraction(1, parts)) if by_rho else (epsilon - taken) / parts
    return (*_shared(rest if summed else None, chosen, share, selects=selects), *alone)


def _own_epsilons(measured: Sequence[MeasuredAggregation], epsilon: Fraction) -> dict[int, Fraction]:
    """Return the separate epsilons of aggregations. Raises InvalidPrivacyParameter if they exceed the total."""
    owns = {place: own for place, each in enumerate(measured) if (own := each.aggregation.epsilon) is not None}
    taken = sum(owns.values(), Fraction(0))
    if taken > epsilon:
        raise InvalidPrivacyParameter(
            f"the aggregates' own epsilons come to {show(taken)}, more than the query's {show(epsilon)}.",
            span=measured[next(iter(owns))].aggregation.span,
        )
    return owns


def _shared(
    rest: tuple[int, ...] | None, chosen: Sequence[tuple[int, ...]], share: Fraction, *, selects: bool
) -> Iterator[Batch]:
    """Yield a batch of sums and counts, if there is one, and one for each draw."""
    if rest is not None:
        yield Batch(rest, share, selects)
    for places in chosen:
        yield Batch(places, share, selects=False, drawn=True)


def pairs_apart(
    analysis: Analysis, parts: Sequence[Batch], law: str, wanted: GroupRequirement, *, by_rho: bool
) -> tuple[Batch, ...]:
    """Return the batches, with pairs of columns separated from other aggregates, each at its share, if that has less
    error by public facts. One vector of Laplace noise for the five sums of a pair costs the others too much."""
    if law in ("gaussian", "split") or wanted.levels:
        return tuple(parts)
    return tuple(part for batch in parts for part in _apart(analysis, batch, law, wanted, by_rho=by_rho))


def _apart(analysis: Analysis, batch: Batch, law: str, wanted: GroupRequirement, *, by_rho: bool) -> tuple[Batch, ...]:
    """Return a batch, or its best recursive division in two: pairs and others, or what reads the columns of one pair
    and the others."""
    pairs = {place for place in batch.places if analysis.measured[place].other is not None}
    if not pairs or batch.selects or batch.drawn:
        return (batch,)
    read = {place: _columns(analysis.measured[place]) for place in batch.places}
    of_pairs = list(dict.fromkeys(frozenset(read[place]) for place in sorted(pairs)))
    together = [{place for place in batch.places if read[place] and read[place] <= each} for each in of_pairs]
    groups = [pairs, *together][: 1 + _MOST_PAIRS]
    found = [(batch,), *(_parted(batch, each, by_rho=by_rho) for each in groups if 0 < len(each) < len(batch.places))]
    best = min(found, key=lambda parts: sum(_log_error(analysis, each, law, wanted) for each in parts))
    if len(best) == 1:
        return best
    return tuple(part for each in best for part in _apart(analysis, each, law, wanted, by_rho=by_rho))


def _columns(m: MeasuredAggregation) -> set[Expr]:
    """Return the columns that an aggregate reads."""
    return {each for argument in m.aggregation.arguments for each in columns(argument)}


def _parted(batch: Batch, first: Set[int], *, by_rho: bool) -> tuple[Batch, ...]:
    """Return two batches, each with its aggregates' share."""
    halves = []
    for within in (True, False):
        places = tuple(place for place in batch.places if (place in first) == within)
        of_all = Fraction(len(places), len(batch.places))
        halves.append(replace(batch, places=places, epsilon=batch.epsilon * (root_below(of_all) if by_rho else of_all)))
    return tuple(halves)


def _log_error(analysis: Analysis, batch: Batch, law: str, wanted: GroupRequirement) -> float:
    """Return the sum of the logarithms of the batch's errors, up to a common constant, without exact aggregates."""
    own = _of(analysis, batch)
    lattice = lower(own, batch.epsilon, replace(wanted, selects=batch.selects), law=law)
    found = error_of(lattice, own, batch.epsilon, law)
    return (len(batch.places) - lattice.exact) * (found - math.log(batch.epsilon))


def lattices(analysis: Analysis, parts: Sequence[Batch], law: str, wanted: GroupRequirement) -> tuple[Lattice, ...]:
    """Return the lattice of each batch; the batch determines whether its count selects groups."""
    return tuple(
        lower(_of(analysis, batch), batch.epsilon, replace(wanted, selects=batch.selects), law=law) for batch in parts
    )


def _of(analysis: Analysis, batch: Batch) -> Analysis:
    """Return the analysis of a batch's aggregations."""
    return _of_some(IdentityKey(analysis), batch.places)


@lru_cache(maxsize=64)
def _of_some(of: IdentityKey[Analysis], places: tuple[int, ...]) -> Analysis:
    """Return the analysis of the aggregations at some places, the same for every distribution."""
    return replace(of.value, measured=tuple(of.value.measured[place] for place in places))


def joined(found: Sequence[Lattice], parts: Sequence[Batch]) -> Lattice:
    """Join all lattices, with estimates in the order of the plan; sensitivity and selection are those of the first."""
    if len(found) == 1:
        return found[0]
    together: dict[Part, int] = {}
    coordinates: list[Coordinate] = []
    features: list[Feature] = []
    estimates: dict[int, Estimate] = {}
    for lattice, batch in zip(found, parts, strict=True):
        first, offset = len(coordinates), len(features)
        places = [together.setdefault(part, len(together)) for part in lattice.parts]
        for each in lattice.coordinates:
            terms = tuple((places[part], factor) for part, factor in each.terms)
            coordinates.append(replace(each, terms=terms))
        known = range(len(lattice.coordinates)) if lattice.features is None else range(len(lattice.features))
        features += [tuple((place + first, factor) for place, factor in lattice.weights(each)) for each in known]
        for place, estimate in zip(batch.places, lattice.estimates, strict=True):
            estimates[place] = moved(estimate, offset)
    ordered = tuple(estimates[place] for place in sorted(estimates))
    same = all(lattice.features is None for lattice in found)
    return replace(
        found[0],
        parts=tuple(together),
        coordinates=tuple(coordinates),
        estimates=ordered,
        features=None if same else tuple(features),
    )
