"""Hints of refusals with their outcome: the error at the remaining budget, and how many people a visible group needs.

Suggestions are planned like queries: from the text and declared facts, without a row, and free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.answer.explanation_builder import explained, unit_of
from dpsql.errors import BudgetExceeded, DPSQLError, UnknownGroups
from dpsql.release.release import Release
from dpsql.release.selection.groups import with_delta
from dpsql.session.prepare import Terms
from dpsql.session.prepared_query import PreparedQuery

Ask = Callable[[Terms], PreparedQuery]
"""Plans the query on other terms."""
_MOST_WIDTHS = 3


def who_is_hidden(refusal: UnknownGroups, ask: Ask, terms: Terms, left: Fraction | None = None) -> UnknownGroups:
    """Return the refusal of unknown groups with how many people a group needs if a delta is allowed. left: remaining
    delta of the budget."""
    return with_delta(refusal, left, lambda delta: _few(ask, replace(terms, delta=delta)))


def _few(ask: Ask, terms: Terms) -> str:
    """Describe which groups are hidden on these terms: half of the groups of that size are shown. "" if unknown."""
    try:
        hiding = next((each for each in ask(terms).releases if each.selection.hides), None)
    except DPSQLError:  # another refusal, which the next attempt shows
        return ""
    if hiding is None:
        return ""
    return f"fewer than about {hiding.selection.half:,} {'rows' if unit_of(hiding) is None else 'people'}"


def how_far_off(refusal: BudgetExceeded, ask: Ask, terms: Terms) -> BudgetExceeded:
    """Return the refused charge with the error of its answers at the remaining epsilon."""
    about = refusal.about
    if "left" not in about:
        return refusal
    try:
        asked = ask(replace(terms, epsilon=Fraction(about["left"]), rho=None))
        widths = ", ".join(_widths(asked.releases[0])) if asked.postprocess is None else ""
    except DPSQLError:
        return refusal
    if not widths:
        return refusal
    hint, elsewhere = (
        f"{about[before]} ({widths}){about['after left']}" for before in ("before left", "before left elsewhere")
    )
    return BudgetExceeded(refusal.message, hint=hint, about=about | {"hint elsewhere": elsewhere})


def _widths(release: Release) -> Iterator[str]:
    """Yield `n ±22` for the first outputs whose interval is known in advance."""
    known = [each for each in explained(release).shown if each.half is not None]
    for each in known[:_MOST_WIDTHS]:
        yield f"{each.name} ±{each.half:.3g}"
