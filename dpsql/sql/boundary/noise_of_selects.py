"""Noise analysis of post-processing SQL, SELECT by SELECT.

Each relation has columns (`Noise`), a key if one is known, and a flag whether noise decided which rows it has. A noisy
condition, key or order selects rows randomly, so nothing built on it gets intervals. The same holds for SQL that the
analysis does not cover.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.plan.redraws import Noise
from dpsql.sql.boundary.noise_of_values import all_known, merged, noise_of
from dpsql.sql.boundary.noise_scopes import Numbers, Rows, Scope, UnknownNoise
from dpsql.sql.names.select_list import is_star


class Selects:
    """The relations of one statement, `known` by name, and the analysis of its queries."""

    def __init__(self) -> None:
        self.names = Numbers()
        self.known: dict[str, Rows] = {}
        self._positive: list[exp.Expr] = []

    def positive(self, node: exp.Expr) -> None:
        if not any(each is node for each in self._positive):
            self._positive.append(node)

    def note(self) -> None:
        """Make each value that must be above 0 NaN otherwise, in the tree."""
        for node in self._positive:
            test = exp.GT(this=exp.Paren(this=node.copy()), expression=exp.Literal.number("0"))
            nan = exp.Cast(this=exp.Literal.string("NaN"), to=exp.DataType.build("DOUBLE"))
            value = exp.Paren(this=node.copy())
            node.replace(exp.Paren(this=exp.Case(ifs=[exp.If(this=test, true=value)], default=nan)))

    # Relations.

    def rows(self, query: exp.Expr, outer: Scope | None) -> Rows:
        """Return the relation that a query produces. Raises UnknownNoise."""
        if isinstance(query, exp.Subquery):
            rows = self.rows(query.this, outer)
            return (
                rows if not any(query.args.get(each) for each in ("limit", "offset")) else replace(rows, steady=False)
            )
        if isinstance(query, exp.SetOperation):
            return self._set(query, outer)
        if not isinstance(query, exp.Select):
            raise UnknownNoise
        return self._select(query, outer)

    def _set(self, query: exp.SetOperation, outer: Scope | None) -> Rows:
        if query.args.get("by_name") or query.args.get("on"):
            raise UnknownNoise
        first, second = self.rows(query.this, outer), self.rows(query.expression, outer)
        if len(first.columns) != len(second.columns):
            raise UnknownNoise
        columns = self.names.numbered(
            merged(one, other) for one, other in zip(first.columns, second.columns, strict=True)
        )
        keeps_all = isinstance(query, exp.Union) and not query.args.get("distinct")
        steady = first.steady and second.steady and (keeps_all or all(each.known for each in columns))
        limited = any(query.args.get(each) for each in ("limit", "offset"))
        return Rows(first.names, columns, None, first.hidden or second.hidden, steady and not limited)

    def _select(self, select: exp.Select, outer: Scope | None) -> Rows:
        scope = Scope(self, outer)
        source = select.args.get("from_")
        if source is not None:
            self._source(source.this, scope)
        for join in select.args.get("joins") or []:
            self._join(join, scope)
        if select.args.get("laterals") or select.args.get("pivots"):
            raise UnknownNoise
        scope.windows = {each.name.casefold(): each for each in select.args.get("windows") or []}
        if select.args.get("where") is not None:
            scope.steady &= all_known([select.args["where"].this], scope)
        grouped = self._grouped(select, scope)
        names, columns = self._items(select, scope)
        scope.aliases = {name: each for name, each in zip(names, columns, strict=True) if name}
        for clause in ("having", "qualify"):
            if select.args.get(clause) is not None:
                scope.steady &= all_known([select.args[clause].this], scope)
        rows = self._projected(names, columns, scope, None if grouped else scope.key)
        if grouped is not None:
            rows = replace(rows, key=self._key_of(grouped, scope, rows))
        return self._cut(select, self._distinct(select, rows), scope)

    def _projected(self, names: list[str], columns: list[Noise], scope: Scope, key: frozenset[int] | None) -> Rows:
        shown = frozenset().union(*(each.column for each in columns)) if columns else frozenset()
        numbered = tuple(each if each.column else self.names.numbered([each])[0] for each in columns)
        return Rows(
            tuple(names), numbered, key if key is not None and key <= shown else None, scope.hidden, scope.steady
        )

    def _grouped(self, select: exp.Select, scope: Scope) -> list[exp.Expr] | None:
        """Return the grouping keys, or None if the SELECT does not aggregate."""
        group = select.args.get("group")
        own = select.walk(prune=lambda each: isinstance(each, (exp.Query, exp.Window)) and each is not select)
        if group is None and not any(isinstance(each, exp.AggFunc) for each in own):
            return None
        if group is None:
            return []
        if any(group.args.get(each) for each in ("all", "rollup", "cube", "grouping_sets", "totals")):
            raise UnknownNoise
        keys = [self._numbered(each, select) for each in group.expressions]
        aliases = {each.alias.casefold(): each.this for each in select.expressions if isinstance(each, exp.Alias)}
        keys = [aliases.get(each.name.casefold(), each) if self._is_alias(each, scope) else each for each in keys]
        scope.steady &= all_known(keys, scope)
        return keys

    @staticmethod
    def _is_alias(node: exp.Expr, scope: Scope) -> bool:
        if not isinstance(node, exp.Column) or node.table:
            return False
        name = node.name.casefold()
        return not any(name in rows.names for _, rows in scope.sources)

    @staticmethod
    def _numbered(key: exp.Expr, select: exp.Select) -> exp.Expr:
        if isinstance(key, exp.Literal) and not key.args.get("is_string"):
            place = int(str(key.this)) if str(key.this).isdecimal() else 0
            if not 1 <= place <= len(select.expressions):
                raise UnknownNoise
            item: exp.Expr = select.expressions[place - 1]
            return item.this if isinstance(item, exp.Alias) else item
        return key

    @staticmethod
    def _key_of(keys: list[exp.Expr], scope: Scope, rows: Rows) -> frozenset[int] | None:
        """Return the key columns of groups, if all of them are selected unchanged."""
        columns = [noise_of(each, scope).column for each in keys]
        shown = frozenset().union(*(each.column for each in rows.columns))
        if not all(each and each <= shown for each in columns):
            return None
        return frozenset().union(*columns)

    def _items(self, select: exp.Select, scope: Scope) -> tuple[list[str], list[Noise]]:
        names: list[str] = []
        columns: list[Noise] = []
        for item in select.expressions:
            if is_star(item):
                for name, each in self._starred(item, scope):
                    names.append(name)
                    columns.append(each)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(inner, exp.Columns | exp.Star):
                raise UnknownNoise
            noise = noise_of(inner, scope)
            names.append(item.alias_or_name.casefold())
            columns.append(noise)
            if isinstance(item, exp.Alias):
                scope.aliases.setdefault(item.alias.casefold(), noise)
        return names, columns

    @staticmethod
    def _starred(item: exp.Expr, scope: Scope) -> list[tuple[str, Noise]]:
        star = item.this if isinstance(item, exp.Column) else item
        if scope.merged or any(star.args.get(each) for each in ("except_", "replace", "rename")):
            raise UnknownNoise
        table = item.table.casefold() if isinstance(item, exp.Column) else ""
        return [each for alias, rows in scope.sources if table in ("", alias) for each in rows.items()]

    @staticmethod
    def _distinct(select: exp.Select, rows: Rows) -> Rows:
        distinct = select.args.get("distinct")
        if distinct is None:
            return rows
        if distinct.args.get("on") is not None:
            raise UnknownNoise
        if rows.key is not None:  # no duplicates
            return rows
        known = all(each.known for each in rows.columns)
        return replace(rows, steady=rows.steady and known)

    @staticmethod
    def _cut(select: exp.Select, rows: Rows, scope: Scope) -> Rows:
        """Apply LIMIT, which selects rows by ORDER BY. ORDER BY without LIMIT changes no row."""
        if not any(select.args.get(each) for each in ("limit", "offset")):
            return rows
        order = select.args.get("order")
        terms = [each.this for each in order.expressions] if order is not None else []
        if any(isinstance(each, exp.Literal) for each in terms) or not all_known(terms, scope):
            return replace(rows, steady=False)
        by = frozenset().union(*(noise_of(each, scope).column for each in terms))
        total = rows.key is not None and rows.key <= by
        return rows if total else replace(rows, steady=False)

    # FROM.

    def _source(self, item: exp.Expr, scope: Scope) -> None:
        alias = item.args.get("alias")
        name = item.alias_or_name
        if isinstance(item, exp.Subquery):
            rows = self.rows(item, scope.outer)
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            if item.name not in self.known or item.args.get("pivots"):
                raise UnknownNoise
            rows = self.known[item.name]
        else:
            raise UnknownNoise
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if columns:
            names = tuple(each.name.casefold() for each in columns)
            rows = replace(rows, names=(*names, *rows.names[len(names) :]))
        scope.add(name, self.names.anew(rows))

    def _join(self, join: exp.Join, scope: Scope) -> None:
        kind = f"{join.args.get('method') or ''} {join.side} {join.kind}".upper().split()
        if set(kind) - {"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS"}:
            raise UnknownNoise
        self._source(join.this, scope)
        if set(kind) & {"RIGHT", "FULL"}:
            scope.key = None
        if set(kind) & {"LEFT", "RIGHT", "FULL"}:
            scope.without_hidden()
        if join.args.get("on") is not None:
            scope.steady &= all_known([join.args["on"]], scope)
        for each in join.args.get("using") or []:
            scope.merged.add(each.name.casefold())
            scope.steady &= scope.column(exp.column(each.name)).known
