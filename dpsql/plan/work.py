"""Bounds of the time that one call of a function takes, by the lengths of its arguments alone.

Work is counted in nanoseconds of the machine in docs/scale.md, rounded up by a factor of about two. Every record says
its work, so that `core.row_work` can refuse a query of which one row would take long enough to be seen from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

UNBOUNDED = 1 << 32
"""The length of a text of which nothing is known."""
LONGEST_TEXT = 16_384
"""Functions read texts of at most so many characters, and make none that are longer."""
LONGEST_PART = 64
"""What a text is searched for has at most so many characters, unless it is a constant."""
SEARCHED = (LONGEST_TEXT, LONGEST_PART)
NUMBER, CELL = 100, 1_000
"""The work of a function on cells of arrays, and of one that Python is called for cell by cell."""
_OF_UNKNOWN = 1_000
"""Work for each character of a record that says none."""


class Size(NamedTuple):
    """What is known of an argument: the most characters of a text, 0 for other types; its largest whole number; the
    constant that it is, None where it is none."""

    characters: int = 0
    number: float = float("inf")
    constant: object = None


Work = Callable[[Sequence[Size]], float]
Length = Callable[[Sequence[Size]], int]


def flat(nanoseconds: float) -> Work:
    """The same for every cell."""
    return lambda _sizes: nanoseconds


NUMBERS, CELLS = flat(NUMBER), flat(CELL)


def linear(per_character: float, fixed: float = CELL) -> Work:
    """In proportion to the characters of all arguments together."""
    return lambda sizes: fixed + per_character * characters(sizes)


def compared(sizes: Sequence[Size]) -> float:
    """Of comparisons: texts are read as far as they are equal, which is at most as far as the second longest goes."""
    lengths = sorted(each.characters for each in sizes)
    return NUMBER * len(sizes) + min(sum(lengths[:-1]), LONGEST_TEXT * len(sizes)) / 4


def searched(sizes: Sequence[Size]) -> float:
    """A text that is looked for at every place of another."""
    text, part = sizes[0].characters, sizes[1].characters
    return CELL + 10 * (text + part) + _places(text, part) / 8


def matched(sizes: Sequence[Size]) -> float:
    """LIKE: each piece of a pattern is looked for at every place of the text, and none twice."""
    text, pattern = sizes[0].characters, sizes[1].characters
    return CELL + 20 * (text + pattern) + 2 * _places(text, pattern)


def _places(text: int, part: int) -> float:
    """Characters that are compared where a part of at most so many is looked for at every place of a text."""
    shorter = min(part, (text + 1) // 2)
    return float(shorter * (text - shorter + 1))


def folded(work: Work) -> Work:
    """The work of a function over its texts in lower case."""
    return lambda sizes: work(sizes) + 110 * characters(sizes)


def unknown(sizes: Sequence[Size]) -> float:
    """Of a record that says nothing of its work: more than any record says that is in proportion to its texts."""
    return CELL + _OF_UNKNOWN * characters(sizes)


def characters(sizes: Sequence[Size]) -> int:
    return sum(each.characters for each in sizes)


# Lengths of texts that are made.


def first_length(sizes: Sequence[Size]) -> int:
    """Of a part of the first argument, or one with as many characters."""
    return sizes[0].characters if sizes else UNBOUNDED


def longest_length(sizes: Sequence[Size]) -> int:
    """Of one of the arguments."""
    return max((each.characters for each in sizes), default=0)


def joined_length(sizes: Sequence[Size]) -> int:
    """Of all arguments one after the other."""
    return characters(sizes)


def separated_length(sizes: Sequence[Size]) -> int:
    """Of all arguments but the first, with that one between them."""
    return characters(sizes[1:]) + sizes[0].characters * max(0, len(sizes) - 2)


def repeated_length(sizes: Sequence[Size]) -> int:
    return _product(sizes[0].characters, sizes[1].number)


def padded_length(sizes: Sequence[Size]) -> int:
    return _product(1, sizes[1].number)


def replaced_length(sizes: Sequence[Size]) -> int:
    """Of a text whose every part `old` becomes `new`; of an unknown `old`, whose every character does."""
    text, old, new = sizes
    least = max(1, len(old.constant)) if isinstance(old.constant, str) else 1
    return max(text.characters, _product(text.characters // least, new.characters) + text.characters % least)


def fixed_length(most: int) -> Length:
    return lambda _sizes: most


def _product(one: float, other: float) -> int:
    return int(min(UNBOUNDED, max(0.0, one) * max(0.0, other))) if one and other else 0


# Work of functions of texts.


def replaced(sizes: Sequence[Size]) -> float:
    """Each place where the old text stands costs a copy; what is made is cut at LONGEST_TEXT before it is built."""
    return searched(sizes[:2]) + 50 * (sizes[0].characters + min(LONGEST_TEXT, replaced_length(sizes)))


def begun(sizes: Sequence[Size]) -> float:
    """So many characters are read; all of them where the count may be below 0."""
    text, count = sizes[0].characters, sizes[1].number
    return CELL + 2 * (min(text, count) if count >= 0 else text)


def split(sizes: Sequence[Size]) -> float:
    return searched(sizes[:2]) + 80 * sizes[0].characters


_SPACES = 20
"""What TRIM takes away unless told has fewer characters."""


def trimmed(sizes: Sequence[Size]) -> float:
    """Each character of the text may be looked for among those that are taken away."""
    text, signs = sizes[0].characters, sizes[1].characters if len(sizes) > 1 else _SPACES
    return CELL + 20 * (text + signs) + text * signs / 4


def made(length: Length) -> Work:
    return lambda sizes: CELL + 2 * (characters(sizes) + min(LONGEST_TEXT, length(sizes)))
