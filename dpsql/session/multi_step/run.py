"""Multi-step statements: each release's share of the allowance, the inputs of the SQL over them, and the answer.

Shares are fixed before the first draw, by the text only, and releases are charged together; so the whole is a
sequential composition of losses that were fixed in advance. The outer SQL only receives released values and public
tables: it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ledger.account import Part
from dpsql.core.loss import Allowance, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.plan.options import Options
from dpsql.plan.query_plan import Postprocess, QueryPlan, ReleasePlan, handed
from dpsql.postprocess.database import bound
from dpsql.postprocess.headers import header_of, public_header
from dpsql.release.release import Release
from dpsql.session.multi_step.merging import made_of
from dpsql.session.multi_step.postprocess_plan import PostprocessPlan
from dpsql.session.multi_step.postprocess_results import public_frames
from dpsql.session.prepared_query import PreparedQuery
from dpsql.sql.names.catalog import PublicValues

Planned = Callable[[ReleasePlan, Allowance], Release]


def prepare_multi_step(
    plan: QueryPlan,
    postprocess: Postprocess,
    planned: Planned,
    allowance: Callable[[Options | None], Allowance],
    public: PublicValues | None,
    *,
    explain_only: bool,
) -> PreparedQuery:
    """Return the releases of a multi-step query, each at its share, and the SQL over them, bound over answers without
    rows. Raises what planning raises, and a QueryRefused."""
    firsts: list[ReleasePlan] = []
    places: list[int] = []
    for step in plan.releases:
        same = [at for at, each in enumerate(firsts) if _alike(each, step)]
        places.append(same[0] if same else len(firsts))
        firsts += [] if same else [step]
    shares = allowances([each.options for each in firsts], allowance)
    releases = made_of(firsts, shares, planned)
    of_first = {
        place: at for at, each in enumerate(releases) for place, step in enumerate(firsts) if step in each.steps
    }
    finishes = tuple(
        releases[of_first[at]].finishing(firsts[at], step) for at, step in zip(places, plan.releases, strict=True)
    )
    planned_for = tuple(each.steps[0] for each in releases)
    frames = public_frames(postprocess, public)
    headers = [
        *map(header_of, plan.releases),
        *(public_header(*each) for each in postprocess.public if each[0] in frames),
    ]
    statement = bound(postprocess.sql, headers, handed(postprocess.parameters))
    inputs = tuple(
        tuple(bound(one.sql, headers, handed(one.parameters)) for one in step.inputs) for step in planned_for
    )
    bound_plan = PostprocessPlan(
        plan.releases,
        postprocess,
        tuple(of_first[at] for at in places),
        finishes,
        statement,
        frames,
        planned_for,
        inputs,
        merged=tuple(len(each.steps) for each in releases),
    )
    return PreparedQuery(tuple(each.release for each in releases), explain_only=explain_only, postprocess=bound_plan)


def _alike(one: ReleasePlan, other: ReleasePlan) -> bool:
    """Return whether two steps release the same values, whatever their post-processing."""
    return (one.query.plan, one.options, one.inputs) == (other.query.plan, other.options, other.inputs)


def allowances(own: Sequence[Options | None], allowance: Callable[[Options | None], Allowance]) -> list[Allowance]:
    """Return each release's share of the statement's allowance: its own OPTIONS, or an equal share of the rest. Raises
    InvalidPrivacyParameter."""
    for options in own:
        if options is not None:
            allowance(options)  # raises if it exceeds the call's allowance
    epsilons = [None if each is None else each.epsilon for each in own]
    deltas = [None if each is None else each.delta for each in own]
    said = sum((each for each in epsilons if each is not None), Fraction(0))
    whole = allowance(Options(epsilon=said) if None not in epsilons else None)
    if whole.rho is not None:
        rhos = [whole.rho / len(own)] * len(own)
        return [
            Allowance(None, delta, rho) for delta, rho in zip(_shares(deltas, whole.delta, "delta"), rhos, strict=True)
        ]
    pairs = zip(_shares(epsilons, whole.pure, "epsilon"), _shares(deltas, whole.delta, "delta"), strict=True)
    return [replace(whole, epsilon=epsilon, delta=delta) for epsilon, delta in pairs]


def _shares(own: Sequence[Fraction | None], whole: Fraction, name: str) -> list[Fraction]:
    own_sum = sum((each for each in own if each is not None), Fraction(0))
    silent = sum(each is None for each in own)
    if own_sum > whole or (silent and name == "epsilon" and own_sum == whole):
        rest = "leaves nothing for the others" if own_sum == whole else f"is more than {show(whole)}"
        raise InvalidPrivacyParameter(f"the {name} {show(own_sum)} that releases here say for themselves {rest}.")
    return [(whole - own_sum) / silent if each is None else each for each in own]


def parts_together(parts: Sequence[tuple[Part, ...]]) -> tuple[Part, ...]:
    """Return the parts of one declared partition that cover what the releases read. Empty if a release reads all of a
    table, or the parts belong to several partitions. Each part is charged the whole cost, which is never too little."""
    if not all(parts) or len({(each.table, each.column) for some in parts for each in some}) != 1:
        return ()
    return tuple(sorted({each for some in parts for each in some}))
