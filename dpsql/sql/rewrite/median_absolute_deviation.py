"""MAD(x), the median distance of values from their median, as two releases: the median is released first, and its value
enters the second like any released value.

With groups, the medians form a joined table, so its keys must not be NULL: a released NULL matches nothing. The median
was selected from the range of x, and is clipped to it. The second release knows nothing else about the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from dpsql.errors import MissingBounds, TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Slot
from dpsql.plan.facts import fact, known_of
from dpsql.plan.query_plan import ReleasePlan
from dpsql.sql.bind.aggregate_calls import name_of_composed
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.statement_names import unwritten
from dpsql.sql.syntax.nodes import said
from dpsql.sql.syntax.parse import span_of

if TYPE_CHECKING:
    from dpsql.plan.prior_releases import Input

_HELD = "\0HELD"
"""Marks a released median to be clipped to its range; cannot occur in a text."""
_NAMES = "__mad_"
UNLISTED = "MAD by group is of groups with a public list: declare keys={...}, or join a public table by the key."
_OTHER_KEYS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def has_mad(select: exp.Expr) -> bool:
    """Return whether a SELECT itself calls MAD."""
    return any(name_of_composed(node) == "MAD" for node in _own(select))


def is_of_mad(node: exp.Expr) -> bool:
    """Return whether an item of FROM holds the medians of a MAD by group."""
    return node.alias.startswith(_NAMES)


def _own(select: exp.Expr) -> list[exp.Expr]:
    nodes = select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select)
    return [each for each in nodes if each is select or not isinstance(each, exp.Query)]


def with_mads(select: exp.Select, sql: str, catalog: Catalog) -> exp.Select:
    """Replace each MAD with a median of distances from a released median. Raises UnsupportedSQL."""
    for item in list(select.expressions):
        if not isinstance(item, exp.Alias) and has_mad(item):
            item.replace(exp.alias_(item.copy(), exp.to_identifier(_words(item, sql), quoted=True)))
    calls = [node for node in _own(select) if name_of_composed(node) == "MAD"]
    keys = _keys(select, sql, _columns(select, catalog))
    medians = [_median(node.expressions[0], _whole(node)) for node in calls]
    rows = {name: select.args[name] for name in ("from_", "joins", "where") if select.args.get(name)}
    prefix = unwritten(sql, _NAMES)
    if keys:
        join = _joined(rows, keys, medians, prefix)
        for place, node in enumerate(calls):
            _replace(node, exp.column(_name(f"{prefix}m{place}"), _name(prefix)))
        select.append("joins", join)
        return select
    inners = [
        exp.Select(expressions=[exp.alias_(each, f"{prefix}m", quoted=True)], **_copied(rows)) for each in medians
    ]
    for node, inner in zip(calls, inners, strict=True):
        _replace(node, exp.Subquery(this=inner))
    return select


def _words(item: exp.Expr, sql: str) -> str:
    """Return an item as written."""
    span = span_of(sql, item)
    words = said(item) if span is None else " ".join(sql[span.start : span.end + 1].split())
    return words + ")" if words.count("(") > words.count(")") else words


def _joined(rows: dict[str, Any], keys: list[exp.Expr], medians: list[exp.Expr], prefix: str) -> exp.Join:
    """Return a join with the medians of all groups on the keys."""
    items = [exp.alias_(key.copy(), f"{prefix}k{place}", quoted=True) for place, key in enumerate(keys)]
    items += [exp.alias_(median, f"{prefix}m{place}", quoted=True) for place, median in enumerate(medians)]
    numbers = [exp.Literal.number(place) for place in range(1, len(keys) + 1)]
    inner = exp.Select(expressions=items, **_copied(rows), group=exp.Group(expressions=numbers))
    terms = [
        exp.EQ(this=_closed(key), expression=exp.column(_name(f"{prefix}k{place}"), _name(prefix)))
        for place, key in enumerate(keys)
    ]
    table = exp.Subquery(this=inner, alias=exp.TableAlias(this=_name(prefix)))
    return exp.Join(this=table, on=exp.and_(*terms, copy=False))


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)


def _whole(node: exp.Expr) -> exp.Expr:
    """Return a call with its FILTER."""
    return node.parent if isinstance(node.parent, exp.Filter) else node


def _copied(rows: dict[str, Any]) -> dict[str, Any]:
    def copy(part: Any) -> Any:
        return [each.copy() for each in part] if isinstance(part, list) else part.copy()

    return {name: copy(part) for name, part in rows.items()}


def _closed(node: exp.Expr) -> exp.Expr:
    return node.copy() if isinstance(node, exp.Column) else exp.Paren(this=node.copy())


def _median(value: exp.Expr, whole: exp.Expr) -> exp.Expr:
    """Return the median of a value, under the call's FILTER."""
    median = exp.Median(this=value.copy())
    median.meta.update(value.meta)
    return exp.Filter(this=median, expression=whole.expression.copy()) if isinstance(whole, exp.Filter) else median


