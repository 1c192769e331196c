"""Statements of several steps: what each release may spend, what is shown to the SQL over them, and its answer.

Shares are fixed before the first draw, by the text alone, and releases are charged together; so the whole is a
sequential composition of losses that were fixed in advance. What stands above reads released values and public tables,
which are all that it is handed: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpsql.answer.computed import StagedResult
from dpsql.answer.program import ProgramExplanation, ProgramResult
from dpsql.answer.result import Result, result_of
from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.loss import Allowance, show
from dpsql.errors import InvalidPrivacyParameter, NotComputed
from dpsql.plan.options import Options
from dpsql.plan.program import Program, Step, handed
from dpsql.postprocess.frames import Frame, no_rows
from dpsql.postprocess.headers import header_of, public_header
from dpsql.postprocess.machine import Statement, bound, run
from dpsql.release.finish import Answer
from dpsql.release.release import Release, Released
from dpsql.schema.frozen import dataclass
from dpsql.session.merging import made_of
from dpsql.session.program_intervals import Above, Drawn
from dpsql.session.public_data import PublicData
from dpsql.session.step_frames import frame_of
from dpsql.sql.catalog import PublicValues

if TYPE_CHECKING:
    from dpsql.executors.pandas.columns import ColumnStore
    from dpsql.session.earlier import Seen

Planned = Callable[[Step, Allowance], Release]


@dataclass(frozen=True)
class PreparedProgram:
    """A statement of several steps, ready to run. `releases`: the different ones, in order of need; `places`: which of
    them each step is; `finishes`: each step's own, of that one."""

    program: Program
    releases: tuple[Release, ...]
    places: tuple[int, ...]
    finishes: tuple[Release, ...]
    statement: Statement
    public: Mapping[str, Frame]
    firsts: tuple[Step, ...]
    """Of each release the step that it was planned for."""
    inputs: tuple[tuple[Statement, ...], ...]
    """Of each release the SQL over earlier ones that it reads, as its step's `inputs` are."""
    explain_only: bool
    merged: tuple[int, ...]
    """Of how many releases that were asked for each is made."""

    @property
    def tried(self) -> tuple[Release, ...]:
        """What is to be tried before it is paid for: the releases with the finish of each step."""
        return tuple({id(each): each for each in self.finishes}.values())

    @property
    def cost(self) -> Cost:
        """What all of them cost together."""
        return sum((each.cost for each in self.releases), FREE)

    @property
    def later(self) -> bool:
        """Whether a release reads what others have shown."""
        return any(self.inputs)

    def needs(self, place: int) -> frozenset[int]:
        """The releases that one reads, by their places."""
        names = {name for each in self.firsts[place].inputs for name in each.reads}
        pairs = zip(self.program.steps, self.places, strict=True)
        return frozenset(at for step, at in pairs if step.relation in names)

    def seen(self, place: int, released: Mapping[int, Released], public: Mapping[str, ColumnStore]) -> Seen | None:
        """What a release reads of those that were drawn before it; None for one that reads none. public: the stores of
        public tables. Raises NotComputed, which holds their answers."""
        inputs, release = self.firsts[place].inputs, self.releases[place]
        if not inputs:
            return None
        from dpsql.session.earlier import seen  # most statements have none

        frames = dict(self.public)
        for at, step, finish in zip(self.places, self.program.steps, self.finishes, strict=True):
            if at in self.needs(place):
                frames[step.relation] = frame_of(step, finish.settled(released[at].bounds), released[at])
        rows = []
        for each, statement in zip(inputs, self.inputs[place], strict=True):
            known = {header.name: frames.get(header.name, no_rows(header)) for header in statement.relations}
            rows.append(run(statement, known, handed(each.parameters)))
        return seen(inputs, rows, release.query.plan.input, release.query.plan.keys, public)

    def answers(self, released: Mapping[int, Released]) -> tuple[Result, ...]:
        """The answers of those releases that there are."""
        answers: list[Result] = []
        for place, release in zip(self.places, self.finishes, strict=True):
            if place in released:
                settled = release.settled(released[place].bounds)
                answers.append(result_of(settled, released[place], ""))
        return tuple(answers)

    @property
    def explanation(self) -> ProgramExplanation:
        """What would be done, and at what cost."""
        reads = tuple(
            tuple((self._last(each.reads), each.written) for each in step.inputs) if step.inputs else ()
            for step in self.firsts
        )
        given = reads if self.later else ()
        return ProgramExplanation(
            self.releases[0], releases=self.releases, sql=self.program.sql, reads=given, merged=self.merged
        )

    def _last(self, names: Sequence[str]) -> int:
        """The number of the last of some releases, by their relations; 0 where there is none."""
        pairs = zip(self.program.steps, self.places, strict=True)
        return max((place + 1 for step, place in pairs if step.relation in names), default=0)


