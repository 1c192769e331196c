"""Window functions over private rows: allowed if PARTITION BY determines the privacy unit.

The engine partitions by the unit first, so a row's result depends only on rows of its own unit. A window without the
unit would depend on other units' rows. It is refused, with the allowed form.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, Literal
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import Source, Windows
from dpsql.plan.windows import MOST_BUCKETS, MOST_STEPS, WHOLE, WINDOWS, WindowCall, WindowFunction, WindowOrder
from dpsql.schema.columns import Type
from dpsql.sql.bind.aggregate_calls import WrittenAggregate, is_aggregate, written
from dpsql.sql.bind.aggregates import AggregateBinder
from dpsql.sql.bind.null_types import is_null
from dpsql.sql.bind.private_rows import OWN, Kind, PrivateRows, Rows
from dpsql.sql.bind.real_windows import in_steps, of_steps, steps_in_one
from dpsql.sql.bind.wide_numbers import ordered_by, refuse
from dpsql.sql.bind.window_frames import frame_of, within_reach
from dpsql.sql.bind.window_refusals import NODES, called, handle, over
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import as_text

_WORDS = "ROW_NUMBER, RANK, DENSE_RANK, NTILE, PERCENT_RANK, CUME_DIST, LAG, LEAD, FIRST_VALUE, LAST_VALUE, COUNT, "
_WORDS += "SUM, MIN, MAX and AVG"
MOST_WINDOWS = 100


class WindowBinder:
    """Binder of the windows of one SELECT that keeps private rows. `binder`: for expressions inside them; `rows`: those
    that WHERE keeps."""

    def __init__(
        self, whole: StatementState, select: exp.Select, people: PrivateRows, rows: Rows, binder: AggregateBinder
    ) -> None:
        self.whole = whole
        self.sql = whole.sql
        self.people = people
        self.rows = rows
        self.binder = binder
        self.inside = False
        self._steps: Literal | None = None
        """For the current call: the number of its steps in 1."""
        self.calls: dict[WindowCall, Column] = {}
        self._taken: set[str] = set()
        self._place = ""
        self._known = known_of(rows.source)
        self._named = {each.name.casefold(): each for each in select.args.get("windows") or []}

    def value(self, node: exp.Window, alias: str = "") -> Expr:
        """Return a window's value in a row: a column, the same for equal calls, or the real for its steps. Raises a
        QueryRefused."""
        if self.inside:
            raise SQLSyntaxError(
                "a window function cannot stand inside another.",
                span=span_of(self.sql, node),
                hint="Write the inner one in a sub-query.",
            )
        self.inside, self._steps = True, None
        try:
            call = self._call(node)
        finally:
            self.inside = False
        if call not in self.calls:
            if len(self.calls) == MOST_WINDOWS:
                raise UnsupportedSQL(f"more than {MOST_WINDOWS} windows in one SELECT.", span=span_of(self.sql, node))
            self._place = self._place or self.whole.place("(windows)")
            name = fresh(alias or call.function.name.casefold(), self._taken)
            held = call.fact(lambda expr: fact(expr, self._known))
            self.calls[call] = Column(name, call.type, held, self._place)
        column = self.calls[call]
        return column if self._steps is None else of_steps(self.binder.inner, column, self._steps, node)

    def over(self, source: Source) -> Source:
        """Return the rows with the columns of all windows."""
        return Windows(source, tuple(self.calls), tuple(self.calls.values())) if self.calls else source

    @property
    def names(self) -> frozenset[str]:
        """Return the places in the query created here."""
        return frozenset({self._place} - {""})

    # One call.

    def _call(self, node: exp.Window) -> WindowCall:
        node = self._resolved(node)
        partition = self._partition(node)
        order = tuple(self._term(each) for each in node.args["order"].expressions) if node.args.get("order") else ()
        inner, ignore = node.this, isinstance(node.this, exp.IgnoreNulls)
        if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
            inner = inner.this
        function = WINDOWS.get(NODES.get(type(inner), ""))
        if function is None:
            return self._aggregate(node, inner, partition, order, ignore=ignore)
        if ignore and function.family != "row":
            raise SQLSyntaxError(f"{function} has no IGNORE NULLS.", span=span_of(self.sql, node))
        if not function.framed and node.args.get("spec") is not None:
            raise SQLSyntaxError(f"{function} has no frame.", span=span_of(self.sql, node), hint="Leave the frame out.")
        if function.family == "place":
            number = self._number(inner.this, "NTILE", 1, MOST_BUCKETS, inner) if function.name == "NTILE" else 1
            return WindowCall(function, None, partition, order, number=number)
        argument = self._argument(function, inner)
        if function.framed:
            frame = frame_of(self.sql, node, order, self.binder.inner)
            order = within_reach(order, frame, lambda expr: fact(expr, self._known))
            return WindowCall(function, argument, partition, order, frame, ignore_nulls=ignore)
        offset = inner.args.get("offset")
        number = 1 if offset is None else self._number(offset, function.name, -MOST_STEPS, MOST_STEPS, inner)
        function, number = _other_way(function, number)
        if ignore and number == 0:
            raise SQLSyntaxError(f"{function} with IGNORE NULLS goes one row at least.", span=span_of(self.sql, inner))
        default = self._default(inner, argument)
        return WindowCall(function, argument, partition, order, None, number, default, ignore)

    def _argument(self, function: WindowFunction, inner: exp.Expr) -> Expr:
        if inner.this is None:
            raise SQLSyntaxError(f"{function} takes a value.", span=span_of(self.sql, inner))
        argument = self.binder.inner.bind(inner.this)
        refuse(argument, span_of(self.sql, inner))
        if argument.type.opaque:
            raise TypeMismatch(
                f"{function}({argument}): columns of its type can only be counted or tested for NULL.",
                span=span_of(self.sql, inner),
                hint=as_text(argument),
            )
        return argument

    def _resolved(self, node: exp.Window) -> exp.Window:
        """Return the window with the named WINDOW definition applied."""
        name = node.args.get("alias")
        if name is None:
            return node
        named = self._named.get(name.name.casefold())
        if named is None:
            raise SQLSyntaxError(f"no window {name.name}.", span=span_of(self.sql, name))
        whole = node.copy()
        whole.set("alias", None)
        for clause in ("partition_by", "order", "spec"):
            own, given = node.args.get(clause), named.args.get(clause)
            if own and given:
                raise SQLSyntaxError(f"the window {name.name} has that clause already.", span=span_of(self.sql, node))
            whole.set(clause, own or given)
        base = named.args.get("alias")
        if base is not None:
            raise UnsupportedSQL(
                "a window that is made of another by name is not supported.", span=span_of(self.sql, base)
            )
        return whole

    def _aggregate(
        self,
        node: exp.Window,
        inner: exp.Expr,
        partition: tuple[Expr, ...],
        order: tuple[WindowOrder, ...],
        *,
        ignore: bool,
    ) -> WindowCall:
        condition = None
        if isinstance(inner, exp.Filter):
            where = inner.expression.this
            condition = self.binder.condition(self.binder.inner.bind(where), where, "FILTER")
            inner = inner.this
        if isinstance(inner, NamedArguments):
            raise UnsupportedSQL(
                "named arguments (name => value) belong to aggregates of people's rows, not to windows.",
                span=span_of(self.sql, inner),
            )
        call = written(inner, self.sql) if is_aggregate(inner) and not isinstance(inner, exp.WithinGroup) else None
        function = None if call is None else WINDOWS.get(call.kind.name)
        if call is None or function is None or ignore:
            distinct = "(DISTINCT ...)" if call is not None and call.kind.distinct else ""
            raise UnsupportedSQL(
                f"{called(node)}{distinct} OVER (...) is not supported inside a person.",
                span=span_of(self.sql, node),
                hint=f"The functions that have windows are {_WORDS}.",
            )
        argument = self.binder.argument(call, condition)
        if argument is not None:
            argument = self._aggregated(function, call, argument)
        frame = frame_of(self.sql, node, order, self.binder.inner)
        order = within_reach(order, frame, lambda expr: fact(expr, self._known))
        return WindowCall(function, argument, partition, () if frame == WHOLE else order, frame)

    def _aggregated(self, function: WindowFunction, call: WrittenAggregate, argument: Expr) -> Expr:
        """Return the aggregated value: reals are added in integer steps. Refuses MIN and MAX of texts."""
        if function.name in ("SUM", "AVG") and argument.type is Type.REAL:
            held = fact(argument, self._known)
            self._steps = steps_in_one(function.name, argument, held, span_of(self.sql, call.node))
            return in_steps(self.binder.inner, argument, self._steps, call.node)
        if function.name in ("MIN", "MAX") and (argument.type is Type.TEXT or argument.type.opaque):
            raise self.binder.unfit(call.kind, argument, call.node)
        return argument

    # Its clauses.

    def _partition(self, node: exp.Window) -> tuple[Expr, ...]:
        """Return the partition besides the unit. Raises UnsupportedSQL if nothing determines the window's unit."""
        word, span = called(node), over(self.sql, node)
        if self.rows.public:
            raise UnsupportedSQL(
                f"{word} OVER (...) is not supported over public rows that are joined with people's.", span=span
            )
        if self.rows.unit_is_row or not self.rows.handles:
            raise UnsupportedSQL(
                f"{word} OVER (...): a window would read other people's rows, for nothing says which rows of "
                f"{self.rows.table.name} are one person's.",
                span=span,
                hint=f'Declare unit="person_id" on {self.rows.table.name}, and write '
                f"{word}(...) OVER (PARTITION BY person_id ...)."
                if self.rows.unit_is_row
                else "Show the column of the privacy unit in each sub-query, and write it in PARTITION BY.",
            )
        bound = [self._plain(each, "PARTITION BY") for each in node.args.get("partition_by") or []]
        held = {column: kind for kind, column in self.rows.handles}
        if not any(each in held for each in bound):
            unit = handle(self.rows)
            raise UnsupportedSQL(
                f"{word} OVER (...): a window would read other people's rows, for its PARTITION BY does not hold "
                f"{unit}, which says whose a row is.",
                span=span,
                hint=f"Write {word}(...) OVER (PARTITION BY {unit} ...).",
            )
        own = {column for kind, column in self.rows.handles if self._is_unit(kind)}
        return tuple(dict.fromkeys(each for each in bound if each not in own))

    def _is_unit(self, kind: Kind) -> bool:
        """Return whether a handle's value is the unit itself: its column, or a key one step from it."""
        table = self.whole.tables.get(kind[0])
        unit = None if table is None else table.unit
        return kind == OWN or (unit is not None and not unit.steps and unit.column == kind[1])

    def _term(self, node: exp.Expr) -> WindowOrder:
        expr = self._plain(node.this, "ORDER BY")
        return WindowOrder(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _plain(self, node: exp.Expr, clause: str) -> Expr:
        expr = self.binder.inner.bind(node)
        if isinstance(expr, Literal):
            raise SQLSyntaxError(f"{clause} {expr} is a constant.", span=span_of(self.sql, node))
        if expr.type.opaque:
            raise TypeMismatch(
                f"{clause} {expr}: columns of its type can only be counted or tested for NULL.",
                span=span_of(self.sql, node),
                hint=as_text(expr),
            )
        return expr if clause == "PARTITION BY" else ordered_by(self.binder.inner, node, expr)

    def _number(self, node: exp.Expr | None, name: str, least: int, most: int, call: exp.Expr) -> int:
        literal = None if node is None else self.binder.inner.bind(node)
        value = literal.value if isinstance(literal, Literal) and literal.type is Type.INTEGER else None
        if not isinstance(value, int) or not least <= value <= most:
            raise SQLSyntaxError(
                f"{name} takes a whole number from {least} to {most:,}.",
                span=(None if node is None else span_of(self.sql, node)) or span_of(self.sql, call),
            )
        return value

    def _default(self, node: exp.Expr, argument: Expr) -> Expr | None:
        """Return the default of LAG and LEAD, in the argument's type; None if it is NULL."""
        given = node.args.get("default")
        if given is None:
            return None
        default = self.binder.inner.bind(given)
        if is_null(default):
            return None
        if default.type is not argument.type and argument.type.temporal:
            default = self.binder.inner.as_time(given, default, argument.type)
        if isinstance(default, Literal) and (default.type, argument.type) == (Type.INTEGER, Type.REAL):
            default = Literal(float(default.value or 0), Type.REAL)
        if default.type is not argument.type:
            raise TypeMismatch(
                f"the default {default} is {default.type}, and {argument} is {argument.type}.",
                span=span_of(self.sql, given),
                hint="CAST one of them.",
            )
        return default


def _other_way(function: WindowFunction, number: int) -> tuple[WindowFunction, int]:
    """Reverse LAG and LEAD with a negative number of rows."""
    return (function, number) if number >= 0 else (WINDOWS["LEAD" if function.name == "LAG" else "LAG"], -number)
