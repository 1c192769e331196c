"""Bounding one unit's rows: against plain Python, for every key, whatever other units do and in any order of rows."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsql
from dpsql.core.unit import ContributionBound
from dpsql.executors.keyed_hash import PRIME, HashKey, limbs_of
from dpsql.executors.pandas import hashing
from dpsql.executors.pandas.hashing import HashedRows, numbers_of, started
from dpsql.executors.pandas.units import bounding
from dpsql.executors.pandas.units.bounding import distinct_pairs, keep_groups, keep_rows, pair_codes
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type

MANY = 10**9
Row = tuple[int, int, int]
"""Unit, group, value."""


def key_of(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def digest(key: int, *cells: int) -> int:
    return int.from_bytes(hashlib.blake2b(repr((key, cells)).encode(), digest_size=8).digest(), "little")


SHAPES: dict[str, Callable[[int], int]] = {
    "as they are": lambda number: number,
    "same first bits": lambda number: number >> 60,
    "same last bits": lambda number: number >> 60 << 60,
    "the ends": lambda number: (2**64 - 1) * (number & 1),
    "all the same": lambda _number: 2**64 - 1,
}
"""What accidents can make of hashes."""


@dataclass
class Case:
    """Rows of units in groups, and their hashes, by a key and of a shape; what is asked of them is written down."""

    rows: list[Row]
    key: int = 0
    shape: str = "as they are"

    def __post_init__(self) -> None:
        self.asked: list[int] = []
        self.units = np.array([row[0] for row in self.rows], dtype=np.int64)
        self.groups = np.array([row[1] for row in self.rows], dtype=np.int64)
        self.n_units = int(self.units.max(initial=-1)) + 1

    def row_hash(self, place: int) -> int:
        return SHAPES[self.shape](digest(self.key, *self.rows[place]))

    def group_hash(self, place: int) -> int:
        return SHAPES[self.shape](digest(self.key, *self.rows[place][:2]))

    def hashes(self, rows: Any) -> Any:
        assert rows.dtype == np.int64
        self.asked += rows.tolist()
        found = [(self.row_hash(place), self.group_hash(place)) for place in rows.tolist()]
        pairs = np.array(found, dtype=np.uint64).reshape(len(rows), 2)
        return pairs[:, 0], pairs[:, 1]

    def kept(self, bound: ContributionBound, *, grouped: bool = True) -> list[int]:
        mask = keep_rows(self.units, self.groups if grouped else None, bound, self.hashes, self.n_units)
        return places(mask, len(self.rows))

    def kept_groups(self, most: int) -> list[int]:
        return places(keep_groups(self.units, self.groups, most, self.hashes, self.n_units), len(self.rows))


def places(mask: Any, size: int) -> list[int]:
    assert mask is None or (mask.shape == (size,) and mask.dtype == bool and not mask.all())
    return list(range(size)) if mask is None else np.flatnonzero(mask).tolist()


def by(keys: Callable[[int], Any], rows: Iterable[int]) -> list[list[int]]:
    found: dict[Any, list[int]] = defaultdict(list)
    for place in rows:
        found[keys(place)].append(place)
    return list(found.values())


def slow_groups(case: Case, most: int, rows: Iterable[int]) -> list[int]:
    """Of some rows, those in at most so many groups of each unit."""
    kept = []
    for unit in by(lambda place: case.rows[place][0], rows):
        groups = by(lambda place: case.rows[place][1], unit)
        groups.sort(key=lambda group: (case.group_hash(group[0]), group[0]))
        kept += chain.from_iterable(groups[:most])
    return sorted(kept)


def slow_rows(case: Case, most: int, rows: Iterable[int], cells: int) -> list[int]:
    """Of some rows, at most so many of each unit (the first cell of a row), or in each group of it (the first two)."""
    buckets = by(lambda place: case.rows[place][:cells], rows)
    for bucket in buckets:
        bucket.sort(key=lambda place: (case.row_hash(place), place))
    return sorted(chain.from_iterable(bucket[:most] for bucket in buckets))


def slow(case: Case, bound: ContributionBound, *, grouped: bool = True) -> list[int]:
    kept = list(range(len(case.rows)))
    if not grouped:
        return slow_rows(case, min(bound.rows, bound.per_group), kept, 1)
    if bound.groups < bound.rows:
        kept = slow_groups(case, bound.groups, kept)
    if bound.per_group < bound.rows:
        kept = slow_rows(case, bound.per_group, kept, 2)
    return slow_rows(case, bound.rows, kept, 1)


def within(case: Case, kept: list[int], bound: ContributionBound) -> bool:
    units = by(lambda place: case.rows[place][0], kept)
    pairs = by(lambda place: case.rows[place][:2], kept)
    groups = Counter(case.rows[pair[0]][0] for pair in pairs)
    return (
        all(len(unit) <= bound.rows for unit in units)
        and all(len(pair) <= bound.per_group for pair in pairs)
        and all(number <= bound.groups for number in groups.values())
    )


LIMIT = st.one_of(st.integers(1, 9), st.just(MANY))
BOUNDS = st.builds(ContributionBound, LIMIT, LIMIT, LIMIT)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), max_size=40)
CASES = st.builds(Case, ROWS, st.integers(0, 10**6), st.sampled_from(list(SHAPES)))


def random_case(seed: int, rows: int, units: int, groups: int, *, shape: str = "as they are") -> Case:
    drawn = np.random.default_rng(seed)
    columns = [drawn.integers(0, size, rows).tolist() for size in (units, groups, 50)]
    return Case(list(zip(*columns, strict=True)), seed, shape)


class TestAgainstPlainPython:
    @given(CASES, BOUNDS)
    def test_rows(self, case: Case, bound: ContributionBound):
        kept = case.kept(bound)
        assert kept == slow(case, bound)
        assert within(case, kept, bound)

    @given(CASES, BOUNDS)
    def test_rows_of_one_group(self, case: Case, bound: ContributionBound):
        assert case.kept(bound, grouped=False) == slow(case, bound, grouped=False)

    @given(CASES, LIMIT)
    def test_groups(self, case: Case, most: int):
        assert case.kept_groups(most) == slow_groups(case, most, range(len(case.rows)))

    @pytest.mark.parametrize("shape", list(SHAPES))
    @pytest.mark.parametrize(
        "bound",
        [
            ContributionBound(4, MANY, MANY),
            ContributionBound(20, MANY, MANY),
            ContributionBound(12, 5, 3),
            ContributionBound(MANY, 2, 7),
            ContributionBound(MANY, 40, 1),
        ],
    )
    def test_thousands_of_rows(self, shape: str, bound: ContributionBound):
        case = random_case(1, 6_000, 100, 30, shape=shape)
        assert case.kept(bound) == slow(case, bound)
        assert case.kept(bound, grouped=False) == slow(case, bound, grouped=False)

    @pytest.mark.parametrize("most", [1, 2, 4, 5, 100, 1_999, 2_000, MANY])
    def test_one_unit_with_all_rows(self, most: int):
        case = random_case(2, 2_000, 1, 1)
        bound = ContributionBound(most, MANY, MANY)
        assert case.kept(bound) == slow(case, bound)
        assert len(case.kept(bound)) == min(most, 2_000)

    def test_no_rows(self):
        case = Case([])
        assert case.kept(ContributionBound(1, 1, 1)) == []
        assert case.kept(ContributionBound(2, 1, 1), grouped=False) == []
        assert keep_groups(case.units, case.groups, 1, case.hashes, 10**15) is None

    @pytest.mark.parametrize("scale", [1, 1_000, 50_000, 10**6, 2**54])
    @pytest.mark.parametrize("bound", [ContributionBound(MANY, 2, 1), ContributionBound(9, 7, 2)])
    def test_unit_codes_far_apart(self, scale: int, bound: ContributionBound):
        near = random_case(3, 3_000, 100, 20)
        far = random_case(3, 3_000, 100, 20)
        far.units, far.n_units = far.units * scale, far.n_units * scale
        assert far.kept(bound) == near.kept(bound)
        far.groups = far.groups * scale
        assert far.kept(bound) == near.kept(bound)
        assert far.kept_groups(3) == near.kept_groups(3)

    def test_groups_are_nothing_to_choose_where_there_is_one(self):
        case = random_case(4, 50, 3, 1)
        assert keep_groups(case.units, None, 1, case.hashes, 3) is None


class TestStability:
    """The kept rows of a unit are a function of that unit's rows."""

    @given(CASES, BOUNDS, st.integers(0, 3))
    def test_without_a_unit_the_others_keep_their_rows(self, case: Case, bound: ContributionBound, unit: int):
        rest = [place for place, row in enumerate(case.rows) if row[0] != unit]
        fewer = Case([case.rows[place] for place in rest], case.key, case.shape)
        wanted = [place for place in case.kept(bound) if case.rows[place][0] != unit]
        assert [rest[place] for place in fewer.kept(bound)] == wanted
        wanted = [place for place in case.kept_groups(bound.groups) if case.rows[place][0] != unit]
        assert [rest[place] for place in fewer.kept_groups(bound.groups)] == wanted

    @given(CASES, BOUNDS, st.permutations(range(4)), st.permutations(range(5)))
    def test_codes_numbered_anew_change_nothing(
        self, case: Case, bound: ContributionBound, units: list[int], groups: list[int]
    ):
        before = case.kept(bound), case.kept_groups(bound.groups)
        case.units = np.array(units, dtype=np.int64)[case.units]
        case.groups = np.array(groups, dtype=np.int64)[case.groups]
        case.n_units = 4
        assert (case.kept(bound), case.kept_groups(bound.groups)) == before

    @pytest.mark.parametrize("key", range(20))
    def test_thousands_of_rows_more(self, key: int):
        """So many that everything is packed otherwise."""
        few = Case(random_case(5, 300, 20, 9).rows, key)
        others = [(unit + 20, group + 9, value) for unit, group, value in random_case(6, 9_000, 300, 5_000).rows]
        many = Case(others[:4_000] + few.rows + others[4_000:], key)
        for bound in (ContributionBound(4, MANY, MANY), ContributionBound(9, 4, 2), ContributionBound(MANY, 3, 1)):
            assert [place - 4_000 for place in many.kept(bound) if many.rows[place][0] < 20] == few.kept(bound)

    @given(ROWS, st.integers(0, 10**6), BOUNDS, st.randoms(use_true_random=False))
    def test_any_order_of_rows_keeps_equal_rows(self, rows: list[Row], key: int, bound: ContributionBound, random: Any):
        case = Case(rows, key)
        shuffled = list(rows)
        random.shuffle(shuffled)
        other = Case(shuffled, key)
        assert Counter(rows[place] for place in case.kept(bound)) == Counter(
            shuffled[place] for place in other.kept(bound)
        )
        assert Counter(rows[place] for place in case.kept_groups(2)) == Counter(
            shuffled[place] for place in other.kept_groups(2)
        )


