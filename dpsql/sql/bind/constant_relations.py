"""Constant relations: VALUES, SELECTs without FROM, lists in UNNEST, series, and everything computed from them only.

Each becomes a public table with its own name, which replaces it in the text. Later passes see ordinary tables only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.errors import QueryRefused, Span, UnsupportedSQL
from dpsql.plan.constants import MOST_ROWS, PREFIX, ConstantColumn, ConstantTable, constant_table
from dpsql.sql.bind.constant_cells import UNNESTED, CellBinder, Cells, without_doubles
from dpsql.sql.bind.constant_series import LISTS
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.select_list import fresh, is_aggregating, items_of
from dpsql.sql.names.statement_names import resolved
from dpsql.sql.syntax.nodes import said
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement, span_of

_OTHER_CLAUSES = ("joins", "group", "having", "order", "limit", "offset", "distinct", "with_", "privacy", "qualify",
                  "windows", "sample")  # fmt: skip
_UNNAMED: Mapping[type[exp.Expr], str] = {exp.Unnest: "unnest", exp.Values: "valueslist"}


def with_constants(
    statement: Statement, catalog: Catalog, params: Params, used: set[str], *, only_times: bool = False
) -> tuple[Statement, Catalog]:
    """Replace each constant relation with a table name; return the statement, and the catalog with these tables.

    used: receives the names of their parameters. only_times: convert date series only, and leave anything not
    understood unchanged. Raises a QueryRefused.
    """
    finder = _Constants(statement, params, used, only_times=only_times)
    select = finder.replaced(statement.select.copy())
    if not finder.tables:
        return statement, catalog
    known = {**catalog.constants, **{table.name: table for table in finder.tables}}
    return replace(statement, select=select), replace(catalog, constants=known)


class _Constants:
    """Search for constant relations, innermost first."""

    def __init__(self, statement: Statement, params: Params, used: set[str], *, only_times: bool) -> None:
        self.sql = statement.sql
        self.cells = CellBinder(statement.sql, params, used)
        self.only_times = only_times
        self.tables: list[ConstantTable] = []
        self._made: dict[int, exp.Expr] = {}
        self._unions: dict[int, tuple[exp.Expr, bool]] = {}  # holds the node, so that its id is not reused
        self.named = {node.name.casefold() for node in statement.select.find_all(exp.Column)}

    def replaced(self, tree: exp.Query) -> exp.Query:
        kinds = (*_SOURCES, exp.Select, exp.Union)
        changed = True
        while changed:  # a CTE may become constant after another does
            changed = False
            for node in reversed(
                [each for each in tree.walk(bfs=False) if isinstance(each, kinds)]
            ):  # inner nodes first
                if node is not tree and self._is_whole(node):
                    changed = self._replaced(node, tree) or changed
        return tree

    def _replaced(self, node: exp.Expr, tree: exp.Query) -> bool:
        try:
            relation = self._source(node) if isinstance(node, _SOURCES) else self._query(node, tree)
        except QueryRefused:
            if not self.only_times:
                raise
            return False
        if relation is not None:
            node.replace(relation)
            self._made[id(relation)] = relation
        return relation is not None

    def _is_whole(self, node: exp.Expr) -> bool:
        """Return whether a relation may stand here without being part of a larger constant one."""
        if isinstance(node, exp.Table):
            return isinstance(node.this, LISTS)
        if not isinstance(node, exp.Select | exp.Union):
            return isinstance(node.parent, exp.From | exp.Join)
        if id(node) in self._made:
            return False
        top: exp.Expr = node
        while isinstance(top.parent, exp.Union | exp.Subquery) and not top.parent.args.get("alias"):
            top = top.parent
        while isinstance(top, exp.Subquery):
            top = top.this
        if top is node or not isinstance(top, exp.Union):
            return True
        if id(top) not in self._unions:
            self._unions[id(top)] = (top, is_constant(top))
        return not self._unions[id(top)][1]

    # Items of FROM.

    def _source(self, node: exp.Expr) -> exp.Expr | None:
        alias = node.args.get("alias")
        own = alias.name if alias is not None else ""
        if isinstance(node, exp.Values):
            cells = self.cells.rows_of(node, [row.expressions for row in node.expressions])
            fallback = _UNNAMED[exp.Values]
        else:
            inner = node.this if isinstance(node, exp.Table) else node.expressions[0]
            if isinstance(node, exp.Unnest) and len(node.expressions) != 1:
                raise UnsupportedSQL("UNNEST takes one list.", span=self._span(node))
            fallback = _word_of(node)
            listed = self._list(inner)
            if listed is None:
                return None
            name = own if own and fallback not in self.named else fallback
            cells = Cells((replace(listed, name=name),))
        return self._table(node, cells, alias, own or fallback)

    def _table(self, node: exp.Expr, cells: Cells, alias: exp.Expr | None, name: str) -> exp.Table:
        if cells.rows > MOST_ROWS:
            raise UnsupportedSQL(f"a table of constants has at most {MOST_ROWS:,} rows.", span=self._span(node))
        table = constant_table(cells.columns)
        self.tables.append(table)
        identifier = exp.to_identifier(table.name, quoted=True)
        span = self._span(node)
        if span is not None:
            identifier.meta.update({"start": span.start, "end": span.end})
        names = alias.args.get("columns") if alias is not None else None
        renamed = exp.TableAlias(this=exp.to_identifier(name), columns=[each.copy() for each in names or []])
        return exp.Table(this=identifier, alias=renamed)

    # Queries.

    def _query(self, node: exp.Expr, tree: exp.Expr) -> exp.Query | None:
        """Return a query that reads the constant table of this one, or None if not everything is constant."""
        if not is_constant(node) and not self._reads_constants(node, tree):
            return None
        if self.only_times and not any(isinstance(each, LISTS) for each in node.walk()):
            return None
        cells = self._of_union(node) if isinstance(node, exp.Union) else self._of_select(node, tree)
        if cells is None:
            return None
        table = self._table(node, cells, None, _UNNAMED[exp.Values])
        items: list[exp.Expr] = [exp.column(exp.to_identifier(each.name, quoted=True)) for each in cells.columns]
        return exp.Select(expressions=items, from_=exp.From(this=table))

    def _of_union(self, union: exp.Union) -> Cells:
        branches = [self._plain_select(each) for each in _branches(union)]
        names = self._names(branches[0])
        parts = [[item for item, _ in items_of(each)] for each in branches]
        if not any(each.find(exp.Explode) for each in branches):
            cells = self.cells.rows_of(union, parts, names)
        else:
            raise UnsupportedSQL("UNNEST stands in a SELECT of its own here.", span=self._span(union))
        return without_doubles(cells) if union.args.get("distinct") else cells

    @staticmethod
    def _plain_select(node: exp.Expr) -> exp.Select:
        while isinstance(node, exp.Subquery):
            node = node.this
        assert isinstance(node, exp.Select)  # `is_constant` checked this
        return node

    def _names(self, select: exp.Select) -> list[str]:
        taken: set[str] = set()
        return [fresh(alias or said(item), taken) for item, alias in items_of(select)]

    def _reads_constants(self, node: exp.Expr, tree: exp.Expr) -> bool:
        """Return whether a SELECT only computes and filters rows of one constant table."""
        if not isinstance(node, exp.Select) or any(node.args.get(each) for each in _OTHER_CLAUSES):
            return False
        source = node.args.get("from_")
        parent = node.parent.parent if isinstance(node.parent, exp.Subquery) else node.parent
        if source is None or not isinstance(parent, exp.From | exp.Join | exp.CTE):
            return False
        inner = [each for each in node.walk() if each is not node]
        if any(isinstance(each, exp.Query | exp.Window) for each in inner) or is_aggregating(node):
            return False
        return self._table_read(source.this, tree) is not None

    def _table_read(self, node: exp.Expr, tree: exp.Expr) -> tuple[ConstantTable, Sequence[str], str] | None:
        """Return the constant table that an item of FROM names directly or through a CTE, its column names, and its own
        name."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        aliases = [node.args.get("alias")]
        if not node.name.startswith(PREFIX):
            cte = next((cte for table, cte in resolved(tree, self.sql) if table is node), None)
            if cte is None or id(cte.this) not in self._made:
                return None
            node = cte.this.args["from_"].this
            aliases += [cte.args.get("alias"), node.args.get("alias")]
        table = next((each for each in self.tables if each.name == node.name), None)
        names = None if table is None else _renamed([each.name for each in table.columns], aliases)
        if table is None or names is None:
            return None
        return table, names, next((each.name for each in aliases if each is not None and each.name), "")

    def _of_select(self, node: exp.Expr, tree: exp.Expr) -> Cells | None:
        select = self._plain_select(node)
        read: dict[str, ConstantColumn] = {}
        source, own = select.args.get("from_"), ""
        if source is not None:
            held = self._table_read(source.this, tree)
            assert held is not None  # `_reads_constants` checked this
            table, names, own = held
            parts = zip(names, table.columns, table.cells, strict=True)
            read = {name.casefold(): ConstantColumn(name, column.type, cells) for name, column, cells in parts}
        lists = list(select.find_all(exp.Explode))
        if len(lists) > 1 or (lists and source is not None):
            raise UnsupportedSQL("one UNNEST stands in a SELECT of constants.", span=self._span(select))
        if lists:
            listed = self._list(lists[0].this)
            if listed is None:
                return None
            read[UNNESTED] = listed
        return self.cells.computed(select, read, own)

    def _list(self, node: exp.Expr) -> ConstantColumn | None:
        """Return the values of a constant list or series, or None for unsupported ones. Raises a QueryRefused."""
        if self.only_times and not isinstance(node, LISTS):
            return None
        listed = self.cells.listed(node)
        return None if self.only_times and not listed.type.temporal else listed

    def _span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


