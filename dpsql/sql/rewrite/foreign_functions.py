"""Rewrite functions that other engines name differently: SAFE_DIVIDE, IFF, DECODE, DATEADD, DATE_DIFF with its unit
last, DATE_FORMAT and similar.

The parser keeps such a call as written, so that all of its words are accounted for; then it becomes the equivalent
tree. Calls with engine-specific meaning (weeks that begin on Sunday) are not read, and are refused by name with a
replacement (`refusals`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from dpsql.plan.functions.dates import PARTS
from dpsql.sql.rewrite.sqlite_dates import date_of
from dpsql.sql.rewrite.sqlite_dates import text_of as _text

Args = list[Any]
Build = Callable[[Args], exp.Expr]
Read = Callable[[Args], exp.Expr | None]

_UNITS = {
    unit: unit for unit in ("year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond")
} | {"isoweek": "week", "isoyear": "isoyear"}
"""Unit names that mean the same on all engines."""
_SHORT_UNITS = {
    **dict.fromkeys(("yy", "yyyy", "years"), "year"),
    **dict.fromkeys(("qq", "quarters"), "quarter"),
    **dict.fromkeys(("mm", "months"), "month"),
    **dict.fromkeys(("dd", "days"), "day"),
    **dict.fromkeys(("hh", "hours"), "hour"),
    **dict.fromkeys(("mi", "minutes"), "minute"),
    **dict.fromkeys(("ss", "seconds"), "second"),
}
"""T-SQL unit names, except single letters, which are more likely columns."""
_ADDED = {"week": "week", "weeks": "week", "wk": "week", "ww": "week"}
"""An added week is always seven days."""
_ORACLE = {
    **dict.fromkeys(("YYYY", "YEAR", "YY", "SYYYY"), "year"),
    **dict.fromkeys(("MM", "MON", "MONTH"), "month"),
    **dict.fromkeys(("DD", "DDD", "J"), "day"),
    **dict.fromkeys(("HH", "HH24"), "hour"),
    "Q": "quarter",
    "MI": "minute",
    "IW": "week",
}
"""Unit names of Oracle and Spark for truncation."""


def _word(node: Any) -> str:
    """Return a bare word in lower case, or "" for anything else."""
    if isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted"):
        return node.name.lower()
    return str(node.name).lower() if isinstance(node, exp.Var) else ""


def _bare_unit(node: Any) -> str | None:
    word = _word(node)
    return _UNITS.get(word) or _SHORT_UNITS.get(word)


def _of(count: int, build: Callable[..., exp.Expr]) -> Read:
    """Accept calls with this many arguments."""
    return lambda args: build(*args) if len(args) == count else None


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _quotient(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=_closed(first), expression=_closed(second)))


def _closed(node: exp.Expr) -> exp.Expr:
    """Return an operand, in parentheses if it is an operator."""
    return exp.Paren(this=node) if isinstance(node, exp.Binary) else node


def _case(arms: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in arms], default=default)


def _quotient_or_0(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """Rewrite DIV0, which is 0 for a divisor of 0."""
    nothing = exp.EQ(this=_closed(second), expression=_number(0))
    return _case([(nothing, _number(0))], _quotient(first, second.copy()))


def _decoded(args: Args) -> exp.Expr | None:
    """Rewrite DECODE(x, 1, 'a', 2, 'b', 'c'), where NULL equals NULL."""
    if len(args) < 4:
        return None
    value, rest = args[0], args[1:]
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    same = [
        (exp.Is(this=_closed(value.copy()), expression=exp.Null())
         if isinstance(one, exp.Null)
         else exp.EQ(this=_closed(value.copy()), expression=_closed(one)), then)
        for one, then in pairs
    ]  # fmt: skip
    return _case(same, rest[-1] if len(rest) % 2 else None)


def _present(value: exp.Expr, there: exp.Expr, gone: exp.Expr) -> exp.Expr:
    return _case([(exp.Is(this=_closed(value), expression=exp.Null()), gone)], there)


def _cut(unit: str, time: exp.Expr) -> exp.Expr:
    return exp.TimestampTrunc(this=time, unit=exp.Var(this=unit.upper()))


def _unit_of(args: Args) -> tuple[str, Args] | None:
    """Return the bare unit of a call, first or last, and the other arguments.

    None if both could be units, or the unit is quoted as in dpsql's language. A last unit is a whole word: `d` would be
    a column.
    """
    if len(args) < 2 or _text(args[0]) is not None:
        return None
    first, last = _bare_unit(args[0]), _UNITS.get(_word(args[-1]))
    if first is not None and last is None:
        return first, args[1:]
    return (last, args[:-1]) if last is not None and first is None else None


def _cut_behind(args: Args) -> exp.Expr | None:
    """Rewrite DATE_TRUNC(t, MONTH) and DATE_TRUNC(month, t)."""
    found = _unit_of(args) if len(args) == 2 else None
    return None if found is None else _cut(found[0], found[1][0])


def _cut_before(args: Args) -> exp.Expr | None:
    """Rewrite DATETRUNC(month, t)."""
    unit = _bare_unit(args[0]) if len(args) == 2 else None
    return None if unit is None else _cut(unit, args[1])


def _cut_by_letters(args: Args) -> exp.Expr | None:
    """Rewrite TRUNC(t, 'MM')."""
    unit = _ORACLE.get((_text(args[1]) or "").upper()) if len(args) == 2 else None
    return None if unit is None else _cut(unit, args[0])


def _between(args: Args) -> exp.Expr | None:
    """Rewrite DATEDIFF(day, a, b), DATE_DIFF(b, a, DAY) and DATEDIFF(b, a): unit boundaries between two times."""
    if len(args) == 2 and _text(args[0]) is None:
        return _borders("day", args[1], args[0])
    found = _unit_of(args) if len(args) == 3 else None
    if found is None:
        return None
    unit, (one, other) = found
    return _borders(unit, one, other) if _bare_unit(args[0]) == unit else _borders(unit, other, one)


def _borders(unit: str, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    return exp.DateDiff(this=end, expression=start, unit=exp.Var(this=unit.upper()), date_part_boundary=True)


def _moved(unit: str, count: exp.Expr, time: exp.Expr, *, back: bool = False) -> exp.Expr | None:
    """Return a time plus some units."""
    if isinstance(count, exp.Neg) and isinstance(count.this, exp.Literal):
        count, back = count.this, not back
    if not isinstance(count, exp.Literal):
        return None
    kind = exp.Sub if back else exp.Add
    span = exp.Interval(this=exp.Literal.string(str(count.this)), unit=exp.Var(this=unit.upper()))
    return exp.Paren(this=kind(this=_closed(time), expression=span))


def _added(args: Args) -> exp.Expr | None:
    """Rewrite DATEADD(day, 7, t)."""
    if len(args) != 3:
        return None
    unit = _bare_unit(args[0]) or _ADDED.get(_word(args[0])) or _UNITS.get((_text(args[0]) or "").lower())
    return None if unit is None else _moved(unit, args[1], args[2])


def _days(args: Args, *, back: bool) -> exp.Expr | None:
    """Rewrite DATE_ADD(d, 30) and DATE_SUB(d, 30) in days, and DATE_SUB(d, INTERVAL 1 YEAR)."""
    kind = exp.Sub if back else exp.Add
    if len(args) != 2 or not isinstance(args[1], exp.Literal | exp.Interval | exp.Neg):
        return None
    if isinstance(args[1], exp.Interval) and not back:
        return None  # native
    time = _closed(args[0]) if isinstance(args[1], exp.Interval) else exp.cast(args[0], "DATE")
    return exp.Paren(this=kind(this=time, expression=_closed(args[1])))


def _completed(args: Args) -> exp.Expr | None:
    """Rewrite the native DATE_SUB('year', a, b) as DATESUB."""
    return None if _text(args[0]) is None else exp.Anonymous(this="DATESUB", expressions=args)


def _part(args: Args) -> exp.Expr | None:
    """Rewrite DATEPART(year, t). Other engines number weeks and their days differently."""
    word = _word(args[0]) if len(args) == 2 else ""
    unit = _UNITS.get(word) or _SHORT_UNITS.get(word) or ("dayofyear" if word in ("dayofyear", "dy") else None)
    return None if unit is None else exp.Extract(this=exp.Var(this=unit), expression=args[1])


def _named_part(args: Args) -> exp.Expr | None:
    """Rewrite DATENAME(month, t)."""
    word = _word(args[0]) if len(args) == 2 else ""
    if _bare_unit(args[0] if args else None) == "month":
        return exp.Monthname(this=args[1])
    return exp.Dayname(this=args[1]) if word in ("weekday", "dw") else None


_JAVA = {
    "yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
    "EEEE": "%A", "EEE": "%a", "E": "%a", "dddd": "%A", "ddd": "%a", "M": "%-m", "d": "%-d", "H": "%-H", "D": "%-j",
}  # fmt: skip
"""Format codes of Spark and .NET."""
_MYSQL = {
    **{f"%{letter}": f"%{letter}" for letter in "YymdHSabjp%"},
    "%i": "%M", "%s": "%S", "%M": "%B", "%W": "%A", "%e": "%-d", "%c": "%-m", "%h": "%I", "%I": "%I", "%T": "%H:%M:%S",
}  # fmt: skip
"""Format codes of MySQL, where M is the name of a month."""


def _in_c(text: str) -> str | None:
    """Return a format in STRFTIME codes, or None for an unknown letter."""
    if "%" in text:
        codes = set(re.findall(r"%.?", text))
        return re.sub(r"%.", lambda found: _MYSQL[found[0]], text) if codes <= _MYSQL.keys() else None
    words = [found[0] for found in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']", text)]
    if "".join(words) != text:
        return None
    written = [
        each[1:-1] if each.startswith("'") else _JAVA.get(each) if each[:1].isalpha() else each.replace("%", "%%")
        for each in words
    ]
    known = [each for each in written if each is not None]
    return "".join(known) if len(known) == len(written) else None


def _formatted(args: Args) -> exp.Expr | None:
    """Rewrite DATE_FORMAT(t, 'yyyy-MM') and FORMAT(t, 'yyyy-MM'). FORMAT('{}', x) is DuckDB's."""
    text = _text(args[1]) if len(args) == 2 and _text(args[0]) is None else None
    codes = None if not text else _in_c(text)
    return None if codes is None else exp.TimeToStr(this=args[0], format=exp.Literal.string(codes))


