"""Databases of a few people, row by row, and what the engine makes of all their neighbours.

A `World` is the public side: tables, their types and declarations, public tables with their rows. `Data` is the private
side: rows by table. Whose each row is, is worked out here by the documented rule alone, not by the engine: the value of
the unit's column, or the one at the end of its path, where of several rows with the key the smallest unit wins.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

import dpsql
from dpsql import prepare
from dpsql.executors.base import CountRows, CountUnits, ExactPlan, of_units
from dpsql.executors.columns import ColumnStore
from dpsql.executors.pandas import PandasExecutor
from dpsql.privacy.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.privacy.unit import Neighbours
from dpsql.public_tables import resolved
from dpsql.release import Release
from dpsql.schema import TableSchema
from dpsql.sql.catalog import Catalog
from tests.privacy.checks import INF, NAN, B, Cells, Row, U, cells_of, series

Data = dict[str, tuple[Row, ...]]
KEYS = (bytes(32), bytes(range(32)), b"\xff" * 16 + b"\x07" * 16)


# Worlds


@dataclass(frozen=True)
class World:
    """Tables and what is declared of them; `public`: the rows of the public ones."""

    dtypes: Mapping[str, Mapping[str, Any]]
    declared: Mapping[str, Mapping[str, Any]]
    public: Mapping[str, tuple[Row, ...]]

    def frame(self, table: str, rows: Sequence[Row]) -> pd.DataFrame:
        cells = list(zip(*rows, strict=True)) or [()] * len(self.dtypes[table])
        return pd.DataFrame({
            name: series(column, dtype) for (name, dtype), column in zip(self.dtypes[table].items(), cells, strict=True)
        })

    @cached_property
    def schemas(self) -> dict[str, TableSchema]:
        """All declared facts. No private row is there when they are made."""
        return resolved({
            name: dpsql.Table(self.frame(name, self.public.get(name, ())), **self.declared[name])
            for name in self.dtypes
        })

    def limited(self, **limits: int) -> World:
        """The same with these limits on every table of people."""
        declared = {
            name: {**said, **limits} if "unit" in said else said for name, said in self.declared.items()
        }
        return World(self.dtypes, declared, self.public)

    def store(self, table: str, rows: Sequence[Row]) -> ColumnStore:
        return ColumnStore(self.frame(table, rows), self.schemas[table])

    def executor(self, data: Data) -> PandasExecutor:
        return PandasExecutor({
            name: self.store(name, self.public.get(name, data.get(name, ()))) for name in self.dtypes
        })

    # Whose rows: the documented rule.

    @cached_property
    def _units(self) -> dict[str, tuple[str, ...]]:
        """The words of each unit: a column, or a column, a table and its key."""
        words = {name: said["unit"] for name, said in self.declared.items() if "unit" in said}
        return {name: tuple(word.replace("->", " ").replace(".", " ").split()) for name, word in words.items()}

    @property
    def private(self) -> list[str]:
        return [name for name in self.dtypes if name not in self.public]

    def place(self, table: str, column: str) -> int:
        return list(self.dtypes[table]).index(column)

    def unit_of(self, data: Data, table: str, row: Row) -> Any:
        """Whose row it is; None: nobody's."""
        column, *path = self._units[table]
        value = plain(row[self.place(table, column)])
        if not path or value is None:
            return value
        other, key = path
        found = [self.unit_of(data, other, each) for each in data[other] if plain(each[self.place(other, key)]) == value]
        return min((each for each in found if each is not None), default=None)

    def units(self, data: Data) -> list[Any]:
        """Everybody, in order."""
        found = {self.unit_of(data, name, row) for name in self._units for row in data[name]}
        return sorted(each for each in found if each is not None)

    def rows_of(self, data: Data, unit: Any) -> Data:
        """What there is of one unit; None: what there is of nobody."""
        return {
            name: tuple(row for row in data[name] if self.unit_of(data, name, row) == unit)
            if name in self._units
            else data[name]
            for name in self.private
        }

    def without(self, data: Data, unit: Any) -> Data:
        return {
            name: tuple(row for row in data[name] if self.unit_of(data, name, row) != unit)
            if name in self._units
            else data[name]
            for name in self.private
        }

    def with_rows(self, data: Data, unit: Any, rows: Data) -> Data | None:
        """The data with rows of a unit that has none there; None where those would make other rows change hands."""
        both = {name: (*data[name], *rows.get(name, ())) for name in self.private}
        if self.without(both, unit) != data or any(
            self.unit_of(both, name, row) != unit for name in self._units for row in rows.get(name, ())
        ):
            return None
        return both


