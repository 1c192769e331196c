"""What refusals advise, with how it would come out: how far off answers would be for what is left of a budget, and how
many people a group needs so that it is shown.

What is advised is planned as a question is: from the text and declared facts, without a row, and free.
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
"""Plans the question on other terms."""
_MOST_WIDTHS = 3


def who_is_hidden(refusal: UnknownGroups, ask: Ask, terms: Terms, left: Fraction | None = None) -> UnknownGroups:
    """The refusal of unknown groups, with how many people a group needs once a delta is allowed. left: how much of it
    the budget has."""
    return with_delta(refusal, left, lambda delta: _few(ask, replace(terms, delta=delta)))


def _few(ask: Ask, terms: Terms) -> str:
    """Who is hidden on these terms: of groups of so many people half are shown. "" where nobody can tell."""
    try:
        hiding = next((each for each in ask(terms).releases if each.selection.hides), None)
    except DPSQLError:  # something else stands against it, and will be said then
        return ""
    if hiding is None:
        return ""
    return f"fewer than about {hiding.selection.half:,} {'rows' if unit_of(hiding) is None else 'people'}"


def how_far_off(refusal: BudgetExceeded, ask: Ask, terms: Terms) -> BudgetExceeded:
    """The refusal of a query that costs too much, with how far off its answers would be for the epsilon that is
    left."""
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
    """`n ±22` of the first outputs whose interval is known beforehand."""
    known = [each for each in explained(release).shown if each.half is not None]
    for each in known[:_MOST_WIDTHS]:
        yield f"{each.name} ±{each.half:.3g}"
