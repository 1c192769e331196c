"""People, not rows: neighbours that differ in all that one person has, in every table.

No statistics: for many small databases every neighbour is run through the exact plan under the same hash key, and the
distances are compared in integers with what the release declares.
"""

from __future__ import annotations

import itertools
import random
import warnings
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import CountRows, CountUnits, of_units
from dpsql.core.sensitivity.contribution_bounds import Bounds
from dpsql.core.sensitivity.norms import change_of
from dpsql.core.unit import ONE_ROW, ContributionBound
from dpsql.errors import DPSQLError, InvalidSchema, TypeMismatch
from dpsql.executors.pandas import evaluation, groups
from dpsql.executors.pandas import executor as pandas
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.joins import pairing
from dpsql.session.tables.public_tables import resolved
from dpsql.sql.names.catalog import Catalog
from tests.core import checks, unit_checks
from tests.core.checks import B, U, moved
from tests.core.unit_checks import KEYS, R3, Asking, Question, World, apart, check_apart, people

SEED = 20_260_301


@pytest.mark.thinned(8)
@pytest.mark.parametrize("asked", unit_checks.questions(), ids=str)
def test_every_kind_of_question(asked: Question):
    unit_checks.check_question(asked, SEED, databases=2, changes=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("asked", unit_checks.questions(), ids=str)
def test_every_kind_of_question_on_many_databases(asked: Question, part: int):
    unit_checks.check_question(asked, SEED + 1 + part, databases=12, changes=4)


def ask_at_random(seed: int, accepted: int, databases: int) -> None:
    """That many accepted questions of a random kind."""
    print(f"seed {seed}")  # noqa: T201
    made = unit_checks.Questions(random.Random(seed))
    done = refused = 0
    while done < accepted:
        asked = made.question()
        try:
            unit_checks.check_question(asked, seed, databases, changes=1)
        except DPSQLError:
            refused += 1
            assert refused < accepted + 50, "the generator makes too few questions that are accepted"
        else:
            done += 1


@pytest.mark.thinned(4)
@pytest.mark.parametrize("part", range(4))
def test_random_questions(part: int):
    ask_at_random(SEED + part, 10, databases=2)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4, 24))
def test_many_random_questions(part: int):
    ask_at_random(SEED + part, 150, databases=5)


# Limits


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, COUNT(*) FROM e GROUP BY k",
        "SELECT k, COUNT(DISTINCT pid), AVG(y), COUNT(y > 0) FROM e GROUP BY k",
        "SELECT k, SUM(y), COUNT(*), COUNT(DISTINCT pid) FROM e GROUP BY k",
        "SELECT COUNT(*), AVG(y) FROM e",
    ],
)
def test_every_small_limit(sql: str):
    """One unit with more rows than any limit, in more groups: every combination of limits holds, and the counts of
    rows by group reach what is declared."""
    rows = tuple((place, 1, y, k) for place, (y, k) in enumerate(itertools.product((3, 3, -2), (0, 1, 2, 3, None))))
    tables = ((), rows, rows[:4], rows[::5], rows[:5], rows[-5:], rows[6:7])
    tables = (*tables, *(tuple((n, 1, y, 2 + n % groups) for n in range(6)) for y, groups in ((3, 1), (-2, 2))))
    executors: dict[Any, Any] = {}
    for limits in itertools.product((None, 1, 2, 3, 5), (None, 1, 2, 3), (None, 1, 2)):
        said = {word: most for word, most in zip(unit_checks.LIMITS, limits, strict=True) if most is not None}
        if limits[0] is None and None in limits[1:]:
            continue
        world = people().limited(**said)
        unbounded, bounded = Asking(world, sql, U, {}, executors), Asking(world, sql, B, {}, executors)
        if bounded.made.exact == unbounded.made.exact:
            bounded.tables = unbounded.tables
        for asking in (bounded, unbounded):
            found = [asking.exact(world.data(e=chosen)) for chosen in tables]
            for one, other in itertools.product(found, found if asking is bounded else found[:1]):
                asking.compare(one, other, f"{sql} {said}")
        if sql == "SELECT k, COUNT(*) FROM e GROUP BY k" and unbounded.made.reach.across is None:
            reached = max(sum(cells[0] for cells in one.cells.values()) for one in found)
            assert reached == unbounded.made.reach.cube_sensitivity, (
                f"{said}: {unbounded.made.reach.cube_sensitivity}, {reached} reached"
            )


