"""A checked statement and the declared tables -> a plan. Names, types and places are decided here, no row is read."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import SQLSyntaxError, UnsupportedSQL
from dpsql.sql import worded as _worded  # noqa: F401 - its rules register themselves
from dpsql.sql.allow import check
from dpsql.sql.catalog import Catalog
from dpsql.sql.options import Options, read_options
from dpsql.sql.parameters import Params, check_all_used
from dpsql.sql.parse import Statement, span_of
from dpsql.sql.plan import Query
from dpsql.sql.private import PrivateSelect, RowWise, answered, unread
from dpsql.sql.released import ReleasedSelect
from dpsql.sql.scopes import Answered, Relation, renamed, table_relation
from dpsql.sql.select_list import is_aggregating
from dpsql.sql.selects import Statementwide

MOST_SUBQUERIES = 32


@dataclass(frozen=True)
class Bound:
    """A bound statement: its plan, and the options of its DIFFERENTIAL_PRIVACY clause if it has one."""

    query: Query
    options: Options | None


@dataclass
class _Common:
    """A common table expression and those in sight of it, nearest first; bound when it is first read."""

    folded: str
    node: exp.CTE
    before: _Common | None
    relation: Relation | None = None

    def find(self, folded: str) -> _Common | None:
        if folded == self.folded:
            return self
        return None if self.before is None else self.before.find(folded)


def bind(statement: Statement, catalog: Catalog, params: Params = ()) -> Bound:
    """The plan of a statement. Raises a QueryRefused that names the place in the text."""
    check(statement)
    binder = _Binder(statement, catalog, params)
    query = binder.query()
    check_all_used(params, frozenset(binder.whole.used))
    return Bound(query, binder.whole.options)


class _Binder:
    """Follows FROM down to the table and comes back with what each SELECT makes of it."""

    def __init__(self, statement: Statement, catalog: Catalog, params: Params) -> None:
        self.select = statement.select
        self.sql = statement.sql
        self.catalog = catalog
        self.whole = Statementwide(statement.sql, params)
        self.depth = 0

    def query(self) -> Query:
        relation = self._bind(self.select, None, outermost=True)
        assert isinstance(relation, Answered)  # outermost rows of people are refused
        return relation.query

    def _bind(self, select: exp.Select, names: _Common | None, *, outermost: bool = False) -> Relation:
        """What a SELECT makes: rows of people, or an answer."""
        self.depth += 1
        if self.depth > MOST_SUBQUERIES:
            raise SQLSyntaxError(f"more than {MOST_SUBQUERIES} sub-queries.", span=span_of(self.sql, select))
        inside = self._with(select, names)
        relation = self._select(select, self._from(select, inside), outermost=outermost)
        self._bind_unread(inside, names)
        return relation

    def _select(self, select: exp.Select, source: Relation, *, outermost: bool) -> Relation:
        clause = select.args.get("privacy")
        written = source.scope.written
        if isinstance(source, Answered):
            if clause is not None:
                raise UnsupportedSQL(
                    "DIFFERENTIAL_PRIVACY stands in the SELECT that reads people's rows.",
                    span=span_of(self.sql, clause),
                    hint="This one reads an answer that is private already.",
                )
            query = ReleasedSelect(self.whole, select, source).query()
            return unread(query) if outermost else answered(query, written)
        if outermost or clause is not None or is_aggregating(select):
            if clause is not None:
                self.whole.options = read_options(clause, self.sql)
            query = PrivateSelect(self.whole, select, source).query()
            return unread(query) if outermost else answered(query, written)
        return RowWise(self.whole, select, source).relation()

    def _with(self, select: exp.Select, names: _Common | None) -> _Common | None:
        clause = select.args.get("with_")
        taken: set[str] = set()
        for each in clause.expressions if clause is not None else []:
            if not isinstance(each.this, exp.Select):
                raise UnsupportedSQL("a CTE is a SELECT in parentheses.", span=span_of(self.sql, each))
            if each.alias.casefold() in taken:
                raise SQLSyntaxError(f'two CTEs are named "{each.alias}".', span=span_of(self.sql, each))
            taken.add(each.alias.casefold())
            names = _Common(each.alias.casefold(), each, names)
        return names

    def _bind_unread(self, names: _Common | None, outer: _Common | None) -> None:
        """CTEs that nothing reads cost nothing, but what is wrong in them is refused all the same."""
        options = self.whole.options
        while names is not None and names is not outer:
            self._common(names)
            names = names.before
        self.whole.options = options

    def _common(self, name: _Common) -> Relation:
        if name.relation is None:
            name.relation = self._bind(name.node.this, name.before)
        return name.relation

    def _from(self, select: exp.Select, names: _Common | None) -> Relation:
        clause = select.args.get("from_")
        if clause is None:
            raise SQLSyntaxError("the query has no FROM.", hint="Write SELECT COUNT(*) FROM table.")
        node = clause.this
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Select):
                raise UnsupportedSQL("a sub-query is one SELECT.", span=span_of(self.sql, node))
            return renamed(self._bind(node.this, names), alias, "the sub-query", self.sql)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise UnsupportedSQL("only a table's name can stand after FROM.", span=span_of(self.sql, node))
        common = names.find(node.name.casefold()) if names is not None else None
        if common is not None:
            listed = renamed(self._common(common), common.node.args.get("alias"), node.name, self.sql)
            return renamed(listed, alias, node.name, self.sql)
        table = self.catalog.find(node.name, span_of(self.sql, node.this))
        written = node.name if self.catalog.any_name else table.name
        relation = table_relation(table, written, node.alias or node.name)
        return renamed(relation, alias, written, self.sql) if alias and alias.args.get("columns") else relation