def _replace(node: exp.Expr, shown: exp.Expr) -> None:
    value, whole = node.expressions[0], _whole(node)
    held = exp.Anonymous(this=_HELD, expressions=[shown])
    far = exp.Abs(this=exp.Sub(this=_closed(value), expression=held))
    made = _median(far, whole)
    made.find(exp.Median).meta.update(node.meta)  # type: ignore[union-attr]
    whole.replace(made)


def _columns(select: exp.Select, catalog: Catalog) -> frozenset[str]:
    """Return the folded names that its FROM may have: columns of the tables it reads, of all tables if it reads an
    unknown one, and of sub-queries."""
    read = {each.name.casefold() for each in select.find_all(exp.Table)}
    every = catalog.any_name or not read <= catalog.tables.keys()
    tables = [table for name, table in catalog.tables.items() if every or name in read]
    own = {id(each) for each in select.expressions}
    made = {each.alias.casefold() for each in select.find_all(exp.Alias) if id(each) not in own}
    return frozenset(made.union(*(table.by_name for table in tables)))


def _keys(select: exp.Select, sql: str, taken: frozenset[str]) -> list[exp.Expr]:
    """Return the GROUP BY keys as expressions over columns. Raises UnsupportedSQL."""
    group = select.args.get("group")
    if group is None:
        return []
    sets = any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "all"))
    if sets or any(isinstance(each, _OTHER_KEYS) for each in group.expressions):
        raise UnsupportedSQL(
            "MAD takes plain keys in GROUP BY.", span=span_of(sql, group), hint="Name the columns, one after the other."
        )
    return [_key(each, select.expressions, taken) for each in group.expressions]


def _key(key: exp.Expr, items: list[exp.Expr], taken: frozenset[str]) -> exp.Expr:
    """Resolve a position or an item's alias to the item; return anything else unchanged."""
    if isinstance(key, exp.Literal) and str(key.this).isdecimal() and 1 <= int(str(key.this)) <= len(items):
        return items[int(str(key.this)) - 1].unalias()
    name = key.name.casefold() if isinstance(key, exp.Column) and not key.table else ""
    named = [each.this for each in items if isinstance(each, exp.Alias) and each.alias.casefold() == name]
    return named[0] if named and name not in taken else key


def held(select: exp.Select, inputs: Sequence[Input], releases: Sequence[ReleasePlan], sql: str) -> exp.Select:
    """Return the SELECT, whose prior inputs are in place, with released medians clipped to their ranges. Raises
    UnsupportedSQL, TypeMismatch."""
    for node in [each for each in select.find_all(exp.Anonymous) if each.this == _HELD]:
        (shown,) = node.expressions
        read, name = _input_of(shown, select, inputs)
        release = next(each for each in releases if each.relation in read.reads)
        _check_keys(release, node, sql)
        low, high = _range(release, name, node, sql)
        ends = [exp.Literal.number(repr(abs(end))) for end in (low, high)]
        signed = [exp.Neg(this=end) if value < 0 else end for end, value in zip(ends, (low, high), strict=True)]
        node.replace(exp.Anonymous(this="CLAMP", expressions=[shown.copy(), *signed]))
    return select


def _input_of(shown: exp.Expr, select: exp.Select, inputs: Sequence[Input]) -> tuple[Input, str]:
    """Return the input of a released median, and its name there; "" for a scalar."""
    if isinstance(shown, exp.Column):
        table = next(each for each in select.find_all(exp.Table) if each.alias == shown.table)
        return next(each for each in inputs if each.name == table.name), shown.name
    return next(each for each in inputs if each.name == shown.name), ""


def _range(release: ReleasePlan, name: str, node: exp.Expr, sql: str) -> tuple[float, float]:
    plan = release.query.plan
    output = next(each for each in release.query.finish.outputs if name in ("", each.name))
    assert isinstance(output.expr, Slot)  # the median as selected
    argument = plan.aggregations[output.expr.index - len(plan.keys)].argument
    assert argument is not None  # a median has an argument
    if not argument.type.numeric:
        raise TypeMismatch(
            f"MAD is of numbers, and {argument} is {argument.type}.", span=span_of(sql, node.parent or node)
        )
    values = fact(argument, known_of(plan.input)).range
    if not (isfinite(values.lower) and isfinite(values.upper)):
        raise MissingBounds(
            f"MAD({argument}) has no bounds.",
            span=span_of(sql, node.parent or node),
            hint=f"Write MAD(CLAMP({argument}, low, high)) with two numbers in place of low and high.",
        )
    whole = argument.type.discrete
    return (int(values.lower), int(values.upper)) if whole else (float(values.lower), float(values.upper))


def _check_keys(release: ReleasePlan, node: exp.Expr, sql: str) -> None:
    plan = release.query.plan
    for key in plan.keys:
        if None in (key.values or ()):
            raise UnsupportedSQL(
                f"MAD by {key.expr}, which may be NULL: the median of that group would be of nobody.",
                span=span_of(sql, node.parent or node),
                hint=f"Add WHERE {key.expr} IS NOT NULL, or group by COALESCE({key.expr}, ...).",
            )