def plain(cell: Any) -> Any:
    """A cell by its value: None for NULL."""
    if cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell


# What the engine makes of them


def planned(world: World, sql: str, relation: str, **how: Any) -> Release:
    """The release of a query: what a session does before it reads a row. Planned afresh, not cached."""
    prepare._cache.clear()
    loss = PrivacyLoss(as_epsilon(how.pop("epsilon", 1)), as_delta(how.pop("delta", 1e-6)))
    terms = prepare.Terms(loss.epsilon, loss.delta)
    made = prepare.prepare(sql, Catalog(world.schemas), Neighbours.of(relation), terms, **how).release
    assert made.cost.within(loss), f"{sql}: {made.cost} charged of {loss}"
    return made


@dataclass(frozen=True)
class Exact:
    """What is made of one database: coordinates by group, and the number of units by group where groups are chosen by
    it."""

    cells: Cells
    units: dict[Any, int] = field(default_factory=dict)


@dataclass
class Asking:
    """One query, answered exactly over many databases. Answers are kept by plan, database and key."""

    world: World
    sql: str
    relation: str
    how: dict[str, Any] = field(default_factory=dict)
    executors: dict[Any, PandasExecutor] = field(default_factory=dict)
    """Those of the databases that were met before, for any query of the same world."""

    def __post_init__(self) -> None:
        self.made = planned(self.world, self.sql, self.relation, **self.how)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """One hash key is as good as any where nothing is left out."""
        return KEYS[:1] if self.made.exact.limits is None and self.made.exact.groups is None else KEYS

    def exact(self, data: Data, key: bytes = KEYS[0]) -> Exact:
        name = repr(data)
        if name not in self.executors:
            self.executors[name] = self.world.executor(data)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = self.executors[name].execute(self.made.exact, key)
        cells = cells_of(self.made, table)
        if self.made.selector is None:
            return Exact(cells)
        counts = table.parts[self.made.selector.part].tolist()
        return Exact(cells, dict(zip(cells, counts, strict=True)))

    def where(self, data: Data, other: Data) -> str:
        return f"{self.sql} | {self.relation} {self.how or ''}\n{data}\n{other}"

    def compare(self, one: Exact, other: Exact, where: str) -> None:
        """The distance of neighbours beside what the release declares, share by share and coordinate by coordinate."""
        made = self.made
        width = len(made.coordinates)
        zero = (0,) * width
        noisy = sorted(place for share in made.shares for place in share.places)
        assert noisy == [i for i, each in enumerate(made.coordinates) if each.noisy], f"noise missing or twice: {where}"
        changes = {
            group: [abs(x - y) for x, y in zip(one.cells.get(group, zero), other.cells.get(group, zero), strict=True)]
            for group in one.cells.keys() | other.cells.keys()
        }
        for share in made.shares:
            largest = sum(max(change[i] for i in share.places) for change in changes.values())
            squared = sum(change[i] ** 2 for change in changes.values() for i in share.places)
            assert largest <= share.reach.steps, f"max-norm {largest} of {share.reach.steps}: {where}"
            assert squared <= share.reach.l2_squared, f"squared L2 {squared} of {share.reach.l2_squared}: {where}"
        for i, each in enumerate(made.coordinates):
            by = sum(change[i] for change in changes.values())
            assert by <= (each.sensitivity if each.noisy else 0), f"{each.name} {by} of {each.sensitivity}: {where}"
        self._compare_groups(one, other, where)

    def _compare_groups(self, one: Exact, other: Exact, where: str) -> None:
        made = self.made
        come_or_go = one.cells.keys() ^ other.cells.keys()
        if made.exact.every_cell:
            assert not come_or_go, f"public groups come or go, {come_or_go}: {where}"
            return
        most = made.lattice.groups_of_a_unit
        assert len(come_or_go) <= most, f"{len(come_or_go)} groups come or go, not {most}: {where}"
        for group in come_or_go:
            if made.threshold is not None:
                alone = {**one.cells, **other.cells}[group][made.lattice.selection]
                assert abs(alone) <= made.lattice.one_unit, f"{group} of one unit counts {alone} steps: {where}"
        if made.selector is not None:
            moved = {g: abs(one.units.get(g, 0) - other.units.get(g, 0)) for g in one.units.keys() | other.units.keys()}
            assert max(moved.values(), default=0) <= 1, f"one unit counts {moved}: {where}"
            assert sum(moved.values()) <= most, f"a unit is in {sum(moved.values())} groups, not {most}: {where}"
            nobody = [group for group, count in {**one.units, **other.units}.items() if count < 1]
            assert not nobody, f"groups of nobody can be seen, {nobody}: {where}"


