"""sqlglot expressions -> typed expressions. Used for WHERE and aggregate arguments, and again over released values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, TypeMismatch, UnsupportedSQL, did_you_mean
from dpsql.schema import Type
from dpsql.sql.expressions import Expr, Function, Literal, call, folded
from dpsql.sql.functions import FUNCTIONS
from dpsql.sql.functions.rules import LARGEST_INTEGER
from dpsql.sql.parse import span_of

MOST_DEPTH = 150
"""Levels of operations in one expression; a tree this deep is walked well within Python's recursion limit."""

_BINARY: Mapping[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "int_divide",
    exp.Mod: "modulo",
    exp.Nullif: "nullif",
}
_UNARY: Mapping[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Neg: "negate",
    exp.Abs: "abs",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
}
_VARIADIC: Mapping[type[exp.Expr], str] = {
    exp.Least: "least",
    exp.Greatest: "greatest",
    exp.Coalesce: "coalesce",
}
_ANONYMOUS = {"CLAMP": "clamp"}

Leaf = Callable[[exp.Expr], Expr | None]


class ScalarBinder:
    """Binds scalar expressions; `leaf` gives meaning to names and aggregates (None: not a leaf of this scope)."""

    def __init__(self, sql: str, leaf: Leaf) -> None:
        self.sql = sql
        self.leaf = leaf

    def bind(self, node: exp.Expr | None, depth: int = 0) -> Expr:
        """The typed expression of a node. Raises SQLSyntaxError, TypeMismatch, UnsupportedSQL, or what `leaf`
        raises."""
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
        if kind is exp.Boolean:
            return Literal(bool(node.this), Type.BOOLEAN)
        if kind is exp.Null:
            return Literal(None, Type.INTEGER)
        if kind in (exp.And, exp.Or):
            return self.junction(node, depth)
        if kind is exp.Between:
            return self.between(node, bind)
        if kind is exp.In:
            return self.membership(node, bind)
        if kind is exp.Is:
            return self.identity(node, bind)
        return self.function(node, bind)

    def function(self, node: exp.Expr, bind: Callable[[exp.Expr | None], Expr]) -> Expr:
        kind = type(node)
        if kind in _BINARY:
            return self.apply(_BINARY[kind], node, [bind(node.this), bind(node.expression)])
        if kind in _UNARY:
            return self.apply(_UNARY[kind], node, [bind(node.this)])
        if kind in _VARIADIC:
            return self.apply(_VARIADIC[kind], node, [bind(each) for each in (node.this, *node.expressions)])
        if kind is exp.Round:
            return self.apply("round", node, [bind(each) for each in (node.this, node.args.get("decimals")) if each])
        if kind is exp.Anonymous:
            name = str(node.this).upper()
            if name not in _ANONYMOUS:
                near = did_you_mean(name, [*_ANONYMOUS, *(each.upper() for each in FUNCTIONS)])
                raise UnsupportedSQL(f"no function {name}.{near}", span=self.span(node))
            return self.apply(_ANONYMOUS[name], node, [bind(each) for each in node.expressions])
        raise UnsupportedSQL(f"{kind.__name__.upper()} is not supported here.", span=self.span(node))

    def apply(self, name: str, node: exp.Expr, args: list[Expr]) -> Expr:
        """The typed, constant-folded call. Raises SQLSyntaxError for a wrong arity, TypeMismatch for wrong types."""
        function = FUNCTIONS[name]
        least, most = function.arity
        if len(args) < least or (most is not None and len(args) > most):
            count = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            raise SQLSyntaxError(f"{name.upper()} takes {count} arguments, got {len(args)}.", span=self.span(node))
        typed = call(function, *_adapt_nulls(args, _null_type(function, args)))
        if typed is None:
            raise TypeMismatch(_mismatch(function, args), span=self.span(node), hint=_mismatch_hint(args))
        return folded(typed)

    def literal(self, node: exp.Expr) -> Literal:
        text = str(node.this)
        if node.args.get("is_string"):
            return Literal(text, Type.TEXT)
        try:
            if text.isdecimal() and len(text) <= 19 and int(text) <= LARGEST_INTEGER:
                return Literal(int(text), Type.INTEGER)
            value = float(text)
        except ValueError:
            raise SQLSyntaxError(f"{text[:40]} is not a number.", span=self.span(node)) from None
        if math.isinf(value):
            raise SQLSyntaxError("the number is too large.", span=self.span(node))
        return Literal(value, Type.REAL)

    def junction(self, node: exp.Expr, depth: int) -> Expr:
        """A chain of ANDs or ORs as a balanced tree, so that thousands of terms stay shallow."""
        kind = type(node)
        chain: list[exp.Expr] = []
        pending = [node]
        while pending:
            each = pending.pop()
            if type(each) is kind:
                pending += [each.expression, each.this]
            else:
                chain.append(each)
        terms = [self.bind(each, depth + 1) for each in chain]
        name = "and" if kind is exp.And else "or"
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [self.apply(name, node, pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]

    def between(self, node: exp.Expr, bind: Callable[[exp.Expr | None], Expr]) -> Expr:
        value, low, high = bind(node.this), bind(node.args["low"]), bind(node.args["high"])
        return self.apply("and", node, [self.apply("ge", node, [value, low]), self.apply("le", node, [value, high])])

    def membership(self, node: exp.Expr, bind: Callable[[exp.Expr | None], Expr]) -> Expr:
        value, listed = bind(node.this), [bind(each) for each in node.expressions]
        if all(isinstance(each, Literal) for each in listed):
            return self.apply("in", node, [value, *listed])
        terms = [self.apply("eq", node, [value, each]) for each in listed]
        while len(terms) > 1:
            terms = [*terms[2:], self.apply("or", node, terms[:2])]
        return terms[0]

    def identity(self, node: exp.Expr, bind: Callable[[exp.Expr | None], Expr]) -> Expr:
        value, what = bind(node.this), node.expression
        if isinstance(what, exp.Null):
            return self.apply("is_null", node, [value])
        if isinstance(what, exp.Boolean):
            return self.apply("is_true" if what.this else "is_false", node, [value])
        raise SQLSyntaxError("IS wants NULL, TRUE or FALSE after it.", span=self.span(node))

    def span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


def _null_type(function: Function, args: Iterable[Expr]) -> Type:
    """The type that a bare NULL takes among these arguments."""
    if function.name == "round":
        return Type.INTEGER
    known = [arg.type for arg in args if not _is_null(arg)]
    if known:
        return known[0]
    return Type.BOOLEAN if function.name in ("and", "or", "not", "is_true", "is_false") else Type.INTEGER


def _adapt_nulls(args: Iterable[Expr], kind: Type) -> list[Expr]:
    return [Literal(None, kind) if _is_null(arg) else arg for arg in args]


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _mismatch(function: Function, args: list[Expr]) -> str:
    got = ", ".join(f"{_short(arg)} ({arg.type})" for arg in args[:3])
    shown = function.show.split("{")[0].rstrip("(") or function.show.replace("{0}", "").replace("{1}", "").strip()
    return f"{shown.split(' (')[0].strip()} wants {function.wants}, got {got}."


def _short(expr: Expr) -> str:
    text = str(expr)
    return text if len(text) <= 40 else text[:37] + "..."


def _mismatch_hint(args: list[Expr]) -> str:
    kinds = {arg.type for arg in args}
    if Type.OTHER in kinds:
        other = next(arg for arg in args if arg.type is Type.OTHER)
        return f'Columns of the type of "{other}" can only be counted or tested for NULL.'
    if Type.TEXT in kinds and len(kinds) > 1:
        return "Text is never turned into a number by itself: put text in 'quotes', numbers without."
    return ""
