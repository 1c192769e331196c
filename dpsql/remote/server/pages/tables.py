"""Tables of answers on pages: text cells, truncated if long, with marks for the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsql.answer.html import WIDTH, marks_of
from dpsql.remote.answers import RemoteResult
from dpsql.schema.frozen import dataclass
from dpsql.session.advice import Place, reworded

MOST_ROWS, LONGEST = 500, 200


@dataclass(frozen=True)
class PageTable:
    """heads and rows: tuples of (text, whether numeric, whether an interval, its marks); notes: the lines below;
    more: number of rows not shown; cut: whether a text is truncated."""

    heads: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[tuple[str, bool, bool, Any]]]
    notes: Sequence[str]
    more: int
    cut: bool
    width: int = WIDTH

    @classmethod
    def of(cls, result: RemoteResult) -> PageTable:
        cells = result._text_cells(most_rows=MOST_ROWS)
        marks = {span.place: list(marks_of(span)) for span in cells.spans if len(cells.rows) > 1}
        rows = [
            [
                (shortened(text), right, place in cells.limits, marks[place][row] if place in marks else None)
                for place, (text, right) in enumerate(zip(texts, cells.numeric, strict=True))
            ]
            for row, texts in enumerate(cells.rows)
        ]
        heads = [(shortened(head), right) for head, right in zip(cells.heads, cells.numeric, strict=True)]
        cut = any(len(text) > LONGEST for texts in (cells.heads, *cells.rows) for text in texts)
        notes = [reworded(each, Place.PAGE) for each in result.notes]
        return cls(heads, rows, notes, cells.left_out, cut)


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return the text, truncated if it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
