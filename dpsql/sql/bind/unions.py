"""UNION ALL of private rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.digits import number_below, together
from dpsql.plan.expressions import Column, Expr, Literal, between_integers, call, unfiltered
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Branch, Union, row_scans_of
from dpsql.schema.columns import Type
from dpsql.schema.units import zones_differ
from dpsql.sql.bind.private_rows import Handle, Kind, PrivateRows, Rows, Step
from dpsql.sql.names.scopes import Scope, StatementState
from dpsql.sql.names.select_list import fresh
from dpsql.sql.syntax.parse import span_of


def branches_of(union: exp.Union) -> list[exp.Expr]:
    """Return the queries of UNION ALL, including those in unnamed parentheses, in text order."""
    branches: list[exp.Expr] = []
    pending: list[exp.Expr] = [union]
    while pending:
        node = pending.pop()
        node = node.this if isinstance(node, exp.Subquery) and not node.args.get("alias") else node
        if isinstance(node, exp.Union):
            pending += [node.expression, node.this]
        else:
            branches.append(node)
    return branches


def union_of(whole: StatementState, node: exp.Union, relations: Sequence[PrivateRows]) -> PrivateRows:
    """Return the rows of all branches, with columns matched by position. Raises SQLSyntaxError, TypeMismatch,
    UnsupportedSQL."""
    names = [name for name, _ in relations[0].scope.starred]
    lists = [[expr for _, expr in each.scope.starred] for each in relations]
    for listed in lists:
        if len(listed) != len(names):
            raise SQLSyntaxError(
                f"the parts of UNION ALL have {len(names)} and {len(listed)} columns.", span=span_of(whole.sql, node)
            )
    rows = [each.steps[0].rows for each in relations]
    _check_units(whole, node, rows)
    place = whole.place("(union)")
    taken: set[str] = set()
    apart = [fresh(name, taken) for name in names]
    columns = tuple(
        column_of_union(whole, node, (name, place), parts)
        for name, parts in zip(apart, zip(*lists, strict=True), strict=True)
    )
    branches = tuple(
        Branch(each.source, tuple(typed(expr, column.type) for expr, column in zip(listed, columns, strict=True)))
        for each, listed in zip(rows, lists, strict=True)
    )
    handles = [_kinds(each.handles, expr) for each, listed in zip(rows, lists, strict=True) for expr in listed]
    width = len(columns)
    common: set[Handle] = set()
    for at, column in enumerate(columns):
        kinds = [handles[branch * width + at] for branch in range(len(rows))]
        common |= {(kind, column) for kind in frozenset.intersection(*kinds)}
    union = Rows(Union(branches, columns), frozenset({place}), frozenset(common))
    listed_columns = tuple(zip(names, columns, strict=True))
    return PrivateRows(Scope("the union", "the union", listed_columns), (Step(union),))


def _kinds(handles: frozenset[Handle], expr: Expr) -> frozenset[Kind]:
    return frozenset(kind for kind, column in handles if column == number_below(expr))


def _check_units(whole: StatementState, node: exp.Union, rows: Sequence[Rows]) -> None:
    span = span_of(whole.sql, node)
    public = [each for each in rows if each.public]
    if public:
        raise UnsupportedSQL(
            f"UNION ALL is of people's rows, and {public[0].table.name} is public.",
            span=span,
            hint="Join a public table to people's rows instead.",
        )
    scans = [scan for each in rows for scan in row_scans_of(each.source)]
    units = [whole.unit_column(scan.table) for scan in scans if scan.table.unit is not None]
    kinds = {each.identity for each in units}
    if len(kinds) > 1:
        raise TypeMismatch(
            f"the privacy units of UNION ALL's parts are {' and '.join(sorted(kinds))}; they have to be of one type.",
            span=span,
            hint="Declare one type for them in both tables: types={...}.",
        )
    if zones_differ(units):
        raise TypeMismatch(
            "the privacy units of UNION ALL's parts are times, some with a time zone and some without.",
            span=span,
            hint="Store them alike: nobody could be in both parts.",
        )
    by_row = [each for each in rows if each.unit_is_row]
    if by_row and len(by_row) < len(rows):
        raise UnsupportedSQL(
            f"UNION ALL of tables of which only some declare whose rows they hold: {by_row[0].table.name} does not.",
            span=span,
            hint='Declare unit="person_id" on it too.',
        )


def column_of_union(
    whole: StatementState,
    node: exp.Expr,
    named: tuple[str, str],
    parts: Sequence[Expr],
    of: str = "the parts of UNION ALL",
) -> Column:
    """Return a union's column, by name and place, from its expression in each branch. Raises TypeMismatch."""
    name, place = named
    kinds = {part.type for part in parts if not _is_null(part)} or {Type.INTEGER}
    if kinds == {Type.INTEGER, Type.REAL}:
        kinds = {Type.REAL}
    widths = [unfiltered(part).wide for part in parts]
    if any(widths):
        kinds.discard(Type.INTEGER)
    if len(kinds) > 1 or any(kind.opaque for kind in kinds):
        raise TypeMismatch(
            f'{of} have {" and ".join(sorted(kinds))} in the column "{name}".',
            span=span_of(whole.sql, node),
            hint=f'Declare a type: types={{"{name}": "text"}}.' if Type.OBJECT in kinds else "",
        )
    kind = kinds.pop()
    held = [unfiltered(part) for part in parts]
    if any(widths):
        held = [replace(each, wide=each.wide or -min(map(abs, filter(None, widths)))) for each in held]
    return Column(name, kind, between_integers(together(held), kind), place)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def typed(expr: Expr, kind: Type) -> Expr:
    """Convert NULL to the column's type, and an integer next to larger numbers to digits."""
    if _is_null(expr):
        return Literal(None, kind)
    digits = call(FUNCTIONS["integer_to_text"], expr) if kind is Type.TEXT and expr.type is Type.INTEGER else None
    return digits or expr
