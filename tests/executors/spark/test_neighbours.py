"""Random worlds on Spark: neighbours are worth what is charged, and the integers are pandas' own."""

from __future__ import annotations

import os
import random

import pytest

import dpsql
from tests.core import brute_force
from tests.executors.duckdb import test_neighbours as on_another

WORLDS = int(os.environ.get("DPSQL_STREAM", "6"))
FIRST = 97_000


def on_spark(self: brute_force.World, data: brute_force.Data, relation: str) -> dpsql.Session:
    tables = {name: self.table(name, data[name]) for name in data}
    return dpsql.Session(tables, budget=dpsql.Budget(10**9, 0.5), neighbours=relation, engine="spark")


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(FIRST, FIRST + WORLDS))
def test_neighbours(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(brute_force.World, "session", on_spark)
    met = brute_force.Met()
    brute_force.ask(random.Random(seed), met, texts=2, tables=1)
    assert met.pairs + met.refused > 0


@pytest.mark.spark
def test_the_same_integers_in_random_worlds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(on_another, "on_duckdb", on_spark)
    assert sum(on_another.compare(random.Random(seed)) for seed in range(FIRST, FIRST + WORLDS)) > 0
