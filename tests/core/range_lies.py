"""Lies about whose word a range is, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `tests/language/test_ranges.py` runs them.
"""

from __future__ import annotations

import pandas as pd
import pytest

import dpsql
from dpsql.answer.result import Result
from dpsql.errors import MissingBounds
from dpsql.plan.expressions import Fact, Function
from dpsql.session import prepare
from dpsql.sql.bind import key_ranges
from tests.lies import Check, Lie

PEOPLE = pd.DataFrame(
    {
        "sex": ["female", "male", "x" * 5_000] * 40,
        "city": ["Oslo", "Rome", "12"] * 40,
        "age": [30, 40, 50] * 40,
        "income": [1.5, 2.5, 3.5] * 40,
        "seen": [pd.Timestamp("2020-01-01")] * 120,
        "born": pd.Series([pd.Timestamp("1980-01-01").date()] * 120),
        "number": [1, 2, 3] * 40,
        "pid": list(range(60)) * 2,
    }
)
DECLARED = dpsql.Table(PEOPLE, bounds={"age": (17, 90)}, keys={"sex": ["female", "male"]}, types={"born": "date"})


def ask(sql: str, epsilon: float = 1) -> pd.DataFrame:
    prepare._cache.clear()  # of plans that were made before a lie
    try:
        answer = dpsql.query({"people": DECLARED}, sql, epsilon=epsilon, auto_bounds=False)
    finally:
        prepare._cache.clear()
    assert isinstance(answer, Result)
    return answer.to_pandas()


def refused(argument: str) -> Check:
    """A sum, and an average, of what nobody has bounded have no sensitivity that means anything."""

    def check() -> None:
        for word in ("SUM", "AVG"):
            try:
                ask(f"SELECT {word}({argument}) FROM people")
            except MissingBounds:
                continue
            raise AssertionError(f"{word}({argument}) was answered")

    return check


def clipped() -> None:
    """A text that no key is, and longer than all of them, adds no more than the longest key."""
    exact = 40 * (6 + 4 + 6)
    assert abs(ask("SELECT SUM(LENGTH(sex)) AS n FROM people", epsilon=1e5)["n"][0] - exact) < 1


def types_speak_for_people(patch: pytest.MonkeyPatch) -> None:
    """The limits of a type count as declared bounds."""
    patch.setattr(Fact, "meaning", lambda self, _said: self)
    patch.setattr(Fact, "limited", property(lambda self: self.range.bounded))


def arithmetic_gives_meaning(patch: pytest.MonkeyPatch) -> None:
    """What is made of a value that nobody has bounded has bounds."""
    patch.setattr(Function, "fact", lambda self, facts: self.fact_of(facts))


def keys_are_all_there_is(patch: pytest.MonkeyPatch) -> None:
    """No key is longer than a million characters."""
    honest = key_ranges._values
    patch.setattr(key_ranges, "_values", lambda *what: [0, 1_000_000] if honest(*what) else [])


LIES: list[tuple[Lie, Check]] = [
    (types_speak_for_people, refused("LENGTH(city)")),
    (types_speak_for_people, refused("CAST(city AS INTEGER)")),
    (types_speak_for_people, refused("YEAR(seen)")),
    (arithmetic_gives_meaning, refused("LENGTH(city) + 1")),
    (arithmetic_gives_meaning, refused("LEAST(CAST(city AS INTEGER), 100)")),
    (keys_are_all_there_is, clipped),
]
