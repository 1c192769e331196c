"""Several keys over the same public rows: the groups are the combinations in these rows, not all combinations.

Proof that the combinations are public: like the values of each key, they are computed from public tables, the text and
the declarations only.

Proof that the combinations are complete: a row that reaches the aggregate satisfies every inner join and filter below
it. So its public part satisfies their conditions on public tables, and is one of the public rows that do. All keys take
their values from that row. A row with other values would be in no group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from dpsql.plan.domains import ascending, cells_of, vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Column, Expr, Literal, call, conjuncts, rebuild
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, RowLimit, Source, Windows, exprs_of, scans_of
from dpsql.plan.prior_releases import reads_earlier
from dpsql.plan.query import CorrelatedKey, GroupKey
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.private_rows import Rows, Step, equality, nullable, places_of
from dpsql.sql.bind.public_keys import (
    by_equality,
    connected,
    equal_to_public,
    fulfilled_marks,
    is_over,
    public_parts,
    public_rows,
    public_table,
    rows_listed,
    weakened,
    where_listed,
)
from dpsql.sql.names.catalog import PublicValues

Row = tuple[Key, ...]


@dataclass(frozen=True)
class _PublicKey:
    """A key by position, and its expression over public columns in every row that reaches the aggregate."""

    place: int
    expr: Expr


@dataclass(frozen=True)
class OuterTable:
    """Public rows on the right of an outer join: each joined row has one of them, or NULL in all their columns."""

    rows: Rows
    on: tuple[Expr, ...]
    present: Column | None

    @property
    def names(self) -> frozenset[str]:
        """Return the places of its columns, including the match mark."""
        return self.rows.names | (frozenset() if self.present is None else {self.present.table})

    @property
    def read(self) -> frozenset[str]:
        """Return the places of the left side that ON reads."""
        return frozenset[str]().union(*map(places_of, self.on)) - self.rows.names

    @property
    def follows(self) -> bool:
        """Return whether NULLs on the left have no match, because an equality with a column is not TRUE for them."""
        pairs = [equality(term) for term in self.on]
        return any(isinstance(side, Column) for pair in pairs for side in pair or () if places_of(side) <= self.read)

    @property
    def step(self) -> Step:
        return Step(self.rows, "left", self.on, None, self.present)


def keys_together(keys: Sequence[GroupKey], source: Source, values: PublicValues | None) -> tuple[GroupKey, ...]:
    """Return the keys; those over the same public rows get the combinations in these rows."""
    changed = list(keys)
    if values is not None and any(scan.table.public for scan in scans_of(source)):
        exprs, source = _below_units([key.expr for key in keys], source)
        for number, (members, rows) in enumerate(_Tables(source, values).together(keys, exprs)):
            for member, key in held_in_rows([each.place for each in members], rows, keys, number):
                changed[member] = key
        for number, (places, listed) in enumerate(_in_lists(changed, exprs, source, values), len(keys)):
            for member, key in held_in_rows(places, listed, changed, number):
                changed[member] = key
    return tuple(changed)


def _in_lists(
    keys: Sequence[GroupKey], exprs: Sequence[Expr], source: Source, values: PublicValues
) -> Iterator[tuple[list[int], Sequence[Row]]]:
    """Yield the keys that IN or EXISTS puts in one list of public rows, and the rows of that list."""
    for mark in fulfilled_marks(source):
        apart = [at for at, key in enumerate(keys) if key.values is not None and not (key.shown or key.together)]
        places = [at for at in apart if any(one == exprs[at] for one, _ in mark.keys)]
        where = where_listed([exprs[place] for place in places], mark) if len(places) > 1 else None
        rows = None if where is None else rows_listed(mark, values)
        if where is not None and rows is not None:
            yield places, [tuple(row[at] for at in where) for row in rows]


def _below_units(exprs: Sequence[Expr], source: Source) -> tuple[list[Expr], Source]:
    """Return the key expressions over the rows below groups per unit, and these rows under the groups' conditions.

    The keys of a group are the keys of each of its rows.
    """
    terms: list[Expr] = []
    below = source
    while isinstance(below, Filter | PerUnit):
        if isinstance(below, Filter):
            terms += conjuncts(below.predicate)
            below = below.input
            continue
        made: dict[Expr, Expr] = dict(zip(below.columns, below.keys, strict=False))
        exprs, terms = [rebuild(each, made) for each in exprs], [rebuild(each, made) for each in terms]
        source = below = below.input
        source = reduce(Filter, terms, source)
    return [*exprs], source


class _Tables:
    """The public tables with one row for every row, those with one or none, and the conditions that hold."""

    def __init__(self, source: Source, values: PublicValues) -> None:
        self.public, terms = public_parts(source)
        self.values = values
        self.terms = [*terms, *_between_public(terms, frozenset(self.public))]
        self.outer_tables = list(outer_tables(source))
        self.places = frozenset(self.public).union(*(each.names for each in self.outer_tables))

    def together(
        self, keys: Sequence[GroupKey], exprs: Sequence[Expr]
    ) -> Iterator[tuple[list[_PublicKey], tuple[Row, ...]]]:
        """Yield the keys, with these expressions, that read the same rows, and those rows."""
        public = [place for place, key in enumerate(keys) if key.values is not None and key.shown is None]
        over = [each for place in public if (each := self._over(place, exprs[place])) is not None]
        yield from self._rows_of(over, self._connected)

    def _over(self, place: int, expr: Expr) -> _PublicKey | None:
        if is_over(expr, self.places):
            return _PublicKey(place, expr)
        equal = by_equality(expr, self.terms, frozenset(self.public))
        if equal is None or not is_over(equal[0], frozenset(self.public)):
            return None
        self.terms += [term for term in equal[1] if term not in self.terms]
        return _PublicKey(place, equal[0])

    def _connected(self, asked: frozenset[str]) -> frozenset[str]:
        """Return the places reachable by equalities, and by outer joins whose ON reads public tables only."""
        for each in reversed(self.outer_tables):
            if each.names & asked:
                asked |= each.names | (each.read if each.read <= self.places else frozenset())
        return asked | connected(asked & self.public.keys(), self.terms, frozenset(self.public))

    def _rows_of(
        self, over: Sequence[_PublicKey], reach: Callable[[frozenset[str]], frozenset[str]]
    ) -> Iterator[tuple[list[_PublicKey], tuple[Row, ...]]]:
        """Yield the keys of tables that `reach` connects, or the keys of one table if the join is impossible or too
        large."""
        for members, places in _components(over, reach):
            if len(members) > 1:
                rows = self._rows(places, [each.expr for each in members])
                if rows is not None:
                    yield members, rows
                elif reach != self._alone:
                    yield from self._rows_of(members, self._alone)

    def _alone(self, asked: frozenset[str]) -> frozenset[str]:
        """Return the places of one table."""
        return asked.union(*(each.names for each in self.outer_tables if each.names & asked))

    def _rows(self, places: frozenset[str], exprs: Sequence[Expr]) -> tuple[Row, ...] | None:
        """Return the rows of expressions over public columns at these places, or None if unavailable."""
        beside = [each for each in self.outer_tables if each.names & places]
        if beside and not places & self.public.keys():
            return self._rows_or_none(beside[0], beside[1:], exprs)
        if not all(each.read <= places for each in beside):
            return None
        source = public_rows(places, self.public, self.terms, [each.step for each in beside])
        return None if source is None else self.values.together(source, exprs)

    def _rows_or_none(
        self, first: OuterTable, others: Sequence[OuterTable], exprs: Sequence[Expr]
    ) -> tuple[Row, ...] | None:
        """Return the rows of a table right of an outer join, joined with `others`, and the row of NULLs, as far as
        conditions allow."""
        names = first.names.union(*(each.names for each in others))
        columns: dict[Expr, Expr] = {null: column for column, null in nullable(first.rows.source).items()}
        if first.present is not None:
            columns[first.present] = Literal(value=True, type=Type.BOOLEAN)
        if not all(each.read <= names and each.follows for each in others):
            return None
        steps = [replace(each, on=tuple(rebuild(term, columns) for term in each.on)).step for each in others]
        weaker = [weakened(term, names, places_of) for term in self.terms]
        terms = [term for term in weaker if term is not None]
        public = dict.fromkeys(first.rows.names, first.rows)
        source = public_rows(names, public, [rebuild(each, columns) for each in terms], steps)
        rows = None if source is None else self.values.together(source, [rebuild(each, columns) for each in exprs])
        if rows is None or not all(map(of_nulls, terms)):
            return rows
        return (*rows, tuple(map(of_nulls, exprs)))


def of_nulls(expr: Expr) -> Key:
    """Return the value of an expression whose columns are all NULL."""
    with np.errstate(all="ignore"):
        return cells_of(evaluate(expr, lambda column: vector_of([None], column.type), 1), expr.type)[0]


def outer_tables(source: Source) -> Iterator[OuterTable]:
    """Yield the public tables right of outer joins: every row has a row of them, or NULLs."""
    if isinstance(source, Filter | Mark | RowLimit | Windows):
        yield from outer_tables(source.input)
    if isinstance(source, Join):
        yield from outer_tables(source.left)
        if not source.outer:
            yield from outer_tables(source.right)
        elif not any(map(reads_earlier, exprs_of(source))) and (table := public_table(source.right)) is not None:
            on = (call(FUNCTIONS["eq"], left, right) for left, right in source.keys)
            yield OuterTable(table, tuple(each for each in on if each is not None), source.present)


def _between_public(terms: list[Expr], public: frozenset[str]) -> Iterator[Expr]:
    """Yield equalities between public columns that follow from equalities with the same private columns."""
    same = equal_to_public(terms, public)
    for term in terms:
        over = rebuild(term, same)
        pair = equality(over)
        if over != term and pair is not None and pair[0] != pair[1] and all(is_over(each, public) for each in pair):
            yield over


def _components(
    over: Sequence[_PublicKey], reach: Callable[[frozenset[str]], frozenset[str]]
) -> list[tuple[list[_PublicKey], frozenset[str]]]:
    """Group the keys whose places overlap, with the union of these places."""
    components: list[tuple[list[_PublicKey], frozenset[str]]] = []
    for each in over:
        members, places = [each], reach(places_of(each.expr))
        for other in [one for one in components if one[1] & places]:
            members, places = [*other[0], *members], places | other[1]
            components.remove(other)
        components.append((members, places))
    return components


def held_in_rows(
    members: Sequence[int], found: Sequence[Row], keys: Sequence[GroupKey], number: int
) -> Iterator[tuple[int, GroupKey]]:
    """Yield the keys at some positions with the rows that combine their values, or nothing if all combinations occur.
    `found` may repeat rows."""
    rows = _listed(found, [keys[place] for place in members])
    if len(rows) == math.prod(len(keys[place].values or ()) for place in members):
        return
    lists = [ascending({row[at] for row in rows}) for at in range(len(members))]
    places = [{value: place for place, value in enumerate(values)} for values in lists]
    ordered = sorted(tuple(place[cell] for place, cell in zip(places, row, strict=True)) for row in rows)
    together = len(rows) < math.prod(map(len, lists))
    for at, place in enumerate(members):
        own = CorrelatedKey(number, tuple(row[at] for row in ordered)) if together else None
        yield place, replace(keys[place], values=lists[at], together=own)


def _listed(rows: Sequence[Row], keys: Sequence[GroupKey]) -> set[Row]:
    """Return the rows in terms of the keys' lists.

    A value outside a key's list becomes NULL if the list is declared and contains NULL; otherwise its row is dropped.
    """
    for at, key in enumerate(keys):
        listed = set(key.values or ())
        if key.listed and None in listed:
            rows = [row if row[at] in listed else (*row[:at], None, *row[at + 1 :]) for row in rows]
        rows = [row for row in rows if row[at] in listed]
    return {*rows}
