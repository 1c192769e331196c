"""sqlglot expressions -> typed expressions, for WHERE and aggregate arguments, and over released values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from dpsql.errors import InvalidParameter, Span, SQLSyntaxError, TypeMismatch, UnsupportedSQL, did_you_mean
from dpsql.plan.digits import whole_number
from dpsql.plan.evaluation import folded
from dpsql.plan.expressions import Expr, Function, Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.casts import cast_name
from dpsql.schema.calendar import read_date, read_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64
from dpsql.sql.bind.null_types import is_null, typed_nulls
from dpsql.sql.bind.wide_numbers import WideCall, beyond_integers, width
from dpsql.sql.syntax.list_indices import refuse_part_zero
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import CLOCK, CLOCKS, INSIDE, NO_FUNCTIONS, as_text
from dpsql.sql.syntax.source_text import no_time, own_word, times_hint
from dpsql.sql.syntax.spellings import NAMES, NODES, written_names

MOST_DEPTH = 150
"""Levels of operations in one expression; a tree this deep stays well within Python's recursion limit."""
MOST_DIGITS = 39
"""Digits of a 128-bit constant."""
MOST_SIZE = 20_000
"""Operations in one expression, with sub-queries expanded: nested names could double it at every step."""

_MEETING = frozenset(
    ["eq", "ne", "lt", "le", "gt", "ge", "in", "distinct", "not_distinct", "least", "greatest", "clamp", "coalesce",
     "nullif", "case"]
)  # fmt: skip
"""Functions whose arguments have one type: a text constant next to a date is read as a date."""

Leaf = Callable[[exp.Expr], Expr | None]
Bind = Callable[[exp.Expr | None], Expr]
Rule = Callable[["ScalarBinder", exp.Expr, Bind], Expr]

_TEMPORAL: Mapping[tuple[str, Type, Type], str] = {
    ("add", Type.DATE, Type.INTEGER): "add_days",
    ("add", Type.INTEGER, Type.DATE): "add_days",
    ("subtract", Type.DATE, Type.INTEGER): "subtract_days",
    ("subtract", Type.DATE, Type.DATE): "days_between",
    ("subtract", Type.TIMESTAMP, Type.TIMESTAMP): "microseconds_between",
}
"""The meaning of + and - between dates, timestamps and integer days."""
_JOINING = frozenset({"text_join", "concat", "concat_ws"})
"""Functions that convert numbers, booleans and times to text, as CAST does."""


