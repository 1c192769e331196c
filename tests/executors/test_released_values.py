"""What earlier releases showed, in the place where a later one reads it: equal integers on every engine, of odd values,
too."""

from __future__ import annotations

import random
from typing import Any

import pytest

import dpsql
from dpsql.executors.base import ENGINES, executor_of
from dpsql.plan.domains import cells_of
from dpsql.session.multi_step.prior_releases import seen
from tests.session import earlier_worlds
from tests.session.earlier_worlds import KEY, Statements, World, planted


def compared(engine: str, seed: int, count: int, rows: int = 60) -> list[str]:
    """How so many random statements over random rows, with planted values, differ from pandas' integers."""
    rng = random.Random(seed)
    found: list[str] = []
    asked = 0
    while asked < count:
        world = World.random(rng)
        data = earlier_worlds.frame([earlier_worlds.row(rng, rng.randrange(8)) for _ in range(rows)])
        sessions = [
            dpsql.Session({"t": dpsql.Table(data, **world.facts)}, budget=dpsql.Budget(10**6, 1e-3), engine=each)
            for each in ("pandas", engine)
        ]
        statements = Statements(rng, world)
        for sql in [statements.statement() for _ in range(6)]:
            frames: list[Any] = []
            try:
                integers = [_integers(session, sql, rng, frames) for session in sessions]
            except dpsql.errors.QueryRefused:
                continue
            if None in integers or asked >= count:
                continue
            asked += 1
            if integers[0] != integers[1]:
                found.append(f"{sql}\n{world}\n{frames}\n{integers}")
    return found


def _integers(session: dpsql.Session, sql: str, rng: random.Random, frames: list[Any]) -> object:
    """The integers of a statement's last release, and of whom; of the frames where there are any, else of drawn ones.
    None where it reads nothing, or chooses its bounds first."""
    prepared = session._prepare(sql, (1.0, 1e-6, None, None, None), params=None)
    if prepared.postprocess is None or not prepared.reads_prior_releases:
        return None
    place = next(at for at, step in reversed(list(enumerate(prepared.postprocess.firsts))) if step.inputs)
    made, inputs = prepared.releases[place], prepared.postprocess.firsts[place].inputs
    if made.provisional:
        return None
    frames[:] = frames or [planted(rng, each) for each in inputs]
    put_in = seen(inputs, frames, made.query.plan.input, made.query.plan.keys, {})
    plan = put_in.plan(made.exact)
    table = executor_of({**session._stores, **put_in.stores}, ENGINES[session._engine.name]).execute(plan, KEY)
    columns = [cells_of(vector, each.expr.type) for vector, each in zip(table.keys, plan.keys, strict=True)]
    groups = list(zip(*columns, strict=True)) if columns else [()] * table.groups
    parts = {group: tuple(map(int, table.parts[:, at])) for at, group in enumerate(groups)}
    grids = [
        {(groups[at], point): count for at, point, count in zip(*_columns(grid), strict=True)} for grid in table.grids
    ]
    return parts, grids


def _columns(grid: Any) -> list[list[int]]:
    return [each.tolist() for each in (grid.groups, grid.points, grid.counts)]


def test_duckdb_gives_the_same_integers():
    assert compared("duckdb", 41, 12) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(42, 50))
def test_duckdb_gives_the_same_integers_often(seed: int):
    assert compared("duckdb", seed, 80) == []
