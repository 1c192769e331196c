"""Refusals speak the reader's words, malformed texts are syntax errors, and hints can be followed where they stand."""

from __future__ import annotations

import random
import re
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, SQLSyntaxError, UnknownColumn, UnknownGroups, UnsupportedSQL
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.parser import PrivateParser
from tests.sql.test_fuzz import CORPUS
from tests.sql.test_refusals import EMPTY, FACTS, refusal

ARGUMENTS = ("", "age", "age, 1", "s, 'a'", "s, 'a', 'b'", "d", "age, r, 1", "'day', d, d", "*")
CONSTANTS = (
    *("r'abc'", "x'ab'", "b'01'", "e'abc'", "$$abc$$", "n'abc'", "U&'abc'", "0x12", "MAP {'a': 1}", "ROW(1, 2)"),
    *("x -> x + 1", "s ->> 'a'", "s::JSON", "age::UUID", "s[1]", "age << 1", "age >> 1", "age & 1", "xor(age, 1)"),
    *("s ~ 'a'", "s @> 'a'", "s <@ 'a'", "s && 'a'", "s OVERLAPS s", "f(x := 1)", "now()", "today()", "uuid()"),
    *("DATE_BIN('1 day', d, d)", "TIME_BUCKET(INTERVAL 1 DAY, d)", "FIRST(age ORDER BY r)", "s LIKE ANY ('a', 'b')"),
    *("s LIKE ALL ('a', 'b')", "(age, r) IN ((1, 2))", "SUM(age) OVER ()", "d AT TIME ZONE 'utc'", "COLUMNS(*)"),
)


def texts() -> list[str]:
    """Queries with every function, operator and keyword that the parser knows, and other kinds of constants."""
    names = {*PrivateParser.FUNCTIONS, *PrivateParser.FUNCTION_PARSERS, *PrivateParser.NO_PAREN_FUNCTION_PARSERS}
    calls = [f"SELECT SUM({name}({each})) FROM t" for name in sorted(names) for each in ARGUMENTS]
    words = sorted(PrivacyDialect.Tokenizer.KEYWORDS)
    signs = [f"SELECT COUNT(*) FROM t WHERE {form.format(word)}" for word in words for form in ("age {} 5", "{} age")]
    types = [f"SELECT COUNT(CAST(age AS {word})) FROM t" for word in words]
    beginnings = [f"{word} COUNT(*) FROM t" for word in words]
    constants = [f"SELECT {form.format(each)} FROM t" for each in CONSTANTS for form in ("SUM({})", "COUNT(*), {}")]
    return list(dict.fromkeys([*calls, *signs, *types, *beginnings, *constants]))


def outcome(sql: str) -> DPSQLError | None:
    try:
        dpsql.query({"t": EMPTY}, sql, epsilon=1, delta=1e-6, **FACTS)
    except DPSQLError as error:
        return error
    return None


