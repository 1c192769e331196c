"""Checks of answers over some units at a time, and of one unit block by block: the same integers as over all rows at
once, whatever the sizes, and units that stay apart."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from dpsql.core.exact import ExactTable
from dpsql.errors import DPSQLError
from dpsql.executors.pandas import unit_chunks as slices
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.pandas.joins.pairing import TooManyRows
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.domains import cells_of
from dpsql.plan.nodes import Filter, Source
from tests.core import unit_checks
from tests.core.unit_checks import CLAUSE, G1, G2, G22, R2, R3, R3G2, R4G3C2, Asking, Question, U

SEED = 20_260_342
R9, G31 = {"max_rows": 9}, {"max_groups": 3, "max_rows_per_group": 1}
OF_FANNED = "FROM e CROSS JOIN pub JOIN tags ON tags.k = pub.k"
FANNED = (
    f"SELECT COUNT(*), SUM(y), AVG(y) {OF_FANNED}",
    f"SELECT tag, COUNT(*), AVG(y) {OF_FANNED} GROUP BY tag",
    f"SELECT tag, COUNT(DISTINCT pid), COUNT(*), AVG(y * w) {OF_FANNED} WHERE y < w GROUP BY tag",
    f"SELECT e.k, name, COUNT(*), SUM(y) {OF_FANNED} GROUP BY e.k, name",
    f"SELECT y + w AS z, COUNT(*) {OF_FANNED} GROUP BY z",
    f"SELECT DISTINCT tag || name {OF_FANNED}",
    f"SELECT COUNT(DISTINCT y), COUNT(DISTINCT tag) {OF_FANNED}",
    f"SELECT name, COUNT(DISTINCT y) {OF_FANNED} GROUP BY name",
    f"SELECT MEDIAN(y), MAX(w) {OF_FANNED}",
    f"SELECT tag, MODE(name), MEDIAN(y) {OF_FANNED} GROUP BY tag",
    f"SELECT VAR_POP(y), CORR(y, w) {OF_FANNED}",
    f"SELECT tag, COUNT(*, contribution_bounds_per_group => (1, 3)), SUM(y) {OF_FANNED} GROUP BY tag",
    (
        f"{CLAUSE} (max_groups_contributed = 2) tag, AVG(y, contribution_bounds_per_group => (-1, 2)) {OF_FANNED} "
        "GROUP BY tag"
    ),
    "SELECT tag, COUNT(*) FROM e LEFT JOIN tags ON e.k = tags.k LEFT JOIN pub ON pub.k = tags.k GROUP BY tag",
    "SELECT COUNT(*), AVG(y) FROM e LEFT JOIN tags ON e.k = tags.k AND e.y > 0",
    "SELECT name, COUNT(*), AVG(x) FROM p CROSS JOIN pub JOIN e ON e.pid = p.pid AND e.k = pub.k GROUP BY name",
    "SELECT name, COUNT(y) FROM p CROSS JOIN pub LEFT JOIN e ON e.pid = p.pid AND e.k = pub.k GROUP BY name",
    "SELECT COUNT(*), AVG(z) FROM i JOIN e ON i.eid = e.eid JOIN tags ON tags.k = e.k",
    "SELECT COUNT(*), AVG(z) FROM (SELECT eid, z, w FROM i CROSS JOIN pub) AS a JOIN e ON a.eid = e.eid WHERE w < z",
    "SELECT tag, COUNT(*), AVG(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid JOIN tags ON tags.k = a.k GROUP BY tag",
    "SELECT COUNT(*) FROM e LEFT JOIN (SELECT pid, w FROM e AS d CROSS JOIN pub) AS b ON e.pid = b.pid AND e.y = b.w",
    "SELECT COUNT(*) FROM p WHERE pid IN (SELECT pid FROM e CROSS JOIN pub WHERE y < w)",
    (
        "SELECT name, COUNT(*) FROM p CROSS JOIN pub "
        "WHERE EXISTS (SELECT 1 FROM e WHERE e.pid = p.pid AND e.y < pub.w) GROUP BY name"
    ),
    (
        "SELECT tag, COUNT(*) FROM e JOIN tags ON e.k = tags.k "
        "WHERE EXISTS (SELECT 1 FROM pub WHERE pub.k = e.k AND w < y) GROUP BY tag"
    ),
    (
        "SELECT COUNT(*), AVG(v) FROM (SELECT pid, y AS v FROM e JOIN tags ON e.k = tags.k "
        "UNION ALL SELECT pid, x FROM p CROSS JOIN pub)"
    ),
    (
        "SELECT c, COUNT(*) FROM (SELECT pid, city AS c FROM p CROSS JOIN pub "
        "UNION ALL SELECT pid, tag FROM e JOIN tags ON e.k = tags.k) GROUP BY c"
    ),
    (
        "SELECT COUNT(*) FROM (SELECT pid, k FROM e CROSS JOIN (SELECT k AS j FROM pub) AS b "
        "UNION ALL SELECT pid, k FROM e) AS a JOIN tags ON tags.k = a.k"
    ),
    "SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM e JOIN tags ON e.k = tags.k GROUP BY pid) GROUP BY n",
    (
        "SELECT tag, AVG(CLAMP(s, 0, 4)) FROM (SELECT pid, SUM(y) AS s FROM e CROSS JOIN pub GROUP BY pid) AS a "
        "CROSS JOIN (SELECT tag FROM tags) AS b GROUP BY tag"
    ),
    "SELECT k, COUNT(*) FROM (SELECT DISTINCT pid, e.k FROM e CROSS JOIN pub) AS a GROUP BY k",
    "SELECT g, COUNT(*), SUM(x), AVG(x) FROM t CROSS JOIN pub JOIN tags ON tags.k = t.k GROUP BY g",
    "SELECT COUNT(DISTINCT x), MEDIAN(x) FROM t CROSS JOIN pub",
    "SELECT x + w AS z, COUNT(*) FROM t CROSS JOIN pub GROUP BY z",
    "SELECT g, COUNT(*) FROM (SELECT g, x FROM t CROSS JOIN pub UNION ALL SELECT g, x FROM v) GROUP BY g",
)
LIMITS = (R2, G22, R3G2, R4G3C2, G1, G2, R9, G31, R3)


def by_person() -> list[Question]:
    """Those whose answers are sums over people: how many values differ is not."""
    return [asked for asked in fanned() if not re.search(r"COUNT\(DISTINCT [xy]\)", asked.sql)]


def fanned() -> list[Question]:
    """Every shape above a public table that makes several rows of one, under several limits."""
    found = []
    for place, sql in enumerate(FANNED):
        rows = " t " in sql or " v" in sql.split("UNION")[-1][-20:]
        for limits in ({},) if rows else (LIMITS[place % 9], LIMITS[(place + 4) % 9]):
            found += [Question(sql, limits, flavour=unit_checks.FLAVOURS[place % 3])]
    return found


def accepted(asked: Sequence[Question], relation: str = U) -> Iterator[tuple[Question, Asking]]:
    """Those that are answered."""
    for each in asked:
        try:
            yield each, unit_checks.asking_of(each, relation)
        except DPSQLError:
            continue


@contextmanager
def at_most(rows: int) -> Iterator[None]:
    """Joins make so many rows at once."""
    with mock.patch.object(slices, "MOST_HELD", rows):
        yield


@contextmanager
def block_by_block(source: Source, rows: int) -> Iterator[None]:
    """The same, and every unit is run block by block, whatever the source is."""
    while isinstance(source, Filter):
        source = source.input
    honest, met = Database.relation, []

    def relation(self: Database, asked: Source) -> Relation:
        people = any(each.rows for each in self.given.values() if each.units is not None)
        if asked is source and self.most == rows and (people or not met):
            met.append(asked)
            raise TooManyRows
        return honest(self, asked)

    with at_most(rows), mock.patch.object(Database, "relation", relation):
        yield


def readable(asking: Asking, table: ExactTable) -> object:
    """Integers by group, and counts by group and point."""
    keys = [cells_of(each, key.expr.type) for each, key in zip(table.keys, asking.made.exact.keys, strict=True)]
    names: list[Any] = list(zip(*keys, strict=True)) if keys else [()] * table.groups
    assert len(set(names)) == table.groups
    cells = {name: table.parts[:, place].tolist() for place, name in enumerate(names)}
    grids = [
        {(names[group], point): count for group, point, count in zip(*each, strict=True)}
        for each in ((grid.groups.tolist(), grid.points.tolist(), grid.counts.tolist()) for grid in table.grids)
    ]
    return cells, grids


def check_alike(asked: Question, sizes: Sequence[int], *, databases: int = 2, apart: bool = True) -> int:
    """The integers are those over all rows at once; how many answers were compared."""
    found = 0
    for _, asking in accepted([asked]):
        for data in unit_checks.databases_of(asked.flavour, SEED, databases):
            executor = asking.world.executor(data)
            for key in asking.keys:
                plan = asking.made.exact
                expected = readable(asking, executor.execute(plan, key))
                for size in sizes:
                    with block_by_block(plan.source, size) if apart else at_most(size):
                        made = readable(asking, executor.execute(plan, key))
                    assert made == expected, f"{asked} with {size} rows at once\n{data}\n{made}\n{expected}"
                    found += 1
    return found


def check_limits_of_pairs(asked: Question, pairs: int, *, fanned_out: int, databases: int = 2) -> None:
    """Units stay apart where some have too many pairs, and in whatever blocks they are run the same ones are left
    out."""
    with mock.patch.object(pairing, "MOST_PAIRS", pairs), mock.patch.object(pairing, "MOST_FANNED_OUT", fanned_out):
        unit_checks.executors_of.cache_clear()
        unit_checks.check_question(asked, SEED, databases=databases, changes=1)
        check_alike(asked, (0, 1, 2), databases=databases, apart=False)
        with at_most(1):
            for _, asking in accepted([asked]):
                asking.tables.clear()
                for data in unit_checks.databases_of(asked.flavour, SEED, databases):
                    if not asking.by_row:
                        unit_checks.check_apart(asking, data)
                        unit_checks.check_neighbours(asking, data, random.Random(SEED), changes=1)
