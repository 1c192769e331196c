"""Two sides brought together: rows beside the rows that they look up, pairs of rows, rows marked by others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsql.executors.evaluation import evaluated
from dpsql.executors.joining import KeyColumn, dense_ranks, expand, key_of, lookup, match_codes, matched
from dpsql.executors.made import MadeColumns, encoded_texts
from dpsql.executors.relations import Part, Places, Relation
from dpsql.schema import Type
from dpsql.sql.expressions import Bools, Column, Expr, Vector
from dpsql.sql.nodes import Join, Mark

_PAIRS_AT_ONCE = 1 << 22
MOST_PAIRS = 1 << 22
"""Pairs of rows that one unit's may make in a join."""


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
    """For each left row the one right row of its unit, -1: none; None where a unit has several."""
    assert left.units is not None  # both sides are people's
    assert right.units is not None
    codes = right.units.numbers()
    present = right.present()
    rows = np.flatnonzero(codes >= 0) if present is None else np.flatnonzero(present)
    if int(np.bincount(codes[rows]).max(initial=0)) > 1:
        return None
    place = np.full(right.units.count + 1, -1)
    place[codes[rows]] = rows
    assert left.units.values is not None  # so have both a column that tells units
    assert right.units.values is not None
    same = lookup([KeyColumn(left.units.values)], [KeyColumn(right.units.values)])
    return np.append(place[same], -1)[left.units.numbers()]


def among_kept(places: Places, kept: Bools | None) -> Places:
    return places if kept is None else np.where(np.append(kept, False)[places], places, -1)


def _keys(
    pairs: tuple[tuple[Expr, Expr], ...], left: Relation, right: Relation, *, units: bool
) -> list[tuple[KeyColumn, KeyColumn]]:
    """The equalities of a join, that of the units among them where both sides have some."""
    found = [(_key_of(one, left), _key_of(other, right)) for one, other in pairs]
    if units and left.units is not None and right.units is not None:
        found.insert(0, (left.units.key(), right.units.key()))
    return found


def _key_of(expr: Expr, rows: Relation) -> KeyColumn:
    if isinstance(expr, Column):
        return rows.key(expr)
    found = evaluated(expr, rows)
    return key_of(encoded_texts(found)) if expr.type is Type.TEXT else KeyColumn(found)


def key_at(key: KeyColumn, places: Places) -> KeyColumn:
    return KeyColumn(key.values.at(places)) if key.codes is None else KeyColumn(key.values, key.codes[places])


def beside(left: Relation, right: Relation, places: Places, *, outer: bool) -> Relation:
    """Each left row beside one right row, or none."""
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


def multiplied(node: Join, left: Relation, right: Relation) -> Relation:
    """All pairs of rows with equal keys."""
    right = right.settled()
    if not node.keys and (left.units is None or right.units is None):
        one = np.repeat(np.arange(left.rows), right.rows)
        other = np.tile(np.arange(right.rows), left.rows)
    else:
        keys = _keys(node.keys, left, right, units=True)
        codes, others = match_codes([key for key, _ in keys], [key for _, key in keys])
        if right.units is not None:
            codes = _without_heavy_units(left, codes, others)
        one, other = expand(codes, others)
    if node.outer:
        alone = np.ones(left.rows, dtype=bool)
        alone[one] = False
        extra = np.flatnonzero(alone)
        one, other = np.concatenate([one, extra]), np.concatenate([other, np.full(len(extra), -1)])
    rows = left.at(one)
    if left.kept is not None:
        rows.kept = left.kept[one]
    rows.parts.update(right.at(other).parts)
    return with_presence(node, rows, other >= 0)


def _without_heavy_units(left: Relation, codes: Places, others: Places) -> Places:
    """The left rows' codes, -1 for those of units whose rows would make more than `MOST_PAIRS` pairs: else one person's
    rows could fill the memory, and be seen by that.

    It follows from the unit's own rows. A unit each of whose rows meets one other at most makes no more pairs than it
    has rows and is never left out, so that a look-up, which other people's doubled keys turn into this, gives the same.
    """
    if left.units is None or len(codes) * len(others) <= MOST_PAIRS:
        return codes
    ranks, _ = dense_ranks(np.concatenate([codes, others]))
    met = np.bincount(ranks[len(codes) :][others >= 0], minlength=int(ranks.max(initial=0)) + 1)
    pairs = np.where(codes >= 0, met[ranks[: len(codes)]], 0)
    units = left.units.numbers() + 1  # nobody's rows are 0
    made = np.bincount(units, weights=pairs)  # far below 2^53, where floats would begin to round
    heavy = made > np.maximum(MOST_PAIRS, np.bincount(units))
    return np.where(heavy[units], -1, codes) if heavy.any() else codes


def with_presence(node: Join, rows: Relation, matched_: Bools) -> Relation:
    if node.present is not None:
        found = Vector(np.ones(rows.rows, dtype=bool), matched_)
        made = MadeColumns(rows.rows, {node.present.name: (Type.BOOLEAN, lambda: found)})
        rows.parts[node.present.table] = Part(made)
    return rows


def marked(node: Mark, rows: Relation, inner: Relation) -> Vector:
    keys = _keys(node.keys, rows, inner, units=True)
    if not keys and node.condition is None:
        found = np.full(rows.rows, inner.rows > 0)
    elif not keys and node.condition is not None:
        alike = np.zeros(rows.rows, dtype=np.int64), np.zeros(inner.rows, dtype=np.int64)
        found = _any_pair(node.condition, rows, inner, alike)
    else:
        codes, others = match_codes([key for key, _ in keys], [key for _, key in keys])
        if node.condition is None:
            found = matched(codes, others)
        else:
            found = _any_pair(node.condition, rows, inner, (codes, others))
    if not node.of_list or (not inner.rows and inner.units is None):
        return Vector(found)
    asked, listed = keys[-1]
    # Of people's rows neither whether there are any nor their NULLs are asked: that could be anybody's doing.
    unknown = ~_present(asked) | (inner.units is None and not _present(listed).all())
    valid = found | ~unknown
    return Vector(found, None if valid.all() else valid)


def _any_pair(condition: Expr, rows: Relation, inner: Relation, keys: tuple[Places, Places]) -> Bools:
    """Which rows have a row of the same code with which the condition is true; pairs are made a part at a time."""
    codes, others = keys
    found = np.zeros(rows.rows, dtype=bool)
    most = max(1, int(np.bincount(np.unique(others, return_inverse=True)[1]).max(initial=1)))
    step = max(1, _PAIRS_AT_ONCE // most)
    for start in range(0, rows.rows, step):
        one, other = expand(codes[start : start + step], others)
        pairs = rows.at(one + start)
        pairs.parts.update(inner.at(other).parts)
        verdict = evaluated(condition, pairs)
        found[one[verdict.values.astype(bool) & verdict.where_valid()] + start] = True
    return found


def _present(key: KeyColumn) -> Bools:
    valid = key.values.where_valid()
    return valid if key.codes is None else np.append(valid, False)[key.codes]