SUBJECT = re.compile(
    r"(?:CAST of \w+ to )?(.+?)(?:\(\))? (?:is|are) (?:not supported|a kind of)|(\S+) (?:takes|wants) "
)
DESCRIBED = frozenset(
    {"regular expressions", "lists ([...])", "structures ({...})", "subscripts (x[...])", "operations on bits",
     "rows of values (a, b)", "lambda functions", "set operations (INTERSECT)", "set operations (EXCEPT)"}
)  # fmt: skip
"""Subjects that say what a thing is, where the text has signs for it."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(8))
def test_the_word_of_a_refusal_is_a_word_of_the_text(part: int):
    for sql in texts()[part::8]:
        error = outcome(sql)
        found = SUBJECT.match(error.message) if error is not None else None
        subject = (found[1] or found[2]) if found else None
        if subject is None or subject in DESCRIBED:
            continue
        assert all(word in sql.upper() for word in subject.upper().split()), (sql, str(error))


def test_no_class_of_the_parser_is_named():
    classes = {name for name in vars(__import__("sqlglot").exp) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", name)}
    for sql in texts()[::3]:
        error = outcome(sql)
        said = set() if error is None else set(re.findall(r"\w+", error.message))
        assert not {
            name for name in classes if name in said or (name.upper() in said and name.upper() not in sql.upper())
        }


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT COUNT(*) FROM t WHERE age >> 1 = 1", ">>"),
        ("SELECT COUNT(*) FROM t WHERE s = $$a$$", "$$a$$"),
        ("SELECT STRING_AGG(s, ',') FROM t", "STRING_AGG"),
        ("SELECT LISTAGG(s, ',') FROM t", "LISTAGG"),
        ("SELECT SUM(IF(age, 1, 2)) FROM t", "IF"),
        ("SELECT COUNT(*) FROM t WHERE d > NOW()", "NOW"),
        ("SELECT COUNT(*) FROM t WHERE d > CURRENT_LOCALTIMESTAMP()", "CURRENT_LOCALTIMESTAMP is not supported: an"),
        ("SELECT COUNT(*) FROM t WHERE d > localtime", "LOCALTIME is not supported: an answer must not change"),
        ("SELECT COUNT(*) FROM t WHERE age BETWEEN 'a' AND 'b'", "BETWEEN"),
    ],
)
def test_words(sql: str, word: str):
    error = refusal(lambda: outcome_raised(sql))
    assert error.message.startswith(word)


def outcome_raised(sql: str) -> Any:
    return dpsql.query({"t": EMPTY}, sql, epsilon=1, delta=1e-6, **FACTS)


MALFORMED = (
    "SELEC COUNT(*) FROM t",
    "foo",
    "COUNT(*)",
    "'a'",
    "5",
    "= 3",
    "SELECT COUNT(*) FROM t WHERE age > > 3",
    "SELECT COUNT(*) FROM t WHERE age < < 3",
    "SELECT COUNT(*) FROM t WHERE age < > 3",
    "SELECT COUNT(*) FROM t WHERE age > ",
    "SELECT COUNT(*) FROM t WHERE age BETWEEN 20 60",
    "SELECT COUNT(LPAD(s, 5, , '-')) FROM t",
    "SELECT DISTINCT , age FROM t",
    "SELECT , COUNT(*) FROM t",
    "SELECT REGR_R2(age, hours FROM t",
    "SELECT COUNT(*)) FROM t",
    "SELECT COUNT(*) FROM t WHERE (age > 1",
    "SELECT COUNT(*) FORM t",
    "SELECT COUNT(*) FROM t GRUP BY s",
    "SELECT COUNT(*) FROM t WHERE age > ?",
    "(SELECT COUNT(*) FROM t) + 1",
    "SELECT COUNT(*) FROM t GROUP",
    "SELECT COUNT(*) FROM t OFFSET",
    "SELECT COUNT(*) LIMIT FROM t",
    "SELECT COUNT(*) FROM t AS a JOIN t ON",
    "SELECT COUNT(*) FROM (SELECT age FROM t) ORDER",
    "SELECT s, COUNT(*) FROM t GROUP BY s WHERE age > 3",
    "SELECT s, COUNT(*) FROM t HAVING COUNT(*) > 1 GROUP BY s",
    "SELECT COUNT(*) FROM t LIMIT 1 ORDER BY 1",
    "SELECT COUNT(*) FROM t OFFSET 1 ORDER BY 1",
    "SELECT COUNT(*) FROM (SELECT b, COUNT(*) FROM t HAVING COUNT(*) > 1 GROUP BY b)",
    "SELECT COUNT(*) FROM t ORDER BY 1 ASC DESC",
    "SELECT COUNT(*) FROM t LIMIT 1, 2",
    "SELECT COUNT(*) FROM t GROUP BY ROLLUP ()",
    "SELECT COUNT(*) FROM t GROUP BY CUBE ()",
)


@pytest.mark.parametrize("sql", MALFORMED)
def test_malformed_text_is_a_syntax_error(sql: str):
    assert type(outcome(sql)) is SQLSyntaxError


@pytest.mark.parametrize("open_", ["'a", '"a', "/* a", "$$a", "$x$ a", "'a''"])
def test_what_is_never_closed_is_said(open_: str):
    error = outcome(f"SELECT COUNT(*) FROM t WHERE s = {open_}")
    assert type(error) is SQLSyntaxError
    assert error.message == "the text cannot be read: a quote or comment is never closed."


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT COUNT(*) AS limit, AVG(age) "group" FROM t "left"',
        "SELECT COUNT(*) AS\n  offset FROM t LIMIT 1 OFFSET 0",
        "SELECT COUNT(*) FROM t OFFSET 0 LIMIT 1",
        "FROM t SELECT s, COUNT(*) WHERE age > 3 GROUP BY s HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 2",
    ],
)
def test_clauses_in_order_and_names_that_are_said_to_be_names(sql: str):
    assert outcome(sql) is None


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (1)", "drop table t", "SET x = 1", "DESCRIBE t", "VALUES (1)"])
def test_other_statements_are_not_supported(sql: str):
    error = outcome(sql)
    assert type(error) is UnsupportedSQL
    assert error.message == f"only SELECT works here, not {sql.split(maxsplit=1)[0].upper()}."


JUNK = ("> >", ", ,", ") )", "( (", "= =", "AND AND", "..", "??", "< <", "+ * /")


def test_what_duckdb_cannot_parse_is_not_called_unsupported_or_answered():
    """Words put into queries at random: DuckDB's parser says which are no SQL. What only this language has, and
    reserved words for names, are its own."""
    connection = duckdb.connect()
    rng = random.Random(7)
    seen = 0
    for sql in [each for each in CORPUS if ":" not in each and "PRIVACY" not in each and "=>" not in each]:
        for _ in range(3):
            words = sql.split()
            words.insert(rng.randrange(len(words) + 1), rng.choice(JUNK))
            text = " ".join(words)
            try:
                connection.extract_statements(text)
            except duckdb.ParserException:
                error = outcome(text)
                assert error is not None, text
                assert not isinstance(error, UnsupportedSQL) or "only" in error.message, (text, str(error))
                seen += 1
    assert seen > 50


# Hints, by doing what they say


def test_delta_that_is_asked_for_is_there():
    people = pd.DataFrame({"city": ["a", "b"] * 50})
    sql = "SELECT city, COUNT(*) FROM t GROUP BY city"
    for accountant in ("auto", "basic", "zcdp"):
        budget = dpsql.Budget(3, 5e-7)
        session = dpsql.Session({"t": people}, budget=budget, accountant=accountant)
        error = refusal(lambda session=session: session.query(sql, epsilon=0.1))
        assert isinstance(error, UnknownGroups)
        delta = re.search(r"allow delta=(\S+):", str(error))
        assert delta is not None
        assert session.query(sql, epsilon=0.1, delta=float(delta[1])) is not None


FOLLOWED = {
    "SELECT COUNT(*) FROM t WHERE d > NOW()": "SELECT COUNT(*) FROM t WHERE d > DATE '2025-01-31'",
    "SELECT COUNT(*) FROM t WHERE d > CURRENT_DATE": "SELECT COUNT(*) FROM t WHERE d > DATE '2025-01-31'",
    "SELECT COUNT(*) FROM t WHERE (age, s) = (1, 'a')": "SELECT COUNT(*) FROM t WHERE age = 1 AND s = 'a'",
    "SELECT s, b, COUNT(*) FROM t GROUP BY (s, b)": "SELECT s, b, COUNT(*) FROM t GROUP BY s, b",
    "SELECT COUNT(*) FROM t WHERE s LIKE ANY ('a%', 'b%')": "SELECT COUNT(*) FROM t WHERE s LIKE 'a%' OR s LIKE 'b%'",
    "SELECT COUNT(*) FROM t WHERE s LIKE ALL ('a%', 'b%')": "SELECT COUNT(*) FROM t WHERE s LIKE 'a%' AND s LIKE 'b%'",
    "SELECT EXP(r), COUNT(*) FROM t GROUP BY 1": "SELECT ROUND(EXP(r), 2), COUNT(*) FROM t GROUP BY 1",
}


@pytest.mark.parametrize("sql", FOLLOWED)
def test_what_a_hint_says_works(sql: str):
    assert isinstance(outcome(sql), UnsupportedSQL)
    assert outcome(FOLLOWED[sql]) is None


# Keys that only a library's last bits tell apart


@pytest.mark.parametrize(
    "key",
    [
        *("EXP(r)", "LN(r)", "LOG2(r)", "LOG10(r)", "LOG(3, r)", "CBRT(r)", "POWER(r, 0.5)", "r ** 0.5", "POWER(2, r)"),
        *("EXP(r) + 1", "-EXP(r)", "EXP(r) % 1", "COALESCE(EXP(r), 0)", "CASE WHEN b THEN EXP(r) ELSE r END"),
        *("GREATEST(LN(r), r)", "NULLIF(EXP(r), 1)", "CAST(EXP(r) AS TEXT)", "CAST(EXP(r) AS FLOAT)"),
        *("LEFT(CAST(EXP(r) AS TEXT), 9)", "SQRT(EXP(r))"),
    ],
)
def test_groups_by_the_last_bits_of_a_function_are_refused(key: str):
    for sql in (
        f"SELECT {key}, COUNT(*) FROM t GROUP BY 1",
        f"SELECT DISTINCT {key} FROM t",
        f"SELECT k, COUNT(*) FROM (SELECT {key} AS k FROM t) GROUP BY k",
        f"SELECT s, {key}, COUNT(*) FROM t GROUP BY s, {key}",
    ):
        for delta in (0, 1e-6):
            with pytest.raises(UnsupportedSQL, match="ROUND it"):
                dpsql.query({"t": EMPTY}, sql, epsilon=1, delta=delta, **FACTS)


def test_groups_by_last_bits_of_what_the_query_makes():
    people = pd.DataFrame({"pid": [1, 2, 3], "r": [0.5, 1.5, 2.5]})
    tables = {"t": dpsql.Table(people, unit="pid", max_rows=2)}
    for sql in (
        "SELECT k, COUNT(*) FROM (SELECT pid, MAX(EXP(r)) AS k FROM t GROUP BY pid) GROUP BY k",
        "SELECT k, COUNT(*) FROM (SELECT EXP(r) AS k FROM t UNION ALL SELECT r AS k FROM t) GROUP BY k",
    ):
        with pytest.raises(UnsupportedSQL, match="ROUND it"):
            dpsql.query(tables, sql, epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        *("ROUND(EXP(r), 1)", "FLOOR(LN(r))", "CEIL(EXP(r))", "TRUNC(EXP(r), 2)", "CAST(EXP(r) AS INTEGER)"),
        *("CAST(EXP(r) AS DECIMAL(9, 2))", "EXP(r) > 2", "CASE WHEN EXP(r) > 2 THEN 'a' ELSE s END", "POWER(r, 2)"),
        *("EXP(CAST(b AS INTEGER))", "SQRT(r)", "r", "LN(age)"),
    ],
)
def test_other_groups_are_answered(key: str):
    assert outcome(f"SELECT {key}, COUNT(*) FROM t GROUP BY 1") is None


# Names of days and months


@pytest.mark.parametrize(("name", "first", "count"), [("DAYNAME", "Friday", 7), ("MONTHNAME", "April", 12)])
@pytest.mark.parametrize("cast", ["d", "CAST(d AS DATE)"])
def test_names_of_days_and_months_are_public_keys(name: str, first: str, count: int, cast: str):
    days = pd.date_range("2021-01-01", "2021-12-31")
    table = dpsql.Table(pd.DataFrame({"d": days}), nullable={"d": False})
    answer = dpsql.query({"t": table}, f"SELECT {name}({cast}) AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1e5)
    found = dict(answer.to_pandas().to_numpy().tolist())
    expected = duckdb.sql(
        f"SELECT {name}(x) AS k, COUNT(*) AS n FROM "
        "(SELECT UNNEST(generate_series(DATE '2021-01-01', DATE '2021-12-31', INTERVAL 1 DAY)) AS x) GROUP BY k"
    ).fetchall()
    assert len(found) == count
    assert next(iter(found)) == first
    assert found == dict(expected)


# Owners


def test_errors_of_a_schema_name_the_table():
    people = pd.DataFrame({"age": [1, 2]})
    for facts in (
        {"columns": {"nope": {"bounds": [0, 1]}}},
        {"columns": {"age": {"bounds": [5, 1]}}},
        {"unit": "nope"},
        {"columns": {"age": {"keys": []}}},
        {"unique": ["zz"]},
        {"max_rows": 0},
    ):
        with pytest.raises(dpsql.errors.InvalidSchema, match="people"):
            dpsql.Session(
                {"people": people}, schema=dpsql.Schema.from_dict({"tables": {"people": facts}}), budget=dpsql.Budget(1)
            )


@pytest.mark.parametrize("name", ["people", "a"])
def test_errors_of_a_table_name_it_whatever_its_name(name: str):
    """A name that is a word or a letter of the message is not thereby said."""
    texts = {"bounds": {"age": (0, 1)}}
    numbers = {"keys": {"age": ["x"]}}
    for frame, facts in ((pd.DataFrame({"age": ["q"]}), texts), (pd.DataFrame({"age": [1]}), numbers)):
        said = {"columns": {"age": {word: list(value["age"]) for word, value in facts.items()}}}
        schema = dpsql.Schema.from_dict({"tables": {name: said}})
        with pytest.raises(dpsql.errors.InvalidSchema, match=rf"^{name}: age: "):
            dpsql.Session({name: frame}, schema=schema, budget=dpsql.Budget(1))


@pytest.mark.parametrize(
    "share", [dpsql.Budget(2), dpsql.Budget(1, 1e-5), {"ann": dpsql.Budget(1), "bob": dpsql.Budget(9)}]
)
def test_a_share_above_the_budget_is_refused(share: Any):
    with pytest.raises(dpsql.errors.InvalidPrivacyParameter, match="the share of analyst"):
        dpsql.Budget(1, 1e-6, analysts=share)
    assert dpsql.Budget(9, 1e-5, analysts=share).analysts


def test_what_is_nested_too_deeply_is_a_plain_error(tmp_path: Any):
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for text in ("x = " + "[" * 50_000 + "]" * 50_000, "[tables.p.columns.a]\nkeys = " + "[" * 900 + "]" * 900):
        (tmp_path / "owner.toml").write_text(text)
        with pytest.raises(dpsql.errors.InvalidSchema):
            dpsql.Schema.from_toml(tmp_path / "owner.toml")
    for words in (
        {"budget": deep},
        {"budget": {"epsilon": deep}},
        {"neighbours": deep},
        {"tables": {"p": {"unit": deep}}},
        {"budget": {"epsilon": 1, "accountant": deep}},
        {"tables": {"p": {"columns": {"a": {"keys": deep}}}}},
    ):
        with pytest.raises(DPSQLError):
            dpsql.Schema.from_dict(words)
    for how in (
        {"epsilon": deep},
        {"epsilon": 1, "delta": deep},
        {"epsilon": 1, "params": {"a": deep}},
        {"epsilon": 1, "bounds": deep},
        {"epsilon": 1, "neighbours": deep},
        {"epsilon": 1, "strategy": deep},
    ):
        with pytest.raises(DPSQLError):
            dpsql.query(EMPTY, "SELECT COUNT(*) FROM df", **how)


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT AVG(hours-per-week) FROM t", ' Did you mean "hours-per-week", in double quotes?'),
        ("SELECT COUNT(*) FROM t GROUP BY Hours-Per-Week", ' Did you mean "hours-per-week", in double quotes?'),
        ("SELECT AVG(hours - per) FROM t", ""),
        ("SELECT AVG(houres-per-week) FROM t", ""),
    ],
)
def test_a_name_with_hyphens_is_asked_for_in_quotes(sql: str, near: str) -> None:
    frame = pd.DataFrame({"hours-per-week": [1], "n": [2]})
    with pytest.raises(UnknownColumn) as raised:
        dpsql.query(frame, sql, epsilon=1, bounds={"hours-per-week": (0, 99)})
    assert raised.value.message.endswith(f"in t.{near}")
