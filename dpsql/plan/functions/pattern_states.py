"""The largest number of states of a regular expression's automaton, estimated from its text.

RE2 builds each state when a text first leads to it, which takes about NEW_STATE nanoseconds for each instruction of the
program. It caches states and finds them again in a few nanoseconds. A text of two letters leads [ab]*a[ab]{25}c to a
new state at each character; (diabetes|insulin) has 16 states for any text.

A state is the set of places of the pattern at which a match can be. In a list of words, the preceding letters determine
these places. Each class, optional part and inner alternative can double the number of sets. A repeated class such as
[0-9]{4} doubles the number once if no match in the class can be joined by a later one: at the start of the pattern, or
after a letter that is not in the class.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dpsql.schema.memoization import remembered

NEW_STATE, KNOWN_STATE = 64, 10
"""Nanoseconds of a state: for each instruction of a new one, and for a cached one."""
_MOST_DOUBLINGS = 20
_BYTES = 4
"""Maximum bytes of a character. A state can lie in the middle of a character."""
_TOKEN = re.compile(
    r"(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\((?:\?(?:P?<\w+>|[A-Za-z-]*:))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<edge>[\^$]|\\[AbBz])|(?P<kind>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\\w|\.)|(?P<letter>\\?.)",
    re.DOTALL,
)
_TIMES = re.compile(r"(?:([*+?])|\{(\d+)(,\d*)?\})\??")
_WORDS = re.compile(r"\((?:\?:)?[^()]*\)|[^()]*")
_START = "^"
_UNLIKE = re.compile(r"\\[DSWx0-9]|\[\[|\[:|--|&&|~~|\|\||^\.$")
_ASCII = [chr(code) for code in range(128)]


def most_states(pattern: str, program: int) -> float:
    """Return the maximum number of states of a program with this many instructions; infinity if unknown."""
    doublings = _doublings(pattern)
    return _BYTES * program * 2**doublings if doublings <= _MOST_DOUBLINGS else math.inf


def _doublings(pattern: str) -> int:
    """Return the number of times that a pattern can double its states; above _MOST_DOUBLINGS if no bound is known."""
    if r"\Q" in pattern:
        return _MOST_DOUBLINGS + 1
    doublings, before = 0, _START
    loops = re.search(r"\)[*+{]", pattern) is not None
    words = _WORDS.fullmatch(pattern) is not None
    for kind, text, sign, times in _parts(pattern):
        if kind != "bar" or not words:
            doublings += _doublings_of(kind, sign, times, apart=_is_apart(before, text))
        if kind == "open":
            before = "" if loops else before
        elif kind not in ("flags", "edge") or sign:
            before = text if kind in ("kind", "letter") and not sign else ""
    return doublings


def _doublings_of(kind: str, sign: str, times: int, *, apart: bool) -> int:
    """Return the number of doublings of one part of a pattern; apart: the result of `_is_apart`."""
    if times == 1:
        return (1 if sign else 0) or int(kind in ("kind", "edge", "bar"))
    if kind == "close":
        return _MOST_DOUBLINGS + 1
    if kind == "letter":
        return times if sign else 0
    return 1 if apart and not sign else times


def _parts(pattern: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield kind, text, sign of repetition (* + ? and "," for a range), and maximum repetitions of each part of a
    pattern."""
    place = 0
    while part := _TOKEN.match(pattern, place):
        times = _TIMES.match(pattern, part.end())
        place = (times or part).end()
        sign, least, most = times.groups() if times else (None, None, None)
        yield (
            str(part.lastgroup),
            part[0],
            sign or ("," if most else ""),
            max(int(least or 1) + bool(most), _most(most)),
        )


def _most(most: str | None) -> int:
    return int((most or "")[1:] or 1)


def _is_apart(before: str, kind: str) -> bool:
    """Return whether no match is inside a repeated class at its start, or matches begin at each character."""
    if before == _START:
        return True
    inside, letters = _members(before), _members(kind)
    return inside is not None and letters is not None and not inside & letters


@remembered(256)
def _members(kind: str) -> frozenset[str] | None:
    """Return the letters of a class of ASCII, or a letter, in both cases; None for other letters, or if Python's
    regular expressions could read the class differently from RE2."""
    if not kind or not kind.isascii() or kind.startswith("[^") or _UNLIKE.search(kind):
        return None
    try:
        ready = re.compile(kind, re.ASCII)
    except re.error:
        return None
    found = {letter for letter in _ASCII if ready.fullmatch(letter)}
    return frozenset(found | {letter.swapcase() for letter in found})
