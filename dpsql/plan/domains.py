"""Public sets of an expression's possible values, derived from declarations and never from data.

A key with such a set makes public groups: all of them are shown. Rows with other values are in no group, so the set
need only be useful, not complete. Privacy requires only that no row determines it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import (
    DTYPES,
    Array,
    Call,
    Column,
    Expr,
    Literal,
    Vector,
    blank,
    call,
    call_of,
    columns,
    rebuild,
)
from dpsql.plan.facts import MOST_EXACT, Known, double_of, fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.query import MOST_DERIVED_CELLS
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import ColumnSchema, Key, Type
from dpsql.schema.intervals import Interval

Domain = tuple[Key, ...]

_PIECE = 1_024
MOST_UNDECLARED = 1_000
"""Maximum number of values derived from dates or timestamps without declared bounds (months, hours, but not years)."""
MOST_TEXT = 1 << 22
"""Maximum number of characters of all texts of a set; with more, the groups count as unknown."""
_CHOOSERS = {"coalesce": slice(None), "nullif": slice(1), "least": slice(None), "greatest": slice(None)}


class Domains:
    """Sets of values of expressions over columns, above some filters. `declared` returns a column's declaration.
    `origins`: for a computed column, the expressions of which it is a copy of one."""

    def __init__(
        self,
        declared: Callable[[Column], ColumnSchema | None],
        known: Known,
        origins: Mapping[Column, Sequence[Expr]] | None = None,
    ) -> None:
        self.declared = declared
        self.origins = origins or {}
        self.known = known
        self.found: dict[Expr, Domain | None] = {}

    def of(self, expr: Expr) -> Domain | None:
        """Return all values in ascending order, NULL last if possible; None if they are unknown or too many."""
        if expr not in self.found:
            self.found[expr] = self._of(expr)
        return self.found[expr]

    def too_many(self, expr: Expr) -> bool:
        """Return whether its values are public, but too many for `of`."""
        used = columns(expr)
        known = [self.of(column) is not None or _between_bounds(column, self.known) for column in used]
        return bool(used) and all(known) and self.of(expr) is None

    def _of(self, expr: Expr) -> Domain | None:
        if isinstance(expr, Literal):
            return (expr.value,)
        if isinstance(expr, Column):
            return self._of_column(expr)
        if not isinstance(expr, Call):
            return None
        ways = (
            self._of_columns, self._truncated, self._chosen, self._multiples, self._of_times, self._of_text,
            self.counted, self._of_function, self._of_one_instant, self._combined,
        )  # fmt: skip
        values = next((found for way in ways if (found := way(expr)) is not None), None)
        return None if values is None else self._held(values, expr, self.known)

    @staticmethod
    def _held(values: Domain, expr: Expr, known: Known) -> Domain:
        """Drop values excluded by filters."""
        held = fact(expr, known)
        return tuple(each for each in values if (held.nullable if each is None else _may_be(each, held.range)))

    def _of_column(self, column: Column) -> Domain | None:
        """Return the values that are listed, or between bounds."""
        declared = self.declared(column)
        listed = self._copied(column) if declared is None else declared.keys
        if listed and declared is not None and column.fact.nullable and not declared.nullable and None not in listed:
            listed = (*listed, None)  # from rows without a match in an outer join
        return self.counted(column) if listed is None else listed

    def counted(self, expr: Expr) -> Domain | None:
        """Return all whole numbers, dates or booleans in its range, which contains every value; None if they are too
        many, or of another type."""
        double = double_of(expr)
        return _counted(expr, self.known) if double is None else self._counted_digits(double)

    def _counted_digits(self, double: Call) -> Domain | None:
        """Return the digits of all whole numbers in the range to which filters restrict a double, which is exact
        there."""
        span = fact(double, self.known).range
        if double not in self.known or not span.bounded or span.magnitude >= MOST_EXACT:
            return None
        lower, upper = math.ceil(span.lower), math.floor(span.upper)
        if upper - lower >= MOST_DERIVED_CELLS:
            return None
        null = fact(double.args[0], self.known).nullable and fact(double, self.known).nullable
        return (*map(str, range(lower, upper + 1)), *([None] if null else []))

    def at(self, expr: Expr, column: Column, values: Domain) -> list[Key]:
        """Return the values of an expression over one column, at each of these values."""
        return cells_of(_values(expr, {column: vector_of(values, column.type)}, len(values)), expr.type)

    def _of_function(self, expr: Call) -> Domain | None:
        """Return all possible results of the function, for any arguments."""
        if not expr.function.values:
            return None
        return ascending({*expr.function.values, *([None] if fact(expr, self.known).nullable else [])})

    def _copied(self, column: Column) -> Domain | None:
        """Return the values of all expressions that a computed column may copy."""
        known, self.known = self.known, {}  # filters above it restrict the column, not its origin
        sets = [self.of(expr) for expr in self.origins.get(column, ())]
        self.known = known
        own = [each for each in sets if each is not None]
        if not own or len(own) < len(sets):
            return None
        return self._held(
            ascending({_as_type(value, column.type) for values in own for value in values}), column, known
        )

    def _of_columns(self, expr: Call) -> Domain | None:
        """Return the expression at every combination of its columns' values; each column has a small set of its own."""
        used = columns(expr)
        sets = [self.of(column) for column in used]
        own = [each for each in sets if each is not None]
        if not used or len(own) < len(sets):
            return None
        base = _evaluated(expr, used, own)
        if base is None:
            return None
        # A NULL that a list of keys leaves out can still lead to a value, as in COALESCE(column, 'none'). If it does,
        # a resulting NULL is a group too; if it only leads to NULL, that is left out.
        wider = [
            values if None in values or not column.fact.nullable else (*values, None)
            for column, values in zip(used, own, strict=True)
        ]
        keys = set(base)
        for place, values in enumerate(wider):
            if values != own[place]:
                more = _evaluated(expr, used, [*wider[:place], (None,), *wider[place + 1 :]])
                if more is None:
                    return None
                keys.update(more if more != (None,) else ())
        return ascending(keys)

    def _chosen(self, expr: Call) -> Domain | None:
        """Return the union of the arguments' sets, for functions that return one of their arguments."""
        if expr.function.name == "case":
            arms: Sequence[Expr] = [*expr.args[1::2], expr.args[-1]]
        elif expr.function.name in _CHOOSERS:
            arms = expr.args[_CHOOSERS[expr.function.name]]
        else:
            return None
        keys: set[Key] = {None} if expr.function.name == "nullif" else set()
        for arm in arms:
            values = self.of(arm)
            if values is None or len(keys) + len(values) > MOST_DERIVED_CELLS:
                return None
            keys |= {_as_type(value, expr.type) for value in values}
        if not fact(expr, self.known).nullable:
            keys.discard(None)
        return ascending(keys)

    def _truncated(self, expr: Call) -> Domain | None:
        """Return the instants of a DATE_TRUNC of a bounded time: the first of each unit in its range."""
        unit = expr.function.name.removeprefix("trunc_")
        times = fact(expr.args[0], self.known)
        if f"diff_{unit}" not in FUNCTIONS or not expr.function.name.startswith("trunc_"):
            return None
        ends = Vector(np.array([times.range.lower, times.range.upper], dtype=np.int64))
        first, last = expr.function.kernel(expr.type, [ends]).values.tolist()
        one = [Vector(np.array([end], dtype=np.int64)) for end in (first, last)]
        steps = int(FUNCTIONS[f"diff_{unit}"].kernel(Type.INTEGER, one).values[0])
        if not 0 <= steps < _most(expr, self.known):
            return None
        start, count = np.full(steps + 1, first, dtype=np.int64), np.arange(steps + 1, dtype=np.int64)
        instants = cells_of(FUNCTIONS[f"add_{unit}"].kernel(expr.type, [Vector(start), Vector(count)]), expr.type)
        return ascending({*instants, None} if times.nullable else {each for each in instants if each is not None})

    def _multiples(self, expr: Call) -> Domain | None:
        """Return a whole number's multiples by a constant, without the values in between."""
        constant = any(isinstance(arg, Literal) for arg in expr.args)
        return self._combined(expr) if expr.function.name == "multiply" and constant else None

    def _of_times(self, expr: Call) -> Domain | None:
        """Return a time computed from listed times, without the values in between."""
        if expr.function.name in ("last_day", "last_day_of_date"):
            return self._ends_of_months(expr.args[0])
        return self._combined(expr) if expr.type.temporal else None

    def _of_text(self, expr: Call) -> Domain | None:
        """Return the first characters of a timestamp as text, for each instant of the unit that they determine."""
        if expr.function.name not in ("left", "substring"):
            return None
        from dpsql.plan.time_cuts import cut_of_text  # few queries cut texts of times

        cut = cut_of_text(expr)
        return None if cut is None else self._of_one_instant(cut)

    def _ends_of_months(self, time: Expr) -> Domain | None:
        """Return the last day of every month in a time's range."""
        instant = call(FUNCTIONS["date_to_timestamp"], time) if time.type is Type.DATE else time
        month = None if instant is None else call(FUNCTIONS["trunc_month"], instant)
        months = None if month is None else self.of(month)
        if month is None or months is None:
            return None
        place = Column("\0month", month.type, fact(month, self.known))
        end = call(FUNCTIONS["last_day"], place)
        return None if end is None else _evaluated(end, [place], [months])

    def _of_one_instant(self, expr: Call) -> Domain | None:
        """Return the values at every instant of an expression that reads only one time, cut to a unit."""
        from dpsql.plan.time_cuts import time_cuts  # few queries get here

        cuts = time_cuts(expr)
        if cuts is None or len(cuts) != 1 or expr in cuts:
            return None
        cut = next(iter(cuts))
        values = self.of(cut)
        if values is None:
            return None
        place = Column("\0instant", cut.type, fact(cut, self.known))
        return _evaluated(rebuild(expr, {cut: place}), [place], [values])

    def _combined(self, expr: Call) -> Domain | None:
        """Return any other function at every combination of its arguments' sets."""
        sets = [self.of(arg) for arg in expr.args]
        own = [each for each in sets if each is not None]
        if len(own) < len(sets):
            return None
        places = [Column(f"\0{place}", arg.type, fact(arg, self.known)) for place, arg in enumerate(expr.args)]
        return _evaluated(call_of(expr.function, tuple(places), expr.type), places, own)


