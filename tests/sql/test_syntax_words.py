"""What a syntax error says is in words of ours, whatever the parser said, and tells what to write."""

import ast
import inspect
import re

import pytest
from sqlglot import parser as sqlglot_parser

from dpsql.errors import SQLSyntaxError
from dpsql.sql.syntax.nodes import OwnWords
from dpsql.sql.syntax.parse import parse
from dpsql.sql.syntax.syntax_errors import in_own_words

MALFORMED = {
    "SELECT COUNT(*) FROM": "Write FROM people",
    "SELECT COUNT(*) FROM t JOIN": "Write FROM people",
    "SELECT COUNT(* FROM t": "Each ( has a ) of its own.",
    "SELECT COUNT(*) FROM t WHERE age IN (1,": "Each ( has a ) of its own.",
    "WITH x AS SELECT 1 SELECT COUNT(*) FROM x": "stand in parentheses",
    "SELECT CASE WHEN age > 5 THEN 1 FROM t": "Write CASE WHEN",
    "SELECT CAST(age AS) FROM t": "Write CAST(age AS INTEGER).",
    "SELECT CAST(age) FROM t": "Write CAST(age AS INTEGER).",
    "SELECT EXTRACT(YEAR d) FROM t": "Write EXTRACT(YEAR FROM day).",
    "SELECT SUM(age, age) FROM t": "Leave out what is too much.",
    "SELECT COUNT(*) FROM t WHERE age > 5 WHERE age > 3": "Join their conditions by AND.",
    "SELECT COUNT(*) FROM t WHERE": "Write a condition",
    "SELECT COUNT(*) FROM t WHERE NOT": "Write a condition",
    "SELECT COUNT(*) FROM t WHERE age >": "on both sides",
    "SELECT COUNT(*) FROM t WHERE age BETWEEN 5": "Write both ends",
    "SELECT COUNT(*) FROM t LIMIT": "Write a whole number",
    "SELECT COUNT(*) FROM t UNION": "Write another SELECT",
}


def test_known_slips_are_told_with_what_to_write():
    for text, wanted in MALFORMED.items():
        with pytest.raises(SQLSyntaxError) as refused:
            parse(text)
        assert wanted in refused.value.hint, text
        assert refused.value.span is not None, text
        assert not re.search(r"Expect|Required|Found multiple|provided|class", refused.value.message), text


def words_of_the_parser() -> list[str]:
    """Every text that the parser's code raises, with 1 for what it puts in."""
    texts = []
    for call in ast.walk(ast.parse(inspect.getsource(sqlglot_parser))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "raise_error":
            for each in call.args[:1]:
                parts = each.values if isinstance(each, ast.JoinedStr) else [each]
                texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts))
    return [text for text in texts if text != "1"]


def test_no_words_of_the_parser_are_passed_on():
    texts = words_of_the_parser()
    assert len(texts) > 40, "the parser's code is not read"
    for text in texts:
        said, _ = in_own_words(text, "word")
        assert said[0] == '"' or said[0].islower() or said.startswith(("EXTRACT", "ALL")), text
        assert text.rstrip(".") not in said, text


def test_rules_of_our_own_speak_for_themselves():
    assert in_own_words(OwnWords("a condition is missing after ON"), "ON") == ("a condition is missing after ON", "")
    assert in_own_words("whatever a later release says", "x") == ('"x" is not understood here', "")
