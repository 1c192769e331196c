"""DATE(x) of several engines, and SQLite's DATE(x, 'start of month', '-1 day')."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp


def text_of(node: Any) -> str | None:
    """Return a constant text, or None for anything else."""
    return str(node.this) if isinstance(node, exp.Literal) and node.args.get("is_string") else None


_SQLITE = re.compile(
    r"start of (?P<start>year|month|day)|(?P<count>[+-]\d{1,6}) (?P<unit>day|month|year)s?", re.IGNORECASE
)


def date_of(args: list[Any]) -> exp.Expr | None:
    """Rewrite DATE(x), and SQLite's DATE(x, 'start of month', '-1 day'). Months are added to first days only, where all
    engines agree."""
    texts = [text_of(each) for each in args[1:]]
    if not args or (text_of(args[0]) is not None and texts):
        return None
    day, first = exp.cast(args[0], "DATE"), False
    for each in texts:
        step = None if each is None else _SQLITE.fullmatch(each.strip())
        if step is None:
            return None
        if step["start"]:
            first = first or step["start"].lower() != "day"
            day = exp.cast(exp.DateTrunc(unit=exp.Literal.string(step["start"].lower()), this=day), "DATE")
            continue
        unit = step["unit"].lower()
        if unit != "day" and not first:
            return None
        first = first and unit != "day"
        count = exp.Literal.string(step["count"].removeprefix("+"))
        moved = exp.Add(this=day, expression=exp.Interval(this=count, unit=exp.Var(this=unit.upper())))
        day = exp.cast(exp.Paren(this=moved), "DATE")
    return day
