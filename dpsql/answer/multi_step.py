"""Answers of multi-step queries, and their explanations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsql.answer.computed_result import SIMULATED, ComputedResult
from dpsql.answer.explain import Explanation
from dpsql.answer.result import checked_level
from dpsql.answer.unknown import unknown_averages
from dpsql.core.cost import FREE, Cost
from dpsql.core.loss import Allowance
from dpsql.release.intervals.intervals import Bounds
from dpsql.release.output.select import Answer
from dpsql.schema.columns import Type

if TYPE_CHECKING:
    from dpsql.release.release import Release


@dataclasses.dataclass(frozen=True)
class MultiStepExplanation(Explanation):
    """Explanation of a multi-step query: its releases, each with its share of the cost, and the free post-processing
    SQL over their answers. `_release` is the first of them."""

    _releases: tuple[Release, ...] = ()
    _sql: str = ""
    _inputs: tuple[tuple[tuple[int, str], ...], ...] = ()
    """The inputs of each release from prior releases: the number of the last one, and the text of the query."""
    _merges: tuple[int, ...] = ()
    """The number of requested releases that each release merges; empty: one each."""

    @property
    def _each(self) -> tuple[Explanation, ...]:
        """The explanation of each release."""
        return tuple(Explanation(release) for release in self._releases)

    @property
    def _cost(self) -> Cost:
        """The cost of all releases together."""
        return sum((release.cost for release in self._releases), FREE)

    @property
    def _cost_text(self) -> str:
        """The cost in words, in the requested privacy measure."""
        rho = any(release.allowed.rho is not None and release.cost.rho for release in self._releases)
        return str(Allowance(None, self._cost.delta, self._cost.rho)) if rho else str(self._cost)

    @property
    def plan(self) -> str:
        """The plans of the releases, outermost operator first, and the SQL over them."""
        return "\n".join([*(each.plan for each in self._each), self._sql])

    def _reads(self, number: int) -> tuple[tuple[int, str], ...]:
        return self._inputs[number - 1] if self._inputs else ()

    def _merged(self, number: int) -> int:
        return self._merges[number - 1] if self._merges else 1

    def to_dict(self) -> dict[str, Any]:
        """Return `steps`: `Explanation.to_dict` of each release, with its inputs from prior releases under `given`, and
        the number of requested releases that it merges, if several, under `merged`; `sql`: the post-processing; and
        `epsilon`, `delta` and `rho` of all together."""
        cost = self._cost
        return {
            "epsilon": None if cost.epsilon is None else float(cost.epsilon),
            "delta": float(cost.delta),
            "rho": float(cost.rho),
            "steps": [
                each.to_dict()
                | ({"given": [words for _, words in reads]} if (reads := self._reads(number)) else {})
                | ({"merged": several} if (several := self._merged(number)) > 1 else {})
                for number, each in enumerate(self._each, start=1)
            ],
            "sql": self._sql,
        }

    def __str__(self) -> str:
        count = len(self._releases)
        lines = [f"{count} release{'' if count == 1 else 's'}, {self._cost_text} together, and SQL over what they show"]
        for number, each in enumerate(self._each, start=1):
            lines.append(f"release {number} of {count}:")
            if (several := self._merged(number)) > 1:
                lines.append(f"  Merged     {several} releases {_how(each)}: none has more error so")
            lines += [f"  Given      {words}, as shown by release {of}" for of, words in self._reads(number)]
            lines += [f"  {line}" for line in str(each).split("\n")]
        lines += ["then, free, over these answers alone:", f"  {self._sql}"]
        return "\n".join([*lines, *([str(self.left)] if self.left is not None else [])])

    __repr__ = __str__


def _how(each: Explanation) -> str:
    return "of groups and of all rows" if each._release.query.plan.apart else "that differ in WHERE alone"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class MultiStepResult(ComputedResult):
    """The answer of SQL over releases. `answers`: the answers of the releases, with their intervals."""

    _explained: MultiStepExplanation | None = None

    @property
    def loss(self) -> Cost:
        """The cost of all releases together, when they were drawn."""
        return self.explanation._cost

    @property
    def _cost_text(self) -> str:
        """The cost in words."""
        return self.explanation._cost_text

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The clip bounds that the releases chose themselves."""
        return {name: held for each in self.answers for name, held in each.bounds.items()}

    @property
    def explanation(self) -> MultiStepExplanation:
        """The steps of the query and their costs."""
        assert self._explained is not None  # set by every caller
        return self._explained

    @property
    def _printed(self) -> Answer:
        """The answer with all columns marked noisy if the SQL is too complex to tell which are: few digits suffice."""
        if self._answer.noisy:
            return self._answer
        return replace(self._answer, noisy=frozenset(self._answer.names))

    def _bounds(self, level: float, *, simultaneous: bool = False, first: int | None = None) -> dict[str, Bounds]:
        """Return the intervals by output; no simultaneous ones, which hold only within one release."""
        bounds, _ = self._intervals(checked_level(level))
        return {} if simultaneous else {name: (low[:first], high[:first]) for name, (low, high) in bounds.items()}

    def _unknown(self, bounds: Mapping[str, Bounds]) -> dict[str, Any]:
        """Return the rows, by output, of a release's averages that the noise leaves open."""
        ranges = {name: ends for each in self.answers for name, ends in each._ranges.items()}
        return unknown_averages(ranges, bounds)

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines below the table: notes on the releases, how the answer was computed from them, and the cost."""
        below = [note for each in self.answers for note in each.notes[:-1]]
        count = len(self.answers)
        over = "1 released answer" if count == 1 else f"{count} released answers"
        bounds, anew = self._intervals(0.95)
        numbers = zip(self._answer.names, self._answer.types, strict=True)
        told = [name for name, kind in numbers if (kind.numeric or kind is Type.TEXT) and name in self._answer.noisy]
        silent = [name for name in told if name not in bounds]
        computed = f"computed from {over} (.answers)"
        if anew:
            computed += f"; {SIMULATED}"
        if silent or not bounds:
            computed += f"; no interval for {', '.join(silent)}" if bounds else "; no intervals"
        given = tuple(
            f"release {number} is given {', '.join(words for _, words in reads)} as shown, and its intervals are too"
            for number, reads in enumerate(self.explanation._inputs, start=1)
            if reads
        )
        return (*dict.fromkeys([*below, computed]), *given, *(f"note: {each}" for each in self.warnings), self.footer)