class ScalarBinder:
    """Binder of scalar expressions; `leaf` resolves names and aggregates (None: not a leaf of this scope)."""

    def __init__(self, sql: str, leaf: Leaf, params: Params, used: set[str]) -> None:
        self.sql = sql
        self.leaf = leaf
        self.params = params
        self.used = used

    def bind(self, node: exp.Expr | None, depth: int = 0) -> Expr:
        """Return the typed expression of a node. Raises SQLSyntaxError, TypeMismatch, UnsupportedSQL, InvalidParameter,
        or what `leaf` raises."""
        if node is None:
            raise SQLSyntaxError("an operand is missing.")
        if depth > MOST_DEPTH:
            raise SQLSyntaxError(f"more than {MOST_DEPTH} operations inside one another.", span=self.span(node))
        found = self.leaf(node)
        if found is not None:
            return found

        def bind(inner: exp.Expr | None) -> Expr:
            return self.bind(inner, depth + 1)

        kind = type(node)
        if kind is exp.Paren:
            return bind(node.this)
        if kind is exp.Literal:
            return self.literal(node)
        if kind in (exp.And, exp.Or):
            return self.junction(node, depth)
        if kind is exp.Neg and _is_large(node.this):
            return whole_number(-int(node.this.name))
        rule = RULES.get(kind)
        if rule is not None:
            return rule(self, node, bind)
        spelling = NODES.get(kind)
        if spelling is not None:
            return self.apply(spelling.function, node, [bind(each) for each in spelling.operands(node)])
        raise UnsupportedSQL(
            INSIDE.get(kind) or f"{own_word(kind.__name__.upper(), node, self.sql)} is not supported here.",
            span=self.span(node),
        )

    def apply(self, name: str, node: exp.Expr, args: list[Expr]) -> Expr:
        """Return the typed, constant-folded call. Raises SQLSyntaxError for a wrong arity, TypeMismatch for wrong
        types."""
        name, args = self.meant(name, node, args)
        function = FUNCTIONS[name]
        least, most = function.arity
        if len(args) < least or (most is not None and len(args) > most):
            count = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            noun = "argument" if count == "1" else "arguments"
            word = own_word(name.upper(), node, self.sql)
            raise SQLSyntaxError(f"{word} takes {count} {noun}, got {len(args)}.", span=self.span(node))
        if name == "split_part":
            refuse_part_zero(args, self.span(node))
        if any(map(width, args)):
            return WideCall(self, name, node, args).bound()
        return self.typed(name, node, beyond_integers(name, args))

    def typed(self, name: str, node: exp.Expr, args: list[Expr]) -> Expr:
        """Return the call as `apply` does, for arguments of the right number, none read as digits."""
        function = FUNCTIONS[name]
        args = typed_nulls(function, args)
        typed = call(function, *args) or call(function, *self.as_times(name, node, args))
        if typed is None:
            word = own_word(_title(function), node, self.sql)
            raise TypeMismatch(
                _mismatch(word, function, args),
                span=self.span(node),
                hint=times_hint(function.wants, args) or _mismatch_hint(args),
            )
        if typed.size > MOST_SIZE:
            raise SQLSyntaxError(f"an expression of more than {MOST_SIZE:,} operations.", span=self.span(node))
        return folded(typed)

    def meant(self, name: str, node: exp.Expr, args: list[Expr]) -> tuple[str, list[Expr]]:
        """Return the function that a word means for these argument types, and the converted arguments."""
        name, args = _between_dates(name, args)
        if name == "subtract" and {arg.type for arg in args} == {Type.DATE, Type.TIMESTAMP}:
            return "microseconds_between", [self.as_time(node, arg, Type.TIMESTAMP) for arg in args]
        if name in _JOINING:
            return name, [self.as_text(node, arg) for arg in args]
        if args and args[0].type is Type.DATE and f"{name}_of_date" in FUNCTIONS:
            name = f"{name}_of_date"
        return name, args

    def as_text(self, node: exp.Expr, arg: Expr) -> Expr:
        """Convert a number, boolean or time to text, as CAST does; NULL and texts stay."""
        cast = cast_name(arg.type, "TEXT")
        return arg if is_null(arg) or not cast else self.apply(cast, node, [arg])

    def as_times(self, name: str, node: exp.Expr, args: list[Expr]) -> list[Expr]:
        """Convert dates, timestamps and text constants used together to the finest of their types. Other arguments
        stay."""
        kinds = {arg.type for arg in args}
        if name not in _MEETING or not kinds & {Type.DATE, Type.TIMESTAMP}:
            return args
        texts = [read_timestamp(str(arg)[1:-1]) for arg in args if _is_text(arg)]
        timed = any(each is not None and each % 86_400_000_000 for each in texts)
        wanted = Type.TIMESTAMP if Type.TIMESTAMP in kinds or timed else Type.DATE
        return [self.as_time(node, arg, wanted) for arg in args]

    def as_time(self, node: exp.Expr, arg: Expr, wanted: Type) -> Expr:
        if wanted is Type.TIMESTAMP and arg.type is Type.DATE:
            return self.apply("date_to_timestamp", node, [arg])
        if isinstance(arg, Literal) and arg.value is None and arg.type is not Type.BOOLEAN:
            return Literal(None, wanted)
        if not _is_text(arg):
            return arg
        assert isinstance(arg, Literal)
        read = read_date if wanted is Type.DATE else read_timestamp
        value = read(str(arg.value))
        if value is None:
            raise no_time(arg, wanted, self.span(node))
        return Literal(value, wanted)

    def literal(self, node: exp.Expr) -> Literal:
        text = str(node.this)
        if node.args.get("is_string"):
            return Literal(text, Type.TEXT)
        try:
            if text.isdecimal() and len(text) <= MOST_DIGITS:
                return whole_number(int(text))
            value = float(text)
        except ValueError:
            raise SQLSyntaxError(f"{text[:40]} is not a number.", span=self.span(node)) from None
        if math.isinf(value):
            raise SQLSyntaxError("the number is too large.", span=self.span(node))
        return Literal(value, Type.REAL)

    def parameter(self, node: exp.Expr) -> Literal:
        name = node.this
        if not isinstance(name, str) or not name.isidentifier():
            raise UnsupportedSQL("parameters are written :name.", span=self.span(node))
        for known, literal in self.params:
            if known == name:
                self.used.add(name)
                return literal
        near = did_you_mean(name, [known for known, _ in self.params])
        raise InvalidParameter(
            f"no value for :{name}.{near}", span=self.span(node), hint=f'Pass params={{"{name}": ...}}.'
        )

    def junction(self, node: exp.Expr, depth: int) -> Expr:
        """Bind a chain of ANDs or ORs as a balanced tree, so that thousands of terms stay shallow."""
        kind = type(node)
        chain: list[exp.Expr] = []
        pending = [node]
        while pending:
            each = pending.pop()
            if type(each) is kind:
                pending += [each.expression, each.this]
            else:
                chain.append(each)
        return self.balanced("and" if kind is exp.And else "or", node, [self.bind(each, depth + 1) for each in chain])

    def balanced(self, name: str, node: exp.Expr, terms: list[Expr]) -> Expr:
        """Join the terms with one associative binary function, as a balanced tree."""
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [self.apply(name, node, pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]

    def span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


def _between_dates(name: str, args: list[Expr]) -> tuple[str, list[Expr]]:
    if len(args) != 2 or name not in ("add", "subtract"):
        return name, args
    if is_null(args[0]) and args[1].type is Type.DATE:
        args = [Literal(None, Type.DATE if name == "subtract" else Type.INTEGER), args[1]]
    if name == "subtract" and Type.TIMESTAMP in {arg.type for arg in args}:
        args = [Literal(None, Type.TIMESTAMP) if is_null(arg) else arg for arg in args]
    instead = _TEMPORAL.get((name, args[0].type, args[1].type))
    if instead is None:
        return name, args
    return instead, args[::-1] if args[0].type is Type.INTEGER else args


def _anonymous(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    name = str(node.this).upper()
    if name in CLOCKS:
        raise UnsupportedSQL(CLOCK.format(name), span=binder.span(node))
    if name in NO_FUNCTIONS:
        raise UnsupportedSQL(NO_FUNCTIONS[name], span=binder.span(node))
    if name not in NAMES:
        near = did_you_mean(name, written_names())
        raise UnsupportedSQL(f"no function {name[:40]}.{near}", span=binder.span(node))
    return binder.apply(NAMES[name], node, [bind(each) for each in node.expressions])


def _between(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    value, low, high = bind(node.this), bind(node.args["low"]), bind(node.args["high"])
    return binder.apply("and", node, [binder.apply("ge", node, [value, low]), binder.apply("le", node, [value, high])])


def _membership(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    value, listed = bind(node.this), [bind(each) for each in node.expressions]
    if not listed:
        raise SQLSyntaxError("IN wants at least one value.", span=binder.span(node))
    if all(isinstance(each, Literal) for each in listed):
        return binder.apply("in", node, [value, *listed])
    return binder.balanced("or", node, [binder.apply("eq", node, [value, each]) for each in listed])


def _identity(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    value, what = bind(node.this), node.expression
    if isinstance(what, exp.Null):
        return binder.apply("is_null", node, [value])
    if isinstance(what, exp.Boolean):
        return binder.apply("is_true" if what.this else "is_false", node, [value])
    raise SQLSyntaxError("IS wants NULL, TRUE or FALSE after it.", span=binder.span(node))


def _is_large(digits: exp.Expr) -> bool:
    """Return whether a number after a minus sign exceeds the largest integer."""
    if type(digits) is not exp.Literal or digits.is_string or not digits.name.isdecimal():
        return False
    return len(digits.name) <= MOST_DIGITS and int(digits.name) not in INT64


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, str)


def _mismatch(word: str, function: Function, args: list[Expr]) -> str:
    got = ", ".join(f"{_short(arg)} ({arg.type})" for arg in args[:3])
    return f"{word} wants {function.wants}, got {got}."


def _title(function: Function) -> str:
    """Return a function's name in messages: its operator or its name."""
    shown = function.show if isinstance(function.show, str) else function.name.upper()
    called = re.match(r"\w+", shown)
    return called[0] if called else re.sub(r"\{\w+\}|[()]", "", shown).strip() or function.name.upper()


def _short(expr: Expr) -> str:
    text = str(expr)
    return text if len(text) <= 40 else text[:37] + "..."


def _mismatch_hint(args: list[Expr]) -> str:
    kinds = {arg.type for arg in args}
    other = next((arg for arg in args if arg.type.opaque), None)
    if other is not None:
        return f'Columns of the type of "{other}" can only be counted or tested for NULL. {as_text(other)}'
    if Type.TEXT in kinds and kinds & {Type.DATE, Type.TIMESTAMP}:
        return "Text is never turned into a time by itself: write CAST(... AS DATE)."
    if Type.TEXT in kinds and len(kinds) > 1:
        return "Text is never turned into a number by itself: put text in 'quotes', numbers without."
    if kinds & {Type.DATE, Type.TIMESTAMP}:
        return "Between times: DATE_SUB('day', a, b) for whole days, a + INTERVAL 1 DAY, EXTRACT(year FROM a)."
    return ""


RULES: dict[type[exp.Expr], Rule] = {
    exp.Boolean: lambda _b, node, _bind: Literal(bool(node.this), Type.BOOLEAN),
    exp.Null: lambda _b, _node, _bind: Literal(None, Type.INTEGER),
    exp.Placeholder: lambda binder, node, _bind: binder.parameter(node),
    exp.Between: _between,
    exp.In: _membership,
    exp.Is: _identity,
    exp.Anonymous: _anonymous,
}
"""Rules for nodes that are not exactly one function; keyword_expressions.py adds those with keywords."""