def test_what_counts_of_rows_and_of_units_come_to_together():
    """The cube norm is the largest sum over groups that any unit can reach: a group's rows may all be left out, and
    the unit is in it all the same."""
    made = unit_checks.planned(people().limited(max_rows=3), "SELECT k, COUNT(*) FROM e GROUP BY k", U)
    for limits in itertools.product((1, 2, 3, 4, 5), (1, 2, 3, 4), (1, 2, 3)):
        bound = ContributionBound(*limits)
        units = ContributionBound(bound.most_groups, bound.most_groups, 1)
        analysis = replace(made.analysis, bounds=replace(made.analysis.bounds, rows=bound, units=units))
        for a, b in ((1, 1), (1, 2), (2, 3), (3, 1), (1, 5), (5, 4)):
            found = change_of((CountRows(None), CountUnits(None)), (((0, a),), ((1, b),)), analysis).cube
            kept = itertools.product(range(bound.linf + 1), repeat=bound.most_groups)
            largest = max(sum(max(a * c, b) for c in each) for each in kept if sum(each) <= bound.rows)
            assert found == largest, f"{bound}, {a} a row and {b} a unit: {found} declared, {largest} reached"


@pytest.mark.parametrize("relation", [U, B])
def test_sensitivities_are_whole_numbers_however_large_the_limits(relation: str):
    for rows in (1000, 12_345_677, 10**6 + 3):
        world = people().limited(max_rows=rows)
        for sql in ("SELECT k, SUM(y * 1.1), AVG(y) FROM e GROUP BY k", "SELECT SUM(y), COUNT(*) FROM e"):
            made = unit_checks.planned(world, sql, relation)
            one = Bounds(ONE_ROW, ONE_ROW, enforced=False, declared=False)
            alone = replace(made, analysis=replace(made.analysis, bounds=one))
            for each, of_one, of_many in zip(made.coordinates, moved(alone), moved(made), strict=True):
                by_unit = of_units(made.lattice.parts[each.terms[0][0]])
                assert isinstance(of_many, int)
                assert of_many == of_one * (made.analysis.bounds.units if by_unit else made.analysis.bounds.rows).l1


def test_a_group_of_one_unit_is_shown_with_a_chance_within_delta():
    unit_checks.check_chances()


def test_a_promise_of_unique_keys_is_enforced():
    """p declares one row for each unit: of three the other two are left out, by the key."""
    world = people()
    data = world.data(p=((1, "x", 1.0), (1, "x", 2.0), (1, "x", 3.0), (2, "x", 1.0)))
    asking = Asking(world, "SELECT COUNT(*), SUM(x) FROM p", U)
    check_apart(asking, data)
    world = world.with_tables({"u": {"k": "Int64", "x": "float64"}}, u={"unique": ["k"], "bounds": {"x": (0, 1)}})
    made = unit_checks.planned(world, "SELECT COUNT(*) FROM u", U)
    assert made.reach.cube_sensitivity == 1  # rows are units, whatever is unique


# How another unit's rows could change what one unit adds


