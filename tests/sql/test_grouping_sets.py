"""GROUP BY ROLLUP, CUBE and GROUPING SETS against DuckDB with the noise out of the way; that noisy answers add up, and
how far off they are.

Levels are told apart by GROUPING. Every public group is shown, so rows that DuckDB lacks are those of 0 people.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql import errors
from dpsql.answer.explain import Explanation
from dpsql.release.intervals.intervals import linear_half_width
from dpsql.release.output.select import slot_vectors
from dpsql.release.release import Release
from tests.core.checks import Shape, U, calibrated, run_exactly
from tests.core.test_statistics_neighbours import calibrated_by
from tests.seeding import seed
from tests.sql.oracle import Row, matched, same, same_rows
from tests.sql.oracle_queries import LISTED_C, LISTED_S
from tests.sql.people import BOUNDS, KEYS, TYPES, ask, duck, frame

TOLERANCE = 1e-5
"""Shares of epsilon 1e9, and sums of many cells."""
SEED = 22_112_026


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return frame()


@pytest.fixture(scope="module")
def oracle(people: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    """Keys as they are declared: `s` outside its list is NULL, rows whose `c` is outside are left out."""
    connection = duck(people)
    connection.execute(f"CREATE VIEW listed AS SELECT * REPLACE ({LISTED_S} AS s) FROM t")
    connection.execute(f"CREATE VIEW within AS SELECT * FROM listed WHERE {LISTED_C}")
    return connection


def duck_text(sql: str) -> str:
    """DuckDB's text. Rows outside the list of `c` are in no level of a query that groups by it."""
    grouped = sql.split("GROUP BY", 1)[-1]
    table = "within" if re.search(r"\bc\b", grouped) else "listed"
    return re.sub(r"\bFROM t( AS \w+)?", lambda found: f"FROM {table}{found[1] or ' AS t'}", sql)


def like_duckdb(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection, **options: Any) -> None:
    """The same rows but for those of nobody; the last column is COUNT(*)."""
    theirs = oracle.execute(duck_text(sql)).fetchall()
    unmet, missing = matched(ask(people, sql, **options), theirs, TOLERANCE)
    assert missing == [], f"{sql}: no row like {missing[:3]}, but {unmet[:3]}"
    assert all(same(row[-1], 0, TOLERANCE) for row in unmet), f"{sql}: {unmet[:3]}"


