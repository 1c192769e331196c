"""Texts made from accepted ones by small changes: an answer or a refusal, alike on any data, and no word unread.

Every change has a number of its own, which a failure names. DPSQL_FUZZ=20 asks for twenty times as many changes,
DPSQL_FUZZ_SEED=n begins at another number.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from sqlglot.errors import TokenError

import dpsql
from dpsql.errors import DPSQLError, InvalidParameter, InvalidPrivacyParameter, QueryRefused
from dpsql.plan.query import Finish, Output, format_plan
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.parameters import params_of
from tests.sql.test_refusals import EMPTY, FACTS, MARK, NUMBER, table

TIMES = int(os.environ.get("DPSQL_FUZZ", "1"))
FIRST_SEED = int(os.environ.get("DPSQL_FUZZ_SEED", "0"))
PARAMS: dict[str, Any] = {"low": 20, "name": "a", "share": 0.5, "day": "2020-01-01"}
FULL = table()

PLAIN = """
SELECT COUNT(*) FROM t
SELECT COUNT(*) AS n, SUM(age) AS total, AVG(hours) mean FROM t AS p WHERE p.b
SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY 2 DESC NULLS FIRST LIMIT 3 OFFSET 1
SELECT s AS g, b, COUNT(age) AS n FROM t GROUP BY g, 2 HAVING COUNT(*) > 5 ORDER BY n, g ASC NULLS LAST
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM t GROUP BY decade ORDER BY decade
SELECT UPPER(s), SUM(hours) FROM t GROUP BY UPPER(s)
SELECT EXTRACT(month FROM d) AS m, COUNT(*) FROM t GROUP BY m
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) FROM t GROUP BY band
SELECT SUM(CASE b WHEN TRUE THEN age ELSE 0 END), SUM(IF(b, 1, -1)) FROM t
SELECT AVG(CAST(age AS DOUBLE)), COUNT(TRY_CAST(s AS INTEGER)), COUNT(age::TEXT) FROM t
SELECT SUM(CLAMP(CAST(r AS DECIMAL(8, 2)), 0, 9)) FROM t
SELECT COUNT(*) FROM t WHERE s LIKE 'a%' AND city NOT ILIKE '%b_' OR s LIKE '!%' ESCAPE '!'
SELECT COUNT(*) FROM t WHERE age IS DISTINCT FROM 5 AND r IS NOT DISTINCT FROM 2.5 AND s IS NOT NULL
SELECT COUNT(*) FROM t WHERE age BETWEEN 20 AND 60 AND year NOT BETWEEN 1 AND 2 AND NOT (hours IN (1, 2, 3))
SELECT COUNT(*) FROM t WHERE age NOT IN (1, 2) AND s IN ('a', NULL) AND b IS TRUE AND b IS NOT FALSE
SELECT COUNT(*) FILTER (WHERE age > 30) AS n, SUM(age) FILTER (WHERE b AND hours < 9), COUNT_IF(age > 20) FROM t
SELECT COUNT(*) FROM t WHERE age > :low AND s = :name AND d > :day
SELECT SUM(CLAMP(r, 0, 10)), AVG(LEAST(GREATEST(r, -1), 1)), SUM(COALESCE(age, 0) - NULLIF(hours, 5)) FROM t
SELECT SUM(age + hours * 2 - year // 3 % 7), SUM(-age), SUM(ABS(age - 40)), SUM(age / (hours + 1)) FROM t
SELECT ROUND(AVG(age), 1), 100 * COUNT(*) / COUNT(r), COALESCE(SUM(age), 0), GREATEST(COUNT(*), 0) FROM t
SELECT SUM(SQRT(age)), SUM(LN(age)), SUM(LOG2(age)), SUM(LOG(3, age)), SUM(POWER(age, 2)), SUM(age ** 2) FROM t
SELECT COUNT(d + INTERVAL 1 DAY), COUNT(d - INTERVAL '2' MONTH), COUNT(DATE_ADD(d, INTERVAL 3 HOUR)) FROM t
SELECT SUM(DATE_DIFF('day', TIMESTAMP '2020-01-01 10:00:00', d) % 7), COUNT(DATE_TRUNC('week', d)) FROM t
SELECT YEAR(d), COUNT(*) FROM t WHERE d >= DATE '2020-01-01' AND d < '2022-01-01' GROUP BY YEAR(d)
SELECT COUNT(MAKE_DATE(2020, 1, age)), COUNT(LAST_DAY(d)), COUNT(DAYNAME(d)), SUM(DATE_PART('hour', d)) FROM t
SELECT COUNT(TRIM(BOTH 'x' FROM s)), COUNT(TRIM(LEADING FROM s)), COUNT(SUBSTRING(s FROM 2 FOR 3)) FROM t
SELECT COUNT(s || 'x') FROM t
SELECT COUNT(*) FROM t WHERE POSITION('a' IN s) > 0 AND STARTS_WITH(s, 'a') AND LENGTH(CONCAT(s, city)) > 2
SELECT COUNT(REPLACE(s, 'a', 'b')), COUNT(LPAD(s, 5, '-')), COUNT(LEFT(s, 2)), COUNT(REVERSE(LOWER(s))) FROM t
SELECT DISTINCT s, b FROM t ORDER BY s DESC
SELECT DISTINCT age FROM t WHERE age BETWEEN 20 AND 25
SELECT city, COUNT(*) FROM t GROUP BY city
SELECT city, s, AVG(age) FROM t WHERE hours > 0 GROUP BY city, s HAVING AVG(age) > 30 AND COUNT(*) > 10
SELECT WITH DIFFERENTIAL_PRIVACY s, COUNT(*) FROM t GROUP BY s
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-7) city, AVG(age) AS a FROM t GROUP BY city
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = LAPLACE_THRESHOLD) city, COUNT(*) FROM t GROUP BY 1
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 3) city, COUNT(*) FROM t GROUP BY city
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = PUBLIC_GROUPS) s, SUM(age) FROM t GROUP BY s
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1, max_rows_contributed = 1) COUNT(*) FROM t
SELECT AVG(r, contribution_bounds_per_row => (0, 9)) AS a, SUM(age, epsilon => 0.25) AS b, COUNT(*) AS n FROM t
SELECT COUNT(*, contribution_bounds_per_group => (0, 1)) AS n, SUM(age, report_format => 'JSON') AS j FROM t
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n, 0.9) AS high FROM t
SELECT s, COUNT(*) AS n FROM t GROUP BY s ORDER BY DP_INTERVAL_LOW(n), n DESC LIMIT 2
SELECT SUM("hours per week") AS "the sum" FROM t WHERE "AGE" > 3 AND T."s" = 'it''s'
SELECT SUM(age = 30), SUM(age != 1 AND hours == 2 OR year >= 3), AVG(b) FROM t WHERE b
SELECT ALL COUNT(ALL age) FROM t WHERE age > +5 AND age < - -9 AND @age = 1 AND r > 0.5
SELECT SUM(age) FROM t WHERE age IN (:low, 30) AND r * :share < 1 LIMIT 1
SELECT CASE WHEN COUNT(*) > 10 THEN AVG(age) END AS a, COUNT(*) BETWEEN 1 AND 9, SUM(age) IS NULL FROM t
SELECT TRUNC(SUM(age) / 2, 1), CEIL(AVG(hours)), SIGN(COUNT(*)), PI(), 'x' AS label, NULL AS nothing FROM t
SELECT MOD(age, 3) AS m, COUNT(*) FROM t GROUP BY m HAVING m > 0 ORDER BY COUNT(*) DESC, m
SELECT b IS TRUE AS yes, age > 40 AS old, COUNT(*) FROM t GROUP BY yes, old
SELECT COUNT(*) AS count, SUM(age) AS sum, MONTH(d) AS month FROM t GROUP BY month
SELECT SUM(CASE WHEN b THEN 1 ELSE IF(age > 2, 2, 3) END), SUM(IF(b, CASE age WHEN 1 THEN 2 END, 4)) FROM t
SELECT COUNT(*) FROM t WHERE age BETWEEN 1 AND CASE WHEN b THEN 2 ELSE 3 END AND b
FROM t SELECT COUNT(*)
""".strip().splitlines()
"""Accepted queries without sub-queries: every word of them reaches the plan."""
NESTED = """
SELECT COUNT(*) FROM (SELECT age FROM t WHERE b) WHERE age > 30
SELECT band, COUNT(*), AVG(x) FROM (SELECT age // 10 AS band, hours AS x FROM t) AS q GROUP BY band
SELECT SUM(q.a) FROM (SELECT age, s FROM t) AS q(a, g) WHERE q.g = 'a'
WITH adults AS (SELECT * FROM t WHERE age >= 18) SELECT s, AVG(age) FROM adults GROUP BY s
WITH x AS (SELECT age + 1 AS a FROM t), y(c) AS (SELECT a FROM x WHERE a < 50) SELECT SUM(c) FROM y
WITH n AS (SELECT s, COUNT(*) AS n FROM t GROUP BY s) SELECT s, n FROM n WHERE n > 10 ORDER BY n DESC
SELECT MAX(n), MIN(n), SUM(n), AVG(n), COUNT(*) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)
SELECT *, n * 2 AS twice FROM (SELECT COUNT(*) AS n, SUM(age) AS total FROM t) AS q WHERE q.n > 0
SELECT g, SUM(n) AS n FROM (SELECT UPPER(s) AS g, b, COUNT(*) AS n FROM t GROUP BY g, b) GROUP BY g HAVING SUM(n) > 1
SELECT n FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM t)
SELECT DISTINCT n > 5 AS big FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s) LIMIT 2
WITH x AS (SELECT * FROM (SELECT age, city FROM t WHERE :low < age)) SELECT city, AVG(age) FROM x GROUP BY city
""".strip().splitlines()
STATISTICS = """
SELECT VAR_POP(age), VAR_SAMP(hours) AS v, STDDEV(age), AVG(age), COUNT(*) FROM t WHERE b
SELECT s, VARIANCE(age) AS v, STDDEV_POP(age + hours) FROM t GROUP BY s HAVING VARIANCE(age) > 2 ORDER BY v DESC
SELECT COVAR_POP(age, hours), COVAR_SAMP(age, year), CORR(hours, age) FILTER (WHERE b) FROM t
SELECT REGR_SLOPE(age, hours) AS slope, REGR_INTERCEPT(age, hours), REGR_R2(age, hours) FROM t
SELECT MEDIAN(age), QUANTILE(hours, 0.25), PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC) FROM t
SELECT s, PERCENTILE_CONT(:share) WITHIN GROUP (ORDER BY age) AS q, COUNT(*) FROM t GROUP BY s ORDER BY q
SELECT MIN(age), MAX(hours) - MIN(hours) AS span, MAX(age, epsilon => 0.25) FROM t
SELECT MODE(s), MODE() WITHIN GROUP (ORDER BY b), APPROX_TOP_K(s, 2) FROM t
SELECT COUNT(DISTINCT age), COUNT(DISTINCT city) AS cities, APPROX_COUNT_DISTINCT(r) FROM t WHERE r > 0
SELECT s, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (s, b)
SELECT s, b, SUM(age), COUNT(*) FROM t GROUP BY CUBE (s, b) ORDER BY 1 NULLS FIRST, 2
SELECT s, b, AVG(age) AS a FROM t GROUP BY GROUPING SETS ((s), (b), ()) HAVING COUNT(*) > 5 LIMIT 3
SELECT COUNT(*) FROM t WITHIN 40 CONFIDENCE 90
SELECT s, SUM(age) FROM t GROUP BY s WITHIN 5000
""".strip().splitlines()
"""Accepted queries of statistics, levels and errors asked for."""
CORPUS = [*PLAIN, *NESTED, *STATISTICS]

TOKENIZER = PrivacyDialect()
ODD = ["😀", "é", "\u00a0", "\u202e", "\ufeff", "\0", "\ud800", "ＣＯＵＮＴ", "''", '""', "'", '"', "`", "$1", "?",
    ":x", ";", "--", "/*", "*/", "-- so\n", "/* so */", "\\", "#", "0x1F", "1e999", "9" * 20, "\n", "\t", "1_0", ".5",
    "5.", "->", "=>", "::", "||", "//", "**", "~", "!", "&"]  # fmt: skip


def words(sql: str) -> list[str]:
    """The words of a text as they are written."""
    return [sql[token.start : token.end + 1] for token in TOKENIZER.tokenize(sql)]


def sort_of(word: str) -> str:
    tokens = TOKENIZER.tokenize(word)
    return str(tokens[0].token_type) if len(tokens) == 1 else ""


VOCABULARY = sorted({word for sql in CORPUS for word in words(sql)})
_SORTED: dict[str, list[str]] = {}
for _word in VOCABULARY:
    _SORTED.setdefault(sort_of(_word), []).append(_word)
_SIGNS = ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "AND", "OR", "||", "IS DISTINCT FROM"]
ALIKE: dict[str, list[str]] = {
    **{word: listed for listed in _SORTED.values() if len(listed) > 1 for word in listed},
    **dict(zip(_SIGNS, [_SIGNS] * len(_SIGNS), strict=True)),
    **{name: ["SUM", "AVG", "COUNT", "COUNT_IF", "ABS", "UPPER", "YEAR"] for name in ("SUM", "AVG", "COUNT")},
}
"""Words of the same sort for a word: names for a name, numbers for a number."""


def drop(rng: random.Random, text: list[str]) -> None:
    del text[rng.randrange(len(text))]


def double(rng: random.Random, text: list[str]) -> None:
    place = rng.randrange(len(text))
    text.insert(place, text[place])


def swap(rng: random.Random, text: list[str]) -> None:
    a, b = rng.randrange(len(text)), rng.randrange(len(text))
    text[a], text[b] = text[b], text[a]


def replace(rng: random.Random, text: list[str]) -> None:
    text[rng.randrange(len(text))] = rng.choice(VOCABULARY)


def insert(rng: random.Random, text: list[str]) -> None:
    text.insert(rng.randint(0, len(text)), rng.choice(VOCABULARY))


def odd(rng: random.Random, text: list[str]) -> None:
    text.insert(rng.randint(0, len(text)), rng.choice(ODD))


def inside(rng: random.Random, text: list[str]) -> None:
    """Something odd in the middle of a word."""
    place = rng.randrange(len(text))
    cut = rng.randint(0, len(text[place]))
    text[place] = text[place][:cut] + rng.choice(ODD) + text[place][cut:]


def alike(rng: random.Random, text: list[str]) -> None:
    """Another word of the same sort for a word."""
    place = rng.choice([place for place, word in enumerate(text) if word in ALIKE] or [0])
    text[place] = rng.choice(ALIKE.get(text[place], VOCABULARY))


def splice(rng: random.Random, text: list[str]) -> None:
    """A piece of another query in the place of one of this."""
    other = words(rng.choice(CORPUS))
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    c = rng.randrange(len(other))
    text[a : min(b, a + 4)] = other[c : c + rng.randint(1, 5)]


CHANGES: tuple[Callable[[random.Random, list[str]], None], ...] = (
    drop, double, swap, replace, insert, odd, inside, splice, *(alike,) * 16,
)  # fmt: skip


def changed(seed: int, corpus: list[str]) -> str:
    """One query of the corpus after one to three changes."""
    rng = random.Random(seed)
    text = words(rng.choice(corpus))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if text:
            rng.choice(CHANGES)(rng, text)
    return " ".join(text)


def given(sql: str) -> dict[str, Any]:
    """Values for the parameters whose names stand in a text."""
    try:
        text = words(sql)
    except TokenError:
        return {}
    return {name: PARAMS[name] for colon, name in pairwise(text) if colon == ":" and name in PARAMS}


def outcome(data: pd.DataFrame, sql: str) -> tuple[str, ...]:
    """The columns of the answer, or the class and text of the refusal."""
    try:
        result = dpsql.query({"t": data}, sql, epsilon=1, delta=1e-6, params=given(sql), **FACTS)
    except (QueryRefused, InvalidPrivacyParameter, InvalidParameter) as error:
        return type(error).__name__, str(error)
    shown = result.to_pandas() if isinstance(result, dpsql.Result) else None
    assert str(result)
    return ("answer", *(() if shown is None else map(str, shown.columns)))


SEEDS = range(FIRST_SEED, FIRST_SEED + 400 * TIMES)
PARTS = 8


@pytest.mark.parametrize("sql", CORPUS, ids=range(len(CORPUS)))
def test_the_corpus_is_answered(sql: str):
    assert outcome(EMPTY, sql)[0] == "answer"
    assert outcome(FULL, sql) == outcome(EMPTY, sql)


@pytest.mark.parametrize("part", range(PARTS))
def test_changed_texts_are_answered_or_refused_alike_on_any_data(part: int):
    met = set()
    for seed in SEEDS[part::PARTS]:
        sql = changed(seed, CORPUS)
        try:
            full, empty = outcome(FULL, sql), outcome(EMPTY, sql)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed must be known
            pytest.fail(f"seed {seed}: {sql!r} raised {type(error).__name__}: {error}")
        assert full == empty, f"seed {seed}: {sql!r}"
        assert MARK not in full[-1]
        assert str(NUMBER) not in full[-1]
        met.add(full[0])
    assert "answer" in met  # not all is nonsense
    assert len(met) > 3


# No word is left unread: without it the text means something else, or nothing.


def plan(sql: str) -> tuple[str, Any] | None:
    """The plan and the options of a text, None where it is refused."""
    try:
        bound, explain, goal = plan_of(sql, CATALOG, params_of(given(sql)))
    except DPSQLError:
        return None
    return f"{explain} {goal} {format_plan(bound.query)}", bound.options


def unnamed(sql: str) -> tuple[str, Any] | None:
    """The plan without the names of its columns: those that the text leaves open are its words as they are written."""
    try:
        bound, _, _ = plan_of(sql, CATALOG, params_of(given(sql)))
    except DPSQLError:
        return None
    query = bound.query
    stages = tuple(dataclasses.replace(stage, finish=_without_names(stage.finish)) for stage in query.stages)
    stripped = dataclasses.replace(query, finish=_without_names(query.finish), stages=stages)
    return format_plan(stripped).lower(), bound.options


def _without_names(finish: Finish) -> Finish:
    return dataclasses.replace(finish, outputs=tuple(Output("", each.expr) for each in finish.outputs))


CATALOG = Catalog({"t": resolve("t", stored_columns(EMPTY), Declaration.of(FACTS["bounds"], FACTS["keys"], None))})

UNREAD = frozenset({"AS", "ASC", "ALL", "(", ")", ",", "+", ";", '""'})
"""Words that change nothing by what they mean."""


def means_nothing(text: list[str], place: int) -> bool:
    """Whether the plan may be the same without this word."""
    word = text[place].upper()
    before = text[place - 1].upper() if place else ""
    after = text[place + 1].upper() if place + 1 < len(text) else ""
    earlier = [each.upper() for each in text[:place]]
    return (
        word in UNREAD
        or (word == "WHERE" and before == "(")  # FILTER (b)
        or (word == "AND" and "BETWEEN" in earlier)  # BETWEEN 1 2
        or (word == "FROM" and before in ("LEADING", "TRAILING", "BOTH"))
        or word == "BOTH"  # of TRIM
        or (word in ("DATE", "TIMESTAMP") and after.startswith("'"))  # '2020-01-01' beside a date is one
        or (word == "THEN" and "CASE" in earlier)
        or (before in ("T", "AS", ")") and "FROM" in earlier and not after.startswith("("))  # an alias of a table
        or word in (before, after)  # FROM t t
        or (word == "*" and (before, after) == ("(", ")"))  # COUNT() is COUNT(*)
        or (word == "IS" and after in ("NULL", "NOT"))  # s NOT NULL, as PostgreSQL has it
        or ("HAVING" in earlier and after == "(" and _is_alias(text, place + 2))  # HAVING SUM(n) of SUM(n) AS n
    )


def _is_alias(text: list[str], place: int) -> bool:
    return any(each.upper() == "AS" and name == text[place] for each, name in itertools.pairwise(text[:place]))


def every_word_counts(sql: str) -> Iterator[str]:
    """Words that can be left out of an accepted text without a change."""
    whole = plan(sql)
    if whole is None:
        return
    text = words(sql)
    for place, word in enumerate(text):
        if not means_nothing(text, place) and plan(" ".join(text[:place] + text[place + 1 :])) == whole:
            yield f"{word} (word {place}) of {sql!r}"


@pytest.fixture
def _unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants stay as they are written: 1 + 0 is not 1."""
    monkeypatch.setattr("dpsql.sql.bind.scalars.folded", lambda call: call)


@pytest.mark.usefixtures("_unfolded")
def test_no_word_of_the_corpus_is_dropped():
    assert [each for sql in CORPUS for each in every_word_counts(sql)] == []


@pytest.mark.usefixtures("_unfolded")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_word_of_a_changed_text_is_dropped(part: int):
    unread = []
    for seed in SEEDS[part::PARTS]:
        unread += [f"seed {seed}: {each}" for each in every_word_counts(changed(seed, [*PLAIN, *STATISTICS]))]
    assert unread == []


SPACES = [" ", "\n", "\t", "  ", " /* so */", " -- so\n", " /**/ "]


@pytest.mark.parametrize("sql", CORPUS, ids=range(len(CORPUS)))
def test_space_and_comments_mean_nothing(sql: str):
    rng = random.Random(sql)
    whole = unnamed(sql)
    assert whole is not None
    for _ in range(3):
        assert unnamed("".join(word + rng.choice(SPACES) for word in words(sql))) == whole
    assert unnamed(" ".join(word if word[0] in "'\"" else word.lower() for word in words(sql))) == whole


def test_comments_are_no_part_of_a_name():
    assert plan("SELECT SUM(age /* so */ + 1) FROM t") == plan("SELECT SUM(age + 1) FROM t")
