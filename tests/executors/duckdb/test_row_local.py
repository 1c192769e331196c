"""What DuckDB makes of a row's cells is the same bits wherever the row stands and whatever stands beside it.

Every proof rests on that (`dpsql.plan.row_local`). Functions of a library, and whatever a vector of cells may be to the
engine: flat, all the same constant, a dictionary, cut by a filter, long and short, of one thread and of several.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pandas as pd
import pytest

from dpsql.executors.duckdb import instance
from dpsql.executors.duckdb.dialect import DUCKDB_SQL
from dpsql.plan.expressions import Column, Expr, Fact, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type

X, Y = (Column(name, Type.REAL, Fact()) for name in "xy")
EXPRS: list[Expr | None] = [
    *(call(FUNCTIONS[name], X) for name in ("exp", "ln", "log2", "log10", "cbrt", "sqrt", "degrees", "radians")),
    call(FUNCTIONS["power"], X, Y),
    call(FUNCTIONS["log_base"], X, Y),
    *(call(FUNCTIONS[name], X, Y) for name in ("divide", "modulo", "multiply", "subtract") if name in FUNCTIONS),
]
CELLS = [random.Random(1).uniform(0.01, 30) for _ in range(300)] + [0.0, -0.0, 1e-300, 1e300, 5e-324, -3.5, 709.5]


@contextmanager
def opened(threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = instance.opened()
    connection.execute(f"SET threads = {threads}")
    instance.lock(connection)
    yield connection
    connection.close()


def bits(cell: float | None) -> bytes | None:
    return None if cell is None else struct.pack("d", cell)


def texts() -> list[str]:
    found = [DUCKDB_SQL.call(each, ["x", "y"][: len(each.args)]) for each in EXPRS if each is not None]  # type: ignore[union-attr, arg-type]
    assert len(found) > 9
    return found


def asked(frame: pd.DataFrame, threads: int, rest: str = "") -> dict[int, Any]:
    with opened(threads) as connection:
        connection.register("t", frame)
        rows = connection.execute(f"SELECT i, {', '.join(texts())} FROM t{rest}").fetchall()
    return {row[0]: [bits(cell) for cell in row[1:]] for row in rows}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = random.Random(2)
    pairs = [(cell, rng.choice([0.5, 2.0, 3.0, -1.0, 1.7, 10.0])) for cell in CELLS]
    return pd.DataFrame({"i": range(len(pairs)), "x": [x for x, _ in pairs], "y": [y for _, y in pairs]})


def test_a_cell_is_itself_wherever_it_stands(frame: pd.DataFrame):
    alone = {place: asked(frame.iloc[[place]], 1)[place] for place in range(0, len(frame), 7)}
    many = pd.concat([frame] * 40, ignore_index=True)
    ways = [
        asked(frame, 1),
        asked(frame.sort_values("i", ascending=False), 1),
        asked(frame, 2, " WHERE i % 7 = 0"),
        asked(many.sample(frac=1, random_state=3), 2),
        asked(frame, 1, " ORDER BY y, i"),
        asked(frame, 2, " JOIN (SELECT DISTINCT y AS z FROM t) AS u ON z = y"),
        asked(frame[frame.i % 2 == 0], 1),
    ]
    for found in ways:
        for place in alone.keys() & found.keys():
            assert found[place] == alone[place], f"{frame.iloc[place].tolist()}"


def test_a_constant_is_what_a_column_of_it_is(frame: pd.DataFrame):
    whole = asked(frame, 1)
    for place in range(0, len(frame), 13):
        row = frame.iloc[place]
        same = pd.DataFrame({"i": range(3_000), "x": [row.x] * 3_000, "y": [row.y] * 3_000})
        assert set(map(tuple, asked(same, 2).values())) == {tuple(whole[place])}
