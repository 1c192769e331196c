"""HTML tables of noisy values for notebooks: escaped, without script, readable on light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpsql.answer.render import Cells, Span

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""Same as `html.escape`, whose module also loads the names of 2,000 characters."""
_MARK = "#3a8ac4"
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_QUIET = "opacity:0.7"
_NOTE = "opacity:0.75;font-size:0.85em;line-height:1.5"
WIDTH = 96
_DOT = 6


def html_text(text: str) -> str:
    """Return preformatted lines."""
    style = "white-space:pre;overflow-x:auto;line-height:1.4;margin:0;font:0.9em ui-monospace,Menlo,Consolas,monospace"
    return f'<pre style="{style}">{text.translate(_ESCAPED)}</pre>'


def html_table(cells: Cells, notes: Sequence[str]) -> str:
    """Return a table with a bar for each interval, placed among the intervals of its column, and lines below."""
    bars = {span.place: list(_bars(span)) for span in cells.spans if len(cells.rows) > 1}
    head = _row("th", cells.heads, cells, dict.fromkeys(bars, ""))
    body = "".join(
        _row("td", texts, cells, {place: column[row] for place, column in bars.items()})
        for row, texts in enumerate(cells.rows)
    )
    more = [f"{cells.left_out} more rows in .df"] if cells.left_out else []
    below = "".join(f'<div style="{_NOTE}">{note.translate(_ESCAPED)}</div>' for note in [*more, *notes])
    return f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>{below}'


def _row(tag: str, texts: Sequence[str], cells: Cells, bars: dict[int, str]) -> str:
    parts = []
    for place, (text, right) in enumerate(zip(texts, cells.numeric, strict=True)):
        style = f"text-align:{'right' if right else 'left'}{f';{_QUIET}' if place in cells.limits else ''}"
        parts.append(f'<{tag} style="{style}">{text.translate(_ESCAPED)}</{tag}>')
        if place in bars:
            parts.append(f"<{tag}>{bars[place]}</{tag}>")
    return f"<tr>{''.join(parts)}</tr>"


def _bars(span: Span) -> Iterator[str]:
    """Yield a line from end to end of each interval with a dot for the value; nothing for NULL."""
    for marks in marks_of(span):
        if marks is None:
            yield ""
            continue
        start, end, at = marks
        line = f"left:{start}px;width:{max(1, end - start)}px;top:6px;height:2px;opacity:0.5"
        dot = f"left:{at - _DOT // 2}px;top:4px;width:{_DOT}px;height:{_DOT}px;border-radius:50%"
        drawn = "".join(f'<div style="position:absolute;background:{_MARK};{each}"></div>' for each in (line, dot))
        yield f'<div style="position:relative;width:{WIDTH}px;height:14px;margin-right:8px">{drawn}</div>'


def marks_of(span: Span) -> Iterator[tuple[int, int, int] | None]:
    """Yield the positions of the ends of each interval and of its value, in pixels from the left of WIDTH; None if
    there is nothing to draw."""
    finite = [each for each in (*span.low, *span.high, *span.values) if each is not None and math.isfinite(each)]
    least, most = min(finite, default=0.0), max(finite, default=0.0)
    for value, low, high in zip(span.values, span.low, span.high, strict=True):
        if value is None or not math.isfinite(value) or not most > least:
            yield None
            continue
        yield _place(low, least, most), _place(high, least, most), _place(value, least, most)


def _place(value: float, least: float, most: float) -> int:
    """Return pixels from the left; values outside, such as open ends, are at the edge."""
    if math.isinf(value):
        return 0 if value < 0 else WIDTH
    share = value / (most - least) - least / (most - least)
    return round(min(1.0, max(0.0, share)) * WIDTH)
