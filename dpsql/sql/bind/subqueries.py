"""Sub-queries in expressions: x IN (SELECT ...) and EXISTS (SELECT ...) as marks on the outer rows, and aggregates of
public tables as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnknownColumn, UnknownTable, UnsupportedSQL
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Column, Expr, Fact, Literal, Slot, call, columns, conjuncts, unfiltered
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Pair, row_scans_of, scans_of
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import BOOLEAN
from dpsql.sql.bind.joins import assembled
from dpsql.sql.bind.mark_columns import PendingMark, with_marks
from dpsql.sql.bind.private_rows import PrivateRows, Rows, all_of, columns_of, equality, places_of
from dpsql.sql.bind.select import SelectBinder
from dpsql.sql.names.select_list import is_aggregating, is_star, items_of
from dpsql.sql.names.star_modifiers import refuse_changes
from dpsql.sql.syntax.parse import span_of

Found = tuple[PrivateRows | None, PrivateRows | None]


class Membership:
    """Binder of IN (SELECT ...), EXISTS (...) and scalar sub-queries. `inner` binds the FROM of a sub-query, or an
    aggregating one as a whole; `rows` binds its FROM."""

    def __init__(self, inner: Callable[[exp.Select], Found], rows: Callable[[exp.Select], PrivateRows | None]) -> None:
        self._inner = inner
        self._rows = rows
        self._of_filter = False
        """True if the last bound condition is FALSE instead of NULL."""

    def bind(self, node: exp.Expr, outer: SelectBinder) -> Expr | None:
        """Return the mark column of a membership, the same for the same text; None for any other node. Raises a
        QueryRefused."""
        if node not in outer.memberships:
            self._of_filter = False
            marked = self._bound(node, outer)
            if marked is None or self._of_filter:  # elsewhere, the same text may be NULL
                return marked
            outer.memberships[node] = marked
        return outer.memberships[node]

    def value(self, node: exp.Subquery, outer: SelectBinder) -> Expr:
        """Evaluate a scalar sub-query: one aggregate over public tables. Raises UnsupportedSQL."""
        span = span_of(outer.sql, node)
        if isinstance(node.this, exp.Select):
            _check_clauses_of_value(node.this, span)
        people = self._rows(node.this) if isinstance(node.this, exp.Select) else None
        public = outer.whole.public
        if people is None or public is None or not all(step.rows.public for step in people.steps):
            raise UnsupportedSQL(
                "a sub-query as a value reads public tables: one over people's rows would have to be private itself.",
                span=span,
                hint="Ask it first, and write its answer in its place (in Python as a parameter too: params={...}).",
            )
        inside = outer.inside(node.this, people, self)
        predicate = inside.where()
        own = frozenset[str]().union(*(step.rows.names for step in people.steps))
        own |= {mark.column.table for mark in inside.marks}
        aggregation, kind = _one_aggregate(_of_one_row(node.this, people), inside, span)
        read = [each for each in (predicate, aggregation.argument) if each is not None]
        if any(not places_of(each) <= own for each in read):
            raise UnsupportedSQL(
                "a sub-query as a value cannot read the row that it stands beside.",
                span=span,
                hint="Join the table on those columns instead, and use its column.",
            )
        source = with_marks(assembled(people, predicate), inside.marks)
        scanned = (scan.table for scan in scans_of(source) if not scan.table.is_constant)
        outer.whole.computed_from |= {table.name.casefold() for table in scanned}
        return Literal(public.aggregate(source, aggregation, kind), kind)

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
        span = span_of(outer.sql, select)
        asked = self._asked(node, select, outer)
        sides = _sides(node, asked.wanted, outer, span)
        own = frozenset(column.table for column in columns_of(asked.rows.source))
        around = [other for _, _, other in sides if places_of(other) and places_of(other).isdisjoint(own)]
        items = [_equal(*each, outer) for each in sides if each[2] not in around]
        apart = [(one, other) for one, other in items if not places_of(other) <= own]
        plain = len(items) == 1 and not asked.pairs and asked.condition is None and not apart
        nullable = _nullable(asked, items, span, plain=plain or _filters(node))
        self._of_filter = nullable and not plain
        nullable = nullable and plain
        conditions = [*([] if asked.condition is None else [asked.condition]), *(_is_equal(*pair) for pair in apart)]
        keys = (*(pair for pair in items if pair not in apart), *asked.pairs)
        reads = frozenset[str]().union(*(places_of(each) for each in (*(one for one, _ in keys), *conditions))) - own
        fact = Fact(BOOLEAN, nullable=nullable, whole=True)
        place = outer.whole.place("(sub-query)")
        column = Column(f"found{place.removeprefix('(sub-query)')}", Type.BOOLEAN, fact, place)
        named = next((part for other in around for part in columns(other)), None)
        mark = PendingMark(asked.rows, keys, column, all_of(conditions), nullable, span, named)
        _asked_of(outer, reads, span).marks.append(mark)
        # If the compared column belongs to the outer row, the row equals all rows of the sub-query or none. In s IN
        # (SELECT u FROM t) with u of s's row, the result is s = u (TRUE, FALSE or NULL) if t has rows, and otherwise
        # FALSE.
        alike = [outer.inner.apply("eq", each, [one, other]) for each, one, other in sides if other in around]
        marked = all_of([*alike, column])
        assert marked is not None  # the mark is one
        return marked

    def _asked(self, node: exp.Expr, select: exp.Select, outer: SelectBinder) -> _SubqueryRows:
        """Return the rows of a sub-query, from its FROM if it is row-wise. Raises UnsupportedSQL for an answer."""
        try:
            people, relation = self._inner(select)
        except (UnknownColumn, UnknownTable) as error:
            from dpsql.sql.names.outer_references import of_outer_row  # imported only when needed

            names = {part.alias.casefold() for part in outer.scope.parts or (outer.scope,)} | set(outer.scope.columns)
            raise of_outer_row(error, names) or error from None
        if people is not None:
            inside = outer.inside(select, people, self)
            predicate = inside.where()
            made_inside = frozenset(mark.column.table for mark in inside.marks)
            rows, pairs, condition = _correlated(people, predicate, made_inside)
            wanted = _wanted(node, select, inside)
            return _SubqueryRows(replace(rows, source=with_marks(rows, inside.marks)), wanted, pairs, condition)
        if relation is None:
            raise UnsupportedSQL(
                "a sub-query in an expression is of rows, and this one makes an answer.",
                span=span_of(outer.sql, select),
                hint="GROUP BY in it has to name the privacy unit, or what leads to it.",
            )
        wanted = [] if isinstance(node, exp.Exists) else [expr for _, expr in relation.scope.listed]
        return _SubqueryRows(relation.steps[0].rows, wanted, [], None)


@dataclass(frozen=True)
class _SubqueryRows:
    """The rows of a sub-query in an expression, its columns that IN compares (`wanted`), its equalities with the outer
    rows, and its other conditions on both."""

    rows: Rows
    wanted: list[Expr]
    pairs: list[Pair]
    condition: Expr | None


def _check_clauses_of_value(select: exp.Select, span: Span | None) -> None:
    words = {"group": "GROUP BY", "order": "ORDER BY", "privacy": "DIFFERENTIAL_PRIVACY"}
    for clause in ("group", "having", "limit", "offset", "order", "distinct", "privacy"):
        if select.args.get(clause) is not None:
            word = words.get(clause, clause.upper())
            raise UnsupportedSQL(f"a sub-query as a value has no {word}.", span=span)


def _of_one_row(select: exp.Select, people: PrivateRows) -> exp.Select:
    """Rewrite a SELECT of one column from a table of at most one row as MAX of it: its value, or NULL."""
    few = [scan.table.rows for step in people.steps for scan in row_scans_of(step.rows.source)]
    items = items_of(select)
    if not all(rows is not None and rows <= 1 for rows in few) or len(items) != 1 or is_aggregating(select):
        return select
    largest = select.copy()
    largest.set("expressions", [exp.Max(this=items[0][0].copy())])
    return largest


def _one_aggregate(select: exp.Select, inside: SelectBinder, span: Span | None) -> tuple[Aggregation, Type]:
    """Return the single aggregate of a scalar sub-query, and its type. Raises UnsupportedSQL."""
    items = items_of(select)
    slot = inside.aggregate(items[0][0]) if len(items) == 1 else None
    if not isinstance(slot, Slot) or len(inside.aggregations) != 1:
        raise UnsupportedSQL("a sub-query as a value is one aggregate, such as (SELECT MAX(x) FROM t).", span=span)
    if slot.type.opaque:
        raise UnsupportedSQL("a sub-query as a value is a number, a text, a boolean or a time.", span=span)
    return next(iter(inside.aggregations)), slot.type


def _sides(
    node: exp.Expr, wanted: list[Expr], outer: SelectBinder, span: Span | None
) -> list[tuple[exp.Expr, Expr, Expr]]:
    """Return the values that IN compares, as written and as bound, each with its column."""
    values = _values(node)
    if len(values) != len(wanted):
        raise SQLSyntaxError(f"IN compares {len(values)} values with {len(wanted)} columns.", span=span)
    return [(each, outer.inner.bind(each), other) for each, other in zip(values, wanted, strict=True)]


def _filters(node: exp.Expr) -> bool:
    """Return whether a condition only filters rows, where NULL and FALSE are equivalent."""
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Where)


def _nullable(asked: _SubqueryRows, items: list[Pair], span: Span | None, *, plain: bool) -> bool:
    """Return whether the mark can be NULL. Raises UnsupportedSQL if it can and is not `plain`: one value and one
    column, or a filter."""
    nullable = any(unfiltered(side).nullable for pair in items for side in pair)
    if nullable and not plain:
        raise UnsupportedSQL(
            "IN of several columns, or of a sub-query that reads the row it is asked of, is not supported where "
            "NULLs are possible.",
            span=span,
            hint="Write EXISTS (SELECT ...) with the equality in its WHERE.",
        )
    if asked.rows.public:
        return nullable
    # The one pair compares privacy units, and rows without a unit are dropped.
    return any(unfiltered(value).nullable for value, _ in items)


def _asked_of(outer: SelectBinder, reads: frozenset[str], span: Span | None) -> SelectBinder:
    """Return the SELECT whose rows a sub-query reads: by its columns, or the enclosing one if it reads none. Raises
    UnsupportedSQL."""
    for each in (outer, outer.around):
        if each is not None and reads <= each.places:
            return each
    raise UnsupportedSQL(
        "a sub-query in an expression is asked of the rows of one SELECT, and this one reads columns of two.",
        span=span,
        hint="Join its table in the FROM of the inner one.",
    )


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Return the values before IN; EXISTS has none."""
    if not isinstance(node, exp.In):
        return []
    values = node.this.this if isinstance(node.this, exp.Paren) else node.this
    return list(values.expressions) if isinstance(values, exp.Tuple) else [values]


def _wanted(node: exp.Expr, select: exp.Select, inside: SelectBinder) -> list[Expr]:
    """Return the columns that IN compares. EXISTS compares none, but its list is still checked."""
    wanted = []
    for item, _ in items_of(select):
        if not is_star(item):
            wanted.append(inside.inner.bind(item))
        else:
            refuse_changes(item, inside.sql)
            wanted += [expr for _, expr in inside.scope.check_table(item, inside.sql).starred]
    return [] if isinstance(node, exp.Exists) else wanted


def _is_equal(one: Expr, other: Expr) -> Expr:
    made = call(FUNCTIONS["eq"], one, other)
    assert made is not None  # typed as = types them
    return made


def _equal(node: exp.Expr, one: Expr, other: Expr, outer: SelectBinder) -> Pair:
    """Return the two sides of an equality, typed as = types them."""
    typed = outer.inner.apply("eq", node, [one, other])
    pair = equality(typed)
    return (one, other) if pair is None else pair


def _correlated(
    people: PrivateRows, predicate: Expr | None, marks: frozenset[str]
) -> tuple[Rows, list[Pair], Expr | None]:
    """Return the sub-query's own rows, its equalities with the outer rows, and its other conditions on both."""
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
