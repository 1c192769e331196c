"""Plots of answers: released values and their intervals."""

from __future__ import annotations

import io
import math
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from dpsql.answer.export_formats import Column, Ends, library
from dpsql.errors import InvalidArgument, as_written, did_you_mean
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

MOST_GROUPS = 30
KINDS = ("auto", "line", "bar", "dot")
_MOST_SERIES = 10
_INK, _MARK = "#777777", "#2a7ab0"
"""Readable on light and dark backgrounds."""
_COLOURS = (_MARK, "#d1792b", "#3a9a5b", "#b24a7d", "#8a6fc0", "#b8a02c", "#4bb3b5", "#c25450", "#7f8c4a", "#9a7b5f")
_LONGEST = 28
_YEARS = range(1500, 2501)


@dataclass(frozen=True, eq=False)
class Panel:
    """One aggregate: a value for each group, and the ends of its interval, None if there is none."""

    name: str
    values: Sequence[Any]
    low: Sequence[Any]
    high: Sequence[Any]


@dataclass(frozen=True, eq=False)
class Drawing:
    """Layout of a plot. kind: one of KINDS; `axis`: the key along which lines and bars are drawn; `series`: the rows of
    each line, or of each colour of bars, by its label."""

    keys: Sequence[Column]
    panels: Sequence[Panel]
    caption: str
    title: str
    kind: str
    axis: Column | None
    series: Mapping[str, Sequence[int]]
    left_out: str


def drawing(
    keys: Sequence[Column], panels: Sequence[Panel], caption: str, title: str = "", kind: str = "auto"
) -> Drawing:
    """Choose how groups are drawn: lines along a key of times, bars along a key of bands, otherwise dots. Raises
    InvalidArgument if there is nothing to draw, or for an unknown kind."""
    if not panels:
        raise InvalidArgument("the answer has no column of numbers to draw.")
    if kind not in KINDS:
        raise InvalidArgument(f"kind is one of {', '.join(map(repr, KINDS))}, got {as_written(kind)}.")
    if kind in {"line", "bar"} and not keys:
        raise InvalidArgument(f'kind="{kind}" needs a column of keys.', hint='GROUP BY one, or pass kind="dot".')
    axis, chosen = _axis(keys, kind)
    groups = len(panels[0].values)
    if axis is None or chosen == "dot":
        more = groups - MOST_GROUPS
        left_out = f"and {more} more groups" if more > 0 else ""
        return Drawing(keys, panels, caption, title, "dot", None, {"": range(min(groups, MOST_GROUPS))}, left_out)
    series, left_out = _series(keys, axis, chosen)
    return Drawing(keys, panels, caption, title, chosen, axis, series, left_out)


def _series(keys: Sequence[Column], axis: Column, kind: str) -> tuple[dict[str, list[int]], str]:
    """Return the rows by the labels of the other keys, and a line on what is not drawn."""
    others = [key_labels(each) for each in keys if each is not axis]
    series: dict[str, list[int]] = {}
    for row, cell in enumerate(axis.cells):
        if kind != "line" or cell is not None:
            series.setdefault(" · ".join(each[row] for each in others), []).append(row)
    words = []
    if len(series) > _MOST_SERIES:
        words.append(f"{len(series) - _MOST_SERIES} more {'lines' if kind == 'line' else 'colours'}")
        series = dict(list(series.items())[:_MOST_SERIES])
    if kind == "bar" and (more := len(set(axis.cells)) - MOST_GROUPS) > 0:
        words.append(f"{more} more groups")
    if kind == "line" and None in axis.cells:
        words.append(f"NULL of {label(axis.name)}")
    return series, f"not drawn: {', '.join(words)}" if words else ""


def _axis(keys: Sequence[Column], kind: str) -> tuple[Column | None, str]:
    """Return the key along which groups are drawn, None if groups are names, and the kind of plot."""
    times = [each for each in keys if each.kind.temporal or _are_years(each)]
    numbers = [each for each in keys if each.kind.numeric and each not in times]
    bands = [each for each in keys if _are_bands(each)]
    if kind in {"line", "bar"}:
        return next(iter([*times, *numbers, *bands, *keys])), kind
    for several, chosen in ((times, "line"), (numbers, "bar"), (bands, "bar")):
        for each in several if kind == "auto" else ():
            present = {cell for cell in each.cells if cell is not None}
            if len(present) < 2 or len(keys) > 2 or (len(present) > MOST_GROUPS and not each.kind.ordered_number):
                continue
            return each, "line" if len(present) > MOST_GROUPS else chosen
    return None, "dot"


