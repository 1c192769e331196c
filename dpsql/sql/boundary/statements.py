"""Separate a statement into releases of private data and the SQL over them.

Every SELECT is one of three kinds. One that reads private rows and produces private rows again belongs to the release
that reads it. One that aggregates private rows is a release, bound like every private query. One that reads only
answers, public tables and constants is post-processing SQL. DuckDB runs it, with a relation in place of each release.
So SQL for DuckDB names only generated relations, and private tables have no name there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.errors import InternalError, QueryRefused, Span, SQLSyntaxError, UnsupportedSQL
from dpsql.plan.query_plan import Postprocess, QueryPlan, ReleasePlan
from dpsql.plan.redraws import RedrawStatement
from dpsql.postprocess.check import COMMON
from dpsql.schema.columns import TableSchema
from dpsql.sql.bind.statement import bind_part
from dpsql.sql.boundary.duckdb_text import meant, printed
from dpsql.sql.boundary.noise_of_statements import Listed, in_runs, redrawn
from dpsql.sql.boundary.relation_kinds import Common, Kinds
from dpsql.sql.boundary.release_columns import release_columns
from dpsql.sql.boundary.release_inputs import PriorInputs
from dpsql.sql.boundary.released_parts import PriorParts
from dpsql.sql.boundary.row_order import in_order
from dpsql.sql.boundary.scalar_answers import with_values
from dpsql.sql.boundary.separation import SeparatedSelect, is_release, needs_split
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.outer_references import of_outer_row
from dpsql.sql.names.scopes import Scope
from dpsql.sql.names.select_list import is_star
from dpsql.sql.names.statement_names import unshared, unwritten
from dpsql.sql.names.table_names import with_qualified_tables
from dpsql.sql.rewrite.foreign_clauses import in_own_functions, with_calendars
from dpsql.sql.rewrite.median_absolute_deviation import has_mad, held, with_mads
from dpsql.sql.rewrite.parentheses import opened, with_inner_joins
from dpsql.sql.rewrite.quantified_comparisons import has_quantifier, without_quantifiers
from dpsql.sql.syntax.nodes import NamedArguments, said
from dpsql.sql.syntax.parameter_constants import with_constants_given
from dpsql.sql.syntax.parameters import Params, check_all_used
from dpsql.sql.syntax.parse import Statement, span_of
from dpsql.sql.syntax.postprocess_grammar import check_qualified, check_separated

MOST_RELEASES = 16


def separate_statement(statement: Statement, catalog: Catalog, params: Params) -> QueryPlan | None:
    """Separate a statement into releases and post-processing SQL.

    None if no SQL stands over a release, or if a refusal comes before that is known. Raises a QueryRefused.
    """
    separation = separation_of(statement, catalog, params)
    return None if separation is None else separation.plan()


def separation_of(statement: Statement, catalog: Catalog, params: Params) -> Separation | None:
    """Return the rewritten statement, ready for separation; None as in `separate_statement`. Raises a QueryRefused."""
    try:
        used: set[str] = set()
        own = in_own_functions(with_qualified_tables(statement, catalog))
        plain = opened(replace(own, select=with_constants_given(unshared(own), params, used)))
        separation = Separation(*with_calendars(plain, catalog, params, used), params)
        if has_quantifier(plain.select):
            separation.replace_quantifiers()
        separation.used |= used
        if not separation.several():
            return None
    except QueryRefused as refusal:
        if "unknown table" in refusal.about:
            raise
        return None
    check_separated(statement)
    if statement.goal is not None:
        raise UnsupportedSQL(
            "WITHIN is for a query of one step.", hint="Say epsilon, or ask for each answer by itself."
        )
    return separation


class Separation:
    """Separation of a statement into releases and post-processing SQL."""

    def __init__(self, statement: Statement, catalog: Catalog, params: Params) -> None:
        self.statement, self.sql = statement, statement.sql
        self.kinds = Kinds(statement, catalog, params)
        self.catalog = catalog
        self.params = params
        self.used: set[str] = set()
        self.releases: list[ReleasePlan] = []
        self.selects: list[exp.Select] = []
        """The SELECT of each release, with names in place of prior answers."""
        self.answer = unwritten(statement.sql, "__answer_")
        self.public: dict[str, TableSchema] = {}
        self.commons: list[Listed] = []
        self.parts = PriorParts(self.kinds)
        self.prefix = unwritten(statement.sql, "__shown_")
        self.kinds.alone = self._for_kinds

    def replace_quantifiers(self) -> None:
        """Replace ALL (SELECT ...) and ANY (SELECT ...) over answers with values.

        Private rows stay: a NULL in their column decides between TRUE and NULL, which two noisy counts could only
        guess.
        """
        names = self.kinds.within(self.statement.select, None)

        def is_answer(inner: exp.Select) -> bool:
            asks = self.kinds.asks_people(inner, names)
            return asks and not (self.kinds.of_people(inner, names) or self._is_of_rows(inner, names))

        tree = without_quantifiers(self.statement.select.copy(), self.sql, is_answer)
        self.statement = self.kinds.statement = replace(self.statement, select=tree)

    def _is_of_rows(self, select: exp.Select, names: Common | None) -> bool:
        return self.kinds.reads_people(select, self.kinds.within(select, names)) and not is_release(select)

    def several(self) -> bool:
        """Return whether there is SQL over a release."""
        tree = self.statement.select
        self.kinds.without_people = not self.kinds.asks_people(tree, None)
        names = self.kinds.within(tree, None)
        if isinstance(tree, exp.Select) and self.kinds.reads_people(tree, names):
            above = needs_split(tree, lambda inner: self.kinds.asks_people(inner, names))
            return above or (is_release(tree) and (has_mad(tree) or self.parts.any(tree, None)))
        return self.kinds.asks_people(tree, None)

    def plan(self) -> QueryPlan:
        tree = self.query(self.statement.select.copy(), None)
        above: set[str] = set()
        again = redrawn(tree, self.commons, self.releases, self.public)
        text = self.text(tree, self.commons, above)
        runs = None
        if again is not None:
            runs = RedrawStatement(in_runs(self.text(again.tree, again.commons, above, values=False)), again.columns)
        check_all_used(self.params, frozenset(self.used | above))
        values = tuple((name, value) for name, value in self.params if name in above)
        public = tuple((name, schema) for name, schema in self.public.items())
        return QueryPlan(tuple(self.releases), Postprocess(public, text, values, runs))

    # Releases and post-processing SQL.

    def query(self, query: exp.Expr, names: Common | None) -> exp.Query:
        """Return post-processing SQL that is equivalent to a query, with its releases taken out."""
        if isinstance(query, exp.Subquery):
            query.set("this", self.query(query.this, names))
            self._expressions(query, names, ("order", "limit", "offset"))
            return query
        inside = self.kinds.within(query, names)
        if isinstance(query, exp.Select):
            check_qualified(query, self.sql)
        query.set("with_", None)
        if isinstance(query, exp.SetOperation):
            query.set("this", self.query(query.this, inside))
            query.set("expression", self.query(query.expression, inside))
            self._expressions(query, inside, ("order", "limit", "offset"))
            return query
        if not isinstance(query, exp.Select):
            raise UnsupportedSQL("a sub-query is one SELECT.", span=self._span(query))
        if self.kinds.reads_people(query, inside):
            return self._released(query, inside)
        if query.args.get("privacy") is not None:
            raise UnsupportedSQL(
                "DIFFERENTIAL_PRIVACY stands in the SELECT that reads people's rows.",
                span=self._span(query.args["privacy"]),
                hint="This one reads an answer that is private already.",
            )
        self._check_named(query)
        self._named(query)
        for item in self.kinds.sources(query):
            self._item(item, inside)
        self._expressions(query, inside, tuple(query.args))
        return query

    def _check_named(self, select: exp.Select) -> None:
        for node in select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select):
            if isinstance(node, NamedArguments):
                raise UnsupportedSQL(
                    "named arguments (name => value) belong to aggregates of people's rows.", span=self._span(node)
                )

    def _released(self, select: exp.Select, names: Common | None) -> exp.Query:
        if has_mad(select):
            select = with_mads(select, self.sql, self.catalog)
        if not needs_split(select, lambda inner: self.kinds.asks_people(inner, names)):
            release = self._release(select, names)
            columns: list[exp.Expr] = [exp.column(exp.to_identifier(each.name)) for each in release.columns]
            return exp.Select(expressions=columns, from_=exp.From(this=_table(release.relation)))

        def scope() -> Scope:
            return self.kinds.scope(select, names)

        split = SeparatedSelect(self.sql, select, lambda inner: self.kinds.asks_people(inner, names), scope)
        release = self._release(split.release, names, split)
        above = split.above(release.relation)
        for node in [each for each in above.find_all(exp.Query) if each is not above]:
            if node.parent is not None and self._outermost_inside(node, above):
                node.replace(self._beside(node, select, names))
        return above

    def _beside(self, node: exp.Query, select: exp.Select, names: Common | None) -> exp.Query:
        """Return a sub-query in an expression of a SELECT, as post-processing SQL."""
        try:
            return self.query(node.copy(), names)
        except QueryRefused as error:
            raise of_outer_row(error, self.kinds.names_of(select)) or error from None

    @staticmethod
    def _outermost_inside(node: exp.Expr, above: exp.Expr) -> bool:
        """Return whether no other query stands between the two nodes."""
        parent = node.parent
        while parent is not None and parent is not above:
            if isinstance(parent, exp.Query):
                return False
            parent = parent.parent
        return parent is above

    def _release(self, select: exp.Select, names: Common | None, split: SeparatedSelect | None = None) -> ReleasePlan:
        alone, inputs = self._alone(self.kinds.closed(select, names))
        bound, used = bind_part(self.statement, alone, self._catalog(inputs), self.params)
        self.used |= used
        columns, reads = release_columns(bound.query, split), tuple(inputs.inputs)
        for release in self.releases:
            if release == ReleasePlan(bound.query, bound.options, release.relation, columns, reads):
                return release
        if len(self.releases) >= MOST_RELEASES:
            raise SQLSyntaxError(f"more than {MOST_RELEASES} releases in one query.", span=self._span(select))
        release = ReleasePlan(bound.query, bound.options, f"{self.answer}{len(self.releases)}", columns, reads)
        self.releases.append(release)
        self.selects.append(alone)
        return release

    # Inputs from prior releases.

    def _alone(self, select: exp.Select) -> tuple[exp.Select, PriorInputs]:
        """Return a self-contained SELECT with names in place of its answers, and these inputs."""
        inputs = PriorInputs(self, self.prefix)
        self.parts.replaced(select, inputs)
        return held(select, inputs.inputs, self.releases, self.sql), inputs

    def _catalog(self, inputs: PriorInputs) -> Catalog:
        if not inputs.inputs:
            return self.catalog
        values = {each.name: each.column for each in inputs.inputs if each.column is not None}
        return replace(self.catalog, shown=inputs.tables, values=values)

    def _for_kinds(self, select: exp.Select) -> tuple[exp.Select, Catalog]:
        """Do the same for classification only, without making a release."""
        if not self.parts.any(select, None):
            return select, self.catalog
        before = (list(self.releases), list(self.commons), dict(self.public), set(self.used))
        try:
            alone, inputs = self._alone(select)
            return alone, self._catalog(inputs)
        finally:
            self.releases, self.commons, self.public, self.used = before

    def _expressions(self, query: exp.Expr, names: Common | None, clauses: tuple[str, ...]) -> None:
        """Rewrite the sub-queries in its expressions."""
        for clause in clauses:
            if clause in ("from_", "with_"):
                continue
            value = query.args.get(clause)
            for part in with_inner_joins(value if isinstance(value, list) else [value]):
                inner: object = part.args.get("on") if isinstance(part, exp.Join) else part
                if not isinstance(inner, exp.Expr):
                    continue
                for node in [each for each in inner.find_all(exp.Query) if self._is_first(each, inner)]:
                    beside = query if isinstance(query, exp.Select) else None
                    node.replace(
                        self.query(node.copy(), names) if beside is None else self._beside(node, beside, names)
                    )

    @staticmethod
    def _is_first(node: exp.Expr, inside: exp.Expr) -> bool:
        while node is not inside and node.parent is not None:
            node = node.parent
            if isinstance(node, exp.Query):
                return False
        return True

    # FROM.

    def _item(self, item: exp.Expr, names: Common | None) -> None:
        """Rewrite one item of FROM: a generated relation, under the item's own name."""
        if isinstance(item, exp.Subquery):
            item.set("this", self.query(item.this, names))
            return
        if isinstance(item, exp.Values | exp.Unnest):
            return
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Func):
            return  # DuckDB's own name is looked up
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            raise UnsupportedSQL("only a table's name can stand after FROM.", span=self._span(item))
        if item.args.get("db") is not None or item.args.get("catalog") is not None:
            raise UnsupportedSQL("a table is named by one word, without a database.", span=self._span(item))
        common = names.find(item.name.casefold()) if names is not None else None
        relation = self._public(item) if common is None else self._common(common)
        if not item.alias:
            alias = item.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(item.name))
            item.set("alias", alias)
        item.set("this", exp.to_identifier(relation))

    def _common(self, common: Common) -> str:
        if not common.relation:
            query = self.query(common.node.this.copy(), common.before)
            common.relation = f"{COMMON}{len(self.commons)}"
            self.commons.append((common.relation, query, common.node.args.get("alias")))
        return common.relation

    def _public(self, item: exp.Table) -> str:
        schema = self.catalog.find(item.name, self._span(item.this))
        if not schema.public:
            raise InternalError("people's rows stand where only answers do.", hint="Please report it.")
        for name, known in self.public.items():
            if known is schema:
                return name
        relation = f"__public_{len(self.public)}"
        self.public[relation] = schema
        return relation

    # The text.

    def _named(self, select: exp.Select) -> None:
        """Name unnamed items after their own text."""
        items: list[exp.Expr] = []
        for item in select.expressions:
            if isinstance(item, exp.Alias | exp.Column) or is_star(item) or item.find(exp.Columns) is not None:
                items.append(item)
            else:
                items.append(exp.alias_(item, exp.to_identifier(self._words(item), quoted=True)))
        select.set("expressions", items)

    def _words(self, item: exp.Expr) -> str:
        span = self._span(item)
        text = "" if span is None else " ".join(span.sql[span.start : span.end + 1].split())
        whole = said(item)
        return text if text and text.casefold() == whole.casefold() else whole

    def text(self, tree: exp.Query, listed: Sequence[Listed], used: set[str], *, values: bool = True) -> str:
        """Return the SQL over these CTEs. Parameters it reads are added to `used`. values: bind one-row answers as
        values."""
        tree = with_values(tree.copy(), self.releases) if values else tree
        ordered = in_order(tree, self.releases, self.commons)
        body = printed(meant(tree, self.params, used))
        commons = []
        for name, query, alias in listed:
            columns = [printed(each) for each in (alias.args.get("columns") or [])] if alias is not None else []
            named = f" ({', '.join(columns)})" if columns else ""
            commons.append(f'"{name}"{named} AS ({printed(meant(query, self.params, used))})')
        head = f"WITH {', '.join(commons)} " if commons else ""
        return head + (body if ordered else f"SELECT * FROM ({body}) AS __rows ORDER BY ALL")

    def _span(self, node: exp.Expr) -> Span | None:
        return span_of(self.sql, node)


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name))
