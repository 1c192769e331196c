"""A checked statement and the declared tables -> a plan. Names, types and places are resolved; no row is read."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.nodes import Scan, scans_of
from dpsql.plan.options import Options
from dpsql.plan.query import Query
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind import keyword_expressions as _worded  # noqa: F401 - its rules register themselves
from dpsql.sql.bind.private_rows import PrivateRows, Step, rows_of
from dpsql.sql.bind.private_select import PrivateSelect
from dpsql.sql.bind.released_select import ReleasedSelect, answered, unread
from dpsql.sql.bind.row_wise_select import RowWise
from dpsql.sql.bind.subqueries import Membership
from dpsql.sql.bind.unions import branches_of, union_of
from dpsql.sql.bind.unit_select import UnitSelect
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.scopes import ReleasedRows, Scope, StatementState, renamed_scope
from dpsql.sql.names.select_list import is_aggregating, is_grouping, names_several
from dpsql.sql.rewrite.foreign_clauses import settled
from dpsql.sql.syntax.allow_list import check, check_nodes
from dpsql.sql.syntax.grammar import rule_of_part
from dpsql.sql.syntax.options import read_options
from dpsql.sql.syntax.parameters import Params, check_all_used
from dpsql.sql.syntax.parse import Statement, span_of

MOST_SUBQUERIES = 32
MOST_TABLES = 32

Relation = PrivateRows | ReleasedRows


@dataclass(frozen=True)
class BoundStatement:
    """A bound statement: its plan, and the options of its DIFFERENTIAL_PRIVACY clause, if any."""

    query: Query
    options: Options | None


@dataclass
class _CommonTable:
    """A common table expression and those visible to it, nearest first; bound when first read."""

    folded: str
    node: exp.CTE
    before: _CommonTable | None
    relation: Relation | None = None
    """Bound once, for its first reader: every other place in the query needs its own columns."""
    read: bool = False

    def find(self, folded: str) -> _CommonTable | None:
        if folded == self.folded:
            return self
        return None if self.before is None else self.before.find(folded)


def bind(statement: Statement, catalog: Catalog, params: Params = ()) -> BoundStatement:
    """Return the plan of a statement. Raises a QueryRefused with the place in the text."""
    check(statement)
    binder = _binder(statement, catalog, params)
    query = replace(binder.query(), computed_from=frozenset(binder.whole.computed_from))
    check_all_used(params, frozenset(binder.whole.used))
    return BoundStatement(query, binder.whole.options)


def _binder(statement: Statement, catalog: Catalog, params: Params) -> _Binder:
    used: set[str] = set()
    binder = _Binder(*settled(statement, catalog, params, used), params)
    binder.whole.used |= used
    return binder


def bind_part(
    statement: Statement, select: exp.Select, catalog: Catalog, params: Params
) -> tuple[BoundStatement, frozenset[str]]:
    """Return the plan of one SELECT of a multi-step statement, and the parameters it uses. The statement's words were
    checked before. Raises a QueryRefused."""
    part = replace(statement, select=select)
    check_nodes(part, select, rule_of_part)
    binder = _binder(part, catalog, params)
    query = replace(binder.query(), computed_from=frozenset(binder.whole.computed_from))
    return BoundStatement(query, binder.whole.options), frozenset(binder.whole.used)


def is_of_people(statement: Statement, select: exp.Select, catalog: Catalog, params: Params) -> bool:
    """Return whether an aggregating sub-query over private rows produces private rows again. Raises a QueryRefused."""
    return isinstance(_binder(replace(statement, select=select), catalog, params).inner(), PrivateRows)


def scope_of(statement: Statement, select: exp.Select, catalog: Catalog, params: Params) -> Scope:
    """Return the columns of a SELECT's FROM. Raises a QueryRefused."""
    return _binder(replace(statement, select=select), catalog, params).columns()


