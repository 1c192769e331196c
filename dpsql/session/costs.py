"""What a question would be charged, before it is asked: for those who want to be asked first, and for an owner who
wants to know what a list of questions costs."""

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
"""An epsilon above which a spend is asked about, whatever is left."""

ANSWERED = "answered before: spent nothing"
"""What the line below an answer says where it was given before."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A price, and what it is to be seen beside.

    cost: what would be charged; nothing for a replay and for EXPLAIN. left: what the next query may have. admitted:
    whether the budget suffices. most: how often it has the epsilon (or rho) for such a query; most_whole: how often
    it has delta for it too; None for any number. conversion: the delta at which a rho is converted; None where rhos
    are not added up. replayed: the answer was given before.
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
    """Which of the statement's releases would be charged, by their places."""

    @property
    def epsilon(self) -> Fraction:
        """The cost as an epsilon: that of a rho at the conversion's delta, rounded up."""
        if self.cost.epsilon is not None:
            return self.cost.epsilon
        return epsilon_of(self.cost.rho, self.conversion) if self.conversion else Fraction(0)

    @property
    def reason(self) -> str:
        """Why a person should be asked first, as a clause; "" where the price is ordinary.

        More than half of what is left: there is epsilon (or rho), or delta, for one of the kind and not for two, as the
        accountant adds up.
        """
        if self.most == 1:
            return f"which is more than half of what is left ({self.left})"
        if self.most_whole == 1:
            return f"whose delta is more than half of what is left ({self.left})"
        return f"which is above epsilon {show(LARGE)}" if self.epsilon > LARGE else ""


def check_confirmed(quote: Quote, up_to: Fraction | None = None, hint: str = "") -> None:
    """Raises ConfirmationRequired for a large spend. up_to: an epsilon up to which everything was confirmed already;
    hint: how it is confirmed in the place where it is read. A price that the budget does not admit passes: its refusal
    comes before a question."""
    reason = quote.reason if quote.admitted else ""
    if reason and (up_to is None or quote.epsilon > up_to):
        raise ConfirmationRequired(
            f"this query would spend {quote.cost}, {reason}. Nothing was run, nothing was charged.",
            hint=hint,
            about={"epsilon": show(quote.epsilon, up=True)},
        )


def footer(ledger: Ledger, cost: Cost, parts: Sequence[Part], spent: str, aside: str = "") -> str:
    """The line below an answer: what was spent, what is left of epsilon and of the delta that queries may
    spend, and how many more of the kind there may be. aside: where it counts, if not where the schema says."""
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


def program_footer(
    ledger: Ledger, releases: Sequence[Release], paid: Sequence[Release], parts: Sequence[Part], aside: str = ""
) -> str:
    """As `footer`, for a statement of several releases, of which some were paid for now."""
    cost = sum((each.cost for each in releases), FREE)
    known = len(releases) - len(paid)
    spent = f"spent {cost_in_words(paid)}" if paid else ANSWERED
    spent += f" ({known} of {len(releases)} answered before)" if paid and known else ""
    return footer(ledger, cost, parts, spent, aside)


def paid_again(entries: Sequence[Entry], asked: Entry, unversioned: Sequence[str]) -> tuple[str, ...]:
    """A note where a session before has paid for the same text at the same cost, and its answer was not kept because
    tables have no version."""
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
