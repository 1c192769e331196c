"""Databases of a few people, row by row, and what the engine makes of all their neighbours.

A `World` is the public side: tables, their types and declarations, public tables with their rows. `Data` is the private
side: rows by table. Whose each row is, is worked out here by the documented rule alone, not by the engine: the value of
the unit's column, or the one at the end of its path, where of several rows with the key the smallest unit wins.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import pandas as pd

import dpsql
from dpsql.core.exact import CountDistinct, ExactTable
from dpsql.core.loss import PrivacyLoss, as_delta, as_epsilon
from dpsql.core.selection.threshold import show_probability
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidSchema
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema
from dpsql.session import prepare
from dpsql.session.tables.public_tables import public_data, resolved
from dpsql.sql.names.catalog import Catalog
from tests.core.checks import INF, NAN, B, Cells, Row, U, cells_of, frame_of, moved, series
from tests.measured import assert_across, by_chance, by_weights, height_of, norm_of

Data = dict[str, tuple[Row, ...]]
KEYS = (bytes(32), bytes(range(32)))


# Worlds


@dataclass(frozen=True)
class World:
    """Tables and what is declared of them; `public`: the rows of the public ones."""

    dtypes: Mapping[str, Mapping[str, Any]]
    declared: Mapping[str, Mapping[str, Any]]
    public: Mapping[str, tuple[Row, ...]]
    eid: Callable[[int], Any] = int
    """What stands for a number in the keys of e and i."""

    def frame(self, table: str, rows: Sequence[Row]) -> pd.DataFrame:
        return frame_of(self.dtypes[table], rows)

    @cached_property
    def schemas(self) -> dict[str, TableSchema]:
        """All declared facts. No private row is there when they are made."""
        return resolved(
            {
                name: dpsql.Table(self.frame(name, self.public.get(name, ())), **self._declared(name))
                for name in self.dtypes
            }
        )

    def _declared(self, table: str) -> dict[str, Any]:
        """What is declared of a table; columns of Python objects hold texts unless it says otherwise."""
        said, frame = self.declared[table], self.frame(table, self.public.get(table, ()))
        kinds = {name: getattr(frame[name].dtype, "categories", frame[name]).dtype for name in frame}
        objects = {name: "text" for name, kind in kinds.items() if pd.api.types.is_object_dtype(kind)}
        return {**said, "types": {**objects, **said.get("types", {})}} if objects else dict(said)

    @cached_property
    def catalog(self) -> Catalog:
        stores = {name: self.store(name, rows) for name, rows in self.public.items()}
        return Catalog(self.schemas, public=public_data(stores))

    def limited(self, **limits: int) -> World:
        """The same with these limits on every table of people."""
        declared = {name: {**said, **limits} if "unit" in said else said for name, said in self.declared.items()}
        return replace(self, declared=declared)

    def store(self, table: str, rows: Sequence[Row]) -> ColumnStore:
        return ColumnStore(self.frame(table, rows), self.schemas[table])

    def executor(self, data: Data) -> PandasExecutor:
        return PandasExecutor(
            {name: self.store(name, self.public.get(name, data.get(name, ()))) for name in self.dtypes}
        )

    def with_tables(self, dtypes: Mapping[str, Mapping[str, Any]], **said: Mapping[str, Any]) -> World:
        """The same with more tables, and more said of some."""
        declared = {name: {**self.declared.get(name, {}), **said.get(name, {})} for name in (*self.dtypes, *dtypes)}
        return replace(self, dtypes={**self.dtypes, **dtypes}, declared=declared)

    def data(self, **rows: tuple[Row, ...]) -> Data:
        """These rows, and none of the other tables."""
        return {name: rows.get(name, ()) for name in self.private}

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
        found = [
            self.unit_of(data, other, each) for each in data[other] if plain(each[self.place(other, key)]) == value
        ]
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
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell


# What the engine makes of them


def planned(world: World, sql: str, relation: str, **how: Any) -> Release:
    """The release of a query: what a session does before it reads a row. Planned afresh, not cached."""
    prepare._cache.clear()
    loss = PrivacyLoss(as_epsilon(how.pop("epsilon", 1)), as_delta(how.pop("delta", 1e-6)))
    terms = prepare.Terms(loss.epsilon, loss.delta)
    made = prepare.prepare(sql, world.catalog, Neighbours.of(relation), terms, **how).releases[0]
    assert made.cost.within(loss), f"{sql}: {made.cost} charged of {loss}"
    check_cost(made, sql)
    return made


def _own_shown(made: Release) -> float:
    """The chance that a threshold shows a group of one unit."""
    most = made.lattice.most_of_a_unit
    return show_probability(made.shares[0].noise, most, height_of(made), made.selection.below)


def check_cost(made: Release, sql: str) -> None:
    """What the noise of each share and the choice of groups are worth comes to no more than is charged."""
    losses = [share.noise.loss(share.reach) for share in made.shares]
    losses += [groups.law.loss for groups in by_chance(made)]
    losses += [groups.cost for groups in by_weights(made)]
    epsilon, delta = (sum((getattr(each, word) for each in losses), Fraction(0)) for word in ("epsilon", "delta"))
    if height_of(made):
        chance = _own_shown(made)
        delta += Fraction(chance) * made.lattice.groups_of_a_unit * Fraction(10**9 - 1, 10**9)
    assert epsilon <= made.cost.epsilon, f"{sql}: worth {float(epsilon)}, charged {made.cost}"
    assert delta <= made.cost.delta, f"{sql}: worth {float(delta)}, charged {made.cost}"


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
    tables: dict[Any, ExactTable] = field(default_factory=dict)
    """What this query made of them."""

    def __post_init__(self) -> None:
        self.made = planned(self.world, self.sql, self.relation, **self.how)

    @property
    def by_row(self) -> bool:
        """Each row of t and of v is a unit."""
        return not self.made.analysis.bounds.declared

    @property
    def keys(self) -> tuple[bytes, ...]:
        """One hash key is as good as any where nothing is left out."""
        return KEYS[:1] if self.made.exact.limits is None and self.made.exact.groups is None else KEYS

    def exact(self, data: Data, key: bytes = KEYS[0]) -> Exact:
        name = repr(data)
        if (name, key) not in self.tables:
            if name not in self.executors:
                self.executors[name] = self.world.executor(data)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.tables[name, key] = self.executors[name].execute(self.made.exact, key)
        table = self.tables[name, key]
        cells = cells_of(self.made, table)
        counted = (*by_chance(self.made), *by_weights(self.made))
        if not counted:
            return Exact(cells)
        counts = table.parts[counted[0].part].tolist()
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
        signed = [
            [x - y for x, y in zip(one.cells.get(group, zero), other.cells.get(group, zero), strict=True)]
            for group in changes
        ]
        for share in made.shares:
            assert_across(share, signed, where)
            largest = sum(norm_of(share, change) for change in changes.values())
            squared = sum(change[i] ** 2 for change in changes.values() for i in share.places)
            assert largest <= share.reach.cube_sensitivity, (
                f"max-norm {largest} of {share.reach.cube_sensitivity}: {where}"
            )
            assert squared <= share.reach.l2_squared, f"squared L2 {squared} of {share.reach.l2_squared}: {where}"
            moved_groups = sum(any(change[i] for i in share.places) for change in changes.values())
            assert share.reach.groups is not None
            assert moved_groups <= share.reach.groups, f"{moved_groups} groups of {share.reach.groups} move: {where}"
        sensitivities = moved(made)
        for i, each in enumerate(made.coordinates):
            by, share = sum(change[i] for change in changes.values()), made.share_of(i)
            most = 0 if share is None else min(sensitivities[i], share.reach.cube_sensitivity)
            assert by <= most, f"{each.name} moves {by} of {most}: {where}"
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
            if height_of(made):
                alone = {**one.cells, **other.cells}[group][made.lattice.selection]
                assert abs(alone) <= made.lattice.most_of_a_unit, f"{group} of one unit counts {alone} steps: {where}"
        for chosen in by_weights(made):
            common = one.units.keys() & other.units.keys()
            squares = sum((one.units[group] - other.units[group]) ** 2 for group in common)
            assert squares <= chosen.reach.l2_squared, f"weights move by {squares}: {where}"
            own = [held[group] for held in (one.units, other.units) for group in held.keys() - common]
            chance = sum(float(chosen.noise.upper_tail(chosen.height - weight)) for weight in own)
            assert chance <= chosen.delta, f"own groups are shown with {chance}: {where}"
        if by_chance(made):
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


def only(places: Sequence[int], exact: Exact) -> Exact:
    """Some of the coordinates."""
    return Exact({group: tuple(steps[place] for place in places) for group, steps in exact.cells.items()}, exact.units)


def check_apart(asking: Asking, data: Data) -> None:
    """Units are counted apart: what a database comes to is the sum of what each of its units comes to by itself, under
    any one hash key, and nobody's rows come to nothing. So no unit's rows change what another one adds. But for numbers
    of different values: two units may have one value."""
    world = asking.world
    parts = asking.made.exact.parts
    summed = [
        place
        for place, each in enumerate(asking.made.coordinates)
        if not any(isinstance(parts[part], CountDistinct) for part, _ in each.terms)
    ]
    nobody = asking.exact(world.rows_of(data, None), KEYS[0])
    for key in asking.keys:
        whole = asking.exact(data, key)
        alone = [asking.exact(world.rows_of(data, unit), key) for unit in world.units(data)]
        found, expected = (only(summed, each) for each in (whole, total([nobody, *alone])))
        assert found == expected, (
            f"units are not counted apart: {asking.sql}\n{data}\nall together {found}\none by one {expected}"
        )
    if not asking.made.exact.every_cell and asking.made.exact.keys:
        assert not nobody.cells, f"rows of nobody make groups: {asking.sql}\n{data}\n{nobody.cells}"
    assert not any(map(any, nobody.cells.values())), f"rows of nobody count: {asking.sql}\n{data}\n{nobody.cells}"


Draw = Callable[[random.Random, Any, Any, int], Data]
"""Some rows of one unit of a world, up to so many in each table."""


def check_neighbours(
    asking: Asking, data: Data, rng: random.Random, changes: int = 2, draw: Draw | None = None
) -> None:
    """Every neighbour with one unit less, or some with another's rows changed, under the same hash key."""
    world, draw = asking.world, draw or people_rows
    for unit in world.units(data):
        rest = world.without(data, unit)
        others = [rest]
        if asking.relation == B:
            drawn = [world.with_rows(rest, unit, draw(rng, world, unit, 4)) for _ in range(changes)]
            others = [each for each in (rest, *drawn) if each is not None]
        for other in others:
            for key in asking.keys:
                asking.compare(asking.exact(data, key), asking.exact(other, key), asking.where(data, other))


