"""Checks of privacy that the honest tests and the planted lies share: each raises AssertionError where it fails.

They look at the seams of the engine: the declared reach of a `Release` beside the exact integers of an executor, for
every neighbour of small tables; probabilities of the noise beside the declared loss.
"""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import dpsql
from dpsql.core.exact import ExactTable, LatticeSum, Part
from dpsql.core.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.core.mechanisms import noise as mechanisms
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.group_vectors import EACH, EITHER, GroupVectorLaplace
from dpsql.core.sensitivity.norms import sensitivity_of
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.core.unit import Neighbours
from dpsql.executors.pandas import executor as pandas
from dpsql.executors.pandas import groups
from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.executors.pandas.evaluation import evaluator
from dpsql.plan import facts
from dpsql.plan.expressions import Expr, Fact, Vector
from dpsql.plan.facts import known_of
from dpsql.plan.nodes import filters_of
from dpsql.release.design import choose
from dpsql.release.release import Release
from dpsql.release.values import argument_of, count_of
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import Declaration, resolve
from dpsql.session import prepare
from dpsql.sources.frames import stored_columns
from dpsql.sql.names.catalog import Catalog
from tests.measured import assert_across, by_chance, by_weights, height_of, norm_of

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
        return frame_of(self.dtypes, rows)

    def schema(self, **more: Any) -> TableSchema:
        return resolve("t", stored_columns(self.frame([])), Declaration.of(**{**self.declared, **more}))


_FRAMES: dict[tuple[str, str], tuple[Sequence[Row], pd.DataFrame]] = {}
"""Frames by how columns and rows are written, so that 1, 1.0 and TRUE are three; beside the rows, whose cells live as
long as what is written of them."""
_MOST_FRAMES = 20_000


def frame_of(dtypes: Mapping[str, Any], rows: Sequence[Row]) -> pd.DataFrame:
    """A frame of its own, of rows that most checks ask about again and again: it is pandas that takes the time."""
    place = repr(dtypes), repr(rows)
    if place not in _FRAMES:
        if len(_FRAMES) >= _MOST_FRAMES:
            _FRAMES.clear()
        cells = list(zip(*rows, strict=True)) or [()] * len(dtypes)
        made = {name: series(column, dtype) for (name, dtype), column in zip(dtypes.items(), cells, strict=True)}
        _FRAMES[place] = rows, pd.DataFrame(made)
    return _FRAMES[place][1].copy(deep=False)


def some_rows(frame: pd.DataFrame, places: list[int]) -> pd.DataFrame:
    """Those rows, as a frame of its own."""
    return frame.iloc[places].reset_index(drop=True)


def series(cells: Sequence[Any], dtype: Any) -> pd.Series:
    if dtype is not object and dtype != "UInt64":
        return pd.Series(list(cells), dtype=dtype)
    array = np.empty(len(cells), dtype=object)
    array[:] = [None] * len(cells)
    for i, cell in enumerate(cells):
        array[i] = cell
    return pd.Series(array, dtype=dtype)  # a list of numbers below and above 2^63 goes through float64 on its way


def calibrated(
    schema: TableSchema,
    sql: str,
    neighbours: str = U,
    *,
    epsilon: object = 1,
    delta: object = 0,
    strategy: str = "auto",
    mechanism: str = "auto",
    params: dict[str, Any] | None = None,
) -> Release:
    """The release of a query about table t: what `query` does before it reads a row. Planned afresh, not cached."""
    prepare._cache.clear()
    loss = PrivacyLoss(as_epsilon(epsilon), as_delta(delta))
    relation = Neighbours.of(neighbours)
    catalog = Catalog({"t": schema})
    terms = prepare.Terms(loss.epsilon, loss.delta)
    made = prepare.prepare(
        sql, catalog, relation, terms, params=params, strategy=strategy, mechanism=mechanism
    ).releases[0]
    assert made.cost.within(loss), f"{sql}: {made.cost} charged of {loss}"
    return made


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
    every_row = shape.frame(universe)
    for table in tables:
        order = shuffled.permutation(len(table))
        rows = some_rows(every_row, [table[i] for i in order])
        answers[table] = cells_of(made, run_exactly(made, schema, rows))
    met = Distance()
    for one, other in neighbouring_pairs(tables, len(universe), relation):
        _compare(made, answers[one], answers[other], met, f"{sql} | {relation} | {one} {other} of {list(universe)}")
    return made, met


