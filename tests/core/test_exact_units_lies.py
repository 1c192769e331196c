"""Lies planted in how privacy units are told apart, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine (test_exact_units).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.executors.pandas import database, hashing
from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.executors.pandas.columns import exact_values
from dpsql.executors.pandas.joins import joining, pairing
from dpsql.executors.pandas.units import identity
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type
from tests.core import exact_units, test_exact_units
from tests.core.exact_units import DOMAINS, EQUAL, MERGED, Pair
from tests.lies import Check, Lie, Patch, assert_caught


def read_unsigned_as_signed(patch: Patch) -> None:
    """2^64 - 1 is -1."""
    honest = identity._numbers

    def numbers(distinct: Any, kind: Any) -> Any:
        told, fits = honest(distinct, kind)
        return (told.view(np.int64) if told.dtype.kind == "u" else told), fits

    patch.setattr(identity, "_numbers", numbers)


def number_unsigned_as_signed(patch: Patch) -> None:
    """Units keep their values, and lose them where two tables come together."""
    honest = joining.numbered

    def numbered(cells: Any) -> Any:
        return honest([each.view(np.int64) if each.dtype.kind == "u" else each for each in cells])

    patch.setattr(joining, "numbered", numbered)
    patch.setattr(exact_values, "numbered", numbered)


def _identify_integers(patch: Patch, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Columns of whole numbers are identified so; change(codes, values) -> codes and values."""
    honest = identity.identified

    def identified(series: Any, kind: Any, read_text: Any = None, zone: Any = None) -> Any:
        codes, values = honest(series, kind, read_text, zone)
        return change(codes, values) if kind is Type.INTEGER else (codes, values)

    patch.setattr(identity, "identified", identified)


def hold_units_to_the_range_of_integers(patch: Patch) -> None:
    """Whoever is beyond 2^62 is nobody."""

    def held(codes: Any, values: Any) -> tuple[Any, Any]:
        small = np.array([-(2**62) < each < 2**62 for each in values.tolist()], dtype=bool)
        return np.where(np.append(small, False)[codes], codes, -1).astype(np.int32), values

    _identify_integers(patch, held)


def clip_integers_beyond_their_range(patch: Patch) -> None:
    """Whoever is beyond 2^62 is one person."""

    def clipped(codes: Any, values: Any) -> tuple[Any, Any]:
        held, distinct = pd.factorize(
            np.array([max(-(2**62), min(2**62, each)) for each in values.tolist()], dtype=np.int64)
        )
        return np.append(held, -1)[codes].astype(np.int32), distinct

    _identify_integers(patch, clipped)