def total(parts: Sequence[Exact]) -> Exact:
    """Several exact answers added up."""
    cells: dict[Any, list[int]] = {}
    units: dict[Any, int] = {}
    for part in parts:
        for group, found in part.cells.items():
            held = cells.setdefault(group, [0] * len(found))
            cells[group] = [x + y for x, y in zip(held, found, strict=True)]
        for group, count in part.units.items():
            units[group] = units.get(group, 0) + count
    return Exact({group: tuple(found) for group, found in cells.items()}, units)


def check_apart(asking: Asking, data: Data) -> None:
    """Units are counted apart: what a database comes to is the sum of what each of its units comes to by itself, under
    any one hash key, and nobody's rows come to nothing. So no unit's rows change what another one adds."""
    world = asking.world
    nobody = asking.exact(world.rows_of(data, None), KEYS[0])
    for key in asking.keys:
        whole = asking.exact(data, key)
        alone = [asking.exact(world.rows_of(data, unit), key) for unit in world.units(data)]
        found, expected = whole, total([nobody, *alone])
        assert found == expected, (
            f"units are not counted apart: {asking.sql}\n{data}\nall together {found}\none by one {expected}"
        )
    if not asking.made.exact.every_cell and asking.made.exact.keys:
        assert not nobody.cells, f"rows of nobody make groups: {asking.sql}\n{data}\n{nobody.cells}"
    assert not any(map(any, nobody.cells.values())), f"rows of nobody count: {asking.sql}\n{data}\n{nobody.cells}"


def check_neighbours(asking: Asking, data: Data, rng: random.Random, changes: int = 2) -> None:
    """Every neighbour with one unit less, or some with another's rows changed, under the same hash key."""
    world = asking.world
    for unit in world.units(data):
        rest = world.without(data, unit)
        others = [rest]
        if asking.relation == B:
            drawn = [world.with_rows(rest, unit, people_rows(rng, unit, 4)) for _ in range(changes)]
            others = [each for each in (rest, *drawn) if each is not None]
        for other in others:
            for key in asking.keys:
                asking.compare(asking.exact(data, key), asking.exact(other, key), asking.where(data, other))


def check_order(asking: Asking, data: Data, rng: random.Random) -> None:
    """Any order of the rows gives the same integers."""
    shuffled = {name: tuple(rng.sample(rows, len(rows))) for name, rows in data.items()}
    for key in asking.keys:
        one, other = asking.exact(data, key), asking.exact(shuffled, key)
        assert one == other, f"the order of rows matters: {asking.sql}\n{data}\n{shuffled}\n{one}\n{other}"


# People of three tables, beside two public ones and two whose rows are one person's each


@dataclass(frozen=True)
class Flavour:
    """How the unit is held in p and in e, and some units."""

    name: str
    dtypes: tuple[Any, Any]
    units: tuple[Any, ...]
    nobody: Any = None
    types: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


FLAVOURS = (
    Flavour("integers", ("int64", "Int64"), (1, 2**53, 2, 2**53 + 1)),
    Flavour("texts", (object, "str"), ("b", "a", "A ", "é")),
    Flavour("reals", ("float64", "float64"), (2.5, 0.0, -1.5, 1e18), NAN),
    Flavour("objects", (object, "float64"), (3, 1, 7, 2**40), NAN, {"pid": "integer"}),
    Flavour("categories", ("category", object), ("x", "y", "'x'", "")),
)
INTEGERS = FLAVOURS[0]
OWN_EIDS, SHARED_EIDS = 3, (99, None)
EIDS = {unit: [10 * (place + 1) + n for n in range(OWN_EIDS)] for f in FLAVOURS for place, unit in enumerate(f.units)}

