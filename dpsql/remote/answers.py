"""Answers and explanations received from a server: the interface of local ones, without the release behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsql.answer.base import BaseExplanation, BaseResult
from dpsql.answer.export_formats import Column
from dpsql.answer.html import html_table, html_text
from dpsql.answer.plot import Panel, parts
from dpsql.answer.render import Cells, Span, text_table
from dpsql.core.cost import Cost
from dpsql.errors import InvalidArgument, as_written, did_you_mean
from dpsql.remote.facts import cost_of, number_of, remaining_of
from dpsql.schema.columns import Type

if TYPE_CHECKING:
    import pandas as pd  # the server's pages do without pandas

_MOST_ROWS_SHOWN = 60


class RemoteExplanation(BaseExplanation):
    """Explanation of a query; prints as a few lines, `.to_dict()` returns a dictionary."""

    def __init__(self, said: Mapping[str, Any], *, with_budget: bool = True) -> None:
        self._said = said
        self._text = str(said["text" if with_budget else "text_without_budget"])
        self.plan = str(said["plan"])
        self.left = remaining_of(said["left"]) if with_budget and said["left"] else None

    def to_dict(self) -> dict[str, Any]:
        """As `Explanation.to_dict`."""
        return dict(self._said["explanation"])

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_text(self._text)


class RemoteResult(BaseResult):
    """A private answer, with the attributes and methods of `Result`. Its intervals have the level 0.95 and are not
    simultaneous."""

    def __init__(self, said: Mapping[str, Any], explain: Callable[[], RemoteExplanation]) -> None:
        self._said, self._explain = said, explain
        self._all = [
            Column(each["name"], Type(each["type"]), [_cell(Type(each["type"]), cell) for cell in each["values"]])
            for each in said["columns"]
        ]
        self._own = [column for column, each in zip(self._all, said["columns"], strict=True) if not each["end"]]
        self.footer, self._heading = str(said["footer"]), str(said["heading"])
        self.warnings = tuple(map(str, said["warnings"]))
        self.replayed = bool(said["replayed"])
        self.answers = answers_of(said)
        """The answers of the releases of a multi-step query; empty for other queries."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines below the table."""
        return tuple(map(str, self._said["notes"]))

    @property
    def _cost_text(self) -> str:
        """The cost in words."""
        return str(self._said["price"])

    @property
    def loss(self) -> Cost:
        """The cost of the answer when it was drawn, as exact fractions."""
        return cost_of(self._said["loss"])

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The clip bounds that the query chose itself."""
        return {name: (_real(low), _real(high)) for name, (low, high) in self._said["bounds"].items()}

    @cached_property
    def explanation(self) -> RemoteExplanation:
        """The steps of the query and their costs, requested from the server for free."""
        return self._explain()

    @property
    def df(self) -> pd.DataFrame:
        """The noisy values, a column for each output."""
        import pandas as pd

        return pd.DataFrame({each.name: _series(each.kind, each.cells) for each in self._columns})

    @property
    def _columns(self) -> list[Column]:
        """The columns without the heading column."""
        return self._own[1:] if self._heading else self._own

    @property
    def _ends(self) -> dict[str, tuple[Column, Column]]:
        """The columns of the interval ends, by the name of the column that they belong to."""
        ends: dict[str, list[Column]] = {}
        name = ""
        for column, each in zip(self._all, self._said["columns"], strict=True):
            if each["end"]:
                ends[name].append(column)
            else:
                name = column.name
                ends[name] = []
        return {name: (each[0], each[1]) for name, each in ends.items() if each}

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """Return the noisy values; with `intervals`, columns name_low and name_high after each aggregate."""
        self._check(level)
        return self._frame(keep=True) if intervals else self.df

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return the intervals of the exact answers. Raises InvalidArgument for another level or simultaneous ones."""
        self._check(level)
        if simultaneous:
            raise InvalidArgument("simultaneous intervals are made where the answer is, not over a connection.")
        return self._frame(keep=False)

    def _frame(self, *, keep: bool) -> pd.DataFrame:
        import pandas as pd

        columns: dict[str, Any] = {}
        for each in self._columns:
            ends = self._ends.get(each.name)
            if keep or ends is None:
                columns[each.name] = _series(each.kind, each.cells)
            for end in ends or ():
                columns[end.name] = _series(end.kind, end.cells)
        return pd.DataFrame(columns)

    def _export_columns(self, level: float | None) -> list[Column]:
        """Return the columns to export, with the ends of their intervals, or without for None."""
        if level is None:
            return list(self._own)
        self._check(level)
        return list(self._all)

    def _text_cells(self, level: float = 0.95, *, most_rows: int | None = None) -> Cells:
        """Return all rows, or the first ones, formatted as for printing."""
        self._check(level)
        said = self._said["table"]
        spans = [Span(place, *([number_of(cell) for cell in each] for each in rest)) for place, *rest in said["spans"]]
        cells = Cells(said["heads"], said["rows"], said["numeric"], 0, frozenset(said["limits"]), tuple(spans))
        if most_rows is None or len(cells.rows) <= most_rows:
            return cells
        cut = [Span(s.place, s.values[:most_rows], s.low[:most_rows], s.high[:most_rows]) for s in spans]
        return replace(cells, rows=cells.rows[:most_rows], left_out=len(cells.rows) - most_rows, spans=tuple(cut))

    def _simulated(self, level: float) -> frozenset[str]:
        """Return the columns whose intervals are simulated: the head of the interval is then ~95 %."""
        self._check(level)
        heads, limits = self._said["table"]["heads"], set(self._said["table"]["limits"])
        return frozenset(heads[place - 1] for place in limits if place and heads[place].startswith("~"))

    def _plot_parts(self, level: float) -> tuple[list[Column], list[Panel]]:
        """Return the key columns, and the panels of noisy numbers."""
        self._check(level)
        ends = {name: (list(low.cells), list(high.cells)) for name, (low, high) in self._ends.items()}
        return parts(self._columns, set(self._said["drawn"]), ends)

    def _check(self, level: float) -> None:
        if level != self._said["level"]:
            raise InvalidArgument(
                f"over a connection intervals have the level {self._said['level']}, got {as_written(level)}."
            )

    def __getitem__(self, name: str) -> pd.Series:
        """The noisy values of one column. Raises InvalidArgument for an unknown name."""
        names = [each.name for each in self._columns]
        if name not in names:
            near = did_you_mean(name, names) if isinstance(name, str) else ""
            raise InvalidArgument(f"the answer has no column {as_written(name)}.{near}")
        return self.df[name]

    def item(self) -> Any:
        """Return the value of a one-row, one-column answer; None for NULL."""
        if len(self) != 1 or len(self._columns) != 1:
            raise InvalidArgument(
                f"item() is for an answer of one row and one column; this has {len(self)} rows and "
                f"{len(self._columns)} columns."
            )
        return self._columns[0].cells[0]

    def __len__(self) -> int:
        return len(self._said["table"]["rows"])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(zip(*(each.cells for each in self._columns), strict=True))

    def _table_text(self, *, most_rows: int | None = None, level: float = 0.95) -> str:
        """Return the table with its intervals."""
        return text_table(self._text_cells(level, most_rows=most_rows))

    def to_text(self, *, most_rows: int | None = None, level: float = 0.95) -> str:
        """Return the table with its intervals and the privacy line, as printed."""
        return "\n".join([self._table_text(most_rows=most_rows, level=level), *self.notes])

    def __repr__(self) -> str:
        return self.to_text(most_rows=_MOST_ROWS_SHOWN)

    def _repr_html_(self) -> str:
        return html_table(self._text_cells(most_rows=_MOST_ROWS_SHOWN), self.notes)


