"""FULL JOIN of private rows on the privacy unit, or of public tables.

It becomes a union of two branches: the left rows with each right match or none, and the right rows without a left
match. So the rules for joins, marks and unions determine how many rows a unit has and that they are its own, and
engines need no support. The second branch reads all tables again, at separate places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, Fact, Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Branch, Filter, Pair, Union
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import BOOLEAN
from dpsql.sql.bind.join_clauses import conditions_of
from dpsql.sql.bind.joins import assembled, sides_of
from dpsql.sql.bind.mark_columns import PendingMark, with_marks
from dpsql.sql.bind.private_rows import OWN, Handle, Kind, PrivateRows, Rows, Step, beside_no_match, equality, places_of
from dpsql.sql.bind.unions import column_of_union, typed
from dpsql.sql.names.scopes import Scope, StatementState, together
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.parse import span_of

_NOTHING = Literal(None, Type.INTEGER)
_NOWHERE = (_NOTHING, _NOTHING)
"""Matches no column."""


@dataclass(frozen=True)
class Sides:
    """The two sides of a FULL JOIN."""

    left: PrivateRows
    right: PrivateRows


def full_join(join: exp.Join, sides: Sides, again: Sides, whole: StatementState, select: exp.Select) -> PrivateRows:
    """Return the rows of a FULL JOIN, as one table. `again`: the same sides, bound again at separate places. Raises
    UnsupportedSQL, SQLSyntaxError, or what binding ON raises."""
    span = span_of(whole.sql, join.this)
    _check_sides(sides, span)
    on, merged = conditions_of(join, sides.left, sides.right, whole, select)
    matched, beside = _left_rows(sides, on, whole, span)
    on_again, _ = conditions_of(join, again.left, again.right, whole, select)
    alone = _without_match(again, on_again, whole, span)
    named = _named_copies(sides, again, beside, merged)
    equal = _equal_columns(on, sides, again) if select.find(exp.Coalesce) is not None else []
    columns = _columns([*named, *_either_copies(equal, sides)], whole, join)
    branches = tuple(
        Branch(rows.source, tuple(typed(copies[place], column.type) for copies, column in columns.items()))
        for place, rows in enumerate((matched, alone))
    )
    union = Union(branches, tuple(columns.values()), alternatives=_says_the_unit(on, sides))
    rows = Rows(
        union,
        frozenset({next(iter(columns.values())).table}),
        _handles(columns, (matched.handles, alone.handles), everywhere=True),
        _unique(on, sides, columns, (_meanings(beside), _meanings(again.right.scope))) if matched.public else (),
        loose=_handles(columns, (matched.handles | matched.loose, alone.handles | alone.loose)),
        public_rows=_most(matched, sides),
    )
    scope = _scope(sides, merged, [columns[copies] for _, copies in named])
    rights = dict(zip(_meanings(sides.right.scope), _meanings(beside), strict=True))
    either: list[tuple[Expr, Expr, Expr]] = [
        (columns[one, _NOTHING], columns[rights[right], other], columns[one, other]) for one, right, other in equal
    ]
    for one, other, expr in sides.left.scope.either if equal else ():
        either.append((columns[one, _NOTHING], columns[other, _NOTHING], columns[expr, _NOTHING]))
    return PrivateRows(replace(scope, either=tuple(either)), (Step(rows, span=span),))


def _check_sides(sides: Sides, span: Span | None) -> None:
    public = [all(step.rows.public for step in each.steps) for each in (sides.left, sides.right)]
    if public[0] != public[1]:
        raise UnsupportedSQL(
            "FULL JOIN of people's rows with public ones is not supported: which public rows have no match depends on "
            "everybody.",
            span=span,
            hint="Write people LEFT JOIN public ON people.key = public.key, and GROUP BY the public column: all its "
            "groups are shown.",
        )


def _named(scope: Scope) -> Iterator[tuple[str, Expr]]:
    """Yield every name of a scope and of its tables, with its expression."""
    yield from scope.listed
    for part in scope.parts:
        yield from part.listed


def _left_rows(sides: Sides, on: Sequence[Expr], whole: StatementState, span: Span | None) -> tuple[Rows, Scope]:
    """Return the left rows with their matches or none, and the right side's columns there."""
    present = Column("present", Type.BOOLEAN, Fact(BOOLEAN, nullable=True, whole=True), whole.place("(match)"))
    left, right = assembled(sides.left, None), assembled(sides.right, None)
    step = Step(right, "left", tuple(on), span, present)
    rows = assembled(PrivateRows(sides.left.scope, (Step(left, span=span), step)), None)
    return rows, beside_no_match(replace(sides.right, steps=(step,)), present)


