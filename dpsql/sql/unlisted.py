"""What is said where a value is to be chosen, and those to choose among are private or too many."""

from __future__ import annotations

from dpsql.errors import UnknownGroups
from dpsql.plan.aggregates import MOST_POINTS, Aggregation
from dpsql.plan.domains import Domains
from dpsql.plan.expressions import Expr, Literal, call, columns
from dpsql.plan.facts import fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.query import MOST_DERIVED_CELLS
from dpsql.schema.columns import Type


def unlisted(each: Aggregation, expr: Expr, domains: Domains, *, public: bool) -> UnknownGroups:
    """The refusal of an aggregate of an expression; `public`: it has a list, a declared one that is too long."""
    private = next((column for column in columns(expr) if domains.of(column) is None), None)
    listed = "" if private is None else f'keys={{"{private.name}": [...]}}.'
    why, hint = "it has no public list of values", f"List them: {listed}" if listed else ""
    if public or domains.too_many(expr):
        why = f"it has too many public values: more than {MOST_POINTS if public else MOST_DERIVED_CELLS:,}"
        hint = f"Ask for fewer{_fewer(expr, domains)}" + (f", or list those that matter: {listed}" if listed else ".")
    return UnknownGroups(
        f"{each.word}({expr}) chooses one of the values that {expr} can have, and {why}.", span=each.span, hint=hint
    )


def _fewer(expr: Expr, domains: Domains) -> str:
    """Numbers by tens, or by hundreds ..., so that they are few enough."""
    held = fact(expr, domains.known).range
    if not expr.type.numeric or not held.bounded:
        return ""
    by = 10
    while held.upper - held.lower >= by * (MOST_DERIVED_CELLS - 1):
        by *= 10
    made = call(FUNCTIONS["divide"], expr, Literal(by, Type.INTEGER))
    return "" if made is None else f", for example of FLOOR({made})"
