"""Costs of queries before they are asked, to confirm large ones and to price lists of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

from dpsql.core.conversion import epsilon_of
from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Entry
from dpsql.core.loss import show
from dpsql.errors import ConfirmationRequired
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass
from dpsql.session.cache.cached_answers import Question
from dpsql.session.prepared_query import cost_in_words

LARGE = Fraction(2)
"""A larger epsilon needs confirmation, whatever budget is left."""

ANSWERED = "answered before: spent nothing"
"""Footer text of a repeated answer."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Cost of a query compared with the budget.

    cost: the charge; zero for a replay and for EXPLAIN. left: what the next query may spend. admitted: whether the
    budget suffices. most: how many such queries the epsilon (or rho) suffices for; most_whole: the same with delta;
    None means any number. conversion: the delta at which rho is converted; None where rhos are not added up. replayed:
    the answer was given before.
    """

    cost: Cost
    left: RemainingBudget
    admitted: bool
    most: int | None
    most_whole: int | None
    conversion: Fraction | None = None
    replayed: bool = False
    questions: tuple[Question, ...] = field(default=(), compare=False, repr=False)
    due: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Indices of the statement's releases that would be charged."""

    @property
    def epsilon(self) -> Fraction:
        """The cost as an epsilon: a rho is converted at `conversion`, rounded up."""
        if self.cost.epsilon is not None:
            return self.cost.epsilon
        return epsilon_of(self.cost.rho, self.conversion) if self.conversion else Fraction(0)

    @property
    def reason(self) -> str:
        """Reason to ask a person first, as a clause; "" for an ordinary cost.

        More than half of the remaining budget: epsilon (or rho), or delta, suffices for one such query and not for two,
        as the accountant adds up.
        """
        if self.most == 1:
            return f"which is more than half of what is left ({self.left})"
        if self.most_whole == 1:
            return f"whose delta is more than half of what is left ({self.left})"
        return f"which is above epsilon {show(LARGE)}" if self.epsilon > LARGE else ""


def check_confirmed(quote: Quote, up_to: Fraction | None = None, hint: str = "") -> None:
    """Raise ConfirmationRequired for a large cost. up_to: an epsilon confirmed already; hint: how to confirm in this
    place. A cost that the budget does not admit passes: it is refused before anyone is asked."""
    reason = quote.reason if quote.admitted else ""
    if reason and (up_to is None or quote.epsilon > up_to):
        raise ConfirmationRequired(
            f"this query would spend {quote.cost}, {reason}. Nothing was run, nothing was charged.",
            hint=hint,
            about={"epsilon": show(quote.epsilon, up=True)},
        )


def footer(ledger: Ledger, cost: Cost, parts: Sequence[Part], spent: str, aside: str = "") -> str:
    """Return the line below an answer: cost, remaining epsilon and spendable delta, and how many more such queries are
    possible. aside: where the cost counts, if not in the schema's ledger."""
    cost = cost if cost.free else cost + ledger.time_cost
    spent += f", and {ledger.time_cost} for the response time" if ledger.time and spent != ANSWERED else ""
    left, most = ledger.after(FREE, parts) or ledger.remaining, ledger.most(cost, parts)
    usable = ledger.whole_delta - ledger.kept_delta
    delta = f", delta {show(left.delta)} of {show(usable)}" if ledger.whole_delta else ""
    more = "" if most is None else f" · {most or 'no'} more {'query' if most == 1 else 'queries'} like this"
    short = ledger.short_of(cost, parts) if most == 0 else ""
    more += f": too little {short}" if short else ""
    where = f" · {aside}" if aside else ""
    return f"{spent} · left epsilon {show(left.epsilon)} of {show(ledger.whole)}{delta}{more}{where}"


def multi_step_footer(
    ledger: Ledger, releases: Sequence[Release], paid: Sequence[Release], parts: Sequence[Part], aside: str = ""
) -> str:
    """As `footer`, for a statement of several releases, of which `paid` were paid for now."""
    cost = sum((each.cost for each in releases), FREE)
    known = len(releases) - len(paid)
    spent = f"spent {cost_in_words(paid)}" if paid else ANSWERED
    spent += f" ({known} of {len(releases)} answered before)" if paid and known else ""
    return footer(ledger, cost, parts, spent, aside)


def paid_again(entries: Sequence[Entry], asked: Entry, unversioned: Sequence[str]) -> tuple[str, ...]:
    """Return a note if an earlier session paid for the same text at the same cost, and its answer was not stored
    because tables have no version."""
    before = next((each for each in reversed(entries) if _alike(each, asked)), None) if unversioned else None
    if before is None:
        return ()
    tables = ", ".join(unversioned)
    note = (
        f"this question was paid for again: the ledger has it from {before.time[:10]}, but answers are kept for later "
        f"sessions only where tables have a version, and {tables} has none. Its owner can add one: "
        f'version = "1" in [tables.{unversioned[0]}], and another whenever the data change.'
    )
    return (note,)


def _alike(one: Entry, other: Entry) -> bool:
    return (one.label, one.analyst, one.cost) == (other.label, other.analyst, other.cost)
