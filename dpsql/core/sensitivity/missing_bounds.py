"""The error for an aggregate without bounds for its values: why bounds are needed, and where to write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.errors import MissingBounds
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, Slot, call, columns, rebuild, walk
from dpsql.plan.facts import Known, fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Source, scans_of
from dpsql.plan.prior_releases import VERSION as SHOWN
from dpsql.schema.calendar import MICROSECONDS_A_DAY, read_timestamp
from dpsql.schema.columns import EARLIER, Type

_SCALED = "Noise is scaled to how much one person can change the {}; without bounds that is unlimited.\n"
_CHOICE = (
    "These bounds are an example:\n"
    "choose bounds that most values lie between, from what you know and not from the data."
)
_FIRST, _LAST = "2000-01-01", "2030-12-31"


def missing_bounds(
    aggregation: Aggregation, expr: Expr, source: Source, known: Known, written: Mapping[Expr, Expr]
) -> MissingBounds:
    """Return the error for an aggregation with an argument of unbounded range. `written`: parts of its arguments whose
    planned form differs from the query text."""
    numbers = {part: _number(part) for each in aggregation.arguments for part in walk(each)}
    doubles = {part: number for part, number in numbers.items() if number is not None}
    expr, written = rebuild(expr, doubles), {**written, **doubles}
    loose = [each for each in columns(expr) if _has_range(each) and not fact(each, known).limited]
    why = _why(aggregation)
    shown, argument = aggregation.rebuilt(written), rebuild(expr, written)
    if not loose or not _helps(expr, loose, known):
        return MissingBounds(
            f"{shown} has no bounds: {argument} can be as large as {_how_far(expr, known)}.",
            span=aggregation.span,
            hint=f"{why}Limit it to what you know of it, for example {_clamped(shown, argument)}.",
        )
    column = loose[0]
    of_sub_query = column.table not in {scan.name for scan in scans_of(source) if scan.table.version != SHOWN}
    name = str(column) if column.table == EARLIER else f'column "{column.name}"'
    pair = f'("{_FIRST}", "{_LAST}")' if column.type.temporal else "(0, 100)"
    declare = "" if of_sub_query else f'Add bounds={{"{column.name}": {pair}}}, or write '
    chosen = '\nbounds="auto" is for columns of tables; it does not reach what a sub-query makes of them.'
    return MissingBounds(
        f"{shown} needs bounds for {name}.",
        span=aggregation.span,
        hint=f"{why}{declare or 'Write '}{_clamped(shown, column)}. "
        f"{_CHOICE}{chosen if of_sub_query and _chooses(source) else ''}",
    )


def _number(part: Expr) -> Expr | None:
    """Return the wide whole-number column that a part reads as doubles, as REAL; None for other parts."""
    if not isinstance(part, Call) or part.function.name != "text_to_double":
        return None
    (column,) = part.args
    if not isinstance(column, Column) or not column.fact.wide:
        return None
    return replace(column, type=Type.REAL, fact=Fact())


def _why(aggregation: Aggregation) -> str:
    if aggregation.kind.ranked:
        return "The answer is drawn from a grid over the range of the values; without bounds there is none.\n"
    return _SCALED.format("sums that it is made of" if aggregation.kind.second_moments else "sum")


def _helps(expr: Expr, loose: list[Column], known: Known) -> bool:
    """Return whether an expression has bounds once its columns have: a quotient by what may be 0 has none."""
    held = rebuild(expr, {column: _between(column) for column in loose})
    return fact(held, known).limited


def _how_far(expr: Expr, known: Known) -> str:
    """Return the range of an expression without declared bounds, in words."""
    return "its type allows" if fact(expr, known).range.bounded else "numbers go"


def _between(column: Column) -> Expr:
    made = call(FUNCTIONS["clamp"], column, *_ends(column.type))
    return column if made is None else made  # booleans are not clamped to numbers


def _ends(kind: Type) -> tuple[Literal, Literal]:
    """Return possible bounds of a value, for a hint."""
    if not kind.temporal:
        return Literal(0, Type.INTEGER), Literal(100, Type.INTEGER)
    first, last = (read_timestamp(day) or 0 for day in (_FIRST, _LAST))
    a_day = MICROSECONDS_A_DAY if kind is Type.DATE else 1
    return Literal(first // a_day, kind), Literal(last // a_day, kind)


def _has_range(column: Column) -> bool:
    return column.type.numeric or column.type.temporal or column.type is Type.BOOLEAN


def _chooses(source: Source) -> bool:
    """Return whether a table has columns whose bounds a query may choose."""
    return any(column.auto for scan in scans_of(source) for column in scan.table.columns)


def _clamped(aggregation: Aggregation, part: Expr) -> str:
    """Return the aggregate as text, with a part of its arguments clamped."""
    lower, upper = _ends(part.type)
    held: dict[Expr, Expr] = {part: Slot(0, f"CLAMP({part}, {lower}, {upper})", part.type)}
    arguments = [str(rebuild(each, held)) for each in aggregation.arguments]
    if aggregation.said_at is not None:
        arguments.append(f"{float(aggregation.said_at):g}")
    return f"{aggregation.word}({', '.join(arguments)})"
