"""Merging of a statement's releases into one, if no answer becomes worse.

The releases read one relation and differ in WHERE, which becomes the condition of each aggregate, or have different
groupings, of which one is all rows; these become two levels (`plan.merged_queries`). The merged query is planned like
any other: the core derives its sensitivity, and it costs what its members would have cost together. A wrong choice here
is a worse answer, not a leak. The plain candidate is separate releases. Merged ones are chosen if no aggregate's
expected error at the public reference is higher, and the mean of the errors is lower.
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
from dpsql.plan.query_plan import ReleasePlan
from dpsql.release.expected_error import error_variance
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass

Planned = Callable[[ReleasePlan, Allowance], Release]

_TIE = 1e-9
"""Errors with a smaller relative difference are equal: doubles are no more precise."""
_WORTH = 0.005
"""Smaller gains do not justify merging, which would change the releases' keys in ledgers."""


@dataclass(frozen=True)
class MergedRelease:
    """A release, the steps that it answers, and its allowance. `joint`: their merged query, if they are several."""

    release: Release
    steps: tuple[ReleasePlan, ...]
    allowed: Allowance
    joint: MergedQuery | None = None

    def finishing(self, first: ReleasePlan, step: ReleasePlan) -> Release:
        """Return the release with the finish of a step that releases the same values as `first`, one of its steps."""
        if self.joint is not None:
            finish = self.joint.finish(self.steps.index(first), step.query)
        elif self.release.query.finish == step.query.finish:
            return self.release
        else:
            finish = step.query.finish
        release = replace(self.release, query=replace(self.release.query, finish=finish))
        if self.joint is None or not self.joint.levels:
            return release
        # Estimates of levels are integers again if no additive estimates are requested.
        whole = tuple(replace(each, whole=each.whole or each.unrounded) for each in release.estimates)
        return replace(release, lattice=replace(release.lattice, estimates=whole))

    @property
    def errors(self) -> list[float]:
        """Logarithms of the expected errors of all steps' aggregates at the public reference, step by step; -inf
        without noise."""
        release, joint = self.release, self.joint
        if joint is None:
            return errors_of(release)
        if not joint.levels:
            every = [errors_of(release)] * len(self.steps)
        else:
            every = [errors_of(release.at_level(level)) for level in joint.levels]
        return [logs[at] for member, logs in enumerate(every) for at in joint.places(member)]


def errors_of(release: Release) -> list[float]:
    """Return the logarithms of the expected errors of the aggregates of a release, or of one of its levels."""
    spreads = {
        place: law_of(share.noise, share.places, place).spread for share in release.shares for place in share.places
    }
    found = [error_variance(each, release.lattice, spreads) for each in release.estimates]
    return [math.log(each) / 2 if each > 0 else -math.inf for each in found]


def made_of(steps: Sequence[ReleasePlan], shares: Sequence[Allowance], planned: Planned) -> list[MergedRelease]:
    """Return the releases of different steps, in order, each at its share. Steps are merged, at the place of the first,
    if that is no worse. Raises what planning raises."""
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
    """Return whether two releases may be merged, by conditions that `merged` does not check."""
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
    """Return whether the release shows all groups, has no contribution bounds after WHERE, and has one noise
    distribution chosen for the whole. Releases that charge partitions separately are not merged."""
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
    """Return the merged release if no aggregate is worse; otherwise None."""
    steps = (*one.steps, *other.steps)
    joint = merged([each.query for each in steps])
    if joint is None:
        return None
    allowed = _sum(one.allowed, other.allowed)
    try:
        release = planned(replace(steps[0], query=joint.query), allowed)
    except (QueryRefused, InvalidPrivacyParameter):  # one release may be refused where several are not
        return None
    both = MergedRelease(release, steps, allowed, joint)
    return both if _is_plain(release, levels=True) and _no_worse(both.errors, [*one.errors, *other.errors]) else None


def _sum(one: Allowance, other: Allowance) -> Allowance:
    """Return the total allowance of two releases."""
    epsilon = None if one.epsilon is None else one.epsilon + other.pure
    rho = None if one.rho is None else one.rho + (other.rho or 0)
    return replace(one, epsilon=epsilon, delta=one.delta + other.delta, rho=rho)


def _no_worse(after: Sequence[float], before: Sequence[float]) -> bool:
    """Return whether no aggregate's error grows, and their mean falls."""
    worse = any(new > old + _TIE for new, old in zip(after, before, strict=True))
    return not worse and sum(after) < sum(before) - _WORTH * len(after)
