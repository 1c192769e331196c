"""Sub-queries in expressions: x IN (SELECT ...) and EXISTS (SELECT ...), as marks on the rows that they are asked of.

Over public tables any condition will do. Over people's rows the two sides must be of the same privacy unit, by an
equality that says so: then a person's own rows alone decide what is marked of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, Fact, Literal, Slot, call, columns, conjuncts, unfiltered
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Filter, Mark, Pair, Source, scans_of
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN
from dpsql.sql.joins import assembled, not_on_the_unit
from dpsql.sql.parse import span_of
from dpsql.sql.same_unit import People, Rows, SameUnit, all_of, columns_of, equality, places_of
from dpsql.sql.select_list import is_star, items_of
from dpsql.sql.selects import Marking, SelectBinder

Found = tuple[People | None, People | None]


def with_marks(rows: Rows, marks: Sequence[Marking]) -> Source:
    """The source with the marks below its filters, which may ask for them. Raises UnsupportedSQL."""
    filters: list[Expr] = []
    source = rows.source
    while marks and isinstance(source, Filter):
        filters.append(source.predicate)
        source = source.input
    for each in marks:
        _check_unit(rows, each)
        source = Mark(source, each.inner.source, each.keys, each.column, each.condition, each.of_list)
    return reduce(Filter, reversed(filters), source)


def _check_unit(rows: Rows, mark: Marking) -> None:
    if mark.inner.public:
        return
    if mark.named is not None and not _of_one_unit(rows, mark):
        inner = mark.inner.table.name
        raise UnsupportedSQL(
            f"{mark.named} is a column of {_owner(mark.named, rows)}, not of {inner}: all that is asked of {inner} is "
            "whether it has any rows, which is one person's to decide.",
            span=mark.span,
            hint=f"Name a column of {inner}, or compare with {mark.named} outside of a sub-query.",
        )
    if rows.public or rows.unit_is_row or mark.inner.unit_is_row:
        raise UnsupportedSQL(
            f"the sub-query reads people's rows, and nothing says which of them belong to a row of {rows.table.name}.",
            span=mark.span,
            hint='Declare unit="person_id" on both tables.',
        )
    if not _of_one_unit(rows, mark):
        raise not_on_the_unit(rows, mark.inner, mark.span)


def _owner(column: Column, rows: Rows) -> str:
    """The table that a column is of; one that a sub-query makes is of none."""
    found = (scan.table.name for scan in scans_of(rows.source) if scan.name == column.table)
    return next(found, "the SELECT around it")


def _of_one_unit(rows: Rows, mark: Marking) -> bool:
    """Whether the equalities say that both sides are of the same privacy unit."""
    if rows.public or rows.unit_is_row or mark.inner.unit_is_row:
        return False
    same = SameUnit(list(mark.keys)).linked([rows, mark.inner])
    return same[0] == same[1]


class Membership:
    """Binds IN (SELECT ...), EXISTS (...) and values; `inner` binds the FROM of a sub-query, or all of an aggregating
    one, `rows` its FROM."""

    def __init__(self, inner: Callable[[exp.Select], Found], rows: Callable[[exp.Select], People | None]) -> None:
        self._inner = inner
        self._rows = rows

    def bind(self, node: exp.Expr, outer: SelectBinder) -> Expr | None:
        """The marked column of a membership, the same one for the same words; None for any other node. Raises a
        QueryRefused."""
        if node not in outer.memberships:
            made = self._bound(node, outer)
            if made is None:
                return None
            outer.memberships[node] = made
        return outer.memberships[node]

    def value(self, node: exp.Subquery, outer: SelectBinder) -> Expr:
        """A sub-query as a value: one aggregate over public tables, computed here. Raises UnsupportedSQL."""
        span = span_of(outer.sql, node)
        cut = ("group", "having", "limit", "offset", "order", "distinct", "privacy")
        if isinstance(node.this, exp.Select):
            for clause in cut:
                if node.this.args.get(clause) is not None:
                    word = {"group": "GROUP BY", "order": "ORDER BY", "privacy": "DIFFERENTIAL_PRIVACY"}.get(clause)
                    raise UnsupportedSQL(f"a sub-query as a value has no {word or clause.upper()}.", span=span)
        found = self._rows(node.this) if isinstance(node.this, exp.Select) else None
        public = outer.whole.public
        if found is None or public is None or not all(step.rows.public for step in found.steps):
            raise UnsupportedSQL(
                "a sub-query as a value reads public tables: one over people's rows would have to be private itself.",
                span=span,
                hint="Ask it first, and write its answer in its place (in Python as a parameter too: params={...}).",
            )
        inside = outer.inside(node.this, found, self)
        predicate = inside.where()
        own = frozenset[str]().union(*(step.rows.names for step in found.steps))
        own |= {mark.column.table for mark in inside.marks}
        items = items_of(node.this)
        slot = inside.aggregate(items[0][0]) if len(items) == 1 else None
        if not isinstance(slot, Slot) or len(inside.aggregations) != 1:
            raise UnsupportedSQL("a sub-query as a value is one aggregate, such as (SELECT MAX(x) FROM t).", span=span)
        (aggregation,) = inside.aggregations
        if slot.type is Type.OTHER:
            raise UnsupportedSQL("a sub-query as a value is a number, a text, a boolean or a time.", span=span)
        read = [each for each in (predicate, aggregation.argument) if each is not None]
        if any(not places_of(each) <= own for each in read):
            raise UnsupportedSQL(
                "a sub-query as a value cannot read the row that it stands beside.",
                span=span,
                hint="Join the table on those columns instead, and use its column.",
            )
        source = with_marks(assembled(found, predicate), inside.marks)
        outer.whole.computed_from |= {scan.table.name.casefold() for scan in scans_of(source)}
        value = public.aggregate(source, aggregation, slot.type)
        return Literal(value, slot.type)

    def _bound(self, node: exp.Expr, outer: SelectBinder) -> Expr | None:
        query = (
            node.args.get("query") if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else None
        )
        if query is None:
            return None
        select = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(select, exp.Select):
            raise UnsupportedSQL("a sub-query in an expression is one SELECT.", span=span_of(outer.sql, query))
        for clause in ("limit", "offset", "order"):
            if select.args.get(clause) is not None:
                raise UnsupportedSQL(
                    f"{'ORDER BY' if clause == 'order' else clause.upper()} in a sub-query of an expression is not "
                    "supported.",
                    span=span_of(outer.sql, select.args[clause]),
                )
        if select.args.get("privacy") is not None:
            raise UnsupportedSQL(
                "a sub-query in an expression cannot be private by itself.", span=span_of(outer.sql, select)
            )
        return self._marked(node, select, outer)

    def _marked(self, node: exp.Expr, select: exp.Select, outer: SelectBinder) -> Expr:
        found, made = self._inner(select)
        span = span_of(outer.sql, select)
        if found is not None:
            inside = outer.inside(select, found, self)
            predicate = inside.where()
            made_inside = frozenset(mark.column.table for mark in inside.marks)
            rows, pairs, condition = _correlated(found, predicate, made_inside)
            wanted = _wanted(node, select, inside)
            rows = replace(rows, source=with_marks(rows, inside.marks))
        elif made is not None:
            rows, pairs, condition = made.steps[0].rows, [], None
            wanted = [] if isinstance(node, exp.Exists) else [expr for _, expr in made.scope.listed]
        else:
            raise UnsupportedSQL(
                "a sub-query in an expression is of rows, and this one makes an answer.",
                span=span,
                hint="GROUP BY in it has to name the privacy unit, or what leads to it.",
            )
        asked = _asked(node)
        if len(asked) != len(wanted):
            raise SQLSyntaxError(f"IN compares {len(asked)} values with {len(wanted)} columns.", span=span)
        sides = [(each, outer.inner.bind(each), other) for each, other in zip(asked, wanted, strict=True)]
        own = frozenset(column.table for column in columns_of(rows.source))
        around = [other for _, _, other in sides if places_of(other) and places_of(other).isdisjoint(own)]
        items = [_equal(*each, outer) for each in sides if each[2] not in around]
        apart = [(one, other) for one, other in items if not places_of(other) <= own]
        plain = len(items) == 1 and not pairs and condition is None and not apart
        nullable = any(unfiltered(side).nullable for pair in items for side in pair)
        if nullable and not plain:
            raise UnsupportedSQL(
                "IN of several columns, or of a sub-query that reads the row it is asked of, is not supported where "
                "NULLs are possible.",
                span=span,
                hint="Write EXISTS (SELECT ...) with the equality in its WHERE.",
            )
        if not rows.public:  # the one pair says whose rows they are, and rows of nobody are left out
            nullable = any(unfiltered(each).nullable for each, _ in items)
        said = [*([] if condition is None else [condition]), *(_is_equal(*pair) for pair in apart)]
        keys = (*(pair for pair in items if pair not in apart), *pairs)
        reads = frozenset[str]().union(*(places_of(each) for each in (*(one for one, _ in keys), *said))) - own
        fact = Fact(BOOLEAN, nullable=nullable, whole=True)
        place = outer.whole.place("(sub-query)")
        column = Column(f"found{place.removeprefix('(sub-query)')}", Type.BOOLEAN, fact, place)
        named = next((part for other in around for part in columns(other)), None)
        mark = Marking(rows, keys, column, all_of(said), nullable, span, named)
        _asked_of(outer, reads, span).marks.append(mark)
        # A row equals, in a column of its own, all rows of the sub-query or none: s IN (SELECT u FROM t) with u of the
        # same row as s is s = u where t has rows, and FALSE where it has none, whichever of the three s = u is.
        alike = [outer.inner.apply("eq", each, [one, other]) for each, one, other in sides if other in around]
        found_ = all_of([*alike, column])
        assert found_ is not None  # the mark is one
        return found_


def _asked_of(outer: SelectBinder, reads: frozenset[str], span: Span | None) -> SelectBinder:
    """The SELECT of whose rows a sub-query is asked: that whose columns it reads, the one it stands in where it reads
    none. Raises UnsupportedSQL."""
    for each in (outer, outer.around):
        if each is not None and reads <= each.places:
            return each
    raise UnsupportedSQL(
        "a sub-query in an expression is asked of the rows of one SELECT, and this one reads columns of two.",
        span=span,
        hint="Join its table in the FROM of the inner one.",
    )


def _asked(node: exp.Expr) -> list[exp.Expr]:
    if not isinstance(node, exp.In):
        return []
    asked = node.this.this if isinstance(node.this, exp.Paren) else node.this
    return list(asked.expressions) if isinstance(asked, exp.Tuple) else [asked]


def _wanted(node: exp.Expr, select: exp.Select, inside: SelectBinder) -> list[Expr]:
    """The columns that IN compares with. EXISTS compares with none; what its list says has a meaning all the same."""
    wanted = []
    for item, _ in items_of(select):
        if not is_star(item):
            wanted.append(inside.inner.bind(item))
        elif isinstance(node, exp.Exists):
            inside.scope.check_table(item, inside.sql)
        else:
            raise UnsupportedSQL("IN (SELECT * ...) is not supported. Name the column.", span=span_of(inside.sql, item))
    return [] if isinstance(node, exp.Exists) else wanted


def _is_equal(one: Expr, other: Expr) -> Expr:
    made = call(FUNCTIONS["eq"], one, other)
    assert made is not None  # they are typed as = types them
    return made


def _equal(node: exp.Expr, one: Expr, other: Expr, outer: SelectBinder) -> Pair:
    """The two sides of an equality, typed as = types them."""
    typed = outer.inner.apply("eq", node, [one, other])
    pair = equality(typed)
    return (one, other) if pair is None else pair


def _correlated(people: People, predicate: Expr | None, marks: frozenset[str]) -> tuple[Rows, list[Pair], Expr | None]:
    """The sub-query's own rows, its equalities with the rows that it is asked of, and what else it says of both."""
    own = marks.union(*(step.rows.names for step in people.steps))
    inside: list[Expr] = []
    pairs: list[Pair] = []
    both: list[Expr] = []
    for term in conjuncts(predicate) if predicate is not None else []:
        places, pair = places_of(term), equality(term)
        if places <= own:
            inside.append(term)
        elif pair is not None and places_of(pair[0]) <= own and places_of(pair[1]).isdisjoint(own):
            pairs.append((pair[1], pair[0]))
        elif pair is not None and places_of(pair[1]) <= own and places_of(pair[0]).isdisjoint(own):
            pairs.append(pair)
        else:
            both.append(term)
    return assembled(people, all_of(inside)), pairs, all_of(both)
