"""Text plots of answers for terminals: released values and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpsql.answer.plot import MOST_GROUPS, Panel, caption_of, key_labels, label
from dpsql.errors import InvalidArgument

if TYPE_CHECKING:
    from dpsql.answer.base import BaseResult

_LEAST_WIDTH = 20
_DOT, _BAR, _LEFT, _RIGHT = "●", "─", "├", "┤"


def chart(answer: BaseResult, *, width: int = 78, level: float = 0.95) -> str:
    """Return a panel for each aggregate: a line for each of the first 30 groups, with a dot for the value and a bar for
    its interval, at most `width` characters wide. Raises InvalidArgument if no column holds numbers."""
    keys, panels = answer._plot_parts(level)
    if not panels:
        raise InvalidArgument("the answer has no column of numbers to draw.")
    groups = len(panels[0].values)
    labels = [key_labels(each) for each in keys]
    names = [" · ".join(each[row] for each in labels) for row in range(min(groups, MOST_GROUPS))]
    blocks = [_panel(panel, names, width) for panel in panels]
    more = [f"and {groups - len(names)} more groups"] if groups > len(names) else []
    head = [answer._heading] if answer._heading else []
    return "\n".join([*head, *blocks, *more, caption_of(panels, level, answer._cost_text)])


def _panel(panel: Panel, names: Sequence[str], width: int) -> str:
    rows = range(len(names))
    ends = [each for row in rows for each in (panel.low[row], panel.values[row], panel.high[row]) if _finite(each)]
    head = label(panel.name)
    if not ends:
        return f"{head}\n  nothing but NULL"
    low, high = float(min(ends)), float(max(ends))
    margin = max(map(len, names), default=0)
    inside = max(_LEAST_WIDTH, width - margin - 4)
    lines = [f"{name:<{margin}} │{_line(panel, row, low, high, inside)}".rstrip() for row, name in enumerate(names)]
    axis = f"{'':<{margin}} └{'─' * inside}"
    left, right = f"{low:.6g}", f"{high:.6g}"
    scale = f"{'':<{margin}}  {left}{right:>{max(1, inside - len(left))}}"
    return "\n".join([head, *lines, axis, scale])


def _line(panel: Panel, row: int, low: float, high: float, inside: int) -> str:
    value = panel.values[row]
    if not _finite(value):
        return " NULL" if value is None else f" {value}"
    signs = [" "] * inside
    ends = (panel.low[row], panel.high[row])
    if all(end is not None for end in ends):
        first, last = (_place(_held(end, low, high), low, high, inside) for end in ends)
        signs[first : last + 1] = _BAR * (last - first + 1)
        if last > first:
            signs[first], signs[last] = _LEFT, _RIGHT
    signs[_place(value, low, high, inside)] = _DOT
    return "".join(signs).rstrip()


def _held(end: Any, low: float, high: float) -> float:
    """Clamp an end to the panel: an open end extends to the edge."""
    return min(max(float(end), low), high)


def _place(value: Any, low: float, high: float, inside: int) -> int:
    if high <= low:
        return inside // 2
    share = float(value) / (high - low) - low / (high - low)
    return min(inside - 1, max(0, round(share * (inside - 1))))


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)
