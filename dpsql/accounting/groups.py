"""Group privacy: the loss of one event towards k people together, by each known rule; NaN if a rule does not apply.

    pure               k epsilon (Dwork, Roth 2014, theorem 2.2)
    approximate        from the event's own curve d(e): (k e, d(e) (e^(k e) - 1)/(e^e - 1)) (Vadhan 2017, lemma 2.2),
                       for the least e that keeps the second number at most delta
    zcdp               k^2 rho (Bun, Steinke 2016, proposition 1.9), tight conversion
    rdp_proposition_2  for the least c with 2^c >= k: at order alpha/2^c, alpha >= 2^(c + 1), 3^c times the divergence
                       of order alpha (Mironov 2017, proposition 2), best order, tight conversion
    rdp                the distribution's own curve at k times the sensitivity: Gaussian k^2 rho, others k epsilon
    exact              k people change the sum k times as far before noise is added: the distribution's exact curve for
                       that sensitivity; for an epsilon-DP step, the worst (k epsilon)-DP step

Only the rule `approximate` applies to an (epsilon, delta)-DP step; no exact curve is known for a zCDP step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpsql.accounting import accountants, renyi, side_by_side
from dpsql.accounting.losses import growth
from dpsql.core.conversion import delta_of_rho
from dpsql.core.events import Event, Steps, Tally
from dpsql.core.rounding import above, at_least, below, raised


def compared(event: Event, size: int, delta: Fraction) -> dict[str, float]:
    """Return the epsilon for `size` people at 0 <= delta < 1 by every rule, each rounded up."""
    steps = Steps.of([event])
    epsilons = dict.fromkeys(("pure", "approximate", "zcdp", "rdp_proposition_2", "rdp", "exact"), math.nan)
    epsilons["approximate"] = approximate(steps, size, delta)
    if steps.own_deltas:
        return epsilons
    apart = farther(steps, size)
    epsilons["pure"] = math.nan if steps.rhos else at_least(apart.pure)
    epsilons["zcdp"] = accountants.zcdp(apart, delta)
    epsilons["rdp_proposition_2"] = proposition_2(steps, size, delta)
    epsilons["rdp"] = accountants.rdp(apart, delta)
    epsilons["exact"] = side_by_side.pld(apart, delta)
    return epsilons


def farther(steps: Steps, size: int) -> Steps:
    """Return the steps for `size` people, with every sensitivity multiplied by `size`."""

    def times(tally: Tally, factor: int) -> Tally:
        return {key * factor: count for key, count in tally.items()}

    return Steps(
        laplace=times(steps.laplace, size),
        response=times(steps.response, size),
        gaussian=times(steps.gaussian, size**2),
        concentrated=times(steps.concentrated, size**2),
    )


def proposition_2(steps: Steps, size: int, delta: Fraction) -> float:
    """Return the epsilon of Mironov's group privacy at its best order; NaN for delta 0."""
    if not delta:
        return math.nan
    c = (size - 1).bit_length()
    own = renyi.curve_of(steps)

    def curve(s: renyi.FloatArray) -> renyi.FloatArray:
        return np.asarray(3**c * own(2**c * (1 + s) - 1))

    return renyi.best(curve, below(delta), above(steps.rho * 6**c), least=1.0 if c else 0.0)


def approximate(steps: Steps, size: int, delta: Fraction) -> float:
    """Return k e for the least e found with d(e) growth(e, k) <= delta. Since the growth is at least k, d(e) = delta/k
    gives a lower bound of e; from there e grows in steps of a tenth, and the first valid e is refined."""
    most = math.inf if steps.rhos else above(steps.pure)
    curve = _own_curve(steps)

    def holds(epsilon: float) -> bool:
        lost = curve(epsilon)
        times = growth(epsilon, size)
        return lost == 0 or (times is not None and Fraction(lost) * times <= delta)

    low = _own_epsilon(steps, delta / size)
    if math.isnan(low):
        return math.nan
    high = min(low, most)
    while not holds(high):
        if high >= most or high > 1e12:
            return math.nan
        low, high = high, min(most, high * 1.1 + 1e-12)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return raised(size * high) if high < most else at_least(steps.pure * size)


_LEAST = 5e-324
"""The smallest float above 0: smaller numbers are rounded up to it."""


def _own_curve(steps: Steps) -> Callable[[float], float]:
    if steps.concentrated:
        [(rho, count)] = steps.concentrated.items()
        return lambda epsilon: max(raised(delta_of_rho(above(rho * count), epsilon)), _LEAST)
    return lambda epsilon: side_by_side.delta_of(steps, Fraction(epsilon))


def _own_epsilon(steps: Steps, delta: Fraction) -> float:
    return accountants.zcdp(steps, delta) if steps.concentrated else side_by_side.pld(steps, delta)
