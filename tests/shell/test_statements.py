"""Text is cut at the semicolons that end statements, and at no other."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from dpsql.shell.statements import split, statements

SIGNS = ["'", "''", '"', '""', ";", ";;", "--", "/*", "*/", "/*/", "//", "$$", "$t$", "\\", "\\'", "-", "/", "*", "("]
WORDS = ["a", "e'", "E'", "b1", "1", "1a", "é", " ", "\n", "\r\n", "\t"]
TEXTS = st.lists(st.sampled_from([*SIGNS, *WORDS]), max_size=14).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        (";", []),
        (" ; ;\n;", []),
        ("-- all; comment", []),
        ("/* ; */ ; -- ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        (" SELECT 1 ; SELECT 2 ", ["SELECT 1", "SELECT 2"]),
        ("a\n;\nb", ["a", "b"]),
        ("SELECT ';'; b", ["SELECT ';'", "b"]),
        ("SELECT 'it''s;'; b", ["SELECT 'it''s;'", "b"]),
        ("'a\\'; b", ["'a\\'", "b"]),  # a backslash is no escape in a plain string
        ("e'a\\';'; b", ["e'a\\';'", "b"]),  # but it is in an e'...'
        ("E'''\\\\'; b", ["E'''\\\\'", "b"]),
        ("date'a;'; b", ["date'a;'", "b"]),  # the e is the end of a word
        ('SELECT "a;""b"; c', ['SELECT "a;""b"', "c"]),
        ("a -- x ; y\n; b", ["a -- x ; y", "b"]),
        ("a -- x ' y\n; b", ["a -- x ' y", "b"]),
        ("a /* ; ' \" -- */ ; b", ["a /* ; ' \" -- */", "b"]),
        ("a /* /* ; */ ; */ ; b", ["a /* /* ; */ ; */", "b"]),
        ("/*/ ; */ a; b /*/**/;*/; c", ["a", "b /*/**/;*/", "c"]),  # the * of /* does not close it
        ("'--'; b", ["'--'", "b"]),
        ("'/*'; b; '*/'", ["'/*'", "b", "'*/'"]),
        ("a - -1; b - - c", ["a - -1", "b - - c"]),
        ("$$ ; $$; b", ["$$ ; $$", "b"]),
        ("$tag$ ; $$ ; $tag$; b", ["$tag$ ; $$ ; $tag$", "b"]),
        ("a$b$c; d$b$e", ["a$b$c", "d$b$e"]),  # a dollar inside a name
        ("-- why\n\nSELECT 1; /* and */ SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("a; -- end", ["a"]),
        ("a -- end", ["a -- end"]),
        ("a 'open ; b", ["a 'open ; b"]),
        ("a 'it''s open ;", ["a 'it''s open ;"]),
        ("a /* open ; b", ["a /* open ; b"]),
        ("/* open ;", ["/* open ;"]),  # a mistake, which is to be told
        ("a $$ open ; b", ["a $$ open ; b"]),
    ],
)
def test_statements(text: str, expected: list[str]):
    assert statements(text) == expected


@pytest.mark.parametrize(
    ("text", "finished", "rest"),
    [
        ("a; b", ("a",), "b"),
        ("a; -- b", ("a",), ""),
        ("a; /* b", ("a",), "/* b"),
        ("a; 'b  ", ("a",), "'b  "),  # blanks inside a quote are part of it
        ("a; b \n", ("a",), "b \n"),
    ],
)
def test_what_waits_for_its_semicolon(text: str, finished: tuple[str, ...], rest: str):
    found = split(text)
    assert (found.finished, found.rest) == (finished, rest)


def by_tokens(text: str) -> list[str]:
    """What the library's own tokenizer says the statements are."""
    found, start = [], None
    for token in DuckDB().tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            if start is not None:
                found.append(text[start : token.start].rstrip())
            start = None
        elif start is None:
            start = token.start
    return found if start is None else [*found, text[start:].rstrip()]


@given(TEXTS.filter(lambda text: "*/*" not in text and "/*/" not in text))  # there sqlglot counts a sign twice
@example("--;\r;a")
def test_agrees_with_the_tokenizer_that_reads_the_statements_next(text: str):
    try:
        expected = by_tokens(text)
    except TokenError:
        return
    assert statements(text) == expected


QUOTED = st.one_of(
    st.text(max_size=8).map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.text(max_size=8).map(lambda text: '"' + text.replace('"', '""') + '"'),
    st.text(max_size=8).filter(lambda text: "$" not in text).map(lambda text: f"$${text}$$"),
    st.text(max_size=8).filter(lambda text: not {"*", "/"} & set(text)).map(lambda text: f"x /* {text} */ y"),
    st.text(max_size=8).filter(lambda text: not {"\n", "\r"} & set(text)).map(lambda text: f"x -- {text}\ny"),
)


@given(st.lists(QUOTED, max_size=5), st.sampled_from([";", "; ", " ;\n", ";;", "; -- ;\n"]))
def test_no_quote_or_comment_is_cut(parts: list[str], between: str):
    written = [f"SELECT {part} z" for part in parts]
    assert statements(between.join(written)) == written


@given(TEXTS.filter(lambda text: "/*" not in text and "--" not in text))  # there a statement's words may stand too
def test_nothing_is_lost_but_ends_and_blanks(text: str):
    at = 0
    for each in statements(text):
        at = text.index(each, at) + len(each)
    assert not statements(text[at:])


@given(TEXTS)
def test_line_by_line_is_the_same_as_at_once(text: str):
    text = text.replace("\r", "")
    finished: list[str] = []
    typed = ""
    for line in text.split("\n"):
        found = split(f"{typed}\n{line}" if typed else line)
        finished += found.finished
        typed = found.rest
    assert (tuple(finished), typed) == (split(text).finished, split(text).rest)


def test_long_texts_take_linear_time():
    for text in ("'" + "''" * 200_000, "/*" * 200_000, "$a" * 200_000, "--\n" * 200_000, "e'" + "\\" * 400_000):
        assert len(statements(text)) <= 1
