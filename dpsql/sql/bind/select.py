"""Binding of one SELECT in its scope: the part common to private rows and answers.

Names below the aggregation mean columns. An expression above it is bound in the same way; then every part that is a
GROUP BY term becomes that key's slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Call, Column, Expr, Literal, Slot, columns, rebuild, unfiltered, walk
from dpsql.plan.query import Finish, Order, Output
from dpsql.schema.columns import Type
from dpsql.sql.bind.aggregate_calls import is_aggregate, text_of_item
from dpsql.sql.bind.aggregates import AggregateBinder
from dpsql.sql.bind.grouping_sets import SEVERAL, GroupingSet, grouping_sets
from dpsql.sql.bind.mark_columns import PendingMark
from dpsql.sql.bind.private_rows import PrivateRows
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.names.scopes import Scope, StatementState
from dpsql.sql.names.select_list import aggregate_in, alias_index, fresh, is_empty_set, items_of
from dpsql.sql.names.table_names import is_outer
from dpsql.sql.syntax.nodes import PriorValue
from dpsql.sql.syntax.parse import span_of

T = TypeVar("T")
MOST_ROWS = 10**18
_MOST_NAMED = 64
"""Columns inside a larger named expression are not recorded under its name: a text could repeat it thousands of
times."""

_COMPUTED = (exp.Literal, exp.Placeholder, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.IntDiv)
"""Nodes allowed in a computed LIMIT."""


def _is_membership(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


class Memberships(Protocol):
    """Binder of a SELECT's sub-queries, injected because they are SELECTs themselves."""

    def bind(self, node: exp.Expr, outer: SelectBinder) -> Expr | None:
        """Return the mark column of a membership, or None for any other node."""

    def value(self, node: exp.Subquery, outer: SelectBinder) -> Expr:
        """Bind a sub-query as a value."""


