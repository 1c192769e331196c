"""HAVING, ORDER BY, LIMIT and the SELECT list over released values. Post-processing: free, without access to the data.

Theory: post-processing preserves differential privacy (Dwork, Roth 2014, proposition 2.1).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, IntervalEnd, Literal, Report, Slot, Vector, unfiltered
from dpsql.plan.order import order_of
from dpsql.plan.query import Finish, GroupKey
from dpsql.plan.whole_outputs import whole_type
from dpsql.release.intervals.averages import empty_below
from dpsql.release.intervals.conditions import Meaning, conditions, is_noisy, of_having, sources
from dpsql.release.intervals.intervals import interval, reads_meaningless
from dpsql.release.intervals.shown_conditions import ShownCondition, threshold_of
from dpsql.release.output.estimate import estimate
from dpsql.release.output.integers import as_array, numbers_of, outward
from dpsql.release.output.whole_numbers import as_type, rounded_vector, whole_slots
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Places = NDArray[np.int64]
Read = Callable[[Any], Vector]


@dataclass(frozen=True)
class Answer:
    """The rows to show: a name, type and vector for each output.

    `groups`: the released group of each row; `exprs`: each output as an expression over the released slots, for the
    noise intervals. It is None for outputs computed by later stages, which are in `noisy` if they depend on noisy
    values. `given`: the condition that the rows are shown. `too_large`: columns with integers too large for a later
    stage."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    vectors: tuple[Vector, ...]
    groups: Places
    exprs: tuple[Expr | None, ...]
    given: ShownCondition = field(default_factory=ShownCondition)
    noisy: frozenset[str] = frozenset()
    too_large: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.groups)

    def at(self, places: Places) -> Answer:
        """Return the answer with these rows."""
        vectors = tuple(vector.at(places) for vector in self.vectors)
        return replace(self, vectors=vectors, groups=self.groups[places])

    def meaning(self, column: Column) -> Expr | None:
        """Return a column as an expression over the released slots; None if a later stage computed it."""
        return self.exprs[self.names.index(column.name)]


def finish(release: Release, released: ReleasedValues) -> Answer:
    """Return the answer's rows, in order."""
    with np.errstate(all="ignore"):
        return _finish(release, released)


def _finish(release: Release, released: ReleasedValues) -> Answer:
    query = release.query
    slots = slot_vectors(release, released)
    whole = whole_of(release, released)
    given = release.once(threshold_of)
    places = kept(
        query.finish.having, partial(evaluate, read=_reader(release, released, slots, given)), released.groups
    )
    given = ranked(release, release.once(_given), query.finish, len(places), _no_column)
    read = _reader(release, released, slots, given)
    keys = slots[: len(query.plan.keys)]
    if not query.finish.order:
        keys = [in_listed_order(*each) for each in zip(query.plan.keys, keys, strict=True)]
    keys = [numbers_of(slot, vector) for slot, vector in zip(query.slots, keys, strict=False)]
    outputs = [shown_output(release, released, each.expr, read, whole) for each in query.finish.outputs]
    answer = Answer(
        tuple(each.name for each in query.finish.outputs),
        tuple(kind for kind, _ in outputs),
        tuple(vector for _, vector in outputs),
        np.arange(released.groups),
        tuple(each.expr for each in query.finish.outputs),
        given,
        release.once(_noisy),
    )
    by = [_ordered(term.expr, read, released.groups, whole) for term in query.finish.order]
    return arranged(answer, query.finish, places, keys, by)


def in_listed_order(key: GroupKey, vector: Vector) -> Vector:
    """Return a key's values as their places in its declared list, or for CASE among its branches: the order of rows
    without ORDER BY. Unlisted NULL is last. Other keys keep their values."""
    listed = key.values if key.listed else branch_values(key.expr)
    if listed is None:
        return vector
    pairs = zip(vector.values.tolist(), vector.where_valid().tolist(), strict=True)
    cells = [cell if valid else None for cell, valid in pairs]
    shown = set(cells)  # the list may be far longer
    places: dict[object, int] = {}
    for place, value in enumerate(listed):
        if value in shown:
            places.setdefault(value, place)
    return Vector(np.array([places.get(cell, len(listed)) for cell in cells], dtype=np.int64))


