"""Text -> the sqlglot tree of one query. Limits are checked on tokens, before the recursive parser sees the text."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from decimal import Decimal, InvalidOperation

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from dpsql.core.goal import Goal
from dpsql.errors import InvalidPrivacyParameter, Span, SQLSyntaxError, UnsupportedSQL, did_you_mean
from dpsql.schema.frozen import dataclass
from dpsql.sql.syntax.dialect import PrivacyDialect

MOST_CHARACTERS = 64 * 1024
MOST_TOKENS = 20_000
MOST_NESTING = 32
_LONGEST_WORD = 40

_DIALECT = PrivacyDialect()
EXPLAIN_PRIVACY = re.compile(r"(?:\s++|--[^\n]*+\n|/\*.*?\*/)*+EXPLAIN\s+PRIVACY\b", re.IGNORECASE | re.DOTALL)
_PIVOTS = {TokenType.PIVOT, TokenType.UNPIVOT}
_QUERIES = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, *_PIVOTS}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_BRACKETS: dict[TokenType | None, TokenType] = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_SINGLE = {TokenType.GT, TokenType.LT, TokenType.COMMA, TokenType.DOT}
"""Signs that must not be doubled, except >> and << without a space."""
_LISTS = {TokenType.SELECT, TokenType.DISTINCT, TokenType.L_PAREN, TokenType.GROUP_BY, TokenType.ORDER_BY}
"""Tokens that begin a list, before which no comma may stand."""
_OTHER = """ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESC DESCRIBE DETACH
DROP EXECUTE EXPLAIN EXPORT GRANT IMPORT INSERT INSTALL LOAD MERGE PIVOT PRAGMA PREPARE RELEASE REPLACE RESET REVOKE
ROLLBACK SAVEPOINT SET SHOW START SUMMARIZE TABLE TRUNCATE UNPIVOT UPDATE USE VACUUM VALUES"""
_STATEMENTS = frozenset(_OTHER.split())
"""Words that begin other SQL statements."""
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


@dataclass(frozen=True)
class Statement:
    """A parsed query, its text and tokens, and whether EXPLAIN PRIVACY precedes it."""

    sql: str
    select: exp.Query
    explain: bool
    tokens: tuple[Token, ...] = ()
    goal: Goal | None = None
    """WITHIN 5 CONFIDENCE 95 at the end of the text."""


def parse(sql: object) -> Statement:
    """Parse one query: a SELECT or a set operation. Raises SQLSyntaxError for malformed text, UnsupportedSQL for other
    statements."""
    sql = checked_text(sql)
    explain = EXPLAIN_PRIVACY.match(sql)
    if explain:  # blanked to keep positions: the tokenizer would make one opaque command of it
        sql = " " * explain.end() + sql[explain.end() :]
    tokens, goal = _goal(sql, checked_tokens(sql))
    return Statement(sql, _query(sql, tokens), explain is not None, tuple(tokens), goal)


def checked_text(sql: object) -> str:
    """Return a query's text if its length is allowed. Raises SQLSyntaxError."""
    if not isinstance(sql, str):
        raise SQLSyntaxError(f"the query must be text, got {type(sql).__name__}.")
    if len(sql) > MOST_CHARACTERS:
        raise SQLSyntaxError(f"the query is longer than {MOST_CHARACTERS:,} characters.")
    try:
        sql.encode()
    except UnicodeEncodeError:  # its words could be neither displayed nor stored
        raise SQLSyntaxError("the query holds half of a character (a lone surrogate).") from None
    return str.__str__(sql)


def _goal(sql: str, tokens: list[Token]) -> tuple[list[Token], Goal | None]:
    """Return the tokens before a trailing WITHIN error [CONFIDENCE percent], and the goal it sets. Raises
    SQLSyntaxError.

    A number that begins with its point is two tokens.
    """
    last = range(max(1, len(tokens) - 6), len(tokens) - 1)
    place = next((at for at in last if _is_word(tokens[at], "WITHIN") and _begins_an_error(tokens[at + 1 :])), None)
    if place is None:
        return tokens, None
    error, rest = _number_of(tokens[place + 1 :])
    percent, with_confidence = None, bool(rest) and _is_word(rest[0], "CONFIDENCE")
    if with_confidence:
        number = rest[1:]
        percent, rest = _number_of(number)
        if percent is not None and 0 < percent <= 1 and not rest:
            raise SQLSyntaxError(
                f"CONFIDENCE is a percentage, and {percent} % is hardly meant.",
                span=Span(sql, number[0].start, number[-1].end),
                hint="Write CONFIDENCE 95.",
            )
    if error is not None and with_confidence == (percent is not None) and not rest:
        with suppress(InvalidPrivacyParameter):
            return tokens[:place], Goal.of(error, None if percent is None else percent / 100)
    raise SQLSyntaxError(
        "WITHIN takes an error above 0, and CONFIDENCE a percentage between 0 and 100, at the end of the query.",
        span=_at(sql, tokens[place]),
        hint="Write WITHIN 5 CONFIDENCE 95"
        + (", with numbers for parameters." if any(map(_begins_a_parameter, tokens[place:])) else "."),
    )


