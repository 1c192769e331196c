"""The stages of one statement in the compiler, for contributors."""

from __future__ import annotations

from sqlglot import exp

from dpsql.plan.query_plan import QueryPlan
from dpsql.schema.frozen import dataclass
from dpsql.sql.boundary.statements import separation_of
from dpsql.sql.compile import compile_query
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.rewrite.foreign_clauses import settled
from dpsql.sql.syntax.nodes import PriorValue, said
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement


@dataclass(frozen=True)
class CompileTrace:
    """The stages of one statement. `print` shows all of them.

    Attributes
    ----------
    syntax : str
        The parsed text.
    rewrite : str
        The text with syntactic sugar expanded.
    releases : tuple of str
        The private SELECTs that the privacy boundary separates, in execution order. For a statement that is one release
        already, its rewritten text.
    postprocess : str or None
        The SQL over released values, as DuckDB runs it. None if the answer is that of a single release.
    plan : QueryPlan
        The bound plan.
    """

    syntax: str
    rewrite: str
    releases: tuple[str, ...]
    postprocess: str | None
    plan: QueryPlan

    def __str__(self) -> str:
        named = {"syntax": self.syntax, "rewrite": self.rewrite}
        for at, (text, release) in enumerate(zip(self.releases, self.plan.releases, strict=True)):
            named[f"boundary: {release.relation or f'release {at}'}"] = text
        if self.postprocess is not None:
            named["boundary: post-processing"] = self.postprocess
        for at, release in enumerate(self.plan.releases):
            bound = release.query.plan
            keys = ", ".join(map(str, (key.expr for key in bound.keys))) or "none"
            aggregates = ", ".join(map(str, bound.aggregations)) or "none"
            outputs = ", ".join(f"{each.name} {each.expr.type.value}" for each in release.query.finish.outputs)
            named[f"bind: {release.relation or f'release {at}'}"] = (
                f"keys: {keys}; aggregates: {aggregates}; outputs: {outputs}"
            )
        return "\n".join(f"{name:<25} {text}" for name, text in named.items())


def traced(sql: str, catalog: Catalog, params: Params = ()) -> CompileTrace:
    """Return the stages of a statement. Raises a QueryRefused as `compile_query` does."""
    compiled = compile_query(sql, catalog, params)
    statement, plan = compiled.statement, compiled.plan
    if plan.postprocess is None:
        rewritten = _text(settled(statement, catalog, params, set())[0])
        return CompileTrace(_text(statement), rewritten, (rewritten,), None, plan)
    separation = separation_of(statement, catalog, params)
    assert separation is not None  # the statement is separated above
    rewritten = _text(separation.statement)
    separation.plan()
    selects = tuple(map(_with_names, separation.selects))
    return CompileTrace(_text(statement), rewritten, selects, plan.postprocess.sql, plan)


def _with_names(select: exp.Select) -> str:
    """Return the text of a SELECT, with the names of the prior values it reads."""
    return said(select.transform(lambda each: exp.column(each.this) if isinstance(each, PriorValue) else each))


def _text(statement: Statement) -> str:
    return said(statement.select)
