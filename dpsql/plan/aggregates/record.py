"""The record of an aggregate function, with everything that other packages need to know about it."""

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
"""Finite values, and which of them are valid (None: all)."""
Bounds = tuple[Floats, Floats]
AT_LEAST_0 = Interval(0, EVERYTHING.upper)
Solve = Callable[..., Bounds]
"""(name of an equation in `accuracy.statistics`, letters of its moments, whether of a sample if relevant) -> ends, for
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
    """Noisy sums, each of shape (groups,): `rows`, sums of values minus their `centre` (`total`), and second moments:
    squares as sums of 2 u^2 - 1. None for unused sums, and for sums known without noise because there is one possible
    value. `range` contains the values; `half` is half its width.

    With n rows and moments of u, the value scaled to -1..1 between the ends of its range: s = sum u, q = sum u^2; t and
    r are the same for a second value v, and p = sum u v. Results that need more rows than the noisy count are NULL, or
    (an average) the middle of the range. Results with a known range are clipped to it.
    """

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
    """A group with a smaller noisy count is empty: 1, minus a bound of the noise."""

    @property
    def count(self) -> Floats:
        assert self.rows is not None  # present for every result that divides by it
        return self.rows

    @property
    def n(self) -> Floats:
        """The count, at least 1."""
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
        """Replace the divisor n by n - 1; NULL if that is below 1."""
        some = self.count >= 2
        less = np.where(some, self.n - 1, 1.0)
        return found * self.n / less, some

    def _squares(self, held: Floats | None) -> Floats:
        return self._or_nothing(None) if held is None else (held + self.count) / 2

    def _or_nothing(self, held: Floats | None) -> Floats:
        return np.zeros(len(self.total)) if held is None else held


@dataclass(frozen=True, eq=False)
class AggregateFunction:
    """One aggregate function: a single object, found by its name.

    It states what is summed, and no sensitivity: `core` derives a row's contribution and the sensitivity of noisy
    integers from `moments`, `distinct` and `chosen_by`. A wrong record is a wrong answer, not a leak.
    """

    name: str
    """Name in errors and explanations."""
    tag: str
    """Permanent name in keys of questions, which are stored in ledgers."""
    syntax: tuple[str, ...]
    """SQL syntax: a parser node and the arguments that are read, as in "Corr(this, expression)": the value, then the x
    of a pair, or the quantile or number. "Count(DISTINCT this)": the value is inside DISTINCT; "CountIf(IF this)":
    counts rows where it is true; "Mode(this) WITHIN GROUP": the value may be there."""
    result: Callable[[Type], Type] = lambda _kind: Type.REAL
    """Type of an exact or selected value, from the argument's type."""
    accepts: Callable[[Type], bool] | None = _summable
    """True if an argument type is allowed over private rows (None: any)."""
    accepts_exact: Callable[[Type], bool] | None = _summable
    """True if an argument type is allowed in exact computation (None: any)."""
    refusal: str = '{kind}({expr}): "{name}" is {type}.'
    hint: str = "Did you mean COUNT({expr}), COUNT(DISTINCT {expr}) or GROUP BY {expr}?"
    """Hint for other arguments. `name`: the column, if the argument is one."""
    moments: str = ""
    """A letter for each sum that it is computed from: n of rows, s of values, q of their squares; for a pair (y, x),
    over the rows where neither is NULL, s and q of y, t and r of x, p of products. One letter: that sum; ns: the
    mean."""
    distinct: bool = False
    """True if a row counts only if its value is new."""
    chosen_by: Literal["rank", "count"] | None = None
    """Selection of a value of the column by the exponential mechanism."""
    end: Literal["least", "largest"] | None = None
    """Selection by rank: end from which ranks are counted if the text gives no quantile."""
    several: bool = False
    """Selection by count: whether the result is a text of as many values as requested."""
    half_name: str = ""
    """Name at the quantile 1/2."""
    estimated_as: AggregateFunction | None = None
    """Function of its noisy values, if different."""
    estimate: Callable[[NoisySums], Found] | None = None
    """Returns its values from noisy sums."""
    interval: Callable[[Solve, float, float], Bounds] | None = None
    """Second moments: returns the ends of the noise interval, from `solve` and half the widths of both ranges."""
    is_deviation: bool = False
    """True if it has its argument's units, and is small compared with too wide bounds."""
    is_ratio: bool = False
    """True if it divides by the variation of x: no interval if x has one value, unless y has one too."""
    without_interval: str = ""
    """Reason for the lack of an interval."""
    values: Interval | None = EVERYTHING
    """Range of its values, whatever is summed; None: the argument's range."""
    formula: Callable[[str, str, float], str] | None = None
    """Returns its formula in words, from those of its sum and count, and the centre; None: only "made of its sums"."""
    unclipped: tuple[str, str] | None = None
    """Reason for the lack of contribution bounds on its rows, and an alternative."""
    of_cells: Callable[[list[Any], Type], Any] | None = None
    """Returns its exact value from a group's non-NULL cells and their type; None: NULL. Functions that have it are
    computed over released rows, public rows, and each unit's own rows."""
    of_nothing: int | None = None
    """Exact value in a group without such cells."""
    fact_of: Callable[[Fact], Fact] = lambda fact: fact
    """Returns the fact of an exact value from the fact of the cells, of which there is at least one."""

    if TYPE_CHECKING:  # derived from the fields above, set once below
        chosen: bool = field(init=False)
        ranked: bool = field(init=False)
        quantile: bool = field(init=False)
        """True if the text specifies a quantile."""
        linear: bool = field(init=False)
        """True if it is a sum."""
        counts: bool = field(init=False)
        """True if it is a sum of rows only."""
        averages: bool = field(init=False)
        """True if it is a sum divided by its count."""
        second_moments: bool = field(init=False)
        """True if it sums squares or products."""
        pairs: bool = field(init=False)
        """True if it has two arguments (y, x)."""
        ranged: bool = field(init=False)
        """True if its argument needs bounds."""

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