def check_rows(asking: Asking, data: Data, rng: random.Random, changes: int = 2) -> None:
    """Every neighbour with one row less of t or of v, each of which is a unit, or some with a row changed."""
    for name in ("t", "v"):
        for place in range(len(data[name])):
            rest = (*data[name][:place], *data[name][place + 1 :])
            others = [rest]
            if asking.relation == B:
                others = [(*rest, *table_of_rows(rng, 1, least=1)) for _ in range(changes)]
            for rows in others:
                other = {**data, name: rows}
                asking.compare(asking.exact(data), asking.exact(other), asking.where(data, other))


def check_order(asking: Asking, data: Data, rng: random.Random) -> None:
    """Any order of the rows gives the same integers."""
    shuffled = {name: tuple(rng.sample(rows, len(rows))) for name, rows in data.items()}
    for key in asking.keys:
        one, other = asking.exact(data, key), asking.exact(shuffled, key)
        assert one == other, f"the order of rows matters: {asking.sql}\n{data}\n{shuffled}\n{one}\n{other}"


# People of three tables, beside two public ones and two whose rows are one person's each


@dataclass(frozen=True)
class Flavour:
    """How the unit is held in p and in e, some units, and how the keys of e and i are held."""

    name: str
    dtypes: tuple[Any, Any]
    units: tuple[Any, ...]
    nobody: Any = None
    types: dict[str, str] = field(default_factory=dict, hash=False)
    keys: Any = "Int64"
    eid: Callable[[int], Any] = int

    def __str__(self) -> str:
        return self.name


def text_key(number: int) -> str:
    return f"k{number}"


def large_key(number: int) -> int:
    """As large as hashes are."""
    return 2**62 + number