@pytest.mark.parametrize(
    ("dtype", "types", "bounds", "units"),
    [
        ("int64", {}, (0, 5), (7, 8)),
        ("Int64", {}, (0, 5), (7, 8)),
        ("float64", {}, (0, 5), (7.5, 8.0)),
        ("float64", {"u": "integer"}, (0, 5), (7.0, 8.0)),
        (object, {"u": "integer"}, (0, 5), (7, 8)),
        ("datetime64[us]", {}, ("1999-01-01", "1999-12-31"), unit_checks.DAYS[:2]),
        ("datetime64[us]", {"u": "date"}, ("1999-01-01", "1999-12-31"), unit_checks.DAYS[:2]),
    ],
)
def test_bounds_of_a_unit_make_no_two_people_one(
    dtype: Any, types: dict[str, str], bounds: Any, units: tuple[Any, Any]
):
    said = {"unit": "u", "max_rows": 1, "bounds": {"u": bounds, "x": (-1, 1)}, "types": types}
    world = people().with_tables({"q": {"u": dtype, "x": "float64"}}, q=said)
    rows = ((units[0], 1.0), (units[0], 1.0), (units[1], -1.0))
    asking = apart(world, "SELECT SUM(x), COUNT(*) FROM q", q=rows)
    asking = apart(world, "SELECT COUNT(DISTINCT u) FROM q", q=rows)
    assert asking.exact(world.data(q=rows)).cells == {(): (2,)}


def test_bounds_of_the_keys_of_a_path_lead_nobody_to_others():
    for word in ("SELECT COUNT(*), SUM(z) FROM i", "SELECT COUNT(DISTINCT e.pid) FROM i JOIN e ON i.eid = e.eid"):
        apart(
            unit_checks.BOUNDED_KEYS.limited(max_rows=1), word, e=((7, 1, 1, 1), (8, 2, 1, 1)), i=((8, 1.0), (7, 1.0))
        )
    large = 2**62
    rows = ((large + 7, 1, 1, 1), (large + 8, 2, 1, 1)), ((large + 8, 1.0), (large + 7, 1.0))
    apart(people().limited(max_rows=1), "SELECT COUNT(*), SUM(z) FROM i", e=rows[0], i=rows[1])
    unsigned = people().with_tables(
        {"e": {**people().dtypes["e"], "eid": "uint64"}, "i": {"eid": "uint64", "z": "float64"}}
    )
    apart(unsigned.limited(max_rows=1), "SELECT COUNT(*), SUM(z) FROM i", e=rows[0], i=rows[1])


@pytest.mark.parametrize("name", unit_checks.KEYED)
def test_one_persons_doubled_keys_change_nobody_elses_joins(name: str):
    unit_checks.check_doubled_keys(name)


def test_units_of_a_dictionary_that_holds_a_text_twice():
    pa = pytest.importorskip("pyarrow")
    cells = pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    frame = pd.DataFrame({"u": pd.arrays.ArrowExtensionArray(cells), "x": [1.0, 1.0, 1.0]})
    table = dpsql.Table(frame, unit="u", max_rows=1, bounds={"x": (0, 1)})
    schemas = resolved({"q": table})
    executor = pandas.PandasExecutor({"q": ColumnStore(frame, schemas["q"])})
    world = mock.Mock(catalog=Catalog(schemas))
    for sql in ("SELECT COUNT(*) FROM q", "SELECT COUNT(DISTINCT u) FROM q"):
        made = unit_checks.planned(world, sql, U)
        assert executor.execute(made.exact, KEYS[1]).parts.tolist() == [[2]], "one person has two codes"
    for said in ({"unique": ["u"]}, {"max_matches": {"u": 1}}):
        with pytest.raises(InvalidSchema):
            resolved({"q": dpsql.Table(frame, public=True, **said)})


def test_promises_of_public_keys_are_checked_by_value():
    unit_checks.check_public_promises()


def test_one_key_in_the_hands_of_two():
    unit_checks.check_keys_that_lead_away()


# Longer paths: members of households, what they do, and what that is made of

