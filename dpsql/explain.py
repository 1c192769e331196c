"""What a query would do and cost, in words and as a dictionary; from public facts alone, free, and before any run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.executors.base import of_units
from dpsql.explain_words import cut, delta_of, numbered, percent, short, shown, strategy_word, threshold_of, unit_of
from dpsql.noise_intervals import aggregate_interval, linear_half_width
from dpsql.privacy.conversion import epsilon_of
from dpsql.privacy.filters import Remaining
from dpsql.privacy.loss import show
from dpsql.privacy.unit import Neighbours
from dpsql.release import Release, Released
from dpsql.release_parts import Coordinate, Estimate
from dpsql.release_shares import Share
from dpsql.sql.expressions import Slot, columns, walk
from dpsql.sql.plan import AggregateKind, Output, filters_of, format_plan, scan_of, scans_of

_SIZES = (100, 1_000, 10_000)
_SHOWN_SIZES = (10, 20, 50, 100)
_LEVEL = 0.95


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
        """Unit, neighbours, cost, groups; `releases`: what noise is added to, in the answer's units; `columns`: what
        the query shows, from which releases, with the half-width of its 95 % noise interval (None where that depends on
        private counts)."""
        release = self.release
        keys = release.query.plan.keys
        return {
            "unit": unit_of(release) or "row",
            "limits": self._limits(),
            "neighbours": str(release.analysis.neighbours),
            "epsilon": None if release.cost.epsilon is None else float(release.cost.epsilon),
            "delta": float(release.cost.delta),
            "rho": float(release.cost.rho) if self._concentrated else None,
            "strategy": release.strategy,
            "choice": None if release.choice is None else asdict(release.choice),
            "groups": {
                "keys": [key.name for key in keys],
                "strategy": strategy_word(release) if keys else None,
                "threshold": threshold_of(release),
                "shown": {size: release.chance_shown(size) for size in _SHOWN_SIZES} if release.hides else None,
            },
            "releases": [self._release_dict(place) for place in range(len(release.coordinates))],
            "columns": [self._column_dict(each) for each in release.query.finish.outputs],
        }

    @property
    def _concentrated(self) -> bool:
        """Whether rho is what the query is paid by, or what its noise is measured in."""
        gaussian = any(share.noise.name == "discrete_gaussian" for share in self.release.shares)
        return gaussian or self.release.allowed.rho is not None

    def _limits(self) -> dict[str, int] | None:
        """How much of one unit counts, where a unit may have several rows."""
        bounds = self.release.analysis.bounds
        if not bounds.declared:
            return None
        return {"rows": bounds.rows.rows, "groups": bounds.rows.groups, "rows_per_group": bounds.rows.per_group}

    def _release_dict(self, place: int) -> dict[str, Any]:
        each, share = self.release.coordinates[place], self.release.share_of(place)
        noise = None if share is None else share.noise
        norms = self.release.analysis.of(each.row, each.bound)
        return {
            "name": self._name_of(each),
            "parts": each.name,
            "mechanism": "exact" if noise is None else noise.name,
            "scale": 0.0 if noise is None else noise.scale * each.unit,
            "granularity": each.unit,
            "dimension": 0 if share is None else share.reach.dimension,
            "sensitivity": {
                "l1": float(norms.l1) * each.unit,
                "l2": float(norms.l2) * each.unit,
                "linf": float(norms.linf) * each.unit,
            },
        }

    def _name_of(self, coordinate: Coordinate) -> str:
        """The output that shows this coordinate itself, if one does, else what is summed."""
        for output in self.release.query.finish.outputs:
            estimate = self._estimate(output)
            if estimate and [each.name for each in self._parts(estimate)] == [coordinate.name]:
                return output.name
        return coordinate.name

    def _estimate(self, output: Output) -> Estimate | None:
        first = len(self.release.query.plan.keys)
        if isinstance(output.expr, Slot) and output.expr.index >= first:
            return self.release.estimates[output.expr.index - first]
        return None

    def _parts(self, estimate: Estimate) -> list[Coordinate]:
        return [self.release.coordinates[place] for place in (estimate.sum, estimate.count) if place is not None]

    def _column_dict(self, output: Output) -> dict[str, Any]:
        first = len(self.release.query.plan.keys)
        used = [p.index - first for p in walk(output.expr) if isinstance(p, Slot) and p.index >= first]
        parts = [part for index in used for part in self._parts(self.release.estimates[index])]
        return {
            "name": output.name,
            "from": list(dict.fromkeys(self._name_of(part) for part in parts)),
            "interval_95": self._half_width(output),
        }

    def _half_width(self, output: Output) -> float | None:
        estimate = self._estimate(output)
        if estimate is None or estimate.kind is AggregateKind.AVG:
            return None
        width = linear_half_width(self.release, estimate, _LEVEL)
        return float(max(0, math.ceil(width - 0.5))) if estimate.whole else width

    def __str__(self) -> str:
        steps = self._steps()
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
            whose, what = f"one person (unit {unit}), with all rows in all tables{self._counted()}", "one person"
        return [f"Protects   {whose}", f"Guarantee  {release.price}, {what} {changed}.{left}"]

    def _counted(self) -> str:
        bound = self.release.analysis.bounds.rows
        groups = f" in {numbered(bound.groups, 'group')}" if self.release.query.plan.keys else ""
        each = f", {bound.per_group} in each" if groups and bound.per_group < bound.rows else ""
        return f"; at most {numbered(bound.rows, 'row')}{groups}{each} count"

    def _steps(self) -> list[tuple[str, str, str]]:
        release = self.release
        plan = release.query.plan
        steps = [("where", str(predicate), "free") for predicate in filters_of(plan.input)]
        if release.exact.limits is not None or release.exact.groups is not None:
            steps.append(("keep", self._kept(), "free"))
        steps += [("clip", text, "free") for text in self._clips()]
        if plan.keys:
            every = release.exact.every_cell
            hidden = "groups that occur" + (", small ones hidden" if release.hides else "")
            kind = f"{plan.public_cells} public groups, all shown" if every else hidden
            steps.append(("groups", f"{', '.join(key.name for key in plan.keys)}: {kind}", "free"))
        steps += self._noise_steps()
        if release.selector is not None:
            law = release.selector.law
            by_rho = release.allowed.rho is not None
            coin = f"rho {show(law.epsilon**2 / 2)}" if by_rho else f"epsilon {show(law.epsilon)}"
            cost = f"{coin}, {delta_of(release)}"
            least = f", never with fewer than {law.least}" if law.least > 1 else ""
            steps.append(("shown", f"groups at random, the likelier the more people they have{least}", cost))
        elif release.threshold is not None:
            steps.append(("shown", f"groups whose noisy count reaches {threshold_of(release):.1f}", delta_of(release)))
        steps += [(short(output.name), self._formula(output), "free") for output in release.query.finish.outputs]
        steps += [("select", str(stage).removeprefix("select "), "free") for stage in release.query.stages]
        return [(name, cut(text), cost) for name, text, cost in steps]

    def _kept(self) -> str:
        """What is left out of units with more than their limits."""
        plan = self.release.exact
        by_row = [part for part in plan.parts if not of_units(part)]
        groups = f"{numbered(plan.groups, 'group')}" if plan.groups is not None else ""
        unit = unit_of(self.release)
        if not by_row:
            return (
                f"{groups} per {unit} (random choice)"
                if groups
                else f"all rows of each {unit}, of which one number counts"
            )
        rows = "" if plan.limits is None else numbered(plan.limits.rows, "row")
        among = f" in {groups}" if groups and plan.limits is not None and plan.limits.groups < plan.limits.rows else ""
        return f"{rows}{among} per {unit} (random choice)"

    def _clips(self) -> list[str]:
        ranges = {
            str(m.aggregation.argument): str(m.argument.range)
            for m in self.release.analysis.measured
            if m.sum is not None and m.of == "rows"
        }
        for m in self.release.analysis.measured:
            if m.of in ("total", "mean") and (m.aggregation.per_unit is not None or m.of == "total"):
                held = m.count if m.sum is None else m.sum
                what = "average" if m.of == "mean" else "total"
                ranges[f"{what} of each {unit_of(self.release)} in {m.aggregation}"] = str(held.range)
        tables = {scan.name: scan.table for scan in scans_of(self.release.query.plan.input)}
        read = [
            c for m in self.release.analysis.measured if m.aggregation.argument for c in columns(m.aggregation.argument)
        ]
        for predicate in filters_of(self.release.query.plan.input):
            read += columns(predicate)
        for column in read:
            table = tables.get(column.table)
            bounds = table.by_name[column.name.casefold()].bounds if table is not None and not table.public else None
            if bounds is not None:
                ranges.setdefault(str(column), shown(column.type, bounds))
        return [f"{name} to {held}" for name, held in ranges.items()]

    def _noise_steps(self) -> list[tuple[str, str, str]]:
        release = self.release
        exact = [
            ("exact", f"{each.name} (neighbours agree on it)", "free") for each in release.coordinates if not each.noisy
        ]
        noise = [line for share in release.shares for line in self._share_steps(share)]
        return [*exact, *noise, *self._choice_step()]

    def _choice_step(self) -> list[tuple[str, str, str]]:
        """How the two laws of noise compare."""
        choice = self.release.choice
        if choice is None:
            return []
        laws = {"laplace": "Laplace", "gaussian": "Gaussian"}
        words = f"{laws[choice.chosen]}; {laws[choice.other]} noise would be {choice.wider:.3g} times as wide"
        cells = math.ceil(choice.crossover)
        return [
            (
                "law",
                f"{words} (for one count Gaussian is the narrower from {cells} cells a unit on)"
                if cells > 1
                else words,
                "",
            )
        ]

    def _share_steps(self, share: Share) -> list[tuple[str, str, str]]:
        if self.release.allowed.rho is not None:
            cost = f"rho {show(self.release.allowed.rho if len(self.release.shares) == 1 else share.cost.rho)}"
        else:
            cost = f"epsilon {show(share.epsilon)}"
        noisy = [self.release.coordinates[place] for place in share.places]
        if len(noisy) == 1:
            law = "Gaussian" if share.noise.name == "discrete_gaussian" else "Laplace"
            return [("noise", f"{noisy[0].name} + {law}{_spread(share, noisy[0])}", cost)]
        how = {
            "discrete_k_norm": f"{len(noisy)} sums share one K-norm draw, each at the full epsilon (encoding)",
            "discrete_laplace": f"{len(noisy)} sums with Laplace noise each, epsilon split evenly (split)",
            "discrete_gaussian": f"{len(noisy)} sums with Gaussian noise each, for their joint L2 norm",
        }[share.noise.name]
        return [("noise", how, cost), *(("", f"{each.name}{_spread(share, each)}", "") for each in noisy)]

    def _formula(self, output: Output) -> str:
        estimate = self._estimate(output)
        if estimate is None:
            return str(output.expr)
        parts = [
            None if place is None else self.release.coordinates[place].name for place in (estimate.sum, estimate.count)
        ]
        total, count = parts
        if estimate.kind is AggregateKind.COUNT:
            return str(count)
        if total is None:
            return f"{estimate.centre:g}" + (f" * {count}" if estimate.kind is AggregateKind.SUM else "")
        if estimate.kind is AggregateKind.AVG:
            return f"{estimate.centre:g} + {total} / {count}"
        return total if count is None else f"{total} + {estimate.centre:g} * {count}"

    def _sizes(self) -> list[str]:
        release = self.release
        outputs = [output for output in release.query.finish.outputs if self._estimate(output) is not None]
        if release.noise is None or not outputs:
            return []
        width = max([len("shown"), *(len(short(output.name)) for output in outputs)])
        lines = [f"Expected noise (95 %) for {'groups' if release.query.plan.keys else 'tables'} of"]
        of = "units" if unit_of(release) else "rows"
        lines.append(" " * (width + 2) + "".join(f"{size:>11,} {of:>5}" for size in _SIZES))
        lines += [
            f"  {short(output.name):<{width}}" + "".join(f"{self._at(output, size):>17}" for size in _SIZES)
            for output in outputs
        ]
        if release.hides:
            chances = ", ".join(f"{size}: {percent(release.chance_shown(size))}" for size in _SHOWN_SIZES)
            lines.append(f"  {'shown':<{width}}  chance by size {chances}")
        return lines

    def _at(self, output: Output, size: int) -> str:
        """The half-width for a group of `size` rows; for an average, one in the middle of its range."""
        half = self._half_width(output)
        if half is None:
            estimate = self._estimate(output)
            assert estimate is not None
            values = np.zeros((len(self.release.coordinates), 1))
            if estimate.count is not None:
                values[estimate.count] = size
            index = self.release.estimates.index(estimate)
            bounds = aggregate_interval(self.release, Released((), values), index, _LEVEL)
            assert bounds is not None  # of what has no interval no size is shown
            low, high = bounds
            half = float(high[0] - low[0]) / 2
        return f"±{half:.3g}" if half < 1e4 else f"±{half:,.0f}"

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


def _spread(share: Share, each: Coordinate) -> str:
    return f"  scale {share.noise.scale * each.unit:.6g}, sensitivity {each.sensitivity * each.unit:.6g}"
