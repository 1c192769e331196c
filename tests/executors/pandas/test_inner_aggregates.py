"""Aggregates inside a unit, against plain Python on exact numbers, bit for bit."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.executors.pandas.units.inner_aggregates import aggregate, renumber
from dpsql.plan.expressions import DTYPES, Vector
from dpsql.schema.columns import Type

LARGEST = 2**62
KINDS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNT_DISTINCT")
Cells = list[Any]


def vector(cells: Cells, kind: Type) -> Vector:
    valid = np.array([cell is not None for cell in cells], dtype=bool)
    values = np.array([0 if cell is None else cell for cell in cells], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)


def cells_of(found: Vector) -> Cells:
    """Cells of a result, None for NULL. Reals as their bits, in which no two differ unseen."""
    values = [cell.hex() if isinstance(cell, float) else cell for cell in found.values.tolist()]
    return [cell if ok else None for cell, ok in zip(values, found.where_valid(), strict=True)]


def real(cell: float) -> str | None:
    return None if math.isnan(cell) else float(cell).hex()


def summed(cells: Cells) -> float:
    """From 0.0, the least first; a NaN, which only inf - inf makes, stays."""
    total = 0.0
    for cell in sorted(cells):
        total += cell
    return total


def held(total: int) -> int:
    return max(-LARGEST, min(LARGEST, total))


def expected(kind: str, cells: Cells, source: Type) -> Any:
    """One group's aggregate."""
    present = [cell for cell in cells if cell is not None]
    if kind == "COUNT":
        return len(present)
    if kind == "COUNT_DISTINCT":
        return len(set(present))
    if not present:
        return None
    if kind == "SUM":
        return real(summed(present)) if source is Type.REAL else held(sum(present))
    if kind == "AVG":
        return real(summed(present) / len(present) if source is Type.REAL else float(sum(present)) / len(present))
    least = min(present) if kind == "MIN" else max(present)
    return real(least + 0.0) if source is Type.REAL else least


def result_of(kind: str, source: Type) -> Type:
    if kind == "AVG":
        return Type.REAL
    if kind in {"MIN", "MAX"} or source is Type.REAL:
        return source if not kind.startswith("COUNT") else Type.INTEGER
    return Type.INTEGER


DRAWS: dict[str, tuple[Type, Callable[[np.random.Generator, int], Cells]]] = {
    "small integers": (Type.INTEGER, lambda rng, rows: rng.integers(-9, 10, rows).tolist()),
    "huge integers": (Type.INTEGER, lambda rng, rows: rng.integers(-LARGEST, LARGEST + 1, rows).tolist()),
    "the largest": (Type.INTEGER, lambda rng, rows: rng.choice([LARGEST, LARGEST, -LARGEST, 1], rows).tolist()),
    "beyond doubles": (Type.INTEGER, lambda rng, rows: rng.integers(2**53, 2**53 + 9, rows).tolist()),
    "reals": (Type.REAL, lambda rng, rows: (rng.normal(size=rows) * 10.0 ** rng.integers(-20, 20, rows)).tolist()),
    "few reals": (Type.REAL, lambda rng, rows: rng.choice([0.1, 0.2, -0.3, 0.0, -0.0], rows).tolist()),
    "infinite": (Type.REAL, lambda rng, rows: rng.choice([math.inf, -math.inf, 1e308, 1.0], rows).tolist()),
    "whole reals": (Type.REAL, lambda rng, rows: rng.integers(-50, 50, rows).astype(float).tolist()),
    "zeros": (Type.REAL, lambda rng, rows: rng.choice([-0.0, 0.0], rows, p=[0.9, 0.1]).tolist()),
    "booleans": (Type.BOOLEAN, lambda rng, rows: (rng.random(rows) < 0.5).tolist()),
    "dates": (Type.DATE, lambda rng, rows: rng.integers(-800_000, 800_000, rows).tolist()),
    "timestamps": (Type.TIMESTAMP, lambda rng, rows: rng.integers(-(10**17), 10**17, rows).tolist()),
}
SHAPES = ((0, 0), (0, 3), (1, 1), (40, 1), (60, 10), (300, 90), (200, 400))


