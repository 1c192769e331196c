"""A new engine is a folder beside dpsql/executors/pandas/ and a line in ENGINES of dpsql/executors/base.py. Here a toy
one: tables of plain Python lists, added up one row after the other. It lacks much, and says so before it is charged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import NO_KEY, CellPart, CountRows, ExactPlan, ExactTable, LatticeSum
from dpsql.errors import InvalidArgument, InvalidSchema, UnsupportedSQL
from dpsql.executors import base
from dpsql.executors.resources import Resources
from dpsql.plan.domains import cells_of, vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Column, Expr, Vector
from dpsql.plan.nodes import Filter, Scan
from dpsql.plan.query import axes_of
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type
from dpsql.schema.declaration import StoredColumn
from dpsql.testing import Integers, insecure_draws, insecure_exact

Row = dict[str, Key]


class Lists:
    """A source of the toy engine: its columns as lists, None for NULL, and their types."""

    def __init__(self, columns: Mapping[str, list[Any]], types: Mapping[str, Type]) -> None:
        self.columns = columns
        self.types = types


@dataclass(frozen=True, repr=False)
class ListStore:
    source: Lists
    schema: TableSchema

    def rows(self) -> list[Row]:
        """Each row by itself, declared facts enforced on every cell."""
        cells = [
            [enforced(cell, column) for cell in self.source.columns[column.name]] for column in self.schema.columns
        ]
        names = [column.name for column in self.schema.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]

    def stamps(self) -> object:
        """Lists are always there."""
        return ()


def enforced(cell: Any, column: ColumnSchema) -> Key:
    if cell is not None and isinstance(cell, float) and math.isnan(cell):
        cell = None
    if cell is not None and not isinstance(cell, str if column.type is Type.TEXT else int | float):
        cell = None
    if cell is None or column.bounds is None:
        return cell
    held = min(max(cell, column.bounds.lower), column.bounds.upper)
    return float(held) if column.type is Type.REAL else int(held)


class ListExecutor:
    def __init__(self, stores: Mapping[str, ListStore]) -> None:
        self.stores = {name.casefold(): store for name, store in stores.items()}

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:  # noqa: ARG002 - no limits, no choice
        source, predicates = plan.source, []
        while isinstance(source, Filter):
            predicates.append(source.predicate)
            source = source.input
        assert isinstance(source, Scan)  # as of `lacks`
        groups: dict[tuple[Key, ...], list[int]] = {}
        if plan.every_cell:
            groups = {cells: [0] * len(plan.parts) for cells in cells_of_keys(plan)}
        for row in self.stores[source.table.name.casefold()].rows():
            if not all(value_of(predicate, row) is True for predicate in reversed(predicates)):
                continue
            cells = group_of(plan, row)
            if cells is not None:
                sums = groups.setdefault(cells, [0] * len(plan.parts))
                for place, part in enumerate(plan.parts):
                    sums[place] += added(part, row)
        columns = list(zip(*groups, strict=True)) if groups else [()] * len(plan.keys)
        keys = tuple(vector_of(cells, each.expr.type) for cells, each in zip(columns, plan.keys, strict=False))
        parts = np.array([*groups.values()], dtype=object).reshape(len(groups), len(plan.parts)).T
        return ExactTable(keys, parts, len(groups))


def cells_of_keys(plan: ExactPlan) -> Iterable[tuple[Key, ...]]:
    found: list[tuple[Key, ...]] = [()]
    for key in plan.keys:
        found = [(*cells, value) for cells in found for value in key.values or ()]
    return [cells for cells in found if stand_together(plan, cells)]


def stand_together(plan: ExactPlan, cells: tuple[Key, ...]) -> bool:
    """Whether keys that stand together have values that do."""
    for axis in axes_of(plan.keys):
        own = [plan.keys[place] for place in axis.keys]
        rows = zip(*(key.together.places for key in own if key.together is not None), strict=True)
        listed = {tuple((key.values or ())[at] for key, at in zip(own, row, strict=True)) for row in rows}
        if len(own) > 1 and tuple(cells[place] for place in axis.keys) not in listed:
            return False
    return True


def group_of(plan: ExactPlan, row: Row) -> tuple[Key, ...] | None:
    cells: list[Key] = []
    for key in plan.keys:
        cell = value_of(key.expr, row)
        if key.values is not None and cell not in key.values:
            if not key.listed or None not in key.values:
                return None
            cell = None
        cells.append(cell)
    return tuple(cells) if stand_together(plan, tuple(cells)) else None


def value_of(expr: Expr, row: Row) -> Key:
    """Expressions have one meaning for all engines: their own kernels, here over a block of one row."""

    def read(column: Column) -> Vector:
        return vector_of([row[column.name]], column.type)

    with np.errstate(all="ignore"):
        return cells_of(evaluate(expr, read, 1), expr.type)[0]


def cell_of(part: CellPart, row: Row) -> int:
    """The number of the first alternative that is TRUE, 0 where none is."""
    return next((number for number, each in enumerate(part.alternatives, 1) if value_of(each, row) is True), 0)


def added(part: Any, row: Row) -> int:
    """What a row adds to a part."""
    if isinstance(part, CellPart):
        return added(part.of, row) if cell_of(part, row) == part.number else 0
    if isinstance(part, CountRows):
        return int(part.present is None or value_of(part.present, row) is not None)
    value: Any = value_of(part.value, row)
    if value is None:
        return 0
    clipped = min(max(value, part.lower), part.upper)
    if part.whole:
        return int(min(max(int(clipped) - int(part.origin), part.least), part.most))
    steps = (float(clipped) - part.origin) * part.steps_per_unit
    return int(min(max(round(steps), part.least), part.most)) if math.isfinite(steps) else 0


class ListEngine:
    name = "lists"

    def takes(self, source: object) -> bool:
        return isinstance(source, Lists)

    def reads(self, source: object) -> bool:
        return isinstance(source, Lists)

    def columns(self, source: Lists) -> list[StoredColumn]:
        return [StoredColumn(name, source.types[name], True, "list") for name in source.columns]

    def public_frame(self, source: Lists, most: int) -> pd.DataFrame:
        frame = pd.DataFrame(source.columns)
        assert len(frame) <= most
        return frame

    def store(self, source: Any, schema: TableSchema) -> ListStore:
        if isinstance(source, pd.DataFrame):  # of a public table
            columns = {name: [None if pd.isna(cell) else cell for cell in source[name].tolist()] for name in source}
            source = Lists(columns, {column.name: column.type for column in schema.columns})
        return ListStore(source, schema)

    def together(self, sources: Mapping[str, object]) -> None:
        """All of its sources can be."""

    def open(self, stores: Mapping[str, ListStore]) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def executor(self, stores: Mapping[str, ListStore], sources: None = None) -> ListExecutor:  # noqa: ARG002
        return ListExecutor(stores)

    def within(self, resources: Resources) -> ListEngine:
        assert not resources.words
        return self

    def lacks(self, plan: ExactPlan) -> str | None:
        source = plan.source
        while isinstance(source, Filter):
            source = source.input
        if not isinstance(source, Scan):
            return type(source).__name__
        if plan.limits is not None or plan.groups is not None:
            return "limits of a unit's rows"
        if plan.grids:
            return "counts on a grid"
        parts = [each.of if isinstance(each, CellPart) else each for each in plan.parts]
        return next((type(each).__name__ for each in parts if not isinstance(each, CountRows | LatticeSum)), None)


COLUMNS: dict[str, list[Any]] = {
    "g": ["a", "b", "a", None, "c", "a", "b", "elsewhere"] * 5,
    "x": [1.25, 2.5, None, 40.0, -3.0, 0.1, 1e300, math.nan] * 5,
    "n": [1, 2, 3, None, 5, 90, -7, 0] * 5,
}
TYPES = {"g": Type.TEXT, "x": Type.REAL, "n": Type.INTEGER}
FACTS: dict[str, Any] = {"bounds": {"x": (0, 4), "n": (0, 60)}, "keys": {"g": ["a", "b", "c"]}}
FRAME = pd.DataFrame(
    {"g": pd.Series(COLUMNS["g"], dtype="str"), "x": COLUMNS["x"], "n": pd.array(COLUMNS["n"], dtype="Int64")}
)


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in base.py."""
    monkeypatch.setattr(base, "ENGINES", {**base.ENGINES, "lists": ListEngine()})


