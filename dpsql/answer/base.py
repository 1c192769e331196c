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
    """An answer in forms that travel. Whatever holds intervals holds those at `level`, in columns n_low and n_high
    behind each n that has some; a `path` is written to in UTF-8, over what is there. Texts are returned too."""

    def __init_subclass__(cls) -> None:
        checked_methods(cls)

    def _export_columns(self, level: float | None) -> list[Column]:
        """The columns as they travel, with the ends of intervals at a level, or without."""
        raise NotImplementedError

    def _text_cells(self, level: float = 0.95, *, most_rows: int | None = None) -> Cells:
        """All rows as they print, or the first."""
        raise NotImplementedError

    @property
    def _cost_text(self) -> str:
        """What it cost, in words."""
        raise NotImplementedError

    _heading: str
    """What stands at the head of every form; nothing for an answer."""

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """The noisy values as a frame of pandas."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines below the table."""
        raise NotImplementedError

    def _plot_parts(self, level: float) -> tuple[list[Column], list[Panel]]:
        """The columns that say which group a row is, and those of numbers with noise."""
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
        """A matplotlib Figure of the answer, a panel for each aggregate, or for each `column`, with intervals.

        kind: "line" over a key of dates, timestamps or years, a line for each category of a second key; "bar" for keys
        that are numbers or bands like '18-29'; "dot" for the first 30 groups of other keys. "auto" chooses. `ax`: the
        Axes to draw one column into. Raises InvalidArgument where matplotlib is not installed, or there is no column of
        numbers."""
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
        """Values in full as CSV: NULL is an empty field, empty text stands in quotes, an open end is inf."""
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
        """Values in full as a JSON array of objects, or with `lines` one object a line: NULL and an open end are
        null."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_json(self._export_columns(level if intervals else None), lines=lines), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """A table of Markdown, with digits and intervals as they print."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_markdown(self._text_cells(level)), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """A tabular of LaTeX that needs no package, with digits and intervals as they print."""
        from dpsql.answer import export_formats as forms

        return _saved(forms.as_latex(self._text_cells(level)), path)

    def to_excel(
        self, path: str | os.PathLike[str] | IO[bytes], *, intervals: bool = True, level: float = 0.95
    ) -> None:
        """A workbook (.xlsx) of two sheets: the values in full, and the lines below the answer."""
        from dpsql.answer.spreadsheet import as_workbook

        content = as_workbook(self._export_columns(level if intervals else None), self.notes)
        if isinstance(path, str | os.PathLike):
            Path(path).write_bytes(content)
        else:
            path.write(content)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, level: float = 0.95) -> str:
        """The table and the lines below it, as a notebook shows them."""

        return _saved(html_table(self._text_cells(level), self.notes), path)

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95) -> pa.Table:
        """A pyarrow Table; what was spent is in its metadata, under "dpsql". Raises InvalidArgument where pyarrow is
        not installed."""
        from dpsql.answer import export_formats as forms

        return forms.as_arrow(self._export_columns(level if intervals else None), {"dpsql": "\n".join(self.notes)})

    def to_polars(self, *, intervals: bool = False, level: float = 0.95) -> pl.DataFrame:
        """A Polars DataFrame. Raises InvalidArgument where polars or pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        polars = forms.library("polars", "a Polars frame")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow(intervals=intervals, level=level))
        return frame

    def to_parquet(
        self, path: str | os.PathLike[str] | IO[bytes], *, intervals: bool = True, level: float = 0.95
    ) -> None:
        """A Parquet file of what `to_arrow` gives. Raises InvalidArgument where pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        forms.library("pyarrow.parquet", "a Parquet file").write_table(
            self.to_arrow(intervals=intervals, level=level), path
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The noisy values for whatever reads Arrow's stream interface (PyCapsule)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """The noisy values for whatever reads the DataFrame interchange protocol, as seaborn does. Dates are
        timestamps. Raises InvalidArgument where pyarrow is not installed."""
        from dpsql.answer import export_formats as forms

        return forms.as_interchange(self._export_columns(None)).__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> Any:
        """The noisy values for libraries that read frames by narwhals, as altair and plotly do."""
        from dpsql.answer import export_formats as forms

        narwhals = forms.library("narwhals", "a frame of narwhals")  # which whoever asks for it has
        return narwhals.from_native(self.to_pandas(), eager_only=True)._compliant_frame


class BaseExplanation:
    """What a query would do and cost, here or over a connection: prints as a few lines."""

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        raise NotImplementedError


def _saved(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="")
    return text
