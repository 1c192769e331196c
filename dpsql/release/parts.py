"""The elements of a lowered query: noisy coordinates, and the estimates computed from them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import ExactPlan, Part
from dpsql.core.mechanisms.noise import Reach
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.release.bounds.points import Points, RoundPoints
from dpsql.release.output.labels import Label
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One integer per group: the sum of factor * part over `terms`. `unit`: the value of one step.

    The parts determine a unit's sensitivity in it (`core.sensitivity.norms`). `noisy` is False for integers that
    neighbouring tables share (the number of rows, under bounded neighbours)."""

    name: Label
    terms: tuple[tuple[int, int], ...]
    unit: float
    noisy: bool = True
    undivided: tuple[float, int] | None = None
    """The value of one step as a number and its divisor, where `unit` is the rounded quotient."""

    @property
    def worth(self) -> Fraction:
        """The exact value of one step."""
        unit, by = (self.unit, 1) if self.undivided is None else self.undivided
        return Fraction(unit) / by

    def times(self, factor: int) -> Coordinate:
        """Return the coordinate on a lattice that is `factor` times as fine."""
        unit, by = (self.unit, 1) if self.undivided is None else self.undivided
        return replace(
            self,
            terms=tuple((part, weight * factor) for part, weight in self.terms),
            unit=self.unit / factor,
            undivided=(unit, by * factor),
        )


@dataclass(frozen=True, slots=True)
class Moments:
    """Second moments of one argument (`square`), or of two. Fields are places among the features; None if a moment is
    known without them, because the argument has one value only. Squares are sums of 2 u^2 - 1 and products sums of u v,
    where u is the value scaled to -1..1 over its range. The second argument's sum is of values from their `centre`, in
    the answer's units, like the first. `half`: half the width of a range."""

    half: float
    square: int | None = None
    product: int | None = None
    sum: int | None = None
    other_square: int | None = None
    centre: float = 0.0
    other_half: float = 0.0


