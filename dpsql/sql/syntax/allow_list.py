"""The allow-list: a rule must know every node of a statement, every argument of a node and every word of the text;
otherwise the statement is refused at that word.

No clause can pass unread: anything missing from `grammar.RULES` raises UnsupportedSQL. The parser also skips some words
(`FROM t *`, `LIMIT 2 ONLY`, a dangling AS). So the words of the text are counted against those that the nodes account
for, and an extra word raises SQLSyntaxError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token, TokenType

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.sql.names.select_list import CHANGES, changes_star
from dpsql.sql.rewrite.foreign_clauses import is_list_of_any
from dpsql.sql.rewrite.parentheses import in_parentheses
from dpsql.sql.syntax.clauses import check_clauses
from dpsql.sql.syntax.grammar import LISTS, RULES, Rule
from dpsql.sql.syntax.list_indices import PLACED, refuse_place_zero
from dpsql.sql.syntax.parse import Statement, span_of
from dpsql.sql.syntax.refusals import CLAUSES, LIKE_SEVERAL, NAMED, PLAIN_QUOTES, WORDS
from dpsql.sql.syntax.source_text import MOST, constant_of, own_word, worded
from dpsql.sql.syntax.syntax_errors import without_meaning

_FREE = frozenset({"(", ")", ",", ";", "+", "ALL"})
"""Brackets and commas follow from other words; +x is x, and SELECT ALL is the default."""
_TYPES = frozenset(DuckDB.Parser.TYPE_TOKENS)
_TEXTS = frozenset({TokenType.VARCHAR, TokenType.CHAR, TokenType.TEXT, TokenType.NCHAR, TokenType.NVARCHAR})
_CALLS = (exp.Func, exp.Interval)


def check(statement: Statement) -> None:
    """Refuse a statement with a node, argument or word that no rule reads. Raises UnsupportedSQL, SQLSyntaxError."""
    check_words(statement, check_nodes(statement, statement.select, RULES.get))


def check_nodes(
    statement: Statement, select: exp.Expr, rule_of: Callable[[type[exp.Expr]], Rule | None]
) -> Counter[str]:
    """Return how often each word may stand in the text of a part of the statement. "()" counts the calls; "::" is also
    counted as a type. Raises UnsupportedSQL, SQLSyntaxError."""
    words: Counter[str] = Counter()
    for node in select.walk():
        rule = rule_of(type(node)) or (LISTS.get(type(node)) if _is_list(node) else None)
        if rule is None:
            raise _node_refused(statement, node)
        read = node.args if rule.args is None else rule.args
        for argument, value in node.args.items():
            if _is_read_elsewhere(node, argument):
                continue
            if argument not in read and value is not None and value is not False and value != []:
                raise _clause_refused(statement, node, argument, value)
        check_clauses(statement.sql, node)
        if isinstance(node, PLACED):
            refuse_place_zero(statement.sql, node)
        words.update(_words_of(node, rule))
        if type(node) is exp.Bracket:
            from dpsql.sql.rewrite.quantile_lists import count_from_1  # as below

            count_from_1(node, words)
    return words


def _is_list(node: exp.Expr) -> bool:
    """Return whether a list, or part of one, stands where it has a meaning."""
    if type(node) not in LISTS or is_list_of_any(node):
        return is_list_of_any(node)
    from dpsql.sql.rewrite.quantile_lists import is_list_of_quantiles  # imported only when needed

    return is_list_of_quantiles(node)


def _is_read_elsewhere(node: exp.Expr, argument: str) -> bool:
    """Return whether an argument is allowed in this place only: joins in parentheses, UNION of constants, FIRST(x ORDER
    BY y)."""
    if type(node) is exp.Order:
        return argument == "this" and isinstance(node.parent, exp.First | exp.Last)
    if type(node) in {exp.Table, exp.Subquery}:
        return argument == "joins" and in_parentheses(node)
    if type(node) is exp.Star:
        item = node.parent if isinstance(node.parent, exp.Column) else node
        return argument in CHANGES and isinstance(item.parent, exp.Select) and item.parent.parent is not None
    if type(node) is not exp.Union or argument != "distinct" or not node.args.get("distinct"):
        return False
    from dpsql.sql.bind.constant_relations import is_constant  # imported only when needed

    top: exp.Expr = node
    while isinstance(top.parent, exp.Union | exp.Subquery) and not top.parent.args.get("alias"):
        top = top.parent
    return isinstance(top, exp.Union) and is_constant(top)


def _is_added(node: exp.Expr) -> bool:
    """Return whether the parser added a node: it turns AS (VALUES ...) into AS (SELECT * FROM (VALUES ...) AS
    _values)."""
    select: exp.Expr | None = node
    for _ in range(_ADDED.get(type(node), 0)):
        select = None if select is None else select.parent
    if type(node) not in _ADDED or not isinstance(select, exp.Select) or not isinstance(select.parent, exp.CTE):
        return False
    source = select.args.get("from_")
    return source is not None and isinstance(source.this, exp.Values) and source.this.alias == "_values"


def _beside(node: exp.Expr) -> list[str]:
    """Return the points in a table's name, and the modifiers of a star."""
    if type(node) is exp.Star:
        return ["EXCLUDE", "EXCEPT", "REPLACE", "RENAME", "AS"] if changes_star(node) else []
    return ["." for each in ("db", "catalog") if node.args.get(each)] if type(node) is exp.Table else []