DAYS = tuple(pd.Timestamp("2020-02-28") + pd.Timedelta(days=n) for n in range(4))
TEXT = {"pid": "text"}
FLAVOURS = (
    Flavour("integers", ("int64", "Int64"), (1, 2**53, 2, 2**53 + 1)),
    Flavour("texts", (object, "str"), ("b", "a", "A ", "é"), None, TEXT, keys=object, eid=text_key),
    Flavour("reals", ("float64", "float64"), (2.5, 0.0, -1.5, 1e18), NAN),
    Flavour("objects", (object, "float64"), (3, 1, 7, 2**40), NAN, {"pid": "integer"}),
    Flavour("categories", ("category", object), ("x", "y", "'x'", ""), None, TEXT, keys="category", eid=text_key),
    Flavour("hashes", ("uint64", "UInt64"), (2**63 + 1, 2**63, 5, 2**62 + 1), keys="Int64", eid=large_key),
    Flavour("times", ("datetime64[us]", "datetime64[us]"), DAYS, pd.NaT),
    Flavour("truths", ("bool", "boolean"), (True, False)),
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
    keys = {"eid": "text"} if flavour.keys in (object, "category") else {}
    return World(
        {
            "p": {"pid": pid, "city": "str", "x": "float64"},
            "e": {"eid": flavour.keys, "pid": other, "y": "Int64", "k": "Int64"},
            "i": {"eid": flavour.keys, "z": "float64"},
            "pub": {"k": "int64", "name": "str", "w": "float64"},
            "tags": {"k": "Int64", "tag": "str"},
            "t": {"k": "Int64", "x": "float64", "g": "str"},
            "v": {"k": "Int64", "x": "float64", "g": "str"},
        },
        {
            "p": {"unit": "pid", "unique": ["pid"], "bounds": {"x": (-1, 3)}, "types": flavour.types},
            "e": {
                "unit": "pid",
                "unique": ["eid"],
                "bounds": {"y": (-2, 3), "k": (0, 3)},
                "types": {**flavour.types, **keys},
            },
            "i": {"unit": "eid -> e.eid", "bounds": {"z": (0, 2)}, "types": keys},
            "pub": {"public": True, "unique": ["k"]},
            "tags": {"public": True, "max_matches": {"k": 2}},
            "t": {"bounds": {"x": (-1, 3), "k": (0, 3)}},
            "v": {"bounds": {"x": (-1, 3), "k": (0, 3)}},
        },
        PUBLIC,
        flavour.eid,
    )


CITIES = ["x", "y", "zz", "", None, 5]
XS = [-1.0, 3.0, 0.25, NAN, INF, -INF, 1e6, -9.0]
YS = [-2, 0, 1, 3, 9, -7, None]
KS = [0, 1, 2, 3, 7, None]
ZS = [0.0, 2.0, 0.5, -1.0, 50.0, NAN]


def people_rows(rng: random.Random, world: World, unit: Any, most: int) -> Data:
    """Up to so many rows of one unit in each table; what its items lead to is its own, for the most part."""
    eids = EIDS[unit]
    p = [(unit, rng.choice(CITIES), rng.choice(XS)) for _ in range(rng.choice([0, 1, 1, 2]))]
    e = [
        (rng.choice(eids if rng.random() < 0.85 else SHARED_EIDS), unit, rng.choice(YS), rng.choice(KS))
        for _ in range(rng.randint(0, most))
    ]
    held = [row[0] for row in e] or eids
    i = [(rng.choice(held if rng.random() < 0.9 else eids), rng.choice(ZS)) for _ in range(rng.randint(0, most))]
    return _with_keys(world, {"p": tuple(p), "e": tuple(e), "i": tuple(i)})


def _with_keys(world: World, rows: Data) -> Data:
    """The rows with the keys of e and i as the world has them."""

    def keyed(row: Row) -> Row:
        return (None if row[0] is None else world.eid(row[0]), *row[1:])

    return {name: tuple(map(keyed, held)) if name in ("e", "i") else held for name, held in rows.items()}


def database(rng: random.Random, flavour: Flavour, units: int, most: int = 4) -> Data:
    """Rows of so many units, and of nobody: units that are NULL, keys that lead nowhere; in any order."""
    world = people(flavour)
    parts = [people_rows(rng, world, unit, most) for unit in rng.sample(flavour.units, min(units, len(flavour.units)))]
    nobody: Data = {}
    if flavour.dtypes[0] not in ("int64", "uint64", "bool") and rng.random() < 0.5:
        nobody["p"] = ((flavour.nobody, "x", 1.0),)
    if rng.random() < 0.5:
        nobody["e"] = ((rng.choice([99, 98, None]), flavour.nobody, 1, 1),)
    if rng.random() < 0.5:
        nobody["i"] = ((rng.choice([99, 98, 97, None]), 1.5),)
    parts.append(_with_keys(world, nobody))
    made = {name: [row for part in parts for row in part.get(name, ())] for name in ("p", "e", "i")}
    return {name: tuple(rng.sample(rows, len(rows))) for name, rows in made.items()} | {"t": (), "v": ()}


def table_of_rows(rng: random.Random, most: int, least: int = 0) -> tuple[Row, ...]:
    """Rows of t or v, each a unit."""
    return tuple(
        (rng.choice(KS), rng.choice(XS), rng.choice(["a", "b", None, 5])) for _ in range(rng.randint(least, most))
    )


# A question for every node and combination


@dataclass(frozen=True)
class Question:
    """A query, the limits that are declared on every table of people, and how it is answered."""

    sql: str
    limits: dict[str, int] = field(default_factory=dict)
    how: dict[str, Any] = field(default_factory=dict)
    flavour: Flavour = INTEGERS
    enforced: bool = False
    """Units and keys have bounds, and are declared never to be NULL."""

    def __str__(self) -> str:
        more = (self.limits, self.how, self.flavour, *(["enforced"] if self.enforced else []))
        return " ".join([self.sql, *map(str, more if self.how or self.enforced else [self.limits])])

    @property
    def place(self) -> tuple[Any, ...]:
        return self.flavour, tuple(self.limits.items()), self.enforced

    @property
    def world(self) -> World:
        return limited_people(*self.place)


@lru_cache
def limited_people(flavour: Flavour, limits: tuple[tuple[str, int], ...], enforced: bool) -> World:
    world = people(flavour).limited(**dict(limits))
    return enforced_world(world, numbers=flavour.name in ("integers", "objects", "reals")) if enforced else world


def enforced_world(world: World, *, numbers: bool) -> World:
    """The same with more promises, which the rows do not keep: bounds of units and keys, and no NULL in them."""
    said = world.declared
    keys, unit = ({"eid": (0, 21)} if world.eid is int else {}), ({"pid": (0, 2)} if numbers else {})
    return world.with_tables(
        {},
        p={"bounds": {**said["p"]["bounds"], **unit}},
        e={"bounds": {**said["e"]["bounds"], **keys}, "nullable": {"eid": False, "pid": False}},
        i={"bounds": {**said["i"]["bounds"], **keys}, "nullable": {"eid": False}},
    )


LIMITS = ("max_rows", "max_groups", "max_rows_per_group")
R1, R2, R3 = {"max_rows": 1}, {"max_rows": 2}, {"max_rows": 3}
G1, G2 = {"max_groups": 1, "max_rows_per_group": 2}, {"max_groups": 2, "max_rows_per_group": 1}
G22, R3G2 = {"max_groups": 2, "max_rows_per_group": 2}, {"max_rows": 3, "max_groups": 2}
R4G3C2 = {"max_rows": 4, "max_groups": 3, "max_rows_per_group": 2}
EVERY_LIMIT = (R2, G22, R3, R3G2, R4G3C2, G1, G2, R1)

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
OF_E = "FROM e GROUP BY k"
OF_EACH = "FROM (SELECT pid, COUNT(*) AS n, SUM(y) AS s, AVG(y) AS a, MAX(y) AS m FROM e GROUP BY pid)"
PLAIN = (
    "SELECT COUNT(*) FROM e",
    "SELECT SUM(y), COUNT(y) FROM e WHERE y <> 1",
    "SELECT AVG(y) FROM e",
    "SELECT AVG(x), SUM(x), COUNT(*) FROM p",
    "SELECT COUNT(DISTINCT pid) FROM e WHERE k = 1",
    "SELECT COUNT(DISTINCT pid), COUNT(*), SUM(y) FROM e",
    "SELECT k, COUNT(DISTINCT pid) FILTER (WHERE y > 0), COUNT(y) FROM e GROUP BY k",
    "SELECT k, AVG(y), SUM(y, contribution_bounds_per_group => (-1, 2)) FROM e GROUP BY k",
    "SELECT k, COUNT(*, contribution_bounds_per_group => (0, 1)), SUM(y), AVG(y > 0) FROM e GROUP BY k",
    "SELECT COUNT(*, contribution_bounds_per_group => (0, 1.5)) FROM e",
    "SELECT k, COUNT(*, contribution_bounds_per_group => (0.5, 1.25)) FROM e GROUP BY k",
    "SELECT AVG(y, contribution_bounds_per_group => (-1, 1)), AVG(y, contribution_bounds_per_group => (0, 4)) FROM e",
    "SELECT COUNT(*), SUM(z), AVG(z) FROM i",
    "SELECT SUM(y) FILTER (WHERE k < 2), COUNT(*) FILTER (WHERE y > 0) FROM e",
    f"SELECT k, COUNT(*) {OF_E}",
    f"SELECT k, SUM(y) {OF_E}",
    f"SELECT k, AVG(y) {OF_E}",
    f"SELECT k, COUNT(*), SUM(y), AVG(y) {OF_E}",
    f"SELECT k, COUNT(DISTINCT pid) {OF_E}",
    f"SELECT k, COUNT(DISTINCT pid), COUNT(*) {OF_E}",
    f"SELECT k, COUNT(DISTINCT pid), AVG(y), SUM(y) {OF_E}",
    f"SELECT k, y > 0, COUNT(*), SUM(y) {OF_E}, y > 0",
    "SELECT y, k, COUNT(y) FROM e WHERE k IS NOT NULL GROUP BY y, k",
    "SELECT city, COUNT(*) FROM p GROUP BY city",
    "SELECT city, SUM(x) FROM p GROUP BY city",
    "SELECT city, AVG(x), COUNT(DISTINCT pid) FROM p GROUP BY city",
    "SELECT DISTINCT city FROM p",
    "SELECT DISTINCT z > 1 FROM i",
    "SELECT x, COUNT(*) FROM p GROUP BY x",
    "SELECT CASE WHEN z > 1 THEN 'high' ELSE 'low' END AS h, COUNT(*), SUM(z) FROM i GROUP BY h",
)
JOINED = (
    "SELECT COUNT(*), SUM(y) FROM e JOIN p ON e.pid = p.pid",
    "SELECT SUM(x), SUM(y) FROM p JOIN e ON p.pid = e.pid WHERE y > x",
    "SELECT city, COUNT(*), AVG(y) FROM e JOIN p ON e.pid = p.pid GROUP BY city",
    "SELECT k, COUNT(*) FROM p, e WHERE p.pid = e.pid AND city = 'x' GROUP BY k",
    "SELECT COUNT(*), SUM(z) FROM i JOIN e ON i.eid = e.eid",
    "SELECT k, SUM(z), COUNT(DISTINCT pid) FROM i JOIN e ON i.eid = e.eid GROUP BY k",
    "SELECT city, SUM(z) FROM i JOIN e ON i.eid = e.eid JOIN p ON e.pid = p.pid GROUP BY city",
    "SELECT COUNT(*) FROM e LEFT JOIN p ON e.pid = p.pid WHERE x IS NULL",
    "SELECT city, SUM(y) FROM e LEFT JOIN p ON e.pid = p.pid AND x > 0 GROUP BY city",
    "SELECT COUNT(z), COUNT(*) FROM e LEFT JOIN i ON e.eid = i.eid AND e.k > 0",
    "SELECT k, SUM(z), COUNT(*) FROM i RIGHT JOIN e ON i.eid = e.eid GROUP BY k",
    "SELECT COUNT(*), SUM(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid WHERE a.k = b.k",
    "SELECT a.k, COUNT(*) FROM e AS a JOIN e AS b ON a.pid = b.pid AND a.y < b.y GROUP BY a.k",
    "SELECT COUNT(*) FROM e AS a JOIN e AS b ON a.eid = b.eid",
    "SELECT COUNT(*), SUM(i.z) FROM i JOIN i AS j ON i.eid = j.eid",
    "SELECT name, COUNT(*), SUM(y) FROM e JOIN pub ON e.k = pub.k GROUP BY name",
    "SELECT name, COUNT(*) FROM e LEFT JOIN pub ON e.k = pub.k GROUP BY name",
    "SELECT SUM(y * w) FROM e JOIN pub ON e.k = pub.k",
    "SELECT tag, COUNT(*), SUM(y) FROM e JOIN tags ON e.k = tags.k GROUP BY tag",
    "SELECT tag, COUNT(DISTINCT pid) FROM e LEFT JOIN tags ON e.k = tags.k GROUP BY tag",
    "SELECT name, tag, COUNT(*) FROM e JOIN pub ON e.k = pub.k JOIN tags ON pub.k = tags.k GROUP BY name, tag",
    "SELECT name, COUNT(*) FROM p CROSS JOIN pub WHERE x > w GROUP BY name",
    "SELECT name, SUM(z) FROM i, e, pub WHERE i.eid = e.eid AND e.k = pub.k GROUP BY name",
    "SELECT tag, SUM(z) FROM tags JOIN e ON tags.k = e.k JOIN i ON i.eid = e.eid GROUP BY tag",
    "SELECT tag, COUNT(*) FROM pub JOIN tags ON tags.k = pub.k JOIN e ON e.k = pub.k GROUP BY tag",
    "SELECT city, COUNT(*) FROM e JOIN p USING (pid) GROUP BY city",
    "SELECT COUNT(*) FROM e JOIN p ON e.pid = p.pid AND e.y = p.x",
    "SELECT COUNT(*) FROM e JOIN p ON e.pid = p.pid OR (e.pid = p.pid AND e.k = 1)",
    "SELECT COUNT(*), COUNT(x), SUM(y) FROM p FULL JOIN e USING (pid)",
    "SELECT city, COUNT(*), SUM(y) FROM e FULL JOIN p ON e.pid = p.pid AND e.y = p.x GROUP BY city",
)
UNIONS = (
    "SELECT COUNT(*), SUM(v) FROM (SELECT pid, x AS v FROM p UNION ALL SELECT pid, y FROM e)",
    (
        "SELECT c, COUNT(*) FROM (SELECT pid, city AS c FROM p UNION ALL "
        "SELECT pid, name FROM e JOIN pub ON e.k = pub.k) GROUP BY c"
    ),
    "SELECT COUNT(DISTINCT pid) FROM (SELECT pid FROM p UNION ALL SELECT pid FROM e WHERE k = 0)",
    "SELECT SUM(v) FROM (SELECT x AS v FROM p UNION ALL SELECT z FROM i)",
    "SELECT SUM(v), COUNT(*) FROM (SELECT z AS v FROM i UNION ALL SELECT z FROM i UNION ALL SELECT y FROM e)",
    "SELECT COUNT(*) FROM (SELECT pid, k FROM e UNION ALL SELECT pid, NULL FROM p) AS a JOIN p ON a.pid = p.pid",
    (
        "SELECT AVG(n) FROM (SELECT pid, CLAMP(COUNT(*), 0, 5) AS n FROM "
        "(SELECT pid FROM p UNION ALL SELECT pid FROM e) GROUP BY pid)"
    ),
)
MARKED = (
    "SELECT COUNT(*) FROM e WHERE pid IN (SELECT pid FROM p WHERE x > 0)",
    "SELECT COUNT(*) FROM e WHERE pid NOT IN (SELECT pid FROM p)",
    "SELECT COUNT(*) FROM e WHERE pid NOT IN (SELECT pid FROM p WHERE city IS NULL)",
    "SELECT COUNT(*) FROM e LEFT JOIN p ON e.pid = p.pid AND x > 0 WHERE p.pid NOT IN (SELECT pid FROM p AS q)",
    "SELECT k, SUM(y) FROM e WHERE EXISTS (SELECT 1 FROM p WHERE p.pid = e.pid AND p.x < e.y) GROUP BY k",
    (
        "SELECT k, COUNT(*) FROM e WHERE NOT EXISTS (SELECT 1 FROM e AS b WHERE b.pid = e.pid AND b.k = e.k "
        "AND b.y > e.y) GROUP BY k"
    ),
    "SELECT COUNT(*) FROM e WHERE EXISTS (SELECT 1 FROM i WHERE i.eid = e.eid AND i.z > 1)",
    "SELECT SUM(z) FROM i WHERE eid IN (SELECT eid FROM e WHERE k = 1)",
    "SELECT COUNT(*) FROM e WHERE k IN (SELECT k FROM tags WHERE tag = 'A')",
    "SELECT COUNT(*) FROM e WHERE k NOT IN (SELECT k FROM tags)",
    "SELECT COUNT(*) FROM e WHERE EXISTS (SELECT 1 FROM tags WHERE tags.k = e.k AND e.y > 0)",
    "SELECT COUNT(*) FROM e WHERE EXISTS (SELECT 1 FROM tags WHERE tags.tag = 'Q')",
    "SELECT COUNT(*) FROM p WHERE pid IN (SELECT pid FROM e GROUP BY pid HAVING COUNT(*) > 1)",
    "SELECT city, COUNT(*) FROM p WHERE (pid IN (SELECT pid FROM e WHERE k = 0)) <> (x > 0) GROUP BY city",
    "SELECT COUNT(*) FILTER (WHERE pid IN (SELECT pid FROM p)), COUNT(*) FROM e",
    "SELECT pid IN (SELECT pid FROM p) AS known, COUNT(*) FROM e GROUP BY known",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM e JOIN i ON i.eid = e.eid WHERE e.pid = p.pid)",
    "SELECT COUNT(*) FROM (SELECT * FROM e WHERE pid IN (SELECT pid FROM p WHERE x > 0)) AS a JOIN p ON a.pid = p.pid",
    "SELECT COUNT(*) FROM e WHERE pid IN (SELECT pid FROM p) OR EXISTS (SELECT 1 FROM i WHERE i.eid = e.eid)",
    "SELECT COUNT(*) FROM p WHERE pid IN (SELECT u FROM (SELECT pid AS u FROM e UNION ALL SELECT pid FROM p AS q))",
    "SELECT k, COUNT(*) FROM e WHERE y > (SELECT AVG(w) FROM pub) GROUP BY k",
)
PER_UNIT = (
    f"SELECT AVG(CLAMP(n, 0, 4)), COUNT(*) {OF_EACH}",
    f"SELECT SUM(CLAMP(s, -3, 5)), SUM(CLAMP(a, -2, 3)) {OF_EACH} WHERE n > 1",
    f"SELECT m, COUNT(*) {OF_EACH} GROUP BY m",
    f"SELECT CASE WHEN n > 2 THEN 'many' ELSE 'few' END AS h, COUNT(*), SUM(m) {OF_EACH} GROUP BY h",
    "SELECT k, COUNT(*), AVG(CLAMP(n, 0, 3)) FROM (SELECT pid, k, COUNT(*) AS n FROM e GROUP BY pid, k) GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT DISTINCT pid, k FROM e)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT pid FROM e)",
    (
        "WITH c AS (SELECT pid, k, COUNT(*) AS n FROM e GROUP BY pid, k) SELECT c.k, COUNT(*) FROM c JOIN c AS d "
        "ON c.pid = d.pid AND c.n < d.n GROUP BY c.k"
    ),
    (
        "WITH c(u, n) AS (SELECT pid, COUNT(*) FROM e GROUP BY pid) SELECT COUNT(*), SUM(CLAMP(n, 0, 3)) FROM "
        "(SELECT * FROM c UNION ALL SELECT * FROM c)"
    ),
    "SELECT n, COUNT(*) FROM (SELECT pid, COUNT(DISTINCT k) AS n FROM e GROUP BY pid) GROUP BY n",
    "SELECT AVG(CLAMP(s, 0, 4)) FROM (SELECT e.pid, SUM(z) AS s FROM i JOIN e ON i.eid = e.eid GROUP BY e.pid)",
    "SELECT SUM(CLAMP(s, 0, 4)) FROM (SELECT eid, SUM(z) AS s FROM i GROUP BY eid) AS a JOIN e ON a.eid = e.eid",
    (
        "SELECT COUNT(*), SUM(CLAMP(n, 0, 3)) FROM p JOIN (SELECT pid, COUNT(*) AS n FROM e GROUP BY pid) AS a "
        "ON p.pid = a.pid"
    ),
    (
        "SELECT city, AVG(CLAMP(n, 0, 3)) FROM p LEFT JOIN (SELECT pid, COUNT(*) AS n FROM e GROUP BY pid) AS a "
        "ON p.pid = a.pid GROUP BY city"
    ),
    (
        "SELECT AVG(CLAMP(c, 0, 3)) FROM (SELECT pid, COUNT(*) AS c FROM (SELECT pid, k FROM e GROUP BY pid, k) "
        "GROUP BY pid)"
    ),
    (
        "SELECT AVG(CLAMP(n, 0, 3)) FROM (SELECT pid, COUNT(*) AS n FROM e WHERE pid IN (SELECT pid FROM p) "
        "GROUP BY pid HAVING COUNT(*) > 1)"
    ),
    (
        "SELECT w, SUM(CLAMP(s, -2, 2)) FROM (SELECT pid, w, SUM(y) AS s FROM e JOIN pub ON e.k = pub.k "
        "GROUP BY pid, w) GROUP BY w"
    ),
)
OPTIONS = (
    f"{CLAUSE} (max_rows_contributed = 2) COUNT(*), SUM(y) FROM e",
    f"{CLAUSE} (max_rows_contributed = 2) k, AVG(y), COUNT(*) {OF_E}",
    (
        f"{CLAUSE} (max_groups_contributed = 2) k, COUNT(*, contribution_bounds_per_group => (0, 2)), "
        f"SUM(y, contribution_bounds_per_group => (-3, 4)) {OF_E}"
    ),
    (
        f"{CLAUSE} (max_groups_contributed = 1) k, AVG(y, contribution_bounds_per_group => (-1, 2)), "
        f"COUNT(*, contribution_bounds_per_group => (1, 3)) {OF_E}"
    ),
    (
        f"{CLAUSE} (max_groups_contributed = 2, max_rows_contributed = 3) k, AVG(y), AVG(y > 0), COUNT(DISTINCT pid) "
        f"{OF_E}"
    ),
    (
        f"{CLAUSE} (max_groups_contributed = 2, max_rows_contributed = 4) k, COUNT(*), AVG(y), "
        f"SUM(y, contribution_bounds_per_row => (0, 2)) {OF_E}"
    ),
    (
        f"{CLAUSE} (min_privacy_units_per_group = 2, max_groups_contributed = 2) city, COUNT(*), SUM(x) FROM p "
        "GROUP BY city"
    ),
    (
        f"{CLAUSE} (group_selection_epsilon = 0.25, max_groups_contributed = 2) city, COUNT(*), AVG(x) FROM p "
        "GROUP BY city"
    ),
    f"{CLAUSE} (group_selection_strategy = LAPLACE_THRESHOLD, max_rows_contributed = 3) k, COUNT(*) {OF_E}",
    f"{CLAUSE} (group_selection_strategy = GAUSSIAN_THRESHOLD, max_rows_contributed = 3) k, SUM(y) {OF_E}",
    f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC, max_rows_contributed = 3) k, COUNT(*), SUM(y) {OF_E}",
    (
        f"{CLAUSE} (group_selection_strategy = TRUNCATED_GEOMETRIC, group_selection_epsilon = 0.5, "
        f"min_privacy_units_per_group = 3, max_groups_contributed = 2) k, COUNT(DISTINCT pid) {OF_E}"
    ),
    f"{CLAUSE} (group_selection_strategy = PUBLIC_GROUPS, max_rows_contributed = 2) k, COUNT(*) {OF_E}",
    (
        f"{CLAUSE} (privacy_unit_column = pid, max_rows_contributed = 3) k, COUNT(*, epsilon => 0.25), "
        f"AVG(y, epsilon => 0.25), COUNT(DISTINCT pid, epsilon => 0.125), SUM(y) {OF_E}"
    ),
    (
        f"{CLAUSE} (max_groups_contributed = 2) tag, AVG(y, contribution_bounds_per_group => (0, 1)) FROM e JOIN tags "
        "ON e.k = tags.k GROUP BY tag"
    ),
    (
        f"{CLAUSE} (max_rows_contributed = 3) city, AVG(z), SUM(z, contribution_bounds_per_group => (-1, 1)) FROM i "
        "JOIN e ON i.eid = e.eid JOIN p ON e.pid = p.pid GROUP BY city"
    ),
)
ROWS_AS_UNITS = (
    "SELECT COUNT(*), SUM(x) FROM t",
    "SELECT tag, COUNT(*), SUM(x) FROM t JOIN tags ON t.k = tags.k GROUP BY tag",
    "SELECT COUNT(*), AVG(x) FROM t LEFT JOIN tags ON t.k = tags.k",
    "SELECT name, COUNT(*) FROM t CROSS JOIN pub GROUP BY name",
    "SELECT g, name, COUNT(*), SUM(x) FROM t CROSS JOIN pub GROUP BY g, name",
    "SELECT name, SUM(x) FROM t LEFT JOIN pub ON t.k = pub.k GROUP BY name",
    "SELECT g, COUNT(*) FROM (SELECT g, x FROM t UNION ALL SELECT g, x FROM t) GROUP BY g",
    "SELECT g, COUNT(*), SUM(x) FROM (SELECT g, x FROM t UNION ALL SELECT g, x FROM v) GROUP BY g",
    (
        "SELECT g, SUM(x) FROM (SELECT g, x, k FROM t WHERE x > 0 UNION ALL SELECT g, -x, k FROM t UNION ALL "
        "SELECT NULL, x, k FROM v) AS a JOIN tags ON a.k = tags.k GROUP BY g"
    ),
    "SELECT COUNT(*) FROM pub JOIN tags ON tags.k = pub.k JOIN t ON t.k = pub.k",
    "SELECT DISTINCT g FROM t JOIN tags ON t.k = tags.k",
    "SELECT COUNT(*) FROM t WHERE k IN (SELECT k FROM tags WHERE tag = 'A')",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM pub WHERE pub.k = t.k AND pub.w < t.x)",
    f"{CLAUSE} (min_privacy_units_per_group = 2) g, COUNT(*) FROM t JOIN tags ON t.k = tags.k GROUP BY g",
    f"{CLAUSE} (max_rows_contributed = 1) g, AVG(x), COUNT(*) FROM t CROSS JOIN pub GROUP BY g",
)
HOWS: tuple[dict[str, Any], ...] = (
    {}, {}, {"mechanism": "gaussian"}, {"strategy": "split"}, {"epsilon": 20}, {"epsilon": 0.1},
)  # fmt: skip


