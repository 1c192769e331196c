"""Several keys over the same public rows: the groups are the combinations that these rows have, not all of them.

Proof that they may be shown: like each key's own values they are computed from public tables, the text and the
declarations alone. That they are complete: a row that reaches the aggregate fulfils every inner join and filter below
it, so what these say of public tables alone holds for its public part, which is one of the public rows for which they
hold; the keys' values are those of that row, all at once. A row with other values, had it any, would be in no group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dpsql.plan.expressions import Expr, rebuild
from dpsql.plan.nodes import Source
from dpsql.plan.query import GroupKey, Together
from dpsql.schema.columns import Key
from dpsql.schema.frozen import dataclass
from dpsql.sql.catalog import PublicValues
from dpsql.sql.public_keys import by_equality, connected, equal_to_public, is_over, public_parts, public_rows
from dpsql.sql.same_unit import Rows, equality, places_of

Row = tuple[Key, ...]


@dataclass(frozen=True)
class _Over:
    """A key by its place, and what it is over public columns in every row that reaches the aggregate."""

    place: int
    expr: Expr


def keys_together(keys: Sequence[GroupKey], source: Source, values: PublicValues | None) -> tuple[GroupKey, ...]:
    """The keys, those over the same public rows with the combinations that these have."""
    found = list(keys)
    public, terms = public_parts(source)
    if values is not None and len(keys) > 1 and public:
        for number, (members, rows) in enumerate(_Tables(public, terms, values).together(keys)):
            for member, key in held_in_rows([each.place for each in members], rows, keys, number):
                found[member] = key
    return tuple(found)


class _Tables:
    """The public tables that every row has a row of, and the conditions that hold for it."""

    def __init__(self, public: dict[str, Rows], terms: list[Expr], values: PublicValues) -> None:
        self.public = public
        self.values = values
        self.terms = [*terms, *_between_public(terms, frozenset(public))]

    def together(self, keys: Sequence[GroupKey]) -> Iterator[tuple[list[_Over], tuple[Row, ...]]]:
        """The keys that are over the same rows, and these."""
        over = [each for place, key in enumerate(keys) if (each := self._over(place, key)) is not None]
        yield from self._rows_of(over, lambda asked: connected(asked, self.terms, frozenset(self.public)))

    def _over(self, place: int, key: GroupKey) -> _Over | None:
        """None of a key without public values, or with a list of its own beside which all else counts as NULL."""
        if key.values is None or key.shown is not None:
            return None
        if is_over(key.expr, frozenset(self.public)):
            return _Over(place, key.expr)
        found = by_equality(key.expr, self.terms, frozenset(self.public))
        if found is None or not is_over(found[0], frozenset(self.public)) or (key.listed and None in key.values):
            return None
        self.terms += [term for term in found[1] if term not in self.terms]
        return _Over(place, found[0])

    def _rows_of(
        self, over: Sequence[_Over], reach: Callable[[frozenset[str]], frozenset[str]]
    ) -> Iterator[tuple[list[_Over], tuple[Row, ...]]]:
        """The keys of tables that are joined with each other, by `reach`; where these cannot be joined by themselves,
        or have too many rows, those of one table."""
        for members, places in _components(over, reach):
            if len(members) > 1:
                source = public_rows(places, self.public, self.terms)
                rows = None if source is None else self.values.together(source, [each.expr for each in members])
                if rows is not None:
                    yield members, rows
                elif places != frozenset[str]().union(*(places_of(each.expr) for each in members)):
                    yield from self._rows_of(members, lambda asked: asked)


def _between_public(terms: list[Expr], public: frozenset[str]) -> Iterator[Expr]:
    """Equalities of public columns that are equal to the same of people's."""
    same = equal_to_public(terms, public)
    for term in terms:
        over = rebuild(term, same)
        pair = equality(over)
        if over != term and pair is not None and pair[0] != pair[1] and all(is_over(each, public) for each in pair):
            yield over


def _components(
    over: Sequence[_Over], reach: Callable[[frozenset[str]], frozenset[str]]
) -> list[tuple[list[_Over], frozenset[str]]]:
    """The keys, those together whose places meet, with all of these."""
    found: list[tuple[list[_Over], frozenset[str]]] = []
    for each in over:
        members, places = [each], reach(places_of(each.expr))
        for other in [one for one in found if one[1] & places]:
            members, places = [*other[0], *members], places | other[1]
            found.remove(other)
        found.append((members, places))
    return found


def held_in_rows(
    members: Sequence[int], rows: Sequence[Row], keys: Sequence[GroupKey], number: int
) -> Iterator[tuple[int, GroupKey]]:
    """The keys at some places with the rows, each of which is there once, in which each has one of its values; as they
    are where these are all combinations."""
    listed = [set(keys[place].values or ()) for place in members]
    rows = [row for row in rows if all(cell in values for cell, values in zip(row, listed, strict=True))]
    if len(rows) == math.prod(map(len, listed)):
        return
    lists = [_ascending({row[at] for row in rows}) for at in range(len(members))]
    places = [{value: place for place, value in enumerate(values)} for values in lists]
    ordered = sorted(tuple(place[cell] for place, cell in zip(places, row, strict=True)) for row in rows)
    together = len(rows) < math.prod(map(len, lists))
    for at, place in enumerate(members):
        own = Together(number, tuple(row[at] for row in ordered)) if together else None
        yield place, replace(keys[place], values=lists[at], together=own)


def _ascending(values: set[Key]) -> tuple[Key, ...]:
    """The values, NULL last."""
    return tuple(sorted(values, key=lambda value: (value is None, value)))
