"""A session with what a query spends that does not say: the one way in which the shell asks."""

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
    """Asks a session, with an epsilon (or rho, or error) and delta for each query, a mechanism, and values for
    `:name`; None leaves it to the session. consent: what becomes of a large spend. dialect: whose SQL
    statements are in."""

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
        """The session's answer; an Explanation where the text begins with EXPLAIN PRIVACY. fresh: drawn anew, and
        paid, though it was answered before. Raises ConfirmationRequired for a large spend that nobody consents to."""
        terms = self._terms(sql)
        self.consent.check(self.session.quote(sql, fresh=fresh, **terms))
        return self.session.query(sql, fresh=fresh, **terms)

    def explain(self, sql: str) -> BaseExplanation:
        """What `ask` would do and cost; free."""
        return self.session.explain(sql, **self._terms(sql))

    def _terms(self, sql: str) -> dict[str, Any]:
        """Of the parameters, those that the text asks for: others are for other statements."""
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
