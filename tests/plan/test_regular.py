r"""Regular expressions: what the kernels give is what DuckDB gives, cell by cell, in the SQL that they are emitted as.

Differences from DuckDB, on purpose: a text of more than 16,384 characters, before or after, is NULL where it is
replaced; a pattern that is none, or asks for tables of Unicode, is refused before the query is paid for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError
from dpsql.executors import base as _base  # noqa: F401 - it says what matches
from dpsql.executors.regular import Re2Pattern
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Column, Fact, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.text import MOST_CHARACTERS
from dpsql.schema.columns import Type

TEXTS = [
    None, "", "a", "b", "abc", "aab", "abcabc", "ABC", "a\nb", "\n", "\t", "naïve É", "日本語 abc", "a1b22c333",
    "2024-05-01", "x@y.org", "foo  bar", "\\", "a.b", "ſK", "\0a\0", "👩\u200d👧", "aaaaaaaaaaaaaaaaaaaaaaaa",
]  # fmt: skip
PATTERNS = [
    "", "a", "^a", "c$", "a.b", "(?s)a.b", "(?i)abc", "(?m)^b", "a*", "b*", "(a)(b)?", "(a|b)+c", r"\d+",
    r"(\w+)@(\w+)\.org",
    r"\bfoo\b", "[^a]", "[[:alpha:]]+", "日.", "é", r"\x{65e5}", "a{2,3}", "a{2,}?", r"\\", r"a\.b", "(x)?", "^$",
    r"\z",
    "x*",
    "(?:a(b))", "(?P<n>b)c", r"\Qa.b\E", "[a-c&&[b]]", "(a*)*", "(a|aa)+$", "\0",
]  # fmt: skip
LONG = ["x" * 16_384, "x" * 16_385, "é" * 9_000, "xy" * 8_192]
NEW = ["", "-", r"[\0]", r"\\", r"\1\1", "日", "xy" * 20]
Call = tuple[str, tuple[Any, ...]]


def _ours(name: str, texts: Sequence[str | None], *constants: Any) -> list[Any]:
    kinds = {str: Type.TEXT, int: Type.INTEGER}
    column = Column("x", Type.TEXT, Fact())
    made = call(FUNCTIONS[name], column, *(Literal(each, kinds[type(each)]) for each in constants))
    assert made is not None
    cells = Vector(
        np.array(["" if each is None else each for each in texts], dtype=object),
        np.array([each is not None for each in texts]),
    )
    found = evaluate(made, lambda _: cells, len(texts))
    return [v if p else None for v, p in zip(found.values.tolist(), found.where_valid(), strict=True)]


def _theirs(oracle: duckdb.DuckDBPyConnection, calls: Sequence[Call], table: str = "cells") -> list[list[Any]]:
    """What DuckDB makes of each call, in one statement."""
    rows = oracle.execute(f"SELECT {', '.join(_emitted(*each) for each in calls)} FROM {table} ORDER BY i").fetchall()
    return [list(column) for column in zip(*rows, strict=True)]


def _emitted(name: str, constants: Sequence[Any]) -> str:
    kinds = [Type.TEXT, *(Type.TEXT if isinstance(each, str) else Type.INTEGER for each in constants)]
    result = FUNCTIONS[name].type_of(kinds, [Fact()] * len(kinds))
    assert result is not None
    given = [f"CAST({each} AS BIGINT)" if isinstance(each, int) else _quoted(each) for each in constants]
    return FUNCTIONS[name].emit(kinds, result, ["x", *given])


def _quoted(text: str) -> str:
    return " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in text.split("\0")).join("()")


def _calls() -> list[Call]:
    calls: list[Call] = []
    for pattern in PATTERNS:
        groups = Re2Pattern(pattern).groups
        calls += [("regexp_matches", (pattern,)), ("regexp_full_match", (pattern,)), ("regexp_extract", (pattern,))]
        calls += [("regexp_extract", (pattern, group)) for group in range(groups + 1)]
        for new in NEW:
            if r"\1" not in new or groups:
                calls += [("regexp_replace", (pattern, new)), ("regexp_replace_all", (pattern, new))]
    return calls


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table, texts in (("cells", TEXTS), ("long", LONG)):
        connection.execute(f"CREATE TABLE {table} (i BIGINT, x VARCHAR)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", list(enumerate(texts)))
    return connection


def test_each_cell_is_duckdbs(oracle: duckdb.DuckDBPyConnection):
    calls = _calls()
    for (name, constants), theirs in zip(calls, _theirs(oracle, calls), strict=True):
        assert _ours(name, TEXTS, *constants) == theirs, (name, constants)
    of_long: list[Call] = [("regexp_replace_all", ("x", "yy")), ("regexp_replace_all", ("x", "")), *(
        (name, more) for name, more in calls if more[0] in ("x*", "y", "é") and more[-1] != NEW[-1]
    )]  # fmt: skip
    for (name, constants), theirs in zip(of_long, _theirs(oracle, of_long, "long"), strict=True):
        assert _ours(name, LONG, *constants) == theirs, (name, constants)


def test_random_patterns_are_duckdbs(oracle: duckdb.DuckDBPyConnection):
    draw = random.Random(5)
    pieces = ["a", "b", ".", "[ab]", "(a)", "(b|c)", "^", "$", r"\d", "é", "x", r"\s", "(?:b)"]
    calls: list[Call] = []
    for _ in range(150):
        pattern = "".join(draw.choice(pieces) + draw.choice(["", "", "*", "+", "?", "{1,2}"]) for _ in range(4))
        try:
            Re2Pattern(pattern)
        except ValueError:  # ^* and its like
            continue
        calls += [("regexp_matches", (pattern,)), ("regexp_extract", (pattern,))]
        calls += [("regexp_replace_all", (pattern, r"<\0>"))]
    for (name, constants), theirs in zip(calls, _theirs(oracle, calls), strict=True):
        assert _ours(name, TEXTS, *constants) == theirs, (name, constants)


def test_a_row_is_what_it_is_alone():
    for name, constants in _calls()[::17]:
        together = _ours(name, TEXTS, *constants)
        assert together == [_ours(name, [text], *constants)[0] for text in TEXTS]
        assert together[::-1] == _ours(name, TEXTS[::-1], *constants)


def test_what_is_no_pattern_and_what_is_no_unicode_is_null_or_nothing():
    assert _ours("regexp_matches", ["a"], "(") == [None]
    assert _ours("regexp_replace", ["a"], "a", r"\x") == [None]
    assert _ours("regexp_replace", ["a"], "a", r"\1") == [None]
    assert _ours("regexp_matches", ["a\ud800"], "a") == [False]
    assert _ours("regexp_extract", ["a\ud800"], "a") == [""]
    assert _ours("regexp_replace", ["a\ud800"], "a", "b") == [None]
    assert _ours("regexp_extract", ["a"], "a", 10) == [None]
    assert _ours("regexp_replace_all", ["x" * MOST_CHARACTERS], "x", "yy") == [None]


def test_no_pattern_takes_a_choice_back():
    """Where matching takes choices back, each of these takes longer than the universe is old."""
    text = "a" * 16_000 + "!"
    for pattern in ("(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        assert _ours("regexp_matches", [text], pattern) == [False]
        assert _ours("regexp_extract", [text], pattern) == [""]


FRAME = pd.DataFrame({"s": ["Rome", "Oslo", "rome", None, "Rom\ne"], "k": [1, 2, 3, 4, 5]})
SAME = [
    ("s RLIKE 'R'", "regexp_matches(s, 'R')"),
    ("s REGEXP 'R'", "regexp_matches(s, 'R')"),
    ("s NOT RLIKE 'R'", "NOT regexp_matches(s, 'R')"),
    ("REGEXP_LIKE(s, 'r', 'i')", "regexp_matches(s, 'r', 'i')"),
    ("REGEXP_CONTAINS(s, '^R')", "regexp_matches(s, '^R')"),
    *((each, each) for each in (
        "REGEXP_MATCHES(s, 'r', 'ic')", "REGEXP_MATCHES(s, 'm.e', 's')", "REGEXP_MATCHES(s, 'm.e')",
        "s SIMILAR TO 'R.*'", "s NOT SIMILAR TO 'R.*'", "s ~ 'o'", "s !~ 'o'", "REGEXP_FULL_MATCH(s, '.{4}')",
        "REGEXP_MATCHES(s, NULL) IS NULL", "REGEXP_EXTRACT(s, '(.)o(.)', 2) = 'm'", "REGEXP_EXTRACT(s, 'q') = ''",
        "REGEXP_REPLACE(s, '(o)', '[\\1]') = 'R[o]me'", "REGEXP_REPLACE(s, 'O', '', 'gi') = 'sl'",
        "REGEXP_EXTRACT(s, 'R', 0, 'i') = 'r'",
    )),
]  # fmt: skip
REFUSED = [
    ("REGEXP_MATCHES(s, s)", "constant text"),
    ("REGEXP_MATCHES(s, '(')", "no regular expression"),
    ("REGEXP_MATCHES(s, '(?=a)')", "no regular expression"),
    (r"REGEXP_MATCHES(s, '(a)\1')", "no regular expression"),
    (r"REGEXP_MATCHES(s, '\pL')", "Unicode"),
    (r"REGEXP_MATCHES(s, '[\P{Greek}]')", "Unicode"),
    (r"REGEXP_MATCHES(s, '\C')", "Unicode"),
    ("REGEXP_MATCHES(s, 'É', 'i')", "Unicode"),
    ("REGEXP_MATCHES(s, 'a(?s-m:(?i)É)')", "Unicode"),
    (r"REGEXP_MATCHES(s, '\x{c9}', 'i')", "Unicode"),
    (f"REGEXP_MATCHES(s, '{'a' * 1_001}')", "1,000 bytes"),
    (f"REGEXP_MATCHES(s, '{'é' * 501}')", "1,000 bytes"),
    (f"REGEXP_MATCHES(s, '{'[à-𐍈]{1000}' * 50}')", "too large"),
    ("REGEXP_MATCHES(s, 'a', 'x')", "no option"),
    ("REGEXP_EXTRACT(s, 'a', 1) = ''", "no group 1"),
    ("REGEXP_EXTRACT(s, 'a', k) = ''", "constant"),
    (r"REGEXP_REPLACE(s, 'a', '\1') = ''", "asks for more"),
    (r"REGEXP_REPLACE(s, 'a', '\q') = ''", "before the number"),
    ("REGEXP_REPLACE(s, 'a', s) = ''", "constant text"),
    ("REGEXP_MATCHES(k, 'a')", "wants a text"),
    ("s ~* 'a'", "REGEXP_MATCHES"),
    ("s GLOB 'a*'", "LIKE"),
]


def test_words_of_patterns():
    connection = duckdb.connect()
    connection.register("t", FRAME)
    counted = ", ".join(f"COUNT_IF({theirs})" for _, theirs in SAME)
    ((*expected,),) = connection.execute(f"SELECT {counted} FROM t").fetchall()
    asked = ", ".join(f"COUNT_IF({ours}) AS n{place}" for place, (ours, _) in enumerate(SAME))
    for engine in ("pandas", "duckdb"):
        answer = dpsql.query({"t": FRAME}, f"SELECT {asked} FROM t", epsilon=1e9, engine=engine)
        assert list(next(iter(answer))) == expected, engine


def test_what_no_engine_could_keep_to_is_refused():
    for condition, words in REFUSED:
        with pytest.raises(DPSQLError) as caught:
            dpsql.query({"t": FRAME}, f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=1)
        assert words in str(caught.value), condition


def test_parts_of_public_keys_are_public():
    table = dpsql.Table(FRAME, keys={"s": ["Rome", "Oslo", "rome"]})
    answer = dpsql.query(
        {"t": table}, "SELECT REGEXP_EXTRACT(s, '^[A-Z]') AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1e9
    )
    assert list(answer) == [("", 1), ("O", 1), ("R", 2)]
