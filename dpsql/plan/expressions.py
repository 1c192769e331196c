"""Typed scalar expressions: total functions only, three-valued logic.

An expression is a frozen tree of `Column`, `Literal`, `Slot` and `Call`. One `Function` record defines a function (its
types, ranges, NULLs and kernel); everything else here only walks the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.work import LONGEST_TEXT, Length, Work, unknown
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import EARLIER, Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import BOOLEAN, EVERYTHING, Interval, point

Array = NDArray[Any]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fact:
    """Facts about an expression's values known without reading them: their range, and whether NULL is possible."""

    range: Interval = EVERYTHING
    nullable: bool = True
    whole: bool = False
    """True if every value is an integer; then the ends of a bounded range are integers too."""
    meant: Interval | None = None
    """Range from declared bounds, constants and filters. None if equal to `range`.

    Types have their own limits (no LENGTH is beyond 2^32 - 1, no date before year 1), which bound arithmetic but do not
    indicate expected values. Both ranges hold for every value, and functions are applied to both.
    """

    most: int | None = None
    """Maximum number of characters of texts, if the expression limits them: LEFT(city, 3)."""

    wide: int = 0
    """For texts that are digits of whole numbers: as `ColumnSchema.wide`; 0 for all other values."""

    @property
    def said(self) -> Interval:
        return self.range if self.meant is None else self.meant

    @property
    def limited(self) -> bool:
        """True if both ends are bounded by declarations, constants or filters."""
        return self.range.bounded and self.said.bounded

    def meaning(self, said: Interval) -> Fact:
        """Return the fact with `said` as declared range. A `said` with two ends replaces `range` for this purpose."""
        return replace(self, meant=None if said.bounded or said == self.range else said)


@dataclass(frozen=True, slots=True, repr=False)
class Vector:
    """A block of values. `valid` marks the cells that are not NULL; None if none is NULL. Its repr shows no values."""

    values: Array
    valid: Bools | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at(self, places: Array | slice) -> Vector:
        """Return the cells at these places."""
        return Vector(self.values[places], None if self.valid is None else self.valid[places])

    def where_valid(self) -> Bools:
        return np.ones(len(self.values), dtype=bool) if self.valid is None else self.valid


