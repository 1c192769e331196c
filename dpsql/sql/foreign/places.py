"""Where in the user's text a place of the written one comes from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from sqlglot.tokens import Token

from dpsql.errors import Span

_LONGEST = 4_000
"""Words of a text that are compared; the comparison takes their square where none is equal."""


def place_in(text: str, words: Sequence[Token], span: Span, written: Sequence[Token]) -> Span | None:
    """The place in a text of which the words in `span` were made; None where none of them is left of it.

    text, words: the user's. span, written: a place in the text that was written of it, and that text's words."""
    if max(len(words), len(written)) > _LONGEST:
        return None
    meant = [place for place, each in enumerate(written) if each.start <= span.end and each.end >= span.start]
    pairs: dict[int, int] = {}
    matcher = SequenceMatcher(None, [_folded(each) for each in written], [_folded(each) for each in words], False)
    for block in matcher.get_matching_blocks():
        pairs |= {block.a + step: block.b + step for step in range(block.size)}
    found = [words[pairs[place]] for place in meant if place in pairs]
    if not found:
        return None
    return Span(text, min(each.start for each in found), max(each.end for each in found))


def _folded(token: Token) -> str:
    return token.text.casefold()
