"""FROM and WHERE -> a source: join order, join keys, and the privacy unit of the joined rows.

Inner joins may run in any order. The driving table is the one from which most others can be looked up: a lookup finds
at most one row for each row, so nothing is multiplied or copied.

Privacy unit: a joined row belongs to the unit of its left side. Two private sides are joined only if the conditions
imply that both belong to the same unit (`UnitEqualities`), and the executor joins no others (see `Join`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.digits import number_below
from dpsql.plan.expressions import Column, Expr, Literal, call, conjuncts
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Filter, Join, Pair, Source
from dpsql.plan.prior_releases import is_earlier
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.private_rows import (
    OWN,
    Handle,
    PrivateRows,
    Rows,
    Step,
    UnitEqualities,
    equality,
    implied,
    nullable,
    places_of,
)


def assembled(people: PrivateRows, predicate: Expr | None) -> Rows:
    """Return the joined and filtered rows of a FROM and its WHERE. Raises UnsupportedSQL if the join would combine rows
    of different units, or multiply rows without a declared bound."""
    first = people.steps[0]
    if len(people.steps) == 1:
        return first.rows if predicate is None else replace(first.rows, source=Filter(first.rows.source, predicate))
    conditions = [] if predicate is None else conjuncts(predicate)
    for step in people.steps:
        conditions += step.on if step.how == "inner" else ()
    return _Assembly(people, conditions).rows()


_Joined = tuple[Source, frozenset[Handle]]
"""A joined source, and the handles of its rows."""


@dataclass(frozen=True)
class _Attachment:
    """A way to join more rows. `cost`: 0 for a lookup, higher for more possible rows; `where`: equalities with
    constants that a unique key needs."""

    cost: int
    keys: tuple[Pair, ...]
    matches: int | None
    where: tuple[Expr, ...] = ()


class _Assembly:
    """The joins of one FROM. `conditions`: those true of every joined row, from WHERE and inner ON."""

    def __init__(self, people: PrivateRows, conditions: list[Expr]) -> None:
        self.people = people
        self.conditions = conditions
        self.used: set[Expr] = set()

    def rows(self) -> Rows:
        current: Rows | None = None
        waiting: list[Step] = []
        for step in self.people.steps:
            if step.how == "inner":
                waiting.append(step)
                continue
            if step.how == "right":  # two tables: the first one's filters stay below
                current = self._outer(step.rows, replace(step, rows=waiting[0].rows))
            else:
                current = self._outer(self._inner(current, waiting), step)
            waiting = []
        current = self._inner(current, waiting) if waiting else current
        assert current is not None  # FROM has at least one item
        rest = [term for term in self.conditions if term not in self.used]
        source: Source = reduce(Filter, rest, current.source)
        return replace(current, source=source)

    # Inner joins.

    def _inner(self, current: Rows | None, steps: list[Step]) -> Rows:
        steps = [replace(step, rows=self._bare(step.rows)) for step in steps]
        if current is not None:
            steps = [Step(current), *steps]
        if len(steps) == 1:
            return steps[0].rows
        equalities = self._equalities([step.rows for step in steps])
        same = UnitEqualities(equalities)
        self._check_units(steps, same)
        private = [step for step in steps if not step.rows.public]
        first = steps[:1] if current is not None and not (current.public and private) else private or steps
        source, handles = self._best_order(first, steps, equalities)
        loose = frozenset[Handle]().union(*(step.rows.loose for step in steps))
        names = frozenset[str]().union(*(step.rows.names for step in steps))
        listed = [side for pair in equalities for side in pair if isinstance(side, Column)]
        return Rows(source, names, same.closure(handles, listed), loose=loose)

    def _best_order(self, first: list[Step], steps: list[Step], equalities: list[Pair]) -> _Joined:
        """Return the cheapest joins that start with one of `first`. Raises UnsupportedSQL if there are none."""
        orders = [order for driver in first if (order := self._order(driver, steps, equalities)) is not None]
        if not orders:
            raise self._cannot_join(steps, equalities)
        _, joined, fulfilled = min(orders, key=lambda order: order[0])
        self.used |= fulfilled
        return joined

    def _bare(self, rows: Rows) -> Rows:
        """Move the filters on top of the rows to the conditions: above an inner join they mean the same."""
        source = rows.source
        while isinstance(source, Filter):
            self.conditions += conjuncts(source.predicate)
            source = source.input
        return replace(rows, source=source)

    def _equalities(self, rows: list[Rows]) -> list[Pair]:
        """Return the equalities between these rows, from every condition that reads no other rows."""
        names = frozenset[str]().union(*(each.names for each in rows))
        found = [(each, equality(each)) for term in self.conditions for each in implied(term)]
        pairs = [pair for each, pair in found if pair is not None and places_of(each) <= names]
        return [pair for pair in pairs if not any(map(is_earlier, pair))]

    def _order(self, driver: Step, steps: list[Step], equalities: list[Pair]) -> tuple[int, _Joined, set[Expr]] | None:
        """Return the joins that start with `driver`: their cost, result, and the conditions they satisfy."""
        source, handles, names = driver.rows.source, driver.rows.handles, driver.rows.names
        rest = [step for step in steps if step is not driver]
        cost = 0
        used: set[Expr] = set()
        while rest:
            ways = [(_attach(names, step.rows, equalities, _fixed(self.conditions)), step) for step in rest]
            possible = [(way, step) for way, step in ways if way is not None]
            if not possible:
                return None
            way, step = min(possible, key=lambda each: each[0].cost)
            cost += way.cost
            right = reduce(Filter, way.where, step.rows.source)
            source = Join(source, right, way.keys, matches=way.matches)
            handles, names = handles | step.rows.handles, names | step.rows.names
            used |= {term for term in self.conditions if _is_one_of(term, way.keys)}
            rest.remove(step)
        return cost, (source, handles), used

    def _check_units(self, steps: list[Step], same: UnitEqualities) -> None:
        private = [step for step in steps if not step.rows.public]
        if len(private) < 2:
            return
        loose = [step for step in private if step.rows.unit_is_row]
        if loose:
            raise UnsupportedSQL(
                f"{private[0].rows.table.name} and {private[1].rows.table.name} are joined, but nothing says whose "
                f"rows those of {loose[0].rows.table.name} are.",
                span=private[1].span,
                hint='Declare it: unit="person_id" on each table, or public=True on one that is about nobody.',
            )
        numbers = same.linked([step.rows for step in private])
        apart = [step for step, number in zip(private, numbers, strict=True) if number != numbers[0]]
        if apart:
            raise not_on_the_unit(private[0].rows, apart[0].rows, apart[0].span)

    def _cannot_join(self, steps: list[Step], equalities: list[Pair]) -> UnsupportedSQL:
        names = frozenset[str]().union(*(step.rows.names for step in steps))
        for step in steps:
            if step.rows.public:
                keys = _keys_between(names - step.rows.names, step.rows, equalities)
                listed = [column for _, column in keys if isinstance(column, Column)]
                if keys and not any(unique <= set(listed) for unique in step.rows.unique):
                    return multiplies(step.rows, listed, step.span)
        return UnsupportedSQL(
            "the tables of FROM are not connected by equalities.",
            span=steps[-1].span,
            hint="Add a condition such as ON a.pid = b.pid.",
        )

    # Outer joins.

    def _outer(self, left: Rows, step: Step) -> Rows:
        """Bind LEFT JOIN, which keeps every left row.

        An ON condition on the right side only becomes a filter of it, one on the left side only a key that is TRUE
        where the condition holds.
        """
        right = step.rows
        keys: list[Pair] = []
        source = right.source
        for term in (each for on in step.on for each in conjuncts(on)):
            places = places_of(term)
            pair = equality(term)
            sides = None if pair is None else sides_of(pair, left.names, right.names)
            if sides is not None:
                keys.append(sides)
            elif places and places <= right.names:
                source = Filter(source, term)
            elif places <= left.names:
                keys.append((term, Literal(value=True, type=Type.BOOLEAN)))
            else:
                raise UnsupportedSQL(
                    "the ON of an outer join can hold equalities between its sides and conditions on one side.",
                    span=step.span,
                )
        matches = self._outer_matches(left, right, keys, step)
        joined = Join(left.source, source, tuple(keys), outer=True, matches=matches, present=step.present)
        missing, unique = nullable(right.source), left.unique if left.public and matches == 1 else ()
        loose = {(kind, missing.get(column, column)) for kind, column in right.handles | right.loose}
        return Rows(joined, left.names | right.names, left.handles, unique, loose=left.loose | loose)

    def _outer_matches(self, left: Rows, right: Rows, keys: list[Pair], step: Step) -> int | None:
        on = [pair for pair in keys if isinstance(pair[1], Column)]
        if not right.public and not left.public:
            same = UnitEqualities([*on, *self._equalities([left])])
            self._check_units([Step(left), Step(right, span=step.span)], same)
        fixed = _fixed([each for term in step.on for each in conjuncts(term)])
        way = _attach(left.names, right, on or (keys if right.table.is_constant else []), fixed)
        if way is None and right.public and on:
            raise multiplies(right, [column for _, column in on if isinstance(column, Column)], step.span)
        if way is None:
            raise UnsupportedSQL(
                "the ON of an outer join wants an equality between its sides.", span=step.span, hint="ON a.key = b.key"
            )
        return way.matches


def _attach(
    names: frozenset[str], right: Rows, equalities: Sequence[Pair], fixed: Mapping[Column, Expr]
) -> _Attachment | None:
    """Return a way to join `right` to rows of the places `names`, or None if there is none yet."""
    keys = _keys_between(names, right, equalities)
    right_columns = {column for _, column in keys if isinstance(column, Column)}
    for unique in sorted(right.unique, key=len):
        within = right.public or any(column in unique for _, column in right.handles)
        if within and unique & right_columns and unique <= right_columns | fixed.keys():
            pairs = tuple(pair for pair in _one_each(keys) if pair[1] in unique)
            where = tuple(fixed[column] for column in sorted(unique - right_columns, key=str))
            return _Attachment(0, pairs, 1, where)
    if right.public:
        return _attach_public(right, keys, right_columns)
    return _Attachment(100, keys, None) if keys else None


def _attach_public(right: Rows, keys: tuple[Pair, ...], right_columns: set[Column]) -> _Attachment | None:
    """Return a way to join public rows whose equalities contain no unique key."""
    limits = [most for column, most in right.matches if column in right_columns]
    if right.table.is_constant:
        from dpsql.plan.constants import limits_of  # imported only when needed

        limits += limits_of(right.source, [each for _, each in keys])
    if limits:
        return _Attachment(1, keys, min(limits))
    return _Attachment(1_000, (), right.public_rows) if not keys and right.public_rows is not None else None


def _fixed(terms: Sequence[Expr]) -> dict[Column, Expr]:
    """Return the columns equated with a constant, and these conditions."""
    fixed: dict[Column, Expr] = {}
    for term in terms:
        pair = equality(term)
        for one, other in (pair, pair[::-1]) if pair is not None else ():
            if isinstance(one, Column) and isinstance(other, Literal):
                fixed.setdefault(one, term)
    return fixed


def _is_one_of(term: Expr, keys: tuple[Pair, ...]) -> bool:
    pair = equality(term)
    pairs = () if pair is None else (pair, pair[::-1])
    return any(each in keys or _with_column(*each) in keys for each in pairs)


def _one_each(keys: tuple[Pair, ...]) -> list[Pair]:
    """Return the first pair for each right side."""
    return [pair for place, pair in enumerate(keys) if all(pair[1] != each[1] for each in keys[:place])]


def _keys_between(names: frozenset[str], right: Rows, equalities: Sequence[Pair]) -> tuple[Pair, ...]:
    sides = [sides_of(pair, names, right.names) for pair in equalities]
    return tuple(dict.fromkeys(pair for pair in sides if pair is not None))


def sides_of(pair: Pair, left: frozenset[str], right: frozenset[str]) -> Pair | None:
    """Return an equality with the left rows' side first, or None if it is not between the two."""
    for one, other in (pair, (pair[1], pair[0])):
        here, there = places_of(one), places_of(other)
        if here and there and here <= left and there <= right and not here & right:
            return _with_column(one, other)
    return None


