"""Exact values: those of privacy units, and of the keys that lead to them.

Different arrays hold them: int64, uint64, float64, booleans, datetime64[ns] for moments of a time zone (instants), and
Python objects for values that none of these holds exactly: texts, whole numbers beyond 64 bits, decimals, fractions.
The array of a column may depend on all of its rows. So equality, order and hash are those of the value, whatever the
array: 5, 5.0 and Decimal("5.00") are one value, 2^64 - 1 and -1 are two. Python's numbers are equal, and have one hash,
just if they are the same number, whatever their class ("Hashing of numeric types", Python's library reference).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Array, Vector
from dpsql.schema.frozen import dataclass

Numbers = NDArray[np.int64]
Kinds = NDArray[np.uint8]

_WHOLE_DOUBLES = 2.0**127
"""Whole doubles below it are written as their digits."""
_INTEGER, _LARGE, _REAL, _INSTANT, _OTHER = range(5)
"""Kinds of words: an integer of int64; one of uint64 above these, modulo 2^64; the bits of another double; an instant's
nanoseconds since 1970; Python's hash of any other value, which may collide."""


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A moment of a time zone, in nanoseconds since 1970-01-01 UTC: equal in all zones, and to no wall clock's time."""

    nanoseconds: int | Fraction


def cells_of(values: Array) -> list[Any]:
    """Return the cells as Python numbers, texts and instants."""
    if values.dtype.kind == "M":
        return [Instant(each) for each in values.view(np.int64).tolist()]
    return list(values.tolist())


def array_of(cells: Sequence[Any]) -> Array:
    """Return an array that holds these cells exactly, with 64-bit numbers as such."""
    kinds = set(map(type, cells))
    if kinds == {float}:
        return np.array(cells, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    if kinds == {bool}:
        return np.array(cells, dtype=np.bool_)
    if kinds <= {int}:
        low, high = min(cells, default=0), max(cells, default=0)
        if low >= -(2**63) and high < 2**63:
            return np.array(cells, dtype=np.int64)
        if low >= 0 and high < 2**64:
            return np.array(cells, dtype=np.uint64)
    if kinds == {Instant} and all(type(each.nanoseconds) is int and abs(each.nanoseconds) < 2**63 for each in cells):
        return np.array([each.nanoseconds for each in cells], dtype=np.int64).view("datetime64[ns]")
    objects: Array = np.empty(len(cells), dtype=object)
    objects[:] = cells
    return objects


def joined(columns: Sequence[Array], places: Numbers) -> Array:
    """Return the cells at these places of the concatenated columns."""
    if len({column.dtype for column in columns}) == 1:
        return np.concatenate(columns)[places]
    cells = [cell for column in columns for cell in cells_of(column)]
    return array_of([cells[place] for place in places])


def numbered(columns: Sequence[Array]) -> list[Numbers]:
    """Return an int64 for each cell of several columns, equal just if the cells are equal. Those of a column of objects
    lie close together, those of the first column closest."""
    if any(column.dtype == object for column in columns):
        seen: dict[object, int] = {}
        return [
            np.array([seen.setdefault(cell, len(seen)) for cell in cells_of(column)], dtype=np.int64)
            for column in columns
        ]
    kinds = {column.dtype.kind for column in columns}
    if kinds == {"f"}:
        return [np.add(column, 0.0, dtype=np.float64).view(np.int64) for column in columns]
    found = [_words(column) for column in columns]
    if len(kinds) == 1 or kinds == {"b", "i"}:
        return [words for words, _ in found]
    numbers = _apart(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])


def _apart(words: Numbers, kinds: Kinds) -> Numbers:
    """Keep the integers of int64, and number words of other kinds above them."""
    others = [np.flatnonzero(kinds == kind) for kind in (_LARGE, _REAL, _INSTANT)]
    count = sum(map(len, others))
    if count == 0:
        return words
    numbers = np.where(kinds == _INTEGER, words, 0)
    top = 1 + int(numbers.max(initial=0))
    if top + count > 2**63:  # no room above: compact the integers first
        close, numbers = np.unique(numbers, return_inverse=True)
        top = len(close)
    for places in others:
        distinct, ranks = np.unique(words[places], return_inverse=True)
        numbers[places] = top + ranks
        top += len(distinct)
    return numbers


