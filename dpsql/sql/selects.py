"""One SELECT, bound in its scope: what is common to questions about people and to those about answers.

Below the aggregation names mean columns; above it an expression is bound in the same way, and then every part of it
that is a GROUP BY term becomes that key's slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import ErrorLevel, exp

from dpsql.errors import Span, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.intervals import Interval
from dpsql.schema import Type
from dpsql.sql.aggregate_calls import AGGREGATES, Written, called, is_aggregate, name_of, written
from dpsql.sql.dialect import Named, Private
from dpsql.sql.expressions import Call, Column, Expr, Literal, Report, Slot, rebuild, walk
from dpsql.sql.grouping import SEVERAL, GroupingSet, grouping_sets
from dpsql.sql.options import AggregateOptions, read_aggregate_options
from dpsql.sql.parse import span_of
from dpsql.sql.plan import CHOSEN, EXACT, PAIRS, SPREADS, AggregateKind, Aggregation, Finish, Order, Output
from dpsql.sql.scalars import ScalarBinder
from dpsql.sql.scopes import Scope
from dpsql.sql.select_list import aggregate_in, fresh
from dpsql.sql.statementwide import Statementwide

if TYPE_CHECKING:
    from dpsql.sql.people import People
    from dpsql.sql.subqueries import Marking, Membership

MOST_AGGREGATES = 100
MOST_ROWS = 10**18
_DIALECT = Private()
REPORT_LEVEL = 0.95
_MOST_NAMED = 64
"""Columns inside a name for a larger expression are not remembered by it: a text could say it thousands of times."""


_PLAINLY_NAMED: Mapping[type[exp.Expr], str] = {
    exp.Count: "COUNT", exp.CountIf: "COUNT_IF", exp.Sum: "SUM", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX"
}  # fmt: skip
WITHOUT_INTERVAL = CHOSEN | {AggregateKind.REGR_INTERCEPT, AggregateKind.REGR_R2}
"""How far off a value is that was chosen is private; of the others no interval is known."""
PARTS = 10**6
"""Quantiles are read to the nearest millionth. With one denominator for all of them the integers that ranks are
compared by have one size, so that how long that takes does not tell how many rows there are."""
MOST_CHOSEN = 100
"""APPROX_TOP_K gives at most so many values."""


def _is_membership(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


class SelectBinder:
    """Binds one aggregating SELECT. Subclasses say what its rows are, and which aggregates there are."""

    kinds: frozenset[AggregateKind] = EXACT
    levels = False
    """Whether GROUP BY may have several grouping sets."""

    def __init__(
        self,
        whole: Statementwide,
        select: exp.Select,
        scope: Scope,
        member: Membership | None = None,
        around: SelectBinder | None = None,
    ) -> None:
        self.whole = whole
        self.member = member
        self.around = around
        """The SELECT in one of whose expressions this one stands: names that are none here may be some there."""
        self.marks: list[Marking] = []
        self.memberships: dict[exp.Expr, Expr] = {}
        self.sql = whole.sql
        self.select = select
        self.scope = scope
        self.inner = ScalarBinder(self.sql, self.inner_leaf, whole.params, whole.used)
        self.outer = ScalarBinder(self.sql, self.outer_leaf, whole.params, whole.used)
        self.keys: dict[Expr, Slot] = {}
        self.key_spans: list[Span | None] = []
        self.sets: tuple[GroupingSet, ...] = ()
        self.aggregations: dict[Aggregation, Slot] = {}
        self.outputs: list[Output] = []
        self.named: dict[Expr, exp.Column] = {}
        """Where each column is first named, for messages."""

    # The clauses, in the order in which names come to mean something.

    def where(self) -> Expr | None:
        clause = self.select.args.get("where")
        if clause is None:
            return None
        aggregate = aggregate_in(clause)
        if aggregate is not None:
            raise SQLSyntaxError(
                "an aggregate cannot stand in WHERE, which is about single rows.",
                span=span_of(self.sql, aggregate),
                hint="Conditions on an aggregate go into HAVING.",
            )
        return self.condition(self.inner.bind(clause.this), clause.this, "WHERE")

    def condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        if isinstance(expr, Literal) and expr.value is None:
            return Literal(None, Type.BOOLEAN)
        if expr.type is not Type.BOOLEAN:
            raise TypeMismatch(f"{clause} wants a condition, got {expr.type}.", span=span_of(self.sql, node))
        return expr

    def bind_keys(self, items: list[tuple[exp.Expr, str]]) -> None:
        group = self.select.args.get("group")
        if group is not None and not group.expressions:
            raise SQLSyntaxError("GROUP BY names no column.", span=span_of(self.sql, group))
        terms = group.expressions if group else []
        if group is not None and not self.levels and any(isinstance(term, SEVERAL) for term in terms):
            raise UnsupportedSQL(
                "ROLLUP, CUBE and GROUPING SETS stand in the GROUP BY of an answer about people's rows.",
                span=span_of(self.sql, group),
            )
        self.sets = grouping_sets(terms, lambda node: self.add_key(node, self._key_target(node, items)), self.sql)
        for node in terms if not self.sets else []:
            self.add_key(node, self._key_target(node, items))

    def add_key(self, node: exp.Expr, target: exp.Expr) -> int:
        """Bind a key, and say which it is."""
        span = span_of(self.sql, node)
        if aggregate_in(target):
            raise SQLSyntaxError("GROUP BY cannot hold an aggregate.", span=span)
        expr = self.inner.bind(target)
        if isinstance(expr, Literal):
            raise SQLSyntaxError(
                f"GROUP BY {expr} is a constant.", span=span, hint="Name a column, an alias or a place in SELECT."
            )
        if expr not in self.keys:
            self.keys[expr] = Slot(len(self.keys), expr.name if isinstance(expr, Column) else str(expr), expr.type)
            self.key_spans.append(span)
        return self.keys[expr].index

    def _key_target(self, node: exp.Expr, items: list[tuple[exp.Expr, str]]) -> exp.Expr:
        """What a GROUP BY term means: a column's name wins over an alias, a number is a place in SELECT."""
        target = node.this if isinstance(node, exp.Paren) else node
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            return self.ordinal(target, [item for item, _ in items], "GROUP BY")
        if isinstance(target, exp.Column) and not target.table and not self.scope.has(target):
            named = [item for item, alias in items if alias and alias.casefold() == target.name.casefold()]
            return named[0] if named else target
        return target

    def ordinal(self, node: exp.Expr, places: list[exp.Expr], clause: str) -> exp.Expr:
        text = str(node.this)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= len(places):
            raise SQLSyntaxError(
                f"{clause} {text} is not a place in SELECT, which has {len(places)}.", span=span_of(self.sql, node)
            )
        return places[int(text) - 1]

    def released(self, node: exp.Expr) -> Expr:
        """An expression above the aggregation: keys and aggregates alone may remain of the columns."""
        self.named.clear()
        bound = self.outer.bind(node)
        expr = rebuild(bound, self.keys) if self.keys else bound
        for part in walk(expr):
            if isinstance(part, Column):
                raise self.raw_column(part)
        return expr

    def raw_column(self, column: Column) -> Exception:
        """The refusal of a column that is left above the aggregation."""
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
            name = fresh(alias or self.text(node), taken)
            self.outputs.append(Output(name, self.released(node)))

    def finish(self) -> Finish:
        having = self.select.args.get("having")
        held = None if having is None else self.condition(self.released(having.this), having.this, "HAVING")
        order = self.select.args.get("order")
        terms = tuple(self._order_term(node) for node in order.expressions) if order else ()
        distinct = self.select.args.get("distinct") is not None
        limit, offset = self.whole_number("limit"), self.whole_number("offset") or 0
        return Finish(tuple(self.outputs), held, terms, limit, offset, distinct)

    def _order_term(self, node: exp.Expr) -> Order:
        target = node.this
        if isinstance(target, exp.Literal) and not target.args.get("is_string"):
            self.ordinal(target, self.select.expressions, "ORDER BY")
            expr = self.outputs[int(str(target.this)) - 1].expr
        else:
            expr = self.by_alias(target) or self.released(target)
            if isinstance(expr, Literal):
                raise SQLSyntaxError(f"ORDER BY {expr} is a constant.", span=span_of(self.sql, node))
        return Order(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def whole_number(self, clause: str) -> int | None:
        node = self.select.args.get(clause)
        if node is None:
            return None
        value = self.inner.bind(node.expression) if isinstance(node.expression, exp.Literal | exp.Placeholder) else None
        if isinstance(value, Literal) and value.type is Type.INTEGER and isinstance(value.value, int):
            found: int | None = value.value if 0 <= value.value < MOST_ROWS else None
            if found is not None:
                return found
        raise SQLSyntaxError(f"{clause.upper()} takes a whole number.", span=span_of(self.sql, node))

    # Names.

    def inside(self, select: exp.Select, people: People, member: Membership) -> SelectBinder:
        """The binder of a sub-query in one of this one's expressions."""
        return SelectBinder(self.whole, select, people.scope, member, around=self)

    def inner_leaf(self, node: exp.Expr) -> Expr | None:
        """Below the aggregation: columns, and memberships in sub-queries."""
        if isinstance(node, exp.Column):
            return self.column(node)
        if _is_membership(node):
            return self.membership(node)
        if isinstance(node, exp.Subquery) and self.member is not None:
            return self.member.value(node, self)
        if isinstance(node, exp.AggFunc) or is_aggregate(node):
            raise SQLSyntaxError("an aggregate cannot stand inside another.", span=span_of(self.sql, node))
        return None

    def outer_leaf(self, node: exp.Expr) -> Expr | None:
        """Above the aggregation: aliases of the SELECT list, columns (of which keys will remain) and aggregates."""
        if isinstance(node, exp.Column):
            alias = None if self.scope.has(node) else self.by_alias(node)
            return alias if alias is not None else self.column(node)
        if _is_membership(node):
            return self.membership(node)
        if isinstance(node, exp.Subquery) and self.member is not None:
            return self.member.value(node, self)
        return self.aggregate(node)

    def membership(self, node: exp.Expr) -> Expr | None:
        """IN (SELECT ...) and EXISTS (SELECT ...): the column that marks their rows."""
        if self.member is None:
            raise UnsupportedSQL(
                "a sub-query in an expression stands in WHERE, GROUP BY or an aggregate's argument, of people's rows.",
                span=span_of(self.sql, node),
            )
        return self.member.bind(node, self)

    def column(self, node: exp.Column) -> Expr:
        if self.around is not None and self.around.knows(node) and not self.scope.knows(node):
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
        """Whether a column's name means something here, or around."""
        return self.scope.knows(node) or (self.around is not None and self.around.knows(node))

    def by_alias(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, exp.Column) and not node.table:
            for output in self.outputs:
                if output.name.casefold() == node.name.casefold():
                    return output.expr
        return None

    # Aggregates.

    def aggregate(self, node: exp.Expr) -> Expr | None:
        """The slot of an aggregate, with its FILTER and named arguments; None for any other node."""
        inner = node.this if isinstance(node, exp.Filter) else node
        ordered = inner.this if isinstance(inner, exp.WithinGroup) else inner
        named = ordered if isinstance(ordered, Named) else None
        inner = inner.this if isinstance(inner, Named) else inner
        if not is_aggregate(inner):
            if isinstance(node, exp.Filter | Named):
                what = "FILTER" if isinstance(node, exp.Filter) else "a named argument"
                raise SQLSyntaxError(f"{what} belongs to an aggregate.", span=span_of(self.sql, node))
            return None
        condition = None
        if isinstance(node, exp.Filter):
            where = node.expression.this
            condition = self.condition(self.inner.bind(where), where, "FILTER")
        call = written(inner, self.sql)
        kind = call.kind
        if kind not in self.kinds:
            raise UnsupportedSQL(
                f"{name_of(node, self.sql)} is supported over people's rows, where the answer is made.",
                span=span_of(self.sql, node),
            )
        argument = self.argument(call, condition)
        second = None if call.second is None else self.second_argument(call)
        options = None if named is None else read_aggregate_options(named, self.sql)
        if options is not None:
            argument = self.bounded(kind, argument, options, inner)
        epsilon = None if options is None else options.epsilon
        per_unit = self.per_unit(kind, options)
        place = call.place(self.sql)
        if options is not None and options.report_format is not None and kind in WITHOUT_INTERVAL:
            raise UnsupportedSQL(
                f"{name_of(inner, self.sql)} has no noise interval to report.",
                span=options.places.get("report_format"),
            )
        made = Aggregation(kind, argument, place, epsilon, per_unit, second, self.which(call))
        slot = self.slot_of(made, node)
        return slot if options is None or options.report_format is None else Report(slot, REPORT_LEVEL)

    def second_argument(self, call: Written) -> Expr:
        """The x of an aggregate of two arguments (y, x)."""
        assert call.second is not None
        if isinstance(call.operand, exp.Distinct):
            word = name_of(call.node, self.sql)
            raise UnsupportedSQL(f"DISTINCT inside {word} is not supported.", span=span_of(self.sql, call.node))
        expr = self.inner.bind(call.second)
        self.check_argument(call.kind, expr, call.second)
        return expr

    def which(self, call: Written) -> Fraction | None:
        """The quantile that is asked for, from the bottom, or how many values."""
        if call.at is None:
            return None
        literal = self.inner.bind(call.at)
        value = literal.value if isinstance(literal, Literal) and literal.type.numeric else None
        if value is None or isinstance(value, bool) or not isinstance(value, int | float):
            value = None
        if call.kind is AggregateKind.TOP_K:
            if not isinstance(value, int) or not 1 <= value <= MOST_CHOSEN:
                raise SQLSyntaxError(
                    f"APPROX_TOP_K takes how many values, a whole number from 1 to {MOST_CHOSEN}.",
                    span=span_of(self.sql, call.at) or span_of(self.sql, call.node),
                )
            return Fraction(value)
        if value is None or not 0 <= value <= 1:
            raise SQLSyntaxError(
                "a quantile is a number from 0 to 1, such as 0.5.",
                span=span_of(self.sql, call.at) or span_of(self.sql, call.node),
                hint="Several quantiles are several calls: QUANTILE(x, 0.25), QUANTILE(x, 0.75).",
            )
        at = Fraction(round(Fraction(repr(value)) * PARTS), PARTS)
        return 1 - at if call.falling else at

    def bounded(
        self,
        kind: AggregateKind,  # noqa: ARG002
        argument: Expr | None,  # noqa: ARG002
        options: AggregateOptions,  # noqa: ARG002
        node: exp.Expr,
    ) -> Expr | None:
        """The argument within an aggregate's own contribution bounds."""
        raise UnsupportedSQL("named arguments belong to aggregates of people's rows.", span=span_of(self.sql, node))

    def per_unit(self, kind: AggregateKind, options: AggregateOptions | None) -> Interval | None:  # noqa: ARG002
        """The bounds of what one privacy unit adds to a group, where the text gives some."""
        return None

    def slot_of(self, aggregation: Aggregation, node: exp.Expr) -> Slot:
        if aggregation not in self.aggregations:
            if len(self.aggregations) == MOST_AGGREGATES:
                raise UnsupportedSQL(
                    f"more than {MOST_AGGREGATES} different aggregates share one epsilon.",
                    span=span_of(self.sql, node),
                    hint="Ask in several queries.",
                )
            place = len(self.keys) + len(self.aggregations)
            self.aggregations[aggregation] = Slot(place, str(aggregation), self.slot_type(aggregation))
        return self.aggregations[aggregation]

    def slot_type(self, aggregation: Aggregation) -> Type:
        """The type of an exact aggregate."""
        argument = aggregation.argument
        if aggregation.kind in (AggregateKind.COUNT, AggregateKind.DISTINCT) or argument is None:
            return Type.INTEGER
        if aggregation.kind is AggregateKind.AVG or aggregation.kind in SPREADS or aggregation.kind in PAIRS:
            return Type.REAL
        if aggregation.kind is AggregateKind.TOP_K:
            return Type.TEXT
        if aggregation.kind is AggregateKind.SUM:
            return Type.INTEGER if argument.type in (Type.INTEGER, Type.BOOLEAN) else Type.REAL
        return argument.type

    def argument(self, call: Written, condition: Expr | None) -> Expr | None:
        """What is aggregated; rows where the FILTER is not true have NULL there. None: all rows are counted."""
        kind, node, inner, word = call.kind, call.node, call.operand, name_of(call.node, self.sql)
        if isinstance(inner, exp.Distinct):
            if kind is AggregateKind.DISTINCT and len(inner.expressions) != 1:
                raise SQLSyntaxError("COUNT(DISTINCT ...) takes one argument.", span=span_of(self.sql, node))
            if kind is not AggregateKind.DISTINCT:
                raise UnsupportedSQL(
                    f"DISTINCT inside {word} is not supported. COUNT(DISTINCT x) is.", span=span_of(self.sql, node)
                )
            inner = inner.expressions[0]
        if inner is None:
            raise SQLSyntaxError(f"{word} takes one argument.", span=span_of(self.sql, node))
        if isinstance(node, exp.CountIf):
            bound = self.condition(self.inner.bind(inner), inner, "COUNT_IF")
            condition = bound if condition is None else self.inner.apply("and", node, [condition, bound])
            expr: Expr = Literal(1, Type.INTEGER)
        elif isinstance(inner, exp.Star):
            if kind is not AggregateKind.COUNT:
                star = "DISTINCT *" if kind is AggregateKind.DISTINCT and word == "COUNT" else "*"
                raise SQLSyntaxError(f"{word}({star}) is not a thing; only COUNT(*) is.", span=span_of(self.sql, node))
            expr = Literal(1, Type.INTEGER)
        else:
            expr = self.inner.bind(inner)
            self.check_argument(kind, expr, inner)
        if condition is not None:
            expr = self.inner.apply("case", node, [condition, expr, Literal(None, Type.INTEGER)])
        if kind is AggregateKind.COUNT:
            return None if isinstance(expr, Literal) and expr.value is not None else expr
        return expr

    def check_argument(self, kind: AggregateKind, expr: Expr, node: exp.Expr) -> None:
        summed = kind in (AggregateKind.SUM, AggregateKind.AVG) or kind in SPREADS or kind in PAIRS
        if summed and not expr.type.numeric and expr.type is not Type.BOOLEAN:
            name = expr.name if isinstance(expr, Column) else str(expr)
            raise TypeMismatch(
                f'{kind}({expr}): "{name}" is {expr.type}.',
                span=span_of(self.sql, node),
                hint=f"Did you mean COUNT({expr}) or GROUP BY {expr}?",
            )
        if kind is AggregateKind.QUANTILE and not expr.type.ordered_number and expr.type is not Type.BOOLEAN:
            raise TypeMismatch(f"a quantile of {expr}: it is {expr.type}.", span=span_of(self.sql, node))

    def text(self, node: exp.Expr) -> str:
        """The words of an item as written: the name of a column without an alias."""
        if isinstance(node, exp.Column):
            found = self.scope.columns.get(node.name.casefold())
            return found[0] if found else node.name
        inner = node.this if type(node) in _PLAINLY_NAMED else None
        if isinstance(inner, exp.Star):
            return "COUNT(*)"
        if (
            type(inner) is exp.Column
            and not inner.table
            and type(inner.this) is exp.Identifier
            and not inner.this.quoted
        ):
            return f"{_PLAINLY_NAMED[type(node)]}({inner.name})"
        made: str = node.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)
        call = type(called(node))
        if call not in AGGREGATES or call in _PLAINLY_NAMED:
            return made
        return name_of(node, self.sql) + made[made.index("(") :]  # one node may have several names
