"""Bounds that a query chooses: the law of every search on the exact counts of all neighbours, and what follows from it.

What `Search.weighed` puts together is taken apart again: into runs of candidates that have one score in both of two
neighbours, each with the chance that the search gives it. The searches of several columns add up. Whatever is chosen,
the query that is then planned costs no more than what the search leaves.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.exact import ExactTable, Grid
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.plan.expressions import Column, Fact
from dpsql.release.bounds.auto_bounds import Search
from dpsql.release.bounds.candidates import LENGTHS, pieces
from dpsql.release.release import Release
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from tests.core import checks, unit_checks
from tests.core.checks import INF, NAN, B, Row, Shape, U, cells_of
from tests.core.test_draws_neighbours import ORDERS, SLACK, log_ratio, renyi
from tests.core.test_draws_neighbours import compare as compare_draws
from tests.core.test_draws_neighbours import counts_of as counts_of_draws
from tests.core.test_statistics_neighbours import Met, calibrated_by, check_cost
from tests.core.test_statistics_neighbours import compare as compare_cells
from tests.core.unit_checks import G22, R1, R2, R3, Data, people, planned

SEED = 1_031_929

SHAPE = Shape(
    {"x": "float64", "n": "Int64", "w": "float64", "b": "bool", "k": "str", "s": "str"},
    {"bounds": {"x": "auto", "n": "auto", "w": (0, 1)}, "keys": {"k": ["a", None]}},
)
UNIVERSE: tuple[Row, ...] = (
    (3.7, 5, 0.5, True, "a", "u"),
    (-1e-12, None, 0.0, False, None, "v"),
    (INF, -(2**62), NAN, True, "zz", None),
    (NAN, 0, 1.0, False, "a", "u"),
    (-(2.0**40), 2**62, INF, True, None, 7),
)
ASKED = (
    "SUM(x)", "AVG(x), COUNT(*)", "VAR_POP(n), COUNT(n)", "MEDIAN(x)", "MIN(n), MAX(n)", "CORR(x, n)", "SUM(x * n)",
    "SUM(x) FILTER (WHERE b), SUM(n)", "COVAR_POP(x, w), MEDIAN(n), MODE(b)", "SUM(CASE WHEN x > 2 THEN x ELSE n END)",
    "SUM(x, epsilon => 0.25), SUM(w)", "SUM(x), COUNT(DISTINCT n), SUM(CLAMP(n, 0, 3))",
)  # fmt: skip
TAILS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("FROM t", {}),
    ("FROM t WHERE x > 0", {}),
    ("FROM t GROUP BY k", {}),
    ("FROM t GROUP BY s", {"delta": 1e-6}),
)
HOWS: tuple[dict[str, Any], ...] = ({}, {"rho": 0.1}, {"epsilon": 8}, {"delta": 1e-6, "mechanism": "gaussian"},
                                    {"delta": 1e-6, "rho": 2}, {"strategy": "split"})  # fmt: skip


# The law of a search


Counts = tuple[tuple[int, int], ...]
"""Places where rows are, and how many."""
_APART = 2**24
"""Keys of the runs of one scale and length lie beyond those of the one before."""


def grid_of(counts: Counts) -> Grid:
    points, many = (np.array(each, dtype=np.int64) for each in (zip(*counts, strict=True) if counts else ((), ())))
    return Grid(np.zeros(len(points), dtype=np.int64), points, many)


@lru_cache(maxsize=5_000)
def law_of(search: Search, counts: Counts) -> tuple[Any, Any, Any]:
    """The logarithms of the chances of the named candidates; where runs of free ones begin, in order, and what each one
    of a run has."""
    found = search.weighed(grid_of(counts))
    logs = -float(found.rate) * found.gaps.astype(np.float64)
    most = logs.max()
    logs = logs - (most + math.log((np.exp(logs - most) * found.many).sum()))
    named = len(found.gaps) - found.kinds.shape[1]
    of_kind = dict(zip(map(tuple, found.kinds.T.tolist()), logs[named:].tolist(), strict=True))
    keys, chances = [], []
    for scale, length, runs in pieces(search.intervals, search.grid.of, grid_of(counts)):
        first = (2 * (scale + 40) + LENGTHS.index(length)) * _APART + _APART // 2
        keys += [*(first + runs.starts).tolist(), first + int(runs.starts[-1] + runs.many[-1])]
        kinds = zip(runs.far.tolist(), runs.scores.tolist(), strict=True)
        chances += [*(of_kind[scale, length, *kind] for kind in kinds), -math.inf]
    return logs[:named], np.array(keys, dtype=np.int64), np.array(chances)


@lru_cache(maxsize=20_000)
def laws_of(search: Search, one: Counts, other: Counts) -> tuple[Any, Any]:
    """The logarithms of the chances of all candidates in two tables, of those together that are alike in both."""
    named, laws = [], []
    found = [law_of(search, counts) for counts in (one, other)]
    keys = np.union1d(found[0][1], found[1][1])
    many = np.diff(keys, append=keys[-1:] + 1)
    for logs, own, chances in found:
        named.append(logs)
        laws.append(chances[np.searchsorted(own, keys, side="right") - 1] + np.log(many))
    return np.append(named[0], laws[0]), np.append(named[1], laws[1])


def counts_of(made: Release, exact: ExactTable) -> list[Counts]:
    """What each search sees."""
    return [tuple(zip(grid.points.tolist(), grid.counts.tolist(), strict=True)) for grid in exact.grids]


def compare(made: Release, one: list[Counts], other: list[Counts], where: str) -> float:
    """What two neighbours' searches cost beside what is charged for them; the part of it that was attained."""
    total, cost, attained = 0.0, made.searches.cost, 0.0
    divergences = dict.fromkeys(ORDERS, 0.0)
    for search, a, b in zip(made.searches.searches, one, other, strict=True):
        p, q = laws_of(search, a, b)
        spent = log_ratio(p, q)
        for order in ORDERS:
            divergences[order] += max(renyi(p, q, order), renyi(q, p, order))
        assert spent <= float(search.epsilon) * SLACK, f"{search.column}: {spent} of {search.epsilon}: {where}"
        total += spent
        attained = max(attained, spent / float(search.epsilon))
    if cost.epsilon is not None:
        assert total <= float(cost.epsilon) * SLACK, f"{total} spent, {cost} charged: {where}"
    for order, spent in divergences.items():
        assert spent <= order * float(cost.rho) * SLACK, f"order {order}: {spent} of {order * cost.rho}: {where}"
    return attained