def branch_values(expr: Expr) -> tuple[object, ...] | None:
    """Return the constants of CASE, in the order of its branches; None for other expressions."""
    if not isinstance(expr, Call) or expr.function.name != "case":
        return None
    values = [*expr.args[1::2], *expr.args[-1:]]
    constants = tuple(each.value for each in values if isinstance(each, Literal) and each.value is not None)
    return constants if all(isinstance(each, Literal) for each in values) else None


def _given(release: Release) -> ShownCondition:
    """Return the condition that threshold and HAVING place on shown rows; it follows from distributions and the
    text."""
    return threshold_of(release).further(*conditions(release, release.query.finish.having, *of_having(release)))


def _noisy(release: Release) -> frozenset[str]:
    """Return the outputs with randomness."""
    return frozenset(each.name for each in release.query.finish.outputs if is_noisy(release, each.expr))


def ranked(release: Release, given: ShownCondition, finish_: Finish, rows: int, meaning: Meaning) -> ShownCondition:
    """Return the condition for shown rows after an order and a limit, or DISTINCT, on so many rows."""
    by: frozenset[int] = frozenset()
    shown = [each.expr for each in finish_.outputs]
    if finish_.distinct and not _all_keys(release, shown, meaning):
        by = by.union(*(sources(release, each, meaning) for each in shown))
    if finish_.offset or (finish_.limit is not None and finish_.limit < rows):
        by = by.union(*(sources(release, each.expr, meaning) for each in finish_.order))
    return given.chosen(by, rows) if by else given


def _all_keys(release: Release, shown: list[Expr], meaning: Meaning) -> bool:
    """Return whether distinct rows look different: DISTINCT then drops none."""
    held = [meaning(each) if isinstance(each, Column) else each for each in shown]
    names = {each.index for each in held if isinstance(each, Slot)}
    return not release.levels.wanted and names >= set(range(len(release.query.plan.keys)))


def _no_column(_column: Column) -> Expr | None:
    return None


def arranged(answer: Answer, finish_: Finish, places: Places, keys: list[Vector], terms: Sequence[Vector]) -> Answer:
    """Return the rows `places` of an answer ordered by the values of its terms, without duplicates for DISTINCT, cut to
    the limit. Ties are in the order of the keys, and without keys in the order of the rows."""
    by = [
        (vector.at(places), term.descending, term.nulls_first)
        for vector, term in zip(terms, finish_.order, strict=True)
    ]
    places = places[order_of(by, [key.at(places) for key in keys], len(places))]
    if finish_.distinct:
        places = places[_firsts(answer, places)]
    last = None if finish_.limit is None else finish_.offset + finish_.limit
    return answer.at(places[finish_.offset : last])


def _firsts(answer: Answer, places: Places) -> Places:
    """Return the first of each set of equal rows."""
    cells = [[*zip(v.values.tolist(), v.where_valid().tolist(), strict=True)] for v in answer.at(places).vectors]
    rows = [tuple(cell if valid else None for cell, valid in row) for row in zip(*cells, strict=True)]
    seen: dict[object, int] = {}
    for place, row in enumerate(rows):
        seen.setdefault(row, place)
    return np.array(list(seen.values()), dtype=np.int64)


def kept(condition: Expr | None, computed: Callable[..., Vector], size: int) -> Places:
    """Return the rows for which a condition is true. computed: evaluates it."""
    if condition is None:
        return np.arange(size)
    verdict = computed(condition, size=size)
    return np.flatnonzero(verdict.values.astype(bool) & verdict.where_valid())


