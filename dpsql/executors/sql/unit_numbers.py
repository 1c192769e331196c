"""One unit's contribution to a group, as an expression over its rows there."""

from __future__ import annotations

from dpsql.core.exact import CountRows, CountUnits, Part, UnitMean, UnitTotal, UnitWeights
from dpsql.executors.sql.contributions import Contributions
from dpsql.executors.sql.dialect import Dialect
from dpsql.executors.sql.row_values import big

_WORD = 2**63


def most_of_unit(part: Part) -> int:
    """Return the most that a unit adds to a group, by size."""
    if isinstance(part, UnitTotal | UnitMean):
        return max(abs(part.least), abs(part.most))
    return part.scale if isinstance(part, UnitWeights) else 1


def number_of(part: Part, name: str, of: Contributions, unit: str, dialect: Dialect) -> list[dict[str, str]]:
    """Return the unit's contribution to a group, 0 without a value there, as columns: the first over its rows in the
    group, others over those before them, the last with this name. Dividends are columns, so that they are computed
    once."""
    if isinstance(part, CountUnits):
        counted = "*" if part.present is None else of.values[part.present]
        return [{name: f"CAST(COUNT({counted}) > 0 AS BIGINT)"}]
    if isinstance(part, UnitWeights):
        return [{name: _weight(part.scale, unit, dialect)}]
    assert isinstance(part, UnitTotal | UnitMean)  # the only other parts of units
    total, count, number = f"{name}t", f"{name}c", f"{name}t"
    if isinstance(part.of, CountRows):
        counted = "*" if part.of.present is None else of.values[part.of.present]
        columns = [{total: f"COUNT({counted})", count: f"COUNT({counted})"}]
    else:
        counted = "*" if part.of in of.never_null else of.steps[part.of]
        most_of_row = max(abs(part.of.least), abs(part.of.most))
        columns = [{total: dialect.total(of.steps[part.of], most_of_row), count: f"COUNT({counted})"}]
    if isinstance(part, UnitMean):
        number = f"{name}m"
        columns += _mean(number, total, count, dialect)
    least, most = big(part.least), big(part.most)
    held = f"CASE WHEN {number} < {least} THEN {least} WHEN {number} > {most} THEN {most} ELSE {number} END"
    narrow = max(abs(part.least), abs(part.most)) < _WORD
    held = f"CAST({held} AS BIGINT)" if narrow else held
    return [*columns, {name: f"CASE WHEN {count} > 0 THEN {held} ELSE 0 END"}]


def _mean(name: str, total: str, count: str, dialect: Dialect) -> list[dict[str, str]]:
    """Round a mean to the nearest whole number, half to even: the quotient towards 0, which is at most the size of a
    row's step, or one further from 0."""
    quotient, rest = f"{name}q", f"{name}r"
    wide = f"CAST({total} AS {dialect.wide})"
    further = f"2 * ABS({rest}) > {count} OR (2 * ABS({rest}) = {count} AND {quotient} % 2 <> 0)"
    one = f"CASE WHEN {rest} < 0 THEN -1 ELSE 1 END"
    return [
        {quotient: f"CAST({dialect.quotient(wide, count)} AS BIGINT)"},
        {rest: f"CAST({wide} - CAST({quotient} AS {dialect.wide}) * {count} AS BIGINT)"},
        {name: f"{quotient} + CASE WHEN {further} THEN {one} ELSE 0 END"},
    ]


def _weight(scale: int, unit: str, dialect: Dialect) -> str:
    """Return the weight of a unit in that many groups, over rows that are one for each of its groups. Square roots of
    whole numbers below 2^52 never round up to a whole number."""
    square = dialect.quotient(f"CAST({scale**2} AS BIGINT)", f"COUNT(*) OVER (PARTITION BY {unit})")
    return f"CAST(FLOOR(SQRT(CAST({square} AS DOUBLE))) AS BIGINT)"
