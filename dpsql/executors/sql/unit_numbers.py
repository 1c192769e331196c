"""What one unit adds to a group, as an expression over its rows there."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.exact import CountRows, CountUnits, LatticeSum, Part, UnitMean, UnitTotal, UnitWeights
from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.readings import big
from dpsql.plan.expressions import Expr

_WORD = 2**63


def most_of_unit(part: Part) -> int:
    """The most that a unit adds to a group, by size."""
    if isinstance(part, UnitTotal | UnitMean):
        return max(abs(part.least), abs(part.most))
    return part.scale if isinstance(part, UnitWeights) else 1


def number_of(
    part: Part, values: Mapping[Expr, str], steps: Mapping[LatticeSum, str], unit: str, dialect: Dialect
) -> str:
    """What a unit adds to a group: nothing without a value there."""
    if isinstance(part, CountUnits):
        counted = "*" if part.present is None else values[part.present]
        return f"CAST(COUNT({counted}) > 0 AS BIGINT)"
    if isinstance(part, UnitWeights):
        return _weight(part.scale, unit, dialect)
    assert isinstance(part, UnitTotal | UnitMean)  # there is no other part of units
    least, most = big(part.least), big(part.most)
    if isinstance(part.of, CountRows):
        counted = "*" if part.of.present is None else values[part.of.present]
        total = f"COUNT({counted})"
        count = total
    else:
        most_of_row = max(abs(part.of.least), abs(part.of.most))
        total, count = dialect.total(steps[part.of], most_of_row), f"COUNT({steps[part.of]})"
    if isinstance(part, UnitMean):
        total = _mean(total, count, dialect)
    held = f"CASE WHEN {total} < {least} THEN {least} WHEN {total} > {most} THEN {most} ELSE {total} END"
    narrow = max(abs(part.least), abs(part.most)) < _WORD
    held = f"CAST({held} AS BIGINT)" if narrow else held
    return f"CASE WHEN {count} > 0 THEN {held} ELSE 0 END"


def _mean(total: str, count: str, dialect: Dialect) -> str:
    """The nearest whole number to a mean, of halves the even one; the quotient and % go towards zero."""
    total = f"CAST({total} AS {dialect.wide})"
    rest = f"((({total}) % {count} + {count}) % {count})"
    floor = f"({dialect.quotient(f'({total} - {rest})', count)})"
    up = f"2 * {rest} > {count} OR (2 * {rest} = {count} AND {floor} % 2 <> 0)"
    return f"({floor} + CASE WHEN {up} THEN 1 ELSE 0 END)"


def _weight(scale: int, unit: str, dialect: Dialect) -> str:
    """What a unit in so many groups weighs, of rows that are one for each group of it. Roots of whole numbers below
    2^52 are on the right side of the next one."""
    square = dialect.quotient(f"CAST({scale**2} AS BIGINT)", f"COUNT(*) OVER (PARTITION BY {unit})")
    return f"CAST(FLOOR(SQRT(CAST({square} AS DOUBLE))) AS BIGINT)"
