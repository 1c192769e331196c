"""Total cost of a ledger of steps by each accountant: the least epsilon it can prove for a given delta.

Every value is an upper bound, rounded up (`rounding`). NaN means that the accountant proves nothing: it does not know
the steps' noise distribution, the steps' own deltas use up delta, delta is 0 although the accountant needs some, or its
formula exceeds the range of floats. No steps cost 0.0 by every accountant, as do steps with only deltas that fit in
delta.

The ledger is fixed beforehand, or its losses are (`pld`, `rdp` with the best order). As the stopping rule of a session
that chooses queries by earlier answers, only `basic`, `zcdp` and one order of RDP are sound (Feldman, Zrnic 2021).

Own deltas of steps are subtracted first. An (epsilon, delta)-DP step is an epsilon-DP step except for an event of
probability delta (Kairouz, Oh, Viswanath 2015, theorem 3.3). Outside the union of these events, whose probability is at
most the sum of the deltas, only the other steps and the epsilons remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpsql.accounting import gaussian_curve as gaussian
from dpsql.accounting import renyi
from dpsql.accounting.responses import Responses
from dpsql.core.events import Steps
from dpsql.core.rounding import RELATIVE_MARGIN, above, at_least, below, raised
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, as_written

Accountant = Callable[[Steps, Fraction], float]
"""Maps steps and 0 <= delta < 1, as of `loss.as_delta`, to epsilon."""


def basic(steps: Steps, delta: Fraction) -> float:
    """Sum the steps (Dwork, Roth 2014, theorem 3.16). Epsilons add exactly. The rest of delta after the own deltas is
    split equally among the k steps known only by their rho, Gaussians included, at the tight epsilon. NaN if the part
    is 0."""
    slack = delta - steps.own_delta
    if slack < 0 or (steps.rhos and slack == 0):
        return math.nan
    if not steps.rhos:
        return at_least(steps.pure)
    each, counts = epsilons_of_rhos(steps, below(slack / sum(steps.rhos.values())))
    return raised(above(steps.pure) + math.fsum(each * counts))


def epsilons_of_rhos(steps: Steps, delta: float) -> tuple[renyi.FloatArray, renyi.FloatArray]:
    """Return the tight epsilon at delta of one step of each rho, and the number of such steps: Gaussians by their exact
    curve, the others by the conversion of zCDP."""
    epsilons, counts = [], []
    if steps.gaussian:
        rhos, n = renyi.arrays(steps.gaussian)
        epsilons.append(gaussian.epsilons_of(mu_of(rhos), delta))
        counts.append(n)
    if steps.concentrated:
        rhos, n = renyi.arrays(steps.concentrated)
        epsilons.append(np.array([zcdp_epsilon(rho, delta) for rho in rhos]))
        counts.append(n)
    return np.concatenate(epsilons), np.concatenate(counts)


def mu_of(rho: renyi.FloatArray) -> renyi.FloatArray:
    """Return the sensitivity, in standard deviations, of a Gaussian of this rho, rounded up."""
    return np.asarray(np.sqrt(2 * rho) * (1 + 1e-15))


def advanced(steps: Steps, delta: Fraction) -> float:
    """Advanced composition (Dwork, Rothblum, Vadhan 2010, theorem III.3), for steps of unequal epsilon
        sqrt(2 log(1/slack) sum eps^2) + sum eps (e^eps - 1).

    The loss of a step is at most eps and on average at most eps (e^eps - 1), whatever came before, so Azuma's
    inequality bounds the sum except for a probability `slack`. That is the rest of delta if all steps have a pure
    epsilon; otherwise half of it, and each of the k others has its tight epsilon for delta/(2k). NaN if slack is 0, or
    if e^eps exceeds floats. It may exceed `basic`: this is the theorem's own number.
    """
    slack = delta - steps.own_delta
    if not steps and slack >= 0:
        return 0.0
    if slack <= 0:
        return math.nan
    epsilons, counts = renyi.arrays(steps.epsilons)
    if steps.rhos:
        slack /= 2
        more, n = epsilons_of_rhos(steps, below(slack / sum(steps.rhos.values())))
        epsilons, counts = np.append(epsilons, more), np.append(counts, n)
    with np.errstate(over="ignore"):
        drift = float(counts @ (epsilons * np.expm1(epsilons)))
        spread = float(np.sqrt(counts) @ (np.sqrt(counts) * epsilons**2))
    found = raised(math.sqrt(-2 * math.log(below(slack)) * spread) + drift)
    return found if math.isfinite(found) else math.nan


def kov(steps: Steps, delta: Fraction) -> float:
    """Optimal composition of k steps of one epsilon (Kairouz, Oh, Viswanath 2015, theorem 3.3), solved for epsilon
    also between the steps of that theorem. NaN unless all steps have the same pure epsilon, or if their own deltas
    exceed delta."""
    slack = finite_part(steps, delta)
    if not steps or math.isnan(slack):
        return slack * 0
    if steps.rhos or len(steps.epsilons) != 1:
        return math.nan
    [(epsilon, count)] = steps.epsilons.items()
    return min(at_least(steps.pure), Responses(epsilon, count).epsilon_at(slack))


def finite_part(steps: Steps, delta: Fraction) -> float:
    """Return the delta left for the finite losses, 1 - (1 - delta)/prod(1 - own delta), rounded down; NaN if none is.

    With probability prod(1 - own delta) no step reveals everything, and given that the rest composes independently
    (Kairouz, Oh, Viswanath 2015, theorem 3.3). The product is at least 1 minus the sum, so an exact comparison with the
    sum decides if rounding cannot.
    """
    if not steps.own_deltas:
        return below(delta)
    used = math.fsum(-n * math.log1p(-above(own)) for own, n in steps.own_deltas.items())
    have = -math.log1p(-float(delta))
    left = -math.expm1(-max(0.0, have - used - 1e-14 * (have + used)))
    return left if left > 0 else 0.0 if steps.own_delta <= delta else math.nan


def zcdp_classic(steps: Steps, delta: Fraction) -> float:
    """Return rho + 2 sqrt(rho log(1/delta)) (Bun, Steinke 2016, proposition 1.3). NaN if no delta is left."""
    slack = delta - steps.own_delta
    if not steps and slack >= 0:
        return 0.0
    if slack <= 0:
        return math.nan
    rho = above(steps.rho)
    return raised(rho + 2 * math.sqrt(rho * -math.log(below(slack))))


def zcdp(steps: Steps, delta: Fraction) -> float:
    """zCDP, tightly converted (Canonne, Kamath, Steinke 2020, proposition 12). NaN if no delta is left."""
    slack = delta - steps.own_delta
    if not steps and slack >= 0:
        return 0.0
    return zcdp_epsilon(above(steps.rho), below(slack)) if slack > 0 else math.nan


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the least epsilon by the tight conversion of rho-zCDP for 0 < delta < 1, rounded up."""
    return renyi.best(lambda s: (1 + s) * rho, delta, rho)