def questions() -> list[Question]:
    """Every query with some of the limits and ways: each meets others of them."""
    found = []
    for group in (PLAIN, JOINED, UNIONS, MARKED, PER_UNIT):
        for place, sql in enumerate(group):
            flavour = FLAVOURS[place % len(FLAVOURS)]
            found.append(Question(sql, EVERY_LIMIT[place % 5], HOWS[place % 6], INTEGERS))
            found.append(Question(sql, EVERY_LIMIT[(place * 3 + 1) % 8], HOWS[(place + 1) % 6], flavour))
    for place, sql in enumerate((*JOINED[::2], *UNIONS[::2], *MARKED[::2], *PER_UNIT[::2])):
        found.append(Question(sql, EVERY_LIMIT[place % 5], {}, FLAVOURS[place % 8], enforced=True))
    found += [Question(sql, {}, flavour=FLAVOURS[place % 8]) for place, sql in enumerate(OPTIONS)]
    found += [Question(sql, R4G3C2) for sql in OPTIONS]
    found += [Question(sql, {}, HOWS[place % 6]) for place, sql in enumerate(ROWS_AS_UNITS)]
    once = [sql for sql in PLAIN if "FROM p" in sql]
    return found + [Question(sql, {}, flavour=FLAVOURS[place % 8]) for place, sql in enumerate(once)]


