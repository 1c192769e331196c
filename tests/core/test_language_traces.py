"""The whole language: rows change noise-free nothing of an answer but its numbers, answers hold released values only,
and no text, parameter or cache lets more out, or costs more time and memory, than it should."""

from __future__ import annotations

import datetime as dt
import pickle
import re
import time
import tracemalloc
import warnings
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, QueryRefused, UnsupportedSQL
from dpsql.plan import facts
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema
from dpsql.session import prepare
from tests.core import language
from tests.core.checks import B, Row, Shape, U, calibrated, cells_of, run_exactly
from tests.core.language import PEOPLE, UNIVERSE, Asked, day
from tests.core.test_traces import EvilFloat, EvilInteger, EvilText, outcome

# What rows may change

WILD: tuple[Row, ...] = (
    (5, 9, 1e308, -1e308, None, "\0", "\u0130\u00df", "9999-12-31", day("9999-12-31 23:59:59.999999")),
    (-2, -9, 5e-324, 5e-324, True, "%_\\", "1e400", "0001-01-01", day("0001-01-01")),
    (2**62, 1, -0.0, -0.0, False, "a" * 70_000, "-" * 300, dt.date(9999, 12, 31), day("2020-02-29")),
    (0, 2, float("inf"), float("-inf"), None, ["a"], "0" * 5000, object(), day(None)),
)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("asked", language.every_query(), ids=str)
def test_no_row_changes_the_shape_of_an_answer(asked: Asked):
    """The same columns, dtypes, number of public groups, warnings and errors for every table; few enough rows that no
    chosen group is shown."""
    facts_: dict[str, Any] = {**PEOPLE.declared, **asked.more}
    facts_.pop("nullable", None)
    options = {**asked.options, **facts_}
    plain = outcome(PEOPLE.frame([]), asked.sql, **options)
    assert isinstance(plain[0], int), plain
    if "FROM (SELECT g" in asked.sql:  # what remains of an answer follows its numbers
        plain = (1, *plain[1:])
    for rows in ([each] for each in (*UNIVERSE, *WILD)):
        found = outcome(PEOPLE.frame(rows), asked.sql, **options)
        assert _without_noise(found, asked.sql) == _without_noise(plain, asked.sql), rows


def _without_noise(found: Any, sql: str) -> Any:
    """A note on small counts, dtypes of columns that are NULL where the noisy count is small, and rows that a stage
    keeps, follow the noise."""
    count, names, dtypes, warned = found
    averages = [i for i, name in enumerate(names) if "AVG" in name or "MAX" in name or "SUM(s)" in name]
    return count, names, [each for i, each in enumerate(dtypes) if i not in averages], warned


@pytest.mark.parametrize("cells", [[1.0, 2.0], [1.0, 2.0, None]])
def test_a_key_that_is_not_shown_leaves_no_trace(cells: list[Any]):
    """Whether some row has NULL in a key cannot be told from a pickled answer in which the group of NULL is hidden."""
    frame = pd.DataFrame({"k": pd.array([1.0, 2.0] * 400 + cells, dtype="Float64")})
    result = dpsql.query(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, delta=1e-9)
    assert [row[0] for row in result] == [1.0, 2.0]
    held = pickle.loads(pickle.dumps(result))
    assert [vector.valid is None for vector in held._released.keys] == [True]


SECRET = "S3CRET-CELL"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT UPPER(s), COUNT(*) FROM t GROUP BY 1",
        "SELECT CASE WHEN x > 5 THEN s ELSE 'few' END AS k, COUNT(*) FROM t GROUP BY k",
        "SELECT s || CAST(x AS TEXT), COUNT(*) FROM t GROUP BY 1",
        "SELECT DISTINCT s FROM t",
        "SELECT k, SUM(n) FROM (SELECT LOWER(s) AS k, COUNT(*) AS n FROM t GROUP BY 1) GROUP BY k",
        "SELECT COUNT(*, report_format => 'JSON') FROM t WHERE s LIKE '%3CRET%'",
    ],
)
def test_results_of_the_language_hold_no_row(sql: str):
    frame = pd.DataFrame({"s": [SECRET, *["a"] * 50], "x": [123456.789, *[1.0] * 50]})
    session = dpsql.Session({"t": dpsql.Table(frame, bounds={"x": (0, 10)})}, budget=dpsql.Budget(100, 1e-3))
    result = session.query(sql, epsilon=1, delta=1e-9)
    data = pickle.dumps(result) + repr(result).encode() + repr(session.ledger()).encode()
    for form in (SECRET, SECRET.lower()):
        assert form.encode() not in data


