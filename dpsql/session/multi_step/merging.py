"""Releases of one statement that are made as one, where that is no worse for any answer.

They are of one relation and differ in WHERE, which becomes the condition of each aggregate, or in that some are by
groups and others of all rows, which become two levels (`plan.merged_queries`). What
they are merged into is a query like any other: it is planned by the same core, which derives its sensitivity and is
paid what its members would have been together. So a wrong choice here is a worse answer and no leak. Each release by
itself is the plain candidate; merged ones are taken where no aggregate's expected error at the public reference is
above that, and the mean of them is below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpsql.core.loss import Allowance
from dpsql.core.mechanisms.coordinate_classes import law_of
from dpsql.errors import InvalidPrivacyParameter, QueryRefused
from dpsql.plan.merged_queries import MergedQuery, merged
from dpsql.plan.nodes import scans_of
from dpsql.plan.program import Step
from dpsql.release.expected_error import error_variance
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass

Planned = Callable[[Step, Allowance], Release]

_TIE = 1e-9
"""Errors that differ by less than that part are alike: doubles say no more."""
_WORTH = 0.005
"""What is gained by less than that part keeps its releases, and their keys in ledgers."""


@dataclass(frozen=True)
class MergedRelease:
    """A release, the steps that it was made of, and what it may cost. `joint`: their one query, where they are
    several."""

    release: Release
    steps: tuple[Step, ...]
    allowed: Allowance
    joint: MergedQuery | None = None

    def finishing(self, first: Step, step: Step) -> Release:
        """The release with the finish of a step that releases the same values as `first`, which it was made of."""
        if self.joint is not None:
            finish = self.joint.finish(self.steps.index(first), step.query)
        elif self.release.query.finish == step.query.finish:
            return self.release
        else:
            finish = step.query.finish
        release = replace(self.release, query=replace(self.release.query, finish=finish))
        if self.joint is None or not self.joint.levels:
            return release
        # Groups of levels are whole numbers again where nobody asked for what adds up.
        whole = tuple(replace(each, whole=each.whole or each.unrounded) for each in release.estimates)
        return replace(release, lattice=replace(release.lattice, estimates=whole))

    @property
    def errors(self) -> list[float]:
        """The logarithms of the expected errors of its steps' aggregates at the public reference, one step after the
        other; of one without noise the least that there is."""
        release, joint = self.release, self.joint
        if joint is None:
            return errors_of(release)
        if not joint.levels:
            every = [errors_of(release)] * len(self.steps)
        else:
            every = [errors_of(release.at_level(level)) for level in joint.levels]
        return [logs[at] for member, logs in enumerate(every) for at in joint.places(member)]


def errors_of(release: Release) -> list[float]:
    """The logarithms of the expected errors of the aggregates of a release, or of one level of one."""
    spreads = {
        place: law_of(share.noise, share.places, place).spread for share in release.shares for place in share.places
    }
    found = [error_variance(each, release.lattice, spreads) for each in release.estimates]
    return [math.log(each) / 2 if each > 0 else -math.inf for each in found]


def made_of(steps: Sequence[Step], shares: Sequence[Allowance], planned: Planned) -> list[MergedRelease]:
    """The releases of different steps, in their order, each at its share; of some of them one, where that is no worse,
    at the place of the first. Raises what planning raises."""
    releases: list[MergedRelease] = []
    for step, share in zip(steps, shares, strict=True):
        alone = MergedRelease(planned(step, share), (step,), share)
        fitting = (place for place, each in enumerate(releases) if _fit(each, alone))
        joint = next(((place, both) for place in fitting if (both := _together(releases[place], alone, planned))), None)
        if joint is None:
            releases.append(alone)
        else:
            releases[joint[0]] = joint[1]
    return releases


def _fit(one: MergedRelease, other: MergedRelease) -> bool:
    """Whether two may be made one, by what their merging does not look at itself."""
    first, second = one.steps[0], other.steps[0]
    words = first.options, second.options
    return (
        words[0] == words[1]
        and all(each is None or (each.epsilon is None and each.delta is None) for each in words)
        and not (first.inputs or second.inputs)
        and _is_plain(one.release, levels=one.joint is not None)
        and _is_plain(other.release)
    )


def _is_plain(release: Release, *, levels: bool = False) -> bool:
    """Whether all of its groups are shown, its units have no limit that acts after WHERE, and it has noise, of a law
    that was chosen for it as a whole. Parts of a table that are charged by themselves stay apart."""
    bounds = release.analysis.bounds
    parted = any(scan.table.partition is not None for scan in scans_of(release.query.plan.input))
    return (
        bool(release.shares or (levels and release.levels.measured))
        and not (bounds.declared or bounds.enforced or parted)
        and not (release.hides or release.draws or release.provisional)
        and (levels or not release.levels.wanted)
        and release.strategy == "auto"
        and release.query.plan.public_cells is not None
    )


def _together(one: MergedRelease, other: MergedRelease, planned: Planned) -> MergedRelease | None:
    """Both as one, where no aggregate is worse for it; else None."""
    steps = (*one.steps, *other.steps)
    joint = merged([each.query for each in steps])
    if joint is None:
        return None
    allowed = _sum(one.allowed, other.allowed)
    try:
        release = planned(replace(steps[0], query=joint.query), allowed)
    except (QueryRefused, InvalidPrivacyParameter):  # more is asked of one release than of several
        return None
    both = MergedRelease(release, steps, allowed, joint)
    return both if _is_plain(release, levels=True) and _no_worse(both.errors, [*one.errors, *other.errors]) else None


def _sum(one: Allowance, other: Allowance) -> Allowance:
    """What two releases may cost together."""
    epsilon = None if one.epsilon is None else one.epsilon + other.pure
    rho = None if one.rho is None else one.rho + (other.rho or 0)
    return replace(one, epsilon=epsilon, delta=one.delta + other.delta, rho=rho)


def _no_worse(after: Sequence[float], before: Sequence[float]) -> bool:
    """Whether no aggregate has more error than before, and all of them less in the mean."""
    worse = any(new > old + _TIE for new, old in zip(after, before, strict=True))
    return not worse and sum(after) < sum(before) - _WORTH * len(after)
