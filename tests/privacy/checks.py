"""Checks of privacy that the honest tests and the planted lies share: each raises AssertionError where it fails.

They look at the seams of the engine: the declared reach of a `Release` beside the exact integers of an executor, for
every neighbour of small tables; probabilities of the noise beside the declared loss.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import dpsql
from dpsql import api, finish, prepare, release, session
from dpsql.executors import columns, pandas
from dpsql.executors.base import ExactTable
from dpsql.privacy import mechanisms, sampling
from dpsql.privacy.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.privacy.unit import Neighbours
from dpsql.release import Release
from dpsql.schema import Declaration, TableSchema, resolve
from dpsql.sources import stored_columns
from dpsql.sql.catalog import Catalog
from dpsql.sql.expressions import Vector

Row = tuple[Any, ...]
Group = tuple[Any, ...]
Cells = dict[Group, tuple[int, ...]]

U, B = "unbounded", "bounded"


# Tables of a few rows and what the engine makes of them


@dataclass(frozen=True)
class Shape:
    """The public side of a table: its columns' dtypes and what is declared of them."""

    dtypes: dict[str, Any]
    declared: dict[str, Any] = field(default_factory=dict)

    def frame(self, rows: Sequence[Row]) -> pd.DataFrame:
        cells = list(zip(*rows, strict=True)) or [()] * len(self.dtypes)
        return pd.DataFrame(
            {name: series(column, dtype) for (name, dtype), column in zip(self.dtypes.items(), cells, strict=True)}
        )

    def schema(self, **more: Any) -> TableSchema:
        return resolve("t", stored_columns(self.frame([])), Declaration.of(**{**self.declared, **more}))


def series(cells: Sequence[Any], dtype: Any) -> pd.Series:
    if dtype is object:
        array = np.empty(len(cells), dtype=object)
        array[:] = [None] * len(cells)
        for i, cell in enumerate(cells):
            array[i] = cell
        return pd.Series(array, dtype=object)
    return pd.Series(list(cells), dtype=dtype)


def calibrated(
    schema: TableSchema,
    sql: str,
    neighbours: str = U,
    *,
    epsilon: object = 1,
    delta: object = 0,
    strategy: str = "auto",
    mechanism: str = "auto",
) -> Release:
    """The release of a query about table t: what `query` does before it reads a row. Planned afresh, not cached."""
    prepare._cache.clear()
    loss = PrivacyLoss(as_epsilon(epsilon), as_delta(delta))
    relation = Neighbours.of(neighbours)
    catalog = Catalog({"t": schema})
    return prepare.prepare(sql, catalog, relation, loss, strategy=strategy, mechanism=mechanism).release


def run_exactly(made: Release, schema: TableSchema, frame: pd.DataFrame) -> ExactTable:
    """The exact integers of a release over a frame."""
    store = columns.ColumnStore(frame, schema)
    return pandas.PandasExecutor({"t": store}).execute(made.exact)


def cells_of(made: Release, exact: ExactTable) -> Cells:
    """Coordinates by group: the exact vector that noise is added to, by the group's key."""
    steps = made.coordinate_steps(exact.parts)
    names = list(zip(*[_python(key) for key in exact.keys], strict=True)) if exact.keys else [()] * exact.groups
    assert len(set(names)) == len(names), "one group twice"
    return {name: tuple(int(x) for x in steps[:, i]) for i, name in enumerate(names)}


def _python(key: Any) -> list[Any]:
    valid = [True] * len(key.values) if key.valid is None else key.valid.tolist()
    return [value if present else None for value, present in zip(key.values.tolist(), valid, strict=True)]


# Neighbours


@dataclass
class Distance:
    """The largest distances met over all neighbours, beside what is declared."""

    steps: int = 0
    l2_squared: int = 0
    coordinate: dict[int, int] = field(default_factory=dict)
    one_sided: int = 0
    pairs: int = 0


def every_table(universe: Sequence[Row], most: int) -> list[tuple[int, ...]]:
    """All multisets of rows, as sorted tuples of places in `universe`."""
    places = range(len(universe))
    return [t for size in range(most + 1) for t in itertools.combinations_with_replacement(places, size)]


