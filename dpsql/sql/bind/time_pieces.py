"""Pieces of a time range: instants at which expressions over one timestamp may change.

`sample_instants` returns instants of a range at which the expressions take every combination of values that they take
over the whole range. Proof: between two steps of an expression its value is constant, so the first instant of a piece
represents the whole piece. A periodic expression takes all of its values within one period, so a longer piece, in which
the others are constant, is cut to one period.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpsql.plan.domains import cells_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Column, Expr, Literal, Vector, columns
from dpsql.plan.functions.date_units import ALL_UNITS, Unit
from dpsql.plan.time_cuts import unit_of_text
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, Integers
from dpsql.schema.frozen import dataclass

MOST_INSTANTS = 1 << 18
"""Maximum number of instants; beyond it the combinations are not derived."""
_FOUR_CENTURIES = 146_097 * MICROSECONDS_A_DAY
"""The Gregorian calendar repeats after 400 years, which are a whole number of weeks."""
_UNITS = {unit.name: unit for unit in ALL_UNITS}
_DAY = _UNITS["day"]
_FROM_COARSE_TO_FINE = [*_UNITS]
_CALENDAR = frozenset({"quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow", "dayname", "monthname"})
_TIME_OF_DAY = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_UNIT_OF_PART = {
    "century": "year", "isoyear": "week", "dayofyear": "day", "dayofweek": "day", "isodow": "day", "dayname": "day",
    "monthname": "month", "last_day": "month", "timestamp_to_date": "day",
}  # fmt: skip
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "distinct", "not_distinct", "in"})
_PART = re.compile(r"(extract|trunc|diff)_(\w+?)(_of_date)?|(dayname|monthname|last_day)(_of_date)?|timestamp_to_date")


@dataclass(frozen=True)
class Step:
    """Instants at which an expression may change: `shift` microseconds before the starts of the pieces of a `unit`, and
    single `instants`. `period`: the expression repeats after this many microseconds (None: it does not)."""

    expr: Expr
    unit: Unit | None = None
    shift: int = 0
    instants: tuple[int, ...] = ()
    period: int | None = None

    def counts(self, firsts: Integers, lasts: Integers) -> Integers:
        """Return the number of starts after each of `firsts`, up to the matching one of `lasts`."""
        if self.unit is None:
            return np.full(len(firsts), len(self.instants), dtype=np.int64)
        return self.unit.piece(lasts + self.shift) - self.unit.piece(firsts + self.shift)

    def starts(self, first: int, last: int) -> Integers:
        """Return the instants after `first`, up to `last`, at which the expression may change."""
        if self.unit is None:
            return np.array([at for at in self.instants if first < at <= last], dtype=np.int64)
        return self.unit.starts(first + self.shift, last + self.shift) - self.shift


def sample_instants(exprs: Sequence[Expr], time: Column, first: int, last: int) -> Integers | None:
    """Return instants from `first` to `last` that show every combination of the expressions' values.

    None if the steps are unknown, or the instants too many.
    """
    found = [steps_of(expr, time) for expr in exprs]
    steps = list(dict.fromkeys(step for each in found for step in each or ()))
    if None in found:
        return None
    starts, ends = np.array([first], dtype=np.int64), np.array([last], dtype=np.int64)
    constant: list[Step] = []
    for period in (None, _FOUR_CENTURIES, MICROSECONDS_A_DAY):
        level = [step for step in steps if step.period == period]
        if not level:
            continue
        if period is not None:
            starts, ends = _distinct_pieces(constant, starts, ends, period)
        counts = sum((step.counts(starts, ends) for step in level), start=np.zeros(len(starts), dtype=np.int64))
        if int(counts.sum()) > MOST_INSTANTS:
            return None
        pieces = zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True)
        both = [_cut(level if count else (), first, last) for first, last, count in pieces]
        starts, ends = (np.concatenate(each) for each in zip(*both, strict=True))
        constant += level
    return np.unique(starts)


def _cut(steps: Sequence[Step], first: int, last: int) -> tuple[Integers, Integers]:
    """Return the first and last instants of the pieces between two instants."""
    starts = np.unique(np.concatenate([[first], *(step.starts(first, last) for step in steps)]).astype(np.int64))
    return starts, np.append(starts[1:] - 1, last)


def _distinct_pieces(
    constant: Sequence[Step], starts: Integers, ends: Integers, period: int
) -> tuple[Integers, Integers]:
    """Cut the pieces to one period, and keep one full-period piece for each combination of values."""
    values = [cells_of(evaluate(step.expr, lambda _: Vector(starts), len(starts)), step.expr.type) for step in constant]
    whole = ends - starts >= period - 1
    ends = np.where(whole, starts + period - 1, ends)
    seen: dict[tuple[object, ...], int] = {}
    for place in np.flatnonzero(whole).tolist():
        seen.setdefault(tuple(each[place] for each in values), place)
    kept = np.array(sorted({*seen.values(), *np.flatnonzero(~whole).tolist()}), dtype=np.int64)
    return starts[kept], ends[kept]


def steps_of(expr: Expr, time: Column) -> tuple[Step, ...] | None:
    """Return the steps of an expression over one timestamp, or None if unknown."""
    if time not in columns(expr):
        return ()
    if not isinstance(expr, Call):
        return None
    ways = (_of_part, _of_comparison, _of_text, _of_arguments)
    return next((found for way in ways if (found := way(expr, time)) is not None), None)


def _of_arguments(expr: Call, time: Column) -> tuple[Step, ...] | None:
    """Return the steps of a function's arguments. Whether a time is NULL does not change."""
    if expr.function.name == "is_null" and expr.args[0] == time:
        return ()
    found = [steps_of(arg, time) for arg in expr.args]
    return None if None in found else tuple(step for each in found for step in each or ())


