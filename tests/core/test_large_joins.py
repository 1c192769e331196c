"""Joins that make more rows than are held at once: the same integers, bounded memory, units that stay apart."""

from __future__ import annotations

import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import UnsupportedSQL
from dpsql.executors.pandas import unit_chunks as slices
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.pandas.units import large_units
from tests.core import large_joins_lies, slice_checks, unit_checks
from tests.core.slice_checks import by_person, check_alike, check_limits_of_pairs, fanned
from tests.core.unit_checks import Question
from tests.lies import Check, Lie, assert_caught

SIZES = (0, 1, 2, 7)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("asked", fanned(), ids=str)
def test_a_fan_out_in_slices_and_blocks_gives_the_same_integers(asked: Question):
    check_alike(asked, (0, 7), apart=False)
    check_alike(asked, (2,))


@pytest.mark.slow
@pytest.mark.parametrize("asked", fanned(), ids=str)
def test_a_fan_out_in_slices_and_blocks_of_all_sizes_gives_the_same_integers(asked: Question):
    check_alike(asked, SIZES, apart=False)
    check_alike(asked, SIZES[1:])


def test_most_shapes_are_answered():
    found = list(slice_checks.accepted(fanned()))
    assert len({asked.sql for asked, _ in found}) >= len(slice_checks.FANNED) - 3


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(8))
def test_every_kind_of_question_in_slices_and_blocks(part: int):
    for asked in unit_checks.questions()[part::24]:
        check_alike(asked, (0, 2), databases=1, apart=False)
        check_alike(asked, (1, 3), databases=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(24))
def test_every_kind_of_question_in_slices_and_blocks_of_all_sizes(part: int):
    compared = 0
    for asked in unit_checks.questions()[part::24]:
        compared += check_alike(asked, SIZES, databases=3, apart=False)
        compared += check_alike(asked, SIZES[1:], databases=3)
    assert compared > 100


@pytest.mark.thinned(4)
@pytest.mark.parametrize("asked", by_person()[::12], ids=str)
def test_units_with_too_many_pairs_are_left_out_alike(asked: Question):
    check_limits_of_pairs(asked, 3, fanned_out=24)


def test_units_over_a_fan_out_stay_apart():
    for asked in by_person()[::11]:
        with slice_checks.at_most(2):
            unit_checks.executors_of.cache_clear()
            unit_checks.check_question(asked, 7, databases=2, changes=1)


# Memory and time

FAN_OUT = 10_000
HEAVY = (
    "SELECT COUNT(*), AVG(y) FROM v CROSS JOIN pub",
    "SELECT name, COUNT(*), AVG(y) FROM v CROSS JOIN pub WHERE w < 5 GROUP BY name",
    "SELECT name, COUNT(DISTINCT pid), SUM(y) FROM v CROSS JOIN pub GROUP BY name",
    "SELECT COUNT(*), AVG(a.y) FROM v AS a JOIN v AS b ON a.pid = b.pid CROSS JOIN pub",
    "SELECT MEDIAN(y), COUNT(DISTINCT w) FROM v LEFT JOIN pub ON v.k = pub.g",
    "SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM v CROSS JOIN pub GROUP BY pid) WHERE n < 20000 GROUP BY n",
    "SELECT COUNT(*) FROM v WHERE pid IN (SELECT pid FROM v AS u CROSS JOIN pub WHERE u.y < pub.w)",
)


def heavy_session(rows: int, *, unit: bool = True) -> dpsql.Session:
    """One person with so many rows among ten with one."""
    people = np.concatenate([np.zeros(rows, dtype=np.int64), np.arange(1, 11)])
    v = pd.DataFrame({"pid": people, "y": np.arange(len(people)) % 10, "k": 0})
    numbers = np.arange(FAN_OUT)
    pub = pd.DataFrame({"j": numbers, "g": 0, "w": numbers % 7, "name": np.array(["a", "b"])[numbers % 2]})
    declared = {"unit": "pid", "max_rows": 20} if unit else {}
    tables = {
        "v": dpsql.Table(v, bounds={"y": (0, 9), "k": (0, 3)}, **declared),
        "pub": dpsql.Table(pub, public=True, unique=["j"], max_matches={"g": FAN_OUT}),
    }
    return dpsql.Session(tables, budget=dpsql.Budget(10**7, 0.5))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sql", HEAVY)
