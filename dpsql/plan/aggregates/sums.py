"""Counts, sums and averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpsql.plan.aggregates.record import AT_LEAST_0, NOT_COMPARED, AggregateFunction, Found, NoisySums
from dpsql.plan.expressions import Fact
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INFINITY, Interval
from dpsql.schema.numbers import SOME_ROWS


def _count(sums: NoisySums) -> Found:
    assert sums.rows is not None  # present for every count
    return sums.rows, None


def _sum(sums: NoisySums) -> Found:
    return sums.total if sums.rows is None else sums.total + sums.centre * sums.rows, None


def _average(sums: NoisySums) -> Found:
    """Return the average, clipped to its range. If the noisy count is below 1/2, return the middle of the range: the
    sum divided by the noisy count of a few rows has a larger expected error. NULL if there are certainly no rows."""
    assert sums.rows is not None  # present for every average
    some = sums.rows >= SOME_ROWS  # with little noise, the count of one row is close to 1, on either side
    mean = sums.centre + sums.total / np.where(some, sums.rows, 1.0)
    held = np.clip(mean, sums.range.lower, sums.range.upper)
    return np.where(some, held, sums.range.middle), sums.rows >= sums.empty_below


def _sum_in_words(total: str, count: str, centre: float) -> str:
    if not total:
        return f"{centre:g} * {count}"
    return f"{total} + {centre:g} * {count}" if count and centre else total


def _average_in_words(total: str, count: str, centre: float) -> str:
    if not total:
        return f"{centre:g}"
    return f"{centre:g} + {total} / {count}" if centre else f"{total} / {count}"


def _sum_of_cells(cells: list[Any], kind: Type) -> Any:
    if kind is Type.INTEGER:
        return sum(cells)
    try:
        total = math.fsum(cells)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        total = sum(cells)
    return None if math.isnan(total) else total


def _average_of_cells(cells: list[Any], _kind: Type) -> Any:
    total = _sum_of_cells(cells, Type.REAL)
    return None if total is None else total / len(cells)


def _sum_fact(fact: Fact) -> Fact:
    """Return the fact of a sum of any number of values from a range."""
    lower = fact.range.lower if fact.range.lower >= 0 else -INFINITY
    upper = fact.range.upper if fact.range.upper <= 0 else INFINITY
    return Fact(Interval(lower, upper), fact.nullable)


def _whole(_kind: Type) -> Type:
    return Type.INTEGER


COUNT = AggregateFunction(
    "COUNT", "count", ("Count(this, big_int)", "CountIf(IF this)"),  # big_int: 64 bits wide, like all integers here
    _whole, accepts=None, accepts_exact=None,
    moments="n", estimate=_count, values=AT_LEAST_0, formula=lambda _total, count, _centre: count,
    of_cells=lambda cells, _kind: len(cells), of_nothing=0,
    fact_of=lambda fact: Fact(Interval(0 if fact.nullable else 1, INFINITY), nullable=False),
)  # fmt: skip
AGGREGATES = (
    COUNT,
    AggregateFunction(
        "COUNT(DISTINCT)", "count of different", ("Count(DISTINCT this)", "ApproxDistinct(this)"),
        _whole, **NOT_COMPARED, accepts_exact=None,
        distinct=True, estimated_as=COUNT,
        unclipped=("COUNT(DISTINCT ...) has no contribution bounds: a value counts once.", ""),
        of_cells=lambda cells, _kind: len(set(cells)), of_nothing=0,
        fact_of=lambda _fact: Fact(AT_LEAST_0, nullable=False),
    ),
    AggregateFunction(
        "SUM", "sum", ("Sum(this)",),
        lambda kind: Type.INTEGER if kind in (Type.INTEGER, Type.BOOLEAN) else Type.REAL,
        moments="s", estimate=_sum, formula=_sum_in_words, of_cells=_sum_of_cells, fact_of=_sum_fact,
    ),
    AggregateFunction(
        "AVG", "average", ("Avg(this)",),
        moments="ns", estimate=_average, values=None, formula=_average_in_words, of_cells=_average_of_cells,
    ),
)  # fmt: skip