def _is_word(token: Token, word: str) -> bool:
    return token.text.upper() == word and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)


def _begins_an_error(tokens: list[Token]) -> bool:
    """Return whether tokens after WITHIN are, or are meant as, a query's trailing error goal."""
    signs = (TokenType.DOT, TokenType.DASH, TokenType.PLUS, TokenType.L_PAREN)
    if _begins_a_parameter(tokens[0]):
        after = tokens[1 if tokens[0].token_type is TokenType.PLACEHOLDER else 2 :]
        return not after or _is_word(after[0], "CONFIDENCE")
    return _is_number(tokens[0]) or (tokens[0].token_type in signs and any(_is_number(token) for token in tokens[1:3]))


def _begins_a_parameter(token: Token) -> bool:
    return token.token_type in (TokenType.COLON, TokenType.PLACEHOLDER, TokenType.PARAMETER)


def _number_of(tokens: list[Token]) -> tuple[Decimal | None, list[Token]]:
    """Return the number that begins the tokens, or None, and the remaining tokens."""
    size = 2 if tokens and tokens[0].token_type is TokenType.DOT else 1
    text = "".join(token.text for token in tokens[:size])
    try:
        number = Decimal(text) if tokens[size - 1 : size] and _is_number(tokens[size - 1]) else None
    except InvalidOperation:
        number = None
    return number, tokens[size:]


def _is_number(token: Token) -> bool:
    return token.token_type is TokenType.NUMBER


def checked_tokens(sql: str, dialect: Dialect = _DIALECT) -> list[Token]:
    """Return a text's tokens, within limits on number and nesting. Raises SQLSyntaxError, UnsupportedSQL."""
    try:
        tokens = dialect.tokenize(sql)
    except TokenError as error:
        never_closed = "Missing" in f"{error} {error.__cause__}" or isinstance(error.__cause__, IndexError)
        why = "a quote or comment is never closed" if never_closed else "it holds what is no SQL"
        raise SQLSyntaxError(f"the text cannot be read: {why}.") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SQLSyntaxError("the query is empty.", hint="Write, for example, SELECT COUNT(*) FROM table.")
    if len(tokens) > MOST_TOKENS:
        raise SQLSyntaxError(f"the query has more than {MOST_TOKENS:,} words.")
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > MOST_NESTING:
            raise SQLSyntaxError(f"more than {MOST_NESTING} levels of parentheses.", span=_at(sql, token))
        if token.token_type is TokenType.SEMICOLON:
            raise UnsupportedSQL("one query at a time: the text holds several statements.", span=_at(sql, token))
    return tokens


def _last(open_: list[Token]) -> TokenType | None:
    return open_.pop().token_type if open_ else None


def _check_signs(sql: str, tokens: list[Token]) -> None:
    """Refuse errors that the parser accepts: > > for >>, doubled commas, unclosed brackets. Raises SQLSyntaxError."""
    open_: list[Token] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        _check_pair(sql, before, token)
        if token.token_type in _BRACKETS:
            open_.append(token)
        elif token.token_type in _BRACKETS.values() and _BRACKETS.get(_last(open_)) is not token.token_type:
            raise SQLSyntaxError(f"nothing is open that {token.text} closes.", span=_at(sql, token))
    if open_:
        raise SQLSyntaxError(f"{open_[-1].text} is never closed.", span=_at(sql, open_[-1]))


def _check_pair(sql: str, before: Token | None, token: Token) -> None:
    kind = token.token_type
    if kind is TokenType.DESC and before is not None and before.token_type is TokenType.ASC:
        raise SQLSyntaxError(f"{token.text.upper()} has no meaning here.", span=_at(sql, token))
    if before is None or before.token_type is not kind or kind not in _SINGLE:
        if kind is TokenType.COMMA and before is not None and before.token_type in _LISTS:
            raise SQLSyntaxError(f'something is missing before "{token.text}".', span=_at(sql, token))
        return
    if kind in (TokenType.COMMA, TokenType.DOT) or before.end + 1 != token.start:
        raise SQLSyntaxError(f'something is missing before "{token.text}".', span=_at(sql, token))


def parsed(sql: str, tokens: list[Token], dialect: Dialect = _DIALECT) -> exp.Expr | None:
    """Return the tree of one query, or None if the tokens form none or several. Raises SQLSyntaxError,
    UnsupportedSQL."""
    if tokens[0].token_type not in _QUERIES:
        raise _no_select(sql, tokens[0])
    try:
        trees = dialect.parser().parse(tokens, sql)
    except ParseError as error:
        raise _syntax_error(sql, error, tokens) from None
    except RecursionError:
        raise SQLSyntaxError("the query is nested too deeply.") from None
    except Exception:  # noqa: BLE001 - the parser's own slips on texts that are no queries
        raise SQLSyntaxError("the text cannot be understood as a query.") from None
    _check_signs(sql, tokens)
    return trees[0] if len(trees) == 1 else None


def check_is_select(statement: Statement) -> None:
    """Refuse a set operation, and a SELECT in parentheses. Raises UnsupportedSQL or SQLSyntaxError."""
    if not isinstance(statement.select, exp.Select):
        raise _no_plain_select(statement.sql, list(statement.tokens), statement.select)