@lru_cache
def databases_of(flavour: Flavour, seed: int, count: int) -> tuple[Data, ...]:
    """The same databases for every question about one flavour: full ones first."""
    rng = random.Random(seed)
    made = []
    for place in range(count):
        data = database(rng, flavour, (4, 3, 0, 2, 4, 1)[place % 6])
        made.append(data | {"t": table_of_rows(rng, 4), "v": table_of_rows(rng, 3)})
    return tuple(made)


@lru_cache
def executors_of(*_place: Any) -> dict[Any, PandasExecutor]:
    """What is remembered of the databases of a world."""
    return {}


def asking_of(asked: Question, relation: str) -> Asking:
    kept = executors_of(*asked.place)
    return Asking(asked.world, asked.sql, relation, dict(asked.how), kept)


def check_question(asked: Question, seed: int, databases: int, changes: int = 2) -> None:
    """All that must hold of a question, over some databases, under both relations."""
    rng = random.Random(seed)
    unbounded, bounded = asking_of(asked, U), asking_of(asked, B)
    if bounded.made.exact == unbounded.made.exact:
        bounded.tables = unbounded.tables
    for data in databases_of(asked.flavour, seed, databases):
        for asking in (unbounded, bounded):
            if asking.by_row:
                check_rows(asking, data, rng, changes)
            else:
                check_neighbours(asking, data, rng, changes)
        if not unbounded.by_row:
            check_apart(unbounded, data)
        check_order(unbounded, data, rng)