def session(source: object, **facts: Any) -> dpsql.Session:
    table: Any = dpsql.Table(source, **(FACTS | facts))
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e7, 1e-3))


def of_lists(**facts: Any) -> dpsql.Session:
    return session(Lists(COLUMNS, TYPES), **facts)


QUERIES = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FILTER (WHERE n > 2) AS a, SUM(CASE WHEN n > 2 THEN 0 WHEN g = 'a' THEN 1 END) AS b FROM t",
    "SELECT COUNT(x), COUNT(n) FROM t WHERE n > 1",
    "SELECT SUM(n), SUM(x) FROM t WHERE g <> 'a' AND x < 3",
    "SELECT AVG(x + n / 3) FROM t",
    "SELECT g, COUNT(*), AVG(x) FROM t GROUP BY g",
    "SELECT n // 20 AS d, g, SUM(x) AS s FROM t GROUP BY d, g",
    "SELECT n // 20 AS d, n > 30 AS h, g, COUNT(*) FROM t GROUP BY d, h, g",
    "SELECT UPPER(g) AS u, COUNT(*) FROM t WHERE LENGTH(g) = 1 GROUP BY u",
    "SELECT g, SUM(SQRT(x)) FROM t WHERE NOT g IN ('b') GROUP BY g HAVING COUNT(*) > 2 ORDER BY g DESC",
]


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("declared", [FACTS, FACTS | {"keys": {}}], ids=["listed keys", "unknown keys"])
def test_it_gives_the_same_integers(sql: str, declared: dict[str, Any]):
    terms = {"epsilon": 1, "delta": 1e-6}
    found, expected = (
        insecure_exact(each, sql, bytes(32), **terms) for each in (of_lists(**declared), session(FRAME, **declared))
    )
    assert {key: parts for key, parts in found.parts.items() if any(parts)} == {
        key: parts for key, parts in expected.parts.items() if any(parts)
    }
    assert set(found.parts) == set(expected.parts)
    assert isinstance(found, Integers)


