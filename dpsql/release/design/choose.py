"""Choice of a design: which sums are measured, on which lattice, and how the answers follow from them.

Each aggregation needs a count, a sum, or both. One row moves a count by 1. A sum of values in [L, U] is centred, 2 q -
N for a value on the grid q = 0..N of [L, U], if the matching count is measured too. One row then moves it by at most N
instead of by the larger end, and SUM = centred sum + midpoint * count, AVG = midpoint + centred sum / count.
Coordinates are scaled by integers to one common sensitivity (or just below it), which follows from their parts
(`core.sensitivity.norms`): a design determines what is measured, never its cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain

from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace, reach_across
from dpsql.core.mechanisms.noise import Reach
from dpsql.core.sensitivity.norms import reach_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import Neighbours
from dpsql.release.design.cells import in_cells
from dpsql.release.design.coordinates import Builder
from dpsql.release.design.encodings import encoded
from dpsql.release.design.group_vectors import across
from dpsql.release.design.requirements import GroupRequirement
from dpsql.release.design.subcounts import worth_a_count
from dpsql.release.design.weights import weighted
from dpsql.release.expected_error import mean_log_error
from dpsql.release.identity_key import IdentityKey
from dpsql.release.parts import Lattice, l1_of
from dpsql.schema.frozen import dataclass

_MANY = 16
"""With more aggregates only the best design is weighted, to save time."""
_EXACT = Fraction(2**20)
"""The epsilon that determines the precision of measurements of public tables."""
_WORTH = 0.005
_TIE = 0.001


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """The requirements of a design. law: "gaussian", "split" (Laplace noise, the budget split), else the joint Laplace
    distribution."""

    analysis: Analysis
    epsilon: Fraction
    wanted: GroupRequirement
    law: str

    def lattice(self, **more: bool) -> Lattice:
        """Return the plain design of sums and counts, except for the additional requirements in `more`."""
        wanted = replace(self.wanted, public=None, **more)
        return _lattice(IdentityKey(self.analysis), self.epsilon, wanted)


Candidates = Callable[[DesignRequest, Lattice], Iterable[Lattice]]
"""Generates alternatives to the plain design."""


def lower(analysis: Analysis, epsilon: Fraction, wanted: GroupRequirement, *, law: str) -> Lattice:
    """Lower an analysed plan's aggregations by the design with the least error by public facts, among the plain one and
    all candidates."""
    asked = DesignRequest(analysis, epsilon, wanted, law)
    plain = asked.lattice()
    found = [plain, *chain.from_iterable(each(asked, plain) for each in CANDIDATES)]
    public = analysis.public_count  # otherwise the same values are noisy in every design
    designs = [each for each in found if each.exact >= plain.exact] if public else found
    best = plain if len(designs) == 1 else min(designs, key=lambda lattice: _weighed(lattice, plain, asked))
    if law != "gaussian" or len(plain.estimates) < 2 or wanted.selects or wanted.levels:
        return best
    among = designs if len(plain.estimates) <= _MANY else [best]
    others = chain.from_iterable(weighted(each, analysis) for each in among)
    return min((best, *others), key=lambda lattice: error_of(lattice, analysis, epsilon, law))


def _sums(asked: DesignRequest, plain: Lattice) -> Iterable[Lattice]:
    """Yield designs for a SUM without a requested count: uncentred, or centred with the count of all rows. A separate
    count would add (l + u) / 2 times its noise. Under bounded neighbours an uncentred sum moves no further, so it may
    be uncentred even if its count is measured."""
    if asked.analysis.neighbours is Neighbours.BOUNDED and any(
        each.kind.linear and None not in (each.sum, each.count) for each in plain.estimates
    ):
        yield asked.lattice(raw=True)
    if any(each.count is None for each in plain.estimates):
        if asked.analysis.private:
            yield from _around(asked, asked.lattice(on_all=True), on_all=True)
        else:
            yield asked.lattice(centre_all=True)


def _around(asked: DesignRequest, lattice: Lattice, **more: bool) -> Iterable[Lattice]:
    """Yield a design, if it is not the plain one, and its variant with counts of some rows less half the count of
    all."""
    if more:
        yield lattice
    if asked.law != "split" and worth_a_count(lattice.parts, lattice.coordinates):
        yield asked.lattice(around=True, **more)


def _shares(asked: DesignRequest, _plain: Lattice) -> Iterable[Lattice]:
    """Yield designs of shares of each row, for aggregates of two columns."""
    if asked.law not in ("gaussian", "split") and not asked.wanted.selects and not asked.wanted.levels:
        yield from encoded(asked.analysis)


def _cells(asked: DesignRequest, _plain: Lattice) -> Iterable[Lattice]:
    """Yield designs by cells. Excluded: conditions that select rows by sums of several classes, if a class has several
    coordinates, because the distribution of their noise is not computed."""
    for lattice in in_cells(asked.analysis, _scaled(asked.analysis, asked.epsilon), asked.wanted, law=asked.law):
        sizes = Counter(lattice.noisy_classes).values()
        if not asked.wanted.compares or len(sizes) < 2 or max(sizes) < 2:
            yield lattice


def _across(asked: DesignRequest, plain: Lattice) -> Iterable[Lattice]:
    """Yield designs with one noise vector for all public groups."""
    wanted = asked.wanted
    if wanted.public is not None and asked.law not in ("gaussian", "split") and not wanted.selects:
        yield from across(plain, wanted.public, asked.analysis, asked.epsilon)


CANDIDATES: list[Candidates] = [_sums, _around, _shares, _cells, _across]


@lru_cache(maxsize=64)
def _lattice(of: IdentityKey[Analysis], epsilon: Fraction, wanted: GroupRequirement) -> Lattice:
    """Return the lattice on the integers if their common multiple allows it, otherwise on coarser grids; it is the same
    for every distribution.

    Noise grows with a unit's contributions, so the grid may be coarser by the same factor."""
    analysis = of.value
    scaled = _scaled(analysis, epsilon)
    lattice = Builder(analysis, scaled, wanted, coarse=False).build()
    if lattice is None:
        lattice = Builder(analysis, scaled, wanted, coarse=True).build()
    assert lattice is not None  # coarse grids always have a common scale
    return lattice