def _are_years(key: Column) -> bool:
    return key.kind is Type.INTEGER and all(cell is None or cell in _YEARS for cell in key.cells)


def _are_bands(key: Column) -> bool:
    """Return whether keys are texts like '18-29' and '65+': each has a digit."""
    texts = [cell for cell in key.cells if cell is not None]
    return key.kind is Type.TEXT and bool(texts) and all(any(map(str.isdigit, text)) for text in texts)


def chosen_panels(panels: Sequence[Panel], columns: Sequence[str] | None) -> list[Panel]:
    """Return the panels of some columns, in this order; all for None. Raises InvalidArgument for unknown names."""
    if columns is None:
        return list(panels)
    by_name = {each.name: each for each in panels}
    for name in columns:
        if name not in by_name:
            near = did_you_mean(name, list(by_name)) if isinstance(name, str) else ""
            raise InvalidArgument(f"the answer has no column {as_written(name)} of numbers to draw.{near}")
    return [by_name[name] for name in columns]


def figure_of(of: Drawing, axes: Any = None) -> Any:
    """Return a matplotlib Figure with a panel for each aggregate, or the figure of `axes` with its one aggregate.
    Raises InvalidArgument if matplotlib is not installed, or `axes` are given for several aggregates."""
    pyplot = library("matplotlib.pyplot", "a plot")
    if axes is not None and len(of.panels) != 1:
        names = ", ".join(each.name for each in of.panels)
        hint = f"column={as_written(of.panels[0].name)}"
        raise InvalidArgument(f"ax= takes one column, and the answer has {len(of.panels)}: {names}.", hint=hint)
    with pyplot.rc_context(_AS_WRITTEN):
        if axes is not None:
            _panel(axes, of, of.panels[0], first=True)
            axes.set_title(of.title or label(of.panels[0].name), color=_INK, fontsize=10, loc="left")
            below = [axes.get_xlabel(), of.left_out, of.caption]
            axes.set_xlabel("\n".join(filter(None, below)), color=_INK, fontsize=8)
            return axes.figure
        figure = _figure(pyplot.figure, of)
    if "IPython" in sys.modules:  # a notebook shows the cell's result, and would show an open figure a second time
        pyplot.close(figure)
    return figure