def _words_of(node: exp.Expr, rule: Rule) -> Iterator[str]:
    """Yield the words that a node is written with."""
    kind = type(node)
    if _is_added(node):
        return
    yield from node.meta.get("words", ())
    is_function = kind is exp.If and node.arg_key != "ifs"  # IF(...) has no WHEN and THEN
    if not is_function and (kind is not exp.Column or node.args.get("table") is not None):
        yield from rule.words
    yield from _beside(node)
    if kind is exp.StrPosition or node.args.get("unnest") is not None:
        yield _BARE_IN
    if kind in _WINDOWS:
        yield from _words_of_window(node)
    if node.arg_key == "unit" and isinstance(node.parent, _NAMING_UNITS):
        yield _UNIT
    elif kind in _SPOKEN:
        quote = "'" if kind is exp.Literal and node.args.get("is_string") else ""
        yield quote + str(node.this).upper()
    elif kind is exp.DataType:
        yield "type"
    elif isinstance(node, _CALLS):
        yield "call"


_WINDOWS = frozenset({exp.Window, exp.WindowSpec})


def _words_of_window(node: exp.Expr) -> Iterator[str]:
    """Yield the words of WINDOW name AS (...), and of a frame."""
    if isinstance(node, exp.Window):
        named = node.arg_key == "windows"
        yield from ["AS", *(["WINDOW"] if node.index == 0 else [])] if named else []
    else:
        yield str(node.args.get("kind")).upper()
        yield from ["BETWEEN", "AND"] if node.args.get("end") is not None else []
        for end in ("start", "end"):
            value, side = node.args.get(end), node.args.get(f"{end}_side")
            yield from value.upper().split() if isinstance(value, str) else []
            yield from [str(side).upper()] if side else []
        if node.args.get("exclude") is not None:
            yield from ("EXCLUDE", *_EXCLUDED)


_EXCLUDED = ("CURRENT", "ROW", "GROUP", "TIES", "NO", "OTHERS", "CURRENT_ROW", "NO_OTHERS")
_ADDED: Mapping[type[exp.Expr], int] = {exp.Select: 0, exp.Star: 1, exp.From: 1, exp.TableAlias: 3, exp.Identifier: 4}
"""The distance from each of these nodes to a SELECT that the parser may have added with them."""
_NAMING_UNITS = (exp.TimestampTrunc, exp.DateTrunc, exp.DateDiff)
_UNIT = "a unit in quotes"
"""In DATE_TRUNC('month', d), a bare word is a column, which the parser would read as the unit."""
_BARE_IN = "IN without a list"
"""POSITION('a' IN text) has it; elsewhere the parser would read a bare word as the list."""
_SPOKEN = frozenset({exp.Identifier, exp.Literal, exp.Var, exp.Placeholder})