def _without_match(sides: Sides, on: Sequence[Expr], whole: StatementState, span: Span | None) -> Rows:
    """Return the right rows without a left match. The first branch has checked conditions on one side."""
    left, right = assembled(sides.left, None), assembled(sides.right, None)
    keys: list[Pair] = []
    for term in on:
        pair = equality(term)
        between = None if pair is None else sides_of(pair, right.names, left.names)
        if between is not None:
            keys.append(between)
        elif places_of(term) and places_of(term) <= left.names:
            left = replace(left, source=Filter(left.source, term))
        else:
            keys.append((term, Literal(value=True, type=Type.BOOLEAN)))
    place = whole.place("(match)")
    found = Column("found", Type.BOOLEAN, Fact(BOOLEAN, nullable=False, whole=True), place)
    marking = PendingMark(left, tuple(keys), found, None, of_list=False, span=span)
    missing = call(FUNCTIONS["not"], found)
    assert missing is not None  # `found` is a condition
    return replace(right, source=Filter(with_marks(right, [marking]), missing))


def _named_copies(
    sides: Sides, again: Sides, beside: Scope, merged: frozenset[str]
) -> list[tuple[str, tuple[Expr, Expr]]]:
    """Return every name and its expressions in the two branches: names merged by USING, taken from the left side or
    otherwise the right; then the left side's, NULL if missing, and the right side's."""
    left, right = sides.left.scope, again.right.scope
    either = [(name, (left.columns[name][1], right.columns[name][1])) for name in sorted(merged)]
    lefts = [(name, (expr, _NOTHING)) for name, expr in _named(left)]
    rights = [(name, (one, other)) for (name, one), (_, other) in zip(_named(beside), _named(right), strict=True)]
    return [*either, *lefts, *rights]


def _meanings(scope: Scope) -> list[Expr]:
    return [expr for _, expr in _named(scope)]


def _equal_columns(on: Sequence[Expr], sides: Sides, again: Sides) -> list[tuple[Column, Expr, Expr]]:
    """Return the columns that ON equates, with the right one's expression in the second branch."""
    copies = dict(zip(_meanings(sides.right.scope), _meanings(again.right.scope), strict=True))
    return [(one, other, copies[other]) for one, other in _column_pairs(on, sides) if other in copies]


def _column_pairs(on: Sequence[Expr], sides: Sides) -> list[tuple[Column, Column]]:
    """Return the columns of one type that ON equates, the left side's first."""
    left, right = (
        frozenset[str]().union(*(step.rows.names for step in each.steps)) for each in (sides.left, sides.right)
    )
    pairs = [sides_of(pair, left, right) for term in on if (pair := equality(term)) is not None]
    return [
        (one, other)
        for one, other in (pair for pair in pairs if pair is not None)
        if isinstance(one, Column) and isinstance(other, Column) and one.type is other.type
    ]


def _unique(
    on: Sequence[Expr],
    sides: Sides,
    columns: Mapping[tuple[Expr, Expr], Column],
    rights: tuple[Sequence[Expr], Sequence[Expr]],
) -> tuple[frozenset[Column], ...]:
    """Return the unique keys of a FULL JOIN of public tables. `rights`: the right side's columns in the two branches.

    If the equalities contain a unique key of the right side, each left row occurs once, and the left side's keys stay
    unique (and are NULL in all other rows). The same holds the other way round. With both, and only equalities in ON,
    the merged columns are unique too: an unmatched row equals no row of the other side in all of them.
    """
    left, right = (each.steps[0].rows.unique if len(each.steps) == 1 else () for each in (sides.left, sides.right))
    pairs = _column_pairs(on, sides)
    lefts, others = {one for one, _ in pairs}, {other for _, other in pairs}
    once = any(key <= lefts for key in left), any(key <= others for key in right)
    copies = dict(zip(_meanings(sides.right.scope), zip(*rights, strict=True), strict=True))
    keys: list[list[tuple[Expr, Expr]]] = []
    if once[1]:
        keys += [[(column, _NOTHING) for column in key] for key in left]
    if once[0]:
        keys += [[copies.get(column, _NOWHERE) for column in key] for key in right]
    if all(once) and len(pairs) == len(on):
        keys.append([(one, copies.get(other, _NOWHERE)[1]) for one, other in pairs])
    return _where_there(keys, columns)


