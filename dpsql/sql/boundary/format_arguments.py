"""Cast the arguments of PRINTF, FORMAT and BAR in post-processing SQL to the types that the format takes.

DuckDB checks these types only when there are rows, which would be after the charge.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.postprocess.work_limits import PLACES, SIGNS

_TYPES = {**dict.fromkeys("dxXo", "BIGINT"), **dict.fromkeys("fge", "DOUBLE"), "s": "VARCHAR"}
_NAMES = frozenset({"BAR", "PRINTF"})


def has_format(node: exp.Expr) -> bool:
    """Return whether an expression holds PRINTF, FORMAT('{}', x) or BAR, ignoring its sub-queries."""
    walked = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return any(
        isinstance(each, exp.Format) or (isinstance(each, exp.Anonymous) and str(each.this).upper() in _NAMES)
        for each in walked
    )


def format_in_keys(span: Span | None) -> UnsupportedSQL:
    """Return the refusal of PRINTF, FORMAT or BAR in GROUP BY."""
    return UnsupportedSQL(
        "PRINTF, FORMAT and BAR are not supported in GROUP BY, only over answers.",
        span=span,
        hint="Write CONCAT('n = ', x), or LPAD(CAST(x AS TEXT), 5, '0').",
    )


def printf(node: exp.Expr) -> exp.Expr | None:
    """Rewrite PRINTF('%s: %d', name, n)."""
    return exp.Anonymous(this="PRINTF", expressions=_arguments("printf", node.expressions))


def format_(node: exp.Expr) -> exp.Expr | None:
    """Rewrite FORMAT('{}: {:.1f}', name, x)."""
    text, *values = _arguments("format", [node.this, *node.expressions])
    return exp.Format(this=text, expressions=values)


def _arguments(name: str, given: list[exp.Expr]) -> list[exp.Expr]:
    """Return the format and its values, each cast to the type of its placeholder. Raises UnsupportedSQL."""
    text = given[0] if given else None
    if not isinstance(text, exp.Literal) or not text.args.get("is_string"):
        return [
            each.copy() for each in given
        ]  # refused because the text does not state the size (`postprocess.work_limits`)
    places = [place for place in PLACES[name].findall(str(text.this)) if place not in ("%%", "{{", "}}")]
    if any(sign in PLACES[name].sub("", str(text.this)) for sign in SIGNS[name]):
        return [each.copy() for each in given]
    if len(places) != len(given) - 1:
        raise UnsupportedSQL(
            f"{name.upper()} has {len(places)} places and {len(given) - 1} values.",
            hint="Write one place for each value, as in PRINTF('%s: %d', s, n) or FORMAT('{}: {:.1f}', s, x).",
        )
    if any(re.match(r"\{[0-9]", place) for place in places):
        raise UnsupportedSQL("FORMAT takes its values in their order.", hint="Write {} in place of {0}.")
    types = [_TYPES.get(place.rstrip("}")[-1]) for place in places]
    values = [
        each.copy() if kind is None else exp.TryCast(this=each.copy(), to=exp.DataType.build(kind, dialect="duckdb"))
        for each, kind in zip(given[1:], types, strict=True)
    ]
    return [text.copy(), *values]
