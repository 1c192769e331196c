"""Bind one-row answers as values, in place of sub-queries over a relation.

For a relation, DuckDB creates it, queries it and checks that it has one row. A value takes a tenth of that work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dpsql.plan.query_plan import ReleasePlan
from dpsql.postprocess.headers import value_name
from dpsql.schema.columns import Type

_TYPES = {Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.BOOLEAN: "BOOLEAN"}
_AROUND = (
    exp.Alias, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT,
    exp.LTE, exp.Cast, exp.Round, exp.Abs, exp.Coalesce, exp.Nullif, exp.If, exp.Case,
)  # fmt: skip
"""Nodes inside which a sub-query can only be a scalar."""


def with_values(tree: exp.Query, releases: Sequence[ReleasePlan]) -> exp.Query:
    """Replace each sub-query that reads one column of a one-row answer with a value."""
    known = {release.relation: release for release in releases if release.most == release.least == 1}
    for node in list(tree.find_all(exp.Subquery)) if known else ():
        item = isinstance(node.parent, exp.Select) and node.arg_key == "expressions" and bool(node.alias)
        value = _value(node, known) if item or isinstance(node.parent, _AROUND) else None
        if value is not None:
            node.replace(exp.alias_(value, exp.to_identifier(node.alias, quoted=True)) if item else value)
    return tree


def _value(node: exp.Subquery, known: Mapping[str, ReleasePlan]) -> exp.Expr | None:
    select = node.this
    if not isinstance(select, exp.Select) or {name for name, part in select.args.items() if part} != _PARTS:
        return None
    table, (item, *others) = select.args["from_"].this, select.expressions
    if others or not isinstance(item, exp.Column) or not isinstance(table, exp.Table) or table.args.get("joins"):
        return None
    release = known.get(table.name)
    if release is None:
        return None
    names = [each.name for each in release.columns]
    if names.count(item.name) != 1:
        return None
    place = names.index(item.name)
    column = release.columns[place]
    kind = "HUGEINT" if column.wide else _TYPES.get(column.type)
    if kind is None:
        return None
    value = exp.Placeholder(this=value_name(release.relation, place))
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


_PARTS = {"expressions", "from_"}