def _as(kind: str) -> Read:
    """Rewrite DATE(x) and TIMESTAMP(x) as a CAST."""
    return lambda args: exp.cast(args[0], kind) if len(args) == 1 else None


def _read_date(args: Args) -> exp.Expr | None:
    """Rewrite TO_DATE('2024-01-31', 'YYYY-MM-DD'), in ISO order only."""
    iso = len(args) == 1 or (len(args) == 2 and (_text(args[1]) or "").upper() in ("YYYY-MM-DD", "%Y-%M-%D"))
    return exp.cast(args[0], "DATE") if iso else None


def _rank(args: Args) -> exp.Expr | None:
    """Rewrite PERCENTILE(x, 0.9) and PERCENTILE_APPROX(x, 0.9), ignoring an accuracy argument."""
    known = len(args) == 2 or (len(args) == 3 and isinstance(args[2], exp.Literal) and _text(args[2]) is None)
    return exp.PercentileCont(this=args[0], expression=args[1]) if known else None


def _between_quartiles(value: exp.Expr) -> exp.Expr:
    """Rewrite IQR(x): the third quartile minus the first."""
    first, third = (
        exp.PercentileCont(this=value.copy(), expression=exp.Literal.number(rank)) for rank in ("0.25", "0.75")
    )
    return exp.Paren(this=exp.Sub(this=third, expression=first))