def _may_be(value: Key, held: Interval) -> bool:
    """Return whether a value lies in a range; true for values without ranges."""
    return isinstance(value, str | bool) or value is None or held.lower <= value <= held.upper


def _most(expr: Expr, known: Known) -> int:
    """Return the maximum size of a derived set."""
    ranges = [(fact(column, known).range, column.type) for column in columns(expr) if column.type.temporal]
    whole = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}
    loose = any(held.lower == whole[kind].lower or held.upper == whole[kind].upper for held, kind in ranges)
    return MOST_UNDECLARED if loose else MOST_DERIVED_CELLS


def _between_bounds(column: Column, known: Known) -> bool:
    """Return whether a column has whole numbers or dates between bounds."""
    held = fact(column, known).range
    return column.type.discrete and held.bounded and _most(column, known) == MOST_DERIVED_CELLS


def _counted(expr: Expr, known: Known) -> Domain | None:
    """Return booleans, and whole numbers and dates in a bounded range, if they are few enough."""
    limits = fact(expr, known)
    if not expr.type.discrete or not limits.range.bounded:
        return None
    lower, upper = int(limits.range.lower), int(limits.range.upper)
    if upper - lower >= _most(expr, known) or max(-lower, upper + 1) > 2**63:
        return None
    boolean = expr.type is Type.BOOLEAN
    values: list[Key] = [bool(value) if boolean else value for value in range(lower, upper + 1)]
    return (*values, None) if limits.nullable else tuple(values)


