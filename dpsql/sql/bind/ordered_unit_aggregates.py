"""Aggregates within one privacy unit that depend on row order: ARG_MIN, ARG_MAX, FIRST, LAST, MEDIAN, quantiles and
MODE; also BOOL_AND and BOOL_OR, the least and greatest condition.

They are composed of windows within the unit, below the groups: rows are numbered in an order that their own values
determine, and the aggregate is the value of the row with the right number. So they need no privacy rule and no engine
support. Each order ends with the selected value, so remaining ties do not matter.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.aggregates import AGGREGATES, Aggregation
from dpsql.plan.expressions import Column, Expr, Fact, Literal, Slot
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import Source, Windows
from dpsql.plan.windows import WHOLE, WINDOWS, WindowCall, WindowOrder
from dpsql.schema.columns import Type
from dpsql.sql.bind.aggregate_calls import (
    BY_ANOTHER,
    BY_ORDER,
    CONDITIONS,
    HALF,
    INSIDE_A_PERSON,
    WrittenAggregate,
    is_aggregate,
    listed,
    name_of,
    written,
)
from dpsql.sql.bind.private_rows import Rows
from dpsql.sql.bind.scalars import ScalarBinder
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of

_CONTINUOUS = (exp.Median, exp.PercentileCont)


class Groups(Protocol):
    """The binder of a SELECT that groups rows per unit."""

    sql: str
    inner: ScalarBinder
    whole: StatementState
    rows: Rows | None
    public: bool

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Return the expressions that divide a unit's rows into groups."""

    @property
    def numbered(self) -> NumberedRows:
        """Return the windows below the groups."""

    def condition(self, expr: Expr, node: exp.Expr, clause: str) -> Expr:
        """Return the expression, which must be a condition."""

    def slot_of(self, aggregation: Aggregation, node: exp.Expr) -> Slot:
        """Return the slot of an aggregate."""

    def which(self, call: WrittenAggregate) -> Fraction | None:
        """Return the requested quantile, from the bottom."""


class NumberedRows:
    """The windows of one SELECT with groups per unit: each level may read columns of the level before."""

    def __init__(self, select: Groups) -> None:
        self.select = select
        self._levels: list[dict[WindowCall, Column]] = [{}, {}]
        self._places = ["", ""]
        self._taken: set[str] = set()

    def column(self, call: WindowCall, level: int = 0) -> Column:
        """Return the column of a window, the same for equal calls. level 1: it reads columns of level 0."""
        columns = self._levels[level]
        if call not in columns:
            self._places[level] = self._places[level] or self.select.whole.place("(windows)")
            held = call.fact(self.known_of)
            name = fresh(call.function.name.casefold(), self._taken)
            columns[call] = Column(name, call.type, held, self._places[level])
        return columns[call]

    def known_of(self, expr: Expr) -> Fact:
        """Return the facts about an expression over the grouped rows."""
        assert self.select.rows is not None  # the SELECT groups them
        return fact(expr, known_of(self.select.rows.source))

    def over(self, source: Source) -> Source:
        """Return the rows with the columns of all windows."""
        for made in self._levels:
            source = Windows(source, tuple(made), tuple(made.values())) if made else source
        return source


def person_aggregate(select: Groups, node: exp.Expr) -> Expr | None:
    """Return the call as an expression over aggregates, or None for other calls. Raises a QueryRefused."""
    inner = node.this if isinstance(node, exp.Filter) else node
    bare = inner.this if isinstance(inner, NamedArguments) else inner
    call = None if isinstance(bare, INSIDE_A_PERSON) else _chosen(bare, select.sql)
    if call is None and not isinstance(bare, INSIDE_A_PERSON):
        return None
    if isinstance(inner, NamedArguments):
        raise UnsupportedSQL("named arguments belong to aggregates of people's rows.", span=span_of(select.sql, node))
    if select.public:
        raise UnsupportedSQL(
            f"{name_of(node, select.sql)} is supported inside a person's rows, and these are public.",
            span=span_of(select.sql, node),
        )
    where = node.expression.this if isinstance(node, exp.Filter) else None
    condition = None if where is None else select.condition(select.inner.bind(where), where, "FILTER")
    return _ComposedCall(select, bare, condition).of(call)


def _chosen(node: exp.Expr, sql: str) -> WrittenAggregate | None:
    """Return the call of a quantile or of MODE."""
    if not is_aggregate(node) or not isinstance(node, exp.AggFunc | exp.WithinGroup):
        return None
    if listed(node) is not None:
        raise UnsupportedSQL(
            f"{name_of(node, sql)} of a list is supported over people's rows, where the answer is made.",
            span=span_of(sql, node),
            hint="Inside a person write one call for each: QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.5).",
        )
    call = written(node, sql)
    return call if call.kind.quantile or call.kind.name == "MODE" else None