@dataclass(frozen=True, eq=False)
class Function:
    """One function of the language, in one place.

    type_of(argument types, argument facts): the result's type, or None if the types do not fit. fact_of(argument
    facts): range and nullability of the result; must hold for every input inside the facts. If the range is bounded
    only because its type is, the fact states that (`Fact.meant`). Called by `fact`. kernel(result type, vectors):
    computes a block; total, never raises on values. show: a format string with {0}, {1} or {args}, for plans; or a
    function that formats the call from its arguments' texts. sql: the same function in DuckDB's SQL with {0}, {1} or
    {args}, total like the kernel; or a function of the types of arguments and result. It is translated for other
    engines. work: time of one call, by the lengths of its arguments (`plan.work`). length: maximum number of characters
    of a text that it makes; never more than LONGEST_TEXT. reads: longest texts that it reads, by argument, the last for
    all others. Longer texts are NULL. None: it reads and returns texts of any length. Constants are read as they are.
    syntax: parser nodes with the names of their arguments in order, such as "Round(this, decimals)" or "Coalesce(this,
    *expressions)", and bare names ("CLAMP") of functions that the parser does not know.
    """

    name: str
    arity: tuple[int, int | None]
    type_of: Callable[[Sequence[Type], Sequence[Fact]], Type | None]
    fact_of: Callable[[Sequence[Fact]], Fact]
    kernel: Callable[[Type, Sequence[Vector]], Vector]
    show: str | Callable[[Sequence[str]], str]
    wants: str
    """Required arguments, for the message of a TypeMismatch: "numbers"."""
    sql: str | Callable[[Sequence[Type], Type], str] = ""
    syntax: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    """All possible texts of the result, for any arguments: public keys. Empty if unlimited."""
    work: Work = unknown
    length: Length | None = None
    reads: tuple[int, ...] | None = (LONGEST_TEXT,)

    def fact(self, facts: Sequence[Fact]) -> Fact:
        """Return the fact of the result, from type limits and from declared ranges.

        The same rule is applied to both kinds of ranges: for LENGTH(city) % 7, whose argument has no declared range, it
        gives 0 to 6.
        """
        by_arithmetic = self.fact_of(facts)
        if all(each.meant is None for each in facts):
            return by_arithmetic
        return by_arithmetic.meaning(self.fact_of([replace(each, range=each.said, meant=None) for each in facts]).said)

    def emit(self, kinds: Sequence[Type], result: Type, args: Sequence[str]) -> str:
        """Return the call in DuckDB's SQL, with arguments already formatted; NaN is NULL after every node."""
        template = self.sql if isinstance(self.sql, str) else self.sql(kinds, result)
        text = template.format(*args, args=", ".join(args), rest=", ".join(args[1:]))
        return f"NULLIF({text}, TRY_CAST('NaN' AS DOUBLE))" if result is Type.REAL else f"({text})"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the plan. `table`: the place in the query that makes it; empty if there is only one table."""

    name: str
    type: Type
    fact: Fact
    table: str = ""
    shown: str = field(default="", compare=False)
    """The table's name next to others, for messages."""

    def __hash__(self) -> int:
        return hash(self.name)  # columns are looked up often, and few of one query share a name

    def __str__(self) -> str:
        name = _quoted(self.name)
        return name if not self.shown else self.shown if self.table == EARLIER else f"{_quoted(self.shown)}.{name}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the query; None is NULL."""

    value: Key
    type: Type

    @property
    def fact(self) -> Fact:
        return _fact_of(self.value, self.type)

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


NOTHING = point(0)
"""The range of NULL."""


@lru_cache(maxsize=4096)
def _fact_of(value: Key, kind: Type) -> Fact:
    """Return the fact of a constant."""
    if value is None:
        return Fact(NOTHING, nullable=True, whole=kind.discrete)
    number = isinstance(value, int | float)
    held = point(value) if number else EVERYTHING  # type: ignore[arg-type]
    return Fact(held, nullable=False, whole=kind.discrete, most=len(value) if isinstance(value, str) else None)


