"""A session with what a query spends that does not say: the one way in which the shell asks."""

from __future__ import annotations

from dpsql.answer.explain import Explanation
from dpsql.answer.result import Result
from dpsql.schema.frozen import dataclass
from dpsql.session.session import Session


@dataclass
class Asker:
    """Asks a session, with an epsilon (or rho) and delta for each query; None leaves it to the session."""

    session: Session
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def ask(self, sql: str, *, fresh: bool = False) -> Result | Explanation:
        """The session's answer; an Explanation where the text begins with EXPLAIN PRIVACY. fresh: drawn anew, and
        paid, though it was answered before."""
        return self.session.query(sql, epsilon=self.epsilon, delta=self.delta, rho=self.rho, fresh=fresh)

    def explain(self, sql: str) -> Explanation:
        """What `ask` would do and cost; free."""
        return self.session.explain(sql, epsilon=self.epsilon, delta=self.delta, rho=self.rho)