def _compare(made: Release, one: Cells, other: Cells, met: Distance, where: str) -> None:
    """The noisy coordinates of every share against what that share protects, and the silent ones against 0."""
    coordinates = made.coordinates
    noisy = [i for i, each in enumerate(coordinates) if each.noisy]
    assert sorted(place for share in made.shares for place in share.places) == noisy, f"noise missing or twice: {where}"
    zero = (0,) * len(coordinates)
    steps = squares = 0
    per_share = [[0, 0, 0] for _ in made.shares]
    per_coordinate = dict.fromkeys(range(len(coordinates)), 0)
    one_sided = 0
    signed: list[list[int]] = []
    for group in one.keys() | other.keys():
        a, b = one.get(group, zero), other.get(group, zero)
        change = [abs(x - y) for x, y in zip(a, b, strict=True)]
        signed.append([x - y for x, y in zip(a, b, strict=True)])
        steps += max((norm_of(share, change) for share in made.shares), default=0)
        squares += sum(change[i] ** 2 for i in noisy)
        for found, share in zip(per_share, made.shares, strict=True):
            found[0] += norm_of(share, change)
            found[1] += sum(change[i] ** 2 for i in share.places)
            found[2] += any(change[i] for i in share.places)
        for i, by in enumerate(change):
            per_coordinate[i] += by
        if (group in one) != (group in other):
            one_sided += 1
            alone = (
                0 if by_chance(made) or by_weights(made) else (one.get(group) or other[group])[made.lattice.selection]
            )
            assert abs(alone) <= made.lattice.most_of_a_unit, f"a group of one unit counts {alone} steps: {where}"
    for (largest, squared, in_groups), share in zip(per_share, made.shares, strict=True):
        assert largest <= share.reach.cube_sensitivity, f"max-norm {largest} of {share.reach.cube_sensitivity}: {where}"
        assert squared <= share.reach.l2_squared, f"squared L2 {squared} of {share.reach.l2_squared}: {where}"
        assert in_groups <= (share.reach.groups or 0), f"{in_groups} groups of {share.reach.groups} move: {where}"
    for share in made.shares:
        assert_across(share, signed, where)
    sensitivities = moved(made)
    for i, by in per_coordinate.items():
        held = made.share_of(i)
        limit = held.reach.cube_sensitivity if held is not None else 0
        assert by <= limit, f"coordinate {coordinates[i].name} moves {by} of {limit}: {where}"
        assert by <= sensitivities[i], f"{coordinates[i].name}: {by} of {sensitivities[i]}: {where}"
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


def rows_add_up(made: Release, schema: TableSchema, shape: Shape, rows: Sequence[Row]) -> None:
    """The answer of a table is the sum of the answers of its rows, each alone: no row changes what another one adds,
    whatever dictionaries, blocks and threads they share."""
    whole = shape.frame(rows)
    places = {repr(row): place for place, row in enumerate(rows)}
    alone = {
        name: cells_of(made, run_exactly(made, schema, some_rows(whole, [place]))) for name, place in places.items()
    }
    expected: dict[Group, list[int]] = {}
    for row in rows:
        for group, cells in alone[repr(row)].items():
            held = expected.setdefault(group, [0] * len(cells))
            expected[group] = [x + y for x, y in zip(held, cells, strict=True)]
    with mock.patch.object(pandas, "BLOCK", 7), mock.patch.object(groups, "BLOCK", 7):
        found = cells_of(made, run_exactly(made, schema, whole))
    assert found == {group: tuple(cells) for group, cells in expected.items()}


# Facts: what the analysis says of an expression, beside its values


def facts_hold(made: Release, schema: TableSchema, frame: pd.DataFrame) -> None:
    """Every aggregated expression of a release lies in its range, and is NULL only where it may be, at every row that
    the filters let through. (The executor clips all the same: a wrong fact is a wrong answer, not a breach.)"""
    store = columns.ColumnStore(frame, schema)
    known = known_of(made.exact.source)
    with np.errstate(all="ignore"):
        passes = np.ones(len(frame), dtype=bool)
        for predicate in filters_of(made.exact.source):
            verdict = evaluator(predicate, store)(0, len(frame))
            passes &= verdict.values & verdict.where_valid()
        for each in made.query.plan.aggregations:
            if each.argument is not None:
                held = facts.fact(each.argument, known)
                _check_fact(each.argument, held, evaluator(each.argument, store)(0, len(frame)), passes)