def _query(sql: str, tokens: list[Token]) -> exp.Query:
    tree = parsed(sql, tokens)
    if "PIVOT" in sql.upper():
        tree = _without_pivots(sql, tokens, tree)
    if not isinstance(tree, exp.Query):
        raise _no_plain_select(sql, tokens, tree)
    return tree


def _without_pivots(sql: str, tokens: list[Token], tree: exp.Expr | None) -> exp.Expr | None:
    pivot = next((token for token in tokens if token.token_type in _PIVOTS), None)
    if pivot is None:
        return tree
    from dpsql.sql.rewrite.pivot import without_pivots  # imported only when needed

    try:
        return without_pivots(tree, _at(sql, pivot))
    except (AssertionError, AttributeError, IndexError, TypeError):  # the tree of an incomplete PIVOT
        raise SQLSyntaxError("the PIVOT cannot be understood.", span=_at(sql, pivot)) from None


_INSTEAD = {
    "SUMMARIZE": "Write SELECT COUNT(*), COUNT(x), AVG(x), MIN(x), MEDIAN(x), MAX(x) FROM t, over an answer too.",
    **dict.fromkeys(
        ("DESCRIBE", "DESC", "SHOW"),
        "EXPLAIN PRIVACY SELECT ... says what a query would do; the prompt has .tables and .schema.",
    ),
}


def _no_select(sql: str, token: Token) -> SQLSyntaxError | UnsupportedSQL:
    """Return the error for another SQL statement, or text that is no SQL."""
    word = (token.text.split(maxsplit=1) or ["an empty text"])[0].upper()[:40]
    if word in _STATEMENTS and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
        return UnsupportedSQL(f"only SELECT works here, not {word}.", span=_at(sql, token), hint=_INSTEAD.get(word, ""))
    near = did_you_mean(word, ["SELECT", "WITH", "FROM", "EXPLAIN PRIVACY"])
    return SQLSyntaxError(f"a query begins with SELECT, not with {word}.{near}", span=_at(sql, token))


def _no_plain_select(sql: str, tokens: list[Token], tree: exp.Expr | None) -> SQLSyntaxError | UnsupportedSQL:
    kinds = (exp.Union, exp.Intersect, exp.Except)
    words = {type(tree).__name__.upper()} if isinstance(tree, kinds) else _STATEMENTS
    found = next((token for token in tokens if _is_one_of(token, words)), None)
    if found is not None:
        return UnsupportedSQL(f"only a plain SELECT works here, not {found.text.upper()}.", span=_at(sql, found))
    if isinstance(tree, exp.Subquery | exp.Table):
        return UnsupportedSQL(
            "only a plain SELECT works here, not one in parentheses.", span=_at(sql, tokens[0]), hint="Take them away."
        )
    return SQLSyntaxError("the text cannot be understood as a query.", span=_at(sql, tokens[0]))


def _is_one_of(token: Token, words: Collection[str]) -> bool:
    return token.text.upper() in words and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)


def _syntax_error(sql: str, error: ParseError, tokens: list[Token]) -> SQLSyntaxError:
    from dpsql.sql.syntax.syntax_errors import foreign_words, in_own_words  # imported only when needed

    foreign = foreign_words(tokens)
    if foreign is not None:
        message, first, last = foreign
        return SQLSyntaxError(message, span=Span(sql, first.start, last.end))
    details = error.errors[0] if error.errors else {}
    description = details.get("description") or _first_line(error)
    line, column = details.get("line"), details.get("col")
    span = None
    if isinstance(line, int) and isinstance(column, int):
        start = sum(len(each) + 1 for each in sql.split("\n")[: line - 1])
        end = max(start, start + column - 1)  # col is where the word ends
        width = len(str(details.get("highlight") or " "))
        span = Span(sql, max(start, end - width + 1), end)
    word = "" if span is None else " ".join(sql[span.start : span.end + 1].split())[:_LONGEST_WORD]
    said, hint = in_own_words(description, word)
    return SQLSyntaxError(f"{said}.", span=span, hint=hint)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]


def _at(sql: str, token: Token) -> Span:
    return Span(sql, token.start, token.end)


def span_of(sql: str, node: exp.Expr) -> Span | None:
    """Return a node's span, from its first positioned word to its last: most nodes have no position of their own."""
    if type(node) is exp.Column and not node.table and "start" in node.this.meta:
        node = node.this  # shortcut: most calls ask for columns
    own = node.meta.get("start")
    if own is not None:
        return Span(sql, own, node.meta["end"])
    places = [(each.meta["start"], each.meta["end"]) for each in node.walk() if "start" in each.meta]
    places = places or [each.meta["near"] for each in node.walk() if "near" in each.meta]
    if not places:
        return None
    start, end = min(p[0] for p in places), max(p[1] for p in places)
    closing = re.compile(r"\s*\)").match(sql, end + 1) if type(node) is exp.In and node.expressions else None
    return Span(sql, start, end if closing is None else closing.end() - 1)
