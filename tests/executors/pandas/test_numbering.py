"""Codes made a block of rows at a time: the same as all at once, and nothing else as long as the column."""

from __future__ import annotations

import tracemalloc
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns import numbering
from dpsql.executors.pandas.columns.declared_columns import number
from dpsql.executors.pandas.columns.encoding import _is_plain, codes_of
from dpsql.executors.pandas.columns.numbering import numbered_integers, numbered_texts
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type

SEED = 20_261_122
TEXTS = ["", "a", "b", "\u00e4", "a ", "zz", "0", "nan", None]


@pytest.mark.parametrize("dtype", ["str", pd.StringDtype("python"), pd.StringDtype("pyarrow"), "string[pyarrow]"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 50])
def test_texts_in_blocks_are_numbered_as_all_at_once(dtype: Any, rows: int):
    rng = np.random.default_rng(SEED + rows)
    for _ in range(20):
        cells = [TEXTS[place] for place in rng.integers(0, len(TEXTS), rows)]
        series = pd.Series(cells, dtype=dtype)
        found, texts = pd.factorize(series)
        for first, others in ((1, 1), (2, 3), (64, 5)):
            with mock.patch.multiple(numbering, _BLOCK=first, _TEXTS_AT_ONCE=others):
                made = numbered_texts(series, _is_plain)
            assert made is not None
            assert made[0].dtype == np.int32
            assert made[0].tolist() == found.tolist()
            assert made[1] == list(texts)


def test_texts_that_a_hash_table_mixes_up_and_many_texts_are_left_to_others():
    mixed = pd.Series(["a", "b", "\\ud800", "a"], dtype=pd.StringDtype("python"))
    with mock.patch.multiple(numbering, _BLOCK=1, _TEXTS_AT_ONCE=1):
        assert numbered_texts(mixed, _is_plain) is None
        assert codes_of(mixed)[0].tolist() == [0, 1, 2, 0]
    many = pd.Series([f"text {number}" for number in range(40)], dtype="str")
    with mock.patch.multiple(numbering, _MOST_TEXTS=39):
        assert numbered_texts(many, _is_plain) is None
        assert codes_of(many)[0].tolist() == list(range(40))


@pytest.mark.parametrize("kind", [Type.INTEGER, Type.DATE, Type.TIMESTAMP])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_integers_in_blocks_are_numbered_as_all_at_once(kind: Type, nulls: float):
    rng = np.random.default_rng(SEED)
    for low in (0, -7, 2**61, -(2**62)):
        values = low + rng.integers(0, 20, 100)
        valid = rng.random(100) >= nulls
        whole = Vector(np.where(valid, values, 2**40), valid) if nulls else Vector(values)

        def read(start: int, stop: int, whole: Vector = whole) -> Vector:
            return whole.at(slice(start, stop))

        expected_codes, expected = number(whole, kind)
        for block in (1, 7, 64, 1_000):
            with mock.patch.object(numbering, "_BLOCK", block):
                made = numbered_integers(read, 100)
            assert made is not None
            codes, numbers = made
            assert codes.dtype == np.int32
            assert cells_of(numbers.at(codes), kind) == cells_of(expected.at(expected_codes), kind)
            assert len(set(cells_of(numbers, kind))) == len(numbers)
            if not nulls:
                assert codes.tolist() == expected_codes.tolist()


def test_numbers_far_apart_and_columns_without_values_are_left_to_others():
    def nothing(start: int, stop: int) -> Vector:
        return Vector(np.zeros(stop - start, dtype=np.int64), np.zeros(stop - start, dtype=bool))

    assert numbered_integers(nothing, 100) is None
    assert numbered_integers(nothing, 0) is None
    far = Vector(np.array([-(2**63), 2**63 - 1] * 50))
    assert numbered_integers(lambda start, stop: far.at(slice(start, stop)), 100) is None


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("SELECT a, COUNT(*), SUM(x) FROM t GROUP BY a", 1),
        ("SELECT a, b, COUNT(*), AVG(x) FROM t GROUP BY a, b", 2),
        ("SELECT z, COUNT(*) FROM t GROUP BY z", 1),
    ],
)
def test_extra_memory_is_four_bytes_a_row_for_each_key_and_little_more(sql: str, texts: int):
    rows = 2_000_000
    places = np.random.default_rng(SEED).integers(0, 1_000, rows)
    words = np.array(["x", "y", "z", "w"], dtype=object)
    frame = pd.DataFrame(
        {
            "a": pd.Series(words[places % 4], dtype="str"),
            "b": pd.Series(words[places % 3], dtype="str"),
            "x": places % 7,
            "z": places,
        }
    )
    keys = {"a": list(words), "b": list(words)}
    session = dpsql.Session({"t": dpsql.Table(frame, bounds={"x": (0, 6)}, keys=keys)}, budget=dpsql.Budget(10, 1e-3))
    session.query("SELECT COUNT(*) FROM t", epsilon=0.1)
    tracemalloc.start()
    try:
        session.query(sql, epsilon=0.1, delta=1e-6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * rows * texts + 20 * 2**20
