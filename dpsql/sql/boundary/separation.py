"""Split a SELECT that aggregates private rows and post-processes its own answer, by windows, QUALIFY or answers of
sub-queries, into a release and a SELECT over it."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.sql.bind.aggregate_calls import is_aggregate
from dpsql.sql.bind.private_select import INTERVAL_ENDS
from dpsql.sql.boundary.format_arguments import format_in_keys, has_format
from dpsql.sql.names.item_names import ItemNames, leaves
from dpsql.sql.names.scopes import Scope
from dpsql.sql.names.select_list import is_star, items_of, place_of
from dpsql.sql.names.statement_names import unwritten
from dpsql.sql.syntax.nodes import NamedArguments, said
from dpsql.sql.syntax.parse import span_of

Asks = Callable[[exp.Expr], bool]
_WRAPPERS = (exp.Filter, exp.WithinGroup, NamedArguments)
_AROUND_WINDOWED = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def has_window(node: exp.Expr) -> bool:
    """Return whether an expression holds a window function, ignoring its sub-queries."""
    return any(isinstance(each, exp.Window) for each in node.walk(prune=lambda each: isinstance(each, exp.Query)))


def is_release(select: exp.Select) -> bool:
    """Return whether a SELECT over private rows aggregates them: by groups, DISTINCT, or an aggregate without OVER."""
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
    """Return whether post-processing SQL stands next to the aggregates. asks: whether a sub-query reads private
    tables."""
    if not is_release(select):
        return False
    if select.args.get("qualify") is not None or select.args.get("windows"):
        return True
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None and select.args.get("group") is not None:
        return True
    keys = key_items(select)
    items = [each for each in select.expressions if all(each is not key for key in keys)]
    clauses = [*items, *(select.args[each] for each in ("having", "order") if select.args.get(each))]
    return any(has_window(each) or _asks_above(each, asks) or has_format(each) for each in clauses)


def _asks_above(node: exp.Expr, asks: Asks) -> bool:
    """Return whether an expression holds a sub-query over private tables next to its aggregates."""
    if isinstance(node, exp.Query):
        return asks(node)
    if _is_aggregate(node):
        return False
    return any(_asks_above(each, asks) for each in node.iter_expressions())


def key_items(select: exp.Select) -> list[exp.Expr]:
    """Return the items with a sub-query and no window that GROUP BY names by position, alias, or their own text."""
    group = select.args.get("group")
    items = items_of(select)
    terms = [] if group is None else leaves(group.expressions)
    named = []
    for place, (each, (item, alias)) in enumerate(zip(select.expressions, items, strict=True)):
        if item.find(exp.Query) is None or has_window(item):
            continue
        for term in terms:
            by_alias = isinstance(term, exp.Column) and not term.table and term.name.casefold() == alias.casefold()
            if place_of(term, items) == place or (by_alias and alias) or term == item:
                named.append(each)
    return named


class SeparatedSelect:
    """The two halves. `release` first shows its `shown` own items, then everything else that the outer SELECT reads."""

    def __init__(self, sql: str, select: exp.Select, asks: Asks, scope: Callable[[], Scope]) -> None:
        self.sql = sql
        self.select = select.copy()
        self.asks = asks
        self.items = items_of(self.select)
        self.names = ItemNames(self.items, scope)
        self.prefix = unwritten(sql, "c")
        self._check_stars()
        self.own = self._own()
        self._group_by_all()
        self.keys: list[tuple[exp.Expr, exp.Expr]] = []
        """Each GROUP BY term as the release writes it, and the expression it means."""
        self._resolve_keys()
        self.read: list[exp.Expr] = []
        self.shown = sum(self.own)
        self._outer = self._select_above()
        self.release = self._release()

    def column(self, place: int) -> str:
        """Return the outer name of a release column."""
        return f"{self.prefix}{place}"

    def _own(self) -> list[bool]:
        """Return which items the release shows: those without a window or an answer that do not name such an item."""
        keys = key_items(self.select)
        own: list[bool] = []
        for (item, _), each in zip(self.items, self.select.expressions, strict=True):
            is_key = any(each is key for key in keys)
            own.append(is_key or not (self._is_above(item) or self._names_above(item, own)))
        return own

    def _names_above(self, item: exp.Expr, own: list[bool]) -> bool:
        """Return whether an item names an earlier one that the release does not show."""
        if all(own):
            return False
        named = [self.names.item_of_name(each) for each in item.find_all(exp.Column)]
        return any(at is not None and at < len(own) and not own[at] for at in named)

    def _resolve_keys(self) -> None:
        """Replace aliases and positions in GROUP BY with expressions, so that comparison is by meaning.

        An item with a sub-query keeps its alias: two copies of a sub-query would be two tables.
        """
        group = self.select.args.get("group")
        for term in [] if group is None else leaves(group.expressions):
            at = self.names.item_of_key(term)
            if at is None:
                self.keys.append((term, term))
                continue
            item, alias = self.items[at]
            if not self.own[at]:
                if has_format(item) and not has_window(item) and item.find(exp.Query) is None:
                    raise format_in_keys(span_of(self.sql, item))
                raise SQLSyntaxError(
                    "GROUP BY cannot hold a window function or an answer.",
                    span=span_of(self.sql, term),
                    hint="Group by ranges that are public, as WIDTH_BUCKET(x, 0, 100, 10), or put the window over the "
                    "groups in a sub-query.",
                )
            by_name = item.find(exp.Query) is not None and alias
            written = exp.column(exp.to_identifier(alias, quoted=True)) if by_name else item.copy()
            term.replace(written)
            self.keys.append((written, item))

    def _check_stars(self) -> None:
        """Refuse stars, which would show the generated names of release columns."""
        for node in self.select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not self.select):
            star = isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count | exp.Select | exp.Column)
            if star or isinstance(node, exp.Columns):
                what = "COLUMNS()" if isinstance(node, exp.Columns) else "* in an expression"
                raise UnsupportedSQL(
                    f"{what} is not supported beside aggregates of people's rows.",
                    span=span_of(self.sql, node),
                    hint="Name the columns.",
                )

    def _group_by_all(self) -> None:
        """Expand GROUP BY ALL to the items, as written, that read a column and hold no aggregate or window. Columns
        that other items read are no keys."""
        group = self.select.args.get("group")
        if group is None or not group.args.get("all"):
            return
        keys: list[exp.Expr] = []
        above_keys: set[str] = set()
        for place, ((item, alias), own) in enumerate(zip(self.items, self.own, strict=True), 1):
            if is_star(item):
                raise UnsupportedSQL(
                    "GROUP BY ALL beside * is not supported. Name the columns.", span=span_of(self.sql, item)
                )
            names = {each.name.casefold() for each in item.find_all(exp.Column) if not each.table}
            if has_window(item) or _aggregates(item) or names & above_keys:
                above_keys.add(alias.casefold())
            elif own and item.find(exp.Column) is not None:
                keys.append(exp.Literal.number(place))
        group.set("all", None)
        group.set("expressions", keys)
        if not keys:
            self.select.set("group", None)

    def above(self, relation: str) -> exp.Select:
        """Return the SELECT over the release."""
        self._outer.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(relation))))
        return self._outer

    def _is_above(self, node: exp.Expr) -> bool:
        return has_window(node) or _asks_above(node, self.asks) or has_format(node)

    def _release(self) -> exp.Select:
        release = self.select.copy()
        items = [each for each, own in zip(release.expressions, self.own, strict=True) if own]
        release.set("expressions", [*items, *(each.copy() for each in self.read)])
        for clause in ("qualify", "windows", "order", "limit", "offset", "distinct"):
            release.set(clause, None)
        having = self.select.args.get("having")
        if having is not None and self._is_above(having):
            release.set("having", None)
        return release

    def _select_above(self) -> exp.Select:
        outer = exp.Select()
        items: list[exp.Expr] = []
        for (item, alias), own, node in zip(self.items, self.own, self.select.expressions, strict=True):
            place = sum(self.own[: len(items)])
            read = exp.column(self.column(place), quoted=True) if own else self._lifted(item.copy())
            items.append(exp.alias_(read, exp.to_identifier(alias or self._words(node), quoted=True)))
        outer.set("expressions", items)
        having = self.select.args.get("having")
        if having is not None and self._is_above(having):
            outer.set("where", exp.Where(this=self._lifted(having.this.copy())))
        for clause in ("qualify", "limit", "offset"):
            node = self.select.args.get(clause)
            if node is not None:
                outer.set(clause, self._children(node.copy()))
        for clause in ("order", "distinct"):
            node = self.select.args.get(clause)
            if node is not None:
                outer.set(clause, self._ordering(node.copy()))
        windows = self.select.args.get("windows")
        if windows:
            outer.set("windows", [self._window(each.copy()) for each in windows])
        return outer

    def _words(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Column):
            return str(item.name)
        return said(item)

    # The part above the aggregation: keys, aggregates and columns become columns of the release.

    def _ordering(self, clause: exp.Expr) -> exp.Expr:
        """Rewrite ORDER BY and DISTINCT ON, where a bare name means an item's alias before a key."""
        listed = clause.args.get("on") if isinstance(clause, exp.Distinct) else clause
        for term in listed.expressions if listed is not None else []:
            value = term.this if isinstance(term, exp.Ordered) else term
            named = self._aliased(value) if isinstance(value, exp.Column) and not value.table else None
            value.replace(self._lifted(value.copy()) if named is None else named)
        return clause

    def _lifted(self, node: exp.Expr) -> exp.Expr:
        for written, meant in self.keys:
            if self.names.are_same(node, meant):
                return self._column(written if meant is not written and written != meant else node)
        if isinstance(node, exp.Query):
            return node
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
        if isinstance(windowed, NamedArguments):
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
        """Resolve a name to a column, which the release must show, or an item's alias. Keys are columns before
        aliases."""
        keys = [meant for _, meant in self.keys]
        is_key = any(isinstance(key, exp.Column) and key.name.casefold() == node.name.casefold() for key in keys)
        named = None if node.table or is_key else self._aliased(node)
        return self._column(node) if named is None else named

    def _aliased(self, node: exp.Column) -> exp.Expr | None:
        """Return the item that an alias names; of several, the last, as in DuckDB."""
        for (item, alias), own in reversed(list(zip(self.items, self.own, strict=True))):
            if alias and alias.casefold() == node.name.casefold():
                return self._lifted(item.copy()) if own else node.copy()
        return None

    @staticmethod
    def _is_of_release(node: exp.Expr) -> bool:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return True
        return isinstance(node, exp.Anonymous) and str(node.this).upper() in INTERVAL_ENDS

    def _column(self, node: exp.Expr) -> exp.Expr:
        if node not in self.read:
            self.read.append(node.copy())
        return exp.column(self.column(self.shown + self.read.index(node)), quoted=True)