def slot_vectors(release: Release, released: ReleasedValues) -> list[Vector]:
    """Return keys and unrounded aggregates, by slot index; GROUPING of the keys from the end."""
    below = empty_below(release, released.groups)
    values = [estimate(each, released.values, least) for each, least in zip(release.estimates, below, strict=True)]
    for place in release.meaningless:
        values[place] = Vector(np.zeros_like(values[place].values), np.zeros(released.groups, dtype=bool))
    found = [*released.keys, *values]
    for levels in release.told.levels:
        found += levels.groupings(released.groups)
    return found


Whole = Mapping[Slot, tuple[int, ...] | None]
"""The aggregates that are shown as integers, with their values if these are too large for doubles."""


def whole_of(release: Release, released: ReleasedValues) -> Whole:
    first, whole = len(release.query.plan.keys), release.once(whole_slots)
    held = released.integers
    slots = enumerate(release.query.slots[first:])
    return {slot: held.get(place) for place, slot in slots if slot in whole or place in held}


def _reader(release: Release, released: ReleasedValues, slots: list[Vector], given: ShownCondition) -> Read:
    def read(leaf: Slot | IntervalEnd | Report) -> Vector:
        if isinstance(leaf, Slot):
            return slots[leaf.index]
        bounds = interval(release, released, leaf.expr, leaf.level, given)
        assert bounds is not None  # the binder allows these over aggregates only
        if isinstance(leaf, IntervalEnd):
            return _finite(outward(*bounds)[leaf.upper])
        kind, vector = shown_output(release, released, leaf.expr, read, whole_of(release, released))
        return _reports(vector, bounds, leaf.level, whole=kind is Type.INTEGER)

    return read


def _finite(values: NDArray[np.float64]) -> Vector:
    """Return an end of an interval; NULL if it is infinite."""
    known = np.isfinite(values)
    return Vector(values) if known.all() else Vector(np.where(known, values, 0.0), known)


def _reports(vector: Vector, bounds: tuple[Any, Any], level: float, *, whole: bool) -> Vector:
    """Return values with their noise intervals, in the form of GoogleSQL's report_format JSON."""
    texts = []
    cells = zip(vector.values.tolist(), vector.where_valid().tolist(), *(ends.tolist() for ends in bounds), strict=True)
    for value, valid, low, high in cells:
        shown = None if not valid else round(value) if whole else value
        lower, upper = (end if math.isfinite(end) else None for end in (low, high))
        ends = {"lower_bound": lower, "upper_bound": upper, "confidence_level": level}
        texts.append(json.dumps({"result": {"value": shown, "noise_confidence_interval": ends}}))
    return Vector(np.array(texts, dtype=object))


def shown_output(
    release: Release, released: ReleasedValues, expr: Expr, read: Read, whole: Whole
) -> tuple[Type, Vector]:
    """Return type and values of an output. Integers are rounded once, and exact to the last digit."""
    if unfiltered(expr).wide:
        return Type.INTEGER, numbers_of(expr, evaluate(expr, read, released.groups))
    integers = whole.get(expr) if isinstance(expr, Slot) else None
    if integers is not None:
        return Type.INTEGER, Vector(as_array(integers), evaluate(expr, read, released.groups).valid)
    kind = whole_type(expr, whole.keys())
    if kind is None:
        return expr.type, evaluate(expr, read, released.groups)
    vector = as_type(rounded_vector(release, released, expr, read), kind)
    if not reads_meaningless(release, expr):
        return kind, vector
    return kind, Vector(vector.values, evaluate(expr, read, released.groups).where_valid() & vector.where_valid())


def _ordered(expr: Expr, read: Read, size: int, whole: Whole) -> Vector:
    """Return the sort key of rows: unrounded values, except where doubles cannot distinguish them."""
    integers = whole.get(expr) if isinstance(expr, Slot) else None
    return numbers_of(expr, evaluate(expr, read, size)) if integers is None else Vector(as_array(integers))