def _check_fact(expr: Expr, held: Fact, found: Vector, passes: Any) -> None:
    valid = found.where_valid()
    assert held.nullable or valid[passes].all(), f"{expr} is NULL, and was said not to be"
    if expr.type.numeric or expr.type.temporal:
        outside = [value for value in found.values[passes & valid].tolist() if value not in held.range]
        assert not outside, f"{expr}: {outside[:3]} outside {held.range}"
        assert not held.whole or expr.type.discrete, f"{expr} is said to be whole"


# Many releases at once


def stacked(exact: ExactTable, times: int) -> ExactTable:
    """The exact table with every group `times` over: one draw of it is as many independent releases. A key in front
    numbers the copies."""
    numbers = Vector(np.tile(np.arange(times, dtype=np.int64), exact.groups))
    keys = [
        Vector(np.repeat(k.values, times), None if k.valid is None else np.repeat(k.valid, times)) for k in exact.keys
    ]
    return ExactTable((numbers, *keys), np.repeat(exact.parts, times, axis=1), exact.groups * times)


class CopiesOf(GroupVectorLaplace):
    """The same law for a table of copies (see `stacked`): a draw for all groups of each."""

    def draw(self, cells: int) -> Any:
        own, groups = self.kinds.count(EACH), 2 if EITHER in self.kinds else 1
        if own:
            groups = (self.dimension - len(self.kinds) + own) // own
        times, rows = cells // groups, []
        flat = samplers.cube_laplace(self.exact_scale, self.dimension, max(1, times))[:, :times]
        for kind in self.kinds:
            size = groups if kind == EACH else 1
            one, flat = flat[:size], flat[size:]
            rows.append((np.concatenate([one, -one]) if kind == EITHER else np.repeat(one, groups // size, 0)).ravel())
        return np.stack(rows)


@contextmanager
def each_group_by_itself() -> Iterator[None]:
    """Without the design that has one draw for all groups of a query."""
    rest = [each for each in choose.CANDIDATES if each is not choose._across]
    with mock.patch.object(choose, "CANDIDATES", rest):
        yield


def of_copies(made: Release) -> Release:
    """The release as it is run over a table of copies."""
    found: list[Any] = []
    for each in made.measurements:
        noise = getattr(each, "noise", None)
        copied = isinstance(noise, GroupVectorLaplace)
        found.append(replace(each, noise=_copies(noise)) if copied else each)  # type: ignore[type-var,arg-type]
    return replace(made, measurements=tuple(found))


def _copies(noise: GroupVectorLaplace) -> CopiesOf:
    return CopiesOf(noise.exact_scale, noise.dimension, noise.epsilon, noise.kinds)


def releases(made: Release, exact: ExactTable, times: int) -> Any:
    """Noisy coordinates of many releases, shape (times, groups, coordinates); NaN where a group is hidden. Of cells, an
    answer shows sums over some: here is what those are made of."""
    noisy = [place for place, each in enumerate(made.coordinates) if each.noisy]
    found = made.asked.measured(of_copies(made).measurements, stacked(exact, times), noisy)
    values = np.full((len(made.coordinates), exact.groups * times), np.nan)
    order = np.arange(exact.groups * times)
    if found.steps.shape[1] < exact.groups * times:
        order = _places(found, exact, times)
    values[:, order] = found.steps * np.array([[each.unit] for each in made.coordinates])
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

    `real`: the norms (L1, L2, Linf) over groups of the first aggregation's sum, or of its count where it has none, in
    the column's own units, derived by hand, not taken from the engine. `joint_l2`: the squared L2 of the whole
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
    {"x": "float64", "y": "float64", "p": "int64", "n": "Int64", "g": "str"},
    {"bounds": {"x": (-1, 3), "y": (-1, 3), "p": (20, 30), "n": (-4, 5)}, "nullable": {"x": False}},
)
UNIVERSE: tuple[Row, ...] = (
    (-1.0, -1.0, 20, -4, "a"),
    (3.0, 3.0, 30, 5, "b"),
    (INF, NAN, 99, None, "a"),
    (-1e6, 0.5, -7, -99, None),
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


def declared_of(measured: MeasuredAggregation, analysis: Analysis) -> tuple[float, float, float]:
    """What the engine says of an aggregation's sum, or of its count where it has none, in the column's own units."""
    part: Part = count_of(measured)
    steps = 1
    if measured.sum is not None:
        steps, held = 2**20, measured.sum.range
        ends = int(held.lower * steps), int(held.upper * steps)
        part = LatticeSum(argument_of(measured), held.lower, held.upper, 0, steps, *ends, whole=False)
    found = sensitivity_of((part,), ((0, 1),), analysis)
    return found.l1 / steps, found.l2 / steps, found.linf / steps


def moved(made: Release) -> list[float]:
    """The L1 sensitivity of each coordinate, as the engine derives it."""
    return [made.sensitivity(place).l1 for place in range(len(made.coordinates))]


def check_rule(rule: Rule, most: int = 2) -> None:
    """The declared sensitivities of a rule hold for all neighbours, and are attained."""
    made, met = distances(ROWS, rule.sql, UNIVERSE, rule.relation, most=most, options=rule.options, more=rule.more)
    measured = made.analysis.measured[0]
    declared = declared_of(measured, made.analysis)
    assert np.allclose(declared, rule.real, rtol=1e-9), f"{rule}: declared {declared}, derived {rule.real}"
    slack = 1 + 2**-30  # a range's ends are rounded outward to the grid: a step more
    assert made.reach.cube_sensitivity <= met.steps * slack, (
        f"{rule}: {made.reach.cube_sensitivity} declared, {met.steps} attained"
    )
    for i, each in enumerate(made.coordinates):
        attained, sensitivity = met.coordinate[i], moved(made)[i]
        assert sensitivity <= attained * slack, f"{rule}: {each.name}: {sensitivity}, {attained}"
    if rule.joint_l2:
        assert made.reach.l2_squared <= met.l2_squared * slack**2, f"{rule}: {made.reach.l2_squared}, {met.l2_squared}"
    if not made.exact.every_cell:
        assert met.one_sided == made.lattice.groups_of_a_unit


EXTREMES = Shape(
    {"w": "int64", "u": "uint64", "v": "uint64", "s": "uint64"}, {"bounds": {"u": (0, 5)}, "types": {"s": "integer"}}
)
EXTREME_ROWS: tuple[Row, ...] = tuple(
    (w, u, u, u)
    for w, u in zip(
        [-(2**63), 1 - 2**63, -(2**62) - 1, 0, 2**62 + 1, 2**63 - 1], [2**64 - 1, 2**63, 4, 0, 1, 2], strict=True
    )
)
OF_EXTREMES = {
    "SELECT COUNT(ABS(w)) FROM t": 5,
    "SELECT COUNT(-w) FROM t": 5,
    "SELECT COUNT(w // -1) FROM t": 5,
    "SELECT COUNT(ROUND(w, -18)) FROM t": 6,
    "SELECT COUNT(ROUND(w, -19)) FROM t": 3,
    "SELECT COUNT(CAST(w AS UBIGINT)) FROM t": 3,
    "SELECT COUNT(w % -1) FROM t": 6,
    "SELECT SUM(LEAST(ABS(w), 10)) FROM t": None,
    "SELECT SUM(CLAMP(w, -7, 9)) FROM t": None,
    "SELECT SUM(u) FROM t": None,
    "SELECT COUNT(u) FROM t": 6,
    "SELECT COUNT(DISTINCT w) FROM t": 6,
    "SELECT SUM(CLAMP(v, 0, 5)) FROM t": None,
    "SELECT SUM(CLAMP(v / 2, 0, 5)) FROM t": None,
    "SELECT SUM(v % 7) FROM t": None,
    "SELECT COUNT(DISTINCT v) FROM t": 6,
    "SELECT SUM(v) FROM t WHERE v IN (1, 4)": None,
    "SELECT SUM(v) FROM t WHERE v = 4": None,
    "SELECT COUNT(*) FROM t WHERE v IN (1, 4)": 2,
    "SELECT COUNT(s) FROM t": 4,
    "SELECT AVG(CLAMP(s, 0, 5)) FROM t": None,
    "SELECT COUNT(*) FROM t WHERE v = 18446744073709551615": 1,
    "SELECT COUNT(*) FROM t WHERE v > 9223372036854775807": 2,
}
"""Queries, with what those that count are of all rows."""


def check_extremes() -> None:
    """No integer of 64 bits moves an answer further than is declared: where -x, ABS and ROUND overflow they are NULL,
    and known to be so."""
    schema = EXTREMES.schema()
    for sql, counted in OF_EXTREMES.items():
        for relation in (U, B):
            made, _ = distances(EXTREMES, sql, EXTREME_ROWS, relation, most=2)
            if counted is not None:
                found = run_exactly(made, schema, EXTREMES.frame(EXTREME_ROWS))
                assert found.parts[0].tolist() == [counted], sql


# The engine as a whole: each of these holds for the honest engine, and fails under some planted lie

HUGE = 10**6


def check_order_of_groups() -> None:
    """Groups are shown in order of their keys, however the rows stand, NULL last."""
    sql = "SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    for cells in (["c", "a", None, "b"], ["b", None, "a", "c"]):
        found = dpsql.query(pd.DataFrame({"s": series(cells * 400, "str")}), sql, epsilon=1, delta=1e-3)
        assert [row[0] for row in found] == ["a", "b", "c", None]


@dataclass(frozen=True)
class Silence:
    """A law that always draws 0, to look at what is done around the noise."""

    dimension: int

    def draw(self, cells: int) -> Any:
        return np.zeros((self.dimension, cells), dtype=np.int64)


def silenced(made: Release) -> Release:
    """Without the noise of its vectors."""
    silent = {id(each): replace(each, noise=Silence(len(each.places))) for each in made.shares}
    return replace(made, measurements=tuple(silent.get(id(each), each) for each in made.measurements))


NOISY = (
    ("SELECT COUNT(*) FROM t", U, {}),
    ("SELECT SUM(p) FROM t WHERE x > 0", B, {}),
    ("SELECT AVG(x) FROM t", U, {}),
    ("SELECT AVG(x), SUM(p), COUNT(*) FROM t", U, {"epsilon": Fraction(1, 3)}),
    ("SELECT AVG(x), SUM(p) FROM t", U, {"strategy": "split"}),
    ("SELECT p, COUNT(*) FROM t GROUP BY p", B, {"epsilon": 2}),
    ("SELECT COUNT(*) FROM t", U, {"delta": 1e-6, "mechanism": "gaussian"}),
    ("SELECT AVG(x), SUM(p), COUNT(*) FROM t", U, {"delta": 1e-6, "mechanism": "gaussian"}),
)
DRAWS = 120_000


def check_noise() -> None:
    """What is drawn is worth what is charged: the loss that follows from the noise, as measured on released values, and
    from the distance of neighbours, as attained, is the epsilon that the ledger is told; no less and hardly more."""
    for sql, relation, options in NOISY:
        made, met = distances(ROWS, sql, UNIVERSE, relation, most=1, options=options)
        exact = run_exactly(made, ROWS.schema(), ROWS.frame(UNIVERSE[:1]))
        exact = ExactTable(tuple(Vector(k.values[:1]) for k in exact.keys), exact.parts[:, :1], 1)
        units = np.array([each.unit for each in made.coordinates])
        noise = releases(made, exact, DRAWS)[:, 0, :] / units - made.coordinate_steps(exact.parts)[:, 0].astype(float)
        dimension = noise.shape[1]
        charged, where = float(made.cost.epsilon), f"{sql}, {relation}, {options}"
        slack = 6 / (dimension * DRAWS) ** 0.5
        if options.get("mechanism") == "gaussian":
            rho = met.l2_squared / (2 * float((noise**2).mean()))
            spent = rho / float(gaussian_rho(as_epsilon(charged), as_delta(made.cost.delta)))
            charged, slack = 1.0, 1.5 * slack
        elif options.get("strategy") == "split":
            spent = dimension * met.steps * -_log_ratio(noise)
        else:
            largest = np.abs(noise).max(axis=1)
            scale = 1 / -_log_ratio(noise) if dimension == 1 else float(largest.mean()) / dimension
            spent = met.steps / scale
        assert spent <= charged * (1 + slack), f"{where}: {spent} spent, {charged} charged"
        assert spent >= charged * (1 - slack), f"{where}: more noise than needed: {spent} of {charged}"
        _check_independence(noise, dimension, options, where)


def _log_ratio(noise: Any) -> float:
    """log a of a discrete Laplace law, from the mean of |X|: E|X| = 2a / (1 - a^2)."""
    mean = float(np.abs(noise).mean())
    a = ((1 + mean * mean) ** 0.5 - 1) / mean
    return float(np.log(a)) if a < 1 - 1e-9 else -1 / mean


def _check_independence(noise: Any, dimension: int, options: dict[str, Any], where: str) -> None:
    """Neither from one release to the next nor, with split or Gaussian noise, between the coordinates of one."""
    first = np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]
    assert abs(first) < 6 / DRAWS**0.5, f"{where}: draws depend on one another"
    if dimension > 1:
        assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 6 * 2 / DRAWS**0.5, where  # uncorrelated in every law


def check_thresholds() -> None:
    """The exact chance that a group of one unit is shown, for all groups that the unit may open or close together, is
    at most the delta that is charged; one step less would be too much; and `>=` is what is done with it."""
    delta = Fraction(repr(float(np.exp(-13) / 2)))  # where the continuous formula of the threshold fails by 1.46 times
    schema = ROWS.schema()
    for relation, epsilon in ((U, Fraction(1)), (B, Fraction(2)), (U, Fraction(2)), (B, Fraction(1, 2))):
        made = calibrated(schema, "SELECT g, COUNT(*) FROM t GROUP BY g", relation, epsilon=epsilon, delta=delta)
        assert height_of(made)
        groups = 2 if relation == B else 1
        with localcontext() as context:
            context.prec = 40
            a = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator) / groups).exp()  # bounded: counts move 2
            shown = [groups * a ** (height_of(made) - less - 1) / (1 + a) for less in (0, 1)]
            charged = Decimal(made.cost.delta.numerator) / Decimal(made.cost.delta.denominator)
        assert shown[0] <= charged, f"{relation}: shown with {shown[0]}, charged {charged}"
        assert shown[1] > charged, f"{relation}: the threshold could be lower"
        with localcontext() as context:
            context.prec = 40
            below, left = made.selection.below, charged - shown[0]
            spent = Decimal(below.numerator) / Decimal(below.denominator) * (shown[1] - shown[0])
            assert left * (1 - Decimal("1e-9")) <= spent <= left, f"{relation}: coins spend {spent} of {left}"
        assert made.lattice.most_of_a_unit == 1
        _check_coins(silenced(made), float(below))


