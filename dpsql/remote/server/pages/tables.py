"""An answer's table for a page: cells in words, cut where they are long, with marks that show where intervals lie."""

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
    """heads and rows: of (text, whether it is a number, whether it is an interval, its marks); notes: the lines below;
    more: rows that are not shown; cut: whether a text is."""

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
    """The text, cut where it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
