"""Group keys as integer codes: one code for each combination of key values, -1 for rows without a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.core.exact import ExactPlan
from dpsql.executors.pandas.columns.declared_columns import number
from dpsql.executors.pandas.evaluation import (
    BLOCK,
    Evaluation,
    Evaluator,
    evaluator,
    over_dictionary,
    short_texts,
    text_column,
)
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.domains import cells_of, vector_of
from dpsql.plan.expressions import DTYPES, Call, Column, Expr, Literal, Vector, call_of, unfiltered
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

Codes = NDArray[np.int64]
MOST_KEY_CHARACTERS = 1_000
"""Longer computed texts of unknown groups are NULL, since all of them are held at once."""
MOST_DIRECT_CELLS = 1 << 21
"""Most combinations that are counted directly; more are renumbered first."""


@dataclass(frozen=True, repr=False)
class KeyCodes:
    """One key: its values, one for each code, and a reader (start, stop) -> codes of those rows."""

    values: Vector
    read: Callable[[int, int], Codes]
    complete: bool
    """True if no row has the code -1."""


@dataclass(frozen=True, repr=False)
class Groups:
    """All keys combined: a reader of combined codes, their number, and the key values of chosen codes."""

    read: Callable[[int, int], Codes]
    cells: int
    complete: bool
    values: Callable[[Codes], tuple[Vector, ...]]


def group_rows(plan: ExactPlan, rows: Relation, codes: list[KeyCodes] | None = None) -> Groups:
    """Return the plan's groups over its source's rows: all combinations of keys (or `codes`), or those that occur."""
    keys = [key_codes(key, rows) for key in plan.keys] if codes is None else codes
    cells = 1
    for key in keys:
        cells *= len(key.values)
    if plan.every_cell or cells <= MOST_DIRECT_CELLS:
        return _direct(keys, cells)
    return _renumbered(keys, rows.rows)


def _direct(keys: list[KeyCodes], cells: int) -> Groups:
    sizes = [len(key.values) for key in keys]
    complete = all(key.complete for key in keys)

    def read(start: int, stop: int) -> Codes:
        return _combine([key.read(start, stop) for key in keys], sizes, complete=complete)

    def values(codes: Codes) -> tuple[Vector, ...]:
        out: list[Vector] = []
        for key in reversed(keys):
            size = max(1, len(key.values))
            out.append(key.values.at(codes % size))
            codes = codes // size
        return tuple(reversed(out))

    return Groups(read, cells, complete, values)


def _combine(codes: list[Codes], sizes: list[int], *, complete: bool) -> Codes:
    """Return mixed-radix numbers of the combinations; -1 if any key has no code."""
    combined = codes[0]
    for other, size in zip(codes[1:], sizes[1:], strict=True):
        if complete:
            combined = combined * size + other
            continue
        combined = np.where((combined < 0) | (other < 0), -1, combined * size + other)
    return combined


def _renumbered(keys: list[KeyCodes], rows: int) -> Groups:
    """Number the combinations that occur, key by key, so that no product of sizes can overflow."""
    per_key = [key.read(0, rows) for key in keys]
    codes = per_key[0]
    chosen = np.arange(len(keys[0].values))[:, None]
    for other, key in zip(per_key[1:], keys[1:], strict=True):
        pairs = _combine([codes, other], [len(chosen), len(key.values)], complete=False)
        codes, present = pd.factorize(np.where(pairs < 0, -1, pairs))
        absent = np.flatnonzero(present == -1)
        if len(absent):  # rows without a group are not a combination
            codes = np.where(codes == absent[0], -1, codes - (codes > absent[0]))
            present = np.delete(present, absent[0])
        chosen = np.column_stack([chosen[present // len(key.values)], present % len(key.values)])

    def values(wanted: Codes) -> tuple[Vector, ...]:
        return tuple(key.values.at(chosen[wanted, index]) for index, key in enumerate(keys))

    return Groups(lambda start, stop: codes[start:stop], len(chosen), False, values)


def key_codes(key: GroupKey, rows: Relation) -> KeyCodes:
    expr = key.expr
    if text_column(expr) is not None:
        return _dictionary_codes(key, rows)
    if key.values is None:
        codes, values = _numbered(expr, rows)
        return KeyCodes(values, lambda start, stop: codes[start:stop].astype(np.int64), complete=True)
    if expr.type is Type.TEXT:
        return _text_codes(expr, key.values, rows)
    read = evaluator(expr, rows)
    if expr.type.discrete and expr.type is not Type.BOOLEAN and not key.listed and _consecutive(key.values):
        return _consecutive_codes(read, key)
    return _listed_codes(read, key, expr.type)


def _numbered(expr: Expr, rows: Relation) -> tuple[NDArray[np.int32], Vector]:
    """Return codes into the distinct values that occur, including NULL."""
    if isinstance(expr, Column):
        return rows.numbered(expr)
    read = evaluator(expr, rows)
    starts = range(0, rows.rows, BLOCK)
    blocks = [_short(read(start, min(start + BLOCK, rows.rows)), expr) for start in starts] or [read(0, 0)]
    valid = np.concatenate([block.where_valid() for block in blocks])
    values = np.concatenate([block.values for block in blocks])
    return number(Vector(values, None if valid.all() else valid), expr.type)


def _short(block: Vector, expr: Expr) -> Vector:
    return short_texts(block, MOST_KEY_CHARACTERS) if expr.type is Type.TEXT else block


def _dictionary_codes(key: GroupKey, rows: Relation) -> KeyCodes:
    """Return codes of a key of one text column, renumbered by the key's value for each dictionary entry."""
    column = text_column(key.expr)
    assert column is not None  # checked by the caller
    encoded = rows.encoded(column)
    made = isinstance(key.expr, Call) and key.values is None
    cells = cells_of(over_dictionary(key.expr, rows, MOST_KEY_CHARACTERS if made else None), key.expr.type)
    wanted: list[Key] = list(dict.fromkeys(cells)) if key.values is None else list(key.values)
    place = _places(wanted)
    outside = _outside(key)
    renumber = np.array([place.get(_exactly(cell), outside) for cell in cells], dtype=np.int64)
    complete = bool(((renumber if encoded.nulls else renumber[:-1]) >= 0).all())
    read = _gatherer(renumber, encoded.codes)
    return KeyCodes(vector_of(wanted, key.expr.type), read, complete)


