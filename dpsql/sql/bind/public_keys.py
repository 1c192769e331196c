"""Group keys that public tables determine: their possible values under joins and filters.

Proof that such a set is public: it is computed from public tables, the text and the declarations only.

Proof that the set is complete: a row that reaches the aggregate satisfies every inner join and filter below it. So its
public part satisfies their conditions on public tables, and its key is a value of the public rows that do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpsql.core.sensitivity.contribution_bounds import check_fan_outs
from dpsql.errors import UnsupportedSQL
from dpsql.plan.domains import ascending, vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Literal, call, columns, conjuncts, rebuild, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import (
    Filter,
    Join,
    Mark,
    PerUnit,
    RowLimit,
    Scan,
    Source,
    Union,
    Windows,
    exprs_of,
    filters_of,
    nodes_of,
    scans_of,
)
from dpsql.plan.prior_releases import is_shown, reads_earlier
from dpsql.schema.columns import Key, Type
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.private_rows import PrivateRows, Rows, Step, all_of, columns_of, equality, places_of, rows_of
from dpsql.sql.names.catalog import PublicValues
from dpsql.sql.names.scopes import Scope

Read = TypeVar("Read")


def public_values(expr: Expr, source: Source, values: PublicValues | None) -> tuple[Key, ...] | None:
    """Return the values of a key over public columns in rows of the source; None if it reads other columns."""
    return None if values is None else _values(expr, *public_parts(source), values)


def values_by_equality(expr: Expr, source: Source, values: PublicValues | None) -> tuple[Key, ...] | None:
    """Return the values of a key whose columns equal public ones of the same type by inner joins and filters, or that
    is in a list of public rows.

    Every row that reaches the aggregate satisfies the equalities, so its key can be computed from public columns, none
    of them NULL. So its values are among those of the public rows.
    """
    if values is None:
        return None
    public, terms = public_parts(source)
    found = by_equality(expr, terms, frozenset(public))
    if found is None:
        return _listed(expr, source, values)
    over, present = found
    return _values(over, public, [*terms, *present], values)


def values_in_conditions(expr: Expr, source: Source) -> tuple[Key, ...] | None:
    """Return the constants that conditions on all rows leave a key: those of `key = 'a'`, `key IN ('a', 'b')` or an OR
    of these; None where no condition lists them. They follow from the text alone."""
    if not (expr.type is Type.TEXT or expr.type.discrete):
        return None
    listed = [found for term in public_parts(source)[1] if (found := _constants_equal_to(expr, term)) is not None]
    return ascending(set.intersection(*listed)) if listed else None


def _constants_equal_to(expr: Expr, term: Expr) -> set[Key] | None:
    """The constants of which the expression has to be one, so that the term is true; None where it may be another."""
    if not isinstance(term, Call):
        return None
    if term.function.name == "or":
        either = [_constants_equal_to(expr, arg) for arg in term.args]
        known = [found for found in either if found is not None]
        return set().union(*known) if len(known) == len(either) else None
    others = [arg for arg in term.args if arg != expr]
    if term.function.name not in ("eq", "in") or expr not in term.args or not others:
        return None
    if term.function.name == "in" and term.args[0] != expr:
        return None
    if not all(isinstance(arg, Literal) and arg.type is expr.type for arg in others):
        return None
    return {arg.value for arg in others if isinstance(arg, Literal)} - {None}


def by_equality(expr: Expr, terms: list[Expr], public: frozenset[str]) -> tuple[Expr, list[Expr]] | None:
    """Return an expression over public columns that equals `expr` under these terms, and conditions that no public
    column used is NULL. None if nothing in it equals a public column."""
    same = equal_to_public(terms, public)
    used = [other for one, other in same.items() if one in set(walk(expr))]
    present = [call(FUNCTIONS["not"], nothing) for each in used if (nothing := call(FUNCTIONS["is_null"], each))]
    return (rebuild(expr, same), [each for each in present if each is not None]) if used else None


def fulfilled_marks(source: Source) -> Iterator[Mark]:
    """Yield the marks that are TRUE for every row above."""
    asked: set[Expr] = set()
    while isinstance(source, Filter | Mark | Join):
        if isinstance(source, Filter):
            asked.update(conjuncts(source.predicate))
        elif isinstance(source, Mark) and source.column in asked:
            yield source
        source = source.left if isinstance(source, Join) else source.input


def equal_to_public(terms: list[Expr], public: frozenset[str]) -> dict[Expr, Expr]:
    """Map expressions to the expressions over public columns that equalities imply."""
    pairs = [pair for term in terms if (pair := equality(term)) is not None and pair[0].type is pair[1].type]
    sides = [*pairs, *(pair[::-1] for pair in pairs)]
    same = {one: other for one, other in sides if is_over(other, public) and not is_over(one, public)}
    while more := {one: same[other] for one, other in sides if other in same and one not in same}:
        more = {one: other for one, other in more.items() if places_of(one) and not is_over(one, public)}
        if not more:
            break
        same |= more
    return same


def _listed(expr: Expr, source: Source, values: PublicValues) -> tuple[Key, ...] | None:
    """Return the values of a public list that contains a key by IN (SELECT ...) or EXISTS. A list never matches
    NULL."""
    for mark in fulfilled_marks(source):
        places = where_listed([expr], mark)
        if places and len(mark.keys) == 1:
            found = values.of(mark.inner, mark.keys[0][1])
            return None if found is None else tuple(value for value in found if value is not None)
        if places:
            rows = rows_listed(mark, values)
            return None if rows is None else ascending({row[places[0]] for row in rows})
    return None


def where_listed(exprs: Sequence[Expr], mark: Mark) -> list[int] | None:
    """Return the positions of expressions in a list of public rows, if the mark implies that each is in one."""
    sides = {one: place for place, (one, listed) in enumerate(mark.keys) if one.type is listed.type}
    if mark.condition is not None or not all(each in sides for each in exprs) or public_table(mark.inner) is None:
        return None
    return [sides[each] for each in exprs]


def rows_listed(mark: Mark, values: PublicValues) -> list[tuple[Key, ...]] | None:
    """Return the rows of a list, without those that hold NULL, which nothing equals."""
    rows = values.together(mark.inner, [listed for _, listed in mark.keys])
    return None if rows is None else [row for row in rows if None not in row]


def is_over(expr: Expr, public: frozenset[str]) -> bool:
    return bool(places_of(expr)) and places_of(expr) <= public and not reads_earlier(expr)


def _values(expr: Expr, public: dict[str, Rows], terms: list[Expr], values: PublicValues) -> tuple[Key, ...] | None:
    asked = places_of(expr)
    if not asked or not asked <= public.keys() or any(is_shown(public[place].table) for place in asked):
        return None
    for places in (connected(asked, terms, frozenset(public)), asked):
        rows = public_rows(places, public, terms)
        if rows is not None:
            return values.of(rows, expr)
    return None


def public_rows(
    places: frozenset[str], public: dict[str, Rows], terms: list[Expr], outer: Sequence[Step] = ()
) -> Source | None:
    """Return the rows of public tables at some places, with `outer` joins, for which the terms on these places hold.

    None if the tables cannot be joined on their own, would have too many rows, or have rows that are not available yet.
    """
    conditions = [weaker for term in terms if (weaker := weakened(term, places, places_of)) is not None]
    inner = {rows.names: rows for name, rows in public.items() if name in places}  # one may have several places
    steps = (*map(Step, inner.values()), *outer)
    if any(is_shown(step.rows.table) for step in steps):
        return None
    try:
        source = assembled(PrivateRows(Scope("", "", ()), steps), all_of(conditions)).source
        check_fan_outs(source)
    except UnsupportedSQL:
        return None
    return source


def public_parts(source: Source) -> tuple[dict[str, Rows], list[Expr]]:
    """Return the public tables with one row for every row of a source, by place, and the conditions that hold."""
    if isinstance(source, Scan):
        return ({source.name: rows_of(source)} if source.table.public else {}), []
    if isinstance(source, Filter):
        public, terms = public_parts(source.input)
        return public, [*terms, *conjuncts(source.predicate)]
    if isinstance(source, Mark | Windows | RowLimit):
        return public_parts(source.input)
    if isinstance(source, PerUnit | Union):
        made = public_table(source)
        return ({} if made is None else dict.fromkeys(made.names, made)), []
    public, terms = public_parts(source.left)
    if source.outer:
        return public, terms
    more, others = public_parts(source.right)
    equal = [call(FUNCTIONS["eq"], left, right) for left, right in source.keys]
    return {**public, **more}, [*terms, *others, *(each for each in equal if each is not None)]


def public_table(source: Source) -> Rows | None:
    """Return a source of public rows only as a table; None if it reads private or not yet available rows. Raises
    UnsupportedSQL for too many rows."""
    exprs = (expr for node in nodes_of(source) for expr in exprs_of(node))
    if any(is_shown(scan.table) or not scan.table.public for scan in scans_of(source)) or any(
        map(reads_earlier, exprs)
    ):
        return None
    check_fan_outs(source)
    if isinstance(source, Scan):
        return rows_of(source)
    if isinstance(source, Filter):
        held = public_table(source.input)
        return None if held is None else replace(held, source=source)
    names = frozenset(column.table for column in columns_of(source))
    unique = (frozenset(source.columns[: len(source.keys)]),) if isinstance(source, PerUnit) and source.keys else ()
    return Rows(source, names, unique=unique)


def connected(asked: frozenset[str], terms: list[Expr], public: frozenset[str]) -> frozenset[str]:
    """Return the public places reachable by equalities between columns."""
    places = asked
    while True:
        more = places
        for term in terms:
            pair = equality(term)
            if pair is not None and all(isinstance(side, Column) for side in pair) and places_of(term) <= public:
                more = more | places_of(term) if places_of(term) & more else more
        if more == places:
            return places
        places = more


def possible(column: Column, listed: tuple[Key, ...], source: Source) -> tuple[Key, ...]:
    """Return the listed values of a column for which the filters on it alone can be TRUE. NULL stays, because it also
    stands for values outside the list."""
    terms = [term for predicate in filters_of(source) for term in conjuncts(predicate)]
    said = [weaker for term in terms if (weaker := weakened(term, frozenset({column}), _columns)) is not None]
    condition = all_of(said)
    if condition is None:
        return listed
    with np.errstate(all="ignore"):
        verdict = evaluate(condition, lambda _: vector_of(listed, column.type), len(listed))
    holds = verdict.values.astype(bool) & verdict.where_valid()
    return tuple(value for value, held in zip(listed, holds, strict=True) if held or value is None)


def _columns(expr: Expr) -> frozenset[Column]:
    return frozenset(columns(expr))


def weakened(expr: Expr, things: frozenset[Read], read_by: Callable[[Expr], frozenset[Read]]) -> Expr | None:
    """Return a condition that reads only `things` and is TRUE wherever the given one is; None if none is found.

    All terms of an AND hold, so some may be dropped. One arm of an OR holds, so each may be weakened.
    """
    read = read_by(expr)
    if read and read <= things and not reads_earlier(expr):
        return expr
    if not isinstance(expr, Call) or expr.function.name not in ("and", "or"):
        return None
    arms = [weakened(arg, things, read_by) for arg in expr.args]
    kept = [arm for arm in arms if arm is not None]
    if expr.function.name == "and":
        return all_of(kept)
    return call(expr.function, *kept) if len(kept) == len(arms) else None
