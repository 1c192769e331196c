"""Joins by codes, against loops in plain Python and against DuckDB."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.encoding import EncodedColumn
from dpsql.executors.pandas.joins.joining import KeyColumn, Runs, key_of, lookup, match_codes, matched
from dpsql.executors.pandas.sums.ranking import Numbers, combine, dense_ranks, stable_order
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import ColumnSchema, TableSchema, Type

Cells = Sequence[Any]
BOUNDARIES = [0, 1, -1, 2**53 - 1, 2**53, 2**53 + 1, 2**62 - 1, 2**62, -(2**53) - 1, -(2**62)]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0**53, 2.0**53 + 2, 2.0**62, -(2.0**62), 2.0**63, -(2.0**63), 1e300, math.inf]


def expand(codes_left: Numbers, codes_right: Numbers) -> tuple[Numbers, Numbers]:
    """The positions of all pairs of rows with the same code."""
    return Runs(codes_left, codes_right).expand(0, len(codes_left))


def plain(cells: Cells, dtype: Any) -> KeyColumn:
    """A key of cells as they are, None being NULL."""
    valid = np.array([cell is not None for cell in cells], dtype=bool)
    values = np.array([dtype() if cell is None else cell for cell in cells], dtype=dtype)
    return KeyColumn(Vector(values, None if valid.all() else valid))


def coded(cells: Cells, dtype: Any, rng: np.random.Generator) -> KeyColumn:
    """The same as codes into a dictionary where every value stands twice, and NULL too, in any order."""
    entries = 2 * list(dict.fromkeys(cells)) + [None]
    entries = [entries[place] for place in rng.permutation(len(entries))]
    places = {cell: [place for place, entry in enumerate(entries) if entry == cell] for cell in cells}
    codes = [-1 if cell is None and rng.random() < 0.5 else rng.choice(places[cell]) for cell in cells]
    return KeyColumn(plain(entries, dtype).values, np.array(codes, dtype=np.int32))


def text_key(cells: Cells, rng: np.random.Generator) -> KeyColumn:
    key = coded(cells, np.object_, rng)
    values = np.array([cell if isinstance(cell, str) else "" for cell in key.values.values], dtype=object)
    return KeyColumn(Vector(values, key.values.valid), key.codes)


def same(one: Any, other: Any) -> bool:
    """SQL's equality of two cells, which for numbers is Python's: exact between int and float."""
    return one is not None and other is not None and one == other


def same_row(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(same(*pair) for pair in zip(one, other, strict=True))


def first_match(
    left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], order: Sequence[int] | None = None
) -> list[int]:
    ranks = order if order is not None else [0] * len(right)
    found = [[place for place, other in enumerate(right) if same_row(row, other)] for row in left]
    return [min(places, key=lambda place: (ranks[place], place), default=-1) for places in found]


def all_pairs(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    return [(i, j) for i, row in enumerate(left) for j, other in enumerate(right) if same_row(row, other)]


def pick(rng: np.random.Generator, cells: Cells, rows: int) -> list[Any]:
    return [cells[place] for place in rng.integers(0, len(cells), rows)]


def check(left: list[KeyColumn], right: list[KeyColumn], rows: list[Any], others: list[Any], order: Any) -> None:
    """All four kernels against loops over the same rows."""
    assert lookup(left, right).tolist() == first_match(rows, others)
    assert lookup(left, right, order).tolist() == first_match(rows, others, order.tolist())
    codes_left, codes_right = match_codes(left, right)
    assert codes_left.dtype == codes_right.dtype == np.int64
    both, cells = [*codes_left.tolist(), *codes_right.tolist()], [*rows, *others]
    for place, (code, row) in enumerate(zip(both, cells, strict=True)):
        assert code == -1 if None in row else code >= 0 or place < len(rows)
        for other_code, other in zip(codes_right.tolist(), others, strict=True):
            assert (code == other_code != -1) == same_row(row, other)
    left_rows, right_rows = expand(codes_left, codes_right)
    assert left_rows.dtype == right_rows.dtype == np.int64
    assert list(zip(left_rows.tolist(), right_rows.tolist(), strict=True)) == all_pairs(rows, others)
    assert matched(codes_left, codes_right).tolist() == [place >= 0 for place in first_match(rows, others)]


DOMAINS: dict[str, tuple[Any, Cells]] = {
    "integers": (np.int64, [None, *range(-5, 12)]),
    "far integers": (np.int64, [None, *BOUNDARIES]),
    "whole range": (np.int64, [None, 2**63 - 1, -(2**63), 0, 7]),
    "reals": (np.float64, [None, *REALS, -math.inf, 5e-324]),
    "booleans": (np.bool_, [None, True, False]),
}


@pytest.mark.parametrize("other", DOMAINS)
@pytest.mark.parametrize("name", DOMAINS)
def test_numbers_of_all_kinds_meet_exactly(name: str, other: str):
    rng = np.random.default_rng([len(name), len(other)])
    for trial in range(12):
        (dtype, cells), (other_dtype, other_cells) = DOMAINS[name], DOMAINS[other]
        if trial % 3 == 0:  # without NULL
            cells, other_cells = cells[1:], other_cells[1:]
        one, two = pick(rng, cells, rng.integers(0, 30)), pick(rng, other_cells, rng.integers(0, 30))
        left = coded(one, dtype, rng) if trial % 2 else plain(one, dtype)
        right = coded(two, other_dtype, rng) if trial % 4 > 1 else plain(two, other_dtype)
        order = rng.integers(0, 5, len(two))
        check([left], [right], [(cell,) for cell in one], [(cell,) for cell in two], order)


def test_text_keys_whose_dictionaries_repeat_values():
    rng = np.random.default_rng(1)
    cells = [None, "", "a", "A", "a ", "a\0b", "a\0c", "é", "e\u0301", "\\ud800", "𝄞"]
    for _ in range(30):
        one, two = pick(rng, cells, rng.integers(0, 30)), pick(rng, cells[: rng.integers(2, 11)], rng.integers(0, 30))
        order = rng.permutation(len(two))
        left, right = text_key(one, rng), text_key(two, rng)
        check([left], [right], [(cell,) for cell in one], [(cell,) for cell in two], order)


def test_composite_keys():
    rng = np.random.default_rng(2)
    names = [*DOMAINS, "texts"]
    for trial in range(60):
        left, right, one, two = [], [], [], []
        rows, others = rng.integers(0, 25, 2)
        for name in rng.choice(names, rng.integers(2, 5)):
            dtype, cells = DOMAINS[name] if name != "texts" else (np.object_, [None, "x", "y"])
            few = cells[: 2 + trial % 3]
            one.append(pick(rng, few, rows))
            two.append(pick(rng, few, others))
            if name == "texts":
                left.append(text_key(one[-1], rng))
                right.append(text_key(two[-1], rng))
            else:
                left.append(plain(one[-1], dtype))
                right.append(coded(two[-1], dtype, rng))
        order = rng.integers(0, 3, others)
        check(left, right, list(zip(*one, strict=True)), list(zip(*two, strict=True)), order)


def test_keys_that_one_column_tells_apart():
    """Where a column of the right side determines the others, and where all but one row of it does."""
    rng = np.random.default_rng(5)
    for trial in range(40):
        rows, others = rng.integers(0, 40, 2)
        keys = rng.permutation(60)[:others] if trial % 2 else rng.integers(0, 30, others)
        people = {key: int(person) for key, person in zip(range(60), rng.integers(-3, 4, 60), strict=True)}
        two = [[people[key] for key in keys.tolist()], keys.tolist()]
        if trial % 5 == 0 and others:
            two[0][0] += 1
        one = [pick(rng, [None, *range(-3, 5)], rows), pick(rng, [None, *range(-5, 70)], rows)]
        if trial % 3 == 0 and others:
            two[trial % 2][-1] = None
        by = slice(None, None, 1 if trial % 4 else -1)
        left, right = ([plain(cells, np.int64) for cells in side[by]] for side in (one, two))
        order = rng.integers(0, 3, others)
        check(left, right, list(zip(*one[by], strict=True)), list(zip(*two[by], strict=True)), order)


def test_tables_of_the_few_that_are_asked_for():
    """Few rows beside many whose keys lie far apart, on either side."""
    rng = np.random.default_rng(6)
    keys = rng.integers(-(2**62), 2**62, 500)
    few = [*keys[[3, 3, 9]].tolist(), None, 5]
    many = [*keys.tolist(), None, keys[9]]
    order = rng.integers(0, 3, len(many))
    check([plain(few, np.int64)], [plain(many, np.int64)], [(cell,) for cell in few], [(cell,) for cell in many], order)
    check(
        [plain(many, np.int64)],
        [plain(few, np.int64)],
        [(cell,) for cell in many],
        [(cell,) for cell in few],
        order[:5],
    )


def test_combinations_never_overflow():
    rng = np.random.default_rng(3)
    parts = [rng.integers(-(2**62), 2**62, 6) for _ in range(7)]
    rows = rng.integers(0, 6, (7, 40))
    one = [part[row[:25]].tolist() for part, row in zip(parts, rows, strict=True)]
    two = [part[row[25:]].tolist() for part, row in zip(parts, rows, strict=True)]
    for column in range(1, 7):  # rows that are the same in all columns but the last
        one[column - 1][:5] = two[column - 1][:5] = parts[column - 1][:5].tolist()
    left, right = ([plain(cells, np.int64) for cells in side] for side in (one, two))
    check(left, right, list(zip(*one, strict=True)), list(zip(*two, strict=True)), np.zeros(15, dtype=np.int64))
    codes, size = combine(np.array([0, 2**40, 5]), 2**41, np.array([2**40, 0, 5]), 2**41)
    assert size <= 2**62
    assert len(set(codes.tolist())) == 3


def test_integers_and_reals_are_told_apart_beyond_the_integers_of_a_double():
    right = plain([2.0**53, 0.5, 2.0**63, -0.0, math.inf], np.float64)
    left = plain([2**53 + 1, 2**53, 0, 2**63 - 1, None], np.int64)
    assert lookup([left], [right]).tolist() == [-1, 0, 3, -1, -1]
    assert lookup([right], [left]).tolist() == [1, -1, -1, 2, -1]


def test_a_text_equals_no_number():
    left, right = plain([1, 2], np.int64), plain(["1", "2"], np.object_)
    assert lookup([left], [right]).tolist() == lookup([right], [left]).tolist() == [-1, -1]
    assert match_codes([left], [right])[0].tolist() == [-1, -1]


def test_of_equal_rows_the_first_in_order_is_taken():
    right = plain([7, 7, None, 7, 2**40, 2**40], np.int64)
    left = plain([7, 2**40, None], np.int64)
    near = plain([7, 7, None, 7], np.int64)
    assert lookup([left], [right]).tolist() == [0, 4, -1]
    assert lookup([left], [right], np.array([2, 1, 0, 1, 5, 4])).tolist() == [1, 5, -1]
    assert lookup([left], [near], np.array([2, 1, 0, 1])).tolist() == [1, -1, -1]


def test_empty_sides_and_sides_of_nothing_but_null():
    none, null, some = (plain(cells, np.int64) for cells in ([], [None, None], [1, 2, 2]))
    for left in (none, null, some):
        for right in (none, null, some):
            expected = [0, 1, 1] if left is right is some else [-1] * len(left.values)
            assert lookup([left], [right]).tolist() == expected
            assert lookup([left, left], [right, right]).tolist() == expected
            codes = match_codes([left], [right])
            assert matched(*codes).tolist() == [place >= 0 for place in expected]
            assert len(expand(*codes)[0]) == (5 if left is right is some else 0)


def test_positions_take_four_bytes():
    assert lookup([plain([1], np.int64)], [plain([1], np.int64)]).dtype == np.int32
    assert lookup([plain([1], np.int64)], [plain([1, 2**50], np.int64)]).dtype == np.int32


def test_a_constant_column_is_a_key():
    held = KeyColumn(Vector(np.broadcast_to(np.array([3], dtype=np.int64), 4)))
    reals = KeyColumn(Vector(np.broadcast_to(np.array([3.0]), 4)))
    right = plain([1, 3], np.int64)
    assert lookup([held], [right]).tolist() == lookup([reals], [right]).tolist() == [1, 1, 1, 1]
    codes_left, codes_right = match_codes([held, reals], [right, right])
    assert codes_left.tolist() == [codes_right[1]] * 4


def test_blocks_meet_at_their_edges():
    rng = np.random.default_rng(4)
    values = rng.integers(-10, 200_010, 200_000)
    keys = rng.permutation(200_000)
    valid = values % 7 != 0
    found = lookup([KeyColumn(Vector(values, valid))], [plain(keys, np.int64)])
    places = {key: place for place, key in enumerate(keys.tolist())}
    assert found.tolist() == [places.get(v, -1) if ok else -1 for v, ok in zip(values.tolist(), valid, strict=True)]


def store(cells: Cells, nullable: bool) -> ColumnStore:
    frame = pd.DataFrame({"k": pd.Series(cells, dtype=object)})
    return ColumnStore(frame, TableSchema("t", (ColumnSchema("k", Type.TEXT, nullable=nullable),)))


def test_the_columns_of_a_store_join():
    left, right = store(["a", None, "b", "c", 5], True).encoded("k"), store(["c", "a", None, "a"], True).encoded("k")
    assert lookup([key_of(left)], [key_of(right)]).tolist() == [1, -1, -1, 0, -1]


def test_null_where_the_owner_declared_none_is_the_default():
    left, right = store(["a", None, "b"], False).encoded("k"), store(["b", "", "a"], True).encoded("k")
    assert lookup([key_of(left)], [key_of(right)]).tolist() == [2, 1, 0]
    assert lookup([key_of(right)], [key_of(left)]).tolist() == [2, 1, 0]
    only = EncodedColumn(np.array([-1, -1], dtype=np.int32), Vector(np.array([0]), np.array([False])), True)
    assert lookup([key_of(only)], [plain([0], np.int64)]).tolist() == [-1, -1]


@pytest.mark.parametrize("size", [1, 2, 300, 2**16, 2**16 + 1, 2**33, 2**62])
def test_orders_and_ranks(size: int):
    rng = np.random.default_rng(size)
    numbers = rng.integers(0, size, 2_000)
    numbers[1_000:] = rng.choice(numbers[:1_000], 1_000)
    assert stable_order(numbers, size).tolist() == sorted(range(2_000), key=lambda place: numbers[place])
    for each in (numbers, numbers - size // 2, numbers * (2**62 // size)):
        ranks, firsts = dense_ranks(each)
        distinct = sorted(set(each.tolist()))
        assert ranks.tolist() == [distinct.index(number) for number in each.tolist()]
        assert firsts.tolist() == [each.tolist().index(number) for number in distinct]


@pytest.fixture
def sides() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(5)

    def side(rows: int) -> pd.DataFrame:
        text = np.array(["red", "green", "blue", "", "grün", "a\tb"], dtype=object)[rng.integers(0, 6, rows)]
        text[rng.random(rows) < 0.1] = None
        integer = pd.array(rng.integers(-20, 20, rows), dtype="Int64")
        integer[rng.random(rows) < 0.1] = pd.NA
        real = rng.integers(-10, 10, rows) / 2 * rng.choice([1.0, -1.0], rows)
        day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, rows), unit="D")
        return pd.DataFrame({"row": np.arange(rows), "t": text, "i": integer, "x": real, "d": day})

    return side(400), side(150)


def keys(frame: pd.DataFrame, names: str) -> list[KeyColumn]:
    kinds = {"t": Type.TEXT, "i": Type.INTEGER, "x": Type.REAL, "d": Type.TIMESTAMP, "row": Type.INTEGER}
    columns = tuple(ColumnSchema(name, kinds[name], nullable=name in {"t", "i"}) for name in frame.columns)
    held = ColumnStore(frame, TableSchema("t", columns))
    rows = len(frame)
    return [key_of(held.encoded(n)) if n == "t" else KeyColumn(held.reader(n)(0, rows)) for n in names]


@pytest.mark.parametrize("names", ["t", "i", "x", "d", "ti", "tix", "dt"])
def test_duckdb_joins_alike(sides: tuple[pd.DataFrame, pd.DataFrame], names: str):
    left, right = sides
    with duckdb.connect() as con:
        con.register("l", left)
        con.register("r", right)
        on = " AND ".join(f"l.{name} = r.{name}" for name in names)
        pairs = con.sql(f"SELECT l.row, r.row FROM l JOIN r ON {on} ORDER BY ALL").fetchall()
        first = con.sql(f"SELECT MIN(r.row) FROM l LEFT JOIN r ON {on} GROUP BY l.row ORDER BY l.row").fetchall()
        semi = con.sql(f"SELECT row FROM l WHERE EXISTS (FROM r WHERE {on}) ORDER BY row").fetchall()
    one, two = keys(left, names), keys(right, names)
    codes = match_codes(one, two)
    assert list(zip(*(rows.tolist() for rows in expand(*codes)), strict=True)) == pairs
    assert lookup(one, two).tolist() == [-1 if row is None else row for (row,) in first]
    assert np.flatnonzero(matched(*codes)).tolist() == [row for (row,) in semi]


def test_duckdb_meets_integers_and_reals_alike_where_doubles_hold_them(sides: tuple[pd.DataFrame, pd.DataFrame]):
    left, right = sides
    with duckdb.connect() as con:
        con.register("l", left)
        con.register("r", right)
        pairs = con.sql("SELECT l.row, r.row FROM l JOIN r ON l.i = r.x ORDER BY ALL").fetchall()
    found = expand(*match_codes(keys(left, "i"), keys(right, "x")))
    assert list(zip(*(rows.tolist() for rows in found), strict=True)) == pairs


def test_python_compares_numbers_exactly():
    """What the reference above rests on."""
    for whole in BOUNDARIES:
        for real in REALS:
            assert (whole == real) == (math.isfinite(real) and Fraction(whole) == Fraction(real))
