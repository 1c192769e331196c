"""An answer in forms that travel: CSV and other texts, Arrow, Polars, Parquet. Values in full, each with its interval.

Behind a column `n` stand the ends of its intervals, `n_low` and `n_high`, where these are known. NULL is an empty field
of CSV and null in JSON, which has no infinite numbers either: an end that is open is null there, and inf in CSV. Text
that is empty stands in quotes in CSV. Dates and timestamps are ISO
text, truth values true and false.
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
    """A column that travels: its cells as Python's own values, None for NULL."""

    name: str
    kind: Type
    cells: Sequence[Any]


def columns_of(
    names: Sequence[str], kinds: Sequence[Type], cells: Sequence[Sequence[Any]], ends: Mapping[str, Ends]
) -> list[Column]:
    """The columns of an answer, the ends of intervals behind what they enclose."""
    columns = []
    limit_names = names_of_ends(names, ends)
    for name, kind, values in zip(names, kinds, cells, strict=True):
        columns.append(Column(name, kind, values))
        for limit, values_of_limit in zip(limit_names.get(name, ()), ends.get(name, ()), strict=True):
            columns.append(Column(limit, kind if kind.temporal else Type.REAL, values_of_limit))
    return columns


def as_csv(columns: Sequence[Column], delimiter: str = ",") -> str:
    """Lines that end in 0x0A, names first."""
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
    """In quotes where a reader could take it for something else: NULL, several fields or lines, or without its
    spaces."""
    bare = text and text == text.strip() and not any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    return text if bare else '"' + text.replace('"', '""') + '"'


def as_json(columns: Sequence[Column], *, lines: bool = False) -> str:
    """A JSON array of objects, a row each; or one object a line."""
    names = [each.name for each in columns]
    rows = (dict(zip(names, map(_in_json, row), strict=True)) for row in zip(*(c.cells for c in columns), strict=True))
    texts = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    return "".join(f"{text}\n" for text in texts) if lines else "[" + ",\n ".join(texts) + "]\n"


def _in_json(cell: Any) -> Any:
    plain = _plain(cell)
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _plain(cell: Any) -> Any:
    """A date or timestamp as ISO text."""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date) else cell


def as_markdown(cells: Cells) -> str:
    """A table of GitHub's Markdown, digits and intervals as they print."""

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
    """A tabular of LaTeX without packages, digits and intervals as they print."""

    def line(texts: Sequence[str]) -> str:
        return " & ".join(text.translate(_LATEX) for text in texts) + r" \\"

    columns = "".join("r" if right else "l" for right in cells.numeric)
    rows = [r"\hline", line(cells.heads), r"\hline", *map(line, cells.rows), r"\hline"]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *rows, r"\end{tabular}"]) + "\n"


def as_arrow(columns: Sequence[Column], about: Mapping[str, str]) -> Any:
    """A pyarrow Table; `about` is its metadata. Raises InvalidArgument where pyarrow is not there."""
    pyarrow = library("pyarrow", "an Arrow table")
    arrays = [_arrow_array(pyarrow, each) for each in columns]
    fields = [(each.name, array.type) for each, array in zip(columns, arrays, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=dict(about)))


def as_interchange(columns: Sequence[Column]) -> Any:
    """A pyarrow Table of types that the DataFrame interchange protocol has: no dates, no numbers beyond 64 bits. Raises
    InvalidArgument where pyarrow is not there."""
    pyarrow = library("pyarrow", "an Arrow table")
    table = as_arrow(columns, {})
    wide = dict.fromkeys((pyarrow.decimal128(38, 0), pyarrow.decimal256(76, 0)), pyarrow.float64())
    kinds = {pyarrow.date32(): pyarrow.timestamp("s"), **wide}
    return table.cast(pyarrow.schema([(each.name, kinds.get(each.type, each.type)) for each in table.schema]))


def _arrow_array(pyarrow: Any, column: Column) -> Any:
    """Whole numbers beyond 64 bits are decimals."""
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
        few = all(cell is None or abs(cell) < 10**38 for cell in cells)  # more digits than other libraries read
        kind = pyarrow.decimal128(38, 0) if few else pyarrow.decimal256(76, 0)
    if column.kind is Type.TEXT:  # halves of characters, which a frame may hold, have no bytes in UTF-8
        cells = [cell if cell is None else cell.encode(errors="backslashreplace").decode() for cell in cells]
    return pyarrow.array(cells, kind)


def library(name: str, what: str) -> Any:
    """A library that is an extra. Raises InvalidArgument where it is not there."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InvalidArgument(f"{what} needs {package}.", hint=f"pip install {package}") from None
