"""Expressions over integers that may exceed 64 bits, which are read as digits (`ColumnSchema.wide`).

Equality compares digits. Orders compare digits padded to one length, or doubles where exact. Functions that use doubles
for unbounded integers do so here too. Everything else is refused, because its result would not be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from dpsql.errors import Span, TypeMismatch
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.digits import WholeFloat
from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, Slot, columns, unfiltered
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from dpsql.schema.stored_types import width_of
from dpsql.sql.bind.null_types import is_null


class Binder(Protocol):
    """The scalar binder as used here."""

    def typed(self, name: str, node: exp.Expr, args: list[Expr]) -> Expr: ...
    def span(self, node: exp.Expr) -> Span | None: ...


_EXACT = 2**53
"""Integers up to this are doubles, and compare with wider numbers as those numbers' doubles do."""
_MOST_DIVISOR = 2**31
_CHUNK = 9
"""Digits divided at a time: the products stay within 62 bits."""
_EMPTY = Literal("", Type.TEXT)


def width(expr: Expr) -> int:
    """Return the width of an expression's digits (`Fact.wide`), or 0 for others."""
    if isinstance(expr, Call):
        return expr.held.wide
    return expr.fact.wide if isinstance(expr, Column | Slot) else 0


class WideCall:
    """One function call with digits among its arguments."""

    def __init__(self, binder: Binder, name: str, node: exp.Expr, args: list[Expr]) -> None:
        self.binder, self.name, self.node, self.args = binder, name, node, args

    def bound(self) -> Expr:
        """Return the typed expression. Raises TypeMismatch if it would not be exact."""
        rule = _RULES.get(self.name)
        found = rule(self) if rule is not None else self._in_doubles()
        if found is None:
            raise self.refusal()
        return found

    def refusal(self) -> TypeMismatch:
        expr = next(arg for arg in self.args if width(arg))
        return refusal(expr, self.binder.span(self.node))

    def call(self, name: str, *args: Expr) -> Expr:
        """Return a call whose arguments hold no numeric digits, or that accepts them unchanged."""
        return self.binder.typed(name, self.node, list(args))

    def as_written(self) -> Expr:
        return self.call(self.name, *self.args)

    def double(self, expr: Expr) -> Expr:
        return self.call("text_to_double", expr) if width(expr) else expr

    def _in_doubles(self) -> Expr | None:
        """Return the call in doubles, if the function uses them for unbounded integers."""
        kinds = [Type.INTEGER if width(arg) else arg.type for arg in self.args]
        facts = [Fact() if width(arg) else unfiltered(arg) for arg in self.args]
        kind = FUNCTIONS[self.name].type_of(kinds, facts)
        return self.call(self.name, *map(self.double, self.args)) if kind is Type.REAL else None

    def digits(self, expr: Expr) -> Expr | None:
        """Return an integer as its digits, or None for other values."""
        if width(expr) or is_null(expr):
            return expr
        if isinstance(expr, Literal) and isinstance(expr.value, int) and expr.type is Type.INTEGER:
            return Literal(str(expr.value), Type.TEXT)
        if isinstance(expr, Literal) and isinstance(expr.value, WholeFloat):
            return Literal(str(expr.value.whole), Type.TEXT)
        return self.call("integer_to_text", expr) if expr.type is Type.INTEGER else None

    def equal(self) -> Expr | None:
        """Return an equality comparison with any number of values."""
        digits = [self.digits(arg) for arg in self.args]
        found = [each for each in digits if each is not None]
        if len(found) == len(digits):
            return self.call(self.name, *found)
        return self._compared_as_doubles()

    def _compared_as_doubles(self) -> Expr | None:
        numeric = all(width(arg) or arg.type.numeric for arg in self.args)
        return self.call(self.name, *map(self.double, self.args)) if numeric else None

    def ordered(self) -> Expr | None:
        """Return one of <, <=, > and >=."""
        other = next((arg for arg in self.args if not width(arg)), None)
        small = isinstance(other, Literal) and isinstance(other.value, int) and abs(other.value) < _EXACT
        real = other is not None and other.type is Type.REAL
        if small or (real and not (isinstance(other, Literal) and isinstance(other.value, WholeFloat))):
            return self._compared_as_doubles()
        digits = [self.digits(arg) for arg in self.args]
        if None in digits or min(map(width, self.args)) < 0:
            return None
        most = max(*map(width, self.args), *(len(str(d.value)) for d in digits if isinstance(d, Literal)))
        pairs = zip(self.args, digits, strict=True)
        return self.call(self.name, *(self.padded(arg, each, most) for arg, each in pairs))

    def padded(self, number: Expr, digits: Expr | None, most: int) -> Expr:
        """Return digits that sort like their numbers; a negative number, which sorts first, is the empty text."""
        assert digits is not None  # the caller checked this
        if isinstance(digits, Literal):
            text = str(digits.value)
            return digits if is_null(digits) else _EMPTY if text < "0" else Literal(text.rjust(most, "0"), Type.TEXT)
        padded = self.call("lpad", digits, Literal(most, Type.INTEGER), Literal("0", Type.TEXT))
        if width(number):
            return padded
        return self.call("case", self.call("lt", number, Literal(0, Type.INTEGER)), _EMPTY, padded)

    def chosen(self, places: Sequence[int]) -> Expr | None:
        """Return a choice among the values at these positions."""
        args = list(self.args)
        for place in places:
            value = self.digits(args[place])
            if value is None:
                return None
            args[place] = value
        return self.call(self.name, *args)

    def remainder(self) -> Expr | None:
        """Return h % c, computed chunk by chunk, with the sign of h."""
        number, divisor = self.args
        if not width(number) or not isinstance(divisor, Literal) or not isinstance(divisor.value, int):
            return self._compared_as_doubles() if divisor.type is Type.REAL else None
        if not 0 < abs(divisor.value) <= _MOST_DIVISOR:
            return Literal(None, Type.INTEGER) if divisor.value == 0 else None
        signed, by = width(number) < 0, Literal(abs(divisor.value), Type.INTEGER)
        chunks = -(-abs(width(number)) // _CHUNK)
        minus = Literal("-", Type.TEXT)
        digits = self.call("replace", number, minus, _EMPTY) if signed else number
        padded = self.call("lpad", digits, Literal(_CHUNK * chunks, Type.INTEGER), Literal("0", Type.TEXT))
        rest: Expr = Literal(0, Type.INTEGER)
        for chunk in range(chunks):
            first, count = (Literal(each, Type.INTEGER) for each in (1 + _CHUNK * chunk, _CHUNK))
            part = self._part(self.call("substring", padded, first, count), nullable=unfiltered(number).nullable)
            moved = self.call("multiply", rest, Literal(10**_CHUNK % abs(divisor.value), Type.INTEGER))
            rest = self.call("modulo", self.call("add", moved, part), by)
        if not signed:
            return rest
        negative = self.call("eq", self.call("left", number, Literal(1, Type.INTEGER)), minus)
        return self.call("case", negative, self.call("negate", rest), rest)

    def _part(self, digits: Expr, *, nullable: bool) -> Expr:
        """Return a chunk of digits as a number; the text type does not bound it or guarantee digits."""
        zero, most = Literal(0, Type.INTEGER), Literal(10**_CHUNK - 1, Type.INTEGER)
        part = self.call("clamp", self.call("text_to_bigint", digits), zero, most)
        return part if nullable else self.call("coalesce", part, zero)

    def clipped(self) -> Expr | None:
        """Return CLAMP(h, lower, upper) with constants: after clipping to exact bounds, the double is the same
        number."""
        number, *ends = self.args
        if not width(number) or not all(isinstance(end, Literal) and end.type.numeric for end in ends):
            return None
        real = self.call("clamp", self.double(number), *ends)
        if not all(end.type is Type.INTEGER and unfiltered(end).range.magnitude <= _EXACT for end in ends):
            return real
        whole = self.call("clamp", self.call("to_bigint", real), *ends)
        return whole if unfiltered(number).nullable else self.call("coalesce", whole, ends[0])

    def unsigned(self) -> Expr | None:
        """Return CAST(h AS UBIGINT): h itself if it has no sign and fits."""
        return self.args[0] if width(self.args[0]) == width_of("UBIGINT") else None


_Rule = Callable[[WideCall], Expr | None]
_RULES: Mapping[str, _Rule] = {
    "is_null": WideCall.as_written,
    **dict.fromkeys(("text_join", "concat", "concat_ws"), WideCall.as_written),
    **dict.fromkeys(("eq", "ne", "in", "distinct", "not_distinct"), WideCall.equal),
    **dict.fromkeys(("lt", "le", "gt", "ge"), WideCall.ordered),
    **{
        f"text_to_{word}": WideCall.as_written
        for word in ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger")
    },
    "text_to_ubigint": WideCall.unsigned,
    **dict.fromkeys(("text_to_double", "text_to_float", "text_to_decimal"), WideCall.as_written),
    "case": lambda call: call.chosen([*range(1, len(call.args), 2), len(call.args) - 1]),
    "coalesce": lambda call: call.chosen(range(len(call.args))),
    "nullif": lambda call: call.chosen(range(2)),
    "modulo": WideCall.remainder,
    "clamp": WideCall.clipped,
}


_COMPARISONS = frozenset({"eq", "ne", "in", "distinct", "not_distinct", "lt", "le", "gt", "ge"})


def beyond_integers(name: str, args: list[Expr]) -> list[Expr]:
    """Return the arguments of an integer comparison with constants beyond 64 bits moved to doubles that no integer has:
    as a double, the largest integer equals 2^63."""
    if name not in _COMPARISONS or {arg.type for arg in args if not isinstance(arg, Literal)} != {Type.INTEGER}:
        return args
    return [_further(arg) for arg in args]


def _further(expr: Expr) -> Expr:
    """Move a constant that rounds to a 64-bit limit to the next double beyond it; other expressions stay."""
    value = expr.value if isinstance(expr, Literal) else None
    if not isinstance(value, WholeFloat) or abs(value) != 2.0**63:
        return expr
    return Literal(math.nextafter(value, 2 * value), Type.REAL)


def as_text(binder: Binder, node: exp.Expr, expr: Expr) -> Expr:
    """Return digits as an ordinary text."""
    return binder.typed("trim", node, [expr]) if width(expr) else expr


def argument_of(binder: Binder, node: exp.Expr, kind: AggregateFunction, expr: Expr, *, exact: bool) -> Expr:
    """Return an aggregate's argument: digits to count or select from, doubles where bounds clip. exact: within a unit,
    without noise. Raises TypeMismatch."""
    if not width(expr) or kind.counts or kind.distinct:
        return expr
    if not exact and kind.accepts is not None and kind.accepts(Type.TEXT):
        return expr
    if exact:
        raise refusal(expr, binder.span(node))
    return binder.typed("text_to_double", node, [expr])


def ordered_by(binder: Binder, node: exp.Expr, expr: Expr) -> Expr:
    """Return an ordering key. Raises TypeMismatch for digits that may have a sign."""
    if width(expr) < 0:
        raise refusal(expr, binder.span(node))
    return WideCall(binder, "lpad", node, [expr]).padded(expr, expr, width(expr)) if width(expr) else expr


def refuse(expr: Expr, span: Span | None) -> None:
    """Raise TypeMismatch for digits."""
    if width(expr):
        raise refusal(expr, span)


def refusal(expr: Expr, span: Span | None) -> TypeMismatch:
    """Return the refusal, with advice about the first column read."""
    name = next((each.name for each in columns(expr) if each.fact.wide), str(expr))
    return TypeMismatch(
        f"{name}: the type that it is stored as has whole numbers of more than 64 bits, with which this cannot be "
        "computed exactly.",
        span=span,
        hint=f'Declare types={{"{name}": "integer"}}, which reads larger numbers as NULL, or bounds, such as '
        f'bounds={{"{name}": (0, 1000000)}}, to which numbers are clipped.',
    )
