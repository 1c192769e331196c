"""Session over a connection: the interface of a local session, for queries to a server that holds the rows."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, cast

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import RemainingBudget, SpentBudget
from dpsql.core.ledger.lines import Entry
from dpsql.core.loss import POSITIVE, exact
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidArgument, InvalidParameter, ServerUnavailable, UnsupportedSQL, as_written
from dpsql.remote.answers import RemoteExplanation, RemoteResult
from dpsql.remote.facts import DeclaredTables, cost_of, quote_of, remaining_of
from dpsql.remote.wire import Wire, checked_anchor
from dpsql.schema.argument_names import checked_methods, checked_names
from dpsql.session.costs import Quote

if TYPE_CHECKING:
    from dpsql.schema.argument_types import Scalars

Number = float | Fraction | Decimal | None


@checked_names
def connect(url: str, *, token_file: str | os.PathLike[str] | None = None, anchor: str | None = None) -> RemoteSession:
    """Open a session on the server at this address: https, or http on this machine only.

    Parameters
    ----------
    url : str
        The address.
    token_file : str or Path, optional
        File with the token, which other users must not be able to read. By default the token is read from the
        environment variable DPSQL_TOKEN, or from a prompt.
    anchor : str, optional
        An earlier `RemoteSession.ledger_anchor`, whose entries the server's ledger must still contain.

    Raises
    ------
    InvalidArgument, ServerUnavailable
    AccessDenied
        For an invalid token.
    LedgerError
        If the ledger was rolled back.
    """
    session = RemoteSession(Wire(url, token_file, checked_anchor(anchor)))
    try:
        with session._wire.reading():
            session.budget  # noqa: B018 - checks the token
    except BaseException:
        session.close()
        raise
    return session


@checked_methods
class RemoteSession:
    """Private queries of tables that a server holds, paid from the analyst's share. Methods and attributes are those of
    `Session`, with the same answers, errors and costs. Raises ServerUnavailable if the server does not answer; a query
    that was paid for is not paid again when it is repeated."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lost: dict[str, str] = {}  # keys of queries whose answers did not arrive, by their body

    def query(
        self,
        sql: str,
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Scalars | None = None,
        fresh: bool = False,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: Number = None,
        confidence: Number = None,
        dialect: str | None = None,
    ) -> RemoteResult:
        """As `Session.query`: charged, on the server, before any row is read."""
        if not isinstance(fresh, bool):
            raise InvalidArgument(f"fresh must be True or False, got {as_written(fresh)}.")
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
        body = _body(sql, numbers, params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        asked = {**body, "fresh": True} if fresh else body
        try:
            answer = self._asked(asked)
        except UnsupportedSQL as refusal:
            if refusal.about.get("ask") != "explain":
                raise
            return cast("RemoteResult", self._explained(body))  # as a local session does
        with self._wire.reading():
            return RemoteResult(answer, lambda: self._explained(body, with_budget=False))

    def explain(
        self,
        sql: str,
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Scalars | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: Number = None,
        confidence: Number = None,
        dialect: str | None = None,
    ) -> RemoteExplanation:
        """As `Session.explain`; free."""
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
        return self._explained(_body(sql, numbers, params, strategy=strategy, mechanism=mechanism, dialect=dialect))

    def remaining_queries(
        self,
        sql: str,
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Scalars | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: Number = None,
        confidence: Number = None,
        dialect: str | None = None,
    ) -> int | float:
        """As `Session.remaining_queries`; free."""
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
        body = _body(sql, numbers, params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        most = self._wire.post("/v1/remaining", body, sql)["queries"]
        return math.inf if most is None else int(most)

    def rehearse(
        self,
        sql: str,
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: Number = None,
        confidence: Number = None,
        dialect: str | None = None,
    ) -> RemoteResult:
        """Return the answer over synthetic rows, as `dpsql.owner.rehearse`; free. Its explanation is the query's."""
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
        body = _body(sql, numbers, params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        answer = self._wire.post("/v1/rehearsals", body, sql)
        with self._wire.reading():
            return RemoteResult(answer, lambda: self._explained(body, with_budget=False))

    def quote(
        self,
        sql: str,
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Mapping[str, Any] | None = None,
        fresh: bool = False,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: Number = None,
        confidence: Number = None,
        dialect: str | None = None,
    ) -> Quote:
        """As `Session.quote`; free."""
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
        body = _body(sql, numbers, params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        (quote,) = self._quoted({"queries": [{**body, "fresh": True} if fresh else body]})
        return quote

    def quotes(
        self,
        queries: Iterable[str],
        *,
        epsilon: Number = None,
        delta: Number = None,
        rho: Number = None,
        params: Mapping[str, Any] | None = None,
        dialect: str | None = None,
    ) -> tuple[Quote, ...]:
        """As `Session.quotes`, for at most 20 queries at once; free. A refusal precedes all costs."""
        numbers = {"epsilon": epsilon, "delta": delta, "rho": rho}
        bodies = [_body(sql, numbers, params, dialect=dialect) for sql in queries]
        return self._quoted({"queries": bodies, "in_turn": True}) if bodies else ()

    def _quoted(self, batch: Mapping[str, Any]) -> tuple[Quote, ...]:
        said = self._wire.post("/v1/prices", batch, *(str(each["sql"]) for each in batch["queries"]))
        with self._wire.reading():
            return tuple(map(quote_of, said["prices"]))

    @property
    def analyst(self) -> str:
        """The analyst of this session."""
        return str(self._wire.get("/v1/budget")["analyst"])

    @property
    def budget(self) -> Budget:
        """The analyst's share: the most that all answers may cost."""
        said = self._wire.get("/v1/budget")
        return Budget(Fraction(said["epsilon"]), Fraction(said["delta"]))

    @property
    def accountant(self) -> str:
        """The composition of costs: "auto", "basic" or "zcdp"."""
        return str(self._wire.get("/v1/budget")["accountant"])

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation of every query."""
        return Neighbours(self._wire.get("/v1/budget")["neighbours"])

    @property
    def spent(self) -> SpentBudget:
        """The cost of all answers so far."""
        said = self._wire.get("/v1/budget")["spent"]
        return SpentBudget(*(Fraction(said[word]) for word in ("epsilon", "delta", "rho")))

    @property
    def remaining(self) -> RemainingBudget:
        """The budget left for the next query."""
        return remaining_of(self._wire.get("/v1/budget")["remaining"])

    @property
    def ledger_anchor(self) -> str:
        """The checkpoint of the server's ledger at the last paid answer; "" before the first. Requests send it along;
        passed to a later `connect`, it shows whether the ledger was rolled back."""
        return self._wire.anchor

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(str(each["name"]) for each in self._wire.get("/v1/tables")["tables"])

    @property
    def catalog(self) -> DeclaredTables:
        """The declared facts of the tables, as far as the server discloses them."""
        said = self._wire.get("/v1/tables")
        with self._wire.reading():
            return DeclaredTables.of(said)

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._wire.address

    def ledger(self) -> tuple[Entry, ...]:
        """Return the analyst's paid queries: time, text, cost."""
        answers: list[Any] = []
        name, more = self.analyst, True
        while more:
            part = self._wire.get(f"/v1/answers?after={len(answers)}")
            answers += part["answers"]
            more = part["next"] is not None
        return tuple(Entry(each["time"], name, each["sql"], cost_of(each["cost"])) for each in answers)

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _explained(self, body: Mapping[str, Any], *, with_budget: bool = True) -> RemoteExplanation:
        said = self._wire.post("/v1/explanations", body, str(body["sql"]))
        with self._wire.reading():
            return RemoteExplanation(said, with_budget=with_budget)

    def _asked(self, body: Mapping[str, Any]) -> Any:
        """Return the answer; if none arrives, a repetition of the query reuses its key, and is not paid again even if
        it requests a fresh draw."""
        what = json.dumps(body, sort_keys=True)
        key = self._lost.pop(what, "") or fresh_key().hex()
        try:
            return self._wire.ask(body, key)
        except (ServerUnavailable, KeyboardInterrupt):
            self._lost[what] = key
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteSession({self._wire.address!r})"


def _body(sql: object, numbers: Mapping[str, object], params: object, **words: object) -> dict[str, Any]:
    """Return a query as JSON. Raises InvalidArgument, InvalidPrivacyParameter, InvalidParameter."""
    if not isinstance(sql, str):
        raise InvalidArgument(f"a query is a text, got {as_written(sql)}.")
    body: dict[str, Any] = {"sql": str.__str__(sql)}
    for name, number in numbers.items():
        if number is not None:
            body[name] = _decimal(number, name)
    for name, word in words.items():
        if word is None and name == "dialect":  # dpsql's own dialect
            continue
        if not isinstance(word, str):
            raise InvalidArgument(f"{name} is a word, got {as_written(word)}.")
        body[name] = word
    if params is not None:
        if not isinstance(params, Mapping):
            raise InvalidParameter("params must map names to values.", hint='Write params={"low": 20}.')
        body["params"] = {str(name): _parameter(str(name), value) for name, value in params.items()}
    return body


def _decimal(number: object, name: str) -> float | int:
    """Return the number if JSON's decimals can represent it exactly. Raises InvalidArgument otherwise."""
    told = exact(number, name, POSITIVE) if name in ("epsilon", "rho") else exact(number, name)
    if told.denominator == 1 and abs(told) < 2**53:
        return int(told)
    if Fraction(repr(float(told))) != told:
        raise InvalidArgument(f"over a connection {name} is a decimal of at most 15 digits, got {as_written(number)}.")
    return float(told)


def _parameter(name: str, value: Any) -> Any:
    """Return a value for `:name` as JSON."""
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()  # a NumPy scalar
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat(" ")}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter(f":{name} must be a finite number.", hint="For NULL pass None.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidParameter(f":{name} cannot be a {type(value).__name__}.")
