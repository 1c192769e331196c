"""Rules for nodes whose meaning depends on the dialect: each rewrites or refuses its node."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.sql.dialects import numbers, texts, times
from dpsql.sql.dialects.reading import TIMES, DialectText, Rule, called, number

_NAMES = {
    "tsql": {"STDEVP": "STDDEV_POP", "VAR": "VAR_SAMP", "VARP": "VAR_POP"},
    "postgres": {"AGE": "AGE"},  # DuckDB adopted it
}
"""Functions without a sqlglot class, and their names here."""


def _anonymous(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    name = node.name.upper()
    own = _NAMES.get(reading.habits.name, {}).get(name)
    if own is not None:
        return called(own, *node.expressions)
    kind = reading.kinds.of(node.expressions[0]) if len(node.expressions) == 1 else None
    if name == "TRUNC" and kind is not None:
        time = [exp.Literal.string("day"), node.expressions[0]]
        return called("DATE_TRUNC", *time) if kind in TIMES else called("TRUNC", node.expressions[0])
    raise reading.unread(node)


def _limit(node: exp.Expr, reading: DialectText) -> exp.Expr | None:
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise reading.refused(node, "a share of the rows, and rows with ties, are not read as a limit.")
    if isinstance(node, exp.Fetch):
        return exp.Limit(expression=node.args.get("count") or number(1))
    node.set("limit_options", None)
    return None


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Add: numbers.added,
    exp.Anonymous: _anonymous,
    exp.Bracket: texts.element,
    exp.Cast: numbers.cast,
    exp.Concat: texts.joined,
    exp.Convert: numbers.converted,
    exp.DPipe: texts.joined,
    exp.DateDiff: times.apart,
    exp.DateTrunc: times.cut,
    exp.DatetimeDiff: times.apart,
    exp.DatetimeTrunc: times.cut,
    exp.DayOfWeek: lambda node, reading: times.day_of_week(node.this, node, reading),
    exp.DayOfWeekIso: times.iso_day,
    exp.Div: numbers.division,
    exp.Extract: times.part,
    exp.Fetch: _limit,
    exp.Greatest: numbers.extreme,
    exp.Least: numbers.extreme,
    exp.Length: texts.length,
    exp.Like: texts.like,
    exp.Limit: _limit,
    exp.Log: numbers.logarithm,
    exp.RegexpExtract: texts.extracted,
    exp.RegexpFullMatch: texts.matches,
    exp.RegexpLike: texts.matches,
    exp.Round: numbers.rounded,
    exp.SplitPart: texts.piece,
    exp.Stddev: numbers.spread,
    exp.StrPosition: texts.place,
    exp.StrToDate: times.read,
    exp.StrToTime: times.read,
    exp.Sub: numbers.added,
    exp.Substring: texts.substring,
    exp.TimestampDiff: times.apart,
    exp.TimestampTrunc: times.cut,
    exp.ToChar: times.as_text,
    exp.TryCast: numbers.cast,
    exp.TsOrDsDiff: times.apart,
    exp.Variance: numbers.spread,
    exp.Week: times.week,
    exp.WeekOfYear: times.week,
}
"""Rules by kind of node."""
READ_IN_OTHERS = frozenset({exp.Split, exp.RegexpSplit, exp.LimitOptions})
"""Nodes that only another node's rule reads."""
