"""The pandas executor: exact integers, equal to plain Python's, whatever the order of rows and the size of blocks.

One row's values must not change what another row adds, nor the shape, types, warnings and errors of an answer.
"""

from __future__ import annotations

import datetime
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import CellPart, CountRows, ExactPlan, LatticeSum
from dpsql.core.loss import Allowance
from dpsql.core.sensitivity.norms import sensitivity_of
from dpsql.core.sensitivity.row_contributions import analyse
from dpsql.core.unit import Neighbours
from dpsql.errors import MissingBounds
from dpsql.executors.pandas import executor, groups
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.executors.pandas.sums import accumulators
from dpsql.plan.expressions import Column, Fact
from dpsql.release.calibrate import calibrate
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from dpsql.sql.names.catalog import Catalog
from tests.compiled import plan_of
from tests.executors.pandas import reference
from tests.sql.grammar import Grammar
from tests.sql.people import BOUNDS, COLUMNS, KEYS, LARGEST_EPSILON, cells, frame

ONE = Allowance(Fraction(1), Fraction(1, 10**6))
RANDOM_PLANS = 150


def schema_of(data: pd.DataFrame, **said: Any) -> TableSchema:
    return resolve("t", stored_columns(data), Declaration.of(**said))


def release_of(sql: str, schema: TableSchema, neighbours: Neighbours = Neighbours.UNBOUNDED) -> Release:
    query = plan_of(sql, Catalog({"t": schema}))[0].query
    return calibrate(query, analyse(query.plan, neighbours), ONE)


def run(plan: ExactPlan, data: pd.DataFrame, schema: TableSchema) -> reference.Exact:
    return reference.found(PandasExecutor({"t": ColumnStore(data, schema)}).execute(plan))


def rows_of(data: pd.DataFrame) -> list[reference.Row]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells(data)]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return frame()


@pytest.fixture(scope="module")
def schema(people: pd.DataFrame) -> TableSchema:
    return schema_of(people, bounds=BOUNDS, keys=KEYS)


@pytest.fixture(scope="module")
def releases(schema: TableSchema) -> list[tuple[str, Release]]:
    """Random queries that are accepted."""

    def accepted() -> Iterator[tuple[str, Release]]:
        for seed in range(RANDOM_PLANS):
            sql = Grammar(seed).query().ours
            neighbours = Neighbours.BOUNDED if seed % 3 == 0 else Neighbours.UNBOUNDED
            try:
                yield sql, release_of(sql, schema, neighbours)
            except MissingBounds:
                continue

    found = list(accepted())
    assert len(found) > RANDOM_PLANS * 2 / 3
    return found


def test_random_plans_give_the_integers_of_plain_python(
    releases: list[tuple[str, Release]], people: pd.DataFrame, schema: TableSchema
):
    rows = rows_of(people)
    for sql, release in releases:
        assert run(release.exact, people, schema) == reference.execute(release.exact, rows), sql


def test_a_permutation_of_the_rows_gives_the_same_integers(
    releases: list[tuple[str, Release]], people: pd.DataFrame, schema: TableSchema
):
    orders = [people.sample(frac=1, random_state=seed) for seed in range(3)] + [people.iloc[::-1]]
    for sql, release in releases:
        first = run(release.exact, people, schema)
        assert all(run(release.exact, each, schema) == first for each in orders), sql


@pytest.mark.thinned(3)
@pytest.mark.parametrize("block", [1, 7, 59, 60, 61])
def test_the_size_of_a_block_changes_nothing(
    block: int,
    releases: list[tuple[str, Release]],
    people: pd.DataFrame,
    schema: TableSchema,
    monkeypatch: pytest.MonkeyPatch,
):
    some = releases[:: 1 if block > 1 else 4]
    before = [run(release.exact, people, schema) for _sql, release in some]
    monkeypatch.setattr(executor, "BLOCK", block)
    assert [run(release.exact, people, schema) for _sql, release in some] == before