def test_noise_intervals_and_reports_tell_nothing_but_noise():
    """Of a noisy count they enclose the noisy value, by a width that is public; never the exact one."""
    sql = "SELECT COUNT(*) AS c, DP_INTERVAL_LOW(c) AS low, DP_INTERVAL_HIGH(c, 0.5) AS high FROM t"
    widths = set()
    for rows in (1, 500):
        found = dpsql.query(pd.DataFrame({"x": np.ones(rows)}), sql, epsilon=0.01)
        (count, low, high), *_ = list(found)
        widths.add((count - low, high - count))
    assert len(widths) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS c, c + DP_INTERVAL_LOW(c) AS z FROM t",
        "SELECT COUNT(*) AS c, DP_INTERVAL_LOW(c) AS low, DP_INTERVAL_LOW(low + c) AS z FROM t",
        "SELECT CASE WHEN SUM(x) > 1 THEN SUM(x, report_format => 'JSON') ELSE 'a' END AS r FROM t",
    ],
)
def test_intervals_of_intervals_are_answered_or_refused_before_the_charge(sql: str):
    session = dpsql.Session(
        {"t": dpsql.Table(pd.DataFrame({"x": [1.0]}), bounds={"x": (0, 2)})}, budget=dpsql.Budget(1)
    )
    try:
        result = session.query(sql, epsilon=1)
    except DPSQLError:
        assert session.spent.epsilon == 0
    else:
        assert len(result.intervals()) == 1


# What texts cannot reach


REFUSED = [
    "SELECT COUNT(*) FROM t, t AS u", "SELECT COUNT(*) FROM t JOIN t AS u ON t.x = u.x",
    "SELECT COUNT(*) FROM (SELECT * FROM t UNION SELECT * FROM t)",
    "SELECT COUNT(*), (SELECT MAX(s) FROM t) FROM t",
    "SELECT COUNT(*) FROM t WHERE x IN (SELECT x FROM t)", "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t)",
    "SELECT COUNT(*) FROM t WHERE s > (SELECT MAX(s) FROM t)", "SELECT COUNT(*) FROM (SELECT * FROM t LIMIT 1)",
    "SELECT COUNT(*) FROM (SELECT * FROM t ORDER BY x)", "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER () FROM t)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT s FROM t)", "SELECT SUM(DISTINCT x) FROM t", "SELECT MAX(s) FROM t",
    "WITH a AS (SELECT x FROM t) SELECT x FROM a", "SELECT x FROM (SELECT COUNT(*) AS n FROM t)",
    "SELECT t.x FROM (SELECT COUNT(*) AS n FROM t) AS u", "SELECT n FROM (SELECT COUNT(*) AS n FROM t) WHERE x > 1",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM t) ORDER BY x", "SELECT MAX(x) FROM (SELECT COUNT(*) AS n FROM t)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM t) WHERE n > (SELECT 1 FROM t)",
    "SELECT ANY_VALUE(x) FROM t", "SELECT LIST(x) FROM t",
    "SELECT COUNT(*) FROM t WHERE RANDOM() > 0.5", "SELECT COUNT(*) FROM t GROUP BY s",
    "SELECT b, COUNT(*) FROM t GROUP BY b HAVING x > 1", "SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY x",
    "SELECT b, x FROM t GROUP BY b", "SELECT SUM(COUNT(*)) FROM t",
    "SELECT COUNT(*) FILTER (WHERE COUNT(*) > 1) FROM t",
    "SELECT CASE WHEN x > 1 THEN COUNT(*) END FROM t", "SELECT COUNT(*) FROM t WHERE x > :p",
    "SELECT COUNT(*) FROM t WHERE CAST(s AS INTEGER) > 'a'", "SELECT SUM(CASE WHEN b THEN 1 / x END) FROM t",
    "SELECT MAX(n) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_is_refused_for_every_table(sql: str):
    session_frames = [
        pd.DataFrame({"x": pd.Series(x, dtype=float), "s": pd.Series(s, dtype="str"), "b": pd.array(b, "boolean")})
        for x, s, b in (([], [], []), ([1.0], ["1"], [True]), ([np.nan, np.inf], [None, "7"], [None, False]))
    ]
    found = {outcome(frame, sql) for frame in session_frames}
    assert len(found) == 1
    kind, _words = found.pop()
    assert issubclass(getattr(dpsql.errors, str(kind)), QueryRefused)