class TestHashesAskedFor:
    def test_none_where_no_unit_is_over(self):
        case = Case([(0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 0, 3)])
        assert case.kept(ContributionBound(2, 2, 2)) == [0, 1, 2, 3]
        assert case.kept(ContributionBound(3, 2, 2)) == [0, 1, 2, 3]
        assert case.kept_groups(2) == [0, 1, 2, 3]
        assert case.asked == []

    def test_those_of_units_over_the_limit_of_rows(self):
        case = random_case(7, 400, 100, 5)
        sizes = Counter(row[0] for row in case.rows)
        assert min(sizes.values()) <= 4 < max(sizes.values())
        case.kept(ContributionBound(4, MANY, MANY))
        assert case.asked == [place for place, row in enumerate(case.rows) if sizes[row[0]] > 4]

    def test_those_of_a_units_groups_over_the_limit_of_rows_in_each(self):
        case = random_case(8, 400, 50, 5)
        sizes = Counter(row[:2] for row in case.rows)
        assert min(sizes.values()) <= 2 < max(sizes.values())
        case.kept(ContributionBound(MANY, MANY - 1, 2))
        assert case.asked == [place for place, row in enumerate(case.rows) if sizes[row[:2]] > 2]

    def test_one_for_each_group_of_units_over_the_limit_of_groups(self):
        case = random_case(9, 400, 100, 5)
        groups = {unit: {row[1] for row in case.rows if row[0] == unit} for unit in range(100)}
        case.kept_groups(2)
        over = {(unit, group) for unit, found in groups.items() if len(found) > 2 for group in found}
        assert 0 < len(over) < len({row[:2] for row in case.rows})
        assert Counter(case.rows[place][:2] for place in case.asked) == Counter(over)

    def test_no_later_step_asks_for_rows_that_are_gone(self):
        case = random_case(10, 600, 20, 9)
        left = slow_groups(case, 3, range(600))
        case.kept_groups(3)
        first = len(case.asked)
        case.asked.clear()
        case.kept(ContributionBound(6, 3, 4))
        assert set(case.asked[first:]) <= set(left)


