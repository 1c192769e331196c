"""Places by leading digits, and the rows that are searched for bounds, are the same on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import Grid
from dpsql.executors.base import executor_of
from tests.executors.contract import session

REALS = [0.0, -0.0, 1.0, -1.0, 3.75, 2.0**-1022, -(2.0**-1022), 5e-324, 2.0**-1030, 1.5e308, np.inf, -np.inf, np.nan]
REALS += [np.nextafter(2.0**k, side) for k in (-1021, -64, -1, 0, 1, 20, 62, 1023) for side in (0, np.inf)]
REALS += [sign * each for each in np.random.default_rng(1).lognormal(0, 40, 500).tolist() for sign in (1, -1)]
INTEGERS = [0, 1, -1, 2**53 + 1, 2**62, -(2**62), 7, *(2**k - 1 for k in range(1, 60, 7))]


def searched(engine: str, sql: str, frame: pd.DataFrame, **words: Any) -> list[Grid]:
    held = session({"t": dpsql.Table(frame, **words)}, engine)
    made = held.explain(sql, epsilon=1)._release
    return list(executor_of(held._stores, held._engine).execute(made.plans[0], bytes(32)).grids)


@pytest.mark.parametrize("bounds", ["auto", ("auto", -5, 1_000)], ids=str)
@pytest.mark.parametrize("limits", [{}, {"unit": "who", "max_rows": 2}], ids=str)
def test_rows_are_searched_at_the_same_places(bounds: Any, limits: dict[str, Any]):
    for values in (pd.Series(REALS), pd.Series(INTEGERS, dtype="Int64")):
        frame = pd.DataFrame({"x": values, "who": np.arange(len(values)) % 40})
        said = {"bounds": {"x": bounds}, **limits}
        (one,), (other,) = (searched(each, "SELECT SUM(x) FROM t", frame, **said) for each in ("pandas", "duckdb"))
        assert one.points.tolist() == other.points.tolist()
        assert one.counts.tolist() == other.counts.tolist()
        assert len(one.points) > 5
