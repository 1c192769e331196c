"""Equivalent texts have equal keys, and a statement that is answered may be extended.

Each statement of the manual is rewritten. A new spelling has the same key, so that its repeat is free. An algebraic
variant or an extended statement is accepted. The slow tests rewrite every statement, the others a third of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from sqlglot import exp, parse_one
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokens import Token, TokenType

import dpsql
from dpsql.errors import DPSQLError
from dpsql.sql.syntax.dialect import PrivacyDialect
from tests.sql import test_manual as manual

DIALECT = PrivacyDialect()
TERMS = (1, 1e-5, None, None, None)
OPENED = dpsql.Session(manual.TABLES, budget=dpsql.Budget(1e9, 0.5))
STATEMENTS = [
    text
    for block in manual.blocks("sql")
    for each in block.split(";\n")
    if (text := each.strip().rstrip(";")) and "EXPLAIN" not in text and "WITHIN" not in text
]
STORED = {name.casefold() for each in manual.TABLES.values() for name in each.frame.columns} | {
    name.casefold() for name in manual.TABLES
}
WORDS = re.compile(r"[A-Za-z_ ]+")
NAMES = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.PARAMETER}


ONE_IN = 3


def share_of(statements: Sequence[Any], name: str, *, whole: bool) -> Sequence[Any]:
    """All statements, or one in three, of which each rewriting has others."""
    return statements if whole else statements[len(name) % ONE_IN :: ONE_IN]


HOW_MANY = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["a third", "all"])


def keys_of(sql: str) -> tuple[str, ...]:
    """The keys of a statement's releases. Raises a QueryRefused."""
    found = OPENED._questions(OPENED._prepare(sql, TERMS))
    assert None not in found, sql
    return tuple(each.key for each in found if each is not None)


@cache
def known_keys(sql: str) -> tuple[str, ...]:
    return keys_of(sql)


# Spellings: the words of the text.


def by_token(sql: str, change: Callable[[str, Token, Token | None], str]) -> str:
    """The text with every token changed. change: of the token's text, the token and the next one."""
    tokens = DIALECT.tokenize(sql)
    made, last = [], 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        made += [sql[last : token.start], change(sql[token.start : token.end + 1], token, following)]
        last = token.end + 1
    return "".join(made) + sql[last:]


def in_case(change: Callable[[str], str]) -> Callable[[str], str]:
    def of_word(word: str, token: Token, _: Token | None) -> str:
        return change(word) if token.token_type not in NAMES and WORDS.fullmatch(word) else word

    return lambda sql: by_token(sql, of_word)


def with_comments(sql: str) -> str:
    return by_token(sql, lambda word, *_: word if word in (".", ":", "$") else f"{word} /* it's ( a comment */ ")


def with_quotes(sql: str) -> str:
    def quoted(word: str, token: Token, following: Token | None) -> str:
        called = following is not None and following.token_type is TokenType.L_PAREN
        plain = token.token_type is TokenType.VAR and word.casefold() in STORED and not called
        return f'"{word}"' if plain else word

    return by_token(sql, quoted)


TEXTS: dict[str, Callable[[str], str]] = {
    "upper case": in_case(str.upper),
    "lower case": in_case(str.lower),
    "title case": in_case(str.title),
    "comments": with_comments,
    "quoted names": with_quotes,
    "a semicolon": lambda sql: f"{sql} ;",
}


@HOW_MANY
@pytest.mark.parametrize("name", TEXTS)
def test_spellings_have_one_key(name: str, *, whole: bool):
    for sql in share_of(STATEMENTS, name, whole=whole):
        assert keys_of(TEXTS[name](sql)) == known_keys(sql), TEXTS[name](sql)


# Spellings: the tree.


def trees() -> Iterator[tuple[str, exp.Select]]:
    """The statements that sqlglot prints as they were."""
    for sql in STATEMENTS:
        try:
            tree = parse_one(sql, dialect=DIALECT)
            same = keys_of(printed(tree)) == known_keys(sql)
        except (DPSQLError, SqlglotError, ValueError):
            continue
        if same and isinstance(tree, exp.Select):
            yield sql, tree


def printed(tree: exp.Expr) -> str:
    return tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)


@cache
def printable() -> list[tuple[str, exp.Select]]:
    return list(trees())


def table_of(tree: exp.Select) -> exp.Table | None:
    """The only table of a statement without sub-queries."""
    source = tree.args.get("from_")
    alone = source is not None and not tree.args.get("joins") and len(list(tree.find_all(exp.Select))) == 1
    return source.this if alone and source is not None and isinstance(source.this, exp.Table) else None


def qualified(tree: exp.Select, name: str) -> exp.Select:
    aliases = {each.alias.casefold() for each in tree.expressions if isinstance(each, exp.Alias)}
    for column in tree.find_all(exp.Column):
        if column.table or (column.name.casefold() in STORED and column.name.casefold() not in aliases):
            column.set("table", exp.to_identifier(name))
    return tree


def with_qualified_names(tree: exp.Select) -> exp.Select | None:
    table = table_of(tree)
    return None if table is None else qualified(tree, table.alias_or_name)


def with_an_alias(tree: exp.Select) -> exp.Select | None:
    table = table_of(tree)
    if table is None or table.alias:
        return None
    table.set("alias", exp.TableAlias(this=exp.to_identifier("Q7")))
    return qualified(tree, "q7")


