"""Exact plans in plain Python, row by row: slow, and written without the engine's arrays.

Dates and timestamps are computed with as `datetime`; rows and results hold them as whole numbers, or rows as they are.
"""

from __future__ import annotations

import calendar
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dpsql.core.exact import (
    SHARE_STEPS,
    CellPart,
    CountDistinct,
    CountRows,
    Edges,
    ExactPlan,
    ExactTable,
    GridCounts,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    LeadingDigits,
    Part,
)
from dpsql.plan.expressions import Call, Column, Expr, Literal
from dpsql.plan.nodes import filters_of
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Type

Row = Mapping[str, Any]
Exact = dict[tuple[Any, ...], tuple[int, ...]]
LEAST, MOST = -(2**63), 2**63 - 1
"""The integers."""


def execute(plan: ExactPlan, rows: Sequence[Row]) -> Exact:
    """Group -> its integers; every group with `every_cell`, else those that have rows."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    if plan.every_cell or not plan.keys:
        listed = [key.values or () for key in plan.keys]
        groups = {cell: [0] * len(plan.parts) for cell in product(*listed) if stand_together(plan, cell)}
    seen: dict[tuple[Any, int], set[Any]] = {}
    for cell, row in kept(plan, rows):
        sums = groups.setdefault(cell, [0] * len(plan.parts))
        for place, part in enumerate(plan.parts):
            if isinstance(part, CountDistinct):
                held = value(part.value, row)
                if held is not None:
                    seen.setdefault((cell, place), set()).add(_key(held))
                sums[place] = len(seen.get((cell, place), ()))
            else:
                sums[place] += adds(part, row)
    return {cell: tuple(sums) for cell, sums in groups.items()}


def kept(plan: ExactPlan, rows: Sequence[Row]) -> Iterator[tuple[tuple[Any, ...], Row]]:
    """The rows that the filters and keys let through, each with its group."""
    for row in rows:
        if not all(value(predicate, row) is True for predicate in filters_of(plan.source)):
            continue
        cell = tuple(_inside(key, _key(value(key.expr, row))) for key in plan.keys)
        inside = all(key.values is None or each in key.values for key, each in zip(plan.keys, cell, strict=True))
        if inside and stand_together(plan, cell):
            yield cell, row


def stand_together(plan: ExactPlan, cell: tuple[Any, ...]) -> bool:
    """Whether public rows have all that a group says of keys that stand together."""
    numbers = {key.together.number for key in plan.keys if key.together is not None}
    for number in numbers:
        own = [place for place, key in enumerate(plan.keys) if key.together and key.together.number == number]
        columns = [[(plan.keys[place].values or ())[at] for at in plan.keys[place].together.places] for place in own]
        if tuple(cell[place] for place in own) not in set(zip(*columns, strict=True)):
            return False
    return True


def grids(plan: ExactPlan, rows: Sequence[Row]) -> list[dict[tuple[Any, int], int]]:
    """For each grid: how many rows there are by group and point."""
    counted: list[dict[tuple[Any, int], int]] = [{} for _ in plan.grids]
    for cell, row in kept(plan, rows):
        for grid, counts in zip(plan.grids, counted, strict=True):
            place = point(grid, row)
            if place is not None:
                counts[cell, place] = counts.get((cell, place), 0) + 1
    return counted


def point(grid: GridCounts, row: Row) -> int | None:
    """The place of a row on a grid."""
    of = grid.of
    if isinstance(of, GroupKey):
        held = _inside(of, _key(value(of.expr, row)))
        listed = of.values or ()
        return listed.index(held) if held in listed else None
    held = value(of.value, row)
    if held is None:
        return None
    if isinstance(of, LeadingDigits):
        return leading(of, float(held))
    return bisect_left(of.edges, float(held)) if isinstance(of, Edges) else steps(of, held) - of.least


def leading(of: LeadingDigits, number: float) -> int:
    """By the number itself, in place of its bits: 2^e (1 + f) with f in [0, 1), or 2^-1022 f below 2^-1022."""
    size, digits = abs(number), 2**of.digits
    if math.isinf(size):
        place = 2047 * digits
    elif size < 2.0**-1022:
        place = int(Fraction(size) * 2**1022 * digits)
    else:
        mantissa, exponent = math.frexp(size)
        place = (exponent + 1022) * digits + int((Fraction(mantissa) * 2 - 1) * digits)
    return 2**11 * digits + (-1 - place if number < 0 else place)


def _inside(key: GroupKey, cell: Any) -> Any:
    """A value outside the owner's list counts as NULL where NULL is listed."""
    listed = key.values if key.listed and key.values is not None else ()
    return None if None in listed and cell not in listed else cell


