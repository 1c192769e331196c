"""What an output of a release is made of: the reading that explanations share."""

from __future__ import annotations

from dpsql.answer.points import points_apart
from dpsql.answer.words import numbered
from dpsql.plan.aggregates import AggregateKind
from dpsql.plan.expressions import Slot
from dpsql.plan.query import Output
from dpsql.release.choices import EXACT, Draw
from dpsql.release.intervals.intervals import constant_half_width
from dpsql.release.parts import Coordinate, Estimate
from dpsql.release.release import Release, Released

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


def names_of(release: Release, draw: Draw) -> list[str]:
    """The aggregates that a draw gives."""
    return [
        str(each)
        for each, estimate in zip(release.query.plan.aggregations, release.estimates, strict=True)
        if estimate.chosen is not None and estimate.chosen.place in draw.places
    ]


def how_far_off(release: Release, draw: Draw, released: Released | None = None) -> str | None:
    """How far off a drawn value may be, whatever the data are, and where not all values can be drawn how far apart
    those are (near what was `released`); None of one that is exact."""
    if draw.mechanism == EXACT:
        return None
    off, apart = _rows_off(release, draw), points_apart(release, draw, released)
    return off if apart is None else f"{off}; {apart}"


def _rows_off(release: Release, draw: Draw) -> str:
    rows = numbered(draw.rows_off(LEVEL), "row")
    if draw.kind in (AggregateKind.MIN, AggregateKind.MAX):
        end = "least" if draw.kind is AggregateKind.MIN else "largest"
        place = f"value number {draw.rank} from the {end} one"
        return f"{place}, give or take {rows} (95 %), so that it is hardly ever beyond all; of fewer rows any value"
    about = "about " if len(draw.wanted) > 1 else ""
    chosen = (each.chosen for each in release.estimates)
    partial = any(each.partial for each in chosen if each is not None and each.place in draw.places)
    return f"within {about}{rows} of {'the best of these' if partial else 'the right one'} (95 %)"