def rdp(steps: Steps, delta: Fraction) -> float:
    """Renyi DP with exact curves, the best order and the tight conversion. The orders include infinity, at which pure
    epsilons add up and no delta is needed. NaN if no delta is left and not all steps are pure."""
    slack = delta - steps.own_delta
    if slack < 0 or (steps.rhos and slack == 0):
        return math.nan
    infinite = math.inf if steps.rhos else at_least(steps.pure)
    if not steps or slack == 0:
        return infinite
    return min(infinite, renyi.best(renyi.curve_of(steps), below(slack), above(steps.rho)))


def rdp_at(steps: Steps, delta: Fraction, alpha: float, *, conversion: str = "tight") -> float:
    """Renyi DP at one order 1 < alpha <= infinity, with the "tight" conversion or the "classic" one (Mironov 2017,
    proposition 3). NaN as for `rdp`, at order infinity also for steps without a pure epsilon.
    Raises InvalidPrivacyParameter, InvalidArgument."""
    if isinstance(alpha, bool) or not alpha > 1:
        raise InvalidPrivacyParameter(f"alpha must be a number > 1, got {as_written(alpha)}.")
    if conversion not in {"tight", "classic"}:
        raise InvalidArgument(f"no conversion {conversion!r}.", hint='Write "tight" or "classic".')
    slack = delta - steps.own_delta
    if not steps and slack >= 0:
        return 0.0
    if math.isinf(alpha):
        return math.nan if steps.rhos or slack < 0 else at_least(steps.pure)
    if slack <= 0:
        return math.nan
    s = np.array([alpha - 1.0])
    convert = renyi.tight if conversion == "tight" else renyi.classic
    found = convert(renyi.curve_of(steps)(s), s, math.log(below(slack)) * (1 + RELATIVE_MARGIN))
    return raised(float(found[0]))