def test_a_session_runs_it():
    lists, frame = of_lists(), session(FRAME)
    for sql in QUERIES:
        one, other = (held.query(sql, epsilon=1e4).df for held in (lists, frame))
        pd.testing.assert_frame_equal(one, other, atol=0.1, check_dtype=False)
    assert lists.spent.epsilon == frame.spent.epsilon
    drawn = insecure_draws(lists, "SELECT COUNT(*) AS n FROM t", 50, epsilon=1)["n"]
    assert abs(drawn.mean() - 40) < 3


def test_what_is_declared_of_it_is_kept_with_a_table():
    source: Any = Lists(COLUMNS, TYPES)
    declared = dpsql.declare(source, **FACTS)
    assert isinstance(declared, dpsql.Table)
    assert declared.frame is source
    held = dpsql.Session({"t": declared}, budget=dpsql.Budget(1e7))
    assert held.query("SELECT SUM(n) AS s FROM t", epsilon=1e5).df["s"].tolist() == [5 * (1 + 2 + 3 + 5 + 60)]


def test_a_session_that_has_public_tables_may_be_given_it_later():
    held = dpsql.Session({"codes": dpsql.Table(pd.DataFrame({"c": [1]}), public=True)}, budget=dpsql.Budget(1e7))
    source: Any = dpsql.Table(Lists(COLUMNS, TYPES), **FACTS)
    held.add("t", source)
    assert held.query("SELECT COUNT(*) AS n FROM t", epsilon=1e5).df["n"].tolist() == [40]
    with pytest.raises(UnsupportedSQL, match="the engine lists"):
        held.query("SELECT MEDIAN(x) FROM t", epsilon=1)


