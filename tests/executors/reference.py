"""Exact plans in plain Python, row by row: slow, and written without the engine's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from dpsql.executors.base import CountRows, ExactPlan, ExactTable, LatticeSum, Part
from dpsql.schema import Type
from dpsql.sql.expressions import Call, Column, Expr, Literal
from dpsql.sql.plan import GroupKey, filters_of

Row = Mapping[str, Any]
Exact = dict[tuple[Any, ...], tuple[int, ...]]
LARGEST = 2**62


def execute(plan: ExactPlan, rows: Sequence[Row]) -> Exact:
    """Group -> its integers; every group with `every_cell`, else those that have rows."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    if plan.every_cell or not plan.keys:
        listed = [key.values or () for key in plan.keys]
        groups = {cell: [0] * len(plan.parts) for cell in product(*listed)}
    for row in rows:
        if not all(value(predicate, row) is True for predicate in filters_of(plan.source)):
            continue
        cell = tuple(_inside(key, _key(value(key.expr, row))) for key in plan.keys)
        if any(key.values is not None and each not in key.values for key, each in zip(plan.keys, cell, strict=True)):
            continue
        sums = groups.setdefault(cell, [0] * len(plan.parts))
        for place, part in enumerate(plan.parts):
            sums[place] += adds(part, row)
    return {cell: tuple(sums) for cell, sums in groups.items()}


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
    if isinstance(part, CountRows):
        return int(part.present is None or value(part.present, row) is not None)
    held = value(part.value, row)
    return 0 if held is None else steps(part, held)


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
        return row[expr.name]
    assert isinstance(expr, Call)
    args = [value(each, row) for each in expr.args]
    name = expr.function.name
    if name in _NULLS:
        result = _NULLS[name](args)
    elif name in ("least", "greatest"):
        present = [each for each in args if each is not None]
        result = (min if name == "least" else max)(present) if present else None
    elif None in args:
        return None
    else:
        result = _STRICT[name](expr.type, args)
    if result is None or expr.type not in (Type.REAL, Type.INTEGER):
        return result
    if expr.type is Type.INTEGER:
        return int(result)
    real = float(result)
    return None if math.isnan(real) else real


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
}


def _divide(_kind: Type, args: list[Any]) -> Any:
    a, b = float(args[0]), float(args[1])
    return None if b == 0 else a / b


def _int_divide(kind: Type, args: list[Any]) -> Any:
    a, b = args
    if b == 0:
        return None
    if kind is Type.INTEGER:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
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
        return min(max(rounded, -LARGEST), LARGEST) if kind is Type.INTEGER else rounded

    return compute


def _away(held: float) -> float:
    whole = math.trunc(held)
    return whole + (math.copysign(1, held) if abs(held - whole) >= 0.5 else 0)


def _round(kind: Type, args: list[Any]) -> Any:
    if len(args) == 1:
        return _whole(_away)(kind, args)
    held, digits = float(args[0]), float(args[1])
    if math.isinf(held):
        return held
    rounded = _away(held * 10.0**digits) / 10.0**digits if digits >= 0 else _away(held / 10.0**-digits) * 10.0**-digits
    return rounded if math.isfinite(rounded) else held


def _clamp(_kind: Type, args: list[Any]) -> Any:
    return min(max(args[0], args[1]), args[2])


def _product(kind: Type, args: list[Any]) -> Any:
    a, b = args
    return a * b if kind is Type.INTEGER else float(a) * float(b)


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
    "divide": _divide,
    "int_divide": _int_divide,
    "modulo": _modulo,
    "negate": lambda _k, a: -a[0],
    "abs": lambda _k, a: abs(a[0]),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _round,
    "clamp": _clamp,
}
