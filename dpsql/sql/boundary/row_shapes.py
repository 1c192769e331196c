"""Row shapes of post-processing SQL: the maximum number of rows and the unique keys that follow from the text.

Proof of uniqueness: groups of a plain GROUP BY differ in their keys, so rows that show all keys unchanged differ too.
DISTINCT leaves no duplicates. Conditions, orders and limits remove rows and change none. The inputs of a later release
are checked against both: a mistake here causes a wrong answer, not a leak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.plan.expressions import Slot
from dpsql.plan.query_plan import ReleasePlan
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.sql.boundary.noise_of_statements import Listed
from dpsql.sql.names.select_list import is_star
from dpsql.sql.syntax.parameters import Params


@dataclass(frozen=True)
class Shape:
    """most: maximum number of rows, None if unknown; columns: their folded names, () if unknown; unique: column sets
    that identify rows."""

    most: int | None
    columns: tuple[str, ...] = ()
    unique: frozenset[frozenset[str]] = frozenset()


_SEVERAL = ("rollup", "cube", "grouping_sets")


class Shapes:
    """Row shapes of queries over known relations."""

    def __init__(
        self,
        releases: Sequence[ReleasePlan],
        listed: Sequence[Listed],
        public: Mapping[str, TableSchema],
        params: Params,
    ) -> None:
        self.releases = {each.relation: each for each in releases}
        self.listed = {name: (query, alias) for name, query, alias in listed}
        self.public = public
        self.params = dict(params)

    def of(self, query: exp.Expr) -> Shape:
        """Return the shape of a query."""
        if isinstance(query, exp.Subquery):
            return self._cut(query, _renamed(self.of(query.this), query.args.get("alias")))
        if isinstance(query, exp.SetOperation):
            left, right = self.of(query.this), self.of(query.expression)
            both = left.most + right.most if left.most is not None and right.most is not None else None
            return self._cut(query, Shape(both if isinstance(query, exp.Union) else left.most))
        return self._cut(query, self._select(query)) if isinstance(query, exp.Select) else Shape(None)

    def _cut(self, query: exp.Expr, shape: Shape) -> Shape:
        limit = query.args.get("limit")
        value = limit.expression if isinstance(limit, exp.Limit) else None
        most = self._number(value)
        known = [each for each in (shape.most, most) if each is not None]
        return replace(shape, most=min(known, default=None))

    def _number(self, node: exp.Expr | None) -> int | None:
        if isinstance(node, exp.Placeholder):
            literal = self.params.get(node.name)
            return literal.value if literal is not None and type(literal.value) is int else None
        whole = isinstance(node, exp.Literal) and not node.args.get("is_string") and str(node.this).isdecimal()
        return int(str(node.this)) if whole and node is not None else None

    def _select(self, select: exp.Select) -> Shape:
        first, joins = select.args.get("from_"), select.args.get("joins") or []
        sources = [] if first is None else [self._item(each) for each in (first.this, *(join.this for join in joins))]
        if select.args.get("group") is None and any(_aggregates(item) for item in select.expressions):
            return Shape(1)
        sizes = [each.most for each in sources if each.most is not None]
        most = None if len(sizes) < len(sources) or _makes_more(select) else math.prod(sizes)
        if most is not None and any(str(each.args.get("side") or "") for each in joins):  # unmatched rows
            most += sum(sizes)
        return self._items(select, sources[0] if len(sources) == 1 else Shape(most), most)

    def _items(self, select: exp.Select, source: Shape, most: int | None) -> Shape:
        """Return the columns of the SELECT list, and which of them identify rows."""
        names = _names(select, source)
        if names is None:
            return Shape(most)
        unique = source.unique if select.args.get("group") is None else _grouped(select)
        shown = {read: name for name, read in reversed(names) if read}
        kept = {frozenset(shown[each] for each in key) for key in unique if key <= shown.keys()}
        columns = tuple(name for name, _ in names)
        distinct = select.args.get("distinct")
        if distinct is not None and not distinct.args.get("on"):
            kept.add(frozenset(columns))
        return Shape(most, columns, frozenset(kept))

    def _item(self, item: exp.Expr) -> Shape:
        if isinstance(item, exp.Subquery):
            return self.of(item)
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return Shape(None)
        if item.name in self.listed:
            query, alias = self.listed[item.name]
            return _renamed(_renamed(self.of(query), alias), item.args.get("alias"))
        if item.name in self.releases:
            return _renamed(_of_release(self.releases[item.name]), item.args.get("alias"))
        table = self.public.get(item.name)
        if table is None:
            return Shape(None)
        own = frozenset(frozenset(each.casefold() for each in key) for key in table.unique)
        return _renamed(Shape(table.rows, tuple(table.by_name), own), item.args.get("alias"))


def _makes_more(select: exp.Select) -> bool:
    """Return whether a row of FROM may become several: by several grouping sets, or by UNNEST."""
    group = select.args.get("group")
    sets = group is not None and any(group.args.get(each) for each in _SEVERAL)
    return sets or any(item.find(exp.Unnest) for item in select.expressions)


def _names(select: exp.Select, source: Shape) -> list[tuple[str, str]] | None:
    """Return the names of the list, each with the column it shows unchanged or ""; None if unknown."""
    names: list[tuple[str, str]] = []
    for item in select.expressions:
        if not is_star(item):
            read = item.this if isinstance(item, exp.Alias) else item
            names.append((item.alias_or_name.casefold(), read.name.casefold() if _is_bare(read) else ""))
        elif not source.columns or item.find(exp.Alias, exp.Identifier):
            return None
        else:
            names += [(each, each) for each in source.columns]
    return names


def _grouped(select: exp.Select) -> frozenset[frozenset[str]]:
    """Return the keys of a plain GROUP BY, if each is a column."""
    group = select.args["group"]
    keys = [_key(each, select) for each in group.expressions]
    if None in keys or any(group.args.get(each) for each in (*_SEVERAL, "all")):
        return frozenset()
    return frozenset({frozenset(each for each in keys if each is not None)})


def _of_release(release: ReleasePlan) -> Shape:
    """Return the shape of a release: its keys identify rows if all are shown unchanged."""
    names = tuple(each.name.casefold() for each in release.columns)
    plan, finish = release.query.plan, release.query.finish
    places = {
        finish.outputs[column.output].expr.index: name  # type: ignore[union-attr]
        for column, name in zip(release.columns, names, strict=True)
        if isinstance(finish.outputs[column.output].expr, Slot)
    }
    plain = not plan.sets and not release.query.stages and len(set(names)) == len(names)
    shown = plain and all(place in places for place in range(len(plan.keys)))
    keys = frozenset(places[place] for place in range(len(plan.keys))) if shown else frozenset[str]()
    most = release.most if plan.keys or release.query.stages else 1
    return Shape(most, names, frozenset({keys}) if keys else frozenset())


def _renamed(shape: Shape, alias: exp.Expr | None) -> Shape:
    """Return the shape under an alias, which may rename the first columns."""
    given = [each.name.casefold() for each in alias.args.get("columns") or []] if alias is not None else []
    if not given:
        return shape
    columns = (*given, *shape.columns[len(given) :]) if len(given) <= len(shape.columns) else ()
    new = dict(zip(shape.columns, columns, strict=False))
    unique = frozenset(frozenset(new[each] for each in key) for key in shape.unique if key <= new.keys())
    return Shape(shape.most, columns, unique if len(new) == len(shape.columns) else frozenset())


def _is_bare(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column)


def _key(key: exp.Expr, select: exp.Select) -> str | None:
    """Return the column that a GROUP BY term names by name or position; None for other terms."""
    if (
        isinstance(key, exp.Literal)
        and str(key.this).isdecimal()
        and 1 <= int(str(key.this)) <= len(select.expressions)
    ):
        item = select.expressions[int(str(key.this)) - 1]
        key = item.this if isinstance(item, exp.Alias) else item
    if not isinstance(key, exp.Column):
        return None
    aliases = {each.alias.casefold() for each in select.expressions if isinstance(each, exp.Alias)}
    return None if key.name.casefold() in aliases and not key.table else key.name.casefold()


def _aggregates(node: exp.Expr) -> bool:
    """Return whether an expression holds an aggregate, other than a windowed one, that makes one row of all."""
    if isinstance(node, exp.Query | exp.Window):
        return False
    return isinstance(node, exp.AggFunc) or any(_aggregates(each) for each in node.iter_expressions())
