"""Planning of a bound query: its release, after a search for bounds if some are to be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from dpsql.core.loss import Allowance
from dpsql.core.sensitivity.row_contributions import analyse
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidPrivacyParameter, MissingBounds, QueryRefused
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.facts import known_of
from dpsql.plan.nodes import Join, Mark, Source, nodes_of
from dpsql.plan.options import Options
from dpsql.plan.query import Query
from dpsql.release.bounds.auto_bounds import SHARE, clamped, clipped, loose_columns, searches_of, widest, with_count
from dpsql.release.calibrate import calibrate
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

_WIDEST = 2**64


def planned(
    query: Query,
    neighbours: Neighbours,
    allowed: Callable[[], Allowance],
    options: Options | None,
    *,
    strategy: str,
    mechanism: str,
    auto_bounds: bool = False,
) -> Release:
    """Return a query's release. If bounds are to be chosen, the query is planned with the widest ones, so that a query
    that cannot be planned is refused before any row is read. auto_bounds: choose bounds for every column that needs
    some, not only for those declared "auto".

    Raises the errors of `analyse` and `calibrate`."""
    unlimited = query
    if any(map(_compares_rows, nodes_of(query.plan.input))):
        from dpsql.core.row_limits import limit_join_inputs  # loaded with the first join

        query = replace(query, plan=limit_join_inputs(query.plan, options))
    loose = loose_columns(query, known_of(query.plan.input), auto_bounds=auto_bounds)
    if not loose:
        analysis = analyse(query.plan, neighbours, options)
        return calibrate(query, analysis, allowed(), strategy=strategy, mechanism=mechanism, options=options)
    query = with_count(query, loose, allowed()) if auto_bounds else query
    plans = _Plans(query, loose, neighbours, options, strategy, allowed())
    first = None
    try:
        first = plans.of(plans.limits, mechanism)
    except MissingBounds:
        if not auto_bounds:
            raise
    if first is None:  # column bounds do not help: the refusal of the original query names the fix
        return planned(unlimited, neighbours, allowed, options, strategy=strategy, mechanism=mechanism)
    settle = partial(plans.settled, first, first.law)
    searches = searches_of(loose, query.plan, first.analysis, allowed(), settle)
    return replace(
        first,
        query=query,
        measurements=(searches, *first.measurements),
        cost=searches.cost + first.cost,
        events=(*searches.events, *first.events),
        allowed=allowed(),
    )


def _compares_rows(node: Source) -> bool:
    """Return whether a node brings rows together: a join, or EXISTS with a condition on both sides."""
    return isinstance(node, Join) or (isinstance(node, Mark) and node.condition is not None)


@dataclass(frozen=True)
class _Plans:
    """The plans of a query for given bounds of its columns without any; `allowed`: the cost including the search."""

    query: Query
    loose: tuple[Column, ...]
    neighbours: Neighbours
    options: Options | None
    strategy: str
    allowed: Allowance

    @property
    def limits(self) -> tuple[Interval, ...]:
        """The widest bounds of each column."""
        return tuple(widest(column) for column in self.loose)

    def of(self, bounds: tuple[Interval, ...], law: str, allowed: Allowance | None = None) -> Release:
        """Return the release with these bounds and noise distribution, at the cost that the search leaves or at
        `allowed`. Raises the errors of `analyse` and `calibrate`."""
        query = clipped(self.query, dict(zip(self.loose, bounds, strict=True)))
        written: dict[Expr, Expr] = {clamped(*each): each[0] for each in zip(self.loose, bounds, strict=True)}
        analysis = analyse(query.plan, self.neighbours, self.options, written)
        cost = _rest(self.allowed) if allowed is None else allowed
        return calibrate(query, analysis, cost, strategy=self.strategy, mechanism=law, options=self.options)

    def settled(self, first: Release, law: str, bounds: tuple[Interval, ...]) -> tuple[Release, tuple[Interval, ...]]:
        """Return the release with the chosen bounds, and these bounds. Conditions and bounds can contradict each other,
        so that an expression loses its range. The bounds are then widened, up to those of `first`; this depends only on
        public facts."""
        for intervals in _wider(bounds, self.limits):
            rest = _rest(self.allowed)
            for allowed in (
                rest,
                replace(rest, bounded_range=True),
            ):  # selections from few values may have a larger rho
                try:
                    after = self.of(intervals, law, allowed)
                except (QueryRefused, InvalidPrivacyParameter):
                    continue
                if after.cost.join(first.cost) == first.cost:
                    declared = partial(self.of, intervals, law, self.allowed)
                    return replace(after, as_declared=declared), intervals
        return first, self.limits


def _wider(bounds: tuple[Interval, ...], limits: tuple[Interval, ...]) -> Iterator[tuple[Interval, ...]]:
    """Yield the bounds, and increasingly wide ones within the limits."""
    factor = 1
    while factor < _WIDEST:
        yield tuple(
            Interval(max(limit.lower, held.lower * factor), min(limit.upper, held.upper * factor))
            for held, limit in zip(bounds, limits, strict=True)
        )
        factor *= 16


def _rest(allowed: Allowance) -> Allowance:
    """Return what a search for bounds leaves of the allowance."""
    if allowed.rho is not None:
        return replace(allowed, rho=allowed.rho * (1 - SHARE))
    return replace(allowed, epsilon=allowed.pure * Fraction(1 - SHARE))