def test_renumbered_groups_are_the_same_groups(
    releases: list[tuple[str, Release]], people: pd.DataFrame, schema: TableSchema, monkeypatch: pytest.MonkeyPatch
):
    occurring = [release for _sql, release in releases if release.exact.keys and not release.exact.every_cell]
    several = "SELECT o, s, u, nb, COUNT(*), SUM(i) FROM t WHERE i > 0 GROUP BY o, s, u, nb"
    occurring.append(release_of(several, schema))
    before = [run(release.exact, people, schema) for release in occurring]
    monkeypatch.setattr(groups, "MOST_DIRECT_CELLS", 0)
    assert [run(release.exact, people, schema) for release in occurring] == before
    assert before[-1] == reference.execute(occurring[-1].exact, rows_of(people))


@pytest.mark.parametrize("limit", [1, 1000, 2**40])
def test_python_integers_take_over_with_the_same_sums(
    limit: int,
    releases: list[tuple[str, Release]],
    people: pd.DataFrame,
    schema: TableSchema,
    monkeypatch: pytest.MonkeyPatch,
):
    some = releases[::5]
    before = [run(release.exact, people, schema) for _sql, release in some]
    monkeypatch.setattr(accumulators, "_LARGEST_ACCUMULATED", limit)
    monkeypatch.setattr(executor, "BLOCK", 16)
    assert [run(release.exact, people, schema) for _sql, release in some] == before


