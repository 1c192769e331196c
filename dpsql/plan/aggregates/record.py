"""The record of an aggregate function, which says all that other rooms want to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Fact
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING, Interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Found = tuple[Floats, Bools | None]
"""Values, finite ones, and where there are any (None: everywhere)."""
Bounds = tuple[Floats, Floats]
AT_LEAST_0 = Interval(0, EVERYTHING.upper)
Solve = Callable[..., Bounds]
"""(name of an equation in `accuracy.statistics`, letters of its moments, whether of a sample if it asks) -> ends, of
values between -1 and 1."""


NOT_COMPARED: Mapping[str, Any] = {
    "accepts": lambda kind: not kind.opaque,
    "refusal": "{kind} of {expr}: values of its type cannot be compared.",
    "hint": "",
}


def _summable(kind: Type) -> bool:
    return kind.numeric or kind is Type.BOOLEAN


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Noisy sums, shape (groups,) each: `rows`, of values less their `centre` (`total`), and of second moments: squares
    as sums of 2 u^2 - 1. None where there is none, or where it is known without: the value is one only. `range` holds
    the values, `half` is half its width.

    With n rows and moments of u, the value from -1 to 1 between the ends of its range: s = sum u, q = sum u^2; t and r
    are those of a second value v, and p = sum u v. What needs more rows than the noisy count says there are is NULL, or
    (an average) the middle of its range; what cannot lie outside some range is held in it."""

    rows: Floats | None
    total: Floats
    centre: float
    range: Interval
    half: float = 0.0
    square: Floats | None = None
    product: Floats | None = None
    other_total: Floats | None = None
    other_square: Floats | None = None
    other_centre: float = 0.0
    other_half: float = 0.0
    empty_below: Floats | float = 1.0
    """A noisy count below this is of no rows: 1, less what noise may have taken away."""

    @property
    def count(self) -> Floats:
        assert self.rows is not None  # whatever divides by it has it
        return self.rows

    @property
    def n(self) -> Floats:
        """The count; 1 where it is below that."""
        return np.where(self.count >= 1, self.count, 1.0)

    @property
    def s(self) -> Floats:
        return self.total / (self.half or 1.0)

    @property
    def t(self) -> Floats:
        return self._or_nothing(self.other_total) / (self.other_half or 1.0)

    @property
    def variance(self) -> Floats:
        return np.clip(self._squares(self.square) / self.n - (self.s / self.n) ** 2, 0, 1)

    @property
    def other_variance(self) -> Floats:
        return np.clip(self._squares(self.other_square) / self.n - (self.t / self.n) ** 2, 0, 1)

    @property
    def covariance(self) -> Floats:
        return np.clip(self._or_nothing(self.product) / self.n - (self.s / self.n) * (self.t / self.n), -1, 1)

    def of_sample(self, found: Floats) -> Found:
        """With the divisor n - 1 in place of n; NULL where that is below 1."""
        some = self.count >= 2
        less = np.where(some, self.n - 1, 1.0)
        return found * self.n / less, some

    def _squares(self, held: Floats | None) -> Floats:
        return self._or_nothing(None) if held is None else (held + self.count) / 2

    def _or_nothing(self, held: Floats | None) -> Floats:
        return np.zeros(len(self.total)) if held is None else held


