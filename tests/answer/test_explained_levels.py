"""What an explanation says of levels is what their answers show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql


@pytest.mark.parametrize("how", ["ROLLUP (g)", "CUBE (g, h)", "GROUPING SETS ((g), (h))"])
def test_the_half_width_of_a_column_is_that_of_its_widest_level(how: str) -> None:
    frame = pd.DataFrame({"g": np.arange(600) % 3, "h": np.arange(600) % 2, "x": 1.0})
    table = dpsql.Table(frame, bounds={"x": (0, 10)}, keys={"g": [0, 1, 2], "h": [0, 1]})
    session = dpsql.Session({"t": table}, budget=dpsql.Budget(3))
    sql = f"SELECT g, COUNT(*) AS n, SUM(x) + 1 AS s, AVG(x) AS a FROM t GROUP BY {how}"
    told = {each["name"]: each["interval_95"] for each in session.explain(sql, epsilon=1).to_dict()["columns"]}
    shown = session.query(sql, epsilon=1).intervals()
    for name in ("n", "s"):
        widths = (shown[f"{name}_high"] - shown[f"{name}_low"]) / 2
        if name == "n":  # rounded: by less than 1, and for each of three groups where CUBE adds them up
            assert widths.max() <= told[name] <= widths.max() + (3 if "CUBE" in how else 1)
        else:
            assert told[name] == pytest.approx(widths.max())
        if "SETS" not in how:
            assert widths.min() < 0.8 * widths.max()
    assert told["a"] is None
