"""The release whose answers are as exact as they are asked to be."""

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
    from dpsql.sql.bind.statement import BoundStatement


class Terms(Protocol):
    """What a query may cost."""

    @property
    def epsilon(self) -> Fraction | None:
        """The call's word."""

    @property
    def max_epsilon(self) -> Fraction | None:
        """The owner's limit."""

    def said(self, options: Options | None) -> tuple[Fraction | None, Fraction]:
        """The text's epsilon, and what one query may spend of delta."""

    def paying(self, epsilon: Fraction, delta: Fraction) -> Allowance:
        """This pair."""


def within(
    goal: Goal, terms: Terms, bound: BoundStatement, release_for: Callable[[Allowance, str], Release], mechanism: str
) -> Release:
    """The release that reaches a goal at the least epsilon, which must not be more than is allowed. Its widths have to
    fall as epsilon grows, as those of Laplace and Gaussian noise do."""
    asked, delta = terms.said(bound.options)
    laws = (LAWS if delta else LAWS[:1]) if mechanism == "auto" else (mechanism,)
    release = reached(bound.query, lambda epsilon, law: release_for(terms.paying(epsilon, delta), law), goal, laws)
    release = replace(release, goal=goal)
    cap = min((each for each in (terms.epsilon, terms.max_epsilon, asked) if each is not None), default=None)
    if cap is not None and release.allowed.pure > cap:
        raise InvalidPrivacyParameter(
            f"an answer {goal} costs epsilon {show(release.allowed.pure)}, and {show(cap)} is allowed.",
            hint="Ask for a larger error, or allow more.",
        )
    return release
