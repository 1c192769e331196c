"""How far answers of the engine are from the truth, over many runs.

A query is prepared and its exact integers are computed once; each run draws fresh noise for them with
`Release.privatise` and estimates every aggregate, unrounded, as `finish` does. Where a query chooses its own bounds,
they are drawn afresh in every run too, and the query is planned with them as `answer` does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from measure import exact, stages
from numpy.typing import NDArray

import dpsql
from dpsql.core.exact import ExactTable
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.output.select import slot_vectors
from dpsql.release.release import Release
from dpsql.schema.intervals import Interval

Floats = NDArray[np.float64]

EPSILON = 1.0


def answers(table: dpsql.Table, sql: str, runs: int, *, epsilon: float = EPSILON, **how: Any) -> NDArray[Any]:
    """Shape (runs, aggregates, groups)."""
    release, store = stages("t", table, sql, epsilon=epsilon, **how)
    if not release.provisional:
        found = exact(release, store)
        return np.array([_aggregates(release, found) for _ in range(runs)])
    executor = PandasExecutor({store.schema.name: store})
    counts = executor.execute(release.plans[0])
    settled: dict[tuple[Interval, ...], tuple[Release, ExactTable]] = {}  # bounds that were drawn before
    drawn = []
    for _ in range(runs):
        bounds = release.searches.choose(counts)
        if bounds not in settled:
            made = release.settled(bounds)
            settled[bounds] = made, executor.execute(made.exact)
        drawn.append(_aggregates(*settled[bounds]))
    return np.array(drawn)


def _aggregates(release: Release, found: ExactTable) -> list[NDArray[Any]]:
    first, last = len(release.query.plan.keys), len(release.query.slots)
    return [vector.values for vector in slot_vectors(release, release.privatise(found))[first:last]]


def errors(table: dpsql.Table, sql: str, truth: Floats, runs: int, **how: Any) -> Floats:
    """Shape (runs, aggregates, groups), of truth (aggregates, groups)."""
    return np.asarray(answers(table, sql, runs, **how).astype(np.float64) - truth)


def rmse(off: Floats) -> tuple[float, float]:
    """Root mean square of errors (runs, groups), and its standard error over runs."""
    squares = (off**2).mean(axis=1)
    root = math.sqrt(squares.mean())
    return root, float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * root)


def mean(values: Floats) -> tuple[float, float]:
    """The mean of values (runs,), and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