class TestFairness:
    """Every row of a unit is as likely to be kept as any other: chi-square over many keys."""

    KEYS = 2_000

    def check(self, found: Counter[Any], cells: int) -> None:
        """The statistic has the mean cells - 1 and a deviation of sqrt(2 (cells - 1))."""
        expected = sum(found.values()) / cells
        assert len(found) == cells
        statistic = sum((number - expected) ** 2 / expected for number in found.values())
        assert statistic < cells - 1 + 5 * (2 * (cells - 1)) ** 0.5

    VALUES: tuple[tuple[Type, list[Any]], ...] = (
        (Type.INTEGER, [0, 1, 2, 3, 4, 5]),
        (Type.INTEGER, [2**61, 2**60, 2**59, -(2**61), -(2**60), 0]),
        (Type.DATE, [10_000, 10_007, 10_014, 10_021, 10_028, 10_035]),
        (Type.REAL, [0.0, 0.5, 1.0, 2.0, 4.0, -1.0]),
        (Type.TEXT, ["", "a", "b", "aa", "ab", "a much longer text than the others"]),
        (Type.BOOLEAN, [False, True]),
    )

    @pytest.mark.parametrize(("kind", "values"), VALUES)
    @pytest.mark.parametrize("most", [1, 5])
    def test_of_rows(self, kind: Type, values: list[Any], most: int):
        vector = vector_of(values, kind)
        units = np.zeros(len(values), dtype=np.int64)
        bound = ContributionBound(min(most, len(values) - 1), 1, MANY)
        dropped: Counter[int] = Counter()
        for number in range(self.KEYS):
            key = key_of(number)
            hashes = combine(key, [polynomial(key, each, kind) for each in (vector, vector)])
            mask = keep_rows(units, None, bound, lambda rows, hashes=hashes: (hashes[rows], hashes[rows]), 1)
            assert mask is not None
            dropped[int(np.flatnonzero(mask if most == 1 else ~mask)[0])] += 1
        self.check(dropped, len(values))

    def test_of_groups(self):
        units, groups = np.zeros(12, dtype=np.int64), np.arange(12) % 6
        kept: Counter[int] = Counter()
        for number in range(self.KEYS):
            unit, group = (Vector(each) for each in (units, groups))
            key = key_of(number)
            hashes = combine(key, [polynomial(key, each, Type.INTEGER) for each in (unit, group)])
            mask = keep_groups(units, groups, 1, lambda rows, hashes=hashes: (hashes[rows], hashes[rows]), 1)
            kept[int(groups[mask][0])] += 1
        self.check(kept, 6)

    def test_of_units_with_the_same_values_apart_from_each_other(self):
        units, values = np.repeat(np.arange(2), 3), np.tile(np.arange(3), 2)
        kept: Counter[Any] = Counter()
        for number in range(self.KEYS):
            columns = (units, values)
            key = key_of(number)
            hashes = combine(key, [polynomial(key, Vector(each), Type.INTEGER) for each in columns])
            mask = keep_rows(
                units, None, ContributionBound(1, 1, 1), lambda rows, hashes=hashes: (hashes[rows], hashes[rows]), 2
            )
            kept[tuple(values[mask])] += 1
        self.check(kept, 9)


