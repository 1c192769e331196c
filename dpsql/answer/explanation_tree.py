"""What is said of a release, as data: `reading` makes it, `Explanation.to_dict` picks from it, `writer` prints it.

Widths, scales and sensitivities are in the answer's units.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from dpsql.core.cost import Cost
from dpsql.core.goal import Goal
from dpsql.core.unit import ContributionBound, Neighbours, Sensitivity
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.query import Stage
from dpsql.release.bounds.auto_bounds import ChosenBounds
from dpsql.release.laws import Choice
from dpsql.release.output.labels import Label
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval


@dataclass(frozen=True, slots=True)
class Price:
    """A part of the cost, in the coin that the query is paid in; nothing at all is free."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None


FREE = Price()


@dataclass(frozen=True, slots=True)
class ProtectedUnit:
    """Who is protected, where anybody is (`private`): the `unit`, a column, or else each row of the `table`; and how
    much of one counts."""

    private: bool
    unit: str | None
    table: str
    limits: ContributionBound
    neighbours: Neighbours


@dataclass(frozen=True, slots=True)
class ContributionLimit:
    """What counts of a unit with more rows than its limits: so many `rows` in so many `groups`, None where there is no
    limit. `by_unit`: each unit adds one number to a group, whatever its rows are."""

    rows: int | None
    groups: int | None
    by_unit: bool


@dataclass(frozen=True, slots=True)
class JoinInput:
    """The rows of one unit that a join reads at most, of the tables on one of its sides."""

    tables: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that the query chooses itself, `within` those that are declared for it, and those that were `chosen`."""

    column: Column
    cost: Cost
    price: Price
    chosen: ChosenBounds | None = None

    @property
    def within(self) -> Interval | None:
        return self.column.fact.range if self.column.fact.limited else None


@dataclass(frozen=True, slots=True)
class Clip:
    """What is held between ends: values `of` an expression, or what one unit adds to an aggregate. `type`: of a column
    whose bounds were declared."""

    of: Expr | Aggregation
    held: Interval
    adds: Literal["", "total", "average"] = ""
    type: Type | None = None


BY_WEIGHTS = "WEIGHTED_GAUSSIAN"
"""How groups are chosen by weights of people: one in fewer groups weighs more in each."""


@dataclass(frozen=True, slots=True)
class Groups:
    """`keys` of the groups, and which are shown: all of the `public` ones; those whose noisy count reaches the
    `threshold`, and by a coin (`below`: a count, and its chance) those just short of it; or those that are `drawn`, of
    no fewer units than that. `chances`: how likely one of that size is shown, None where all are. `price`: of the
    choice, where there is one."""

    keys: tuple[str, ...]
    public: int | None
    strategy: str
    threshold: float | None = None
    below: tuple[float, float] | None = None
    drawn: int | None = None
    chances: dict[int, float | None] | None = None
    price: Price | None = None
    apart: tuple[float, int] | None = None
    """In place of a threshold on a count that is measured anyway: the part of epsilon that a choice of its own would
    best have, and of how many people it would show groups every other time."""
    to_come: bool = False
    """Some of the public ones are shown by an earlier release of the statement: there are at most so many."""
    uncounted: str = ""
    """Which rows are in no group."""

    @property
    def how(self) -> str:
        """How those that are shown are chosen."""
        if self.strategy == BY_WEIGHTS:
            return "groups whose noisy sum of weights is high, 1 / sqrt(k) of each person in k groups"
        if self.drawn is None:
            words = f"groups whose noisy count reaches {self.threshold:.1f}"
            words += f", or is {self.below[0]:.1f} (shown in {100 * self.below[1]:.2g}%)" if self.below else ""
            if self.apart is None:
                return words
            share, people = self.apart
            shown = f"a choice at {share:.0%} of epsilon would show those of {people:,} as likely as not"
            return f"{words}; {shown}, errors {1 / (1 - share):.3g} times as large"
        least = f", never with fewer than {self.drawn}" if self.drawn > 1 else ""
        return f"groups at random, the likelier the more people they have{least}"


@dataclass(frozen=True, slots=True)
class Level:
    """A measured level of grouping sets: its keys, and its part of the cost, whose epsilon is None where only all
    levels together have one."""

    keys: tuple[str, ...]
    law: str
    cost: Cost
    alone: bool
    price: Price


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over a group's rows that noise is added to, unless neighbours agree on it (`law` "exact").

    `name`: the output that shows it by itself, or else what it is `of`; `said`: the latter with columns as the query
    has them. `scale`, `step` and `sensitivity` are None where they follow bounds that are still to be chosen."""

    name: str
    of: Label
    said: Label
    noisy: bool
    law: str
    dimension: int
    scale: float | None
    step: float | None
    sensitivity: Sensitivity | None
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """One noise vector, and the sums that it is added to."""

    law: str
    sums: tuple[Sum, ...]
    price: Price


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels of grouping sets, estimated from the noise of the measured ones; `price` where only all have one."""

    sums: tuple[Label, ...]
    measured: tuple[Level, ...]
    price: Price | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """How far apart the points are that a value is drawn from: all of them, or those `near` the drawn ones."""

    least: float
    most: float
    type: Type
    near: bool


@dataclass(frozen=True, slots=True)
class SelectionError:
    """How far off a drawn value may be: `rows` by its rank or its count. `rank`: which value stands for the end, of MIN
    and MAX; `several` values are drawn at once; other values lie between the points where the grid is `partial`."""

    rows: int
    kind: AggregateFunction
    rank: int | None
    several: bool
    partial: bool
    gaps: Gaps | None


@dataclass(frozen=True, slots=True)
class PrivateSelection:
    """A draw: the aggregates that it gives, as they are planned (`of`) and as they were `asked`. `off` is None of one
    that is exact."""

    of: tuple[Aggregation, ...]
    asked: tuple[Aggregation, ...]
    mechanism: str
    epsilon: Fraction
    points: int
    rows_off: int
    off: SelectionError | None
    price: Price


@dataclass(frozen=True, slots=True)
class Formula:
    """How an aggregate follows from sums: centre * count + total, of an average divided by the count. No sum: it is
    absent; several: they add up to it. `by`: from second moments, or as it was drawn, or else an expression."""

    kind: AggregateFunction
    by: Literal["sums", "moments", "draw"]
    centre: float = 0.0
    total: tuple[Label, ...] = ()
    count: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer, the sums that it comes from, and the half-width of its 95 % interval (of several levels
    the widest) where that depends on no private count."""

    name: str
    formula: Formula | Expr
    sources: tuple[str, ...]
    half: float | None


