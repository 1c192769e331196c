"""The plan of a query: frozen relational operators up to `Aggregate`, and what is done with the noisy rows afterwards.

`bind` makes a `Query(plan, finish)`. Everything below and at `Aggregate` is private; `Finish` sees released values
only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from dpsql.errors import Span
from dpsql.plan.expressions import Column, Expr, Slot
from dpsql.plan.nodes import Filter, Join, Mark, PerUnit, Scan, Source, Union, filters_of, inputs_of, scan_of, scans_of
from dpsql.schema.columns import MOST_KEYS, Key
from dpsql.schema.intervals import Interval

__all__ = ["Filter", "Join", "Mark", "PerUnit", "Scan", "Source", "Union", "filters_of", "scan_of", "scans_of"]


MOST_DERIVED_CELLS = 10_000
"""Public groups that nobody listed (booleans, bounded integers) are all shown only up to so many."""


MOST_POINTS = 65_536
"""Values are chosen among at most so many public ones."""


class AggregateKind(StrEnum):
    """What is computed of a group's rows."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    DISTINCT = "COUNT(DISTINCT)"
    """How many different values."""
    VAR_POP = "VAR_POP"
    VAR_SAMP = "VAR_SAMP"
    STDDEV_POP = "STDDEV_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    COVAR_POP = "COVAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    CORR = "CORR"
    REGR_SLOPE = "REGR_SLOPE"
    REGR_INTERCEPT = "REGR_INTERCEPT"
    REGR_R2 = "REGR_R2"
    QUANTILE = "QUANTILE"
    """MEDIAN too: the quantile at 1/2."""
    MODE = "MODE"
    TOP_K = "APPROX_TOP_K"


