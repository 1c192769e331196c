"""The answer of a query: noisy rows, their noise intervals, their cost. Holds released values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsql.answer.base import BaseResult
from dpsql.answer.bounds_warnings import bounds_warnings
from dpsql.answer.empty_groups import empty_groups_notes
from dpsql.answer.explanation_builder import unit_of
from dpsql.answer.explanation_text import far_off_in_words, hidden_groups
from dpsql.answer.html import html_table
from dpsql.answer.render import Cells, names_of_ends, text_table
from dpsql.answer.selection_error import asked_of, far_off, is_meaningless, selection_units
from dpsql.answer.uncounted import uncounted_rows
from dpsql.answer.unknown import ranges_of_averages, unknown_averages, unknown_line, unknown_medians
from dpsql.answer.values import frame_column, frame_limits, python_limits, python_values
from dpsql.answer.warnings import too_large, unread_choices, warnings_of, without_interval
from dpsql.core.cost import Cost
from dpsql.errors import InvalidArgument, as_written, did_you_mean
from dpsql.release.intervals.intervals import Bounds, interval
from dpsql.release.output.select import Answer, finish
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

if TYPE_CHECKING:
    from dpsql.answer.explain import Explanation
    from dpsql.answer.export_formats import Column
    from dpsql.answer.plot import Panel

_MOST_ROWS_SHOWN = 60

MADE_UP = "made up"
"""Cell text of the column `_heading`."""


@dataclass(frozen=True, repr=False, eq=False)
class Result(BaseResult):
    """A private answer. Immutable; prints as a table with 95 % noise intervals and a line on its cost.

    `.df` is a DataFrame of the noisy values, `.intervals()` are the noise intervals of the exact ones, `.loss` is the
    (epsilon, delta) charged, `.explanation` describes the steps, `.warnings` are the caveats.
    """

    _answer: Answer
    _release: Release
    _released: ReleasedValues
    footer: str
    warnings: tuple[str, ...]
    replayed: bool = False
    """The answer is a cached one: the same numbers as before, at no further cost."""
    answers: tuple[Result, ...] = ()
    """The answers of the releases of a multi-step query."""
    _heading: str = ""
    """Name of an extra first column in every form but `.df`, iteration and `.item()`: the rows are synthetic."""

    @property
    def loss(self) -> Cost:
        """The cost of the answer when it was drawn, as exact fractions `.epsilon` (None if it was paid in rho and has
        none), `.delta` and `.rho`."""
        return self._release.cost

    @property
    def _cost_text(self) -> str:
        """The cost in words."""
        return f"{self._heading}, {self._release.price}" if self._heading else self._release.price

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The clip bounds that the query chose itself, by column name, qualified by the table (`orders.total`) if two
        tables have a column of that name; empty if bounds are declared."""
        names = [each.column.name for each in self._release.bounds]
        ranges = {}
        for name, each in zip(names, self._release.bounds, strict=True):
            shown = each.column.shown if names.count(name) > 1 else ""
            ranges[f"{shown}.{name}" if shown else name] = (each.held.lower, each.held.upper)
        return ranges

    @property
    def explanation(self) -> Explanation:
        """The steps of the query and their costs, as `explain` returns before the run."""
        from dpsql.answer.explain import Explanation  # most answers are not explained

        return Explanation(self._release)

    @property
    def df(self) -> pd.DataFrame:
        """The noisy values, a column for each output."""
        return pd.DataFrame(dict(self._columns()))

    def _columns(self) -> Iterator[tuple[str, Any]]:
        for name, kind, vector in zip(self._answer.names, self._answer.types, self._answer.vectors, strict=True):
            yield name, frame_column(kind, vector)

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """Return the noisy values; with `intervals`, columns name_low and name_high after each aggregate."""
        return pd.DataFrame(self._with_limits(self._bounds(level) if intervals else {}))

    def _with_limits(self, bounds: Mapping[str, Bounds]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        ends = names_of_ends(self._answer.names, bounds)
        for (name, column), kind in zip(self._columns(), self._answer.types, strict=True):
            columns[name] = column
            if name in bounds:
                columns |= dict(zip(ends[name], frame_limits(kind, bounds[name]), strict=True))
        return columns

    def __getitem__(self, name: str) -> pd.Series:
        """The noisy values of one column. Raises InvalidArgument for an unknown name."""
        if name not in self._answer.names:
            near = did_you_mean(name, self._answer.names) if isinstance(name, str) else ""
            raise InvalidArgument(f"the answer has no column {as_written(name)}.{near}")
        return self.df[name]

    def _export_columns(self, level: float | None) -> list[Column]:
        """Return the columns to export, with the ends of their intervals at a level, or without intervals for None."""
        columns = self._value_columns(level)
        if not self._heading:
            return columns
        return [type(columns[0])(self._heading, Type.TEXT, [MADE_UP] * len(self)), *columns]

    def _value_columns(self, level: float | None) -> list[Column]:
        from dpsql.answer.export_formats import columns_of  # most answers are not exported

        answer, bounds = self._answer, {} if level is None else self._bounds(level)
        cells = [python_values(*each) for each in zip(answer.types, answer.vectors, strict=True)]
        kinds = dict(zip(answer.names, answer.types, strict=True))
        ends = {name: python_limits(kinds[name], each) for name, each in bounds.items()}
        return columns_of(answer.names, answer.types, cells, ends)

    def intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return the intervals of the exact answers: the keys, and for each aggregate `age` columns age_low, age_high.

        Parameters
        ----------
        level : float
            Probability with which each cell is covered, given that its row is shown. A group just above its threshold
            may therefore have a single row.
        simultaneous : bool
            Whether all cells of a column are covered at once.
        """
        bounds = self._bounds(level, simultaneous=simultaneous)
        columns: dict[str, Any] = {}
        ends = names_of_ends(self._answer.names, bounds)
        for (name, column), kind in zip(self._columns(), self._answer.types, strict=True):
            if name in bounds:
                columns |= dict(zip(ends[name], frame_limits(kind, bounds[name]), strict=True))
            else:
                columns[name] = column
        return pd.DataFrame(columns)

    def _plot_parts(self, level: float) -> tuple[list[Column], list[Panel]]:
        """Return the key columns, and the panels of noisy numbers."""
        from dpsql.answer.plot import parts  # most answers are not plotted

        ends = {name: (low.tolist(), high.tolist()) for name, (low, high) in self._bounds(level).items()}
        return parts(self._value_columns(None), self._answer.noisy, ends)

    def _text_cells(self, level: float = 0.95, *, most_rows: int | None = None) -> Cells:
        """Return all rows, or the first ones, formatted as for printing."""
        bounds, simulated = self._bounds(level, first=most_rows), self._simulated(level)
        marks: dict[str, Any] = {"simulated": simulated, "units": self._units, "unknown": self._unknown(bounds)}
        cells = Cells.of(self._printed, bounds, level, most_rows=most_rows, **marks)
        return cells.headed(self._heading, MADE_UP) if self._heading else cells

    def _unknown(self, bounds: Mapping[str, Bounds]) -> dict[str, Any]:
        """Return the rows, by output, of averages and medians that the noise leaves open."""
        found = unknown_averages(self._ranges, bounds)
        return found | unknown_medians(self._release, self._released, self._answer) if self._release.draws else found

    @property
    def _ranges(self) -> dict[str, tuple[float, float]]:
        """The declared ranges of the outputs that are averages."""
        return ranges_of_averages(self._release, self._answer)

    @property
    def _printed(self) -> Answer:
        """The answer as printed: noisy columns without intervals have few digits."""
        return self._answer

    def _simulated(self, _level: float) -> frozenset[str]:
        """Return the columns whose intervals at a level are simulated: none for a single release."""
        return frozenset()

    @cached_property
    def _units(self) -> dict[str, float]:
        """By column of selected values, the smallest difference that is meaningful despite the rank error."""
        return selection_units(self._release, self._released, self._answer) if self._release.draws else {}

    @cached_property
    def _found(self) -> dict[object, dict[str, Bounds]]:
        return {}

    def _bounds(self, level: float, *, simultaneous: bool = False, first: int | None = None) -> dict[str, Bounds]:
        """Return the intervals by output, of all rows or at least of the first ones; cached."""
        wanted, of_all = ((checked_level(level), simultaneous, rows) for rows in (first, None))
        if of_all in self._found:
            return self._found[of_all]
        if wanted not in self._found:
            self._found[wanted] = self._sought(level, simultaneous=simultaneous, first=first)
        return self._found[wanted]

    def _sought(self, level: float, *, simultaneous: bool, first: int | None) -> dict[str, Bounds]:
        if all(expr is None for expr in self._answer.exprs):  # rows of a later stage are not released groups
            return {}
        given, released, groups = self._answer.given, self._released, self._answer.groups[:first]
        if simultaneous:  # intervals for all groups hold at once, and therefore for any selection of groups
            level, given = self._release.for_all(level, released.groups), replace(given, ranked=())
        if len(self._release.sections) == 1 and not self._release.told.levels:  # levels are rounded together
            released, groups = released.at(groups), np.arange(len(groups))
        ends = {}
        for name, kind, expr in zip(self._answer.names, self._answer.types, self._answer.exprs, strict=True):
            if expr is None or not kind.ordered_number:
                continue
            bounds = interval(self._release, released, expr, level, given)
            if bounds is not None:
                ends[name] = (bounds[0][groups], bounds[1][groups])
        return ends

    def item(self) -> Any:
        """Return the value of a one-row, one-column answer, of the type that the query asks for; None for NULL."""
        if len(self) != 1 or len(self._answer.names) != 1:
            raise InvalidArgument(
                f"item() is for an answer of one row and one column; this has {len(self)} rows and "
                f"{len(self._answer.names)} columns."
            )
        return next(iter(self))[0]

    def __len__(self) -> int:
        return len(self._answer)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        columns = [python_values(*each) for each in zip(self._answer.types, self._answer.vectors, strict=True)]
        return iter(zip(*columns, strict=True))

    def _table_text(self, *, most_rows: int | None = None, level: float = 0.95) -> str:
        """Return the table with its intervals."""
        return text_table(self._text_cells(level, most_rows=most_rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines below the table: hidden groups, errors of selected values, warnings, and the cost."""
        groups = (f"{len(self)} groups; {self._hidden()}",) if self._release.hides else ()
        left_out = self._release.once(uncounted_rows)
        return (
            *groups,
            *((left_out,) if left_out else ()),
            *self._chosen_bounds,
            *self._drawn(),
            *self._silent(),
            *((line,) if (line := self._unknown_line) else ()),
            *(f"note: {each}" for each in self.warnings),
            self.footer,
        )

    @cached_property
    def _chosen_bounds(self) -> tuple[str, ...]:
        if not self._release.bounds:
            return ()
        from dpsql.answer.chosen_bounds import bounds_lines  # most bounds are declared

        return bounds_lines(self._release, self._released)

    @property
    def _unknown_line(self) -> str:
        return unknown_line(self._release, self._answer, self._unknown(self._bounds(0.95)))

    def _hidden(self) -> str:
        """Say how likely small groups are shown: at about the threshold, and at twice that size."""
        selection = self._release.selection
        near = selection.half
        chances = [self._release.chance_shown(size) for size in (near, 2 * near)]
        return hidden_groups(near, chances, unit_of(self._release), selection.word)

    def _drawn(self) -> Iterator[str]:
        """Yield the rank errors of MEDIAN, MIN, MAX and the like, which have no noise interval."""
        for draw in self._release.draws:
            off = far_off(self._release, draw, self._released)
            if off is not None and not is_meaningless(self._release, draw):
                names = ", ".join(str(each) for each in asked_of(self._release, draw))
                yield f"{names}: no interval; {far_off_in_words(off)}"

    def _silent(self) -> Iterator[str]:
        """Yield the line on values computed from several noisy ones, which have no interval either."""
        names = without_interval(self._release, self._answer)
        if names:
            yield f"{', '.join(names)}: no interval"

    def to_text(self, *, most_rows: int | None = None, level: float = 0.95) -> str:
        """Return the table with its intervals and the privacy line, as printed."""
        return "\n".join([self._table_text(most_rows=most_rows, level=level), *self.notes])

    def __repr__(self) -> str:
        return self.to_text(most_rows=_MOST_ROWS_SHOWN)

    def _repr_html_(self) -> str:
        return html_table(self._text_cells(0.95, most_rows=_MOST_ROWS_SHOWN), self.notes)


def checked_level(level: float) -> float:
    """Return a valid level of intervals. Raises InvalidArgument."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidArgument(f"level must lie between 0 and 1, got {as_written(level)}.")
    return level


def result_of(
    settled: Release, released: ReleasedValues, footer: str, *, notes: tuple[str, ...] = (), replayed: bool = False
) -> Result:
    """Build the result of a query from released values, with its notes; the release has its bounds."""
    rows = finish(settled, released)
    if settled.query.stages:
        from dpsql.release.output.stages import run_stages  # most queries have no SELECT over an answer

        rows = run_stages(settled, rows)
    chosen = unread_choices(settled, released, rows)
    empty = empty_groups_notes(settled, released, rows)
    bounds = () if settled.query.stages else bounds_warnings(settled, released, rows.groups)
    warnings = (*warnings_of(settled, released, rows.groups), *bounds, *empty, *chosen, *too_large(rows), *notes)
    return Result(rows, settled, released, footer, warnings, replayed)


def rendered(result: Result) -> tuple[dict[str, Any], str, str]:
    """Return an answer in all its forms, computing intervals once: the columns of a frame, text and HTML."""
    bounds = result._bounds(0.95)
    cells = result._text_cells(0.95, most_rows=_MOST_ROWS_SHOWN)
    return result._with_limits(bounds), text_table(cells), html_table(cells, result.notes)