def _check_coins(silent: Release, below: float, many: int = 20_000) -> None:
    """Two steps short of the height a group is hidden, at it shown, and between by a coin."""
    counts = np.array([[-2, 0, 1, *[-1] * many]]) + height_of(silent)
    found = silent.privatise(ExactTable((Vector(np.arange(3 + many)),), counts, 3 + many)).keys[0].values
    assert [each for each in found.tolist() if each < 3] == [1, 2]
    off = abs(len(found) - 2 - many * below)
    assert off <= 6.5 * (many * below * (1 - below)) ** 0.5, f"{len(found) - 2} of {many} shown, by {below}"


def check_answers() -> None:
    """At an enormous epsilon the answers are those of the clipped table: filters, NULLs and groups as in SQL."""
    frame = pd.DataFrame({
        "x": [1.7, 1.99, 2.0, 2.5, np.nan, 9.0], "k": [4, 4, 5, 5, 5, 4],
        "g": series(["a", None, None, "a", "b", "b"], "str"),
    })  # fmt: skip
    facts: dict[str, Any] = {"bounds": {"x": (0, 3), "k": (4, 5)}, "keys": {"g": ["a", "b", None]}}
    expected = {
        "SELECT COUNT(*), COUNT(x) FROM t": [(6, 5)],
        "SELECT SUM(x) FROM t": [(1.7 + 1.99 + 2 + 2.5 + 3,)],
        "SELECT AVG(x) FROM t": [((1.7 + 1.99 + 2 + 2.5 + 3) / 5,)],
        "SELECT SUM(x) FROM t WHERE x < 2": [(3.69,)],
        "SELECT SUM(x) FROM t WHERE x <= 2": [(5.69,)],
        "SELECT SUM(x) FROM t WHERE NOT x >= 2": [(3.69,)],
        "SELECT SUM(x) FROM t WHERE x > 1.99": [(7.5,)],
        "SELECT SUM(k) FROM t WHERE k < 5": [(12,)],
        "SELECT SUM(x + k) FROM t WHERE x + k > 5.99": [(3 + 4 + 5 + 2.5 + 5 + 2,)],
        "SELECT COUNT(*) FROM t WHERE x < 2 OR g = 'b'": [(4,)],
        "SELECT SUM(x) FROM t WHERE x < 2 OR g = 'b'": [(6.69,)],
        "SELECT SUM(x) FROM t WHERE NOT (x >= 2 AND g = 'a')": [(6.69,)],
        "SELECT g, COUNT(*), SUM(k) FROM t GROUP BY g": [("a", 2, 9), ("b", 2, 9), (None, 2, 9)],
        "SELECT k, COUNT(x) FROM t GROUP BY k": [(4, 3), (5, 2)],
    }
    prepare._cache.clear()
    for sql, rows in expected.items():
        for relation in (U, B):
            found = list(dpsql.query(frame, sql, epsilon=HUGE, neighbours=relation, **facts))
            assert len(found) == len(rows), f"{sql}: {found}"
            for one, other in zip(found, rows, strict=True):
                near = [
                    a == b if isinstance(b, str | None) else abs(a - b) < 1e-2 for a, b in zip(one, other, strict=True)
                ]
                assert all(near), f"{sql}: {found}, not {rows}"