SAME = """
    SELECT b, nb, COUNT(*) FROM t GROUP BY ROLLUP (b, nb)
    SELECT nb, j, AVG(i), COUNT(*) FROM t GROUP BY ROLLUP (j, nb)
    SELECT b, nb, SUM(i), COUNT(*) FROM t GROUP BY CUBE (b, nb)
    SELECT b, nb, j, COALESCE(SUM(r), 0), GROUPING(b, nb, j), COUNT(*) FROM t GROUP BY CUBE (b, nb, j)
    SELECT s, b, GROUPING(s), GROUPING(b), COUNT(*) FROM t GROUP BY CUBE (s, b)
    SELECT c, s, GROUPING_ID(c, s), COUNT(*) FROM t GROUP BY ROLLUP (c, s)
    SELECT c, b, COUNT(*) FROM t GROUP BY GROUPING SETS ((c), (b), ())
    SELECT b, nb, COUNT(*) FROM t GROUP BY GROUPING SETS ((b), (nb))
    SELECT b, nb, COUNT(*) FROM t GROUP BY GROUPING SETS (b, nb, ())
    SELECT b, nb, COUNT(*) FROM t GROUP BY GROUPING SETS ((b, nb), ())
    SELECT COUNT(*) FROM t GROUP BY GROUPING SETS (())
    SELECT b, COUNT(*) FROM t GROUP BY GROUPING SETS ((b))
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY GROUPING SETS (ROLLUP (b, nb), (j))
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY GROUPING SETS (CUBE (b, nb), (j, b), GROUPING SETS ((j)))
    SELECT b, nb, COUNT(*) FROM t GROUP BY b, ROLLUP (nb)
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY b, CUBE (nb, j)
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY ROLLUP (b), ROLLUP (nb, j)
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY GROUPING SETS ((b), (nb)), ROLLUP (j)
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY ROLLUP ((b, nb), j)
    SELECT b, nb, j, COUNT(*) FROM t GROUP BY CUBE ((b, nb), (j))
    SELECT b AS k, nb AS l, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, l)
    SELECT b, nb, COUNT(*) FROM t GROUP BY CUBE (1, 2)
    SELECT B, x.nb, COUNT(*) FROM t AS x GROUP BY ROLLUP (x.b, "nb")
    SELECT i > 3 AS high, b, COUNT(*) FROM t GROUP BY ROLLUP (i > 3, b)
    SELECT n IS NULL, b = nb, COUNT(*) FROM t GROUP BY CUBE (n IS NULL, b = nb)
    SELECT b AND nb, j IN (1, 2), COUNT(*) FROM t GROUP BY GROUPING SETS (b AND nb, (j IN (1, 2)), ())
    SELECT i % 3 AS third, COUNT(*) FROM t GROUP BY ROLLUP (third)
    SELECT i + 1, COUNT(*) FROM t GROUP BY ROLLUP (i + 1)
    SELECT CASE WHEN i > 10 THEN 'high' WHEN i > 0 THEN 'low' END AS k, b, COUNT(*) FROM t GROUP BY CUBE (k, b)
    SELECT EXTRACT(month FROM d) AS month, b, COUNT(*) FROM t GROUP BY ROLLUP (b, month)
    SELECT b, nb, SUM(n) FILTER (WHERE i > 3), COUNT(n) FILTER (WHERE nb), COUNT(*) FROM t GROUP BY ROLLUP (b, nb)
    SELECT b, SUM(i), SUM(j), AVG(n), AVG(r), SUM(r), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT b, VAR_POP(i), STDDEV(i), VAR_SAMP(n), COVAR_POP(i, n), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT b, CORR(i, n), REGR_SLOPE(r, n), REGR_R2(r, n), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT b, CORR(i, n), COUNT(n) FROM t GROUP BY ROLLUP (b)
    SELECT b, COUNT_IF(i > 3), SUM(CASE WHEN nb THEN 1 ELSE 2 END), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT b, SUM(i) / COUNT(*), 100 * COUNT(n) / COUNT(*), SUM(i) > 50.5, COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT b, ROUND(AVG(i) * 1000) / 1000, GREATEST(SUM(i), SUM(j)), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT COALESCE(j, -1) AS k, COUNT(*) FROM t GROUP BY ROLLUP (j)
    SELECT CASE WHEN GROUPING(s) = 1 THEN 'all' ELSE COALESCE(s, 'none') END, COUNT(*) FROM t GROUP BY ROLLUP (s)
    SELECT b, GROUPING(b) + 1, 2 * GROUPING(b) + GROUPING(nb), COUNT(*) FROM t GROUP BY CUBE (b, nb)
    SELECT b, GROUPING(b), COUNT(*) FROM t GROUP BY b
    SELECT b, nb, COUNT(*) FROM t WHERE i > 3 AND n IS NOT NULL GROUP BY CUBE (b, nb)
    SELECT b, nb, COUNT(*) FROM t WHERE i > 1000 GROUP BY GROUPING SETS ((b, nb), (b))
    SELECT b, nb, COUNT(*) FROM t GROUP BY ROLLUP (b, nb) HAVING COUNT(*) > 8.5
    SELECT b, nb, COUNT(*) FROM t GROUP BY ROLLUP (b, nb) HAVING GROUPING(nb) = 1 AND SUM(i) > 50.5
    SELECT b, nb, COUNT(*) FROM t GROUP BY CUBE (b, nb) HAVING nb IS NULL AND GROUPING(nb) = 0
    SELECT DISTINCT b, COUNT(*) FROM t GROUP BY ROLLUP (b)
    SELECT DISTINCT GROUPING(b), COUNT(*) > 0 FROM t GROUP BY ROLLUP (b)
    SELECT q.b, COUNT(*) FROM (SELECT b, i FROM t WHERE j > 1) AS q GROUP BY ROLLUP (q.b)
    WITH q AS (SELECT b, nb, i * 2 AS x FROM t) SELECT b, nb, SUM(x), COUNT(*) FROM q GROUP BY CUBE (b, nb)
"""
SAME_QUERIES = [line.strip() for line in SAME.strip().splitlines()]