@dataclass(frozen=True, slots=True)
class Width:
    """The half-widths of a column's 95 % intervals in groups of several sizes, with the mean in the middle of its
    range; `worst`: of an average with it at an end."""

    name: str
    halves: tuple[float, ...]
    worst: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedNoise:
    """How wide noise will be in groups of so many units (`sizes`), of several levels in those of the first."""

    sizes: tuple[int, ...]
    widths: tuple[Width, ...]
    of_levels: bool


@dataclass(frozen=True, slots=True)
class ReleaseExplanation:
    """A release. `price`: its cost in the coin that was asked for; `rho`: None where nothing is measured in it;
    `guess`: how well whoever sees the answer can guess, of two worlds, which one it is; `sums` are what noise is added
    to, at each level that has some."""

    protected: ProtectedUnit
    cost: Cost
    price: str
    rho: Fraction | None
    guess: float
    goal: Goal | None
    strategy: str
    law: Choice | None
    filters: tuple[Expr, ...]
    join_inputs: tuple[JoinInput, ...]
    kept: ContributionLimit | None
    bounds: tuple[Bounds, ...]
    clips: tuple[Clip, ...]
    groups: Groups
    sums: tuple[Sum, ...]
    noise: tuple[Noise, ...]
    levels: tuple[Levels, ...]
    draws: tuple[PrivateSelection, ...]
    shown: tuple[OutputColumn, ...]
    stages: tuple[Stage, ...]
