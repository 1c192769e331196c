"""Output modes of answers: for people, and for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence

from dpsql.answer import export_formats as forms
from dpsql.answer.base import BaseExplanation, BaseResult
from dpsql.answer.html import html_table
from dpsql.answer.render import Cells, text_table
from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.schema.columns import Type
from dpsql.shell.output.listing import Listing

Shown = BaseResult | BaseExplanation | Listing

BOX, CSV, PARQUET = "box", "csv", "parquet"
MODES = (BOX, CSV, "json", "jsonl", "line", "markdown", "tsv", "html", PARQUET)
"""`box` and `line` are for people: digits follow the noise. The others have full precision, each value with the ends of
its interval (`n`, `n_low`, `n_high`); markdown and html are tables as printed."""
FOR_PEOPLE = (BOX, "line")
_APART = (CSV, "tsv", "line", "markdown")
"""Modes that separate answers by an empty line."""


def checked_mode(word: str) -> str:
    """Return the name of a mode. Raises InvalidArgument, for Parquet also if pyarrow is not installed."""
    if word not in MODES:
        raise InvalidArgument(f'no mode "{word}".{did_you_mean(word, MODES)}', hint=f"Modes: {', '.join(MODES)}.")
    if word == PARQUET:
        forms.library("pyarrow.parquet", "a Parquet file")
    return word


def written(shown: Shown, mode: str, *, most_rows: int | None = None, first: bool = True) -> bytes:
    """Return the answer in a mode, as bytes that end a line; all rows, or in `box` and `line` the first. After another
    answer, an empty line precedes it if the mode requires one."""
    if mode == PARQUET:
        return _parquet(shown)
    text = as_text(shown, mode, most_rows).removesuffix("\n")
    between = "\n" if mode in _APART and not first else ""
    return f"{between}{text}\n".encode(errors="backslashreplace")


def as_text(shown: Shown, mode: str, most_rows: int | None = None) -> str:
    """Return the answer in a text mode."""
    if isinstance(shown, BaseResult):
        return _FORMS[mode](shown, most_rows)
    if isinstance(shown, BaseExplanation):
        return _explained(shown, mode)
    return _listed(shown, mode)


def _parquet(shown: Shown) -> bytes:
    if isinstance(shown, BaseExplanation):
        raise InvalidArgument("an explanation is no table: it cannot be a Parquet file.", hint="Mode json has it.")
    stream = io.BytesIO()
    if isinstance(shown, BaseResult):
        shown.to_parquet(stream)
    else:
        forms.library("pyarrow.parquet", "a Parquet file").write_table(forms.as_arrow(_columns(shown), {}), stream)
    return stream.getvalue()


_MORE = "({} more rows; .maxrows 0 shows all)"


def as_lines(cells: Cells) -> str:
    """Format a line for each value, `name = value ±width`, with an empty line between rows."""
    names = [head for place, head in enumerate(cells.heads) if not _encloses(cells, place)]
    width = max(map(len, names), default=0)
    blocks = []
    for row in cells.rows:
        lines: list[str] = []
        for place, (head, text) in enumerate(zip(cells.heads, row, strict=True)):
            if _encloses(cells, place):
                lines[-1] += f"  {text}"
            else:
                lines.append(f"{head:>{width}} = {text}")
        blocks.append("\n".join(lines))
    more = [_MORE.format(cells.left_out)] if cells.left_out else []
    return "\n\n".join(blocks + more)


def _encloses(cells: Cells, place: int) -> bool:
    """Return whether a column holds the intervals of the one before."""
    return place in cells.limits


_FORMS: Mapping[str, Callable[[BaseResult, int | None], str]] = {
    BOX: lambda result, most: text_table(result._text_cells(most_rows=most), _MORE),
    "line": lambda result, most: as_lines(result._text_cells(most_rows=most)),
    CSV: lambda result, _: result.to_csv(),
    "tsv": lambda result, _: result.to_csv(delimiter="\t"),
    "json": lambda result, _: result.to_json(),
    "jsonl": lambda result, _: result.to_json(lines=True),
    "markdown": lambda result, _: result.to_markdown(),
    "html": lambda result, _: result.to_html(),
}


def _explained(explanation: BaseExplanation, mode: str) -> str:
    if mode in ("json", "jsonl"):
        return json.dumps(explanation.to_dict(), indent=1 if mode == "json" else None, ensure_ascii=False, default=str)
    return explanation._repr_html_() if mode == "html" else str(explanation)


def _columns(listing: Listing) -> list[forms.Column]:
    cells: Sequence[Sequence[str]] = list(zip(*listing.rows, strict=True)) or [()] * len(listing.heads)
    return [forms.Column(head, Type.TEXT, column) for head, column in zip(listing.heads, cells, strict=True)]


def _listed(listing: Listing, mode: str) -> str:
    cells = listing.cells
    return {
        BOX: lambda: text_table(cells),
        "line": lambda: as_lines(cells),
        CSV: lambda: forms.as_csv(_columns(listing)),
        "tsv": lambda: forms.as_csv(_columns(listing), "\t"),
        "json": lambda: forms.as_json(_columns(listing)),
        "jsonl": lambda: forms.as_json(_columns(listing), lines=True),
        "markdown": lambda: forms.as_markdown(cells),
        "html": lambda: html_table(cells, ()),
    }[mode]()
