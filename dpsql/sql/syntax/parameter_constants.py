"""Replace parameters with literals where only a constant is read, such as the ends of WIDTH_BUCKET.

Elsewhere a parameter stays a value bound by name (`scalars`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from sqlglot import exp

from dpsql.plan.expressions import Literal
from dpsql.schema.columns import Type
from dpsql.sql.syntax.parameters import Params

Tree = TypeVar("Tree", bound=exp.Expr)
_ARGUMENTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.WidthBucket: ("min_value", "max_value", "num_buckets"),
    exp.TimeToStr: ("this", "format"),
    exp.StrToTime: ("format",),
    exp.RegexpReplace: ("modifiers",),
    exp.RegexpLike: ("flag",),
    exp.PercentileCont: ("this", "expression"),
    exp.PercentileDisc: ("this", "expression"),
}
_FIRST_OF = frozenset({"DATE_PART", "DATEPART", "DATE_SUB", "DATESUB"})
"""Functions without a parser node whose first argument is a unit."""


def with_constants_given(select: Tree, params: Params, used: set[str]) -> Tree:
    """Replace parameters with literals where only a constant is read. used: receives their names."""
    if not params or next(_wanted(select), None) is None:
        return select
    known, select = dict(params), select.copy()
    for node in list(_wanted(select)):
        literal = known.get(str(node.this))
        written = None if literal is None else _written(literal)
        if written is None:
            continue
        used.add(str(node.this))
        for each in written.walk():
            each.meta.update(node.meta)
        node.replace(written)
    return select


def _wanted(select: exp.Expr) -> Iterator[exp.Placeholder]:
    for node in select.find_all(exp.Placeholder):
        parent = node.parent
        if parent is None:
            continue
        if isinstance(parent, exp.Array) and isinstance(parent.parent, exp.PercentileCont | exp.PercentileDisc):
            yield node
        elif type(parent) is exp.Anonymous:
            if str(parent.this).upper() in _FIRST_OF and node is parent.expressions[0]:
                yield node
        elif node.arg_key in _ARGUMENTS.get(type(parent), ()):
            yield node


def _written(literal: Literal) -> exp.Expr | None:
    """Return a number or text as a literal node, or None for other values."""
    if literal.type is Type.TEXT and literal.value is not None:
        return exp.Literal.string(str(literal.value))
    if literal.value is None or not literal.type.numeric:
        return None
    number = exp.Literal.number(repr(abs(literal.value)))  # type: ignore[arg-type]
    return exp.Neg(this=number) if literal.value < 0 else number  # type: ignore[operator]
