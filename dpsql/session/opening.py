"""The ledger of a session: what the owner's file, the caller and an existing ledger say, brought together."""

from __future__ import annotations

import os

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import ACCOUNTANTS
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, as_written
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller says of the rules; None: nothing."""

    budget: object = None
    accountant: object = None
    neighbours: str | None = None


def opened(
    wanted: Wanted,
    schema: Schema | None,
    *,
    path: str | os.PathLike[str] | None = None,
    analyst: str | None = None,
    anchor: str | None = None,
) -> Ledger:
    """A ledger in memory, or in the file. Raises InvalidArgument, InvalidPrivacyParameter, LedgerError."""
    analyst = _analyst(analyst)
    path = _path(path, schema)
    budget, accountant = _budget(wanted.budget, schema), _accountant(wanted.accountant, schema)
    relation = _neighbours(wanted.neighbours, schema)
    if path is None:
        if anchor is not None:
            raise InvalidArgument("an anchor is of a ledger's file.", hint="Name it: ledger=path.")
        return Ledger(_rules(budget, accountant, relation, None), analyst=analyst)
    from dpsql.core.ledger.file import open_ledger, rules_of

    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"ledger must be a path, got {type(path).__name__}.")
    rules = _rules(budget, accountant, relation, rules_of(path))
    return open_ledger(path, rules, analyst=analyst, anchor=anchor)


def _rules(budget: Budget | None, accountant: str | None, relation: Neighbours | None, existing: Rules | None) -> Rules:
    """What was said of the rules, and where nothing was, those of an existing ledger. Raises
    InvalidPrivacyParameter."""
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


def check(wanted: Wanted, schema: Schema | None) -> None:
    """Raises InvalidArgument or InvalidPrivacyParameter for rules that contradict the schema's, before anything is
    made."""
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
    """The schema's "auto" may be tightened to either."""
    if word is not None and (not isinstance(word, str) or word not in ACCOUNTANTS):
        raise InvalidArgument(f"accountant must be 'auto', 'basic' or 'zcdp', got {as_written(word)}.")
    declared = schema.accountant if schema else None
    if declared not in (None, "auto") and word not in (None, declared):
        raise InvalidArgument(f"accountant {as_written(word)} contradicts the schema's {declared!r}.")
    return str(word) if word is not None else declared


def _path(path: str | os.PathLike[str] | None, schema: Schema | None) -> str | os.PathLike[str] | None:
    declared = schema.ledger if schema else None
    if path is None or declared is None:
        return path if path is not None else declared
    if not isinstance(path, str | os.PathLike) or os.path.realpath(path) != os.path.realpath(declared):
        raise InvalidArgument(
            f"the schema names another ledger, {declared}.",
            hint="Leave it out: a second ledger would be a second budget.",
        )
    return path


def _neighbours(word: str | None, schema: Schema | None) -> Neighbours | None:
    declared = schema.neighbours if schema else None
    if word is None:
        return declared
    relation = Neighbours.of(word)
    if declared is not None and relation is not declared:
        raise InvalidArgument(f"neighbours {str(relation)!r} contradicts the schema's {str(declared)!r}.")
    return relation
