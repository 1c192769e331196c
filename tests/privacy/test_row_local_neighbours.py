"""One row more or less, in tables that lie in memory in every way: no other row comes to anything else.

Every path on which cells reach a kernel is asked: filters, keys, aggregates, branches, dictionaries, unions, joins,
people's own aggregates, grids. See row_local_checks.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from tests.executors.layouts import LAYOUTS
from tests.privacy import row_local_lies
from tests.privacy.row_local_checks import PATHS, check_path

COMMON = ("stride -1", "nullable")


@pytest.mark.parametrize("layout", COMMON)
@pytest.mark.parametrize("path", PATHS)
def test_a_table_is_the_sum_of_its_rows(path: str, layout: str):
    check_path(PATHS[path], layout)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [each for each in LAYOUTS if each not in COMMON])
@pytest.mark.parametrize("path", PATHS)
def test_a_table_is_the_sum_of_its_rows_in_every_layout(path: str, layout: str):
    check_path(PATHS[path], layout)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e300, 0.0])
def test_a_reversed_frame_and_one_row_more(bad: float):
    """20,000 cells were 3 or not 3 by whether one other row was NULL."""
    cells = np.full(20_000, 27.0)
    asks = {
        "SELECT COUNT(*) FROM t WHERE CBRT(x) = 3": [],
        "SELECT COUNT(*) FROM t WHERE LN(x) * 3 = LN(x) + LN(x) + LN(x)": [],
    }
    for frame in (pd.DataFrame({"x": cells}), pd.DataFrame({"x": np.append(cells, bad)})):
        for ordered in (frame, frame.iloc[::-1]):
            for sql, found in asks.items():
                found.append(next(iter(dpsql.query(ordered, sql, epsilon=50)))[0])
    for found in asks.values():
        assert max(found) - min(found) <= 5


@pytest.mark.parametrize(("lie", "check"), row_local_lies.LIES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_lie_about_rows_is_caught(
    lie: row_local_lies.Lie, check: row_local_lies.Check, monkeypatch: pytest.MonkeyPatch
):
    check()
    with monkeypatch.context() as patch:
        lie(patch)
        with pytest.raises(AssertionError):
            check()
