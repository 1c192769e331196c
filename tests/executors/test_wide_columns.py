"""Columns of whole numbers that may have more than 64 bits: exact, or refused by type."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import TypeMismatch, UnknownGroups

NUMBERS = np.random.default_rng(2).integers(0, 2**64 - 1, 200, dtype=np.uint64, endpoint=True)
NUMBERS[:4] = [0, 2**63 - 1, 2**63, 2**64 - 1]
PEOPLE = NUMBERS[np.random.default_rng(3).integers(0, 10, 200)]
SMALL = np.random.default_rng(4).integers(-3, 5, 200)
SIGNED = ("decimal", "HUGEINT", "DECIMAL(38,0)")


def decimals(numbers: Any) -> pd.Series:
    cells = pa.array([Decimal(int(each)) for each in numbers], pa.decimal128(38, 0))
    return pd.Series(pd.arrays.ArrowExtensionArray(cells))


FRAMES = {
    "uint64": pd.Series,
    "UInt64": lambda numbers: pd.Series(pd.array(numbers, dtype="UInt64")),
    "arrow": lambda numbers: pd.Series(numbers).astype("uint64[pyarrow]"),
    "category": lambda numbers: pd.Series(pd.Categorical(numbers)),
    "dictionary": lambda numbers: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(numbers).dictionary_encode())),
    "decimal": decimals,
}
STORED = ("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(38,0)")
PLACES = [
    *((kind, engine) for kind in FRAMES for engine in ("pandas", "duckdb")),
    *((kind, "parquet") for kind in ("uint64", "decimal")),
    *((kind, "database") for kind in STORED),
]


def table(kind: str, where: str, folder: Path, **words: Any) -> dpsql.Table:
    plain = pd.DataFrame({"h": NUMBERS, "pid": PEOPLE, "n": SMALL})
    if where == "database":
        file = folder / f"{len(list(folder.iterdir()))}.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.register("plain", plain)
            connection.execute(
                f"CREATE TABLE t AS SELECT CAST(h AS {kind}) AS h, CAST(pid AS {kind}) AS pid, n FROM plain"
            )
        return dpsql.Table(file, table="t", **words)
    frame = pd.DataFrame({"h": FRAMES[kind](NUMBERS), "pid": FRAMES[kind](PEOPLE), "n": SMALL})
    if where != "parquet":
        return dpsql.Table(frame, **words)
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    frame.to_parquet(file)
    return dpsql.Table(file, **words)


def session(where: str, **tables: dpsql.Table) -> dpsql.Session:
    engine = where if where in ("pandas", "duckdb") else "auto"
    return dpsql.Session(tables, budget=dpsql.Budget(1e9, 0.5), engine=engine)


def answer(asked: dpsql.Session, sql: str) -> Any:
    ((found,),) = asked.query(sql, epsilon=1e6)
    return found


EQUAL = (
    "COUNT(DISTINCT h)",
    "COUNT_IF(h = 18446744073709551615)",
    "COUNT_IF(h <> 9223372036854775808)",
    "COUNT_IF(h IN (0, 9223372036854775807, 18446744073709551615, -1))",
    "COUNT_IF(h = pid)",
    "COUNT_IF(h IS DISTINCT FROM pid)",
    "COUNT_IF(NOT h = n)",
    "COUNT_IF(pid = n)",
    "COUNT_IF(h % 10 = 0)",
    "COUNT_IF(h % -2147483648 = 5)",
    "COUNT_IF(h > 5)",
    "COUNT_IF(h > 4.7e18)",
    "COUNT_IF(h / 4 < 2e18)",
    "COUNT(DISTINCT CASE WHEN n > 2 THEN h END)",
    "COUNT_IF(COALESCE(h, 5) = 0)",
    "COUNT(NULLIF(h, 0))",
    "COUNT_IF(CAST(h AS TEXT) LIKE '%7')",
    "COUNT_IF(n < 9223372036854775808)",
)
ORDERED = (
    "COUNT_IF(h > 9223372036854775807)",
    "COUNT_IF(h <= 18446744073709551614)",
    "COUNT_IF(h BETWEEN 9223372036854775807 AND 9223372036854775808)",
    "COUNT_IF(h < pid)",
    "COUNT_IF(pid >= n)",
)
REFUSED = ("h // 10 = 0", "ABS(h) = 5", "ROUND(h, -1) = 0", "GREATEST(h, 1) = 1", "h % 2147483649 = 0", "h = '5'")


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_values_are_the_stored_numbers(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path))
    plain = duckdb.connect()
    plain.register("t", pd.DataFrame({"h": NUMBERS, "pid": PEOPLE, "n": SMALL}))
    for text in EQUAL + ORDERED:
        if text in ORDERED and kind in SIGNED:
            with pytest.raises(TypeMismatch, match="cannot be computed exactly"):
                asked.query(f"SELECT {text} FROM t", epsilon=1)
        else:
            ((wanted,),) = plain.execute(f"SELECT {text} FROM t").fetchall()
            assert answer(asked, f"SELECT {text} FROM t") == wanted, text
    spent = asked.spent
    for text in REFUSED:
        with pytest.raises(TypeMismatch, match="cannot be computed exactly"):
            asked.query(f"SELECT COUNT(*) FROM t WHERE {text}", epsilon=1)
    assert asked.spent == spent


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_keys_are_the_stored_numbers(kind: str, where: str, tmp_path: Path):
    counted = {int(key): int(n) for key, n in zip(*np.unique(PEOPLE, return_counts=True), strict=True)}
    asked = session(where, t=table(kind, where, tmp_path))
    found = asked.query("SELECT pid, COUNT(*) FROM t GROUP BY pid", epsilon=1e6, delta=1e-6)
    assert dict(found) == counted
    assert [key for key, _ in found] == sorted(counted)
    largest = "SELECT pid FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid) ORDER BY pid DESC LIMIT 1"
    assert asked.query(largest, epsilon=1e6, delta=1e-6).item() == max(counted)
    shown = "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM (SELECT pid, COUNT(*) FROM t GROUP BY pid) AS a)"
    assert asked.query(shown, epsilon=1e6, delta=1e-6).item() == len(PEOPLE)
    keys = [2**64 - 1, 0, 12]
    listed = session(where, t=table(kind, where, tmp_path, keys={"h": keys}))
    held = NUMBERS.tolist()
    assert dict(listed.query("SELECT h, COUNT(*) FROM t GROUP BY h", epsilon=1e6)) == {k: held.count(k) for k in keys}
    assert answer(listed, "SELECT MODE(h) FROM t") in keys


FEW = [1, 2, 3, 3, 5, 5, 7, 2**63, 2**64 - 1]


def few(where: str, kind: str = "uint64", **words: Any) -> dpsql.Session:
    cells = np.repeat(np.array(FEW, dtype="uint64"), 50)
    return session(where, t=dpsql.Table(pd.DataFrame({"h": FRAMES[kind](cells)}), **words))


@pytest.mark.parametrize("kind", ["uint64", "decimal"])
@pytest.mark.parametrize("where", ["pandas", "duckdb"])
def test_constants_of_a_filter_are_public_groups(where: str, kind: str):
    """All integers between small constants, as of an integer column; of constants beyond doubles these alone."""
    asked = few(where, kind)
    counts = {each: 50 * FEW.count(each) for each in range(6)}
    for condition, groups in (
        ("h IN (1, 3)", (1, 2, 3)),
        ("h = 3", (3,)),
        ("3 = h", (3,)),
        ("h = 1 OR h = 3", (1, 2, 3)),
        ("h BETWEEN 1 AND 3", (1, 2, 3)),
        ("h IN (4, NULL)", (4,)),
        ("h IN (-1, 1)", (-1, 0, 1)),
    ):
        found = dict(asked.query(f"SELECT h, COUNT(*) FROM t WHERE {condition} GROUP BY h", epsilon=1e6))
        passes = {"h IN (1, 3)": (1, 3), "h = 1 OR h = 3": (1, 3), "h IN (-1, 1)": (1,)}.get(condition, groups)
        assert found == {key: counts[key] if key in passes else 0 for key in groups}, condition
    for condition, large in (
        ("h IN (1, 9007199254740992)", {1: 50, 2**53: 0}),
        ("h IN (1, 18446744073709551615)", {1: 50, 2**64 - 1: 50}),
        ("h = 18446744073709551615", {2**64 - 1: 50}),
    ):
        found = dict(asked.query(f"SELECT h, COUNT(*) FROM t WHERE {condition} GROUP BY h", epsilon=1e6))
        assert found == large, condition
    for condition in ("h <> 3", "h NOT IN (1, 3)", "h > 3", "h IN (1, 3) OR h > 3"):
        with pytest.raises(UnknownGroups):
            asked.query(f"SELECT h, COUNT(*) FROM t WHERE {condition} GROUP BY h", epsilon=1)


@pytest.mark.parametrize("kind", ["uint64", "decimal"])
@pytest.mark.parametrize("where", ["pandas", "duckdb"])
def test_keys_and_chosen_bounds_clip_what_is_larger(where: str, kind: str):
    """The median, of an odd number of values, is the middle one where larger numbers are the largest key or bound."""
    keyed = few(where, kind, keys={"h": [3, 5, 7]})
    assert abs(answer(keyed, "SELECT MEDIAN(h) FROM t") - 5) < 0.01
    assert round(answer(keyed, "SELECT SUM(h) FROM t")) == 50 * (4 * 3 + 2 * 5 + 3 * 7)
    chosen = few(where, kind, bounds={"h": ("auto", 0, 100)})
    assert abs(answer(chosen, "SELECT MEDIAN(h) FROM t") - 5) < 0.01
    lone = few(where, kind, bounds={"h": "auto"})
    assert answer(lone, "SELECT COUNT_IF(h = 0) FROM t") == 0
    assert answer(lone, "SELECT COUNT_IF(h > 7) FROM t") == 100


@pytest.mark.parametrize("where", ["pandas", "duckdb"])
def test_joins_compare_the_stored_numbers(where: str):
    names = pd.DataFrame({"h": np.unique(NUMBERS), "place": range(len(np.unique(NUMBERS)))})
    small = pd.DataFrame({"k": np.array([0, 1, 2**62 + 1, 2**63 - 1]), "place": range(4)})
    public = {
        "names": dpsql.Table(names, public=True, unique=["h"]),
        "small": dpsql.Table(small, public=True, unique=["k"]),
    }
    asked = session(where, t=table("uint64", where, Path()), **public)
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN names USING (h)") == len(NUMBERS)
    inside = sum(each in small["k"].tolist() for each in NUMBERS.tolist())
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN small ON t.h = small.k") == inside
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE h IN (SELECT k FROM small)") == inside
    both = sum(each in names["h"].tolist() for each in SMALL.tolist())
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN names ON t.n = names.h") == both
    counted = asked.query("SELECT h, COUNT(*) FROM names LEFT JOIN t USING (h) GROUP BY h", epsilon=1e6)
    assert dict(counted) == {int(k): int(n) for k, n in zip(*np.unique(NUMBERS, return_counts=True), strict=True)}
    above = "SELECT MAX(names.h) FROM (SELECT h, COUNT(*) FROM t GROUP BY h) AS a JOIN names ON a.h = names.h"
    wide = session(where, t=dpsql.Table(pd.DataFrame({"h": np.repeat(NUMBERS, 30)})), **public)
    assert wide.query(above, epsilon=1e6, delta=1e-6).item() == 2**64 - 1


@pytest.mark.parametrize("where", ["pandas", "duckdb"])
def test_units_of_two_stored_types_are_compared_as_numbers(where: str):
    """A person of an unsigned column, of one with a sign, and of Python integers is one person."""
    ids = [0, 5, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    frames = {
        "u": pd.DataFrame({"pid": np.array(ids, dtype="uint64")}),
        "i": pd.DataFrame({"pid": np.array(ids[:4])}),
        "o": pd.DataFrame({"pid": np.array(ids, dtype=object)}),
    }
    words: dict[str, Any] = {"u": {}, "i": {}, "o": {"types": {"pid": "integer"}}}
    held = {name: dpsql.Table(each, unit="pid", max_rows=1, **words[name]) for name, each in frames.items()}
    asked = session(where, **held)
    for one, other, both in (("u", "i", 4), ("i", "u", 4), ("u", "o", 6), ("o", "u", 6), ("i", "o", 4)):
        assert answer(asked, f"SELECT COUNT(*) FROM {one} JOIN {other} ON {one}.pid = {other}.pid") == both
        assert answer(asked, f"SELECT COUNT(DISTINCT {one}.pid) FROM {one} JOIN {other} USING (pid)") == both
    assert answer(asked, "SELECT COUNT(*) FROM u LEFT JOIN i ON u.pid = i.pid WHERE i.pid IS NULL") == 2
    assert answer(asked, "SELECT COUNT(*) FROM (SELECT pid FROM u UNION ALL SELECT pid FROM i)") == 6  # a row of each
    assert answer(asked, "SELECT COUNT(DISTINCT pid) FROM o") == 6


def test_integers_with_a_sign_of_128_bits(tmp_path: Path):
    cells = [-(2**127), -(2**64), -12, -1, 0, 7, 2**127 - 1]
    file = tmp_path / "h.duckdb"
    texts = ", ".join(f"('{each}'::HUGEINT)" for each in cells)
    with duckdb.connect(str(file)) as made:
        made.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {texts}) v(h)")
    asked = session("database", t=dpsql.Table(file, table="t"))
    with duckdb.connect(str(file), read_only=True) as plain:
        for text in (
            "COUNT(DISTINCT h)", "COUNT_IF(h = -12)", "COUNT_IF(h = -18446744073709551617)",
            "COUNT_IF(h IN (-18446744073709551616, 7))", "COUNT_IF(h % 5 = -2)", "COUNT_IF(h < -12)",
        ):  # fmt: skip
            ((wanted,),) = plain.execute(f"SELECT {text} FROM t").fetchall()
            assert answer(asked, f"SELECT {text} FROM t") == wanted, text
    params = {"low": 2**127 - 1}
    assert asked.query("SELECT COUNT(*) FROM t WHERE h = :low", epsilon=1e6, params=params).item() == 1


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_the_digits_are_exact(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path, types={"h": "text"}))
    assert answer(asked, "SELECT COUNT(DISTINCT h) FROM t") == len(set(NUMBERS.tolist()))
    ends = "('0', '9223372036854775807', '9223372036854775808', '18446744073709551615')"
    assert answer(asked, f"SELECT COUNT(*) FROM t WHERE h IN {ends}") == 4
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE RIGHT(h, 1) = '0'") == sum(NUMBERS % 10 == 0)


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_bounds_clip_them(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path, bounds={"h": (0, 1000)}))
    assert round(answer(asked, "SELECT SUM(h) FROM t")) == sum(min(1000, each) for each in NUMBERS.tolist())
    assert answer(asked, "SELECT COUNT(DISTINCT h) FROM t") == 2


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_units_are_the_stored_numbers(kind: str, where: str, tmp_path: Path):
    held = table(kind, where, tmp_path, unit="pid", max_rows=5000)
    asked = session(where, t=held, o=table(kind, where, tmp_path, unit="pid", max_rows=5000))
    people = len(set(PEOPLE.tolist()))
    assert answer(asked, "SELECT COUNT(DISTINCT pid) FROM t") == people
    assert answer(asked, "SELECT COUNT(DISTINCT pid) FILTER (WHERE h IS NOT NULL) FROM t") == people
    assert answer(asked, "SELECT COUNT(DISTINCT CASE WHEN h IS NOT NULL THEN pid END) FROM t") == people
    assert answer(asked, "SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)") == people
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM o)") == len(PEOPLE)
    windowed = "SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY h IS NULL) AS r FROM t"
    assert answer(asked, f"SELECT COUNT(*) FROM ({windowed}) WHERE r = 1") == people
    pairs = sum(count**2 for count in np.unique(PEOPLE, return_counts=True)[1].tolist())
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN o USING (pid)") == pairs
    for sql in (
        "SELECT COUNT(*) FROM (SELECT pid, MAX(h) AS m FROM t GROUP BY pid) WHERE m > 7",
        "SELECT COUNT(*) FROM (SELECT LAG(h) OVER (PARTITION BY pid ORDER BY n) AS m, n FROM t) WHERE m > 7",
    ):
        with pytest.raises(TypeMismatch, match="cannot be computed exactly"):
            asked.query(sql, epsilon=1)


@pytest.mark.parametrize("kind", ["uint64", "decimal"])
def test_the_advice_is_accepted_where_it_is_typed(kind: str):
    """Each of its declarations lets the refused query be answered."""
    frame = pd.DataFrame({"h": FRAMES[kind](NUMBERS)})
    sql = "SELECT COUNT(*) FROM t WHERE h // 10 = 0"
    with pytest.raises(TypeMismatch) as refusal:
        dpsql.query(frame, sql, epsilon=1)
    for words in ({"bounds": {"h": (0, 1000000)}}, {"types": {"h": "integer"}}):
        ((word, value),) = words.items()
        assert f"{word}={value}".replace("'", '"') in str(refusal.value)
        assert len(dpsql.query(frame, sql, epsilon=1, **words)) == 1


def test_the_same_text_is_planned_for_each_declaration():
    frame = pd.DataFrame({"h": decimals(NUMBERS)})
    sql = "SELECT COUNT(*) FROM t WHERE h // 10 = 0"
    assert len(dpsql.query(frame, sql, epsilon=1, types={"h": "real"})) == 1
    with pytest.raises(TypeMismatch):
        dpsql.query(frame, sql, epsilon=1)


@pytest.mark.parametrize("kind", ["uint64", "decimal"])
def test_a_cast_to_uint64_is_exact_or_refused(kind: str):
    asked = session("pandas", t=dpsql.Table(pd.DataFrame({"h": FRAMES[kind](NUMBERS)})))
    sql = "SELECT COUNT(DISTINCT CAST(h AS UBIGINT)) FROM t"
    if kind == "uint64":
        assert answer(asked, sql) == len(set(NUMBERS.tolist()))
    else:
        with pytest.raises(TypeMismatch, match="cannot be computed exactly"):
            asked.query(sql, epsilon=1)


@pytest.mark.parametrize("where", ["pandas", "duckdb", "parquet"])
def test_units_of_other_types_are_compared_as_numbers(where: str, tmp_path: Path):
    """2^53 + 1 is no double: it is not the person whose number a double is."""
    whole, real = [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1, 5], [2.0**53, 2.0**53 + 2, 2.0**62, 5.0, 2.0**63]
    frames = {"t": pd.DataFrame({"pid": whole}), "o": pd.DataFrame({"pid": real})}
    tables = {}
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        source = tmp_path / f"{name}.parquet" if where == "parquet" else frame
        tables[name] = dpsql.Table(source, unit="pid", max_rows=1)
    asked = session(where, **tables)
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN o ON t.pid = o.pid") == 3
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM o)") == 3
