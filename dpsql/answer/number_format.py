"""Formats of values and their intervals: one for each column, as fine as its noise allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Vector
from dpsql.release.intervals.intervals import Bounds
from dpsql.schema.calendar import (
    DAYS,
    MICROSECONDS,
    MICROSECONDS_A_DAY,
    MICROSECONDS_A_SECOND,
    show_date,
    show_timestamp,
)
from dpsql.schema.columns import Type

_NULL = "NULL"
_MOST_DECIMALS = 12
_EXACT_DECIMALS = 6
"""Exact numbers that need more decimals each get their own format."""
_SIGNIFICANT = 6
"""Digits of a noisy number whose error is unknown."""
_LARGEST = 1e12
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
_ALL_DIGITS = Context(prec=400)


def printable(text: str) -> str:
    """Escape control characters, including line ends, so that a name or key cannot control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain_texts(vector: Vector, kind: Type, *, noisy: bool = False, unit: float | None = None) -> list[str]:
    """Format a column without intervals. unit: the smallest meaningful difference, in the units of the values."""
    values, valid = vector.values.tolist(), vector.where_valid().tolist()
    present = [value for value, there in zip(values, valid, strict=True) if there]
    if kind is Type.REAL:
        texts = iter(_real_texts(present, noisy=noisy, unit=unit))
    elif kind is Type.TIMESTAMP:
        step = _time_step(present, unit)
        texts = (show_moment(value, step) for value in present)
    else:
        texts = (_text(value, kind) for value in present)
    return [next(texts) if there else _NULL for there in valid]


def _text(value: Any, kind: Type) -> str:
    if kind is Type.TEXT:
        return printable(value)
    return show_date(value) if kind is Type.DATE else str(value)


def _real_texts(values: Sequence[float], *, noisy: bool, unit: float | None) -> list[str]:
    if not noisy and unit is None:
        return _exact_texts(values)
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes:
        return [_fixed(value, 0) for value in values]
    decimals = max(0, -_magnitude(unit) if unit is not None else _SIGNIFICANT - 1 - _magnitude(max(sizes)))
    if unit is None and (decimals > _MOST_DECIMALS or min(sizes) * 10.0**decimals < 1):
        return [f"{value:z.{_SIGNIFICANT}g}" for value in values]
    decimals = max(_decimals(size, min(_MOST_DECIMALS, decimals)) for size in sizes)
    return [_fixed(value, decimals) for value in values]


def _exact_texts(values: Sequence[float]) -> list[str]:
    finite = [value for value in values if math.isfinite(value)]
    if all(round(value, _EXACT_DECIMALS) == value and abs(value) < _LARGEST for value in finite):
        decimals = max((_decimals(value, _EXACT_DECIMALS) for value in finite), default=0)
        return [_fixed(value, decimals) for value in values]
    return [f"{value:z.12g}" for value in values]


def _decimals(value: float, most: int) -> int:
    """Return the decimals that a number needs when it is rounded to at most `most`."""
    return next(each for each in range(most + 1) if round(value, each) == round(value, most))


def value_texts(vector: Vector, kind: Type, limits: Bounds) -> list[str]:
    """Format a column with intervals, with the decimals of `interval_texts`, or times as fine as their intervals."""
    if kind.temporal:
        return plain_texts(vector, kind, unit=_interval_unit(vector, limits))
    if kind is not Type.REAL:
        return plain_texts(vector, kind)
    decimals = column_decimals(vector, limits)
    pairs = zip(vector.values.tolist(), vector.where_valid().tolist(), strict=True)
    return [_fixed(value, decimals) if present else _NULL for value, present in pairs]


def interval_texts(vector: Vector, kind: Type, limits: Bounds) -> list[str]:
    """Format intervals as ±w if symmetric around the value, else by their ends, rounded outward, which may be open.
    Intervals around NULL are never symmetric."""
    if kind.temporal:
        return _intervals_of_times(vector, kind, limits)
    decimals, out = column_decimals(vector, limits), []
    for value, present, a, b in _rows(vector, limits):
        if math.isinf(a) and math.isinf(b):
            out.append("any")
        elif math.isinf(a) or math.isinf(b):
            out.append(f"≥ {_outward(a, decimals, -1)}" if math.isinf(b) else f"≤ {_outward(b, decimals, 1)}")
        elif present and b == a:
            out.append("±0")
        elif present and (half := _half_width(value, a, b)) is not None:
            out.append(f"±{_rounded_up(half, decimals)}")
        else:
            out.append(f"{_outward(a, decimals, -1)} … {_outward(b, decimals, 1)}")
    return out


def _rows(vector: Vector, limits: Bounds) -> Iterator[tuple[Any, bool, Any, Any]]:
    return zip(vector.values.tolist(), vector.where_valid().tolist(), *(each.tolist() for each in limits), strict=True)