def test_a_single_query_runs_it():
    source: Any = Lists(COLUMNS, TYPES)
    result = dpsql.query(source, "SELECT SUM(n) AS s FROM df", epsilon=1e5, bounds={"n": (0, 60)})
    assert isinstance(result, dpsql.Result)
    assert result.df["s"].tolist() == [5 * (1 + 2 + 3 + 5 + 60 + 0 + 0)]


def test_what_it_lacks_is_refused_before_it_is_charged():
    plain, limited = of_lists(), of_lists(unit="n", max_rows=1)
    for held, sql, word in (
        (plain, "SELECT MEDIAN(x) FROM t", "counts on a grid"),
        (plain, "SELECT COUNT(DISTINCT g) FROM t", "CountDistinct"),
        (plain, "SELECT VAR_POP(x) FROM t", "LatticeProduct|LatticeShare"),
        (limited, "SELECT AVG(x) FROM t", "limits|UnitTotal"),
        (plain, "SELECT COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) AS u", "Union"),
    ):
        for ask in (held.query, held.explain, held.remaining_queries):
            with pytest.raises(UnsupportedSQL, match=f"the engine lists, .* has no ({word})"):
                ask(sql, epsilon=1)
        assert held.ledger() == ()
    source: Any = Lists(COLUMNS, TYPES)
    with pytest.raises(UnsupportedSQL, match="the engine lists"):
        dpsql.query(source, "SELECT MEDIAN(x) FROM df", epsilon=1, bounds={"x": (0, 4)})


def test_tables_of_two_engines_are_not_asked_together():
    source: Any = dpsql.Table(Lists(COLUMNS, TYPES))
    with pytest.raises(InvalidSchema, match="is read by the engine"):
        dpsql.Session({"t": source, "u": FRAME}, budget=dpsql.Budget(1))
    held = dpsql.Session({"t": source}, budget=dpsql.Budget(1))
    with pytest.raises(InvalidSchema, match="u is read by the engine pandas, and tables beside it by lists"):
        held.add("u", FRAME)
    assert held.tables == ("t",)


def test_public_tables_are_brought_to_it():
    public = dpsql.Table(pd.DataFrame({"code": ["a", "b", "z"]}), public=True, unique=["code"])
    source: Any = dpsql.Table(Lists(COLUMNS, TYPES), **FACTS)
    held = dpsql.Session({"codes": public, "t": source}, budget=dpsql.Budget(1e7))
    sql = "SELECT COUNT(*) AS n FROM t WHERE g IN ('a', 'b')"
    assert held.query(sql, epsilon=1e4).df["n"].tolist() == [25]
    assert held.query("SELECT COUNT(*) AS n FROM codes", epsilon=1).df["n"].tolist() == [3]
    with pytest.raises(UnsupportedSQL, match="has no Join"):
        held.query("SELECT COUNT(*) FROM t JOIN codes ON g = code", epsilon=1)
    held.add("p", dpsql.Table(Lists(COLUMNS, TYPES), public=True))
    assert held.query("SELECT COUNT(*) AS n FROM p", epsilon=1).df["n"].tolist() == [40]


def test_without_its_line_it_is_not_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(base, "ENGINES", {name: each for name, each in base.ENGINES.items() if name != "lists"})
    source: Any = Lists(COLUMNS, TYPES)
    with pytest.raises(InvalidArgument, match=r"or the path of a file, got Lists\."):
        dpsql.Table(source)
    with pytest.raises(InvalidArgument, match="got Lists"):
        dpsql.query(source, "SELECT COUNT(*) FROM df", epsilon=1)
