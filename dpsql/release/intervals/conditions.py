"""HAVING, and WHERE over an answer, as windows of noisy values: what a row's being shown implies about its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsql.core.measurement import Share
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace, law_of
from dpsql.core.mechanisms.noise import Noise, SplitLaplace
from dpsql.core.sensitivity.norms import never_negative
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, IntervalEnd, Literal, Report, Slot, Vector, call, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.release.choices import EXACT
from dpsql.release.intervals.averages import least_counts
from dpsql.release.intervals.shown_conditions import ShownCases, Weights, Window, coordinates_of, weights_of
from dpsql.release.output.estimate import estimate
from dpsql.release.output.noise_expressions import Linear, form_of
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.numbers import SOME_ROWS

Floats = NDArray[np.float64]
Meaning = Callable[[Column], Expr | None]
"""Maps a column of an answer to an expression over the released slots; None if it was computed from several rows."""
Reader = Callable[[ReleasedValues], Callable[[Slot | Column], Vector]]
"""Returns a reader of an expression's leaves for released values."""

_SAME, _TURNED = ("ge", "gt"), ("le", "lt")
_NEGATED = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}
_PROBES = 65
_FARTHEST = 2.0**62


def sources(release: Release, expr: Expr, meaning: Meaning) -> frozenset[int]:
    """Return the noisy coordinates that an expression depends on. (Selected values have separate randomness.)"""
    places: frozenset[int] = frozenset()
    for part in walk(expr):
        held = meaning(part) if isinstance(part, Column) else part
        if held is None:
            return frozenset(place for place, each in enumerate(release.coordinates) if each.noisy)
        for leaf in walk(held):
            inner = leaf.expr if isinstance(leaf, IntervalEnd | Report) else leaf
            places |= frozenset[int]().union(*(_of_slot(release, each) for each in walk(inner)))
    return places


def is_noisy(release: Release, expr: Expr) -> bool:
    """Return whether an expression over released slots is random; the ends of intervals are not counted."""
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
) -> Iterator[Window | ShownCases | frozenset[int]]:
    """Yield for each conjunct of a condition its windows, or the noisy coordinates if it has none. Nothing is yielded
    for conditions on keys and other values without noise."""
    for each in _conjuncts(condition):
        noisy = sources(release, each, meaning)
        if noisy:
            windows = _windows(release, each, meaning, reader)
            yield from windows
            if not windows:
                yield noisy