def check_statements(statement: Callable[[random.Random], str], seed: int, questions: int, databases: int) -> None:
    """All that must hold of so many random statements, with two limits of rows."""
    rng = random.Random(seed)
    for _ in range(questions):
        check_question(Question(statement(rng), rng.choice([R2, R3])), seed, databases, changes=1)


# Checks by name, which some planted lie fails each

SEED = 20_260_301


def people_stay_apart(*asked: Question) -> Callable[[], None]:
    """A check of these questions, out of nothing that is remembered."""

    def check() -> None:
        executors_of.cache_clear()
        for each in asked:
            check_question(each, SEED, databases=5)
        executors_of.cache_clear()

    return check


def check_every_row_of_a_small_database(asked: Sequence[Question], rows: Data) -> None:
    """One database in place of random ones."""
    for each in asked:
        for relation in (U, B):
            asking = Asking(each.world, each.sql, relation, dict(each.how))
            data = each.world.data(**rows)
            check_apart(asking, data)
            check_neighbours(asking, data, random.Random(SEED))
            check_order(asking, data, random.Random(SEED))


def check_keys_that_lead_away() -> None:
    """The same key in the hands of two units, in e and, through it, in i."""
    rows: dict[str, tuple[Row, ...]] = {
        "e": ((7, 2, 3, 1), (7, 1, 1, 0), (8, 2, -2, 1), (9, 1, 1, 1), (None, 1, 2, 2)),
        "i": ((7, 1.0), (8, 2.0), (8, 0.5), (9, 1.5)),
        "p": ((1, "x", 3.0), (2, "y", -1.0)),
    }
    sqls = (
        "SELECT COUNT(*), SUM(z) FROM i",
        "SELECT COUNT(*), SUM(a.y) FROM e AS a JOIN e AS b ON a.eid = b.eid",
        "SELECT COUNT(*) FROM e WHERE EXISTS (SELECT 1 FROM e AS b WHERE b.eid = e.eid AND b.y < e.y)",
        "SELECT COUNT(*), SUM(CLAMP(s, -2, 3)) FROM (SELECT eid, SUM(y) AS s FROM e GROUP BY eid)",
    )
    check_every_row_of_a_small_database([Question(sql, R2) for sql in sqls], rows)
    check_every_row_of_a_small_database([Question(sql, R2, enforced=True) for sql in sqls], _beyond_bounds(rows))


def _beyond_bounds(rows: Data) -> Data:
    """The keys so large that all of them are clipped."""
    return {
        name: tuple((None if row[0] is None else row[0] + 90, *row[1:]) for row in held) if name in ("e", "i") else held
        for name, held in rows.items()
    }


def apart(world: World, sql: str, relation: str = U, **rows: Any) -> Asking:
    """Units are counted apart, in this database and in any order of its rows."""
    asking = Asking(world, sql, relation)
    data = world.data(**rows)
    check_apart(asking, data)
    for seed in range(3):
        check_order(asking, data, random.Random(seed))
    return asking


BOUNDED_KEYS = people().with_tables(
    {},
    e={"bounds": {"eid": (0, 5), "y": (-2, 3), "k": (0, 3)}},
    i={"bounds": {"eid": (0, 5), "z": (0, 2)}},
)
KEYED = {
    "plain": people(),
    "bounds": BOUNDED_KEYS,
    "not null": people().with_tables({}, e={"nullable": {"eid": False}}, i={"nullable": {"eid": False}}),
    "unit": people().with_tables({}, p={"bounds": {"pid": (0, 5), "x": (-1, 3)}}),
}


