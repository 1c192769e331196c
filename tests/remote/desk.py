"""A worker of a server in the test's own process."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql.core.ledger.ledger import Ledger
from dpsql.owner import access
from dpsql.remote.server.worker import Config, Work, answered
from dpsql.session.owner_file import Schema
from tests.remote.serving import shop, token_for

RUN, BODY = "c" * 64, "b" * 64


class Desk:
    """A worker in this process, and the owner's look at the ledger."""

    def __init__(self, folder: Path) -> None:
        self.schema = shop(folder, rows=50)
        token_for(self.schema, "ann", epsilon=10)
        self.work = Work(Config(str(self.schema), RUN))
        self.ledger: Ledger = access.ledger_of(Schema.from_toml(self.schema))

    def restarted(self) -> None:
        self.work = Work(Config(str(self.schema), "d" * 64))

    def send(
        self, operation: str, key: str, sql: str, before: tuple[int, ...] = (), *, plan: bytes = b"", **terms: Any
    ) -> Any:
        request = (key * 64, BODY, RUN, before)
        message = {
            "operation": operation,
            "analyst": "ann",
            "tables": ["customers", "orders"],
            "hidden": terms.pop("hidden", []),
            "charge": terms.pop("charge", False),
            "plan": plan,
        }
        return answered(self.work, {**message, "terms": {"sql": sql, "epsilon": 0.5, **terms}, "request": request})

    def ask(self, key: str, sql: str, **terms: Any) -> Any:
        """Plan, charge and run, as a server does."""
        planned = self.send("plan", key, sql, **terms)
        if planned["outcome"] != "hidden":
            return planned
        assert self.send("charge", key, sql, planned["before"], **terms)["outcome"] == "ok"
        return self.send("query", key, sql, planned["before"], plan=planned["plan"], **terms)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in json.loads(self.ledger.to_json())["lines"] if line["kind"] == kind]

    @property
    def spent(self) -> Fraction:
        return self.ledger.shares()["ann"].spent.epsilon


def said(reply: Any) -> Any:
    """An answer as it travels."""
    assert reply["outcome"] == "ok", reply
    return json.loads(reply["content"])


def values(reply: Any) -> Any:
    return [each["values"] for each in said(reply)["columns"]]
