"""Export of answers: the methods of `Result` that write the formats of `answer.export_formats`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from dpsql.answer.html import html_table
from dpsql.answer.render import Cells
from dpsql.schema.argument_names import checked_methods

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsql.answer.export_formats import Column
    from dpsql.answer.plot import Panel


@checked_methods
class BaseResult:
    """Base of `Result`: export and plotting. Exports contain the intervals at `level`, in columns n_low and n_high
    after each column n that has intervals. A file at `path` is overwritten, in UTF-8; texts are also returned."""

    def __init_subclass__(cls) -> None:
        checked_methods(cls)

    def _export_columns(self, level: float | None) -> list[Column]:
        """Return the columns to export, with the ends of their intervals at a level, or without intervals for None."""
        raise NotImplementedError

    def _text_cells(self, level: float = 0.95, *, most_rows: int | None = None) -> Cells:
        """Return all rows, or the first ones, formatted as for printing."""
        raise NotImplementedError

    @property
    def _cost_text(self) -> str:
        """The privacy cost in words."""
        raise NotImplementedError

    _heading: str
    """Name of an extra first column in every export; empty for an ordinary answer."""

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """The noisy values as a pandas DataFrame."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines below the table."""
        raise NotImplementedError

    def _plot_parts(self, level: float) -> tuple[list[Column], list[Panel]]:
        """Return the key columns, and the panels of noisy numbers."""
        raise NotImplementedError

    def plot(
        self,
        *,
        column: str | Sequence[str] | None = None,
        kind: Literal["auto", "line", "bar", "dot"] = "auto",
        ax: Axes | None = None,
        title: str = "",
        level: float = 0.95,
    ) -> Figure:
        """Plot the answer as a matplotlib Figure, one panel for each aggregate or each `column`, with intervals.

        Parameters
        ----------
        column : str or sequence of str, optional
            Columns to plot.
        kind : str
            "line" over a key of dates, timestamps or years, with a line for each category of a second key; "bar" for
            keys that are numbers or bands like '18-29'; "dot" for the first 30 groups of other keys; "auto" chooses.
        ax : Axes, optional
            The Axes to draw a single column into.
        title : str
        level : float
            Level of the intervals.

        Raises
        ------
        InvalidArgument
            If matplotlib is not installed, or the answer has no column of numbers.
        """
        from dpsql.answer.plot import caption_of, chosen_panels, drawing, figure_of

        keys, panels = self._plot_parts(level)
        panels = chosen_panels(panels, [column] if isinstance(column, str) else column)
        heading = " · ".join(filter(None, [self._heading, title]))
        figure: Figure = figure_of(drawing(keys, panels, caption_of(panels, level, self._cost_text), heading, kind), ax)
        return figure

    def to_csv(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        intervals: bool = True,
        level: float = 0.95,
        delimiter: str = ",",
    ) -> str:
        """Export as CSV in full precision: NULL is an empty field, empty text is quoted, an open end is inf."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_csv(self._export_columns(level if intervals else None), delimiter), path)

    def to_json(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        intervals: bool = True,
        level: float = 0.95,
        lines: bool = False,
    ) -> str:
        """Export as a JSON array of objects in full precision, or with `lines` as one object a line. NULL and open
        ends are null."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_json(self._export_columns(level if intervals else None), lines=lines), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """Export as a Markdown table, with digits and intervals as printed."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_markdown(self._text_cells(level)), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """Export as a LaTeX tabular that needs no package, with digits and intervals as printed."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_latex(self._text_cells(level)), path)

    def to_excel(
        self, path: str | os.PathLike[str] | IO[bytes], *, intervals: bool = True, level: float = 0.95
    ) -> None:
        """Export as a workbook (.xlsx) of two sheets: the values in full precision, and the lines below the answer."""
        from dpsql.answer.spreadsheet import as_workbook

        content = as_workbook(self._export_columns(level if intervals else None), self.notes)
        if isinstance(path, str | os.PathLike):
            Path(path).write_bytes(content)
        else:
            path.write(content)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """Export the table and the lines below it as HTML, as a notebook shows them."""

        return _saved(html_table(self._text_cells(level), self.notes), path)

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95) -> pa.Table:
        """Export as a pyarrow Table, with the cost in its metadata under "dpsql". Raises InvalidArgument if pyarrow is
        not installed."""
        from dpsql.answer import export_formats as forms

        return forms.as_arrow(self._export_columns(level if intervals else None), {"dpsql": "\n".join(self.notes)})

    def to_polars(self, *, intervals: bool = False, level: float = 0.95) -> pl.DataFrame:
        """Export as a Polars DataFrame. Raises InvalidArgument if polars or pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        polars = forms.library("polars", "a Polars frame")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow(intervals=intervals, level=level))
        return frame

    def to_parquet(
        self, path: str | os.PathLike[str] | IO[bytes], *, intervals: bool = True, level: float = 0.95
    ) -> None:
        """Export the table of `to_arrow` as a Parquet file. Raises InvalidArgument if pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        forms.library("pyarrow.parquet", "a Parquet file").write_table(
            self.to_arrow(intervals=intervals, level=level), path
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the noisy values through Arrow's stream interface (PyCapsule)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Export the noisy values through the DataFrame interchange protocol, which seaborn reads. Dates become
        timestamps. Raises InvalidArgument if pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        return forms.as_interchange(self._export_columns(None)).__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> Any:
        """Export the noisy values to libraries that read frames with narwhals, such as altair and plotly."""
        from dpsql.answer import export_formats as forms

        narwhals = forms.library("narwhals", "a frame of narwhals")  # the caller has it installed
        return narwhals.from_native(self.to_pandas(), eager_only=True)._compliant_frame


class BaseExplanation:
    """Explanation of a query and its cost, local or over a connection; prints as a few lines."""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        raise NotImplementedError


def _saved(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="")
    return text