def round_times_to_microseconds(patch: Patch) -> None:
    honest = identity._moments

    def moments(ticks: Any, clock: Any) -> Any:
        found = honest(ticks, clock)
        if found.dtype == object:
            return found
        return (found.view(np.int64) // 1_000 * 1_000).view(found.dtype)

    patch.setattr(identity, "_moments", moments)


def tell_instants_by_the_clock_on_the_wall(patch: Patch) -> None:
    honest = identity._moments

    def moments(ticks: Any, clock: Any) -> Any:
        found = honest(ticks, clock)
        if not clock.of_instants or found.dtype == object:
            return found
        shown = pd.DatetimeIndex(found).tz_localize("UTC").tz_convert("Europe/Berlin").tz_localize(None)
        return shown.asi8.view("datetime64[ns]")

    patch.setattr(identity, "_moments", moments)


def take_decimals_for_floats(patch: Patch) -> None:
    honest = identity.exact_cell

    def cell(value: Any, kind: Any, read_text: Any, zone: Any = None) -> Any:
        found = honest(value, kind, read_text, zone)
        return float(found) if kind is Type.REAL and found is not None else found

    patch.setattr(identity, "exact_cell", cell)


def tell_zeros_apart(patch: Patch) -> None:
    honest = joining.numbered

    def numbered(cells: Any) -> Any:
        if all(each.dtype.kind == "f" for each in cells):
            return [each.view(np.int64) for each in cells]
        return honest(cells)

    def numbers(distinct: Any, kind: Any) -> Any:
        return (distinct, None) if distinct.dtype.kind == "f" else honest_numbers(distinct, kind)

    honest_numbers = identity._numbers
    patch.setattr(identity, "_numbers", numbers)
    patch.setattr(joining, "numbered", numbered)
    patch.setattr(exact_values, "numbered", numbered)


def make_the_infinite_nobody(patch: Patch) -> None:
    honest = identity._numbers

    def numbers(distinct: Any, kind: Any) -> Any:
        told, fits = honest(distinct, kind)
        return told, np.isfinite(told) if told.dtype.kind == "f" else fits

    patch.setattr(identity, "_numbers", numbers)


def clip_units_to_declared_bounds(patch: Patch) -> None:
    honest = columns.ColumnStore._identify

    def identify(self: Any, name: str) -> Any:
        codes, values = honest(self, name)
        bounds = self.column(name).bounds
        if bounds is None:
            return codes, values
        clipped = [max(bounds.lower, min(bounds.upper, each)) for each in values.values.tolist()]
        held, distinct = pd.factorize(np.array(clipped, dtype=np.int64))
        numbers = np.where(values.where_valid(), held, -1)
        return np.append(numbers, -1)[codes].astype(np.int32), Vector(distinct)

    patch.setattr(columns.ColumnStore, "_identify", identify)


def make_one_person_of_the_default(patch: Patch) -> None:
    """Where no cell is declared NULL, those that are belong to the default."""
    honest = columns.ColumnStore._identify

    def identify(self: Any, name: str) -> Any:
        codes, values = honest(self, name)
        return (codes, values) if self.column(name).nullable else (codes, Vector(values.values))

    patch.setattr(columns.ColumnStore, "_identify", identify)


def order_units_as_doubles(patch: Patch) -> None:
    def ranks(values: Any) -> Any:
        order = np.argsort(np.array([float(each) for each in values]), kind="stable")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return places

    patch.setattr(database, "ranks", ranks)


def hash_units_by_their_array(patch: Patch) -> None:
    """A number has another hash where other rows' units make objects of all."""
    honest = hashing.integers_of

    def integers(values: Any) -> Any:
        return Vector(honest(values).values + (values.dtype == object), honest(values).valid)

    patch.setattr(hashing, "integers_of", integers)


def compare_times_by_all_their_bits(patch: Patch) -> None:
    """Where nothing is declared of them, and else as the text reads them."""
    patch.setattr(columns, "_TOLD_ALIKE", (*columns._TOLD_ALIKE, Type.TIMESTAMP))


def compare_what_is_read_with_what_is_stored(patch: Patch) -> None:
    """Each side of a join by what it is, whatever the other is."""

    def both(one: Any, other: Any, left: Any, right: Any) -> Any:
        return pairing._key_of(one, left, as_read=False), pairing._key_of(other, right, as_read=False)

    patch.setattr(pairing, "_both_keys", both)


def all_of(check: Callable[[Pair], None], pairs: list[Pair]) -> Check:
    def run() -> None:
        for pair in pairs:
            check(pair)

    return run


def check_single_tables() -> None:
    for domain in DOMAINS[:2]:
        for storage in domain.storages:
            exact_units.check_one_table(domain, storage)


def check_hashes() -> None:
    for one in test_exact_units.NUMBERS:
        test_exact_units.check_numbers([one], [one])


def check_what_is_kept() -> None:
    test_exact_units.test_what_is_kept_of_a_person_follows_from_that_persons_rows("integers", "objects", "Int64")


SAME = all_of(exact_units.check_equal, EQUAL)


def neighbours(kind: str) -> Check:
    """Pairs of people in storages whose names say so."""
    pairs = [pair for pair in MERGED if kind in str(pair)]
    assert pairs
    return all_of(exact_units.check_merged, pairs)


LIES: list[tuple[Lie, Check]] = [
    (read_unsigned_as_signed, neighbours("uint64")),
    (number_unsigned_as_signed, neighbours("uint64")),
    (hold_units_to_the_range_of_integers, check_single_tables),
    (clip_integers_beyond_their_range, neighbours("text")),
    (round_times_to_microseconds, neighbours("datetime64[ns, None]")),
    (tell_instants_by_the_clock_on_the_wall, neighbours("Berlin")),
    (take_decimals_for_floats, neighbours("decimal")),
    (tell_zeros_apart, SAME),
    (make_the_infinite_nobody, check_single_tables),
    (clip_units_to_declared_bounds, exact_units.check_what_is_declared),
    (make_one_person_of_the_default, exact_units.check_what_is_declared),
    (order_units_as_doubles, exact_units.check_doubled_keys),
    (hash_units_by_their_array, check_hashes),
    (hash_units_by_their_array, check_what_is_kept),
    (compare_what_is_read_with_what_is_stored, check_single_tables),
    (compare_times_by_all_their_bits, exact_units.check_times_in_the_text),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_about_units_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check, honest=False)
