"""From aggregations to integers: which sums are taken, on which lattice, and how the answers follow from them.

Each aggregation needs a count, a sum, or both. A count moves by 1 a row. A sum of values in [L, U] is taken centred,
2 q - N for a value on the grid q = 0..N of [L, U], whenever the matching count is there too: one row then moves it by
at most N instead of by the larger end, and SUM = centred sum + midpoint * count, AVG = midpoint + centred sum / count.
Coordinates are scaled by whole numbers to one common sensitivity (or just below it), which follows from their parts
(`core.reach`): a design says what is asked for, never what it costs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.reach import reach_of
from dpsql.core.sensitivity import Analysis
from dpsql.release.design.coordinates import Builder, Wanted
from dpsql.release.design.encodings import encoded
from dpsql.release.design.subcounts import worth_a_count
from dpsql.release.expected_error import mean_log_error
from dpsql.release.parts import Lattice, l1_of

_EXACT = Fraction(2**20)
"""What is asked of nobody's rows is taken as exactly as at this epsilon."""


def lower(analysis: Analysis, epsilon: Fraction, wanted: Wanted, *, law: str) -> Lattice:
    """Lower an analysed plan's aggregations.

    A SUM whose count nobody asks for can be taken as it is, or centred beside a count of its own: whichever has less
    error by public facts. law: "gaussian", "split" (Laplace noise, the budget split), else the joint Laplace law.
    """
    designs = [_lattice(analysis, epsilon, wanted)]
    if any(each.count is None for each in designs[0].estimates):
        designs.append(_lattice(analysis, epsilon, replace(wanted, centre_all=True)))
    if law != "split" and worth_a_count(designs[0].parts, designs[0].coordinates):
        designs += [_lattice(analysis, epsilon, replace(wanted, around=True))]
    if law not in ("gaussian", "split") and not wanted.selects and not wanted.levels:
        designs += encoded(analysis)
    return designs[0] if len(designs) == 1 else min(designs, key=lambda lattice: _error(lattice, analysis, law))


def _lattice(analysis: Analysis, epsilon: Fraction, wanted: Wanted) -> Lattice:
    """The lattice on the integers themselves where their common multiple allows it, else on coarser grids.

    Noise grows with the contributions of a unit, so the grid may be as much coarser."""
    scaled = epsilon / analysis.bounds.rows.l1 if analysis.private else _EXACT
    lattice = Builder(analysis, scaled, wanted, coarse=False).build()
    if lattice is None:
        lattice = Builder(analysis, scaled, wanted, coarse=True).build()
    assert lattice is not None  # coarse grids always have a common scale
    return lattice


def _error(lattice: Lattice, analysis: Analysis, law: str) -> float:
    """The mean logarithm of the aggregations' errors, up to what is common to all designs."""
    noisy = [place for place, each in enumerate(lattice.coordinates) if each.noisy]
    reach, d = reach_of(lattice.parts, lattice.noisy, analysis), len(noisy)
    if law == "gaussian":
        spread = float(reach.l2_squared)
    elif lattice.divided or law == "split" or lattice.better_apart(reach):
        spread = 2.0 * float(l1_of(reach)) ** 2
    else:
        spread = (d + 1) * (d + 2) / 3 * float(reach.cube_sensitivity) ** 2
    return mean_log_error(lattice, dict.fromkeys(noisy, spread))