def neighbouring_pairs(tables: Iterable[tuple[int, ...]], universe: int, relation: str) -> Iterable[tuple[Any, Any]]:
    """Every pair of the given multisets at distance one; for bounded neighbours each pair once."""
    present = set(tables)
    for table in present:
        if relation == U:
            for i in set(table):
                smaller = list(table)
                smaller.remove(i)
                yield table, tuple(smaller)
        else:
            for i in set(table):
                for j in range(i + 1, universe):
                    changed = [*table]
                    changed[changed.index(i)] = j
                    yield table, tuple(sorted(changed))


def distances(
    shape: Shape,
    sql: str,
    universe: Sequence[Row],
    relation: str,
    *,
    most: int = 3,
    seed: int = 0,
    options: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
) -> tuple[Release, Distance]:
    """Compare the exact answers of all neighbours among the tables of up to `most` rows with the declared reach.

    Everything is checked in integers. Rows are shuffled for every table: their order must not matter.
    """
    schema = shape.schema(**(more or {}))
    made = calibrated(schema, sql, relation, **(options or {}))
    shuffled = np.random.default_rng(seed)
    tables = every_table(universe, most)
    answers: dict[tuple[int, ...], Cells] = {}
    for table in tables:
        order = shuffled.permutation(len(table))
        rows = [universe[table[i]] for i in order]
        answers[table] = cells_of(made, run_exactly(made, schema, shape.frame(rows)))
    met = Distance()
    for one, other in neighbouring_pairs(tables, len(universe), relation):
        _compare(made, answers[one], answers[other], met, f"{sql} | {relation} | {one} {other} of {list(universe)}")
    return made, met


def _compare(made: Release, one: Cells, other: Cells, met: Distance, where: str) -> None:
    coordinates, reach = made.coordinates, made.reach
    noisy = [i for i, each in enumerate(coordinates) if each.noisy]
    zero = (0,) * len(coordinates)
    steps = squares = 0
    per_coordinate = dict.fromkeys(range(len(coordinates)), 0)
    one_sided = 0
    for group in one.keys() | other.keys():
        a, b = one.get(group, zero), other.get(group, zero)
        change = [abs(x - y) for x, y in zip(a, b, strict=True)]
        steps += max((change[i] for i in noisy), default=0)
        squares += sum(change[i] ** 2 for i in noisy)
        for i, by in enumerate(change):
            per_coordinate[i] += by
        if (group in one) != (group in other):
            one_sided += 1
            alone = (one.get(group) or other[group])[made.lattice.selection]
            assert abs(alone) <= made.lattice.one_unit, f"a group of one unit counts {alone} steps: {where}"
    assert steps <= reach.steps, f"max-norm {steps} of {reach.steps}: {where}"
    assert squares <= reach.l2_squared, f"squared L2 {squares} of {reach.l2_squared}: {where}"
    for i, by in per_coordinate.items():
        limit = reach.steps if coordinates[i].noisy else 0
        assert by <= limit, f"coordinate {coordinates[i].name} moves {by} of {limit}: {where}"
        assert by <= coordinates[i].sensitivity, f"{coordinates[i].name}: {by} of {coordinates[i].sensitivity}: {where}"
    if made.exact.every_cell:
        assert one_sided == 0, f"a public group comes or goes: {where}"
    else:
        assert one_sided <= made.lattice.groups_of_a_unit, f"{one_sided} groups come or go: {where}"
    met.pairs += 1
    met.steps = max(met.steps, steps)
    met.l2_squared = max(met.l2_squared, squares)
    met.one_sided = max(met.one_sided, one_sided)
    for i, by in per_coordinate.items():
        met.coordinate[i] = max(met.coordinate.get(i, 0), by)


# Many releases at once


def stacked(exact: ExactTable, times: int) -> ExactTable:
    """The exact table with every group `times` over: one draw of it is as many independent releases. A key in front
    numbers the copies."""
    numbers = Vector(np.tile(np.arange(times, dtype=np.int64), exact.groups))
    keys = [Vector(np.repeat(k.values, times), None if k.valid is None else np.repeat(k.valid, times)) for k in exact.keys]
    return ExactTable((numbers, *keys), np.repeat(exact.parts, times, axis=1), exact.groups * times)


def releases(made: Release, exact: ExactTable, times: int) -> Any:
    """Noisy coordinates of many releases, shape (times, groups, coordinates); NaN where a group is hidden."""
    released = made.privatise(stacked(exact, times))
    values = np.full((len(made.coordinates), exact.groups * times), np.nan)
    order = np.arange(exact.groups * times)
    if released.groups < exact.groups * times:
        order = _places(released, exact, times)
    values[:, order] = released.values
    return values.reshape(len(made.coordinates), exact.groups, times).transpose(2, 1, 0)