HOUSEHOLDS = World(
    {
        "m": {"pid": "Int64", "home": "str", "x": "float64"},
        "e": {"eid": "Int64", "pid": "Int64", "y": "Int64"},
        "i": {"eid": "Int64", "z": "float64"},
        "pub": {"k": "int64", "name": "str"},
    },
    {
        "m": {"unit": "home", "unique": ["pid"], "bounds": {"x": (0, 2)}},
        "e": {"unit": "pid -> m.pid", "unique": ["eid"], "bounds": {"y": (0, 3)}},
        "i": {"unit": "eid -> e.eid", "bounds": {"z": (0, 2)}},
        "pub": {"public": True, "unique": ["k"]},
    },
    {"pub": ((0, "n0"), (1, "n1"), (2, "n1"))},
)
OF_HOUSEHOLDS = (
    "SELECT COUNT(*), SUM(z) FROM i",
    "SELECT COUNT(DISTINCT home) FROM m",
    "SELECT y, COUNT(*), COUNT(DISTINCT home) FROM e JOIN m ON e.pid = m.pid GROUP BY y",
    "SELECT COUNT(*), SUM(x) FROM i JOIN e ON i.eid = e.eid JOIN m ON e.pid = m.pid",
    "SELECT COUNT(*), SUM(x) FROM e LEFT JOIN m ON e.pid = m.pid AND x > 0",
    "SELECT AVG(CLAMP(n, 0, 4)) FROM (SELECT pid, COUNT(*) AS n FROM e GROUP BY pid)",
    "SELECT AVG(CLAMP(n, 0, 4)) FROM (SELECT home, COUNT(*) AS n FROM e JOIN m ON e.pid = m.pid GROUP BY home)",
    "SELECT COUNT(*) FROM (SELECT eid, SUM(z) AS s FROM i GROUP BY eid) AS a JOIN e ON a.eid = e.eid WHERE s > y",
    "SELECT COUNT(*) FROM m WHERE EXISTS (SELECT 1 FROM e WHERE e.pid = m.pid AND e.y > m.x)",
    "SELECT COUNT(*) FROM m AS a JOIN m AS b ON a.home = b.home AND a.x < b.x",
    "SELECT COUNT(*) FROM m AS a WHERE home NOT IN (SELECT home FROM m WHERE x > 1)",
    "SELECT name, SUM(z) FROM i JOIN e ON i.eid = e.eid JOIN pub ON e.y = pub.k GROUP BY name",
    "SELECT COUNT(*), SUM(v) FROM (SELECT z AS v FROM i UNION ALL SELECT y FROM e UNION ALL SELECT x FROM m)",
)


def of_a_household(rng: random.Random, _world: World, home: str, most: int) -> Any:
    """Keys are its own, for the most part."""
    first = {"a": 0, "b": 10, "c": 20}[home]

    def key(shared: int) -> int | None:
        return rng.choice([first, first + 1, first, first + 1, shared, None])

    m = tuple((key(99), home, rng.choice([0.0, 1.5, 9.0, None])) for _ in range(rng.randint(1, 3)))
    e = tuple((key(99), rng.choice([m[0][0], first]), rng.choice([0, 1, 3, 7])) for _ in range(rng.randint(0, most)))
    i = tuple((rng.choice([row[0] for row in e] or [first]), rng.choice([0.5, 2.0, 5.0])) for _ in range(most))
    return {"m": m, "e": e, "i": i}


@pytest.mark.parametrize("sql", OF_HOUSEHOLDS)
def test_units_at_the_end_of_long_paths(sql: str):
    kept: dict[str, dict[str, Any]] = {}
    for seed, limits in itertools.product(range(2), ({"max_rows": 2}, {"max_groups": 2, "max_rows_per_group": 2})):
        world, rng = HOUSEHOLDS.limited(**limits), random.Random(seed)
        parts = [of_a_household(rng, world, home, 3) for home in rng.sample("abc", rng.randint(1, 3))]
        parts.append({"m": ((50, None, 1.0),), "e": ((50, 50, 1), (51, 77, 1)), "i": ((51, 1.0), (66, 1.0))})
        rows = {name: tuple(row for part in parts for row in part[name]) for name in ("m", "e", "i")}
        data = world.data(**{name: tuple(rng.sample(held, len(held))) for name, held in rows.items()})
        for relation in (U, B):
            asking = Asking(world, sql, relation, {}, kept.setdefault(str(limits), {}))
            check_apart(asking, data)
            unit_checks.check_neighbours(asking, data, rng, 2, of_a_household)
            unit_checks.check_order(asking, data, rng)