def check_doubled_keys(*names: str) -> None:
    """A key that is declared unique may be there twice in one person's rows; then another way of joining must compare
    the same things for everybody else."""
    e = ((7, 2, 1, 1), (8, 2, 2, 1), (None, 2, 2, 2), (0, 2, 1, 3), (1, 1, 0, 0), (1, 1, 0, 0))
    i = ((8, 1.0), (None, 1.0), (0, 2.0))
    other, p = ((1, 7, 1, 1), (2, 1, 1, 1), (3, 5, 1, 1)), ((7, "x", 1.0), (1, "x", 1.0), (1, "y", 2.0))
    for name in names or KEYED:
        world = KEYED[name].limited(max_rows=9)
        for how in ("JOIN", "LEFT JOIN"):
            apart(world, f"SELECT COUNT(*), SUM(y) FROM i {how} e ON i.eid = e.eid", e=e, i=i)
            apart(world, f"SELECT COUNT(y) FROM i {how} e ON i.eid = e.eid AND y > 0", e=e, i=i)
            apart(world, f"SELECT COUNT(*), SUM(x) FROM e {how} p ON e.pid = p.pid", e=other, p=p)
            apart(world, f"SELECT COUNT(x) FROM e {how} p ON e.pid = p.pid AND x > 0", e=other, p=p)


def check_lists() -> None:
    """NOT IN over people's rows: a NULL among them is nobody's, and who else is there decides nothing."""
    world = people(FLAVOURS[1]).limited(max_rows=3)
    rows: dict[str, Any] = {
        "p": ((None, "x", 1.0), ("a", "x", 1.0)),
        "e": (("k1", "a", 1, 1), ("k2", "b", 1, 1), ("k3", None, 1, 1)),
    }
    for sql, expected in (
        ("SELECT COUNT(*) FROM e WHERE pid NOT IN (SELECT pid FROM p)", 1),
        ("SELECT COUNT(*) FROM e WHERE pid IN (SELECT pid FROM p)", 1),
        ("SELECT COUNT(*) FROM e WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.pid = e.pid AND x > 5)", 2),
    ):
        found = apart(world, sql, **rows).exact(world.data(**rows)).cells
        assert found == {(): (expected,)}, f"{sql}: {found}"
    missing = "SELECT COUNT(*) FROM e LEFT JOIN p ON e.pid = p.pid WHERE p.pid"
    for sql in (
        f"{missing} NOT IN (SELECT pid FROM p AS q)",
        f"{missing} NOT IN (SELECT pid FROM e AS q WHERE y > 0)",
        f"{missing} NOT IN (SELECT pid FROM e AS q GROUP BY pid)",
        f"{missing} IN (SELECT pid FROM p AS q) IS NULL",
        f"{missing} NOT IN (SELECT q.pid FROM p AS q LEFT JOIN e ON q.pid = e.pid)",
        f"{missing} IS NULL OR NOT EXISTS (SELECT 1 FROM p AS q WHERE q.pid = p.pid)",
    ):
        apart(world, sql, **rows)


def check_chances(asked: Sequence[Question] | None = None) -> None:
    """A group of one unit is shown with a chance of at most delta, for all those together that a unit can open or
    close."""
    for each in asked if asked is not None else [q for q in questions() if "GROUP BY" in q.sql or "DISTINCT" in q.sql]:
        for relation in (U, B):
            made = planned(each.world, each.sql, relation, **each.how)
            most = made.analysis.bounds.units.groups * (2 if relation == B else 1)
            if by_weights(made):  # heights are checked where they are made, for every number of groups
                assert made.selection.groups >= most, f"{each} | {relation}"
                continue
            if by_chance(made):
                chance = by_chance(made)[0].law.probability(1)
            elif height_of(made):
                chance = Fraction(_own_shown(made))
            else:
                assert made.exact.every_cell or not made.exact.keys, f"{each}: groups are shown as they come"
                continue
            assert chance * most <= made.cost.delta * (1 + Fraction(1, 10**9)), f"{each} | {relation}: {float(chance)}"
            assert made.lattice.groups_of_a_unit >= most, f"{each} | {relation}: {made.lattice.groups_of_a_unit} groups"


def check_fresh_keys() -> None:
    """Whose rows are left out is drawn anew for each answer."""
    table = dpsql.Table(pd.DataFrame({"pid": [1] * 8, "x": range(8)}), unit="pid", max_rows=1, bounds={"x": (0, 7)})
    session = dpsql.Session({"q": table}, budget=dpsql.Budget(10**7))
    found = {round(session.query("SELECT SUM(x) FROM q", epsilon=10**5, fresh=True).item()) for _ in range(40)}
    assert len(found) > 2, "one row of eight is always the one that counts"


def check_public_promises() -> None:
    """What is declared of a public table's keys is checked by value, NULLs that are filled in among them."""
    frame = pd.DataFrame({"k": series(["", "", None], "str"), "n": pd.Series([0, 0, None], dtype="Int64")})
    for name in ("k", "n"):
        resolved({"m": dpsql.Table(frame, public=True, max_matches={name: 2})})
        for said in (
            {"max_matches": {name: 1}},
            {"unique": [name]},
            {"max_matches": {name: 2}, "nullable": {name: False}},
        ):
            try:
                resolved({"m": dpsql.Table(frame, public=True, **said)})
            except InvalidSchema:
                continue
            raise AssertionError(f"believed: {said}")


# Random questions


@dataclass(frozen=True)
class Item:
    """Something to stand after FROM: its columns by what they are good for."""

    text: str
    alias: str
    numbers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    unit: str = ""
    eid: str = ""

    def of(self, name: str) -> str:
        return f"{self.alias}.{name}"


