"""A session with what a query spends that does not say: the one way in which the shell asks."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.explain import Explanation
from dpsql.result import Result
from dpsql.session import Session


@dataclass
class Asker:
    """Asks a session, with an epsilon and delta for each query; None leaves it to the session."""

    session: Session
    epsilon: float | None = None
    delta: float | None = None

    def ask(self, sql: str) -> Result | Explanation:
        """The session's answer; an Explanation where the text begins with EXPLAIN PRIVACY."""
        return self.session.query(sql, epsilon=self.epsilon, delta=self.delta)

    def explain(self, sql: str) -> Explanation:
        """What `ask` would do and cost; free."""
        return self.session.explain(sql, epsilon=self.epsilon, delta=self.delta)