@cache
def executor_of(table: tuple[int, ...]) -> PandasExecutor:
    return PandasExecutor({"t": ColumnStore(SHAPE.frame([UNIVERSE[i] for i in table]), SHAPE.schema())})


INTERVALS = (Interval(0, 1), Interval(-1, 0), Interval(-5, 64), Interval(0, 2**62), Interval(-(2**62), 2**62))


def check_search(sql: str, relation: str, most: int = 2, **how: Any) -> float:
    """Every neighbour among the tables of a few rows, for the search and for what is planned with some of the bounds
    that it can choose; how much of the search's charge was attained."""
    made = calibrated_by(SHAPE.schema(), sql, relation, **how)
    check_costs(made, sql)
    tables = checks.every_table(UNIVERSE, most)
    counts = {table: counts_of(made, executor_of(table).execute(made.plans[0])) for table in tables}
    pairs = list(checks.neighbouring_pairs(tables, len(UNIVERSE), relation))
    attained = max(compare(made, counts[a], counts[b], f"{sql} | {relation} | {how} | {a} {b}") for a, b in pairs)
    many = len(made.searches.searches)
    bounds = INTERVALS[(len(sql) + most) % len(INTERVALS)]
    settled = made.settled((bounds,) * many)
    exact = {table: executor_of(table).execute(settled.exact) for table in tables}
    cells = {table: cells_of(settled, found) for table, found in exact.items()}
    drawn = {table: counts_of_draws(settled, found) for table, found in exact.items()} if _few_points(settled) else {}
    for a, b in pairs:
        where = f"{sql} | {relation} | {how} | {bounds} | {a} {b}"
        compare_cells(settled, cells[a], cells[b], Met(), where)
        if drawn:
            compare_draws(settled, drawn[a], drawn[b], where)
    return attained


