"""Time between two timestamps, in integer microseconds, and truncation to buckets: TIME_BUCKET, DATE_BIN."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.plan.expressions import Call, Expr, Literal, unfiltered
from dpsql.plan.functions.date_units import ALL_UNITS, Unit
from dpsql.plan.functions.dates import UNITS
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND, read_timestamp
from dpsql.schema.columns import Type
from dpsql.sql.bind.scalars import Bind, ScalarBinder

_SIZES = {unit.name: unit for unit in ALL_UNITS}
_MONTH = 30 * MICROSECONDS_A_DAY
"""The length of a month where intervals are compared, as in DuckDB."""
_PARTS = {
    "day": (MICROSECONDS_A_DAY, 0),
    "hour": (3_600 * MICROSECONDS_A_SECOND, MICROSECONDS_A_DAY),
    "minute": (60 * MICROSECONDS_A_SECOND, 3_600 * MICROSECONDS_A_SECOND),
    "second": (MICROSECONDS_A_SECOND, 60 * MICROSECONDS_A_SECOND),
    "millisecond": (1_000, 60 * MICROSECONDS_A_SECOND),
    "microsecond": (1, 60 * MICROSECONDS_A_SECOND),
}
"""The length of a part of a time difference, and the larger unit whose remainder it is."""
_HINT = "Write TIME_BUCKET(INTERVAL '15 minutes', t)."


def is_between(expr: Expr) -> bool:
    """Return whether an expression is the time between two timestamps."""
    return isinstance(expr, Call) and expr.function.name == "microseconds_between"


def is_age(node: exp.Expr) -> bool:
    """Return whether a node is a call of AGE."""
    return type(node) is exp.Anonymous and str(node.this).upper() == "AGE"


def beside_interval(node: exp.Expr) -> bool:
    """Return whether a node is compared with an INTERVAL."""
    outer = _comparison_of(node)
    return outer is not None and any(isinstance(each.unnest(), exp.Interval) for each in outer.iter_expressions())


def _comparison_of(node: exp.Expr) -> exp.Expr | None:
    """Return the comparison with the node as an operand, even in parentheses."""
    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    compares = isinstance(outer, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.NEQ | exp.Between)
    return outer if compares else None


def compared(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr | None:
    """Bind INTERVAL compared with the time between two timestamps, or with AGE, in microseconds; None elsewhere."""
    outer = _comparison_of(node)
    if outer is None:
        return None
    others = [each.unnest() for each in outer.iter_expressions() if not isinstance(each.unnest(), exp.Interval)]
    if not others or not all(is_age(each) or is_between(bind(each)) for each in others):
        return None
    unit, amount = interval_of(binder, node)
    size = unit.months * _MONTH if unit.months else unit.microseconds
    return Literal(size * amount, Type.INTEGER)


def part_of(binder: ScalarBinder, part: str, node: exp.Expr, span: Expr) -> Expr | None:
    """Bind EXTRACT from the time between two timestamps: whole days, then the rest, each toward zero; None for other
    parts."""
    if part == "epoch":
        return binder.apply("divide", node, [span, Literal(MICROSECONDS_A_SECOND, Type.INTEGER)])
    if part not in _PARTS:
        return None
    size, whole = _PARTS[part]
    rest = binder.apply("modulo", node, [span, Literal(whole, Type.INTEGER)]) if whole else span
    return binder.apply("int_divide", node, [rest, Literal(size, Type.INTEGER)])


def interval_of(binder: ScalarBinder, node: exp.Expr) -> tuple[Unit, int]:
    """Return the unit and number of a constant INTERVAL. Raises UnsupportedSQL, SQLSyntaxError."""
    word = node.args.get("unit")
    name = UNITS.get(str(word.this).upper()) if isinstance(word, exp.Var) else None
    text = str(node.this.this).strip() if isinstance(node.this, exp.Literal) else ""
    if name is None or not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise SQLSyntaxError("an INTERVAL is a whole number of one unit.", span=binder.span(node), hint=_HINT)
    return _SIZES[name], int(text)


def bucket(binder: ScalarBinder, node: exp.Expr, bind: Bind) -> Expr:
    """Bind TIME_BUCKET(width, t [, origin]) and DATE_BIN(width, t, origin): the start of t's bucket.

    Buckets of months count from January 2000, others from Monday, 3 January 2000, as in DuckDB.
    """
    if not isinstance(node.this, exp.Interval):
        raise SQLSyntaxError("a bucket's width is a constant INTERVAL.", span=binder.span(node), hint=_HINT)
    unit, count = interval_of(binder, node.this)
    if count < 1:
        raise SQLSyntaxError("a bucket is wider than nothing.", span=binder.span(node), hint=_HINT)
    value = bind(node.expression)
    time = binder.as_time(node, value, Type.TIMESTAMP)
    written = node.args.get("unit")
    origin = None if written is None else _origin(binder, node, bind(written))
    if unit.months:
        if origin is not None:
            raise UnsupportedSQL("buckets of months have no origin of their own here.", span=binder.span(node))
        begins = _of_months(binder, node, time, unit.months * count)
    else:
        begins = _of_time(binder, node, time, unit.microseconds * count, origin)
    return binder.apply("timestamp_to_date", node, [begins]) if value.type is Type.DATE else begins


def _origin(binder: ScalarBinder, node: exp.Expr, written: Expr) -> int:
    if isinstance(written, Literal) and isinstance(written.value, str):
        number = read_timestamp(written.value)
        written = written if number is None else Literal(number, Type.TIMESTAMP)
    if not isinstance(written, Literal) or not written.type.temporal or written.value is None:
        raise UnsupportedSQL("a bucket's origin is a constant date or timestamp.", span=binder.span(node), hint=_HINT)
    return int(written.value) * (MICROSECONDS_A_DAY if written.type is Type.DATE else 1)


def _moment(text: str) -> int:
    number = read_timestamp(text)
    assert number is not None  # a constant of this file
    return number


def _number(value: int) -> Literal:
    return Literal(value, Type.INTEGER)


def _pieces(binder: ScalarBinder, node: exp.Expr, apart: Expr, width: int) -> Expr:
    """Return `apart`, which is not negative, rounded down to a multiple of `width`. The result takes only these
    values."""
    whole = binder.apply("int_divide", node, [apart, _number(width)])
    return binder.apply("multiply", node, [whole, _number(width)])


def _of_months(binder: ScalarBinder, node: exp.Expr, time: Expr, width: int) -> Expr:
    """Count from the first month after year 0 that is a whole number of widths before January 2000."""
    months = (2_000 - 1) * 12 % width
    year, month = 1 + months // 12, 1 + months % 12
    start = _moment(f"{year:04}-{month:02}-01") if year <= 9_999 else int(MICROSECONDS.upper)
    first = Literal(start, Type.TIMESTAMP)
    apart = binder.apply("diff_month", node, [first, time])
    begins = binder.apply("add_month", node, [first, _pieces(binder, node, apart, width)])
    return _from(binder, node, time, first, begins)


def _of_time(binder: ScalarBinder, node: exp.Expr, time: Expr, width: int, origin: int | None) -> Expr:
    """Count from the first calendar time that is a whole number of widths before the origin."""
    least = int(MICROSECONDS.lower)
    at = _moment("2000-01-03") if origin is None else origin
    start = least + (at - least) % width
    first = Literal(min(start, int(MICROSECONDS.upper)), Type.TIMESTAMP)
    apart = binder.apply("microseconds_between", node, [time, first])
    begins = binder.apply("add_microsecond", node, [first, _pieces(binder, node, apart, width)])
    return _from(binder, node, time, first, begins)


def _from(binder: ScalarBinder, node: exp.Expr, time: Expr, first: Literal, begins: Expr) -> Expr:
    """Return NULL before `first`: buckets there begin before year 1."""
    assert isinstance(first.value, int)
    if unfiltered(time).range.lower >= first.value:
        return begins
    later = binder.apply("ge", node, [time, first])
    return binder.apply("case", node, [later, begins, Literal(None, Type.TIMESTAMP)])
