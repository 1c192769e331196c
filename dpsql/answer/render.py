"""Tables of noisy values with their noise intervals, as text and as HTML. Digits follow the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import zip_longest
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Vector
from dpsql.release.intervals.intervals import Bounds
from dpsql.release.output.select import Answer
from dpsql.schema.calendar import DAYS, MICROSECONDS, show_date, show_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

_NULL = "NULL"
UNKNOWN = "unknown"
WIDE = "wide"
_TENTH = 10
WHAT_IS_WIDE = f"{WIDE}: an interval reaches further than a tenth of its value"


@dataclass(frozen=True)
class Span:
    """A column of intervals as numbers: its place, the values, None for NULL, and the ends, which may be open."""

    place: int
    values: list[float | None]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Cells:
    """A table in words: its heads, its rows, which columns are of numbers, how many rows are left out, which columns
    hold the intervals of the column before, and what these are as numbers."""

    heads: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    left_out: int
    limits: frozenset[int] = frozenset()
    spans: tuple[Span, ...] = ()

    @property
    def wide(self) -> frozenset[int]:
        """The rows of which some interval is wide, as it can be read off the table."""
        return frozenset(
            row
            for span in self.spans
            for row, (value, low, high) in enumerate(zip(span.values, span.low, span.high, strict=True))
            if low < high < math.inf and (value is None or max(value - low, high - value) * _TENTH > abs(value))
        )

    @classmethod
    def of(
        cls,
        answer: Answer,
        bounds: Mapping[str, Bounds],
        level: float,
        most_rows: int | None = None,
        *,
        redrawn: Collection[str] = (),
        unknown: Mapping[str, Array] | None = None,
    ) -> Cells:
        """One column for each key, value and interval for each aggregate; all rows, or the first. redrawn: the columns
        whose intervals are of noise that was drawn anew. unknown: by column the rows that print as `unknown`."""
        heads, rows, numeric = _cells(*_shortened(answer, bounds, most_rows), level, redrawn, unknown or {})
        limits = [place + 1 + before for before, place in enumerate(_enclosed(answer, bounds))]
        spans = zip(limits, _spans(answer, bounds, len(rows)), strict=True)
        drawn = tuple(Span(place, *each) for place, each in spans if each is not None)
        return cls(heads, rows, numeric, len(answer) - len(rows), frozenset(limits), drawn)

    def headed(self, head: str, cell: str) -> Cells:
        """With one more column in front, the same cell in all rows."""
        rows = [[cell, *row] for row in self.rows]
        spans = tuple(Span(span.place + 1, span.values, span.low, span.high) for span in self.spans)
        limits = frozenset(place + 1 for place in self.limits)
        return Cells([head, *self.heads], rows, [False, *self.numeric], self.left_out, limits, spans)


def _spans(
    answer: Answer, bounds: Mapping[str, Bounds], rows: int
) -> list[tuple[list[float | None], list[float], list[float]] | None]:
    """For each output with intervals its values and their ends, in so many rows; None where it is no number."""
    spans: list[tuple[list[float | None], list[float], list[float]] | None] = []
    for place in _enclosed(answer, bounds):
        if not answer.types[place].numeric:
            spans.append(None)
            continue
        vector, (low, high) = answer.vectors[place], bounds[answer.names[place]]
        present = zip(vector.values[:rows].tolist(), vector.where_valid()[:rows].tolist(), strict=True)
        values = [value if valid else None for value, valid in present]
        spans.append((values, low[:rows].tolist(), high[:rows].tolist()))
    return spans


def _enclosed(answer: Answer, bounds: Mapping[str, Bounds]) -> list[int]:
    """The places of the outputs that have intervals."""
    return [place for place, name in enumerate(answer.names) if name in bounds]


def text_table(cells: Cells, more: str = "({} more rows in .df)") -> str:
    """A boxed table. more: says where the rows are that are left out."""
    widths = [max([len(head), *(len(row[i]) for row in cells.rows)]) for i, head in enumerate(cells.heads)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, cells.numeric, strict=True))
        return "| " + " | ".join(padded) + " |"

    wide = cells.wide
    rows = [f"{line(row)}  {WIDE}" if place in wide else line(row) for place, row in enumerate(cells.rows)]
    lines = [rule, line(cells.heads), rule, *rows, rule]
    if cells.left_out:
        lines.append(more.format(cells.left_out))
    if wide:
        lines.append(WHAT_IS_WIDE)
    return "\n".join(lines)


def _shortened(answer: Answer, bounds: Mapping[str, Bounds], most: int | None) -> tuple[Answer, Mapping[str, Bounds]]:
    """The first rows, and their intervals: those of all, or of at least so many."""
    if most is None or len(answer) <= most:
        return answer, bounds
    return answer.at(np.arange(most)), {name: (low[:most], high[:most]) for name, (low, high) in bounds.items()}


def _cells(
    answer: Answer,
    bounds: Mapping[str, Bounds],
    level: float,
    redrawn: Collection[str],
    unknown: Mapping[str, Array],
) -> tuple[list[str], list[list[str]], list[bool]]:
    heads: list[str] = []
    columns: list[list[str]] = []
    numeric: list[bool] = []
    for name, kind, vector in zip(answer.names, answer.types, answer.vectors, strict=True):
        limits = bounds.get(name)
        heads.append(printable(name))
        numeric.append(kind.numeric)
        shown = _plain(vector, kind) if limits is None else _values(vector, kind, limits)
        hidden = unknown[name].tolist() if name in unknown else ()
        columns.append([UNKNOWN if each else cell for cell, each in zip_longest(shown, hidden[: len(shown)])])
        if limits is not None:
            heads.append(f"{'~' if name in redrawn else ''}{level * 100:g} %")
            numeric.append(True)
            columns.append(_intervals_of_times(kind, limits) if kind.temporal else _intervals(vector, limits))
    return heads, [list(row) for row in zip(*columns, strict=True)], numeric


def _plain(vector: Vector, kind: Type) -> list[str]:
    valid = vector.where_valid()
    show = _SHOWN.get(kind, str)
    return [show(value) if present else _NULL for value, present in zip(vector.values.tolist(), valid, strict=True)]


def _number(value: float) -> str:
    return f"{value:z.12g}"


def printable(text: str) -> str:
    """The text with control characters as escapes, line ends among them: a name or a key cannot draw."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_SHOWN: Mapping[Type, Callable[[Any], str]] = {
    Type.TEXT: printable,
    Type.REAL: _number,
    Type.DATE: show_date,
    Type.TIMESTAMP: show_timestamp,
}


