"""Compile SQL text into a query plan, pass by pass: syntax, names, rewrite, boundary, bind.

Most statements are one private SELECT, possibly with SELECTs over its answer. These are bound directly. If that is
refused, the statement is separated at the privacy boundary into releases and the post-processing SQL over them, and
each release is bound.
"""

from __future__ import annotations

from dpsql.errors import InvalidParameter, QueryRefused, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.query_plan import QueryPlan, ReleasePlan
from dpsql.schema.frozen import dataclass
from dpsql.sql.bind.statement import bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement, check_is_select, parse

_OF_THE_TEXT = (SQLSyntaxError, TypeMismatch, InvalidParameter)
"""Errors of a text however it is separated. Other refusals depend on the part that is read first."""


@dataclass(frozen=True)
class CompiledQuery:
    """A compiled statement.

    Attributes
    ----------
    plan : QueryPlan
        Its releases and the post-processing over them.
    statement : Statement
        The parsed text.
    refusal : QueryRefused or None
        Why the statement is not one release; None where it is.
    """

    plan: QueryPlan
    statement: Statement
    refusal: QueryRefused | None = None


def compile_query(sql: object, catalog: Catalog, params: Params = ()) -> CompiledQuery:
    """Return the compiled statement. Raises a QueryRefused with the place in the text."""
    statement = parse(sql)
    try:
        check_is_select(statement)
        bound = bind(statement, catalog, params)
    except QueryRefused as error:
        if isinstance(error, _OF_THE_TEXT) and "no FROM" not in error.about:
            raise
        refusal = error.with_traceback(None)
    else:
        return CompiledQuery(QueryPlan((ReleasePlan(bound.query, bound.options),)), statement)
    try:
        plan = separate(statement, catalog, params)
    except QueryRefused as error:
        raise better_refusal(error, refusal) from None
    if plan is None:
        raise refusal
    return CompiledQuery(plan, statement, refusal)


def separate(statement: Statement, catalog: Catalog, params: Params) -> QueryPlan | None:
    """Return a statement's releases and post-processing SQL, or None without SQL over a release. Raises a
    QueryRefused."""
    from dpsql.sql.boundary.statements import separate_statement  # most statements are one release

    return separate_statement(statement, catalog, params)


def better_refusal(of_several: QueryRefused, of_one: QueryRefused) -> QueryRefused:
    """Return the refusal to show for a statement read as one release and as several."""
    from dpsql.sql.boundary.error_places import located  # most statements are one release

    is_of_one = "people's rows" in of_one.about or not isinstance(of_one, UnsupportedSQL | SQLSyntaxError)
    return of_one if is_of_one else located(of_several, of_one)
