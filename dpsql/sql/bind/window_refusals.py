"""Refusals of windows where none are allowed, with the allowed form."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.expressions import Column
from dpsql.plan.windows import WINDOWS
from dpsql.sql.bind.private_rows import OWN, PrivateRows, Rows
from dpsql.sql.syntax.nodes import NamedArguments
from dpsql.sql.syntax.parse import span_of

NODES: dict[type[exp.Expr], str] = {
    exp.RowNumber: "ROW_NUMBER",
    exp.Rank: "RANK",
    exp.DenseRank: "DENSE_RANK",
    exp.Ntile: "NTILE",
    exp.PercentRank: "PERCENT_RANK",
    exp.CumeDist: "CUME_DIST",
    exp.Lag: "LAG",
    exp.Lead: "LEAD",
    exp.FirstValue: "FIRST_VALUE",
    exp.LastValue: "LAST_VALUE",
}
"""Parser nodes of window-only functions; COUNT and similar are aggregate nodes."""


def window_refused(node: exp.Window, sql: str, people: PrivateRows | None, where: str) -> UnsupportedSQL:
    """Return the refusal of a window at a place that allows none: `where` describes it."""
    return UnsupportedSQL(
        f"{called(node)} OVER (...): a window cannot stand {where}.",
        span=over(sql, node),
        hint="Over people's rows a window stands in a sub-query below the aggregation, inside each person: "
        f"{_form(called(node), people)}.",
    )


def refuse_windows(select: exp.Select, sql: str, people: PrivateRows | None) -> None:
    """Refuse windows in a SELECT over an answer, outermost, or next to aggregates. Raises UnsupportedSQL."""
    if select.args.get("qualify") is not None:
        word = re.search(r"\bQUALIFY\b", sql, re.IGNORECASE)
        raise UnsupportedSQL(
            "QUALIFY stands in a sub-query of people's rows without aggregates, or over an answer.",
            span=None if word is None else Span(sql, word.start(), word.end() - 1),
        )
    walked = select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select)
    node = next((each for each in walked if isinstance(each, exp.Window) and each.arg_key != "windows"), None)
    if node is not None:
        raise window_refused(node, sql, people, "beside aggregates or outermost")


def over(sql: str, node: exp.Window) -> Span | None:
    """Return the span of a window's OVER, or of the window if not found."""
    span, inner = span_of(sql, node), span_of(sql, node.this)
    word = re.compile(r"\bOVER\b", re.IGNORECASE).search(sql, 0 if inner is None else inner.end)
    return span if word is None or inner is None else Span(sql, word.start(), word.end() - 1)


def called(node: exp.Window) -> str:
    """Return the name of the windowed function."""
    inner = node.this
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup | NamedArguments):
        inner = inner.this
    word = inner.meta.get("word")
    if isinstance(word, str):
        return word.upper()[:40]
    return NODES.get(type(inner)) or (inner.sql_name() if isinstance(inner, exp.Func) else type(inner).__name__.upper())


def _form(word: str, people: PrivateRows | None) -> str:
    word = word if word in WINDOWS else "ROW_NUMBER"
    rows = [] if people is None else [step.rows for step in people.steps if step.rows.handles]
    unit = str(handle(rows[0])) if rows else "person_id"
    table = people.table.name if people is not None else "t"
    return f"SELECT ... FROM (SELECT *, {word}(...) OVER (PARTITION BY {unit} ORDER BY ...) AS w FROM {table})"


def handle(rows: Rows) -> Column:
    """Return the column to suggest: the unit itself, if available."""
    return min(rows.handles, key=lambda each: (each[0] != OWN, str(each[1])))[1]