def names_of_ends(names: Sequence[str], enclosed: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """`n_low` and `n_high` for each `n` that has intervals; with underscores more where a column has that name."""
    taken = set(names)
    ends = {}
    for name in names:
        if name not in enclosed:
            continue
        low, high = f"{name}_low", f"{name}_high"
        while low in taken or high in taken:
            low, high = f"{low}_", f"{high}_"
        taken |= {low, high}
        ends[name] = (low, high)
    return ends


def _values(vector: Vector, kind: Type, limits: Bounds) -> list[str]:
    if kind.temporal:
        return _plain(vector, kind)
    low, high = (each.tolist() for each in limits)
    valid = vector.where_valid()
    return [
        _NULL
        if not present
        else str(value)
        if kind is not Type.REAL
        else _fixed(value, _digits(_width(a, b, value), value))
        for value, present, a, b in zip(vector.values.tolist(), valid, low, high, strict=True)
    ]


def _intervals(vector: Vector, limits: Bounds) -> list[str]:
    """±w where the interval lies evenly about the value, else its ends, of which either may be open; about no value,
    NULL, nothing lies evenly."""
    out = []
    ends = (each.tolist() for each in limits)
    for value, present, a, b in zip(vector.values.tolist(), vector.where_valid().tolist(), *ends, strict=True):
        if math.isinf(a) and math.isinf(b):
            out.append("any")
        elif math.isinf(a) or math.isinf(b):
            end = a if math.isinf(b) else b
            digits = 0 if _is_whole(end) else _digits(_width(a, b, value), value)
            out.append(f"{'≥' if math.isinf(b) else '≤'} {_fixed(end, digits)}")
        elif present and b == a:
            out.append("±0")
        elif present and (even := _about(value, a, b)) is not None:
            out.append(f"±{even}")
        else:
            whole = all(map(_is_whole, (a, b, value)))
            digits = 0 if whole else _digits(b - a, value)
            out.append(f"{_fixed(a, digits)} … {_fixed(b, digits)}")
    return out


def _about(value: float, a: float, b: float) -> str | None:
    """How far an interval that lies evenly about the value reaches, as nearly as doubles can say; None of another."""
    below, above = value - a, b - value
    if isinstance(above, int) and isinstance(below, int):
        return str(above) if above == below else None
    if not (math.isfinite(below) and math.isfinite(above)):
        return None
    if abs(above - below) > 1e-9 * max(above, below) + 4 * math.ulp(value):
        return None
    half = (b - a) / 2 if math.isfinite(b - a) else b / 2 - a / 2
    return _rounded_up(half if max(above, below) <= half * (1 + 1e-9) else max(above, below))


def _width(a: float, b: float, value: float) -> float:
    """How wide an interval is; of one with an open end, twice as wide as on the other side of the value."""
    if math.isfinite(a) == math.isfinite(b):
        return b - a
    return 2 * abs(value - (a if math.isfinite(a) else b))


def whole_limits(kind: Type, limits: Bounds) -> tuple[Array, Array]:
    """The ends of intervals around dates or timestamps, rounded outward and held within the calendar."""
    span = DAYS if kind is Type.DATE else MICROSECONDS
    lower, upper = int(span.lower), int(span.upper)
    low, high = np.floor(np.clip(limits[0], lower, upper)), np.ceil(np.clip(limits[1], lower, upper))
    # Held again as integers: floats are too coarse for the last microseconds of the calendar.
    return np.clip(low.astype(np.int64), lower, upper), np.clip(high.astype(np.int64), lower, upper)


def _intervals_of_times(kind: Type, limits: Bounds) -> list[str]:
    """The two ends."""
    show = _SHOWN[kind]
    known = np.isfinite(limits[0]) & np.isfinite(limits[1])
    low, high = whole_limits(kind, limits)
    ends = zip(known.tolist(), low.tolist(), high.tolist(), strict=True)
    return [f"{show(a)} … {show(b)}" if finite else "any" for finite, a, b in ends]


def _fixed(value: float, digits: int) -> str:
    """With so many decimals; what is rounded to 0 has no sign."""
    return str(value) if isinstance(value, int) else f"{value:z.{digits}f}"


_MOST_DECIMALS = 15
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)


def _rounded_up(half: float) -> str:
    """The half-width with two significant digits, never less than it is; far below 1 with an exponent."""
    if half == round(half) and half < 1e15:
        return str(int(half))
    digits = max(0, 1 - math.floor(math.log10(half)))
    if digits > _MOST_DECIMALS:
        return str(_TWO_DIGITS.create_decimal(repr(half))).lower()
    scale = 10.0**digits
    return f"{math.ceil(half * scale - 1e-9) / scale:.{digits}f}"


def _digits(width: float, value: float) -> int:
    """Decimals to show: down to the first significant digit of half the interval, and one more."""
    if not math.isfinite(width) or width <= 0:
        return 0 if _is_whole(value) else 6
    return max(0, min(12, 1 - math.floor(math.log10(width / 2 or width))))


def _is_whole(value: float) -> bool:
    """Not so infinities, which EXP of a large number and LN(0) are."""
    return isinstance(value, int) or (math.isfinite(value) and value == round(value))
