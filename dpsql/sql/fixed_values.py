"""ANY_VALUE(name) beside GROUP BY code, where a public table has one name for each code: the column itself, and one key
more.

The groups stay what they were: rows that are equal in the key of a public row are equal in all of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.schema.columns import TableSchema
from dpsql.sql.catalog import Catalog
from dpsql.sql.dialect_nodes import said
from dpsql.sql.parse import Statement, span_of
from dpsql.sql.refusals import NAMED

Place = tuple[str, str]
"""A table's alias and a column's name, folded."""


def with_fixed_values(statement: Statement, tree: exp.Query, catalog: Catalog) -> None:
    """Put columns in the place of such calls, in the tree itself. Raises UnsupportedSQL for every other ANY_VALUE."""
    common = {each.alias.casefold() for each in tree.find_all(exp.CTE)}
    for select in list(tree.find_all(exp.Select)):
        if isinstance(select.args.get("group"), exp.Group) and not catalog.any_name:
            _Fixed(statement.sql, select, catalog, common).replace()
    other = tree.find(exp.AnyValue)
    if other is not None:
        word = next((each for each in statement.tokens if each.text.upper() == "ANY_VALUE"), None)
        span = span_of(statement.sql, other) if word is None else Span(statement.sql, word.start, word.end)
        raise UnsupportedSQL(NAMED[exp.AnyValue], span=span)


class _Fixed:
    """One SELECT with GROUP BY."""

    def __init__(self, sql: str, select: exp.Select, catalog: Catalog, common: set[str]) -> None:
        self.sql, self.select = sql, select
        joins = select.args.get("joins") or []
        first = select.args.get("from_")
        sources = [*([first.this] if first is not None else []), *(each.this for each in joins)]
        self.tables: dict[str, TableSchema] = {}
        for source in sources:
            plain = isinstance(source, exp.Table) and source.name.casefold() not in common
            schema = catalog.tables.get(source.name.casefold()) if plain else None
            if schema is not None:
                self.tables[source.alias_or_name.casefold()] = schema
        self.known = len(self.tables) == len(sources)
        self.equal = list(self._equalities(joins))

    def _equalities(self, joins: list[exp.Join]) -> Iterator[tuple[Place, Place]]:
        """Columns that inner joins make equal."""
        seen = [next(iter(self.tables), "")]
        for join in joins:
            name = join.this.alias_or_name.casefold()
            if not join.args.get("side") and str(join.args.get("kind") or "INNER").upper() == "INNER":
                for each in join.args.get("using") or []:
                    yield from (((one, each.name.casefold()), (name, each.name.casefold())) for one in seen)
                on = join.args.get("on")
                for term in on.flatten() if isinstance(on, exp.And) else [on]:
                    if isinstance(term, exp.EQ):
                        one, other = self._place(term.this), self._place(term.expression)
                        if one is not None and other is not None:
                            yield one, other
            seen.append(name)

    def _place(self, node: object) -> Place | None:
        """Which table's column a node is; None where that is not sure."""
        if not isinstance(node, exp.Column):
            return None
        name, table = node.name.casefold(), node.table.casefold()
        if table:
            return (table, name) if table in self.tables and name in self.tables[table].by_name else None
        owners = [alias for alias, schema in self.tables.items() if name in schema.by_name]
        return (owners[0], name) if len(owners) == 1 and self.known else None

    def replace(self) -> None:
        """Put columns in the place of calls, and these into GROUP BY."""
        group, calls = self.select.args["group"], list(self._calls())
        if not calls or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "all")):
            return
        keys = self._keys(group)
        added: dict[Place, exp.Expr] = {}
        for call, place in calls:
            if not self._is_fixed(place, keys):
                continue
            added[place] = call.this.copy()
            whole = _whole(call)
            column = call.this.copy()
            if whole.parent is self.select:
                column = exp.alias_(column, exp.to_identifier(said(call), quoted=True))
            whole.replace(column)
        group.set("expressions", [*group.expressions, *(each for place, each in added.items() if place not in keys)])

    def _calls(self) -> Iterator[tuple[exp.Expr, Place]]:
        for part in (*self.select.expressions, self.select.args.get("having"), self.select.args.get("order")):
            for node in [] if part is None else list(part.walk(prune=lambda each: isinstance(each, exp.Query))):
                if isinstance(node, exp.AnyValue) and not _is_inside_another(node):
                    place = self._place(node.this)
                    if place is not None:
                        yield node, place

    def _keys(self, group: exp.Group) -> set[Place]:
        """The columns that the groups are told by, and those that are equal to them."""
        items = self.select.expressions
        keys: set[Place] = set()
        for key in group.expressions:
            place = self._place(key) or self._place(_item(key, items))
            keys |= {place} if place is not None else set()
        while more := {two for pair in self.equal for one, two in (pair, pair[::-1]) if one in keys} - keys:
            keys |= more
        return keys

    def _is_fixed(self, place: Place, keys: set[Place]) -> bool:
        """Whether the keys hold one that is the public row's own, and never NULL there."""
        alias, schema = place[0], self.tables[place[0]]
        joined = {each for pair in self.equal for each in pair}
        return schema.public and any(
            all(
                (alias, name.casefold()) in keys
                and ((alias, name.casefold()) in joined or not schema.by_name[name.casefold()].nullable)
                for name in unique
            )
            for unique in schema.unique
        )


def _whole(call: exp.Expr) -> exp.Expr:
    """The call as the parser has it: without NULLs, which it says of every one."""
    return call.parent if isinstance(call.parent, exp.IgnoreNulls) else call


def _is_inside_another(call: exp.Expr) -> bool:
    """Whether it stands in an aggregate or a window."""
    above = _whole(call).parent
    while above is not None and not isinstance(above, exp.Query):
        if isinstance(above, exp.AggFunc | exp.Window | exp.Filter):
            return True
        above = above.parent
    return False


def _item(key: exp.Expr, items: list[exp.Expr]) -> exp.Expr | None:
    """The item of the SELECT list that a key is the place or the alias of."""
    if isinstance(key, exp.Literal) and str(key.this).isdecimal() and 1 <= int(str(key.this)) <= len(items):
        return items[int(str(key.this)) - 1].unalias()
    named = [each for each in items if isinstance(each, exp.Alias) and each.alias.casefold() == key.name.casefold()]
    return named[0].this if named and isinstance(key, exp.Column) and not key.table else None
