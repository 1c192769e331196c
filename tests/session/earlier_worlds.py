"""Random later releases over neighbouring tables, with planted values in the place of what earlier ones showed: values
that nobody would show too, such as NULL, infinities, doubles in a list that is said to have none, and more rows than a
text allows. What neighbours differ by is held against the charge as in `tests/core/brute_force.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import dpsql
from dpsql.executors.base import executor_of
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.engine import PANDAS
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import DTYPES, Vector, blank
from dpsql.plan.prior_releases import Input
from dpsql.postprocess.frames import Frame
from dpsql.release.release import Release
from dpsql.schema.columns import Type
from dpsql.session.multi_step.prior_releases import PriorReleases, seen
from tests.core.brute_force import Group, Integers, check_neighbours, check_total

KEY = bytes(range(32))
ODD: dict[Type, list[Any]] = {
    Type.INTEGER: [0, 1, 2, 3, 4, 2**53, 2**53 + 1, -(2**62) - 1, 2**63 - 1],
    Type.REAL: [0.0, 1.0, 1.5, 2.0, 3.0, 2.0**53, np.inf, -np.inf, np.nan],
    Type.TEXT: ["a", "b", "c", "", "value 0", "value 1"],
    Type.BOOLEAN: [True, False],
    Type.DATE: [0, 1, 10_000_000],
    Type.TIMESTAMP: [0, 1, 2**62],
}


@dataclass(frozen=True)
class World:
    """How the one table is declared, and what relates neighbours."""

    unit: bool
    hidden: bool
    relation: str
    facts: dict[str, Any]

    @classmethod
    def random(cls, rng: random.Random) -> World:
        unit = rng.random() < 0.5
        facts: dict[str, Any] = {"bounds": {"x": (0, 4), "y": (-2.0, 3.0)}}
        hidden = rng.random() < 0.3
        if not hidden:
            facts["keys"] = {"k": ["a", "b", "c"]}
        if unit:
            facts |= {"unit": "u", "max_rows": rng.choice([1, 2, 4])} | rng.choice([{}, {"max_groups": 2}])
        return cls(unit, hidden, rng.choice(["unbounded", "bounded"]), facts)

    def session(self) -> dpsql.Session:
        tables = {"t": dpsql.Table(frame([]), **self.facts)}
        return dpsql.Session(tables, budget=dpsql.Budget(10**6, 1e-3), neighbours=self.relation)

    def pairs(self, rng: random.Random, count: int) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        for _ in range(count):
            people = rng.choice([1, 1, 2, 3])
            rows = [[row(rng, who) for _ in range(rng.choice([1, 2, 5]) if self.unit else 1)] for who in range(people)]
            rest = [each for own in rows[1:] for each in own]
            other = [row(rng, 0) for _ in range(len(rows[0]))] if self.relation == "bounded" else []
            yield frame([*rest, *rows[0]]), frame([*rest, *other])


def row(rng: random.Random, who: int) -> tuple[Any, ...]:
    number = rng.choice([0, 1, 2, 3, 4, 2**53, 2**53 + 1, None])
    return who, rng.choice(["a", "b", "c", "d", None]), rng.choice([0, 1, 2, 4, None]), rng.uniform(-2, 3), number


def frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], [], []]
    return pd.DataFrame(
        {
            "u": pd.array(list(columns[0]), dtype="int64"),
            "k": pd.Series(list(columns[1]), dtype="str"),
            "x": pd.array(list(columns[2]), dtype="Int64"),
            "y": pd.array(list(columns[3]), dtype="float64"),
            "z": pd.array(list(columns[4]), dtype="Int64"),
        }
    )


VALUES = [
    "(SELECT AVG(x) FROM t)", "(SELECT COUNT(*) FROM t)", "(SELECT SUM(x) FROM t)", "(SELECT MAX(x) FROM t)",
    "(SELECT MAX(n) FROM (SELECT x, COUNT(*) AS n FROM t GROUP BY x))", "(SELECT COUNT(*) / 10 FROM t)",
]  # fmt: skip
LISTS = [
    ("k", "SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 2"),
    ("x", "SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 2"),
    ("k", "SELECT k, AVG(y) AS n FROM t GROUP BY k LIMIT 3"),
]
TWICE = [
    ("x", "(SELECT COUNT(*) AS x, 1 AS n FROM t UNION ALL SELECT 2, COUNT(*) FROM t)"),
    ("z", "(SELECT SUM(x) AS z, 1.5 AS n FROM t UNION ALL SELECT 2 + COUNT(*), 2.5 FROM t)"),
    ("z", "(SELECT AVG(y) AS z, COUNT(*) AS n FROM t)"),
]


class Statements:
    """Random statements whose last release reads what others show."""

    def __init__(self, rng: random.Random, world: World) -> None:
        self.rng, self.world = rng, world

    def statement(self) -> str:
        ways = [self.compared, self.compared, self.listed, self.joined, self.multiplied, self.nested, self.keyed]
        return self.rng.choice(ways)()

    def aggregates(self) -> str:
        value = self.rng.choice(VALUES)
        return self.rng.choice(
            [
                "COUNT(*)", "SUM(x)", "AVG(x)", "COUNT(*), AVG(y)", "COUNT(x), SUM(y)", "VAR_POP(x)",
                f"COUNT(*) FILTER (WHERE x > {value})", f"SUM(CASE WHEN x > {value} THEN x ELSE 0 END)",
                f"SUM(CLAMP(x - {value}, -2, 2))", f"AVG(CLAMP(x * {value}, 0, 8)), COUNT({value})",
                f"COUNT_IF(y < {value})", f"SUM(CLAMP({value}, 0, 3))", "QUANTILE(x, 0.5)",
            ]
        )  # fmt: skip

    def condition(self) -> str:
        value = self.rng.choice(VALUES)
        key, query = self.rng.choice(LISTS)
        listed = f"SELECT {key} FROM ({query}) q"
        return self.rng.choice(
            [
                f"x > {value}", f"y <= {value} / 2", f"x + 1 BETWEEN {value} AND 3", f"NOT (x = {value})",
                f"x IS NOT DISTINCT FROM {value}", f"{key} IN ({listed})", f"{key} NOT IN ({listed})",
                f"EXISTS ({query})", f"x > {value} OR k = 'a'", f"{value} IS NULL", f"x < COALESCE({value}, 2)",
            ]
        )  # fmt: skip

    def keys(self) -> str:
        return self.rng.choice(["", " GROUP BY x", "" if self.world.hidden else " GROUP BY k"])

    def compared(self) -> str:
        return f"SELECT {self.aggregates()} FROM t WHERE {self.condition()}{self.keys()}"

    def listed(self) -> str:
        key, query = self.rng.choice(LISTS)
        return f"SELECT {key}, {self.aggregates()} FROM t WHERE {key} IN (SELECT {key} FROM ({query}) q) GROUP BY {key}"

    def joined(self) -> str:
        key, query = self.rng.choice(LISTS)
        group = self.rng.choice([key, "q.n", f"{key}, q.n", f"{key}, x", f"q.{key}"])
        group = group if group != f"{key}, x" or key != "x" else "x"
        kind = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        keyed = "" if kind == "LEFT JOIN" or self.rng.random() < 0.3 else f" GROUP BY {group}"
        items = "" if not keyed else f"{group}, "
        aggregates = "COUNT(*), SUM(t.x)" if self.rng.random() < 0.7 else "COUNT(*) FILTER (WHERE q.n > t.x), AVG(y)"
        return f"SELECT {items}{aggregates} FROM t {kind} ({query}) q ON t.{key} = q.{key}{keyed}".replace(
            f"{key}, COUNT", f"t.{key}, COUNT"
        ).replace(f"GROUP BY {key}", f"GROUP BY t.{key}")

    def multiplied(self) -> str:
        key, query = self.rng.choice(TWICE)
        kind = self.rng.choice(["JOIN", "LEFT JOIN"])
        where = self.rng.choice(["", f" WHERE {self.condition().replace('k ', 't.k ')}"])
        where = "" if " x" in where or "(x" in where else where
        on = self.rng.choice([f"t.{key} = q.{key}", f"t.{key} = q.{key}", "TRUE"])
        kind = "JOIN" if on == "TRUE" else kind
        return f"SELECT COUNT(*), SUM(y), COUNT(q.n) FROM t {kind} {query} q ON {on}"

    def nested(self) -> str:
        if not self.world.unit:
            return self.compared()
        inner = f"SELECT u, COUNT(*) AS c, SUM(x) AS s FROM t WHERE {self.condition()} GROUP BY u"
        return f"SELECT COUNT(*), SUM(CLAMP(c, 0, 3)), AVG(CLAMP(s, 0, 9)) FROM ({inner})"

    def keyed(self) -> str:
        return f"SELECT x > {self.rng.choice(VALUES)} AS above, {self.aggregates()} FROM t GROUP BY above"


def planted(rng: random.Random, each: Input) -> Frame:
    """Rows in the place of what an earlier release shows: doubles, NULLs, and more of them than its text allows."""
    if each.column is not None:
        names, kinds, rows = ("value",), (each.column.type,), 1
    else:
        assert each.table is not None
        names = tuple(column.name for column in each.table.columns)
        kinds = tuple(column.type for column in each.table.columns)
        rows = rng.choice([0, 1, 2, (each.table.rows or 0) + 3])
    vectors = tuple(_vector([rng.choice([*ODD[kind], None]) for _ in range(rows)], kind) for kind in kinds)
    return Frame(names, kinds, vectors)


def _vector(cells: list[Any], kind: Type) -> Vector:
    valid = np.array([cell is not None for cell in cells], dtype=bool)
    values: Any = np.empty(len(cells), dtype=object if kind is Type.INTEGER else DTYPES[kind])
    values[:] = [blank(kind) if cell is None else cell for cell in cells]
    return Vector(values, valid)


@dataclass
class Met:
    statements: int = 0
    refused: int = 0
    pairs: int = 0


def integers(data: pd.DataFrame, schema: Any, made: Release, put_in: PriorReleases) -> Integers:
    stores: dict[str, Any] = {"t": ColumnStore(data, schema), **put_in.stores}
    plan = put_in.plan(made.exact)
    table = executor_of(stores, PANDAS).execute(plan, KEY)
    columns = [cells_of(vector, each.expr.type) for vector, each in zip(table.keys, plan.keys, strict=True)]
    groups: list[Group] = list(zip(*columns, strict=True)) if columns else [()] * table.groups
    assert len(set(groups)) == len(groups)
    parts = {group: tuple(int(each) for each in table.parts[:, at]) for at, group in enumerate(groups)}
    points: list[tuple[dict[int, int], ...]] = [tuple({} for _ in table.grids) for _ in groups]
    for number, grid in enumerate(table.grids):
        for at, point, count in zip(grid.groups.tolist(), grid.points.tolist(), grid.counts.tolist(), strict=True):
            points[at][number][point] = count
    return Integers(parts, dict(zip(groups, points, strict=True)))


def ask(rng: random.Random, met: Met, *, texts: int = 6, values: int = 3, pairs: int = 4) -> None:
    """Some statements of one random world, each with some planted values over some neighbours."""
    world = World.random(rng)
    session = world.session()
    schema = session.catalog.tables["t"]
    statements = Statements(rng, world)
    delta = 1e-6 if world.hidden else None
    for _ in range(texts):
        sql = statements.statement()
        met.statements += 1
        try:
            prepared = session._prepare(sql, (1.0, delta, None, None, None), params=None)
        except dpsql.errors.InternalError:
            raise
        except dpsql.DPSQLError:
            met.refused += 1
            continue
        if prepared.postprocess is None or not prepared.reads_prior_releases:
            continue
        place = next(at for at, step in reversed(list(enumerate(prepared.postprocess.firsts))) if step.inputs)
        made, inputs = prepared.releases[place], prepared.postprocess.firsts[place].inputs
        check_total(made, sql)
        if made.provisional:
            continue
        for _ in range(values):
            frames = [planted(rng, each) for each in inputs]
            put_in = seen(inputs, frames, made.query.plan.input, made.query.plan.keys, {})
            for one, other in world.pairs(rng, pairs):
                where = f"{sql}\n{world}\n{frames}\n{one}\n{other}"
                here, there = integers(one, schema, made, put_in), integers(other, schema, made, put_in)
                check_neighbours(made, here, there, where)
                met.pairs += 1
