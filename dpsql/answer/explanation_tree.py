"""Structured explanation of a release: built by `explained`, exported by `as_dict`, printed by `explanation`.

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
    """A part of the cost, in the privacy measure in which the query is paid; free if all fields are None."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None


FREE = Price()


@dataclass(frozen=True, slots=True)
class ProtectedUnit:
    """The privacy unit, if any table is private (`private`): the column `unit`, or each row of `table` if None; and its
    contribution bounds."""

    private: bool
    unit: str | None
    table: str
    limits: ContributionBound
    neighbours: Neighbours


@dataclass(frozen=True, slots=True)
class ContributionLimit:
    """Contribution bounds of a unit: at most `rows` rows in `groups` groups, None where unlimited. `by_unit`: each unit
    adds one number to a group, whatever its rows are."""

    rows: int | None
    groups: int | None
    by_unit: bool


@dataclass(frozen=True, slots=True)
class JoinInput:
    """The most rows of one unit that a join reads from the tables on one of its sides."""

    tables: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that the query chooses itself: the declared ones that they lie `within`, and the `chosen` ones."""

    column: Column
    cost: Cost
    price: Price
    chosen: ChosenBounds | None = None

    @property
    def within(self) -> Interval | None:
        return self.column.fact.range if self.column.fact.limited else None


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip range: for values `of` an expression, or for one unit's contribution to an aggregate. `type`: the type of
    a column with declared bounds."""

    of: Expr | Aggregation
    held: Interval
    adds: Literal["", "total", "average"] = ""
    type: Type | None = None


BY_WEIGHTS = "WEIGHTED_GAUSSIAN"
"""Partition selection by weights of people: a person in fewer groups has more weight in each."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The `keys` of the groups, and which are shown: all `public` ones; those whose noisy count reaches the
    `threshold`, and with some probability those just below (`below`: a count and its probability); or those selected
    at random, with at least `drawn` units. `chances`: the probability that a group of a size is shown, None if all
    are. `price`: the cost of the selection, if any."""

    keys: tuple[str, ...]
    public: int | None
    strategy: str
    threshold: float | None = None
    below: tuple[float, float] | None = None
    drawn: int | None = None
    chances: dict[int, float | None] | None = None
    price: Price | None = None
    apart: tuple[float, int] | None = None
    """Alternative to the threshold on a count that is measured anyway: the best share of epsilon for a separate
    selection, and the number of people at which that would show a group every other time."""
    to_come: bool = False
    """An earlier release of the statement shows some of the public groups: `public` is an upper bound."""
    uncounted: str = ""
    """Describes the rows that are in no group."""

    @property
    def how(self) -> str:
        """The rule that decides which groups are shown."""
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
    """A measured level of grouping sets: its keys, and its part of the cost, whose epsilon is None if only all levels
    together have one."""

    keys: tuple[str, ...]
    law: str
    cost: Cost
    alone: bool
    price: Price


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over a group's rows with noise, or without if it is the same for all neighbours (`law` "exact").

    `name`: the output that shows the sum itself, or else the label `of`; `said`: that label with the query's own column
    names. `scale`, `step` and `sensitivity` are None if they depend on bounds that are still to be chosen."""

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
    """A noise vector, and the sums that it is added to."""

    law: str
    sums: tuple[Sum, ...]
    price: Price


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels of grouping sets, estimated from the measured ones; `price` is set if only all together have one."""

    sums: tuple[Label, ...]
    measured: tuple[Level, ...]
    price: Price | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """The distances between the candidates of a selection: of all candidates, or of those `near` the selected ones."""

    least: float
    most: float
    type: Type
    near: bool


@dataclass(frozen=True, slots=True)
class SelectionError:
    """Error of a selected value: `rows` by its rank or its count. `rank`: the rank that stands for the end, for MIN and
    MAX; `several`: several values are selected at once; `partial`: the grid leaves out values between candidates."""

    rows: int
    kind: AggregateFunction
    rank: int | None
    several: bool
    partial: bool
    gaps: Gaps | None


@dataclass(frozen=True, slots=True)
class PrivateSelection:
    """A draw: its aggregates as planned (`of`) and as written in the query (`asked`). `off` is None if the draw is
    exact."""

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
    """Derivation of an aggregate from sums: centre * count + total, for an average divided by the count. Several labels
    add up; none means absent. `by`: from sums, from second moments, or as drawn."""

    kind: AggregateFunction
    by: Literal["sums", "moments", "draw"]
    centre: float = 0.0
    total: tuple[Label, ...] = ()
    count: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """An output column, the sums that it is computed from, and the half-width of its 95 % interval (the widest of
    several levels) if that does not depend on private counts."""

    name: str
    formula: Formula | Expr
    sources: tuple[str, ...]
    half: float | None


@dataclass(frozen=True, slots=True)
class Width:
    """The half-widths of a column's 95 % intervals by group size, with the mean in the middle of its range; `worst`: of
    an average with the mean at an end."""

    name: str
    halves: tuple[float, ...]
    worst: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedNoise:
    """Expected width of the noise in groups with `sizes` units; with several levels, in groups of the first."""

    sizes: tuple[int, ...]
    widths: tuple[Width, ...]
    of_levels: bool


@dataclass(frozen=True, slots=True)
class ReleaseExplanation:
    """A release. `price`: its cost in the requested privacy measure; `rho`: None if nothing is measured in it; `guess`:
    the probability that an observer guesses correctly between two neighbouring tables; `sums`: the sums with noise, at
    each level that has noise."""

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