class _Binder:
    """Recursive binder of SELECTs, from the tables in FROM upward."""

    def __init__(self, statement: Statement, catalog: Catalog, params: Params) -> None:
        assert isinstance(statement.select, exp.Select)  # other statements are separated first
        self.select = statement.select
        self.sql = statement.sql
        self.catalog = catalog
        several, tables = names_several(statement.select), catalog.tables
        self.whole = StatementState(
            statement.sql, params, several=several, public=catalog.public, tables=tables, values=catalog.values
        )
        self.depth = 0
        self.windowed = self.select.find(exp.Window, exp.Qualify) is not None

    def query(self) -> Query:
        relation = self._bind(self.select, None, outermost=True)
        assert isinstance(relation, ReleasedRows)  # outermost private rows are refused
        if self.windowed:
            from dpsql.sql.bind.order_ties import with_ties  # imported with the first window

            return with_ties(relation.query, self.select, self.whole)
        return relation.query

    def inner(self) -> Relation:
        """Return the SELECT's result as an item of another FROM."""
        return self._bind(self.select, None, joined=True)

    def columns(self) -> Scope:
        """Return the columns of the SELECT's FROM."""
        return self._from(self.select, self._with(self.select, None)).scope

    def _bind(
        self, select: exp.Expr, names: _CommonTable | None, *, outermost: bool = False, joined: bool = False
    ) -> Relation:
        """Bind a SELECT to private rows or an answer. Public rows can be both: they become rows if `joined`."""
        self.depth += 1
        if self.depth > MOST_SUBQUERIES:
            raise SQLSyntaxError(f"more than {MOST_SUBQUERIES} sub-queries.", span=self._span(select))
        if isinstance(select, exp.Subquery) and not select.args.get("alias"):
            select = select.this
        if isinstance(select, exp.Union):
            return self._union(select, names)
        if not isinstance(select, exp.Select):
            raise UnsupportedSQL("a sub-query is one SELECT.", span=self._span(select))
        inside = self._with(select, names)
        relation = self._select(select, self._from(select, inside), inside, outermost=outermost, joined=joined)
        self._bind_unread(inside, names)
        return relation

    def _select(
        self, select: exp.Select, source: Relation, names: _CommonTable | None, *, outermost: bool, joined: bool
    ) -> Relation:
        clause = select.args.get("privacy")
        member = Membership(lambda inner: self._inner(inner, names), lambda inner: self._inner_rows(inner, names))
        if self.windowed:
            from dpsql.sql.bind.unit_windows import windows_over_unit  # imported with the first window

            people = None if outermost or clause or not isinstance(source, PrivateRows) else source
            over = windows_over_unit(self.whole, select, source, people, member, joined=joined)
            if over is not None:
                return over
        if isinstance(source, ReleasedRows):
            if clause is not None:
                raise UnsupportedSQL(
                    "DIFFERENTIAL_PRIVACY stands in the SELECT that reads people's rows.",
                    span=self._span(clause),
                    hint="This one reads an answer that is private already.",
                )
            query = ReleasedSelect(self.whole, select, source).query()
            return unread(query) if outermost else answered(query, source.scope.written)
        if outermost or clause is not None:
            return self._private(select, source, member, outermost=outermost)
        if is_aggregating(select):
            per_unit = UnitSelect(self.whole, select, source, member, joined=joined)
            return per_unit.relation() if per_unit.applies() else self._private(select, source, member, outermost=False)
        return RowWise(self.whole, select, source, member).relation()

    def _private(self, select: exp.Select, source: PrivateRows, member: Membership, *, outermost: bool) -> ReleasedRows:
        clause = select.args.get("privacy")
        if clause is not None:
            self.whole.options = read_options(clause, self.sql)
        query = PrivateSelect(self.whole, select, source, member).query()
        return unread(query) if outermost else answered(query, source.scope.written)

    def _inner(self, select: exp.Select, names: _CommonTable | None) -> tuple[PrivateRows | None, PrivateRows | None]:
        """For a sub-query in an expression, return its FROM if it is row-wise, or its result if it has groups.
        Duplicates in a list do not matter."""
        if is_grouping(select):
            listed = select.copy()
            listed.set("distinct", None)
            made = self._bind(listed, names)
            return None, made if isinstance(made, PrivateRows) else None
        return self._inner_rows(select, names), None

    def _inner_rows(self, select: exp.Select, names: _CommonTable | None) -> PrivateRows | None:
        self.depth += 1
        if self.depth > MOST_SUBQUERIES:
            raise SQLSyntaxError(f"more than {MOST_SUBQUERIES} sub-queries.", span=self._span(select))
        inside = self._with(select, names)
        source = self._from(select, inside)
        self._bind_unread(inside, names)
        return source if isinstance(source, PrivateRows) else None

    def _union(self, union: exp.Union, names: _CommonTable | None) -> PrivateRows:
        relations = []
        for branch in branches_of(union):
            relation = self._bind(branch, names)
            if not isinstance(relation, PrivateRows):
                raise UnsupportedSQL(
                    "UNION ALL is of people's rows; one of these is an answer already.", span=self._span(branch)
                )
            relations.append(relation)
        return union_of(self.whole, union, relations)

    def _with(self, select: exp.Select, names: _CommonTable | None) -> _CommonTable | None:
        clause = select.args.get("with_")
        taken: set[str] = set()
        for each in clause.expressions if clause is not None else []:
            if not isinstance(each.this, exp.Select | exp.Union):
                raise UnsupportedSQL("a CTE is a SELECT in parentheses.", span=self._span(each))
            if each.alias.casefold() in taken:
                raise SQLSyntaxError(f'two CTEs are named "{each.alias}".', span=self._span(each))
            taken.add(each.alias.casefold())
            names = _CommonTable(each.alias.casefold(), each, names)
        return names

    def _bind_unread(self, names: _CommonTable | None, outer: _CommonTable | None) -> None:
        """Bind unread CTEs too: they are free, but their errors must be raised."""
        options = self.whole.options
        while names is not None and names is not outer:
            self._common(names)
            names = names.before
        self.whole.options = options

    def _common(self, name: _CommonTable) -> Relation:
        if name.relation is None:
            name.relation = self._bind(name.node.this, name.before)
        return name.relation

    def _read(self, name: _CommonTable, *, joined: bool) -> Relation:
        """Return a CTE for one reader. Private rows, and joined public ones, are bound for each place; an answer only
        once."""
        relation = self._common(name)
        if joined and isinstance(relation, ReleasedRows) and _reads_public_rows(relation):
            return self._bind(name.node.this, name.before, joined=True)
        if name.read and isinstance(relation, PrivateRows):
            return self._bind(name.node.this, name.before)
        name.read = True
        return relation

    # FROM.

    def _from(self, select: exp.Select, names: _CommonTable | None) -> Relation:
        clause = select.args.get("from_")
        if clause is None:
            outer = select is self.select
            raise SQLSyntaxError(
                f"the {'query' if outer else 'sub-query'} has no FROM.",
                span=None if outer else self._span(select),
                hint="Write SELECT COUNT(*) FROM table."
                if outer
                else "Write constants where they are used, not in a table.",
                about={"no FROM": ""},
            )
        joins = select.args.get("joins") or []
        first = self._item(clause.this, names, alone=not joins)
        if not joins:
            return first
        if len(joins) >= MOST_TABLES:
            last = self._span(joins[MOST_TABLES - 1])
            raise SQLSyntaxError(f"more than {MOST_TABLES} tables in one FROM.", span=last)
        from dpsql.sql.bind.joined_tables import JoinedTables  # imported only when needed

        def table(node: exp.Expr) -> PrivateRows:
            return self._people(self._item(node, names, alone=False), node)

        return JoinedTables(self.whole, self.select, table).joined(self._people(first, clause.this), clause.this, joins)

    def _people(self, relation: Relation, node: exp.Expr) -> PrivateRows:
        if isinstance(relation, PrivateRows):
            return relation
        raise UnsupportedSQL(
            "an answer cannot be joined.", span=self._span(node), hint="Join people's rows, and aggregate the result."
        )

    def _item(self, node: exp.Expr, names: _CommonTable | None, *, alone: bool) -> Relation:
        """Bind one item of FROM: a table, a CTE or a sub-query."""
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Select | exp.Union | exp.Subquery):
                raise UnsupportedSQL("a sub-query is one SELECT.", span=self._span(node))
            return self._renamed(self._bind(node.this, names, joined=not alone), alias, "the sub-query")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise UnsupportedSQL("only a table's name can stand after FROM.", span=self._span(node))
        common = names.find(node.name.casefold()) if names is not None else None
        if common is not None:
            listed = self._renamed(self._read(common, joined=not alone), common.node.args.get("alias"), node.name)
            return self._renamed(listed, alias, node.name)
        table = self.catalog.find(node.name, self._span(node.this))
        alias = node.alias or node.name
        of_text = table.is_constant or node.name in self.catalog.shown
        written = node.name if self.catalog.any_name else alias if of_text else table.name
        rows = rows_of(Scan(table, self.whole.place(alias), "" if alone else alias))
        listed_columns = tuple((column.name, column) for column in rows.columns)
        relation = PrivateRows(Scope(written, alias, listed_columns), (Step(rows, span=self._span(node.this)),))
        renaming = node.args.get("alias")
        return self._renamed(relation, renaming, written) if renaming and renaming.args.get("columns") else relation

    def _renamed(self, relation: Relation, alias: exp.TableAlias | None, fallback: str) -> Relation:
        return replace(relation, scope=renamed_scope(relation.scope, alias, fallback, self.sql))

    def _span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


def _reads_public_rows(answer: ReleasedRows) -> bool:
    return all(scan.table.public for scan in scans_of(answer.query.plan.input))
