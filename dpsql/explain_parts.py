"""What an output of a release is made of: the reading that explanations share."""

from __future__ import annotations

from dpsql.noise_intervals import constant_half_width
from dpsql.release import Release
from dpsql.release_parts import Coordinate, Estimate
from dpsql.sql.expressions import Slot
from dpsql.sql.plan import Output

LEVEL = 0.95


def estimate_of(release: Release, output: Output) -> Estimate | None:
    """The aggregate that an output shows, if it is one by itself."""
    first = len(release.query.plan.keys)
    if isinstance(output.expr, Slot) and output.expr.index >= first:
        return release.estimates[output.expr.index - first]
    return None


def coordinates_of(release: Release, estimate: Estimate) -> list[Coordinate]:
    """What noise is added to for an aggregate; nothing for one that is drawn."""
    if estimate.chosen is not None:
        return []
    places = [estimate.sum, estimate.count]
    moments = estimate.moments
    if moments is not None:
        places += [moments.square, moments.product, moments.sum, moments.other_square]
    used = dict.fromkeys(place for feature in places for place, _ in release.lattice.weights(feature))
    return [release.coordinates[place] for place in used]


def concentrated(release: Release) -> bool:
    """Whether rho is what the query is paid by, or what its noise is measured in."""
    gaussian = any(share.noise.name == "discrete_gaussian" for share in release.shares)
    return gaussian or release.allowed.rho is not None


def half_width(release: Release, output: Output) -> float | None:
    """Of an output's 95 % noise interval; None where it depends on private counts, or there is none."""
    if release.searches is not None:
        return None
    return constant_half_width(of_one_level(release), output.expr, LEVEL)


def of_one_level(release: Release) -> Release:
    """The release as the first of its levels sees it, where it has several; itself else."""
    return release if release.levels is None else release.at_level(release.levels.wanted[0])
