"""The analyst's words for the subject of a refusal: as in the text, not the parser's names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from dpsql.errors import Span, TypeMismatch
from dpsql.plan.expressions import Column, Expr
from dpsql.schema.columns import Type
from dpsql.sql.syntax.parse import span_of

MOST = 40
_NAME = re.compile(r"[^\W\d]\w*")
_OTHER_QUOTES: dict[type[exp.Expr], frozenset[TokenType]] = {
    exp.RawString: frozenset({TokenType.RAW_STRING, TokenType.HEREDOC_STRING}),
    exp.National: frozenset({TokenType.NATIONAL_STRING}),
    exp.ByteString: frozenset({TokenType.BYTE_STRING}),
    exp.HexString: frozenset({TokenType.HEX_STRING}),
    exp.BitString: frozenset({TokenType.BIT_STRING}),
    exp.UnicodeString: frozenset({TokenType.UNICODE_STRING}),
}
"""Constants that only a prefix or quote distinguishes: $$a$$, x'ab'."""


def own_word(usual: str, node: exp.Expr, sql: str) -> str:
    """Return the usual word for a node if the text has it, otherwise the word in the text."""
    if all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", sql, re.IGNORECASE) for part in usual.split()):
        return usual
    return _called(node, sql) or _keyword(node, sql) or _operator(node, sql) or _whole(node, sql) or "this"


def worded(message: str, node: exp.Expr, sql: str) -> str:
    """Replace the usual word that begins a message with the analyst's own."""
    usual = re.match(r"[A-Z_]+(?=(?:\(\))? (?:is|takes)\b)", message)
    return message if usual is None else own_word(usual[0], node, sql) + message[usual.end() :]


def constant_of(node: exp.Expr, tokens: Sequence[Token]) -> Span | None:
    """Return the span of a constant with special quotes."""
    kinds = _OTHER_QUOTES.get(type(node), frozenset())
    found = next((token for token in tokens if token.token_type in kinds), None)
    return None if found is None else Span("", found.start, found.end)


def operator_place(node: exp.Expr, sql: str) -> Span | None:
    """Return the span of an operator between two operands, or before a single one; None if their spans do not determine
    it."""
    sides = [span_of(sql, each) for each in (node.this, node.args.get("expression")) if isinstance(each, exp.Expr)]
    if not sides or any(side is None for side in sides):
        return None
    first, last = sides[0], sides[-1]
    assert first is not None
    assert last is not None
    if len(sides) == 2:
        start, end = first.end + 1, last.start
    else:
        start, end = 0, first.start
    between = sql[start:end]
    signs = list(re.finditer(r"[^\s()\w'\"]+|\w+", between))
    if not signs or (len(sides) == 2 and len(signs) > 3):
        return None
    one = signs[-1] if len(sides) == 1 else signs[0]
    return Span(sql, start + one.start(), start + (one if len(sides) == 1 else signs[-1]).end() - 1)


def _called(node: exp.Expr, sql: str) -> str | None:
    """Return the name before the bracket of a call or type."""
    word = node.meta.get("word")
    if isinstance(word, str):
        return " ".join(word.split()).upper()[:MOST]
    start, end = node.meta.get("start"), node.meta.get("end")
    text = "" if start is None or end is None else sql[start : end + 1]
    return text.upper() if _NAME.fullmatch(text) else None


_KEYWORDS: dict[type[exp.Expr], str] = {
    exp.Between: "BETWEEN",
    exp.In: "IN",
    exp.Exists: "EXISTS",
    exp.Case: "CASE",
    exp.If: "WHEN",
    exp.Is: "IS",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.Escape: "ESCAPE",
    exp.Interval: "INTERVAL",
    exp.IgnoreNulls: "IGNORE NULLS",
}


def _keyword(node: exp.Expr, sql: str) -> str | None:
    """Return the keyword of a node, or of the node it is an operand of."""
    for each in (node, node.parent):
        word = "" if each is None else _KEYWORDS.get(type(each), "")
        if word and all(re.search(rf"\b{part}\b", sql, re.IGNORECASE) for part in word.split()):
            return word
    return node.name.upper() if isinstance(node, exp.Var) and node.name.upper() in sql.upper() else None


def _operator(node: exp.Expr, sql: str) -> str | None:
    if not isinstance(node, exp.Binary | exp.Unary | exp.Func):
        return None
    place = operator_place(node, sql)
    return None if place is None else sql[place.start : place.end + 1].upper()


def _whole(node: exp.Expr, sql: str) -> str | None:
    place = span_of(sql, node)
    if place is None:
        return None
    text = " ".join(sql[place.start : place.end + 1].split())
    depths = list(accumulate((sign == "(") - (sign == ")") for sign in text))
    if depths and (depths[-1] or min(depths) < 0):  # the span covers only part of the node's text
        return None
    return text if len(text) <= MOST else text[: MOST - 3] + "..."


# Texts in place of times.

_ISO = re.compile(r"'[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\b.*'")


def no_time(text: Expr, wanted: object, span: Span | None) -> TypeMismatch:
    """Return the refusal of a text that is no date or timestamp: wrong format, or a day that does not exist."""
    if _ISO.fullmatch(str(text)):
        return TypeMismatch(
            f"{text} is no {wanted}: this day or time does not exist.",
            span=span,
            hint="Months have 28 to 31 days: write DATE '2024-06-30', or TIMESTAMP '2024-06-30 23:59:59'.",
        )
    return TypeMismatch(
        f"{text} is not a {wanted}.",
        span=span,
        hint="Write the year, month and day: DATE '2020-12-31', or TIMESTAMP '2020-12-31 10:30:00'.",
    )


def times_hint(wants: str, args: Sequence[Expr]) -> str:
    """Return what to write where a text replaces a date."""
    texts = [arg for arg in args if arg.type is Type.TEXT]
    if not texts or not re.search(r"\b(date|timestamp)\b", wants):
        return ""
    text = str(texts[0])
    declared = f', or declare types={{"{texts[0].name}": "date"}}' if isinstance(texts[0], Column) else ""
    return f"Write CAST({text} AS DATE){declared}."