def _words(values: Array) -> tuple[Numbers, Kinds]:
    """Return cells other than objects as words, with their kinds. Whole floats that fit 64 bits become integers."""
    kind = values.dtype.kind
    kinds = np.zeros(len(values), dtype=np.uint8)
    if kind == "u":
        unsigned = values.astype(np.uint64, copy=False)
        kinds[unsigned >= 2**63] = _LARGE
        return unsigned.view(np.int64), kinds
    if kind == "M":
        kinds[:] = _INSTANT
        return values.view(np.int64), kinds
    if kind != "f":
        return values.astype(np.int64, copy=False), kinds
    reals = np.add(values, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    whole = np.trunc(reals) == reals
    small, large = whole & (reals >= -(2.0**63)) & (reals < 2.0**63), whole & (reals >= 2.0**63) & (reals < 2.0**64)
    words = reals.view(np.int64).copy()
    words[small] = reals[small].astype(np.int64)
    words[large] = reals[large].astype(np.uint64).view(np.int64)
    kinds[:] = _REAL
    kinds[small], kinds[large] = _INTEGER, _LARGE
    return words, kinds


def words_of(values: Array) -> tuple[Numbers, Kinds]:
    """Return a word for each cell that is not text, and its kind: a function of only the value, whatever its array.
    Only values of the last kind can collide."""
    if values.dtype != object:
        return _words(values)
    found = [_word(cell) for cell in values]
    words = np.array([word % 2**64 for word, _ in found], dtype=np.uint64).view(np.int64)
    return words, np.array([kind for _, kind in found], dtype=np.uint8)


def integers_of(values: Array) -> Vector:
    """Return the cells, none of them text, as whole numbers of 64 bits, NULL for others."""
    words, kinds = words_of(values)
    return Vector(words, kinds == _INTEGER)


def canonical_texts(values: Array) -> list[str]:
    """Return the canonical text of each unit: equal numbers have the same one, whatever array holds them."""
    return list(map(canonical, cells_of(values)))


def canonical(cell: Any) -> str:
    """Return the canonical text of a value, as SQL engines write it too: a text itself; the digits of a whole number;
    for other numbers "~" and the shortest digits of a double if they are one, otherwise "#" and their digits, or a
    fraction."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Instant):
        return f"@{Fraction(cell.nanoseconds)}"
    if isinstance(cell, float) and not (cell.is_integer() and abs(cell) < _WHOLE_DOUBLES):
        return f"~{cell!r}"
    number = Fraction(cell)
    if number.denominator == 1 and abs(number) < _WHOLE_DOUBLES:
        return str(number)
    double = _double(number)
    if double is not None:
        return f"~{double!r}"
    return str(number) if number.denominator == 1 else f"#{_digits(number)}"


def _double(number: Fraction) -> float | None:
    """Return the double that equals this number, or None."""
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if Fraction(found) == number else None


def _digits(number: Fraction) -> str:
    """Return the decimal digits of a fractional number, without trailing zeros, or a fraction if they do not end."""
    places, rest = 0, number.denominator
    for factor in (2, 5):
        count = 0
        while rest % factor == 0:
            rest, count = rest // factor, count + 1
        places = max(places, count)
    if rest > 1:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _word(cell: Any) -> tuple[int, int]:
    if isinstance(cell, Instant):
        within = type(cell.nanoseconds) is int and abs(cell.nanoseconds) < 2**63
        return (int(cell.nanoseconds), _INSTANT) if within else (hash(cell.nanoseconds), _OTHER)
    if -(2**63) <= cell < 2**64 and cell == int(cell):
        return int(cell), _INTEGER if cell < 2**63 else _LARGE
    try:
        double = float(cell)
    except OverflowError:
        return hash(cell), _OTHER
    if double == cell:
        return int(np.float64(double).view(np.int64)), _REAL
    return hash(cell), _OTHER


def ranks(values: Array) -> Numbers:
    """Rank distinct values: numbers by size, instants by time, texts by characters; in mixed columns in this order."""
    if values.dtype == object:
        with localcontext(Context(traps=[])):  # the caller's context may forbid comparing decimals with floats
            order = np.array(sorted(range(len(values)), key=lambda place: _ordered(values[place])), dtype=np.int64)
    else:
        order = np.argsort(values, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def _ordered(cell: Any) -> tuple[int, Any]:
    return (2 if isinstance(cell, str) else 1 if isinstance(cell, Instant) else 0), cell