@dataclass(frozen=True, eq=False)
class AggregateFunction:
    """One aggregate function: one object, found by its name.

    It states what is added up, and no sensitivity: `core` derives from `moments`, `distinct` and `chosen_by` what a row
    adds, and how far a unit moves the integers that have noise. A wrong record is a wrong answer and no leak.
    """

    name: str
    """As texts of errors and explanations have it."""
    tag: str
    """Its name in keys of questions, which stays for good: ledgers hold it."""
    syntax: tuple[str, ...]
    """How it is written: a node of the parser and those of its arguments that are read, as in "Corr(this, expression)":
    the value, then the x of a pair, or which quantile or how many. "Count(DISTINCT this)": the value stands inside
    DISTINCT; "CountIf(IF this)": rows count where it is true; "Mode(this) WITHIN GROUP": it may stand there."""
    result: Callable[[Type], Type] = lambda _kind: Type.REAL
    """The type of an exact value (of one that is chosen too), from that of the argument."""
    accepts: Callable[[Type], bool] | None = _summable
    """What the argument may be over people's rows (None: anything);"""
    accepts_exact: Callable[[Type], bool] | None = _summable
    """and where it is computed exactly."""
    refusal: str = '{kind}({expr}): "{name}" is {type}.'
    hint: str = "Did you mean COUNT({expr}), COUNT(DISTINCT {expr}) or GROUP BY {expr}?"
    """What is said of other arguments. `name`: the column, if the argument is one."""
    moments: str = ""
    """A letter for each sum that it follows from: n of rows, s of values, q of their squares; of a pair (y, x), over
    the rows where neither is NULL, s and q of y, t and r of x, p of products. One letter: it is that sum; ns: it is
    the mean."""
    distinct: bool = False
    """A row counts where its value is new."""
    chosen_by: Literal["rank", "count"] | None = None
    """A value of the column itself is chosen at random: the better it fits, the likelier."""
    end: Literal["least", "largest"] | None = None
    """Chosen by rank: the end that ranks are counted from, where the text gives no quantile."""
    several: bool = False
    """Chosen by count: as many as the text says, as one text."""
    half_name: str = ""
    """What it is called at the quantile 1/2."""
    estimated_as: AggregateFunction | None = None
    """What its noisy values are, if not its own."""
    estimate: Callable[[NoisySums], Found] | None = None
    """Its values from noisy sums."""
    interval: Callable[[Solve, float, float], Bounds] | None = None
    """Of second moments: the ends of its noise interval, from `solve` and half the widths of both ranges."""
    is_deviation: bool = False
    """It is in its argument's units, and small where bounds are too wide for values."""
    is_ratio: bool = False
    """It divides by how x varies: there is no interval where x has one value, but for a y of one value."""
    without_interval: str = ""
    """Why it has no interval."""
    values: Interval | None = EVERYTHING
    """Where its values lie, whatever is added up; None: in its argument's range."""
    formula: Callable[[str, str, float], str] | None = None
    """In words, from those of its sum and count, and the centre; None: that it is made of its sums."""
    unclipped: tuple[str, str] | None = None
    """Why there are no contribution bounds of its rows, and what to write instead."""
    of_cells: Callable[[list[Any], Type], Any] | None = None
    """Its exact value, of the cells of a group that are not NULL, given its type; None: NULL. Those that have it are
    computed of released rows, of public ones, and of each unit's own."""
    of_nothing: int | None = None
    """Its exact value in a group without such cells."""
    fact_of: Callable[[Fact], Fact] = lambda fact: fact
    """What is known of an exact value, from what is of the cells, of which there is at least one."""

    if TYPE_CHECKING:  # what follows of these, set once below
        chosen: bool = field(init=False)
        ranked: bool = field(init=False)
        quantile: bool = field(init=False)
        """The text says which."""
        linear: bool = field(init=False)
        """It is itself a sum;"""
        counts: bool = field(init=False)
        """of nothing but rows."""
        averages: bool = field(init=False)
        """A sum divided by its count."""
        second_moments: bool = field(init=False)
        """Squares or products are added up;"""
        pairs: bool = field(init=False)
        """of two arguments (y, x)."""
        ranged: bool = field(init=False)
        """The values of its argument need bounds."""

    def __post_init__(self) -> None:
        moments = "".join(letter for letter in "nsqtrp" if letter in self.moments)
        chosen, ranked = self.chosen_by is not None, self.chosen_by == "rank"
        if bool(moments) + self.distinct + chosen != 1 or bool(moments) != bool(self.estimate):
            raise ValueError(f"{self.name} has moments and an estimate, or counts different values, or chooses one")
        if self.moments not in ("", "n", "s") and (self.moments != moments or not moments.startswith("ns")):
            raise ValueError(f"{self.name}: there are no moments {self.moments}")
        if (chosen or len(moments) > 2) and (self.interval is None) != bool(self.without_interval):
            raise ValueError(f"{self.name} has an interval, or says why there is none")
        self.__dict__.update(
            chosen=chosen, ranked=ranked, quantile=ranked and not self.end, ranged=ranked or "s" in moments,
            linear=len(moments) == 1, counts=moments == "n", averages=moments == "ns",
            second_moments=len(moments) > 2, pairs="t" in moments,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__
