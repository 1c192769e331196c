"""Where rows are units, a row is one unit however often a query reads it: through unions of unions too."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas import unit_chunks as slices
from dpsql.testing import insecure_exact

OPTIONS = (
    "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1, group_selection_strategy = TRUNCATED_GEOMETRIC)"
)
ROWS = {"t": [0, 0, 5, 7], "v": [0, 9, 5]}


def session(engine: str) -> dpsql.Session:
    tables = {name: dpsql.Table(pd.DataFrame({"k": cells}), bounds={"k": (0, 9)}) for name, cells in ROWS.items()}
    public = dpsql.Table(pd.DataFrame({"z": [1, 2]}), public=True)
    return dpsql.Session({**tables, "pub": public}, budget=dpsql.Budget(epsilon=9, delta=0.1), engine=engine)


def branches(draw: random.Random, depth: int) -> tuple[str, set[str]]:
    """A relation with a column v, and the tables it reads: unions of tables and of such relations, some fanned out."""
    made = []
    for _ in range(draw.choice((1, 2, 2, 3))):
        if depth and draw.random() < 0.5:
            inner, read = branches(draw, depth - 1)
            made.append((f"SELECT v FROM ({inner}) AS q{draw.randrange(10**9)}", read))
        else:
            name = draw.choice("tv")
            made.append((f"SELECT k AS v FROM {name}{draw.choice((' CROSS JOIN pub', '', ''))}", {name}))
    return " UNION ALL ".join(text for text, _ in made), set().union(*(read for _, read in made))


@pytest.mark.parametrize(("engine", "at_once"), [("pandas", None), ("pandas", 1), ("duckdb", None)])
@pytest.mark.parametrize("seed", range(12))
def test_a_row_is_one_unit(engine: str, at_once: int | None, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if at_once is not None:
        monkeypatch.setattr(slices, "MOST_HELD", at_once)
    text, read = branches(random.Random(seed), 3)
    sql = f"SELECT {OPTIONS} v > 3, COUNT(v) FROM ({text}) AS a GROUP BY v > 3"
    parts = insecure_exact(session(engine), sql, bytes(32), epsilon=1, delta=1e-3).parts
    units = {key: integers[-1] for (key,), integers in parts.items()}
    cells = [cell for name in read for cell in ROWS[name]]
    assert units == {False: sum(cell <= 3 for cell in cells), True: sum(cell > 3 for cell in cells)}
