"""Export formats of answers: CSV, JSON and other texts, Arrow, Polars, Parquet; in full precision, with intervals.

After a column `n` follow the ends of its intervals, `n_low` and `n_high`, if known. NULL is an empty field of CSV and
null in JSON. JSON has no infinite numbers: an open end is null there, and inf in CSV. Empty text is quoted in CSV.
Dates and timestamps are ISO text, truth values true and false.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from dpsql.answer.render import Cells, names_of_ends
from dpsql.errors import InvalidArgument
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Ends = tuple[Sequence[Any], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Column:
    """A column to export: its cells as Python values, None for NULL."""

    name: str
    kind: Type
    cells: Sequence[Any]


def columns_of(
    names: Sequence[str], kinds: Sequence[Type], cells: Sequence[Sequence[Any]], ends: Mapping[str, Ends]
) -> list[Column]:
    """Return the columns of an answer, each followed by the ends of its intervals."""
    columns = []
    limit_names = names_of_ends(names, ends)
    for name, kind, values in zip(names, kinds, cells, strict=True):
        columns.append(Column(name, kind, values))
        for limit, values_of_limit in zip(limit_names.get(name, ()), ends.get(name, ()), strict=True):
            columns.append(Column(limit, kind if kind.temporal else Type.REAL, values_of_limit))
    return columns


def as_csv(columns: Sequence[Column], delimiter: str = ",") -> str:
    """Format as lines that end in 0x0A, names first."""
    rows = zip(*(each.cells for each in columns), strict=True)
    lines = [[_quoted(each.name, delimiter) for each in columns]]
    lines += [[_field(cell, delimiter) for cell in row] for row in rows]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def _field(cell: Any, delimiter: str) -> str:
    if cell is None:
        return ""
    plain = _plain(cell)
    return _quoted(str(plain).lower() if isinstance(plain, bool) else str(plain), delimiter)


def _quoted(text: str, delimiter: str) -> str:
    """Quote text that a reader could otherwise take for NULL or for several fields or lines, or strip of its
    spaces."""
    bare = text and text == text.strip() and not any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    return text if bare else '"' + text.replace('"', '""') + '"'


def as_json(columns: Sequence[Column], *, lines: bool = False) -> str:
    """Format as a JSON array of objects, one for each row, or as one object a line."""
    names = [each.name for each in columns]
    rows = (dict(zip(names, map(_in_json, row), strict=True)) for row in zip(*(c.cells for c in columns), strict=True))
    texts = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    return "".join(f"{text}\n" for text in texts) if lines else "[" + ",\n ".join(texts) + "]\n"


def _in_json(cell: Any) -> Any:
    plain = _plain(cell)
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _plain(cell: Any) -> Any:
    """Return a date or timestamp as ISO text."""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date) else cell


def as_markdown(cells: Cells) -> str:
    """Format as a GitHub Markdown table, with digits and intervals as printed."""

    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in texts) + " |"

    rule = "| " + " | ".join("---:" if right else ":---" for right in cells.numeric) + " |"
    return "\n".join([line(cells.heads), rule, *map(line, cells.rows)]) + "\n"


_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "…": r"\ldots{}", "<": r"\textless{}", ">": r"\textgreater{}"}
)


def as_latex(cells: Cells) -> str:
    """Format as a LaTeX tabular that needs no packages, with digits and intervals as printed."""

    def line(texts: Sequence[str]) -> str:
        return " & ".join(text.translate(_LATEX) for text in texts) + r" \\"

    columns = "".join("r" if right else "l" for right in cells.numeric)
    rows = [r"\hline", line(cells.heads), r"\hline", *map(line, cells.rows), r"\hline"]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *rows, r"\end{tabular}"]) + "\n"


def as_arrow(columns: Sequence[Column], about: Mapping[str, str]) -> Any:
    """Return a pyarrow Table with `about` as metadata. Raises InvalidArgument if pyarrow is not installed."""
    pyarrow = library("pyarrow", "an Arrow table")
    arrays = [_arrow_array(pyarrow, each) for each in columns]
    fields = [(each.name, array.type) for each, array in zip(columns, arrays, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=dict(about)))


def as_interchange(columns: Sequence[Column]) -> Any:
    """Return a pyarrow Table whose types exist in the DataFrame interchange protocol: no dates, no integers beyond 64
    bits. Raises InvalidArgument if pyarrow is not installed."""
    pyarrow = library("pyarrow", "an Arrow table")
    table = as_arrow(columns, {})
    wide = dict.fromkeys((pyarrow.decimal128(38, 0), pyarrow.decimal256(76, 0)), pyarrow.float64())
    kinds = {pyarrow.date32(): pyarrow.timestamp("s"), **wide}
    return table.cast(pyarrow.schema([(each.name, kinds.get(each.type, each.type)) for each in table.schema]))


def _arrow_array(pyarrow: Any, column: Column) -> Any:
    """Return the cells as an array; integers beyond 64 bits become decimals."""
    types = {
        Type.BOOLEAN: pyarrow.bool_(),
        Type.INTEGER: pyarrow.int64(),
        Type.REAL: pyarrow.float64(),
        Type.DATE: pyarrow.date32(),
        Type.TIMESTAMP: pyarrow.timestamp("us"),
    }
    cells: list[Any] = list(column.cells)
    if column.kind is Type.REAL:
        cells = [None if cell is None else float(cell) for cell in cells]
    kind = types.get(column.kind, pyarrow.string())
    if column.kind is Type.INTEGER and any(cell is not None and not -(2**63) <= cell < 2**63 for cell in cells):
        few = all(cell is None or abs(cell) < 10**38 for cell in cells)  # other libraries read no more digits
        kind = pyarrow.decimal128(38, 0) if few else pyarrow.decimal256(76, 0)
    if column.kind is Type.TEXT:  # frames may hold lone surrogates, which UTF-8 cannot encode
        cells = [cell if cell is None else cell.encode(errors="backslashreplace").decode() for cell in cells]
    return pyarrow.array(cells, kind)


def library(name: str, what: str) -> Any:
    """Import an optional dependency. Raises InvalidArgument if it is not installed."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InvalidArgument(f"{what} needs {package}.", hint=f"pip install {package}") from None
