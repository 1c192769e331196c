"""Exact aggregates inside one privacy unit, as text: the same values on every engine, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpsql.executors.sql.dialect import Dialect, MissingFeature
from dpsql.plan.aggregates import Aggregation
from dpsql.schema.columns import Type

Template = Callable[[str, Type, Dialect], str]
_LARGEST = 2**62


def aggregate_text(each: Aggregation, argument: str | None, kind: Type, dialect: Dialect) -> str:
    """Return one aggregate over rows with the argument as a column, of the type `kind`."""
    if argument is None:
        return "COUNT(*)"
    assert each.argument is not None  # its text is given
    if each.kind.distinct:
        return f"COUNT(DISTINCT {argument})"
    if each.kind.counts:
        return f"COUNT({argument})"
    made = TEMPLATES.get(each.kind.name)
    if made is None:
        raise MissingFeature(f"{each.kind.name} inside a privacy unit")
    text = made(argument, each.argument.type, dialect)
    return f"CAST({text} AS DOUBLE)" if kind is Type.REAL and each.argument.type is not Type.REAL else text


def _sum(argument: str, kind: Type, dialect: Dialect) -> str:
    """Return a sum. Reals are added one by one in ascending order from 0.0: the sum of doubles depends on the order, so
    this makes it a function of the values. Integers: the exact sum, clipped to +/- 2^62."""
    if kind is Type.REAL:
        return _without_nan(dialect.ordered_sum(argument))
    held = f"CAST(LEAST(GREATEST({_total(argument, kind, dialect)}, {-_LARGEST}), {_LARGEST}) AS BIGINT)"
    return f"CASE WHEN COUNT({argument}) > 0 THEN {held} END"


def _average(argument: str, kind: Type, dialect: Dialect) -> str:
    """Return the sum divided once; for integers the unclipped sum, by its two halves as doubles."""
    if kind is Type.REAL:
        return _without_nan(f"{dialect.ordered_sum(argument)} / COUNT({argument})")
    high, low = dialect.halves(_total(argument, kind, dialect))
    return f"({high} + {low}) / COUNT({argument})"


def _total(argument: str, kind: Type, dialect: Dialect) -> str:
    if kind not in (Type.INTEGER, Type.BOOLEAN):
        raise MissingFeature(f"sums of values of type {kind} inside a privacy unit")
    return dialect.total(f"CAST({argument} AS BIGINT)", _LARGEST)


def _without_nan(text: str) -> str:
    return f"NULLIF({text}, CAST('NaN' AS DOUBLE))"


def _extreme(name: str) -> Template:
    def made(argument: str, kind: Type, _dialect: Dialect) -> str:
        return f"{name}({argument} + 0.0e0)" if kind is Type.REAL else f"{name}({argument})"

    return made


TEMPLATES: Mapping[str, Template] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme("MIN"),
    "MAX": _extreme("MAX"),
}