def over_a_derived_table(tree: exp.Select) -> exp.Select | None:
    table = table_of(tree)
    if table is None:
        return None
    tree.args["from_"].set("this", exp.select("*").from_(table.this.copy()).subquery(table.alias_or_name))
    return tree


def over_a_common_table(tree: exp.Select) -> exp.Select | None:
    table = table_of(tree)
    if table is None:
        return None
    tree.args["from_"].set("this", exp.to_table("w9"))
    for column in tree.find_all(exp.Column):
        if column.table:
            column.set("table", exp.to_identifier("w9"))
    return tree.with_("w9", as_=exp.select("*").from_(table.name))


def with_parentheses(tree: exp.Select) -> exp.Select | None:
    for column in list(tree.find_all(exp.Column)):
        if isinstance(column.parent, exp.Binary | exp.AggFunc) and not isinstance(column.parent, exp.Dot):
            column.replace(exp.Paren(this=column.copy()))
    return tree


def keys_by(tree: exp.Select, change: Callable[[int, exp.Expr], exp.Expr]) -> exp.Select | None:
    """GROUP BY with each item of the list that it names changed."""
    group = tree.args.get("group")
    if group is None or not group.expressions:
        return None
    names = [each.alias_or_name.casefold() for each in tree.expressions]
    terms = [each.name.casefold() if isinstance(each, exp.Column) else None for each in group.expressions]
    places = [names.index(each) if each in names else None for each in terms]
    group.set(
        "expressions",
        [
            term if place is None else change(place, tree.expressions[place])
            for term, place in zip(group.expressions, places, strict=True)
        ],
    )
    return tree


TREES: dict[str, Callable[[exp.Select], exp.Select | None]] = {
    "qualified names": with_qualified_names,
    "an alias of the table": with_an_alias,
    "a derived table": over_a_derived_table,
    "a common table": over_a_common_table,
    "parentheses": with_parentheses,
    "keys by position": lambda tree: keys_by(tree, lambda place, _: exp.Literal.number(place + 1)),
    "keys by expression": lambda tree: keys_by(tree, lambda _, item: item.unalias().copy()),
    "another order": lambda tree: tree.order_by(exp.Literal.number(1)) if not tree.args.get("order") else None,
    "a limit": lambda tree: tree.limit(3) if not tree.args.get("limit") else None,
    "a sub-query around": lambda tree: exp.select("*").from_(tree.subquery("w8")),
}


@HOW_MANY
@pytest.mark.parametrize("name", TREES)
def test_rewritten_statements_have_one_key(name: str, *, whole: bool):
    rewritten = [(sql, TREES[name](tree.copy())) for sql, tree in share_of(printable(), name, whole=whole)]
    made = [(sql, printed(tree)) for sql, tree in rewritten if tree is not None]
    assert len(made) > 3
    for sql, text in made:
        assert keys_of(text) == known_keys(sql), text


# Variants and extended statements.

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ
}  # fmt: skip


def with_mirrored_comparisons(tree: exp.Select) -> exp.Select | None:
    found = list(tree.find_all(*_MIRRORED))
    for each in found:
        each.replace(_MIRRORED[type(each)](this=each.expression.copy(), expression=each.this.copy()))
    return tree if found else None


def with_one_for_star(tree: exp.Select) -> exp.Select | None:
    stars = [each for each in tree.find_all(exp.Count) if isinstance(each.this, exp.Star)]
    for each in stars:
        each.set("this", exp.Literal.number(1))
    return tree if stars else None


def plus(item: str, *, grouped: bool = False) -> Callable[[exp.Select], exp.Select | None]:
    def more(tree: exp.Select) -> exp.Select | None:
        group = tree.args.get("group")
        keys = [] if group is None else [each for each in group.expressions if isinstance(each, exp.Column)]
        if tree.args.get("distinct") or tree.find(exp.AggFunc) is None or (grouped and not keys):
            return None
        return tree.select(item.format(key=printed(keys[0]) if keys else ""), dialect="duckdb")

    return more


EXTENDED: dict[str, Callable[[exp.Select], exp.Select | None]] = {
    "mirrored comparisons": with_mirrored_comparisons,
    "COUNT(1)": with_one_for_star,
    "a window": plus("SUM(COUNT(*)) OVER () AS w7"),
    "a rank": plus("RANK() OVER (ORDER BY COUNT(*) DESC) AS w7", grouped=True),
    "a rank by a key": plus("DENSE_RANK() OVER (ORDER BY {key}) AS w7", grouped=True),
    "the row before": plus("LAG(COUNT(*)) OVER (ORDER BY {key}) AS w7", grouped=True),
    "a scalar sub-query": plus("(SELECT COUNT(*) FROM people) AS w7"),
    "HAVING": lambda tree: tree.having("COUNT(*) > 0") if tree.args.get("group") else None,
}


@HOW_MANY
@pytest.mark.parametrize("name", EXTENDED)
def test_extended_statements_are_answered(name: str, *, whole: bool):
    refused: dict[str, Any] = {}
    extended = [EXTENDED[name](tree.copy()) for _, tree in share_of(printable(), name, whole=whole)]
    made = [printed(tree) for tree in extended if tree is not None]
    assert len(made) > 3
    for text in made:
        try:
            keys_of(text)
        except DPSQLError as error:
            refused[text] = error
    assert not refused
