"""The ledger of a schema file: report, verification, export, and renewal of the total."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.filters import RemainingBudget, SpentBudget
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Entry
from dpsql.core.loss import show
from dpsql.errors import InvalidArgument, InvalidSchema, as_written
from dpsql.schema.argument_names import checked_names
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema

_WIDEST_QUERY = 80


@dataclass(frozen=True)
class Renewal:
    """A new total: its time (UTC), its epsilon and delta as exact fractions, and the reason."""

    time: str
    epsilon: str
    delta: str
    reason: str


@dataclass(frozen=True)
class LedgerReport:
    """Content of a ledger: its file, current budget, accountant and neighbour relation, the spent and remaining budget,
    all charges, all renewals by the owner, and the checkpoint of its last line. Prints as a page."""

    file: Path
    budget: Budget
    accountant: str
    neighbours: str
    spent: SpentBudget
    left: RemainingBudget
    entries: tuple[Entry, ...]
    renewals: tuple[Renewal, ...]
    anchor: str

    def __str__(self) -> str:
        kept = self.budget.filter(self.accountant).conversion
        count = len(self.entries)
        rows = [
            ("ledger", str(self.file)),
            ("budget", f"{self.budget.loss}, accountant {self.accountant}, {self.neighbours} neighbours"),
            *((f"{each.time[:10]}", f"renewed: {_printable(each.reason)}") for each in self.renewals),
            ("spent", f"{self.spent} in {count} {'query' if count == 1 else 'queries'}"),
            ("left", str(self.left)),
            *([("kept", f"delta {show(kept)}, which converts rho to epsilon")] if kept else []),
            ("anchor", self.anchor),
        ]
        lines = [f"{word:<10}  {text}" for word, text in rows]
        charges = [
            f"{each.time[:19].replace('T', ' ')}  {_printable(each.analyst or ''):<{self._widest_name}}  "
            f"{each.cost!s:<{self._widest_cost}}  {_on_a_line(each.label)}"
            for each in self.entries
        ]
        return "\n".join([*lines, *([""] if charges else []), *charges])

    @property
    def _widest_name(self) -> int:
        return max((len(_printable(each.analyst or "")) for each in self.entries), default=0)

    @property
    def _widest_cost(self) -> int:
        return max((len(str(each.cost)) for each in self.entries), default=0)


@checked_names
def show_ledger(path: str | os.PathLike[str]) -> LedgerReport:
    """Return the content of a schema file's ledger (or of a ledger file), after checking every hash. Raises
    InvalidSchema, InvalidArgument if there is no ledger yet, and LedgerError."""
    with closing(_opened(path)) as ledger:
        lines = json.loads(ledger.to_json())["lines"]
        renewals = tuple(
            Renewal(each["time"], each["epsilon"], each["delta"], each["reason"])
            for each in lines
            if each.get("kind") == "renewed"
        )
        return LedgerReport(
            ledger_of(path),
            ledger.budget,
            ledger.rules.accountant,
            str(ledger.neighbours),
            ledger.spent,
            ledger.remaining,
            ledger.entries,
            renewals,
            ledger.anchor,
        )


@checked_names
def verify_ledger(path: str | os.PathLike[str], anchor: str | None = None) -> str:
    """Check every line and hash of a ledger and, with an earlier checkpoint (`anchor`), that its entries are still
    there. Returns the checkpoint of the last line, to be kept elsewhere. Raises as `show_ledger`."""
    with closing(_opened(path, anchor)) as ledger:
        return ledger.anchor


@checked_names
def export_ledger(path: str | os.PathLike[str]) -> str:
    """Return the ledger as JSON: rules, every line and its hash, numbers as exact fractions. Raises as
    `show_ledger`."""
    with closing(_opened(path)) as ledger:
        return ledger.to_json()


@checked_names
def renew_ledger(
    schema: str | os.PathLike[str], *, epsilon: float, delta: float | None = None, reason: str
) -> tuple[str, ...]:
    """Set a new total for a schema file's ledger: a line in its chain, with the reason. What is spent stays spent.

    The parts of delta and the shares of analysts stay.

    Parameters
    ----------
    schema : str or Path
        The schema file.
    epsilon, delta : float
        The total for all answers, including earlier ones. delta: None keeps it.
    reason : str
        Recorded in the ledger.

    Returns
    -------
    tuple of str
        The lines that the file's [budget] must contain from now on, where it differs: until then every session on it is
        refused.

    Raises
    ------
    InvalidSchema, InvalidArgument, LedgerError
    InvalidPrivacyParameter
        Also if more is spent already.
    """
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidArgument("a new total needs a reason, which stays in the ledger.", hint="Add --reason TEXT.")
    declared = _schema(schema)
    with closing(_opened(schema)) as ledger:
        whole = ledger.budget.loss.delta if delta is None else delta
        ledger.renew(epsilon, whole, str.__str__(reason))
        now = ledger.budget.loss
    said = None if declared.budget is None else declared.budget.loss
    pairs = [("epsilon", now.epsilon, said and said.epsilon), ("delta", now.delta, said and said.delta)]
    return tuple(f"{word} = {float(new)!r}" for word, new, old in pairs if new != old)


def ledger_of(path: str | os.PathLike[str]) -> Path:
    """Return the ledger of a schema file, recognized by its ending; any other file is taken for a ledger. Raises
    InvalidSchema."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"a schema's file or a ledger's is meant, got {as_written(path)}.")
    file = Path(path)
    if file.suffix.lower() != ".toml":
        return file
    schema = _schema(file)
    kept = schema.ledger or schema.default_ledger
    if kept is None:
        raise InvalidSchema(f"{file.name} has no [budget], so it has no ledger.")
    return kept


def _schema(path: str | os.PathLike[str]) -> Schema:
    return Schema.from_toml(Path(path))


def _opened(path: str | os.PathLike[str], anchor: str | None = None) -> Ledger:
    file = ledger_of(path)
    if not file.exists() and anchor is None:
        raise InvalidArgument(f"there is no ledger {file} yet: nothing has been spent.")
    return open_ledger(file, anchor=anchor, owner=True)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _on_a_line(sql: str) -> str:
    text = _printable(" ".join(sql.split()))
    return text if len(text) <= _WIDEST_QUERY else f"{text[: _WIDEST_QUERY - 3]}..."
