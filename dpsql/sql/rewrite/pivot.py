"""PIVOT with a list of values and UNPIVOT as SELECTs: a filtered aggregate for each value, and one SELECT for each
column.

This rewrites the parser's tree as it is read, so later passes see neither. Words that only a PIVOT uses are passed to
the resulting SELECT (`words` in its metadata), because the allow-list counts words.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.sql.syntax.dialect import PrivacyDialect

MOST_VALUES = 99
_DIALECT = PrivacyDialect()
_OF_PIVOT = ("PIVOT", "ON", "FOR", "IN", "USING", "AS")
_OF_UNPIVOT = ("UNPIVOT", "ON", "FOR", "IN", "INTO", "NAME", "VALUE", "INCLUDE", "NULLS", "AS")
_COUNT = exp.Count(this=exp.Star(), big_int=True)


def without_pivots(tree: exp.Expr | None, span: Span) -> exp.Expr | None:
    """Replace each PIVOT and UNPIVOT with a SELECT; span: of the first. Raises UnsupportedSQL, SQLSyntaxError."""
    if tree is None:
        return None
    for pivot in reversed(list(tree.find_all(exp.Pivot))):  # inner nodes first
        source = pivot.this if isinstance(pivot.this, exp.Expr) else None
        of_table = pivot.arg_key == "pivots"
        around = pivot.parent if of_table else pivot
        if of_table:
            assert around is not None  # a pivot after a table
            source = around.copy()
            source.set("pivots", None)
        assert source is not None  # a statement names its table
        made = _unpivoted(pivot, source, span) if pivot.args.get("unpivot") else _pivoted(pivot, source, span)
        instead = _in_place(pivot, around, made, span) if of_table else made
        if around is tree:
            tree = instead
        elif around is not None:
            around.replace(instead)
    return tree


def _in_place(pivot: exp.Pivot, around: exp.Expr | None, made: exp.Select, span: Span) -> exp.Expr:
    """Return the SELECT as an item of FROM, under its name in the text."""
    if around is not None and len(around.args.get("pivots") or []) > 1:
        raise UnsupportedSQL("one PIVOT after another is not supported.", span=span, hint="Write each in a sub-query.")
    alias = pivot.args.get("alias")
    name = alias.copy() if alias is not None else exp.TableAlias(this=exp.to_identifier("pivoted"))
    return exp.Subquery(this=made, alias=name)


# PIVOT.


def _pivoted(pivot: exp.Pivot, source: exp.Expr, span: Span) -> exp.Select:
    """Return the groups with each aggregate of the rows that hold each value."""
    column, listed = _of_values(pivot, span)
    used = pivot.args.get("using") if not pivot.args.get("fields") else pivot.expressions
    aggregates = [*used] if isinstance(used, list) and used else [_COUNT]
    if len(listed) * len(aggregates) > MOST_VALUES:
        raise SQLSyntaxError(f"a PIVOT of more than {MOST_VALUES} columns.", span=span)
    items: list[exp.Expr] = [each.copy() for each in _groups(pivot, source, [column, *aggregates], span)]
    groups = [exp.Literal.number(number) for number in range(1, len(items) + 1)]
    for each in listed:
        value, name = (each.this, each.alias) if isinstance(each, exp.PivotAlias) else (each, "")
        alone = len(aggregates) == 1
        items += [_column(column, value, name or _said(value), aggregate, alone=alone) for aggregate in aggregates]
    select = exp.Select(expressions=items, from_=exp.From(this=source.copy()))
    if groups:
        select.set("group", exp.Group(expressions=groups))
    _with_clauses(select, pivot)
    names = [each.alias.upper() for each in (*aggregates, *listed) if isinstance(each, exp.Alias | exp.PivotAlias)]
    select.meta["words"] = [*_OF_PIVOT, *names, *(["AS"] * len(names))]
    return select


def _with_clauses(select: exp.Select, pivot: exp.Pivot) -> None:
    """Apply the clauses around a PIVOT to the SELECT."""
    for clause in ("with_", "order", "limit", "offset"):
        if pivot.args.get(clause) is not None:
            select.set(clause, pivot.args[clause].copy())


def _of_values(pivot: exp.Pivot, span: Span) -> tuple[exp.Expr, list[exp.Expr]]:
    """Return the pivoted column, and its values."""
    fields = pivot.args.get("fields") or pivot.expressions
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not _is_listed(fields[0]):
        one = fields[0] if fields else None
        name = "x" if one is None else (one.this if isinstance(one, exp.In) else one).sql(dialect=_DIALECT)
        raise UnsupportedSQL(
            "PIVOT is of one column." if len(fields) > 1 else "PIVOT without a list would show which values occur.",
            span=span,
            hint=f"Write the values: PIVOT ... ON {name} IN ('a', 'b'), or FOR {name} IN ('a', 'b').",
        )
    return fields[0].this, fields[0].expressions


def _is_listed(node: exp.In) -> bool:
    """Return whether the text lists the values."""
    return bool(node.expressions) and not any(isinstance(each, exp.Query | exp.Column) for each in node.expressions)


def _groups(pivot: exp.Pivot, source: exp.Expr, reading: list[exp.Expr], span: Span) -> list[exp.Expr]:
    """Return the grouping columns: GROUP BY, or all other columns of a sub-query that lists them."""
    group = pivot.args.get("group")
    if group is not None:
        return list(group.expressions)
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or any(each.is_star for each in inner.expressions):
        raise UnsupportedSQL(
            "PIVOT without GROUP BY groups by every other column.",
            span=span,
            hint="Write GROUP BY, or a sub-query whose SELECT list names the columns.",
        )
    read = {each.name.casefold() for node in reading for each in node.find_all(exp.Column)}
    names = [each.alias_or_name for each in inner.expressions]
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in names if name.casefold() not in read]


def _column(column: exp.Expr, value: exp.Expr, name: str, aggregate: exp.Expr, *, alone: bool) -> exp.Expr:
    """Return one aggregate of the rows with one value, under DuckDB's name for it."""
    call, alias = (aggregate.this, aggregate.alias) if isinstance(aggregate, exp.Alias) else (aggregate, "")
    if isinstance(value, exp.Null):
        condition: exp.Expr = exp.Is(this=column.copy(), expression=exp.Null())
    else:
        condition = exp.EQ(this=column.copy(), expression=value.copy())
    inner, before = call.copy(), None
    if isinstance(inner, exp.Filter):
        inner, before = inner.this, inner.expression.this
    where = condition if before is None else exp.And(this=exp.Paren(this=before), expression=condition)
    filtered = exp.Filter(this=inner, expression=exp.Where(this=where))
    text = f"{name}_{alias}" if alias else name if alone else f"{name}_{call.sql(dialect=_DIALECT).lower()}"
    return exp.alias_(filtered, exp.to_identifier(text, quoted=True))