class TestDistinctPairs:
    @given(ROWS, st.integers(0, 3))
    def test_counts_units(self, rows: list[Row], more: int):
        case = Case(rows)
        found = distinct_pairs(case.units, case.groups, 5 + more)
        pairs = {row[:2] for row in rows}
        assert found.tolist() == [sum(pair[1] == group for pair in pairs) for group in range(5 + more)]
        assert found.dtype == np.int64
        assert distinct_pairs(case.units, None, 1).tolist() == [len({row[0] for row in rows})]

    @pytest.mark.parametrize(("units", "groups", "scale"), [(50, 20, 1), (900, 100_000, 1), (900, 1_000, 10**12)])
    def test_of_few_pairs_and_of_many(self, units: int, groups: int, scale: int):
        case = random_case(11, 5_000, units, groups)
        counts = Counter(group for _, group in {row[:2] for row in case.rows})
        found = distinct_pairs(case.units * scale, case.groups, groups)
        assert found.tolist() == [counts[group] for group in range(groups)]

    def test_no_rows(self):
        nothing = np.zeros(0, dtype=np.int64)
        assert distinct_pairs(nothing, nothing, 3).tolist() == [0, 0, 0]
        assert distinct_pairs(nothing, None, 1).tolist() == [0]
        assert distinct_pairs(nothing, nothing, 0).tolist() == []