PUBLIC: dict[str, tuple[Row, ...]] = {
    "pub": ((0, "n0", 0.5), (1, "n1", 2.0), (2, "n1", 0.0), (5, None, 1.0)),
    "tags": ((0, "A"), (0, "B"), (1, "A"), (1, "A"), (2, None), (None, "B"), (5, "C")),
}


@lru_cache
def people(flavour: Flavour = INTEGERS) -> World:
    """p, e and i of the same people, pub and tags of nobody, t and v of which every row is a person."""
    pid, other = flavour.dtypes
    return World(
        {
            "p": {"pid": pid, "city": object, "x": "float64"},
            "e": {"eid": "Int64", "pid": other, "y": "Int64", "k": "Int64"},
            "i": {"eid": "Int64", "z": "float64"},
            "pub": {"k": "int64", "name": object, "w": "float64"},
            "tags": {"k": "Int64", "tag": object},
            "t": {"k": "Int64", "x": "float64", "g": object},
            "v": {"k": "Int64", "x": "float64", "g": object},
        },
        {
            "p": {"unit": "pid", "unique": ["pid"], "bounds": {"x": (-1, 3)}, "types": flavour.types},
            "e": {"unit": "pid", "unique": ["eid"], "bounds": {"y": (-2, 3), "k": (0, 3)}, "types": flavour.types},
            "i": {"unit": "eid -> e.eid", "bounds": {"z": (0, 2)}},
            "pub": {"public": True, "unique": ["k"]},
            "tags": {"public": True, "max_matches": {"k": 2}},
            "t": {"bounds": {"x": (-1, 3), "k": (0, 3)}},
            "v": {"bounds": {"x": (-1, 3), "k": (0, 3)}},
        },
        PUBLIC,
    )


CITIES = ["x", "y", "zz", "", None, 5]
XS = [-1.0, 3.0, 0.25, NAN, INF, -INF, 1e6, -9.0]
YS = [-2, 0, 1, 3, 9, -7, None]
KS = [0, 1, 2, 3, 7, None]
ZS = [0.0, 2.0, 0.5, -1.0, 50.0, NAN]


def people_rows(rng: random.Random, unit: Any, most: int) -> Data:
    """Up to so many rows of one unit in each table; what its items lead to is its own, for the most part."""
    eids = EIDS.get(unit, [90, 91])
    p = [(unit, rng.choice(CITIES), rng.choice(XS)) for _ in range(rng.choice([0, 1, 1, 2]))]
    e = [
        (rng.choice(eids if rng.random() < 0.85 else SHARED_EIDS), unit, rng.choice(YS), rng.choice(KS))
        for _ in range(rng.randint(0, most))
    ]
    held = [row[0] for row in e] or eids
    i = [(rng.choice(held if rng.random() < 0.9 else eids), rng.choice(ZS)) for _ in range(rng.randint(0, most))]
    return {"p": tuple(p), "e": tuple(e), "i": tuple(i)}


def database(rng: random.Random, flavour: Flavour, units: int, most: int = 4) -> Data:
    """Rows of so many units, and of nobody: units that are NULL, keys that lead nowhere; in any order."""
    parts = [people_rows(rng, unit, most) for unit in rng.sample(flavour.units, units)]
    if flavour.dtypes[0] != "int64" and rng.random() < 0.5:
        parts.append({"p": ((flavour.nobody, "x", 1.0),)})
    if rng.random() < 0.5:
        parts.append({"e": ((rng.choice([99, 98, None]), flavour.nobody, 1, 1),)})
    if rng.random() < 0.5:
        parts.append({"i": ((rng.choice([99, 98, 97, None]), 1.5),)})
    made = {name: [row for part in parts for row in part.get(name, ())] for name in ("p", "e", "i")}
    return {name: tuple(rng.sample(rows, len(rows))) for name, rows in made.items()} | {"t": (), "v": ()}


def table_of_rows(rng: random.Random, most: int) -> tuple[Row, ...]:
    """Rows of t or v, each a unit."""
    return tuple((rng.choice(KS), rng.choice(XS), rng.choice(["a", "b", None, 5])) for _ in range(rng.randint(0, most)))
