"""HAVING, and WHERE over an answer, as windows of noisy values: what a row that passes says of its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpsql.estimates import estimate
from dpsql.noise_expressions import Linear, form_of
from dpsql.noise_given import Weights, Window, coordinates_of, weights_of
from dpsql.privacy.mechanisms import Noise
from dpsql.privacy.truncated import tail_of
from dpsql.privacy.truncated_sums import tail_of_sum
from dpsql.release import Release, Released
from dpsql.release_draws import EXACT
from dpsql.sql.expressions import Call, Column, Expr, IntervalEnd, Literal, Report, Slot, Vector, call, evaluate, walk
from dpsql.sql.functions import FUNCTIONS

Floats = NDArray[np.float64]
Meaning = Callable[[Column], Expr | None]
"""What a column of an answer is over the released slots; None for what was computed of several."""
Reader = Callable[[Released], Callable[[Slot | Column], Vector]]
"""How an expression's leaves are read from released values."""

_SAME, _TURNED = ("ge", "gt"), ("le", "lt")
_NEGATED = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}
_PROBES = 65
_FARTHEST = 2.0**62


def sources(release: Release, expr: Expr, meaning: Meaning) -> frozenset[int]:
    """The noisy coordinates that an expression depends on. (Values that were drawn have chance of their own.)"""
    found: frozenset[int] = frozenset()
    for part in walk(expr):
        held = meaning(part) if isinstance(part, Column) else part
        if held is None:
            return frozenset(place for place, each in enumerate(release.coordinates) if each.noisy)
        for leaf in walk(held):
            inner = leaf.expr if isinstance(leaf, IntervalEnd | Report) else leaf
            found |= frozenset[int]().union(*(_of_slot(release, each) for each in walk(inner)))
    return found


def is_noisy(release: Release, expr: Expr) -> bool:
    """Whether an expression over released slots has chance in it; the ends of intervals speak for themselves."""
    first = len(release.query.plan.keys)
    slots = [part.index - first for part in walk(expr) if isinstance(part, Slot) and part.index >= first]
    exact = {place for draw in release.draws if draw.mechanism == EXACT for place in draw.places}
    chosen = [release.estimates[place].chosen for place in slots]
    return bool(sources(release, expr, lambda _column: None)) or any(
        each is not None and each.place not in exact for each in chosen
    )


def _of_slot(release: Release, expr: Expr) -> frozenset[int]:
    place = expr.index - len(release.query.plan.keys) if isinstance(expr, Slot) else -1
    if not 0 <= place < len(release.estimates):
        return frozenset()
    each = release.estimates[place]
    return frozenset() if each.chosen is not None else coordinates_of(release, each.places)


def conditions(
    release: Release, condition: Expr | None, meaning: Meaning, reader: Reader
) -> Iterator[Window | frozenset[int]]:
    """What a condition says of noise: for each of its conjuncts a window, or the coordinates of one that is none;
    nothing of those on keys and other values without noise."""
    for each in _conjuncts(condition):
        noisy = sources(release, each, meaning)
        if noisy:
            yield (_window(release, each, meaning, reader) if release.levels is None else None) or noisy


