"""Inputs that a release reads from prior releases: post-processing SQL, and a name that replaces its result.

The text must show that a value is one row. A joined table has a maximum number of rows, from public groups or LIMIT,
because each private row can match that often. A list for IN matches each row at most once, and may be as long as lists
may. Planning uses both numbers, and execution enforces them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from dpsql.errors import QueryRefused, Span, UnsupportedSQL
from dpsql.plan.expressions import Literal
from dpsql.plan.prior_releases import MOST_LISTED, VERSION, Input, value_column
from dpsql.plan.query_plan import ReleasePlan, handed
from dpsql.postprocess.database import bound
from dpsql.postprocess.headers import header_of, public_header
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.sql.boundary.noise_of_statements import Listed
from dpsql.sql.boundary.relation_kinds import Common, Kinds
from dpsql.sql.boundary.row_shapes import Shape, Shapes
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.outer_references import of_outer_row, whole_name
from dpsql.sql.rewrite.median_absolute_deviation import UNLISTED, is_of_mad
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.nodes import PriorValue
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import span_of


class StatementContext(Protocol):
    """The statement that a release belongs to, as far as it is separated."""

    sql: str
    kinds: Kinds
    catalog: Catalog
    params: Params
    used: set[str]
    releases: list[ReleasePlan]
    commons: list[Listed]
    public: dict[str, TableSchema]

    def query(self, query: exp.Expr, names: Common | None) -> exp.Query:
        """Return post-processing SQL that is equivalent to a query."""

    def text(self, tree: exp.Query, listed: Sequence[Listed], used: set[str]) -> str:
        """Return its text for DuckDB. Parameters it reads are added to `used`."""


_STORED = {
    Type.INTEGER: "Int64",
    Type.REAL: "float64",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "object",
    Type.DATE: "datetime64[us]",
    Type.TIMESTAMP: "datetime64[us]",
}
_WIDTH = -39
"""Whole numbers in answers may be negative."""
VALUE = "value"
_DIALECT = PrivacyDialect()


@dataclass(frozen=True)
class _AnswerQuery:
    """Post-processing SQL: its text, inputs and columns, and the row shape that follows from the text."""

    sql: str
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, Literal], ...]
    columns: tuple[tuple[str, Type], ...]
    shape: Shape
    digits: frozenset[str]
    """Integer columns that are read as digits."""


def _as_stored(name: str, kind: Type, *, digits: bool) -> ColumnSchema:
    """Return the schema of an answer's column for a later release."""
    if digits and kind is Type.INTEGER:
        return ColumnSchema(name, Type.TEXT, storage=_STORED[Type.TEXT], wide=_WIDTH)
    return ColumnSchema(name, kind, storage=_STORED[kind])