def case(name: str, rows: int, n: int, *, nulls: bool) -> tuple[list[int], Cells, Type]:
    rng = np.random.default_rng([rows, n, len(name), nulls])
    source, draw = DRAWS[name]
    cells = draw(rng, rows)
    groups = (rng.random(rows) ** 2 * n).astype(np.int64).tolist()
    if nulls:
        cells = [None if rng.random() < 0.4 else cell for cell in cells]
        groups = [-1 if rng.random() < 0.1 else group for group in groups]
    return groups, cells, source


def run(kind: str, groups: Sequence[int], n: int, cells: Cells, source: Type) -> Vector:
    codes = np.array(groups, dtype=np.int64)
    return aggregate(kind, codes, n, vector(cells, source), result_of(kind, source))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DRAWS)
def test_every_aggregate_is_that_of_plain_python(name: str, kind: str, nulls: bool):
    if kind in {"SUM", "AVG"} and name in {"dates", "timestamps"}:
        return
    for rows, n in SHAPES:
        groups, cells, source = case(name, rows, n, nulls=nulls)
        found = run(kind, groups, n, cells, source)
        members = [[cell for cell, g in zip(cells, groups, strict=True) if g == group] for group in range(n)]
        assert cells_of(found) == [expected(kind, each, source) for each in members]
        assert found.values.dtype == DTYPES[result_of(kind, source)]
        assert len(found) == n


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["huge integers", "the largest", "reals", "few reals", "whole reals", "infinite", "zeros"]
)
def test_no_order_of_rows_changes_a_bit(name: str, kind: str):
    groups, cells, source = case(name, 400, 60, nulls=True)
    once = cells_of(run(kind, groups, 60, cells, source))
    rng = np.random.default_rng(1)
    for _ in range(20):
        shuffled = rng.permutation(400).tolist()
        again = run(kind, [groups[row] for row in shuffled], 60, [cells[row] for row in shuffled], source)
        assert cells_of(again) == once


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["small integers", "beyond doubles", "reals", "whole reals", "booleans"])
def test_no_other_group_changes_a_bit_of_one(name: str, kind: str):
    groups, cells, source = case(name, 300, 40, nulls=True)
    alone = cells_of(run(kind, groups, 40, cells, source))
    others: Cells = {Type.INTEGER: [LARGEST] * 9, Type.REAL: [1e300] * 9, Type.BOOLEAN: [True] * 9}[source]
    beside = cells_of(run(kind, [*groups, *range(40, 49)], 49, [*cells, *others], source))
    assert beside[:40] == alone


def test_reals_are_added_in_ascending_order():
    """Each of these orders gives another sum."""
    cells = [1e16, 1.0, -1e16, 1.0]
    assert sum(cells) == 1.0
    assert run("SUM", [0, 0, 0, 0], 1, cells, Type.REAL).values.tolist() == [((-1e16 + 1.0) + 1.0) + 1e16]


def test_sums_beyond_64_bits_are_held_and_averages_are_not():
    cells = [LARGEST] * 10 + [-LARGEST] * 7
    total = run("SUM", [0] * 10 + [1] * 7, 2, cells, Type.INTEGER)
    assert total.values.tolist() == [LARGEST, -LARGEST]
    average = run("AVG", [0] * 10 + [1] * 7, 2, cells, Type.INTEGER)
    assert average.values.tolist() == [float(LARGEST), -float(LARGEST)]