def test_people_of_different_types_are_not_mixed():
    """2^53 and 2^53 + 1 are one number among reals; a text is none."""
    kinds: tuple[tuple[Any, Any], ...] = (
        ("float64", 1.0),
        (object, "a"),
        ("bool", True),
        ("datetime64[us]", unit_checks.DAYS[0]),
    )
    for dtype, unit in kinds:
        said = {"unit": "pid", "bounds": {"x": (-1, 3)}, "types": {"pid": "text"} if dtype is object else {}}
        world = people().with_tables({"q": {"pid": dtype, "x": "float64"}}, q=said)
        world = world.limited(max_rows=1)
        p = ((2**53, "x", 1.0), (2**53 + 1, "x", -1.0), (2**53, "x", 1.0))
        try:
            apart(
                world, "SELECT COUNT(*), SUM(x) FROM (SELECT x FROM p UNION ALL SELECT x FROM q)", p=p, q=((unit, 1.0),)
            )
        except TypeMismatch:
            continue


@pytest.mark.parametrize("name", ["unit", "not null"])
def test_a_unit_has_one_group_whatever_values_it_has(name: str):
    """Its column is clipped in one table and not in the other."""
    world = unit_checks.KEYED[name].limited(max_rows=5)
    both = "(SELECT pid AS u FROM p UNION ALL SELECT pid AS u FROM e)"
    grouped = f"(SELECT u, COUNT(*) AS n FROM {both} GROUP BY u)"
    for sql in (
        f"SELECT COUNT(*), SUM(CLAMP(n, 1, 2)) FROM {grouped}",
        f"SELECT COUNT(*) FROM (SELECT DISTINCT u FROM {both})",
        f"SELECT n, COUNT(*) FROM {grouped} GROUP BY n",
        f"SELECT COUNT(*) FROM {grouped} AS a JOIN {grouped.replace('u', 'w')} AS b ON a.u = b.w",
        f"SELECT COUNT(*) FROM {grouped} AS a CROSS JOIN pub",
    ):
        for relation in (U, B):
            asking = Asking(world, sql, relation)
            data = world.data(p=((7, "x", 1.0), (1, "x", 1.0)), e=((1, 7, 1, 1), (2, 1, 1, 1), (3, 8, 1, 1)))
            check_apart(asking, data)
            unit_checks.check_neighbours(asking, data, random.Random(SEED), changes=0)


def test_equal_numbers_are_one_person_in_all_tables():
    """An integer here, a real there, -0.0 and 0.0; NaN is nobody."""
    world = people().with_tables({"q": {"pid": "float64", "x": "float64"}}, q={"unit": "pid", "bounds": {"x": (-1, 3)}})
    world = world.limited(max_rows=9)
    rows: dict[str, Any] = {
        "p": ((0, "x", 1.0), (1, "x", 1.0), (2**53 + 1, "x", 1.0)),
        "q": ((-0.0, 1.0), (0.0, 1.0), (1.0, 1.0), (1.5, 1.0), (float("nan"), 1.0), (float(2**53), 1.0)),
    }
    asking = apart(world, "SELECT COUNT(*), SUM(q.x) FROM p JOIN q ON p.pid = q.pid", **rows)
    assert asking.exact(world.data(**rows)).cells[()][0] > 0
    asking = apart(world, "SELECT COUNT(DISTINCT pid) FROM q", **rows)
    assert asking.exact(world.data(**rows)).cells == {(): (4,)}
    asking = apart(world, "SELECT COUNT(*) FROM p WHERE pid IN (SELECT pid FROM q)", **rows)
    assert asking.exact(world.data(**rows)).cells == {(): (2,)}