class TestPairCodes:
    @pytest.mark.parametrize("units", [1, 10, 10**5, 10**7, 2**40, 2**62])
    @pytest.mark.parametrize("groups", [1, 10, 10**4, 2**40])
    def test_stand_for_pairs(self, units: int, groups: int):
        drawn = np.random.default_rng(12)
        few = [drawn.integers(0, size, 60) for size in (units, groups)]
        chosen = drawn.integers(0, 60, (2, 2_000))
        pairs = few[0][chosen[0]], few[1][chosen[1]]
        codes, size = pair_codes(pairs[0], units, pairs[1])
        assert codes.dtype == np.int64
        assert 0 <= codes.min() <= codes.max() < size <= max(bounding._SMALL_TABLE, 2 * len(codes))
        whole = list(zip(*(each.tolist() for each in pairs), strict=True))
        assert len(set(whole)) == len(set(codes.tolist())) == len(set(zip(whole, codes.tolist(), strict=True)))

    def test_no_product_passes_64_bits(self):
        units, groups = np.array([0, 2**30, 2**30, 0]), np.array([5, 5, 2**40 - 1, 2**40 - 1])
        codes, size = pair_codes(units, 2**30 + 1, groups)
        assert sorted(codes.tolist()) == [0, 1, 2, 3]
        assert size == 4


def vector_of(values: list[Any], kind: Type) -> Vector:
    dtypes = {Type.REAL: np.float64, Type.BOOLEAN: np.bool_, Type.TEXT: np.object_, Type.OTHER: np.object_}
    return Vector(np.array(values, dtype=dtypes.get(kind, np.int64)))


TYPED: tuple[tuple[Type, list[Any]], ...] = (
    (Type.INTEGER, [0, 1, -1, 2**62, -(2**62), 7]),
    (Type.REAL, [0.0, 1.5, -1.5, 1e308, -1e308, 2.0**-59]),
    (Type.BOOLEAN, [False, True]),
    (Type.TEXT, ["", "a", "b", "\x00", "é", "\ud800"]),
    (Type.DATE, [0, 20_000]),
    (Type.TIMESTAMP, [0, 10**15]),
)


PINNED = {
    "integer": ["30b73c2887e2934c", "023d19d064d1bddc", "3fcb6c82c2163c98"],
    "real": ["3feace81dbdce082", "1eac2ddb20a6c0e5", "3936ca67a259059f"],
    "boolean": ["351cce220d221a69"],
    "text": ["05915664d5bd8b54", "09f9322440fb33c2"],
}


def polynomial(key: bytes, vector: Vector, kind: Type) -> HashedRows:
    return hashing.hash_vector(HashKey.of(key), vector, limbs_of(kind))