def _key(cell: Any) -> Any:
    return cell + 0.0 if isinstance(cell, float) else cell


def found(table: ExactTable) -> Exact:
    """What an executor gave, in the same form."""
    keys = [
        [cell if present else None for cell, present in zip(key.values.tolist(), key.where_valid(), strict=True)]
        for key in table.keys
    ]
    cells = list(zip(*keys, strict=True)) if keys else [()] * table.groups
    sums = {cell: tuple(int(each) for each in table.parts[:, place]) for place, cell in enumerate(cells)}
    assert len(sums) == table.groups
    return sums


def adds(part: Part, row: Row) -> int:
    """The integer that one row adds."""
    if isinstance(part, CellPart):
        true = [number for number, each in enumerate(part.alternatives, 1) if value(each, row) is True]
        return adds(part.of, row) if true[:1] == [part.number] else 0
    if isinstance(part, CountRows):
        return int(part.present is None or value(part.present, row) is not None)
    if isinstance(part, LatticeProduct | LatticeShare):
        first, second = value(part.first.value, row), value(part.second.value, row)
        if first is None or second is None:
            return 0
        return product_of(part, first, second) if isinstance(part, LatticeProduct) else share_of(part, first, second)
    assert isinstance(part, LatticeSum)
    held = value(part.value, row)
    return 0 if held is None else steps(part, held)


def product_of(part: LatticeProduct, first: Any, second: Any) -> int:
    """The product of two values, each from -1 to 1 between the ends of its lattice, in steps of 1 / most."""
    pairs = ((part.first, first), (part.second, second))
    if part.whole:
        left, right = (2 * steps(of, held) - of.most for of, held in pairs)
        return int(left * right)
    left, right = (steps(of, held) * (2 / of.most) - 1 for of, held in pairs)
    return min(max(round(left * right * part.most), -part.most), part.most)


def share_of(part: LatticeShare, first: Any, second: Any) -> int:
    """A share of a row: every one is rounded down but the middle or the last, which takes the rest."""
    own = _bernstein(part.degrees[0], steps(part.first, first))
    other = _bernstein(part.degrees[1], steps(part.second, second))
    divided = [own[part.index[0]] * each // SHARE_STEPS for each in other[:-1]]
    return [*divided, own[part.index[0]] - sum(divided)][part.index[1]]


def _bernstein(degree: int, held: int) -> list[int]:
    y = Fraction(held, SHARE_STEPS)
    exact = [math.comb(degree, i) * y**i * (1 - y) ** (degree - i) for i in range(degree + 1)]
    rounded = [math.floor(each * SHARE_STEPS) for each in exact]
    rest = degree // 2
    rounded[rest] += SHARE_STEPS - sum(rounded)
    return rounded


def _clipped(part: LatticeSum, held: Any) -> float:
    return min(max(float(held), float(part.lower)), float(part.upper))


def steps(part: LatticeSum, held: Any) -> int:
    """The lattice steps of one value."""
    if part.whole:
        clipped = min(max(int(held), math.ceil(part.lower)), math.floor(part.upper))
        return min(max(clipped - math.ceil(part.origin), part.least), part.most)
    clipped = min(max(float(held), part.lower), part.upper)
    scaled = (clipped - part.origin) * part.steps_per_unit
    return (
        min(max(round(scaled), part.least), part.most) if math.isfinite(scaled) else min(max(0, part.least), part.most)
    )


def value(expr: Expr, row: Row) -> Any:
    """The value of an expression for one row, None for NULL."""
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Column):
        return _held(row[expr.name], expr.type)
    assert isinstance(expr, Call)
    args = [value(each, row) for each in expr.args]
    name = expr.function.name
    kinds = [each.type for each in expr.args]
    if name in _NULLS:
        result = _NULLS[name](args)
    elif name in ("least", "greatest"):
        present = [each for each in args if each is not None]
        result = (min if name == "least" else max)(present) if present else None
    elif None in args:
        return None
    elif name in _STRICT:
        result = _STRICT[name](expr.type, args)
    else:
        shown = [_time(each, kind) if kind.temporal else each for each, kind in zip(args, kinds, strict=True)]
        result = _held(_worded(name, shown), expr.type)
    if result is None or expr.type not in (Type.REAL, Type.INTEGER):
        return result
    if expr.type is Type.INTEGER:
        return int(result)
    real = float(result)
    return None if math.isnan(real) else real


EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)


def _held(cell: Any, kind: Type) -> Any:
    """A cell as the engine holds it: whole numbers for times."""
    if isinstance(cell, date) and kind is Type.DATE:
        return cell.toordinal() - EPOCH.toordinal()
    if isinstance(cell, date):
        moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
        return (moment - EPOCH) // MICROSECOND
    return cell


def _time(cell: int, kind: Type) -> date:
    if kind is Type.DATE:
        return date.fromordinal(cell + EPOCH.toordinal())
    return EPOCH + cell * MICROSECOND


def _worded(name: str, args: list[Any]) -> Any:
    """Functions that are many: casts, parts and units of time."""
    before, _, after = name.partition("_")
    if before == "extract":
        return _PARTS[after.removesuffix("_of_date")](_moment(args[0]))
    if before in ("trunc", "add", "diff") and after in _UNITS:
        try:
            return {"trunc": _truncated, "add": _later, "diff": _apart}[before](after, *args)
        except OverflowError:  # beyond the years 1 to 9999
            return None
    if before == "regexp":
        return _pattern(after, *args)
    source, _, target = name.rpartition("to_")
    return _cast(source.rstrip("_"), target, args) if target in _CASTS else _TIMES[name](*args)


# Casts.

_WIDTHS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64}
_NUMBER = r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*"
_CASTS = (*_WIDTHS, *("u" + width for width in _WIDTHS), "double", "float", "decimal", "boolean", "text", "date",
          "timestamp")  # fmt: skip


def _cast(source: str, target: str, args: list[Any]) -> Any:
    cell = args[0]
    if target == "text":
        return _written(cell)
    if target in ("date", "timestamp"):
        found = _read_time(cell) if isinstance(cell, str) else _moment(cell)
        return None if found is None else found.date() if target == "date" else found
    if target == "boolean":
        return _TRUTHS.get(cell.strip().lower()) if isinstance(cell, str) else cell != 0
    if source == "text":
        found = re.fullmatch(_NUMBER, cell, re.ASCII)
        if target == "decimal" and "e" in cell.lower():
            return None
        if found is None:
            infinite = re.fullmatch(r"\s*([+-]?)(inf|infinity)\s*", cell, re.ASCII | re.IGNORECASE)
            return float(infinite[1] + "inf") if infinite and target in ("double", "float") else None
        cell = float(found[1]) if target in ("double", "float") else Fraction(found[1])
    if target in ("double", "float"):
        narrow = float(cell) if target == "double" else float(np.float32(float(cell)))
        return None if math.isinf(narrow) and not math.isinf(float(cell)) else narrow
    if target == "decimal":
        digits, scale = args[1], args[2]
        if math.isinf(cell):
            return None
        scaled = _away(Fraction(cell) * 10**scale if source == "text" else float(cell) * 10.0**scale)
        return scaled / 10.0**scale if abs(scaled) < 10**digits else None
    whole = _away(cell) if source == "text" else round(cell) if math.isfinite(cell) else None
    return whole if whole is not None and _fits(int(whole), target) else None


