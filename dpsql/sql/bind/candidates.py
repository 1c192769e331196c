"""Candidates of private selection: the public values that MODE, APPROX_TOP_K, MIN and MAX select from."""

from __future__ import annotations

from dataclasses import replace

from dpsql.errors import UnsupportedSQL
from dpsql.plan.aggregates import MOST_POINTS, Aggregation
from dpsql.plan.domains import Domain, Domains
from dpsql.plan.expressions import Call, Expr, Literal
from dpsql.plan.nodes import Source, scans_of
from dpsql.sql.bind.key_ranges import within_keys
from dpsql.sql.bind.public_keys import is_over, public_values, values_by_equality
from dpsql.sql.names.catalog import PublicValues
from dpsql.sql.syntax.refusals import unlisted


def with_candidates(each: Aggregation, domains: Domains, source: Source, public: PublicValues | None) -> Aggregation:
    """Return the aggregation with its candidates. Raises UnsupportedSQL.

    MODE and APPROX_TOP_K select from public values other than NULL, MIN and MAX of public columns from their values.
    Quantiles and all other aggregates get arguments within the ranges of keys.
    """
    assert each.argument is not None  # selection always has an argument
    if each.kind.chosen_by != "count":
        values = _of_public_columns(each.argument, domains, source, public) if each.kind.ranked else None
        present = tuple(value for value in values or () if value is not None)
        return replace(each, values=present) if 0 < len(present) <= MOST_POINTS else within_keys(each, domains)
    values = public_values(each.argument, source, public)
    values = domains.of(each.argument) if values is None else values
    if values is None:
        values = values_by_equality(each.argument, source, public)
    present = tuple(value for value in values or () if value is not None)
    if values == ():
        raise UnsupportedSQL(
            f"{each.word}({each.argument}) chooses one of the values that {each.argument} can have, and there are "
            "none, by the conditions or the public tables alone.",
            span=each.span,
            hint=f"Leave out the condition on {each.argument}, or the {each.word}.",
        )
    if not present or len(present) > MOST_POINTS:
        raise unlisted(each, each.argument, domains, public=bool(present))
    return replace(each, values=present)


def _of_public_columns(expr: Expr, domains: Domains, source: Source, public: PublicValues | None) -> Domain | None:
    """Return the values of an expression over columns of public tables, optionally inside a FILTER; None for others.

    Only public tables and the text determine the values.
    """
    filtered = isinstance(expr, Call) and expr.function.name == "case" and len(expr.args) == 3
    if isinstance(expr, Call) and filtered and expr.args[2] == Literal(None, expr.args[2].type):
        expr = expr.args[1]
    scans = tuple(scans_of(source))
    places = frozenset(scan.name for scan in scans if scan.table.public)
    if public is None or len(places) == len(scans) or not is_over(expr, places):
        return None  # an aggregate over public tables only is exact
    values = public_values(expr, source, public)
    return domains.of(expr) if values is None else values
