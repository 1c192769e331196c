"""Queries that lead cells of rows to kernels on every path there is, over tables that lie in memory in every way.

What a table comes to must be the sum of what its rows come to alone, bit for bit: the oracle is the engine itself over
tables of one row. It is run with kernels that are as sensitive to strides as those of some processors, and watched.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pandas as pd

from dpsql.core.exact import ExactTable
from dpsql.executors.pandas import evaluation
from dpsql.executors.pandas import executor as pandas
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type
from tests.core.checks import U
from tests.core.unit_checks import KEYS, Data, World, planned
from tests.executors.pandas.layouts import can_lie, frame_of, lie, watched


@dataclass(frozen=True)
class LaidWorld(World):
    """A world whose tables' cells lie in one way, as far as there is such a column of a type."""

    kinds: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    layout: str = "contiguous"

    def frame(self, table: str, rows: Sequence[Any]) -> pd.DataFrame:
        cells = list(zip(*rows, strict=True)) or [()] * len(self.kinds[table])
        held = {}
        for (name, kind), column in zip(self.kinds[table].items(), cells, strict=True):
            here = self.layout if column and can_lie(self.layout, kind, column) else "contiguous"
            held[name] = lie(here, kind, column)
        return frame_of(held)


KINDS: dict[str, dict[str, Type]] = {
    "t": {"x": Type.REAL, "y": Type.REAL, "k": Type.INTEGER, "s": Type.TEXT, "at": Type.TIMESTAMP},
    "p": {"pid": Type.INTEGER, "h": Type.REAL},
    "e": {"pid": Type.INTEGER, "x": Type.REAL, "y": Type.REAL},
    "pub": {"k": Type.REAL, "w": Type.REAL},
}
BOUNDS = {"x": (0, 1000), "y": (-4, 9), "k": (0, 5)}
WORLD = LaidWorld(
    dtypes=KINDS,
    declared={
        "t": {"bounds": BOUNDS, "types": {"s": "text"}},
        "p": {"unit": "pid", "unique": ["pid"], "bounds": {"h": (0, 200)}},
        "e": {"unit": "pid", "max_rows": 3, "bounds": {"x": (0, 1000), "y": (-4, 9)}},
        "pub": {"public": True, "unique": ["k"]},
    },
    public={"pub": ((3.0, 1.0), (2.0, 27.0), (4.0, 8.0), (5.0, 64.0))},
    kinds=KINDS,
)

ROOTS = "CBRT(x) = 3"
BY_ROW: dict[str, str] = {
    "a filter": f"SELECT COUNT(*) FROM t WHERE {ROOTS}",
    "joined conditions": "SELECT COUNT(*) FROM t WHERE EXP(LN(y)) >= y AND LOG2(x) > 3 OR POWER(x, 1.5) < 80",
    "a key": f"SELECT {ROOTS}, COUNT(*) FROM t GROUP BY 1",
    "an unknown key": "SELECT ROUND(EXP(y), 2), COUNT(*) FROM t GROUP BY 1",
    "an unknown key of reals": "SELECT SQRT(x), COUNT(*) FROM t GROUP BY 1",
    "a text key": "SELECT CASE WHEN CBRT(x) = 3 THEN 'three' ELSE s END, COUNT(*) FROM t GROUP BY 1",
    "a sum": "SELECT SUM(CLAMP(LN(y), -1, 3)), COUNT(*) FROM t",
    "averages": "SELECT AVG(POWER(x, 0.3)), AVG(CBRT(y)), COUNT(EXP(x)) FROM t",
    "moments": "SELECT VAR_SAMP(CBRT(x)), COVAR_SAMP(x, EXP(y)) FROM t",
    "branches": "SELECT SUM(CASE WHEN CBRT(x) = 3 THEN LOG2(x) WHEN LOG(10, x) > 1 THEN CBRT(y) ELSE EXP(y) END)"
    " FROM t",
    "a dictionary": "SELECT COUNT(*) FROM t WHERE CBRT(CAST(s AS DOUBLE)) = 3",
    "a dictionary beside a column": "SELECT SUM(CLAMP(LN(CAST(s AS DOUBLE)) + LN(x), 0, 9)) FROM t",
    "a time": "SELECT SUM(CLAMP(LN(EXTRACT(epoch FROM at)), 0, 50)) FROM t",
    "whole numbers": "SELECT SUM(EXP(k)), AVG(POWER(2, k)) FROM t",
    "a filter of an aggregate": f"SELECT COUNT(*) FILTER (WHERE {ROOTS}), SUM(x) FILTER (WHERE LN(y) > 1) FROM t",
    "a grid": "SELECT MEDIAN(CBRT(x)) FROM t",
    "a union": "SELECT COUNT(*) FROM (SELECT CBRT(x) AS c FROM t UNION ALL SELECT LOG2(x) FROM t) u WHERE c = 3",
    "a key of a join": "SELECT COUNT(*), SUM(x) FROM t JOIN pub ON CBRT(t.x) = pub.k",
    "both sides of a join": "SELECT COUNT(*) FROM t CROSS JOIN pub WHERE CBRT(t.x) + CBRT(pub.w) = t.y",
    "a condition of a join": "SELECT COUNT(*) FROM t LEFT JOIN pub ON CBRT(t.x) = pub.k WHERE EXP(pub.w) > LN(t.y)",
    "a list": "SELECT COUNT(*) FROM t WHERE CBRT(x) IN (SELECT k FROM pub)",
    "a text of a number": "SELECT COUNT(*) FROM t WHERE CAST(CBRT(x) AS TEXT) = '3.0' OR CAST(x AS TEXT) = '-0.0'",
}
BY_UNIT: dict[str, str] = {
    "aggregates of a person": "SELECT AVG(m), SUM(CLAMP(c, 0, 3)) FROM (SELECT pid, MAX(CBRT(x)) AS m,"
    " COUNT(LN(y)) AS c FROM e GROUP BY pid) q",
    "sums of a person": "SELECT SUM(CLAMP(LN(z), 0, 5)) FROM (SELECT pid, SUM(EXP(y)) AS z FROM e GROUP BY pid) q",
    "different values": "SELECT COUNT(DISTINCT pid) FROM e WHERE CBRT(x) = 3",
    "a join of people": "SELECT SUM(CLAMP(CBRT(h) + CBRT(x), 0, 20)) FROM p JOIN e ON p.pid = e.pid",
}
PATHS = {**BY_ROW, **BY_UNIT}
GOOD = ((27.0, 2.5), (8.0, -1.25), (64.0, 3.1), (125.0, 0.7), (3.3, 8.9), (999.5, -3.0), (0.0, 2.0), (-0.0, 0.1))
BAD = ((None, 1.0), (27.0, None), (5e9, 2.5), (-5.0, 2.5), (27.0, -70.0), (float("inf"), float("-inf")), (None, None))