def check_order_of_rows() -> None:
    """The same integers whatever the order of rows, for reals of very different sizes, in several blocks."""
    rng = np.random.default_rng(11)
    shape = Shape({"x": "float64", "k": "int64"}, {"bounds": {"x": (-1e15, 1e15), "k": (0, 3)}})
    wild = rng.normal(0, 1, 1000) * 10.0 ** rng.integers(-9, 16, 1000)
    values = np.concatenate([wild, rng.uniform(0, 1e15, 80_000)])
    frame = pd.DataFrame({"x": values, "k": rng.integers(0, 4, len(values))})
    schema = shape.schema()
    for sql in ("SELECT SUM(x) FROM t", "SELECT AVG(x) FROM t", "SELECT k, SUM(x), AVG(x * k) FROM t GROUP BY k"):
        made = calibrated(schema, sql, U, epsilon=HUGE)
        expected = cells_of(made, run_exactly(made, schema, frame))
        for order in (frame.iloc[::-1], *(frame.sample(frac=1, random_state=rng) for _ in range(3))):
            assert cells_of(made, run_exactly(made, schema, order)) == expected, sql


def check_no_row_raises() -> None:
    """Whatever one row holds, the answer has the same shape and nothing is raised or warned of."""
    odd = [None, "x", [1], "7", 2.5, np.nan, np.inf, 10**30, True, b"1", "0"]
    sqls = (
        "SELECT COUNT(x), SUM(CLAMP(10 / x, 0, 9)) FROM t WHERE 1 / x > 0 OR x % x IS NULL",
        "SELECT SUM(CLAMP(x * x * x, 0, 9)) FROM t",
    )
    prepare._cache.clear()
    for sql in sqls:
        for kind in ("integer", "real"):
            for cell in odd:
                frame = pd.DataFrame({"x": series([1, cell, 0], object)})
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        rows = len(dpsql.query(frame, sql, epsilon=1, types={"x": kind}))
                    except Exception as error:  # noqa: BLE001
                        raise AssertionError(f"{sql} with {cell!r} as {kind}: {error!r}") from None
                assert rows == 1