def _timestamp_of_parts(*parts: exp.Expr) -> exp.Expr:
    """Rewrite MAKE_TIMESTAMP(2024, 1, 31, 23, 59, 0) as the cast of a text: NULL for invalid times."""
    texts = [exp.cast(_closed(part), "TEXT") for part in parts]
    written: exp.Expr = texts[0]
    for sign, part in zip("--" + " ::", texts[1:], strict=True):
        written = exp.DPipe(this=exp.DPipe(this=written, expression=exp.Literal.string(sign)), expression=part)
    return exp.cast(exp.Paren(this=written), "TIMESTAMP")


_READ: Mapping[str, Read] = {
    "DECODE": _decoded,
    "DATE_TRUNC": _cut_behind,
    "DATETRUNC": _cut_before,
    "TRUNC": _cut_by_letters,
    "DIV": _of(2, lambda first, second: exp.Paren(this=exp.IntDiv(this=_closed(first), expression=_closed(second)))),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), _between),
    "DATEADD": _added,
    "DATE_ADD": lambda args: _days(args, back=False),
    "DATE_SUB": lambda args: _completed(args) if len(args) == 3 else _days(args, back=True),
    **dict.fromkeys(("DATEPART", "DATE_PART"), _part),
    "DATENAME": _named_part,
    **dict.fromkeys(("DATE_FORMAT", "FORMAT"), _formatted),
    "DATE": date_of,
    **dict.fromkeys(("TIMESTAMP", "DATETIME"), _as("TIMESTAMP")),
    **dict.fromkeys(("TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _cut_behind),
    "TO_DATE": _read_date,
    **dict.fromkeys(("PERCENTILE", "PERCENTILE_APPROX", "APPROX_PERCENTILE"), _rank),
    "RATIO_TO_REPORT": lambda _args: None,  # rewritten with its window (`share_in`)
    "SAFE_DIVIDE": _of(2, _quotient),
    "DIV0": _of(2, _quotient_or_0),
    "IFF": _of(3, lambda test, true, false: exp.If(this=test, true=true, false=false)),
    "NVL2": _of(3, _present),
    "ISNULL": _of(2, lambda value, other: exp.Coalesce(this=value, expressions=[other])),
    "ZEROIFNULL": _of(1, lambda value: exp.Coalesce(this=value, expressions=[_number(0)])),
    "NULLIFZERO": _of(1, lambda value: exp.Nullif(this=value, expression=_number(0))),
    "COUNT_BIG": _of(1, lambda value: exp.Count(this=value, big_int=True)),
    "STATS_MODE": _of(1, lambda value: exp.Mode(this=value)),
    "MEAN": _of(1, lambda value: exp.Avg(this=value)),
    "IQR": _of(1, _between_quartiles),
    "MAKE_TIMESTAMP": _of(6, _timestamp_of_parts),
    "EOMONTH": _of(1, lambda value: exp.LastDay(this=value)),
}

_WEEKS = frozenset({"week", "weeks", "wk", "ww", "dw", "weekday", "dayofweek"})
"""Bare units that begin or are numbered differently on other engines."""
_OF_UNITS = frozenset(
    {"DATE_TRUNC", "DATEDIFF", "DATE_DIFF", "DATEPART", "DATE_PART", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"}
)


def is_read(name: str, args: Args) -> bool:
    """Return whether a call to a function with a parser node is another engine's."""
    return _READ[name](args) is not None or (name in _OF_UNITS and _has_bare_unit(args))


def _has_bare_unit(args: Args) -> bool:
    """Return whether a bare word may be a unit, and no unit is quoted."""
    if args and (_text(args[0]) or "").upper() in PARTS:
        return False
    return any(_bare_unit(each) or _word(each) in _WEEKS for each in args)


def share_in(window: exp.Expr) -> exp.Expr | None:
    """Rewrite RATIO_TO_REPORT(x) OVER (...) without order as x / SUM(x) OVER (...); None for other windows."""
    called = window.this
    if type(called) is not exp.Anonymous or str(called.this).upper() != "RATIO_TO_REPORT" or window.args.get("order"):
        return None
    if len(called.expressions) != 1 or window.args.get("spec"):
        return None
    (value,), total = called.expressions, window.copy()
    total.set("this", exp.Sum(this=value.copy()))
    return _quotient(value.copy(), total)


def read(node: exp.Expr) -> exp.Expr | None:
    """Return a call in dpsql's language, at the same place of the text; None if unsupported."""
    call = _READ[str(node.this).upper()]([each.copy() for each in node.expressions])
    if call is not None:
        for made in call.find_all(exp.Cast):  # written casts have their own word already
            made.args["to"].meta.setdefault("word", str(node.this))
        for name in ("start", "end", "line", "col", "word", "near"):
            if name in node.meta:
                call.meta.setdefault(name, node.meta[name])
    return call
