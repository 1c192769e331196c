"""Explanations of queries and their costs, as text and dictionary: free, before any run, from public facts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from dpsql.answer.base import BaseExplanation
from dpsql.answer.explanation_builder import LEVEL, estimate_of, explained, of_one_level
from dpsql.answer.explanation_text import explanation
from dpsql.answer.explanation_tree import Bounds, ExpectedNoise, Groups, ProtectedUnit, ReleaseExplanation, Sum, Width
from dpsql.answer.html import html_text
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.plan.query import Output, format_plan
from dpsql.release.bounds.auto_bounds import SURE
from dpsql.release.expected_error import reference
from dpsql.release.intervals.averages import average_at_worst
from dpsql.release.intervals.intervals import aggregate_interval, constant_half_width
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass

_SIZES = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Explanation(BaseExplanation):
    """Explanation of a query; prints as a few lines, `.to_dict()` returns a dictionary. `left`: the session's budget
    after the query."""

    _release: Release
    left: RemainingBudget | None = None

    @property
    def plan(self) -> str:
        """The plan, outermost operator first."""
        return format_plan(self._release.query)

    def to_dict(self) -> dict[str, Any]:
        """Return the unit, neighbours, cost and groups; `bounds`: the columns whose bounds are chosen privately;
        `releases`: the sums with noise, in the answer's units, and with grouping sets one for each level that has its
        own noise, with its part of the cost; `draws`: the selected values; `columns`: the outputs, their releases, and
        the half-width of their 95 % noise interval (the widest of several levels; None if it depends on private
        counts)."""
        return as_dict(explained(self._release))

    def __str__(self) -> str:
        left = "" if self.left is None else str(self.left)
        return explanation(explained(self._release), _expected(self._release), left)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_text(str(self))


def as_dict(tree: ReleaseExplanation) -> dict[str, Any]:
    """See `Explanation.to_dict`."""
    goal, cost = tree.goal, tree.cost
    return {
        "unit": tree.protected.unit or "row",
        "limits": _limits(tree.protected),
        "neighbours": str(tree.protected.neighbours),
        "epsilon": _float(cost.epsilon),
        "delta": float(cost.delta),
        "rho": _float(tree.rho),
        "goal": None if goal is None else {"error": float(goal.error), "confidence": float(goal.sure)},
        "strategy": tree.strategy,
        "choice": None if tree.law is None else asdict(tree.law),
        "groups": _groups(tree.groups),
        "bounds": [_bounds(each) for each in tree.bounds],
        "releases": [_sum(each) for each in tree.sums],
        "draws": [
            {
                "of": [str(of) for of in each.of],
                "mechanism": each.mechanism,
                "epsilon": float(each.epsilon),
                "points": each.points,
                "rows_off_95": each.rows_off,
            }
            for each in tree.draws
        ],
        "columns": [{"name": each.name, "from": list(each.sources), "interval_95": each.half} for each in tree.shown],
    }


def _float(number: Any) -> float | None:
    return None if number is None else float(number)


def _limits(who: ProtectedUnit) -> dict[str, int] | None:
    """Return the contribution bounds, or None where each row is a unit."""
    if who.unit is None:
        return None
    return {"rows": who.limits.rows, "groups": who.limits.groups, "rows_per_group": who.limits.per_group}


def _groups(groups: Groups) -> dict[str, Any]:
    strategy = groups.strategy if groups.keys else None
    below = {} if groups.below is None else {"below": dict(zip(("count", "chance"), groups.below, strict=True))}
    told = {"keys": list(groups.keys), "strategy": strategy, "threshold": groups.threshold, "shown": groups.chances}
    return {**told, **below}


def _bounds(each: Bounds) -> dict[str, Any]:
    chosen, cost = each.chosen, {"epsilon": _float(each.cost.epsilon), "rho": float(each.cost.rho)}
    if chosen is None:
        return {"column": str(each.column), **cost, "chosen": None, "clipped_at_most": None}
    below, above = chosen.clipped
    clipped = {"below": below, "above": above, "confidence": SURE}
    ends = [chosen.held.lower, chosen.held.upper]
    return {"column": str(each.column), **cost, "chosen": ends, "clipped_at_most": clipped}


def _sum(each: Sum) -> dict[str, Any]:
    told = {
        "name": each.name,
        "parts": str(each.of),
        "mechanism": each.law,
        "scale": each.scale,
        "granularity": each.step,
        "dimension": each.dimension,
        "sensitivity": None if each.sensitivity is None else asdict(each.sensitivity),
    }
    level = each.level
    if level is None:
        return told
    epsilon = float(level.cost.epsilon or 0) if level.alone else None
    return {**told, "level": list(level.keys), "epsilon": epsilon, "rho": float(level.cost.rho)}


# Expected width of the noise.


def _expected(release: Release) -> ExpectedNoise | None:
    """Return the expected noise of outputs with intervals; None without any, or while bounds are still to be chosen."""
    one = of_one_level(release)
    if release.provisional or not one.shares:
        return None
    widths = [_width(one, output) for output in release.query.finish.outputs]
    known = tuple(each for each in widths if each is not None)
    return ExpectedNoise(_SIZES, known, bool(release.levels.wanted)) if known else None


def _width(one: Release, output: Output) -> Width | None:
    """Return the widths for groups of each size; where they depend on more than the size, for evenly spread values."""
    estimate = estimate_of(one, output)
    worst: tuple[float, ...] = ()
    if estimate is not None and estimate.kind.averages:
        worst = tuple(average_at_worst(one, estimate, size, LEVEL) for size in _SIZES)
    half = constant_half_width(one, output.expr, LEVEL)
    if half is not None:
        return Width(output.name, (half,) * len(_SIZES), worst)
    halves = () if estimate is None else tuple(_interval(one, estimate, size) for size in _SIZES)
    known = tuple(each for each in halves if each is not None)
    return Width(output.name, known, worst) if known else None


def _interval(one: Release, estimate: Estimate, size: int) -> float | None:
    """Return the half-width at the reference table with this many rows; None if there is no interval."""
    values = np.zeros((one.width, 1))
    for place, value in reference(estimate, size).items():
        values[place] = value
    bounds = aggregate_interval(one, ReleasedValues((), values), one.estimates.index(estimate), LEVEL)
    return None if bounds is None else float(bounds[1][0] - bounds[0][0]) / 2
