"""Typed scalar expressions: total functions only, three-valued logic.

An expression is a frozen tree of `Column`, `Literal`, `Slot` and `Call`. What a function is (its types, ranges, NULLs
and kernel) stands in one `Function` record; everything else here only walks the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.calendar import show_date, show_timestamp
from dpsql.intervals import BOOLEAN, EVERYTHING, Interval, point
from dpsql.schema import Key, Type

Array = NDArray[Any]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression's values without reading them: where they lie, and whether NULL is possible."""

    range: Interval = EVERYTHING
    nullable: bool = True
    whole: bool = False
    """Every value is an integer; then the ends of a bounded range are integers too."""


@dataclass(frozen=True, slots=True, repr=False)
class Vector:
    """A block of values. `valid` marks the cells that are not NULL; None when none is NULL. Prints none of them."""

    values: Array
    valid: Bools | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at(self, places: Array | slice) -> Vector:
        """The cells at these places."""
        return Vector(self.values[places], None if self.valid is None else self.valid[places])

    def where_valid(self) -> Bools:
        return np.ones(len(self.values), dtype=bool) if self.valid is None else self.valid


@dataclass(frozen=True, eq=False)
class Function:
    """One function of the language, in one place.

    type_of(argument types, argument facts): the result's type, or None where the types do not fit.
    fact_of(argument facts): range and nullability of the result; must hold for every input inside the facts.
    kernel(result type, vectors): computes a block; total, never raises on values.
    show: a format string with {0}, {1} or {args}, for plans.
    sql: the same function in DuckDB's SQL with {0}, {1} or {args}, total as the kernel is; made from the argument types
    and the result's where they matter. Other engines get it translated.
    syntax: what is written for it: parser nodes with the names of their arguments in order, such as "Round(this,
    decimals)" or "Coalesce(this, *expressions)", and bare names ("CLAMP") of functions that the parser does not know.
    """

    name: str
    arity: tuple[int, int | None]
    type_of: Callable[[Sequence[Type], Sequence[Fact]], Type | None]
    fact_of: Callable[[Sequence[Fact]], Fact]
    kernel: Callable[[Type, Sequence[Vector]], Vector]
    show: str
    wants: str
    """What the arguments must be, for the message of a TypeMismatch: "numbers"."""
    sql: str | Callable[[Sequence[Type], Type], str] = ""
    syntax: tuple[str, ...] = ()

    def emit(self, kinds: Sequence[Type], result: Type, args: Sequence[str]) -> str:
        """The call in DuckDB's SQL, of arguments already written out; NaN is NULL after every node."""
        template = self.sql if isinstance(self.sql, str) else self.sql(kinds, result)
        text = template.format(*args, args=", ".join(args), rest=", ".join(args[1:]))
        return f"NULLIF({text}, CAST('NaN' AS DOUBLE))" if result is Type.REAL else f"({text})"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _function_named, (self.name,)


def _function_named(name: str) -> Function:
    from dpsql.sql.functions import FUNCTIONS  # the functions are made of this module

    return FUNCTIONS[name]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the scanned table."""

    name: str
    type: Type
    fact: Fact

    def __str__(self) -> str:
        plain = self.name.isidentifier() and self.name.isascii()
        return self.name if plain else '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the query; None is NULL."""

    value: Key
    type: Type

    @property
    def fact(self) -> Fact:
        if self.value is None:
            return Fact(point(0), nullable=True)
        number = isinstance(self.value, int | float)
        return Fact(point(self.value) if number else EVERYTHING, nullable=False)  # type: ignore[arg-type]

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if self.type is Type.DATE:
            return f"DATE '{show_date(int(self.value))}'"
        if self.type is Type.TIMESTAMP:
            return f"TIMESTAMP '{show_timestamp(int(self.value))}'"
        return str(self.value).upper() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, slots=True)
