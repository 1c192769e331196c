"""Classify the relations of a statement as private rows or as public: released already, or never private."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.statement import is_of_people, scope_of
from dpsql.sql.boundary.separation import has_window, is_release
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.item_names import leaves
from dpsql.sql.names.scopes import Scope
from dpsql.sql.names.select_list import items_of, place_of
from dpsql.sql.rewrite.median_absolute_deviation import has_mad
from dpsql.sql.rewrite.parentheses import tables_of
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement, span_of
from dpsql.sql.syntax.refusals import RECURSIVE


@dataclass
class Common:
    """A common table expression and those visible to it, nearest first."""

    node: exp.CTE
    before: Common | None
    relation: str = ""
    """Its relation name in post-processing SQL, once read."""

    def find(self, folded: str) -> Common | None:
        if folded == self.node.alias.casefold():
            return self
        return None if self.before is None else self.before.find(folded)


class Kinds:
    """Classification of queries: whether they produce private rows."""

    def __init__(self, statement: Statement, catalog: Catalog, params: Params) -> None:
        self.statement = statement
        self.sql = statement.sql
        self.catalog = catalog
        self.params = params
        self._kinds: dict[int, tuple[exp.Expr, bool]] = {}  # holds the query, so that its id is not reused
        self.without_people = False
        """True if the statement reads public tables only, which then play the part of private ones."""
        self.alone: Callable[[exp.Select], tuple[exp.Select, Catalog]] = lambda select: (select, catalog)
        """Function that replaces the answers inside a SELECT, so that it can be bound."""

    def within(self, query: exp.Expr, names: Common | None) -> Common | None:
        clause = query.args.get("with_")
        taken: set[str] = set()
        for each in clause.expressions if clause is not None else []:
            if clause is not None and clause.args.get("recursive"):
                raise UnsupportedSQL(RECURSIVE, span=self._span(each))
            if not isinstance(each.this, exp.Query):
                raise UnsupportedSQL("a CTE is a SELECT in parentheses.", span=self._span(each))
            if each.alias.casefold() in taken:
                raise SQLSyntaxError(f'two CTEs are named "{each.alias}".', span=self._span(each))
            taken.add(each.alias.casefold())
            names = Common(each, names)
        return names

    def sources(self, select: exp.Select) -> list[exp.Expr]:
        """Return the items of its FROM, including those in parentheses."""
        first = select.args.get("from_")
        items = [*([first.this] if first else []), *(each.this for each in select.args.get("joins") or [])]
        return [table for item in items for table in tables_of(item)]

    def names_of(self, select: exp.Select) -> set[str]:
        """Return the folded names of the tables in a SELECT's FROM, and of their columns where known."""
        names: set[str] = set()
        for item in self.sources(select):
            names.add(item.alias_or_name.casefold())
            table = self.catalog.tables.get(item.name.casefold()) if isinstance(item, exp.Table) else None
            names |= set() if table is None else set(table.by_name)
            if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
                names |= {each.alias_or_name.casefold() for each in item.this.expressions}
        return names

    def reads_people(self, select: exp.Select, names: Common | None) -> bool:
        """Return whether its FROM holds private rows."""
        return any(self.holds_people(each, names) for each in self.sources(select))

    def holds_people(self, item: exp.Expr, names: Common | None) -> bool:
        """Return whether an item of FROM produces private rows."""
        if isinstance(item, exp.Subquery):
            return self.of_people(item.this, names)
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return False
        common = names.find(item.name.casefold()) if names is not None else None
        if common is not None:
            return self.of_people(common.node.this, common.before)
        return self._is_of_people(item)

    def of_people(self, query: exp.Expr, names: Common | None) -> bool:
        """Return whether a query produces private rows instead of an answer."""
        if id(query) not in self._kinds:
            self._kinds[id(query)] = (query, self._makes_people(query, names))
        return self._kinds[id(query)][1]

    def _makes_people(self, query: exp.Expr, names: Common | None) -> bool:
        if isinstance(query, exp.Subquery):
            return self.holds_people(query, names)
        inside = self.within(query, names)
        if isinstance(query, exp.SetOperation):
            return self.of_people(query.this, inside) or self.of_people(query.expression, inside)
        if not isinstance(query, exp.Select) or not self.reads_people(query, inside):
            return False
        if query.args.get("privacy") is not None:
            return False
        if not is_release(query):
            return True
        if self.without_people or (query.args.get("group") is None and query.args.get("distinct") is None):
            return False
        return is_of_people(self.statement, *self.alone(self.closed(self._rows(query), names)), self.params)

    @staticmethod
    def _rows(query: exp.Select) -> exp.Select:
        """Return a SELECT without the clauses above its groups, which do not affect the privacy unit."""
        rows = query.copy()
        items, group = items_of(rows), rows.args.get("group")
        for term in [] if group is None else leaves(group.expressions):
            at = place_of(term, items)
            if at is not None:  # dropping items changes positions
                term.replace(items[at][0].copy())
        own = [each for each in rows.expressions if not (has_window(each) or has_mad(each) or each.find(exp.Query))]
        rows.set("expressions", own or [exp.Count(this=exp.Star())])
        for clause in ("qualify", "windows", "order", "limit", "offset"):
            rows.set(clause, None)
        having = rows.args.get("having")
        if having is not None and (having.find(exp.Query) is not None or has_mad(having)):
            rows.set("having", None)
        return rows

    def scope(self, select: exp.Select, names: Common | None) -> Scope:
        """Return the columns of a private SELECT's FROM. Raises a QueryRefused."""
        clauses = {each: select.args[each].copy() for each in ("from_", "with_") if select.args.get(each) is not None}
        joins = [each.copy() for each in select.args.get("joins") or []]
        rows = exp.Select(expressions=[exp.Count(this=exp.Star())], **clauses, joins=joins)
        return scope_of(self.statement, *self.alone(self.closed(rows, names)), self.params)

    def asks_people(self, query: exp.Expr, names: Common | None) -> bool:
        """Return whether a query reads private tables anywhere."""
        inside = self.within(query, names) if isinstance(query, exp.Query) else names
        for table in query.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or isinstance(table.parent, exp.Into):
                continue
            folded = table.name.casefold()
            if any(folded == each.alias.casefold() for each in query.find_all(exp.CTE)):
                continue
            common = inside.find(folded) if inside is not None else None
            if common is not None:
                if self.asks_people(common.node.this, common.before):
                    return True
            elif self._is_of_people(table):
                return True
        return False

    def _is_of_people(self, table: exp.Table) -> bool:
        return self.without_people or not self.catalog.find(table.name, self._span(table.this)).public

    def closed(self, select: exp.Select, names: Common | None) -> exp.Select:
        """Return a SELECT with the CTEs it reads, so that it is self-contained.

        Names keep their meaning, because each CTE has its own name (`statement_names`).
        """
        needed: list[exp.CTE] = []
        waiting: list[exp.Expr] = [select]
        while waiting:
            for table in waiting.pop().find_all(exp.Table):
                common = names.find(table.name.casefold()) if names is not None else None
                if common is not None and all(each is not common.node for each in needed):
                    needed.append(common.node)
                    waiting.append(common.node.this)
        every: list[exp.CTE] = []
        while names is not None:
            every.insert(0, names.node)
            names = names.before
        kept = [each for each in every if any(each is one for one in needed)]
        own = select.args.get("with_")
        closed = select.copy()
        if kept:
            listed = [each.copy() for each in kept] + [each.copy() for each in (own.expressions if own else [])]
            closed.set("with_", exp.With(expressions=listed))
        return closed

    def _span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)
