"""Whatever is accepted is answered: no query fails after its plan is made, whatever rows there are.

Random queries, and queries in which columns are put in the places of others, an ordinary slip, are planned once and run
over full tables, empty ones, of one row and of NULLs, down to the printed answer. DPSQL_SLIPS=20 asks for twenty times
as many, DPSQL_SLIPS_SEED=n begins at another number.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.unit import Neighbours
from dpsql.errors import InternalError, QueryRefused
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.release import Release
from dpsql.session.prepare import Terms, prepare
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.tables.public_tables import public_data, resolved
from dpsql.sql.names.catalog import Catalog
from tests.sql import join_queries
from tests.sql.test_outer_columns import ANSWERED, REFUSED

TIMES = int(os.environ.get("DPSQL_SLIPS", "1"))
FIRST_SEED = int(os.environ.get("DPSQL_SLIPS_SEED", "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + 240 * TIMES)
PARTS = 8
LISTS = (ANSWERED, REFUSED, join_queries.SUBQUERIES, join_queries.IN_PRIVATE, join_queries.PER_UNIT, join_queries.OUTER)
CORPUS = [row[0] for text in LISTS for row in join_queries.queries(text)]
COLUMNS = [column for table in join_queries.COLUMNS.values() for column in table]
_NAMES = re.compile(r"\b(?:t\d+\.)?[a-z]\w*_\w+|\bt\d+\.\w+\b")
HOW: tuple[dict[str, Any], ...] = (
    {"epsilon": 1, "delta": 1e-6},
    {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"},
    {"epsilon": 1, "delta": 1e-6, "strategy": "split"},
    {"rho": 0.1, "delta": 1e-6},
)


def slipped(seed: int) -> str:
    """A query with one to three of its columns in the places of others; every fourth one as it is."""
    rng = random.Random(seed)
    sql = rng.choice(CORPUS) if rng.random() < 0.7 else join_queries.Joins(seed).query().sql
    for _ in range(0 if seed % 4 == 0 else rng.choice([1, 1, 1, 2, 3])):
        names = list(_NAMES.finditer(sql))
        if names:
            place = rng.choice(names)
            other = rng.choice(names).group(0) if rng.random() < 0.7 else rng.choice(COLUMNS)
            sql = sql[: place.start()] + other + sql[place.end() :]
    return sql


def rows_of(table: dpsql.Table, how: str) -> pd.DataFrame:
    """The rows of a table of people: all, none, one, or three of NULLs."""
    frame = table.frame
    if table.declaration.table.public or how == "full":
        return frame
    if how != "null":
        return frame.iloc[: int(how == "one")]
    nulls = frame.iloc[:3].copy()
    for name in frame.columns:
        if frame[name].dtype.kind not in "iub" or not isinstance(frame[name].dtype.type(), int):
            nulls[name] = frame[name].where(pd.Series(False, index=frame.index)).iloc[:3]
    return nulls


@pytest.fixture(scope="module")
def tables() -> dict[str, dpsql.Table]:
    return join_queries.tables()


@pytest.fixture(scope="module")
def stores(tables: dict[str, dpsql.Table]) -> dict[str, dict[str, ColumnStore]]:
    schemas = resolved(tables)
    return {
        how: {name: ColumnStore(rows_of(table, how), schemas[name]) for name, table in tables.items()}
        for how in ("full", "none", "one", "null")
    }


def shown(release: Release, stores: dict[str, ColumnStore]) -> None:
    """Run and show, with nothing in between that would hide a failure."""
    executor = PandasExecutor(stores)
    bounds = release.choose_bounds(executor.execute)
    settled = release.settled(bounds)
    released = replace(settled.privatise(executor.execute(settled.exact)), bounds=bounds)
    found = PreparedQuery((release,), explain_only=False).result([released], "")
    assert len(list(found)) == len(found.to_pandas(intervals=True)) == len(found.intervals(simultaneous=True))
    assert str(found)
    assert found._repr_html_()
    assert str(found.explanation)
    assert found.explanation.to_dict()


def test_no_group_is_shown_and_none_is_asked_about():
    """Rows of a SELECT over an answer are no released groups: there may be one where no group is."""
    frame = pd.DataFrame({"code": ["a", "b"]})
    found = dpsql.query(
        frame, "SELECT COUNT(*), COUNT(c) FROM (SELECT DISTINCT code AS c FROM t)", epsilon=1, delta=1e-9
    )
    assert len(found) == 1
    assert found.intervals().shape == (1, 2)
    assert str(found)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_accepted_is_answered(
    part: int, tables: dict[str, dpsql.Table], stores: dict[str, dict[str, ColumnStore]]
):
    catalog = Catalog(resolved(tables), public=public_data(stores["full"]))
    answered = 0
    for seed in SEEDS[part::PARTS]:
        sql, how = slipped(seed), dict(HOW[seed % len(HOW)])
        relation = Neighbours.BOUNDED if seed % 5 == 0 else Neighbours.UNBOUNDED
        terms = Terms.of(*(how.pop(word, None) for word in ("epsilon", "delta", "rho")))
        try:
            release = prepare(sql, catalog, relation, terms, **how).releases[0]
        except QueryRefused:
            continue
        except InternalError as error:
            pytest.fail(f"seed {seed}: {error}\n{sql}")
        for rows, held in stores.items():
            try:
                shown(release, held)
            except Exception as error:  # noqa: BLE001 - whatever it is, the seed must be known
                pytest.fail(f"seed {seed}, {rows}: {type(error).__name__} {error}\n{sql}")
        answered += 1
    assert answered > 2
