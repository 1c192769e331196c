"""Values that are told apart exactly: those of privacy units, and of the keys that lead to them.

Different arrays hold them: int64, uint64, float64, booleans, datetime64[ns] for moments of a time zone (instants), and
Python objects for what none of these holds exactly: texts, whole numbers beyond 64 bits, decimals, fractions. Which
array holds a column may depend on all of its rows; so equality, order and hash here are those of the value, whatever
array it stands in: 5, 5.0 and Decimal("5.00") are one value, 2^64 - 1 and -1 are two. Python's numbers are equal, and
have one hash, just where they are the same number, whatever their class ("Hashing of numeric types", Python's library
reference).
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
"""Whole doubles below it are told apart by their digits."""
_INTEGER, _LARGE, _REAL, _INSTANT, _OTHER = range(5)
"""Kinds of words: an integer of int64; one of uint64 above these, modulo 2^64; the bits of another double; nanoseconds
since 1970 of an instant; Python's hash of any other value, which two values may share."""


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Instant:
    """A moment of a time zone, in nanoseconds since 1970-01-01 UTC: equal in all zones, and to no wall clock's time."""

    nanoseconds: int | Fraction


def cells_of(values: Array) -> list[Any]:
    """The cells as Python's own numbers, texts and instants."""
    if values.dtype.kind == "M":
        return [Instant(each) for each in values.view(np.int64).tolist()]
    return list(values.tolist())


def array_of(cells: Sequence[Any]) -> Array:
    """An array that holds these cells exactly, numbers of 64 bits as such."""
    kinds = set(map(type, cells))
    if kinds == {float}:
        return np.array(cells, dtype=np.float64) + 0.0  # of two zeros the one
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
    """The cells at these places of the columns laid one after the other."""
    if len({column.dtype for column in columns}) == 1:
        return np.concatenate(columns)[places]
    cells = [cell for column in columns for cell in cells_of(column)]
    return array_of([cells[place] for place in places])


def numbered(columns: Sequence[Array]) -> list[Numbers]:
    """An int64 for each cell of several columns: two are the same just where the cells are equal. Those of a column of
    objects lie close together, those of the first one closest."""
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
    """The integers of int64 as they are, words of other kinds numbered above them."""
    others = [np.flatnonzero(kinds == kind) for kind in (_LARGE, _REAL, _INSTANT)]
    count = sum(map(len, others))
    if count == 0:
        return words
    numbers = np.where(kinds == _INTEGER, words, 0)
    top = 1 + int(numbers.max(initial=0))
    if top + count > 2**63:  # no room above: closer together first
        close, numbers = np.unique(numbers, return_inverse=True)
        top = len(close)
    for places in others:
        distinct, ranks = np.unique(words[places], return_inverse=True)
        numbers[places] = top + ranks
        top += len(distinct)
    return numbers


def _words(values: Array) -> tuple[Numbers, Kinds]:
    """Cells of no objects as words, and their kinds. Of floats that are whole the integer's, where 64 bits hold it."""
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
    reals = np.add(values, 0.0, dtype=np.float64)  # 0.0 for -0.0
    whole = np.trunc(reals) == reals
    small, large = whole & (reals >= -(2.0**63)) & (reals < 2.0**63), whole & (reals >= 2.0**63) & (reals < 2.0**64)
    words = reals.view(np.int64).copy()
    words[small] = reals[small].astype(np.int64)
    words[large] = reals[large].astype(np.uint64).view(np.int64)
    kinds[:] = _REAL
    kinds[small], kinds[large] = _INTEGER, _LARGE
    return words, kinds


def words_of(values: Array) -> tuple[Numbers, Kinds]:
    """A word for each cell that is no text, and its kind: a function of the value alone, whatever array it stands in.
    Only different values of the last kind can have one word."""
    if values.dtype != object:
        return _words(values)
    found = [_word(cell) for cell in values]
    words = np.array([word % 2**64 for word, _ in found], dtype=np.uint64).view(np.int64)
    return words, np.array([kind for _, kind in found], dtype=np.uint8)


def integers_of(values: Array) -> Vector:
    """The cells, which are no texts, that are whole numbers of 64 bits, NULL for others."""
    words, kinds = words_of(values)
    return Vector(words, kinds == _INTEGER)


def canonical_texts(values: Array) -> list[str]:
    """One text for each value that tells units apart: equal numbers have one, whatever array holds them."""
    return list(map(canonical, cells_of(values)))


def canonical(cell: Any) -> str:
    """The same of one value, as SQL engines write it too: a text is its own, a whole number its digits; of other
    numbers "~" and the fewest digits that a double has alone where it is one, else "#" and its digits, or a
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
    """The double that is this number."""
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if Fraction(found) == number else None


def _digits(number: Fraction) -> str:
    """The decimal digits of a number that is not whole, without zeros at the end; a fraction where there is no end to
    them."""
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
    """The place of each of these different values in their order: numbers by size, instants by time, texts by their
    characters; in a column of several of them, numbers first and texts last."""
    if values.dtype == object:
        with localcontext(Context(traps=[])):  # the caller's may refuse to compare decimals with floats
            order = np.array(sorted(range(len(values)), key=lambda place: _ordered(values[place])), dtype=np.int64)
    else:
        order = np.argsort(values, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def _ordered(cell: Any) -> tuple[int, Any]:
    return (2 if isinstance(cell, str) else 1 if isinstance(cell, Instant) else 0), cell
