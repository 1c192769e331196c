"""Map positions in the translated text back to the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokens import Token

from dpsql.errors import Span


def place_in(text: str, words: Sequence[Token], span: Span, written: Sequence[Token]) -> Span | None:
    """Return the span of the words that the words in `span` come from, or None if none is certain.

    A word that occurs equally often in both texts is the same one, in order. Others were added, moved or repeated.

    text, words: the original. span, written: a position in the translated text, and that text's words.
    """
    there, here = _by_spelling(words), _by_spelling(written)
    origins = [
        words[there[spelling][turn]]
        for spelling, places in here.items()
        if len(there.get(spelling, ())) == len(places)
        for turn, place in enumerate(places)
        if written[place].start <= span.end and written[place].end >= span.start
    ]
    if not origins:
        return None
    return Span(text, min(each.start for each in origins), max(each.end for each in origins))


def _by_spelling(words: Sequence[Token]) -> Mapping[str, list[int]]:
    """Return the positions of each word."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word.text.casefold(), []).append(place)
    return places