def _gatherer(renumber: Codes, codes: NDArray[np.int32]) -> Callable[[int, int], Codes]:
    return lambda start, stop: renumber[codes[start:stop]]


def _exactly(cell: Key) -> tuple[type, Key]:
    """Return a dictionary key by value and type, since True == 1 == 1.0."""
    return (type(cell), cell)


def _places(wanted: Sequence[Key]) -> dict[tuple[type, Key], int]:
    return {_exactly(value): index for index, value in enumerate(wanted)}


def _outside(key: GroupKey) -> int:
    """Return the code of a value outside the key's list: NULL's if the owner listed NULL, or else that of no group."""
    return key.values.index(None) if key.listed and key.values and None in key.values else -1


def _consecutive(values: tuple[Key, ...]) -> bool:
    present = values[:-1] if values and values[-1] is None else values
    ends = bool(present) and isinstance(present[0], int) and isinstance(present[-1], int)
    return ends and present[-1] - present[0] == len(present) - 1  # type: ignore[operator]


def _consecutive_codes(read: Evaluator, key: GroupKey) -> KeyCodes:
    """Return codes of bounded whole numbers: the distance to the lowest; NULL, if it is a group, comes last."""
    values = key.values or ()
    lower = values[0]
    assert isinstance(lower, int)
    null = len(values) - 1 if values[-1] is None else -1
    size = len(values) - (null >= 0)
    known = unfiltered(key.expr)
    all_listed = known.range == Interval(lower, lower + size - 1) and not known.nullable
    enforced = isinstance(key.expr, Column) and all_listed  # every cell is clipped to that range

    def codes(start: int, stop: int) -> Codes:
        block = read(start, stop)
        distances = block.values - lower
        if not enforced and len(distances) and (distances.min() < 0 or distances.max() >= size):
            distances = np.where((distances >= 0) & (distances < size), distances, -1)
        return distances if block.valid is None else np.where(block.valid, distances, null)

    return KeyCodes(vector_of(values, key.expr.type), codes, complete=enforced)