def _places(released: Any, exact: ExactTable, times: int) -> Any:
    """Where each shown group stands among all: by its copy's number and its own key."""
    groups = list(zip(*[_python(key) for key in exact.keys], strict=True))
    shown = zip(*[_python(key) for key in released.keys[1:]], strict=True)
    which = np.array([groups.index(name) for name in shown], dtype=np.int64)
    return which * times + released.keys[0].values


# The rules of sensitivity, each with the universe of rows in which it is tight

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class Rule:
    """One query whose declared sensitivities are attained by some neighbours.

    `real`: the norms (L1, L2, Linf) over groups of the first aggregation's sum, or of its count where it has none, in the
    column's own units, from the tables of the design, not from the engine. `joint_l2`: the squared L2 of the whole
    vector is attained too; where it is False it is a sum of maxima that no single neighbour attains together.
    """

    name: str
    sql: str
    relation: str
    real: tuple[float, float, float]
    joint_l2: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}, {self.relation}"


ROWS = Shape(
    {"x": "float64", "y": "float64", "p": "int64", "n": "Int64", "g": object},
    {"bounds": {"x": (-1, 3), "y": (-1, 3), "p": (20, 30), "n": (-4, 5)}, "nullable": {"x": False}},
)
UNIVERSE: tuple[Row, ...] = (
    (-1.0, -1.0, 20, -4, "a"),
    (3.0, 3.0, 30, 5, "b"),
    (INF, NAN, 99, None, "a"),
    (-INF, 0.5, -7, -99, None),
    (NAN, -INF, 25, 0, "zz"),
    (2.0, INF, 20, 5, 7),
)
R2 = 2**0.5
LISTED: dict[str, Any] = {"more": {"keys": {"g": ["a", "b", None]}}}
UNLISTED: dict[str, Any] = {"options": {"delta": 1e-6}}

