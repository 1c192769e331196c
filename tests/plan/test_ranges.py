"""Ranges that mean something: those that people declare or write. The limits of types bound arithmetic only."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import dpsql
from dpsql.errors import MissingBounds
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Fact, Literal, Vector, between_integers, call, unfiltered
from dpsql.plan.facts import fact, narrow
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval
from tests.core import range_lies
from tests.core.range_lies import ask
from tests.lies import Check, Lie, assert_caught

LIMITS = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS, Type.BOOLEAN: Interval(0, 1)}


def unsaid(kind: Type) -> Column:
    """A column of which nobody has said how far it goes."""
    held = Fact(LIMITS.get(kind, EVERYTHING))
    return Column("c", kind, between_integers(held.meaning(EVERYTHING) if kind.temporal else held, kind))


def calls_of(name: str) -> list[Call]:
    """A function of columns without bounds, of all types that fit; DECIMAL's digits are constants."""
    function = FUNCTIONS[name]
    most = function.arity[0] + 1 if function.arity[1] is None else function.arity[1]
    made = []
    for count in range(function.arity[0], most + 1):
        for kinds in itertools.product([kind for kind in Type if kind is not Type.OTHER], repeat=count):
            args = [unsaid(kind) for kind in kinds]
            if name.endswith("to_decimal"):
                digits = [Fact(Interval(n, n), nullable=False, whole=True) for n in (9, 2)]
                args[1:] = [Column("n", Type.INTEGER, each) for each in digits]
            found = call(function, *args)
            made += [found] if isinstance(found, Call) else []
    return made


