"""Parser errors in dpsql's words, with what to write.

A parser names what it expected, in words that change with its releases. Known errors get a sentence and an example
here; all others name the word at that position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from dpsql.errors import Span, SQLSyntaxError
from dpsql.sql.syntax.nodes import OwnWords

IN_UTC = "Write TIMESTAMP: TIMESTAMP '2024-01-31 10:30:00+02:00' and CAST(x AS TIMESTAMP) read an offset, and give UTC."
"""Replacement for types with a time zone."""
Said = tuple[str, str]
"""A sentence without its stop, and a hint or ""."""

_CASE = "Write CASE WHEN age < 18 THEN 'young' ELSE 'old' END."
_CAST = "Write CAST(age AS INTEGER)."
_TABLE = ("a table's name is missing", "Write FROM people, or JOIN people ON ...")
_CLOSED = ("a closing parenthesis is missing", "Each ( has a ) of its own.")
_OPENED = ("an opening parenthesis is missing", "A list, a sub-query and an argument stand in parentheses.")

_TWICE = {"WHERE": "Join their conditions by AND.", "HAVING": "Join their conditions by AND."}
_WITH = "Write WITH some AS (SELECT ...) SELECT COUNT(*) FROM some."

_KNOWN: tuple[tuple[str, Callable[[re.Match[str]], Said]], ...] = (
    (r"Expected table name", lambda _: _TABLE),
    (r"Expecting \)", lambda _: _CLOSED),
    (r"Expecting \(", lambda _: _OPENED),
    (r"Expect(?:ed|ing) [\]}]", lambda _: ("a bracket is never closed", "")),
    (r"Expected END after CASE", lambda _: ("a CASE has no END", _CASE)),
    (r"Expected (?:TYPE|AS) after CAST", lambda _: ("a CAST says no type", _CAST)),
    (r"Expected type(?: after '::')?", lambda _: ("the name of a type is missing", _CAST)),
    (r"Expected FROM or comma after EXTRACT", lambda _: ("EXTRACT wants FROM", "Write EXTRACT(YEAR FROM day).")),
    (r"Expected at least one argument", lambda _: ("an argument is missing", "")),
    (
        r"The number of provided arguments \((\d+)\) is greater than the maximum number .* \((\d+)\)",
        lambda found: (f"too many arguments: {found[1]}, where there can be {found[2]}", "Leave out what is too much."),
    ),
    (
        r"Found multiple '(.+)' clauses",
        lambda found: (f"there are two {found[1]} clauses", _TWICE.get(found[1], "Leave one out.")),
    ),
    (
        r"Cannot specify both ALL and DISTINCT after SELECT",
        lambda _: ("ALL and DISTINCT contradict each other", "Leave one out."),
    ),
    (r"Expected CTE to have alias", lambda _: ("a WITH has no name", _WITH)),
    (r"Failed to parse any statement following CTE", lambda _: ("after WITH no SELECT follows", _WITH)),
)
_CONDITION = "Write a condition, such as age >= 40."
_VALUE = "Write a column, a number or text in 'quotes' on both sides."
_SELECT = "Write another SELECT behind it."
_WANTS = {
    **dict.fromkeys(("Where", "Having", "Qualify", "And", "Or", "Not", "If", "Filter"), _CONDITION),
    **dict.fromkeys(
        ("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "DPipe"), _VALUE
    ),
    **dict.fromkeys(("Union", "Intersect", "Except"), _SELECT),
    **dict.fromkeys(("Like", "ILike"), "Write a pattern, such as name LIKE 'A%'."),
    **dict.fromkeys(("Limit", "Offset", "Fetch"), "Write a whole number, such as LIMIT 10."),
    "Between": "Write both ends, such as age BETWEEN 20 AND 30.",
    "Case": _CASE,
    "Cast": _CAST,
    "Order": "Write what to order by, such as ORDER BY n DESC.",
    "Window": "Write a name and a window, such as WINDOW w AS (ORDER BY day).",
}
"""The text to write for a missing part, by the node that misses it."""
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '(?:\w+\.)*(\w+)'>")


_ELSEWHERE = {
    "MINUS": "Write EXCEPT.",
    "SORT": "Write ORDER BY.",
    "CLUSTER": "Write ORDER BY.",
    "KEEP": "Write ARG_MIN(x, y) or ARG_MAX(x, y) in a sub-query per person.",
}
"""Other engines' words that the parser rejects."""


def in_own_words(description: str, word: str) -> Said:
    """Return a syntax error's message and hint. description: the parser's words; word: the text at the position."""
    if isinstance(description, OwnWords):
        return str(description), description.hint
    plain = description.split(" but got ", maxsplit=1)[0].rstrip(".")
    for pattern, say in _KNOWN:
        if found := re.fullmatch(pattern, plain):
            return say(found)
    if found := _MISSING.match(description):
        return "something is missing here", _WANTS.get(found[1], "")
    if word.upper() in _ELSEWHERE:
        return f'"{word}" is not understood here', _ELSEWHERE[word.upper()]
    return (f'"{word}" is not understood here' if word else "the text is not understood here"), ""


def is_zoned(before: Token, token: Token) -> bool:
    """Return whether two words begin TIMESTAMP WITH TIME ZONE."""
    return before.text.upper() in {"TIMESTAMP", "TIME"} and token.text.upper() in {"WITH", "WITHOUT"}


def without_meaning(sql: str, tokens: Sequence[Token], place: int) -> SQLSyntaxError:
    """Return the refusal of the token at this position, which no rule reads."""
    token = tokens[place]
    what = "parameters are written :name" if token.text == "?" else f"{token.text.upper()[:40]} has no meaning here"
    hint = IN_UTC if place and is_zoned(tokens[place - 1], token) else ""
    return SQLSyntaxError(f"{what}.", span=Span(sql, token.start, token.end), hint=hint)


def foreign_words(tokens: Sequence[Token]) -> tuple[str, Token, Token] | None:
    """Return the message about other engines' words in an unreadable text, and their first and last token."""
    for before, token in pairwise(tokens):
        if is_zoned(before, token):
            words = f"{before.text.upper()} {token.text.upper()} TIME ZONE"
            return f"{words} is not understood here. {IN_UTC}", before, token
        if token.token_type is TokenType.STRING and before.text in ("r", "R") and before.end + 1 == token.start:
            return "a text is written '...', without r before it: no character of it is an escape.", before, token
        if before.text.upper() == "KEEP" and token.token_type is TokenType.L_PAREN:
            said = "KEEP (...) is not understood: over an answer, and inside a person, write ARG_MAX(x, y)."
            return said, before, before
    return None