@pytest.mark.parametrize("total", [2**62, 2**62 - 1, 2**62 + 1, -(2**62), -(2**62) + 1, -(2**62) - 1, 2**63, 0, -1])
def test_sums_near_the_limit(total: int):
    for parts in ([total // 2, total - total // 2], [LARGEST, total - LARGEST], [-LARGEST, total + LARGEST]):
        if all(abs(part) <= LARGEST for part in parts):
            assert run("SUM", [0, 0], 1, parts, Type.INTEGER).values.tolist() == [held(total)]


def test_what_the_lower_halves_add_up_to_is_carried():
    cells = [50 - LARGEST, -1, -1, -1, -1]
    assert run("SUM", [0] * 5, 1, cells, Type.INTEGER).values.tolist() == [46 - LARGEST]


def test_averages_of_huge_integers_are_the_exact_sum_divided_once():
    rng = np.random.default_rng(2)
    cells = rng.integers(-LARGEST, LARGEST, 100_000).tolist()
    found = run("AVG", [0] * 100_000, 1, cells, Type.INTEGER).values[0]
    assert found == float(sum(cells)) / 100_000
    assert found == pytest.approx(float(Fraction(sum(cells), 100_000)), rel=1e-15)


def test_count_of_rows_and_of_texts():
    groups = np.array([0, 2, 2, -1, 0])
    assert cells_of(aggregate("COUNT", groups, 4, None, Type.INTEGER)) == [2, 0, 2, 0]
    texts = Vector(np.array(["a", "", "b", "b", ""], dtype=object), np.array([True, False, True, True, False]))
    assert cells_of(aggregate("COUNT", groups, 4, texts, Type.INTEGER)) == [1, 0, 1, 0]


def test_distinct_texts_are_counted_by_code():
    codes = np.array([5, 5, 9, -1, 9, 2**31 - 1], dtype=np.int32)
    found = aggregate("COUNT_DISTINCT", np.array([0, 0, 0, 0, 1, 1]), 3, Vector(codes, codes >= 0), Type.INTEGER)
    assert found.valid is None
    assert found.values.tolist() == [2, 2, 0]


def test_a_constant_column():
    fixed = Vector(np.broadcast_to(np.array([0.1]), 5))
    assert aggregate("SUM", np.zeros(5, dtype=np.int64), 1, fixed, Type.REAL).values.tolist() == [summed([0.1] * 5)]
    assert aggregate("COUNT_DISTINCT", np.zeros(5, dtype=np.int64), 1, fixed, Type.INTEGER).values.tolist() == [1]


def test_a_result_of_no_null_says_so():
    assert run("SUM", [0, 1], 2, [1, 2], Type.INTEGER).valid is None
    assert run("SUM", [0, 0], 2, [1, 2], Type.INTEGER).where_valid().tolist() == [True, False]


SIZES = (
    [1],
    [7],
    [50, 3],
    [3, 50, 2],
    [10**6, 10**6],
    [2**62],
    [2**40, 2**40],
    [2**62, 2**62, 2],
    [2**20] * 6,
    [2**61, 1, 0, 3],
)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_renumbering_combinations(sizes: list[int], dtype: type):
    if dtype is np.int32 and max(sizes) > 2**31:
        return
    rng = np.random.default_rng(sizes)
    for rows in (0, 1, 100):
        drawn = [rng.integers(0, size, 5) if size else np.full(5, -1) for size in sizes]
        parts = [np.where(rng.random(rows) < 0.1, -1, rng.choice(each, rows)).astype(dtype) for each in drawn]
        if rng.random() < 0.3:
            parts = [np.abs(part) % max(1, size) for part, size in zip(parts, sizes, strict=True)]
        codes, first_rows, n = renumber(parts, sizes)
        combinations = [None if min(row) < 0 else row for row in zip(*(p.tolist() for p in parts), strict=True)]
        distinct = sorted({row for row in combinations if row is not None})
        assert n == len(first_rows) == len(distinct)
        assert codes.dtype == first_rows.dtype == np.int64
        assert codes.tolist() == [-1 if row is None else distinct.index(row) for row in combinations]
        assert first_rows.tolist() == [combinations.index(row) for row in distinct]


def test_renumbered_rows_are_aggregated_by_group():
    units, keys = np.array([3, 0, 3, -1, 0]), np.array([1, 1, 1, 0, 0])
    codes, first_rows, n = renumber([units, keys], [4, 2])
    assert (units[first_rows].tolist(), keys[first_rows].tolist()) == ([0, 0, 3], [0, 1, 1])
    found = aggregate("SUM", codes, n, Vector(np.array([1, 2, 4, 8, 16])), Type.INTEGER)
    assert found.values.tolist() == [16, 2, 5]