@pytest.mark.parametrize("relation", [U, B])
def test_public_tables_that_come_first_multiply_all_the_same(relation: str):
    """A limit on the matches of a public row says nothing of a person's row."""
    nil = people().with_tables({"nil": {"k": "int64"}}, nil={"public": True}, t={"unique": ["k"]})
    world = replace(nil, public={**nil.public, "nil": ()})
    union = "(SELECT k, x FROM t UNION ALL SELECT k, x FROM t) AS a"
    for sql in (
        "SELECT COUNT(*) FROM pub LEFT JOIN tags ON tags.k = pub.k JOIN t ON t.k = pub.k",
        "SELECT COUNT(*) FROM (SELECT pub.k FROM pub JOIN tags ON tags.k = pub.k) AS a JOIN t ON t.k = a.k",
        "SELECT COUNT(*) FROM tags RIGHT JOIN t ON t.k = tags.k",
        "SELECT COUNT(*) FROM pub JOIN tags ON tags.k = pub.k JOIN t ON t.k = pub.k",
        "SELECT COUNT(*) FROM pub, tags, t WHERE tags.k = pub.k",
        f"SELECT COUNT(*) FROM {union} LEFT JOIN nil ON TRUE",
        f"SELECT COUNT(*) FROM {union} CROSS JOIN nil",
        f"SELECT COUNT(*) FROM {union} LEFT JOIN tags ON a.k = tags.k",
        f"SELECT COUNT(*) FROM {union} JOIN tags ON a.k = tags.k LEFT JOIN nil ON TRUE",
    ):
        try:
            asking = Asking(world, sql, relation)
        except DPSQLError:
            continue
        for data in (world.data(t=((0, 1.0, "a"),)), world.data(t=((1, 1.0, "a"), (5, 1.0, "a")))):
            unit_checks.check_rows(asking, data, random.Random(SEED))


def test_no_other_side_of_an_outer_join_makes_an_answer_fail():
    world = people().limited(max_rows=3)
    for sql in (
        "SELECT COUNT(z), COUNT(*) FROM e LEFT JOIN i ON e.eid = i.eid AND e.k > 0",
        "SELECT k, SUM(z) FROM i RIGHT JOIN e ON i.eid = e.eid GROUP BY k",
        "SELECT city, COUNT(*) FROM e LEFT JOIN (SELECT * FROM p WHERE x > 2) AS a ON e.pid = a.pid GROUP BY city",
        "SELECT COUNT(n) FROM p LEFT JOIN (SELECT pid, COUNT(*) AS n FROM e GROUP BY pid) AS a ON p.pid = a.pid",
        "SELECT COUNT(z) FROM p LEFT JOIN e ON p.pid = e.pid LEFT JOIN i ON e.eid = i.eid JOIN pub ON pub.k = e.k",
    ):
        e = ((1, 1, 1, 1), (None, None, 1, 1))
        for rows in (
            {},
            {"e": e},
            {"p": ((1, "x", 1.0),)},
            {"e": e, "i": ((9, 1.0),)},
            {"p": ((1, "x", 1.0),), "e": e},
        ):
            apart(world, sql, **rows)


def test_units_with_too_many_pairs_stay_apart():
    """A join leaves out units whose rows would make too many pairs: here more than three."""
    with mock.patch.object(pairing, "MOST_PAIRS", 3):
        for asked in unit_checks.questions()[::3]:
            if " JOIN " in asked.sql or "p, e" in asked.sql:
                unit_checks.check_question(asked, SEED, databases=1, changes=1)
    world = people().limited(max_rows=30)
    sql, rows = "SELECT COUNT(*) FROM e AS a JOIN e AS b ON a.pid = b.pid", tuple((n, 1, 1, 1) for n in range(5))
    for most, expected in ((24, 0), (25, 25)):
        with mock.patch.object(pairing, "MOST_PAIRS", most):
            asking = apart(world, sql, e=(*rows, (9, 2, 1, 1)))
            assert asking.exact(world.data(e=rows)).cells == {(): (expected,)}


