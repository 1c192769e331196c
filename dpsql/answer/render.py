"""Tables of noisy values with their intervals, as cells of text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.number_format import interval_texts, plain_texts, printable, value_texts
from dpsql.release.intervals.intervals import Bounds
from dpsql.release.output.select import Answer
from dpsql.schema.frozen import dataclass

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Span:
    """A column of intervals as numbers: its place, the values, None for NULL, and the ends, which may be open."""

    place: int
    values: list[float | None]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Cells:
    """A table as text: its heads, its rows, which columns are numeric, the number of rows left out, which columns hold
    the intervals of the column before, and these intervals as numbers."""

    heads: list[str]
    rows: list[list[str]]
    numeric: list[bool]
    left_out: int
    limits: frozenset[int] = frozenset()
    spans: tuple[Span, ...] = ()

    @classmethod
    def of(
        cls,
        answer: Answer,
        bounds: Mapping[str, Bounds],
        level: float,
        *,
        most_rows: int | None = None,
        simulated: Collection[str] = (),
        units: Mapping[str, float] | None = None,
        unknown: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Cells:
        """Format one column for each key, and value and interval for each aggregate; all rows, or the first. simulated:
        the columns with simulated intervals. units: the smallest meaningful difference by column without intervals.
        unknown: by column, the rows that print as `unknown`."""
        shown = _shortened(answer, bounds, most_rows)
        heads, rows, numeric = _cells(*shown, level, simulated, units or {}, unknown=unknown or {})
        limits = [place + 1 + before for before, place in enumerate(_enclosed(answer, bounds))]
        spans = zip(limits, _spans(answer, bounds, len(rows)), strict=True)
        drawn = tuple(Span(place, *each) for place, each in spans if each is not None)
        return cls(heads, rows, numeric, len(answer) - len(rows), frozenset(limits), drawn)

    def headed(self, head: str, cell: str) -> Cells:
        """Return the table with another column in front, with the same cell in all rows."""
        rows = [[cell, *row] for row in self.rows]
        spans = tuple(Span(span.place + 1, span.values, span.low, span.high) for span in self.spans)
        limits = frozenset(place + 1 for place in self.limits)
        return Cells([head, *self.heads], rows, [False, *self.numeric], self.left_out, limits, spans)


def _spans(
    answer: Answer, bounds: Mapping[str, Bounds], rows: int
) -> list[tuple[list[float | None], list[float], list[float]] | None]:
    """Return, for each output with intervals, the values and ends of the first rows; None if it is not numeric."""
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
    """Return the places of the outputs that have intervals."""
    return [place for place, name in enumerate(answer.names) if name in bounds]


def text_table(cells: Cells, more: str = "({} more rows in .df)") -> str:
    """Format a boxed table. more: where to find the rows that are left out."""
    widths = [max([len(head), *(len(row[i]) for row in cells.rows)]) for i, head in enumerate(cells.heads)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, cells.numeric, strict=True))
        return "| " + " | ".join(padded) + " |"

    lines = [rule, line(cells.heads), rule, *map(line, cells.rows), rule]
    if cells.left_out:
        lines.append(more.format(cells.left_out))
    return "\n".join(lines)


def _shortened(answer: Answer, bounds: Mapping[str, Bounds], most: int | None) -> tuple[Answer, Mapping[str, Bounds]]:
    """Return the first rows and their intervals; `bounds` may cover more rows."""
    if most is None or len(answer) <= most:
        return answer, bounds
    return answer.at(np.arange(most)), {name: (low[:most], high[:most]) for name, (low, high) in bounds.items()}


def _cells(
    answer: Answer,
    bounds: Mapping[str, Bounds],
    level: float,
    simulated: Collection[str],
    units: Mapping[str, float],
    *,
    unknown: Mapping[str, NDArray[np.bool_]],
) -> tuple[list[str], list[list[str]], list[bool]]:
    heads: list[str] = []
    columns: list[list[str]] = []
    numeric: list[bool] = []
    for name, kind, vector in zip(answer.names, answer.types, answer.vectors, strict=True):
        limits = bounds.get(name)
        heads.append(printable(name))
        numeric.append(kind.numeric)
        if limits is None:
            shown = plain_texts(vector, kind, noisy=name in answer.noisy, unit=units.get(name))
        else:
            shown = value_texts(vector, kind, limits)
        hidden = unknown[name].tolist() if name in unknown else ()
        columns.append([UNKNOWN if each else cell for cell, each in zip_longest(shown, hidden[: len(shown)])])
        if limits is not None:
            heads.append(f"{'~' if name in simulated else ''}{level * 100:g} %")
            numeric.append(True)
            columns.append(interval_texts(vector, kind, limits))
    return heads, [list(row) for row in zip(*columns, strict=True)], numeric


def names_of_ends(names: Sequence[str], enclosed: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return `n_low` and `n_high` for each `n` with intervals; with more underscores if a column has that name."""
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