@pytest.mark.parametrize("sql", SAME_QUERIES)
def test_rows_of_all_levels(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    like_duckdb(sql, people, oracle)


@pytest.mark.parametrize(
    "options", [{"neighbours": "bounded"}, {"strategy": "split"}, {"mechanism": "gaussian", "delta": 1e-9}], ids=str
)
def test_rows_under_other_terms(options: dict[str, Any], people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    loud = "mechanism" in options
    for sql in SAME_QUERIES[:20] if not loud else []:
        like_duckdb(sql, people, oracle, **options)
    sql = "SELECT b, nb, SUM(i), COUNT(*) FROM t GROUP BY CUBE (b, nb)"
    theirs = oracle.execute(sql).fetchall()
    assert matched(ask(people, sql, **options), theirs, 0.1 if loud else TOLERANCE) == ([], [])


def test_the_null_of_a_key_stands_beside_that_of_a_total(people: pd.DataFrame):
    rows = set(ask(people, "SELECT nb, GROUPING(nb), COUNT(*) > 20.5 FROM t GROUP BY ROLLUP (nb)"))
    assert rows == {(False, 0, True), (True, 0, False), (None, 0, True), (None, 1, True)}


ORDERED = """
    SELECT b, nb, COUNT(*) FROM t GROUP BY ROLLUP (b, nb) ORDER BY GROUPING(b), GROUPING(nb), b, nb
    SELECT b, nb, GROUPING_ID(b, nb) AS g FROM t GROUP BY CUBE (b, nb) HAVING COUNT(*) > 0.5 ORDER BY g DESC, b, nb
    SELECT j, SUM(i) AS total FROM t GROUP BY ROLLUP (j) ORDER BY SUM(i) DESC LIMIT 2
    SELECT j, COUNT(*) FROM t GROUP BY ROLLUP (j) ORDER BY j NULLS FIRST LIMIT 2
    SELECT j, COUNT(*) FROM t GROUP BY ROLLUP (j) ORDER BY GROUPING(j) DESC, 1 LIMIT 3 OFFSET 1
    SELECT b, nb, SUM(i) FROM t GROUP BY b, ROLLUP (nb) ORDER BY b DESC, GROUPING(nb) DESC, nb DESC NULLS LAST
    SELECT j, COUNT(*) AS people FROM t GROUP BY ROLLUP (j) HAVING people > 10.5 ORDER BY people DESC, j
"""


@pytest.mark.parametrize("sql", [line.strip() for line in ORDERED.strip().splitlines()])
def test_order(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    assert same_rows(ask(people, sql), oracle.execute(sql).fetchall(), TOLERANCE)


def test_without_order_rows_are_in_that_of_their_keys(people: pd.DataFrame):
    rows = [row[:2] for row in ask(people, "SELECT b, nb, COUNT(*) FROM t GROUP BY ROLLUP (b, nb)")]
    numbers = [tuple(2 if key is None else int(key) for key in row) for row in rows]
    assert numbers == sorted(numbers)


STAGED = """
    SELECT MAX(n), SUM(n), COUNT(*) FROM (SELECT b, nb, COUNT(*) AS n FROM t GROUP BY ROLLUP (b, nb)) AS q
    SELECT g, SUM(n) FROM (SELECT j, GROUPING(j) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (j)) AS q GROUP BY g
    SELECT j, n FROM (SELECT j, b, SUM(i) AS n FROM t GROUP BY CUBE (j, b)) AS q WHERE b IS NULL AND n > 40.5 ORDER BY n
    WITH q AS (SELECT j, GROUPING(j) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (j)) SELECT g, AVG(n) FROM q GROUP BY g
"""


@pytest.mark.parametrize("sql", [line.strip() for line in STAGED.strip().splitlines()])
def test_answers_that_are_read_again(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    assert matched(ask(people, sql), oracle.execute(sql).fetchall(), TOLERANCE) == ([], [])


# Random grouping sets

TERMS = ("b", "nb", "j", "s", "c", "i > 3", "i % 3", "n IS NULL", "n // 50")
SUMS = (
    "COALESCE(SUM(i), 0)",
    "COALESCE(SUM(j), 0) / 7",
    "COALESCE(SUM(r), 0)",
    "COUNT(n)",
    "COUNT(*) FILTER (WHERE b)",
    "SUM(i) - SUM(j)",
)


def random_query(rng: random.Random) -> str:
    keys = rng.sample(TERMS, rng.randint(1, 3))
    listed, form = ", ".join(keys), rng.randrange(5)
    subsets = [each for size in range(1, len(keys) + 1) for each in itertools.combinations(keys, size)]
    chosen = rng.sample(subsets, rng.randint(1, len(subsets))) + rng.choice([[], [()]])
    group = (
        f"ROLLUP ({listed})",
        f"CUBE ({listed})",
        f"GROUPING SETS ({', '.join('(' + ', '.join(each) + ')' for each in chosen)})",
        f"{keys[0]}, CUBE ({', '.join(keys[1:])})" if keys[1:] else f"ROLLUP ({listed})",
        f"ROLLUP (({listed}))" if keys[1:] else f"CUBE ({listed})",
    )[form]
    used = [key for key in keys if form != 2 or any(key in each for each in chosen)]
    outputs = [*used, f"GROUPING_ID({', '.join(used)})", *rng.sample(SUMS, rng.randint(0, 2)), "COUNT(*)"]
    where = rng.choice(["", "", " WHERE b", " WHERE i BETWEEN -5 AND 12", " WHERE nb IS NULL"])
    return f"SELECT {', '.join(outputs)} FROM t{where} GROUP BY {group}"


@pytest.mark.parametrize("part", range(3))
def test_random_grouping_sets(part: int, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    rng = random.Random(SEED + part)
    for _ in range(20):
        like_duckdb(random_query(rng), people, oracle)


# What is refused, by the text and what is declared alone

REFUSED = """
    SQLSyntaxError | a grouping set is there twice | SELECT b, COUNT(*) FROM t GROUP BY GROUPING SETS (b, (b))
    SQLSyntaxError | a grouping set is there twice | SELECT COUNT(*) FROM t GROUP BY GROUPING SETS ((), ())
    SQLSyntaxError | a grouping set is there twice | SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b), ROLLUP (b)
    SQLSyntaxError | a grouping set is there twice | SELECT b, COUNT(*) FROM t GROUP BY b, ROLLUP (b)
    SQLSyntaxError | a grouping set is there twice | SELECT b, COUNT(*) FROM t GROUP BY CUBE (b, B)
    UnsupportedSQL | CUBE of 7 has more than 64 sets | SELECT COUNT(*) FROM t GROUP BY CUBE (b, nb, j, s, c, i, n)
    UnsupportedSQL | more than 64 grouping sets | SELECT COUNT(*) FROM t GROUP BY CUBE (b, nb, j, s), CUBE (c, i, n)
    UnknownGroups | 13,392 combinations | SELECT COUNT(*) FROM t GROUP BY CUBE (b, nb, j, s, c, i)
    UnknownGroups | those of x are not | SELECT x, COUNT(*) FROM t GROUP BY ROLLUP (x)
    UnknownGroups | those of o are not | SELECT b, o, COUNT(*) FROM t GROUP BY GROUPING SETS ((b), (o))
    UnsupportedSQL | MEDIAN does not add up | SELECT b, MEDIAN(i) FROM t GROUP BY ROLLUP (b)
    UnsupportedSQL | MIN does not add up | SELECT b, COUNT(*), MIN(i) FROM t GROUP BY CUBE (b)
    UnsupportedSQL | MODE does not add up | SELECT b, MODE(j) FROM t GROUP BY ROLLUP (b)
    UnsupportedSQL | DISTINCT | SELECT b, COUNT(DISTINCT i) FROM t GROUP BY ROLLUP (b)
    UnsupportedSQL | its own epsilon | SELECT b, SUM(i, epsilon => 0.5), COUNT(*) FROM t GROUP BY ROLLUP (b)
    UnsupportedSQL | aggregates of people's rows | SELECT b FROM t GROUP BY ROLLUP (b)
    UnsupportedSQL | WITH ROLLUP | SELECT b, COUNT(*) FROM t GROUP BY b WITH ROLLUP
    UnknownColumn | no column "city" | SELECT COUNT(*) FROM t GROUP BY ROLLUP (b, city)
    SQLSyntaxError | not a place in SELECT | SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (3)
    SQLSyntaxError | is a constant | SELECT COUNT(*) FROM t GROUP BY CUBE ('b')
    SQLSyntaxError | cannot hold an aggregate | SELECT COUNT(*) FROM t GROUP BY ROLLUP (COUNT(*))
    SQLSyntaxError | GROUPING(j): that is no key | SELECT b, GROUPING(j), COUNT(*) FROM t GROUP BY ROLLUP (b)
    SQLSyntaxError | GROUPING(b): that is no key | SELECT GROUPING(b), COUNT(*) FROM t
    SQLSyntaxError | cannot stand in WHERE | SELECT COUNT(*) FROM t WHERE GROUPING(b) = 1 GROUP BY ROLLUP (b)
    SQLSyntaxError | inside another | SELECT SUM(GROUPING(b)) FROM t GROUP BY ROLLUP (b)
    RawColumn | "i" is outside an aggregate | SELECT i, COUNT(*) FROM t GROUP BY ROLLUP (b)
    RawColumn | "i" is outside an aggregate | SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b) ORDER BY i
    MissingBounds | SUM(u) needs bounds | SELECT b, SUM(u) FROM t GROUP BY ROLLUP (b)
"""
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
HIDING = (
    ("LAPLACE_THRESHOLD hides groups", f"{CLAUSE} (group_selection_strategy = LAPLACE_THRESHOLD)"),
    ("TRUNCATED_GEOMETRIC hides groups", f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC)"),
    ("min_privacy_units_per_group has no use", f"{CLAUSE} (min_privacy_units_per_group = 5)"),
)
REFUSALS = [tuple(line.strip().split(" | ")) for line in REFUSED.strip().splitlines()]
REFUSALS += [("UnsupportedSQL", words, f"{clause} b, COUNT(*) FROM t GROUP BY ROLLUP (b)") for words, clause in HIDING]


@pytest.mark.parametrize(("kind", "words", "sql"), REFUSALS, ids=[sql for _, _, sql in REFUSALS])
def test_refusals_do_not_depend_on_rows(kind: str, words: str, sql: str, people: pd.DataFrame):
    said = []
    for data in (people, people.iloc[:0]):
        with pytest.raises(getattr(errors, kind)) as caught:
            ask(data, sql, delta=1e-9)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert words in said[0]


def test_gaussian_noise_of_levels_needs_delta(people: pd.DataFrame):
    with pytest.raises(errors.InvalidPrivacyParameter, match="Gaussian noise needs delta"):
        ask(people, "SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b)", mechanism="gaussian")


def test_an_empty_table_has_all_groups_of_all_levels(people: pd.DataFrame):
    sql = "SELECT b, s, GROUPING_ID(b, s), COUNT(*) FROM t GROUP BY CUBE (b, s)"
    full, empty = (list(ask(data, sql)) for data in (people, people.iloc[:0]))
    assert [row[:3] for row in empty] == [row[:3] for row in full]
    assert len(empty) == 2 * 4 + 2 + 4 + 1
    assert all(same(row[3], 0, TOLERANCE) for row in empty)


def test_what_nobody_can_move_is_exact(people: pd.DataFrame):
    """The number of rows of bounded neighbours, and sums of nothing but 0."""
    sql = "SELECT COUNT(*), SUM(j) FROM t GROUP BY GROUPING SETS (())"
    ((count, _),) = found = ask(people, sql, epsilon=0.1, neighbours="bounded")
    low, high = found.intervals().iloc[0, :2]
    assert count == low == high == len(people)
    zeros = ask(people, "SELECT b, SUM(CLAMP(i, 0, 0)) FROM t GROUP BY ROLLUP (b)", epsilon=0.1)
    assert [row[1] for row in zeros] == [0, 0, 0]
    assert zeros.loss.epsilon == 0


# Answers add up


def levels_add_up(found: Any, keys: list[str], sums: int) -> None:
    """Of rows (keys, GROUPING of each key, sums): every row is the sum of those that it stands for in finer levels."""
    count = len(keys)
    levels: dict[Row, dict[Row, Row]] = {}
    for row in found:
        levels.setdefault(row[count : 2 * count], {})[row[:count]] = row[2 * count :]
    compared = 0
    for (fine, finer), (coarse, coarser) in itertools.permutations(levels.items(), 2):
        if any(a > b for a, b in zip(fine, coarse, strict=True)):
            continue
        parts: dict[Row, list[Row]] = {}
        for group, values in finer.items():
            place = tuple(None if summed else key for key, summed in zip(group, coarse, strict=True))
            parts.setdefault(place, []).append(values)
        assert parts.keys() == coarser.keys()
        for place, values in coarser.items():
            for number in range(sums):
                each = [part[number] for part in parts[place]]
                assert math.isclose(math.fsum(each), values[number], abs_tol=1e-11 * sum(map(abs, each))), (
                    place,
                    number,
                )
                compared += 1
    assert compared > 0, "no level is above another"


GROUPINGS = (
    ("b, nb", "ROLLUP (b, nb)"),
    ("nb, j, s", "CUBE (nb, j, s)"),
    ("b, i", "GROUPING SETS ((b, i), (i), ())"),
    ("i, j", "ROLLUP (i), CUBE (j)"),
    ("c, j", "c, ROLLUP (j)"),
)
TERMS_OF = (
    {"epsilon": 0.05},
    {"epsilon": 0.05, "neighbours": "bounded"},
    {"epsilon": 0.05, "strategy": "split"},
    {"epsilon": 0.05, "mechanism": "gaussian", "delta": 1e-9},
    {"epsilon": None, "rho": 0.001},
    {"epsilon": 0.05, "mechanism": "gaussian", "delta": 1e-6, "neighbours": "bounded"},
)  # fmt: skip
ADDED = ("COUNT(*)", "SUM(i), COUNT(n)", "SUM(r), SUM(n), COUNT(*)", "SUM(i) FILTER (WHERE j > 2), COUNT_IF(b)")


def added_up(listed: str, group: str, sums: str, table: str, run: Callable[[str], Any]) -> Any:
    keys = listed.split(", ")
    bits = ", ".join(f"GROUPING({key})" for key in keys)
    found = run(f"SELECT {listed}, {bits}, {sums} FROM {table} GROUP BY {group}")
    levels_add_up(found, keys, len(next(iter(found))) - 2 * len(keys))
    return found


@pytest.mark.parametrize("terms", TERMS_OF, ids=str)
@pytest.mark.parametrize(("listed", "group"), GROUPINGS)
def test_noisy_answers_add_up(listed: str, group: str, terms: dict[str, Any], people: pd.DataFrame):
    sums = ADDED[(TERMS_OF.index(terms) + GROUPINGS.index((listed, group))) % len(ADDED)]
    found = added_up(listed, group, sums, "t", lambda sql: ask(people, sql, **terms))
    again = ask(people, f"SELECT {listed}, {sums} FROM t GROUP BY {group}", **terms)
    assert [row[-1] for row in found] != [row[-1] for row in again], "there is no noise"


LIMITS: tuple[dict[str, Any], ...] = ({"max_rows": 4}, {"max_rows": 6, "max_groups": 2}, {"max_rows": 1})


@pytest.mark.parametrize("terms", TERMS_OF, ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_noisy_answers_about_people_of_many_rows_add_up(limits: dict[str, int], terms: dict[str, Any]):
    data = frame(rows=300).assign(pid=np.random.default_rng(SEED).integers(0, 60, 300))
    for sums in ("COUNT(*), SUM(i)", "AVG(i), SUM(i), COUNT(i)"):
        said = {"bounds": BOUNDS, "keys": KEYS, "types": TYPES, "unit": "pid", **limits, **terms}
        found = dpsql.query(data, f"SELECT b, j, GROUPING(b), GROUPING(j), {sums} FROM t GROUP BY CUBE (b, j)", **said)
        averages = sums.startswith("AVG")
        levels_add_up([(*row[:4], *row[4 + averages :]) for row in found], ["b", "j"], 2)


def test_sums_are_averages_times_counts(people: pd.DataFrame):
    found = list(ask(people, "SELECT j, SUM(i), AVG(i), COUNT(i) FROM t GROUP BY ROLLUP (j)", epsilon=20))
    assert all(
        abs(total - mean * count) < 1 + abs(mean) for _, total, mean, count in found if -10 < mean < 20
    )  # rounded
    assert len(found) == 7


def test_bounds_that_are_chosen_serve_all_levels(people: pd.DataFrame):
    found = ask(people, "SELECT b, GROUPING(b), SUM(u) FROM t GROUP BY ROLLUP (b)", epsilon=5, bounds={"u": "auto"})
    levels_add_up(found, ["b"], 1)
    assert found.loss.epsilon == 5


def test_the_same_sets_in_other_words_are_answered_again_for_free(people: pd.DataFrame):
    table = dpsql.Table(people, bounds=BOUNDS, keys=KEYS, types=TYPES)
    session = dpsql.Session({"t": table}, budget=dpsql.Budget(10), epsilon=1)
    asked = ("ROLLUP (b)", "GROUPING SETS ((b), ())", "CUBE (b)", "GROUPING SETS (b, GROUPING SETS (()))")
    first, *others = (list(session.query(f"SELECT b, COUNT(*) FROM t GROUP BY {group}")) for group in asked)
    assert all(other == first for other in others)
    assert session.spent.epsilon == 1
    session.query("SELECT b, COUNT(*) FROM t GROUP BY b")
    assert session.spent.epsilon == 2


# How far off they are. Over so many draws a root mean square has a standard error of at most 1.8 %, for the kurtosis of
# Laplace noise is 6. Limits are five standard errors and more: a right answer fails by chance once in a million.

RUNS = 4_000
SHAPE = Shape({"k": "int64", "b": bool, "x": "int64"}, {"bounds": {"k": (0, 29), "x": (0, 9)}})


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, SEED)


def rows_of(size: int) -> pd.DataFrame:
    rng = np.random.default_rng(size)
    return SHAPE.frame(
        [(int(k), bool(b), int(x)) for k, b, x in zip(*rng.integers(0, (30, 2, 10), (size, 3)).T, strict=True)]
    )


def many(sql: str, runs: int, **how: Any) -> tuple[Release, Any]:
    """Draws of the last aggregate, shape (runs, rows of the answer)."""
    made = calibrated(SHAPE.schema(), sql, **how)
    exact = run_exactly(made, SHAPE.schema(), rows_of(200))
    last = len(made.query.slots) - 1
    return made, np.array([slot_vectors(made, made.privatise(exact))[last].values for _ in range(runs)])


ERRORS = (
    ("SELECT k, b, COUNT(*) FROM t GROUP BY ROLLUP (k, b)", {}),
    ("SELECT k, SUM(x), COUNT(*) FROM t GROUP BY ROLLUP (k)", {}),
    ("SELECT b, SUM(x) FROM t GROUP BY GROUPING SETS ((b), ())", {"mechanism": "gaussian", "delta": 1e-6}),
    ("SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (b)", {"epsilon": 4}),
)  # fmt: skip


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(("sql", "how"), ERRORS, ids=[sql for sql, _ in ERRORS])
def test_answers_are_as_far_off_as_is_said(sql: str, how: dict[str, Any]):
    made, values = many(sql, RUNS, **how)
    _, ((*exact,),) = many(sql, 1, **{**how, "epsilon": 1e9})
    off = values - np.rint(exact)
    (estimate,) = made.estimates[-1:]
    for keys, rows in made.levels.rows():
        own = made.at_level(keys)
        said = float(own.shares[0].noise.scale) * made.coordinates[estimate.count or estimate.sum or 0].unit
        assert math.sqrt(np.mean(off[:, rows] ** 2)) == pytest.approx(said, rel=0.1), keys
        for level in (0.5, 0.95):
            covered = np.mean(np.abs(off[:, rows]) <= linear_half_width(own, estimate, level))
            error = math.sqrt(level * (1 - level) / RUNS)
            assert abs(covered - level) < 5 * error + 0.005, f"{covered} of {level} in {keys}"


@pytest.mark.parametrize("asked", ["CORR(i, n)", "REGR_SLOPE(r, n)", "VAR_POP(i)", "AVG(i)", "SUM(i) / COUNT(*)"])
def test_intervals_of_quotients_hold_in_all_levels(asked: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    """Each level's at 1 - 10^-9: three are missed by chance once in 3 * 10^8."""
    sql = f"SELECT GROUPING(b), b, {asked} AS a FROM t GROUP BY ROLLUP (b)"
    found = ask(people, sql, epsilon=50)
    exact = {row[:2]: row[2] for row in oracle.execute(sql).fetchall()}
    ends = found.intervals(1 - 1e-9)
    for row, low, high in zip(found, ends["a_low"], ends["a_high"], strict=True):
        assert low <= exact[row[:2]] <= high, f"{asked} of {row[:2]}"
    assert "95 %" in str(found)
    assert "least squares" in str(found.explanation)


def test_explain_says_how_far_off_the_first_level_is():
    made, _ = many(ERRORS[0][0], 1)
    half = linear_half_width(made.at_level((0, 1)), made.estimates[0], 0.95)
    shown = math.floor(half + 1)  # a number that is shown is less than 1 from its estimate
    assert f"±{shown}" in str(Explanation(made))


SHARED = (
    ("ROLLUP (k, b)", ("k, b", "k", ""), {}, 0.75),
    ("ROLLUP (k)", ("k", ""), {}, 1.0),
    ("CUBE (b, k)", ("b, k", "b", "k", ""), {}, 0.65),
    ("ROLLUP (b)", ("b", ""), {}, 0.65),
    ("ROLLUP (k, b)", ("k, b", "k", ""), {"mechanism": "gaussian"}, 0.86),
    ("CUBE (b, k)", ("b, k", "b", "k", ""), {"mechanism": "gaussian"}, 0.8),
)


@pytest.mark.parametrize(("group", "keys", "how", "most"), SHARED, ids=str)
def test_levels_together_are_better_than_each_alone_with_an_equal_share(
    group: str, keys: tuple[str, ...], how: dict[str, Any], most: float
):
    """In the geometric mean, and none is more than 5 % worse. Equal shares are of epsilon, or of rho."""
    schema, ratios = SHAPE.schema(), []
    made = calibrated_by(schema, f"SELECT COUNT(*) FROM t GROUP BY {group}", U, **({"rho": 0.1, **how} if how else {}))
    share = {"rho": Fraction(1, 10) / len(keys), **how} if how else {"epsilon": Fraction(1, len(keys))}
    for level, each in zip(made.levels.wanted, keys, strict=True):
        sql = f"SELECT COUNT(*) FROM t GROUP BY {each}" if each else "SELECT COUNT(*) FROM t"
        alone = calibrated_by(schema, sql, U, **share)
        spread = math.sqrt(alone.shares[0].noise.spread) * alone.coordinates[0].unit
        ratios.append(made.levels.noise_of(level).scale * made.coordinates[0].unit / spread)
    assert max(ratios) < 1.05, ratios
    assert math.prod(ratios) ** (1 / len(ratios)) < most, ratios


def test_levels_without_noise_are_not_explained_as_estimates(people: pd.DataFrame):
    sql = "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS (())"
    how: dict[str, Any] = {"epsilon": 1, "bounds": BOUNDS, "keys": KEYS, "types": TYPES}
    noisy = str(dpsql.query({"t": people}, f"EXPLAIN PRIVACY {sql}", **how))
    exact = str(dpsql.query({"t": people}, f"EXPLAIN PRIVACY {sql}", neighbours="bounded", **how))
    assert "least squares" in noisy
    assert "least squares" not in exact
    assert "neighbours agree on it" in exact
