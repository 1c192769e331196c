"""One row more or less, in tables that lie in memory in every way: no other row comes to anything else.

Every path on which cells reach a kernel is asked: filters, keys, aggregates, branches, dictionaries, unions, joins,
people's own aggregates, grids. See row_local_checks.py.
"""

from __future__ import annotations

import random
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError
from tests.core import language, row_local_lies
from tests.core.checks import Shape, U, calibrated, rows_add_up
from tests.core.row_local_checks import PATHS, check_path
from tests.executors.pandas.layouts import LAYOUTS, watched
from tests.lies import Check, Lie, assert_caught

COMMON = ("stride -1", "nullable")
SEED = 20_260_838


@pytest.mark.thinned(3)
@pytest.mark.parametrize("layout", COMMON)
@pytest.mark.parametrize("path", PATHS)
def test_a_table_is_the_sum_of_its_rows(path: str, layout: str):
    check_path(PATHS[path], layout)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [each for each in LAYOUTS if each not in COMMON])
@pytest.mark.parametrize("path", PATHS)
def test_a_table_is_the_sum_of_its_rows_in_every_layout(path: str, layout: str):
    check_path(PATHS[path], layout)


def ask_at_random(seed: int, accepted: int) -> None:
    """That many random queries over a reversed frame with columns of every type: a table is the sum of its rows."""
    draw = random.Random(seed)
    honest = Shape.frame
    done = 0
    while done < accepted:
        asked = language.Expressions(draw).query()
        schema = language.PEOPLE.schema(**asked.more)
        try:
            made = calibrated(schema, asked.sql, U, **asked.options)
        except DPSQLError:
            continue
        data = draw.choices(language.rows(draw, 8), k=40)
        with (
            mock.patch.object(Shape, "frame", lambda self, rows: honest(self, rows[::-1]).iloc[::-1]),
            watched(sensitive=True) as watch,
        ):
            rows_add_up(made, schema, language.PEOPLE, data)
        assert not watch.wrong, f"{asked.sql}: {watch.wrong[:3]}"
        done += 1


def test_random_queries_over_reversed_frames():
    ask_at_random(SEED, 25)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 9))
def test_many_random_queries_over_reversed_frames(part: int):
    ask_at_random(SEED + part, 150)


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
def test_a_lie_about_rows_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
