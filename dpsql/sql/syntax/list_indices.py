"""Indices of lists and texts count from 1, as in DuckDB.

Index 0 is refused: other engines start there, while DuckDB finds nothing.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.plan.expressions import Expr, Literal

CALLS = frozenset({"LIST_EXTRACT", "ARRAY_EXTRACT", "LIST_ELEMENT", "ELEMENT_AT"})
"""Functions without a parser node whose second argument is an index."""
PLACED = (exp.Bracket, exp.SplitPart, exp.Anonymous)
"""Nodes that may hold an index."""


def refuse_place_zero(sql: str, node: exp.Expr) -> None:
    """Refuse an element at index 0. Raises UnsupportedSQL."""
    place = _place_of(node)
    if isinstance(place, exp.Literal) and not place.args.get("is_string") and _is_zero(str(place.this)):
        from dpsql.sql.syntax.parse import span_of  # imported only when needed

        what = "the parts of SPLIT_PART" if isinstance(node, exp.SplitPart) else "places in a list"
        raise place_zero_refused(what, span_of(sql, node))


def refuse_part_zero(args: list[Expr], span: Span | None) -> None:
    """Refuse SPLIT_PART at index 0, as a constant or parameter. Raises UnsupportedSQL."""
    if len(args) == 3 and isinstance(args[2], Literal) and args[2].value == 0:
        raise place_zero_refused("the parts of SPLIT_PART", span)


def place_zero_refused(what: str, span: Span | None) -> UnsupportedSQL:
    """Return the error for index 0."""
    return UnsupportedSQL(f"{what} are numbered from 1.", span=span, hint="Write 1 for the first one.")


def _place_of(node: exp.Expr) -> exp.Expr | None:
    """Return a node's index as written."""
    if isinstance(node, exp.SplitPart):
        return node.args.get("part_index")
    if isinstance(node, exp.Anonymous):
        return node.expressions[1] if str(node.this).upper() in CALLS and len(node.expressions) == 2 else None
    if not isinstance(node, exp.Bracket) or len(node.expressions) != 1 or _is_map(node.this):
        return None
    from dpsql.sql.rewrite.quantile_lists import is_shifted  # imported only when needed

    (place_node,) = node.expressions
    is_one_less = isinstance(place_node, exp.Neg) and is_shifted(node)  # the parser turned the text's 0 into -1
    if is_one_less and isinstance(place_node.this, exp.Literal) and str(place_node.this.this) == "1":
        return exp.Literal.number(0)
    return None if is_shifted(node) else place_node


def _is_map(node: exp.Expr) -> bool:
    """Return whether a subscript is a map key instead of an index."""
    return isinstance(node, exp.Map | exp.ToMap) or (
        isinstance(node, exp.Anonymous) and str(node.this).upper() in {"HISTOGRAM", "MAP"}
    )


def _is_zero(number: str) -> bool:
    return number.isdecimal() and int(number) == 0
