"""Bounds that a query chooses: the law of every search on the exact counts of all neighbours, and what follows from it.

`Search.choose` is run with a chooser that keeps the law of each choice in place of drawing. Above and below 0 are two
choices, whose log ratios add up; the searches of several columns add up too. Whatever is chosen, the query that is then
planned costs no more than what the search leaves.
"""

from __future__ import annotations

import itertools
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
from dpsql.accuracy.choices import exponential_law, permute_and_flip_law
from dpsql.core.exact import ExactTable
from dpsql.executors.pandas.columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release import auto_bounds
from dpsql.release.auto_bounds import Search, candidates
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
LAWS = {"exponential": exponential_law, "permute_and_flip": permute_and_flip_law}

SHAPE = Shape(
    {"x": "float64", "n": "Int64", "w": "float64", "b": "bool", "k": object, "s": object},
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


@lru_cache(maxsize=20_000)
def _logs(name: str, gaps: tuple[int, ...], rate: Fraction) -> Any:
    array = np.array(gaps, dtype=object)
    if max(gaps) < 2**62:
        array = array.astype(np.int64)
    with np.errstate(divide="ignore"):
        return np.log(LAWS[name](array, rate))


@lru_cache(maxsize=20_000)
def laws_of(search: Search, counts: tuple[int, ...]) -> tuple[Any, ...]:
    """The logarithms of the probabilities of each choice that a search makes: below 0, and above."""
    seen = []

    def choose(gaps: Any, rate: Fraction, allowed: Any = None) -> Any:
        assert allowed is None
        seen.extend(_logs(search.mechanism, tuple(row), rate) for row in gaps.tolist())
        return np.zeros(len(gaps), dtype=np.int64)

    with mock.patch.object(auto_bounds, search.mechanism, choose):
        search.choose(np.array(counts, dtype=np.int64))
    return tuple(seen)


def counts_of(made: Release, exact: ExactTable) -> list[tuple[int, ...]]:
    """What each search sees."""
    found = []
    for search, grid in zip(made.searches.searches, exact.grids, strict=True):
        counts = np.zeros(search.grid.points, dtype=np.int64)
        counts[grid.points] = grid.counts
        found.append(tuple(counts.tolist()))
    return found


def compare(made: Release, one: list[tuple[int, ...]], other: list[tuple[int, ...]], where: str) -> float:
    """What two neighbours' searches cost beside what is charged for them; the part of it that was attained."""
    total, cost, attained = 0.0, made.searches.cost, 0.0
    divergences = dict.fromkeys(ORDERS, 0.0)
    for search, a, b in zip(made.searches.searches, one, other, strict=True):
        spent = 0.0
        for p, q in zip(laws_of(search, a), laws_of(search, b), strict=True):
            spent += log_ratio(p, q)
            for order in ORDERS if search.mechanism == "exponential" else ():
                divergences[order] += max(renyi(p, q, order), renyi(q, p, order))
        assert spent <= float(search.epsilon) * SLACK, f"{search.column}: {spent} of {search.epsilon}: {where}"
        total += spent
        attained = max(attained, spent / float(search.epsilon))
    if cost.epsilon is not None:
        assert total <= float(cost.epsilon) * SLACK, f"{total} spent, {cost} charged: {where}"
    else:
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


@pytest.mark.parametrize(("tail", "more"), TAILS, ids=[tail for tail, _ in TAILS])
def test_searches_and_what_follows_them(tail: str, more: dict[str, Any]):
    turn = [each for each, _ in TAILS].index(tail)
    attained = []
    for place, asked in enumerate(ASKED):
        for relation in (U, B):
            how = HOWS[(place + turn + (relation == B)) % len(HOWS)] if "=>" not in asked else {}
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


# The law, against the rule it is documented by


def check_law_of_a_search() -> None:
    """A bound B of a side is drawn with weight exp(-epsilon f(B) / spread) exp(-0.7 steps), by the exponential
    mechanism when paid by rho; f(B) are the rows beyond it, counted here one by one."""
    tables = [(), (0,), (4,), (0, 1, 2, 3, 4), (0, 0, 0, 4, 4), (2, 2, 2, 2, 2), (1, 1, 4, 3, 3)]
    for relation, rho in itertools.product((U, B), (0.1, 2)):
        made = calibrated_by(SHAPE.schema(), "SELECT SUM(x), SUM(n) FROM t", relation, rho=rho)
        spread = 2 if relation == B else 1
        for table in tables:
            counts = counts_of(made, executor_of(table).execute(made.plans[0]))
            for search, seen in zip(made.searches.searches, counts, strict=True):
                values = [UNIVERSE[place][0 if search.column.name == "x" else 1] for place in table]
                rows = [value for value in values if value is not None and not math.isnan(value)]
                bounds, steps = candidates(whole=search.column.type is Type.INTEGER)
                for side, law in zip((-1, 1), laws_of(search, seen), strict=True):
                    beyond = [sum(side * value > bound for value in rows) for bound in bounds]
                    scores = -float(search.epsilon) / spread * np.array(beyond) - 0.7 * np.array(steps)
                    expected = scores - scores.max()
                    expected -= math.log(np.exp(expected).sum())
                    likely = expected > -30
                    assert np.allclose(law[likely], expected[likely], atol=0.05), f"{search.column} {table} {side}"


def test_the_law_of_a_search():
    check_law_of_a_search()


def test_chosen_bounds_hold_the_candidates():
    """Every bound that can be chosen is one of the public list, whatever the rows, and never an empty range."""
    made = calibrated_by(SHAPE.schema(), "SELECT SUM(x), SUM(n) FROM t", U)
    for table in ((), (0,), (4, 4), (0, 1, 2, 3, 4) * 30):
        exact = executor_of(table).execute(made.plans[0])
        for _ in range(20):
            for search, held in zip(made.searches.searches, made.searches.choose(exact), strict=True):
                bounds = candidates(whole=search.column.type is Type.INTEGER)[0]
                assert held.upper in bounds
                assert -held.lower in bounds
                assert held.lower < held.upper
    assert [search.grid.points for search in made.searches.searches] == [2 * len(candidates(whole=w)[0]) + 1
                                                                        for w in (False, True)]  # fmt: skip


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
        self.kept: dict[Any, list[tuple[int, ...]]] = {}

    def counts(self, data: Data, key: bytes) -> list[tuple[int, ...]]:
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


@pytest.mark.parametrize("sql", OF_PEOPLE)
def test_searches_among_the_rows_of_people(sql: str):
    attained = [
        check_people(sql, limits, PEOPLE_HOWS[place % len(PEOPLE_HOWS)]) for place, limits in enumerate((R1, R3, G22))
    ]
    assert max(attained) > 0.3, f"no neighbour comes near what is charged: {attained}"


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
            assert min(found) > 0.9, f"{relation} {limits}: {found} of what is charged"


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


@pytest.mark.parametrize("how", [{}, {"delta": 1e-6, "mechanism": "gaussian"}, {"epsilon": 50}], ids=str)
@pytest.mark.parametrize("declared", [{"x": "auto", "y": (0, 5)}, {"x": (-9, 9), "y": (0, 5)}], ids=["auto", "bounds"])
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_no_row_raises_or_changes_the_shape(kind: str, declared: dict[str, Any], how: dict[str, Any]):
    """The same columns, rows and types, and no word more, whatever the rows hold."""
    for sql in TOLD:
        shapes = set()
        for cells in ODD:
            frame = pd.DataFrame({
                "x": checks.series(cells, object), "y": checks.series(cells[::-1], object),
                "k": checks.series((["a", None, 3, "b"] * 20)[: len(cells)], object),
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
    some were."""
    answer, released = found._answer, found._released
    values = released.values.shape if not released.bounds else released.values.shape[1:]
    return (len(found), tuple(answer.names), tuple(answer.types), len(released.bounds), values,
            str(found.df.dtypes.tolist()), str(found.loss), len(released.keys))  # fmt: skip


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
    frame = pd.DataFrame({"x": np.arange(400) % 90, "k": ["a", "b"] * 200})
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