def test_names_of_a_subquery_hide_those_of_the_table():
    frame = pd.DataFrame({"x": [1.0] * 10, "y": [2.0] * 10})
    declared = {"bounds": {"x": (0, 1), "y": (0, 2)}}
    for sql, expected in {
        "SELECT SUM(x) FROM (SELECT y AS x, x AS y FROM t)": 20,
        "SELECT SUM(x) FROM (SELECT y AS x FROM t WHERE x > 0) AS t": 20,
        "WITH t AS (SELECT y AS x FROM t) SELECT SUM(x) FROM t": 20,
        "WITH a AS (SELECT x FROM t), t AS (SELECT x + x AS x FROM a) SELECT SUM(x) FROM t": 20,
        "WITH a AS (SELECT y FROM t) SELECT SUM(x) FROM (WITH a AS (SELECT x FROM t) SELECT x FROM a)": 10,
    }.items():
        assert round(dpsql.query({"t": frame}, sql, epsilon=10**6, **declared).item()) == expected, sql


# Charges


def test_explain_reads_no_row_and_charges_nothing():
    session = dpsql.Session({"t": pd.DataFrame({"x": [1]})}, budget=dpsql.Budget(1, 1e-6))
    text = "EXPLAIN PRIVACY WITH a AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM t)"
    with mock.patch("dpsql.executors.pandas.executor.PandasExecutor.execute", side_effect=AssertionError):
        for sql in (
            f"{text} SELECT n FROM a",
            f"{text} SELECT COUNT(*) FROM t",
            "EXPLAIN PRIVACY SELECT COUNT(*) FROM t",
        ):
            assert session.query(sql, epsilon=1)
    assert session.spent.epsilon == 0
    assert not session.ledger()


def test_a_delta_of_the_text_is_paid_for():
    """The text may name delta where the call does not; the budget holds all the same."""
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = {}) x, COUNT(*) FROM t GROUP BY x"
    session = dpsql.Session({"t": pd.DataFrame({"x": [1.5]})}, budget=dpsql.Budget(3, 1e-6))
    with pytest.raises(DPSQLError):
        session.query(sql.format("1e-5"), epsilon=1)
    with pytest.raises(DPSQLError):
        session.query(sql.format("1e-7"), epsilon=1, delta=1e-8)
    assert (session.spent.epsilon, session.spent.delta) == (0, 0)
    session.query(sql.format("1e-7"), epsilon=1, delta=1e-6)
    assert session.spent.delta == dpsql.query(pd.DataFrame({"x": [1.5]}), sql.format("1e-7"), epsilon=1).loss.delta
    assert float(session.spent.delta) == 1e-7


# Parameters


class Pretender:
    """Says that it is a number, and is none."""

    __class__ = int  # type: ignore[assignment]


class ShortInteger(int):
    """Says that it is small."""

    def __abs__(self) -> int:
        return 0


class RaisingInteger(int):
    def __abs__(self) -> int:
        raise RuntimeError("a secret")


class WrongDate(dt.date):
    @property
    def year(self) -> int:
        return 10**9


class WrongMoment(dt.datetime):
    def replace(self, **_parts: Any) -> Any:  # type: ignore[override]
        raise RuntimeError("a secret")