def _of_part(expr: Call, time: Column) -> tuple[Step, ...] | None:
    """Return the steps of a part of a time, a truncated time, or a difference from a constant in units."""
    unit, period = _unit_and_period(expr.function.name)
    if unit is None:
        return None
    found = [_shifted(arg, time, unit, 0) for arg in expr.args if time in columns(arg)]
    if None in found:
        return None
    steps = [replace(step, expr=expr) for each in found for step in each or ()]
    return tuple(step if step.unit is None else replace(step, period=period) for step in steps)


def _unit_and_period(name: str) -> tuple[Unit | None, int | None]:
    """Return the unit whose pieces change a time function, and its period."""
    match = _PART.fullmatch(name)
    if match is None:
        return None, None
    word = match[2] or match[4] or match[0]
    unit = "day" if (match[1], word) == ("diff", "week") else _UNIT_OF_PART.get(word, word)
    if match[1] in ("trunc", "diff"):
        return _UNITS.get(unit), None
    return _UNITS.get(
        unit
    ), _FOUR_CENTURIES if word in _CALENDAR else MICROSECONDS_A_DAY if word in _TIME_OF_DAY else None


def _shifted(expr: Expr, time: Column, unit: Unit, shift: int) -> tuple[Step, ...] | None:
    """Return the instants at which expression + `shift` microseconds enters a new piece of a unit; None unless the
    expression is a sum of the time and constants."""
    if expr == time:
        return (Step(expr, unit, shift),)
    if not isinstance(expr, Call):
        return None
    name, value = expr.function.name, expr.args[0]
    if name == "date_to_timestamp":
        return _shifted(value, time, unit, shift)
    if name == "timestamp_to_date":
        coarse = _FROM_COARSE_TO_FINE.index(unit.name) <= _FROM_COARSE_TO_FINE.index("day")
        whole = coarse and shift % MICROSECONDS_A_DAY == 0
        return _shifted(value, time, unit, shift) if whole else _shifted(value, time, _DAY, 0)
    count = expr.args[1] if len(expr.args) == 2 else None
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return None
    if name in ("add_days", "subtract_days"):
        return _added(value, time, (unit, shift), (_DAY, count.value if name == "add_days" else -count.value))
    added = _UNITS.get(name.removeprefix("add_"))
    return None if added is None or name == added.name else _added(value, time, (unit, shift), (added, count.value))