def _evaluated(expr: Expr, used: Sequence[Column], sets: Sequence[Domain]) -> Domain | None:
    rows = 1
    for values in sets:
        rows *= len(values)
    if rows > MOST_DERIVED_CELLS:
        return None
    grid = list(itertools.product(*sets))
    keys: set[Key] = set()
    characters = 0
    for first in range(0, rows, _PIECE):
        piece = grid[first : first + _PIECE]
        columns_of = {each: vector_of([row[i] for row in piece], each.type) for i, each in enumerate(used)}
        cells = cells_of(_values(expr, columns_of, len(piece)), expr.type)
        characters += sum(len(value) for value in cells if isinstance(value, str))
        if characters > MOST_TEXT:
            return None
        keys.update(cells)
    return ascending(keys)


def _values(expr: Expr, read: Mapping[Column, Vector], rows: int) -> Vector:
    with np.errstate(all="ignore"):
        return evaluate(expr, lambda column: read[column], rows)


def ascending(values: set[Key]) -> Domain:
    """Return the values in ascending order, NULL last."""
    present: list[Any] = sorted(value for value in values if value is not None)
    return (*present, None) if None in values else tuple(present)


def _as_type(value: Key, kind: Type) -> Key:
    return float(value) if kind is Type.REAL and isinstance(value, int) else value


def vector_of(cells: Sequence[Key], kind: Type) -> Vector:
    """Return Python values as a vector, None for NULL."""
    valid = np.array([cell is not None for cell in cells], dtype=bool)
    values: Array = np.array([blank(kind) if cell is None else cell for cell in cells], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)


def cells_of(vector: Vector, kind: Type) -> list[Key]:
    """Return the cells as Python values, None for NULL; -0.0 as 0.0."""
    values = vector.values + 0.0 if kind is Type.REAL else vector.values
    cells: list[Key] = np.asarray(values).tolist()
    if vector.valid is None:
        return cells
    return [cell if present else None for cell, present in zip(cells, vector.valid, strict=True)]
