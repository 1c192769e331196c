"""Aggregate functions: one record each, found by name; and an aggregate with its arguments."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction

from dpsql.errors import Span
from dpsql.plan.aggregates import choices, pairs, spreads, sums
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Expr, rebuild
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

AGGREGATES: dict[str, AggregateFunction] = {
    aggregate.name: aggregate for family in (sums, spreads, pairs, choices) for aggregate in family.AGGREGATES
}


def aggregate_named(name: str) -> AggregateFunction:
    """Return the record of an aggregate function. Raises KeyError."""
    return AGGREGATES[name]


def _by_name(aggregate: AggregateFunction) -> tuple[object, tuple[str]]:
    return aggregate_named, (aggregate.name,)


copyreg.pickle(AggregateFunction, _by_name)  # type: ignore[arg-type]  # its stub wants a callable first


MOST_POINTS = 65_536
"""Maximum number of public candidates from which a value is selected."""
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate; `argument` is None for COUNT(*). `span` is its place in the text, for messages only.

    `per_unit`: clip bounds of one privacy unit's contribution to a group: its total or (for AVG) its own average.
    """

    kind: AggregateFunction
    argument: Expr | None
    span: Span | None = field(default=None, compare=False, hash=False)
    epsilon: Fraction | None = None
    """Its share of the query's epsilon, if the text specifies one."""
    per_unit: Interval | None = None
    second: Expr | None = None
    """The x of an aggregate of two arguments (y, x)."""
    at: Fraction | None = None
    """The quantile, from 0 to 1; for APPROX_TOP_K the number of values."""
    of_units: bool = False
    """True if it is COUNT(DISTINCT) of the privacy unit: a unit adds at most one."""
    values: tuple[Key, ...] | None = None
    """Public candidates of MODE and APPROX_TOP_K."""

    @property
    def word(self) -> str:
        """Its name in the text."""
        return self.kind.half_name if self.kind.half_name and self.at == HALF else self.kind.name

    @property
    def said_at(self) -> Fraction | None:
        """The quantile or number of values, unless implied by its name."""
        return self.at if self.word == self.kind.name else None

    def __str__(self) -> str:
        own = "" if self.epsilon is None else f", epsilon => {float(self.epsilon):g}"
        clip = "" if self.per_unit is None else f", of each privacy unit in {self.per_unit}"
        more = "" if self.second is None else f", {self.second}"
        more += "" if self.said_at is None else f", {float(self.said_at):g}"
        what = "*" if self.argument is None else self.argument
        call = "COUNT(DISTINCT " if self.kind.distinct else f"{self.word}("
        return f"{call}{what}{more}{own}{clip})"

    @property
    def exact_type(self) -> Type:
        """Type of its exact values; COUNT(*) has no argument."""
        return self.kind.result(Type.INTEGER if self.argument is None else self.argument.type)

    def rebuilt(self, replaced: Mapping[Expr, Expr]) -> Aggregation:
        """Return the aggregate with the named parts of its arguments replaced."""
        first, second = (None if each is None else rebuild(each, replaced) for each in (self.argument, self.second))
        return replace(self, argument=first, second=second)

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """Expressions that it reads from each row."""
        return tuple(each for each in (self.argument, self.second) if each is not None)