def _text_codes(expr: Expr, values: tuple[Key, ...], rows: Relation) -> KeyCodes:
    """Return codes of a text expression over several columns, such as CASE. If it only chooses among constants and
    single columns, it is computed in codes, so that no text is made for a row."""
    place = _places(values)
    evaluation = Evaluation(rows)
    coded = _in_codes(expr, place, evaluation)
    if coded is not None:
        read = evaluation.evaluator(coded)
        return KeyCodes(vector_of(values, Type.TEXT), lambda start, stop: read(start, stop).values, complete=False)
    texts = evaluator(expr, rows)

    def codes(start: int, stop: int) -> Codes:
        cells = cells_of(texts(start, stop), Type.TEXT)
        return np.array([place.get(_exactly(cell), -1) for cell in cells], dtype=np.int64)

    return KeyCodes(vector_of(values, Type.TEXT), codes, complete=False)


def _in_codes(expr: Expr, place: dict[tuple[type, Key], int], evaluation: Evaluation) -> Expr | None:
    """Return the expression with values replaced by their places; None if it makes new values."""
    if isinstance(expr, Literal):
        return Literal(place.get(_exactly(expr.value), -1), Type.INTEGER)
    column = text_column(expr)
    if column is not None:
        cells = cells_of(over_dictionary(expr, evaluation.rows), Type.TEXT)
        table: Codes = np.array([place.get(_exactly(cell), -1) for cell in cells], dtype=np.int64)
        return evaluation.lookup(column, Vector(table), Type.INTEGER)
    if not isinstance(expr, Call) or expr.function.name != "case":
        return None
    arms = [_in_codes(arm, place, evaluation) for arm in (*expr.args[1::2], expr.args[-1])]
    coded = [arm for arm in arms if arm is not None]
    if len(coded) < len(arms):
        return None
    pairs = zip(expr.args[:-1:2], coded[:-1], strict=True)
    return call_of(expr.function, (*(each for pair in pairs for each in pair), coded[-1]), Type.INTEGER)


def _listed_codes(read: Evaluator, key: GroupKey, kind: Type) -> KeyCodes:
    """Return codes by a declared or derived list of numbers or booleans."""
    listed = key.values or ()
    present: Any = np.array([value for value in listed if value is not None], dtype=DTYPES[kind])
    order = np.argsort(present, kind="stable")
    place = np.array([index for index, value in enumerate(listed) if value is not None], dtype=np.int64)[order]
    ordered = present[order]
    null, outside = listed.index(None) if None in listed else -1, _outside(key)
    # Consecutive whole numbers give their place directly, which is then verified. A difference may overflow 64 bits: no
    # listed number has such a difference.
    dense = ordered.dtype == np.int64 and len(ordered) > 1 and int(ordered[-1]) - int(ordered[0]) == len(ordered) - 1

    def codes(start: int, stop: int) -> Codes:
        block = read(start, stop)
        if len(ordered) == 0:
            places = np.full(len(block), outside, dtype=np.int64)
        else:
            if dense:
                at = np.clip(block.values - ordered[0], 0, len(ordered) - 1)
            else:
                at = np.minimum(np.searchsorted(ordered, block.values), len(ordered) - 1)
            places = np.where(ordered[at] == block.values, place[at], outside)
        return places if block.valid is None else np.where(block.valid, places, null)

    return KeyCodes(vector_of(list(listed), kind), codes, complete=False)