@pytest.mark.parametrize("keys", [(), ("g",)])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_past_64_bits_are_exact(keys: tuple[str, ...], sign: int):
    rows, most = 300_000, 2**45 - 1
    data = pd.DataFrame({"x": np.full(rows, sign * most), "g": np.arange(rows) % 2 == 0})
    data.loc[0, "x"] = 0
    schema = schema_of(data)
    plan = release_of(f"SELECT COUNT(*) FROM t{' GROUP BY g' if keys else ''}", schema).exact
    value = Column("x", Type.INTEGER, Fact())
    part = LatticeSum(value, -most, most, 0, 1.0, -most, most, whole=True)
    real = LatticeSum(value, -most, most, 0, 1.0, -most, most, whole=False)
    found = run(ExactPlan(plan.source, plan.keys, plan.every_cell, (part, real, CountRows(None))), data, schema)
    total = sign * most * (rows - 1)
    if keys:
        half = sign * most * (rows // 2)
        expected: reference.Exact = {
            (True,): (half - sign * most,) * 2 + (rows // 2,),
            (False,): (half,) * 2 + (rows // 2,),
        }
    else:
        expected = {(): (total, total, rows)}
    assert abs(total) > 2**63
    assert found == expected


def test_a_lattice_too_fine_for_64_bits_is_refused():
    for least, most in ((-(2**45), 0), (0, 2**45), (1, 0)):
        with pytest.raises(ValueError, match="too fine"):
            LatticeSum(Column("x", Type.REAL, Fact()), 0, 1, 0, 1.0, least, most, whole=False)


# What one row may add.


def row_by_row(release: Release, data: pd.DataFrame, schema: TableSchema) -> None:
    """Every row alone adds, to every part and every coordinate, what its range and sensitivity say."""
    for place in range(len(data)):
        table = PandasExecutor({"t": ColumnStore(data.iloc[[place]], schema)}).execute(release.exact)
        for part, sums in zip(release.exact.parts, table.parts, strict=True):
            held = part.of if isinstance(part, CellPart) else part
            low, high = (0, 1) if isinstance(held, CountRows) else (min(0, held.least), max(0, held.most))
            assert all(low <= each <= high for each in sums), part
        steps = release.coordinate_steps(table.parts)
        for coordinate, sums in zip(release.coordinates, steps, strict=True):
            if coordinate.noisy:
                most = sensitivity_of(release.lattice.parts, coordinate.terms, release.analysis).l1
                assert sum(abs(int(each)) for each in sums) <= most, coordinate.name


def test_no_row_adds_more_than_the_sensitivity_says(
    releases: list[tuple[str, Release]], people: pd.DataFrame, schema: TableSchema
):
    for sql, release in releases[::3]:
        try:
            row_by_row(release, people.iloc[::6], schema)
        except AssertionError as error:
            pytest.fail(f"{sql}: {error}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(i), COUNT(*) FROM t WHERE i IN (3, 12, 7)",
        "SELECT AVG(i) FROM t WHERE i BETWEEN 0.5 AND 7.25",
        "SELECT AVG(FLOOR(r)), AVG(CEIL(r)), AVG(ROUND(r)) FROM t",
        "SELECT AVG(i % 7), AVG(i // 3), AVG(- i), AVG(COALESCE(n, i)) FROM t",
        "SELECT AVG(i) FROM t WHERE i IN (3.5, 5)",  # once 5 added more than a range of 1.5 allows
        "SELECT SUM(i), COUNT(*) FROM t WHERE i IN (3.5, 5, 9)",
        "SELECT AVG(ROUND(i, 1)), AVG(ROUND(i + 9, -1)), SUM(ROUND(i, 0)), COUNT(*) FROM t",
    ],
)
def test_every_row_of_the_whole_range_adds_at_most_the_sensitivity(sql: str):
    data = pd.DataFrame({"i": np.arange(-12, 23), "r": np.arange(-12, 23) / 4, "n": np.arange(-12, 23)})
    schema = schema_of(data, bounds={"i": (-10, 20), "r": (-2.6, 4.3), "n": (0, 19)})
    for neighbours in Neighbours:
        row_by_row(release_of(sql, schema, neighbours), data, schema)


@pytest.mark.parametrize("whole", [True, False])
def test_the_steps_of_a_value_stay_in_the_range_of_the_part(whole: bool):
    data = pd.DataFrame({"x": np.arange(-5, 30)})
    schema = schema_of(data)
    part = LatticeSum(Column("x", Type.INTEGER, Fact()), 0, 20, 0, 1.0, 0, 20, whole=whole)
    plan = release_of("SELECT COUNT(*) FROM t", schema).exact
    for place in range(len(data)):
        (added,) = run(ExactPlan(plan.source, (), True, (part,)), data.iloc[[place]], schema)[()]
        assert added == min(max(int(data["x"].iloc[place]), 0), 20)


# A cell changed in place between two queries.


def ask(data: Any, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    return list(dpsql.query(data, sql, **{"epsilon": LARGEST_EPSILON, **options}))


def _set_loc(data: pd.DataFrame, value: Any) -> None:
    data.loc[0, "x"] = value


def _set_iloc(data: pd.DataFrame, value: Any) -> None:
    data.iloc[0, 0] = value


def _set_at(data: pd.DataFrame, value: Any) -> None:
    data.at[0, "x"] = value


def _set_iat(data: pd.DataFrame, value: Any) -> None:
    data.iat[0, 0] = value


def _set_mask(data: pd.DataFrame, value: Any) -> None:
    data.loc[data.index == 0, "x"] = value


def _set_column(data: pd.DataFrame, value: Any) -> None:
    column = data["x"].copy()
    column.iloc[0] = value
    data["x"] = column


CHANGES: tuple[Callable[[pd.DataFrame, Any], None], ...] = (
    _set_loc,
    _set_iloc,
    _set_at,
    _set_iat,
    _set_mask,
    _set_column,
)
COLUMNS_TO_CHANGE = {
    "str": (pd.Series(["a", "a", "b"] * 2, dtype="str"), "a", "b"),
    "string": (pd.Series(["a", "a", "b"] * 2, dtype="string"), "a", "b"),
    "category": (pd.Series(["a", "a", "b"] * 2, dtype="category"), "a", "b"),
    "int64": (pd.Series([1, 1, 2] * 2, dtype="int64"), 1, 2),
    "Int64": (pd.Series([1, 1, 2] * 2, dtype="Int64"), 1, 2),
    "float64": (pd.Series([1.5, 1.5, 2.5] * 2), 1.5, 2.5),
    "bool": (pd.Series([True, True, False] * 2), True, False),
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("dtype", COLUMNS_TO_CHANGE)
def test_a_cell_changed_in_place_is_seen_by_query_and_not_by_a_session(
    dtype: str, change: Callable[[pd.DataFrame, Any], None]
):
    column, one, other = COLUMNS_TO_CHANGE[dtype]
    data = pd.DataFrame({"x": column.copy()})
    word = f"'{one}'" if isinstance(one, str) else str(one).upper()
    by_value = f"SELECT COUNT(*) FROM t WHERE x = {word}"
    by_group = "SELECT x, COUNT(*) FROM t GROUP BY x"
    session = dpsql.Session({"t": data}, budget=dpsql.Budget(1e9, 0.1))
    held = {"epsilon": 1e8, "delta": 1e-9}
    expected = [(4,)], [(one, 4), (other, 2)]
    for source in (lambda sql: ask(data, sql, delta=1e-9), lambda sql: list(session.query(sql, **held))):
        assert (source(by_value), sorted(source(by_group), reverse=one is True)) == expected

    change(data, other)
    assert ask(data, by_value) == [(3,)]
    assert sorted(ask(data, by_group, delta=1e-9)) == sorted([(one, 3), (other, 3)])
    assert list(session.query(by_value, **held)) == [(4,)]
    assert sorted(session.query(by_group, **held)) == sorted([(one, 4), (other, 2)])

    change(data, one)  # and back again
    assert ask(data, by_value) == [(4,)]


def test_codes_follow_the_column_and_not_its_name():
    data = pd.DataFrame({"x": pd.Series(["a", "a", "b"], dtype="str"), "y": pd.Series(["b", "b", "b"], dtype="str")})
    sql = "SELECT COUNT(*) FROM t WHERE x = 'a'"
    assert ask(data, sql) == [(2,)]
    data[["x", "y"]] = data[["y", "x"]].to_numpy()
    assert ask(data, sql) == [(0,)]
    data = data.rename(columns={"x": "y", "y": "x"})
    assert ask(data, sql) == [(2,)]
    data.loc[7] = ["c", "a"]
    assert ask(data, sql) == [(3,)]
    del data["x"]
    data.columns = ["x"]
    assert ask(data, sql) == [(0,)]


@pytest.mark.parametrize("dtype", ["category", "str"])
def test_renamed_categories_and_replaced_columns_are_seen(dtype: Any):
    data = pd.DataFrame({"x": pd.Series(["a", "a", "b"], dtype=dtype)})
    sql = "SELECT COUNT(*) FROM t WHERE x = 'a'"
    assert ask(data, sql) == [(2,)]
    if dtype == "category":
        data["x"] = data["x"].cat.rename_categories({"a": "b", "b": "a"})
    else:
        data["x"] = data["x"].replace({"a": "b", "b": "a"})
    assert ask(data, sql) == [(1,)]


def test_declared_facts_do_not_stick_to_a_frame():
    data = pd.DataFrame({"x": pd.Series(["1", "2", None], dtype="str")})
    assert ask(data, "SELECT COUNT(x) FROM t") == [(2,)]
    assert ask(data, "SELECT SUM(x) FROM t", types={"x": "integer"}, bounds={"x": (0, 5)}) == [(3,)]
    assert ask(data, "SELECT COUNT(*) FROM t WHERE x = '1'") == [(1,)]
    table = dpsql.Table(data, keys={"x": ["2"]}, nullable={"x": False})
    assert ask(table, "SELECT x, COUNT(*) FROM t GROUP BY x") == [("2", 2)]  # NULL is the first key
    assert ask(data, "SELECT x, COUNT(*) FROM t GROUP BY x", keys={"x": [None, "1"]}) == [(None, 2), ("1", 1)]


# Columns of objects, and files, with declared types.

FITTING: dict[str, list[tuple[Any, float]]] = {
    "integer": [(2, 2), ("2", 2), (" 2 ", 2), ("-2", -2), ("+2", 2), (2.0, 2), (np.int8(2), 2), (np.float32(2), 2),
    (Decimal(2), 2), (10**30, 9), ("99", 9), (-(10**18), -9), ("2.5", 3), (True, 1),
    (np.True_, 1), (b"2", 2)], "real": [(2, 2), ("2", 2), ("2.5", 2.5), (" 2e0 ", 2),
        (2.5, 2.5), (np.float32(2.5), 2.5), (Decimal("2.5"), 2.5), (math.inf, 9), ("-inf", -9), ("1e400", 9), (1e308,
        9), (-0.0, 0), (True, 1), (b"2", 2)],
    "boolean": [(True, 1), (False, 0), (np.True_, 1), ("true", 1), ("FALSE", 0), (" t ", 1), ("f", 0), (1, 1), (0, 0),
        (1.0, 1),
        ("1", 1), (b"true", 1)],
}  # fmt: skip
UNFIT: dict[str, list[Any]] = {
    "integer": ["", "x", "1_000", "nan", "inf", 2.5, math.nan, math.inf, "0x10", b"x", None],
    "real": ["", "x", "nan", "2,5", math.nan, "0x10", b"x", None],
    "boolean": ["", "x", 2, 0.5, "2", math.nan, b"x", None],
    "text": [math.nan, [1], b"\xff", None],
}
ODD = [
    pd.NA, pd.NaT, pd.Timestamp("2020"), pd.Timedelta("3s"), datetime.date(2020, 1, 1),
    Fraction(5, 2), 3 + 0j,
    [2], (2,), {2}, {"a": 2}, np.array([2]), np.array([1, 2]), object(), int, len, "9" * 5000,
    10**5000,
    Decimal("sNaN"), Decimal("1e9999"), "\ud800", "\0", ..., np.datetime64("NaT"), pd.Interval(0, 1), range(2),
]  # fmt: skip
FAILING = [np.timedelta64(3, "s"), np.timedelta64("NaT"), np.complex128(2 + 1j), np.complex64(2)]
PLAIN = {"integer": "1", "real": "1", "boolean": "true", "text": "a"}


def with_cell(kind: str, cell: Any) -> pd.DataFrame:
    held = np.empty(3, dtype=object)
    held[:] = [PLAIN[kind]] * 3
    held[1] = cell
    return pd.DataFrame({"x": pd.Series(held, dtype=object)})


def counted(kind: str, data: pd.DataFrame) -> tuple[int, float]:
    """How many cells are not NULL, and the sum of their values (for text, how many are 'a')."""
    value = "x = 'a'" if kind == "text" else "x"
    bounds = {"x": (-9, 9)} if kind in ("integer", "real") else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (row,) = ask(data, f"SELECT COUNT(x), SUM({value}) FROM t", types={"x": kind}, bounds=bounds)
    return row[0], round(row[1], 4)


def test_a_cell_that_fits_is_read():
    for kind, fitting in FITTING.items():
        for cell, value in fitting:
            assert counted(kind, with_cell(kind, cell)) == (3, 2 + value), (kind, cell)


def test_a_cell_that_does_not_fit_is_null():
    for kind, unfit in UNFIT.items():
        for cell in unfit:
            assert counted(kind, with_cell(kind, cell)) == (2, 2), (kind, cell)


def test_odd_cells_are_null_or_a_value_and_change_no_other_row():
    for kind in UNFIT:
        for cell in ODD:
            number, total = counted(kind, with_cell(kind, cell))
            assert number in (2, 3), (kind, cell)
            assert -7 <= total <= 11, (kind, cell)


@pytest.mark.parametrize("cell", FAILING, ids=repr)
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_numpy_numbers_that_are_no_real_numbers_are_null(kind: str, cell: Any):
    assert counted(kind, with_cell(kind, cell)) == (2, 2)


CSV = """id,age,member,city
1,20,true,Lyon
2,x,maybe,"Brest"
3,,,
4,1e999,FALSE,Lyon
5,nan,t, Lyon
6,-7,f,NA
7,30.0,0,Lyon
"""


def test_cells_of_a_csv_file(tmp_path: Path):
    (tmp_path / "people.csv").write_text(CSV)
    (tmp_path / "dpsql.toml").write_text(
        f"""
        [budget]
        epsilon = {LARGEST_EPSILON:.0f}
        [tables.people]
        path = "people.csv"
        [tables.people.columns]
        age = {{ bounds = [0, 90] }}
        member = {{ type = "boolean" }}
        city = {{ keys = ["Lyon", "Brest", "NA"] }}
        """
    )
    session = dpsql.Session(schema=dpsql.Schema.from_toml(tmp_path / "dpsql.toml"))
    (row,) = session.query("SELECT COUNT(*), COUNT(age), SUM(age), COUNT(member), SUM(member) FROM people", epsilon=1e8)
    assert row == pytest.approx((7, 4, 20 + 90 + 0 + 30, 5, 2), abs=1e-3)
    by_city = session.query("SELECT city, COUNT(*) FROM people GROUP BY city", epsilon=1e8)
    assert dict(by_city) == {"Lyon": 4, "Brest": 1, "NA": 1}
    assert list(session.query("SELECT COUNT(*) FROM people WHERE id = '1'", epsilon=1e8)) == [(1,)]  # undeclared: text


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64", "UInt64"])
def test_large_integers_are_read_as_they_are(dtype: str):
    data = pd.DataFrame({"x": pd.Series([2**53 + 1, 2**53, 2**62 - 1], dtype=dtype)})
    for value in data["x"]:
        assert ask(data, f"SELECT COUNT(*) FROM t WHERE x = {value}") == [(1,)]


# One row's extremes.

EXTREMES = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 2.0**63, None]
EXTREME_QUERIES = [
    "SELECT COUNT(*), COUNT(r), SUM(r), AVG(r) FROM t",
    "SELECT SUM(r * 2), SUM(r * r), SUM(- r), SUM(ABS(r)), SUM(FLOOR(r)), SUM(CEIL(r)) FROM t",
    "SELECT SUM(CLAMP(u, -1, 1)), COUNT(u + u), COUNT(u * 0), COUNT(u - u), COUNT(u / u), COUNT(u % 2) FROM t",
    "SELECT SUM(CLAMP(u * 1e308, -1, 1)), SUM(CLAMP(u // 0.1, -1, 1)), COUNT(FLOOR(u)), COUNT(u IN (1, 2)) FROM t",
    "SELECT COUNT(*) FROM t WHERE u > 0 OR u / 0 > 1 OR u * u > 1e308",
    "SELECT COUNT(*) FROM t WHERE u BETWEEN -1 AND 1 AND NOT u IN (0.5)",
    "SELECT b, COUNT(*), SUM(r), AVG(r) FROM t GROUP BY b",
    "SELECT SUM(COALESCE(CLAMP(u, -3, 1), 0)), SUM(GREATEST(LEAST(u, 5), -5)), COUNT(NULLIF(u, 0)) FROM t",
    "SELECT b, AVG(u > r) AS x FROM t GROUP BY b HAVING COUNT(*) > -1000 ORDER BY x DESC LIMIT 3",
]
BOUNDED_R = {"r": (-10, 10)}


def answer_of(data: pd.DataFrame, sql: str) -> tuple[Any, ...]:
    """All of an answer that must not depend on one row: shape, names, dtypes, and that nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dpsql.query(data, sql, epsilon=1, bounds=BOUNDED_R).df
    return found.shape, list(found.columns), [str(each) for each in found.dtypes]


@pytest.mark.parametrize("sql", EXTREME_QUERIES)
def test_one_row_changes_neither_shape_nor_types_nor_warnings(sql: str):
    rows = 40
    data = pd.DataFrame(
        {"r": np.linspace(-9, 9, rows), "u": np.linspace(-9, 9, rows), "b": [True, False] * (rows // 2)}
    )
    expected = answer_of(data, sql)
    for extreme in EXTREMES:
        other = data.copy()
        other.loc[3, ["r", "u"]] = extreme
        assert [str(each) for each in other.dtypes] == ["float64", "float64", "bool"]
        assert answer_of(other, sql) == expected, extreme


def test_rounding_an_infinite_cell_does_not_warn():
    for extreme in EXTREMES:
        data = pd.DataFrame({"u": [1.5, extreme, 2.5], "r": [0.0, 0.0, 0.0]}, dtype="float64")
        answer_of(data, "SELECT COUNT(*), COUNT(ROUND(u)), COUNT(ROUND(u, 1)) FROM t WHERE ROUND(u) IS NOT NULL")


def test_a_long_double_beyond_floats_does_not_warn():
    data = pd.DataFrame({"u": np.array([1, "1e4000"], dtype=np.longdouble), "r": [0.0, 0.0]})
    answer_of(data, "SELECT SUM(CLAMP(u, 0, 1)) FROM t")


def test_an_extreme_row_adds_its_clipped_value_and_no_other_row_changes():
    data = pd.DataFrame({"r": [1.0, 2.0, 3.0]})
    for extreme, added, present in [
        (math.inf, 10, 1),
        (-math.inf, -10, 1),
        (1e308, 10, 1),
        (math.nan, 0, 0),
        (None, 0, 0),
    ]:
        other = pd.DataFrame({"r": [1.0, 2.0, extreme]}, dtype="float64")
        (row,) = ask(other, "SELECT SUM(r), COUNT(r), COUNT(*) FROM t", bounds=BOUNDED_R)
        assert row == pytest.approx((3 + added, 2 + present, 3), abs=1e-4)
    assert ask(data, "SELECT COUNT(r) FROM t") == [(3,)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_the_two_zeros_are_one_group_shown_alike(order: Sequence[int]):
    zeros = np.array([0.0, -0.0, -0.0, 0.0])[list(order)]
    data = pd.DataFrame({"z": zeros, "n": pd.array(zeros, dtype="Float64")})
    for key in ("z", "n"):
        ((value, count),) = ask(data, f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", delta=1e-9)
        assert count == 4
        assert math.copysign(1, value) == 1
        assert ask(data, f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", keys={key: [0, 1]}) == [(0, 4), (1, 0)]
        assert ask(data, f"SELECT COUNT(*) FROM t WHERE {key} = 0 AND {key} IN (0) AND {key} >= -0.0") == [(4,)]


STRANGE = ["select", "Order By", "a b", 'say "x"', "it's", "é😀", "x;--", "1", "", "*", "COUNT(*)", "a.b", "NULL", "ſ",
"tab\t", "line\nend", "%s", "{0}", "\\", "\u202e"]  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_columns_with_strange_names(name: str):
    data = pd.DataFrame({name: [1, 2, 2], "other": ["a", "a", "b"]})
    quoted = '"' + name.replace('"', '""') + '"'
    if name:
        assert ask(data, f"SELECT SUM({quoted}) FROM t", bounds={name: (0, 5)}) == [(5,)]
        result = dpsql.query(
            data, f"SELECT {quoted}, COUNT(*) AS {quoted} FROM t GROUP BY {quoted}", epsilon=1e9, keys={name: [1, 2]}
        )
        assert list(result) == [(1, 1), (2, 2)]
        assert list(result.df.columns) == [name, f"{name}_1"]
        assert str(result)
        assert result._repr_html_()
        assert ask(data, f"SELECT COUNT(*) FROM t WHERE {quoted} = 2 AND t.{quoted} > 0") == [(2,)]
    assert ask(data, "SELECT COUNT(*) FROM t WHERE other = 'a'") == [(2,)]


def test_text_is_compared_as_it_is():
    texts = ["a", "A", "a ", "a\0", "a\0b", "é", "e\u0301", "", " ", "nan", "None", "NULL", "\\ud800", "😀"]
    for dtype in ("str", object, "category"):
        data = pd.DataFrame({"x": pd.Series(texts * 2, dtype=object).astype(dtype)})
        found = ask(data, "SELECT x, COUNT(*) FROM t GROUP BY x", delta=1e-9, types={"x": "text"})
        assert dict(found) == dict.fromkeys(texts, 2)
        assert [text for text, _count in found] == sorted(texts)


def test_a_lone_surrogate_is_no_text():
    texts = ["\ud800", "\\ud800", "a", "a\udfff"] * 2
    plain = pd.Series(texts, dtype=object)
    for column in (plain, pd.Categorical.from_codes([0, 1, 2, 3] * 2, pd.Index(texts[:4], dtype=object))):
        data = pd.DataFrame({"x": column})
        found = ask(data, "SELECT x, COUNT(*) FROM t GROUP BY x", delta=1e-9, types={"x": "text"})
        assert found == [("\\ud800", 2), ("a", 2), (None, 4)]


def test_many_random_frames_against_plain_python():
    """Other sizes and other values than the one frame above, no rows among them."""
    rng = random.Random(5)
    for seed in range(12):
        data = frame(rows=rng.choice([0, 1, 2, 5, 33]), seed=seed)
        schema = schema_of(data, bounds=BOUNDS, keys=KEYS)
        rows = rows_of(data)
        for each in range(12):
            sql = Grammar(300 + 20 * seed + each).query().ours
            try:
                release = release_of(sql, schema)
            except MissingBounds:
                continue
            assert run(release.exact, data, schema) == reference.execute(release.exact, rows), sql
