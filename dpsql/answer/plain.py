"""What a plan writes at length, in fewer words: columns clipped to bounds that a query chooses, sums centred at 0, and
arguments that count where another one is there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.plan.expressions import Call, Expr, Literal
from dpsql.release.auto_bounds import clamped, widest
from dpsql.release.release import Release

Pairs = list[tuple[str, str]]
"""A text and what stands for it, in the order that they are to be replaced in."""


def plainer(release: Release) -> Pairs:
    """The texts of a release's steps that can be said in fewer words."""
    there = list(dict.fromkeys(_where_both(release)))
    names = ((each.name, _name(each.name, there)) for each in release.coordinates)
    found = [*names, *((long, f"{value} where {other} is not NULL") for long, value, other in there)]
    return [(long, short) for long, short in found if long != short] + _clips(release)


def _name(name: str, there: list[tuple[str, str, str]]) -> str:
    """What noise is added to."""
    if re.match(r"sum\(.* [-+] 0\)$", name):
        name = name[: -len(" - 0)")] + ")"
    for long, value, other in there:
        found = re.match(r"(count|sum|sum of squares)\(" + re.escape(long) + r"( [-+] [0-9.e+-]+)?\)$", name)
        if found is not None:
            return f"{found[1]}({value}{found[2] or ''}, where {other} is not NULL)"
    return name


def _where_both(release: Release) -> Iterator[tuple[str, str, str]]:
    """Arguments that are made NULL where the other one of their pair is: as they are, the value, and the other one."""
    for measured in release.analysis.measured:
        for each in measured.aggregation.arguments if measured.other is not None else ():
            parts = value_where(each)
            if parts is not None:
                yield str(each), str(parts[0]), str(parts[1])


def value_where(expr: Expr) -> tuple[Expr, Expr] | None:
    """v and o of CASE WHEN NOT (o IS NULL) THEN v ELSE NULL END, which a value of a pair is; None of anything else."""
    if not isinstance(expr, Call) or expr.function.name != "case" or len(expr.args) != 3:
        return None
    condition, value, other = expr.args
    null = condition.args[0] if isinstance(condition, Call) and condition.function.name == "not" else None
    if not (isinstance(null, Call) and null.function.name == "is_null" and isinstance(other, Literal)):
        return None
    return (value, null.args[0]) if other.value is None else None


def _clips(release: Release) -> Pairs:
    """Columns with bounds that are to be chosen stand as if there were none; chosen ones have a step of their own."""
    chosen = [(each.column, each.held) for each in release.bounds]
    if release.searches is not None:
        chosen = [(search.column, widest(search.column)) for search in release.searches.searches]
    return [(str(clamped(column, held)), str(column)) for column, held in chosen]