def svg_of(of: Drawing) -> bytes:
    """Return the plot as SVG; the reader's machine renders the letters. Raises as `figure_of`."""
    plain = library("matplotlib.figure", "a plot")
    matplotlib = library("matplotlib", "a plot")
    stream = io.BytesIO()
    with matplotlib.rc_context({**_AS_WRITTEN, "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings quote characters of keys
        figure = _figure(plain.Figure, of)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def caption_of(panels: Sequence[Panel], level: float, cost: str) -> str:
    """Return the caption: which panels have intervals, at which level, and the privacy cost."""
    having = [each.name for each in panels if any(_has_ends(each, row) for row in range(len(each.values)))]
    lacking = [each.name for each in panels if each.name not in having]
    if not having:
        return f"no intervals, {cost}"
    which = f" (none for {', '.join(map(label, lacking))})" if lacking else ""
    return f"{level * 100:g} % intervals{which}, {cost}"


_AS_WRITTEN = {"text.parse_math": False, "text.usetex": False}
"""Draw names and keys literally."""


def _figure(begun: Callable[..., Any], of: Drawing) -> Any:
    """Draw a figure, which `begun` creates with its size."""
    groups = len(of.series.get("", ())) if of.kind == "dot" else 1
    height = 2.6 if groups < 2 else 1.1 + 0.26 * groups
    height += 0.3 if len(of.series) > 1 else 0
    figure = begun(figsize=(min(14, 2.2 + 3.2 * len(of.panels)), height))
    axes = figure.subplots(1, len(of.panels), squeeze=False)
    figure.patch.set_alpha(0)
    for place, (axis, panel) in enumerate(zip(axes[0], of.panels, strict=True)):
        _panel(axis, of, panel, first=not place)
        axis.set_title(label(panel.name), color=_INK, fontsize=10, loc="left")
    words = "\n".join(filter(None, [of.left_out, of.caption]))
    figure.text(0.01, 0.01, words, color=_INK, fontsize=8, ha="left", va="bottom")
    if of.title:
        figure.suptitle(of.title, color=_INK, fontsize=11, fontweight="bold")
    figure.tight_layout(rect=(0, (0.25 + 0.15 * bool(of.left_out)) / height, 1, 1))
    return figure


def _panel(axis: Any, of: Drawing, panel: Panel, *, first: bool) -> None:
    """Draw one aggregate. first: it is the leftmost panel, which has the labels for all."""
    if of.axis is None:
        _dots(axis, _names(of), panel, labels=first)
    elif of.kind == "line":
        _lines(axis, of, panel)
    else:
        _bars(axis, of, panel)
    if of.axis is not None:
        axis.set_xlabel(label(of.axis.name), color=_INK)
    if len(of.series) > 1 and first:
        axis.legend(fontsize=8, frameon=False, labelcolor=_INK, ncols=2 if len(of.series) > 4 else 1)
    axis.patch.set_alpha(0)
    axis.tick_params(colors=_INK, labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(_INK)
    axis.grid(visible=True, color=_INK, alpha=0.2, linewidth=0.5)
    axis.set_axisbelow(True)
    for tick in axis.get_xticklabels():
        tick.set_rotation(30)
        tick.set_horizontalalignment("right")


def _names(of: Drawing) -> list[str]:
    labels = [key_labels(each) for each in of.keys]
    return [" · ".join(each[row] for each in labels) for row in of.series[""]]


def _lines(axis: Any, of: Drawing, panel: Panel) -> None:
    assert of.axis is not None
    along: Sequence[Any] = of.axis.cells
    if not (of.axis.kind.numeric or of.axis.kind.temporal):
        places = {name: place for place, name in enumerate(dict.fromkeys(key_labels(of.axis)))}
        along = [places[name] for name in key_labels(of.axis)]
        axis.set_xticks(range(len(places)), list(places))
    for colour, (name, rows) in zip(_COLOURS, of.series.items(), strict=False):
        shown = sorted((row for row in rows if panel.values[row] is not None), key=lambda row: along[row])
        places_of = [along[row] for row in shown]
        values = [panel.values[row] for row in shown]
        axis.plot(places_of, values, color=colour, marker="o", markersize=3, linewidth=1, label=name)
        bars = [row for row in shown if _has_ends(panel, row)]
        low, high = ([ends[row] for row in bars] for ends in (panel.low, panel.high))
        axis.vlines([along[row] for row in bars], low, high, color=colour, alpha=0.6)


def _bars(axis: Any, of: Drawing, panel: Panel) -> None:
    assert of.axis is not None
    names = key_labels(of.axis)
    cells: Mapping[str, Any] = dict(zip(names, of.axis.cells, strict=True))
    order = list(cells)
    if of.axis.kind.numeric or of.axis.kind.temporal:  # NULL comes last
        order.sort(key=lambda name: (cells[name] is None, 0 if cells[name] is None else cells[name]))
    order = order[:MOST_GROUPS]
    places = {name: place for place, name in enumerate(order)}
    width = 0.8 / len(of.series)
    for number, (colour, (name, rows)) in enumerate(zip(_COLOURS, of.series.items(), strict=False)):
        shown = [row for row in rows if panel.values[row] is not None and names[row] in places]
        at = {row: places[names[row]] + (number - (len(of.series) - 1) / 2) * width for row in shown}
        axis.bar(
            list(at.values()), [panel.values[row] for row in shown], width * 0.9, color=colour, alpha=0.6, label=name
        )
        bars = [row for row in shown if _has_ends(panel, row)]
        low, high = ([ends[row] for row in bars] for ends in (panel.low, panel.high))
        axis.vlines([at[row] for row in bars], low, high, color=_INK)
    axis.set_xticks(range(len(order)), order)


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


def label(cell: Any) -> str:
    """Shorten a key or a column's name for a plot, and replace unprintable characters."""
    text = "NULL" if cell is None else "".join(sign if sign.isprintable() else " " for sign in str(cell))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def key_labels(key: Column) -> list[str]:
    """Return the labels of a column of keys; if all timestamps are at midnight, as dates."""
    moments = [cell for cell in key.cells if isinstance(cell, datetime)]
    if moments and all(cell.time() == time() for cell in moments):
        return [label(cell.date() if isinstance(cell, datetime) else cell) for cell in key.cells]
    return [label(cell) for cell in key.cells]


def parts(
    columns: Sequence[Column], noisy: Collection[str], ends: Mapping[str, Ends]
) -> tuple[list[Column], list[Panel]]:
    """Return the keys, and the panels of columns with noise or an interval; in answers without noise, of all numbers
    except the first column."""
    drawn = {each.name for each in columns if each.name in noisy or each.name in ends}
    drawn = drawn or {each.name for each in columns[min(1, len(columns) - 1) :]}
    panels = []
    for each in columns:
        if each.name in drawn and each.kind.numeric:
            nothing = [None] * len(each.cells)
            panels.append(Panel(each.name, each.cells, *ends.get(each.name, (nothing, nothing))))
    return [each for each in columns if each.name not in drawn], panels
