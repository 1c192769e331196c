"""Releases that reach an error goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from dpsql.core.goal import Goal
from dpsql.core.loss import Allowance, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.release.goal import LAWS, reached
from dpsql.release.release import Release

if TYPE_CHECKING:
    from dpsql.plan.options import Options
    from dpsql.plan.query_plan import ReleasePlan


class Terms(Protocol):
    """Cost limits of a query."""

    @property
    def epsilon(self) -> Fraction | None:
        """The call's epsilon."""

    @property
    def max_epsilon(self) -> Fraction | None:
        """The owner's limit."""

    def said(self, options: Options | None) -> tuple[Fraction | None, Fraction]:
        """Return the text's epsilon, and the delta that one query may spend."""

    def paying(self, epsilon: Fraction, delta: Fraction) -> Allowance:
        """Return an allowance for this pair."""


def within(
    goal: Goal, terms: Terms, plan: ReleasePlan, release_for: Callable[[Allowance, str], Release], mechanism: str
) -> Release:
    """Return the release that reaches a goal at the least epsilon, which must be allowed. Its interval widths must fall
    as epsilon grows, as with Laplace and Gaussian noise."""
    asked, delta = terms.said(plan.options)
    laws = (LAWS if delta else LAWS[:1]) if mechanism == "auto" else (mechanism,)
    release = reached(plan.query, lambda epsilon, law: release_for(terms.paying(epsilon, delta), law), goal, laws)
    release = replace(release, goal=goal)
    cap = min((each for each in (terms.epsilon, terms.max_epsilon, asked) if each is not None), default=None)
    if cap is not None and release.allowed.pure > cap:
        raise InvalidPrivacyParameter(
            f"an answer {goal} costs epsilon {show(release.allowed.pure)}, and {show(cap)} is allowed.",
            hint="Ask for a larger error, or allow more.",
        )
    return release
