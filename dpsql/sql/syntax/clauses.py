"""Clause errors that the parser accepts: wrong order, and half a clause read as an alias."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import exp

from dpsql.errors import SQLSyntaxError
from dpsql.sql.syntax.parse import span_of

_CLAUSES = {
    "where": (1, "WHERE"),
    "group": (2, "GROUP BY"),
    "having": (3, "HAVING"),
    "order": (4, "ORDER BY"),
    "limit": (5, "LIMIT"),
    "offset": (5, "OFFSET"),
}
"""Argument names of clauses, with their positions and keywords."""
_WORDS = """ASC BY CROSS DESC EXCEPT FULL GROUP HAVING INNER INTERSECT IS ISNULL JOIN LEFT LIMIT NATURAL NOTNULL OFFSET
ON ORDER OUTER RIGHT UNION USING WHERE WINDOW"""
_HALVES = frozenset(_WORDS.split())
"""Words that begin or continue clauses."""


def check_clauses(sql: str, node: exp.Expr) -> None:
    """Refuse a SELECT with clauses in the wrong order, and an alias that is half a clause. Raises SQLSyntaxError."""
    if isinstance(node, exp.Select):
        _check_order(sql, node)
    elif isinstance(node, exp.Alias):
        _check_alias(sql, node.args.get("alias"))
    elif isinstance(node, exp.TableAlias):
        _check_alias(sql, node.this)


def _check_order(sql: str, select: exp.Select) -> None:
    """Refuse a wrong order: the parser keeps clauses in the order of the text."""
    written = [clause for clause, node in select.args.items() if clause in _CLAUSES and node is not None]
    for before, after in pairwise(written):
        if _CLAUSES[after][0] < _CLAUSES[before][0]:
            raise SQLSyntaxError(
                f"{_CLAUSES[after][1]} has to stand before {_CLAUSES[before][1]}.",
                span=span_of(sql, select.args[after]),
            )


def _check_alias(sql: str, name: object) -> None:
    """Refuse FROM t GROUP, whose last word the parser reads as an alias without AS."""
    if not isinstance(name, exp.Identifier) or name.args.get("quoted") or name.name.upper() not in _HALVES:
        return
    span = span_of(sql, name)
    if span is not None and not re.search(r"\bAS\s*$", sql[: span.start], re.IGNORECASE):
        raise SQLSyntaxError(
            f"{name.name.upper()} has no meaning here.", span=span, hint=f'As a name it is written "{name.name}".'
        )
