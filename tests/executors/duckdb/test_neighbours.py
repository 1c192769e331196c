"""Random worlds on DuckDB: neighbours are worth what is charged, and the integers are pandas' own.

DPSQL_STREAM=500 asks about so many worlds instead of the default.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

import dpsql
from dpsql.executors import base
from dpsql.testing import _integers
from tests.core import brute_force

WORLDS = int(os.environ.get("DPSQL_STREAM", "24"))
FIRST = 90_000
PER_TEST = 4
KEYS = (bytes(32), bytes(range(32)))


def on_duckdb(self: brute_force.World, data: brute_force.Data, relation: str) -> dpsql.Session:
    tables = {name: self.table(name, data[name]) for name in data}
    return dpsql.Session(tables, budget=dpsql.Budget(10**9, 0.5), neighbours=relation, engine="duckdb")


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS // 3, PER_TEST))
def test_neighbours(first: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(brute_force.World, "session", on_duckdb)
    met = brute_force.Met()
    for seed in range(first, first + PER_TEST):
        brute_force.ask(random.Random(seed), met, texts=4, tables=1)
    assert met.pairs > met.refused // 8


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, PER_TEST))
def test_the_same_integers(first: int):
    compared = 0
    for seed in range(first, first + PER_TEST):
        compared += compare(random.Random(seed))
    assert compared > 0


def compare(rng: random.Random) -> int:
    """How many plans of a random world were found to be alike on both engines, for each of two keys."""
    world, relation = brute_force.World.random(rng), rng.choice(["unbounded", "bounded"])
    data, _ = next(brute_force.neighbours_of(world, rng, relation, people=4, rows=rng.choice([2, 4, 9])))
    sessions = [world.session(data, relation), on_duckdb(world, data, relation)]
    queries, compared = brute_force.Queries(rng, world), 0
    for _ in range(6):
        sql, terms = queries.sql(), queries.terms()
        try:
            plans = [sessions[1].explain(sql, **terms)._release.plans[0]]
        except dpsql.DPSQLError:
            continue
        for plan in plans:
            for key in KEYS:
                one, other = (_integers(plan, run(held, plan, key)) for held in sessions)
                assert one == other, f"{sql} {world}\n{data}"
            compared += 1
    return compared


def run(held: dpsql.Session, plan: Any, key: bytes) -> Any:
    return base.executor_of(held._stores, held._engine).execute(plan, key)