def _few_points(made: Release) -> bool:
    return bool(made.draws) and all(draw.points < 100 for draw in made.draws)


def check_costs(made: Release, where: str) -> None:
    """The search and what is planned after it, whatever it chooses, cost what is charged and no more."""
    found = made.searches
    parts = [search.epsilon for search in found.searches]
    if found.cost.epsilon is not None:
        assert sum(parts) <= found.cost.epsilon, where
    else:
        assert sum(part * part / 8 for part in parts) <= found.cost.rho, where
    for bounds in INTERVALS:
        after, _ = found.settle((bounds,) * len(found.searches))
        check_cost(after)
        for name in ("delta", "rho"):
            spent = getattr(found.cost, name) + getattr(after.cost, name)
            assert spent <= getattr(made.cost, name), f"{name}: {float(spent)} of {made.cost}: {where}"
        if made.cost.epsilon is not None:
            assert found.cost.epsilon is not None
            assert after.cost.epsilon is not None
            assert found.cost.epsilon + after.cost.epsilon <= made.cost.epsilon, f"{made.cost}: {where}"
        else:
            assert made.allowed.rho is not None
            assert found.cost.rho + after.cost.rho <= made.allowed.rho, f"{made.cost}: {where}"
        settled = made.settled((bounds,) * len(found.searches))
        assert (settled.cost, settled.events) == (made.cost, made.events)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize(("tail", "more"), TAILS, ids=[tail for tail, _ in TAILS])