def _conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Yield conditions whose conjunction is true exactly where this one is."""
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


def _windows(release: Release, condition: Expr, meaning: Meaning, reader: Reader) -> list[Window | ShownCases]:
    """Return the windows of a comparison: two, or a `ShownCases`, for an average and a constant; one for sums of noisy
    values; none otherwise."""
    if not isinstance(condition, Call) or condition.function.name not in _NEGATED:
        return []
    args = [meaning(arg) if isinstance(arg, Column) else arg for arg in condition.args]
    found = [_of_average(release, condition, args), _of_sums(release, condition, args, reader)]
    return next((each for each in found if each), [])


def _of_average(release: Release, condition: Call, args: Sequence[Expr | None]) -> list[Window | ShownCases]:
    """Return the windows of AVG = centre + sum / count if the noisy count is at least 1/2. Compared with a constant c
    inside its range, where it is not clamped, it behaves like sum + (centre - c) count compared with 0. With a smaller
    count the average is the middle of the range, so that all such rows pass or none does. With an even smaller count it
    is NULL, and never passes."""
    place, bound = _average_and_number(release, args)
    if place is None:
        return []
    each, word = release.estimates[place], condition.function.name
    above, beyond = (word in _SAME) == isinstance(args[0], Slot), int(word in ("gt", "lt"))
    assert each.sum is not None
    assert each.count is not None
    some, sums = (
        _noisy_part(release, Linear(weights))
        for weights in ({each.count: 1.0}, {each.sum: 1.0, each.count: each.centre - bound})
    )
    if some is None or sums is None:
        return []
    window = _in_steps(release, *sums, 0.0, above=above, beyond=beyond)
    least = _in_steps(release, *some, SOME_ROWS, above=True)
    if window is None or least is None:
        return []
    middle = each.range.middle
    if (middle == bound and not beyond) or (middle > bound if above else middle < bound):
        return _also_of_few(release, place, some, (least, window))
    return [least, window]


def _average_and_number(release: Release, args: Sequence[Expr | None]) -> tuple[int | None, float]:
    """Return the average and the number, within its range, that are compared; None for other comparisons."""
    slot = next((arg for arg in args if isinstance(arg, Slot)), None)
    bound = next((_number(arg) for arg in args if isinstance(arg, Literal)), None)
    place = -1 if slot is None else slot.index - len(release.query.plan.keys)
    if bound is None or place < 0:
        return None, 0.0
    each = release.estimates[place]
    known = each.kind.averages and each.chosen is None and each.sum is not None and each.count is not None
    return place if known and each.range.lower < bound < each.range.upper else None, bound


def _also_of_few(
    release: Release, place: int, count: tuple[Share, Weights], some: tuple[Window, ...]
) -> list[Window | ShownCases]:
    """Return the cases of rows that are shown in one of these windows, or with a count below 1/2 that does not rule out
    rows."""
    known = _in_steps(release, *count, release.once(least_counts)[place], above=True)
    feature, least = release.estimates[place].count, some[0]
    if known is None or feature is None or math.isinf(least.low):
        return []
    few = replace(least, low=-math.inf, high=least.low - 1 if len(count[1]) == 1 else least.low)
    return [ShownCases(feature, some, (few.within(known),))]


def _in_steps(
    release: Release, share: Share, weights: Weights, bound: float, *, above: bool, beyond: int = 0
) -> Window | None:
    """Return the window of a sum that is at least, or at most, a bound, moved by `beyond` steps."""
    if len(weights) > 1:
        return _of_several(share, weights, bound, above=above)
    ((place, worth),) = weights.items()
    if above == (worth > 0):
        return _of_one(release, share, place, math.ceil(bound / worth) + beyond, math.inf)
    return _of_one(release, share, place, -math.inf, math.floor(bound / worth) - beyond)


def _number(literal: Literal) -> float | None:
    """Return the value of a finite constant."""
    value = literal.value
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number else None  # type: ignore[arg-type]


def _noisy_part(release: Release, form: Linear) -> tuple[Share, Weights] | None:
    """Return the coordinates of a sum, with their vector; None if other coordinates or noiseless terms occur, which
    differ from group to group."""
    weights = weights_of(release, form.weights)
    everything = {
        place for feature, weight in form.weights.items() if weight for place, _ in release.lattice.weights(feature)
    }
    share = release.share_of(next(iter(weights), None))
    if share is None or everything != set(weights) or not set(weights) <= set(share.places):
        return None
    return share, weights


def _of_sums(
    release: Release, condition: Call, args: Sequence[Expr | None], reader: Reader
) -> list[Window | ShownCases]:
    """Return the window of sums. Its end is found by evaluating the condition itself, so that rounding cannot move it
    (for several coordinates along the widest, to one step)."""
    forms: list[Linear] = []
    for arg in args:
        number = _number(arg) if isinstance(arg, Literal) else None
        form = None if arg is None else form_of(release, arg) if number is None else Linear({}, number)
        if not isinstance(form, Linear):
            return []
        forms.append(form)
    form = forms[0].plus(forms[1], -1.0)
    known = _noisy_part(release, form)
    if known is None:
        return []
    share, weights = known
    place = max(weights, key=lambda each: abs(weights[each]))
    worth, coordinate = weights[place], release.coordinates[place]

    def holds(steps: Floats) -> NDArray[np.bool_]:
        made = np.zeros((len(release.coordinates), len(steps)))
        made[place] = steps * coordinate.unit
        values = release.features_of(made)
        drawn = np.zeros((release.width - len(values), len(steps)))
        read = reader(ReleasedValues((), np.concatenate([values, drawn])))
        verdict = evaluate(condition, read, len(steps))
        return np.asarray(verdict.values.astype(bool) & verdict.where_valid())

    middle = -form.constant / worth
    found = _switch(holds, middle, math.ceil(1 / abs(worth)) + 4 + abs(middle) * 1e-12)
    if found is None:
        return []
    after, rising = found
    if len(weights) > 1:
        window = _of_several(share, weights, worth * after, above=rising == (worth > 0))
    else:
        window = _of_one(release, share, place, *((after, math.inf) if rising else (-math.inf, after - 1)))
    return [] if window is None else [window]


def _of_one(release: Release, share: Share, place: int, low: float, high: float) -> Window | None:
    """Return the window of one coordinate, in its steps."""
    from dpsql.accuracy.truncated import tail_of  # imported late: noise rarely selects rows

    coordinate, tail = release.coordinates[place], tail_of(law_of(share.noise, share.places, place))
    least = 0.0 if never_negative(release.lattice.parts, coordinate.terms, release.analysis) else -math.inf
    return None if tail is None else Window({place: coordinate.unit}, coordinate.unit, tail, low, high, least)


def _law_of_all(share: Share, places: Collection[int]) -> Noise:
    """Return the joint distribution of some coordinates: that of their class, or of independent ones if each class has
    one coordinate; otherwise it is not known."""
    noise = share.noise
    if not isinstance(noise, ClassLaplace):
        return noise
    laws = [noise.of(share.places.index(place)) for place in places]
    if len({noise.classes[share.places.index(place)] for place in places}) == 1:
        return laws[0]
    return SplitLaplace(noise.exact_scale, len(laws)) if all(law.dimension == 1 for law in laws) else noise


def _of_several(share: Share, weights: Weights, bound: float, *, above: bool) -> Window | None:
    """Return the window of a combination of coordinates above or below a bound."""
    from dpsql.accuracy.truncated_sums import tail_of_sum  # imported late, as above

    found = tail_of_sum(_law_of_all(share, weights), tuple(abs(each) for each in weights.values()))
    if found is None:
        return None
    tail, unit = found
    low, high = (bound / unit, math.inf) if above else (-math.inf, bound / unit)
    return Window(weights, unit, tail, low, high)


def _switch(holds: Callable[[Floats], NDArray[np.bool_]], middle: float, margin: float) -> tuple[float, bool] | None:
    """Return the first integer from which on a condition has changed, and whether it becomes true there; None if it
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
    """Return the meaning and reader for HAVING: unrounded slots. (Among aggregates, only counts and sums are read.)"""
    first = len(release.query.plan.keys)

    def reader(released: ReleasedValues) -> Callable[[Slot | Column], Vector]:
        def read(leaf: Slot | Column) -> Vector:
            assert isinstance(leaf, Slot)  # HAVING is over released values
            return estimate(release.estimates[leaf.index - first], released.values)

        return read

    return (lambda _column: None), reader