def _where_there(
    keys: Sequence[Sequence[tuple[Expr, Expr]]], columns: Mapping[tuple[Expr, Expr], Column]
) -> tuple[frozenset[Column], ...]:
    return tuple(frozenset(columns[each] for each in key) for key in keys if columns.keys() >= {*key})


def _either_copies(equal: Sequence[tuple[Column, Expr, Expr]], sides: Sides) -> Iterator[tuple[str, tuple[Expr, Expr]]]:
    """Yield the expressions of merged columns in the two branches, and those of earlier FULL JOINs."""
    for one, _, other in equal:
        yield one.name, (one, other)
    for each in sides.left.scope.either if equal else ():
        yield from (("either", (expr, _NOTHING)) for expr in each)


def _columns(
    named: list[tuple[str, tuple[Expr, Expr]]], whole: StatementState, join: exp.Join
) -> dict[tuple[Expr, Expr], Column]:
    """Return a column for each pair of expressions."""
    place, taken = whole.place("(full join)"), set[str]()
    columns: dict[tuple[Expr, Expr], Column] = {}
    for name, copies in named:
        if copies not in columns:
            own = fresh(name, taken), place
            columns[copies] = column_of_union(whole, join.this, own, copies, "the tables of a FULL JOIN")
    return columns


def _scope(sides: Sides, merged: frozenset[str], columns: Sequence[Column]) -> Scope:
    """Return the names of both sides. A column merged by USING comes from either side; qualified by a table, from that
    table."""
    own = iter(columns)
    either = Scope("", "", tuple((name, next(own)) for name in sorted(merged)))

    def renamed(scope: Scope) -> Scope:
        listed = tuple((name, next(own)) for name, _ in scope.listed)
        parts = tuple(replace(part, listed=tuple((name, next(own)) for name, _ in part.listed)) for part in scope.parts)
        return replace(scope, listed=listed, parts=parts)

    left, right = renamed(sides.left.scope), renamed(sides.right.scope)
    return together([left, right], merged, either)


def _handles(
    columns: Mapping[tuple[Expr, Expr], Column],
    held: tuple[frozenset[Handle], frozenset[Handle]],
    *,
    everywhere: bool = False,
) -> frozenset[Handle]:
    """Return the columns that are handles of one kind in both branches or, unless `everywhere`, in one branch and NULL
    in the other."""
    listed: set[Handle] = set()
    for copies, column in columns.items():
        kinds = [
            frozenset[Kind](kind for kind, handle in handles if handle == expr)
            for expr, handles in zip(copies, held, strict=True)
            if everywhere or not _is_null(expr)
        ]
        if kinds:
            listed |= {(kind, column) for kind in frozenset.intersection(*kinds)}
    return frozenset(listed)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _says_the_unit(on: Sequence[Expr], sides: Sides) -> bool:
    """Return whether ON only equates the units of both sides: a unit with rows on both sides then has no unmatched
    rows."""
    units = [
        frozenset(column for step in each.steps for kind, column in step.rows.handles if kind == OWN)
        for each in (sides.left, sides.right)
    ]
    pairs = [equality(term) for term in on]
    return bool(pairs) and all(
        pair is not None and any(one in units[0] and other in units[1] for one, other in (pair, pair[::-1]))
        for pair in pairs
    )


def _most(matched: Rows, sides: Sides) -> int | None:
    """Return the maximum number of rows of a FULL JOIN of public tables."""
    if not matched.public:
        return None
    counts = [step.rows.public_rows for each in (sides.left, sides.right) for step in each.steps]
    known = [each for each in counts if each is not None]
    product = reduce(lambda one, other: one * max(1, other), known, 1)
    return product + sum(known) if len(known) == len(counts) else None