def check_charge_first() -> None:
    """A run that fails keeps its charge; a query that is refused reads no row."""
    frame = pd.DataFrame({"x": [1, 2]})
    held = dpsql.Session({"t": frame}, budget=dpsql.Budget(1))
    read = []

    def execute(_self: Any, *_: Any) -> Any:
        read.append(held.spent.epsilon)
        raise KeyboardInterrupt

    with mock.patch.object(pandas.PandasExecutor, "execute", execute):
        with suppress(KeyboardInterrupt):
            held.query("SELECT COUNT(*) FROM t", epsilon=0.75)
        assert read == [Fraction(3, 4)], "rows were read before the charge"
        assert held.spent.epsilon == Fraction(3, 4), "a failed run gave its charge back"
        for sql in ("SELECT COUNT(*) FROM t", "SELECT SUM(x) FROM t", "SELECT x FROM t"):
            try:
                held.query(sql, epsilon=0.75)
            except dpsql.DPSQLError:
                pass
            else:
                raise AssertionError("answered without a budget")
        assert len(read) == 1, "a refused query read rows"
    assert held.spent.epsilon == Fraction(3, 4)


def check_budget() -> None:
    """Exactly as many queries are answered as the budget pays for, to the last digit, also from many threads."""
    frame = pd.DataFrame({"x": [1, 2]})
    sql = "SELECT COUNT(*) FROM t"
    tenths = dpsql.Session({"t": frame}, budget=dpsql.Budget(0.3))
    answered = sum(_is_answered(tenths, sql, 0.1) for _ in range(5))
    assert answered == 3, f"three times 0.1 of 0.3, and {answered} were answered"
    assert not _is_answered(tenths, sql, 1e-9)
    fifths = dpsql.Session({"t": frame}, budget=dpsql.Budget(0.3))
    assert [_is_answered(fifths, sql, each) for each in (0.2, 0.2, 0.1, 0.1)] == [True, False, True, False]
    many = dpsql.Session({"t": frame}, budget=dpsql.Budget(7))
    with ThreadPoolExecutor(16) as pool:
        answered = sum(pool.map(lambda _: _is_answered(many, sql, 1), range(64)))
    assert answered == 7
    assert many.spent.epsilon == 7
    deltas = dpsql.Session({"t": frame}, budget=dpsql.Budget(100, 1e-6), accountant="basic")
    grouped = "SELECT x, COUNT(*) FROM t GROUP BY x"
    assert sum(_is_answered(deltas, grouped, 1, delta=4e-7) for _ in range(4)) == 2, "delta is overdrawn"