def test_searches_and_what_follows_them(tail: str, more: dict[str, Any], part: int):
    turn = [each for each, _ in TAILS].index(tail)
    attained = []
    for place, asked in list(enumerate(ASKED))[part::3]:
        relation = (U, B)[(place + turn) % 2]  # both, in every way, are slow
        how = HOWS[(place + turn // 2) % len(HOWS)] if "=>" not in asked else {}
        attained.append(check_search(f"SELECT {asked} {tail}", relation, **{**more, **how}))
    assert np.mean(attained) > 0.3, f"no neighbour comes near what is charged: {attained}"


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize(("tail", "more"), TAILS, ids=[tail for tail, _ in TAILS])
def test_searches_in_every_way(tail: str, more: dict[str, Any], how: dict[str, Any]):
    for asked in ASKED:
        for relation in (U, B):
            if "=>" not in asked or "rho" not in how:
                check_search(f"SELECT {asked} {tail}", relation, 3, **{**more, **how})


def test_chosen_bounds_hold_the_candidates():
    """Every bound that can be chosen is inside the widest, whatever the rows, and never an empty range."""
    made = calibrated_by(SHAPE.schema(), "SELECT SUM(x), SUM(n) FROM t", U)
    for table in ((), (0,), (4, 4), (0, 1, 2, 3, 4) * 30):
        exact = executor_of(table).execute(made.plans[0])
        for _ in range(20):
            for search, held in zip(made.searches.searches, made.searches.choose(exact), strict=True):
                widest = search.intervals.widest
                assert widest.lower <= held.lower < held.upper <= widest.upper
                whole = search.column.type is Type.INTEGER
                assert not whole or (isinstance(held.lower, int) and isinstance(held.upper, int))


# People: rows of a unit add up, those beyond its limits are left out

AUTO = {"p": {"bounds": {"x": "auto"}}, "e": {"bounds": {"y": "auto", "k": (0, 3)}}, "i": {"bounds": {"z": "auto"}},
        "t": {"bounds": {"x": "auto", "k": (0, 3)}}}  # fmt: skip
OF_PEOPLE = (
    "SELECT SUM(y) FROM e",
    "SELECT k, AVG(y), COUNT(*) FROM e GROUP BY k",
    "SELECT VAR_POP(y), COUNT(DISTINCT pid) FROM e WHERE k > 0",
    "SELECT SUM(x), SUM(y) FROM p JOIN e ON p.pid = e.pid",
    "SELECT tag, SUM(y), SUM(z) FROM i JOIN e ON i.eid = e.eid JOIN tags ON e.k = tags.k GROUP BY tag",
    "SELECT MEDIAN(y), COUNT(*) FROM e",
)
OF_ROWS = ("SELECT SUM(x) FROM t", "SELECT tag, SUM(x) FROM t JOIN tags ON t.k = tags.k GROUP BY tag",
           "SELECT CORR(x, w) FROM t CROSS JOIN pub")  # fmt: skip
PEOPLE_HOWS: tuple[dict[str, Any], ...] = ({}, {"mechanism": "gaussian"}, {"epsilon": 20})


@dataclass
class Searching:
    """One query about people, and the counts of its searches over many databases, by hash key."""

    sql: str
    relation: str
    limits: dict[str, int]
    how: dict[str, Any]

    def __post_init__(self) -> None:
        world = people().with_tables({}, **AUTO)
        self.world = world.limited(**self.limits) if self.limits else world
        self.made = planned_alone(self.world, self.sql, self.relation, self.how)
        self.kept: dict[Any, list[Counts]] = {}

    def counts(self, data: Data, key: bytes) -> list[Counts]:
        place = (repr(data), key)
        if place not in self.kept:
            self.kept[place] = counts_of(self.made, self.world.executor(data).execute(self.made.plans[0], key))
        return self.kept[place]

    def neighbours(self, data: Data, rng: random.Random) -> Iterator[Data]:
        world = self.world
        if not self.made.analysis.bounds.declared:
            for place in range(len(data["t"])):
                rest = (*data["t"][:place], *data["t"][place + 1 :])
                more = unit_checks.table_of_rows(rng, 1, least=1) if self.relation == B else ()
                yield {**data, "t": (*rest, *more)}
            return
        for unit in world.units(data):
            rest = world.without(data, unit)
            if self.relation == U:
                yield rest
                continue
            for _ in range(2):
                other = world.with_rows(rest, unit, unit_checks.people_rows(rng, world, unit, 4))
                yield from () if other is None else (other,)


def planned_alone(world: Any, sql: str, relation: str, how: dict[str, Any]) -> Release:
    """A release whose noise `unit_checks.planned` cannot yet add up with what its search costs."""
    with mock.patch.object(unit_checks, "check_cost", return_value=None):
        made = planned(world, sql, relation, **how)
    check_costs(made, sql)
    return made


def check_people(sql: str, limits: dict[str, int], how: dict[str, Any], seed: int = SEED, databases: int = 2) -> float:
    """Neighbours of some databases under each hash key; how much of the charge was attained."""
    rng, attained = random.Random(seed), 0.0
    for relation in (U, B):
        asking = Searching(sql, relation, limits, how)
        for data in unit_checks.databases_of(unit_checks.INTEGERS, seed, databases):
            for other in asking.neighbours(data, rng):
                for key in unit_checks.KEYS:
                    where = f"{sql} | {relation} {limits} {how}\n{data}\n{other}"
                    found = compare(asking.made, asking.counts(data, key), asking.counts(other, key), where)
                    attained = max(attained, found)
    return attained


@pytest.mark.thinned(4)
@pytest.mark.parametrize("sql", OF_PEOPLE)
def test_searches_among_the_rows_of_people(sql: str):
    attained = [
        check_people(sql, limits, PEOPLE_HOWS[place % len(PEOPLE_HOWS)]) for place, limits in enumerate((R1, R3, G22))
    ]
    assert max(attained) > 0.3, f"no neighbour comes near what is charged: {attained}"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sql", OF_ROWS)
def test_searches_among_rows_that_are_joined(sql: str):
    attained = [check_people(sql, {}, how, databases=3) for how in PEOPLE_HOWS]
    assert max(attained) > 0.3, f"no neighbour comes near what is charged: {attained}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("sql", OF_PEOPLE)
def test_searches_among_many_people(sql: str, part: int):
    for limits in (R1, R2, R3, G22):
        check_people(sql, limits, PEOPLE_HOWS[part % len(PEOPLE_HOWS)], SEED + part, databases=6)


def check_a_unit_of_many_rows() -> None:
    """A unit with all its rows far out, against one that is not there or has its rows at the other end."""
    for limits in (R2, R3):
        for relation in (U, B):
            asking = Searching("SELECT SUM(y) FROM e", relation, limits, {"epsilon": 2})
            few = tuple((50 + n, 2, 1, 1) for n in range(3))
            far, near = (tuple((10 + n, 1, at, 1) for n in range(4)) for at in (2**30, -(2**30)))
            one, other = ({**asking.world.data(e=(*few, *rows))} for rows in (far, near if relation == B else ()))
            found = [compare(asking.made, asking.counts(one, key), asking.counts(other, key), f"{relation} {limits}")
                     for key in unit_checks.KEYS]  # fmt: skip
            least = 0.9 if relation == U else 0.5  # nothing is likely on both sides: each row moves it half as far
            assert min(found) > least, f"{relation} {limits}: {found} of what is charged"


def test_a_unit_of_many_rows():
    check_a_unit_of_many_rows()


# Traces


ODD: tuple[list[Any], ...] = (
    [], [None] * 3, [1], [INF, -INF], [NAN], [2**62, -(2**62)], [1e308, -1e308], ["x", [1], None, 2.5, b"1", 10**40],
    [True, "7", 0], [0] * 50,
)  # fmt: skip
TOLD = (
    "SELECT SUM(x), VAR_POP(x), COUNT(DISTINCT x) FROM t",
    "SELECT MEDIAN(x), MIN(x), MAX(x) FROM t",
    "SELECT k, AVG(x), CORR(x, y), COUNT(*) FROM t GROUP BY k",
    "SELECT REGR_SLOPE(y, x), REGR_INTERCEPT(x, y), REGR_R2(x, x), COVAR_SAMP(x, y), MODE(k) FROM t WHERE x <> 2",
    "SELECT APPROX_TOP_K(k, 2), QUANTILE_CONT(y, 0.1), QUANTILE_CONT(y, 0.9), STDDEV_POP(y) FROM t WHERE y / x > 0",
)  # fmt: skip


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    "how",
    [
        {},
        pytest.param({"delta": 1e-6, "mechanism": "gaussian"}, marks=pytest.mark.slow),
        pytest.param({"epsilon": 50}, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("declared", [{"x": "auto", "y": (0, 5)}, {"x": (-9, 9), "y": (0, 5)}], ids=["auto", "bounds"])
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_no_row_raises_or_changes_the_shape(kind: str, declared: dict[str, Any], how: dict[str, Any]):
    """The same columns, rows and types, and no word more, whatever the rows hold."""
    for sql in TOLD:
        shapes = set()
        for cells in ODD:
            frame = pd.DataFrame({
                "x": checks.series(cells, object), "y": checks.series(cells[::-1], object),
                "k": checks.series((["a", None, "3", "b"] * 20)[: len(cells)], "str"),
            })  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = dpsql.query(
                    frame, sql, **{"epsilon": 1, **how}, bounds=declared, types={"x": kind, "y": kind},
                    keys={"k": ["a", "b"]},
                )  # fmt: skip
            assert isinstance(found, dpsql.Result)
            shapes.add(shape_of(found))
        assert len(shapes) == 1, f"{sql}: {shapes}"


def shape_of(found: dpsql.Result) -> tuple[Any, ...]:
    """All that is shown but the noisy numbers. How many values are released follows from bounds that were drawn, where
    some were, and whether a column of a frame may hold NULL from noisy values."""
    answer, released = found._answer, found._released
    values = released.values.shape if not released.bounds else released.values.shape[1:]
    dtypes = [str(each).lower() for each in found.df.dtypes]
    return (len(found), tuple(answer.names), tuple(answer.types), len(released.bounds), values,
            str(dtypes), str(found.loss), len(released.keys))  # fmt: skip


def test_what_is_planned_is_public():
    """Searches, grids, lattices and costs are there before any row is read, and are the same for any rows."""
    plans = set()
    for cells in ([], [1, 2, 3], [10**6] * 9):
        table = dpsql.Table(pd.DataFrame({"x": pd.Series(cells, dtype="int64")}), bounds="auto")
        session = dpsql.Session({"t": table}, budget=dpsql.Budget(1))
        plans.add(str(session.explain("SELECT SUM(x), MEDIAN(x) FROM t", epsilon=1)))
    assert len(plans) == 1


# Replay


def _values(found: Any) -> Any:
    return list(found), found._released.bounds


def check_replay(folder: Path) -> None:
    """An answer with chosen bounds is the same again, numbers and bounds, free: in the session, in a second session of
    the ledger's file, and under another name of its columns; asked fresh it is not."""
    frame = pd.DataFrame({"x": np.arange(4_000) % 90, "k": ["a", "b"] * 2_000})
    sql = "SELECT k, SUM(x) AS s, MEDIAN(x) AS m, VAR_POP(x) AS v FROM t GROUP BY k"
    said: dict[str, Any] = {"bounds": {"x": "auto"}, "keys": {"k": ["a", "b"]}}
    for version, ledger in ((None, None), ("1", folder / "spent.ledger")):
        table = dpsql.Table(frame, **said, **({} if version is None else {"version": version}))
        budget = dpsql.Budget(4)
        first = dpsql.Session({"t": table}, budget=budget, ledger=ledger)
        one = _values(first.query(sql, epsilon=0.5))
        assert len(one[1]) == 1
        assert _values(first.query(sql, epsilon=0.5)) == one
        assert first.spent.epsilon == Fraction(1, 2)
        again = first if ledger is None else dpsql.Session({"t": table}, budget=budget, ledger=ledger)
        found = again.query(sql, epsilon=0.5)
        assert isinstance(found, dpsql.Result)
        assert found.replayed
        assert _values(found) == one
        assert again.spent.epsilon == Fraction(1, 2)
        assert _values(again.query(sql, epsilon=0.5, fresh=True)) != one
        assert _values(again.query(sql, epsilon=0.75)) != one
        assert again.spent.epsilon == Fraction(7, 4)


def test_chosen_bounds_are_replayed(tmp_path: Path):
    check_replay(tmp_path)


# Within a range


@pytest.mark.thinned(2)
@pytest.mark.parametrize("within", [(0, 99_999), (-5, 1_000), (1_900, 2_100)], ids=str)
@pytest.mark.parametrize("kind", [Type.INTEGER, Type.REAL])
def test_searches_within_a_range_are_worth_what_they_cost(within: tuple[int, int], kind: Type):
    """All neighbours of some tables, whose rows are held in the range before: one row less, and one row changed."""
    column, epsilon = Column("x", kind, Fact(Interval(*within), whole=kind is Type.INTEGER)), Fraction(3, 10)
    values = (-(10.0**9), 0.0, 7.0, 1_950.0, 2_000.0, 99_999.0)
    for bounded in (False, True):
        said: dict[str, Any] = {"mechanism": "exponential", "worth": Fraction(3, 4), "cost": Cost.of(epsilon)}
        search = Search.of(column, epsilon, 1, bounded=bounded, **said)
        assert search.intervals.outer == Interval(*within)
        for rows in (values, values[2:] * 3, (7.0,)):
            for each in rows:
                less = tuple(other for other in rows if other != each)
                for other in ((*less, 42.0), (*less, -1.0)) if bounded else (less,):
                    attained = log_ratio(*laws_of(search, _places(search, (*less, each)), _places(search, other)))
                    assert attained <= float(epsilon) * SLACK


def _places(search: Search, rows: tuple[float, ...]) -> Counts:
    held = np.clip(
        np.array(rows), *(float(each) for each in (search.intervals.widest.lower, search.intervals.widest.upper))
    )
    points, counts = np.unique(search.grid.of.places(held), return_counts=True)
    return tuple(zip(points.tolist(), counts.tolist(), strict=True))