@dataclass(frozen=True, slots=True)
class ChosenPoint:
    """A selected point of a public grid: `place` among the features, the first of `many`. Points are the `values` of a
    list, those of `points` or `among`, or origin + step * point, at most `most`. `listed`: the points are returned as
    one text."""

    place: int
    many: int = 1
    kind: Type = Type.REAL
    values: tuple[Key, ...] | None = None
    origin: int = 0
    step: int = 1
    most: int = 0
    listed: bool = False
    points: Points | None = None
    among: RoundPoints | None = None

    @property
    def partial(self) -> bool:
        """True if the range has values that are not points."""
        if self.among is not None:
            return self.kind is Type.REAL or self.among.step > 1
        return self.step > 1 or (self.points is not None and self.points.lower != self.points.upper)

    def at(self, place: int, many: int) -> ChosenPoint:
        """Return the point at other places."""
        return replace(self, place=place, many=many)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregation from features: COUNT = count, SUM = sum + centre * count, AVG = centre + sum / count; for second
    moments see `estimates`.

    `sum` and `count` are places among the features; None if the term is absent (a sum that is not centred, or a centred
    sum that is always 0). `range`: of the average. `chosen`: the selected point of an aggregation that selects values.
    """

    kind: AggregateFunction
    sum: int | None
    count: int | None
    centre: float
    range: Interval
    whole: bool
    """The exact answer is an integer, and the shown value is rounded to one."""
    moments: Moments | None = None
    chosen: ChosenPoint | None = None
    unrounded: bool = False
    """The exact answer is an integer, and the shown value keeps the fractions of an estimate, unless doubles are too
    coarse."""

    @property
    def terms(self) -> dict[int, float] | None:
        """The features of a COUNT or SUM with their weights; None for other aggregations."""
        if not self.kind.linear:
            return None
        parts = ((self.sum, 1.0), (self.count, 1.0 if self.kind.counts else self.centre))
        return {place: weight for place, weight in parts if place is not None}

    @property
    def exact_centre(self) -> Fraction:
        """The exact centre: for values centred in their range, `centre` is the rounded middle."""
        if self.centre == 0:
            return Fraction(0)
        return (Fraction(self.range.lower) + Fraction(self.range.upper)) / 2

    @property
    def places(self) -> tuple[int | None, ...]:
        """The features of the estimate."""
        more = self.moments
        second = () if more is None else (more.square, more.product, more.sum, more.other_square)
        return (self.sum, self.count, *second)


def moved(estimate: Estimate, by: int) -> Estimate:
    """Return the estimate with its features shifted by so many places."""

    def at(place: int | None) -> int | None:
        return None if place is None else place + by

    moments = estimate.moments
    if moments is not None:
        moments = replace(
            moments,
            square=at(moments.square),
            product=at(moments.product),
            sum=at(moments.sum),
            other_square=at(moments.other_square),
        )
    return replace(estimate, sum=at(estimate.sum), count=at(estimate.count), moments=moments)


Feature = tuple[tuple[int, float], ...]
"""An estimated value of a group, as a combination of coordinates in the answer's units: (place, factor) pairs."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The lowered query. `features`: the inputs of the estimates; None: the coordinates themselves. `selection`: the
    coordinate that decides which groups are shown; a unit counts at least `one_row` and at most `most_of_a_unit` steps
    in it. `groups_of_a_unit`: how many groups can appear or vanish with one unit. Both limits are from
    `core.sensitivity.norms`. `divided`: coordinates are shares of rows, which together move by no more than a single
    one may. `classes`: the class of each coordinate, if rows that exclude each other have separate classes; otherwise
    there is one class."""

    parts: tuple[Part, ...]
    coordinates: tuple[Coordinate, ...]
    estimates: tuple[Estimate, ...]
    selection: int = 0
    most_of_a_unit: int = 0
    groups_of_a_unit: int = 0
    one_row: int = 1
    features: tuple[Feature, ...] | None = None
    divided: bool = False
    classes: tuple[int, ...] = ()
    across: ExactPlan | None = None
    """The exact plan of public groups, if one noise vector covers the coordinates of all of them."""

    @property
    def exact(self) -> int:
        """The number of aggregates without noise."""
        noisy = {place for place, each in enumerate(self.coordinates) if each.noisy}
        used = [{at for place in each.places for at, _ in self.weights(place)} for each in self.estimates]
        return sum(noisy.isdisjoint(places) for places in used)

    @property
    def noisy_classes(self) -> tuple[int, ...]:
        """The classes of the noisy coordinates."""
        pairs = zip(self.classes, self.coordinates, strict=False)
        return tuple(own for own, each in pairs if each.noisy)

    @property
    def noisy(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The terms of the noisy coordinates."""
        return tuple(each.terms for each in self.coordinates if each.noisy)

    @property
    def quiet(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The terms of the coordinates that are released exactly."""
        return tuple(each.terms for each in self.coordinates if not each.noisy)

    def better_apart(self, reach: Reach) -> bool:
        """Return whether independent noise for each coordinate, for the L1 norm of all, has less variance than the
        cube's: 2 l1^2 against (d + 1)(d + 2) / 3 steps^2."""
        d = reach.dimension
        return (
            not self.divided
            and not self.classes
            and self.across is None
            and d > 1
            and 6 * l1_of(reach) ** 2 < (d + 1) * (d + 2) * reach.cube_sensitivity**2
        )

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.coordinates) if self.features is None else len(self.features)

    def weights(self, place: int | None) -> Feature:
        """Return a feature as a combination of coordinates: (place, factor) pairs."""
        if place is None:
            return ()
        return ((place, 1.0),) if self.features is None else self.features[place]


def l1_of(reach: Reach) -> int:
    """Return the L1 norm of all coordinates."""
    return reach.cube_sensitivity * reach.dimension if reach.l1 is None else reach.l1
