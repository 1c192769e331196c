"""Rewrite functions that DuckDB lacks in DuckDB's own functions, for post-processing SQL.

TO_CHAR and FORMAT_DATE become STRFTIME, WIDTH_BUCKET and CLAMP become expressions, and PERCENTILE_CONT(q) WITHIN GROUP
(ORDER BY x) becomes QUANTILE_CONT(x, q).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.sql.boundary.format_arguments import format_, printf

MOST_NODES = 2_000
Said = Callable[[exp.Expr], exp.Expr | None]


def in_duckdbs(tree: exp.Expr) -> exp.Expr:
    """Return the tree in DuckDB's functions. Raises UnsupportedSQL."""
    for node in reversed(list(tree.find_all(*_SAID))):  # inner nodes first
        instead = _SAID[type(node)](node)
        if instead is None:
            continue
        if sum(1 for _ in instead.walk()) > MOST_NODES:  # nested repeated arguments grow exponentially
            raise UnsupportedSQL(
                "so long an expression inside CLAMP or WIDTH_BUCKET is not supported in SQL over answers.",
                hint="Compute what is inside in a sub-query.",
            )
        if node is tree:
            tree = instead
        else:
            node.replace(instead)
    return tree


# Times as text.


def _to_char(node: exp.Expr) -> exp.Expr:
    """Rewrite TO_CHAR(t, 'YYYY-MM') with the codes of STRFTIME."""
    from dpsql.sql.rewrite.time_formats import STRFTIME, to_char_pieces  # imported only when needed

    form = node.args.get("format")
    pieces = to_char_pieces(str(form.this)) if _is_text(form) and form is not None else None
    codes = {code: word for word, code in reversed(list(STRFTIME.items())) if word != "%Q"}
    written = [each.replace("%", "%%") if isinstance(each, str) else codes.get(each) for each in pieces or []]
    if not pieces or any(each is None for each in written):
        raise UnsupportedSQL(
            "TO_CHAR with this format is not supported in SQL over answers.", hint="Write STRFTIME(d, '%Y-%m-%d')."
        )
    text = "".join(each for each in written if each is not None)
    return exp.TimeToStr(this=node.this.copy(), format=exp.Literal.string(text))


def _named(node: exp.Expr) -> exp.Expr | None:
    said = _BY_NAME.get(str(node.this).upper())
    return None if said is None else said(node)


def _format_date(node: exp.Expr) -> exp.Expr | None:
    """Rewrite FORMAT_DATE('%Y-%m', d), whose format comes first."""
    from dpsql.sql.rewrite.time_formats import strftime_pieces  # imported only when needed

    given = node.expressions
    if len(given) != 2 or not _is_text(given[0]) or "%Q" in str(given[0].this):
        return None
    if strftime_pieces(str(given[0].this)) is None:
        return None
    return exp.TimeToStr(this=given[1].copy(), format=given[0].copy())


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.args.get("is_string"))


# Lists.


def _part(node: exp.Expr) -> exp.Expr | None:
    """Rewrite GoogleSQL's x[OFFSET(i)] and x[ORDINAL(i)] with indices from 1."""
    from dpsql.sql.rewrite.quantile_lists import is_shifted, named_place  # imported only when needed

    assert isinstance(node, exp.Bracket)  # called for brackets only
    place = named_place(node.expressions[0]) if len(node.expressions) == 1 else None
    if place is None:
        return None
    number = exp.Literal.number(place if is_shifted(node) else place + 1)
    return exp.Bracket(this=node.this.copy(), expressions=[number])


# Numbers.


def _clamp(node: exp.Expr) -> exp.Expr | None:
    """Rewrite CLAMP(x, low, high), which is NULL if any argument is."""
    if len(node.expressions) != 3:
        return None
    value, low, high = node.expressions
    above = exp.Greatest(this=value.copy(), expressions=[low.copy()], ignore_nulls=True)
    held = exp.Least(this=above, expressions=[high.copy()], ignore_nulls=True)
    gone = [exp.Is(this=exp.Paren(this=each.copy()), expression=exp.Null()) for each in node.expressions]
    return exp.Case(ifs=[exp.If(this=exp.or_(*gone, copy=False), true=exp.Null())], default=held)


def _bucket(node: exp.Expr) -> exp.Expr:
    """Rewrite WIDTH_BUCKET(x, low, high, n) as in private queries."""
    from dpsql.sql.rewrite.width_bucket import bucket  # imported only when needed

    made = bucket("", node)
    missing = exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=exp.Paren(this=in_duckdbs(made)))


def _ordered(node: exp.Expr) -> exp.Expr | None:
    """Rewrite PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x). For descending orders, DuckDB writes q below 0."""
    call, order = node.this, node.args.get("expression")
    if not isinstance(order, exp.Order) or len(order.expressions) != 1:
        return None
    (term,) = order.expressions
    if isinstance(call, exp.Mode):
        return exp.Mode(this=term.this.copy())
    if type(call) not in (exp.PercentileCont, exp.PercentileDisc) or not isinstance(call.this, exp.Literal):
        return None
    which: exp.Expr = call.this.copy()
    if term.args.get("desc"):
        which = exp.Neg(this=which) if float(str(which.this)) > 0 else exp.Literal.number(1)
    made: exp.Expr = type(call)(this=term.this.copy(), expression=which)
    return made


_BY_NAME: Mapping[str, Said] = {
    **dict.fromkeys(("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME"), _format_date),
    "CLAMP": _clamp,
    "PRINTF": printf,
}
_SAID: Mapping[type[exp.Expr], Said] = {
    exp.ToChar: _to_char,
    exp.Format: format_,
    exp.Anonymous: _named,
    exp.WidthBucket: _bucket,
    exp.WithinGroup: _ordered,
    exp.Bracket: _part,
}
