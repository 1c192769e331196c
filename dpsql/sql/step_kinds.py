"""Whose rows the relations of a statement hold: people's, or nobody's, because they are shown already."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind import is_of_people
from dpsql.sql.catalog import Catalog
from dpsql.sql.mads import has_mad
from dpsql.sql.parameters import Params
from dpsql.sql.parentheses import tables_of
from dpsql.sql.parse import Statement, span_of
from dpsql.sql.refusals import RECURSIVE
from dpsql.sql.split import has_window, is_release


@dataclass
class Common:
    """A common table expression, and those in sight of it, nearest first."""

    node: exp.CTE
    before: Common | None
    relation: str = ""
    """What SQL over answers knows it by, once it is read."""

    def find(self, folded: str) -> Common | None:
        if folded == self.node.alias.casefold():
            return self
        return None if self.before is None else self.before.find(folded)


class Kinds:
    """Asks of each query whether it makes rows of people."""

    def __init__(self, statement: Statement, catalog: Catalog, params: Params) -> None:
        self.statement = statement
        self.sql = statement.sql
        self.catalog = catalog
        self.params = params
        self._kinds: dict[int, tuple[exp.Expr, bool]] = {}  # with the query, so that no other comes to its number
        self.alone: Callable[[exp.Select], tuple[exp.Select, Catalog]] = lambda select: (select, catalog)
        """Puts something in the place of answers inside a SELECT, so that it can be bound."""

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
        """What stands in its FROM, in parentheses too."""
        first = select.args.get("from_")
        items = [*([first.this] if first else []), *(each.this for each in select.args.get("joins") or [])]
        return [table for item in items for table in tables_of(item)]

    def reads_people(self, select: exp.Select, names: Common | None) -> bool:
        """Whether people's rows stand in its FROM."""
        return any(self.holds_people(each, names) for each in self.sources(select))

    def holds_people(self, item: exp.Expr, names: Common | None) -> bool:
        """Whether an item of FROM makes rows of people."""
        if isinstance(item, exp.Subquery):
            return self.of_people(item.this, names)
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return False
        common = names.find(item.name.casefold()) if names is not None else None
        if common is not None:
            return self.of_people(common.node.this, common.before)
        return not self.catalog.find(item.name, self._span(item.this)).public

    def of_people(self, query: exp.Expr, names: Common | None) -> bool:
        """Whether a query makes rows of people, and not an answer."""
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
        if query.args.get("group") is None and query.args.get("distinct") is None:
            return False
        return is_of_people(self.statement, *self.alone(self.closed(self._rows(query), names)), self.params)

    @staticmethod
    def _rows(query: exp.Select) -> exp.Select:
        """A SELECT without what stands over its groups, which decides nothing of whose rows they are."""
        rows = query.copy()
        own = [each for each in rows.expressions if not (has_window(each) or has_mad(each) or each.find(exp.Query))]
        rows.set("expressions", own or [exp.Count(this=exp.Star())])
        for clause in ("qualify", "windows", "order", "limit", "offset"):
            rows.set(clause, None)
        having = rows.args.get("having")
        if having is not None and (having.find(exp.Query) is not None or has_mad(having)):
            rows.set("having", None)
        return rows

    def asks_people(self, query: exp.Expr, names: Common | None) -> bool:
        """Whether a query reads people's rows anywhere in it."""
        inside = self.within(query, names) if isinstance(query, exp.Query) else names
        for table in query.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier):
                continue
            folded = table.name.casefold()
            if any(folded == each.alias.casefold() for each in query.find_all(exp.CTE)):
                continue
            common = inside.find(folded) if inside is not None else None
            if common is not None:
                if self.asks_people(common.node.this, common.before):
                    return True
            elif not self.catalog.find(table.name, self._span(table.this)).public:
                return True
        return False

    def closed(self, select: exp.Select, names: Common | None) -> exp.Select:
        """A SELECT with the CTEs that it reads, so that it stands alone. A name means the same in all of them: each CTE
        has its own (`step_names`)."""
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