def test_nobody_empties_a_list_and_nobody_is_marked():
    unit_checks.check_lists()


@pytest.mark.parametrize(
    "asked", [q for q in unit_checks.questions() if q.flavour is unit_checks.INTEGERS][3::17], ids=str
)
def test_halves_of_large_tables_add_up(asked: Question):
    """Units are counted apart where other ways of sorting and looking up are taken as well."""
    world, rng = people().limited(**(asked.limits or R3)), np.random.default_rng(SEED)
    made = unit_checks.planned(world, asked.sql, U, **asked.how)
    size, units = 40_000, rng.integers(-(2**60), 2**60, 9_000)
    pid = rng.choice(units, size)
    e = pd.DataFrame(
        {"eid": rng.permutation(size), "pid": pid, "y": rng.integers(-9, 9, size), "k": rng.integers(0, 5, size)}
    )
    p = pd.DataFrame(
        {"pid": units, "city": rng.choice(["x", "y", "z"], len(units)), "x": rng.uniform(-2, 4, len(units))}
    )
    i = pd.DataFrame({"eid": rng.integers(0, size, 2 * size), "z": rng.uniform(-1, 3, 2 * size)})
    first = units[: len(units) // 2]
    owner = e.set_index("eid")["pid"]
    halves = []
    for mine in (np.ones(len(units), dtype=bool), np.isin(units, first), ~np.isin(units, first)):
        kept = {"p": p[mine], "e": e[e["pid"].isin(units[mine])], "i": i[i["eid"].map(owner).isin(units[mine])]}
        frames = {name: kept.get(name, world.frame(name, world.public.get(name, ()))) for name in world.dtypes}
        frames = {name: frame.astype(dict(world.dtypes[name])) for name, frame in frames.items()}
        stores = {name: ColumnStore(frame, world.schemas[name]) for name, frame in frames.items()}
        halves.append(
            unit_checks.Exact(checks.cells_of(made, pandas.PandasExecutor(stores).execute(made.exact, KEYS[1])))
        )
    whole, *parts = halves
    assert whole == unit_checks.total(parts), asked.sql


def test_blocks_change_no_integer():
    """Rows are read in blocks, of two rows here."""
    for asked in unit_checks.questions()[::6]:
        try:
            asking = unit_checks.asking_of(asked, U)
        except DPSQLError:
            continue
        for data in unit_checks.databases_of(asked.flavour, SEED, 1):
            expected = asking.exact(data, KEYS[-1])
            fresh = Asking(asked.world, asked.sql, U, dict(asked.how))
            with (
                mock.patch.object(pandas, "BLOCK", 2),
                mock.patch.object(groups, "BLOCK", 2),
                mock.patch.object(evaluation, "BLOCK", 2),
            ):
                assert fresh.exact(data, KEYS[-1]) == expected, asked.sql


# Refusals, and what they may say

REFUSED = (
    "SELECT COUNT(*) FROM p, e",
    "SELECT COUNT(*) FROM p JOIN e ON e.pid > p.pid",
    "SELECT COUNT(*) FROM p JOIN e ON e.pid + 0 = p.pid",
    "SELECT COUNT(*) FROM p JOIN e ON e.y = p.x",
    "SELECT COUNT(*) FROM p JOIN e ON e.pid = p.pid OR e.k = 1",
    "SELECT COUNT(*) FROM p JOIN i ON p.x = i.z",
    "SELECT COUNT(*) FROM p LEFT JOIN e ON e.y = p.x",
    "SELECT COUNT(*) FROM p JOIN t ON t.x = p.x",
    "SELECT COUNT(*) FROM t JOIN v ON t.k = v.k",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.k = b.k",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM t WHERE t.k = p.x)",
    "SELECT COUNT(*) FROM t WHERE k IN (SELECT k FROM v)",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.k = t.k)",
    "SELECT COUNT(*) FROM p WHERE x IN (SELECT y FROM e)",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM e)",
    "SELECT COUNT(*) FROM p WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.y > p.x)",
    "SELECT COUNT(*) FROM p WHERE (pid, x) IN (SELECT k, y FROM e)",
    "SELECT COUNT(*) FROM pub WHERE k IN (SELECT k FROM e)",
    "SELECT COUNT(*) FROM pub WHERE EXISTS (SELECT 1 FROM e WHERE e.k = pub.k)",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM pub WHERE pub.k IN (SELECT k FROM e))",
    "SELECT COUNT(*) FROM (SELECT k FROM e UNION ALL SELECT k FROM pub)",
    "SELECT COUNT(*) FROM (SELECT pid FROM e UNION SELECT pid FROM p)",
    "SELECT COUNT(*) FROM (SELECT x FROM p UNION ALL SELECT x FROM t)",
    "SELECT COUNT(*) FROM t JOIN tags ON t.x = tags.k + 0",
    "SELECT COUNT(*) FROM t JOIN (SELECT k // 2 AS j FROM pub) AS a ON a.j = t.k",
    "SELECT COUNT(*) FROM t JOIN pub ON t.x = pub.w",
    "SELECT pid, COUNT(*) FROM e GROUP BY pid",
    "SELECT eid, COUNT(*) FROM i GROUP BY eid",
    "SELECT COUNT(*) FROM (SELECT * FROM e LIMIT 3)",
    "SELECT COUNT(*) FROM p WHERE pid IN (SELECT pid FROM e GROUP BY pid LIMIT 1)",
    "SELECT SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM e GROUP BY pid)",
    "SELECT COUNT(*) FROM e WHERE y > (SELECT COUNT(*) FROM pub WHERE k IN (SELECT k FROM e))",
    "SELECT COUNT(*) FROM e WHERE y > (SELECT MAX(w) FROM pub WHERE pub.k = e.k)",
    "SELECT COUNT(*) FROM e WHERE y > (SELECT MAX(e.y) FROM pub)",
    ("SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM e WHERE e.pid = p.pid AND EXISTS "
    "(SELECT 1 FROM i WHERE i.eid = e.eid AND i.z > p.x))"),
)  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_people_stay_apart_or_the_question_is_refused(sql: str):
    for relation in (U, B):
        with pytest.raises(DPSQLError):
            unit_checks.planned(people().limited(max_rows=3), sql, relation)


