"""Upper and lower case as in DuckDB: one code point becomes one code point, so that texts keep their length."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

_LATER = (
    (0x1C89, 0x1C8A),
    (0xA7CB, 0xA7CF),
    (0xA7D2, 0xA7D5),
    (0xA7DA, 0xA7DC),
    (0x10D50, 0x10D85),
    (0x16EA0, 0x16ED3),
)
"""Letters with upper and lower case only since Unicode 16: a newer Python would map them, DuckDB does not."""
_LAST_LETTER = 0x1E943


def upper(text: str) -> str:
    """Return each code point in upper case, if that is one code point: the length stays the same."""
    return text.upper() if text.isascii() else text.translate(_upper_cases())


def lower(text: str) -> str:
    """Return each code point in lower case."""
    return text.lower() if text.isascii() else text.translate(_lower_cases())


def cases(name: str) -> dict[int, str]:
    """Return the code points that "upper" or "lower" change, with the results."""
    return {"upper": _upper_cases, "lower": _lower_cases}[name]()


@cache
def _upper_cases() -> dict[int, str]:
    return _cases(_simple_upper)


@cache
def _lower_cases() -> dict[int, str]:
    return _cases(lambda letter: letter.lower()[0])  # only dotted capital I has a second code point: a dot above


def _simple_upper(letter: str) -> str:
    if letter == "ß":
        return "ẞ"
    # Greek letters with iota below become Python's title case.
    return next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)


def _cases(other_case: Callable[[str], str]) -> dict[int, str]:
    pairs = ((code, other_case(chr(code))) for code in range(_LAST_LETTER + 1))
    return {code: other for code, other in pairs if chr(code) != other and not (_late(code) or _late(ord(other)))}


def _late(code: int) -> bool:
    return any(first <= code <= last for first, last in _LATER)