_SOURCES = (exp.Values, exp.Unnest, exp.Table)


def _word_of(node: exp.Expr) -> str:
    if isinstance(node, exp.Unnest):
        return _UNNAMED[exp.Unnest]
    return "range" if node.this.args.get("is_end_exclusive") else "generate_series"


def _branches(node: exp.Expr) -> list[exp.Expr]:
    branches: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Union):
            waiting += [each.expression, each.this]
        elif isinstance(each, exp.Subquery) and not each.args.get("alias"):
            waiting.append(each.this)
        else:
            branches.append(each)
    return branches


def is_constant(node: exp.Expr) -> bool:
    """Return whether a query is a SELECT without FROM, or a union of them, and reads nothing."""
    if isinstance(node, exp.Union):
        plain = not any(node.args.get(each) for each in ("order", "limit", "offset", "with_", "by_name"))
        alike = len({bool(each.args.get("distinct")) for each in node.find_all(exp.Union)}) == 1
        return plain and alike and all(is_constant(each) for each in _branches(node))
    if not isinstance(node, exp.Select) or node.args.get("from_") is not None or node.args.get("where") is not None:
        return False
    if any(node.args.get(each) for each in _OTHER_CLAUSES):
        return False
    inner = [each for each in node.walk() if each is not node]
    other = any(isinstance(each, exp.Query | exp.Window | exp.Column) for each in inner)
    return not other and not is_aggregating(node)


def _renamed(names: list[str], aliases: Sequence[exp.Expr | None]) -> list[str] | None:
    """Apply aliases to column names, outermost first. None if names repeat, or aliases outnumber columns."""
    for alias in reversed(aliases):
        new = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        if len(new) > len(names):
            return None
        names = [*new, *names[len(new) :]]
    return None if len({name.casefold() for name in names}) < len(names) else names
