"""Aggregates of a public column that the GROUP BY keys determine: ANY_VALUE, MIN, MAX, AVG, MEDIAN, MODE and
SUM(DISTINCT) are the column itself, which becomes another key. SUM is the column times the number of rows.

The groups stay the same: rows with the same key of a public row agree in all of its columns. So the value is exact and
free. It is shown for every public group, even without rows, and with or without FILTER: no private row decides whether
it is there. If the keys also determine terms of the FILTER and these do not hold, the value is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.schema.columns import TableSchema, Type
from dpsql.sql.bind.grouping_sets import SEVERAL
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.nodes import ANY_VALUE, said
from dpsql.sql.syntax.parse import Statement, span_of
from dpsql.sql.syntax.refusals import NAMED

Place = tuple[str, str]
"""A table alias and a column name, folded."""


def with_fixed_values(statement: Statement, tree: exp.Query, catalog: Catalog) -> None:
    """Replace such calls with columns, in place. Raises UnsupportedSQL for every other ANY_VALUE."""
    common = {each.alias.casefold() for each in tree.find_all(exp.CTE)}
    for select in list(tree.find_all(exp.Select)):
        if isinstance(select.args.get("group"), exp.Group) and not catalog.any_name:
            _GroupedSelect(statement.sql, select, catalog, common).replace()
    for other in list(tree.find_all(exp.AnyValue)):
        around = other.find_ancestor(exp.Select)
        read = None if around is None or catalog.any_name else _GroupedSelect(statement.sql, around, catalog, common)
        if read is not None and read.with_mode(other):
            continue
        word = next((each for each in statement.tokens if each.text.upper() == "ANY_VALUE"), None)
        span = span_of(statement.sql, other) if word is None else Span(statement.sql, word.start, word.end)
        if read is not None and read.leave_to_binder(other):
            continue
        without = None if read is None else read.without_key(other)
        raise UnsupportedSQL(NAMED[exp.AnyValue], span=span, hint=without or "")


class _GroupedSelect:
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
        self.using = _common_names(joins)
        self.equal = list(self._equalities(joins))

    def _equalities(self, joins: list[exp.Join]) -> Iterator[tuple[Place, Place]]:
        """Yield pairs of columns that inner joins equate."""
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
        """Return the table and column of a node, or None if uncertain."""
        if not isinstance(node, exp.Column):
            return None
        name, table = node.name.casefold(), node.table.casefold()
        if table:
            return (table, name) if table in self.tables and name in self.tables[table].by_name else None
        owners = [alias for alias, schema in self.tables.items() if name in schema.by_name]
        common = len(owners) == 1 or name in self.using
        return (owners[0], name) if owners and common and self.known else None

    def replace(self) -> None:
        """Replace calls with columns, and add these to GROUP BY."""
        group, calls = self.select.args["group"], list(self._calls())
        if self.known and all(each.public for each in self.tables.values()):
            # An answer from public tables is exact already, and more key columns would hide its unique key.
            calls = [(call, columns) for call, columns in calls if isinstance(call, exp.AnyValue)]
        several = any(isinstance(each, SEVERAL) for each in group.expressions)  # `looked_up_aggregates` handles these
        if not calls or several or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "all")):
            return
        keys = self._keys(group)
        added: dict[Place, exp.Expr] = {}
        for call, columns in calls:
            if all(self._is_fixed(place, keys) for place in columns):
                added |= self._replace_call(call, columns, keys)
        group.set("expressions", [*group.expressions, *(each for place, each in added.items() if place not in keys)])

    def with_mode(self, call: exp.Expr) -> bool:
        """Replace ANY_VALUE of public columns with MODE, and return whether that was possible.

        MODE selects privately from the columns' values, unless the binder finds that the keys determine the value.
        """
        operand = _operand(call)
        columns = None if operand is None else self._columns(operand)
        public = columns and all(self.tables[alias].public for alias, _ in columns)
        if operand is None or not public or all(each.public for each in self.tables.values()):
            return False
        if not self._is_own_aggregate(call) or self.without_key(call) is not None:
            return False
        self._replace_by_mode(call, operand)
        return True

    def _is_own_aggregate(self, call: exp.Expr) -> bool:
        """Return whether a call stands in the SELECT list, HAVING or ORDER BY, outside of other aggregates."""
        around = call.find_ancestor(exp.Where, exp.Group, exp.Join, exp.Select)
        return around is self.select and not _is_inside_another(call)

    def _replace_by_mode(self, call: exp.Expr, operand: exp.Expr) -> None:
        inner = call.parent if isinstance(call.parent, exp.IgnoreNulls) else call
        mode = exp.Mode(this=operand.copy())
        mode.meta.update(call.meta)  # messages use the written name
        aliased = _whole(call) is inner and inner.parent is self.select
        inner.replace(exp.alias_(mode, exp.to_identifier(said(call), quoted=True)) if aliased else mode)

    def leave_to_binder(self, call: exp.Expr) -> bool:
        """Replace ANY_VALUE of sub-query columns with a marked MODE, and return whether that was possible. The binder
        knows whether these columns are public, and refuses others."""
        operand = _operand(call)
        grouped = bool(self.select.args.get("group"))
        if operand is None or self.known or not grouped or not self._is_own_aggregate(call):
            return False
        call.meta[ANY_VALUE] = True
        self._replace_by_mode(call, operand)
        return True

    def without_key(self, call: exp.Expr) -> str | None:
        """Return what to declare, if a call reads one joined public table without a declared unique key."""
        operand = _operand(call)
        if operand is None:
            return None
        columns = self._columns(operand) or {}
        for alias, column in self._joined():
            schema = self.tables.get(alias)
            read = {place[0] for place in columns} == {alias}
            if read and schema is not None and schema.public and not schema.unique:
                name = schema.by_name[column].name
                return (
                    f'If each {name} stands in one row of {schema.name}, declare unique=["{name}"] on it: '
                    f"then GROUP BY {name} determines {operand.name}, and ANY_VALUE of it is exact and free."
                )
        return None

    def _joined(self) -> list[Place]:
        return [each for pair in self.equal for each in pair]

    def _replace_call(
        self, call: exp.Expr, columns: Mapping[Place, exp.Column], keys: set[Place]
    ) -> dict[Place, exp.Expr]:
        """Replace one call with its value, and return the columns that the value reads."""
        whole, terms = _whole(call), self._fixed_terms(call, keys)
        read = [columns, *(self._columns(each) or {} for each in terms)]
        value = self._value(call, columns)
        if terms and not isinstance(call, exp.Sum):  # false for every row of the group
            value = exp.Paren(this=exp.Case(ifs=[exp.If(this=exp.and_(*terms), true=value)]))
        if whole.parent is self.select:
            value = exp.alias_(value, exp.to_identifier(said(call), quoted=True))
        whole.replace(value)
        return {place: column.copy() for each in read for place, column in each.items()}

    def _fixed_terms(self, call: exp.Expr, keys: set[Place]) -> list[exp.Expr]:
        """Return the FILTER terms that are constant within a group."""
        whole = _whole(call)
        condition = whole.expression.this if isinstance(whole, exp.Filter) else None
        terms = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        read = ((each, self._columns(each)) for each in terms if each is not None)
        return [
            each.copy() for each, columns in read if columns and all(self._is_fixed(place, keys) for place in columns)
        ]

    def _value(self, call: exp.Expr, columns: Mapping[Place, exp.Column]) -> exp.Expr:
        """Return a call over equal values: the value or, for SUM, the value times the number of rows."""
        operand = _operand(call)
        assert operand is not None  # it has columns
        value = operand.copy()
        value = value if isinstance(value, exp.Column) else exp.Paren(this=value)
        if isinstance(call, exp.Avg):
            real = exp.cast(value, "DOUBLE")
            real.args["to"].meta.setdefault("word", "AVG")
            return real
        if not isinstance(call, exp.Sum) or isinstance(call.this, exp.Distinct):
            return value
        plain = isinstance(value, exp.Column) and not any(
            self.tables[alias].by_name[name].nullable for alias, name in columns
        )
        rows: exp.Expr = exp.Count(this=exp.Star() if plain else value.copy(), big_int=True)
        filtered = _whole(call)
        if isinstance(filtered, exp.Filter):
            rows = exp.Filter(this=rows, expression=filtered.expression.copy())
        return exp.Paren(this=exp.Mul(this=rows, expression=value))

    def _calls(self) -> Iterator[tuple[exp.Expr, dict[Place, exp.Column]]]:
        """Yield aggregates of public columns, with these columns. A FILTER must be a condition over known columns."""
        for part in (*self.select.expressions, self.select.args.get("having"), self.select.args.get("order")):
            for node in [] if part is None else list(part.walk(prune=lambda each: isinstance(each, exp.Query))):
                if not _may_be_fixed(node) or _is_inside_another(node):
                    continue
                columns, whole = self._columns(_operand(node)), _whole(node)
                if columns and (not isinstance(whole, exp.Filter) or self._is_condition(whole.expression.this)):
                    yield node, columns

    def _columns(self, node: exp.Expr | None) -> dict[Place, exp.Column] | None:
        """Return the columns of an expression; None if it is missing, reads something else, or has an unknown
        column."""
        if node is None or any(isinstance(each, exp.Query | exp.AggFunc | exp.Window) for each in node.walk()):
            return None
        places = [(self._place(each), each) for each in node.find_all(exp.Column)]
        known = {place: each for place, each in places if place is not None}
        return known if all(place is not None for place, _ in places) else None

    def _is_condition(self, node: exp.Expr) -> bool:
        columns = self._columns(node)
        if columns and isinstance(node, exp.Column):
            return all(self.tables[alias].by_name[name].type is Type.BOOLEAN for alias, name in columns)
        return columns is not None and isinstance(node.unnest(), exp.Predicate | exp.Connector | exp.Not)

    def _keys(self, group: exp.Group) -> set[Place]:
        """Return the grouping columns, and those equal to them."""
        items = self.select.expressions
        keys: set[Place] = set()
        for key in group.expressions:
            place = self._place(key) or self._place(_item(key, items))
            keys |= {place} if place is not None else set()
        while more := {two for pair in self.equal for one, two in (pair, pair[::-1]) if one in keys} - keys:
            keys |= more
        return keys

    def _is_fixed(self, place: Place, keys: set[Place]) -> bool:
        """Return whether the keys contain a unique key of the public row that is never NULL there."""
        alias, schema = place[0], self.tables[place[0]]
        joined = self._joined()
        return schema.public and any(
            all(
                (alias, name.casefold()) in keys
                and ((alias, name.casefold()) in joined or not schema.by_name[name.casefold()].nullable)
                for name in unique
            )
            for unique in schema.unique
        )


_FIXED = (exp.AnyValue, exp.Max, exp.Min, exp.Avg, exp.Median, exp.Mode)
"""Aggregates of equal values that are the value itself."""


def _may_be_fixed(node: exp.Expr) -> bool:
    if isinstance(node, exp.Sum):
        return not isinstance(node.this, exp.Distinct) or len(node.this.expressions) == 1
    return type(node) in _FIXED and not node.args.get("expressions")


def _operand(call: exp.Expr) -> exp.Expr | None:
    """Return the operand of a call, inside DISTINCT, or None for `MODE()`."""
    operand: exp.Expr | None = call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this
    return operand


def _common_names(joins: list[exp.Join]) -> frozenset[str]:
    """Return the names of USING, if no join keeps unmatched right rows: a bare name is then the left column."""
    if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
        return frozenset()
    return frozenset(each.name.casefold() for join in joins for each in join.args.get("using") or [])


def _whole(call: exp.Expr) -> exp.Expr:
    """Return the call with its FILTER and the IGNORE NULLS that the parser adds to every ANY_VALUE."""
    whole = call.parent if isinstance(call.parent, exp.IgnoreNulls) else call
    return whole.parent if isinstance(whole.parent, exp.Filter) and whole.arg_key == "this" else whole


def _is_inside_another(call: exp.Expr) -> bool:
    """Return whether a call stands inside an aggregate or window."""
    above = _whole(call).parent
    while above is not None and not isinstance(above, exp.Query):
        if isinstance(above, exp.AggFunc | exp.Window | exp.Filter):
            return True
        above = above.parent
    return False


def _item(key: exp.Expr, items: list[exp.Expr]) -> exp.Expr | None:
    """Return the SELECT item that a key names by position or alias."""
    if isinstance(key, exp.Literal) and str(key.this).isdecimal() and 1 <= int(str(key.this)) <= len(items):
        return items[int(str(key.this)) - 1].unalias()
    named = [each for each in items if isinstance(each, exp.Alias) and each.alias.casefold() == key.name.casefold()]
    return named[0].this if named and isinstance(key, exp.Column) and not key.table else None
