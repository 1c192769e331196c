"""Source positions for names that DuckDB's lists refuse."""

from __future__ import annotations

import re

from dpsql.errors import DPSQLError, QueryRefused, Span

_NAMED = re.compile(r"(?:the (?:table |window )?(?:function|type) )?([A-Z_][A-Z_0-9]*)\b")

_QUOTED = re.compile(r'"([^"]+)"')


def located(refusal: QueryRefused, plain: DPSQLError) -> QueryRefused:
    """Return the refusal with a place: the first word it names in the text, else the place of the `plain` error."""
    if refusal.span is not None or plain.span is None:
        return refusal
    sql, word = plain.span.sql, _NAMED.match(refusal.message)
    named = next(iter(_QUOTED.findall(refusal.message)), "" if word is None else word[1])
    place = re.search(rf"(?<!\w){re.escape(named)}(?!\w)", sql, re.IGNORECASE) if named else None
    span = plain.span if place is None else Span(sql, place.start(), place.end() - 1)
    return type(refusal)(refusal.message, span=span, hint=refusal.hint)