def _is_answered(held: dpsql.Session, sql: str, epsilon: float, **options: Any) -> bool:
    try:
        held.query(sql, epsilon=epsilon, fresh=True, **options)
    except dpsql.errors.BudgetExceeded:
        return False
    except dpsql.DPSQLError as error:
        raise AssertionError(f"the session is out of order: {error}") from None
    return True


def check_no_copies() -> None:
    """A session, and a ledger, cannot be copied, pickled or used in a forked child."""
    held = dpsql.Session({"t": pd.DataFrame({"x": [1, 2]})}, budget=dpsql.Budget(1))
    for thing in (held, held._ledger):
        for multiply in (copy.copy, copy.deepcopy, pickle.dumps):
            try:
                multiply(thing)
            except dpsql.errors.LedgerError:
                continue
            raise AssertionError(f"{multiply.__name__} of a {type(thing).__name__}")
    words = in_a_child(lambda: _refusal(held))
    assert words == "LedgerError", f"a forked child answered: {words}"
    assert held.spent.epsilon == 0


def _refusal(held: dpsql.Session) -> str:
    try:
        held.query("SELECT COUNT(*) FROM t", epsilon=1)
    except dpsql.DPSQLError as error:
        return type(error).__name__
    return "nothing"


def in_a_child(work: Callable[[], str]) -> str:
    """What some work says in a forked child of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        words = said.read()
    os.waitpid(child, 0)
    return words


def check_entropy() -> None:
    """Noise is fresh: not the same twice, nor in two children of one process, nor from one session to the next."""
    law = mechanisms.CubeLaplace(Fraction(2**40), 2)

    def draw() -> str:
        return repr(law.draw(4).tolist())

    samplers.discrete_laplace(Fraction(3), 1000)  # whatever may be buffered is, before the fork
    seen = [draw(), draw(), in_a_child(draw), in_a_child(draw), draw()]
    assert len(set(seen)) == len(seen), "the same noise twice"
    counts = [dpsql.query(pd.DataFrame({"x": [1]}), "SELECT COUNT(*) FROM t", epsilon=1e-6).item() for _ in range(4)]
    assert len(set(counts)) > 1


def check_plans_are_not_confused() -> None:
    """One text under other declared facts is another plan."""
    frame = pd.DataFrame({"x": [1.0, 9.0]})
    sql = "SELECT SUM(x) FROM t"
    prepare._cache.clear()
    for upper in (2, 5, 9):
        found = dpsql.query(frame, sql, epsilon=HUGE, bounds={"x": (0, upper)}).item()
        assert abs(found - 1 - upper) < 1e-2, f"bounds up to {upper}: {found}"
    costs = [dpsql.query(frame, "SELECT COUNT(*) FROM t", epsilon=1, neighbours=each).loss.epsilon for each in (B, U)]
    assert costs == [0, 1]


def rules(*names: str) -> Callable[[], None]:
    """A check of the rules of these names."""

    def check() -> None:
        chosen = [rule for rule in RULES if str(rule) in names]
        assert len(chosen) == len(names)
        for rule in chosen:
            check_rule(rule)

    return check
