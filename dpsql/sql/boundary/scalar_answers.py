"""Answers of one row that stand for a value: handed in as a value, in the place of a sub-query over a relation.

DuckDB makes a relation, a query over it and a check that it has one row of each; a value is a tenth of that work.
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
"""What a value may stand in: there a sub-query is one, and nothing else."""


def with_values(tree: exp.Query, releases: Sequence[ReleasePlan]) -> exp.Query:
    """The tree with a value in the place of each sub-query that is a column of one answer of one row, by its text."""
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