def test_what_is_refused_and_answered_does_not_follow_the_rows():
    """The same words for empty tables, for full ones and for one person alone; and no failure for any."""
    asked = [*unit_checks.questions()[::4], *(Question(sql, R3) for sql in REFUSED)]
    sessions: dict[str, list[dpsql.Session]] = {}
    for question in asked:
        world, name = question.world, f"{question.flavour} {question.limits}"
        if name not in sessions:
            full, *_ = unit_checks.databases_of(question.flavour, SEED, 1)
            alone = world.rows_of(full, world.units(full)[0])
            sessions[name] = [session_of(world, data) for data in (world.data(), full, alone)]
        said = {said_of(session, question) for session in sessions[name]}
        assert len(said) == 1, f"{question}: {said}"
        assert "InternalError" not in min(said), f"{question}: {said}"


def session_of(world: World, data: Any) -> dpsql.Session:
    tables = {
        name: dpsql.Table(world.frame(name, world.public.get(name, data.get(name, ()))), **world.declared[name])
        for name in world.dtypes
    }
    return dpsql.Session(tables, budget=dpsql.Budget(10**6, 0.1))


def said_of(session: dpsql.Session, asked: Question) -> str:
    how = {"epsilon": 1, "delta": 1e-6, **asked.how}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = session.query(asked.sql, **how)
        except DPSQLError as error:
            return f"{type(error).__name__}: {error}"
    assert isinstance(found, dpsql.Result)
    return f"answered {list(found.df)}"


def test_every_run_has_a_fresh_key():
    unit_checks.check_fresh_keys()
