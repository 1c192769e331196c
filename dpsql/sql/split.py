"""One SELECT that aggregates people's rows and has SQL over its answer beside it: windows, QUALIFY, answers of
sub-queries. It is split into a release, and a SELECT over it."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.sql.aggregate_calls import is_aggregate
from dpsql.sql.dialect_nodes import Named
from dpsql.sql.parse import span_of
from dpsql.sql.private import INTERVAL_ENDS
from dpsql.sql.select_list import items_of

Asks = Callable[[exp.Expr], bool]
_WRAPPERS = (exp.Filter, exp.WithinGroup, Named)
_AROUND_WINDOWED = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def has_window(node: exp.Expr) -> bool:
    """Whether a window function stands in an expression, its sub-queries apart."""
    return any(isinstance(each, exp.Window) for each in node.walk(prune=lambda each: isinstance(each, exp.Query)))


def is_release(select: exp.Select) -> bool:
    """Whether a SELECT over people's rows aggregates them: it groups, removes doubles, or has an aggregate that is not
    windowed."""
    if any(select.args.get(each) for each in ("distinct", "group", "having")):
        return True
    return any(_aggregates(item) for item in select.expressions)


def _aggregates(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        windowed = node.this
        while isinstance(windowed, _AROUND_WINDOWED):
            windowed = windowed.this
        inner = [*windowed.iter_expressions(), *(each for each in node.iter_expressions() if each is not node.this)]
        return any(_aggregates(each) for each in inner)
    return _is_aggregate(node) or any(_aggregates(each) for each in node.iter_expressions())


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, (exp.AggFunc, *_WRAPPERS)) or is_aggregate(node)


def needs_split(select: exp.Select, asks: Asks) -> bool:
    """Whether SQL over its answer stands beside its aggregates. asks: whether a sub-query reads people's rows."""
    if not is_release(select):
        return False
    if select.args.get("qualify") is not None or select.args.get("windows"):
        return True
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None and select.args.get("group") is not None:
        return True
    clauses = [*select.expressions, *(select.args[each] for each in ("having", "order") if select.args.get(each))]
    return any(has_window(each) or _asks_above(each, asks) for each in clauses)


def _asks_above(node: exp.Expr, asks: Asks) -> bool:
    """Whether a sub-query of people's rows stands in an expression, beside its aggregates."""
    if isinstance(node, exp.Query):
        return asks(node)
    if _is_aggregate(node):
        return False
    return any(_asks_above(each, asks) for each in node.iter_expressions())


