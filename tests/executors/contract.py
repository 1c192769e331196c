"""The contract of engines: equal integers, by ==, for the same plan, rows and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd

import dpsql
from dpsql.errors import QueryRefused
from dpsql.testing import Integers, insecure_exact
from tests.plan.test_oracle_functions import AGGREGATES, CONDITIONS, EXPRESSIONS
from tests.sql import join_queries
from tests.sql.oracle_queries import GROUPED, ORDERED, whole
from tests.sql.people import BOUNDS, KEYS, TYPES, frame
from tests.sql.test_oracle import BY_GROUP_QUERIES, ONE_GROUP_QUERIES, ORDERED_QUERIES

KEY = bytes(range(32))
TERMS = {"epsilon": 1, "delta": 1e-6}
LAST_BITS = re.compile(
    r"has no groups by the last bits of .*(EXP|LN|LOG|LOG2|LOG10|CBRT|POWER)\("
    r"|the engine spark, .* has no (CAST of a REAL to text|LIKE with a pattern that is no constant)"
)
"""What an engine may refuse alone: keys with public values that a library computes which is not NumPy's, and the
functions that Spark has not."""


def session(tables: Mapping[str, Any], engine: str, **more: Any) -> dpsql.Session:
    return dpsql.Session(tables, budget=dpsql.Budget(1e9, 1e-3), engine=engine, **more)


@cache
def of_one_table(engine: str) -> dpsql.Session:
    """A table of every type, with NULLs, NaN and values outside bounds and lists."""
    return session({"t": people()}, engine)


def people(data: pd.DataFrame | None = None) -> dpsql.Table:
    return dpsql.Table(frame() if data is None else data, bounds=BOUNDS, keys=KEYS, types=TYPES)


@cache
def of_several_tables(engine: str) -> dpsql.Session:
    """Tables of people, with units along paths, and public ones."""
    return session(join_queries.tables(), engine)


def one_table_queries() -> list[str]:
    listed = [text for text, _ in whole()] + ONE_GROUP_QUERIES + [text for _, text in BY_GROUP_QUERIES]
    listed += ORDERED_QUERIES + [each[2] for each in GROUPED] + [each[0] for each in ORDERED]
    return list(dict.fromkeys(listed))


def several_tables_queries() -> list[str]:
    listed = [text for text, _ in join_queries.one_row()]
    listed += [each[2] for each in join_queries.queries(join_queries.GROUPED)]
    listed += [each[2] if len(each) > 2 else each[-1] for each in join_queries.queries(join_queries.UNKNOWN)]
    return list(dict.fromkeys(listed))


def function_queries() -> list[str]:
    """Every function in WHERE and in aggregates, and as a key."""
    inside = "SELECT COUNT(*), COUNT({0}), {1} FROM t WHERE {2}"
    by_key = "SELECT {0} AS k, COUNT(*), COUNT({0}), {1} FROM t GROUP BY k"
    listed = []
    for each in EXPRESSIONS:
        aggregate = AGGREGATES[each.kind].format(each.ours)
        listed.append(inside.format(each.ours, aggregate, CONDITIONS[each.kind].format(each.ours)))
        listed.append(by_key.format(each.ours, aggregate))
    return listed


def functions_together(most: int) -> list[str]:
    """Every function in aggregates and in conditions, up to so many in a statement."""
    listed = []
    for start in range(0, len(EXPRESSIONS), most):
        columns = ["COUNT(*)"]
        for each in EXPRESSIONS[start : start + most]:
            condition = CONDITIONS[each.kind].format(each.ours)
            columns += [f"COUNT({each.ours})", AGGREGATES[each.kind].format(each.ours)]
            columns.append(f"COUNT(*) FILTER (WHERE {condition})")
        listed.append(f"SELECT {', '.join(columns)} FROM t")
    return listed


def difference(one: dpsql.Session, other: dpsql.Session, sql: str, key: bytes = KEY, **terms: Any) -> str:
    """How the integers of two sessions differ; nothing where they do not, or the query is refused, by both alike or for
    its last bits."""
    found: list[Integers | str] = []
    for held in (one, other):
        try:
            found.append(insecure_exact(held, sql, key, **{**TERMS, **terms}))
        except QueryRefused as refusal:
            found.append(f"{type(refusal).__name__}: {refusal}")
    if found[0] == found[1] or any(isinstance(each, str) and LAST_BITS.search(each) for each in found):
        return ""
    if not isinstance(found[0], Integers) or not isinstance(found[1], Integers):
        return f"{sql}: {found}"
    parts = [
        (group, found[0].parts.get(group), found[1].parts.get(group)) for group in {**found[0].parts, **found[1].parts}
    ]
    grids = [
        (group, found[0].grids.get(group), found[1].grids.get(group)) for group in {**found[0].grids, **found[1].grids}
    ]
    return f"{sql}: {[each for each in (*parts, *grids) if each[1] != each[2]][:4]}"


def differences(one: dpsql.Session, other: dpsql.Session, queries: Iterable[str], **terms: Any) -> list[str]:
    return [found for sql in queries if (found := difference(one, other, sql, **terms))]
