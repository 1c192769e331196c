"""A ledger's rules as text, and the hash that chains its lines to them.

A line's hash covers the hash of the line before and its own text, so no line can be changed, removed or inserted
without changing all hashes after it; the first hash is that of the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field

from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.lines import FORMAT, dumps, number
from dpsql.core.unit import Neighbours
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules fixed when a ledger is first opened. format: that of its first lines."""

    budget: Budget
    accountant: str = "auto"
    neighbours: Neighbours = Neighbours.UNBOUNDED
    format: int = field(default=FORMAT, compare=False)

    def __post_init__(self) -> None:
        self.budget.filter(self.accountant)  # raises unless they fit together
        for _, share in self.budget.analysts:
            share.filter(self.accountant)

    @property
    def text(self) -> str:
        return dumps(
            {
                "format": self.format,
                "accountant": self.accountant,
                "neighbours": str(self.neighbours),
                "budget": _budget_text(self.budget),
                "analysts": {name: _budget_text(share) for name, share in self.budget.analysts},
            }
        )

    @classmethod
    def read(cls, text: str) -> Rules:
        """Return the rules of a text. Raises ValueError (or a DPSQLError) for one that this version did not write."""
        fields = json.loads(text)
        if type(fields["format"]) is not int or not 1 <= fields["format"] <= FORMAT:
            raise ValueError(f"format {fields['format']}")
        analysts = {name: _read_budget(share) for name, share in fields["analysts"].items()}
        budget = Budget.recorded(_read_budget(fields["budget"]), analysts)
        rules = cls(budget, fields["accountant"], Neighbours(fields["neighbours"]), fields["format"])
        if rules.text != text:
            raise ValueError("not as it was written")
        return rules

    def __str__(self) -> str:
        return f"{self.budget}, accountant {self.accountant}, {self.neighbours} neighbours"


def digest_of(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def first_hash(rules: str) -> str:
    return hashlib.sha256(f"dpsql ledger\n{rules}".encode()).hexdigest()


def next_hash(before: str, number: int, text: str) -> str:
    return hashlib.sha256(f"{before}\n{number}\n{text}".encode()).hexdigest()


def export(rules: Rules, lines: Iterable[tuple[int, str, str]]) -> str:
    """Return the whole ledger as JSON, with its hashes."""
    return json.dumps(
        {
            "rules": json.loads(rules.text),
            "lines": [{"number": number, "hash": digest, **json.loads(text)} for number, text, digest in lines],
        },
        indent=1,
        ensure_ascii=True,
    )


def _budget_text(budget: Budget) -> dict[str, str | None]:
    conversion = budget.conversion_delta
    return {
        "epsilon": str(budget.loss.epsilon),
        "delta": str(budget.loss.delta),
        "conversion_delta": None if conversion is None else str(conversion),
    }


def _read_budget(fields: Mapping[str, str | None]) -> Budget:
    conversion = fields["conversion_delta"]
    return Budget(
        number(fields["epsilon"]),
        number(fields["delta"]),
        conversion_delta=None if conversion is None else number(conversion),
    )
