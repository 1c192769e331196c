"""HAVING, ORDER BY, LIMIT and the SELECT list over released values. Post-processing: free, and blind to the data.

Theory: post-processing keeps differential privacy (Dwork, Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.release import Release, Released
from dpsql.release_lattice import Estimate
from dpsql.release_order import order_of
from dpsql.schema import Type
from dpsql.sql.expressions import Array, Column, Expr, Slot, Vector, evaluate
from dpsql.sql.plan import AggregateKind, Finish, Order

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Answer:
    """The rows to show: a name, type and vector for each output; `groups` says which released group each row is."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    vectors: tuple[Vector, ...]
    groups: Places

    def __len__(self) -> int:
        return len(self.groups)


def finish(release: Release, released: Released) -> Answer:
    """The answer's rows, in order."""
    with np.errstate(all="ignore"):
        return _finish(release, released)


def _finish(release: Release, released: Released) -> Answer:
    query = release.query
    slots = slot_vectors(release, released)
    places = _having(query.finish, slots, released.groups)
    places = places[_order(query.finish.order, len(query.plan.keys), slots, places)]
    last = None if query.finish.limit is None else query.finish.offset + query.finish.limit
    places = places[query.finish.offset : last]
    whole = {slot for slot, exact in zip(_aggregate_slots(release), release.estimates, strict=True) if exact.whole}
    outputs = [_output(each.expr, slots, places, whole) for each in query.finish.outputs]
    return Answer(
        tuple(each.name for each in query.finish.outputs),
        tuple(kind for kind, _ in outputs),
        tuple(vector for _, vector in outputs),
        places,
    )


def slot_vectors(release: Release, released: Released) -> list[Vector]:
    """Keys and unrounded aggregates, by slot index."""
    return [*released.keys, *(estimate(each, released.values) for each in release.estimates)]


def estimate(each: Estimate, values: NDArray[np.float64]) -> Vector:
    """An aggregation from noisy coordinates. AVG is NULL where the noisy count is below 1, and kept in its range."""
    count = None if each.count is None else values[each.count]
    total = np.zeros(values.shape[1]) if each.sum is None else values[each.sum]
    if each.kind is AggregateKind.AVG:
        assert count is not None  # an average has its count
        some = count >= 1
        mean = each.centre + total / np.where(some, count, 1.0)
        return Vector(np.clip(mean, each.range.lower, each.range.upper), some)
    if each.kind is AggregateKind.COUNT:
        assert count is not None  # so has a count
        return Vector(count)
    return Vector(total if count is None else total + each.centre * count)


def _aggregate_slots(release: Release) -> tuple[Slot, ...]:
    return release.query.slots[len(release.query.plan.keys) :]


def _read(slots: list[Vector], places: Places) -> Any:
    def read(slot: Column | Slot) -> Vector:
        assert isinstance(slot, Slot)  # no private column is above the aggregation
        return slots[slot.index].at(places)

    return read


def _having(finish_: Finish, slots: list[Vector], groups: int) -> Places:
    places = np.arange(groups)
    if finish_.having is None:
        return places
    verdict = evaluate(finish_.having, _read(slots, places), groups)
    return np.flatnonzero(verdict.values.astype(bool) & verdict.where_valid())


def _output(expr: Expr, slots: list[Vector], places: Places, whole: set[Slot]) -> tuple[Type, Vector]:
    vector = evaluate(expr, _read(slots, places), len(places))
    if isinstance(expr, Slot) and expr in whole:
        return Type.INTEGER, Vector(_as_integers(vector.values), vector.valid)
    return expr.type, vector


def _as_integers(values: Array) -> Array:
    rounded = np.rint(values)
    if len(rounded) and float(np.abs(rounded).max()) >= 2.0**63:
        return np.array([int(value) for value in rounded], dtype=object)
    return np.asarray(rounded.astype(np.int64))


def _order(terms: tuple[Order, ...], keys: int, slots: list[Vector], places: Places) -> Places:
    """Positions of `places` in the order asked for."""
    read = _read(slots, places)
    by = [(evaluate(term.expr, read, len(places)), term.descending, term.nulls_first) for term in terms]
    return order_of(by, [slots[index].at(places) for index in range(keys)], len(places))