SPREADS = frozenset({
    AggregateKind.VAR_POP, AggregateKind.VAR_SAMP, AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP
})  # fmt: skip
"""Of one argument and its square."""
PAIRS = frozenset({
    AggregateKind.COVAR_POP, AggregateKind.COVAR_SAMP, AggregateKind.CORR,
    AggregateKind.REGR_SLOPE, AggregateKind.REGR_INTERCEPT, AggregateKind.REGR_R2,
})  # fmt: skip
"""Of two arguments (y, x), over the rows where neither is NULL."""
EXACT = frozenset({
    AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.AVG, AggregateKind.MIN, AggregateKind.MAX,
    AggregateKind.DISTINCT
})  # fmt: skip
"""Those that are computed exactly too: of released rows, of public ones, and of each unit's own."""
RANKED = frozenset({AggregateKind.QUANTILE, AggregateKind.MIN, AggregateKind.MAX})
"""A value chosen by its rank."""
CHOSEN = RANKED | {AggregateKind.MODE, AggregateKind.TOP_K}
"""A value of the column itself, chosen at random: the better it fits, the likelier."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate; `argument` is None for COUNT(*). `span` is its place in the text, for messages only.

    `per_unit`: what one privacy unit adds to a group, its total or (for AVG) its own average, is clipped to that."""

    kind: AggregateKind
    argument: Expr | None
    span: Span | None = field(default=None, compare=False, hash=False)
    epsilon: Fraction | None = None
    """Its own part of the query's epsilon, where the text gives it one."""
    per_unit: Interval | None = None
    second: Expr | None = None
    """The x of an aggregate of two arguments (y, x)."""
    at: Fraction | None = None
    """Which quantile, from 0 to 1; of APPROX_TOP_K how many values."""
    of_units: bool = False
    """COUNT(DISTINCT) of the privacy unit itself: a unit adds one at most."""
    values: tuple[Key, ...] | None = None
    """The public values that MODE and APPROX_TOP_K choose among."""

    @property
    def word(self) -> str:
        """What it is called in the text."""
        median = self.kind is AggregateKind.QUANTILE and self.at == Fraction(1, 2)
        return "MEDIAN" if median else str(self.kind)

    def __str__(self) -> str:
        own = "" if self.epsilon is None else f", epsilon => {float(self.epsilon):g}"
        clip = "" if self.per_unit is None else f", of each privacy unit in {self.per_unit}"
        if self.kind is AggregateKind.DISTINCT:
            return f"COUNT(DISTINCT {self.argument}{own})"
        more = "" if self.second is None else f", {self.second}"
        more += "" if self.at is None or self.word == "MEDIAN" else f", {float(self.at):g}"
        what = "*" if self.argument is None else self.argument
        return f"{self.word}({what}{more}{own}{clip})"

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The expressions that are read of each row."""
        return tuple(each for each in (self.argument, self.second) if each is not None)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One GROUP BY term. `values` is its public list of groups, None where the values are themselves private.

    With `listed` that list is the owner's own, of a bare column: a value outside it counts as NULL where NULL is
    listed, and is left out where it is not."""

    expr: Expr
    values: tuple[Key, ...] | None
    listed: bool = False
    span: Span | None = field(default=None, compare=False, hash=False)

    @property
    def name(self) -> str:
        return self.expr.name if isinstance(self.expr, Column) else str(self.expr)

    def __str__(self) -> str:
        return f"{self.expr} ({'unknown' if self.values is None else f'{len(self.values)} public'})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The private root: exact sums per group, to be released with noise."""

    input: Source
    keys: tuple[GroupKey, ...]
    aggregations: tuple[Aggregation, ...]
    sets: tuple[tuple[int, ...], ...] = ()
    """Grouping sets, places of keys in ascending order; none: the rows are grouped by all keys."""

    @property
    def public_cells(self) -> int | None:
        """How many groups the answer has when all keys are public and they are few enough to show; else None."""
        cells = 1
        for key in self.keys:
            if key.values is None:
                return None
            cells *= len(key.values)
        listed = all(key.listed for key in self.keys)
        return cells if cells <= (MOST_KEYS if listed else MOST_DERIVED_CELLS) else None

    def __str__(self) -> str:
        by = f" by {', '.join(str(key) for key in self.keys)}" if self.keys else ""
        names = (", ".join(self.keys[place].name for place in each) for each in self.sets)
        by += f" in sets ({'), ('.join(names)})" if self.sets else ""
        return f"aggregate {', '.join(str(each) for each in self.aggregations)}{by}"


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer: an expression over released values."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Order:
    """One ORDER BY term. NULLs go last unless said otherwise."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return f"{self.expr}{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True)
class Finish:
    """HAVING, ORDER BY, LIMIT, OFFSET, DISTINCT and the SELECT list, all over noisy values: free post-processing."""

    outputs: tuple[Output, ...]
    having: Expr | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False

    def __str__(self) -> str:
        parts = ["finish " + ", ".join(f"{each.expr} AS {each.name}" for each in self.outputs)]
        parts += ["distinct"] if self.distinct else []
        parts += [f"having {self.having}"] if self.having is not None else []
        parts += ["order by " + ", ".join(str(each) for each in self.order)] if self.order else []
        parts += [f"limit {self.limit}"] if self.limit is not None else []
        parts += [f"offset {self.offset}"] if self.offset else []
        return " | ".join(parts)


@dataclass(frozen=True, slots=True)
class Stage:
    """A SELECT over the rows that the stage before it (or the finish) has made: free post-processing.

    Expressions of `where`, `keys` and aggregate arguments read `Slot(i)`, column i of those rows; the finish reads
    keys first and then aggregates where the stage is `grouped`, else the columns themselves.
    """

    where: Expr | None
    grouped: bool
    keys: tuple[Expr, ...]
    aggregations: tuple[Aggregation, ...]
    finish: Finish

    def __str__(self) -> str:
        parts = ["select over the released rows"]
        parts += [f"where {self.where}"] if self.where is not None else []
        if self.grouped:
            parts += ["aggregate " + ", ".join(str(each) for each in self.aggregations)]
            parts += ["by " + ", ".join(str(each) for each in self.keys)] if self.keys else []
        return " | ".join([*parts, str(self.finish)])


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query: the private plan, its free finish and the free stages after it. `slots` are the finish's inputs,
    keys first."""

    plan: Aggregate
    finish: Finish
    slots: tuple[Slot, ...]
    stages: tuple[Stage, ...] = ()
    computed_from: frozenset[str] = frozenset()
    """Public tables, by folded name, of which constants of the plan were computed: they need not stand in it."""


def format_plan(query: Query) -> str:
    """The plan as text, outermost first: the golden text of the tests and the heart of EXPLAIN."""
    lines = [*(str(stage) for stage in reversed(query.stages)), str(query.finish), str(query.plan)]
    head = ["  " * depth + line for depth, line in enumerate(lines)]
    return "\n".join([*head, *_tree(query.plan.input, len(lines))])


def _tree(source: Source, depth: int) -> list[str]:
    """A source and its inputs, a level further in each."""
    lines = ["  " * depth + str(source)]
    for each in inputs_of(source):
        lines += _tree(each, depth + 1)
    return lines
