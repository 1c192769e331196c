"""Windows inside a person's rows: neighbours, whole people at a time, and lies about them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.sensitivity import contribution_bounds as contribution
from dpsql.core.sensitivity import row_contributions as sensitivity
from dpsql.core.sensitivity import stability
from dpsql.errors import InternalError
from dpsql.executors.pandas.windows import window_functions as windows
from dpsql.plan import nodes
from dpsql.plan.query import format_plan
from dpsql.plan.windows import WindowCall
from dpsql.session.cache.question_key import explain
from tests.core import unit_checks
from tests.core.checks import U
from tests.core.unit_checks import R3, Question, asking_of
from tests.lies import Lie, Patch, assert_caught

SEED = 20_260_717
CALLS = [
    "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(2)", "CUME_DIST()", "PERCENT_RANK()", "LAG(y)", "LEAD(y, 2, 0)",
    "LAG(y) IGNORE NULLS", "FIRST_VALUE(y)", "LAST_VALUE(y IGNORE NULLS)", "COUNT(*)", "COUNT(y)", "SUM(y)", "MIN(y)",
    "MAX(y)", "AVG(y)", "SUM(y) FILTER (WHERE k > 0)",
]  # fmt: skip
ORDERS = ["", "ORDER BY k", "ORDER BY y DESC", "ORDER BY k DESC NULLS FIRST, y", "ORDER BY eid"]
FRAMES = ["", "ROWS 1 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]  # fmt: skip
PARTS = ["pid", "pid", "pid, k", "eid"]


def window(rng: random.Random) -> str:
    call, order, part = rng.choice(CALLS), rng.choice(ORDERS), rng.choice(PARTS)
    framed = call.startswith(("FIRST", "LAST", "COUNT", "SUM", "MIN", "MAX", "AVG"))
    frame = rng.choice(FRAMES) if framed and order in ("ORDER BY k", "ORDER BY y DESC") else ""
    return f"{call} OVER (PARTITION BY {part} {order} {frame})"


def statement(rng: random.Random) -> str:
    made, key = window(rng), rng.choice(["", "", "k"])
    by = f" GROUP BY {key}" if key else ""
    shown = f"{key}, " if key else ""
    if rng.random() < 0.3:
        kept = rng.choice(["= 1", "<= 2", "< 3", "IN (1, 3)", "BETWEEN 1 AND 2"])
        part = rng.choice(["pid", "pid", "eid"])
        rows = f"SELECT * FROM e QUALIFY ROW_NUMBER() OVER (PARTITION BY {part} {rng.choice(ORDERS)}) {kept}"
        return f"SELECT {shown}COUNT(*), SUM(y), COUNT(DISTINCT pid) FROM ({rows}){by}"
    rows = f"SELECT *, {made} AS w FROM e{rng.choice(['', ' WHERE y > -1'])}"
    where = rng.choice(["", " WHERE w > 1", " WHERE w IS NOT NULL"])
    return f"SELECT {shown}COUNT(*), SUM(CLAMP(w, -2, 3)), COUNT(w) FROM ({rows}){where}{by}"


def test_windows_of_neighbours():
    unit_checks.check_statements(statement, SEED, 12, databases=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 21))
def test_windows_of_many_neighbours(part: int):
    unit_checks.check_statements(statement, SEED + part, 60, databases=4)


FIRST = "QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY y) = 1"
STEPS = "SELECT pid, CASE WHEN y - LAG(y) OVER (PARTITION BY pid ORDER BY y) > 1 THEN 1 ELSE 0 END AS b FROM e"
RANKED = "SELECT eid, RANK() OVER (PARTITION BY pid ORDER BY k) AS r FROM e"
BOTH = "SELECT pid, y AS q FROM e UNION ALL SELECT pid, CAST(x AS BIGINT) AS q FROM p"
NESTED = [
    f"SELECT COUNT(*), SUM(CLAMP(n, 0, 3)) FROM (SELECT pid, SUM(b) AS n FROM ({STEPS}) GROUP BY pid)",
    f"SELECT COUNT(*), SUM(z) FROM i JOIN (SELECT * FROM e {FIRST}) AS f USING (eid)",
    f"SELECT COUNT(*) FROM e WHERE eid IN (SELECT eid FROM ({RANKED}) WHERE r = 1)",
    f"SELECT SUM(CLAMP(w, 0, 5)) FROM (SELECT COUNT(*) OVER (PARTITION BY pid ORDER BY q) AS w FROM ({BOTH}))",
    "SELECT COUNT(*), SUM(CLAMP(z, 0, 2)) FROM (SELECT SUM(CAST(z AS BIGINT)) OVER (PARTITION BY eid) AS z FROM i)",
]


@pytest.mark.parametrize("sql", NESTED)
def test_windows_among_other_nodes(sql: str):
    unit_checks.check_question(Question(sql, R3), SEED, 2, changes=1)


def rows_of(sql: str) -> int | None:
    made = asking_of(Question(sql, R3), U).made
    return stability.stability(made.exact.source).rows


def first(window: str, kept: str) -> str:
    return f"SELECT COUNT(*) FROM (SELECT pid, y, {window} AS n FROM e) WHERE {kept}"


def test_numbered_rows_bound_those_of_a_unit():
    """Only by a ROW_NUMBER over the unit alone, and only where no node stands between that may double its rows."""
    alone = "ROW_NUMBER() OVER (PARTITION BY pid ORDER BY y)"
    limited = {"n = 1": 1, "n <= 2": 2, "n < 2": 1, "3 >= n": 3, "n IN (1, 5)": 2, "n BETWEEN 1 AND 2 AND y > 0": 2}
    passing: dict[str, int | None] = limited | {
        "n <= 0": 0,
        "n > 1": None,
        "n <= y": None,
        "n = 1 OR n = 2": None,
        "n + 0 = 1": None,
    }
    for kept, most in passing.items():
        assert rows_of(first(alone, kept)) == most, kept
    for other in ("RANK() OVER (PARTITION BY pid", "ROW_NUMBER() OVER (PARTITION BY eid",
                  "ROW_NUMBER() OVER (PARTITION BY pid, k", "COUNT(*) OVER (PARTITION BY pid"):  # fmt: skip
        assert rows_of(first(f"{other} ORDER BY y)", "n = 1")) is None, other
    fanned = f"SELECT COUNT(*) FROM (SELECT pid, k, {alone} AS n FROM e) AS f JOIN tags ON f.k = tags.k WHERE n = 1"
    assert rows_of(fanned) in (None, 2)
    doubled = f"SELECT pid, n FROM (SELECT pid, {alone} AS n FROM e)"
    assert rows_of(f"SELECT COUNT(*) FROM ({doubled} UNION ALL {doubled}) WHERE n = 1") is None
    inner = f"SELECT * FROM e QUALIFY {alone} = 1"
    assert rows_of(f"SELECT COUNT(*) FROM ({inner} UNION ALL {inner})") == 2


def test_windows_are_of_declared_units():
    scan = nodes.Scan(unit_checks.people().schemas["t"])
    with pytest.raises(InternalError):
        stability.stability(nodes.Windows(scan, (), ()))


# Lies.


def window_over_everybody(patch: Patch) -> None:
    """The engine forgets to put the unit before what is written."""
    honest = windows.renumber

    def renumber(parts: Any, sizes: Any) -> Any:
        return honest([np.zeros_like(parts[0]), *parts[1:]], [1, *sizes[1:]])

    patch.setattr(windows, "renumber", renumber)


def break_ties_by_position(patch: Patch) -> None:
    patch.setattr(windows._Work, "_by_ties", lambda _self, places, _by, _size: places)


def take_any_row_number_for_a_limit(patch: Patch) -> None:
    """Also one that starts anew in every part of a unit."""
    patch.setattr(WindowCall, "numbers_rows", property(lambda call: call.function.name == "ROW_NUMBER"))


def take_ranks_for_a_limit(patch: Patch) -> None:
    patch.setattr(WindowCall, "numbers_rows", property(lambda call: call.function.family == "place"))


def leave_one_row_less(patch: Patch) -> None:
    honest = stability.stability

    def found(source: Any) -> Any:
        said = honest(source)
        over = isinstance(source, nodes.Filter) and isinstance(source.input, nodes.Windows)
        return replace(said, by_unit=dict.fromkeys(said.by_unit, 1)) if over and said.rows == 2 else said

    for module in (stability, contribution, sensitivity):
        patch.setattr(module, "stability", found)


def asks(sql: str, limits: dict[str, int] = R3) -> Callable[[], None]:
    return unit_checks.people_stay_apart(Question(sql, limits))


COUNTED = "SELECT SUM(CLAMP(w, 0, 90)) FROM (SELECT COUNT(*) OVER (PARTITION BY pid) AS w FROM e)"
KEPT = "SELECT COUNT(*), SUM(y) FROM (SELECT * FROM e QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY k) = 1)"
LIES: list[tuple[Lie, Callable[[], None]]] = [
    (window_over_everybody, asks(COUNTED)),
    (break_ties_by_position, asks(KEPT)),
    (take_any_row_number_for_a_limit, asks(first("ROW_NUMBER() OVER (PARTITION BY pid, y ORDER BY k)", "n = 1"))),
    (take_ranks_for_a_limit, asks(first("RANK() OVER (PARTITION BY pid ORDER BY k)", "n <= 1"))),
    (leave_one_row_less, asks(first("ROW_NUMBER() OVER (PARTITION BY pid ORDER BY k)", "n <= 2"))),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_about_windows_is_caught(lie: Lie, check: Callable[[], None]):
    assert_caught(lie, check)


def test_a_key_that_is_the_unit_numbers_its_rows():
    """A key that leads to the unit in one step is the unit; one that leads to a row of theirs is not."""
    tables = {
        "customers": dpsql.Table(pd.DataFrame({"id": [1]}), unit="id", unique=["id"]),
        "orders": dpsql.Table(
            pd.DataFrame({"id": [1], "customer": [1], "day": [1]}),
            unit="customer -> customers.id",
            unique=["id"],
            max_rows=9,
        ),
        "items": dpsql.Table(pd.DataFrame({"order_id": [1]}), unit="order_id -> orders.id", max_rows=9),
    }
    session = dpsql.Session(tables, budget=dpsql.Budget(10))
    for rows, part, most in (("orders", "customer", 1), ("items", "order_id", 9), ("orders", "id", 9)):
        kept = f"SELECT * FROM {rows} QUALIFY ROW_NUMBER() OVER (PARTITION BY {part}) = 1"
        explained = session.explain(f"SELECT COUNT(*) FROM ({kept})", epsilon=1)
        assert explained.to_dict()["limits"]["rows"] == most, rows


PLAN = """\
finish COUNT(*) AS COUNT(*), SUM(y) AS SUM(y)
  aggregate COUNT(*), SUM(y)
    filter first = 1
      windows inside each privacy unit: ROW_NUMBER() in order of k DESC NULLS FIRST; \
LAG(y, 2, 0) ignoring NULLs by k; SUM(y) in order of k, range 1 preceding to current row; ties by y, k
        filter k > 0
          scan e"""


def test_the_plan_tells_windows_and_what_breaks_ties():
    windows = (
        "ROW_NUMBER() OVER (PARTITION BY pid ORDER BY k DESC NULLS FIRST) AS first, "
        "LAG(y, 2, 0) IGNORE NULLS OVER (PARTITION BY pid, k) AS before, "
        "SUM(y) OVER (PARTITION BY pid ORDER BY k RANGE 1 PRECEDING) AS total"
    )
    sql = f"SELECT COUNT(*), SUM(y) FROM (SELECT *, {windows} FROM e WHERE k > 0) WHERE first = 1"
    query = asking_of(Question(sql, R3), U).made.query
    assert format_plan(query) == PLAN
    assert explain(asking_of(Question(sql, R3), U).made) == "", "it has a key, by which it is replayed"