def prepared_program(
    program: Program,
    planned: Planned,
    allowance: Callable[[Options | None], Allowance],
    public: PublicValues | None,
) -> PreparedProgram:
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
    frames = _public_frames(program, public)
    headers = [*map(header_of, program.steps), *(public_header(*each) for each in program.public if each[0] in frames)]
    statement = bound(program.sql, headers, handed(program.parameters))
    inputs = tuple(
        tuple(bound(one.sql, headers, handed(one.parameters)) for one in step.inputs) for step in planned_for
    )
    return PreparedProgram(
        program,
        tuple(each.release for each in releases),
        tuple(of_first[at] for at in places),
        finishes,
        statement,
        frames,
        planned_for,
        inputs,
        explain_only=False,
        merged=tuple(len(each.steps) for each in releases),
    )


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


# What the SQL over answers is handed.


def _public_frames(program: Program, public: PublicValues | None) -> dict[str, Frame]:
    data = public if isinstance(public, PublicData) else PublicData({})
    return {name: data.frame(schema) for name, schema in program.public}


def with_intervals(
    result: Result, settled: Release, released: Released, program: Program, public: PublicValues | None
) -> StagedResult:
    """The answer of SELECTs over one release, with what knows how far what they have computed may be off."""
    (step,) = program.steps
    plain = replace(settled, query=replace(settled.query, stages=()))
    drawn = Drawn(step, result_of(plain, released, ""), frame_of(step, plain, released))
    answer = result._answer
    rows = Frame(answer.names, answer.types, answer.vectors)
    above = Above(program, (drawn,), _public_frames(program, public), handed(program.parameters), rows)
    shown = {each.name: getattr(result, each.name) for each in fields(result)}
    return StagedResult(**shown, above=above)


def _noisy(program: Program, names: Sequence[str]) -> frozenset[str]:
    """The columns with noise in them, as far as that is known."""
    again = program.redrawn
    if again is None:
        return frozenset()
    return frozenset(name for name, noise in zip(names, again.columns, strict=True) if not noise.known)


def result_of_program(
    prepared: PreparedProgram,
    released: Sequence[Released],
    footer: str,
    *,
    notes: tuple[str, ...] = (),
    replayed: bool = False,
    again: str = "Ask again with other SQL over them: it is free.",
) -> ProgramResult:
    """The answer of a program, of what each of its releases gave. Raises NotComputed, which holds these."""
    answers: list[Result] = []
    drawn: list[Drawn] = []
    for place, step, release in zip(prepared.places, prepared.program.steps, prepared.finishes, strict=True):
        settled = release.settled(released[place].bounds)
        answers.append(result_of(settled, released[place], footer, replayed=replayed))
        drawn.append(Drawn(step, answers[-1], frame_of(step, settled, released[place], answers[-1]._answer)))
    frames = {**prepared.public, **{each.step.relation: each.frame for each in drawn}}
    try:
        rows = run(prepared.statement, frames, handed(prepared.program.parameters))
    except NotComputed as error:
        raise error.with_answers(tuple(answers), again) from None
    whole = Answer(
        rows.names,
        rows.types,
        rows.vectors,
        np.arange(len(rows)),
        (None,) * len(rows.names),
        noisy=_noisy(prepared.program, rows.names),
    )
    first = answers[0]
    return ProgramResult(
        whole,
        first._release,
        first._released,
        footer,
        notes,
        replayed,
        answers=tuple(answers),
        program=prepared.explanation,
        above=Above(prepared.program, tuple(drawn), prepared.public, handed(prepared.program.parameters), rows),
    )
