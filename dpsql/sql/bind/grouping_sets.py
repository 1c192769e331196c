"""ROLLUP, CUBE and GROUPING SETS: the key sets that an answer has rows for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnknownGroups, UnsupportedSQL
from dpsql.plan.query import Aggregate
from dpsql.sql.syntax.parse import span_of

MOST_SETS = 64
SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
GroupingSet = tuple[int, ...]
"""Key positions, ascending."""


def grouping_sets(terms: list[exp.Expr], place: Callable[[exp.Expr], int], sql: str) -> tuple[GroupingSet, ...]:
    """Return the sets of a GROUP BY in the order written: the combinations of the sets of each term.

    `place` binds a key and returns its position. Empty for a GROUP BY of plain keys. Raises SQLSyntaxError,
    UnsupportedSQL.
    """
    if not any(isinstance(term, SEVERAL) for term in terms):
        return ()
    sets: list[GroupingSet] = []
    for chosen in product(*(list(_sets(term, place, sql)) for term in terms)):
        sets.append(tuple(sorted({key for part in chosen for key in part})))
        if len(sets) > MOST_SETS:
            raise UnsupportedSQL(f"more than {MOST_SETS} grouping sets share one epsilon.", span=span_of(sql, terms[0]))
    if len(set(sets)) < len(sets):
        raise SQLSyntaxError(
            "a grouping set is there twice.", span=span_of(sql, terms[0]), hint="Name each combination of keys once."
        )
    return tuple(sets)


def _sets(term: exp.Expr, place: Callable[[exp.Expr], int], sql: str) -> Iterator[GroupingSet]:
    if isinstance(term, exp.GroupingSets):
        for inner in term.expressions:
            yield from _sets(inner, place, sql) if isinstance(inner, SEVERAL) else [_together(inner, place)]
    elif isinstance(term, exp.Rollup | exp.Cube) and not term.expressions:
        raise SQLSyntaxError(f"{type(term).__name__.upper()} names no column.", span=span_of(sql, term))
    elif isinstance(term, exp.Rollup):
        items = [_together(inner, place) for inner in term.expressions]
        if len(items) >= MOST_SETS:
            raise UnsupportedSQL(f"ROLLUP of {len(items)} has more than {MOST_SETS} sets.", span=span_of(sql, term))
        for length in range(len(items), -1, -1):
            yield _joined(items[:length])
    elif isinstance(term, exp.Cube):
        items = [_together(inner, place) for inner in term.expressions]
        if 2 ** len(items) > MOST_SETS:
            raise UnsupportedSQL(f"CUBE of {len(items)} has more than {MOST_SETS} sets.", span=span_of(sql, term))
        for length in range(len(items), -1, -1):
            for chosen in combinations(items, length):
                yield _joined(list(chosen))
    else:
        yield (place(term),)


def _together(node: exp.Expr, place: Callable[[exp.Expr], int]) -> GroupingSet:
    """Return one key, or several in parentheses; () is none."""
    if isinstance(node, exp.Tuple):
        return tuple(sorted({place(inner) for inner in node.expressions}))
    return (place(node.this if isinstance(node, exp.Paren) else node),)


def _joined(items: list[GroupingSet]) -> GroupingSet:
    return tuple(sorted({key for item in items for key in item}))


def check_sets(plan: Aggregate, group: exp.Expr, sql: str, *, public: bool) -> None:
    """Check a plan with the grouping sets of the clause `group`: aggregates of private rows must be additive, and
    groups public. Raises UnsupportedSQL, UnknownGroups."""
    if public or not plan.aggregations:
        raise UnsupportedSQL(
            "ROLLUP, CUBE and GROUPING SETS are of aggregates of people's rows.",
            span=span_of(sql, group),
            hint="Write a plain GROUP BY." if public else "Count something: SELECT COUNT(*) ...",
        )
    _check_groups(plan, group, sql)
    if any(key.shown is not None for key in plan.keys):
        raise UnsupportedSQL(
            "ROLLUP, CUBE and GROUPING SETS are not of groups that an answer inside the query shows.",
            span=span_of(sql, group),
            hint="Write a plain GROUP BY, and ask for each level in a query of its own.",
        )
    for each in plan.aggregations:
        if not each.kind.moments or each.epsilon is not None:
            what = f"{each.word} does not add up" if each.epsilon is None else f"{each.word} has its own epsilon"
            raise UnsupportedSQL(
                f"{what} over grouping sets.",
                span=each.span or span_of(sql, group),
                hint="Ask for it in a query of its own, with a plain GROUP BY.",
            )


def _check_groups(plan: Aggregate, group: exp.Expr, sql: str) -> None:
    empty = {place: key for place, key in enumerate(plan.keys) if key.values == ()}
    if all(empty.keys() & set(each) for each in plan.sets):
        name, listed = next(iter(empty.values())).name, ", ".join(key.name for key in empty.values())
        raise UnsupportedSQL(
            f"no value of {listed} is possible here, by the conditions or the public tables alone: there are no "
            "groups to show.",
            span=span_of(sql, group),
            hint=f"Leave out the condition on {name}, or group by something else.",
        )
    if plan.public_cells is not None:
        return
    unknown = next((key for key in plan.keys if key.values is None), None)
    if unknown is None:
        raise UnknownGroups(
            f"ROLLUP, CUBE and GROUPING SETS over {math.prod(len(key.values or ()) for key in plan.keys):,} "
            "combinations of public values are more than are shown at once.",
            span=span_of(sql, group),
            hint="Group by fewer columns at once.",
        )
    raise UnknownGroups(
        f"ROLLUP, CUBE and GROUPING SETS need public groups, and those of {unknown.expr} are not.",
        span=unknown.span,
        hint=f'List them: keys={{"{unknown.name}": [...]}}, or ask for each level in a query of its own.',
    )
