"""Public keys that are whole numbers one after the other: each row is in the group of its number."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import dpsql

LARGEST = 2**63 - 1
CELLS = [-LARGEST - 1, -LARGEST, LARGEST, LARGEST - 1, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, None]
LISTS = (
    [-3, -2, -1, 0, 1, 2],
    [2, 1, 0, -1],
    [-3, 0, 3],
    [4],
    [-1, None, 0, 1],
    [LARGEST, LARGEST - 1],
    [-LARGEST - 1, -LARGEST],
    [2**62, LARGEST],
)


@pytest.mark.parametrize("keys", LISTS, ids=str)
@pytest.mark.parametrize("stored", ["Int64", "int64"])
def test_a_row_is_in_the_group_of_its_number(keys: list[int | None], stored: str):
    shapes = np.random.default_rng(3)
    cells = [each for each in CELLS if each is not None or stored == "Int64"]
    drawn = [cells[place] for place in shapes.integers(0, len(cells), 500)]
    frame = pd.DataFrame({"k": pd.array(drawn, dtype=stored)})
    answer = dpsql.query({"t": frame}, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1e9, keys={"k": keys})
    counted = Counter(drawn)
    listed = None in keys
    others = sum(count for cell, count in counted.items() if cell not in keys)
    expected = {key: counted[key] + (others if key is None and listed else 0) for key in keys}
    assert {key: round(n) for key, n in answer} == expected