def _scaled(analysis: Analysis, epsilon: Fraction) -> Fraction:
    """Return the epsilon per contribution."""
    return epsilon / analysis.bounds.rows.l1 if analysis.private else _EXACT


def _weighed(lattice: Lattice, plain: Lattice, asked: DesignRequest) -> float:
    """Return the error, slightly increased for all designs but the plain one, which wins ties because it has fewer
    coordinates."""
    return error_of(lattice, asked.analysis, asked.epsilon, asked.law) + (lattice is not plain) * _TIE


def error_of(lattice: Lattice, analysis: Analysis, epsilon: Fraction, law: str) -> float:
    """Return the mean logarithm of the aggregations' errors, up to a constant common to all designs. Cells must gain
    half a percent: otherwise a query keeps its design, and its key in ledgers."""
    noisy = [place for place, each in enumerate(lattice.coordinates) if each.noisy]
    classes = lattice.noisy_classes
    if lattice.across is not None:
        plan = replace(lattice.across, parts=lattice.parts)
        law_of_all = GroupVectorLaplace.calibrate(reach_across(plan, lattice.noisy, analysis), epsilon)
        return mean_log_error(lattice, dict.fromkeys(noisy, law_of_all.spread * float(epsilon) ** 2)) + _WORTH
    reach, d = _reach(IdentityKey(lattice), IdentityKey(analysis)), len(noisy)
    worth = _WORTH if lattice.classes else 0.0
    if (classes or d == 1) and law != "gaussian":  # may use integers, which need less noise than the line
        noise = ClassLaplace.calibrate(replace(reach, classes=classes or (0,)), epsilon)
        spreads = [noise.of(row).spread * float(epsilon) ** 2 for row in range(d)]
        return mean_log_error(lattice, dict(zip(noisy, spreads, strict=True))) + worth
    if law == "gaussian":
        spread = float(reach.l2_squared)
    elif lattice.divided or law == "split" or lattice.better_apart(reach):
        spread = 2.0 * float(l1_of(reach)) ** 2
    else:
        spread = (d + 1) * (d + 2) / 3 * float(reach.cube_sensitivity) ** 2
    return mean_log_error(lattice, dict.fromkeys(noisy, spread)) + worth


@lru_cache(maxsize=256)
def _reach(lattice: IdentityKey[Lattice], analysis: IdentityKey[Analysis]) -> Reach:
    """Return the sensitivity of all noisy coordinates, for any distribution."""
    made = lattice.value
    return reach_of(made.parts, made.noisy, analysis.value, made.noisy_classes)