def _conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Conditions that are all true where this one is, and not all where it is not."""
    if condition is None:
        return
    name = condition.function.name if isinstance(condition, Call) else ""
    args = condition.args if isinstance(condition, Call) else ()
    if name == "and":
        for arg in args:
            yield from _conjuncts(arg)
        return
    if name == "not" and isinstance(args[0], Call) and args[0].function.name in _NEGATED:
        turned = call(FUNCTIONS[_NEGATED[args[0].function.name]], *args[0].args)  # NULL stays NULL
        yield turned if turned is not None else condition
        return
    if name == "eq":
        both = [call(FUNCTIONS[word], *args) for word in ("ge", "le")]
        if both[0] is not None and both[1] is not None:
            yield from (each for each in both if each is not None)
            return
    yield condition


def _window(release: Release, condition: Expr, meaning: Meaning, reader: Reader) -> Window | None:
    """The window of a sum of noisy values of one vector that is compared with a constant; None for what is not so.

    Where it ends is found by evaluating the condition itself, so that no rounding of numbers can move it (of several
    coordinates along the widest, to a step)."""
    if not isinstance(condition, Call) or condition.function.name not in _NEGATED:
        return None
    first, second = (meaning(arg) if isinstance(arg, Column) else arg for arg in condition.args)
    if first is None or second is None:
        return None
    forms = [form_of(release, arg) if not isinstance(arg, Literal) else arg for arg in (first, second)]
    form = next((each for each in forms if isinstance(each, Linear)), None)
    bound = next((each.value for each in forms if isinstance(each, Literal)), None)
    if form is None or isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
        return None
    weights = weights_of(release, form.weights)
    everything = {
        place for feature, weight in form.weights.items() if weight for place, _ in release.lattice.weights(feature)
    }
    if not weights or everything != set(weights):  # what has no noise differs from group to group
        return None
    place = max(weights, key=lambda each: abs(weights[each]))
    worth, share, coordinate = weights[place], release.share_of(place), release.coordinates[place]
    if share is None or not set(weights) <= set(share.places):
        return None

    def holds(steps: Floats) -> NDArray[np.bool_]:
        made = np.zeros((len(release.coordinates), len(steps)))
        made[place] = steps * coordinate.unit
        values = release._features(made)
        drawn = np.zeros((release.width - len(values), len(steps)))
        read = reader(Released((), np.concatenate([values, drawn])))
        verdict = evaluate(condition, read, len(steps))
        return np.asarray(verdict.values.astype(bool) & verdict.where_valid())

    middle = (float(bound) - form.constant) / worth
    found = _switch(holds, middle, math.ceil(1 / abs(worth)) + 4 + abs(middle) * 1e-12)
    if found is None:
        return None
    after, rising = found
    if len(weights) > 1:
        return _of_several(share.noise, weights, worth * after, above=rising == (worth > 0))
    tail = tail_of(share.noise)
    least = 0.0 if coordinate.row.least >= 0 else -math.inf
    low, high = (after, math.inf) if rising else (-math.inf, after - 1)
    return None if tail is None else Window({place: coordinate.unit}, coordinate.unit, tail, low, high, least)


def _of_several(noise: Noise, weights: Weights, bound: float, *, above: bool) -> Window | None:
    """The window of a combination of coordinates above or below a bound."""
    found = tail_of_sum(noise, tuple(abs(each) for each in weights.values()))
    if found is None:
        return None
    tail, unit = found
    low, high = (bound / unit, math.inf) if above else (-math.inf, bound / unit)
    return Window(weights, unit, tail, low, high)


def _switch(holds: Callable[[Floats], NDArray[np.bool_]], middle: float, margin: float) -> tuple[float, bool] | None:
    """The first whole number after which a condition on them changes, and whether it becomes true there; None where it
    does not change within the margin."""
    if not abs(middle) < _FARTHEST:
        return None
    low, high = math.floor(middle - margin), math.ceil(middle + margin)
    before, rising = (bool(each) for each in holds(np.array([low, high], dtype=np.float64)))
    if before == rising:
        return None
    while high - low > 1:
        points = np.unique(np.floor(np.linspace(low, high, _PROBES)))
        if len(points) < 3:  # as close as doubles are there
            break
        changed = int(np.argmax(holds(points) == rising))
        low, high = int(points[changed - 1]), int(points[changed])
    return float(high), rising


def of_having(release: Release) -> tuple[Meaning, Reader]:
    """How HAVING reads: slots as they are, unrounded."""
    first = len(release.query.plan.keys)

    def reader(released: Released) -> Callable[[Slot | Column], Vector]:
        def read(leaf: Slot | Column) -> Vector:
            assert isinstance(leaf, Slot)  # HAVING is over released values
            return estimate(release.estimates[leaf.index - first], released.values)

        return read

    return (lambda _column: None), reader
