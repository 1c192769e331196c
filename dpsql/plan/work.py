"""Upper bounds of the time of one function call, by the lengths of its arguments only.

Work is counted in nanoseconds of the machine in docs/scale.md, rounded up by a factor of about two. Every record states
its work, so that `core.row_work` can refuse a query in which the time of one row would be observable from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

UNBOUNDED = 1 << 32
"""Length of a text without a known limit."""
LONGEST_TEXT = 16_384
"""Maximum length of texts that functions read and make."""
LONGEST_PART = 64
"""Maximum length of a non-constant text to search for."""
SEARCHED = (LONGEST_TEXT, LONGEST_PART)
NUMBER, CELL = 100, 1_000
"""Work of a function on cells of arrays, and of a function that Python calls cell by cell."""
_OF_UNKNOWN = 1_000
"""Work per character of a record without its own."""


class Size(NamedTuple):
    """Known size of an argument: maximum number of characters of a text, 0 for other types; its largest whole number;
    its value if it is a constant, otherwise None."""

    characters: int = 0
    number: float = float("inf")
    constant: object = None


Work = Callable[[Sequence[Size]], float]
Length = Callable[[Sequence[Size]], int]


def flat(nanoseconds: float) -> Work:
    """Return the same work for every cell."""
    return lambda _sizes: nanoseconds


NUMBERS, CELLS = flat(NUMBER), flat(CELL)


def linear(per_character: float, fixed: float = CELL) -> Work:
    """Return work in proportion to the total characters of all arguments."""
    return lambda sizes: fixed + per_character * characters(sizes)


def compared(sizes: Sequence[Size]) -> float:
    """Return the work of comparisons: texts are read while they are equal, at most to the end of the second longest."""
    lengths = sorted(each.characters for each in sizes)
    return NUMBER * len(sizes) + min(sum(lengths[:-1]), LONGEST_TEXT * len(sizes)) / 4


def searched(sizes: Sequence[Size]) -> float:
    """Return the work of searching a text at every place of another."""
    text, part = sizes[0].characters, sizes[1].characters
    return CELL + 10 * (text + part) + _places(text, part) / 8


def matched(sizes: Sequence[Size]) -> float:
    """Return the work of LIKE: each piece of a pattern is searched at every place of the text, and none twice."""
    text, pattern = sizes[0].characters, sizes[1].characters
    return CELL + 20 * (text + pattern) + 2 * _places(text, pattern)


def _places(text: int, part: int) -> float:
    """Return the number of characters compared when a part of this length is searched at every place of a text."""
    shorter = min(part, (text + 1) // 2)
    return float(shorter * (text - shorter + 1))


def folded(work: Work) -> Work:
    """Return the work of a function over its texts in lower case."""
    return lambda sizes: work(sizes) + 110 * characters(sizes)


def unknown(sizes: Sequence[Size]) -> float:
    """Return the work of a record without its own: more than any record whose work is proportional to its texts."""
    return CELL + _OF_UNKNOWN * characters(sizes)


def characters(sizes: Sequence[Size]) -> int:
    return sum(each.characters for each in sizes)


# Lengths of results.


def first_length(sizes: Sequence[Size]) -> int:
    """Return the length of a part of the first argument, or of a text with as many characters."""
    return sizes[0].characters if sizes else UNBOUNDED


def longest_length(sizes: Sequence[Size]) -> int:
    """Return the length of one of the arguments."""
    return max((each.characters for each in sizes), default=0)


def joined_length(sizes: Sequence[Size]) -> int:
    """Return the length of the concatenated arguments."""
    return characters(sizes)


def separated_length(sizes: Sequence[Size]) -> int:
    """Return the length of all arguments but the first, which separates them."""
    return characters(sizes[1:]) + sizes[0].characters * max(0, len(sizes) - 2)


def repeated_length(sizes: Sequence[Size]) -> int:
    return _product(sizes[0].characters, sizes[1].number)


def padded_length(sizes: Sequence[Size]) -> int:
    return _product(1, sizes[1].number)


def replaced_length(sizes: Sequence[Size]) -> int:
    """Return the length of a text whose every part `old` is replaced by `new`; every character, if `old` is unknown."""
    text, old, new = sizes
    least = max(1, len(old.constant)) if isinstance(old.constant, str) else 1
    return max(text.characters, _product(text.characters // least, new.characters) + text.characters % least)


def fixed_length(most: int) -> Length:
    return lambda _sizes: most


def _product(one: float, other: float) -> int:
    return int(min(UNBOUNDED, max(0.0, one) * max(0.0, other))) if one and other else 0


# Work of text functions.


def replaced(sizes: Sequence[Size]) -> float:
    """Return the work of a replacement: each occurrence costs a copy; the result is cut at LONGEST_TEXT before it is
    built."""
    return searched(sizes[:2]) + 50 * (sizes[0].characters + min(LONGEST_TEXT, replaced_length(sizes)))


def begun(sizes: Sequence[Size]) -> float:
    """Return the work of reading a number of characters; all of them if the count may be below 0."""
    text, count = sizes[0].characters, sizes[1].number
    return CELL + 2 * (min(text, count) if count >= 0 else text)


def split(sizes: Sequence[Size]) -> float:
    return searched(sizes[:2]) + 80 * sizes[0].characters


_SPACES = 20
"""TRIM by default removes fewer different characters than this."""


def trimmed(sizes: Sequence[Size]) -> float:
    """Return the work of TRIM: each character of the text may be searched among those to remove."""
    text, signs = sizes[0].characters, sizes[1].characters if len(sizes) > 1 else _SPACES
    return CELL + 20 * (text + signs) + text * signs / 4


def made(length: Length) -> Work:
    return lambda sizes: CELL + 2 * (characters(sizes) + min(LONGEST_TEXT, length(sizes)))