@dataclass(frozen=True, slots=True)
class Slot:
    """A released value: output `index` of the aggregation (keys first, then aggregates)."""

    index: int
    name: str
    type: Type
    wide: int = 0
    """As `Fact.wide`."""

    @property
    def fact(self) -> Fact:
        return Fact(wide=self.wide)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions, made by `call_of`. `held` is the fact of its values over all rows, `size` its
    number of nodes. The hash is computed once, since trees are looked up often."""

    function: Function
    args: tuple[Expr, ...]
    type: Type
    held: Fact = field(compare=False)
    size: int = field(compare=False)
    branches: bool = field(compare=False)
    """True if it contains a CASE."""
    _hash: int = field(compare=False)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return call_of, (self.function, self.args, self.type)  # hashes of texts differ between processes

    def __str__(self) -> str:
        texts = [str(arg) for arg in self.args]  # each once; otherwise, deep trees would take exponential time
        show = self.function.show
        if not isinstance(show, str):
            return show(texts)
        infix = [isinstance(arg, Call) and str(arg.function.show).startswith("{") for arg in self.args]
        shown = [f"({text})" if inner else text for text, inner in zip(texts, infix, strict=True)]
        return show.format(*shown, args=", ".join(texts), rest=", ".join(shown[1:]))


@dataclass(frozen=True, slots=True)
class IntervalEnd:
    """One end of the noise interval of an output over released values; `expr` is that output."""

    expr: Expr
    level: float
    upper: bool
    type: Type = Type.REAL

    def __str__(self) -> str:
        return f"DP_INTERVAL_{'HIGH' if self.upper else 'LOW'}({self.expr}, {self.level:g})"


@dataclass(frozen=True, slots=True)
class Report:
    """An aggregate with its noise interval, as one JSON text."""

    expr: Slot
    level: float
    type: Type = Type.TEXT

    def __str__(self) -> str:
        return f"REPORT({self.expr})"


Leaf = Column | Literal | Slot | IntervalEnd | Report
Expr = Leaf | Call


def call_of(function: Function, args: tuple[Expr, ...], kind: Type) -> Call:
    """Return the application of a function with a given result type."""
    held = between_integers(function.fact([unfiltered(arg) for arg in args]), kind)
    size = 1 + sum(arg.size if isinstance(arg, Call) else 1 for arg in args)
    branches = function.name == "case" or any(isinstance(arg, Call) and arg.branches for arg in args)
    return Call(function, args, kind, held, size, branches, hash((function.name, args, kind)))


def call(function: Function, *args: Expr) -> Call | None:
    """Return the typed application of a function; None if the types do not fit."""
    kind = function.type_of([arg.type for arg in args], [unfiltered(arg) for arg in args])
    return None if kind is None else call_of(function, args, kind)


def unfiltered(expr: Expr) -> Fact:
    """Return range and nullability of an expression over all rows."""
    if isinstance(expr, Call):
        return expr.held
    if isinstance(expr, Column | Literal):
        return expr.fact if expr.fact.whole else between_integers(expr.fact, expr.type)
    return expr.fact if isinstance(expr, Slot) else Fact()


def between_integers(known: Fact, kind: Type) -> Fact:
    """Round a fact's ends to integers if its values are. A range without integers is widened outward by one step, and
    remains true."""
    if kind is Type.BOOLEAN:
        return Fact(known.range.intersect(BOOLEAN) or BOOLEAN, known.nullable, whole=True)
    if not kind.discrete:
        return replace(known, whole=False) if known.whole else known
    meant = None if known.meant is None else _whole_ends(known.meant)
    return Fact(_whole_ends(known.range), known.nullable, whole=True, meant=meant)


def _whole_ends(span: Interval) -> Interval:
    lower = math.ceil(span.lower) if math.isfinite(span.lower) else span.lower
    upper = math.floor(span.upper) if math.isfinite(span.upper) else span.upper
    return Interval(min(lower, upper), max(lower, upper))


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and all its parts, outermost first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns(expr: Expr) -> list[Column]:
    """Return the distinct columns that an expression reads, in order."""
    return list(dict.fromkeys(part for part in walk(expr) if isinstance(part, Column)))


def rebuild(expr: Expr, replace: Mapping[Expr, Expr]) -> Expr:
    """Return the expression with every part named in `replace` replaced."""
    if expr in replace:
        return replace[expr]
    if isinstance(expr, Call):
        return call_of(expr.function, tuple(rebuild(arg, replace) for arg in expr.args), expr.type)
    return expr


DTYPES: Mapping[Type, type] = {
    Type.INTEGER: np.int64,
    Type.REAL: np.float64,
    Type.BOOLEAN: np.bool_,
    Type.TEXT: np.object_,
    Type.DATE: np.int64,
    Type.TIMESTAMP: np.int64,
    **dict.fromkeys((Type.OTHER, Type.OBJECT), np.object_),
}
_BLANK: Mapping[Type, Key] = {
    **dict.fromkeys((Type.INTEGER, Type.DATE, Type.TIMESTAMP), 0),
    **dict.fromkeys((Type.TEXT, Type.OTHER, Type.OBJECT), ""),
    Type.REAL: 0.0,
    Type.BOOLEAN: False,
}


def blank(kind: Type) -> Key:
    """Return the cell value that stands for NULL."""
    return _BLANK[kind]


def conjuncts(expr: Expr) -> list[Expr]:
    """Return the terms of an AND, in order."""
    if isinstance(expr, Call) and expr.function.name == "and":
        return [part for arg in expr.args for part in conjuncts(arg)]
    return [expr]
