"""What is computed of a group's rows: the kinds of aggregates, and one of them with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from fractions import Fraction

from dpsql.errors import Span
from dpsql.plan.expressions import Expr, rebuild
from dpsql.schema.columns import Key
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

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

    def rebuilt(self, replaced: Mapping[Expr, Expr]) -> Aggregation:
        """The aggregate with every part of its arguments that is named put in its place."""
        first, second = (None if each is None else rebuild(each, replaced) for each in (self.argument, self.second))
        return replace(self, argument=first, second=second)

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """The expressions that are read of each row."""
        return tuple(each for each in (self.argument, self.second) if each is not None)