def combine(key: bytes, columns: list[HashedRows]) -> Any:
    """The hashes of rows of these columns."""
    found = HashKey.of(key)
    return numbers_of(hashing.combine(found, [started(found, len(columns[0])), *columns]), found.lanes)


def hash_vector(key: bytes, vector: Vector, kind: Type) -> Any:
    return combine(key, [polynomial(key, vector, kind)])


def hash_coded(key: bytes, codes: Any, dictionary: Vector, kind: Type) -> Any:
    return combine(key, [hashing.hash_coded(HashKey.of(key), codes, dictionary, limbs_of(kind))])


class TestHashes:
    KEY = key_of(0)

    @pytest.mark.parametrize(("kind", "values"), TYPED)
    def test_different_values_have_different_hashes(self, kind: Type, values: list[Any]):
        found = hash_vector(self.KEY, vector_of(values, kind), kind)
        assert found.dtype == np.uint64
        assert len(set(found.tolist())) == len(values)

    def test_no_two_integers_meet(self):
        values = np.concatenate([np.arange(50_000), np.arange(50_000) << 32, np.arange(1, 50_000) << 47])
        hashes = hash_vector(self.KEY, Vector(values), Type.INTEGER)
        assert len(np.unique(hashes)) == len(np.unique(values))

    @pytest.mark.parametrize(("kind", "values"), TYPED)
    def test_a_cells_hash_is_its_own(self, kind: Type, values: list[Any]):
        whole = hash_vector(self.KEY, vector_of(values, kind), kind).tolist()
        single = [hash_vector(self.KEY, vector_of([value], kind), kind)[0] for value in values]
        assert whole == single
        turned = hash_vector(self.KEY, vector_of(values[::-1], kind), kind).tolist()
        assert whole == turned[::-1]

    @pytest.mark.parametrize(("kind", "values"), TYPED)
    def test_the_key_enters(self, kind: Type, values: list[Any]):
        vector = vector_of(values, kind)
        found = [hash_vector(key_of(number), vector, kind) for number in range(4)]
        assert len({int(each[0]) for each in found}) == 4

    @pytest.mark.parametrize(("kind", "values"), TYPED)
    def test_null_has_one_hash_whatever_its_cell_holds(self, kind: Type, values: list[Any]):
        vector = vector_of(values, kind)
        nulls = hash_vector(self.KEY, Vector(vector.values, np.zeros(len(values), dtype=bool)), kind)
        assert len(set(nulls.tolist())) == 1
        present = hash_vector(self.KEY, vector, kind)
        assert nulls[0] not in present
        half = np.arange(len(values)) % 2 == 0
        mixed = hash_vector(self.KEY, Vector(vector.values, half), kind)
        assert mixed.tolist() == np.where(half, present, nulls).tolist()

    def test_minus_zero_is_zero(self):
        found = hash_vector(self.KEY, vector_of([0.0, -0.0, 1e-17, -1e-17], Type.REAL), Type.REAL)
        assert found[0] == found[1]
        assert len(set(found.tolist())) == 3

    def test_nothing_warns_or_fails(self):
        odd = np.array([0x7FF0000000000001, 0xFFF8000000000000, 0x7FF8000000000000], dtype=np.uint64)
        with np.errstate(all="raise"):
            hash_vector(self.KEY, Vector(odd.view(np.float64)), Type.REAL)
            hash_vector(self.KEY, Vector(np.array([-(2**63), 2**63 - 1])), Type.INTEGER)

    def test_of_what_has_no_operations_presence_counts(self):
        cells = Vector(np.array([object(), None, 3], dtype=object), np.array([True, False, True]))
        first, null, last = hash_vector(self.KEY, cells, Type.OTHER)
        assert first == last != null

    def test_a_constant_is_hashed_as_its_cells(self):
        cells = np.broadcast_to(np.array([4.5]), 3)
        found = hash_vector(self.KEY, Vector(cells), Type.REAL)
        assert found.tolist() == [hash_vector(self.KEY, Vector(np.array([4.5])), Type.REAL)[0]] * 3

    @pytest.mark.parametrize("kind", [kind for kind, _ in TYPED])
    def test_no_cells(self, kind: Type):
        nothing = hash_vector(self.KEY, vector_of([], kind), kind)
        assert (len(nothing), nothing.dtype) == (0, np.uint64)
        assert len(hash_coded(self.KEY, np.zeros(0, dtype=np.int32), vector_of([""], Type.TEXT), Type.TEXT)) == 0

    @pytest.mark.parametrize(("kind", "values"), TYPED)
    @pytest.mark.parametrize("width", [np.int32, np.int64])
    def test_codes_hash_as_their_values(self, kind: Type, values: list[Any], width: type):
        last = np.arange(len(values) + 1) < len(values)
        dictionary = Vector(vector_of([*values, values[0]], kind).values, last)
        codes = np.array([*range(-1, len(values)), 0, -1, 1], dtype=width)
        gathered = hash_vector(self.KEY, dictionary.at(codes), kind)
        assert hash_coded(self.KEY, codes, dictionary, kind).tolist() == gathered.tolist()

    def test_only_texts_that_occur_are_hashed(self):
        dictionary = Vector(np.array(["a", object(), "b", ""], dtype=object), np.array([True, True, True, False]))
        codes = np.array([2, 0, -1, 2], dtype=np.int32)  # the object has no text to hash
        found = hash_coded(self.KEY, codes, dictionary, Type.TEXT)
        assert found[0] == found[3]
        assert len(set(found.tolist())) == 3

    def test_columns_combine_in_order(self):
        a, b = (polynomial(self.KEY, Vector(np.arange(100) + more), Type.INTEGER) for more in (0, 1_000))
        found = [combine(self.KEY, each).tolist() for each in ([a], [a, b], [b, a], [a, a], [a, b, b], [a, a, b])]
        assert len(set(chain.from_iterable(found))) == 600

    @pytest.mark.parametrize("key", [bytes(32), b"\xff" * 32, key_of(3)])
    def test_it_is_the_polynomial_that_is_written_down(self, key: bytes):
        """Of Python's own integers, limb by limb."""
        lanes = HashKey.of(key)
        cells = [0, 1, -1, 2**62, -(2**62), 2**30, 2**30 - 1, 123_456_789_012]
        found = hash_vector(key, Vector(np.array(cells)), Type.INTEGER)
        for cell, number in zip(cells, found.tolist(), strict=True):
            word = cell % 2**64
            numbers = []
            for lane in lanes.lanes:
                h = lane.start
                for limb in (word % 2**30, word >> 30 & 2**30 - 1, word >> 60):
                    h = (h * lane.factor + limb) % PRIME
                x = (h + lane.shift) % PRIME
                numbers.append((x**3 + lane.linear * x + lane.constant) % PRIME)
            assert number == numbers[0] * 2**31 + numbers[1]

    def test_every_machine_and_engine_has_these(self):
        cells = {
            Type.INTEGER: [0, 1, -1],
            Type.REAL: [0.0, 1.0, -2.75],
            Type.BOOLEAN: [True],
            Type.TEXT: ["", "é"],
        }
        found = {kind: hash_vector(bytes(range(32)), vector_of(values, kind), kind) for kind, values in cells.items()}
        assert {kind.value: [f"{int(each):016x}" for each in hashes] for kind, hashes in found.items()} == PINNED


def test_listed_keys_of_reals_may_be_written_as_integers() -> None:
    """Which rows are kept goes by the place of their key in the list: 0, 0.0 and -0.0 are one, and so are an integer
    and the double that is next to it."""
    frame = pd.DataFrame({"u": [1, 1, 2, 2], "g": [0.0, 1.5, -0.0, 2.0**53], "x": [1, 2, 3, 4]})
    for keys in ([0, 1.5, 3], [-0.0, 1.5, 3], [0, 1.5, 2**53 + 1]):
        table = dpsql.Table(frame, unit="u", max_groups=1, max_rows_per_group=1, keys={"g": keys}, bounds={"x": (0, 5)})
        assert len(dpsql.query(table, "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g", epsilon=1)) == len(keys)
