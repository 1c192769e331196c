"""A session with the default terms of queries: used by all parts of the shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsql.answer.base import BaseExplanation, BaseResult
from dpsql.remote.client import RemoteSession
from dpsql.session.session import Session
from dpsql.shell.prompt.consent import Consent
from dpsql.shell.statements import names_asked_for


@dataclass
class Asker:
    """Runs queries in a session, with epsilon (or rho, or error), delta and mechanism for each query, and values for
    `:name`; None leaves them to the session. consent: treatment of large spends. dialect: of the statements."""

    session: Session | RemoteSession
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mechanism: str = "auto"
    error: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    consent: Consent = field(default_factory=lambda: Consent(everything=True))
    dialect: str | None = None

    def ask(self, sql: str, *, fresh: bool = False) -> BaseResult | BaseExplanation:
        """Return the session's answer, or an Explanation for EXPLAIN PRIVACY. fresh: redraw and pay for a cached
        answer. Raises ConfirmationRequired for a large spend without consent."""
        terms = self._terms(sql)
        self.consent.check(self.session.quote(sql, fresh=fresh, **terms))
        return self.session.query(sql, fresh=fresh, **terms)

    def explain(self, sql: str) -> BaseExplanation:
        """Explain the steps and the cost of `ask`; free."""
        return self.session.explain(sql, **self._terms(sql))

    def _terms(self, sql: str) -> dict[str, Any]:
        """Return the terms of a query, with only the parameters that its text uses."""
        names = names_asked_for(sql) if self.params else frozenset()
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "mechanism": self.mechanism,
            "error": self.error,
            "dialect": self.dialect,
            "params": {name: value for name, value in self.params.items() if name in names},
        }