def check_words(statement: Statement, words: Counter[str], free: frozenset[str] = _FREE) -> None:
    """Check that nodes account for all words.

    Words before a bracket come last: a call's name may also be an alias, as in COUNT(*) AS count. free: words that need
    no node. Raises SQLSyntaxError.
    """
    tokens = statement.tokens
    opening, brackets = _openings(statement)
    plain = [place for place in range(len(tokens)) if place not in opening]
    for place in (*plain, *sorted(opening)):
        token = tokens[place]
        if place in brackets or (token.text.upper() in free and token.token_type is not TokenType.STRING):
            continue
        if not _is_known(statement, token, words, opens=place in opening):
            raise without_meaning(statement.sql, tokens, place)
        if token.token_type is TokenType.IN and place not in opening:
            words[_BARE_IN] -= 1
            if words[_BARE_IN] < 0:
                span = Span(statement.sql, token.start, token.end)
                raise SQLSyntaxError("IN wants a list of values in parentheses.", span=span)
    if words["THEN"] > 0:
        raise SQLSyntaxError("CASE wants THEN after each WHEN.", span=_token(statement, "CASE"))
    between = _token(statement, "BETWEEN")
    if words["AND"] > 0 and between is not None:  # the parser accepts its absence
        raise SQLSyntaxError("BETWEEN wants AND between its ends.", span=between)


def _openings(statement: Statement) -> tuple[set[int], frozenset[int]]:
    """Return the positions of words before a bracket, and of the brackets of x IN ['a', 'b']."""
    tokens = statement.tokens
    opening = {before for before, token in enumerate(tokens[1:]) if token.token_type is TokenType.L_PAREN}
    if "[" not in statement.sql:
        return opening, frozenset()
    brackets = _brackets_after_in(tokens)
    return opening | {place - 1 for place in brackets if tokens[place - 1].token_type is TokenType.IN}, brackets


