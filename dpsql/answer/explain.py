"""What a query would do and cost, in words and as a dictionary; from public facts alone, free, and before any run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.answer.as_dict import as_dict
from dpsql.answer.parts import LEVEL, estimate_of, half_width, of_one_level
from dpsql.answer.steps import counted, steps_of
from dpsql.answer.words import percent, short, unit_of
from dpsql.core.conversion import epsilon_of
from dpsql.core.ledger.filters import Remaining
from dpsql.core.unit import Neighbours
from dpsql.plan.aggregates import AggregateKind
from dpsql.plan.nodes import scan_of
from dpsql.plan.query import Output, format_plan
from dpsql.release.expected_error import reference
from dpsql.release.intervals.averages import average_at_worst
from dpsql.release.intervals.intervals import aggregate_interval
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, Released

_SIZES = (100, 1_000, 10_000)
_SHOWN_SIZES = (10, 20, 50, 100)
_AT_WORST = ", at worst"
"""With the mean at an end of its range; in the line above it is in the middle."""


@dataclass(frozen=True)
class Explanation:
    """How a query is answered: prints as a few lines; `.to_dict()` for machines. `left` is what a session has after
    it."""

    release: Release
    left: Remaining | None = None

    @property
    def plan(self) -> str:
        """The plan, outermost operator first."""
        return format_plan(self.release.query)

    def to_dict(self) -> dict[str, Any]:
        """Unit, neighbours, cost, groups; `bounds`: of columns that have theirs chosen; `releases`: what noise is added
        to, in the answer's units, and with grouping sets for each level that has noise of its own, with its part of the
        cost; `draws`: values that are chosen; `columns`: what the query shows, from which releases, with the half-width
        of its 95 % noise interval (of several levels the widest; None where that depends on private counts)."""
        return as_dict(self.release)

    def __str__(self) -> str:
        steps = steps_of(self.release)
        first = max(len(name) for name, _, _ in steps)
        second = max(len(text) for _, text, _ in steps)
        count = 0
        numbered = []
        for name, text, cost in steps:
            count += bool(name)
            number = str(count) if name else ""
            numbered.append(f"{number:>2} {name:<{first}}  {text:<{second}}  {cost}".rstrip())
        return "\n".join([*self._head(), *numbered, *self._sizes(), self._words()])

    __repr__ = __str__

    def _head(self) -> list[str]:
        release = self.release
        changed = "added or removed" if release.analysis.neighbours is Neighbours.UNBOUNDED else "changed"
        left = "" if self.left is None else f" Left after it: {self.left}."
        if not release.analysis.private:
            return ["Protects   nobody: the tables are public", f"Guarantee  none is needed; exact and free.{left}"]
        unit = unit_of(release)
        if unit is None:
            table = scan_of(release.query.plan.input).table.name
            most = release.analysis.bounds.rows.l1
            several = f", which counts up to {most} times" if most > 1 else ""
            whose, what = f"one row of {table} (each row is one person's{several})", "one row"
        else:
            whose, what = f"one person (unit {unit}), with all rows in all tables{counted(release)}", "one person"
        goal = "" if release.goal is None else f" The least epsilon for answers {release.goal}."
        return [f"Protects   {whose}", f"Guarantee  {release.price}, {what} {changed}.{goal}{left}"]

    def _sizes(self) -> list[str]:
        release = self.release
        outputs = [output for output in release.query.finish.outputs if self._has_interval(output)]
        if of_one_level(release).noise is None or not outputs or release.searches is not None:
            return []
        rows = [(short(each.name), [self._at(each, size) for size in _SIZES]) for each in outputs]
        for each in outputs:
            estimate = estimate_of(release, each)
            if estimate is not None and estimate.kind is AggregateKind.AVG:
                place = [name for name, _ in rows].index(short(each.name)) + 1
                rows.insert(place, (f"{short(each.name)}{_AT_WORST}", [self._at_worst(estimate, n) for n in _SIZES]))
        width = max([len("shown"), *(len(name) for name, _ in rows)])
        first = " of the first level" if release.levels is not None else ""
        lines = [f"Expected noise (95 %) for {'groups' + first if release.query.plan.keys else 'tables'} of"]
        of = "units" if unit_of(release) else "rows"
        lines.append(" " * (width + 2) + "".join(f"{size:>11,} {of:>5}" for size in _SIZES))
        lines += [f"  {name:<{width}}" + "".join(f"{cell:>17}" for cell in cells) for name, cells in rows]
        if release.hides:
            chances = ", ".join(f"{size}: {percent(release.chance_shown(size))}" for size in _SHOWN_SIZES)
            lines.append(f"  {'shown':<{width}}  chance by size {chances}")
        return lines

    def _has_interval(self, output: Output) -> bool:
        if half_width(self.release, output) is not None:
            return True
        estimate = estimate_of(self.release, output)
        return estimate is not None and self._interval(estimate, _SIZES[0]) is not None

    def _interval(self, estimate: Estimate, size: int) -> float | None:
        """The half-width at the reference table with so many rows; None where there is no interval."""
        values = np.zeros((self.release.width, 1))
        for place, value in reference(estimate, size).items():
            values[place] = value
        index = self.release.estimates.index(estimate)
        bounds = aggregate_interval(of_one_level(self.release), Released((), values), index, LEVEL)
        return None if bounds is None else float(bounds[1][0] - bounds[0][0]) / 2

    def _at(self, output: Output, size: int) -> str:
        """The half-width for a group of `size` rows; for what depends on more, one whose values are spread evenly."""
        half = half_width(self.release, output)
        if half is None:
            estimate = estimate_of(self.release, output)
            half = None if estimate is None else self._interval(estimate, size)
        assert half is not None  # the caller asks for those that have one
        return _plus_minus(half)

    def _at_worst(self, estimate: Estimate, size: int) -> str:
        """The same of an average, wherever in its range the mean is."""
        return _plus_minus(average_at_worst(of_one_level(self.release), estimate, size, LEVEL))

    def _words(self) -> str:
        cost = self.release.cost
        if cost.epsilon is None:  # any delta will do for an upper bound
            epsilon, delta = float(epsilon_of(cost.rho, Fraction(1, 10**6))), float(cost.delta) + 1e-6
        else:
            epsilon, delta = float(cost.epsilon), float(cost.delta)
        odds = 1 / (1 + math.exp(-epsilon)) if epsilon < 700 else 1.0
        guess = min(1.0, odds + delta)
        reach = "whoever sees the answer can improve a 50:50 guess about one person"
        return f"In words: {reach} to at most {percent(guess)}."


def _plus_minus(half: float) -> str:
    return f"±{half:.3g}" if half < 1e4 else f"±{half:,.0f}"