class _ComposedCall:
    """One call, composed of windows and aggregates. `condition`: its FILTER's."""

    def __init__(self, select: Groups, node: exp.Expr, condition: Expr | None) -> None:
        self.select = select
        self.sql = select.sql
        self.node = node
        self.condition = condition
        self.keys = select.parts

    def of(self, call: WrittenAggregate | None) -> Expr:
        if call is not None:
            return self._mode(call) if call.kind.name == "MODE" else self._quantile(call)
        if isinstance(self.node, tuple(BY_ANOTHER)):
            return self._by_another()
        return self._by_order() if isinstance(self.node, tuple(BY_ORDER)) else self._condition()

    # Building blocks.

    def _call(self, name: str, *args: Expr) -> Expr:
        return self.select.inner.apply(name, self.node, list(args))

    def _value(self, node: exp.Expr | None, *, kinds: str = "") -> Expr:
        """Bind an argument with one zero, so that equal values are identical."""
        if node is None or isinstance(node, exp.Star | exp.Distinct):
            raise SQLSyntaxError(f"{self._name} takes a value.", span=span_of(self.sql, self.node))
        value = self.select.inner.bind(node)
        wanted = not value.type.opaque if not kinds else value.type.ordered_number
        if not wanted:
            raise TypeMismatch(
                f"{self._name}({value}): it is {value.type}.",
                span=span_of(self.sql, node),
                hint=kinds and kinds.format(value),
            )
        return self._call("add", value, Literal(0.0, Type.REAL)) if value.type is Type.REAL else value

    @property
    def _name(self) -> str:
        return name_of(self.node, self.sql)

    def _where(self, condition: Expr | None, value: Expr) -> Expr:
        """Return the value where a condition is true, otherwise NULL."""
        return value if condition is None else self._call("case", condition, value, Literal(None, value.type))

    def _is_there(self, value: Expr) -> Expr:
        return self._call("not", self._call("is_null", value))

    def _number(self, order: tuple[WindowOrder, ...], level: int = 0) -> Column:
        return self.select.numbered.column(WindowCall(WINDOWS["ROW_NUMBER"], None, self.keys, order), level)

    def _count(self, value: Expr, more: tuple[Expr, ...] = ()) -> Column:
        """Return the number of rows in the partition that hold the value."""
        return self.select.numbered.column(WindowCall(WINDOWS["COUNT"], value, (*self.keys, *more), (), WHOLE))

    def _slot(self, kind: str, argument: Expr) -> Slot:
        place = span_of(self.sql, self.node)
        return self.select.slot_of(Aggregation(AGGREGATES[kind], argument, place), self.node)

    def _at(self, number: Expr, which: Expr, value: Expr) -> Expr:
        """Return the value in the row with a number, NULL in others."""
        return self._where(self._call("eq", number, which), value)

    # The aggregates.

    def _by_another(self) -> Expr:
        """Bind ARG_MIN(x, y): from rows without NULLs, the least x among those with the least y."""
        if self.node.args.get("expression") is None:
            raise SQLSyntaxError(f"{self._name} takes two arguments (x, y).", span=span_of(self.sql, self.node))
        value, by = self._value(self.node.this), self._value(self.node.expression)
        there = self._is_there(value)
        by = self._where(there if self.condition is None else self._call("and", there, self.condition), by)
        falling = BY_ANOTHER[type(self.node)]
        number = self._number((WindowOrder(by, falling), WindowOrder(value)))
        first = self._call("and", self._call("eq", number, _ONE), self._is_there(by))
        return self._slot("MIN", self._where(first, value))

    def _by_order(self) -> Expr:
        """Bind FIRST(x ORDER BY y): NULLs are values; ties in the order give the least x, NULL last."""
        ordered = self.node.this
        if not isinstance(ordered, exp.Order) or ordered.this is None:
            raise UnsupportedSQL(
                f"{self._name}(x) without ORDER BY would depend on the order of rows.",
                span=span_of(self.sql, self.node),
                hint=f"Write {self._name}(x ORDER BY y).",
            )
        value, turned = self._value(ordered.this), BY_ORDER[type(self.node)]
        order: list[WindowOrder] = []
        if self.condition is not None:
            order.append(WindowOrder(self._call("is_true", self.condition), descending=True))
        for term in ordered.expressions:
            by, falling = self._value(term.this), bool(term.args.get("desc"))
            nulls_first = bool(term.args.get("nulls_first"))
            order.append(WindowOrder(by, falling != turned, nulls_first != turned))
        number = self._number((*order, WindowOrder(value)))
        return self._slot("MIN", self._where(self._call("eq", number, _ONE), self._where(self.condition, value)))

    def _condition(self) -> Expr:
        """Bind BOOL_OR and BOOL_AND, which are NULL if all values are."""
        node = self.node.this
        value = self._value(node)
        if value.type is not Type.BOOLEAN:
            raise TypeMismatch(f"{self._name} wants a condition, got {value.type}.", span=span_of(self.sql, node))
        return self._slot(CONDITIONS[type(self.node)], self._where(self.condition, value))

    def _mode(self, call: WrittenAggregate) -> Expr:
        """Bind MODE: the least of the most frequent values other than NULL."""
        value = self._where(self.condition, self._value(call.operand))
        count = self._count(value, (value,))  # 0 for NULL
        number = self._number((WindowOrder(count, descending=True), WindowOrder(value)), 1)
        return self._slot("MIN", self._at(number, _ONE, value))

    def _quantile(self, call: WrittenAggregate) -> Expr:
        """Bind a quantile of the n values other than NULL, in order.

        QUANTILE_DISC takes the value at the first position of at least n q. QUANTILE_CONT and MEDIAN interpolate
        linearly at position 1 + (n - 1) q.
        """
        inner = call.node.this if isinstance(call.node, exp.WithinGroup) else call.node
        if isinstance(inner, exp.ApproxQuantile):
            raise UnsupportedSQL(
                f"{self._name} is supported over people's rows, where the answer is made.",
                span=span_of(self.sql, self.node),
                hint="Inside a person QUANTILE_CONT and QUANTILE_DISC are exact.",
            )
        at = Fraction(1, 2) if call.at is HALF else self.select.which(call)
        assert at is not None  # a quantile states its position
        continuous = isinstance(inner, _CONTINUOUS)
        kinds = (
            f"{self._name} goes between values. QUANTILE_DISC({{}}, {float(at):g}) takes one of them."
            if continuous
            else ""
        )
        value = self._where(self.condition, self._value(call.operand, kinds=kinds))
        count = self._count(value)
        if continuous:
            return self._between(value, count, at)
        falling = call.falling  # from the top: count from there
        at = 1 - at if falling else at
        number = self._number((WindowOrder(value, falling),))
        times = self._call("multiply", count, Literal(at.numerator, Type.INTEGER))
        least = self._call("add", times, Literal(at.denominator - 1, Type.INTEGER))
        place = self._call("int_divide", least, Literal(at.denominator, Type.INTEGER))
        return self._slot("MIN", self._at(number, self._call("greatest", _ONE, place), value))

    def _between(self, value: Expr, count: Column, at: Fraction) -> Expr:
        numeric = value.type.numeric
        if value.type is Type.DATE:
            value = self._call("date_to_timestamp", value)
        elif numeric and value.type is not Type.REAL:
            value = self._call("to_double", value)
        number = self._number((WindowOrder(value),))
        place = self._place(count, at)
        low, high = (self._of_place(self._call(way, place), number, value) for way in ("floor", "ceil"))
        share = self._call("subtract", place, self._call("floor", place))
        if numeric:
            rest = self._call("subtract", Literal(1.0, Type.REAL), share)
            point = self._call("add", self._call("multiply", low, rest), self._call("multiply", high, share))
        else:
            steps = self._call("multiply", self._call("microseconds_between", high, low), share)
            point = self._call("add_microsecond", low, self._call("to_bigint", steps))
        point = self._call("case", self._call("eq", low, high), low, point)
        return self._slot("MIN", self._inside(point, value))

    def _of_place(self, place: Expr, number: Column, value: Expr) -> Column:
        """Return the value at a position from 0, in each row of its group."""
        at = self._at(number, self._call("to_bigint", self._call("add", place, _ONE)), value)
        call = WindowCall(WINDOWS["MIN"], at, self.keys, (), WHOLE)
        return self.select.numbered.column(call, 1)

    def _inside(self, made: Expr, value: Expr) -> Expr:
        """Clip an interpolated value to the range of the values, which arithmetic does not derive."""
        known = self.select.numbered.known_of(value)
        if not known.limited:
            return made
        ends = (known.range.lower, known.range.upper)
        low, high = (Literal(float(end) if made.type is Type.REAL else int(end), made.type) for end in ends)
        return self._call("clamp", made, low, high)

    def _place(self, count: Expr, at: Fraction) -> Expr:
        """Return (n - 1) q, in doubles as in DuckDB."""
        rows = self._call("subtract", self._call("to_double", count), Literal(1.0, Type.REAL))
        return self._call("multiply", rows, Literal(float(at), Type.REAL))


_ONE = Literal(1, Type.INTEGER)
