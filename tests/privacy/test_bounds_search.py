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
from dpsql import release_bounds
from dpsql.executors.base import ExactTable
from dpsql.executors.columns import ColumnStore
from dpsql.executors.pandas import PandasExecutor
from dpsql.intervals import Interval
from dpsql.privacy.choice_laws import exponential_law, permute_and_flip_law
from dpsql.release import Release
from dpsql.release_bounds import Search, candidates
from dpsql.schema import Type
from tests.privacy import checks, unit_checks
from tests.privacy.checks import INF, NAN, B, Row, Shape, U, cells_of
from tests.privacy.test_draws_neighbours import ORDERS, SLACK, log_ratio, renyi
from tests.privacy.test_draws_neighbours import compare as compare_draws
from tests.privacy.test_draws_neighbours import counts_of as counts_of_draws
from tests.privacy.test_statistics_neighbours import Met, calibrated_by, check_cost
from tests.privacy.test_statistics_neighbours import compare as compare_cells
from tests.privacy.unit_checks import G22, R1, R2, R3, Data, people, planned

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
    (-2.0**40, 2**62, INF, True, None, 7),
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
    ("FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE b)", {}),
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

    with mock.patch.object(release_bounds, search.mechanism, choose):
        search.choose(np.array(counts, dtype=np.int64))
    return tuple(seen)


def counts_of(made: Release, exact: ExactTable) -> list[tuple[int, ...]]:
    """What each search sees."""
    assert made.searches is not None
    found = []
    for search, grid in zip(made.searches.searches, exact.grids, strict=True):
        counts = np.zeros(search.grid.points, dtype=np.int64)
        counts[grid.points] = grid.counts
        found.append(tuple(counts.tolist()))
    return found


def compare(made: Release, one: list[tuple[int, ...]], other: list[tuple[int, ...]], where: str) -> float:
    """What two neighbours' searches cost beside what is charged for them; the part of it that was attained."""
    assert made.searches is not None
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
    assert made.searches is not None
    check_costs(made, sql)
    tables = checks.every_table(UNIVERSE, most)
    counts = {table: counts_of(made, executor_of(table).execute(made.searches.exact)) for table in tables}
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
    assert made.searches is not None
    found = made.searches
    parts = [search.epsilon for search in found.searches]
    if found.cost.epsilon is not None:
        assert sum(parts) <= found.cost.epsilon, where
    else:
        assert sum(part * part / 8 for part in parts) <= found.cost.rho, where
    for bounds in INTERVALS:
        after = found.settle((bounds,) * len(found.searches))
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
        how = HOWS[(place + turn) % len(HOWS)] if "=>" not in asked else {}
        relation = (U, B)[(place + turn) % 2]
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
