"""Joins of two relations: rows with their looked-up rows, pairs of rows, and rows marked by others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpsql.executors.pandas.columns.derived_columns import DerivedColumns, encoded_texts
from dpsql.executors.pandas.columns.gathering import Places
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.joins.joining import KeyColumn, Runs, key_of, lookup, match_codes, matched
from dpsql.executors.pandas.relations import Part, Relation
from dpsql.executors.pandas.sums.ranking import Numbers, dense_ranks
from dpsql.plan.digits import number_below
from dpsql.plan.expressions import Bools, Column, Expr, Vector
from dpsql.plan.nodes import Join, Mark
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

_PAIRS_AT_ONCE = 1 << 22
MOST_PAIRS = 1 << 22
"""Most pairs of rows that one unit may make in a join."""
MOST_FANNED_OUT = 1 << 25
"""Most rows that public tables may make of one unit's pairs; bounds the cost of the pairs."""


class TooManyRows(Exception):
    """A join would make more rows than may be held at once. Never leaves the executors."""


def most_pairs(fan_out: int) -> int:
    """Return the most pairs that one unit's rows may make in a join, if public tables above make at most `fan_out` rows
    of each.

    The limit depends only on declarations, so whether a unit is within it depends only on the unit's own rows."""
    return max(1, min(MOST_PAIRS, MOST_FANNED_OUT // fan_out))


def looked_up(node: Join, left: Relation, right: Relation, *, units: bool = False) -> Places | None:
    keys = _keys(node.keys, left, right, units=units)
    present = right.present()
    places = np.arange(right.rows) if present is None else np.flatnonzero(present)
    ones, others = [one for one, _ in keys], [key_at(other, places) for _, other in keys]
    if units:
        codes, others_codes = match_codes(ones, others)
        numbers, _ = dense_ranks(others_codes[others_codes >= 0])
        if int(np.bincount(numbers).max(initial=0)) > 1:
            return None
        ones, others = [KeyColumn(Vector(codes))], [KeyColumn(Vector(others_codes, others_codes >= 0))]
    found = lookup(ones, others)
    return found if present is None else np.append(places, -1)[found]


def of_the_unit(left: Relation, right: Relation) -> Places | None:
    """For each left row return the one right row of its unit, -1 if there is none; None if a unit has several."""
    assert left.units is not None  # both sides are private
    assert right.units is not None
    codes = right.units.numbers()
    present = right.present()
    rows = np.flatnonzero(codes >= 0) if present is None else np.flatnonzero(present)
    if int(np.bincount(codes[rows]).max(initial=0)) > 1:
        return None
    place = np.full(right.units.count + 1, -1)
    place[codes[rows]] = rows
    assert left.units.values is not None  # so both have a unit column
    assert right.units.values is not None
    same = lookup([KeyColumn(left.units.values)], [KeyColumn(right.units.values)])
    return np.append(place[same], -1)[left.units.numbers()]


def among_kept(places: Places, kept: Bools | None) -> Places:
    return places if kept is None else np.where(np.append(kept, False)[places], places, -1)


def _keys(
    pairs: tuple[tuple[Expr, Expr], ...], left: Relation, right: Relation, *, units: bool
) -> list[tuple[KeyColumn, KeyColumn]]:
    """Return the equalities of a join, including that of the units if both sides have units."""
    keys = [_both_keys(one, other, left, right) for one, other in pairs]
    if units and left.units is not None and right.units is not None:
        keys.insert(0, (left.units.key(), right.units.key()))
    return keys


def _both_keys(one: Expr, other: Expr, left: Relation, right: Relation) -> tuple[KeyColumn, KeyColumn]:
    """Return both sides of an equality. Between private rows, either both are compared as stored or both as expressions
    read them, by declarations only: an integer beyond INTEGER's range differs from the value read. A column of integers
    and a bare one of reals are compared as stored: the double read for a decimal beyond 2^53 differs from the integer.
    Digits of larger integers that are privacy unit keys, and integers that are such keys, are compared as keys."""
    below = number_below(one), number_below(other)
    if below != (one, other) and left.is_unit(below[0]) and right.is_unit(below[1]):
        assert left.units is not None  # as both columns are unit keys
        assert right.units is not None
        return left.units.key(), right.units.key()
    people = left.units is not None and right.units is not None
    if isinstance(one, Column) and isinstance(other, Column):
        exactly = left.is_plain(one) and right.is_plain(other)
        if {one.type, other.type} == {Type.INTEGER, Type.REAL}:
            exactly = left.is_bare(one) and right.is_bare(other)
        if exactly or people:
            return left.key(one, exactly=exactly), right.key(other, exactly=exactly)
    return _key_of(one, left, as_read=people), _key_of(other, right, as_read=people)


def _key_of(expr: Expr, rows: Relation, *, as_read: bool) -> KeyColumn:
    if isinstance(expr, Column):
        return rows.key(expr, exactly=not as_read and rows.is_plain(expr))
    found = evaluated(expr, rows)
    return key_of(encoded_texts(found)) if expr.type is Type.TEXT else KeyColumn(found)


def key_at(key: KeyColumn, places: Places) -> KeyColumn:
    return KeyColumn(key.values.at(places)) if key.codes is None else KeyColumn(key.values, key.codes[places])


def beside(left: Relation, right: Relation, places: Places, *, outer: bool) -> Relation:
    """Put each left row next to one right row, or none."""
    kept = left.kept
    units = left.units
    if not outer:
        matched_ = places >= 0
        if not matched_.all():
            kept = matched_ if kept is None else matched_ & kept
            places = np.where(matched_, places, 0) if right.rows else places
        if units is not None and right.units is not None:
            units = replace(units, handles=units.handles | right.units.handles)
    parts = {name: part.at(places) for name, part in right.parts.items()}
    return Relation(left.rows, {**left.parts, **parts}, units, kept)


@dataclass(frozen=True, repr=False)
class PairingJoin:
    """A join that may make several rows of a left one. `right` is settled."""

    node: Join
    left: Relation
    right: Relation
    runs: Runs

    @classmethod
    def of(cls, node: Join, left: Relation, right: Relation) -> PairingJoin:
        if not node.keys and (left.units is None or right.units is None):
            everywhere = np.zeros(left.rows, dtype=np.int64), np.zeros(right.rows, dtype=np.int64)
            return cls(node, left, right, Runs(*everywhere))
        keys = _keys(node.keys, left, right, units=True)
        return cls(node, left, right, Runs(*match_codes([key for key, _ in keys], [key for _, key in keys])))

    def rows(self, start: int, stop: int) -> Relation:
        """Return the joined rows of the left rows start..stop."""
        one, other = self.runs.expand(start, stop)
        if self.node.outer:
            extra = start + np.flatnonzero(self.runs.pairs[start:stop] == 0)
            one, other = np.concatenate([one, extra]), np.concatenate([other, np.full(len(extra), -1)])
        rows = self.left.at(one)
        if self.left.kept is not None:
            rows.kept = self.left.kept[one]
        rows.parts.update(self.right.at(other).parts)
        return with_presence(self.node, rows, other >= 0)

    def in_pieces(self, most: int) -> Iterator[Relation]:
        """Yield the rows, at most `most` at a time unless a single left row makes more; at least one piece."""
        ends = np.cumsum(np.maximum(self.runs.pairs, 1))
        start = 0
        while start < self.left.rows or start == 0:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield self.rows(start, min(stop, self.left.rows))
            start = stop


def multiplied(node: Join, left: Relation, right: Relation, fan_out: int = 1, most: int | None = None) -> Relation:
    """Return all pairs of rows with equal keys. Raises TooManyRows if private rows would make more than `most`."""
    meeting = PairingJoin.of(node, left, right.settled())
    if right.units is not None:
        leave_out_heavy_units(left, meeting.runs.pairs, most_pairs(fan_out))
    if most is not None and left.units is not None and int(meeting.runs.pairs.sum()) > most:
        raise TooManyRows
    return meeting.rows(0, left.rows)


def leave_out_heavy_units(left: Relation, pairs: Numbers, most: int) -> None:
    """Drop the pairs of units whose left rows would make more than `most`: otherwise one person's rows could fill the
    memory, or take hours, and be noticed by that. `pairs`: how many each left row makes; changed in place.

    This depends only on the unit's own rows. A unit whose rows each match at most one other makes no more pairs than it
    has rows and is never dropped. So a look-up, which other people's duplicate keys turn into this join, gives the same
    result.
    """
    if left.units is None or int(pairs.sum()) <= most:
        return
    units, made, rows = pairs_of_units(left, pairs)
    heavy = made > np.maximum(most, rows)
    if heavy.any():
        pairs[heavy[units]] = 0


def pairs_of_units(left: Relation, pairs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return for each left row its unit's number, 0 for no unit; and for each number the pairs and the left rows."""
    assert left.units is not None  # checked by the caller
    units = left.units.numbers() + 1
    made = np.bincount(units, weights=pairs)  # far below 2^53, where floats would begin to round
    return units, made.astype(np.int64), np.bincount(units)


def with_presence(node: Join, rows: Relation, matched_: Bools) -> Relation:
    if node.present is not None:
        found = Vector(np.ones(rows.rows, dtype=bool), matched_)
        made = DerivedColumns(rows.rows, {node.present.name: (Type.BOOLEAN, lambda: found)})
        rows.parts[node.present.table] = Part(made)
    return rows


def marked(node: Mark, rows: Relation, inner: Relation, fan_out: int = 1, *, allowed: bool | None = None) -> Vector:
    """Return for each row whether some inner row matches. `allowed`: whether the pairs of the only unit are few enough;
    None: check each unit."""
    keys = _keys(node.keys, rows, inner, units=True)
    if not keys and node.condition is None:
        matches = np.full(rows.rows, inner.rows > 0)
    elif node.condition is not None:
        runs = meetings(node, rows, inner)
        if allowed is None and inner.units is not None:
            leave_out_heavy_units(rows, runs.pairs, most_pairs(fan_out))
        elif allowed is False:
            runs.pairs[:] = 0
        matches = _any_pair(node.condition, rows, inner, runs)
    else:
        matches = matched(*match_codes([key for key, _ in keys], [key for _, key in keys]))
    if not node.of_list or (not inner.rows and inner.units is None):
        return Vector(matches)
    asked, listed = keys[-1]
    # For private rows, their existence and their NULLs are ignored: both could depend on any person.
    unknown = ~_present(asked) | (inner.units is None and not _present(listed).all())
    valid = matches | ~unknown
    return Vector(matches, None if valid.all() else valid)


def marked_among(node: Mark, rows: Relation, inner: Relation, fan_out: int, only: Bools | None) -> Vector:
    """As `marked`, for rows of which only some need a mark; the other marks are arbitrary.

    All rows of a unit decide whether its pairs are too many. If no unit can have too many, given its rows on either
    side, checking the rows in question is enough."""
    if only is None or not _all_light(rows, inner, most_pairs(fan_out)):
        return marked(node, rows, inner, fan_out)
    places = np.flatnonzero(only)
    marks = marked(node, rows.at(places), inner, fan_out)
    values = np.zeros(rows.rows, dtype=bool)
    values[places] = marks.values
    if marks.valid is None:
        return Vector(values)
    valid = np.ones(rows.rows, dtype=bool)
    valid[places] = marks.valid
    return Vector(values, valid)


def _all_light(rows: Relation, inner: Relation, most: int) -> bool:
    """Return whether no unit can make more pairs than `most`."""
    if rows.units is None or inner.units is None:
        return True
    most_rows = [int(np.bincount(each.numbers() + 1)[1:].max(initial=0)) for each in (rows.units, inner.units)]
    return most_rows[0] * most_rows[1] <= most


def meetings(node: Mark, rows: Relation, inner: Relation) -> Runs:
    """Return the inner rows that each row is compared with."""
    keys = _keys(node.keys, rows, inner, units=True)
    if not keys:
        return Runs(np.zeros(rows.rows, dtype=np.int64), np.zeros(inner.rows, dtype=np.int64))
    return Runs(*match_codes([key for key, _ in keys], [key for _, key in keys]))


def _any_pair(condition: Expr, rows: Relation, inner: Relation, runs: Runs) -> Bools:
    """Mark the rows with a row of the same code for which the condition is true; pairs are made in parts."""
    has_pair = np.zeros(rows.rows, dtype=bool)
    step = max(1, _PAIRS_AT_ONCE // max(1, int(runs.pairs.max(initial=1))))
    for start in range(0, rows.rows, step):
        one, other = runs.expand(start, min(start + step, rows.rows))
        pairs = rows.at(one)
        pairs.parts.update(inner.at(other).parts)
        verdict = evaluated(condition, pairs)
        has_pair[one[verdict.values.astype(bool) & verdict.where_valid()]] = True
    return has_pair


def _present(key: KeyColumn) -> Bools:
    valid = key.values.where_valid()
    return valid if key.codes is None else np.append(valid, False)[key.codes]