def _brackets_after_in(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of [ and ] in x IN ['a', 'b'], which the parser reads like parentheses."""
    brackets: set[int] = set()
    for place, token in enumerate(tokens[1:], 1):
        if token.token_type is not TokenType.L_BRACKET or tokens[place - 1].token_type is not TokenType.IN:
            continue
        kinds = [each.token_type for each in tokens[place:]]
        if TokenType.R_BRACKET in kinds:
            brackets |= {place, place + kinds.index(TokenType.R_BRACKET)}
    return frozenset(brackets)


def _is_known(statement: Statement, token: Token, words: Counter[str], *, opens: bool) -> bool:
    """Take the token from the words that the nodes account for; False if none is left."""
    quoted = token.token_type is TokenType.STRING
    word = "'" + token.text.upper() if quoted else token.text.upper()
    called = opens and not quoted and token.token_type is not TokenType.NUMBER
    kinds = [word, *(["type"] if token.token_type in _TYPES else []), *(["call"] if called else [])]
    taken = next((kind for kind in kinds if words[kind] > 0), None)
    if taken is not None:
        words[taken] -= 1
    return taken is not None or _read_otherwise(statement, token, words)


def _is_length_of_text(statement: Statement, token: Token) -> bool:
    """Return whether a number is the 10 of VARCHAR(10), which has no effect: the parser drops it, as DuckDB does."""
    place = statement.tokens.index(token)
    before = [each.token_type for each in statement.tokens[max(0, place - 2) : place]]
    return len(before) == 2 and before[0] in _TEXTS and before[1] is TokenType.L_PAREN and token.text.isdecimal()


def _read_otherwise(statement: Statement, token: Token, words: Counter[str]) -> bool:
    """Return whether the parser changed a word's form: numbers that begin with a point, '1 day', units inside texts,
    lengths of text types."""
    word = token.text.upper()
    if token.token_type is TokenType.NUMBER and _is_length_of_text(statement, token):
        return True
    if token.token_type is TokenType.NUMBER:  # .5 is 0.5, and the 1 of INTERVAL 1 DAY a text
        pointed = any(each.token_type is TokenType.DOT and each.end + 1 == token.start for each in statement.tokens)
        other = f"0.{word}" if pointed else f"'{word}"
        words[other] -= 1
        return words[other] >= 0
    if token.token_type is TokenType.DOT:
        after = next((each for each in statement.tokens if each.start == token.end + 1), None)
        return after is not None and after.token_type is TokenType.NUMBER
    if token.token_type is not TokenType.STRING:
        return False
    if _is_interval(word, words):
        return True
    # DATE_TRUNC('month', ...), whose units the binder knows; AS 'name'
    known = _UNIT if words[_UNIT] > 0 else word
    words[known] -= 1
    return words[known] >= 0


def _is_interval(text: str, words: Counter[str]) -> bool:
    """Take the words of INTERVAL '1 day' if the text is one, and return whether it is."""
    parts = text.split()
    if len(parts) != 2 or words["'" + parts[0]] <= 0:
        return False
    unit = parts[1] if words[parts[1]] > 0 else parts[1].rstrip("S")
    if words[unit] <= 0:
        return False
    words["'" + parts[0]] -= 1
    words[unit] -= 1
    return True


def _node_refused(statement: Statement, node: exp.Expr) -> UnsupportedSQL:
    sql = statement.sql
    constant = constant_of(node, statement.tokens)
    if constant is not None:
        place = replace(constant, sql=sql)
        text = sql[place.start : place.end + 1][:MOST]
        return UnsupportedSQL(f"{text} is a kind of constant that is not supported.", span=place, hint=PLAIN_QUOTES)
    place_of_words = _word(statement, node) or span_of(sql, node)
    refusal = LIKE_SEVERAL.get(type(node)) if isinstance(node.parent, exp.Like | exp.ILike) else None
    refusal = refusal or NAMED.get(type(node))
    if refusal is not None:
        return UnsupportedSQL(worded(refusal, node, sql), span=place_of_words)
    return UnsupportedSQL(f"{_title(node, sql)} is not supported.", span=place_of_words)


def _clause_refused(statement: Statement, node: exp.Expr, argument: str, value: object) -> UnsupportedSQL:
    if "refused" in node.meta:  # it replaces another word of the text
        own_name = str(node.meta["refused"])
        return UnsupportedSQL(own_name, span=_token(statement, own_name.split(maxsplit=1)[0]))
    title = _title(node, statement.sql)
    word = argument.strip("_").replace("_", " ").upper()
    is_written = all(_token(statement, part) is not None for part in word.split())
    text = CLAUSES.get((type(node), argument)) or (
        f"{word} is not supported in {title}." if is_written else f"{title} is not supported with that argument."
    )
    text = worded(text, node, statement.sql)
    own = _word(statement, node) if type(node) is exp.Union else None
    place = own or _word(statement, value) or _token(statement, argument.strip("_"))
    return UnsupportedSQL(text, span=place or _span_of_argument(statement.sql, node, value))


def _word(statement: Statement, value: object) -> Span | None:
    """Return the first occurrence of a node's keyword, for nodes without a position."""
    node = value[0] if isinstance(value, list) and value else value
    word = WORDS.get(type(node)) if isinstance(node, exp.Expr) else None
    return _token(statement, word) if word else None


def _token(statement: Statement, word: str) -> Span | None:
    for token in statement.tokens:
        if token.text.upper() == word.upper() and token.token_type is not TokenType.STRING:
            return Span(statement.sql, token.start, token.end)
    return None


def _span_of_argument(sql: str, node: exp.Expr, value: object) -> Span | None:
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, exp.Expr) and (span := span_of(sql, part)):
            return span
    return span_of(sql, node)


def _title(node: exp.Expr, sql: str) -> str:
    """Return a node's name in the text."""
    usual = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()
    word = own_word(usual, node, sql)
    return f"{word}()" if isinstance(node, exp.Func) and word.isidentifier() else word