class Questions:
    """A source of random questions about people; some are refused, and none may fail otherwise."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases = 0
        self.by_row = False
        """The tables are t and v, of which each row is a unit."""

    def alias(self) -> str:
        self.aliases += 1
        return f"a{self.aliases}"

    def question(self) -> Question:
        rng = self.rng
        self.aliases, self.by_row = 0, rng.random() < 0.25
        text, items = self.source(0)
        numbers = [item.of(name) for item in items for name in item.numbers]
        keys = [item.of(name) for item in items for name in item.keys]
        units = [item.of(item.unit) for item in items if item.unit]
        wanted = [self.aggregate(numbers, keys, units) for _ in range(rng.choice([1, 1, 2, 3]))]
        where = f" WHERE {self.condition(items, 0)}" if rng.random() < 0.5 else ""
        by = [self.key(numbers, keys) for _ in range(rng.choice([0, 1, 1, 2]))]
        select = "SELECT"
        if rng.random() < 0.25:
            said = [f"max_rows_contributed = {rng.randint(1, 4)}", f"max_groups_contributed = {rng.randint(1, 3)}"]
            said = rng.sample(said, rng.randint(1, 2))
            if by and rng.random() < 0.4:
                strategy = rng.choice(["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"])
                said += [
                    f"group_selection_strategy = {strategy}",
                    *rng.sample(
                        ["group_selection_epsilon = 0.25", "min_privacy_units_per_group = 2"], rng.randint(0, 2)
                    ),
                ]
            select = f"{CLAUSE} ({', '.join(said)})"
        sql = f"{select} {', '.join([*by, *wanted])} FROM {text}{where}{' GROUP BY ' if by else ''}{', '.join(by)}"
        return Question(sql, rng.choice(EVERY_LIMIT), rng.choice(HOWS), rng.choice(FLAVOURS), rng.random() < 0.4)

    def source(self, depth: int) -> tuple[str, list[Item]]:
        rng = self.rng
        items = [self.item(depth)]
        text = items[0].text
        while rng.random() < 0.4 and len(items) < 4:
            left, right = rng.choice(items), self.item(depth, joined=True)
            if right.text.startswith(("pub", "tags")) and rng.random() < 0.2:
                text = f"{text} CROSS JOIN {right.text}"
                items.append(right)
                continue
            how = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
            on = self.on(left, right)
            if on is None:
                continue
            text = f"{text} {how} {right.text} ON {on}"
            items.append(right)
        return text, items

    def on(self, left: Item, right: Item) -> str | None:
        ways = []
        if left.unit and right.unit:
            ways.append(f"{left.of(left.unit)} = {right.of(right.unit)}")
        if left.eid and right.eid:
            ways.append(f"{left.of(left.eid)} = {right.of(right.eid)}")
        if "k" in left.keys and right.text.startswith(("pub", "tags")):
            ways.append(f"{left.of('k')} = {right.of('k')}")
        if not ways:
            return None
        more = f" AND {right.of(self.rng.choice(right.numbers))} > 0" if right.numbers else ""
        return self.rng.choice(ways) + (more if self.rng.random() < 0.3 else "")

    def item(self, depth: int, *, joined: bool = False) -> Item:
        rng, alias = self.rng, self.alias()
        plain = [
            Item(f"p AS {alias}", alias, ("x",), ("city",), "pid"),
            Item(f"e AS {alias}", alias, ("y", "k"), ("k", "y"), "pid", "eid"),
            Item(f"i AS {alias}", alias, ("z",), (), "", "eid"),
        ]
        if self.by_row:
            plain = [Item(f"{name} AS {alias}", alias, ("x", "k"), ("k", "g")) for name in "tv"]
        if joined and rng.random() < (0.8 if self.by_row else 0.35):
            public = [Item(f"pub AS {alias}", alias, ("w",), ("name",)), Item(f"tags AS {alias}", alias, (), ("tag",))]
            return rng.choice(public)
        if depth > 1 or rng.random() < 0.6:
            return rng.choice(plain)
        makers = [self.union, self.filtered] if self.by_row else [self.per_unit, self.union, self.filtered]
        return rng.choice(makers)(alias, depth + 1)

    def per_unit(self, alias: str, depth: int) -> Item:
        text, items = self.source(depth)
        with_unit = [item for item in items if item.unit]
        if not with_unit:
            return Item(f"e AS {alias}", alias, ("y", "k"), ("k", "y"), "pid", "eid")
        unit = with_unit[0].of(with_unit[0].unit)
        numbers = [item.of(name) for item in items for name in item.numbers] or ["1"]
        keys = [item.of(name) for item in items for name in item.keys]
        also = f", {self.rng.choice(keys)}" if keys and self.rng.random() < 0.3 else ""
        made = self.rng.choice(["SUM({0})", "AVG({0})", "MIN({0})", "MAX({0})", "COUNT({0})", "COUNT(DISTINCT {0})"])
        having = " HAVING COUNT(*) > 1" if self.rng.random() < 0.2 else ""
        text = f"SELECT {unit} AS u, COUNT(*) AS n, {made.format(self.rng.choice(numbers))} AS m FROM {text}"
        return Item(f"({text} GROUP BY {unit}{also}{having}) AS {alias}", alias, ("n", "m"), ("n",), "u")

    def union(self, alias: str, depth: int) -> Item:
        parts = []
        for _ in range(self.rng.choice([2, 2, 3])):
            text, items = self.source(depth)
            units = [item.of(item.unit) for item in items if item.unit] or ["NULL"]
            numbers = [item.of(name) for item in items for name in item.numbers] or ["1"]
            value = f"CLAMP({self.rng.choice(numbers)}, -3, 5)"
            parts.append(f"SELECT {self.rng.choice(units)} AS u, {value} AS v FROM {text}")
        return Item(f"({' UNION ALL '.join(parts)}) AS {alias}", alias, ("v",), (), "u")

    def filtered(self, alias: str, depth: int) -> Item:
        inner = replace(self.item(depth), alias=self.alias())
        name, columns = self.rng.choice([("e", ("y", "k")), ("p", ("x",)), ("i", ("z",))])
        if self.by_row:
            own = Item(f"t AS {inner.alias}", inner.alias, ("x", "k"), ("k", "g"))
            return replace(
                own, text=f"(SELECT * FROM t AS {own.alias} WHERE {self.condition([own], 1)}) AS {alias}", alias=alias
            )
        own = Item(f"{name} AS {inner.alias}", inner.alias, columns, (), "" if name == "i" else "pid",
                   "" if name == "p" else "eid")  # fmt: skip
        text = f"(SELECT * FROM {own.text} WHERE {self.condition([own], depth)}) AS {alias}"
        keys = {"e": ("k",), "p": ("city",), "i": ()}[name]
        return replace(own, text=text, alias=alias, keys=keys)

    def condition(self, items: list[Item], depth: int) -> str:
        rng = self.rng
        numbers = [item.of(name) for item in items for name in item.numbers] or ["1"]
        kind = rng.random()
        if kind < 0.15 and depth < 2:
            one, other = self.condition(items, depth + 1), self.condition(items, depth + 1)
            return f"({one} {rng.choice(['AND', 'OR'])} {other})"
        if kind < 0.6 or depth > 1:
            compared = rng.choice(["> 0", "<= 1", "IS NULL", "IS NOT NULL", "<> 2", f"< {rng.choice(numbers)}"])
            return f"{rng.choice(numbers)} {compared}"
        if self.by_row or kind < 0.65:
            public, column = rng.choice([("pub", "w"), ("tags", "k")])
            asked, more = rng.choice(numbers), rng.choice(["", f" AND {column} > {rng.choice(numbers)}"])
            word = rng.choice(["", "NOT "])
            if more or rng.random() < 0.5:
                return f"{word}EXISTS (SELECT 1 FROM {public} AS q WHERE q.k = {asked}{more})"
            return f"{asked} {word}IN (SELECT {column} FROM {public} AS q)"
        text, inner = self.source(2)
        units = [item.of(item.unit) for item in items if item.unit]
        own = [item.of(item.unit) for item in inner if item.unit]
        where = f" WHERE {self.condition(inner, 2)}" if rng.random() < 0.5 else ""
        if units and own and rng.random() < 0.6:
            return f"{rng.choice(units)} {rng.choice(['IN', 'NOT IN'])} (SELECT {rng.choice(own)} FROM {text}{where})"
        pairs = [
            f"{one} = {other}"
            for one, other in [
                *((a, b) for a in units for b in own),
                *((a.of(a.eid), b.of(b.eid)) for a in items for b in inner if a.eid and b.eid),
            ]
        ] or ["1 = 1"]
        theirs = [item.of(name) for item in inner for name in item.numbers] or ["1"]
        more = f" AND {rng.choice(theirs)} < {rng.choice(numbers)}" if rng.random() < 0.5 else ""
        return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {text} WHERE {rng.choice(pairs)}{more})"

    def key(self, numbers: list[str], keys: list[str]) -> str:
        rng = self.rng
        if keys and rng.random() < 0.8:
            return rng.choice(keys)
        return f"CLAMP({rng.choice(numbers or ['1'])}, 0, 2) > 1"

    def aggregate(self, numbers: list[str], keys: list[str], units: list[str]) -> str:
        rng = self.rng
        if units and rng.random() < 0.2:
            return f"COUNT(DISTINCT {rng.choice(units)})"
        what = f"CLAMP({rng.choice(numbers)}, {rng.choice(['-2, 3', '0, 4', '1, 2'])})" if numbers else "1"
        return rng.choice([
            "COUNT(*)", f"COUNT({rng.choice(numbers + keys or ['*'])})", f"SUM({what})", f"SUM({what})", f"AVG({what})",
            f"SUM({what}) FILTER (WHERE {what} > 0)",
        ])  # fmt: skip