def row(x: float | None, y: float | None) -> tuple[Any, ...]:
    known = 27 if x is None or abs(x) == float("inf") else x
    return (x, y, int(abs(known)) % 6, f"{known:g}", int(known * 1e6) + 5)


def data_of(rows: Sequence[tuple[Any, Any]], seed: int = 0) -> Data:
    """The rows, as rows of t and as those of people with up to three."""
    draw = random.Random(seed)
    mine = [(10 * (place // 3), x, y) for place, (x, y) in enumerate(rows)]
    people = tuple((pid, draw.choice((27.0, 8.0, 3.3))) for pid in dict.fromkeys(pid for pid, _, _ in mine))
    return {"t": tuple(row(x, y) for x, y in rows), "p": people, "e": tuple(mine)}


def parts_of(data: Data, sql: str) -> list[Data]:
    """The rows, or the people, one by one."""
    if sql in BY_ROW.values():
        return [{"t": (each,), "p": (), "e": ()} for each in data["t"]]
    pids = [pid for pid, _ in data["p"]]
    return [{"t": (), **{name: tuple(r for r in data[name] if r[0] == pid) for name in ("p", "e")}} for pid in pids]


def in_layout(layout: str) -> LaidWorld:
    return LaidWorld(WORLD.dtypes, WORLD.declared, WORLD.public, kinds=KINDS, layout=layout)


def cells_of(table: ExactTable) -> Counter[Any]:
    """What each group has of each part and at each point of a grid, where that is not 0."""
    names = list(zip(*map(_keys, table.keys), strict=True)) or [()] * table.groups
    found: Counter[Any] = Counter()
    for place, part in enumerate(table.parts.tolist()):
        found.update({(name, "part", place): count for name, count in zip(names, part, strict=True)})
    for place, grid in enumerate(table.grids):
        steps = zip(grid.groups.tolist(), grid.points.tolist(), grid.counts.tolist(), strict=True)
        found.update({(names[group], "grid", place, point): count for group, point, count in steps})
    return Counter({name: count for name, count in found.items() if count})


def _keys(key: Vector) -> list[Any]:
    cells = zip(key.values.tolist(), key.where_valid().tolist(), strict=True)
    return [repr(cell) if valid else None for cell, valid in cells]


@contextmanager
def in_blocks_of(size: int) -> Iterator[None]:
    """Blocks that leave one row for the last: a view of it has the stride of the column."""
    with mock.patch.object(evaluation, "BLOCK", size), mock.patch.object(pandas, "BLOCK", size):
        yield


def check_additive(sql: str, layout: str, rows: Sequence[tuple[Any, Any]]) -> None:
    """A table comes to the sum of what its rows, or its people, come to alone, and kernels see cells laid out."""
    data, world = data_of(rows), in_layout(layout)
    plan = planned(world, sql, U).exact
    with watched(sensitive=True) as watch, in_blocks_of(len(rows) - 1):
        whole = cells_of(world.executor(data).execute(plan, KEYS[0]))
        alone: Counter[Any] = Counter()
        for part in parts_of(data, sql):
            alone.update(cells_of(world.executor(part).execute(plan, KEYS[0])))
    assert whole == alone, f"{sql}, {layout}: {(whole - alone) | (alone - whole)}"
    assert not watch.wrong, f"{sql}, {layout}: {watch.wrong[:3]}"
    assert watch.calls, "no kernel was called"


def check_path(sql: str, layout: str) -> None:
    """With rows that no filter, bound or domain leaves out, and beside such that one does."""
    check_additive(sql, layout, GOOD)
    check_additive(sql, layout, [*GOOD, *BAD, *GOOD])