def _with_column(one: Expr, other: Expr) -> Pair:
    """Move text_to_bigint to the left where the right side is an integer column below digits: unique keys and row
    limits are declared for columns."""
    column = number_below(other)
    if column is other or not isinstance(one, Column) or not one.fact.wide:
        return one, other
    number = call(FUNCTIONS["text_to_bigint"], one)
    assert number is not None  # digits are text
    return number, column


def not_on_the_unit(left: Rows, right: Rows, span: Span | None) -> UnsupportedSQL:
    """Return the refusal of a join that would combine rows of different units."""
    return UnsupportedSQL(
        f"the join of {left.table.name} and {right.table.name} would bring rows of different people together.",
        span=span,
        hint=f"Join them on the privacy unit: {_unit_condition(left, right)}.",
    )


def _unit_condition(left: Rows, right: Rows) -> str:
    """Return the missing condition: handles of the same kind, those along a foreign key first."""
    pairs = [
        (
            (kind == OWN) + 2 * (one.name == other.name == kind[1]),
            f"{one.shown or left.table.name}.{one.name}",
            f"{other.shown or right.table.name}.{other.name}",
        )
        for kind, one in left.handles
        for other_kind, other in right.handles
        if kind == other_kind
    ]
    if pairs:
        _, one, other = min(pairs)
        return f"add AND {one} = {other}"
    for rows, beside in ((left, right), (right, left)):
        unit = rows.table.unit
        if unit is not None and unit.steps:
            step = unit.steps[0]
            between = f"{rows.table.name}.{unit.column} = {step.table}.{step.key}"
            return f"join {step.table} as well, on {between} and on what leads from it to {beside.table.name}"
    return "add AND an equality of their units"


def multiplies(right: Rows, on: list[Column], span: Span | None) -> UnsupportedSQL:
    """Return the refusal of a join that could multiply rows without limit."""
    if not on:
        return UnsupportedSQL(
            f"the join with {right.table.name} is by an expression over its columns, of which nothing can be declared.",
            span=span,
            hint=f"Compare a column of {right.table.name} that is declared unique.",
        )
    name = on[0].name
    return UnsupportedSQL(
        f"the join with {right.table.name} could multiply rows: nothing says how many of its rows have one value of "
        f"{name}.",
        span=span,
        hint=f'If each {name} stands in one row of {right.table.name}, declare unique=["{name}"] on it.\n'
        f'If it stands in several, declare how many at most: max_matches={{"{name}": 3}} for three.',
    )
