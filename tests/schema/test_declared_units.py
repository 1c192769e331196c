"""Privacy units, their limits, public tables and unique keys, as an owner declares them; and keys out of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.declaration import Declaration, StoredColumn, link, resolve
from dpsql.schema.numbers import LARGEST_LIMIT
from dpsql.schema.table_declarations import TABLE_WORDS, TableWords
from dpsql.schema.units import MOST_STEPS, Limits, Lookup, Unit, WrittenUnit, unit_word_of
from dpsql.sources.frames import read_table, stored_columns

HUGE = 1e9
FRAME = pd.DataFrame(
    {
        "Pid": [1, 1, 2],
        "hours-per-week": [40, 50, 60],
        "my key": ["a", "b", "c"],
        "a.b": [1, 2, 3],
        "code": ["x", "y", "z"],
        "span": pd.to_timedelta([1, 2, 3], unit="s"),
    }
)


def in_table(**said: Any) -> TableWords:
    return dpsql.Table(FRAME, **said).declaration.table


def in_declare(**said: Any) -> TableWords:
    table = dpsql.declare(FRAME, **said)
    assert isinstance(table, dpsql.Table)
    return table.declaration.table


def in_file(**said: Any) -> TableWords:
    return dpsql.Schema.from_dict({"tables": {"t": said}}).tables["t"].declaration.table


WAYS = pytest.mark.parametrize("way", [in_table, in_declare, in_file])
Way = Callable[..., TableWords]


def told(way: Way, message: str) -> str:
    """The message of a refusal: of a file, whose tables are many, it names the table."""
    return f"[tables.t]: {message}" if way is in_file else message


def resolved(frame: pd.DataFrame = FRAME, **said: Any) -> TableSchema:
    return resolve("t", stored_columns(frame), Declaration.of(**said))


# Words that hold.


@WAYS
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"unit": "pid"}, TableWords(WrittenUnit("pid"))),
        ({"unit": "pid", "max_rows": 4}, TableWords(WrittenUnit("pid"), Limits(4))),
        ({"unit": "pid", "max_groups": 1, "max_rows_per_group": np.int64(LARGEST_LIMIT)},
            TableWords(WrittenUnit("pid"), Limits(None, 1, LARGEST_LIMIT))),
        ({"unit": "pid", "public": False}, TableWords(WrittenUnit("pid"), public=False)),
        ({"public": True}, TableWords(public=True)),
        ({"public": True, "max_matches": {"code": np.uint8(3)}}, TableWords(public=True, max_matches=(("code", 3),))),
        ({"unique": ["code", ["Pid", "code"]]}, TableWords(unique=(("code",), ("Pid", "code")))),
        ({"unique": [], "public": False}, TableWords(public=False)),
    ],
    ids=lambda each: str(each)[:50],
)  # fmt: skip
def test_words_are_the_same_everywhere(way: Way, said: dict[str, Any], words: TableWords):
    assert way(**said) == words


def test_numbers_are_plain_python():
    words = in_table(unit="pid", max_rows=np.int8(4))
    assert type(words.limits.rows) is int
    assert type(in_table(public=True, max_matches={"code": np.int64(3)}).max_matches[0][1]) is int


def test_without_words_nothing_is_said():
    assert resolved() == TableSchema("t", resolved().columns)
    assert isinstance(dpsql.declare(FRAME, bounds={"Pid": (0, 9)}), pd.DataFrame)
    assert Declaration.of().table == TableWords()


def test_every_word_makes_declare_give_a_table():
    said: dict[str, Any] = {
        "unit": "pid", "max_rows": 1, "max_groups": 1, "max_rows_per_group": 1,
        "public": True, "unique": ["code"], "max_matches": {"code": 1},
        "partition": "code", "version": 1, "people": 3,
    }  # fmt: skip
    assert set(said) == set(TABLE_WORDS)
    people, lists = ("unit", "max_rows", "max_groups", "max_rows_per_group"), ("public", "unique", "max_matches")
    for words in (people, lists, *([word] for word in ("unit", "public", "unique"))):
        table = dpsql.declare(FRAME, bounds={"Pid": (0, 9)}, **{word: said[word] for word in words})
        assert isinstance(table, dpsql.Table)
        assert table.declaration.bounds == {"Pid": (0, 9)}
        assert table.frame.attrs == {}


def test_a_table_of_a_declared_frame_has_the_words_of_both():
    frame = dpsql.declare(FRAME, bounds={"hours-per-week": (0, 99)})
    table = dpsql.Table(frame, unit="pid", max_rows=4)
    assert table.declaration.bounds == {"hours-per-week": (0, 99)}
    assert dpsql.Table.of(frame, table.declaration).declaration == table.declaration


PATHS: list[tuple[str, WrittenUnit]] = [
    ("pid", WrittenUnit("pid")),
    ("  pid ", WrittenUnit("pid")),
    ("hours-per-week", WrittenUnit("hours-per-week")),
    ('"hours-per-week"', WrittenUnit("hours-per-week")),
    ("my key", WrittenUnit("my key")),
    ("t.pid", WrittenUnit("pid", own="t")),
    ('"a.b"', WrittenUnit("a.b")),
    ('"a -> b"', WrittenUnit("a -> b")),
    ('"a""b"', WrittenUnit('a"b')),
    ("o_custkey -> customer.c_custkey", WrittenUnit("o_custkey", "customer", "c_custkey")),
    ("o_custkey->customer . c_custkey", WrittenUnit("o_custkey", "customer", "c_custkey")),
    ("orders.o_custkey -> customer.c_custkey", WrittenUnit("o_custkey", "customer", "c_custkey", "orders")),
    ("a-b->c-d.e-f", WrittenUnit("a-b", "c-d", "e-f")),
    ('"my col" -> "my table"."key"', WrittenUnit("my col", "my table", "key")),
    ('"o"."my col"->"t".k', WrittenUnit("my col", "t", "k", "o")),
    ("prénom -> été.clé", WrittenUnit("prénom", "été", "clé")),
]


@pytest.mark.parametrize(("text", "word"), PATHS, ids=lambda each: str(each)[:40])
def test_units_are_columns_or_paths(text: str, word: WrittenUnit):
    assert unit_word_of(text) == word


# Words that do not.

NO_PATHS: list[tuple[str, str]] = [
    ("", "a name is empty"),
    ("  ", "a name is empty"),
    ('""', "a name is empty"),
    ('a -> "".b', "a name is empty"),
    ('"pid', "a double quote is not closed"),
    ('a -> b."c', "a double quote is not closed"),
    ("my key -> b.c", "two names stand side by side"),
    ('"a"b', "two names stand side by side"),
    ("a -> b.c -> d.e", "a path leads to one other table, and further by that table's own unit"),
    ("o_custkey -> customer", 'it does not say which column of "customer" is meant'),
    ("orders.o_custkey -> customer", 'it does not say which column of "customer" is meant'),
    ("a.b.c", "names, dots and arrows are not in order"),
    ("a -> b.c.d", "names, dots and arrows are not in order"),
    ("->", "names, dots and arrows are not in order"),
    ("a ->", "names, dots and arrows are not in order"),
    ("-> b.c", "names, dots and arrows are not in order"),
    ("a..b", "names, dots and arrows are not in order"),
    (".", "names, dots and arrows are not in order"),
]


@pytest.mark.parametrize(("text", "why"), NO_PATHS, ids=lambda each: str(each)[:40])
def test_what_is_no_column_and_no_path(text: str, why: str):
    with pytest.raises(InvalidSchema) as refused:
        unit_word_of(text)
    assert refused.value.message == f"unit {text.strip()!r} cannot be read: {why}."
    assert refused.value.hint.startswith('Write a column, unit="person_id", or a path')


LIMITS = ("max_rows", "max_groups", "max_rows_per_group")
NO_LIMITS: list[tuple[Any, str]] = [
    (True, "True"), (0, "0"), (-1, "-1"), (2.5, "2.5"), (4.0, "4.0"), ("4", "'4'"), (float("nan"), "nan"),
    (float("inf"), "inf"), (LARGEST_LIMIT + 1, "1000000001"), (10**5000, "one of many digits"), ([4], "[4]"),
    (np.bool_(True), "True"), (np.float64(4), "np.float64(4.0)"), (np.array(4), "a ndarray"),
    (pd.Series([4]), "a Series"),
]  # fmt: skip


@WAYS
@pytest.mark.parametrize("word", LIMITS)
@pytest.mark.parametrize(("value", "shown"), NO_LIMITS, ids=[shown for _value, shown in NO_LIMITS])
def test_limits_are_whole_numbers(way: Way, word: str, value: Any, shown: str):
    with pytest.raises(InvalidSchema) as refused:
        way(unit="pid", **{word: value})
    assert refused.value.message == told(way, f"{word} must be a whole number from 1 to 1,000,000,000, got {shown}.")
    assert refused.value.hint.endswith(f"{word}=4.")


UNIQUE_HINT = 'Write unique=["code"], and for a key of two columns unique=[["country", "year"]].'
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"unit": 5}, "unit must be the name of a column, or a path, got 5.", "Write a column"),
    ({"unit": ["pid"]}, "unit must be the name of a column, or a path, got ['pid'].", "Write a column"),
    ({"public": 1}, "public must be True or False, got 1.", ""),
    ({"public": "yes"}, "public must be True or False, got 'yes'.", ""),
    ({"unique": "code"}, "unique must be a list of columns, got 'code'.", UNIQUE_HINT),
    ({"unique": {"code": 1}}, "unique must be a list of columns, got a dict.", UNIQUE_HINT),
    ({"unique": ["code", 5]}, "unique lists columns, or lists of columns, got 5.", UNIQUE_HINT),
    ({"unique": [["code", 5]]}, "unique lists columns, or lists of columns, got ['code', 5].", UNIQUE_HINT),
    ({"unique": [[]]}, "unique lists columns, or lists of columns, got [].", UNIQUE_HINT),
    ({"unique": [["code", "Code"]]}, "unique names a column twice in one key, ['code', 'Code'].", ""),
    ({"unique": ["code", ["CODE"]]}, "unique lists code twice.", ""),
    ({"unique": [["code", "pid"], ["Pid", "code"]]}, "unique lists code and pid twice.", ""),
    (
        {"public": True, "max_matches": 3},
        "max_matches must map columns to their max_matches, got int.",
        'Write max_matches={"age": 3}.',
    ),
    (
        {"public": True, "max_matches": {"code": 0}},
        "code: max_matches must be a whole number from 1 to 1,000,000,000, got 0.",
        'Write the most rows that have one value in "code": max_matches={"code": 3}.',
    ),
]


@WAYS
@pytest.mark.parametrize(("said", "message", "hint"), REFUSED, ids=lambda each: str(each)[:40])
def test_words_that_are_none_are_refused(way: Way, said: dict[str, Any], message: str, hint: str):
    with pytest.raises(InvalidSchema) as refused:
        way(**said)
    assert refused.value.message == told(way, message)
    assert refused.value.hint.startswith(hint)


TELL = 'Limits belong to a unit. Say which column tells whose row it is: unit="person_id".'
CONTRADICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"max_rows": 4}, "{table}: max_rows is declared without a unit.", TELL),
    ({"max_groups": 4, "public": False}, "{table}: max_groups is declared without a unit.", TELL),
    ({"max_rows_per_group": 4}, "{table}: max_rows_per_group is declared without a unit.", TELL),
    (
        {"public": True, "unit": "pid"},
        "{table} is declared public, so it has no unit.",
        "No row of a public table is anybody's. Leave out public if rows are people's, else unit.",
    ),
    (
        {"public": True, "max_groups": 1},
        "{table} is declared public, so it has no max_groups.",
        "No row of a public table is anybody's. Leave out public if rows are people's, else max_groups.",
    ),
    (
        {"unit": "pid", "max_matches": {"code": 3}},
        "{table}: max_matches is for public tables.",
        "If no row of it is anybody's, write public=True too; rows of people are limited by max_rows.",
    ),
    ({"max_matches": {"code": 3}}, "{table}: max_matches is for public tables.", "If no row of it is"),
]


@WAYS
@pytest.mark.parametrize(("said", "message", "hint"), CONTRADICTIONS, ids=lambda each: str(each)[:40])
def test_words_that_contradict_each_other_are_refused(way: Way, said: dict[str, Any], message: str, hint: str):
    with pytest.raises(InvalidSchema) as refused:
        way(**said)
    assert refused.value.message == message.format(table="[tables.t]" if way is in_file else "the table")
    assert refused.value.hint.startswith(hint)


UNTOLD = 'unit: column "span" is stored as timedelta64[us], whose values cannot be told apart here.'
UNTOLD_HINT = (
    "\n  A unit is a column of numbers, text, booleans, dates or timestamps. If it holds UUIDs as 16 bytes, "
    'declare that: types={"span": "uuid"}.'
)


@pytest.mark.parametrize("way", [in_table, in_declare])
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"unit": "pidd"}, 'unit: column "pidd" is not in the table. Did you mean "Pid"?'),
        ({"unit": "zzz -> b.c"}, 'unit: column "zzz" is not in the table.'),
        ({"unit": "a.b"},
            'unit: column "b" is not in the table.\n  A name with a dot is in double quotes: unit=\'"a.b"\'.'),
        ({"unique": [["code", "cod"]]}, 'unique: column "cod" is not in the table. Did you mean "code"?'),
        ({"public": True, "max_matches": {"cod": 3}},
            'max_matches: column "cod" is not in the table. Did you mean "code"?'),
        ({"public": True, "max_matches": {"code": 3, "Code": 3}},
            'max_matches: column "code" is declared twice, in different case.'),
        ({"unit": "span"}, UNTOLD + UNTOLD_HINT),
    ],
    ids=lambda each: str(each)[:40],
)  # fmt: skip
def test_columns_of_words_are_in_the_table(way: Way, said: dict[str, Any], message: str):
    span = FRAME.astype({"span": "timedelta64[us]"})
    with pytest.raises(InvalidSchema) as refused:
        dpsql.Table(span, **said) if way is in_table else dpsql.declare(span, **said)
    assert str(refused.value) == message


SECRET = pd.DataFrame({"s": ["needle"]})


@pytest.mark.parametrize("held", [SECRET, SECRET["s"], SECRET["s"].array, [SECRET], {"s": SECRET}, object()], ids=type)
@pytest.mark.parametrize("word", TABLE_WORDS)
def test_data_in_the_place_of_a_word_is_not_shown(word: str, held: Any):
    for value in (held, [held], {"code": held}):
        with pytest.raises(InvalidSchema) as refused:
            Declaration.of(**{word: value})
        assert "needle" not in str(refused.value)


def test_values_check_themselves():
    for make in (
        lambda: Limits(rows=0),
        lambda: Limits(groups=LARGEST_LIMIT + 1),
        lambda: WrittenUnit(""),
        lambda: WrittenUnit("a", table="b"),
        lambda: Unit("a", (Lookup("t", "k", "c"),) * (MOST_STEPS + 1)),
        lambda: TableSchema("t", (), rows=5),
    ):
        with pytest.raises(ValueError):
            make()


# The schema of a table.


def test_names_are_found_without_regard_to_case_and_kept_as_stored():
    table = resolved(unit="T.PID -> Other.Key", max_rows=3, unique=["CODE", ["pid", "code"]])
    assert table.unit_word == WrittenUnit("Pid", "Other", "Key", "T")
    assert table.unit is None
    assert table.unique == (("code",), ("Pid", "code"))
    assert resolved(public=True, max_matches={"CODE": 2, "my KEY": 1}).max_matches == (("code", 2), ("my key", 1))


def test_a_unit_in_a_column_needs_no_link():
    table = resolved(unit="PID", max_rows=3, max_groups=2, max_rows_per_group=1)
    assert (table.unit, table.limits) == (Unit("Pid"), Limits(3, 2, 1))
    assert resolved(unit='"a.b"').unit == Unit("a.b")


def test_the_number_of_rows_is_kept_of_public_tables_alone():
    stored = stored_columns(FRAME)
    assert resolve("t", stored, Declaration.of(public=True), rows=3).rows == 3
    assert resolve("t", stored, Declaration.of(public=True)).rows is None
    for said in ({}, {"public": False}, {"unit": "pid"}):
        assert resolve("t", stored, Declaration.of(**said), rows=3).rows is None


def test_every_fact_enters_the_fingerprint():
    facts: list[dict[str, Any]] = [
        {}, {"unit": "pid"}, {"unit": "code"}, {"unit": "pid -> a.b"}, {"unit": "pid -> a.c"}, {"unique": ["code"]},
        {"unique": [["code", "pid"]]}, {"public": True}, {"public": True, "max_matches": {"code": 1}},
        *({"unit": "pid", word: most} for word in LIMITS for most in (1, 2)),
    ]  # fmt: skip
    tables = [resolved(**each) for each in facts]
    tables += [replace(tables[3], unit=Unit("Pid")), replace(tables[7], rows=3), replace(tables[0], name="u")]
    assert len({table.fingerprint for table in tables}) == len(tables)
    assert resolved(public=False).fingerprint == resolved().fingerprint
    assert resolved(unit="PID").fingerprint == resolved(unit="pid").fingerprint


def test_no_row_is_read():
    said: dict[str, Any] = {"unit": "code", "max_rows": 2, "unique": ["pid"]}
    assert resolved(FRAME.iloc[:0], **said) == resolved(FRAME, **said)
    twice = pd.DataFrame({"code": ["x", "x", None]})
    assert dpsql.Table(twice, public=True, unique=["code"]).declaration.table.unique == (("code",),)


def test_the_nearer_word_wins():
    file = Declaration.of(unit="pid", max_rows=4, max_groups=3, unique=["code"])
    nearer = Declaration.of(unit="code", max_rows=2, unique=["pid", "CODE"])
    both = nearer.over(file)
    assert both.table.unit == WrittenUnit("code")
    assert both.table.limits == Limits(2, 3)
    assert resolve("t", stored_columns(FRAME), both).unique == (("code",), ("Pid",))
    assert Declaration.of().over(file) == file
    assert file.over(Declaration.of()) == file
    lists = Declaration.of(public=True, max_matches={"code": 3, "pid": 2})
    assert Declaration.of(max_matches={"pid": 5}).over(lists).table.max_matches == (("code", 3), ("pid", 5))
    assert Declaration.of(public=False).over(lists).table.public is False
    with pytest.raises(InvalidSchema, match="t is declared public, so it has no unit."):
        resolve("t", stored_columns(FRAME), file.over(lists))


def test_limits_may_be_said_elsewhere_than_the_unit():
    called = Declaration.of(max_rows=2)
    assert resolve("t", stored_columns(FRAME), called.over(Declaration.of(unit="pid"))).limits == Limits(2)


# Files.


def test_a_file_has_the_same_words(tmp_path: Path):
    (tmp_path / "d.toml").write_text(
        """
        [tables.orders]
        unit = "o_custkey -> customer.c_custkey"
        max_rows = 10
        max_groups = 3
        max_rows_per_group = 5
        unique = ["o_orderkey", ["o_custkey", "o_day"]]
        columns.o_day = { type = "date" }
        [tables.nation]
        public = true
        unique = ["n_name"]
        max_matches = { n_region = 5, "odd name" = 1 }
        """,
        encoding="utf-8",
    )
    tables = dpsql.Schema.from_toml(tmp_path / "d.toml").tables
    orders = Declaration.of(
        types={"o_day": "date"},
        unit="o_custkey -> customer.c_custkey",
        max_rows=10,
        max_groups=3,
        max_rows_per_group=5,
        unique=["o_orderkey", ["o_custkey", "o_day"]],
    )
    assert tables["orders"].declaration == orders
    assert tables["nation"].declaration == Declaration.of(
        public=True, unique=["n_name"], max_matches={"n_region": 5, "odd name": 1}
    )


def test_unknown_words_of_a_file_are_refused():
    for word, near in (("max_row", "max_rows"), ("units", "unit"), ("max_match", "max_matches")):
        with pytest.raises(InvalidSchema) as refused:
            in_file(**{word: 1})
        assert refused.value.message == f'[tables.t] has an unknown setting "{word}". Did you mean "{near}"?'
        assert refused.value.hint == (
            "Known: path, table, neighbours, columns, delimiter, quote, header, skip, encoding, multiline, unit, "
            "max_rows, max_groups, max_rows_per_group, public, unique, max_matches, partition, version, people."
        )


def test_reading_a_file_keeps_the_words(tmp_path: Path):
    (tmp_path / "t.csv").write_text("pid,code\n1,x\n", encoding="utf-8")
    said = Declaration.of(bounds={"pid": (0, 9)}, unit="pid", max_rows=3, unique=["code"])
    assert read_table(tmp_path / "t.csv", said)[1].table == said.table


# Paths.


def table(name: str, columns: str, kinds: dict[str, Type] | None = None, /, **said: Any) -> TableSchema:
    stored = [StoredColumn(each, (kinds or {}).get(each, Type.INTEGER), False, "int64") for each in columns.split()]
    return resolve(name, stored, Declaration.of(**said))


def linked(*tables: TableSchema) -> dict[str, TableSchema]:
    found = link({each.name.casefold(): each for each in tables})
    assert [replace(each, unit=None) for each in found.values()] == [replace(each, unit=None) for each in tables]
    assert link(found) == found
    return found


def refusal(*tables: TableSchema) -> str:
    with pytest.raises(InvalidSchema) as refused:
        link({each.name.casefold(): each for each in tables})
    return str(refused.value)


CUSTOMER = table("Customer", "C_custkey c_name", unit="c_custkey", max_rows=5)
ORDERS = table("orders", "O_orderkey o_custkey", unit="o_custkey -> customer.c_custkey", unique=["o_orderkey"])
LINEITEM = table("lineitem", "l_orderkey l_id", unit="l_orderkey -> orders.o_orderkey", unique=["l_id"])
NOTES = table("notes", "n_item", unit="NOTES.n_item -> Lineitem.L_ID")


def test_a_path_to_the_unit_itself_looks_nothing_up():
    found = linked(ORDERS, CUSTOMER)
    assert found["orders"].unit == Unit("o_custkey")
    assert found["customer"].unit == Unit("C_custkey")


def test_chains_follow_by_themselves():
    found = linked(NOTES, LINEITEM, CUSTOMER, ORDERS, table("other", "x"), table("codes", "x", public=True))
    step = Lookup("orders", "O_orderkey", "o_custkey")
    assert found["lineitem"].unit == Unit("l_orderkey", (step,))
    assert found["notes"].unit == Unit("n_item", (Lookup("lineitem", "l_id", "l_orderkey"), step))
    assert found["other"].unit is found["codes"].unit is None


def test_a_path_to_another_key_of_the_table_of_units_looks_it_up():
    people = table("people", "pid email", unit="pid", unique=["email"])
    mails = table("mails", "sender", unit="sender -> people.email")
    assert linked(mails, people)["mails"].unit == Unit("sender", (Lookup("people", "email", "pid"),))


def test_a_path_to_a_column_that_holds_the_unit_looks_nothing_up():
    payments = table("payments", "p_custkey", unit="p_custkey -> orders.o_custkey")
    assert linked(payments, ORDERS, CUSTOMER)["payments"].unit == Unit("p_custkey")


def test_numbers_are_comparable_and_other_types_are_not():
    for kind in (Type.INTEGER, Type.REAL):
        orders = table("orders", "o_custkey", {"o_custkey": kind}, unit="o_custkey -> customer.c_custkey")
        assert linked(orders, CUSTOMER)["orders"].unit == Unit("o_custkey")
    for kind in (Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP):
        orders = table("orders", "o_custkey", {"o_custkey": kind}, unit="o_custkey -> customer.c_custkey")
        assert refusal(orders, CUSTOMER) == (
            f'orders: "o_custkey" is {kind} and Customer.C_custkey is integer, so they are never equal.\n'
            '  Declare both alike: types={"o_custkey": ...} or types={"C_custkey": ...}.'
        )
        people = table("customer", "c_custkey", {"c_custkey": kind}, unit="c_custkey")
        assert linked(orders, people)["orders"].unit == Unit("o_custkey")


def test_a_path_leads_to_a_table_that_is_here():
    assert refusal(ORDERS) == (
        'orders: its unit leads to table "customer", which is not here.\n'
        "  Add that table before this one, or together with it."
    )
    near = table("customers", "c_custkey", unit="c_custkey")
    assert refusal(ORDERS, near).startswith(
        'orders: its unit leads to table "customer", which is not here. Did you mean "customers"?'
    )


def test_a_path_leads_to_a_table_with_units():
    assert refusal(ORDERS, table("customer", "c_custkey")) == (
        "orders: its unit leads to customer, which declares no unit of its own.\n"
        '  Declare it there, unit="c_custkey", or write a column of orders alone: unit="o_custkey".'
    )
    assert refusal(ORDERS, table("customer", "c_custkey", public=True)) == (
        "orders: its unit leads to customer, which is public and so has no units.\n"
        "  Write the column that tells whose row it is, or leave out public of customer."
    )


def test_a_path_leads_to_a_column_that_is_there():
    assert refusal(ORDERS, table("customer", "c_cust_key", unit="c_cust_key")) == (
        'orders: its unit leads to column "c_custkey", which is not in customer. Did you mean "c_cust_key"?'
    )


def test_a_key_on_the_way_is_declared_unique():
    for unique in ([], ["o_custkey"], [["o_orderkey", "o_custkey"]]):
        orders = table("orders", "o_orderkey o_custkey", unit="o_custkey -> customer.c_custkey", unique=unique)
        assert refusal(CUSTOMER, orders, LINEITEM) == (
            "lineitem: its unit leads through orders.o_orderkey, which is not declared unique.\n"
            '  A row must lead to one unit. If no two rows of orders have the same "o_orderkey", declare there '
            'unique=["o_orderkey"].'
        )


def test_a_unit_begins_at_its_own_table():
    for said in ("sales.o_custkey -> customer.c_custkey", "sales.o_custkey"):
        assert refusal(table("orders", "o_custkey", unit=said), CUSTOMER) == (
            'orders: its unit is written as a column of "sales".\n  A unit begins at a column of its own table: '
            "write orders.o_custkey, or leave the table's name out."
        )
    assert linked(table("Orders", "pid", unit="ORDERS.pid"))["orders"].unit == Unit("pid")


def test_circles_are_refused():
    circle = [table(each, "k", unit=f"k -> {to}.k", unique=["k"]) for each, to in ("AB", "BC", "CA")]
    way_in = table("way_in", "k", unit="k -> B.k")
    hint = 'One of these tables must have its unit in a column of its own: unit="person_id".'
    assert refusal(*circle) == f"the units of A -> B -> C -> A lead round in a circle.\n  {hint}"
    assert refusal(way_in, *circle) == f"the units of B -> C -> A -> B lead round in a circle.\n  {hint}"
    alone = table("t", "id parent", unit="parent -> t.id", unique=["id"])
    assert refusal(alone) == f"the units of t -> t lead round in a circle.\n  {hint}"


def chain_of(length: int) -> list[TableSchema]:
    """t0, the table of the units, and so many tables of which each leads through the one before."""
    tables = [table("t0", "id unit", unit="unit", unique=["id"])]
    return tables + [table(f"t{i}", "id up", unit=f"up -> t{i - 1}.id", unique=["id"]) for i in range(1, length + 1)]


def test_a_path_has_at_most_so_many_steps():
    unit = linked(*chain_of(MOST_STEPS))[f"t{MOST_STEPS}"].unit
    assert unit is not None
    assert [step.table for step in unit.steps] == [f"t{i}" for i in reversed(range(MOST_STEPS))]
    assert unit.steps[-1] == Lookup("t0", "id", "unit")
    assert refusal(*chain_of(2000)) == (
        "t17: its unit is more than 16 tables away.\n"
        "  Add a column that tells whose row it is, and declare that."
    )  # fmt: skip


# Keys out of answers.


def keys_of(listed: Any, kind: Type = Type.TEXT) -> Any:
    stored = [StoredColumn("s", kind, True, "")]
    return resolve("t", stored, Declaration.of(keys={"s": listed})).by_name["s"].keys


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_keys_out_of_an_answer_are_its_distinct_values(dtype: str):
    answer = SimpleNamespace(df=pd.DataFrame({"n": [1, 2, 3, 4], "S": pd.Series(["b", None, "a", "b"], dtype=dtype)}))
    assert keys_of(answer) == ("b", "a", None)
    answer.df = answer.df.dropna()
    assert keys_of(answer) == ("b", "a")


def test_keys_out_of_answers_of_every_type():
    def of(values: Any, kind: Type) -> Any:
        return keys_of(SimpleNamespace(df=pd.DataFrame({"s": values})), kind)

    assert of(pd.array([3, None, 1, 3], dtype="Int64"), Type.INTEGER) == (3, 1, None)
    assert of([0.5, np.nan, 0.25], Type.REAL) == (0.5, 0.25, None)
    assert of(pd.array([True, None], dtype="boolean"), Type.BOOLEAN) == (True, None)
    assert of(pd.to_datetime(["1970-01-02", None]).astype("datetime64[s]"), Type.DATE) == (1, None)


def test_an_answer_without_the_column_is_refused():
    hint = "Select it by that name: SELECT s, COUNT(*) ... GROUP BY s."
    for frame, columns in (
        (pd.DataFrame({"city": ["needle"], "n": [1]}), '"city", "n"'),
        (pd.DataFrame({"s": ["needle"], "S": ["x"]}), '"s", "S"'),
        (pd.DataFrame(), "none"),
    ):
        with pytest.raises(InvalidSchema) as refused:
            keys_of(SimpleNamespace(df=frame))
        message = f's: an answer given for its keys has one column "s"; this has {columns}.'
        assert str(refused.value) == f"{message}\n  {hint}"
    with pytest.raises(InvalidSchema, match="the list of keys is empty"):
        keys_of(SimpleNamespace(df=pd.DataFrame({"s": pd.Series([], dtype="str")})))


def test_a_released_answer_gives_the_keys_of_the_next():
    data = pd.DataFrame({"s": ["b"] * 50 + ["a"] * 50 + [None] * 50})
    sql = "SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    first = dpsql.query(data, sql, epsilon=HUGE, delta=0.5)
    assert isinstance(first, dpsql.Result)
    second = dpsql.query(data.head(50), sql, epsilon=HUGE, keys={"s": first})
    assert list(second) == [("a", 0), ("b", 50), (None, 0)]
    for again in (dpsql.Table(data, keys={"s": first}), dpsql.Table(dpsql.declare(data, keys={"S": first}))):
        assert list(again.declaration.keys.values()) == [("a", "b", None)]


@pytest.mark.parametrize(
    "listed",
    [
        pd.Series(["a", "b", None]),
        pd.Series(["a", "b", None], dtype=object),
        pd.Series(["a", "b", None], dtype="category"),
        pd.Index(["a", "b", None]),
        pd.array(["a", "b", None], dtype="string"),
        np.array(["a", "b", None], dtype=object),
    ],
    ids=lambda listed: f"{type(listed).__name__} of {listed.dtype}",
)
def test_keys_come_as_a_series_or_an_array(listed: Any):
    assert keys_of(listed) == ("a", "b", None)
    assert keys_of(listed[:2]) == ("a", "b")


def test_arrays_of_numbers_are_keys_of_numbers():
    assert keys_of(np.arange(3), Type.INTEGER) == (0, 1, 2)
    assert keys_of(pd.Series([1, None], dtype="Int64"), Type.INTEGER) == (1, None)
    assert keys_of(pd.Series([0.5, np.nan]), Type.REAL) == (0.5, None)


def test_a_series_says_each_key_once():
    for listed in (pd.Series(["a", "b", "a"]), pd.Series(["a", None, None]), np.array(["a", "a"])):
        with pytest.raises(InvalidSchema, match="s: a key is listed twice."):
            keys_of(listed)


def test_a_frame_is_no_answer():
    for frame in (pd.DataFrame({"df": ["needle"], "s": ["a"]}), pd.DataFrame([["needle", "a"]], columns=["df", "df"])):
        with pytest.raises(InvalidSchema, match="s: keys are one list of values, got a DataFrame") as refused:
            keys_of(frame)
        assert "needle" not in str(refused.value)
    with pytest.raises(InvalidSchema, match="s: keys are a list of values, got a SimpleNamespace."):
        keys_of(SimpleNamespace(df=["a"]))
