"""Window functions within one privacy unit: one record each, found by name; and a function call with its window.

A call reads the rows of one unit, divided by `partition`, in the order of `order` and then of the tie-breakers of its
node (`nodes.Windows`). RANK, DENSE_RANK and RANGE frames treat rows that are equal in `order` as peers; everything else
works on single rows.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from dpsql.plan.aggregates import AGGREGATES
from dpsql.plan.digits import together
from dpsql.plan.expressions import Expr, Fact, between_integers, unfiltered
from dpsql.plan.expressions import Literal as Constant
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INFINITY, Interval

MOST_ROWS = 1 << 22
"""Maximum number of rows of a unit for window functions; units with more are dropped."""
MOST_STEPS = 10**9
"""Maximum distance in rows of LAG, LEAD and ROWS frames."""
MOST_RANGE = 2**61
"""Maximum distance of RANGE frames over whole numbers: no sum with a number of +/- 2^62 exceeds 64 bits."""
MOST_BUCKETS = 10_000
"""Maximum number of buckets of NTILE."""


Facts = Callable[[Expr], Fact]


@dataclass(frozen=True, eq=False)
class WindowFunction:
    """One window function. `family`: "place" is a row's position among the others, "row" the value of another row,
    "frame" an aggregate of the rows of a frame. `framed`: it has a frame."""

    name: str
    tag: str
    """Permanent name in keys of questions, which are stored in ledgers."""
    family: Literal["place", "row", "frame"]
    result: Callable[[Type], Type]
    """Type of its values, from the argument's (INTEGER without one)."""
    fact_of: Callable[[WindowCall, Facts], Fact]
    """Fact of its values, from the facts of the expressions that it reads."""
    framed: bool = False
    peers: bool = False
    """For "place": equal rows have equal places."""

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class WindowOrder:
    """One term of the ORDER BY of a window."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return f"{self.expr}{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows from `start` to `end`, counted from the current row in the direction of the order: negative offsets precede
    it, 0 is the row itself, None the end of the part. By "rows", or by "range": the rows whose order value is within
    these distances of the current row's, including its peers (days for dates, microseconds for timestamps)."""

    kind: Literal["rows", "range"]
    start: int | float | None
    end: int | float | None

    @property
    def may_be_empty(self) -> bool:
        """True if the frame can exclude the current row."""
        return (self.start is not None and self.start > 0) or (self.end is not None and self.end < 0)

    def __str__(self) -> str:
        return f"{self.kind} {_end(self.start, 'preceding')} to {_end(self.end, 'following')}"


def _end(steps: float | None, beyond: str) -> str:
    if steps is None:
        return f"unbounded {beyond}"
    return "current row" if steps == 0 else f"{abs(steps)} {'preceding' if steps < 0 else 'following'}"


WHOLE = Frame("rows", None, None)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One call. `partition`: divides a unit's rows into parts; none: one part. `number`: distance of LAG and LEAD, and
    number of parts of NTILE. `ignore_nulls`: rows whose argument is NULL are skipped."""

    function: WindowFunction
    argument: Expr | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[WindowOrder, ...] = ()
    frame: Frame | None = None
    number: int = 1
    default: Expr | None = None
    ignore_nulls: bool = False

    @property
    def type(self) -> Type:
        return self.function.result(Type.INTEGER if self.argument is None else self.argument.type)

    def fact(self, facts: Facts = unfiltered) -> Fact:
        """Return the fact of its values; facts: returns the facts of its inputs."""
        return between_integers(self.function.fact_of(self, facts), self.type)

    @property
    def numbers_rows(self) -> bool:
        """True if it numbers the rows of a unit 1, 2, 3 ..., without repetition."""
        return self.function.name == "ROW_NUMBER" and not self.partition

    @property
    def copies(self) -> tuple[Expr, ...]:
        """Expressions from which each of its values is copied; empty if it computes new ones."""
        if self.function.family != "row" and self.function.name not in ("MIN", "MAX"):
            return ()
        assert self.argument is not None  # these have one
        nothing: Expr = Constant(None, self.argument.type)
        more = (self.default or nothing,) if self.default is not None or self.fact().nullable else ()
        return (self.argument, *more)

    def exprs(self) -> Iterator[Expr]:
        """Yield all expressions that it reads from rows."""
        yield from self.partition
        yield from (each.expr for each in self.order)
        yield from (each for each in (self.argument, self.default) if each is not None)

    def __str__(self) -> str:
        read: list[object] = ["*" if self.argument is None and self.function.family == "frame" else self.argument]
        if self.function.name in ("LAG", "LEAD"):
            read += [self.number, *([] if self.default is None else [self.default])]
        if self.function.name == "NTILE":
            read = [self.number]
        args = ", ".join(str(each) for each in read if each is not None)
        by = f" by {', '.join(map(str, self.partition))}" if self.partition else ""
        order = f" in order of {', '.join(map(str, self.order))}" if self.order else ""
        frame = "" if self.frame is None else f", {self.frame}"
        nulls = " ignoring NULLs" if self.ignore_nulls else ""
        return f"{self.function}({args}){nulls}{by}{order}{frame}"


# Facts of their values.


def _counted(least: int) -> Fact:
    """Return the fact of a count of a unit's rows, whose number is undeclared."""
    return Fact(Interval(least, MOST_ROWS), nullable=False, whole=True).meaning(Interval(least, INFINITY))


