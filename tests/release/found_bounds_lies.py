"""Mutations of bounds that are chosen by default, each with a check that fails under it.

A mutation is a monkeypatch of dpsql; its check passes on the honest engine. `test_found_bounds_lies` runs them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import dpsql
from dpsql.core.mechanisms import samplers
from dpsql.errors import DPSQLError, MissingBounds
from dpsql.executors.base import executor_of
from dpsql.release import found_bounds
from dpsql.release import plan as release_plan
from dpsql.release.bounds import auto_bounds
from dpsql.release.release import Release, ReleasedValues
from dpsql.session import query as queries
from dpsql.session import session as sessions
from dpsql.session.tables import table as declared_tables
from dpsql.sources import frames
from tests.lies import Check, Lie, Patch

SQL = "SELECT AVG(x) FROM t"
EPSILON = 2
DRAWS = 300
ROWS = 24
"""About every other answer is NULL."""
NEIGHBOURS = ([40] * ROWS, [40] * (ROWS - 1), [*[40] * ROWS, 40], [*[40] * ROWS, -(10**9)], [*[40] * ROWS, None])
"""A table and neighbours of it: one row less, or one more of any kind."""


def nulls_of(cells: list[Any]) -> int:
    """In how many of `DRAWS` draws the average of a table is NULL, with search, noise and decision as a query has them.
    Plans and weights, which are the same in all draws, are made once."""
    frame = pd.DataFrame({"x": pd.Series(cells, dtype="Int64")})
    session = dpsql.Session({"t": frame}, budget=dpsql.Budget(EPSILON))
    release = session.explain(SQL, epsilon=EPSILON)._release
    executor = executor_of(session._stores, session._engine)
    exact = cache(lambda plan: executor.execute(plan, bytes(32)))
    settled = cache(release.settled)
    (grid,) = exact(release.plans[0]).grids
    weights = release.searches.searches[0].weighed(grid)

    def is_null() -> bool:
        bounds = release.choose_bounds(exact)
        planned: Release = settled(bounds)
        released = planned.privatise(exact(planned.exact))
        values = ReleasedValues(released.keys, released.values, bounds=bounds)
        return found_bounds.judged(release, values).meaningless == {0}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto_bounds.Search, "weighed", lambda *_: weights)
        patch.setattr(Release, "settled", lambda _release, bounds: settled(bounds))
        return sum(is_null() for _ in range(DRAWS))


def certified(one: int, other: int) -> float:
    """A lower bound of epsilon from how often an event was seen of two tables, as in `tests.core.test_audit`."""
    low = beta.ppf(5e-7, one, DRAWS - one + 1) if one else 0.0
    high = beta.ppf(1 - 5e-7, other + 1, DRAWS - other) if other < DRAWS else 1.0
    return math.log(max(float(low), 1e-300) / float(high))


def null_tells_no_more_than_its_cost() -> None:
    """NULL or a number: neighbouring tables differ in how often by a factor of exp(epsilon) at most."""
    with pytest.MonkeyPatch.context() as patch:
        words = np.random.default_rng(3)
        patch.setattr(samplers, "random_words", lambda n: words.integers(0, 2**64, n, dtype=np.uint64))
        found = [nulls_of(cells) for cells in NEIGHBOURS]
    assert DRAWS * 0.1 < found[0] < DRAWS * 0.9, f"no power: {found}"
    pairs = [(found[0], other) for other in found[1:]] + [(other, found[0]) for other in found[1:]]
    events = [*pairs, *((DRAWS - one, DRAWS - other) for one, other in pairs)]
    assert max(certified(one, other) for one, other in events) <= EPSILON, found


def released_values_decide() -> None:
    """The same released values give the same decision, whatever table the plan is of."""
    frame = pd.DataFrame({"x": [40] * 4_000})
    released = dpsql.query(frame, SQL, epsilon=EPSILON)._released
    for rows in (0, 1, 4_000):
        session = dpsql.Session({"t": frame.head(rows)}, budget=dpsql.Budget(EPSILON))
        session.query(SQL, epsilon=EPSILON)
        plan = session.explain(SQL, epsilon=EPSILON)._release
        assert found_bounds.judged(plan, released).meaningless == frozenset()
        none = ReleasedValues(released.keys, np.zeros_like(released.values), bounds=released.bounds)
        assert found_bounds.judged(plan, none).meaningless == {0}


def few_rows_are_null() -> None:
    """Nearly no average of 5 rows is a number."""
    frame = pd.DataFrame({"x": [40] * 5})
    assert sum(dpsql.query(frame, SQL, epsilon=1).item() is None for _ in range(12)) >= 10


def the_search_is_part_of_the_price() -> None:
    """A query with chosen bounds costs what was asked, search and noise together."""
    session = dpsql.Session({"t": pd.DataFrame({"x": [40] * 9})}, budget=dpsql.Budget(1))
    release = session.explain(SQL, epsilon=1)._release
    parts = [*(each.cost for each in release.searches.searches), *(share.cost for share in release.shares)]
    assert sum((each.epsilon or Fraction(0) for each in parts), Fraction(0)) == release.cost.epsilon == 1
    settled = release.settled((release_plan.widest(release.searches.searches[0].column),))
    assert sum((each.cost.epsilon or Fraction(0) for each in settled.shares), Fraction(0)) <= Fraction(7, 10)


def medians_are_counted_at_a_price() -> None:
    """A median of an undeclared column has a noisy count next to it, within the cost of the query."""
    session = dpsql.Session({"t": pd.DataFrame({"x": [40] * 9})}, budget=dpsql.Budget(1))
    release = session.explain("SELECT MEDIAN(x) FROM t", epsilon=1)._release
    parts = [*(each.cost for each in release.searches.searches), *(each.cost for each in release.shares)]
    parts += [each.cost for each in release.draws]
    assert [each.epsilon for each in parts] == [Fraction(3, 10), Fraction(7, 50), Fraction(14, 25)]
    assert release.cost.epsilon == 1


def the_owner_is_heard() -> None:
    """auto_bounds = false in the owner's file refuses what the caller would allow."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_text("x\n40\n")
        file = Path(folder) / "t.toml"
        columns = '[tables.t.columns]\nx = { type = "integer" }\n'
        file.write_text(f'auto_bounds = false\n[budget]\nepsilon = 1\n[tables.t]\npath = "t.csv"\n{columns}')
        try:
            dpsql.Session(schema=dpsql.Schema.from_toml(file), ledger=False, auto_bounds=True).query(SQL, epsilon=1)
        except MissingBounds:
            return
    raise AssertionError("the query was answered")


