"""Statements of several steps: what each release may spend, what is shown to the SQL over them, and its answer.

Shares are fixed before the first draw, by the text alone, and releases are charged together; so the whole is a
sequential composition of losses that were fixed in advance. What stands above reads released values and public tables,
which are all that it is handed: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ledger.account import Part
from dpsql.core.loss import Allowance, show
from dpsql.errors import InvalidPrivacyParameter
from dpsql.plan.options import Options
from dpsql.plan.program import Program, Step, handed
from dpsql.postprocess.database import bound
from dpsql.postprocess.headers import header_of, public_header
from dpsql.release.release import Release
from dpsql.session.multi_step.merging import made_of
from dpsql.session.multi_step.postprocess_plan import PostprocessPlan
from dpsql.session.multi_step.postprocess_results import public_frames
from dpsql.session.prepared_query import PreparedQuery
from dpsql.sql.names.catalog import PublicValues

Planned = Callable[[Step, Allowance], Release]


def prepared_program(
    program: Program,
    planned: Planned,
    allowance: Callable[[Options | None], Allowance],
    public: PublicValues | None,
    *,
    explain_only: bool,
) -> PreparedQuery:
    """The releases of a program, each at its share, and the SQL over them, bound over answers of no row. Raises what
    planning raises, and a QueryRefused."""
    firsts: list[Step] = []
    places: list[int] = []
    for step in program.steps:
        same = [at for at, each in enumerate(firsts) if _alike(each, step)]
        places.append(same[0] if same else len(firsts))
        firsts += [] if same else [step]
    shares = allowances([each.options for each in firsts], allowance)
    releases = made_of(firsts, shares, planned)
    of_first = {
        place: at for at, each in enumerate(releases) for place, step in enumerate(firsts) if step in each.steps
    }
    finishes = tuple(
        releases[of_first[at]].finishing(firsts[at], step) for at, step in zip(places, program.steps, strict=True)
    )
    planned_for = tuple(each.steps[0] for each in releases)
    frames = public_frames(program, public)
    headers = [*map(header_of, program.steps), *(public_header(*each) for each in program.public if each[0] in frames)]
    statement = bound(program.sql, headers, handed(program.parameters))
    inputs = tuple(
        tuple(bound(one.sql, headers, handed(one.parameters)) for one in step.inputs) for step in planned_for
    )
    plan = PostprocessPlan(
        program,
        tuple(of_first[at] for at in places),
        finishes,
        statement,
        frames,
        planned_for,
        inputs,
        merged=tuple(len(each.steps) for each in releases),
    )
    return PreparedQuery(tuple(each.release for each in releases), explain_only=explain_only, postprocess=plan)


def _alike(one: Step, other: Step) -> bool:
    """Whether two steps release the same values, whatever is done with them."""
    return (one.query.plan, one.options, one.inputs) == (other.query.plan, other.options, other.inputs)


def allowances(own: Sequence[Options | None], allowance: Callable[[Options | None], Allowance]) -> list[Allowance]:
    """What each release may spend of what the statement may: its own words, and equal shares of the rest. Raises
    InvalidPrivacyParameter."""
    for options in own:
        if options is not None:
            allowance(options)  # what it says is within what the call allows
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
    """The parts of one declared partition that hold whatever any of the releases reads; none where one reads all, or
    they are of several. Each part is charged with everything, which is no less than what it costs."""
    if not all(parts) or len({(each.table, each.column) for some in parts for each in some}) != 1:
        return ()
    return tuple(sorted({each for some in parts for each in some}))