def column_decimals(vector: Vector, limits: Bounds) -> int:
    """Return the decimals of a column: two digits of the median half-width, at least one of the smallest, and all of
    exact numbers."""
    halves = _half_widths(vector, limits)
    numbers = [
        each
        for value, present, a, b in _rows(vector, limits)
        for each in (value if present else 0, a, b)
        if math.isfinite(each)
    ]
    if all(map(_is_whole, numbers)) and (not halves or halves[0] >= 1):
        return 0
    if not halves:
        return max((_decimals(value, _MOST_DECIMALS) for value in numbers), default=0)
    median = halves[(len(halves) - 1) // 2]
    exact = [a for _, _, a, b in _rows(vector, limits) if a == b and math.isfinite(a)]
    needed = (_decimals(value, _EXACT_DECIMALS) for value in exact)
    return max(0, *needed, min(_MOST_DECIMALS, max(1 - _magnitude(median), -_magnitude(halves[0]))))


def _magnitude(value: float) -> int:
    return math.floor(math.log10(value))


def _half_widths(vector: Vector, limits: Bounds) -> list[float]:
    """Return the sorted half-widths, without empty and unknown ones; if one end is open, the other side's."""
    halves = []
    for value, present, a, b in _rows(vector, limits):
        if math.isfinite(a) and math.isfinite(b):
            halves.append(float(b - a) / 2)
        elif present and (math.isfinite(a) or math.isfinite(b)):
            halves.append(float(abs(value - (a if math.isfinite(a) else b))))
    return sorted(half for half in halves if 0 < half < math.inf)


def _half_width(value: float, a: float, b: float) -> float | int | None:
    """Return the half-width of an interval that is symmetric around the value, up to rounding of doubles, else None."""
    below, above = value - a, b - value
    if isinstance(above, int) and isinstance(below, int):
        return above if above == below else None
    if not (math.isfinite(below) and math.isfinite(above)):
        return None
    if abs(above - below) > 1e-9 * max(above, below) + 4 * math.ulp(value):
        return None
    half = (b - a) / 2 if math.isfinite(b - a) else b / 2 - a / 2
    return half if max(above, below) <= half * (1 + 1e-9) else max(above, below)


def _fixed(value: float, decimals: int) -> str:
    """Format with this many decimals; a value that rounds to 0 has no sign."""
    return str(value) if isinstance(value, int) else f"{value:z.{decimals}f}"


def _outward(end: float, decimals: int, direction: int) -> str:
    """Format an end of an interval with this many decimals, rounded away from its inside."""
    if isinstance(end, int):
        return str(end)
    unit = Decimal(1).scaleb(-decimals)
    exact = Decimal(end)
    near = exact.quantize(unit, context=_ALL_DIGITS)
    if (exact - near) * direction > unit / 1_000_000:  # more than the rounding of doubles
        near += direction * unit
    return f"{near or abs(near):f}"


def _rounded_up(half: float, decimals: int) -> str:
    """Format a half-width with this many decimals, rounded up; with an exponent if these would not show it."""
    if isinstance(half, int):
        return str(half)
    if half < 10.0**-decimals:
        return str(_TWO_DIGITS.create_decimal(repr(half))).lower()
    return _outward(half, decimals, 1)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value == round(value)


# Dates and timestamps


def show_moment(microseconds: int, step: int = 1) -> str:
    """Format a timestamp: only its date if `step` is a day, without fractions of a second if `step` is a second."""
    if step >= MICROSECONDS_A_DAY:
        return show_date(microseconds // MICROSECONDS_A_DAY)
    return show_timestamp(microseconds // step * step)


def _time_step(values: Sequence[int], unit: float | None = None) -> int:
    """Return the step between a column's timestamps: a day if all are at midnight, or noise hides the time of day."""
    if all(value % MICROSECONDS_A_DAY == 0 for value in values) or (unit is not None and unit >= MICROSECONDS_A_DAY):
        return MICROSECONDS_A_DAY
    return MICROSECONDS_A_SECOND if unit is not None and unit >= MICROSECONDS_A_SECOND else 1


def _interval_unit(vector: Vector, limits: Bounds) -> float | None:
    """Return a tenth of the median half-width of a column of times."""
    halves = _half_widths(vector, limits)
    return halves[(len(halves) - 1) // 2] / 10 if halves else None


def whole_limits(kind: Type, limits: Bounds) -> tuple[Array, Array]:
    """Return the ends of intervals of dates or timestamps, rounded outward and clamped to the calendar."""
    span = DAYS if kind is Type.DATE else MICROSECONDS
    lower, upper = int(span.lower), int(span.upper)
    low, high = np.floor(np.clip(limits[0], lower, upper)), np.ceil(np.clip(limits[1], lower, upper))
    # Clamp again as integers: floats are too coarse for the last microseconds of the calendar.
    return np.clip(low.astype(np.int64), lower, upper), np.clip(high.astype(np.int64), lower, upper)


def _intervals_of_times(vector: Vector, kind: Type, limits: Bounds) -> list[str]:
    """Format the two ends, rounded outward to the step in which the column is shown."""
    known = (np.isfinite(limits[0]) & np.isfinite(limits[1])).tolist()
    low, high = (each.tolist() for each in whole_limits(kind, limits))
    pairs = list(zip(known, low, high, strict=True))
    if kind is Type.DATE:
        return [f"{show_date(a)} … {show_date(b)}" if finite else "any" for finite, a, b in pairs]
    shown = vector.values[vector.where_valid()].tolist()
    ends = [end for finite, *both in pairs if finite for end in both]
    step, last = _time_step([*shown, *ends], _interval_unit(vector, limits)), int(MICROSECONDS.upper)
    return [
        f"{show_moment(a, step)} … {show_moment(min(-(-b // step) * step, last), step)}" if finite else "any"
        for finite, a, b in pairs
    ]
