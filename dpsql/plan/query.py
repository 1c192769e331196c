"""The plan of a query: frozen relational operators up to `Aggregate`, and the post-processing of the noisy rows.

`bind` makes a `Query(plan, finish)`. Everything below and at `Aggregate` is private; `Finish` sees released values
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from dpsql.errors import Span
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Column, Expr, Slot, walk
from dpsql.plan.nodes import Source, inputs_of
from dpsql.schema.columns import MOST_KEYS, Key
from dpsql.schema.frozen import dataclass

MOST_DERIVED_CELLS = 10_000
"""Maximum number of public groups that nobody listed (booleans, bounded integers) for all of them to be shown."""
MOST_TOGETHER = 100_000
"""Maximum number of rows of public tables with correlated keys; with more, all combinations of the keys' values are
groups, if they are few enough."""
MOST_AGGREGATES = 100
"""Maximum number of different aggregates of one query, which share its epsilon."""


@dataclass(frozen=True, slots=True)
class ReleasedKey:
    """Values of a key from a prior release: those of `expr` over a `source` of public rows; `present`: NULL is
    excluded."""

    source: Source
    expr: Expr
    present: bool


@dataclass(frozen=True, slots=True)
class CorrelatedKey:
    """A key of correlated keys from rows of public tables, each row once and in ascending order: `places` has, by row,
    the position of its value in the key's list. Keys of one `number` have the same rows."""

    number: int
    places: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One GROUP BY term. `values` is its public list of groups, None if the values are private.

    With `listed`, that list is the owner's, for a bare column: other values count as NULL if NULL is listed, and are
    dropped otherwise. With `shown`, its values come from a prior release; until then, `values` are placeholders for at
    most as many. With `together`, only combinations with other keys in public rows exist.
    """

    expr: Expr
    values: tuple[Key, ...] | None
    listed: bool = False
    span: Span | None = field(default=None, compare=False, hash=False)
    shown: ReleasedKey | None = None
    together: CorrelatedKey | None = None

    def __post_init__(self) -> None:
        places = () if self.together is None else self.together.places
        if places and not 0 <= min(places) <= max(places) < len(self.values or ()):
            raise ValueError("a row of public tables has a value that is none of the key's")

    @property
    def name(self) -> str:
        return self.expr.name if isinstance(self.expr, Column) else str(self.expr)

    def __str__(self) -> str:
        if self.shown is not None:
            return f"{self.expr} (at most {len(self.values or ())}, shown before)"
        rows = "" if self.together is None else f", {len(self.together.places)} together"
        return f"{self.expr} ({'unknown' if self.values is None else f'{len(self.values)} public{rows}'})"


@dataclass(frozen=True, slots=True)
class Axis:
    """Keys that are enumerated together, by position: a single key, or correlated keys. `cells`: number of combinations
    of their values."""

    keys: tuple[int, ...]
    cells: int


def axes_of(keys: Sequence[GroupKey]) -> tuple[Axis, ...]:
    """Return the axes of keys, in the order of the first key of each. Groups are all combinations of these, the last
    axis changing fastest. Raises ValueError for correlated keys with different numbers of rows."""
    together: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        together.setdefault(("alone", place) if key.together is None else key.together.number, []).append(place)
    return tuple(Axis(tuple(places), _cells_of([keys[place] for place in places])) for places in together.values())


def _cells_of(keys: Sequence[GroupKey]) -> int:
    sizes = {len(key.values or ()) if key.together is None else len(key.together.places) for key in keys}
    if len(sizes) > 1:
        raise ValueError("keys that stand together are of equally many rows")
    return sizes.pop()


def number_of_cells(keys: Sequence[GroupKey]) -> int:
    """Return the number of groups of keys with public values."""
    cells, counted = 1, set[int]()
    for key in keys:
        if key.together is None:
            cells *= len(key.values or ())
        elif key.together.number not in counted:
            counted.add(key.together.number)
            cells *= len(key.together.places)
    return cells


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The private root: exact sums per group, to be released with noise."""

    input: Source
    keys: tuple[GroupKey, ...]
    aggregations: tuple[Aggregation, ...]
    sets: tuple[tuple[int, ...], ...] = ()
    """Grouping sets, as positions of keys in ascending order; none: the rows are grouped by all keys."""
    apart: bool = False
    """True if the sets, all keys and none, come from separate queries: neither may get more noise than it would have
    had separately."""

    @property
    def public_cells(self) -> int | None:
        """Number of groups of the answer, if all keys are public and they are few enough to show; otherwise None."""
        for key in self.keys:
            if key.values is None:
                return None
        cells = number_of_cells(self.keys)
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
    """One ORDER BY term. NULLs are last by default."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return f"{self.expr}{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ''}"


@dataclass(frozen=True, slots=True)
class Finish:
    """HAVING, ORDER BY, LIMIT, OFFSET, DISTINCT and the SELECT list over noisy values: free post-processing."""

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
    """A SELECT over the rows of the previous stage (or the finish): free post-processing.

    Expressions of `where`, `keys` and aggregate arguments read `Slot(i)`, column i of those rows. The finish reads keys
    first and then aggregates if the stage is `grouped`, otherwise the columns.
    """

    where: Expr | None
    grouped: bool
    keys: tuple[Expr, ...]
    aggregations: tuple[Aggregation, ...]
    finish: Finish

    @property
    def body(self) -> str:
        """Its SQL after the word SELECT."""
        parts = ["over the released rows"]
        parts += [f"where {self.where}"] if self.where is not None else []
        if self.grouped:
            parts += ["aggregate " + ", ".join(str(each) for each in self.aggregations)]
            parts += ["by " + ", ".join(str(each) for each in self.keys)] if self.keys else []
        return " | ".join([*parts, str(self.finish)])

    def __str__(self) -> str:
        return f"select {self.body}"


@dataclass(frozen=True, slots=True)
class Query:
    """A bound query: the private plan, its free finish and the free stages after it. `slots` are the finish's inputs,
    keys first."""

    plan: Aggregate
    finish: Finish
    slots: tuple[Slot, ...]
    stages: tuple[Stage, ...] = ()
    computed_from: frozenset[str] = frozenset()
    """Public tables, by folded name, that constants of the plan were computed from: the plan need not contain them."""

    @property
    def divides(self) -> bool:
        """True if answers are divided by one another, or may be."""
        parts = (part for output in self.finish.outputs for part in walk(output.expr))
        return bool(self.stages) or any(isinstance(part, Call) and part.function.name == "divide" for part in parts)

    @property
    def compares(self) -> bool:
        """True if conditions on answers select rows."""
        conditions = (self.finish.having, *(one for each in self.stages for one in (each.where, each.finish.having)))
        return any(each is not None for each in conditions)


def format_plan(query: Query) -> str:
    """Return the plan as text, outermost first: the golden text of the tests and the heart of EXPLAIN."""
    lines = [*(str(stage) for stage in reversed(query.stages)), str(query.finish), str(query.plan)]
    head = ["  " * depth + line for depth, line in enumerate(lines)]
    return "\n".join([*head, *_tree(query.plan.input, len(lines))])


def _tree(source: Source, depth: int) -> list[str]:
    """Return the lines of a source and its inputs, indented by depth."""
    lines = ["  " * depth + str(source)]
    for each in inputs_of(source):
        lines += _tree(each, depth + 1)
    return lines
