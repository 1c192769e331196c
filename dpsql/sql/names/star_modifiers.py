"""`* EXCLUDE (a)`, `* REPLACE (a + 1 AS a)` and `* RENAME (a AS b)` of private rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnknownColumn, UnsupportedSQL, did_you_mean
from dpsql.plan.expressions import Expr
from dpsql.sql.names.select_list import CHANGES, changes_star, star_of
from dpsql.sql.syntax.parse import span_of
from dpsql.sql.syntax.refusals import CLAUSES

Columns = list[tuple[str, Expr]]


def refuse_changes(node: exp.Expr, sql: str) -> None:
    """Refuse EXCLUDE, REPLACE and RENAME where stars may not have them. Raises UnsupportedSQL."""
    star = star_of(node)
    for each in CHANGES:
        if star is not None and star.args.get(each):
            raise UnsupportedSQL(CLAUSES[exp.Star, each], span=span_of(sql, node))


def changed(columns: Columns, node: exp.Expr, sql: str, bind: Callable[[exp.Expr, str], Expr]) -> Columns:
    """Apply a star's modifiers to its columns, in DuckDB's order: EXCLUDE first. bind: binds an expression of REPLACE,
    given its name. Raises UnknownColumn, SQLSyntaxError."""
    star = star_of(node)
    if star is None or not changes_star(node):
        return columns
    named: set[str] = set()

    def place(written: exp.Expr, name: str) -> int:
        """Return the position of a named column."""
        folded = name.casefold()
        places = [number for number, (each, _) in enumerate(columns) if each.casefold() == folded]
        if isinstance(written, exp.Column) and written.table:
            raise UnsupportedSQL(
                "behind * a column is named by one word.", span=span_of(sql, written), hint="Write t.* EXCLUDE (a)."
            )
        if not places:
            raise UnknownColumn(
                f'no column "{name}" in *.{did_you_mean(name, [each for each, _ in columns])}',
                span=span_of(sql, written),
            )
        if folded in named or len(places) > 1:
            raise SQLSyntaxError(f'"{name}" is named twice behind *.', span=span_of(sql, written))
        named.add(folded)
        return places[0]

    gone = {place(each, each.name) for each in _listed(star, "except_")}
    replaced = {place(each, each.alias): bind(each.this, each.alias) for each in _listed(star, "replace")}
    names = {place(each.this, each.this.name): each.alias for each in _listed(star, "rename")}
    return [
        (names.get(number, name), replaced.get(number, expr))
        for number, (name, expr) in enumerate(columns)
        if number not in gone
    ]


def _listed(star: exp.Star, argument: str) -> Sequence[exp.Expr]:
    return list(star.args.get(argument) or [])
