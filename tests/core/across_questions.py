"""Questions that are answered with noise for all groups together, and checks of all their neighbours."""

from __future__ import annotations

from typing import Any

from dpsql.core.mechanisms.group_vectors import ALL, EITHER
from dpsql.release.release import Release
from tests.core.checks import B, Shape, calibrated, distances
from tests.core.slice_checks import check_alike
from tests.core.unit_checks import CLAUSE, Question, U, asking_of, check_question

MANY = {"max_groups": 5, "max_rows_per_group": 1}
TWICE = {"max_groups": 5, "max_rows_per_group": 2}
AROUND = [
    Question("SELECT k, COUNT(*) FROM e GROUP BY k", MANY),
    Question("SELECT k, COUNT(DISTINCT pid) FROM e GROUP BY k", MANY),
    Question("SELECT k, COUNT(*) FROM e GROUP BY k", TWICE),
    Question("SELECT k, COUNT(y), SUM(y) FROM e GROUP BY k", TWICE),
    Question("SELECT k, SUM(CLAMP(y, 0, 3)), AVG(y) FROM e WHERE y <> 1 GROUP BY k", MANY),
    Question("SELECT k, COUNT(*) FROM e GROUP BY k", {"max_groups": 4, "max_rows_per_group": 1}),
    Question("SELECT e.k, COUNT(*), SUM(w) FROM e JOIN pub ON e.k = pub.k GROUP BY e.k", MANY),
    Question("SELECT k, y > 0, COUNT(*) FROM e WHERE k BETWEEN 0 AND 1 GROUP BY k, y > 0", MANY),
    Question("SELECT k, COUNT(*), COUNT(DISTINCT pid) FROM e GROUP BY k", TWICE),
    Question(f"{CLAUSE} (max_groups_contributed = 5) k, COUNT(*), AVG(y) FROM e GROUP BY k", MANY),
    Question("SELECT k, COUNT(*), SUM(v) FROM (SELECT pid, k, y AS v FROM e UNION ALL SELECT pid, k, 1 FROM e) "
             "GROUP BY k", MANY),
]  # fmt: skip
SLICED = [
    Question("SELECT e.k, COUNT(*) FROM e CROSS JOIN pub GROUP BY e.k", MANY),
    Question("SELECT e.k, COUNT(DISTINCT pid) FROM e CROSS JOIN pub GROUP BY e.k", MANY),
    Question("SELECT e.k, COUNT(w) FROM e CROSS JOIN pub GROUP BY e.k", TWICE),
]

ROWS_OF_TWO = Shape(
    {"b": "boolean", "q": "int64", "h": "str"},
    {"nullable": {"b": False, "q": False}, "bounds": {"q": (0, 2)}, "keys": {"h": ["a", None]}},
)
UNIVERSE: list[tuple[Any, ...]] = [
    (True, 0, "a"), (False, 2, None), (None, 1, "zz"), (True, 5, "a"), (False, -1, "zz"), (True, 2, None),
]  # fmt: skip
FOLLOWING = (
    "SELECT b, COUNT(*) FROM t GROUP BY b",
    "SELECT h, COUNT(*) FROM t GROUP BY h",
    "SELECT q > 1, COUNT(*) FROM t GROUP BY q > 1",
    "SELECT b, COUNT(*), SUM(q) FROM t GROUP BY b",
    "SELECT b, COUNT(q), AVG(q) FROM t GROUP BY b",
)
IN_NEITHER = Shape({"b": "boolean", "q": "int64", "h": "str"}, {"keys": {"h": ["a", "b"]}})
SOMETIMES = (
    "SELECT h, COUNT(*) FROM t GROUP BY h",
    "SELECT b, COUNT(*) FROM t WHERE b IS NOT NULL GROUP BY b",
    "SELECT b, COUNT(*) FROM t WHERE q > 0 AND b GROUP BY b",
)


def kinds_of(made: Release) -> tuple[str, ...]:
    """What each coordinate with noise is to all groups; none where noise is for each group."""
    return tuple(kind for share in made.shares if share.reach.across is not None for kind in share.reach.across.kinds)


def check_around(asked: Question) -> None:
    """People with limits are no further than it says, under both relations; and it is asked so."""
    check_question(asked, 9, databases=4)
    assert kinds_of(asking_of(asked, U).made)


def check_following(sql: str) -> None:
    """Of two groups that hold all rows one follows from the other, whichever row changes."""
    made, met = distances(ROWS_OF_TWO, sql, UNIVERSE, B, most=2)
    assert EITHER in kinds_of(made)
    assert met.pairs


def check_rows_of_two() -> None:
    """Where a row may be in neither, or may be left out, each group has noise of its own."""
    for sql in SOMETIMES:
        distances(IN_NEITHER, sql, UNIVERSE, B, most=2)


def check_blocks() -> None:
    """People are counted once for all groups however few rows are held at once."""
    for asked in SLICED:
        assert ALL in kinds_of(asking_of(asked, U).made), asked
        assert check_alike(asked, (0, 1, 3))
        assert check_alike(asked, (1, 4), apart=False)


def two_groups(relation: str = B, **declared: Any) -> Release:
    """COUNT(*) by a boolean key."""
    return calibrated(ROWS_OF_TWO.schema(**declared), FOLLOWING[0], relation)