def _fits(whole: int, target: str) -> bool:
    if target in ("bigint", "ubigint"):
        return (0 if target[0] == "u" else LEAST) <= whole <= MOST
    bits = _WIDTHS[target.removeprefix("u")]
    return 0 <= whole < 2**bits if target[0] == "u" else -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1)


_TRUTHS = {
    **dict.fromkeys(("true", "t", "1", "yes", "y"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n"), False),
}


def _written(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime):
        text = str(cell)
        return text.rstrip("0") if "." in text else text
    return str(cell)


def _read_time(text: str) -> datetime | None:
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"):
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    return None


# Times.


def _moment(cell: date) -> datetime:
    return cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)


_PARTS: Mapping[str, Callable[[datetime], Any]] = {
    "century": lambda t: (t.year + 99) // 100,
    "decade": lambda t: t.year // 10,
    "year": lambda t: t.year,
    "isoyear": lambda t: t.isocalendar()[0],
    "quarter": lambda t: (t.month + 2) // 3,
    "month": lambda t: t.month,
    "week": lambda t: t.isocalendar()[1],
    "day": lambda t: t.day,
    "dayofyear": lambda t: t.timetuple().tm_yday,
    "dayofweek": lambda t: t.isoweekday() % 7,
    "isodow": lambda t: t.isoweekday(),
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "millisecond": lambda t: t.second * 1000 + t.microsecond // 1000,
    "microsecond": lambda t: t.second * 1_000_000 + t.microsecond,
    "epoch": lambda t: ((t - EPOCH) // MICROSECOND) / 1_000_000,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_UNITS = {
    **_MONTHS,
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": MICROSECOND,
}


def _truncated(unit: str, at: datetime) -> datetime | None:
    if unit in _MONTHS:
        months = (12 * at.year + at.month - 1) // _MONTHS[unit] * _MONTHS[unit]
        return datetime(months // 12, months % 12 + 1, 1) if months >= 12 else None
    start = EPOCH - timedelta(days=3) if unit == "week" else EPOCH
    return start + (at - start) // _UNITS[unit] * _UNITS[unit]


def _later(unit: str, at: datetime, count: int) -> datetime | None:
    if unit not in _MONTHS:
        return at + count * _UNITS[unit]
    months = 12 * at.year + at.month - 1 + count * _MONTHS[unit]
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return None
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def _apart(unit: str, first: datetime, second: datetime) -> int:
    """How many beginnings of units lie between; weeks are seven days."""
    if unit in _MONTHS:
        pieces = [(12 * at.year + at.month - 1) // _MONTHS[unit] for at in (first, second)]
        return pieces[1] - pieces[0]
    if unit == "week":
        days = (_midnight(second) - _midnight(first)).days
        return abs(days) // 7 * (1 if days > 0 else -1)
    return (second - EPOCH) // _UNITS[unit] - (first - EPOCH) // _UNITS[unit]


def _midnight(at: datetime) -> datetime:
    return datetime(at.year, at.month, at.day)


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return None


def _days_later(day: date, count: int) -> date | None:
    try:
        return day + timedelta(days=count)
    except OverflowError:
        return None


def _last_day(at: date) -> date:
    return date(at.year, at.month, calendar.monthrange(at.year, at.month)[1])


def _pattern(how: str, text: str, pattern: str, *more: Any) -> Any:
    """Patterns that Python's own library reads as RE2 does, which those of plain letters and signs are."""
    if how == "matches":
        return re.search(pattern, text) is not None
    if how == "full_match":
        return re.fullmatch(pattern, text) is not None
    if how == "extract":
        (group,) = more or (0,)
        if not 0 <= group <= 9:
            return None
        found = re.search(pattern, text)
        return "" if found is None or group > found.re.groups else found[group] or ""
    (new,) = more
    if re.search(r"\\[^0-9\\]", new):  # no replacement
        return None
    return re.sub(pattern, lambda _: new, text, count=int(how == "replace"))


_TIMES: Mapping[str, Callable[..., Any]] = {
    "add_days": _days_later,
    "subtract_days": lambda day, count: _days_later(day, -count),
    "days_between": lambda a, b: (a - b).days,
    "microseconds_between": lambda a, b: (a - b) // MICROSECOND,
    "make_date": _make_date,
    "last_day": _last_day,
    "last_day_of_date": _last_day,
    "dayname": lambda at: calendar.day_name[at.weekday()],
    "dayname_of_date": lambda at: calendar.day_name[at.weekday()],
    "monthname": lambda at: calendar.month_name[at.month],
    "monthname_of_date": lambda at: calendar.month_name[at.month],
}


# Texts.

MOST_CHARACTERS = 16_384


def _short(text: str) -> str | None:
    return text if len(text) <= MOST_CHARACTERS else None


def _part_of(text: str, separator: str, number: int) -> str:
    """By walking from separator to separator; from the end below 0."""
    parts, rest = [], text
    while separator and separator in rest:
        at = rest.index(separator)
        parts.append(rest[:at])
        rest = rest[at + len(separator) :]
    parts = [*parts, rest] if separator else [*text]
    counted = (
        dict(enumerate(parts, 1)) | dict(enumerate(reversed(parts), 1)) if number < 0 else dict(enumerate(parts, 1))
    )
    return counted.get(abs(number), "")


def _substring(text: str, start: int, length: int | None = None) -> str | None:
    first = start - 1 if start >= 0 else len(text) + start
    last = len(text) if length is None else first + length
    low, high = min(first, last), max(first, last)
    if not all(-(2**32) <= each < 2**32 for each in (start, length or 0)):
        return None
    return "".join(sign for place, sign in enumerate(text) if low <= place < high)


def _left(text: str, count: int) -> str | None:
    return text[:count] if count < 2**32 else None


def _right(text: str, count: int) -> str:
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


def _pad(text: str, count: int, pad: str, *, left: bool) -> str | None:
    missing = count - len(text)
    if missing <= 0:
        return text[: max(0, count)] if count <= MOST_CHARACTERS else None
    if not pad or count > MOST_CHARACTERS:
        return None
    more = (pad * missing)[:missing]
    return _short(more + text if left else text + more)


def _like(text: str, pattern: str, escape: str = "") -> bool | None:
    if len(escape) > 1 or not escape.isascii() or escape == "%":
        return None
    signs, form = iter(pattern), ""
    for sign in signs:
        if escape and sign == escape:
            literal = next(signs, None)
            if literal is None:
                return None
            form += re.escape(literal)
        else:
            form += {"%": ".*", "_": "."}.get(sign) or re.escape(sign)
    return re.fullmatch(form, text, re.DOTALL) is not None


def _concat(args: list[Any]) -> str | None:
    return _short("".join(each for each in args if each is not None))


def _concat_ws(args: list[Any]) -> str | None:
    return None if args[0] is None else _short(args[0].join(each for each in args[1:] if each is not None))


_SPACES = " \u00a0\u3000"


def _cased(text: str, how: Callable[[str], str]) -> str:
    """Letter by letter, where that gives one letter."""
    return "".join(how(sign) if len(how(sign)) == 1 else {"ß": "ẞ"}.get(sign, sign) for sign in text)


# Conditions.


def _case(args: list[Any]) -> Any:
    for condition, arm in zip(args[:-1:2], args[1::2], strict=True):
        if condition is True:
            return arm
    return args[-1]


def _alike(args: list[Any]) -> bool:
    return args[0] is None and args[1] is None if None in args else bool(args[0] == args[1])


def _and(args: list[Any]) -> Any:
    return False if False in args else None if None in args else True


def _or(args: list[Any]) -> Any:
    return True if True in args else None if None in args else False


def _in(args: list[Any]) -> Any:
    needle, listed = args[0], args[1:]
    if needle is None:
        return None
    return True if needle in [each for each in listed if each is not None] else None if None in listed else False


def _coalesce(args: list[Any]) -> Any:
    return next((each for each in args if each is not None), None)


def _nullif(args: list[Any]) -> Any:
    return None if args[0] is not None and args[1] is not None and args[0] == args[1] else args[0]


_NULLS: Mapping[str, Callable[[list[Any]], Any]] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "is_null": lambda args: args[0] is None,
    "is_true": lambda args: args[0] is True,
    "is_false": lambda args: args[0] is False,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "case": _case,
    "not_distinct": _alike,
    "distinct": lambda args: not _alike(args),
    "concat": _concat,
    "concat_ws": _concat_ws,
}


def _integer(whole: int) -> int | None:
    """NULL where 64 bits do not hold it."""
    return whole if LEAST <= whole <= MOST else None


def _divide(_kind: Type, args: list[Any]) -> Any:
    a, b = float(args[0]), float(args[1])
    return None if b == 0 else a / b


def _int_divide(kind: Type, args: list[Any]) -> Any:
    a, b = args
    if b == 0:
        return None
    if kind is Type.INTEGER:
        return _integer(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    quotient = float(a) / float(b)
    return quotient if math.isinf(quotient) or math.isnan(quotient) else float(math.trunc(quotient))


def _modulo(kind: Type, args: list[Any]) -> Any:
    a, b = args
    if b == 0:
        return None
    if kind is Type.INTEGER:
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return None if math.isinf(a) or math.isnan(a) else math.fmod(float(a), float(b))


def _whole(operation: Callable[[float], float]) -> Callable[[Type, list[Any]], Any]:
    def compute(kind: Type, args: list[Any]) -> Any:
        held = args[0]
        rounded = held if isinstance(held, int) or math.isinf(held) else operation(held)
        return min(max(rounded, LEAST), MOST) if kind is Type.INTEGER else rounded

    return compute


def _away(held: float) -> float:
    whole = math.trunc(held)
    return whole + (math.copysign(1, held) if abs(held - whole) >= 0.5 else 0)


def _round(kind: Type, args: list[Any]) -> Any:
    if len(args) == 1:
        return _whole(_away)(kind, args)
    return _to_digits(kind, args, _away)


def _to_digits(kind: Type, args: list[Any], operation: Callable[[float], float]) -> Any:
    """To some digits after the point, or before it; integers exactly. What a float cannot scale stays as it is."""
    held, digits = args
    if kind is Type.INTEGER:
        power = 10 ** min(max(0, -digits), 30)
        near = Fraction(held, power)
        whole = int(_away(near) if operation is _away else math.trunc(near)) * power
        return _integer(whole)
    if math.isinf(held):
        return held
    if digits < -308:  # DuckDB's power is infinite there
        return 0.0 if operation is _away else held
    with np.errstate(all="ignore"):
        power = np.float64(10.0 ** min(abs(digits), 308)) * (10.0 if abs(digits) > 308 else 1.0)
        scaled = np.float64(held) * power if digits >= 0 else np.float64(held) / power
        if not np.isfinite(scaled):
            return held
        rounded = float(operation(float(scaled)) / power if digits >= 0 else operation(float(scaled)) * power)
    return rounded if math.isfinite(rounded) else held


def _clamp(_kind: Type, args: list[Any]) -> Any:
    return min(max(args[0], args[1]), args[2])


def _product(kind: Type, args: list[Any]) -> Any:
    a, b = args
    return a * b if kind is Type.INTEGER else float(a) * float(b)


def _trunc(kind: Type, args: list[Any]) -> Any:
    if len(args) == 1:
        return _whole(math.trunc)(kind, args)
    return _to_digits(kind, args, math.trunc)


def _real(function: Any, defined: Callable[..., bool] = lambda *_args: True) -> Callable[[Type, list[Any]], Any]:
    """NumPy's function of floats: which library computes logarithms is not what is tested."""

    def compute(_kind: Type, args: list[Any]) -> Any:
        floats = [float(each) for each in args]
        if not defined(*floats):
            return None
        with np.errstate(all="ignore"):
            return float(function(*(np.array([each, 1.0]) for each in floats))[0])  # of one cell it may be another

    return compute


def _positive(x: float) -> bool:
    return x > 0


_STRICT: Mapping[str, Callable[[Type, list[Any]], Any]] = {
    "eq": lambda _k, a: a[0] == a[1],
    "ne": lambda _k, a: a[0] != a[1],
    "lt": lambda _k, a: a[0] < a[1],
    "le": lambda _k, a: a[0] <= a[1],
    "gt": lambda _k, a: a[0] > a[1],
    "ge": lambda _k, a: a[0] >= a[1],
    "not": lambda _k, a: not a[0],
    "add": lambda _k, a: a[0] + a[1],
    "subtract": lambda _k, a: a[0] - a[1],
    "multiply": _product,
    "of_steps": _product,
    "divide": _divide,
    "int_divide": _int_divide,
    "modulo": _modulo,
    "negate": lambda k, a: _integer(-a[0]) if k is Type.INTEGER else -a[0],
    "abs": lambda k, a: _integer(abs(a[0])) if k is Type.INTEGER else abs(a[0]),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _round,
    "clamp": _clamp,
    "trunc": _trunc,
    "sign": lambda _k, a: (a[0] > 0) - (a[0] < 0),
    "sqrt": _real(np.sqrt, lambda x: x >= 0),
    "cbrt": _real(np.cbrt),
    "exp": _real(np.exp),
    "ln": _real(np.log, _positive),
    "log10": _real(np.log10, _positive),
    "log2": _real(np.log2, _positive),
    "log_base": _real(lambda b, x: np.log10(x) / np.log10(b), lambda b, x: b > 0 and b != 1 and x > 0),
    "power": _real(np.power, lambda x, y: x != 0 or y >= 0),
    "degrees": _real(np.degrees),
    "radians": _real(np.radians),
    "sin": _real(np.frompyfunc(math.sin, 1, 1), math.isfinite),
    "cos": _real(np.frompyfunc(math.cos, 1, 1), math.isfinite),
    "tan": _real(np.frompyfunc(math.tan, 1, 1), math.isfinite),
    "pi": lambda _k, _a: math.pi,
    "upper": lambda _k, a: _cased(a[0], str.upper),
    "lower": lambda _k, a: _cased(a[0], str.lower),
    "trim": lambda _k, a: a[0].strip(*(a[1:] or [_SPACES])),
    "ltrim": lambda _k, a: a[0].lstrip(*(a[1:] or [_SPACES])),
    "rtrim": lambda _k, a: a[0].rstrip(*(a[1:] or [_SPACES])),
    "length": lambda _k, a: len(a[0]),
    "strpos": lambda _k, a: a[0].find(a[1]) + 1,
    "substring": lambda _k, a: _substring(*a),
    "left": lambda _k, a: _left(*a),
    "right": lambda _k, a: _right(*a),
    "reverse": lambda _k, a: "".join(reversed(a[0])),
    "text_join": lambda _k, a: _short(a[0] + a[1]),
    "replace": lambda _k, a: _short(a[0].replace(a[1], a[2]) if a[1] else a[0]),
    "split_part": lambda _k, a: _part_of(*a),
    "repeat": lambda _k, a: a[0] * a[1] if len(a[0]) * a[1] <= MOST_CHARACTERS else None,
    "lpad": lambda _k, a: _pad(*a, left=True),
    "rpad": lambda _k, a: _pad(*a, left=False),
    "starts_with": lambda _k, a: a[0].startswith(a[1]),
    "ends_with": lambda _k, a: a[0].endswith(a[1]),
    "contains": lambda _k, a: a[1] in a[0],
    "like": lambda _k, a: _like(*a),
    "ilike": lambda _k, a: _like(*(_cased(each, str.lower) for each in a)),
}
