"""Adversaries against a privacy filter, and the worst that any of them can do, exactly.

A step is a pair of laws on a few outcomes (what it says on one table and on its neighbour) and its cost. An adversary
chooses the next step after seeing all earlier outcomes, as long as the filter admits it. What an adversary can still
gain depends on how often each outcome of each step was seen, not on their order; so the best of all adversaries with
some menu of steps is found by working backwards, with no sampling and no statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.filters import Filter, Watch

Law = tuple[float, ...]
_ORDERS = 1 + np.logspace(-3, 4, 12_000)
_FEW_ORDERS = 1 + np.logspace(-2, 3, 200)
MARGIN = 1 + 1e-5


@dataclass(frozen=True)
class Step:
    """Two laws on the same outcomes, what the step is charged, and the parts of a partition that it reads (or all)."""

    one: Law
    other: Law
    cost: Cost
    parts: tuple[Part, ...] = ()

    @property
    def swapped(self) -> Step:
        return replace(self, one=self.other, other=self.one)


Admit = Callable[[Any, Step], Any]
"""(state, next step) -> the state after it, None where it is refused. The first state is None."""


def up(number: float) -> Fraction:
    """A fraction that is a little above the number."""
    return Fraction(math.ceil(number * MARGIN * 2**60), 2**60)


def rho_of(one: Sequence[float], other: Sequence[float], orders: NDArray[np.float64] = _ORDERS) -> float:
    """The least rho with Renyi divergence at most alpha rho for all alpha > 1, either way; up to MARGIN.

    Beyond the last order it is at most the largest loss by the order, which is taken for it.
    """
    found = 0.0
    for p, q in ((np.array(one), np.array(other)), (np.array(other), np.array(one))):
        loss = np.log(p) - np.log(q)
        exponents = np.log(p)[None, :] + (orders[:, None] - 1) * loss[None, :]
        largest = exponents.max(axis=1)
        moments = largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1))
        found = max(found, float((moments / (orders - 1) / orders).max()), float((p * loss).sum()))
        found = max(found, float(loss.max() / orders[-1]))
    return found


def hockey(one: Sequence[float], other: Sequence[float], epsilon: float) -> float:
    """The largest over events E of P(E) - e^epsilon Q(E)."""
    factor = math.exp(epsilon)
    return math.fsum(max(0.0, p - factor * q) for p, q in zip(one, other, strict=True))


def either_way(one: Sequence[float], other: Sequence[float], epsilon: float) -> float:
    return max(hockey(one, other, epsilon), hockey(other, one, epsilon))


# Steps


def response(epsilon: Fraction) -> Step:
    """Randomised response: the worst of all epsilon-DP steps (Kairouz, Oh, Viswanath 2015)."""
    high = 1 / (1 + math.exp(-epsilon))
    return Step((high, 1 - high), (1 - high, high), Cost.of(epsilon))


def leaking(epsilon: Fraction, delta: Fraction) -> Step:
    """Randomised response that says everything with probability delta: the worst of all (epsilon, delta)-DP steps."""
    (high, low), d = response(epsilon).one, float(delta)
    return Step(
        (d, (1 - d) * high, (1 - d) * low, 0.0), (0.0, (1 - d) * low, (1 - d) * high, d), Cost.of(epsilon, delta)
    )


def catastrophe(delta: Fraction) -> Step:
    """Says everything with probability delta, else nothing; of the one table only."""
    return Step((float(delta), 1 - float(delta)), (0.0, 1.0), Cost.of(Fraction(0), delta))


def _binned(sigma: float, bins: int) -> tuple[Law, Law]:
    """Which of some intervals a Gaussian number is in, its mean 0 or 1."""
    edges = np.linspace(0.5 - 3 * sigma, 0.5 + 3 * sigma, bins - 1)
    laws = []
    for mean in (0.0, 1.0):
        below = [0.5 * math.erfc(-(edge - mean) / sigma / math.sqrt(2)) for edge in edges]
        laws.append(tuple(np.diff([0.0, *below, 1.0]).tolist()))
    return laws[0], laws[1]


def gaussian(sigma: float, bins: int = 4, epsilon: float | None = None) -> Step:
    """Gaussian noise seen through intervals; its rho is measured, and with `epsilon` its delta there too."""
    one, other = _binned(sigma, bins)
    return _measured(one, other, epsilon)


def spike(mass: float, loss: float, epsilon: float | None = None) -> Step:
    """One outcome of some mass and loss, the rest about even: close to the worst that zCDP allows at one epsilon."""
    return _measured(*_spike(mass, loss), epsilon)


def _spike(mass: float, loss: float) -> tuple[Law, Law]:
    return (mass, 1 - mass), (mass * math.exp(-loss), 1 - mass * math.exp(-loss))


def _measured(one: Law, other: Law, epsilon: float | None) -> Step:
    rho = up(rho_of(one, other))
    if epsilon is None:
        return Step(one, other, Cost(None, rho=rho))
    pair = Fraction(repr(epsilon)), up(either_way(one, other, epsilon))
    return Step(one, other, Cost(*pair, rho))


@lru_cache(maxsize=64)
def worst_spike(epsilon: float, rho: float) -> tuple[float, float]:
    """The mass and loss of a spike that is rho-zCDP and has about the largest delta at epsilon."""
    best = (0.0, 0.0, 0.0)
    for loss in epsilon + np.linspace(0.1, 3, 30) * math.sqrt(2 * rho):
        low, high = math.log(1e-12), 0.0
        for _ in range(20):
            middle = (low + high) / 2
            fits = rho_of(*_spike(math.exp(middle), loss), _FEW_ORDERS) * 1.001 <= rho
            low, high = (middle, high) if fits else (low, middle)
        best = max(best, (math.exp(low) * (1 - math.exp(epsilon - loss)), math.exp(low), float(loss)))
    return best[1], best[2]


def thresholded(step: Step, delta: Fraction) -> Step:
    """The same beside a group that only the one table has, which is shown with probability delta."""
    d = float(delta)
    one = (d, *((1 - d) * p for p in step.one))
    return Step(one, (0.0, *step.other), step.cost + Cost.of(Fraction(0), delta))


# Filters as adversaries see them


def held(by: Filter) -> Admit:
    """As a ledger does: the sum of all costs, the next one included, has to be admitted."""

    def after(total: Cost | None, step: Step) -> Cost | None:
        new = (total or FREE) + step.cost
        return new if by.admits(new) else None

    return after


def held_by_watch(by: Filter, *, moves: bool) -> Admit:
    """The same for units that lie in one part of each partition (`moves`: and can change to another one). The state:
    what was charged for which parts."""

    def after(state: tuple[tuple[tuple[Part, ...], Cost], ...] | None, step: Step) -> Any:
        sums = dict(state or ())
        watch = Watch(by, moves=moves)
        for parts, cost in sums.items():
            watch.add(cost, parts)
        if not watch.admits(step.cost, step.parts):
            return None
        sums[step.parts] = sums.get(step.parts, FREE) + step.cost
        return tuple(sorted(sums.items(), key=str))

    return after


# The best adversary


class TooManyError(Exception):
    """More positions than are looked at: take a smaller menu."""


@dataclass(frozen=True)
class Worst:
    """The largest delta at `epsilon` over all adversaries, and how many positions they can come to."""

    delta: float
    positions: int


def worst(menu: Sequence[Step], admit: Admit, epsilon: float, *, most: int = 10**6) -> Worst:
    """The largest hockey-stick divergence that steps of the menu, adaptively chosen, can reach."""
    factor = math.exp(epsilon)
    logs = [tuple((_log(p), _log(q)) for p, q in zip(step.one, step.other, strict=True)) for step in menu]
    outcomes = [(i, j) for i, step in enumerate(menu) for j in range(len(step.one))]
    place = {each: n for n, each in enumerate(outcomes)}
    states: dict[tuple[Hashable, int], Any] = {}
    known: dict[tuple[Hashable, tuple[int, ...]], float] = {}

    def after(state: Any, i: int) -> Any:
        if (state, i) not in states:
            states[state, i] = admit(state, menu[i])
        return states[state, i]

    def value(state: Any, counts: tuple[int, ...], log_p: float, log_q: float) -> float:
        """What is gained from here on, as a part of the whole: the masses of the path are in it."""
        if log_p == -math.inf:
            return 0.0
        if log_q == -math.inf:
            return math.exp(log_p)  # everything is known: nothing more to gain
        found = known.get((state, counts))
        if found is not None:
            return found
        if len(known) >= most:
            raise TooManyError
        best = max(0.0, math.exp(log_p) - factor * math.exp(log_q))
        for i in range(len(menu)):
            new = after(state, i)
            if new is None:
                continue
            gained = 0.0
            for j, (p, q) in enumerate(logs[i]):
                n = place[i, j]
                gained += value(new, (*counts[:n], counts[n] + 1, *counts[n + 1 :]), log_p + p, log_q + q)
            best = max(best, gained)
        known[state, counts] = best
        return best

    start = (0,) * len(outcomes)
    return Worst(value(None, start, 0.0, 0.0), len(known))


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf


def worst_either_way(menu: Sequence[Step], admit: Admit, epsilon: float, *, most: int = 10**6) -> float:
    """Both neighbours in both roles."""
    back = [step.swapped for step in menu]
    return max(worst(each, admit, epsilon, most=most).delta for each in (menu, back))
