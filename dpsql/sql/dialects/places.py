"""Places of the written text, found again in the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokens import Token

from dpsql.errors import Span


def place_in(text: str, words: Sequence[Token], span: Span, written: Sequence[Token]) -> Span | None:
    """The place in a text of which the words in `span` were made; None where none of them is certain.

    A word that stands in both texts equally often is the same one, in turn. Others were made, moved or doubled.

    text, words: the user's. span, written: a place in the text that was written of it, and that text's words."""
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
    """The places of each word."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word.text.casefold(), []).append(place)
    return places
