"""Dates, timestamps and decimals as an owner declares them, in Python and in TOML, and as answers show them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer.number_format import _intervals_of_times, whole_limits
from dpsql.answer.values import frame_limits
from dpsql.errors import InvalidSchema
from dpsql.plan.expressions import Vector
from dpsql.schema.calendar import DAYS, MICROSECONDS, day_number, microsecond_number
from dpsql.schema.columns import ColumnSchema, Type
from dpsql.schema.declaration import Declaration, StoredColumn, resolve
from dpsql.schema.intervals import Interval

HUGE = 1e9
JAN, DEC = date(2020, 1, 1), date(2020, 12, 31)
NOON = datetime(2020, 1, 1, 12)
STORED = [
    StoredColumn("age", Type.INTEGER, nullable=False, storage="int64"),
    StoredColumn("pay", Type.REAL, nullable=True, storage="float64"),
    StoredColumn("ok", Type.BOOLEAN, nullable=False, storage="bool"),
    StoredColumn("s", Type.TEXT, nullable=True, storage="str"),
    StoredColumn("day", Type.DATE, nullable=True, storage="date32[day][pyarrow]"),
    StoredColumn("at", Type.TIMESTAMP, nullable=True, storage="datetime64[us]"),
    StoredColumn("span", Type.OTHER, nullable=True, storage="timedelta64[us]"),
]


def declared(name: str, **said: Any) -> ColumnSchema:
    """The column as it is when something is declared of it."""
    return resolve("t", STORED, Declaration.of(**{word: {name: fact} for word, fact in said.items()})).by_name[name]


def days(first: date, last: date) -> Interval:
    return Interval(day_number(first), day_number(last))


def moments(first: datetime, last: datetime) -> Interval:
    return Interval(microsecond_number(first), microsecond_number(last))


# Bounds.

SAME_DAYS = [
    (JAN, DEC),
    [JAN, DEC],
    ("2020-01-01", "2020-12-31"),
    ("2020/1/1", " 2020-12-31 "),
    (datetime(2020, 1, 1), datetime(2020, 12, 31)),
    (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31")),
    (np.datetime64("2020-01-01"), np.datetime64("2020-12-31T00:00:00.000000000", "ns")),
    (JAN, "2020-12-31 00:00"),
]


@pytest.mark.parametrize("bounds", SAME_DAYS, ids=str)
def test_bounds_of_dates_are_dates_in_any_form(bounds: Any):
    assert declared("day", bounds=bounds).bounds == days(JAN, DEC)
    assert declared("at", bounds=bounds).bounds == moments(datetime(2020, 1, 1), datetime(2020, 12, 31))
    assert declared("s", bounds=bounds, types="date").bounds == days(JAN, DEC)


def test_bounds_of_dates_between_days_are_the_days_inside():
    column = declared("day", bounds=(NOON, datetime(2020, 1, 3, 23, 59)))
    assert column.bounds == days(date(2020, 1, 2), date(2020, 1, 3))
    with pytest.raises(InvalidSchema, match="day: fewer than two dates lie between '2020-01-01 12:00:00' and"):
        declared("day", bounds=(NOON, datetime(2020, 1, 2, 23, 59)))


def test_bounds_of_timestamps_are_exact_to_the_microsecond():
    last = datetime(2020, 1, 1, 12, 0, 0, 1)
    nanoseconds = pd.Timestamp("2020-01-01 12:00:00.000001999")
    for upper in (last, nanoseconds, np.datetime64(nanoseconds.value, "ns"), "2020-01-01T12:00:00.000001"):
        assert declared("at", bounds=(NOON, upper)).bounds == moments(NOON, last)


def test_the_whole_calendar_can_be_declared():
    assert declared("day", bounds=(date.min, date.max)).bounds == DAYS
    assert declared("at", bounds=(datetime.min, datetime.max)).bounds == MICROSECONDS
    assert declared("at", bounds=("0001-01-01", "9999-12-31 23:59:59.999999")).bounds == MICROSECONDS


REVERSED = "lower bound '2020-12-31' is above upper bound '2020-01-01'. Did you mean ('2020-01-01', '2020-12-31')?"
REFUSED_BOUNDS: list[tuple[str, dict[str, Any], str]] = [
    ("day", {"bounds": (0, 1)}, 'day: "day" is date, so its bounds are dates, got (0, 1).'),
    ("at", {"bounds": (0.5, 1)}, 'at: "at" is timestamp, so its bounds are dates, got (0.5, 1).'),
    ("s", {"bounds": (0, 1), "types": "date"}, 's: "s" is date, so its bounds are dates, got (0, 1).'),
    ("age", {"bounds": (JAN, DEC)}, 'age: bounds are for dates, but "age" is integer (int64).'),
    ("s", {"bounds": (JAN, DEC)}, 's: bounds are for dates, but "s" is text (str).'),
    ("span", {"bounds": (JAN, DEC)}, 'span: bounds are for dates, but "span" is other (timedelta64[us]).'),
    ("ok", {"bounds": (0, 1)}, 'ok: bounds are for numbers, but "ok" is boolean (bool).'),
    ("day", {"bounds": (JAN, 1)}, "day: bounds are two numbers or two dates, got '2020-01-01' and 1."),
    ("day", {"bounds": (DEC, "2020-1-1")}, f"day: {REVERSED}"),
    ("at", {"bounds": (JAN, datetime(2020, 1, 1))}, "at: lower and upper bound are both '2020-01-01', "),
    ("day", {"bounds": ("x", "y")}, "day: a bound must be a number or a date, got 'x'."),
    ("day", {"bounds": ("2020-02-30", DEC)}, "day: a bound must be a number or a date, got '2020-02-30'."),
    ("at", {"bounds": ("2020-01-01T00:00Z", DEC)}, "at: a bound must be a number or a date, got '2020-01-01T00:00Z'."),
    ("at", {"bounds": (datetime(2020, 1, 1, tzinfo=UTC), DEC)}, "at: a bound has no time zone, got 2020-01-01 00:00"),
    ("at", {"bounds": (pd.Timestamp("2020", tz="UTC"), DEC)}, "at: a bound has no time zone, got 2020-01-01 00:00"),
    ("at", {"bounds": (pd.NaT, DEC)}, "at: a bound must be a value, got NaT."),
    ("at", {"bounds": (np.datetime64("NaT"), DEC)}, "at: a bound must be a number or a date, got "),
    ("at", {"bounds": (np.datetime64("10000-01-01"), DEC)}, "at: a bound must be a number or a date, got "),
    ("at", {"bounds": (np.datetime64(10**15, "Y"), DEC)}, "at: a bound must be a number or a date, got "),
    ("at", {"bounds": (pd.Timestamp(np.datetime64(10**12, "s")), DEC)}, "at: a bound must lie in the years 1 to 9999."),
    ("at", {"bounds": (time(10), DEC)}, "at: a bound must be a number or a date, got datetime.time(10, 0)."),
    ("age", {"bounds": (np.timedelta64(1, "ns"), 5)}, "age: a bound must be a number or a date, got "),
    ("age", {"bounds": (timedelta(1), 5)}, "age: a bound must be a number or a date, got "),
    ("age", {"bounds": pd.Series([17, 90])}, 'age: bounds are a pair (lower, upper) or "auto", got a Series.'),
    ("age", {"bounds": pd.DataFrame({"a": [1], "b": [2]})},
     'age: bounds are a pair (lower, upper) or "auto", got a DataFrame.'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said", "message"), REFUSED_BOUNDS, ids=lambda each: str(each)[:40])
def test_bounds_that_do_not_fit_are_refused(name: str, said: dict[str, Any], message: str):
    with pytest.raises(InvalidSchema) as refused:
        declared(name, **said)
    assert str(refused.value).startswith(message)


def test_hints_say_what_to_write():
    with pytest.raises(InvalidSchema) as refused:
        declared("at", bounds=(0, 1))
    assert refused.value.hint == 'Write them as dates or ISO text: bounds={"at": ("2000-01-01", "2030-12-31")}.'
    with pytest.raises(InvalidSchema) as refused:
        declared("s", bounds=(JAN, DEC))
    assert refused.value.hint == 'If it holds dates, say so: types={"s": "date"}.'
    with pytest.raises(InvalidSchema) as refused:
        declared("s", bounds=(0, 1))
    assert refused.value.hint == 'If it holds numbers, say so: types={"s": "real"}.'


# Keys.


def test_keys_of_dates_are_dates_in_any_form():
    keys = ["2020-01-01", date(2020, 1, 2), datetime(2020, 1, 3), pd.Timestamp("2020-01-04"),
        np.datetime64("2020-01-05"), np.datetime64("2020-01-06", "ns"), "2020/1/7 00:00", None]  # fmt: skip
    first = day_number(JAN)
    assert declared("day", keys=keys).keys == (*range(first, first + 7), None)
    assert declared("at", keys=keys).keys == (*(day * 86_400 * 10**6 for day in range(first, first + 7)), None)


@pytest.mark.parametrize(
    "keys",
    [
        pd.date_range("2020-01-01", periods=2),
        pd.Series(pd.date_range("2020-01-01", periods=2)),
        np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]"),
        {JAN, date(2020, 1, 2)},
        (each for each in ("2020-01-01", "2020-01-02")),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_keys_come_in_any_list(keys: Any):
    first = day_number(JAN)
    assert set(declared("day", keys=keys).keys or ()) == {first, first + 1}


def test_keys_of_timestamps_have_a_time_of_day():
    keys = ["2020-01-01 12:00", datetime(2020, 1, 1, 12, 0, 0, 1), pd.Timestamp("2020-01-01 12:00:00.000002999")]
    noon = microsecond_number(NOON)
    assert declared("at", keys=keys).keys == (noon, noon + 1, noon + 2)


REFUSED_KEYS: list[tuple[str, list[Any], str]] = [
    ("day", [NOON], "day: key '2020-01-01 12:00:00' does not fit \"day\", which is date."),
    ("day", ["2020-01-01 12:00"], "day: key '2020-01-01 12:00' does not fit \"day\", which is date."),
    ("day", ["x"], "day: key 'x' does not fit \"day\", which is date."),
    ("day", [18262], 'day: key 18262 does not fit "day", which is date.'),
    ("day", [True], 'day: key True does not fit "day", which is date.'),
    ("at", [1.5], 'at: key 1.5 does not fit "at", which is timestamp.'),
    ("s", [JAN], "s: key '2020-01-01' does not fit \"s\", which is text."),
    ("age", [JAN], "age: key '2020-01-01' does not fit \"age\", which is integer."),
    ("day", [JAN, "2020-01-01"], "day: a key is listed twice."),
    ("day", ["2020-1-1", "2020-01-01"], "day: a key is listed twice."),
    ("day", [JAN, datetime(2020, 1, 1)], "day: a key is listed twice."),
    ("at", [datetime(2020, 1, 1, tzinfo=UTC)], "at: a key has no time zone, got 2020-01-01 00:00:00+00:00."),
    ("at", [pd.NaT], "at: a key must be a value, got NaT. For NULL write None."),
    ("at", [np.datetime64("NaT")], "at: a key must be text, a number, a boolean, a date or None, got "),
    ("at", [np.datetime64("20000-01-01")], "at: a key must be text, a number, a boolean, a date or None, got "),
    ("age", [np.timedelta64(5, "ns")], "age: a key must be text, a number, a boolean, a date or None, got "),
    ("age", [Decimal(5)], "age: a key must be text, a number, a boolean, a date or None, got "),
]


@pytest.mark.parametrize(("name", "keys", "message"), REFUSED_KEYS, ids=lambda each: str(each)[:40])
def test_keys_that_do_not_fit_are_refused(name: str, keys: list[Any], message: str):
    with pytest.raises(InvalidSchema) as refused:
        declared(name, keys=keys)
    assert str(refused.value).startswith(message)


def test_keys_of_dates_lie_inside_the_bounds():
    assert declared("day", keys=[JAN, DEC, None], bounds=(JAN, DEC)).keys == (day_number(JAN), day_number(DEC), None)
    with pytest.raises(InvalidSchema) as refused:
        declared("day", keys=[date(2021, 1, 1)], bounds=(JAN, DEC))
    message = "day: key '2021-01-01' lies outside the bounds ('2020-01-01', '2020-12-31')."
    assert str(refused.value) == message


@pytest.mark.parametrize("keys", [pd.DataFrame({"Lyon": [1]}), np.array([["a", "b"]])], ids=["frame", "array"])
def test_rows_and_columns_are_no_list_of_keys(keys: Any):
    with pytest.raises(InvalidSchema, match="s: keys are one list of values, got a .* of rows and columns.") as refused:
        declared("s", keys=keys)
    assert "Lyon" not in str(refused.value)


# Types.


def test_a_type_that_is_none_is_told_all_of_them():
    words = '"integer", "real", "decimal", "boolean", "text", "uuid", "date" or "timestamp"'
    for word in ("other", "REAL", "datetime", 5, None, Type.OTHER):
        with pytest.raises(InvalidSchema) as refused:
            Declaration.of(types={"x": word})
        assert str(refused.value) == f"x: type must be {words}, got {word!r}."


def test_decimal_is_real():
    assert Declaration.of(types={"x": "decimal"}).types == {"x": Type.REAL}


READABLE = {
    "age": {"integer", "real", "decimal", "boolean", "text"},
    "pay": {"integer", "real", "decimal", "boolean"},
    "ok": {"integer", "real", "decimal", "boolean"},
    "s": {"integer", "real", "decimal", "boolean", "text", "date", "timestamp"},
    "day": {"date", "timestamp"},
    "at": {"date", "timestamp"},
    "span": set[str](),
}


@pytest.mark.parametrize("name", READABLE)
def test_what_a_stored_column_can_be_declared_as(name: str):
    for word in ("integer", "real", "decimal", "boolean", "text", "date", "timestamp"):
        if word in READABLE[name]:
            assert declared(name, types=word).type == ("real" if word == "decimal" else word)
            continue
        kind = "real" if word == "decimal" else word
        with pytest.raises(
            InvalidSchema, match=f"{name}: a column stored as .* (cannot be read as {kind}|is not text)"
        ):
            declared(name, types=word)


def test_a_decimal_column_is_summed_as_the_nearest_floats():
    cells = [Decimal("0.1"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-1e400"), None, "2.5", 3]
    data = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    facts = {"types": {"x": "decimal"}, "bounds": {"x": (-10, 10)}, "epsilon": HUGE}
    ((count, total),) = dpsql.query(data, "SELECT COUNT(x), SUM(x) FROM t", **facts)
    assert (count, round(total, 4)) == (5, 0.1 + 10 - 10 + 2.5 + 3)


# What `declare` writes into df.attrs.


def test_attributes_are_plain_and_say_the_same():
    data = pd.DataFrame({"day": pd.Series([JAN], dtype=object), "at": pd.to_datetime([NOON])})
    facts = {
        "bounds": {"day": (JAN, np.datetime64("2020-12-31")), "at": (NOON, pd.Timestamp("2020-12-31 10:00:00.5"))},
        "keys": {"day": [JAN, "2020-02-01", None], "at": [NOON]},
        "types": {"day": "date"},
    }
    said = dpsql.declare(data, **facts).attrs["dpsql"]
    assert json.loads(json.dumps(said)) == said
    assert said == {
        "bounds": {
            "day": ["2020-01-01", "2020-12-31"],
            "at": ["2020-01-01 12:00:00", "2020-12-31 10:00:00.500000"],
        },
        "keys": {"day": ["2020-01-01", "2020-02-01", None], "at": ["2020-01-01 12:00:00"]},
        "types": {"day": "date"},
    }
    again = dpsql.Table(dpsql.declare(data, **facts))
    stored = [StoredColumn(name, Type.TEXT if name == "day" else Type.TIMESTAMP, True, "") for name in ("day", "at")]
    assert resolve("t", stored, again.declaration) == resolve("t", stored, Declaration.of(**facts))


def test_a_copy_of_a_declared_frame_is_declared():
    data = dpsql.declare(pd.DataFrame({"at": pd.to_datetime([NOON] * 3)}), keys={"at": [NOON, "2020-01-02"]})
    found = dpsql.query(data.copy(), "SELECT at, COUNT(*) FROM t GROUP BY at", epsilon=HUGE)
    assert list(found) == [(NOON, 3), (datetime(2020, 1, 2), 0)]


# TOML and CSV files.


def session_of(folder: Path, columns: str, csv: str) -> dpsql.Session:
    (folder / "people.csv").write_text(csv, encoding="utf-8")
    (folder / "dpsql.toml").write_text(
        f'[budget]\nepsilon = {HUGE:.0f}\n[tables.people]\npath = "people.csv"\n[tables.people.columns]\n{columns}',
        encoding="utf-8",
    )
    return dpsql.Session(schema=dpsql.Schema.from_toml(folder / "dpsql.toml"))


CSV = """born,seen,pay
1990-01-01,2020-01-01 08:00:00,1.10
1850-01-01,2020-01-01T12:00:00.5,x
1990-1-1,,2.2
x,2020-01-01 08:00,3
2050-01-01,1999-01-01,4
"""
COLUMNS = """
born = { type = "date", bounds = [1900-01-01, 2020-12-31], keys = [1900-01-01, 1990-01-01, 2020-12-31] }
seen = { type = "timestamp", bounds = [2020-01-01T00:00:00, 2020-12-31 23:59:59.999999] }
pay = { type = "decimal", bounds = [0, 10] }
"""


@pytest.mark.parametrize("quoted", [False, True], ids=["native dates", "ISO text"])
def test_a_file_with_dates_by_its_schema(tmp_path: Path, quoted: bool):
    columns = COLUMNS
    if quoted:
        for word in ("1900-01-01", "1990-01-01", "2020-12-31 23:59:59.999999", "2020-01-01T00:00:00"):
            columns = columns.replace(word, f'"{word}"')
        columns = columns.replace("2020-12-31 }", '"2020-12-31" }').replace("2020-12-31]", '"2020-12-31"]')
    session = session_of(tmp_path, columns, CSV)
    born = session.query("SELECT born, COUNT(*) FROM people GROUP BY born", epsilon=1e8)
    assert list(born) == [(date(1900, 1, 1), 1), (date(1990, 1, 1), 2), (date(2020, 12, 31), 1)]
    (seen,) = session.query("SELECT COUNT(seen), COUNT(*), SUM(pay) FROM people", epsilon=1e8)
    assert (seen[0], seen[1], round(seen[2], 3)) == (4, 5, 10.3)


def test_dates_of_a_file_without_declared_type_are_what_their_bounds_are(tmp_path: Path):
    columns = "born = { bounds = [1900-01-01, 2020-12-31], keys = [1900-01-01, 1990-01-01, 2020-12-31] }"
    found = session_of(tmp_path, columns, CSV).query("SELECT born, COUNT(*) FROM people GROUP BY born", epsilon=1e8)
    assert [count for _key, count in found] == [1, 2, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("born = { bounds = [10:00:00, 11:00:00] }", "a bound must be a number or a date"),
        ("born = { bounds = [1990-01-01T00:00:00Z, 2020-01-01] }", "a bound has no time zone"),
        ("born = { keys = [10:00:00] }", "a key must be text, a number, a boolean, a date or None"),
        ('born = { type = "datetime" }', '"date" or "timestamp"'),
        ('born = { type = "date", bounds = [1900, 2020] }', "so its bounds are dates"),
    ],
)
def test_words_of_a_file_that_do_not_fit_are_refused(tmp_path: Path, columns: str, message: str):
    with pytest.raises(InvalidSchema, match=message):
        session_of(tmp_path, columns, CSV)


# Answers.

FRAME = pd.DataFrame(
    {
        "day": pd.to_datetime(["2020-01-31", "2020-01-31", None]),
        "at": pd.to_datetime(["2020-01-31 10:00:00", "2020-01-31 10:00:00.5", None], format="ISO8601"),
    }
)
FACTS: dict[str, Any] = {
    "types": {"day": "date"},
    "keys": {
        "day": ["2020-01-31", "0001-01-01", None],
        "at": ["2020-01-31 10:00", "2020-01-31 10:00:00.5", "9999-12-31 23:59:59.999999", None],
    },
    "epsilon": HUGE,
}
BY_DAY = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
BY_TIME = "SELECT at, COUNT(*) AS n FROM t GROUP BY at"


def test_dates_of_an_answer():
    result = dpsql.query(FRAME, BY_DAY, **FACTS)
    assert list(result) == [(date(2020, 1, 31), 2), (date.min, 0), (None, 1)]
    assert [type(day) for day, _n in result] == [date, date, type(None)]
    assert str(result.df["day"].dtype) == "datetime64[s]"
    assert result.df["day"].isna().tolist() == [False, False, True]
    assert result.df["day"].dt.date.tolist()[:2] == [date(2020, 1, 31), date.min]
    assert result.intervals()["day"].equals(result.df["day"])
    assert result.to_pandas(intervals=True)["day"].equals(result.df["day"])


def test_timestamps_of_an_answer():
    result = dpsql.query(FRAME, BY_TIME, **FACTS)
    first, second = datetime(2020, 1, 31, 10), datetime(2020, 1, 31, 10, 0, 0, 500000)
    assert list(result) == [(first, 1), (second, 1), (datetime.max, 0), (None, 1)]
    assert {type(at) for at, _n in result} == {datetime, type(None)}
    assert str(result.df["at"].dtype) == "datetime64[us]"
    assert result.df["at"].tolist()[:3] == [pd.Timestamp(first), pd.Timestamp(second), pd.Timestamp(datetime.max)]
    assert result.df["at"].isna().tolist() == [False, False, False, True]


def test_an_answer_without_rows_keeps_its_types():
    for sql, dtype in ((BY_DAY, "datetime64[s]"), (BY_TIME, "datetime64[us]")):
        found = dpsql.query(FRAME, f"{sql} HAVING COUNT(*) > 100", **FACTS)
        assert [str(each) for each in found.df.dtypes] == [dtype, "int64"]
        assert list(found) == []


@pytest.mark.parametrize("show", [str, lambda result: result._repr_html_()], ids=["text", "html"])
def test_tables_print_iso_dates(show: Callable[[Any], str]):
    by_day, by_time = (show(dpsql.query(FRAME, sql, **FACTS)) for sql in (BY_DAY, BY_TIME))
    for text in ("2020-01-31", "0001-01-01", "NULL"):
        assert text in by_day
    for text in ("2020-01-31 10:00:00", "2020-01-31 10:00:00.5", "9999-12-31 23:59:59.999999", "NULL"):
        assert text in by_time
    assert "00:00" not in by_day


def test_intervals_around_times_are_times_held_within_the_calendar():
    first, second = day_number(JAN), day_number(DEC)
    bounds = np.array([first + 0.5, -np.inf, first]), np.array([second - 0.5, np.inf, 1e300])
    low, high = frame_limits(Type.DATE, bounds)
    assert (str(low.dtype), str(high.dtype)) == ("datetime64[s]", "datetime64[s]")
    assert pd.Series(low).dt.date.tolist() == [JAN, date.min, JAN]
    assert pd.Series(high).dt.date.tolist() == [DEC, date.max, date.max]
    days = Vector(np.array([first, first, second], dtype=np.int64))
    assert _intervals_of_times(days, Type.DATE, bounds) == ["2020-01-01 … 2020-12-31", "any", "2020-01-01 … 9999-12-31"]

    noon = float(microsecond_number(NOON))
    bounds = np.array([noon, -1e300]), np.array([noon + 1e6, 1e300])
    assert whole_limits(Type.TIMESTAMP, bounds)[1].tolist() == [int(noon) + 10**6, MICROSECONDS.upper]
    moments = Vector(np.array([int(noon), int(noon)]))
    assert _intervals_of_times(moments, Type.TIMESTAMP, bounds) == [
        "2020-01-01 12:00:00 … 2020-01-01 12:00:01",
        "0001-01-01 00:00:00 … 9999-12-31 23:59:59.999999",
    ]


# Words that are none.


def test_a_fraction_is_no_key_and_no_bound():
    for said in ({"bounds": (Fraction(1, 2), 1)}, {"keys": [Fraction(1, 2)]}):
        with pytest.raises(InvalidSchema, match=r"got Fraction\(1, 2\)"):
            declared("pay", **said)


SECRET = pd.DataFrame({"s": ["needle"]})


@pytest.mark.parametrize("held", [SECRET, SECRET["s"], SECRET["s"].array, [SECRET], {"s": SECRET}, object()], ids=type)
def test_data_in_the_place_of_a_word_is_not_shown(held: Any):
    for said in ({"bounds": held}, {"bounds": (held, 1)}, {"keys": [held]}, {"types": held}, {"nullable": held}):
        with pytest.raises(InvalidSchema) as refused:
            declared("age", **said)
        assert "needle" not in str(refused.value)