def test_one_persons_rows_beside_a_large_public_table_take_bounded_memory(sql: str):
    session = heavy_session(300)
    session.query(sql, epsilon=1, delta=1e-6)  # what is loaded on first use
    start = time.process_time()
    tracemalloc.start()
    try:
        session.query(sql, epsilon=1, delta=1e-6, fresh=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * 2**20  # 3 million rows of that person: 700 MB where they stand at once
    assert time.process_time() - start < 60


def test_a_person_within_the_limit_of_pairs_counts_as_much_as_the_limit_says():
    assert pairing.MOST_FANNED_OUT // FAN_OUT > 300
    found = heavy_session(300).query(HEAVY[0], epsilon=10**5)
    assert isinstance(found, dpsql.Result)
    assert found.df["COUNT(*)"].tolist() == [20 + 10 * 20]


def test_a_row_of_its_own_is_multiplied_in_full():
    found = heavy_session(300, unit=False).query("SELECT COUNT(*) FROM v CROSS JOIN pub", epsilon=10**6)
    assert isinstance(found, dpsql.Result)
    assert found.df["COUNT(*)"].tolist() == [310 * FAN_OUT]


def test_limits_of_pairs_follow_from_declared_fan_outs():
    assert pairing.most_pairs(1) == pairing.most_pairs(8) == pairing.MOST_PAIRS
    assert pairing.most_pairs(FAN_OUT) == pairing.MOST_FANNED_OUT // FAN_OUT > 1_000
    assert Fraction(pairing.MOST_FANNED_OUT, slices.MOST_HELD) <= 64  # so few blocks are the pairs of one unit


OF_EACH = "SELECT pid, COUNT(*) AS n FROM v CROSS JOIN pub CROSS JOIN pub AS b GROUP BY pid"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM v CROSS JOIN pub CROSS JOIN pub AS b",
        f"SELECT n, COUNT(*) FROM ({OF_EACH}) GROUP BY n",
        "SELECT COUNT(*) FROM v WHERE pid IN (SELECT pid FROM v AS u CROSS JOIN pub CROSS JOIN pub AS b)",
        "SELECT COUNT(*) FROM v JOIN (SELECT pid, w FROM v AS u CROSS JOIN pub) AS a ON v.pid = a.pid CROSS JOIN pub",
        (
            "SELECT n, COUNT(*) FROM (SELECT pid, w, COUNT(*) AS n FROM v CROSS JOIN pub GROUP BY pid, w) AS a "
            "CROSS JOIN pub AS b GROUP BY n"
        ),
    ],
)
def test_more_rows_of_one_are_refused_wherever_public_tables_make_them(sql: str):
    session = heavy_session(1)
    with pytest.raises(UnsupportedSQL, match=r"make [0-9,]+ rows of each; at most 10,000"):
        session.query(sql, epsilon=1, delta=1e-6)
    assert session.spent.epsilon == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM v WHERE k IN (SELECT pub.j FROM pub CROSS JOIN pub AS b)",
        "SELECT COUNT(*) FROM pub, pub b",
    ],
)
def test_large_products_of_public_tables_are_refused(sql: str):
    with pytest.raises(UnsupportedSQL, match="up to 100,000,000 rows"):
        heavy_session(1).query(sql, epsilon=1)


def test_whole_rows_of_one_unit_are_limited_alike():
    """Where a unit's rows are needed at once, more than a slice may hold are too many: units stay apart."""
    nested = [asked for asked in by_person() if "pid IN (" in asked.sql or "AS s FROM" in asked.sql]
    assert nested
    with slice_checks.at_most(3), pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_units, "MOST_WHOLE", 3)
        for asked in nested:
            unit_checks.executors_of.cache_clear()
            unit_checks.check_question(asked, 7, databases=2, changes=1)
    assert slices.MOST_HELD <= large_units.MOST_WHOLE


@pytest.mark.parametrize(("lie", "check"), large_joins_lies.LIES, ids=lambda each: each.__name__)
def test_a_lie_about_large_joins_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