def _tile(call: WindowCall, _facts: Facts) -> Fact:
    return Fact(Interval(1, call.number), nullable=False)


def _share(_call: WindowCall, _facts: Facts) -> Fact:
    return Fact(Interval(0, 1), nullable=False)


def _other_row(call: WindowCall, facts: Facts) -> Fact:
    """Return the fact of the argument or the default, which is NULL if not given."""
    assert call.argument is not None  # LAG and LEAD have one
    held = facts(call.argument)
    if call.default is None:
        return replace(held, nullable=True)
    return together([held, facts(call.default)])


def _of_frame(call: WindowCall, facts: Facts) -> Fact:
    assert call.argument is not None  # they have one
    assert call.frame is not None  # as above
    held = facts(call.argument)
    return replace(held, nullable=held.nullable or call.frame.may_be_empty)


def _aggregated(name: str) -> Callable[[WindowCall, Facts], Fact]:
    def fact_of(call: WindowCall, facts: Facts) -> Fact:
        return AGGREGATES[name].fact_of(_of_frame(call, facts))

    return fact_of


def _integer(_kind: Type) -> Type:
    return Type.INTEGER


def _real(_kind: Type) -> Type:
    return Type.REAL


def _same(kind: Type) -> Type:
    return kind


WINDOWS: dict[str, WindowFunction] = {
    each.name: each
    for each in (
        WindowFunction("ROW_NUMBER", "row number", "place", _integer, lambda _call, _facts: _counted(1)),
        WindowFunction("RANK", "rank", "place", _integer, lambda _call, _facts: _counted(1), peers=True),
        WindowFunction("DENSE_RANK", "dense rank", "place", _integer, lambda _call, _facts: _counted(1), peers=True),
        WindowFunction("NTILE", "tile", "place", _integer, _tile),
        WindowFunction("PERCENT_RANK", "percent rank", "place", _real, _share, peers=True),
        WindowFunction("CUME_DIST", "cumulative share", "place", _real, _share, peers=True),
        WindowFunction("LAG", "lag", "row", _same, _other_row),
        WindowFunction("LEAD", "lead", "row", _same, _other_row),
        WindowFunction("FIRST_VALUE", "first value", "row", _same, _of_frame, framed=True),
        WindowFunction("LAST_VALUE", "last value", "row", _same, _of_frame, framed=True),
        WindowFunction("COUNT", "count", "frame", _integer, lambda _call, _facts: _counted(0), framed=True),
        *(
            WindowFunction(name, tag, "frame", AGGREGATES[name].result, _aggregated(name), framed=True)
            for name, tag in (("SUM", "sum"), ("AVG", "average"), ("MIN", "least"), ("MAX", "largest"))
        ),
    )
}


def window_named(name: str) -> WindowFunction:
    """Return the record of a window function. Raises KeyError."""
    return WINDOWS[name]


def _by_name(function: WindowFunction) -> tuple[object, tuple[str]]:
    return window_named, (function.name,)


copyreg.pickle(WindowFunction, _by_name)  # type: ignore[arg-type]  # its stub wants a callable first
