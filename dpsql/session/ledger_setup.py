"""The ledger of a session, from the owner's file, the caller and an existing ledger."""

from __future__ import annotations

import os
from typing import Literal

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import ACCOUNTANTS
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, LedgerError, as_written
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema

LedgerWord = str | os.PathLike[str] | Literal[False] | None
"""The caller's ledger: a path; False: none; None: the schema's."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The caller's rules; None: unspecified."""

    budget: object = None
    accountant: object = None
    neighbours: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Location of the ledger: a path (None: in memory); whether it is the schema's own; and a note below every answer
    if the caller overrides the schema's default ledger."""

    path: str | os.PathLike[str] | None
    own: bool = False
    aside: str = ""

    @classmethod
    def of(cls, word: object, schema: Schema | None) -> Place:
        """Return the location. Raises InvalidArgument if the caller overrides a ledger that the schema names."""
        named = schema.ledger if schema else None
        usual = named or (schema.default_ledger if schema else None)
        if word is None:
            return cls(usual, own=usual is not None)
        if word is not False and not isinstance(word, str | os.PathLike):
            raise InvalidArgument(f"ledger must be a path, or False for none, got {as_written(word)}.")
        if word is not False and usual is not None and os.path.realpath(word) == os.path.realpath(usual):
            return cls(usual, own=True)
        if named is not None:
            raise InvalidArgument(
                f"the schema names {'its' if word is False else 'another'} ledger, {named}.",
                hint="Leave it out: a second ledger would be a second budget.",
            )
        if word is False:
            return cls(None, aside="counts in this process only" if usual else "")
        return cls(word, aside=f"counts in {os.fspath(word)} only" if usual else "")


def opened(
    wanted: LedgerSettings,
    schema: Schema | None,
    place: Place,
    *,
    analyst: str | None = None,
    anchor: str | None = None,
) -> Ledger:
    """Return a ledger in memory, or in the file. Raises InvalidArgument, InvalidPrivacyParameter, LedgerError."""
    analyst = _analyst(analyst)
    budget, accountant = _budget(wanted.budget, schema), _accountant(wanted.accountant, schema)
    relation = _neighbours(wanted.neighbours, schema)
    if place.path is None:
        if anchor is not None:
            raise InvalidArgument("an anchor is of a ledger's file.", hint="Name it: ledger=path.")
        return Ledger(_rules(budget, accountant, relation, None), analyst=analyst)
    from dpsql.core.ledger.file import open_ledger, rules_of

    existing = rules_of(place.path)
    if not place.own or schema is None:
        rules = _rules(budget, accountant, relation, existing)
        return open_ledger(place.path, rules, analyst=analyst, anchor=anchor)
    declared, within = schema.budget or budget, None
    if existing is not None and budget is not None and existing.budget == budget:
        declared = budget  # opened with this budget the first time
    elif budget != declared:
        within = budget
    rules = _rules(declared, accountant, relation, existing)
    if existing is not None:
        _check_total(existing, rules, schema)
    return open_ledger(place.path, rules, analyst=analyst, anchor=anchor, within=within)


def _check_total(existing: Rules, asked: Rules, schema: Schema) -> None:
    """Raise LedgerError if the owner's file and its ledger differ in the total budget and in nothing else."""
    own, declared = existing.budget, asked.budget
    if own.loss == declared.loss or (own.conversion_delta, own.analysts) != (
        declared.conversion_delta,
        declared.analysts,
    ):
        return
    name = "the schema" if schema.file is None else schema.file.name
    words = [
        f"{word} = {float(ours)!r}"
        for word, ours, theirs in (
            ("epsilon", own.loss.epsilon, declared.loss.epsilon),
            ("delta", own.loss.delta, declared.loss.delta),
        )
        if ours != theirs
    ]
    delta = f" --delta {float(declared.loss.delta)!r}" if own.loss.delta != declared.loss.delta else ""
    raise LedgerError(
        f"{name} says budget {declared.loss}, and its ledger {own.loss}.",
        hint=f"Where the ledger is right, write in [budget] of {name}: {' and '.join(words)}\n"
        f"Where {name} is right, its owner says so to the ledger, once:\n"
        f"dpsql ledger renew {name} --epsilon {float(declared.loss.epsilon)!r}{delta} --reason TEXT",
    )


def _rules(budget: Budget | None, accountant: str | None, relation: Neighbours | None, existing: Rules | None) -> Rules:
    """Return the given rules, completed by those of an existing ledger. Raises InvalidPrivacyParameter."""
    if existing is not None:
        return Rules(budget or existing.budget, accountant or existing.accountant, relation or existing.neighbours)
    if budget is None:
        raise no_budget()
    return Rules(budget, accountant or "auto", relation or Neighbours.UNBOUNDED)


def _analyst(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"analyst must be a name, got {as_written(name)}.")
    return str.__str__(name)  # a subclass could compare as it likes


def check(wanted: LedgerSettings, schema: Schema | None) -> None:
    """Raise InvalidArgument or InvalidPrivacyParameter if rules contradict the schema's, before anything is
    created."""
    _budget(wanted.budget, schema)
    _accountant(wanted.accountant, schema)
    _neighbours(wanted.neighbours, schema)


def no_budget() -> InvalidPrivacyParameter:
    return InvalidPrivacyParameter(
        "a session needs a budget: how much may all its answers tell about one person?",
        hint="Write Session(tables, budget=dpsql.Budget(epsilon=3, delta=1e-6)).",
    )


def _budget(budget: object, schema: Schema | None) -> Budget | None:
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidArgument(
            f"budget must be a dpsql.Budget, got {as_written(budget)}.", hint="Write dpsql.Budget(epsilon=3)."
        )
    declared = schema.budget if schema else None
    if budget is None or declared is None:
        return budget or declared
    if not budget.loss.within(declared.loss):
        raise InvalidPrivacyParameter(f"{budget} is more than the schema's {declared}.")
    if declared.analysts and budget.analysts and budget.analysts != declared.analysts:
        raise InvalidPrivacyParameter("the analysts' shares are not the schema's.", hint="Leave them out here.")
    return budget.with_analysts(budget.analysts or declared.analysts)


def _accountant(word: object, schema: Schema | None) -> str | None:
    """Return the accountant. The schema's "auto" may be narrowed to either."""
    if word is not None and (not isinstance(word, str) or word not in ACCOUNTANTS):
        raise InvalidArgument(f"accountant must be 'auto', 'basic' or 'zcdp', got {as_written(word)}.")
    declared = schema.accountant if schema else None
    if declared not in (None, "auto") and word not in (None, declared):
        raise InvalidArgument(f"accountant {as_written(word)} contradicts the schema's {declared!r}.")
    return str(word) if word is not None else declared


def _neighbours(word: str | None, schema: Schema | None) -> Neighbours | None:
    declared = schema.neighbours if schema else None
    if word is None:
        return declared
    relation = Neighbours.of(word)
    if declared is not None and relation is not declared:
        raise InvalidArgument(f"neighbours {str(relation)!r} contradicts the schema's {str(declared)!r}.")
    return relation