VALUES = [EvilText("a"), EvilInteger(3), np.str_("a"), np.bool_(True), Decimal("sNaN"), Decimal("1e400"), 10**5000,
          "\ud800", 1j, [1], np.datetime64("NaT"), pd.NA, pd.NaT, np.longdouble("1e4000"), b"a", np.array(1),
          Pretender(),
          ShortInteger(10**100), RaisingInteger(1), EvilFloat(1.0), WrongDate(2020, 1, 1),
          WrongMoment(2020, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("value", [pytest.param(value, id=type(value).__name__) for value in VALUES])
def test_a_parameter_is_bound_or_refused_whatever_its_class_does(value: Any):
    session = dpsql.Session({"t": pd.DataFrame({"x": [1.0], "s": ["a"]})}, budget=dpsql.Budget(100))
    for sql in ("SELECT COUNT(*) FROM t WHERE x > :p", "SELECT COUNT(*) FROM t WHERE s = :p"):
        before, words = session.spent.epsilon, ""
        try:
            session.query(sql, epsilon=1, params={"p": value})
        except DPSQLError as error:
            words = str(error)
        assert "secret" not in words
        assert not words or session.spent.epsilon == before, "refused after the charge"


def test_plans_follow_types_and_names_of_parameters():
    language.check_parameters_are_not_confused()


def test_plans_follow_the_sign_of_zero():
    frame, sql = pd.DataFrame({"x": [1]}), "SELECT CAST(:p AS TEXT) AS p, COUNT(*) FROM t"
    shown = [next(iter(dpsql.query(frame, sql, epsilon=1, params={"p": zero})))[0] for zero in (0.0, -0.0)]
    fresh = []
    for zero in (0.0, -0.0):
        prepare._cache.clear()
        fresh.append(next(iter(dpsql.query(frame, sql, epsilon=1, params={"p": zero})))[0])
    assert shown == fresh


class Chameleon(str):
    """A text that says that it is another one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("SELECT COUNT(*) FROM t")


def test_a_text_of_another_class_takes_no_other_texts_place():
    frame = pd.DataFrame({"x": [True]})
    prepare._cache.clear()
    dpsql.query(frame, Chameleon("SELECT SUM(x) FROM t"), epsilon=1)
    assert list(dpsql.query(frame, "SELECT COUNT(*) FROM t", epsilon=1).df) == ["COUNT(*)"]


# Time and memory, before and after the charge


def nested(depth: int) -> str:
    """CASE in the condition of CASE, over and over."""
    expr = "x"
    for _ in range(depth):
        expr = f"CASE WHEN {expr} > 1 THEN 2 ELSE 0 END"
    return expr


def test_planning_time_of_nested_cases_does_not_explode():
    made = {}
    for depth in (4, 8):
        with mock.patch.object(facts, "fact", side_effect=facts.fact) as fact:
            calibrated(PEOPLE.schema(), f"SELECT SUM({nested(depth)}) FROM t", U)
        made[depth] = fact.call_count
    assert made[8] < 8 * made[4]


def texts(count: int) -> pd.DataFrame:
    return pd.DataFrame({"s": [f"n{i}" for i in range(count)], "r": [f"m{i}" for i in range(count)]})


@pytest.mark.parametrize("text", ["s", "s || r"])
def test_long_texts_are_not_all_held_at_once(text: str):
    """How many distinct texts there are must not decide whether the memory is enough: 4,000 of 16,000 characters."""
    frame, sql = texts(4000), f"SELECT COUNT(*) FROM t WHERE LPAD({text}, 16000, 'x') > 'a'"
    dpsql.query(frame.iloc[:1], sql, epsilon=1)
    tracemalloc.start()
    try:
        dpsql.query(frame, sql, epsilon=1)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24e6


def calibrated_or_shorter(schema: TableSchema, condition: str) -> Release:
    """The release of a count; of the start of each text where the whole one could take too long."""
    try:
        return calibrated(schema, f"SELECT COUNT(*) FROM t WHERE {condition}", U)
    except UnsupportedSQL:
        shorter = re.sub(r"\bs\b", "LEFT(s, 512)", condition)
        return calibrated(schema, f"SELECT COUNT(*) FROM t WHERE {shorter}", U)


def test_no_single_cell_takes_long():
    """Patterns, searches and casts over one long text: linear, or nearly so."""
    long = Shape({"s": "str"})
    cells = ["a" * 200_000, "9" * 200_000, " " * 200_000 + "x", "0." + "0" * 200_000 + "e9", "-" * 200_000]
    sqls = [
        "s LIKE '%a%a%a_a%a%b'", f"s LIKE '%{'a' * 500}_{'a' * 500}b%'", "s ILIKE '%A%_%A%B'", "CAST(s AS INTEGER) > 1",
        "CAST(s AS DECIMAL(38, 3)) > 1", "CAST(s AS DOUBLE) > 1", "CAST(s AS DATE) > DATE '2020-01-01'",
        "CAST(s AS TIMESTAMP) > DATE '2020-01-01'", f"STRPOS(s, '{'a' * 3000}b{'a' * 3000}') > 1",
        "LENGTH(REPLACE(s, 'a', 'bbb')) > 1", "TRIM(s) = 'x'", "UPPER(s) = 'A'", "REVERSE(s) = s", "CAST(s AS BOOLEAN)",
    ]  # fmt: skip
    schema = long.schema()
    frame = long.frame([(cell,) for cell in cells])
    for condition in sqls:
        made = calibrated_or_shorter(schema, condition)
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cells_of(made, run_exactly(made, schema, frame))
        assert time.perf_counter() - begun < 5, condition


def test_sizes_of_statements_are_bounded():
    """Doubling by names of names, deep nesting, long lists: refused or answered, soon, with nothing charged."""
    doubling = "SELECT x AS a0 FROM t"
    for k in range(30):
        doubling = f"SELECT a{k} + a{k} AS a{k + 1} FROM ({doubling})"
    session = dpsql.Session(
        {"t": dpsql.Table(pd.DataFrame({"x": [1.0]}), bounds={"x": (0, 1)})}, budget=dpsql.Budget(9)
    )
    for sql in (
        f"SELECT SUM(a30) FROM ({doubling})", "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 40 + "t" + ")" * 40,
        f"SELECT SUM({'(' * 40}x{')' * 40}) FROM t", "SELECT COUNT(*) FROM t WHERE " + "NOT " * 5000 + "x > 1",
    ):  # fmt: skip
        begun = time.perf_counter()
        with pytest.raises(DPSQLError):
            session.query(sql, epsilon=1)
        assert time.perf_counter() - begun < 10
    assert session.spent.epsilon == 0
    for sql in (
        "SELECT SUM(x) FROM t WHERE " + " OR ".join(f"x > {k} AND x < {k + 2}" for k in range(400)),
        f"SELECT SUM(x) FROM t WHERE x IN ({', '.join(map(str, range(3000)))})",
        "SELECT SUM(CASE " + " ".join(f"WHEN x > {k} THEN {k}" for k in range(500)) + " ELSE 0 END) FROM t",
    ):
        begun = time.perf_counter()
        session.explain(sql, epsilon=1)
        assert time.perf_counter() - begun < 10


@pytest.mark.parametrize("relation", [U, B])
def test_dates_at_both_ends_of_the_calendar_stay_inside(relation: str):
    shape = Shape({"t": "datetime64[us]", "i": "Int64"}, {"bounds": {"i": (-3, 3)}})
    schema = shape.schema()
    moments = ["0001-01-01", "0001-01-31", "9999-12-31 23:59:59.999999", "9999-12-01", "2000-02-29"]
    frame = shape.frame([(day(text), i) for text in moments for i in (-3, 0, 3, None)])
    for expr in (
        "t + INTERVAL (i) YEAR", "t - INTERVAL (i) MONTH", "t + INTERVAL (i) MICROSECOND", "DATE_TRUNC('century', t)",
        "LAST_DAY(t)", "CAST(t AS DATE) + i", "DATE_TRUNC('week', t)",
        "DATE_DIFF('microsecond', t, t + INTERVAL (1) YEAR)",
    ):  # fmt: skip
        made = calibrated(schema, f"SELECT COUNT({expr}), COUNT(EXTRACT(year FROM t)) FROM t", relation)
        language.checks.facts_hold(made, schema, frame)