def _said(value: exp.Expr) -> str:
    if isinstance(value, exp.Literal):
        return str(value.this)
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    return value.sql(dialect=_DIALECT)


# UNPIVOT.


def _unpivoted(pivot: exp.Pivot, source: exp.Expr, span: Span) -> exp.Select:
    """Return one SELECT for each column, under UNION ALL: its name, and its values other than NULL."""
    fields, into = pivot.args.get("fields"), pivot.args.get("into")
    if fields:
        columns, key, value = fields[0].expressions, fields[0].this.name, pivot.expressions[0].name
    else:
        columns = pivot.expressions
        key, value = (into.this.name, into.expressions[0].name) if into is not None else ("name", "value")
    several = (fields and len(fields) > 1) or len(pivot.expressions if fields else [0]) > 1
    if several or not columns or not all(isinstance(each, exp.Column) for each in columns):
        raise UnsupportedSQL(
            "UNPIVOT is of columns by name, into one value.", span=span, hint="Write UNPIVOT (v FOR k IN (a, b))."
        )
    query: exp.Query | None = None
    for each in columns:
        rest = exp.Star(except_=[exp.to_identifier(one.name) for one in columns])
        named = exp.alias_(exp.Literal.string(each.name), exp.to_identifier(key))
        held = exp.alias_(each.copy(), exp.to_identifier(value))
        select = exp.Select(expressions=[rest, named, held], from_=exp.From(this=source.copy()))
        if not pivot.args.get("include_nulls"):
            select.set("where", exp.Where(this=exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null()))))
        query = select if query is None else exp.Union(this=query, expression=select, distinct=False)
    assert query is not None  # there are columns
    alias = exp.TableAlias(this=exp.to_identifier("unpivoted"))
    whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
    _with_clauses(whole, pivot)
    whole.meta["words"] = list(_OF_UNPIVOT)
    return whole