MEANT = {
    "pi",
    *("sign", "sin", "cos", "extract_quarter", "extract_month", "extract_week", "extract_day", "extract_dayofyear"),
    *("extract_dayofweek", "extract_isodow", "extract_hour", "extract_minute", "extract_second"),
    *("extract_millisecond", "extract_microsecond"),
}
"""Functions whose values have a range whatever they are of: 12 months in a year, 60 seconds in a minute."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_what_nobody_has_bounded_has_no_bounds_unless_its_meaning_gives_some(name: str):
    for made in calls_of(name):
        if made.type.numeric or made.type.temporal:
            booleans = all(arg.type is Type.BOOLEAN for arg in made.args if arg == unsaid(arg.type))
            meant = name.removesuffix("_of_date") in MEANT or booleans
            assert made.held.limited == meant, made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_people_have_said_holds_wherever_arithmetic_does(name: str):
    for made in calls_of(name):
        said = made.held.said
        assert said.intersect(made.held.range) == made.held.range


REFUSED = (
    "LENGTH(city)",
    "CHAR_LENGTH(city)",
    "LEN(UPPER(city))",
    "STRPOS(city, 'o')",
    "INSTR(city, 'o')",
    "POSITION('o' IN city)",
    "LENGTH(LEFT(city, -3))",
    "LENGTH(LEFT(city, number))",
    "LENGTH(LEFT(city, LENGTH(city)))",
    "LENGTH(LPAD(city, LENGTH(city), '-'))",
    "LENGTH(SUBSTRING(city, 2))",
    "LENGTH(SUBSTRING(city, 1, number))",
    "LENGTH(LEFT(city, 3) || city)",
    "LENGTH(REPLACE(LEFT(city, 3), 'a', city))",
    "LENGTH(COALESCE(LEFT(city, 3), city))",
    "LENGTH(GREATEST(LEFT(city, 3), city))",
    "LENGTH(city) + 1",
    "-LENGTH(city)",
    "LENGTH(city) * age",
    "age + LENGTH(city)",
    "SQRT(LENGTH(city))",
    "ROUND(LENGTH(city) / 3, 1)",
    "LENGTH(city) // 2",
    "age % LENGTH(city) + LENGTH(city)",
    "GREATEST(LENGTH(city), 1)",
    "LEAST(CAST(city AS INTEGER), 100)",
    "COALESCE(LENGTH(city), 0)",
    "NULLIF(LENGTH(city), 0)",
    "CASE WHEN age > 40 THEN LENGTH(city) ELSE 0 END",
    "CASE WHEN LENGTH(city) > 3 THEN LENGTH(city) END",
    "IF(age > 40, LENGTH(city), 0)",
    "CLAMP(LENGTH(city), 0, LENGTH(sex || city))",
    *(f"CAST(city AS {word})" for word in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "UINTEGER")),
    "TRY_CAST(city AS INTEGER)",
    "city::BIGINT",
    "CAST(city AS DECIMAL(9, 2))",
    "CAST(CAST(city AS INTEGER) AS DOUBLE)",
    "CAST(income AS INTEGER)",
    "CAST(number AS TINYINT)",
    "ROUND(number, -2)",
    "YEAR(seen)",
    "YEAR(born)",
    "EXTRACT(epoch FROM seen)",
    "EXTRACT(century FROM seen)",
    "EXTRACT(isoyear FROM born)",
    "YEAR(CAST(city AS DATE))",
    "DATE_DIFF('day', seen, TIMESTAMP '2020-01-01')",
    "DATE '2020-01-01' - born",
    "YEAR(DATE_TRUNC('month', seen))",
    "YEAR(seen + INTERVAL 1 YEAR)",
    "YEAR(born + 3)",
    "YEAR(born - 3)",
    "YEAR(DATE '2020-01-01' + number)",
    "YEAR(MAKE_DATE(number, 1, 1))",
    "YEAR(LAST_DAY(born))",
)
ANSWERED = (
    "LENGTH(sex)",
    "LENGTH(sex) + age",
    "STRPOS(sex, 'm')",
    "LENGTH(city) % 7",
    "LENGTH(LEFT(city, 3))",
    "LENGTH(UPPER(RIGHT(TRIM(city), 3)) || 'abc')",
    "STRPOS(SUBSTRING(city, 2, 5), 'a')",
    "LENGTH(SUBSTRING(city, -1, -5))",
    "LENGTH(LPAD(city, 4, '-'))",
    "LENGTH(REVERSE(RPAD(city, age, '-')))",
    "LENGTH(CONCAT(LEFT(city, 2), 'ab', 'c'))",
    "STRPOS('abc', city)",
    "age % LENGTH(city)",
    "age / GREATEST(LENGTH(city), 1)",
    "CLAMP(LENGTH(city), 0, 100)",
    "LEAST(LENGTH(city), 100)",
    "SIGN(LENGTH(city))",
    "LENGTH(city) > 3",
    "CASE WHEN LENGTH(city) <= 20 THEN LENGTH(city) END",
    "CASE WHEN LENGTH(city) > 3 THEN age END",
    "CAST(CAST(city AS BOOLEAN) AS INTEGER)",
    "CAST(age AS TINYINT)",
    "CAST(LENGTH(city) < 9 AS INTEGER)",
    "MONTH(seen)",
    "HOUR(seen)",
    "EXTRACT(dow FROM born)",
    "YEAR(CLAMP(seen, TIMESTAMP '2000-01-01', TIMESTAMP '2030-01-01'))",
    "YEAR(LEAST(GREATEST(born, DATE '1900-01-01'), DATE '2030-01-01'))",
    "YEAR(MAKE_DATE(CLAMP(number, 1900, 2000), number, 1))",
    "LENGTH(LPAD('a', age, 'b')) % 100",
)


@pytest.mark.parametrize("argument", REFUSED)
def test_what_only_types_bound_has_no_bounds_and_the_remedy_is_shown(argument: str):
    for word in ("SUM", "AVG", "MEDIAN", "MAX", "STDDEV"):
        with pytest.raises(MissingBounds) as refusal:
            ask(f"SELECT {word}({argument}) AS x FROM people")
        remedy = re.search(rf"((?:{word}|STDDEV_SAMP)\(.*CLAMP\(.*\))\.", str(refusal.value))
        assert remedy is not None
        assert len(ask(f"SELECT {remedy[1]} AS x FROM people")) == 1


@pytest.mark.parametrize("argument", ANSWERED)
def test_ranges_that_mean_something_are_ranges(argument: str):
    assert len(ask(f"SELECT SUM({argument}) AS x, AVG({argument}) AS y FROM people")) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CORR(LENGTH(city), age) FROM people",
        "SELECT REGR_SLOPE(age, YEAR(seen)) FROM people",
        "SELECT SUM(n) FROM (SELECT LENGTH(city) AS n FROM people)",
        "SELECT SUM(n) FROM (SELECT LENGTH(city) AS n FROM people UNION ALL SELECT age FROM people)",
        "SELECT SUM(LENGTH(city)) FILTER (WHERE age > 30) FROM people",
        "SELECT sex, SUM(LENGTH(city)) FROM people GROUP BY sex",
        "SELECT SUM(LENGTH(city)) FROM people WHERE LENGTH(city) < LENGTH(sex || city)",
        "SELECT SUM(LENGTH(city)) FROM people WHERE LENGTH(city) < number",
        "SELECT SUM(YEAR(seen)) FROM people WHERE seen > TIMESTAMP '2000-01-01'",
        "SELECT SUM(LENGTH(city)) FROM people WHERE LENGTH(city) < 9 OR age < 40",
    ],
)
def test_no_way_round(sql: str):
    with pytest.raises(MissingBounds):
        ask(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(LENGTH(city)) FROM people WHERE LENGTH(city) < 20",
        "SELECT SUM(CAST(city AS INTEGER)) FROM people WHERE CAST(city AS INTEGER) BETWEEN 0 AND 9",
        "SELECT AVG(YEAR(seen)) FROM people WHERE seen BETWEEN TIMESTAMP '2000-01-01' AND TIMESTAMP '2030-01-01'",
        "SELECT SUM(LENGTH(city), contribution_bounds_per_row => (0, 9)) FROM people",
        "SELECT COUNT(LENGTH(city)), COUNT(DISTINCT YEAR(seen)), COUNT_IF(LENGTH(city) > 3) FROM people",
        "SELECT COUNT(*) FROM people WHERE CAST(city AS INTEGER) > 3 AND YEAR(seen) = 2020",
        "SELECT CAST(city AS TINYINT) AS n, COUNT(*) FROM people GROUP BY n",
        "SELECT MEDIAN(seen), MAX(seen), MIN(born) FROM people",
    ],
)
def test_what_a_filter_or_a_clause_bounds_is_bounded_and_counts_need_nothing(sql: str):
    assert len(ask(sql)) >= 1


def test_inside_a_person_too():
    people = dpsql.Table(range_lies.PEOPLE, keys={"sex": ["female", "male"]}, unit="pid", max_rows=2)
    inner = "SELECT AVG(n) FROM (SELECT pid, MAX(LENGTH({})) AS n FROM people GROUP BY pid)"
    assert len(dpsql.query({"people": people}, inner.format("sex"), epsilon=1).to_pandas()) == 1
    with pytest.raises(MissingBounds):
        dpsql.query({"people": people}, inner.format("city"), epsilon=1)


def test_bounds_that_a_query_chooses_are_for_columns_that_only_a_cast_limits():
    people = dpsql.Table(range_lies.PEOPLE, bounds="auto")
    answer = dpsql.query({"people": people}, "SELECT SUM(CAST(income AS INTEGER)) FROM people", epsilon=5)
    assert list(answer.bounds) == ["income"]


def cut(args: tuple[Call | Column | Literal, ...], name: str) -> Call:
    made = call(FUNCTIONS[name], *args)
    assert isinstance(made, Call)
    return made


@pytest.mark.parametrize(
    "name", ["left", "right", "substring", "lpad", "rpad", "text_join", "upper", "trim", "reverse"]
)
def test_no_text_is_longer_than_its_fact_says(name: str):
    """Over texts and counts of all lengths and signs, the kernels give none."""
    texts = ["", "a", "ab ", " \u00e9\u0130\u00df", "x" * 40]
    for count in (-50, -3, -1, 0, 1, 2, 7, 45):
        for most in (None, 40):
            text = Column("t", Type.TEXT, Fact(nullable=False, most=most))
            number = Literal(count, Type.INTEGER)
            args = {
                "left": (text, number),
                "right": (text, number),
                "substring": (text, Literal(2, Type.INTEGER), number),
                "lpad": (text, number, Literal("-", Type.TEXT)),
                "rpad": (text, number, Literal("-", Type.TEXT)),
                "text_join": (text, Literal("abc", Type.TEXT)),
            }.get(name, (text,))
            made = cut(args, name)
            found = evaluate(made, lambda _: Vector(np.array(texts, dtype=object)), len(texts))
            longest = max((len(each) for each in found.values[found.where_valid()]), default=0)
            held = unfiltered(made).most
            assert held is None or longest <= held
            assert held is not None or most is None


def test_values_outside_the_keys_are_clipped_to_what_keys_come_to():
    range_lies.clipped()


def test_arithmetic_keeps_its_own_limits():
    """LENGTH(city) + 1 is an integer, for no text is long enough for it to overflow."""
    length = call(FUNCTIONS["length"], Column("city", Type.TEXT, Fact()))
    assert length is not None
    made = call(FUNCTIONS["add"], length, length)
    assert made is not None
    assert made.type is Type.INTEGER
    assert unfiltered(made).range == Interval(0, 2**33 - 2)
    assert not unfiltered(made).limited


def test_a_filter_by_what_only_a_type_limits_says_nothing():
    length = call(FUNCTIONS["length"], Column("city", Type.TEXT, Fact()))
    number = Column("n", Type.INTEGER, Fact(EVERYTHING, nullable=False, whole=True))
    assert length is not None
    below = call(FUNCTIONS["lt"], number, length)
    assert below is not None
    found = fact(number, narrow(below, {}))
    assert found.range.upper == 2**32 - 2
    assert found.said.upper == float("inf")


@pytest.mark.parametrize(("lie", "check"), range_lies.LIES, ids=lambda each: getattr(each, "__name__", "check"))
def test_a_lie_about_ranges_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