class Split:
    """The two halves. `release` shows the items that are its own, `shown` of them, and then whatever the rest reads."""

    def __init__(self, sql: str, select: exp.Select, asks: Asks) -> None:
        self.sql = sql
        self.select = select
        self.asks = asks
        self.items = items_of(select)
        group = select.args.get("group")
        self.keys: list[exp.Expr] = list(group.expressions) if group is not None else []
        self.own = [not self._is_above(item) for item, _ in self.items]
        self.read: list[exp.Expr] = []
        self.shown = sum(self.own)
        self._outer = self._select_above()
        self.release = self._release()

    def above(self, relation: str) -> exp.Select:
        """The SELECT over the release."""
        self._outer.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(relation))))
        return self._outer

    def _is_above(self, node: exp.Expr) -> bool:
        return has_window(node) or _asks_above(node, self.asks)

    def _release(self) -> exp.Select:
        release = self.select.copy()
        items = [each for each, own in zip(release.expressions, self.own, strict=True) if own]
        release.set("expressions", [*items, *(each.copy() for each in self.read)])
        for clause in ("qualify", "windows", "order", "limit", "offset", "distinct"):
            release.set(clause, None)
        having = self.select.args.get("having")
        if having is not None and self._is_above(having):
            release.set("having", None)
        group = release.args.get("group")
        if group is not None:
            group.set("expressions", [self._key(each) for each in group.expressions])
        return release

    def _key(self, key: exp.Expr) -> exp.Expr:
        """A key as it is written, or the item that a number means."""
        item = self._numbered(key)
        return key if item is None else item.copy()

    def _numbered(self, key: exp.Expr) -> exp.Expr | None:
        if not isinstance(key, exp.Literal) or key.args.get("is_string") or not str(key.this).isdecimal():
            return None
        place = int(str(key.this)[:9])
        if not 1 <= place <= len(self.items):
            return None
        if not self.own[place - 1]:
            raise SQLSyntaxError("GROUP BY cannot hold a window function or an answer.", span=span_of(self.sql, key))
        return self.items[place - 1][0]

    def _select_above(self) -> exp.Select:
        outer = exp.Select()
        items: list[exp.Expr] = []
        for (item, alias), own, node in zip(self.items, self.own, self.select.expressions, strict=True):
            place = sum(self.own[: len(items)])
            read = exp.column(f"c{place}", quoted=True) if own else self._lifted(item.copy())
            items.append(exp.alias_(read, exp.to_identifier(alias or self._words(node), quoted=True)))
        outer.set("expressions", items)
        having = self.select.args.get("having")
        if having is not None and self._is_above(having):
            outer.set("where", exp.Where(this=self._lifted(having.this.copy())))
        for clause in ("qualify", "order", "distinct", "limit", "offset"):
            node = self.select.args.get(clause)
            if node is not None:
                outer.set(clause, self._children(node.copy()))
        windows = self.select.args.get("windows")
        if windows:
            outer.set("windows", [self._window(each.copy()) for each in windows])
        return outer

    def _words(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Column):
            return str(item.name)
        return str(item.sql(dialect="duckdb", comments=False))

    # What stands above the aggregation: keys, aggregates and columns become columns of the release.

    def _lifted(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        if any(node == self._key(key) for key in self.keys):
            return self._column(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if _is_aggregate(node) or self._is_of_release(node):
            return self._column(node)
        if isinstance(node, exp.Column):
            return self._name(node)
        return self._children(node)

    def _children(self, node: exp.Expr) -> exp.Expr:
        for name, value in list(node.args.items()):
            if isinstance(value, list):
                node.set(name, [self._lifted(each) if isinstance(each, exp.Expr) else each for each in value])
            elif isinstance(value, exp.Expr):
                node.set(name, self._lifted(value))
        return node

    def _window(self, node: exp.Window) -> exp.Expr:
        windowed: exp.Expr = node.this
        while isinstance(windowed, _AROUND_WINDOWED):
            if isinstance(windowed, exp.Filter):
                windowed.set("expression", self._children(windowed.expression))
            windowed = windowed.this
        if isinstance(windowed, Named):
            raise UnsupportedSQL(
                "named arguments (name => value) belong to aggregates of people's rows, not to windows.",
                span=span_of(self.sql, windowed),
            )
        if not isinstance(windowed, exp.Identifier):
            self._children(windowed)
        for name in ("partition_by", "order", "spec"):
            value = node.args.get(name)
            if isinstance(value, list):
                node.set(name, [self._lifted(each) for each in value])
            elif isinstance(value, exp.Expr):
                node.set(name, self._children(value))
        return node

    def _name(self, node: exp.Column) -> exp.Expr:
        """A column, which the release has to show, or the alias of an item."""
        if node.table:
            return self._column(node)
        for (item, alias), own in zip(self.items, self.own, strict=True):
            if alias and alias.casefold() == node.name.casefold():
                return self._lifted(item.copy()) if own else node
        return self._column(node)

    @staticmethod
    def _is_of_release(node: exp.Expr) -> bool:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return True
        return isinstance(node, exp.Anonymous) and str(node.this).upper() in INTERVAL_ENDS

    def _column(self, node: exp.Expr) -> exp.Expr:
        if node not in self.read:
            self.read.append(node.copy())
        return exp.column(f"c{self.shown + self.read.index(node)}", quoted=True)