def answers_of(said: Mapping[str, Any]) -> tuple[RemoteResult, ...]:
    """Return the answers that a multi-step query was computed from."""
    return tuple(
        RemoteResult(each, partial(RemoteExplanation, each["explanation"], with_budget=False))
        for each in said.get("answers", ())
    )


def _cell(kind: Type, cell: Any) -> Any:
    """Return a value as the Python value of its type; None for NULL."""
    if cell is None:
        return None
    if kind is Type.DATE:
        return date.fromisoformat(cell)
    if kind is Type.TIMESTAMP:
        return datetime.fromisoformat(cell)
    return number_of(cell) if kind.numeric else cell


def _real(cell: Any) -> float:
    return float(number_of(cell))


def _series(kind: Type, cells: Any) -> Any:
    """Return a column of a frame, in the dtypes of a local answer."""
    import pandas as pd

    missing = any(cell is None for cell in cells)
    if kind is Type.TEXT:
        text: Any = pd.api.types.pandas_dtype("str")
        return pd.array(list(cells), dtype=text)
    if kind.temporal:
        unit = "s" if kind is Type.DATE else "us"
        return np.array([np.datetime64("NaT") if cell is None else cell for cell in cells], dtype=f"datetime64[{unit}]")
    if kind is Type.REAL:
        return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)
    if not missing:
        return np.array(cells, dtype=np.bool_ if kind is Type.BOOLEAN else np.int64)
    return pd.array(list(cells), dtype="boolean" if kind is Type.BOOLEAN else "Int64")