def declared_bounds_win() -> None:
    """Nothing is chosen for a column with bounds."""
    frame = pd.DataFrame({"x": [40] * 9})
    assert dpsql.query(frame, SQL, epsilon=1, bounds={"x": (0, 100)}).bounds == {}


def categories_are_the_dtypes() -> None:
    """keys={"k": "categories"} reads no row: neighbouring tables have the same groups."""
    column = pd.Series(["a", "b", "c"], dtype=pd.CategoricalDtype(["a", "b", "c"]))
    sql = "SELECT k, COUNT(*) FROM t GROUP BY k"
    try:
        groups = {
            tuple(dpsql.query(pd.DataFrame({"k": rows}), sql, epsilon=1, keys={"k": "categories"}).df["k"])
            for rows in (column, column.iloc[:2])
        }
    except DPSQLError as error:
        raise AssertionError("the table was refused") from error
    assert groups == {("a", "b", "c")}


def exact_rows_decide(patch: Patch) -> None:
    """NULL where the exact counts of the search have few rows."""
    honest, rows = auto_bounds.Search.choose, [0]

    def choose(self: Any, grid: Any) -> Any:
        rows[0] = int(grid.counts.sum())
        return honest(self, grid)

    patch.setattr(auto_bounds.Search, "choose", choose)
    patch.setattr(found_bounds, "_is_found", lambda *_: rows[0] >= ROWS)


def the_last_table_decides(patch: Patch) -> None:
    """A decision is that of the table that was asked last."""
    honest, rows = auto_bounds.Search.choose, [0]

    def choose(self: Any, grid: Any) -> Any:
        rows[0] = int(grid.counts.sum())
        return honest(self, grid)

    patch.setattr(auto_bounds.Search, "choose", choose)
    patch.setattr(found_bounds, "_rows", lambda *_: found_bounds.Rows(rows[0], rows[0], rows[0]))


def all_bounds_count_as_found(patch: Patch) -> None:
    """Numbers inside bounds that no row chose."""
    patch.setattr(found_bounds, "_is_found", lambda *_: True)


def the_search_leaves_everything(patch: Patch) -> None:
    """The noise is of the whole epsilon, as if the search were free."""
    patch.setattr(release_plan, "_rest", lambda allowed: allowed)


def chosen_bounds_are_planned_at_the_whole_epsilon(patch: Patch) -> None:
    """The plan with chosen bounds spends what was paid for the search once more."""
    honest = release_plan._Plans.of
    patch.setattr(release_plan._Plans, "of", lambda self, bounds, law, _=None: honest(self, bounds, law, self.allowed))


def medians_are_not_counted(patch: Patch) -> None:
    """Nothing tells if a median has any rows."""
    patch.setattr(release_plan, "with_count", lambda query, *_: query)


def only_the_caller_is_heard(patch: Patch) -> None:
    """The owner's file is not asked."""
    patch.setattr(sessions, "chooses_bounds", lambda word, _schema=None: word)


def declared_columns_are_loose(patch: Patch) -> None:
    """Bounds are chosen for columns that have some."""
    patch.setattr(auto_bounds, "loose_columns", lambda *_, **__: ())
    honest = release_plan.loose_columns

    def loose(query: Any, known: Any, *, auto_bounds: bool = False) -> Any:
        arguments = (each.argument for each in query.plan.aggregations)
        return honest(query, known, auto_bounds=auto_bounds) or tuple(each for each in arguments if each is not None)

    patch.setattr(release_plan, "loose_columns", loose)


def categories_are_those_that_occur(patch: Patch) -> None:
    """The list of keys is read from the rows."""

    def occurring(keys: Any, frame: object) -> Any:
        if not isinstance(keys, dict) or "categories" not in keys.values() or not isinstance(frame, pd.DataFrame):
            return keys
        return {name: frame[name].unique().tolist() for name in keys}

    for module in (frames, queries, declared_tables):
        patch.setattr(module, "with_categories", occurring)


LIES: list[tuple[Lie, Check]] = [
    (exact_rows_decide, null_tells_no_more_than_its_cost),
    (the_last_table_decides, released_values_decide),
    (all_bounds_count_as_found, few_rows_are_null),
    (the_search_leaves_everything, the_search_is_part_of_the_price),
    (chosen_bounds_are_planned_at_the_whole_epsilon, the_search_is_part_of_the_price),
    (medians_are_not_counted, medians_are_counted_at_a_price),
    (only_the_caller_is_heard, the_owner_is_heard),
    (declared_columns_are_loose, declared_bounds_win),
    (categories_are_those_that_occur, categories_are_the_dtypes),
]