RULES = (
    Rule("count", "SELECT COUNT(*) FROM t", U, (1, 1, 1)),
    Rule("count", "SELECT COUNT(*) FROM t", B, (0, 0, 0)),
    Rule("filtered count", "SELECT COUNT(*) FROM t WHERE p > 22", U, (1, 1, 1)),
    Rule("filtered count", "SELECT COUNT(*) FROM t WHERE p > 22", B, (1, 1, 1)),
    Rule("nullable count", "SELECT COUNT(n) FROM t", U, (1, 1, 1)),
    Rule("nullable count", "SELECT COUNT(n) FROM t", B, (1, 1, 1)),
    Rule("count of what is declared not null", "SELECT COUNT(x) FROM t", B, (0, 0, 0)),
    Rule("sum", "SELECT SUM(x) FROM t", U, (3, 3, 3)),
    Rule("sum", "SELECT SUM(x) FROM t", B, (4, 4, 4)),
    Rule("sum far from 0", "SELECT SUM(p) FROM t", U, (30, 30, 30)),
    Rule("sum far from 0", "SELECT SUM(p) FROM t", B, (10, 10, 10)),
    Rule("sum below 0", "SELECT SUM(-p) FROM t", U, (30, 30, 30)),
    Rule("nullable sum", "SELECT SUM(y) FROM t", U, (3, 3, 3)),
    Rule("nullable sum", "SELECT SUM(y) FROM t", B, (4, 4, 4)),
    Rule("nullable sum far from 0", "SELECT SUM(n + 6) FROM t", B, (11, 11, 11)),
    Rule("filtered sum far from 0", "SELECT SUM(p) FROM t WHERE x > 0", U, (30, 30, 30)),
    Rule("filtered sum far from 0", "SELECT SUM(p) FROM t WHERE x > 0", B, (30, 30, 30)),
    Rule("narrowed sum", "SELECT SUM(p) FROM t WHERE p <= 25", U, (25, 25, 25)),
    Rule("narrowed sum", "SELECT SUM(x) FROM t WHERE x BETWEEN 2 AND 3", B, (3, 3, 3)),
    Rule("average", "SELECT AVG(x) FROM t", U, (3, 3, 3)),
    Rule("average", "SELECT AVG(x) FROM t", B, (4, 4, 4)),
    Rule("average, split", "SELECT AVG(x) FROM t", U, (3, 3, 3), options={"strategy": "split"}),
    Rule("average of integers", "SELECT AVG(p) FROM t", U, (30, 30, 30)),
    Rule("average of integers", "SELECT AVG(p) FROM t", B, (10, 10, 10)),
    Rule("nullable average", "SELECT AVG(n) FROM t", U, (5, 5, 5)),
    Rule("nullable average", "SELECT AVG(n) FROM t", B, (9, 9, 9), joint_l2=False),
    Rule("filtered average", "SELECT AVG(p) FROM t WHERE x > 0", B, (30, 30, 30), joint_l2=False),
    Rule("several columns", "SELECT AVG(x), SUM(p), COUNT(*), COUNT(n) FROM t", U, (3, 3, 3)),
    Rule("several columns", "SELECT SUM(x), AVG(y), COUNT(n) FROM t", B, (4, 4, 4), joint_l2=False),
    Rule("counts by listed group", "SELECT g, COUNT(*) FROM t GROUP BY g", U, (1, 1, 1), **LISTED),
    Rule("counts by listed group", "SELECT g, COUNT(*) FROM t GROUP BY g", B, (2, R2, 1), **LISTED),
    Rule("sums by listed group", "SELECT g, SUM(p) FROM t GROUP BY g", U, (30, 30, 30), **LISTED),
    Rule("sums by listed group", "SELECT g, SUM(p) FROM t GROUP BY g", B, (60, 30 * R2, 30), **LISTED),
    Rule("signed sums by group", "SELECT g, SUM(n) FROM t GROUP BY g", B, (10, 9, 9), **LISTED),
    Rule("averages by listed group", "SELECT g, AVG(x) FROM t GROUP BY g", U, (3, 3, 3), **LISTED),
    Rule("averages by listed group", "SELECT g, AVG(x) FROM t GROUP BY g", B, (6, 3 * R2, 4), joint_l2=False, **LISTED),
    Rule("counts by group", "SELECT g, COUNT(*) FROM t GROUP BY g", U, (1, 1, 1), **UNLISTED),
    Rule("counts by group", "SELECT g, COUNT(*) FROM t GROUP BY g", B, (2, R2, 1), **UNLISTED),
    Rule("sums by group", "SELECT g, SUM(p) FROM t GROUP BY g", U, (30, 30, 30), **UNLISTED),
    Rule("sums by group", "SELECT g, SUM(p) FROM t GROUP BY g", B, (60, 30 * R2, 30), joint_l2=False, **UNLISTED),
    Rule("averages by group", "SELECT g, AVG(n), COUNT(*) FROM t GROUP BY g", U, (5, 5, 5), **UNLISTED),
    Rule("averages by group", "SELECT g, AVG(n) FROM t GROUP BY g", B, (10, 9, 9), joint_l2=False, **UNLISTED),
    Rule("groups by a bounded integer", "SELECT n, COUNT(*) FROM t GROUP BY n", B, (2, R2, 1)),
    Rule("groups by a real", "SELECT y, SUM(p) FROM t GROUP BY y", U, (30, 30, 30), **UNLISTED),
)


def check_rule(rule: Rule, most: int = 2) -> None:
    """The declared sensitivities of a rule hold for all neighbours, and are attained."""
    made, met = distances(ROWS, rule.sql, UNIVERSE, rule.relation, most=most, options=rule.options, more=rule.more)
    measured = made.analysis.measured[0]
    norms = made.analysis.of(measured.sum or measured.count)
    declared = (norms.l1, norms.l2, norms.linf)
    assert np.allclose(declared, rule.real, rtol=1e-9), f"{rule}: declared {declared}, derived {rule.real}"
    slack = 1 + 2**-30  # a range's ends are rounded outward to the grid: a step more
    assert made.reach.steps <= met.steps * slack, f"{rule}: {made.reach.steps} declared, {met.steps} attained"
    for i, each in enumerate(made.coordinates):
        attained = met.coordinate[i]
        assert each.sensitivity <= attained * slack, f"{rule}: {each.name}: {each.sensitivity}, {attained}"
    if rule.joint_l2:
        assert made.reach.l2_squared <= met.l2_squared * slack**2, f"{rule}: {made.reach.l2_squared}, {met.l2_squared}"
    if not made.exact.every_cell:
        assert met.one_sided == made.lattice.groups_of_a_unit
