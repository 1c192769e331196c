"""A picture of an answer: what was released, and where the exact values lie."""

from __future__ import annotations

import io
import math
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dpsql.answer.export_formats import Column, Ends, library
from dpsql.errors import InvalidArgument
from dpsql.schema.frozen import dataclass

MOST_GROUPS = 30
_INK, _MARK = "#777777", "#2a7ab0"
"""Seen on a light ground and on a dark one."""
_LONGEST = 28


@dataclass(frozen=True, eq=False)
class Panel:
    """One aggregate: a value for each group, and the ends of its interval, None where there is none."""

    name: str
    values: Sequence[Any]
    low: Sequence[Any]
    high: Sequence[Any]


def figure_of(keys: Sequence[Column], panels: Sequence[Panel], caption: str, heading: str = "") -> Any:
    """A matplotlib Figure: a panel for each aggregate. Groups are dots with bars for their intervals, one below the
    other; along one key of numbers or times they are points of a line. Raises InvalidArgument where matplotlib is not
    installed or there is nothing to draw."""
    if not panels:
        raise InvalidArgument("the answer has no column of numbers to draw.")
    pyplot = library("matplotlib.pyplot", "a plot")
    with pyplot.rc_context(_AS_WRITTEN):
        figure = _drawn(pyplot.figure, keys, panels, caption, heading)
    if "IPython" in sys.modules:  # a notebook shows what the cell gives, and would show an open figure once more
        pyplot.close(figure)
    return figure


def svg_of(keys: Sequence[Column], panels: Sequence[Panel], caption: str, heading: str = "") -> bytes:
    """The same as a picture for a page, in letters that its reader's machine draws. Raises as `figure_of`."""
    if not panels:
        raise InvalidArgument("the answer has no column of numbers to draw.")
    plain = library("matplotlib.figure", "a plot")
    matplotlib = library("matplotlib", "a plot")
    stream = io.BytesIO()
    with matplotlib.rc_context({**_AS_WRITTEN, "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they name characters of keys
        figure = _drawn(plain.Figure, keys, panels, caption, heading)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def caption_of(panels: Sequence[Panel], level: float, cost: str) -> str:
    """The line below a picture: which panels have intervals, at which level, and the privacy cost."""
    having = [each.name for each in panels if any(_has_ends(each, row) for row in range(len(each.values)))]
    lacking = [each.name for each in panels if each.name not in having]
    if not having:
        return f"no intervals, {cost}"
    which = f" (none for {', '.join(map(label, lacking))})" if lacking else ""
    return f"{level * 100:g} % intervals{which}, {cost}"


_AS_WRITTEN = {"text.parse_math": False, "text.usetex": False}
"""Names and keys are drawn as they are written."""


def _drawn(
    begun: Callable[..., Any], keys: Sequence[Column], panels: Sequence[Panel], caption: str, heading: str
) -> Any:
    """A figure, which `begun` makes of its size."""
    along = _axis(keys)
    groups = len(panels[0].values)
    names = [" · ".join(label(each.cells[row]) for each in keys) for row in range(min(groups, MOST_GROUPS))]
    height = 2.6 if along or len(names) < 2 else 1.1 + 0.26 * len(names)
    figure = begun(figsize=(min(14, 2.2 + 3.2 * len(panels)), height))
    axes = figure.subplots(1, len(panels), squeeze=False)
    figure.patch.set_alpha(0)
    for place, (axis, panel) in enumerate(zip(axes[0], panels, strict=True)):
        if along is not None:
            _line(axis, along.cells, panel)
            axis.set_xlabel(label(along.name), color=_INK)
        else:
            _dots(axis, names, panel, labels=not place)
        _plain(axis)
        axis.set_title(label(panel.name), color=_INK, fontsize=10, loc="left")
    more = groups - len(names) if along is None else 0
    words = f"and {more} more groups\n{caption}" if more else caption
    figure.text(0.01, 0.01, words, color=_INK, fontsize=8, ha="left", va="bottom")
    if heading:
        figure.suptitle(heading, color=_INK, fontsize=11, fontweight="bold")
    figure.tight_layout(rect=(0, 0.25 / height, 1, 1))
    return figure


def _axis(keys: Sequence[Column]) -> Column | None:
    """The one key that groups lie along; None where they are names."""
    alone = keys[0] if len(keys) == 1 else None
    if alone is None or not (alone.kind.numeric or alone.kind.temporal) or any(cell is None for cell in alone.cells):
        return None
    return alone if len(alone.cells) > 1 else None


def _line(axis: Any, along: Sequence[Any], panel: Panel) -> None:
    order = sorted(range(len(along)), key=lambda row: along[row])
    rows = [row for row in order if panel.values[row] is not None]
    places = [along[row] for row in rows]
    axis.plot(places, [panel.values[row] for row in rows], color=_MARK, marker="o", markersize=3, linewidth=1)
    bars = [row for row in rows if _has_ends(panel, row)]
    low, high = ([ends[row] for row in bars] for ends in (panel.low, panel.high))
    axis.vlines([along[row] for row in bars], low, high, color=_MARK, alpha=0.6)


def _dots(axis: Any, names: Sequence[str], panel: Panel, *, labels: bool) -> None:
    rows = [row for row in range(len(names)) if panel.values[row] is not None]
    axis.plot([panel.values[row] for row in rows], rows, "o", color=_MARK, markersize=5)
    bars = [row for row in rows if _has_ends(panel, row)]
    low, high = ([ends[row] for row in bars] for ends in (panel.low, panel.high))
    axis.hlines(bars, low, high, color=_MARK)
    axis.plot(low, bars, "|", high, bars, "|", color=_MARK)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_yticks(range(len(names)), names if labels else [""] * len(names))


def _has_ends(panel: Panel, row: int) -> bool:
    ends = (panel.low[row], panel.high[row])
    return all(end is not None and (not isinstance(end, float) or math.isfinite(end)) for end in ends)


def _plain(axis: Any) -> None:
    axis.patch.set_alpha(0)
    axis.tick_params(colors=_INK, labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(_INK)
    axis.grid(visible=True, color=_INK, alpha=0.2, linewidth=0.5)
    for tick in axis.get_xticklabels():
        tick.set_rotation(30)
        tick.set_horizontalalignment("right")


def label(cell: Any) -> str:
    """A key, or the name of a column, as it stands in a picture, shortened, without signs that draw."""
    text = "NULL" if cell is None else "".join(sign if sign.isprintable() else " " for sign in str(cell))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def parts(
    columns: Sequence[Column], noisy: Collection[str], ends: Mapping[str, Ends]
) -> tuple[list[Column], list[Panel]]:
    """Keys, and panels of what has noise or an interval; of answers without noise, of all numbers but the first
    column's."""
    drawn = {each.name for each in columns if each.name in noisy or each.name in ends}
    drawn = drawn or {each.name for each in columns[min(1, len(columns) - 1) :]}
    panels = []
    for each in columns:
        if each.name in drawn and each.kind.numeric:
            nothing = [None] * len(each.cells)
            panels.append(Panel(each.name, each.cells, *ends.get(each.name, (nothing, nothing))))
    return [each for each in columns if each.name not in drawn], panels