class Slot:
    """A released value: output `index` of the aggregation (keys first, then aggregates)."""

    index: int
    name: str
    type: Type

    @property
    def fact(self) -> Fact:
        return Fact()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions."""

    function: Function
    args: tuple[Expr, ...]
    type: Type

    def __str__(self) -> str:
        texts = [str(arg) for arg in self.args]  # each once, or deep trees would take exponential time
        infix = [isinstance(arg, Call) and arg.function.show.startswith("{") for arg in self.args]
        shown = [f"({text})" if inner else text for text, inner in zip(texts, infix, strict=True)]
        return self.function.show.format(*shown, args=", ".join(texts), rest=", ".join(shown[1:]))


Expr = Column | Literal | Slot | Call


def call(function: Function, *args: Expr) -> Call | None:
    """The typed application of a function; None where the types do not fit."""
    kind = function.type_of([arg.type for arg in args], [fact(arg) for arg in args])
    return None if kind is None else Call(function, tuple(args), kind)


def fact(expr: Expr, known: Mapping[Expr, Fact] | None = None) -> Fact:
    """Range and nullability of an expression, from its parts and from what a filter has made `known`."""
    if isinstance(expr, Call):
        derived = expr.function.fact_of([fact(arg, known) for arg in expr.args])
        if expr.type is Type.BOOLEAN:
            derived = Fact(derived.range.intersect(BOOLEAN) or BOOLEAN, derived.nullable)
    else:
        derived = expr.fact
    said = known.get(expr) if known else None
    held, nullable = derived.range, derived.nullable
    if said is not None:  # nothing in common means that no row passes the filter: either fact then holds
        held, nullable = held.intersect(said.range) or held, nullable and said.nullable
    whole = expr.type.discrete
    return Fact(_between_integers(held) if whole else held, nullable, whole)


def _between_integers(held: Interval) -> Interval:
    """The integers of a range; one step outward where it holds none, which is wider but still true."""
    lower = math.ceil(held.lower) if math.isfinite(held.lower) else held.lower
    upper = math.floor(held.upper) if math.isfinite(held.upper) else held.upper
    return Interval(lower, upper) if lower <= upper else Interval(upper, lower)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, outermost first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns(expr: Expr) -> list[Column]:
    """The columns that an expression reads, each once, in order."""
    return list(dict.fromkeys(part for part in walk(expr) if isinstance(part, Column)))


def rebuild(expr: Expr, replace: Mapping[Expr, Expr]) -> Expr:
    """The expression with every part that `replace` names put in its place."""
    if expr in replace:
        return replace[expr]
    if isinstance(expr, Call):
        return Call(expr.function, tuple(rebuild(arg, replace) for arg in expr.args), expr.type)
    return expr


def evaluate(expr: Expr, read: Callable[[Column | Slot], Vector], size: int) -> Vector:
    """The values of an expression over one block of `size` cells; `read` gives the block of a column or slot."""
    if isinstance(expr, Literal):
        return constant(expr, size)
    if isinstance(expr, Column | Slot):
        return read(expr)
    return expr.function.kernel(expr.type, [evaluate(arg, read, size) for arg in expr.args])


DTYPES: Mapping[Type, type] = {
    Type.INTEGER: np.int64,
    Type.REAL: np.float64,
    Type.BOOLEAN: np.bool_,
    Type.TEXT: np.object_,
    Type.DATE: np.int64,
    Type.TIMESTAMP: np.int64,
    Type.OTHER: np.object_,
}
_BLANK: Mapping[Type, Key] = {
    Type.INTEGER: 0,
    Type.REAL: 0.0,
    Type.BOOLEAN: False,
    Type.TEXT: "",
    Type.DATE: 0,
    Type.TIMESTAMP: 0,
    Type.OTHER: "",
}


def blank(kind: Type) -> Key:
    """What stands in the cell of a NULL."""
    return _BLANK[kind]


def constant(literal: Literal, size: int) -> Vector:
    """The literal `size` times over, as a view of one cell."""
    missing = literal.value is None
    cell: Array = np.array([blank(literal.type) if missing else literal.value], DTYPES[literal.type])
    valid = np.broadcast_to(np.zeros(1, dtype=bool), size) if missing else None
    return Vector(np.broadcast_to(cell, size), valid)


def folded(expr: Call) -> Call | Literal:
    """The literal that a call of literals comes to (functions are total and know no other input)."""
    if not all(isinstance(arg, Literal) for arg in expr.args):
        return expr
    vector = evaluate(expr, lambda column: constant(Literal(None, column.type), 1), 1)
    missing = vector.valid is not None and not vector.valid[0]
    return Literal(
        None if missing else vector.values[0].item() if vector.values.dtype != object else vector.values[0], expr.type
    )