class PriorInputs:
    """Replacement of the answers inside one release by names. Releases among its parts come first."""

    def __init__(self, separation: StatementContext, prefix: str) -> None:
        self.separation = separation
        self.prefix = prefix
        self.inputs: list[Input] = []

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The input tables by name."""
        return {each.name: each.table for each in self.inputs if each.table is not None}

    def value(self, node: exp.Subquery, names: Common | None) -> exp.Expr:
        """Replace a value with its column."""
        _refuse_constant(node, span_of(self.separation.sql, node))

        def whole(tree: exp.Query) -> exp.Query:
            return exp.Select(expressions=[exp.alias_(exp.Subquery(this=tree), VALUE, quoted=True)])

        asked = self._asked(node, self._query(node), names, whole)
        kind = asked.columns[0][1]
        text = self._text(node)
        same = [each for each in self.inputs if each.sql == asked.sql and each.column is not None]
        if not same:
            name = self._name()
            column = value_column(name, kind, text)
            same = [Input(name, asked.sql, asked.reads, asked.parameters, column=column, written=text)]
            self.inputs += same
        value = PriorValue(this=same[0].name, written=text)
        value.meta.update(node.meta)
        return value

    def table(self, node: exp.Expr, names: Common | None) -> exp.Expr:
        """Replace an item of FROM with a public table, under its name in the text."""
        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            bare = node.copy()
            bare.set("alias", None)
            query: exp.Query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=bare))
            alias = alias or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        else:
            query = self._query(node)
        asked = self._asked(node, query, names)
        if asked.shape.most is None:
            raise UnsupportedSQL(
                "nothing says how many rows this answer has, and people's rows are joined with it.",
                span=span_of(self.separation.sql, node),
                hint=UNLISTED
                if is_of_mad(node)
                else "Write ORDER BY n DESC LIMIT 5 in it, or look in it by IN (SELECT ...).",
            )
        table = exp.Table(this=exp.to_identifier(self._table(asked, node), quoted=True))
        table.set("alias", None if alias is None else alias.copy())
        table.meta.update(node.meta)
        return table

    def listed(self, query: exp.Expr, names: Common | None) -> exp.Expr:
        """Replace the operand of IN or EXISTS with the columns of a public table."""
        asked = self._asked(query, self._query(query), names)
        table = exp.Table(this=exp.to_identifier(self._table(asked, query), quoted=True))
        items = [exp.column(exp.to_identifier(name, quoted=True)) for name, _ in asked.columns]
        select = exp.Select(expressions=items, from_=exp.From(this=table))
        select.meta.update(query.meta)
        return exp.Subquery(this=select) if isinstance(query, exp.Subquery) else select

    @staticmethod
    def _text(node: exp.Expr) -> str:
        """Return the source text of a sub-query."""
        return node.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)

    def _name(self) -> str:
        return f"{self.prefix}{len(self.inputs)}"

    @staticmethod
    def _query(node: exp.Expr) -> exp.Query:
        inner = node
        while isinstance(inner, exp.Subquery) and not any(
            inner.args.get(each) for each in ("order", "limit", "offset")
        ):
            inner = inner.this
        assert isinstance(inner, exp.Query)  # the grammar allows nothing else
        return inner

    def _asked(
        self,
        node: exp.Expr,
        query: exp.Query,
        names: Common | None,
        whole: Callable[[exp.Query], exp.Query] = lambda tree: tree,
    ) -> _AnswerQuery:
        separation = self.separation
        try:
            tree = whole(separation.query(query.copy(), names))
        except QueryRefused as error:
            raise self._of_outer_row(error, node) or error from None
        used: set[str] = set()
        sql = separation.text(tree, separation.commons, used)
        separation.used |= used
        parameters = tuple((name, value) for name, value in separation.params if name in used)
        headers = [*map(header_of, separation.releases), *(public_header(*each) for each in separation.public.items())]
        try:
            statement = bound(sql, headers, handed(parameters))
        except QueryRefused as error:
            raise self._of_outer_row(error, node) or error from None
        columns = tuple(zip(statement.names, statement.types, strict=True))
        if len({name.casefold() for name, _ in columns}) < len(columns):
            raise UnsupportedSQL(
                "two columns of this answer have one name.",
                span=span_of(separation.sql, node),
                hint="Name them apart with AS.",
            )
        shape = Shapes(separation.releases, separation.commons, separation.public, separation.params).of(tree)
        digits = frozenset[str]().union(*(each.digits for each in headers))
        return _AnswerQuery(sql, _relations(tree, separation), parameters, columns, shape, digits)

    def _table(self, asked: _AnswerQuery, node: exp.Expr) -> str:
        """Return the name of a public table of these rows."""
        name = self._name()
        by_name = {each.casefold(): each for each, _ in asked.columns}
        most = MOST_LISTED if asked.shape.most is None else asked.shape.most
        if most > MOST_LISTED:
            raise UnsupportedSQL(
                f"this answer has up to {most:,} rows, and a later release reads at most {MOST_LISTED:,}.",
                span=span_of(self.separation.sql, node),
                hint="Cut it by LIMIT.",
            )
        unique = sorted(
            tuple(sorted(by_name[each] for each in key)) for key in asked.shape.unique if key <= set(by_name)
        )
        table = TableSchema(
            name,
            tuple(_as_stored(each, kind, digits=each in asked.digits) for each, kind in asked.columns),
            public=True,
            unique=tuple(unique),
            max_matches=tuple((each, most) for each, _ in asked.columns),
            rows=most,
            version=VERSION,
        )
        text = self._text(node)
        self.inputs.append(Input(name, asked.sql, asked.reads, asked.parameters, table=table, written=text))
        return name

    def _of_outer_row(self, error: QueryRefused, node: exp.Expr) -> UnsupportedSQL | None:
        """Return the refusal of a release that reads a column of the outer row, or None if the outer query lacks that
        name too."""
        outer = node.find_ancestor(exp.Select)
        if outer is None:
            return None
        if self.separation.catalog.any_name and error.span is not None and self._any(last_word(error.span)):
            return of_outer_row(error, {whole_name(error.span).partition(".")[0].strip('" `').casefold()})
        return of_outer_row(error, self.separation.kinds.names_of(outer))

    def _any(self, name: str) -> bool:
        return any(name in table.by_name for table in self.separation.catalog.tables.values())


def _relations(tree: exp.Expr, separation: StatementContext) -> tuple[str, ...]:
    """Return the releases that post-processing SQL reads, directly or through CTEs."""
    queries = {name: query for name, query, _ in separation.commons}
    own = {each.relation for each in separation.releases}
    reads: set[str] = set()
    waiting, seen = [tree], set[str]()
    while waiting:
        for table in waiting.pop().find_all(exp.Table):
            if table.name in own:
                reads.add(table.name)
            if table.name in queries and table.name not in seen:
                seen.add(table.name)
                waiting.append(queries[table.name])
    return tuple(each.relation for each in separation.releases if each.relation in reads)


_CONSTANT = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob, exp.RegexpLike, exp.Escape)


def _refuse_constant(node: exp.Expr, span: Span | None) -> None:
    """Refuse a released value where a constant is required: patterns are checked before rows exist."""
    inner = node
    while inner.parent is not None and not isinstance(inner.parent, exp.Query):
        if isinstance(inner.parent, _CONSTANT) and inner.arg_key == "expression":
            raise UnsupportedSQL(
                "a pattern is a constant, and this is a value that another release shows.",
                span=span,
                hint="Ask for the value first, and write it as the pattern.",
            )
        inner = inner.parent


def last_word(span: Span) -> str:
    """Return the last part of a name."""
    return span.sql[span.start : span.end + 1].rsplit(".", maxsplit=1)[-1].strip('" `').casefold()
