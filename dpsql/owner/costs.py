"""Costs of a list of queries by a session's ledger, before any is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.errors import DPSQLError, QueryRefused
from dpsql.schema.frozen import dataclass
from dpsql.session.session import Session

_WIDEST_QUERY = 60


@dataclass(frozen=True)
class QueryCost:
    """One query of a bill: its place from 1, its text, its cost, and why it is free, if it is. left: the budget before
    it; admitted: whether that suffices."""

    place: int
    sql: str
    cost: Cost
    why: str
    left: RemainingBudget
    admitted: bool

    def __str__(self) -> str:
        price = self.why or str(self.cost)
        lack = "" if self.admitted else f"  MORE THAN IS LEFT ({self.left})"
        text = " ".join(self.sql.split())
        shown = text if len(text) <= _WIDEST_QUERY else f"{text[: _WIDEST_QUERY - 3]}..."
        return f"{self.place:>3}  {price:<28}  {shown}{lack}"


@dataclass(frozen=True)
class Bill:
    """The costs of a list of queries. refused: the error of the first refused query, at which the list ends; it also
    ends with the budget. total: the sum, composed as a sequence of steps."""

    queries: tuple[QueryCost, ...]
    total: Cost
    left: RemainingBudget
    refused: DPSQLError | None = None

    @property
    def admitted(self) -> bool:
        """True if the budget suffices for all queries."""
        return all(each.admitted for each in self.queries)

    def __str__(self) -> str:
        lines = [str(each) for each in self.queries]
        if self.admitted and self.refused is None:
            lines.append(f"together {'nothing' if self.total.free else self.total}; left now {self.left}")
        return "\n".join(lines)


def cost(session: Session, queries: Sequence[str], **terms: Any) -> Bill:
    """Return the costs that a session's ledger would charge for queries run one after another: repetitions and cached
    answers are free. Charges nothing and reads no row.

    Parameters
    ----------
    session : Session
    queries : sequence of str
    terms
        epsilon, delta, rho and params of `Session.quotes`.

    Returns
    -------
    Bill
        With the error of a refused query, if any.

    Raises
    ------
    InvalidArgument, InvalidPrivacyParameter
    """
    priced: list[QueryCost] = []
    refused: QueryRefused | None = None
    try:
        priced.extend(_priced(session, queries, terms))
    except QueryRefused as error:
        refused = error
        priced = list(_until_refused(session, queries, terms))
    total = sum((each.cost for each in priced if each.admitted), FREE)
    return Bill(tuple(priced), total, session.remaining, refused)


def _until_refused(session: Session, queries: Sequence[str], terms: dict[str, Any]) -> Iterator[QueryCost]:
    """Yield the costs of the queries before the refused one."""
    try:
        yield from _priced(session, queries, terms)
    except QueryRefused:
        return


def _priced(session: Session, queries: Sequence[str], terms: dict[str, Any]) -> Iterator[QueryCost]:
    for place, (sql, quote) in enumerate(zip(queries, session.quotes(queries, **terms), strict=False), start=1):
        why = ""
        if quote.cost.free:
            why = "free, answered before" if quote.replayed else "free"
        yield QueryCost(place, sql, quote.cost, why, quote.left, quote.admitted)