def _added(expr: Expr, time: Column, piece: tuple[Unit, int], sum_of: tuple[Unit, int]) -> tuple[Step, ...] | None:
    """Return the steps of an expression plus some units. Months map days to days, and keep the time of day. A sum
    outside years 1 to 9999 is NULL."""
    (unit, shift), (added, count) = piece, sum_of
    if not added.months:
        moved = min(max(count, -added.most), added.most) * added.microseconds
        found = _shifted(expr, time, unit, shift + moved)
        limits = (int(MICROSECONDS.lower) - moved, int(MICROSECONDS.upper) + 1 - moved)
        return None if found is None else (*found, *_limits(expr, time, limits))
    finer = max(unit.name, "day", key=_FROM_COARSE_TO_FINE.index)
    both = _shifted(expr, time, _UNITS[finer], shift), _shifted(expr, time, _DAY, 0)
    return None if both[0] is None or both[1] is None else (*both[0], *both[1])


def _limits(expr: Expr, time: Column, instants: tuple[int, ...]) -> tuple[Step, ...]:
    """Return the steps at which an expression passes instants, if it can."""
    moved = _shifted(expr, time, _DAY, 0) or ()
    return tuple(Step(expr, instants=tuple(at - step.shift for at in instants)) for step in moved if step.unit)


def _of_comparison(expr: Call, time: Column) -> tuple[Step, ...] | None:
    """Return the steps of comparing a time, or its date, with constants."""
    if expr.function.name not in _COMPARISONS:
        return None
    sides = [arg for arg in expr.args if time in columns(arg)]
    constants = [arg for arg in expr.args if isinstance(arg, Literal)]
    if len(sides) != 1 or len(constants) + 1 != len(expr.args):
        return None
    side, size = sides[0], 1
    if isinstance(side, Call) and side.function.name == "timestamp_to_date":
        side, size = side.args[0], MICROSECONDS_A_DAY
    whole = [each.value * size for each in constants if isinstance(each.value, int)]
    found = _passing(side, time, [at for value in whole for at in (value, value + size)])
    return None if found is None else tuple(replace(step, expr=expr) for step in found)


def _passing(side: Expr, time: Column, instants: Sequence[int]) -> tuple[Step, ...] | None:
    """Return the steps at which a sum of a time and constants passes instants. A sum with months may pass on any
    day."""
    if all(_adds_fixed_units(part) for part in _calls(side)):
        moved = _shifted(side, time, _DAY, 0) or ()
        shift = sum(step.shift for step in moved if step.unit is not None)
        limits = [step for step in moved if step.unit is None]
        return (Step(side, instants=tuple(at - shift for at in instants)), *limits)
    found = [_shifted(side, time, _DAY, -(at % MICROSECONDS_A_DAY)) for at in instants]
    return None if None in found else tuple(step for each in found for step in each or ())


def _adds_fixed_units(call: Call) -> bool:
    unit = _UNITS.get(call.function.name.removeprefix("add_"))
    return unit is not None and not unit.months


def _calls(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call):
        yield expr
        for arg in expr.args:
            yield from _calls(arg)


def _of_text(expr: Call, time: Column) -> tuple[Step, ...] | None:
    """Return the steps of a time's first characters as text: LEFT(CAST(ts AS TEXT), 7) changes every month."""
    unit = unit_of_text(expr)
    if unit is None:
        return None
    written = expr.args[0]
    assert isinstance(written, Call)
    found = _shifted(written.args[0], time, _UNITS[unit], 0)
    return None if found is None else tuple(replace(step, expr=expr) for step in found)