class SelectBinder(AggregateBinder):
    """Binder of one aggregating SELECT. Subclasses define its rows and the available aggregates."""

    levels = False
    """True if GROUP BY may have several grouping sets."""

    def __init__(
        self,
        whole: StatementState,
        select: exp.Select,
        scope: Scope,
        member: Memberships | None = None,
        around: SelectBinder | None = None,
    ) -> None:
        self.whole = whole
        self.member = member
        self.around = around
        """The SELECT whose expression contains this one: it may resolve names unknown here."""
        self.marks: list[PendingMark] = []
        self.memberships: dict[exp.Expr, Expr] = {}
        self.select = select
        self.scope = scope
        super().__init__(whole.sql, ScalarBinder(whole.sql, self.inner_leaf, whole.params, whole.used))
        self.outer = ScalarBinder(self.sql, self.outer_leaf, whole.params, whole.used)
        self.key_spans: list[Span | None] = []
        self.sets: tuple[GroupingSet, ...] = ()
        self.in_having = False
        self.named_items: list[tuple[exp.Expr, str]] = []
        """The items whose aliases WHERE and GROUP BY may name, where no column has the name."""
        self.outputs: list[Output] = []
        self.named: dict[Expr, exp.Column] = {}
        """The first mention of each column, for messages."""

    @property
    def places(self) -> frozenset[str]:
        """Return the places in the query whose columns belong to its own rows."""
        read = frozenset(column.table for _, expr in self.scope.listed for column in columns(expr))
        return read | {mark.column.table for mark in self.marks}

    # The clauses, in the order in which names become available.

    def where(self) -> Expr | None:
        clause = self.select.args.get("where")
        if clause is None:
            return None
        aggregate = aggregate_in(clause)
        if aggregate is not None:
            raise self._aggregate_in_where(aggregate)
        self.named_items = items_of(self.select)
        condition = self.condition(self.inner.bind(clause.this), clause.this, "WHERE")
        self.named_items = []
        return condition

    def _aggregate_in_where(self, written: exp.Expr) -> SQLSyntaxError:
        return SQLSyntaxError(
            "an aggregate cannot stand in WHERE, which is about single rows.",
            span=span_of(self.sql, written),
            hint="Conditions on an aggregate go into HAVING.",
        )

    def bind_keys(self, items: list[tuple[exp.Expr, str]]) -> None:
        group = self.select.args.get("group")
        if group is not None and not group.expressions:
            raise SQLSyntaxError("GROUP BY names no column.", span=span_of(self.sql, group))
        terms = [each for each in group.expressions if not is_empty_set(each)] if group else []
        if group is not None and not self.levels and any(isinstance(term, SEVERAL) for term in terms):
            raise UnsupportedSQL(
                "ROLLUP, CUBE and GROUPING SETS stand in the GROUP BY of an answer about people's rows.",
                span=span_of(self.sql, group),
            )
        self.sets = grouping_sets(terms, lambda node: self.add_key(node, self._key_target(node, items)), self.sql)
        for node in terms if not self.sets else []:
            self.add_key(node, self._key_target(node, items))

    def add_key(self, node: exp.Expr, target: exp.Expr) -> int:
        """Bind a key, and return its position."""
        span = span_of(self.sql, node)
        if aggregate_in(target):
            raise SQLSyntaxError("GROUP BY cannot hold an aggregate.", span=span)
        self.named_items = items_of(self.select)
        expr = self.inner.bind(target)
        self.named_items = []
        if isinstance(expr, Literal):
            raise SQLSyntaxError(
                f"GROUP BY {expr} is a constant.", span=span, hint="Name a column, an alias or a place in SELECT."
            )
        if expr not in self.keys:
            name = expr.name if isinstance(expr, Column) else str(expr)
            self.keys[expr] = Slot(len(self.keys), name, expr.type, unfiltered(expr).wide)
            self.key_spans.append(span)
        return self.keys[expr].index

    def _key_target(self, node: exp.Expr, items: list[tuple[exp.Expr, str]]) -> exp.Expr:
        """Resolve a GROUP BY term: a column name wins over an alias, a number is a position in SELECT."""
        target = node.this if isinstance(node, exp.Paren) else node
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            return self.ordinal(target, [item for item, _ in items], "GROUP BY")
        if isinstance(target, exp.Column) and not target.table and not self.scope.has(target):
            named = [item for item, alias in items if alias and alias.casefold() == target.name.casefold()]
            return named[0] if named else target
        return target

    def ordinal(self, node: exp.Expr, places: Sequence[T], clause: str) -> T:
        text = str(node.this)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= len(places):
            raise SQLSyntaxError(
                f"{clause} {text} is not a place in SELECT, which has {len(places)}.", span=span_of(self.sql, node)
            )
        return places[int(text) - 1]

    def released(self, node: exp.Expr) -> Expr:
        """Bind an expression above the aggregation, where only keys and aggregates may remain."""
        self.named.clear()
        bound = self.outer.bind(node)
        expr = rebuild(bound, self.keys) if self.keys else bound
        for part in walk(expr):
            if isinstance(part, Column):
                raise self.raw_column(part)
        return expr

    def raw_column(self, column: Column) -> Exception:
        """Return the refusal of a column left above the aggregation."""
        node = self.named.get(column)
        name, span = (column.name, None) if node is None else (node.name, span_of(self.sql, node))
        return SQLSyntaxError(
            f'"{name}" is neither in GROUP BY nor inside an aggregate.',
            span=span,
            hint=f"Add it to GROUP BY: {column}.",
        )

    def bind_outputs(self, items: list[tuple[exp.Expr, str]]) -> None:
        taken: set[str] = set()
        for node, alias in items:
            name = fresh(alias or text_of_item(node, self.sql, self.scope.columns), taken)
            self.outputs.append(Output(name, self.released(node)))

    def finish(self) -> Finish:
        having = self.select.args.get("having")
        self.in_having = True
        condition = None if having is None else self.condition(self.released(having.this), having.this, "HAVING")
        self.in_having = False
        order = self.select.args.get("order")
        terms = tuple(self._order_term(node) for node in order.expressions) if order else ()
        distinct = self.select.args.get("distinct") is not None
        limit, offset = self.whole_number("limit"), self.whole_number("offset") or 0
        return Finish(tuple(self.outputs), condition, terms, limit, offset, distinct)

    def _order_term(self, node: exp.Expr) -> Order:
        target = node.this
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            expr = self.ordinal(target, self.outputs, "ORDER BY").expr
        else:
            expr = self.by_alias(target) or self.released(target)
            if isinstance(expr, Literal):
                raise SQLSyntaxError(f"ORDER BY {expr} is a constant.", span=span_of(self.sql, node))
        return Order(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def whole_number(self, clause: str) -> int | None:
        node = self.select.args.get(clause)
        if node is None:
            return None
        constant = all(isinstance(each, _COMPUTED) for each in node.expression.walk())
        value = self.inner.bind(node.expression) if constant else None
        if isinstance(value, Literal) and value.type is Type.INTEGER and isinstance(value.value, int):
            found: int | None = value.value if 0 <= value.value < MOST_ROWS else None
            if found is not None:
                return found
        raise SQLSyntaxError(f"{clause.upper()} takes a whole number.", span=span_of(self.sql, node))

    # Names.

    def inside(self, select: exp.Select, people: PrivateRows, member: Memberships) -> SelectBinder:
        """Return the binder of a sub-query in one of its expressions."""
        return SelectBinder(self.whole, select, people.scope, member, around=self)

    def inner_leaf(self, node: exp.Expr) -> Expr | None:
        """Bind a leaf below the aggregation: columns, and memberships in sub-queries."""
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, PriorValue):
            return self.whole.values[node.name]
        if _is_membership(node):
            return self.membership(node)
        if isinstance(node, exp.Subquery) and self.member is not None:
            return self.member.value(node, self)
        if isinstance(node, exp.Window):
            return self.window(node)
        if isinstance(node, exp.Coalesce) and self.scope.either:
            return self.scope.either_side(node, self.inner.bind, self.inner.apply)
        if isinstance(node, exp.AggFunc) or is_aggregate(node):
            raise SQLSyntaxError("an aggregate cannot stand inside another.", span=span_of(self.sql, node))
        return None

    def outer_leaf(self, node: exp.Expr) -> Expr | None:
        """Bind a leaf above the aggregation: aliases of the SELECT list, columns (only keys may remain) and
        aggregates."""
        if isinstance(node, exp.Column):
            hidden = self.scope.has(node) and not (self.in_having and self._is_no_key(node))
            alias = None if hidden else self.by_alias(node)
            return alias if alias is not None else self.column(node)
        if isinstance(node, PriorValue):
            return self.whole.values[node.name]
        if _is_membership(node):
            return self.membership(node)
        if isinstance(node, exp.Subquery) and self.member is not None:
            return self.member.value(node, self)
        if isinstance(node, exp.Window):
            return self.window(node)
        if isinstance(node, exp.Coalesce) and self.scope.either:
            return self.scope.either_side(node, self.outer.bind, self.outer.apply)
        return self.aggregate(node)

    def window(self, node: exp.Window) -> Expr:
        """Bind a window function, if this kind of SELECT allows it."""
        from dpsql.sql.bind.window_refusals import window_refused  # imported with the first window

        raise window_refused(node, self.sql, getattr(self, "people", None), "beside aggregates or outermost")

    def membership(self, node: exp.Expr) -> Expr | None:
        """Bind IN (SELECT ...) and EXISTS (SELECT ...) to the column that marks their rows."""
        if self.member is None:
            raise UnsupportedSQL(
                "a sub-query in an expression stands in WHERE, GROUP BY or an aggregate's argument, of people's rows.",
                span=span_of(self.sql, node),
            )
        return self.member.bind(node, self)

    def item_named(self, node: exp.Column) -> Expr | None:
        """Bind the item whose alias a name means below the aggregation. An item may name earlier ones."""
        at = alias_index(node.name, self.named_items)
        if at is None:
            return None
        item, items = self.named_items[at][0], self.named_items
        if aggregate_in(item) is not None:
            raise self._aggregate_in_where(node)
        self.named_items = items[:at]
        expr = self.inner.bind(item)
        self.named_items = items
        return expr

    def column(self, node: exp.Column) -> Expr:
        hidden = node.table or not self.named_items or self.scope.has(node)
        named = None if hidden else self.item_named(node)
        if named is not None:
            return named
        if self.around is not None and self.around.knows(node) and is_outer(self.select, node, self.scope, self.sql):
            if not self.around.scope.knows(node):
                raise UnsupportedSQL(
                    f"{node.name} is a column of a SELECT further out.",
                    span=span_of(self.sql, node),
                    hint="A sub-query in an expression reads its own rows and those of the SELECT that it stands in.",
                )
            return self.around.column(node)
        expr = self.scope.column(node, self.sql)
        if not isinstance(expr, Call) or expr.size <= _MOST_NAMED:
            for part in walk(expr):
                if isinstance(part, Column):
                    self.named.setdefault(part, node)
        return expr

    def knows(self, node: exp.Column) -> bool:
        """Return whether a column's name is known here, or in an enclosing SELECT."""
        return self.scope.knows(node) or (self.around is not None and self.around.knows(node))

    def _is_no_key(self, node: exp.Column) -> bool:
        """Return whether a column's name means no key. In HAVING it then means an alias, if there is one."""
        return not node.table and self.scope.columns[node.name.casefold()][1] not in self.keys

    def by_alias(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, exp.Column) and not node.table:
            for output in self.outputs:
                if output.name.casefold() == node.name.casefold():
                    return output.expr
        return None
